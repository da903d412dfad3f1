/*
 * Port: the event loop, as an adapter sees it: a call in a later turn, at once or after a delay.
 * The real loop is http/loop.h; tests have their own.
 */
#ifndef ALERTSCALER_PORT_LOOP_H
#define ALERTSCALER_PORT_LOOP_H

#include <stdint.h>

#include <alertscaler/base/attr.h>

struct as_timer;
typedef void as_timer_fn(void *context);

struct as_loop {
    /* Calls `expired` once, in a later turn of the loop, at least `delay_us` from now, unless
     * cancelled first. */
    struct as_timer *(*start_timer)(struct as_loop *self, int64_t delay_us, as_timer_fn *expired,
                                    void *context)AS_MUST_USE;
    void (*cancel_timer)(struct as_loop *self, struct as_timer *timer); /* NULL is allowed */
};

#endif
