/*
 * The older file first. Times never go back: a record that claims an earlier time than the one
 * before it counts as of that one's time, and one that claims a time after the start is skipped.
 */
#include <alertscaler/ui/history_fill.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/tools/record_text.h>

#include "history_private.h"

#define PIECE    ((size_t)64 * 1024)   /* read in one turn */
#define LINE_MAX ((size_t)1024 * 1024) /* a longer one is skipped */
#define PAUSE_US 1000                  /* between turns */
#define FILES    2

struct log_part {
    int fd; /* -1: none */
    uint64_t at, end;
    bool is_cut; /* it begins within a line */
};

struct as_history_fill {
    struct as_history *history;
    struct event *timer;
    struct log_part parts[FILES]; /* ascending by time */
    size_t part;                  /* the present one; FILES: done */
    struct as_buf rest;           /* a line whose end is not read yet */
    bool skips;                   /* up to the line's end */
    as_wall_time started, previous;
    uint64_t records, unreadable;
};

static uint64_t open_part(struct log_part *part, const char *path, uint64_t bytes_max)
{
    struct stat st;
    if (as_file_open(path, AS_FILE_OWN, O_RDONLY, &part->fd, &st) != 0)
        return 0;
    part->end = (uint64_t)st.st_size;
    part->at = part->end > bytes_max ? part->end - bytes_max : 0;
    part->is_cut = part->at > 0;
    return part->end - part->at;
}

static void close_part(struct log_part *part)
{
    if (part->fd >= 0)
        close(part->fd);
    part->fd = -1;
}

static void take_line(struct as_history_fill *fill, const char *line, size_t size)
{
    as_wall_time at;
    struct as_error error;
    json_t *record = json_loadb(line, size, 0, NULL);
    if (!record || as_record_get_time(record, &at, &error) != 0 || at.us > fill->started.us) {
        fill->unreadable++;
    } else {
        at.us = at.us < fill->previous.us ? fill->previous.us : at.us;
        as_history_take_record(fill->history, record, at, fill->previous);
        fill->previous = at;
        fill->records++;
    }
    json_decref(record);
}

static void take_piece(struct as_history_fill *fill, const char *piece, size_t size)
{
    while (size > 0) {
        const char *newline = memchr(piece, '\n', size);
        const size_t length = newline ? (size_t)(newline - piece) : size;
        if (!fill->skips)
            as_buf_append(&fill->rest, piece, length);
        if (newline && !fill->skips && as_buf_check(&fill->rest) == 0 && fill->rest.size > 0)
            take_line(fill, fill->rest.data, fill->rest.size);
        else if (as_buf_check(&fill->rest) != 0)
            fill->skips = true;
        if (newline) {
            fill->skips = false;
            as_buf_clear(&fill->rest);
        }
        size -= newline ? length + 1 : length;
        piece += newline ? length + 1 : length;
    }
}

static void end(struct as_history_fill *fill)
{
    if (fill->records > 0)
        as_history_interrupt(fill->history, fill->previous);
    as_buf_deinit(&fill->rest);
    as_log(AS_LOG_DEBUG, "history filled from the action log",
           AS_FI("records", (int64_t)fill->records),
           AS_FI("unreadable", (int64_t)fill->unreadable));
}

/* A torn last line is dropped with the rest. */
static void next_part(struct as_history_fill *fill)
{
    close_part(&fill->parts[fill->part]);
    as_buf_clear(&fill->rest);
    fill->part++;
    fill->skips = fill->part < FILES && fill->parts[fill->part].is_cut;
}

static void arm(struct as_history_fill *fill)
{
    static const struct timeval pause = {.tv_usec = PAUSE_US};
    if (evtimer_add(fill->timer, &pause) != 0)
        abort(); /* only without memory */
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    struct as_history_fill *fill = context;
    char piece[PIECE];
    struct log_part *part = &fill->parts[fill->part];
    const uint64_t left = part->fd >= 0 ? part->end - part->at : 0;
    const ssize_t count =
        left > 0 ? pread(part->fd, piece, left < PIECE ? left : PIECE, (off_t)part->at) : 0;
    if (count > 0) {
        part->at += (uint64_t)count;
        take_piece(fill, piece, (size_t)count);
    } else if (count == 0 || errno != EINTR) {
        next_part(fill);
    }
    if (as_history_fill_is_done(fill))
        end(fill);
    else
        arm(fill);
}

struct as_history_fill *as_history_fill_new(struct as_history *history, struct event_base *base,
                                            const char *path, uint64_t bytes_max)
{
    struct as_history_fill *fill = as_xcalloc(1, sizeof(*fill));
    fill->history = history;
    fill->rest = AS_BUF_INIT_OPEN(LINE_MAX);
    fill->started = as_system_clock.get_wall(&as_system_clock);
    history->started_us = fill->started.us;
    fill->parts[0].fd = fill->parts[1].fd = -1;
    if (path) {
        AS_CLEANUP(as_free_p) char *rotated = as_xasprintf("%s.1", path);
        const uint64_t bytes = open_part(&fill->parts[1], path, bytes_max);
        if (bytes < bytes_max)
            (void)open_part(&fill->parts[0], rotated, bytes_max - bytes);
    }
    fill->skips = fill->parts[0].is_cut;
    fill->timer = evtimer_new(base, on_timer, fill);
    if (!fill->timer)
        abort();
    arm(fill);
    return fill;
}

struct as_history_fill *as_history_fill_free(struct as_history_fill *fill)
{
    if (!fill)
        return NULL;
    for (size_t i = 0; i < FILES; i++)
        close_part(&fill->parts[i]);
    event_free(fill->timer);
    as_buf_deinit(&fill->rest);
    free(fill);
    return NULL;
}

bool as_history_fill_is_done(const struct as_history_fill *fill)
{
    return fill->part == FILES;
}
