/*
 * The plan of a conversion: what the readers of other formats and the writers of rule files share.
 * It is a list of targets with their rules, and a list of what is not carried over. Texts of
 * objects become parts of YAML and of PromQL only by the functions here.
 */
#include "convert_plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/doc/yaml_text.h>
#include <alertscaler/model/source.h>
#include <alertscaler/model/template.h>

/* --- texts in YAML --- */

void yaml_append_milli(struct as_buf *out, int64_t milli)
{
    as_buf_printf(out, "%" PRId64, milli / 1000);
    if (milli % 1000 == 0)
        return;
    as_buf_printf(out, ".%03" PRId64, milli % 1000);
    while (out->size > 0 && out->data[out->size - 1] == '0')
        out->data[--out->size] = '\0';
}

/* --- what is said of an object --- */

#define OBJECT_MAX 512 /* bytes of an object's kind and name in messages */

const char *convert_text(struct convert *convert, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    va_end(arguments);
    const char *copy = as_arena_strdup(&convert->arena, text);
    free(text);
    return copy;
}

void convert_begin(struct convert *convert, const char *format, ...)
{
    char text[OBJECT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    AS_CLEANUP(as_buf_deinit) struct as_buf visible = AS_BUF_INIT(OBJECT_MAX);
    yaml_append_comment(&visible, text);
    convert->shown = as_arena_strdup(&convert->arena, visible.size ? visible.data : "");
    convert->item_start = convert->conversion->item_count;
    convert->has_lost = false;
}

#define ITEM_MAX 1000 /* bytes of a text, which may quote names of any length */

AS_PRINTF(4, 0)
static void add_item(struct convert *convert, bool is_carried, const struct as_yaml_node *node,
                     const char *format, va_list arguments)
{
    struct as_conversion *conversion = convert->conversion;
    char text[ITEM_MAX];
    vsnprintf(text, sizeof(text), format, arguments);
    AS_CLEANUP(as_buf_deinit) struct as_buf visible = AS_BUF_INIT(ITEM_MAX);
    yaml_append_comment(&visible, text);
    conversion->items = as_xgrow(conversion->items, conversion->item_count,
                                 &conversion->item_capacity, sizeof(*conversion->items));
    conversion->items[conversion->item_count++] = (struct as_conversion_item){
        .is_carried = is_carried,
        .file = as_arena_strdup(&convert->arena, as_yaml_get_file(convert->loader.tree)),
        .line = node->place.line,
        .column = node->place.column,
        .object = convert->shown,
        .text = as_arena_strdup(&convert->arena, visible.size ? visible.data : ""),
    };
    conversion->lost_count += !is_carried;
}

void convert_lose(struct convert *convert, const struct as_yaml_node *node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_item(convert, false, node, format, arguments);
    va_end(arguments);
    convert->has_lost = true;
}

void convert_leave(struct convert *convert, const struct as_yaml_node *node, const char *format,
                   ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_item(convert, false, node, format, arguments);
    va_end(arguments);
}

void convert_hint(struct convert *convert, const struct as_yaml_node *node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_item(convert, true, node, format, arguments);
    va_end(arguments);
}

bool convert_lose_key(struct loader *loader, const struct as_yaml_node *node,
                      const struct as_yaml_pair *pair, void *object)
{
    char found[AS_YAML_FOUND_SIZE];
    (void)node;
    (void)object;
    convert_lose(convert_of(loader), pair->key,
                 "key %s is not known here, and what it does is missing in the rules",
                 as_yaml_describe(pair->key, found));
    return true;
}

bool convert_skip_key(struct loader *loader, const struct as_yaml_node *node,
                      const struct as_yaml_pair *pair, void *object)
{
    (void)loader;
    (void)node;
    (void)pair;
    (void)object;
    return true;
}

bool convert_parse_goal(struct convert *convert, const struct as_yaml_node *node,
                        int64_t *milli_out)
{
    char found[AS_YAML_FOUND_SIZE];
    int64_t milli = 0;
    if (node->kind == AS_YAML_SCALAR &&
        as_quantity_parse_scaled(node->text, node->size, 3, true, &milli) == 0 && milli > 0) {
        *milli_out = milli;
        return true;
    }
    loader_report(&convert->loader, node,
                  "expected a quantity above 0, such as 100, 500m or 2k, "
                  "found %s",
                  as_yaml_describe(node, found));
    return false;
}

/* --- texts as parts of PromQL --- */

/*
 * In a rule file `{{` begins a template, so it must not come out of a query or a label that is
 * converted: inside a string it is written as `{\\x7b`; between backticks, where there are no
 * escapes, the string is written anew in double quotes.
 */

#define SECOND_BRACE "\\x7b"

static void append_in_string(struct as_buf *out, char before, char c)
{
    if (c == '{' && before == '{')
        as_buf_append_str(out, SECOND_BRACE);
    else if (c == '\n')
        as_buf_append_str(out, "\\n");
    else if ((unsigned char)c < 0x20 || c == 0x7F)
        as_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)c);
    else if (c == '"' || c == '\\')
        as_buf_printf(out, "\\%c", c);
    else
        as_buf_append_char(out, c);
}

void promql_append_escaped(struct as_buf *out, const char *value)
{
    for (size_t i = 0; value[i]; i++)
        append_in_string(out, i > 0 ? value[i - 1] : '\0', value[i]);
}

void promql_append_string(struct as_buf *out, const char *value)
{
    as_buf_append_char(out, '"');
    promql_append_escaped(out, value);
    as_buf_append_char(out, '"');
}

void promql_append_literal(struct as_buf *out, const char *value)
{
    for (; *value; value++) {
        if (strchr("\\.+*?()|[]{}^$", *value))
            as_buf_append_char(out, '\\');
        as_buf_append_char(out, *value);
    }
}

static bool plan_is_word(const char *text, bool may_have_colons)
{
    for (const char *at = text; *at; at++) {
        const bool is_letter = isalpha((unsigned char)*at) || *at == '_';
        const bool is_digit = isdigit((unsigned char)*at) && at > text;
        if (!is_letter && !is_digit && !(may_have_colons && *at == ':'))
            return false;
    }
    return *text;
}

bool promql_is_label(const char *text)
{
    return plan_is_word(text, false);
}

bool promql_is_metric(const char *text)
{
    return plan_is_word(text, true);
}

/* Appends a string of the query, from its quote on; returns what is behind it. NULL: it has no end.
 */
static const char *protect_string(struct as_buf *out, const char *at)
{
    const char quote = *at++;
    const bool is_raw = quote == '`';
    as_buf_append_char(out, is_raw ? '"' : quote);
    for (; *at != quote; at++) {
        if (!*at || (*at == '\n' && !is_raw))
            return NULL;
        if (is_raw) {
            append_in_string(out, at[-1] == '{' && at[0] == '{' ? '{' : '\0', *at);
        } else if (*at == '{' && at[-1] == '{') {
            as_buf_append_str(out, SECOND_BRACE);
        } else {
            as_buf_append_char(out, *at);
            if (*at == '\\' && at[1] && at[1] != '\n')
                as_buf_append_char(out, *++at);
        }
    }
    as_buf_append_char(out, is_raw ? '"' : quote);
    return at + 1;
}

/* A comment is left out: it may hold anything. */
static const char *skip_comment(const char *at)
{
    return at + strcspn(at, "\n");
}

static const char *protect(struct as_buf *out, const char *at, const char **why_out)
{
    while (at && *at) {
        if (*at == '"' || *at == '\'' || *at == '`') {
            at = protect_string(out, at);
            *why_out = "a quote in it is not closed";
        } else if (*at == '#') {
            at = skip_comment(at);
        } else if (at[0] == '{' && at[1] == '{') {
            *why_out = "`{{` stands outside a string, which is no PromQL";
            return NULL;
        } else {
            as_buf_append_char(out, *at++);
        }
    }
    return at;
}

const char *promql_protect(struct convert *convert, const char *query, const char **why_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(2 * AS_QUERY_MAX);
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (!protect(&out, query, why_out))
        return NULL;
    while (out.size > 0 && isspace((unsigned char)out.data[out.size - 1]))
        out.data[--out.size] = '\0';
    const char *text = out.size ? out.data + strspn(out.data, " \t\r\n") : "";
    if (as_buf_check(&out) < 0 || strlen(text) > AS_QUERY_MAX) {
        *why_out = convert_text(convert, "a query has at most %d bytes", AS_QUERY_MAX);
        return NULL;
    }
    if (!*text) {
        *why_out = "it is empty";
        return NULL;
    }
    if (as_template_new(text, &template, &error) < 0 ||
        as_template_check_promql(template, &error) < 0) {
        *why_out = convert_text(convert, "%s", error.text);
        return NULL;
    }
    return as_arena_strdup(&convert->arena, text);
}

/* --- targets and their rules --- */

/*
 * Names become names of files and of targets, so they are checked here, by Kubernetes' own rules.
 */

#define TARGET_NAME_MAX 140 /* so that rule names, which are longer, fit */

static void finish_reference(struct loader *loader, const struct as_yaml_node *node,
                             const struct as_yaml_node *at, void *object)
{
    (void)loader;
    (void)at;
    ((struct raw_reference *)object)->node = node;
}

static const struct schema_field reference_fields[] = {
    SCHEMA_FIELD("apiVersion", STRING, raw_reference, api_version),
    SCHEMA_FIELD("kind", STRING, raw_reference, kind),
    SCHEMA_FIELD("name", STRING, raw_reference, name, .is_required = true),
    {0},
};

const struct schema convert_reference =
    SCHEMA("reference", raw_reference, reference_fields, .other = convert_skip_key,
           .finish = finish_reference);

/* --- names --- */

static bool is_valid(const char *key, const char *value)
{
    const struct as_address_key *row = as_target_kind_find_key(&as_target_kind_kubernetes, key);
    return row->is_valid(value);
}

bool as_convert_is_namespace(const char *text)
{
    return is_valid("namespace", text);
}

/* A DNS subdomain, which is stricter than what all kinds of objects are called. */
static bool plan_is_object_name(const char *text)
{
    const size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    return size > 0 && text[size] == '\0' && strchr(".-", text[0]) == NULL &&
           strchr(".-", text[size - 1]) == NULL && !strstr(text, "..");
}

struct plan_target *plan_target_new(struct convert *convert, const char *name,
                                    const struct as_yaml_node *node)
{
    if (strlen(name) > TARGET_NAME_MAX) {
        convert_lose(convert, node,
                     "the whole object: its name and namespace together have more than %d "
                     "characters, and names of targets have at most %d. Write its rules by hand, "
                     "with a shorter name",
                     TARGET_NAME_MAX, SCHEMA_NAME_MAX);
        return NULL;
    }
    struct plan_target *target = as_arena_alloc(&convert->arena, 1, sizeof(*target));
    *target = (struct plan_target){
        .name = name,
        .tree = convert->loader.tree,
        .node = node,
        .shown = convert->shown,
        .tolerance_up = PLAN_NO_TOLERANCE,
        .tolerance_down = PLAN_NO_TOLERANCE,
    };
    return target;
}

struct plan_target *object_start(struct convert *convert, const struct raw_object *object)
{
    const struct as_yaml_node *name = object->meta.name, *of = object->meta.name_space;
    const char *space = of && of->kind == AS_YAML_SCALAR ? of->text : convert->name_space;
    char found[AS_YAML_FOUND_SIZE];
    if (name->kind != AS_YAML_SCALAR || !plan_is_object_name(name->text)) {
        loader_report(&convert->loader, name,
                      "expected a name of lower-case letters, digits, `-` and `.`, as Kubernetes "
                      "has it, found %s",
                      as_yaml_describe(name, found));
        return NULL;
    }
    if (of && (of->kind != AS_YAML_SCALAR || !as_convert_is_namespace(space))) {
        loader_report(&convert->loader, of,
                      "expected the name of a namespace: lower-case letters, digits and `-`, at "
                      "most 63; found %s",
                      as_yaml_describe(of, found));
        return NULL;
    }
    if (!of)
        convert_hint(convert, name, "it names no namespace, so `%s` is taken: --namespace sets it",
                     space);
    struct plan_target *target =
        plan_target_new(convert, convert_text(convert, "%s.%s", space, name->text), name);
    if (!target)
        return NULL;
    target->space = as_arena_strdup(&convert->arena, space);
    return target;
}

static bool has_own_version(const char *kind)
{
    static const char *const kinds[] = {"Deployment", "StatefulSet", "ReplicaSet"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i], kind) == 0)
            return true;
    }
    return false;
}

bool object_refer(struct convert *convert, const struct raw_reference *reference,
                  struct plan_target *target)
{
    const char *version = reference->api_version, *kind = reference->kind;
    const char *wrong = !reference->name                              ? NULL
                        : !is_valid("name", reference->name)          ? "`name`"
                        : !is_valid("kind", kind)                     ? "`kind`"
                        : version && !is_valid("apiVersion", version) ? "`apiVersion`"
                                                                      : NULL;
    if (!reference->name)
        return false; /* is reported */
    if (wrong) {
        loader_report(&convert->loader, reference->node,
                      "its %s is none that an object of Kubernetes can have", wrong);
        return false;
    }
    const bool is_own = has_own_version(kind);
    if (!version && !is_own && strcmp(kind, "ReplicationController") != 0) {
        loader_report(&convert->loader, reference->node, "a %s needs an `apiVersion` here", kind);
        return false;
    }
    if (version && is_own && as_str_starts_with(version, "extensions/")) {
        convert_hint(convert, reference->node,
                     "the API group `extensions` is gone from Kubernetes: `apps/v1` is taken");
        version = NULL;
    }
    if (version && ((is_own && strcmp(version, "apps/v1") == 0) ||
                    (strcmp(kind, "ReplicationController") == 0 && strcmp(version, "v1") == 0)))
        version = NULL;
    target->api_version = version;
    target->scaled_kind = kind;
    target->scaled = reference->name;
    return true;
}

void object_finish(struct convert *convert, struct plan_target *target)
{
    target->is_incomplete = convert->has_lost;
    target->is_dry = target->is_dry || convert->has_lost;
    target->items.from = convert->item_start;
    target->items.to = convert->conversion->item_count;
    convert->targets = as_xgrow(convert->targets, convert->target_count, &convert->target_capacity,
                                sizeof(struct plan_target *));
    convert->targets[convert->target_count++] = target;
}

#define WHAT_MAX 48 /* characters of a rule's name behind the target's */

struct plan_rule *plan_add_rule(struct convert *convert, struct plan_target *target,
                                const char *what)
{
    char word[WHAT_MAX + 1] = "";
    size_t size = 0;
    for (; what[size] && size < WHAT_MAX; size++) {
        const char one[2] = {what[size], '\0'};
        word[size] = schema_is_name(one) && what[size] != '.' ? what[size] : '-';
    }
    const char *name = convert_text(convert, "%s.%s", target->name, word);
    for (size_t i = 0; i < target->rule_count; i++) {
        if (strcmp(target->rules[i].name, name) == 0)
            name = convert_text(convert, "%s.%s-%zu", target->name, word, target->rule_count + 1);
    }
    if (target->rule_count == target->rule_capacity) {
        target->rule_capacity = target->rule_capacity ? 2 * target->rule_capacity : 4;
        struct plan_rule *rules =
            as_arena_alloc(&convert->arena, target->rule_capacity, sizeof(*rules));
        if (target->rule_count > 0)
            memcpy(rules, target->rules, target->rule_count * sizeof(*rules));
        target->rules = rules;
    }
    struct plan_rule *rule = &target->rules[target->rule_count++];
    *rule = (struct plan_rule){.name = name};
    return rule;
}

/* Kubernetes cuts long names before it makes those of pods of them: 63 less the random end, the
 * hash of a ReplicaSet and two dashes. */
#define POD_PREFIX_MAX 46

const char *plan_match_pods(struct convert *convert, const struct plan_target *target)
{
    const bool is_known = has_own_version(target->scaled_kind) ||
                          strcmp(target->scaled_kind, "ReplicationController") == 0;
    if (!is_known || target->api_version)
        return ".+";
    const size_t size = strlen(target->scaled);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(1024);
    AS_CLEANUP(as_free_p)
    char *prefix = as_xstrndup(target->scaled, size > POD_PREFIX_MAX ? POD_PREFIX_MAX : size);
    promql_append_literal(&text, prefix);
    as_buf_append_str(&text, size > POD_PREFIX_MAX ? ".*" : "-.*");
    return as_arena_strdup(&convert->arena, text.data);
}
