/*
 * Who else sizes an object: see the header.
 */
#include "kubernetes_others.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>

#include "kube/kube_object.h"

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
    void (*read_more)(const struct tree_value *metadata, struct as_kube_other *other);
};

static int32_t others_codec_get_size(const struct tree_value *spec, const char *name,
                                     int32_t absent)
{
    int64_t size;
    return tree_get_i64(tree_find(spec, name), 0, INT32_MAX, &size) ? (int32_t)size : absent;
}

static const char *others_codec_find_owner(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));
    for (; owner; owner = owner->next) {
        if (as_str_equal(tree_find_text(owner, "kind"), "ScaledObject"))
            return tree_find_text(owner, "name");
    }
    return NULL;
}

/* KEDA reads it as Go's strconv.ParseBool; what is no bool counts as true. */
static bool is_false(const char *text)
{
    static const char *const words[] = {"0", "f", "F", "false", "False", "FALSE"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

/* Paused by annotations: at the size that one of them names, or at the present size. */
static void read_pause(const struct tree_value *metadata, struct as_kube_other *other)
{
    const struct tree_value *notes = tree_find(metadata, "annotations");
    const char *paused = tree_find_text(notes, "autoscaling.keda.sh/paused");
    const char *fixed = tree_find_text(notes, "autoscaling.keda.sh/paused-replicas");
    int64_t size;
    other->is_paused = fixed || (paused && !is_false(paused));
    if (fixed && as_number_parse_i64(fixed, strlen(fixed), &size) == 0 && size >= 0 &&
        size <= INT32_MAX)
        other->min = other->max = (int32_t)size;
}

static const struct form hpa = {.min = "minReplicas",
                                .max = "maxReplicas",
                                .min_absent = HPA_MIN,
                                .max_absent = -1,
                                .api_version = "",
                                .kind = ""};
static const struct form scaled_object = {.min = "minReplicaCount",
                                          .max = "maxReplicaCount",
                                          .max_absent = SCALED_OBJECT_MAX,
                                          .api_version = "apps/v1",
                                          .kind = "Deployment",
                                          .read_more = read_pause};

static const char *others_codec_keep(struct as_kube_others *others, const char *text)
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

static bool others_codec_is_name(const char *text)
{
    return !as_str_is_empty(text) && strlen(text) <= NAME_MAX_BYTES;
}

static int others_codec_take(struct as_kube_others *others, const struct form *form,
                             const struct tree_value *item, struct as_error *error)
{
    const struct tree_value *spec = tree_find(item, "spec");
    const struct tree_value *aim = tree_find(spec, "scaleTargetRef");
    const struct tree_value *metadata = tree_find(item, "metadata");
    const char *name = tree_find_text(metadata, "name"), *target = tree_find_text(aim, "name");
    const char *version = tree_find_text(aim, "apiVersion"), *kind = tree_find_text(aim, "kind");
    const char *owner = others_codec_find_owner(metadata);
    if (!others_codec_is_name(name) || !others_codec_is_name(target))
        return 0;
    if (others->count == others->max) {
        as_error_set(error, "more than %zu", others->max);
        return -E2BIG;
    }
    version = as_str_is_empty(version) ? form->api_version : version;
    others->items =
        as_xgrow(others->items, others->count, &others->capacity, sizeof(*others->items));
    struct as_kube_other *other = &others->items[others->count++];
    *other = (struct as_kube_other){
        .name = others_codec_keep(others, name),
        .group = keep_group(others, version),
        .kind = others_codec_keep(others, as_str_is_empty(kind) ? form->kind : kind),
        .target = others_codec_keep(others, target),
        .owner = others_codec_keep(others, owner),
        .min = others_codec_get_size(spec, form->min, form->min_absent),
        .max = others_codec_get_size(spec, form->max, form->max_absent),
    };
    if (form->read_more)
        form->read_more(metadata, other);
    return 0;
}

static int take_hpa(void *context, const struct tree_value *item, struct as_error *error)
{
    return others_codec_take(context, &hpa, item, error);
}

static int take_scaled_object(void *context, const struct tree_value *item, struct as_error *error)
{
    return others_codec_take(context, &scaled_object, item, error);
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

/* FieldsV1 (structured-merge-diff): `f:NAME` is a member, `k:{"name":"app"}` the element of a list
 * with these members, and an object without members is owned as a whole. */
static bool is_step(const struct tree_value *child, const struct as_field_step *step)
{
    if (!step->value)
        return strncmp(child->name, "f:", 2) == 0 && strcmp(child->name + 2, step->name) == 0;
    if (strncmp(child->name, "k:", 2) != 0)
        return false;
    AS_CLEANUP(tree_deinit) struct tree key = TREE_INIT(TREE_NO_LIMIT);
    return tree_load_object(&key, child->name + 2, strlen(child->name + 2), NULL) == 0 &&
           kube_element_is(key.root, step);
}

static bool owns(const struct tree_value *entry, const struct as_field_path *field)
{
    const struct tree_value *at = tree_find(entry, "fieldsV1");
    for (size_t i = 0; i < field->count; i++) {
        const struct tree_value *child = tree_is(at, TREE_OBJECT) ? at->first : NULL;
        while (child && !is_step(child, &field->steps[i]))
            child = child->next;
        if (!child || (tree_is(child, TREE_OBJECT) && child->size == 0))
            return child != NULL;
        at = child;
    }
    return true;
}

/* The API's times are all of one form, so that they compare as texts. */
int as_kube_manager_decode(const char *json, size_t size, const struct as_field_path *field,
                           char manager_out[AS_MANAGER_SIZE], struct as_error *error)
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
        if (!who || !owns(entry, field) || strcmp(time ? time : "", latest) < 0)
            continue;
        latest = time ? time : "";
        manager = who;
    }
    const size_t kept = as_str_cut_utf8(manager, strlen(manager), AS_MANAGER_SIZE - 1);
    memcpy(manager_out, manager, kept);
    manager_out[kept] = '\0';
    return 0;
}
