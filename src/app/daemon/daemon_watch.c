/*
 * --config.auto-reload-interval: a reload when the content of the configuration or of a rule file
 * has changed, as a ConfigMap's does. Files that cannot be used are tried again at each check,
 * since the cause may end without a change of them (a token that comes later), and told once.
 */
#include "daemon_private.h"

#include <string.h>

#include <alertscaler/base/log.h>

static bool is_same(const struct as_config_digests *a, const struct as_config_digests *b)
{
    return strcmp(a->config, b->config) == 0 && strcmp(a->rules, b->rules) == 0;
}

static bool are_in_force(const struct as_config *config, const struct as_config_digests *digests)
{
    return strcmp(digests->config, config->digest) == 0 &&
           strcmp(digests->rules, config->ruleset->digest) == 0;
}

void daemon_on_watch_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct daemon_watch *watch = &daemon->watch;
    struct as_config_digests now;
    const char *repeat_of = NULL;
    daemon_arm(watch->timer, daemon->options->auto_reload_interval_us);
    if (daemon->failed || daemon->stopping)
        return;
    as_config_hash_files(daemon->config, &now);
    if (are_in_force(daemon->config, &now)) {
        watch->error = (struct as_error)AS_ERROR_INIT;
        return;
    }
    if (is_same(&now, &watch->tried))
        repeat_of = watch->error.text;
    else
        as_log(AS_LOG_INFO, "the configuration's files have changed");
    watch->tried = now;
    struct as_error error = AS_ERROR_INIT;
    if (daemon_reload_again(daemon, "", repeat_of, &error) == 0)
        error = (struct as_error)AS_ERROR_INIT;
    watch->error = error; /* it was logged */
}

void daemon_watch_files(struct daemon *daemon)
{
    if (daemon->options->auto_reload_interval_us > 0)
        daemon_arm(daemon->watch.timer, daemon->options->auto_reload_interval_us);
}
