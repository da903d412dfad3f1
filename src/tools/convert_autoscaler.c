/*
 * Cluster Autoscaler: the flags of its command line as a pool with its node groups. The flags come
 * from the manifest of its Deployment, or from a command line. The table of flags is a table of
 * keys as that of a file: a command line is read as a map of flags to values.
 *
 * Sources: the flags' own help texts, and docs/pools.md. Defaults are those of Cluster Autoscaler.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_text.h>
#include <alertscaler/model/labels.h>

#include "convert_plan.h"

#define PROGRAM        "cluster-autoscaler"
#define FILL_IN        "FILL-IN" /* in the place of what no flag says */
#define GROUP_NAME_MAX 140       /* of a target */
#define NODES_TEXT_MAX 1000      /* bytes of a --nodes */
#define AMOUNT_MAX     1000000   /* cores; GiB; nodes that leave at a time */

struct raw_autoscaler {
    struct plan_pool pool;
    const char *cloud, *cluster;
    const struct as_yaml_node *groups[PLAN_MEMBERS_MAX];
    size_t group_count;
    const struct as_yaml_node *max_nodes; /* NULL: not given */
    bool has_discovery;
};

/* --- values --- */

static struct plan_pool *autoscaler_get_pool(void *object)
{
    return &((struct raw_autoscaler *)object)->pool;
}

static void autoscaler_keep_group(struct loader *loader, const struct as_yaml_node *value,
                                  void *object)
{
    struct raw_autoscaler *raw = object;
    if (raw->group_count == PLAN_MEMBERS_MAX)
        loader_report(loader, value, "more than %d node groups: a pool has at most so many",
                      PLAN_MEMBERS_MAX);
    else
        raw->groups[raw->group_count++] = value;
}

static void read_discovery(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    ((struct raw_autoscaler *)object)->has_discovery = true;
    convert_lose(convert_of(loader), value,
                 "`--node-group-auto-discovery`: only the cloud knows which groups there are. Give "
                 "each group as --nodes=MIN:MAX:NAME");
}

/* "MIN:MAX" */
static void read_range(struct loader *loader, const struct as_yaml_node *value,
                       struct plan_range *range)
{
    const char *colon = strchr(value->text, ':');
    char found[AS_YAML_FOUND_SIZE];
    int64_t min = 0, max = 0;
    if (!colon || as_number_parse_i64(value->text, (size_t)(colon - value->text), &min) != 0 ||
        as_number_parse_i64(colon + 1, strlen(colon + 1), &max) != 0 || min < 0 || min > max ||
        max > INT64_C(10) * AMOUNT_MAX)
        loader_report(loader, value, "expected MIN:MAX, such as 0:320, found %s",
                      as_yaml_describe(value, found));
    else
        *range = (struct plan_range){min, max, true};
}

static void read_cores(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    read_range(loader, value, &autoscaler_get_pool(object)->cores);
}

static void read_memory(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    read_range(loader, value, &autoscaler_get_pool(object)->memory);
}

static void read_accelerators(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)object;
    convert_lose(convert_of(loader), value,
                 "`--gpu-total`: a pool has no bound of accelerators. Set `max` of their groups");
}

static void read_max_nodes(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const struct schema_field field = {.type = SCHEMA_INT, .max = AS_SIZE_MAX};
    int32_t max = 0;
    if (!schema_parse_scalar(loader, &field, value, &max) || max == 0)
        return;
    autoscaler_get_pool(object)->max = max;
    ((struct raw_autoscaler *)object)->max_nodes = value;
    convert_hint(
        convert_of(loader), value,
        "`--max-nodes-total` counts all nodes of the cluster; `max` of the pool counts the "
        "nodes of its groups");
}

static void read_threshold(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    char found[AS_YAML_FOUND_SIZE];
    int64_t below = 0;
    if (as_quantity_parse_scaled(value->text, value->size, 5, false, &below) < 0 || below < 0 ||
        below > 100000)
        loader_report(loader, value, "expected a number from 0 to 1, found %s",
                      as_yaml_describe(value, found));
    else
        autoscaler_get_pool(object)->below = below;
}

static void autoscaler_add_key(struct loader *loader, const struct as_yaml_node *value,
                               struct plan_texts *texts)
{
    char found[AS_YAML_FOUND_SIZE];
    if (!as_label_is_kubernetes_key(value->text))
        loader_report(loader, value, "expected a Kubernetes key, found %s",
                      as_yaml_describe(value, found));
    else if (texts->count == PLAN_TEXTS_MAX)
        loader_report(loader, value, "at most %d are possible here", PLAN_TEXTS_MAX);
    else
        texts->items[texts->count++] = value->text;
}

static void read_ignored_label(struct loader *loader, const struct as_yaml_node *value,
                               void *object)
{
    autoscaler_add_key(loader, value, &autoscaler_get_pool(object)->ignore_labels);
}

static void read_startup_taint(struct loader *loader, const struct as_yaml_node *value,
                               void *object)
{
    autoscaler_add_key(loader, value, &autoscaler_get_pool(object)->startup_taints);
}

static void read_status_taint(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    convert_hint(convert_of(loader), value,
                 "`--status-taint` becomes one of `startup_taints`: a node with it counts as not "
                 "ready");
    autoscaler_add_key(loader, value, &autoscaler_get_pool(object)->startup_taints);
}

static void read_grace(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const struct schema_field field = {.type = SCHEMA_INT, .max = 86400};
    if (schema_parse_scalar(loader, &field, value, &autoscaler_get_pool(object)->grace_s))
        convert_hint(convert_of(loader), value,
                     "`--max-graceful-termination-sec`: pods keep their own grace periods. It is a "
                     "part of `drain_timeout`, with --max-pod-eviction-time");
}

static void read_parallelism(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const struct schema_field field = {.type = SCHEMA_INT, .min = 1, .max = AMOUNT_MAX};
    if (schema_parse_scalar(loader, &field, value, &autoscaler_get_pool(object)->empty))
        convert_hint(convert_of(loader), value,
                     "`--max-scale-down-parallelism` limits all nodes that leave; `at_once.empty` "
                     "limits only empty nodes");
}

static void read_cloud_config(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)object;
    convert_hint(convert_of(loader), value,
                 "`--cloud-config`: address and credentials of the cloud are a provider in "
                 "alertscaler.yaml");
}

static const struct {
    const char *word, *filter;
    const char *lost; /* what is missing for it; NULL: nothing */
} expanders[] = {
    {"least-waste", "least_waste", NULL},
    {"most-pods", "most_pods", NULL},
    {"least-nodes", "least_nodes", NULL},
    {"random", "random", NULL},
    {"priority", "priority",
     "the expander `priority`: give each group the `nodes.priority` that the ConfigMap "
     "cluster-autoscaler-priority-expander has"},
    {"price", "price",
     "the expander `price`: give each group a `nodes.price`. A group without a price does not "
     "grow"},
    {"grpc", NULL, "the expander `grpc`: there is no call for it"},
};

/* False: there is no such expander. */
static bool add_expander(struct convert *convert, const struct as_yaml_node *value,
                         const char *word, size_t size, struct plan_texts *choose)
{
    size_t i = 0;
    while (i < AS_ARRAY_SIZE(expanders) &&
           (strlen(expanders[i].word) != size || memcmp(expanders[i].word, word, size) != 0))
        i++;
    if (i == AS_ARRAY_SIZE(expanders))
        return false;
    if (expanders[i].lost)
        convert_lose(convert, value, "%s", expanders[i].lost);
    for (size_t k = 0; k < choose->count; k++) {
        if (choose->items[k] == expanders[i].filter)
            return true;
    }
    if (expanders[i].filter)
        choose->items[choose->count++] = expanders[i].filter;
    return true;
}

static void read_expander(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct plan_texts *choose = &autoscaler_get_pool(object)->choose;
    char found[AS_YAML_FOUND_SIZE];
    choose->count = 0;
    for (const char *at = value->text;; at++) {
        const size_t size = strcspn(at, ",");
        if (!add_expander(convert_of(loader), value, at, size, choose)) {
            loader_report(loader, value,
                          "expected least-waste, most-pods, least-nodes, priority, price, random "
                          "or grpc, found %s",
                          as_yaml_describe(value, found));
            return;
        }
        at += size;
        if (*at == '\0')
            return;
    }
}

/* --- flags --- */

#define POOL_FLAG(word, kind, member, ...) SCHEMA_FIELD(word, kind, plan_pool, member, __VA_ARGS__)
#define READ_FLAG(word, function)                                                                  \
    {                                                                                              \
        .key = (word), .type = SCHEMA_CUSTOM, .parse = (function)                                  \
    }

static const struct schema_field pool_flags[] = {
    POOL_FLAG("balance-similar-node-groups", BOOL, balances, .fallback = "false"),
    POOL_FLAG("scale-down-enabled", BOOL, shrinks, .fallback = "true"),
    POOL_FLAG("scale-down-unready-enabled", BOOL, takes_unready, .fallback = "true"),
    POOL_FLAG("ignore-daemonsets-utilization", BOOL, ignores_daemonsets, .fallback = "false"),
    POOL_FLAG("ignore-mirror-pods-utilization", BOOL, ignores_mirror, .fallback = "false"),
    POOL_FLAG("skip-nodes-with-system-pods", BOOL, keeps_system, .fallback = "true"),
    POOL_FLAG("skip-nodes-with-local-storage", BOOL, keeps_local, .fallback = "true"),
    POOL_FLAG("skip-nodes-with-custom-controller-pods", BOOL, keeps_custom, .fallback = "true"),
    POOL_FLAG("scan-interval", DURATION, every_us, .min = AS_US_PER_S, .fallback = "10s"),
    POOL_FLAG("scale-down-delay-after-add", DURATION, after_add_us, .fallback = "10m"),
    POOL_FLAG("scale-down-delay-after-delete", DURATION, after_delete_us, .fallback = "0s"),
    POOL_FLAG("scale-down-unneeded-time", DURATION, unneeded_us, .fallback = "10m"),
    POOL_FLAG("scale-down-unready-time", DURATION, unready_us, .fallback = "20m"),
    POOL_FLAG("max-node-provision-time", DURATION, ready_us, .min = AS_US_PER_S, .fallback = "15m"),
    POOL_FLAG("max-pod-eviction-time", DURATION, evict_us, .min = AS_US_PER_S, .fallback = "2m"),
    POOL_FLAG("max-empty-bulk-delete", INT, empty, .min = 1, .max = AMOUNT_MAX, .fallback = "10"),
    POOL_FLAG("max-drain-parallelism", INT, drain, .min = 1, .max = AMOUNT_MAX, .fallback = "1"),
    POOL_FLAG("expendable-pods-priority-cutoff", INT, expendable, .min = INT32_MIN,
              .max = INT32_MAX, .fallback = "-10"),
    {0},
};

static const struct schema_field own_flags[] = {
    SCHEMA_FIELD("cloud-provider", STRING, raw_autoscaler, cloud),
    SCHEMA_FIELD("cluster-name", STRING, raw_autoscaler, cluster),
    READ_FLAG("nodes", autoscaler_keep_group),
    READ_FLAG("node-group-auto-discovery", read_discovery),
    READ_FLAG("expander", read_expander),
    READ_FLAG("cores-total", read_cores),
    READ_FLAG("memory-total", read_memory),
    READ_FLAG("gpu-total", read_accelerators),
    READ_FLAG("max-nodes-total", read_max_nodes),
    READ_FLAG("scale-down-utilization-threshold", read_threshold),
    READ_FLAG("balancing-ignore-label", read_ignored_label),
    READ_FLAG("startup-taint", read_startup_taint),
    READ_FLAG("ignore-taint", read_startup_taint),
    READ_FLAG("status-taint", read_status_taint),
    READ_FLAG("max-graceful-termination-sec", read_grace),
    READ_FLAG("max-scale-down-parallelism", read_parallelism),
    READ_FLAG("cloud-config", read_cloud_config),
    {0},
};

#define UNREADY                                                                                    \
    "it is fixed: while more than 45 % of the nodes, and more than 3, are not Ready, "             \
    "nothing is decided by nodes"
#define RATIOS                                                                                     \
    "it is fixed: similar groups differ by at most 1.5 % of the capacity and 5 % of "              \
    "what is free"
#define NOTHING "it has no equivalent"

/* What is the same here for one value, or has no equivalent. */
static const struct {
    const char *name;
    const char *same;   /* the value that changes nothing; NULL: none */
    const char *reason; /* NULL: it says nothing about sizes */
} other_flags[] = {
    {"max-total-unready-percentage", "45", UNREADY},
    {"ok-total-unready-count", "3", UNREADY},
    {"memory-difference-ratio", "0.015", RATIOS},
    {"max-free-difference-ratio", "0.05", RATIOS},
    {"max-allocatable-difference-ratio", "0.05", RATIOS},
    {"balancing-label", NULL, "no list of labels alone decides what is similar"},
    {"max-nodes-per-scaleup", "1000", "it is fixed: 1000"},
    {"new-pod-scale-up-delay", "0s", "a pod counts once the scheduler calls it Unschedulable"},
    {"scale-down-delay-after-failure", "3m", "it is fixed: 3 minutes after a drain that failed"},
    {"scale-down-delay-type-local", "false", "`cooldown` of the pool counts for all its groups"},
    {"scale-down-gpu-utilization-threshold", "0.5", "`unneeded.below` counts for accelerators too"},
    {"initial-node-group-backoff-duration", "5m", "it is fixed: 5 minutes"},
    {"max-node-group-backoff-duration", "30m", "it is fixed: 30 minutes"},
    {"node-group-backoff-reset-timeout", "3h", "it is fixed: 3 hours"},
    {"unremovable-node-recheck-timeout", "5m", "it is fixed: 5 minutes"},
    {"enforce-node-group-min-size", "false",
     "a group below its `min` stays: use `alertscaler scale`"},
    {"scale-up-from-zero", "true", "a cluster without ready nodes grows too"},
    {"estimator", "binpacking", "there is only binpacking"},
    {"cordon-node-before-terminating", "true", "a node that leaves is always cordoned"},
    {"node-deletion-delay-timeout", NULL, "no annotation delays the deletion of a node"},
    {"node-delete-delay-after-taint", NULL, "a drained node is deleted at once"},
    {"max-bulk-soft-taint-count", "0", "unneeded nodes get no soft taint"},
    {"daemonset-eviction-for-empty-nodes", "false", "pods of DaemonSets are not evicted"},
    {"daemonset-eviction-for-occupied-nodes", "false", "pods of DaemonSets are not evicted"},
    {"min-replica-count", "0", "small ReplicaSets do not keep a node: use a PodDisruptionBudget"},
    {"blocking-system-pod-distruption-timeout", NULL,
     "system pods without a budget always keep their node"},
    {"drain-priority-config", NULL, "pods are evicted together, with their own grace periods"},
    {"bypassed-scheduler-names", NULL, "only pods that a scheduler calls Unschedulable count"},
    {"scheduler-config-file", NULL,
     "the predicates are those of docs/pools.md#what-is-not-checked"},
    {"force-ds", "false", "a group too small for its DaemonSets is not closed"},
    {"enable-provisioning-requests", "false", NOTHING},
    {"enable-dynamic-resource-allocation", "false", NOTHING},
    {"enable-csi-node-aware-scheduling", "false", NOTHING},
    {"async-node-groups", "false", NOTHING},
    {"capacity-buffer-*", "false", NOTHING},
    {"v", NULL, NULL},
    {"vmodule", NULL, NULL},
    {"log*", NULL, NULL},
    {"*logtostderr", NULL, NULL},
    {"stderrthreshold", NULL, NULL},
    {"add-dir-header", NULL, NULL},
    {"one-output", NULL, NULL},
    {"skip-*headers", NULL, NULL},
    {"profiling", NULL, NULL},
    {"address", NULL, NULL},
    {"kube*", NULL, NULL},
    {"namespace", NULL, NULL},
    {"leader-elect*", NULL, NULL},
    {"user-agent", NULL, NULL},
    {"regional", NULL, NULL},
    {"feature-gates", NULL, NULL},
    {"write-status-configmap", NULL, NULL},
    {"status-config-map-name", NULL, NULL},
    {"record-duplicated-events", NULL, NULL},
    {"emit-per-nodegroup-metrics", NULL, NULL},
    {"debugging-snapshot-enabled", NULL, NULL},
    {"max-inactivity", NULL, NULL},
    {"max-failing-time", NULL, NULL},
    {"max-*binpacking-*", NULL, NULL},
    {"max-bulk-soft-taint-time", NULL, NULL},
    {"scale-down-simulation-timeout", NULL, NULL},
    {"scale-down-*candidates-*", NULL, NULL},
    {"node-deletion-*", NULL, NULL},
    {"node-info-cache-expire-time", NULL, NULL},
    {"*-parallelism", NULL, NULL},
    {"parallel-scale-up", NULL, NULL},
    {"frequent-loops-enabled", NULL, NULL},
    {"grpc-expander-*", NULL, NULL},
    {"aws-use-static-instance-list", NULL, NULL},
    {"gce-*", NULL, NULL},
    {"bulk-mig-instances-listing-enabled", NULL, NULL},
    {"cloud-provider-gce-*", NULL, NULL},
    {"clusterapi-cloud-config-authoritative", NULL, NULL},
};

/* A pattern may have one `*`. */
static bool is_like(const char *name, const char *pattern)
{
    const size_t size = strlen(name), head = strcspn(pattern, "*");
    if (pattern[head] == '\0')
        return strcmp(name, pattern) == 0;
    const size_t tail = strlen(pattern + head + 1);
    return size >= head + tail && memcmp(name, pattern, head) == 0 &&
           strcmp(name + size - tail, pattern + head + 1) == 0;
}

static bool read_other_flag(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_pair *pair, void *object)
{
    struct convert *convert = convert_of(loader);
    const char *name = pair->key->text;
    (void)node;
    (void)object;
    for (size_t i = 0; i < AS_ARRAY_SIZE(other_flags); i++) {
        const char *same = other_flags[i].same, *reason = other_flags[i].reason;
        if (!is_like(name, other_flags[i].name))
            continue;
        if (reason && !(same && strcmp(same, pair->value->text) == 0))
            convert_leave(convert, pair->key, "`--%s`: %s", name, reason);
        return true;
    }
    convert_lose(convert, pair->key,
                 "the flag `--%.100s` is not known here, and what it does is missing in the rules",
                 name);
    return true;
}

static const struct schema pool_table = SCHEMA("flags of the pool", plan_pool, pool_flags);
static const struct schema flag_table =
    SCHEMA("flags", raw_autoscaler, own_flags, .base = &pool_table,
           .base_offset = offsetof(struct raw_autoscaler, pool), .other = read_other_flag);

/* --- the command line --- */

static const struct schema_field *find_flag(const struct schema_field *fields, const char *name)
{
    while (fields->key && strcmp(fields->key, name) != 0)
        fields++;
    return fields->key ? fields : NULL;
}

/* A part of an argument, with its place in the file. */
static struct as_yaml_node *make_part(struct convert *convert, const struct as_yaml_node *argument,
                                      const char *at, const char *text)
{
    struct as_yaml_node *part = as_arena_alloc(&convert->arena, 1, sizeof(*part));
    const size_t offset = (size_t)(at - argument->text);
    *part = (struct as_yaml_node){.kind = AS_YAML_SCALAR, .is_plain = true};
    part->place = argument->place;
    part->text = text;
    part->size = strlen(text);
    (void)as_yaml_find_inside(convert->loader.tree, argument, offset, &part->place);
    return part;
}

/* Whether the argument is a flag's value: only a number may begin with a dash. */
static bool is_value(const struct as_yaml_node *argument)
{
    return argument->text[0] != '-' || isdigit((unsigned char)argument->text[1]);
}

/* A flag and its value, of one argument or two: `--name=value`, `--name value`, `--name`. Returns
 * how many arguments. As Go does, one dash is enough, and `_` is the same as `-`. */
static uint32_t read_flag(struct convert *convert, const struct as_yaml_node *const *arguments,
                          uint32_t count, struct as_yaml_pair *pair)
{
    const struct as_yaml_node *argument = arguments[0];
    const char *start = argument->text + strspn(argument->text, "-");
    char *name = as_arena_strdup(&convert->arena, start);
    name[strcspn(name, "=")] = '\0';
    for (char *at = name; *at; at++)
        *at = *at == '_' ? '-' : *at;
    const struct schema_field *of_pool = find_flag(pool_flags, name);
    const char *equals = strchr(start, '=');
    const bool is_bool = of_pool && of_pool->type == SCHEMA_BOOL;
    const bool is_next = !equals && !is_bool && count > 1 && is_value(arguments[1]);
    pair->key = make_part(convert, argument, start, name);
    pair->value = equals ? make_part(convert, argument, equals + 1, equals + 1)
                  : is_next
                      ? make_part(convert, arguments[1], arguments[1]->text, arguments[1]->text)
                      : make_part(convert, argument, start, "true");
    if (!equals && !is_bool && !is_next && (of_pool || find_flag(own_flags, name)))
        loader_report(&convert->loader, argument, "the flag needs a value");
    return is_next ? 2 : 1;
}

static void check_argument(struct convert *convert, const struct as_yaml_node *argument)
{
    if (!schema_is_kind(&convert->loader, argument, AS_YAML_SCALAR))
        return;
    if (argument->text[0] != '-' && strstr(argument->text, " --"))
        loader_report(&convert->loader, argument,
                      "a command line of a shell: give its flags to `alertscaler convert " PROGRAM
                      " --out DIR -- FLAGS`");
    else if (strstr(argument->text, "$("))
        loader_report(&convert->loader, argument,
                      "a variable in a flag: write its value, as only the container knows it");
}

/* The flags as a map; NULL: an error was reported. The first argument may be the program. */
static struct as_yaml_node *autoscaler_read_arguments(struct convert *convert,
                                                      const struct as_yaml_node *at,
                                                      const struct as_yaml_node *const *arguments,
                                                      uint32_t count)
{
    struct as_yaml_pair *pairs = as_arena_alloc(&convert->arena, count + 1, sizeof(*pairs));
    struct as_yaml_node *map = as_arena_alloc(&convert->arena, 1, sizeof(*map));
    const size_t errors = convert_count_errors(convert);
    char found[AS_YAML_FOUND_SIZE];
    *map = (struct as_yaml_node){.kind = AS_YAML_MAP, .place = at->place};
    map->pairs = pairs;
    for (uint32_t i = 0; i < count; i++)
        check_argument(convert, arguments[i]);
    for (uint32_t i = 0; i < count && convert_count_errors(convert) == errors;) {
        const char *text = arguments[i]->text;
        uint32_t taken = 1;
        if (text[0] == '-' && text[strspn(text, "-")]) /* not "--" */
            taken = read_flag(convert, arguments + i, count - i, &pairs[map->count++]);
        else if (text[0] != '-' && i > 0)
            loader_report(&convert->loader, arguments[i],
                          "expected a flag such as --nodes=1:10:workers, found %s",
                          as_yaml_describe(arguments[i], found));
        i += taken;
    }
    return convert_count_errors(convert) > errors ? NULL : map;
}

/* --- node groups --- */

enum naming { NAMING_PLAIN, NAMING_GCE, NAMING_CLUSTERAPI };

static const struct cloud {
    const char *word, *provider;
    const char *missing; /* a key of `node_group` that no part of --nodes says; NULL: none */
    enum naming naming;
    bool is_cluster_name; /* --cluster-name says it */
} clouds[] = {
    {"aws", "aws", NULL, NAMING_PLAIN, false},
    {"gce", "gce", NULL, NAMING_GCE, false},
    {"azure", "azure", "resource_group", NAMING_PLAIN, false},
    {"alicloud", "alibaba", NULL, NAMING_PLAIN, false},
    {"baiducloud", "baidu", "cluster", NAMING_PLAIN, false},
    {"clusterapi", "clusterapi", NULL, NAMING_CLUSTERAPI, false},
    {"digitalocean", "digitalocean", "cluster", NAMING_PLAIN, false},
    {"externalgrpc", "externalgrpc", NULL, NAMING_PLAIN, false},
    {"magnum", "magnum", "cluster", NAMING_PLAIN, true},
};

static void autoscaler_append_key(struct as_buf *out, const char *key, const char *text)
{
    as_buf_printf(out, ", %s: ", key);
    yaml_append_text(out, text);
}

#define PARTS_MAX 5

/* Splits a copy of the text at each slash. 0: a part is empty, or there are too many. */
static size_t split_path(struct convert *convert, const char *text, const char *parts[PARTS_MAX])
{
    size_t count = 0;
    for (char *at = as_arena_strdup(&convert->arena, text);; count++) {
        const size_t size = strcspn(at, "/");
        if (size == 0 || count == PARTS_MAX)
            return 0;
        parts[count] = at;
        at += size;
        if (*at == '\0')
            return count + 1;
        *at++ = '\0';
    }
}

/* Appends the keys of `node_group` of the group `text`. Returns its name; NULL: it has another
 * form.
 */
static const char *append_address(struct convert *convert, struct as_buf *out, enum naming naming,
                                  const char *text)
{
    static const char mark[] = "/projects/";
    const char *parts[PARTS_MAX] = {NULL}, *name = text, *start;
    size_t count = 0;
    switch (naming) {
    case NAMING_PLAIN: break;
    case NAMING_GCE: /* PROJECT/zones/ZONE/instanceGroups/NAME */
        start = strstr(text, mark);
        count = start ? split_path(convert, start + strlen(mark), parts) : 0;
        if (count != 5 || !as_str_starts_with(parts[3], "instanceGroup") ||
            (strcmp(parts[1], "zones") != 0 && strcmp(parts[1], "regions") != 0))
            return NULL;
        autoscaler_append_key(out, "project", parts[0]);
        autoscaler_append_key(out, parts[1][0] == 'z' ? "zone" : "region", parts[2]);
        name = parts[4];
        break;
    case NAMING_CLUSTERAPI: /* NAMESPACE/NAME or KIND/NAMESPACE/NAME */
        count = split_path(convert, text, parts);
        if (count != 2 && count != 3)
            return NULL;
        if (count == 3)
            autoscaler_append_key(out, "kind", parts[0]);
        autoscaler_append_key(out, "namespace", parts[count - 2]);
        name = parts[count - 1];
        break;
    }
    autoscaler_append_key(out, "name", name);
    return name;
}

static const char *const forms[] = {
    [NAMING_PLAIN] = "NAME",
    [NAMING_GCE] = ("https://www.googleapis.com/compute/v1/projects/PROJECT/zones/ZONE/"
                    "instanceGroups/NAME"),
    [NAMING_CLUSTERAPI] = "NAMESPACE/NAME or KIND/NAMESPACE/NAME",
};

/* The name of the group's target; its odd characters are replaced. */
static const char *autoscaler_make_name(struct convert *convert, const char *name)
{
    char *word = as_arena_strdup(&convert->arena, name);
    for (char *at = word; *at; at++) {
        const char one[2] = {*at, '\0'};
        *at = schema_is_name(one) ? *at : '-';
    }
    return convert_text(convert, "%.*s", GROUP_NAME_MAX, word);
}

static bool autoscaler_is_used(const struct plan_target *target, const char *name)
{
    bool is_used = strcmp(target->name, name) == 0;
    for (size_t i = 0; i < target->pool->member_count; i++)
        is_used = is_used || strcmp(target->pool->members[i].name, name) == 0;
    return is_used;
}

static bool knows_missing(const struct raw_autoscaler *raw, const struct cloud *cloud)
{
    return cloud->is_cluster_name && raw->cluster && schema_is_name(raw->cluster);
}

/* "MIN:MAX:NAME" */
static void add_member(struct convert *convert, struct plan_target *target,
                       const struct raw_autoscaler *raw, const struct cloud *cloud,
                       const struct as_yaml_node *node)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf address = AS_BUF_INIT(4096);
    const char *first = strchr(node->text, ':'), *second = first ? strchr(first + 1, ':') : NULL;
    const char *name = NULL;
    char found[AS_YAML_FOUND_SIZE];
    int64_t min = 0, max = 0;
    bool is_valid = second && second[1] && node->size <= NODES_TEXT_MAX;
    for (const char *at = node->text; *at; at++)
        is_valid = is_valid && *at > ' ' && *at <= '~' && *at != '{';
    if (!is_valid || as_number_parse_i64(node->text, (size_t)(first - node->text), &min) != 0 ||
        as_number_parse_i64(first + 1, (size_t)(second - first - 1), &max) != 0 || min < 0 ||
        max < 1 || max > AS_SIZE_MAX ||
        !(name = append_address(convert, &address, cloud->naming, second + 1))) {
        loader_report(&convert->loader, node,
                      "expected MIN:MAX:%s for `--cloud-provider=%s`, found %s",
                      forms[cloud->naming], cloud->word, as_yaml_describe(node, found));
        return;
    }
    if (min > max) {
        loader_report(&convert->loader, node,
                      "the maximum %" PRId64 " is below the minimum %" PRId64, max, min);
        return;
    }
    const char *word = autoscaler_make_name(convert, name);
    if (autoscaler_is_used(target, word)) {
        convert_lose(convert, node,
                     "the group %.100s: another target has this name. Write it by hand, with "
                     "another name, and with a provider of its own if the cloud is `gce`",
                     name);
        return;
    }
    if (cloud->missing)
        autoscaler_append_key(&address, cloud->missing,
                              knows_missing(raw, cloud) ? raw->cluster : FILL_IN);
    if (min == 0)
        convert_hint(convert, node,
                     "the group %.100s may be empty: until it has had a node, it grows only with a "
                     "`nodes.template`",
                     name);
    target->pool->members[target->pool->member_count++] = (struct plan_member){
        .name = word,
        .address = as_arena_strdup(&convert->arena, address.data),
        .min = (int32_t)min,
        .max = (int32_t)max,
    };
}

static const struct cloud *autoscaler_find_cloud(const char *word)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        if (strcmp(clouds[i].word, word) == 0)
            return &clouds[i];
    }
    return NULL;
}

static void check_max(struct convert *convert, struct plan_pool *pool,
                      const struct as_yaml_node *max_nodes, const struct as_yaml_node *at)
{
    int64_t min = 0, max = 0;
    for (size_t i = 0; i < pool->member_count; i++) {
        min += pool->members[i].min;
        max += pool->members[i].max;
    }
    if (!max_nodes)
        pool->max = max < AS_SIZE_MAX ? (int32_t)max : AS_SIZE_MAX;
    if (min > pool->max)
        loader_report(&convert->loader, max_nodes ? max_nodes : at,
                      "the minima of the node groups add up to %" PRId64 ", more than %d", min,
                      pool->max);
}

/* --- the whole --- */

static void autoscaler_add_members(struct convert *convert, struct plan_target *target,
                                   const struct raw_autoscaler *raw)
{
    const char *word = raw->cloud ? raw->cloud : "gce"; /* its own default */
    const struct cloud *cloud = autoscaler_find_cloud(word);
    if (!cloud) {
        convert_lose(convert, target->node,
                     "all of it: there is no provider for `--cloud-provider=%.60s`. A driver "
                     "of Cluster Autoscaler's externalgrpc may be one: docs/providers/README.md",
                     word);
        return;
    }
    if (raw->group_count == 0 && !raw->has_discovery)
        convert_lose(convert, target->node,
                     "all of it: no `--nodes` names its groups. Give each group as "
                     "--nodes=MIN:MAX:NAME");
    if (cloud->missing && raw->group_count > 0 && !knows_missing(raw, cloud))
        convert_lose(convert, raw->groups[0],
                     "`%s` of the groups: no flag says it. Write it for " FILL_IN, cloud->missing);
    target->pool->provider = cloud->provider;
    for (size_t i = 0; i < raw->group_count; i++)
        add_member(convert, target, raw, cloud, raw->groups[i]);
    if (target->pool->member_count > 0)
        check_max(convert, target->pool, raw->max_nodes, target->node);
}

/* The arguments are those of the program, perhaps behind its name. */
static void convert_arguments(struct convert *convert, struct plan_target *target,
                              const struct as_yaml_node *const *arguments, uint32_t count)
{
    struct raw_autoscaler *raw = as_arena_alloc(&convert->arena, 1, sizeof(*raw));
    const size_t errors = convert_count_errors(convert);
    *raw = (struct raw_autoscaler){.pool = {.below = 50000, .grace_s = 600}};
    target->pool = &raw->pool;
    schema_fill_defaults(&convert->loader, &flag_table, raw);
    const struct as_yaml_node *flags =
        autoscaler_read_arguments(convert, target->node, arguments, count);
    if (flags)
        schema_parse(&convert->loader, &flag_table, flags, flags, raw);
    if (convert_count_errors(convert) == errors)
        autoscaler_add_members(convert, target, raw);
    if (target->pool->member_count > 0 && convert_count_errors(convert) == errors)
        object_finish(convert, target);
}

/* What a container runs: `command` and `args`, in one list. */
static const struct as_yaml_node **list_arguments(struct convert *convert,
                                                  const struct as_yaml_node *container,
                                                  uint32_t *count_out)
{
    const struct as_yaml_node *lists[] = {as_yaml_find(container, "command"),
                                          as_yaml_find(container, "args")};
    const struct as_yaml_node **arguments = NULL;
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        if (lists[i] && lists[i]->kind == AS_YAML_LIST)
            *count_out += lists[i]->count;
    }
    arguments = as_arena_alloc(&convert->arena, *count_out + 1, sizeof(struct as_yaml_node *));
    *count_out = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        for (uint32_t k = 0; lists[i] && lists[i]->kind == AS_YAML_LIST && k < lists[i]->count; k++)
            arguments[(*count_out)++] = lists[i]->items[k];
    }
    return arguments;
}

static bool autoscaler_has_name(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR && strstr(node->text, PROGRAM);
}

void autoscaler_convert(struct convert *convert, const struct raw_object *object,
                        const struct as_yaml_node *node)
{
    const struct as_yaml_node *pod = as_yaml_find(as_yaml_find(object->spec, "template"), "spec");
    const struct as_yaml_node *containers = as_yaml_find(pod, "containers");
    (void)node;
    for (uint32_t i = 0; containers && containers->kind == AS_YAML_LIST && i < containers->count;
         i++) {
        uint32_t count = 0;
        const struct as_yaml_node *container = containers->items[i];
        const struct as_yaml_node **arguments = list_arguments(convert, container, &count);
        if (!autoscaler_has_name(as_yaml_find(container, "image")) &&
            (count == 0 || !autoscaler_has_name(arguments[0])))
            continue;
        struct plan_target *target = object_start(convert, object);
        if (target && convert->target_count > 0)
            loader_report(&convert->loader, target->node,
                          "%s, at %s:%u, is a Cluster Autoscaler too: convert each in a run of its "
                          "own",
                          convert->targets[0]->shown, as_yaml_get_file(convert->targets[0]->tree),
                          convert->targets[0]->node->place.line);
        else if (target)
            convert_arguments(convert, target, arguments, count);
        return;
    }
    convert->conversion->skipped_count++;
}

void autoscaler_convert_flags(struct convert *convert, const struct as_yaml_node *flags)
{
    convert_begin(convert, "Cluster Autoscaler");
    convert_arguments(convert, plan_target_new(convert, PROGRAM, flags->items[0]), flags->items,
                      flags->count);
}
