/*
 * `notify` in alertscaler.yaml: receivers of what alertscaler tells; as in settings.h.
 */
#ifndef ALERTSCALER_RULES_NOTIFY_SETTINGS_H
#define ALERTSCALER_RULES_NOTIFY_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/rules/http_settings.h>

struct as_settings;

struct as_notify_settings { /* a receiver of what alertscaler tells */
    const char *name;
    bool is_webhook; /* CloudEvents; else Alertmanagers, each of which is told */
    const char **urls;
    size_t url_count;
    const char *url; /* the webhook's, also in `urls`; NULL: Alertmanagers */
    struct as_http_settings http;
    unsigned on; /* bits of enum as_notice_kind */
    int64_t max_age_us;
};

/* What alertscaler calls itself: `instance`; else the Lease's name, as all replicas are one; else
 * this host's name, in the caller's memory. */
#define AS_INSTANCE_NAME_SIZE 256
const char *as_settings_get_instance(const struct as_settings *settings,
                                     char host_out[AS_INSTANCE_NAME_SIZE]);

const struct as_notify_settings *as_settings_find_notify(const struct as_settings *settings,
                                                         const char *name);

#endif
