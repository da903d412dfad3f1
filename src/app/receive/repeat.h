/*
 * Which record of a repeat may be small: one that names the last whole record of the same body,
 * where that record says everything else.
 */
#ifndef ALERTSCALER_SRC_APP_RECEIVE_REPEAT_H
#define ALERTSCALER_SRC_APP_RECEIVE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/app/shell.h>
#include <alertscaler/base/random.h>
#include <alertscaler/core/record.h>

struct repeat_log { /* what a shell has appended */
    struct as_random random;
    uint64_t epoch; /* never 0; another one with each shell and each rule set */
    uint64_t records, bytes;
};

/* `seed`: of the shell's engine. */
void repeat_log_init(struct repeat_log *log, uint64_t seed);

/* From a reload's record on: names of rules may be others, and no record before it is the base of
 * one behind. */
void repeat_log_begin_epoch(struct repeat_log *log);

/* What a repeat's record would say, with a digest of what its whole record says of the request's
 * sender and of what became of each alert. `same_as` stays NULL. */
struct as_repeat_record repeat_sum_up(const struct repeat_log *log,
                                      const struct as_notification_record *record,
                                      uint64_t *said_out);

/* Whether the base says it all, and is near enough; in which file is the caller's to see. */
bool repeat_is_near(const struct repeat_log *log, const struct as_record_base *base, uint64_t said,
                    as_wall_time now);

/* Of a whole record that is appended next, in that file of the log; 0: the file is not known. */
void repeat_set_base(const struct repeat_log *log, struct as_record_base *base,
                     const struct as_notification *notification, uint64_t said, as_wall_time now,
                     uint64_t file);

#endif
