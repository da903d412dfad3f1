/*
 * The table of metrics and the store of counts, as metrics.c defines them. Tests read the table.
 */
#ifndef ALERTSCALER_SRC_RUNTIME_METRICS_PRIVATE_H
#define ALERTSCALER_SRC_RUNTIME_METRICS_PRIVATE_H

#include <bsd/sys/queue.h>
#include <stddef.h>
#include <stdint.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/decide/notification.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/runtime/metrics.h>

#include "metric.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS_MAX  3
#define METRIC_VALUE_MAX   200 /* bytes of a label's value; longer ones are cut */
#define METRIC_BUCKETS_MAX 14
#define METRIC_OTHER       "other"

struct metric_family {
    const char *name; /* of a counter: ends in _total */
    const char *help; /* contains no ", \ or newline */
    enum metric_type type;
    const char *labels[METRIC_LABELS_MAX + 1]; /* ends with NULL */
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
    struct series *alerts[AS_ALERT_RESOLVED + 1][AS_REASON_COUNT + 1]; /* last index: queued */
    struct http_cache http[HTTP_CACHE_SIZE];
};

#endif
