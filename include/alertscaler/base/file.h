/*
 * The one module that opens files; `tests/arch/files.py` holds the tree to it.
 *
 * Another process may have put anything in the place of a file: a link to a secret, a pipe without
 * a writer, a device. So each file is opened in a form, which says what may be there. No form but
 * AS_FILE_INPUT ever waits for another process.
 */
#ifndef ALERTSCALER_BASE_FILE_H
#define ALERTSCALER_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <alertscaler/base/attr.h>

enum as_file_form {
    AS_FILE_CONFIGURED, /* a regular file, or a link to one: ConfigMaps and Secrets are links */
    AS_FILE_OWN,        /* a regular file, not a link: alertscaler writes the file, or shows it */
    AS_FILE_INPUT,      /* anything that a person names for one command: also a pipe, as <(...) */
};

/*
 * Opens an existing file with these flags of open(2), close-on-exec. `info_out` (NULL: not wanted)
 * is the state of the open file. 0, or a negative errno: -EISDIR for a folder, -EMEDIUMTYPE for
 * anything else that is not a regular file, -ELOOP for a link in the form AS_FILE_OWN.
 */
int as_file_open(const char *path, enum as_file_form form, int flags, int *fd_out,
                 struct stat *info_out) AS_MUST_USE;

/* Creates a file of alertscaler's in a folder (or AT_FDCWD). -EEXIST if the name is taken, also by
 * a link. */
int as_file_create(int folder, const char *name, int flags, mode_t mode, int *fd_out) AS_MUST_USE;

/* Creates a file as above, with this content. A failure may leave a part of it. */
int as_file_write_new(int folder, const char *name, mode_t mode, const char *text,
                      size_t size) AS_MUST_USE;

/* Puts a new file with this content in the place of whatever has this name. A link is replaced, and
 * its target stays as it is. -EMEDIUMTYPE: a device has the name. A failure changes nothing. */
int as_file_replace(const char *path, mode_t mode, const char *text, size_t size) AS_MUST_USE;

/* Opens or creates what a person names for the output of one command, as a shell's `>` does. */
int as_file_open_output(const char *path, int *fd_out) AS_MUST_USE;

/* As as_file_read (str.h), which reads in the form AS_FILE_CONFIGURED: in the form AS_FILE_INPUT.
 */
int as_file_read_input(const char *path, size_t max, char **data_out, size_t *size_out) AS_MUST_USE;
/* The same from an open file, which stays open. */
int as_file_read_open(int fd, size_t max, char **data_out, size_t *size_out) AS_MUST_USE;

/*
 * The identity of a file's content: another file at the path, other content or other permissions
 * give another stamp. For files that are read again when they change. Take the stamp first, then
 * read: so a change in between is found the next time. Keep the stamp only if the read succeeded.
 *
 * Another process may be writing a changed file. It is read when it has not changed for a second.
 */

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
