/*
 * Absences of this replica: times whose records are in no file of its action log, because another
 * replica led. Gaps in the numbers of the records show them; `start` records name who led.
 */
#ifndef ALERTSCALER_LOG_LOG_ABSENCES_H
#define ALERTSCALER_LOG_LOG_ABSENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/time.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/port/leader.h>

#define AS_LOG_ABSENCES_MAX 10

struct as_log_absence {
    char replica[AS_LEADER_REPLICA_SIZE]; /* who led; "": not known, perhaps none other */
    as_maybe_time from;
    as_wall_time to;
};

struct as_log_absences {
    struct as_log_absence items[AS_LOG_ABSENCES_MAX]; /* the newest first */
    size_t count;
    bool has_more;
};

struct as_log_absences_query {
    const char *instance;       /* of this replica, as in its records */
    as_maybe_time since, until; /* absences that overlap it */
    int64_t after, last;        /* of records behind `after`, up to `last`; 0: of all */
    as_mono_time deadline;
};

/* In the thread of the history. None, if the files are not all indexed, or the index cannot be
 * read. */
void as_log_absences_find(const struct as_log_history_view *view,
                          const struct as_log_absences_query *query,
                          struct as_log_absences *absences_out);

/* Appends "alertscaler-1 led from 2026-11-20T02:10:00Z to 2026-11-20T04:00:00Z; its records are in
 * its own action log", without a period, on one line of visible characters. */
void as_log_absence_print(const struct as_log_absence *absence, struct as_buf *out);

#endif
