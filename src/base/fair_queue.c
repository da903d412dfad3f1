/*
 * Senders (credentials) and their flows (targets) exist while they have work. A sender that has
 * waiting work is in the queue's list; a flow that has waiting work is in its sender's list. Both
 * go to the end of their list when one of their items gets a place.
 */
#include <alertscaler/base/fair_queue.h>

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

struct as_fair_flow {
    RB_ENTRY(as_fair_flow) by_target;
    TAILQ_ENTRY(as_fair_flow) in_turn; /* while items wait */
    struct as_fair_sender *sender;
    TAILQ_HEAD(, as_fair_item) waiting;
    unsigned items; /* that wait or have a place */
    char target[];
};
RB_HEAD(as_fair_flow_tree, as_fair_flow);

struct as_fair_sender {
    RB_ENTRY(as_fair_sender) by_name;
    TAILQ_ENTRY(as_fair_sender) in_turn; /* while flows wait */
    struct as_fair_flow_tree flows;
    TAILQ_HEAD(, as_fair_flow) waiting;
    unsigned taken; /* places */
    bool is_narrowed;
    char name[];
};

static int compare_flows(const struct as_fair_flow *a, const struct as_fair_flow *b)
{
    return strcmp(a->target, b->target);
}

static int compare_senders(const struct as_fair_sender *a, const struct as_fair_sender *b)
{
    return strcmp(a->name, b->name);
}

RB_GENERATE_INTERNAL(as_fair_flow_tree, as_fair_flow, by_target, compare_flows,
                     __attribute__((unused)) static)
RB_GENERATE_INTERNAL(as_fair_sender_tree, as_fair_sender, by_name, compare_senders,
                     __attribute__((unused)) static)

static char *copy_text(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

struct as_flow as_flow_copy(const struct as_flow *flow)
{
    return (struct as_flow){copy_text(flow->target), copy_text(flow->credential)};
}

void as_flow_deinit(struct as_flow *copy)
{
    free((char *)(uintptr_t)copy->target);
    free((char *)(uintptr_t)copy->credential);
    *copy = (struct as_flow){0};
}

void as_fair_queue_init(struct as_fair_queue *queue, unsigned places)
{
    assert(places >= 2);
    *queue = (struct as_fair_queue){.places = places};
    RB_INIT(&queue->by_name);
    TAILQ_INIT(&queue->waiting);
}

bool as_fair_queue_is_empty(const struct as_fair_queue *queue)
{
    return !queue->unnarrowed && RB_EMPTY(&queue->by_name);
}

static struct as_fair_sender *new_sender(const char *name)
{
    const size_t size = name ? strlen(name) : 0;
    struct as_fair_sender *sender = as_xcalloc(1, sizeof(*sender) + size + 1);
    if (name)
        memcpy(sender->name, name, size);
    sender->is_narrowed = name != NULL;
    RB_INIT(&sender->flows);
    TAILQ_INIT(&sender->waiting);
    return sender;
}

static struct as_fair_sender *get_sender(struct as_fair_queue *queue, const char *name)
{
    if (!name) {
        if (!queue->unnarrowed)
            queue->unnarrowed = new_sender(NULL);
        return queue->unnarrowed;
    }
    struct as_fair_sender *sender = new_sender(name);
    struct as_fair_sender *known = RB_INSERT(as_fair_sender_tree, &queue->by_name, sender);
    if (!known)
        return sender;
    free(sender);
    return known;
}

static struct as_fair_flow *get_flow(struct as_fair_sender *sender, const char *target)
{
    const size_t size = target ? strlen(target) : 0;
    struct as_fair_flow *flow = as_xcalloc(1, sizeof(*flow) + size + 1);
    if (target)
        memcpy(flow->target, target, size);
    struct as_fair_flow *known = RB_INSERT(as_fair_flow_tree, &sender->flows, flow);
    if (known) {
        free(flow);
        return known;
    }
    flow->sender = sender;
    TAILQ_INIT(&flow->waiting);
    return flow;
}

void as_fair_queue_add(struct as_fair_queue *queue, struct as_fair_item *item,
                       const struct as_flow *flow)
{
    struct as_fair_sender *sender = get_sender(queue, flow->credential);
    item->flow = get_flow(sender, flow->target);
    item->has_place = false;
    if (sender->is_narrowed && TAILQ_EMPTY(&sender->waiting))
        TAILQ_INSERT_TAIL(&queue->waiting, sender, in_turn);
    if (TAILQ_EMPTY(&item->flow->waiting))
        TAILQ_INSERT_TAIL(&sender->waiting, item->flow, in_turn);
    TAILQ_INSERT_TAIL(&item->flow->waiting, item, in_flow);
    item->flow->items++;
}

/* The item leaves the lists of what waits; so do its flow and its sender if it is their last. */
static void end_wait(struct as_fair_queue *queue, struct as_fair_item *item)
{
    struct as_fair_flow *flow = item->flow;
    struct as_fair_sender *sender = flow->sender;
    TAILQ_REMOVE(&flow->waiting, item, in_flow);
    if (!TAILQ_EMPTY(&flow->waiting))
        return;
    TAILQ_REMOVE(&sender->waiting, flow, in_turn);
    if (TAILQ_EMPTY(&sender->waiting) && sender->is_narrowed)
        TAILQ_REMOVE(&queue->waiting, sender, in_turn);
}

/* The first of those with the fewest places. NULL: none may have one more. */
static struct as_fair_sender *find_narrowed(const struct as_fair_queue *queue)
{
    struct as_fair_sender *sender, *found = NULL;
    if (queue->taken_narrowed >= queue->places / 2)
        return NULL;
    TAILQ_FOREACH (sender, &queue->waiting, in_turn) {
        if (!found || sender->taken < found->taken)
            found = sender;
    }
    return found;
}

static struct as_fair_sender *find_sender(const struct as_fair_queue *queue)
{
    struct as_fair_sender *unnarrowed = queue->unnarrowed;
    if (queue->taken >= queue->places)
        return NULL;
    if (unnarrowed && TAILQ_EMPTY(&unnarrowed->waiting))
        unnarrowed = NULL;
    if (unnarrowed && unnarrowed->taken <= queue->taken_narrowed)
        return unnarrowed;
    struct as_fair_sender *narrowed = find_narrowed(queue);
    return narrowed ? narrowed : unnarrowed;
}

struct as_fair_item *as_fair_queue_take(struct as_fair_queue *queue)
{
    struct as_fair_sender *sender = find_sender(queue);
    if (!sender)
        return NULL;
    struct as_fair_flow *flow = TAILQ_FIRST(&sender->waiting);
    struct as_fair_item *item = TAILQ_FIRST(&flow->waiting);
    TAILQ_REMOVE(&sender->waiting, flow, in_turn);
    TAILQ_INSERT_TAIL(&sender->waiting, flow, in_turn);
    if (sender->is_narrowed) {
        TAILQ_REMOVE(&queue->waiting, sender, in_turn);
        TAILQ_INSERT_TAIL(&queue->waiting, sender, in_turn);
        queue->taken_narrowed++;
    }
    end_wait(queue, item);
    item->has_place = true;
    sender->taken++;
    queue->taken++;
    return item;
}

void as_fair_queue_remove(struct as_fair_queue *queue, struct as_fair_item *item)
{
    struct as_fair_flow *flow = item->flow;
    struct as_fair_sender *sender = flow->sender;
    if (item->has_place) {
        queue->taken--;
        queue->taken_narrowed -= sender->is_narrowed;
        sender->taken--;
    } else {
        end_wait(queue, item);
    }
    item->flow = NULL;
    if (--flow->items > 0)
        return;
    RB_REMOVE(as_fair_flow_tree, &sender->flows, flow);
    free(flow);
    if (!RB_EMPTY(&sender->flows))
        return;
    if (sender->is_narrowed)
        RB_REMOVE(as_fair_sender_tree, &queue->by_name, sender);
    else
        queue->unnarrowed = NULL;
    free(sender);
}
