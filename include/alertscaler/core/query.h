/*
 * A PromQL query and its answer, as the engine and a source exchange them.
 */
#ifndef ALERTSCALER_CORE_QUERY_H
#define ALERTSCALER_CORE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>

#define AS_QUERY_MAX       16384 /* bytes of a query with its templates filled in */
#define AS_QUERY_ERROR_MAX 256   /* bytes of an error's text, with NUL; longer ones are cut */
#define AS_SAMPLES_MAX     20000 /* of one answer */

enum as_query_form {
    AS_QUERY_NUMBER,  /* a scalar, or a vector of one series */
    AS_QUERY_PER_POD, /* a vector of one series a pod */
    AS_QUERY_ANY      /* any number of series: whether there is one is all that counts (guards) */
};

struct as_query {
    const char *text; /* PromQL */
    enum as_query_form form;
    const char *pod_label; /* per pod */
};

struct as_sample {
    const char *pod;
    double value;
    as_maybe_time at; /* unset: taken now */
    int64_t window_us;
};

/*
 * One of: an error (unreachable, time-out, not JSON, `status: error`, warnings, no data, many
 * series, not a finite number, a series without or with a repeated pod label, ...), in a user's
 * words; a number; samples, ascending by pod (bytes), each pod once. An answer to AS_QUERY_ANY
 * without a series is the error "query returned no data".
 */
struct as_query_result {
    const char *error;               /* NULL: none */
    double value;                    /* AS_QUERY_NUMBER: finite */
    const struct as_sample *samples; /* AS_QUERY_PER_POD: not empty, values finite */
    size_t sample_count;
};

#endif
