/*
 * Reads decision inputs (docs/decision.md). Defaults are set first, given values replace them.
 * The result keeps nothing of the JSON document.
 *
 * Long because the document is one object, read in its order.
 */
#include <alertscaler/decide/decision.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "decision_private.h"
#include "decision_survey.h"
#include <alertscaler/doc/json_dump.h>

#define CORES_MAX 1000000000        /* of all nodes */
#define INPUT_MAX ((size_t)1 << 30) /* bytes of a parsed value as text */

struct decoder {
    struct as_decide_document *document;
    struct as_arena *arena;
};

const struct as_read_word as_decision_phases[] = {
    {"Pending", AS_POD_PENDING}, {"Running", AS_POD_RUNNING}, {"Succeeded", AS_POD_SUCCEEDED},
    {"Failed", AS_POD_FAILED},   {"Unknown", AS_POD_UNKNOWN}, {0},
};
const struct as_read_word as_decision_selects[] = {
    {"Max", AS_SELECT_MAX}, {"Min", AS_SELECT_MIN}, {"Disabled", AS_SELECT_DISABLED}, {0}};
const struct as_read_word as_decision_policy_types[] = {
    {"Pods", AS_POLICY_PODS}, {"Percent", AS_POLICY_PERCENT}, {0}};
const struct as_read_word as_decision_resources[] = {
    {"cpu", AS_RESOURCE_CPU}, {"memory", AS_RESOURCE_MEMORY}, {0}};

#define READ_WORD(enumerator, word) {word, enumerator},
static const struct as_read_word nodes_words[] = {AS_NODES_WORDS(READ_WORD){0}};

#define WAYS_WORD(enumerator, word) {word, enumerator},
const struct as_read_word as_decision_ways[] = {AS_WAYS_WORDS(WAYS_WORD){0}};
#define HOLDER_WORD(enumerator, word, name) {word, enumerator},
static const struct as_read_word holder_words[] = {AS_HOLDERS(HOLDER_WORD){0}};

static const struct as_bounds_config default_config = {
    .min = 1,
    .tolerance_up = 0.1,
    .tolerance_down = 0.1,
    .cpu_initialization_us = 300 * AS_US_PER_S,
    .initial_readiness_delay_us = 30 * AS_US_PER_S,
};

static void decode_policies(struct as_reader *reader, struct as_scaling_rules *rules)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, "policies", &count);

    if (!as_read_has(reader, "policies"))
        return;
    if (count == 0 || count > AS_POLICIES_MAX) {
        as_read_fail(reader, "policies", "expected 1 to %d policies", AS_POLICIES_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_policy *policy = &rules->policies[i];
        struct as_reader item;
        as_read_item(&item, reader, "policies", at, i);
        as_read_require(&item, "type");
        as_read_require(&item, "value");
        as_read_require(&item, "periodSeconds");
        policy->type =
            (enum as_policy_type)as_read_enum(&item, "type", as_decision_policy_types, 0);
        as_read_i32(&item, "value", 0, &policy->value);
        as_read_seconds(&item, "periodSeconds", &policy->period_us);
        as_read_end(&item);
    }
    rules->policy_count = (uint32_t)count;
}

static void decode_scaling_rules(struct as_reader *parent, const char *name,
                                 struct as_scaling_rules *rules)
{
    struct as_reader reader;

    as_read_object(&reader, parent, name);
    as_read_seconds(&reader, "stabilizationWindowSeconds", &rules->window_us);
    rules->select = (enum as_select_policy)as_read_enum(&reader, "selectPolicy",
                                                        as_decision_selects, (int)rules->select);
    decode_policies(&reader, rules);
    as_read_end(&reader);
}

static void decode_behavior(struct as_reader *target, struct as_bounds_config *config)
{
    struct as_reader reader;

    as_read_object(&reader, target, "behavior");
    if (!reader.object)
        return;
    config->has_behavior = true;
    config->behavior = as_behavior_default;
    decode_scaling_rules(&reader, "scaleUp", &config->behavior.up);
    decode_scaling_rules(&reader, "scaleDown", &config->behavior.down);
    as_read_end(&reader);
}

static void decode_cooldown(struct as_reader *target, struct as_cooldown *cooldown)
{
    struct as_reader reader;

    as_read_object(&reader, target, "cooldown");
    as_read_seconds(&reader, "up", &cooldown->up_us);
    as_read_seconds(&reader, "down", &cooldown->down_us);
    cooldown->has_down_after_down = as_read_has(&reader, "down_after_down");
    as_read_seconds(&reader, "down_after_down", &cooldown->down_after_down_us);
    as_read_seconds(&reader, "up_after_down", &cooldown->up_after_down_us);
    as_read_end(&reader);
}

static void decode_tolerance(struct as_reader *target, struct as_bounds_config *config)
{
    struct as_reader reader;

    as_read_object(&reader, target, "tolerance");
    as_read_positive(&reader, "up", &config->tolerance_up);
    as_read_positive(&reader, "down", &config->tolerance_down);
    as_read_end(&reader);
}

/* What schedules make of the bounds. */
static void decode_schedules(struct decoder *decoder, struct as_reader *target)
{
    struct as_decide_input *input = &decoder->document->input;

    as_read_bool(target, "enforce_min", &input->enforce_min);
    as_read_i32(target, "floor", 0, &input->floor);
    input->has_own_min = as_read_has(target, "own_min");
    as_read_i32(target, "own_min", 0, &input->own_min);
    input->schedules =
        decision_read_texts(target, "schedules", decoder->arena, &input->schedule_count);
}

static void decode_target(struct decoder *decoder, struct as_reader *root)
{
    struct as_decide_input *input = &decoder->document->input;
    struct as_bounds_config *config = &input->config;
    struct as_reader reader;

    as_read_require(root, "target");
    as_read_object(&reader, root, "target");
    as_read_require(&reader, "max");
    decision_read_text(&reader, "id", decoder->arena, &input->target);
    as_read_i32(&reader, "min", 0, &config->min);
    as_read_i32(&reader, "max", 0, &config->max);
    if (config->min > config->max)
        as_read_fail(&reader, "min", "%d is above max, %d", config->min, config->max);
    decode_cooldown(&reader, &config->cooldown);
    decode_tolerance(&reader, config);
    as_read_bool(&reader, "enforce_bounds", &config->enforce_bounds);
    as_read_bool(&reader, "dry_run", &input->dry_run);
    as_read_seconds(&reader, "cpu_initialization_seconds", &config->cpu_initialization_us);
    as_read_seconds(&reader, "initial_readiness_delay_seconds",
                    &config->initial_readiness_delay_us);
    decode_behavior(&reader, config);
    if (input->version >= 2) {
        decode_schedules(decoder, &reader);
        decision_read_pool(&reader, decoder->arena, input);
    }
    as_read_end(&reader);
}

/* true, false, or null: unknown */
static void decode_ready(struct as_reader *reader, enum as_tristate *ready)
{
    bool is_ready = *ready == AS_TRUE;

    if (tree_is(tree_find(reader->object, "ready"), TREE_NULL)) {
        (void)as_read_any(reader, "ready");
        *ready = AS_UNKNOWN;
        return;
    }
    as_read_bool(reader, "ready", &is_ready);
    *ready = is_ready ? AS_TRUE : AS_FALSE;
}

static void decode_pod(struct decoder *decoder, struct as_reader *reader, struct as_pod *pod)
{
    struct as_reader resources;

    *pod = (struct as_pod){.name = "", .ready = AS_TRUE, .resource = {NAN, NAN}};
    decision_read_text(reader, "name", decoder->arena, &pod->name);
    pod->phase =
        (enum as_pod_phase)as_read_enum(reader, "phase", as_decision_phases, AS_POD_RUNNING);
    decode_ready(reader, &pod->ready);
    as_read_bool(reader, "deleting", &pod->deleting);
    as_read_time(reader, "start_time", &pod->start_time);
    as_read_time(reader, "ready_since", &pod->ready_since);
    as_read_object(&resources, reader, "resources");
    as_read_positive(&resources, "cpu", &pod->resource[AS_RESOURCE_CPU]);
    as_read_positive(&resources, "memory", &pod->resource[AS_RESOURCE_MEMORY]);
    as_read_end(&resources);
    as_read_end(reader);
}

static int compare_pods(const void *a, const void *b)
{
    return strcmp(((const struct as_pod *)a)->name, ((const struct as_pod *)b)->name);
}

static void decode_pods(struct decoder *decoder, struct as_reader *observed)
{
    struct as_decide_input *input = &decoder->document->input;
    size_t count;
    const struct tree_value *at = as_read_list(observed, "pods", &count);

    if (!as_read_has(observed, "pods"))
        return;
    struct as_pod *pods = as_arena_alloc(decoder->arena, count, sizeof(*pods));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_read_item(&item, observed, "pods", at, i);
        decode_pod(decoder, &item, &pods[i]);
    }
    if (count > 1)
        qsort(pods, count, sizeof(*pods), compare_pods);
    for (size_t i = 1; i < count; i++) {
        if (*pods[i].name && strcmp(pods[i - 1].name, pods[i].name) == 0)
            as_read_fail(observed, "pods", "\"%s\" is there twice", pods[i].name);
    }
    input->has_pods = true;
    input->pods = pods;
    input->pod_count = count;
}

/* Cores and bytes; in whole millicores and bytes. */
static void decode_resources(struct as_reader *parent, const char *name,
                             int64_t amounts[AS_RESOURCE_COUNT])
{
    struct as_reader reader;
    double cores = 0;

    as_read_require(parent, name);
    as_read_object(&reader, parent, name);
    as_read_positive(&reader, "cpu", &cores);
    if (cores > CORES_MAX)
        as_read_fail(&reader, "cpu", "above %d cores", CORES_MAX);
    else
        amounts[AS_RESOURCE_CPU] = llround(cores * 1000);
    as_read_i64(&reader, "memory", 0, INT64_MAX, &amounts[AS_RESOURCE_MEMORY]);
    as_read_end(&reader);
}

static void decode_nodes(struct decoder *decoder, struct as_reader *observed)
{
    struct as_reader reader;

    as_read_object(&reader, observed, "nodes");
    if (!reader.object)
        return;
    struct as_nodes_seen *nodes = as_arena_alloc(decoder->arena, 1, sizeof(*nodes));
    decision_read_text(&reader, "error", decoder->arena, &nodes->error);
    if (!nodes->error) {
        as_read_require(&reader, "open");
        as_read_i64(&reader, "open", 0, AS_SIZE_MAX, &nodes->open);
        decode_resources(&reader, "requests", nodes->requests);
        decode_resources(&reader, "allocatable", nodes->allocatable);
        struct as_reader lacking;
        as_read_object(&lacking, &reader, "lacking");
        for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++)
            decision_read_text(&lacking, as_decision_resources[i].text, decoder->arena,
                               &nodes->lacking[i]);
        as_read_end(&lacking);
        as_read_bool(&reader, "template", &nodes->is_template);
        if (nodes->is_template && nodes->open > 0)
            as_read_fail(&reader, "template", "there are open nodes");
        if (decoder->document->input.version >= 3 && nodes->open == 0) {
            as_read_i64(&reader, "waiting", 0, INT64_MAX, &nodes->waiting);
            as_read_i64(&reader, "coming", 0, AS_SIZE_MAX, &nodes->coming);
        }
    }
    as_read_end(&reader);
    decoder->document->input.nodes = nodes;
}

static void decode_observed(struct decoder *decoder, struct as_reader *root)
{
    struct as_decide_input *input = &decoder->document->input;
    struct as_reader reader;

    as_read_require(root, "observed");
    as_read_object(&reader, root, "observed");
    as_read_require(&reader, "replicas");
    as_read_i32(&reader, "replicas", 0, &input->replicas);
    input->status_replicas = input->replicas;
    as_read_i32(&reader, "status_replicas", 0, &input->status_replicas);
    if (input->version >= 3)
        as_read_i32(&reader, "marked", 0, &input->marked);
    decode_pods(decoder, &reader);
    if (input->version >= 2) {
        decode_nodes(decoder, &reader);
        decision_read_survey(&reader, decoder->arena, input);
    }
    as_read_end(&reader);
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

static void decode_events(struct decoder *decoder, struct as_reader *history)
{
    struct as_decide_input *input = &decoder->document->input;
    size_t count;
    const struct tree_value *at = as_read_list(history, "scale_events", &count);

    if (!at)
        return;
    struct as_scale_event *events = as_arena_alloc(decoder->arena, count, sizeof(*events));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_maybe_time when = {.set = false};
        as_read_item(&item, history, "scale_events", at, i);
        as_read_require(&item, "at");
        as_read_require(&item, "change");
        as_read_time(&item, "at", &when);
        as_read_i32(&item, "change", -AS_SIZE_MAX, &events[i].change);
        as_read_end(&item);
        events[i].at = when.at;
    }
    if (count > 1)
        qsort(events, count, sizeof(*events), compare_events);
    input->events = events;
    input->event_count = count;
}

static int compare_recommendations(const void *left, const void *right)
{
    const struct as_recommendation *a = left, *b = right;
    int order = compare_i64(a->at.us, b->at.us);
    return order ? order : compare_i64(a->replicas, b->replicas);
}

static void decode_recommendations(struct decoder *decoder, struct as_reader *history)
{
    struct as_decide_input *input = &decoder->document->input;
    size_t count;
    const struct tree_value *at = as_read_list(history, "recommendations", &count);

    if (!at)
        return;
    struct as_recommendation *old = as_arena_alloc(decoder->arena, count, sizeof(*old));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_maybe_time when = {.set = false};
        as_read_item(&item, history, "recommendations", at, i);
        as_read_require(&item, "at");
        as_read_require(&item, "replicas");
        as_read_time(&item, "at", &when);
        as_read_i32(&item, "replicas", 0, &old[i].replicas);
        as_read_end(&item);
        old[i].at = when.at;
    }
    if (count > 1)
        qsort(old, count, sizeof(*old), compare_recommendations);
    input->recommendations = old;
    input->recommendation_count = count;
}

static void decode_history(struct decoder *decoder, struct as_reader *root)
{
    struct as_decide_input *input = &decoder->document->input;
    struct as_reader reader;

    as_read_object(&reader, root, "history");
    as_read_time(&reader, "last_up", &input->last_up);
    as_read_time(&reader, "last_down", &input->last_down);
    if (input->version >= 2)
        as_read_time(&reader, "last_step_down", &input->last_step_down);
    decode_events(decoder, &reader);
    decode_recommendations(decoder, &reader);
    if (input->survey)
        decision_read_memory(&reader,
                             &(struct survey_reader){.arena = decoder->arena,
                                                     .survey = (struct as_survey *)input->survey});
    as_read_end(&reader);
}

static void decode_flags(struct as_reader *root, struct as_decide_input *input)
{
    struct as_reader reader;

    as_read_object(&reader, root, "flags");
    as_read_bool(&reader, "paused", &input->flags.paused);
    if (input->version >= 2)
        as_read_bool(&reader, "contended", &input->flags.contended);
    as_read_bool(&reader, "in_progress", &input->flags.in_progress);
    as_read_bool(&reader, "budget_exhausted", &input->flags.budget_exhausted);
    as_read_bool(&reader, "guarded", &input->flags.guarded);
    as_read_end(&reader);
}

/* Since v: 2. */
static void decode_forbidden(struct decoder *decoder, struct as_reader *root)
{
    struct as_decide_input *input = &decoder->document->input;
    size_t count;
    const struct tree_value *at = as_read_list(root, "forbidden", &count);

    if (!at)
        return;
    struct as_forbidden *rows = as_arena_alloc(decoder->arena, count, sizeof(*rows));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_read_item(&item, root, "forbidden", at, i);
        as_read_require(&item, "direction");
        as_read_require(&item, "by");
        rows[i].ways = (enum as_ways)as_read_enum(&item, "direction", as_decision_ways, 0);
        rows[i].by = (enum as_holder)as_read_enum(&item, "by", holder_words, 0);
        decision_read_text(&item, "name", decoder->arena, &rows[i].name);
        decision_read_text(&item, "rule", decoder->arena, &rows[i].rule);
        as_read_end(&item);
    }
    input->forbidden = rows;
    input->forbidden_count = count;
}

static int compare_samples(const void *a, const void *b)
{
    return strcmp(((const struct as_sample *)a)->pod, ((const struct as_sample *)b)->pod);
}

static void decode_samples(struct decoder *decoder, struct as_reader *reader,
                           struct as_proposal *proposal)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, "samples", &count);

    if (!as_read_has(reader, "samples"))
        return;
    struct as_sample *samples = as_arena_alloc(decoder->arena, count, sizeof(*samples));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        samples[i].pod = "";
        as_read_item(&item, reader, "samples", at, i);
        as_read_require(&item, "value");
        decision_read_text(&item, "pod", decoder->arena, &samples[i].pod);
        as_read_double(&item, "value", &samples[i].value);
        as_read_time(&item, "at", &samples[i].at);
        as_read_seconds(&item, "window", &samples[i].window_us);
        as_read_end(&item);
    }
    if (count > 1)
        qsort(samples, count, sizeof(*samples), compare_samples);
    for (size_t i = 1; i < count; i++) {
        if (*samples[i].pod && strcmp(samples[i - 1].pod, samples[i].pod) == 0)
            as_read_fail(reader, "samples", "two for the pod \"%s\"", samples[i].pod);
    }
    proposal->samples = samples;
    proposal->sample_count = count;
}

/* Since v: 2. */
static void decode_fallback(struct as_reader *reader, struct as_proposal *proposal)
{
    struct as_reader fallback;

    as_read_time(reader, "unavailable_since", &proposal->unavailable_since);
    as_read_object(&fallback, reader, "fallback");
    if (!fallback.object)
        return;
    as_read_require(&fallback, "after");
    as_read_require(&fallback, "at_least");
    as_read_seconds(&fallback, "after", &proposal->fallback.after_us);
    as_read_i32(&fallback, "at_least", 1, &proposal->fallback.at_least);
    if (proposal->action.kind == AS_ACTION_SCALE_DOWN || proposal->action.kind == AS_ACTION_HOLD)
        as_read_fail(reader, "fallback", "only for actions that may raise the size");
    as_read_end(&fallback);
}

static void decode_proposal(struct decoder *decoder, struct as_reader *reader,
                            struct as_proposal *proposal)
{
    const int32_t version = decoder->document->input.version;

    proposal->has_value = as_read_has(reader, "value");
    if (proposal->has_value)
        as_read_double(reader, "value", &proposal->value);
    else
        (void)as_read_any(reader, "value");
    proposal->needs_news = version >= 2 && tree_find(reader->object, "reported");
    if (proposal->needs_news)
        as_read_time(reader, "reported", &proposal->reported);
    decision_read_text(reader, "rule", decoder->arena, &proposal->rule);
    decision_read_text(reader, "incident", decoder->arena, &proposal->incident);
    as_decision_decode_action(reader, decoder->arena, version, &proposal->action);
    decode_samples(decoder, reader, proposal);
    decision_read_text(reader, "error", decoder->arena, &proposal->error);
    if (version >= 2)
        proposal->nodes =
            (enum as_nodes_word)as_read_enum(reader, "nodes", nodes_words, AS_NODES_NONE);
    if (version >= 2) {
        decode_fallback(reader, proposal);
        as_decision_decode_approval(reader, decoder->arena, &proposal->approval);
    }
    if (proposal->nodes && (proposal->has_value || proposal->samples))
        as_read_fail(reader, "nodes", "there is already a value");
    if (proposal->samples &&
        (proposal->action.kind != AS_ACTION_TRACK || proposal->action.track.goal == AS_GOAL_VALUE))
        as_read_fail(reader, "samples", "only for track with \"average_value\" or \"utilization\"");
    if (proposal->samples && proposal->has_value)
        as_read_fail(reader, "samples", "there is already a value");
    as_read_end(reader);
}

static void decode_proposals(struct decoder *decoder, struct as_reader *root)
{
    struct as_decide_document *document = decoder->document;
    size_t count;

    as_read_require(root, "proposals");
    const struct tree_value *at = as_read_list(root, "proposals", &count);
    struct as_proposal *proposals = as_arena_alloc(decoder->arena, count, sizeof(*proposals));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_read_item(&item, root, "proposals", at, i);
        decode_proposal(decoder, &item, &proposals[i]);
    }
    document->input.proposals = proposals;
    document->input.proposal_count = count;
    document->results = as_arena_alloc(decoder->arena, count, sizeof(*document->results));
}

static int decode_root(struct decoder *decoder, const struct tree_value *value,
                       struct as_error *error)
{
    struct as_decide_input *input = &decoder->document->input;
    struct as_reader root;
    int64_t version = 0;
    as_maybe_time now = {.set = false};

    as_read_document(&root, value, error);
    as_read_require(&root, "v");
    as_read_i64(&root, "v", AS_DECIDE_OLDEST_VERSION, AS_DECIDE_VERSION, &version);
    as_read_require(&root, "now");
    as_read_time(&root, "now", &now);
    input->version = (int32_t)version;
    input->now = now.at;
    input->config = default_config;
    decode_target(decoder, &root);
    decode_observed(decoder, &root);
    decode_history(decoder, &root);
    decode_flags(&root, input);
    if (input->version >= 2)
        decode_forbidden(decoder, &root);
    decode_proposals(decoder, &root);
    if (input->survey)
        decision_read_seed(&root, (struct as_survey *)input->survey);
    as_read_end(&root);
    return as_read_result(&root);
}

int as_decision_decode_input(const char *json, size_t size,
                             struct as_decide_document **document_out, struct as_error *error)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);

    int status = tree_load(&tree, json, size, error);
    if (status)
        return status;
    document = as_xcalloc(1, sizeof(*document));
    struct decoder decoder = {.document = document, .arena = &document->arena};
    status = decode_root(&decoder, tree.root, error);
    if (status)
        return status;
    *document_out = document;
    document = NULL;
    return 0;
}

int as_decision_decode_input_value(const struct json_t *value,
                                   struct as_decide_document **document_out, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT_OPEN(INPUT_MAX);

    as_json_dump(value, &text);
    int status = as_buf_check(&text);
    return status ? status : as_decision_decode_input(text.data, text.size, document_out, error);
}

struct as_decide_document *as_decide_document_free(struct as_decide_document *document)
{
    if (document) {
        as_arena_deinit(&document->arena);
        free(document);
    }
    return NULL;
}
