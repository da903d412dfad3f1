/*
 * Reading objects of a tree: see the header.
 */
#include "spot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void check_object(struct spot *spot)
{
    if (spot->object->kind == TREE_OBJECT)
        return;
    spot_fail(spot, NULL, "expected an object");
    spot->object = NULL;
}

void spot_init(struct spot *spot, const struct tree_value *root, struct as_error *error)
{
    place_init(&spot->place, error);
    spot->object = root;
    check_object(spot);
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
    place_enter(&spot->place, &parent->place, name, -1);
    spot->object = find_kind(parent, name, TREE_OBJECT);
}

void spot_enter_item(struct spot *spot, struct spot *parent, const char *name,
                     const struct tree_value *item, size_t index)
{
    place_enter(&spot->place, &parent->place, name, (ptrdiff_t)index);
    spot->object = item;
    check_object(spot);
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
