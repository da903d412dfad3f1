/*
 * The file of --web.config.file: loaded with the configuration, and again when two checks, a
 * second apart, find the same change. Everything new is created before anything old is freed. While
 * the changed file, or a file it names, is unusable, the old content stays in force. That is logged
 * once and tried again at each check, since the cause may end without a change of the file.
 */
#include "daemon_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>

#include <alertscaler/daemon/web_tls.h>

#define LOOK_EVERY_US (1 * AS_US_PER_S)

struct daemon_web_file daemon_web_free(struct daemon_web_file web)
{
    as_tls_server_free(web.tls);
    as_web_config_free(web.config);
    return (struct daemon_web_file){0};
}

const struct as_web_settings *daemon_web_get_settings(const struct daemon_web_file *web)
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

int daemon_web_load(const struct daemon *daemon, bool is_repeat, struct daemon_web_file *web_out,
                    struct as_error *error)
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
static char *make_headers(const struct as_web_settings *settings)
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
    return make_headers(daemon_web_get_settings(&daemon->web.file));
}

static bool has_other_headers(const struct daemon_web_file *a, const struct daemon_web_file *b)
{
    char *left = make_headers(daemon_web_get_settings(a));
    char *right = make_headers(daemon_web_get_settings(b));
    const bool is_other = left && right ? strcmp(left, right) != 0 : left != right;
    free(left);
    free(right);
    return is_other;
}

void daemon_web_warn_open(const struct daemon *daemon)
{
    if (as_web_is_open(daemon_web_get_settings(&daemon->web.file),
                       &daemon->config->settings.receiver))
        as_log(AS_LOG_WARN, "no credentials are configured (receiver.tokens, or others): everyone "
                            "who can connect may send alerts and read");
}

void daemon_web_use(struct daemon *daemon, struct daemon_web_file web)
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

/* Its users get their permissions from the present configuration. */
static int reload(struct daemon *daemon, bool is_repeat, struct as_error *error)
{
    struct daemon_web_file web;
    struct as_credentials *credentials;
    int status = daemon_web_load(daemon, is_repeat, &web, error);
    if (status != 0)
        return status;
    status = as_credentials_new(&daemon->config->settings.receiver, daemon_web_get_settings(&web),
                                &credentials, error);
    if (status != 0) {
        (void)daemon_web_free(web);
        return status;
    }
    daemon_web_use(daemon, web);
    struct as_credentials *old = as_auth_swap_credentials(daemon->auth, credentials);
    if (daemon->shell && !daemon->failed) {
        const struct as_engine_config engine = daemon_get_engine_config(daemon);
        as_shell_reload(daemon->shell, daemon->config->ruleset, &engine, daemon->config->digest,
                        daemon->targets, daemon->source, NULL, "");
    }
    as_credentials_free(old);
    return 0;
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
    const int status = reload(daemon, is_repeat, &error);
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
