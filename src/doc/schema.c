/*
 * Reads maps by their tables. All errors of a map are reported. An invalid value leaves the default
 * in its place, which is harmless: nothing is used after an error.
 */
#include <alertscaler/doc/schema.h>

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>

#define CANDIDATE_MAX 40 /* bytes of a key that is suggested or looked up */

bool loader_is_full(const struct loader *loader)
{
    return loader->diagnostics->count == AS_DIAGNOSTICS_MAX;
}

void loader_report(struct loader *loader, const struct as_yaml_node *node, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    as_yaml_report(loader->tree, node, AS_YAML_SHOW, loader->diagnostics, "%s", message);
}

struct suggestion suggestion_start(const char *word)
{
    size_t size = strlen(word);
    unsigned limit = size <= 3 ? 1 : size <= 6 ? 2 : 3;
    return (struct suggestion){.word = word, .distance = limit + 1};
}

void suggestion_offer(struct suggestion *suggestion, const char *candidate)
{
    size_t a = strlen(suggestion->word), b = strlen(candidate);
    size_t difference = a > b ? a - b : b - a;
    if (difference >= suggestion->distance || a > CANDIDATE_MAX || b > CANDIDATE_MAX)
        return;
    unsigned distance = as_str_distance(suggestion->word, candidate);
    if (distance < suggestion->distance && distance < b) {
        suggestion->distance = distance;
        suggestion->best = candidate;
    }
}

const char *suggestion_print(const struct suggestion *suggestion, char text_out[SUGGESTION_SIZE])
{
    text_out[0] = '\0';
    if (suggestion->best)
        snprintf(text_out, SUGGESTION_SIZE, "; did you mean `%s`?", suggestion->best);
    return text_out;
}

/* Finds the field, and the start of its struct. */
static const struct schema_field *find_field(const struct schema *schema, const char *key,
                                             void **object_io)
{
    for (const struct schema_field *field = schema->fields; field->key; field++) {
        if (strcmp(field->key, key) == 0)
            return field;
    }
    if (!schema->base)
        return NULL;
    *object_io = (char *)*object_io + schema->base_offset;
    return find_field(schema->base, key, object_io);
}

static void offer_fields(const struct schema *schema, struct suggestion *suggestion)
{
    for (; schema; schema = schema->base) {
        for (const struct schema_field *field = schema->fields; field->key; field++)
            suggestion_offer(suggestion, field->key);
        if (schema->offer_other)
            schema->offer_other(suggestion);
    }
}

static void report_unknown(struct loader *loader, const struct schema *schema,
                           const struct as_yaml_node *key)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    for (const struct schema_refusal *row = schema->refusals; row && row->key; row++) {
        if (strcmp(row->key, key->text) == 0) {
            as_yaml_report(loader->tree, key, row->is_secret ? AS_YAML_HIDE : AS_YAML_SHOW,
                           loader->diagnostics, "%s", row->message);
            return;
        }
    }
    struct suggestion suggestion = suggestion_start(key->text);
    if (!loader_is_full(loader))
        offer_fields(schema, &suggestion);
    loader_report(loader, key, "unknown key %s%s", as_yaml_describe(key, found),
                  suggestion_print(&suggestion, hint));
}

void schema_fill_defaults(struct loader *loader, const struct schema *schema, void *object)
{
    for (const struct schema_field *field = schema->fields; field->key; field++) {
        if (field->fallback) {
            const struct as_yaml_node value = {
                .kind = AS_YAML_SCALAR,
                .is_plain = true,
                .text = field->fallback,
                .size = strlen(field->fallback),
            };
            bool is_done = schema_parse_value(loader, field, &value, object);
            assert(is_done);
            (void)is_done;
        }
        if (field->type == SCHEMA_MAP)
            schema_fill_defaults(loader, field->map, (char *)object + field->offset);
    }
    if (schema->base)
        schema_fill_defaults(loader, schema->base, (char *)object + schema->base_offset);
    if (schema->init)
        schema->init(loader, object);
}

static void check_required(struct loader *loader, const struct schema *schema,
                           const struct as_yaml_node *node, const struct as_yaml_node *at)
{
    for (; schema; schema = schema->base) {
        for (const struct schema_field *field = schema->fields; field->key; field++) {
            if (field->is_required && !as_yaml_find(node, field->key))
                loader_report(loader, at, "key `%s` is missing", field->key);
        }
    }
}

void schema_parse(struct loader *loader, const struct schema *schema,
                  const struct as_yaml_node *node, const struct as_yaml_node *at, void *object)
{
    if (!schema_is_kind(loader, node, AS_YAML_MAP))
        return;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct as_yaml_pair *pair = &node->pairs[i];
        void *target = object;
        const struct schema_field *field = find_field(schema, pair->key->text, &target);
        if (field)
            schema_parse_value(loader, field, pair->value, target);
        else if (!schema->other || !schema->other(loader, node, pair, object))
            report_unknown(loader, schema, pair->key);
    }
    check_required(loader, schema, node, at);
    for (const struct schema_choice *choice = schema->choices; choice && choice->keys; choice++)
        (void)schema_check_choice(loader, node, at, choice);
    if (schema->finish)
        schema->finish(loader, node, at, object);
}

/* Allocates the array of a list's or map's elements, filled with defaults. */
static char *make_elements(struct loader *loader, const struct schema_field *field, uint32_t count,
                           void *object)
{
    char *elements = as_arena_alloc(loader->arena, count, field->map->size);
    memcpy((char *)object + field->offset, &elements, sizeof(elements));
    size_t size = count;
    memcpy((char *)object + field->count_offset, &size, sizeof(size));
    for (uint32_t i = 0; i < count; i++)
        schema_fill_defaults(loader, field->map, elements + i * field->map->size);
    return elements;
}

bool schema_check_count(struct loader *loader, const struct schema_field *field,
                        const struct as_yaml_node *node)
{
    int64_t max = field->max ? field->max : SCHEMA_COUNT_MAX;
    if (node->count == 0 && field->when_empty)
        loader_report(loader, node, "%s", field->when_empty);
    if (node->count > max)
        loader_report(loader, node, "at most %" PRId64 " are possible here", max);
    return node->count <= max;
}

static bool parse_maps(struct loader *loader, const struct schema_field *field,
                       const struct as_yaml_node *list, void *object)
{
    if (!schema_is_kind(loader, list, AS_YAML_LIST) || !schema_check_count(loader, field, list))
        return false;
    char *elements = make_elements(loader, field, list->count, object);
    for (uint32_t i = 0; i < list->count; i++)
        schema_parse(loader, field->map, list->items[i], list->items[i],
                     elements + i * field->map->size);
    return true;
}

static bool parse_named(struct loader *loader, const struct schema_field *field,
                        const struct as_yaml_node *map, void *object)
{
    if (!schema_is_kind(loader, map, AS_YAML_MAP) || !schema_check_count(loader, field, map))
        return false;
    char *elements = make_elements(loader, field, map->count, object);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_node *key = map->pairs[i].key;
        char *element = elements + i * field->map->size;
        *(const char **)(void *)element = as_arena_strdup(loader->arena, key->text);
        if (!schema_is_name(key->text))
            loader_report(loader, key, SCHEMA_EXPECTED_NAME);
        schema_parse(loader, field->map, map->pairs[i].value, key, element);
    }
    return true;
}

bool schema_parse_value(struct loader *loader, const struct schema_field *field,
                        const struct as_yaml_node *value, void *object)
{
    switch (field->type) {
    case SCHEMA_STRING:
    case SCHEMA_TEXT:
    case SCHEMA_QUERY:
    case SCHEMA_NAME:
    case SCHEMA_PATH:
    case SCHEMA_URL:
    case SCHEMA_BOOL:
    case SCHEMA_INT:
    case SCHEMA_DURATION:
    case SCHEMA_SIZE:
    case SCHEMA_PERCENT:
    case SCHEMA_WORD: return schema_parse_scalar(loader, field, value, object);
    case SCHEMA_STRINGS:
    case SCHEMA_PATHS:
    case SCHEMA_URLS: return schema_parse_strings(loader, field, value, object);
    case SCHEMA_MAP:
        schema_parse(loader, field->map, value, value, (char *)object + field->offset);
        return true;
    case SCHEMA_MAPS: return parse_maps(loader, field, value, object);
    case SCHEMA_NAMED: return parse_named(loader, field, value, object);
    case SCHEMA_CUSTOM: field->parse(loader, value, object); return true;
    case SCHEMA_SCALAR:
    case SCHEMA_NUMBER:
    case SCHEMA_QUANTITY:
    case SCHEMA_TIME:
    case SCHEMA_REASON:
    case SCHEMA_WORDS:
    case SCHEMA_TABLE: break;
    }
    return false;
}

const struct as_yaml_node *schema_find_key(const struct as_yaml_node *map, const char *key)
{
    for (uint32_t i = 0; map->kind == AS_YAML_MAP && i < map->count; i++) {
        if (strcmp(map->pairs[i].key->text, key) == 0)
            return map->pairs[i].key;
    }
    return NULL;
}

/* "`a`, `b` and `c`" */
static const char *print_keys(const char *const *keys, char *text, size_t size)
{
    int used = 0;
    for (size_t i = 0; keys[i] && used >= 0 && (size_t)used < size; i++) {
        const char *separator = i == 0 ? "" : keys[i + 1] ? ", " : " and ";
        used += snprintf(text + used, size - (size_t)used, "%s`%s`", separator, keys[i]);
    }
    return text;
}

bool schema_check_choice(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, const struct schema_choice *choice)
{
    char list[256];
    unsigned given = 0;
    for (const char *const *key = choice->keys; *key; key++) {
        const struct as_yaml_node *found = schema_find_key(node, *key);
        if (found && ++given == 2)
            loader_report(loader, found, "only one of %s may be given",
                          print_keys(choice->keys, list, sizeof(list)));
    }
    if (given == 0 && !choice->is_optional)
        loader_report(loader, at, "one of %s is needed",
                      print_keys(choice->keys, list, sizeof(list)));
    return given == 1 || (given == 0 && choice->is_optional);
}

bool schema_has_one_of(const struct as_yaml_node *node, const char *const *keys)
{
    unsigned given = 0;
    for (; *keys; keys++)
        given += schema_find_key(node, *keys) != NULL;
    return given == 1;
}
