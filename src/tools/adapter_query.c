/*
 * prometheus-adapter's queries: the templates between << and >>, filled in for one object or for
 * the pods of one workload.
 */
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/model/query.h>

#include "adapter_parts.h"

#define LABELS_MAX 64 /* in a selector */

struct label_matcher {
    const char *label, *op, *value; /* value: for an operator with ~ a regular expression */
};

struct values {
    const char *series, *group_by;
    struct label_matcher matchers[LABELS_MAX];
    size_t count;
};

static bool add(struct values *values, const char *label, const char *op, const char *value)
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

static const char *get_text(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR ? node->text : NULL;
}

/* "a|b", each literally. */
static const char *join_values(struct convert *convert, const struct as_yaml_node *list)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_QUERY_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        const char *value = get_text(list->items[i]);
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
    const char *key = get_text(as_yaml_find(expression, "key"));
    const char *word = get_text(as_yaml_find(expression, "operator"));
    const struct as_yaml_node *list = as_yaml_find(expression, "values");
    for (size_t i = 0; key && word && i < AS_ARRAY_SIZE(operators); i++) {
        const struct selector_operator *operator= & operators[i];
        const bool has_values = list && list->kind == AS_YAML_LIST && list->count > 0;
        if (strcmp(operator->word, word) != 0 || operator->has_values != has_values)
            continue;
        const bool is_one = !has_values || list->count == 1;
        const char *value = !has_values ? ""
                            : is_one    ? get_text(list->items[0])
                                        : join_values(convert, list);
        return value && promql_is_label(key) &&
               add(values, key, is_one ? operator->one : operator->many, value);
    }
    return false;
}

/* False: a part of it has no form in PromQL. */
static bool add_selector(struct convert *convert, struct values *values,
                         const struct as_yaml_node *selector)
{
    const struct as_yaml_node *labels = as_yaml_find(selector, "matchLabels");
    const struct as_yaml_node *expressions = as_yaml_find(selector, "matchExpressions");
    for (uint32_t i = 0; labels && labels->kind == AS_YAML_MAP && i < labels->count; i++) {
        const char *value = get_text(labels->pairs[i].value);
        if (!value || !promql_is_label(labels->pairs[i].key->text) ||
            !add(values, labels->pairs[i].key->text, "=", value))
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
static bool append_value(struct as_buf *out, const struct values *values, const char *word)
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

static bool append_word(struct as_buf *out, const struct values *values, const char *word)
{
    if (strcmp(word, ".Series") == 0)
        as_buf_append_str(out, values->series);
    else if (strcmp(word, ".LabelMatchers") == 0)
        append_matchers(out, values);
    else if (strcmp(word, ".GroupBy") == 0)
        as_buf_append_str(out, values->group_by);
    else
        return append_value(out, values, word);
    return true;
}

/* NULL: *why_out says why. `around`: "sum(", or "". */
static const char *expand(struct convert *convert, const struct as_yaml_node *template,
                          const struct values *values, const char *around, const char **why_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(4 * AS_QUERY_MAX);
    as_buf_append_str(&out, around);
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
        if (!append_word(&out, values, word)) {
            *why_out = convert_text(convert,
                                    "its query has the template `%.60s`, which is not "
                                    "known here",
                                    word);
            return NULL;
        }
        at = end + 2;
    }
    while (out.size > 0 && strchr(" \n", out.data[out.size - 1]))
        out.data[--out.size] = '\0';
    as_buf_append_str(&out, *around ? ")" : "");
    if (as_buf_check(&out) < 0) {
        *why_out = "its query is too long";
        return NULL;
    }
    return promql_protect(convert, out.data, why_out);
}

/* --- metrics --- */

static const char *const no_label = "its `resources` do not say which label has the namespace or "
                                    "the object";

static const char *build(struct convert *convert, const struct adapter_request *request,
                         const struct adapter_rule *rule, const char *series, const char *label,
                         const char **why_out)
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
    if (!add_selector(convert, &values, request->selector)) {
        *why_out = "its `selector` is no selector of labels that PromQL has";
        return NULL;
    }
    if ((is_external && !resources->is_namespaced) || is_space)
        space = NULL;
    else if (!space)
        return NULL;
    *why_out = "its `selector` is too long";
    if (space && !add(&values, space, "=", request->space))
        return NULL;
    if (label && !add(&values, label, request->is_pods ? "=~" : "=", request->object))
        return NULL;
    return expand(convert, rule->query, &values, is_external ? "sum(" : "", why_out);
}

/* The adapter knows which series there are, and takes the last rule that has one. Here the rule is
 * taken that most certainly has one, and of equal ones the last. */
static const struct adapter_rule *choose(struct convert *convert,
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
    const struct adapter_rule *rule = choose(convert, request, &label, &trace, &other);
    if (!rule) {
        *why_out = "no rule of prometheus-adapter's configuration makes this metric. Write the "
                   "rule with the metric's query";
        return false;
    }
    const char *why = trace.why;
    const char *query =
        trace.series ? build(convert, request, rule, trace.series, label, &why) : NULL;
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
    add(values, "container", container ? "=" : "!=", container ? container : "");
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
    add(&values, space, "=", target->space);
    add(&values, pod, "=~", plan_match_pods(convert, target));
    answer_out->label = pod;
    answer_out->rule = NULL;
    if (!of) {
        answer_out->query = make_usual(convert, resource, &values, container, why_out);
        return answer_out->query;
    }
    if (container)
        add(&values, box, "=", container);
    values.group_by = convert_text(convert, "%s,%s", pod, box);
    answer_out->query =
        expand(convert, of->query, &values, convert_text(convert, "sum by (%s) (", pod), why_out);
    return answer_out->query;
}
