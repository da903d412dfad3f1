/*
 * What keeps a target from being scaled again, for people to see: a request under way, or the
 * cooldown after one.
 */
#ifndef ALERTSCALER_CORE_LOCK_H
#define ALERTSCALER_CORE_LOCK_H

#include <stdbool.h>

#include <alertscaler/base/time.h>

struct as_lock {                        /* texts are borrowed for the call it is passed to */
    const char *target;                 /* id */
    bool is_in_flight;                  /* or nobody knows what became of it: there is no end yet */
    as_wall_time since;                 /* of the request, else of the change of the size */
    as_maybe_time up_until, down_until; /* of the cooldown */
    const char *rule;                   /* NULL: none's, or not known any more */
    const char *decision, *command;     /* the id of what it goes back to: one, or none as above */
};

#endif
