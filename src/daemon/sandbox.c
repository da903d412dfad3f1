/*
 * The sandbox as a whole: which parts are enabled, in which order, and what is logged.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>

#include "sandbox_private.h"

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
static int refuse(const char *what, int code, struct as_error *error)
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
    return mode == AS_SANDBOX_REQUIRED ? refuse("Landlock", status, error) : 0;
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
    return mode == AS_SANDBOX_REQUIRED ? refuse("seccomp", status, error) : 0;
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
