/*
 * Reads decision inputs (docs/decision.md). Defaults are set first, then what is given replaces
 * them. Strings stay in the JSON document, which the result keeps.
 */
#include <alertscaler/wire/decision.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "decision_private.h"

struct decoder {
    struct as_decide_document *document;
    struct as_arena *arena;
};

const struct as_strict_word as_decision_phases[] = {
    {"Pending", AS_POD_PENDING}, {"Running", AS_POD_RUNNING}, {"Succeeded", AS_POD_SUCCEEDED},
    {"Failed", AS_POD_FAILED},   {"Unknown", AS_POD_UNKNOWN}, {0},
};
const struct as_strict_word as_decision_selects[] = {
    {"Max", AS_SELECT_MAX}, {"Min", AS_SELECT_MIN}, {"Disabled", AS_SELECT_DISABLED}, {0}};
const struct as_strict_word as_decision_policy_types[] = {
    {"Pods", AS_POLICY_PODS}, {"Percent", AS_POLICY_PERCENT}, {0}};
const struct as_strict_word as_decision_resources[] = {
    {"cpu", AS_RESOURCE_CPU}, {"memory", AS_RESOURCE_MEMORY}, {0}};

static const struct as_bounds_config default_config = {
    .min = 1,
    .tolerance_up = 0.1,
    .tolerance_down = 0.1,
    .cpu_initialization_us = 300 * AS_US_PER_S,
    .initial_readiness_delay_us = 30 * AS_US_PER_S,
};

static int decode_policies(struct as_strict *reader, struct as_scaling_rules *rules)
{
    json_t *list = NULL;
    size_t count = 0;
    int error = as_strict_take_list(reader, "policies", &count, &list);

    if (error || !list)
        return error;
    if (count == 0 || count > AS_POLICIES_MAX)
        return as_strict_fail(reader, "policies", "expected 1 to %d policies", AS_POLICIES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct as_policy *policy = &rules->policies[i];
        struct as_strict item;
        int type = 0;
        if ((error = as_strict_init_item(&item, reader, "policies", list, i)) ||
            (error = as_strict_require(&item, "type")) ||
            (error = as_strict_require(&item, "value")) ||
            (error = as_strict_require(&item, "periodSeconds")) ||
            (error = as_strict_take_word(&item, "type", as_decision_policy_types, &type)) ||
            (error = as_strict_take_i32(&item, "value", 0, &policy->value)) ||
            (error = as_strict_take_seconds(&item, "periodSeconds", &policy->period_us)) ||
            (error = as_strict_finish(&item)))
            return error;
        policy->type = (enum as_policy_type)type;
    }
    rules->policy_count = (uint32_t)count;
    return 0;
}

static int decode_scaling_rules(struct as_strict *parent, const char *name,
                                struct as_scaling_rules *rules)
{
    struct as_strict reader;
    int error, select = (int)rules->select;

    if ((error = as_strict_init_object(&reader, parent, name)) ||
        (error =
             as_strict_take_seconds(&reader, "stabilizationWindowSeconds", &rules->window_us)) ||
        (error = as_strict_take_word(&reader, "selectPolicy", as_decision_selects, &select)) ||
        (error = decode_policies(&reader, rules)))
        return error;
    rules->select = (enum as_select_policy)select;
    return as_strict_finish(&reader);
}

static int decode_behavior(struct as_strict *target, struct as_bounds_config *config)
{
    struct as_strict reader;
    int error = as_strict_init_object(&reader, target, "behavior");

    if (error || !reader.object)
        return error;
    config->has_behavior = true;
    config->behavior = as_behavior_default;
    if ((error = decode_scaling_rules(&reader, "scaleUp", &config->behavior.up)) ||
        (error = decode_scaling_rules(&reader, "scaleDown", &config->behavior.down)))
        return error;
    return as_strict_finish(&reader);
}

static int decode_cooldown(struct as_strict *target, struct as_cooldown *cooldown)
{
    struct as_strict reader;
    int error;

    if ((error = as_strict_init_object(&reader, target, "cooldown")) ||
        (error = as_strict_take_seconds(&reader, "up", &cooldown->up_us)) ||
        (error = as_strict_take_seconds(&reader, "down", &cooldown->down_us)) ||
        (error = as_strict_take_seconds(&reader, "up_after_down", &cooldown->up_after_down_us)))
        return error;
    return as_strict_finish(&reader);
}

static int decode_tolerance(struct as_strict *target, struct as_bounds_config *config)
{
    struct as_strict reader;
    int error;

    if ((error = as_strict_init_object(&reader, target, "tolerance")) ||
        (error = as_strict_take_positive(&reader, "up", &config->tolerance_up)) ||
        (error = as_strict_take_positive(&reader, "down", &config->tolerance_down)))
        return error;
    return as_strict_finish(&reader);
}

static int decode_target(struct as_strict *root, struct as_decide_input *input)
{
    struct as_bounds_config *config = &input->config;
    struct as_strict reader;
    int error;

    if ((error = as_strict_require(root, "target")) ||
        (error = as_strict_init_object(&reader, root, "target")) ||
        (error = as_strict_require(&reader, "max")) ||
        (error = as_strict_take_string(&reader, "id", &input->target)) ||
        (error = as_strict_take_i32(&reader, "min", 0, &config->min)) ||
        (error = as_strict_take_i32(&reader, "max", 0, &config->max)))
        return error;
    if (config->min > config->max)
        return as_strict_fail(&reader, "min", "%d is above max, %d", config->min, config->max);
    if ((error = decode_cooldown(&reader, &config->cooldown)) ||
        (error = decode_tolerance(&reader, config)) ||
        (error = as_strict_take_bool(&reader, "enforce_bounds", &config->enforce_bounds)) ||
        (error = as_strict_take_bool(&reader, "dry_run", &input->dry_run)) ||
        (error = as_strict_take_seconds(&reader, "cpu_initialization_seconds",
                                        &config->cpu_initialization_us)) ||
        (error = as_strict_take_seconds(&reader, "initial_readiness_delay_seconds",
                                        &config->initial_readiness_delay_us)) ||
        (error = decode_behavior(&reader, config)))
        return error;
    return as_strict_finish(&reader);
}

/* true, false, or null: unknown */
static int decode_ready(struct as_strict *reader, enum as_tristate *ready)
{
    bool is_ready = *ready == AS_TRUE;

    if (json_is_null(json_object_get(reader->object, "ready"))) {
        (void)as_strict_take(reader, "ready");
        *ready = AS_UNKNOWN;
        return 0;
    }
    int error = as_strict_take_bool(reader, "ready", &is_ready);
    *ready = is_ready ? AS_TRUE : AS_FALSE;
    return error;
}

static int decode_pod(struct as_strict *reader, struct as_pod *pod)
{
    struct as_strict resources;
    int error, phase = AS_POD_RUNNING;

    *pod = (struct as_pod){.name = "", .ready = AS_TRUE, .resource = {NAN, NAN}};
    if ((error = as_strict_take_string(reader, "name", &pod->name)) ||
        (error = as_strict_take_word(reader, "phase", as_decision_phases, &phase)) ||
        (error = decode_ready(reader, &pod->ready)) ||
        (error = as_strict_take_bool(reader, "deleting", &pod->deleting)) ||
        (error = as_strict_take_time(reader, "start_time", &pod->start_time)) ||
        (error = as_strict_take_time(reader, "ready_since", &pod->ready_since)) ||
        (error = as_strict_init_object(&resources, reader, "resources")) ||
        (error = as_strict_take_positive(&resources, "cpu", &pod->resource[AS_RESOURCE_CPU])) ||
        (error =
             as_strict_take_positive(&resources, "memory", &pod->resource[AS_RESOURCE_MEMORY])) ||
        (error = as_strict_finish(&resources)))
        return error;
    pod->phase = (enum as_pod_phase)phase;
    return as_strict_finish(reader);
}

static int compare_pods(const void *a, const void *b)
{
    return strcmp(((const struct as_pod *)a)->name, ((const struct as_pod *)b)->name);
}

static int decode_pods(struct decoder *decoder, struct as_strict *observed)
{
    struct as_decide_input *input = &decoder->document->input;
    json_t *list = NULL;
    size_t count = 0;
    int error = as_strict_take_list(observed, "pods", &count, &list);

    if (error || !list)
        return error;
    struct as_pod *pods = as_arena_alloc(decoder->arena, count, sizeof(*pods));
    for (size_t i = 0; i < count; i++) {
        struct as_strict item;
        if ((error = as_strict_init_item(&item, observed, "pods", list, i)) ||
            (error = decode_pod(&item, &pods[i])))
            return error;
    }
    if (count > 1)
        qsort(pods, count, sizeof(*pods), compare_pods);
    for (size_t i = 1; i < count; i++) {
        if (*pods[i].name && strcmp(pods[i - 1].name, pods[i].name) == 0)
            return as_strict_fail(observed, "pods", "\"%s\" is there twice", pods[i].name);
    }
    input->has_pods = true;
    input->pods = pods;
    input->pod_count = count;
    return 0;
}

static int decode_observed(struct decoder *decoder, struct as_strict *root)
{
    struct as_decide_input *input = &decoder->document->input;
    struct as_strict reader;
    int error;

    if ((error = as_strict_require(root, "observed")) ||
        (error = as_strict_init_object(&reader, root, "observed")) ||
        (error = as_strict_require(&reader, "replicas")) ||
        (error = as_strict_take_i32(&reader, "replicas", 0, &input->replicas)))
        return error;
    input->status_replicas = input->replicas;
    if ((error = as_strict_take_i32(&reader, "status_replicas", 0, &input->status_replicas)) ||
        (error = decode_pods(decoder, &reader)))
        return error;
    return as_strict_finish(&reader);
}

static int compare_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_events(const void *left, const void *right)
{
    const struct as_scale_event *a = left, *b = right;
    int order = compare_i64(a->at.us, b->at.us);
    return order ? order : compare_i64(a->change, b->change);
}

static int decode_events(struct decoder *decoder, struct as_strict *history)
{
    struct as_decide_input *input = &decoder->document->input;
    json_t *list = NULL;
    size_t count = 0;
    int error = as_strict_take_list(history, "scale_events", &count, &list);

    if (error || !list)
        return error;
    struct as_scale_event *events = as_arena_alloc(decoder->arena, count, sizeof(*events));
    for (size_t i = 0; i < count; i++) {
        struct as_strict item;
        as_maybe_time at;
        if ((error = as_strict_init_item(&item, history, "scale_events", list, i)) ||
            (error = as_strict_require(&item, "at")) ||
            (error = as_strict_require(&item, "change")) ||
            (error = as_strict_take_time(&item, "at", &at)) ||
            (error = as_strict_take_i32(&item, "change", -AS_SIZE_MAX, &events[i].change)) ||
            (error = as_strict_finish(&item)))
            return error;
        events[i].at = at.at;
    }
    if (count > 1)
        qsort(events, count, sizeof(*events), compare_events);
    input->events = events;
    input->event_count = count;
    return 0;
}

static int compare_recommendations(const void *left, const void *right)
{
    const struct as_recommendation *a = left, *b = right;
    int order = compare_i64(a->at.us, b->at.us);
    return order ? order : compare_i64(a->replicas, b->replicas);
}

static int decode_recommendations(struct decoder *decoder, struct as_strict *history)
{
    struct as_decide_input *input = &decoder->document->input;
    json_t *list = NULL;
    size_t count = 0;
    int error = as_strict_take_list(history, "recommendations", &count, &list);

    if (error || !list)
        return error;
    struct as_recommendation *old = as_arena_alloc(decoder->arena, count, sizeof(*old));
    for (size_t i = 0; i < count; i++) {
        struct as_strict item;
        as_maybe_time at;
        if ((error = as_strict_init_item(&item, history, "recommendations", list, i)) ||
            (error = as_strict_require(&item, "at")) ||
            (error = as_strict_require(&item, "replicas")) ||
            (error = as_strict_take_time(&item, "at", &at)) ||
            (error = as_strict_take_i32(&item, "replicas", 0, &old[i].replicas)) ||
            (error = as_strict_finish(&item)))
            return error;
        old[i].at = at.at;
    }
    if (count > 1)
        qsort(old, count, sizeof(*old), compare_recommendations);
    input->recommendations = old;
    input->recommendation_count = count;
    return 0;
}

static int decode_history(struct decoder *decoder, struct as_strict *root)
{
    struct as_decide_input *input = &decoder->document->input;
    struct as_strict reader;
    int error;

    if ((error = as_strict_init_object(&reader, root, "history")) ||
        (error = as_strict_take_time(&reader, "last_up", &input->last_up)) ||
        (error = as_strict_take_time(&reader, "last_down", &input->last_down)) ||
        (input->version >= 2 &&
         (error = as_strict_take_time(&reader, "last_step_down", &input->last_step_down))) ||
        (error = decode_events(decoder, &reader)) ||
        (error = decode_recommendations(decoder, &reader)))
        return error;
    return as_strict_finish(&reader);
}

static int decode_flags(struct as_strict *root, struct as_decide_input *input)
{
    struct as_strict reader;
    int error;

    if ((error = as_strict_init_object(&reader, root, "flags")) ||
        (error = as_strict_take_bool(&reader, "paused", &input->flags.paused)) ||
        (error = as_strict_take_bool(&reader, "in_progress", &input->flags.in_progress)) ||
        (error =
             as_strict_take_bool(&reader, "budget_exhausted", &input->flags.budget_exhausted)) ||
        (error = as_strict_take_bool(&reader, "guarded", &input->flags.guarded)))
        return error;
    return as_strict_finish(&reader);
}

static int compare_samples(const void *a, const void *b)
{
    return strcmp(((const struct as_sample *)a)->pod, ((const struct as_sample *)b)->pod);
}

static int decode_samples(struct decoder *decoder, struct as_strict *reader,
                          struct as_proposal *proposal)
{
    json_t *list = NULL;
    size_t count = 0;
    int error = as_strict_take_list(reader, "samples", &count, &list);

    if (error || !list)
        return error;
    struct as_sample *samples = as_arena_alloc(decoder->arena, count, sizeof(*samples));
    for (size_t i = 0; i < count; i++) {
        struct as_strict item;
        samples[i].pod = "";
        if ((error = as_strict_init_item(&item, reader, "samples", list, i)) ||
            (error = as_strict_require(&item, "value")) ||
            (error = as_strict_take_string(&item, "pod", &samples[i].pod)) ||
            (error = as_strict_take_double(&item, "value", &samples[i].value)) ||
            (error = as_strict_take_time(&item, "at", &samples[i].at)) ||
            (error = as_strict_take_seconds(&item, "window", &samples[i].window_us)) ||
            (error = as_strict_finish(&item)))
            return error;
    }
    if (count > 1)
        qsort(samples, count, sizeof(*samples), compare_samples);
    for (size_t i = 1; i < count; i++) {
        if (*samples[i].pod && strcmp(samples[i - 1].pod, samples[i].pod) == 0)
            return as_strict_fail(reader, "samples", "two for the pod \"%s\"", samples[i].pod);
    }
    proposal->samples = samples;
    proposal->sample_count = count;
    return 0;
}

static int decode_proposal(struct decoder *decoder, struct as_strict *reader,
                           struct as_proposal *proposal)
{
    const int32_t version = decoder->document->input.version;
    int error;

    proposal->has_value = as_strict_has(reader, "value");
    if (!proposal->has_value)
        (void)as_strict_take(reader, "value");
    else if ((error = as_strict_take_double(reader, "value", &proposal->value)))
        return error;
    proposal->needs_news = version >= 2 && json_object_get(reader->object, "reported");
    if ((proposal->needs_news &&
         (error = as_strict_take_time(reader, "reported", &proposal->reported))) ||
        (error = as_strict_take_string(reader, "rule", &proposal->rule)) ||
        (error = as_strict_take_string(reader, "incident", &proposal->incident)) ||
        (error = as_decision_decode_action(reader, decoder->arena, version, &proposal->action)) ||
        (error = decode_samples(decoder, reader, proposal)) ||
        (error = as_strict_take_string(reader, "error", &proposal->error)))
        return error;
    if (proposal->samples &&
        (proposal->action.kind != AS_ACTION_TRACK || proposal->action.track.goal == AS_GOAL_VALUE))
        return as_strict_fail(reader, "samples",
                              "only for track with \"average_value\" or \"utilization\"");
    if (proposal->samples && proposal->has_value)
        return as_strict_fail(reader, "samples", "there is already a value");
    return as_strict_finish(reader);
}

static int decode_proposals(struct decoder *decoder, struct as_strict *root)
{
    struct as_decide_document *document = decoder->document;
    json_t *list = NULL;
    size_t count = 0;
    int error;

    if ((error = as_strict_require(root, "proposals")) ||
        (error = as_strict_take_list(root, "proposals", &count, &list)))
        return error;
    struct as_proposal *proposals = as_arena_alloc(decoder->arena, count, sizeof(*proposals));
    for (size_t i = 0; i < count; i++) {
        struct as_strict item;
        if ((error = as_strict_init_item(&item, root, "proposals", list, i)) ||
            (error = decode_proposal(decoder, &item, &proposals[i])))
            return error;
    }
    document->input.proposals = proposals;
    document->input.proposal_count = count;
    document->results = as_arena_alloc(decoder->arena, count, sizeof(*document->results));
    return 0;
}

static int decode_root(struct decoder *decoder, struct as_error *error)
{
    struct as_decide_input *input = &decoder->document->input;
    struct as_strict root;
    int64_t version;
    as_maybe_time now;
    int code;

    if ((code = as_strict_init(&root, decoder->document->root, error)) ||
        (code = as_strict_require(&root, "v")) ||
        (code = as_strict_take_i64(&root, "v", AS_DECIDE_OLDEST_VERSION, AS_DECIDE_VERSION,
                                   &version)) ||
        (code = as_strict_require(&root, "now")) ||
        (code = as_strict_take_time(&root, "now", &now)))
        return code;
    input->version = (int32_t)version;
    input->now = now.at;
    input->config = default_config;
    if ((code = decode_target(&root, input)) || (code = decode_observed(decoder, &root)) ||
        (code = decode_history(decoder, &root)) || (code = decode_flags(&root, input)) ||
        (code = decode_proposals(decoder, &root)))
        return code;
    return as_strict_finish(&root);
}

int as_decision_decode_input_value(struct json_t *value, struct as_decide_document **document_out,
                                   struct as_error *error)
{
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *document = as_xcalloc(1, sizeof(*document));
    struct decoder decoder = {.document = document, .arena = &document->arena};

    document->root = json_incref(value);
    int code = decode_root(&decoder, error);
    if (code)
        return code;
    *document_out = document;
    document = NULL;
    return 0;
}

int as_decision_decode_input(const char *json, size_t size,
                             struct as_decide_document **document_out, struct as_error *error)
{
    json_error_t problem;
    json_t *value = json_loadb(json, size, JSON_REJECT_DUPLICATES, &problem);

    if (!value) {
        as_error_set(error, "not JSON: column %d: %s", problem.column, problem.text);
        return -EBADMSG;
    }
    int code = as_decision_decode_input_value(value, document_out, error);
    json_decref(value);
    return code;
}

struct as_decide_document *as_decide_document_free(struct as_decide_document *document)
{
    if (document) {
        json_decref(document->root);
        as_arena_deinit(&document->arena);
        free(document);
    }
    return NULL;
}
