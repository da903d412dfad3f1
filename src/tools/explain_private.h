/*
 * What the files of this room share: one explanation while it is told.
 *
 *   explain.c           the parts, and how it was decided
 *   explain_approval.c  what waits for a person
 *   explain_followed.c  who else had a say, and what followed
 *   explain_pool.c      pods, groups and nodes
 *   record_text.c       members of records
 *   safe_text.c         texts from outside, on a terminal
 */
#ifndef ALERTSCALER_SRC_TOOLS_EXPLAIN_PRIVATE_H
#define ALERTSCALER_SRC_TOOLS_EXPLAIN_PRIVATE_H

#include <alertscaler/decide/decide.h>
#include <alertscaler/tools/explain.h>

struct explained {
    const struct as_explanation *told;
    const struct as_decide_input *input;   /* NULL: of an unknown version */
    const struct as_decide_input *decided; /* the same of a pool, with its plan; or NULL */
};

/* Prints `text` safely between two texts of ours. */
void explain_put(FILE *out, const char *before, const char *text, const char *after);
void explain_put_time(FILE *out, as_wall_time time);
/* The sentence of the reason code that is this member; "": it is none. */
const char *explain_get_meaning(const json_t *object, const char *key);

/* Of a proposal of the input, and its entry in the output. */
void explain_print_approval(const json_t *proposal, const json_t *result, const char *unit,
                            FILE *out);
void explain_print_commands(const struct explained *explained, FILE *out);
void explain_print_pool_decision(const struct explained *explained, FILE *out);
void explain_print_what_followed(const struct explained *explained, FILE *out);

#endif
