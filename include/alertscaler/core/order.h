/*
 * What an operator orders by hand: `alertscaler pause`, resume, scale, unlock. The engine carries
 * it out like everything else: recorded (kind `command`) and durable before it is answered.
 *
 * The kill switch stops everything at once, orders too. It comes from outside (a file, an
 * annotation of the lease), and lasts as long as it is there; it is recorded, but not kept.
 */
#ifndef ALERTSCALER_CORE_ORDER_H
#define ALERTSCALER_CORE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>

#define AS_ORDER_REASON_MAX 1024 /* bytes of a given reason, with NUL */
#define AS_ORDER_FOR_MAX_US (366 * AS_US_PER_DAY)

enum as_order_kind {
    AS_ORDER_PAUSE,  /* nothing is scaled until then; incidents, decisions and records go on */
    AS_ORDER_RESUME, /* ends a pause */
    AS_ORDER_SCALE,  /* sets a size, whatever locks and pauses there are; begins the cooldown */
    AS_ORDER_UNLOCK, /* ends the cooldown's locks, both directions */
    AS_ORDER_KIND_COUNT
};
const char *as_order_kind_get_word(enum as_order_kind kind); /* "pause", ... */

struct as_order { /* all borrowed for the step */
    enum as_order_kind kind;
    const char
        *target;     /* a target's id, or its name in the rule files; NULL: all (pause, resume) */
    const char *who; /* the credential's name; "" where none is needed */
    const char *remote; /* address the order came from; "" where it is none's */
    const char *reason; /* never empty */
    int64_t for_us;     /* pause: how long; 0: until resumed */
    int32_t replicas;   /* scale; 0 .. 2^31-1 */
    bool force;         /* scale: beyond min and max */
};

struct as_halt {        /* the kill switch */
    const char *who;    /* which one: "kill switch file", ... */
    const char *reason; /* what is written there; NULL: it is not set (any more) */
};

/* What became of it. Anything but DONE changes nothing, and is recorded all the same. */
enum as_order_outcome {
    AS_ORDER_DONE, /* scale: the size will be set; what became of that is an action's record */
    AS_ORDER_UNKNOWN_TARGET,
    AS_ORDER_OUT_OF_BOUNDS, /* scale without force */
    AS_ORDER_NOTHING_TO_DO, /* resume of what is not paused, unlock of what is not locked */
    AS_ORDER_REFUSED,       /* dry run, stopping, kill switch */
    AS_ORDER_OUTCOME_COUNT
};
const char *as_order_outcome_get_word(enum as_order_outcome outcome); /* "done", ... */

struct as_order_record {   /* of the action log: kind `command` */
    char id[AS_ULID_SIZE]; /* by which an action's record refers to it */
    const struct as_order *order;
    enum as_order_outcome outcome;
    const char *message;     /* of an outcome other than DONE; "" */
    const char *target;      /* the id found; NULL: all, or none found */
    const char *target_name; /* likewise; "" where no rule leads to it */
    bool has_until;
    as_wall_time until; /* pause: its end */
    bool has_bounds;
    int32_t min, max; /* of the target */
};

#endif
