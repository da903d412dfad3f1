/*
 * What a decision's words mean, in sentences for people.
 */
#ifndef ALERTSCALER_CLI_EXPLAIN_WORDS_PRIVATE_H
#define ALERTSCALER_CLI_EXPLAIN_WORDS_PRIVATE_H

#include <alertscaler/core/decide.h>
#include <alertscaler/core/reason.h>

/* One sentence, with its full stop; static text. */
const char *explain_reason(enum as_reason reason);

/* What a gate does, as a short phrase; static text. */
const char *explain_gate(enum as_gate gate);

#endif
