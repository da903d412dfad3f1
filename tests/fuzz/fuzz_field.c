/*
 * Any text as the path of a field: read or refused, with the place; printed, it is read as the same
 * path again. Any text as a unit, and a size in it. Any object: a patch of it tests and changes the
 * field, on condition of the version, and has no other operation.
 */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/kube/kube_field.h>
#include <alertscaler/model/field_path.h>

#include "fuzz.h"

static void check_same(const struct as_field_path *path, const struct as_field_path *other)
{
    FUZZ_CHECK(path->count == other->count);
    for (size_t i = 0; i < path->count; i++) {
        const struct as_field_step *left = &path->steps[i], *right = &other->steps[i];
        FUZZ_CHECK(strcmp(left->name, right->name) == 0);
        FUZZ_CHECK(!left->value == !right->value);
        FUZZ_CHECK(!left->value || strcmp(left->value, right->value) == 0);
    }
}

static void check_path(const char *text)
{
    struct as_field_path path, again;
    struct as_error error = AS_ERROR_INIT;
    struct as_buf out = AS_BUF_INIT((size_t)4 * AS_FIELD_PATH_MAX), once = out;
    if (as_field_path_parse(text, &path, &error) != 0) {
        FUZZ_CHECK(*error.text);
        return;
    }
    as_field_path_print(&path, path.count, &out);
    FUZZ_CHECK(as_buf_check(&out) == 0 && out.size > 0 && out.size <= strlen(text));
    FUZZ_CHECK(as_field_path_parse(out.data, &again, &error) == 0);
    check_same(&path, &again);
    as_field_path_print(&again, again.count, &once);
    FUZZ_CHECK(strcmp(out.data, once.data) == 0);
    as_buf_deinit(&out);
    as_buf_deinit(&once);
}

/* What is written in a unit is counted as the same size. */
static void check_unit(const char *text)
{
    static const int32_t counts[] = {0, 1, 3, 40, 1000, INT32_MAX};
    struct as_unit unit;
    struct as_error error = AS_ERROR_INIT;
    if (as_unit_parse(text, &unit, &error) != 0) {
        FUZZ_CHECK(*error.text);
        return;
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(counts); i++) {
        char amount[AS_AMOUNT_SIZE], shown[AS_SIZE_TEXT_SIZE];
        int32_t count = -1;
        if (!as_unit_is_countable(&unit, counts[i]))
            continue;
        as_unit_print(&unit, counts[i], amount);
        FUZZ_CHECK(as_unit_count(&unit, amount, strlen(amount), &count) == 0);
        FUZZ_CHECK(count == counts[i]);
        FUZZ_CHECK(*as_unit_print_size(text, count, shown));
    }
}

static size_t count_operations(const char *patch)
{
    size_t count = 0;
    for (; (patch = strstr(patch, "{\"op\":")); patch++)
        count++;
    return count;
}

static void check_object(const char *json, size_t size)
{
    static const char end[] = "{\"op\":\"replace\",\"path\":\"/spec/c/";
    const struct as_sized sized = {.what = AS_SIZED_FIELD,
                                   .unit = AS_UNIT_NONE,
                                   .field = "spec.c[name=a].n",
                                   .absent = -1,
                                   .status_field = "status.n"};
    AS_CLEANUP(as_buf_deinit) struct as_buf patch = AS_BUF_INIT((size_t)1 << 20);
    struct as_kube_scale scale;
    struct as_error error = AS_ERROR_INIT;
    if (as_kube_field_decode(json, size, "T", &sized, &scale, &error) != 0) {
        FUZZ_CHECK(*error.text);
        return;
    }
    FUZZ_CHECK(scale.replicas >= 0 && scale.status_replicas >= 0 && *scale.resource_version);
    FUZZ_CHECK(as_kube_field_encode_patch(json, size, "T", &sized, 7, &patch, &error) == 0);
    FUZZ_CHECK(as_buf_check(&patch) == 0 && strstr(patch.data, end));
    FUZZ_CHECK(count_operations(patch.data) == 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_CLEANUP(as_free_p) char *text = as_xstrndup((const char *)data, size);
    check_path(text);
    check_unit(text);
    check_object((const char *)data, size);
    return 0;
}
