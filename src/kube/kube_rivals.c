/*
 * Who else aims at targets: see the header.
 */
#include <alertscaler/kube/kube_rivals.h>

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>

struct known {
    UT_hash_handle hh; /* by the target's id */
    char *target;
    struct as_arena texts;
    struct as_other *items;
    size_t count;
};

struct as_others {
    struct known *by_target;
};

static struct known *rivals_find(const struct as_others *others, const char *target)
{
    struct known *known;
    HASH_FIND(hh, others->by_target, target, strlen(target), known);
    return known;
}

static bool is_equal(const struct known *known, const struct as_other *found, size_t count)
{
    if (known->count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(known->items[i].kind, found[i].kind) != 0 ||
            strcmp(known->items[i].name, found[i].name) != 0 ||
            known->items[i].min != found[i].min || known->items[i].max != found[i].max ||
            known->items[i].is_paused != found[i].is_paused)
            return false;
    }
    return true;
}

static void rivals_forget(struct as_others *others, struct known *known)
{
    HASH_DEL(others->by_target, known);
    as_arena_deinit(&known->texts);
    free(known->target);
    free(known);
}

bool as_others_take(struct as_others *others, const char *target, const struct as_other *found,
                    size_t count)
{
    struct known *known = rivals_find(others, target);
    if (known ? is_equal(known, found, count) : count == 0)
        return false;
    if (known)
        rivals_forget(others, known);
    if (count == 0)
        return true;
    if (HASH_COUNT(others->by_target) >= OTHERS_TARGETS_MAX)
        rivals_forget(others, others->by_target); /* the first: that changed least recently */
    known = as_xcalloc(1, sizeof(*known));
    known->target = as_xstrdup(target);
    known->texts = AS_ARENA_INIT;
    known->items = as_arena_alloc(&known->texts, count, sizeof(*known->items));
    known->count = count;
    for (size_t i = 0; i < count; i++) {
        known->items[i] = found[i];
        known->items[i].kind = as_arena_strdup(&known->texts, found[i].kind);
        known->items[i].name = as_arena_strdup(&known->texts, found[i].name);
    }
    HASH_ADD_KEYPTR(hh, others->by_target, known->target, strlen(known->target), known);
    return true;
}

const struct as_other *as_others_find(const struct as_others *others, const char *target,
                                      size_t *count_out)
{
    const struct known *known = others ? rivals_find(others, target) : NULL;
    *count_out = known ? known->count : 0;
    return known ? known->items : NULL;
}

struct as_others *as_others_new(void)
{
    return as_xcalloc(1, sizeof(struct as_others));
}

struct as_others *as_others_free(struct as_others *others)
{
    struct known *known, *next;
    HASH_ITER (hh, others->by_target, known, next)
        rivals_forget(others, known);
    free(others);
    return NULL;
}
