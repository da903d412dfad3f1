/*
 * Reading objects of a tree: see the header.
 */
#include "spot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/buf.h>

#define PATH_MAX_SIZE 256

static void append_path(struct as_buf *path, const struct spot *spot)
{
    if (!spot->parent)
        return;
    append_path(path, spot->parent);
    as_buf_printf(path, "%s%s", path->size ? "." : "", spot->name);
    if (spot->index >= 0)
        as_buf_printf(path, "[%td]", spot->index);
}

void spot_fail(struct spot *spot, const char *name, const char *format, ...)
{
    struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    char message[AS_ERROR_SIZE];
    va_list arguments;

    if (spot->root->has_failed)
        return;
    spot->root->has_failed = true;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    append_path(&path, spot);
    if (name)
        as_buf_printf(&path, "%s%s", path.size ? "." : "", name);
    as_error_set(spot->root->error, "%s%s%s", path.size ? path.data : "", path.size ? ": " : "",
                 message);
    as_buf_deinit(&path);
}

int spot_result(const struct spot *spot)
{
    return spot->root->has_failed ? -EBADMSG : 0;
}

void spot_init(struct spot *spot, const struct tree_value *root, struct as_error *error)
{
    *spot = (struct spot){.index = -1, .object = root, .error = error};
    spot->root = spot;
    if (root->kind == TREE_OBJECT)
        return;
    spot_fail(spot, NULL, "expected an object");
    spot->object = NULL;
}

static const struct tree_value *find(const struct spot *spot, const char *name)
{
    const struct tree_value *value = spot->object ? tree_find(spot->object, name) : NULL;
    return value && value->kind != TREE_NULL ? value : NULL;
}

static const struct tree_value *find_kind(struct spot *spot, const char *name, enum tree_kind kind)
{
    static const char *const words[] = {
        [TREE_NULL] = "null",     [TREE_BOOLEAN] = "true or false", [TREE_NUMBER] = "a number",
        [TREE_TEXT] = "a string", [TREE_ARRAY] = "a list",          [TREE_OBJECT] = "an object",
    };
    const struct tree_value *value = find(spot, name);

    if (!value || value->kind == kind)
        return value;
    spot_fail(spot, name, "expected %s", words[kind]);
    return NULL;
}

void spot_enter(struct spot *spot, struct spot *parent, const char *name)
{
    *spot = (struct spot){
        .root = parent->root,
        .parent = parent,
        .name = name,
        .index = -1,
        .object = find_kind(parent, name, TREE_OBJECT),
    };
}

void spot_enter_item(struct spot *spot, struct spot *parent, const char *name,
                     const struct tree_value *item, size_t index)
{
    *spot = (struct spot){
        .root = parent->root,
        .parent = parent,
        .name = name,
        .index = (ptrdiff_t)index,
        .object = item,
    };
    if (item->kind == TREE_OBJECT)
        return;
    spot_fail(spot, NULL, "expected an object");
    spot->object = NULL;
}

bool spot_has(const struct spot *spot, const char *name)
{
    return find(spot, name) != NULL;
}

static const struct tree_value *get_items(struct spot *spot, const char *name, enum tree_kind kind,
                                          size_t *count_out)
{
    const struct tree_value *value = find_kind(spot, name, kind);

    *count_out = 0;
    if (!value)
        return NULL;
    if (value->size > SPOT_ITEMS_MAX) {
        spot_fail(spot, name, "more than %d", SPOT_ITEMS_MAX);
        return NULL;
    }
    *count_out = value->size;
    return value->first;
}

const struct tree_value *spot_get_list(struct spot *spot, const char *name, size_t *count_out)
{
    return get_items(spot, name, TREE_ARRAY, count_out);
}

const struct tree_value *spot_get_map(struct spot *spot, const char *name, size_t *count_out)
{
    return get_items(spot, name, TREE_OBJECT, count_out);
}

const char *spot_get_text(struct spot *spot, const char *name)
{
    const struct tree_value *value = find_kind(spot, name, TREE_TEXT);
    return value ? value->text : "";
}

bool spot_is_text(struct spot *spot, const char *name, const char *text)
{
    return strcmp(spot_get_text(spot, name), text) == 0;
}

bool spot_get_bool(struct spot *spot, const char *name)
{
    const struct tree_value *value = find_kind(spot, name, TREE_BOOLEAN);
    return value && value->boolean;
}

int64_t spot_get_i64(struct spot *spot, const char *name, int64_t low, int64_t high)
{
    const struct tree_value *value = find_kind(spot, name, TREE_NUMBER);

    if (!value)
        return 0;
    if (value->number == floor(value->number) && value->number >= (double)low &&
        value->number <= (double)high)
        return (int64_t)value->number;
    spot_fail(spot, name, "expected an integer from %" PRId64 " to %" PRId64, low, high);
    return 0;
}

as_maybe_time spot_get_time(struct spot *spot, const char *name)
{
    const char *text = spot_get_text(spot, name);
    as_maybe_time time = {.set = *text != '\0'};

    if (time.set && as_wall_time_parse(text, strlen(text), &time.at) != 0) {
        spot_fail(spot, name, "expected a time as \"2026-11-20T10:00:00Z\" (RFC 3339)");
        time.set = false;
    }
    return time;
}
