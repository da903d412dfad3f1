/*
 * Size and release of a notification; the payload's decoder makes it.
 */
#include <alertscaler/decide/notification.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

static size_t measure_text(const char *text)
{
    return text ? AS_ALLOC_EXTRA + strlen(text) + 1 : 0;
}

size_t as_notification_measure(const struct as_notification *notification)
{
    size_t bytes = AS_ALLOC_EXTRA + sizeof(*notification) + AS_ALLOC_EXTRA +
                   notification->alert_count * sizeof(*notification->alerts) +
                   measure_text(notification->receiver) + measure_text(notification->group_key) +
                   measure_text(notification->reason);
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct as_alert *alert = &notification->alerts[i];
        bytes += measure_text(alert->problem) + as_labels_measure(alert->labels) +
                 as_labels_measure(alert->annotations);
    }
    return bytes;
}

struct as_notification *as_notification_free(struct as_notification *notification)
{
    if (!notification)
        return NULL;
    for (size_t i = 0; i < notification->alert_count; i++) {
        free(notification->alerts[i].problem);
        as_labels_free(notification->alerts[i].labels);
        as_labels_free(notification->alerts[i].annotations);
    }
    free(notification->alerts);
    free(notification->receiver);
    free(notification->group_key);
    free(notification->reason);
    free(notification->remote);
    free(notification->credential);
    free(notification->traceparent);
    free(notification);
    return NULL;
}
