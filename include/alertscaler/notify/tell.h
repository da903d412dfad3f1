/*
 * What a shell is told of `notify`: the receivers, and how they are reached. docs/notify.md says
 * what is promised.
 */
#ifndef ALERTSCALER_NOTIFY_TELL_H
#define ALERTSCALER_NOTIFY_TELL_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/port/messenger.h>
#include <alertscaler/rules/settings.h>

#define AS_TELL_ENTRIES_MAX 10000 /* that wait, for all receivers together */

enum as_tell_count { AS_TELL_SENT, AS_TELL_FAILED, AS_TELL_DROPPED, AS_TELL_COUNT_COUNT };

struct as_tell_config { /* borrowed until the next one, or until the shell is freed */
    const struct as_notify_settings *receivers;
    size_t receiver_count;
    struct as_messenger *messenger; /* NULL: nothing is sent */
    const char *instance, *external_url;
    /* For metrics: so many notices more. May be NULL. */
    void (*counted)(void *context, const char *receiver, enum as_tell_count what, uint64_t count);
    void *context;
};

struct as_tell_view { /* of a receiver */
    const char *receiver;
    size_t entries;    /* that wait, or are being sent */
    int64_t oldest_us; /* age of the oldest; 0: none */
};
typedef void as_tell_visit_fn(void *context, const struct as_tell_view *view);

#endif
