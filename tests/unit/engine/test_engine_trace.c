/* The trace: each event, each change of a target's state and each effect is one line. */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_harness.h"

static const struct spec spec = {
    .targets = {{.name = "web", .max = 20, .up = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};

static char lines[16384];

static void keep_line(void *context, const struct as_trace_line *line)
{
    const size_t size = strlen(lines);
    ++*(size_t *)context;
    (void)snprintf(lines + size, sizeof(lines) - size, "%s %s%s%s%s%s; ", line->kind, line->name,
                   line->target ? " " : "", line->target ? line->target : "",
                   *line->detail ? ": " : "", line->detail);
}

/* Finds the texts in this order. */
static void expect_in_order(const char *const *texts)
{
    const char *at = lines;
    for (; *texts; texts++) {
        const char *found = strstr(at, *texts);
        cr_assert_not_null(found, "no \"%s\" in: %s", *texts, at);
        at = found + strlen(*texts);
    }
}

#define WEB "kubernetes/default/apps/v1/Deployment/shop/web"

Test(engine_trace, the_life_of_one_action)
{
    static const char *const expected[] = {
        "event notification: 1 alerts; ",
        "effect record_notification; ",
        "event committed; ",
        "effect answer; ",
        "effect observe " WEB "; ",
        "event observed " WEB ": applied, 4; ",
        "state intent " WEB ": observing; ",
        "effect record_decision " WEB ": scaled; ",
        "effect put_intent " WEB ": 4 to 6; ",
        "effect commit; ",
        "event committed; ",
        "state scaling " WEB ": intent; ",
        "effect scale " WEB ": 4 to 6; ",
        "event scaled " WEB ": applied; ",
        "state outcome " WEB ": scaling; ",
        "effect record_action " WEB ": applied; ",
        "effect delete_intent kubernetes/default/apps/Deployment/shop/web; ", /* a row has a key */
        "state idle " WEB ": outcome; ",
        NULL,
    };
    size_t count = 0;
    struct harness h = {.config = {.trace = keep_line, .trace_context = &count}};
    *lines = '\0';
    harness_start(&h, &spec);
    fire(&h, "Slow,pod=a-value-of-a-label", 990);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    cr_expect_gt(count, AS_ARRAY_SIZE(expected));
    expect_in_order(expected);
    cr_expect_null(strstr(lines, "a-value-of-a-label"));
    harness_stop(&h);
}

/* The same run with and without it. */
Test(engine_trace, it_changes_nothing)
{
    AS_CLEANUP(as_free_p) char *plain = NULL;
    for (int i = 0; i < 2; i++) {
        size_t count = 0;
        struct harness h = {.config = {.trace = i ? keep_line : NULL, .trace_context = &count}};
        *lines = '\0';
        harness_start(&h, &spec);
        fire(&h, "Slow", 990);
        tick(&h, 70);
        const char *text = said(&h);
        if (i == 0)
            plain = as_xstrdup(text);
        else
            cr_expect_str_eq(text, plain);
        cr_expect_eq(count > 0, i == 1);
        harness_stop(&h);
    }
}
