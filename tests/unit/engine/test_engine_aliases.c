/*
 * Targets with different addresses that are one node group at their provider: only one target
 * changes it.
 */
#include "engine_harness.h"

#include <stdio.h>

#define GROUP "node_group/mine/"

/* An entry without a template, and one that any label fills. */
static const struct spec named_and_any = {
    .targets = {{.name = "web", .is_group = true, .family = "cloud", .max = 6, .up = 60},
                {.name = "any",
                 .is_group = true,
                 .family = "cloud",
                 .address = "{{ .Labels.pool }}",
                 .allow = "*",
                 .max = 20,
                 .up = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "any", .match = {"alertname=Any"}, .target = "any", .up = 2}},
};
static const struct spec any = {
    .targets = {{.name = "any",
                 .is_group = true,
                 .family = "cloud",
                 .address = "{{ .Labels.pool }}",
                 .allow = "*",
                 .max = 20,
                 .up = 60}},
    .rules = {{.name = "any", .match = {"alertname=Any"}, .target = "any", .up = 2}},
};
static const struct spec two_named = {
    .targets = {{.name = "web", .is_group = true, .family = "cloud", .max = 20, .up = 60},
                {.name = "uuid", .is_group = true, .family = "cloud", .max = 20, .up = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "full", .match = {"alertname=Full"}, .target = "uuid", .up = 2}},
};

/* A harness whose groups exist before the engine observes them. */
static void start(struct harness *harness, const struct spec *spec, const char *const *groups)
{
    harness->hold_calls = true;
    harness_start(harness, spec);
    for (size_t i = 0; groups[i]; i += 2) {
        char id[128];
        (void)snprintf(id, sizeof(id), GROUP "%s", groups[i]);
        harness_target(harness, id)->backing[0] = groups[i + 1];
    }
    harness->hold_calls = false;
    harness_settle(harness);
    (void)said(harness);
}

#define START(name, spec, ...)                                                                     \
    struct harness name = {0};                                                                     \
    start(&(name), &(spec), (const char *const[]){__VA_ARGS__, NULL})

static void order(struct harness *harness, enum as_operator_command_kind kind, const char *target,
                  int32_t replicas)
{
    harness_order(harness, (struct as_operator_command){
                               .kind = kind, .target = target, .replicas = replicas});
}

/* --- the entry without templates --- */

Test(engine_aliases, a_label_does_not_evade_the_max_of_the_entry_without_templates)
{
    START(h, named_and_any, "web", "cloud/1", "uuid", "cloud/1");
    fire(&h, "Any,pool=uuid", 990);
    cr_assert(has(said(&h), "failed uuid target_not_allowed"), "%s", said(&h));
    cr_assert(has(h.last_message, "the same group as target " GROUP "web, which has precedence"),
              "%s", h.last_message);
    cr_assert_eq(harness_target(&h, "uuid")->size, 4);
    tick(&h, 600);
    cr_assert_not(has(said(&h), "scale uuid"));
    harness_stop(&h);
}

Test(engine_aliases, a_label_does_not_evade_the_pause_of_the_entry_without_templates)
{
    START(h, named_and_any, "web", "cloud/1", "uuid", "cloud/1");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
    fire(&h, "Any,pool=uuid", 990);
    tick(&h, 600);
    cr_assert_not(has(said(&h), "scale uuid"));
    harness_stop(&h);
}

Test(engine_aliases, a_label_may_change_another_group)
{
    START(h, named_and_any, "web", "cloud/1", "other", "cloud/2");
    fire(&h, "Any,pool=other", 990);
    cr_assert(has(said(&h), "acted other 4>6 applied"));
    harness_stop(&h);
}

/* The engine reads the entry's group first, although no alert leads to it. */
Test(engine_aliases, a_label_waits_until_the_resources_of_named_groups_are_read)
{
    struct harness h = {0};
    h.hold_calls = true;
    harness_start(&h, &named_and_any);
    harness_target(&h, GROUP "web")->backing[0] = "cloud/1";
    harness_target(&h, GROUP "uuid")->backing[0] = "cloud/1";
    harness_target(&h, "web")->is_hanging = true;
    h.hold_calls = false;
    harness_settle(&h);
    fire(&h, "Any,pool=uuid", 990);
    tick(&h, 5);
    cr_assert_not(has(said(&h), "scale uuid"));
    harness_target(&h, "web")->is_hanging = false;
    harness_settle(&h);
    cr_assert(has(said(&h), "failed uuid target_not_allowed"));
    harness_stop(&h);
}

Test(engine_aliases, a_provider_that_does_not_answer_delays_no_target_of_another)
{
    static const struct spec two_clouds = {
        .targets = {{.name = "web", .is_group = true, .family = "cloud", .max = 6},
                    {.name = "any",
                     .is_group = true,
                     .family = "cloud",
                     .address = "{{ .Labels.pool }}",
                     .allow = "*",
                     .max = 20},
                    {.name = "far", .is_group = true, .family = "far", .max = 6},
                    {.name = "far-any",
                     .is_group = true,
                     .family = "far",
                     .address = "{{ .Labels.pool }}",
                     .allow = "*",
                     .max = 20}},
        .rules = {{.name = "any", .match = {"alertname=Any"}, .target = "any", .up = 2},
                  {.name = "far", .match = {"alertname=Far"}, .target = "far-any", .up = 2}},
    };
    struct harness h = {0};
    h.hold_calls = true;
    harness_start(&h, &two_clouds);
    harness_target(&h, GROUP "web")->backing[0] = "cloud/1";
    harness_target(&h, GROUP "b")->backing[0] = "cloud/2";
    harness_target(&h, "web")->is_hanging = true;
    harness_target(&h, GROUP "far")->is_hanging = true;
    h.hold_calls = false;
    harness_settle(&h);
    fire(&h, "Far,pool=a", 990);
    fire(&h, "Any,pool=b", 990);
    cr_assert_not(has(said(&h), "scale"));
    harness_target(&h, "web")->is_hanging = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_assert(has(text, "acted b 4>6 applied"), "%s", text);
    cr_assert_not(has(text, "scale a"), "%s", text);
    harness_stop(&h);
}

Test(engine_aliases, a_label_is_refused_while_a_named_group_cannot_be_read)
{
    START(h, named_and_any, "other", "cloud/2");
    harness_target(&h, "web")->failure = AS_REASON_FORBIDDEN;
    harness_reload(&h, &named_and_any);
    (void)said(&h);
    fire(&h, "Any,pool=other", 990);
    cr_assert(has(said(&h), "failed other target_not_allowed"));
    cr_assert(has(h.last_message, "may be the same group as target " GROUP "web"), "%s",
              h.last_message);
    cr_assert(has(h.last_message, "forbidden"), "%s", h.last_message);
    harness_target(&h, "web")->failure = 0;
    harness_target(&h, "web")->backing[0] = "cloud/1";
    tick(&h, 120);
    cr_assert(has(said(&h), "acted other 4>6 applied"));
    harness_stop(&h);
}

/* One answer may be wrong: it counts once it has been repeated for a minute. */
Test(engine_aliases, a_group_that_does_not_exist_has_no_resources)
{
    START(h, named_and_any, "other", "cloud/2");
    harness_target(&h, "web")->failure = AS_REASON_TARGET_NOT_FOUND;
    harness_reload(&h, &named_and_any);
    (void)said(&h);
    fire(&h, "Any,pool=other", 990);
    cr_assert(has(said(&h), "failed other target_not_allowed"));
    cr_assert(has(h.last_message, "target_not_found"), "%s", h.last_message);
    tick(&h, 50);
    cr_assert_not(has(said(&h), "scale other"));
    tick(&h, 120);
    cr_assert(has(said(&h), "acted other 4>6 applied"));
    harness_stop(&h);
}

Test(engine_aliases, a_label_that_does_not_exist_any_more_delays_another_label_only_for_a_time)
{
    START(h, any, "web", "cloud/1", "other", "cloud/2");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, GROUP "web", 0);
    harness_target(&h, GROUP "web")->failure = AS_REASON_TARGET_NOT_FOUND;
    harness_crash(&h, 1);
    fire(&h, "Any,pool=other", 990);
    tick(&h, 30);
    cr_assert_not(has(said(&h), "scale other"));
    tick(&h, 150);
    cr_assert(has(said(&h), "acted other 4>6 applied"));
    harness_stop(&h);
}

/* After a start, and after a reload: `failure` is the first answer of the group of another label.
 */
static void check_first_answer(enum as_reason failure, bool is_reload)
{
    START(h, any, "web", "cloud/1", "uuid", "cloud/1");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, GROUP "web", 0);
    harness_target(&h, GROUP "web")->failure = failure;
    if (is_reload)
        harness_reload(&h, &any);
    else
        harness_crash(&h, 1);
    (void)said(&h);
    fire(&h, "Any,pool=uuid", 990);
    cr_assert(has(said(&h), "failed uuid target_not_allowed"));
    harness_target(&h, GROUP "web")->failure = 0;
    tick(&h, 600);
    const char *text = said(&h);
    cr_assert(has(text, "observe web"), "%s", text);
    cr_assert_not(has(text, "scale uuid"), "%s", text);
    harness_stop(&h);
}

Test(engine_aliases, a_first_answer_that_denies_a_group_does_not_open_its_lock)
{
    static const enum as_reason failures[] = {AS_REASON_TARGET_NOT_FOUND, AS_REASON_REJECTED,
                                              AS_REASON_UNREACHABLE};
    for (size_t i = 0; i < AS_ARRAY_SIZE(failures); i++) {
        check_first_answer(failures[i], false);
        check_first_answer(failures[i], true);
    }
}

/* A pool may exist whose reading is refused: nobody knows what it shares. */
Test(engine_aliases, a_refused_reading_never_says_that_a_group_does_not_exist)
{
    START(h, any, "web", "cloud/1", "uuid", "cloud/1");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, GROUP "web", 0);
    harness_target(&h, GROUP "web")->failure = AS_REASON_REJECTED;
    harness_crash(&h, 1);
    fire(&h, "Any,pool=uuid", 990);
    tick(&h, 3600);
    cr_assert_not(has(said(&h), "scale uuid"));
    cr_assert(has(h.last_message, GROUP "web, which is not read: rejected"), "%s", h.last_message);
    order(&h, AS_OPERATOR_COMMAND_RESUME, GROUP "web", 0); /* what the message leads to */
    tick(&h, 120);
    cr_assert(has(said(&h), "acted uuid 4>6 applied"));
    harness_stop(&h);
}

/* The group was deleted and made again: the name and a new id. */
Test(engine_aliases, a_group_made_anew_is_compared_with_new_readings)
{
    START(h, named_and_any, "web", "cloud/1", "uuid", "cloud/1", "new", "cloud/2");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
    fire(&h, "Any,pool=uuid", 990);
    cr_assert(has(said(&h), "failed uuid target_not_allowed"));
    harness_target(&h, "web")->backing[0] = "cloud/2";
    tick(&h, 1);
    fire(&h, "Any,pool=new", 990);
    const char *text = said(&h);
    cr_assert(has(text, "failed new target_not_allowed"), "%s", text);
    cr_assert_not(has(text, "scale new"), "%s", text);
    harness_stop(&h);
}

Test(engine_aliases, a_group_that_gains_a_resource_is_compared_with_new_readings)
{
    static const struct spec calm = {
        .targets = {{.name = "any",
                     .is_group = true,
                     .family = "cloud",
                     .address = "{{ .Labels.pool }}",
                     .allow = "*",
                     .max = 20}},
        .rules = {{.name = "any", .match = {"alertname=Any"}, .target = "any", .up = 2}},
    };
    START(h, calm, "uuid", "cloud/1", "web", "cloud/2");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, GROUP "uuid", 0);
    fire(&h, "Any,pool=web", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    harness_target(&h, GROUP "uuid")->backing[0] = "cloud/3";
    harness_target(&h, GROUP "web")->backing[0] = "cloud/3";
    tick(&h, 1);
    resolve(&h, "Any,pool=web", 995);
    fire(&h, "Any,pool=web", 999);
    tick(&h, 120);
    const char *text = said(&h);
    cr_assert(has(text, "observe uuid"), "%s", text);
    cr_assert_not(has(text, "scale web"), "%s", text);
    harness_stop(&h);
}

/* The new reading fails: what was read before says nothing about the new resource. */
Test(engine_aliases, a_new_reading_that_fails_is_no_reading)
{
    static const enum as_reason failures[] = {AS_REASON_TARGET_NOT_FOUND, AS_REASON_UNREACHABLE};
    for (size_t i = 0; i < AS_ARRAY_SIZE(failures); i++) {
        START(h, named_and_any, "web", "cloud/1", "new", "cloud/2");
        order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
        tick(&h, 30);
        harness_target(&h, "web")->failure = failures[i];
        fire(&h, "Any,pool=new", 990);
        tick(&h, 30);
        harness_target(&h, "web")->failure = 0;
        harness_target(&h, "web")->backing[0] = "cloud/2";
        tick(&h, 600);
        const char *text = said(&h);
        cr_assert(has(text, "failed new target_not_allowed"), "%s", text);
        cr_assert_not(has(text, "scale new"), "%s", text);
        harness_stop(&h);
    }
}

/* A cloud may deny a group for a moment, and then have it again. */
Test(engine_aliases, a_group_that_disappears_keeps_its_resources)
{
    START(h, named_and_any, "web", "cloud/1", "uuid", "cloud/1");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
    fire(&h, "Any,pool=uuid", 990);
    cr_assert(has(said(&h), "failed uuid target_not_allowed"));
    harness_target(&h, "web")->failure = AS_REASON_TARGET_NOT_FOUND;
    for (int i = 0; i < 4; i++) {
        tick(&h, 660);
        fire(&h, "Any,pool=uuid", 990);
    }
    cr_assert_not(has(said(&h), "scale uuid"), "%s", said(&h));
    harness_stop(&h);
}

Test(engine_aliases, a_reload_that_names_the_group_refuses_the_template)
{
    START(h, any, "web", "cloud/1", "uuid", "cloud/1");
    fire(&h, "Any,pool=uuid", 990);
    cr_assert(has(said(&h), "acted uuid 4>6 applied"));
    harness_reload(&h, &named_and_any);
    tick(&h, 600);
    cr_assert_not(has(said(&h), "scale uuid"));
    harness_stop(&h);
}

/* The observation outlasts the reload, but what it said of the resources does not. */
Test(engine_aliases, a_reload_while_values_are_asked_for_refuses_the_template)
{
    static const struct spec asking[] = {
        {.targets = {{.name = "any",
                      .is_group = true,
                      .family = "cloud",
                      .address = "{{ .Labels.pool }}",
                      .allow = "*"}},
         .rules = {{.name = "any",
                    .match = {"alertname=Any"},
                    .target = "any",
                    .source = {.query = "busy"},
                    .pass_through = true}}},
        {.targets = {{.name = "any",
                      .is_group = true,
                      .family = "cloud",
                      .address = "{{ .Labels.pool }}",
                      .allow = "*"},
                     {.name = "web", .is_group = true, .family = "cloud"}},
         .rules = {{.name = "any",
                    .match = {"alertname=Any"},
                    .target = "any",
                    .source = {.query = "busy"},
                    .pass_through = true}}}};
    START(h, asking[0], "web", "cloud/1", "uuid", "cloud/1");
    h.queries[0] = (struct query_script){"busy", {.value = 9}};
    h.hold_queries = true;
    fire(&h, "Any,pool=uuid", 990);
    h.hold_calls = true;
    harness_reload(&h, &asking[1]);
    (void)said(&h);
    h.hold_calls = h.hold_queries = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_assert(has(text, "failed uuid target_not_allowed"), "%s", text);
    cr_assert_not(has(text, "scale uuid"), "%s", text);
    cr_assert_eq(harness_target(&h, "uuid")->size, 4);
    harness_stop(&h);
}

/* --- two entries without templates --- */

Test(engine_aliases, two_named_targets_of_one_group_are_both_refused)
{
    START(h, two_named, "web", "cloud/1", "uuid", "cloud/1");
    fire(&h, "Slow", 990);
    tick(&h, 60);
    cr_assert(has(said(&h), "failed web target_not_allowed"));
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    cr_assert(has(h.last_message, "neither is changed"), "%s", h.last_message);
    fire(&h, "Full", 990);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    cr_assert_eq(harness_target(&h, "uuid")->size, 4);
    harness_stop(&h);
}

Test(engine_aliases, neither_of_two_named_targets_changes_before_both_are_read)
{
    struct harness h = {0};
    h.hold_calls = true;
    harness_start(&h, &two_named);
    harness_target(&h, GROUP "web")->backing[0] = "cloud/1";
    harness_target(&h, GROUP "uuid")->backing[0] = "cloud/1";
    harness_target(&h, "uuid")->is_hanging = true;
    h.hold_calls = false;
    harness_settle(&h);
    fire(&h, "Slow", 990);
    tick(&h, 30);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_target(&h, "uuid")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 30);
    const char *text = said(&h);
    cr_assert(has(text, "failed web target_not_allowed"), "%s", text);
    cr_assert_not(has(text, "scale web"), "%s", text);
    harness_stop(&h);
}

Test(engine_aliases, a_broken_named_group_does_not_stop_the_others)
{
    START(h, two_named, "web", "cloud/1");
    harness_target(&h, "uuid")->failure = AS_REASON_FORBIDDEN;
    harness_reload(&h, &two_named);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

Test(engine_aliases, a_set_that_changes_is_compared_anew)
{
    START(h, two_named, "web", "cloud/1", "uuid", "cloud/2");
    fire(&h, "Slow", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    harness_target(&h, "uuid")->backing[1] = "cloud/1"; /* a pool gains a zone */
    tick(&h, 70);
    (void)said(&h);
    fire(&h, "Slow,pod=b", 990);
    fire(&h, "Full", 990);
    tick(&h, 130);
    const char *text = said(&h);
    cr_assert_not(has(text, "scale"), "%s", text);
    harness_target(&h, "uuid")->backing[1] = NULL;
    tick(&h, 200);
    cr_assert(has(said(&h), "acted uuid 4>6 applied"));
    harness_stop(&h);
}

/* The scale of a MachineDeployment, and the node group that it is. */
Test(engine_aliases, an_object_and_its_node_group_are_both_refused)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .family = "machines", .up = 60},
                    {.name = "uuid", .is_group = true, .family = "machines", .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    START(h, spec, "uuid", "kubernetes/u-1");
    harness_target(&h, "web")->uid = "u-1";
    harness_reload(&h, &spec);
    (void)said(&h);
    fire(&h, "Slow", 990);
    const char *text = said(&h);
    cr_assert(has(text, "failed web target_not_allowed"), "%s", text);
    harness_stop(&h);
}

Test(engine_aliases, targets_of_other_families_are_not_compared)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .is_group = true, .family = "cloud", .up = 60},
                    {.name = "uuid", .is_group = true, .family = "sky", .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    START(h, spec, "web", "cloud/1");
    harness_target(&h, "uuid")->failure = AS_REASON_UNREACHABLE;
    harness_reload(&h, &spec);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

/* --- two labels --- */

Test(engine_aliases, two_labels_give_one_step_within_a_cooldown)
{
    START(h, any, "web", "cloud/1", "uuid", "cloud/1");
    fire(&h, "Any,pool=web", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    fire(&h, "Any,pool=uuid", 990); /* the lower id, without stored state */
    cr_assert(has(said(&h), "failed uuid target_not_allowed"));
    cr_assert(has(h.last_message, GROUP "web"), "%s", h.last_message);
    harness_stop(&h);
}

Test(engine_aliases, the_lock_of_another_label_outlasts_a_restart)
{
    START(h, any, "web", "cloud/1", "uuid", "cloud/1");
    fire(&h, "Any,pool=web", 990);
    resolve(&h, "Any,pool=web", 990);
    harness_crash(&h, 1);
    (void)said(&h);
    fire(&h, "Any,pool=uuid", 990);
    const char *text = said(&h);
    cr_assert(has(text, "observe web"), "%s", text); /* only for its resources */
    cr_assert(has(text, "failed uuid target_not_allowed"), "%s", text);
    cr_assert_not(has(text, "decided web"), "%s", text);
    harness_stop(&h);
}

Test(engine_aliases, of_two_labels_without_state_the_lower_id_wins)
{
    static const struct spec slow = {
        .targets = {{.name = "any",
                     .is_group = true,
                     .family = "cloud",
                     .address = "{{ .Labels.pool }}",
                     .allow = "*",
                     .up = 60}},
        .rules = {{.name = "any",
                   .match = {"alertname=Any"},
                   .target = "any",
                   .up = 2,
                   .guard = NULL,
                   .dry_run = false}},
    };
    struct harness h = {0};
    harness_start(&h, &slow);
    harness_target(&h, GROUP "b")->backing[0] = "cloud/1";
    harness_target(&h, GROUP "a")->backing[0] = "cloud/1";
    h.hold_calls = true;
    fire(&h, "Any,pool=b", 990);
    fire(&h, "Any,pool=a", 990);
    h.hold_calls = false;
    harness_settle(&h);
    tick(&h, 1);
    cr_assert_eq(harness_target(&h, "a")->size + harness_target(&h, "b")->size, 10);
    harness_stop(&h);
}

Test(engine_aliases, a_label_does_not_evade_the_pause_of_another_label)
{
    START(h, any, "web", "cloud/1", "uuid", "cloud/1");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, GROUP "web", 0); /* no alert has led to it yet */
    (void)said(&h);
    fire(&h, "Any,pool=uuid", 990);
    cr_assert(has(said(&h), "failed uuid target_not_allowed"));
    harness_crash(&h, 1);
    (void)said(&h);
    tick(&h, 120);
    cr_assert_not(has(said(&h), "scale uuid"));
    harness_stop(&h);
}

/* --- commands, and what was begun --- */

Test(engine_aliases, commands_for_the_other_name_are_refused)
{
    START(h, named_and_any, "web", "cloud/1", "uuid", "cloud/1");
    fire(&h, "Any,pool=uuid", 990);
    (void)said(&h);
    order(&h, AS_OPERATOR_COMMAND_SCALE, GROUP "uuid", 9);
    cr_assert(has(said(&h), "refused"));
    cr_assert(has(h.last_message, GROUP "web"), "%s", h.last_message);
    order(&h, AS_OPERATOR_COMMAND_SCALE, "web", 5);
    const char *text = said(&h);
    cr_assert(has(text, "ordered web 4>5 applied"), "%s", text);
    harness_stop(&h);
}

Test(engine_aliases, a_request_before_a_crash_is_still_found_to_be_done)
{
    START(h, any, "web", "cloud/1", "uuid", "cloud/1");
    h.hold_calls = true;
    fire(&h, "Any,pool=uuid", 990);
    harness_settle_to_request(&h);
    harness_target(&h, "uuid")->size = 6; /* it was carried out */
    h.hold_calls = false;
    harness_crash(&h, 1);
    cr_assert(has(said(&h), "acted uuid 4>6 applied"));
    harness_stop(&h);
}

Test(engine_aliases, nodes_do_not_leave_under_the_other_name)
{
    START(h, two_named, "web", "cloud/1", "uuid", "cloud/1");
    tick(&h, 70);
    cr_assert_not_null(as_engine_find_terminate_obstacle(h.engine, GROUP "web", h.mono));
    harness_stop(&h);
}

/* --- one group, whatever happens --- */

struct shared_group {
    int32_t size, max;
    as_mono_time changed;
    unsigned changes;
};

/* All names lead to one size. */
static void change_group(struct harness *harness, const struct queued_call *call, bool is_done)
{
    static const char *const names[] = {"web", "uuid", "third"};
    struct shared_group *group = harness->listener;
    if (!is_done)
        return;
    cr_assert_geq(harness->mono.us - group->changed.us, 60 * AS_US_PER_S, "within the cooldown");
    cr_assert_leq(call->request.to, group->max, "beyond the max");
    group->changed = harness->mono;
    group->size = call->request.to;
    group->changes++;
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        char id[128];
        (void)snprintf(id, sizeof(id), GROUP "%s", names[i]);
        harness_target(harness, id)->size = group->size;
        harness_target(harness, id)->version++;
    }
}

/* Alerts with every name, kills and time: one cooldown and one max hold. */
static unsigned live(const struct spec *spec, uint64_t seed, int32_t max)
{
    static const char *const alerts[] = {"Any,pool=web", "Any,pool=uuid", "Any,pool=third", "Slow"};
    struct shared_group group = {.max = max, .changed = {INT64_MIN / 2}};
    struct as_random random;
    as_random_init(&random, seed);
    START(h, *spec, "web", "cloud/1", "uuid", "cloud/1", "third", "cloud/1");
    h.on_request = change_group;
    h.listener = &group;
    for (int i = 0; i < 60; i++) {
        const char *alert = alerts[as_random_get_below(&random, AS_ARRAY_SIZE(alerts))];
        switch (as_random_get_below(&random, 4)) {
        case 0: resolve(&h, alert, 990 + i); break;
        case 1: tick(&h, (int64_t)as_random_get_below(&random, 90)); break;
        case 2: harness_crash(&h, 1); break;
        default: fire(&h, alert, 990 + i); break;
        }
        (void)said(&h);
    }
    harness_stop(&h);
    return group.changes;
}

Test(engine_aliases, one_max_and_one_cooldown_hold_whatever_happens)
{
    unsigned changes = 0;
    for (uint64_t seed = 1; seed <= 30; seed++)
        changes += live(&any, seed, 20) + live(&named_and_any, seed, 6);
    cr_assert_gt(changes, 30, "%u", changes);
}

/* --- rules that are loaded during a request --- */

/* `any` leads to the group that is a named one by the rules `after` the reload. */
static void hold_request(struct harness *harness, const struct spec *after)
{
    harness->hold_calls = true;
    fire(harness, "Any,pool=uuid", 990);
    harness_settle_to_request(harness);
    (void)said(harness);
    harness_reload(harness, after);
}

static void release(struct harness *harness)
{
    harness->hold_calls = false;
    harness_settle(harness);
}

Test(engine_aliases, a_reload_that_adds_the_group_as_an_entry_stops_the_request_of_a_label)
{
    START(h, any, "uuid", "cloud/1");
    hold_request(&h, &named_and_any);
    cr_assert_str_eq(as_engine_find_new_rival(h.engine, GROUP "uuid"), GROUP "web");
    cr_assert_null(as_engine_find_new_rival(h.engine, GROUP "web"), "it sends nothing");
    release(&h);
    harness_stop(&h);
}

Test(engine_aliases, a_reload_that_adds_an_entry_in_place_of_the_template_stops_the_request)
{
    static const struct spec named = {
        .targets = {{.name = "web", .is_group = true, .family = "cloud", .max = 6}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    START(h, any, "uuid", "cloud/1");
    hold_request(&h, &named);
    cr_assert_str_eq(as_engine_find_new_rival(h.engine, GROUP "uuid"), GROUP "web");
    harness_reload(&h, &any);
    cr_assert_null(as_engine_find_new_rival(h.engine, GROUP "uuid"), "the entry is gone");
    release(&h);
    harness_stop(&h);
}

Test(engine_aliases, a_reload_that_adds_no_entry_of_the_provider_stops_no_request)
{
    static const struct spec far = {
        .targets = {{.name = "web", .is_group = true, .family = "cloud", .max = 6, .up = 60},
                    {.name = "any",
                     .is_group = true,
                     .family = "cloud",
                     .address = "{{ .Labels.pool }}",
                     .allow = "*",
                     .max = 20,
                     .up = 60},
                    {.name = "far", .is_group = true, .family = "far", .max = 6}},
        .rules = {{.name = "any", .match = {"alertname=Any"}, .target = "any", .up = 2},
                  {.name = "far", .match = {"alertname=Far"}, .target = "far", .up = 2},
                  {.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    START(h, named_and_any, "web", "cloud/1", "uuid", "cloud/2");
    hold_request(&h, &named_and_any);
    cr_assert_null(as_engine_find_new_rival(h.engine, GROUP "uuid"));
    harness_reload(&h, &far);
    cr_assert_null(as_engine_find_new_rival(h.engine, GROUP "uuid"));
    release(&h);
    harness_stop(&h);
}

/* The group of the new entry is read during a long request, for example a drain. */
static void check_read_rival(const char *resource, bool is_stopped)
{
    START(h, any, "uuid", "cloud/1");
    harness_target(&h, GROUP "web")->backing[0] = resource;
    hold_request(&h, &named_and_any);
    harness_target(&h, "uuid")->is_hanging = true;
    release(&h); /* the entry is observed */
    cr_assert(has(said(&h), "observe web"));
    const char *rival = as_engine_find_new_rival(h.engine, GROUP "uuid");
    cr_assert(is_stopped ? rival && has(rival, "web") : !rival);
    harness_target(&h, "uuid")->is_hanging = false;
    harness_settle(&h);
    harness_stop(&h);
}

Test(engine_aliases, the_resources_of_a_new_entry_decide_once_they_are_read)
{
    check_read_rival("cloud/1", true);
    check_read_rival("cloud/2", false);
}
