/*
 * The kill switch's file and annotation. Each check uses the file's name: the file may be replaced,
 * and its folder may come and go. Its content is read again only after a change.
 *
 * Every reader sees the content. So it comes only from a regular file with this one name: a
 * symbolic or hard link would show another file that the daemon may read, for example a token.
 * Anything else with this name sets the switch too, but nothing is read from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#include "daemon_private.h"

#define FILE_WHO       "kill switch file"
#define ANNOTATION_WHO "kill switch annotation"
#define FILE_MAX       ((size_t)64 * 1024)
#define NO_REASON      "no reason is written there"

struct as_kill_switch {
    char *path; /* NULL: none */
    bool is_set, is_blind, was_seen;
    struct as_file_stamp seen; /* when the content was last read */
    char reason[AS_OPERATOR_COMMAND_REASON_MAX];
    char *annotation; /* NULL: none */
};

struct as_kill_switch *as_kill_switch_new(void)
{
    return as_xcalloc(1, sizeof(struct as_kill_switch));
}

struct as_kill_switch *as_kill_switch_free(struct as_kill_switch *kill_switch)
{
    if (!kill_switch)
        return NULL;
    free(kill_switch->path);
    free(kill_switch->annotation);
    free(kill_switch);
    return NULL;
}

void as_kill_switch_set_file(struct as_kill_switch *kill_switch, const char *path)
{
    if (as_str_equal(kill_switch->path, path))
        return;
    free(kill_switch->path);
    kill_switch->path = path ? as_xstrdup(path) : NULL;
    kill_switch->is_set = kill_switch->is_blind = kill_switch->was_seen = false;
}

/* One line, without control characters. */
static void set_reason(char reason_out[AS_OPERATOR_COMMAND_REASON_MAX], const char *text,
                       size_t size)
{
    size_t kept = as_str_cut_utf8(text, size, AS_OPERATOR_COMMAND_REASON_MAX - 1);
    while (kept > 0 && (unsigned char)text[kept - 1] <= ' ')
        kept--;
    for (size_t i = 0; i < kept; i++)
        reason_out[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
    reason_out[kept] = '\0';
    if (kept == 0 || !as_str_is_utf8(reason_out, kept))
        memcpy(reason_out, NO_REASON, sizeof(NO_REASON));
}

void as_kill_switch_set_annotation(struct as_kill_switch *kill_switch, const char *reason)
{
    free(kill_switch->annotation);
    kill_switch->annotation = NULL;
    if (!reason)
        return;
    kill_switch->annotation = as_xmalloc(AS_OPERATOR_COMMAND_REASON_MAX);
    set_reason(kill_switch->annotation, reason, strlen(reason));
}

static int kill_switch_read_file(const char *path, char **text_out, size_t *size_out)
{
    struct stat info;
    int fd;
    int status = as_file_open(path, AS_FILE_OWN, O_RDONLY, &fd, &info);
    if (status)
        return status;
    status = info.st_nlink > 1 ? -EMLINK : as_file_read_open(fd, FILE_MAX, text_out, size_out);
    close(fd);
    return status;
}

static const char *kill_switch_explain(int status)
{
    switch (status) {
    case -ELOOP: return "the file is a symbolic link";
    case -EMLINK: return "the file has more than one hard link";
    default: return as_errno_get_text(status);
    }
}

/* Whatever prevents the reading: it exists, and that is enough. */
static void read_reason(struct as_kill_switch *kill_switch, const struct as_file_stamp *now)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    const int status = kill_switch_read_file(kill_switch->path, &text, &size);
    if (status == 0)
        set_reason(kill_switch->reason, text, size);
    else
        (void)snprintf(kill_switch->reason, sizeof(kill_switch->reason),
                       "the file's content is not shown: %s", kill_switch_explain(status));
    kill_switch->seen = *now;
}

/* Keeps the last state. If the file was never seen or missed, the switch counts as set: stopping is
 * safe. */
static void on_blind(struct as_kill_switch *kill_switch, int code)
{
    if (!kill_switch->was_seen && !kill_switch->is_set) {
        (void)snprintf(kill_switch->reason, sizeof(kill_switch->reason),
                       "whether the file is there cannot be looked at: %s", strerror(code));
        kill_switch->seen = (struct as_file_stamp){0};
        kill_switch->is_set = true;
    }
    if (!kill_switch->is_blind)
        as_log(AS_LOG_ERROR,
               kill_switch->was_seen ? "the kill switch cannot be looked at: it stays as it was"
                                     : "the kill switch cannot be looked at: it counts as set",
               AS_F("file", kill_switch->path), AS_F("error", strerror(code)));
    kill_switch->is_blind = true;
}

static void poll_file(struct as_kill_switch *kill_switch)
{
    struct as_file_stamp now;
    const int status = -as_file_stamp_take_own(kill_switch->path, &now);
    const bool is_there = status == 0, is_gone = status == ENOENT || status == ENOTDIR;
    if (!is_there && !is_gone) {
        on_blind(kill_switch, status);
        return;
    }
    if (is_there && (!kill_switch->is_set || !as_file_stamp_is_same(&now, &kill_switch->seen)))
        read_reason(kill_switch, &now);
    kill_switch->is_set = is_there;
    kill_switch->is_blind = false;
    kill_switch->was_seen = true;
}

struct as_halt as_kill_switch_poll(struct as_kill_switch *kill_switch)
{
    if (kill_switch->path)
        poll_file(kill_switch);
    if (kill_switch->path && kill_switch->is_set)
        return (struct as_halt){FILE_WHO, kill_switch->reason};
    if (kill_switch->annotation)
        return (struct as_halt){ANNOTATION_WHO, kill_switch->annotation};
    return (struct as_halt){FILE_WHO, NULL};
}
