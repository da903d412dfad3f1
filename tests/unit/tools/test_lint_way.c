/*
 * Alertmanager's texts for matchers, and its routing of an alert's known labels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tools/lint_sources.h"

/* "2: a=\"b\" c=~\"d\"" or "no" */
static const char *show(const char *text)
{
    static char shown[300];
    struct as_matcher *matchers = NULL;
    size_t count = 0, capacity = 0;
    bool is_good = lint_parse_matchers(text, &matchers, &count, &capacity);
    int used = snprintf(shown, sizeof(shown), is_good ? "%zu:" : "no", count);
    for (size_t i = 0; i < count; i++) {
        char one[MATCHER_TEXT_SIZE];
        if (is_good)
            used += snprintf(shown + used, sizeof(shown) - (size_t)used, " %s",
                             matcher_print(&matchers[i], one));
        as_matcher_deinit(&matchers[i]);
    }
    free(matchers);
    return shown;
}

/* One text may hold several matchers, with or without braces; a comma in quotes divides nothing. */
Test(lint_way, matcher_texts)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"a=b", "1: a=\"b\""},
        {" {a=\"b\", c=~\"d|e\",} ", "2: a=\"b\" c=~\"d|e\""},
        {"a=\"x,y\",b!=\"\\\",\"", "2: a=\"x,y\" b!=\"\",\""},
        {"a!~\"b{2,3}\"", "1: a!~\"b{2,3}\""},
        {"{}", "0:"},
        {"", "0:"},
        {"a=b,,c=d", "no"},
        {"{a", "no"},
        {"a=b}", "no"},
        {"a=~\"(\"", "no"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_assert_str_eq(show(rows[i].text), rows[i].expected, "%s: %s", rows[i].text,
                         show(rows[i].text));
}

struct world {
    struct as_matcher matchers[8];
    size_t matcher_count;
    struct lint_route routes[5];
};

static void add_matcher(struct world *world, struct lint_route *route, const char *text)
{
    struct as_matcher *matcher = &world->matchers[world->matcher_count++];
    cr_assert_eq(as_matcher_init(matcher, text, NULL), 0, "%s", text);
    route->matchers = matcher;
    route->matcher_count = 1;
}

/*
 *  0 (all)
 *  |- 1 a="x"
 *  |- 2 b="y", continue
 *  `- 3 (all)
 *     `- 4 c=~"z|w"
 */
static void set_up(struct world *world)
{
    struct lint_route *routes = world->routes;
    *world = (struct world){.matcher_count = 0};
    add_matcher(world, &routes[1], "a=x");
    add_matcher(world, &routes[2], "b=y");
    add_matcher(world, &routes[4], "c=~\"z|w\"");
    routes[2].continues = true;
    routes[1].parent = routes[2].parent = routes[3].parent = &routes[0];
    routes[4].parent = &routes[3];
    routes[2].elder = &routes[1];
    routes[3].elder = &routes[2];
    routes[0].youngest = &routes[3];
    routes[3].youngest = &routes[4];
}

static void tear_down(struct world *world)
{
    for (size_t i = 0; i < world->matcher_count; i++)
        as_matcher_deinit(&world->matchers[i]);
}

/* One letter a route: reached, refused, taken. */
static const char *find_ways(const char *text)
{
    static char found[6];
    struct world world;
    struct as_matcher *matchers = NULL;
    size_t count = 0, capacity = 0;
    set_up(&world);
    cr_assert(lint_parse_matchers(text, &matchers, &count, &capacity));
    for (size_t i = 0; i < 5; i++) {
        struct lint_way way;
        found[i] = "+-t"[lint_find_way(&world.routes[i], matchers, count, &way)];
    }
    for (size_t i = 0; i < count; i++)
        as_matcher_deinit(&matchers[i]);
    free(matchers);
    tear_down(&world);
    return found;
}

/* An alert stays at a route where no child certainly takes it, and passes one that matches only
 * with `continue`. What is not known may be either way. */
Test(lint_way, ways)
{
    static const struct {
        const char *alert, *expected; /* of routes 0 to 4 */
    } rows[] = {
        {"", "t++++"},           /* nothing known: but 3 takes what comes so far */
        {"a=x", "t+ttt"},        /* 1 takes it, and does not let it go on */
        {"a=y", "t-+++"},        /* 1 does not */
        {"b=y", "t++++"},        /* 2 lets it go on */
        {"c=z", "t++t+"},        /* 4 takes it from 3 */
        {"c=q", "t+++-"},        /* 4 refuses it */
        {"c=~\"z|w\"", "t++t+"}, /* each of the two is one of 4's */
        {"a=~\"x|y\"", "t++++"}, /* one of the two is not 1's */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_assert_str_eq(find_ways(rows[i].alert), rows[i].expected, "%s: %s", rows[i].alert,
                         find_ways(rows[i].alert));
}

/* Alertmanager looks at repeat_interval once in a group_interval. */
Test(lint_way, repeats)
{
    struct lint_route route = {.group_interval = {300, NULL}, .repeat_interval = {600, NULL}};
    cr_assert_eq(lint_get_repeat(&route), 600);
    route.repeat_interval.us = 601;
    cr_assert_eq(lint_get_repeat(&route), 900);
    route.repeat_interval.us = 1;
    cr_assert_eq(lint_get_repeat(&route), 300);
    route.group_interval.us = 0;
    cr_assert_eq(lint_get_repeat(&route), 1);
}
