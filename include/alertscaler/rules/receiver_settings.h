/*
 * `receiver` of alertscaler.yaml: what is accepted, and from whom. See settings.h.
 */
#ifndef ALERTSCALER_RULES_RECEIVER_SETTINGS_H
#define ALERTSCALER_RULES_RECEIVER_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/model/matcher.h>

enum as_permission {
    AS_PERMISSION_NOTIFY, /* send notifications */
    AS_PERMISSION_READ,   /* the API, metrics, the status page */
    AS_PERMISSION_ADMIN,  /* the admin API: changes */
    AS_PERMISSION_COUNT
};
extern const char *const as_permission_words[]; /* "notify", ...; up to a NULL */

struct as_access_settings { /* what a credential may do */
    unsigned permissions;   /* bits 1 << enum as_permission */
    const char **rules; /* patterns of what it may trigger (model/scope.h); count 0: everything */
    size_t rule_count;
    const char **targets; /* as for rules */
    size_t target_count;
};

struct as_token_settings { /* a bearer token that is accepted */
    const char *name;      /* of the credential, in the action log */
    const char *file;      /* re-read when it changes */
    struct as_access_settings access;
};

struct as_user_settings { /* what a user of the web configuration may do */
    const char *name;
    struct as_access_settings access;
};

struct as_certificate_settings { /* a client's certificate, verified by TLS */
    const char *name;
    const char *subject; /* pattern of the certificate's name */
    struct as_access_settings access;
};

struct as_hmac_settings { /* a signature over the body, as Grafana sends it */
    const char *name, *secret_file;
    const char *header;
    const char *timestamp_header; /* NULL: none is signed */
    int64_t max_skew_us;
    struct as_access_settings access; /* at most `notify` */
};

struct as_review_settings { /* the user or group that the API server returns for a token */
    const char *name;
    const char *user, *group; /* exactly one is set */
    struct as_access_settings access;
};

struct as_token_review_settings {
    const char *cluster; /* NULL: no token reviews */
    const char **audiences;
    size_t audience_count;
    struct as_review_settings *allow;
    size_t allow_count;
};

struct as_receiver_settings {
    uint64_t max_body;
    uint64_t max_bodies; /* of all together */
    uint32_t max_connections;
    uint64_t max_incident_memory; /* bytes */
    uint64_t repeat_cache;        /* bytes */
    int64_t incident_expiry_us, stale_window_us;
    struct as_token_settings *tokens; /* count 0: everyone may send */
    size_t token_count;
    struct as_user_settings *users;
    size_t user_count;
    struct as_certificate_settings *certificates;
    size_t certificate_count;
    struct as_hmac_settings *hmac;
    size_t hmac_count;
    struct as_token_review_settings token_review;
    struct as_matcher *watchdog; /* count 0: none */
    size_t watchdog_count;
    int64_t watchdog_within_us;
};

#endif
