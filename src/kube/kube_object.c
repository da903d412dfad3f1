/*
 * Objects: see the header.
 */
#include "kube_object.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

int kube_object_load(struct tree *tree, const char *json, size_t size, const char *kind,
                     struct as_error *error)
{
    const int status = tree_load_object(tree, json, size, error);
    if (status)
        return status;
    if (as_str_equal(tree_find_text(tree->root, "kind"), kind))
        return 0;
    as_error_set(error, "kind: expected %s", kind);
    return -EBADMSG;
}

bool kube_element_is(const struct tree_value *element, const struct as_field_step *step)
{
    char number[AS_NUMBER_SIZE];
    const struct tree_value *member = tree_find(element, step->name);
    if (tree_is(member, TREE_INTEGER)) {
        (void)as_number_print_i64(member->integer, number);
        return strcmp(number, step->value) == 0;
    }
    return as_str_equal(tree_get_text(member), step->value);
}

void kube_object_read_version(struct as_reader *metadata, char *version_out, size_t size)
{
    *version_out = '\0';
    as_read_copy(metadata, "resourceVersion", version_out, size);
    if (!*version_out)
        as_read_fail(metadata, "resourceVersion", "missing");
}

const char *kube_object_read_name(struct as_reader *metadata, const char *key, size_t max,
                                  const char *what)
{
    const struct tree_value *value = as_read_any(metadata, key);
    const char *name = tree_get_text(value);
    if (!as_str_is_empty(name) && value->size <= max && *name != '.' && !strstr(name, TREE_NUL))
        return name;
    as_read_fail(metadata, key, "expected a %s of 1 to %zu bytes", what, max);
    return "";
}
