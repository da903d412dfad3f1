/*
 * `allow.list`: the objects of a list are targets of the entry, without an alert. Their schedules
 * hold while a list shows them.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

/* The wall clock of the tests starts at 1000, sizes at 4. */
#define NIGHT(name_, from_, to_)                                                                   \
    {                                                                                              \
        .name = (name_), .from = (from_), .to = (to_), .is_zero = true                             \
    }
#define APPS(...)                                                                                  \
    {                                                                                              \
        .name = "apps", .min = 1, .max = 20, __VA_ARGS__                                           \
    }
#define ANY    .address = "{{ .Labels.app }}", .allow = "*"
#define LISTED .list = "sleeps=nightly"
#define NIGHTS .schedules = {NIGHT("night", 1100, 1500), NIGHT("next night", 2100, 2500)}
#define RULES  .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "apps", .up = 2}}

static const struct spec apps = {.targets = {APPS(ANY, LISTED, NIGHTS)}, RULES};
static const struct spec unlisted = {.targets = {APPS(ANY, NIGHTS)}, RULES};
static const struct spec two = {
    .targets = {APPS(ANY, LISTED, NIGHTS),
                {.name = "others",
                 ANY,
                 .min = 1,
                 .max = 20,
                 .list = "sleeps=never",
                 .schedules = {NIGHT("never", 9000, 9001)}}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "others", .up = 2}}};
static const struct spec web_alone = {
    .targets = {APPS(.address = "{{ .Labels.app }}", .allow = "web", LISTED, NIGHTS)}, RULES};
static const struct spec prefixed = {
    .targets = {APPS(.address = "app-{{ .Labels.app }}", .allow = "*", LISTED, NIGHTS)}, RULES};

static int32_t size_of(struct harness *harness, const char *name)
{
    return harness_target(harness, name)->size;
}

static void answer(struct harness *harness, const char *error, const char *names)
{
    struct as_listed_object objects[8];
    char text[128], *rest = text;
    size_t count = 0;
    (void)snprintf(text, sizeof(text), "%s", names);
    for (const char *name; (name = strsep(&rest, ",")) && *name;)
        objects[count++] = (struct as_listed_object){"shop", name};
    harness_answer_objects(
        harness, &(struct as_object_list){.error = error, .items = objects, .count = count});
    harness_settle(harness);
}

Test(engine_listings, objects_of_a_list_sleep_by_a_schedule)
{
    WITH(h, apps);
    answer(&h, NULL, "web,api"); /* the list of the start */
    cr_said(&h, "observe web; observe api");
    tick(&h, 40); /* the list is read again each minute */
    tick(&h, 20);
    cr_assert(has(said(&h), "list apps"));
    answer(&h, NULL, "web,api");
    tick(&h, 60);
    cr_assert_eq(size_of(&h, "web"), 0);
    cr_assert_eq(size_of(&h, "api"), 0);
    tick(&h, 400);
    cr_assert_eq(size_of(&h, "web"), 4);
    cr_assert_eq(size_of(&h, "api"), 4);
    harness_stop(&h);
}

Test(engine_listings, a_new_object_sleeps_at_once)
{
    WITH(h, apps);
    answer(&h, NULL, "web");
    tick(&h, 200);
    answer(&h, NULL, "web,late");
    cr_assert_eq(size_of(&h, "late"), 0);
    harness_stop(&h);
}

/* Its locks of the first night are still remembered in the second. */
Test(engine_listings, an_object_that_leaves_the_list_is_woken_and_sleeps_no_more)
{
    WITH(h, apps);
    answer(&h, NULL, "web,api");
    tick(&h, 200);
    cr_assert_eq(size_of(&h, "web"), 0);
    answer(&h, NULL, "api");
    cr_assert_eq(size_of(&h, "web"), 4, "its size returns");
    cr_assert_eq(size_of(&h, "api"), 0);
    tick(&h, 400);
    answer(&h, NULL, "api");
    tick(&h, 600);
    cr_assert_eq(size_of(&h, "api"), 0);
    cr_assert_eq(size_of(&h, "web"), 4);
    harness_stop(&h);
}

/* Its schedules are no bounds for a rule. */
Test(engine_listings, an_alert_scales_an_object_that_is_not_listed)
{
    WITH(h, apps);
    answer(&h, NULL, "api");
    tick(&h, 200);
    fire(&h, "Slow,app=web", 1190);
    cr_assert_eq(size_of(&h, "web"), 6);
    tick(&h, 200);
    cr_assert_geq(size_of(&h, "web"), 6);
    answer(&h, NULL, "api,web");
    cr_assert_eq(size_of(&h, "web"), 0, "now it is listed");
    harness_stop(&h);
}

Test(engine_listings, what_a_min_has_added_goes_with_the_list)
{
    static const struct spec office = {
        .targets = {APPS(
            ANY, LISTED,
            .schedules = {
                NIGHT("night", 1100, 1500),
                {.name = "office", .from = 1500, .to = 2100, .min = 8, .end = AS_SCHEDULE_BEFORE},
                NIGHT("next night", 2100, 2500)})}};
    WITH(h, office);
    answer(&h, NULL, "web,api");
    tick(&h, 560);
    cr_assert_eq(size_of(&h, "web"), 8);
    answer(&h, NULL, "api");
    cr_assert_eq(size_of(&h, "web"), 4);
    harness_target(&h, "web")->size = 3;
    tick(&h, 600);
    answer(&h, NULL, "api");
    cr_assert_eq(size_of(&h, "web"), 3, "no schedule touches it any more");
    cr_assert_eq(size_of(&h, "api"), 0);
    harness_stop(&h);
}

/* Its address is forgotten: else it would be observed for ever. */
Test(engine_listings, an_object_that_is_deleted_asleep_is_forgotten)
{
    WITH(h, apps);
    answer(&h, NULL, "web");
    tick(&h, 200);
    harness_target(&h, "web")->failure = AS_REASON_TARGET_NOT_FOUND;
    answer(&h, NULL, "");
    tick(&h, 2 * 86400);
    (void)said(&h);
    tick(&h, 600);
    cr_assert(!has(said(&h), "observe web"));
    harness_stop(&h);
}

Test(engine_listings, an_incomplete_list_adds_and_removes_nothing)
{
    WITH(h, apps);
    answer(&h, NULL, "web");
    tick(&h, 60);
    answer(&h, "403", "api");
    tick(&h, 60);
    cr_assert_eq(size_of(&h, "web"), 0, "it stays");
    cr_assert_eq(size_of(&h, "api"), 0, "it is added");
    harness_stop(&h);
}

Test(engine_listings, names_outside_of_allow_and_of_the_template_are_no_targets)
{
    WITH(h, web_alone);
    answer(&h, NULL, "web,api,Bad_Name");
    cr_said(&h, "observe web");
    harness_stop(&h);
    harness_start(&h, &prefixed);
    answer(&h, NULL, "web,app-x,app-");
    cr_said(&h, "observe app-x");
    harness_stop(&h);
}

Test(engine_listings, a_restart_begins_with_a_list)
{
    WITH(h, apps);
    answer(&h, NULL, "web");
    tick(&h, 200);
    cr_assert_eq(size_of(&h, "web"), 0);
    harness_crash(&h, 10);
    answer(&h, "503", "");
    tick(&h, 400);
    cr_assert_eq(size_of(&h, "web"), 4, "what a schedule has begun ends without a list");
    harness_stop(&h);
}

Test(engine_listings, new_rules_list_at_once)
{
    WITH(h, apps);
    harness_reload(&h, &two);
    cr_assert(has(said(&h), "list apps"));
    answer(&h, NULL, "api");
    cr_assert(has(said(&h), "list others"));
    answer(&h, NULL, "api");
    tick(&h, 140);
    cr_assert_eq(size_of(&h, "web"), 4);
    cr_assert_eq(size_of(&h, "api"), 0, "the first list that shows it counts");
    harness_stop(&h);
}

Test(engine_listings, objects_stay_over_a_reload)
{
    WITH(h, apps);
    answer(&h, NULL, "web");
    harness_reload(&h, &two);
    answer(&h, "503", "");
    answer(&h, NULL, "");
    tick(&h, 140);
    cr_assert_eq(size_of(&h, "web"), 0);
    harness_stop(&h);
}

Test(engine_listings, a_listed_object_belongs_to_its_entry)
{
    WITH(h, two);
    answer(&h, NULL, "web");
    answer(&h, NULL, "");
    fire(&h, "Slow,app=web", 990);
    cr_assert(has(said(&h), "target_not_allowed"), "%s", said(&h));
    fire(&h, "Slow,app=api", 990);
    cr_assert_eq(size_of(&h, "api"), 6);
    tick(&h, 60);
    answer(&h, NULL, "web,api");
    answer(&h, NULL, "");
    tick(&h, 80);
    cr_assert_eq(size_of(&h, "web"), 0);
    cr_assert_eq(size_of(&h, "api"), 6, "an open alert leads it to its entry");
    harness_stop(&h);
}

static size_t count_observed(struct harness *harness)
{
    size_t count = 0;
    for (const char *at = said(harness); (at = strstr(at, "observe ")); at++)
        count++;
    return count;
}

Test(engine_listings, observations_are_spread)
{
    struct harness h = {.config = {.spreads_evaluations = true}};
    harness_start(&h, &apps);
    (void)said(&h);
    answer(&h, NULL, "a,b,c,d,e,f,g,h");
    cr_assert_lt(count_observed(&h), 8);
    tick(&h, 1);
    harness_reload(&h, &two);
    answer(&h, NULL, "a,b,c,d,e,f,g,h");
    answer(&h, NULL, "");
    tick(&h, 98);
    (void)said(&h);
    tick(&h, 2);
    cr_assert_geq(count_observed(&h), 8, "the begin of the night");
    for (const char *name = "abcdefgh"; *name; name++)
        cr_assert_eq(size_of(&h, (const char[]){*name, '\0'}), 0);
    harness_stop(&h);
}

Test(engine_listings, without_a_list_none_is_read)
{
    WITH(h, unlisted);
    fire(&h, "Slow,app=web", 990);
    tick(&h, 600);
    cr_assert_eq(h.objects_call_id, 0);
    harness_stop(&h);
}
