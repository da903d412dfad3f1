/*
 * JSON Schemas (draft 2020-12) of the documents that tables of rows describe (rows.h).
 *
 *   struct as_rows_schema schema;
 *   as_rows_schema_begin(&schema, &buf, AS_ROWS_SCHEMA_READ, "A size", "What `fit` reads.");
 *   as_rows_schema_write_object(&schema, size_rows);
 *   as_rows_schema_end(&schema);
 *
 * A schema has the members of the tables, their types, words and limits; it has no condition
 * between members. A valid document is always valid by its schema, with one exception: a reader
 * treats null as an absent member in places where the schema has no null.
 */
#ifndef ALERTSCALER_DOC_ROWS_SCHEMA_H
#define ALERTSCALER_DOC_ROWS_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/doc/rows.h>

#define AS_ROWS_SCHEMA_MAX         ((size_t)1 << 20) /* bytes of a schema; more is a bug */
#define AS_ROWS_SCHEMA_DEFINITIONS 64                /* of a schema; more is a bug, asserted */

/* Which members a schema requires. */
enum as_rows_schema_use {
    AS_ROWS_SCHEMA_READ,    /* members without which reading fails */
    AS_ROWS_SCHEMA_WRITTEN, /* members that every version writes */
};

struct as_rows_schema {
    struct as_json_writer json;
    enum as_rows_schema_use use;
    bool is_nullable;     /* the value that is being described may be null */
    bool has_definitions; /* they have begun */
    const struct as_row *definitions[AS_ROWS_SCHEMA_DEFINITIONS]; /* that a $ref names */
    size_t definition_count;
};

/* Between the two, the caller writes members of the root's schema. */
void as_rows_schema_begin(struct as_rows_schema *schema, struct as_buf *out,
                          enum as_rows_schema_use use, const char *title, const char *about);
/* Writes a definition that no table names, behind the members of the root. */
void as_rows_schema_write_definition(struct as_rows_schema *schema, const char *name,
                                     const char *about, const struct as_row *rows);
/* Writes the definitions. */
void as_rows_schema_end(struct as_rows_schema *schema);

/*
 * Members of the schema of one value, also for `describe` of a type.
 */

void as_rows_schema_write_object(struct as_rows_schema *schema, const struct as_row *rows);
/* The table is a definition. */
void as_rows_schema_write_reference(struct as_rows_schema *schema, const struct as_row *rows);
/* An object of the table, as a reference if it is a definition. */
void as_rows_schema_write_rows(struct as_rows_schema *schema, const struct as_row *rows);
void as_rows_schema_write_type(struct as_rows_schema *schema, const char *type);
void as_rows_schema_write_text(struct as_rows_schema *schema, const char *pattern);
/* INT64_MIN and INT64_MAX: no limit. */
void as_rows_schema_write_integer(struct as_rows_schema *schema, int64_t min, int64_t max);
void as_rows_schema_write_words(struct as_rows_schema *schema, const char *(*get_word)(unsigned),
                                unsigned first);
void as_rows_schema_write_word(struct as_rows_schema *schema, const char *word);
/* A list: between the two, members of the schema of an item. `max` 0: no limit. */
void as_rows_schema_begin_items(struct as_rows_schema *schema, int64_t min, int64_t max);
void as_rows_schema_end_items(struct as_rows_schema *schema);
/* An object with members of any name: between the two, members of the schema of their values. */
void as_rows_schema_begin_values(struct as_rows_schema *schema);
void as_rows_schema_end_values(struct as_rows_schema *schema);
/* One of several forms; each begins with as_rows_schema_begin_form. */
void as_rows_schema_begin_forms(struct as_rows_schema *schema);
void as_rows_schema_begin_form(struct as_rows_schema *schema);
void as_rows_schema_end_form(struct as_rows_schema *schema);
void as_rows_schema_end_forms(struct as_rows_schema *schema);

#endif
