/*
 * An example of a concern: the engine runs with its table and one row more. The row forbids nothing
 * and remembers nothing that is stored; it shows when each hook is called, and that a row alone
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

/* What the hooks of the row say and hear. At night decisions set at most 5. */
static struct {
    bool is_night, is_using;
    unsigned reviews, idles;
    int32_t last_seen;
} night;

static bool night_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine, (void)target;
    return night.is_using;
}

static bool night_review(struct as_engine *engine, struct target *target, int32_t replicas)
{
    (void)engine, (void)target;
    night.reviews++;
    night.last_seen = replicas;
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
    (void)engine, (void)target;
    night.idles++;
    return false;
}

static int64_t night_get_observe_us(const struct as_engine *engine, const struct target *target)
{
    (void)engine, (void)target;
    return night.is_using ? 7 * AS_US_PER_S : INT64_MAX;
}

static const struct concern night_row = {
    .name = "nights",
    .is_using = night_is_using,
    .review = night_review,
    .fill_input = night_fill_input,
    .on_idle = night_on_idle,
    .get_observe_us = night_get_observe_us,
};

/* The engine's rows, then the example: this table is linked in place of the engine's. */
#define ROW(ID, name) [CONCERN_##ID] = &concern_##name,
const struct concern *const engine_concerns[] = {
    ENGINE_CONCERNS(ROW)[CONCERN_COUNT] = &night_row,
    [CONCERN_COUNT + 1] = NULL,
};

Test(example_concern, a_row_that_says_nothing_changes_nothing)
{
    WITH(h, shop);
    memset(&night, 0, sizeof(night));
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "decided web 4>6 scaled by slow; scale web 4>6; acted web 4>6 applied");
    cr_expect_eq(night.reviews, 1);
    cr_expect_eq(night.last_seen, 4);
    cr_expect_gt(night.idles, 0);
    harness_stop(&h);
}

Test(example_concern, a_row_bounds_decisions)
{
    WITH(h, shop);
    memset(&night, 0, sizeof(night));
    night.is_night = true;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "decided web 4>5 scaled by slow; scale web 4>5; acted web 4>5 applied");
    harness_stop(&h);
}

Test(example_concern, a_row_keeps_a_target_observed)
{
    WITH(h, shop);
    memset(&night, 0, sizeof(night));
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
