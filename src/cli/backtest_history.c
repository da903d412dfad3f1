/*
 * Reads Prometheus' history, chunk by chunk.
 */
#include "backtest_private.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/model/labels_digest.h>
#include <alertscaler/monitoring/prometheus_range.h>

#define ANSWER_MAX ((size_t)16 * 1024 * 1024)
#define FORM_MAX   ((size_t)1024 * 1024)
#define TIMEOUT_US (4 * AS_US_PER_MIN)
#define ALERTS     "ALERTS{alertstate=\"firing\"}"
#define LABELS_MAX 1000
#define TOO_LARGE  1 /* try again with fewer steps */
#define NOT_USABLE 2 /* the query was refused; the error says why */

void backtest_warn(struct backtest *backtest, const char *format, ...)
{
    struct as_error text = AS_ERROR_INIT;
    va_list list;

    va_start(list, format);
    vsnprintf(text.text, sizeof(text.text), format, list);
    va_end(list);
    json_array_append_new(backtest->warnings, json_string(text.text));
}

/* --- asking --- */

static int read_refusal(const struct as_buf *body, struct as_error *error)
{
    char text[AS_QUERY_ERROR_MAX];

    as_prometheus_decode_error(body->data ? body->data : "", body->size, text);
    if (*text)
        as_error_set(error, "Prometheus: %s", text);
    if (strstr(text, "too many samples") || strstr(text, "maximum resolution"))
        return TOO_LARGE;
    return *text ? NOT_USABLE : -EPROTO;
}

/* 0; TOO_LARGE; NOT_USABLE with an error; or a negative errno with an error. */
static int ask(struct backtest *backtest, const char *query, as_range_visit_fn *visit,
               void *context, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf form = AS_BUF_INIT(FORM_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(ANSWER_MAX);
    const struct as_range range = {
        .from = {backtest->chunk},
        .to = {backtest->chunk + ((int64_t)backtest->count - 1) * backtest->step},
        .step_us = backtest->step,
    };

    as_prometheus_encode_range(query, &range, TIMEOUT_US, &form);
    const int status = http_session_post(backtest->session, AS_PROMETHEUS_RANGE_PATH, &form,
                                         ANSWER_MAX, &body, error);
    if (status == HTTP_SESSION_TOO_LARGE)
        return TOO_LARGE;
    if (status == HTTP_SESSION_REFUSED)
        return read_refusal(&body, error);
    if (status)
        return status;
    switch (as_prometheus_decode_range(body.data, body.size, visit, context, error)) {
    case AS_PROMETHEUS_ANSWERED:
    case AS_PROMETHEUS_NO_DATA: return 0;
    case AS_PROMETHEUS_UNUSABLE:
    case AS_PROMETHEUS_REFUSED: return NOT_USABLE;
    case AS_PROMETHEUS_INVALID: break;
    }
    return -EPROTO;
}

/* The step of a time; `count` if it is outside this chunk. */
static size_t find_step(const struct backtest *backtest, as_wall_time at)
{
    const int64_t since = at.us - backtest->chunk;

    if (since < 0 || since / backtest->step >= (int64_t)backtest->count)
        return backtest->count;
    return (size_t)(since / backtest->step);
}

static double *make_values(const struct backtest *backtest)
{
    double *values = as_xcalloc(backtest->count, sizeof(*values));
    for (size_t i = 0; i < backtest->count; i++)
        values[i] = NAN;
    return values;
}

/* --- alerts --- */

/* The alert's labels and those of --label, added as Prometheus adds external labels. */
static struct as_labels *make_alert_labels(const struct backtest *backtest,
                                           const struct as_labels *series)
{
    struct as_label *pairs = as_xcalloc(series->count + LABELS_MAX, sizeof(*pairs));
    char *names[LABELS_MAX];
    struct as_labels *labels = NULL;
    size_t count = 0, name_count = 0, at = 0;
    const char *text;

    for (uint32_t i = 0; i < series->count; i++) {
        const char *name = series->items[i].name;
        if (strcmp(name, "__name__") != 0 && strcmp(name, "alertstate") != 0)
            pairs[count++] = series->items[i];
    }
    while ((text = as_args_find_next(backtest->args, "label", &at)) && name_count < LABELS_MAX) {
        const size_t size = strcspn(text, "=");
        names[name_count] = as_xstrndup(text, size);
        if (!*as_labels_get(series, names[name_count]) && text[size])
            pairs[count++] = (struct as_label){names[name_count], text + size + 1};
        name_count++;
    }
    if (as_labels_new(pairs, count, &labels) != 0)
        labels = NULL; /* a duplicate label, which was checked before; or 16 MiB of labels */
    for (size_t i = 0; i < name_count; i++)
        free(names[i]);
    free(pairs);
    return labels;
}

static void take_alert(void *context, const struct as_range_series *series)
{
    struct backtest *backtest = context;
    struct as_labels *labels = make_alert_labels(backtest, series->labels);
    struct history_alert *alert;

    if (!labels)
        return;
    const struct as_digest digest = as_labels_get_digest(labels);
    HASH_FIND(hh, backtest->alerts, &digest, sizeof(digest), alert);
    if (!alert) {
        alert = as_xcalloc(1, sizeof(*alert));
        alert->digest = digest;
        alert->labels = labels;
        HASH_ADD(hh, backtest->alerts, digest, sizeof(alert->digest), alert);
    } else {
        as_labels_free(labels);
    }
    if (!alert->fires)
        alert->fires = as_xcalloc(backtest->count + 1, sizeof(*alert->fires));
    for (size_t i = 0; i < series->count; i++)
        alert->fires[find_step(backtest, series->points[i].at)] = true; /* the last: outside */
}

/* --- sizes --- */

struct sizes {
    struct backtest *backtest;
    struct history_target *target;
    size_t series;
};

static void take_sizes(void *context, const struct as_range_series *series)
{
    struct sizes *sizes = context;

    sizes->series++;
    for (size_t i = 0; i < series->count; i++) {
        const size_t step = find_step(sizes->backtest, series->points[i].at);
        if (step < sizes->backtest->count)
            sizes->target->sizes[step] = series->points[i].value;
    }
}

static int read_target(struct backtest *backtest, struct history_target *target,
                       struct as_error *error)
{
    struct sizes sizes = {backtest, target, 0};

    free(target->sizes);
    target->sizes = make_values(backtest);
    if (!target->query)
        return 0;
    int status = ask(backtest, target->query, take_sizes, &sizes, error);
    if (status == NOT_USABLE || (!status && sizes.series > 1)) {
        if (!status)
            as_error_set(error, "%zu series, expected one: aggregate with max() or the like",
                         sizes.series);
        as_error_wrap(error, "the size of %s (%s)", target->id, target->query);
        return -EPROTO;
    }
    return status;
}

/* --- values --- */

struct values {
    struct backtest *backtest;
    struct history_query *query;
};

static void take_number(const struct values *values, const struct as_range_series *series)
{
    struct history_query *query = values->query;

    for (size_t i = 0; i < series->count; i++) {
        const size_t step = find_step(values->backtest, series->points[i].at);
        if (step == values->backtest->count)
            continue;
        query->values[step] = series->points[i].value;
        query->counts[step] =
            (unsigned char)(query->counts[step] < 2 ? query->counts[step] + 1 : 2);
    }
}

static void take_pod(const struct values *values, const struct as_range_series *series)
{
    struct history_query *query = values->query;
    const char *pod = as_labels_get(series->labels, query->pod_label);

    if (query->pod_count == AS_SAMPLES_MAX)
        return;
    query->pods =
        as_xgrow(query->pods, query->pod_count, &query->pod_capacity, sizeof(*query->pods));
    struct history_series *item = &query->pods[query->pod_count++];
    *item = (struct history_series){as_xstrdup(pod), make_values(values->backtest)};
    for (size_t i = 0; i < series->count; i++) {
        const size_t step = find_step(values->backtest, series->points[i].at);
        if (step < values->backtest->count)
            item->values[step] = series->points[i].value;
    }
}

static void take_values(void *context, const struct as_range_series *series)
{
    const struct values *values = context;

    if (values->query->form == AS_QUERY_PER_POD)
        take_pod(values, series);
    else
        take_number(values, series);
}

static int compare_pods(const void *left, const void *right)
{
    return strcmp(((const struct history_series *)left)->pod,
                  ((const struct history_series *)right)->pod);
}

static void clear_query(struct history_query *query)
{
    for (size_t i = 0; i < query->pod_count; i++) {
        free(query->pods[i].pod);
        free(query->pods[i].values);
    }
    query->pod_count = 0;
    free(query->values);
    free(query->counts);
    query->values = NULL;
    query->counts = NULL;
}

static int read_query(struct backtest *backtest, struct history_query *query,
                      struct as_error *error)
{
    struct values values = {backtest, query};

    clear_query(query);
    query->values = make_values(backtest);
    query->counts = as_xcalloc(backtest->count, 1);
    if (query->error)
        return 0;
    int status = ask(backtest, query->text, take_values, &values, error);
    if (status == NOT_USABLE) {
        query->error = as_xstrdup(error->text);
        backtest_warn(backtest, "query %s: %s", query->text, error->text);
        status = 0;
    }
    query->had_data = query->had_data || query->pod_count > 0;
    if (query->pod_count > 0)
        qsort(query->pods, query->pod_count, sizeof(*query->pods), compare_pods);
    return status;
}

/* --- a chunk --- */

static int read_alerts(struct backtest *backtest, struct as_error *error)
{
    struct history_alert *alert, *next;

    HASH_ITER (hh, backtest->alerts, alert, next) {
        free(alert->fires);
        alert->fires = NULL;
    }
    const int status = ask(backtest, ALERTS, take_alert, backtest, error);
    return status == NOT_USABLE ? -EPROTO : status;
}

static int read_all(struct backtest *backtest, struct as_error *error)
{
    struct history_target *target, *next_target;
    struct history_query *query, *next_query;

    int status = read_alerts(backtest, error);
    if (!status)
        status = backtest_bind_alerts(backtest, error);
    HASH_ITER (hh, backtest->targets, target, next_target) {
        if (!status)
            status = read_target(backtest, target, error);
    }
    HASH_ITER (hh, backtest->queries, query, next_query) {
        if (!status && query->is_used)
            status = read_query(backtest, query, error);
    }
    return status;
}

int backtest_read_chunk(struct backtest *backtest, struct as_error *error)
{
    for (;;) {
        const int64_t left = (backtest->to - backtest->chunk) / backtest->step + 1;
        backtest->count = left < (int64_t)backtest->steps ? (size_t)left : backtest->steps;
        const int status = read_all(backtest, error);
        if (status != TOO_LARGE)
            return status > 0 ? -EPROTO : status;
        if (backtest->steps / 2 < BACKTEST_CHUNK_MIN)
            return -EMSGSIZE; /* the error says what is too large */
        backtest->steps /= 2;
    }
}

void backtest_clear_chunk(struct backtest *backtest)
{
    struct history_alert *alert, *next_alert;
    struct history_query *query, *next_query;

    HASH_ITER (hh, backtest->alerts, alert, next_alert) {
        free(alert->fires);
        alert->fires = NULL;
        if (alert->is_firing)
            continue;
        HASH_DEL(backtest->alerts, alert);
        as_labels_free(alert->labels);
        free(alert);
    }
    HASH_ITER (hh, backtest->queries, query, next_query) {
        clear_query(query);
        query->is_used = false;
    }
}

void backtest_clear(struct backtest *backtest)
{
    struct history_alert *alert, *next_alert;
    struct history_query *query, *next_query;
    struct history_target *target, *next_target;

    HASH_ITER (hh, backtest->alerts, alert, next_alert)
        alert->is_firing = false;
    backtest_clear_chunk(backtest);
    HASH_ITER (hh, backtest->queries, query, next_query) {
        HASH_DEL(backtest->queries, query);
        free(query->pods);
        free(query->text);
        free(query->pod_label);
        free(query->target);
        free(query->error);
        free(query);
    }
    HASH_ITER (hh, backtest->targets, target, next_target) {
        HASH_DEL(backtest->targets, target);
        free(target->id);
        free(target->key);
        free(target->name);
        free(target->query);
        free(target->namespace);
        free(target->sizes);
        free(target);
    }
}
