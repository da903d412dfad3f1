/*
 * Plays a chunk of history in the rehearsal. Each step sets the data of that time, runs due
 * deadlines, then delivers alerts that begin, continue or end.
 *
 * A target's size follows the history until the rules act on it for the first time; from then on
 * the rules control it.
 */
#include "backtest_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "rules_option.h"

/* A firing alert is repeated at this interval, as by the route of docs/receiver.md. */
#define REPEAT_US (5 * AS_US_PER_MIN)
#define YEAR_1_US INT64_C(-62135596800000000) /* Alertmanager's value for no end */

/* --- what the rehearsal says --- */

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

void backtest_begin(struct backtest *backtest)
{
    const struct as_rehearsal_config config = {
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
    backtest->rehearsal = as_rehearsal_new(&config);
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
    as_rehearsal_set_size(backtest->rehearsal, target->id, size);
    comparison_set_size(backtest->comparison, COMPARISON_AFTER, target->id, target->name, at, size,
                        COMPARISON_LIMIT_OF_RULES);
}

/* --- values --- */

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b; /* NOLINT: exactly equal */
}

static void play_number(struct backtest *backtest, const struct history_query *query, size_t step)
{
    if (step > 0 && is_same(query->values[step], query->values[step - 1]) &&
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
    as_rehearsal_set_query(backtest->rehearsal, query->text, &result);
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
        count++;
    }
    struct as_query_result result = {.samples = samples, .sample_count = count};
    if (query->error)
        result.error = query->error;
    else if (count == 0)
        result.error = "query returned no data";
    else if (!is_unique)
        result.error = "query returned series without a pod, or several for one";
    as_rehearsal_set_query(backtest->rehearsal, query->text, &result);
    if (!result.error && *query->target)
        as_rehearsal_set_pods(backtest->rehearsal, query->target, pods, count);
    free(samples);
    free(pods);
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

static void notify(struct backtest *backtest, struct history_alert *alert, as_wall_time at)
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
    as_rehearsal_notify(backtest->rehearsal, notification);
    as_notification_free(notification);
}

static void play_alerts(struct backtest *backtest, size_t step, as_wall_time at)
{
    struct history_alert *alert, *next;

    HASH_ITER (hh, backtest->alerts, alert, next) {
        const bool fires = alert->fires && alert->fires[step];
        const bool is_repeat = fires && alert->is_firing;
        if (fires == alert->is_firing && !(is_repeat && at.us - alert->told.us >= REPEAT_US))
            continue;
        alert->is_firing = fires;
        alert->told = at;
        backtest->notifications += !is_repeat;
        if (fires && !is_repeat)
            alert->starts_at = at;
        notify(backtest, alert, at);
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
        if (i < backtest->count && as_rehearsal_get_size(backtest->rehearsal, target->id) < 0)
            as_rehearsal_set_size(backtest->rehearsal, target->id,
                                  (int32_t)lround(target->sizes[i]));
    }
}

void backtest_play_chunk(struct backtest *backtest)
{
    begin_sizes(backtest);
    for (size_t i = 0; i < backtest->count; i++) {
        const as_wall_time at = {backtest->chunk + (int64_t)i * backtest->step};
        if (at.us - 1 > as_rehearsal_get_now(backtest->rehearsal).us)
            as_rehearsal_advance(backtest->rehearsal, (as_wall_time){at.us - 1});
        play_values(backtest, i, at);
        if (at.us > as_rehearsal_get_now(backtest->rehearsal).us)
            as_rehearsal_advance(backtest->rehearsal, at);
        play_alerts(backtest, i, at);
    }
}
