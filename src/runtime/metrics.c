/*
 * Counts events. Series that change thousands of times a second (alerts, notifications, HTTP
 * answers) are looked up once; others by their labels each time.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "metrics_private.h"

#define VALUES(...)  ((const char *const[]){__VA_ARGS__})
#define QUEUED_INDEX AS_REASON_COUNT

static const char *const result_words[AS_NOTIFICATION_RESULT_COUNT] = {
    [AS_NOTIFICATION_OK] = "ok",
    [AS_NOTIFICATION_INVALID] = "invalid",
    [AS_NOTIFICATION_DENIED] = "denied",
    [AS_NOTIFICATION_UNAVAILABLE] = "unavailable",
};
static const char *const status_words[] = {
    [AS_ALERT_FIRING] = "firing",
    [AS_ALERT_RESOLVED] = "resolved",
};

struct as_metrics *as_metrics_new(void)
{
    struct as_metrics *metrics = as_xcalloc(1, sizeof(*metrics));
    for (size_t i = 0; i < METRIC_COUNT; i++)
        TAILQ_INIT(&metrics->families[i].list);
    /* Present from the start: else the first increase would not be visible as one. */
    for (size_t i = 0; i < AS_NOTIFICATION_RESULT_COUNT; i++)
        metrics->notifications[i] =
            series_get(metrics, METRIC_NOTIFICATIONS, VALUES(result_words[i]));
    static const enum metric unlabelled[] = {
        METRIC_NOTIFICATION_TO_ACTION, METRIC_ALERT_TO_ACTION,    METRIC_STORE_COMMITS,
        METRIC_STORE_COMMIT_DURATION,  METRIC_ACTION_LOG_RECORDS,
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(unlabelled); i++)
        (void)series_get(metrics, unlabelled[i], NULL);
    for (int i = 0; i < AS_APPROVAL_EVENT_COUNT; i++)
        (void)series_get(metrics, METRIC_APPROVALS,
                         VALUES(as_approval_event_get_word((enum as_approval_event)i)));
    return metrics;
}

struct as_metrics *as_metrics_free(struct as_metrics *metrics)
{
    if (!metrics)
        return NULL;
    series_free_all(metrics);
    free(metrics);
    return NULL;
}

static void add(struct as_metrics *metrics, enum metric metric, const char *const *values,
                double amount)
{
    series_add(series_get(metrics, metric, values), amount);
}

static void observe(struct as_metrics *metrics, enum metric metric, const char *const *values,
                    int64_t us)
{
    series_observe(series_get(metrics, metric, values), metric, us);
}

static void count_alert(struct as_metrics *metrics, enum as_alert_status status,
                        const struct as_alert_outcome *outcome)
{
    const size_t index = outcome->is_queued ? QUEUED_INDEX : (size_t)outcome->reason;
    struct series **series = &metrics->alerts[status][index];
    if (!*series) {
        const char *word = outcome->is_queued ? "queued" : as_reason_get_word(outcome->reason);
        *series = series_get(metrics, METRIC_ALERTS, VALUES(status_words[status], word));
    }
    series_add(*series, 1);
}

static void count_notification(struct as_metrics *metrics,
                               const struct as_notification_record *record)
{
    const struct as_notification *notification = record->notification;
    for (size_t i = 0; i < notification->alert_count; i++)
        count_alert(metrics, notification->alerts[i].status, &record->outcomes[i]);
    if (notification->truncated > 0)
        add(metrics, METRIC_TRUNCATED_ALERTS, VALUES(notification->receiver),
            (double)notification->truncated);
}

static void count_decision(struct as_metrics *metrics, const struct as_decision_record *record)
{
    const char *rule = record->output->rule ? record->output->rule : "";
    add(metrics, METRIC_DECISIONS, VALUES(rule, as_reason_get_word(record->output->reason)), 1);
}

static enum as_direction get_direction(const struct as_action_record *record)
{
    if (!record->has_sizes || record->to == record->from || record->from < 0)
        return AS_DIRECTION_NONE;
    return record->to > record->from ? AS_DIRECTION_UP : AS_DIRECTION_DOWN;
}

static void count_action(struct as_metrics *metrics, const struct as_action_record *record)
{
    const char *kind = record->target_kind->word;
    const char *direction = as_direction_get_word(get_direction(record));
    add(metrics, METRIC_ACTIONS, VALUES(kind, direction, as_reason_get_word(record->outcome)), 1);
    if (record->has_sizes && record->attempts > 0 && !record->is_late)
        observe(metrics, METRIC_ACTION_DURATION, VALUES(kind), record->duration_us);
    if (record->outcome != AS_REASON_APPLIED)
        return;
    if (record->since_notification_us >= 0)
        observe(metrics, METRIC_NOTIFICATION_TO_ACTION, NULL, record->since_notification_us);
    if (record->since_alert_us >= 0)
        observe(metrics, METRIC_ALERT_TO_ACTION, NULL, record->since_alert_us);
}

static void count_follow(struct as_metrics *metrics, const struct as_follow_record *record)
{
    const char *const *values = VALUES(record->rule, as_follow_end_get_word(record->end));
    add(metrics, METRIC_EFFECTS, values, 1);
    if (record->ready_us >= 0)
        observe(metrics, METRIC_TIME_TO_READY, values, record->ready_us);
    if (record->resolved_us >= 0)
        observe(metrics, METRIC_TIME_TO_RESOLVE, values, record->resolved_us);
}

static void count_approval(struct as_metrics *metrics, const struct as_approval_record *record)
{
    add(metrics, METRIC_APPROVALS, VALUES(as_approval_event_get_word(record->event)), 1);
}

void as_metrics_on_effect(struct as_metrics *metrics, const struct as_effect *effect)
{
    if (effect->kind == AS_EFFECT_RECORD_NOTIFICATION)
        count_notification(metrics, effect->notification);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION)
        count_decision(metrics, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION)
        count_action(metrics, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_FOLLOW)
        count_follow(metrics, effect->follow);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        count_approval(metrics, effect->approval);
}

void as_metrics_on_notification(struct as_metrics *metrics, enum as_notification_result result)
{
    series_add(metrics->notifications[result], 1);
}

static void find_http(struct as_metrics *metrics, struct http_cache *entry, const char *handler,
                      int status)
{
    const char *name = as_str_is_empty(handler) ? METRIC_OTHER : handler;
    AS_CLEANUP(as_free_p) char *code = as_xasprintf("%d", status);
    *entry = (struct http_cache){
        .handler = handler,
        .status = status,
        .requests = series_get(metrics, METRIC_HTTP_REQUESTS, VALUES(name, code)),
        .duration = series_get(metrics, METRIC_HTTP_DURATION, VALUES(name)),
    };
}

void as_metrics_on_http(struct as_metrics *metrics, const char *handler, int status,
                        int64_t duration_us)
{
    const size_t slot = ((uintptr_t)handler / 8 + (unsigned)status) % HTTP_CACHE_SIZE;
    struct http_cache *entry = &metrics->http[slot];
    if (entry->handler != handler || entry->status != status)
        find_http(metrics, entry, handler, status);
    series_add(entry->requests, 1);
    series_observe(entry->duration, METRIC_HTTP_DURATION, duration_us);
}

void as_metrics_on_http_drop(struct as_metrics *metrics, const char *reason)
{
    add(metrics, METRIC_HTTP_DROPPED, VALUES(reason), 1);
}

void as_metrics_on_client(struct as_metrics *metrics, const char *client_name,
                          const char *operation, const char *code, int64_t duration_us)
{
    const char *const *values = VALUES(client_name, operation, code);
    add(metrics, METRIC_PROVIDER_REQUESTS, values, 1);
    observe(metrics, METRIC_PROVIDER_DURATION, values, duration_us);
}

void as_metrics_on_source(struct as_metrics *metrics, const char *source, const char *outcome,
                          int64_t duration_us)
{
    add(metrics, METRIC_SOURCE_REQUESTS, VALUES(source, outcome), 1);
    observe(metrics, METRIC_SOURCE_DURATION, VALUES(source), duration_us);
}

void as_metrics_on_told(struct as_metrics *metrics, const char *receiver, enum as_tell_count what,
                        uint64_t count)
{
    static const enum metric families[AS_TELL_COUNT_COUNT] = {
        [AS_TELL_SENT] = METRIC_NOTIFY_SENT,
        [AS_TELL_FAILED] = METRIC_NOTIFY_FAILED,
        [AS_TELL_DROPPED] = METRIC_NOTIFY_DROPPED,
    };
    add(metrics, families[what], VALUES(receiver), (double)count);
}

void as_metrics_on_commit(struct as_metrics *metrics, int64_t duration_us, size_t batches,
                          size_t records, size_t log_bytes, as_wall_time now)
{
    add(metrics, METRIC_STORE_COMMITS, NULL, 1);
    observe(metrics, METRIC_STORE_COMMIT_DURATION, NULL, duration_us);
    add(metrics, METRIC_ACTION_LOG_RECORDS, NULL, (double)records);
    if (records > 0)
        series_get(metrics, METRIC_ACTION_LOG_LAST, NULL)->value =
            (double)now.us / (double)AS_US_PER_S;
}

void as_metrics_on_reload(struct as_metrics *metrics, bool ok, as_wall_time now)
{
    series_get(metrics, METRIC_RELOAD_SUCCESSFUL, NULL)->value = ok ? 1 : 0;
    if (ok)
        series_get(metrics, METRIC_RELOAD_TIMESTAMP, NULL)->value =
            (double)now.us / (double)AS_US_PER_S;
}
