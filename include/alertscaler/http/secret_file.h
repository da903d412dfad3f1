/*
 * A secret in a file that rotates. The file is checked at most once every `check_every_us`, and
 * read again if its inode, size or times have changed, once it has not changed for a second.
 *
 * If the file cannot be read, the last good content stays in use: a rotation is not always atomic,
 * and an old token is often still valid.
 */
#ifndef ALERTSCALER_HTTP_SECRET_FILE_H
#define ALERTSCALER_HTTP_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/time.h>

#define AS_SECRET_FILE_MAX ((size_t)64 * 1024) /* bytes of content */

struct as_secret_file {
    char *path;
    char *text;      /* NULL until the first successful read */
    bool is_expired; /* the server has refused the content */
    bool is_stale;   /* the file can no longer be read, and this was logged */
    as_mono_time check_at;
    struct as_file_stamp stamp;
    struct as_file_stamp seen; /* at the last look */
};

void as_secret_file_init(struct as_secret_file *file, const char *path); /* copies */
void as_secret_file_deinit(struct as_secret_file *file);                 /* wipes */

/*
 * The content without white space at its end, valid until the next call. 0; -ENOENT and other errno
 * values if the file was never readable; -EINVAL if it is empty or holds control characters (the
 * content becomes part of a header line). The error names the file, never its content.
 */
int as_secret_file_get(struct as_secret_file *file, as_mono_time now, int64_t check_every_us,
                       const char **text_out, struct as_error *error) AS_MUST_USE;

/* The server refused the content: the next as_secret_file_get reads the file in any case. */
void as_secret_file_expire(struct as_secret_file *file);

#endif
