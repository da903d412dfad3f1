/*
 * What of a target's object is its size: from its address.
 */
#include <alertscaler/decide/sized.h>

#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/decide/target.h>

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
