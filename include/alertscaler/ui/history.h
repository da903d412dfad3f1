/*
 * What happened to the targets' sizes lately: sizes, actions, alerts, locks of the last day, in
 * bounded memory. It serves pictures only: nothing is decided by it, and it is not stored. A start
 * fills it from the action log.
 *
 * A size is known from a decision or action on until the next one, or until an interruption: while
 * alertscaler does not run or does not lead, nobody looks.
 *
 * When the memory is used up, the target with the most events loses the older half of them; if all
 * have few, the targets that were not heard of for longest are forgotten.
 */
#ifndef ALERTSCALER_UI_HISTORY_H
#define ALERTSCALER_UI_HISTORY_H

#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/ui/chart.h>

struct as_history;
struct as_history_fill;
struct event_base;

#define AS_HISTORY_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define AS_HISTORY_SPAN_US   AS_US_PER_DAY
#define AS_HISTORY_MARKS_MAX 200 /* actions of one chart: the latest */

struct as_history *as_history_new(size_t bytes_max) AS_MUST_USE;
struct as_history *as_history_free(struct as_history *history);
size_t as_history_get_bytes(const struct as_history *history);

/* Takes what is of interest of an effect of the engine; ignores others. */
void as_history_on_effect(struct as_history *history, const struct as_effect *effect,
                          as_wall_time now);
/* The same from a record of the action log, of any version; ignores what it cannot read. A record
 * may be older than what is known already. `previous`: the time of the record before it. */
void as_history_add_record(struct as_history *history, const json_t *record, as_wall_time at,
                           as_wall_time previous);
/* What is known has a gap: forgets all. */
void as_history_clear(struct as_history *history);
/* From `at` on no size is known, until the next decision or action. */
void as_history_interrupt(struct as_history *history, as_wall_time at);

struct as_history_action {     /* borrowed for the call */
    const char *target, *rule; /* rule "": none */
    as_wall_time at;
    int32_t from, to;
    enum as_reason outcome;
};

struct as_history_chart {
    struct as_timeline line;
    struct as_timeline_band alerts[AS_TIMELINE_BANDS_MAX];
    size_t alert_count;
    struct as_timeline_band locks[2];
    size_t lock_count;
    struct as_chart_mark *marks; /* ascending by time */
    size_t mark_count;
};
/* Fills it for a target's id; empty if nothing is known of it. */
void as_history_draw(const struct as_history *history, const char *target, as_wall_time from,
                     as_wall_time to, struct as_history_chart *chart_out);
/* Puts in front what another source knows of the time before the first known size: sizes, and
 * actions in the order of time. */
void as_history_chart_extend(struct as_history_chart *chart, const struct as_timeline *older,
                             const struct as_history_action *actions, size_t action_count);
void as_history_chart_deinit(struct as_history_chart *chart);
/* The size alone. Free it with as_timeline_deinit. */
void as_history_trace(const struct as_history *history, const char *target, as_wall_time from,
                      as_wall_time to, struct as_timeline *line_out);

typedef void as_history_action_fn(void *context, const struct as_history_action *action);
/* All known actions, those of one target in the order of time. */
void as_history_visit_actions(const struct as_history *history, as_history_action_fn *visit,
                              void *context);

/*
 * Fills the history from the end of the replica's own action log, as it was when the process
 * started: its file, and the one rotated last. It is read in small pieces between other events, so
 * that nothing waits for it. Lines that are torn, altered or too long are skipped.
 */

#define AS_HISTORY_FILL_MAX ((uint64_t)64 * 1024 * 1024) /* bytes that are read, of both files */

/* Opens the files at once, and reads in later turns of the loop. `path` NULL or missing: there is
 * nothing to read. Both `history` and `base` are borrowed until it is freed. */
struct as_history_fill *as_history_fill_new(struct as_history *history, struct event_base *base,
                                            const char *path, uint64_t bytes_max) AS_MUST_USE;
struct as_history_fill *as_history_fill_free(struct as_history_fill *fill);
bool as_history_fill_is_done(const struct as_history_fill *fill);

#endif
