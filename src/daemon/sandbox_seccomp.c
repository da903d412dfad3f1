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
#include "sandbox_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>

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
