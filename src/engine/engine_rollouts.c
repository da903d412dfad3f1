/*
 * Rollouts of targets with `rollout: wait`: while the rollout of a workload is under way, the size
 * does not go down. A rollout that never ends counts for ROLLOUT_MAX_US.
 *
 * The time since when it is under way is stored, so that a restart does not begin it anew. Another
 * revision is another rollout. While it is not known whether a rollout is under way, the size does
 * not go down either, without a limit: a lost right must not remove pods.
 */
#include <string.h>

#include "engine_concerns.h"
#include "engine_effects.h"

#define ROLLOUT_MAX_US (30 * AS_US_PER_MIN)

struct rollout {
    struct as_rollout_state state;     /* `since` is unset: none is under way */
    enum as_rollout_progress progress; /* of the last observation */
    char why[AS_MESSAGE_SIZE];         /* of an unknown progress */
};

static struct rollout *get_rollout(const struct target *target)
{
    return target->parts[CONCERN_ROLLOUTS];
}

bool rollouts_are_awaited(const struct target *target)
{
    return target->config && target->config->bounds.rollout == AS_ROLLOUT_WAIT;
}

static void rollout_begin(const struct as_engine *engine, struct rollout *rollout,
                          const char *revision)
{
    rollout->state.since = moment_now(engine);
    memcpy(rollout->state.revision, revision, strlen(revision) + 1);
}

static void rollout_end(struct rollout *rollout)
{
    rollout->state = (struct as_rollout_state){.since = AS_MOMENT_NEVER};
}

static void rollouts_on_observed(struct as_engine *engine, struct target *target,
                                 const struct as_observation *observation)
{
    struct rollout *rollout = get_rollout(target);
    const struct as_rollout_seen *seen = &observation->rollout;
    const bool was_under_way = as_moment_is_set(rollout->state.since);
    rollout->progress = seen->progress;
    memcpy(rollout->why, seen->why, sizeof(rollout->why));
    if (rollouts_are_awaited(target) && seen->progress == AS_PROGRESS_UNKNOWN)
        return;
    if (rollouts_are_awaited(target) && seen->progress == AS_PROGRESS_UNDER_WAY) {
        if (was_under_way && strcmp(rollout->state.revision, seen->revision) == 0)
            return;
        rollout_begin(engine, rollout, seen->revision);
    } else if (was_under_way) {
        rollout_end(rollout);
    } else {
        return;
    }
    effect_put_target(engine, target);
    effect_commit(engine);
}

static void rollouts_visit_blocks(const struct block_query *query, const struct target *target)
{
    const struct rollout *rollout = get_rollout(target);
    struct block block = {.ways = AS_WAYS_DOWN, .kind = BLOCK_ROLLOUT};
    if (!rollouts_are_awaited(target) || !target->has_size)
        return;
    if (rollout->progress == AS_PROGRESS_UNKNOWN) {
        block.name = rollout->why[0] ? rollout->why : "the workload was not read";
    } else if (as_moment_is_set(rollout->state.since)) {
        const int64_t left_us =
            as_time_add(rollout->state.since.mono.us, ROLLOUT_MAX_US) - query->now.us;
        if (left_us <= 0)
            return;
        block.until = (as_maybe_time){true, {as_time_add(query->wall.us, left_us)}};
    } else {
        return;
    }
    query->visit(query->context, &block);
}

static void rollouts_init(struct target *target)
{
    rollout_end(get_rollout(target));
}

/* Another object has the name. */
static void rollouts_forget_sizes(struct as_engine *engine, struct target *target,
                                  const struct other_object *why)
{
    (void)engine, (void)why;
    rollout_end(get_rollout(target));
}

static void rollouts_store(struct as_engine *engine, const struct target *target,
                           struct as_target_state *state)
{
    const struct as_rollout_state *rollout = &get_rollout(target)->state;
    if (as_moment_is_set(rollout->since))
        state->rollout =
            as_rows_copy(&engine->arena, as_rollout_rows, rollout, 1, sizeof(*rollout));
}

static void rollouts_restore(struct as_engine *engine, struct target *target,
                             const struct as_target_state *state)
{
    (void)engine;
    if (state->rollout)
        get_rollout(target)->state = *state->rollout;
}

const struct concern concern_rollouts = {
    .name = "rollouts",
    .size = sizeof(struct rollout),
    .init = rollouts_init,
    .store = rollouts_store,
    .restore = rollouts_restore,
    .forget_sizes = rollouts_forget_sizes,
    .on_observed = rollouts_on_observed,
    .visit_blocks = rollouts_visit_blocks,
};
