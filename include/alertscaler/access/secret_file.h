/*
 * A secret in a file that rotates: read again when the file has become another one (its inode,
 * size or times differ), looked at no more often than every so many microseconds.
 *
 * While the file cannot be read, the last good content goes on being used: a rotation is not
 * atomic everywhere, and an old token may well be good still.
 */
#ifndef ALERTSCALER_ACCESS_SECRET_FILE_H
#define ALERTSCALER_ACCESS_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file_stamp.h>
#include <alertscaler/base/time.h>

#define AS_SECRET_FILE_MAX ((size_t)64 * 1024) /* bytes of its content */

struct as_secret_file {
    char *path;
    char *text;    /* NULL until it was read once */
    bool is_stale; /* the file cannot be read any more, which was said */
    as_mono_time check_at;
    struct as_file_stamp stamp;
};

void as_secret_file_init(struct as_secret_file *file, const char *path); /* copies */
void as_secret_file_deinit(struct as_secret_file *file);                 /* wipes */

/*
 * The content without white space at its end; good until the next call. 0; -ENOENT and the like
 * where the file was never readable; -EINVAL when it is empty or holds control characters (it goes
 * into a header line). The error names the file, never its content.
 */
int as_secret_file_get(struct as_secret_file *file, as_mono_time now, int64_t check_every_us,
                       const char **text_out, struct as_error *error) AS_MUST_USE;

/* The next get reads the file whatever it looks like: the other side did not accept the content. */
void as_secret_file_expire(struct as_secret_file *file);

#endif
