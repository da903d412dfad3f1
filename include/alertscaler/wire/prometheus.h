/*
 * Prometheus' HTTP API, as far as instant queries need it: POST /api/v1/query, and its answer in
 * the terms of core/query.h. Also spoken by Thanos, Mimir, VictoriaMetrics and others.
 *
 * Label values come from outside: of what is quoted in an error, control characters are cut.
 */
#ifndef ALERTSCALER_WIRE_PROMETHEUS_H
#define ALERTSCALER_WIRE_PROMETHEUS_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/core/query.h>

#define AS_PROMETHEUS_QUERY_PATH "/api/v1/query"

/* Appends the form (application/x-www-form-urlencoded) that asks for `query` as of now. */
void as_prometheus_encode_query(const char *query, int64_t timeout_us, struct as_buf *out);

enum as_prometheus_outcome {
    AS_PROMETHEUS_ANSWERED,
    AS_PROMETHEUS_NO_DATA,
    AS_PROMETHEUS_UNUSABLE, /* an answer, but not one to this form of query */
    AS_PROMETHEUS_REFUSED,  /* status: error */
    AS_PROMETHEUS_INVALID   /* not JSON, or not an answer to a query */
};

/*
 * Reads the body of a 200 and fills in `result_out`: what it points to is of the arena. With every
 * outcome but ANSWERED its error is set (and nothing else is), in less than AS_QUERY_ERROR_MAX
 * bytes.
 */
enum as_prometheus_outcome as_prometheus_decode_query(
    const char *json, size_t size, const struct as_query *query, struct as_arena *arena,
    struct as_query_result *result_out) AS_MUST_USE;

/* Of the body of another status: "bad_data: invalid parameter ..."; "" where it does not say. */
void as_prometheus_decode_error(const char *json, size_t size, char text_out[AS_QUERY_ERROR_MAX]);

#endif
