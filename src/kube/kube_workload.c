/*
 * A workload's pod template and its rollout: see the header. What says that a rollout has ended is
 * as in `kubectl rollout status`.
 */
#include <alertscaler/kube/kubernetes_resources.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_container.h"
#include "kube_object.h"
#include <alertscaler/doc/json_reader.h>

#define SELECTOR_MAX ((size_t)2048)
#define NAMES_MAX    ((size_t)160) /* bytes of containers' names in an error */
#define FORMER_MAX   ((size_t)1024)

/* `strategy`: the member of spec whose `type` may be OnDelete. */
static const struct workload_row {
    struct as_kube_workload_kind kind;
    bool is_spread; /* over nodes: the status says how many are wanted */
    const char *strategy, *total, *updated, *available;
} rows[] = {
    {{"Deployment", "deployments", true},
     false,
     "strategy",
     "replicas",
     "updatedReplicas",
     "availableReplicas"},
    {{"StatefulSet", "statefulsets", true},
     false,
     "updateStrategy",
     NULL,
     "updatedReplicas",
     "availableReplicas"},
    {{"DaemonSet", "daemonsets", true},
     true,
     "updateStrategy",
     NULL,
     "updatedNumberScheduled",
     "numberAvailable"},
    {{"ReplicaSet", "replicasets", false}, false, "", NULL, "", ""},
};

const struct as_kube_workload_kind *as_kube_workload_kind_find(const char *kind)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].kind.kind, kind) == 0)
            return &rows[i].kind;
    }
    return NULL;
}

/* ---- selector ---- */

static void append_labels(const struct tree_value *labels, struct as_buf *out)
{
    const struct tree_value *label = tree_is(labels, TREE_OBJECT) ? labels->first : NULL;
    for (; label; label = label->next) {
        const char *value = tree_get_text(label);
        as_buf_printf(out, "%s%s=%s", out->size ? "," : "", label->name, value ? value : "");
    }
}

static void append_values(const struct tree_value *values, struct as_buf *out)
{
    const struct tree_value *value = tree_is(values, TREE_ARRAY) ? values->first : NULL;
    const char *between = " (";
    for (; value; value = value->next, between = ",")
        as_buf_printf(out, "%s%s", between, tree_get_text(value) ? tree_get_text(value) : "");
    as_buf_append_char(out, ')');
}

static int append_expression(const struct tree_value *expression, struct as_buf *out)
{
    static const struct {
        const char *word, *before, *after;
        bool has_values;
    } operators[] = {{"In", "", " in", true},
                     {"NotIn", "", " notin", true},
                     {"Exists", "", "", false},
                     {"DoesNotExist", "!", "", false}};
    const char *key = tree_find_text(expression, "key");
    const char *word = tree_find_text(expression, "operator");
    for (size_t i = 0; key && i < AS_ARRAY_SIZE(operators); i++) {
        if (!as_str_equal(word, operators[i].word))
            continue;
        as_buf_printf(out, "%s%s%s%s", out->size ? "," : "", operators[i].before, key,
                      operators[i].after);
        if (operators[i].has_values)
            append_values(tree_find(expression, "values"), out);
        return 0;
    }
    return -EBADMSG;
}

static char *make_selector(struct as_reader *spec)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(SELECTOR_MAX);
    struct as_reader selector;
    size_t count;
    as_read_object(&selector, spec, "selector");
    append_labels(tree_find(selector.object, "matchLabels"), &text);
    const struct tree_value *item = as_read_list(&selector, "matchExpressions", &count);
    for (; item; item = item->next) {
        if (append_expression(item, &text) != 0)
            as_read_fail(&selector, "matchExpressions", "not a selector");
    }
    if (text.size > 0 && as_buf_check(&text) < 0)
        as_read_fail(spec, "selector", "too long");
    return text.size > 0 && !text.failed ? as_xstrdup(text.data) : NULL;
}

/* ---- rollout ---- */

static int32_t read_count(struct as_reader *reader, const char *name, int32_t absent)
{
    int32_t number = absent;
    if (name && *name)
        as_read_i32(reader, name, 0, &number);
    return number;
}

/* Pods of a StatefulSet below its partition keep the old template. */
static int32_t get_partition(const struct tree_value *strategy)
{
    int64_t partition = 0;
    const struct tree_value *value = tree_find(tree_find(strategy, "rollingUpdate"), "partition");
    return value && tree_get_i64(value, 0, INT32_MAX, &partition) ? (int32_t)partition : 0;
}

static const struct tree_value *find_condition(const struct tree_value *conditions,
                                               const char *type)
{
    const struct tree_value *item = tree_is(conditions, TREE_ARRAY) ? conditions->first : NULL;
    while (item && !as_str_equal(tree_find_text(item, "type"), type))
        item = item->next;
    return item;
}

/* Old versions do not say how many pods of a StatefulSet are available. */
static int32_t read_available(struct as_reader *status, const char *name)
{
    return read_count(status, as_read_has(status, name) ? name : "readyReplicas", 0);
}

static void read_rollout(const struct workload_row *row, struct as_reader *root,
                         struct as_reader *spec, struct as_kube_workload *workload)
{
    struct as_kube_rollout *rollout = &workload->rollout;
    struct as_reader metadata, status;
    int64_t generation = 0, observed = 0;
    as_read_object(&metadata, root, "metadata");
    as_read_object(&status, root, "status");
    as_read_i64(&metadata, "generation", 0, INT64_MAX, &generation);
    as_read_i64(&status, "observedGeneration", 0, INT64_MAX, &observed);
    workload->replicas = row->is_spread ? read_count(&status, "desiredNumberScheduled", 0)
                                        : read_count(spec, "replicas", 1);
    const int32_t partition = get_partition(tree_find(spec->object, row->strategy));
    const int32_t due = workload->replicas > partition ? workload->replicas - partition : 0;
    rollout->updated = read_count(&status, row->updated, 0);
    const int32_t total = row->total ? read_count(&status, row->total, 0) : 0;
    const bool is_seen = observed >= generation;
    rollout->is_running =
        workload->rolls &&
        (!is_seen || rollout->updated < due || (row->total && total > rollout->updated) ||
         read_available(&status, row->available) < workload->replicas);
    rollout->has_verdict = row->total != NULL;
    const struct tree_value *progress =
        find_condition(tree_find(status.object, "conditions"), "Progressing");
    rollout->has_failed =
        rollout->is_running && is_seen &&
        as_str_equal(tree_find_text(progress, "reason"), "ProgressDeadlineExceeded");
    const char *message = rollout->has_failed ? tree_find_text(progress, "message") : NULL;
    if (message)
        memcpy(rollout->message, message,
               as_str_cut_utf8(message, strlen(message), AS_MESSAGE_SIZE - 1));
}

static bool get_rolls(const struct workload_row *row, struct as_reader *spec)
{
    return row->kind.rolls && !tree_is_true(tree_find(spec->object, "paused")) &&
           !as_str_equal(tree_find_text(tree_find(spec->object, row->strategy), "type"),
                         "OnDelete");
}

/* ---- the annotation ---- */

static void read_former(const struct tree_value *annotations, const struct as_kube_part *part,
                        struct as_kube_workload *workload)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const char *text = tree_find_text(annotations, AS_RESIZED_ANNOTATION);
    if (!text || strlen(text) > FORMER_MAX || tree_load(&tree, text, strlen(text), NULL) < 0 ||
        !as_str_equal(tree_find_text(tree.root, "container"), part->container) ||
        !tree_is(tree_find(tree.root, as_kube_resource_get_word(part->resource)), TREE_OBJECT))
        return;
    /* {"container": "app", "memory": {"requests": {"memory": "1Gi"}, ...}} */
    workload->has_former =
        kube_read_amounts(tree_find(tree.root, as_kube_resource_get_word(part->resource)),
                          part->resource, &workload->former) &&
        workload->former.request[0];
}

static void write_former(struct as_json_writer *json, const struct as_kube_part *part,
                         const struct as_kube_amounts *former)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(FORMER_MAX);
    const char *word = as_kube_resource_get_word(part->resource);
    struct as_json_writer inner;
    as_json_init(&inner, &text, AS_JSON_ANY_ORDER);
    as_json_begin_object(&inner);
    as_json_write_member(&inner, "container", part->container);
    as_json_write_key(&inner, word);
    as_json_begin_object(&inner);
    const char *const amounts[][2] = {{"limits", former->limit}, {"requests", former->request}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(amounts); i++) {
        if (as_str_is_empty(amounts[i][1]))
            continue;
        as_json_write_key(&inner, amounts[i][0]);
        as_json_begin_object(&inner);
        as_json_write_member(&inner, word, amounts[i][1]);
        as_json_end_object(&inner);
    }
    as_json_end_object(&inner);
    as_json_end_object(&inner);
    as_json_write_member(json, AS_RESIZED_ANNOTATION, text.failed ? "" : text.data);
}

/* ---- the whole ---- */

static void name_containers(const struct tree_value *spec, struct as_buf *out)
{
    const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        const struct tree_value *list = tree_find(spec, lists[i]);
        const struct tree_value *item = tree_is(list, TREE_ARRAY) ? list->first : NULL;
        for (; item; item = item->next) {
            const char *name = tree_find_text(item, "name");
            as_buf_printf(out, "%s%s", out->size ? ", " : "", name ? name : "");
        }
    }
}

static int read_template(struct as_reader *spec, const struct as_kube_part *part,
                         struct as_kube_workload *workload, struct as_error *error)
{
    struct as_reader template_, pod;
    as_read_object(&template_, spec, "template");
    as_read_object(&pod, &template_, "spec");
    const struct tree_value *container =
        kube_find_container(pod.object, part->container, &workload->is_init);
    if (!container) {
        AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(NAMES_MAX);
        name_containers(pod.object, &names);
        as_error_set(error, "its pods have no container %s, but %s", part->container,
                     names.size == 0 ? "none"
                     : names.failed  ? "many others"
                                     : names.data);
        return AS_KUBE_NO_CONTAINER;
    }
    workload->is_sidecar = workload->is_init && kube_is_sidecar(container);
    if (kube_read_amounts(tree_find(container, "resources"), part->resource, &workload->amounts))
        return 0;
    as_error_set(error, "spec.template: container %s: resources: no quantity of %s",
                 part->container, as_kube_resource_get_word(part->resource));
    return -EBADMSG;
}

int as_kube_workload_decode(const struct as_kube_workload_kind *kind, const char *json, size_t size,
                            const struct as_kube_part *part, struct as_kube_workload *workload_out,
                            struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const struct workload_row *row = (const struct workload_row *)(const void *)kind;
    struct as_kube_workload workload = {.replicas = 0};
    struct as_reader root, metadata, spec;
    int code = kube_object_load(&tree, json, size, kind->kind, error);
    if (code)
        return code;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_object(&spec, &root, "spec");
    as_read_copy(&metadata, "uid", workload.uid, sizeof(workload.uid));
    kube_object_read_version(&metadata, workload.version, sizeof(workload.version));
    if ((code = as_read_result(&root)) || (code = read_template(&spec, part, &workload, error)))
        return code;
    workload.rolls = get_rolls(row, &spec);
    read_rollout(row, &root, &spec, &workload);
    read_former(tree_find(metadata.object, "annotations"), part, &workload);
    workload.selector = make_selector(&spec);
    if ((code = as_read_result(&root))) {
        as_kube_workload_deinit(&workload);
        return code;
    }
    *workload_out = workload;
    return 0;
}

void as_kube_workload_deinit(struct as_kube_workload *workload)
{
    free(workload->selector);
    workload->selector = NULL;
}

void as_kube_template_patch_encode(const struct as_kube_part *part,
                                   const struct as_kube_workload *workload,
                                   const struct as_kube_amounts *amounts,
                                   const struct as_kube_amounts *former, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_key(&json, "annotations");
    as_json_begin_object(&json);
    if (former) {
        write_former(&json, part, former);
    } else {
        as_json_write_key(&json, AS_RESIZED_ANNOTATION);
        as_json_write_null(&json);
    }
    as_json_end_object(&json);
    as_json_write_member(&json, "resourceVersion", workload->version);
    as_json_end_object(&json);
    as_json_write_key(&json, "spec");
    as_json_begin_object(&json);
    as_json_write_key(&json, "template");
    as_json_begin_object(&json);
    as_json_write_key(&json, "spec");
    as_json_begin_object(&json);
    kube_write_container(&json, part, workload->is_init, amounts);
    as_json_end_object(&json);
    as_json_end_object(&json);
    as_json_end_object(&json);
    as_json_end_object(&json);
}
