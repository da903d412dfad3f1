/*
 * The scaling policies of an API server: compiled one by one, judged by `objects` of the
 * configuration, and joined with the rule files to one rule set. No input, no output, no clock.
 *
 * A policy that is not valid, or that may not do what it says, is not in force. It stays in the
 * set with its reason, for its status.
 */
#ifndef ALERTSCALER_RULES_POLICY_SET_H
#define ALERTSCALER_RULES_POLICY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/rules/settings.h>

/* Why a policy is in force or is not: the word is the reason of its condition `Ready`. */
#define AS_POLICY_REASONS(_)                                                                       \
    _(AS_POLICY_READY, "Ready")                                                                    \
    _(AS_POLICY_SHADOW, "Shadow")                         /* `mode: Shadow`: not acted on */       \
    _(AS_POLICY_INVALID, "Invalid")                       /* with the messages of `check` */       \
    _(AS_POLICY_KIND_NOT_ALLOWED, "KindNotAllowed")       /* `objects.kinds` */                    \
    _(AS_POLICY_GROUP_NOT_ALLOWED, "NodeGroupNotAllowed") /* `objects.node_groups` */              \
    _(AS_POLICY_QUERIES_NOT_ALLOWED, "QueriesNotAllowed") /* `objects.prometheus` */               \
    _(AS_POLICY_LIMIT_EXCEEDED, "LimitExceeded") /* `max_size`, `min_every`, `rules_per_policy` */ \
    _(AS_POLICY_TOO_MANY, "TooManyPolicies")     /* `max_policies` */                              \
    _(AS_POLICY_TARGET_TAKEN, "TargetTaken")     /* another owner has the object */

#define AS_POLICY_REASON_ENUMERATOR(enumerator, word) enumerator,
enum as_policy_reason { AS_POLICY_REASONS(AS_POLICY_REASON_ENUMERATOR) AS_POLICY_REASON_COUNT };
#undef AS_POLICY_REASON_ENUMERATOR
const char *as_policy_reason_get_word(enum as_policy_reason reason); /* static memory */

/* One policy of the set. Everything is borrowed until the next change of the set. */
struct as_scaling_policy {
    const char *namespace, *name;
    const char *id;  /* "NAMESPACE/NAME": the name of its target; its rules are "ID/RULE" */
    const char *uid; /* of the object */
    int64_t generation;
    as_wall_time created;
    enum as_policy_reason reason;
    const char *message; /* of the condition `Ready`: at most AS_POLICY_ERRORS_MAX errors, a line
                            each, in the words of `check` */
    /* Annotations: why its target must not be scaled at all, up, down; NULL: not set. */
    const char *paused, *paused_up, *paused_down;
    bool is_known;    /* the former join gave this generation the same reason and message */
    bool allows_hpa;  /* alertscaler.io/allow-hpa: "true" */
    const char *text; /* the object's JSON with its name and its spec; NULL: it cannot be used */
    size_t text_size;
    const char *rival;                /* what else scales its target; NULL: nothing */
    const struct as_ruleset *ruleset; /* one target and its rules; NULL: Invalid */
};
#define AS_POLICY_ERRORS_MAX 10
#define AS_POLICY_SIZE_MAX   (256 * 1024) /* bytes of an object; a larger one is Invalid */

struct as_policy_set;

struct as_policy_set *as_policy_set_new(void) AS_MUST_USE;
struct as_policy_set *as_policy_set_free(struct as_policy_set *set);

/*
 * Adds or replaces a policy: the object's JSON as the API server sends it. True: it changes what is
 * in force, or may. A new resourceVersion or status alone changes nothing, nor do labels and
 * annotations that are not read. A policy with more than AS_POLICY_CHANGES_MAX changes a minute is
 * taken once in AS_POLICY_SLOW_US, by a join. -EBADMSG with an error: the text has no namespace and
 * name.
 */
#define AS_POLICY_CHANGES_MAX 6
#define AS_POLICY_SLOW_US     (10 * AS_US_PER_S)
int as_policy_set_put(struct as_policy_set *set, const char *text, size_t size, as_mono_time now,
                      bool *changed_out, struct as_error *error) AS_MUST_USE;
/* True: there was one. */
bool as_policy_set_remove(struct as_policy_set *set, const char *namespace, const char *name);
/* Around the objects of a whole list: those that were not put in between are removed. */
void as_policy_set_begin_list(struct as_policy_set *set, const char *namespace); /* NULL: all */
/* Tells each policy before it is removed. True: there was one. */
bool as_policy_set_end_list(struct as_policy_set *set, const char *namespace,
                            void (*removed)(void *context, const struct as_scaling_policy *policy),
                            void *context);

/*
 * Judges all policies, and joins those in force with the rule set of the files, which comes first
 * and keeps its indices. Policies are compiled only if they or the settings changed: settings at
 * another address are others. The result belongs to the set: it, `files` and `settings` must
 * outlive the use. The former result stays valid until the next call but one of this function.
 *
 * If a new generation of a policy is not valid or not allowed, the last one that was in force stays
 * in the rule set for AS_POLICY_KEEP_US, with a pause: nothing is scaled, and nothing is forgotten.
 */
#define AS_POLICY_KEEP_US (60 * AS_US_PER_MIN)

struct as_policy_join {
    const struct as_settings *settings;
    const struct as_ruleset *files;
    as_mono_time now;
    bool is_complete; /* false: the policies are not listed yet */
};
const struct as_ruleset *as_policy_set_join(struct as_policy_set *set,
                                            const struct as_policy_join *join);
/* When to join again at the latest; a put or a join may change it. AS_MONO_NEVER: only after a
 * change. */
as_mono_time as_policy_set_get_deadline(const struct as_policy_set *set);

/* What else scales the policy's target, "HorizontalPodAutoscaler web"; NULL: nothing. The policy
 * does not act beside it, unless its annotation allows it. True: this changes what is in force. */
bool as_policy_set_note_rival(struct as_policy_set *set, const char *id, const char *rival);

size_t as_policy_set_count(const struct as_policy_set *set);
/* Ascending by id. True ends the visit. */
void as_policy_set_visit(const struct as_policy_set *set,
                         bool (*visit)(void *context, const struct as_scaling_policy *policy),
                         void *context);
/* Those that the last join has judged, in any order. */
void as_policy_set_visit_placed(const struct as_policy_set *set,
                                void (*visit)(void *context,
                                              const struct as_scaling_policy *policy),
                                void *context);
const struct as_scaling_policy *as_policy_set_find(const struct as_policy_set *set, const char *id);

AS_DEFINE_CLEANUP(struct as_policy_set *, as_policy_set_free)

/*
 * Judges one policy alone, as as_policy_set_join does it without other owners of its object: for
 * the admission of an object, and for `check`. `text` as in as_policy_set_put. Errors and warnings
 * are added to `diagnostics`; the file of a diagnostic is its path in the object.
 */
struct as_diagnostics;
enum as_policy_reason as_policy_judge(const struct as_settings *settings, const char *text,
                                      size_t size, struct as_diagnostics *diagnostics);

#endif
