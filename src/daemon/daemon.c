/*
 * The daemon: start, leadership, state, web server, stop. One structure owns everything, and all
 * runs on one event loop. Leadership decides whether there is a state.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/daemon/daemon_process.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/runtime/version.h>
#include <alertscaler/tools/engine_config.h>

#include "daemon_private.h"

/*
 * Opens the state and the action log, which may wait long for a disk or an API server, in its own
 * thread: meanwhile the loop renews the lease, answers requests and signals. If there can be no
 * thread (or no eventfd), the loop does the work.
 */

struct state_opening { /* borrowed until `done` */
    const struct as_adapters *adapters;
    const struct as_settings *settings;
    bool may_create;
    const struct as_store_deadline *deadline;
    struct as_storage_config storage; /* without store and log */
};

struct state_opened {
    int code; /* 0; or a negative errno, with an error */
    struct as_error error;
    const char *path; /* of the file that could not be opened, from the settings; NULL: neither */
    struct as_storage *storage;
    struct as_store *store; /* owned by the storage */
};

typedef void state_opened_fn(void *context, const struct state_opened *opened);

struct state_opener {
    struct state_opening opening;
    struct state_opened opened; /* owned by the thread until it ends */
    state_opened_fn *done;
    void *context;
    pthread_t thread;
    bool has_thread;
    int event_fd; /* written by the thread at its end; -1: not available */
    struct event *event;
};

static void state_opener_open(struct state_opener *opener)
{
    const struct state_opening *opening = &opener->opening;
    const struct as_adapters *adapters = opening->adapters;
    const struct as_settings *settings = opening->settings;
    struct as_storage_config config = opening->storage;
    struct state_opened *opened = &opener->opened;
    opened->path = settings->state.path;
    opened->code = adapters->open_store(settings, opening->may_create, opening->deadline,
                                        &config.store, &opened->error);
    if (opened->code != 0)
        return;
    opened->path = settings->action_log.path;
    opened->code = adapters->open_audit(&settings->action_log, &config.audit, &opened->error);
    if (opened->code != 0) {
        config.store->close(config.store);
        return;
    }
    opened->path = NULL;
    opened->store = config.store;
    opened->code = as_storage_new(&config, &opened->storage, &opened->error);
}

static void *state_opener_run(void *context)
{
    struct state_opener *opener = context;
    state_opener_open(opener);
    (void)eventfd_write(opener->event_fd, 1);
    return NULL;
}

static void state_opener_on_event(evutil_socket_t fd, short what, void *context)
{
    struct state_opener *opener = context;
    if (opener->has_thread)
        pthread_join(opener->thread, NULL);
    event_free(opener->event);
    if (opener->event_fd >= 0)
        close(opener->event_fd);
    const struct state_opened opened = opener->opened;
    state_opened_fn *done = opener->done;
    void *done_context = opener->context;
    free(opener);
    done(done_context, &opened);
}

/* `done` comes once, in a later turn of the loop, which must run until then. Afterwards only the
 * storage is to be freed. */
static struct state_opener *state_opener_start(const struct state_opening *opening,
                                               struct event_base *base, state_opened_fn *done,
                                               void *context)
{
    sigset_t all, before;
    struct state_opener *opener = as_xcalloc(1, sizeof(*opener));
    opener->opening = *opening;
    opener->done = done;
    opener->context = context;
    opener->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    opener->event = event_new(base, opener->event_fd, EV_READ, state_opener_on_event, opener);
    if (!opener->event || (opener->event_fd >= 0 && event_add(opener->event, NULL) != 0))
        abort();      /* only without memory */
    sigfillset(&all); /* only the loop handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    opener->has_thread = opener->event_fd >= 0 &&
                         pthread_create(&opener->thread, NULL, state_opener_run, opener) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!opener->has_thread) {
        state_opener_open(opener);
        event_active(opener->event, EV_READ, 0);
    }
    return opener;
}

/*
 * Passes the engine's effects to metrics, the API, waiting requests and the log. The shell carries
 * the effects out.
 */

struct sizes { /* as people read them */
    char from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
};

static const struct sizes *daemon_print_sizes(const char *unit, int32_t from, int32_t to,
                                              struct sizes *sizes)
{
    (void)as_unit_print_size(unit, from, sizes->from);
    (void)as_unit_print_size(unit, to, sizes->to);
    return sizes;
}

static void log_action(const struct as_action_record *action)
{
    const struct sizes *sizes =
        daemon_print_sizes(action->unit, action->from, action->to, &(struct sizes){.from = ""});
    const bool applied = action->outcome == AS_REASON_APPLIED;
    if (action->to < 0)
        as_log(AS_LOG_WARN, "target not observed", AS_F("target", action->target),
               AS_F("outcome", as_reason_get_word(action->outcome)),
               AS_FI("http_status", action->http_status), AS_F("error", action->message));
    else
        as_log(applied ? AS_LOG_INFO : AS_LOG_WARN, applied ? "scaled" : "not scaled",
               AS_F("target", action->target), AS_F("from", sizes->from), AS_F("to", sizes->to),
               AS_F_IF("rule", action->rule), AS_F("outcome", as_reason_get_word(action->outcome)),
               AS_F_IF("decision", action->decision), AS_F_IF("command", action->command),
               AS_F_IF("error", action->message));
}

static void log_order(const struct as_operator_command_record *record)
{
    const struct as_operator_command *order = record->order;
    const char *target = record->target ? record->target : order->target;
    as_log(AS_LOG_INFO, "command", AS_F("command", as_operator_command_kind_get_word(order->kind)),
           AS_F_IF("target", target           ? target
                             : order->request ? NULL
                                              : "all"),
           AS_F_IF("request", order->request), AS_F("who", order->who),
           AS_F("reason", order->reason),
           AS_F("outcome", as_operator_command_outcome_get_word(record->outcome)),
           AS_F_IF("error", record->outcome == AS_OPERATOR_COMMAND_DONE ? NULL : record->message));
}

static void log_approval(const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    const struct sizes *sizes =
        daemon_print_sizes(record->unit, request->from, request->to, &(struct sizes){.from = ""});
    as_log(AS_LOG_INFO, "approval", AS_F("event", as_approval_event_get_word(record->event)),
           AS_F("request", request->id), AS_F("target", record->target),
           AS_F("rule", request->rule), AS_F("from", sizes->from), AS_F("to", sizes->to),
           AS_F_IF("who", request->who), AS_F_IF("message", record->message));
}

static void log_decision(const struct as_decision_record *record)
{
    if (!as_log_is_enabled(AS_LOG_DEBUG))
        return;
    const struct as_decision *output = record->output;
    const struct sizes *sizes = daemon_print_sizes(record->unit, output->replicas, output->desired,
                                                   &(struct sizes){.from = ""});
    as_log(AS_LOG_DEBUG, "decided", AS_F("target", record->target),
           AS_F("reason", as_reason_get_word(output->reason)), AS_F("replicas", sizes->from),
           AS_F("desired", sizes->to), AS_F_IF("rule", output->rule), AS_F("decision", record->id));
}

static void log_others(const struct as_others_record *record)
{
    const struct as_contended_note *contended = record->contended;
    if (contended) {
        const struct as_reverted_change *last =
            &contended->reverted_changes[contended->reverted_change_count - 1];
        as_log(AS_LOG_WARN, "others set the size back: the target is left alone for an hour",
               AS_F("target", record->target), AS_FI("to", last->to), AS_FI("found", last->found),
               AS_F_IF("by", *last->by ? last->by : NULL));
    } else {
        as_log(AS_LOG_INFO, "the target is not left alone any more", AS_F("target", record->target),
               AS_F("reason", record->message));
    }
}

static void daemon_on_effect(void *context, const struct as_effect *effect,
                             const struct as_buf *record)
{
    struct daemon *daemon = context;
    as_metrics_on_effect(daemon->metrics, effect);
    daemon_policies_on_effect(daemon, effect);
    as_api_on_effect(daemon->api, effect, record, as_system_clock.get_wall(&as_system_clock));
    if (effect->kind == AS_EFFECT_RECORD_NOTIFICATION) {
        as_receiver_on_outcome(daemon->receiver, effect->call_id, effect->notification);
    } else if (effect->kind == AS_EFFECT_RECORD_COMMAND) {
        as_operators_on_outcome(daemon->operators, effect->call_id, effect->order);
        log_order(effect->order);
    } else if (effect->kind == AS_EFFECT_RECORD_ACTION) {
        log_action(effect->action);
    } else if (effect->kind == AS_EFFECT_RECORD_DECISION) {
        log_decision(effect->decision);
    } else if (effect->kind == AS_EFFECT_RECORD_OTHERS) {
        log_others(effect->others);
    } else if (effect->kind == AS_EFFECT_RECORD_APPROVAL) {
        log_approval(effect->approval);
    } else if (effect->kind == AS_EFFECT_ANSWER) {
        as_waiting_end(daemon->waiting, effect->call_id);
    }
}

/*
 * Checks the kill switch: several times a second, and right before anything that may lead to an
 * action.
 */

#define LOOK_EVERY_US (250 * AS_US_PER_MS)

static void daemon_poll_kill_switch(struct daemon *daemon)
{
    as_kill_switch_set_file(daemon->halt.kill_switch, daemon->config->settings.kill_switch.file);
    const struct as_halt halt = as_kill_switch_poll(daemon->halt.kill_switch);
    const bool is_halted = halt.reason != NULL;
    if (is_halted != daemon->halt.is_set)
        as_log(AS_LOG_WARN,
               is_halted ? "the kill switch is set: nothing is scaled"
                         : "the kill switch is not set any more",
               AS_F("reason", halt.reason));
    /* A new engine is not halted. A halted one is told each time; it ignores repeats. */
    if ((is_halted || daemon->halt.is_set) && daemon->shell && !daemon->failed)
        as_shell_halt(daemon->shell, &halt);
    daemon->halt.is_set = is_halted;
}

static void daemon_on_halt_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    daemon_poll_kill_switch(daemon);
    daemon_arm(daemon->halt.timer, LOOK_EVERY_US);
}

/* The leader's Lease sets the kill switch: its reason; NULL: not set. Call it after each change. */
static void daemon_set_annotation(struct daemon *daemon, const char *reason)
{
    as_kill_switch_set_annotation(daemon->halt.kill_switch, reason);
    daemon_poll_kill_switch(daemon);
}

/*
 * The HTTP server: its configuration, and the handlers it calls.
 */

#define CREDENTIALS_POLL_US (1 * AS_US_PER_S)

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

static void daemon_fill_view(void *context, struct as_view *view_out)
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
        .changes = daemon->shell ? as_shell_count_changes(daemon->shell) : 0,
        .leader = daemon->leader->look(daemon->leader),
        .ruleset = daemon_get_rules(daemon),
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
        .query_checks = daemon->query_checks,
        .policies = daemon->policies.set,
        .policy_reports = daemon->policies.reports,
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

static void daemon_on_order(void *context, const struct as_operators_request *request)
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

static bool daemon_on_denied(void *context, const struct as_denied_record *record)
{
    const struct daemon *daemon = context;
    if (!daemon->shell || !as_storage_has_room(daemon->storage))
        return false;
    as_shell_record_denied(daemon->shell, record);
    return true;
}

static void daemon_on_report_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct as_view view;
    daemon_fill_view(daemon, &view);
    if (!daemon->stopping && !daemon->failed)
        daemon_policies_report(daemon, &view);
}

static void daemon_on_poll_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    as_auth_poll(daemon->auth);
    as_receiver_poll(daemon->receiver);
    daemon_admission_poll(daemon);
    daemon_arm(daemon->poll_timer, CREDENTIALS_POLL_US);
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

static int daemon_open_server(struct daemon *daemon, struct as_error *error)
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
    daemon_arm(daemon->poll_timer, CREDENTIALS_POLL_US);
    return 0;
}

/* when the start cannot fail any more */
static void daemon_log_address(const struct daemon *daemon)
{
    as_log(AS_LOG_INFO, "listening", AS_F("address", daemon->options->listen_address),
           AS_FI("port", as_http_server_get_port(daemon->server)),
           AS_F("tls", daemon->web.file.tls ? "yes" : "no"),
           AS_F("external_url", daemon->external_url.base));
}

/*
 * When the storage fails (disk full, file gone), shell, storage and ports are freed and created
 * again from the durable state, as after a crash. Until that works, all notifications are answered
 * 503 and nothing is scaled.
 */

#define RECOVER_EVERY_US (2 * AS_US_PER_S)

static void daemon_on_transfer(void *context, const char *client_name, const char *operation,
                               const char *code, int64_t duration_us)
{
    as_metrics_on_client(((struct daemon *)context)->metrics, client_name, operation, code,
                         duration_us);
}

static void on_next_deadline(void *context, as_mono_time deadline)
{
    struct daemon *daemon = context;
    if (deadline.us == AS_MONO_NEVER.us)
        evtimer_del(daemon->deadline);
    else
        daemon_arm(daemon->deadline, deadline.us - as_system_clock.get_mono(&as_system_clock).us);
}

static void daemon_on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    if (daemon->shell)
        as_shell_wake(daemon->shell);
}

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    struct daemon *daemon = context;
    if (status != 0 || daemon->failed || !daemon->shell)
        return;
    const bool was_ready = as_shell_is_ready(daemon->shell);
    daemon_poll_kill_switch(daemon); /* the engine may set sizes now */
    as_shell_on_durable(daemon->shell, call_id);
    if (!was_ready && as_shell_is_ready(daemon->shell)) {
        daemon->terms_recorded = daemon->terms_noted;
        as_log(AS_LOG_INFO, "ready to receive notifications");
        notify_send(daemon->notify, "READY=1");
        as_trim_memory();
    }
}

static void on_hashed(void *context, uint64_t number, const char *hash)
{
    struct daemon *daemon = context;
    if (!daemon->failed && daemon->shell)
        as_shell_on_hashed(daemon->shell, number, hash);
}

static void daemon_on_committed(void *context, int64_t duration_us, size_t batches, size_t records,
                                size_t log_bytes)
{
    as_metrics_on_commit(((struct daemon *)context)->metrics, duration_us, batches, records,
                         log_bytes, as_system_clock.get_wall(&as_system_clock));
}

/* Why there is no shell if another replica leads. */
static const char *print_why_not(struct daemon *daemon)
{
    const struct as_leader_view view = daemon->leader->look(daemon->leader);
    char holder[128] = "nobody leads yet";
    if (*view.holder && strcmp(view.holder, view.identity) != 0)
        snprintf(holder, sizeof(holder), "%.100s leads", view.holder);
    snprintf(daemon->why_not, sizeof(daemon->why_not), "not the leader; %s%s%.250s", holder,
             view.problem ? "; " : "", view.problem ? view.problem : "");
    return daemon->why_not;
}

/* tells requests why there is no shell */
static void daemon_follow(struct daemon *daemon)
{
    as_receiver_set_shell(daemon->receiver, NULL, NULL, print_why_not(daemon));
}

/* Called within the storage, so everything is freed in a later turn. */
static void on_storage_failed(void *context, int status, const char *error)
{
    struct daemon *daemon = context;
    if (daemon->failed)
        return; /* fenced in this turn */
    daemon->failed = true;
    if (status == -ESTALE) {
        as_log(AS_LOG_WARN, "another replica has taken the state over", AS_F("error", error));
        daemon->leader->doubt(daemon->leader);
        daemon_follow(daemon);
        as_waiting_lose(daemon->waiting);
        daemon_arm(daemon->recover, 0);
        return;
    }
    as_log(AS_LOG_ERROR, "state or action log could not be written: answering 503 until it can",
           AS_F("error", error));
    as_receiver_set_shell(daemon->receiver, NULL, NULL,
                          "the state or the action log cannot be written");
    as_waiting_lose(daemon->waiting);
    daemon_arm(daemon->recover, 0);
}

static bool daemon_may_act(void *context)
{
    struct as_leader *leader = ((struct daemon *)context)->leader;
    return leader->may_act(leader);
}

/* Called within the shell, so everything is freed in a later turn. */
static void daemon_on_fenced(void *context)
{
    struct daemon *daemon = context;
    as_log(AS_LOG_WARN, "the term is over before it was renewed: nothing is done any more");
    daemon->failed = true;
    daemon->leader->doubt(daemon->leader);
    daemon_follow(daemon);
    as_waiting_lose(daemon->waiting);
    daemon_arm(daemon->recover, 0);
}

/* If another replica led since, memory has a gap: then pages read the action log instead. */
static void daemon_forget_past(struct daemon *daemon, const struct as_leader_term *leaders,
                               size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(leaders[i].replica, daemon->instance) == 0)
        i++;
    if (i == count)
        return;
    daemon->fill = as_history_fill_free(daemon->fill);
    as_api_on_return(daemon->api, as_system_clock.get_wall(&as_system_clock));
}

static int open_shell(struct daemon *daemon, struct as_store *store, struct as_error *error)
{
    const struct as_leader_view view = daemon->leader->look(daemon->leader);
    const uint64_t new_terms = view.terms_seen - daemon->terms_recorded;
    const size_t leader_count = new_terms < view.term_count ? (size_t)new_terms : view.term_count;
    const struct as_leader_term *leaders =
        leader_count > 0 ? view.terms + view.term_count - leader_count : NULL;
    daemon->terms_noted = view.terms_seen;
    daemon_forget_past(daemon, leaders, leader_count);
    const struct as_shell_config config = {
        .clock = &as_system_clock,
        .targets = daemon->targets,
        .source = daemon->source,
        .storage = daemon->storage,
        .instance = daemon->instance,
        .boot = daemon->boot,
        .version = as_version_get(),
        .revision = as_version_get_revision(),
        .leaders = leaders,
        .leader_count = leader_count,
        .config_digest = daemon->config->digest,
        .engine = daemon_get_engine_config(daemon),
        .ruleset = daemon_get_rules(daemon),
        .notifier = daemon_messages_begin(daemon),
        .callbacks = {daemon_on_effect, on_next_deadline, daemon_may_act, daemon_on_fenced, daemon},
    };
    const int status = as_shell_new(&config, store, &daemon->shell, error);
    if (status != 0)
        return status;
    return as_storage_start(daemon->storage, daemon->base, error);
}

static void daemon_close_state(struct daemon *daemon)
{
    as_receiver_set_shell(daemon->receiver, NULL, NULL, "the state is being opened");
    as_waiting_lose(daemon->waiting);
    daemon_close_retired(daemon);
    if (daemon->targets)
        daemon->targets->close(daemon->targets);
    daemon->targets = NULL;
    as_query_checks_stop(daemon->query_checks);
    if (daemon->source)
        daemon->source->close(daemon->source);
    daemon->source = NULL;
    daemon_messages_close(daemon);
    if (daemon->shell)
        as_api_on_end(daemon->api, as_system_clock.get_wall(&as_system_clock));
    daemon->shell = as_shell_free(daemon->shell);
    daemon->storage = as_storage_free(daemon->storage);
}

/* From now on the state may wait this long at most. */
static void daemon_limit_store(struct daemon *daemon, int64_t us)
{
    const int64_t now = as_system_clock.get_mono(&as_system_clock).us;
    atomic_store(&daemon->store_deadline.until_us, now + us);
}

/* A leader that cannot write blocks all others. One that cannot reach the API server loses its
 * lease anyway. */
static void yield_in_time(struct daemon *daemon)
{
    struct as_leader *leader = daemon->leader;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    const int64_t timeout_us = daemon->config->settings.state.lease.duration_us;
    if (daemon->failing_since.us == INT64_MAX)
        daemon->failing_since = now;
    if (now.us - daemon->failing_since.us < timeout_us)
        return;
    leader->yield(leader);
    if (!leader->look(leader).is_leader)
        as_log(AS_LOG_WARN, "gave the lead up, as the state or the action log cannot be written");
}

static void daemon_on_released(void *context)
{
    (void)event_base_loopbreak(((struct daemon *)context)->base);
}

/* Closes the state, releases the leadership, and leaves the loop. If that must wait, it is called
 * again later. */
static void daemon_end(struct daemon *daemon, int status)
{
    if (status != 0)
        daemon->status = status;
    daemon->stopping = daemon->ending = true;
    evtimer_del(daemon->recover);
    evtimer_del(daemon->stop_timer);
    if (daemon->opener) { /* called again when it ends */
        daemon_limit_store(daemon, 0);
        return;
    }
    daemon_close_state(daemon); /* writes everything before another replica may start */
    daemon->leader->release(daemon->leader, daemon_on_released, daemon);
}

/* A state that was never open points to a wrong configuration, not to a temporary fault. */
static void note_not_opened(struct daemon *daemon, const struct as_error *error)
{
    if (!daemon->has_led) {
        as_log(AS_LOG_ERROR,
               daemon->is_alone ? "cannot start" : "stopping: the state cannot be opened",
               AS_F("error", error->text));
        daemon_end(daemon, 1);
        return;
    }
    daemon->failed = true;
    as_receiver_set_shell(daemon->receiver, NULL, NULL,
                          "the state or the action log cannot be written");
    as_log(AS_LOG_ERROR, "state still cannot be opened", AS_F("error", error->text));
    daemon_arm(daemon->recover, RECOVER_EVERY_US);
    yield_in_time(daemon);
}

/* Creates ports and shell from the durable state. */
static int open_rest(struct daemon *daemon, struct as_store *store, struct as_error *error)
{
    int status = daemon->options->adapters->new_targets(daemon->outside, &daemon->config->settings,
                                                        &daemon->targets, error);
    if (status != 0)
        return status;
    daemon_policies_join(daemon);
    daemon_new_source(daemon);
    status = open_shell(daemon, store, error);
    if (status != 0)
        return status;
    daemon_policies_begin_term(daemon);
    daemon_recover_nodes(daemon);
    return 0;
}

static void daemon_go_on(struct daemon *daemon)
{
    const bool had_failed = daemon->failed;
    if (daemon->is_alone && !daemon->has_led)
        daemon_log_address(daemon);
    daemon->has_led = true;
    daemon->failed = false;
    daemon->failing_since = AS_MONO_NEVER;
    as_receiver_set_shell(daemon->receiver, daemon->shell, daemon->storage, NULL);
    if (had_failed)
        as_log(AS_LOG_INFO, "state and action log can be written again");
}

/* The start has checked write access already, but maybe with root's privileges, which the sandbox
 * drops. */
static void explain_not_opened(const struct daemon *daemon, const struct state_opened *opened,
                               struct as_error *error)
{
    const bool is_state = opened->path == daemon->opening_config->settings.state.path;
    const bool is_denied = opened->code == -EACCES || opened->code == -EROFS;
    if (is_denied && (daemon->is_alone || !is_state) &&
        daemon_check_writable(is_state ? "state" : "action_log", opened->path, error) != 0)
        return;
    as_sandbox_explain(daemon->sandbox, opened->path, error);
}

static void daemon_open_state(struct daemon *daemon);

static bool daemon_is_leading(const struct daemon *daemon)
{
    struct as_leader *leader = daemon->leader;
    return leader->look(leader).is_leader && leader->may_act(leader);
}

static void on_opened(void *context, const struct state_opened *opened)
{
    struct daemon *daemon = context;
    struct as_error error = opened->error;
    int status = opened->code;
    if (status != 0 && opened->path)
        explain_not_opened(daemon, opened, &error);
    daemon->opener = NULL;
    daemon->storage = opened->storage;
    if (daemon->opening_config != daemon->config)
        as_config_free((struct as_config *)(uintptr_t)daemon->opening_config);
    const bool was_given_up = atomic_load(&daemon->store_deadline.until_us) != INT64_MAX;
    if (!daemon->stopping && !was_given_up && daemon_is_leading(daemon)) {
        if (status == 0)
            status = open_rest(daemon, opened->store, &error);
        if (status == 0) {
            daemon_go_on(daemon);
            return;
        }
        daemon_close_state(daemon);
        note_not_opened(daemon, &error);
        return;
    }
    daemon_limit_store(daemon, 0);
    daemon_close_state(daemon);
    if (daemon->ending)
        daemon_end(daemon, 0);
    else if (daemon->stopping)
        return;                         /* the stop continues */
    else if (daemon_is_leading(daemon)) /* a new term has begun meanwhile */
        daemon_open_state(daemon);
    else
        daemon_follow(daemon);
}

#define AWAIT_POLICIES_US (50 * AS_US_PER_MS) /* between two looks */

/* as leader, with no part of it open */
static void daemon_open_state(struct daemon *daemon)
{
    if (daemon_policies_are_awaited(daemon)) {
        as_receiver_set_shell(daemon->receiver, NULL, NULL,
                              "the scaling policies are being listed");
        daemon_arm(daemon->recover, AWAIT_POLICIES_US);
        return;
    }
    struct state_opening opening = {
        .adapters = daemon->options->adapters,
        .settings = &daemon->config->settings,
        .may_create = !daemon->has_led,
        .deadline = &daemon->store_deadline,
        .storage = as_storage_config_default,
    };
    opening.storage.clock = &as_system_clock;
    opening.storage.callbacks = (struct as_storage_callbacks){
        .durable = on_durable,
        .hashed = on_hashed,
        .failed = on_storage_failed,
        .committed = daemon_on_committed,
        .context = daemon,
    };
    if (!daemon->failed)
        as_receiver_set_shell(daemon->receiver, NULL, NULL, "the state is being opened");
    atomic_store(&daemon->store_deadline.until_us, INT64_MAX);
    daemon->opening_config = daemon->config;
    daemon->opener = state_opener_start(&opening, daemon->base, on_opened, daemon);
}

static void daemon_on_recover(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    daemon_limit_store(daemon, 0); /* for the failed state */
    daemon_close_state(daemon);
    if (daemon->stopping) {
        daemon_end(daemon, 1);
    } else if (!daemon_is_leading(daemon)) {
        daemon->failed = false; /* opened when a term begins */
        daemon_follow(daemon);
    } else {
        daemon_open_state(daemon);
    }
}

/*
 * Leadership decides whether there is a state: a term opens it and ends with closing it. All other
 * replicas answer 503 and wait. A single replica runs the same code, and leads forever.
 */

/* Pending writes have no effect any more: do not wait. */
static void end_term(struct daemon *daemon)
{
    evtimer_del(daemon->recover);
    daemon->failed = false;
    daemon->failing_since = AS_MONO_NEVER;
    daemon_limit_store(daemon, 0);
    daemon_close_state(daemon);
    as_trim_memory();
}

/* A single replica always leads: not worth a log line. */
static void log_change(struct daemon *daemon, const struct as_leader_view *view)
{
    if (daemon->is_alone)
        return;
    if (view->is_leader != daemon->was_leader)
        as_log(AS_LOG_INFO, view->is_leader ? "leading" : "not leading any more",
               AS_F("identity", view->identity));
    else if (!view->is_leader && strcmp(view->holder, daemon->last_holder) != 0)
        as_log(AS_LOG_INFO, "following", AS_F("leader", view->holder),
               AS_F("identity", view->identity));
    daemon->was_leader = view->is_leader;
    snprintf(daemon->last_holder, sizeof(daemon->last_holder), "%s", view->holder);
}

static void on_changed(void *context)
{
    struct daemon *daemon = context;
    const struct as_leader_view view = daemon->leader->look(daemon->leader);
    log_change(daemon, &view);
    daemon_set_annotation(daemon, view.paused);
    const bool has_state = daemon->shell || daemon->failed || daemon->opener;
    if (!view.is_leader && has_state)
        end_term(daemon);
    if (daemon->stopping)
        return;
    if (!view.is_leader)
        daemon_follow(daemon);
    else if (!has_state)
        daemon_open_state(daemon);
}

static enum as_permit daemon_get_permit(void *context)
{
    struct daemon *daemon = context;
    if (!daemon_may_act(daemon))
        return AS_PERMIT_NONE;
    if (as_kill_switch_poll(daemon->halt.kill_switch).reason)
        return AS_PERMIT_UNDO;
    return daemon->stopping ? AS_PERMIT_FINISH : AS_PERMIT_ALL;
}

static enum as_terminate_permit daemon_get_terminate_permit(void *context, const char *target,
                                                            const char **why_out)
{
    const struct daemon *daemon = context;
    *why_out = "the state cannot be written";
    if (!daemon->shell || daemon->failed)
        return AS_TERMINATE_HOLD;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    const char *why =
        as_engine_find_terminate_obstacle(as_shell_get_engine(daemon->shell), target, now);
    *why_out = why ? why : "";
    return !why ? AS_TERMINATE_GO : *why ? AS_TERMINATE_HOLD : AS_TERMINATE_GONE;
}

static const char *daemon_find_rival(void *context, const char *target)
{
    const struct daemon *daemon = context;
    return daemon->shell ? as_engine_find_new_rival(as_shell_get_engine(daemon->shell), target)
                         : NULL;
}

static void daemon_record_nodes(void *context, const struct as_nodes_record *record)
{
    const struct daemon *daemon = context;
    if (daemon->shell && !daemon->failed)
        as_shell_record_nodes(daemon->shell, record);
}

static void daemon_on_others_found(void *context, const char *target, const struct as_other *others,
                                   size_t count)
{
    struct daemon *daemon = context;
    if (daemon->shell && !daemon->failed)
        daemon_policies_note_others(daemon, target, others, count);
    if (!daemon->shell || daemon->failed || !as_others_take(daemon->others, target, others, count))
        return;
    for (size_t i = 0; i < count; i++)
        as_log(AS_LOG_WARN, "somebody else sizes the target too", AS_F("target", target),
               AS_F("kind", others[i].kind), AS_F("name", others[i].name),
               AS_F("paused", others[i].is_paused ? "yes" : "no"));
    if (count == 0)
        as_log(AS_LOG_INFO, "nobody else sizes the target any more", AS_F("target", target));
    as_shell_record_others(daemon->shell, &(struct as_others_record){
                                              .event = AS_OTHERS_FOUND,
                                              .target = target,
                                              .found = &(struct as_others_found){others, count}});
}

static int daemon_open_leader(struct daemon *daemon, struct as_error *error)
{
    daemon->is_alone = daemon->config->settings.state.store == AS_STORE_SQLITE;
    return daemon->options->adapters->new_leader(daemon->outside, &daemon->config->settings,
                                                 daemon->instance, &daemon->leader, error);
}

static void daemon_start_leader(struct daemon *daemon)
{
    const struct as_leader_callbacks callbacks = {on_changed, daemon};
    daemon_follow(daemon);
    daemon->leader->start(daemon->leader, &callbacks);
}

#define STOP_GRACE_US (20 * AS_US_PER_S) /* for running work after a stop was requested */

static void daemon_finish(struct daemon *daemon)
{
    struct as_error error = AS_ERROR_INIT;
    int status = daemon->failed ? 1 : 0;
    as_auth_conclude(daemon->auth);
    if (daemon->shell && !daemon->failed) {
        as_shell_record_stop(daemon->shell);
        daemon_limit_store(daemon, daemon->config->settings.state.lease.renew_deadline_us / 2);
        if (as_storage_drain(daemon->storage, &error) != 0) {
            as_log(AS_LOG_ERROR, "stop not recorded", AS_F("error", error.text));
            status = 1;
        }
    }
    daemon_end(daemon, status);
}

static void on_drained(void *context)
{
    ((struct daemon *)context)->drained = true;
}

/* Checks at intervals until nothing is running, or the time is over. */
static void on_stop_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    static const int64_t interval = 10 * AS_US_PER_MS;
    const bool idle = (!daemon->shell || as_shell_is_idle(daemon->shell)) &&
                      daemon_are_ports_idle(daemon); /* nodes may still be restored */
    const bool in_time = as_system_clock.get_mono(&as_system_clock).us < daemon->stop_deadline.us;
    if (in_time && !(daemon->drained && idle)) {
        daemon_arm(daemon->stop_timer, interval);
        return;
    }
    if (!in_time)
        as_log(AS_LOG_WARN,
               "stopping with something under way: it is looked after at the next start");
    daemon_finish(daemon);
}

static void daemon_stop(struct daemon *daemon)
{
    if (daemon->stopping)
        return;
    daemon->stopping = true;
    daemon->stop_deadline.us = as_system_clock.get_mono(&as_system_clock).us + STOP_GRACE_US;
    as_log(AS_LOG_INFO, "stopping");
    notify_send(daemon->notify, "STOPPING=1");
    as_receiver_set_shell(daemon->receiver, NULL, NULL, "stopping");
    as_http_server_drain(daemon->server, on_drained, daemon);
    if (daemon->shell)
        as_shell_stop(daemon->shell);
    daemon_arm(daemon->stop_timer, 0);
}

static void daemon_on_signal(evutil_socket_t number, short what, void *context)
{
    struct daemon *daemon = context;
    switch (number) {
    case SIGHUP: daemon_request_reload(daemon, NULL, ""); break;
    case SIGUSR1:
        if (daemon->storage)
            as_storage_reopen_log(daemon->storage);
        break;
    default: daemon_stop(daemon); break;
    }
}

static struct event *new_timer(struct daemon *daemon, event_callback_fn callback)
{
    struct event *timer = evtimer_new(daemon->base, callback, daemon);
    if (!timer)
        abort();
    return timer;
}

static void make_events(struct daemon *daemon)
{
    static const int signals[AS_ARRAY_SIZE(daemon->signals)] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    daemon->base = event_base_new();
    if (!daemon->base || sigaction(SIGPIPE, &ignore, NULL) != 0)
        abort();
    for (size_t i = 0; i < AS_ARRAY_SIZE(signals); i++) {
        daemon->signals[i] = evsignal_new(daemon->base, signals[i], daemon_on_signal, daemon);
        if (!daemon->signals[i] || evsignal_add(daemon->signals[i], NULL) != 0)
            abort();
    }
    daemon->deadline = new_timer(daemon, daemon_on_deadline);
    daemon->recover = new_timer(daemon, daemon_on_recover);
    daemon->retire = new_timer(daemon, daemon_on_retire);
    daemon->stop_timer = new_timer(daemon, on_stop_timer);
    daemon->halt.timer = new_timer(daemon, daemon_on_halt_timer);
    daemon->web.timer = new_timer(daemon, daemon_on_web_timer);
    daemon->watch.timer = new_timer(daemon, daemon_on_watch_timer);
    daemon->reload.timer = new_timer(daemon, daemon_on_reload_timer);
    daemon->policies.timer = new_timer(daemon, daemon_on_policies_timer);
    daemon->policies.report = new_timer(daemon, daemon_on_report_timer);
    daemon->poll_timer = new_timer(daemon, daemon_on_poll_timer);
}

/* Without its events each signal has its default effect, which would end the process without our
 * exit status. A second SIGTERM may come until the end. */
static void free_events(struct daemon *daemon)
{
    sigset_t all;
    sigfillset(&all);
    if (pthread_sigmask(SIG_BLOCK, &all, NULL) != 0)
        abort();
    for (size_t i = 0; i < AS_ARRAY_SIZE(daemon->signals); i++)
        event_free(daemon->signals[i]);
    event_free(daemon->deadline);
    event_free(daemon->recover);
    event_free(daemon->retire);
    event_free(daemon->stop_timer);
    event_free(daemon->halt.timer);
    event_free(daemon->web.timer);
    event_free(daemon->watch.timer);
    event_free(daemon->reload.timer);
    event_free(daemon->policies.timer);
    event_free(daemon->policies.report);
    event_free(daemon->poll_timer);
    event_base_free(daemon->base);
}

static int daemon_start(struct daemon *daemon, struct as_error *error)
{
    int status = as_sandbox_protect_memory(daemon->options->sandbox, error);
    if (status == 0)
        status = daemon_load_config(daemon, error);
    if (status == 0)
        status = daemon_open_leader(daemon, error);
    if (status == 0)
        status = daemon_open_server(daemon, error);
    if (status == 0)
        status = daemon_admission_open(daemon, error);
    if (status == 0)
        status = daemon_enter_sandbox(daemon, error); /* before other threads start */
    if (status == 0) {
        daemon->fill =
            as_history_fill_new(as_api_get_history(daemon->api), daemon->base,
                                daemon->config->settings.action_log.path, AS_HISTORY_FILL_MAX);
        status = as_log_history_new(daemon->base, daemon->config->settings.action_log.path,
                                    &daemon->history_log, error);
    }
    if (status == 0) {
        as_api_set_history_log(daemon->api, daemon->history_log);
        daemon_renew_log_copier(daemon);
        status = daemon_policies_start(daemon, error);
    }
    if (status == 0) {
        daemon_start_leader(daemon);
        daemon_web_watch(daemon);
        daemon_watch_files(daemon);
    }
    if (status != 0 || daemon->is_alone)
        return status;
    /* A standby may wait forever for its term, and still is ready. */
    daemon_log_address(daemon);
    notify_send(daemon->notify, "READY=1");
    return 0;
}

static void daemon_release(struct daemon *daemon)
{
    daemon_close_state(daemon);
    log_copier_free(daemon->log_copier);
    as_api_set_history_log(daemon->api, NULL);
    as_log_history_free(daemon->history_log); /* its requests end with the server */
    as_http_server_free(daemon->server);
    daemon_admission_close(daemon);
    daemon_forget_reload(daemon);
    as_receiver_free(daemon->receiver);
    as_auth_free(daemon->auth); /* it uses `outside` */
    as_forms_free(daemon->forms);
    as_operators_free(daemon->operators);
    as_waiting_free(daemon->waiting);
    as_kill_switch_free(daemon->halt.kill_switch);
    if (daemon->leader)
        daemon->leader->close(daemon->leader);
    as_query_checks_free(daemon->query_checks);
    daemon_policies_forget(daemon);
    daemon->options->adapters->free_outside(daemon->outside);
    as_history_fill_free(daemon->fill);
    as_api_free(daemon->api);
    as_metrics_free(daemon->metrics);
    as_others_free(daemon->others);
    daemon_forget_recoveries(daemon);
    (void)daemon_web_free(daemon->web.file);
    as_config_free(daemon->config);
    as_sandbox_free(daemon->sandbox);
    free_events(daemon);
    if (daemon->notify >= 0)
        close(daemon->notify);
}

static void on_proxy_ignored(void *context)
{
    as_metrics_on_proxy_ignored(((struct daemon *)context)->metrics);
}

static bool offer_login(void *context, struct as_http_exchange *exchange)
{
    return as_forms_offer_login(((struct daemon *)context)->forms, exchange);
}

static bool show_refusal(void *context, struct as_http_exchange *exchange, int status,
                         const char *headers, const char *problem)
{
    return as_forms_show_refusal(((struct daemon *)context)->forms, exchange, status, headers,
                                 problem);
}

int as_daemon_run(const struct as_daemon_options *options)
{
    struct daemon daemon = {.options = options, .failing_since = AS_MONO_NEVER};
    struct as_error error = AS_ERROR_INIT;
    STAILQ_INIT(&daemon.retired);
    SLIST_INIT(&daemon.recoveries);
    STAILQ_INIT(&daemon.reload.requests);
    daemon.reload.earliest.us = INT64_MIN;
    daemon.notify = notify_open();
    as_boot_id_read(daemon.boot);
    as_instance_print(daemon.instance);
    make_events(&daemon);
    daemon.started = as_system_clock.get_wall(&as_system_clock);
    daemon.metrics = as_metrics_new();
    daemon.others = as_others_new();
    daemon.api = as_api_new(&(struct as_api_config){.instance = daemon.instance,
                                                    .metrics = daemon.metrics,
                                                    .view = daemon_fill_view,
                                                    .preview = daemon_preview_config,
                                                    .context = &daemon});
    daemon.outside =
        options->adapters->new_outside(daemon.base, &as_system_clock, daemon_on_transfer, &daemon);
    daemon.query_checks = as_query_checks_new(options->adapters->get_env(daemon.outside)->loop);
    options->adapters->set_permit(daemon.outside, daemon_get_permit, daemon_get_terminate_permit,
                                  daemon_find_rival, daemon_record_nodes, daemon_on_others_found,
                                  daemon_on_nodes_recovered, &daemon);
    daemon.auth =
        as_auth_new(&(struct as_auth_config){.clock = &as_system_clock,
                                             .base = daemon.base,
                                             .enable_admin_api = options->enable_admin_api,
                                             .denied = daemon_on_denied,
                                             .offer_login = offer_login,
                                             .proxy_ignored = on_proxy_ignored,
                                             .show_refusal = show_refusal,
                                             .context = &daemon});
    daemon.waiting = as_waiting_new();
    daemon.operators = as_operators_new(daemon.waiting);
    daemon.forms = as_forms_new(&(struct as_forms_config){.auth = daemon.auth,
                                                          .api = daemon.api,
                                                          .external_url = &daemon.external_url,
                                                          .order = daemon_on_order,
                                                          .context = &daemon});
    as_operators_set_form(daemon.operators, as_forms_answer_order, daemon.forms);
    daemon.halt.kill_switch = as_kill_switch_new();
    daemon.receiver = as_receiver_new(&(struct as_receiver_config){.clock = &as_system_clock,
                                                                   .metrics = daemon.metrics,
                                                                   .auth = daemon.auth,
                                                                   .waiting = daemon.waiting,
                                                                   .seed = daemon_get_seed()});

    if (daemon_start(&daemon, &error) == 0) {
        daemon_on_halt_timer(-1, 0, &daemon);
        if (event_base_dispatch(daemon.base) < 0)
            daemon.status = 1;
        as_log(AS_LOG_INFO, "stopped");
    } else {
        as_log(AS_LOG_ERROR, "cannot start", AS_F("error", error.text));
        daemon.status = 1;
    }
    daemon_release(&daemon);
    return daemon.status;
}
