/*
 * What becomes part of a survey: shapes get their numbers, pending ones first as they were placed,
 * then those of the candidates, then guests. Nodes with most room follow. All of it stays within
 * the limits of the header, and within the bytes of a decision document.
 */
#include <stdlib.h>
#include <string.h>

#include "node_class.h"
#include "survey_measure.h"
#include "survey_work.h"

/* Of the document: what the survey leaves for all other parts. */
#define OTHER_BYTES ((size_t)96 << 10)

#define HOSTNAME_LABEL "kubernetes.io/hostname"

/* Bytes and numbers */

static bool take_bytes(struct as_survey_work *work, size_t bytes)
{
    if (bytes > work->bytes)
        return false;
    work->bytes -= bytes;
    return true;
}

static bool take_number(struct as_survey_work *work, struct survey_shape *shape)
{
    if (shape->number != SURVEY_NO_NUMBER)
        return true;
    if (!shape->key || work->number_count == AS_SURVEY_SHAPES_MAX ||
        !take_bytes(work, survey_measure_shape(&shape->shape, &work->cluster->resources)))
        return false;
    shape->number = work->number_count;
    work->numbered[work->number_count++] = shape;
    return true;
}

/* Pending pods */

static bool is_asked_for(const struct as_survey_work *work, const struct survey_shape *shape)
{
    const struct as_survey_request *request = work->request;

    for (size_t i = 0; i < request->asked_count; i++)
        if (request->asked[i].shape == shape->shape.digest)
            return true;
    return false;
}

static void number_pending(struct as_survey_work *work)
{
    struct as_survey_pods *pending =
        as_arena_alloc(work->arena, work->waiting_count, sizeof(*pending));

    for (size_t i = 0; i < work->waiting_count; i++) {
        struct survey_shape *shape = work->waiting[i];

        /* Whether pods still wait that a group was asked for is told of those with room too. */
        if (shape->left == 0 && shape->shape.pod.unchecked && is_asked_for(work, shape))
            (void)take_number(work, shape);
        if (shape->left == 0 || !take_bytes(work, SURVEY_PODS_BYTES) || !take_number(work, shape))
            continue;
        pending[work->survey.pending_count++] = (struct as_survey_pods){
            .shape = shape->number,
            .count = shape->left < UINT32_MAX ? (uint32_t)shape->left : UINT32_MAX,
        };
    }
    work->survey.pending = pending;
}

/* Candidates */

static bool number_load(struct as_survey_work *work, const struct survey_node *node)
{
    for (size_t i = 0; i < node->load_count; i++)
        if (!take_number(work, node->load[i].shape))
            return false;
    return true;
}

static void number_loads(struct as_survey_work *work)
{
    for (size_t i = 0; i < work->drained_count; i++) {
        struct survey_node *node = &work->nodes[work->drained[i].node];

        node->is_candidate = number_load(work, node);
    }
    for (size_t i = 0; i < work->empty_count; i++)
        work->nodes[work->empty[i].node].is_candidate = true;
    work->moving_numbers = work->number_count;
}

/* Guests */

/* Whether some shape that moves cannot share a node with the guest. */
static bool find_conflict(const struct as_survey_work *work, const struct survey_shape *guest)
{
    const struct as_pod_shape *pod = &guest->shape.pod;
    struct as_node_room room = {.guests = &pod, .guest_count = 1};
    enum as_misfit misfit;

    for (size_t i = 0; i < AS_RES_MAX; i++)
        room.left.amount[i] = AS_RES_AMOUNT_MAX;
    for (uint32_t i = 0; i < work->moving_numbers; i++) {
        const struct as_pod_shape *other = &work->numbered[i]->shape.pod;

        if (other->port_count == 0 && other->loner == 0)
            continue;
        if (as_node_room_count(&room, &work->cluster->resources, other, 1, &misfit) == 0)
            return true;
    }
    return false;
}

static bool is_in_conflict(const struct as_survey_work *work, struct survey_shape *guest)
{
    if (!guest->is_compared) {
        guest->is_compared = true;
        guest->is_in_conflict = find_conflict(work, guest);
    }
    return guest->is_in_conflict;
}

static struct survey_shape *get_guest(const struct survey_node *node, size_t index)
{
    return (struct survey_shape *)node->room.guests[index]; /* its first member's first member */
}

/* Only guests that keep others away matter. A node with a guest that is cut off takes no pods. */
static bool number_guests(struct as_survey_work *work, const struct survey_node *node)
{
    for (size_t i = 0; i < node->room.guest_count; i++)
        if (is_in_conflict(work, get_guest(node, i)) && !take_number(work, get_guest(node, i)))
            return false;
    return true;
}

/* Labels and taints */

/* The keys that a shape reads which may need a place. The hostname is no key of a class. */
static void list_keys(struct as_survey_work *work)
{
    const uint32_t count = work->moving_numbers;
    struct as_pending *pending = as_arena_alloc(work->arena, count, sizeof(*pending));
    struct as_node_classes classes;
    bool reads_name = false;

    for (uint32_t i = 0; i < count; i++) {
        pending[i] = (struct as_pending){.shape = &work->numbered[i]->shape.pod, .count = 1};
        reads_name |= as_pod_shape_reads_name(pending[i].shape);
    }
    as_node_classes_init(&classes, pending, count, 1, work->arena);
    work->keys = as_arena_alloc(work->arena, classes.key_count + 1, sizeof(*work->keys));
    for (size_t i = 0; i < classes.key_count; i++)
        work->keys[work->key_count++] = classes.keys[i];
    if (reads_name)
        work->keys[work->key_count++] = HOSTNAME_LABEL;
    survey_spend(work, 8 * (uint64_t)count);
}

const struct as_labels *survey_cut_labels(struct as_survey_work *work,
                                          const struct as_labels *labels)
{
    struct as_label *pairs = as_arena_alloc(work->arena, work->key_count, sizeof(*pairs));
    const struct as_labels *cut = NULL;
    size_t count = 0;

    for (size_t i = 0; i < work->key_count; i++) {
        const char *value = labels ? as_labels_find(labels, work->keys[i]) : NULL;

        if (value)
            pairs[count++] = (struct as_label){work->keys[i], value};
    }
    if (as_labels_new_in(work->arena, pairs, count, &cut) != 0)
        abort(); /* a subset of labels has no name twice, and is no larger */
    survey_spend(work, 1 + work->key_count);
    return cut;
}

/* A cordoned node takes no pods, whether or not the node controller has set the taint yet. */
static void cut_taints(struct as_survey_work *work, const struct as_node_fact *fact,
                       struct as_node_shape *shape)
{
    struct as_taint *taints = as_arena_alloc(work->arena, fact->taint_count + 1, sizeof(*taints));

    shape->taint_count = 0;
    for (size_t i = 0; i < fact->taint_count; i++)
        if (fact->taints[i].effect != AS_TAINT_PREFER_NO_SCHEDULE)
            taints[shape->taint_count++] = fact->taints[i];
    if (fact->is_cordoned)
        taints[shape->taint_count++] = (struct as_taint){
            .key = "node.kubernetes.io/unschedulable", .value = "", .effect = AS_TAINT_NO_SCHEDULE};
    shape->taints = taints;
}

/* Nodes */

struct survey_roomy {
    uint32_t group, node;
    double room;
};

static double get_share(const struct survey_node *node, enum as_res resource)
{
    const int64_t allocatable = node->shape.allocatable.amount[resource];

    return allocatable > 0 ? (double)node->room.left.amount[resource] / (double)allocatable : 0;
}

static int compare_roomy(const void *a, const void *b)
{
    const struct survey_roomy *left = a, *right = b;

    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    if (left->room != right->room)
        return left->room > right->room ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

/* By group, those with most room first: the sum of the shares of cpu and memory that are free.
 * Where there are so many groups that all of them would exceed the sum, each may show fewer. */
static void list_roomy(struct as_survey_work *work)
{
    size_t count = 0, groups = 0;
    struct survey_roomy *roomy = as_arena_alloc(work->arena, work->receiver_count, sizeof(*roomy));

    for (size_t i = 0; i < work->receiver_count; i++) {
        const uint32_t index = work->receivers[i];
        const struct survey_node *node = &work->nodes[index];

        if (!node->is_candidate)
            roomy[count++] = (struct survey_roomy){
                .group = node->group,
                .node = index,
                .room = get_share(node, AS_RES_CPU) + get_share(node, AS_RES_MEMORY),
            };
    }
    if (count > 1)
        qsort(roomy, count, sizeof(*roomy), compare_roomy);
    for (size_t i = 0; i < count; i++)
        groups += i == 0 || roomy[i].group != roomy[i - 1].group;
    work->roomy = roomy;
    work->roomy_count = count;
    work->roomy_share = AS_SURVEY_ROOMY_MAX;
    if (groups > AS_SURVEY_NODES_MAX / AS_SURVEY_ROOMY_MAX)
        work->roomy_share = groups < AS_SURVEY_NODES_MAX ? AS_SURVEY_NODES_MAX / groups : 1;
    survey_spend(work, 16 * count);
}

static void measure_rest(struct as_survey_work *work)
{
    const struct as_survey_request *request = work->request;

    work->bytes = AS_SURVEY_BYTES_MAX - OTHER_BYTES;
    for (size_t i = 0; i < request->member_count; i++)
        (void)take_bytes(work,
                         survey_measure_group(&work->shown_groups[i], &work->cluster->resources));
    for (size_t i = 0; i < request->asked_count; i++)
        (void)take_bytes(work, SURVEY_ASKED_BYTES + survey_measure_text(request->asked[i].group));
}

bool survey_cut(struct as_survey_work *work)
{
    work->numbered = as_arena_alloc(work->arena, AS_SURVEY_SHAPES_MAX, sizeof(*work->numbered));
    work->is_shown = as_arena_alloc(work->arena, work->cluster->node_count, sizeof(bool));
    measure_rest(work);
    number_pending(work);
    number_loads(work);
    list_keys(work);
    list_roomy(work);
    survey_spend(work, 4 * work->shapes.count);
    return true;
}

/* False: the node cannot be part of the survey. */
static bool show_node(struct as_survey_work *work, uint32_t index)
{
    struct survey_node *node = &work->nodes[index];
    struct as_node_shape shape = node->shape;
    const size_t lists = node->load_count + node->room.guest_count;

    survey_spend(work, 4 + lists);
    shape.labels = survey_cut_labels(work, node->is_receiver ? shape.labels : NULL);
    cut_taints(work, &work->cluster->nodes[index], &shape);
    if ((node->is_receiver && !number_guests(work, node)) ||
        !take_bytes(
            work,
            survey_measure_node(&shape, &work->cluster->resources) + lists * SURVEY_PODS_BYTES +
                (node->is_candidate ? SURVEY_UNNEEDED_BYTES + survey_measure_text(shape.name) : 0)))
        return false;
    node->shape = shape;
    work->is_shown[index] = true;
    work->shown_count++;
    return true;
}

bool survey_show_candidates(struct as_survey_work *work)
{
    const size_t count = work->drained_count + work->empty_count;

    for (; work->slice > 0 && work->at < count; work->at++) {
        const uint32_t index = work->at < work->drained_count
                                   ? work->drained[work->at].node
                                   : work->empty[work->at - work->drained_count].node;

        if (!work->nodes[index].is_candidate || !show_node(work, index))
            survey_keep(work, index, AS_STAY_NO_ROOM);
    }
    return work->at == count;
}

/* Where no candidate has pods, nobody asks for room. */
bool survey_show_roomy(struct as_survey_work *work)
{
    const struct survey_roomy *roomy = work->roomy;
    const size_t count = work->drained_count > 0 ? work->roomy_count : 0;

    for (; work->slice > 0 && work->at < count; work->at++) {
        survey_spend(work, 1);
        if (work->at == 0 || roomy[work->at].group != roomy[work->at - 1].group)
            work->roomy_of_group = 0;
        if (work->roomy_shown == AS_SURVEY_NODES_MAX || work->roomy_of_group == work->roomy_share ||
            !show_node(work, roomy[work->at].node))
            continue;
        work->roomy_of_group++;
        work->roomy_shown++;
    }
    return work->at >= count;
}
