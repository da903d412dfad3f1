/*
 * Explains one decision in full: what, why, gate by gate, and its effects; on a terminal and on a
 * page.
 */
#ifndef ALERTSCALER_TOOLS_EXPLAIN_H
#define ALERTSCALER_TOOLS_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/time.h>
#include <alertscaler/decide/decide.h>

struct as_explanation { /* records of the action log; all borrowed */
    json_t *decision;
    const char *line; /* the decision's record as it was read, of which `decision` is the tree */
    size_t line_size;
    json_t *actions;  /* what followed, in order */
    json_t *commands; /* operators' orders on the target: the last before, and all since; NULL: none
                         possible */
    json_t *incidents; /* the known openings of its incidents */
    json_t *pool;      /* the decision of its pool that it carries out; NULL: not found, or none */
    json_t *assignments; /* of a pool: the decisions of its groups that carry it out, and what
                       became of these, in order; NULL: none possible */
    as_maybe_time at;    /* the moment asked for */
    as_maybe_time until; /* time of the target's next decision */
    long long repeats;   /* later decisions equal to it, which have no record of their own */
};

void as_explain_print(const struct as_explanation *explanation, FILE *out);

/* Calls `visit` for each part that has something to say, in order. `title` is "" for the beginning.
 * `text` has lines; those of a part with a title begin with two blanks, and with four where they
 * belong to the line before. Control characters from outside are \xNN. */
typedef void as_explain_part_fn(void *context, const char *title, const char *text);
void as_explain_visit_parts(const struct as_explanation *explanation, as_explain_part_fn *visit,
                            void *context);

/* The part AS_EXPLAIN_GATES as rows: the gate's word, the size behind it (-1: not known) and what
 * it did, or "". */
#define AS_EXPLAIN_GATES "Gates"
typedef void as_explain_gate_fn(void *context, const char *gate, int32_t size, const char *text);
void as_explain_visit_gates(const struct as_explanation *explanation, as_explain_gate_fn *visit,
                            void *context);

/* A rule's action as in a record ({"scale_up": {"by": "50%"}}): "scale_up by 50%". */
void as_explain_print_action(json_t *action, FILE *out);

/* How the proposal with this index became its size: "4 plus ceil(50 % of 4) is 6". False: nothing
 * is written, as it has no short formula or no size. */
bool as_explain_put_arithmetic(FILE *out, const struct as_decide_input *input, size_t i,
                               const struct as_proposal_result *result);
/* A change of `size` by an amount of `of`: "9 less ceil(50 % of 5)". */
void as_explain_put_change(FILE *out, int32_t size, bool up, const struct as_amount *amount,
                           int64_t of, bool rounds_up);

/* A new value: the records and the sentences. */
json_t *as_explain_make_json(const struct as_explanation *explanation);

#endif
