/*
 * What the files of the history share.
 *
 *   history.c         the memory: events by target, and what is forgotten
 *   history_take.c    events from effects and records
 *   history_draw.c    events as lines, bands and marks
 *   history_fill.c    reads the action log at the start
 */
#ifndef ALERTSCALER_SRC_UI_HISTORY_PRIVATE_H
#define ALERTSCALER_SRC_UI_HISTORY_PRIVATE_H

#include <stdbool.h>

#include <uthash.h>

#include <alertscaler/ui/history.h>

#define HISTORY_NAMES_MAX 1000 /* of alerts and rules; further ones share "others" */
#define HISTORY_NAME_SIZE 121

enum history_kind {
    HISTORY_SIZE,     /* value: the size, or AS_TIMELINE_UNKNOWN */
    HISTORY_ACTION,   /* other: from; value: to; name: rule */
    HISTORY_ALERT,    /* value: how many began, or (below 0) ended; name: alert */
    HISTORY_UP_LOCK,  /* value: seconds until it ends */
    HISTORY_DOWN_LOCK /* the same */
};

struct history_event {
    int64_t at; /* microseconds of wall time */
    int32_t value, other;
    uint16_t name;
    uint8_t kind;   /* of enum history_kind */
    uint8_t reason; /* of enum as_reason */
};

struct history_line {  /* of one target */
    UT_hash_handle hh; /* those heard of last come last */
    char *id;
    struct history_event *events; /* ascending by time */
    size_t count, capacity;
    int32_t up_s, down_s, up_after_down_s, down_after_down_s; /* the last known cooldown */
};

struct history_name {
    UT_hash_handle hh;
    char *text;
    uint16_t number;
};

struct as_history {
    size_t bytes, bytes_max;
    int64_t started_us; /* sizes before and after it are told apart */
    struct history_line *lines;
    struct history_name *names;               /* by text */
    const char *texts[HISTORY_NAMES_MAX + 1]; /* by number; 0: "" */
    size_t name_count;
};

/* The target's line, as the one heard of last; a new one if needed. */
struct history_line *history_get_line(struct as_history *history, const char *id);
uint16_t history_get_name(struct as_history *history, const char *text);
/* Frees as much as needed afterwards, also of this line: use no line or event after it. */
void history_add(struct as_history *history, struct history_line *line,
                 const struct history_event *event);

#endif
