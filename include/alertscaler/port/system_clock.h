/*
 * The system's clocks, and the id of the present boot.
 */
#ifndef ALERTSCALER_PORT_SYSTEM_CLOCK_H
#define ALERTSCALER_PORT_SYSTEM_CLOCK_H

#include <alertscaler/port/clock.h>

extern const struct as_clock as_system_clock;

#define AS_BOOT_ID_SIZE 64
void as_boot_id_read(char text_out[AS_BOOT_ID_SIZE]); /* "unknown" if unavailable */

#endif
