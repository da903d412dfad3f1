/*
 * What a rule does: one of six actions, as written under rules[] and in decision documents.
 */
#ifndef ALERTSCALER_MODEL_ACTION_H
#define ALERTSCALER_MODEL_ACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/model/forbidden.h>

enum as_action_kind {
    AS_ACTION_SCALE_UP,
    AS_ACTION_SCALE_DOWN,
    AS_ACTION_SCALE_TO,
    AS_ACTION_TRACK,
    AS_ACTION_PASS_THROUGH,
    AS_ACTION_HOLD,
    AS_ACTION_KIND_COUNT
};

const char *as_action_kind_get_word(enum as_action_kind kind); /* "scale_up", ... */

/* `by: N`, or `by: P%` with `at_least: N`. */
struct as_amount {
    bool is_percent;
    int64_t size;          /* N */
    int64_t milli_percent; /* 50 % is 50000 */
    int64_t at_least;      /* default 1 */
};

/* One row of a step table. scale_up, scale_down: the last step whose bound the value strictly
 * crosses counts. scale_to: the last step whose bound is not above the value, else the first. */
struct as_step {
    bool is_above; /* else below; scale_to: from */
    double bound;
    struct as_amount amount; /* scale_to: the size */
    double to;               /* above 0: replaces the amount; the change brings the value to this */
};

#define AS_STEPS_MAX 32

enum as_goal { AS_GOAL_VALUE, AS_GOAL_AVERAGE_VALUE, AS_GOAL_UTILIZATION };

/* What `of:` may select; decision documents only say cpu or memory. */
enum as_resource { AS_RESOURCE_CPU, AS_RESOURCE_MEMORY, AS_RESOURCE_COUNT };

struct as_track {
    enum as_goal goal;
    double value;              /* X, or the percentage P of utilization (70 for 70%) */
    enum as_resource resource; /* utilization, and where is_resource */
    bool of_limits;            /* of: *_limits; else requests */
    bool is_resource;          /* the per-pod samples are cpu or memory (`resource`) usage */
    bool by_owner;             /* only pods that the target owns count; else all that it selects */
    const char *container;     /* utilization: of this container, by the rule or the document;
                                  NULL: of whole pods */
};

/* What a rule wants at least while its value has been unavailable for a time. */
struct as_fallback {
    int64_t after_us;
    int32_t at_least; /* 0: nothing */
};

struct as_action {
    enum as_action_kind kind;
    struct as_amount amount;     /* scale_up, scale_down with neither steps nor `to` */
    bool is_to;                  /* scale_up, scale_down: `to: size` */
    bool is_fit;                 /* scale_up: `fit: pending_pods` */
    bool is_take;                /* scale_down: `take: unneeded_nodes` */
    int64_t size;                /* scale_to without steps, or `to` */
    const struct as_step *steps; /* owned by the rule or the document; NULL: no table */
    size_t step_count;
    struct as_track track;
    enum as_ways hold; /* hold: what it forbids while its incident is open */
};

/* The step that counts for a value. NULL: no step is crossed, or there are no steps. */
const struct as_step *as_action_find_step(const struct as_action *action, double value);
bool as_action_has_goal(const struct as_action *action); /* whether a step has `to` */

/* The wanted size does not depend on the present one: repeating it changes nothing. */
bool as_action_is_absolute(const struct as_action *action);

#endif
