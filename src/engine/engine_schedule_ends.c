/*
 * The end of schedules: the size that a schedule's `min` has added goes (`end: min`, `end:
 * before`), and the size from before a schedule with `max: 0` returns.
 *
 * What schedules have set is remembered from the first of overlapping or adjacent schedules on, and
 * stored with the target. A size that a rule, a person or another controller sets meanwhile is not
 * a schedule's: then nothing is taken back, and nothing returns, until the last of the schedules
 * ends. A decrease never goes below the size before the schedules, so it takes at most what they
 * have added.
 *
 * The module sets no size: the end of a schedule is a proposal (decide/).
 */
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

/* A begin that was observed later than this was missed: nothing is known of the size before it. */
#define BEGIN_MISSED_US (5 * AS_US_PER_MIN)

static struct as_schedule_size_state *get_size(const struct target *target)
{
    return target->parts[CONCERN_SCHEDULE_ENDS];
}

static void size_clear(struct target *target)
{
    struct as_schedule_size_state *state = get_size(target);
    as_rows_free_texts(as_schedule_size_rows, state);
    *state = (struct as_schedule_size_state){0};
}

static void size_assign(struct target *target, struct as_schedule_size_state state)
{
    as_rows_own_texts(as_schedule_size_rows, &state);
    size_clear(target);
    state.is_set = true;
    *get_size(target) = state;
}

/* ---- the schedules in force ---- */

/* Of those that take back what they add: the one with the highest `min`; NULL: none. */
static const struct as_schedule *find_raising(const struct target *target,
                                              const struct as_schedule_bounds *bounds)
{
    const struct as_target_config *config = target->config;
    const struct as_schedule *found = NULL;
    for (size_t i = 0; i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        if ((bounds->in_force >> i & 1) && schedule->at_end != AS_SCHEDULE_KEEP &&
            (!found || schedule->min > found->min))
            found = schedule;
    }
    return found;
}

/* The schedule that keeps the size at 0; NULL: none. */
static const struct as_schedule *find_zero(const struct target *target,
                                           const struct as_schedule_bounds *bounds)
{
    const struct as_target_config *config = target->config;
    for (size_t i = 0; i < config->schedule_count && bounds->max == 0; i++) {
        if ((bounds->in_force >> i & 1) && as_schedule_is_zero(&config->schedules[i]))
            return &config->schedules[i];
    }
    return NULL;
}

/* The entry still has the schedule that has set the size. */
static bool has_schedule(const struct target *target, const char *name)
{
    const struct as_target_config *config = target->config;
    for (size_t i = 0; i < config->schedule_count; i++) {
        if (strcmp(config->schedules[i].name, name) == 0)
            return config->schedules[i].at_end != AS_SCHEDULE_KEEP;
    }
    return false;
}

/* ---- what they have set ---- */

/* The least size that an end leaves. */
static int32_t get_lowest(const struct as_schedule_size_state *state,
                          const struct as_schedule_bounds *bounds)
{
    return state->before > bounds->min ? state->before : bounds->min;
}

/* Nothing can be taken back, and nothing can return. */
static bool size_is_over(const struct target *target, const struct as_schedule_bounds *bounds)
{
    const struct as_schedule_size_state *state = get_size(target);
    if (find_raising(target, bounds) || find_zero(target, bounds))
        return false;
    if (state->is_void)
        return true;
    return !state->is_zero &&
           (state->size <= get_lowest(state, bounds) || !has_schedule(target, state->schedule));
}

static bool size_begin(const struct as_engine *engine, struct target *target,
                       const struct as_schedule *raising, const struct as_observation *observation)
{
    const int32_t replicas = observation->replicas;
    const as_wall_time earlier = {engine->wall.us - BEGIN_MISSED_US};
    const bool is_missed = as_schedule_state(raising, earlier).is_in_force;
    if (replicas == 0 && target->config->bounds.min > 0) /* it is switched off */
        return false;
    size_assign(target, (struct as_schedule_size_state){
                            .schedule = raising->name,
                            .at_end = raising->at_end,
                            .before = is_missed && replicas == 0 ? 1 : replicas,
                            .size = replicas,
                            .version = observation->version,
                        });
    return true;
}

/* True: the target is to be stored. */
static bool size_observe(const struct as_engine *engine, struct target *target,
                         const struct as_observation *observation)
{
    struct as_schedule_size_state *state = get_size(target);
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    const struct as_schedule *raising = find_raising(target, &bounds);
    if (!state->is_set)
        return raising && size_begin(engine, target, raising, observation);
    const bool was_void = state->is_void;
    if (observation->replicas != state->size &&
        !version_lacks(observation->version, state->version))
        state->is_void = true;
    if (size_is_over(target, &bounds)) {
        size_clear(target);
        return true;
    }
    return state->is_void != was_void;
}

static void schedule_ends_on_observed(struct as_engine *engine, struct target *target,
                                      const struct as_observation *observation)
{
    if (!target->config || target->in_doubt || observation->in_progress ||
        !size_observe(engine, target, observation))
        return;
    effect_put_target(engine, target);
    effect_commit(engine);
}

/* Whether a bound or the end of a schedule, and nothing else, led to the action. */
static bool is_by_bounds(const struct action *action)
{
    const struct intent *intent = action->intent;
    const struct marks *marks = &action->marks;
    return !*intent->state.rule && !intent->state.is_ordered && !intent->is_clean_up &&
           !marks->is_take_back && !marks->is_put_back && !marks->is_assignment;
}

static void size_set_zero(struct target *target, const struct as_schedule *zero,
                          const struct as_intent_state *change)
{
    const int32_t from = change->from;
    const struct as_schedule_size_state *state = get_size(target);
    const bool is_added = state->is_set && !state->is_void && !state->is_zero &&
                          state->size == from && state->before < from;
    size_assign(target, (struct as_schedule_size_state){
                            .schedule = zero->name,
                            .is_zero = true,
                            .before = is_added ? state->before : from,
                            .version = change->version,
                        });
}

/* The size of a schedule in force that takes back what it adds. */
static void size_raise(struct target *target, const struct as_schedule *raising,
                       const struct as_intent_state *change)
{
    size_assign(target, (struct as_schedule_size_state){
                            .schedule = raising->name,
                            .at_end = raising->at_end,
                            .before = get_size(target)->before,
                            .size = change->to,
                            .version = change->version,
                        });
}

/* A step back: the schedules are over. */
static void size_lower(struct target *target, const struct as_intent_state *change)
{
    struct as_schedule_size_state next = *get_size(target);
    next.size = change->to;
    next.version = change->version;
    size_assign(target, next);
}

static void schedule_ends_on_applied(struct as_engine *engine, struct target *target,
                                     const struct action *action)
{
    const struct as_intent_state *change = &action->intent->state;
    struct as_schedule_size_state *state = get_size(target);
    if (!target->config || action->marks.is_catch_up)
        return;
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    const struct as_schedule *raising = find_raising(target, &bounds);
    const struct as_schedule *zero = find_zero(target, &bounds);
    const bool is_ours = is_by_bounds(action);
    const bool is_known = state->is_set && !state->is_void && state->size == change->from;
    const bool is_own_min = raising && raising->min >= bounds.min && change->to <= raising->min;
    if (is_ours && zero && change->to == 0)
        size_set_zero(target, zero, change);
    else if (!state->is_set)
        return;
    else if (!is_ours || !is_known)
        state->is_void = true;
    else if (raising && (state->is_zero || change->to < change->from || is_own_min))
        size_raise(target, raising, change);
    else if (state->is_zero)
        size_clear(target);
    else if (change->to > change->from)
        state->is_void = true; /* by another bound, which takes nothing back */
    else
        size_lower(target, change);
    if (state->is_set && size_is_over(target, &bounds))
        size_clear(target);
}

/* ---- what their end wants ---- */

bool schedule_ends_get_size(const struct as_engine *engine, const struct target *target,
                            int32_t replicas, const char **schedule_out, int32_t *size_out)
{
    const struct as_schedule_size_state *state = get_size(target);
    if (!state->is_set || state->is_void || replicas != state->size)
        return false;
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    const int32_t lowest = get_lowest(state, &bounds);
    if (state->is_zero ? find_zero(target, &bounds) != NULL
                       : replicas <= lowest || (state->at_end == AS_SCHEDULE_BEFORE &&
                                                find_raising(target, &bounds) != NULL))
        return false;
    *schedule_out = state->schedule;
    *size_out = lowest > 1 || !state->is_zero ? lowest : 1;
    return true;
}

static void schedule_ends_fill_input(struct as_engine *engine, const struct target *target,
                                     const struct as_observation *observation,
                                     struct as_decide_input *input)
{
    const struct as_schedule_size_state *state = get_size(target);
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    input->enforce_max = find_zero(target, &bounds) && !state->is_zero;
    input->is_scheduled_zero = state->is_zero && !state->is_void && observation->replicas == 0;
}

/* The bounds may have changed since the decision. */
static const char *schedule_ends_find_obstacle(const struct as_engine *engine,
                                               const struct target *target,
                                               const struct intent *intent)
{
    const struct as_schedule_size_state *state = get_size(target);
    const bool is_back = state->is_set && !state->is_zero && !*intent->state.rule &&
                         !intent->state.is_ordered && intent->state.from == state->size &&
                         intent->state.to < intent->state.from;
    return is_back && intent->state.to < target_get_bounds(engine, target).min
               ? "not sent, as the bounds have changed since it was decided"
               : NULL;
}

/* ---- the life of the target ---- */

static bool schedule_ends_remake(struct as_engine *engine, struct target *target)
{
    const struct as_target_config *entry = target_find_entry(engine, target);
    if (!get_size(target)->is_set)
        return false;
    if (!entry) {
        size_clear(target);
        return true;
    }
    schedules_resume(engine, target, entry);
    return false;
}

static bool schedule_ends_are_using(const struct as_engine *engine, const struct target *target)
{
    const char *schedule;
    int32_t size;
    return target->config && target->has_size &&
           schedule_ends_get_size(engine, target, target->replicas, &schedule, &size);
}

static as_mono_time schedule_ends_get_forget_time(const struct target *target)
{
    return get_size(target)->is_set ? AS_MONO_NEVER : (as_mono_time){INT64_MIN};
}

/* An object that has left the list and is not there comes back as another one, if at all. */
static bool schedule_ends_on_unseen(struct as_engine *engine, struct target *target,
                                    enum as_reason outcome)
{
    (void)engine;
    if (outcome != AS_REASON_TARGET_NOT_FOUND || !get_size(target)->is_set || !target->config ||
        !target->config->list_selector || listings_has(target))
        return false;
    size_clear(target);
    return true;
}

static void schedule_ends_forget_sizes(struct as_engine *engine, struct target *target,
                                       const struct other_object *why)
{
    (void)engine, (void)why;
    size_clear(target);
}

static void schedule_ends_store(struct as_engine *engine, const struct target *target,
                                struct as_target_state *state)
{
    const struct as_schedule_size_state *size = get_size(target);
    if (size->is_set)
        state->schedule_size =
            as_rows_copy(&engine->arena, as_schedule_size_rows, size, 1, sizeof(*size));
}

static void schedule_ends_restore(struct as_engine *engine, struct target *target,
                                  const struct as_target_state *state)
{
    (void)engine;
    if (state->schedule_size)
        size_assign(target, *state->schedule_size);
}

const struct concern concern_schedule_ends = {
    .name = "schedule ends",
    .size = sizeof(struct as_schedule_size_state),
    .deinit = size_clear,
    .store = schedule_ends_store,
    .restore = schedule_ends_restore,
    .remake = schedule_ends_remake,
    .needs_address = schedule_ends_is_open,
    .is_using = schedule_ends_are_using,
    .get_forget_time = schedule_ends_get_forget_time,
    .forget_sizes = schedule_ends_forget_sizes,
    .on_observed = schedule_ends_on_observed,
    .on_unseen = schedule_ends_on_unseen,
    .fill_input = schedule_ends_fill_input,
    .find_obstacle = schedule_ends_find_obstacle,
    .on_applied = schedule_ends_on_applied,
};
