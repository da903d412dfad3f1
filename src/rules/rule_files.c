/*
 * Expands `rule_files`: see the header. As in Prometheus, a pattern may match nothing, but a named
 * file must exist.
 */
#include "rule_files.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/rules/config.h>

void rule_files_deinit(struct rule_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->names[i]);
    free(files->names);
    *files = (struct rule_files){0};
}

void rule_files_add(struct rule_files *files, const char *path)
{
    files->names = as_xgrow(files->names, files->count, &files->capacity, sizeof(char *));
    files->names[files->count++] = as_xstrdup(path);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

void rule_files_sort(struct rule_files *files)
{
    size_t kept = 0;
    if (files->count == 0)
        return;
    qsort(files->names, files->count, sizeof(char *), compare_names);
    for (size_t i = 0; i < files->count; i++) {
        if (kept > 0 && strcmp(files->names[kept - 1], files->names[i]) == 0)
            free(files->names[i]);
        else
            files->names[kept++] = files->names[i];
    }
    files->count = kept;
}

/* A missing folder has no matching files; an unreadable folder might have some. */
static int stop_glob(const char *path, int code)
{
    return code != ENOENT && code != ENOTDIR;
}

/* Relative to the folder; glob characters of the folder's name are escaped. */
static char *make_pattern(const char *folder, const char *text)
{
    size_t size = text[0] == '/' ? 0 : strlen(folder), used = 0;
    char *pattern = as_xmalloc(2 * size + strlen(text) + 2);
    for (size_t i = 0; i < size; i++) {
        if (strchr("*?[]\\", folder[i]))
            pattern[used++] = '\\';
        pattern[used++] = folder[i];
    }
    if (size > 0)
        pattern[used++] = '/';
    memcpy(pattern + used, text, strlen(text) + 1);
    return pattern;
}

/* What glob() says. */
static int find_matches(struct rule_files *files, const char *folder, const char *text)
{
    AS_CLEANUP(as_free_p) char *escaped = make_pattern(folder, text);
    glob_t found = {0};
    const int status = glob(escaped, GLOB_NOSORT, stop_glob, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc; i++)
        rule_files_add(files, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

void rule_files_find(struct rule_files *files, const char *folder, const char *text)
{
    (void)find_matches(files, folder, text); /* a load reports what cannot be found */
}

void rule_files_expand(struct rule_files *files, struct loader *loader,
                       const struct as_yaml_node *node)
{
    const struct schema_field field = {.type = SCHEMA_PATH};
    const char *path = NULL;
    if (node->kind != AS_YAML_SCALAR || node->size == 0 ||
        !schema_parse_scalar(loader, &field, node, &path))
        return;
    if (!strpbrk(node->text, "*?[")) {
        if (access(path, R_OK) == 0)
            rule_files_add(files, path);
        else
            loader_report(loader, node, "cannot read %s: %s", path, strerror(errno));
        return;
    }
    const int status = find_matches(files, loader->folder, node->text);
    if (status == GLOB_NOMATCH)
        as_yaml_warn(loader->tree, node, AS_YAML_SHOW, loader->diagnostics,
                     "no file matches this pattern");
    else if (status != 0)
        loader_report(loader, node, "cannot look for files that match this: %s",
                      status == GLOB_NOSPACE ? "not enough memory" : "a folder cannot be read");
}

/* NULL: neither ending. */
static char *swap_ending(const char *pattern)
{
    static const char *const endings[] = {".yaml", ".yml"};
    const size_t size = strlen(pattern);
    for (size_t i = 0; i < AS_ARRAY_SIZE(endings); i++) {
        const size_t ending = strlen(endings[i]);
        if (size > ending && strcmp(pattern + size - ending, endings[i]) == 0)
            return as_xasprintf("%.*s%s", (int)(size - ending), pattern, endings[1 - i]);
    }
    return NULL;
}

static bool is_listed(const struct rule_files *files, const char *path)
{
    struct stat one, other;
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->names[i], path) == 0)
            return true;
    }
    for (size_t i = 0; i < files->count && stat(path, &one) == 0; i++) {
        if (stat(files->names[i], &other) == 0 && one.st_dev == other.st_dev &&
            one.st_ino == other.st_ino)
            return true;
    }
    return false;
}

static void check_ending(const struct rule_files *files, struct loader *loader,
                         const struct as_yaml_node *node)
{
    AS_CLEANUP(as_free_p) char *other = swap_ending(node->text);
    if (!other || !strpbrk(node->text, "*?["))
        return;
    AS_CLEANUP(as_free_p) char *escaped = make_pattern(loader->folder, other);
    glob_t found = {0};
    const int status = glob(escaped, 0, stop_glob, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        if (is_listed(files, path) || as_config_find_kind(path) != AS_CONFIG_RULES)
            continue;
        as_yaml_warn(
            loader->tree, node, AS_YAML_SHOW, loader->diagnostics,
            "%s has rules or targets and is passed over: add '%s' to rule_files, or rename "
            "the file",
            path, other);
        break;
    }
    globfree(&found);
}

void rule_files_check_endings(const struct rule_files *files, struct loader *loader,
                              const struct as_yaml_node *list)
{
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        if (list->items[i]->kind == AS_YAML_SCALAR)
            check_ending(files, loader, list->items[i]);
    }
}

char *rule_files_copy_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return as_xstrdup("");
    return as_xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}
