/*
 * Directions in which nothing may go: by a rule with `hold`, a pause of one direction, a schedule,
 * or because steps up did not help. All of them are heeded by gates 2 and 4 of a decision
 * (docs/decision.md#forbidden-directions). Operators' sizes are not decided, so nothing forbids
 * them.
 */
#ifndef ALERTSCALER_MODEL_FORBIDDEN_H
#define ALERTSCALER_MODEL_FORBIDDEN_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/time.h>
#include <alertscaler/model/reason.h>

enum as_ways { AS_WAYS_NONE = 0, AS_WAYS_DOWN = 1, AS_WAYS_UP = 2, AS_WAYS_BOTH = 3 }; /* bits */

/* X(enumerator, word): in rule files (`hold`), in decision documents and orders */
#define AS_WAYS_WORDS(X)                                                                           \
    X(AS_WAYS_DOWN, "down")                                                                        \
    X(AS_WAYS_UP, "up")                                                                            \
    X(AS_WAYS_BOTH, "both")
const char *as_ways_get_word(enum as_ways ways); /* NULL: none */

/* Who forbids. X(enumerator, word, what `name` is the name of) */
#define AS_HOLDERS(X)                                                                              \
    X(AS_HOLDER_RULE, "rule", "a rule with `hold`, whose incident is open")                        \
    X(AS_HOLDER_PAUSE, "pause", "who ordered a pause of one direction")                            \
    X(AS_HOLDER_SCHEDULE, "schedule", "a schedule in force")                                       \
    X(AS_HOLDER_INEFFECTIVE, "ineffective", "a rule whose last steps up did not help")             \
    X(AS_HOLDER_DID_NOT_COME, "did_not_come", "nothing: the last increase did not come")           \
    X(AS_HOLDER_ROLLOUT, "rollout", "nothing, or why the progress of the rollout is not known")

#define AS_HOLDER_ENUM(enumerator, word, name) enumerator,
enum as_holder { AS_HOLDERS(AS_HOLDER_ENUM) AS_HOLDER_COUNT };
#undef AS_HOLDER_ENUM
const char *as_holder_get_word(enum as_holder holder);
/* Why the size stays: `ineffective`, `did_not_come` and `rollout` have reasons of their own, others
 * `held`. */
enum as_reason as_holder_get_reason(enum as_holder holder);
bool as_reason_has_holder(enum as_reason reason); /* one of these */

static inline enum as_ways as_ways_get(int32_t from, int32_t to) /* of a change of the size */
{
    return to > from ? AS_WAYS_UP : to < from ? AS_WAYS_DOWN : AS_WAYS_NONE;
}

struct as_holder_name {
    enum as_holder by;
    const char *name; /* NULL: none */
};

struct as_forbidden {
    enum as_ways ways;
    enum as_holder by;
    const char *name; /* NULL: none */
    const char *rule; /* only the proposals of this rule do not go that way; NULL: nothing does */
};

/* --- for people: what rules with `hold` and schedules forbid on a target now --- */

struct as_engine;
struct as_target_ref;

struct as_hold_view {
    enum as_ways ways;
    enum as_holder by;   /* AS_HOLDER_RULE, AS_HOLDER_SCHEDULE or AS_HOLDER_ROLLOUT */
    const char *name;    /* as in AS_HOLDERS; "": none; valid until the next step */
    as_maybe_time until; /* unset: while the rule's alert fires, or none within two weeks */
};
typedef void as_hold_visit_fn(void *context, const struct as_hold_view *view);

/* Schedules in their order, a rollout, then rules in their order. A target that is not known has
 * none. */
void as_engine_visit_holds(const struct as_engine *engine, const struct as_target_ref *ref,
                           as_mono_time now, as_wall_time wall, as_hold_visit_fn *visit,
                           void *context);

#endif
