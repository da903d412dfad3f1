/*
 * The real shell on the real storage over media that outlive them: started, stopped, given new
 * rules; and what the daemon does around them. Two of them may run for a while: world->daemon is
 * always the one whose event it is, and the other one is world->former (daemon_enter).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

#define WAKES_PER_SECOND 400
#define LOOK_EVERY_US    (250 * AS_US_PER_MS) /* at the kill switch */

static as_mono_time get_mono(const struct as_clock *self)
{
    const struct sim_clock *clock = (const struct sim_clock *)self;
    return (as_mono_time){clock->world->now - clock->booted_at};
}

static as_wall_time get_wall(const struct as_clock *self)
{
    const struct sim_clock *clock = (const struct sim_clock *)self;
    return (as_wall_time){true_wall(clock->world).us + clock->wall_offset};
}

static as_mono_time daemon_now(const struct world *world)
{
    return get_mono(&world->daemon.clock->clock);
}

void daemon_new_clock(struct world *world, int64_t booted_at)
{
    struct daemon *daemon = &world->daemon;
    daemon->clock = as_xmalloc(sizeof(*daemon->clock));
    *daemon->clock = (struct sim_clock){{get_mono, get_wall}, world, booted_at, 0};
    (void)snprintf(daemon->boot, sizeof(daemon->boot), "boot-%u", world->boots++);
}

static void swap(struct world *world)
{
    const struct daemon daemon = world->daemon;
    world->daemon = world->former;
    world->former = daemon;
    world->is_swapped = !world->is_swapped;
}

bool daemon_is_gone(const struct world *world, uint64_t generation)
{
    return !(world->daemon.shell && world->daemon.generation == generation) &&
           !(world->former.shell && world->former.generation == generation);
}

bool daemon_enter(struct world *world, uint64_t generation, event_fn *happen, void *subject,
                  uint64_t argument)
{
    if (daemon_is_gone(world, generation))
        return false;
    if (world->daemon.generation != generation)
        swap(world);
    const int64_t wait = world->daemon.paused_until - world->now;
    if (wait > 0) {
        later(world, wait + between(world, 0, 2000), happen, subject, argument);
        daemon_leave(world);
        return false;
    }
    return true;
}

void daemon_leave(struct world *world)
{
    if (world->is_swapped)
        swap(world);
}

bool daemon_leads(const struct world *world)
{
    return world->now < world->daemon.until;
}

static void on_response(struct world *world, void *subject, uint64_t durable)
{
    alertmanager_on_answer(world, subject, durable);
}

static void respond(struct world *world, struct message *message, bool durable)
{
    later(world, latency(world), on_response, message, durable);
}

void daemon_refuse(struct world *world, struct message *message)
{
    respond(world, message, false);
}

static void on_start(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    if (!world->daemon.shell && world->daemon.generation == argument)
        daemon_open(world);
}

static void close_requests(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    for (size_t i = 0; i < daemon->request_count; i++) {
        if (daemon->requests[i].message)
            respond(world, daemon->requests[i].message, false);
    }
    daemon->request_count = 0;
}

static void close_ports(struct daemon *daemon)
{
    if (daemon->port)
        daemon->port->close(daemon->port);
    daemon->port = NULL;
    if (daemon->source)
        daemon->source->close(daemon->source);
    daemon->source = NULL;
    if (daemon->messenger)
        daemon->messenger->close(daemon->messenger);
    daemon->messenger = NULL;
}

void daemon_throw_away(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    close_requests(world);
    close_ports(daemon);
    daemon->shell = as_shell_free(daemon->shell);
    daemon->storage = as_storage_free(daemon->storage);
    if (daemon->is_former) {
        as_ruleset_free(daemon->ruleset);
        free(daemon->clock);
        return;
    }
    check_crash(world);
    daemon->generation = ++world->last_generation;
    daemon->failed = daemon->stopping = daemon->step_planned = daemon->deliver_planned = false;
    daemon->is_halted = false;
    daemon->until = INT64_MAX;
    daemon->paused_until = 0;
    daemon->scales = 0;
    daemon->planned = -1;
}

void daemon_open_later(struct world *world, int64_t most)
{
    later(world, between(world, 1, most), on_start, NULL, world->daemon.generation);
}

static void on_recover(struct world *world, void *subject, uint64_t generation)
{
    if (!daemon_enter(world, generation, on_recover, subject, generation))
        return;
    trace(world, "daemon: recovers");
    daemon_throw_away(world);
    if (!world->daemon.is_former)
        daemon_open(world);
    daemon_leave(world);
}

/* The callbacks of storage and shell. */

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    struct world *world = context;
    (void)error;
    if (status == 0 && !world->daemon.failed && world->daemon.shell)
        as_shell_on_durable(world->daemon.shell, call_id);
}

static void on_hashed(void *context, uint64_t number, const char *hash)
{
    struct world *world = context;
    if (!world->daemon.failed && world->daemon.shell)
        as_shell_on_hashed(world->daemon.shell, number, hash);
}

static void on_failed(void *context, int status, const char *error)
{
    struct world *world = context;
    (void)error;
    struct daemon *daemon = &world->daemon;
    trace(world, "daemon: storage failed with %d", status);
    if (status == -ESTALE && !daemon->is_former)
        fail(world, "the leader's own commit was refused as a former leader's");
    if (status == -ESTALE)
        trouble_note(world, TROUBLE_FORMER_COMMIT);
    else if (daemon->planned >= 0 && world->full_until == 0)
        trouble_note(world, (enum trouble)daemon->planned);
    daemon->planned = -1;
    daemon->failed = true;
    close_requests(world);
    later(world, between(world, 1, 3 * SECOND), on_recover, NULL, daemon->generation);
}

static void note_repeat(struct daemon *daemon, uint64_t number,
                        const struct as_notification_record *record)
{
    bool is_repeat = true;
    for (size_t i = 0; i < record->notification->alert_count; i++) {
        const struct as_alert_outcome *outcome = &record->outcomes[i];
        is_repeat =
            is_repeat && !outcome->is_queued &&
            (outcome->reason == AS_REASON_DUPLICATE || outcome->reason == AS_REASON_MAX_STEPS);
    }
    for (size_t i = 0; i < daemon->request_count; i++) {
        if (daemon->requests[i].number == number)
            daemon->requests[i].is_repeat = is_repeat;
    }
}

static void on_outcome(struct world *world, uint64_t request,
                       const struct as_notification_record *record)
{
    note_repeat(&world->daemon, request, record);
    bodies_note(world, record);
    if (!world->is_verbose)
        return;
    for (size_t i = 0; i < record->notification->alert_count; i++)
        trace(world, "request %llu: %016llx %s", (unsigned long long)request,
              (unsigned long long)record->notification->alerts[i].fingerprint,
              record->outcomes[i].is_queued ? "queued"
                                            : as_reason_get_word(record->outcomes[i].reason));
}

static void on_shell_answer(struct world *world, uint64_t number)
{
    struct daemon *daemon = &world->daemon;
    for (size_t i = 0; i < daemon->request_count; i++) {
        const struct request request = daemon->requests[i];
        if (request.number != number)
            continue;
        daemon->requests[i] = daemon->requests[--daemon->request_count];
        if (request.order > 0) {
            operators_on_answer(world, request.order);
            return;
        }
        if (daemon->is_former) /* what it stored before the other began */
            trouble_note(world, TROUBLE_FORMER_ANSWER);
        struct acknowledged *list = &world->acknowledged;
        list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
        struct acknowledgement *item = &list->items[list->count++];
        *item = (struct acknowledgement){.at = world->now, .is_repeat = request.is_repeat};
        memcpy(item->id, request.notification, AS_ULID_SIZE);
        if (request.is_repeat)
            faults_after_repeat(world);
        respond(world, request.message, true);
        return;
    }
    fail(world, "request %llu was answered twice, or never came", (unsigned long long)number);
}

static void on_wake(struct world *world, void *subject, uint64_t generation)
{
    struct daemon *daemon = &world->daemon;
    if (!daemon_enter(world, generation, on_wake, subject, generation))
        return;
    if (!daemon->shell || daemon_now(world).us < daemon->deadline.us) {
        daemon_leave(world);
        return;
    }
    if (daemon->second != world->now / SECOND) {
        daemon->second = world->now / SECOND;
        daemon->wakes_in_second = 0;
    }
    if (++daemon->wakes_in_second > WAKES_PER_SECOND)
        fail(world, "a busy loop: woken more than %d times in a second", WAKES_PER_SECOND);
    const as_mono_time before = daemon_now(world);
    as_shell_wake(daemon->shell);
    if (daemon->deadline.us <= before.us)
        fail(world, "a deadline that does not move on");
    daemon_leave(world);
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
    const int64_t delay = deadline.us - daemon_now(world).us;
    later(world, delay > 0 ? delay : 0, on_wake, NULL, daemon->generation);
}

static void on_effect(void *context, const struct as_effect *effect, const struct as_buf *record)
{
    (void)record;
    struct world *world = context;
    if (!world->daemon.is_former) /* of what that one decides, nothing comes of it */
        check_effect(world, effect);
    if (effect->kind == AS_EFFECT_RECORD_NOTIFICATION)
        on_outcome(world, effect->call_id, effect->notification);
    else if (effect->kind == AS_EFFECT_ANSWER)
        on_shell_answer(world, effect->call_id);
}

/* Life. */

static void note_failed_start(struct world *world, const struct as_error *error)
{
    if (world->full_until == 0) {
        fail(world, "storage: %s", error->text);
        return;
    }
    trace(world, "daemon: cannot start: %s", error->text);
    trouble_note(world, TROUBLE_START_FAILED);
    close_ports(&world->daemon);
    daemon_open_later(world, 2 * SECOND);
}

void daemon_open(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    struct as_error error = AS_ERROR_INIT;
    trace(world, "daemon: starts on %s", daemon->boot);
    if (world->has_policies) {
        policies_on_start(world);
        as_ruleset_free(daemon->ruleset);
        daemon->ruleset = policies_make_ruleset(world, &daemon->spec);
    }
    daemon->config.seed = as_random_get(&world->random);
    daemon->deadline = AS_MONO_NEVER;
    daemon->port = server_open_port(world);
    daemon->source = source_open_port(world);
    daemon->messenger = people_open_messenger(world);
    struct as_storage_config storage = as_storage_config_default;
    storage.store = as_store_memory_attach(daemon->state);
    storage.store->is_shared = !world->allows_jumps; /* where another may come to lead */
    storage.audit = as_audit_memory_attach(daemon->log);
    storage.clock = &daemon->clock->clock;
    storage.callbacks = (struct as_storage_callbacks){
        .durable = on_durable, .hashed = on_hashed, .failed = on_failed, .context = world};
    struct as_store *store = storage.store;
    if (as_storage_new(&storage, &daemon->storage, &error) != 0) {
        note_failed_start(world, &error);
        return;
    }
    const struct as_shell_config shell = {
        .clock = &daemon->clock->clock,
        .targets = daemon->port,
        .source = daemon->source,
        .storage = daemon->storage,
        .instance = "sim",
        .boot = daemon->boot,
        .version = "0",
        .config_digest = "",
        .engine = daemon->config,
        .ruleset = daemon->ruleset,
        .notifier = people_get_config(world),
        .callbacks = {on_effect, on_deadline, .context = world},
    };
    if (as_shell_new(&shell, store, &daemon->shell, &error) != 0) {
        fail(world, "restore: %s", error.text);
        return;
    }
    if (world->is_calm || chance(world, 200))
        check_state_against_log(world);
    daemon_note_switch(world);
    daemon_poll(world);
}

void daemon_set_rules(struct world *world, const struct spec *spec)
{
    struct daemon *daemon = &world->daemon;
    struct as_ruleset *old = daemon->ruleset;
    trouble_note(world, TROUBLE_RELOAD + daemon_get_phase(world));
    world->rule_changes++;
    check_approvals_reload(world);
    daemon->former_spec = daemon->spec;
    daemon->spec = *spec;
    daemon->ruleset = policies_make_ruleset(world, spec);
    policies_relate(world, old);
    trace(world, "daemon: new rules%s", daemon->config.dry_run ? ", all dry" : "");
    struct as_messenger *former = daemon->messenger;
    daemon->messenger = people_open_messenger(world);
    const struct as_notifier_config notifier = people_get_config(world);
    as_shell_reload(daemon->shell, daemon->ruleset, &daemon->config, "", daemon->port,
                    daemon->source, &notifier, "");
    former->close(former);
    as_ruleset_free(old);
}

void daemon_reload(struct world *world)
{
    struct spec spec = world->daemon.former_spec;
    if (spec.rules[0].name && chance(world, 250))
        trouble_note(world, TROUBLE_RELOAD_UNDONE);
    else
        rules_randomize(world, &spec);
    world->daemon.config.dry_run = chance(world, 50);
    daemon_set_rules(world, &spec);
}

enum phase daemon_get_phase(struct world *world)
{
    const struct daemon *daemon = &world->daemon;
    if (daemon->scales > 0)
        return PHASE_SENT;
    if (as_store_memory_get_count(daemon->state, AS_STORE_INTENT) > 0 && daemon->deliver_planned)
        return PHASE_INTENT;
    return daemon->storage && as_storage_get_counts(daemon->storage).waiting_batches > 0
               ? PHASE_COMMITTING
               : PHASE_IDLE;
}

static bool takes_requests(const struct daemon *daemon)
{
    return daemon->shell && !daemon->failed && as_storage_has_room(daemon->storage) &&
           daemon->request_count < AS_ARRAY_SIZE(daemon->requests);
}

static void hand_over(struct world *world, struct message *message)
{
    struct daemon *daemon = &world->daemon;
    if (!takes_requests(daemon) || daemon->stopping) {
        respond(world, message, false);
        return;
    }
    struct as_notification *notification = alertmanager_write(world, message);
    struct request *request = &daemon->requests[daemon->request_count++];
    *request = (struct request){.number = ++daemon->next_request, .message = message};
    memcpy(request->notification, notification->id, AS_ULID_SIZE);
    notification->base = bodies_find(world, message);
    as_shell_notify(daemon->shell, notification, request->number);
    as_notification_free(notification);
    daemon_poll(world);
}

/* While the former leader runs, some still ask it. Who is paused answers nobody, or late. */
void daemon_deliver(struct world *world, struct message *message)
{
    if (world->former.shell && chance(world, 300)) {
        trouble_note(world, TROUBLE_FORMER_ASKED);
        swap(world);
    }
    const int64_t wait = world->daemon.paused_until - world->now;
    if (wait <= 0)
        hand_over(world, message);
    else if (wait < 10 * SECOND) {
        alertmanager_post(world, message, wait + between(world, 0, SECOND));
        alertmanager_drop(world, message);
    } else
        later(world, 10 * SECOND, on_response, message, false);
    daemon_leave(world);
}

static void on_order(struct world *world, void *subject, uint64_t order)
{
    (void)subject;
    daemon_order(world, order);
}

/* As a notification comes; but nobody sends it again. */
void daemon_order(struct world *world, uint64_t order)
{
    if (world->former.shell && chance(world, 300)) {
        trouble_note(world, TROUBLE_ORDER_OF_FORMER);
        swap(world);
    }
    struct daemon *daemon = &world->daemon;
    const int64_t wait = daemon->paused_until - world->now;
    if (wait > 0) {
        if (wait < 10 * SECOND)
            later(world, wait + between(world, 0, SECOND), on_order, NULL, order);
    } else if (takes_requests(daemon)) {
        struct request *request = &daemon->requests[daemon->request_count++];
        *request = (struct request){.number = ++daemon->next_request, .order = order};
        as_shell_order(daemon->shell, &world->orders[order - 1]->order, request->number);
        daemon_poll(world);
    }
    daemon_leave(world);
}

/* The kill switch, looked at as the daemon does: now and then, and before whatever may act. */

static void look_at_switch(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    const struct as_halt halt = {world->kill_switch.who, world->kill_switch.reason};
    if (!daemon->shell || daemon->failed || !(halt.reason || daemon->is_halted))
        return;
    daemon->is_halted = halt.reason != NULL;
    as_shell_halt(daemon->shell, &halt);
    check_halt(world);
}

static void on_look(struct world *world, void *subject, uint64_t generation)
{
    if (!daemon_enter(world, generation, on_look, subject, generation))
        return;
    look_at_switch(world);
    daemon_poll(world);
    daemon_leave(world);
}

void daemon_note_switch(struct world *world)
{
    const struct daemon *const daemons[] = {&world->daemon, &world->former};
    for (size_t i = 0; i < AS_ARRAY_SIZE(daemons) && world->has_operators; i++) {
        if (daemons[i]->shell)
            later(world, between(world, 0, LOOK_EVERY_US), on_look, NULL, daemons[i]->generation);
    }
}

static void on_storage_deliver(struct world *world, void *subject, uint64_t generation)
{
    if (!daemon_enter(world, generation, on_storage_deliver, subject, generation))
        return;
    world->daemon.deliver_planned = false;
    look_at_switch(world);
    as_storage_deliver(world->daemon.storage);
    stories_note_boundary(world);
    daemon_poll(world);
    daemon_leave(world);
}

static void on_storage_step(struct world *world, void *subject, uint64_t generation)
{
    struct daemon *daemon = &world->daemon;
    if (!daemon_enter(world, generation, on_storage_step, subject, generation))
        return;
    daemon->step_planned = false;
    stories_note_boundary(world);
    if (as_storage_step(daemon->storage) && !daemon->deliver_planned) {
        daemon->deliver_planned = true;
        later(world, between(world, 0, 2000), on_storage_deliver, NULL, generation);
    }
    daemon_poll(world);
    daemon_leave(world);
}

static void finish(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    struct as_error error = AS_ERROR_INIT;
    as_shell_record_stop(daemon->shell);
    if (as_storage_drain(daemon->storage, &error) == 0)
        trace(world, "daemon: has stopped");
    daemon_throw_away(world);
    daemon_open_later(world, MINUTE);
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
        const int64_t delay = sync.us - daemon_now(world).us;
        daemon->step_planned = true;
        later(world, delay > 0 ? delay : 0, on_storage_step, NULL, daemon->generation);
    }
}

bool daemon_is_at_rest(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    return daemon->shell && !world->former.shell && !daemon->failed &&
           as_shell_is_idle(daemon->shell) &&
           as_storage_get_counts(daemon->storage).waiting_batches == 0 && !daemon->deliver_planned;
}

void daemon_start(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    daemon->state = as_store_memory_new();
    daemon->log = as_audit_memory_new();
    daemon->peek = as_store_memory_attach(daemon->state);
    daemon->until = INT64_MAX;
    daemon->planned = -1;
    daemon_new_clock(world, -10 * SECOND);
    static const struct as_scope scopes[] = {{.credential = "operator"}};
    daemon->config.scopes = scopes;
    daemon->config.scope_count = AS_ARRAY_SIZE(scopes);
    daemon->config.incident_expiry_us = between(world, 2400, 20000) * SECOND;
    daemon->config.stale_window_us = between(world, 60, 240) * SECOND;
    static const char *const receivers[] = {"scaler"};
    daemon->config.receivers = receivers;
    daemon->config.receiver_count = chance(world, 500); /* else it learns them */
    daemon->config.resync_us = chance(world, 600) ? between(world, 20, 120) * SECOND : 0;
    if (chance(world, 300)) {
        daemon->config.limits.actions_max = (uint32_t)between(world, 1, 4);
        daemon->config.limits.actions_per_us = between(world, 10, 120) * SECOND;
    }
    if (chance(world, 300)) {
        daemon->config.limits.scale_down_milli_percent = between(world, 5, 60) * 1000;
        daemon->config.limits.scale_down_per_us = between(world, 30, 600) * SECOND;
    }
    if (world->pools)
        pools_configure(world, &daemon->config);
    rules_randomize(world, &daemon->spec);
    stories_prepare(world);
    people_start(world);
    daemon->ruleset = policies_make_ruleset(world, &daemon->spec);
    daemon_open(world);
}

/* With nothing under way: what was forgotten properly stays forgotten. */
void daemon_restart(struct world *world)
{
    daemon_throw_away(world);
    daemon_open(world);
}

void daemon_stop(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    if (daemon->storage) {
        as_store_memory_fail(daemon->state, 0, -EIO, false);
        as_audit_memory_fail(daemon->log, 0, -EIO, 0);
    }
    struct event *event;
    daemon_throw_away(world);
    if (world->former.shell) {
        swap(world);
        daemon_throw_away(world);
        daemon_leave(world);
    }
    RB_FOREACH (event, event_tree, &world->events) {
        if (event->happen == on_response)
            alertmanager_drop(world, event->subject);
    }
    people_stop(world);
    daemon->peek->close(daemon->peek);
    as_store_memory_free(daemon->state);
    as_audit_memory_free(daemon->log);
    as_ruleset_free(daemon->ruleset);
    policies_free(world);
    free(daemon->clock);
}
