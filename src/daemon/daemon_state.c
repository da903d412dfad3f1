/*
 * When the storage fails (disk full, file gone), shell, storage and ports are freed and created
 * again from the durable state, as after a crash. Until that works, all notifications are answered
 * 503 and nothing is scaled.
 */
#include "daemon_private.h"

#include <errno.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/runtime/version.h>
#include <alertscaler/tools/engine_config.h>

#include "trim.h"
#include <alertscaler/notify/notify.h>

#define RECOVER_EVERY_US (2 * AS_US_PER_S)
#define RETIRE_AFTER_US  (10 * AS_US_PER_S) /* for what they send beside the engine's calls */
#define RETIRE_LOOK_US   (1 * AS_US_PER_S)
#define RETIRED_MAX      4

void daemon_on_transfer(void *context, const char *client_name, const char *operation,
                        const char *code, int64_t duration_us)
{
    as_metrics_on_client(((struct daemon *)context)->metrics, client_name, operation, code,
                         duration_us);
}

static void on_source_answer(void *context, const char *source, const char *outcome,
                             int64_t duration_us)
{
    as_metrics_on_source(((struct daemon *)context)->metrics, source, outcome, duration_us);
}

struct as_source_port *daemon_new_source(struct daemon *daemon, const struct as_settings *settings)
{
    return daemon->options->adapters->new_source(daemon->outside, settings, on_source_answer,
                                                 daemon);
}

struct as_engine_config daemon_get_engine_config(const struct daemon *daemon)
{
    struct as_engine_config config =
        as_engine_config_make(&daemon->config->settings, daemon_get_seed());
    config.dry_run = config.dry_run || daemon->options->dry_run;
    config.scopes =
        as_credentials_get_scopes(as_auth_get_credentials(daemon->auth), &config.scope_count);
    return config;
}

static void on_next_deadline(void *context, as_mono_time deadline)
{
    struct daemon *daemon = context;
    if (deadline.us == AS_MONO_NEVER.us)
        evtimer_del(daemon->deadline);
    else
        daemon_arm(daemon->deadline, deadline.us - as_system_clock.get_mono(&as_system_clock).us);
}

void daemon_on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    if (daemon->shell)
        as_shell_wake(daemon->shell);
}

static void on_durable(void *context, uint64_t ticket, int status, const char *error)
{
    struct daemon *daemon = context;
    if (status != 0 || daemon->failed || !daemon->shell)
        return;
    const bool was_ready = as_shell_is_ready(daemon->shell);
    daemon_look_at_kill_switch(daemon); /* the engine may set sizes now */
    as_shell_on_durable(daemon->shell, ticket);
    if (!was_ready && as_shell_is_ready(daemon->shell)) {
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

static void on_committed(void *context, int64_t duration_us, size_t batches, size_t records,
                         size_t log_bytes)
{
    as_metrics_on_commit(((struct daemon *)context)->metrics, duration_us, batches, records,
                         log_bytes, as_system_clock.get_wall(&as_system_clock));
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

static int open_shell(struct daemon *daemon, struct as_store *store, struct as_error *error)
{
    const struct as_shell_config config = {
        .clock = &as_system_clock,
        .targets = daemon->targets,
        .source = daemon->source,
        .storage = daemon->storage,
        .instance = daemon->instance,
        .boot = daemon->boot,
        .version = as_version_get(),
        .config_digest = daemon->config->digest,
        .engine = daemon_get_engine_config(daemon),
        .ruleset = daemon->config->ruleset,
        .tell = daemon_tell_begin(daemon),
        .callbacks = {daemon_on_effect, on_next_deadline, daemon_may_act, daemon_on_fenced, daemon},
    };
    const int status = as_shell_new(&config, store, &daemon->shell, error);
    if (status != 0)
        return status;
    return as_storage_start(daemon->storage, daemon->base, error);
}

static void close_one(struct daemon *daemon, struct retired *retired)
{
    STAILQ_REMOVE(&daemon->retired, retired, retired, next);
    daemon->retired_count--;
    retired->targets->close(retired->targets);
    retired->source->close(retired->source);
    as_config_free(retired->config);
    free(retired);
}

/* The engine waits for an answer. */
static bool has_calls(const struct daemon *daemon, const struct retired *retired)
{
    return daemon->shell && as_shell_has_calls(daemon->shell, retired->targets);
}

static void close_all_retired(struct daemon *daemon)
{
    struct retired *retired;
    while ((retired = STAILQ_FIRST(&daemon->retired)))
        close_one(daemon, retired);
    evtimer_del(daemon->retire);
}

bool daemon_make_retired_room(struct daemon *daemon)
{
    struct retired *retired = STAILQ_FIRST(&daemon->retired), *next;
    for (; retired && daemon->retired_count >= RETIRED_MAX; retired = next) {
        next = STAILQ_NEXT(retired, next);
        if (!has_calls(daemon, retired)) /* nodes that it drains have their marks */
            close_one(daemon, retired);
    }
    return daemon->retired_count < RETIRED_MAX;
}

void daemon_on_retire(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct retired *retired = STAILQ_FIRST(&daemon->retired), *next;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    for (; retired; retired = next) {
        next = STAILQ_NEXT(retired, next);
        if (retired->until.us <= now.us && !has_calls(daemon, retired) &&
            retired->targets->is_idle(retired->targets)) /* draining nodes may take long */
            close_one(daemon, retired);
    }
    if (!STAILQ_EMPTY(&daemon->retired))
        daemon_arm(daemon->retire, RETIRE_LOOK_US);
    else if (daemon->targets)
        daemon_recover_nodes(daemon); /* unfinished work */
}

bool daemon_are_ports_idle(const struct daemon *daemon)
{
    const struct retired *retired;
    bool is_idle = !daemon->targets || daemon->targets->is_idle(daemon->targets);
    STAILQ_FOREACH (retired, &daemon->retired, next)
        is_idle = is_idle && retired->targets->is_idle(retired->targets);
    return is_idle;
}

/* The engine still waits for answers to their requests. */
void daemon_retire_ports(struct daemon *daemon, struct as_config *old_config)
{
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    struct retired *retired = as_xcalloc(1, sizeof(*retired));
    daemon->options->adapters->retire_targets(daemon->targets);
    retired->targets = daemon->targets;
    retired->source = daemon->source;
    retired->config = old_config;
    retired->until.us = as_time_add(now.us, RETIRE_AFTER_US);
    STAILQ_INSERT_TAIL(&daemon->retired, retired, next);
    daemon->retired_count++;
    daemon_arm(daemon->retire, RETIRE_LOOK_US);
}

void daemon_close_state(struct daemon *daemon)
{
    as_receiver_set_shell(daemon->receiver, NULL, NULL, "the state is being opened");
    as_waiting_lose(daemon->waiting);
    close_all_retired(daemon);
    if (daemon->targets)
        daemon->targets->close(daemon->targets);
    daemon->targets = NULL;
    if (daemon->source)
        daemon->source->close(daemon->source);
    daemon->source = NULL;
    daemon_tell_close(daemon);
    if (daemon->shell)
        as_api_on_end(daemon->api, as_system_clock.get_wall(&as_system_clock));
    daemon->shell = as_shell_free(daemon->shell);
    daemon->storage = as_storage_free(daemon->storage);
}

void daemon_limit_patience(struct daemon *daemon, int64_t us)
{
    const int64_t now = as_system_clock.get_mono(&as_system_clock).us;
    atomic_store(&daemon->patience.until_us, now + us);
}

void daemon_forget_config(const struct daemon *daemon, struct as_config *old)
{
    if (!daemon->opener || daemon->opening_config != old)
        as_config_free(old); /* else freed when the opener ends */
}

/* A leader that cannot write blocks all others. One that cannot reach the API server loses its
 * lease anyway. */
static void yield_in_time(struct daemon *daemon)
{
    struct as_leader *leader = daemon->leader;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    const int64_t patience = daemon->config->settings.state.lease.duration_us;
    if (daemon->failing_since.us == INT64_MAX)
        daemon->failing_since = now;
    if (now.us - daemon->failing_since.us < patience)
        return;
    leader->yield(leader);
    if (!leader->look(leader).is_leader)
        as_log(AS_LOG_WARN, "gave the lead up, as the state or the action log cannot be written");
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
    daemon->source = daemon_new_source(daemon, &daemon->config->settings);
    status = open_shell(daemon, store, error);
    if (status == 0)
        daemon_recover_nodes(daemon);
    return status;
}

static void go_on(struct daemon *daemon)
{
    const bool had_failed = daemon->failed;
    if (daemon->is_alone && !daemon->has_led)
        daemon_tell_address(daemon);
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
    const bool was_given_up = atomic_load(&daemon->patience.until_us) != INT64_MAX;
    if (!daemon->stopping && !was_given_up && daemon_is_leading(daemon)) {
        if (status == 0)
            status = open_rest(daemon, opened->store, &error);
        if (status == 0) {
            go_on(daemon);
            return;
        }
        daemon_close_state(daemon);
        note_not_opened(daemon, &error);
        return;
    }
    daemon_limit_patience(daemon, 0);
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

void daemon_open_state(struct daemon *daemon)
{
    struct state_opening opening = {
        .adapters = daemon->options->adapters,
        .settings = &daemon->config->settings,
        .may_create = !daemon->has_led,
        .patience = &daemon->patience,
        .storage = as_storage_config_default,
    };
    opening.storage.clock = &as_system_clock;
    opening.storage.callbacks = (struct as_storage_callbacks){
        .durable = on_durable,
        .hashed = on_hashed,
        .failed = on_storage_failed,
        .committed = on_committed,
        .context = daemon,
    };
    if (!daemon->failed)
        as_receiver_set_shell(daemon->receiver, NULL, NULL, "the state is being opened");
    atomic_store(&daemon->patience.until_us, INT64_MAX);
    daemon->opening_config = daemon->config;
    daemon->opener = state_opener_start(&opening, daemon->base, on_opened, daemon);
}

void daemon_on_recover(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    daemon_limit_patience(daemon, 0); /* for the failed state */
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
