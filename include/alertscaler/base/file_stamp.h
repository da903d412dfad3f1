/*
 * The identity of a file's content: another file at the path, other content or other permissions
 * give another stamp. For files that are read again when they change. Take the stamp first, then
 * read: so a change in between is found the next time. Keep the stamp only if the read succeeded.
 *
 * Another process may be writing a changed file. It is read when it has not changed for a second.
 */
#ifndef ALERTSCALER_BASE_FILE_STAMP_H
#define ALERTSCALER_BASE_FILE_STAMP_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include <alertscaler/base/attr.h>

struct as_file_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified; /* of the content */
    struct timespec changed;  /* of owner or permissions, too: `chmod` may make it readable */
    bool is_fresh;            /* less than a second before the stamp was taken; not compared */
};

/* Follows symbolic links. 0, or a negative errno. */
int as_file_stamp_take(const char *path, struct as_file_stamp *stamp_out) AS_MUST_USE;
/* The same of whatever has this name, also of a link itself. */
int as_file_stamp_take_own(const char *path, struct as_file_stamp *stamp_out) AS_MUST_USE;
/* Whether a changed file may be read now: it is not fresh, or is the same as at the last look, a
 * second ago or earlier. Keeps `now` as the last look. */
bool as_file_stamp_settles(struct as_file_stamp *seen_io, const struct as_file_stamp *now);
bool as_file_stamp_is_same(const struct as_file_stamp *a, const struct as_file_stamp *b);

#endif
