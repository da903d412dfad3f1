/*
 * Places in documents: see the header.
 */
#include <alertscaler/doc/json_place.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <alertscaler/base/buf.h>

#define PATH_MAX_SIZE (AS_ERROR_SIZE + 256) /* what is longer would be cut anyway */

void place_init(struct place *place, struct as_error *error)
{
    *place = (struct place){.root = place, .index = -1, .error = error};
}

void place_enter(struct place *place, struct place *parent, const char *name, ptrdiff_t index)
{
    *place = (struct place){.root = parent->root, .parent = parent, .name = name, .index = index};
}

static void append_path(struct as_buf *path, const struct place *place)
{
    if (!place->parent)
        return;
    append_path(path, place->parent);
    as_buf_printf(path, "%s%s", path->size ? "." : "", place->name);
    if (place->index >= 0)
        as_buf_printf(path, "[%td]", place->index);
}

void place_fail(struct place *place, const char *name, const char *format, ...)
{
    struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    char message[AS_ERROR_SIZE];
    va_list list;

    if (place->root->has_failed)
        return;
    place->root->has_failed = true;
    va_start(list, format);
    vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    append_path(&path, place);
    if (name)
        as_buf_printf(&path, "%s%s", path.size ? "." : "", name);
    as_error_set(place->root->error, "%s%s%s", path.size ? path.data : "", path.size ? ": " : "",
                 message);
    as_buf_deinit(&path);
}

int place_result(const struct place *place)
{
    return place->root->has_failed ? -EBADMSG : 0;
}
