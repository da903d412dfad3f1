/*
 * The kinds of targets that the program knows: a row for each kind, with the checks of the values
 * of its address, and the dimensions of an object that can be its size. The table of all rows is
 * kind_table.c.
 *
 * A row needs no input or output, and knows neither the table nor another row.
 */
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/model/field_path.h>

/*
 * The dimension of a target's object that is its size: the scale, a field or a container's
 * resource. One row for each dimension; its part of an id; what an address says about it.
 *
 * A dimension is found by its key of the address. This part knows no kind of target.
 */

/* What is no path stays as it is: such an id names no target. */
static void kind_append_path(const char *value, struct as_buf *out)
{
    struct as_field_path path;
    if (as_field_path_parse(value, &path, NULL) == 0)
        as_field_path_print(&path, path.count, out);
    else
        as_buf_append_str(out, value);
}

static void kind_append_word(const char *value, struct as_buf *out)
{
    as_buf_append_str(out, value);
}

const struct as_sized_kind as_sized_kinds[] = {
    {AS_SIZED_FIELD, "field", {"field"}, kind_append_path},
    {AS_SIZED_RESOURCE, "container", {"container", "resource"}, kind_append_word},
    {.word = NULL},
};

size_t as_sized_find(const char *id)
{
    const size_t owner = strcspn(id, "/"); /* a cluster's name may have a colon, no later part */
    return owner + strcspn(id + owner, ":");
}

static void as_sized_append_key(const char *text, struct as_buf *out)
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

/* The rows */

bool as_target_value_is_plain(const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        if (*c < 0x20 || *c == 0x7F || (*c == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0))
            return false;
    }
    return *value && as_str_is_utf8(value, strlen(value));
}

/* A name in the configuration; without '/', because it is part of an id. */
static bool is_configured_name(const char *value)
{
    return as_target_value_is_plain(value) && !strchr(value, '/');
}

/*
 * Kubernetes objects: their subresource `scale`, a field, or a resource of a container of their
 * pods (decide/sized.h).
 */

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_letter_or_digit(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_dns_part(const char *text, size_t size)
{
    if (size == 0 || text[0] == '-' || text[size - 1] == '-')
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_lower_or_digit(text[i]) && text[i] != '-')
            return false;
    }
    return true;
}

/* RFC 1123 label. */
static bool is_dns_label(const char *text, size_t size)
{
    return size <= 63 && is_dns_part(text, size);
}

/* RFC 1123 subdomain as Kubernetes checks it: parts of any length with dots between them. */
static bool is_dns_subdomain(const char *text, size_t size)
{
    if (size > 253)
        return false;
    for (;;) {
        const char *dot = memchr(text, '.', size);
        size_t part = dot ? (size_t)(dot - text) : size;
        if (!is_dns_part(text, part))
            return false;
        if (!dot)
            return true;
        text += part + 1;
        size -= part + 1;
    }
}

static bool is_namespace(const char *value)
{
    return is_dns_label(value, strlen(value));
}

static bool kind_is_name(const char *value)
{
    return is_dns_subdomain(value, strlen(value));
}

/* "v1" or "apps/v1": a group is a subdomain, a version a label. */
static bool is_api_version(const char *value)
{
    const char *slash = strchr(value, '/');
    const char *version = slash ? slash + 1 : value;

    return is_dns_label(version, strlen(version)) &&
           (!slash || is_dns_subdomain(value, (size_t)(slash - value)));
}

/* [A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?, at most 63 bytes. */
static bool is_kind(const char *value)
{
    size_t size = strlen(value);

    if (size == 0 || size > 63 || value[size - 1] == '-' || !is_letter_or_digit(value[0]) ||
        (value[0] >= '0' && value[0] <= '9'))
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_letter_or_digit(value[i]) && value[i] != '-')
            return false;
    }
    return true;
}

static bool is_path(const char *value)
{
    struct as_field_path path;
    return as_field_path_parse(value, &path, NULL) == 0;
}

static bool is_unit(const char *value)
{
    struct as_unit unit;
    return as_unit_parse(value, &unit, NULL) == 0;
}

bool as_sized_is_container(const char *name)
{
    return is_dns_label(name, strlen(name));
}

static bool kind_is_resource(const char *value)
{
    return strcmp(value, "cpu") == 0 || strcmp(value, "memory") == 0;
}

static const char *const limits_words[] = {"scale", "keep", NULL};
static const char *const apply_words[] = {"template", "pods", NULL};

static bool is_limits(const char *value)
{
    return strcmp(value, limits_words[0]) == 0 || strcmp(value, limits_words[1]) == 0;
}

static bool is_apply(const char *value)
{
    return strcmp(value, apply_words[0]) == 0 || strcmp(value, apply_words[1]) == 0;
}

static bool is_flag(const char *value)
{
    return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

static bool is_size(const char *value)
{
    int64_t size;
    return as_number_parse_i64(value, strlen(value), &size) == 0 && size >= 0 && size <= INT32_MAX;
}

#define PARTS_MAX 6 /* cluster, group, version, kind, namespace, name */

/* "default/apps/v1/Deployment/shop/web"; also a pattern of ids (decide/target.c), where `*` is any
 * version of any group. False: not of this kind. */
static bool kubernetes_append_key(const char *text, struct as_buf *out)
{
    const char *parts[PARTS_MAX];
    const char *const sized = text + as_sized_find(text);
    size_t sizes[PARTS_MAX], count = 0;
    for (;;) {
        size_t size = strcspn(text, "/");
        if (size > (size_t)(sized - text))
            size = (size_t)(sized - text);
        if (count == PARTS_MAX)
            return false;
        parts[count] = text;
        sizes[count++] = size;
        text += size;
        if (*text != '/')
            break;
        text++;
    }
    if (count < PARTS_MAX - 1)
        return false;
    const bool has_group = count == PARTS_MAX || (sizes[1] == 1 && parts[1][0] == '*');
    const bool is_extensions =
        sizes[1] == strlen("extensions") && memcmp(parts[1], "extensions", sizes[1]) == 0;
    as_buf_append(out, parts[0], sizes[0]);
    as_buf_append_char(out, '/');
    if (has_group && is_extensions)
        as_buf_append_str(out, "apps");
    else if (has_group)
        as_buf_append(out, parts[1], sizes[1]);
    as_buf_append_char(out, '/');
    as_buf_append(out, parts[count - 3], (size_t)(sized - parts[count - 3]));
    as_sized_append_key(sized, out);
    return true;
}

/* kube-state-metrics' names. Several of its replicas may report the same: max() takes one. */
static const struct {
    const char *kind, *field, *metric, *label; /* field "": the scale */
} size_metrics[] = {
    {"Deployment", "", "kube_deployment_spec_replicas", "deployment"},
    {"StatefulSet", "", "kube_statefulset_replicas", "statefulset"},
    {"ReplicaSet", "", "kube_replicaset_spec_replicas", "replicaset"},
    {"ReplicationController", "", "kube_replicationcontroller_spec_replicas",
     "replicationcontroller"},
    {"HorizontalPodAutoscaler", "spec.minReplicas",
     "kube_horizontalpodautoscaler_spec_min_replicas", "horizontalpodautoscaler"},
    {"HorizontalPodAutoscaler", "spec.maxReplicas",
     "kube_horizontalpodautoscaler_spec_max_replicas", "horizontalpodautoscaler"},
    {"Job", "spec.parallelism", "kube_job_spec_parallelism", "job_name"},
    {"PersistentVolumeClaim", "spec.resources.requests.storage",
     "kube_persistentvolumeclaim_resource_requests_storage_bytes", "persistentvolumeclaim"},
};

/* The metrics are in base units: bytes, pods. */
static void append_metric(const struct as_target_ref *ref, const char *metric, const char *label,
                          struct as_buf *out)
{
    const char *unit = as_sized_get_unit(ref);
    double number = 1;
    const bool has_unit = *unit && as_quantity_parse(unit, strlen(unit), &number) == 0;
    char divisor[AS_NUMBER_SIZE];
    as_number_print_double(number, divisor);
    as_buf_printf(out, "%smax(%s{namespace=\"%s\",%s=\"%s\"})", has_unit ? "ceil(" : "", metric,
                  as_target_ref_get(ref, "namespace"), label, as_target_ref_get(ref, "name"));
    if (has_unit)
        as_buf_printf(out, " / %s)", divisor);
}

static bool append_size_query(const struct as_target_ref *ref, struct as_buf *out)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(size_metrics); i++) {
        if (strcmp(size_metrics[i].kind, as_target_ref_get(ref, "kind")) != 0 ||
            strcmp(size_metrics[i].field, as_target_ref_get(ref, "field")) != 0)
            continue;
        append_metric(ref, size_metrics[i].metric, size_metrics[i].label, out);
        return true;
    }
    return false;
}

const struct as_target_kind as_target_kind_kubernetes = {
    .word = "kubernetes",
    .title = "a Kubernetes object",
    .unit = "replicas",
    .example = "{kind: Deployment, namespace: shop, name: web}",
    .owner = "cluster",
    .keys =
        {
            {.key = "cluster",
             .fallback = "default",
             .is_valid = is_configured_name,
             .expected = "a cluster's name",
             .about = "The name of the cluster in the configuration."},
            {.key = "apiVersion",
             .is_valid = is_api_version,
             .expected = "an API version like apps/v1",
             .about = "The version of the kind; known for Deployment, StatefulSet, ReplicaSet and "
                      "ReplicationController."},
            {.key = "kind",
             .is_required = true,
             .is_valid = is_kind,
             .expected = "a kind like Deployment",
             .about = "The kind of the object, for example Deployment."},
            {.key = "namespace", /* of kinds that are in one */
             .is_valid = is_namespace,
             .expected = "a DNS label: a-z, 0-9 and -, at most 63 characters",
             .about = "The namespace of the object."},
            {.key = "name",
             .is_required = true,
             .is_valid = kind_is_name,
             .expected = "a DNS subdomain: a-z, 0-9, - and ., at most 253 characters",
             .about = "The name of the object."},
            {.key = "field",
             .is_sized = true,
             .is_valid = is_path,
             .expected = "the path of a field like spec.minReplicas",
             .about = "The path of a number in the object that is sized, instead of the object's "
                      "scale."},
            {.key = "unit",
             .is_sized = true,
             .is_valid = is_unit,
             .expected = "a quantity above 0 like 1Gi",
             .about = "With `field` or `container`: the quantity that sizes count, like 1Gi."},
            {.key = "absent",
             .is_sized = true,
             .is_number = true,
             .is_valid = is_size,
             .expected = "a size",
             .about = "With `field`: the size if the object lacks the field."},
            {.key = "status_field",
             .is_sized = true,
             .is_valid = is_path,
             .expected = "the path of a field like status.currentReplicas",
             .about = "With `field`: the path of the integer that is the actual size."},
            {.key = "container",
             .is_sized = true,
             .is_valid = as_sized_is_container,
             .expected = "a container's name",
             .about = "The container whose request is sized, instead of the object's scale."},
            {.key = "resource",
             .is_sized = true,
             .is_valid = kind_is_resource,
             .expected = "`cpu` or `memory`",
             .about = "With `container`: cpu or memory."},
            {.key = "limits",
             .is_sized = true,
             .is_valid = is_limits,
             .expected = "`scale` or `keep`",
             .words = limits_words,
             .about = "With `container`: `limits: scale` keeps the ratio of the limit to the "
                      "request, `limits: keep` keeps the limit."},
            {.key = "apply",
             .is_sized = true,
             .is_valid = is_apply,
             .expected = "`template` or `pods`",
             .words = apply_words,
             .about = "With `container`: `apply: template` changes the pod template, `apply: pods` "
                      "resizes the running pods."},
            {.key = "template",
             .is_sized = true,
             .is_flag = true,
             .is_valid = is_flag,
             .expected = "true or false",
             .about = "With `apply: pods`: changes the template too, where this replaces no pods."},
        },
    .allow =
        {
            [AS_ALLOW_CLUSTERS] = "cluster",
            [AS_ALLOW_API_VERSIONS] = "apiVersion",
            [AS_ALLOW_KINDS] = "kind",
            [AS_ALLOW_NAMESPACES] = "namespace",
            [AS_ALLOW_NAMES] = "name",
        },
    .append_key = kubernetes_append_key,
    .has_pods = true,
    .is_current = true,
    .append_size_query = append_size_query,
};

/*
 * Groups of instances at a provider. The provider says which keys an address has, and which of them
 * say where the group is (rules/provider_kind.h).
 */

/* A URL is normalized (base/url.h). Other names have only one spelling. */
static bool node_group_append_key(const char *rest, struct as_buf *out)
{
    const char *slash = strchr(rest, '/');
    if (!slash)
        return false;
    as_buf_append(out, rest, (size_t)(slash + 1 - rest));
    return as_url_append_normal(slash + 1, out);
}

const struct as_target_kind as_target_kind_node_group = {
    .word = "node_group",
    .title = "a node group",
    .unit = "nodes",
    .example = "{provider: aws, name: workers}",
    .owner = "provider",
    .keys =
        {
            {.key = "provider",
             .is_required = true,
             .is_valid = is_configured_name,
             .expected = "a provider's name",
             .about = "The name of the provider in the configuration."},
            {.is_valid = as_target_value_is_plain, .expected = "text without control characters"},
        },
    .allow = {[AS_ALLOW_NAMES] = "name", [AS_ALLOW_URLS] = "url"},
    .append_key = node_group_append_key,
    .has_nodes = true,
};

/*
 * Pools: node groups of one cluster that are decided together (docs/pools.md). Its address is its
 * name in the rule files; its groups stand in struct as_pool_config.
 */

static bool pool_append_key(const char *rest, struct as_buf *out)
{
    as_buf_append_str(out, rest);
    return true;
}

const struct as_target_kind as_target_kind_pool = {
    .word = "pool",
    .title = "a pool",
    .unit = "nodes",
    .owner = "name",
    .keys = {{.key = "name",
              .is_required = true,
              .is_valid = is_configured_name,
              .expected = "the name of the target"}},
    .append_key = pool_append_key,
    .has_groups = true,
};
