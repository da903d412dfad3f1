/*
 * What of an object is its size: the rows, and their part of an id.
 */
#include <alertscaler/decide/sized.h>

#include <stdio.h>
#include <string.h>

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

const char *as_sized_print_measure(const char *id, const char *unit, char text_out[AS_MEASURE_SIZE])
{
    const struct as_target_kind *kind = as_target_kind_find_of_id(id);
    if (unit && *unit) {
        snprintf(text_out, AS_MEASURE_SIZE, "units of %.*s", AS_AMOUNT_SIZE - 1, unit);
        return text_out;
    }
    if (kind == &as_target_kind_kubernetes && id[as_sized_find(id)])
        return "size";
    return kind ? kind->unit : "replicas";
}
