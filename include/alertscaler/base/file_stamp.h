/*
 * What a file looks like from outside: another one at its path, other content or other rights give
 * another stamp. For files that are read again when they have changed: take the stamp, then read,
 * so that a change in between is seen the next time; keep the stamp of what could be read only.
 */
#ifndef ALERTSCALER_BASE_FILE_STAMP_H
#define ALERTSCALER_BASE_FILE_STAMP_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include <alertscaler/base/attr.h>

struct as_file_stamp {
    bool is_file; /* no folder, pipe or device */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified; /* its content */
    struct timespec changed;  /* its owner and rights too: `chmod` alone may make it readable */
};

/* Of the file that the path leads to. 0; or a negative errno. */
int as_file_stamp_take(const char *path, struct as_file_stamp *stamp_out) AS_MUST_USE;
bool as_file_stamp_is_same(const struct as_file_stamp *a, const struct as_file_stamp *b);

#endif
