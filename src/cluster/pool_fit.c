/*
 * Growth of a pool (`fit`): new nodes for pods that wait.
 *
 * First the pods are placed on what is on its way, in all groups of the cluster; then every open
 * group of the pool is estimated; the filters choose one, caps and similar groups follow. One look
 * chooses one option: who is left waits for the next.
 *
 * A group lends its room to similar ones and shares their nodes only where its new nodes would
 * take every pod class that theirs take.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/cluster/node_sums.h>

#include "pool_work.h"

/*
 * The order in which pods are placed: see pool_work.h.
 */

struct ranked {
    const struct as_snapshot_pod_class *pod_class;
    struct as_snapshot_pods pods;
};

static int compare_amounts(const struct ranked *a, const struct ranked *b, enum as_res resource)
{
    const int64_t left = a->pod_class->pod.requests.amount[resource];
    const int64_t right = b->pod_class->pod.requests.amount[resource];
    return (left < right) - (left > right);
}

static int pool_fit_compare_ranked(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    const int32_t one = left->pod_class->pod.priority, other = right->pod_class->pod.priority;
    int order = (one < other) - (one > other);
    if (order == 0)
        order = compare_amounts(left, right, AS_RES_CPU);
    if (order == 0)
        order = compare_amounts(left, right, AS_RES_MEMORY);
    if (order == 0)
        order = (left->pod_class->digest > right->pod_class->digest) -
                (left->pod_class->digest < right->pod_class->digest);
    if (order == 0)
        order = (left->pods.pod_class > right->pods.pod_class) -
                (left->pods.pod_class < right->pods.pod_class);
    return order;
}

struct as_snapshot_pods *pool_sort_pods(const struct as_snapshot *snapshot,
                                        const struct as_snapshot_pods *pods, size_t count,
                                        struct as_arena *arena)
{
    struct ranked *ranked = as_arena_alloc(arena, count, sizeof(*ranked));
    struct as_snapshot_pods *sorted = as_arena_alloc(arena, count, sizeof(*sorted));
    for (size_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){&snapshot->pod_classes[pods[i].pod_class], pods[i]};
    if (count > 1)
        qsort(ranked, count, sizeof(*ranked), pool_fit_compare_ranked);
    for (size_t i = 0; i < count; i++)
        sorted[i] = ranked[i].pods;
    return sorted;
}

/*
 * What was asked without a full check: pairs of a pod class and a group (struct as_asked). A pair
 * is open while nodes of the group are on their way and two to three minutes longer. Then the pair
 * is in vain if such a pod still waits; else it is forgotten. A pair that is in vain is not asked
 * again for AS_ASKED_FOR_US or until the group's template changes.
 */

#define TIMEOUT_US (2 * AS_US_PER_MIN) /* after the nodes came */
#define NOTE_US    AS_US_PER_MIN       /* `at` is kept as current as this: each change is stored */

static const struct as_snapshot_group *pool_fit_find_group(const struct as_snapshot *snapshot,
                                                           const char *name)
{
    for (size_t i = 0; i < snapshot->group_count; i++)
        if (strcmp(snapshot->groups[i].name, name) == 0)
            return &snapshot->groups[i];
    return NULL;
}

static bool has_changed(const struct as_snapshot_group *group, const struct as_asked *asked)
{
    return group->template_.source != AS_NODE_TEMPLATE_NONE &&
           group->template_digest != asked->template_;
}

static bool still_waits(const struct as_snapshot *snapshot, uint64_t digest)
{
    for (size_t i = 0; i < snapshot->pending_count; i++)
        if (snapshot->pending[i].count > 0 &&
            snapshot->pod_classes[snapshot->pending[i].pod_class].digest == digest)
            return true;
    for (size_t i = 0; i < snapshot->pod_class_count; i++)
        if (snapshot->pod_classes[i].waiting > 0 && snapshot->pod_classes[i].digest == digest)
            return true;
    return false;
}

static int64_t get_age(const struct as_pool_work *work, as_wall_time at)
{
    return work->request.terms.now.us > at.us ? work->request.terms.now.us - at.us : 0;
}

/* False: it is forgotten. A group in cooldown has failed to grow: nothing came that a pod could
 * have refused. */
static bool review_open(const struct as_pool_work *work, const struct as_snapshot_group *group,
                        struct as_asked *asked)
{
    if (group->coming > 0) {
        if (get_age(work, asked->at) >= NOTE_US)
            asked->at = work->request.terms.now;
        return true;
    }
    if (group->closed == AS_REASON_COOLDOWN)
        return false;
    if (get_age(work, asked->at) < NOTE_US + TIMEOUT_US)
        return true;
    asked->is_in_vain = still_waits(work->snapshot, asked->pod_class);
    asked->at = work->request.terms.now;
    return asked->is_in_vain;
}

static bool review(const struct as_pool_work *work, struct as_asked *asked)
{
    const struct as_snapshot_group *group = pool_fit_find_group(work->snapshot, asked->group);
    if (!group || has_changed(group, asked))
        return false;
    if (asked->is_in_vain)
        return get_age(work, asked->at) < AS_ASKED_FOR_US;
    return review_open(work, group, asked);
}

void pool_asked_review(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct as_pool_plan *plan = &work->plan;
    plan->asked = as_arena_alloc(work->arena, AS_ASKED_MAX, sizeof(*plan->asked));
    for (size_t i = 0; i < snapshot->asked_count && plan->asked_count < AS_ASKED_MAX; i++) {
        struct as_asked *asked = &plan->asked[plan->asked_count];
        *asked = snapshot->asked[i];
        plan->asked_count += review(work, asked);
    }
}

static struct as_asked *find_asked(const struct as_pool_work *work, uint32_t pod_class,
                                   uint32_t group)
{
    const struct as_snapshot *snapshot = work->snapshot;
    for (size_t i = 0; i < work->plan.asked_count; i++) {
        struct as_asked *asked = &work->plan.asked[i];
        if (asked->pod_class == snapshot->pod_classes[pod_class].digest &&
            strcmp(asked->group, snapshot->groups[group].name) == 0)
            return asked;
    }
    return NULL;
}

static bool pool_asked_in_vain(const struct as_pool_work *work, uint32_t pod_class, uint32_t group)
{
    const struct as_asked *asked = NULL;
    if (work->snapshot->pod_classes[pod_class].pod.unchecked)
        asked = find_asked(work, pod_class, group);
    return asked && asked->is_in_vain;
}

/* Its own entry if there is one; else a new one; where there is no room, the oldest. */
static struct as_asked *get_place(struct as_pool_work *work, uint32_t pod_class, uint32_t group)
{
    struct as_pool_plan *plan = &work->plan;
    struct as_asked *place = find_asked(work, pod_class, group);
    if (place)
        return place;
    if (plan->asked_count < AS_ASKED_MAX)
        return &plan->asked[plan->asked_count++];
    place = &plan->asked[0];
    for (size_t i = 1; i < plan->asked_count; i++)
        if (plan->asked[i].at.us < place->at.us)
            place = &plan->asked[i];
    return place;
}

static void pool_asked_add(struct as_pool_work *work, uint32_t pod_class, uint32_t group)
{
    const struct as_snapshot_group *asked = &work->snapshot->groups[group];
    *get_place(work, pod_class, group) = (struct as_asked){
        .pod_class = work->snapshot->pod_classes[pod_class].digest,
        .template_ = asked->template_digest,
        .group = asked->name,
        .at = work->request.terms.now,
    };
}

#define PLACE_FITS    (AS_PACK_FITS_MAX / 4) /* on what is on its way */
#define ESTIMATE_FITS (AS_PACK_FITS_MAX / 2) /* of all groups */

static const struct as_snapshot_group *pool_fit_get_group(const struct as_pool_work *work,
                                                          size_t group)
{
    return &work->snapshot->groups[group];
}

static size_t get_pair(const struct as_pool_work *work, size_t entry, size_t group)
{
    return entry * work->snapshot->group_count + group;
}

static bool pool_fit_is_open(const struct as_pool_work *work, size_t group)
{
    return pool_fit_get_group(work, group)->is_member &&
           work->plan.groups[group].skipped == AS_REASON_SCALED;
}

static bool pool_fit_is_known(const struct as_snapshot_group *group)
{
    return group->template_.source != AS_NODE_TEMPLATE_NONE;
}

/* Whether the group may be asked for the entry's pods. */
static bool may_ask(const struct as_pool_work *work, size_t entry, size_t group)
{
    const size_t pair = get_pair(work, entry, group);
    return work->fit.pending[entry].count > 0 && work->fit.misfits[pair] == AS_FITS &&
           !work->fit.in_vain[pair];
}

/* What is closed */

/* Nodes that a group has requested, or may have requested, and that are not there; below 0: those
 * that leave. A group that cannot be read may have what it had. */
static int64_t count_missing_nodes(const struct as_snapshot_group *group)
{
    if (group->size >= 0)
        return (int64_t)group->size + group->in_doubt - group->nodes;
    return group->last_size > group->nodes ? group->last_size - group->nodes : 0;
}

/* What a group has at its size: nodes that are not there yet are like its template, those that
 * leave are like the average. */
static int64_t get_total(const struct as_snapshot_group *group, int64_t all, enum as_res resource)
{
    const int64_t missing_nodes = count_missing_nodes(group);
    const int64_t average = pool_get_average(all, group->nodes);
    const int64_t each = missing_nodes > 0 && pool_fit_is_known(group)
                             ? group->template_.capacity.amount[resource]
                             : average;
    return as_amount_add(all, missing_nodes > 0 ? each : -each,
                         (uint64_t)(missing_nodes > 0 ? missing_nodes : -missing_nodes));
}

static int64_t get_left(int64_t max, int64_t total)
{
    return max == AS_POOL_NO_CAP ? AS_POOL_NO_CAP : max - total;
}

static void init_caps(struct as_pool_work *work)
{
    const struct as_pool_config *config = work->request.config;
    int64_t cpu = 0, memory = 0, unknown = 0;
    for (size_t i = 0; i < work->snapshot->group_count; i++) {
        const struct as_snapshot_group *group = pool_fit_get_group(work, i);
        if (!group->is_member)
            continue;
        unknown += group->size < 0 ? count_missing_nodes(group) : group->in_doubt;
        cpu = as_amount_add(cpu, get_total(group, group->cpu, AS_RES_CPU), 1);
        memory = as_amount_add(memory, get_total(group, group->memory, AS_RES_MEMORY), 1);
    }
    work->fit.caps = (struct as_pool_caps){
        .nodes = (int64_t)work->request.terms.max - work->plan.size - unknown,
        .cpu = get_left(config->cpu.max, cpu),
        .memory = get_left(config->memory.max, memory),
    };
}

static enum as_reason get_closed(const struct as_pool_work *work,
                                 const struct as_snapshot_group *group)
{
    if (group->closed != AS_REASON_SCALED)
        return group->closed;
    if (group->size < 0)
        return AS_REASON_UNREACHABLE;
    if (!pool_fit_is_known(group))
        return AS_REASON_NO_TEMPLATE;
    if ((int64_t)group->size + group->in_doubt >= group->max ||
        as_pool_cap(&work->fit.caps, &group->template_.capacity, 1) == 0)
        return AS_REASON_AT_MAX;
    return AS_REASON_SCALED;
}

/* What is on its way */

static void begin_pack_on_coming(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct as_node_run *runs = as_arena_alloc(work->arena, snapshot->group_count, sizeof(*runs));
    const struct as_pack_request request = {.names = &snapshot->resources,
                                            .pending = work->fit.pending,
                                            .pending_count = work->fit.count,
                                            .fits = PLACE_FITS};
    size_t count = 0;
    for (size_t i = 0; i < snapshot->group_count; i++) {
        const struct as_snapshot_group *group = pool_fit_get_group(work, i);
        if (group->coming <= 0 || !pool_fit_is_known(group))
            continue;
        runs[count++] = (struct as_node_run){.node = &group->template_.shape,
                                             .room = work->fit.rooms[i],
                                             .count = (uint64_t)group->coming};
    }
    as_pack_init_on_nodes(&work->fit.pack, &request, runs, count, work->arena);
}

/* On a new node, too, a pod has no host port that one of the DaemonSets has. */
static void make_rooms(struct as_pool_work *work)
{
    const size_t count = work->snapshot->group_count;
    work->fit.rooms = as_arena_alloc(work->arena, count, sizeof(*work->fit.rooms));
    for (size_t i = 0; i < count; i++) {
        const struct as_node_template *template_ = &pool_fit_get_group(work, i)->template_;
        struct as_node_room *room = &work->fit.rooms[i];
        room->left = template_->shape.allocatable;
        if (template_->port_count == 0)
            continue;
        struct as_pod_class *daemons = as_arena_alloc(work->arena, 1, sizeof(*daemons));
        daemons->ports = template_->ports;
        daemons->port_count = template_->port_count;
        room->guests = as_arena_alloc(work->arena, 1, sizeof(*room->guests));
        room->guests[0] = daemons;
        room->guest_count = room->guest_capacity = 1;
    }
}

bool pool_fit_begin(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct pool_fit *fit = &work->fit;
    const struct as_snapshot_pods *ordered =
        work->request.version < 3
            ? pool_sort_pods(snapshot, snapshot->pending, snapshot->pending_count, work->arena)
            : snapshot->pending;
    const size_t groups = snapshot->group_count;
    fit->count = snapshot->pending_count;
    fit->pod_classes = as_arena_alloc(work->arena, fit->count, sizeof(*fit->pod_classes));
    fit->pending = as_arena_alloc(work->arena, fit->count, sizeof(*fit->pending));
    for (size_t i = 0; i < fit->count; i++) {
        fit->pod_classes[i] = ordered[i].pod_class;
        fit->pending[i] =
            (struct as_pending){&snapshot->pod_classes[ordered[i].pod_class].pod, ordered[i].count};
    }
    fit->misfits = as_arena_alloc(work->arena, fit->count * groups, sizeof(*fit->misfits));
    fit->in_vain = as_arena_alloc(work->arena, fit->count * groups, sizeof(*fit->in_vain));
    fit->left = as_arena_alloc(work->arena, groups, sizeof(*fit->left));
    fit->with_free_pods = work->request.version < 3;
    make_rooms(work);
    init_caps(work);
    size_t open = 0;
    for (size_t i = 0; i < groups; i++) {
        if (pool_fit_get_group(work, i)->is_member)
            work->plan.groups[i].skipped = get_closed(work, pool_fit_get_group(work, i));
        open += pool_fit_is_open(work, i);
    }
    fit->share = ESTIMATE_FITS / (open > 0 ? open : 1);
    begin_pack_on_coming(work);
    pool_spend(work, 100 * (fit->count + groups + 1));
    return true;
}

/* True: the pack is done. */
static bool step_pack(struct as_pool_work *work)
{
    struct as_pack *pack = &work->fit.pack;
    const uint64_t before = pack->fits;
    const bool is_done = as_pack_step(pack, work->slice);
    pool_spend(work, pack->fits - before + 1);
    work->plan.is_cut |= is_done && pack->is_cut;
    return is_done;
}

/* If the work was cut here, pods that have a place may be among the others: nobody is asked. */
bool pool_fit_place(struct as_pool_work *work)
{
    struct pool_fit *fit = &work->fit;
    if (!step_pack(work))
        return false;
    for (size_t i = 0; i < fit->count; i++)
        fit->pending[i].count = fit->pack.is_cut ? 0 : fit->pack.left[i];
    return true;
}

/* Pod classes and templates */

static uint64_t pool_fit_count_texts(const struct as_pod_class *pod_class,
                                     const struct as_node_shape *node)
{
    uint64_t texts = node->taint_count * (1 + pod_class->toleration_count);
    texts += pod_class->selector ? pod_class->selector->count : 0;
    for (size_t i = 0; i < pod_class->term_count; i++)
        for (size_t k = 0; k < pod_class->terms[i].count; k++)
            texts += 1 + pod_class->terms[i].requirements[k].value_count;
    return texts;
}

static enum as_misfit get_misfit(const struct as_pool_work *work, size_t group,
                                 const struct as_pod_class *pod_class)
{
    enum as_misfit misfit =
        as_node_admits(&pool_fit_get_group(work, group)->template_.shape, pod_class);
    if (misfit == AS_FITS && as_node_room_count(&work->fit.rooms[group], &work->snapshot->resources,
                                                pod_class, 1, &misfit) > 0)
        return AS_FITS;
    return misfit;
}

static void pool_fit_check_misfit(struct as_pool_work *work, size_t entry, size_t group)
{
    struct pool_fit *fit = &work->fit;
    const struct as_node_shape *node = &pool_fit_get_group(work, group)->template_.shape;
    const struct as_pod_class *pod_class = fit->pending[entry].pod_class;
    const size_t pair = get_pair(work, entry, group);
    if (fit->pending[entry].count == 0 || !pool_fit_get_group(work, group)->is_member)
        return;
    if (pool_fit_is_known(pool_fit_get_group(work, group)))
        fit->misfits[pair] = (uint8_t)get_misfit(work, group, pod_class);
    fit->in_vain[pair] = pool_asked_in_vain(work, fit->pod_classes[entry], (uint32_t)group);
    pool_spend(work, 10 + pool_fit_count_texts(pod_class, node) +
                         (pod_class->unchecked ? work->plan.asked_count : 0));
}

static bool is_listed(const struct as_pool_work *work, size_t entry, size_t group)
{
    return work->fit.pending[entry].count > 0 && pool_fit_get_group(work, group)->is_member &&
           pool_fit_is_known(pool_fit_get_group(work, group));
}

static void pool_fit_list_pod_classes(struct as_pool_work *work)
{
    const struct pool_fit *fit = &work->fit;
    struct as_pool_plan *plan = &work->plan;
    const size_t groups = work->snapshot->group_count, all = fit->count * groups;
    plan->pod_classes =
        as_arena_alloc(work->arena, all < AS_POOL_CLASS_PLANS_MAX ? all : AS_POOL_CLASS_PLANS_MAX,
                       sizeof(*plan->pod_classes));
    for (size_t pair = 0; pair < all && plan->pod_class_count < AS_POOL_CLASS_PLANS_MAX; pair++)
        if (is_listed(work, pair / groups, pair % groups))
            plan->pod_classes[plan->pod_class_count++] =
                (struct as_pool_class_plan){.pod_class = fit->pod_classes[pair / groups],
                                            .group = (uint32_t)(pair % groups),
                                            .misfit = (enum as_misfit)fit->misfits[pair],
                                            .is_in_vain = fit->in_vain[pair]};
}

bool pool_fit_observe(struct as_pool_work *work)
{
    struct pool_fit *fit = &work->fit;
    const size_t groups = work->snapshot->group_count;
    pool_spend(work, 1);
    if (fit->at < fit->count * groups) {
        pool_fit_check_misfit(work, fit->at / groups, fit->at % groups);
        fit->at++;
        return false;
    }
    pool_fit_list_pod_classes(work);
    fit->at = 0;
    return true;
}

/* Estimates */

static bool pool_fit_takes_all(const struct as_pool_work *work, size_t group, size_t other)
{
    for (size_t i = 0; i < work->fit.count; i++)
        if (may_ask(work, i, group) && !may_ask(work, i, other))
            return false;
    return true;
}

static bool is_similar(const struct as_pool_work *work, size_t group, size_t other)
{
    const struct as_pool_config *config = work->request.config;
    const struct as_node_template *one = &pool_fit_get_group(work, group)->template_;
    const struct as_node_template *two = &pool_fit_get_group(work, other)->template_;
    return as_pool_is_similar(one, two, &work->snapshot->resources,
                              (const char *const *)config->ignore_labels,
                              config->ignore_label_count) &&
           (!work->fit.with_free_pods || as_pool_has_similar_pods(one, two));
}

static bool may_share(const struct as_pool_work *work, size_t group, size_t other)
{
    return work->request.config->balance && other != group && pool_fit_is_open(work, other) &&
           is_similar(work, group, other) && pool_fit_takes_all(work, group, other);
}

static uint64_t pool_fit_get_limit(const struct as_pool_work *work, size_t group)
{
    int64_t room = 0;
    for (size_t i = 0; i < work->snapshot->group_count; i++)
        if (i == group || may_share(work, group, i))
            room += pool_fit_get_group(work, i)->max - (int64_t)pool_fit_get_group(work, i)->size;
    if (room > work->fit.caps.nodes)
        room = work->fit.caps.nodes;
    return room < AS_PACK_NODES_MAX ? (uint64_t)room : AS_PACK_NODES_MAX;
}

static void begin_estimate(struct as_pool_work *work, size_t group)
{
    struct pool_fit *fit = &work->fit;
    struct as_pending *pending = as_arena_alloc(work->arena, fit->count, sizeof(*pending));
    const struct as_pack_request request = {.names = &work->snapshot->resources,
                                            .pending = pending,
                                            .pending_count = fit->count,
                                            .fits = fit->share};
    for (size_t i = 0; i < fit->count; i++)
        pending[i] = (struct as_pending){fit->pending[i].pod_class,
                                         may_ask(work, i, group) ? fit->pending[i].count : 0};
    as_pack_init_on_new(&fit->pack, &request, &pool_fit_get_group(work, group)->template_.shape,
                        &fit->rooms[group], pool_fit_get_limit(work, group), work->arena);
    pool_spend(work, 50 * fit->count + 1000 * work->snapshot->group_count);
}

static bool has_accelerator(const struct as_res_names *names, const struct as_resources *node)
{
    for (size_t i = AS_RES_NAMED; i < names->count; i++)
        if (node->amount[i] > 0 && as_resource_is_accelerator(names->name[i]))
            return true;
    return false;
}

static void end_estimate(struct as_pool_work *work, size_t index)
{
    struct pool_fit *fit = &work->fit;
    const struct as_snapshot_group *group = pool_fit_get_group(work, index);
    const struct as_resources *node = &group->template_.capacity;
    struct as_pool_option *option = &work->plan.groups[index].option;
    struct as_resources requests;
    *option = (struct as_pool_option){
        .nodes = fit->pack.nodes,
        .pods = as_pack_get_placed(&fit->pack, &requests),
        .node_cpu = node->amount[AS_RES_CPU],
        .node_memory = node->amount[AS_RES_MEMORY],
        .has_gpu = has_accelerator(&work->snapshot->resources, node),
        .has_priority = group->has_priority,
        .priority = group->priority,
        .has_price = group->has_price,
        .price = group->price,
    };
    option->pods_cpu = requests.amount[AS_RES_CPU];
    option->pods_memory = requests.amount[AS_RES_MEMORY];
    work->plan.groups[index].has_option = option->nodes > 0 && option->pods > 0;
    fit->left[index] = fit->pack.left;
}

bool pool_fit_estimate(struct as_pool_work *work)
{
    struct pool_fit *fit = &work->fit;
    if (fit->at == work->snapshot->group_count)
        return true;
    if (!fit->is_packing && pool_fit_is_open(work, fit->at)) {
        begin_estimate(work, fit->at);
        fit->is_packing = true;
    } else if (!fit->is_packing) {
        fit->at++;
        pool_spend(work, 1);
    } else if (step_pack(work)) {
        end_estimate(work, fit->at++);
        fit->is_packing = false;
    }
    return false;
}

/* The choice */

static size_t pool_fit_choose_option(struct as_pool_work *work)
{
    const struct as_pool_config *config = work->request.config;
    const size_t count = work->snapshot->group_count;
    struct as_pool_option *options = as_arena_alloc(work->arena, count, sizeof(*options));
    const struct as_pool_choice choice = {
        .filters = config->choose,
        .filter_count = config->choose_count,
        .cpu_price = config->cpu_price,
        .memory_price = config->memory_price,
        .cluster_nodes = work->snapshot->cluster_nodes,
        .seed = work->snapshot->seed,
    };
    for (size_t i = 0; i < count; i++)
        options[i] = work->plan.groups[i].option;
    const size_t chosen = as_pool_choose(&choice, options, count);
    for (size_t i = 0; i < count; i++)
        work->plan.groups[i].option = options[i];
    return chosen;
}

/* The chosen group and those that share its nodes. */
struct sharers {
    struct as_pool_share *shares;
    uint32_t *groups;
    size_t count;
    struct as_resources largest; /* of their new nodes: cpu and memory */
};

static void add_sharer(const struct as_pool_work *work, struct sharers *sharers, size_t index)
{
    const struct as_snapshot_group *group = pool_fit_get_group(work, index);
    sharers->groups[sharers->count] = (uint32_t)index;
    sharers->shares[sharers->count++] =
        (struct as_pool_share){.size = group->size, .max = group->max};
    for (size_t i = AS_RES_CPU; i <= AS_RES_MEMORY; i++)
        if (group->template_.capacity.amount[i] > sharers->largest.amount[i])
            sharers->largest.amount[i] = group->template_.capacity.amount[i];
}

/* Pods of pod classes that were not checked fully, and that got a place. */
static void note_asked(struct as_pool_work *work, size_t chosen, uint32_t group)
{
    const struct pool_fit *fit = &work->fit;
    for (size_t i = 0; i < fit->count; i++)
        if (fit->pending[i].pod_class->unchecked && may_ask(work, i, chosen) &&
            fit->left[chosen][i] < fit->pending[i].count)
            pool_asked_add(work, fit->pod_classes[i], group);
}

/* Returns how many nodes the pool gets. */
static uint64_t share_out(struct as_pool_work *work, size_t chosen)
{
    const size_t count = work->snapshot->group_count;
    struct sharers sharers = {
        .shares = as_arena_alloc(work->arena, count, sizeof(*sharers.shares)),
        .groups = as_arena_alloc(work->arena, count, sizeof(*sharers.groups)),
    };
    add_sharer(work, &sharers, chosen);
    for (size_t i = 0; i < count; i++)
        if (may_share(work, chosen, i))
            add_sharer(work, &sharers, i);
    const uint64_t nodes =
        as_pool_cap(&work->fit.caps, &sharers.largest, work->plan.groups[chosen].option.nodes);
    const uint64_t added = as_pool_balance(sharers.shares, sharers.count, nodes);
    for (size_t i = 0; i < sharers.count; i++) {
        if (sharers.shares[i].added == 0)
            continue;
        work->plan.groups[sharers.groups[i]].fit += sharers.shares[i].added;
        note_asked(work, chosen, sharers.groups[i]);
    }
    return added;
}

/* Why nothing grows, where pods wait. */

static bool could_take_any(const struct as_pool_work *work, size_t group)
{
    for (size_t i = 0; i < work->fit.count; i++)
        if (may_ask(work, i, group))
            return true;
    return false;
}

/* That of the first closed group that would take a pod; then of one without a template. */
static enum as_reason pool_fit_find_obstacle(const struct as_pool_work *work)
{
    enum as_reason unknown = AS_REASON_NO_GROUP;
    for (size_t i = 0; i < work->snapshot->group_count; i++) {
        const enum as_reason skipped = work->plan.groups[i].skipped;
        if (skipped == AS_REASON_SCALED)
            continue;
        if (pool_fit_is_known(pool_fit_get_group(work, i)) && could_take_any(work, i))
            return skipped;
        if (!pool_fit_is_known(pool_fit_get_group(work, i)) && unknown == AS_REASON_NO_GROUP)
            unknown = skipped;
    }
    return work->plan.is_cut ? AS_REASON_NO_CHANGE : unknown;
}

static bool is_homeless(const struct as_pool_work *work, size_t entry)
{
    for (size_t i = 0; i < work->snapshot->group_count; i++)
        if (pool_fit_get_group(work, i)->is_member &&
            (!pool_fit_is_known(pool_fit_get_group(work, i)) ||
             work->fit.misfits[get_pair(work, entry, i)] == AS_FITS))
            return false;
    return true;
}

static int pool_fit_compare_pods(const void *a, const void *b)
{
    const struct as_snapshot_pods *left = a, *right = b;
    return (left->pod_class > right->pod_class) - (left->pod_class < right->pod_class);
}

/* Returns how many pods wait. */
static uint64_t list_homeless(struct as_pool_work *work)
{
    struct as_pool_plan *plan = &work->plan;
    const struct pool_fit *fit = &work->fit;
    struct as_snapshot_pods *homeless = as_arena_alloc(work->arena, fit->count, sizeof(*homeless));
    uint64_t waiting = 0;
    for (size_t i = 0; i < fit->count; i++) {
        waiting += fit->pending[i].count;
        if (fit->pending[i].count == 0 || !is_homeless(work, i))
            continue;
        plan->homeless += fit->pending[i].count;
        homeless[plan->homeless_count++] =
            (struct as_snapshot_pods){fit->pod_classes[i], (uint32_t)fit->pending[i].count};
    }
    if (plan->homeless_count > 1)
        qsort(homeless, plan->homeless_count, sizeof(*homeless), pool_fit_compare_pods);
    plan->homeless_pods = homeless;
    return waiting;
}

bool pool_fit_choose(struct as_pool_work *work)
{
    struct as_pool_plan *plan = &work->plan;
    const uint64_t waiting = list_homeless(work);
    pool_spend(work, 1);
    plan->chosen = pool_fit_choose_option(work);
    const uint64_t added = plan->chosen == AS_POOL_NO_OPTION ? 0 : share_out(work, plan->chosen);
    plan->fit_size += (int32_t)added;
    if (added > 0)
        plan->fit_reason = AS_REASON_SCALED;
    else if (plan->chosen != AS_POOL_NO_OPTION)
        plan->fit_reason = AS_REASON_AT_MAX;
    else if (waiting > 0)
        plan->fit_reason = pool_fit_find_obstacle(work);
    return true;
}
