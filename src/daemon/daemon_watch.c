/*
 * --config.auto-reload-interval: a reload when the content of the configuration or of a rule file
 * has changed, as a ConfigMap's does.
 *
 * Another process may be writing a file. So a change is loaded only when two looks, at least a
 * second apart, found the same stamps and the same content, and if the load finds that content too.
 * The file of --web.config.file is loaded with the configuration. So its stamp must be the same
 * too.
 *
 * Files that cannot be used are tried again at each check, since the cause may end without a change
 * of them (a token that comes later). Their error is logged once.
 */
#include "daemon_private.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/log.h>

#define SETTLE_US (1 * AS_US_PER_S)
#define REPORT_LOOKS                                                                               \
    10 /* looks at changing files until the log has a line, and to the next one                    \
        */

static bool is_same(const struct as_config_digests *a, const struct as_config_digests *b)
{
    return strcmp(a->config, b->config) == 0 && strcmp(a->rules, b->rules) == 0;
}

bool daemon_watch_is_in_force(const struct as_config *config,
                              const struct as_config_digests *digests)
{
    return strcmp(digests->config, config->digest) == 0 &&
           strcmp(digests->rules, config->ruleset->digest) == 0;
}

bool daemon_watch_settles(unsigned *changes_io, bool is_same, const char *file)
{
    if (is_same)
        *changes_io = 0;
    else if (++*changes_io % REPORT_LOOKS == 0)
        as_log(AS_LOG_WARN,
               "a file of the configuration keeps changing: it is loaded when it has not changed "
               "for a second",
               AS_F("file", file));
    return is_same;
}

static void load(struct daemon *daemon, const struct as_config_digests *now)
{
    struct daemon_watch *watch = &daemon->watch;
    const char *repeat_of = NULL;
    if (is_same(now, &watch->tried))
        repeat_of = watch->error.text;
    else
        as_log(AS_LOG_INFO, "the configuration's files have changed");
    watch->tried = *now;
    struct as_error error = AS_ERROR_INIT;
    const int status = daemon_reload_again(daemon, "", now, repeat_of, &error);
    if (status == -EAGAIN)
        return; /* the next look finds the change */
    if (status == 0)
        error = (struct as_error)AS_ERROR_INIT;
    watch->error = error; /* it was logged */
}

void daemon_on_watch_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct daemon_watch *watch = &daemon->watch;
    struct as_config_stamps stamps;
    struct as_config_digests now;
    daemon_arm(watch->timer, daemon->options->auto_reload_interval_us);
    if (daemon->failed || daemon->stopping)
        return;
    as_config_stamp_files(daemon->config, &stamps); /* before the files are read */
    as_config_hash_files(daemon->config, &now);
    const char *web_file = daemon->options->web_config_file;
    struct as_file_stamp web = {0};
    const bool is_web_there = web_file && as_file_stamp_take(web_file, &web) == 0;
    const bool is_web_same = !is_web_there || as_file_stamp_is_same(&web, &watch->web);
    const bool are_same =
        strcmp(stamps.text, watch->stamps.text) == 0 && is_same(&now, &watch->found) && is_web_same;
    watch->stamps = stamps;
    watch->web = web;
    watch->found = now;
    if (daemon_watch_is_in_force(daemon->config, &now)) {
        watch->error = (struct as_error)AS_ERROR_INIT;
        watch->changes = 0;
    } else if (daemon_watch_settles(&watch->changes, are_same,
                                    is_web_same ? stamps.newest : web_file)) {
        load(daemon, &now);
    } else {
        daemon_arm(watch->timer, SETTLE_US);
    }
}

void daemon_watch_files(struct daemon *daemon)
{
    if (daemon->options->auto_reload_interval_us > 0)
        daemon_arm(daemon->watch.timer, daemon->options->auto_reload_interval_us);
}
