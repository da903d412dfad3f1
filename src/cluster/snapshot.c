/*
 * The snapshot of a pool, made in phases. This module has the phases up to the point where all pods
 * that need room are placed, and what a snapshot says of each group: its size and what is on its
 * way, why it does not grow, why its nodes stay, and what a new node would be like. snapshot_cut.c
 * has the phases after these.
 */
#include <alertscaler/cluster/snapshot.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot_pod_classes.h"
#include "snapshot_work.h"

const char *as_stay_get_word(enum as_stay stay)
{
#define WORD(enumerator, word) [enumerator] = (word),
    static const char *const words[AS_STAY_COUNT] = {AS_STAYS(WORD)};

    assert((size_t)stay < AS_STAY_COUNT);
    return words[stay];
}

/* For metrics. Pods on nodes that are not open count, as the source `nodes` counts them. */
static void add_sums(struct as_group_sums *sums, const struct as_node_fact *fact,
                     const struct snapshot_node *node)
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
static void count_nodes(struct as_snapshot_work *work, const struct as_snapshot_member *member,
                        struct snapshot_group *group, struct as_snapshot_group *out)
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
    snapshot_spend(work, 2 * group->node_count);
}

static int32_t clamp(int64_t number, int64_t low, int64_t high)
{
    if (number > high)
        number = high;
    return (int32_t)(number < low ? low : number);
}

static int32_t count_coming(const struct as_snapshot_member *member,
                            const struct snapshot_group *group)
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
static enum as_reason snapshot_find_closed(const struct as_snapshot_member *member,
                                           const struct snapshot_group *group,
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
    if (member->in_progress && !member->has_pending_scaleup)
        return AS_REASON_IN_PROGRESS;
    if (member->size >= member->max)
        return AS_REASON_AT_MAX;
    return template_->source == AS_NODE_TEMPLATE_NONE ? AS_REASON_NO_TEMPLATE : AS_REASON_SCALED;
}

/* AS_STAY_COUNT: its nodes may leave. */
static enum as_stay snapshot_find_stay(const struct as_snapshot_member *member)
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
        class_key_add_text(&key, shape->labels->items[i].name);
        class_key_add_text(&key, shape->labels->items[i].value);
    }
    class_key_add_text(&key, NULL);
    for (size_t i = 0; i < shape->taint_count; i++) {
        class_key_add_text(&key, shape->taints[i].key);
        class_key_add_text(&key, shape->taints[i].value);
        class_key_add_number(&key, shape->taints[i].effect);
    }
    class_key_add_text(&key, NULL);
    class_key_add_number(&key, (uint64_t)template_->capacity.amount[AS_RES_CPU]);
    for (size_t i = AS_RES_NAMED; i < names->count; i++) {
        if (template_->capacity.amount[i] == 0)
            continue;
        class_key_add_text(&key, names->name[i]);
        class_key_add_number(&key, (uint64_t)template_->capacity.amount[i]);
    }
    return snapshot_digest(key.data, key.size);
}

static void make_template(struct as_snapshot_work *work, const struct as_snapshot_member *member,
                          const struct snapshot_group *group, struct as_snapshot_group *out)
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
    snapshot_spend(work, 32 * group->node_count + 32);
}

static void note_drain(struct as_snapshot *snapshot, const struct as_snapshot_member *member)
{
    if (!member->is_member || !member->drain_failed.set)
        return;
    if (!snapshot->drain_failed.set || snapshot->drain_failed.at.us < member->drain_failed.at.us)
        snapshot->drain_failed = member->drain_failed;
}

static void snapshot_make_group(struct as_snapshot_work *work, size_t index,
                                struct as_snapshot_group *out)
{
    const struct as_snapshot_member *member = &work->request->members[index];
    struct snapshot_group *group = &work->groups[index];

    *out = (struct as_snapshot_group){
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
    out->removable = member->has_pending_scaleup ? 0 : clamp(member->removable, 0, out->overdue);
    count_nodes(work, member, group, out);
    out->coming = count_coming(member, group);
    make_template(work, member, group, out);
    out->closed = snapshot_find_closed(member, group, &out->template_);
    group->stay = snapshot_find_stay(member);
    note_drain(&work->snapshot, member);
}

static bool snapshot_make_groups(struct as_snapshot_work *work)
{
    const size_t count = work->request->member_count;

    for (; work->slice > 0 && work->at < count; work->at++)
        snapshot_make_group(work, work->at, &work->shown_groups[work->at]);
    return work->at == count;
}

/* Nodes */

/* Phases: true: done. */
static bool snapshot_index(struct as_snapshot_work *work)
{
    as_node_pods_init(&work->pods, work->cluster, work->arena);
    snapshot_spend(work, work->cluster->pod_count / 4);
    return true;
}

static int compare_to_node(const void *name, const void *node)
{
    return strcmp(name, ((const struct as_node_fact *)node)->name);
}

/* A node that two groups name belongs to neither; each counts it as one of its instances. */
static void join_node(struct as_snapshot_work *work, uint32_t member, uint32_t node, bool *is_taken)
{
    struct snapshot_group *group = &work->groups[member];

    is_taken[node] |= work->nodes[node].group != AS_SNAPSHOT_NO_GROUP;
    work->nodes[node].group = member;
    group->nodes[group->node_count++] = node;
}

static void join_group(struct as_snapshot_work *work, uint32_t index, bool *is_taken)
{
    const struct as_snapshot_member *member = &work->request->members[index];
    const struct as_cluster *cluster = work->cluster;

    work->groups[index].nodes =
        as_arena_alloc(work->arena, member->node_count, sizeof(*work->groups[index].nodes));
    for (size_t i = 0; i < member->node_count; i++) {
        if (i > 0 && strcmp(member->nodes[i - 1], member->nodes[i]) == 0)
            continue;
        const struct as_node_fact *fact = bsearch(
            member->nodes[i], cluster->nodes, cluster->node_count, sizeof(*fact), compare_to_node);
        if (fact)
            join_node(work, index, (uint32_t)(fact - cluster->nodes), is_taken);
    }
}

/* All groups at once: some 5,000 names. */
static bool snapshot_join(struct as_snapshot_work *work)
{
    const size_t count = work->cluster->node_count;
    bool *is_taken = as_arena_alloc(work->arena, count, sizeof(*is_taken));

    for (size_t i = 0; i < count; i++)
        work->nodes[i].group = AS_SNAPSHOT_NO_GROUP;
    for (size_t i = 0; i < work->request->member_count; i++)
        join_group(work, (uint32_t)i, is_taken);
    for (size_t i = 0; i < count; i++)
        if (is_taken[i])
            work->nodes[i].group = AS_SNAPSHOT_NO_GROUP;
    snapshot_spend(work, 8 * count);
    return true;
}

/* A node that is made new begins as not Ready, and one with a taint of a start is not Ready yet. */
static void set_state(struct as_snapshot_work *work, uint32_t index)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    struct snapshot_node *node = &work->nodes[index];
    const struct as_snapshot_member *member =
        node->group == AS_SNAPSHOT_NO_GROUP ? NULL : &work->request->members[node->group];

    node->shape = (struct as_node_shape){
        .name = fact->name,
        .labels = fact->labels,
        .taints = fact->taints,
        .taint_count = fact->taint_count,
        .allocatable = fact->allocatable,
    };
    node->is_ready = fact->is_ready && !as_node_has_new_node_taint(fact) &&
                     !as_node_has_startup_taint(fact, member ? member->startup_taints : NULL,
                                                member ? member->startup_taint_count : 0);
    node->is_starting =
        !node->is_ready && member &&
        work->request->now.us < as_time_add(fact->created.us, member->ready_timeout_us);
    node->is_receiver = node->is_ready && as_node_is_open(fact);
}

/* Pods that nobody would make anew need no other place. */
static void move_away(struct as_snapshot_work *work, uint32_t node, const struct as_pod_fact *pod)
{
    if (snapshot_is_expendable(work, pod->pod_class) || !snapshot_must_move(work, pod) ||
        pod->pod_class->eviction == AS_EVICTION_UNREPLICATED)
        return;
    snapshot_pod_classes_take(&work->pod_classes, pod->pod_class,
                              snapshot_find_zone(&work->cluster->nodes[node], pod->pod_class))
        ->moving++;
}

static void add_request(const struct as_snapshot_work *work, struct snapshot_node *node,
                        const struct as_pod_class *pod_class)
{
    if (pod_class->eviction == AS_EVICTION_DAEMON || pod_class->eviction == AS_EVICTION_MIRROR ||
        snapshot_is_expendable(work, pod_class))
        return;
    node->requests[AS_RESOURCE_CPU] =
        as_amount_add(node->requests[AS_RESOURCE_CPU], pod_class->requests.amount[AS_RES_CPU], 1);
    node->requests[AS_RESOURCE_MEMORY] = as_amount_add(
        node->requests[AS_RESOURCE_MEMORY], pod_class->requests.amount[AS_RES_MEMORY], 1);
}

/* Pods that may preempt have the room of expendable ones. */
static void take_room(struct as_snapshot_work *work, struct snapshot_node *node,
                      const struct as_pod_class *pod_class)
{
    if (!snapshot_is_expendable(work, pod_class)) {
        if (pod_class->port_count > 0 || pod_class->loner != 0)
            pod_class =
                &snapshot_pod_classes_take(&work->pod_classes, pod_class, NULL)->pod_class.pod;
        as_node_room_take(&node->room, &work->cluster->resources, pod_class, 1, work->arena);
        return;
    }
    if (!node->expendable)
        node->room.expendable = node->expendable =
            as_arena_alloc(work->arena, 1, sizeof(*node->expendable));
    for (size_t i = 0; i < AS_RES_MAX; i++)
        node->expendable->amount[i] =
            as_amount_add(node->expendable->amount[i], pod_class->requests.amount[i], 1);
}

static void weigh_node(struct as_snapshot_work *work, uint32_t index)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    struct snapshot_node *node = &work->nodes[index];
    size_t count;
    const uint32_t *pods = as_node_pods_get(&work->pods, index, &count);

    set_state(work, index);
    node->room.left = fact->allocatable;
    for (size_t i = 0; i < count; i++) {
        const struct as_pod_fact *pod = &work->cluster->pods[pods[i]];
        const struct as_pod_class *pod_class = pod->pod_class;

        add_request(work, node, pod_class);
        if (fact->leaving)
            move_away(work, index, pod);
        if (node->is_receiver)
            take_room(work, node, pod_class);
    }
    snapshot_spend(work, 2 + count);
}

static void spend_on_pod_classes(struct as_snapshot_work *work)
{
    snapshot_spend(work, work->pod_classes.cost);
    work->pod_classes.cost = 0;
}

/* what is free; who must leave */
static bool snapshot_weigh_nodes(struct as_snapshot_work *work)
{
    for (; work->slice > 0 && work->at < work->cluster->node_count; work->at++) {
        weigh_node(work, (uint32_t)work->at);
        spend_on_pod_classes(work);
    }
    return work->at == work->cluster->node_count;
}

/* Pods */

static bool is_nominated(const struct as_snapshot_work *work, const struct as_pod_fact *pod)
{
    return pod->nominated != AS_NO_NODE && as_node_is_open(&work->cluster->nodes[pod->nominated]);
}

static bool is_waiting(const struct as_snapshot_work *work, const struct as_pod_fact *pod)
{
    return pod->is_unschedulable && pod->pod_class->eviction != AS_EVICTION_DAEMON &&
           pod->pod_class->eviction != AS_EVICTION_MIRROR &&
           !snapshot_is_expendable(work, pod->pod_class);
}

static void wait_for_room(struct as_snapshot_work *work, const struct as_pod_fact *pod)
{
    struct snapshot_pod_class *pod_class =
        snapshot_pod_classes_take(&work->pod_classes, pod->pod_class, NULL);

    if (pod_class->waiting == 0 || pod->created.us < pod_class->oldest.us)
        pod_class->oldest = pod->created;
    pod_class->waiting++;
    work->snapshot.pending_pods++;
}

/* who waits, who is nominated */
static bool snapshot_weigh_pods(struct as_snapshot_work *work)
{
    for (; work->slice > 0 && work->at < work->cluster->pod_count; work->at++) {
        const struct as_pod_fact *pod = &work->cluster->pods[work->at];

        snapshot_spend(work, 1);
        if (pod->is_bound || pod->node != AS_NO_NODE || pod->is_leaving)
            continue;
        if (is_nominated(work, pod))
            as_node_room_take(
                &work->nodes[pod->nominated].room, &work->cluster->resources,
                &snapshot_pod_classes_take(&work->pod_classes, pod->pod_class, NULL)->pod_class.pod,
                1, work->arena);
        else if (is_waiting(work, pod))
            wait_for_room(work, pod);
        spend_on_pod_classes(work);
    }
    return work->at == work->cluster->pod_count;
}

/* Placing */

static int snapshot_compare_keys(const struct snapshot_pod_class *a,
                                 const struct snapshot_pod_class *b)
{
    const size_t size = a->key_size < b->key_size ? a->key_size : b->key_size;
    const int order = size > 0 ? memcmp(a->key, b->key, size) : 0;

    return order ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

static int compare_pod_classes(const void *a, const void *b)
{
    return snapshot_compare_keys(*(struct snapshot_pod_class *const *)a,
                                 *(struct snapshot_pod_class *const *)b);
}

/* The order in which the scheduler tries pods: highest priority, then the oldest. Equal pods have
 * the place of the oldest of them. */
static int compare_waiting(const void *a, const void *b)
{
    const struct snapshot_pod_class *const *left = a, *const *right = b;
    const int32_t priority = (*left)->pod_class.pod.priority,
                  than = (*right)->pod_class.pod.priority;
    const int64_t one = (*left)->oldest.us, other = (*right)->oldest.us;

    if (priority != than)
        return priority > than ? -1 : 1;
    return one != other ? (one > other) - (one < other) : snapshot_compare_keys(*left, *right);
}

static void snapshot_list_pod_classes(struct as_snapshot_work *work)
{
    const size_t count = work->pod_classes.count;

    work->moving = as_arena_alloc(work->arena, count, sizeof(struct snapshot_pod_class *));
    work->waiting = as_arena_alloc(work->arena, count, sizeof(struct snapshot_pod_class *));
    for (struct snapshot_pod_class *pod_class = work->pod_classes.first; pod_class;
         pod_class = pod_class->next) {
        if (pod_class->moving > 0)
            work->moving[work->moving_count++] = pod_class;
        if (pod_class->waiting > 0)
            work->waiting[work->waiting_count++] = pod_class;
    }
    if (work->moving_count > 1)
        qsort(work->moving, work->moving_count, sizeof(struct snapshot_pod_class *),
              compare_pod_classes);
    if (work->waiting_count > 1)
        qsort(work->waiting, work->waiting_count, sizeof(struct snapshot_pod_class *),
              compare_waiting);
}

static struct as_pending *list_pending(const struct as_snapshot_work *work)
{
    struct as_pending *pending =
        as_arena_alloc(work->arena, work->moving_count + work->waiting_count, sizeof(*pending));

    for (size_t i = 0; i < work->moving_count; i++)
        pending[i] = (struct as_pending){&work->moving[i]->pod_class.pod, work->moving[i]->moving};
    for (size_t i = 0; i < work->waiting_count; i++)
        pending[work->moving_count + i] =
            (struct as_pending){&work->waiting[i]->pod_class.pod, work->waiting[i]->waiting};
    return pending;
}

/* Pods of leaving nodes first, then those that wait. */
static bool snapshot_begin_place(struct as_snapshot_work *work)
{
    const size_t node_count = work->cluster->node_count;
    struct as_node_run *runs = as_arena_alloc(work->arena, node_count, sizeof(*runs));

    work->receivers = as_arena_alloc(work->arena, node_count, sizeof(*work->receivers));
    for (size_t i = 0; i < node_count; i++) {
        if (!work->nodes[i].is_receiver)
            continue;
        runs[work->receiver_count] = (struct as_node_run){
            .node = &work->nodes[i].shape, .room = work->nodes[i].room, .count = 1};
        work->receivers[work->receiver_count++] = (uint32_t)i;
    }
    snapshot_list_pod_classes(work);
    const struct as_pack_request request = {
        .names = &work->cluster->resources,
        .pending = list_pending(work),
        .pending_count = work->moving_count + work->waiting_count,
        .fits = AS_PACK_FITS_MAX,
    };
    as_pack_init_on_nodes(&work->pack, &request, runs, work->receiver_count, work->arena);
    snapshot_spend(work, 16 * node_count + 16 * work->pod_classes.count);
    return true;
}

/* The work ended early: only pod classes before the last one that found a place were tried on all
 * nodes. Of the others nothing is known. */
static void forget_untried(const struct as_pack *pack, const struct as_snapshot_work *work)
{
    size_t tried = work->waiting_count;
    const uint64_t *left = &pack->left[work->moving_count];

    while (tried > 0 && left[tried - 1] == work->waiting[tried - 1]->waiting)
        tried--;
    for (size_t i = tried > 0 ? tried - 1 : 0; i < work->waiting_count; i++)
        work->waiting[i]->left = 0;
}

static bool snapshot_place(struct as_snapshot_work *work)
{
    const struct as_pack *pack = &work->pack;
    const uint64_t before = pack->fits;
    const bool is_done = as_pack_step(&work->pack, work->slice);

    snapshot_spend(work, pack->fits - before);
    if (!is_done)
        return false;
    for (size_t i = 0; i < work->receiver_count; i++)
        work->nodes[work->receivers[i]].room = pack->runs[i].room;
    for (size_t i = 0; i < work->waiting_count; i++)
        work->waiting[i]->left = pack->left[work->moving_count + i];
    if (pack->is_cut)
        forget_untried(pack, work);
    return true;
}

typedef bool phase_fn(struct as_snapshot_work *work);

static phase_fn *const phases[] = {
    snapshot_index,
    snapshot_join,
    snapshot_weigh_nodes,
    snapshot_weigh_pods,
    snapshot_make_groups,
    snapshot_begin_place,
    snapshot_place,
    snapshot_find_eligible,
    snapshot_choose_candidates,
    snapshot_cut,
    snapshot_show_candidates,
    snapshot_show_roomy,
    snapshot_list_nodes,
    snapshot_show_rest,
};

struct as_snapshot_work *as_snapshot_begin(const struct as_snapshot_request *request,
                                           struct as_arena *arena)
{
    struct as_snapshot_work *work = as_arena_alloc(arena, 1, sizeof(*work));
    const struct as_cluster *cluster = request->cluster;

    work->request = request;
    work->cluster = cluster;
    work->arena = arena;
    work->groups = as_arena_alloc(arena, request->member_count, sizeof(*work->groups));
    work->shown_groups = as_arena_alloc(arena, request->member_count, sizeof(*work->shown_groups));
    work->templates = as_arena_alloc(arena, request->member_count, sizeof(*work->templates));
    work->nodes = as_arena_alloc(arena, cluster->node_count, sizeof(*work->nodes));
    snapshot_pod_classes_init(&work->pod_classes, cluster, arena);
    work->snapshot = (struct as_snapshot){
        .resources = cluster->resources,
        .cluster_nodes = cluster->node_count,
        .groups = work->shown_groups,
        .group_count = request->member_count,
        .seed = request->seed,
    };
    return work;
}

bool as_snapshot_step(struct as_snapshot_work *work, uint64_t fits,
                      struct as_snapshot *snapshot_out)
{
    work->slice = fits;
    while (work->slice > 0 && work->phase < AS_ARRAY_SIZE(phases)) {
        if (!phases[work->phase](work))
            continue;
        work->phase++;
        work->at = 0;
    }
    if (work->phase < AS_ARRAY_SIZE(phases))
        return false;
    *snapshot_out = work->snapshot;
    return true;
}

const struct as_node_template *as_snapshot_get_template(const struct as_snapshot_work *work,
                                                        size_t member)
{
    return &work->templates[member];
}
