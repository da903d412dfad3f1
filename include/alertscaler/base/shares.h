/*
 * What narrowed credentials hold of something that is limited (a queue, memory): each of them, and
 * all together. What is not theirs has the share NULL.
 */
#ifndef ALERTSCALER_BASE_SHARES_H
#define ALERTSCALER_BASE_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>

struct as_share { /* of one credential, while it holds something */
    TAILQ_ENTRY(as_share) link;
    uint64_t held;
    uint64_t served; /* for its owner: when it had its last turn; 0 at first */
    char name[];
};

struct as_shares {
    TAILQ_HEAD(, as_share) list;
    size_t count;
    uint64_t held; /* by all */
};

void as_shares_init(struct as_shares *shares);
void as_shares_deinit(struct as_shares *shares); /* also if something is held */

/* The credential holds more. Its share, which the caller gives back; NULL without a name. */
struct as_share *as_shares_take(struct as_shares *shares, const char *name,
                                uint64_t amount) AS_MUST_USE;
/* It holds less: frees a share that holds nothing. The share may be NULL. */
void as_shares_give(struct as_shares *shares, struct as_share *share, uint64_t amount);

uint64_t as_shares_get(const struct as_shares *shares, const char *name);
/* That holds most; NULL: none holds anything. */
struct as_share *as_shares_find_largest(const struct as_shares *shares);

#endif
