/*
 * Placing pods. The nodes' order is that of `bins`: one small row for each run, so that a run
 * without room is passed over without a look at the run itself.
 *
 * Pod classes are worked on one after the other, each against all bins in their order. A pod class
 * that ends within a run splits it: nodes that are full of the pod class, one node with the rest,
 * untouched nodes.
 */
#include <alertscaler/cluster/node_pack.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node_class.h"

/*
 * Classes of nodes: see node_class.h. A table with open addressing finds the class of a node.
 */

#define HOSTNAME_LABEL "kubernetes.io/hostname"

static const char *const zone_labels[] = {
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
};

static bool is_hostname(const char *key)
{
    return strcmp(key, HOSTNAME_LABEL) == 0;
}

/* Calls `hear` with each requirement of the pod class's node affinity. */
typedef void hear_requirement_fn(const struct as_node_requirement *requirement, void *context);

static void each_requirement(const struct as_pod_class *pod_class, hear_requirement_fn *hear,
                             void *context)
{
    for (size_t i = 0; i < pod_class->term_count; i++)
        for (size_t k = 0; k < pod_class->terms[i].count; k++)
            hear(&pod_class->terms[i].requirements[k], context);
}

static void note_name(const struct as_node_requirement *requirement, void *context)
{
    bool *reads_name = context;
    *reads_name |= requirement->is_field || is_hostname(requirement->key);
}

bool as_pod_class_reads_name(const struct as_pod_class *pod_class)
{
    bool reads_name = false;
    for (size_t i = 0; pod_class->selector && i < pod_class->selector->count; i++)
        reads_name |= is_hostname(pod_class->selector->items[i].name);
    each_requirement(pod_class, note_name, &reads_name);
    return reads_name;
}

/* Keys */

struct key_list {
    const char **keys; /* NULL: they are only counted */
    size_t count;
};

static void add_key(struct key_list *list, const char *key)
{
    if (is_hostname(key))
        return;
    if (list->keys)
        list->keys[list->count] = key;
    list->count++;
}

static void pack_add_requirement(const struct as_node_requirement *requirement, void *context)
{
    if (!requirement->is_field)
        add_key(context, requirement->key);
}

static void pack_list_keys(struct key_list *list, const struct as_pending *pending, size_t count)
{
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct as_pod_class *pod_class = pending[i].pod_class;
        for (size_t k = 0; pod_class->selector && k < pod_class->selector->count; k++)
            add_key(list, pod_class->selector->items[k].name);
        each_requirement(pod_class, pack_add_requirement, list);
        for (size_t k = 0; pod_class->zone && k < AS_ARRAY_SIZE(zone_labels); k++)
            add_key(list, zone_labels[k]);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void as_node_classes_init(struct as_node_classes *classes, const struct as_pending *pending,
                          size_t count, size_t node_max, struct as_arena *arena)
{
    struct key_list list = {.keys = NULL};

    *classes = (struct as_node_classes){.arena = arena, .slot_count = 2};
    pack_list_keys(&list, pending, count);
    list.keys = as_arena_alloc(arena, list.count, sizeof(*list.keys));
    pack_list_keys(&list, pending, count);
    qsort(list.keys, list.count, sizeof(*list.keys), compare_texts);
    classes->keys = list.keys;
    for (size_t i = 0; i < list.count; i++)
        if (i == 0 || strcmp(list.keys[i], classes->keys[classes->key_count - 1]) != 0)
            classes->keys[classes->key_count++] = list.keys[i];

    while (classes->slot_count < 2 * node_max)
        classes->slot_count *= 2;
    classes->items = as_arena_alloc(arena, node_max, sizeof(*classes->items));
    classes->slots = as_arena_alloc(arena, classes->slot_count, sizeof(*classes->slots));
    classes->scratch = as_arena_alloc(arena, classes->key_count, sizeof(*classes->scratch));
}

/* Nodes */

/* FNV-1a 64 over the text and its NUL. NULL has a digest of its own. */
static uint64_t pack_digest(uint64_t state, const char *text)
{
    const uint64_t prime = UINT64_C(0x100000001b3);
    if (!text)
        return (state ^ 0xff) * prime;
    do
        state = (state ^ (unsigned char)*text) * prime;
    while (*text++);
    return state;
}

static uint64_t digest_node(const struct as_node_shape *node, const char *const *values,
                            size_t count)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        state = pack_digest(state, values[i]);
    for (size_t i = 0; i < node->taint_count; i++) {
        state = pack_digest(state, node->taints[i].key);
        state = pack_digest(state, node->taints[i].value);
        state ^= (uint64_t)node->taints[i].effect;
    }
    return state;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Equal taints in another order make another class: labels and taints are then read once more. */
static bool has_same_taints(const struct as_node_shape *a, const struct as_node_shape *b)
{
    if (a->taint_count != b->taint_count)
        return false;
    for (size_t i = 0; i < a->taint_count; i++)
        if (a->taints[i].effect != b->taints[i].effect ||
            strcmp(a->taints[i].key, b->taints[i].key) != 0 ||
            strcmp(a->taints[i].value, b->taints[i].value) != 0)
            return false;
    return true;
}

static bool is_of_class(const struct as_node_classes *classes, const struct as_node_class *class,
                        const struct as_node_shape *node, uint64_t node_digest)
{
    if (class->digest != node_digest || !has_same_taints(class->node, node))
        return false;
    for (size_t i = 0; i < classes->key_count; i++)
        if (!is_same_text(class->values[i], classes->scratch[i]))
            return false;
    return true;
}

static uint32_t add_class(struct as_node_classes *classes, const struct as_node_shape *node,
                          uint64_t node_digest)
{
    const size_t size = classes->key_count * sizeof(*classes->scratch);
    const char **values = as_arena_alloc_raw(classes->arena, size);
    if (size > 0)
        memcpy(values, classes->scratch, size);
    classes->items[classes->count] =
        (struct as_node_class){.digest = node_digest, .node = node, .values = values};
    return classes->count++;
}

uint32_t as_node_classes_take(struct as_node_classes *classes, const struct as_node_shape *node)
{
    for (size_t i = 0; i < classes->key_count; i++)
        classes->scratch[i] = as_labels_find(node->labels, classes->keys[i]);
    const uint64_t node_digest = digest_node(node, classes->scratch, classes->key_count);
    const size_t mask = classes->slot_count - 1;
    size_t slot = (size_t)(node_digest ^ node_digest >> 32) & mask;
    for (; classes->slots[slot] > 0; slot = (slot + 1) & mask)
        if (is_of_class(classes, &classes->items[classes->slots[slot] - 1], node, node_digest))
            return classes->slots[slot] - 1;
    const uint32_t added = add_class(classes, node, node_digest);
    classes->slots[slot] = added + 1;
    return added;
}

/* After so many pod classes, bins that no remaining pod class fits are dropped. */
#define SWEEP_EVERY 16

/* Amounts that are compared at once; all others by as_node_room_count. */
struct as_pack_amounts {
    int64_t cpu, memory, pods;
};

struct as_pack_bin {
    struct as_pack_amounts left;
    uint32_t run;
    uint32_t class;
};

enum as_pack_verdict { VERDICT_UNKNOWN, VERDICT_ADMITTED, VERDICT_REFUSED };

struct as_pack_work {
    const struct as_res_names *names;
    const struct as_pending *pending;
    struct as_arena *arena;
    uint64_t budget; /* fits left of the request's */
    uint64_t slice;  /* fits left of the step's */

    uint32_t *order; /* of pod classes: indices into `pending`, only those with pods */
    size_t order_count;
    struct as_pack_amounts *least; /* of this pod class and those behind it in the order */

    struct as_pack_bin *bins;
    size_t bin_count;
    size_t run_max;
    struct as_node_classes classes;
    size_t classed; /* bins that have their class */

    const struct as_node_shape *template_; /* of new nodes; NULL: none may come */
    struct as_node_room empty;
    uint64_t limit; /* new nodes that may still come */

    /* The current pod class */
    size_t at;     /* in the order */
    size_t bin_at; /* the next bin */
    bool is_begun;
    bool reads_name;
    uint64_t texts; /* that as_node_admits compares, about */
    struct as_pack_amounts needs;
    uint8_t *verdicts; /* of enum as_pack_verdict, for each class */
};

static void pack_spend(struct as_pack_work *work, uint64_t fits)
{
    work->budget -= fits < work->budget ? fits : work->budget;
    work->slice -= fits < work->slice ? fits : work->slice;
}

/* Pod classes */

/* A request of 0 fits even on an overcommitted node. */
static int64_t get_need(const struct as_pod_class *pod_class, enum as_res resource)
{
    const int64_t amount = pod_class->requests.amount[resource];
    return amount > 0 ? amount : INT64_MIN;
}

static struct as_pack_amounts get_needs(const struct as_pod_class *pod_class)
{
    return (struct as_pack_amounts){.cpu = get_need(pod_class, AS_RES_CPU),
                                    .memory = get_need(pod_class, AS_RES_MEMORY),
                                    .pods = get_need(pod_class, AS_RES_PODS)};
}

static bool pack_has_enough(const struct as_pack_amounts *left, const struct as_pack_amounts *needs)
{
    return left->cpu >= needs->cpu && left->memory >= needs->memory && left->pods >= needs->pods;
}

struct ranked {
    double score;
    uint32_t index;
};

static double pack_get_share(const struct as_node_shape *node, const struct as_pod_class *pod_class,
                             enum as_res resource)
{
    const int64_t allocatable = node->allocatable.amount[resource];
    return allocatable > 0 ? (double)pod_class->requests.amount[resource] / (double)allocatable : 0;
}

static int pack_compare_ranked(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->score != right->score)
        return left->score > right->score ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

static void order_pod_classes(struct as_pack_work *work, const struct as_pack_request *request)
{
    const size_t count = request->pending_count;
    struct ranked *ranked = as_arena_alloc(work->arena, count, sizeof(*ranked));
    for (size_t i = 0; i < count; i++) {
        const struct as_pod_class *pod_class = request->pending[i].pod_class;
        if (request->pending[i].count == 0)
            continue;
        struct ranked *item = &ranked[work->order_count++];
        item->index = (uint32_t)i;
        if (work->template_)
            item->score = pack_get_share(work->template_, pod_class, AS_RES_CPU) +
                          pack_get_share(work->template_, pod_class, AS_RES_MEMORY);
    }
    if (work->template_)
        qsort(ranked, work->order_count, sizeof(*ranked), pack_compare_ranked);
    work->order = as_arena_alloc(work->arena, work->order_count, sizeof(*work->order));
    for (size_t i = 0; i < work->order_count; i++)
        work->order[i] = ranked[i].index;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void find_least(struct as_pack_work *work)
{
    struct as_pack_amounts least = {INT64_MAX, INT64_MAX, INT64_MAX};
    work->least = as_arena_alloc(work->arena, work->order_count, sizeof(*work->least));
    for (size_t i = work->order_count; i-- > 0;) {
        const struct as_pack_amounts needs = get_needs(work->pending[work->order[i]].pod_class);
        least.cpu = min(least.cpu, needs.cpu);
        least.memory = min(least.memory, needs.memory);
        least.pods = min(least.pods, needs.pods);
        work->least[i] = least;
    }
}

/* Runs and bins */

static void set_left(struct as_pack_bin *bin, const struct as_node_room *room)
{
    const int64_t *left = room->left.amount;
    bin->left = (struct as_pack_amounts){left[AS_RES_CPU], left[AS_RES_MEMORY], left[AS_RES_PODS]};
}

/* A room of its own; guests are shared until one is added. */
static struct as_node_room share_room(const struct as_node_room *room)
{
    struct as_node_room copy = *room;
    copy.guest_capacity = copy.guest_count;
    return copy;
}

/* Inserts a copy of the run, with its bin, at the place `at` of the order. */
static struct as_node_run *insert_run(struct as_pack *pack, size_t at,
                                      const struct as_node_run *run, uint32_t class)
{
    struct as_pack_work *work = pack->work;
    struct as_pack_bin *bin = &work->bins[at];
    struct as_node_run *added = &pack->runs[pack->run_count];
    assert(pack->run_count < work->run_max);
    memmove(bin + 1, bin, (work->bin_count - at) * sizeof(*bin));
    work->bin_count++;
    *added = *run;
    added->room = share_room(&run->room);
    *bin = (struct as_pack_bin){.run = (uint32_t)pack->run_count++, .class = class};
    set_left(bin, &added->room);
    return added;
}

/* The bin keeps the first `count` nodes of its run; a new bin behind it gets the others. */
static void split_run(struct as_pack *pack, size_t at, uint64_t count)
{
    const struct as_pack_bin *bin = &pack->work->bins[at];
    struct as_node_run *run = &pack->runs[bin->run];
    if (run->count == count)
        return;
    struct as_node_run *rest = insert_run(pack, at + 1, run, bin->class);
    rest->count = run->count - count;
    run->count = count;
}

/* Places `count` pods of the current pod class on each node of a bin's run. */
static void pack_take(struct as_pack *pack, size_t at, uint64_t count)
{
    struct as_pack_work *work = pack->work;
    const uint32_t index = work->order[work->at];
    struct as_node_run *run = &pack->runs[work->bins[at].run];
    as_node_room_take(&run->room, work->names, work->pending[index].pod_class, count, work->arena);
    run->received += count;
    set_left(&work->bins[at], &run->room);
    pack->left[index] -= count * run->count;
}

/* Places pods of the current pod class on a bin: `each` on every node, until the pods run out. The
 * last of these nodes may get fewer. `each` is above 0, and at most the number of pods. */
static void pack_fill(struct as_pack *pack, size_t at, uint64_t each)
{
    const struct as_pack_work *work = pack->work;
    const uint64_t pods = pack->left[work->order[work->at]];
    const uint64_t nodes = pack->runs[work->bins[at].run].count, full = pods / each;
    if (full < nodes) {
        split_run(pack, at, full);
        if (pods % each > 0) {
            split_run(pack, at + 1, 1);
            pack_take(pack, at + 1, pods % each);
        }
    }
    pack_take(pack, at, each);
}

/* Drops bins that no remaining pod class fits. */
static void sweep(struct as_pack_work *work)
{
    const struct as_pack_amounts *least = &work->least[work->at];
    size_t kept = 0;
    for (size_t i = 0; i < work->bin_count; i++)
        if (pack_has_enough(&work->bins[i].left, least))
            work->bins[kept++] = work->bins[i];
    work->bin_count = kept;
}

/* The current pod class */

static uint64_t pack_count_texts(const struct as_pod_class *pod_class)
{
    uint64_t texts =
        pod_class->toleration_count + (pod_class->selector ? pod_class->selector->count : 0);
    for (size_t i = 0; i < pod_class->term_count; i++)
        for (size_t k = 0; k < pod_class->terms[i].count; k++)
            texts += 1 + pod_class->terms[i].requirements[k].value_count;
    return texts;
}

static bool pack_is_admitted(struct as_pack_work *work, const struct as_node_shape *node,
                             uint8_t *verdict, const struct as_pod_class *pod_class)
{
    if (*verdict == VERDICT_UNKNOWN || work->reads_name) {
        pack_spend(work, work->texts + node->taint_count);
        *verdict = as_node_admits(node, pod_class) == AS_FITS ? VERDICT_ADMITTED : VERDICT_REFUSED;
    }
    return *verdict == VERDICT_ADMITTED;
}

static uint64_t count_room(struct as_pack_work *work, const struct as_node_room *room,
                           const struct as_pod_class *pod_class, uint64_t wanted)
{
    pack_spend(work, room->guest_count * (1 + pod_class->port_count));
    return as_node_room_count(room, work->names, pod_class, wanted, NULL);
}

static size_t find_bin(const struct as_pack_bin *bins, size_t at, size_t end,
                       struct as_pack_amounts needs)
{
    while (at < end && !pack_has_enough(&bins[at].left, &needs))
        at++;
    return at;
}

static void begin_pod_class(struct as_pack_work *work, const struct as_pod_class *pod_class)
{
    pack_spend(work, 1);
    work->is_begun = true;
    work->bin_at = 0;
    work->needs = get_needs(pod_class);
    work->texts = pack_count_texts(pod_class);
    work->reads_name = as_pod_class_reads_name(pod_class);
    memset(work->verdicts, VERDICT_UNKNOWN, work->classes.count);
    if (work->at % SWEEP_EVERY == SWEEP_EVERY - 1)
        sweep(work);
}

/* Looks for room on the bins from `bin_at` on, as long as the slice lasts. */
static void place_on_bins(struct as_pack *pack, const struct as_pod_class *pod_class,
                          uint64_t *left)
{
    struct as_pack_work *work = pack->work;
    while (work->slice > 0 && *left > 0 && work->bin_at < work->bin_count) {
        const size_t more = work->bin_count - work->bin_at;
        const size_t end = work->bin_at + (work->slice < more ? (size_t)work->slice : more);
        const size_t found = find_bin(work->bins, work->bin_at, end, work->needs);
        pack_spend(work, found - work->bin_at + (found < end));
        work->bin_at = found;
        if (found == end)
            continue;
        const struct as_pack_bin *bin = &work->bins[found];
        const struct as_node_run *run = &pack->runs[bin->run];
        if (pack_is_admitted(work, run->node, &work->verdicts[bin->class], pod_class)) {
            uint64_t each = count_room(work, &run->room, pod_class, *left);
            if (each > 0)
                pack_fill(pack, found, each);
        }
        work->bin_at++;
    }
}

/* The remaining pods go to new nodes: one more run, which is filled like the others. */
static void place_on_new(struct as_pack *pack, const struct as_pod_class *pod_class,
                         const uint64_t *left)
{
    struct as_pack_work *work = pack->work;
    pack_spend(work, 1);
    if (!pack_is_admitted(work, work->template_, &work->verdicts[0], pod_class))
        return;
    const uint64_t each = count_room(work, &work->empty, pod_class, *left);
    if (each == 0)
        return;
    const uint64_t wanted = *left / each + (*left % each > 0);
    const uint64_t nodes = wanted < work->limit ? wanted : work->limit;
    pack->is_at_limit |= wanted > nodes;
    if (nodes == 0)
        return;
    const size_t at = work->bin_count;
    insert_run(pack, at,
               &(struct as_node_run){.node = work->template_, .room = work->empty, .count = nodes},
               0);
    pack_fill(pack, at, each);
    pack->nodes += nodes;
    work->limit -= nodes;
}

static void work_on_pod_class(struct as_pack *pack)
{
    struct as_pack_work *work = pack->work;
    const uint32_t index = work->order[work->at];
    const struct as_pod_class *pod_class = work->pending[index].pod_class;
    uint64_t *left = &pack->left[index];
    if (!work->is_begun)
        begin_pod_class(work, pod_class);
    place_on_bins(pack, pod_class, left);
    if (*left > 0 && (work->bin_at < work->bin_count || work->slice == 0))
        return; /* in the next step */
    if (*left > 0 && work->template_)
        place_on_new(pack, pod_class, left);
    work->is_begun = false;
    work->at++;
}

/* The work */

static void init(struct as_pack *pack, const struct as_pack_request *request, size_t run_max,
                 const struct as_pack_work *first, struct as_arena *arena)
{
    struct as_pack_work *work = as_arena_alloc(arena, 1, sizeof(*work));
    *pack = (struct as_pack){.work = work};
    *work = *first;
    work->names = request->names;
    work->pending = request->pending;
    work->arena = arena;
    work->budget = request->fits;
    pack->left = as_arena_alloc(arena, request->pending_count, sizeof(*pack->left));
    for (size_t i = 0; i < request->pending_count; i++)
        pack->left[i] = request->pending[i].count;
    order_pod_classes(work, request);
    find_least(work);
    work->run_max = run_max;
    pack->runs = as_arena_alloc(arena, run_max, sizeof(*pack->runs));
    work->bins = as_arena_alloc(arena, run_max, sizeof(*work->bins));
}

/* A pod class adds at most two runs: it either splits the run in which it ends, or ends on new
 * nodes.
 */
static size_t count_splits(const struct as_pack_request *request, uint64_t nodes)
{
    const uint64_t most = 2 * (uint64_t)request->pending_count;
    return (size_t)(nodes < most ? nodes : most);
}

void as_pack_init_on_nodes(struct as_pack *pack, const struct as_pack_request *request,
                           const struct as_node_run *runs, size_t run_count, struct as_arena *arena)
{
    uint64_t others = 0; /* nodes that are not the first of their run */
    for (size_t i = 0; i < run_count; i++) {
        assert(runs[i].count > 0);
        if (__builtin_add_overflow(others, runs[i].count - 1, &others))
            others = UINT64_MAX;
    }
    init(pack, request, run_count + count_splits(request, others),
         &(struct as_pack_work){.template_ = NULL}, arena);
    struct as_pack_work *work = pack->work;
    for (size_t i = 0; i < run_count; i++)
        insert_run(pack, i, &runs[i], 0);
    as_node_classes_init(&work->classes, request->pending, request->pending_count, run_count,
                         arena);
    work->verdicts = as_arena_alloc(arena, run_count, sizeof(*work->verdicts));
}

void as_pack_init_on_new(struct as_pack *pack, const struct as_pack_request *request,
                         const struct as_node_shape *node, const struct as_node_room *empty,
                         uint64_t limit, struct as_arena *arena)
{
    init(pack, request, count_splits(request, limit),
         &(struct as_pack_work){
             .template_ = node,
             .empty = empty ? share_room(empty) : (struct as_node_room){.left = node->allocatable},
             .limit = limit,
         },
         arena);
    pack->work->classes.count = 1; /* all new nodes are alike */
    pack->work->verdicts = as_arena_alloc(arena, 1, sizeof(*pack->work->verdicts));
}

static void class_bins(struct as_pack *pack)
{
    struct as_pack_work *work = pack->work;
    for (; work->classed < work->bin_count && work->slice > 0; work->classed++) {
        struct as_pack_bin *bin = &work->bins[work->classed];
        const struct as_node_shape *node = pack->runs[bin->run].node;
        bin->class = as_node_classes_take(&work->classes, node);
        pack_spend(work, 1 + work->classes.key_count + node->taint_count);
    }
}

bool as_pack_step(struct as_pack *pack, uint64_t fits)
{
    struct as_pack_work *work = pack->work;
    const uint64_t before = work->budget;
    work->slice = fits < before ? fits : before;
    if (work->at == 0 && !work->is_begun)
        class_bins(pack);
    while (work->slice > 0 && work->at < work->order_count)
        work_on_pod_class(pack);
    pack->fits += before - work->budget;
    pack->is_cut = work->at < work->order_count && work->budget == 0;
    return work->at == work->order_count || pack->is_cut;
}

uint64_t as_pack_get_placed(const struct as_pack *pack, struct as_resources *requests_out)
{
    const struct as_pack_work *work = pack->work;
    uint64_t placed = 0;
    *requests_out = (struct as_resources){.amount = {0}};
    for (size_t i = 0; i < work->order_count; i++) {
        const struct as_pending *pending = &work->pending[work->order[i]];
        const uint64_t count = pending->count - pack->left[work->order[i]];
        placed += count;
        for (size_t k = 0; k < work->names->count; k++)
            requests_out->amount[k] = as_amount_add(requests_out->amount[k],
                                                    pending->pod_class->requests.amount[k], count);
    }
    return placed;
}
