/*
 * The configuration of the daemon: the first load, and reloads as a whole: by HTTP, by a signal,
 * and when files change, also --web.config.file. A reload that fails changes nothing.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/auth/auth_review.h>
#include <alertscaler/auth/reply.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/daemon/daemon_process.h>
#include <alertscaler/daemon/web_tls.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/http/secret_file.h>

#include "daemon_private.h"

/*
 * The file of --web.config.file: loaded with the configuration, and again when two checks, a
 * second apart, find the same change. Everything new is created before anything old is freed. While
 * the changed file, or a file it names, is unusable, the old content stays in force. That is logged
 * once and tried again at each check, since the cause may end without a change of the file.
 */

#define LOOK_EVERY_US (1 * AS_US_PER_S)

struct daemon_web_file daemon_web_free(struct daemon_web_file web)
{
    as_tls_server_free(web.tls);
    as_web_config_free(web.config);
    return (struct daemon_web_file){0};
}

static const struct as_web_settings *daemon_web_get_settings(const struct daemon_web_file *web)
{
    static const struct as_web_settings none = {0};
    return web->config ? as_web_config_get(web->config) : &none;
}

/* A half of the file may be valid, with fewer users, or with none. */
static int check_unchanged(const char *path, const struct as_file_stamp *before,
                           struct as_diagnostics *diagnostics)
{
    struct as_file_stamp now;
    if (as_file_stamp_take(path, &now) == 0 && as_file_stamp_is_same(before, &now))
        return 0;
    as_diagnostics_add(
        diagnostics,
        &(struct as_diagnostic){.file = path, .message = "the file changed while it was read"});
    return -EAGAIN;
}

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

static const struct as_diagnostic *config_find_error(const struct as_diagnostics *diagnostics)
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

/* 0 or `r`, with an error. Prints all problems first, unless they only repeat; frees the
 * diagnostics. */
static int daemon_conclude_load(const struct daemon *daemon, const char *path,
                                struct as_diagnostics *diagnostics, bool is_repeat, int status,
                                struct as_error *error)
{
    if (diagnostics->count > 0 && !is_repeat)
        log_diagnostics(diagnostics);
    const struct as_diagnostic *first = config_find_error(diagnostics);
    if (status != 0 && first)
        set_error(error, first, diagnostics->count == 1);
    else if (status != 0)
        as_error_set_errno(error, status, "%s", path);
    if (status != 0)
        as_sandbox_explain(daemon->sandbox, first ? first->file : path, error);
    as_diagnostics_deinit(diagnostics);
    return status;
}

/* `is_repeat`: this file was tried before, and its problems printed. */
static int daemon_web_load(const struct daemon *daemon, bool is_repeat,
                           struct daemon_web_file *web_out, struct as_error *error)
{
    const char *path = daemon->options->web_config_file;
    struct daemon_web_file web = {0};
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    if (!path) {
        *web_out = web;
        return 0;
    }
    int status = as_file_stamp_take(path, &web.stamp); /* before reading: see its header */
    if (status == 0)
        status = as_web_config_load(path, &web.config, &diagnostics);
    if (status == 0)
        status = check_unchanged(path, &web.stamp, &diagnostics);
    status = daemon_conclude_load(daemon, path, &diagnostics, is_repeat, status, error);
    if (status == 0)
        status = as_web_tls_new(&daemon_web_get_settings(&web)->tls, &web.tls, error);
    if (status != 0) {
        (void)daemon_web_free(web);
        return status;
    }
    *web_out = web;
    return 0;
}

/* The server sends nosniff itself. */
static char *config_make_headers(const struct as_web_settings *settings)
{
    struct as_buf text = AS_BUF_INIT(AS_WEB_HEADERS_MAX + 1);
    for (size_t i = 0; i < settings->header_count; i++) {
        const struct as_web_header *header = &settings->headers[i];
        if (strcmp(header->name, "X-Content-Type-Options") == 0)
            continue;
        as_buf_append_str(&text, header->name);
        as_buf_append_str(&text, ": ");
        as_buf_append_str(&text, header->value);
        as_buf_append_str(&text, "\r\n");
    }
    as_buf_append_char(&text, '\0');
    assert(as_buf_check(&text) == 0); /* checked when it was loaded */
    char *headers = text.size > 1 ? as_buf_take(&text, NULL) : NULL;
    as_buf_deinit(&text);
    return headers;
}

char *daemon_web_make_headers(const struct daemon *daemon)
{
    return config_make_headers(daemon_web_get_settings(&daemon->web.file));
}

static bool has_other_headers(const struct daemon_web_file *a, const struct daemon_web_file *b)
{
    char *left = config_make_headers(daemon_web_get_settings(a));
    char *right = config_make_headers(daemon_web_get_settings(b));
    const bool is_other = left && right ? strcmp(left, right) != 0 : left != right;
    free(left);
    free(right);
    return is_other;
}

/* if everyone may send and read */
static void daemon_web_warn_open(const struct daemon *daemon)
{
    if (as_web_is_open(daemon_web_get_settings(&daemon->web.file),
                       &daemon->config->settings.receiver))
        as_log(AS_LOG_WARN, "no credentials are configured (receiver.tokens, or others): everyone "
                            "who can connect may send alerts and read");
}

/* takes it over */
static void daemon_web_use(struct daemon *daemon, struct daemon_web_file web)
{
    if (has_other_headers(&daemon->web.file, &web))
        as_log(AS_LOG_WARN, "changes of http_server_config.headers take effect at the next start");
    if (daemon->server)
        as_http_server_set_tls(daemon->server, web.tls);
    struct daemon_web_file old = daemon->web.file;
    daemon->web.file = web;
    daemon->web.error = (struct as_error)AS_ERROR_INIT;
    (void)daemon_web_free(old);
    daemon_web_warn_open(daemon);
}

/* A key of a list of `receiver` that names a file. */
struct named_secret {
    const char *list, *key;
    size_t index;
};

static bool config_is_readable(const char *path)
{
    struct as_secret_file file;
    const char *text;
    as_secret_file_init(&file, path);
    const int status = as_secret_file_get(&file, (as_mono_time){0}, 0, &text, NULL);
    as_secret_file_deinit(&file);
    return status == 0;
}

/* Finds the first file of the credentials that is not usable. False: all are usable. */
static bool config_find_unreadable(const struct as_receiver_settings *settings,
                                   struct named_secret *found_out)
{
    for (size_t i = 0; i < settings->token_count; i++) {
        if (config_is_readable(settings->tokens[i].file))
            continue;
        *found_out = (struct named_secret){"tokens", "file", i};
        return true;
    }
    for (size_t i = 0; i < settings->hmac_count; i++) {
        if (config_is_readable(settings->hmac[i].secret_file))
            continue;
        *found_out = (struct named_secret){"hmac", "secret_file", i};
        return true;
    }
    return false;
}

/* The settings have no places: the file is parsed again. 0: the line is not known. */
static uint32_t config_find_line(const char *path, const struct named_secret *secret)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    uint32_t line = 0;
    if (as_yaml_load(path, &diagnostics, &tree) == AS_YAML_OK) {
        const struct as_yaml_node *list =
            as_yaml_find(as_yaml_find(as_yaml_get_root(tree), "receiver"), secret->list);
        const struct as_yaml_node *file =
            list && list->kind == AS_YAML_LIST && secret->index < list->count
                ? as_yaml_find(list->items[secret->index], secret->key)
                : NULL;
        line = file ? file->place.line : 0;
    }
    as_diagnostics_deinit(&diagnostics);
    return line;
}

/* The error says where the configuration names the file that is missing. */
static int config_make_credentials(const struct as_config *config,
                                   const struct as_web_settings *web,
                                   struct as_credentials **credentials_out, struct as_error *error)
{
    const struct as_receiver_settings *receiver = &config->settings.receiver;
    struct named_secret secret;
    const int status = as_credentials_new(receiver, web, credentials_out, error);
    if (status == 0 || !config_find_unreadable(receiver, &secret))
        return status;
    as_error_wrap(error, "%s:%u: receiver.%s[%zu].%s", config->path,
                  config_find_line(config->path, &secret), secret.list, secret.index, secret.key);
    return status;
}

/* Its users get their permissions from the present configuration. */
static int config_reload(struct daemon *daemon, bool is_repeat, struct as_error *error)
{
    struct daemon_web_file web;
    struct as_credentials *credentials;
    int status = daemon_web_load(daemon, is_repeat, &web, error);
    if (status != 0)
        return status;
    status =
        config_make_credentials(daemon->config, daemon_web_get_settings(&web), &credentials, error);
    if (status != 0) {
        (void)daemon_web_free(web);
        return status;
    }
    daemon_web_use(daemon, web);
    struct as_credentials *old = as_auth_swap_credentials(daemon->auth, credentials);
    if (daemon->shell && !daemon->failed) {
        const struct as_engine_config engine = daemon_get_engine_config(daemon);
        as_shell_reload(daemon->shell, daemon_get_rules(daemon), &engine, daemon->config->digest,
                        daemon->targets, daemon->source, NULL, "");
    }
    as_credentials_free(old);
    return 0;
}

#define REPORT_LOOKS                                                                               \
    10 /* checks of changing files until the log has a line, and to the next one                   \
        */

/* Whether the checks found the same: else another process may be writing the file. A file that
 * never settles is logged. */
static bool daemon_watch_settles(unsigned *changes_io, bool is_same, const char *file)
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

void daemon_on_web_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct as_error error = AS_ERROR_INIT;
    daemon_arm(daemon->web.timer, LOOK_EVERY_US);
    if (daemon->stopping)
        return;
    const char *path = daemon->options->web_config_file;
    struct as_file_stamp now = {0};
    const bool is_there = as_file_stamp_take(path, &now) == 0;
    const bool is_same = as_file_stamp_is_same(&now, &daemon->web.seen);
    daemon->web.seen = now;
    if (is_there && as_file_stamp_is_same(&now, &daemon->web.file.stamp)) {
        daemon->web.changes = 0;
        return; /* already in force */
    }
    if (!daemon_watch_settles(&daemon->web.changes, is_same, path))
        return;
    const bool is_repeat =
        daemon->web.error.text[0] && as_file_stamp_is_same(&now, &daemon->web.tried);
    daemon->web.tried = now;
    const int status = config_reload(daemon, is_repeat, &error);
    if (status != 0 && strcmp(error.text, daemon->web.error.text) == 0)
        return; /* already logged */
    as_metrics_on_reload(daemon->metrics, status == 0, as_system_clock.get_wall(&as_system_clock));
    daemon->web.error = error;
    if (status != 0)
        as_log(AS_LOG_ERROR,
               "the changed web configuration cannot be used, going on with the old one",
               AS_F("error", error.text));
    else
        as_log(AS_LOG_INFO, "web configuration loaded");
}

void daemon_web_watch(struct daemon *daemon)
{
    if (!daemon->options->web_config_file)
        return;
    daemon_arm(daemon->web.timer, LOOK_EVERY_US);
}

#define SETTLE_US (1 * AS_US_PER_S)

static bool config_is_same(const struct as_config_digests *a, const struct as_config_digests *b)
{
    return strcmp(a->config, b->config) == 0 && strcmp(a->rules, b->rules) == 0;
}

static bool daemon_watch_is_in_force(const struct as_config *config,
                                     const struct as_config_digests *digests)
{
    return strcmp(digests->config, config->digest) == 0 &&
           strcmp(digests->rules, config->ruleset->digest) == 0;
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

struct as_config *daemon_preview_config(void *context, struct as_error *error)
{
    const struct daemon *daemon = context;
    return load_config(daemon, true, error);
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

/*
 * Whether the loaded files have the content of the last check. That check found rule files by the
 * patterns in force. If the configuration has other patterns now, the digests of the rules differ:
 * then two attempts in turn must load the same content.
 */
static bool watch_accepts(struct daemon_watch *watch, const struct as_config *config,
                          const struct as_config_digests *expected)
{
    struct as_config_digests loaded;
    if (daemon_watch_is_in_force(config, expected))
        return true;
    (void)snprintf(loaded.config, sizeof(loaded.config), "%s", config->digest);
    (void)snprintf(loaded.rules, sizeof(loaded.rules), "%s", config->ruleset->digest);
    const bool is_same =
        strcmp(loaded.config, expected->config) == 0 && config_is_same(&loaded, &watch->other);
    watch->other = loaded;
    return is_same;
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
    if (expected && (!watch_accepts(&daemon->watch, config, expected) ||
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
        status =
            config_make_credentials(config, daemon_web_get_settings(&web), &credentials, error);
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
    daemon_new_source(daemon);
    const struct as_engine_config engine = daemon_get_engine_config(daemon);
    as_receiver_set_limits(daemon->receiver, config->settings.receiver.repeat_cache,
                           config->settings.receiver.max_connections);
    const struct as_notifier_config notifier = daemon_messages_begin(daemon);
    as_shell_reload(daemon->shell, daemon_get_rules(daemon), &engine, config->digest, targets,
                    daemon->source, &notifier, credential);
    daemon_messages_end_former(daemon);
}

/* A cluster that cannot be reached by this configuration has no new policies. */
static void restart_policies(struct daemon *daemon)
{
    struct as_error error = AS_ERROR_INIT;
    if (!daemon->config->settings.objects.is_enabled)
        daemon_policies_disable(daemon);
    else if (daemon_policies_start(daemon, &error) != 0)
        as_log(AS_LOG_ERROR, "scaling policies cannot be watched", AS_F("error", error.text));
    daemon_policies_join(daemon);
}

/* A follower has no ports; these were created only to check that it works. */
static void forget_ports(const struct daemon *daemon, struct as_target_port *targets,
                         struct as_config *old)
{
    targets->close(targets);
    daemon_forget_config(daemon, old);
}

/* `expected`: the digests that the files had at the last check, or NULL; if the load finds others,
 * or another --web.config.file than that check, it changes and logs nothing: -EAGAIN. `repeat_of`:
 * the error of an earlier attempt with these files, which is not logged again; or NULL. */
static int daemon_reload_again(struct daemon *daemon, const char *credential,
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
    daemon_renew_log_copier(daemon);
    daemon->named_files = files;
    daemon_web_use(daemon, web);
    struct as_credentials *old_credentials = as_auth_swap_credentials(daemon->auth, credentials);
    as_reviewer_free(as_auth_swap_reviewer(daemon->auth, reviewer));
    restart_policies(daemon);
    if (daemon->shell)
        reload_shell(daemon, old, targets, credential);
    else
        forget_ports(daemon, targets, old);
    if (!config->settings.objects.is_enabled)
        daemon_policies_forget(daemon);
    as_credentials_free(old_credentials); /* the engine used their scopes */
    as_trim_memory();
    as_log(AS_LOG_INFO, "configuration loaded", AS_F("digest", config->digest),
           AS_FI("targets", config->ruleset->target_count),
           AS_FI("rules", config->ruleset->rule_count));
    return 0;
}

/*
 * --config.auto-reload-interval: a reload when the content of the configuration or of a rule file
 * has changed, as a ConfigMap's does.
 *
 * Another process may be writing a file. So a change is loaded only when two checks, at least a
 * second apart, found the same stamps and the same content, and if the load finds that content too.
 * The file of --web.config.file is loaded with the configuration. So its stamp must be the same
 * too.
 *
 * Files that cannot be used are tried again at each check, since the cause may end without a change
 * of them (a token that comes later). Their error is logged once.
 */

static void daemon_reload_config(struct daemon *daemon, const struct as_config_digests *now)
{
    struct daemon_watch *watch = &daemon->watch;
    const char *repeat_of = NULL;
    if (config_is_same(now, &watch->tried))
        repeat_of = watch->error.text;
    else
        as_log(AS_LOG_INFO, "the configuration's files have changed");
    watch->tried = *now;
    struct as_error error = AS_ERROR_INIT;
    const int status = daemon_reload_again(daemon, "", now, repeat_of, &error);
    if (status == -EAGAIN)
        return; /* the next check finds the change */
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
    const bool are_same = strcmp(stamps.text, watch->stamps.text) == 0 &&
                          config_is_same(&now, &watch->found) && is_web_same;
    watch->stamps = stamps;
    watch->web = web;
    watch->found = now;
    if (daemon_watch_is_in_force(daemon->config, &now)) {
        watch->error = (struct as_error)AS_ERROR_INIT;
        watch->other = (struct as_config_digests){0};
        watch->changes = 0;
    } else if (daemon_watch_settles(&watch->changes, are_same,
                                    is_web_same ? stamps.newest : web_file)) {
        daemon_reload_config(daemon, &now);
    } else {
        daemon_arm(watch->timer, SETTLE_US);
    }
}

void daemon_watch_files(struct daemon *daemon)
{
    if (daemon->options->auto_reload_interval_us > 0)
        daemon_arm(daemon->watch.timer, daemon->options->auto_reload_interval_us);
}

int daemon_enter_sandbox(struct daemon *daemon, struct as_error *error)
{
    const struct as_sandbox_config config =
        get_sandbox_config(daemon, daemon->config, &daemon->web.file);
    return as_sandbox_enter(&config, &daemon->sandbox, error);
}

/* Whether all files have the content that is in force: a reload would change nothing. Rule files
 * are found anew by their patterns. */
static bool daemon_is_in_force(const struct daemon *daemon)
{
    const struct as_config *config = daemon->config;
    struct as_config_digests now;
    as_config_hash_files(config, &now);
    const struct as_digest files = hash_named_files(daemon, config, &daemon->web.file);
    return daemon_watch_is_in_force(config, &now) &&
           as_digest_compare(&files, &daemon->named_files) == 0;
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
    status = config_make_credentials(daemon->config, web, &credentials, error);
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

/*
 * Requests for a reload, by HTTP or by a signal. A request within a second of the last reload waits
 * until the second is over, and then shares its reload with all others: each answer is of a reload
 * that began after its request. If no file has changed, nothing is loaded.
 *
 * A reload waits while too many earlier configurations still wait for answers of their ports.
 */

#define RELOAD_EVERY_US (1 * AS_US_PER_S)

struct reload_request {
    STAILQ_ENTRY(reload_request) next;
    struct as_http_exchange *exchange;
};

void daemon_request_reload(void *context, struct as_http_exchange *exchange, const char *credential)
{
    struct daemon *daemon = context;
    struct daemon_reload *reload = &daemon->reload;
    if (exchange) {
        struct reload_request *request = as_xcalloc(1, sizeof(*request));
        request->exchange = exchange;
        STAILQ_INSERT_TAIL(&reload->requests, request, next);
    }
    if (reload->is_wanted)
        return;
    reload->is_wanted = true;
    reload->credential = as_xstrdup(credential);
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    daemon_arm(reload->timer, reload->earliest.us > now.us ? reload->earliest.us - now.us : 0);
}

static struct reload_request *reload_dequeue(struct daemon *daemon)
{
    struct reload_request *request = STAILQ_FIRST(&daemon->reload.requests);
    if (request)
        STAILQ_REMOVE_HEAD(&daemon->reload.requests, next);
    return request;
}

static void answer_all(struct daemon *daemon, int status, const char *text)
{
    struct reload_request *request;
    while ((request = reload_dequeue(daemon))) {
        as_reply_text(request->exchange, status, NULL, "%s", text);
        free(request);
    }
}

/* The status and the text of the answer. */
static int reload_now(struct daemon *daemon, const char *credential, struct as_error *text)
{
    struct as_error error = AS_ERROR_INIT;
    if (!daemon->failed && !daemon->stopping && daemon_is_in_force(daemon)) {
        as_metrics_on_reload(daemon->metrics, true, as_system_clock.get_wall(&as_system_clock));
        as_log(AS_LOG_INFO, "configuration unchanged", AS_F("digest", daemon->config->digest));
        as_error_set(text, "unchanged: all files have the content that is in force");
        return 200;
    }
    const int status = daemon_reload_again(daemon, credential, NULL, NULL, &error);
    if (status == 0) {
        as_error_set(text, "reloaded");
        return 200;
    }
    if (status == -EAGAIN) /* other failures are logged where they occur */
        as_log(AS_LOG_WARN, "nothing reloaded", AS_F("error", error.text));
    as_error_set(text, "reload failed, nothing is changed: %s", error.text);
    return 500;
}

static bool may_reload(struct daemon *daemon)
{
    return daemon->failed || daemon->stopping || !daemon->shell || /* fails, or keeps no ports */
           daemon_make_retired_room(daemon);
}

void daemon_on_reload_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct daemon_reload *reload = &daemon->reload;
    struct as_error text = AS_ERROR_INIT;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    if (!reload->is_wanted)
        return;
    if (!may_reload(daemon)) {
        daemon_arm(reload->timer, RELOAD_EVERY_US);
        return;
    }
    AS_CLEANUP(as_free_p) char *credential = reload->credential;
    reload->credential = NULL;
    reload->is_wanted = false;
    reload->earliest.us = now.us + RELOAD_EVERY_US;
    const int status = reload_now(daemon, credential, &text);
    answer_all(daemon, status, text.text);
}

void daemon_forget_reload(struct daemon *daemon)
{
    struct reload_request *request;
    while ((request = reload_dequeue(daemon)))
        free(request);
    free(daemon->reload.credential);
}
