/*
 * Preloaded into the program under test: makes one call of a class fail, the k-th of the whole
 * scenario. FAULTS names a file in which the calls are counted, over all processes that have it:
 *
 *   struct shared, as below; the test writes `chosen`, `at` and `size` and reads the rest.
 *
 * Classes: calls on files (never on standard error), on sockets, and allocations. What a failed
 * call returns is what the kernel could: the errno alternates with k.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum class { ALLOC, FILES, NET, CLASSES };

struct shared {
    _Atomic uint64_t counts[CLASSES];
    uint64_t chosen, at; /* at: 0 for none */
    _Atomic uint64_t failed;
    char name[32]; /* of the call that failed */
    uint64_t size; /* each malloc of so many bytes fails; 0 for none */
};

static struct shared *shared;
static int where = -1; /* the file FAULTS_WHERE, for the stacks of calls that failed */

__attribute__((constructor)) static void open_shared(void)
{
    const char *path = getenv("FAULTS");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (memory != MAP_FAILED)
        shared = memory;
    path = getenv("FAULTS_WHERE");
    where = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
}

static void tell_where(void)
{
    void *frames[40];
    backtrace_symbols_fd(frames, backtrace(frames, 40), where);
    if (write(where, "\n", 1) < 0)
        return;
}

/* Counts a call; true where it is the one that fails, with errno set. */
static bool fails(enum class class, const char *name)
{
    static const int errors[CLASSES][3] = {
        {ENOMEM, ENOMEM, ENOMEM}, {EIO, ENOSPC, EIO}, {ECONNRESET, EPIPE, ENOBUFS}};
    if (!shared)
        return false;
    const uint64_t number = atomic_fetch_add(&shared->counts[class], 1) + 1;
    if (shared->chosen != class || shared->at != number)
        return false;
    (void)strncpy(shared->name, name, sizeof(shared->name) - 1);
    atomic_fetch_add(&shared->failed, 1);
    if (where >= 0)
        tell_where();
    errno = errors[class][number % 3];
    return true;
}

static bool fails_with(enum class class, const char *name, int error)
{
    const bool it_does = fails(class, name);
    if (it_does)
        errno = error;
    return it_does;
}

/* By what is behind the descriptor; pipes, event descriptors and the like are left alone. */
static bool fails_on(int fd, const char *name)
{
    struct stat info;
    if (!shared || fd <= 2 || fstat(fd, &info) != 0)
        return false;
    if (S_ISSOCK(info.st_mode))
        return fails(NET, name);
    return S_ISREG(info.st_mode) && fails(FILES, name);
}

#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (!real)                                                                                     \
    real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* No dlsym for these: it allocates. The sanitizer's where it is there, else the C library's own. */
extern void *__interceptor_malloc(size_t) __attribute__((weak));
extern void *__interceptor_calloc(size_t, size_t) __attribute__((weak));
extern void *__interceptor_realloc(void *, size_t) __attribute__((weak));
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

void *malloc(size_t size)
{
    if (fails(ALLOC, "malloc") || (shared && size > 0 && size == shared->size))
        return NULL;
    return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (fails(ALLOC, "calloc"))
        return NULL;
    return __interceptor_calloc ? __interceptor_calloc(count, size) : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (fails(ALLOC, "realloc"))
        return NULL;
    return __interceptor_realloc ? __interceptor_realloc(old, size) : __libc_realloc(old, size);
}

/* Libraries and the system's own files are no subject: a path is counted from when the program runs
 * on its own. */
static bool is_counted(const char *path)
{
    return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 &&
           strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/etc/", 5) != 0 &&
           strncmp(path, "/usr/", 5) != 0 && strncmp(path, "/lib", 4) != 0;
}

#define OPEN(name, fails_here, ...)                                                                \
    REAL(name);                                                                                    \
    mode_t mode = 0;                                                                               \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                           \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }                                                                                              \
    if (is_counted(path) && fails_with(FILES, #name, fails_here))                                  \
        return -1;                                                                                 \
    return real(__VA_ARGS__, flags, mode)

int open(const char *path, int flags, ...)
{
    OPEN(open, EMFILE, path);
}

int open64(const char *path, int flags, ...)
{
    OPEN(open64, EIO, path);
}

int openat(int at, const char *path, int flags, ...)
{
    OPEN(openat, EMFILE, at, path);
}

int openat64(int at, const char *path, int flags, ...)
{
    OPEN(openat64, EMFILE, at, path);
}

#define ON_FD(type, name, parameters, ...)                                                         \
    type name parameters                                                                           \
    {                                                                                              \
        REAL(name);                                                                                \
        return fails_on(fd, #name) ? -1 : real(__VA_ARGS__);                                       \
    }

ON_FD(ssize_t, read, (int fd, void *data, size_t size), fd, data, size)
ON_FD(ssize_t, write, (int fd, const void *data, size_t size), fd, data, size)
ON_FD(ssize_t, readv, (int fd, const struct iovec *parts, int count), fd, parts, count)
ON_FD(ssize_t, writev, (int fd, const struct iovec *parts, int count), fd, parts, count)
ON_FD(ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), fd, data, size, at)
ON_FD(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), fd, data, size, at)
ON_FD(ssize_t, pread, (int fd, void *data, size_t size, off_t at), fd, data, size, at)
ON_FD(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), fd, data, size, at)
ON_FD(int, fsync, (int fd), fd)
ON_FD(int, fdatasync, (int fd), fd)
ON_FD(int, ftruncate, (int fd, off_t size), fd, size)
ON_FD(int, ftruncate64, (int fd, off64_t size), fd, size)
ON_FD(int, fallocate, (int fd, int mode, off_t at, off_t size), fd, mode, at, size)
ON_FD(int, flock, (int fd, int operation), fd, operation)

ON_FD(ssize_t, send, (int fd, const void *data, size_t size, int flags), fd, data, size, flags)
ON_FD(ssize_t, recv, (int fd, void *data, size_t size, int flags), fd, data, size, flags)
ON_FD(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), fd, message, flags)
ON_FD(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), fd, message, flags)
ON_FD(int, listen, (int fd, int backlog), fd, backlog)
ON_FD(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size), fd, level,
      name, value, size)

int rename(const char *from, const char *to)
{
    REAL(rename);
    return fails(FILES, "rename") ? -1 : real(from, to);
}

int unlink(const char *path)
{
    REAL(unlink);
    return fails(FILES, "unlink") ? -1 : real(path);
}

int socket(int domain, int type, int protocol)
{
    REAL(socket);
    return fails_with(NET, "socket", EMFILE) ? -1 : real(domain, type, protocol);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    REAL(connect);
    return fails_with(NET, "connect", ECONNREFUSED) ? -1 : real(fd, address, size);
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    REAL(bind);
    return fails_with(NET, "bind", EADDRINUSE) ? -1 : real(fd, address, size);
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    REAL(accept4);
    return fails_with(NET, "accept4", EMFILE) ? -1 : real(fd, address, size, flags);
}
