/*
 * A list is enough: it has the narrowed credentials that hold something now.
 */
#include <alertscaler/base/shares.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

void as_shares_init(struct as_shares *shares)
{
    *shares = (struct as_shares){0};
    TAILQ_INIT(&shares->list);
}

static void drop(struct as_shares *shares, struct as_share *share)
{
    TAILQ_REMOVE(&shares->list, share, link);
    shares->count--;
    free(share);
}

void as_shares_deinit(struct as_shares *shares)
{
    struct as_share *share;
    while ((share = TAILQ_FIRST(&shares->list)))
        drop(shares, share);
}

static struct as_share *find(const struct as_shares *shares, const char *name)
{
    struct as_share *share;
    TAILQ_FOREACH (share, &shares->list, link) {
        if (strcmp(share->name, name) == 0)
            return share;
    }
    return NULL;
}

struct as_share *as_shares_take(struct as_shares *shares, const char *name, uint64_t amount)
{
    if (!name)
        return NULL;
    struct as_share *share = find(shares, name);
    if (!share) {
        const size_t size = strlen(name) + 1;
        share = as_xcalloc(1, sizeof(*share) + size);
        memcpy(share->name, name, size);
        TAILQ_INSERT_TAIL(&shares->list, share, link);
        shares->count++;
    }
    share->held += amount;
    shares->held += amount;
    return share;
}

void as_shares_give(struct as_shares *shares, struct as_share *share, uint64_t amount)
{
    if (!share)
        return;
    share->held -= amount;
    shares->held -= amount;
    if (share->held == 0)
        drop(shares, share);
}

uint64_t as_shares_get(const struct as_shares *shares, const char *name)
{
    const struct as_share *share = find(shares, name);
    return share ? share->held : 0;
}

struct as_share *as_shares_find_largest(const struct as_shares *shares)
{
    struct as_share *share, *largest = NULL;
    TAILQ_FOREACH (share, &shares->list, link) {
        if (!largest || share->held > largest->held)
            largest = share;
    }
    return largest;
}
