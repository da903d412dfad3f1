/*
 * The documents of a decision (docs/decision.md): what `alertscaler decide` reads and writes, and
 * what the action log keeps. Encoded in canonical form: sorted keys, no spaces, every default
 * written out, times as short as they can be.
 */
#ifndef ALERTSCALER_WIRE_DECISION_H
#define ALERTSCALER_WIRE_DECISION_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/decide.h>

struct json_t;

struct as_decide_document {
    struct as_decide_input input;
    struct as_proposal_result *results; /* room for one for each proposal */
    /* what they borrow from */
    struct json_t *root;
    struct as_arena arena;
};

/*
 * 0; -EBADMSG with an error that names the place ("target.min: ..."). Strict: fields that are
 * unknown, missing, of the wrong type or out of range, keys given twice, `min` above `max`. Lists
 * come in any order and are put into that of struct as_decide_input.
 */
int as_decision_decode_input(const char *json, size_t size,
                             struct as_decide_document **document_out,
                             struct as_error *error) AS_MUST_USE;

/* The same from a value that was parsed already: a reference to it is kept. */
int as_decision_decode_input_value(struct json_t *value, struct as_decide_document **document_out,
                                   struct as_error *error) AS_MUST_USE;
struct as_decide_document *as_decide_document_free(struct as_decide_document *document);

/* Appends one line without its end. What is decoded from it is decided in the same way: values that
 * are not finite are left out, as they are not available. */
void as_decision_encode_input(const struct as_decide_input *input, struct as_buf *out);
void as_decision_encode_output(const struct as_decide_input *input,
                               const struct as_proposal_result *results,
                               const struct as_decision *decision, struct as_buf *out);

AS_DEFINE_CLEANUP(struct as_decide_document *, as_decide_document_free)

#endif
