/*
 * Metrics of node groups and pools: what the last look has seen, as long as somebody looks. The
 * cluster is a fleet (fleet.h).
 */
#include <alertscaler/runtime/metrics.h>

#include <stdio.h>
#include <string.h>

#include "../engine/engine_harness.h"

static const struct spec workers = {
    .targets = {{.name = "cheap", .is_group = true, .max = 10},
                {.name = "dear", .is_group = true, .min = 1, .max = 1},
                {.name = "both", .pool = {"cheap", "dear"}, .max = 12, .down = 60}},
    .rules = {{.name = "wait", .match = {"alertname=Wait"}, .target = "both", .fit = true},
              {.name = "idle",
               .match = {"alertname=Idle"},
               .target = "both",
               .take = true,
               .guard = "none"}},
};
static const struct spec others = {
    .targets = {{.name = "web", .min = 1, .max = 20}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};

/* A node group with the source `nodes`, and a target that asks for the nodes of its cluster. */
static const struct spec sums = {
    .targets = {{.name = "alone", .is_group = true, .max = 10}, {.name = "web", .max = 10}},
    .rules = {{.name = "full",
               .match = {"alertname=Wait"},
               .target = "alone",
               .source = {.nodes = AS_NODES_UTILIZATION},
               .up_steps = {{.is_above = true, .bound = 70, .amount = {.size = 1}}}},
              {.name = "many",
               .match = {"alertname=Wait"},
               .target = "web",
               .source = {.nodes = AS_NODES_COUNT},
               .up_steps = {{.is_above = true, .bound = 70, .amount = {.size = 1}}}}},
};

static const struct fleet_group groups[] = {FLEET_GROUP("cheap", 0, 10), FLEET_GROUP("dear", 1, 1)};

static struct harness harness;
static struct fleet fleet;
static struct as_metrics *metrics;
static struct as_buf out;

static void setup(void)
{
    harness = (struct harness){0};
    harness_start(&harness, &workers);
    fleet_init(&fleet, groups, AS_ARRAY_SIZE(groups), harness.wall);
    harness.fleet = &fleet;
    metrics = as_metrics_new();
    out = AS_BUF_INIT(1 << 20);
    fleet_add_pods(&fleet, 0, 4); /* which fill the node of `dear` */
    tick(&harness, 120);
}

static void teardown(void)
{
    as_buf_deinit(&out);
    as_metrics_free(metrics);
    harness_stop(&harness);
    fleet_deinit(&fleet);
}

TestSuite(metrics_nodes, .init = setup, .fini = teardown);

/* The samples of groups and pools, as many lines. */
static const char *print(void)
{
    static char lines[8192];
    const struct as_view view = {
        .mono = harness.mono, .wall = harness.wall, .engine = harness.engine};
    size_t size = 0;
    as_buf_clear(&out);
    as_metrics_print(metrics, &view, AS_METRICS_TEXT, &out);
    cr_assert_eq(as_buf_check(&out), 0);
    lines[0] = '\0';
    for (char *rest = out.data, *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (strncmp(line, "alertscaler_group_", 18) != 0 &&
            strncmp(line, "alertscaler_pool_", 17) != 0)
            continue;
        size += (size_t)snprintf(lines + size, sizeof(lines) - size, "%s\n",
                                 line + strlen("alertscaler_"));
        cr_assert_lt(size, sizeof(lines));
    }
    return lines;
}

Test(metrics_nodes, there_are_none_before_anybody_has_looked)
{
    cr_expect_str_eq(print(), "");
}

/* Six pods of half a core wait: two nodes of `cheap` come for them, `dear` is at its max. */
Test(metrics_nodes, tell_what_a_look_at_a_pool_has_seen)
{
    fleet_add_pods(&fleet, 0, 6);
    tick(&harness, 60);
    fire(&harness, "Wait", 1000);
    cr_expect_str_eq(print(), "group_nodes{target=\"cheap\",state=\"open\"} 0\n"
                              "group_nodes{target=\"cheap\",state=\"ready\"} 0\n"
                              "group_nodes{target=\"cheap\",state=\"leaving\"} 0\n"
                              "group_nodes{target=\"cheap\",state=\"coming\"} 2\n"
                              "group_nodes{target=\"cheap\",state=\"overdue\"} 0\n"
                              "group_nodes{target=\"dear\",state=\"open\"} 1\n"
                              "group_nodes{target=\"dear\",state=\"ready\"} 1\n"
                              "group_nodes{target=\"dear\",state=\"leaving\"} 0\n"
                              "group_nodes{target=\"dear\",state=\"coming\"} 0\n"
                              "group_nodes{target=\"dear\",state=\"overdue\"} 0\n"
                              "group_requested_ratio{target=\"dear\",resource=\"cpu\"} 1\n"
                              "group_requested_ratio{target=\"dear\",resource=\"memory\"} 0.125\n"
                              "group_closed{target=\"dear\",reason=\"at_max\"} 1\n"
                              "pool_pending_pods{target=\"both\"} 6\n"
                              "pool_unneeded_nodes{target=\"both\"} 0\n");
    tick(&harness, 90);
    cr_expect(strstr(print(), "group_nodes{target=\"cheap\",state=\"ready\"} 2\n"), "%s", print());
    cr_expect(strstr(print(), "pool_pending_pods{target=\"both\"} 0\n"), "%s", print());
}

Test(metrics_nodes, count_unneeded_nodes)
{
    fleet.groups[0].size = 3;
    tick(&harness, 120);
    fire(&harness, "Idle", 1000);
    tick(&harness, 120);
    cr_expect(strstr(print(), "pool_unneeded_nodes{target=\"both\"} 3\n"), "%s", print());
}

/* Nobody looks any more: an old number of waiting pods would be wrong. */
Test(metrics_nodes, are_gone_with_the_last_alert)
{
    fleet_add_pods(&fleet, 5, 1); /* which never finds a node */
    tick(&harness, 60);
    fire(&harness, "Wait", 1000);
    cr_expect(strstr(print(), "pool_pending_pods{target=\"both\"} 1\n"), "%s", print());
    resolve(&harness, "Wait", 1000);
    cr_expect_str_eq(print(), "");
}

Test(metrics_nodes, are_gone_with_the_target)
{
    fire(&harness, "Wait", 1000);
    cr_expect_str_neq(print(), "");
    harness_reload(&harness, &others);
    cr_expect_str_eq(print(), "");
}

/* The sums of the source `nodes` know open nodes alone; those of a cluster are no group's. */
Test(metrics_nodes, of_the_source_nodes_know_open_nodes)
{
    harness_reload(&harness, &sums);
    fire(&harness, "Wait", 1000);
    cr_expect_str_eq(print(), "group_nodes{target=\"alone\",state=\"open\"} 0\n");
}

static void see_nothing(struct harness *h, const char *name, struct as_observation *observation)
{
    static const struct as_snapshot snapshot = {.error = "too many nodes are not ready"};
    if (!observation->snapshot)
        return;
    observation->snapshot = &snapshot;
    observation->plan = NULL;
}

Test(metrics_nodes, are_gone_where_nothing_is_known)
{
    fire(&harness, "Wait", 1000);
    cr_expect_str_neq(print(), "");
    harness.on_look = see_nothing;
    tick(&harness, 60);
    cr_expect_str_eq(print(), "");
}
