/*
 * The files that the daemon needs: those named in the configuration, and the system's for name
 * resolution, TLS and the loader.
 *
 * The rule for a file covers its folder: rotation replaces a file by another of the same name. If a
 * path has symbolic links, the folder that it leads to now is covered too.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "named_files.h"
#include "sandbox_private.h"

/* Folders, not /etc/resolv.conf and others one by one: when such a file is replaced, a rule for the
 * old one is useless. */
static const char *const system_places[] = {
    "/etc", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib",
    "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/zoneinfo",
    "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf",
    /* about ourselves, for /metrics */
    "/proc/self", "/proc/stat", "/proc/sys/kernel", "/sys/devices/system/cpu", "/dev/urandom",
    "/dev/random"};

static void add(struct sandbox_files *files, const char *path, unsigned access, bool is_ours)
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
    add(files, folder, access, true);
    if (real) {
        AS_CLEANUP(as_free_p) char *real_folder = get_folder(real);
        add(files, real_folder, access, true);
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
    add(files, folder, SANDBOX_READ, true);
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
    add(files, "/", SANDBOX_READ | SANDBOX_RUN, false);
    for (size_t i = 0; i < AS_ARRAY_SIZE(scratch); i++)
        if (!as_str_is_empty(scratch[i]) && strcmp(scratch[i], "/") != 0)
            add(files, scratch[i], SANDBOX_WRITE, false);
}

void sandbox_files_add_system(struct sandbox_files *files)
{
    const char *const certificates[] = {getenv("SSL_CERT_FILE"), getenv("SSL_CERT_DIR"),
                                        getenv("OPENSSL_CONF")};
    AS_CLEANUP(as_free_p) char *resolver = realpath("/etc/resolv.conf", NULL);
    for (size_t i = 0; i < AS_ARRAY_SIZE(system_places); i++)
        add(files, system_places[i], SANDBOX_READ, false);
    add(files, "/dev/null", SANDBOX_READ | SANDBOX_WRITE, false);
    for (size_t i = 0; i < AS_ARRAY_SIZE(certificates); i++)
        if (!as_str_is_empty(certificates[i]))
            add(files, certificates[i], SANDBOX_READ, false);
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

static bool holds(const char *folder, const char *path)
{
    const size_t size = strlen(folder);
    return strncmp(folder, path, size) == 0 &&
           (size == 1 || path[size] == '/' || path[size] == '\0');
}

bool sandbox_files_cover(const struct sandbox_files *files, const char *path, unsigned access)
{
    unsigned covered = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (holds(files->places[i].path, path))
            covered |= files->places[i].access;
    }
    if (covered & SANDBOX_WRITE)
        covered |= SANDBOX_READ;
    return (covered & access) == access;
}

const struct sandbox_place *sandbox_files_find_replaced(const struct sandbox_files *files,
                                                        const char *path)
{
    const struct sandbox_place *replaced = NULL;
    for (size_t i = 0; i < files->count; i++) {
        const struct sandbox_place *place = &files->places[i];
        struct stat st;
        if (!holds(place->path, path))
            continue;
        if (stat(place->path, &st) != 0 ||
            (st.st_dev == place->device && st.st_ino == place->number))
            return NULL;
        replaced = place;
    }
    return replaced;
}
