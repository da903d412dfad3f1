/*
 * Messages of Protocol Buffers as trees, and the tables of the fields that are read. Reading goes
 * as deep as the tables of parts.
 */
#include "kube_protobuf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/protobuf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/kube/kube_facts.h>
#include <alertscaler/kube/kube_nodes.h>

#include "kube_annotations.h"

#define SECONDS_MAX INT64_C(253402300799) /* the last of the year 9999 */

/* An object or a list that is being filled. */
struct filling {
    struct tree_value *value, **next;
};

static int protobuf_fail(struct as_error *error, const char *what)
{
    as_error_set(error, "%s", what);
    return -EINVAL;
}

static void protobuf_begin(struct filling *filling, struct tree_value *value, enum tree_kind kind)
{
    value->kind = kind;
    *filling = (struct filling){value, &value->first};
}

/* One more value; NULL: the pool is exhausted. */
static struct tree_value *protobuf_append(struct tree *tree, struct filling *filling,
                                          const char *name, struct as_error *error)
{
    struct tree_value *value = tree_alloc(tree, sizeof(*value));

    if (!value) {
        as_error_set(error, "too many values for an object of this size");
        return NULL;
    }
    *value = (struct tree_value){
        .kind = TREE_NULL,
        .name = name,
        .name_size = name ? (uint32_t)strlen(name) : 0,
    };
    *filling->next = value;
    filling->next = &value->next;
    filling->value->size++;
    return value;
}

static int protobuf_copy_text(struct tree *tree, const struct as_protobuf_field *field,
                              const char **text_out, uint32_t *size_out, struct as_error *error)
{
    if (field->type != AS_PROTOBUF_BYTES)
        return protobuf_fail(error, "expected a string");
    if (field->size > 0 && memchr(field->data, '\0', field->size))
        return protobuf_fail(error, "a NUL in a text");
    if (!as_str_is_utf8((const char *)field->data, field->size))
        return protobuf_fail(error, "a text that is not UTF-8");
    char *text = tree_alloc(tree, field->size + 1);
    if (!text)
        return protobuf_fail(error, "too large");
    if (field->size > 0)
        memcpy(text, field->data, field->size);
    text[field->size] = '\0';
    *text_out = text;
    *size_out = (uint32_t)field->size;
    return 0;
}

static int protobuf_read_text(struct tree *tree, const struct as_protobuf_field *field,
                              struct tree_value *value, struct as_error *error)
{
    value->kind = TREE_TEXT;
    return protobuf_copy_text(tree, field, &value->text, &value->size, error);
}

static int protobuf_read_varint(const struct as_protobuf_field *field, bool is_boolean,
                                struct tree_value *value, struct as_error *error)
{
    if (field->type != AS_PROTOBUF_VARINT)
        return protobuf_fail(error, is_boolean ? "expected true or false" : "expected a number");
    value->kind = is_boolean ? TREE_BOOLEAN : TREE_INTEGER;
    if (is_boolean)
        value->boolean = field->value != 0;
    else
        value->integer = (int64_t)field->value;
    return 0;
}

/* The value of field 1 of a message; *found_out says whether it is there. */
static int find_first(const struct as_protobuf_field *field, struct as_protobuf_field *first_out,
                      bool *found_out, struct as_error *error)
{
    struct as_protobuf_reader reader;
    struct as_protobuf_field inner;

    *found_out = false;
    if (!as_protobuf_get_message(field, &reader))
        return protobuf_fail(error, "expected a message");
    while (as_protobuf_next(&reader, &inner)) {
        if (inner.number != 1)
            continue;
        *first_out = inner;
        *found_out = true;
    }
    return reader.is_malformed ? protobuf_fail(error, "not a message") : 0;
}

/* An empty message is the time that is not set: null in JSON. */
static int protobuf_read_time(struct tree *tree, const struct as_protobuf_field *field,
                              struct tree_value *value, struct as_error *error)
{
    struct as_protobuf_field seconds;
    bool is_found;
    int status = find_first(field, &seconds, &is_found, error);

    if (status < 0 || !is_found)
        return status;
    const int64_t count = (int64_t)seconds.value;
    if (seconds.type != AS_PROTOBUF_VARINT || count > SECONDS_MAX || count < -SECONDS_MAX)
        return protobuf_fail(error, "expected a time");
    char *text = tree_alloc(tree, AS_RFC3339_SIZE);
    if (!text)
        return protobuf_fail(error, "too large");
    as_wall_time_print_short((as_wall_time){count * AS_US_PER_S}, text);
    value->kind = TREE_TEXT;
    value->text = text;
    value->size = (uint32_t)strlen(text);
    return 0;
}

/* A Quantity: a message with one text. */
static int read_quantity(struct tree *tree, const struct as_protobuf_field *field,
                         struct tree_value *value, struct as_error *error)
{
    struct as_protobuf_field text = {.type = AS_PROTOBUF_BYTES};
    bool is_found;
    int status = find_first(field, &text, &is_found, error);
    return status < 0 ? status : protobuf_read_text(tree, &text, value, error);
}

static bool protobuf_is_wanted(const struct tree_part *names, const char *name)
{
    for (; names && names->name; names++) {
        if (strcmp(names->name, name) == 0)
            return true;
    }
    return !names;
}

/* An entry of a map: a message of key and value, either of which may be missing. */
static int read_entry(struct tree *tree, const struct as_protobuf_field *field,
                      const struct tree_part *part, struct filling *map, struct as_error *error)
{
    struct as_protobuf_field inner, key = {.type = AS_PROTOBUF_BYTES},
                                    content = {.type = AS_PROTOBUF_BYTES};
    struct as_protobuf_reader reader;
    const char *name;
    uint32_t size;

    if (!as_protobuf_get_message(field, &reader))
        return protobuf_fail(error, "expected a message");
    while (as_protobuf_next(&reader, &inner)) {
        if (inner.number == 1)
            key = inner;
        else if (inner.number == 2)
            content = inner;
    }
    if (reader.is_malformed)
        return protobuf_fail(error, "not a message");
    int status = protobuf_copy_text(tree, &key, &name, &size, error);
    if (status < 0 || !protobuf_is_wanted(part->parts, name))
        return status;
    struct tree_value *value = protobuf_append(tree, map, name, error);
    if (!value)
        return -EINVAL;
    return part->kind == KUBE_QUANTITY_MAP ? read_quantity(tree, &content, value, error)
                                           : protobuf_read_text(tree, &content, value, error);
}

static int protobuf_read_object(struct tree *tree, const struct as_protobuf_field *field,
                                const struct tree_part *parts, struct filling *object,
                                struct as_error *error);

static int read_message(struct tree *tree, const struct as_protobuf_field *field,
                        const struct tree_part *parts, struct tree_value *value,
                        struct as_error *error)
{
    struct filling object;

    protobuf_begin(&object, value, TREE_OBJECT);
    return protobuf_read_object(tree, field, parts, &object, error);
}

static int read_item(struct tree *tree, const struct as_protobuf_field *field,
                     const struct tree_part *part, struct filling *list, struct as_error *error)
{
    struct tree_value *value = protobuf_append(tree, list, NULL, error);

    if (!value)
        return -EINVAL;
    return part->kind == KUBE_TEXTS ? protobuf_read_text(tree, field, value, error)
                                    : read_message(tree, field, part->parts, value, error);
}

static int read_singular(struct tree *tree, const struct as_protobuf_field *field,
                         const struct tree_part *part, struct tree_value *value,
                         struct as_error *error)
{
    switch ((enum kube_part_kind)part->kind) {
    case KUBE_TEXT: return protobuf_read_text(tree, field, value, error);
    case KUBE_NUMBER: return protobuf_read_varint(field, false, value, error);
    case KUBE_BOOLEAN: return protobuf_read_varint(field, true, value, error);
    case KUBE_TIME: return protobuf_read_time(tree, field, value, error);
    case KUBE_OBJECT: return read_message(tree, field, part->parts, value, error);
    case KUBE_TEXTS:
    case KUBE_OBJECTS:
    case KUBE_TEXT_MAP:
    case KUBE_QUANTITY_MAP: break;
    }
    abort(); /* these are repeated */
}

/* `filling` is that of the field, whose value is NULL before its first time. */
static int protobuf_read_field(struct tree *tree, const struct as_protobuf_field *field,
                               const struct tree_part *part, struct filling *object,
                               struct filling *filling, struct as_error *error)
{
    const bool is_map = part->kind == KUBE_TEXT_MAP || part->kind == KUBE_QUANTITY_MAP;
    const bool is_list = part->kind == KUBE_TEXTS || part->kind == KUBE_OBJECTS;

    if (!filling->value) {
        struct tree_value *value = protobuf_append(tree, object, part->name, error);
        if (!value)
            return -EINVAL;
        protobuf_begin(filling, value, is_map ? TREE_OBJECT : TREE_ARRAY);
    } else if (!is_map && !is_list) {
        return protobuf_fail(error, "comes twice");
    }
    if (is_map)
        return read_entry(tree, field, part, filling, error);
    if (is_list)
        return read_item(tree, field, part, filling, error);
    filling->value->kind = TREE_NULL;
    return read_singular(tree, field, part, filling->value, error);
}

static int check_maps(const struct tree_part *parts, const struct filling fillings[],
                      struct as_error *error)
{
    const struct tree_value *second = NULL;

    for (size_t i = 0; parts[i].name; i++) {
        if (!fillings[i].value || fillings[i].value->kind != TREE_OBJECT)
            continue;
        int status = tree_find_duplicate(fillings[i].value, &second, error);
        if (second)
            status = protobuf_fail(error, "a key comes twice");
        if (status < 0) {
            as_error_wrap(error, "%s", parts[i].name);
            return status;
        }
    }
    return 0;
}

static int protobuf_read_object(struct tree *tree, const struct as_protobuf_field *field,
                                const struct tree_part *parts, struct filling *object,
                                struct as_error *error)
{
    struct filling fillings[KUBE_PARTS_MAX] = {{.value = NULL}};
    struct as_protobuf_reader reader;
    struct as_protobuf_field inner;

    if (!as_protobuf_get_message(field, &reader))
        return protobuf_fail(error, "expected a message");
    while (as_protobuf_next(&reader, &inner)) {
        size_t i = 0;
        while (parts[i].name && parts[i].number != inner.number)
            i++;
        assert(i < KUBE_PARTS_MAX);
        if (!parts[i].name)
            continue;
        int status =
            parts[i].kind == TREE_PART_INLINE
                ? protobuf_read_object(tree, &inner, parts[i].parts, object, error)
                : protobuf_read_field(tree, &inner, &parts[i], object, &fillings[i], error);
        if (status < 0) {
            as_error_wrap(error, "%s", parts[i].name);
            return status;
        }
    }
    if (reader.is_malformed)
        return protobuf_fail(error, "not a message");
    return check_maps(parts, fillings, error);
}

int kube_protobuf_read(struct tree *tree, const void *data, size_t size,
                       const struct tree_part *parts, struct as_error *error)
{
    const struct as_protobuf_field whole = {.type = AS_PROTOBUF_BYTES, .data = data, .size = size};
    struct tree_value *root = tree_alloc(tree, sizeof(*root));

    if (!root)
        return protobuf_fail(error, "too large");
    *root = (struct tree_value){.kind = TREE_NULL};
    int status = read_message(tree, &whole, parts, root, error);
    if (status == 0)
        tree->root = root;
    return status;
}

/*
 * Tables of fields. The numbers are those of generated.proto in k8s.io/api 0.37 and
 * k8s.io/apimachinery 0.37, where they never change.
 */

static const struct tree_part nothing[] = {{.name = NULL}};

/* meta/v1 */

static const struct tree_part owner[] = {
    {"kind", 1, KUBE_TEXT, NULL},
    {"controller", 6, KUBE_BOOLEAN, NULL},
    {.name = NULL},
};

static const struct tree_part label_requirement[] = {
    {"key", 1, KUBE_TEXT, NULL},
    {"operator", 2, KUBE_TEXT, NULL},
    {"values", 3, KUBE_TEXTS, NULL},
    {.name = NULL},
};

static const struct tree_part label_selector[] = {
    {"matchLabels", 1, KUBE_TEXT_MAP, NULL},
    {"matchExpressions", 2, KUBE_OBJECTS, label_requirement},
    {.name = NULL},
};

static const struct tree_part name_only[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"namespace", 3, KUBE_TEXT, NULL},
    {.name = NULL},
};

const struct tree_part kube_name_parts[] = {
    {"metadata", 1, KUBE_OBJECT, name_only},
    {.name = NULL},
};

/* A node has no namespace: a bad one is not read. */
static const struct tree_part node_name_only[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {.name = NULL},
};

const struct tree_part kube_node_name_parts[] = {
    {"metadata", 1, KUBE_OBJECT, node_name_only},
    {.name = NULL},
};

/* Conditions of nodes and pods: core/v1's NodeCondition and PodCondition have the same numbers. */
static const struct tree_part condition[] = {
    {"type", 1, KUBE_TEXT, NULL},
    {"status", 2, KUBE_TEXT, NULL},
    {"lastTransitionTime", 4, KUBE_TIME, NULL},
    {"reason", 5, KUBE_TEXT, NULL},
    {.name = NULL},
};

/* Node */

static const struct tree_part node_annotations[] = {
    {.name = AS_NODE_MARK_ANNOTATION},
    {.name = KEEP_CLUSTER_AUTOSCALER},
    {.name = KEEP_OURS},
    {.name = KEEP_ESCALATOR},
    {.name = NULL},
};

static const struct tree_part node_metadata[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"creationTimestamp", 8, KUBE_TIME, NULL},
    {"labels", 11, KUBE_TEXT_MAP, NULL},
    {"annotations", 12, KUBE_TEXT_MAP, node_annotations},
    {.name = NULL},
};

static const struct tree_part taint[] = {
    {"key", 1, KUBE_TEXT, NULL},
    {"value", 2, KUBE_TEXT, NULL},
    {"effect", 3, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part node_spec[] = {
    {"providerID", 3, KUBE_TEXT, NULL},
    {"unschedulable", 4, KUBE_BOOLEAN, NULL},
    {"taints", 5, KUBE_OBJECTS, taint},
    {.name = NULL},
};

static const struct tree_part node_status[] = {
    {"capacity", 1, KUBE_QUANTITY_MAP, NULL},
    {"allocatable", 2, KUBE_QUANTITY_MAP, NULL},
    {"conditions", 4, KUBE_OBJECTS, condition},
    {.name = NULL},
};

const struct tree_part kube_node_parts[] = {
    {"metadata", 1, KUBE_OBJECT, node_metadata},
    {"spec", 2, KUBE_OBJECT, node_spec},
    {"status", 3, KUBE_OBJECT, node_status},
    {.name = NULL},
};

/* Pod */

static const struct tree_part pod_annotations[] = {
    {.name = SAFE_TO_EVICT}, {.name = SAFE_LOCAL_VOLUMES},
    {.name = DAEMONSET_POD}, {.name = MIRROR_POD},
    {.name = NULL},
};

static const struct tree_part pod_metadata[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"namespace", 3, KUBE_TEXT, NULL},
    {"creationTimestamp", 8, KUBE_TIME, NULL},
    {"deletionTimestamp", 9, KUBE_TIME, NULL},
    {"labels", 11, KUBE_TEXT_MAP, NULL},
    {"annotations", 12, KUBE_TEXT_MAP, pod_annotations},
    {"ownerReferences", 13, KUBE_OBJECTS, owner},
    {.name = NULL},
};

static const struct tree_part empty_dir[] = {
    {"medium", 1, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part volume_source[] = {
    {"hostPath", 1, KUBE_OBJECT, nothing},
    {"emptyDir", 2, KUBE_OBJECT, empty_dir},
    {"persistentVolumeClaim", 10, KUBE_OBJECT, nothing},
    {"csi", 28, KUBE_OBJECT, nothing},
    {"ephemeral", 29, KUBE_OBJECT, nothing},
    {.name = NULL},
};

static const struct tree_part volume[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"volumeSource", 2, TREE_PART_INLINE, volume_source},
    {.name = NULL},
};

static const struct tree_part resources[] = {
    {"requests", 2, KUBE_QUANTITY_MAP, NULL},
    {.name = NULL},
};

static const struct tree_part port[] = {
    {"hostPort", 2, KUBE_NUMBER, NULL},
    {"containerPort", 3, KUBE_NUMBER, NULL},
    {"protocol", 4, KUBE_TEXT, NULL},
    {"hostIP", 5, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part container[] = {
    {"ports", 6, KUBE_OBJECTS, port},
    {"resources", 8, KUBE_OBJECT, resources},
    {"restartPolicy", 24, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part toleration[] = {
    {"key", 1, KUBE_TEXT, NULL},
    {"operator", 2, KUBE_TEXT, NULL},
    {"value", 3, KUBE_TEXT, NULL},
    {"effect", 4, KUBE_TEXT, NULL},
    {.name = NULL},
};

/* NodeSelectorRequirement has the numbers of LabelSelectorRequirement. */
static const struct tree_part node_term[] = {
    {"matchExpressions", 1, KUBE_OBJECTS, label_requirement},
    {"matchFields", 2, KUBE_OBJECTS, label_requirement},
    {.name = NULL},
};

static const struct tree_part node_selector[] = {
    {"nodeSelectorTerms", 1, KUBE_OBJECTS, node_term},
    {.name = NULL},
};

static const struct tree_part node_affinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", 1, KUBE_OBJECT, node_selector},
    {.name = NULL},
};

static const struct tree_part affinity_term[] = {
    {"labelSelector", 1, KUBE_OBJECT, label_selector},
    {"namespaces", 2, KUBE_TEXTS, NULL},
    {"topologyKey", 3, KUBE_TEXT, NULL},
    {"namespaceSelector", 4, KUBE_OBJECT, label_selector},
    {.name = NULL},
};

static const struct tree_part pod_affinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", 1, KUBE_OBJECTS, affinity_term},
    {.name = NULL},
};

static const struct tree_part affinity[] = {
    {"nodeAffinity", 1, KUBE_OBJECT, node_affinity},
    {"podAffinity", 2, KUBE_OBJECT, pod_affinity},
    {"podAntiAffinity", 3, KUBE_OBJECT, pod_affinity},
    {.name = NULL},
};

static const struct tree_part spread[] = {
    {"whenUnsatisfiable", 3, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part pod_spec[] = {
    {"volumes", 1, KUBE_OBJECTS, volume},
    {"containers", 2, KUBE_OBJECTS, container},
    {"nodeSelector", 7, KUBE_TEXT_MAP, NULL},
    {"nodeName", 10, KUBE_TEXT, NULL},
    {"hostNetwork", 11, KUBE_BOOLEAN, NULL},
    {"affinity", 18, KUBE_OBJECT, affinity},
    {"initContainers", 20, KUBE_OBJECTS, container},
    {"tolerations", 22, KUBE_OBJECTS, toleration},
    {"priority", 25, KUBE_NUMBER, NULL},
    {"preemptionPolicy", 31, KUBE_TEXT, NULL},
    {"overhead", 32, KUBE_QUANTITY_MAP, NULL},
    {"topologySpreadConstraints", 33, KUBE_OBJECTS, spread},
    {"resourceClaims", 39, KUBE_OBJECTS, nothing},
    {"resources", 40, KUBE_OBJECT, resources},
    {.name = NULL},
};

static const struct tree_part pod_status[] = {
    {"phase", 1, KUBE_TEXT, NULL},
    {"conditions", 2, KUBE_OBJECTS, condition},
    {"nominatedNodeName", 11, KUBE_TEXT, NULL},
    {.name = NULL},
};

const struct tree_part kube_pod_parts[] = {
    {"metadata", 1, KUBE_OBJECT, pod_metadata},
    {"spec", 2, KUBE_OBJECT, pod_spec},
    {"status", 3, KUBE_OBJECT, pod_status},
    {.name = NULL},
};

/* PodDisruptionBudget */

static const struct tree_part budget_spec[] = {
    {"selector", 2, KUBE_OBJECT, label_selector},
    {.name = NULL},
};

static const struct tree_part budget_status[] = {
    {"disruptionsAllowed", 3, KUBE_NUMBER, NULL},
    {.name = NULL},
};

const struct tree_part kube_budget_parts[] = {
    {"metadata", 1, KUBE_OBJECT, name_only},
    {"spec", 2, KUBE_OBJECT, budget_spec},
    {"status", 3, KUBE_OBJECT, budget_status},
    {.name = NULL},
};
