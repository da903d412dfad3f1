/*
 * Reads the objects of a tree (json_tree.h), each member by its name, with its type and range. The
 * first thing that is not as expected is the error, with its place (place.h). Members that nobody
 * asks for do not matter, and null counts as absent.
 */
#ifndef ALERTSCALER_SRC_WIRE_JSON_SPOT_H
#define ALERTSCALER_SRC_WIRE_JSON_SPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#include "json_tree.h"
#include "place.h"

#define SPOT_ITEMS_MAX 1024 /* that a list, or an object as a map, may have */

struct spot {
    struct place place;
    const struct tree_value *object; /* NULL: absent, and without members */
};

void spot_init(struct spot *spot, const struct tree_value *root, struct as_error *error);
static inline int AS_MUST_USE spot_result(const struct spot *spot)
{
    return place_result(&spot->place);
}

/* `name` may be NULL: the object itself. */
#define spot_fail(spot, ...) place_fail(&(spot)->place, __VA_ARGS__)

/* Objects. The parent must stay where it is. */
void spot_enter(struct spot *spot, struct spot *parent, const char *name);
void spot_enter_item(struct spot *spot, struct spot *parent, const char *name,
                     const struct tree_value *item, size_t index);

/* Members. Texts are borrowed from the tree. */
bool spot_has(const struct spot *spot, const char *name);
/* The first of the items, or of the members of the map. */
const struct tree_value *spot_get_list(struct spot *spot, const char *name, size_t *count_out);
const struct tree_value *spot_get_map(struct spot *spot, const char *name, size_t *count_out);
const char *spot_get_text(struct spot *spot, const char *name); /* "" where absent */
bool spot_is_text(struct spot *spot, const char *name, const char *text);
bool spot_get_bool(struct spot *spot, const char *name); /* false where absent */
/* 0 where absent. */
int64_t spot_get_i64(struct spot *spot, const char *name, int64_t low, int64_t high);
as_maybe_time spot_get_time(struct spot *spot, const char *name); /* RFC 3339 */

#endif
