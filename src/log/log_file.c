/*
 * Action log in a file: the sink that appends lines, rotates files, and repairs the end of a
 * file after a crash.
 *
 * Invariants: while `failed` is 0, `size` and `head` describe the content of the open file;
 * renamed files are synced. The file is locked (flock), so that two processes cannot mix two
 * chains in it. The sink does not know the outbox: the storage appends what is missing at the
 * end of the file.
 */
#include <alertscaler/log/log_file.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_chain.h>

/*
 * End of a file after a crash: a line without its end; or, after a power loss on some file
 * systems, blocks of NUL bytes in the part that was not synced. The storage's outbox has all
 * records from there on and writes them again; so the end is cut off.
 *
 * If whole records follow the first such place, the bytes are saved in PATH.damaged: a crash
 * alone loses nothing by the cut, but a NUL that a person wrote must not make alertscaler
 * destroy the records behind it.
 *
 * A whole line without NUL bytes that fails its check was changed by a person. It is left alone
 * here; `alertscaler log verify` reports it.
 */

struct tail {
    const char *path;
    char *data; /* the window */
    uint64_t offset, size;
    struct as_audit_head head;
    bool has_record;
    uint64_t cut; /* offset in the window; == size: nothing to cut */
};

static int tail_read_window(int fd, struct tail *tail, struct as_error *error)
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
static void tail_scan_window(struct tail *tail, struct as_chain *chain)
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
static int tail_save_damaged(const struct tail *tail, struct as_error *error)
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

static int tail_cut_off(int fd, const struct tail *tail, struct as_error *error)
{
    uint64_t size = tail->offset + tail->cut;
    int status = tail_save_damaged(tail, error);

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
        status = tail_read_window(fd, &tail, error);
        if (!status)
            tail_scan_window(&tail, chain);
        window *= 4;
    } while (!status && !tail.has_record && tail.offset);
    if (!status && tail.cut < tail.size)
        status = tail_cut_off(fd, &tail, error);
    if (!status) {
        *head_out = tail.head;
        *size_out = tail.offset + tail.cut;
    }
    as_chain_free(chain);
    free(tail.data);
    return status;
}

/* Sink. */

#define FILES_MAX      1000 /* rotated files, unless `keep` is more */
#define TAIL_WINDOW    (UINT64_C(16) << 20)
#define SIBLING_WINDOW (UINT64_C(64) << 10)

struct audit_file {
    struct as_audit port;
    char *path;
    char *directory;  /* "." if the path has no slash */
    const char *name; /* in path */
    uint64_t max_size;
    unsigned keep;
    int fd;          /* -1: closed */
    uint64_t number; /* number of the open file */
    uint64_t size;
    struct as_audit_head head;
    int failed; /* 0, or the negative errno of the failure */
};

static int file_fail(struct audit_file *file, int code, const char *what, struct as_error *error)
{
    file->failed = -code;
    as_error_set_errno(error, code, "action log %s: %s", file->path, what);
    return -code;
}

static int sync_directory(struct audit_file *file, struct as_error *error)
{
    int fd = open(file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) ? errno : 0;

    if (fd >= 0)
        close(fd);
    return code ? file_fail(file, code, "sync its directory", error) : 0;
}

/* Opens and locks the file of the configured name; creates it if it does not exist. */
static int open_current(struct audit_file *file, struct as_error *error)
{
    struct stat info;
    const int flags = O_RDWR | O_APPEND;
    file->fd = -1; /* if nothing is opened */
    int status = as_file_open(file->path, AS_FILE_OWN, flags, &file->fd, &info);
    const bool created = status == -ENOENT;

    if (created) {
        status = as_file_create(AT_FDCWD, file->path, flags, 0640, &file->fd);
        info.st_size = 0;
    }
    if (status)
        return file_fail(file, -status, "open", error);
    if (flock(file->fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return file_fail(file, errno, "lock", error);
        file->failed = -EBUSY;
        as_error_set(error, "action log %s is in use by another alertscaler", file->path);
        return -EBUSY;
    }
    file->size = (uint64_t)info.st_size;
    file->number++;
    return created ? sync_directory(file, error) : 0;
}

static void close_current(struct audit_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static int read_sibling(struct audit_file *file, const char *name, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", file->directory, name);
    struct as_audit_head head;
    uint64_t size;
    int fd;

    if (as_file_open(path, AS_FILE_OWN, O_RDWR, &fd, NULL))
        return 0; /* we may not write to it, so we have not appended to it */
    int status = as_audit_tail_recover(fd, path, SIBLING_WINDOW, &head, &size, error);
    if (!status && head.seq > file->head.seq)
        file->head = head;
    close(fd);
    return status;
}

/* The present file is empty: the chain's end is in the newest renamed file. */
static int read_siblings(struct audit_file *file, struct as_error *error)
{
    DIR *directory = opendir(file->directory);
    int status = 0;

    if (!directory)
        return file_fail(file, errno, "read its directory", error);
    for (struct dirent *entry; !status && (entry = readdir(directory));)
        if (as_audit_file_is_rotated(file->name, entry->d_name))
            status = read_sibling(file, entry->d_name, error);
    closedir(directory);
    return status;
}

/* PATH for 0, else PATH.number. */
static char *rotated_name(const struct audit_file *file, unsigned number)
{
    return number ? as_xasprintf("%s.%u", file->path, number) : as_xstrdup(file->path);
}

static bool find_size(const struct audit_file *file, unsigned number, uint64_t *size_out)
{
    AS_CLEANUP(as_free_p) char *name = rotated_name(file, number);
    struct stat info;

    if (stat(name, &info))
        return false;
    *size_out = (uint64_t)info.st_size;
    return true;
}

/* Makes room for one more rotated file. `keep` counts full files: a part that began after a change
 * of the leader ends small, so the oldest file stays as long as all of them together are no larger
 * than `keep` full ones. *count_out: the files left, whose numbers are 1, 2, ... without a gap. */
static int delete_oldest(struct audit_file *file, unsigned *count_out, struct as_error *error)
{
    const uint64_t full = file->max_size ? file->max_size : UINT64_MAX;
    const uint64_t bytes_max = full > UINT64_MAX / file->keep ? UINT64_MAX : full * file->keep;
    const unsigned files_max = file->keep > FILES_MAX ? file->keep : FILES_MAX;
    uint64_t bytes = file->size, size;
    unsigned count = 0;

    while (find_size(file, count + 1, &size)) {
        bytes += size;
        count++;
    }
    while (count >= file->keep && (bytes > bytes_max || count >= files_max) &&
           find_size(file, count, &size)) {
        AS_CLEANUP(as_free_p) char *oldest = rotated_name(file, count);
        if (unlink(oldest))
            return file_fail(file, errno, "delete the oldest file", error);
        bytes -= size;
        count--;
    }
    *count_out = count;
    return 0;
}

static int file_rotate(struct audit_file *file, struct as_error *error)
{
    unsigned count = 0;

    if (fdatasync(file->fd))
        return file_fail(file, errno, "sync before rotation", error);
    int status = delete_oldest(file, &count, error);
    if (status)
        return status;
    for (unsigned number = count + 1; number > 0; number--) {
        AS_CLEANUP(as_free_p) char *from = rotated_name(file, number - 1);
        AS_CLEANUP(as_free_p) char *to = rotated_name(file, number);
        if (rename(from, to) && errno != ENOENT)
            return file_fail(file, errno, "rename for rotation", error);
    }
    close_current(file);
    status = open_current(file, error);
    if (!status)
        status = sync_directory(file, error);
    if (!status)
        as_log(AS_LOG_INFO, "rotated the action log", AS_F("file", file->path),
               AS_FI("last_seq", file->head.seq));
    return status;
}

static struct as_audit_head file_get_head(const struct as_audit *self)
{
    return ((const struct audit_file *)self)->head;
}

static struct as_audit_place file_get_place(const struct as_audit *self)
{
    const struct audit_file *file = (const struct audit_file *)self;
    const uint64_t max = file->max_size ? file->max_size : UINT64_MAX;

    return (struct as_audit_place){file->number, file->size < max ? max - file->size : 0};
}

static int file_refuse(const struct audit_file *file, struct as_error *error)
{
    as_error_set_errno(error, file->failed, "action log %s: failed before", file->path);
    return file->failed;
}

static int file_append(struct as_audit *self, const char *lines, size_t size,
                       const struct as_audit_head *head, struct as_error *error)
{
    struct audit_file *file = (struct audit_file *)self;
    size_t done = 0;

    if (file->failed)
        return file_refuse(file, error);
    if (file->max_size && file->size && file->size + size > file->max_size) {
        int status = file_rotate(file, error);
        if (status)
            return status;
    }
    while (done < size) {
        ssize_t n = write(file->fd, lines + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return file_fail(file, n < 0 ? errno : EIO, "write", error);
        done += (size_t)n;
        file->size += (size_t)n;
    }
    file->head = *head;
    return 0;
}

static int file_begin_part(struct as_audit *self, const struct as_audit_head *head,
                           struct as_error *error)
{
    struct audit_file *file = (struct audit_file *)self;
    int status = file->failed ? file_refuse(file, error) : 0;

    if (!status && file->size)
        status = file_rotate(file, error);
    if (!status)
        file->head = *head;
    return status;
}

static int file_sync(struct as_audit *self, struct as_error *error)
{
    struct audit_file *file = (struct audit_file *)self;

    if (file->failed)
        return file_refuse(file, error);
    return fdatasync(file->fd) ? file_fail(file, errno, "sync", error) : 0;
}

static int file_reopen(struct as_audit *self, struct as_error *error)
{
    struct audit_file *file = (struct audit_file *)self;
    struct as_audit_head head;
    int status = file_sync(self, error);

    if (status)
        return status;
    close_current(file);
    status = open_current(file, error);
    if (!status)
        status =
            as_audit_tail_recover(file->fd, file->path, SIBLING_WINDOW, &head, &file->size, error);
    if (!status)
        as_log(AS_LOG_INFO, "reopened the action log", AS_F("file", file->path),
               AS_FI("last_seq", file->head.seq));
    else
        file->failed = status;
    return status; /* keep our own head: the chain continues across files */
}

static void file_close(struct as_audit *self)
{
    struct audit_file *file = (struct audit_file *)self;

    close_current(file);
    free(file->path);
    free(file->directory);
    free(file);
}

int as_audit_file_open(const struct as_audit_file_config *config, struct as_audit **audit_out,
                       struct as_error *error)
{
    struct audit_file *file = as_xcalloc(1, sizeof(*file));

    file->port = (struct as_audit){.get_head = file_get_head,
                                   .append = file_append,
                                   .begin_part = file_begin_part,
                                   .sync = file_sync,
                                   .reopen = file_reopen,
                                   .get_place = file_get_place,
                                   .close = file_close};
    file->path = as_xstrdup(config->path);
    const char *slash = strrchr(file->path, '/');
    file->name = slash ? slash + 1 : file->path;
    if (!slash)
        file->directory = as_xstrdup(".");
    else
        file->directory =
            as_xstrndup(file->path, slash > file->path ? (size_t)(slash - file->path) : 1);
    file->max_size = config->max_size;
    file->keep = config->keep ? config->keep : 1;
    file->head = AS_AUDIT_HEAD_INIT;

    int status = open_current(file, error);
    if (!status)
        status = as_audit_tail_recover(file->fd, file->path, TAIL_WINDOW, &file->head, &file->size,
                                       error);
    if (!status && !file->size)
        status = read_siblings(file, error);
    if (status) {
        file_close(&file->port);
        return status;
    }
    *audit_out = &file->port;
    return 0;
}
