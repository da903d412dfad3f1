/* 10,000 scaling policies of two rules: the first load, its memory, their status, and one
 * changed policy. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/runtime/policy_report.h>

#include "clock.h"

#define POLICIES  10000
#define PER_SPACE 10
#define CHANGES   20
#define STEPS     200
#define STEP_US   (250 * AS_US_PER_MS)
#define MEGABYTE  (1024.0 * 1024.0)
#define OBJECT                                                                                     \
    "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"        \
    "\"namespace\":\"team-%d\",\"name\":\"app-%d\",\"uid\":\"uid-%d\",\"generation\":%d,"          \
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"target\":{\"kubernetes\":{"       \
    "\"kind\":\"Deployment\",\"name\":\"app-%d\"},\"min\":2,\"max\":20,\"cooldown\":{\"up\":"      \
    "\"1m\",\"down\":\"10m\"}},\"rules\":[{\"name\":\"slow\",\"match\":[\"alertname=\\\"Slow\\\""  \
    "\"],\"scaleUp\":{\"by\":\"50%%\"},\"onResolved\":{\"giveBack\":{}},\"guard\":{\"none\":"      \
    "true}},{\"name\":\"load\",\"always\":true,\"track\":{\"averageValue\":\"50\",\"query\":"      \
    "\"sum(rate(http_requests_total[1m]))\"}}]},\"status\":{}}"

static const struct as_settings settings = {
    .prometheus = {.url = "http://prometheus:9090"},
    .objects = {.is_enabled = true,
                .max_policies = POLICIES,
                .rules_per_policy = 50,
                .enforces_namespace_label = true,
                .namespace_label = "namespace",
                .allows_unrestricted_queries = true},
};
static const struct as_ruleset no_files = {.digest = "none"};

static double get_megabytes(void)
{
    return (double)mallinfo2().uordblks / MEGABYTE;
}

static void put(struct as_policy_set *set, int number, int generation)
{
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(OBJECT, number / PER_SPACE, number, number, generation, number);
    struct as_error error = AS_ERROR_INIT;
    const as_mono_time now = {AS_US_PER_MIN * generation};
    bool is_changed;
    if (as_policy_set_put(set, text, strlen(text), now, &is_changed, &error) != 0)
        abort();
}

static const struct as_ruleset *join(struct as_policy_set *set)
{
    return as_policy_set_join(
        set, &(struct as_policy_join){
                 .settings = &settings, .files = &no_files, .now = {0}, .is_complete = true});
}

static void step(struct as_engine *engine, enum as_event_kind kind,
                 const struct as_ruleset *ruleset, const struct as_engine_config *config)
{
    static int64_t now;
    struct as_effects effects;
    now += AS_US_PER_MS;
    as_engine_step(
        engine,
        &(struct as_event){
            .kind = kind, .mono = {now}, .wall = {now}, .ruleset = ruleset, .config = *config},
        &effects);
}

static size_t written;

static void take_status(void *context, const struct as_scaling_policy *policy, const char *json,
                        size_t size, bool is_urgent, const struct as_policy_block *block)
{
    (void)context, (void)policy, (void)json, (void)is_urgent, (void)block;
    written += size;
}

static void put_reports(struct as_policy_reports *reports)
{
    for (int i = 0; i < POLICIES; i++) {
        AS_CLEANUP(as_free_p)
        char *text = as_xasprintf(OBJECT, i / PER_SPACE, i, i, 1, i);
        as_policy_reports_on_object(reports, text, strlen(text));
    }
}

/* The status of all policies, then a round in which nothing has changed. */
static void report(const struct as_policy_set *set, const struct as_engine *engine,
                   const struct as_ruleset *ruleset)
{
    struct as_policy_reports *reports = as_policy_reports_new();
    struct as_view view = {.engine = engine, .ruleset = ruleset};
    double begun = clock_get_seconds(), most = 0, all;
    put_reports(reports);
    printf("reports: read %.0f ms", (clock_get_seconds() - begun) * 1e3);
    all = clock_get_seconds();
    for (int i = 0; i < STEPS; i++) {
        begun = clock_get_seconds();
        as_policy_reports_step(reports, set, &view, take_status, NULL);
        const double taken = clock_get_seconds() - begun;
        most = taken > most ? taken : most;
        view.mono.us += STEP_US;
        view.wall.us += STEP_US;
    }
    printf(", a step: %.2f ms, at most %.2f ms; %.0f bytes a status\n",
           (clock_get_seconds() - all) / STEPS * 1e3, most * 1e3, (double)written / POLICIES);
    as_policy_reports_free(reports);
}

int main(void)
{
    const struct as_engine_config config = {.incident_expiry_us = AS_US_PER_DAY, .seed = 1};
    struct as_policy_set *set = as_policy_set_new();
    const double before = get_megabytes();
    double begun = clock_get_seconds();
    for (int i = 0; i < POLICIES; i++)
        put(set, i, 1);
    const double put_end = clock_get_seconds();
    const struct as_ruleset *all = join(set);
    const double join_end = clock_get_seconds();
    if (all->target_count != POLICIES)
        abort();
    struct as_engine *engine = as_engine_new(&config, all);
    step(engine, AS_EVENT_START, all, &config);
    const double start_end = clock_get_seconds();
    printf("policies: %d, rules: %zu\n", POLICIES, all->rule_count);
    printf("read: %.0f ms, compile and join: %.0f ms, start of the engine: %.0f ms\n",
           (put_end - begun) * 1e3, (join_end - put_end) * 1e3, (start_end - join_end) * 1e3);
    printf("memory: %.1f MiB\n", get_megabytes() - before);
    report(set, engine, all);

    double joining = 0, stepping = 0;
    for (int i = 0; i < CHANGES; i++) {
        begun = clock_get_seconds();
        put(set, i * 7, 2 + i);
        all = join(set);
        const double joined = clock_get_seconds();
        step(engine, AS_EVENT_RULES, all, &config);
        joining += joined - begun;
        stepping += clock_get_seconds() - joined;
    }
    printf("one changed policy: join %.2f ms, engine %.2f ms\n", joining / CHANGES * 1e3,
           stepping / CHANGES * 1e3);
    as_engine_free(engine);
    as_policy_set_free(set);
    return 0;
}
