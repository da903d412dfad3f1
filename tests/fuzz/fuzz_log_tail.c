/*
 * Any bytes as the action log's file after a crash or a foreign write: bytes after the last good
 * record are cut off or left, bytes before it stay untouched, and a second look has nothing more to
 * do. (If the file is larger than the window, the second look, at a shorter file, begins further in
 * front and may find NULs there.)
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

#include "fuzz.h"
#include <alertscaler/log/log_file.h>

/* In no directory: what is damaged cannot be kept, which is an outcome of its own. */
#define NOWHERE "/proc/self/fd/none/log"

static int recover(int fd, uint64_t window, struct as_audit_head *head, uint64_t *size)
{
    struct as_error error = AS_ERROR_INIT;
    const int r = as_audit_tail_recover(fd, NOWHERE, window, head, size, &error);
    FUZZ_CHECK(r == 0 || (r < 0 && *error.text));
    return r;
}

static uint64_t get_size(int fd)
{
    struct stat info;
    FUZZ_CHECK(fstat(fd, &info) == 0);
    return (uint64_t)info.st_size;
}

static void check(const uint8_t *data, size_t size, uint64_t window)
{
    struct as_audit_head head = AS_AUDIT_HEAD_INIT, again = AS_AUDIT_HEAD_INIT;
    uint64_t left = 0, left_again = 0;
    AS_CLEANUP(as_free_p) char *kept = as_xmalloc(size + 1);
    const int fd = memfd_create("log", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    if (recover(fd, window, &head, &left) != 0) {
        left = size; /* whole lines behind the damage that could not be saved: nothing is cut */
        FUZZ_CHECK(get_size(fd) == size);
    } else {
        FUZZ_CHECK(left <= size && get_size(fd) == left);
        const int r = recover(fd, window, &again, &left_again);
        if (size <= window) {
            FUZZ_CHECK(r == 0 && left_again == left && again.seq == head.seq);
            FUZZ_CHECK(strcmp(again.hash, head.hash) == 0);
        } else if (r == 0) {
            FUZZ_CHECK(left_again <= left);
            left = left_again;
        }
    }
    FUZZ_CHECK(pread(fd, kept, size, 0) == (ssize_t)left);
    FUZZ_CHECK(memcmp(kept, data, left) == 0);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, -1);
    check(data, size, (uint64_t)16 << 20);
    check(data, size, 64); /* in the middle of lines */
    return 0;
}
