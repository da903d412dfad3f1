/*
 * The engine's views, as shown by metrics and the API.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec spec = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 300, .up_after_down = 30}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "all", .match = {"alertname=~\"Slow|Full\""}, .target = "web", .up = 1},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
};

static void keep_view(void *context, const struct as_target_view *view)
{
    *(struct as_target_view *)context = *view;
}

static struct as_target_view view_of(struct harness *harness)
{
    struct as_target_view view = {0};
    as_engine_visit_targets(harness->engine, harness->mono, harness->wall, keep_view, &view);
    return view;
}

Test(engine_view, a_target_before_and_after_its_first_action)
{
    WITH(h, spec);
    struct as_target_view view = view_of(&h);
    cr_assert_str_eq(view.id, "kubernetes/default/apps/v1/Deployment/shop/web");
    cr_assert_str_eq(view.name, "web");
    cr_assert(view.has_size);
    cr_assert_eq(view.replicas, 4);
    cr_assert_null(view.last_decision);
    cr_assert_not(as_moment_is_set(view.up_locked_until));

    fire(&h, "Slow", 990);
    view = view_of(&h);
    cr_assert_eq(view.replicas, 6);
    cr_assert_eq(view.desired, 6);
    cr_assert_not(view.busy);
    cr_assert_str_eq(view.last_decision, h.last_order);
    cr_assert_str_eq(view.last_rule, "slow");
    cr_assert_eq(view.last_reason, AS_REASON_SCALED);
    cr_assert_eq(view.up_locked_until.mono.us, h.mono.us + 60 * AS_US_PER_S);
    cr_assert_eq(view.up_locked_until.wall.us, h.wall.us + 60 * AS_US_PER_S);
    cr_assert_eq(view.down_locked_until.mono.us, h.mono.us + 300 * AS_US_PER_S);
    harness_stop(&h);
}

Test(engine_view, an_incident_counts_once_however_many_rules_it_has)
{
    WITH(h, spec);
    fire(&h, "Slow", 990);
    cr_assert_eq(view_of(&h).open_incidents, 1);
    fire(&h, "Full", 990);
    cr_assert_eq(view_of(&h).open_incidents, 2);
    resolve(&h, "Slow", 990);
    cr_assert_eq(view_of(&h).open_incidents, 1);
    harness_stop(&h);
}

Test(engine_view, a_failure_is_shown_until_it_is_over)
{
    WITH(h, spec);
    h.observation = AS_REASON_FORBIDDEN;
    fire(&h, "Slow", 990);
    cr_assert_eq(view_of(&h).last_failure, AS_REASON_FORBIDDEN);
    h.observation = AS_REASON_APPLIED;
    tick(&h, 60);
    cr_assert_eq(view_of(&h).last_failure, AS_REASON_APPLIED);
    harness_stop(&h);
}

Test(engine_view, a_failure_to_set_the_size_is_shown_while_it_lasts)
{
    WITH(h, spec);
    h.always = (struct scale_script){.outcome = AS_REASON_FORBIDDEN};
    fire(&h, "Slow", 990);
    for (int i = 0; i < 10; i++) {
        tick(&h, 30);
        cr_assert_eq(view_of(&h).last_failure, AS_REASON_FORBIDDEN);
    }
    harness_stop(&h);
}

Test(engine_view, busy_while_something_is_under_way)
{
    WITH(h, spec);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    cr_assert(view_of(&h).busy);
    cr_assert_eq(as_engine_get_counts(h.engine).targets_busy, 1);
    cr_assert_not(as_engine_is_idle(h.engine));
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_not(view_of(&h).busy);
    cr_assert(as_engine_is_idle(h.engine));
    harness_stop(&h);
}

static const struct spec two_clusters = {
    .targets = {{.name = "a", .min = 1, .max = 20},
                {.name = "b", .min = 1, .max = 20},
                {.name = "edge", .min = 1, .max = 20, .cluster = "edge"}},
    .rules = {{.name = "ra", .match = {"alertname=Slow"}, .target = "a", .up = 2},
              {.name = "rb", .match = {"alertname=Slow"}, .target = "b", .up = 2},
              {.name = "re", .match = {"alertname=Slow"}, .target = "edge", .up = 2}},
};

struct clusters {
    char text[256];
};

static void note_cluster(void *context, const struct as_cluster_view *view)
{
    struct clusters *clusters = context;
    const size_t size = strlen(clusters->text);
    const bool is_away = as_moment_is_set(view->unreachable_since);
    (void)snprintf(clusters->text + size, sizeof(clusters->text) - size, "%s%s; ", view->cluster,
                   is_away ? " away" : "");
}

static const char *clusters_of(struct harness *harness)
{
    static struct clusters clusters;
    clusters = (struct clusters){0};
    as_engine_visit_clusters(harness->engine, note_cluster, &clusters);
    return clusters.text;
}

Test(engine_view, a_cluster_is_unreachable_if_no_target_of_it_was_observed_since_a_failure)
{
    WITH(h, two_clusters);
    tick(&h, 1);
    cr_assert_str_eq(clusters_of(&h), "default; edge; ");
    harness_target(&h, "a")->failure = AS_REASON_UNREACHABLE;
    harness_target(&h, "b")->failure = AS_REASON_TIMEOUT;
    fire(&h, "Slow", 990);
    cr_assert_str_eq(clusters_of(&h), "default away; edge; ");
    harness_target(&h, "b")->failure = 0;
    tick(&h, 90);
    cr_assert_str_eq(clusters_of(&h), "default; edge; ", "only the requests about `a` fail");
    harness_target(&h, "a")->failure = AS_REASON_FORBIDDEN;
    harness_target(&h, "b")->failure = AS_REASON_FORBIDDEN;
    tick(&h, 180);
    cr_assert_str_eq(clusters_of(&h), "default; edge; ", "it answers");
    harness_stop(&h);
}

Test(engine_view, a_cluster_that_has_never_answered_is_unreachable)
{
    WITH(h, spec);
    h.observation = AS_REASON_UNREACHABLE;
    harness_crash(&h, 60);
    tick(&h, 5);
    cr_assert_str_eq(clusters_of(&h), "default away; ");
    h.observation = AS_REASON_APPLIED;
    tick(&h, 90);
    cr_assert_str_eq(clusters_of(&h), "default; ");
    harness_stop(&h);
}
