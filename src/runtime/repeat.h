/*
 * Decides whether a repeat's record may be small: it then names the last whole record of the same
 * body, which says the rest.
 */
#ifndef ALERTSCALER_SRC_RUNTIME_REPEAT_H
#define ALERTSCALER_SRC_RUNTIME_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/random.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/runtime/shell.h>

struct repeat_log { /* records that a shell has appended */
    struct as_random random;
    uint64_t epoch; /* never 0; new for each shell and rule set */
    uint64_t records, bytes;
};

/* `seed`: the engine's. */
void repeat_log_init(struct repeat_log *log, uint64_t seed);

/* Call at a reload's record: rules' names may change, so no later record may refer to an earlier
 * one. */
void repeat_log_begin_epoch(struct repeat_log *log);

/* The content of a small record, and a digest of the rest in a whole record: the credential and the
 * outcome of each alert. `same_as` stays NULL. */
struct as_repeat_record repeat_sum_up(const struct repeat_log *log,
                                      const struct as_notification_record *record,
                                      uint64_t *said_out);

/* Whether the base has the same digest and is near enough. The caller compares the file. */
bool repeat_is_near(const struct repeat_log *log, const struct as_record_base *base, uint64_t said,
                    as_wall_time now);

/* Makes the whole record that is appended next the base; `file` of the log, 0: unknown. */
void repeat_set_base(const struct repeat_log *log, struct as_record_base *base,
                     const struct as_notification *notification, uint64_t said, as_wall_time now,
                     uint64_t file);

#endif
