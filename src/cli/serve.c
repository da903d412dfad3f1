/*
 * `alertscaler serve`: the daemon.
 */
#include <alertscaler/daemon/daemon.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/time.h>
#include <alertscaler/rules/external_url.h>

#include "cli.h"

#define AUTO_RELOAD_MAX_US (30 * AS_US_PER_S) /* a timer of the daemon waits no longer */

static const char *const sandboxes[] = {
    [AS_SANDBOX_AUTO] = "auto", [AS_SANDBOX_REQUIRED] = "required", [AS_SANDBOX_OFF] = "off", NULL};

static int serve_run(const struct as_args *args)
{
    enum as_log_level level;
    enum as_log_format format;
    if (as_log_level_parse(as_args_get(args, "log.level"), &level) != 0 ||
        as_log_format_parse(as_args_get(args, "log.format"), &format) != 0)
        return as_cli_fail(args, "--log.level or --log.format is none of the choices");
    struct as_error error = AS_ERROR_INIT;
    int64_t auto_reload_interval = 0;
    if (as_duration_parse(as_args_get(args, "config.auto-reload-interval"), &auto_reload_interval,
                          &error) != 0)
        return as_cli_fail(args, "--config.auto-reload-interval: %s", error.text);
    if (auto_reload_interval != 0 &&
        (auto_reload_interval < AS_US_PER_S || auto_reload_interval > AUTO_RELOAD_MAX_US))
        return as_cli_fail(args, "--config.auto-reload-interval: 1s to 30s, or 0s for never");
    enum as_sandbox_mode sandbox = AS_SANDBOX_AUTO;
    for (const char *word; (word = sandboxes[sandbox]); sandbox++) {
        if (strcmp(as_args_get(args, "sandbox"), word) == 0)
            break; /* one of the choices */
    }
    struct as_external_url external_url;
    char route_prefix[AS_EXTERNAL_URL_SIZE];
    const char *url = as_args_get(args, "web.external-url");
    const char *prefix = as_args_get(args, "web.route-prefix");
    if (url && as_external_url_parse(url, &external_url, &error) != 0)
        return as_cli_fail(args, "--web.external-url: %s", error.text);
    if (prefix && as_route_prefix_parse(prefix, route_prefix, &error) != 0)
        return as_cli_fail(args, "--web.route-prefix: %s", error.text);
    as_log_configure(level, format, STDERR_FILENO);
    const char *config_file = config_option_find(args);
    if (!as_args_has(args, "config.file"))
        as_log(AS_LOG_INFO, "reading the configuration", AS_F("file", config_file));
    const struct as_daemon_options options = {
        .adapters = args->adapters,
        .config_file = config_file,
        .listen_address = as_args_get(args, "web.listen-address"),
        .external_url = url ? &external_url : NULL,
        .route_prefix = prefix ? route_prefix : NULL,
        .web_config_file = as_args_get(args, "web.config.file"),
        .enable_admin_api = as_args_has(args, "web.enable-admin-api"),
        .auto_reload_interval_us = auto_reload_interval,
        .sandbox = sandbox,
        .dry_run = as_args_has(args, "dry-run"),
    };
    return as_daemon_run(&options) == 0 ? AS_EXIT_OK : AS_EXIT_NO;
}

static const char *const levels[] = {"trace", "debug", "info", "warn", "error", NULL};
static const char *const formats[] = {"logfmt", "json", NULL};

static const struct as_option options[] = {
    AS_OPTION_CONFIG_FILE("The configuration; it names the rule files."),
    {.name = "config.auto-reload-interval",
     .value = "DURATION",
     .fallback = "0s",
     .help = "How often to look whether the configuration or a rule file has changed, and then to "
             "reload it: 1s to 30s; 0s: never."},
    {.name = "web.listen-address",
     .value = "ADDRESS",
     .fallback = ":9096",
     .help = "Where to listen, as HOST:PORT or :PORT; port 0: any free port."},
    {.name = "web.external-url",
     .value = "URL",
     .help = "The address of this daemon for browsers, maybe through a proxy: base of all links "
             "that are sent out (default: http://HOSTNAME:PORT/, or https with TLS)"},
    {.name = "web.route-prefix",
     .value = "PATH",
     .help = "What stands before the paths of requests (default: the path of --web.external-url). "
             "/ for a proxy that removes that path."},
    {.name = "web.config.file",
     .value = "FILE",
     .help = "TLS, users and passwords: Prometheus' web configuration file."},
    {.name = "web.enable-admin-api",
     .help = "Allows reload, pause, resume, scale and unlock over HTTP, to credentials with the "
             "permission admin. SIGHUP reloads without it."},
    {.name = "log.level",
     .value = "LEVEL",
     .fallback = "info",
     .choices = levels,
     .help =
         "The lowest level that is logged on standard error. trace: also each event, each change "
         "of a target's state, and each effect."},
    {.name = "log.format",
     .value = "FORMAT",
     .fallback = "logfmt",
     .choices = formats,
     .help = "The format of the log."},
    {.name = "sandbox",
     .value = "MODE",
     .fallback = "auto",
     .choices = sandboxes,
     .help = "Restrictions after the start: auto: what the kernel supports; required: all, or no "
             "start; off: none (also allows core dumps)."},
    {.name = "dry-run", .help = "Decides and records everything, but changes no size."},
    {0},
};

const struct as_command as_command_serve = {
    .name = "serve",
    .operands = "",
    .summary = "Receives notifications and scales: the daemon.",
    .help = "Signals: HUP reloads the configuration, USR1 reopens the action log (logrotate), "
            "TERM and INT stop\nafter running work has ended.\n",
    .options = options,
    .run = serve_run,
};
