/*
 * The writer of JSON Schemas from tables: one definition for each map, under the table's name. It
 * names no table: the tables refer to its descriptions.
 *
 * YAML's scalars are texts to the parser, so that where it wants a text, a schema must also allow
 * the numbers and words that other readers see in `version: 2` or `zone: on`.
 */
#include "schema_writer.h"

#include <assert.h>
#include <string.h>

#include <alertscaler/doc/json_writer.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/rules/tables.h>

#define TABLES_MAX 96

#define CONTROLS "\\u0000-\\u001f\\u007f"
#define LINE     "^[^" CONTROLS "]+$"
#define NAME     "^[a-zA-Z0-9_.-]{1,200}$"
#define URL      "^https?://[^/?#@ " CONTROLS "]+([/?#][^ " CONTROLS "]*)?$"
#define DURATION                                                                                   \
    "^(0|(?=[0-9])([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$"
#define SIZE     "^(0|[1-9][0-9]*)([kKMGT]?B|[KMGT]iB)?$"
#define PERCENT  "^(0|[1-9][0-9]*)(\\.[0-9]{1,3})?%$"
#define TIME     "^[0-9]{4}-[0-9]{2}-[0-9]{2}T"
#define QUANTITY "^\\+?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+|[KMGTPE]i|[numkMGTPE])?$"

struct schema_writer {
    struct as_json_writer json;
    const struct schema *tables[TABLES_MAX]; /* that a definition refers to */
    size_t table_count;
};

static void begin_object(struct schema_writer *to, const char *key)
{
    as_json_write_key(&to->json, key);
    as_json_begin_object(&to->json);
}

static void end_object(struct schema_writer *to)
{
    as_json_end_object(&to->json);
}

static void begin_list(struct schema_writer *to, const char *key)
{
    as_json_write_key(&to->json, key);
    as_json_begin_array(&to->json);
}

static void end_list(struct schema_writer *to)
{
    as_json_end_array(&to->json);
}

/* Appends "#/$defs/<name>", and remembers the table for the definitions. */
static void write_reference(struct schema_writer *to, const struct schema *table)
{
    size_t i = 0;
    while (i < to->table_count && to->tables[i] != table)
        i++;
    if (i == to->table_count) {
        assert(i < TABLES_MAX);
        to->tables[to->table_count++] = table;
    }
    as_json_write_key(&to->json, "$ref");
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(256);
    as_buf_append_str(&path, "#/$defs/");
    as_buf_append_str(&path, table->name);
    as_json_write_string_size(&to->json, path.data, path.size);
}

/* Types that YAML's readers may see in a text. */
static void write_text(struct schema_writer *to, const char *pattern)
{
    begin_list(to, "type");
    as_json_write_string(&to->json, "string");
    as_json_write_string(&to->json, "number");
    as_json_write_string(&to->json, "boolean");
    end_list(to);
    if (pattern)
        as_json_write_member(&to->json, "pattern", pattern);
    else
        as_json_write_member_i64(&to->json, "minLength", 1);
}

static void write_pattern(struct schema_writer *to, const char *pattern, const char *other_type)
{
    if (other_type) {
        begin_list(to, "type");
        as_json_write_string(&to->json, "string");
        as_json_write_string(&to->json, other_type);
        end_list(to);
    } else {
        as_json_write_member(&to->json, "type", "string");
    }
    as_json_write_member(&to->json, "pattern", pattern);
}

static void write_range(struct schema_writer *to, int64_t min, int64_t max)
{
    as_json_write_member_i64(&to->json, "minimum", min);
    as_json_write_member_i64(&to->json, "maximum", max);
}

/* "true" as a word may be written without quotes. */
static void write_word(struct schema_writer *to, const char *word)
{
    as_json_write_string(&to->json, word);
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        as_json_write_bool(&to->json, word[0] == 't');
}

static void write_words(struct schema_writer *to, const char *const *words)
{
    begin_list(to, "enum");
    for (; *words; words++)
        write_word(to, *words);
    end_list(to);
}

static void write_reasons(struct schema_writer *to)
{
    begin_list(to, "enum");
    for (int i = 0; i < AS_REASON_COUNT; i++)
        as_json_write_string(&to->json, as_reason_get_word((enum as_reason)i));
    end_list(to);
}

static void write_count(struct schema_writer *to, const struct schema_field *field,
                        const char *min_key, const char *max_key)
{
    if (field->when_empty)
        as_json_write_member_i64(&to->json, min_key, 1);
    as_json_write_member_i64(&to->json, max_key, field->max ? field->max : SCHEMA_COUNT_MAX);
}

static void write_value(struct schema_writer *to, const struct schema_field *field);

static void write_list(struct schema_writer *to, const struct schema_field *field,
                       const struct schema_field *element)
{
    as_json_write_member(&to->json, "type", "array");
    begin_object(to, "items");
    write_value(to, element);
    end_object(to);
    write_count(to, field, "minItems", "maxItems");
}

/* A map with keys of one form. */
static void write_table(struct schema_writer *to, const struct schema_field *field,
                        const struct schema_field *element, const struct schema_field *keys)
{
    as_json_write_member(&to->json, "type", "object");
    if (keys->key) {
        begin_object(to, "propertyNames");
        as_json_write_member(&to->json, "pattern",
                             keys->type == SCHEMA_NAME ? NAME : keys->pattern);
        end_object(to);
    }
    begin_object(to, "additionalProperties");
    write_value(to, element);
    end_object(to);
    write_count(to, field, "minProperties", "maxProperties");
}

static void write_forms(struct schema_writer *to, const struct schema_field *forms)
{
    if (!forms[1].key) {
        write_value(to, forms);
        return;
    }
    begin_list(to, "anyOf");
    for (; forms->key; forms++) {
        as_json_begin_object(&to->json);
        write_value(to, forms);
        as_json_end_object(&to->json);
    }
    end_list(to);
}

static void write_number(struct schema_writer *to, const struct schema_field *field)
{
    as_json_write_member(&to->json, "type", "number");
    if (!field->min && !field->max)
        return;
    as_json_write_key(&to->json, "minimum");
    as_json_write_double(&to->json, (double)field->min / 1000);
    if (!field->max)
        return;
    as_json_write_key(&to->json, "maximum");
    as_json_write_double(&to->json, (double)field->max / 1000);
}

/* Members of the value's schema. */
static void write_value(struct schema_writer *to, const struct schema_field *field)
{
    static const struct schema_field line = SCHEMA_FORM(STRING), url = SCHEMA_FORM(URL),
                                     name = SCHEMA_FORM(NAME);
    const struct schema_field map = SCHEMA_FORM(MAP, .map = field->map);
    const struct schema_field word = SCHEMA_FORM(WORD, .words = field->words);
    const struct schema_field element = SCHEMA_FORM(SCALAR, .pattern = field->pattern);
    switch (field->type) {
    case SCHEMA_STRING:
    case SCHEMA_PATH: write_text(to, LINE); break;
    case SCHEMA_TEXT:
    case SCHEMA_QUERY: write_text(to, NULL); break;
    case SCHEMA_NAME: write_text(to, NAME); break;
    case SCHEMA_SCALAR: write_text(to, field->pattern); break;
    case SCHEMA_URL: write_pattern(to, URL, NULL); break;
    case SCHEMA_PERCENT: write_pattern(to, PERCENT, NULL); break;
    case SCHEMA_TIME: write_pattern(to, TIME, NULL); break;
    case SCHEMA_QUANTITY:
        write_pattern(to, QUANTITY, "number");
        as_json_write_member_i64(&to->json, "minimum", 0);
        break;
    case SCHEMA_DURATION:
        write_pattern(to, DURATION, "integer");
        write_range(to, 0, 0); /* of numbers: without a unit only 0 is a duration */
        break;
    case SCHEMA_SIZE:
        write_pattern(to, SIZE, "integer");
        write_range(to, field->min, field->max);
        break;
    case SCHEMA_INT:
        if (field->is_count) {
            const struct schema_field counts[] = {
                SCHEMA_FORM(INT, .min = field->min, .max = field->max),
                SCHEMA_FORM(SCALAR, .pattern = "^[0-9]+([.][0-9]+)?([numkMGTPE]|[KMGTPE]i)$"),
                {0}};
            write_forms(to, counts);
            break;
        }
        as_json_write_member(&to->json, "type", "integer");
        if (field->min || field->max)
            write_range(to, field->min, field->max);
        break;
    case SCHEMA_NUMBER: write_number(to, field); break;
    case SCHEMA_BOOL: as_json_write_member(&to->json, "type", "boolean"); break;
    case SCHEMA_WORD: write_words(to, field->words); break;
    case SCHEMA_REASON: write_reasons(to); break;
    case SCHEMA_WORDS: write_list(to, field, &word); break;
    case SCHEMA_STRINGS:
    case SCHEMA_PATHS: write_list(to, field, field->pattern ? &element : &line); break;
    case SCHEMA_URLS: write_list(to, field, &url); break;
    case SCHEMA_MAP: write_reference(to, field->map); break;
    case SCHEMA_MAPS: write_list(to, field, &map); break;
    case SCHEMA_NAMED: write_table(to, field, &map, &name); break;
    case SCHEMA_TABLE: write_table(to, field, &field->forms[0], &field->forms[1]); break;
    case SCHEMA_CUSTOM: write_forms(to, field->forms); break;
    }
}

/* As the type that a reader of YAML sees. */
static void write_default(struct schema_writer *to, const struct schema_field *field)
{
    const bool is_bool = field->type == SCHEMA_BOOL, is_number = field->type == SCHEMA_INT;
    as_json_write_key(&to->json, "default");
    if (is_bool || is_number)
        as_json_write_raw(&to->json, field->fallback, strlen(field->fallback));
    else
        as_json_write_string(&to->json, field->fallback);
}

static void write_property(struct schema_writer *to, const struct schema_field *field)
{
    begin_object(to, field->key);
    if (field->about)
        as_json_write_member(&to->json, "description", field->about);
    write_value(to, field);
    if (field->fallback)
        write_default(to, field);
    end_object(to);
}

static void write_required(struct schema_writer *to, const char *key)
{
    as_json_begin_object(&to->json);
    begin_list(to, "required");
    as_json_write_string(&to->json, key);
    end_list(to);
    as_json_end_object(&to->json);
}

static void write_choice(struct schema_writer *to, const struct schema_choice *choice)
{
    as_json_begin_object(&to->json);
    begin_list(to, "oneOf");
    for (const char *const *key = choice->keys; *key; key++)
        write_required(to, *key);
    if (choice->is_optional) {
        as_json_begin_object(&to->json);
        begin_object(to, "not");
        begin_list(to, "anyOf");
        for (const char *const *key = choice->keys; *key; key++)
            write_required(to, *key);
        end_list(to);
        end_object(to);
        as_json_end_object(&to->json);
    }
    end_list(to);
    as_json_end_object(&to->json);
}

static void write_properties(struct schema_writer *to, const struct schema *table)
{
    for (; table; table = table->base) {
        for (const struct schema_field *field = table->fields; field->key; field++)
            if (field->type != SCHEMA_CUSTOM || field->forms)
                write_property(to, field);
        if (table->describe_keys)
            table->describe_keys(to);
    }
}

static void write_needed(struct schema_writer *to, const struct schema *table)
{
    begin_list(to, "required");
    for (const struct schema_field *field = table->fields; field->key; field++)
        if (field->is_required)
            as_json_write_string(&to->json, field->key);
    end_list(to);
}

/* Members of the map's schema. */
static void write_map(struct schema_writer *to, const struct schema *table)
{
    as_json_write_member(&to->json, "type", "object");
    begin_object(to, "properties");
    write_properties(to, table);
    end_object(to);
    write_needed(to, table);
    if (table->choices) {
        begin_list(to, "allOf");
        for (const struct schema_choice *choice = table->choices; choice->keys; choice++)
            write_choice(to, choice);
        end_list(to);
    }
    if (table->describe_map)
        table->describe_map(to);
    else
        as_json_write_member_bool(&to->json, "additionalProperties", false);
}

/* A key may have the same name in groups of several types. */
static bool is_first(const struct as_provider_kind *kind, const char *key)
{
    for (size_t i = 0; as_provider_kinds[i] != kind; i++)
        for (const struct as_provider_key *row = as_provider_kinds[i]->group_keys; row->key; row++)
            if (strcmp(row->key, key) == 0)
                return false;
    return true;
}

/* A rule file does not say of which type its providers are: keys of all types. */
static void write_group_keys(struct schema_writer *to)
{
    for (size_t i = 0; as_provider_kinds[i]; i++)
        for (const struct as_provider_key *row = as_provider_kinds[i]->group_keys; row->key; row++)
            if (is_first(as_provider_kinds[i], row->key))
                write_property(to, &(struct schema_field){.key = row->key,
                                                          .type = SCHEMA_STRING,
                                                          .about = row->about});
}

static void write_address(struct schema_writer *to, const struct as_target_kind *kind)
{
    begin_object(to, kind->word);
    as_json_write_member(&to->json, "type", "object");
    begin_object(to, "properties");
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++)
        if (row->key)
            write_property(to, &(struct schema_field){
                                   .key = row->key,
                                   .type = row->is_number ? SCHEMA_INT
                                           : row->is_flag ? SCHEMA_BOOL
                                                          : SCHEMA_STRING,
                                   .max = row->is_number ? AS_SIZE_MAX : 0,
                                   .fallback = row->fallback,
                                   .about = row->about,
                               });
        else
            write_group_keys(to);
    end_object(to);
    begin_list(to, "required");
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++)
        if (row->is_required)
            as_json_write_string(&to->json, row->key);
    end_list(to);
    as_json_write_member_bool(&to->json, "additionalProperties", false);
    end_object(to);
}

void json_schema_describe_addresses(struct schema_writer *to)
{
    for (size_t i = 0; as_target_kinds[i]; i++)
        if (as_target_kinds[i] != &as_target_kind_pool) /* has a row */
            write_address(to, as_target_kinds[i]);
}

void json_schema_describe_address_choice(struct schema_writer *to)
{
    begin_list(to, "oneOf");
    for (size_t i = 0; as_target_kinds[i]; i++)
        write_required(to, as_target_kinds[i]->word);
    end_list(to);
    as_json_write_member_bool(&to->json, "additionalProperties", false);
}

void json_schema_describe_provider_type(struct schema_writer *to)
{
    const char *words[PROVIDER_TYPES_MAX + 1];
    provider_kind_list(words);
    begin_object(to, "type");
    write_words(to, words);
    end_object(to);
}

/* The condition: "if the type is this one". */
static void write_if_type(struct schema_writer *to, const char *type)
{
    begin_object(to, "if");
    begin_object(to, "properties");
    begin_object(to, "type");
    as_json_write_member(&to->json, "const", type);
    end_object(to);
    end_object(to);
    end_object(to);
}

static void write_account(struct schema_writer *to, const struct as_provider_key *keys,
                          bool has_login)
{
    begin_object(to, "properties");
    for (const char *const *key = provider_usual_keys; *key; key++) {
        begin_object(to, *key);
        if (strcmp(*key, "http_config") == 0 && !has_login) {
            begin_object(to, "properties");
            for (const char *const *login = provider_login_keys; *login; login++) {
                as_json_write_key(&to->json, *login);
                as_json_write_bool(&to->json, false);
            }
            end_object(to);
        }
        end_object(to);
    }
    for (const struct as_provider_key *row = keys; row->key; row++) {
        const struct schema_field value = {.key = row->key,
                                           .type = row->is_url ? SCHEMA_URL : SCHEMA_STRING};
        write_property(to, &value);
    }
    end_object(to);
    begin_list(to, "required");
    for (const struct as_provider_key *row = keys; row->key; row++)
        if (row->is_required)
            as_json_write_string(&to->json, row->key);
    end_list(to);
    as_json_write_member_bool(&to->json, "additionalProperties", false);
}

void json_schema_describe_providers(struct schema_writer *to)
{
    const char *words[PROVIDER_TYPES_MAX + 1];
    provider_kind_list(words);
    begin_list(to, "allOf");
    for (size_t i = 0; words[i]; i++) {
        const struct as_provider_kind *kind = as_provider_kind_find(words[i]);
        as_json_begin_object(&to->json);
        write_if_type(to, words[i]);
        begin_object(to, "then");
        write_account(to, kind->account_keys, kind->has_http_login);
        end_object(to);
        as_json_end_object(&to->json);
    }
    end_list(to);
}

void json_schema_describe_resources(struct schema_writer *to)
{
    static const struct schema_field amount = {.key = "(/|^hugepages-)", .type = SCHEMA_QUANTITY};
    begin_object(to, "patternProperties");
    write_property(to, &amount);
    end_object(to);
    as_json_write_member_bool(&to->json, "additionalProperties", false);
}

void schema_write_document(const struct schema *root, struct as_buf *out)
{
    struct schema_writer to = {.table_count = 0};
    as_json_init(&to.json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&to.json);
    as_json_write_member(&to.json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    as_json_write_member(&to.json, "title", root->name);
    write_map(&to, root);
    begin_object(&to, "$defs");
    for (size_t i = 0; i < to.table_count; i++) { /* grows meanwhile */
        begin_object(&to, to.tables[i]->name);
        write_map(&to, to.tables[i]);
        end_object(&to);
    }
    end_object(&to);
    as_json_end_object(&to.json);
}
