/*
 * Prints one decision in full: what, why, gate by gate, and its effects.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_EXPLAIN_PRINT_H
#define ALERTSCALER_SRC_CLI_LOG_EXPLAIN_PRINT_H

#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/time.h>

struct explanation { /* records of the action log; all borrowed */
    json_t *decision;
    json_t *actions;  /* what followed, in order */
    json_t *commands; /* operators' orders on the target: the last before, and all since; NULL: none
                         possible */
    json_t *incidents; /* the known openings of its incidents */
    json_t *pool;      /* the decision of its pool that it carries out; NULL: not found, or none */
    json_t *shares;    /* of a pool: the decisions of its groups that carry it out, and what became
                          of these, in order; NULL: none possible */
    as_maybe_time at;  /* the moment asked for */
    as_maybe_time until; /* time of the target's next decision */
    long long repeats;   /* later decisions equal to it, which have no record of their own */
};

void explain_print_text(const struct explanation *explanation, FILE *out);

/* A new value: the records and the sentences. */
json_t *explain_make_json(const struct explanation *explanation);

#endif
