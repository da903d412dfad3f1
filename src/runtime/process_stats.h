/*
 * The kernel's counts for this process, as all Prometheus clients show them.
 */
#ifndef ALERTSCALER_SRC_RUNTIME_PROCESS_STATS_H
#define ALERTSCALER_SRC_RUNTIME_PROCESS_STATS_H

#include <alertscaler/base/attr.h>

struct process_stats {
    double cpu_seconds, start_time_seconds;
    double resident_bytes, virtual_bytes;
    double open_fds, max_fds;
};

/* 0, or a negative errno if /proc is unreadable. */
int process_stats_read(struct process_stats *stats_out) AS_MUST_USE;

#endif
