/*
 * Reading a cloud's answer. JSON and XML become the same kind of tree: an element without child
 * elements is a string, an element with children is an object, elements of the same name form an
 * array; attributes and namespaces are left out. A DTD is refused, and so all entity expansion.
 *
 * This is no reader like those of wire/json, which a provider may not include: clouds write one
 * value as a number, as digits or not at all, in JSON or XML. So what is missing or odd is a
 * default or the provider's decision, and an error names the operation (as_cloud_op_fail), not a
 * first fault.
 *
 * Paths are member names with dots between them: "sku.capacity".
 */
#ifndef ALERTSCALER_LOGIN_CLOUD_ANSWER_H
#define ALERTSCALER_LOGIN_CLOUD_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/login/cloud_op.h>

#define ANSWER_DEPTH_MAX    64
#define ANSWER_ELEMENTS_MAX 400000 /* of XML */

/* The body's document, owned by the op until its next request. NULL after failing the op: a
 * good status with a body that cannot be read. */
const json_t *answer_json(struct as_cloud_op *op) AS_MUST_USE;
const json_t *answer_xml(struct as_cloud_op *op) AS_MUST_USE;

/* The same for an error's body: NULL if it cannot be read; never fails the op. */
const json_t *answer_peek_json(struct as_cloud_op *op) AS_MUST_USE;
const json_t *answer_peek_xml(struct as_cloud_op *op) AS_MUST_USE;

const json_t *answer_find(const json_t *document, const char *path) AS_MUST_USE; /* NULL: absent */
/* "" if not a string; borrowed. Numbers have no text. */
const char *answer_text(const json_t *document, const char *path) AS_MUST_USE;
bool answer_is_true(const json_t *document, const char *path) AS_MUST_USE;       /* true, "true" */
as_maybe_time answer_time(const json_t *document, const char *path) AS_MUST_USE; /* RFC 3339 */

/* A size, as number or digits; `absent` if it is missing or invalid. */
int32_t answer_size(const json_t *document, const char *path, int32_t absent) AS_MUST_USE;
/* The same if it must be present: false after failing the op. */
bool answer_take_size(struct as_cloud_op *op, const json_t *document, const char *path,
                      int32_t *size_out) AS_MUST_USE;

/* Fails the op: `path` is missing in a good answer. Returns NULL. */
const json_t *answer_misses(struct as_cloud_op *op, const char *path);

/* Overwrites every text in a document that held secrets; NULL is allowed. */
void answer_wipe(json_t *document);

/* Elements at a path: of an array, or a single value. */
size_t answer_count(const json_t *document, const char *path) AS_MUST_USE;
const json_t *answer_at(const json_t *document, const char *path, size_t index) AS_MUST_USE;

/* A table of words, which ends with a NULL: what each stands for, an enum of the table's own. */
struct answer_word {
    const char *glob;
    unsigned value;
};
/* The value of the first row that matches the whole text; `absent` if none does. */
unsigned answer_judge(const struct answer_word *rows, const char *text,
                      unsigned absent) AS_MUST_USE;
/* The same with rows that are parts of the message, ignoring case. */
unsigned answer_judge_message(const struct answer_word *rows, const char *message,
                              unsigned absent) AS_MUST_USE;

/* Whether the message contains one of the words (NULL at the end), ignoring case. */
bool answer_has_word(const char *message, const char *const *words) AS_MUST_USE;

#endif
