/*
 * An example of a concern: the engine runs with its table and one row more. The row has state on
 * each target, in memory alone. The tests show when each hook is called, and that a row alone
 * changes what a target does.
 */
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine/engine_concerns.h"
#include "engine_harness.h"

static const struct spec shop = {
    .targets = {{.name = "web", .min = 1, .max = 20}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};

#define OPENED "said queued; opened; answered; observe web; "

/* What the tests set. At night decisions set at most 5. */
static struct {
    bool is_night, is_using, is_quiet, is_late;
    unsigned targets;
    const struct target *last;
} night;

struct night_state { /* on each target */
    struct target *target;
    unsigned reviews, idles, applied, unsent;
    int32_t last_seen;
};

static struct night_state *get_state(const struct target *target)
{
    return target->parts[CONCERN_COUNT];
}

static void night_init(struct target *target)
{
    cr_assert_null(get_state(target)->target, "the state is not zeros");
    get_state(target)->target = target;
    night.targets++;
    night.last = target;
}

static void night_deinit(struct target *target)
{
    cr_assert_eq(get_state(target)->target, target, "the state is another target's");
    night.targets--;
}

static bool night_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine, (void)target;
    return night.is_using;
}

static bool night_review(struct as_engine *engine, struct target *target, int32_t replicas)
{
    (void)engine;
    get_state(target)->reviews++;
    get_state(target)->last_seen = replicas;
    return false;
}

static void night_fill_input(struct as_engine *engine, const struct target *target,
                             const struct as_observation *observation,
                             struct as_decide_input *input)
{
    (void)engine, (void)target, (void)observation;
    if (night.is_night && input->config.max > 5)
        input->config.max = 5;
}

static bool night_on_idle(struct as_engine *engine, struct target *target)
{
    (void)engine;
    get_state(target)->idles++;
    return false;
}

static int64_t night_get_observe_us(const struct as_engine *engine, const struct target *target)
{
    (void)engine, (void)target;
    return night.is_using ? 7 * AS_US_PER_S : INT64_MAX;
}

/* Nobody hears an increase at quiet times. */
static void night_visit_blocks(const struct block_query *query, const struct target *target)
{
    (void)target;
    if (night.is_quiet)
        query->visit(query->context,
                     &(struct block){.ways = AS_WAYS_UP, .kind = BLOCK_SCHEDULE, .name = "quiet"});
}

static const char *night_find_obstacle(const struct as_engine *engine, const struct target *target,
                                       const struct intent *intent)
{
    (void)engine, (void)target, (void)intent;
    return night.is_late ? "not sent, as it is late" : NULL;
}

static void night_on_unsent(struct as_engine *engine, struct target *target, struct intent *intent)
{
    (void)engine, (void)intent;
    get_state(target)->unsent++;
    night.is_late = false;
}

static void night_on_applied(struct as_engine *engine, struct target *target,
                             const struct action *action)
{
    (void)engine;
    cr_expect_eq(target->replicas, action->intent->state.from, "the former size");
    get_state(target)->applied++;
}

static const struct concern night_row = {
    .name = "nights",
    .size = sizeof(struct night_state),
    .init = night_init,
    .deinit = night_deinit,
    .is_using = night_is_using,
    .review = night_review,
    .fill_input = night_fill_input,
    .on_idle = night_on_idle,
    .get_observe_us = night_get_observe_us,
    .visit_blocks = night_visit_blocks,
    .find_obstacle = night_find_obstacle,
    .on_unsent = night_on_unsent,
    .on_applied = night_on_applied,
};

/* The engine's rows, then the example: this table is linked in place of the engine's. */
#define ROW(ID, name) [CONCERN_##ID] = &concern_##name,
const struct concern *const engine_concerns[] = {
    ENGINE_CONCERNS(ROW)[CONCERN_COUNT] = &night_row,
    [CONCERN_COUNT + 1] = NULL,
};

Test(example_concern, a_row_that_says_nothing_changes_nothing)
{
    memset(&night, 0, sizeof(night));
    WITH(h, shop);
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "decided web 4>6 scaled by slow; scale web 4>6; acted web 4>6 applied");
    const struct night_state *state = get_state(night.last);
    cr_expect_eq(state->reviews, 2); /* at the start, and for the alert */
    cr_expect_eq(state->last_seen, 4);
    cr_expect_eq(state->applied, 1);
    cr_expect_gt(state->idles, 0);
    cr_expect_eq(night.targets, 1);
    harness_stop(&h);
    cr_expect_eq(night.targets, 0);
}

Test(example_concern, a_row_blocks_a_direction)
{
    memset(&night, 0, sizeof(night));
    WITH(h, shop);
    night.is_quiet = true;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "decided web 4 held by slow");
    harness_stop(&h);
}

Test(example_concern, a_row_stops_a_committed_action)
{
    memset(&night, 0, sizeof(night));
    WITH(h, shop);
    night.is_late = true;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "decided web 4>6 scaled by slow; acted web 4>6 superseded; observe web; "
                       "scale web 4>6; acted web 4>6 applied");
    cr_expect_eq(get_state(night.last)->unsent, 1);
    cr_expect_eq(get_state(night.last)->applied, 1);
    harness_stop(&h);
}

Test(example_concern, a_row_bounds_decisions)
{
    memset(&night, 0, sizeof(night));
    WITH(h, shop);
    night.is_night = true;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "decided web 4>5 scaled by slow; scale web 4>5; acted web 4>5 applied");
    harness_stop(&h);
}

Test(example_concern, a_row_keeps_a_target_observed)
{
    memset(&night, 0, sizeof(night));
    WITH(h, shop);
    fire(&h, "Slow", 990);
    resolve(&h, "Slow", 990);
    (void)said(&h);
    night.is_using = true;
    tick(&h, 65); /* on to the usual deadline, which asks the row */
    (void)said(&h);
    tick(&h, 8);
    cr_said(&h, "observe web");
    harness_stop(&h);
}
