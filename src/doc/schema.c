/*
 * The reader of maps by their tables. All errors of a map are reported. An invalid value leaves the
 * default in its place, which is harmless: nothing is used after an error.
 */
#include <alertscaler/doc/schema.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

/*
 * Single values: strict; each error says what was expected and what was found.
 */

bool schema_is_kind(struct loader *loader, const struct as_yaml_node *node, enum as_yaml_kind kind)
{
    static const char *const words[] = {
        [AS_YAML_SCALAR] = "a single value",
        [AS_YAML_LIST] = "a list",
        [AS_YAML_MAP] = "a map",
    };
    char found[AS_YAML_FOUND_SIZE];
    if (node->kind == kind && !(kind == AS_YAML_SCALAR && as_yaml_is_null(node)))
        return true;
    if (node == as_yaml_get_root(loader->tree) && node->kind == AS_YAML_SCALAR)
        as_yaml_report(loader->tree, node, AS_YAML_HIDE, loader->diagnostics,
                       "expected %s, found a single text (not shown, as it may be a secret): is it "
                       "this file that is meant?",
                       words[kind]);
    else
        loader_report(loader, node, "expected %s, found %s", words[kind],
                      as_yaml_describe(node, found));
    return false;
}

bool schema_is_map(struct loader *loader, const struct as_yaml_node *node, const char *example)
{
    char found[AS_YAML_FOUND_SIZE];
    if (node->kind == AS_YAML_MAP || !example || node == as_yaml_get_root(loader->tree))
        return schema_is_kind(loader, node, AS_YAML_MAP);
    loader_report(loader, node, "expected a map like `%s`, found %s", example,
                  as_yaml_describe(node, found));
    return false;
}

#define EXAMPLE_WORD_MAX 63

/* A word that the map or list has, as an example of a text; NULL: the first value is no text. */
static const char *find_word(const struct as_yaml_node *node)
{
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:";
    if (node->kind == AS_YAML_SCALAR || node->count == 0)
        return NULL;
    const struct as_yaml_node *value =
        node->kind == AS_YAML_MAP ? node->pairs[0].value : node->items[0];
    const bool is_word = value->kind == AS_YAML_SCALAR && value->size > 0 &&
                         value->size <= EXAMPLE_WORD_MAX &&
                         strspn(value->text, characters) == value->size;
    return is_word ? value->text : NULL;
}

static bool schema_is_text(struct loader *loader, const struct as_yaml_node *node)
{
    char found[AS_YAML_FOUND_SIZE];
    if (node->kind == AS_YAML_SCALAR && node->size > 0 && !as_yaml_is_null(node))
        return true;
    const char *word = find_word(node);
    loader_report(loader, node, "expected text, found %s%s%s%s",
                  node->kind == AS_YAML_SCALAR && node->size == 0 && !node->is_plain
                      ? "an empty text"
                      : as_yaml_describe(node, found),
                  word ? ": write `" : "", word ? word : "", word ? "`" : "");
    return false;
}

static bool has_controls(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            return true;
    }
    return false;
}

static bool is_line(struct loader *loader, const struct as_yaml_node *node)
{
    if (!schema_is_text(loader, node))
        return false;
    if (has_controls(node->text)) {
        loader_report(loader, node, "expected one line of text without control characters");
        return false;
    }
    return true;
}

bool schema_parse_string(struct loader *loader, const struct as_yaml_node *node, const char **out)
{
    if (!is_line(loader, node))
        return false;
    *out = as_arena_strdup(loader->arena, node->text);
    return true;
}

bool schema_is_name(const char *text)
{
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return size > 0 && size <= SCHEMA_NAME_MAX && text[size] == '\0';
}

/* A name; or in an object's tree names with slashes between them. */
static bool is_name_here(const struct loader *loader, const char *text)
{
    const char *slash;
    for (; loader->tree && as_yaml_is_rewritten(loader->tree) && (slash = strchr(text, '/'));
         text = slash + 1) {
        AS_CLEANUP(as_free_p) char *part = as_xstrndup(text, (size_t)(slash - text));
        if (!schema_is_name(part))
            return false;
    }
    return schema_is_name(text);
}

static bool parse_path(struct loader *loader, const struct as_yaml_node *node, const char **out)
{
    if (!is_line(loader, node))
        return false;
    bool is_relative = node->text[0] != '/' && loader->folder[0];
    AS_CLEANUP(as_free_p)
    char *joined = is_relative ? as_xasprintf("%s/%s", loader->folder, node->text) : NULL;
    *out = as_arena_strdup(loader->arena, joined ? joined : node->text);
    return true;
}

static bool schema_check_url(struct loader *loader, const struct as_yaml_node *node)
{
    if (!is_line(loader, node))
        return false;
    const char *rest = strstr(node->text, "://");
    bool is_http =
        as_str_starts_with(node->text, "http://") || as_str_starts_with(node->text, "https://");
    size_t host = is_http ? strcspn(rest + 3, "/?#") : 0;
    if (host == 0 || strchr(node->text, ' ')) {
        char found[AS_YAML_FOUND_SIZE];
        loader_report(loader, node, "expected a URL like http://host:9090, found %s",
                      as_yaml_describe(node, found));
        return false;
    }
    if (memchr(rest + 3, '@', host)) {
        as_yaml_report(loader->tree, node, AS_YAML_HIDE, loader->diagnostics,
                       "credentials do not stand in a URL: use `basic_auth` in `http_config`");
        return false;
    }
    return true;
}

bool schema_parse_i64(struct loader *loader, const struct as_yaml_node *node, int64_t min,
                      int64_t max, int64_t *out)
{
    char found[AS_YAML_FOUND_SIZE], range[64] = "";
    int64_t number = 0;
    if (max == 0 && min == 0) {
        min = INT64_MIN;
        max = INT64_MAX;
    } else {
        snprintf(range, sizeof(range), " from %" PRId64 " to %" PRId64, min, max);
    }
    if (node->kind == AS_YAML_SCALAR && node->is_plain &&
        as_number_parse_i64(node->text, node->size, &number) == 0 && number >= min &&
        number <= max) {
        *out = number;
        return true;
    }
    loader_report(loader, node, "expected an integer%s, found %s", range,
                  as_yaml_describe(node, found));
    return false;
}

/* Without a suffix an integer counts units, and a quantity would be taken for one. */
bool schema_is_quantity(const struct as_yaml_node *node)
{
    double number = 0;
    return node->kind == AS_YAML_SCALAR && node->size > 1 &&
           strchr("numkMGTPEi", node->text[node->size - 1]) &&
           as_quantity_parse(node->text, node->size, &number) == 0;
}

/* The number of units; -1: no multiple, which is reported with its neighbours. */
static int64_t count_units(struct loader *loader, const struct as_yaml_node *node)
{
    const struct as_unit *unit = &loader->unit;
    char found[AS_YAML_FOUND_SIZE], below[AS_SIZE_TEXT_SIZE], above[AS_SIZE_TEXT_SIZE];
    int64_t down = 0, up = 0;
    int32_t count = 0;
    if (as_unit_count(unit, node->text, node->size, &count) != 0 ||
        as_quantity_parse_scaled(node->text, node->size, unit->scale, false, &down) != 0 ||
        as_quantity_parse_scaled(node->text, node->size, unit->scale, true, &up) != 0) {
        loader_report(loader, node, "%s is too large: at most %d units of %s are possible",
                      as_yaml_describe(node, found), INT32_MAX, unit->text);
        return -1;
    }
    if (down == up && down % unit->amount == 0)
        return count;
    if (count > 0)
        loader_report(loader, node,
                      "expected a multiple of `unit`, which is %s: the nearest to %s are %s and %s",
                      unit->text, as_yaml_describe(node, found),
                      as_unit_print_size(unit->text, count - 1, below),
                      as_unit_print_size(unit->text, count, above));
    return -1;
}

bool schema_parse_count(struct loader *loader, const struct as_yaml_node *node, int64_t min,
                        int64_t max, int64_t *out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (!schema_is_quantity(node))
        return schema_parse_i64(loader, node, min, max, out);
    if (as_unit_is_none(&loader->unit)) {
        loader_report(loader, node,
                      "expected an integer, found %s: a quantity is for a target with a `unit`",
                      as_yaml_describe(node, found));
        return false;
    }
    const int64_t count = count_units(loader, node);
    if (count < 0)
        return false;
    if (count < min || count > max) {
        loader_report(loader, node,
                      "expected %" PRId64 " to %" PRId64
                      " units of %s, found %s, which is %" PRId64,
                      min, max, loader->unit.text, as_yaml_describe(node, found), count);
        return false;
    }
    *out = count;
    return true;
}

bool schema_parse_number(struct loader *loader, const struct as_yaml_node *node, double *out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (node->kind == AS_YAML_SCALAR && node->is_plain &&
        as_number_parse_double(node->text, node->size, out) == 0)
        return true;
    loader_report(loader, node, "expected a number, found %s", as_yaml_describe(node, found));
    return false;
}

static bool parse_bool(struct loader *loader, const struct as_yaml_node *node, bool *out)
{
    char found[AS_YAML_FOUND_SIZE];
    bool is_true = node->kind == AS_YAML_SCALAR && strcmp(node->text, "true") == 0;
    bool is_false = node->kind == AS_YAML_SCALAR && strcmp(node->text, "false") == 0;
    if (node->kind == AS_YAML_SCALAR && node->is_plain && (is_true || is_false)) {
        *out = is_true;
        return true;
    }
    loader_report(loader, node, "expected true or false, found %s", as_yaml_describe(node, found));
    return false;
}

static bool parse_duration(struct loader *loader, const struct as_yaml_node *node,
                           const struct schema_field *field, int64_t *out)
{
    struct as_error error = AS_ERROR_INIT;
    int64_t us = 0;
    if (!is_line(loader, node))
        return false;
    if (as_duration_parse(node->text, &us, &error) < 0) {
        loader_report(loader, node, "%s", error.text);
        return false;
    }
    bool is_ranged = field->min != 0 || field->max != 0;
    if (is_ranged && (us < field->min || (field->max != 0 && us > field->max))) {
        char min[AS_DURATION_SIZE], max[AS_DURATION_SIZE], found[AS_YAML_FOUND_SIZE];
        as_duration_print(field->min, min);
        as_duration_print(field->max, max);
        loader_report(loader, node, "expected a duration of at least %s%s%s, found %s", min,
                      field->max ? " and at most " : "", field->max ? max : "",
                      as_yaml_describe(node, found));
        return false;
    }
    *out = us;
    return true;
}

static bool parse_size(struct loader *loader, const struct as_yaml_node *node,
                       const struct schema_field *field, uint64_t *out)
{
    char found[AS_YAML_FOUND_SIZE];
    uint64_t bytes = 0;
    int status = node->kind == AS_YAML_SCALAR ? as_number_parse_size(node->text, &bytes) : -EINVAL;
    bool is_in_range = bytes >= (uint64_t)field->min && bytes <= (uint64_t)field->max;
    if (status == 0 && is_in_range) {
        *out = bytes;
        return true;
    }
    if (status == -EINVAL)
        loader_report(loader, node, "expected a size like 512KiB, 16MiB or 1GB, found %s",
                      as_yaml_describe(node, found));
    else
        loader_report(loader, node,
                      "expected a size from %" PRId64 " to %" PRId64 " bytes, found %s", field->min,
                      field->max, as_yaml_describe(node, found));
    return false;
}

bool schema_parse_percent(struct loader *loader, const struct as_yaml_node *node, int64_t min,
                          int64_t max, int64_t *milli_percent_out)
{
    char found[AS_YAML_FOUND_SIZE];
    int64_t milli = 0;
    int status =
        node->kind == AS_YAML_SCALAR ? as_number_parse_percent(node->text, &milli) : -EINVAL;
    if (status == 0 && milli >= min && milli <= max) {
        *milli_percent_out = milli;
        return true;
    }
    if (status == -EINVAL)
        loader_report(loader, node, "expected a percentage like 50%% or 12.5%%, found %s",
                      as_yaml_describe(node, found));
    else
        loader_report(loader, node, "expected a percentage from %.10g%% to %.10g%%, found %s",
                      (double)min / 1000, (double)max / 1000, as_yaml_describe(node, found));
    return false;
}

static bool schema_parse_word(struct loader *loader, const struct as_yaml_node *node,
                              const char *const *words, unsigned *out)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE], list[256] = "";
    size_t used = 0;
    bool is_scalar = node->kind == AS_YAML_SCALAR;
    struct suggestion suggestion = suggestion_start(is_scalar ? node->text : "");
    for (unsigned i = 0; words[i]; i++) {
        if (is_scalar && strcmp(words[i], node->text) == 0) {
            *out = i;
            return true;
        }
        suggestion_offer(&suggestion, words[i]);
        const char *separator = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        int status = snprintf(list + used, sizeof(list) - used, "%s%s", separator, words[i]);
        used += status > 0 && (size_t)status < sizeof(list) - used ? (size_t)status : 0;
    }
    loader_report(loader, node, "expected %s, found %s%s", list, as_yaml_describe(node, found),
                  suggestion_print(&suggestion, hint));
    return false;
}

static bool schema_parse_name(struct loader *loader, const struct as_yaml_node *node,
                              const char **out)
{
    if (!schema_is_text(loader, node))
        return false;
    if (!is_name_here(loader, node->text)) {
        loader_report(loader, node, SCHEMA_EXPECTED_NAME);
        return false;
    }
    *out = as_arena_strdup(loader->arena, node->text);
    return true;
}

bool schema_parse_scalar(struct loader *loader, const struct schema_field *field,
                         const struct as_yaml_node *node, void *object)
{
    void *out = (char *)object + field->offset;
    int64_t number = 0;
    switch (field->type) {
    case SCHEMA_STRING: return schema_parse_string(loader, node, out);
    case SCHEMA_TEXT:
        if (!schema_is_text(loader, node))
            return false;
        *(const char **)out = as_arena_strdup(loader->arena, node->text);
        return true;
    case SCHEMA_QUERY:
        if (!schema_is_text(loader, node))
            return false;
        *(const struct as_yaml_node **)out = node;
        return true;
    case SCHEMA_NAME: return schema_parse_name(loader, node, out);
    case SCHEMA_PATH: return parse_path(loader, node, out);
    case SCHEMA_URL:
        return schema_check_url(loader, node) && schema_parse_string(loader, node, out);
    case SCHEMA_BOOL: return parse_bool(loader, node, out);
    case SCHEMA_INT:
        if (!(field->is_count ? schema_parse_count : schema_parse_i64)(loader, node, field->min,
                                                                       field->max, &number))
            return false;
        *(int32_t *)out = (int32_t)number;
        return true;
    case SCHEMA_DURATION: return parse_duration(loader, node, field, out);
    case SCHEMA_SIZE: return parse_size(loader, node, field, out);
    case SCHEMA_PERCENT: return schema_parse_percent(loader, node, field->min, field->max, out);
    case SCHEMA_WORD: return schema_parse_word(loader, node, field->words, out);
    case SCHEMA_STRINGS:
    case SCHEMA_PATHS:
    case SCHEMA_URLS:
    case SCHEMA_MAP:
    case SCHEMA_MAPS:
    case SCHEMA_NAMED:
    case SCHEMA_CUSTOM:
    case SCHEMA_SCALAR:
    case SCHEMA_NUMBER:
    case SCHEMA_QUANTITY:
    case SCHEMA_TIME:
    case SCHEMA_REASON:
    case SCHEMA_WORDS:
    case SCHEMA_TABLE: break;
    }
    abort();
}

static bool schema_parse_strings(struct loader *loader, const struct schema_field *field,
                                 const struct as_yaml_node *list, void *object)
{
    if (!schema_is_kind(loader, list, AS_YAML_LIST) || !schema_check_count(loader, field, list))
        return false;
    const char **strings = as_arena_alloc(loader->arena, list->count, sizeof(*strings));
    size_t count = 0;
    const struct schema_field one = {.type = field->type == SCHEMA_STRINGS ? SCHEMA_STRING
                                             : field->type == SCHEMA_PATHS ? SCHEMA_PATH
                                                                           : SCHEMA_URL};
    for (uint32_t i = 0; i < list->count; i++)
        count += schema_parse_scalar(loader, &one, list->items[i], &strings[count]);
    memcpy((char *)object + field->offset, &strings, sizeof(strings));
    memcpy((char *)object + field->count_offset, &count, sizeof(count));
    return count == list->count;
}

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
static const struct schema_field *schema_find_field(const struct schema *schema, const char *key,
                                                    void **object_io)
{
    for (const struct schema_field *field = schema->fields; field->key; field++) {
        if (strcmp(field->key, key) == 0)
            return field;
    }
    if (!schema->base)
        return NULL;
    *object_io = (char *)*object_io + schema->base_offset;
    return schema_find_field(schema->base, key, object_io);
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

/* Returns the key that was meant; NULL: not known. */
static const char *report_unknown(struct loader *loader, const struct schema *schema,
                                  const struct as_yaml_node *key)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    for (const struct schema_refusal *row = schema->refusals; row && row->key; row++) {
        if (strcmp(row->key, key->text) == 0) {
            as_yaml_report(loader->tree, key, row->is_secret ? AS_YAML_HIDE : AS_YAML_SHOW,
                           loader->diagnostics, "%s", row->message);
            return NULL;
        }
    }
    struct suggestion suggestion = suggestion_start(key->text);
    if (!loader_is_full(loader))
        offer_fields(schema, &suggestion);
    loader_report(loader, key, "unknown key %s%s", as_yaml_describe(key, found),
                  suggestion_print(&suggestion, hint));
    return suggestion.best;
}

/* One of the choice is written, with a wrong spelling: that error is enough. */
static bool is_misspelt(const struct schema_choice *choice, const char *const *meant, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (const char *const *key = choice->keys; *key; key++) {
            if (strcmp(meant[i], *key) == 0)
                return true;
        }
    }
    return false;
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

#define MEANT_MAX 8 /* misspelt keys of a map that are compared with its choices */

void schema_parse(struct loader *loader, const struct schema *schema,
                  const struct as_yaml_node *node, const struct as_yaml_node *at, void *object)
{
    if (!schema_is_map(loader, node, schema->example))
        return;
    if (schema->set_unit)
        schema->set_unit(loader, node);
    const char *meant[MEANT_MAX];
    size_t meant_count = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct as_yaml_pair *pair = &node->pairs[i];
        void *target = object;
        const struct schema_field *field = schema_find_field(schema, pair->key->text, &target);
        if (field)
            schema_parse_value(loader, field, pair->value, target);
        else if (!schema->other || !schema->other(loader, node, pair, object)) {
            const char *key = report_unknown(loader, schema, pair->key);
            if (key && meant_count < MEANT_MAX)
                meant[meant_count++] = key;
        }
    }
    check_required(loader, schema, node, at);
    for (const struct schema_choice *choice = schema->choices; choice && choice->keys; choice++) {
        if (!is_misspelt(choice, meant, meant_count))
            (void)schema_check_choice(loader, node, at, choice);
    }
    if (schema->finish)
        schema->finish(loader, node, at, object);
    if (schema->set_unit)
        loader->unit = AS_UNIT_NONE;
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
        if (!is_name_here(loader, key->text))
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
