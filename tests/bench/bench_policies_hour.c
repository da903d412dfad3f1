/*
 * One hour of N scaling policies (1,000; or the argument) in simulated time, through the real set,
 * engine, reports and encoder of the action log: requests to the API server, and bytes of the log.
 * Not counted: the hash and the sequence number of a record, the watch of the policies, and the
 * lists of other autoscalers.
 *
 * Each policy has a rule for an alert, and a tracked value, read every 15 s. The value moves within
 * the tolerance; at one moment of the hour, another one for each policy, it rises by half for good.
 * Statuses are accepted at once: the 50 writes a second of the real writer are not simulated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/runtime/policy_report.h>
#include <alertscaler/runtime/shell.h>

#define PER_SPACE 10
#define LOOK_US   (250 * AS_US_PER_MS)
#define WARM_US   (2 * AS_US_PER_MIN)
#define START_US  INT64_C(1795600000000000)
#define OBJECT                                                                                     \
    "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"        \
    "\"namespace\":\"team-%d\",\"name\":\"app-%d\",\"uid\":\"%08d-0000-4000-8000-000000000000\","  \
    "\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"target\":{"      \
    "\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"app-%d\"},\"min\":2,\"max\":20,"           \
    "\"cooldown\":{\"up\":\"1m\",\"down\":\"10m\"}},\"rules\":[{\"name\":\"slow\",\"match\":["     \
    "\"alertname=\\\"Slow\\\"\"],\"scaleUp\":{\"by\":\"50%%\"}},{\"name\":\"load\",\"always\":"    \
    "true,\"every\":\"15s\",\"track\":{\"averageValue\":\"100\",\"query\":"                        \
    "\"sum(load{app=\\\"app-%d\\\"})\"}}]},\"status\":%s}"

static const struct as_settings settings = {
    .prometheus = {.url = "http://prometheus:9090"},
    .defaults.bounds = {.tolerance_up = 0.1, .tolerance_down = 0.1},
    .objects = {.is_enabled = true,
                .max_policies = 100000,
                .rules_per_policy = 50,
                .enforces_namespace_label = true,
                .namespace_label = "namespace",
                .allows_unrestricted_queries = true},
};
static const struct as_ruleset no_files = {.digest = "none"};
static const struct as_engine_config config = {
    .incident_expiry_us = AS_US_PER_DAY, .spreads_evaluations = true, .seed = 1};

static int count;
static int32_t *sizes;
static as_mono_time now;
static struct as_engine *engine;
static struct as_policy_set *set;
static struct as_policy_reports *reports;

static struct {
    uint64_t reads, changes, statuses, records, log_bytes;
} sums;

static as_wall_time bench_get_wall(void)
{
    return (as_wall_time){START_US + now.us};
}

/* "app-12" is the end of the target's id, and in the query. */
static int find_number(const char *text)
{
    const char *name = strstr(text, "app-");
    return name ? atoi(name + 4) : 0;
}

static double get_load(int number)
{
    static unsigned state = 1;
    state = state * 1103515245U + 12345U;
    const double noise = 0.95 + 0.1 * (double)(state >> 16 & 0x7fff) / 0x7fff;
    const int64_t rise = WARM_US + AS_US_PER_H / count * number;
    return (now.us >= rise ? 600 : 400) * noise;
}

struct answer { /* with what its event points to */
    struct as_event event;
    struct as_observation observation;
    struct as_query_result result;
};

static bool bench_carry_out(const struct as_effect *effect, struct answer *answer_out)
{
    static const struct as_scale_result applied = {.outcome = AS_REASON_APPLIED, .attempts = 1};
    *answer_out = (struct answer){.event.call_id = effect->call_id};
    if (effect->kind == AS_EFFECT_COMMIT) {
        answer_out->event.kind = AS_EVENT_COMMITTED;
        return effect->call_id != 0;
    }
    if (effect->kind == AS_EFFECT_OBSERVE) {
        const int32_t size = sizes[find_number(effect->call.ref->id)];
        answer_out->observation = (struct as_observation){.outcome = AS_REASON_APPLIED,
                                                          .replicas = size,
                                                          .status_replicas = size,
                                                          .min = -1,
                                                          .max = -1,
                                                          .version = "1"};
        answer_out->event.kind = AS_EVENT_OBSERVED;
        sums.reads++;
    } else if (effect->kind == AS_EFFECT_QUERY) {
        answer_out->result.value = get_load(find_number(effect->query->text));
        answer_out->event.kind = AS_EVENT_QUERIED;
    } else if (effect->kind == AS_EFFECT_SCALE) {
        sizes[find_number(effect->call.ref->id)] = effect->call.request->to;
        answer_out->event.kind = AS_EVENT_SCALED;
        answer_out->event.result = &applied;
        sums.changes++;
    } else {
        return false;
    }
    return true;
}

static void bench_log(const struct as_effect *effect)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT_OPEN((size_t)1024 * 1024);
    const struct as_record_header header = {bench_get_wall(), "alertscaler-6c5d8f7b9-x2x4z"};
    if (!as_effect_encode_record(effect, &header, &out, NULL))
        return;
    sums.records++;
    sums.log_bytes += out.size + 1;
}

static void bench_step(struct as_event event)
{
    struct answer *queue = NULL;
    size_t queued = 0, capacity = 0;
    queue = as_xgrow(queue, queued, &capacity, sizeof(*queue));
    queue[queued++] = (struct answer){.event = event};
    for (size_t i = 0; i < queued; i++) {
        struct answer first = queue[i];
        struct as_effects effects;
        first.event.mono = now;
        first.event.wall = bench_get_wall();
        if (first.event.kind == AS_EVENT_OBSERVED)
            first.event.observation = &first.observation;
        if (first.event.kind == AS_EVENT_QUERIED)
            first.event.answer = &first.result;
        as_engine_step(engine, &first.event, &effects);
        for (size_t k = 0; k < effects.count; k++) {
            struct answer next;
            as_policy_reports_on_effect(reports, &effects.items[k], bench_get_wall());
            bench_log(&effects.items[k]);
            if (!bench_carry_out(&effects.items[k], &next))
                continue;
            queue = as_xgrow(queue, queued, &capacity, sizeof(*queue));
            queue[queued++] = next;
        }
    }
    free(queue);
}

static void put_policy(int number, const char *status)
{
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(OBJECT, number / PER_SPACE, number, number, number, number, status);
    struct as_error error = AS_ERROR_INIT;
    bool is_changed;
    if (as_policy_set_put(set, text, strlen(text), now, &is_changed, &error) != 0)
        abort();
    as_policy_reports_on_object(reports, text, strlen(text));
}

/* The API server accepts the status, and the watch shows it. */
static void accept_status(void *context, const struct as_scaling_policy *policy, const char *json,
                          size_t size, bool is_urgent, const struct as_policy_block *block)
{
    AS_CLEANUP(as_free_p) char *status = as_xstrndup(json, size);
    (void)context, (void)is_urgent, (void)block;
    put_policy(find_number(policy->id), status);
    as_policy_reports_on_written(reports, policy->namespace, policy->name, policy->uid);
    sums.statuses++;
}

static void advance(const struct as_ruleset *ruleset, int64_t us)
{
    for (const int64_t end = now.us + us; now.us < end;) {
        const int64_t look = now.us + LOOK_US;
        while (as_engine_get_next_deadline(engine).us <= look) {
            const as_mono_time due = as_engine_get_next_deadline(engine);
            now.us = due.us > now.us ? due.us : now.us;
            bench_step((struct as_event){.kind = AS_EVENT_DEADLINE});
        }
        now.us = look;
        const struct as_view view = {
            .mono = now, .wall = bench_get_wall(), .engine = engine, .ruleset = ruleset};
        as_policy_reports_step(reports, set, &view, accept_status, NULL);
    }
}

int main(int argc, char **argv)
{
    count = argc > 1 ? atoi(argv[1]) : 1000;
    if (count <= 0)
        return 2;
    sizes = as_xcalloc((size_t)count, sizeof(*sizes));
    set = as_policy_set_new();
    reports = as_policy_reports_new();
    for (int i = 0; i < count; i++) {
        sizes[i] = 4;
        put_policy(i, "{\"observedGeneration\":-1}");
    }
    const struct as_ruleset *ruleset = as_policy_set_join(
        set, &(struct as_policy_join){
                 .settings = &settings, .files = &no_files, .now = now, .is_complete = true});
    if (ruleset->target_count != (size_t)count)
        abort();
    engine = as_engine_new(&config, ruleset);
    bench_step((struct as_event){.kind = AS_EVENT_START});
    advance(ruleset, WARM_US);
    memset(&sums, 0, sizeof(sums));
    advance(ruleset, AS_US_PER_H);
    const uint64_t requests = sums.reads + sums.changes + sums.statuses;
    printf("policies: %d, an hour\n", count);
    printf(
        "requests to the API server: %llu (%.1f a second): %llu reads of a size, %llu changes of "
        "a size, %llu writes of a status\n",
        (unsigned long long)requests, (double)requests / 3600, (unsigned long long)sums.reads,
        (unsigned long long)sums.changes, (unsigned long long)sums.statuses);
    printf("action log: %llu records, %.1f MB\n", (unsigned long long)sums.records,
           (double)sums.log_bytes / 1e6);
    as_engine_free(engine);
    as_policy_reports_free(reports);
    as_policy_set_free(set);
    free(sizes);
    return 0;
}
