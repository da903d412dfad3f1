/*
 * The targets to be evaluated once a step is committed, and the causes of their next decisions.
 */
#include "engine_causes.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_effects.h"

/* Notes the cause of the next decision. */
static void ask(struct as_engine *engine, struct target *target, const char *notification,
                as_wall_time starts_at)
{
    struct asked *asked = &target->asked;
    target->dirty = true;
    if (asked->total == 0 || starts_at.us > asked->youngest.us)
        asked->youngest = starts_at;
    if (strcmp(asked->last, notification) == 0)
        return;
    memcpy(asked->last, notification, AS_ULID_SIZE);
    if (asked->total++ == 0)
        asked->first = engine->mono;
    if (asked->count < AS_RECORD_LIST_MAX) {
        asked->ids = as_xgrow(asked->ids, asked->count, &asked->capacity, AS_ULID_SIZE);
        memcpy(asked->ids[asked->count++], notification, AS_ULID_SIZE);
    }
}

/* Evaluates the target after the waiter's commit. */
void target_touch(struct target *target, struct waiter *waiter)
{
    target->dirty = true;
    for (size_t i = waiter->kick_count; i-- > 0 && i + 8 > waiter->kick_count;) {
        if (waiter->kick[i] == target)
            return;
    }
    waiter->kick =
        as_xgrow(waiter->kick, waiter->kick_count, &waiter->kick_capacity, sizeof(struct target *));
    waiter->kick[waiter->kick_count++] = target;
    target->pins++;
}

void cause_touch(struct as_engine *engine, struct cause *cause, const struct incident *incident,
                 struct target *target)
{
    if (cause->notification)
        ask(engine, target, cause->notification, incident->starts_at);
    cause->touched = as_xgrow(cause->touched, cause->touched_count, &cause->touched_capacity,
                              sizeof(struct target *));
    cause->touched[cause->touched_count++] = target;
}

/* Commits the results of the cause; its targets are evaluated then. */
struct waiter *cause_commit(struct as_engine *engine, struct cause *cause)
{
    struct waiter *waiter = effect_commit_awaited(engine);
    for (size_t i = 0; i < cause->touched_count; i++)
        target_touch(cause->touched[i], waiter);
    free(cause->touched);
    *cause = (struct cause){0};
    return waiter;
}
