/*
 * A target's phases and timers: idle -> observing -> (sampling) -> (intent -> scaling -> outcome)
 * -> idle. Whatever comes while it is not idle marks it dirty and is decided afterwards.
 *
 * A target that failed waits for its deadline, whatever comes: a broken API server is not asked
 * more often because more alerts arrive. One that was not found waits shorter for a new incident.
 */
#include "engine_private.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

/* Effects of this step may point to the former one. */
static void take_ref(struct as_engine *engine, struct target *target,
                     struct as_target_ref *ref_taken)
{
    engine->former_refs = as_xgrow(engine->former_refs, engine->former_ref_count,
                                   &engine->former_ref_capacity, sizeof(*engine->former_refs));
    engine->former_refs[engine->former_ref_count++] = target->ref;
    target->ref = ref_taken;
}

static struct target *find(struct as_engine *engine, struct as_target_ref *ref)
{
    struct target key = {.ref = ref};
    return RB_FIND(target_tree, &engine->targets, &key);
}

static struct target *make(struct as_engine *engine, struct as_target_ref *ref_taken)
{
    struct target *target = as_xcalloc(1, sizeof(*target));
    target->ref = ref_taken;
    target->deadline = AS_MONO_NEVER;
    target->failure = AS_REASON_APPLIED;
    target->observed = target->last_up = target->last_down = AS_MOMENT_NEVER;
    target->dry_last_up = target->dry_last_down = target->last_step_down = AS_MOMENT_NEVER;
    target->growth.failed = target->born = AS_MOMENT_NEVER;
    target->keep_us = KEEP_LOCKS_US;
    target->retry.us = INT64_MIN;
    RB_INIT(&target->groups);
    TAILQ_INIT(&target->asks);
    TAILQ_INIT(&target->endings);
    RB_INSERT(target_tree, &engine->targets, target);
    engine->target_count++;
    return target;
}

struct target *target_get(struct as_engine *engine, struct as_target_ref *ref_taken)
{
    struct target *target = find(engine, ref_taken);
    if (!target)
        return make(engine, ref_taken);
    if (target->ref->field_count == 0) /* restored by its id alone */
        take_ref(engine, target, ref_taken);
    else
        as_target_ref_free(ref_taken);
    return target;
}

struct target *target_claim(struct as_engine *engine, const struct as_target_config *config,
                            struct as_target_ref *ref_taken)
{
    struct target *target = find(engine, ref_taken);
    const bool is_free =
        !target || !target->config || (target->config->is_templated && target->open_bindings == 0);
    if (!target)
        target = make(engine, ref_taken);
    else if (is_free)
        take_ref(engine, target, ref_taken); /* requests go to the address as it is written now */
    else
        as_target_ref_free(ref_taken);
    if (is_free)
        target_set_config(engine, target, config);
    return target->config == config ? target : NULL;
}

void asked_clear(struct asked *asked)
{
    free(asked->ids);
    *asked = (struct asked){0};
}

static void held_free(struct target *target)
{
    if (target->held)
        as_arena_deinit(&target->held->arena);
    free(target->held);
    target->held = NULL;
}

struct target *target_free(struct target *target)
{
    asked_clear(&target->asked);
    intent_free(target->intent);
    intent_free(target->maybe);
    lock_cause_free(&target->cause);
    history_free(target);
    endings_free(target);
    pause_free(&target->pause);
    held_free(target);
    free(target->verdict.rule);
    free(target->dry_verdict.rule);
    as_target_ref_free(target->ref);
    store_keys_free(&target->stored_as);
    store_keys_free(&target->intents_stored_as);
    free(target);
    return NULL;
}

void target_set_deadline(struct as_engine *engine, struct target *target, as_mono_time deadline)
{
    if (target->deadline.us != AS_MONO_NEVER.us)
        RB_REMOVE(deadline_tree, &engine->deadlines, target);
    target->deadline = deadline;
    if (deadline.us != AS_MONO_NEVER.us)
        RB_INSERT(deadline_tree, &engine->deadlines, target);
}

void target_set_deadline_in(struct as_engine *engine, struct target *target, int64_t us)
{
    target_set_deadline(engine, target, (as_mono_time){as_time_add(engine->mono.us, us)});
}

/* Each phase but idle waits for the answer to one ticket; the observing and scaling ones are found
 * by it. */
void target_set_phase(struct as_engine *engine, struct target *target, enum phase phase)
{
    if (target->phase == PHASE_OBSERVING || target->phase == PHASE_SCALING)
        RB_REMOVE(ticket_tree, &engine->tickets, target);
    engine->busy_count -= target->phase != PHASE_IDLE;
    target->phase = phase;
    engine->busy_count += phase != PHASE_IDLE;
    if (phase == PHASE_OBSERVING || phase == PHASE_SCALING) {
        target->ticket = ++engine->next_ticket;
        RB_INSERT(ticket_tree, &engine->tickets, target);
    }
}

/* Notes what the next decision is an answer to. */
void target_ask(struct as_engine *engine, struct target *target, const char *notification,
                as_wall_time starts_at)
{
    struct asked *asked = &target->asked;
    target->dirty = true;
    if (asked->total == 0 || starts_at.us > asked->youngest.us)
        asked->youngest = starts_at;
    if (strcmp(asked->last, notification) == 0)
        return;
    memcpy(asked->last, notification, AS_ULID_SIZE);
    if (asked->total++ == 0)
        asked->first = engine->mono;
    if (asked->count < AS_RECORD_LIST_MAX) {
        asked->ids = as_xgrow(asked->ids, asked->count, &asked->capacity, AS_ULID_SIZE);
        memcpy(asked->ids[asked->count++], notification, AS_ULID_SIZE);
    }
}

/* Has the target evaluated once the waiter's commit is done. */
void target_touch(struct as_engine *engine, struct target *target, struct waiter *waiter)
{
    (void)engine;
    target->dirty = true;
    for (size_t i = waiter->kick_count; i-- > 0 && i + 8 > waiter->kick_count;) {
        if (waiter->kick[i] == target)
            return;
    }
    waiter->kick =
        as_xgrow(waiter->kick, waiter->kick_count, &waiter->kick_capacity, sizeof(struct target *));
    waiter->kick[waiter->kick_count++] = target;
    target->pins++;
}

static bool is_waiting_after_failure(const struct as_engine *engine, const struct target *target)
{
    return target->retry.us > engine->mono.us;
}

static bool is_named(const struct target *target)
{
    return target->config && !target->config->is_templated;
}

static bool is_needed(const struct target *target)
{
    return target->open_bindings > 0 || target->ending_count > 0 || target->ordered.is_set ||
           target->growth.is_open || is_named(target);
}

bool target_recover_config(struct as_engine *engine, struct target *target)
{
    for (size_t i = 0; i < engine->ruleset->target_count && !target->config; i++) {
        const struct as_target_config *entry = &engine->ruleset->targets[i];
        if (strcmp(entry->name, target->entry) == 0 &&
            as_target_may_have_id(entry, target->ref->id))
            target_set_config(engine, target, entry);
    }
    return target->config != NULL;
}

const struct as_nodes_config *target_get_nodes(const struct target *target)
{
    const struct as_target_config *config = target->config;
    return config && config->kind->has_nodes ? &config->nodes : NULL;
}

void target_evaluate(struct as_engine *engine, struct target *target)
{
    if (engine->stopping || target->phase != PHASE_IDLE ||
        is_waiting_after_failure(engine, target) ||
        (!target->ordered.is_set && after_must_wait(engine, target)))
        return;
    limits_on_evaluate(target);
    if (!is_needed(target) && !target->maybe) {
        target->dirty = false;
        asked_clear(&target->asked);
        return;
    }
    target_set_deadline(engine, target, AS_MONO_NEVER);
    target_set_phase(engine, target, PHASE_OBSERVING);
    target->generation = engine->generation;
    target->with_pods = sources_need_pods(target);
    struct as_observe_request *request = as_arena_alloc(&engine->arena, 1, sizeof(*request));
    request->with_pods = target->with_pods;
    request->nodes = target_get_nodes(target);
    struct as_effect *effect = effect_add(engine, AS_EFFECT_OBSERVE);
    effect->ticket = target->ticket;
    effect->call.ref = target->ref;
    effect->call.observe = request;
    if (!target->ordered.is_set)
        sources_ask(engine, target);
}

static int64_t get_refresh_us(const struct as_engine *engine)
{
    const int64_t paced = (int64_t)engine->named_count * (AS_US_PER_S / REFRESH_PER_SECOND);
    return paced > REFRESH_US ? paced : REFRESH_US;
}

/* The locks are kept for as long as the longest of them may matter, and the last step down for as
 * long as an incident that was reported before it. */
void target_set_keep(const struct as_engine *engine, struct target *target)
{
    if (!target->config)
        return;
    const struct as_cooldown *cooldown = &target->config->bounds.cooldown;
    const int64_t locks[] = {cooldown->up_us, cooldown->down_us, cooldown->up_after_down_us,
                             history_get_span(engine), engine->config.incident_expiry_us};
    target->keep_us = KEEP_LOCKS_US;
    for (size_t i = 0; i < AS_ARRAY_SIZE(locks); i++) {
        if (locks[i] > target->keep_us)
            target->keep_us = locks[i];
    }
}

/* When the locks of a target that nothing refers to can be forgotten. */
static as_mono_time get_forget_time(const struct target *target)
{
    const struct as_moment moments[] = {target->last_up,       target->last_down,
                                        target->dry_last_up,   target->dry_last_down,
                                        target->growth.failed, target->last_step_down};
    as_mono_time forget = {INT64_MIN};
    if (target->event_count > 0) /* also where the locks were ended by hand */
        forget.us =
            as_time_add(target->events[target->event_count - 1].at.mono.us, target->keep_us);
    for (size_t i = 0; i < AS_ARRAY_SIZE(moments); i++) {
        if (!as_moment_is_set(moments[i]))
            continue;
        const int64_t end = as_time_add(moments[i].mono.us, target->keep_us);
        if (end > forget.us)
            forget.us = end;
    }
    return forget;
}

/* Forgets a target without rules, incidents or locks. */
static void forget_or_wait(struct as_engine *engine, struct target *target)
{
    const as_mono_time forget = get_forget_time(target);
    if (forget.us > engine->mono.us) {
        target_set_deadline(engine, target, forget);
        return;
    }
    if (target->pins > 0 || target->pause.is_set)
        return; /* the waiter's commit, or the end of the pause, brings it here again */
    target_set_deadline(engine, target, AS_MONO_NEVER);
    limits_forget(engine, target);
    after_forget(engine, target);
    RB_REMOVE(target_tree, &engine->targets, target);
    engine->target_count--;
    TAILQ_INSERT_TAIL(&engine->gone, target, in_gone);
    if (target->is_stored) {
        effect_delete_target(engine, target);
        effect_commit(engine);
    }
}

/* The target is (again) idle: evaluates it if something happened meanwhile, else sees that it has a
 * deadline if it needs one. */
void target_settle_down(struct as_engine *engine, struct target *target)
{
    target_set_phase(engine, target, PHASE_IDLE);
    sources_drop(engine, target);
    if (engine->stopping)
        return;
    if (target->dirty)
        target_evaluate(engine, target);
    if (target->phase != PHASE_IDLE)
        return;
    limits_on_idle(engine, target);
    after_release(engine, target);
    if (target->growth.is_open && target->deadline.us > engine->mono.us + GROWTH_LOOK_US)
        target_set_deadline_in(engine, target, GROWTH_LOOK_US);
    if (target->deadline.us != AS_MONO_NEVER.us)
        return;
    if (target->maybe)
        target_set_deadline(engine, target, target->maybe->until);
    else if (target->open_bindings > 0 || target->ending_count > 0 || target->ordered.is_set)
        target_set_deadline_in(engine, target, REEVALUATE_US);
    else if (is_named(target))
        target_set_deadline_in(engine, target, get_refresh_us(engine));
    else
        forget_or_wait(engine, target);
}

void target_on_deadline(struct as_engine *engine, struct target *target)
{
    if (target->phase != PHASE_IDLE) {
        target->dirty = true;
        return;
    }
    target_evaluate(engine, target);
    if (target->phase == PHASE_IDLE)
        target_settle_down(engine, target);
}

/* Exponential with jitter (half to whole), longer after answers that a quick retry will not change.
 */
void target_back_off(struct as_engine *engine, struct target *target, enum as_reason outcome,
                     int64_t retry_after_us)
{
    if (outcome == AS_REASON_CONFLICT && ++target->conflicts <= CONFLICTS_AT_ONCE) {
        target->dirty = true;
        return;
    }
    const bool refused = outcome == AS_REASON_FORBIDDEN || outcome == AS_REASON_REJECTED ||
                         outcome == AS_REASON_TARGET_NOT_FOUND;
    int64_t delay = refused ? BACKOFF_REFUSED_US : BACKOFF_FIRST_US;
    for (unsigned i = 0; i < target->failures && delay < BACKOFF_MAX_US; i++)
        delay *= 2;
    if (delay > BACKOFF_MAX_US)
        delay = BACKOFF_MAX_US;
    target->failures++;
    delay = delay / 2 + (int64_t)as_random_get_below(&engine->random, (uint64_t)delay / 2);
    if (retry_after_us > RETRY_AFTER_MAX_US)
        retry_after_us = RETRY_AFTER_MAX_US;
    if (delay < retry_after_us)
        delay = retry_after_us;
    target_set_deadline_in(engine, target, delay);
    target->failed = engine->mono;
    target->retry = target->deadline;
}

/* For a new incident, which is evaluated when it is committed. */
void target_hasten(struct as_engine *engine, struct target *target)
{
    const as_mono_time early = {as_time_add(target->failed.us, NOT_FOUND_LOOK_US)};
    if (target->failure != AS_REASON_TARGET_NOT_FOUND || target->retry.us <= early.us)
        return;
    target->retry = early;
    if (target->phase == PHASE_IDLE && is_waiting_after_failure(engine, target))
        target_set_deadline(engine, target, early);
}

as_mono_time target_limit_look(const struct as_engine *engine, const struct target *target,
                               as_mono_time next)
{
    const as_mono_time latest = {as_time_add(engine->mono.us, REEVALUATE_US)};
    return target->uid[0] && latest.us < next.us ? latest : next;
}

/* No proposal is due before `due`, the decision itself would change at `next_evaluation`. */
static void set_next_look(struct as_engine *engine, struct target *target,
                          const struct outcome *outcome)
{
    const struct as_decision *decision = &outcome->decision;
    int64_t next = as_time_add(engine->mono.us, REEVALUATE_US);
    if (outcome->is_decided && decision->next_evaluation.set)
        next = as_time_add(engine->mono.us, decision->next_evaluation.at.us - engine->wall.us);
    if (outcome->due.us < next)
        next = outcome->due.us;
    if (target->maybe && next > engine->mono.us + MAYBE_LOOK_US)
        next = engine->mono.us + MAYBE_LOOK_US;
    if (next < engine->mono.us + LOOK_AGAIN_MIN_US)
        next = engine->mono.us + LOOK_AGAIN_MIN_US;
    target_set_deadline(engine, target, target_limit_look(engine, target, (as_mono_time){next}));
}

static void hold(struct target *target, const struct as_observation *observation)
{
    struct held *held = as_xcalloc(1, sizeof(*held));
    struct as_pod_seen *pods = as_arena_alloc(&held->arena, observation->pod_count, sizeof(*pods));
    for (size_t i = 0; i < observation->pod_count; i++) {
        pods[i] = observation->pods[i];
        pods[i].name = as_arena_strdup(&held->arena, observation->pods[i].name);
    }
    held->observation = *observation;
    held->observation.pods = pods;
    target->held = held;
}

static void decide(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation)
{
    if (after_must_wait(engine, target)) { /* those have come to work meanwhile */
        target->dirty = true;
        target_settle_down(engine, target);
        return;
    }
    struct outcome outcome;
    decisions_make(engine, target, observation, &outcome);
    target->desired = outcome.is_decided ? outcome.decision.desired : observation->replicas;
    if (outcome.is_decided && outcome.decision.desired != observation->replicas) {
        actions_begin(engine, target, observation, &outcome);
        return;
    }
    target->failures = target->conflicts = 0;
    target->failure = AS_REASON_APPLIED;
    target->origin.set = false;
    if (outcome.is_recorded)
        effect_commit(engine);
    if (outcome.is_decided || target->open_bindings > 0 || target->maybe ||
        target->ending_count > 0)
        set_next_look(engine, target, &outcome);
    target_settle_down(engine, target);
}

/* The target is seen: decides, once all queries are answered too. */
static void go_on(struct as_engine *engine, struct target *target,
                  const struct as_observation *observation)
{
    if (!target->config || engine->stopping) {
        target->failures = target->conflicts = 0;
        target_settle_down(engine, target);
        return;
    }
    if (target->generation != engine->generation ||
        (sources_need_pods(target) && !target->with_pods)) {
        target->dirty = true; /* other rules ask other questions */
        target_settle_down(engine, target);
        return;
    }
    sources_ask(engine, target);
    if (target->asks_open > 0) {
        hold(target, observation);
        target_set_phase(engine, target, PHASE_SAMPLING);
    } else {
        decide(engine, target, observation);
    }
}

void target_on_observed(struct as_engine *engine, struct target *target,
                        const struct as_observation *observation)
{
    target->dirty = false;
    if (observation->outcome != AS_REASON_APPLIED) {
        sources_drop(engine, target);
        actions_record_failure(engine, target, observation);
        const bool ended = endings_review(engine, target, -1);
        const bool ordered = orders_on_failure(engine, target, observation->outcome, false);
        if (ended || ordered) {
            effect_put_target(engine, target);
            effect_commit(engine);
        }
        if (target->maybe && !is_needed(target))
            actions_give_up_maybe(engine, target);
        target_back_off(engine, target, observation->outcome, observation->retry_after_us);
        target_settle_down(engine, target);
        return;
    }
    target->has_size = true;
    target->replicas = observation->replicas;
    target->status_replicas = observation->status_replicas;
    target->names_instances = observation->names_instances;
    target->is_relative = observation->is_relative;
    target->observed = moment_now(engine);
    object_see(engine, target, observation->uid);
    if (target->maybe && actions_settle_maybe(engine, target, observation))
        return;
    if (!growth_review(engine, target, observation) && !orders_begin(engine, target, observation))
        go_on(engine, target, observation);
}

void target_on_queried(struct as_engine *engine, uint64_t ticket,
                       const struct as_query_result *result)
{
    struct target *target = sources_answer(engine, ticket, result);
    if (!target || target->phase != PHASE_SAMPLING || target->asks_open > 0)
        return;
    struct held *held = target->held;
    target->held = NULL;
    go_on(engine, target, &held->observation);
    as_arena_deinit(&held->arena);
    free(held);
}

/* At a stop and under new rules nobody wants the answers any more, and some may take long. */
void targets_stop_sampling(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (target->phase != PHASE_SAMPLING)
            continue;
        held_free(target);
        sources_drop(engine, target);
        target_set_phase(engine, target, PHASE_IDLE);
        target->dirty = true;
    }
}

/* Targets with a plain address are there from the start: for metrics and the API, and because the
 * address is theirs. */
void targets_make_named(struct as_engine *engine)
{
    engine->named_count = 0;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_target_config *config = &engine->ruleset->targets[i];
        if (config->is_templated)
            continue;
        struct as_target_ref *ref;
        if (as_target_ref_new(config, NULL, NULL, &ref, NULL) != 0)
            continue; /* cannot happen: the configuration was checked */
        struct target *target = target_claim(engine, config, ref);
        if (!target)
            continue; /* likewise: two entries of one address are an error */
        target->dirty = true;
        engine->named_count++;
    }
}
