/*
 * Who is told of what alertscaler does, and as whom.
 */
#include "daemon_private.h"

#include <stdio.h>
#include <unistd.h>

/* The Lease's name: all replicas are one alertscaler. Else the host's. */
static const char *find_instance(struct daemon *daemon)
{
    const struct as_settings *settings = &daemon->config->settings;
    if (settings->instance)
        return settings->instance;
    if (settings->state.store == AS_STORE_KUBERNETES)
        return settings->state.lease.name;
    if (gethostname(daemon->tell.host, sizeof(daemon->tell.host) - 1) != 0)
        (void)snprintf(daemon->tell.host, sizeof(daemon->tell.host), "localhost");
    return daemon->tell.host;
}

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
        .instance = find_instance(daemon),
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
