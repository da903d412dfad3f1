/*
 * The real shell on the real storage over media that outlive them: started, stopped, killed,
 * cut off from power, refused by its disk, given new rules.
 */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#define WAKES_PER_SECOND 400

static struct world *clock_world; /* the clock's only state is the world it belongs to */

static as_mono_time get_mono(const struct as_clock *self)
{
    (void)self;
    return (as_mono_time){clock_world->now - clock_world->daemon.booted_at};
}

static as_wall_time get_wall(const struct as_clock *self)
{
    (void)self;
    return (as_wall_time){true_wall(clock_world).us + clock_world->daemon.wall_offset};
}

static const struct as_clock sim_clock = {get_mono, get_wall};

static void start(struct world *world);

static void on_response(struct world *world, void *subject, uint64_t durable)
{
    alertmanager_on_answer(world, subject, durable);
}

static void respond(struct world *world, struct message *message, bool durable)
{
    later(world, latency(world), on_response, message, durable);
}

static void on_start(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    if (!world->daemon.shell && world->daemon.generation == argument)
        start(world);
}

static void close_requests(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    for (size_t i = 0; i < daemon->request_count; i++)
        respond(world, daemon->requests[i].message, false);
    daemon->request_count = 0;
}

static void throw_away(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    close_requests(world);
    if (daemon->port)
        daemon->port->close(daemon->port);
    daemon->port = NULL;
    if (daemon->source)
        daemon->source->close(daemon->source);
    daemon->source = NULL;
    daemon->shell = as_shell_free(daemon->shell);
    daemon->storage = as_storage_free(daemon->storage);
    check_crash(world);
    daemon->generation++;
    daemon->failed = daemon->stopping = daemon->step_planned = daemon->deliver_planned = false;
}

static void start_later(struct world *world, int64_t most)
{
    later(world, between(world, 1, most), on_start, NULL, world->daemon.generation);
}

static void on_recover(struct world *world, void *subject, uint64_t generation)
{
    (void)subject;
    if (world->daemon.generation != generation || !world->daemon.shell)
        return;
    trace(world, "daemon: recovers");
    throw_away(world);
    start(world);
}

/* The callbacks of storage and shell. */

static void on_durable(void *context, uint64_t ticket, int status, const char *error)
{
    struct world *world = context;
    (void)error;
    if (status == 0 && !world->daemon.failed && world->daemon.shell)
        as_shell_on_durable(world->daemon.shell, ticket);
}

static void on_failed(void *context, int status, const char *error)
{
    struct world *world = context;
    (void)error;
    trace(world, "daemon: storage failed with %d", status);
    world->daemon.failed = true;
    close_requests(world);
    later(world, between(world, 1, 3 * SECOND), on_recover, NULL, world->daemon.generation);
}

static void on_outcome(void *context, uint64_t request, const struct as_notification_record *record)
{
    struct world *world = context;
    if (!world->is_verbose)
        return;
    for (size_t i = 0; i < record->notification->alert_count; i++)
        trace(world, "request %llu: %016llx %s", (unsigned long long)request,
              (unsigned long long)record->notification->alerts[i].fingerprint,
              record->outcomes[i].is_queued ? "queued"
                                            : as_reason_get_word(record->outcomes[i].reason));
}

static void on_shell_answer(void *context, uint64_t number)
{
    struct world *world = context;
    struct daemon *daemon = &world->daemon;
    for (size_t i = 0; i < daemon->request_count; i++) {
        const struct request request = daemon->requests[i];
        if (request.number != number)
            continue;
        struct acknowledged *list = &world->acknowledged;
        list->ids = as_xgrow(list->ids, list->count, &list->capacity, AS_ULID_SIZE);
        memcpy(list->ids[list->count++], request.notification, AS_ULID_SIZE);
        daemon->requests[i] = daemon->requests[--daemon->request_count];
        respond(world, request.message, true);
        return;
    }
    fail(world, "request %llu was answered twice, or never came", (unsigned long long)number);
}

static void on_wake(struct world *world, void *subject, uint64_t generation)
{
    struct daemon *daemon = &world->daemon;
    (void)subject;
    if (daemon->generation != generation || !daemon->shell ||
        get_mono(NULL).us < daemon->deadline.us)
        return;
    if (daemon->second != world->now / SECOND) {
        daemon->second = world->now / SECOND;
        daemon->wakes_in_second = 0;
    }
    if (++daemon->wakes_in_second > WAKES_PER_SECOND)
        fail(world, "a busy loop: woken more than %d times in a second", WAKES_PER_SECOND);
    const as_mono_time before = get_mono(NULL);
    as_shell_wake(daemon->shell);
    if (daemon->deadline.us <= before.us)
        fail(world, "a deadline that does not move on");
}

static void on_deadline(void *context, as_mono_time deadline)
{
    struct world *world = context;
    struct daemon *daemon = &world->daemon;
    if (daemon->deadline.us == deadline.us)
        return;
    daemon->deadline = deadline;
    if (deadline.us == AS_MONO_NEVER.us)
        return;
    const int64_t delay = deadline.us - get_mono(NULL).us;
    later(world, delay > 0 ? delay : 0, on_wake, NULL, daemon->generation);
}

static void on_effect(void *context, const struct as_effect *effect)
{
    check_effect(context, effect);
}

/* Life. */

static void start(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    struct as_error error = AS_ERROR_INIT;
    trace(world, "daemon: starts on %s", daemon->boot);
    daemon->config.seed = as_random_get(&world->random);
    daemon->deadline = AS_MONO_NEVER;
    daemon->port = server_open_port(world);
    daemon->source = source_open_port(world);
    struct as_storage_config storage = as_storage_config_default;
    storage.store = as_store_memory_attach(daemon->state);
    storage.audit = as_audit_memory_attach(daemon->log);
    storage.clock = &sim_clock;
    storage.callbacks =
        (struct as_storage_callbacks){.durable = on_durable, .failed = on_failed, .context = world};
    struct as_store *store = storage.store;
    if (as_storage_new(&storage, &daemon->storage, &error) != 0) {
        fail(world, "storage: %s", error.text);
        return;
    }
    const struct as_shell_config shell = {
        .clock = &sim_clock,
        .targets = daemon->port,
        .source = daemon->source,
        .storage = daemon->storage,
        .instance = "sim",
        .boot = daemon->boot,
        .version = "0",
        .config_digest = "",
        .engine = daemon->config,
        .ruleset = daemon->ruleset,
        .callbacks = {on_outcome, on_shell_answer, on_effect, on_deadline, world},
    };
    if (as_shell_new(&shell, store, &daemon->shell, &error) != 0) {
        fail(world, "restore: %s", error.text);
        return;
    }
    if (world->is_calm || chance(world, 200))
        check_state_against_log(world);
    daemon_poll(world);
}

static void crash(struct world *world, bool is_power_loss)
{
    struct daemon *daemon = &world->daemon;
    trace(world, "daemon: %s", is_power_loss ? "loses power" : "is killed");
    /* what waits may be in the store all the same, or not; part of a line may be in the log */
    as_store_memory_fail(daemon->state, 0, -EIO, chance(world, 500));
    as_audit_memory_fail(daemon->log, 0, -EIO, (size_t)between(world, 0, 300));
    throw_away(world);
    if (is_power_loss) {
        size_t size;
        (void)as_audit_memory_get_lines(daemon->log, &size);
        const size_t synced = as_audit_memory_get_synced(daemon->log);
        as_audit_memory_cut(daemon->log, (size_t)between(world, (int64_t)synced, (int64_t)size));
    }
    if (is_power_loss && !world->allows_jumps) {
        (void)snprintf(daemon->boot, sizeof(daemon->boot), "boot-%u", ++daemon->boots);
        daemon->booted_at = world->now - between(world, 1, 20) * SECOND;
    }
    start_later(world, chance(world, 100) ? 5 * MINUTE : 5 * SECOND);
}

static void reload(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    struct as_ruleset *old = daemon->ruleset;
    rules_randomize(world, &daemon->spec);
    daemon->ruleset = spec_make_ruleset(&daemon->spec);
    daemon->config.dry_run = chance(world, 50);
    trace(world, "daemon: new rules%s", daemon->config.dry_run ? ", all dry" : "");
    as_shell_reload(daemon->shell, daemon->ruleset, &daemon->config, "", daemon->port,
                    daemon->source, "");
    as_ruleset_free(old);
}

static void on_trouble(struct world *world, void *subject, uint64_t argument)
{
    struct daemon *daemon = &world->daemon;
    (void)subject;
    (void)argument;
    if (world->is_calm)
        return;
    later(world, between(world, 1, 240) * SECOND, on_trouble, NULL, 0);
    if (!daemon->shell || daemon->failed || daemon->stopping)
        return;
    switch (between(world, 0, 9)) {
    case 0:
    case 1:
    case 2: crash(world, false); break;
    case 3: crash(world, true); break;
    case 4: {
        const bool is_applied = chance(world, 500);
        as_store_memory_fail(daemon->state, (uint64_t)between(world, 0, 5), -ENOSPC, is_applied);
        break;
    }
    case 5: {
        const size_t torn = (size_t)between(world, 0, 300);
        as_audit_memory_fail(daemon->log, (uint64_t)between(world, 0, 5), -ENOSPC, torn);
        break;
    }
    case 6:
        trace(world, "daemon: is asked to stop");
        daemon->stopping = true;
        as_shell_stop(daemon->shell);
        break;
    case 7:
        if (world->allows_jumps) {
            daemon->wall_offset = between(world, -7200, 7200) * SECOND;
            trace(world, "the wall clock jumps to %+lld s",
                  (long long)(daemon->wall_offset / SECOND));
        }
        break;
    default: reload(world); break;
    }
    daemon_poll(world);
}

void daemon_deliver(struct world *world, struct message *message)
{
    struct daemon *daemon = &world->daemon;
    if (!daemon->shell || daemon->failed || daemon->stopping ||
        !as_storage_has_room(daemon->storage) ||
        daemon->request_count == AS_ARRAY_SIZE(daemon->requests)) {
        respond(world, message, false);
        return;
    }
    struct as_notification *notification = alertmanager_write(world, message);
    struct request *request = &daemon->requests[daemon->request_count++];
    *request = (struct request){.number = ++daemon->next_request, .message = message};
    memcpy(request->notification, notification->id, AS_ULID_SIZE);
    as_shell_notify(daemon->shell, notification, request->number);
    as_notification_free(notification);
    daemon_poll(world);
}

static void on_storage_deliver(struct world *world, void *subject, uint64_t generation)
{
    (void)subject;
    if (world->daemon.generation != generation)
        return;
    world->daemon.deliver_planned = false;
    as_storage_deliver(world->daemon.storage);
    daemon_poll(world);
}

static void on_storage_step(struct world *world, void *subject, uint64_t generation)
{
    struct daemon *daemon = &world->daemon;
    (void)subject;
    if (daemon->generation != generation)
        return;
    daemon->step_planned = false;
    if (as_storage_step(daemon->storage) && !daemon->deliver_planned) {
        daemon->deliver_planned = true;
        later(world, between(world, 0, 2000), on_storage_deliver, NULL, generation);
    }
    daemon_poll(world);
}

static void finish(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    struct as_error error = AS_ERROR_INIT;
    as_shell_record_stop(daemon->shell);
    if (as_storage_drain(daemon->storage, &error) == 0)
        trace(world, "daemon: has stopped");
    throw_away(world);
    start_later(world, MINUTE);
}

void daemon_poll(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    if (!daemon->storage || !daemon->shell)
        return;
    const bool is_waiting = as_storage_get_counts(daemon->storage).waiting_batches > 0;
    const as_mono_time sync = as_storage_get_next_deadline(daemon->storage);
    if (daemon->stopping && !daemon->failed && !is_waiting && !daemon->deliver_planned &&
        as_shell_is_idle(daemon->shell)) {
        finish(world);
        return;
    }
    if (daemon->step_planned)
        return;
    if (is_waiting) {
        const bool is_slow = !world->is_calm && chance(world, 10);
        daemon->step_planned = true;
        later(world, is_slow ? between(world, 1, 10) * SECOND : between(world, 100, 8000),
              on_storage_step, NULL, daemon->generation);
    } else if (sync.us != AS_MONO_NEVER.us) {
        const int64_t delay = sync.us - get_mono(NULL).us;
        daemon->step_planned = true;
        later(world, delay > 0 ? delay : 0, on_storage_step, NULL, daemon->generation);
    }
}

bool daemon_is_at_rest(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    return daemon->shell && !daemon->failed && as_shell_is_idle(daemon->shell) &&
           as_storage_get_counts(daemon->storage).waiting_batches == 0 && !daemon->deliver_planned;
}

void daemon_start(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    clock_world = world;
    daemon->state = as_store_memory_new();
    daemon->log = as_audit_memory_new();
    daemon->peek = as_store_memory_attach(daemon->state);
    daemon->booted_at = -10 * SECOND;
    (void)snprintf(daemon->boot, sizeof(daemon->boot), "boot-0");
    daemon->config.incident_expiry_us = between(world, 2400, 20000) * SECOND;
    daemon->config.stale_window_us = between(world, 60, 240) * SECOND;
    daemon->config.resync_us = chance(world, 600) ? between(world, 20, 120) * SECOND : 0;
    if (chance(world, 300))
        daemon->config.limits = (struct as_limits){
            .actions_max = (uint32_t)between(world, 1, 4),
            .actions_per_us = between(world, 10, 120) * SECOND,
        };
    if (chance(world, 300)) {
        daemon->config.limits.scale_down_milli_percent = between(world, 5, 60) * 1000;
        daemon->config.limits.scale_down_per_us = between(world, 30, 600) * SECOND;
    }
    rules_randomize(world, &daemon->spec);
    daemon->ruleset = spec_make_ruleset(&daemon->spec);
    start(world);
    later(world, 30 * SECOND, on_trouble, NULL, 0);
}

/* With nothing under way: what was forgotten properly stays forgotten. */
void daemon_restart(struct world *world)
{
    throw_away(world);
    start(world);
}

void daemon_stop(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    if (daemon->storage) {
        as_store_memory_fail(daemon->state, 0, -EIO, false);
        as_audit_memory_fail(daemon->log, 0, -EIO, 0);
    }
    struct event *event;
    throw_away(world);
    RB_FOREACH (event, event_tree, &world->events) {
        if (event->happen == on_response)
            alertmanager_drop(event->subject);
    }
    daemon->peek->close(daemon->peek);
    as_store_memory_free(daemon->state);
    as_audit_memory_free(daemon->log);
    as_ruleset_free(daemon->ruleset);
}
