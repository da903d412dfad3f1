/*
 * Steps that need no approval, of rules whose larger changes do: each one counts for the hour, also
 * if what wanted it has ended before it was done.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define ASKS(n)                                                                                    \
    {                                                                                              \
        .is_set = true, .above = (n), .for_us = 900 * AS_US_PER_S                                  \
    }

/* Size 4. */
static const struct spec gives_back = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 10, .down = 10}},
    .rules = {{.name = "peak",
               .match = {"alertname=Peak"},
               .target = "web",
               .up = 2,
               .max_steps = 1,
               .guard = "none",
               .on_resolved = {.down = 2},
               .approval = ASKS(3)}},
};

static void peak(struct harness *harness, int64_t start)
{
    fire(harness, "Peak", start);
    tick(harness, 60);
    resolve(harness, "Peak", start);
    tick(harness, 60);
}

Test(engine_free_steps, what_follows_the_end_of_an_incident_counts)
{
    WITH(h, gives_back);
    peak(&h, 990);
    cr_assert_eq(harness_target(&h, "web")->size, 4, "2 more, and 2 less at the end");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 10});
    (void)said(&h);
    peak(&h, 1200);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "needs_approval (12) by peak"), "%s", text);
    cr_assert_not_null(strstr(text, "needs_approval (8) by peak"), "%s", text);
    cr_assert_eq(harness_target(&h, "web")->size, 10);
    harness_stop(&h);
}

Test(engine_free_steps, the_incident_may_end_while_the_request_is_under_way)
{
    static const struct spec steps = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 10, .down = 10}},
        .rules = {{.name = "big",
                   .match = {"alertname=Big"},
                   .target = "web",
                   .up = 2,
                   .max_steps = 1,
                   .approval = ASKS(3)}},
    };
    WITH(h, steps);
    h.hold_calls = true;
    fire(&h, "Big", 990);
    harness_settle_to_request(&h);
    resolve(&h, "Big", 990);
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    tick(&h, 60);
    (void)said(&h);
    fire(&h, "Big", 1100);
    cr_assert_not_null(strstr(said(&h), "needs_approval (8) by big"));
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

/* A value that goes up and down does not make a rule ask time and again. */
Test(engine_free_steps, no_answer_is_no_answer_for_both_directions)
{
    static const struct spec evaluations = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 10, .down = 10}},
        .rules = {{.name = "load",
                   .match = {"alertname=Load"},
                   .target = "web",
                   .source = {.query = "load"},
                   .pass_through = true,
                   .approval = ASKS(1)}},
    };
    WITH(h, evaluations);
    h.queries[0] = (struct query_script){"load", {.value = 8}};
    fire(&h, "Load", 990);
    cr_assert_not_null(strstr(said(&h), "asked web 4>8 by load"));
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_DENY,
                                                   .request = h.last_request});
    h.queries[0].result.value = 1;
    tick(&h, 60);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "not_approved (1) by load"), "%s", text);
    cr_assert_null(strstr(text, "asked"), "%s", text);
    tick(&h, 3600);
    cr_assert_not_null(strstr(said(&h), "asked web 4>1 by load"));
    harness_stop(&h);
}
