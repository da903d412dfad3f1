/*
 * Responses of Prometheus to instant and range queries.
 *
 * A response that may be incomplete is not used: half of a sum looks like less load. Thanos and
 * Mimir report unavailable data as warnings, VictoriaMetrics as `isPartial`. `infos` are
 * ignored. One sample that is not a finite number makes the response of an instant query
 * unusable: left out, it would count as missing, which has another meaning.
 */
#include <alertscaler/monitoring/prometheus.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/doc/json_tree.h>

/* Instant queries, and what both kinds share: whether the data is complete. */

#define QUOTED_MAX 64             /* bytes of a label's value in an error */
#define TIME_MAX_S 253402300799.0 /* the end of the year 9999 */

/* Values that are not finite, as Go and others write them, and our words for them. */
static const struct {
    const char *text, *shown;
} not_finite[] = {
    {"NaN", "NaN"}, {"+Inf", "+Inf"}, {"-Inf", "-Inf"}, {"Inf", "+Inf"}, {"nan", "NaN"},
};

void as_prometheus_encode_query(const char *query, int64_t timeout_us, struct as_buf *out)
{
    char timeout[AS_DURATION_SIZE];
    as_duration_print(timeout_us, timeout);
    as_buf_append_str(out, "query=");
    as_encode_percent(out, query, strlen(query), "");
    as_buf_append_str(out, "&timeout=");
    as_buf_append_str(out, timeout);
}

/* "errorType: error" of a document with status: error. */
static void set_own_words(const struct tree_value *root, struct as_error *error)
{
    const char *text = tree_find_text(root, "error");
    const char *type = tree_find_text(root, "errorType");
    as_error_set(error, "%s", as_str_is_empty(text) ? "an error without a text" : text);
    if (!as_str_is_empty(type))
        as_error_wrap(error, "%s", type);
}

static bool is_empty_list(const struct tree_value *value)
{
    return !value || value->kind == TREE_NULL || (value->kind == TREE_ARRAY && value->size == 0);
}

/*
 * ANSWERED; UNUSABLE with an error for an answer that has warnings or is partial. `isPartial` of
 * any type but `false`, and `warnings` that are not an empty list, count as incomplete.
 */
static enum as_prometheus_outcome prometheus_check_complete(const struct tree_value *root,
                                                            struct as_error *error)
{
    const struct tree_value *warnings = tree_find(root, "warnings");
    const struct tree_value *partial = tree_find(root, "isPartial");
    if (!is_empty_list(warnings)) {
        const char *first = tree_get_text(tree_get_first(warnings));
        const bool has_more = tree_is(warnings, TREE_ARRAY) && warnings->size > 1;
        as_error_set(error, "query has warnings and may be incomplete: %s%s",
                     first ? first : "(no text)", has_more ? " (and more)" : "");
        return AS_PROMETHEUS_UNUSABLE;
    }
    if (partial && (partial->kind != TREE_BOOLEAN || partial->boolean)) {
        as_error_set(error, "query has a partial answer (isPartial): a part of the storage did "
                            "not answer");
        return AS_PROMETHEUS_UNUSABLE;
    }
    return AS_PROMETHEUS_ANSWERED;
}

/* `pair` is [time, "value"]. */
static enum as_prometheus_outcome response_read_value(const struct tree_value *pair, const char *of,
                                                      double *value_out, struct as_error *error)
{
    const struct tree_value *time = tree_get_first(pair);
    const struct tree_value *member = time ? time->next : NULL;
    if (!tree_is(member, TREE_TEXT)) {
        as_error_set(error, "Prometheus: a sample without a value");
        return AS_PROMETHEUS_INVALID;
    }
    const char *text = member->text;
    if (as_number_parse_double(text, member->size, value_out) == 0)
        return AS_PROMETHEUS_ANSWERED;
    for (size_t i = 0; i < AS_ARRAY_SIZE(not_finite); i++) {
        if (strcmp(not_finite[i].text, text) == 0) {
            as_error_set(error, "query returned %s%s", not_finite[i].shown, of);
            return AS_PROMETHEUS_UNUSABLE;
        }
    }
    as_error_set(error, "Prometheus: a sample whose value is not a number");
    return AS_PROMETHEUS_INVALID;
}

/* The value of one series of a vector. `of`: names the series in errors; "" or " for pod ...". */
static enum as_prometheus_outcome read_series(const struct tree_value *series, const char *of,
                                              double *value_out, struct as_error *error)
{
    const struct tree_value *pair = tree_find(series, "value");
    if (!pair && tree_find(series, "histogram")) {
        as_error_set(error,
                     "query returned a native histogram%s, expected a number: use "
                     "histogram_quantile() or the like",
                     of);
        return AS_PROMETHEUS_UNUSABLE;
    }
    return response_read_value(pair, of, value_out, error);
}

static enum as_prometheus_outcome response_read_time(const struct tree_value *series,
                                                     as_maybe_time *at_out, struct as_error *error)
{
    double seconds;
    if (!tree_get_double(tree_get_first(tree_find(series, "value")), &seconds) ||
        !(fabs(seconds) <= TIME_MAX_S)) {
        as_error_set(error, "Prometheus: a sample without a time");
        return AS_PROMETHEUS_INVALID;
    }
    *at_out = (as_maybe_time){true, {llround(seconds * (double)AS_US_PER_S)}};
    return AS_PROMETHEUS_ANSWERED;
}

static enum as_prometheus_outcome range_read_number(const struct tree_value *vector,
                                                    struct as_query_result *result,
                                                    struct as_error *error)
{
    const size_t count = vector->size;
    if (count > 1) {
        as_error_set(error,
                     "query returned %zu series, expected one: aggregate with sum() or the like",
                     count);
        return AS_PROMETHEUS_UNUSABLE;
    }
    return read_series(vector->first, "", &result->value, error);
}

static int response_compare_samples(const void *a, const void *b)
{
    return strcmp(((const struct as_sample *)a)->pod, ((const struct as_sample *)b)->pod);
}

/* A pod's name for an error. */
static void response_quote(const char *pod, char text_out[QUOTED_MAX + 1])
{
    as_str_copy_line(pod, text_out, QUOTED_MAX + 1);
}

static enum as_prometheus_outcome read_sample(const struct tree_value *series,
                                              const struct as_query *query, struct as_arena *arena,
                                              struct as_sample *sample, struct as_error *error)
{
    const char *pod = tree_find_text(tree_find(series, "metric"), query->pod_label);
    char quoted[QUOTED_MAX + 1], of[QUOTED_MAX + 32];
    if (as_str_is_empty(pod)) {
        as_error_set(error, "query returned a series without the label `%s`: aggregate by it",
                     query->pod_label);
        return AS_PROMETHEUS_UNUSABLE;
    }
    response_quote(pod, quoted);
    snprintf(of, sizeof(of), " for pod `%s`", quoted);
    enum as_prometheus_outcome result = read_series(series, of, &sample->value, error);
    if (result == AS_PROMETHEUS_ANSWERED)
        result = response_read_time(series, &sample->at, error);
    if (result == AS_PROMETHEUS_ANSWERED)
        sample->pod = as_arena_strdup(arena, pod);
    return result;
}

static enum as_prometheus_outcome check_unique(const struct as_sample *samples, size_t count,
                                               const char *label, struct as_error *error)
{
    char quoted[QUOTED_MAX + 1];
    for (size_t i = 1; i < count; i++) {
        if (strcmp(samples[i - 1].pod, samples[i].pod) == 0) {
            response_quote(samples[i].pod, quoted);
            as_error_set(error, "query returned several series for pod `%s`: aggregate by `%s`",
                         quoted, label);
            return AS_PROMETHEUS_UNUSABLE;
        }
    }
    return AS_PROMETHEUS_ANSWERED;
}

static enum as_prometheus_outcome read_per_pod(const struct tree_value *vector,
                                               const struct as_query *query, struct as_arena *arena,
                                               struct as_query_result *result,
                                               struct as_error *error)
{
    const struct tree_value *series = vector->first;
    const size_t count = vector->size;
    if (count > AS_SAMPLES_MAX) {
        as_error_set(error, "query returned %zu series, at most %d are taken", count,
                     AS_SAMPLES_MAX);
        return AS_PROMETHEUS_UNUSABLE;
    }
    struct as_sample *samples = as_arena_alloc(arena, count, sizeof(*samples));
    for (size_t i = 0; i < count; i++, series = series->next) {
        enum as_prometheus_outcome read = read_sample(series, query, arena, &samples[i], error);
        if (read != AS_PROMETHEUS_ANSWERED)
            return read;
    }
    qsort(samples, count, sizeof(*samples), response_compare_samples);
    result->samples = samples;
    result->sample_count = count;
    return check_unique(samples, count, query->pod_label, error);
}

static enum as_prometheus_outcome read_vector(const struct tree_value *vector,
                                              const struct as_query *query, struct as_arena *arena,
                                              struct as_query_result *result,
                                              struct as_error *error)
{
    if (vector->size == 0) {
        as_error_set(error, "query returned no data");
        return AS_PROMETHEUS_NO_DATA;
    }
    switch (query->form) {
    case AS_QUERY_NUMBER: return range_read_number(vector, result, error);
    case AS_QUERY_PER_POD: return read_per_pod(vector, query, arena, result, error);
    case AS_QUERY_ANY: break;
    }
    return AS_PROMETHEUS_ANSWERED;
}

static enum as_prometheus_outcome read_scalar(const struct tree_value *pair,
                                              const struct as_query *query,
                                              struct as_query_result *result,
                                              struct as_error *error)
{
    switch (query->form) {
    case AS_QUERY_NUMBER: return response_read_value(pair, "", &result->value, error);
    case AS_QUERY_PER_POD:
        as_error_set(error, "query returned a scalar, expected one series a pod");
        return AS_PROMETHEUS_UNUSABLE;
    case AS_QUERY_ANY: break;
    }
    return AS_PROMETHEUS_ANSWERED;
}

static enum as_prometheus_outcome response_read_data(const struct tree_value *data,
                                                     const struct as_query *query,
                                                     struct as_arena *arena,
                                                     struct as_query_result *result,
                                                     struct as_error *error)
{
    const char *type = tree_find_text(data, "resultType");
    const struct tree_value *value = tree_find(data, "result");
    if (type && tree_is(value, TREE_ARRAY)) {
        if (strcmp(type, "vector") == 0)
            return read_vector(value, query, arena, result, error);
        if (strcmp(type, "scalar") == 0)
            return read_scalar(value, query, result, error);
        if (strcmp(type, "matrix") == 0 || strcmp(type, "string") == 0) {
            as_error_set(error, "query returned a %s, expected an instant vector or a scalar",
                         *type == 'm' ? "range vector" : type);
            return AS_PROMETHEUS_UNUSABLE;
        }
    }
    as_error_set(error, "Prometheus: not an answer to a query: no known data.resultType with a "
                        "data.result");
    return AS_PROMETHEUS_INVALID;
}

static enum as_prometheus_outcome response_decode(const char *json, size_t size,
                                                  const struct as_query *query,
                                                  struct as_arena *arena,
                                                  struct as_query_result *result,
                                                  struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    if (tree_load(&tree, json, size, error) < 0) {
        as_error_wrap(error, "Prometheus");
        return AS_PROMETHEUS_INVALID;
    }
    const struct tree_value *root = tree.root;
    const char *status = tree_find_text(root, "status");
    if (as_str_equal(status, "error")) {
        set_own_words(root, error);
        as_error_wrap(error, "Prometheus");
        return AS_PROMETHEUS_REFUSED;
    }
    if (!as_str_equal(status, "success")) {
        as_error_set(error, "Prometheus: not an answer to a query: no known status");
        return AS_PROMETHEUS_INVALID;
    }
    enum as_prometheus_outcome checked = prometheus_check_complete(root, error);
    return checked == AS_PROMETHEUS_ANSWERED
               ? response_read_data(tree_find(root, "data"), query, arena, result, error)
               : checked;
}

enum as_prometheus_outcome as_prometheus_decode_query(const char *json, size_t size,
                                                      const struct as_query *query,
                                                      struct as_arena *arena,
                                                      struct as_query_result *result_out)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_query_result result = {0};
    enum as_prometheus_outcome read = response_decode(json, size, query, arena, &result, &error);
    if (read != AS_PROMETHEUS_ANSWERED) {
        char *text = as_arena_alloc(arena, 1, AS_QUERY_ERROR_MAX);
        as_str_copy_line(error.text, text, AS_QUERY_ERROR_MAX);
        result = (struct as_query_result){.error = text};
    }
    *result_out = result;
    return read;
}

void as_prometheus_decode_error(const char *json, size_t size, char text_out[AS_QUERY_ERROR_MAX])
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    if (tree_load(&tree, json, size, NULL) == 0 &&
        as_str_equal(tree_find_text(tree.root, "status"), "error"))
        set_own_words(tree.root, &error);
    as_str_copy_line(error.text, text_out, AS_QUERY_ERROR_MAX);
}

/* Cortex, Mimir and proxies name a missing tenant or token in one line. A page of HTML is not
 * shown. */
void as_prometheus_explain_status(int status, const char *body, struct as_error *error)
{
    char first[AS_QUERY_ERROR_MAX], line[AS_QUERY_ERROR_MAX] = "";
    const char *text = body ? body + strspn(body, " \t\r\n") : "";
    if ((status == 401 || status == 403) && !strchr("<{[\"", *text)) {
        snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, "\r\n"), text);
        as_str_copy_line(first, line, sizeof(line));
    }
    if (*line)
        as_error_set(error, "HTTP %d: %s", status, line);
    else
        as_error_set(error, "HTTP %d", status);
}

bool as_prometheus_is_refusal(int status)
{
    return status / 100 == 4 && status != 401 && status != 403 && status != 408 && status != 429;
}

/* The status says nothing about the query. */
static bool prometheus_is_undecided(int status)
{
    return status / 100 != 2 && !as_prometheus_is_refusal(status);
}

enum as_prometheus_verdict as_prometheus_decode_verdict(int status, const char *json, size_t size,
                                                        struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    as_prometheus_explain_status(status, json, error);
    if (prometheus_is_undecided(status))
        return AS_PROMETHEUS_UNDECIDED;
    const bool is_read = status != 404 && json && tree_load(&tree, json, size, NULL) == 0;
    const char *word = is_read ? tree_find_text(tree.root, "status") : NULL;
    if (!word)
        return AS_PROMETHEUS_NO_API;
    if (strcmp(word, "error") != 0)
        return status / 100 == 2 ? AS_PROMETHEUS_ACCEPTS : AS_PROMETHEUS_UNDECIDED;
    if (!as_prometheus_is_refusal(status))
        return AS_PROMETHEUS_UNDECIDED;
    const char *text = tree_find_text(tree.root, "error");
    as_error_set(error, "%s", as_str_is_empty(text) ? "refused without a text" : text);
    return AS_PROMETHEUS_REJECTS;
}

/* Range queries. */

#define PROMETHEUS_RANGE_TIME_MAX_S 253402300799.0 /* the end of the year 9999 */

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

static int range_fail(const struct reading *reading, const char *text)
{
    as_error_set(reading->error, "Prometheus: not an answer to a range query: %s", text);
    return AS_PROMETHEUS_INVALID;
}

static int range_read_labels(struct reading *reading, const struct tree_value *metric,
                             struct as_labels **labels_out)
{
    size_t count = 0;

    for (const struct tree_value *label = tree_is(metric, TREE_OBJECT) ? metric->first : NULL;
         label; label = label->next) {
        if (label->kind != TREE_TEXT)
            return range_fail(reading, "a label that is no text");
        reading->pairs =
            as_xgrow(reading->pairs, count, &reading->pair_capacity, sizeof(*reading->pairs));
        reading->pairs[count++] = (struct as_label){label->name, label->text};
    }
    if (as_labels_new(reading->pairs, count, labels_out) != 0)
        return range_fail(reading, "labels that are too long");
    return AS_PROMETHEUS_ANSWERED;
}

static double prometheus_range_read_number(const char *text, size_t size)
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

    if (!tree_get_double(time, &seconds) || !(fabs(seconds) <= PROMETHEUS_RANGE_TIME_MAX_S) ||
        !tree_is(time->next, TREE_TEXT))
        return range_fail(reading, "a sample without time or value");
    point->at.us = llround(seconds * 1000) * AS_US_PER_MS;
    point->value = prometheus_range_read_number(time->next->text, time->next->size);
    return AS_PROMETHEUS_ANSWERED;
}

static int prometheus_range_read_series(struct reading *reading, const struct tree_value *series)
{
    const struct tree_value *values = tree_find(series, "values");
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    size_t i = 0;

    if (!tree_is(values, TREE_ARRAY)) /* only native histograms */
        return tree_find(series, "histograms") ? AS_PROMETHEUS_ANSWERED
                                               : range_fail(reading, "a series without values");
    int status = range_read_labels(reading, tree_find(series, "metric"), &labels);
    if (status != AS_PROMETHEUS_ANSWERED)
        return status;
    for (const struct tree_value *pair = values->first; pair; pair = pair->next, i++) {
        reading->points =
            as_xgrow(reading->points, i, &reading->capacity, sizeof(*reading->points));
        status = read_point(reading, pair, &reading->points[i]);
        if (status == AS_PROMETHEUS_ANSWERED && i > 0 &&
            reading->points[i].at.us <= reading->points[i - 1].at.us)
            status = range_fail(reading, "samples that are not in order");
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
        return range_fail(reading, "no matrix");
    const int complete = (int)prometheus_check_complete(root, reading->error);
    if (complete != AS_PROMETHEUS_ANSWERED)
        return complete;
    for (const struct tree_value *series = result->first; series; series = series->next) {
        const int status = prometheus_range_read_series(reading, series);
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
