/*
 * Writes surveys into decision documents. What has its default is left out, as a document may have
 * thousands of nodes.
 */
#include "decision_survey.h"

#define UNREADY_DEFAULT_US  (20 * AS_US_PER_MIN)
#define UNNEEDED_DEFAULT_US (10 * AS_US_PER_MIN)

const struct as_read_word decision_unchecked[] = {
    {"affinity", AS_UNCHECKED_AFFINITY},   {"spread", AS_UNCHECKED_SPREAD},
    {"volumes", AS_UNCHECKED_VOLUMES},     {"claims", AS_UNCHECKED_CLAIMS},
    {"resources", AS_UNCHECKED_RESOURCES}, {0}};
const struct as_read_word decision_effects[] = {{"NoSchedule", AS_TAINT_NO_SCHEDULE},
                                                {"PreferNoSchedule", AS_TAINT_PREFER_NO_SCHEDULE},
                                                {"NoExecute", AS_TAINT_NO_EXECUTE},
                                                {0}};
const struct as_read_word decision_evictions[] = {{"allowed", AS_EVICTION_ALLOWED},
                                                  {"refused", AS_EVICTION_REFUSED},
                                                  {"system", AS_EVICTION_SYSTEM},
                                                  {"local_storage", AS_EVICTION_LOCAL_STORAGE},
                                                  {"unreplicated", AS_EVICTION_UNREPLICATED},
                                                  {"daemon", AS_EVICTION_DAEMON},
                                                  {"mirror", AS_EVICTION_MIRROR},
                                                  {0}};
const struct as_read_word decision_operators[] = {{"In", AS_NODE_IN},
                                                  {"NotIn", AS_NODE_NOT_IN},
                                                  {"Exists", AS_NODE_EXISTS},
                                                  {"DoesNotExist", AS_NODE_DOES_NOT_EXIST},
                                                  {"Gt", AS_NODE_GT},
                                                  {"Lt", AS_NODE_LT},
                                                  {0}};
const struct as_read_word decision_template_sources[] = {
    {"node", AS_NODE_TEMPLATE_NODE},
    {"last", AS_NODE_TEMPLATE_LAST},
    {"configured", AS_NODE_TEMPLATE_CONFIGURED},
    {0}};

static const char *get_word(const struct as_read_word *words, int value)
{
    while (words->value != value)
        words++;
    return words->text;
}

static void begin(struct as_json_writer *json, const char *key)
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

static void write_double(struct as_json_writer *json, const char *key, double number)
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
    begin(json, key);
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
static void write_amounts(struct as_json_writer *json, const char *key,
                          const struct as_resources *amounts, size_t count)
{
    while (count > 0 && amounts->amount[count - 1] == 0)
        count--;
    if (count == 0)
        return;
    begin(json, key);
    for (size_t i = 0; i < count; i++)
        as_json_write_i64(json, amounts->amount[i]);
    as_json_end_array(json);
}

static void write_labels(struct as_json_writer *json, const char *key,
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

static void write_taints(struct as_json_writer *json, const struct as_taint *taints, size_t count)
{
    if (count == 0)
        return;
    begin(json, "taints");
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "effect", get_word(decision_effects, (int)taints[i].effect));
        as_json_write_member(json, "key", taints[i].key);
        write_text_if(json, "value", taints[i].value);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_ports(struct as_json_writer *json, const struct as_host_port *ports, size_t count)
{
    if (count == 0)
        return;
    begin(json, "ports");
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
                         const struct as_survey_pods *pods, size_t count)
{
    if (count == 0)
        return;
    begin(json, key);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_array(json);
        as_json_write_i64(json, pods[i].shape);
        as_json_write_i64(json, pods[i].count);
        as_json_end_array(json);
    }
    as_json_end_array(json);
}

/* target.pool */

static void write_range(struct as_json_writer *json, const char *key,
                        const struct as_pool_range *range, double unit)
{
    if (range->min <= 0 && range->max == AS_POOL_NO_CAP)
        return;
    as_json_write_key(json, key);
    as_json_begin_object(json);
    if (range->max != AS_POOL_NO_CAP)
        write_double(json, "max", (double)range->max / unit);
    if (range->min > 0)
        write_double(json, "min", (double)range->min / unit);
    as_json_end_object(json);
}

static void write_choice(struct as_json_writer *json, const struct as_pool_config *pool)
{
    if (pool->choose_count == 0)
        return;
    begin(json, "choose");
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
    write_choice(json, pool);
    write_range(json, "cpu", &pool->cpu, 1000);
    if (pool->ignore_label_count > 0) {
        begin(json, "ignore_labels");
        for (size_t i = 0; i < pool->ignore_label_count; i++)
            as_json_write_string(json, pool->ignore_labels[i]);
        as_json_end_array(json);
    }
    write_range(json, "memory", &pool->memory, 1);
    if (pool->cpu_price > 0 || pool->memory_price > 0) {
        as_json_write_key(json, "pod_price");
        as_json_begin_object(json);
        write_double(json, "cpu", pool->cpu_price);
        write_double(json, "memory", pool->memory_price);
        as_json_end_object(json);
    }
    as_json_end_object(json);
}

/* Groups */

static void write_template(struct as_json_writer *json, const struct as_survey_group *group,
                           size_t amounts)
{
    const struct as_node_template *template_ = &group->template_;

    if (template_->source == AS_NODE_TEMPLATE_NONE)
        return;
    as_json_write_key(json, "template");
    as_json_begin_object(json);
    write_amounts(json, "allocatable", &template_->allocatable, amounts);
    write_amounts(json, "capacity", &template_->capacity, amounts);
    write_hex(json, "digest", group->template_digest);
    write_amounts(json, "free", &template_->shape.allocatable, amounts);
    write_labels(json, "labels", template_->shape.labels);
    write_text_if(json, "node", template_->node);
    write_ports(json, template_->ports, template_->port_count);
    as_json_write_member(json, "source",
                         get_word(decision_template_sources, (int)template_->source));
    write_taints(json, template_->shape.taints, template_->shape.taint_count);
    as_json_end_object(json);
}

static void write_seconds(struct as_json_writer *json, const char *key, int64_t us)
{
    write_double(json, key, (double)us / AS_US_PER_S);
}

static void write_unneeded_config(struct as_json_writer *json,
                                  const struct as_unneeded_config *unneeded)
{
    if (unneeded->for_us == UNNEEDED_DEFAULT_US && unneeded->unready_for_us == UNREADY_DEFAULT_US)
        return;
    as_json_write_key(json, "unneeded");
    as_json_begin_object(json);
    write_seconds(json, "for", unneeded->for_us);
    as_json_write_key(json, "unready_for");
    if (unneeded->unready_for_us == AS_UNREADY_NEVER)
        as_json_write_null(json);
    else
        as_json_write_double(json, (double)unneeded->unready_for_us / AS_US_PER_S);
    as_json_end_object(json);
}

static void write_group_nodes(struct as_json_writer *json, const struct as_survey_group *group)
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

static void write_group(struct as_json_writer *json, const struct as_survey_group *group,
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
        write_double(json, "price", group->price);
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

void decision_write_budgets_to_kept(struct as_json_writer *json, const struct as_survey *survey)
{
    if (survey->budget_count > 0) {
        begin(json, "budgets");
        for (size_t i = 0; i < survey->budget_count; i++) {
            as_json_begin_object(json);
            write_i64_if(json, "allowed", survey->budgets[i].allowed);
            as_json_write_member(json, "name", survey->budgets[i].name);
            as_json_end_object(json);
        }
        as_json_end_array(json);
    }
    write_i64_if(json, "cluster_nodes", (int64_t)survey->cluster_nodes);
    begin(json, "groups");
    for (size_t i = 0; i < survey->group_count; i++)
        write_group(json, &survey->groups[i], survey->resources.count);
    as_json_end_array(json);
    decision_write_kept(json, survey->kept);
}

void decision_write_leaving(struct as_json_writer *json, const struct as_survey *survey)
{
    if (survey->leaving_drained == 0 && survey->leaving_empty == 0)
        return;
    as_json_write_key(json, "leaving");
    as_json_begin_object(json);
    write_i64_if(json, "drained", (int64_t)survey->leaving_drained);
    write_i64_if(json, "empty", (int64_t)survey->leaving_empty);
    as_json_end_object(json);
}

/* Nodes */

static void write_node(struct as_json_writer *json, const struct as_survey *survey,
                       const struct as_survey_node *node)
{
    const size_t amounts = survey->resources.count;

    as_json_begin_object(json);
    write_amounts(json, "allocatable", &node->node.allocatable, amounts);
    if (node->expendable)
        write_amounts(json, "expendable", node->expendable, amounts);
    if (node->group != AS_SURVEY_NO_GROUP)
        as_json_write_member_i64(json, "group", node->group);
    decision_write_pods(json, "guests", node->guests, node->guest_count);
    write_labels(json, "labels", node->node.labels);
    write_amounts(json, "left", &node->left, amounts);
    as_json_write_member(json, "name", node->node.name);
    decision_write_pods(json, "pods", node->pods, node->pod_count);
    if (!node->is_ready)
        as_json_write_member_bool(json, "ready", false);
    if (!node->is_candidate)
        as_json_write_member(json, "stays", as_stay_get_word(node->stay));
    write_taints(json, node->node.taints, node->node.taint_count);
    if (node->utilization != 0)
        write_double(json, "utilization", node->utilization);
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
    decision_write_pods(json, "pending", input->survey->pending, input->survey->pending_count);
    write_i64_if(json, "pending_pods", (int64_t)input->survey->pending_pods);
    if (input->plan_terms)
        write_plan_terms(json, input->plan_terms);
}

void decision_write_nodes(struct as_json_writer *json, const struct as_survey *survey)
{
    if (survey->node_count == 0)
        return;
    begin(json, "pool_nodes");
    for (size_t i = 0; i < survey->node_count; i++)
        write_node(json, survey, &survey->nodes[i]);
    as_json_end_array(json);
}

/* Shapes */

static void write_affinity(struct as_json_writer *json, const struct as_pod_shape *pod)
{
    begin(json, "affinity");
    for (size_t i = 0; i < pod->term_count; i++) {
        as_json_begin_array(json);
        for (size_t k = 0; k < pod->terms[i].count; k++) {
            const struct as_node_requirement *requirement = &pod->terms[i].requirements[k];

            as_json_begin_object(json);
            if (requirement->is_field)
                as_json_write_member_bool(json, "field", true);
            as_json_write_member(json, "key", requirement->key);
            as_json_write_member(json, "operator",
                                 get_word(decision_operators, (int)requirement->operator_));
            if (requirement->value_count > 0)
                begin(json, "values");
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

static void write_tolerations(struct as_json_writer *json, const struct as_pod_shape *pod)
{
    if (pod->toleration_count == 0)
        return;
    begin(json, "tolerations");
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

static void write_shape(struct as_json_writer *json, const struct as_survey_shape *shape,
                        size_t amounts)
{
    const struct as_pod_shape *pod = &shape->pod;

    as_json_begin_object(json);
    if (pod->has_affinity)
        write_affinity(json, pod);
    if (shape->budget_count > 0) {
        begin(json, "budgets");
        for (size_t i = 0; i < shape->budget_count; i++)
            as_json_write_i64(json, shape->budgets[i]);
        as_json_end_array(json);
    }
    write_hex(json, "digest", shape->digest);
    if (pod->eviction != AS_EVICTION_ALLOWED)
        as_json_write_member(json, "eviction", get_word(decision_evictions, (int)pod->eviction));
    if (pod->loner != 0)
        write_hex(json, "loner", pod->loner);
    if (pod->never_preempts)
        as_json_write_member_bool(json, "never_preempts", true);
    write_ports(json, pod->ports, pod->port_count);
    write_i64_if(json, "priority", pod->priority);
    write_amounts(json, "requests", &pod->requests, amounts);
    write_labels(json, "selector", pod->selector);
    write_tolerations(json, pod);
    write_bits(json, "unchecked", decision_unchecked, pod->unchecked);
    if (pod->unchecked)
        write_i64_if(json, "waiting", (int64_t)shape->waiting);
    write_text_if(json, "zone", pod->zone);
    as_json_end_object(json);
}

void decision_write_resources_to_shapes(struct as_json_writer *json, const struct as_survey *survey)
{
    if (survey->resources.count > AS_RES_NAMED) {
        begin(json, "resources");
        for (size_t i = AS_RES_NAMED; i < survey->resources.count; i++)
            as_json_write_string(json, survey->resources.name[i]);
        as_json_end_array(json);
    }
    if (survey->shape_count == 0)
        return;
    begin(json, "shapes");
    for (size_t i = 0; i < survey->shape_count; i++)
        write_shape(json, &survey->shapes[i], survey->resources.count);
    as_json_end_array(json);
}

/* History */

void decision_write_asked(struct as_json_writer *json, const struct as_asked *asked, size_t count)
{
    if (count == 0)
        return;
    begin(json, "asked");
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        decision_write_time(json, "at", (as_maybe_time){.set = true, .at = asked[i].at});
        as_json_write_member(json, "group", asked[i].group);
        if (asked[i].is_in_vain)
            as_json_write_member_bool(json, "in_vain", true);
        write_hex(json, "shape", asked[i].shape);
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
    begin(json, "unneeded");
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
