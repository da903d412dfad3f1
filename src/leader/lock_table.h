/*
 * Which Leases show the locks of targets, as they should be and as they are, and what has to be
 * written where the two differ. Pure: it does no I/O and reads no clock.
 *
 * Level-triggered: lock_table_show says what is locked now, as often as anybody likes; what was
 * missed in between was not to be seen any more. What is there is known from a list and from the
 * answers to writes; where an answer was lost, the object is read again.
 *
 * An entry is idle, queued, or under way. It is queued exactly when it is not under way and
 * something has to be asked about it.
 */
#ifndef ALERTSCALER_SRC_LEADER_LOCK_TABLE_H
#define ALERTSCALER_SRC_LEADER_LOCK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/queue.h>

#include <bsd/sys/tree.h>

#include <alertscaler/wire/lock_lease.h>

struct lock_entry;
TAILQ_HEAD(lock_queue, lock_entry);
RB_HEAD(lock_tree, lock_entry);

struct lock_table {
    char *holder; /* of all Leases that we write */
    struct lock_tree entries;
    struct lock_queue queue; /* the oldest difference first */
    size_t queued, under_way;
    uint64_t shown, listed; /* the number of the last of both */
};

enum lock_order { LOCK_CREATE, LOCK_UPDATE, LOCK_DELETE, LOCK_GET };

struct lock_write { /* borrowed until the table changes */
    enum lock_order order;
    struct lock_entry *entry;   /* for the answer */
    struct as_lock_lease lease; /* create, update: all of it; else name and version */
};

void lock_table_init(struct lock_table *table, const char *holder);
void lock_table_deinit(struct lock_table *table);

/* Everything that is locked now. Of two targets whose names are the same the first is shown. */
void lock_table_show(struct lock_table *table, const struct as_lock *locks, size_t count);

/* A list of what is there: nothing may be under way from begin to end. One that was not ended is
 * begun anew. */
void lock_table_list_begin(struct lock_table *table);
void lock_table_list_see(struct lock_table *table, const struct as_lock_lease *lease);
void lock_table_list_end(struct lock_table *table);

/* The next thing to be asked, which is under way then until it is answered. False: nothing. */
bool lock_table_take(struct lock_table *table, struct lock_write *write_out) AS_MUST_USE;

/* Exactly one of these for each that was taken. Found: it is there like this, by the answer to
 * create, update or get. Gone: it is not there. Failed: nobody knows. */
void lock_table_on_found(struct lock_table *table, struct lock_entry *entry,
                         const struct as_lock_lease *lease);
void lock_table_on_gone(struct lock_table *table, struct lock_entry *entry);
void lock_table_on_failed(struct lock_table *table, struct lock_entry *entry);

/* Leases that are not known to be as they should be. */
size_t lock_table_count_behind(const struct lock_table *table);

#endif
