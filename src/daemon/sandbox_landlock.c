/*
 * Landlock by its system calls: the C library has none of them, and the distribution's header only
 * the first two levels. Numbers are those of <linux/landlock.h>, which never change.
 *
 * Listing folders stays allowed: names reveal little, and a reload can then name the rule file that
 * it could not read. Landlock does not hide a file's metadata anyway.
 */
#include "sandbox_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
