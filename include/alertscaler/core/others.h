/*
 * Others at the same size: HPAs and KEDA's ScaledObjects that aim at a target, and sizes of ours
 * that somebody set back. docs/others.md describes both for users. Pointers are borrowed for the
 * call, or until the next step of the engine.
 */
#ifndef ALERTSCALER_CORE_OTHERS_H
#define ALERTSCALER_CORE_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>
#include <alertscaler/core/incident.h>

/* A size is set back if it is found changed towards the size before ours, so soon after ours. */
#define AS_SET_BACK_WITHIN_US (10 * AS_US_PER_MIN)
/* So many within this span are contention: then the target is left alone for as long. */
#define AS_SET_BACKS_MAX 3
#define AS_CONTENDED_US  AS_US_PER_H

/* One object that sizes the target too. */
struct as_other {
    const char *kind; /* "HorizontalPodAutoscaler" or "ScaledObject" */
    const char *name; /* in the target's namespace */
    int32_t min, max; /* its bounds; -1: not said */
};
#define AS_OTHERS_MAX 16 /* named of one target */

/* The size that we set last, as long as it may still be set back. */
struct as_own_size {
    int32_t from, to;
    struct as_moment at;
    const char *version; /* of the object before the change; "": it has none */
};

struct as_set_back {
    struct as_moment at;     /* when it was found */
    int32_t from, to, found; /* we set `from` to `to`, and found this */
    const char *by; /* the manager of the size in the object's managedFields; "": not known */
};

enum as_others_event {
    AS_OTHERS_FOUND,     /* who aims at the target, whenever that has changed */
    AS_OTHERS_CONTENDED, /* the target is left alone from now on */
    AS_OTHERS_OVER,      /* no longer */
    AS_OTHERS_EVENT_COUNT
};
const char *as_others_event_get_word(enum as_others_event event);

struct as_others_record { /* in the action log: kind `others` */
    enum as_others_event event;
    const char *target;            /* id */
    const char *target_name;       /* as in the rule file; "": no rule leads to it */
    const struct as_other *others; /* found; count 0: nobody any more */
    size_t other_count;
    const struct as_set_back *set_backs; /* contended */
    size_t set_back_count;
    as_wall_time until;  /* contended */
    const char *message; /* over: why */
};

/* The contention in force at a decision. */
struct as_contended_note {
    const struct as_set_back *set_backs;
    size_t set_back_count;
    as_wall_time until;
};

#endif
