/*
 * Which Leases show the locks of targets, as they should be and as they are, and which requests are
 * needed where they differ. Pure: it does no I/O and reads no clock.
 *
 * Level-triggered: lock_table_show gives the present locks, as often as wanted; a lock that came
 * and went between two calls is never shown. The present Leases are known from a list and from the
 * answers to writes. If an answer was lost, the object is read again.
 *
 * An entry is idle, queued, or under way. It is queued exactly when it is not under way and needs a
 * request.
 */
#ifndef ALERTSCALER_SRC_KUBE_LOCK_TABLE_H
#define ALERTSCALER_SRC_KUBE_LOCK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <bsd/sys/tree.h>

#include <alertscaler/kube/lock_lease.h>

struct lock_entry;
TAILQ_HEAD(lock_queue, lock_entry);
RB_HEAD(lock_tree, lock_entry);

struct lock_table {
    char *holder; /* for all Leases that we write */
    struct lock_tree entries;
    struct lock_queue queue; /* the oldest difference first */
    size_t queued, under_way;
    uint64_t shown, listed; /* the number of the last of each */
};

enum lock_order { LOCK_CREATE, LOCK_UPDATE, LOCK_DELETE, LOCK_GET };

struct lock_write { /* borrowed until the table changes */
    enum lock_order order;
    struct lock_entry *entry;   /* to be passed with the answer */
    struct as_lock_lease lease; /* create, update: the whole Lease; else name and version */
};

void lock_table_init(struct lock_table *table, const char *holder);
void lock_table_deinit(struct lock_table *table);

/* All present locks. Of two targets with the same name, the first is shown. */
void lock_table_show(struct lock_table *table, const struct as_lock *locks, size_t count);

/* A list of the present Leases: no request may be under way from begin to end. A list that was not
 * ended is started again. */
void lock_table_list_begin(struct lock_table *table);
void lock_table_list_see(struct lock_table *table, const struct as_lock_lease *lease);
void lock_table_list_end(struct lock_table *table);

/* The next request, which is under way until it is answered. False: none needed. */
bool lock_table_take(struct lock_table *table, struct lock_write *write_out) AS_MUST_USE;

/* Call exactly one of these for each request taken. Found: the Lease is like this, by the answer to
 * create, update or get. Gone: it does not exist. Failed: the result is unknown. */
void lock_table_on_found(struct lock_table *table, struct lock_entry *entry,
                         const struct as_lock_lease *lease);
void lock_table_on_gone(struct lock_table *table, struct lock_entry *entry);
void lock_table_on_failed(struct lock_table *table, struct lock_entry *entry);

/* Leases that are not known to be correct. */
size_t lock_table_count_behind(const struct lock_table *table);

#endif
