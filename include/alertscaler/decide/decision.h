/*
 * The documents of a decision (docs/decision.md): what `alertscaler decide` reads and writes, and
 * what the action log keeps. Encoded in canonical form: sorted keys, no spaces, all defaults
 * written, times as short as possible.
 */
#ifndef ALERTSCALER_DECIDE_DECISION_H
#define ALERTSCALER_DECIDE_DECISION_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/decide.h>

struct as_row;
struct as_rows_schema;

struct as_decide_document {
    struct as_decide_input input;
    struct as_proposal_result *results; /* room for one result for each proposal */
    struct as_arena arena;              /* `results` and `input` borrow from it */
};

/*
 * 0; -EBADMSG with an error that names the place ("target.min: ..."). Strict: refuses fields that
 * are unknown, missing, of the wrong type or out of range, duplicate keys, and `min` above `max`.
 * Lists may come in any order and are sorted as struct as_decide_input requires.
 */
int as_decision_decode_input(const char *json, size_t size,
                             struct as_decide_document **document_out,
                             struct as_error *error) AS_MUST_USE;

/* The same of the member `input` of a decision's record: a line of the action log. The other
 * members are not read. */
int as_decision_decode_record(const char *line, size_t size,
                              struct as_decide_document **document_out,
                              struct as_error *error) AS_MUST_USE;
/* Decides what the document says; of a pool it makes the plan first, which may take 100 ms. */
void as_decide_document_decide(struct as_decide_document *document,
                               struct as_decision *decision_out);
struct as_decide_document *as_decide_document_free(struct as_decide_document *document);

/* Appends one line without its newline. Decoding it gives the same decision: values that are not
 * finite are left out, because they count as unavailable. */
void as_decision_encode_input(const struct as_decide_input *input, struct as_buf *out);
void as_decision_encode_output(const struct as_decide_input *input,
                               const struct as_proposal_result *results,
                               const struct as_decision *decision, struct as_buf *out);

/* Appends the JSON Schema of the input, as it is read, and of the answer, as it is written. */
void as_decision_encode_input_schema(struct as_buf *out);
void as_decision_encode_output_schema(struct as_buf *out);
/* For `describe` of a row type (rows.h) whose value is the input, or the answer. */
void as_decision_describe_input(struct as_rows_schema *schema, const struct as_row *row);
void as_decision_describe_output(struct as_rows_schema *schema, const struct as_row *row);

AS_DEFINE_CLEANUP(struct as_decide_document *, as_decide_document_free)

#endif
