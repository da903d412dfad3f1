/*
 * prometheus-adapter's configuration: the tables, and the labels of resources.
 */
#include "adapter_parts.h"

#include <string.h>

#include <alertscaler/base/str.h>

/* --- tables --- */

/* Texts that may be empty. */
static const char *copy_text(struct loader *loader, const struct as_yaml_node *value)
{
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind == AS_YAML_SCALAR)
        return value->size ? as_arena_strdup(loader->arena, value->text) : NULL;
    loader_report(loader, value, "expected text, found %s", as_yaml_describe(value, found));
    return NULL;
}

#define COPY_TEXT(function, owner, member)                                                         \
    static void function(struct loader *loader, const struct as_yaml_node *value, void *object)    \
    {                                                                                              \
        ((struct owner *)object)->member = copy_text(loader, value);                               \
    }

COPY_TEXT(copy_is, raw_filter, is)
COPY_TEXT(copy_is_not, raw_filter, is_not)
COPY_TEXT(copy_template, raw_resources, template_)
COPY_TEXT(copy_matches, raw_naming, matches)
COPY_TEXT(copy_as, raw_naming, as)

static void keep_overrides(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_resources *resources = object;
    if (as_yaml_is_null(value) || !schema_is_kind(loader, value, AS_YAML_MAP))
        return;
    resources->overrides = value;
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_node *resource = as_yaml_find(value->pairs[i].value, "resource");
        if (!resource || resource->kind != AS_YAML_SCALAR)
            loader_report(loader, value->pairs[i].value, "expected a map with a `resource`");
        if (!promql_is_label(value->pairs[i].key->text))
            loader_report(loader, value->pairs[i].key, "expected the name of a label");
    }
}

static void note_replacements(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)loader;
    ((struct adapter_rule *)object)->has_replacements =
        value->kind == AS_YAML_LIST && value->count > 0;
}

static void finish_rule(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct adapter_rule *rule = object;
    (void)at;
    rule->tree = loader->tree;
    rule->node = node;
}

static void finish_resource(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    (void)node;
    (void)at;
    ((struct adapter_resource *)object)->tree = loader->tree;
}

static const struct schema_field filter_fields[] = {
    {.key = "is", .type = SCHEMA_CUSTOM, .parse = copy_is},
    {.key = "isNot", .type = SCHEMA_CUSTOM, .parse = copy_is_not},
    {0},
};
static const struct schema filter = SCHEMA("seriesFilters", raw_filter, filter_fields);

static const struct schema_field resources_fields[] = {
    {.key = "template", .type = SCHEMA_CUSTOM, .parse = copy_template},
    {.key = "overrides", .type = SCHEMA_CUSTOM, .parse = keep_overrides},
    SCHEMA_FIELD("namespaced", BOOL, raw_resources, is_namespaced, .fallback = "true"),
    {0},
};
static const struct schema resources = SCHEMA("resources", raw_resources, resources_fields);

static const struct schema_field naming_fields[] = {
    {.key = "matches", .type = SCHEMA_CUSTOM, .parse = copy_matches},
    {.key = "as", .type = SCHEMA_CUSTOM, .parse = copy_as},
    {0},
};
static const struct schema naming = SCHEMA("name", raw_naming, naming_fields);

static const struct schema_field rule_fields[] = {
    SCHEMA_FIELD("seriesQuery", TEXT, adapter_rule, series_query, .is_required = true),
    SCHEMA_FIELD("seriesFilters", MAPS, adapter_rule, filters, .map = &filter,
                 .count_offset = offsetof(struct adapter_rule, filter_count)),
    SCHEMA_FIELD("resources", MAP, adapter_rule, resources, .map = &resources),
    SCHEMA_FIELD("name", MAP, adapter_rule, naming, .map = &naming),
    SCHEMA_FIELD("metricsQuery", QUERY, adapter_rule, query),
    {.key = "labelValueReplacements", .type = SCHEMA_CUSTOM, .parse = note_replacements},
    {0},
};
static const struct schema rule_table =
    SCHEMA("rules", adapter_rule, rule_fields, .finish = finish_rule);

static const struct schema_field resource_fields[] = {
    SCHEMA_FIELD("containerQuery", QUERY, adapter_resource, query),
    SCHEMA_FIELD("resources", MAP, adapter_resource, resources, .map = &resources),
    SCHEMA_FIELD("containerLabel", STRING, adapter_resource, container_label),
    {0},
};
static const struct schema resource_table =
    SCHEMA("resourceRules", adapter_resource, resource_fields, .other = convert_skip_key,
           .finish = finish_resource);

static const struct schema_field of_fields[] = {
    SCHEMA_FIELD("cpu", MAP, adapter, of[AS_RESOURCE_CPU], .map = &resource_table),
    SCHEMA_FIELD("memory", MAP, adapter, of[AS_RESOURCE_MEMORY], .map = &resource_table),
    {0},
};
static const struct schema of_table =
    SCHEMA("resourceRules", adapter, of_fields, .other = convert_skip_key);

static const struct schema_field adapter_fields[] = {
    SCHEMA_FIELD("rules", MAPS, adapter, custom, .map = &rule_table,
                 .count_offset = offsetof(struct adapter, custom_count)),
    SCHEMA_FIELD("externalRules", MAPS, adapter, external, .map = &rule_table,
                 .count_offset = offsetof(struct adapter, external_count)),
    {.key = "resourceRules", .type = SCHEMA_MAP, .offset = 0, .map = &of_table},
    {0},
};
static const struct schema adapter_table = SCHEMA("adapter", adapter, adapter_fields);

bool adapter_is_configuration(const struct as_yaml_node *node)
{
    return as_yaml_find(node, "externalRules") || as_yaml_find(node, "resourceRules") ||
           (as_yaml_find(node, "rules") && !as_yaml_find(node, "targets") &&
            !as_yaml_find(node, "groups"));
}

void adapter_read(struct convert *convert, const struct as_yaml_node *node)
{
    const struct as_yaml_node *rules = as_yaml_find(node, "rules");
    if (convert->adapter) {
        loader_report(&convert->loader, node,
                      "a second configuration of prometheus-adapter: the first one is at %s:%u. "
                      "Convert each with its own objects",
                      as_yaml_get_file(convert->adapter->tree), convert->adapter->node->place.line);
        return;
    }
    if (rules && rules->kind == AS_YAML_MAP) {
        loader_report(
            &convert->loader, rules,
            "these are values of a Helm chart: give the ConfigMap that the chart makes of "
            "them");
        return;
    }
    const size_t errors = convert_count_errors(convert);
    struct adapter *adapter = as_arena_alloc(&convert->arena, 1, sizeof(*adapter));
    adapter->tree = convert->loader.tree;
    adapter->node = node;
    convert->adapter = adapter;
    schema_fill_defaults(&convert->loader, &adapter_table, adapter);
    schema_parse(&convert->loader, &adapter_table, node, node, adapter);
    if (convert_count_errors(convert) == errors)
        return;
    *adapter = (struct adapter){.tree = adapter->tree, .node = node}; /* nothing can use it */
}

/* --- labels --- */

/* Whether `name` is the singular, or one of the usual plurals. */
static bool is_resource(const char *name, const char *singular)
{
    const size_t size = strlen(singular);
    if (strcasecmp(name, singular) == 0)
        return true;
    if (size > 1 && singular[size - 1] == 'y' && strncasecmp(name, singular, size - 1) == 0 &&
        strcmp(name + size - 1, "ies") == 0)
        return true;
    return strncasecmp(name, singular, size) == 0 &&
           (strcmp(name + size, "s") == 0 || strcmp(name + size, "es") == 0);
}

static const char *find_override(const struct as_yaml_node *overrides, const char *group,
                                 const char *resource)
{
    for (uint32_t i = 0; overrides && i < overrides->count; i++) {
        const struct as_yaml_node *value = overrides->pairs[i].value;
        const struct as_yaml_node *name = as_yaml_find(value, "resource");
        const struct as_yaml_node *of = as_yaml_find(value, "group");
        const bool is_group = !of || as_yaml_is_null(of) ||
                              (of->kind == AS_YAML_SCALAR && strcmp(of->text, group) == 0);
        if (is_group && name && name->kind == AS_YAML_SCALAR && is_resource(name->text, resource))
            return overrides->pairs[i].key->text;
    }
    return NULL;
}

/* `.` and `-` of a group become `_`. */
static void append_group(struct as_buf *out, const char *group)
{
    for (; *group; group++)
        as_buf_append_char(out, strchr(".-", *group) ? '_' : *group);
}

/* A template with << .Resource >> and << .Group >>. */
static const char *expand(struct convert *convert, const char *template, const char *group,
                          const char *resource)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(1024);
    for (const char *at = template; *at;) {
        if (!as_str_starts_with(at, "<<")) {
            as_buf_append_char(&out, *at++);
            continue;
        }
        at += 2 + strspn(at + 2, " ");
        if (as_str_starts_with(at, ".Resource"))
            as_buf_append_str(&out, resource);
        else if (as_str_starts_with(at, ".Group"))
            append_group(&out, group);
        else
            return NULL;
        at += as_str_starts_with(at, ".Group") ? strlen(".Group") : strlen(".Resource");
        at += strspn(at, " ");
        if (!as_str_starts_with(at, ">>"))
            return NULL;
        at += 2;
    }
    if (as_buf_check(&out) < 0 || out.size == 0 || !promql_is_label(out.data))
        return NULL;
    return as_arena_strdup(&convert->arena, out.data);
}

const char *adapter_find_label(struct convert *convert, const struct raw_resources *of,
                               const char *group, const char *resource)
{
    const char *label = find_override(of->overrides, group, resource);
    if (label || !of->template_)
        return label;
    return expand(convert, of->template_, group, resource);
}
