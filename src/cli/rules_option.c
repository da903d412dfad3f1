/*
 * A folder's files are read in the order of their names, as a glob in `rule_files` would read them.
 */
#include "rules_option.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/tools/engine_config.h>

#define SEED 1

struct paths {
    char **items;
    size_t count, capacity;
};

static void paths_deinit(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
}

static int is_rule_file(const struct dirent *entry)
{
    return fnmatch("*.yaml", entry->d_name, FNM_PERIOD) == 0 ||
           fnmatch("*.yml", entry->d_name, FNM_PERIOD) == 0;
}

static int list_folder(const char *folder, struct paths *paths)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_rule_file, alphasort);

    if (count < 0)
        return -errno;
    for (int i = 0; i < count; i++) {
        paths->items =
            as_xgrow(paths->items, paths->count, &paths->capacity, sizeof(*paths->items));
        paths->items[paths->count++] = as_xasprintf("%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

/* With the settings of a given configuration, else with all defaults. */
static int load_files(const struct as_args *args, const char *const *paths, size_t count,
                      struct as_config **config_out, struct as_diagnostics *diagnostics)
{
    const char *settings = as_args_get(args, "config.file");

    if (!as_args_has(args, "config.file"))
        return as_config_load_rules(paths, count, config_out, diagnostics);
    const int status = as_config_load_with_rules(settings, paths, count, config_out, diagnostics);
    if (status < 0)
        (void)as_cli_fail(args, "%s: %s", settings, as_errno_get_text(status));
    return status;
}

static int load_folder(const struct as_args *args, const char *folder,
                       struct as_config **config_out, struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(paths_deinit) struct paths paths = {0};
    int status = list_folder(folder, &paths);

    if (!status && paths.count == 0) {
        (void)as_cli_fail(args, "%s: no *.yaml or *.yml in this folder", folder);
        return -ENOENT;
    }
    if (status) {
        (void)as_cli_fail(args, "%s: %s", folder, as_errno_get_text(status));
        return status;
    }
    return load_files(args, (const char *const *)paths.items, paths.count, config_out, diagnostics);
}

static int end_loading(struct as_diagnostics *diagnostics, int status)
{
    as_diagnostics_sort(diagnostics);
    as_diagnostics_print(diagnostics, stderr);
    as_diagnostics_deinit(diagnostics);
    return status < 0 ? AS_EXIT_USAGE : status > 0 ? AS_EXIT_NO : AS_EXIT_OK;
}

int rules_load(const struct as_args *args, const char *path, struct as_config **config_out)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct stat info;
    int status;

    if (stat(path, &info))
        return as_cli_fail(args, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        status = load_folder(args, path, config_out, &diagnostics);
    else if (as_config_find_kind(path) == AS_CONFIG_RULES)
        status = load_files(args, &path, 1, config_out, &diagnostics);
    else if ((status = as_config_load(path, config_out, &diagnostics)) < 0)
        (void)as_cli_fail(args, "%s: %s", path, as_errno_get_text(status));
    return end_loading(&diagnostics, status);
}

int rules_load_http(const struct as_args *args, const char *path, struct as_config **config_out)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    const int status = as_config_load_http(path, config_out, &diagnostics);

    if (status < 0)
        (void)as_cli_fail(args, "%s: %s", path, as_errno_get_text(status));
    return end_loading(&diagnostics, status);
}

struct as_engine_config rules_get_engine_config(const struct as_config *config)
{
    return as_engine_config_make(&config->settings, SEED);
}

static bool is_known(const struct as_ruleset *ruleset, const char *name)
{
    if (strchr(name, '/')) /* an id */
        return true;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        if (strcmp(ruleset->targets[i].name, name) == 0 && !ruleset->targets[i].is_templated)
            return true;
    }
    return false;
}

int rules_set_replicas(const struct as_args *args, const struct as_ruleset *ruleset,
                       struct as_rehearsal *rehearsal, struct as_error *error)
{
    const char *text;
    size_t at = 0;

    while ((text = as_args_find_next(args, "replicas", &at))) {
        const char *equals = strrchr(text, '=');
        int64_t size;
        if (!equals || as_number_parse_i64(equals + 1, strlen(equals + 1), &size) != 0 ||
            size < 0 || size > AS_SIZE_MAX) {
            as_error_set(error, "--replicas: \"%s\" is not NAME=N", text);
            return -EINVAL;
        }
        AS_CLEANUP(as_free_p) char *name = as_xstrndup(text, (size_t)(equals - text));
        if (!is_known(ruleset, name)) {
            as_error_set(error,
                         "--replicas: the rules have no target \"%s\" (one with a template "
                         "is named by its id)",
                         name);
            return -EINVAL;
        }
        as_rehearsal_set_size(rehearsal, name, (int32_t)size);
    }
    return 0;
}
