/*
 * Resources of a workload's containers: amounts in units, one container, the pod template with
 * its rollout, and the pods that are resized in place. All arithmetic is exact, in whole
 * numbers.
 */
#include "kubernetes_resources.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_object.h"
#include "kube_pods.h"

/* Requests and limits in units. */

/* Digits behind the point that count: nanocores; millibytes, as sums of others may have them. */
static const struct {
    const char *word;
    int scale;
} amount_resources[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = {"cpu", 9},
    [AS_RESOURCE_MEMORY] = {"memory", 3},
};

const char *as_kube_resource_get_word(enum as_resource resource)
{
    return amount_resources[resource].word;
}

static int amount_parse(const char *text, int scale, bool round_up, __int128 *amount_out)
{
    int64_t number = 0;
    const int status = as_quantity_parse_scaled(text, strlen(text), scale, round_up, &number);
    *amount_out = number;
    return status;
}

static int get_scale(enum as_resource resource, const struct as_unit *unit)
{
    return unit->scale > amount_resources[resource].scale ? unit->scale
                                                          : amount_resources[resource].scale;
}

static __int128 get_unit(const struct as_unit *unit, int scale)
{
    __int128 amount = unit->amount;
    for (int i = unit->scale; i < scale; i++)
        amount *= 10;
    return amount;
}

int as_kube_amounts_count(const struct as_kube_amounts *amounts, enum as_resource resource,
                          const struct as_unit *unit, bool keep_limit, int32_t *size_out,
                          int32_t *max_out, struct as_error *error)
{
    const int scale = get_scale(resource, unit);
    const char *word = as_kube_resource_get_word(resource);
    __int128 limit;
    int32_t size;
    if (as_str_is_empty(amounts->request)) {
        as_error_set(error, "it has no request of %s: set one first", word);
        return -ENOENT;
    }
    if (as_unit_count(unit, amounts->request, strlen(amounts->request), &size) != 0) {
        as_error_set(error, "its request of %s, %s, cannot be counted in units of %s", word,
                     amounts->request, unit->text);
        return -ERANGE;
    }
    int32_t max = -1;
    if (keep_limit && !as_str_is_empty(amounts->limit)) {
        if (amount_parse(amounts->limit, scale, false, &limit) < 0) {
            as_error_set(error, "its limit of %s is no quantity: %s", word, amounts->limit);
            return -ERANGE;
        }
        const __int128 most = limit / get_unit(unit, scale);
        max = most > INT32_MAX ? INT32_MAX : (int32_t)most;
    }
    *size_out = size;
    *max_out = max;
    return 0;
}

static int amount_keep(const struct as_kube_amounts *base, int scale, const struct as_unit *unit,
                       int32_t size, struct as_kube_amounts *amounts, struct as_error *error)
{
    __int128 limit;
    if (amount_parse(base->limit, scale, false, &limit) == 0 &&
        get_unit(unit, scale) * size <= limit) {
        memcpy(amounts->limit, base->limit, sizeof(amounts->limit));
        return 0;
    }
    as_error_set(error, "a request of %s would be above the limit, %s, which `limits: keep` leaves",
                 amounts->request, base->limit);
    return -ERANGE;
}

/* size x limit / request, in units, rounded up: the units of both cancel out. */
static int scale_limit(const struct as_kube_amounts *base, int scale, const struct as_unit *unit,
                       int32_t size, struct as_kube_amounts *amounts, struct as_error *error)
{
    char text[AS_AMOUNT_SIZE];
    __int128 request, limit;
    if (amount_parse(base->request, scale, true, &request) < 0 || request == 0 ||
        amount_parse(base->limit, scale, true, &limit) < 0) {
        as_error_set(error, "the ratio of its limit, %s, to its request, %s, is not known",
                     base->limit, as_str_is_empty(base->request) ? "none" : base->request);
        return -ERANGE;
    }
    const __int128 units = (limit * size + request - 1) / request;
    if (units > INT32_MAX || !as_unit_is_countable(unit, (int32_t)units)) {
        as_error_set(error, "its limit would be too large for a quantity");
        return -ERANGE;
    }
    as_unit_print(unit, (int32_t)units, text);
    snprintf(amounts->limit, sizeof(amounts->limit), "%s", text);
    return 0;
}

int as_kube_amounts_resize(const struct as_kube_amounts *base, enum as_resource resource,
                           const struct as_unit *unit, bool keep_limit, int32_t size,
                           struct as_kube_amounts *amounts_out, struct as_error *error)
{
    const int scale = get_scale(resource, unit);
    struct as_kube_amounts amounts = {"", ""};
    char text[AS_AMOUNT_SIZE];
    int status = 0;
    as_unit_print(unit, size, text);
    snprintf(amounts.request, sizeof(amounts.request), "%s", text);
    if (!as_str_is_empty(base->limit))
        status = keep_limit ? amount_keep(base, scale, unit, size, &amounts, error)
                            : scale_limit(base, scale, unit, size, &amounts, error);
    if (status == 0)
        *amounts_out = amounts;
    return status;
}

/* One container of a pod's spec, found by its name. */

static const struct tree_value *container_find_in(const struct tree_value *list, const char *name)
{
    const struct tree_value *item = tree_is(list, TREE_ARRAY) ? list->first : NULL;
    while (item && !as_str_equal(tree_find_text(item, "name"), name))
        item = item->next;
    return item;
}

/* NULL: none. *is_init_out: it is one of initContainers. `spec` may be NULL. */
static const struct tree_value *kube_find_container(const struct tree_value *spec, const char *name,
                                                    bool *is_init_out)
{
    const struct tree_value *container = container_find_in(tree_find(spec, "containers"), name);
    *is_init_out = !container;
    return container ? container : container_find_in(tree_find(spec, "initContainers"), name);
}

static bool kube_is_sidecar(const struct tree_value *container)
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

/* Of a container's `resources`, of its spec or its status. False: a value is no quantity. */
static bool kube_read_amounts(const struct tree_value *resources, enum as_resource resource,
                              struct as_kube_amounts *amounts_out)
{
    const char *word = as_kube_resource_get_word(resource);
    return read_amount(tree_find(resources, "requests"), word, amounts_out->request) &&
           read_amount(tree_find(resources, "limits"), word, amounts_out->limit);
}

static void container_write_amount(struct as_json_writer *json, const char *key, const char *word,
                                   const char *amount)
{
    as_json_write_key(json, key);
    as_json_begin_object(json);
    as_json_write_member(json, word, amount);
    as_json_end_object(json);
}

/* The member "containers" or "initContainers" of a strategic merge patch of a pod's spec. */
static void kube_write_container(struct as_json_writer *json, const struct as_kube_part *part,
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
        container_write_amount(json, "limits", word, amounts->limit);
    container_write_amount(json, "requests", word, amounts->request);
    as_json_end_object(json);
    as_json_end_object(json);
    as_json_end_array(json);
}

/*
 * Pod template of a workload, and its rollout. The conditions that end a rollout are as in
 * `kubectl rollout status`.
 */

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

static int32_t workload_read_count(struct as_reader *reader, const char *name, int32_t absent)
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
    return workload_read_count(status, as_read_has(status, name) ? name : "readyReplicas", 0);
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
    workload->replicas = row->is_spread ? workload_read_count(&status, "desiredNumberScheduled", 0)
                                        : workload_read_count(spec, "replicas", 1);
    const int32_t partition = get_partition(tree_find(spec->object, row->strategy));
    const int32_t due = workload->replicas > partition ? workload->replicas - partition : 0;
    rollout->updated = workload_read_count(&status, row->updated, 0);
    const int32_t total = row->total ? workload_read_count(&status, row->total, 0) : 0;
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

static int workload_read_template(struct as_reader *spec, const struct as_kube_part *part,
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
    if ((code = as_read_result(&root)) ||
        (code = workload_read_template(&spec, part, &workload, error)))
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

/*
 * Pods that are resized in place. KEP-1287: the conditions PodResizePending and
 * PodResizeInProgress, and the resources in a container's status, which are what the kubelet has
 * granted.
 */

#define HASH_LABEL "pod-template-hash" /* a ReplicaSet of a Deployment is NAME-HASH */

/* ---- whose it is ---- */

static const struct tree_value *find_controller(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));
    while (owner && !tree_is_true(tree_find(owner, "controller")))
        owner = owner->next;
    return owner;
}

static bool is_of_deployment(const struct as_kube_sized_pods *pods,
                             const struct tree_value *metadata, const struct tree_value *owner)
{
    const char *hash = tree_find_text(tree_find(metadata, "labels"), HASH_LABEL);
    const char *name = tree_find_text(owner, "name");
    const size_t size = strlen(pods->name);
    return hash && name && as_str_equal(tree_find_text(owner, "kind"), "ReplicaSet") &&
           strncmp(name, pods->name, size) == 0 && name[size] == '-' &&
           strcmp(name + size + 1, hash) == 0;
}

static bool is_owned(const struct as_kube_sized_pods *pods, const struct tree_value *metadata)
{
    const struct tree_value *owner = find_controller(metadata);
    if (strcmp(pods->kind, "Deployment") == 0)
        return is_of_deployment(pods, metadata, owner);
    return as_str_equal(tree_find_text(owner, "uid"), pods->uid);
}

static bool is_living(const struct as_kube_sized_pods *pods, const struct tree_value *metadata,
                      const struct tree_value *status)
{
    const char *phase = tree_find_text(status, "phase");
    const struct tree_value *deleted = tree_find(metadata, "deletionTimestamp");
    return (!deleted || deleted->kind == TREE_NULL) && !as_str_equal(phase, "Succeeded") &&
           !as_str_equal(phase, "Failed") && is_owned(pods, metadata);
}

/* ---- what its kubelet says ---- */

static int64_t get_generation(const struct tree_value *object, const char *name)
{
    int64_t generation = 0;
    const struct tree_value *value = tree_find(object, name);
    return value && tree_get_i64(value, 0, INT64_MAX, &generation) ? generation : 0;
}

/* A condition of an earlier spec says nothing of this one. */
static bool is_current(const struct tree_value *condition, int64_t generation)
{
    const int64_t observed = get_generation(condition, "observedGeneration");
    return as_str_equal(tree_find_text(condition, "status"), "True") &&
           (observed == 0 || generation == 0 || observed >= generation);
}

static const char *make_message(struct as_kube_sized_pods *pods, const char *reason,
                                const struct tree_value *condition)
{
    const char *message = tree_find_text(condition, "message");
    char text[AS_MESSAGE_SIZE];
    snprintf(text, sizeof(text), "%s%s%.*s", reason, as_str_is_empty(message) ? "" : ": ",
             message ? (int)as_str_cut_utf8(message, strlen(message), AS_MESSAGE_SIZE / 2) : 0,
             message ? message : "");
    return as_arena_strdup(&pods->texts, text);
}

static void sized_parse_condition(struct as_kube_sized_pods *pods,
                                  const struct tree_value *condition, struct as_kube_sized_pod *pod)
{
    static const struct {
        const char *type, *reason; /* NULL: any */
        enum as_kube_resize resize;
    } answers[] = {
        {"PodResizePending", "Infeasible", AS_KUBE_RESIZE_INFEASIBLE},
        {"PodResizePending", "Deferred", AS_KUBE_RESIZE_DEFERRED},
        {"PodResizeInProgress", NULL, AS_KUBE_RESIZE_IN_PROGRESS},
    };
    const char *type = tree_find_text(condition, "type");
    const char *reason = tree_find_text(condition, "reason");
    for (size_t i = 0; i < AS_ARRAY_SIZE(answers); i++) {
        if (!as_str_equal(type, answers[i].type) ||
            (answers[i].reason && !as_str_equal(reason, answers[i].reason)) ||
            answers[i].resize <= pod->resize)
            continue;
        pod->resize = answers[i].resize;
        pod->message =
            make_message(pods, as_str_is_empty(reason) ? "InProgress" : reason, condition);
    }
}

static bool pods_is_same(const char *a, const char *b)
{
    double left, right;
    return as_quantity_parse(a, strlen(a), &left) == 0 &&
           as_quantity_parse(b, strlen(b), &right) == 0 && !(left < right) && !(left > right);
}

static int pods_read_status(struct as_kube_sized_pods *pods, const struct tree_value *status,
                            int64_t generation, struct as_kube_sized_pod *pod)
{
    const struct tree_value *list =
        tree_find(status, pod->is_init ? "initContainerStatuses" : "containerStatuses");
    const struct tree_value *item = tree_is(list, TREE_ARRAY) ? list->first : NULL;
    while (item && !as_str_equal(tree_find_text(item, "name"), pods->part.container))
        item = item->next;
    const struct tree_value *granted = tree_find(item, "resources");
    if (!kube_read_amounts(granted, pods->part.resource, &pod->granted))
        return -EBADMSG;
    pod->is_silent = !granted;
    list = tree_find(status, "conditions");
    for (item = tree_is(list, TREE_ARRAY) ? list->first : NULL; item; item = item->next) {
        if (is_current(item, generation))
            sized_parse_condition(pods, item, pod);
    }
    const int64_t observed = get_generation(status, "observedGeneration");
    pod->is_answered =
        pod->resize != AS_KUBE_RESIZE_NONE ||
        (observed > 0 && generation > 0 ? observed >= generation
                                        : pods_is_same(pod->granted.request, pod->amounts.request));
    return 0;
}

/* ---- the pod ---- */

static bool has_restart(const struct tree_value *container, const char *word)
{
    const struct tree_value *list = tree_find(container, "resizePolicy");
    const struct tree_value *item = tree_is(list, TREE_ARRAY) ? list->first : NULL;
    while (item && !as_str_equal(tree_find_text(item, "resourceName"), word))
        item = item->next;
    return as_str_equal(tree_find_text(item, "restartPolicy"), "RestartContainer");
}

static int read_container(struct as_kube_sized_pods *pods, const struct tree_value *root,
                          struct as_kube_sized_pod *pod)
{
    const struct tree_value *spec = tree_find(root, "spec"), *status = tree_find(root, "status");
    const struct tree_value *container =
        kube_find_container(spec, pods->part.container, &pod->is_init);
    pod->is_bound = !as_str_is_empty(tree_find_text(spec, "nodeName"));
    pod->has_container = container != NULL;
    if (!container)
        return 0;
    pod->is_sidecar = pod->is_init && kube_is_sidecar(container);
    pod->restarts = has_restart(container, as_kube_resource_get_word(pods->part.resource));
    if (!kube_read_amounts(tree_find(container, "resources"), pods->part.resource, &pod->amounts))
        return -EBADMSG;
    return pods_read_status(pods, status, get_generation(tree_find(root, "metadata"), "generation"),
                            pod);
}

static int pods_read_pod(struct as_kube_sized_pods *pods, const struct tree_value *root,
                         struct as_kube_sized_pod *pod_out, struct as_error *error)
{
    struct as_kube_sized_pod pod = {.name = NULL, .message = ""};
    struct as_reader reader, metadata;
    as_read_lenient(&reader, root, error);
    as_read_object(&metadata, &reader, "metadata");
    const char *name = kube_object_read_name(&metadata, "name", AS_KUBE_POD_NAME_MAX, "name");
    kube_object_read_version(&metadata, pod.version, sizeof(pod.version));
    as_read_time(&metadata, "creationTimestamp", &pod.created);
    int code = as_read_result(&reader);
    if (code)
        return code;
    pod.is_living = is_living(pods, metadata.object, tree_find(root, "status"));
    if ((code = read_container(pods, root, &pod))) {
        as_error_set(error, "pod %s: container %s: no quantity of %s", name, pods->part.container,
                     as_kube_resource_get_word(pods->part.resource));
        return code;
    }
    pod.name = as_arena_strdup(&pods->texts, name);
    *pod_out = pod;
    return 0;
}

int as_kube_sized_pod_decode(struct as_kube_sized_pods *pods, const char *json, size_t size,
                             struct as_kube_sized_pod *pod_out, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const int code = kube_object_load(&tree, json, size, "Pod", error);
    return code ? code : pods_read_pod(pods, tree.root, pod_out, error);
}

static int sized_parse_pod(void *context, const struct tree_value *item, struct as_error *error)
{
    struct as_kube_sized_pods *pods = context;
    struct as_kube_sized_pod pod;
    const int status = pods_read_pod(pods, item, &pod, error);
    if (status)
        return status;
    if (!pod.is_living)
        return 0;
    if (pods->count + pods->without == pods->max) {
        as_error_set(error, "more than %zu pods", pods->max);
        return -E2BIG;
    }
    if (!pod.has_container) {
        pods->without++;
        return 0;
    }
    pods->items = as_xgrow(pods->items, pods->count, &pods->capacity, sizeof(*pods->items));
    pods->items[pods->count++] = pod;
    return 0;
}

int as_kube_sized_pods_decode(struct as_kube_sized_pods *pods, const char *json, size_t size,
                              char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "PodList", sized_parse_pod, pods, next_out, error);
}

static int sized_compare(const void *a, const void *b)
{
    return strcmp(((const struct as_kube_sized_pod *)a)->name,
                  ((const struct as_kube_sized_pod *)b)->name);
}

/* The API server refuses to resize a pod that runs before its kubelet has said what it granted. One
 * that has not started may do so at any moment. */
static void leave_out_silent(struct as_kube_sized_pods *pods)
{
    size_t kept = 0;
    for (size_t i = 0; i < pods->count; i++)
        kept += !pods->items[i].is_silent;
    if (kept == 0) /* an old kubelet: the API server's refusal says so */
        return;
    pods->silent = pods->count - kept;
    kept = 0;
    for (size_t i = 0; i < pods->count; i++) {
        if (!pods->items[i].is_silent)
            pods->items[kept++] = pods->items[i];
    }
    pods->count = kept;
}

void as_kube_sized_pods_finish(struct as_kube_sized_pods *pods)
{
    leave_out_silent(pods);
    if (pods->count > 1)
        qsort(pods->items, pods->count, sizeof(*pods->items), sized_compare);
}

void as_kube_sized_pods_clear(struct as_kube_sized_pods *pods)
{
    pods->count = pods->without = pods->silent = 0;
    as_arena_reset(&pods->texts);
}

void as_kube_sized_pods_deinit(struct as_kube_sized_pods *pods)
{
    free(pods->items);
    as_arena_deinit(&pods->texts);
    pods->items = NULL;
    pods->count = pods->capacity = pods->without = pods->silent = 0;
}

const struct as_kube_amounts *as_kube_sized_pod_get(const struct as_kube_sized_pod *pod)
{
    const bool is_refused =
        pod->resize == AS_KUBE_RESIZE_DEFERRED || pod->resize == AS_KUBE_RESIZE_INFEASIBLE;
    return is_refused && pod->granted.request[0] ? &pod->granted : &pod->amounts;
}

void as_kube_resize_patch_encode(const struct as_kube_part *part,
                                 const struct as_kube_sized_pod *pod,
                                 const struct as_kube_amounts *amounts, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "resourceVersion", pod->version);
    as_json_end_object(&json);
    as_json_write_key(&json, "spec");
    as_json_begin_object(&json);
    kube_write_container(&json, part, pod->is_init, amounts);
    as_json_end_object(&json);
    as_json_end_object(&json);
}
