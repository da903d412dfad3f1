/*
 * The table of metrics and the store of counts, as metrics.c defines them. Tests read the table.
 */
#ifndef ALERTSCALER_SRC_RUNTIME_METRICS_PRIVATE_H
#define ALERTSCALER_SRC_RUNTIME_METRICS_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/decide/notification.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/runtime/metrics.h>

/* Which metrics there are. The table has a row for each. */
enum metric { /* in printing order */
              METRIC_NOTIFICATIONS,
              METRIC_ALERTS,
              METRIC_TRUNCATED_ALERTS,
              METRIC_INCIDENTS_OPEN,
              METRIC_EVALUATIONS_SKIPPED,
              METRIC_DECISIONS,
              METRIC_ACTIONS,
              METRIC_ACTION_DURATION,
              METRIC_NOTIFICATION_TO_ACTION,
              METRIC_ALERT_TO_ACTION,
              METRIC_EFFECTS,
              METRIC_TIME_TO_READY,
              METRIC_TIME_TO_RESOLVE,
              METRIC_DID_NOT_COME,
              METRIC_INEFFECTIVE,
              METRIC_APPROVALS,
              METRIC_APPROVAL_WAITS_UNTIL,
              METRIC_TARGET_REPLICAS,
              METRIC_TARGET_DESIRED,
              METRIC_TARGET_MIN,
              METRIC_TARGET_MAX,
              METRIC_TARGET_LOCKED_UNTIL,
              METRIC_TARGET_CONTENDED,
              METRIC_TARGET_OTHERS,
              METRIC_RULE_VALUE,
              METRIC_RULE_GOAL,
              METRIC_RULE_QUERY_ERROR,
              METRIC_GROUP_NODES,
              METRIC_GROUP_REQUESTED,
              METRIC_GROUP_CLOSED,
              METRIC_POOL_PENDING,
              METRIC_POOL_UNNEEDED,
              METRIC_CLUSTER_OBJECTS,
              METRIC_CLUSTER_FACTS_AGE,
              METRIC_CLUSTER_REACHABLE,
              METRIC_LISTED_OBJECTS,
              METRIC_LIST_AGE,
              METRIC_SOURCE_REQUESTS,
              METRIC_SOURCE_DURATION,
              METRIC_PROVIDER_REQUESTS,
              METRIC_PROVIDER_DURATION,
              METRIC_NOTIFY_SENT,
              METRIC_NOTIFY_FAILED,
              METRIC_NOTIFY_DROPPED,
              METRIC_NOTIFY_ENTRIES,
              METRIC_NOTIFY_OLDEST,
              METRIC_STORE_COMMITS,
              METRIC_STORE_COMMIT_DURATION,
              METRIC_QUEUE_LENGTH,
              METRIC_ACTION_LOG_RECORDS,
              METRIC_ACTION_LOG_BYTES,
              METRIC_ACTION_LOG_LAST,
              METRIC_HTTP_REQUESTS,
              METRIC_HTTP_DURATION,
              METRIC_HTTP_CONNECTIONS,
              METRIC_HTTP_DROPPED,
              METRIC_PROXY_IGNORED,
              METRIC_ADMISSION_REVIEWS,
              METRIC_ADMISSION_CERTIFICATE,
              METRIC_POLICY_DEFINITION_OUTDATED,
              METRIC_POLICY_PAUSED,
              METRIC_RELOAD_SUCCESSFUL,
              METRIC_RELOAD_TIMESTAMP,
              METRIC_LEADER,
              METRIC_PAUSED,
              METRIC_INCIDENT_MEMORY,
              METRIC_INCIDENT_MEMORY_LIMIT,
              METRIC_REPEAT_CACHE_BYTES,
              METRIC_REPEAT_CACHE_HITS,
              METRIC_REPEAT_CACHE_MISSES,
              METRIC_TARGETS_PAUSED,
              METRIC_REGEX_LIMIT_EXCEEDED,
              METRIC_BUILD_INFO,
              METRIC_PROCESS_CPU,
              METRIC_PROCESS_RESIDENT,
              METRIC_PROCESS_VIRTUAL,
              METRIC_PROCESS_OPEN_FDS,
              METRIC_PROCESS_MAX_FDS,
              METRIC_PROCESS_START,
              METRIC_COUNT
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS_MAX  5
#define METRIC_VALUE_MAX   200 /* bytes of a label's value; longer ones are cut */
#define METRIC_BUCKETS_MAX 14
#define METRIC_OTHER       "other"

struct metric_family {
    const char *name; /* of a counter: ends in _total */
    const char *help; /* contains no ", \ or newline */
    enum metric_type type;
    /* Ends with NULL; `namespace` and `policy` are of scaling policies only. */
    const char *labels[METRIC_LABELS_MAX + 1];
    size_t series_max;     /* then the first label is "other"; 0: no value comes from outside */
    const double *buckets; /* of a histogram, ascending */
    size_t bucket_count;
};

extern const struct metric_family metric_families[METRIC_COUNT];

struct series {
    UT_hash_handle hh;
    TAILQ_ENTRY(series) in_family;
    const char *key;    /* the family's number as a byte, then each value with its NUL */
    uint64_t count;     /* a histogram's observations */
    double value;       /* a histogram's sum, in microseconds */
    uint64_t buckets[]; /* of a histogram: observations per bucket, not cumulative */
};
TAILQ_HEAD(series_list, series);

#define HTTP_CACHE_SIZE 64

struct http_cache { /* the series of a handler and status */
    const char *handler;
    int status;
    struct series *requests, *duration;
};

struct as_metrics {
    struct series *by_key;
    struct {
        struct series_list list; /* in order of creation */
        size_t count;
    } families[METRIC_COUNT];

    /* looked up once, because they change thousands of times a second */
    struct series *notifications[AS_NOTIFICATION_RESULT_COUNT];
    /* behind the reasons: queued, and the watchdog without a rule */
    struct series *alerts[AS_ALERT_RESOLVED + 1][AS_REASON_COUNT + 2];
    struct http_cache http[HTTP_CACHE_SIZE];
};

#endif
