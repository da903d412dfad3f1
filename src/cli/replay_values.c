/*
 * An annotation that only replayed alerts have puts the incident into a query's text. Values are
 * those of the log: they do not react to a different size.
 */
#include "replay_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/model/template.h>
#include <alertscaler/tools/record_text.h>

#include "log_reader.h"

#define INCIDENT "alertscaler_incident"

struct replay_values {
    const struct as_ruleset *ruleset;
    const struct as_rule **by_name; /* sorted */
    bool *is_needed, *is_seen;      /* one per rule */
};

static struct as_template *make_template(const char *text)
{
    struct as_template *template = NULL;

    if (as_template_new(text, &template, NULL) != 0)
        abort(); /* a rule's name has no braces */
    return template;
}

static bool replace_source(struct as_source *source, const char *rule)
{
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("%s \"{{ .Annotations." INCIDENT " }}\"", rule);

    if (source->kind != AS_SOURCE_QUERY && source->kind != AS_SOURCE_ANNOTATION)
        return false;
    source->kind = AS_SOURCE_QUERY;
    source->query = as_template_free(source->query);
    source->query = make_template(text);
    return true;
}

static int compare_rules(const void *left, const void *right)
{
    const struct as_rule *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

struct replay_values *replay_values_new(struct as_ruleset *ruleset)
{
    struct replay_values *values = as_xcalloc(1, sizeof(*values));

    values->ruleset = ruleset;
    values->by_name = as_xcalloc(ruleset->rule_count + 1, sizeof(*values->by_name));
    values->is_needed = as_xcalloc(ruleset->rule_count + 1, sizeof(bool));
    values->is_seen = as_xcalloc(ruleset->rule_count + 1, sizeof(bool));
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        struct as_rule *rule = &ruleset->rules[i];
        values->by_name[i] = rule;
        values->is_needed[i] = replace_source(&rule->source, rule->name);
        if (rule->guard_kind != AS_GUARD_QUERY)
            continue;
        AS_CLEANUP(as_free_p) char *text = as_xasprintf("guard %s", rule->name);
        rule->guard = as_template_free(rule->guard);
        rule->guard = make_template(text);
    }
    qsort(values->by_name, ruleset->rule_count, sizeof(*values->by_name), compare_rules);
    return values;
}

struct replay_values *replay_values_free(struct replay_values *values)
{
    if (values) {
        free(values->by_name);
        free(values->is_needed);
        free(values->is_seen);
        free(values);
    }
    return NULL;
}

static void set_guard(const struct as_rule *rule, struct as_rehearsal *rehearsal, bool passes)
{
    AS_CLEANUP(as_free_p) char *text = as_xasprintf("guard %s", rule->name);
    const struct as_query_result result = {.error = passes ? NULL : "query returned no data",
                                           .value = 1};

    if (rule->guard_kind == AS_GUARD_QUERY)
        as_rehearsal_set_query(rehearsal, text, &result);
}

void replay_values_begin(struct replay_values *values, struct as_rehearsal *rehearsal)
{
    for (size_t i = 0; i < values->ruleset->rule_count; i++)
        set_guard(&values->ruleset->rules[i], rehearsal, true);
}

static const struct as_rule *find_rule(const struct replay_values *values, const char *name)
{
    const struct as_rule wanted = {.name = (char *)(uintptr_t)name}, *key = &wanted;
    const struct as_rule **found = bsearch(&key, values->by_name, values->ruleset->rule_count,
                                           sizeof(*values->by_name), compare_rules);
    return found ? *found : NULL;
}

static as_maybe_time get_time(const json_t *object, const char *key)
{
    const char *text = as_record_get_text(object, key);
    as_maybe_time time = {0};

    time.set = as_wall_time_parse(text, strlen(text), &time.at) == 0;
    return time;
}

/* --- samples --- */

static int compare_samples(const void *left, const void *right)
{
    return strcmp(((const struct as_sample *)left)->pod, ((const struct as_sample *)right)->pod);
}

static void set_samples(struct as_rehearsal *rehearsal, const char *text, const json_t *list)
{
    const size_t count = json_array_size(list);
    struct as_sample *samples = as_xcalloc(count + 1, sizeof(*samples));
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        samples[i] = (struct as_sample){
            .pod = as_record_get_text(item, "pod"),
            .value = json_number_value(json_object_get(item, "value")),
            .at = get_time(item, "at"),
            .window_us =
                (int64_t)(json_number_value(json_object_get(item, "window")) * AS_US_PER_S),
        };
    }
    qsort(samples, count, sizeof(*samples), compare_samples);
    as_rehearsal_set_query(
        rehearsal, text,
        &(struct as_query_result){.samples = samples,
                                  .sample_count = count,
                                  .error = count > 0 ? NULL : "query returned no data"});
    free(samples);
}

static void take_proposal(struct replay_values *values, struct as_rehearsal *rehearsal,
                          const json_t *proposal)
{
    const char *rule = as_record_get_text(proposal, "rule"),
               *error = as_record_get_text(proposal, "error");
    const json_t *value = json_object_get(proposal, "value");
    const json_t *samples = json_object_get(proposal, "samples");
    const struct as_rule *known = find_rule(values, rule);
    const size_t number = known ? (size_t)(known - values->ruleset->rules) : 0;

    if (!known || !values->is_needed[number])
        return;
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("%s \"%s\"", rule, as_record_get_text(proposal, "incident"));
    if (json_is_array(samples))
        set_samples(rehearsal, text, samples);
    else if (json_is_number(value))
        as_rehearsal_set_query(rehearsal, text,
                               &(struct as_query_result){.value = json_number_value(value)});
    else if (*error)
        as_rehearsal_set_query(rehearsal, text, &(struct as_query_result){.error = error});
    else
        return; /* it needed no value then */
    values->is_seen[number] = true;
}

/* --- pods --- */

static enum as_pod_phase get_phase(const char *word)
{
    static const char *const words[] = {
        [AS_POD_PENDING] = "Pending",     [AS_POD_RUNNING] = "Running",
        [AS_POD_SUCCEEDED] = "Succeeded", [AS_POD_FAILED] = "Failed",
        [AS_POD_UNKNOWN] = "Unknown",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(words[i], word) == 0)
            return (enum as_pod_phase)i;
    }
    return AS_POD_RUNNING;
}

static double get_resource(const json_t *pod, const char *name)
{
    const json_t *value = json_object_get(json_object_get(pod, "resources"), name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The log has what the rule's `of` selected, requests or limits: the value is used for both. */
static struct as_pod_seen read_pod(const json_t *item)
{
    const json_t *ready = json_object_get(item, "ready");
    const double cpu = get_resource(item, "cpu"), memory = get_resource(item, "memory");
    return (struct as_pod_seen){
        .name = as_record_get_text(item, "name"),
        .phase = get_phase(as_record_get_text(item, "phase")),
        .ready = json_is_null(ready)    ? AS_UNKNOWN
                 : json_is_false(ready) ? AS_FALSE
                                        : AS_TRUE,
        .deleting = json_is_true(json_object_get(item, "deleting")),
        .start_time = get_time(item, "start_time"),
        .ready_since = get_time(item, "ready_since"),
        .requests = {[AS_RESOURCE_CPU] = cpu, [AS_RESOURCE_MEMORY] = memory},
        .limits = {[AS_RESOURCE_CPU] = cpu, [AS_RESOURCE_MEMORY] = memory},
    };
}

static int compare_pods(const void *left, const void *right)
{
    return strcmp(((const struct as_pod_seen *)left)->name,
                  ((const struct as_pod_seen *)right)->name);
}

static void take_pods(struct as_rehearsal *rehearsal, const char *target, const json_t *list)
{
    const size_t count = json_array_size(list);
    struct as_pod_seen *pods = as_xcalloc(count + 1, sizeof(*pods));
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item) pods[i] = read_pod(item);
    qsort(pods, count, sizeof(*pods), compare_pods);
    as_rehearsal_set_pods(rehearsal, target, pods, count);
    free(pods);
}

/* Rules of today may ask for nodes where the decision of the log did not. */
static void take_nodes(struct as_rehearsal *rehearsal, const char *target, json_t *input)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    const struct as_nodes_seen untold = {.error = "the log does not tell of nodes"};
    const bool is_told = json_object_get(json_object_get(input, "observed"), "nodes") &&
                         as_decision_decode_input_value(input, &document, &error) == 0;

    as_rehearsal_set_nodes(rehearsal, target, is_told ? document->input.nodes : &untold);
}

void replay_values_take(struct replay_values *values, struct as_rehearsal *rehearsal,
                        const json_t *decision)
{
    json_t *input = json_object_get(decision, "input");
    const json_t *item;
    const json_t *output = json_object_get(decision, "output");
    const json_t *pods = json_object_get(json_object_get(input, "observed"), "pods");
    size_t i;

    if (json_is_array(pods))
        take_pods(rehearsal, as_record_get_text(decision, "target"), pods);
    take_nodes(rehearsal, as_record_get_text(decision, "target"), input);
    json_array_foreach(json_object_get(input, "proposals"), i, item)
        take_proposal(values, rehearsal, item);
    const struct as_rule *rule = find_rule(values, as_record_get_text(output, "rule"));
    if (rule && strcmp(as_record_get_text(output, "direction"), "down") == 0)
        set_guard(rule, rehearsal,
                  !json_is_true(json_object_get(json_object_get(input, "flags"), "guarded")));
}

struct as_labels *replay_values_make_annotations(const char *incident)
{
    const struct as_label pair = {INCIDENT, incident};
    struct as_labels *labels = NULL;

    if (as_labels_new(&pair, 1, &labels) != 0)
        abort(); /* one small pair without duplicates */
    return labels;
}

void replay_values_visit_missing(const struct replay_values *values,
                                 void (*warn)(void *context, const char *text), void *context)
{
    for (size_t i = 0; i < values->ruleset->rule_count; i++) {
        if (!values->is_needed[i] || values->is_seen[i] || !values->ruleset->rules[i].enabled)
            continue;
        AS_CLEANUP(as_free_p)
        char *text = as_xasprintf("rule %s: the log has no values of it (an annotation or a query "
                                  "of a rule of that name): it proposes nothing",
                                  values->ruleset->rules[i].name);
        warn(context, text);
    }
}
