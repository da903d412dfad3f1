/*
 * The routes in the configuration of a running Alertmanager, by their receivers.
 */
#include <alertscaler/rules/alertmanager_routes.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

static char told[512];

/* "receiver seconds+" of these receivers; "+": it has intervals; "-": no route leads to it. */
static const char *tell(const char *yaml, const char *const receivers[])
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_alertmanager_routes_free_p) struct as_alertmanager_routes *routes = NULL;
    cr_assert_eq(as_alertmanager_routes_parse(yaml, strlen(yaml), &routes, &error), 0, "%s",
                 error.text);
    told[0] = '\0';
    for (size_t i = 0; receivers[i]; i++) {
        const struct as_receiver_routes *found = as_alertmanager_routes_find(routes, receivers[i]);
        const size_t size = strlen(told);
        if (found)
            snprintf(told + size, sizeof(told) - size, "%s %" PRId64 "%s; ", receivers[i],
                     found->flush_us / AS_US_PER_S, found->has_intervals ? "+" : "");
        else
            snprintf(told + size, sizeof(told) - size, "%s -; ", receivers[i]);
    }
    return told;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Children inherit receiver and times, but no time intervals. */
Test(alertmanager_routes, what_routes_inherit)
{
    cr_expect_str_eq(tell("global: {resolve_timeout: 5m}\n"
                          "route:\n"
                          "  receiver: root\n"
                          "  group_wait: 10s\n"
                          "  routes:\n"
                          "  - receiver: night\n"
                          "    mute_time_intervals: [nights]\n"
                          "    group_interval: 1m\n"
                          "    routes:\n"
                          "    - receiver: child\n"
                          "      group_wait: 0s\n"
                          "      continue: true\n"
                          "  - receiver: day\n"
                          "    active_time_intervals: [days]\n"
                          "receivers: [{name: root}, {name: unused}]\n",
                          NAMES("root", "night", "child", "day", "unused")),
                     "root 310; night 70+; child 60; day 310+; unused -; ");
}

Test(alertmanager_routes, alertmanagers_defaults)
{
    cr_expect_str_eq(tell("route: {receiver: a, mute_time_intervals: []}", NAMES("a")), "a 330; ");
    cr_expect_str_eq(tell("route: {receiver: a, routes: []}", NAMES("a")), "a 330; ");
}

Test(alertmanager_routes, of_several_routes_to_a_receiver_the_most_cautious_values_count)
{
    cr_expect_str_eq(tell("route:\n"
                          "  receiver: a\n"
                          "  group_wait: 0s\n"
                          "  group_interval: 1m\n"
                          "  routes:\n"
                          "  - {group_interval: 3m}\n"
                          "  - {mute_time_intervals: [x]}\n"
                          "  - {receiver: b}\n",
                          NAMES("a", "b")),
                     "a 180+; b 60; ");
}

Test(alertmanager_routes, what_is_no_configuration)
{
    static const struct {
        const char *yaml, *error;
    } rows[] = {
        {"", "it has no `route`"},
        {"[]", "it has no `route`"},
        {"receivers: []", "it has no `route`"},
        {"route: [", "line 2: not valid YAML: "},
        {"route: 7", "line 1: expected a route with a receiver"},
        {"route: {}", "line 1: expected a route with a receiver"},
        {"route: {receiver: {}}", "line 1: expected a route with a receiver"},
        {"route:\n  receiver: a\n  routes: [7]", "line 3: expected a route with a receiver"},
        {"route:\n  receiver: a\n  routes: {receiver: b}", "line 3: routes: expected a list"},
        {"route:\n  receiver: a\n  group_wait: soon",
         "line 3: group_wait: expected a duration like 5m"},
        {"route:\n  receiver: a\n  group_interval: [5m]",
         "line 3: group_interval: expected a duration like 5m"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_alertmanager_routes *routes = NULL;
        cr_expect_eq(
            as_alertmanager_routes_parse(rows[i].yaml, strlen(rows[i].yaml), &routes, &error),
            -EINVAL, "row %zu", i);
        cr_expect_null(routes);
        cr_expect(as_str_starts_with(error.text, rows[i].error), "row %zu: %s", i, error.text);
    }
}
