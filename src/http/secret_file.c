/*
 * A secret in a file that rotates: see the header.
 */
#include <alertscaler/http/secret_file.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

void as_secret_file_init(struct as_secret_file *file, const char *path)
{
    *file = (struct as_secret_file){.path = as_xstrdup(path), .check_at = {INT64_MIN}};
}

void as_secret_file_deinit(struct as_secret_file *file)
{
    as_wipe_free(file->text);
    free(file->path);
    *file = (struct as_secret_file){0};
}

static int check_text(const char *text, size_t size, const char *path, struct as_error *error)
{
    if (size == 0) {
        as_error_set(error, "%s: is empty", path);
        return -EINVAL;
    }
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            as_error_set(error, "%s: holds a line break or another control character", path);
            return -EINVAL;
        }
    }
    return 0;
}

static int read_text(const char *path, char **text_out, struct as_error *error)
{
    char *text;
    size_t size;
    int status = as_file_read(path, AS_SECRET_FILE_MAX, &text, &size);
    if (status) {
        as_error_set_errno(error, status, "%s", path);
        return status;
    }
    while (size > 0 && memchr(" \t\r\n", text[size - 1], 4))
        text[--size] = '\0';
    status = check_text(text, size, path, error);
    if (status) {
        as_wipe_free(text);
        return status;
    }
    *text_out = text;
    return 0;
}

#define SETTLE_US (1 * AS_US_PER_S)

/* Takes the stamp before reading: a change in between is found the next time. -EAGAIN: the file may
 * be half written, and the old content stays. */
static int refresh(struct as_secret_file *file, struct as_error *error)
{
    struct as_file_stamp now;
    char *text;
    int status = as_file_stamp_take(file->path, &now);
    if (status) {
        as_error_set_errno(error, status, "%s", file->path);
        return status;
    }
    if (file->text && as_file_stamp_is_same(&file->stamp, &now))
        return 0;
    const bool has_settled = as_file_stamp_settles(&file->seen, &now);
    if (!has_settled && file->text && !file->is_expired)
        return -EAGAIN;
    status = read_text(file->path, &text, error);
    if (status)
        return status;
    as_wipe_free(file->text);
    file->text = text;
    file->stamp = now;
    file->is_expired = false;
    return 0;
}

int as_secret_file_get(struct as_secret_file *file, as_mono_time now, int64_t check_every_us,
                       const char **text_out, struct as_error *error)
{
    if (now.us >= file->check_at.us) {
        struct as_error problem = AS_ERROR_INIT;
        int status = refresh(file, &problem);
        if (status == -EAGAIN && file->text) {
            file->check_at.us = as_time_add(now.us, SETTLE_US);
            *text_out = file->text;
            return 0;
        }
        if (status && !file->text) {
            as_error_set(error, "%s", problem.text);
            return status;
        }
        if (status && !file->is_stale)
            as_log(AS_LOG_WARN, "secret file unreadable, using its last content",
                   AS_F("error", problem.text));
        if (!status && file->is_stale)
            as_log(AS_LOG_INFO, "secret file read again", AS_F("file", file->path));
        file->is_stale = status != 0;
        file->check_at.us = as_time_add(now.us, check_every_us);
    }
    *text_out = file->text;
    return 0;
}

void as_secret_file_expire(struct as_secret_file *file)
{
    file->check_at.us = INT64_MIN;
    file->stamp = (struct as_file_stamp){.size = -1};
    file->is_expired = true;
}
