/*
 * The processor time of a benchmark's own thread: other programs on the machine do not count.
 */
#ifndef ALERTSCALER_TESTS_BENCH_CLOCK_H
#define ALERTSCALER_TESTS_BENCH_CLOCK_H

#include <time.h>

static inline double clock_get_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
