/*
 * The checked content of the rule files: targets and rules. Immutable after loading. The engine
 * borrows it; AS_EVENT_RULES gives it a new one.
 */
#ifndef ALERTSCALER_DECIDE_RULESET_H
#define ALERTSCALER_DECIDE_RULESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/decide/approval.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/model/action.h>
#include <alertscaler/model/bounds.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/matcher.h>
#include <alertscaler/model/template.h>

/*
 * A target's address: first the keys of its kind (decide/target_kind.h), in the kind's order, with
 * defaults; then all others as written.
 */
struct as_address_field {
    char *key;
    struct as_template *value;
    unsigned place; /* rank of its value in an id, if the key says where the target is; else 0 */
};
#define AS_PLACE_RANK_MAX 8

/* A list of `allow`: globs (base/str.h); of URLs patterns (model/scope.h) in their normal form. */
struct as_allowed {
    char **items;
    size_t count; /* 0: not given */
};

#define AS_NO_TARGET UINT32_MAX

/* The scaling policy that a target is of: an object of Kubernetes in place of a rule file. */
struct as_policy_terms {
    const char *namespace, *name, *uid;
    as_wall_time created;
    int64_t generation;
    enum as_ways paused; /* by the object's annotations */
    const char *pause_reason;
    bool is_tenant; /* its queries go to `objects.prometheus`, as its namespace */
};

struct as_target_config {
    char *name;
    char *file;      /* that has it; NULL: none */
    uint32_t line;   /* in that file */
    char *text;      /* YAML, as it was read; NULL: longer than AS_RULE_TEXT_MAX */
    uint32_t number; /* its index in the rule set of its files */
    const struct as_target_kind *kind;
    struct as_address_field *address;
    size_t address_count;
    bool is_templated;
    struct as_allowed allowed[AS_ALLOW_COUNT];
    char *list_selector; /* of `allow.list`, "app=web,tier=x": the objects with these labels are
                            targets without an alert; NULL: none */
    struct as_bounds_config bounds;
    struct as_nodes_config nodes; /* of a kind that has nodes */
    struct as_pool_config *pool;  /* of kind pool; else NULL */
    uint32_t of_pool; /* index of the pool that this group belongs to; AS_NO_TARGET: none */
    /* Targets of one family may lead to the same resources (observation.h); static memory. NULL:
     * only the target's address leads to it. */
    const char *family;
    bool dry_run;
    int64_t ready_timeout_us; /* of a workload: how long its pods may take to be ready; 0: nobody
                                 waits */
    uint32_t *after;          /* indices of targets */
    size_t after_count;
    struct as_schedule *schedules;
    size_t schedule_count;   /* at most AS_SCHEDULES_MAX */
    struct as_digest digest; /* of what an observation depends on: the entry as written, and where
                                targets and metrics are; zero: not known */
    const struct as_policy_terms *policy; /* NULL: its entry is in a rule file */
};

/* The bounds in force: those of `bounds`, and of schedules. */
/* A node group whose instances are nodes of a cluster. An HTTP node group needs `nodes.select`. */
bool as_target_config_has_nodes(const struct as_target_config *config);
struct as_schedule_bounds as_target_config_get_bounds(const struct as_target_config *config,
                                                      as_wall_time now);

/* Where the value of `track`, `pass_through` and step tables comes from. */
enum as_source_kind {
    AS_SOURCE_NONE,
    AS_SOURCE_ANNOTATION,
    AS_SOURCE_LABEL,
    AS_SOURCE_QUERY,
    AS_SOURCE_NODES
};

struct as_source {
    enum as_source_kind kind;
    char *name; /* of the annotation or label; the word of `nodes` */
    enum as_nodes_word nodes;
    struct as_template *query; /* PromQL; label values are filled in as quoted text */
    bool per_pod;              /* the query gives one sample a pod ... */
    char *pod_label;           /* ... identified by this label */
};

/* The value is asked for with each decision; else the alert has it. */
bool as_source_is_asked(const struct as_source *source);

/* What a rule does when its incident is resolved. */
enum as_ending_kind { AS_ENDING_NOTHING, AS_ENDING_GIVE_BACK, AS_ENDING_SCALE };

struct as_ending {
    enum as_ending_kind kind;
    int64_t after_us;           /* give_back: delay from the end to the first step */
    int64_t step_milli_percent; /* give_back: share of the whole amount to give back */
    struct as_action action;    /* scale: scale_down (without steps) or scale_to */
};

enum as_guard_kind { AS_GUARD_ABSENT, AS_GUARD_WAIVED, AS_GUARD_QUERY };

#define AS_RULE_TEXT_MAX ((size_t)32 * 1024)

struct as_rule {
    char *name;
    char *file;     /* that has it; NULL: none */
    uint32_t line;  /* in that file */
    char *text;     /* YAML, as it was read; NULL: longer than AS_RULE_TEXT_MAX */
    bool is_always; /* no alert: it has no matchers, and its incident never ends */
    struct as_matcher *matchers;
    size_t matcher_count;
    bool is_confined; /* the last matcher is the label of its policy's namespace, and was added */
    char **receivers; /* count 0: any */
    size_t receiver_count;
    const struct as_target_config *target;
    uint32_t number; /* its index in the rule set of its files */
    struct as_action action;
    struct as_step *steps; /* action.steps points here */
    char *container;       /* action.track.container points here */
    struct as_source source;
    struct as_fallback fallback;   /* of a rule with a source */
    enum as_guard_kind guard_kind; /* waived: `guard: none` */
    struct as_template *guard;     /* PromQL that must return a sample; AS_GUARD_QUERY */
    struct as_ending on_resolved;
    int64_t every_us;           /* 0: none */
    uint32_t max_steps;         /* 0: no limit */
    uint32_t ineffective_after; /* so many actions in a row that did not help; 0: never */
    bool dry_run;
    bool enabled;
    struct as_approval_config approval; /* its own, else the target's */
    struct as_digest digest; /* of it and its target as written, and of `approval` if set */
};

struct as_ruleset {
    struct as_target_config **targets; /* of the files; then of the policies, the oldest first */
    size_t target_count;
    struct as_rule **rules; /* in the order of their targets' origin: files, then policies */
    size_t rule_count;
    struct as_zone **zones; /* of the schedules, each once */
    size_t zone_count;
    char digest[65]; /* hex SHA-256 over the rule files' bytes, in order of file names */
    /* Policies that are not in the set, and may come back: what is stored of their targets waits
     * for them. Borrowed. */
    bool awaits_policies;       /* all: they are not listed yet */
    const char *const *awaited; /* names of targets, ascending */
    size_t awaited_count;

    /* What differs from the rule set with the serial number `base`: only these policies, each a
     * rule set of one target. One in both lists has new terms. Borrowed. */
    uint64_t serial, base; /* 0: none, all may differ */
    const struct as_ruleset **removed, **added;
    size_t removed_count, added_count;
};

/* Whether the entry of this name is one of a policy that is awaited. */
bool as_ruleset_awaits(const struct as_ruleset *ruleset, const char *target);

const struct as_rule *as_ruleset_find_rule(const struct as_ruleset *ruleset,
                                           const char *name); /* NULL: none */
/* The order of targets, and of rules, in a rule set: those of files, then those of policies by age
 * and name. */
int as_target_config_compare(const struct as_target_config *a, const struct as_target_config *b);
int as_rule_compare(const struct as_rule *a, const struct as_rule *b);
/* Fills an empty rule set with zeroed targets and rules; their numbers are set. */
void as_ruleset_make_room(struct as_ruleset *ruleset, size_t target_count, size_t rule_count);
struct as_ruleset *as_ruleset_free(struct as_ruleset *ruleset);

AS_DEFINE_CLEANUP(struct as_ruleset *, as_ruleset_free)

/* Whether all matchers match. */
bool as_rule_matches(const struct as_rule *rule, const struct as_labels *labels);

/*
 * Finds the rules that match an alert. The cost does not depend on the number of rules that cannot
 * match: each rule is indexed by one equality (or plain alternation `a|b|c`) matcher, if possible
 * with a value that few rules share. Rules without such a matcher are tried for every alert.
 */
struct as_rule_index;

/* Borrows the rules, which must outlive the index. */
struct as_rule_index *as_rule_index_new(const struct as_ruleset *ruleset) AS_MUST_USE;
struct as_rule_index *as_rule_index_free(struct as_rule_index *index);

/* A rule that the rule set has got, or has no longer. It outlives its time in the index. */
void as_rule_index_add(struct as_rule_index *index, const struct as_rule *rule);
void as_rule_index_remove(struct as_rule_index *index, const struct as_rule *rule);

/*
 * All rules (also disabled ones, but no `always` rules) whose matchers match and whose receivers
 * include one of `receivers` (NULL: any), in the order of the rule set. The array belongs to the
 * index and is valid until the next call.
 */
size_t as_rule_index_match(struct as_rule_index *index, const struct as_labels *labels,
                           const char *const *receivers, size_t receiver_count,
                           const struct as_rule *const **rules_out);

/*
 * The confined rules that the alert matches but for the added matcher. Only rules with an equality
 * matcher of their own are found. Of rules that share their matchers, at most
 * AS_RULE_NEAR_MAX are compared, others at the next call. As above.
 */
#define AS_RULE_NEAR_MAX 100
size_t as_rule_index_match_confined(struct as_rule_index *index, const struct as_labels *labels,
                                    const char *const *receivers, size_t receiver_count,
                                    const struct as_rule *const **rules_out);

AS_DEFINE_CLEANUP(struct as_rule_index *, as_rule_index_free)

#endif
