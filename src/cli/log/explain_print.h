/*
 * One decision told in full: what, why, gate by gate, and what came of it.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_EXPLAIN_PRINT_H
#define ALERTSCALER_SRC_CLI_LOG_EXPLAIN_PRINT_H

#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/time.h>

struct explanation { /* records of the action log; all borrowed */
    json_t *decision;
    json_t *actions;   /* a list: what followed, in order */
    json_t *commands;  /* a list: what operators ordered on the target: the last before, and since;
                          NULL: nobody could */
    json_t *incidents; /* a list: the openings of the incidents behind it, as far as known */
    as_maybe_time at;  /* the moment asked for */
    as_maybe_time until; /* when the target's next decision came */
    long long repeats;   /* how often it was equal to later ones that have no record of their own */
};

void explain_print_text(const struct explanation *explanation, FILE *out);

/* A new value: the records and the sentences. */
json_t *explain_make_json(const struct explanation *explanation);

#endif
