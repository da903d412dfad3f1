/*
 * The dimension of a target's object that is its size: the scale, a field or a container's
 * resource. One row for each dimension; its part of an id; what an address says about it.
 *
 * A dimension is found by its key of the address. This module knows no kind of target.
 */
#include <alertscaler/decide/sized.h>

#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/model/field_path.h>

/* What is no path stays as it is: such an id names no target. */
static void append_path(const char *value, struct as_buf *out)
{
    struct as_field_path path;
    if (as_field_path_parse(value, &path, NULL) == 0)
        as_field_path_print(&path, path.count, out);
    else
        as_buf_append_str(out, value);
}

static void append_word(const char *value, struct as_buf *out)
{
    as_buf_append_str(out, value);
}

const struct as_sized_kind as_sized_kinds[] = {
    {AS_SIZED_FIELD, "field", {"field"}, append_path},
    {AS_SIZED_RESOURCE, "container", {"container", "resource"}, append_word},
    {.word = NULL},
};

size_t as_sized_find(const char *id)
{
    const size_t owner = strcspn(id, "/"); /* a cluster's name may have a colon, no later part */
    return owner + strcspn(id + owner, ":");
}

void as_sized_append_key(const char *text, struct as_buf *out)
{
    for (const struct as_sized_kind *kind = as_sized_kinds; *text && kind->word; kind++) {
        const size_t size = strlen(kind->word);
        if (strncmp(text + 1, kind->word, size) != 0 || text[1 + size] != '/' || kind->keys[1])
            continue;
        as_buf_append(out, text, size + 2);
        kind->append_value(text + size + 2, out);
        return;
    }
    as_buf_append_str(out, text);
}

void as_sized_read(const struct as_target_ref *ref, struct as_sized *sized_out)
{
    const char *absent = as_target_ref_get(ref, "absent");
    int64_t size;
    *sized_out = (struct as_sized){
        .what = AS_SIZED_SCALE,
        .unit = AS_UNIT_NONE,
        .field = as_target_ref_get(ref, "field"),
        .absent = -1,
        .container = as_target_ref_get(ref, "container"),
        .resource = strcmp(as_target_ref_get(ref, "resource"), "cpu") == 0 ? AS_RESOURCE_CPU
                                                                           : AS_RESOURCE_MEMORY,
        .keep_limit = strcmp(as_target_ref_get(ref, "limits"), "keep") == 0,
        .by_pods = strcmp(as_target_ref_get(ref, "apply"), "pods") == 0,
        .with_template = strcmp(as_target_ref_get(ref, "template"), "true") == 0,
        .status_field = as_target_ref_get(ref, "status_field"),
    };
    for (const struct as_sized_kind *kind = as_sized_kinds; kind->word; kind++) {
        if (*as_target_ref_get(ref, kind->keys[0]))
            sized_out->what = kind->what;
    }
    if (as_unit_parse(as_sized_get_unit(ref), &sized_out->unit, NULL) != 0)
        sized_out->unit = AS_UNIT_NONE;
    if (as_number_parse_i64(absent, strlen(absent), &size) == 0 && size >= 0 && size <= INT32_MAX)
        sized_out->absent = (int32_t)size;
}

const char *as_sized_get_unit(const struct as_target_ref *ref)
{
    return as_target_ref_get(ref, "unit");
}

void as_sized_append_unit(const struct as_target_ref *ref, char *text, size_t size)
{
    const char *unit = as_sized_get_unit(ref);
    const size_t used = strlen(text), more = strlen(unit);
    if (more == 0 || used == 0 || used + 1 + more >= size)
        return;
    text[used] = AS_SIZED_UNIT_MARK;
    memcpy(text + used + 1, unit, more + 1);
}
