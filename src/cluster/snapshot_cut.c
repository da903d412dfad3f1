/*
 * The nodes that may leave, and what becomes part of a snapshot.
 *
 * Which nodes may leave, as far as each of them alone is concerned, and which of these are looked
 * at now, is described in docs/nodes.md. Then pod classes get their numbers: pending ones first as
 * they were placed, then those of the candidates, then guests. Nodes with most room follow. All of
 * it stays within the limits of the header, and within the bytes of a decision document.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/cluster/snapshot.h>

#include "node_class.h"
#include "snapshot_work.h"

/*
 * How many bytes a part of a snapshot takes in a decision document, at most: so that the document
 * stays below its limit whatever texts a cluster has.
 */

#define SNAPSHOT_PODS_BYTES     20 /* of a number of pods of a class */
#define SNAPSHOT_UNNEEDED_BYTES 90 /* what is remembered of a node, without its name */
#define SNAPSHOT_ASKED_BYTES    140

bool snapshot_must_move(const struct as_snapshot_work *work, const struct as_pod_fact *pod)
{
    const enum as_eviction_class class = pod->pod_class->eviction;
    const bool is_gone = pod->is_leaving && pod->gone_at.set &&
                         as_time_add(pod->gone_at.at.us, AS_POD_LATE_US) < work->request->now.us;

    return class != AS_EVICTION_DAEMON && class != AS_EVICTION_MIRROR && !is_gone;
}

const char *snapshot_find_zone(const struct as_node_fact *node,
                               const struct as_pod_class *pod_class)
{
    if (!(pod_class->unchecked & AS_UNCHECKED_VOLUMES))
        return NULL;
    const char *zone = as_labels_find(node->labels, "topology.kubernetes.io/zone");
    return zone ? zone : as_labels_find(node->labels, "failure-domain.beta.kubernetes.io/zone");
}

/* So long a node is looked at last, and it matters that its pods had no room. */
#define NO_ROOM_US (5 * AS_US_PER_MIN)

/* Pods */

/* A system pod with a budget is protected by its budget alone. */
static bool keeps(const struct snapshot_pod_class *pod_class, unsigned keep)
{
    switch (pod_class->pod_class.pod.eviction) {
    case AS_EVICTION_REFUSED: return true;
    case AS_EVICTION_SYSTEM:
        return (keep & AS_KEEP_SYSTEM_PODS) && pod_class->pod_class.budget_count == 0;
    case AS_EVICTION_LOCAL_STORAGE: return keep & AS_KEEP_LOCAL_STORAGE;
    case AS_EVICTION_UNREPLICATED: return keep & AS_KEEP_UNREPLICATED;
    case AS_EVICTION_ALLOWED:
    case AS_EVICTION_DAEMON:
    case AS_EVICTION_MIRROR: return false;
    }
    return true;
}

/* Whether it cannot be told where the pod could run. With a claim it may move within its zone. */
static bool is_bound_to(const struct as_node_fact *node, const struct as_pod_class *pod_class)
{
    return (pod_class->unchecked & ~(unsigned)AS_UNCHECKED_VOLUMES) ||
           ((pod_class->unchecked & AS_UNCHECKED_VOLUMES) && !snapshot_find_zone(node, pod_class));
}

/* The API evicts no pod that two budgets select. */
static bool has_disruption(const struct as_snapshot_work *work,
                           const struct snapshot_pod_class *pod_class)
{
    const size_t count = pod_class->pod_class.budget_count;

    return count == 0 ||
           (count == 1 && work->pod_classes.budgets[pod_class->pod_class.budgets[0]]->allowed > 0);
}

static void add_load(struct snapshot_node *node, uint32_t index,
                     struct snapshot_pod_class *pod_class)
{
    if (pod_class->stamp != index + 1) {
        pod_class->stamp = index + 1;
        pod_class->place = node->load_count;
        node->load[node->load_count++] = (struct snapshot_load){.pod_class = pod_class};
    }
    node->load[pod_class->place].count++;
}

/* AS_STAY_COUNT: all pods may be evicted. Then the node's load is set. */
static enum as_stay snapshot_check_pods(struct as_snapshot_work *work, uint32_t index,
                                        unsigned keep)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    struct snapshot_node *node = &work->nodes[index];
    enum as_stay stay = AS_STAY_COUNT;
    size_t count;
    const uint32_t *pods = as_node_pods_get(&work->pods, index, &count);

    node->load = as_arena_alloc(work->arena, count, sizeof(*node->load));
    snapshot_spend(work, count);
    for (size_t i = 0; i < count; i++) {
        const struct as_pod_fact *pod = &work->cluster->pods[pods[i]];

        if (!snapshot_must_move(work, pod))
            continue;
        struct snapshot_pod_class *pod_class = snapshot_pod_classes_take(
            &work->pod_classes, pod->pod_class, snapshot_find_zone(fact, pod->pod_class));
        if (keeps(pod_class, keep) ||
            (is_bound_to(fact, pod->pod_class) && !snapshot_is_expendable(work, pod->pod_class)))
            return AS_STAY_UNEVICTABLE;
        if (!has_disruption(work, pod_class))
            stay = AS_STAY_BUDGET;
        if (!snapshot_is_expendable(work, pod->pod_class))
            add_load(node, index, pod_class);
    }
    return stay;
}

/* Nodes */

/* Requests of pods placed on the node: pods that wait, are nominated, or must leave their node. */
static void find_placed(struct as_snapshot_work *work, uint32_t index,
                        struct as_resources *placed_out)
{
    const size_t names = work->cluster->resources.count;
    const struct snapshot_node *node = &work->nodes[index];
    size_t count;
    const uint32_t *pods = as_node_pods_get(&work->pods, index, &count);

    *placed_out = (struct as_resources){.amount = {0}};
    if (!node->is_receiver)
        return;
    snapshot_spend(work, count);
    *placed_out = work->cluster->nodes[index].allocatable;
    for (size_t i = 0; i < names; i++) {
        int64_t *placed = &placed_out->amount[i];

        for (size_t j = 0; j < count; j++) {
            const struct as_pod_class *pod_class = work->cluster->pods[pods[j]].pod_class;

            if (!snapshot_is_expendable(work, pod_class)) /* others take nothing of the room */
                *placed = as_amount_add(*placed, -pod_class->requests.amount[i], 1);
        }
        *placed = as_amount_add(*placed, -node->room.left.amount[i], 1);
    }
}

/* A node whose allocatable is not known counts as utilized. */
static bool is_utilized(const struct as_snapshot_work *work, uint32_t index,
                        const struct as_unneeded_config *config, const struct as_resources *placed,
                        double *percent_out)
{
    double percent = 0;
    const int status = as_node_get_utilization(work->cluster, &work->pods, index, config->ignore,
                                               work->request->config->expendable_below, placed,
                                               work->request->now, &percent, NULL);

    *percent_out = percent;
    return status != 0 || percent > config->below;
}

static enum as_stay cut_find_stay(struct as_snapshot_work *work, uint32_t index)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    struct snapshot_node *node = &work->nodes[index];

    if (fact->leaving)
        return AS_STAY_LEAVING;
    if (fact->keep)
        return AS_STAY_DISABLED;
    if (node->group == AS_SNAPSHOT_NO_GROUP)
        return AS_STAY_NO_GROUP;
    const struct as_unneeded_config *config = &work->request->members[node->group].unneeded;
    if (work->groups[node->group].stay != AS_STAY_COUNT)
        return work->groups[node->group].stay;
    if (node->is_starting)
        return AS_STAY_STARTING;
    struct as_resources placed;
    find_placed(work, index, &placed);
    if (is_utilized(work, index, config, &placed, &node->utilization))
        return AS_STAY_UTILIZED;
    const enum as_stay stay = snapshot_check_pods(work, index, config->keep);
    return stay == AS_STAY_COUNT && placed.amount[AS_RES_PODS] > 0 ? AS_STAY_RECEIVES : stay;
}

static int cut_compare_unneeded(const void *name, const void *unneeded)
{
    return strcmp(name, ((const struct as_unneeded *)unneeded)->node);
}

static void add_eligible(struct as_snapshot_work *work, uint32_t index)
{
    const struct as_snapshot_request *request = work->request;
    const struct snapshot_node *node = &work->nodes[index];
    struct snapshot_eligible eligible = {
        .node = index, .utilization = node->utilization, .name = node->shape.name};
    const struct as_unneeded *known =
        request->unneeded_count > 0
            ? bsearch(eligible.name, request->unneeded, request->unneeded_count,
                      sizeof(*request->unneeded), cut_compare_unneeded)
            : NULL;

    if (known) {
        eligible.since = known->since;
        eligible.is_last =
            known->no_room.set && request->now.us - known->no_room.at.us < NO_ROOM_US;
    }
    if (node->load_count == 0)
        work->empty[work->empty_count++] = eligible;
    else
        work->drained[work->drained_count++] = eligible;
}

/* A node under way counts as a drained one until its pods are gone. */
static void count_leaving(struct as_snapshot_work *work, uint32_t index)
{
    const struct snapshot_node *node = &work->nodes[index];
    size_t count;
    const uint32_t *pods = as_node_pods_get(&work->pods, index, &count);

    if (!(work->cluster->nodes[index].leaving & AS_NODE_LEAVING_OURS) ||
        node->group == AS_SNAPSHOT_NO_GROUP || !work->request->members[node->group].is_member)
        return;
    snapshot_spend(work, count);
    for (size_t i = 0; i < count; i++)
        if (snapshot_must_move(work, &work->cluster->pods[pods[i]]) &&
            !snapshot_is_expendable(work, work->cluster->pods[pods[i]].pod_class)) {
            work->snapshot.leaving_drained++;
            return;
        }
    work->snapshot.leaving_empty++;
}

/* The node is no candidate. */
static void snapshot_keep(struct as_snapshot_work *work, uint32_t node, enum as_stay stay)
{
    work->nodes[node].is_candidate = false;
    work->nodes[node].stay = stay;
    work->snapshot.kept[stay]++;
}

bool snapshot_find_eligible(struct as_snapshot_work *work)
{
    const size_t count = work->cluster->node_count;

    if (!work->empty) {
        work->empty = as_arena_alloc(work->arena, count, sizeof(*work->empty));
        work->drained = as_arena_alloc(work->arena, count, sizeof(*work->drained));
    }
    for (; work->slice > 0 && work->at < count; work->at++) {
        const enum as_stay stay = cut_find_stay(work, (uint32_t)work->at);

        snapshot_spend(work, 4 + work->pod_classes.cost);
        work->pod_classes.cost = 0;
        if (stay == AS_STAY_COUNT)
            add_eligible(work, (uint32_t)work->at);
        else
            snapshot_keep(work, (uint32_t)work->at, stay);
        if (stay == AS_STAY_LEAVING)
            count_leaving(work, (uint32_t)work->at);
    }
    return work->at == count;
}

/* Unneeded the longest first, then the least utilized, then by name. */
static int compare_eligible(const void *a, const void *b)
{
    const struct snapshot_eligible *left = a, *right = b;

    if (left->is_last != right->is_last)
        return left->is_last ? 1 : -1;
    if (left->since.set != right->since.set)
        return left->since.set ? -1 : 1;
    if (left->since.set && left->since.at.us != right->since.at.us)
        return left->since.at.us < right->since.at.us ? -1 : 1;
    if (left->utilization != right->utilization)
        return left->utilization < right->utilization ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* The first ones; all others stay. */
static void cut_choose(struct as_snapshot_work *work, struct snapshot_eligible *eligible,
                       size_t *count, size_t most, enum as_stay stay)
{
    if (*count > 1)
        qsort(eligible, *count, sizeof(*eligible), compare_eligible);
    while (*count > most)
        snapshot_keep(work, eligible[--*count].node, stay);
}

/* If some waiting pods were not tried, the room that is left is not known: no node leaves. */
bool snapshot_choose_candidates(struct as_snapshot_work *work)
{
    snapshot_spend(work, 16 * (work->empty_count + work->drained_count));
    if (work->pack.is_cut) {
        cut_choose(work, work->empty, &work->empty_count, 0, AS_STAY_NO_ROOM);
        cut_choose(work, work->drained, &work->drained_count, 0, AS_STAY_NO_ROOM);
    }
    cut_choose(work, work->empty, &work->empty_count, AS_SNAPSHOT_NODES_MAX, AS_STAY_AT_ONCE);
    cut_choose(work, work->drained, &work->drained_count, AS_SNAPSHOT_DRAINED_MAX, AS_STAY_AT_ONCE);
    return true;
}

/*
 * Bytes of a snapshot in a decision document. Each part counts the names of its
 * fields, and the most that its numbers may take.
 */

#define AMOUNT_BYTES      21
#define POD_CLASS_BYTES   284
#define REQUIREMENT_BYTES 64
#define TOLERATION_BYTES  104
#define PORT_BYTES        48
#define BUDGET_BYTES      11
#define TAINT_BYTES       64
#define NODE_BYTES        216
#define GROUP_BYTES       940
#define ESCAPED_BYTES     6 /* \u0001 */

static size_t snapshot_measure_text(const char *text)
{
    size_t size = 3; /* quotes and a comma */

    for (; text && *text; text++)
        size += *text >= ' ' && *text != '"' && *text != '\\' ? 1 : ESCAPED_BYTES;
    return size;
}

/* NULL: 0 */
static size_t snapshot_measure_labels(const struct as_labels *labels)
{
    size_t size = 0;

    for (uint32_t i = 0; labels && i < labels->count; i++)
        size += snapshot_measure_text(labels->items[i].name) +
                snapshot_measure_text(labels->items[i].value);
    return size;
}

static size_t measure_taints(const struct as_taint *taints, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += TAINT_BYTES + snapshot_measure_text(taints[i].key) +
                snapshot_measure_text(taints[i].value);
    return size;
}

static size_t measure_term(const struct as_node_term *term)
{
    size_t size = 3;

    for (size_t i = 0; i < term->count; i++) {
        const struct as_node_requirement *requirement = &term->requirements[i];

        size += REQUIREMENT_BYTES + snapshot_measure_text(requirement->key);
        for (size_t k = 0; k < requirement->value_count; k++)
            size += snapshot_measure_text(requirement->values[k]);
    }
    return size;
}

static size_t measure_ports(const struct as_host_port *ports, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += PORT_BYTES + snapshot_measure_text(ports[i].ip) +
                snapshot_measure_text(ports[i].protocol);
    return size;
}

static size_t snapshot_measure_pod_class(const struct as_snapshot_pod_class *pod_class,
                                         const struct as_res_names *names)
{
    const struct as_pod_class *pod = &pod_class->pod;
    size_t size =
        POD_CLASS_BYTES + names->count * AMOUNT_BYTES + pod_class->budget_count * BUDGET_BYTES;

    size += snapshot_measure_labels(pod->selector) + snapshot_measure_text(pod->zone);
    for (size_t i = 0; i < pod->term_count; i++)
        size += measure_term(&pod->terms[i]);
    for (size_t i = 0; i < pod->toleration_count; i++)
        size += TOLERATION_BYTES + snapshot_measure_text(pod->tolerations[i].key) +
                snapshot_measure_text(pod->tolerations[i].value);
    return size + measure_ports(pod->ports, pod->port_count);
}

static size_t snapshot_measure_group(const struct as_snapshot_group *group,
                                     const struct as_res_names *names)
{
    const struct as_node_shape *shape = &group->template_.shape;

    return GROUP_BYTES + snapshot_measure_text(group->name) +
           snapshot_measure_text(group->message) + snapshot_measure_text(group->template_.node) +
           snapshot_measure_labels(shape->labels) +
           measure_taints(shape->taints, shape->taint_count) + 3 * names->count * AMOUNT_BYTES +
           measure_ports(group->template_.ports, group->template_.port_count);
}

/* Without its lists of pods. */
static size_t snapshot_measure_node(const struct as_node_shape *node,
                                    const struct as_res_names *names)
{
    return NODE_BYTES + snapshot_measure_text(node->name) + snapshot_measure_labels(node->labels) +
           measure_taints(node->taints, node->taint_count) + 3 * names->count * AMOUNT_BYTES;
}

/* Of the document: what the snapshot leaves for all other parts. */
#define OTHER_BYTES ((size_t)96 << 10)

#define HOSTNAME_LABEL "kubernetes.io/hostname"

/* Bytes and numbers */

static bool cut_take_bytes(struct as_snapshot_work *work, size_t bytes)
{
    if (bytes > work->bytes)
        return false;
    work->bytes -= bytes;
    return true;
}

static bool take_number(struct as_snapshot_work *work, struct snapshot_pod_class *pod_class)
{
    if (pod_class->number != SNAPSHOT_NO_NUMBER)
        return true;
    if (!pod_class->key || work->number_count == AS_SNAPSHOT_POD_CLASSES_MAX ||
        !cut_take_bytes(
            work, snapshot_measure_pod_class(&pod_class->pod_class, &work->cluster->resources)))
        return false;
    pod_class->number = work->number_count;
    work->numbered[work->number_count++] = pod_class;
    return true;
}

/* Pending pods */

static bool cut_is_asked_for(const struct as_snapshot_work *work,
                             const struct snapshot_pod_class *pod_class)
{
    const struct as_snapshot_request *request = work->request;

    for (size_t i = 0; i < request->asked_count; i++)
        if (request->asked[i].pod_class == pod_class->pod_class.digest)
            return true;
    return false;
}

static void number_pending(struct as_snapshot_work *work)
{
    struct as_snapshot_pods *pending =
        as_arena_alloc(work->arena, work->waiting_count, sizeof(*pending));

    for (size_t i = 0; i < work->waiting_count; i++) {
        struct snapshot_pod_class *pod_class = work->waiting[i];

        /* Whether pods still wait that a group was asked for is told of those with room too. */
        if (pod_class->left == 0 && pod_class->pod_class.pod.unchecked &&
            cut_is_asked_for(work, pod_class))
            (void)take_number(work, pod_class);
        if (pod_class->left == 0 || !cut_take_bytes(work, SNAPSHOT_PODS_BYTES) ||
            !take_number(work, pod_class))
            continue;
        pending[work->snapshot.pending_count++] = (struct as_snapshot_pods){
            .pod_class = pod_class->number,
            .count = pod_class->left < UINT32_MAX ? (uint32_t)pod_class->left : UINT32_MAX,
        };
    }
    work->snapshot.pending = pending;
}

/* Candidates */

static bool number_load(struct as_snapshot_work *work, const struct snapshot_node *node)
{
    for (size_t i = 0; i < node->load_count; i++)
        if (!take_number(work, node->load[i].pod_class))
            return false;
    return true;
}

static void number_loads(struct as_snapshot_work *work)
{
    for (size_t i = 0; i < work->drained_count; i++) {
        struct snapshot_node *node = &work->nodes[work->drained[i].node];

        node->is_candidate = number_load(work, node);
    }
    for (size_t i = 0; i < work->empty_count; i++)
        work->nodes[work->empty[i].node].is_candidate = true;
    work->moving_numbers = work->number_count;
}

/* Guests */

/* Whether some pod class that moves cannot share a node with the guest. */
static bool find_conflict(const struct as_snapshot_work *work,
                          const struct snapshot_pod_class *guest)
{
    const struct as_pod_class *pod = &guest->pod_class.pod;
    struct as_node_room room = {.guests = &pod, .guest_count = 1};
    enum as_misfit misfit;

    for (size_t i = 0; i < AS_RES_MAX; i++)
        room.left.amount[i] = AS_RES_AMOUNT_MAX;
    for (uint32_t i = 0; i < work->moving_numbers; i++) {
        const struct as_pod_class *other = &work->numbered[i]->pod_class.pod;

        if (other->port_count == 0 && other->loner == 0)
            continue;
        if (as_node_room_count(&room, &work->cluster->resources, other, 1, &misfit) == 0)
            return true;
    }
    return false;
}

static bool is_in_conflict(const struct as_snapshot_work *work, struct snapshot_pod_class *guest)
{
    if (!guest->is_compared) {
        guest->is_compared = true;
        guest->is_in_conflict = find_conflict(work, guest);
    }
    return guest->is_in_conflict;
}

static struct snapshot_pod_class *get_guest(const struct snapshot_node *node, size_t index)
{
    return (struct snapshot_pod_class *)
        node->room.guests[index]; /* its first member's first member */
}

/* Only guests that keep others away matter. A node with a guest that is cut off takes no pods. */
static bool number_guests(struct as_snapshot_work *work, const struct snapshot_node *node)
{
    for (size_t i = 0; i < node->room.guest_count; i++)
        if (is_in_conflict(work, get_guest(node, i)) && !take_number(work, get_guest(node, i)))
            return false;
    return true;
}

/* Labels and taints */

/* The keys that a pod class reads which may need a place. The hostname is no key of a class. */
static void cut_list_keys(struct as_snapshot_work *work)
{
    const uint32_t count = work->moving_numbers;
    struct as_pending *pending = as_arena_alloc(work->arena, count, sizeof(*pending));
    struct as_node_classes classes;
    bool reads_name = false;

    for (uint32_t i = 0; i < count; i++) {
        pending[i] =
            (struct as_pending){.pod_class = &work->numbered[i]->pod_class.pod, .count = 1};
        reads_name |= as_pod_class_reads_name(pending[i].pod_class);
    }
    as_node_classes_init(&classes, pending, count, 1, work->arena);
    work->keys = as_arena_alloc(work->arena, classes.key_count + 1, sizeof(*work->keys));
    for (size_t i = 0; i < classes.key_count; i++)
        work->keys[work->key_count++] = classes.keys[i];
    if (reads_name)
        work->keys[work->key_count++] = HOSTNAME_LABEL;
    snapshot_spend(work, 8 * (uint64_t)count);
}

/* Only labels that some pod class reads; NULL: none. */
static const struct as_labels *snapshot_cut_labels(struct as_snapshot_work *work,
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
    snapshot_spend(work, 1 + work->key_count);
    return cut;
}

/* A cordoned node takes no pods, whether or not the node controller has set the taint yet. */
static void cut_taints(struct as_snapshot_work *work, const struct as_node_fact *fact,
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

struct snapshot_roomy {
    uint32_t group, node;
    double room;
};

static double cut_get_share(const struct snapshot_node *node, enum as_res resource)
{
    const int64_t allocatable = node->shape.allocatable.amount[resource];

    return allocatable > 0 ? (double)node->room.left.amount[resource] / (double)allocatable : 0;
}

static int compare_roomy(const void *a, const void *b)
{
    const struct snapshot_roomy *left = a, *right = b;

    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    if (left->room != right->room)
        return left->room > right->room ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

/* By group, those with most room first: the sum of the shares of cpu and memory that are free.
 * Where there are so many groups that all of them would exceed the sum, each may show fewer. */
static void list_roomy(struct as_snapshot_work *work)
{
    size_t count = 0, groups = 0;
    struct snapshot_roomy *roomy =
        as_arena_alloc(work->arena, work->receiver_count, sizeof(*roomy));

    for (size_t i = 0; i < work->receiver_count; i++) {
        const uint32_t index = work->receivers[i];
        const struct snapshot_node *node = &work->nodes[index];

        if (!node->is_candidate)
            roomy[count++] = (struct snapshot_roomy){
                .group = node->group,
                .node = index,
                .room = cut_get_share(node, AS_RES_CPU) + cut_get_share(node, AS_RES_MEMORY),
            };
    }
    if (count > 1)
        qsort(roomy, count, sizeof(*roomy), compare_roomy);
    for (size_t i = 0; i < count; i++)
        groups += i == 0 || roomy[i].group != roomy[i - 1].group;
    work->roomy = roomy;
    work->roomy_count = count;
    work->roomy_share = AS_SNAPSHOT_ROOMY_MAX;
    if (groups > AS_SNAPSHOT_NODES_MAX / AS_SNAPSHOT_ROOMY_MAX)
        work->roomy_share = groups < AS_SNAPSHOT_NODES_MAX ? AS_SNAPSHOT_NODES_MAX / groups : 1;
    snapshot_spend(work, 16 * count);
}

static void cut_measure_rest(struct as_snapshot_work *work)
{
    const struct as_snapshot_request *request = work->request;

    work->bytes = AS_SNAPSHOT_BYTES_MAX - OTHER_BYTES;
    for (size_t i = 0; i < request->member_count; i++)
        (void)cut_take_bytes(
            work, snapshot_measure_group(&work->shown_groups[i], &work->cluster->resources));
    for (size_t i = 0; i < request->asked_count; i++)
        (void)cut_take_bytes(work,
                             SNAPSHOT_ASKED_BYTES + snapshot_measure_text(request->asked[i].group));
}

bool snapshot_cut(struct as_snapshot_work *work)
{
    work->numbered =
        as_arena_alloc(work->arena, AS_SNAPSHOT_POD_CLASSES_MAX, sizeof(*work->numbered));
    work->is_shown = as_arena_alloc(work->arena, work->cluster->node_count, sizeof(bool));
    cut_measure_rest(work);
    number_pending(work);
    number_loads(work);
    cut_list_keys(work);
    list_roomy(work);
    snapshot_spend(work, 4 * work->pod_classes.count);
    return true;
}

/* False: the node cannot be part of the snapshot. */
static bool show_node(struct as_snapshot_work *work, uint32_t index)
{
    struct snapshot_node *node = &work->nodes[index];
    struct as_node_shape shape = node->shape;
    const size_t lists = node->load_count + node->room.guest_count;

    snapshot_spend(work, 4 + lists);
    shape.labels = snapshot_cut_labels(work, node->is_receiver ? shape.labels : NULL);
    cut_taints(work, &work->cluster->nodes[index], &shape);
    if ((node->is_receiver && !number_guests(work, node)) ||
        !cut_take_bytes(work, snapshot_measure_node(&shape, &work->cluster->resources) +
                                  lists * SNAPSHOT_PODS_BYTES +
                                  (node->is_candidate
                                       ? SNAPSHOT_UNNEEDED_BYTES + snapshot_measure_text(shape.name)
                                       : 0)))
        return false;
    node->shape = shape;
    work->is_shown[index] = true;
    work->shown_count++;
    return true;
}

bool snapshot_show_candidates(struct as_snapshot_work *work)
{
    const size_t count = work->drained_count + work->empty_count;

    for (; work->slice > 0 && work->at < count; work->at++) {
        const uint32_t index = work->at < work->drained_count
                                   ? work->drained[work->at].node
                                   : work->empty[work->at - work->drained_count].node;

        if (!work->nodes[index].is_candidate || !show_node(work, index))
            snapshot_keep(work, index, AS_STAY_NO_ROOM);
    }
    return work->at == count;
}

/* Where no candidate has pods, nobody asks for room. */
bool snapshot_show_roomy(struct as_snapshot_work *work)
{
    const struct snapshot_roomy *roomy = work->roomy;
    const size_t count = work->drained_count > 0 ? work->roomy_count : 0;

    for (; work->slice > 0 && work->at < count; work->at++) {
        snapshot_spend(work, 1);
        if (work->at == 0 || roomy[work->at].group != roomy[work->at - 1].group)
            work->roomy_of_group = 0;
        if (work->roomy_shown == AS_SNAPSHOT_NODES_MAX ||
            work->roomy_of_group == work->roomy_share || !show_node(work, roomy[work->at].node))
            continue;
        work->roomy_of_group++;
        work->roomy_shown++;
    }
    return work->at >= count;
}

/* Nodes */

static void list_pods(struct as_snapshot_work *work, const struct snapshot_node *node,
                      struct as_snapshot_node *out)
{
    struct as_snapshot_pods *pods = as_arena_alloc(work->arena, node->load_count, sizeof(*pods));

    for (size_t i = 0; i < node->load_count; i++)
        pods[i] = (struct as_snapshot_pods){node->load[i].pod_class->number, node->load[i].count};
    out->pods = pods;
    out->pod_count = node->load_count;
}

static void list_guests(struct as_snapshot_work *work, const struct snapshot_node *node,
                        struct as_snapshot_node *out)
{
    struct as_snapshot_pods *guests =
        as_arena_alloc(work->arena, node->room.guest_count, sizeof(*guests));

    for (size_t i = 0; i < node->room.guest_count; i++) {
        const struct snapshot_pod_class *guest =
            (const struct snapshot_pod_class *)node->room.guests[i];

        if (guest->is_in_conflict)
            guests[out->guest_count++] = (struct as_snapshot_pods){guest->number, 1};
    }
    out->guests = guests;
}

static void list_node(struct as_snapshot_work *work, uint32_t index, struct as_snapshot_node *out)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    const struct snapshot_node *node = &work->nodes[index];

    *out = (struct as_snapshot_node){
        .group = node->group,
        .node = node->shape,
        .is_ready = node->is_ready,
        .is_candidate = node->is_candidate,
        .stay = node->is_candidate ? AS_STAY_LEAVING : node->stay,
    };
    out->node.allocatable = (struct as_resources){{0}};
    if (node->is_receiver) {
        out->left = node->room.left;
        out->expendable = node->room.expendable;
        list_guests(work, node, out);
    }
    if (node->is_candidate) {
        out->node.allocatable = fact->allocatable;
        out->utilization = node->utilization;
        list_pods(work, node, out);
    }
    snapshot_spend(work, 4 + node->load_count + node->room.guest_count);
}

bool snapshot_list_nodes(struct as_snapshot_work *work)
{
    const size_t count = work->cluster->node_count;

    if (!work->shown_nodes) {
        work->shown_nodes =
            as_arena_alloc(work->arena, work->shown_count, sizeof(*work->shown_nodes));
        work->snapshot.nodes = work->shown_nodes;
    }
    for (; work->slice > 0 && work->at < count; work->at++)
        if (work->is_shown[work->at])
            list_node(work, (uint32_t)work->at, &work->shown_nodes[work->snapshot.node_count++]);
    return work->at == count;
}

/* Pod classes and budgets */

static const char *name_budget(struct as_snapshot_work *work, const struct as_budget_fact *budget)
{
    const size_t size = strlen(budget->namespace_) + strlen(budget->name) + 2;
    char *name = as_arena_alloc_raw(work->arena, size);

    snprintf(name, size, "%s/%s", budget->namespace_, budget->name);
    return name;
}

/* numbers_out: by index of the sorted budgets. */
static void show_budgets(struct as_snapshot_work *work, uint32_t *numbers_out)
{
    const size_t count = work->cluster->budget_count;
    bool *is_used = as_arena_alloc(work->arena, count, sizeof(*is_used));
    struct as_snapshot_budget *budgets = as_arena_alloc(work->arena, count, sizeof(*budgets));

    for (uint32_t i = 0; i < work->number_count; i++) {
        const struct as_snapshot_pod_class *pod_class = &work->numbered[i]->pod_class;

        for (size_t k = 0; k < pod_class->budget_count; k++)
            is_used[pod_class->budgets[k]] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_used[i])
            continue;
        numbers_out[i] = (uint32_t)work->snapshot.budget_count;
        budgets[work->snapshot.budget_count++] = (struct as_snapshot_budget){
            .name = name_budget(work, work->pod_classes.budgets[i]),
            .allowed = work->pod_classes.budgets[i]->allowed,
        };
    }
    work->snapshot.budgets = budgets;
}

static void show_pod_classes(struct as_snapshot_work *work)
{
    uint32_t *numbers = as_arena_alloc(work->arena, work->cluster->budget_count, sizeof(*numbers));
    struct as_snapshot_pod_class *pod_classes =
        as_arena_alloc(work->arena, work->number_count, sizeof(*pod_classes));

    show_budgets(work, numbers);
    for (uint32_t i = 0; i < work->number_count; i++) {
        pod_classes[i] = work->numbered[i]->pod_class;
        uint32_t *budgets =
            as_arena_alloc(work->arena, pod_classes[i].budget_count, sizeof(*budgets));

        for (size_t k = 0; k < pod_classes[i].budget_count; k++)
            budgets[k] = numbers[pod_classes[i].budgets[k]];
        pod_classes[i].budgets = budgets;
        pod_classes[i].waiting = work->numbered[i]->waiting;
    }
    work->snapshot.pod_classes = pod_classes;
    work->snapshot.pod_class_count = work->number_count;
}

/* Groups */

/* `balance` compares all labels that differ between kinds of groups. */
static const struct as_labels *cut_group_labels(struct as_snapshot_work *work,
                                                const struct as_labels *labels)
{
    const struct as_pool_config *config = work->request->config;
    const struct as_labels *read = snapshot_cut_labels(work, labels), *cut = NULL;

    if (!config->balance || !labels)
        return read;
    struct as_label *pairs = as_arena_alloc(work->arena, labels->count, sizeof(*pairs));
    size_t count = 0;
    for (uint32_t i = 0; i < labels->count; i++)
        if (as_labels_find(read, labels->items[i].name) ||
            as_pool_label_counts(labels->items[i].name, (const char *const *)config->ignore_labels,
                                 config->ignore_label_count))
            pairs[count++] = labels->items[i];
    if (as_labels_new_in(work->arena, pairs, count, &cut) != 0)
        abort(); /* a subset of labels has no name twice, and is no larger */
    return cut;
}

/* History */

static bool is_candidate(const struct as_snapshot_work *work, const char *name)
{
    size_t from = 0, to = work->snapshot.node_count;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const int order = strcmp(work->shown_nodes[middle].node.name, name);

        if (order == 0)
            return work->shown_nodes[middle].is_candidate;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

static void show_unneeded(struct as_snapshot_work *work)
{
    const struct as_snapshot_request *request = work->request;
    struct as_unneeded *unneeded =
        as_arena_alloc(work->arena, request->unneeded_count, sizeof(*unneeded));

    for (size_t i = 0; i < request->unneeded_count; i++) {
        struct as_unneeded known = request->unneeded[i];
        const bool is_late =
            known.no_room.set && request->now.us - known.no_room.at.us >= NO_ROOM_US;

        if (is_late)
            known.no_room.set = false;
        if (!is_candidate(work, known.node)) {
            known.since.set = false;
            const size_t bytes = SNAPSHOT_UNNEEDED_BYTES + snapshot_measure_text(known.node);
            if (!known.no_room.set || bytes > work->bytes)
                continue;
            work->bytes -= bytes;
        }
        if (known.since.set || known.no_room.set)
            unneeded[work->snapshot.unneeded_count++] = known;
    }
    work->snapshot.unneeded = unneeded;
}

bool snapshot_show_rest(struct as_snapshot_work *work)
{
    const struct as_snapshot_request *request = work->request;

    show_pod_classes(work);
    for (size_t i = 0; i < request->member_count; i++) {
        struct as_node_shape *shape = &work->shown_groups[i].template_.shape;

        work->templates[i] = work->shown_groups[i].template_;
        if (work->shown_groups[i].template_.source != AS_NODE_TEMPLATE_NONE)
            shape->labels = cut_group_labels(work, shape->labels);
    }
    show_unneeded(work);
    work->snapshot.asked = request->asked;
    work->snapshot.asked_count =
        request->asked_count < AS_ASKED_MAX ? request->asked_count : AS_ASKED_MAX;
    return true;
}
