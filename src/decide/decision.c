/*
 * Decision documents (docs/decision.md): the input, which is read and written by the same tables of
 * rows, and the answer, which is only written. Also the decision of a document.
 *
 * Reading sets defaults first; given values replace them. The result keeps nothing of the JSON
 * document. Snapshots of pools have their tables in decision_snapshot.c, actions their functions in
 * decision_action.c.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/rows_schema.h>

#include "decision_private.h"

#define CORES_MAX 1000000000 /* of all nodes */

/* The input with its snapshot, for rows of both. */
struct document {
    struct as_decide_input input;
    struct as_snapshot *facts; /* the snapshot of the input; NULL: none, or it has an error */
};
_Static_assert(offsetof(struct document, input) == 0, "rows of the input are rows of the document");

#define SNAPSHOT .via = AS_ROW_VIA(as_decide_input, snapshot), .is_via_optional = true
#define FACTS    .via = AS_ROW_VIA(document, facts), .is_via_optional = true

DECISION_WORDS(get_phase, "Pending", "Running", "Succeeded", "Failed", "Unknown")
DECISION_WORDS(get_select, "Max", "Min", "Disabled")
DECISION_WORDS(get_policy_type, "Pods", "Percent")
DECISION_WORDS(get_limit, "min", "max", "stabilization", "policy")
AS_ROW_WORDS(get_way, enum as_ways, AS_WAYS_BOTH + 1, as_ways_get_word)
AS_ROW_WORDS(get_rollout, enum as_rollout, AS_ROLLOUT_COUNT, as_rollout_get_word)
AS_ROW_WORDS(get_holder, enum as_holder, AS_HOLDER_COUNT, as_holder_get_word)
AS_ROW_WORDS(get_in_progress_by, enum as_in_progress_by, AS_IN_PROGRESS_COUNT,
             as_in_progress_by_get_word)
AS_ROW_WORDS(get_nodes_word, enum as_nodes_word, AS_NODES_WORD_COUNT, as_nodes_word_get_text)
AS_ROW_WORDS(get_answer, enum as_approval_answer, AS_APPROVAL_ANSWER_COUNT,
             as_approval_answer_get_word)
AS_ROW_WORDS(get_gate, enum as_gate, AS_GATE_COUNT, as_gate_get_word)
AS_ROW_WORDS(get_direction, enum as_direction, AS_DIRECTION_DOWN + 1, as_direction_get_word)
AS_ROW_WORDS(get_reason, enum as_reason, AS_REASON_COUNT, as_reason_get_word)

/* ---- target ---- */

static const struct as_bounds_config default_config = {
    .min = 1,
    .tolerance_up = 0.1,
    .tolerance_down = 0.1,
    .cpu_initialization_us = 300 * AS_US_PER_S,
    .initial_readiness_delay_us = 30 * AS_US_PER_S,
};

static const struct as_row policy_rows[] = {
    {AS_ROW("periodSeconds", seconds, as_policy, period_us, REQUIRED)},
    {AS_ROW("type", word, as_policy, type, REQUIRED), .get_word = get_policy_type},
    {AS_ROW("value", i32, as_policy, value, REQUIRED)},
    {.name = NULL},
};

/* A list in the struct itself. */
static void policies_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_scaling_rules *rules = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < rules->policy_count; i++)
        as_rows_write(json, row->rows, &rules->policies[i]);
    as_json_end_array(json);
}

static void policies_read(struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, void *base)
{
    struct as_scaling_rules *rules = base;
    size_t count;
    const struct tree_value *at = as_read_list(object, row->name, &count);

    if (!as_read_has(object, row->name))
        return;
    if (count == 0 || count > AS_POLICIES_MAX) {
        as_read_fail(object, row->name, "expected 1 to %d policies", AS_POLICIES_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_read_item(&item, object, row->name, at, i);
        as_rows_read(input, &item, row->rows, &rules->policies[i]);
    }
    rules->policy_count = (uint32_t)count;
}

static const struct as_row_type policies_type = {
    .write = policies_write, .read = policies_read, .like = &as_row_list};

static const struct as_row scaling_rules_rows[] = {
    {.name = "policies",
     .type = &policies_type,
     .presence = AS_ROW_DEFAULT,
     .rows = policy_rows,
     .min = 1,
     .max = AS_POLICIES_MAX},
    {AS_ROW("selectPolicy", word, as_scaling_rules, select, DEFAULT), .get_word = get_select},
    {AS_ROW("stabilizationWindowSeconds", seconds, as_scaling_rules, window_us, DEFAULT)},
    {.name = NULL,
     .definition = "scaling_rules",
     .about = "As in `behavior` of a HorizontalPodAutoscaler"},
};

static const struct as_row behavior_rows[] = {
    {AS_ROW_PART("scaleDown", as_behavior, down, DEFAULT, scaling_rules_rows)},
    {AS_ROW_PART("scaleUp", as_behavior, up, DEFAULT, scaling_rules_rows)},
    {.name = NULL},
};

static const struct as_row cooldown_rows[] = {
    {AS_ROW("down", seconds, as_cooldown, down_us, DEFAULT)},
    {AS_ROW("down_after_down", seconds, as_cooldown, down_after_down_us, DEFAULT),
     .has_at = AS_ROW_HAS(as_cooldown, has_down_after_down)},
    {AS_ROW("up", seconds, as_cooldown, up_us, DEFAULT)},
    {AS_ROW("up_after_down", seconds, as_cooldown, up_after_down_us, DEFAULT)},
    {.name = NULL},
};

static const struct as_row tolerance_rows[] = {
    {AS_ROW("down", positive, as_decide_input, config.tolerance_down, DEFAULT)},
    {AS_ROW("up", positive, as_decide_input, config.tolerance_up, DEFAULT)},
    {.name = NULL},
};

static void target_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    struct as_bounds_config *config = &((struct as_decide_input *)to)->config;
    if (config->min > config->max)
        as_read_fail(object, "min", "%d is above max, %d", config->min, config->max);
    if (!config->has_behavior)
        config->behavior = (struct as_behavior){.up.window_us = 0};
}

static bool rollout_is_default(const void *input)
{
    return ((const struct as_decide_input *)input)->config.rollout == AS_ROLLOUT_AS_HPA;
}

static const struct as_row target_rows[] = {
    {AS_ROW_PART("behavior", as_decide_input, config.behavior, DEFAULT, behavior_rows),
     .has_at = AS_ROW_HAS(as_decide_input, config.has_behavior)},
    {AS_ROW_PART("cooldown", as_decide_input, config.cooldown, DEFAULT, cooldown_rows)},
    {AS_ROW("cpu_initialization_seconds", seconds, as_decide_input, config.cpu_initialization_us,
            DEFAULT)},
    {AS_ROW("dry_run", flag, as_decide_input, dry_run, DEFAULT)},
    {AS_ROW("enforce_bounds", flag, as_decide_input, config.enforce_bounds, DEFAULT)},
    {AS_ROW("enforce_max", flag, as_decide_input, enforce_max, OPTIONAL), .since = 3},
    {AS_ROW("enforce_min", flag, as_decide_input, enforce_min, OPTIONAL), .since = 2},
    {AS_ROW("floor", i32, as_decide_input, floor, OPTIONAL), .since = 2},
    {AS_ROW("id", maybe_text, as_decide_input, target, OPTIONAL)},
    {AS_ROW("initial_readiness_delay_seconds", seconds, as_decide_input,
            config.initial_readiness_delay_us, DEFAULT)},
    {AS_ROW("max", i32, as_decide_input, config.max, REQUIRED)},
    {AS_ROW("min", i32, as_decide_input, config.min, DEFAULT)},
    {AS_ROW("own_min", i32, as_decide_input, own_min, DEFAULT), .since = 2,
     .has_at = AS_ROW_HAS(as_decide_input, has_own_min)},
    {AS_ROW_OF("pool", object, as_decide_input, pool, OPTIONAL, as_decision_pool_rows), .since = 2,
     .defaults = &as_decision_pool},
    {AS_ROW("rollout", word, as_decide_input, config.rollout, OPTIONAL), .since = 3,
     .get_word = get_rollout, .is_unset = rollout_is_default},
    {AS_ROW("scheduled_zero", flag, as_decide_input, is_scheduled_zero, OPTIONAL), .since = 3},
    {AS_ROW("schedules", texts, as_decide_input, schedules, FILLED), .since = 2,
     .count_at = AS_ROW_COUNT(as_decide_input, schedule_count)},
    {AS_ROW_SAME("tolerance", DEFAULT, tolerance_rows)},
    {.name = NULL, .check = target_check},
};

/* ---- observed ---- */

/* true, false, or null: unknown */
static void tristate_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const enum as_tristate value = *(const enum as_tristate *)as_row_at(row, base);
    if (value == AS_UNKNOWN)
        as_json_write_null(json);
    else
        as_json_write_bool(json, value == AS_TRUE);
}

static void tristate_read(struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, void *base)
{
    (void)input;
    enum as_tristate *value = as_row_to(row, base);
    bool is_true = *value == AS_TRUE;

    if (!as_read_has(object, row->name)) {
        (void)as_read_any(object, row->name);
        *value = AS_UNKNOWN;
        return;
    }
    as_read_bool(object, row->name, &is_true);
    *value = is_true ? AS_TRUE : AS_FALSE;
}

static const struct as_row_type as_row_tristate = {
    .is_nullable = true, .write = tristate_write, .read = tristate_read, .like = &as_row_flag};
#define AS_ROW_TYPE_tristate enum as_tristate

static const struct as_row usage_rows[] = {
    {.name = "cpu", .type = &as_row_positive, .at = AS_RESOURCE_CPU * sizeof(double)},
    {.name = "memory", .type = &as_row_positive, .at = AS_RESOURCE_MEMORY * sizeof(double)},
    {.name = NULL},
};

DECISION_WORDS(get_owner, "target", "other", "gone")

static bool pod_is_owned(const void *base)
{
    return ((const struct as_pod *)base)->owner == AS_POD_OF_TARGET;
}

static const struct as_row container_rows[] = {
    {AS_ROW("name", text, as_pod_container, name, REQUIRED)},
    {AS_ROW_PART("resources", as_pod_container, resource, DEFAULT, usage_rows),
     .about = "Cores and bytes"},
    {.name = NULL},
};
static const struct as_pod_container default_container = {.name = "", .resource = {NAN, NAN}};

static const struct as_row pod_rows[] = {
    {AS_ROW_OF("containers", list, as_pod, containers, FILLED, container_rows), .since = 3,
     .count_at = AS_ROW_COUNT(as_pod, container_count), .defaults = &default_container,
     .about = "Those that a rule names"},
    {AS_ROW("deleting", flag, as_pod, deleting, DEFAULT)},
    {AS_ROW("name", text, as_pod, name, DEFAULT)},
    {AS_ROW("owner", word, as_pod, owner, OPTIONAL), .since = 3, .get_word = get_owner,
     .is_unset = pod_is_owned, .about = "For rules with `pods: owned`"},
    {AS_ROW("phase", word, as_pod, phase, DEFAULT), .get_word = get_phase},
    {AS_ROW("ready", tristate, as_pod, ready, DEFAULT)},
    {AS_ROW("ready_since", maybe_time, as_pod, ready_since, OPTIONAL)},
    {AS_ROW_PART("resources", as_pod, resource, DEFAULT, usage_rows), .about = "Cores and bytes"},
    {AS_ROW("start_time", maybe_time, as_pod, start_time, OPTIONAL)},
    {.name = NULL},
};
static const struct as_pod default_pod = {
    .name = "", .phase = AS_POD_RUNNING, .ready = AS_TRUE, .resource = {NAN, NAN}};

/* Cores, in whole millicores. */
static void cores_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_double(json, (double)*(const int64_t *)as_row_at(row, base) / 1000);
}

static void cores_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    (void)input;
    double cores = 0;
    as_read_positive(object, row->name, &cores);
    if (cores > CORES_MAX)
        as_read_fail(object, row->name, "above %d cores", CORES_MAX);
    else
        *(int64_t *)as_row_to(row, base) = llround(cores * 1000);
}

static const struct as_row_type cores_type = {
    .write = cores_write, .read = cores_read, .like = &as_row_positive};

static const struct as_row amounts_rows[] = {
    {.name = "cpu",
     .type = &cores_type,
     .presence = AS_ROW_DEFAULT,
     .at = AS_RESOURCE_CPU * sizeof(int64_t)},
    {.name = "memory",
     .type = &as_row_i64,
     .presence = AS_ROW_DEFAULT,
     .at = AS_RESOURCE_MEMORY * sizeof(int64_t),
     .max = INT64_MAX},
    {.name = NULL},
};

static const struct as_row lacking_rows[] = {
    {.name = "cpu", .type = &as_row_maybe_text, .at = AS_RESOURCE_CPU * sizeof(const char *)},
    {.name = "memory", .type = &as_row_maybe_text, .at = AS_RESOURCE_MEMORY * sizeof(const char *)},
    {.name = NULL},
};

static const struct as_row nodes_error_rows[] = {
    {AS_ROW("error", text, as_nodes_seen, error, REQUIRED)},
    {.name = NULL},
};

static void nodes_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    const struct as_nodes_seen *nodes = to;
    static const char *const names[] = {"template", "waiting", "coming"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        if (nodes->open > 0 && (i > 0 ? as_read_has(object, names[i]) : nodes->is_template))
            as_read_fail(object, names[i], "there are open nodes");
}

static const struct as_row nodes_rows[] = {
    {AS_ROW_PART("allocatable", as_nodes_seen, allocatable, REQUIRED, amounts_rows)},
    {AS_ROW("coming", i64, as_nodes_seen, coming, OPTIONAL), .since = 3, .max = AS_SIZE_MAX},
    {AS_ROW_PART("lacking", as_nodes_seen, lacking, OPTIONAL, lacking_rows)},
    {AS_ROW("open", i64, as_nodes_seen, open, REQUIRED), .max = AS_SIZE_MAX},
    {AS_ROW_PART("requests", as_nodes_seen, requests, REQUIRED, amounts_rows)},
    {AS_ROW("template", flag, as_nodes_seen, is_template, OPTIONAL)},
    {AS_ROW("waiting", i64, as_nodes_seen, waiting, OPTIONAL), .since = 3, .max = INT64_MAX},
    {.name = NULL, .check = nodes_check},
};

/* Either an error, or all the rest. */
static void nodes_seen_write(struct as_json_writer *json, const struct as_row *row,
                             const void *base)
{
    const struct as_nodes_seen *nodes = ((const struct as_decide_input *)base)->nodes;
    as_rows_write(json, nodes->error ? nodes_error_rows : row->rows, nodes);
}

static void nodes_seen_read(struct as_rows_input *input, struct as_reader *object,
                            const struct as_row *row, void *base)
{
    struct as_reader reader;
    as_read_object(&reader, object, row->name);
    if (!reader.object)
        return;
    struct as_nodes_seen *nodes = as_arena_alloc(input->arena, 1, sizeof(*nodes));
    as_rows_read(input, &reader, as_read_has(&reader, "error") ? nodes_error_rows : row->rows,
                 nodes);
    ((struct as_decide_input *)base)->nodes = nodes;
}

static bool input_has_no_nodes(const void *base)
{
    return !((const struct as_decide_input *)base)->nodes;
}

static void nodes_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_forms(schema);
    as_rows_schema_begin_form(schema);
    as_rows_schema_write_object(schema, row->rows);
    as_rows_schema_end_form(schema);
    as_rows_schema_begin_form(schema);
    as_rows_schema_write_object(schema, nodes_error_rows);
    as_rows_schema_end_form(schema);
    as_rows_schema_end_forms(schema);
}

static const struct as_row_type nodes_type = {
    .write = nodes_seen_write, .read = nodes_seen_read, .describe = nodes_describe};

static const struct as_row plan_terms_rows[] = {
    {AS_ROW("at", time, as_pool_plan_terms, now, REQUIRED)},
    {AS_ROW("fit", flag, as_pool_plan_terms, with_fit, REQUIRED)},
    {AS_ROW("max", i32, as_pool_plan_terms, max, REQUIRED)},
    {AS_ROW("min", i32, as_pool_plan_terms, min, REQUIRED)},
    {AS_ROW("take", flag, as_pool_plan_terms, with_take, REQUIRED)},
    {.name = NULL},
};

static int compare_pods(const void *a, const void *b)
{
    return strcmp(((const struct as_pod *)a)->name, ((const struct as_pod *)b)->name);
}

static void observed_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    struct document *document = to;
    struct as_pod *pods = (struct as_pod *)document->input.pods;
    const size_t count = document->input.pod_count;

    if (!as_read_has(object, "status_replicas"))
        document->input.status_replicas = document->input.replicas;
    if (count > 1)
        qsort(pods, count, sizeof(*pods), compare_pods);
    for (size_t i = 1; i < count; i++) {
        if (*pods[i].name && compare_pods(&pods[i - 1], &pods[i]) == 0)
            as_read_fail(object, "pods", "\"%s\" is there twice", pods[i].name);
    }
    if (document->input.plan_terms && !document->facts)
        as_read_fail(object, "plan", "only with \"groups\"");
    if (document->facts)
        decision_sort_nodes(object, document->facts);
}

/* Members of a snapshot refer to others: classes to budgets and resources, nodes to classes and
 * groups. */
static const struct as_row observed_rows[] = {
    {AS_ROW_OF("budgets", list, as_snapshot, budgets, FILLED, as_decision_budget_rows), FACTS,
     .count_at = AS_ROW_COUNT(as_snapshot, budget_count)},
    {AS_ROW("cluster_nodes", u64, as_snapshot, cluster_nodes, OPTIONAL), FACTS,
     .max = AS_RES_AMOUNT_MAX},
    {AS_ROW_OF("groups", list, as_snapshot, groups, DEFAULT, as_decision_group_rows), FACTS,
     .count_at = AS_ROW_COUNT(as_snapshot, group_count), .pass = 1, .max = DECISION_GROUPS_MAX,
     .defaults = &as_decision_group},
    {AS_ROW_PART("kept", as_snapshot, kept, DEFAULT, as_decision_kept_rows), FACTS},
    {AS_ROW_SAME("leaving", OPTIONAL, as_decision_leaving_rows), FACTS},
    {AS_ROW("marked", i32, as_decide_input, marked, OPTIONAL), .since = 3},
    {.name = "nodes",
     .type = &nodes_type,
     .since = 2,
     .rows = nodes_rows,
     .is_unset = input_has_no_nodes},
    {AS_ROW("pending", pods, as_snapshot, pending, FILLED), FACTS,
     .about = "`[shape, count]` of equal pods", .pass = 2,
     .count_at = AS_ROW_COUNT(as_snapshot, pending_count)},
    {AS_ROW("pending_pods", u64, as_snapshot, pending_pods, OPTIONAL), FACTS,
     .max = AS_RES_AMOUNT_MAX},
    {AS_ROW_OF("plan", object, as_decide_input, plan_terms, OPTIONAL, plan_terms_rows), .since = 3,
     .about = "How the plan of a pool was made"},
    {AS_ROW_OF("pods", list, as_decide_input, pods, DEFAULT, pod_rows),
     .count_at = AS_ROW_COUNT(as_decide_input, pod_count),
     .has_at = AS_ROW_HAS(as_decide_input, has_pods), .defaults = &default_pod},
    {AS_ROW("pool_error", maybe_text, as_snapshot, error, OPTIONAL), SNAPSHOT},
    {AS_ROW_OF("pool_nodes", list, as_snapshot, nodes, FILLED, as_decision_node_rows), FACTS,
     .count_at = AS_ROW_COUNT(as_snapshot, node_count), .pass = 2, .max = DECISION_NODES_MAX,
     .defaults = &as_decision_node},
    {AS_ROW("replicas", i32, as_decide_input, replicas, REQUIRED)},
    {AS_ROW("resources", resource_names, as_snapshot, resources, OPTIONAL), FACTS,
     .max = AS_RES_MAX - AS_RES_NAMED},
    {AS_ROW_OF("shapes", list, as_snapshot, pod_classes, FILLED, as_decision_pod_class_rows), FACTS,
     .count_at = AS_ROW_COUNT(as_snapshot, pod_class_count), .pass = 1,
     .max = AS_SNAPSHOT_POD_CLASSES_MAX, .defaults = &as_decision_pod_class},
    {AS_ROW("status_replicas", i32, as_decide_input, status_replicas, DEFAULT)},
    {.name = NULL, .check = observed_check},
};

/* ---- history, flags, forbidden ---- */

static const struct as_row recommendation_rows[] = {
    {AS_ROW("at", time, as_recommendation, at, REQUIRED)},
    {AS_ROW("replicas", i32, as_recommendation, replicas, REQUIRED)},
    {.name = NULL},
};

static const struct as_row event_rows[] = {
    {AS_ROW("at", time, as_scale_event, at, REQUIRED)},
    {AS_ROW("change", i32, as_scale_event, change, REQUIRED), .min = -AS_SIZE_MAX},
    {.name = NULL},
};

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

static int compare_recommendations(const void *left, const void *right)
{
    const struct as_recommendation *a = left, *b = right;
    int order = compare_i64(a->at.us, b->at.us);
    return order ? order : compare_i64(a->replicas, b->replicas);
}

static void history_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    struct document *document = to;
    const struct as_decide_input *decide = &document->input;
    if (decide->event_count > 1)
        qsort((void *)(uintptr_t)decide->events, decide->event_count, sizeof(*decide->events),
              compare_events);
    if (decide->recommendation_count > 1)
        qsort((void *)(uintptr_t)decide->recommendations, decide->recommendation_count,
              sizeof(*decide->recommendations), compare_recommendations);
    if (decide->snapshot)
        decision_sort_unneeded(object, (struct as_snapshot *)decide->snapshot);
}

static const struct as_row history_rows[] = {
    {AS_ROW_OF("asked", list, as_snapshot, asked, FILLED, as_decision_asked_rows), SNAPSHOT,
     .count_at = AS_ROW_COUNT(as_snapshot, asked_count), .max = AS_ASKED_MAX},
    {AS_ROW("drain_failed", maybe_time, as_snapshot, drain_failed, OPTIONAL), SNAPSHOT},
    {AS_ROW("last_down", maybe_time, as_decide_input, last_down, DEFAULT)},
    {AS_ROW("last_step_down", maybe_time, as_decide_input, last_step_down, OPTIONAL), .since = 2},
    {AS_ROW("last_up", maybe_time, as_decide_input, last_up, DEFAULT)},
    {AS_ROW_OF("recommendations", list, as_decide_input, recommendations, DEFAULT,
               recommendation_rows),
     .count_at = AS_ROW_COUNT(as_decide_input, recommendation_count)},
    {AS_ROW_OF("scale_events", list, as_decide_input, events, DEFAULT, event_rows),
     .count_at = AS_ROW_COUNT(as_decide_input, event_count)},
    {AS_ROW_OF("unneeded", list, as_snapshot, unneeded, FILLED, as_decision_unneeded_rows),
     SNAPSHOT, .count_at = AS_ROW_COUNT(as_snapshot, unneeded_count)},
    {.name = NULL, .check = history_check},
};

static const struct as_row flags_rows[] = {
    {AS_ROW("budget_exhausted", flag, as_decide_input, flags.budget_exhausted, DEFAULT)},
    {AS_ROW("contended", flag, as_decide_input, flags.contended, OPTIONAL), .since = 2},
    {AS_ROW("guarded", flag, as_decide_input, flags.guarded, DEFAULT)},
    {AS_ROW("in_progress", flag, as_decide_input, flags.in_progress, DEFAULT)},
    {AS_ROW("in_progress_by", word, as_decide_input, flags.in_progress_by, OPTIONAL), .since = 3,
     .get_word = get_in_progress_by, .min = AS_IN_PROGRESS_NONE + 1},
    {AS_ROW("paused", flag, as_decide_input, flags.paused, DEFAULT)},
    {.name = NULL},
};

static const struct as_row forbidden_rows[] = {
    {AS_ROW("by", word, as_forbidden, by, REQUIRED), .get_word = get_holder},
    {AS_ROW("direction", word, as_forbidden, ways, REQUIRED), .get_word = get_way,
     .min = AS_WAYS_DOWN},
    {AS_ROW("name", maybe_text, as_forbidden, name, OPTIONAL)},
    {AS_ROW("rule", maybe_text, as_forbidden, rule, OPTIONAL)},
    {.name = NULL},
};

/* ---- proposals ---- */

static const struct as_row request_rows[] = {
    {AS_ROW("answer", word, as_approval_terms, answer, REQUIRED), .get_word = get_answer},
    {AS_ROW("direction", is_up, as_approval_terms, is_up, REQUIRED)},
    {AS_ROW("id", maybe_text, as_approval_terms, id, OPTIONAL)},
    {AS_ROW("to", i32, as_approval_terms, to, REQUIRED)},
    {AS_ROW("until", maybe_time, as_approval_terms, until, REQUIRED)},
    {.name = NULL},
};

static const struct as_row approval_rows[] = {
    {AS_ROW("above", i32, as_approval_terms, above, REQUIRED)},
    {AS_ROW("down", i32, as_approval_terms, down, DEFAULT)},
    {AS_ROW_SAME("request", DEFAULT, request_rows),
     .has_at = AS_ROW_HAS(as_approval_terms, is_asked)},
    {AS_ROW("up", i32, as_approval_terms, up, DEFAULT)},
    {.name = NULL},
};

static bool has_no_fallback(const void *base)
{
    return ((const struct as_proposal *)base)->fallback.at_least == 0;
}

static const struct as_row fallback_rows[] = {
    {AS_ROW("after", seconds, as_fallback, after_us, REQUIRED)},
    {AS_ROW("at_least", i32, as_fallback, at_least, REQUIRED), .min = 1},
    {.name = NULL},
};

static const struct as_row sample_rows[] = {
    {AS_ROW("at", maybe_time, as_sample, at, OPTIONAL)},
    {AS_ROW("pod", text, as_sample, pod, DEFAULT)},
    {AS_ROW("value", number, as_sample, value, REQUIRED)},
    {AS_ROW("window", seconds, as_sample, window_us, DEFAULT)},
    {.name = NULL},
};
static const struct as_sample default_sample = {.pod = ""};

/* Without samples that are not finite: they count as unavailable. */
static void samples_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_proposal *proposal = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < proposal->sample_count; i++) {
        if (isfinite(proposal->samples[i].value))
            as_rows_write(json, row->rows, &proposal->samples[i]);
    }
    as_json_end_array(json);
}

static void samples_read(struct as_rows_input *input, struct as_reader *object,
                         const struct as_row *row, void *base)
{
    as_row_list.read(input, object, row, base);
}

static bool has_no_samples(const void *base)
{
    return !((const struct as_proposal *)base)->samples;
}

static const struct as_row_type as_row_samples = {
    .write = samples_write, .read = samples_read, .like = &as_row_list};

static int compare_samples(const void *a, const void *b)
{
    return strcmp(((const struct as_sample *)a)->pod, ((const struct as_sample *)b)->pod);
}

static void proposal_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    const struct as_proposal *proposal = to;
    struct as_sample *samples = (struct as_sample *)proposal->samples;
    const enum as_action_kind kind = proposal->action.kind;

    if (proposal->sample_count > 1)
        qsort(samples, proposal->sample_count, sizeof(*samples), compare_samples);
    for (size_t i = 1; i < proposal->sample_count; i++) {
        if (*samples[i].pod && compare_samples(&samples[i - 1], &samples[i]) == 0)
            as_read_fail(object, "samples", "two for the pod \"%s\"", samples[i].pod);
    }
    if (proposal->fallback.at_least > 0 && (kind == AS_ACTION_SCALE_DOWN || kind == AS_ACTION_HOLD))
        as_read_fail(object, "fallback", "only for actions that may raise the size");
    if (proposal->nodes && (proposal->has_value || samples))
        as_read_fail(object, "nodes", "there is already a value");
    if (samples && (kind != AS_ACTION_TRACK || proposal->action.track.goal == AS_GOAL_VALUE))
        as_read_fail(object, "samples", "only for track with \"average_value\" or \"utilization\"");
    if (samples && proposal->has_value)
        as_read_fail(object, "samples", "there is already a value");
}

static const struct as_row proposal_rows[] = {
    {.name = "action",
     .type = &as_row_action,
     .presence = AS_ROW_REQUIRED,
     .at = offsetof(struct as_proposal, action)},
    {AS_ROW_PART("approval", as_proposal, approval, DEFAULT, approval_rows), .since = 2,
     .has_at = AS_ROW_HAS(as_proposal, approval.is_set)},
    {AS_ROW("error", maybe_text, as_proposal, error, OPTIONAL)},
    {AS_ROW_PART("fallback", as_proposal, fallback, OPTIONAL, fallback_rows), .since = 2,
     .about = "The least size once the value has been unavailable for `after` seconds",
     .is_unset = has_no_fallback},
    {AS_ROW("incident", maybe_text, as_proposal, incident, OPTIONAL)},
    {AS_ROW("nodes", word, as_proposal, nodes, OPTIONAL), .since = 2, .get_word = get_nodes_word,
     .min = AS_NODES_NONE + 1},
    {AS_ROW("reported", maybe_time, as_proposal, reported, DEFAULT), .since = 2,
     .has_at = AS_ROW_HAS(as_proposal, needs_news)},
    {AS_ROW("rule", maybe_text, as_proposal, rule, OPTIONAL)},
    {AS_ROW_OF("samples", samples, as_proposal, samples, OPTIONAL, sample_rows),
     .count_at = AS_ROW_COUNT(as_proposal, sample_count), .defaults = &default_sample,
     .is_unset = has_no_samples},
    {AS_ROW("schedule", maybe_text, as_proposal, schedule, OPTIONAL), .since = 3,
     .about = "It has ended, and its `end` wants this size"},
    {AS_ROW("unavailable_since", maybe_time, as_proposal, unavailable_since, OPTIONAL), .since = 2,
     .about = "Since when the rule lacks its value"},
    {AS_ROW("value", number, as_proposal, value, OPTIONAL),
     .has_at = AS_ROW_HAS(as_proposal, has_value)},
    {.name = NULL, .check = proposal_check},
};

/* ---- the input ---- */

/* The version decides which members there are. */
static const struct as_row input_rows[] = {
    {AS_ROW_SAME("flags", DEFAULT, flags_rows), .pass = 4},
    {AS_ROW_OF("forbidden", list, as_decide_input, forbidden, FILLED, forbidden_rows), .since = 2,
     .about = "Directions in which the size must not go", .pass = 4,
     .count_at = AS_ROW_COUNT(as_decide_input, forbidden_count)},
    {AS_ROW_SAME("history", DEFAULT, history_rows), .pass = 3},
    {AS_ROW("now", time, as_decide_input, now, REQUIRED), .pass = 1},
    {AS_ROW_SAME("observed", REQUIRED, observed_rows), .pass = 2},
    {AS_ROW_OF("proposals", list, as_decide_input, proposals, REQUIRED, proposal_rows), .pass = 5,
     .count_at = AS_ROW_COUNT(as_decide_input, proposal_count)},
    {AS_ROW("seed", hex, as_snapshot, seed, OPTIONAL), SNAPSHOT, .pass = 6,
     .about = "For the filter `random` of a pool"},
    {AS_ROW_SAME("target", REQUIRED, target_rows), .pass = 1},
    {AS_ROW("v", i32, as_decide_input, version, REQUIRED), .about = "The version of the document",
     .min = AS_DECIDE_OLDEST_VERSION, .max = AS_DECIDE_VERSION},
    {.name = NULL,
     .definition = "decision_input",
     .about =
         "The input document (docs/decision.md): `alertscaler decide` computes the answer from it"},
};

void as_decision_encode_input(const struct as_decide_input *input, struct as_buf *out)
{
    struct document document = {.input = *input};
    struct as_json_writer json;

    if (input->snapshot && !input->snapshot->error)
        document.facts = (struct as_snapshot *)(uintptr_t)input->snapshot;
    else
        document.input.plan_terms = NULL;
    as_json_init(&json, out, 0);
    as_rows_write(&json, input_rows, &document);
}

static bool has_observed(const struct tree_value *root, const char *name)
{
    const struct tree_value *observed = tree_find(root, "observed");
    const struct tree_value *value = tree_find(observed, name);
    return value && !tree_is(value, TREE_NULL);
}

static int decode_root(struct as_decide_document *document, const struct tree_value *root,
                       struct as_error *error)
{
    struct document to = {.input = {.version = AS_DECIDE_VERSION, .config = default_config}};
    struct as_snapshot *snapshot = NULL;
    struct as_reader reader;
    int64_t version = AS_DECIDE_VERSION;

    as_read_document(&reader, root, error);
    (void)tree_get_i64(tree_find(root, "v"), AS_DECIDE_OLDEST_VERSION, AS_DECIDE_VERSION, &version);
    to.input.config.behavior = as_behavior_default;
    if (version >= 2 && (has_observed(root, "groups") || has_observed(root, "pool_error"))) {
        snapshot = as_arena_alloc(&document->arena, 1, sizeof(*snapshot));
        snapshot->resources.count = AS_RES_NAMED;
        to.input.snapshot = snapshot;
        to.facts = has_observed(root, "pool_error") ? NULL : snapshot;
    }
    as_rows_read(&(struct as_rows_input){.arena = &document->arena,
                                         .version = (int32_t)version,
                                         .copies_texts = true,
                                         .context = snapshot},
                 &reader, input_rows, &to);
    document->input = to.input;
    document->results =
        as_arena_alloc(&document->arena, to.input.proposal_count, sizeof(*document->results));
    return as_read_result(&reader);
}

static int decode_document(const struct tree_value *root, struct as_decide_document **document_out,
                           struct as_error *error)
{
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *document = as_xcalloc(1, sizeof(*document));

    int status = decode_root(document, root, error);
    if (status)
        return status;
    *document_out = document;
    document = NULL;
    return 0;
}

int as_decision_decode_input(const char *json, size_t size,
                             struct as_decide_document **document_out, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);

    int status = tree_load(&tree, json, size, error);
    return status ? status : decode_document(tree.root, document_out, error);
}

int as_decision_decode_record(const char *line, size_t size,
                              struct as_decide_document **document_out, struct as_error *error)
{
    static const struct tree_part parts[] = {{.name = "input"}, {.name = NULL}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);

    if (tree_parse(&tree, line, size, parts, error) < 0)
        return -EBADMSG;
    const struct tree_value *input = tree_find(tree.root, "input");
    if (!input || tree.has_nuls) {
        as_error_set(error, input ? "a text of `input` has a NUL" : "the decision has no `input`");
        return -EBADMSG;
    }
    int status = decode_document(input, document_out, error);
    if (status)
        as_error_wrap(error, "input");
    return status;
}

struct as_decide_document *as_decide_document_free(struct as_decide_document *document)
{
    if (document) {
        as_arena_deinit(&document->arena);
        free(document);
    }
    return NULL;
}

/* ---- the answer ---- */

struct answer {
    const struct as_decide_input *input;
    const struct as_proposal_result *results;
    const struct as_decision *decision;
    const struct as_pool_plan *plan; /* NULL: no pool */
};

#define INPUT    .via = AS_ROW_VIA(answer, input)
#define DECISION .via = AS_ROW_VIA(answer, decision)
#define PLAN     .via = AS_ROW_VIA(answer, plan), .is_via_optional = true

static bool has_no_plan(const void *base)
{
    return !((const struct answer *)base)->plan;
}

/* Of each group whose size the plan changes in the direction of the decision. */
struct group_change {
    const char *name;
    int32_t from, to;
};

static const struct as_row group_change_rows[] = {
    {AS_ROW("from", i32, group_change, from, DEFAULT), .min = -1, .about = "-1: not known"},
    {AS_ROW("name", text, group_change, name, DEFAULT)},
    {AS_ROW("to", i32, group_change, to, DEFAULT)},
    {.name = NULL},
};

static int32_t get_size_after(const struct answer *answer, size_t group)
{
    switch (answer->decision->direction) {
    case AS_DIRECTION_UP: return answer->plan->groups[group].fit;
    case AS_DIRECTION_DOWN: return answer->plan->groups[group].take_to;
    case AS_DIRECTION_NONE: break;
    }
    return answer->input->snapshot->groups[group].size;
}

static void group_changes_write(struct as_json_writer *json, const struct as_row *row,
                                const void *base)
{
    const struct answer *answer = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < answer->input->snapshot->group_count; i++) {
        const struct as_snapshot_group *group = &answer->input->snapshot->groups[i];
        const struct group_change change = {group->name, group->size, get_size_after(answer, i)};
        if (change.to != change.from)
            as_rows_write(json, row->rows, &change);
    }
    as_json_end_array(json);
}

static const struct as_row_type group_changes_type = {.write = group_changes_write,
                                                      .like = &as_row_list};

/* What each group offered. */
struct option {
    const char *group, *out_by;
    bool is_chosen;
    const struct as_pool_option *option;
};

#define SCORE(WORD, FILTER)                                                                        \
    {                                                                                              \
        .name = (WORD), .type = &score_type, .at = (FILTER)                                        \
    }

static void score_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_pool_option *option = base;
    if (!(option->scored & (1U << row->at)))
        return;
    as_json_write_key(json, row->name);
    as_json_write_double(json, option->scores[row->at]);
}

static const struct as_row_type score_type = {
    .has_own_key = true, .write = score_write, .like = &as_row_number};

static const struct as_row score_rows[] = {
    SCORE("least_nodes", AS_POOL_LEAST_NODES),
    SCORE("least_waste", AS_POOL_LEAST_WASTE),
    SCORE("most_pods", AS_POOL_MOST_PODS),
    SCORE("price", AS_POOL_PRICE),
    SCORE("priority", AS_POOL_PRIORITY),
    SCORE("random", AS_POOL_RANDOM),
    {.name = NULL},
};
_Static_assert(AS_ARRAY_SIZE(score_rows) == AS_POOL_FILTER_COUNT + 1, "all of them");

#define OPTION .via = AS_ROW_VIA(option, option)

static const struct as_row option_rows[] = {
    {AS_ROW("chosen", flag, option, is_chosen, OPTIONAL)},
    {AS_ROW("group", text, option, group, DEFAULT)},
    {AS_ROW("nodes", u64, as_pool_option, nodes, DEFAULT), OPTION},
    {AS_ROW("out_by", maybe_text, option, out_by, OPTIONAL)},
    {AS_ROW("pods", u64, as_pool_option, pods, DEFAULT), OPTION},
    {AS_ROW_SAME("scores", DEFAULT, score_rows), OPTION},
    {.name = NULL},
};

static const char *get_out_by(const struct as_pool_option *option)
{
    const bool is_by_filter = option->is_out && option->out_by < AS_POOL_FILTER_COUNT;
    return is_by_filter ? as_pool_filter_get_word(option->out_by) : NULL;
}

static void options_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct answer *answer = base;
    const struct as_pool_plan *plan = answer->plan;
    as_json_begin_array(json);
    for (size_t i = 0; i < answer->input->snapshot->group_count; i++) {
        const struct as_pool_option *option = &plan->groups[i].option;
        const struct option written = {.group = answer->input->snapshot->groups[i].name,
                                       .out_by = get_out_by(option),
                                       .is_chosen = plan->chosen == i,
                                       .option = option};
        if (plan->groups[i].has_option)
            as_rows_write(json, row->rows, &written);
    }
    as_json_end_array(json);
}

static const struct as_row_type options_type = {.write = options_write, .like = &as_row_list};

/* A number or a word of each group. */
struct group_note {
    const char *group, *why;
    int32_t count;
};

static const struct as_row overdue_rows[] = {
    {AS_ROW("count", i32, group_note, count, DEFAULT)},
    {AS_ROW("group", text, group_note, group, DEFAULT)},
    {.name = NULL},
};

static const struct as_row skipped_rows[] = {
    {AS_ROW("group", text, group_note, group, DEFAULT)},
    {AS_ROW("why", text, group_note, why, DEFAULT)},
    {.name = NULL},
};

static void overdue_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct answer *answer = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < answer->input->snapshot->group_count; i++) {
        const struct group_note note = {.group = answer->input->snapshot->groups[i].name,
                                        .count = answer->plan->groups[i].overdue};
        if (note.count != 0)
            as_rows_write(json, row->rows, &note);
    }
    as_json_end_array(json);
}

static bool has_no_overdue(const void *base)
{
    return has_no_plan(base) || ((const struct answer *)base)->decision->overdue == 0;
}

static const struct as_row_type overdue_type = {.write = overdue_write, .like = &as_row_list};

static void skipped_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct answer *answer = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < answer->input->snapshot->group_count; i++) {
        const enum as_reason skipped = answer->plan->groups[i].skipped;
        const struct group_note note = {.group = answer->input->snapshot->groups[i].name,
                                        .why = as_reason_get_word(skipped)};
        if (skipped != AS_REASON_SCALED)
            as_rows_write(json, row->rows, &note);
    }
    as_json_end_array(json);
}

static const struct as_row_type skipped_type = {.write = skipped_write, .like = &as_row_list};

/* Names of nodes. */
static void take_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct answer *answer = base;
    const bool is_down = answer->decision->direction == AS_DIRECTION_DOWN;
    (void)row;
    as_json_begin_array(json);
    for (size_t i = 0; is_down && i < answer->plan->take_count; i++)
        as_json_write_string(json, answer->plan->take[i]);
    as_json_end_array(json);
}

static const struct as_row_type take_type = {.write = take_write, .like = &as_row_texts};

/* What each proposal came to. */
struct result {
    const char *approval, *reason, *rule, *schedule;
    bool has_desired, has_value;
    int32_t desired;
    double value;
};

static const struct as_row result_rows[] = {
    {AS_ROW("approval", maybe_text, result, approval, OPTIONAL)},
    {AS_ROW("desired", i32, result, desired, REQUIRED), .has_at = AS_ROW_HAS(result, has_desired)},
    {AS_ROW("reason", text, result, reason, DEFAULT)},
    {AS_ROW("rule", maybe_text, result, rule, DEFAULT)},
    {AS_ROW("schedule", maybe_text, result, schedule, OPTIONAL)},
    {AS_ROW("value", number, result, value, DEFAULT), .has_at = AS_ROW_HAS(result, has_value)},
    {.name = NULL},
};

static const char *get_result_word(const struct as_proposal_result *result)
{
    if (result->is_floor)
        return "floor";
    if (result->is_hold)
        return "hold";
    if (result->ban)
        return as_reason_get_word(as_holder_get_reason(result->ban->by));
    if (!result->has_size)
        return as_reason_get_word(result->reason);
    if (result->is_missing)
        return "fallback";
    return result->within_tolerance ? "within_tolerance" : "ok";
}

static void results_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct answer *answer = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < answer->input->proposal_count; i++) {
        const struct as_proposal_result *result = &answer->results[i];
        const struct result written = {.approval = as_approval_use_get_word(result->approval),
                                       .reason = get_result_word(result),
                                       .rule = answer->input->proposals[i].rule,
                                       .schedule = answer->input->proposals[i].schedule,
                                       .has_desired = result->has_size || result->is_floor,
                                       .desired = result->desired,
                                       .has_value = result->has_value,
                                       .value = result->value};
        as_rows_write(json, row->rows, &written);
    }
    as_json_end_array(json);
}

static const struct as_row_type results_type = {.write = results_write, .like = &as_row_list};

static bool has_no_holder(const void *base)
{
    return !as_reason_has_holder(((const struct as_decision *)base)->reason);
}

static const struct as_row holder_rows[] = {
    {AS_ROW("by", word, as_holder_name, by, DEFAULT), .get_word = get_holder},
    {AS_ROW("name", maybe_text, as_holder_name, name, OPTIONAL)},
    {.name = NULL},
};

/* The size after each gate. */
struct trail_row {
    enum as_gate gate;
    int32_t desired;
};

static const struct as_row trail_rows[] = {
    {AS_ROW("desired", i32, trail_row, desired, DEFAULT)},
    {AS_ROW("gate", word, trail_row, gate, DEFAULT), .get_word = get_gate},
    {.name = NULL},
};

static void trail_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_decision *decision = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < decision->trail_count; i++)
        as_rows_write(json, row->rows,
                      &(struct trail_row){decision->trail[i].gate, decision->trail[i].desired});
    as_json_end_array(json);
}

static const struct as_row_type trail_type = {.write = trail_write, .like = &as_row_list};

static const struct as_row answer_rows[] = {
    {AS_ROW("ask", i32, as_decision, asked, DEFAULT), DECISION,
     .about = "The size to ask an approval for", .has_at = AS_ROW_HAS(as_decision, is_asking)},
    {AS_ROW_OF("asked", list, as_pool_plan, asked, FILLED, as_decision_asked_rows), PLAN,
     .count_at = AS_ROW_COUNT(as_pool_plan, asked_count)},
    {AS_ROW("desired", i32, as_decision, desired, DEFAULT), DECISION},
    {AS_ROW("direction", word, as_decision, direction, DEFAULT), DECISION,
     .get_word = get_direction},
    {.name = "groups",
     .type = &group_changes_type,
     .rows = group_change_rows,
     .is_unset = has_no_plan},
    {AS_ROW_PART("held_by", as_decision, held_by, OPTIONAL, holder_rows), DECISION,
     .about = "What forbids the direction", .is_unset = has_no_holder},
    {AS_ROW("homeless", pods, as_pool_plan, homeless_pods, FILLED), PLAN,
     .count_at = AS_ROW_COUNT(as_pool_plan, homeless_count)},
    {AS_ROW_PART("kept", as_pool_plan, kept, DEFAULT, as_decision_kept_rows), PLAN},
    {AS_ROW("limited_by", bits, as_decision, limited_by, DEFAULT), DECISION, .get_word = get_limit},
    {AS_ROW("next_evaluation", maybe_time, as_decision, next_evaluation, DEFAULT), DECISION},
    {.name = "options", .type = &options_type, .rows = option_rows, .is_unset = has_no_plan},
    {.name = "overdue", .type = &overdue_type, .rows = overdue_rows, .is_unset = has_no_overdue},
    {.name = "proposals", .type = &results_type, .presence = AS_ROW_DEFAULT, .rows = result_rows},
    {AS_ROW("reason", word, as_decision, reason, DEFAULT), DECISION, .get_word = get_reason},
    {AS_ROW("recommendation", i32, as_decision, recommendation, REQUIRED), DECISION,
     .has_at = AS_ROW_HAS(as_decision, has_recommendation)},
    {AS_ROW("replicas", i32, as_decision, replicas, DEFAULT), DECISION},
    {AS_ROW("rule", maybe_text, as_decision, rule, DEFAULT), DECISION},
    {.name = "skipped", .type = &skipped_type, .rows = skipped_rows, .is_unset = has_no_plan},
    {.name = "take",
     .type = &take_type,
     .is_unset = has_no_plan,
     .about = "Names of the nodes that leave now"},
    {.name = "trail",
     .type = &trail_type,
     .presence = AS_ROW_DEFAULT,
     DECISION,
     .rows = trail_rows},
    {AS_ROW_OF("unneeded", list, as_pool_plan, unneeded, FILLED, as_decision_unneeded_rows), PLAN,
     .count_at = AS_ROW_COUNT(as_pool_plan, unneeded_count)},
    {AS_ROW("v", i32, as_decide_input, version, DEFAULT), INPUT},
    {AS_ROW("would", i32, as_decision, would, DEFAULT), DECISION,
     .has_at = AS_ROW_HAS(as_decision, has_would)},
    {.name = NULL,
     .definition = "decision_output",
     .about = "The answer (docs/decision.md), as `alertscaler decide` prints it"},
};

void as_decision_encode_output(const struct as_decide_input *input,
                               const struct as_proposal_result *results,
                               const struct as_decision *decision, struct as_buf *out)
{
    struct as_json_writer json;

    as_json_init(&json, out, 0);
    as_rows_write(&json, answer_rows, &(struct answer){input, results, decision, input->plan});
}

/* ---- the JSON Schemas ---- */

void as_decision_describe_input(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_reference(schema, input_rows);
}

void as_decision_describe_output(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_reference(schema, answer_rows);
}

void as_decision_encode_input_schema(struct as_buf *out)
{
    struct as_rows_schema schema;
    as_rows_schema_begin(&schema, out, AS_ROWS_SCHEMA_READ, "The input of a decision",
                         "A line that `alertscaler decide` reads. docs/decision.md explains it.");
    as_rows_schema_write_object(&schema, input_rows);
    as_rows_schema_end(&schema);
}

void as_decision_encode_output_schema(struct as_buf *out)
{
    struct as_rows_schema schema;
    as_rows_schema_begin(&schema, out, AS_ROWS_SCHEMA_WRITTEN, "The answer of a decision",
                         "A line that `alertscaler decide` prints. docs/decision.md explains it.");
    as_rows_schema_write_object(&schema, answer_rows);
    as_rows_schema_end(&schema);
}

/* ---- the decision of a document ---- */

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
