/*
 * The conversion: reads all files, then converts object by object, then writes the texts. After an
 * error nothing is kept.
 */
#include "convert_plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "convert_objects.h"

#define TEXT_MAX   ((size_t)64 * 1024 * 1024) /* of one file of the result */

/* --- the plan --- */

static int compare_names(const void *left, const void *right)
{
    const struct plan_target *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* "apps" of "apps/v1"; the group that is left of "extensions" is "apps". */
static size_t get_group(const struct plan_target *target, const char **group_out)
{
    const char *version = target->api_version ? target->api_version : "apps/v1";
    const char *slash = strchr(version, '/');
    *group_out = version;
    return slash ? (size_t)(slash - version) : 0;
}

static int compare_scaled(const void *left, const void *right)
{
    const struct plan_target *const *a = left, *const *b = right;
    const char *group_a, *group_b;
    if ((*a)->group || (*b)->group)
        return (*a)->group && (*b)->group ? strcmp((*a)->group->group, (*b)->group->group)
                                          : !(*a)->group - !(*b)->group;
    int status = strcmp((*a)->space, (*b)->space);
    status = status ? status : strcmp((*a)->scaled, (*b)->scaled);
    status = status ? status : strcmp((*a)->scaled_kind, (*b)->scaled_kind);
    const size_t size_a = get_group(*a, &group_a), size_b = get_group(*b, &group_b);
    if (status || size_a != size_b)
        return status ? status : size_a < size_b ? -1 : 1;
    return strncmp(group_a, group_b, size_a);
}

/* Of targets that are equal the later ones are reported. */
static void check_once(struct convert *convert, int (*compare)(const void *, const void *),
                       const char *format_is)
{
    const size_t count = convert->target_count;
    struct plan_target **sorted = as_xcalloc(count + 1, sizeof(*sorted));
    if (count > 0)
        memcpy(sorted, convert->targets, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare);
    for (size_t i = 1; i < count; i++) {
        const struct plan_target *first = sorted[i - 1], *second = sorted[i];
        if (compare(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        convert->loader.tree = second->tree;
        loader_report(&convert->loader, second->node, "%s, at %s:%u, %s", first->shown,
                      as_yaml_get_file(first->tree), first->node->place.line, format_is);
    }
    free(sorted);
}

/* --- the result --- */

static void keep_file(struct convert *convert, const char *name, struct as_buf *text)
{
    struct as_conversion *conversion = convert->conversion;
    conversion->files = as_xgrow(conversion->files, conversion->file_count,
                                 &conversion->file_capacity, sizeof(*conversion->files));
    conversion->files[conversion->file_count++] = (struct as_converted_file){
        .name = name,
        .text = as_arena_strdup(&convert->arena, text->size ? text->data : ""),
        .size = text->size,
    };
    as_buf_clear(text);
}

static int write_all(struct convert *convert)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(TEXT_MAX);
    bool is_whole = true;
    for (size_t i = 0; i < convert->target_count; i++) {
        const struct plan_target *target = convert->targets[i];
        write_rules(convert, target, &text);
        is_whole = is_whole && as_buf_check(&text) == 0;
        keep_file(convert, convert_text(convert, "rules/%s.yaml", target->name), &text);
        write_tests(target, &text);
        is_whole = is_whole && as_buf_check(&text) == 0;
        keep_file(convert, convert_text(convert, "tests/%s.yaml", target->name), &text);
        convert->conversion->rule_count +=
            target->group ? 2U + target->group->starves : target->rule_count;
    }
    convert->conversion->target_count = convert->target_count;
    if (convert->target_count > 0) {
        write_alerts(convert->targets, convert->target_count, &text);
        is_whole = is_whole && as_buf_check(&text) == 0;
        keep_file(convert, "alerts.yaml", &text);
    }
    return is_whole ? 0 : -EMSGSIZE;
}

static int load(struct convert *convert, const char *path)
{
    struct as_yaml_tree *tree = NULL;
    int status = as_yaml_load_documents(path, convert->loader.diagnostics, &tree);
    if (status < 0)
        return status == -EFBIG ? -EINVAL : status;
    convert->trees = as_xgrow(convert->trees, convert->tree_count, &convert->tree_capacity,
                              sizeof(struct as_yaml_tree *));
    convert->trees[convert->tree_count++] = tree;
    return 0;
}

/* 0, -EINVAL after errors, or another negative errno. */
static int run(struct convert *convert, const char *const *paths, size_t count)
{
    int worst = 0;
    for (size_t i = 0; i < count; i++) {
        int status = load(convert, paths[i]);
        if (status < 0 && (worst == 0 || worst == -EINVAL))
            worst = status;
    }
    const size_t file_count = convert->tree_count; /* ConfigMaps add trees */
    for (size_t i = 0; i < file_count; i++)
        objects_walk(convert, convert->trees[i], OBJECTS_ADAPTER);
    for (size_t i = 0; i < file_count; i++)
        objects_walk(convert, convert->trees[i], OBJECTS_SCALED);
    check_once(convert, compare_names, "makes a target of the same name: rename one of them");
    check_once(convert, compare_scaled,
               "scales the same object: two programs that set one size undo each other's work. "
               "Keep one of them");
    if (worst < 0)
        return worst;
    if (convert->loader.diagnostics->has_error)
        return -EINVAL;
    return write_all(convert);
}

int as_convert(const char *const *paths, size_t count, const char *name_space,
               struct as_diagnostics *diagnostics, struct as_conversion **conversion_out)
{
    AS_CLEANUP(as_conversion_free_p)
    struct as_conversion *conversion = as_xcalloc(1, sizeof(*conversion));
    struct convert convert = {.conversion = conversion, .name_space = name_space};
    convert.loader =
        (struct loader){.diagnostics = diagnostics, .arena = &convert.arena, .folder = ""};
    int status = run(&convert, paths, count);
    for (size_t i = 0; i < convert.tree_count; i++)
        as_yaml_free(convert.trees[i]);
    free(convert.trees);
    free(convert.targets);
    struct as_arena *memory = as_xcalloc(1, sizeof(*memory));
    *memory = convert.arena;
    conversion->memory = memory;
    if (status < 0)
        return status == -EINVAL ? AS_CONVERT_INVALID : status;
    *conversion_out = conversion;
    conversion = NULL;
    return AS_CONVERT_OK;
}

struct as_conversion *as_conversion_free(struct as_conversion *conversion)
{
    if (!conversion)
        return NULL;
    if (conversion->memory)
        as_arena_deinit(conversion->memory);
    free(conversion->memory);
    free(conversion->files);
    free(conversion->items);
    free(conversion);
    return NULL;
}
