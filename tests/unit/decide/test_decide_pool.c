/*
 * What a decision makes of the plan of a pool: docs/decision.md, `fit` and `take`.
 */
#include <criterion/criterion.h>

#include <alertscaler/decide/decide.h>

#define NONE (-1)

enum rule { NO_RULE, FIT, TAKE, DOWN_ONE, UP_ONE, LOST };

static struct as_proposal make_proposal(enum rule rule)
{
    struct as_proposal proposal = {.rule = "r"};
    switch (rule) {
    case FIT:
        proposal.action = (struct as_action){.kind = AS_ACTION_SCALE_UP, .is_fit = true};
        break;
    case TAKE:
        proposal.action = (struct as_action){.kind = AS_ACTION_SCALE_DOWN, .is_take = true};
        break;
    case DOWN_ONE:
        proposal.action = (struct as_action){.kind = AS_ACTION_SCALE_DOWN, .amount = {.size = 1}};
        break;
    case UP_ONE:
        proposal.action = (struct as_action){.kind = AS_ACTION_SCALE_UP, .amount = {.size = 1}};
        break;
    case LOST:
        proposal.action = (struct as_action){.kind = AS_ACTION_TRACK};
        proposal.error = "gone";
        break;
    case NO_RULE: break;
    }
    return proposal;
}

static const struct {
    const char *what;
    enum rule rules[3];
    int32_t fit, take; /* sizes of the plan; the size is 10; NONE: no plan */
    enum as_reason why;
    bool guarded, paused;
    int64_t cooled; /* seconds since the last increase, with `down` 60; 0: long ago */
    int32_t desired;
    enum as_reason reason;
} rows[] = {
    {"fit adds", {FIT}, 13, 10, .desired = 13, .reason = AS_REASON_SCALED},
    {"fit above max", {FIT}, 30, 10, .desired = 20, .reason = AS_REASON_SCALED},
    {"fit without an opinion",
     {FIT},
     10,
     10,
     .why = AS_REASON_NO_CHANGE,
     .desired = 10,
     .reason = AS_REASON_NO_CHANGE},
    {"no group could take the pods",
     {FIT},
     10,
     10,
     .why = AS_REASON_NO_GROUP,
     .desired = 10,
     .reason = AS_REASON_NO_GROUP},
    {"every group is at its max",
     {FIT},
     10,
     10,
     .why = AS_REASON_AT_MAX,
     .desired = 10,
     .reason = AS_REASON_AT_MAX},
    {"take leaves less", {TAKE}, 10, 7, .desired = 7, .reason = AS_REASON_SCALED},
    {"take down to min", {TAKE}, 10, 0, .desired = 2, .reason = AS_REASON_SCALED},
    {"nothing to take", {TAKE}, 10, 10, .desired = 10, .reason = AS_REASON_NO_CHANGE},
    {"take never raises", {TAKE}, 10, 12, .desired = 10, .reason = AS_REASON_NO_CHANGE},
    {"fit wins over take", {FIT, TAKE}, 12, 7, .desired = 12, .reason = AS_REASON_SCALED},
    {"fit does not veto take",
     {FIT, TAKE},
     10,
     7,
     .why = AS_REASON_AT_MAX,
     .desired = 7,
     .reason = AS_REASON_SCALED},
    {"fit does not veto others",
     {FIT, DOWN_ONE},
     10,
     10,
     .why = AS_REASON_NO_GROUP,
     .desired = 9,
     .reason = AS_REASON_SCALED},
    {"others decide: not no_group",
     {FIT, UP_ONE},
     10,
     10,
     .why = AS_REASON_NO_GROUP,
     .desired = 11,
     .reason = AS_REASON_SCALED},
    {"nothing to take, and pods that no group takes",
     {TAKE, FIT},
     10,
     10,
     .why = AS_REASON_NO_GROUP,
     .desired = 10,
     .reason = AS_REASON_NO_GROUP},
    {"take has a size: it keeps others from going below",
     {TAKE, DOWN_ONE},
     10,
     10,
     .desired = 10,
     .reason = AS_REASON_VETOED},
    {"a lost value forbids to take",
     {TAKE, LOST},
     10,
     7,
     .desired = 10,
     .reason = AS_REASON_METRIC_UNAVAILABLE},
    {"a lost value does not forbid to fit",
     {FIT, LOST},
     12,
     10,
     .desired = 12,
     .reason = AS_REASON_SCALED},
    {"no plan", {FIT, TAKE}, NONE, NONE, .desired = 10, .reason = AS_REASON_METRIC_UNAVAILABLE},
    {"without proof nothing is taken",
     {TAKE},
     10,
     7,
     .guarded = true,
     .desired = 10,
     .reason = AS_REASON_GUARDED},
    {"without proof it still fits",
     {FIT, TAKE},
     12,
     7,
     .guarded = true,
     .desired = 12,
     .reason = AS_REASON_SCALED},
    {"paused", {FIT}, 12, 10, .paused = true, .desired = 10, .reason = AS_REASON_PAUSED},
    {"cooldown.down after an increase",
     {TAKE},
     10,
     7,
     .cooled = 59,
     .desired = 10,
     .reason = AS_REASON_COOLDOWN},
    {"... is over", {TAKE}, 10, 7, .cooled = 60, .desired = 7, .reason = AS_REASON_SCALED},
};

Test(decide_pool, gates_are_those_of_every_rule)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_proposal proposals[3];
        struct as_proposal_result results[3];
        struct as_decision decision;
        const struct as_pool_plan plan = {.fit_reason = rows[i].why,
                                          .size = 10,
                                          .fit_size = rows[i].fit,
                                          .take_size = rows[i].take};
        struct as_decide_input input = {
            .version = AS_DECIDE_VERSION,
            .now = {AS_US_PER_DAY},
            .config = {.min = 2, .max = 20, .cooldown.down_us = AS_US_PER_MIN},
            .replicas = 10,
            .status_replicas = 10,
            .plan = rows[i].fit == NONE ? NULL : &plan,
            .flags.guarded = rows[i].guarded,
            .flags.paused = rows[i].paused,
            .proposals = proposals,
        };
        if (rows[i].cooled > 0)
            input.last_up =
                (as_maybe_time){.set = true, .at = {AS_US_PER_DAY - rows[i].cooled * AS_US_PER_S}};
        while (input.proposal_count < 3 && rows[i].rules[input.proposal_count] != NO_RULE) {
            proposals[input.proposal_count] = make_proposal(rows[i].rules[input.proposal_count]);
            input.proposal_count++;
        }
        as_decide(&input, results, &decision);
        cr_expect_eq(decision.desired, rows[i].desired, "%s: %d", rows[i].what, decision.desired);
        cr_expect_eq(decision.reason, rows[i].reason, "%s: %s", rows[i].what,
                     as_reason_get_word(decision.reason));
    }
}

Test(decide_pool, fit_and_take_are_absolute)
{
    cr_expect(
        as_action_is_absolute(&(struct as_action){.kind = AS_ACTION_SCALE_UP, .is_fit = true}));
    cr_expect(
        as_action_is_absolute(&(struct as_action){.kind = AS_ACTION_SCALE_DOWN, .is_take = true}));
    cr_expect_not(as_action_is_absolute(&(struct as_action){.kind = AS_ACTION_SCALE_DOWN}));
}

/* Not the rule with `take`, which has the present size. */
Test(decide_pool, what_keeps_waiting_pods_from_a_node_names_the_rule_with_fit)
{
    for (int32_t version = 2; version <= 3; version++) {
        struct as_proposal proposals[] = {make_proposal(TAKE), make_proposal(FIT)};
        struct as_proposal_result results[2];
        struct as_decision decision;
        const struct as_pool_plan plan = {
            .fit_reason = AS_REASON_AT_MAX, .size = 10, .fit_size = 10, .take_size = 10};
        const struct as_decide_input input = {.version = version,
                                              .now = {AS_US_PER_DAY},
                                              .config = {.max = 20},
                                              .replicas = 10,
                                              .status_replicas = 10,
                                              .plan = &plan,
                                              .proposals = proposals,
                                              .proposal_count = 2};
        proposals[0].rule = "idle";
        proposals[1].rule = "wait";
        as_decide(&input, results, &decision);
        cr_expect_eq(decision.reason, AS_REASON_AT_MAX);
        cr_expect_str_eq(decision.rule, version == 2 ? "idle" : "wait");
    }
}
