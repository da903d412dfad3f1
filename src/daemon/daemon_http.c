/*
 * The HTTP server: its configuration, and the handlers it calls.
 */
#include "daemon_private.h"

#include <errno.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

#include "descriptors.h"

#define LOOK_EVERY_US (1 * AS_US_PER_S)

static const char *find_not_ready(const struct daemon *daemon)
{
    if (daemon->stopping)
        return "stopping";
    if (daemon->failed)
        return "the state or the action log cannot be written";
    if (daemon->shell)
        return as_shell_is_ready(daemon->shell) ? NULL : "starting";
    return daemon->opener ? "the state is being opened" : daemon->why_not;
}

void daemon_look(void *context, struct as_view *view_out)
{
    const struct daemon *daemon = context;
    size_t scope_count = 0;
    const struct as_scope *scopes =
        as_credentials_get_scopes(as_auth_get_credentials(daemon->auth), &scope_count);
    const struct as_credential_counts counts =
        as_credentials_count(as_auth_get_credentials(daemon->auth));
    const struct as_decoded_counts cache = as_receiver_get_cache(daemon->receiver);
    *view_out = (struct as_view){
        .mono = as_system_clock.get_mono(&as_system_clock),
        .wall = as_system_clock.get_wall(&as_system_clock),
        .started = daemon->started,
        .engine = daemon->shell ? as_shell_get_engine(daemon->shell) : NULL,
        .storage = daemon->storage,
        .shell = daemon->shell,
        .leader = daemon->leader->look(daemon->leader),
        .ruleset = daemon->config->ruleset,
        .scopes = scopes,
        .scope_count = scope_count,
        .has_passwords = counts.users > 0,
        .has_tokens = counts.tokens + counts.reviews > 0,
        .config_digest = daemon->config->digest,
        .external_url = &daemon->external_url,
        .action_log_path = daemon->config->settings.action_log.path,
        .not_ready = find_not_ready(daemon),
        .incident_expiry_us = daemon->config->settings.receiver.incident_expiry_us,
        .others = daemon->others,
        .dry_run = daemon->config->settings.dry_run || daemon->options->dry_run,
        .connections = daemon->server ? as_http_server_get_connections(daemon->server) : 0,
        .unanswered = as_receiver_count_waiting(daemon->receiver),
        .cache_hits = cache.hits,
        .cache_misses = cache.misses,
        .cache_bytes = cache.bytes,
        .targets = daemon->targets,
        .visit_facts = daemon->options->adapters->visit_facts,
    };
}

void daemon_on_order(void *context, const struct as_operators_request *request)
{
    const struct daemon *daemon = context;
    const struct as_operators_way way = {daemon->shell, daemon->storage, find_not_ready(daemon)};
    as_operators_handle(daemon->operators, request, &way);
}

static enum as_http_admission on_admit(void *context, struct as_http_exchange *exchange)
{
    return as_routes_admit(&((struct daemon *)context)->routes, exchange);
}

static void on_request(void *context, struct as_http_exchange *exchange)
{
    as_routes_handle(&((struct daemon *)context)->routes, exchange);
}

static void on_dropped(void *context, const char *reason)
{
    as_metrics_on_http_drop(((struct daemon *)context)->metrics, reason);
}

static void on_answered(void *context, const char *handler, int status, int64_t duration_us)
{
    struct daemon *daemon = context;
    as_metrics_on_http(daemon->metrics, handler, status, duration_us);
    as_receiver_on_answered(daemon->receiver, handler, status);
}

bool daemon_on_denied(void *context, const struct as_denied_record *record)
{
    const struct daemon *daemon = context;
    if (!daemon->shell || !as_storage_has_room(daemon->storage))
        return false;
    as_shell_record_denied(daemon->shell, record);
    return true;
}

void daemon_on_look_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    as_auth_look(daemon->auth);
    as_receiver_look(daemon->receiver);
    daemon_arm(daemon->look_timer, LOOK_EVERY_US);
}

static void set_external_url(struct daemon *daemon)
{
    const struct as_daemon_options *options = daemon->options;
    if (options->external_url)
        daemon->external_url = *options->external_url;
    else
        as_external_url_make_default(options->listen_address,
                                     as_http_server_get_port(daemon->server),
                                     daemon->web.file.tls != NULL, &daemon->external_url);
}

static void explain_not_listening(int code, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *why = as_xstrdup(error->text);
    as_error_set(error, "--web.listen-address: %s%s", why,
                 code == -EADDRINUSE ? "; another process has this port: stop it, or give another "
                                       "address with this option"
                                     : "");
}

int daemon_open_server(struct daemon *daemon, struct as_error *error)
{
    const struct as_receiver_settings *settings = &daemon->config->settings.receiver;
    struct as_http_server_config config = as_http_server_config_default;
    config.listen_address = daemon->options->listen_address;
    config.max_connections = settings->max_connections;
    config.max_body = settings->max_body;
    config.tls = daemon->web.file.tls;
    char *headers = daemon_web_make_headers(daemon);
    config.extra_headers = headers;
    config.max_bodies = settings->max_bodies;
    as_receiver_set_limits(daemon->receiver, settings->repeat_cache, settings->max_connections);
    as_descriptors_raise(settings->max_connections);
    daemon->routes = (struct as_routes){.auth = daemon->auth,
                                        .receiver = daemon->receiver,
                                        .api = daemon->api,
                                        .forms = daemon->forms,
                                        .external_url = &daemon->external_url,
                                        .order = daemon_on_order,
                                        .reload = daemon_request_reload,
                                        .context = daemon};
    const struct as_http_handler handler = {on_admit, on_request, on_answered, on_dropped, daemon};
    const int status = daemon->options->adapters->new_server(daemon->base, &config, &handler,
                                                             &daemon->server, error);
    free(headers);
    if (status != 0) {
        explain_not_listening(status, error);
        return status;
    }
    set_external_url(daemon);
    daemon->routes.prefix = daemon->options->route_prefix
                                ? daemon->options->route_prefix
                                : as_external_url_get_path(&daemon->external_url);
    daemon_arm(daemon->look_timer, LOOK_EVERY_US);
    return 0;
}

void daemon_tell_address(const struct daemon *daemon)
{
    as_log(AS_LOG_INFO, "listening", AS_F("address", daemon->options->listen_address),
           AS_FI("port", as_http_server_get_port(daemon->server)),
           AS_F("tls", daemon->web.file.tls ? "yes" : "no"),
           AS_F("external_url", daemon->external_url.base));
}
