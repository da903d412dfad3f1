/*
 * The configuration: a reload applies all of it or nothing.
 */
#include "daemon_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/daemon/writable.h>

#include "named_files.h"
#include "trim.h"
#include <alertscaler/auth/auth_review.h>

/* Errors go to the person at the console; warnings only to the log. */
static void log_diagnostics(struct as_diagnostics *diagnostics)
{
    as_diagnostics_sort(diagnostics);
    if (diagnostics->has_error) {
        as_diagnostics_print(diagnostics, stderr);
        return;
    }
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct as_diagnostic *item = &diagnostics->items[i];
        as_log(AS_LOG_WARN, "configuration", AS_F("file", item->file), AS_FI("line", item->line),
               AS_FI("column", item->column), AS_F("warning", item->message));
    }
}

static const struct as_diagnostic *find_error(const struct as_diagnostics *diagnostics)
{
    for (size_t i = 0; i < diagnostics->count; i++) {
        if (diagnostics->items[i].severity == AS_SEVERITY_ERROR)
            return &diagnostics->items[i];
    }
    return NULL;
}

static void set_error(struct as_error *error, const struct as_diagnostic *first, bool is_only)
{
    const char *more = is_only ? "" : " (and more, above)";
    if (first->line > 0)
        as_error_set(error, "%s:%u:%u: %s%s", first->file, first->line, first->column,
                     first->message, more);
    else
        as_error_set(error, "%s: %s%s", first->file, first->message, more);
}

int daemon_conclude_load(const struct daemon *daemon, const char *path,
                         struct as_diagnostics *diagnostics, bool is_repeat, int status,
                         struct as_error *error)
{
    if (diagnostics->count > 0 && !is_repeat)
        log_diagnostics(diagnostics);
    const struct as_diagnostic *first = find_error(diagnostics);
    if (status != 0 && first)
        set_error(error, first, diagnostics->count == 1);
    else if (status != 0)
        as_error_set_errno(error, status, "%s", path);
    if (status != 0)
        as_sandbox_explain(daemon->sandbox, first ? first->file : path, error);
    as_diagnostics_deinit(diagnostics);
    return status;
}

/* NULL with an error, after all problems were printed. */
static struct as_config *load_config(const struct daemon *daemon, bool is_repeat,
                                     struct as_error *error)
{
    const char *path = daemon->options->config_file;
    struct as_config *config = NULL;
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    const int status = as_config_load(path, &config, &diagnostics);
    return daemon_conclude_load(daemon, path, &diagnostics, is_repeat, status, error) == 0 ? config
                                                                                           : NULL;
}

static struct as_sandbox_config get_sandbox_config(const struct daemon *daemon,
                                                   const struct as_config *config,
                                                   const struct daemon_web_file *web)
{
    return (struct as_sandbox_config){
        .mode = daemon->options->sandbox,
        .config = config,
        .web_config_file = daemon->options->web_config_file,
        .web = daemon_web_get_settings(web),
        .adapters = daemon->options->adapters,
        .outside = daemon->outside,
    };
}

static struct as_digest hash_named_files(const struct daemon *daemon,
                                         const struct as_config *config,
                                         const struct daemon_web_file *web)
{
    const struct as_sandbox_config files = get_sandbox_config(daemon, config, web);
    return named_files_hash(&files);
}

int daemon_enter_sandbox(struct daemon *daemon, struct as_error *error)
{
    const struct as_sandbox_config config =
        get_sandbox_config(daemon, daemon->config, &daemon->web.file);
    return as_sandbox_enter(&config, &daemon->sandbox, error);
}

static bool needs_restart(const struct as_settings *a, const struct as_settings *b)
{
    return a->state.store != b->state.store || strcmp(a->state.path, b->state.path) != 0 ||
           !as_str_equal(a->state.namespace, b->state.namespace) ||
           strcmp(a->state.lease.name, b->state.lease.name) != 0 ||
           a->state.lease.duration_us != b->state.lease.duration_us ||
           a->state.lease.renew_deadline_us != b->state.lease.renew_deadline_us ||
           a->state.lease.retry_period_us != b->state.lease.retry_period_us ||
           strcmp(a->action_log.path, b->action_log.path) != 0 ||
           a->action_log.max_size != b->action_log.max_size ||
           a->action_log.keep != b->action_log.keep ||
           a->receiver.max_body != b->receiver.max_body ||
           a->receiver.max_bodies != b->receiver.max_bodies ||
           a->receiver.max_connections != b->receiver.max_connections;
}

/* `reviewer_out` NULL: no tokens are reviewed. */
static int make_reviewer(const struct daemon *daemon, const struct as_settings *settings,
                         struct as_reviewer **reviewer_out, struct as_error *error)
{
    const struct as_token_review_settings *review = &settings->receiver.token_review;
    *reviewer_out = NULL;
    if (!review->cluster)
        return 0;
    return as_reviewer_new(review, as_settings_find_cluster(settings, review->cluster),
                           daemon->options->adapters->get_env(daemon->outside), reviewer_out,
                           error);
}

/* Creates everything new before anything old is freed: a failure changes nothing. */
static int prepare_reload(struct daemon *daemon, const struct as_config_digests *expected,
                          bool is_repeat, struct as_config **config_out,
                          struct daemon_web_file *web_out, struct as_digest *files_out,
                          struct as_credentials **credentials_out,
                          struct as_reviewer **reviewer_out, struct as_target_port **targets_out,
                          struct as_error *error)
{
    AS_CLEANUP(as_config_free_p)
    struct as_config *config = load_config(daemon, is_repeat, error);
    AS_CLEANUP(as_credentials_free_p) struct as_credentials *credentials = NULL;
    AS_CLEANUP(as_reviewer_free_p) struct as_reviewer *reviewer = NULL;
    struct daemon_web_file web;
    if (!config)
        return -EINVAL;
    int status = daemon_web_load(daemon, is_repeat, &web, error);
    if (status != 0)
        return status;
    if (expected && (!daemon_watch_is_in_force(config, expected) ||
                     !as_file_stamp_is_same(&web.stamp, &daemon->watch.web))) {
        as_error_set(error, "the files changed while they were read");
        (void)daemon_web_free(web);
        return -EAGAIN;
    }
    const struct as_sandbox_config sandbox = get_sandbox_config(daemon, config, &web);
    const struct as_digest files =
        hash_named_files(daemon, config, &web); /* before they are read */
    status = as_sandbox_check(daemon->sandbox, &sandbox, error);
    if (status == 0)
        status = as_credentials_new(&config->settings.receiver, daemon_web_get_settings(&web),
                                    &credentials, error);
    if (status == 0)
        status = make_reviewer(daemon, &config->settings, &reviewer, error);
    if (status == 0)
        status = daemon->options->adapters->new_targets(daemon->outside, &config->settings,
                                                        targets_out, error);
    if (status != 0) {
        (void)daemon_web_free(web);
        return status;
    }
    *config_out = config;
    *web_out = web;
    *files_out = files;
    *credentials_out = credentials;
    *reviewer_out = reviewer;
    reviewer = NULL;
    config = NULL;
    credentials = NULL;
    return 0;
}

static void reload_shell(struct daemon *daemon, struct as_config *old,
                         struct as_target_port *targets, const char *credential)
{
    const struct as_config *config = daemon->config;
    daemon_retire_ports(daemon, old);
    daemon->targets = targets;
    daemon->source = daemon_new_source(daemon, &config->settings);
    const struct as_engine_config engine = daemon_get_engine_config(daemon);
    as_receiver_set_limits(daemon->receiver, config->settings.receiver.repeat_cache,
                           config->settings.receiver.max_connections);
    const struct as_tell_config tell = daemon_tell_begin(daemon);
    as_shell_reload(daemon->shell, config->ruleset, &engine, config->digest, targets,
                    daemon->source, &tell, credential);
    daemon_tell_end_former(daemon);
}

/* A follower has no ports; these were created only to check that it works. */
static void forget_ports(const struct daemon *daemon, struct as_target_port *targets,
                         struct as_config *old)
{
    targets->close(targets);
    daemon_forget_config(daemon, old);
}

/* Rule files are found anew by their patterns. */
bool daemon_is_in_force(const struct daemon *daemon)
{
    const struct as_config *config = daemon->config;
    struct as_config_digests now;
    as_config_hash_files(config, &now);
    const struct as_digest files = hash_named_files(daemon, config, &daemon->web.file);
    return daemon_watch_is_in_force(config, &now) &&
           as_digest_compare(&files, &daemon->named_files) == 0;
}

int daemon_reload_again(struct daemon *daemon, const char *credential,
                        const struct as_config_digests *expected, const char *repeat_of,
                        struct as_error *error)
{
    struct as_config *config = NULL;
    struct as_credentials *credentials = NULL;
    struct as_target_port *targets = NULL;
    struct as_reviewer *reviewer = NULL;
    struct daemon_web_file web = {0};
    struct as_digest files;
    if (daemon->failed || daemon->stopping) {
        as_error_set(error, "not now: %s",
                     daemon->stopping ? "stopping" : "the state cannot be written");
        return -EAGAIN;
    }
    if (daemon->shell && !daemon_make_retired_room(daemon)) {
        as_error_set(error, "not now: earlier configurations still wait for answers");
        return -EAGAIN;
    }
    const as_wall_time now = as_system_clock.get_wall(&as_system_clock);
    const int status = prepare_reload(daemon, expected, repeat_of, &config, &web, &files,
                                      &credentials, &reviewer, &targets, error);
    if ((status == -EAGAIN && expected) || (status != 0 && as_str_equal(error->text, repeat_of)))
        return status;
    as_metrics_on_reload(daemon->metrics, status == 0, now);
    if (status != 0) {
        as_log(AS_LOG_ERROR, "reload failed, going on with the old configuration",
               AS_F("error", error->text));
        if (daemon->shell)
            as_shell_record_failed_reload(daemon->shell, credential, error->text);
        return status;
    }
    if (needs_restart(&daemon->config->settings, &config->settings))
        as_log(AS_LOG_WARN,
               "changes of state, action_log, receiver.max_body, receiver.max_bodies and "
               "receiver.max_connections "
               "take effect at the next start");
    struct as_config *old = daemon->config;
    daemon->config = config;
    daemon->named_files = files;
    daemon_web_use(daemon, web);
    struct as_credentials *old_credentials = as_auth_swap_credentials(daemon->auth, credentials);
    as_reviewer_free(as_auth_swap_reviewer(daemon->auth, reviewer));
    if (daemon->shell)
        reload_shell(daemon, old, targets, credential);
    else
        forget_ports(daemon, targets, old);
    as_credentials_free(old_credentials); /* the engine used their scopes */
    as_trim_memory();
    as_log(AS_LOG_INFO, "configuration loaded", AS_F("digest", config->digest),
           AS_FI("targets", config->ruleset->target_count),
           AS_FI("rules", config->ruleset->rule_count));
    return 0;
}

int daemon_check_writable(const char *key, const char *path, struct as_error *error)
{
    const int status = as_writable_check(path, strcmp(key, "state") == 0, error);
    if (status == 0)
        return 0;
    AS_CLEANUP(as_free_p) char *why = as_xstrdup(error->text);
    as_error_set(error, "%s, or name another place in the configuration: %s: {path: ...}", why,
                 key);
    return status;
}

/* Before anything is opened: both files may have to be created. */
static int check_places(const struct as_settings *settings, struct as_error *error)
{
    const bool has_file = settings->state.store == AS_STORE_SQLITE;
    const int status = has_file ? daemon_check_writable("state", settings->state.path, error) : 0;
    return status != 0 ? status
                       : daemon_check_writable("action_log", settings->action_log.path, error);
}

int daemon_load_config(struct daemon *daemon, struct as_error *error)
{
    daemon->config = load_config(daemon, false, error);
    if (!daemon->config)
        return -EINVAL;
    int status = check_places(&daemon->config->settings, error);
    if (status != 0)
        return status;
    as_metrics_on_reload(daemon->metrics, true, as_system_clock.get_wall(&as_system_clock));
    struct as_credentials *credentials;
    status = daemon_web_load(daemon, false, &daemon->web.file, error);
    if (status != 0)
        return status;
    const struct as_web_settings *web = daemon_web_get_settings(&daemon->web.file);
    daemon->named_files = hash_named_files(daemon, daemon->config, &daemon->web.file);
    status = as_credentials_new(&daemon->config->settings.receiver, web, &credentials, error);
    if (status != 0)
        return status;
    daemon_web_warn_open(daemon);
    as_credentials_free(as_auth_swap_credentials(daemon->auth, credentials));
    struct as_reviewer *reviewer;
    status = make_reviewer(daemon, &daemon->config->settings, &reviewer, error);
    if (status == 0)
        as_reviewer_free(as_auth_swap_reviewer(daemon->auth, reviewer));
    return status;
}
