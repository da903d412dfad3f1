/*
 * Sizes that others set back: what counts as one, when a target is contended, and what ends it.
 */
#include <stdio.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};

static const struct spec rests = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
};

static const struct spec templated = {
    .targets = {{.name = "any",
                 .address = "{{ .Labels.app }}",
                 .allow = "*",
                 .min = 1,
                 .max = 20,
                 .up = 60,
                 .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
};

static void set(struct harness *harness, const char *name, int32_t size, const char *manager)
{
    struct virtual_target *target = harness_target(harness, name);
    target->size = size;
    target->version++;
    target->manager = manager;
}

/* Somebody sets the size back, and our lock ends. */
static void reverted_change(struct harness *harness, const char *name, const char *manager)
{
    set(harness, name, 4, manager);
    tick(harness, 60);
}

static void contend(struct harness *harness, const char *name, const char *labels)
{
    fire(harness, labels, 990);
    for (int i = 0; i < 3; i++)
        reverted_change(harness, name, "hpa");
}

Test(engine_contention, three_set_backs_within_an_hour)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    cr_assert_not_null(strstr(said(&h), "acted web 4>6 applied"));
    reverted_change(&h, "web", "hpa");
    cr_said(&h, "observe web; scale web 4>6; acted web 4>6 applied");
    reverted_change(&h, "web", "hpa");
    cr_assert_not_null(strstr(said(&h), "scale web 4>6"));
    reverted_change(&h, "web", "kubectl");
    cr_said(&h, "observe web; contended web 4>6>4 by hpa 4>6>4 by hpa 4>6>4 by kubectl; "
                "decided web 4 contended (6) by slow after 2");
    tick(&h, 3599);
    cr_assert_null(strstr(said(&h), "scale web"), "it is left alone for an hour");
    tick(&h, 1);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "over web: the hour is over"), "%s", text);
    cr_assert_not_null(strstr(text, "scale web 4>6"), "%s", text);
    harness_stop(&h);
}

Test(engine_contention, a_decrease_that_is_set_back_counts_too)
{
    WITH(h, rests);
    for (int i = 0; i < 3; i++) {
        fire(&h, "Idle", 990);
        cr_assert_not_null(strstr(said(&h), "scale web 4>3"));
        set(&h, "web", i == 1 ? 9 : 4, "hpa"); /* away from ours, towards the former and beyond */
        tick(&h, 60);
        set(&h, "web", 4, "hpa");
        tick(&h, 60);
    }
    cr_assert_not_null(strstr(said(&h), "contended web 4>3>4 by hpa 4>3>9 by hpa 4>3>4 by hpa"));
    harness_stop(&h);
}

/* A person changes the size for good, further the same way, late, or once. */
Test(engine_contention, what_is_no_set_back)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    set(&h, "web", 8, "kubectl"); /* the same way */
    tick(&h, 60);
    set(&h, "web", 4, "kubectl"); /* within ten minutes of our 8>10 */
    tick(&h, 60);
    reverted_change(&h, "web", "kubectl");
    cr_assert_null(strstr(said(&h), "contended"));
    resolve(&h, "Slow", 990);
    for (int i = 0; i < 4; i++) {
        fire(&h, "Slow", 1200 + 1300 * i);
        resolve(&h, "Slow", 1200 + 1300 * i);
        tick(&h, 610); /* too late */
        set(&h, "web", 4, "kubectl");
        tick(&h, 600);
    }
    cr_assert_null(strstr(said(&h), "contended"));
    harness_stop(&h);
}

Test(engine_contention, three_over_more_than_an_hour_are_none)
{
    WITH(h, slow);
    for (int i = 0; i < 5; i++) {
        fire(&h, "Slow", 990 + 1900 * i);
        resolve(&h, "Slow", 990 + 1900 * i);
        set(&h, "web", 4, "hpa");
        tick(&h, 1900);
    }
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "scale web 4>6"));
    cr_assert_null(strstr(text, "contended"), "%s", text);
    harness_stop(&h);
}

/* An API server that lacks the last changes shows the size before ours. */
Test(engine_contention, an_older_view_is_no_set_back)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    for (int i = 0; i < 6; i++) {
        struct virtual_target *target = harness_target(&h, "web");
        const struct virtual_target now = *target;
        target->size = 4;
        target->version = now.version - 1; /* it was changed from this one */
        h.always = (struct scale_script){.outcome = AS_REASON_CONFLICT};
        tick(&h, 60);
        h.always = (struct scale_script){.outcome = AS_REASON_APPLIED};
        *target = now;
        tick(&h, 60);
    }
    cr_assert_null(strstr(said(&h), "contended"));
    harness_stop(&h);
}

Test(engine_contention, survives_a_crash_and_ends_in_time)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    reverted_change(&h, "web", "hpa");
    reverted_change(&h, "web", "hpa");
    harness_crash(&h, 1); /* the set-backs, and our last size, are remembered */
    set(&h, "web", 4, "hpa");
    (void)said(&h);
    tick(&h, 60);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "contended web 4>6>4 by hpa 4>6>4 by hpa 4>6>4 by hpa"), "%s",
                       text);
    tick(&h, 1000);
    harness_crash(&h, 1000);
    (void)said(&h);
    tick(&h, 1500);
    text = said(&h);
    cr_assert_null(strstr(text, "scale web"), "%s", text);
    tick(&h, 110);
    text = said(&h);
    cr_assert_not_null(strstr(text, "over web: the hour is over"), "%s", text);
    cr_assert_not_null(strstr(text, "scale web 4>6"), "%s", text);
    harness_stop(&h);
}

Test(engine_contention, an_operator_ends_it)
{
    WITH(h, slow);
    contend(&h, "web", "Slow");
    (void)said(&h);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "web"});
    cr_said(&h, "unlock web nothing_to_do; answered");
    cr_assert_str_eq(h.last_message,
                     "no lock holds the target: it is contended, which `resume` ends");
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    cr_said(&h, "resume web done; over web: resumed by an operator; answered; observe web; "
                "decided web 4>6 scaled by slow; scale web 4>6; acted web 4>6 applied");
    reverted_change(&h, "web", "hpa");
    cr_assert_null(strstr(said(&h), "contended"), "the count begins anew");
    harness_stop(&h);
}

/* A person who orders a size knows better. */
Test(engine_contention, an_order_is_carried_out)
{
    WITH(h, slow);
    contend(&h, "web", "Slow");
    (void)said(&h);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 10});
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "ordered web 4>10 applied"), "%s", text);
    harness_stop(&h);
}

Test(engine_contention, another_object_of_the_name_is_not_contended)
{
    WITH(h, slow);
    harness_target(&h, "web")->uid = "u1";
    contend(&h, "web", "Slow");
    (void)said(&h);
    harness_target(&h, "web")->uid = "u2";
    tick(&h, 60);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "over web: another object has the name now"), "%s", text);
    cr_assert_not_null(strstr(text, "scale web 4>6"), "%s", text);
    harness_stop(&h);
}

/* A target that a template made is remembered while it is contended. */
Test(engine_contention, ends_without_an_alert_too)
{
    WITH(h, templated);
    contend(&h, "shop", "Slow,app=shop");
    cr_assert_not_null(strstr(said(&h), "contended shop"));
    resolve(&h, "Slow,app=shop", 990);
    (void)said(&h);
    tick(&h, 3600);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "over shop: the hour is over"), "%s", text);
    harness_stop(&h);
}
