/*
 * The end of a notification's life; it is made by the payload's decoder.
 */
#include <alertscaler/core/notification.h>

#include <stdlib.h>

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
