/*
 * The generator of JSON Schemas from tables of rows. A row's type describes its value; this module
 * knows no type. Tables with a name are definitions, which are written once at the end.
 */
#include <alertscaler/doc/rows_schema.h>

#include <assert.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>

#define DRAFT "https://json-schema.org/draft/2020-12/schema"

static void schema_begin_object(struct as_rows_schema *schema, const char *key)
{
    as_json_write_key(&schema->json, key);
    as_json_begin_object(&schema->json);
}

static void schema_write_about(struct as_rows_schema *schema, const char *about)
{
    if (about)
        as_json_write_member(&schema->json, "description", about);
}

static const struct as_row *schema_get_end(const struct as_row *rows)
{
    while (rows->name)
        rows++;
    return rows;
}

/* ---- single values ---- */

void as_rows_schema_write_type(struct as_rows_schema *schema, const char *type)
{
    if (!schema->is_nullable) {
        as_json_write_member(&schema->json, "type", type);
        return;
    }
    as_json_write_key(&schema->json, "type");
    as_json_begin_array(&schema->json);
    as_json_write_string(&schema->json, type);
    as_json_write_string(&schema->json, "null");
    as_json_end_array(&schema->json);
}

void as_rows_schema_write_text(struct as_rows_schema *schema, const char *pattern)
{
    as_rows_schema_write_type(schema, "string");
    as_json_write_member(&schema->json, "pattern", pattern);
}

void as_rows_schema_write_integer(struct as_rows_schema *schema, int64_t min, int64_t max)
{
    as_rows_schema_write_type(schema, "integer");
    if (min > INT64_MIN)
        as_json_write_member_i64(&schema->json, "minimum", min);
    if (max < INT64_MAX)
        as_json_write_member_i64(&schema->json, "maximum", max);
}

void as_rows_schema_write_words(struct as_rows_schema *schema, const char *(*get_word)(unsigned),
                                unsigned first)
{
    const char *word;
    as_json_write_key(&schema->json, "enum");
    as_json_begin_array(&schema->json);
    for (unsigned i = first; (word = get_word(i)) != NULL; i++)
        as_json_write_string(&schema->json, word);
    if (schema->is_nullable)
        as_json_write_null(&schema->json);
    as_json_end_array(&schema->json);
}

void as_rows_schema_write_word(struct as_rows_schema *schema, const char *word)
{
    as_json_write_member(&schema->json, "const", word);
}

/* ---- lists, maps and forms ---- */

void as_rows_schema_begin_items(struct as_rows_schema *schema, int64_t min, int64_t max)
{
    as_rows_schema_write_type(schema, "array");
    if (min > 0)
        as_json_write_member_i64(&schema->json, "minItems", min);
    if (max > 0)
        as_json_write_member_i64(&schema->json, "maxItems", max);
    schema_begin_object(schema, "items");
    schema->is_nullable = false;
}

void as_rows_schema_end_items(struct as_rows_schema *schema)
{
    as_json_end_object(&schema->json);
}

void as_rows_schema_begin_values(struct as_rows_schema *schema)
{
    as_rows_schema_write_type(schema, "object");
    schema_begin_object(schema, "additionalProperties");
    schema->is_nullable = false;
}

void as_rows_schema_end_values(struct as_rows_schema *schema)
{
    as_json_end_object(&schema->json);
}

void as_rows_schema_begin_forms(struct as_rows_schema *schema)
{
    as_json_write_key(&schema->json, "anyOf");
    as_json_begin_array(&schema->json);
    if (!schema->is_nullable)
        return;
    schema->is_nullable = false;
    as_rows_schema_begin_form(schema);
    as_rows_schema_write_type(schema, "null");
    as_rows_schema_end_form(schema);
}

void as_rows_schema_begin_form(struct as_rows_schema *schema)
{
    as_json_begin_object(&schema->json);
}

void as_rows_schema_end_form(struct as_rows_schema *schema)
{
    as_json_end_object(&schema->json);
}

void as_rows_schema_end_forms(struct as_rows_schema *schema)
{
    as_json_end_array(&schema->json);
}

/* ---- objects ---- */

static bool schema_is_required(const struct as_rows_schema *schema, const struct as_row *row)
{
    if (row->is_via_optional || row->since > 0)
        return false;
    switch (row->presence) {
    case AS_ROW_OPTIONAL:
    case AS_ROW_FILLED: break;
    case AS_ROW_DEFAULT: return schema->use == AS_ROWS_SCHEMA_WRITTEN && row->has_at == 0;
    case AS_ROW_NULLABLE: return schema->use == AS_ROWS_SCHEMA_WRITTEN;
    case AS_ROW_REQUIRED: return true;
    }
    return false;
}

/* What OPTIONAL omits is not written as null. */
static bool schema_is_nullable(const struct as_rows_schema *schema, const struct as_row *row)
{
    if (row->presence == AS_ROW_NULLABLE || (row->presence == AS_ROW_REQUIRED && row->has_at > 0))
        return true;
    const bool is_omitted = schema->use == AS_ROWS_SCHEMA_WRITTEN &&
                            row->presence == AS_ROW_OPTIONAL && row->type->is_unset &&
                            !row->is_unset;
    return row->type->is_nullable && !is_omitted;
}

static void schema_write_value(struct as_rows_schema *schema, const struct as_row *row)
{
    const struct as_row_type *type = row->type;
    while (!type->describe && type->like)
        type = type->like;
    assert(type->describe);
    schema->is_nullable = schema_is_nullable(schema, row);
    type->describe(schema, row);
    schema->is_nullable = false;
}

static void schema_write_required(struct as_rows_schema *schema, const struct as_row *rows)
{
    bool has_required = false;
    for (const struct as_row *row = rows; row->name && !has_required; row++)
        has_required = schema_is_required(schema, row);
    if (!has_required)
        return;
    as_json_write_key(&schema->json, "required");
    as_json_begin_array(&schema->json);
    for (const struct as_row *row = rows; row->name; row++)
        if (schema_is_required(schema, row))
            as_json_write_string(&schema->json, row->name);
    as_json_end_array(&schema->json);
}

void as_rows_schema_write_object(struct as_rows_schema *schema, const struct as_row *rows)
{
    as_rows_schema_write_type(schema, "object");
    schema_begin_object(schema, "properties");
    for (const struct as_row *row = rows; row->name; row++) {
        schema_begin_object(schema, row->name);
        schema_write_about(schema, row->about);
        schema_write_value(schema, row);
        as_json_end_object(&schema->json);
    }
    as_json_end_object(&schema->json);
    schema_write_required(schema, rows);
    as_json_write_member_bool(&schema->json, "additionalProperties", false);
}

/* Remembers the table for the definitions. */
static void schema_define(struct as_rows_schema *schema, const struct as_row *rows)
{
    size_t i = 0;
    while (i < schema->definition_count && schema->definitions[i] != rows) {
        assert(strcmp(schema_get_end(schema->definitions[i])->definition,
                      schema_get_end(rows)->definition) != 0);
        i++;
    }
    if (i < schema->definition_count)
        return;
    assert(i < AS_ROWS_SCHEMA_DEFINITIONS);
    schema->definitions[schema->definition_count++] = rows;
}

void as_rows_schema_write_reference(struct as_rows_schema *schema, const struct as_row *rows)
{
    const bool is_nullable = schema->is_nullable;
    schema_define(schema, rows);
    if (is_nullable) {
        as_rows_schema_begin_forms(schema);
        as_rows_schema_begin_form(schema);
    }
    AS_CLEANUP(as_free_p)
    char *path = as_xasprintf("#/$defs/%s", schema_get_end(rows)->definition);
    as_json_write_member(&schema->json, "$ref", path);
    if (is_nullable) {
        as_rows_schema_end_form(schema);
        as_rows_schema_end_forms(schema);
    }
}

void as_rows_schema_write_rows(struct as_rows_schema *schema, const struct as_row *rows)
{
    if (schema_get_end(rows)->definition) {
        as_rows_schema_write_reference(schema, rows);
        return;
    }
    as_rows_schema_write_object(schema, rows);
}

/* ---- documents ---- */

void as_rows_schema_begin(struct as_rows_schema *schema, struct as_buf *out,
                          enum as_rows_schema_use use, const char *title, const char *about)
{
    schema->use = use;
    schema->is_nullable = false;
    schema->has_definitions = false;
    schema->definition_count = 0;
    as_json_init(&schema->json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&schema->json);
    as_json_write_member(&schema->json, "$schema", DRAFT);
    as_json_write_member(&schema->json, "title", title);
    schema_write_about(schema, about);
}

void as_rows_schema_write_definition(struct as_rows_schema *schema, const char *name,
                                     const char *about, const struct as_row *rows)
{
    if (!schema->has_definitions)
        schema_begin_object(schema, "$defs");
    schema->has_definitions = true;
    schema_begin_object(schema, name);
    schema_write_about(schema, about);
    as_rows_schema_write_object(schema, rows);
    as_json_end_object(&schema->json);
}

/* A definition may refer to further tables, which join the list. */
void as_rows_schema_end(struct as_rows_schema *schema)
{
    for (size_t i = 0; i < schema->definition_count; i++) {
        const struct as_row *rows = schema->definitions[i], *end = schema_get_end(rows);
        as_rows_schema_write_definition(schema, end->definition, end->about, rows);
    }
    if (schema->has_definitions)
        as_json_end_object(&schema->json);
    as_json_end_object(&schema->json);
}
