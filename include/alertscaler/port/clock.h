/*
 * Port: time, as the program sees it: the two clocks, of the system or of the simulator, and the
 * timers of the event loop. A module that needs the time gets one of these structs.
 */
#ifndef ALERTSCALER_PORT_CLOCK_H
#define ALERTSCALER_PORT_CLOCK_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

struct as_timer;

struct as_clock {
    as_mono_time (*get_mono)(const struct as_clock *self); /* never goes backwards */
    as_wall_time (*get_wall)(const struct as_clock *self); /* may jump forwards or backwards */
};

/* The system's clocks, and the id of the present boot. */
extern const struct as_clock as_system_clock;

#define AS_BOOT_ID_SIZE 64
void as_boot_id_read(char text_out[AS_BOOT_ID_SIZE]); /* "unknown" if unavailable */

/* The event loop, as an adapter sees it: a call in a later turn, at once or after a delay. The real
 * loop is http/loop.h; tests have their own. */
typedef void as_timer_fn(void *context);

struct as_loop {
    /* Calls `expired` once, in a later turn of the loop, at least `delay_us` from now, unless
     * cancelled first. */
    struct as_timer *(*start_timer)(struct as_loop *self, int64_t delay_us, as_timer_fn *expired,
                                    void *context)AS_MUST_USE;
    void (*cancel_timer)(struct as_loop *self, struct as_timer *timer); /* NULL is allowed */
};

#endif
