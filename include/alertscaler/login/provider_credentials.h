/*
 * Credentials of a cloud, and a chain of sources for them, in the order of the vendor's own tools.
 * Each source is an op (login/cloud_op.h). It ends with credentials; with "not here", and the next
 * source is asked; or with an error, which ends the chain: a source that is set up but does not
 * work must not be skipped.
 */
#ifndef ALERTSCALER_LOGIN_PROVIDER_CREDENTIALS_H
#define ALERTSCALER_LOGIN_PROVIDER_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/rules/settings.h>

struct as_provider_credentials { /* owned texts, wiped when freed; NULL: not known */
    char *key_id, *secret;       /* for signatures */
    char *token;                 /* a session's token, or the bearer token */
    char *region;                /* if the source knows it */
    char *project;               /* if known: account, project or subscription */
    char *endpoint;              /* if known: the service's address, from a catalogue */
    as_maybe_time expires;
};

void as_credentials_deinit(struct as_provider_credentials *credentials);

struct as_oauth2_ask { /* a token server, for all searches */
    const struct as_oauth2_settings *settings;
    bool sends_form; /* it accepts the secret in the form only; see credentials_oauth2.c */
};

struct as_credentials_op {
    struct as_cloud_op op; /* the first member: an op is cast to it */
    const struct as_provider_settings *account;
    /* What a token is for: Google's scope, Azure's audience without "/.default". NULL: the API of
     * the cloud's machines. */
    const char *scope;
    struct as_oauth2_ask *oauth2; /* for oauth2_credentials; NULL */
    bool is_not_here;             /* ended without credentials: this source is not set up */
    struct as_provider_credentials found;
    void *state; /* private to the source; memory of the op */
};

/* The search that the op is of. */
static inline struct as_credentials_op *as_credentials_get(struct as_cloud_op *op)
{
    return (struct as_credentials_op *)op;
}

/* What a file refers to: another file to read, or a program to run. */
typedef void as_provider_names_fn(void *context, const char *path, bool is_program);

struct as_credentials_source {
    const char *name; /* as in messages: "environment", "instance metadata" */
    void (*begin)(struct as_credentials_op *op);
};

/* Takes copies of what signs requests, in place of what was found before. NULL and "" count as not
 * known. */
void as_credentials_take_keys(struct as_credentials_op *op, const char *key_id, const char *secret,
                              const char *token, as_maybe_time expires);

void as_credentials_not_here(struct as_credentials_op *op);

/* The content of the file that was asked for (as_cloud_op_read), without white space around it: a
 * token or a secret. NULL after failing the op. */
const char *as_credentials_take_file(struct as_cloud_op *op) AS_MUST_USE;

/* Complete sources of a bearer token: the file in the account's option `token_file`; or the first
 * of these environment variables (NULL at the end) that is set. */
void as_credentials_begin_token_file(struct as_credentials_op *op);
void as_credentials_take_variable(struct as_credentials_op *op, const char *const *names);

/* Fails the op of a chain's last source, a service of the machine that could not be reached: it
 * does not exist, or is not there yet. */
void as_credentials_fail_unreached(struct as_credentials_op *op);

/* The first line of a metadata service's answer, as memory of the op. NULL if it has characters
 * that no name there has. */
const char *as_credentials_take_word(struct as_cloud_op *op) AS_MUST_USE;

/* as_region_is_good: whether a region can be part of a host name (lower-case letters, digits,
 * hyphens). as_region_check: the same, false after failing the op. */
bool as_region_is_good(const char *region) AS_MUST_USE;
bool as_region_check(struct as_cloud_op *op, const char *region) AS_MUST_USE;

/* An environment variable; NULL if it is not set or empty. */
const char *as_variable_find(const struct as_cloud_op *op, const char *name) AS_MUST_USE;
/* Whether the variable is "true", ignoring case. */
bool as_variable_is_on(const struct as_cloud_op *op, const char *variable) AS_MUST_USE;

/* An option of the account's settings; NULL if it is not given. */
const char *as_account_get(const struct as_provider_settings *account, const char *key);

/* The option `key` without slashes at its end, as memory of the op; else `fallback`. */
const char *as_account_get_endpoint(struct as_cloud_op *op,
                                    const struct as_provider_settings *account, const char *key,
                                    const char *fallback) AS_MUST_USE;

#endif
