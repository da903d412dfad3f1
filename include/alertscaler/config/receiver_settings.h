/*
 * `receiver` of alertscaler.yaml: what is accepted, and from whom. As in settings.h.
 */
#ifndef ALERTSCALER_CONFIG_RECEIVER_SETTINGS_H
#define ALERTSCALER_CONFIG_RECEIVER_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/core/matcher.h>

enum as_permission {
    AS_PERMISSION_NOTIFY, /* send notifications */
    AS_PERMISSION_READ,   /* the API, metrics, the status page */
    AS_PERMISSION_ADMIN,  /* change something: the admin API */
    AS_PERMISSION_COUNT
};
extern const char *const as_permission_words[]; /* "notify", ...; up to a NULL */

struct as_access_settings { /* what a credential may do */
    unsigned permissions;   /* bits 1 << enum as_permission */
    const char **rules;     /* patterns of what it may trigger (core/scope.h); none: everything */
    size_t rule_count;
    const char **targets; /* likewise */
    size_t target_count;
};

struct as_token_settings { /* a bearer token that is accepted */
    const char *name;      /* of the credential, in the action log */
    const char *file;      /* re-read when it changes */
    struct as_access_settings access;
};

struct as_receiver_settings {
    uint64_t max_body;
    uint64_t max_bodies; /* all together */
    uint32_t max_connections;
    int64_t incident_expiry_us, stale_window_us;
    struct as_token_settings *tokens; /* none: everyone may send */
    size_t token_count;
    struct as_matcher *watchdog; /* count 0: none */
    size_t watchdog_count;
    int64_t watchdog_within_us;
};

#endif
