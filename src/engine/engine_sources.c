/*
 * The inputs of a target's rules: PromQL queries, asked together with the target's size, and values
 * in labels and annotations.
 *
 * A query is identified by its text: rules and incidents that ask the same share one answer. An
 * answer serves one decision only. The decision waits for all answers, also to queries that were
 * added after the first ones: a value that nobody asked for is no reason to scale down.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_incidents.h"
#include "engine_registry.h"

#define SOURCES_NO_GUARD                                                                           \
    "# the guard's templates cannot be filled in" /* never asked, so never met */
#define ASKS_MAX         64                       /* queries per target at a time */
#define ASKS_OF_RULE_MAX 32                       /* of these per rule, so that others have room */
#define SHOWN_MAX        64                       /* bytes of a foreign text in an error */

/* Effects may still point to the samples: freed at the next step. */
static void source_drop(struct as_engine *engine, struct ask *ask)
{
    struct target *target = ask->target;
    TAILQ_REMOVE(&target->asks, ask, in_target);
    target->ask_count--;
    if (!ask->is_answered) {
        RB_REMOVE(ask_tree, &engine->asks, ask);
        target->asks_open--;
    }
    TAILQ_INSERT_TAIL(&engine->answered, ask, in_target);
}

void sources_drop(struct as_engine *engine, struct target *target)
{
    struct ask *ask;
    while ((ask = TAILQ_FIRST(&target->asks)))
        source_drop(engine, ask);
}

void sources_on_rules(struct as_engine *engine, struct target *target)
{
    struct ask *ask, *next;
    TAILQ_FOREACH (ask, &target->asks, in_target)
        ask->rule = NULL; /* the former rules are gone */
    if (commands_get(target)->is_set)
        return;
    sources_ask(engine, target);
    TAILQ_FOREACH_SAFE (ask, &target->asks, in_target, next) {
        if (!ask->rule && !ask->is_answered)
            source_drop(engine, ask);
    }
}

static struct ask *ask_find(const struct target *target, const struct as_query *query)
{
    struct ask *ask;
    TAILQ_FOREACH (ask, &target->asks, in_target) {
        if (ask->query.form == query->form && strcmp(ask->query.text, query->text) == 0 &&
            as_str_equal(ask->query.pod_label, query->pod_label))
            return ask;
    }
    return NULL;
}

static size_t count_asks(const struct target *target, const struct as_rule *rule)
{
    const struct ask *ask;
    size_t count = 0;
    TAILQ_FOREACH (ask, &target->asks, in_target)
        count += ask->rule == rule;
    return count;
}

static void ask_for(struct as_engine *engine, struct target *target, const struct as_rule *rule,
                    const struct as_query *query)
{
    struct ask *ask = ask_find(target, query);
    if (ask && !ask->rule)
        ask->rule = rule;
    if (ask || target->ask_count == ASKS_MAX || count_asks(target, rule) == ASKS_OF_RULE_MAX)
        return;
    ask = as_xcalloc(1, sizeof(*ask));
    ask->target = target;
    ask->rule = rule;
    ask->call_id = ++engine->next_call_id;
    ask->query = (struct as_query){
        .text = as_arena_strdup(&ask->arena, query->text),
        .form = query->form,
        .pod_label = as_arena_strdup(&ask->arena, query->pod_label),
        .written = as_arena_strdup(&ask->arena, query->written),
        .is_continuous = always_is_alone(target),
        .tenant = target->config && target->config->policy
                      ? as_arena_strdup(&ask->arena, target->config->policy->namespace)
                      : NULL,
        .flow = {as_arena_strdup(&ask->arena, target->ref->id),
                 as_arena_strdup(&ask->arena, target->sender)},
    };
    RB_INSERT(ask_tree, &engine->asks, ask);
    TAILQ_INSERT_TAIL(&target->asks, ask, in_target);
    target->ask_count++;
    target->asks_open++;
    struct as_effect *effect = effect_add(engine, AS_EFFECT_QUERY);
    effect->call_id = ask->call_id;
    effect->query = &ask->query;
}

/* With the templates filled in, in the step's memory; NULL with an error if that fails. */
static const char *expand(struct as_engine *engine, const struct as_template *template,
                          const struct incident *incident, struct as_error *error)
{
    struct as_buf text = AS_BUF_INIT(AS_QUERY_MAX);
    const int status = as_template_expand_promql(template, incident->state.labels,
                                                 incident->state.annotations, &text, error);
    const char *result =
        status == 0 ? as_arena_strdup(&engine->arena, text.data ? text.data : "") : NULL;
    as_buf_deinit(&text);
    return result;
}

/* NULL: the text is written in the rule. */
static const char *get_written(const struct as_template *template)
{
    return template && !as_template_is_plain(template) ? as_template_get_text(template) : NULL;
}

static struct as_query query_of_source(const struct as_source *source, const char *text)
{
    return (struct as_query){
        .text = text,
        .form = source->per_pod ? AS_QUERY_PER_POD : AS_QUERY_NUMBER,
        .pod_label = source->per_pod ? source->pod_label : NULL,
        .written = get_written(source->query),
    };
}

/* The query does not depend on the incident. */
bool sources_is_same_for_all(const struct as_rule *rule)
{
    return rule->source.kind == AS_SOURCE_NODES ||
           (rule->source.kind == AS_SOURCE_QUERY && as_template_is_plain(rule->source.query));
}

const char *sources_get_guard(struct as_engine *engine, const struct as_rule *rule,
                              const struct incident *incident)
{
    if (rule->guard_kind != AS_GUARD_QUERY)
        return "";
    struct as_error error = AS_ERROR_INIT;
    const char *text = expand(engine, rule->guard, incident, &error);
    return text ? text : SOURCES_NO_GUARD;
}

static void ask_for_guard(struct as_engine *engine, struct target *target,
                          const struct as_rule *rule, const char *text)
{
    if (*text && strcmp(text, SOURCES_NO_GUARD) != 0)
        ask_for(engine, target, rule,
                &(struct as_query){
                    .text = text, .form = AS_QUERY_ANY, .written = get_written(rule->guard)});
}

static void source_ask_for_group(struct as_engine *engine, struct target *target,
                                 const struct group *group)
{
    const struct as_rule *rule = group->rule;
    const struct binding *binding;
    const bool has_query = rule->source.kind == AS_SOURCE_QUERY;
    const bool has_guard =
        rule->guard_kind == AS_GUARD_QUERY && rule->action.kind != AS_ACTION_SCALE_UP;
    const bool is_same = (!has_query || sources_is_same_for_all(rule)) &&
                         (!has_guard || as_template_is_plain(rule->guard));
    if (!has_query && !has_guard)
        return;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (binding_get_due(binding).us > engine->mono.us)
            continue;
        struct as_error error = AS_ERROR_INIT;
        const char *text =
            has_query ? expand(engine, rule->source.query, binding->incident, &error) : NULL;
        if (text) {
            const struct as_query query = query_of_source(&rule->source, text);
            ask_for(engine, target, rule, &query);
        }
        if (has_guard)
            ask_for_guard(engine, target, rule, sources_get_guard(engine, rule, binding->incident));
        if (is_same)
            return;
    }
}

static void ask_for_rules(struct as_engine *engine, struct target *target, bool dry_run)
{
    struct group *group;
    const struct ending *ending;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (group->rule->dry_run == dry_run)
            source_ask_for_group(engine, target, group);
    }
    TAILQ_FOREACH (ending, endings_get(target), in_target) {
        if (ending->rule && ending->rule->dry_run == dry_run)
            ask_for_guard(engine, target, ending->rule, ending->state.guard);
    }
}

/* Asks new queries of this decision. Rules in dry run get the remaining room. */
void sources_ask(struct as_engine *engine, struct target *target)
{
    ask_for_rules(engine, target, false);
    ask_for_rules(engine, target, true);
}

static void copy_samples(struct ask *ask, const struct as_query_result *result)
{
    struct as_sample *samples = as_arena_alloc(&ask->arena, result->sample_count, sizeof(*samples));
    for (size_t i = 0; i < result->sample_count; i++) {
        samples[i] = result->samples[i];
        samples[i].pod = as_arena_strdup(&ask->arena, result->samples[i].pod);
    }
    ask->result.samples = samples;
}

/* The target of the answered query; NULL: nobody waits for it any more. */
struct target *sources_answer(struct as_engine *engine, uint64_t call_id,
                              const struct as_query_result *result)
{
    struct ask key = {.call_id = call_id};
    struct ask *ask = RB_FIND(ask_tree, &engine->asks, &key);
    if (!ask)
        return NULL;
    RB_REMOVE(ask_tree, &engine->asks, ask);
    ask->is_answered = true;
    ask->result = *result;
    ask->result.error = as_arena_strdup(&ask->arena, result->error);
    copy_samples(ask, result);
    ask->target->asks_open--;
    return ask->target;
}

/* Whether a guard has returned data; an empty text is no guard. */
bool sources_is_guard_met(const struct target *target, const char *text)
{
    if (!*text)
        return true;
    const struct ask *ask =
        ask_find(target, &(struct as_query){.text = text, .form = AS_QUERY_ANY});
    return ask && ask->is_answered && !ask->result.error;
}

/* Formats texts like "the label is not a number: "..."", in the step's memory. */
static const char *quote(struct as_engine *engine, const char *before, const char *what,
                         const char *between, const char *name)
{
    struct as_buf text = AS_BUF_INIT(AS_QUERY_ERROR_MAX - 1);
    char shown[SHOWN_MAX + 1];
    const size_t size = as_str_cut_utf8(name, strlen(name), SHOWN_MAX);
    memcpy(shown, name, size);
    shown[size] = '\0';
    as_buf_printf(&text, "%s%s%s \"%s\"", before, what, between, shown);
    const char *copy = as_arena_strdup(&engine->arena, text.data ? text.data : "");
    as_buf_deinit(&text);
    return copy;
}

/* From a label or an annotation. */
static void source_read_text(struct as_engine *engine, const struct as_source *source,
                             const struct incident *incident, struct as_proposal *proposal,
                             const char **text_out)
{
    const bool is_label = source->kind == AS_SOURCE_LABEL;
    const char *what = is_label ? "label" : "annotation";
    const char *text = as_labels_get(
        is_label ? incident->state.labels : incident->state.annotations, source->name);
    *text_out = text;
    if (!*text) {
        proposal->error = quote(engine, "the alert has no ", what, "", source->name);
    } else if (as_number_parse_double(text, strlen(text), &proposal->value) == 0) {
        proposal->has_value = true;
    } else {
        proposal->value = 0;
        proposal->error = quote(engine, "the ", what, " is not a number:", text);
    }
}

static void read_query(struct as_engine *engine, const struct target *target,
                       const struct as_source *source, const struct incident *incident,
                       struct as_proposal *proposal, const char **text_out)
{
    struct as_error error = AS_ERROR_INIT;
    const char *text = expand(engine, source->query, incident, &error);
    *text_out = text ? text : "";
    if (!text) {
        proposal->error = as_arena_strdup(&engine->arena, error.text);
        return;
    }
    const struct as_query query = query_of_source(source, text);
    const struct ask *ask = ask_find(target, &query);
    if (!ask) {
        proposal->error = "too many queries for one target";
    } else if (ask->result.error) {
        proposal->error = ask->result.error;
    } else if (source->per_pod) {
        proposal->samples = ask->result.samples;
        proposal->sample_count = ask->result.sample_count;
    } else {
        proposal->has_value = true;
        proposal->value = ask->result.value;
    }
}

static bool has_negative(const struct as_proposal *proposal)
{
    for (size_t i = 0; i < proposal->sample_count; i++) {
        if (proposal->samples[i].value < 0)
            return true;
    }
    return proposal->has_value && proposal->value < 0;
}

/* A size that follows a value cannot follow a negative one: the query is wrong, which is no reason
 * to go down to the minimum. Steps without a goal may have negative values. */
static void refuse_negative(struct as_proposal *proposal)
{
    const struct as_action *action = &proposal->action;
    const bool is_followed = action->kind == AS_ACTION_TRACK ||
                             action->kind == AS_ACTION_PASS_THROUGH || as_action_has_goal(action);
    if (!is_followed || !has_negative(proposal))
        return;
    proposal->has_value = false;
    proposal->value = 0;
    proposal->samples = NULL;
    proposal->sample_count = 0;
    proposal->error = "the value is negative";
}

/* The rule's value for an incident; `text_out` distinguishes values. */
void sources_read(struct as_engine *engine, const struct target *target, const struct as_rule *rule,
                  const struct incident *incident, struct as_proposal *proposal,
                  const char **text_out)
{
    const struct as_source *source = &rule->source;
    switch (source->kind) {
    case AS_SOURCE_NONE: break;
    case AS_SOURCE_ANNOTATION:
    case AS_SOURCE_LABEL: source_read_text(engine, source, incident, proposal, text_out); break;
    case AS_SOURCE_QUERY: read_query(engine, target, source, incident, proposal, text_out); break;
    case AS_SOURCE_NODES: /* as_decide reads the value out of what was seen */
        proposal->nodes = source->nodes;
        *text_out = source->name;
        break;
    }
    refuse_negative(proposal);
}

bool sources_need_pods(const struct target *target)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct as_action *action = &group->rule->action;
        if ((as_action_has_goal(action) && group->rule->source.kind != AS_SOURCE_NODES) ||
            (action->kind == AS_ACTION_TRACK &&
             (group->rule->source.per_pod || action->track.goal == AS_GOAL_VALUE)))
            return true;
    }
    return false;
}

bool sources_need_nodes(const struct target *target)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        if (group->rule->source.kind == AS_SOURCE_NODES)
            return true;
    }
    return false;
}

/* Whether the target's rules use limits or requests; the configuration ensures that they agree. */
static bool goes_by_limits(const struct target *target, enum as_resource resource)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct as_action *action = &group->rule->action;
        if (action->kind == AS_ACTION_TRACK && action->track.goal == AS_GOAL_UTILIZATION &&
            action->track.resource == resource)
            return action->track.of_limits;
    }
    return false;
}

static const struct as_track *get_track(const struct group *group)
{
    const struct as_action *action = &group->rule->action;
    return action->kind == AS_ACTION_TRACK ? &action->track : NULL;
}

bool sources_need_owners(const struct target *target)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct as_track *track = get_track(group);
        if (track && track->by_owner)
            return true;
    }
    return false;
}

static bool is_named_by_rule(const struct target *target, const char *container)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct as_track *track = get_track(group);
        if (track && track->container && strcmp(track->container, container) == 0)
            return true;
    }
    return false;
}

/* The containers that rules name: a decision needs no others, which would fill the log. */
static void fill_containers(struct as_engine *engine, const struct target *target,
                            const struct as_pod_seen *seen, const bool by_limits[],
                            struct as_pod *pod)
{
    struct as_pod_container *containers =
        as_arena_alloc(&engine->arena, seen->container_count, sizeof(*containers));
    for (size_t i = 0; i < seen->container_count; i++) {
        const struct as_container_seen *of = &seen->containers[i];
        if (!is_named_by_rule(target, of->name))
            continue;
        struct as_pod_container *container = &containers[pod->container_count++];
        container->name = as_arena_strdup(&engine->arena, of->name);
        for (enum as_resource r = 0; r < AS_RESOURCE_COUNT; r++)
            container->resource[r] = by_limits[r] ? of->limits[r] : of->requests[r];
    }
    if (pod->container_count > 0)
        pod->containers = containers;
}

const struct as_nodes_seen *sources_copy_nodes(struct as_arena *arena,
                                               const struct as_nodes_seen *nodes)
{
    if (!nodes)
        return NULL;
    struct as_nodes_seen *copy = as_arena_alloc(arena, 1, sizeof(*copy));
    *copy = *nodes;
    copy->error = as_arena_strdup(arena, nodes->error);
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++)
        copy->lacking[i] = as_arena_strdup(arena, nodes->lacking[i]);
    copy->template_ = NULL; /* already taken */
    return copy;
}

void sources_fill_pods(struct as_engine *engine, const struct target *target,
                       const struct as_observation *observation, struct as_decide_input *input)
{
    if (!observation->has_pods)
        return;
    const bool by_owner = sources_need_owners(target);
    bool by_limits[AS_RESOURCE_COUNT];
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++)
        by_limits[i] = goes_by_limits(target, i);
    struct as_pod *pods = as_arena_alloc(&engine->arena, observation->pod_count, sizeof(*pods));
    for (size_t i = 0; i < observation->pod_count; i++) {
        const struct as_pod_seen *seen = &observation->pods[i];
        pods[i] = (struct as_pod){
            .name = as_arena_strdup(&engine->arena, seen->name),
            .phase = seen->phase,
            .ready = seen->ready,
            .deleting = seen->deleting,
            .owner = by_owner ? seen->owner : AS_POD_OF_TARGET,
            .start_time = seen->start_time,
            .ready_since = seen->ready_since,
        };
        for (enum as_resource r = 0; r < AS_RESOURCE_COUNT; r++)
            pods[i].resource[r] = by_limits[r] ? seen->limits[r] : seen->requests[r];
        fill_containers(engine, target, seen, by_limits, &pods[i]);
    }
    input->has_pods = true;
    input->pods = pods;
    input->pod_count = observation->pod_count;
}

/* When values may be others. */
as_mono_time sources_get_next_due(const struct as_engine *engine, const struct target *target)
{
    struct group *group;
    int64_t interval = INT64_MAX;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct as_action *action = &group->rule->action;
        if (group->rule->is_always ||
            (!as_source_is_asked(&group->rule->source) && !action->is_fit && !action->is_take))
            continue;
        const int64_t every = group->rule->every_us > 0 ? group->rule->every_us : ASK_AGAIN_US;
        if (every < interval)
            interval = every;
    }
    const as_mono_time due = {as_time_add(engine->mono.us, interval)};
    const as_mono_time always = always_get_next_due(target, engine->mono);
    return always.us < due.us ? always : due;
}
