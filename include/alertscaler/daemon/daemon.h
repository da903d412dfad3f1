/*
 * The daemon: life cycle of everything that serves.
 */
#ifndef ALERTSCALER_DAEMON_DAEMON_H
#define ALERTSCALER_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

struct as_adapters;
struct as_external_url;

enum as_sandbox_mode {
    AS_SANDBOX_AUTO,     /* what the kernel supports */
    AS_SANDBOX_REQUIRED, /* all of it, or do not start */
    AS_SANDBOX_OFF
};

struct as_daemon_options {
    const struct as_adapters *adapters;
    const char *config_file;
    const char *listen_address;
    const char *web_config_file;                /* NULL: none */
    const struct as_external_url *external_url; /* NULL: made from the listen address */
    const char *route_prefix;                   /* NULL: the path of external_url */
    bool enable_admin_api;
    int64_t auto_reload_interval_us; /* how often changed files are looked for; 0: never */
    enum as_sandbox_mode sandbox;
    bool dry_run; /* overrides the configuration */
};

/* Runs until SIGTERM or SIGINT. Returns the exit status: 0 after an orderly stop, 1 if start or
 * stop failed. */
int as_daemon_run(const struct as_daemon_options *options) AS_MUST_USE;

#endif
