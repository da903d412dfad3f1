/*
 * Range queries: the request, its answers, and invalid answers.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/monitoring/prometheus.h>

Test(prometheus_range, asks_in_whole_milliseconds)
{
    struct as_buf form = AS_BUF_INIT(1000);
    const struct as_range range = {
        .from = {1500 * AS_US_PER_MS}, .to = {90 * AS_US_PER_S}, .step_us = 15 * AS_US_PER_S};
    as_prometheus_encode_range("a{b=\"c\"}", &range, 10 * AS_US_PER_S, &form);
    cr_expect_str_eq(form.data, "query=a%7Bb%3D%22c%22%7D&timeout=10s&start=1.500&end=90.000"
                                "&step=15.000");
    as_buf_deinit(&form);
}

Test(prometheus_range, asks_for_times_before_1970_too)
{
    struct as_buf form = AS_BUF_INIT(1000);
    const struct as_range range = {.from = {-1500 * AS_US_PER_MS}, .step_us = 5 * AS_US_PER_MS};
    as_prometheus_encode_range("a", &range, AS_US_PER_S, &form);
    cr_expect(strstr(form.data, "&start=-1.500&end=0.000&step=0.005"), "%s", form.data);
    as_buf_deinit(&form);
}

static char seen[1024];

static void visit(void *context, const struct as_range_series *series)
{
    size_t used = strlen(seen);
    used += (size_t)snprintf(seen + used, sizeof(seen) - used,
                             "%s:", as_labels_get(series->labels, "pod"));
    for (size_t i = 0; i < series->count; i++)
        used += (size_t)snprintf(seen + used, sizeof(seen) - used, " %lld=%g",
                                 (long long)(series->points[i].at.us / AS_US_PER_MS),
                                 series->points[i].value);
    snprintf(seen + used, sizeof(seen) - used, ";");
}

static enum as_prometheus_outcome read(const char *json, struct as_error *error)
{
    seen[0] = '\0';
    return as_prometheus_decode_range(json, strlen(json), visit, NULL, error);
}

#define MATRIX(result)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" result "]}}"

Test(prometheus_range, reads_every_series)
{
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(read(MATRIX("{\"metric\":{\"pod\":\"a\"},\"values\":[[1,\"2\"],[1.5,\"0.25\"]]},"
                             "{\"metric\":{\"pod\":\"b\"},\"values\":[[3,\"NaN\"],[4,\"+Inf\"],"
                             "[5,\"-Inf\"]]},"
                             "{\"metric\":{},\"values\":[]}"),
                      &error),
                 AS_PROMETHEUS_ANSWERED);
    cr_expect(strstr(seen, "a: 1000=2 1500=0.25;b: 3000=") == seen, "%s", seen);
    cr_expect(strstr(seen, " 4000=inf 5000=-inf;:;"), "%s", seen);
    cr_expect(strstr(seen, "nan"));
}

Test(prometheus_range, no_series_is_no_error)
{
    struct as_error error = AS_ERROR_INIT;
    cr_expect_eq(read(MATRIX(""), &error), AS_PROMETHEUS_NO_DATA);
    /* native histograms have no number: as if there were none */
    cr_expect_eq(read(MATRIX("{\"metric\":{},\"histograms\":[]}"), &error), AS_PROMETHEUS_ANSWERED);
    cr_expect_str_empty(seen);
}

Test(prometheus_range, what_is_no_answer)
{
    static const struct {
        const char *json, *error;
        enum as_prometheus_outcome outcome;
    } rows[] = {
        {"", "Prometheus: ", AS_PROMETHEUS_INVALID},
        {"[]", "Prometheus: ", AS_PROMETHEUS_INVALID},
        {"{}", "no matrix", AS_PROMETHEUS_INVALID},
        {"{\"status\":\"error\",\"error\":\"broken\"}", "broken", AS_PROMETHEUS_REFUSED},
        {"{\"status\":\"error\"}", "without a text", AS_PROMETHEUS_REFUSED},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}", "no matrix",
         AS_PROMETHEUS_INVALID},
        {MATRIX("{}"), "without values", AS_PROMETHEUS_INVALID},
        {MATRIX("{\"metric\":{\"a\":1},\"values\":[]}"), "no text", AS_PROMETHEUS_INVALID},
        {MATRIX("{\"metric\":{},\"values\":[1]}"), "time or value", AS_PROMETHEUS_INVALID},
        {MATRIX("{\"metric\":{},\"values\":[[1]]}"), "time or value", AS_PROMETHEUS_INVALID},
        {MATRIX("{\"metric\":{},\"values\":[[1,2]]}"), "time or value", AS_PROMETHEUS_INVALID},
        {MATRIX("{\"metric\":{},\"values\":[[1e300,\"2\"]]}"), "time or value",
         AS_PROMETHEUS_INVALID},
        {MATRIX("{\"metric\":{},\"values\":[[2,\"2\"],[1,\"2\"]]}"), "not in order",
         AS_PROMETHEUS_INVALID},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct as_error error = AS_ERROR_INIT;
        cr_expect_eq(read(rows[i].json, &error), rows[i].outcome, "%s", rows[i].json);
        cr_expect(strstr(error.text, rows[i].error), "%s: %s", rows[i].json, error.text);
    }
}

Test(prometheus_range, an_answer_that_may_be_incomplete_has_no_series)
{
    static const struct {
        const char *mark, *error;
        enum as_prometheus_outcome outcome;
    } rows[] = {
        {"\"isPartial\":true", "partial answer", AS_PROMETHEUS_UNUSABLE},
        {"\"isPartial\":\"no\"", "partial answer", AS_PROMETHEUS_UNUSABLE},
        {"\"warnings\":[\"a store is down\"]", "a store is down", AS_PROMETHEUS_UNUSABLE},
        {"\"warnings\":\"text\"", "may be incomplete", AS_PROMETHEUS_UNUSABLE},
        {"\"isPartial\":false", "", AS_PROMETHEUS_ANSWERED},
        {"\"warnings\":[]", "", AS_PROMETHEUS_ANSWERED},
        {"\"warnings\":null,\"infos\":[\"no counter\"]", "", AS_PROMETHEUS_ANSWERED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct as_error error = AS_ERROR_INIT;
        char json[512];
        snprintf(json, sizeof(json),
                 "{\"status\":\"success\",%s,\"data\":{\"resultType\":\"matrix\",\"result\":["
                 "{\"metric\":{\"pod\":\"a\"},\"values\":[[1,\"2\"]]}]},"
                 "\"stats\":{\"seriesFetched\": \"1\",\"executionTimeMsec\": 2}}",
                 rows[i].mark);
        cr_expect_eq(read(json, &error), rows[i].outcome, "%s", json);
        cr_expect(strstr(error.text, rows[i].error), "%s: %s", json, error.text);
        cr_expect_str_eq(seen, rows[i].outcome == AS_PROMETHEUS_ANSWERED ? "a: 1000=2;" : "");
    }
}
