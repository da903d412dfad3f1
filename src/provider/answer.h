/*
 * Reading what a provider answered. JSON and XML become the same tree: an element without elements
 * in it is a string, one with elements an object, elements of one name side by side an array;
 * attributes and namespaces are left out. A DTD is refused, and with it everything that grows.
 *
 * Paths are member names with dots between them: "sku.capacity".
 */
#ifndef ALERTSCALER_SRC_PROVIDER_ANSWER_H
#define ALERTSCALER_SRC_PROVIDER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/provider/talk.h>

#define ANSWER_DEPTH_MAX    64
#define ANSWER_ELEMENTS_MAX 400000 /* of XML */

/* The body's document, the talk's until it asks again; NULL after failing the talk, as what is
 * said in a good status cannot be understood. */
const json_t *answer_json(struct as_talk *talk) AS_MUST_USE;
const json_t *answer_xml(struct as_talk *talk) AS_MUST_USE;

/* The same of an answer that is an error: NULL where there is none to be had, and nothing fails. */
const json_t *answer_peek_json(struct as_talk *talk) AS_MUST_USE;
const json_t *answer_peek_xml(struct as_talk *talk) AS_MUST_USE;

const json_t *answer_find(const json_t *document, const char *path) AS_MUST_USE; /* NULL: none */
/* "" where there is no string; borrowed. Numbers have no text. */
const char *answer_text(const json_t *document, const char *path) AS_MUST_USE;
bool answer_is_true(const json_t *document, const char *path) AS_MUST_USE;       /* true, "true" */
as_maybe_time answer_time(const json_t *document, const char *path) AS_MUST_USE; /* RFC 3339 */

/* A size, as number or digits: `absent` where there is none, or no such. */
int32_t answer_size(const json_t *document, const char *path, int32_t absent) AS_MUST_USE;
/* The same where there has to be one: false after failing the talk. */
bool answer_take_size(struct as_talk *talk, const json_t *document, const char *path,
                      int32_t *size_out) AS_MUST_USE;

/* Fails the talk: the answer is good, but `path` is not in it. NULL. */
const json_t *answer_misses(struct as_talk *talk, const char *path);

/* Overwrites every text in a document that held secrets; NULL is allowed. */
void answer_wipe(json_t *document);

/* Elements at a path: of an array, or the one thing that stands there. */
size_t answer_count(const json_t *document, const char *path) AS_MUST_USE;
const json_t *answer_at(const json_t *document, const char *path, size_t index) AS_MUST_USE;

/* Whether one of the words (a NULL at the end) stands in the message, in whatever case. */
bool answer_has_word(const char *message, const char *const *words) AS_MUST_USE;

#endif
