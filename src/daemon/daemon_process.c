/*
 * The daemon's own process: its name, its rights to write, its limit of open files, its memory, and
 * its messages to systemd.
 * Nothing here knows the configuration.
 */
#include <alertscaler/daemon/daemon_process.h>

#include <errno.h>
#include <libgen.h>
#include <link.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

/*
 * POD_NAME comes from the Deployment's manifest (downward API); a pod's host name is the same name,
 * but there a process id adds nothing.
 */

void as_instance_print(char text_out[AS_INSTANCE_SIZE])
{
    const char *pod = getenv("POD_NAME");
    char host[256] = "localhost";
    if (!as_str_is_empty(pod)) {
        (void)snprintf(text_out, AS_INSTANCE_SIZE, "%.250s", pod);
        return;
    }
    if (gethostname(host, sizeof(host) - 1) != 0)
        (void)snprintf(host, sizeof(host), "localhost");
    (void)snprintf(text_out, AS_INSTANCE_SIZE, "%s/%ld", host, (long)getpid());
}

/*
 * Uses access(2), which checks the rights of the real user; after the sandbox root has no
 * privileges.
 */

static const char *get_advice(int code)
{
    switch (code) {
    case EACCES: return "give this user the right to write there";
    case EROFS: return "mount it to be written";
    case ENOENT:
    case ENOTDIR: return "create it";
    default: return "mend that";
    }
}

static int daemon_process_refuse(const char *path, const char *place, int code,
                                 struct as_error *error)
{
    const unsigned uid = getuid();
    char user[80] = "";
    if (code == EACCES)
        snprintf(user, sizeof(user), " for user %u%s", uid,
                 uid == 0 ? " (the sandbox gives up root's privileges)" : "");
    as_error_set(error, "%s: %s: %s%s; %s", path, place, strerror(code), user, get_advice(code));
    return -code;
}

/* The file is opened without following a link: another user may have put the link there. */
static int refuse_link(const char *path, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *real = realpath(path, NULL);
    as_error_set(error,
                 "%s: alertscaler writes to no file through a symbolic link; name the file itself"
                 "%s%s",
                 path, real ? ": " : "", real ? real : "");
    return -ELOOP;
}

int as_writable_check(const char *path, bool has_neighbours, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *copy = as_xstrdup(path);
    const char *folder = dirname(copy);
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        return refuse_link(path, error);
    const bool is_there = access(path, F_OK) == 0;
    if (is_there && access(path, W_OK) != 0)
        return daemon_process_refuse(path, "this file", errno, error);
    if ((is_there && !has_neighbours) || access(folder, W_OK | X_OK) == 0)
        return 0;
    const int code = errno;
    AS_CLEANUP(as_free_p) char *real = realpath(folder, NULL);
    AS_CLEANUP(as_free_p) char *place = as_xasprintf("the folder %s", real ? real : folder);
    return daemon_process_refuse(path, place, code, error);
}

/*
 * The soft limit of open files is low (often 1024) for programs that use select(); this one does
 * not.
 */

#define OTHERS 200 /* files, pipes, connections to API servers and monitoring */

void as_descriptors_raise(unsigned max_connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        const struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit.rlim_cur = limit.rlim_max;
        else
            as_log(AS_LOG_WARN, "cannot raise the limit of open files",
                   AS_F("error", strerror(errno)));
    }
    if (limit.rlim_cur < (rlim_t)max_connections + OTHERS)
        as_log(AS_LOG_WARN,
               "the limit of open files is too low for receiver.max_connections: raise it, as with "
               "LimitNOFILE= of systemd",
               AS_FI("limit", limit.rlim_cur), AS_FI("needed", max_connections + OTHERS));
}

/*
 * Starting touches far more of the libraries than serving: symbol tables, initializers, error
 * tables. These pages are clean read-only file mappings: dropping them never loses data, and costs
 * a page fault if one is needed again. Relocated pages are in writable segments and are kept.
 */

static int drop_clean_pages(struct dl_phdr_info *info, size_t size, void *context)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W))
            continue;
        const uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        const uintptr_t from = start / page * page;
        const uintptr_t to = (start + segment->p_memsz + page - 1) / page * page;
        /* the kernel refuses for its own mapping (vdso): no harm */
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void as_trim_memory(void)
{
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(drop_clean_pages, NULL);
}

/*
 * sd_notify(3) without libsystemd: the protocol is a connect and a send.
 */

static int process_connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || size >= sizeof(address.sun_path))
        return -EINVAL;
    memcpy(address.sun_path, name, size + 1);
    if (name[0] == '@')
        address.sun_path[0] = '\0'; /* the abstract namespace */
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, length) != 0) {
        const int status = -errno;
        if (fd >= 0)
            close(fd);
        return status;
    }
    return fd;
}

int notify_open(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    if (!name)
        return -1;
    const int fd = process_connect_to(name);
    if (fd < 0)
        as_log(AS_LOG_WARN, "systemd cannot be told", AS_F("socket", name),
               AS_F("error", strerror(-fd)));
    unsetenv("NOTIFY_SOCKET"); /* not for child processes */
    return fd < 0 ? -1 : fd;
}

void notify_send(int fd, const char *state)
{
    if (fd >= 0 && send(fd, state, strlen(state), MSG_NOSIGNAL) < 0)
        as_log(AS_LOG_WARN, "systemd cannot be told", AS_F("state", state),
               AS_F("error", strerror(errno)));
}
