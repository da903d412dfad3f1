/*
 * The sandbox: the files that the configuration and the system need, the rules of Landlock for
 * them, the filter of system calls, and their use: which parts are enabled, in which order, and
 * what is logged. A restriction is never lifted.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#include "daemon_private.h"

/*
 * The files that the daemon needs: those named in the configuration, and the system's for name
 * resolution, TLS and the loader.
 *
 * The rule for a file covers its folder: rotation replaces a file by another of the same name. If a
 * path has symbolic links, the folder that it leads to now is covered too.
 */

/* Folders, not /etc/resolv.conf and others one by one: when such a file is replaced, a rule for the
 * old one is useless. */
static const char *const system_places[] = {
    "/etc", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib",
    "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/zoneinfo",
    "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf",
    /* about ourselves, for /metrics */
    "/proc/self", "/proc/stat", "/proc/sys/kernel", "/sys/devices/system/cpu", "/dev/urandom",
    "/dev/random"};

static void sandbox_add(struct sandbox_files *files, const char *path, unsigned access,
                        bool is_ours)
{
    char *real = realpath(path, NULL);
    struct stat st = {0};
    if (!real)
        return; /* missing: opening it would fail anyway */
    (void)stat(real, &st);
    files->places = as_xgrow(files->places, files->count, &files->capacity, sizeof(*files->places));
    files->places[files->count++] = (struct sandbox_place){
        .path = real,
        .access = access,
        .is_ours = is_ours,
        .device = st.st_dev,
        .number = st.st_ino,
    };
}

static char *get_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return as_xstrdup(".");
    return as_xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* The folder of a file, and that of its link target. */
static void add_file(struct sandbox_files *files, const char *path, unsigned access)
{
    if (as_str_is_empty(path))
        return;
    AS_CLEANUP(as_free_p) char *folder = get_folder(path);
    AS_CLEANUP(as_free_p) char *real = realpath(path, NULL);
    sandbox_add(files, folder, access, true);
    if (real) {
        AS_CLEANUP(as_free_p) char *real_folder = get_folder(real);
        sandbox_add(files, real_folder, access, true);
    }
}

static void add_needed(void *context, const char *path, bool is_program)
{
    struct sandbox_files *files = context;
    if (!is_program) {
        add_file(files, path, SANDBOX_READ);
        return;
    }
    files->runs_programs = true;
    if (!files->program)
        files->program = as_xstrdup(path);
}

/* The last folder of a pattern before its first wildcard. */
static void add_pattern(struct sandbox_files *files, const char *config_file, const char *pattern)
{
    AS_CLEANUP(as_free_p) char *fixed = as_xstrndup(pattern, strcspn(pattern, "*?[\\"));
    AS_CLEANUP(as_free_p) char *base = get_folder(config_file);
    AS_CLEANUP(as_free_p)
    char *path = fixed[0] == '/' ? as_xstrdup(fixed) : as_xasprintf("%s/%s", base, fixed);
    AS_CLEANUP(as_free_p) char *folder = get_folder(path);
    sandbox_add(files, folder, SANDBOX_READ, true);
}

void sandbox_files_collect(struct sandbox_files *files, const struct as_sandbox_config *config)
{
    const struct as_config *loaded = config->config;
    const struct as_settings *settings = &loaded->settings;
    named_files_visit(config, add_needed, files);
    for (size_t i = 0; i < settings->rule_file_count; i++)
        add_pattern(files, loaded->path, settings->rule_files[i]);
    if (settings->state.store == AS_STORE_SQLITE)
        add_file(files, settings->state.path, SANDBOX_WRITE);
    add_file(files, settings->action_log.path, SANDBOX_WRITE);
    add_file(files, settings->kill_switch.file, SANDBOX_READ);
}

/* Plugins are ordinary programs: they and their caches may be anywhere. */
static void add_for_programs(struct sandbox_files *files)
{
    const char *const scratch[] = {getenv("HOME"), getenv("TMPDIR"), "/tmp", "/var/tmp"};
    sandbox_add(files, "/", SANDBOX_READ | SANDBOX_RUN, false);
    for (size_t i = 0; i < AS_ARRAY_SIZE(scratch); i++)
        if (!as_str_is_empty(scratch[i]) && strcmp(scratch[i], "/") != 0)
            sandbox_add(files, scratch[i], SANDBOX_WRITE, false);
}

static void sandbox_files_add_system(struct sandbox_files *files)
{
    const char *const certificates[] = {getenv("SSL_CERT_FILE"), getenv("SSL_CERT_DIR"),
                                        getenv("OPENSSL_CONF")};
    AS_CLEANUP(as_free_p) char *resolver = realpath("/etc/resolv.conf", NULL);
    for (size_t i = 0; i < AS_ARRAY_SIZE(system_places); i++)
        sandbox_add(files, system_places[i], SANDBOX_READ, false);
    sandbox_add(files, "/dev/null", SANDBOX_READ | SANDBOX_WRITE, false);
    for (size_t i = 0; i < AS_ARRAY_SIZE(certificates); i++)
        if (!as_str_is_empty(certificates[i]))
            sandbox_add(files, certificates[i], SANDBOX_READ, false);
    if (resolver)
        add_file(files, resolver, SANDBOX_READ);
    if (files->runs_programs)
        add_for_programs(files);
}

void sandbox_files_deinit(struct sandbox_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->places[i].path);
    free(files->places);
    free(files->program);
    *files = (struct sandbox_files){0};
}

static bool sandbox_holds(const char *folder, const char *path)
{
    const size_t size = strlen(folder);
    return strncmp(folder, path, size) == 0 &&
           (size == 1 || path[size] == '/' || path[size] == '\0');
}

bool sandbox_files_cover(const struct sandbox_files *files, const char *path, unsigned access)
{
    unsigned covered = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (sandbox_holds(files->places[i].path, path))
            covered |= files->places[i].access;
    }
    if (covered & SANDBOX_WRITE)
        covered |= SANDBOX_READ;
    return (covered & access) == access;
}

/* If all places that contain the path were replaced since (e.g. mounted again), the kernel's rules
 * do not cover it: returns one of them; else NULL. */
static const struct sandbox_place *sandbox_files_find_replaced(const struct sandbox_files *files,
                                                               const char *path)
{
    const struct sandbox_place *replaced = NULL;
    for (size_t i = 0; i < files->count; i++) {
        const struct sandbox_place *place = &files->places[i];
        struct stat st;
        if (!sandbox_holds(place->path, path))
            continue;
        if (stat(place->path, &st) != 0 ||
            (st.st_dev == place->device && st.st_ino == place->number))
            return NULL;
        replaced = place;
    }
    return replaced;
}

/*
 * Landlock by its system calls: the C library has none of them, and the distribution's header only
 * the first two levels. Numbers are those of <linux/landlock.h>, which never change.
 *
 * Listing folders stays allowed: names reveal little, and a reload can then name the rule file that
 * it could not read. Landlock does not hide a file's metadata anyway.
 */

#define FS_EXECUTE     (UINT64_C(1) << 0)
#define FS_WRITE_FILE  (UINT64_C(1) << 1)
#define FS_READ_FILE   (UINT64_C(1) << 2)
#define FS_READ_DIR    (UINT64_C(1) << 3)
#define FS_REMOVE_FILE (UINT64_C(1) << 5)
#define FS_MAKE_REG    (UINT64_C(1) << 8)
#define FS_REFER       (UINT64_C(1) << 13) /* level 2 */
#define FS_TRUNCATE    (UINT64_C(1) << 14) /* level 3 */
#define FS_IOCTL_DEV   (UINT64_C(1) << 15) /* level 5 */
#define FS_LEVEL_1     ((UINT64_C(1) << 13) - 1)
#define FS_OF_FILES    (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE)

#define NET_BIND_TCP (UINT64_C(1) << 0) /* level 4 */

#define SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0) /* level 6 */
#define SCOPE_SIGNAL        (UINT64_C(1) << 1)

enum { NET_LEVEL = 4, SCOPE_LEVEL = 6 };
enum { QUERY_VERSION = 1, RULE_PATH_BENEATH = 1 };

struct ruleset { /* struct landlock_ruleset_attr of level 6; older levels accept it if the rest is 0
                  */
    uint64_t fs, net, scoped;
};

struct __attribute__((packed)) path_rule { /* struct landlock_path_beneath_attr */
    uint64_t allowed;
    int32_t folder;
};

int sandbox_landlock_get_level(void)
{
    const long level = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, QUERY_VERSION);
    return level > 0 ? (int)level : 0; /* not built in, disabled, or denied by a container */
}

static uint64_t get_handled(int level)
{
    uint64_t handled = FS_LEVEL_1;
    if (level >= 2)
        handled |= FS_REFER;
    if (level >= 3)
        handled |= FS_TRUNCATE;
    if (level >= 5)
        handled |= FS_IOCTL_DEV;
    return handled & ~FS_READ_DIR;
}

static uint64_t get_rights(unsigned access)
{
    uint64_t rights = 0;
    if (access & SANDBOX_READ)
        rights |= FS_READ_FILE;
    if (access & SANDBOX_WRITE)
        rights |= FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_FILE | FS_MAKE_REG;
    if (access & SANDBOX_RUN)
        rights |= FS_READ_FILE | FS_EXECUTE;
    return rights;
}

static int allow(int ruleset, uint64_t handled, const struct sandbox_place *place)
{
    struct stat info;
    const int fd = open(place->path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0; /* missing: nothing to allow */
    struct path_rule rule = {.allowed = get_rights(place->access) & handled, .folder = fd};
    int status = fstat(fd, &info) == 0 ? 0 : -errno;
    if (status == 0 && !S_ISDIR(info.st_mode))
        rule.allowed &= FS_OF_FILES;
    if (status == 0 && syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) != 0)
        status = -errno;
    close(fd);
    return status;
}

/* The kernel may forget a folder of /proc/self, and then creates another one. Keeping it open for
 * the life of the process prevents that. */
static int pin_process_folder(void)
{
    const int fd = open("/proc/self", O_PATH | O_CLOEXEC);
    return fd >= 0 || errno == ENOENT ? 0 : -errno;
}

int sandbox_landlock_enter(int level, const struct sandbox_files *files)
{
    const struct ruleset attributes = {
        .fs = get_handled(level),
        .net = level >= NET_LEVEL ? NET_BIND_TCP : 0,
        .scoped = level >= SCOPE_LEVEL ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
    };
    const int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
    if (ruleset < 0)
        return -errno;
    int status = pin_process_folder();
    for (size_t i = 0; status == 0 && i < files->count; i++)
        status = allow(ruleset, attributes.fs, &files->places[i]);
    if (status == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0)
        status = -errno;
    if (status == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        status = -errno;
    close(ruleset);
    return status;
}

/*
 * The allowed system calls, for libc, libevent, curl, OpenSSL, SQLite, threads and ourselves.
 *
 * Strict: a call that is not on the list fails with ENOSYS; libraries expect that of calls newer
 * than the kernel, and fall back to older ones. Calls that only an intruder makes end the process:
 * a crash is a tested path, and the kernel's log names the call.
 *
 * Credential plugins inherit the filter, and may be any program: then everything is allowed except
 * calls that no plugin needs, which fail with EPERM.
 */

/* Of two names for one purpose, x86-64 also has the older; aarch64 has only the newer. */
static const char *const allowed[] = {
    /* memory */
    "brk", "munmap", "mremap", "madvise", "mincore", "msync",
    /* threads and signals */
    "futex", "set_robust_list", "get_robust_list", "rseq", "membarrier", "sched_yield",
    "sched_getaffinity", "getcpu", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
    "restart_syscall", "exit", "exit_group",
    /* our identity */
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid",
    "getresgid", "uname", "getrusage", "times", "sysinfo", "getrlimit", "getcwd", "capget",
    /* time and random numbers */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "getrandom", "timerfd_create", "timerfd_settime", "timerfd_gettime",
    /* files; Landlock decides which */
    "open", "openat", "close", "close_range", "read", "readv", "pread64", "preadv", "write",
    "writev", "pwrite64", "pwritev", "lseek", "fstat", "newfstatat", "stat", "lstat", "statx",
    "statfs", "fstatfs", "access", "faccessat", "faccessat2", "getdents64", "readlink",
    "readlinkat", "flock", "fsync", "fdatasync", "ftruncate", "fallocate", "rename", "renameat",
    "renameat2", "unlink", "unlinkat", "fchmod", "fchown", "umask", "dup", "dup2", "dup3", "fcntl",
    "pipe", "pipe2", "eventfd2", "fadvise64",
    /* waiting */
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll",
    "select", "pselect6",
    /* the network; the listening socket exists already */
    "connect", "bind", "accept", "accept4", "shutdown", "getsockname", "getpeername", "getsockopt",
    "setsockopt", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg",
    /* at exit */
    "wait4"};

/* Calls that take over another process, the kernel or the machine, or leave the sandbox. */
static const char *const forbidden[] = {
    /* other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    /* other processes' view of the file system */
    "mount", "umount2", "umount", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "setns", "unshare", "mknod", "mknodat",
    "open_by_handle_at", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct",
    /* the kernel */
    "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "init_module",
    "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "iopl", "ioperm",
    "modify_ldt", "lookup_dcookie", "nfsservctl", "syslog", "personality", "io_uring_setup",
    "io_uring_enter", "io_uring_register", "uselib", "vhangup",
    /* the clock and host names */
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname"};

/* Also forbidden if no program may run. */
static const char *const forbidden_strictly[] = {
    "execve",    "execveat",  "setuid",   "setgid",   "setreuid", "setregid", "setresuid",
    "setresgid", "setgroups", "setfsuid", "setfsgid", "capset",   "listen"};

#define NAMESPACES                                                                                 \
    ((scmp_datum_t)CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |      \
     CLONE_NEWUTS | CLONE_NEWCGROUP)
#define SOCKET_TYPE ((scmp_datum_t)0xf) /* without SOCK_NONBLOCK and SOCK_CLOEXEC */

/* Skips names that libseccomp does not know: such calls are newer, and the default is right. */
static int add_all(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t count)
{
    int status = 0;
    for (size_t i = 0; status == 0 && i < count; i++) {
        const int number = seccomp_syscall_resolve_name(names[i]);
        if (number != __NR_SCMP_ERROR)
            status = seccomp_rule_add(filter, action, number, 0);
    }
    return status;
}

static int allow_if(scmp_filter_ctx filter, int number, const struct scmp_arg_cmp *arguments,
                    unsigned count)
{
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count, arguments);
}

/* Memory is writable or executable, never both. It becomes executable only by mapping it so, as the
 * loader does for a library; an intruder's code is written first. */
static int allow_memory(scmp_filter_ctx filter)
{
    static const scmp_datum_t kinds[] = {0, PROT_WRITE, PROT_EXEC};
    const scmp_datum_t both = PROT_WRITE | PROT_EXEC;
    int status = 0;
    for (size_t i = 0; status == 0 && i < AS_ARRAY_SIZE(kinds); i++)
        status =
            allow_if(filter, SCMP_SYS(mmap), &SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, both, kinds[i]), 1);
    return status ? status
                  : allow_if(filter, SCMP_SYS(mprotect),
                             &SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0), 1);
}

/* Threads, not processes. Filters cannot see clone3's flags, which are in memory: ENOSYS makes libc
 * use clone. */
static int allow_threads(scmp_filter_ctx filter, int pid)
{
    const scmp_datum_t flags = CLONE_THREAD | NAMESPACES;
    const scmp_datum_t own = (scmp_datum_t)pid;
    const int status = allow_if(filter, SCMP_SYS(clone),
                                &SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, flags, CLONE_THREAD), 1);
    return status ? status
                  : allow_if(filter, SCMP_SYS(tgkill), &SCMP_CMP64(0, SCMP_CMP_EQ, own), 1);
}

static int allow_sockets(scmp_filter_ctx filter)
{
    static const scmp_datum_t families[] = {AF_INET, AF_INET6, AF_UNIX}; /* the last: for NSS */
    static const scmp_datum_t types[] = {SOCK_STREAM, SOCK_DGRAM};
    int status = 0;
    for (size_t i = 0; status == 0 && i < AS_ARRAY_SIZE(families); i++) {
        for (size_t k = 0; status == 0 && k < AS_ARRAY_SIZE(types); k++) {
            const struct scmp_arg_cmp arguments[] = {
                SCMP_CMP64(0, SCMP_CMP_EQ, families[i]),
                SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, SOCKET_TYPE, types[k]),
            };
            status = allow_if(filter, SCMP_SYS(socket), arguments, 2);
        }
    }
    const struct scmp_arg_cmp addresses[] = {
        /* getaddrinfo reads our addresses */
        SCMP_CMP64(0, SCMP_CMP_EQ, AF_NETLINK),
        SCMP_CMP64(2, SCMP_CMP_EQ, NETLINK_ROUTE),
    };
    if (status == 0)
        status = allow_if(filter, SCMP_SYS(socket), addresses, 2);
    return status ? status
                  : allow_if(filter, SCMP_SYS(socketpair), &SCMP_CMP64(0, SCMP_CMP_EQ, AF_UNIX), 1);
}

static int allow_others(scmp_filter_ctx filter)
{
    static const scmp_datum_t requests[] = {FIONBIO, FIONREAD, FIOCLEX, TCGETS, TIOCGWINSZ};
    static const scmp_datum_t options[] = {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE};
    int status = allow_if(filter, SCMP_SYS(prlimit64), &SCMP_CMP64(2, SCMP_CMP_EQ, 0), 1);
    for (size_t i = 0; status == 0 && i < AS_ARRAY_SIZE(requests); i++)
        status = allow_if(filter, SCMP_SYS(ioctl), &SCMP_CMP32(1, SCMP_CMP_EQ, requests[i]), 1);
    for (size_t i = 0; status == 0 && i < AS_ARRAY_SIZE(options); i++)
        status = allow_if(filter, SCMP_SYS(prctl), &SCMP_CMP32(0, SCMP_CMP_EQ, options[i]), 1);
    return status;
}

static int fill_strict(scmp_filter_ctx filter, int pid)
{
    int status = add_all(filter, SCMP_ACT_ALLOW, allowed, AS_ARRAY_SIZE(allowed));
    if (status == 0)
        status = add_all(filter, SCMP_ACT_KILL_PROCESS, forbidden, AS_ARRAY_SIZE(forbidden));
    if (status == 0)
        status = add_all(filter, SCMP_ACT_KILL_PROCESS, forbidden_strictly,
                         AS_ARRAY_SIZE(forbidden_strictly));
    if (status == 0)
        status = allow_memory(filter);
    if (status == 0)
        status = allow_threads(filter, pid);
    if (status == 0)
        status = allow_sockets(filter);
    return status ? status : allow_others(filter);
}

int sandbox_seccomp_make(uint32_t arch, bool runs_programs, int pid, scmp_filter_ctx *filter_out)
{
    const uint32_t otherwise = runs_programs ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(ENOSYS);
    scmp_filter_ctx filter = seccomp_init(otherwise);
    int status = filter ? 0 : -ENOMEM;
    if (status == 0 && arch != seccomp_arch_native()) {
        status = seccomp_arch_remove(filter, SCMP_ARCH_NATIVE);
        if (status == 0)
            status = seccomp_arch_add(filter, arch);
    }
    if (status == 0) /* 32-bit calls have other numbers */
        status = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (status == 0) /* all threads at once */
        status = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (status == 0) /* a binary tree, because the list is long */
        status = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (status == 0 && runs_programs)
        status = add_all(filter, SCMP_ACT_ERRNO(EPERM), forbidden, AS_ARRAY_SIZE(forbidden));
    else if (status == 0)
        status = fill_strict(filter, pid);
    if (status != 0) {
        seccomp_release(filter);
        return status;
    }
    *filter_out = filter;
    return 0;
}

int sandbox_seccomp_enter(bool runs_programs)
{
    scmp_filter_ctx filter;
    int status = sandbox_seccomp_make(seccomp_arch_native(), runs_programs, getpid(), &filter);
    if (status != 0)
        return status;
    status = seccomp_load(filter);
    seccomp_release(filter);
    return status;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0 /* their runtimes fork, trace and map freely */
#endif

struct as_sandbox {
    struct sandbox_files files; /* allowed files */
    int landlock;               /* its level, 0: disabled */
    bool is_strict;             /* no program may run */
};

int as_sandbox_protect_memory(enum as_sandbox_mode mode, struct as_error *error)
{
    const struct rlimit none = {0, 0};
    if (mode == AS_SANDBOX_OFF)
        return 0;
    if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) != 0 || setrlimit(RLIMIT_CORE, &none) != 0) {
        const int status = -errno;
        as_error_set_errno(error, status, "memory cannot be protected from core dumps");
        return status;
    }
    return 0;
}

/* Without capabilities the call to drop them may be forbidden: service managers block it too. */
static bool has_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, now) != 0)
        return true;
    for (size_t i = 0; i < AS_ARRAY_SIZE(now); i++) {
        if (now[i].effective | now[i].permitted | now[i].inheritable)
            return true;
    }
    return false;
}

/* Only root may change the bounding set, and only root is affected by it. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    for (int i = 0; prctl(PR_CAPBSET_READ, i, 0L, 0L, 0L) >= 0; i++)
        (void)prctl(PR_CAPBSET_DROP, i, 0L, 0L, 0L);
    if ((has_capabilities() && syscall(SYS_capset, &header, none) != 0) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0)
        return -errno;
    return 0;
}

/* Fails because the mode requires something unavailable. */
static int sandbox_refuse(const char *what, int code, struct as_error *error)
{
    as_error_set_errno(error, code, "--sandbox=required: %s", what);
    return code;
}

static int enter_landlock(struct as_sandbox *sandbox, enum as_sandbox_mode mode,
                          const char **missing_out, struct as_error *error)
{
    const int level = sandbox_landlock_get_level();
    const int status = level > 0 ? sandbox_landlock_enter(level, &sandbox->files) : -ENOSYS;
    if (status == 0) {
        sandbox->landlock = level;
        return 0;
    }
    *missing_out = "Landlock: the kernel does not have it, or whoever started us does not allow it";
    return mode == AS_SANDBOX_REQUIRED ? sandbox_refuse("Landlock", status, error) : 0;
}

static int enter_seccomp(struct as_sandbox *sandbox, enum as_sandbox_mode mode,
                         const char **calls_out, const char **missing_out, struct as_error *error)
{
    const int status = HAS_SANITIZER ? -ENOTSUP : sandbox_seccomp_enter(!sandbox->is_strict);
    if (status == 0) {
        *calls_out = sandbox->is_strict ? "allowed by list" : "forbidden by list";
        return 0;
    }
    *missing_out = HAS_SANITIZER ? "seccomp: this build has sanitizers"
                                 : "seccomp: the kernel does not have it, or whoever started us "
                                   "does not allow it";
    return mode == AS_SANDBOX_REQUIRED ? sandbox_refuse("seccomp", status, error) : 0;
}

static int enter(struct as_sandbox *sandbox, enum as_sandbox_mode mode, struct as_error *error)
{
    const char *calls = "any", *no_landlock = NULL, *no_seccomp = NULL;
    int status = drop_capabilities();
    if (status != 0) {
        as_error_set_errno(error, status, "sandbox: capabilities cannot be given up");
        return status;
    }
    status = enter_landlock(sandbox, mode, &no_landlock, error);
    if (status == 0)
        status = enter_seccomp(sandbox, mode, &calls, &no_seccomp, error);
    if (status != 0)
        return status;
    if (!no_landlock && !no_seccomp)
        as_log(AS_LOG_INFO, "sandbox in force", AS_F("capabilities", "none"),
               AS_F("system_calls", calls), AS_FI("landlock", sandbox->landlock),
               AS_F("programs", sandbox->is_strict ? "none" : sandbox->files.program));
    else
        as_log(AS_LOG_WARN, "sandbox in force in part", AS_F("capabilities", "none"),
               AS_F("system_calls", calls), AS_FI("landlock", sandbox->landlock),
               AS_F("missing", no_landlock ? no_landlock : no_seccomp));
    return 0;
}

int as_sandbox_enter(const struct as_sandbox_config *config, struct as_sandbox **sandbox_out,
                     struct as_error *error)
{
    AS_CLEANUP(as_sandbox_free_p) struct as_sandbox *sandbox = as_xcalloc(1, sizeof(*sandbox));
    if (config->mode == AS_SANDBOX_OFF) {
        as_log(AS_LOG_WARN, "no sandbox: --sandbox=off");
    } else {
        sandbox_files_collect(&sandbox->files, config);
        sandbox_files_add_system(&sandbox->files);
        sandbox->is_strict = !sandbox->files.runs_programs;
        const int status = enter(sandbox, config->mode, error);
        if (status != 0)
            return status;
    }
    *sandbox_out = sandbox;
    sandbox = NULL;
    return 0;
}

struct as_sandbox *as_sandbox_free(struct as_sandbox *sandbox)
{
    if (!sandbox)
        return NULL;
    sandbox_files_deinit(&sandbox->files);
    free(sandbox);
    return NULL;
}

int as_sandbox_check(const struct as_sandbox *sandbox, const struct as_sandbox_config *config,
                     struct as_error *error)
{
    AS_CLEANUP(sandbox_files_deinit) struct sandbox_files files = {0};
    sandbox_files_collect(&files, config);
    if (sandbox->is_strict && files.runs_programs) {
        as_error_set(error,
                     "the credential plugin %s is new, and the sandbox of this process runs no "
                     "programs: restart alertscaler to use it",
                     files.program);
        return -EACCES;
    }
    for (size_t i = 0; sandbox->landlock > 0 && i < files.count; i++) {
        const struct sandbox_place *place = &files.places[i];
        /* the new state's file is opened only after a restart */
        if (!place->is_ours || place->access & SANDBOX_WRITE ||
            sandbox_files_cover(&sandbox->files, place->path, place->access))
            continue;
        as_error_set(error,
                     "the folder %s is new in the configuration, and the sandbox of this process "
                     "allows only those known at its start: restart alertscaler to use it",
                     place->path);
        return -EACCES;
    }
    return 0;
}

/* The unreadable path; its folder if it is missing, as creating it may be refused; else NULL. */
static char *find_refused(const char *path)
{
    int fd;
    const int status = as_file_open(path, AS_FILE_CONFIGURED, O_RDONLY, &fd, NULL);
    if (status == 0)
        close(fd);
    if (status == -EACCES)
        return realpath(path, NULL);
    const char *slash = status == -ENOENT ? strrchr(path, '/') : NULL;
    if (!slash || slash == path)
        return NULL;
    AS_CLEANUP(as_free_p) char *folder = as_xstrndup(path, (size_t)(slash - path));
    return realpath(folder, NULL);
}

void as_sandbox_explain(const struct as_sandbox *sandbox, const char *path, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *real = sandbox ? find_refused(path) : NULL;
    if (!real)
        return;
    const bool is_there = access(path, F_OK) == 0;
    AS_CLEANUP(as_free_p) char *before = as_xasprintf("%s", error->text);
    const struct sandbox_place *replaced =
        sandbox->landlock > 0 ? sandbox_files_find_replaced(&sandbox->files, real) : NULL;
    if (is_there && sandbox->landlock > 0 &&
        !sandbox_files_cover(&sandbox->files, real, SANDBOX_READ))
        as_error_set(error,
                     "%s (the folder of %s is new, and the sandbox of this process allows only "
                     "those known at its start: restart alertscaler)",
                     before, real);
    else if (replaced)
        as_error_set(error,
                     "%s (the folder %s is another one than at the start: it was mounted anew or "
                     "replaced, and the sandbox of this process knows only the old one: restart "
                     "alertscaler)",
                     before, replaced->path);
    else if (is_there && geteuid() == 0)
        as_error_set(error,
                     "%s (root has to have the right to it like others: the sandbox gives up "
                     "root's privileges)",
                     before);
}
