/*
 * Limits how often an event that others can cause is reported: once an interval, with a count. The
 * first event is reported at once. Events within the interval are counted and reported together
 * when the interval ends, or at as_throttle_end.
 *
 * The owner calls as_throttle_refill from time to time, or after as_throttle_get_wait: so the count
 * is reported even if no further event comes. The caller supplies the time.
 */
#ifndef ALERTSCALER_BASE_THROTTLE_H
#define ALERTSCALER_BASE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#define AS_THROTTLE_EVERY_US    AS_US_PER_MIN /* the usual interval */
#define AS_THROTTLE_REMOTE_SIZE 64

struct as_throttle;

/* Reports throttle->count events; the last came from `remote` with `error`. False: reporting is not
 * possible now; the next as_throttle_refill tries again. */
typedef bool as_throttle_fn(const void *context, const struct as_throttle *throttle);

struct as_throttle {
    int64_t every_us;
    as_throttle_fn *tell;
    const void *context;
    uint64_t count;                                             /* not yet reported */
    char remote[AS_THROTTLE_REMOTE_SIZE], error[AS_ERROR_SIZE]; /* of the last event, cut to fit */
    as_mono_time told;
    bool has_reported;
};

#define AS_THROTTLE_INIT(every, fn, its_context)                                                   \
    ((struct as_throttle){.every_us = (every), .tell = (fn), .context = (its_context)})

/* Counts one event and reports if the interval is over. Both texts are copied; "" if unknown. */
void as_throttle_add(struct as_throttle *throttle, const char *remote, const char *error,
                     as_mono_time now);
/* Reports the events not yet reported, if the interval is over. */
void as_throttle_refill(struct as_throttle *throttle, as_mono_time now);
/* Reports the events not yet reported, at once; for the end of a series of events. */
void as_throttle_end(struct as_throttle *throttle, as_mono_time now);

/* Microseconds until the next report is due; 0: now; -1: no events to report. */
int64_t as_throttle_get_wait(const struct as_throttle *throttle, as_mono_time now);

#endif
