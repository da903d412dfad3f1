/*
 * Prometheus' HTTP API, as far as queries need it: POST /api/v1/query with its answer in the terms
 * of model/source.h, and POST /api/v1/query_range. Also spoken by Thanos, Mimir, VictoriaMetrics
 * and others.
 *
 * Label values come from outside: control characters are removed where an error quotes them.
 */
#ifndef ALERTSCALER_MONITORING_PROMETHEUS_H
#define ALERTSCALER_MONITORING_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/source.h>

#define AS_PROMETHEUS_QUERY_PATH  "/api/v1/query"
#define AS_PROMETHEUS_FORMAT_PATH "/api/v1/format_query" /* of 2.38 and later */

/* What follows a query at AS_PROMETHEUS_QUERY_PATH, if the server lacks the other path: at this
 * time there is no data, so the server only parses the query. */
#define AS_PROMETHEUS_PARSE_ONLY "&time=1&timeout=10s"

/* Appends the form (application/x-www-form-urlencoded) that runs `query` at the present time. */
void as_prometheus_encode_query(const char *query, int64_t timeout_us, struct as_buf *out);

enum as_prometheus_outcome {
    AS_PROMETHEUS_ANSWERED,
    AS_PROMETHEUS_NO_DATA,
    AS_PROMETHEUS_UNUSABLE, /* not in the query's form, or perhaps incomplete */
    AS_PROMETHEUS_REFUSED,  /* status: error */
    AS_PROMETHEUS_INVALID   /* not JSON, or not an answer to a query */
};

/*
 * Reads the body of a 200 and fills `result_out`, which points into the arena. For every outcome
 * but ANSWERED only its error is set, in less than AS_QUERY_ERROR_MAX bytes.
 */
enum as_prometheus_outcome as_prometheus_decode_query(
    const char *json, size_t size, const struct as_query *query, struct as_arena *arena,
    struct as_query_result *result_out) AS_MUST_USE;

/* The server's verdict about a query that it was sent to only parse. */
enum as_prometheus_verdict {
    AS_PROMETHEUS_ACCEPTS,
    AS_PROMETHEUS_REJECTS,  /* the error is the server's text */
    AS_PROMETHEUS_NO_API,   /* 404, or no answer of Prometheus' API: the server lacks the path */
    AS_PROMETHEUS_UNDECIDED /* the status is about something else: credentials, limits, a fault */
};

/* Reads the answer. All verdicts but ACCEPTS set the error. */
enum as_prometheus_verdict as_prometheus_decode_verdict(int status, const char *json, size_t size,
                                                        struct as_error *error) AS_MUST_USE;
/* Whether an answer of this status with `status: error` refuses the query itself. */
bool as_prometheus_is_refusal(int status);

/* "HTTP 401: no org id", from a refusal of the login in plain text; else "HTTP 401" only. `body`
 * has a NUL at its end; NULL: none. */
void as_prometheus_explain_status(int status, const char *body, struct as_error *error);

/* From the body of another status: "bad_data: invalid parameter ..."; "" if it has no error. */
void as_prometheus_decode_error(const char *json, size_t size, char text_out[AS_QUERY_ERROR_MAX]);

/*
 * Range queries.
 */

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
