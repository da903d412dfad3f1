/*
 * One array of events a target. What is dropped of it leaves behind what still holds: the size, and
 * alerts that have begun and not ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "history_private.h"

#define FEW_EVENTS  16
#define FORGET_PART 16 /* one of so many targets, when all have few events */
#define JOIN_WITHIN AS_US_PER_S
#define LOOK_BACK   64 /* events */
#define OTHERS      "others"

struct as_history *as_history_new(size_t bytes_max)
{
    struct as_history *history = as_xcalloc(1, sizeof(*history));
    history->bytes_max = bytes_max;
    history->bytes = sizeof(*history);
    history->texts[0] = "";
    return history;
}

static size_t measure(const struct history_line *line)
{
    return sizeof(*line) + strlen(line->id) + 1 + line->capacity * sizeof(*line->events);
}

static void forget_line(struct as_history *history, struct history_line *line)
{
    history->bytes -= measure(line);
    HASH_DELETE(hh, history->lines, line);
    free(line->id);
    free(line->events);
    free(line);
}

struct as_history *as_history_free(struct as_history *history)
{
    if (!history)
        return NULL;
    while (history->lines)
        forget_line(history, history->lines);
    while (history->names) {
        struct history_name *name = history->names;
        HASH_DELETE(hh, history->names, name);
        free(name->text);
        free(name);
    }
    free(history);
    return NULL;
}

size_t as_history_get_bytes(const struct as_history *history)
{
    return history->bytes;
}

uint16_t history_get_name(struct as_history *history, const char *text)
{
    char cut[HISTORY_NAME_SIZE];
    struct history_name *name;
    if (as_str_is_empty(text))
        return 0;
    as_str_copy_line(text, cut, sizeof(cut));
    HASH_FIND_STR(history->names, cut, name);
    if (!name && history->name_count >= HISTORY_NAMES_MAX - 1) {
        (void)snprintf(cut, sizeof(cut), "%s", OTHERS);
        HASH_FIND_STR(history->names, cut, name);
    }
    if (name)
        return name->number;
    name = as_xcalloc(1, sizeof(*name));
    name->text = as_xstrdup(cut);
    name->number = (uint16_t)++history->name_count;
    history->texts[name->number] = name->text;
    HASH_ADD_KEYPTR(hh, history->names, name->text, strlen(name->text), name);
    history->bytes += sizeof(*name) + strlen(name->text) + 1;
    return name->number;
}

struct history_line *history_get_line(struct as_history *history, const char *id)
{
    struct history_line *line;
    HASH_FIND_STR(history->lines, id, line);
    if (line) {
        HASH_DELETE(hh, history->lines, line);
    } else {
        line = as_xcalloc(1, sizeof(*line));
        line->id = as_xstrdup(id);
        history->bytes += measure(line);
    }
    HASH_ADD_KEYPTR(hh, history->lines, line->id, strlen(line->id), line);
    return line;
}

/* --- what is forgotten --- */

/* Alerts of the first `count` events that are still open after them. */
static void count_open(const struct history_line *line, size_t count,
                       int32_t open_out[HISTORY_NAMES_MAX + 1])
{
    memset(open_out, 0, (HISTORY_NAMES_MAX + 1) * sizeof(*open_out));
    for (size_t i = 0; i < count; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind != HISTORY_ALERT)
            continue;
        open_out[event->name] += event->value;
        if (open_out[event->name] < 0)
            open_out[event->name] = 0;
    }
}

/* Drops the first `count` events but for the last size and the last beginning of each open alert,
 * which then counts for all of that name. Returns how many are gone. */
static size_t drop_first(struct history_line *line, size_t count)
{
    int32_t open[HISTORY_NAMES_MAX + 1];
    bool has_size = false;
    size_t kept = count;
    count_open(line, count, open);
    for (size_t i = count; i-- > 0;) {
        struct history_event event = line->events[i];
        const bool is_size = event.kind == HISTORY_SIZE && !has_size;
        const bool is_open = event.kind == HISTORY_ALERT && event.value > 0 && open[event.name] > 0;
        if (!is_size && !is_open)
            continue;
        has_size = has_size || is_size;
        if (is_open) {
            event.value = open[event.name];
            open[event.name] = 0;
        }
        line->events[--kept] = event;
    }
    memmove(line->events, line->events + kept, (line->count - kept) * sizeof(*line->events));
    line->count -= kept;
    return kept;
}

static void fit(struct as_history *history, struct history_line *line)
{
    history->bytes -= line->capacity * sizeof(*line->events);
    line->capacity = line->count;
    line->events = as_xrealloc_array(line->events, line->capacity > 0 ? line->capacity : 1,
                                     sizeof(*line->events));
    history->bytes += line->capacity * sizeof(*line->events);
}

static void forget_some(struct as_history *history)
{
    size_t count = HASH_COUNT(history->lines) / FORGET_PART + 1;
    while (count-- > 0 && history->lines)
        forget_line(history, history->lines); /* the first: heard of least lately */
}

static void make_room(struct as_history *history)
{
    while (history->bytes > history->bytes_max && history->lines) {
        struct history_line *longest = history->lines;
        for (struct history_line *line = longest; line; line = line->hh.next) {
            if (line->capacity > longest->capacity)
                longest = line;
        }
        if (longest->capacity <= FEW_EVENTS)
            forget_some(history);
        else if (longest->count < longest->capacity / 2 ||
                 drop_first(longest, longest->count / 2) > 0)
            fit(history, longest);
        else
            forget_line(history, longest);
    }
}

static void drop_old(struct history_line *line, int64_t before)
{
    size_t count = 0;
    while (count < line->count && line->events[count].at < before)
        count++;
    if (count > line->count / 4)
        (void)drop_first(line, count);
}

/* --- what is added --- */

/* Whether the event before `place` says it already, or can say it too. */
static bool joins(const struct as_history *history, struct history_line *line, size_t place,
                  const struct history_event *event)
{
    for (size_t i = place; i-- > 0 && place - i <= LOOK_BACK;) {
        struct history_event *before = &line->events[i];
        if (before->kind != event->kind)
            continue;
        if (event->kind == HISTORY_SIZE)
            return before->value == event->value &&
                   (before->at > history->started_us) == (event->at > history->started_us);
        if (event->kind != HISTORY_ALERT || before->name != event->name ||
            event->at - before->at > JOIN_WITHIN || (before->value > 0) != (event->value > 0))
            return false;
        before->value += event->value;
        return true;
    }
    return false;
}

/* Behind all events up to this time. */
static size_t find_place(const struct history_line *line, int64_t at)
{
    size_t place = line->count;
    while (place > 0 && line->events[place - 1].at > at)
        place--;
    return place;
}

void history_add(struct as_history *history, struct history_line *line,
                 const struct history_event *event)
{
    if (joins(history, line, find_place(line, event->at), event))
        return;
    if (line->count > 0 && line->count == line->capacity)
        drop_old(line, line->events[line->count - 1].at - AS_HISTORY_SPAN_US);
    const size_t place = find_place(line, event->at);
    const size_t capacity = line->capacity;
    line->events = as_xgrow(line->events, line->count, &line->capacity, sizeof(*line->events));
    history->bytes += (line->capacity - capacity) * sizeof(*line->events);
    memmove(line->events + place + 1, line->events + place,
            (line->count - place) * sizeof(*line->events));
    line->events[place] = *event;
    line->count++;
    make_room(history);
}

void as_history_interrupt(struct as_history *history, as_wall_time at)
{
    const struct history_event event = {
        .at = at.us + 1, /* the size that was found at this moment still counts */
        .kind = HISTORY_SIZE,
        .value = AS_TIMELINE_UNKNOWN,
    };
    struct history_line *next;
    for (struct history_line *line = history->lines; line; line = next) {
        next = line->hh.next;
        /* nothing may be forgotten while this goes from line to line */
        const size_t growth = 2 * (line->capacity + 1) * FEW_EVENTS * sizeof(event);
        if (history->bytes + growth < history->bytes_max)
            history_add(history, line, &event);
        else
            forget_line(history, line);
    }
}
