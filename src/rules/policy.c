/*
 * ScalingPolicy: its CustomResourceDefinition, and the rule file that a policy means. Both come
 * from the tables that rule files are read by. The form of objects differs from that of files:
 *
 *   - Keys are in camelCase, word values in PascalCase.
 *   - Each field has one type. Where a rule file has a scalar or a map, an object has the map, with
 *     a key for the scalar (write_scalar_key).
 *   - Texts, lists and maps are bounded, because the API server bounds the cost of CEL rules.
 *   - Sizes, values and thresholds are integers or texts with Kubernetes' quantities.
 *   - Patterns are RE2's. The spec has no defaults: keys that are not set are inherited at the
 *     load.
 */
#include <alertscaler/rules/policy.h>

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/model/action.h>
#include <alertscaler/rules/provider_kind.h>
#include <alertscaler/rules/tables.h>

#include "config_private.h"

#define TEXT_MAX       1024 /* characters */
#define QUERY_MAX      8192
#define MESSAGE_MAX    32768 /* of a condition, as metav1.Condition has it */
#define LIST_MAX       64
#define GENERATION_MAX (INT64_C(1) << 53) /* API servers refuse a bound that is no double */
#define RULES_MAX      50
#define MATCHERS_MAX   16

#define LINE     "^[^\\x00-\\x1f\\x7f]+$"
#define NAME     "^[a-zA-Z0-9_.-]+$"
#define DURATION "^(0|([0-9]+(y|w|d|h|m|s|ms))+)$"
#define PERCENT  "^(0|[1-9][0-9]*)([.][0-9]{1,3})?%$"
#define TIME     "^[0-9]{4}-[0-9]{2}-[0-9]{2}T"
#define SUFFIX   "([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE])?"
#define QUANTITY "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)" SUFFIX "$"
#define AMOUNT                                                                                     \
    "^([0-9]+(" SUFFIX "|([.][0-9]{1,3})?%))$" /* an integer, a quantity, a percentage             \
                                                */

/* Keys of rule files that a policy lacks: it has one target, in its own namespace. */
static const struct {
    const char *table, *key;
} hidden[] = {
    {"target", "nodes"},       {"target", "pool"},          {"target", "allow"},
    {"target", "after"},       {"rule", "target"},          {"rule", "receivers"},
    {"kubernetes", "cluster"}, {"kubernetes", "namespace"}, {"node_group", "url"},
};

static bool is_hidden(const char *table, const char *key)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(hidden); i++)
        if (strcmp(hidden[i].table, table) == 0 && strcmp(hidden[i].key, key) == 0)
            return true;
    return false;
}

/*
 * Spelling.
 */

#define WORD_SIZE AS_POLICY_WORD_SIZE

/* "at_least" as "atLeast", and as "AtLeast" if it `is_value`. */
static const char *spell(const char *word, bool is_value, char out[WORD_SIZE])
{
    size_t size = 0;
    bool is_upper = is_value;
    for (; *word; word++) {
        assert(size + 1 < WORD_SIZE);
        if (*word == '_')
            is_upper = true;
        else {
            out[size++] = (char)(is_upper ? toupper((unsigned char)*word) : *word);
            is_upper = false;
        }
    }
    out[size] = '\0';
    return out;
}

const char *as_policy_spell(const char *word, char text_out[AS_POLICY_WORD_SIZE])
{
    return spell(word, true, text_out);
}

/*
 * Parts of a schema. A function that writes a value writes the members of its schema's object.
 */

static void crd_begin(struct as_json_writer *json, const char *key)
{
    as_json_write_key(json, key);
    as_json_begin_object(json);
}

static void crd_begin_list(struct as_json_writer *json, const char *key)
{
    as_json_write_key(json, key);
    as_json_begin_array(json);
}

static void write_string(struct as_json_writer *json, const char *pattern, int64_t max)
{
    as_json_write_member(json, "type", "string");
    as_json_write_member_i64(json, "minLength", 1);
    as_json_write_member_i64(json, "maxLength", max);
    if (pattern)
        as_json_write_member(json, "pattern", pattern);
}

static void write_integer(struct as_json_writer *json, int64_t min, int64_t max)
{
    as_json_write_member(json, "type", "integer");
    as_json_write_member(json, "format", "int64");
    if (min || max) {
        as_json_write_member_i64(json, "minimum", min);
        as_json_write_member_i64(json, "maximum", max);
    }
}

/* An integer, or a text of this pattern. */
static void write_int_or_string(struct as_json_writer *json, const char *pattern)
{
    as_json_write_member_bool(json, "x-kubernetes-int-or-string", true);
    crd_begin_list(json, "anyOf");
    as_json_begin_object(json);
    as_json_write_member(json, "type", "integer");
    as_json_end_object(json);
    as_json_begin_object(json);
    as_json_write_member(json, "type", "string");
    as_json_end_object(json);
    as_json_end_array(json);
    as_json_write_member_i64(json, "maxLength", WORD_SIZE);
    as_json_write_member(json, "pattern", pattern);
}

static void crd_write_words(struct as_json_writer *json, const char *const *words)
{
    char text[WORD_SIZE];
    as_json_write_member(json, "type", "string");
    crd_begin_list(json, "enum");
    for (; *words; words++)
        as_json_write_string(json, spell(*words, true, text));
    as_json_end_array(json);
}

/* The largest number of characters of a text. */
static int64_t get_text_max(enum schema_type type)
{
    switch (type) {
    case SCHEMA_TEXT:
    case SCHEMA_QUERY: return QUERY_MAX;
    case SCHEMA_NAME: return WORD_SIZE - 1;
    case SCHEMA_BOOL:
    case SCHEMA_INT:
    case SCHEMA_DURATION:
    case SCHEMA_SIZE:
    case SCHEMA_PERCENT:
    case SCHEMA_WORD:
    case SCHEMA_NUMBER:
    case SCHEMA_QUANTITY:
    case SCHEMA_TIME:
    case SCHEMA_REASON: return WORD_SIZE;
    case SCHEMA_STRING:
    case SCHEMA_PATH:
    case SCHEMA_URL:
    case SCHEMA_STRINGS:
    case SCHEMA_PATHS:
    case SCHEMA_URLS:
    case SCHEMA_MAP:
    case SCHEMA_MAPS:
    case SCHEMA_NAMED:
    case SCHEMA_CUSTOM:
    case SCHEMA_SCALAR:
    case SCHEMA_WORDS:
    case SCHEMA_TABLE: return TEXT_MAX;
    }
    abort(); /* no other values */
}

static void crd_write_value(struct as_json_writer *json, const struct schema_field *field);
static void crd_write_map(struct as_json_writer *json, const struct schema *table,
                          const struct schema_field *forms);

/* The largest number of elements. */
static int64_t get_list_max(const struct schema_field *field)
{
    if (field->key && strcmp(field->key, "rules") == 0)
        return RULES_MAX;
    if (field->key && strcmp(field->key, "match") == 0)
        return MATCHERS_MAX;
    return field->max && field->max < LIST_MAX ? field->max : LIST_MAX;
}

static bool rows_have_name(const struct schema *table)
{
    for (const struct schema_field *field = table->fields; field->key; field++)
        if (strcmp(field->key, "name") == 0)
            return true;
    return false;
}

/* Lists of maps with a name are merged by it; all others are replaced as a whole. */
static void write_array(struct as_json_writer *json, const struct schema_field *field,
                        const struct schema_field *element)
{
    const struct schema *table = element->map;
    const bool is_named = table && rows_have_name(table);
    as_json_write_member(json, "type", "array");
    if (field->when_empty)
        as_json_write_member_i64(json, "minItems", 1);
    as_json_write_member_i64(json, "maxItems", get_list_max(field));
    as_json_write_member(json, "x-kubernetes-list-type", is_named ? "map" : "atomic");
    if (is_named) {
        crd_begin_list(json, "x-kubernetes-list-map-keys");
        as_json_write_string(json, "name");
        as_json_end_array(json);
    }
    crd_begin(json, "items");
    crd_write_value(json, element);
    as_json_end_object(json);
}

/* The form that is a map; NULL: none. */
static const struct schema_field *find_map_form(const struct schema_field *forms)
{
    for (; forms && forms->key; forms++)
        if (forms->type == SCHEMA_MAP)
            return forms;
    return NULL;
}

static bool forms_have_type(const struct schema_field *forms, enum schema_type type)
{
    for (; forms->key; forms++)
        if (forms->type == type)
            return true;
    return false;
}

/* A value of several forms. */
static void write_one_form(struct as_json_writer *json, const struct schema_field *field)
{
    const struct schema_field *forms = field->forms, *map = find_map_form(forms);
    if (map) {
        crd_write_map(json, map->map, forms);
    } else if (!forms[1].key) {
        struct schema_field form = *forms;
        form.key = field->key;
        crd_write_value(json, &form);
    } else if (forms_have_type(forms, SCHEMA_PERCENT)) {
        write_int_or_string(json, AMOUNT);
    } else if (forms_have_type(forms, SCHEMA_NUMBER) || forms_have_type(forms, SCHEMA_QUANTITY)) {
        write_int_or_string(json, QUANTITY);
    } else {
        write_string(json, LINE, TEXT_MAX);
    }
}

static void crd_write_value(struct as_json_writer *json, const struct schema_field *field)
{
    static const struct schema_field line = SCHEMA_FORM(STRING);
    const struct schema_field map = SCHEMA_FORM(MAP, .map = field->map);
    const struct schema_field word = SCHEMA_FORM(WORD, .words = field->words);
    const struct schema_field element = SCHEMA_FORM(SCALAR, .pattern = field->pattern);
    const int64_t max = get_text_max(field->type);
    switch (field->type) {
    case SCHEMA_STRING:
    case SCHEMA_PATH:
    case SCHEMA_URL: write_string(json, LINE, max); break;
    case SCHEMA_TEXT:
    case SCHEMA_QUERY: write_string(json, NULL, max); break;
    case SCHEMA_REASON:
    case SCHEMA_NAME: write_string(json, NAME, max); break;
    case SCHEMA_SCALAR: write_string(json, field->pattern, max); break;
    case SCHEMA_PERCENT: write_string(json, PERCENT, max); break;
    case SCHEMA_TIME: write_string(json, TIME, max); break;
    case SCHEMA_DURATION: write_string(json, DURATION, max); break;
    case SCHEMA_SIZE:
    case SCHEMA_NUMBER:
    case SCHEMA_QUANTITY: write_int_or_string(json, QUANTITY); break;
    case SCHEMA_INT:
        if (field->is_count)
            write_int_or_string(json, QUANTITY);
        else
            write_integer(json, field->min, field->max);
        break;
    case SCHEMA_BOOL: as_json_write_member(json, "type", "boolean"); break;
    case SCHEMA_WORD: crd_write_words(json, field->words); break;
    case SCHEMA_WORDS: write_array(json, field, &word); break;
    case SCHEMA_STRINGS:
    case SCHEMA_PATHS:
    case SCHEMA_URLS: write_array(json, field, field->pattern ? &element : &line); break;
    case SCHEMA_MAP: crd_write_map(json, field->map, NULL); break;
    case SCHEMA_MAPS:
    case SCHEMA_NAMED: write_array(json, field, &map); break;
    case SCHEMA_TABLE:
        as_json_write_member(json, "type", "object");
        as_json_write_member_i64(json, "maxProperties", get_list_max(field));
        crd_begin(json, "additionalProperties");
        crd_write_value(json, &field->forms[0]);
        as_json_end_object(json);
        break;
    case SCHEMA_CUSTOM: write_one_form(json, field); break;
    }
}

static void respell(char *message, size_t size);

/* The description, in the spelling of policies. NULL: none. */
static void crd_write_about(struct as_json_writer *json, const char *about)
{
    char text[QUERY_MAX];
    if (!about)
        return;
    (void)snprintf(text, sizeof(text), "%s", about);
    respell(text, sizeof(text));
    as_json_write_member(json, "description", text);
}

static void crd_write_property(struct as_json_writer *json, const struct schema_field *field)
{
    char key[WORD_SIZE];
    crd_begin(json, spell(field->key, false, key));
    crd_write_about(json, field->about);
    crd_write_value(json, field);
    as_json_end_object(json);
}

/* The key of a map that has the value of a rule file's scalar: `none` for this word, `size` for a
 * number. Other scalars have their own way to be said with the map's keys: NULL. */
static const char *get_scalar_key(const struct schema_field *form)
{
    if (form->type == SCHEMA_INT)
        return "size";
    return form->type == SCHEMA_WORD && strcmp(form->words[0], "none") == 0 ? "none" : NULL;
}

static void write_scalar_key(struct as_json_writer *json, const struct schema_field *form)
{
    if (form->type == SCHEMA_INT) {
        struct schema_field size = *form;
        size.key = "size";
        size.about = "Exactly this size.";
        crd_write_property(json, &size);
    } else if (get_scalar_key(form)) {
        crd_begin(json, "none");
        crd_write_about(json, "True instead of the other keys: none.");
        as_json_write_member(json, "type", "boolean");
        crd_begin_list(json, "enum");
        as_json_write_bool(json, true);
        as_json_end_array(json);
        as_json_end_object(json);
    }
}

/*
 * Addresses of targets: rows of their own (decide/target_kind.h, rules/provider_kind.h).
 */

/* A key may have the same name in groups of several types. */
static bool is_first_group_key(const struct as_provider_kind *kind, const char *key)
{
    for (size_t i = 0; as_provider_kinds[i] != kind; i++)
        for (const struct as_provider_key *row = as_provider_kinds[i]->group_keys; row->key; row++)
            if (strcmp(row->key, key) == 0)
                return false;
    return true;
}

static void write_provider_keys(struct as_json_writer *json)
{
    for (size_t i = 0; as_provider_kinds[i]; i++)
        for (const struct as_provider_key *row = as_provider_kinds[i]->group_keys; row->key; row++)
            if (!is_hidden("node_group", row->key) &&
                is_first_group_key(as_provider_kinds[i], row->key))
                crd_write_property(json, &(struct schema_field){.key = row->key,
                                                                .type = SCHEMA_STRING,
                                                                .about = row->about});
}

static struct schema_field make_address_field(const struct as_address_key *row)
{
    return (struct schema_field){
        .key = row->key,
        .type = row->is_number ? SCHEMA_INT
                : row->is_flag ? SCHEMA_BOOL
                : row->words   ? SCHEMA_WORD
                               : SCHEMA_STRING,
        .max = row->is_number ? AS_SIZE_MAX : 0,
        .words = row->words,
        .about = row->about,
    };
}

static void crd_write_address(struct as_json_writer *json, const struct as_target_kind *kind)
{
    char key[WORD_SIZE];
    crd_begin(json, spell(kind->word, false, key));
    crd_write_about(json, kind == &as_target_kind_kubernetes
                              ? "The object of the policy's namespace that is scaled."
                              : "The node group that is scaled.");
    as_json_write_member(json, "type", "object");
    crd_begin(json, "properties");
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++) {
        if (!row->key)
            write_provider_keys(json);
        else if (!is_hidden(kind->word, row->key)) {
            const struct schema_field field = make_address_field(row);
            crd_write_property(json, &field);
        }
    }
    as_json_end_object(json);
    crd_begin_list(json, "required");
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++)
        if (row->is_required)
            as_json_write_string(json, row->key);
    as_json_end_array(json);
    as_json_end_object(json);
}

static void crd_write_addresses(struct as_json_writer *json)
{
    for (size_t i = 0; as_target_kinds[i]; i++)
        if (as_target_kinds[i] != &as_target_kind_pool)
            crd_write_address(json, as_target_kinds[i]);
}

/*
 * Maps.
 */

/* Exactly one of the keys, or at most one, as a rule of CEL. */
static void crd_write_choice(struct as_json_writer *json, const char *const *keys, bool is_optional)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf rule = AS_BUF_INIT(4096);
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(4096);
    char text[WORD_SIZE];
    as_buf_append_str(&rule, "[");
    as_buf_append_str(&message, is_optional ? "at most one of " : "exactly one of ");
    for (size_t i = 0; keys[i]; i++) {
        const char *key = spell(keys[i], false, text);
        const bool is_reserved = strcmp(key, "for") == 0; /* a word of CEL */
        as_buf_printf(&rule, "%shas(self.%s%s%s)", i > 0 ? ", " : "", is_reserved ? "__" : "", key,
                      is_reserved ? "__" : "");
        as_buf_printf(&message, "%s`%s`", i > 0 ? ", " : "", text);
    }
    as_buf_printf(&rule, "].filter(x, x).size() %s 1", is_optional ? "<=" : "==");
    as_buf_append_str(&message, is_optional ? " is allowed" : " is needed");
    as_json_begin_object(json);
    as_json_write_key(json, "rule");
    as_json_write_string_size(json, rule.data, rule.size);
    as_json_write_key(json, "message");
    as_json_write_string_size(json, message.data, message.size);
    as_json_end_object(json);
}

static bool is_target(const struct schema *table)
{
    return table == &schema_target;
}

static void crd_write_choices(struct as_json_writer *json, const struct schema *table)
{
    static const char *const addresses[] = {"kubernetes", "node_group", NULL};
    if (!table->choices && !is_target(table))
        return;
    crd_begin_list(json, "x-kubernetes-validations");
    for (const struct schema_choice *choice = table->choices; choice && choice->keys; choice++)
        crd_write_choice(json, choice->keys, choice->is_optional);
    if (is_target(table))
        crd_write_choice(json, addresses, false);
    as_json_end_array(json);
}

/* The scalar's key stands alone; without it, the required keys are needed. */
static void crd_write_scalar_choices(struct as_json_writer *json, const struct schema *table,
                                     const char *scalar_key)
{
    crd_begin_list(json, "x-kubernetes-validations");
    for (const struct schema_field *field = table->fields; field->key; field++)
        if (!is_hidden(table->name, field->key))
            crd_write_choice(json, SCHEMA_ONE_OF(scalar_key, field->key), !field->is_required);
    as_json_end_array(json);
}

/* `forms`: the other forms of the value beside the map; NULL: none. */
static void crd_write_map(struct as_json_writer *json, const struct schema *table,
                          const struct schema_field *forms)
{
    char key[WORD_SIZE];
    const char *scalar_key = NULL;
    as_json_write_member(json, "type", "object");
    crd_begin(json, "properties");
    for (const struct schema *at = table; at; at = at->base)
        for (const struct schema_field *field = at->fields; field->key; field++)
            if (!is_hidden(table->name, field->key))
                crd_write_property(json, field);
    if (is_target(table))
        crd_write_addresses(json);
    for (const struct schema_field *form = forms; form && form->key; form++) {
        write_scalar_key(json, form);
        scalar_key = scalar_key ? scalar_key : get_scalar_key(form);
    }
    as_json_end_object(json);
    if (scalar_key) {
        crd_write_scalar_choices(json, table, scalar_key);
    } else {
        crd_begin_list(json, "required");
        for (const struct schema_field *field = table->fields; field->key; field++)
            if (field->is_required && !is_hidden(table->name, field->key))
                as_json_write_string(json, spell(field->key, false, key));
        as_json_end_array(json);
        crd_write_choices(json, table);
    }
}

/*
 * The status, and what else the definition has.
 */

static const struct schema_field status_locked_fields[] = {
    {.key = "up", .type = SCHEMA_STRING, .about = "Until when the target is not scaled up."},
    {.key = "down", .type = SCHEMA_STRING, .about = "Until when the target is not scaled down."},
    {0}};
static const struct schema status_locked = {.name = "status.lockedUntil",
                                            .fields = status_locked_fields};

static const struct schema_field status_decision_fields[] = {
    {.key = "time", .type = SCHEMA_STRING, .about = "When it was decided."},
    {.key = "reason", .type = SCHEMA_STRING, .about = "The reason, as one word."},
    {.key = "message", .type = SCHEMA_TEXT, .about = "The reason, in a sentence."},
    {.key = "rule", .type = SCHEMA_STRING, .about = "The rule that determined the size."},
    {.key = "id", .type = SCHEMA_STRING, .about = "The id of the decision in the action log."},
    {0}};
static const struct schema status_decision = {.name = "status.lastDecision",
                                              .fields = status_decision_fields};

static const struct schema_field status_rule_fields[] = {
    {.key = "name", .type = SCHEMA_STRING, .is_required = true, .about = "The rule."},
    {.key = "value", .type = SCHEMA_STRING, .about = "The last value that the rule read."},
    {.key = "goal", .type = SCHEMA_STRING, .about = "The goal of the rule."},
    {.key = "desired", .type = SCHEMA_INT, .about = "The size that the rule wants."},
    {.key = "reason", .type = SCHEMA_STRING, .about = "The reason, as one word."},
    {.key = "message", .type = SCHEMA_TEXT, .about = "The reason, in a sentence."},
    {.key = "alerts", .type = SCHEMA_INT, .about = "How many alerts of the rule fire."},
    {0}};
static const struct schema status_rule = {.name = "status.rules", .fields = status_rule_fields};

static const struct schema_field status_unmatched_fields[] = {
    {.key = "alerts", .type = SCHEMA_INT, .about = "How many alerts of notifications, in all."},
    {.key = "lastAlert", .type = SCHEMA_STRING, .about = "The name of the last alert."},
    {.key = "rule", .type = SCHEMA_STRING, .about = "The rule that the last alert would match."},
    {.key = "message", .type = SCHEMA_TEXT, .about = "The reason, in a sentence."},
    {0}};
static const struct schema status_unmatched = {.name = "status.unmatched",
                                               .fields = status_unmatched_fields};

static const struct schema_field status_fields[] = {
    {.key = "observedGeneration",
     .type = SCHEMA_INT,
     .about = "The generation of the policy that this status is about."},
    {.key = "target", .type = SCHEMA_STRING, .about = "The scaled object."},
    {.key = "size", .type = SCHEMA_INT, .about = "The size that was last observed."},
    {.key = "desired", .type = SCHEMA_INT, .about = "The size that was last decided."},
    {.key = "min", .type = SCHEMA_INT, .about = "The smallest size in force, also by schedules."},
    {.key = "max", .type = SCHEMA_INT, .about = "The largest size in force, also by schedules."},
    {.key = "value", .type = SCHEMA_STRING, .about = "The value of the rule that decided."},
    {.key = "goal", .type = SCHEMA_STRING, .about = "The goal of the rule that decided."},
    {.key = "locked", .type = SCHEMA_STRING, .about = "The lock of the target, as a text."},
    {.key = "lastScaleTime", .type = SCHEMA_STRING, .about = "When the size was last changed."},
    {.key = "lockedUntil",
     .type = SCHEMA_MAP,
     .map = &status_locked,
     .about = "The lock of the target, by direction."},
    {.key = "lastDecision",
     .type = SCHEMA_MAP,
     .map = &status_decision,
     .about = "The last decision about the target."},
    {.key = "rules", .type = SCHEMA_MAPS, .map = &status_rule, .about = "What each rule wants."},
    {.key = "unmatched",
     .type = SCHEMA_MAP,
     .map = &status_unmatched,
     .about = "Alerts that match a rule, but for the label of the policy's namespace."},
    {0}};

/* metav1.Condition: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/ */
static void write_conditions(struct as_json_writer *json)
{
    static const char *const needed[] = {"type", "status", "lastTransitionTime", "reason",
                                         "message"};
    static const char *const statuses[] = {"True", "False", "Unknown", NULL};
    crd_begin(json, "conditions");
    crd_write_about(json,
                    "Whether the policy is in force, and what keeps the target from scaling.");
    as_json_write_member(json, "type", "array");
    as_json_write_member_i64(json, "maxItems", LIST_MAX);
    as_json_write_member(json, "x-kubernetes-list-type", "map");
    crd_begin_list(json, "x-kubernetes-list-map-keys");
    as_json_write_string(json, "type");
    as_json_end_array(json);
    crd_begin(json, "items");
    as_json_write_member(json, "type", "object");
    crd_begin(json, "properties");
    crd_begin(json, "type");
    crd_write_about(json, "The name of the condition.");
    write_string(json, "^[A-Za-z]+$", TEXT_MAX);
    as_json_end_object(json);
    crd_begin(json, "status");
    crd_write_about(json, "Whether the condition holds.");
    crd_write_words(json, statuses);
    as_json_end_object(json);
    crd_begin(json, "observedGeneration");
    crd_write_about(json, "The generation of the policy that the condition is about.");
    write_integer(json, 0, GENERATION_MAX);
    as_json_end_object(json);
    crd_begin(json, "lastTransitionTime");
    crd_write_about(json, "When `status` last changed.");
    as_json_write_member(json, "type", "string");
    as_json_write_member(json, "format", "date-time");
    as_json_end_object(json);
    crd_begin(json, "reason");
    crd_write_about(json, "The reason, as one word.");
    write_string(json, "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", TEXT_MAX);
    as_json_end_object(json);
    crd_begin(json, "message");
    crd_write_about(json, "The reason, in a sentence.");
    as_json_write_member(json, "type", "string");
    as_json_write_member_i64(json, "maxLength", MESSAGE_MAX);
    as_json_end_object(json);
    as_json_end_object(json);
    crd_begin_list(json, "required");
    for (size_t i = 0; i < AS_ARRAY_SIZE(needed); i++)
        as_json_write_string(json, needed[i]);
    as_json_end_array(json);
    as_json_end_object(json);
    as_json_end_object(json);
}

/* The default makes kstatus report "in progress" before the first look. */
static void crd_write_status(struct as_json_writer *json)
{
    crd_begin(json, "status");
    crd_write_about(json, "What alertscaler last decided about the target.");
    as_json_write_member(json, "type", "object");
    crd_begin(json, "default");
    as_json_write_member_i64(json, "observedGeneration", -1);
    as_json_end_object(json);
    crd_begin(json, "properties");
    for (const struct schema_field *field = status_fields; field->key; field++)
        crd_write_property(json, field);
    write_conditions(json);
    as_json_end_object(json);
    as_json_end_object(json);
}

static const char *const policy_modes[] = {"live", "shadow", NULL};

static void write_spec(struct as_json_writer *json)
{
    static const struct schema_field rules = {.key = "rules",
                                              .type = SCHEMA_MAPS,
                                              .map = &schema_rule,
                                              .about =
                                                  "Which alert, or which value, scales the target.",
                                              .when_empty = "at least one rule is needed"};
    crd_begin(json, "spec");
    crd_write_about(json, "One target, and the rules that scale it.");
    as_json_write_member(json, "type", "object");
    crd_begin(json, "properties");
    crd_begin(json, "mode");
    crd_write_about(json, "Live: sizes are set. Shadow: sizes are decided and shown, but not set.");
    crd_write_words(json, policy_modes);
    as_json_end_object(json);
    crd_begin(json, "target");
    crd_write_about(json, "What is scaled, how far, and how often.");
    crd_write_map(json, &schema_target, NULL);
    as_json_end_object(json);
    crd_write_property(json, &rules);
    as_json_end_object(json);
    crd_begin_list(json, "required");
    as_json_write_string(json, "target");
    as_json_write_string(json, "rules");
    as_json_end_array(json);
    as_json_end_object(json);
}

static void write_columns(struct as_json_writer *json)
{
    static const struct {
        const char *name, *type, *path;
        bool is_wide;
    } columns[] = {
        {"Target", "string", ".status.target", false},
        {"Size", "integer", ".status.size", false},
        {"Desired", "integer", ".status.desired", false},
        {"Min", "integer", ".status.min", false},
        {"Max", "integer", ".status.max", false},
        {"Reason", "string", ".status.lastDecision.reason", false},
        {"Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status", false},
        {"Value", "string", ".status.value", true},
        {"Goal", "string", ".status.goal", true},
        {"Locked", "string", ".status.locked", true},
        {"Rule", "string", ".status.lastDecision.rule", true},
        {"Age", "date", ".metadata.creationTimestamp", false},
    };
    crd_begin_list(json, "additionalPrinterColumns");
    for (size_t i = 0; i < AS_ARRAY_SIZE(columns); i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "name", columns[i].name);
        as_json_write_member(json, "type", columns[i].type);
        as_json_write_member(json, "jsonPath", columns[i].path);
        as_json_write_member_i64(json, "priority", columns[i].is_wide);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_version(struct as_json_writer *json)
{
    static const struct schema_field texts[] = {
        {.key = "apiVersion", .about = AS_POLICY_GROUP "/" AS_POLICY_VERSION "."},
        {.key = "kind", .about = AS_POLICY_KIND "."}};
    as_json_write_member(json, "name", AS_POLICY_VERSION);
    as_json_write_member_bool(json, "served", true);
    as_json_write_member_bool(json, "storage", true);
    crd_begin(json, "subresources");
    crd_begin(json, "status");
    as_json_end_object(json);
    as_json_end_object(json);
    write_columns(json);
    crd_begin(json, "schema");
    crd_begin(json, "openAPIV3Schema");
    crd_write_about(json, "A scaling policy: a workload of this namespace is scaled by alerts and "
                          "by values of Prometheus.");
    as_json_write_member(json, "type", "object");
    crd_begin(json, "properties");
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        crd_begin(json, texts[i].key);
        crd_write_about(json, texts[i].about);
        as_json_write_member(json, "type", "string");
        as_json_end_object(json);
    }
    crd_begin(json, "metadata");
    as_json_write_member(json, "type", "object");
    as_json_end_object(json);
    write_spec(json);
    crd_write_status(json);
    as_json_end_object(json);
    crd_begin_list(json, "required");
    as_json_write_string(json, "spec");
    as_json_end_array(json);
    as_json_end_object(json);
    as_json_end_object(json);
}

void as_policy_append_crd(struct as_buf *out)
{
    struct as_json_writer json;
    char number[WORD_SIZE];
    (void)snprintf(number, sizeof(number), "%d", AS_POLICY_SCHEMA);
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", "apiextensions.k8s.io/v1");
    as_json_write_member(&json, "kind", "CustomResourceDefinition");
    crd_begin(&json, "metadata");
    as_json_write_member(&json, "name", AS_POLICY_CRD_NAME);
    crd_begin(&json, "annotations");
    as_json_write_member(&json, AS_POLICY_SCHEMA_ANNOTATION, number);
    as_json_end_object(&json);
    as_json_end_object(&json);
    crd_begin(&json, "spec");
    as_json_write_member(&json, "group", AS_POLICY_GROUP);
    as_json_write_member(&json, "scope", "Namespaced");
    crd_begin(&json, "names");
    as_json_write_member(&json, "plural", AS_POLICY_PLURAL);
    as_json_write_member(&json, "singular", "scalingpolicy");
    as_json_write_member(&json, "kind", AS_POLICY_KIND);
    as_json_write_member(&json, "listKind", AS_POLICY_KIND "List");
    crd_begin_list(&json, "shortNames");
    as_json_write_string(&json, "scp");
    as_json_end_array(&json);
    crd_begin_list(&json, "categories");
    as_json_write_string(&json, "autoscaling");
    as_json_end_array(&json);
    as_json_end_object(&json);
    crd_begin_list(&json, "versions");
    as_json_begin_object(&json);
    write_version(&json);
    as_json_end_object(&json);
    as_json_end_array(&json);
    as_json_end_object(&json);
    as_json_end_object(&json);
}

/*
 * The rule file that a policy means: the same keys with the same places, in the spelling of rule
 * files. Keys that no policy has are reported here; all other checks are those of rule files.
 */

static struct as_yaml_node *copy_yaml_node(struct loader *loader, const struct as_yaml_node *node)
{
    struct as_yaml_node *copy = as_arena_alloc(loader->arena, 1, sizeof(*copy));
    *copy = *node;
    return copy;
}

/* A scalar at the place of `at`; `text` is valid as long as the loader's arena. */
static const struct as_yaml_node *make_text(struct loader *loader, const struct as_yaml_node *at,
                                            const char *text)
{
    struct as_yaml_node *node = as_arena_alloc(loader->arena, 1, sizeof(*node));
    *node = (struct as_yaml_node){
        .kind = AS_YAML_SCALAR, .place = at->place, .text = text, .size = strlen(text)};
    return node;
}

/* A map at the place of `at`, with room for `count` pairs. */
struct map_builder {
    struct as_yaml_node *node;
    struct as_yaml_pair *pairs;
};

static struct map_builder begin_map(struct loader *loader, const struct as_yaml_node *at,
                                    size_t count)
{
    struct map_builder builder = {as_arena_alloc(loader->arena, 1, sizeof(*builder.node)),
                                  as_arena_alloc(loader->arena, count, sizeof(*builder.pairs))};
    *builder.node =
        (struct as_yaml_node){.kind = AS_YAML_MAP, .place = at->place, .pairs = builder.pairs};
    return builder;
}

static void add_pair(struct map_builder *builder, const struct as_yaml_node *key,
                     const struct as_yaml_node *value)
{
    builder->pairs[builder->node->count++] = (struct as_yaml_pair){key, value};
}

/* The rows of a map: those of its table, or of an address. */
struct policy_rows {
    const struct schema *table; /* NULL: an address */
    const struct schema_field *forms;
    const struct as_target_kind *kind;
};

typedef bool visit_row_fn(void *context, const char *key, const struct schema_field *field);

/* Calls `visit` for each key that an object has, until it returns true. */
static void visit_rows(const struct policy_rows *rows, visit_row_fn *visit, void *context)
{
    for (const struct schema *at = rows->table; at; at = at->base)
        for (const struct schema_field *field = at->fields; field->key; field++)
            if (!is_hidden(rows->table->name, field->key) && visit(context, field->key, field))
                return;
    for (size_t i = 0; rows->table && is_target(rows->table) && as_target_kinds[i]; i++)
        if (as_target_kinds[i] != &as_target_kind_pool &&
            visit(context, as_target_kinds[i]->word, NULL))
            return;
    for (const struct as_address_key *row = rows->kind ? rows->kind->keys : NULL;
         row && row->is_valid; row++) {
        if (!row->key || is_hidden(rows->kind->word, row->key))
            continue;
        const struct schema_field field = make_address_field(row);
        if (visit(context, row->key, &field))
            return;
    }
    if (rows->kind != &as_target_kind_node_group)
        return;
    for (size_t i = 0; as_provider_kinds[i]; i++)
        for (const struct as_provider_key *row = as_provider_kinds[i]->group_keys; row->key; row++)
            if (!is_hidden("node_group", row->key) &&
                visit(context, row->key,
                      &(struct schema_field){.key = row->key, .type = SCHEMA_STRING}))
                return;
}

struct row_search {
    const char *spelled; /* as in an object */
    const char *key;     /* as in a rule file; NULL: there is no such key */
    struct schema_field field;
    bool is_address; /* the key is the kind of a target */
    struct suggestion suggestion;
    struct loader *loader;
};

static bool find_spelled_row(void *context, const char *key, const struct schema_field *field)
{
    struct row_search *search = context;
    char spelled[WORD_SIZE];
    spell(key, false, spelled);
    if (strcmp(spelled, search->spelled) == 0) {
        search->key = key;
        search->is_address = !field;
        if (field)
            search->field = *field;
        return true;
    }
    suggestion_offer(&search->suggestion, as_arena_strdup(search->loader->arena, spelled));
    return false;
}

static const struct as_yaml_node *translate(struct loader *loader, const struct schema_field *field,
                                            const struct as_yaml_node *value);

static const struct as_yaml_node *translate_map(struct loader *loader,
                                                const struct policy_rows *rows,
                                                const struct as_yaml_node *node);

static const struct as_yaml_node *translate_pair(struct loader *loader,
                                                 const struct row_search *found,
                                                 const struct as_yaml_node *value)
{
    if (!found->is_address)
        return translate(loader, &found->field, value);
    return translate_map(loader, &(struct policy_rows){.kind = as_target_kind_find(found->key)},
                         value);
}

/*
 * Types: an object has one for each field. The reader of rule files accepts more: `5` for a text,
 * "5" for an integer, a word for a map. A scalar has the type that kubectl gives it, by YAML 1.1.
 */

enum object_type { OBJECT_TEXT, OBJECT_INTEGER, OBJECT_FLOAT, OBJECT_FLAG, OBJECT_NULL };

static bool is_yaml_flag(const char *text)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off", "true", "false"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++)
        if (strcasecmp(words[i], text) == 0)
            return true;
    return false;
}

static enum object_type object_find_type(const struct as_yaml_node *scalar)
{
    const char *text = scalar->text;
    char *end;
    if (!scalar->is_plain)
        return OBJECT_TEXT;
    if (as_yaml_is_null(scalar))
        return OBJECT_NULL;
    if (is_yaml_flag(text))
        return OBJECT_FLAG;
    text += *text == '-' || *text == '+';
    if (!strpbrk(text, "0123456789") || text[strspn(text, "0123456789abcdefABCDEFxXoO.+-_")])
        return OBJECT_TEXT;
    (void)strtoll(text, &end, 0);
    if (!*end)
        return OBJECT_INTEGER;
    (void)strtod(text, &end);
    return *end ? OBJECT_TEXT : OBJECT_FLOAT;
}

static const struct as_yaml_node *object_flaw(struct loader *loader,
                                              const struct as_yaml_node *node)
{
    struct as_yaml_node *copy = copy_yaml_node(loader, node);
    copy->is_flawed = true;
    return copy;
}

/* The value; or a flawed copy after an error. A null is the reader's. */
static const struct as_yaml_node *object_check_text(struct loader *loader, int64_t max,
                                                    const struct as_yaml_node *value)
{
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind != AS_YAML_SCALAR || value->is_flawed)
        return value;
    const enum object_type type = object_find_type(value);
    if (type != OBJECT_TEXT && type != OBJECT_NULL) {
        loader_report(loader, value, "expected a text, found %s: write it in quotes",
                      as_yaml_describe(value, found));
        return object_flaw(loader, value);
    }
    size_t count = 0;
    for (size_t i = 0; i < value->size; i++)
        count += ((unsigned char)value->text[i] & 0xc0) != 0x80;
    if (count <= (size_t)max)
        return value;
    loader_report(loader, value, "more than %lld characters", (long long)max);
    return object_flaw(loader, value);
}

static const struct as_yaml_node *object_check_flag(struct loader *loader,
                                                    const struct as_yaml_node *value)
{
    if (value->kind != AS_YAML_SCALAR || value->is_plain)
        return value;
    loader_report(loader, value, "expected true or false, found a text: write it without quotes");
    return object_flaw(loader, value);
}

/* An integer, and a text if `takes_text`. */
static const struct as_yaml_node *object_check_number(struct loader *loader, bool takes_text,
                                                      const struct as_yaml_node *value)
{
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind != AS_YAML_SCALAR)
        return value;
    const enum object_type type = object_find_type(value);
    if (type == OBJECT_INTEGER || type == OBJECT_NULL || (type == OBJECT_TEXT && takes_text))
        return value;
    loader_report(loader, value,
                  takes_text ? "expected an integer or a text, found %s: write it in quotes"
                             : "expected an integer, found %s",
                  as_yaml_describe(value, found));
    return object_flaw(loader, value);
}

/* How the map says what a scalar says in a rule file, in the spelling of objects: a message of the
 * translation is not respelled. */
static const char *find_map_hint(const struct schema_field *forms)
{
    for (const struct schema_field *form = forms; form && form->key; form++) {
        if (form->type == SCHEMA_INT)
            return ": write `{size: N}`";
        if (form->type == SCHEMA_PERCENT)
            return ": write `{up: 10%, down: 10%}`";
        if (form->type == SCHEMA_WORD)
            return strcmp(form->words[0], "none") == 0 ? ": write `{none: true}`"
                                                       : ": write `{giveBack: {}}`";
    }
    return "";
}

/* The scalar that stands for the whole map in a rule file; NULL: none. */
static const struct as_yaml_node *find_scalar(struct loader *loader,
                                              const struct schema_field *forms,
                                              const struct as_yaml_node *node)
{
    if (!forms || !forms[1].key || node->count != 1)
        return NULL;
    const struct as_yaml_node *none = as_yaml_find(node, "none"),
                              *size = as_yaml_find(node, "size");
    if (none && none->kind == AS_YAML_SCALAR && none->is_plain && strcmp(none->text, "true") == 0)
        return make_text(loader, none, "none");
    return size && forms_have_type(forms, SCHEMA_INT) ? translate(loader, &forms[0], size) : NULL;
}

static const struct as_yaml_node *translate_map(struct loader *loader,
                                                const struct policy_rows *rows,
                                                const struct as_yaml_node *node)
{
    char hint[SUGGESTION_SIZE];
    if (node->kind != AS_YAML_MAP) {
        char found[AS_YAML_FOUND_SIZE];
        if (!rows->forms || !rows->forms[1].key || as_yaml_is_null(node))
            return node;
        loader_report(loader, node, "expected a map, found %s%s", as_yaml_describe(node, found),
                      find_map_hint(rows->forms));
        return object_flaw(loader, node);
    }
    const struct as_yaml_node *scalar = find_scalar(loader, rows->forms, node);
    if (scalar)
        return scalar;
    struct map_builder map = begin_map(loader, node, node->count);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct as_yaml_pair *pair = &node->pairs[i];
        struct row_search search = {.spelled = pair->key->text,
                                    .suggestion = suggestion_start(pair->key->text),
                                    .loader = loader};
        visit_rows(rows, find_spelled_row, &search);
        if (search.key)
            add_pair(&map, make_text(loader, pair->key, search.key),
                     translate_pair(loader, &search, pair->value));
        else
            loader_report(loader, pair->key, "unknown key `%s`%s", pair->key->text,
                          suggestion_print(&search.suggestion, hint));
    }
    return map.node;
}

/* A word value. */
static const struct as_yaml_node *translate_word(struct loader *loader, const char *const *words,
                                                 const struct as_yaml_node *value)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf all = AS_BUF_INIT(1024);
    char spelled[WORD_SIZE], found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion =
        suggestion_start(value->kind == AS_YAML_SCALAR ? value->text : "");
    for (const char *const *word = words; *word; word++) {
        spell(*word, true, spelled);
        if (value->kind == AS_YAML_SCALAR && strcmp(spelled, value->text) == 0)
            return make_text(loader, value, *word);
        suggestion_offer(&suggestion, as_arena_strdup(loader->arena, spelled));
        as_buf_printf(&all, "%s%s", word == words ? "" : word[1] ? ", " : " or ", spelled);
    }
    struct as_yaml_node *copy = copy_yaml_node(loader, value);
    loader_report(loader, value, "expected %s, found %s%s", all.data,
                  as_yaml_describe(value, found), suggestion_print(&suggestion, hint));
    copy->is_flawed = true;
    return copy;
}

/* An integer or a text: the reader of files wants it without quotes. A quantity where files have a
 * number becomes this number. */
static const struct as_yaml_node *translate_number(struct loader *loader, bool is_number,
                                                   const struct as_yaml_node *value)
{
    double number;
    char text[WORD_SIZE];
    if (value->kind != AS_YAML_SCALAR)
        return value;
    struct as_yaml_node *copy = copy_yaml_node(loader, value);
    copy->is_plain = true;
    if (is_number && strpbrk(value->text, "numkKMGTPEi") &&
        as_quantity_parse(value->text, value->size, &number) == 0) {
        (void)snprintf(text, sizeof(text), "%.17g", number);
        copy->text = as_arena_strdup(loader->arena, text);
        copy->size = strlen(text);
    }
    return copy;
}

/* The elements of a list, or the values of a map with free keys. */
static const struct as_yaml_node *translate_elements(struct loader *loader,
                                                     const struct schema_field *field,
                                                     const struct schema_field *element,
                                                     const struct as_yaml_node *value)
{
    struct as_yaml_node *copy = copy_yaml_node(loader, value);
    if (value->kind != AS_YAML_SCALAR && value->count > get_list_max(field)) {
        loader_report(loader, value, "more than %lld elements", (long long)get_list_max(field));
        return object_flaw(loader, value);
    }
    if (value->kind == AS_YAML_LIST) {
        const struct as_yaml_node **items =
            as_arena_alloc(loader->arena, value->count, sizeof(*items));
        for (uint32_t i = 0; i < value->count; i++)
            items[i] = translate(loader, element, value->items[i]);
        copy->items = items;
    } else if (value->kind == AS_YAML_MAP) {
        struct as_yaml_pair *pairs = as_arena_alloc(loader->arena, value->count, sizeof(*pairs));
        for (uint32_t i = 0; i < value->count; i++)
            pairs[i] = (struct as_yaml_pair){value->pairs[i].key,
                                             translate(loader, element, value->pairs[i].value)};
        copy->pairs = pairs;
    }
    return copy;
}

static const struct as_yaml_node *translate_forms(struct loader *loader,
                                                  const struct schema_field *field,
                                                  const struct as_yaml_node *value)
{
    const struct schema_field *forms = field->forms, *map = find_map_form(forms);
    if (map)
        return translate_map(loader, &(struct policy_rows){.table = map->map, .forms = forms},
                             value);
    if (!forms[1].key) {
        struct schema_field form = *forms;
        form.key = field->key;
        return translate(loader, &form, value);
    }
    const bool is_amount = forms_have_type(forms, SCHEMA_PERCENT);
    const bool is_number =
        forms_have_type(forms, SCHEMA_NUMBER) || forms_have_type(forms, SCHEMA_QUANTITY);
    return is_amount || is_number
               ? translate_number(loader, !is_amount, object_check_number(loader, true, value))
               : object_check_text(loader, TEXT_MAX, value);
}

static const struct as_yaml_node *translate(struct loader *loader, const struct schema_field *field,
                                            const struct as_yaml_node *value)
{
    const struct schema_field map = SCHEMA_FORM(MAP, .map = field->map);
    const struct schema_field word = SCHEMA_FORM(WORD, .words = field->words);
    const struct schema_field line = SCHEMA_FORM(STRING);
    const struct policy_rows rows = {.table = field->map};
    const enum schema_type type = field->type;
    switch (type) {
    case SCHEMA_WORD: return translate_word(loader, field->words, value);
    case SCHEMA_INT:
    case SCHEMA_SIZE:
    case SCHEMA_QUANTITY:
    case SCHEMA_NUMBER:
        return translate_number(
            loader, type == SCHEMA_NUMBER,
            object_check_number(loader, type != SCHEMA_INT || field->is_count, value));
    case SCHEMA_BOOL: return object_check_flag(loader, value);
    case SCHEMA_MAP: return translate_map(loader, &rows, value);
    case SCHEMA_CUSTOM: return translate_forms(loader, field, value);
    case SCHEMA_WORDS: return translate_elements(loader, field, &word, value);
    case SCHEMA_NAMED:
    case SCHEMA_MAPS: return translate_elements(loader, field, &map, value);
    case SCHEMA_TABLE: return translate_elements(loader, field, &field->forms[0], value);
    case SCHEMA_STRINGS:
    case SCHEMA_PATHS:
    case SCHEMA_URLS: return translate_elements(loader, field, &line, value);
    case SCHEMA_STRING:
    case SCHEMA_TEXT:
    case SCHEMA_QUERY:
    case SCHEMA_NAME:
    case SCHEMA_PATH:
    case SCHEMA_URL:
    case SCHEMA_DURATION:
    case SCHEMA_PERCENT:
    case SCHEMA_SCALAR:
    case SCHEMA_TIME:
    case SCHEMA_REASON: return object_check_text(loader, get_text_max(type), value);
    }
    abort(); /* no other values */
}

static bool policy_is(const struct as_yaml_node *root)
{
    const struct as_yaml_node *kind = as_yaml_find(root, "kind");
    return kind && kind->kind == AS_YAML_SCALAR && strcmp(kind->text, AS_POLICY_KIND) == 0;
}

static const char *get_text(const struct as_yaml_node *map, const char *key, const char *fallback)
{
    const struct as_yaml_node *node = as_yaml_find(map, key);
    return node && node->kind == AS_YAML_SCALAR && node->size > 0 ? node->text : fallback;
}

/* "shop/checkout", as memory of the loader. */
static const char *join_names(struct loader *loader, const char *a, const char *b)
{
    const size_t size = strlen(a) + strlen(b) + 2;
    char *text = as_arena_alloc(loader->arena, size, 1);
    (void)snprintf(text, size, "%s/%s", a, b);
    return text;
}

/* Replaces a key, or adds it. The map has room for it. */
static void put_pair(struct loader *loader, struct map_builder *map, const struct as_yaml_node *at,
                     const char *key, const char *text)
{
    const struct as_yaml_node *value = make_text(loader, at, text);
    for (uint32_t i = 0; i < map->node->count; i++) {
        if (strcmp(map->pairs[i].key->text, key) == 0) {
            map->pairs[i].value = value;
            return;
        }
    }
    add_pair(map, make_text(loader, at, key), value);
}

/* The same for a value without quotes. */
static void put_plain_pair(struct loader *loader, struct map_builder *map,
                           const struct as_yaml_node *at, const char *key, const char *text)
{
    put_pair(loader, map, at, key, text);
    for (uint32_t i = 0; i < map->node->count; i++) {
        if (strcmp(map->pairs[i].key->text, key) != 0)
            continue;
        struct as_yaml_node *plain = copy_yaml_node(loader, map->pairs[i].value);
        plain->is_plain = true;
        map->pairs[i].value = plain;
    }
}

/* A copy with room for two more pairs. */
static struct map_builder extend_map(struct loader *loader, const struct as_yaml_node *map)
{
    struct map_builder builder = begin_map(loader, map, map->count + 2);
    for (uint32_t i = 0; i < map->count; i++)
        add_pair(&builder, map->pairs[i].key, map->pairs[i].value);
    return builder;
}

/* The target, in the policy's namespace. */
static const struct as_yaml_node *place_target(struct loader *loader,
                                               const struct as_yaml_node *target,
                                               const char *namespace_, bool is_shadow)
{
    if (target->kind != AS_YAML_MAP)
        return target;
    struct map_builder map = begin_map(loader, target, target->count + 1);
    for (uint32_t i = 0; i < target->count; i++) {
        const struct as_yaml_pair *pair = &target->pairs[i];
        const bool is_object = strcmp(pair->key->text, as_target_kind_kubernetes.word) == 0 &&
                               pair->value->kind == AS_YAML_MAP;
        if (is_object) {
            struct map_builder address = extend_map(loader, pair->value);
            put_pair(loader, &address, pair->key, "namespace", namespace_);
            add_pair(&map, pair->key, address.node);
        } else {
            add_pair(&map, pair->key, pair->value);
        }
    }
    if (is_shadow)
        put_plain_pair(loader, &map, target, "dry_run", "true");
    return map.node;
}

/* The rules, with the names that they have outside of the policy. */
static const struct as_yaml_node *place_rules(struct loader *loader,
                                              const struct as_yaml_node *rules, const char *policy)
{
    if (rules->kind != AS_YAML_LIST)
        return rules;
    struct as_yaml_node *copy = copy_yaml_node(loader, rules);
    const struct as_yaml_node **items = as_arena_alloc(loader->arena, rules->count, sizeof(*items));
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct as_yaml_node *rule = rules->items[i], *name = as_yaml_find(rule, "name");
        items[i] = rule;
        if (rule->kind != AS_YAML_MAP)
            continue;
        struct map_builder map = extend_map(loader, rule);
        if (name && name->kind == AS_YAML_SCALAR && schema_is_name(name->text))
            put_pair(loader, &map, name, "name", join_names(loader, policy, name->text));
        else if (name && name->kind == AS_YAML_SCALAR && strchr(name->text, '/'))
            loader_report(loader, name, "expected a name without `/`"); /* another policy's rule */
        put_pair(loader, &map, rule, "target", policy);
        items[i] = map.node;
    }
    copy->items = items;
    return copy;
}

/* Reports what else of the object is not as it must be. */
static void check_policy_keys(struct loader *loader, const struct as_yaml_node *root)
{
    static const char *const keys[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    static const char version[] = AS_POLICY_GROUP "/" AS_POLICY_VERSION;
    const struct as_yaml_node *given = as_yaml_find(root, "apiVersion");
    for (uint32_t i = 0; i < root->count; i++) {
        size_t k = 0;
        while (k < AS_ARRAY_SIZE(keys) && strcmp(root->pairs[i].key->text, keys[k]) != 0)
            k++;
        if (k == AS_ARRAY_SIZE(keys))
            loader_report(loader, root->pairs[i].key, "unknown key `%s`", root->pairs[i].key->text);
    }
    if (!given || given->kind != AS_YAML_SCALAR || strcmp(given->text, version) != 0)
        loader_report(loader, given ? given : root, "expected `apiVersion: %s`", version);
    if (!*get_text(as_yaml_find(root, "metadata"), "name", ""))
        loader_report(loader, root, "expected `metadata: {name: checkout, namespace: shop}`");
}

/* True: a dry run. */
static bool translate_mode(struct loader *loader, const struct as_yaml_node *mode)
{
    const struct as_yaml_node *word = mode ? translate_word(loader, policy_modes, mode) : NULL;
    return word && word->kind == AS_YAML_SCALAR && strcmp(word->text, policy_modes[1]) == 0;
}

static const struct as_yaml_node *policy_translate(struct loader *loader,
                                                   const struct as_yaml_node *root)
{
    static const struct schema_field rules_field = {
        .key = "rules", .type = SCHEMA_MAPS, .map = &schema_rule};
    static const char *const keys[] = {"mode", "target", "rules"};
    const struct as_yaml_node *metadata = as_yaml_find(root, "metadata");
    const struct as_yaml_node *spec = as_yaml_find(root, "spec");
    const struct as_yaml_node *target = as_yaml_find(spec, "target");
    const struct as_yaml_node *rules = as_yaml_find(spec, "rules");
    const char *namespace_ = get_text(metadata, "namespace", "default");
    struct map_builder file = begin_map(loader, root, 2);
    if (!policy_is(root)) {
        loader_report(loader, root, "expected an object with `kind: " AS_POLICY_KIND "`");
        return file.node;
    }
    check_policy_keys(loader, root);
    const bool is_shadow = translate_mode(loader, as_yaml_find(spec, "mode"));
    if (!target || !rules) {
        loader_report(loader, spec ? spec : root, "`spec` needs `target` and `rules`");
        return file.node;
    }
    for (uint32_t i = 0; i < spec->count; i++) {
        const char *key = spec->pairs[i].key->text;
        if (strcmp(key, keys[0]) != 0 && strcmp(key, keys[1]) != 0 && strcmp(key, keys[2]) != 0)
            loader_report(loader, spec->pairs[i].key, "unknown key `%s`", key);
    }
    const char *policy = join_names(loader, namespace_, get_text(metadata, "name", "unnamed"));
    struct map_builder targets = begin_map(loader, target, 1);
    target = translate_map(loader, &(struct policy_rows){.table = &schema_target}, target);
    add_pair(&targets, make_text(loader, root, policy),
             place_target(loader, target, namespace_, is_shadow));
    add_pair(&file, make_text(loader, root, "targets"), targets.node);
    add_pair(&file, make_text(loader, root, "rules"),
             place_rules(loader, translate(loader, &rules_field, rules), policy));
    return file.node;
}

/*
 * Messages about a policy name its keys and words as they stand in it.
 */

typedef bool match_field_fn(const struct schema_field *field, const char *key, const char *word);

static bool table_has(const struct schema *table, match_field_fn *match, const char *key,
                      const char *word);

static bool forms_have(const struct schema_field *forms, match_field_fn *match, const char *key,
                       const char *word)
{
    for (; forms && forms->key; forms++)
        if ((forms->map && table_has(forms->map, match, key, word)) ||
            forms_have(forms->forms, match, key, word))
            return true;
    return false;
}

/* Whether a field of the table, or of one of its maps, matches. */
static bool table_has(const struct schema *table, match_field_fn *match, const char *key,
                      const char *word)
{
    for (; table; table = table->base)
        for (const struct schema_field *field = table->fields; field->key; field++)
            if (match(field, key, word) ||
                (field->map && table_has(field->map, match, key, word)) ||
                forms_have(field->forms, match, key, word))
                return true;
    return false;
}

static bool tables_have(match_field_fn *match, const char *key, const char *word)
{
    return table_has(&schema_target, match, key, word) || table_has(&schema_rule, match, key, word);
}

static bool field_is(const struct schema_field *field, const char *key, const char *word)
{
    (void)word;
    return strcmp(field->key, key) == 0;
}

static bool words_have(const char *const *words, const char *word)
{
    for (; words && *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

/* Whether the field has this word as a value. `key` NULL: any field. */
static bool field_takes_word(const struct schema_field *field, const char *key, const char *word)
{
    if (key && strcmp(field->key, key) != 0)
        return false;
    if (words_have(field->words, word))
        return true;
    for (const struct schema_field *form = field->forms; form && form->key; form++)
        if (words_have(form->words, word))
            return true;
    return false;
}

/* Whether an object has a map in place of this word. */
static bool field_takes_map(const struct schema_field *field, const char *key, const char *word)
{
    return find_map_form(field->forms) && field_takes_word(field, key, word);
}

struct key_search {
    const char *key;
    bool is_found;
};

static bool find_address_row(void *context, const char *key, const struct schema_field *field)
{
    struct key_search *search = context;
    (void)field;
    search->is_found = search->is_found || strcmp(key, search->key) == 0;
    return search->is_found;
}

static bool object_has_key(const char *key)
{
    struct key_search search = {.key = key};
    if (tables_have(field_is, key, NULL))
        return true;
    for (size_t i = 0; as_target_kinds[i] && !search.is_found; i++) {
        if (as_target_kinds[i] == &as_target_kind_pool)
            continue;
        search.is_found = strcmp(as_target_kinds[i]->word, key) == 0;
        if (!search.is_found)
            visit_rows(&(struct policy_rows){.kind = as_target_kinds[i]}, find_address_row,
                       &search);
    }
    return search.is_found;
}

struct word_search {
    const char *key, *word;
    bool is_found;
};

static bool find_address_word(void *context, const char *key, const struct schema_field *field)
{
    struct word_search *search = context;
    search->is_found = strcmp(key, search->key) == 0 && words_have(field->words, search->word);
    return search->is_found;
}

static bool key_takes_word(const char *key, const char *word)
{
    struct word_search search = {.key = key, .word = word};
    visit_rows(&(struct policy_rows){.kind = &as_target_kind_kubernetes}, find_address_word,
               &search);
    return search.is_found || tables_have(field_takes_word, key, word);
}

/* The value of the key in an object: `none` as `{none: true}`, `memory_limits` as `MemoryLimits`.
 */
static void respell_value(const char *key, const char *word, struct as_buf *out)
{
    char spelled[WORD_SIZE];
    if (tables_have(field_takes_map, key, word))
        as_buf_printf(out, strcmp(word, "none") == 0 ? "{%s: true}" : "{%s: {}}",
                      spell(word, false, spelled));
    else
        as_buf_append_str(out, key_takes_word(key, word) ? spell(word, true, spelled) : word);
}

#define IDENTIFIER "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* The text between two backticks: keys, and the words that follow them. Text that begins with
 * something else stays: it is not of a rule file. */
static void respell_code(const char *code, struct as_buf *out)
{
    char word[WORD_SIZE], key[WORD_SIZE] = "", spelled[WORD_SIZE];
    const size_t first = strspn(code, IDENTIFIER);
    const size_t kept = first < sizeof(word) ? first : sizeof(word) - 1;
    memcpy(word, code, kept);
    word[kept] = '\0';
    const bool is_word =
        !code[first] && strchr(code, '_') && tables_have(field_takes_word, NULL, word);
    if (first >= WORD_SIZE || (code[0] != '{' && !object_has_key(word))) {
        as_buf_append_str(out, is_word ? spell(word, true, spelled) : code);
        return;
    }
    for (const char *at = code; *at;) {
        const size_t size = strspn(at, IDENTIFIER);
        if (size == 0 || size >= WORD_SIZE) {
            as_buf_append(out, at, size > 0 ? size : 1);
            at += size > 0 ? size : 1;
            continue;
        }
        const bool is_value = at > code + 1 && at[-1] == ' ' && at[-2] == ':';
        (void)snprintf(word, sizeof(word), "%.*s", (int)size, at);
        if ((at == code || at[size] == ':') && object_has_key(word)) {
            memcpy(key, word, sizeof(key));
            as_buf_append_str(out, spell(word, false, spelled));
        } else if (is_value && (!at[size] || strchr(",}", at[size]))) {
            respell_value(key, word, out);
        } else {
            as_buf_append_str(out, word);
        }
        at += size;
    }
}

/* What stands in the file already is shown as it is. */
static bool is_quotation(const char *message, size_t size)
{
    static const char *const before[] = {"found ", "unknown key ", "did you mean "};
    for (size_t i = 0; i < AS_ARRAY_SIZE(before); i++) {
        const size_t length = strlen(before[i]);
        if (size >= length && memcmp(message + size - length, before[i], length) == 0)
            return true;
    }
    return false;
}

/* `scale_up: {}` as `scaleUp: {}`: each text between backticks. */
static void respell(char *message, size_t size)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(2 * QUERY_MAX);
    const char *at = message;
    for (const char *from = strchr(at, '`'), *end; from; from = strchr(at, '`')) {
        end = strchr(from + 1, '`');
        if (!end)
            break;
        AS_CLEANUP(as_free_p) char *code = as_xstrndup(from + 1, (size_t)(end - from) - 1);
        as_buf_append(&out, at, (size_t)(from - at) + 1);
        if (is_quotation(message, (size_t)(from - message)))
            as_buf_append_str(&out, code);
        else
            respell_code(code, &out);
        as_buf_append_char(&out, '`');
        at = end + 1;
    }
    as_buf_append_str(&out, at);
    if (as_buf_check(&out) == 0)
        (void)snprintf(message, size, "%.*s", (int)out.size, out.data ? out.data : "");
}

void policy_rewrite(struct as_yaml_tree *tree, struct as_diagnostics *diagnostics)
{
    struct loader loader = {
        .tree = tree, .diagnostics = diagnostics, .arena = as_yaml_get_arena(tree)};
    as_yaml_rewrite(tree, policy_translate(&loader, as_yaml_get_root(tree)), respell);
}

int as_policy_parse(const char *text, size_t size, struct as_diagnostics *diagnostics,
                    struct as_yaml_tree **tree_out)
{
    const int status = as_yaml_parse("policy", text, size, diagnostics, tree_out);
    if (status >= 0)
        policy_rewrite(*tree_out, diagnostics);
    return status;
}

/*
 * Manifests: one object, a list of objects, or a stream of documents. All policies in a file are
 * one rule file; other objects are passed over.
 */

static bool is_manifest(const struct as_yaml_node *node)
{
    return *get_text(node, "apiVersion", "") && *get_text(node, "kind", "");
}

/* `kind: List`, or `kind: ScalingPolicyList`, as kubectl prints several objects. */
static bool is_object_list(const struct as_yaml_node *node)
{
    const char *kind = get_text(node, "kind", "");
    const struct as_yaml_node *items = as_yaml_find(node, "items");
    return items && items->kind == AS_YAML_LIST &&
           (strcmp(kind, "List") == 0 || strcmp(kind, AS_POLICY_KIND "List") == 0);
}

/* The elements of the root: documents, or the items of a list. */
typedef void visit_manifest_fn(void *context, const struct as_yaml_node *node);

static void visit_manifests(const struct as_yaml_node *root, visit_manifest_fn *visit,
                            void *context)
{
    const struct as_yaml_node *items = is_object_list(root) ? as_yaml_find(root, "items") : root;
    if (items->kind != AS_YAML_LIST) {
        visit(context, root);
        return;
    }
    for (uint32_t i = 0; i < items->count; i++) {
        if (is_object_list(items->items[i]))
            visit_manifests(items->items[i], visit, context);
        else
            visit(context, items->items[i]);
    }
}

struct manifest_count {
    size_t policies, others; /* objects */
    size_t unknown;          /* neither an object nor an empty document */
    const char *kind;        /* of the first other object; NULL: none */
};

static void count_manifest(void *context, const struct as_yaml_node *node)
{
    struct manifest_count *count = context;
    if (as_yaml_is_null(node))
        return;
    if (policy_is(node)) {
        count->policies++;
    } else if (is_manifest(node)) {
        count->others++;
        count->kind = count->kind ? count->kind : get_text(node, "kind", "");
    } else {
        count->unknown++;
    }
}

static struct manifest_count count_manifests(const struct as_yaml_tree *tree)
{
    struct manifest_count count = {0};
    visit_manifests(as_yaml_get_root(tree), count_manifest, &count);
    return count;
}

/* The rule file of all policies. */
struct manifest_merge {
    struct loader *loader;
    struct as_yaml_pair *targets;
    const struct as_yaml_node **rules;
    uint32_t target_count, rule_count;
    size_t rule_capacity;
};

static void merge_manifest(void *context, const struct as_yaml_node *node)
{
    struct manifest_merge *merge = context;
    if (!policy_is(node))
        return;
    const struct as_yaml_node *file = policy_translate(merge->loader, node);
    const struct as_yaml_node *targets = as_yaml_find(file, "targets");
    const struct as_yaml_node *rules = as_yaml_find(file, "rules");
    if (!targets || !rules)
        return;
    merge->targets[merge->target_count++] = targets->pairs[0];
    if (rules->kind != AS_YAML_LIST)
        loader_report(merge->loader, rules, "expected a list of rules");
    for (uint32_t i = 0; rules->kind == AS_YAML_LIST && i < rules->count; i++) {
        merge->rules =
            as_xgrow(merge->rules, merge->rule_count, &merge->rule_capacity, sizeof(*merge->rules));
        merge->rules[merge->rule_count++] = rules->items[i];
    }
}

static const struct as_yaml_node *merge_manifests(struct loader *loader,
                                                  const struct as_yaml_node *root,
                                                  size_t policy_count)
{
    struct manifest_merge merge = {
        .loader = loader,
        .targets = as_arena_alloc(loader->arena, policy_count, sizeof(*merge.targets)),
    };
    visit_manifests(root, merge_manifest, &merge);
    struct map_builder file = begin_map(loader, root, 2);
    struct as_yaml_node *targets = copy_yaml_node(loader, root);
    struct as_yaml_node *rules = copy_yaml_node(loader, root);
    const struct as_yaml_node **items =
        as_arena_alloc(loader->arena, merge.rule_count, sizeof(*items));
    if (merge.rule_count > 0)
        memcpy(items, merge.rules, merge.rule_count * sizeof(*items));
    as_free_p(&merge.rules);
    targets->kind = AS_YAML_MAP;
    targets->count = merge.target_count;
    targets->pairs = merge.targets;
    rules->kind = AS_YAML_LIST;
    rules->count = merge.rule_count;
    rules->items = items;
    add_pair(&file, make_text(loader, root, "targets"), targets);
    add_pair(&file, make_text(loader, root, "rules"), rules);
    return file.node;
}

AS_PRINTF(3, 4)
static void report_hint(const struct loader *loader, const struct as_yaml_node *node,
                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    as_yaml_vreport(loader->tree, node, AS_SEVERITY_HINT, AS_YAML_SHOW, loader->diagnostics, format,
                    arguments);
    va_end(arguments);
}

static void hint_mode(void *context, const struct as_yaml_node *node)
{
    const struct loader *loader = context;
    const struct as_yaml_node *mode = as_yaml_find(as_yaml_find(node, "spec"), "mode");
    if (policy_is(node) && mode && mode->kind == AS_YAML_SCALAR &&
        strcmp(mode->text, "Shadow") == 0)
        report_hint(loader, mode,
                    "`mode: Shadow`: the daemon does not act on this policy; commands compute its "
                    "sizes as a dry run");
}

static void manifests_rewrite(struct as_yaml_tree *tree, const struct manifest_count *count,
                              struct as_diagnostics *diagnostics)
{
    struct loader loader = {
        .tree = tree, .diagnostics = diagnostics, .arena = as_yaml_get_arena(tree)};
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    if (count->policies == 0)
        loader_report(&loader, root, "no " AS_POLICY_KIND " in this file: it has a %s",
                      count->kind);
    visit_manifests(root, hint_mode, &loader);
    as_yaml_rewrite(tree, merge_manifests(&loader, root, count->policies), respell);
}

static void take_diagnostics(struct as_diagnostics *to, struct as_diagnostics *from)
{
    for (size_t i = 0; i < from->count; i++)
        as_diagnostics_add(to, &from->items[i]);
    to->more += from->more;
    to->more_warnings += from->more_warnings;
    as_diagnostics_deinit(from);
    *from = AS_DIAGNOSTICS_INIT;
}

/* Whether the first error of `a` is further down: the reader of `a` went further. */
static bool is_further(const struct as_diagnostics *a, const struct as_diagnostics *b)
{
    return a->count > 0 && b->count > 0 && a->items[0].line > b->items[0].line;
}

/* The tree of a file of objects, with anchors and several documents, as kubectl reads it; NULL: it
 * is no such file. */
static struct as_yaml_tree *load_manifests(const char *path, struct as_diagnostics *diagnostics,
                                           struct manifest_count *count_out)
{
    struct as_yaml_tree *tree = NULL;
    if (as_yaml_load_documents(path, diagnostics, &tree) != AS_YAML_OK)
        return as_yaml_free(tree);
    *count_out = count_manifests(tree);
    if (count_out->policies + count_out->others == 0)
        return as_yaml_free(tree);
    return tree;
}

int as_rule_file_load(const char *path, struct as_diagnostics *diagnostics,
                      struct as_yaml_tree **tree_out)
{
    struct as_diagnostics found = AS_DIAGNOSTICS_INIT, again = AS_DIAGNOSTICS_INIT;
    struct as_yaml_tree *tree = NULL, *manifests = NULL;
    struct manifest_count count = {0};
    int status = as_yaml_load(path, &found, &tree);
    if (status == AS_YAML_OK)
        count = count_manifests(tree);
    else if (status == AS_YAML_FLAWED || status == -EINVAL)
        manifests = load_manifests(path, &again, &count);
    if (manifests) {
        as_diagnostics_deinit(&found);
        found = AS_DIAGNOSTICS_INIT;
        as_yaml_free(tree);
        tree = manifests;
        status = AS_YAML_OK;
    }
    if (status == -EINVAL && is_further(&again, &found)) {
        const struct as_diagnostics first = found;
        found = again;
        again = first;
    }
    if (status == AS_YAML_OK && count.policies + count.others > 0) {
        manifests_rewrite(tree, &count, &found);
        status = found.has_error ? AS_YAML_FLAWED : AS_YAML_OK;
    }
    take_diagnostics(diagnostics, &found);
    as_diagnostics_deinit(&again);
    if (status >= 0)
        *tree_out = tree;
    return status;
}

bool as_rule_file_is_other(const char *path)
{
    struct as_diagnostics ignored = AS_DIAGNOSTICS_INIT;
    struct manifest_count count = {0};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const bool is_kustomization = strncmp(name, "kustomization.", 14) == 0;
    struct as_yaml_tree *tree = is_kustomization ? NULL : load_manifests(path, &ignored, &count);
    as_diagnostics_deinit(&ignored);
    as_yaml_free(tree);
    return is_kustomization || (tree && count.policies == 0 && count.unknown == 0);
}
