/*
 * What is remembered of sizes that others set back: see the header.
 */
#include "engine_set_backs.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

void contention_forget_own(struct contention *contention)
{
    free((char *)(uintptr_t)contention->own.version);
    contention->own = (struct as_own_size){.version = NULL};
    contention->has_own = false;
}

void contention_drop_oldest(struct contention *contention)
{
    free((char *)(uintptr_t)contention->set_backs[0].by);
    memmove(contention->set_backs, contention->set_backs + 1,
            --contention->count * sizeof(*contention->set_backs));
}

void contention_clear(struct contention *contention)
{
    while (contention->count > 0)
        contention_drop_oldest(contention);
    contention_forget_own(contention);
    contention->since = AS_MOMENT_NEVER;
}

void contention_add(struct contention *contention, const struct as_set_back *set_back)
{
    if (contention->count == AS_SET_BACKS_MAX)
        contention_drop_oldest(contention);
    struct as_set_back *copy = &contention->set_backs[contention->count++];
    *copy = *set_back;
    copy->by = as_xstrdup(set_back->by);
}

const struct as_set_back *contention_copy(struct as_engine *engine,
                                          const struct contention *contention)
{
    struct as_set_back *copies = as_arena_alloc(&engine->arena, contention->count, sizeof(*copies));
    for (size_t i = 0; i < contention->count; i++) {
        copies[i] = contention->set_backs[i];
        copies[i].by = as_arena_strdup(&engine->arena, copies[i].by);
    }
    return copies;
}

void contention_fill_state(struct as_engine *engine, const struct contention *contention,
                           struct as_target_state *state)
{
    const int64_t age = engine->mono.us - contention->own.at.mono.us;
    if (contention->has_own && age < AS_SET_BACK_WITHIN_US) {
        struct as_own_size *own = as_arena_alloc(&engine->arena, 1, sizeof(*own));
        *own = contention->own;
        own->version = as_arena_strdup(&engine->arena, own->version);
        state->own_size = own;
    }
    if (contention->count > 0)
        state->set_backs = contention_copy(engine, contention);
    state->set_back_count = contention->count;
    state->contended = contention->since;
}

void contention_take_state(struct contention *contention, const struct as_target_state *state)
{
    const struct as_own_size *own = state->own_size;
    if (own && (!contention->has_own || contention->own.at.mono.us < own->at.mono.us)) {
        contention_forget_own(contention);
        contention->has_own = true;
        contention->own = *own;
        contention->own.version = as_xstrdup(own->version);
    }
    if (state->set_back_count > 0 && state->contended.mono.us >= contention->since.mono.us) {
        while (contention->count > 0)
            contention_drop_oldest(contention);
        for (size_t i = 0; i < state->set_back_count; i++)
            contention_add(contention, &state->set_backs[i]);
        contention->since = state->contended;
    }
}
