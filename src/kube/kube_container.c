/*
 * One container: see the header.
 */
#include "kube_container.h"

#include <string.h>

#include <alertscaler/base/str.h>

static const struct tree_value *find_in(const struct tree_value *list, const char *name)
{
    const struct tree_value *item = tree_is(list, TREE_ARRAY) ? list->first : NULL;
    while (item && !as_str_equal(tree_find_text(item, "name"), name))
        item = item->next;
    return item;
}

const struct tree_value *kube_find_container(const struct tree_value *spec, const char *name,
                                             bool *is_init_out)
{
    const struct tree_value *container = find_in(tree_find(spec, "containers"), name);
    *is_init_out = !container;
    return container ? container : find_in(tree_find(spec, "initContainers"), name);
}

bool kube_is_sidecar(const struct tree_value *container)
{
    return as_str_equal(tree_find_text(container, "restartPolicy"), "Always");
}

static bool read_amount(const struct tree_value *quantities, const char *word,
                        char text_out[AS_QUANTITY_MAX + 1])
{
    const struct tree_value *value = tree_find(quantities, word);
    double number;
    text_out[0] = '\0';
    if (!value || value->kind == TREE_NULL)
        return true;
    if (value->kind != TREE_TEXT || value->size > AS_QUANTITY_MAX ||
        as_quantity_parse(value->text, value->size, &number) < 0)
        return false;
    memcpy(text_out, value->text, value->size);
    text_out[value->size] = '\0';
    return true;
}

bool kube_read_amounts(const struct tree_value *resources, enum as_resource resource,
                       struct as_kube_amounts *amounts_out)
{
    const char *word = as_kube_resource_get_word(resource);
    return read_amount(tree_find(resources, "requests"), word, amounts_out->request) &&
           read_amount(tree_find(resources, "limits"), word, amounts_out->limit);
}

static void write_amount(struct as_json_writer *json, const char *key, const char *word,
                         const char *amount)
{
    as_json_write_key(json, key);
    as_json_begin_object(json);
    as_json_write_member(json, word, amount);
    as_json_end_object(json);
}

void kube_write_container(struct as_json_writer *json, const struct as_kube_part *part,
                          bool is_init, const struct as_kube_amounts *amounts)
{
    const char *word = as_kube_resource_get_word(part->resource);
    as_json_write_key(json, is_init ? "initContainers" : "containers");
    as_json_begin_array(json);
    as_json_begin_object(json);
    as_json_write_member(json, "name", part->container);
    as_json_write_key(json, "resources");
    as_json_begin_object(json);
    if (!as_str_is_empty(amounts->limit))
        write_amount(json, "limits", word, amounts->limit);
    write_amount(json, "requests", word, amounts->request);
    as_json_end_object(json);
    as_json_end_object(json);
    as_json_end_array(json);
}
