/*
 * Reads decision inputs (docs/decision.md), and decides what a document says.
 *
 * Defaults are set first, given values replace them. The result keeps nothing of the JSON
 * document. The document is one object, read in its order; snapshots of pools have a module of
 * their own (decision_snapshot.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/number.h>
#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/model/action.h>

#include "decision_private.h"

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
static const struct as_read_word decision_ways[] = {AS_WAYS_WORDS(WAYS_WORD){0}};

/*
 * Reads the action of a proposal: as in rule files, but without the source of its value, which is
 * in the proposal.
 */

/* `by: N`, or `by: P%` with `at_least` */
static void decode_amount(struct as_reader *reader, int64_t milli_percent_max,
                          struct as_amount *amount)
{
    const struct tree_value *by = tree_find(reader->object, "by");

    amount->at_least = 1;
    if (!tree_is(by, TREE_TEXT)) {
        as_read_require(reader, "by");
        if (!tree_is(by, TREE_INTEGER))
            as_read_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
        as_read_i64(reader, "by", 0, INT64_MAX, &amount->size);
        return;
    }
    (void)as_read_any(reader, "by");
    amount->is_percent = true;
    if (as_number_parse_percent(by->text, &amount->milli_percent) != 0 || amount->milli_percent < 0)
        as_read_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
    if (amount->milli_percent > milli_percent_max)
        as_read_fail(reader, "by", "expected at most 100%%: nothing can lose more");
    as_read_i64(reader, "at_least", 0, INT64_MAX, &amount->at_least);
}

/* Limits for the steps of an action. */
struct step_rules {
    enum as_action_kind kind;
    int64_t milli_percent_max;
    bool has_goals;
};

/* `to: X` of a step, since v: 2. It must not lie beyond the bound: the direction would be wrong. */
static void decode_goal(struct as_reader *reader, bool is_up, struct as_step *step)
{
    as_read_positive(reader, "to", &step->to);
    if (step->is_above != is_up)
        as_read_fail(reader, "to", "expected \"%s\" beside it", is_up ? "above" : "below");
    if (!(step->to > 0))
        as_read_fail(reader, "to", "expected a number above 0");
    if (is_up ? step->to > step->bound : step->to < step->bound)
        as_read_fail(reader, "to", "expected at %s \"%s\"", is_up ? "most" : "least",
                     is_up ? "above" : "below");
}

static void decode_change(struct as_reader *reader, const struct step_rules *rules,
                          struct as_step *step)
{
    step->is_above = as_read_has(reader, "above");
    if (step->is_above == as_read_has(reader, "below"))
        as_read_fail(reader, NULL, "expected either \"above\" or \"below\"");
    as_read_double(reader, step->is_above ? "above" : "below", &step->bound);
    if (rules->has_goals && as_read_has(reader, "to"))
        decode_goal(reader, rules->kind == AS_ACTION_SCALE_UP, step);
    else
        decode_amount(reader, rules->milli_percent_max, &step->amount);
}

static void decode_rung(struct as_reader *reader, struct as_step *step)
{
    as_read_require(reader, "from");
    as_read_require(reader, "size");
    as_read_double(reader, "from", &step->bound);
    as_read_i64(reader, "size", 0, INT64_MAX, &step->amount.size);
}

static void decode_step(struct as_reader *reader, const struct step_rules *rules,
                        struct as_step *step)
{
    if (rules->kind == AS_ACTION_SCALE_TO)
        decode_rung(reader, step);
    else
        decode_change(reader, rules, step);
    as_read_end(reader);
}

static void decode_steps(struct as_reader *reader, struct as_arena *arena,
                         const struct step_rules *rules, struct as_action *action)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, "steps", &count);

    if (count == 0 || count > AS_STEPS_MAX) {
        as_read_fail(reader, "steps", "expected 1 to %d steps", AS_STEPS_MAX);
        return;
    }
    struct as_step *steps = as_arena_alloc(arena, count, sizeof(*steps));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_read_item(&item, reader, "steps", at, i);
        decode_step(&item, rules, &steps[i]);
    }
    action->steps = steps;
    action->step_count = count;
}

/* `fit` or `take`, whose value is one word; since v: 2. */
static bool decode_only_word(struct as_reader *reader, const char *name, const char *word)
{
    const struct as_read_word words[] = {{.text = word}, {.text = NULL}};

    if (!as_read_has(reader, name))
        return false;
    (void)as_read_enum(reader, name, words, 0);
    return true;
}

/* scale_up and scale_down. Since v: 2, scale_down by more than 100 % is refused, as in rule files,
 * and `to: N`, `fit` and `take` are allowed. */
static void decode_step_action(struct as_reader *reader, struct as_arena *arena, int32_t version,
                               struct as_action *action)
{
    const bool is_bounded = action->kind == AS_ACTION_SCALE_DOWN && version >= 2;
    const struct step_rules rules = {.kind = action->kind,
                                     .milli_percent_max = is_bounded ? 100000 : INT64_MAX,
                                     .has_goals = version >= 2};

    const bool is_up = action->kind == AS_ACTION_SCALE_UP;

    if (version >= 2 && is_up)
        action->is_fit = decode_only_word(reader, "fit", "pending_pods");
    else if (version >= 2)
        action->is_take = decode_only_word(reader, "take", "unneeded_nodes");
    action->is_to = version >= 2 && as_read_has(reader, "to");
    if (action->is_fit || action->is_take)
        action->is_to = false; /* `to` beside them is an unknown field */
    else if (action->is_to)
        as_read_i64(reader, "to", 0, INT64_MAX, &action->size);
    else if (as_read_has(reader, "steps"))
        decode_steps(reader, arena, &rules, action);
    else
        decode_amount(reader, rules.milli_percent_max, &action->amount);
    as_read_end(reader);
}

/* scale_to: a size, or since v: 2 `steps` */
static void decode_scale_to(struct as_reader *reader, struct as_arena *arena, int32_t version,
                            struct as_action *action)
{
    static const struct step_rules rules = {.kind = AS_ACTION_SCALE_TO};
    const char *name = as_action_kind_get_word(action->kind);
    struct as_reader body;

    if (version < 2 || !tree_is(tree_find(reader->object, name), TREE_OBJECT)) {
        as_read_i64(reader, name, 0, INT64_MAX, &action->size);
        return;
    }
    as_read_object(&body, reader, name);
    as_read_require(&body, "steps");
    decode_steps(&body, arena, &rules, action);
    as_read_end(&body);
}

/* hold: a direction; since v: 2 */
static void decode_hold(struct as_reader *reader, int32_t version, struct as_action *action)
{
    const char *name = as_action_kind_get_word(action->kind);

    if (version < 2)
        as_read_fail(reader, name, "unknown field");
    action->hold = (enum as_ways)as_read_enum(reader, name, decision_ways, 0);
}

static void decode_utilization(struct as_reader *reader, struct as_track *track)
{
    const char *text = "";
    int64_t milli_percent = 0;

    as_read_text(reader, "utilization", &text);
    as_read_require(reader, "resource");
    if (as_number_parse_percent(text, &milli_percent) != 0 || milli_percent < 0)
        as_read_fail(reader, "utilization", "expected a percentage as \"70%%\"");
    track->value = (double)milli_percent / 1000;
}

static void decode_track(struct as_reader *reader, struct as_track *track)
{
    static const struct {
        const char *name;
        enum as_goal goal;
    } goals[] = {{"value", AS_GOAL_VALUE},
                 {"average_value", AS_GOAL_AVERAGE_VALUE},
                 {"utilization", AS_GOAL_UTILIZATION}};
    const char *name = NULL;

    for (size_t i = 0; i < AS_ARRAY_SIZE(goals); i++) {
        if (!as_read_has(reader, goals[i].name))
            continue;
        if (name)
            as_read_fail(reader, NULL, "expected one goal, not both \"%s\" and \"%s\"", name,
                         goals[i].name);
        name = goals[i].name;
        track->goal = goals[i].goal;
    }
    if (!name)
        as_read_fail(reader, NULL, "expected \"value\", \"average_value\" or \"utilization\"");
    else if (track->goal == AS_GOAL_UTILIZATION)
        decode_utilization(reader, track);
    else
        as_read_positive(reader, name, &track->value);
    if (track->goal != AS_GOAL_VALUE) {
        track->is_resource = as_read_has(reader, "resource");
        track->resource = (enum as_resource)as_read_enum(reader, "resource", as_decision_resources,
                                                         AS_RESOURCE_CPU);
    }
    as_read_end(reader);
}

/* The kind of an action, from its only key. */
static enum as_action_kind find_kind(struct as_reader *reader)
{
    enum as_action_kind found = AS_ACTION_KIND_COUNT;
    unsigned count = 0;

    for (enum as_action_kind kind = 0; kind < AS_ACTION_KIND_COUNT; kind++) {
        if (as_read_has(reader, as_action_kind_get_word(kind))) {
            found = kind;
            count++;
        }
    }
    if (count != 1)
        as_read_fail(reader, NULL,
                     "expected one of scale_up, scale_down, scale_to, track, pass_through, hold");
    return found;
}

static void decision_decode_action(struct as_reader *proposal, struct as_arena *arena,
                                   int32_t version, struct as_action *action_out)
{
    struct as_reader reader, body;

    as_read_require(proposal, "action");
    as_read_object(&reader, proposal, "action");
    action_out->kind = find_kind(&reader);
    if (as_read_result(&reader) != 0)
        return;
    const char *name = as_action_kind_get_word(action_out->kind);
    if (action_out->kind == AS_ACTION_SCALE_TO)
        decode_scale_to(&reader, arena, version, action_out);
    else if (action_out->kind == AS_ACTION_HOLD)
        decode_hold(&reader, version, action_out);
    else
        as_read_object(&body, &reader, name);
    switch (action_out->kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN: decode_step_action(&body, arena, version, action_out); break;
    case AS_ACTION_TRACK: decode_track(&body, &action_out->track); break;
    case AS_ACTION_PASS_THROUGH: as_read_end(&body); break;
    case AS_ACTION_SCALE_TO:
    case AS_ACTION_HOLD:
    case AS_ACTION_KIND_COUNT: break;
    }
    as_read_end(&reader);
}

/*
 * What a decision needs to know of an approval: `approval` of a proposal, read and written.
 */

static const struct as_read_word directions[] = {{"up", 1}, {"down", 0}, {0}};

/* The words of as_approval_answer_get_word. */
static enum as_approval_answer read_answer(struct as_reader *reader)
{
    struct as_read_word words[AS_APPROVAL_ANSWER_COUNT + 1] = {0};
    for (int i = 0; i < AS_APPROVAL_ANSWER_COUNT; i++)
        words[i] =
            (struct as_read_word){as_approval_answer_get_word((enum as_approval_answer)i), i};
    return (enum as_approval_answer)as_read_enum(reader, "answer", words, AS_APPROVAL_WAITING);
}

static void decode_request(struct as_reader *approval, struct as_arena *arena,
                           struct as_approval_terms *terms)
{
    struct as_reader reader;

    as_read_object(&reader, approval, "request");
    if (!reader.object)
        return;
    terms->is_asked = true;
    as_read_require(&reader, "answer");
    as_read_require(&reader, "direction");
    as_read_require(&reader, "to");
    as_read_require(&reader, "until");
    terms->answer = read_answer(&reader);
    terms->is_up = as_read_enum(&reader, "direction", directions, 1);
    decision_read_text(&reader, "id", arena, &terms->id);
    as_read_i32(&reader, "to", 0, &terms->to);
    as_read_time(&reader, "until", &terms->until);
    as_read_end(&reader);
}

static void decision_decode_approval(struct as_reader *proposal, struct as_arena *arena,
                                     struct as_approval_terms *terms_out)
{
    struct as_reader reader;

    as_read_object(&reader, proposal, "approval");
    if (!reader.object)
        return;
    terms_out->is_set = true;
    as_read_require(&reader, "above");
    as_read_i32(&reader, "above", 0, &terms_out->above);
    as_read_i32(&reader, "up", 0, &terms_out->up);
    as_read_i32(&reader, "down", 0, &terms_out->down);
    decode_request(&reader, arena, terms_out);
    as_read_end(&reader);
}

static void write_request(struct as_json_writer *json, const struct as_approval_terms *terms)
{
    char text[AS_RFC3339_SIZE];

    as_json_begin_object(json);
    as_json_write_member(json, "answer", as_approval_answer_get_word(terms->answer));
    as_json_write_member(json, "direction", directions[terms->is_up ? 0 : 1].text);
    if (terms->id)
        as_json_write_member(json, "id", terms->id);
    as_json_write_member_i64(json, "to", terms->to);
    as_json_write_key(json, "until");
    as_wall_time_print_short(terms->until.at, text);
    if (terms->until.set)
        as_json_write_string(json, text);
    else
        as_json_write_null(json);
    as_json_end_object(json);
}

void as_decision_write_approval(struct as_json_writer *json, const struct as_approval_terms *terms)
{
    if (!terms->is_set)
        return;
    as_json_write_key(json, "approval");
    as_json_begin_object(json);
    as_json_write_member_i64(json, "above", terms->above);
    as_json_write_member_i64(json, "down", terms->down);
    if (terms->is_asked) {
        as_json_write_key(json, "request");
        write_request(json, terms);
    }
    as_json_write_member_i64(json, "up", terms->up);
    as_json_end_object(json);
}

#define CORES_MAX 1000000000        /* of all nodes */
#define INPUT_MAX ((size_t)1 << 30) /* bytes of a parsed value as text */

struct decoder {
    struct as_decide_document *document;
    struct as_arena *arena;
};

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

static int decode_compare_pods(const void *a, const void *b)
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
        qsort(pods, count, sizeof(*pods), decode_compare_pods);
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
        decision_read_snapshot(&reader, decoder->arena, input);
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
    if (input->snapshot)
        decision_read_memory(
            &reader, &(struct snapshot_reader){.arena = decoder->arena,
                                               .snapshot = (struct as_snapshot *)input->snapshot});
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
        rows[i].ways = (enum as_ways)as_read_enum(&item, "direction", decision_ways, 0);
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
    decision_decode_action(reader, decoder->arena, version, &proposal->action);
    decode_samples(decoder, reader, proposal);
    decision_read_text(reader, "error", decoder->arena, &proposal->error);
    if (version >= 2)
        proposal->nodes =
            (enum as_nodes_word)as_read_enum(reader, "nodes", nodes_words, AS_NODES_NONE);
    if (version >= 2) {
        decode_fallback(reader, proposal);
        decision_decode_approval(reader, decoder->arena, &proposal->approval);
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
    if (input->snapshot)
        decision_read_seed(&root, (struct as_snapshot *)input->snapshot);
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

static const struct as_pool_config without_pool = {
    .cpu.max = AS_POOL_NO_CAP,
    .memory.max = AS_POOL_NO_CAP,
    .at_once_empty = 10,
    .at_once_drain = 1,
};

static struct as_pool_plan_terms get_terms(const struct as_decide_input *input)
{
    struct as_pool_plan_terms terms = {
        .now = input->now, .min = input->config.min, .max = input->config.max};

    if (input->plan_terms)
        return *input->plan_terms;
    for (size_t i = 0; i < input->proposal_count; i++) {
        terms.with_fit |= input->proposals[i].action.is_fit;
        terms.with_take |= input->proposals[i].action.is_take;
    }
    return terms;
}

static void make_plan(struct as_decide_document *document)
{
    const struct as_decide_input *input = &document->input;
    struct as_pool_plan_request *request = as_arena_alloc(&document->arena, 1, sizeof(*request));
    struct as_pool_plan *plan = as_arena_alloc(&document->arena, 1, sizeof(*plan));

    *request = (struct as_pool_plan_request){
        .version = input->version,
        .snapshot = input->snapshot,
        .config = input->pool ? input->pool : &without_pool,
        .terms = get_terms(input),
    };
    struct as_pool_work *work = as_pool_begin(request, &document->arena);
    while (!as_pool_step(work, AS_PACK_FITS_MAX, plan))
        ;
    document->input.plan = plan;
}

void as_decide_document_decide(struct as_decide_document *document,
                               struct as_decision *decision_out)
{
    if (document->input.snapshot && !document->input.snapshot->error && !document->input.plan)
        make_plan(document);
    as_decide(&document->input, document->results, decision_out);
}
