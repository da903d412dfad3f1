/*
 * JSON Schemas (draft 2020-12) of the files that users write, for editors and for programs that
 * write such files. They are made from the tables that the parser reads by, so they cannot differ
 * from it in keys, words, ranges or required keys.
 *
 * A valid file is always valid by its schema. The converse does not hold: docs/editors.md lists
 * what a schema does not express, and `check` does.
 */
#ifndef ALERTSCALER_RULES_JSON_SCHEMA_H
#define ALERTSCALER_RULES_JSON_SCHEMA_H

#include <alertscaler/base/buf.h>

#define AS_JSON_SCHEMA_MAX ((size_t)1 << 20) /* bytes of a schema; more is a bug */

/* The kinds of files: config, rules, tests, web; ends with NULL. */
extern const char *const as_json_schema_words[];

/* Appends the schema of a kind, an index into the words: compact JSON in one line. */
void as_json_schema_append(size_t kind, struct as_buf *out);

#endif
