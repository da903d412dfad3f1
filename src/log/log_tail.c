/*
 * What a crash leaves at the end of a file: a line without its end; or, after a power loss on some
 * file systems, blocks of NUL bytes in the part that was not synced. From there on the storage's
 * outbox has everything and writes it again; so it is cut off here. If whole records follow the
 * first such place, the bytes are saved in PATH.damaged: a crash alone loses nothing by the cut,
 * but a NUL that a person wrote must not make us destroy the records behind it.
 *
 * A whole line without NUL bytes that fails its check was changed by somebody. It is left alone
 * here; `alertscaler log verify` reports it.
 */
#include "log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/log/log_chain.h>

struct tail {
    const char *path;
    char *data; /* the window */
    uint64_t offset, size;
    struct as_audit_head head;
    bool has_record;
    uint64_t cut; /* offset in the window; == size: nothing to cut */
};

static int read_window(int fd, struct tail *tail, struct as_error *error)
{
    char *data = realloc(tail->data, tail->size + 1);
    size_t done = 0;

    if (!data) {
        as_error_set_errno(error, ENOMEM, "%s: read the end", tail->path);
        return -ENOMEM;
    }
    tail->data = data;
    while (done < tail->size) {
        ssize_t n = pread(fd, data + done, tail->size - done, (off_t)(tail->offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int code = n < 0 ? errno : EIO; /* it became shorter: another process writes to it */
            as_error_set_errno(error, code, "%s: read the end", tail->path);
            return -code;
        }
        done += (size_t)n;
    }
    return 0;
}

/* Checks the window's lines from `at` on. A window in the middle of the file begins with a part of
 * a line. */
static void scan_window(struct tail *tail, struct as_chain *chain)
{
    const char *at = tail->data, *end = tail->data + tail->size;
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);

    tail->has_record = false;
    tail->cut = tail->size;
    if (tail->offset) {
        const char *first = memchr(at, '\n', tail->size);
        at = first ? first + 1 : end;
    }
    while (at < end) {
        struct as_error error = AS_ERROR_INIT;
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((newline ? newline : end) - at);
        if (!newline || memchr(at, '\0', size)) {
            tail->cut = (uint64_t)(at - tail->data);
            return;
        }
        if (as_chain_verify_line(&verify, at, size, &error)) {
            as_log(AS_LOG_ERROR, "the action log was changed", AS_F("file", tail->path),
                   AS_F("error", error.text));
            struct as_chain_verify again = AS_CHAIN_VERIFY_INIT(chain);
            if (!as_chain_verify_line(&again, at, size, NULL))
                verify = again; /* a good record in the wrong place: continue from it */
        }
        if (verify.started) {
            tail->has_record = true;
            tail->head = verify.head;
        }
        at = newline + 1;
    }
}

/* Saves what will be cut, if it contains line ends. */
static int save_damaged(const struct tail *tail, struct as_error *error)
{
    const char *from = tail->data + tail->cut;
    size_t size = tail->size - tail->cut, done = 0;

    if (!memchr(from, '\n', size))
        return 0;
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s.damaged", tail->path);
    const int flags = O_WRONLY | O_APPEND;
    int fd = -1;
    int code = -as_file_open(path, AS_FILE_OWN, flags, &fd, NULL);
    if (code == ENOENT)
        code = -as_file_create(AT_FDCWD, path, flags, 0640, &fd);
    while (!code && done < size) {
        ssize_t n = write(fd, from + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            code = errno;
    }
    if (!code && fsync(fd))
        code = errno;
    if (fd >= 0)
        close(fd);
    if (code)
        as_error_set_errno(error, code, "%s: keep the damaged end of the action log", path);
    return -code;
}

static int cut_off(int fd, const struct tail *tail, struct as_error *error)
{
    uint64_t size = tail->offset + tail->cut;
    int status = save_damaged(tail, error);

    if (status)
        return status;
    if (ftruncate(fd, (off_t)size) || fsync(fd)) {
        int code = errno;
        as_error_set_errno(error, code, "%s: cut off the torn end", tail->path);
        return -code;
    }
    as_log(AS_LOG_WARN, "cut the torn end off the action log", AS_F("file", tail->path),
           AS_FI("bytes", tail->size - tail->cut), AS_FI("last_seq", tail->head.seq));
    return 0;
}

int as_audit_tail_recover(int fd, const char *path, uint64_t window, struct as_audit_head *head_out,
                          uint64_t *size_out, struct as_error *error)
{
    struct tail tail = {.path = path, .head = AS_AUDIT_HEAD_INIT};
    struct stat info;
    int status = 0;

    if (fstat(fd, &info)) {
        int code = errno;
        as_error_set_errno(error, code, "%s", path);
        return -code;
    }
    uint64_t size = (uint64_t)info.st_size;
    struct as_chain *chain = as_chain_new();
    do {
        tail.size = window < size ? window : size;
        tail.offset = size - tail.size;
        status = read_window(fd, &tail, error);
        if (!status)
            scan_window(&tail, chain);
        window *= 4;
    } while (!status && !tail.has_record && tail.offset);
    if (!status && tail.cut < tail.size)
        status = cut_off(fd, &tail, error);
    if (!status) {
        *head_out = tail.head;
        *size_out = tail.offset + tail.cut;
    }
    as_chain_free(chain);
    free(tail.data);
    return status;
}
