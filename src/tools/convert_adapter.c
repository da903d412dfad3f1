/*
 * prometheus-adapter: its configuration, which series a metric of the metrics APIs is made of, and
 * by which query.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/regex.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/source.h>

#include "convert_plan.h"

/* What a rule knows of a metric. */
struct adapter_trace {
    const char *series; /* the only one that the rule can make it of; NULL: none is known */
    const char *why;    /* then: why the rule may make it all the same; NULL: it does not */
    unsigned rank;      /* how certain it is that the rule makes it: the more the better */
};
#define ADAPTER_CERTAIN 2U /* from this rank on: the rule names the series, or the metric */

/* --- from the name of a metric back to its series --- */

/*
 * The inverse of `name.as` and `name.matches`. What is found is held against all that the rule asks
 * of a series.
 */

#define NAME_MATCHERS_MAX 8

/* The matchers of a `seriesQuery` on the name of the series. */
struct name_matcher {
    bool is_regex, is_negative;
    char *value;
};

struct series_query {
    struct name_matcher matchers[NAME_MATCHERS_MAX];
    size_t count;
    const char *label; /* that is looked for */
    bool has_label;    /* a matcher on it */
};

static void series_query_deinit(struct series_query *query)
{
    for (size_t i = 0; i < query->count; i++)
        as_free_p(&query->matchers[i].value);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"
#define SPACE   " \t\r\n"

/* A string with its quotes; returns what is behind it. NULL: none. */
static const char *adapter_read_string(const char *at, char **value_out)
{
    const char quote = *at;
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(4096);
    if (!quote || !strchr("\"'`", quote))
        return NULL;
    for (at++; *at && *at != quote; at++) {
        if (*at == '\\' && quote != '`' && at[1])
            at++;
        as_buf_append_char(&out, *at);
    }
    size_t size = 0;
    if (*at != quote || as_buf_check(&out) < 0)
        return NULL;
    *value_out = as_buf_take(&out, &size);
    return at + 1;
}

static bool adapter_add_matcher(struct series_query *query, bool is_regex, bool is_negative,
                                char *value)
{
    if (query->count == NAME_MATCHERS_MAX) {
        as_free_p(&value);
        return false;
    }
    query->matchers[query->count++] = (struct name_matcher){is_regex, is_negative, value};
    return true;
}

static const char *read_matcher(struct series_query *query, const char *at)
{
    const size_t size = strspn(at, LETTERS);
    const bool is_name = size == strlen("__name__") && strncmp(at, "__name__", size) == 0;
    char *value = NULL;
    query->has_label = query->has_label || (query->label && strlen(query->label) == size &&
                                            strncmp(at, query->label, size) == 0);
    at += size;
    at += strspn(at, SPACE);
    const bool is_negative = *at == '!', is_regex = at[0] && at[1] == '~';
    if (size == 0 || (*at != '=' && *at != '!') || (is_negative && at[1] != '=' && !is_regex))
        return NULL;
    at += is_negative || is_regex ? 2 : 1;
    at = adapter_read_string(at + strspn(at, SPACE), &value);
    if (at && is_name)
        return adapter_add_matcher(query, is_regex, is_negative, value) ? at : NULL;
    as_free_p(&value);
    return at;
}

/* name{label="x", __name__=~"y"}; false: it is not of this form. */
static bool read_series_query(struct series_query *query, const char *at)
{
    at += strspn(at, SPACE);
    const size_t size = strspn(at, LETTERS);
    if (size > 0)
        adapter_add_matcher(query, false, false, as_xstrndup(at, size));
    at += size;
    at += strspn(at, SPACE);
    if (*at == '{') {
        at++;
        while (at && *(at += strspn(at, SPACE ",")) != '}')
            at = read_matcher(query, at);
        if (!at)
            return false;
        at++;
    }
    return at[strspn(at, SPACE)] == '\0' && query->count > 0;
}

/* NULL: the rule does not say one name. */
static const char *get_exact(const struct series_query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        if (!query->matchers[i].is_regex && !query->matchers[i].is_negative)
            return query->matchers[i].value;
    }
    return NULL;
}

/* --- regular expressions of Go, which are not anchored --- */

static bool matches_whole(const char *pattern, const char *text)
{
    AS_CLEANUP(as_regex_free_p) struct as_regex *regex = NULL;
    return as_regex_new(pattern, &regex, NULL) == 0 && as_regex_match(regex, text);
}

static bool matches_part(const char *pattern, const char *text)
{
    AS_CLEANUP(as_free_p) char *anywhere = as_xasprintf(".*(?:%s).*", pattern);
    return matches_whole(anywhere, text);
}

static bool accepts(const struct adapter_rule *rule, const struct series_query *query,
                    const char *series)
{
    for (size_t i = 0; i < query->count; i++) {
        const struct name_matcher *matcher = &query->matchers[i];
        const bool fits = matcher->is_regex ? matches_whole(matcher->value, series)
                                            : strcmp(matcher->value, series) == 0;
        if (fits == matcher->is_negative)
            return false;
    }
    for (size_t i = 0; i < rule->filter_count; i++) {
        const struct raw_filter *filter = &rule->filters[i];
        if ((filter->is && !matches_part(filter->is, series)) ||
            (filter->is_not && matches_part(filter->is_not, series)))
            return false;
    }
    return promql_is_metric(series) &&
           (!rule->naming.matches || matches_part(rule->naming.matches, series));
}

/* --- names --- */

/* A pattern around its only group: head(inner)tail. */
struct pattern {
    const char *head, *inner, *tail;
    unsigned groups;
};

static const char *find_group_end(const char *at)
{
    unsigned depth = 1;
    for (; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '(')
            depth++;
        else if (*at == ')' && --depth == 0)
            return at;
    }
    return NULL;
}

static struct pattern split_pattern(struct convert *convert, const char *text)
{
    struct pattern pattern = {.head = text};
    for (const char *at = text; *at; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            continue;
        }
        const char *end = *at == '(' && at[1] != '?' ? find_group_end(at + 1) : NULL;
        if (!end)
            continue;
        if (pattern.groups++ == 0) {
            pattern.head = convert_text(convert, "%.*s", (int)(at - text), text);
            pattern.inner = convert_text(convert, "%.*s", (int)(end - at - 1), at + 1);
            pattern.tail = end + 1;
        }
    }
    return pattern;
}

/* `as`: text, one reference to a group, text. */
struct naming {
    const char *before, *after;
    int group; /* -1: no reference; -2: several, or by a name */
};

static struct naming split_as(struct convert *convert, const char *as)
{
    const char *dollar = strchr(as, '$');
    struct naming naming = {.before = as, .after = "", .group = -1};
    if (!dollar)
        return naming;
    naming.group = -2;
    const bool is_braced = dollar[1] == '{';
    const char *digit = dollar + 1 + is_braced;
    const char *end = digit + strspn(digit, "0123456789"
                                            "abcdefghijklmnopqrstuvwxyz"
                                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (end - digit != 1 || (*digit != '0' && *digit != '1') || (is_braced && *end != '}') ||
        strchr(end, '$'))
        return naming;
    naming.before = convert_text(convert, "%.*s", (int)(dollar - as), as);
    naming.after = end + is_braced;
    naming.group = *digit - '0';
    return naming;
}

/* What the reference stands for in this name; NULL: the name is not of this form. */
static const char *adapter_cut(struct convert *convert, const struct naming *naming,
                               const char *metric)
{
    const size_t before = strlen(naming->before), after = strlen(naming->after);
    const size_t size = strlen(metric);
    if (size <= before + after || !as_str_starts_with(metric, naming->before) ||
        strcmp(metric + size - after, naming->after) != 0)
        return NULL;
    return convert_text(convert, "%.*s", (int)(size - before - after), metric + before);
}

/* The text that a part of a pattern stands for; false: it may stand for several. */
static bool append_plain(struct as_buf *out, const char *part)
{
    for (; *part; part++) {
        if (*part == '\\' && part[1] && strchr("\\.+*?()|[]{}^$-_", part[1]))
            part++;
        else if (strchr("\\.+*?()|[]{}^$", *part))
            return false;
        as_buf_append_char(out, *part);
    }
    return true;
}

/* head and tail are plain, but for anchors. */
static const char *adapter_join(struct convert *convert, const struct pattern *pattern,
                                const char *middle)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(1024);
    const size_t tail = strlen(pattern->tail);
    const bool is_anchored = tail > 0 && pattern->tail[tail - 1] == '$';
    const char *end = convert_text(convert, "%.*s", (int)(tail - is_anchored), pattern->tail);
    if (!append_plain(&out, pattern->head + (*pattern->head == '^')))
        return NULL;
    as_buf_append_str(&out, middle);
    if (!append_plain(&out, end) || as_buf_check(&out) < 0)
        return NULL;
    return as_arena_strdup(&convert->arena, out.data);
}

/* Whether the group of the pattern is `middle` in this series. */
static bool has_group(const struct pattern *pattern, const char *series, const char *middle)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf literal = AS_BUF_INIT(4096);
    promql_append_literal(&literal, middle);
    AS_CLEANUP(as_free_p)
    char *whole = as_xasprintf("%s(?:%s)%s", pattern->head, literal.data, pattern->tail);
    return matches_part(whole, series);
}

#define RANK_LABEL 1U /* the series has a matcher on the label of the resource */
#define RANK_EXACT ADAPTER_CERTAIN

static void invert(struct convert *convert, const struct adapter_rule *rule, const char *exact,
                   const char *metric, struct adapter_trace *trace)
{
    const char *matches = rule->naming.matches ? rule->naming.matches : ".*";
    const struct pattern pattern = split_pattern(convert, matches);
    const char *as = rule->naming.as ? rule->naming.as : pattern.groups == 0 ? "$0" : "$1";
    const struct naming naming = split_as(convert, as);
    if (naming.group == -1) {
        trace->series = strcmp(as, metric) == 0 ? exact : NULL;
        if (strcmp(as, metric) == 0 && !exact) {
            trace->why = "its `seriesQuery` does not name one series, and only Prometheus knows "
                         "which there are";
            trace->rank = RANK_EXACT | RANK_LABEL;
        }
        return;
    }
    const char *middle = naming.group >= 0 ? adapter_cut(convert, &naming, metric) : NULL;
    if (naming.group >= 0 && !middle)
        return;
    trace->why = "its `name` cannot be traced back to a series: only one `$0` or `${1}` in `as` "
                 "can, and one group with plain text around it in `matches`";
    if (naming.group == 0)
        trace->series = matches_whole(matches, middle) ? middle : NULL;
    else if (naming.group != 1 || pattern.groups != 1)
        return;
    else if (!matches_whole(pattern.inner, middle))
        trace->why = NULL;
    else if (!exact)
        trace->series = adapter_join(convert, &pattern, middle);
    else if (has_group(&pattern, exact, middle))
        trace->series = exact;
    else
        trace->why = NULL;
}

static struct adapter_trace adapter_trace_series(struct convert *convert,
                                                 const struct adapter_rule *rule, const char *label,
                                                 const char *metric)
{
    AS_CLEANUP(series_query_deinit) struct series_query query = {.label = label};
    struct adapter_trace trace = {.series = NULL};
    if (!read_series_query(&query, rule->series_query)) {
        trace.why = "its `seriesQuery` is not of the form name{label=\"value\"}";
        return trace;
    }
    invert(convert, rule, get_exact(&query), metric, &trace);
    if (trace.series && !accepts(rule, &query, trace.series))
        return (struct adapter_trace){.series = NULL};
    if (trace.series) {
        trace.rank = (query.has_label ? RANK_LABEL : 0U) | (get_exact(&query) ? RANK_EXACT : 0U);
        trace.series = as_arena_strdup(&convert->arena, trace.series);
    }
    return trace;
}

/* --- the configuration: the tables, and the labels of resources --- */

/* --- tables --- */

/* Texts that may be empty. */
static const char *adapter_copy_text(struct loader *loader, const struct as_yaml_node *value)
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
        ((struct owner *)object)->member = adapter_copy_text(loader, value);                       \
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

static void adapter_finish_rule(struct loader *loader, const struct as_yaml_node *node,
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
static const struct schema resources_table = SCHEMA("resources", raw_resources, resources_fields);

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
    SCHEMA_FIELD("resources", MAP, adapter_rule, resources, .map = &resources_table),
    SCHEMA_FIELD("name", MAP, adapter_rule, naming, .map = &naming),
    SCHEMA_FIELD("metricsQuery", QUERY, adapter_rule, query),
    {.key = "labelValueReplacements", .type = SCHEMA_CUSTOM, .parse = note_replacements},
    {0},
};
static const struct schema rule_table =
    SCHEMA("rules", adapter_rule, rule_fields, .finish = adapter_finish_rule);

static const struct schema_field resource_fields[] = {
    SCHEMA_FIELD("containerQuery", QUERY, adapter_resource, query),
    SCHEMA_FIELD("resources", MAP, adapter_resource, resources, .map = &resources_table),
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
static bool adapter_is_resource(const char *name, const char *singular)
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
        if (is_group && name && name->kind == AS_YAML_SCALAR &&
            adapter_is_resource(name->text, resource))
            return overrides->pairs[i].key->text;
    }
    return NULL;
}

/* `.` and `-` of a group become `_`. */
static void adapter_append_group(struct as_buf *out, const char *group)
{
    for (; *group; group++)
        as_buf_append_char(out, strchr(".-", *group) ? '_' : *group);
}

/* A template with << .Resource >> and << .Group >>. */
static const char *adapter_expand(struct convert *convert, const char *template, const char *group,
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
            adapter_append_group(&out, group);
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

/* The label of a resource; NULL: the rule knows none. */
static const char *adapter_find_label(struct convert *convert, const struct raw_resources *of,
                                      const char *group, const char *resource)
{
    const char *label = find_override(of->overrides, group, resource);
    if (label || !of->template_)
        return label;
    return adapter_expand(convert, of->template_, group, resource);
}

/* --- queries --- */

/* The templates between << and >>, filled in for one object or for the pods of one workload. */

#define LABELS_MAX 64 /* in a selector */

struct label_matcher {
    const char *label, *op, *value; /* value: for an operator with ~ a regular expression */
};

struct values {
    const char *series, *group_by;
    struct label_matcher matchers[LABELS_MAX];
    size_t count;
};

static bool adapter_add(struct values *values, const char *label, const char *op, const char *value)
{
    if (values->count == LABELS_MAX)
        return false;
    values->matchers[values->count++] = (struct label_matcher){label, op, value};
    return true;
}

/* --- selectors --- */

struct selector_operator {
    const char *word, *one, *many; /* PromQL's, for one value and for several */
    bool has_values;
};

static const struct selector_operator operators[] = {
    {"In", "=", "=~", true},
    {"NotIn", "!=", "!~", true},
    {"Exists", "!=", NULL, false},
    {"DoesNotExist", "=", NULL, false},
};

static const char *adapter_get_text(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR ? node->text : NULL;
}

/* "a|b", each literally. */
static const char *join_values(struct convert *convert, const struct as_yaml_node *list)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_QUERY_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        const char *value = adapter_get_text(list->items[i]);
        if (!value)
            return NULL;
        as_buf_append_str(&out, i > 0 ? "|" : "");
        promql_append_literal(&out, value);
    }
    return as_buf_check(&out) < 0 ? NULL : as_arena_strdup(&convert->arena, out.data);
}

static bool add_expression(struct convert *convert, struct values *values,
                           const struct as_yaml_node *expression)
{
    const char *key = adapter_get_text(as_yaml_find(expression, "key"));
    const char *word = adapter_get_text(as_yaml_find(expression, "operator"));
    const struct as_yaml_node *list = as_yaml_find(expression, "values");
    for (size_t i = 0; key && word && i < AS_ARRAY_SIZE(operators); i++) {
        const struct selector_operator *operator= & operators[i];
        const bool has_values = list && list->kind == AS_YAML_LIST && list->count > 0;
        if (strcmp(operator->word, word) != 0 || operator->has_values != has_values)
            continue;
        const bool is_one = !has_values || list->count == 1;
        const char *value = !has_values ? ""
                            : is_one    ? adapter_get_text(list->items[0])
                                        : join_values(convert, list);
        return value && promql_is_label(key) &&
               adapter_add(values, key, is_one ? operator->one : operator->many, value);
    }
    return false;
}

/* False: a part of it has no form in PromQL. */
static bool adapter_add_selector(struct convert *convert, struct values *values,
                                 const struct as_yaml_node *selector)
{
    const struct as_yaml_node *labels = as_yaml_find(selector, "matchLabels");
    const struct as_yaml_node *expressions = as_yaml_find(selector, "matchExpressions");
    for (uint32_t i = 0; labels && labels->kind == AS_YAML_MAP && i < labels->count; i++) {
        const char *value = adapter_get_text(labels->pairs[i].value);
        if (!value || !promql_is_label(labels->pairs[i].key->text) ||
            !adapter_add(values, labels->pairs[i].key->text, "=", value))
            return false;
    }
    for (uint32_t i = 0; expressions && expressions->kind == AS_YAML_LIST && i < expressions->count;
         i++) {
        if (!add_expression(convert, values, expressions->items[i]))
            return false;
    }
    return true;
}

/* --- templates --- */

static void append_matchers(struct as_buf *out, const struct values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        as_buf_printf(out, "%s%s%s", i > 0 ? "," : "", values->matchers[i].label,
                      values->matchers[i].op);
        promql_append_string(out, values->matchers[i].value);
    }
}

/* `index .LabelValuesByName "x"`: the text stands in a string. */
static bool adapter_append_value(struct as_buf *out, const struct values *values, const char *word)
{
    static const char prefix[] = "index .LabelValuesByName \"";
    if (!as_str_starts_with(word, prefix))
        return false;
    word += sizeof(prefix) - 1;
    const size_t size = strcspn(word, "\"");
    for (size_t i = 0; i < values->count; i++) {
        if (strlen(values->matchers[i].label) != size ||
            strncmp(values->matchers[i].label, word, size) != 0)
            continue;
        promql_append_escaped(out, values->matchers[i].value);
        return strcmp(word + size, "\"") == 0;
    }
    return strcmp(word + size, "\"") == 0;
}

static bool adapter_append_word(struct as_buf *out, const struct values *values, const char *word)
{
    if (strcmp(word, ".Series") == 0)
        as_buf_append_str(out, values->series);
    else if (strcmp(word, ".LabelMatchers") == 0)
        append_matchers(out, values);
    else if (strcmp(word, ".GroupBy") == 0)
        as_buf_append_str(out, values->group_by);
    else
        return adapter_append_value(out, values, word);
    return true;
}

/* NULL: *why_out says why. `around`: "sum(", or "". */
static const char *adapter_query_expand(struct convert *convert,
                                        const struct as_yaml_node *template,
                                        const struct values *values, const char *around,
                                        const char **why_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(4 * AS_QUERY_MAX);
    for (const char *at = template->text; *at;) {
        const char *end = as_str_starts_with(at, "<<") ? strstr(at, ">>") : NULL;
        if (!end) {
            as_buf_append_char(&out, *at++);
            continue;
        }
        const char *from = at + 2, *to = end;
        while (from < to && *from == ' ')
            from++;
        while (to > from && to[-1] == ' ')
            to--;
        const char *word = convert_text(convert, "%.*s", (int)(to - from), from);
        if (!adapter_append_word(&out, values, word)) {
            *why_out = convert_text(convert,
                                    "its query has the template `%.60s`, which is not "
                                    "known here",
                                    word);
            return NULL;
        }
        at = end + 2;
    }
    if (as_buf_check(&out) < 0) {
        *why_out = "its query is too long";
        return NULL;
    }
    const char *query = promql_protect(convert, out.data, why_out); /* ends in no comment */
    return query && *around ? convert_text(convert, "%s%s)", around, query) : query;
}

/* --- metrics --- */

static const char *const no_label = "its `resources` do not say which label has the namespace or "
                                    "the object";

static const char *adapter_build(struct convert *convert, const struct adapter_request *request,
                                 const struct adapter_rule *rule, const char *series,
                                 const char *label, const char **why_out)
{
    struct values values = {.series = series, .group_by = label ? label : ""};
    const struct raw_resources *resources = &rule->resources;
    const bool is_external = !request->resource;
    const bool is_space = !is_external && strcmp(request->resource, "namespace") == 0;
    const char *space = adapter_find_label(convert, resources, "", "namespace");
    *why_out = no_label;
    if (!rule->query) {
        *why_out = "it has no `metricsQuery`";
        return NULL;
    }
    if (rule->has_replacements) {
        *why_out = "it has `labelValueReplacements`";
        return NULL;
    }
    if (!adapter_add_selector(convert, &values, request->selector)) {
        *why_out = "its `selector` is no selector of labels that PromQL has";
        return NULL;
    }
    if ((is_external && !resources->is_namespaced) || is_space)
        space = NULL;
    else if (!space)
        return NULL;
    *why_out = "its `selector` is too long";
    if (space && !adapter_add(&values, space, "=", request->space))
        return NULL;
    if (label && !adapter_add(&values, label, request->is_pods ? "=~" : "=", request->object))
        return NULL;
    return adapter_query_expand(convert, rule->query, &values, is_external ? "sum(" : "", why_out);
}

/* The adapter knows which series there are, and takes the last rule that has one. Here the rule is
 * taken that most certainly has one, and of equal ones the last. */
static const struct adapter_rule *adapter_choose(struct convert *convert,
                                                 const struct adapter_request *request,
                                                 const char **label_out, struct adapter_trace *best,
                                                 const struct adapter_rule **other_out)
{
    const struct adapter *adapter = convert->adapter;
    const bool is_external = !request->resource;
    const struct adapter_rule *rules = is_external ? adapter->external : adapter->custom;
    const struct adapter_rule *chosen = NULL;
    for (size_t i = 0; i < (is_external ? adapter->external_count : adapter->custom_count); i++) {
        const char *label = is_external ? NULL
                                        : adapter_find_label(convert, &rules[i].resources,
                                                             request->group, request->resource);
        if (!label && !is_external)
            continue;
        const struct adapter_trace trace =
            adapter_trace_series(convert, &rules[i], label, request->metric);
        const bool is_known = trace.series || trace.rank > 0;
        if (!trace.series && !trace.why)
            continue;
        const bool is_better = !chosen || !((best->series && !is_known) || trace.rank < best->rank);
        *other_out = !chosen ? NULL : is_better ? chosen : &rules[i];
        if (!is_better)
            continue;
        chosen = &rules[i];
        *label_out = label;
        *best = trace;
    }
    return chosen;
}

bool adapter_find(struct convert *convert, const struct adapter_request *request,
                  struct adapter_answer *answer_out, const char **why_out)
{
    struct adapter_trace trace = {.series = NULL};
    const char *label = NULL;
    if (!convert->adapter) {
        *why_out = "there is no configuration of prometheus-adapter among the files: give its "
                   "ConfigMap too, or write the rule with the metric's query";
        return false;
    }
    const struct adapter_rule *other = NULL;
    const struct adapter_rule *rule = adapter_choose(convert, request, &label, &trace, &other);
    if (!rule) {
        *why_out = "no rule of prometheus-adapter's configuration makes this metric. Write the "
                   "rule with the metric's query";
        return false;
    }
    const char *why = trace.why;
    const char *query =
        trace.series ? adapter_build(convert, request, rule, trace.series, label, &why) : NULL;
    *answer_out =
        (struct adapter_answer){query, label, rule, trace.rank >= ADAPTER_CERTAIN ? NULL : other};
    if (!query)
        *why_out = convert_text(convert,
                                "the rule on line %u of prometheus-adapter's configuration cannot "
                                "be used: %s. Write the rule with the metric's query",
                                rule->node->place.line, why);
    return query;
}

/* --- cpu and memory --- */

static const char *const usual_queries[] = {
    [AS_RESOURCE_CPU] = "sum by (pod) (rate(container_cpu_usage_seconds_total{%s}[2m]))",
    [AS_RESOURCE_MEMORY] = "sum by (pod) (container_memory_working_set_bytes{%s})",
};

static const char *make_usual(struct convert *convert, enum as_resource resource,
                              struct values *values, const char *container, const char **why_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf matchers = AS_BUF_INIT(AS_QUERY_MAX);
    adapter_add(values, "container", container ? "=" : "!=", container ? container : "");
    append_matchers(&matchers, values);
    const char *form = usual_queries[resource], *gap = strstr(form, "%s");
    return promql_protect(
        convert, convert_text(convert, "%.*s%s%s", (int)(gap - form), form, matchers.data, gap + 2),
        why_out);
}

bool adapter_find_usage(struct convert *convert, const struct plan_target *target,
                        enum as_resource resource, const char *container,
                        struct adapter_answer *answer_out, const char **why_out)
{
    const struct adapter_resource *of = convert->adapter && convert->adapter->of[resource].query
                                            ? &convert->adapter->of[resource]
                                            : NULL;
    const struct raw_resources *resources = of ? &of->resources : NULL;
    const char *space = of ? adapter_find_label(convert, resources, "", "namespace") : "namespace";
    const char *pod = of ? adapter_find_label(convert, resources, "", "pod") : "pod";
    const char *box = of && of->container_label ? of->container_label : "container";
    *why_out = no_label;
    if (!space || !pod || !promql_is_label(box))
        return false;
    struct values values = {.series = ""};
    adapter_add(&values, space, "=", target->space);
    adapter_add(&values, pod, "=~", plan_match_pods(convert, target));
    answer_out->label = pod;
    answer_out->rule = NULL;
    if (!of) {
        answer_out->query = make_usual(convert, resource, &values, container, why_out);
        return answer_out->query;
    }
    if (container)
        adapter_add(&values, box, "=", container);
    values.group_by = convert_text(convert, "%s,%s", pod, box);
    answer_out->query = adapter_query_expand(convert, of->query, &values,
                                             convert_text(convert, "sum by (%s) (", pod), why_out);
    return answer_out->query;
}
