/*
 * The memory of incidents: counted as they come, change and go, and equal after a restart; at its
 * limit only alerts that need more memory are refused.
 */
#include "engine_harness.h"

#include <stdio.h>
#include <string.h>

static const struct spec templated = {
    .targets = {{.name = "any", .address = "{{ .Labels.app }}", .allow = "*", .min = 1, .up = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
};

static const char *const rules[] = {"slow"};
static const struct as_scope scopes[] = {
    {.credential = "whole"},
    {.credential = "narrow", .rules = rules, .rule_count = 1},
};

static size_t used(const struct harness *harness)
{
    return as_engine_get_counts(harness->engine).incident_bytes;
}

static void fire_one(struct harness *harness, const char *credential, int number)
{
    char labels[64];
    (void)snprintf(labels, sizeof(labels), "Slow,app=web,pod=p%d", number);
    harness->credential = credential;
    fire(harness, labels, 990);
}

Test(engine_room, counts_what_comes_and_goes)
{
    WITH(h, templated);
    cr_assert_eq(used(&h), 0);
    fire(&h, "Slow,app=web-a", 990);
    const size_t one = used(&h);
    cr_assert_gt(one, 1000, "an incident, and its target");
    harness_notify(&h, "scaler",
                   &(struct test_alert){
                       .labels = "Slow,app=web-a", .starts = 990, .annotation = "a long story"},
                   1);
    cr_assert_gt(used(&h), one, "its annotations have grown");
    const size_t more = used(&h);
    harness_notify(&h, "other", &(struct test_alert){.labels = "Slow,app=web-a", .starts = 990}, 1);
    cr_assert_neq(used(&h), more, "another receiver, and no annotation");
    const size_t unlinked = used(&h);
    harness_notify(&h, "other",
                   &(struct test_alert){.labels = "Slow,app=web-a",
                                        .starts = 990,
                                        .generator_url = "http://prometheus/graph",
                                        .external_url = "http://alertmanager"},
                   1);
    cr_assert_geq(used(&h), unlinked + strlen("http://prometheus/graph"
                                              "http://alertmanager"));
    const size_t before = used(&h);
    harness_crash(&h, 1);
    cr_assert_eq(used(&h), before);
    resolve(&h, "Slow,app=web-a", 990);
    resolve(&h, "Slow,app=web-b", 990); /* its firing never came */
    cr_assert_gt(used(&h), 0, "they are remembered for a while");
    tick(&h, 86400);
    cr_assert_eq(used(&h), 0);
    harness_stop(&h);
}

Test(engine_room, targets_of_the_rule_files_take_none)
{
    static const struct spec named = {
        .targets = {{.name = "web", .min = 1, .up = 60}, {.name = "db", .min = 1, .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    WITH(h, named);
    cr_assert_eq(used(&h), 0);
    harness_reload(&h, &templated);
    tick(&h, 86400);
    cr_assert_eq(used(&h), 0, "they are forgotten");
    harness_stop(&h);
}

Test(engine_room, at_the_limit_only_what_brings_more_is_refused)
{
    struct harness h = {.config = {.incident_bytes_max = 8000}};
    harness_start(&h, &templated);
    int count = 0;
    while (used(&h) < 8000)
        fire_one(&h, "", count++);
    (void)said(&h);
    fire_one(&h, "", count);
    cr_said(&h, "no room");
    fire_one(&h, "", 0);
    cr_assert_not_null(strstr(said(&h), "said duplicate"));
    fire(&h, "Slow,app=web,pod=p0", 995);
    cr_assert_not_null(strstr(said(&h), "opened"), "a newer stretch of one that is known");
    harness_notify(
        &h, "scaler",
        &(struct test_alert){.labels = "Slow,app=web,pod=p0", .starts = 995, .annotation = "long"},
        1);
    cr_said(&h, "no room");
    harness_notify(&h, "another",
                   &(struct test_alert){.labels = "Slow,app=web,pod=p0", .starts = 995}, 1);
    cr_said(&h, "no room");
    harness_notify(&h, "scaler",
                   &(struct test_alert){
                       .labels = "Slow,app=web,pod=p0", .starts = 995, .generator_url = "http://p"},
                   1);
    cr_said(&h, "no room");
    resolve(&h, "Slow,app=web,pod=unknown", 990);
    cr_said(&h, "no room");
    resolve(&h, "Slow,app=web,pod=p0", 995);
    resolve(&h, "Slow,app=web,pod=p1", 990);
    (void)said(&h);
    tick(&h, 3600);
    fire_one(&h, "", count);
    cr_assert_not_null(strstr(said(&h), "opened"), "room has come back");
    harness_stop(&h);
}

Test(engine_room, narrow_credentials_have_equal_parts_of_the_half)
{
    static const struct as_scope three[] = {
        {.credential = "whole"},
        {.credential = "flood", .rules = rules, .rule_count = 1},
        {.credential = "quiet", .rules = rules, .rule_count = 1},
    };
    struct harness h = {.config = {.incident_bytes_max = 32000,
                                   .scopes = three,
                                   .scope_count = AS_ARRAY_SIZE(three)}};
    harness_start(&h, &templated);
    int count = 0;
    do {
        fire_one(&h, "flood", count++);
    } while (!strstr(said(&h), "no room"));
    const size_t flooded = used(&h);
    cr_assert_geq(flooded, 8000);
    cr_assert_leq(flooded, 8000 + 4000, "its part, and one notification more");
    while (used(&h) < 16000)
        fire_one(&h, "quiet", count++);
    cr_assert_null(strstr(said(&h), "no room"));
    while (used(&h) < 24000)
        fire_one(&h, "whole", count++);
    harness_crash(&h, 1);
    (void)said(&h);
    for (int i = 0; i < 8; i++) /* the target that all share may count for another one now */
        fire_one(&h, "flood", count++);
    cr_assert_not_null(strstr(said(&h), "no room"));
    fire_one(&h, "whole", count++);
    cr_assert_null(strstr(said(&h), "no room"));
    harness_stop(&h);
}

Test(engine_room, a_narrow_credential_has_half_of_it)
{
    struct harness h = {.config = {.incident_bytes_max = 16000,
                                   .scopes = scopes,
                                   .scope_count = AS_ARRAY_SIZE(scopes)}};
    harness_start(&h, &templated);
    int count = 0;
    while (used(&h) < 8000)
        fire_one(&h, "narrow", count++);
    (void)said(&h);
    fire_one(&h, "narrow", count);
    cr_said(&h, "no room");
    while (used(&h) < 16000)
        fire_one(&h, "whole", count++);
    cr_assert_null(strstr(said(&h), "no room"));
    fire_one(&h, "whole", count);
    cr_said(&h, "no room");
    harness_stop(&h);
}
