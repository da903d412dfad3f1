/*
 * What a survey says of each group: its size and what is on its way, why it does not grow, why its
 * nodes stay, and what a new node would be like.
 */
#include <string.h>

#include "shape_key.h"
#include "survey_work.h"

/* For metrics. Pods on nodes that are not open count, as the source `nodes` counts them. */
static void add_sums(struct as_group_sums *sums, const struct as_node_fact *fact,
                     const struct survey_node *node)
{
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++)
        sums->requests[i] = as_amount_add(sums->requests[i], node->requests[i], 1);
    sums->leaving += fact->leaving != 0;
    if (!as_node_is_open(fact))
        return;
    sums->open++;
    sums->ready += node->is_ready;
    sums->allocatable[AS_RESOURCE_CPU] =
        as_amount_add(sums->allocatable[AS_RESOURCE_CPU], fact->allocatable.amount[AS_RES_CPU], 1);
    sums->allocatable[AS_RESOURCE_MEMORY] = as_amount_add(
        sums->allocatable[AS_RESOURCE_MEMORY], fact->allocatable.amount[AS_RES_MEMORY], 1);
}

/* On its way */

/* Marked nodes are no part of the size. A node that is not Ready counts as on its way until
 * ready_timeout after it was made. */
static void count_nodes(struct as_survey_work *work, const struct as_survey_member *member,
                        struct survey_group *group, struct as_survey_group *out)
{
    for (size_t i = 0; i < group->node_count; i++) {
        const struct as_node_fact *fact = &work->cluster->nodes[group->nodes[i]];

        add_sums(&out->sums, fact, &work->nodes[group->nodes[i]]);
        if (fact->leaving & AS_NODE_LEAVING_OURS) {
            group->marked++;
            continue;
        }
        if (work->nodes[group->nodes[i]].is_ready)
            group->ready++;
        else if (work->request->now.us >= as_time_add(fact->created.us, member->ready_timeout_us))
            group->late++;
        out->nodes++;
        out->cpu = as_amount_add(out->cpu, fact->capacity.amount[AS_RES_CPU], 1);
        out->memory = as_amount_add(out->memory, fact->capacity.amount[AS_RES_MEMORY], 1);
    }
    survey_spend(work, 2 * group->node_count);
}

static int32_t clamp(int64_t number, int64_t low, int64_t high)
{
    if (number > high)
        number = high;
    return (int32_t)(number < low ? low : number);
}

static int32_t count_coming(const struct as_survey_member *member, const struct survey_group *group)
{
    const int64_t overdue = member->overdue > 0 ? member->overdue : 0;
    const int64_t refused = member->refused > 0 ? member->refused : 0;
    const int64_t absent = refused + member->unregistered;

    return clamp((int64_t)member->size - group->ready - group->late - overdue - absent, 0,
                 INT32_MAX);
}

/* Growth, and leaving */

/* While marked nodes are there, alertscaler has made the size 0. If nodes that
 * another controller requested do not register, the engine lets the group back off from this
 * decision on. */
static enum as_reason find_closed(const struct as_survey_member *member,
                                  const struct survey_group *group,
                                  const struct as_node_template *template_)
{
    if (member->closed != AS_REASON_SCALED)
        return member->closed;
    if (member->size < 0)
        return AS_REASON_UNREACHABLE;
    if (member->size == 0 && member->min > 0 && group->marked == 0) /* it is switched off */
        return AS_REASON_DISABLED;
    if (member->unregistered > member->backed_off)
        return AS_REASON_COOLDOWN;
    if (member->in_progress && !member->has_open_growth)
        return AS_REASON_IN_PROGRESS;
    if (member->size >= member->max)
        return AS_REASON_AT_MAX;
    return template_->source == AS_NODE_TEMPLATE_NONE ? AS_REASON_NO_TEMPLATE : AS_REASON_SCALED;
}

/* AS_STAY_COUNT: its nodes may leave. */
static enum as_stay find_stay(const struct as_survey_member *member)
{
    if (!member->is_member)
        return AS_STAY_NO_GROUP;
    if (member->closed == AS_REASON_PAUSED)
        return AS_STAY_PAUSED;
    if (member->is_kept)
        return AS_STAY_HELD;
    if (member->closed == AS_REASON_DRY_RUN)
        return AS_STAY_DRY_RUN;
    if (member->size < 0)
        return AS_STAY_UNREADABLE;
    if (member->chooses_itself)
        return AS_STAY_NO_CHOICE;
    return member->in_progress || member->in_doubt > 0 || member->down_in_doubt
               ? AS_STAY_IN_PROGRESS
               : AS_STAY_COUNT;
}

/* Templates */

/* Only labels by which a group is told from another kind of group: the others come and go with
 * single nodes. Memory and storage differ a little from node to node, and are left out. */
static uint64_t digest_template(const struct as_node_template *template_,
                                const struct as_res_names *names)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf key = AS_BUF_INIT_OPEN((size_t)1 << 20);
    const struct as_node_shape *shape = &template_->shape;

    for (uint32_t i = 0; shape->labels && i < shape->labels->count; i++) {
        if (!as_pool_label_counts(shape->labels->items[i].name, NULL, 0))
            continue;
        shape_key_add_text(&key, shape->labels->items[i].name);
        shape_key_add_text(&key, shape->labels->items[i].value);
    }
    shape_key_add_text(&key, NULL);
    for (size_t i = 0; i < shape->taint_count; i++) {
        shape_key_add_text(&key, shape->taints[i].key);
        shape_key_add_text(&key, shape->taints[i].value);
        shape_key_add_number(&key, shape->taints[i].effect);
    }
    shape_key_add_text(&key, NULL);
    shape_key_add_number(&key, (uint64_t)template_->capacity.amount[AS_RES_CPU]);
    for (size_t i = AS_RES_NAMED; i < names->count; i++) {
        if (template_->capacity.amount[i] == 0)
            continue;
        shape_key_add_text(&key, names->name[i]);
        shape_key_add_number(&key, (uint64_t)template_->capacity.amount[i]);
    }
    return survey_digest(key.data, key.size);
}

static void make_template(struct as_survey_work *work, const struct as_survey_member *member,
                          const struct survey_group *group, struct as_survey_group *out)
{
    const struct as_node_template_request request = {
        .cluster = work->cluster,
        .pods = &work->pods,
        .nodes = group->nodes,
        .node_count = group->node_count,
        .startup_taints = member->startup_taints,
        .startup_taint_count = member->startup_taint_count,
        .last = member->last,
        .configured = member->configured,
        .now = work->request->now,
    };

    as_node_template_init(&out->template_, &request, work->arena);
    out->template_digest = digest_template(&out->template_, &work->cluster->resources);
    survey_spend(work, 32 * group->node_count + 32);
}

static void note_drain(struct as_survey *survey, const struct as_survey_member *member)
{
    if (!member->is_member || !member->drain_failed.set)
        return;
    if (!survey->drain_failed.set || survey->drain_failed.at.us < member->drain_failed.at.us)
        survey->drain_failed = member->drain_failed;
}

static void make_group(struct as_survey_work *work, size_t index, struct as_survey_group *out)
{
    const struct as_survey_member *member = &work->request->members[index];
    struct survey_group *group = &work->groups[index];

    *out = (struct as_survey_group){
        .name = member->name,
        .is_member = member->is_member,
        .size = member->size < 0 ? -1 : member->size,
        .min = member->min,
        .max = member->max,
        .overdue = clamp(member->overdue, 0, (int64_t)member->size - member->min),
        .in_doubt = member->in_doubt,
        .unregistered = member->size < 0 ? 0 : member->unregistered,
        .surplus = member->size < 0 ? 0 : member->surplus,
        .surplus_since = member->surplus_since,
        .open_at = member->open_at,
        .last_size = member->size < 0 ? clamp(member->last_size, 0, INT32_MAX) : 0,
        .message = member->size < 0 ? member->message : NULL,
        .has_priority = member->has_priority,
        .has_price = member->has_price,
        .priority = member->priority,
        .price = member->price,
        .unneeded = member->unneeded,
    };
    out->removable = member->has_open_growth ? 0 : clamp(member->removable, 0, out->overdue);
    count_nodes(work, member, group, out);
    out->coming = count_coming(member, group);
    make_template(work, member, group, out);
    out->closed = find_closed(member, group, &out->template_);
    group->stay = find_stay(member);
    note_drain(&work->survey, member);
}

bool survey_make_groups(struct as_survey_work *work)
{
    const size_t count = work->request->member_count;

    for (; work->slice > 0 && work->at < count; work->at++)
        make_group(work, work->at, &work->shown_groups[work->at]);
    return work->at == count;
}
