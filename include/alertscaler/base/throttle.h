/*
 * What others can bring about as often as they like is told once an interval, with how many there
 * were: the first at once, and those that come within the interval together when it is over, or at
 * the end. Whoever has one looks at it now and then (as_throttle_look), or when
 * as_throttle_get_wait says, so that none stays untold because no other comes.
 *
 * The times are the caller's.
 */
#ifndef ALERTSCALER_BASE_THROTTLE_H
#define ALERTSCALER_BASE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#define AS_THROTTLE_EVERY_US    AS_US_PER_MIN /* what is usual */
#define AS_THROTTLE_REMOTE_SIZE 64

struct as_throttle;

/* Tells of `count`, of which the last came from `remote` with `error`. False: it cannot be told
 * now, and is tried again with the next look. */
typedef bool as_throttle_fn(const void *context, const struct as_throttle *throttle);

struct as_throttle {
    int64_t every_us;
    as_throttle_fn *tell;
    const void *context;
    uint64_t count;                                             /* not told so far */
    char remote[AS_THROTTLE_REMOTE_SIZE], error[AS_ERROR_SIZE]; /* of the last one, cut to fit */
    as_mono_time told;
    bool has_told;
};

#define AS_THROTTLE_INIT(every, fn, its_context)                                                   \
    ((struct as_throttle){.every_us = (every), .tell = (fn), .context = (its_context)})

/* One more; both texts are copied, "" where there is nothing to say. Tells, if it is time. */
void as_throttle_add(struct as_throttle *throttle, const char *remote, const char *error,
                     as_mono_time now);
/* Tells what is left, if it is time. */
void as_throttle_look(struct as_throttle *throttle, as_mono_time now);
/* Tells what is left, whatever the time: nothing comes after it for a while. */
void as_throttle_end(struct as_throttle *throttle, as_mono_time now);

/* Microseconds until what is left may be told; 0: now; -1: nothing is left. */
int64_t as_throttle_get_wait(const struct as_throttle *throttle, as_mono_time now);

#endif
