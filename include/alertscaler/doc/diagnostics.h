/*
 * Errors, warnings and hints about files that a user wrote: a list of places with messages. All
 * files are read to their end before anything is printed, so that every error is seen at once.
 *
 * A list keeps at most AS_DIAGNOSTICS_MAX entries and counts the others.
 */
#ifndef ALERTSCALER_DOC_DIAGNOSTICS_H
#define ALERTSCALER_DOC_DIAGNOSTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>

#define AS_DIAGNOSTICS_MAX 1000

enum as_severity {
    AS_SEVERITY_ERROR,
    AS_SEVERITY_WARNING,
    AS_SEVERITY_HINT, /* likely, not certain: never makes a run fail */
    AS_SEVERITY_COUNT
};
const char *as_severity_get_word(enum as_severity severity); /* "error", "warning", "hint" */

struct as_diagnostic {
    enum as_severity severity;
    const char *file;
    uint32_t line, column;   /* from 1, in characters; 0: the file as a whole */
    uint32_t end_column;     /* after the last character, on the same line */
    const char *message;     /* one line, without full stop */
    const char *hint;        /* NULL: none */
    const char *excerpt;     /* the line, or a part of a long one; NULL: not shown */
    uint32_t excerpt_column; /* of the excerpt's first character */
    uint32_t order;          /* set by as_diagnostics_add */
};

/* Each entry's data is copied and owned by the list. */
struct as_diagnostics {
    struct as_diagnostic *items;
    size_t count;
    size_t more; /* errors beyond AS_DIAGNOSTICS_MAX */
    size_t more_warnings;
    bool has_error;
    struct as_arena arena;
};

#define AS_DIAGNOSTICS_INIT                                                                        \
    ((struct as_diagnostics){.items = NULL, .count = 0, .more = 0, .has_error = false})

void as_diagnostics_deinit(struct as_diagnostics *diagnostics);
void as_diagnostics_add(struct as_diagnostics *diagnostics, const struct as_diagnostic *diagnostic);

/* By file, line and column; then in the order of adding. If one entry hides a line, all entries
 * hide it: the line may hold a secret. */
void as_diagnostics_sort(struct as_diagnostics *diagnostics);

/*
 * For people, one after the other:
 *
 *   rules/checkout.yaml:5:5: error: unknown key `mx`; did you mean `max`?
 *       5 |     mx: 20
 *         |     ^~
 *
 * and "... and 9000 more errors" (or warnings) if some were only counted.
 */
void as_diagnostics_print(const struct as_diagnostics *diagnostics, FILE *out);

#endif
