/*
 * A queue for a bounded number of places. It is fair by credential and by target.
 *
 * Work belongs to a flow: the target that it is for, and the narrowed credential that caused it.
 * Work that narrowed credentials did not cause alone has no credential.
 *
 * - Work without a credential may have all places.
 * - All narrowed credentials together have at most half of the places.
 * - If a place is free, the side with fewer places comes first, then the credential with fewer
 *   places. So credentials that wait have equal parts.
 * - The targets of a credential take turns. The work for one target keeps its order.
 */
#ifndef ALERTSCALER_BASE_FAIR_QUEUE_H
#define ALERTSCALER_BASE_FAIR_QUEUE_H

#include <stdbool.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <alertscaler/base/attr.h>

struct as_flow {
    const char *target;     /* its id; NULL: of no target */
    const char *credential; /* NULL: not caused by narrowed credentials alone */
};

struct as_flow as_flow_copy(const struct as_flow *flow) AS_MUST_USE;
void as_flow_deinit(struct as_flow *copy);

struct as_fair_item { /* embedded in the work; private */
    TAILQ_ENTRY(as_fair_item) in_flow;
    struct as_fair_flow *flow;
    bool has_place;
};

RB_HEAD(as_fair_sender_tree, as_fair_sender);
TAILQ_HEAD(as_fair_senders, as_fair_sender);

struct as_fair_queue { /* private */
    unsigned places, taken, taken_narrowed;
    struct as_fair_sender *unnarrowed;  /* NULL: has no work */
    struct as_fair_sender_tree by_name; /* narrowed credentials with work */
    struct as_fair_senders waiting;     /* of these, with work that waits; last served last */
};

/* At least two places, so that half of them is one. */
void as_fair_queue_init(struct as_fair_queue *queue, unsigned places);
bool as_fair_queue_is_empty(const struct as_fair_queue *queue); /* no work waits or has a place */

/* The work waits. Copies the flow. */
void as_fair_queue_add(struct as_fair_queue *queue, struct as_fair_item *item,
                       const struct as_flow *flow);
/* Gives a place to the next work. NULL: no work waits that may have a place now. */
struct as_fair_item *as_fair_queue_take(struct as_fair_queue *queue);
/* The work does not wait any more, or gives its place back. */
void as_fair_queue_remove(struct as_fair_queue *queue, struct as_fair_item *item);

#endif
