/*
 * Snapshots in decision documents: what was seen of a pool's cluster, read and written.
 *
 * The reader is strict: what a plan would trip over is an error with its place. The writer leaves
 * out what has its default, as a document may have thousands of nodes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/encode.h>

#include "decision_private.h"

#define DECISION_GROUPS_MAX 10000 /* of a cluster */
#define DECISION_NODES_MAX  (2 * AS_SNAPSHOT_NODES_MAX + AS_SNAPSHOT_DRAINED_MAX)

#define UNREADY_DEFAULT_US  (20 * AS_US_PER_MIN)
#define UNNEEDED_DEFAULT_US (10 * AS_US_PER_MIN)

static const struct as_read_word decision_unchecked[] = {
    {"affinity", AS_UNCHECKED_AFFINITY},   {"spread", AS_UNCHECKED_SPREAD},
    {"volumes", AS_UNCHECKED_VOLUMES},     {"claims", AS_UNCHECKED_CLAIMS},
    {"resources", AS_UNCHECKED_RESOURCES}, {0}};
static const struct as_read_word decision_effects[] = {
    {"NoSchedule", AS_TAINT_NO_SCHEDULE},
    {"PreferNoSchedule", AS_TAINT_PREFER_NO_SCHEDULE},
    {"NoExecute", AS_TAINT_NO_EXECUTE},
    {0}};
static const struct as_read_word decision_evictions[] = {
    {"allowed", AS_EVICTION_ALLOWED},
    {"refused", AS_EVICTION_REFUSED},
    {"system", AS_EVICTION_SYSTEM},
    {"local_storage", AS_EVICTION_LOCAL_STORAGE},
    {"unreplicated", AS_EVICTION_UNREPLICATED},
    {"daemon", AS_EVICTION_DAEMON},
    {"mirror", AS_EVICTION_MIRROR},
    {0}};
static const struct as_read_word decision_operators[] = {{"In", AS_NODE_IN},
                                                         {"NotIn", AS_NODE_NOT_IN},
                                                         {"Exists", AS_NODE_EXISTS},
                                                         {"DoesNotExist", AS_NODE_DOES_NOT_EXIST},
                                                         {"Gt", AS_NODE_GT},
                                                         {"Lt", AS_NODE_LT},
                                                         {0}};
static const struct as_read_word decision_template_sources[] = {
    {"node", AS_NODE_TEMPLATE_NODE},
    {"last", AS_NODE_TEMPLATE_LAST},
    {"configured", AS_NODE_TEMPLATE_CONFIGURED},
    {0}};

static const char *snapshot_get_word(const struct as_read_word *words, int value)
{
    while (words->value != value)
        words++;
    return words->text;
}

static void snapshot_begin(struct as_json_writer *json, const char *key)
{
    as_json_write_key(json, key);
    as_json_begin_array(json);
}

static void write_i64_if(struct as_json_writer *json, const char *key, int64_t number)
{
    if (number != 0)
        as_json_write_member_i64(json, key, number);
}

static void write_text_if(struct as_json_writer *json, const char *key, const char *text)
{
    if (text && *text)
        as_json_write_member(json, key, text);
}

static void snapshot_write_double(struct as_json_writer *json, const char *key, double number)
{
    as_json_write_key(json, key);
    as_json_write_double(json, number);
}

static void write_hex(struct as_json_writer *json, const char *key, uint64_t number)
{
    as_json_write_key(json, key);
    as_json_write_hex(json, number);
}

static void write_bits(struct as_json_writer *json, const char *key,
                       const struct as_read_word *words, unsigned bits)
{
    if (!bits)
        return;
    snapshot_begin(json, key);
    for (; words->text; words++)
        if (bits & (unsigned)words->value)
            as_json_write_string(json, words->text);
    as_json_end_array(json);
}

void decision_write_time(struct as_json_writer *json, const char *key, as_maybe_time time)
{
    char text[AS_RFC3339_SIZE];

    if (!time.set)
        return;
    as_wall_time_print_short(time.at, text);
    as_json_write_member(json, key, text);
}

/* Without zeros at the end. */
static void snapshot_write_amounts(struct as_json_writer *json, const char *key,
                                   const struct as_resources *amounts, size_t count)
{
    while (count > 0 && amounts->amount[count - 1] == 0)
        count--;
    if (count == 0)
        return;
    snapshot_begin(json, key);
    for (size_t i = 0; i < count; i++)
        as_json_write_i64(json, amounts->amount[i]);
    as_json_end_array(json);
}

static void snapshot_write_labels(struct as_json_writer *json, const char *key,
                                  const struct as_labels *labels)
{
    if (!labels || labels->count == 0)
        return;
    as_json_write_key(json, key);
    as_json_begin_object(json);
    for (uint32_t i = 0; i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void snapshot_write_taints(struct as_json_writer *json, const struct as_taint *taints,
                                  size_t count)
{
    if (count == 0)
        return;
    snapshot_begin(json, "taints");
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "effect",
                             snapshot_get_word(decision_effects, (int)taints[i].effect));
        as_json_write_member(json, "key", taints[i].key);
        write_text_if(json, "value", taints[i].value);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void snapshot_write_ports(struct as_json_writer *json, const struct as_host_port *ports,
                                 size_t count)
{
    if (count == 0)
        return;
    snapshot_begin(json, "ports");
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "ip", ports[i].ip);
        as_json_write_member_i64(json, "port", ports[i].port);
        as_json_write_member(json, "protocol", ports[i].protocol);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void decision_write_pods(struct as_json_writer *json, const char *key,
                         const struct as_snapshot_pods *pods, size_t count)
{
    if (count == 0)
        return;
    snapshot_begin(json, key);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_array(json);
        as_json_write_i64(json, pods[i].pod_class);
        as_json_write_i64(json, pods[i].count);
        as_json_end_array(json);
    }
    as_json_end_array(json);
}

/* target.pool */

static void snapshot_write_range(struct as_json_writer *json, const char *key,
                                 const struct as_pool_range *range, double unit)
{
    if (range->min <= 0 && range->max == AS_POOL_NO_CAP)
        return;
    as_json_write_key(json, key);
    as_json_begin_object(json);
    if (range->max != AS_POOL_NO_CAP)
        snapshot_write_double(json, "max", (double)range->max / unit);
    if (range->min > 0)
        snapshot_write_double(json, "min", (double)range->min / unit);
    as_json_end_object(json);
}

static void snapshot_write_choice(struct as_json_writer *json, const struct as_pool_config *pool)
{
    if (pool->choose_count == 0)
        return;
    snapshot_begin(json, "choose");
    for (size_t i = 0; i < pool->choose_count; i++)
        as_json_write_string(json, as_pool_filter_get_word(pool->choose[i]));
    as_json_end_array(json);
}

void decision_write_pool(struct as_json_writer *json, const struct as_pool_config *pool)
{
    as_json_begin_object(json);
    as_json_write_key(json, "at_once");
    as_json_begin_object(json);
    as_json_write_member_i64(json, "drain", pool->at_once_drain);
    as_json_write_member_i64(json, "empty", pool->at_once_empty);
    as_json_end_object(json);
    as_json_write_member_bool(json, "balance", pool->balance);
    snapshot_write_choice(json, pool);
    snapshot_write_range(json, "cpu", &pool->cpu, 1000);
    if (pool->ignore_label_count > 0) {
        snapshot_begin(json, "ignore_labels");
        for (size_t i = 0; i < pool->ignore_label_count; i++)
            as_json_write_string(json, pool->ignore_labels[i]);
        as_json_end_array(json);
    }
    snapshot_write_range(json, "memory", &pool->memory, 1);
    if (pool->cpu_price > 0 || pool->memory_price > 0) {
        as_json_write_key(json, "pod_price");
        as_json_begin_object(json);
        snapshot_write_double(json, "cpu", pool->cpu_price);
        snapshot_write_double(json, "memory", pool->memory_price);
        as_json_end_object(json);
    }
    as_json_end_object(json);
}

/* Groups */

static void write_template(struct as_json_writer *json, const struct as_snapshot_group *group,
                           size_t amounts)
{
    const struct as_node_template *template_ = &group->template_;

    if (template_->source == AS_NODE_TEMPLATE_NONE)
        return;
    as_json_write_key(json, "template");
    as_json_begin_object(json);
    snapshot_write_amounts(json, "allocatable", &template_->allocatable, amounts);
    snapshot_write_amounts(json, "capacity", &template_->capacity, amounts);
    write_hex(json, "digest", group->template_digest);
    snapshot_write_amounts(json, "free", &template_->shape.allocatable, amounts);
    snapshot_write_labels(json, "labels", template_->shape.labels);
    write_text_if(json, "node", template_->node);
    snapshot_write_ports(json, template_->ports, template_->port_count);
    as_json_write_member(json, "source",
                         snapshot_get_word(decision_template_sources, (int)template_->source));
    snapshot_write_taints(json, template_->shape.taints, template_->shape.taint_count);
    as_json_end_object(json);
}

static void snapshot_write_seconds(struct as_json_writer *json, const char *key, int64_t us)
{
    snapshot_write_double(json, key, (double)us / AS_US_PER_S);
}

static void write_unneeded_config(struct as_json_writer *json,
                                  const struct as_unneeded_config *unneeded)
{
    if (unneeded->for_us == UNNEEDED_DEFAULT_US && unneeded->unready_for_us == UNREADY_DEFAULT_US)
        return;
    as_json_write_key(json, "unneeded");
    as_json_begin_object(json);
    snapshot_write_seconds(json, "for", unneeded->for_us);
    as_json_write_key(json, "unready_for");
    if (unneeded->unready_for_us == AS_UNREADY_NEVER)
        as_json_write_null(json);
    else
        as_json_write_double(json, (double)unneeded->unready_for_us / AS_US_PER_S);
    as_json_end_object(json);
}

static void write_group_nodes(struct as_json_writer *json, const struct as_snapshot_group *group)
{
    if (group->nodes == 0)
        return;
    as_json_write_key(json, "nodes");
    as_json_begin_object(json);
    as_json_write_member_i64(json, "count", group->nodes);
    as_json_write_member_i64(json, "cpu", group->cpu);
    as_json_write_member_i64(json, "memory", group->memory);
    as_json_end_object(json);
}

static void snapshot_write_group(struct as_json_writer *json, const struct as_snapshot_group *group,
                                 size_t amounts)
{
    as_json_begin_object(json);
    if (group->closed != AS_REASON_SCALED)
        as_json_write_member(json, "closed", as_reason_get_word(group->closed));
    write_i64_if(json, "coming", group->coming);
    write_i64_if(json, "in_doubt", group->in_doubt);
    write_i64_if(json, "last_size", group->last_size);
    as_json_write_member_i64(json, "max", group->max);
    if (!group->is_member)
        as_json_write_member_bool(json, "member", false);
    write_text_if(json, "message", group->message);
    write_i64_if(json, "min", group->min);
    as_json_write_member(json, "name", group->name);
    write_group_nodes(json, group);
    decision_write_time(json, "open_at", group->open_at);
    write_i64_if(json, "overdue", group->overdue);
    if (group->has_price)
        snapshot_write_double(json, "price", group->price);
    if (group->has_priority)
        as_json_write_member_i64(json, "priority", group->priority);
    write_i64_if(json, "removable", group->removable);
    as_json_write_key(json, "size");
    if (group->size < 0)
        as_json_write_null(json);
    else
        as_json_write_i64(json, group->size);
    write_i64_if(json, "surplus", group->surplus);
    if (group->surplus > 0)
        decision_write_time(json, "surplus_since", group->surplus_since);
    write_template(json, group, amounts);
    write_unneeded_config(json, &group->unneeded);
    write_i64_if(json, "unregistered", group->unregistered);
    as_json_end_object(json);
}

void decision_write_kept(struct as_json_writer *json, const uint64_t kept[AS_STAY_COUNT])
{
    /* Keys ascend; the enum has another order. */
    static const enum as_stay by_word[] = {
        AS_STAY_AT_MIN,     AS_STAY_AT_ONCE,  AS_STAY_BUDGET,      AS_STAY_DISABLED,
        AS_STAY_DRY_RUN,    AS_STAY_HELD,     AS_STAY_IN_PROGRESS, AS_STAY_LEAVING,
        AS_STAY_NO_CHOICE,  AS_STAY_NO_GROUP, AS_STAY_NO_ROOM,     AS_STAY_PAUSED,
        AS_STAY_RECEIVES,   AS_STAY_SHORTLY,  AS_STAY_STARTING,    AS_STAY_UNEVICTABLE,
        AS_STAY_UNREADABLE, AS_STAY_UTILIZED};
    _Static_assert(AS_ARRAY_SIZE(by_word) == AS_STAY_COUNT, "all of them");

    as_json_write_key(json, "kept");
    as_json_begin_object(json);
    for (size_t i = 0; i < AS_STAY_COUNT; i++)
        write_i64_if(json, as_stay_get_word(by_word[i]), (int64_t)kept[by_word[i]]);
    as_json_end_object(json);
}

void decision_write_budgets_to_kept(struct as_json_writer *json, const struct as_snapshot *snapshot)
{
    if (snapshot->budget_count > 0) {
        snapshot_begin(json, "budgets");
        for (size_t i = 0; i < snapshot->budget_count; i++) {
            as_json_begin_object(json);
            write_i64_if(json, "allowed", snapshot->budgets[i].allowed);
            as_json_write_member(json, "name", snapshot->budgets[i].name);
            as_json_end_object(json);
        }
        as_json_end_array(json);
    }
    write_i64_if(json, "cluster_nodes", (int64_t)snapshot->cluster_nodes);
    snapshot_begin(json, "groups");
    for (size_t i = 0; i < snapshot->group_count; i++)
        snapshot_write_group(json, &snapshot->groups[i], snapshot->resources.count);
    as_json_end_array(json);
    decision_write_kept(json, snapshot->kept);
}

void decision_write_leaving(struct as_json_writer *json, const struct as_snapshot *snapshot)
{
    if (snapshot->leaving_drained == 0 && snapshot->leaving_empty == 0)
        return;
    as_json_write_key(json, "leaving");
    as_json_begin_object(json);
    write_i64_if(json, "drained", (int64_t)snapshot->leaving_drained);
    write_i64_if(json, "empty", (int64_t)snapshot->leaving_empty);
    as_json_end_object(json);
}

/* Nodes */

static void write_node(struct as_json_writer *json, const struct as_snapshot *snapshot,
                       const struct as_snapshot_node *node)
{
    const size_t amounts = snapshot->resources.count;

    as_json_begin_object(json);
    snapshot_write_amounts(json, "allocatable", &node->node.allocatable, amounts);
    if (node->expendable)
        snapshot_write_amounts(json, "expendable", node->expendable, amounts);
    if (node->group != AS_SNAPSHOT_NO_GROUP)
        as_json_write_member_i64(json, "group", node->group);
    decision_write_pods(json, "guests", node->guests, node->guest_count);
    snapshot_write_labels(json, "labels", node->node.labels);
    snapshot_write_amounts(json, "left", &node->left, amounts);
    as_json_write_member(json, "name", node->node.name);
    decision_write_pods(json, "pods", node->pods, node->pod_count);
    if (!node->is_ready)
        as_json_write_member_bool(json, "ready", false);
    if (!node->is_candidate)
        as_json_write_member(json, "stays", as_stay_get_word(node->stay));
    snapshot_write_taints(json, node->node.taints, node->node.taint_count);
    if (node->utilization != 0)
        snapshot_write_double(json, "utilization", node->utilization);
    as_json_end_object(json);
}

static void write_plan_terms(struct as_json_writer *json, const struct as_pool_plan_terms *terms)
{
    as_json_write_key(json, "plan");
    as_json_begin_object(json);
    decision_write_time(json, "at", (as_maybe_time){.set = true, .at = terms->now});
    as_json_write_member_bool(json, "fit", terms->with_fit);
    as_json_write_member_i64(json, "max", terms->max);
    as_json_write_member_i64(json, "min", terms->min);
    as_json_write_member_bool(json, "take", terms->with_take);
    as_json_end_object(json);
}

void decision_write_pending_to_plan(struct as_json_writer *json,
                                    const struct as_decide_input *input)
{
    decision_write_pods(json, "pending", input->snapshot->pending, input->snapshot->pending_count);
    write_i64_if(json, "pending_pods", (int64_t)input->snapshot->pending_pods);
    if (input->plan_terms)
        write_plan_terms(json, input->plan_terms);
}

void decision_write_nodes(struct as_json_writer *json, const struct as_snapshot *snapshot)
{
    if (snapshot->node_count == 0)
        return;
    snapshot_begin(json, "pool_nodes");
    for (size_t i = 0; i < snapshot->node_count; i++)
        write_node(json, snapshot, &snapshot->nodes[i]);
    as_json_end_array(json);
}

/* Pod classes */

static void write_affinity(struct as_json_writer *json, const struct as_pod_class *pod)
{
    snapshot_begin(json, "affinity");
    for (size_t i = 0; i < pod->term_count; i++) {
        as_json_begin_array(json);
        for (size_t k = 0; k < pod->terms[i].count; k++) {
            const struct as_node_requirement *requirement = &pod->terms[i].requirements[k];

            as_json_begin_object(json);
            if (requirement->is_field)
                as_json_write_member_bool(json, "field", true);
            as_json_write_member(json, "key", requirement->key);
            as_json_write_member(
                json, "operator",
                snapshot_get_word(decision_operators, (int)requirement->operator_));
            if (requirement->value_count > 0)
                snapshot_begin(json, "values");
            for (size_t j = 0; j < requirement->value_count; j++)
                as_json_write_string(json, requirement->values[j]);
            if (requirement->value_count > 0)
                as_json_end_array(json);
            as_json_end_object(json);
        }
        as_json_end_array(json);
    }
    as_json_end_array(json);
}

static void write_tolerations(struct as_json_writer *json, const struct as_pod_class *pod)
{
    if (pod->toleration_count == 0)
        return;
    snapshot_begin(json, "tolerations");
    for (size_t i = 0; i < pod->toleration_count; i++) {
        const struct as_toleration *toleration = &pod->tolerations[i];

        as_json_begin_object(json);
        write_bits(json, "effects", decision_effects, toleration->effects);
        if (toleration->is_exists)
            as_json_write_member_bool(json, "exists", true);
        write_text_if(json, "key", toleration->key);
        write_text_if(json, "value", toleration->value);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_pod_class(struct as_json_writer *json,
                            const struct as_snapshot_pod_class *pod_class, size_t amounts)
{
    const struct as_pod_class *pod = &pod_class->pod;

    as_json_begin_object(json);
    if (pod->has_affinity)
        write_affinity(json, pod);
    if (pod_class->budget_count > 0) {
        snapshot_begin(json, "budgets");
        for (size_t i = 0; i < pod_class->budget_count; i++)
            as_json_write_i64(json, pod_class->budgets[i]);
        as_json_end_array(json);
    }
    write_hex(json, "digest", pod_class->digest);
    if (pod->eviction != AS_EVICTION_ALLOWED)
        as_json_write_member(json, "eviction",
                             snapshot_get_word(decision_evictions, (int)pod->eviction));
    if (pod->loner != 0)
        write_hex(json, "loner", pod->loner);
    if (pod->never_preempts)
        as_json_write_member_bool(json, "never_preempts", true);
    snapshot_write_ports(json, pod->ports, pod->port_count);
    write_i64_if(json, "priority", pod->priority);
    snapshot_write_amounts(json, "requests", &pod->requests, amounts);
    snapshot_write_labels(json, "selector", pod->selector);
    write_tolerations(json, pod);
    write_bits(json, "unchecked", decision_unchecked, pod->unchecked);
    if (pod->unchecked)
        write_i64_if(json, "waiting", (int64_t)pod_class->waiting);
    write_text_if(json, "zone", pod->zone);
    as_json_end_object(json);
}

void decision_write_resources_to_pod_classes(struct as_json_writer *json,
                                             const struct as_snapshot *snapshot)
{
    if (snapshot->resources.count > AS_RES_NAMED) {
        snapshot_begin(json, "resources");
        for (size_t i = AS_RES_NAMED; i < snapshot->resources.count; i++)
            as_json_write_string(json, snapshot->resources.name[i]);
        as_json_end_array(json);
    }
    if (snapshot->pod_class_count == 0)
        return;
    snapshot_begin(json, "shapes");
    for (size_t i = 0; i < snapshot->pod_class_count; i++)
        write_pod_class(json, &snapshot->pod_classes[i], snapshot->resources.count);
    as_json_end_array(json);
}

/* History */

void decision_write_asked(struct as_json_writer *json, const struct as_asked *asked, size_t count)
{
    if (count == 0)
        return;
    snapshot_begin(json, "asked");
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        decision_write_time(json, "at", (as_maybe_time){.set = true, .at = asked[i].at});
        as_json_write_member(json, "group", asked[i].group);
        if (asked[i].is_in_vain)
            as_json_write_member_bool(json, "in_vain", true);
        write_hex(json, "shape", asked[i].pod_class);
        write_hex(json, "template", asked[i].template_);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void decision_write_unneeded(struct as_json_writer *json, const struct as_unneeded *unneeded,
                             size_t count)
{
    if (count == 0)
        return;
    snapshot_begin(json, "unneeded");
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        decision_write_time(json, "no_room", unneeded[i].no_room);
        as_json_write_member(json, "node", unneeded[i].node);
        decision_write_time(json, "seen", unneeded[i].seen);
        decision_write_time(json, "since", unneeded[i].since);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

#define HEX_DIGITS 16

/* Shared parts */

/* What is missing at the end is 0. */
static void decision_read_amounts(struct as_reader *reader, const char *name,
                                  const struct snapshot_reader *snapshot,
                                  struct as_resources *amounts_out)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, name, &count);

    if (count > snapshot->snapshot->resources.count) {
        as_read_fail(reader, name, "more amounts than resources");
        return;
    }
    for (size_t i = 0; i < count; i++, at = at->next) {
        if (!tree_get_i64(at, -AS_RES_AMOUNT_MAX, AS_RES_AMOUNT_MAX, &amounts_out->amount[i])) {
            as_read_fail(reader, name, "[%zu]: expected an integer from -2^62 to 2^62", i);
            return;
        }
    }
}

void decision_read_text(struct as_reader *reader, const char *name, struct as_arena *arena,
                        const char **text_out)
{
    const char *text = NULL;

    as_read_text(reader, name, &text);
    if (text)
        *text_out = as_arena_strdup(arena, text);
}

const char *const *decision_read_texts(struct as_reader *reader, const char *name,
                                       struct as_arena *arena, size_t *count_out)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, name, &count);
    const char **texts = as_arena_alloc(arena, count, sizeof(*texts));

    *count_out = 0;
    for (size_t i = 0; i < count; i++, at = at->next) {
        texts[i] = as_arena_strdup(arena, tree_get_text(at));
        if (!texts[i]) {
            as_read_fail(reader, name, "[%zu]: expected a string", i);
            return texts;
        }
    }
    *count_out = count;
    return texts;
}

static const struct as_labels *decision_read_labels(struct as_reader *reader, const char *name,
                                                    struct as_arena *arena)
{
    static const struct as_labels none = {.count = 0};
    struct as_reader object;
    const struct as_labels *labels = &none;
    size_t count = 0;

    as_read_object(&object, reader, name);
    struct as_label *pairs =
        as_arena_alloc(arena, object.object ? object.object->size : 0, sizeof(*pairs));
    for (const struct tree_value *member = object.object ? object.object->first : NULL; member;
         member = member->next) {
        pairs[count] = (struct as_label){.name = member->name, .value = tree_get_text(member)};
        if (!pairs[count++].value) {
            as_read_fail(&object, member->name, "expected a string");
            return &none;
        }
    }
    if (count > 0 && as_labels_new_in(arena, pairs, count, &labels) != 0)
        as_read_fail(reader, name, "too large");
    return labels;
}

static const struct as_taint *decision_read_taints(struct as_reader *reader, struct as_arena *arena,
                                                   size_t *count_out)
{
    const struct tree_value *at = as_read_list(reader, "taints", count_out);
    struct as_taint *taints = as_arena_alloc(arena, *count_out, sizeof(*taints));

    for (size_t i = 0; i < *count_out; i++, at = at->next) {
        struct as_reader item;

        taints[i] = (struct as_taint){.key = "", .value = ""};
        as_read_item(&item, reader, "taints", at, i);
        as_read_require(&item, "key");
        as_read_require(&item, "effect");
        decision_read_text(&item, "key", arena, &taints[i].key);
        decision_read_text(&item, "value", arena, &taints[i].value);
        taints[i].effect = (enum as_taint_effect)as_read_enum(&item, "effect", decision_effects,
                                                              AS_TAINT_NO_SCHEDULE);
        as_read_end(&item);
    }
    return taints;
}

static const struct as_host_port *decision_read_ports(struct as_reader *reader,
                                                      struct as_arena *arena, size_t *count_out)
{
    const struct tree_value *at = as_read_list(reader, "ports", count_out);
    struct as_host_port *ports = as_arena_alloc(arena, *count_out, sizeof(*ports));

    for (size_t i = 0; i < *count_out; i++, at = at->next) {
        struct as_reader item;
        int64_t port = 0;

        ports[i] = (struct as_host_port){.ip = "0.0.0.0", .protocol = "TCP"};
        as_read_item(&item, reader, "ports", at, i);
        decision_read_text(&item, "ip", arena, &ports[i].ip);
        decision_read_text(&item, "protocol", arena, &ports[i].protocol);
        as_read_require(&item, "port");
        as_read_i64(&item, "port", 0, UINT16_MAX, &port);
        ports[i].port = (uint16_t)port;
        as_read_end(&item);
    }
    return ports;
}

/* False: it is no pair of an index and a count. */
static bool read_pair(const struct tree_value *pair, size_t pod_class_count,
                      struct as_snapshot_pods *pods)
{
    const struct tree_value *pod_class = tree_get_first(pair);
    int64_t index, number;

    if (!tree_is(pair, TREE_ARRAY) || pair->size != 2 ||
        !tree_get_i64(pod_class, 0, (int64_t)pod_class_count - 1, &index) ||
        !tree_get_i64(pod_class->next, 1, UINT32_MAX, &number))
        return false;
    *pods = (struct as_snapshot_pods){.pod_class = (uint32_t)index, .count = (uint32_t)number};
    return true;
}

static const struct as_snapshot_pods *decision_read_pods(struct as_reader *reader, const char *name,
                                                         const struct snapshot_reader *snapshot,
                                                         size_t *count_out)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, name, &count);
    struct as_snapshot_pods *pods = as_arena_alloc(snapshot->arena, count, sizeof(*pods));
    bool *is_seen =
        as_arena_alloc(snapshot->arena, snapshot->snapshot->pod_class_count, sizeof(*is_seen));

    *count_out = 0;
    for (size_t i = 0; i < count; i++, at = at->next) {
        if (!read_pair(at, snapshot->snapshot->pod_class_count, &pods[i])) {
            as_read_fail(reader, name,
                         "[%zu]: expected [shape, count], a shape below %zu and a count from 1", i,
                         snapshot->snapshot->pod_class_count);
            return pods;
        }
        if (is_seen[pods[i].pod_class]) {
            as_read_fail(reader, name, "[%zu]: the shape is there twice", i);
            return pods;
        }
        is_seen[pods[i].pod_class] = true;
    }
    *count_out = count;
    return pods;
}

static uint64_t decision_read_hex(struct as_reader *reader, const char *name)
{
    const char *text = NULL;
    unsigned char bytes[HEX_DIGITS / 2];
    uint64_t number = 0;

    as_read_text(reader, name, &text);
    if (!text)
        return 0;
    if (strlen(text) != HEX_DIGITS || !as_decode_hex(text, HEX_DIGITS, bytes)) {
        as_read_fail(reader, name, "expected %d hex digits", HEX_DIGITS);
        return 0;
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        number = number << 8 | bytes[i];
    return number;
}

static unsigned decision_read_bits(struct as_reader *reader, const char *name,
                                   const struct as_read_word *words)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, name, &count);
    unsigned bits = 0;

    for (size_t i = 0; i < count; i++, at = at->next) {
        const char *text = tree_get_text(at);
        size_t word = 0;

        while (text && words[word].text && strcmp(words[word].text, text) != 0)
            word++;
        if (!text || !words[word].text) {
            as_read_fail(reader, name, "[%zu]: no such word", i);
            return bits;
        }
        bits |= (unsigned)words[word].value;
    }
    return bits;
}

/* Pod classes */

static void read_requirement(struct as_reader *pod_class, const struct tree_value *item,
                             size_t index, struct snapshot_reader *snapshot,
                             struct as_node_requirement *requirement)
{
    struct as_reader reader;

    as_read_item(&reader, pod_class, "affinity", item, index);
    as_read_require(&reader, "key");
    as_read_require(&reader, "operator");
    decision_read_text(&reader, "key", snapshot->arena, &requirement->key);
    requirement->operator_ = (enum as_node_operator)as_read_enum(
        &reader, "operator", decision_operators, AS_NODE_EXISTS);
    as_read_bool(&reader, "field", &requirement->is_field);
    requirement->values =
        decision_read_texts(&reader, "values", snapshot->arena, &requirement->value_count);
    as_read_end(&reader);
}

static void read_affinity(struct as_reader *reader, struct snapshot_reader *snapshot,
                          struct as_pod_class *pod)
{
    const struct tree_value *at = as_read_list(reader, "affinity", &pod->term_count);
    struct as_node_term *terms = as_arena_alloc(snapshot->arena, pod->term_count, sizeof(*terms));

    pod->has_affinity = as_read_has(reader, "affinity");
    pod->terms = terms;
    for (size_t i = 0; i < pod->term_count; i++, at = at->next) {
        if (!tree_is(at, TREE_ARRAY)) {
            as_read_fail(reader, "affinity", "[%zu]: expected a list", i);
            return;
        }
        const struct tree_value *item = at->first;
        terms[i].count = at->size;
        struct as_node_requirement *requirements =
            as_arena_alloc(snapshot->arena, terms[i].count, sizeof(*requirements));
        for (size_t k = 0; k < terms[i].count; k++, item = item->next)
            read_requirement(reader, item, k, snapshot, &requirements[k]);
        terms[i].requirements = requirements;
    }
}

static void read_tolerations(struct as_reader *reader, struct snapshot_reader *snapshot,
                             struct as_pod_class *pod)
{
    const struct tree_value *at = as_read_list(reader, "tolerations", &pod->toleration_count);
    struct as_toleration *tolerations =
        as_arena_alloc(snapshot->arena, pod->toleration_count, sizeof(*tolerations));

    for (size_t i = 0; i < pod->toleration_count; i++, at = at->next) {
        struct as_reader item;

        tolerations[i] = (struct as_toleration){.key = "", .value = ""};
        as_read_item(&item, reader, "tolerations", at, i);
        decision_read_text(&item, "key", snapshot->arena, &tolerations[i].key);
        decision_read_text(&item, "value", snapshot->arena, &tolerations[i].value);
        as_read_bool(&item, "exists", &tolerations[i].is_exists);
        tolerations[i].effects = decision_read_bits(&item, "effects", decision_effects);
        as_read_end(&item);
    }
    pod->tolerations = tolerations;
}

static void read_pod_class_budgets(struct as_reader *reader, struct snapshot_reader *snapshot,
                                   struct as_snapshot_pod_class *pod_class)
{
    const struct tree_value *at = as_read_list(reader, "budgets", &pod_class->budget_count);
    uint32_t *budgets = as_arena_alloc(snapshot->arena, pod_class->budget_count, sizeof(*budgets));

    for (size_t i = 0; i < pod_class->budget_count; i++, at = at->next) {
        const int64_t low = i > 0 ? (int64_t)budgets[i - 1] + 1 : 0;
        int64_t index;

        if (!tree_get_i64(at, low, (int64_t)snapshot->snapshot->budget_count - 1, &index)) {
            as_read_fail(reader, "budgets", "[%zu]: expected ascending indices of budgets", i);
            return;
        }
        budgets[i] = (uint32_t)index;
    }
    pod_class->budgets = budgets;
}

static void read_pod_class(struct as_reader *reader, struct snapshot_reader *snapshot,
                           struct as_snapshot_pod_class *pod_class)
{
    struct as_pod_class *pod = &pod_class->pod;
    int64_t waiting = 0;

    decision_read_amounts(reader, "requests", snapshot, &pod->requests);
    for (size_t i = 0; i < AS_RES_MAX; i++)
        if (pod->requests.amount[i] < 0)
            as_read_fail(reader, "requests", "[%zu]: below 0", i);
    pod->selector = decision_read_labels(reader, "selector", snapshot->arena);
    read_affinity(reader, snapshot, pod);
    read_tolerations(reader, snapshot, pod);
    pod->ports = decision_read_ports(reader, snapshot->arena, &pod->port_count);
    pod->loner = decision_read_hex(reader, "loner");
    decision_read_text(reader, "zone", snapshot->arena, &pod->zone);
    as_read_i32(reader, "priority", INT32_MIN, &pod->priority);
    if (snapshot->has_v3)
        as_read_bool(reader, "never_preempts", &pod->never_preempts);
    pod->unchecked = decision_read_bits(reader, "unchecked", decision_unchecked);
    pod->eviction = (enum as_eviction_class)as_read_enum(reader, "eviction", decision_evictions,
                                                         AS_EVICTION_ALLOWED);
    as_read_i64(reader, "waiting", 0, AS_RES_AMOUNT_MAX, &waiting);
    pod_class->waiting = (uint64_t)waiting;
    pod_class->digest = decision_read_hex(reader, "digest");
    read_pod_class_budgets(reader, snapshot, pod_class);
    as_read_end(reader);
}

static void decision_read_pod_classes(struct as_reader *observed, struct snapshot_reader *snapshot)
{
    size_t count;
    const struct tree_value *at = as_read_list(observed, "shapes", &count);

    if (count > AS_SNAPSHOT_POD_CLASSES_MAX) {
        as_read_fail(observed, "shapes", "more than %d", AS_SNAPSHOT_POD_CLASSES_MAX);
        return;
    }
    struct as_snapshot_pod_class *pod_classes =
        as_arena_alloc(snapshot->arena, count, sizeof(*pod_classes));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "shapes", at, i);
        read_pod_class(&item, snapshot, &pod_classes[i]);
    }
    snapshot->snapshot->pod_classes = pod_classes;
    snapshot->snapshot->pod_class_count = count;
}

/* Nodes */

static void read_stay(struct as_reader *reader, struct as_snapshot_node *node)
{
    const char *word = NULL;
    enum as_stay stay = 0;

    as_read_text(reader, "stays", &word);
    node->is_candidate = word == NULL;
    while (word && stay < AS_STAY_COUNT && strcmp(as_stay_get_word(stay), word) != 0)
        stay++;
    if (stay == AS_STAY_COUNT)
        as_read_fail(reader, "stays", "\"%s\" is no reason to stay", word);
    else
        node->stay = stay;
}

static void read_place(struct as_reader *reader, struct snapshot_reader *snapshot,
                       struct as_snapshot_node *node)
{
    const size_t count = snapshot->snapshot->group_count;
    int64_t group = AS_SNAPSHOT_NO_GROUP;

    if (as_read_has(reader, "group") && count == 0)
        as_read_fail(reader, "group", "there are no groups");
    as_read_i64(reader, "group", 0, (int64_t)count - 1, &group);
    node->group = (uint32_t)group;
    if (node->is_candidate && node->group == AS_SNAPSHOT_NO_GROUP)
        as_read_fail(reader, "group", "missing: without a group a node \"stays\"");
}

static void read_expendable(struct as_reader *reader, struct snapshot_reader *snapshot,
                            struct as_snapshot_node *node)
{
    struct as_resources *expendable = as_arena_alloc(snapshot->arena, 1, sizeof(*expendable));

    decision_read_amounts(reader, "expendable", snapshot, expendable);
    for (size_t i = 0; i < AS_RES_MAX; i++) {
        if (expendable->amount[i] < 0)
            as_read_fail(reader, "expendable", "[%zu]: below 0", i);
        if (expendable->amount[i] != 0)
            node->expendable = expendable;
    }
}

static void snapshot_read_node(struct as_reader *reader, struct snapshot_reader *snapshot,
                               struct as_snapshot_node *node)
{
    node->node.name = "";
    node->is_ready = true;
    as_read_require(reader, "name");
    decision_read_text(reader, "name", snapshot->arena, &node->node.name);
    read_stay(reader, node);
    read_place(reader, snapshot, node);
    decision_read_amounts(reader, "allocatable", snapshot, &node->node.allocatable);
    decision_read_amounts(reader, "left", snapshot, &node->left);
    node->node.labels = decision_read_labels(reader, "labels", snapshot->arena);
    node->node.taints = decision_read_taints(reader, snapshot->arena, &node->node.taint_count);
    node->guests = decision_read_pods(reader, "guests", snapshot, &node->guest_count);
    node->pods = decision_read_pods(reader, "pods", snapshot, &node->pod_count);
    if (snapshot->has_v3)
        read_expendable(reader, snapshot, node);
    as_read_bool(reader, "ready", &node->is_ready);
    as_read_positive(reader, "utilization", &node->utilization);
    as_read_end(reader);
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct as_snapshot_node *)a)->node.name,
                  ((const struct as_snapshot_node *)b)->node.name);
}

static void decision_read_nodes(struct as_reader *observed, struct snapshot_reader *snapshot)
{
    size_t count;
    const struct tree_value *at = as_read_list(observed, "pool_nodes", &count);

    if (count > DECISION_NODES_MAX) {
        as_read_fail(observed, "pool_nodes", "more than %d", DECISION_NODES_MAX);
        return;
    }
    struct as_snapshot_node *nodes = as_arena_alloc(snapshot->arena, count, sizeof(*nodes));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "pool_nodes", at, i);
        snapshot_read_node(&item, snapshot, &nodes[i]);
    }
    if (count > 1)
        qsort(nodes, count, sizeof(*nodes), compare_nodes);
    for (size_t i = 1; i < count; i++)
        if (strcmp(nodes[i - 1].node.name, nodes[i].node.name) == 0)
            as_read_fail(observed, "pool_nodes", "\"%s\" is there twice", nodes[i].node.name);
    snapshot->snapshot->nodes = nodes;
    snapshot->snapshot->node_count = count;
}

/* target.pool */

static void read_range(struct as_reader *pool, const char *name, double unit,
                       struct as_pool_range *range)
{
    struct as_reader reader;
    double min = 0, max = INFINITY;

    as_read_object(&reader, pool, name);
    as_read_positive(&reader, "min", &min);
    as_read_positive(&reader, "max", &max);
    if (min > max)
        as_read_fail(&reader, "min", "above max");
    if (min * unit > (double)AS_RES_AMOUNT_MAX)
        as_read_fail(&reader, "min", "too large");
    as_read_end(&reader);
    if (as_read_result(&reader) != 0)
        return;
    range->min = llround(min * unit);
    if (max * unit < (double)AS_RES_AMOUNT_MAX)
        range->max = llround(max * unit);
}

static void read_choice(struct as_reader *reader, struct as_arena *arena,
                        struct as_pool_config *pool)
{
    size_t count;
    const char *const *words = decision_read_texts(reader, "choose", arena, &count);
    unsigned seen = 0;

    for (size_t i = 0; i < count; i++) {
        enum as_pool_filter filter = 0;

        while (filter < AS_POOL_FILTER_COUNT &&
               strcmp(as_pool_filter_get_word(filter), words[i]) != 0)
            filter++;
        if (filter == AS_POOL_FILTER_COUNT || (seen & (1U << filter))) {
            as_read_fail(reader, "choose", "\"%s\" is no filter, or is there twice", words[i]);
            return;
        }
        seen |= 1U << filter;
        pool->choose[pool->choose_count++] = filter;
    }
}

static void read_at_once(struct as_reader *reader, struct as_pool_config *pool)
{
    struct as_reader at_once;
    int32_t empty = (int32_t)pool->at_once_empty, drain = (int32_t)pool->at_once_drain;

    as_read_object(&at_once, reader, "at_once");
    as_read_i32(&at_once, "empty", 0, &empty);
    as_read_i32(&at_once, "drain", 0, &drain);
    as_read_end(&at_once);
    pool->at_once_empty = (uint32_t)empty;
    pool->at_once_drain = (uint32_t)drain;
}

void decision_read_pool(struct as_reader *target, struct as_arena *arena,
                        struct as_decide_input *input)
{
    struct as_reader reader, price;
    struct as_pool_config *pool;

    as_read_object(&reader, target, "pool");
    if (!reader.object)
        return;
    pool = as_arena_alloc(arena, 1, sizeof(*pool));
    *pool = (struct as_pool_config){
        .cpu.max = AS_POOL_NO_CAP,
        .memory.max = AS_POOL_NO_CAP,
        .at_once_empty = 10,
        .at_once_drain = 1,
        .expendable_below = -10,
    };
    read_at_once(&reader, pool);
    as_read_bool(&reader, "balance", &pool->balance);
    read_choice(&reader, arena, pool);
    pool->ignore_labels =
        (char **)decision_read_texts(&reader, "ignore_labels", arena, &pool->ignore_label_count);
    read_range(&reader, "cpu", 1000, &pool->cpu);
    read_range(&reader, "memory", 1, &pool->memory);
    as_read_object(&price, &reader, "pod_price");
    as_read_positive(&price, "cpu", &pool->cpu_price);
    as_read_positive(&price, "memory", &pool->memory_price);
    as_read_end(&price);
    as_read_end(&reader);
    input->pool = pool;
}

/* Groups */

static void read_template(struct as_reader *parent, struct snapshot_reader *snapshot,
                          struct as_snapshot_group *group)
{
    struct as_node_template *template_ = &group->template_;
    struct as_reader reader;

    as_read_object(&reader, parent, "template");
    if (!reader.object)
        return;
    template_->source = (enum as_node_template_source)as_read_enum(
        &reader, "source", decision_template_sources, AS_NODE_TEMPLATE_NONE);
    as_read_require(&reader, "source");
    decision_read_text(&reader, "node", snapshot->arena, &template_->node);
    group->template_digest = decision_read_hex(&reader, "digest");
    decision_read_amounts(&reader, "allocatable", snapshot, &template_->allocatable);
    decision_read_amounts(&reader, "capacity", snapshot, &template_->capacity);
    decision_read_amounts(&reader, "free", snapshot, &template_->shape.allocatable);
    template_->shape.labels = decision_read_labels(&reader, "labels", snapshot->arena);
    template_->shape.taints =
        decision_read_taints(&reader, snapshot->arena, &template_->shape.taint_count);
    if (snapshot->has_v3)
        template_->ports = decision_read_ports(&reader, snapshot->arena, &template_->port_count);
    as_read_end(&reader);
}

static void read_unneeded_config(struct as_reader *parent, struct as_unneeded_config *unneeded)
{
    struct as_reader reader;

    *unneeded = (struct as_unneeded_config){.for_us = 10 * AS_US_PER_MIN,
                                            .unready_for_us = 20 * AS_US_PER_MIN};
    as_read_object(&reader, parent, "unneeded");
    as_read_seconds(&reader, "for", &unneeded->for_us);
    if (tree_is(tree_find(reader.object, "unready_for"), TREE_NULL)) {
        (void)as_read_any(&reader, "unready_for");
        unneeded->unready_for_us = AS_UNREADY_NEVER;
    } else {
        as_read_seconds(&reader, "unready_for", &unneeded->unready_for_us);
    }
    as_read_end(&reader);
}

static void read_group_nodes(struct as_reader *parent, struct as_snapshot_group *group)
{
    struct as_reader reader;

    as_read_object(&reader, parent, "nodes");
    as_read_i64(&reader, "count", 0, AS_SIZE_MAX, &group->nodes);
    as_read_i64(&reader, "cpu", -AS_RES_AMOUNT_MAX, AS_RES_AMOUNT_MAX, &group->cpu);
    as_read_i64(&reader, "memory", -AS_RES_AMOUNT_MAX, AS_RES_AMOUNT_MAX, &group->memory);
    as_read_end(&reader);
}

static void snapshot_read_size(struct as_reader *reader, struct as_snapshot_group *group)
{
    group->size = -1;
    if (as_read_has(reader, "size"))
        as_read_i32(reader, "size", 0, &group->size);
    else
        (void)as_read_any(reader, "size");
    as_read_i32(reader, "min", 0, &group->min);
    as_read_require(reader, "max");
    as_read_i32(reader, "max", 0, &group->max);
    as_read_i32(reader, "coming", 0, &group->coming);
    as_read_i32(reader, "overdue", 0, &group->overdue);
    if (group->overdue > 0 && group->overdue > (int64_t)group->size - group->min)
        as_read_fail(reader, "overdue", "above size - min");
    as_read_i32(reader, "removable", 0, &group->removable);
    if (group->removable > group->overdue)
        as_read_fail(reader, "removable", "above overdue");
    as_read_i32(reader, "last_size", 0, &group->last_size);
}

static void read_closed(struct as_reader *reader, struct as_snapshot_group *group)
{
    const char *word = NULL;

    group->closed = AS_REASON_SCALED;
    as_read_text(reader, "closed", &word);
    if (word && !as_reason_find(word, &group->closed))
        as_read_fail(reader, "closed", "\"%s\" is no reason code", word);
}

static void snapshot_read_group(struct as_reader *reader, struct snapshot_reader *snapshot,
                                struct as_snapshot_group *group)
{
    group->is_member = true;
    as_read_require(reader, "name");
    decision_read_text(reader, "name", snapshot->arena, &group->name);
    as_read_bool(reader, "member", &group->is_member);
    snapshot_read_size(reader, group);
    if (snapshot->has_v3) {
        as_read_i32(reader, "in_doubt", 0, &group->in_doubt);
        as_read_i32(reader, "unregistered", 0, &group->unregistered);
        as_read_time(reader, "open_at", &group->open_at);
        as_read_i32(reader, "surplus", 0, &group->surplus);
        as_read_time(reader, "surplus_since", &group->surplus_since);
    }
    read_closed(reader, group);
    decision_read_text(reader, "message", snapshot->arena, &group->message);
    read_group_nodes(reader, group);
    group->has_price = as_read_has(reader, "price");
    as_read_positive(reader, "price", &group->price);
    group->has_priority = as_read_has(reader, "priority");
    as_read_i32(reader, "priority", INT32_MIN, &group->priority);
    read_template(reader, snapshot, group);
    read_unneeded_config(reader, &group->unneeded);
    as_read_end(reader);
}

static void decision_read_groups(struct as_reader *observed, struct snapshot_reader *snapshot)
{
    size_t count;
    const struct tree_value *at = as_read_list(observed, "groups", &count);

    if (count > DECISION_GROUPS_MAX) {
        as_read_fail(observed, "groups", "more than %d", DECISION_GROUPS_MAX);
        return;
    }
    struct as_snapshot_group *groups = as_arena_alloc(snapshot->arena, count, sizeof(*groups));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "groups", at, i);
        snapshot_read_group(&item, snapshot, &groups[i]);
    }
    snapshot->snapshot->groups = groups;
    snapshot->snapshot->group_count = count;
}

/* observed */

static void read_resources(struct as_reader *observed, struct snapshot_reader *reader)
{
    struct as_res_names *names = &reader->snapshot->resources;
    size_t count;
    const char *const *texts = decision_read_texts(observed, "resources", reader->arena, &count);

    names->count = AS_RES_NAMED;
    if (count > AS_RES_MAX - AS_RES_NAMED) {
        as_read_fail(observed, "resources", "more than %d", AS_RES_MAX - AS_RES_NAMED);
        return;
    }
    for (size_t i = 0; i < count; i++)
        names->name[names->count++] = texts[i];
}

static void read_count(struct as_reader *reader, const char *name, uint64_t *count_out)
{
    int64_t count = 0;

    as_read_i64(reader, name, 0, AS_RES_AMOUNT_MAX, &count);
    *count_out = (uint64_t)count;
}

static void read_budgets(struct as_reader *observed, struct snapshot_reader *reader)
{
    size_t count;
    const struct tree_value *at = as_read_list(observed, "budgets", &count);
    struct as_snapshot_budget *budgets = as_arena_alloc(reader->arena, count, sizeof(*budgets));

    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "budgets", at, i);
        as_read_require(&item, "name");
        decision_read_text(&item, "name", reader->arena, &budgets[i].name);
        as_read_i32(&item, "allowed", INT32_MIN, &budgets[i].allowed);
        as_read_end(&item);
    }
    reader->snapshot->budgets = budgets;
    reader->snapshot->budget_count = count;
}

static void read_kept(struct as_reader *observed, struct as_snapshot *snapshot)
{
    struct as_reader reader;

    as_read_object(&reader, observed, "kept");
    for (enum as_stay i = 0; i < AS_STAY_COUNT; i++)
        read_count(&reader, as_stay_get_word(i), &snapshot->kept[i]);
    as_read_end(&reader);
}

static void read_leaving(struct as_reader *observed, struct as_snapshot *snapshot)
{
    struct as_reader reader;

    as_read_object(&reader, observed, "leaving");
    read_count(&reader, "drained", &snapshot->leaving_drained);
    read_count(&reader, "empty", &snapshot->leaving_empty);
    as_read_end(&reader);
}

static void read_plan_terms(struct as_reader *observed, struct as_arena *arena,
                            struct as_decide_input *input)
{
    static const char *const names[] = {"at", "fit", "max", "min", "take"};
    struct as_pool_plan_terms *terms = as_arena_alloc(arena, 1, sizeof(*terms));
    as_maybe_time at = {.set = false};
    struct as_reader reader;

    as_read_object(&reader, observed, "plan");
    if (!reader.object)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        as_read_require(&reader, names[i]);
    as_read_time(&reader, "at", &at);
    as_read_bool(&reader, "fit", &terms->with_fit);
    as_read_i32(&reader, "max", 0, &terms->max);
    as_read_i32(&reader, "min", 0, &terms->min);
    as_read_bool(&reader, "take", &terms->with_take);
    as_read_end(&reader);
    terms->now = at.at;
    input->plan_terms = terms;
}

void decision_read_snapshot(struct as_reader *observed, struct as_arena *arena,
                            struct as_decide_input *input)
{
    if (!as_read_has(observed, "groups") && !as_read_has(observed, "pool_error"))
        return;
    struct as_snapshot *snapshot = as_arena_alloc(arena, 1, sizeof(*snapshot));
    struct snapshot_reader reader = {
        .arena = arena, .snapshot = snapshot, .has_v3 = input->version >= 3};

    input->snapshot = snapshot;
    decision_read_text(observed, "pool_error", arena, &snapshot->error);
    if (snapshot->error)
        return;
    read_resources(observed, &reader);
    read_budgets(observed, &reader);
    decision_read_pod_classes(observed, &reader);
    decision_read_groups(observed, &reader);
    decision_read_nodes(observed, &reader);
    snapshot->pending = decision_read_pods(observed, "pending", &reader, &snapshot->pending_count);
    read_count(observed, "pending_pods", &snapshot->pending_pods);
    read_count(observed, "cluster_nodes", &snapshot->cluster_nodes);
    read_kept(observed, snapshot);
    read_leaving(observed, snapshot);
    if (input->version >= 3)
        read_plan_terms(observed, arena, input);
}

/* history */

static int snapshot_compare_unneeded(const void *a, const void *b)
{
    return strcmp(((const struct as_unneeded *)a)->node, ((const struct as_unneeded *)b)->node);
}

static void read_unneeded(struct as_reader *history, struct snapshot_reader *reader)
{
    size_t count;
    const struct tree_value *at = as_read_list(history, "unneeded", &count);
    struct as_unneeded *unneeded = as_arena_alloc(reader->arena, count, sizeof(*unneeded));

    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        unneeded[i].node = "";
        as_read_item(&item, history, "unneeded", at, i);
        as_read_require(&item, "node");
        decision_read_text(&item, "node", reader->arena, &unneeded[i].node);
        as_read_time(&item, "since", &unneeded[i].since);
        as_read_time(&item, "no_room", &unneeded[i].no_room);
        as_read_time(&item, "seen", &unneeded[i].seen);
        as_read_end(&item);
    }
    if (count > 1)
        qsort(unneeded, count, sizeof(*unneeded), snapshot_compare_unneeded);
    for (size_t i = 1; i < count; i++)
        if (strcmp(unneeded[i - 1].node, unneeded[i].node) == 0)
            as_read_fail(history, "unneeded", "\"%s\" is there twice", unneeded[i].node);
    reader->snapshot->unneeded = unneeded;
    reader->snapshot->unneeded_count = count;
}

static void read_asked(struct as_reader *history, struct snapshot_reader *reader)
{
    size_t count;
    const struct tree_value *at = as_read_list(history, "asked", &count);

    if (count > AS_ASKED_MAX) {
        as_read_fail(history, "asked", "more than %d", AS_ASKED_MAX);
        return;
    }
    struct as_asked *asked = as_arena_alloc(reader->arena, count, sizeof(*asked));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_maybe_time when = {.set = false};

        as_read_item(&item, history, "asked", at, i);
        as_read_require(&item, "at");
        as_read_require(&item, "group");
        as_read_require(&item, "shape");
        as_read_require(&item, "template");
        as_read_time(&item, "at", &when);
        decision_read_text(&item, "group", reader->arena, &asked[i].group);
        as_read_bool(&item, "in_vain", &asked[i].is_in_vain);
        asked[i].pod_class = decision_read_hex(&item, "shape");
        asked[i].template_ = decision_read_hex(&item, "template");
        asked[i].at = when.at;
        as_read_end(&item);
    }
    reader->snapshot->asked = asked;
    reader->snapshot->asked_count = count;
}

void decision_read_memory(struct as_reader *history, struct snapshot_reader *reader)
{
    read_unneeded(history, reader);
    read_asked(history, reader);
    as_read_time(history, "drain_failed", &reader->snapshot->drain_failed);
}

void decision_read_seed(struct as_reader *root, struct as_snapshot *snapshot)
{
    snapshot->seed = decision_read_hex(root, "seed");
}
