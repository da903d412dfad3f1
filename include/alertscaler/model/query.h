/*
 * A PromQL query and its answer, as the engine and a source exchange them.
 */
#ifndef ALERTSCALER_MODEL_QUERY_H
#define ALERTSCALER_MODEL_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/fair_queue.h>
#include <alertscaler/base/time.h>

#define AS_QUERY_MAX       16384 /* bytes of a query with its templates filled in */
#define AS_QUERY_ERROR_MAX 256   /* bytes of an error's text, with NUL; longer texts are cut */
#define AS_SAMPLES_MAX     20000 /* of one answer */

enum as_query_form {
    AS_QUERY_NUMBER,  /* a scalar, or a vector of one series */
    AS_QUERY_PER_POD, /* a vector with one series per pod */
    AS_QUERY_ANY      /* any number of series: only whether there is one counts (guards) */
};

struct as_query {
    const char *text; /* in PromQL */
    enum as_query_form form;
    const char *pod_label; /* per pod */
    struct as_flow flow;
};

struct as_sample {
    const char *pod;
    double value;
    as_maybe_time at; /* unset: the time of evaluation */
    int64_t window_us;
};

/*
 * One of: an error, in a user's words (unreachable, time-out, not JSON, `status: error`, warnings,
 * no data, many series, not a finite number, a missing or repeated pod label, ...); a number;
 * samples, ascending by pod (bytes), each pod once. AS_QUERY_ANY without a series is the error
 * "query returned no data".
 */
struct as_query_result {
    const char *error;               /* NULL: no error */
    double value;                    /* AS_QUERY_NUMBER: finite */
    const struct as_sample *samples; /* AS_QUERY_PER_POD: not empty, values finite */
    size_t sample_count;
};

#endif
