/*
 * Uses access(2), which checks the rights of the real user; after the sandbox root has no
 * privileges.
 */
#include <alertscaler/daemon/writable.h>

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>

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

static int refuse(const char *path, const char *place, int code, struct as_error *error)
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
        return refuse(path, "this file", errno, error);
    if ((is_there && !has_neighbours) || access(folder, W_OK | X_OK) == 0)
        return 0;
    const int code = errno;
    AS_CLEANUP(as_free_p) char *real = realpath(folder, NULL);
    AS_CLEANUP(as_free_p) char *place = as_xasprintf("the folder %s", real ? real : folder);
    return refuse(path, place, code, error);
}
