/*
 * ConfigMaps: see the header. `binaryData` is not ours and is ignored.
 */
#include "kube_config_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>

#include "kube/kube_object.h"

const struct as_kube_config_item *as_kube_config_map_find(const struct as_kube_config_map *map,
                                                          const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

void as_kube_config_map_encode(const struct as_kube_config_map *map, const char *namespace_,
                               const struct as_kube_label *labels, size_t label_count,
                               struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", "v1");
    as_json_write_member(&json, "kind", "ConfigMap");
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "name", map->name);
    as_json_write_member(&json, "namespace", namespace_);
    as_json_write_key(&json, "labels");
    as_json_begin_object(&json);
    for (size_t i = 0; i < label_count; i++)
        as_json_write_member(&json, labels[i].name, labels[i].value);
    as_json_end_object(&json);
    if (!as_str_is_empty(map->version))
        as_json_write_member(&json, "resourceVersion", map->version);
    as_json_write_key(&json, "managedFields"); /* [{}]: the server keeps no owner of each key */
    as_json_begin_array(&json);
    as_json_begin_object(&json);
    as_json_end_object(&json);
    as_json_end_array(&json);
    as_json_end_object(&json);
    as_json_write_key(&json, "data");
    as_json_begin_object(&json);
    for (size_t i = 0; i < map->count; i++) {
        as_json_write_key(&json, map->items[i].key);
        as_json_write_string_size(&json, map->items[i].text, map->items[i].size);
    }
    as_json_end_object(&json);
    as_json_end_object(&json);
}

static void take_items(struct as_reader *root, const struct tree_value *data,
                       struct as_kube_config_item *items)
{
    size_t count = 0;
    for (const struct tree_value *value = data ? data->first : NULL; value; value = value->next) {
        if (value->kind == TREE_TEXT)
            items[count++] = (struct as_kube_config_item){
                .key = value->name, .text = value->text, .size = value->size};
        else
            as_read_fail(root, "data", "expected texts");
    }
}

struct user { /* decoding's callback */
    as_kube_config_map_fn *use;
    void *context;
};

static void config_map_take_metadata(struct as_reader *root, struct as_kube_config_map *map)
{
    struct as_reader metadata;
    as_read_object(&metadata, root, "metadata");
    map->name = tree_find_text(metadata.object, "name");
    map->version = tree_find_text(metadata.object, "resourceVersion");
    if (as_str_is_empty(map->name) || as_str_is_empty(map->version))
        as_read_fail(&metadata, NULL, "name or resourceVersion is missing");
    else if (strlen(map->version) >= AS_KUBE_VERSION_SIZE)
        as_read_fail(&metadata, "resourceVersion", "too long");
}

static int config_map_take_map(void *context, const struct tree_value *object,
                               struct as_error *error)
{
    const struct user *user = context;
    struct as_kube_config_map map = {0};
    struct as_reader root, data;
    as_read_lenient(&root, object, error);
    config_map_take_metadata(&root, &map);
    as_read_object(&data, &root, "data");
    map.count = data.object ? data.object->size : 0;
    AS_CLEANUP(as_free_p)
    struct as_kube_config_item *items = as_xcalloc(map.count + 1, sizeof(*items));
    take_items(&root, data.object, items);
    map.items = items;
    const int status = as_read_result(&root);
    return status ? status : user->use(user->context, &map, error);
}

int as_kube_config_map_decode(const char *json, size_t size, as_kube_config_map_fn *use,
                              void *context, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct user user = {use, context};
    const int status = kube_object_load(&tree, json, size, "ConfigMap", error);
    return status ? status : config_map_take_map(&user, tree.root, error);
}

int as_kube_config_map_decode_version(const char *json, size_t size,
                                      char version_out[AS_KUBE_VERSION_SIZE],
                                      struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_kube_config_map map = {0};
    struct as_reader root;
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    const char *kind = tree_find_text(tree.root, "kind");
    if (!as_str_equal(kind, "PartialObjectMetadata") && !as_str_equal(kind, "ConfigMap")) {
        as_error_set(error, "kind: expected ConfigMap");
        return -EBADMSG;
    }
    as_read_lenient(&root, tree.root, error);
    config_map_take_metadata(&root, &map);
    status = as_read_result(&root);
    if (status == 0)
        snprintf(version_out, AS_KUBE_VERSION_SIZE, "%s", map.version);
    return status;
}

int as_kube_config_map_list_decode(const char *json, size_t size, char **next_out,
                                   as_kube_config_map_fn *use, void *context,
                                   struct as_error *error)
{
    struct user user = {use, context};
    return kube_list_read(json, size, "ConfigMapList", config_map_take_map, &user, next_out, error);
}
