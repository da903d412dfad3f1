/*
 * Credentials of a cloud, and where they are found: a chain of sources in the order that the
 * vendor's own tools have, each a talk (provider/talk.h) that ends with credentials, with "not
 * here" (the next one is asked), or with an error (the chain ends: what is set up is not passed
 * over).
 */
#ifndef ALERTSCALER_PROVIDER_CREDENTIALS_H
#define ALERTSCALER_PROVIDER_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/config/settings.h>
#include <alertscaler/provider/talk.h>

struct as_credentials {    /* owned texts, wiped when freed; NULL: it has none */
    char *key_id, *secret; /* of signatures */
    char *token;           /* of a session; or the bearer token */
    char *region;          /* where the source knows one */
    char *project;         /* likewise: the account, project or subscription */
    char *endpoint;        /* likewise: the service's address, out of a catalogue */
    as_maybe_time expires;
};

void as_credentials_deinit(struct as_credentials *credentials);

struct as_credentials_talk {
    struct as_talk talk; /* the first member: a talk is cast to it */
    const struct as_provider_settings *account;
    bool is_not_here; /* ended without: nothing of this kind is set up */
    struct as_credentials found;
    void *state; /* the source's own; memory of the talk */
};

struct as_credentials_source {
    const char *name; /* as in messages: "environment", "instance metadata" */
    void (*begin)(struct as_credentials_talk *talk);
};

void as_credentials_not_here(struct as_credentials_talk *talk);

/* What the file that was asked for (as_talk_read) holds, without white space around it: a token, a
 * secret. NULL after failing the talk. */
const char *as_credentials_take_file(struct as_talk *talk) AS_MUST_USE;

/* Whole sources of a bearer token: the file that the account's option `token_file` names, and the
 * first of these environment variables (a NULL at the end) that is set. */
void as_credentials_begin_token_file(struct as_credentials_talk *talk);
void as_credentials_take_variable(struct as_credentials_talk *talk, const char *const *names);

/* The last source of a chain is a service of the machine's, and nobody was reached there: none is
 * set up, or it is not there yet. */
void as_credentials_fail_unreached(struct as_credentials_talk *talk);

/* Whether a region can be part of a host's name: small letters, digits, hyphens. And the same,
 * false after failing the talk. */
bool as_region_is_good(const char *region) AS_MUST_USE;
bool as_region_check(struct as_talk *talk, const char *region) AS_MUST_USE;

/* An option of the account's settings; NULL where it is not given. */
const char *as_account_get(const struct as_provider_settings *account, const char *key);

/* The option `key` without slashes at its end, as memory of the talk; else `fallback`. */
const char *as_account_get_endpoint(struct as_talk *talk,
                                    const struct as_provider_settings *account, const char *key,
                                    const char *fallback) AS_MUST_USE;

#endif
