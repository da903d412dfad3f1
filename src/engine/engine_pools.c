/*
 * Pools, and node groups that are pools of themselves: what their observation has to tell, what is
 * remembered of it, and how a pool's decision reaches its groups.
 *
 * Invariants: at most one pool of a cluster has its turn; a pool with open assignments is idle; a
 * group has at most one assignment. The module places no pods (cluster/), and sets no size.
 */
#include "engine_pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"
#include "engine_state.h"

static struct assignment *get_assignment(const struct target *target)
{
    struct pool_state *state = target->parts[CONCERN_POOLS];
    return &state->assignment;
}

static struct pool *get_pool(const struct target *target)
{
    struct pool_state *state = target->parts[CONCERN_POOLS];
    return &state->pool;
}

static struct overdue *get_overdue(const struct target *target)
{
    return target->parts[CONCERN_UNREGISTERED];
}

/* Assignments */

struct assignment_terms {
    const char *rule, *decision; /* of the pool; copied */
    int32_t to;
    bool is_up;
    bool is_rest;            /* of what an earlier increase lacks: no step of its own */
    const char *const *take; /* down: names of the nodes that leave; copied */
    size_t take_count;
};

static char **pool_copy_names(const char *const *names, size_t count)
{
    char **copy = as_xcalloc(count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(names[i]);
    return copy;
}

static void assignment_free(struct assignment *assignment)
{
    free(assignment->rule);
    names_free(assignment->take, assignment->take_count);
    *assignment = (struct assignment){0};
}

/* It is over; after the last one the pool decides anew. */
static void assignment_drop(struct as_engine *engine, struct target *group)
{
    struct target *pool = get_assignment(group)->pool;
    assignment_free(get_assignment(group));
    if (!pool || --get_pool(pool)->assignments > 0)
        return;
    pool->dirty = true;
    target_make_ready(engine, pool);
}

static void assignment_give(struct as_engine *engine, struct target *pool, struct target *group,
                            const struct assignment_terms *terms)
{
    struct assignment *assignment = get_assignment(group);
    assignment_drop(engine, group);
    *assignment = (struct assignment){
        .pool = pool,
        .rule = as_xstrdup(terms->rule),
        .to = terms->to,
        .is_up = terms->is_up,
        .take = pool_copy_names(terms->take, terms->take_count),
        .take_count = terms->take_count,
        .until = {as_time_add(engine->mono.us, ASSIGNMENT_US)},
        .is_rest = terms->is_rest,
        .serial = engine->next_serial,
        .at = moment_now(engine),
    };
    assignment->proof_until = assignment->until;
    memcpy(assignment->decision, terms->decision, AS_ULID_SIZE);
    get_pool(pool)->assignments++;
    group->dirty = true;
    target_make_ready(engine, group);
}

static void assignments_drop_all(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (get_assignment(target)->pool)
            get_pool(get_assignment(target)->pool)->assignments = 0;
        assignment_free(get_assignment(target));
    }
}

/* Nothing comes of it. What an increase lacks is decided among the other groups, in spite of the
 * pool's lock. */
static void pool_give_up(struct as_engine *engine, struct target *group)
{
    if (get_assignment(group)->is_up)
        get_pool(get_assignment(group)->pool)->is_short = true;
    assignment_drop(engine, group);
}

/* To be committed. */
static void pool_fail(struct as_engine *engine, struct target *group)
{
    if (get_assignment(group)->is_up) {
        scaleup_fail(engine, group);
        effect_put_target(engine, group);
    }
    pool_give_up(engine, group);
}

/* Whether what became of its request is not known: it counts as on the way, and nobody else buys
 * it. A request and `in_doubt` end by themselves. */
static bool is_requested(const struct target *group)
{
    return (group->intent && assignment_is_of(group, group->intent)) ||
           (group->in_doubt && assignment_is_of(group, group->in_doubt));
}

/* Whether an incident of the pool still wants it. */
static bool pool_has_cause(const struct assignment *assignment)
{
    const struct group *group = group_find(assignment->pool, assignment->rule);
    const struct binding *binding;
    if (!group)
        return false;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (!incident_is_held(binding->incident))
            return true;
    }
    return false;
}

/* An increase that has waited long for a place within the limits, and has it now: the pods that it
 * was for may have found theirs meanwhile. */
static bool is_out_of_date(struct as_engine *engine, const struct target *group)
{
    const struct assignment *assignment = get_assignment(group);
    return assignment->is_up && limits_is_waiting(group) &&
           assignment->proof_until.us <= engine->mono.us && limits_have_place(engine, group);
}

void assignment_review(struct as_engine *engine, struct target *group)
{
    if (!get_assignment(group)->pool || is_requested(group))
        return;
    if (!pool_has_cause(get_assignment(group)))
        assignment_drop(engine, group);
    else if (is_out_of_date(engine, group))
        pool_give_up(engine, group);
}

void assignments_on_halt(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (get_assignment(target)->pool && !is_requested(target))
            pool_give_up(engine, target);
    }
}

/* Ends the pool's assignments that are overdue or that no incident wants any more, and returns when
 * the next one is. */
static as_mono_time assignments_expire(struct as_engine *engine, const struct target *pool)
{
    const struct as_pool_config *config = pool->config->pool;
    as_mono_time next = AS_MONO_NEVER;
    bool has_failed = false;
    for (size_t i = 0; i < config->group_count; i++) {
        struct target *group =
            LIST_FIRST(target_get_members(engine, engine->ruleset->targets[config->groups[i]]));
        if (group)
            assignment_review(engine, group);
        if (!group || get_assignment(group)->pool != pool)
            continue;
        /* Its request is open, or an increase waits for a place within the limits. The proof of a
         * decrease does not last that long. */
        if (is_requested(group) || (limits_is_waiting(group) && get_assignment(group)->is_up))
            get_assignment(group)->until.us = as_time_add(engine->mono.us, ASSIGNMENT_US);
        if (get_assignment(group)->until.us <= engine->mono.us) {
            has_failed = has_failed || get_assignment(group)->is_up;
            pool_fail(engine, group);
        } else if (get_assignment(group)->until.us < next.us) {
            next = get_assignment(group)->until;
        }
    }
    if (has_failed)
        effect_commit(engine);
    return next;
}

void assignment_prolong(struct target *group, as_mono_time until)
{
    if (get_assignment(group)->pool && get_assignment(group)->until.us < until.us)
        get_assignment(group)->until = get_assignment(group)->proof_until = until;
}

static bool pool_on_unseen(struct as_engine *engine, struct target *target, enum as_reason outcome)
{
    if (!get_assignment(target)->pool || outcome == AS_REASON_THROTTLED)
        return false;
    const bool is_up = get_assignment(target)->is_up;
    pool_fail(engine, target);
    if (is_up)
        effect_commit(engine);
    return false;
}

void assignment_on_stay(struct as_engine *engine, struct target *group, enum as_reason reason)
{
    if (!get_assignment(group)->pool)
        return;
    if (reason == AS_REASON_NO_CHANGE) /* the size is there already */
        assignment_drop(engine, group);
    else if (reason == AS_REASON_PAUSED || as_reason_has_holder(reason) ||
             reason == AS_REASON_DRY_RUN ||
             reason == AS_REASON_COOLDOWN) /* of these the pool knows at its next look */
        pool_give_up(engine, group);
}

bool assignment_is_of(const struct target *group, const struct intent *intent)
{
    const struct assignment *assignment = get_assignment(group);
    return assignment->pool && !intent->state.is_ordered &&
           strcmp(intent->state.rule, assignment->rule) == 0 &&
           (intent->state.to > intent->state.from) == assignment->is_up;
}

/* The pool's lock, and the step of its rule: with the first assignment that is applied. */
static void begin_lock(struct as_engine *engine, const struct assignment *assignment,
                       const struct intent *intent)
{
    struct target *pool = assignment->pool;
    struct as_moment *last = assignment->is_up ? &pool->locks.last_up : &pool->locks.last_down;
    if (as_moment_is_set(*last) && last->mono.us >= assignment->at.mono.us)
        return; /* of another assignment of the same decision */
    const struct intent decided = {.state = {.rule = assignment->rule,
                                             .from = intent->state.from,
                                             .to = intent->state.to,
                                             .at = assignment->at},
                                   .serial = assignment->serial,
                                   .generation = engine->generation};
    *last = moment_now(engine);
    if (!assignment->is_up)
        pool->locks.last_step_down = moment_now(engine);
    if (!assignment->is_rest)
        steps_count(engine, pool, &decided);
    target_set_keep(engine, pool);
    effect_put_target(engine, pool);
}

/* A decrease in doubt starts the pool's lock, as it may be done. Its marks stay, and until its
 * outcome is known no other node of the pool leaves (as_pool_member.down_in_doubt). */
static void assignment_on_failed(struct as_engine *engine, struct target *group,
                                 const struct action *action)
{
    const struct as_scale_result *result = action->result;
    if (!action->marks.is_assignment)
        return;
    if (scaleup_is_failure(result) || (get_assignment(group)->is_up && result->is_ambiguous)) {
        pool_fail(engine, group);
    } else if (result->is_ambiguous) {
        begin_lock(engine, get_assignment(group), action->intent);
        assignment_drop(engine, group);
    } /* else it is tried again */
}

static void assignments_on_taken_back(struct as_engine *engine, struct target *group)
{
    struct target *pool = target_find_pool(engine, group);
    if (!pool)
        return;
    get_pool(pool)->is_short = true;
    pool->dirty = true;
    target_make_ready(engine, pool);
}

/* What the last look at the nodes of a pool or group said, for metrics */

/* Also when the rules change: names are borrowed from them. */
static void seen_clear(struct target *target)
{
    free(get_pool(target)->seen);
    get_pool(target)->seen = NULL;
}

/* NULL: the rules have no such group of the target. */
static const char *pool_find_name(const struct as_engine *engine, const struct target *target,
                                  const char *name)
{
    const struct as_pool_config *pool = target->config->pool;
    if (!pool)
        return target->config->name;
    for (size_t i = 0; i < pool->group_count; i++) {
        const char *known = engine->ruleset->targets[pool->groups[i]]->name;
        if (strcmp(known, name) == 0)
            return known;
    }
    return NULL;
}

static void take_snapshot(const struct as_engine *engine, const struct target *target,
                          const struct as_observation *observation, struct as_pool_seen *seen)
{
    const struct as_snapshot *snapshot = observation->snapshot;
    seen->has_pods = true;
    seen->pending_pods = snapshot->pending_pods;
    for (size_t i = 0; i < observation->plan->unneeded_count; i++)
        seen->unneeded_nodes += observation->plan->unneeded[i].since.set;
    for (size_t i = 0; i < snapshot->group_count; i++) {
        const struct as_snapshot_group *group = &snapshot->groups[i];
        const char *name = group->is_member ? pool_find_name(engine, target, group->name) : NULL;
        if (name)
            seen->groups[seen->group_count++] = (struct as_group_seen){.name = name,
                                                                       .sums = group->sums,
                                                                       .coming = group->coming,
                                                                       .overdue = group->overdue,
                                                                       .closed = group->closed};
    }
}

/* The sums of the source `nodes` also have pods that wait for the group. */
static void take_sums(const struct target *target, const struct as_nodes_seen *nodes,
                      struct as_pool_seen *seen)
{
    struct as_group_seen *group = &seen->groups[0];
    if (seen->group_count == 0)
        *group = (struct as_group_seen){.name = target->config->name,
                                        .sums = {.ready = -1, .leaving = -1},
                                        .coming = -1,
                                        .overdue = -1,
                                        .closed = AS_REASON_SCALED};
    seen->group_count = 1;
    group->sums.open = nodes->open;
    memcpy(group->sums.requests, nodes->requests, sizeof(group->sums.requests));
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++)
        group->sums.allocatable[i] = nodes->is_template ? 0 : nodes->allocatable[i];
}

/* Nothing is kept of a look that knows nothing of nodes. */
static void seen_set(const struct as_engine *engine, struct target *target,
                     const struct as_observation *observation)
{
    const bool has_snapshot = observation->plan != NULL;
    const bool has_sums = !target->config->pool && target->ref->kind->has_nodes &&
                          observation->nodes && !observation->nodes->error;
    seen_clear(target);
    if (!has_snapshot && !has_sums)
        return;
    const size_t groups = (has_snapshot ? observation->snapshot->group_count : 0) + 1;
    struct as_pool_seen *seen = as_xcalloc(1, sizeof(*seen) + groups * sizeof(seen->groups[0]));
    if (has_snapshot)
        take_snapshot(engine, target, observation, seen);
    if (has_sums)
        take_sums(target, observation->nodes, seen);
    get_pool(target)->seen = seen;
}

struct wants {
    bool fit, take;
};

static struct wants get_wants(const struct target *target)
{
    struct wants wants = {false, false};
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        wants.fit = wants.fit || group->rule->action.is_fit;
        wants.take = wants.take || group->rule->action.is_take;
    }
    return wants;
}

bool pool_is_asked(const struct target *target)
{
    const struct wants wants = get_wants(target);
    return target->config && (wants.fit || wants.take);
}

const char *pool_get_cluster(const struct as_engine *engine, const struct target *target)
{
    const struct as_target_config *config = target->config;
    const struct as_target_config *group =
        config->pool ? engine->ruleset->targets[config->pool->groups[0]] : config;
    return group->nodes.cluster;
}

static void pool_clear(struct target *target)
{
    as_arena_deinit(&get_pool(target)->texts);
    get_pool(target)->unneeded = NULL;
    get_pool(target)->unneeded_count = 0;
    seen_clear(target);
}

static void leave_turns(struct as_engine *engine, struct target *target)
{
    if (get_pool(target)->has_turn)
        TAILQ_REMOVE(&engine->snapshots_begun, get_pool(target), link);
    if (get_pool(target)->is_waiting)
        TAILQ_REMOVE(&engine->snapshots_waiting, get_pool(target), link);
    get_pool(target)->has_turn = get_pool(target)->is_waiting = false;
}

static void pool_release(struct as_engine *engine, struct target *target)
{
    const struct pool *waiting;
    if (!get_pool(target)->has_turn || get_pool(target)->assignments > 0)
        return;
    leave_turns(engine, target);
    TAILQ_FOREACH (waiting, &engine->snapshots_waiting, link)
        target_make_ready(engine, waiting->target);
}

bool pool_is_assigning(struct as_engine *engine, struct target *target)
{
    if (get_pool(target)->assignments > 0)
        target_set_deadline(engine, target, assignments_expire(engine, target));
    if (get_pool(target)->assignments > 0)
        return true; /* the last one makes it ready */
    if (!get_pool(target)->has_turn)
        return false;
    pool_release(engine, target);
    if (get_pool(target)->is_short || TAILQ_EMPTY(&engine->snapshots_waiting))
        return false;
    target_make_ready(engine, target); /* behind those that waited for it */
    return true;
}

void pool_end_step(struct target *target)
{
    get_pool(target)->is_short = false;
}

/* After new rules the entry of a target with a turn may be gone: then it may be of any cluster. */
static bool is_of_same_cluster(const struct as_engine *engine, const struct target *other,
                               const struct target *target)
{
    return !other->config || !pool_get_cluster(engine, other) ||
           strcmp(pool_get_cluster(engine, other), pool_get_cluster(engine, target)) == 0;
}

static void begin_turn(struct as_engine *engine, struct target *target)
{
    get_pool(target)->has_turn = true;
    TAILQ_INSERT_TAIL(&engine->snapshots_begun, get_pool(target), link);
}

bool pool_must_wait(struct as_engine *engine, struct target *target)
{
    const struct pool *other;
    if (get_pool(target)->has_turn || get_pool(target)->is_waiting)
        leave_turns(engine, target);
    if (!pool_is_asked(target))
        return false;
    TAILQ_FOREACH (other, &engine->snapshots_begun, link) {
        if (!is_of_same_cluster(engine, other->target, target))
            continue;
        get_pool(target)->is_waiting = true;
        target->dirty = true;
        TAILQ_INSERT_TAIL(&engine->snapshots_waiting, get_pool(target), link);
        return true;
    }
    begin_turn(engine, target);
    return false;
}

static void pool_forget(struct as_engine *engine, struct target *target)
{
    pool_release(engine, target);
    leave_turns(engine, target);
    pool_clear(target);
}

/* A group whose increase is carried out. Nobody else decides about the cluster before the increase
 * has its outcome: its nodes would not count as coming. */
static bool is_growing(const struct target *target)
{
    return target->ref->kind->has_nodes && target->intent &&
           target->intent->state.to > target->intent->state.from;
}

void pools_on_rules(struct as_engine *engine)
{
    struct target *target;
    assignments_drop_all(engine);
    RB_FOREACH (target, target_tree, &engine->targets) {
        get_overdue(target)->count = 0;
        leave_turns(engine, target);
        pool_clear(target);
        if (is_growing(target))
            begin_turn(engine, target);
    }
}

/* ---- the request ---- */

static enum as_reason pool_find_closed(const struct as_engine *engine, const struct target *group)
{
    if (blocks_forbid(engine, group, AS_WAYS_BOTH, BLOCK_PAUSE))
        return AS_REASON_PAUSED;
    if (blocks_forbid(engine, group, AS_WAYS_UP, BLOCK_OWN))
        return AS_REASON_HELD;
    if (group->config->dry_run)
        return AS_REASON_DRY_RUN;
    if (scaleup_is_backing_off(group, engine->mono))
        return AS_REASON_COOLDOWN;
    if (target_is_backing_off(engine, group))
        return group->failure;
    return group->in_doubt || commands_get(group)->is_set ? AS_REASON_IN_PROGRESS
                                                          : AS_REASON_SCALED;
}

/* Nodes of an increase without a known outcome, beyond the present size. */
static int32_t count_in_doubt(const struct target *group)
{
    const struct intent *in_doubt = group->in_doubt;
    if (!in_doubt || in_doubt->state.to <= in_doubt->state.from)
        return 0;
    const int32_t size =
        group->replicas > in_doubt->state.from ? group->replicas : in_doubt->state.from;
    return in_doubt->state.to > size ? in_doubt->state.to - size : 0;
}

static void pool_fill_member(struct as_engine *engine, const struct target *group, bool is_member,
                             struct as_pool_member *member_out)
{
    const struct as_schedule_bounds bounds = target_get_bounds(engine, group);
    *member_out = (struct as_pool_member){
        .ref = group->ref,
        .name = group->config->name,
        .nodes = &group->config->nodes,
        .is_member = is_member,
        .min = bounds.min,
        .max = bounds.max,
        .closed = pool_find_closed(engine, group),
        .is_kept = blocks_forbid(engine, group, AS_WAYS_DOWN, BLOCK_HOLDS),
        .has_pending_scaleup = scaleup_get(group)->is_open,
        .refused = scaleup_get_refused(group),
        .in_doubt = count_in_doubt(group),
        .open_at = scaleup_get_open_at(engine, group),
        .surplus = scaleup_get_surplus(group),
        .surplus_since = moment_get_wall(engine, scaleup_get(group)->surplus_since),
        .unregistered = scaleup_get(group)->unregistered,
        .last_size = group->has_size ? group->replicas : 0,
    };
}

static bool is_of_cluster(const struct as_target_config *config, const char *cluster)
{
    return config->kind->has_nodes && config->nodes.cluster &&
           strcmp(config->nodes.cluster, cluster) == 0;
}

/* The groups of the pool in its order, then all others of the cluster. */
static struct as_pool_member *list_members(struct as_engine *engine, const struct target *target,
                                           size_t *count_out)
{
    const struct as_ruleset *ruleset = engine->ruleset;
    const struct as_pool_config *pool = target->config->pool;
    const char *cluster = pool_get_cluster(engine, target);
    const struct target *group;
    size_t most = 1, count = 0, own;
    bool in_doubt = false;
    for (uint32_t i = 0; i < ruleset->target_count; i++)
        LIST_FOREACH (group, target_get_members(engine, engine->ruleset->targets[i]), of_entry)
            most += is_of_cluster(group->config, cluster);
    struct as_pool_member *members = as_arena_alloc(&engine->arena, most, sizeof(*members));
    for (size_t i = 0; pool && i < pool->group_count; i++) {
        if (!(group = LIST_FIRST(
                  target_get_members(engine, engine->ruleset->targets[pool->groups[i]]))))
            continue;
        in_doubt = in_doubt ||
                   (group->in_doubt && group->in_doubt->state.to < group->in_doubt->state.from);
        pool_fill_member(engine, group, true, &members[count++]);
    }
    if (!pool)
        pool_fill_member(engine, target, true, &members[count++]);
    for (own = 0; own < count; own++)
        members[own].down_in_doubt = in_doubt;
    for (uint32_t i = 0; i < ruleset->target_count; i++) {
        const bool is_ours = pool && ruleset->targets[i]->of_pool == target->config->number;
        LIST_FOREACH (group, target_get_members(engine, engine->ruleset->targets[i]), of_entry) {
            if (group != target && is_of_cluster(group->config, cluster) && !is_ours &&
                count < AS_POOL_MEMBERS_MAX)
                pool_fill_member(engine, group, false, &members[count++]);
        }
    }
    *count_out = count;
    return members;
}

const struct as_pool_request *pool_make_request(struct as_engine *engine, struct target *target)
{
    if (!get_pool(target)->has_turn)
        return NULL;
    struct pool *pool = get_pool(target);
    struct as_pool_request *request = as_arena_alloc(&engine->arena, 1, sizeof(*request));
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    const struct wants wants = get_wants(target);
    if (engine->mono.us - pool->looked.us > AS_UNNEEDED_GAP_US)
        pool->unneeded_count = 0; /* the row is broken */
    pool->looked = engine->mono;
    *request = (struct as_pool_request){
        .config = target->config->pool ? target->config->pool : &as_pool_config_default,
        .min = bounds.min,
        .max = bounds.max,
        .with_fit = wants.fit,
        .with_take = wants.take,
        .unneeded = pool->unneeded,
        .unneeded_count = pool->unneeded_count,
        .asked = pool->asked,
        .asked_count = pool->asked_count,
        .seed = as_random_get(&engine->random),
    };
    request->members = list_members(engine, target, &request->member_count);
    return request;
}

/* ---- what is remembered ---- */

static void keep_unneeded(struct pool *pool, const struct as_unneeded *unneeded, size_t count)
{
    struct as_arena texts = AS_ARENA_INIT;
    pool->unneeded = as_arena_alloc(&texts, count, sizeof(*pool->unneeded));
    for (size_t i = 0; i < count; i++) {
        pool->unneeded[i] = unneeded[i];
        pool->unneeded[i].node = as_arena_strdup(&texts, unneeded[i].node);
    }
    pool->unneeded_count = count;
    as_arena_deinit(&pool->texts); /* what is kept may come from here */
    pool->texts = texts;
}

static bool is_same(const struct as_asked *a, const struct as_asked *b)
{
    return a->pod_class == b->pod_class && a->template_ == b->template_ && a->at.us == b->at.us &&
           a->is_in_vain == b->is_in_vain && strcmp(a->group, b->group) == 0;
}

static bool was_asked(const struct pool *pool, const struct as_asked *asked)
{
    for (size_t i = 0; i < pool->asked_count; i++) {
        const struct as_asked *known = &pool->asked[i];
        if (known->pod_class == asked->pod_class && known->template_ == asked->template_ &&
            strcmp(known->group, asked->group) == 0)
            return true;
    }
    return false;
}

/* `asked` may be what is set already. */
static void pool_set_asked(struct pool *pool, const struct as_asked *asked, size_t count)
{
    struct as_arena texts = AS_ARENA_INIT;
    struct as_asked *copies = as_rows_copy(&texts, as_asked_rows, asked, count, sizeof(*asked));
    as_arena_deinit(&pool->asked_texts);
    pool->asked_texts = texts;
    pool->asked = copies;
    pool->asked_count = count;
}

/* What the plan would ask for is not asked where something else stands against the increase. */
static bool keep_asked(struct as_engine *engine, struct pool *pool, const struct as_pool_plan *plan,
                       bool grows)
{
    struct as_asked *kept = as_arena_alloc(&engine->arena, plan->asked_count, sizeof(*kept));
    size_t count = 0;
    for (size_t i = 0; i < plan->asked_count; i++) {
        if (grows || was_asked(pool, &plan->asked[i]))
            kept[count++] = plan->asked[i];
    }
    bool is_changed = count != pool->asked_count;
    for (size_t i = 0; i < count && !is_changed; i++)
        is_changed = !is_same(&kept[i], &pool->asked[i]);
    if (is_changed)
        pool_set_asked(pool, kept, count);
    return is_changed;
}

/* A group of the pool by its name in the snapshot; NULL: it is gone. A node group without a pool:
 * it itself. */
static struct target *pool_find_group(const struct as_engine *engine, struct target *pool,
                                      const char *name)
{
    const struct as_pool_config *config = pool->config->pool;
    if (!config)
        return pool;
    for (size_t i = 0; i < config->group_count; i++) {
        if (strcmp(engine->ruleset->targets[config->groups[i]]->name, name) == 0)
            return LIST_FIRST(
                target_get_members(engine, engine->ruleset->targets[config->groups[i]]));
    }
    return NULL;
}

/* What is known of groups only by the pool's look. True: something is new. */
static bool note_groups(struct as_engine *engine, struct target *target,
                        const struct as_snapshot *snapshot)
{
    int32_t surplus = 0;
    bool is_new = false;
    for (size_t i = 0; i < snapshot->group_count; i++) {
        const struct as_snapshot_group *seen = &snapshot->groups[i];
        struct target *group = seen->is_member ? pool_find_group(engine, target, seen->name) : NULL;
        surplus += seen->is_member ? seen->surplus : 0;
        if (!group || seen->size < 0 ||
            !scaleup_note_unregistered(engine, group, seen->unregistered))
            continue;
        effect_put_target(engine, group);
        is_new = true;
    }
    is_new = is_new || surplus != get_pool(target)->surplus;
    get_pool(target)->surplus = surplus;
    return is_new;
}

bool pool_remember(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation, bool grows)
{
    struct pool *pool = get_pool(target);
    const struct as_pool_plan *plan = observation->plan;
    seen_set(engine, target, observation);
    if (!observation->snapshot)
        return false;
    if (!plan) { /* nothing is known: what was unneeded is counted anew */
        pool_clear(target);
        return false;
    }
    keep_unneeded(pool, plan->unneeded, plan->unneeded_count);
    pool->waiting = observation->snapshot->pending_pods;
    const bool is_new = note_groups(engine, target, observation->snapshot);
    return keep_asked(engine, pool, plan, grows) || is_new;
}

static void share_up(struct as_engine *engine, struct target *pool,
                     const struct as_observation *observation, const struct outcome *outcome)
{
    const struct as_snapshot *snapshot = observation->snapshot;
    int32_t left = outcome->decision.desired - outcome->decision.replicas;
    for (size_t i = 0; i < snapshot->group_count && left > 0; i++) {
        const struct as_snapshot_group *group = &snapshot->groups[i];
        int32_t more = observation->plan->groups[i].fit - group->size;
        if (!group->is_member || more <= 0)
            continue;
        more = more < left ? more : left;
        left -= more;
        const struct assignment_terms terms = {.rule = outcome->decision.rule,
                                               .decision = outcome->id,
                                               .to = group->size + more,
                                               .is_up = true,
                                               .is_rest = get_pool(pool)->is_short};
        struct target *to = pool_find_group(engine, pool, group->name);
        if (to && !target_is_backing_off(engine, to))
            assignment_give(engine, pool, to, &terms);
    }
}

static void share_down(struct as_engine *engine, struct target *pool,
                       const struct as_observation *observation, const struct outcome *outcome)
{
    const struct as_pool_plan *plan = observation->plan;
    size_t left = (size_t)(outcome->decision.replicas - outcome->decision.desired);
    for (size_t i = 0, count; i < plan->take_count && left > 0; i += count) {
        const uint32_t group = plan->take_group[i];
        for (count = 1; i + count < plan->take_count && plan->take_group[i + count] == group;)
            count++;
        const size_t taken = count < left ? count : left;
        left -= taken;
        const struct assignment_terms terms = {
            .rule = outcome->decision.rule,
            .decision = outcome->id,
            .to = observation->snapshot->groups[group].size - (int32_t)taken,
            .take = plan->take + i,
            .take_count = taken,
        };
        struct target *to =
            pool_find_group(engine, pool, observation->snapshot->groups[group].name);
        if (to && !target_is_backing_off(engine, to))
            assignment_give(engine, pool, to, &terms);
    }
}

void pool_assign(struct as_engine *engine, struct target *target,
                 const struct as_observation *observation, const struct outcome *outcome)
{
    if (outcome->decision.desired > outcome->decision.replicas)
        share_up(engine, target, observation, outcome);
    else
        share_down(engine, target, observation, outcome);
}

void unregistered_report(struct as_engine *engine, struct target *target,
                         const struct as_observation *observation, const struct outcome *outcome)
{
    const struct as_snapshot *snapshot = observation->snapshot;
    if (!outcome->is_decided || outcome->decision.overdue == 0)
        return;
    for (size_t i = 0; i < snapshot->group_count; i++) {
        const int32_t count = observation->plan->groups[i].overdue;
        struct target *group =
            count > 0 ? pool_find_group(engine, target, snapshot->groups[i].name) : NULL;
        if (!group ||
            (get_overdue(group)->size > 0 && get_overdue(group)->until.us > engine->mono.us))
            continue; /* told lately: it waits, or was hindered */
        *get_overdue(group) = (struct overdue){.count = count,
                                               .size = snapshot->groups[i].size,
                                               .until = {as_time_add(engine->mono.us, OVERDUE_US)}};
        memcpy(get_overdue(group)->decision, outcome->id, AS_ULID_SIZE);
        group->dirty = true;
        if (group != target)
            target_make_ready(engine, group);
    }
}

/* Whether something stands against it that the decision could not know. */
static bool is_hindered(const struct as_engine *engine, const struct target *target,
                        const struct as_observation *observation)
{
    const struct overdue *overdue = get_overdue(target);
    return observation->replicas != overdue->size || observation->in_progress ||
           overdue->until.us <= engine->mono.us || engine->stopping || !target->config ||
           blocks_forbid_change(engine, target, AS_WAYS_DOWN, BLOCK_HOLDS | BLOCK_OF_POOL) ||
           scaleup_get(target)->is_open || commands_get(target)->is_set ||
           get_assignment(target)->pool;
}

static int32_t unregistered_review(struct as_engine *engine, struct target *target,
                                   const struct as_observation *observation)
{
    struct overdue *overdue = get_overdue(target);
    if (overdue->count == 0)
        return -1;
    if (is_hindered(engine, target, observation)) {
        overdue->count = 0;
        return -1;
    }
    int32_t least = target_get_bounds(engine, target).min;
    least = observation->min > least ? observation->min : least;
    int32_t to = observation->replicas - overdue->count;
    to = to > least ? to : least;
    if (to >= observation->replicas) {
        overdue->count = 0;
        return -1;
    }
    if (limits_refuse(engine, target, to, to)) /* waits for its place */
        return -1;
    overdue->count = 0;
    return to;
}

static const char *unregistered_explain(struct as_engine *engine, const struct intent *intent)
{
    char text[AS_MESSAGE_SIZE];
    const int32_t count = intent->state.from - intent->state.to;
    (void)snprintf(text, sizeof(text), "%d instance%s never became %s: removed", count,
                   count == 1 ? "" : "s", count == 1 ? "a node" : "nodes");
    return as_arena_strdup(&engine->arena, text);
}

static bool pool_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return get_assignment(target)->pool != NULL;
}

static int64_t pool_get_observe_us(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return get_assignment(target)->pool ? ASSIGNMENT_OBSERVE_US : INT64_MAX;
}

/* An increase of the pool has failed: the rest of it is not another one. */
static void pool_fill(struct as_engine *engine, const struct target *target,
                      const struct as_observation *observation, struct as_decide_input *input)
{
    (void)engine, (void)observation;
    if (!get_pool(target)->is_short)
        return;
    input->last_up = (as_maybe_time){0};
    input->config.cooldown.up_after_down_us = 0;
}

static void pool_init(struct target *target)
{
    get_pool(target)->target = target;
}

static void pool_deinit(struct target *target)
{
    struct pool *pool = get_pool(target);
    assignment_free(get_assignment(target));
    as_arena_deinit(&pool->texts);
    as_arena_deinit(&pool->asked_texts);
    free(pool->seen);
}

static void pool_store(struct as_engine *engine, const struct target *target,
                       struct as_target_state *state)
{
    const struct pool *pool = get_pool(target);
    (void)engine;
    state->asked = pool->asked;
    state->asked_count = pool->asked_count;
}

static void pool_restore(struct as_engine *engine, struct target *target,
                         const struct as_target_state *state)
{
    (void)engine;
    if (state->asked_count > 0)
        pool_set_asked(get_pool(target), state->asked, state->asked_count);
}

static void pool_fill_view(const struct target *target, as_mono_time now, as_wall_time wall,
                           struct as_target_view *view)
{
    (void)now, (void)wall;
    view->nodes = target->open_bindings > 0 ? get_pool(target)->seen : NULL;
}

static void pool_mark(const struct target *target, const struct intent *intent, struct marks *marks)
{
    const struct group *group = group_find((struct target *)(uintptr_t)target, intent->state.rule);
    marks->is_assignment = assignment_is_of(target, intent);
    marks->is_for_pods = intent->state.to > intent->state.from &&
                         (marks->is_assignment || (group && group->rule->action.is_fit));
}

static void pool_on_unsent(struct as_engine *engine, struct target *target, struct intent *intent)
{
    if (assignment_is_of(target, intent))
        assignment_on_stay(engine, target, AS_REASON_PAUSED);
}

static void pool_on_applied(struct as_engine *engine, struct target *target,
                            const struct action *action)
{
    const struct as_scale_result *result = action->result;
    if (action->marks.is_take_back)
        assignments_on_taken_back(engine, target);
    if (!action->marks.is_assignment)
        return;
    begin_lock(engine, get_assignment(target), action->intent);
    if (!get_assignment(target)->is_up)
        scaleup_forget_surplus(target); /* `take` has considered all nodes */
    if (result->is_shortage || result->is_partial || scaleup_is_failure(result))
        pool_give_up(engine, target);
    else
        assignment_drop(engine, target);
}

/* A group lacks capacity: its pool may request nodes of other groups. */
static void pool_on_observed(struct as_engine *engine, struct target *target,
                             const struct as_observation *observation)
{
    if (!scaleup_on_shortage(engine, target, observation))
        return;
    effect_put_target(engine, target);
    effect_commit(engine);
    assignments_on_taken_back(engine, target);
}

const struct concern concern_pools = {
    .name = "pools",
    .on_observed = pool_on_observed,
    .mark = pool_mark,
    .on_unsent = pool_on_unsent,
    .on_applied = pool_on_applied,
    .on_failed = assignment_on_failed,
    .size = sizeof(struct pool_state),
    .init = pool_init,
    .deinit = pool_deinit,
    .store = pool_store,
    .restore = pool_restore,
    .fill_view = pool_fill_view,
    .is_using = pool_is_using,
    .on_unseen = pool_on_unseen,
    .fill_input = pool_fill,
    .get_observe_us = pool_get_observe_us,
    .release = pool_release,
    .forget = pool_forget,
};

static bool unregistered_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return get_overdue(target)->count > 0;
}

static bool unregistered_claim(struct as_engine *engine, struct target *target,
                               const struct as_observation *observation, struct change *change_out)
{
    const int32_t keep = unregistered_review(engine, target, observation);
    if (keep < 0)
        return false;
    *change_out =
        (struct change){.to = keep, .cause = get_overdue(target)->decision, .is_clean_up = true};
    return true;
}

static void unregistered_on_applied(struct as_engine *engine, struct target *target,
                                    const struct action *action)
{
    (void)target;
    if (action->intent->is_clean_up && !*action->record->message)
        action->record->message = unregistered_explain(engine, action->intent);
}

const struct concern concern_unregistered = {
    .name = "unregistered",
    .on_applied = unregistered_on_applied,
    .size = sizeof(struct overdue),
    .is_using = unregistered_is_using,
    .claim = unregistered_claim,
};
