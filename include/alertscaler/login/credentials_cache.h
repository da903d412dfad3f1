/*
 * Credentials that are searched once for all requests that wait, renewed before they expire, and
 * kept while they are valid even if a renewal fails.
 *
 * A renewal begins 10 minutes before the end, or after half of a life shorter than 20 minutes;
 * meanwhile the old credentials are used. In the last minute, or in the last tenth of a life
 * shorter than 10 minutes, requests wait for new credentials, unless the last search has failed.
 */
#ifndef ALERTSCALER_LOGIN_CREDENTIALS_CACHE_H
#define ALERTSCALER_LOGIN_CREDENTIALS_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/login_env.h>
#include <alertscaler/login/provider_credentials.h>

struct as_credentials_cache;

struct as_credentials_config { /* borrowed texts outlive the cache */
    const struct as_login_env *env;
    const struct as_credentials_source *sources; /* as in as_group_provider */
    const struct as_provider_settings *account;
    const char *scope;            /* as in as_credentials_op */
    struct as_oauth2_ask *oauth2; /* as in as_credentials_op */
    const char *client;           /* for metrics and the log: the type of a provider */
    const char *kind, *name;      /* for the log: "provider", "mine" */
    struct as_http_tls tls;       /* of the servers that give credentials */
    const char *proxy_url;
    int64_t timeout_us;   /* of one request of a search */
    int64_t try_again_us; /* after a failed search, unless Retry-After is longer (to 5 minutes) */
};

/* Copies the config. */
struct as_credentials_cache *as_credentials_cache_new(const struct as_credentials_config *config)
    AS_MUST_USE;
/* Nothing may wait any more. */
struct as_credentials_cache *as_credentials_cache_free(struct as_credentials_cache *cache);

enum as_credentials_state {
    AS_CREDENTIALS_READY,   /* there are credentials */
    AS_CREDENTIALS_AWAITED, /* `done` is called, in a later turn, unless the waiter leaves */
    AS_CREDENTIALS_FAILED   /* a search failed just now */
};

typedef void as_credentials_done_fn(void *context);

struct as_credentials_waiter { /* the caller's; all zero at first */
    LIST_ENTRY(as_credentials_waiter) entry;
    as_credentials_done_fn *done;
    void *context;
    bool is_waiting;
};

/* For a request that begins now. */
enum as_credentials_state as_credentials_cache_request(struct as_credentials_cache *cache,
                                                       struct as_credentials_waiter *waiter,
                                                       as_credentials_done_fn *done,
                                                       void *context) AS_MUST_USE;
/* The server refused the credentials of `generation`. READY: there are newer ones. */
enum as_credentials_state as_credentials_cache_renew(struct as_credentials_cache *cache,
                                                     unsigned generation,
                                                     struct as_credentials_waiter *waiter,
                                                     as_credentials_done_fn *done,
                                                     void *context) AS_MUST_USE;
void as_credentials_cache_leave(struct as_credentials_waiter *waiter);

/* NULL: there are none, and find_problem says why. Valid until the next turn of the loop. */
const struct as_provider_credentials *as_credentials_cache_find(
    const struct as_credentials_cache *cache) AS_MUST_USE;
/* Counts the credentials that were found. */
unsigned as_credentials_cache_get_generation(const struct as_credentials_cache *cache);
/* Of the last search that failed: "environment: ...". */
const char *as_credentials_cache_get_problem(const struct as_credentials_cache *cache,
                                             enum as_cloud_op_fault *fault_out);

/* The time of the other side's clock, which decides on signatures and on the expiry of
 * credentials; and how far it is ahead of ours, if known. */
as_wall_time as_credentials_cache_get_wall(const struct as_credentials_cache *cache);
int64_t *as_credentials_cache_get_skew(struct as_credentials_cache *cache);

#endif
