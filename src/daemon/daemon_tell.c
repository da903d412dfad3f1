/*
 * Who is told of what alertscaler does, and as whom.
 */
#include "daemon_private.h"

static void on_counted(void *context, const char *receiver, enum as_tell_count what, uint64_t count)
{
    as_metrics_on_told(((struct daemon *)context)->metrics, receiver, what, count);
}

struct as_tell_config daemon_tell_begin(struct daemon *daemon)
{
    const struct as_settings *settings = &daemon->config->settings;
    daemon->tell.former = daemon->tell.messenger;
    daemon->tell.messenger = daemon->options->adapters->new_messenger(daemon->outside, settings);
    return (struct as_tell_config){
        .receivers = settings->notify,
        .receiver_count = settings->notify_count,
        .messenger = daemon->tell.messenger,
        .instance = as_settings_get_instance(settings, daemon->tell.host),
        .external_url = daemon->external_url.base,
        .counted = on_counted,
        .context = daemon,
    };
}

void daemon_tell_end_former(struct daemon *daemon)
{
    if (daemon->tell.former)
        daemon->tell.former->close(daemon->tell.former);
    daemon->tell.former = NULL;
}

void daemon_tell_close(struct daemon *daemon)
{
    daemon_tell_end_former(daemon);
    daemon->tell.former = daemon->tell.messenger;
    daemon->tell.messenger = NULL;
    daemon_tell_end_former(daemon);
}
