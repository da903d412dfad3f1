/*
 * `alertscaler backtest`: runs past alerts from Prometheus through a simulation of the engine, and
 * compares with past sizes.
 *
 * Time is divided into steps, and read in chunks of steps; each chunk is read completely before it
 * is played. Alerts, targets and queries are known for the whole time.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/template.h>
#include <alertscaler/monitoring/prometheus.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/simulation.h>

#include "cli.h"
#include "comparison.h"
#include "http_call.h"

#define BACKTEST_CHUNK_MAX 5000 /* steps: well below Prometheus' limit for one answer */
#define BACKTEST_CHUNK_MIN 10

struct history_alert {
    UT_hash_handle hh; /* by the labels' digest */
    struct as_digest digest;
    struct as_labels *labels;
    as_wall_time starts_at;
    bool is_firing;
    as_wall_time notified; /* last notification */
    bool *fires;           /* one per step; NULL: not in this chunk */
};

struct history_target {
    UT_hash_handle hh;  /* by key */
    char *id, *key;     /* key: decide/target.h */
    char *name, *query; /* query NULL: its size is unknown */
    char *namespace;    /* NULL: it has none */
    const struct as_target_config *config;
    double *sizes; /* one per step, NaN: unknown */
    int32_t size;  /* the latest in the history; -1: none yet */
    bool is_ours;  /* the rules have acted on it */
};

struct history_series {
    char *pod;
    double *values;
};

struct history_query {
    UT_hash_handle hh; /* by text */
    char *text, *pod_label;
    enum as_query_form form;
    char *target;          /* id of the pods' target */
    bool is_used;          /* in this chunk */
    char *error;           /* if Prometheus refused it */
    double *values;        /* for numbers */
    unsigned char *counts; /* number of series per step, up to 2 */
    struct history_series *pods;
    size_t pod_count, pod_capacity;
    struct history_query *asked_for; /* what pods request of `resource`; NULL: not needed */
    enum as_resource resource;
    const char *container; /* of a rule: whose requests; NULL: the whole pod's */
    bool is_asked_for;     /* used only as an asked_for, not by a rule */
    bool had_data;
};

struct backtest {
    const struct as_args *args;
    struct as_config *config;
    struct as_rule_index *index;
    struct http_session *session;
    struct as_simulation *simulation;
    struct comparison *comparison;
    struct as_labels *nothing; /* the empty annotations of the history */
    json_t *warnings;
    int64_t from, to, step;
    int64_t chunk;       /* time of its first step */
    size_t count, steps; /* in this chunk; requested at once */
    struct history_alert *alerts;
    struct history_target *targets;
    struct history_query *queries;
    uint64_t notifications;
    uint64_t sent; /* including repeats */
};

/* --- the targets and queries of alerts --- */

/* They are found as the engine would find them. The history has no annotations. */

AS_PRINTF(2, 3)
static void backtest_warn(struct backtest *backtest, const char *format, ...)
{
    struct as_error text = AS_ERROR_INIT;
    va_list list;

    va_start(list, format);
    vsnprintf(text.text, sizeof(text.text), format, list);
    va_end(list);
    json_array_append_new(backtest->warnings, json_string(text.text));
}

#define TARGETS_MAX 10000
#define QUERIES_MAX 10000

/* The text of --target NAME=TEXT; NULL: not given. */
static const char *find_given_query(const struct backtest *backtest, const char *name)
{
    const size_t size = strlen(name);
    const char *text;
    size_t at = 0;

    while ((text = as_args_find_next(backtest->args, "target", &at))) {
        if (strncmp(text, name, size) == 0 && text[size] == '=')
            return text + size + 1;
    }
    return NULL;
}

/* Checks the syntax of --target NAME=QUERY. */
static int backtest_check_target_options(const struct backtest *backtest, struct as_error *error)
{
    const struct as_ruleset *ruleset = backtest->config->ruleset;
    const char *text;
    size_t at = 0;

    while ((text = as_args_find_next(backtest->args, "target", &at))) {
        const size_t size = strcspn(text, "=");
        if (!text[size]) {
            as_error_set(error, "--target: \"%s\" is not NAME=QUERY", text);
            return -EINVAL;
        }
        AS_CLEANUP(as_free_p) char *name = as_xstrndup(text, size);
        struct as_spelling spelling = as_spelling_begin(name);
        bool is_known = false;
        for (size_t i = 0; i < ruleset->target_count; i++) {
            as_spelling_offer(&spelling, ruleset->targets[i]->name);
            is_known = is_known || strcmp(ruleset->targets[i]->name, name) == 0;
        }
        AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
        if (!is_known) {
            as_error_set(error, "--target: the rules have no target \"%s\"%s", name, hint);
            return -EINVAL;
        }
    }
    return 0;
}

static int backtest_expand(const struct backtest *backtest, const char *text,
                           const struct as_labels *labels, struct as_buf *out,
                           struct as_error *error)
{
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    int status = as_template_new(text, &template, error);

    if (!status)
        status = as_template_check_promql(template, error);
    if (!status)
        status = as_template_expand_promql(template, labels, backtest->nothing, out, error);
    return status;
}

/* The query for the target's size; NULL if there is none. */
static char *make_size_query(const struct backtest *backtest, const struct as_target_config *config,
                             const struct as_target_ref *ref, const struct as_labels *labels,
                             struct as_error *error)
{
    const struct as_target_kind *kind = ref->kind;
    const char *given = find_given_query(backtest, config->name);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_QUERY_MAX);

    if (given && backtest_expand(backtest, given, labels, &text, error) != 0) {
        as_error_wrap(error, "--target %s", config->name);
        return NULL;
    }
    if (given || (kind->append_size_query && kind->append_size_query(ref, &text)))
        return as_buf_take(&text, NULL);
    return NULL;
}

/* By its id in any spelling; NULL: not a target of the rules. */
static struct history_target *backtest_find_target(const struct backtest *backtest, const char *id)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    struct history_target *target;

    HASH_FIND_STR(backtest->targets, key, target);
    return target;
}

/* 0, or a negative errno. A wrong --target ends the command. */
static int bind_target(struct backtest *backtest, const struct as_target_config *config,
                       const struct as_labels *labels, const char **id_out, struct as_error *error)
{
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    struct history_target *target;

    *id_out = NULL;
    if (as_target_ref_new(config, labels, backtest->nothing, &ref, NULL) != AS_TARGET_OK)
        return 0; /* the simulation reports target_not_allowed */
    HASH_FIND_STR(backtest->targets, ref->key, target);
    if (target) {
        *id_out = target->id;
        return 0;
    }
    if (HASH_COUNT(backtest->targets) == TARGETS_MAX) {
        as_error_set(error, "more than %d targets", TARGETS_MAX);
        return -EMSGSIZE;
    }
    struct as_error why = AS_ERROR_INIT;
    char *query = make_size_query(backtest, config, ref, labels, &why);
    if (*why.text) {
        *error = why;
        return -EINVAL;
    }
    target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(ref->id);
    target->key = as_xstrdup(ref->key);
    target->name = as_xstrdup(config->name);
    target->query = query;
    target->config = config;
    if (ref->kind->has_pods && !*as_target_ref_get(ref, "field"))
        target->namespace = as_xstrdup(as_target_ref_get(ref, "namespace"));
    target->size = -1;
    HASH_ADD_KEYPTR(hh, backtest->targets, target->key, strlen(target->key), target);
    *id_out = target->id;
    return 0;
}

/* Adds the targets that need no alert. */
static int backtest_bind_plain_targets(struct backtest *backtest, struct as_error *error)
{
    const struct as_ruleset *ruleset = backtest->config->ruleset;
    const char *id;
    int status = 0;

    for (size_t i = 0; !status && i < ruleset->target_count; i++) {
        if (!ruleset->targets[i]->is_templated)
            status = bind_target(backtest, ruleset->targets[i], backtest->nothing, &id, error);
    }
    return status;
}

/* NULL if there are too many. */
static struct history_query *get_query(struct backtest *backtest, const char *text,
                                       enum as_query_form form, const char *pod_label,
                                       const char *target)
{
    struct history_query *query;

    HASH_FIND_STR(backtest->queries, text, query);
    if (!query && HASH_COUNT(backtest->queries) == QUERIES_MAX) {
        backtest_warn(backtest, "more than %d different queries: %s is not asked", QUERIES_MAX,
                      text);
        return NULL;
    }
    if (!query) {
        query = as_xcalloc(1, sizeof(*query));
        query->text = as_xstrdup(text);
        query->form = form;
        query->pod_label = as_xstrdup(pod_label ? pod_label : "pod");
        query->target = as_xstrdup(target ? target : "");
        HASH_ADD_KEYPTR(hh, backtest->queries, query->text, strlen(query->text), query);
    }
    if (query->form == AS_QUERY_ANY) /* AS_QUERY_ANY: a number also shows that there is data */
        query->form = form;
    query->is_used = true;
    return query;
}

/* NULL if the labels give no query; the simulation reports that too. */
static struct history_query *bind_query(struct backtest *backtest,
                                        const struct as_template *template, enum as_query_form form,
                                        const char *pod_label, const struct as_labels *labels,
                                        const char *target)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_QUERY_MAX);

    if (as_template_expand_promql(template, labels, backtest->nothing, &text, NULL) != 0 ||
        !text.data)
        return NULL;
    return get_query(backtest, text.data, form, pod_label, target);
}

/* What the target's pods request, from kube-state-metrics: of the rule's container, or summed over
 * all containers. */
static void bind_resources(struct backtest *backtest, const struct as_track *track,
                           struct history_query *query, const char *id)
{
    static const char *const words[] = {[AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory"};
    const struct history_target *target = backtest_find_target(backtest, id);

    if (!target || !target->namespace)
        return;
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(
        "sum by (pod) (kube_pod_container_resource_%s{resource=\"%s\","
        "namespace=\"%s\",pod=~\"%s-.*\"%s%s%s})",
        track->of_limits ? "limits" : "requests", words[track->resource], target->namespace,
        strrchr(id, '/') + 1, track->container ? ",container=\"" : "",
        track->container ? track->container : "", track->container ? "\"" : "");
    query->container = track->container;
    query->asked_for = get_query(backtest, text, AS_QUERY_PER_POD, "pod", "");
    query->resource = track->resource;
    if (query->asked_for)
        query->asked_for->is_asked_for = true;
}

/* `labels`: of the alert; of an `always` rule none. */
static int bind_rule(struct backtest *backtest, const struct as_rule *rule,
                     const struct as_labels *labels, struct as_error *error)
{
    const struct as_target_config *config = rule->target;
    const char *id;
    const int status = bind_target(backtest, config, labels, &id, error);

    if (status)
        return status;
    struct history_query *query = NULL;
    if (rule->source.kind == AS_SOURCE_QUERY)
        query = bind_query(backtest, rule->source.query,
                           rule->source.per_pod ? AS_QUERY_PER_POD : AS_QUERY_NUMBER,
                           rule->source.pod_label, labels, id);
    if (query && id && rule->action.kind == AS_ACTION_TRACK &&
        rule->action.track.goal == AS_GOAL_UTILIZATION)
        bind_resources(backtest, &rule->action.track, query, id);
    if (rule->guard_kind == AS_GUARD_QUERY)
        (void)bind_query(backtest, rule->guard, AS_QUERY_ANY, NULL, labels, id);
    return 0;
}

/* Finds the rules of this chunk's alerts, and adds their targets and queries. 0, or a negative
 * errno. */
static int backtest_bind_alerts(struct backtest *backtest, struct as_error *error)
{
    const char *receiver = as_args_get(backtest->args, "receiver");
    struct history_alert *alert, *next;
    const struct as_rule *const *rules;

    HASH_ITER (hh, backtest->alerts, alert, next) {
        if (as_labels_are_own(alert->labels))
            continue;
        const size_t count =
            as_rule_index_match(backtest->index, alert->labels, &receiver, 1, &rules);
        for (size_t i = 0; i < count; i++) {
            const struct as_rule *rule = rules[i];
            const int status = rule->enabled ? bind_rule(backtest, rule, alert->labels, error) : 0;
            if (status)
                return status;
        }
    }
    return 0;
}

/* Adds the queries of `always` rules, which have no alert. */
static int backtest_bind_always(struct backtest *backtest, struct as_error *error)
{
    const struct as_ruleset *ruleset = backtest->config->ruleset;
    int status = 0;

    for (size_t i = 0; !status && i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        if (rule->is_always && rule->enabled)
            status = bind_rule(backtest, rule, backtest->nothing, error);
    }
    return status;
}

/* --- Prometheus' history, chunk by chunk --- */

#define ANSWER_MAX ((size_t)16 * 1024 * 1024)
#define FORM_MAX   ((size_t)1024 * 1024)
#define TIMEOUT_US (4 * AS_US_PER_MIN)
#define ALERTS     "ALERTS{alertstate=\"firing\"}"
#define LABELS_MAX 1000
#define TOO_LARGE  1 /* try again with fewer steps */
#define NOT_USABLE 2 /* the query was refused; the error says why */

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
static int backtest_ask(struct backtest *backtest, const char *query, as_range_visit_fn *visit,
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
static size_t backtest_find_step(const struct backtest *backtest, as_wall_time at)
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

static void backtest_add_alert(void *context, const struct as_range_series *series)
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
        alert->fires[backtest_find_step(backtest, series->points[i].at)] =
            true; /* the last: outside */
}

/* --- sizes --- */

struct sizes {
    struct backtest *backtest;
    struct history_target *target;
    size_t series;
};

static void backtest_add_sizes(void *context, const struct as_range_series *series)
{
    struct sizes *sizes = context;

    sizes->series++;
    for (size_t i = 0; i < series->count; i++) {
        const size_t step = backtest_find_step(sizes->backtest, series->points[i].at);
        if (step < sizes->backtest->count)
            sizes->target->sizes[step] = series->points[i].value;
    }
}

static int backtest_read_target(struct backtest *backtest, struct history_target *target,
                                struct as_error *error)
{
    struct sizes sizes = {backtest, target, 0};

    free(target->sizes);
    target->sizes = make_values(backtest);
    if (!target->query)
        return 0;
    int status = backtest_ask(backtest, target->query, backtest_add_sizes, &sizes, error);
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

static void backtest_take_number(const struct values *values, const struct as_range_series *series)
{
    struct history_query *query = values->query;

    for (size_t i = 0; i < series->count; i++) {
        const size_t step = backtest_find_step(values->backtest, series->points[i].at);
        if (step == values->backtest->count)
            continue;
        query->values[step] = series->points[i].value;
        query->counts[step] =
            (unsigned char)(query->counts[step] < 2 ? query->counts[step] + 1 : 2);
    }
}

static void backtest_take_pod(const struct values *values, const struct as_range_series *series)
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
        const size_t step = backtest_find_step(values->backtest, series->points[i].at);
        if (step < values->backtest->count)
            item->values[step] = series->points[i].value;
    }
}

static void backtest_add_values(void *context, const struct as_range_series *series)
{
    const struct values *values = context;

    if (values->query->form == AS_QUERY_PER_POD)
        backtest_take_pod(values, series);
    else
        backtest_take_number(values, series);
}

static int backtest_compare_pods(const void *left, const void *right)
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

static int backtest_read_query(struct backtest *backtest, struct history_query *query,
                               struct as_error *error)
{
    struct values values = {backtest, query};

    clear_query(query);
    query->values = make_values(backtest);
    query->counts = as_xcalloc(backtest->count, 1);
    if (query->error)
        return 0;
    int status = backtest_ask(backtest, query->text, backtest_add_values, &values, error);
    if (status == NOT_USABLE) {
        query->error = as_xstrdup(error->text);
        backtest_warn(backtest, "query %s: %s", query->text, error->text);
        status = 0;
    }
    query->had_data = query->had_data || query->pod_count > 0;
    if (query->pod_count > 0)
        qsort(query->pods, query->pod_count, sizeof(*query->pods), backtest_compare_pods);
    return status;
}

/* --- a chunk --- */

static int backtest_read_alerts(struct backtest *backtest, struct as_error *error)
{
    struct history_alert *alert, *next;

    HASH_ITER (hh, backtest->alerts, alert, next) {
        free(alert->fires);
        alert->fires = NULL;
    }
    const int status = backtest_ask(backtest, ALERTS, backtest_add_alert, backtest, error);
    return status == NOT_USABLE ? -EPROTO : status;
}

static int backtest_read_all(struct backtest *backtest, struct as_error *error)
{
    struct history_target *target, *next_target;
    struct history_query *query, *next_query;

    int status = backtest_read_alerts(backtest, error);
    if (!status)
        status = backtest_bind_alerts(backtest, error);
    if (!status)
        status = backtest_bind_always(backtest, error);
    HASH_ITER (hh, backtest->targets, target, next_target) {
        if (!status)
            status = backtest_read_target(backtest, target, error);
    }
    HASH_ITER (hh, backtest->queries, query, next_query) {
        if (!status && query->is_used)
            status = backtest_read_query(backtest, query, error);
    }
    return status;
}

/* Reads the next chunk, or smaller ones if answers are too large. 0, or a negative errno. */
static int backtest_read_chunk(struct backtest *backtest, struct as_error *error)
{
    for (;;) {
        const int64_t left = (backtest->to - backtest->chunk) / backtest->step + 1;
        backtest->count = left < (int64_t)backtest->steps ? (size_t)left : backtest->steps;
        const int status = backtest_read_all(backtest, error);
        if (status != TOO_LARGE)
            return status > 0 ? -EPROTO : status;
        if (backtest->steps / 2 < BACKTEST_CHUNK_MIN)
            return -EMSGSIZE; /* the error says what is too large */
        backtest->steps /= 2;
    }
}

/* Drops alerts that have ended. */
static void backtest_clear_chunk(struct backtest *backtest)
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

/* Drops everything. */
static void backtest_clear(struct backtest *backtest)
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

/* --- a chunk of history in the simulation --- */

/*
 * Each step sets the data of that time, runs due deadlines, then delivers alerts that begin,
 * continue or end.
 *
 * A target's size follows the history until the rules act on it for the first time; from then on
 * the rules control it.
 */

/* A firing alert is repeated at this interval, as by the route of docs/receiver.md. */
#define REPEAT_US (5 * AS_US_PER_MIN)
#define YEAR_1_US INT64_C(-62135596800000000) /* Alertmanager's value for no end */

/* --- what the simulation says --- */

static void on_decision(void *context, as_wall_time at, const struct as_decision_record *record)
{
    struct backtest *backtest = context;
    comparison_set_size(backtest->comparison, COMPARISON_AFTER, record->target, record->target_name,
                        at, record->output->replicas, COMPARISON_LIMIT_OF_RULES);
    comparison_set_unit(backtest->comparison, record->target, record->unit);
}

static void on_action(void *context, as_wall_time at, const struct as_action_record *record)
{
    struct backtest *backtest = context;
    struct history_target *target = backtest_find_target(backtest, record->target);

    if (!record->decision || record->outcome != AS_REASON_APPLIED)
        return;
    if (target)
        target->is_ours = true;
    comparison_set_size(backtest->comparison, COMPARISON_AFTER, record->target, record->target_name,
                        at, record->to, COMPARISON_LIMIT_OF_RULES);
    comparison_count_action(backtest->comparison, COMPARISON_AFTER, record->target,
                            record->target_name, record->to > record->from);
}

static void on_approval(void *context, as_wall_time at, const struct as_approval_record *record)
{
    const struct backtest *backtest = context;
    comparison_note_request(backtest->comparison, at, record);
}

static void on_incident(void *context, as_wall_time at, const struct as_incident_record *record)
{
    struct backtest *backtest = context;
    const char *alert = as_labels_get(record->labels, "alertname");

    if (record->event == AS_INCIDENT_SILENCED || record->event == AS_INCIDENT_UNSILENCED)
        return;
    for (size_t i = 0; i < record->target_count; i++)
        comparison_set_alert(backtest->comparison, record->targets[i].target, alert, at,
                             record->event == AS_INCIDENT_OPENED);
}

static void backtest_begin(struct backtest *backtest)
{
    const struct as_simulation_config config = {
        .ruleset = backtest->config->ruleset,
        .engine = rules_get_engine_config(backtest->config),
        .start = {backtest->from},
        .approves = strcmp(as_args_get(backtest->args, "approvals"), "given") == 0,
        .callbacks = {.decision = on_decision,
                      .action = on_action,
                      .incident = on_incident,
                      .approval = on_approval,
                      .context = backtest},
    };
    backtest->simulation = as_simulation_new(&config);
}

/* --- sizes --- */

static void play_size(struct backtest *backtest, struct history_target *target, size_t step,
                      as_wall_time at)
{
    const double value = target->sizes[step];

    if (!(value >= 0 && value <= AS_SIZE_MAX))
        return;
    const int32_t size = (int32_t)lround(value), before = target->size;
    const bool is_first = before < 0;
    if (size == before)
        return;
    target->size = size;
    comparison_set_size(backtest->comparison, COMPARISON_BEFORE, target->id, target->name, at, size,
                        COMPARISON_LIMIT_OF_RULES);
    if (!is_first)
        comparison_count_action(backtest->comparison, COMPARISON_BEFORE, target->id, target->name,
                                size > before);
    if (target->is_ours)
        return;
    as_simulation_set_size(backtest->simulation, target->id, size);
    comparison_set_size(backtest->comparison, COMPARISON_AFTER, target->id, target->name, at, size,
                        COMPARISON_LIMIT_OF_RULES);
}

/* --- values --- */

static bool backtest_is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b; /* NOLINT: exactly equal */
}

static void play_number(struct backtest *backtest, const struct history_query *query, size_t step)
{
    if (step > 0 && backtest_is_same(query->values[step], query->values[step - 1]) &&
        query->counts[step] == query->counts[step - 1])
        return;
    struct as_query_result result = {.value = query->values[step]};
    if (query->error)
        result.error = query->error;
    else if (query->counts[step] == 0)
        result.error = "query returned no data";
    else if (query->form == AS_QUERY_ANY)
        result.value = 1; /* any value: data exists */
    else if (query->counts[step] > 1)
        result.error = "query returned several series, expected one: aggregate with sum() or the "
                       "like";
    else if (!isfinite(result.value))
        result.error = "query returned a value that is not finite";
    as_simulation_set_query(backtest->simulation, query->text, &result);
}

/* What the pod requests; NaN: unknown. */
static double find_asked_for(const struct history_query *query, const char *pod, size_t step)
{
    const struct history_query *asked_for = query->asked_for;
    size_t low = 0, high = asked_for ? asked_for->pod_count : 0;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(pod, asked_for->pods[middle].pod);
        if (order == 0)
            return asked_for->pods[middle].values[step];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NAN;
}

/* The target's pods are those with a sample: running and ready. */
static void play_pods(struct backtest *backtest, const struct history_query *query, size_t step,
                      as_wall_time at)
{
    const as_maybe_time since = {.set = true, .at = {at.us - AS_US_PER_DAY}};
    struct as_sample *samples = as_xcalloc(query->pod_count + 1, sizeof(*samples));
    struct as_pod_seen *pods = as_xcalloc(query->pod_count + 1, sizeof(*pods));
    struct as_container_seen *containers = as_xcalloc(query->pod_count + 1, sizeof(*containers));
    size_t count = 0;
    bool is_unique = true;

    for (size_t i = 0; i < query->pod_count; i++) {
        const struct history_series *series = &query->pods[i];
        if (!isfinite(series->values[step]))
            continue;
        is_unique = is_unique && *series->pod &&
                    (count == 0 || strcmp(samples[count - 1].pod, series->pod) != 0);
        samples[count] = (struct as_sample){.pod = series->pod, .value = series->values[step]};
        pods[count] = (struct as_pod_seen){
            .name = series->pod,
            .phase = AS_POD_RUNNING,
            .ready = AS_TRUE,
            .start_time = since,
            .ready_since = since,
            .requests = {[AS_RESOURCE_CPU] = NAN, [AS_RESOURCE_MEMORY] = NAN},
            .limits = {[AS_RESOURCE_CPU] = NAN, [AS_RESOURCE_MEMORY] = NAN},
        };
        const double asked_for = find_asked_for(query, series->pod, step);
        pods[count].requests[query->resource] = pods[count].limits[query->resource] = asked_for;
        if (query->container) {
            containers[count] = (struct as_container_seen){.name = query->container};
            memcpy(containers[count].requests, pods[count].requests, sizeof(pods[count].requests));
            memcpy(containers[count].limits, pods[count].limits, sizeof(pods[count].limits));
            pods[count].containers = &containers[count];
            pods[count].container_count = 1;
        }
        count++;
    }
    struct as_query_result result = {.samples = samples, .sample_count = count};
    if (query->error)
        result.error = query->error;
    else if (count == 0)
        result.error = "query returned no data";
    else if (!is_unique)
        result.error = "query returned series without a pod, or several for one";
    as_simulation_set_query(backtest->simulation, query->text, &result);
    if (!result.error && *query->target)
        as_simulation_set_pods(backtest->simulation, query->target, pods, count);
    free(samples);
    free(pods);
    free(containers);
}

static void play_values(struct backtest *backtest, size_t step, as_wall_time at)
{
    struct history_target *target, *next_target;
    struct history_query *query, *next_query;

    HASH_ITER (hh, backtest->targets, target, next_target)
        play_size(backtest, target, step, at);
    HASH_ITER (hh, backtest->queries, query, next_query) {
        if (!query->is_used || query->is_asked_for)
            continue;
        if (query->form == AS_QUERY_PER_POD)
            play_pods(backtest, query, step, at);
        else
            play_number(backtest, query, step);
    }
}

/* --- alerts --- */

static void backtest_notify(struct backtest *backtest, struct history_alert *alert, as_wall_time at)
{
    struct as_labels *labels = as_labels_copy(alert->labels), *annotations = NULL;
    struct as_notification *notification = as_xcalloc(1, sizeof(*notification));

    if (as_labels_new(NULL, 0, &annotations) != 0)
        abort(); /* nothing is not too much */
    snprintf(notification->id, sizeof(notification->id), "%026llu",
             (unsigned long long)++backtest->sent);
    notification->receiver = as_xstrdup(as_args_get(backtest->args, "receiver"));
    notification->group_key = as_xstrdup("");
    notification->reason = as_xstrdup("");
    notification->remote = as_xstrdup("");
    notification->credential = as_xstrdup("");
    notification->traceparent = as_xstrdup("");
    notification->alert_count = 1;
    notification->alerts = as_xcalloc(1, sizeof(*notification->alerts));
    notification->alerts[0] = (struct as_alert){
        .status = alert->is_firing ? AS_ALERT_FIRING : AS_ALERT_RESOLVED,
        .digest = alert->digest,
        .fingerprint = as_labels_get_fingerprint(labels),
        .starts_at = alert->starts_at,
        .ends_at = alert->is_firing ? (as_wall_time){YEAR_1_US} : at,
        .labels = labels,
        .annotations = annotations,
    };
    as_simulation_notify(backtest->simulation, notification);
    as_notification_free(notification);
}

static void play_alerts(struct backtest *backtest, size_t step, as_wall_time at)
{
    struct history_alert *alert, *next;

    HASH_ITER (hh, backtest->alerts, alert, next) {
        const bool fires = alert->fires && alert->fires[step];
        const bool is_repeat = fires && alert->is_firing;
        if (fires == alert->is_firing && !(is_repeat && at.us - alert->notified.us >= REPEAT_US))
            continue;
        alert->is_firing = fires;
        alert->notified = at;
        backtest->notifications += !is_repeat;
        if (fires && !is_repeat)
            alert->starts_at = at;
        backtest_notify(backtest, alert, at);
    }
}

/* Sets each target's first known size: the engine would look again much later at a target it could
 * not find. */
static void begin_sizes(struct backtest *backtest)
{
    struct history_target *target, *next;

    HASH_ITER (hh, backtest->targets, target, next) {
        size_t i = 0;
        while (i < backtest->count && !(target->sizes[i] >= 0 && target->sizes[i] <= AS_SIZE_MAX))
            i++;
        if (i < backtest->count && as_simulation_get_size(backtest->simulation, target->id) < 0)
            as_simulation_set_size(backtest->simulation, target->id,
                                   (int32_t)lround(target->sizes[i]));
    }
}

static void backtest_play_chunk(struct backtest *backtest)
{
    begin_sizes(backtest);
    for (size_t i = 0; i < backtest->count; i++) {
        const as_wall_time at = {backtest->chunk + (int64_t)i * backtest->step};
        if (at.us - 1 > as_simulation_get_now(backtest->simulation).us)
            as_simulation_advance(backtest->simulation, (as_wall_time){at.us - 1});
        play_values(backtest, i, at);
        if (at.us > as_simulation_get_now(backtest->simulation).us)
            as_simulation_advance(backtest->simulation, at);
        play_alerts(backtest, i, at);
    }
}

/* --- the command --- */

#define STEP_MIN_US AS_US_PER_MS
#define STEPS_MAX   INT64_C(100000000)
#define BAR_WIDTH   40

static int read_times(struct backtest *backtest, struct as_error *error)
{
    const struct as_args *args = backtest->args;
    const as_wall_time now = moment_get_now();
    as_wall_time from = {0}, to = {0};

    if (!as_args_has(args, "from")) {
        as_error_set(error, "--from=TIME is needed");
        return -EINVAL;
    }
    int status = moment_parse("from", as_args_get(args, "from"), now, &from, error);
    if (!status)
        status = moment_parse("to", as_args_get(args, "to"), now, &to, error);
    if (!status) {
        status = as_duration_parse(as_args_get(args, "step"), &backtest->step, error);
        if (status)
            as_error_wrap(error, "--step");
    }
    if (status)
        return status;
    if (backtest->step < STEP_MIN_US || backtest->step % STEP_MIN_US != 0) {
        as_error_set(error, "--step: at least 1ms is needed");
        return -EINVAL;
    }
    backtest->from = from.us / STEP_MIN_US * STEP_MIN_US; /* Prometheus has milliseconds */
    backtest->to = to.us;
    if (backtest->to <= backtest->from) {
        as_error_set(error, "--to is not after --from");
        return -EINVAL;
    }
    if ((backtest->to - backtest->from) / backtest->step > STEPS_MAX) {
        as_error_set(error, "--step: too short for that time");
        return -ERANGE;
    }
    return 0;
}

static int check_labels(const struct as_args *args, struct as_error *error)
{
    const char *text;
    size_t at = 0, other_at, count = 0;

    while ((text = as_args_find_next(args, "label", &at))) {
        const size_t size = strcspn(text, "=");
        const char *other;
        unsigned same = 0;
        for (other_at = 0; (other = as_args_find_next(args, "label", &other_at));)
            same += strncmp(text, other, size + 1) == 0;
        if (size == 0 || !text[size] || same > 1 || ++count > 100) {
            as_error_set(error, "--label: \"%s\" is not NAME=VALUE, or given twice", text);
            return -EINVAL;
        }
    }
    return 0;
}

/* The history has no annotations, and of nodes it has other numbers. */
static void warn_of_rules(struct backtest *backtest)
{
    const struct as_ruleset *ruleset = backtest->config->ruleset;

    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        if (!rule->enabled)
            continue;
        if (rule->source.kind == AS_SOURCE_ANNOTATION)
            backtest_warn(backtest,
                          "rule %s: its value is an annotation, which Prometheus does not keep: it "
                          "proposes nothing",
                          rule->name);
        if (rule->source.kind == AS_SOURCE_NODES)
            backtest_warn(backtest,
                          "rule %s: its value is of `nodes`, which Prometheus does not keep as "
                          "they are counted here: it proposes nothing",
                          rule->name);
    }
}

static void warn_of_targets(struct backtest *backtest)
{
    struct history_target *target, *next;

    HASH_ITER (hh, backtest->targets, target, next) {
        if (target->size < 0 && as_simulation_get_size(backtest->simulation, target->id) < 0)
            backtest_warn(backtest,
                          "target %s (%s): no size in the history (%s): --target=%s=QUERY or "
                          "--replicas=NAME=N gives one",
                          target->name, target->id,
                          target->query ? target->query : "there is no metric for its kind",
                          target->name);
    }
}

static void warn_of_resources(struct backtest *backtest)
{
    struct history_query *query, *next;

    HASH_ITER (hh, backtest->queries, query, next) {
        if (query->is_asked_for && !query->had_data)
            backtest_warn(backtest,
                          "%s: no data: what pods ask for is not known, and utilization proposes "
                          "nothing",
                          query->text);
    }
}

static void print_progress(const struct backtest *backtest, bool is_last)
{
    const int64_t done = backtest->chunk - backtest->from, all = backtest->to - backtest->from;
    const int part = is_last ? BAR_WIDTH : (int)(done * BAR_WIDTH / all);
    char at[AS_RFC3339_SIZE];

    if (!isatty(STDERR_FILENO))
        return;
    as_wall_time_print_short((as_wall_time){is_last ? backtest->to : backtest->chunk}, at);
    fprintf(stderr, "\r[%.*s%*s] %3d %%  %s\033[K%s", part,
            "########################################", BAR_WIDTH - part, "",
            is_last ? 100 : (int)(done * 100 / all), at, is_last ? "\r\033[K" : "");
}

static int play_all(struct backtest *backtest, struct as_error *error)
{
    int status = backtest_bind_plain_targets(backtest, error);

    backtest->steps = BACKTEST_CHUNK_MAX;
    backtest->chunk = backtest->from;
    while (!status && backtest->chunk <= backtest->to) {
        print_progress(backtest, false);
        status = backtest_read_chunk(backtest, error);
        if (!status)
            backtest_play_chunk(backtest);
        backtest->chunk += (int64_t)backtest->count * backtest->step;
        backtest_clear_chunk(backtest);
    }
    print_progress(backtest, true);
    if (!status) {
        if (backtest->to > as_simulation_get_now(backtest->simulation).us)
            as_simulation_advance(backtest->simulation, (as_wall_time){backtest->to});
        comparison_end(backtest->comparison, (as_wall_time){backtest->to});
    }
    return status;
}

static int report(struct backtest *backtest, const char *rules, struct as_error *error)
{
    warn_of_targets(backtest);
    warn_of_resources(backtest);
    const struct comparison_report report = {
        .args = backtest->args,
        .rules = rules,
        .from = {backtest->from},
        .to = {backtest->to},
        .notifications = backtest->notifications,
        .warnings = backtest->warnings,
        .approvals = as_args_get(backtest->args, "approvals"),
    };
    return comparison_print(backtest->comparison, &report, error);
}

static int test(struct backtest *backtest, const char *rules, struct as_error *error)
{
    backtest_begin(backtest);
    int status =
        rules_set_replicas(backtest->args, backtest->config->ruleset, backtest->simulation, error);
    if (!status)
        status = backtest_check_target_options(backtest, error);
    if (status)
        return status;
    warn_of_rules(backtest);
    status = play_all(backtest, error);
    return status ? status : report(backtest, rules, error);
}

static int open_prometheus(struct backtest *backtest, const struct as_config *config,
                           struct as_error *error)
{
    const struct as_prometheus_settings *settings = &config->settings.prometheus;
    const char *given = as_args_get(backtest->args, "prometheus");
    const char *url = given ? given : settings->url;

    if (!url) {
        as_error_set(error, "--prometheus=URL is needed: the configuration names none");
        return -EINVAL;
    }
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        as_error_set(error, "--prometheus: \"%s\" is not an address as http://prometheus:9090",
                     url);
        return -EINVAL;
    }
    backtest->session = http_session_open(backtest->args->adapters, url, &settings->http);
    return 0;
}

/* Access to Prometheus may be configured in a separate file. */
static int backtest_load(struct backtest *backtest, const char *rules, struct as_config **other_out)
{
    const char *http = as_args_get(backtest->args, "http.config.file");
    int status = rules_load(backtest->args, rules, &backtest->config);

    if (!status && http)
        status = rules_load_http(backtest->args, http, other_out);
    return status;
}

static int backtest_run(const struct as_args *args)
{
    struct backtest backtest = {.args = args};
    AS_CLEANUP(as_config_free_p) struct as_config *other = NULL;
    const char *given = as_args_get(args, "rules");
    const char *rules = given ? given : config_option_report(args);
    struct as_error error = AS_ERROR_INIT;

    if (as_args_has(args, "http.config.file") && !as_args_has(args, "prometheus"))
        return as_cli_fail(args, "--http.config.file needs --prometheus");
    if (read_times(&backtest, &error) || check_labels(args, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = backtest_load(&backtest, rules, &other);
    if (status) {
        as_config_free(backtest.config);
        return status;
    }
    backtest.index = as_rule_index_new(backtest.config->ruleset);
    backtest.comparison = comparison_new(backtest.config->ruleset, as_args_has(args, "svg"));
    backtest.warnings = json_array();
    if (as_labels_new(NULL, 0, &backtest.nothing) != 0)
        abort(); /* nothing is not too much */
    status = open_prometheus(&backtest, other ? other : backtest.config, &error);
    if (!status)
        status = test(&backtest, rules, &error);
    backtest_clear(&backtest);
    http_session_close(backtest.session);
    json_decref(backtest.warnings);
    as_labels_free(backtest.nothing);
    as_simulation_free(backtest.simulation);
    comparison_free(backtest.comparison);
    as_rule_index_free(backtest.index);
    as_config_free(backtest.config);
    return status ? as_cli_fail(args, "%s", error.text) : AS_EXIT_OK;
}

static const struct as_option backtest_options[] = {
    {.name = "prometheus", .value = "URL", .help = "Prometheus' address: http://prometheus:9090"},
    {.name = "from",
     .value = "TIME",
     .help = "The beginning: 2026-11-20T14:03Z, or 7d for seven days ago"},
    {.name = "to", .value = "TIME", .fallback = "now", .help = "The end, as --from"},
    {.name = "step", .value = "DURATION", .fallback = "15s", .help = "Resolution of the history"},
    {.name = "rules",
     .value = "PATH",
     .help = "The rules to try: a folder, a file, or a configuration"},
    {.name = "target",
     .value = "NAME=QUERY",
     .repeats = true,
     .help = "PromQL for a target's size in the past; may hold templates of the alert's labels"},
    AS_OPTION_REPLICAS,
    {.name = "label",
     .value = "NAME=VALUE",
     .repeats = true,
     .help = "A label to add to all alerts, as Prometheus' external_labels does"},
    {.name = "receiver",
     .value = "NAME",
     .fallback = "alertscaler",
     .help = "The alerts' receiver in Alertmanager"},
    {.name = "approvals",
     .value = "WORD",
     .fallback = "given",
     .choices = (const char *const[]){"given", "none", NULL},
     .help = "Changes that wait for a person are approved at once (given), or never (none)"},
    {.name = "svg", .value = "DIR", .help = "Draws a chart of each target into this folder"},
    AS_OPTION_CONFIG_FILE(
        "Gives the access to Prometheus (`prometheus`); without --rules, also the rules"),
    {.name = "http.config.file",
     .value = "FILE",
     .help = "http_config for Prometheus: credentials and TLS"},
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_backtest = {
    .name = "backtest",
    .operands = "",
    .summary = "Tries rules on past alerts from Prometheus.",
    .help =
        "Shows what the alerts of the past would have caused under these rules, compared with the\n"
        "sizes of the past, as a table and as charts.",
    .options = backtest_options,
    .run = backtest_run,
};
