/*
 * Series by their label values. A series stays forever: a counter must not restart.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "metrics_private.h"

#define KEY_MAX (1 + METRIC_LABELS_MAX * (METRIC_VALUE_MAX + 1))

static size_t make_key(enum metric metric, const char *const *values, char key_out[KEY_MAX])
{
    const struct metric_family *family = &metric_families[metric];
    size_t size = 0;
    key_out[size++] = (char)metric;
    for (size_t i = 0; family->labels[i]; i++) {
        size_t value_size = strlen(values[i]);
        if (value_size > METRIC_VALUE_MAX)
            value_size = as_str_cut_utf8(values[i], value_size, METRIC_VALUE_MAX);
        memcpy(key_out + size, values[i], value_size);
        size += value_size;
        key_out[size++] = '\0';
    }
    return size;
}

static struct series *find(struct as_metrics *metrics, const char *key, size_t size)
{
    struct series *series;
    HASH_FIND(hh, metrics->by_key, key, size, series);
    return series;
}

static struct series *make(struct as_metrics *metrics, enum metric metric, const char *key,
                           size_t key_size)
{
    const struct metric_family *family = &metric_families[metric];
    const size_t size = sizeof(struct series) + (family->bucket_count + 1) * sizeof(uint64_t);
    struct series *series = as_xcalloc(1, size + key_size);
    series->key = memcpy((char *)series + size, key, key_size);
    HASH_ADD_KEYPTR(hh, metrics->by_key, series->key, key_size, series);
    TAILQ_INSERT_TAIL(&metrics->families[metric].list, series, in_family);
    metrics->families[metric].count++;
    return series;
}

struct series *series_get(struct as_metrics *metrics, enum metric metric, const char *const *values)
{
    const struct metric_family *family = &metric_families[metric];
    struct series *series = TAILQ_FIRST(&metrics->families[metric].list);
    if (series && !family->labels[0])
        return series;
    char key[KEY_MAX];
    size_t size = make_key(metric, values, key);
    series = find(metrics, key, size);
    if (series)
        return series;
    /* The last free place is reserved for the series of "other". */
    if (family->series_max > 0 && metrics->families[metric].count + 1 >= family->series_max) {
        const char *others[METRIC_LABELS_MAX];
        for (size_t i = 0; family->labels[i]; i++)
            others[i] = METRIC_OTHER;
        size = make_key(metric, others, key);
        series = find(metrics, key, size);
    }
    return series ? series : make(metrics, metric, key, size);
}

void series_add(struct series *series, double amount)
{
    series->value += amount;
}

void series_observe(struct series *series, enum metric metric, int64_t us)
{
    const struct metric_family *family = &metric_families[metric];
    assert(family->type == METRIC_HISTOGRAM);
    const double duration_us = us > 0 ? (double)us : 0; /* sums of whole numbers are exact */
    size_t bucket = 0;
    while (bucket < family->bucket_count && duration_us > family->buckets[bucket] * 1e6)
        bucket++;
    series->buckets[bucket]++;
    series->count++;
    series->value += duration_us;
}

void series_free_all(struct as_metrics *metrics)
{
    struct series *series, *next;
    HASH_ITER (hh, metrics->by_key, series, next) {
        HASH_DEL(metrics->by_key, series);
        free(series);
    }
}
