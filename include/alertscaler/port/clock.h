/*
 * Port: the two clocks, of the system or of the simulator.
 */
#ifndef ALERTSCALER_PORT_CLOCK_H
#define ALERTSCALER_PORT_CLOCK_H

#include <alertscaler/base/time.h>

struct as_clock {
    as_mono_time (*get_mono)(const struct as_clock *self); /* never goes backwards */
    as_wall_time (*get_wall)(const struct as_clock *self); /* may jump forwards or backwards */
};

#endif
