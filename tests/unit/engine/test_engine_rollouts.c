/*
 * `rollout: wait`: while a rollout is under way, or its progress is not known, the size goes up
 * only.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define RULES                                                                                      \
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},             \
              {.name = "idle",                                                                     \
               .match = {"alertname=Idle"},                                                        \
               .target = "web",                                                                    \
               .down = 1,                                                                          \
               .guard = "none",                                                                    \
               .every = 36000}}

static const struct spec waiting = {
    .targets = {{.name = "web", .min = 1, .max = 20, .rollout = AS_ROLLOUT_WAIT}}, RULES};
static const struct spec as_hpa = {.targets = {{.name = "web", .min = 1, .max = 20}}, RULES};
static const struct spec bounded = {
    .targets =
        {{.name = "web", .min = 1, .max = 3, .rollout = AS_ROLLOUT_WAIT, .enforce_bounds = true}},
    RULES};
static int32_t rollout_get_size(struct harness *harness)
{
    return harness_target(harness, "web")->size;
}

/* Another revision: an operator changes the pod template. */
static void roll_out(struct harness *harness, enum as_rollout_progress progress,
                     const char *revision)
{
    struct virtual_target *target = harness_target(harness, "web");
    target->rollout = (struct as_rollout_seen){.progress = progress};
    snprintf(target->rollout.revision, sizeof(target->rollout.revision), "%s", revision);
    target->version++;
}

Test(engine_rollouts, only_increases_while_a_rollout_is_under_way)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    cr_said(&h, "said queued; opened; answered; observe web with rollout; "
                "decided web 4 rollout_under_way by idle");
    fire(&h, "Slow", 990);
    cr_assert_eq(rollout_get_size(&h), 6);
    harness_stop(&h);
}

Test(engine_rollouts, the_end_of_the_rollout_frees_decreases)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    tick(&h, 300);
    cr_assert_eq(rollout_get_size(&h), 4);
    roll_out(&h, AS_PROGRESS_NONE, "2");
    tick(&h, 60);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_rollouts, other_targets_neither_ask_nor_wait)
{
    WITH(h, as_hpa);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    const char *text = said(&h);
    cr_assert_null(strstr(text, "with rollout"), "%s", text);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_rollouts, a_rollout_that_never_ends_counts_for_thirty_minutes)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    tick(&h, 30 * 60 - 1);
    cr_assert_eq(rollout_get_size(&h), 4);
    tick(&h, 61);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_rollouts, another_revision_is_another_rollout)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    tick(&h, 29 * 60);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "3");
    tick(&h, 29 * 60);
    cr_assert_eq(rollout_get_size(&h), 4);
    tick(&h, 3 * 60);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_rollouts, a_restart_does_not_begin_the_time_anew)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    for (unsigned i = 0; i < 28; i++)
        harness_crash(&h, 60);
    cr_assert_eq(rollout_get_size(&h), 4);
    harness_crash(&h, 180);
    tick(&h, 60);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_rollouts, a_rollout_that_ended_while_the_daemon_was_away_is_over)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    roll_out(&h, AS_PROGRESS_NONE, "2");
    harness_crash(&h, 1);
    tick(&h, 60);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_rollouts, an_unknown_progress_forbids_decreases_without_a_limit)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNKNOWN, "");
    snprintf(harness_target(&h, "web")->rollout.why, AS_MESSAGE_SIZE, "no right");
    fire(&h, "Idle", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4 rollout_under_way by idle"));
    cr_assert_str_eq(h.last_holder, "no right");
    tick(&h, 7200);
    cr_assert_eq(rollout_get_size(&h), 4);
    fire(&h, "Slow", 990);
    cr_assert_eq(rollout_get_size(&h), 6, "increases go on");
    harness_stop(&h);
}

/* The time that was counted is not lost. */
Test(engine_rollouts, an_observation_that_fails_in_between_changes_nothing)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    tick(&h, 25 * 60);
    roll_out(&h, AS_PROGRESS_UNKNOWN, "");
    tick(&h, 120);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    tick(&h, 2 * 60);
    cr_assert_eq(rollout_get_size(&h), 4);
    tick(&h, 2 * 60);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

/* The change names the version of the observation: the API server refuses it. */
Test(engine_rollouts, a_rollout_that_begins_between_observation_and_change_is_seen)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_NONE, "1");
    h.hold_calls = true;
    fire(&h, "Idle", 990);
    harness_settle_to_request(&h);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    h.hold_calls = false;
    harness_settle(&h);
    tick(&h, 60);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "acted web 4>3 conflict"), "%s", text);
    cr_assert_not_null(strstr(text, "decided web 4 rollout_under_way"), "%s", text);
    cr_assert_eq(rollout_get_size(&h), 4);
    harness_stop(&h);
}

Test(engine_rollouts, a_size_above_max_comes_back_after_the_rollout)
{
    WITH(h, bounded);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Slow", 990);
    cr_assert_eq(rollout_get_size(&h), 4);
    roll_out(&h, AS_PROGRESS_NONE, "2");
    tick(&h, 60);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_rollouts, a_persons_size_is_set_all_the_same)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 2});
    cr_assert_eq(rollout_get_size(&h), 2);
    harness_stop(&h);
}

Test(engine_rollouts, new_rules_without_the_key_end_the_waiting)
{
    WITH(h, waiting);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    fire(&h, "Idle", 990);
    harness_reload(&h, &as_hpa);
    tick(&h, 60);
    cr_assert_eq(rollout_get_size(&h), 3);
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    harness_reload(&h, &waiting);
    cr_assert_eq(rollout_get_size(&h), 3);
    harness_stop(&h);
}

/* One write when the rollout begins, one when it ends. */
Test(engine_rollouts, the_state_is_stored_when_it_changes)
{
    WITH(h, waiting);
    fire(&h, "Idle", 990);
    roll_out(&h, AS_PROGRESS_NONE, "1");
    tick(&h, 60);
    const unsigned before = h.target_puts;
    roll_out(&h, AS_PROGRESS_UNDER_WAY, "2");
    tick(&h, 60);
    cr_assert_eq(h.target_puts, before + 1);
    tick(&h, 600);
    cr_assert_eq(h.target_puts, before + 1);
    harness_stop(&h);
}
