/*
 * File stamps: see the header. Separate from file.c, which reads files.
 */
#include <alertscaler/base/file_stamp.h>

#include <errno.h>
#include <sys/stat.h>

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

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool as_file_stamp_is_same(const struct as_file_stamp *a, const struct as_file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           is_same_time(a->modified, b->modified) && is_same_time(a->changed, b->changed);
}

bool as_file_stamp_settles(struct as_file_stamp *seen_io, const struct as_file_stamp *now)
{
    const bool is_same = as_file_stamp_is_same(seen_io, now);
    *seen_io = *now;
    return is_same || !now->is_fresh;
}
