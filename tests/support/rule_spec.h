/*
 * Compact rule sets in C, for tests of the engine and for the simulator. Times are in seconds.
 * Omitted values are zero; a maximum of 0 means 10, so that a target needs little text.
 */
#ifndef ALERTSCALER_TESTS_RULE_SPEC_H
#define ALERTSCALER_TESTS_RULE_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/decide/ruleset.h>

#define SPEC_MAX 8

/* In UTC seconds from `from` to `to`; or daily, with seconds of the day in `zone` of tzdata. */
struct schedule_spec {
    const char *name, *zone;
    unsigned days; /* 0: all */
    int64_t from, to;
    int32_t min, max; /* 0: none */
    bool is_zero;     /* `min: 0, max: 0` */
    enum as_schedule_end end;
};

struct target_spec {
    const char *name;           /* also the Deployment's, where `address` is not given */
    const char *address;        /* the Deployment's name, may be a template */
    const char *namespace;      /* default "shop" */
    const char *version;        /* the Deployment's apiVersion, default "apps/v1" */
    const char *container;      /* of the Deployment: its memory is sized, in units of 64Mi, */
    bool by_pods;               /* in its running pods */
    const char *allow;          /* glob of names; needed by templates. Other keys may be any */
    const char *list;           /* selector of `allow.list` */
    const char *field, *absent; /* of the object, in units of 64Mi, instead of its scale */
    const char *url;            /* of an HTTP node group of the provider "mine" */
    const char *group_name;     /* of an HTTP node group; NULL: none */
    bool is_group;         /* a node group of the provider "mine", its nodes those of `cluster` */
    const char *family;    /* of a node group; NULL: none */
    int64_t ready_timeout; /* of its nodes, 0: 10 minutes; of a workload's pods, 0: none */
    int64_t unneeded_for;  /* of its nodes; 0: 10 minutes */
    const char *cluster;   /* of its nodes, or of the Deployment; default "default" */
    const char *pool[4];   /* a pool of these groups */
    enum as_pool_filter choose;
    bool balance;
    int32_t min, max;
    int64_t up, down, up_after_down; /* cooldown */
    bool has_down_after_down;
    int64_t down_after_down;
    bool enforce_bounds, dry_run;
    enum as_rollout rollout;
    const char *after[4];               /* names of targets */
    const struct as_behavior *behavior; /* NULL: none */
    struct schedule_spec schedules[4];  /* up to one without a name */
    struct as_approval_config approval;
};

/* One of the first four, or none. */
struct source_spec {
    const char *annotation, *label, *query;
    enum as_nodes_word nodes;
    bool per_pod; /* pods are named by the label "pod" */
};

#define SPEC_STEPS_MAX 4

/* What a rule does when its incident was resolved: nothing, or one of these. */
struct ending_spec {
    bool give_back;
    int64_t after, step_percent; /* of give_back; a step of 0 is 100 */
    int64_t down, down_percent;  /* scale_down */
    int64_t to;                  /* scale_to */
    bool has_to;
};

struct rule_spec {
    const char *name;
    const char *match[4];
    const char *receiver;
    const char *target;
    int64_t up, down, up_percent, down_percent, at_least; /* one of the first four, or to */
    int64_t up_to, down_to; /* `to` of scale_up and scale_down, above 0 */
    int64_t to;
    bool has_to;
    bool fit, take; /* of pending pods, of unneeded nodes */
    int64_t every;
    uint32_t max_steps, ineffective_after;
    bool dry_run, disabled;
    bool always; /* instead of `match` */
    struct source_spec source;
    struct as_step up_steps[SPEC_STEPS_MAX], down_steps[SPEC_STEPS_MAX],
        to_steps[SPEC_STEPS_MAX];                         /* up to one without `by`, `to`, size */
    double track_value, track_average, track_utilization; /* one of them: track; percent */
    enum as_resource resource;                            /* of utilization */
    const char *container;                                /* of track_utilization */
    bool by_owner;                                        /* of track_* */
    bool of_limits;
    bool pass_through;
    enum as_ways hold;
    struct as_fallback fallback;
    const char *guard; /* "none", or a query */
    struct ending_spec on_resolved;
    struct as_approval_config approval;
};

struct spec {
    struct target_spec targets[SPEC_MAX];
    struct rule_spec rules[SPEC_MAX];
};

/* Ends the process where the specification is not one. */
struct as_ruleset *spec_make_ruleset(const struct spec *spec) AS_MUST_USE;

#endif
