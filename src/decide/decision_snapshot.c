/*
 * Snapshots in decision documents: what was seen of a pool's cluster, as tables of rows.
 *
 * Reading is strict: what a plan would trip over is an error with its place. Writing leaves out
 * what has its default, as a document may have thousands of nodes. Amounts are lists of numbers in
 * the order of docs/decision.md: millicores, bytes, bytes, pods, then extended resources.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/cluster/node_template.h>
#include <alertscaler/doc/rows_schema.h>

#include "decision_private.h"

#define UNREADY_DEFAULT_US  (20 * AS_US_PER_MIN)
#define UNNEEDED_DEFAULT_US (10 * AS_US_PER_MIN)

DECISION_WORDS(get_unchecked, "affinity", "spread", "volumes", "claims", "resources")
DECISION_WORDS(get_eviction, "allowed", "refused", "system", "local_storage", "unreplicated",
               "daemon", "mirror")
DECISION_WORDS(get_operator, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
AS_ROW_WORDS(get_filter, enum as_pool_filter, AS_POOL_FILTER_COUNT, as_pool_filter_get_word)
AS_ROW_WORDS(get_closed, enum as_reason, AS_REASON_COUNT, as_reason_get_word)
AS_ROW_WORDS(get_source, enum as_node_template_source, AS_NODE_TEMPLATE_SOURCE_COUNT,
             as_node_template_source_get_word)
AS_ROW_WORDS(get_stay, enum as_stay, AS_STAY_COUNT, as_stay_get_word)

/* Sets a member that is a pointer, and its count. */
static void set_items(const struct as_row *row, void *base, const void *items, size_t count)
{
    memcpy(as_row_to(row, base), &items, sizeof(items));
    *(size_t *)(void *)((char *)base + row->count_at) = count;
}

/* ---- amounts: without zeros at the end ---- */

static size_t amounts_count(const struct as_resources *amounts)
{
    size_t count = AS_RES_MAX;
    while (count > 0 && amounts->amount[count - 1] == 0)
        count--;
    return count;
}

static bool amounts_are_unset(const struct as_row *row, const void *base)
{
    return amounts_count(as_row_at(row, base)) == 0;
}

static void amounts_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_resources *amounts = as_row_at(row, base);
    const size_t count = amounts_count(amounts);
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_i64(json, amounts->amount[i]);
    as_json_end_array(json);
}

static void amounts_parse(const struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, struct as_resources *amounts_out)
{
    const struct as_snapshot *snapshot = input->context;
    size_t count;
    const struct tree_value *at = as_read_list(object, row->name, &count);

    if (count > snapshot->resources.count) {
        as_read_fail(object, row->name, "more amounts than resources");
        return;
    }
    for (size_t i = 0; i < count; i++, at = at->next) {
        if (!tree_get_i64(at, row->min, AS_RES_AMOUNT_MAX, &amounts_out->amount[i])) {
            as_read_fail(object, row->name, "[%zu]: expected an integer from %s to 2^62", i,
                         row->min < 0 ? "-2^62" : "0");
            return;
        }
    }
}

static void amounts_read(struct as_rows_input *input, struct as_reader *object,
                         const struct as_row *row, void *base)
{
    amounts_parse(input, object, row, as_row_to(row, base));
}

static void amounts_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_items(schema, 0, AS_RES_MAX);
    as_rows_schema_write_integer(schema, row->min, AS_RES_AMOUNT_MAX);
    as_rows_schema_end_items(schema);
}

static const struct as_row_type as_row_amounts = {.write = amounts_write,
                                                  .read = amounts_read,
                                                  .is_unset = amounts_are_unset,
                                                  .describe = amounts_describe};
#define AS_ROW_TYPE_amounts struct as_resources

/* A pointer to them; NULL: all are 0. */
static bool expendable_is_unset(const void *base)
{
    return !((const struct as_snapshot_node *)base)->expendable;
}

static void expendable_write(struct as_json_writer *json, const struct as_row *row,
                             const void *base)
{
    (void)row;
    amounts_write(json, &(struct as_row){.at = 0},
                  ((const struct as_snapshot_node *)base)->expendable);
}

static void expendable_read(struct as_rows_input *input, struct as_reader *object,
                            const struct as_row *row, void *base)
{
    struct as_resources *expendable = as_arena_alloc(input->arena, 1, sizeof(*expendable));
    amounts_parse(input, object, row, expendable);
    if (amounts_count(expendable) > 0)
        ((struct as_snapshot_node *)base)->expendable = expendable;
}

static const struct as_row_type expendable_type = {
    .write = expendable_write, .read = expendable_read, .like = &as_row_amounts};

/* ---- names ---- */

static bool resource_names_are_unset(const struct as_row *row, const void *base)
{
    return ((const struct as_res_names *)as_row_at(row, base))->count <= AS_RES_NAMED;
}

static void resource_names_write(struct as_json_writer *json, const struct as_row *row,
                                 const void *base)
{
    const struct as_res_names *names = as_row_at(row, base);
    as_json_begin_array(json);
    for (size_t i = AS_RES_NAMED; i < names->count; i++)
        as_json_write_string(json, names->name[i]);
    as_json_end_array(json);
}

static void resource_names_read(struct as_rows_input *input, struct as_reader *object,
                                const struct as_row *row, void *base)
{
    struct as_res_names *names = as_row_to(row, base);
    size_t count;
    const struct tree_value *at = as_read_list(object, row->name, &count);

    if (count > AS_RES_MAX - AS_RES_NAMED) {
        as_read_fail(object, row->name, "more than %d", AS_RES_MAX - AS_RES_NAMED);
        return;
    }
    for (size_t i = 0; i < count; i++, at = at->next) {
        if (!tree_get_text(at))
            as_read_fail(object, row->name, "[%zu]: expected a string", i);
        names->name[names->count++] = as_arena_strdup(input->arena, tree_get_text(at));
    }
}

const struct as_row_type as_row_resource_names = {.write = resource_names_write,
                                                  .read = resource_names_read,
                                                  .is_unset = resource_names_are_unset,
                                                  .like = &as_row_texts};

static const struct as_labels no_labels = {.count = 0};

/* ---- pods: [class, count] each ---- */

static void class_counts_write(struct as_json_writer *json, const struct as_row *row,
                               const void *base)
{
    const struct as_snapshot_pods *pods =
        *(const struct as_snapshot_pods *const *)as_row_at(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < as_row_get_count(row, base); i++) {
        as_json_begin_array(json);
        as_json_write_i64(json, pods[i].pod_class);
        as_json_write_i64(json, pods[i].count);
        as_json_end_array(json);
    }
    as_json_end_array(json);
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

static void class_counts_read(struct as_rows_input *input, struct as_reader *object,
                              const struct as_row *row, void *base)
{
    const struct as_snapshot *snapshot = input->context;
    size_t count;
    const struct tree_value *at = as_read_list(object, row->name, &count);
    struct as_snapshot_pods *pods = as_arena_alloc(input->arena, count, sizeof(*pods));
    bool *is_seen = as_arena_alloc(input->arena, snapshot->pod_class_count, sizeof(*is_seen));

    for (size_t i = 0; i < count; i++, at = at->next) {
        if (!read_pair(at, snapshot->pod_class_count, &pods[i])) {
            as_read_fail(object, row->name,
                         "[%zu]: expected [shape, count], a shape below %zu and a count from 1", i,
                         snapshot->pod_class_count);
            return;
        }
        if (is_seen[pods[i].pod_class]) {
            as_read_fail(object, row->name, "[%zu]: the shape is there twice", i);
            return;
        }
        is_seen[pods[i].pod_class] = true;
    }
    set_items(row, base, pods, count);
}

static void class_counts_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_begin_items(schema, 0, 0);
    as_rows_schema_begin_items(schema, 2, 2);
    as_rows_schema_write_integer(schema, 0, UINT32_MAX);
    as_rows_schema_end_items(schema);
    as_rows_schema_end_items(schema);
}

const struct as_row_type as_row_pods = {
    .write = class_counts_write, .read = class_counts_read, .describe = class_counts_describe};

/* ---- taints and ports ---- */

static const struct as_row taint_rows[] = {
    {AS_ROW("effect", taint_effect, as_taint, effect, REQUIRED)},
    {AS_ROW("key", text, as_taint, key, REQUIRED)},
    {AS_ROW("value", text, as_taint, value, OPTIONAL)},
    {.name = NULL, .definition = "taint"},
};
static const struct as_taint no_taint = {.key = "", .value = "", .effect = AS_TAINT_NO_SCHEDULE};

static const struct as_row port_rows[] = {
    {AS_ROW("ip", text, as_host_port, ip, DEFAULT)},
    {AS_ROW("port", u32, as_host_port, port, REQUIRED), .max = UINT16_MAX},
    {AS_ROW("protocol", text, as_host_port, protocol, DEFAULT)},
    {.name = NULL, .definition = "host_port"},
};
static const struct as_host_port any_port = {.ip = "0.0.0.0", .protocol = "TCP"};

/* ---- target.pool ---- */

const struct as_pool_config as_decision_pool = {
    .cpu.max = AS_POOL_NO_CAP,
    .memory.max = AS_POOL_NO_CAP,
    .at_once_empty = 10,
    .at_once_drain = 1,
    .expendable_below = -10,
};

static void choose_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_pool_config *pool = base;
    (void)row;
    as_json_begin_array(json);
    for (size_t i = 0; i < pool->choose_count; i++)
        as_json_write_string(json, get_filter(pool->choose[i]));
    as_json_end_array(json);
}

static void choose_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    (void)input;
    struct as_pool_config *pool = base;
    size_t count;
    unsigned seen = 0;

    for (const struct tree_value *at = as_read_list(object, row->name, &count); at; at = at->next) {
        const char *text = tree_get_text(at);
        enum as_pool_filter filter = 0;
        while (text && filter < AS_POOL_FILTER_COUNT &&
               strcmp(as_pool_filter_get_word(filter), text) != 0)
            filter++;
        if (!text || filter == AS_POOL_FILTER_COUNT || (seen & (1U << filter))) {
            as_read_fail(object, row->name, "\"%s\" is no filter, or is there twice",
                         text ? text : "");
            return;
        }
        seen |= 1U << filter;
        pool->choose[pool->choose_count++] = filter;
    }
}

static bool has_no_choice(const void *base)
{
    return ((const struct as_pool_config *)base)->choose_count == 0;
}

static void choose_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_begin_items(schema, 0, AS_POOL_FILTER_COUNT);
    as_rows_schema_write_words(schema, get_filter, 0);
    as_rows_schema_end_items(schema);
}

static const struct as_row_type choose_type = {
    .write = choose_write, .read = choose_read, .describe = choose_describe};

/* A bound of the nodes' sum. `size`: in how many parts a unit of the document is counted. */
static void sum_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_double(json, (double)*(const int64_t *)as_row_at(row, base) / (double)row->size);
}

static void min_sum_read(struct as_rows_input *input, struct as_reader *object,
                         const struct as_row *row, void *base)
{
    (void)input;
    double number = 0;
    as_read_positive(object, row->name, &number);
    if (number * (double)row->size > (double)AS_RES_AMOUNT_MAX)
        as_read_fail(object, row->name, "too large");
    else
        *(int64_t *)as_row_to(row, base) = llround(number * (double)row->size);
}

/* One that is too large bounds nothing. */
static void max_sum_read(struct as_rows_input *input, struct as_reader *object,
                         const struct as_row *row, void *base)
{
    (void)input;
    double number = INFINITY;
    as_read_positive(object, row->name, &number);
    if (number * (double)row->size < (double)AS_RES_AMOUNT_MAX)
        *(int64_t *)as_row_to(row, base) = llround(number * (double)row->size);
}

static const struct as_row_type as_row_min_sum = {
    .write = sum_write, .read = min_sum_read, .like = &as_row_positive};
static const struct as_row_type as_row_max_sum = {
    .write = sum_write, .read = max_sum_read, .like = &as_row_positive};
#define AS_ROW_TYPE_min_sum int64_t
#define AS_ROW_TYPE_max_sum int64_t

static bool has_no_max(const void *base)
{
    return ((const struct as_pool_range *)base)->max == AS_POOL_NO_CAP;
}

static bool has_no_min(const void *base)
{
    return ((const struct as_pool_range *)base)->min <= 0;
}

static void range_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    const struct as_pool_range *range = to;
    if (range->min > range->max)
        as_read_fail(object, "min", "above max");
}

#define RANGE_ROWS(PARTS)                                                                          \
    {                                                                                              \
        {AS_ROW("max", max_sum, as_pool_range, max, OPTIONAL), .size = (PARTS),                    \
         .is_unset = has_no_max},                                                                  \
            {AS_ROW("min", min_sum, as_pool_range, min, OPTIONAL), .size = (PARTS),                \
             .is_unset = has_no_min},                                                              \
        {                                                                                          \
            .name = NULL, .check = range_check                                                     \
        }                                                                                          \
    }
static const struct as_row cpu_rows[] = RANGE_ROWS(1000);
static const struct as_row memory_rows[] = RANGE_ROWS(1);

static const struct as_row at_once_rows[] = {
    {AS_ROW("drain", u32, as_pool_config, at_once_drain, DEFAULT), .max = INT32_MAX},
    {AS_ROW("empty", u32, as_pool_config, at_once_empty, DEFAULT), .max = INT32_MAX},
    {.name = NULL},
};

static bool has_no_pod_price(const void *base)
{
    const struct as_pool_config *pool = base;
    return !(pool->cpu_price > 0) && !(pool->memory_price > 0);
}

static const struct as_row pod_price_rows[] = {
    {AS_ROW("cpu", positive, as_pool_config, cpu_price, DEFAULT)},
    {AS_ROW("memory", positive, as_pool_config, memory_price, DEFAULT)},
    {.name = NULL},
};

const struct as_row as_decision_pool_rows[] = {
    {AS_ROW_SAME("at_once", DEFAULT, at_once_rows)},
    {AS_ROW("balance", flag, as_pool_config, balance, DEFAULT)},
    {.name = "choose", .type = &choose_type, .is_unset = has_no_choice},
    {AS_ROW_PART("cpu", as_pool_config, cpu, OPTIONAL, cpu_rows)},
    {.name = "ignore_labels",
     .type = &as_row_texts,
     .presence = AS_ROW_FILLED,
     .at = offsetof(struct as_pool_config, ignore_labels),
     .count_at = AS_ROW_COUNT(as_pool_config, ignore_label_count)},
    {AS_ROW_PART("memory", as_pool_config, memory, OPTIONAL, memory_rows)},
    {AS_ROW_SAME("pod_price", OPTIONAL, pod_price_rows), .is_unset = has_no_pod_price},
    {.name = NULL},
};

/* ---- groups ---- */

const struct as_snapshot_group as_decision_group = {
    .is_member = true,
    .size = -1,
    .closed = AS_REASON_SCALED,
    .template_.shape.labels = &no_labels,
    .unneeded = {.for_us = UNNEEDED_DEFAULT_US, .unready_for_us = UNREADY_DEFAULT_US},
};

static bool has_no_template(const void *base)
{
    return ((const struct as_snapshot_group *)base)->template_.source == AS_NODE_TEMPLATE_NONE;
}

static const struct as_row template_rows[] = {
    {AS_ROW("allocatable", amounts, as_snapshot_group, template_.allocatable, OPTIONAL),
     .min = -AS_RES_AMOUNT_MAX},
    {AS_ROW("capacity", amounts, as_snapshot_group, template_.capacity, OPTIONAL),
     .min = -AS_RES_AMOUNT_MAX},
    {AS_ROW("digest", hex, as_snapshot_group, template_digest, DEFAULT)},
    {AS_ROW("free", amounts, as_snapshot_group, template_.shape.allocatable, OPTIONAL),
     .min = -AS_RES_AMOUNT_MAX},
    {AS_ROW("labels", label_map, as_snapshot_group, template_.shape.labels, OPTIONAL)},
    {AS_ROW("node", text, as_snapshot_group, template_.node, OPTIONAL)},
    {AS_ROW_OF("ports", list, as_snapshot_group, template_.ports, FILLED, port_rows), .since = 3,
     .count_at = AS_ROW_COUNT(as_snapshot_group, template_.port_count), .defaults = &any_port},
    {AS_ROW("source", word, as_snapshot_group, template_.source, REQUIRED), .get_word = get_source,
     .min = AS_NODE_TEMPLATE_NODE},
    {AS_ROW_OF("taints", list, as_snapshot_group, template_.shape.taints, FILLED, taint_rows),
     .count_at = AS_ROW_COUNT(as_snapshot_group, template_.shape.taint_count),
     .defaults = &no_taint},
    {.name = NULL},
};

/* Seconds; null: AS_UNREADY_NEVER. */
static void unready_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    if (*(const int64_t *)as_row_at(row, base) == AS_UNREADY_NEVER)
        as_json_write_null(json);
    else
        as_row_seconds.write(json, row, base);
}

static void unready_read(struct as_rows_input *input, struct as_reader *object,
                         const struct as_row *row, void *base)
{
    if (as_read_has(object, row->name)) {
        as_row_seconds.read(input, object, row, base);
        return;
    }
    (void)as_read_any(object, row->name);
    *(int64_t *)as_row_to(row, base) = AS_UNREADY_NEVER;
}

static const struct as_row_type as_row_unready = {
    .is_nullable = true, .write = unready_write, .read = unready_read, .like = &as_row_seconds};
#define AS_ROW_TYPE_unready int64_t

static bool unneeded_is_default(const void *base)
{
    const struct as_unneeded_config *unneeded = &((const struct as_snapshot_group *)base)->unneeded;
    return unneeded->for_us == UNNEEDED_DEFAULT_US &&
           unneeded->unready_for_us == UNREADY_DEFAULT_US;
}

static const struct as_row unneeded_config_rows[] = {
    {AS_ROW("for", seconds, as_unneeded_config, for_us, DEFAULT)},
    {AS_ROW("unready_for", unready, as_unneeded_config, unready_for_us, DEFAULT)},
    {.name = NULL},
};

static bool group_has_no_nodes(const void *base)
{
    return ((const struct as_snapshot_group *)base)->nodes == 0;
}

static const struct as_row group_nodes_rows[] = {
    {AS_ROW("count", i64, as_snapshot_group, nodes, DEFAULT), .max = AS_SIZE_MAX},
    {AS_ROW("cpu", i64, as_snapshot_group, cpu, DEFAULT), .min = -AS_RES_AMOUNT_MAX,
     .max = AS_RES_AMOUNT_MAX},
    {AS_ROW("memory", i64, as_snapshot_group, memory, DEFAULT), .min = -AS_RES_AMOUNT_MAX,
     .max = AS_RES_AMOUNT_MAX},
    {.name = NULL},
};

static void closed_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row;
    as_json_write_string(json,
                         as_reason_get_word(((const struct as_snapshot_group *)base)->closed));
}

static void closed_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    (void)input;
    const char *word = NULL;
    as_read_text(object, row->name, &word);
    if (word && !as_reason_find(word, &((struct as_snapshot_group *)base)->closed))
        as_read_fail(object, row->name, "\"%s\" is no reason code", word);
}

static bool group_is_open(const void *base)
{
    return ((const struct as_snapshot_group *)base)->closed == AS_REASON_SCALED;
}

static void closed_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_words(schema, get_closed, 0);
}

static const struct as_row_type closed_type = {
    .write = closed_write, .read = closed_read, .describe = closed_describe};

static bool is_group_member(const void *base)
{
    return ((const struct as_snapshot_group *)base)->is_member;
}

static bool has_no_surplus(const void *base)
{
    const struct as_snapshot_group *group = base;
    return group->surplus <= 0 || !group->surplus_since.set;
}

static void group_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    const struct as_snapshot_group *group = to;
    if (group->overdue > 0 && group->overdue > (int64_t)group->size - group->min)
        as_read_fail(object, "overdue", "above size - min");
    if (group->removable > group->overdue)
        as_read_fail(object, "removable", "above overdue");
}

const struct as_row as_decision_group_rows[] = {
    {.name = "closed", .type = &closed_type, .is_unset = group_is_open},
    {AS_ROW("coming", i32, as_snapshot_group, coming, OPTIONAL)},
    {AS_ROW("in_doubt", i32, as_snapshot_group, in_doubt, OPTIONAL), .since = 3},
    {AS_ROW("last_size", i32, as_snapshot_group, last_size, OPTIONAL)},
    {AS_ROW("max", i32, as_snapshot_group, max, REQUIRED)},
    {AS_ROW("member", flag, as_snapshot_group, is_member, OPTIONAL), .is_unset = is_group_member},
    {AS_ROW("message", text, as_snapshot_group, message, OPTIONAL)},
    {AS_ROW("min", i32, as_snapshot_group, min, OPTIONAL)},
    {AS_ROW("name", text, as_snapshot_group, name, REQUIRED)},
    {AS_ROW_SAME("nodes", OPTIONAL, group_nodes_rows), .is_unset = group_has_no_nodes},
    {AS_ROW("open_at", maybe_time, as_snapshot_group, open_at, OPTIONAL), .since = 3},
    {AS_ROW("overdue", i32, as_snapshot_group, overdue, OPTIONAL)},
    {AS_ROW("price", positive, as_snapshot_group, price, DEFAULT),
     .has_at = AS_ROW_HAS(as_snapshot_group, has_price)},
    {AS_ROW("priority", i32, as_snapshot_group, priority, DEFAULT), .min = INT32_MIN,
     .has_at = AS_ROW_HAS(as_snapshot_group, has_priority)},
    {AS_ROW("removable", i32, as_snapshot_group, removable, OPTIONAL)},
    {AS_ROW("size", size, as_snapshot_group, size, DEFAULT)},
    {AS_ROW("surplus", i32, as_snapshot_group, surplus, OPTIONAL), .since = 3},
    {AS_ROW("surplus_since", maybe_time, as_snapshot_group, surplus_since, OPTIONAL), .since = 3,
     .is_unset = has_no_surplus},
    {AS_ROW_SAME("template", OPTIONAL, template_rows), .is_unset = has_no_template},
    {AS_ROW_PART("unneeded", as_snapshot_group, unneeded, OPTIONAL, unneeded_config_rows),
     .is_unset = unneeded_is_default},
    {AS_ROW("unregistered", i32, as_snapshot_group, unregistered, OPTIONAL), .since = 3},
    {.name = NULL, .definition = "node_group", .check = group_check},
};

/* ---- pod classes ---- */

static const struct as_row requirement_rows[] = {
    {AS_ROW("field", flag, as_node_requirement, is_field, OPTIONAL)},
    {AS_ROW("key", text, as_node_requirement, key, REQUIRED)},
    {AS_ROW("operator", word, as_node_requirement, operator_, REQUIRED), .get_word = get_operator},
    {AS_ROW("values", texts, as_node_requirement, values, FILLED),
     .count_at = AS_ROW_COUNT(as_node_requirement, value_count)},
    {.name = NULL},
};

/* A list of terms, each a list of requirements. */
static void affinity_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_pod_class *pod = &((const struct as_snapshot_pod_class *)base)->pod;
    as_json_begin_array(json);
    for (size_t i = 0; i < pod->term_count; i++) {
        as_json_begin_array(json);
        for (size_t k = 0; k < pod->terms[i].count; k++)
            as_rows_write(json, row->rows, &pod->terms[i].requirements[k]);
        as_json_end_array(json);
    }
    as_json_end_array(json);
}

static void affinity_read(struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, void *base)
{
    struct as_pod_class *pod = &((struct as_snapshot_pod_class *)base)->pod;
    const struct tree_value *at = as_read_list(object, row->name, &pod->term_count);
    struct as_node_term *terms = as_arena_alloc(input->arena, pod->term_count, sizeof(*terms));

    pod->terms = terms;
    for (size_t i = 0; i < pod->term_count; i++, at = at->next) {
        if (!tree_is(at, TREE_ARRAY)) {
            as_read_fail(object, row->name, "[%zu]: expected a list", i);
            return;
        }
        const struct tree_value *item = at->first;
        struct as_node_requirement *requirements =
            as_arena_alloc(input->arena, at->size, sizeof(*requirements));
        for (size_t k = 0; k < at->size; k++, item = item->next) {
            struct as_reader reader;
            as_read_item(&reader, object, row->name, item, k);
            as_rows_read(input, &reader, row->rows, &requirements[k]);
        }
        terms[i] = (struct as_node_term){.requirements = requirements, .count = at->size};
    }
}

static void affinity_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_items(schema, 0, 0);
    as_rows_schema_begin_items(schema, 0, 0);
    as_rows_schema_write_rows(schema, row->rows);
    as_rows_schema_end_items(schema);
    as_rows_schema_end_items(schema);
}

static const struct as_row_type affinity_type = {
    .write = affinity_write, .read = affinity_read, .describe = affinity_describe};

static const struct as_row toleration_rows[] = {
    {AS_ROW("effects", bits, as_toleration, effects, OPTIONAL),
     .get_word = as_taint_effect_get_word},
    {AS_ROW("exists", flag, as_toleration, is_exists, OPTIONAL)},
    {AS_ROW("key", text, as_toleration, key, OPTIONAL)},
    {AS_ROW("value", text, as_toleration, value, OPTIONAL)},
    {.name = NULL},
};
static const struct as_toleration any_toleration = {.key = "", .value = ""};

/* Indices, ascending. */
static bool has_no_budgets(const void *base)
{
    return ((const struct as_snapshot_pod_class *)base)->budget_count == 0;
}

static void budgets_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_snapshot_pod_class *pod_class = base;
    (void)row;
    as_json_begin_array(json);
    for (size_t i = 0; i < pod_class->budget_count; i++)
        as_json_write_i64(json, pod_class->budgets[i]);
    as_json_end_array(json);
}

static void budgets_read(struct as_rows_input *input, struct as_reader *object,
                         const struct as_row *row, void *base)
{
    const struct as_snapshot *snapshot = input->context;
    struct as_snapshot_pod_class *pod_class = base;
    size_t count;
    const struct tree_value *at = as_read_list(object, row->name, &count);
    uint32_t *budgets = as_arena_alloc(input->arena, count, sizeof(*budgets));

    for (size_t i = 0; i < count; i++, at = at->next) {
        const int64_t low = i > 0 ? (int64_t)budgets[i - 1] + 1 : 0;
        int64_t index;
        if (!tree_get_i64(at, low, (int64_t)snapshot->budget_count - 1, &index)) {
            as_read_fail(object, row->name, "[%zu]: expected ascending indices of budgets", i);
            return;
        }
        budgets[i] = (uint32_t)index;
    }
    pod_class->budgets = budgets;
    pod_class->budget_count = count;
}

static void budgets_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_begin_items(schema, 0, 0);
    as_rows_schema_write_integer(schema, 0, UINT32_MAX);
    as_rows_schema_end_items(schema);
}

static const struct as_row_type budgets_type = {
    .write = budgets_write, .read = budgets_read, .describe = budgets_describe};

static bool may_be_evicted(const void *base)
{
    return ((const struct as_snapshot_pod_class *)base)->pod.eviction == AS_EVICTION_ALLOWED;
}

static bool has_no_waiting(const void *base)
{
    const struct as_snapshot_pod_class *pod_class = base;
    return !pod_class->pod.unchecked || pod_class->waiting == 0;
}

const struct as_row as_decision_pod_class_rows[] = {
    {.name = "affinity",
     .type = &affinity_type,
     .rows = requirement_rows,
     .has_at = AS_ROW_HAS(as_snapshot_pod_class, pod.has_affinity)},
    {.name = "budgets", .type = &budgets_type, .is_unset = has_no_budgets},
    {AS_ROW("digest", hex, as_snapshot_pod_class, digest, DEFAULT)},
    {AS_ROW("eviction", word, as_snapshot_pod_class, pod.eviction, OPTIONAL),
     .get_word = get_eviction, .is_unset = may_be_evicted},
    {AS_ROW("loner", hex, as_snapshot_pod_class, pod.loner, OPTIONAL)},
    {AS_ROW("never_preempts", flag, as_snapshot_pod_class, pod.never_preempts, OPTIONAL),
     .since = 3},
    {AS_ROW_OF("ports", list, as_snapshot_pod_class, pod.ports, FILLED, port_rows),
     .count_at = AS_ROW_COUNT(as_snapshot_pod_class, pod.port_count), .defaults = &any_port},
    {AS_ROW("priority", i32, as_snapshot_pod_class, pod.priority, OPTIONAL), .min = INT32_MIN},
    {AS_ROW("requests", amounts, as_snapshot_pod_class, pod.requests, OPTIONAL)},
    {AS_ROW("selector", label_map, as_snapshot_pod_class, pod.selector, OPTIONAL)},
    {AS_ROW_OF("tolerations", list, as_snapshot_pod_class, pod.tolerations, FILLED,
               toleration_rows),
     .count_at = AS_ROW_COUNT(as_snapshot_pod_class, pod.toleration_count),
     .defaults = &any_toleration},
    {AS_ROW("unchecked", bits, as_snapshot_pod_class, pod.unchecked, OPTIONAL),
     .get_word = get_unchecked},
    {AS_ROW("waiting", u64, as_snapshot_pod_class, waiting, OPTIONAL), .max = AS_RES_AMOUNT_MAX,
     .is_unset = has_no_waiting},
    {AS_ROW("zone", text, as_snapshot_pod_class, pod.zone, OPTIONAL)},
    {.name = NULL, .definition = "pod_class"},
};

const struct as_snapshot_pod_class as_decision_pod_class = {.pod.selector = &no_labels};

/* ---- nodes ---- */

const struct as_snapshot_node as_decision_node = {
    .group = AS_SNAPSHOT_NO_GROUP,
    .node = {.name = "", .labels = &no_labels},
    .is_ready = true,
    .is_candidate = true,
};

static bool has_no_group(const void *base)
{
    return ((const struct as_snapshot_node *)base)->group == AS_SNAPSHOT_NO_GROUP;
}

static void place_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    const struct as_snapshot *snapshot = input->context;
    int64_t group = AS_SNAPSHOT_NO_GROUP;
    if (snapshot->group_count == 0)
        as_read_fail(object, row->name, "there are no groups");
    as_read_i64(object, row->name, 0, (int64_t)snapshot->group_count - 1, &group);
    ((struct as_snapshot_node *)base)->group = (uint32_t)group;
}

static void place_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row;
    as_json_write_i64(json, ((const struct as_snapshot_node *)base)->group);
}

static void place_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_integer(schema, 0, DECISION_GROUPS_MAX - 1);
}

static const struct as_row_type place_type = {
    .write = place_write, .read = place_read, .describe = place_describe};

static bool node_is_ready(const void *base)
{
    return ((const struct as_snapshot_node *)base)->is_ready;
}

static bool node_is_candidate(const void *base)
{
    return ((const struct as_snapshot_node *)base)->is_candidate;
}

static void stay_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row;
    as_json_write_string(json, as_stay_get_word(((const struct as_snapshot_node *)base)->stay));
}

static void stay_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    struct as_snapshot_node *node = base;
    if (!as_read_has(object, row->name)) {
        (void)as_read_any(object, row->name);
        return;
    }
    as_row_word.read(input, object, &(struct as_row){.name = row->name, .get_word = get_stay},
                     &node->stay);
    node->is_candidate = false;
}

static void stay_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_words(schema, get_stay, 0);
}

static const struct as_row_type stay_type = {
    .write = stay_write, .read = stay_read, .describe = stay_describe};

static bool is_idle(const void *base)
{
    return ((const struct as_snapshot_node *)base)->utilization == 0;
}

static void node_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    const struct as_snapshot_node *node = to;
    if (node->is_candidate && node->group == AS_SNAPSHOT_NO_GROUP)
        as_read_fail(object, "group", "missing: without a group a node \"stays\"");
}

const struct as_row as_decision_node_rows[] = {
    {AS_ROW("allocatable", amounts, as_snapshot_node, node.allocatable, OPTIONAL),
     .min = -AS_RES_AMOUNT_MAX},
    {.name = "expendable", .type = &expendable_type, .since = 3, .is_unset = expendable_is_unset},
    {.name = "group", .type = &place_type, .is_unset = has_no_group},
    {AS_ROW("guests", pods, as_snapshot_node, guests, FILLED),
     .count_at = AS_ROW_COUNT(as_snapshot_node, guest_count)},
    {AS_ROW("labels", label_map, as_snapshot_node, node.labels, OPTIONAL)},
    {AS_ROW("left", amounts, as_snapshot_node, left, OPTIONAL), .min = -AS_RES_AMOUNT_MAX},
    {AS_ROW("name", text, as_snapshot_node, node.name, REQUIRED)},
    {AS_ROW("pods", pods, as_snapshot_node, pods, FILLED),
     .count_at = AS_ROW_COUNT(as_snapshot_node, pod_count)},
    {AS_ROW("ready", flag, as_snapshot_node, is_ready, OPTIONAL), .is_unset = node_is_ready},
    {.name = "stays", .type = &stay_type, .is_unset = node_is_candidate},
    {AS_ROW_OF("taints", list, as_snapshot_node, node.taints, FILLED, taint_rows),
     .count_at = AS_ROW_COUNT(as_snapshot_node, node.taint_count), .defaults = &no_taint},
    {AS_ROW("utilization", positive, as_snapshot_node, utilization, OPTIONAL), .is_unset = is_idle},
    {.name = NULL, .definition = "node", .check = node_check},
};

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct as_snapshot_node *)a)->node.name,
                  ((const struct as_snapshot_node *)b)->node.name);
}

void decision_sort_nodes(struct as_reader *observed, struct as_snapshot *snapshot)
{
    struct as_snapshot_node *nodes = (struct as_snapshot_node *)snapshot->nodes;
    if (snapshot->node_count > 1)
        qsort(nodes, snapshot->node_count, sizeof(*nodes), compare_nodes);
    for (size_t i = 1; i < snapshot->node_count; i++)
        if (compare_nodes(&nodes[i - 1], &nodes[i]) == 0)
            as_read_fail(observed, "pool_nodes", "\"%s\" is there twice", nodes[i].node.name);
}

/* ---- sums, and what is remembered ---- */

#define KEPT(WORD, STAY)                                                                           \
    {                                                                                              \
        .name = (WORD), .type = &as_row_u64, .at = (STAY) * sizeof(uint64_t),                      \
        .max = AS_RES_AMOUNT_MAX                                                                   \
    }

const struct as_row as_decision_kept_rows[] = {
    KEPT("at_min", AS_STAY_AT_MIN),
    KEPT("at_once", AS_STAY_AT_ONCE),
    KEPT("budget", AS_STAY_BUDGET),
    KEPT("disabled", AS_STAY_DISABLED),
    KEPT("dry_run", AS_STAY_DRY_RUN),
    KEPT("held", AS_STAY_HELD),
    KEPT("in_progress", AS_STAY_IN_PROGRESS),
    KEPT("leaving", AS_STAY_LEAVING),
    KEPT("no_choice", AS_STAY_NO_CHOICE),
    KEPT("no_group", AS_STAY_NO_GROUP),
    KEPT("no_room", AS_STAY_NO_ROOM),
    KEPT("paused", AS_STAY_PAUSED),
    KEPT("receives", AS_STAY_RECEIVES),
    KEPT("shortly", AS_STAY_SHORTLY),
    KEPT("starting", AS_STAY_STARTING),
    KEPT("unevictable", AS_STAY_UNEVICTABLE),
    KEPT("unreadable", AS_STAY_UNREADABLE),
    KEPT("utilized", AS_STAY_UTILIZED),
    {.name = NULL, .definition = "kept", .about = "How many nodes stay, by reason"},
};
_Static_assert(AS_ARRAY_SIZE(as_decision_kept_rows) == AS_STAY_COUNT + 1, "all of them");

const struct as_row as_decision_leaving_rows[] = {
    {AS_ROW("drained", u64, as_snapshot, leaving_drained, OPTIONAL), .max = AS_RES_AMOUNT_MAX},
    {AS_ROW("empty", u64, as_snapshot, leaving_empty, OPTIONAL), .max = AS_RES_AMOUNT_MAX},
    {.name = NULL},
};

const struct as_row as_decision_budget_rows[] = {
    {AS_ROW("allowed", i32, as_snapshot_budget, allowed, OPTIONAL), .min = INT32_MIN},
    {AS_ROW("name", text, as_snapshot_budget, name, REQUIRED)},
    {.name = NULL},
};

const struct as_row as_decision_asked_rows[] = {
    {AS_ROW("at", time, as_asked, at, REQUIRED)},
    {AS_ROW("group", text, as_asked, group, REQUIRED)},
    {AS_ROW("in_vain", flag, as_asked, is_in_vain, OPTIONAL)},
    {AS_ROW("shape", hex, as_asked, pod_class, REQUIRED)},
    {AS_ROW("template", hex, as_asked, template_, REQUIRED)},
    {.name = NULL, .definition = "asked_group"},
};

const struct as_row as_decision_unneeded_rows[] = {
    {AS_ROW("no_room", maybe_time, as_unneeded, no_room, OPTIONAL)},
    {AS_ROW("node", text, as_unneeded, node, REQUIRED)},
    {AS_ROW("seen", maybe_time, as_unneeded, seen, OPTIONAL)},
    {AS_ROW("since", maybe_time, as_unneeded, since, OPTIONAL)},
    {.name = NULL, .definition = "unneeded_node"},
};

static int compare_unneeded(const void *a, const void *b)
{
    return strcmp(((const struct as_unneeded *)a)->node, ((const struct as_unneeded *)b)->node);
}

void decision_sort_unneeded(struct as_reader *history, struct as_snapshot *snapshot)
{
    struct as_unneeded *unneeded = (struct as_unneeded *)snapshot->unneeded;
    if (snapshot->unneeded_count > 1)
        qsort(unneeded, snapshot->unneeded_count, sizeof(*unneeded), compare_unneeded);
    for (size_t i = 1; i < snapshot->unneeded_count; i++)
        if (compare_unneeded(&unneeded[i - 1], &unneeded[i]) == 0)
            as_read_fail(history, "unneeded", "\"%s\" is there twice", unneeded[i].node);
}
