/*
 * Why a target may not be scaled again yet, for display: a request under way, or the cooldown after
 * one.
 */
#ifndef ALERTSCALER_MODEL_LOCK_H
#define ALERTSCALER_MODEL_LOCK_H

#include <stdbool.h>

#include <alertscaler/base/time.h>

struct as_lock {                        /* texts are borrowed for the callback */
    const char *target;                 /* id */
    bool is_in_flight;                  /* or its outcome is unknown: there is no end yet */
    as_wall_time since;                 /* of the request; cooldown: of the size change */
    as_maybe_time up_until, down_until; /* of the cooldown */
    const char *rule;                   /* NULL: no rule, or unknown */
    const char *decision, *command;     /* id of its cause: one is set, or none if unknown */
};

#endif
