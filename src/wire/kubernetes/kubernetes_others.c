/*
 * Who else sizes an object: see the header.
 */
#include <alertscaler/wire/kubernetes_others.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "kube_list.h"
#include "json/reader.h"

#define HPA_MIN           1 /* what the API takes where nothing is said */
#define SCALED_OBJECT_MAX 100
#define NAME_MAX_BYTES    253 /* a DNS subdomain */

void as_kube_others_clear(struct as_kube_others *others)
{
    others->count = 0;
    as_arena_reset(&others->texts);
}

void as_kube_others_deinit(struct as_kube_others *others)
{
    free(others->items);
    as_arena_deinit(&others->texts);
    *others = (struct as_kube_others){.max = others->max, .texts = AS_ARENA_INIT};
}

struct form { /* what differs between the two kinds */
    const char *min, *max;
    int32_t min_absent, max_absent;
    const char *api_version, *kind; /* of the reference, where nothing is said */
};

static const struct form hpa = {"minReplicas", "maxReplicas", HPA_MIN, -1, "", ""};
static const struct form scaled_object = {"minReplicaCount", "maxReplicaCount", 0,
                                          SCALED_OBJECT_MAX, "apps/v1",         "Deployment"};

static int32_t get_size(const struct tree_value *spec, const char *name, int32_t absent)
{
    int64_t size;
    return tree_get_i64(tree_find(spec, name), 0, INT32_MAX, &size) ? (int32_t)size : absent;
}

static const char *find_owner(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));
    for (; owner; owner = owner->next) {
        if (as_str_equal(tree_find_text(owner, "kind"), "ScaledObject"))
            return tree_find_text(owner, "name");
    }
    return NULL;
}

static const char *keep(struct as_kube_others *others, const char *text)
{
    return as_arena_strdup(&others->texts, text ? text : "");
}

/* "apps/v1" -> "apps"; "v1" -> "", the core's */
static const char *keep_group(struct as_kube_others *others, const char *version)
{
    const char *slash = strchr(version, '/');
    const size_t size = slash ? (size_t)(slash - version) : 0;
    char *group = as_arena_alloc(&others->texts, size + 1, 1);
    memcpy(group, version, size);
    group[size] = '\0';
    return group;
}

static bool is_name(const char *text)
{
    return !as_str_is_empty(text) && strlen(text) <= NAME_MAX_BYTES;
}

static int take(struct as_kube_others *others, const struct form *form,
                const struct tree_value *item, struct as_error *error)
{
    const struct tree_value *spec = tree_find(item, "spec");
    const struct tree_value *aim = tree_find(spec, "scaleTargetRef");
    const struct tree_value *metadata = tree_find(item, "metadata");
    const char *name = tree_find_text(metadata, "name"), *target = tree_find_text(aim, "name");
    const char *version = tree_find_text(aim, "apiVersion"), *kind = tree_find_text(aim, "kind");
    const char *owner = find_owner(metadata);
    if (!is_name(name) || !is_name(target))
        return 0;
    if (others->count == others->max) {
        as_error_set(error, "more than %zu", others->max);
        return -E2BIG;
    }
    version = as_str_is_empty(version) ? form->api_version : version;
    others->items =
        as_xgrow(others->items, others->count, &others->capacity, sizeof(*others->items));
    others->items[others->count++] = (struct as_kube_other){
        .name = keep(others, name),
        .group = keep_group(others, version),
        .kind = keep(others, as_str_is_empty(kind) ? form->kind : kind),
        .target = keep(others, target),
        .owner = keep(others, owner),
        .min = get_size(spec, form->min, form->min_absent),
        .max = get_size(spec, form->max, form->max_absent),
    };
    return 0;
}

static int take_hpa(void *context, const struct tree_value *item, struct as_error *error)
{
    return take(context, &hpa, item, error);
}

static int take_scaled_object(void *context, const struct tree_value *item, struct as_error *error)
{
    return take(context, &scaled_object, item, error);
}

int as_kube_hpas_decode(struct as_kube_others *others, const char *json, size_t size,
                        char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "HorizontalPodAutoscalerList", take_hpa, others, next_out,
                          error);
}

int as_kube_scaled_objects_decode(struct as_kube_others *others, const char *json, size_t size,
                                  char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "ScaledObjectList", take_scaled_object, others, next_out,
                          error);
}

static bool owns_size(const struct tree_value *entry)
{
    const struct tree_value *fields = tree_find(entry, "fieldsV1");
    return tree_find(tree_find(fields, "f:spec"), "f:replicas") != NULL;
}

/* The API's times are all of one form, so that they compare as texts. */
int as_kube_manager_decode(const char *json, size_t size, char manager_out[AS_MANAGER_SIZE],
                           struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    const char *latest = "", *manager = "";
    const struct tree_value *entry =
        tree_get_first(tree_find(tree_find(tree.root, "metadata"), "managedFields"));
    for (; entry; entry = entry->next) {
        const char *time = tree_find_text(entry, "time"), *who = tree_find_text(entry, "manager");
        if (!who || !owns_size(entry) || strcmp(time ? time : "", latest) < 0)
            continue;
        latest = time ? time : "";
        manager = who;
    }
    const size_t kept = as_str_cut_utf8(manager, strlen(manager), AS_MANAGER_SIZE - 1);
    memcpy(manager_out, manager, kept);
    manager_out[kept] = '\0';
    return 0;
}
