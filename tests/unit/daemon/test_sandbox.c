/*
 * The sandbox: what the daemon needs works; what only an intruder does is refused, or ends the
 * process. The filters of both architectures are interpreted here call by call; child processes
 * show what this machine's kernel does with them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "daemon/sandbox.h"

#define PROGRAM_MAX 4096
#define OWN_PID     4711

static struct sock_filter program[PROGRAM_MAX];
static size_t program_size;

static void load(uint32_t arch, bool runs_programs)
{
    scmp_filter_ctx filter;
    cr_assert_eq(sandbox_seccomp_make(arch, runs_programs, OWN_PID, &filter), 0);
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    cr_assert_eq(seccomp_export_bpf(filter, fileno(file)), 0);
    seccomp_release(filter);
    const ssize_t got = pread(fileno(file), program, sizeof(program), 0);
    fclose(file);
    cr_assert(got > 0 && (size_t)got < sizeof(program) && (size_t)got % sizeof(program[0]) == 0);
    program_size = (size_t)got / sizeof(program[0]);
}

static bool jumps(uint16_t code, uint32_t value, uint32_t k)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ: return value == k;
    case BPF_JGT: return value > k;
    case BPF_JGE: return value >= k;
    case BPF_JSET: return (value & k) != 0;
    default: cr_assert_fail("jump %#x", code); return false;
    }
}

/* What the kernel would do: the classic BPF of seccomp, as far as libseccomp writes it. */
static uint32_t decide(const struct seccomp_data *data)
{
    uint32_t value = 0, memory[BPF_MEMWORDS] = {0};
    for (size_t at = 0; at < program_size; at++) {
        const struct sock_filter *line = &program[at];
        switch (line->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            cr_assert(line->k + sizeof(value) <= sizeof(*data));
            memcpy(&value, (const char *)data + line->k, sizeof(value));
            break;
        case BPF_LD | BPF_MEM: value = memory[line->k % BPF_MEMWORDS]; break;
        case BPF_ST: memory[line->k % BPF_MEMWORDS] = value; break;
        case BPF_ALU | BPF_AND | BPF_K: value &= line->k; break;
        case BPF_JMP | BPF_JA: at += line->k; break;
        case BPF_RET | BPF_K: return line->k;
        default:
            cr_assert_eq(BPF_CLASS(line->code), BPF_JMP, "instruction %#x", line->code);
            at += jumps(line->code, value, line->k) ? line->jt : line->jf;
        }
    }
    cr_assert_fail("no end");
    return 0;
}

static const uint32_t absent = SECCOMP_RET_ERRNO | ENOSYS, refused = SECCOMP_RET_ERRNO | EPERM;

static void expect(uint32_t arch, const char *name, const uint64_t *arguments, uint32_t action)
{
    struct seccomp_data data = {.arch = arch};
    data.nr = seccomp_syscall_resolve_name_arch(arch, name);
    if (arguments)
        memcpy(data.args, arguments, sizeof(data.args));
    cr_assert_geq(data.nr, 0, "%s", name);
    cr_assert_eq(decide(&data), action, "%s on %#x: %#x, expected %#x", name, arch, decide(&data),
                 action);
}

#define ARGUMENTS(...) ((const uint64_t[6]){__VA_ARGS__})

static void expect_strict(uint32_t arch)
{
    static const char *const good[] = {
        "openat",  "read",       "pwrite64",     "fdatasync",       "renameat",    "epoll_pwait",
        "accept4", "connect",    "sendmmsg",     "getrandom",       "futex",       "rseq",
        "madvise", "exit_group", "rt_sigreturn", "clock_nanosleep", "sigaltstack", "flock"};
    static const char *const deadly[] = {"execve",
                                         "execveat",
                                         "ptrace",
                                         "process_vm_readv",
                                         "process_vm_writev",
                                         "mount",
                                         "umount2",
                                         "bpf",
                                         "keyctl",
                                         "add_key",
                                         "init_module",
                                         "finit_module",
                                         "setns",
                                         "unshare",
                                         "chroot",
                                         "pivot_root",
                                         "reboot",
                                         "kexec_load",
                                         "perf_event_open",
                                         "userfaultfd",
                                         "io_uring_setup",
                                         "setuid",
                                         "setresuid",
                                         "capset",
                                         "listen",
                                         "open_by_handle_at"};
    static const char *const missing[] = {"clone3",    "memfd_create", "shmat",      "kill",
                                          "prctl",     "seccomp",      "setxattr",   "mkdirat",
                                          "symlinkat", "linkat",       "pidfd_open", "vmsplice"};
    load(arch, false);
    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++)
        expect(arch, good[i], NULL, SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < AS_ARRAY_SIZE(deadly); i++)
        expect(arch, deadly[i], NULL, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < AS_ARRAY_SIZE(missing); i++)
        expect(arch, missing[i], NULL, absent);
}

static void expect_arguments(uint32_t arch)
{
    const uint32_t allow = SECCOMP_RET_ALLOW;
    const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    expect(arch, "clone", ARGUMENTS(thread), allow);
    expect(arch, "clone", ARGUMENTS(SIGCHLD), absent);
    expect(arch, "clone", ARGUMENTS(CLONE_VM | CLONE_VFORK | SIGCHLD), absent);
    expect(arch, "clone", ARGUMENTS(thread | CLONE_NEWUSER), absent);
    expect(arch, "mmap", ARGUMENTS(0, 4096, PROT_READ | PROT_WRITE), allow);
    expect(arch, "mmap", ARGUMENTS(0, 4096, PROT_READ | PROT_EXEC), allow);
    expect(arch, "mmap", ARGUMENTS(0, 4096, PROT_WRITE | PROT_EXEC), absent);
    expect(arch, "mprotect", ARGUMENTS(0, 4096, PROT_READ | PROT_WRITE), allow);
    expect(arch, "mprotect", ARGUMENTS(0, 4096, PROT_READ | PROT_EXEC), absent);
    expect(arch, "socket", ARGUMENTS(AF_INET, SOCK_STREAM | SOCK_CLOEXEC), allow);
    expect(arch, "socket", ARGUMENTS(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK), allow);
    expect(arch, "socket", ARGUMENTS(AF_NETLINK, SOCK_RAW, 0), allow);
    expect(arch, "socket", ARGUMENTS(AF_NETLINK, SOCK_RAW, 9), absent); /* audit */
    expect(arch, "socket", ARGUMENTS(AF_INET, SOCK_RAW), absent);
    expect(arch, "socket", ARGUMENTS(AF_PACKET, SOCK_DGRAM), absent);
    expect(arch, "socket", ARGUMENTS(38 /* AF_ALG */, SOCK_STREAM), absent);
    expect(arch, "socket", ARGUMENTS(AF_VSOCK, SOCK_STREAM), absent);
    expect(arch, "tgkill", ARGUMENTS(OWN_PID, OWN_PID, SIGABRT), allow);
    expect(arch, "tgkill", ARGUMENTS(OWN_PID + 1, OWN_PID + 1, SIGKILL), absent);
    expect(arch, "prlimit64", ARGUMENTS(0, 7, 0, 1), allow);
    expect(arch, "prlimit64", ARGUMENTS(0, 4, 1), absent);
    expect(arch, "ioctl", ARGUMENTS(1, 0x5421 /* FIONBIO */), allow);
    expect(arch, "ioctl", ARGUMENTS(0, 0x5412 /* TIOCSTI */), absent);
    expect(arch, "prctl", ARGUMENTS(15 /* PR_SET_NAME */), allow);
    expect(arch, "prctl", ARGUMENTS(4 /* PR_SET_DUMPABLE */, 1), absent);
}

static const uint32_t architectures[] = {SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64};

Test(sandbox, the_strict_filter_allows_what_is_needed_and_ends_intruders)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(architectures); i++)
        expect_strict(architectures[i]);
}

Test(sandbox, the_strict_filter_looks_at_arguments)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(architectures); i++) {
        load(architectures[i], false);
        expect_arguments(architectures[i]);
    }
}

/* 32-bit calls have other numbers, and would be something else than what the filter sees. */
Test(sandbox, calls_of_another_architecture_end_the_process)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(architectures); i++) {
        const uint32_t others[] = {SCMP_ARCH_X86, SCMP_ARCH_ARM};
        load(architectures[i], false);
        for (size_t k = 0; k < AS_ARRAY_SIZE(others); k++) {
            const struct seccomp_data data = {.nr = 1, .arch = others[k]};
            cr_assert_eq(decide(&data), SECCOMP_RET_KILL_PROCESS);
        }
    }
    load(SCMP_ARCH_X86_64, false);
    const struct seccomp_data x32 = {.nr = 0x40000001, .arch = SCMP_ARCH_X86_64};
    cr_assert_eq(decide(&x32), SECCOMP_RET_KILL_PROCESS);
}

Test(sandbox, programs_may_run_but_not_take_over_anything)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(architectures); i++) {
        const uint32_t arch = architectures[i];
        static const char *const good[] = {"execve", "clone3", "kill", "mkdirat", "memfd_create"};
        static const char *const bad[] = {"ptrace",  "mount",          "bpf",    "keyctl",
                                          "unshare", "setns",          "reboot", "finit_module",
                                          "chroot",  "perf_event_open"};
        load(arch, true);
        for (size_t k = 0; k < AS_ARRAY_SIZE(good); k++)
            expect(arch, good[k], NULL, SECCOMP_RET_ALLOW);
        for (size_t k = 0; k < AS_ARRAY_SIZE(bad); k++)
            expect(arch, bad[k], NULL, refused);
    }
}

/* The kernel's own answers. A child ends with 0 if all was as it should be, else with the line. */

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 250 + 1);                                                             \
    } while (0)

/* The status of a child that does this. */
static int watch(void (*act)(void))
{
    int status = 0;
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        act();
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void expect_good_end(void (*act)(void))
{
    const int status = watch(act);
    cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "line %d modulo 250", WEXITSTATUS(status) - 1);
}

static void expect_death(void (*act)(void))
{
    const int status = watch(act);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status %#x", status);
}

static void *run_thread(void *context)
{
    *(int *)context = 1;
    return NULL;
}

static void work_strictly(void)
{
    pthread_t thread;
    int done = 0;
    MUST(sandbox_seccomp_enter(false) == 0);
    MUST(pthread_create(&thread, NULL, run_thread, &done) == 0);
    MUST(pthread_join(thread, NULL) == 0 && done == 1);
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    MUST(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
    MUST(socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == ENOSYS);
    MUST(mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
         MAP_FAILED);
    MUST(syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L) < 0 && errno == ENOSYS);
    MUST(kill(getppid(), 0) < 0 && errno == ENOSYS);
}

static void execute(void)
{
    static char *const argv[] = {(char *)"/bin/true", NULL};
    MUST(sandbox_seccomp_enter(false) == 0);
    execv(argv[0], argv);
}

static void trace(void)
{
    MUST(sandbox_seccomp_enter(false) == 0);
    ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static void execute_as_a_plugin_does(void)
{
    static char *const argv[] = {(char *)"/bin/true", NULL};
    MUST(sandbox_seccomp_enter(true) == 0);
    MUST(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) < 0 && errno == EPERM);
    execv(argv[0], argv);
    MUST(false);
}

Test(sandbox, the_kernel_takes_the_filters)
{
    expect_good_end(work_strictly);
    expect_death(execute);
    expect_death(trace);
    expect_good_end(execute_as_a_plugin_does);
}

static char root[] = "/tmp/as-sandbox-XXXXXX";
static char *config_folder, *state_folder, *other_folder;

static void write_file(const char *folder, const char *name)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file);
    cr_assert_geq(fputs("text", file), 0);
    fclose(file);
}

static char *make_folder(const char *name)
{
    char *path = as_xasprintf("%s/%s", root, name);
    cr_assert_eq(mkdir(path, 0700), 0);
    write_file(path, "file");
    return path;
}

static int open_in(const char *folder, const char *name, int flags)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", folder, name);
    const int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

static struct sandbox_files files;

static void add_place(const char *path, unsigned access)
{
    files.places = as_xgrow(files.places, files.count, &files.capacity, sizeof(*files.places));
    files.places[files.count++] =
        (struct sandbox_place){.path = as_xstrdup(path), .access = access, .is_ours = true};
}

static void stay_in_folders(void)
{
    AS_CLEANUP(as_free_p) char *from = as_xasprintf("%s/new", state_folder);
    AS_CLEANUP(as_free_p) char *to = as_xasprintf("%s/new.1", state_folder);
    AS_CLEANUP(as_free_p) char *away = as_xasprintf("%s/new.1", other_folder);
    MUST(sandbox_landlock_enter(sandbox_landlock_get_level(), &files) == 0);
    MUST(open_in(config_folder, "file", O_RDONLY) >= 0);
    MUST(open_in(config_folder, "file", O_WRONLY) == -EACCES);
    MUST(open_in(config_folder, "new", O_WRONLY | O_CREAT) == -EACCES);
    MUST(open_in(other_folder, "file", O_RDONLY) == -EACCES);
    MUST(open_in(state_folder, "new", O_RDWR | O_CREAT | O_EXCL) >= 0);
    MUST(rename(from, to) == 0);
    MUST(rename(to, away) != 0);
    MUST(open_in(state_folder, "new.1", O_RDWR | O_TRUNC) >= 0);
    MUST(unlink(to) == 0);
    MUST(mkdir(to, 0700) != 0 && errno == EACCES);
    MUST(symlink("/etc", to) != 0 && errno == EACCES);
    MUST(access("/bin/true", X_OK) == 0);
    execl("/bin/true", "true", (char *)NULL);
    MUST(errno == EACCES);
}

static void open_a_listener(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(0)};
    const struct sockaddr_in other = {.sin_family = AF_INET, .sin_port = htons(4)};
    const int level = sandbox_landlock_get_level();
    MUST(sandbox_landlock_enter(level, &files) == 0);
    const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    MUST(tcp >= 0 && udp >= 0);
    const int code = bind(tcp, (const struct sockaddr *)&other, sizeof(other));
    MUST(level < 4 || (code != 0 && errno == EACCES));
    MUST(bind(udp, (const struct sockaddr *)&address, sizeof(address)) == 0);
}

static void signal_the_parent(void)
{
    const int level = sandbox_landlock_get_level();
    MUST(sandbox_landlock_enter(level, &files) == 0);
    MUST(level < 6 || (kill(getppid(), 0) != 0 && errno == EPERM));
    MUST(kill(getpid(), 0) == 0);
}

static void remove_folder(char *path)
{
    AS_CLEANUP(as_free_p) char *file = as_xasprintf("%s/file", path);
    unlink(file);
    cr_assert_eq(rmdir(path), 0, "%s: %s", path, strerror(errno));
    free(path);
}

Test(sandbox, landlock_leaves_the_configured_folders)
{
    if (sandbox_landlock_get_level() == 0)
        cr_skip_test("this kernel has no Landlock");
    cr_assert_not_null(mkdtemp(root));
    config_folder = make_folder("config");
    state_folder = make_folder("state");
    other_folder = make_folder("other");
    add_place(config_folder, SANDBOX_READ);
    add_place(state_folder, SANDBOX_WRITE);
    add_place("/no/where", SANDBOX_READ);
    expect_good_end(stay_in_folders);
    expect_good_end(open_a_listener);
    expect_good_end(signal_the_parent);
    remove_folder(config_folder);
    remove_folder(state_folder);
    remove_folder(other_folder);
    cr_assert_eq(rmdir(root), 0);
    sandbox_files_deinit(&files);
}

/* Which files count. */

Test(sandbox, a_folder_covers_what_is_in_it_and_nothing_beside)
{
    add_place("/etc/alertscaler", SANDBOX_READ);
    add_place("/var/lib/alertscaler", SANDBOX_WRITE);
    cr_assert(sandbox_files_cover(&files, "/etc/alertscaler", SANDBOX_READ));
    cr_assert(sandbox_files_cover(&files, "/etc/alertscaler/rules/a.yaml", SANDBOX_READ));
    cr_assert(sandbox_files_cover(&files, "/var/lib/alertscaler/token", SANDBOX_READ));
    cr_assert_not(sandbox_files_cover(&files, "/etc/alertscaler-rules/a.yaml", SANDBOX_READ));
    cr_assert_not(sandbox_files_cover(&files, "/etc", SANDBOX_READ));
    cr_assert_not(sandbox_files_cover(&files, "/etc/alertscaler/x", SANDBOX_WRITE));
    sandbox_files_deinit(&files);
}
