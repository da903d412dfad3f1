/*
 * Answers to range queries: see the header.
 */
#include <alertscaler/monitoring/prometheus_range.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/document_limits.h>

#include "prometheus_private.h"
#include <alertscaler/doc/json_tree.h>

#define TIME_MAX_S 253402300799.0 /* the end of the year 9999 */

struct reading {
    as_range_visit_fn *visit;
    void *context;
    struct as_range_point *points;
    size_t capacity;
    struct as_label *pairs;
    size_t pair_capacity;
    struct as_error *error;
};

static void append_seconds(struct as_buf *out, const char *key, int64_t us)
{
    const int64_t ms = us / AS_US_PER_MS;
    as_buf_printf(out, "&%s=%s%lld.%03lld", key, ms < 0 ? "-" : "", (long long)(llabs(ms) / 1000),
                  (long long)(llabs(ms) % 1000));
}

void as_prometheus_encode_range(const char *query, const struct as_range *range, int64_t timeout_us,
                                struct as_buf *out)
{
    as_prometheus_encode_query(query, timeout_us, out);
    append_seconds(out, "start", range->from.us);
    append_seconds(out, "end", range->to.us);
    append_seconds(out, "step", range->step_us);
}

static int fail(const struct reading *reading, const char *text)
{
    as_error_set(reading->error, "Prometheus: not an answer to a range query: %s", text);
    return AS_PROMETHEUS_INVALID;
}

static int read_labels(struct reading *reading, const struct tree_value *metric,
                       struct as_labels **labels_out)
{
    size_t count = 0;

    for (const struct tree_value *label = tree_is(metric, TREE_OBJECT) ? metric->first : NULL;
         label; label = label->next) {
        if (label->kind != TREE_TEXT)
            return fail(reading, "a label that is no text");
        reading->pairs =
            as_xgrow(reading->pairs, count, &reading->pair_capacity, sizeof(*reading->pairs));
        reading->pairs[count++] = (struct as_label){label->name, label->text};
    }
    if (as_labels_new(reading->pairs, count, labels_out) != 0)
        return fail(reading, "labels that are too long");
    return AS_PROMETHEUS_ANSWERED;
}

static double read_number(const char *text, size_t size)
{
    double value;

    if (as_number_parse_double(text, size, &value) == 0)
        return value;
    if (strcmp(text, "+Inf") == 0 || strcmp(text, "Inf") == 0)
        return HUGE_VAL;
    return strcmp(text, "-Inf") == 0 ? -HUGE_VAL : (double)NAN;
}

/* `pair` is [time, "value"]. */
static int read_point(const struct reading *reading, const struct tree_value *pair,
                      struct as_range_point *point)
{
    const struct tree_value *time = tree_get_first(pair);
    double seconds;

    if (!tree_get_double(time, &seconds) || !(fabs(seconds) <= TIME_MAX_S) ||
        !tree_is(time->next, TREE_TEXT))
        return fail(reading, "a sample without time or value");
    point->at.us = llround(seconds * 1000) * AS_US_PER_MS;
    point->value = read_number(time->next->text, time->next->size);
    return AS_PROMETHEUS_ANSWERED;
}

static int read_series(struct reading *reading, const struct tree_value *series)
{
    const struct tree_value *values = tree_find(series, "values");
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    size_t i = 0;

    if (!tree_is(values, TREE_ARRAY)) /* only native histograms */
        return tree_find(series, "histograms") ? AS_PROMETHEUS_ANSWERED
                                               : fail(reading, "a series without values");
    int status = read_labels(reading, tree_find(series, "metric"), &labels);
    if (status != AS_PROMETHEUS_ANSWERED)
        return status;
    for (const struct tree_value *pair = values->first; pair; pair = pair->next, i++) {
        reading->points =
            as_xgrow(reading->points, i, &reading->capacity, sizeof(*reading->points));
        status = read_point(reading, pair, &reading->points[i]);
        if (status == AS_PROMETHEUS_ANSWERED && i > 0 &&
            reading->points[i].at.us <= reading->points[i - 1].at.us)
            status = fail(reading, "samples that are not in order");
        if (status != AS_PROMETHEUS_ANSWERED)
            return status;
    }
    reading->visit(reading->context,
                   &(struct as_range_series){labels, reading->points, values->size});
    return AS_PROMETHEUS_ANSWERED;
}

static int read_document(struct reading *reading, const char *json, size_t size)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));

    if (tree_load(&tree, json, size, reading->error) < 0) {
        as_error_wrap(reading->error, "Prometheus");
        return AS_PROMETHEUS_INVALID;
    }
    const struct tree_value *root = tree.root, *data = tree_find(root, "data");
    const struct tree_value *result = tree_find(data, "result");
    if (as_str_equal(tree_find_text(root, "status"), "error")) {
        const char *text = tree_find_text(root, "error");
        as_error_set(reading->error, "Prometheus: %s", text ? text : "an error without a text");
        return AS_PROMETHEUS_REFUSED;
    }
    if (!as_str_equal(tree_find_text(root, "status"), "success") ||
        !as_str_equal(tree_find_text(data, "resultType"), "matrix") || !tree_is(result, TREE_ARRAY))
        return fail(reading, "no matrix");
    const int complete = (int)prometheus_check_complete(root, reading->error);
    if (complete != AS_PROMETHEUS_ANSWERED)
        return complete;
    for (const struct tree_value *series = result->first; series; series = series->next) {
        const int status = read_series(reading, series);
        if (status != AS_PROMETHEUS_ANSWERED)
            return status;
    }
    return result->size > 0 ? AS_PROMETHEUS_ANSWERED : AS_PROMETHEUS_NO_DATA;
}

enum as_prometheus_outcome as_prometheus_decode_range(const char *json, size_t size,
                                                      as_range_visit_fn *visit, void *context,
                                                      struct as_error *error)
{
    struct reading reading = {.visit = visit, .context = context, .error = error};

    const int outcome = read_document(&reading, json, size);

    free(reading.points);
    free(reading.pairs);
    return (enum as_prometheus_outcome)outcome;
}
