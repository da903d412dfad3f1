/*
 * Prometheus' HTTP API, as far as instant queries need it: POST /api/v1/query, and its answer in
 * the terms of model/source.h. Also spoken by Thanos, Mimir, VictoriaMetrics and others.
 *
 * Label values come from outside: control characters are removed where an error quotes them.
 */
#ifndef ALERTSCALER_MONITORING_PROMETHEUS_RESPONSE_H
#define ALERTSCALER_MONITORING_PROMETHEUS_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/model/source.h>

#define AS_PROMETHEUS_QUERY_PATH "/api/v1/query"

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

/* From the body of another status: "bad_data: invalid parameter ..."; "" if it has no error. */
void as_prometheus_decode_error(const char *json, size_t size, char text_out[AS_QUERY_ERROR_MAX]);

#endif
