/*
 * Changes that wait for a person: `approval: {above: 10, for: 15m}` (docs/rules.md#approval).
 *
 * A request is what a person is asked: may this rule bring this target as far as this size? It is
 * bound to the object (by UID), the rule as written, the incident, the direction and the size that
 * was shown. An answered request is used by at most one action.
 */
#ifndef ALERTSCALER_DECIDE_APPROVAL_H
#define ALERTSCALER_DECIDE_APPROVAL_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>

#define AS_APPROVAL_FOR_MIN_US     AS_US_PER_MIN
#define AS_APPROVAL_FOR_MAX_US     (7 * AS_US_PER_DAY)
#define AS_APPROVAL_FOR_DEFAULT_US (15 * AS_US_PER_MIN)
/* Steps of a rule add up so long; and a rule whose request was refused asks again after it. */
#define AS_APPROVAL_SPAN_US AS_US_PER_H

struct as_approval_config { /* of a rule or a target */
    bool is_set;
    int32_t above;  /* a change by more than this needs an approval */
    int64_t for_us; /* how long a request waits, and how long an approval can be used */
};

/* What has become of a request. */
enum as_approval_answer {
    AS_APPROVAL_WAITING,
    AS_APPROVAL_APPROVED, /* and not used yet */
    AS_APPROVAL_DENIED,
    AS_APPROVAL_EXPIRED, /* nobody answered in time, or the approval was not used in time */
    AS_APPROVAL_VOID,    /* a decision in the other direction */
    AS_APPROVAL_ANSWER_COUNT
};
const char *as_approval_answer_get_word(enum as_approval_answer answer); /* "waiting", ... */

/* Of a proposal, in a decision's input. */
struct as_approval_terms {
    bool is_set; /* false: its changes never wait */
    int32_t above;
    int32_t up, down; /* what the rule has added and taken without approval, within the span */
    bool is_asked;    /* the rest: its request */
    const char *id;
    bool is_up;
    int32_t to; /* the size shown: an approval reaches no further */
    enum as_approval_answer answer;
    as_maybe_time until; /* waiting, approved: its end; else when the rule may ask again */
};

/* What a decision made of a proposal's need for an approval. */
enum as_approval_use {
    AS_APPROVAL_FREE,    /* there is no need, or the proposal does not win */
    AS_APPROVAL_ASKS,    /* it is to be asked for */
    AS_APPROVAL_AWAITED, /* it is asked for, or will be when another request has its answer */
    AS_APPROVAL_REFUSED, /* it is not asked again yet */
    AS_APPROVAL_USED,    /* the change rests on it */
    AS_APPROVAL_USE_COUNT
};
const char *as_approval_use_get_word(enum as_approval_use use); /* FREE: NULL */

/* What becomes of requests: records of kind `approval`. */
enum as_approval_event {
    AS_APPROVAL_ON_ASKED,
    AS_APPROVAL_ON_APPROVED,
    AS_APPROVAL_ON_DENIED,
    AS_APPROVAL_ON_EXPIRED,
    AS_APPROVAL_ON_VOID,
    AS_APPROVAL_ON_USED,     /* in the commit of the action's intent */
    AS_APPROVAL_ON_RETURNED, /* that action was not done: the approval can be used again */
    AS_APPROVAL_EVENT_COUNT
};
const char *as_approval_event_get_word(enum as_approval_event event); /* "asked", ... */

#endif
