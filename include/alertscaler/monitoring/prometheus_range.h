/*
 * Prometheus' HTTP API, range queries: POST /api/v1/query_range. Instant queries:
 * monitoring/prometheus_response.h.
 */
#ifndef ALERTSCALER_MONITORING_PROMETHEUS_RANGE_H
#define ALERTSCALER_MONITORING_PROMETHEUS_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/monitoring/prometheus_response.h>

#define AS_PROMETHEUS_RANGE_PATH "/api/v1/query_range"

struct as_range {
    as_wall_time from, to; /* both inclusive */
    int64_t step_us;       /* whole milliseconds */
};

/* Appends the form that runs `query` over `range`. */
void as_prometheus_encode_range(const char *query, const struct as_range *range, int64_t timeout_us,
                                struct as_buf *out);

struct as_range_point {
    as_wall_time at;
    double value; /* may be NaN or infinite */
};

struct as_range_series { /* valid for the call */
    const struct as_labels *labels;
    const struct as_range_point *points; /* ascending; a gap has no points */
    size_t count;
};

/* Must not use jansson. */
typedef void as_range_visit_fn(void *context, const struct as_range_series *series);

/*
 * Reads the body of a 200 and visits each series. NO_DATA: no series. All outcomes but ANSWERED and
 * NO_DATA set the error; series may have been visited before. An answer that may be incomplete is
 * UNUSABLE, as for instant queries, and no series is visited.
 */
enum as_prometheus_outcome as_prometheus_decode_range(const char *json, size_t size,
                                                      as_range_visit_fn *visit, void *context,
                                                      struct as_error *error) AS_MUST_USE;

#endif
