/*
 * What an operator orders by hand: `alertscaler pause`, resume, scale, unlock. The engine carries
 * it out like everything else: recorded and durable before it is answered.
 */
#ifndef ALERTSCALER_CORE_COMMAND_H
#define ALERTSCALER_CORE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>

#define AS_COMMAND_REASON_MAX 1024 /* bytes of a given reason, with NUL */

enum as_command_kind {
    AS_COMMAND_PAUSE,  /* nothing is scaled until then; incidents, decisions and records go on */
    AS_COMMAND_RESUME, /* ends a pause */
    AS_COMMAND_SCALE,  /* sets a size, whatever locks and pauses there are; begins the cooldown */
    AS_COMMAND_UNLOCK, /* ends the cooldown's locks, both directions */
    AS_COMMAND_KIND_COUNT
};
const char *as_command_kind_get_word(enum as_command_kind kind); /* "pause", ... */

struct as_command {
    enum as_command_kind kind;
    const char
        *target;     /* a target's id, or its name in the rule files; NULL: all (pause, resume) */
    const char *who; /* the credential's name; "" where none is needed */
    const char *remote; /* address the order came from */
    const char *reason; /* never empty */
    int64_t for_us;     /* pause: how long; 0: until resumed */
    int32_t replicas;   /* scale */
    bool force;         /* scale: beyond min and max */
};

/* What became of it. Anything but DONE changes nothing, and is recorded all the same. */
enum as_command_outcome {
    AS_COMMAND_DONE, /* scale: the size will be set; what became of that is an action's record */
    AS_COMMAND_UNKNOWN_TARGET,
    AS_COMMAND_OUT_OF_BOUNDS, /* scale without force */
    AS_COMMAND_NOTHING_TO_DO, /* resume of what is not paused, unlock of what is not locked */
    AS_COMMAND_REFUSED,       /* the credential may not touch this target; dry run; stopping */
    AS_COMMAND_OUTCOME_COUNT
};
const char *as_command_outcome_get_word(enum as_command_outcome outcome); /* "done", ... */

struct as_command_record { /* of the action log: kind `command` */
    char id[32];           /* a ULID, by which an action's record refers to it */
    const struct as_command *command;
    enum as_command_outcome outcome;
    const char *message;     /* of an outcome other than DONE; "" */
    const char *target;      /* the id found; NULL: all, or none found */
    const char *target_name; /* likewise */
    bool has_until;
    as_wall_time until; /* pause: its end */
    bool has_bounds;
    int32_t min, max; /* of the target */
};

#endif
