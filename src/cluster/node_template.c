/*
 * Templates of node groups: what a new node of a group would be like, and this as text.
 */
#include <alertscaler/cluster/node_template.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/doc/rows_schema.h>

static const char *const base_names[AS_RES_NAMED] = {
    [AS_RES_CPU] = "cpu",
    [AS_RES_MEMORY] = "memory",
    [AS_RES_EPHEMERAL] = "ephemeral-storage",
    [AS_RES_PODS] = "pods",
};

/*
 * The text: a table of rows (doc/rows.h). Members that a later version adds are ignored.
 */

struct template_document {
    struct as_node_template template_;
    const struct as_res_names *names;
};

#define AS_ROW_TYPE_amounts     struct as_resources
#define AS_ROW_TYPE_node_labels const struct as_labels *

struct amount {
    const char *name;
    int64_t amount;
};

static int node_template_compare_names(const void *a, const void *b)
{
    return strcmp(((const struct amount *)a)->name, ((const struct amount *)b)->name);
}

static const char *node_template_get_name(const struct as_res_names *names, size_t i)
{
    return i < AS_RES_NAMED ? base_names[i] : names->name[i];
}

static void template_amounts_write(struct as_json_writer *json, const struct as_row *row,
                                   const void *base)
{
    const struct as_resources *amounts = as_row_at(row, base);
    const struct as_res_names *names = ((const struct template_document *)base)->names;
    struct amount members[AS_RES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++)
        if (i < AS_RES_NAMED || amounts->amount[i] != 0)
            members[count++] = (struct amount){node_template_get_name(names, i),
                                               amounts->amount[i] > 0 ? amounts->amount[i] : 0};
    qsort(members, count, sizeof(*members), node_template_compare_names);
    as_json_begin_object(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_member_i64(json, members[i].name, members[i].amount);
    as_json_end_object(json);
}

static void template_amounts_read(struct as_rows_input *input, struct as_reader *object,
                                  const struct as_row *row, void *base)
{
    (void)input;
    struct as_resources *amounts = as_row_to(row, base);
    const struct as_res_names *names = ((const struct template_document *)base)->names;
    struct as_reader reader;
    as_read_object(&reader, object, row->name);
    for (size_t i = 0; i < names->count; i++)
        as_read_i64(&reader, node_template_get_name(names, i), 0, AS_RES_AMOUNT_MAX,
                    &amounts->amount[i]);
}

static const struct as_row_type as_row_amounts = {.write = template_amounts_write,
                                                  .read = template_amounts_read};

static const struct as_labels *label_map_of(const struct as_row *row, const void *base)
{
    return *(const struct as_labels *const *)as_row_at(row, base);
}

static bool label_map_is_unset(const struct as_row *row, const void *base)
{
    const struct as_labels *labels = label_map_of(row, base);
    return !labels || labels->count == 0;
}

static void label_map_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_labels *labels = label_map_of(row, base);
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void label_map_read(struct as_rows_input *input, struct as_reader *object,
                           const struct as_row *row, void *base)
{
    static const struct as_labels none = {.count = 0};
    const struct as_labels **labels = as_row_to(row, base);
    struct as_reader reader;
    size_t count = 0;
    as_read_object(&reader, object, row->name);
    if (!reader.object)
        return;
    *labels = &none;
    struct as_label *pairs = as_arena_alloc(input->arena, reader.object->size, sizeof(*pairs));
    for (const struct tree_value *member = reader.object->first; member; member = member->next) {
        pairs[count] = (struct as_label){.name = member->name, .value = tree_get_text(member)};
        if (!pairs[count++].value) {
            as_read_fail(&reader, member->name, "expected a string");
            return;
        }
    }
    if (count > 0 && as_labels_new_in(input->arena, pairs, count, labels) != 0)
        as_read_fail(object, row->name, "expected names that differ, within the limits");
}

static void label_map_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_begin_values(schema);
    as_rows_schema_write_type(schema, "string");
    as_rows_schema_end_values(schema);
}

const struct as_row_type as_row_label_map = {.write = label_map_write,
                                             .read = label_map_read,
                                             .is_unset = label_map_is_unset,
                                             .describe = label_map_describe};

/* Names that are not UTF-8, which no node has, are left out. */
static void node_labels_write(struct as_json_writer *json, const struct as_row *row,
                              const void *base)
{
    const struct as_labels *labels = label_map_of(row, base);
    as_json_begin_object(json);
    for (uint32_t i = 0; i < labels->count; i++)
        if (as_str_is_utf8(labels->items[i].name, strlen(labels->items[i].name)))
            as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static const struct as_row_type as_row_node_labels = {.write = node_labels_write,
                                                      .read = label_map_read};

const char *as_taint_effect_get_word(unsigned bit)
{
    static const char *const words[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
    return bit < AS_ARRAY_SIZE(words) ? words[bit] : NULL;
}

static void effect_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const unsigned effect = *(const unsigned *)as_row_at(row, base);
    as_json_write_string(json, as_taint_effect_get_word((unsigned)__builtin_ctz(effect)));
}

static void effect_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    unsigned bit = 0;
    as_row_word.read(input, object,
                     &(struct as_row){.name = row->name, .get_word = as_taint_effect_get_word},
                     &bit);
    *(unsigned *)as_row_to(row, base) = 1U << bit;
}

static void effect_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_words(schema, as_taint_effect_get_word, 0);
}

const struct as_row_type as_row_taint_effect = {
    .write = effect_write, .read = effect_read, .describe = effect_describe};

static const struct as_row template_port_rows[] = {
    {AS_ROW("ip", text, as_host_port, ip, REQUIRED)},
    {AS_ROW("port", u32, as_host_port, port, REQUIRED), .min = 1, .max = UINT16_MAX},
    {AS_ROW("protocol", text, as_host_port, protocol, REQUIRED)},
    {.name = NULL},
};

static const struct as_row template_taint_rows[] = {
    {AS_ROW("effect", taint_effect, as_taint, effect, REQUIRED)},
    {AS_ROW("key", text, as_taint, key, REQUIRED)},
    {AS_ROW("value", text, as_taint, value, DEFAULT)},
    {.name = NULL},
};
static const struct as_taint no_value = {.key = "", .value = ""};

/* Without ports the member is left out: texts that were stored before stay as they are. */
static const struct as_row template_rows[] = {
    {AS_ROW("allocatable", amounts, template_document, template_.allocatable, REQUIRED)},
    {AS_ROW("capacity", amounts, template_document, template_.capacity, REQUIRED)},
    {AS_ROW("free", amounts, template_document, template_.shape.allocatable, REQUIRED)},
    {AS_ROW("labels", node_labels, template_document, template_.shape.labels, REQUIRED)},
    {AS_ROW_OF("ports", list, template_document, template_.ports, FILLED, template_port_rows),
     .count_at = AS_ROW_COUNT(template_document, template_.port_count)},
    {AS_ROW_OF("taints", list, template_document, template_.shape.taints, REQUIRED,
               template_taint_rows),
     .count_at = AS_ROW_COUNT(template_document, template_.shape.taint_count),
     .defaults = &no_value},
    {.name = NULL},
};

void as_node_template_encode(const struct as_node_template *template_,
                             const struct as_res_names *names, struct as_buf *out)
{
    const struct template_document document = {*template_, names};
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_rows_write(&json, template_rows, &document);
}

int as_node_template_decode(const char *text, const struct as_res_names *names,
                            struct as_arena *arena, struct as_node_template *template_out,
                            struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct template_document document = {{.source = AS_NODE_TEMPLATE_LAST}, names};
    struct as_reader reader;
    int status = tree_load_object(&tree, text, strlen(text), error);
    if (status)
        return status;
    as_read_lenient(&reader, tree.root, error);
    as_rows_read(&(struct as_rows_input){.arena = arena, .copies_texts = true}, &reader,
                 template_rows, &document);
    status = as_read_result(&reader);
    if (status == 0)
        *template_out = document.template_;
    return status;
}

#define LABEL_HOSTNAME "kubernetes.io/hostname"

const char *as_node_template_source_get_word(enum as_node_template_source source)
{
    static const char *const words[AS_NODE_TEMPLATE_SOURCE_COUNT] = {
        [AS_NODE_TEMPLATE_NONE] = "none",
        [AS_NODE_TEMPLATE_NODE] = "node",
        [AS_NODE_TEMPLATE_LAST] = "last",
        [AS_NODE_TEMPLATE_CONFIGURED] = "configured",
    };

    assert((size_t)source < AS_NODE_TEMPLATE_SOURCE_COUNT);
    return words[source];
}

/* Taints */

/* Keys of taints that come and go with a node's life: Kubernetes' (well_known_taints.go of
 * k8s.io/api and k8s.io/cloud-provider), Cluster Autoscaler's, Escalator's, ours. */
static const char *const passing_taints[] = {
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "atlassian.com/escalator",
    "alertscaler.io/draining",
};

/* A new node has these until the controllers that look after it have seen it, which may be after it
 * is Ready: until then no pod gets there. Old nodes have them when they are not Ready any more. */
static const char *const new_node_taints[] = {
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
};

/* Cluster Autoscaler takes a node with such a taint for one that is still starting. */
static const char *const startup_prefixes[] = {
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
};

/* Cluster Autoscaler leaves taints with this prefix out of its templates. */
#define STATUS_PREFIX "status-taint.cluster-autoscaler.kubernetes.io/"

static bool has_word(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

static bool is_startup_taint(const char *key, const char *const *keys, size_t key_count)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(startup_prefixes); i++)
        if (as_str_starts_with(key, startup_prefixes[i]))
            return true;
    return has_word(keys, key_count, key);
}

static bool is_of_new_node(const char *key)
{
    return has_word(new_node_taints, AS_ARRAY_SIZE(new_node_taints), key);
}

static bool is_passing(const char *key)
{
    return has_word(passing_taints, AS_ARRAY_SIZE(passing_taints), key) || is_of_new_node(key) ||
           as_str_starts_with(key, STATUS_PREFIX);
}

bool as_node_has_startup_taint(const struct as_node_fact *node, const char *const *keys,
                               size_t key_count)
{
    for (size_t i = 0; i < node->taint_count; i++)
        if (is_startup_taint(node->taints[i].key, keys, key_count))
            return true;
    return false;
}

bool as_node_has_new_node_taint(const struct as_node_fact *node)
{
    for (size_t i = 0; i < node->taint_count; i++)
        if (is_of_new_node(node->taints[i].key))
            return true;
    return false;
}

static int compare_taints(const void *a, const void *b)
{
    const struct as_taint *left = a, *right = b;
    int order = strcmp(left->key, right->key);

    if (order == 0)
        order = strcmp(left->value, right->value);
    return order ? order : (left->effect > right->effect) - (left->effect < right->effect);
}

/* Drops taints that a new node will not have, and sorts the others. */
static void keep_taints(struct as_node_shape *shape, const struct as_node_template_request *request,
                        struct as_arena *arena)
{
    struct as_taint *kept = as_arena_alloc(arena, shape->taint_count, sizeof(*kept));
    size_t count = 0;

    for (size_t i = 0; i < shape->taint_count; i++) {
        const char *key = shape->taints[i].key;

        if (!is_passing(key) &&
            !is_startup_taint(key, request->startup_taints, request->startup_taint_count))
            kept[count++] = shape->taints[i];
    }
    if (count > 1)
        qsort(kept, count, sizeof(*kept), compare_taints);
    shape->taints = kept;
    shape->taint_count = count;
}

/* Labels */

static bool node_template_is_common(const struct as_node_template_request *request,
                                    const struct as_label *label)
{
    for (size_t i = 0; i < request->node_count; i++) {
        const struct as_node_fact *node = &request->cluster->nodes[request->nodes[i]];

        if (!as_str_equal(as_labels_find(node->labels, label->name), label->value))
            return false;
    }
    return true;
}

/* The labels that all nodes of the group have with the same value, except the hostname. */
static const struct as_labels *keep_labels(const struct as_labels *labels,
                                           const struct as_node_template_request *request,
                                           struct as_arena *arena)
{
    AS_CLEANUP(as_labels_free_p) struct as_labels *kept = NULL;
    struct as_label *pairs = as_arena_alloc(arena, labels->count, sizeof(*pairs));
    size_t count = 0;

    for (size_t i = 0; i < labels->count; i++)
        if (strcmp(labels->items[i].name, LABEL_HOSTNAME) != 0 &&
            node_template_is_common(request, &labels->items[i]))
            pairs[count++] = labels->items[i];

    int status = as_labels_new(pairs, count, &kept);
    assert(status == 0); /* a subset of valid labels is valid */
    (void)status;
    return as_labels_copy_to(arena, kept);
}

/* The node */

static bool may_be_template(const struct as_node_template_request *request,
                            const struct as_node_fact *node)
{
    const as_wall_time since = node->ready_since.set ? node->ready_since.at : node->created;

    return as_node_is_open(node) && node->is_ready && node->has_cpu && node->has_memory &&
           request->now.us - since.us >= AS_NODE_TEMPLATE_READY_US &&
           !as_node_has_startup_taint(node, request->startup_taints, request->startup_taint_count);
}

/* By creation; of the same age the first by name is newer. */
static bool is_newer(const struct as_node_fact *node, const struct as_node_fact *than)
{
    return node->created.us > than->created.us ||
           (node->created.us == than->created.us && node < than);
}

static uint32_t find_newest(const struct as_node_template_request *request)
{
    const struct as_node_fact *nodes = request->cluster->nodes;
    uint32_t newest = AS_NO_NODE;

    for (size_t i = 0; i < request->node_count; i++) {
        const uint32_t node = request->nodes[i];

        if (may_be_template(request, &nodes[node]) &&
            (newest == AS_NO_NODE || is_newer(&nodes[node], &nodes[newest])))
            newest = node;
    }
    return newest;
}

static bool runs_everywhere(const struct as_pod_class *pod_class)
{
    return pod_class->eviction == AS_EVICTION_DAEMON || pod_class->eviction == AS_EVICTION_MIRROR;
}

static void take_off(struct as_resources *left, const struct as_pod_class *pod_class)
{
    if (!runs_everywhere(pod_class))
        return;
    for (size_t i = 0; i < AS_RES_MAX; i++) {
        left->amount[i] = as_amount_add(left->amount[i], -pod_class->requests.amount[i], 1);
        if (left->amount[i] < 0)
            left->amount[i] = 0;
    }
}

static int compare_ports(const void *a, const void *b)
{
    const struct as_host_port *left = a, *right = b;
    int order = (left->port > right->port) - (left->port < right->port);

    if (order == 0)
        order = strcmp(left->protocol, right->protocol);
    return order ? order : strcmp(left->ip, right->ip);
}

/* Each once: what is told of a node must not change with the order of its pods. */
static void list_ports(struct as_node_template *template_,
                       const struct as_node_template_request *request, const uint32_t *pods,
                       size_t pod_count, struct as_arena *arena)
{
    size_t count = 0;

    for (size_t i = 0; i < pod_count; i++)
        count += request->cluster->pods[pods[i]].pod_class->port_count;
    struct as_host_port *ports = as_arena_alloc(arena, count, sizeof(*ports));
    count = 0;
    for (size_t i = 0; i < pod_count; i++) {
        const struct as_pod_class *pod_class = request->cluster->pods[pods[i]].pod_class;

        for (size_t k = 0; k < pod_class->port_count && runs_everywhere(pod_class); k++)
            if (pod_class->ports[k].port != 0)
                ports[count++] = pod_class->ports[k];
    }
    if (count > 1)
        qsort(ports, count, sizeof(*ports), compare_ports);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_ports(&ports[i], &ports[template_->port_count - 1]) != 0)
            ports[template_->port_count++] = ports[i];
    template_->ports = ports;
}

static void init_from_node(struct as_node_template *template_out,
                           const struct as_node_template_request *request, uint32_t node,
                           struct as_arena *arena)
{
    const struct as_node_fact *fact = &request->cluster->nodes[node];
    size_t pod_count;
    const uint32_t *pods = as_node_pods_get(request->pods, node, &pod_count);

    *template_out = (struct as_node_template){
        .source = AS_NODE_TEMPLATE_NODE,
        .node = fact->name,
        .shape = {.labels = keep_labels(fact->labels, request, arena),
                  .taints = fact->taints,
                  .taint_count = fact->taint_count,
                  .allocatable = fact->allocatable},
        .capacity = fact->capacity,
        .allocatable = fact->allocatable,
    };
    for (size_t i = 0; i < pod_count; i++)
        take_off(&template_out->shape.allocatable, request->cluster->pods[pods[i]].pod_class);
    list_ports(template_out, request, pods, pod_count, arena);
}

void as_node_template_init(struct as_node_template *template_out,
                           const struct as_node_template_request *request, struct as_arena *arena)
{
    const uint32_t newest = find_newest(request);
    const struct as_node_template *known = request->last ? request->last : request->configured;

    if (newest == AS_NO_NODE && !known) {
        *template_out = (struct as_node_template){.source = AS_NODE_TEMPLATE_NONE};
        return;
    }
    if (newest != AS_NO_NODE) {
        init_from_node(template_out, request, newest, arena);
    } else {
        *template_out = *known;
        template_out->source = request->last ? AS_NODE_TEMPLATE_LAST : AS_NODE_TEMPLATE_CONFIGURED;
        template_out->node = NULL;
    }
    keep_taints(&template_out->shape, request, arena);
}

/* The configuration */

struct as_node_template_config *as_node_template_config_copy(
    const struct as_node_template_config *config)
{
    if (!config)
        return NULL;
    struct as_node_template_config *copy = as_xmalloc(sizeof(*copy));
    *copy = *config;
    copy->arena = AS_ARENA_INIT;
    for (size_t i = 0; i < config->named_count; i++)
        copy->named[i].name = as_arena_strdup(&copy->arena, config->named[i].name);
    copy->labels = as_labels_copy_to(&copy->arena, config->labels);
    struct as_taint *taints = as_arena_alloc(&copy->arena, config->taint_count, sizeof(*taints));
    for (size_t i = 0; i < config->taint_count; i++)
        taints[i] = (struct as_taint){
            .key = as_arena_strdup(&copy->arena, config->taints[i].key),
            .value = as_arena_strdup(&copy->arena, config->taints[i].value),
            .effect = config->taints[i].effect,
        };
    copy->taints = taints;
    return copy;
}

struct as_node_template_config *as_node_template_config_free(struct as_node_template_config *config)
{
    if (config)
        as_arena_deinit(&config->arena);
    free(config);
    return NULL;
}

static int64_t find_amount(const struct as_node_template_config *config, const char *name)
{
    for (size_t i = 0; i < config->named_count; i++)
        if (strcmp(config->named[i].name, name) == 0)
            return config->named[i].amount;
    return 0;
}

void as_node_template_init_configured(struct as_node_template *template_out,
                                      const struct as_node_template_config *config,
                                      const struct as_res_names *names, struct as_arena *arena)
{
    const struct as_node_template_request no_startup_taints = {.cluster = NULL};
    struct as_resources left = {{0}};

    memcpy(left.amount, config->amount, sizeof(config->amount));
    for (size_t i = AS_RES_NAMED; i < names->count; i++)
        left.amount[i] = find_amount(config, names->name[i]);
    *template_out = (struct as_node_template){
        .source = AS_NODE_TEMPLATE_CONFIGURED,
        .shape = {.labels = config->labels,
                  .taints = config->taints,
                  .taint_count = config->taint_count,
                  .allocatable = left},
        .capacity = left,
        .allocatable = left,
    };
    keep_taints(&template_out->shape, &no_startup_taints, arena);
}

static bool taints_equal(const struct as_node_shape *a, const struct as_node_shape *b)
{
    if (a->taint_count != b->taint_count)
        return false;
    for (size_t i = 0; i < a->taint_count; i++)
        if (compare_taints(&a->taints[i], &b->taints[i]) != 0)
            return false;
    return true;
}

bool as_node_shape_equal(const struct as_node_shape *a, const struct as_node_shape *b,
                         const struct as_res_names *names)
{
    return taints_equal(a, b) && as_labels_equal(a->labels, b->labels) &&
           memcmp(a->allocatable.amount, b->allocatable.amount,
                  names->count * sizeof(a->allocatable.amount[0])) == 0;
}
