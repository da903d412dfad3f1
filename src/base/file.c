/*
 * Files, opened and read whole. What is there is checked on the open file, not by its name: between
 * the check of a name and its opening another process may put something else there.
 */
#include <alertscaler/base/file.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>

#define CHUNK ((size_t)16 * 1024)

static int get_type_error(const struct stat *info, enum as_file_form form)
{
    if (S_ISDIR(info->st_mode))
        return -EISDIR;
    return S_ISREG(info->st_mode) || form == AS_FILE_INPUT ? 0 : -EMEDIUMTYPE;
}

int as_file_open(const char *path, enum as_file_form form, int flags, int *fd_out,
                 struct stat *info_out)
{
    static const int more[] = {
        [AS_FILE_CONFIGURED] = O_NONBLOCK,
        [AS_FILE_OWN] = O_NONBLOCK | O_NOFOLLOW,
        [AS_FILE_INPUT] = 0,
    };
    struct stat info;
    const int fd = open(path, flags | more[form] | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno == ENXIO ? -EMEDIUMTYPE : -errno; /* a socket, or a pipe without a reader */
    int status = fstat(fd, &info) == 0 ? 0 : -errno;
    if (status == 0)
        status = get_type_error(&info, form);
    if (status) {
        close(fd);
        return status;
    }
    if (info_out)
        *info_out = info;
    *fd_out = fd;
    return 0;
}

int as_file_create(int folder, const char *name, int flags, mode_t mode, int *fd_out)
{
    const int fd =
        openat(folder, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
    if (fd < 0)
        return -errno;
    *fd_out = fd;
    return 0;
}

int as_file_write_new(int folder, const char *name, mode_t mode, const char *text, size_t size)
{
    int fd;
    int status = as_file_create(folder, name, O_WRONLY, mode, &fd);
    if (status)
        return status;
    for (size_t done = 0; status == 0 && done < size;) {
        const ssize_t n = write(fd, text + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR)
            status = -errno;
    }
    if (close(fd) != 0 && status == 0)
        status = -errno;
    return status;
}

/* The folder stays the same one from here on, also if another process renames it. */
static int open_folder(const char *path, const char *name)
{
    AS_CLEANUP(as_free_p)
    char *folder = name == path ? as_xstrdup(".") : as_xstrndup(path, (size_t)(name - path));
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A device stays: other programs need it. */
static int check_replaceable(int folder, const char *name)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode) ? -EMEDIUMTYPE : 0;
}

int as_file_replace(const char *path, mode_t mode, const char *text, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint64_t number;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return -EIO;
    const int folder = open_folder(path, name);
    if (folder < 0)
        return -errno;
    AS_CLEANUP(as_free_p) char *beside = as_xasprintf(".%s.%016" PRIx64, name, number);
    int status = check_replaceable(folder, name);
    if (status == 0)
        status = as_file_write_new(folder, beside, mode, text, size);
    if (status == 0 && renameat(folder, beside, folder, name) != 0)
        status = -errno;
    if (status != 0 && status != -EEXIST)
        (void)unlinkat(folder, beside, 0);
    close(folder);
    return status;
}

int as_file_open_output(const char *path, int *fd_out)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0)
        return -errno;
    *fd_out = fd;
    return 0;
}

static int file_read_all(int fd, struct as_buf *buf)
{
    for (;;) {
        size_t room = buf->max - buf->size;
        if (room == 0)
            return -EFBIG;
        if (room > CHUNK)
            room = CHUNK;
        char *end = as_buf_reserve(buf, room);
        if (!end)
            return -ENOMEM;
        ssize_t got = read(fd, end, room);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        end[got] = '\0';
        if (got == 0)
            return 0;
        buf->size += (size_t)got;
    }
}

int as_file_read_open(int fd, size_t max, char **data_out, size_t *size_out)
{
    /* One byte more than allowed distinguishes "just fits" from "too large". A file that grows
     * meanwhile ends there too. */
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(max < SIZE_MAX - 1 ? max + 1 : max);
    const int status = file_read_all(fd, &buf);
    if (status)
        return status;
    *data_out = as_buf_take(&buf, size_out);
    return 0;
}

static int read_form(const char *path, enum as_file_form form, size_t max, char **data_out,
                     size_t *size_out)
{
    int fd;
    int status = as_file_open(path, form, O_RDONLY, &fd, NULL);
    if (status)
        return status;
    status = as_file_read_open(fd, max, data_out, size_out);
    close(fd);
    return status;
}

int as_file_read(const char *path, size_t max, char **data_out, size_t *size_out)
{
    return read_form(path, AS_FILE_CONFIGURED, max, data_out, size_out);
}

int as_file_read_input(const char *path, size_t max, char **data_out, size_t *size_out)
{
    return read_form(path, AS_FILE_INPUT, max, data_out, size_out);
}

/* By the clock of this machine. If the file system has another clock, a stamp may be fresh for
 * longer: then two looks decide. */
static bool is_fresh(struct timespec changed)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return true;
    const time_t seconds = now.tv_sec - changed.tv_sec;
    return seconds < 1 || (seconds == 1 && now.tv_nsec < changed.tv_nsec);
}

static struct as_file_stamp make_stamp(const struct stat *found)
{
    return (struct as_file_stamp){
        .device = found->st_dev,
        .inode = found->st_ino,
        .size = found->st_size,
        .modified = found->st_mtim,
        .changed = found->st_ctim,
        .is_fresh = is_fresh(found->st_ctim),
    };
}

int as_file_stamp_take(const char *path, struct as_file_stamp *stamp_out)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return -errno;
    *stamp_out = make_stamp(&found);
    return 0;
}

int as_file_stamp_take_own(const char *path, struct as_file_stamp *stamp_out)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return -errno;
    *stamp_out = make_stamp(&found);
    return 0;
}

static bool file_is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool as_file_stamp_is_same(const struct as_file_stamp *a, const struct as_file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           file_is_same_time(a->modified, b->modified) && file_is_same_time(a->changed, b->changed);
}

bool as_file_stamp_settles(struct as_file_stamp *seen_io, const struct as_file_stamp *now)
{
    const bool is_same = as_file_stamp_is_same(seen_io, now);
    *seen_io = *now;
    return is_same || !now->is_fresh;
}
