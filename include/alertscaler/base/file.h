/*
 * The one module that opens files; `tests/arch/files.py` holds the tree to it.
 *
 * Another process may have put anything in the place of a file: a link to a secret, a pipe without
 * a writer, a device. So each file is opened in a form, which says what may be there. No form but
 * AS_FILE_INPUT ever waits for another process.
 */
#ifndef ALERTSCALER_BASE_FILE_H
#define ALERTSCALER_BASE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

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

#endif
