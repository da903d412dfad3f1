/*
 * The system's clocks. CLOCK_BOOTTIME includes the machine's sleep, so that cooldowns agree with
 * the wall clock.
 */
#include <alertscaler/port/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <alertscaler/base/str.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        abort(); /* impossible on Linux */
    return now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000;
}

static as_mono_time clock_get_mono(const struct as_clock *self)
{
    return (as_mono_time){read_clock(CLOCK_BOOTTIME)};
}

static as_wall_time clock_get_wall(const struct as_clock *self)
{
    return (as_wall_time){read_clock(CLOCK_REALTIME)};
}

const struct as_clock as_system_clock = {clock_get_mono, clock_get_wall};

void as_boot_id_read(char text_out[AS_BOOT_ID_SIZE])
{
    char *text;
    size_t size;
    (void)snprintf(text_out, AS_BOOT_ID_SIZE, "unknown");
    if (as_file_read("/proc/sys/kernel/random/boot_id", AS_BOOT_ID_SIZE, &text, &size) != 0)
        return;
    (void)snprintf(text_out, AS_BOOT_ID_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}
