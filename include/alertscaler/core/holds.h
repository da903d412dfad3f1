/*
 * Which directions are forbidden on a target now by rules with `hold` and by schedules, for people.
 * Pauses, rules that do not help and increases that did not become ready are told as such
 * (core/engine.h).
 */
#ifndef ALERTSCALER_CORE_HOLDS_H
#define ALERTSCALER_CORE_HOLDS_H

#include <alertscaler/core/engine.h>

struct as_hold_view {
    enum as_ways ways;
    enum as_holder by;   /* AS_HOLDER_RULE or AS_HOLDER_SCHEDULE */
    const char *name;    /* of the rule, or of the schedule; valid until the next step */
    as_maybe_time until; /* unset: while the rule's alert fires, or none within two weeks */
};
typedef void as_hold_visit_fn(void *context, const struct as_hold_view *view);

/* Rules in their order, then schedules in theirs. A target that is not known has none. */
void as_engine_visit_holds(const struct as_engine *engine, const struct as_target_ref *ref,
                           as_mono_time now, as_wall_time wall, as_hold_visit_fn *visit,
                           void *context);

#endif
