/*
 * Targets behind an API server: conditional on versions, slow, refusing, or silent about the
 * outcome; and other people, who also change sizes, remove targets and create them again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

#define LATE_MAX (50 * SECOND) /* how late a request may still be carried out */

#define SHOWN_MAX (20 * SECOND) /* from a look at a target to what comes of it */

#define STALE_MAX (20 * SECOND) /* how long a cache may show the size of before */

enum fault {
    NO_FAULT,
    REFUSED,
    SILENT,
    SILENT_BUT_DONE,
    SILENT_AND_LATE,
    STALE,
    OLDER,
    ENDED_BADLY
};

struct call {
    bool is_scale;
    uint64_t call_id, port; /* port: generation of the one that asked */
    struct server_target *target;
    struct as_scale_request request;
    char rule[16];
    int64_t sent_at;
    struct as_cooldown cooldown;
    bool is_step_down;
    uint64_t rule_changes; /* as it was sent */
    enum fault fault;
    bool is_undone;         /* ENDED_BADLY: by the cloud itself */
    char patch[PATCH_SIZE]; /* of a field */
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    struct as_observation observation;
    struct as_scale_result result;
    struct pool_look look;
};

static void call_free(struct call *call)
{
    as_pool_request_deinit(&call->look.request);
    as_arena_deinit(&call->look.arena);
    free(call);
}

struct server_target *server_find(struct world *world, const char *id)
{
    for (size_t i = 0; i < world->target_count; i++) {
        if (strcmp(world->targets[i].id, id) == 0)
            return &world->targets[i];
    }
    if (world->target_count == SERVER_TARGETS) {
        fail(world, "an unexpected target: %s", id);
        return &world->targets[0];
    }
    struct server_target *target = &world->targets[world->target_count++];
    *target = (struct server_target){
        .exists = true,
        .own_min = -1,
        .own_max = -1,
        .version = 100,
        .last_up_at = INT64_MIN,
        .last_down_at = INT64_MIN,
        .last_return_at = INT64_MIN,
        .rival.contended_at = INT64_MIN,
    };
    (void)snprintf(target->id, sizeof(target->id), "%s", id);
    target->group = pools_find_group(world, id);
    rivals_choose(world, target);
    target->has_no_version = chance(world, 150);
    target->object = strncmp(id, "kubernetes/", 11) == 0 && chance(world, 700);
    target->size = (int32_t)between(world, 1, 8);
    if (chance(world, 150))
        target->own_min = (int32_t)between(world, 0, 3);
    if (chance(world, 150))
        target->own_max = (int32_t)between(world, 6, 12);
    if (world->has_fields)
        fields_choose(world, target);
    if (pools_has(world, target)) {
        target->has_no_version = true;
        target->own_min = target->own_max = -1;
        target->size = pools_get_size(world, target);
    }
    return target;
}

static void print_version(const struct server_target *target, char *version_out)
{
    if (target->has_no_version)
        version_out[0] = '\0';
    else
        (void)snprintf(version_out, AS_VERSION_SIZE, "%llu%s", (unsigned long long)target->version,
                       target->field.is_there ? "*64Mi" : "");
}

static void change_size(struct world *world, struct server_target *target, int32_t size,
                        bool is_ours);

/* The cloud's operation has failed, and the size is what it was before. */
static void undo(struct world *world, const struct call *call)
{
    struct server_target *target = call->target;
    if (target->size != call->request.to)
        return;
    schedules_note_others(target, target->size, call->request.from);
    change_size(world, target, call->request.from, false);
    target->last.overwritten = true;
    trouble_note(world, TROUBLE_ENDED_BADLY_UNDONE);
    trace(world, "server: %s is %d again", target->id, target->size);
}

static void on_answer(struct world *world, void *subject, uint64_t argument)
{
    struct call *call = subject;
    if (daemon_is_gone(world, call->port)) {
        call_free(call);
        return;
    }
    if (!daemon_enter(world, call->port, on_answer, call, argument))
        return;
    if (call->is_undone)
        undo(world, call);
    if (call->is_scale) {
        stories_note_boundary(world);
        world->daemon.scales--;
        call->scaled(call->context, call->call_id, &call->result);
    } else {
        call->observed(call->context, call->call_id, &call->observation);
    }
    call_free(call);
    daemon_poll(world);
    daemon_leave(world);
}

static void change_size(struct world *world, struct server_target *target, int32_t size,
                        bool is_ours)
{
    if (target->older_count == OLDER_MAX)
        memmove(target->older, target->older + 1, --target->older_count * sizeof(target->older[0]));
    target->older[target->older_count++] = (struct older){target->size, target->version};
    target->before.size = target->size;
    target->before.version = target->version;
    target->before.until = world->now + STALE_MAX;
    target->before.was_ours = is_ours;
    target->size = size;
    target->version++;
    fields_note_version(world, target);
    if (target->field.is_there && !is_ours)
        fields_set(world, target, size);
    if (target->group >= 0 && !is_ours)
        pools_set_size(world, target->group, size);
    check_orders_size(world, target);
}

static void apply(struct world *world, struct call *call, int32_t to)
{
    struct server_target *target = call->target;
    trace(world, "server: %s is set from %d to %d", target->id, target->size, to);
    check_direction(world, target, &call->request);
    check_applied(world, target, call->sent_at, to, call->result.returned, call->rule[0] != '\0',
                  &call->cooldown);
    if (call->is_step_down)
        check_silence(world, target);
    const int32_t before = target->size;
    change_size(world, target, to, true);
    schedules_note_applied(world, target, before, to,
                           call->rule[0] != '\0' || call->request.is_ordered);
    rivals_note_applied(world, target, before);
    if (!world->is_calm && chance(world, 50))
        target->busy_until = world->now + between(world, 1, 60) * SECOND;
}

static void carry_out(struct world *world, struct call *call)
{
    struct server_target *target = call->target;
    char version[AS_VERSION_SIZE];
    print_version(target, version);
    stories_note_request(world, target);
    if (!target->exists) {
        call->result.outcome = AS_REASON_TARGET_NOT_FOUND;
    } else if (target->field.is_there) {
        call->result.outcome = fields_carry_out(world, target, call->patch, call->request.to)
                                   ? AS_REASON_APPLIED
                                   : AS_REASON_CONFLICT;
    } else if (target->has_no_version ? target->size != call->request.from
                                      : call->request.version[0] != '\0' &&
                                            strcmp(version, call->request.version) != 0) {
        call->result.outcome = AS_REASON_CONFLICT; /* one without a version is unconditional */
    } else if (target->group >= 0) {
        pools_carry_out(world, target, &call->request, call->rule_changes != world->rule_changes,
                        &call->result);
    } else {
        call->result.outcome = AS_REASON_APPLIED;
    }
    if (call->result.outcome == AS_REASON_APPLIED)
        apply(world, call, call->result.is_partial ? call->result.reached : call->request.to);
}

static void on_late_arrival(struct world *world, void *subject, uint64_t argument)
{
    struct call *call = subject;
    (void)argument;
    trace(world, "server: a late request for %s", call->target->id);
    trouble_note(world, TROUBLE_DONE_LATE);
    if (call->port != world->daemon.generation && world->former.generation == call->port)
        trouble_note(world, TROUBLE_FORMER_REQUEST_LATE);
    carry_out(world, call);
    free(call);
}

static void be_silent(struct world *world, struct call *call)
{
    const int64_t silence = between(world, 1, 20) * SECOND;
    if (call->is_scale && call->fault == SILENT_BUT_DONE) {
        trouble_note(world, TROUBLE_DONE_SILENTLY);
        carry_out(world, call);
    } else if (call->is_scale && call->fault == SILENT_AND_LATE && !call->target->has_no_version) {
        struct call *copy = as_xmalloc(sizeof(*copy));
        *copy = *call; /* no group of a cluster's: its names are not copied */
        copy->look = (struct pool_look){.arena = AS_ARENA_INIT};
        const bool is_close = chance(world, 500); /* to the next attempt */
        later(world,
              is_close ? silence + between(world, 0, 3 * SECOND) : between(world, 1, LATE_MAX),
              on_late_arrival, copy, 0);
    } else {
        trouble_note(world, TROUBLE_SILENT);
    }
    call->result = (struct as_scale_result){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true};
    call->observation.outcome = AS_REASON_TIMEOUT;
    later(world, silence, on_answer, call, 0);
}

/* With maxUnavailable 40 % and maxSurge 50 %. */
static int32_t count_in_rollout(struct world *world, const struct server_target *target)
{
    const int64_t fewest = target->size - target->size * 2 / 5;
    const int64_t most = target->size + (target->size + 1) / 2;
    return (int32_t)between(world, fewest, most);
}

static void observe(struct world *world, struct call *call)
{
    const struct server_target *target = call->target;
    call->observation = (struct as_observation){
        .outcome = target->exists ? AS_REASON_APPLIED : AS_REASON_TARGET_NOT_FOUND,
        .replicas = target->size,
        .status_replicas = target->size,
        .min = target->own_min,
        .max = target->own_max,
        .in_progress = target->busy_until > world->now,
    };
    if (target->rollout_until > world->now && target->lacking > 0)
        call->observation.status_replicas =
            target->size > target->lacking ? target->size - target->lacking : 0;
    else if (target->rollout_until > world->now)
        call->observation.status_replicas = count_in_rollout(world, target);
    print_version(target, call->observation.version);
    if (target->object > 0)
        (void)snprintf(call->observation.uid, AS_UID_SIZE, "uid-%u%s", target->object,
                       target->field.is_there ? "*64Mi" : "");
    if (target->field.is_there)
        fields_check_observed(world, target);
    if (pools_has(world, target))
        pools_observe(world, target, &call->look, &call->observation);
}

/* As from an API server whose store lacks the last changes. */
static void observe_older(struct world *world, struct call *call)
{
    struct server_target old = *call->target;
    observe(world, call);
    if (!old.exists || old.older_count == 0)
        return;
    const struct older *older = &old.older[between(world, 0, (int64_t)old.older_count - 1)];
    trouble_note(world, TROUBLE_OLDER_READ);
    trace(world, "server: %s is shown as it once was, with %d", old.id, older->size);
    if (old.has_no_version && older->size != old.size)
        call->target->scheduled.is_unsure = true; /* nothing tells this from a change of others */
    call->target->shown = older->size;
    call->target->shown_until = world->now + SHOWN_MAX;
    rivals_note_older(call->target);
    check_orders_size(world, call->target);
    old.version = older->version;
    call->observation.replicas = call->observation.status_replicas = older->size;
    print_version(&old, call->observation.version);
}

/* As from a cache that has not seen the last change yet. */
static void observe_before(struct world *world, struct call *call)
{
    struct server_target old = *call->target;
    observe(world, call);
    if (!old.exists || old.before.until <= world->now)
        return;
    trouble_note(world, old.before.was_ours ? TROUBLE_STALE_READ_OF_OURS : TROUBLE_STALE_READ);
    trace(world, "server: %s is shown as it was, with %d", old.id, old.before.size);
    old.version = old.before.version;
    call->observation.replicas = call->observation.status_replicas = old.before.size;
    print_version(&old, call->observation.version);
}

/* A cloud accepts the change, and its operation fails seconds later. */
static void end_badly(struct world *world, struct call *call)
{
    static const enum as_reason ends[] = {AS_REASON_UNREACHABLE, AS_REASON_CONFLICT,
                                          AS_REASON_REJECTED,    AS_REASON_FORBIDDEN,
                                          AS_REASON_TIMEOUT,     AS_REASON_TARGET_NOT_FOUND};
    carry_out(world, call);
    if (call->result.outcome != AS_REASON_APPLIED) {
        later(world, latency(world), on_answer, call, 0);
        return;
    }
    call->result.is_accepted = true;
    call->result.outcome = ends[between(world, 0, (int64_t)AS_ARRAY_SIZE(ends) - 1)];
    call->result.is_shortage = call->result.outcome == AS_REASON_REJECTED && chance(world, 500);
    call->is_undone = chance(world, 500);
    trouble_note(world, TROUBLE_ENDED_BADLY);
    trace(world, "server: the operation on %s will fail", call->target->id);
    later(world, between(world, 1, 60) * SECOND, on_answer, call, 0);
}

static void on_arrival(struct world *world, void *subject, uint64_t argument)
{
    static const enum as_reason refusals[] = {AS_REASON_UNREACHABLE, AS_REASON_THROTTLED,
                                              AS_REASON_FORBIDDEN, AS_REASON_REJECTED,
                                              AS_REASON_CONFLICT};
    struct call *call = subject;
    (void)argument;
    if (call->fault == SILENT || call->fault == SILENT_BUT_DONE || call->fault == SILENT_AND_LATE) {
        be_silent(world, call);
        return;
    }
    if (call->fault == ENDED_BADLY) {
        end_badly(world, call);
        return;
    }
    if (call->fault == REFUSED) {
        trouble_note(world, TROUBLE_REFUSED);
        const enum as_reason reason = refusals[between(world, 0, call->is_scale ? 4 : 3)];
        call->result.outcome = call->observation.outcome = reason;
        if (reason == AS_REASON_THROTTLED)
            call->result.retry_after_us = call->observation.retry_after_us =
                between(world, 0, 30) * SECOND;
    } else if (call->is_scale) {
        carry_out(world, call);
    } else if (call->fault == STALE) {
        observe_before(world, call);
    } else if (call->fault == OLDER) {
        observe_older(world, call);
    } else {
        observe(world, call);
    }
    later(world, latency(world), on_answer, call, 0);
}

void server_set_size(struct world *world, struct server_target *target, int32_t size)
{
    check_others_change(world, target);
    schedules_note_others(target, target->size, size);
    change_size(world, target, size, false);
    trouble_note(world, TROUBLE_SIZE_CHANGED);
    trace(world, "others: %s is now %d", target->id, target->size);
}

/* The object is read again right before its field is changed. */
static void on_read(struct world *world, void *subject, uint64_t argument)
{
    struct call *call = subject;
    char version[AS_VERSION_SIZE];
    if (daemon_is_gone(world, call->port)) {
        call_free(call);
        return;
    }
    print_version(call->target, version);
    if (call->target->exists &&
        (call->target->has_no_version || strcmp(version, call->request.version) == 0)) {
        fields_make_patch(world, call->target, call->request.to, call->patch, PATCH_SIZE);
        if (!world->is_calm && chance(world, 100)) /* somebody is faster */
            server_set_size(world, call->target, (int32_t)between(world, 0, 12));
        later(world, latency(world), on_arrival, call, argument);
        return;
    }
    call->result.outcome = call->target->exists ? AS_REASON_CONFLICT : AS_REASON_TARGET_NOT_FOUND;
    later(world, latency(world), on_answer, call, 0);
}

static struct call *call_new(struct sim_port *port, uint64_t call_id,
                             const struct as_target_ref *ref, void *context)
{
    struct world *world = port->world;
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->look.arena = AS_ARENA_INIT;
    call->call_id = call_id;
    call->port = port->generation;
    call->target = server_find(world, ref->id);
    call->context = context;
    call->sent_at = world->now;
    call->result.attempts = 1;
    if (!world->is_calm && chance(world, world->faults))
        call->fault = (enum fault)between(world, REFUSED, SILENT_AND_LATE);
    else if (ref->kind == &as_target_kind_node_group && !world->pools && !world->is_calm &&
             chance(world, 100))
        call->fault = STALE; /* some cache; an API server reads from etcd */
    return call;
}

static void port_observe(struct as_target_port *self, uint64_t call_id,
                         const struct as_target_ref *ref, const struct as_observe_request *request,
                         as_target_observed_fn *done, void *context)
{
    struct world *world = ((struct sim_port *)self)->world;
    struct call *call = call_new((struct sim_port *)self, call_id, ref, context);
    call->observed = done;
    if (request->pool)
        as_pool_request_copy(request->pool, &call->look.arena, &call->look.request);
    if (call->fault == NO_FAULT && !pools_has(world, call->target) &&
        world->now < world->older_until && chance(world, 700))
        call->fault = OLDER;
    later(world, latency(world), on_arrival, call, 0);
}

/* The nodes that a request names are the engine's only until it returns. */
static void copy_names(struct call *call)
{
    struct as_arena *arena = &call->look.arena;
    const char **names = as_arena_alloc(arena, call->request.take_count, sizeof(*names));
    for (size_t i = 0; i < call->request.take_count; i++)
        names[i] = as_arena_strdup(arena, call->request.take[i]);
    call->request.take = names;
    call->request.rule = call->rule;
}

static void port_scale(struct as_target_port *self, uint64_t call_id,
                       const struct as_target_ref *ref, const struct as_scale_request *request,
                       as_target_scaled_fn *done, void *context)
{
    struct sim_port *port = (struct sim_port *)self;
    struct world *world = port->world;
    if (!daemon_leads(world)) { /* no answer: it will be thrown away */
        trace(world, "daemon: leads no more, sets nothing");
        trouble_note(world, TROUBLE_FORMER_REQUEST);
        return;
    }
    struct call *call = call_new(port, call_id, ref, context);
    const struct as_target_config *config = rules_find_target(port->world, ref->id);
    world->daemon.scales++;
    call->is_scale = true;
    call->scaled = done;
    call->request = *request;
    copy_names(call);
    call->is_step_down = check_is_step_down(world, request);
    call->rule_changes = world->rule_changes;
    (void)snprintf(call->rule, sizeof(call->rule), "%s", request->rule);
    if (config)
        call->cooldown = config->bounds.cooldown;
    trace(port->world, "daemon: set %s from %d to %d by %s", ref->id, request->from, request->to,
          request->rule);
    check_request(port->world, call->target, request);
    check_rest_request(port->world, call->target, request);
    if (call->fault == NO_FAULT && ref->kind == &as_target_kind_node_group && !world->is_calm &&
        chance(world, 150))
        call->fault = ENDED_BADLY;
    if (world->daemon.until != INT64_MAX && chance(world, 600)) /* cut off: it may leave late */
        call->fault = SILENT_AND_LATE;
    later(world, latency(world), call->target->field.is_there ? on_read : on_arrival, call, 0);
}

static void port_close(struct as_target_port *self)
{
    free(self); /* answers on their way are not heard any more */
}

struct as_target_port *server_open_port(struct world *world)
{
    struct sim_port *port = as_xcalloc(1, sizeof(*port));
    port->port =
        (struct as_target_port){.observe = port_observe, .scale = port_scale, .close = port_close};
    port->world = world;
    port->generation = world->daemon.generation;
    return &port->port;
}

/* Nothing of the former is the new one's. */
static void renew(struct world *world, struct server_target *target, unsigned object)
{
    target->object = object;
    change_size(world, target, (int32_t)between(world, 1, 8), false);
    target->before.until = 0;
    check_made_anew(target);
    rivals_note_anew(target);
    trouble_note(world, TROUBLE_TARGET_MADE_ANEW);
    trace(world, "others: %s is another object, with %d", target->id, target->size);
}

static void make_anew(struct world *world, struct server_target *target)
{
    struct server_target *sibling = fields_find_sibling(world, target);
    const unsigned object = target->object + 1;
    if (target->object == 0)
        return;
    renew(world, target, object);
    if (sibling)
        renew(world, sibling, object);
}

static void change_group(struct world *world, struct server_target *target)
{
    if (target->group < 0 || chance(world, 600))
        return;
    server_set_size(world, target, (int32_t)between(world, 0, 6));
}

/* Somebody else, or the world. */
static void on_others(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->is_calm)
        return;
    later(world, between(world, 1, 120) * SECOND, on_others, NULL, 0);
    if (world->target_count == 0)
        return;
    struct server_target *target =
        &world->targets[between(world, 0, (int64_t)world->target_count - 1)];
    if (pools_has(world, target)) {
        change_group(world, target);
        return;
    }
    switch (between(world, 0, 6)) {
    case 6:
        trouble_note(world, TROUBLE_ROLLOUT);
        target->rollout_until = world->now + between(world, 10, 300) * SECOND;
        target->lacking = chance(world, 500) ? (int32_t)between(world, 1, 3) : 0;
        if (chance(world, 200))
            world->older_until = world->now + between(world, 1, 60) * SECOND;
        break;
    case 0: server_set_size(world, target, (int32_t)between(world, 0, 20)); break;
    case 1:
        if (!target->exists && chance(world, 300))
            break;
        if (chance(world, target->exists ? 100 : 500))
            make_anew(world, target);
        target->exists = true;
        break;
    case 2:
        if (!chance(world, 100))
            break;
        target->exists = false;
        trouble_note(world, TROUBLE_TARGET_GONE);
        trace(world, "others: %s is gone", target->id);
        break;
    default: target->version++; break; /* a status update */
    }
    fields_note_version(world, target);
}

void server_start(struct world *world)
{
    static const int64_t faults[] = {20, 120, 120, 400};
    world->faults = faults[between(world, 0, (int64_t)AS_ARRAY_SIZE(faults) - 1)];
    later(world, MINUTE, on_others, NULL, 0);
}

void server_stop(struct world *world)
{
    struct event *event;
    RB_FOREACH (event, event_tree, &world->events) {
        if (event->happen == on_arrival || event->happen == on_read || event->happen == on_answer ||
            event->happen == on_late_arrival)
            call_free(event->subject);
    }
}

void server_calm_down(struct world *world)
{
    world->older_until = 0;
    for (size_t i = 0; i < world->target_count; i++) {
        world->targets[i].exists = true;
        world->targets[i].busy_until = world->targets[i].rollout_until = 0;
    }
}
