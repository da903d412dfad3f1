/*
 * Fills the history from the end of the replica's own action log, as it was when the process
 * started: its file, and the one rotated last. It is read in small pieces between other events, so
 * that nothing waits for it. Lines that are torn, altered or too long are skipped.
 */
#ifndef ALERTSCALER_UI_HISTORY_FILL_H
#define ALERTSCALER_UI_HISTORY_FILL_H

#include <alertscaler/base/attr.h>

#include <alertscaler/ui/history.h>

struct event_base;
struct as_history_fill;

#define AS_HISTORY_FILL_MAX ((uint64_t)64 * 1024 * 1024) /* bytes that are read, of both files */

/* Opens the files at once, and reads in later turns of the loop. `path` NULL or missing: there is
 * nothing to read. Both `history` and `base` are borrowed until it is freed. */
struct as_history_fill *as_history_fill_new(struct as_history *history, struct event_base *base,
                                            const char *path, uint64_t bytes_max) AS_MUST_USE;
struct as_history_fill *as_history_fill_free(struct as_history_fill *fill);
bool as_history_fill_is_done(const struct as_history_fill *fill);

#endif
