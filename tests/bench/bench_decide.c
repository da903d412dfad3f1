/*
 * Decisions per second on one core: for a step rule, for the example of docs/decision.md in memory,
 * and for that example's JSON lines. The bounds: 1,000,000, 300,000 and 20,000.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/decide/decision.h>

#include "clock.h"

static const char step_rule[] =
    "{\"v\": 2, \"now\": \"2026-11-20T10:00:00Z\", \"target\": {\"min\": 1, \"max\": 10,"
    " \"cooldown\": {\"up\": 180, \"down\": 300}}, \"observed\": {\"replicas\": 3},"
    " \"history\": {\"last_down\": \"2026-11-20T09:58:00Z\"},"
    " \"proposals\": [{\"rule\": \"slow\", \"action\": {\"scale_up\": {\"by\": \"50%\","
    " \"at_least\": 2}}}]}";

static const char example[] =
    "{\"v\": 2, \"now\": \"2026-11-20T10:00:00Z\", \"target\": {"
    "\"id\": \"kubernetes/default/apps/v1/Deployment/shop/checkout\", \"min\": 1, \"max\": 10,"
    " \"cooldown\": {\"up\": 180, \"down\": 300, \"up_after_down\": 0},"
    " \"tolerance\": {\"up\": 0.1, \"down\": 0.1}, \"enforce_bounds\": false, \"dry_run\": false,"
    " \"cpu_initialization_seconds\": 300, \"initial_readiness_delay_seconds\": 30,"
    " \"behavior\": {\"scaleUp\": {\"stabilizationWindowSeconds\": 0, \"selectPolicy\": \"Max\","
    " \"policies\": [{\"type\": \"Pods\", \"value\": 4, \"periodSeconds\": 15},"
    " {\"type\": \"Percent\", \"value\": 100, \"periodSeconds\": 15}]},"
    " \"scaleDown\": {\"stabilizationWindowSeconds\": 300, \"selectPolicy\": \"Max\","
    " \"policies\": [{\"type\": \"Percent\", \"value\": 100, \"periodSeconds\": 15}]}}},"
    " \"observed\": {\"replicas\": 3, \"status_replicas\": 3,"
    " \"pods\": [{\"name\": \"web-1\", \"phase\": \"Running\", \"ready\": true,"
    " \"deleting\": false, \"start_time\": \"2026-11-20T09:00:00Z\","
    " \"ready_since\": \"2026-11-20T09:00:20Z\", \"resources\": {\"cpu\": 0.5}}]},"
    " \"history\": {\"last_up\": null, \"last_down\": \"2026-11-20T09:58:00Z\","
    " \"scale_events\": [{\"at\": \"2026-11-20T09:58:00Z\", \"change\": -1}],"
    " \"recommendations\": [{\"at\": \"2026-11-20T09:59:45Z\", \"replicas\": 5}]},"
    " \"flags\": {\"paused\": false, \"in_progress\": false, \"budget_exhausted\": false,"
    " \"guarded\": false}, \"proposals\": ["
    "{\"rule\": \"slow\", \"incident\": \"7be9cc40aa9853c5\","
    " \"action\": {\"scale_up\": {\"by\": \"50%\", \"at_least\": 2}}},"
    " {\"rule\": \"rps\", \"action\": {\"track\": {\"average_value\": 100}}, \"value\": 420},"
    " {\"rule\": \"cpu\", \"action\": {\"track\": {\"utilization\": \"70%\","
    " \"resource\": \"cpu\"}}, \"samples\": [{\"pod\": \"web-1\", \"value\": 0.36,"
    " \"at\": \"2026-11-20T09:59:50Z\", \"window\": 30}]},"
    " {\"rule\": \"broken\", \"action\": {\"track\": {\"value\": 10}},"
    " \"error\": \"query returned no data\"}]}";

static struct as_decide_document *decode(const char *json)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;

    if (as_decision_decode_input(json, strlen(json), &document, &error) != 0) {
        fprintf(stderr, "decide: %s\n", error.text);
        abort();
    }
    return document;
}

/* One step: a decision in memory, or a line read, decided and written. */
struct work {
    const char *json;
    struct as_decide_document *document; /* NULL: from JSON to JSON */
    struct as_buf out;
};

static void step(struct work *work)
{
    struct as_decision decision;

    if (work->document) {
        as_decide(&work->document->input, work->document->results, &decision);
        return;
    }
    struct as_decide_document *document = decode(work->json);
    as_decide(&document->input, document->results, &decision);
    as_buf_clear(&work->out);
    as_decision_encode_output(&document->input, document->results, &decision, &work->out);
    as_decide_document_free(document);
}

/* Per second, of the quickest of some rounds. */
static double measure(struct work *work, int loops)
{
    double best = 0;

    for (int round = 0; round < 15; round++) {
        double start = clock_get_seconds();
        for (int i = 0; i < loops; i++)
            step(work);
        double rate = loops / (clock_get_seconds() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static int check(const char *what, double rate, double bound)
{
    printf("decide: %s %.0f a second (at least %.0f)\n", what, rate, bound);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    return rate < bound;
#else
    return 0;
#endif
}

int main(void)
{
    struct work rule = {.document = decode(step_rule)}, full = {.document = decode(example)},
                lines = {.json = example, .out = AS_BUF_INIT(1 << 20)};
    int failed = check("a step rule, in memory:", measure(&rule, 50000), 1e6);

    failed |= check("the example, in memory:", measure(&full, 20000), 3e5);
    failed |= check("the example's JSON lines:", measure(&lines, 2000), 2e4);
    as_decide_document_free(rule.document);
    as_decide_document_free(full.document);
    as_buf_deinit(&lines.out);
    return failed;
}
