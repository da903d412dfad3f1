/*
 * Facts from objects of the Kubernetes API: nodes, pods and disruption budgets become values of
 * cluster/cluster_facts.h. A tree of the wanted fields is made (kube_protobuf.h), read, stored and
 * freed.
 *
 * What cannot be read is an error of the reader; the value that is returned then does not
 * matter. Texts belong to the tree, lists to the arena. The module does not decide: unknown
 * fields are ignored.
 */
#include <alertscaler/kube/kube_facts.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/kube/kube_nodes.h>

#include "kube_annotations.h"
#include "kube_object.h"
#include "kube_protobuf.h"
#include "pod_requests.h"

/* Readers of parts of an object. */

struct fact_reader {
    struct as_cluster_facts *facts; /* whose names of resources are used */
    struct as_arena *arena;
};

#define FACT_ITEMS_MAX 1024 /* that a list, or an object as a map, may have */

/* The first of the items, or of the members of the map; NULL: none. */
static const struct tree_value *fact_read_list(struct as_reader *parent, const char *name,
                                               size_t *count_out);
static const struct tree_value *fact_read_map(struct as_reader *parent, const char *name,
                                              size_t *count_out);

/* matchExpressions of a node's or a label's selector, appended to `list`. Operators of labels are
 * In, NotIn, Exists and DoesNotExist. False where an operator is not known. */
struct fact_requirements {
    struct as_node_requirement *items; /* with room for all: fact_begin_requirements */
    size_t count;
};
/*
 * Names, labels, selectors and budgets:
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
 */

#define LABEL_PART_MAX 63
#define SHOWN_MAX      64 /* bytes of a refused text in an error */

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters and digits at both ends, and `others` between. */
static bool fact_label_is_word(const char *text, size_t size, size_t max, const char *others)
{
    if (size == 0 || size > max || !is_alphanumeric(text[0]) || !is_alphanumeric(text[size - 1]))
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_alphanumeric(text[i]) && !strchr(others, text[i]))
            return false;
    }
    return true;
}

/* Upper-case letters are for labels only. */
static bool fact_label_is_subdomain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] >= 'A' && text[i] <= 'Z')
            return false;
    }
    return fact_label_is_word(text, size, AS_CLUSTER_NAME_MAX, "-.");
}

static bool is_label_name(const char *text)
{
    const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;
    return (!slash || fact_label_is_subdomain(text, (size_t)(slash - text))) &&
           fact_label_is_word(name, strlen(name), LABEL_PART_MAX, "-._");
}

/* A DNS subdomain (RFC 1123) of at most 253 bytes, as a name in the API. */
static const char *fact_read_name(struct as_reader *metadata, const char *key)
{
    const char *name = as_read_string(metadata, key);
    const size_t size = strlen(name);

    if (fact_label_is_subdomain(name, size))
        return name;
    as_read_fail(metadata, key, "no name: \"%.*s\"", (int)as_str_cut_utf8(name, size, SHOWN_MAX),
                 name);
    return "";
}

static void fact_label_check_label(struct as_reader *parent, const char *name,
                                   const struct tree_value *member)
{
    if (!is_label_name(member->name))
        as_read_fail(parent, name, "no name of a label: \"%.*s\"",
                     (int)as_str_cut_utf8(member->name, member->name_size, SHOWN_MAX),
                     member->name);
    else if (member->kind != TREE_TEXT)
        as_read_fail(parent, name, "%s: expected a string", member->name);
    else if (member->size > 0 &&
             !fact_label_is_word(member->text, member->size, LABEL_PART_MAX, "-._"))
        as_read_fail(parent, name, "%s: no value of a label: \"%.*s\"", member->name,
                     (int)as_str_cut_utf8(member->text, member->size, SHOWN_MAX), member->text);
}

/* Labels, or a nodeSelector; NULL where absent or empty. */
static const struct as_labels *fact_read_labels(struct fact_reader *reader,
                                                struct as_reader *parent, const char *name)
{
    const struct as_labels *labels = NULL;
    size_t count, used = 0;
    const struct tree_value *member = fact_read_map(parent, name, &count);

    if (count == 0)
        return NULL;
    struct as_label *pairs = as_arena_alloc(reader->arena, count, sizeof(*pairs));
    for (; member; member = member->next) {
        fact_label_check_label(parent, name, member);
        if (as_read_result(parent) != 0)
            return NULL;
        pairs[used++] = (struct as_label){member->name, member->text};
    }
    if (as_labels_new_in(reader->arena, pairs, used, &labels) < 0)
        as_read_fail(parent, name, "too large");
    return labels;
}

/* Whether the set has that name; its value then. */
static bool fact_find_label(const struct as_labels *labels, const char *name,
                            const char **value_out)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        if (strcmp(labels->items[i].name, name) == 0) {
            *value_out = labels->items[i].value;
            return true;
        }
    }
    return false;
}

/* Selectors */

/* Room for the expressions of `names`, which end with NULL, and for `more`. */
static void fact_begin_requirements(struct fact_reader *reader, struct as_reader *parent,
                                    const char *const *names, size_t more,
                                    struct fact_requirements *list)
{
    size_t room = more, count;

    for (; *names; names++) {
        fact_read_list(parent, *names, &count);
        room += count;
    }
    *list = (struct fact_requirements){
        .items = as_arena_alloc(reader->arena, room, sizeof(*list->items)),
    };
}

static bool find_operator(const char *word, enum as_node_operator *operator_out)
{
    static const char *const words[] = {
        [AS_NODE_IN] = "In",         [AS_NODE_NOT_IN] = "NotIn",
        [AS_NODE_EXISTS] = "Exists", [AS_NODE_DOES_NOT_EXIST] = "DoesNotExist",
        [AS_NODE_GT] = "Gt",         [AS_NODE_LT] = "Lt",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(words[i], word) == 0) {
            *operator_out = (enum as_node_operator)i;
            return true;
        }
    }
    return false;
}

static void fact_label_read_values(struct fact_reader *reader, struct as_reader *parent,
                                   struct as_node_requirement *requirement)
{
    size_t count;
    const struct tree_value *value = fact_read_list(parent, "values", &count);
    const char **values = as_arena_alloc(reader->arena, count, sizeof(*values));

    for (size_t i = 0; i < count; i++, value = value->next) {
        values[i] = tree_get_text(value);
        if (!values[i])
            as_read_fail(parent, "values", "expected strings");
    }
    requirement->values = values;
    requirement->value_count = count;
}

static bool fact_read_expressions(struct fact_reader *reader, struct as_reader *parent,
                                  const char *name, struct fact_requirements *list)
{
    bool are_known = true;
    size_t count;
    const struct tree_value *item = fact_read_list(parent, name, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_node_requirement *requirement = &list->items[list->count++];
        struct as_reader inner;
        as_read_item(&inner, parent, name, item, i);
        requirement->key = as_read_string(&inner, "key");
        if (!*requirement->key)
            as_read_fail(&inner, "key", "missing");
        are_known &= find_operator(as_read_string(&inner, "operator"), &requirement->operator_);
        fact_label_read_values(reader, &inner, requirement);
    }
    return are_known;
}

/* A LabelSelector: matchLabels and matchExpressions; an operator that is not known is an error. */
static void fact_read_selector(struct fact_reader *reader, struct as_reader *selector,
                               struct fact_requirements *list)
{
    static const char *const names[] = {"matchExpressions", NULL};
    const struct as_labels *labels = fact_read_labels(reader, selector, "matchLabels");

    fact_begin_requirements(reader, selector, names, labels ? labels->count : 0, list);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        list->items[list->count++] = (struct as_node_requirement){
            .key = labels->items[i].name,
            .operator_ = AS_NODE_IN,
            .values = &labels->items[i].value,
            .value_count = 1,
        };
    if (!fact_read_expressions(reader, selector, names[0], list))
        as_read_fail(selector, names[0],
                     "expected the operators In, NotIn, Exists or DoesNotExist");
}

static int64_t fact_get_i64(struct as_reader *parent, const char *name, int64_t low, int64_t high)
{
    int64_t number = 0;

    as_read_i64(parent, name, low, high, &number);
    return number;
}

/* Budgets */

static void fact_read_budget(struct fact_reader *reader, struct as_reader *root,
                             struct as_budget_fact *budget_out)
{
    struct as_reader metadata, spec, selector, status;
    struct fact_requirements list = {.items = NULL};

    as_read_object(&metadata, root, "metadata");
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    as_read_object(&selector, &spec, "selector");
    fact_read_selector(reader, &selector, &list);
    *budget_out = (struct as_budget_fact){
        .namespace_ = fact_read_name(&metadata, "namespace"),
        .name = fact_read_name(&metadata, "name"),
        .requirements = list.items,
        .count = list.count,
        .is_nothing = !selector.object,
        .allowed = (int32_t)fact_get_i64(&status, "disruptionsAllowed", INT32_MIN, INT32_MAX),
    };
}

/*
 * Amounts, in whole units, and the requests of a whole pod:
 * https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/ and, for requests of
 * the pod itself, KEP-2837.
 */

#define MILLI                        3
#define KUBE_FACT_REQUESTS_SHOWN_MAX 64 /* bytes of a refused text in an error */

/* Without facts only the first four. Extended resources have a domain ("nvidia.com/gpu"). What else
 * a node names (attachable volumes) no pod can ask for. AS_RES_MAX: not counted. */
static int find_index(struct fact_reader *reader, const char *name)
{
    static const char *const names[] = {
        [AS_RES_CPU] = "cpu",
        [AS_RES_MEMORY] = "memory",
        [AS_RES_EPHEMERAL] = "ephemeral-storage",
        [AS_RES_PODS] = "pods",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (strcmp(names[i], name) == 0)
            return (int)i;
    }
    return reader->facts && (strchr(name, '/') || as_str_starts_with(name, "hugepages-"))
               ? as_cluster_facts_name_resource(reader->facts, name)
               : AS_RES_MAX;
}

static int64_t fact_request_add(int64_t a, int64_t b)
{
    return a > AS_RES_AMOUNT_MAX - b ? AS_RES_AMOUNT_MAX : a + b;
}

static bool fact_request_read_quantity(struct as_reader *parent, const char *name,
                                       const struct tree_value *member, int scale, bool round_up,
                                       int64_t *amount_out)
{
    if (member->kind != TREE_TEXT)
        as_read_fail(
            parent, name, "%.*s: expected a string",
            (int)as_str_cut_utf8(member->name, member->name_size, KUBE_FACT_REQUESTS_SHOWN_MAX),
            member->name);
    else if (as_quantity_parse_scaled(member->text, member->size, scale, round_up, amount_out) < 0)
        as_read_fail(
            parent, name, "%.*s: no quantity: \"%.*s\"",
            (int)as_str_cut_utf8(member->name, member->name_size, KUBE_FACT_REQUESTS_SHOWN_MAX),
            member->name,
            (int)as_str_cut_utf8(member->text, member->size, KUBE_FACT_REQUESTS_SHOWN_MAX),
            member->text);
    else
        return true;
    return false;
}

/* Adds amounts of resources. Returns a bit for each index that is named; *are_left_out is set where
 * there is no index for a name. */
static uint32_t fact_add_amounts(struct fact_reader *reader, struct as_reader *parent,
                                 const char *name, bool round_up, struct as_resources *sums,
                                 bool *are_left_out)
{
    uint32_t named = 0;
    size_t count;

    for (const struct tree_value *member = fact_read_map(parent, name, &count); member;
         member = member->next) {
        const int index = find_index(reader, member->name);
        int64_t amount;
        *are_left_out |= index < 0;
        if (index < 0 || index == AS_RES_MAX ||
            !fact_request_read_quantity(parent, name, member, index == AS_RES_CPU ? MILLI : 0,
                                        round_up, &amount))
            continue;
        named |= UINT32_C(1) << index;
        sums->amount[index] = fact_request_add(sums->amount[index], amount);
    }
    return named;
}

static uint32_t fact_request_add_requests(struct fact_reader *reader, struct as_reader *of,
                                          struct as_resources *sums, unsigned *unchecked)
{
    bool are_left_out = false;
    struct as_reader resources;

    as_read_object(&resources, of, "resources");
    const uint32_t named =
        fact_add_amounts(reader, &resources, "requests", true, sums, &are_left_out);
    *unchecked |= are_left_out ? AS_UNCHECKED_RESOURCES : 0;
    return named;
}

static void raise_to(struct as_resources *most, const struct as_resources *sums)
{
    for (int i = 0; i < AS_RES_MAX; i++) {
        if (sums->amount[i] > most->amount[i])
            most->amount[i] = sums->amount[i];
    }
}

/* An init container runs beside the sidecars that stand before it. */
static uint32_t read_init_containers(struct fact_reader *reader, struct as_reader *spec,
                                     struct as_resources *sidecars, struct as_resources *most,
                                     unsigned *unchecked)
{
    static const char list[] = "initContainers";
    uint32_t named = 0;
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_resources sums = *sidecars;
        struct as_reader container;
        as_read_item(&container, spec, list, item, i);
        named |= fact_request_add_requests(reader, &container, &sums, unchecked);
        if (as_read_is(&container, "restartPolicy", "Always"))
            *sidecars = sums;
        raise_to(most, &sums);
    }
    return named;
}

/* What the whole pod asks for. Returns a bit for each index that is named. */
static uint32_t fact_read_requests(struct fact_reader *reader, struct as_reader *spec,
                                   struct as_pod_class *pod_class)
{
    static const char list[] = "containers";
    struct as_resources most = {{0}}, sums = {{0}}, own = {{0}};
    bool are_left_out = false;
    size_t count;

    uint32_t named = read_init_containers(reader, spec, &sums, &most, &pod_class->unchecked);
    const struct tree_value *item = fact_read_list(spec, list, &count);
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader container;
        as_read_item(&container, spec, list, item, i);
        named |= fact_request_add_requests(reader, &container, &sums, &pod_class->unchecked);
    }
    raise_to(&most, &sums);
    const uint32_t of_pod = fact_request_add_requests(reader, spec, &own, &pod_class->unchecked);
    for (int i = 0; i < AS_RES_MAX; i++) {
        if (of_pod & UINT32_C(1) << i)
            most.amount[i] = own.amount[i];
    }
    named |= of_pod | fact_add_amounts(reader, spec, "overhead", true, &most, &are_left_out);
    pod_class->unchecked |= are_left_out ? AS_UNCHECKED_RESOURCES : 0;
    most.amount[AS_RES_PODS] = 1;
    pod_class->requests = most;
    return named;
}

void pod_requests_read(struct as_reader *spec, double absent, double requests_out[])
{
    static const struct {
        int index;
        double unit;
    } rows[AS_RESOURCE_COUNT] = {
        [AS_RESOURCE_CPU] = {AS_RES_CPU, 1000},
        [AS_RESOURCE_MEMORY] = {AS_RES_MEMORY, 1},
    };
    struct fact_reader reader = {.facts = NULL};
    struct as_pod_class pod_class = {.unchecked = 0};
    const uint32_t named = fact_read_requests(&reader, spec, &pod_class);

    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        requests_out[i] = named & UINT32_C(1) << rows[i].index
                              ? (double)pod_class.requests.amount[rows[i].index] / rows[i].unit
                              : absent;
}

/*
 * Placing: the nodes that a pod may use. What the scheduler refuses to read (an unknown
 * operator) matches nothing here.
 */

#define HOSTNAME "kubernetes.io/hostname"

static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";

/* Node affinity */

static void read_term(struct fact_reader *reader, struct as_reader *parent,
                      struct as_node_term *term)
{
    static const char *const names[] = {"matchExpressions", "matchFields", NULL};
    struct fact_requirements list;

    fact_begin_requirements(reader, parent, names, 0, &list);
    bool are_known = fact_read_expressions(reader, parent, names[0], &list);
    const size_t of_labels = list.count;
    are_known &= fact_read_expressions(reader, parent, names[1], &list);
    for (size_t i = of_labels; i < list.count; i++)
        list.items[i].is_field = true;
    *term = (struct as_node_term){list.items, are_known ? list.count : 0};
}

static void read_node_affinity(struct fact_reader *reader, struct as_reader *affinity,
                               struct as_pod_class *pod_class)
{
    static const char list[] = "nodeSelectorTerms";
    struct as_reader node, selector;
    size_t count;

    as_read_object(&node, affinity, "nodeAffinity");
    as_read_object(&selector, &node, required);
    pod_class->has_affinity = selector.object != NULL;
    const struct tree_value *item = fact_read_list(&selector, list, &count);
    struct as_node_term *terms = as_arena_alloc(reader->arena, count, sizeof(*terms));
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader term;
        as_read_item(&term, &selector, list, item, i);
        read_term(reader, &term, &terms[i]);
    }
    pod_class->terms = terms;
    pod_class->term_count = count;
}

/* Pod affinity */

static bool fact_placing_is_among(const struct as_node_requirement *requirement, const char *value)
{
    for (size_t i = 0; i < requirement->value_count; i++) {
        if (strcmp(requirement->values[i], value) == 0)
            return true;
    }
    return false;
}

/* The operators are those of labels. */
static bool fact_placing_matches(const struct as_node_requirement *requirement,
                                 const struct as_labels *labels)
{
    const char *value = "";
    const bool has = fact_find_label(labels, requirement->key, &value);

    if (requirement->operator_ == AS_NODE_EXISTS)
        return has;
    if (requirement->operator_ == AS_NODE_DOES_NOT_EXIST)
        return !has;
    return requirement->operator_ == AS_NODE_IN
               ? has && fact_placing_is_among(requirement, value)
               : !has || !fact_placing_is_among(requirement, value);
}

static uint64_t fact_placing_hash_text(uint64_t hash, const char *text) /* FNV-1a, with the NUL */
{
    do
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++);
    return hash;
}

/* A sum, so that the order of the requirements does not matter. */
static uint64_t hash_selector(const char *namespace_, const struct fact_requirements *list)
{
    const uint64_t start = UINT64_C(0xcbf29ce484222325);
    uint64_t sum = fact_placing_hash_text(start, namespace_);

    for (size_t i = 0; i < list->count; i++) {
        uint64_t hash =
            fact_placing_hash_text(start + list->items[i].operator_, list->items[i].key);
        for (size_t k = 0; k < list->items[i].value_count; k++)
            hash = fact_placing_hash_text(hash, list->items[i].values[k]);
        sum += hash;
    }
    return sum ? sum : 1;
}

/* Whose pods the term is about: the pod's own namespace or "*" (all of them), where these are
 * among them; NULL: where they are not, or may not be. */
static const char *find_scope(struct as_reader *term, const char *own)
{
    struct as_reader selector;
    size_t count, labels, expressions;
    const struct tree_value *namespace_ = fact_read_list(term, "namespaces", &count);

    as_read_object(&selector, term, "namespaceSelector");
    fact_read_map(&selector, "matchLabels", &labels);
    fact_read_list(&selector, "matchExpressions", &expressions);
    if (selector.object && labels + expressions == 0)
        return "*";
    for (; namespace_; namespace_ = namespace_->next) {
        if (namespace_->kind == TREE_TEXT && strcmp(namespace_->text, own) == 0)
            return own;
    }
    return count == 0 && !selector.object ? own : NULL;
}

/* The number of the term where it keeps equal pods apart, each on a node of its own; else 0. */
static uint64_t read_loner(struct fact_reader *reader, struct as_reader *term,
                           const struct as_pod_class *pod_class)
{
    struct fact_requirements list;
    struct as_reader selector;
    const char *scope = find_scope(term, pod_class->namespace_);

    as_read_object(&selector, term, "labelSelector");
    fact_read_selector(reader, &selector, &list);
    if (!scope || !selector.object || !as_read_is(term, "topologyKey", HOSTNAME))
        return 0;
    for (size_t i = 0; i < list.count; i++) {
        if (!fact_placing_matches(&list.items[i], pod_class->labels))
            return 0;
    }
    return hash_selector(scope, &list);
}

static void read_pod_affinity(struct fact_reader *reader, struct as_reader *affinity,
                              struct as_pod_class *pod_class)
{
    struct as_reader together, apart;
    size_t count;

    as_read_object(&together, affinity, "podAffinity");
    as_read_object(&apart, affinity, "podAntiAffinity");
    fact_read_list(&together, required, &count);
    pod_class->unchecked |= count > 0 ? AS_UNCHECKED_AFFINITY : 0;
    const struct tree_value *item = fact_read_list(&apart, required, &count);
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader term;
        as_read_item(&term, &apart, required, item, i);
        const uint64_t loner = read_loner(reader, &term, pod_class);
        if (loner != 0 && (pod_class->loner == 0 || pod_class->loner == loner))
            pod_class->loner = loner;
        else
            pod_class->unchecked |= AS_UNCHECKED_AFFINITY;
    }
}

/* The rest */

static void read_spread(struct as_reader *spec, struct as_pod_class *pod_class)
{
    static const char list[] = "topologySpreadConstraints";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader constraint;
        as_read_item(&constraint, spec, list, item, i);
        if (!as_read_is(&constraint, "whenUnsatisfiable", "ScheduleAnyway"))
            pod_class->unchecked |= AS_UNCHECKED_SPREAD;
    }
}

static void read_volumes(struct as_reader *spec, struct as_pod_class *pod_class)
{
    static const char list[] = "volumes";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader volume;
        as_read_item(&volume, spec, list, item, i);
        if (as_read_has(&volume, "persistentVolumeClaim") || as_read_has(&volume, "ephemeral") ||
            as_read_has(&volume, "csi"))
            pod_class->unchecked |= AS_UNCHECKED_VOLUMES;
    }
}

/* False where it tolerates nothing that we know. */
static bool read_toleration(struct as_reader *parent, struct as_toleration *toleration)
{
    const char *effect = as_read_string(parent, "effect"),
               *operator_ = as_read_string(parent, "operator");

    *toleration = (struct as_toleration){
        .key = as_read_string(parent, "key"),
        .value = as_read_string(parent, "value"),
        .is_exists = strcmp(operator_, "Exists") == 0,
        .effects = strcmp(effect, "NoSchedule") == 0         ? AS_TAINT_NO_SCHEDULE
                   : strcmp(effect, "PreferNoSchedule") == 0 ? AS_TAINT_PREFER_NO_SCHEDULE
                   : strcmp(effect, "NoExecute") == 0        ? AS_TAINT_NO_EXECUTE
                                                             : 0,
    };
    return (toleration->is_exists || !*operator_ || strcmp(operator_, "Equal") == 0) &&
           (toleration->effects != 0 || !*effect);
}

static void fact_placing_read_tolerations(struct fact_reader *reader, struct as_reader *spec,
                                          struct as_pod_class *pod_class)
{
    static const char list[] = "tolerations";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);
    struct as_toleration *tolerations = as_arena_alloc(reader->arena, count, sizeof(*tolerations));

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader toleration;
        as_read_item(&toleration, spec, list, item, i);
        pod_class->toleration_count +=
            read_toleration(&toleration, &tolerations[pod_class->toleration_count]);
    }
    pod_class->tolerations = tolerations;
}

/* The API server fills hostPort in where hostNetwork is set; who wrote the pod may have not. */
static uint16_t read_host_port(struct as_reader *port, bool has_host_network)
{
    const int64_t host = fact_get_i64(port, "hostPort", 0, UINT16_MAX);
    const int64_t own = fact_get_i64(port, "containerPort", 0, UINT16_MAX);
    return (uint16_t)(host == 0 && has_host_network ? own : host);
}

static void read_container_ports(struct fact_reader *reader, struct as_reader *container,
                                 bool has_host_network, struct as_pod_class *pod_class)
{
    static const char list[] = "ports";
    size_t count;
    const struct tree_value *item = fact_read_list(container, list, &count);

    if (count == 0)
        return;
    struct as_host_port *ports =
        as_arena_alloc(reader->arena, pod_class->port_count + count, sizeof(*ports));
    if (pod_class->port_count > 0)
        memcpy(ports, pod_class->ports, pod_class->port_count * sizeof(*ports));
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader port;
        as_read_item(&port, container, list, item, i);
        const uint16_t number = read_host_port(&port, has_host_network);
        const char *ip = as_read_string(&port, "hostIP");
        const char *protocol = as_read_string(&port, "protocol");
        if (number != 0)
            ports[pod_class->port_count++] = (struct as_host_port){
                .ip = *ip ? ip : "0.0.0.0",
                .protocol = *protocol ? protocol : "TCP",
                .port = number,
            };
    }
    pod_class->ports = ports;
}

/* false, 0 and not set where absent; a time may be "" too. */
static bool fact_get_bool(struct as_reader *parent, const char *name)
{
    bool value = false;

    as_read_bool(parent, name, &value);
    return value;
}

static void fact_placing_read_ports(struct fact_reader *reader, struct as_reader *spec,
                                    const char *list, bool is_init, struct as_pod_class *pod_class)
{
    const bool has_host_network = fact_get_bool(spec, "hostNetwork");
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader container;
        as_read_item(&container, spec, list, item, i);
        if (!is_init || as_read_is(&container, "restartPolicy", "Always"))
            read_container_ports(reader, &container, has_host_network, pod_class);
    }
}

/* Affinity, spreading, volumes, claims, tolerations and ports; needs namespace and labels. */
static void fact_read_placing(struct fact_reader *reader, struct as_reader *spec,
                              struct as_pod_class *pod_class)
{
    struct as_reader affinity;
    size_t claims;

    as_read_object(&affinity, spec, "affinity");
    pod_class->selector = fact_read_labels(reader, spec, "nodeSelector");
    read_node_affinity(reader, &affinity, pod_class);
    read_pod_affinity(reader, &affinity, pod_class);
    read_spread(spec, pod_class);
    read_volumes(spec, pod_class);
    fact_read_list(spec, "resourceClaims", &claims);
    pod_class->unchecked |= claims > 0 ? AS_UNCHECKED_CLAIMS : 0;
    fact_placing_read_tolerations(reader, spec, pod_class);
    fact_placing_read_ports(reader, spec, "initContainers", true, pod_class);
    fact_placing_read_ports(reader, spec, "containers", false, pod_class);
}

/* Pods. The fields that decide whether a pod may be evicted are as in kube_nodes.c. */

static enum as_eviction_class get_eviction(struct as_reader *metadata, struct as_reader *spec,
                                           const char *namespace_)
{
    const char *controller = kube_find_controller(metadata->object);
    struct as_reader annotations;

    as_read_object(&annotations, metadata, "annotations");
    if (as_read_has(&annotations, MIRROR_POD) || as_str_equal(controller, "Node"))
        return AS_EVICTION_MIRROR;
    if (as_str_equal(controller, "DaemonSet") || as_read_is(&annotations, DAEMONSET_POD, "true"))
        return AS_EVICTION_DAEMON;
    if (as_read_is(&annotations, SAFE_TO_EVICT, "true"))
        return AS_EVICTION_ALLOWED;
    if (as_read_is(&annotations, SAFE_TO_EVICT, "false"))
        return AS_EVICTION_REFUSED;
    if (!kube_is_replicated(controller))
        return AS_EVICTION_UNREPLICATED;
    if (kube_find_local_volume(spec->object, annotations.object))
        return AS_EVICTION_LOCAL_STORAGE;
    return strcmp(namespace_, "kube-system") == 0 ? AS_EVICTION_SYSTEM : AS_EVICTION_ALLOWED;
}

static bool is_unschedulable(struct as_reader *status)
{
    static const char list[] = "conditions";
    size_t count;
    const struct tree_value *item = fact_read_list(status, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader condition;
        as_read_item(&condition, status, list, item, i);
        if (as_read_is(&condition, "type", "PodScheduled"))
            return as_read_is(&condition, "status", "False") &&
                   as_read_is(&condition, "reason", "Unschedulable");
    }
    return false;
}

static const char *read_node_name(struct as_reader *parent, const char *key)
{
    return *as_read_string(parent, key) ? fact_read_name(parent, key) : NULL;
}

static as_maybe_time fact_get_time(struct as_reader *parent, const char *name)
{
    as_maybe_time time = {.set = false};

    if (*as_read_string(parent, name))
        as_read_time(parent, name, &time);
    return time;
}

static bool fact_read_pod(struct fact_reader *reader, struct as_reader *root,
                          struct as_pod_class *pod_class_out, struct as_pod_put *pod_out)
{
    static const struct as_labels no_labels = {.count = 0};
    struct as_reader metadata, spec, status;

    as_read_object(&metadata, root, "metadata");
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    struct as_pod_fact *fact = &pod_out->fact;
    *pod_out = (struct as_pod_put){.fact.pod_class = pod_class_out};
    fact->namespace_ = fact_read_name(&metadata, "namespace");
    fact->name = fact_read_name(&metadata, "name");
    if (as_read_is(&status, "phase", "Succeeded") || as_read_is(&status, "phase", "Failed"))
        return false;
    fact->gone_at = fact_get_time(&metadata, "deletionTimestamp");
    fact->is_leaving = fact->gone_at.set;
    fact->created = fact_get_time(&metadata, "creationTimestamp").at;
    pod_out->node = read_node_name(&spec, "nodeName");
    pod_out->nominated = read_node_name(&status, "nominatedNodeName");
    fact->is_unschedulable = is_unschedulable(&status);

    const struct as_labels *labels = fact_read_labels(reader, &metadata, "labels");
    *pod_class_out = (struct as_pod_class){
        .namespace_ = fact->namespace_,
        .labels = labels ? labels : &no_labels,
        .priority = (int32_t)fact_get_i64(&spec, "priority", INT32_MIN, INT32_MAX),
        .never_preempts = as_read_is(&spec, "preemptionPolicy", "Never"),
        .eviction = get_eviction(&metadata, &spec, fact->namespace_),
    };
    fact_read_requests(reader, &spec, pod_class_out);
    fact_read_placing(reader, &spec, pod_class_out);
    return true;
}

/* Nodes. */

static void read_readiness(struct as_reader *status, struct as_node_fact *node)
{
    static const char list[] = "conditions";
    size_t count;
    const struct tree_value *item = fact_read_list(status, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader condition;
        as_read_item(&condition, status, list, item, i);
        if (!as_read_is(&condition, "type", "Ready"))
            continue;
        node->is_ready = as_read_is(&condition, "status", "True");
        node->ready_since = fact_get_time(&condition, "lastTransitionTime");
        return;
    }
}

/* False for an effect that no scheduler knows, and so ignores. */
static bool read_taint(struct as_reader *parent, struct as_taint *taint)
{
    static const struct {
        const char *word;
        enum as_taint_effect effect;
    } effects[] = {
        {"NoSchedule", AS_TAINT_NO_SCHEDULE},
        {"PreferNoSchedule", AS_TAINT_PREFER_NO_SCHEDULE},
        {"NoExecute", AS_TAINT_NO_EXECUTE},
    };
    bool is_known = false;
    *taint = (struct as_taint){.key = as_read_string(parent, "key"),
                               .value = as_read_string(parent, "value")};
    if (!*taint->key)
        as_read_fail(parent, "key", "missing");
    for (size_t i = 0; i < AS_ARRAY_SIZE(effects); i++) {
        if (!as_read_is(parent, "effect", effects[i].word))
            continue;
        taint->effect = effects[i].effect;
        is_known = true;
    }
    return is_known;
}

static unsigned get_leaving(const char *key)
{
    static const struct {
        const char *key;
        enum as_node_leaving leaving;
    } taints[] = {
        {AS_NODE_TAINT, AS_NODE_LEAVING_OURS},
        {AS_NODE_TAINT_CLUSTER_AUTOSCALER, AS_NODE_LEAVING_CLUSTER_AUTOSCALER},
        {AS_NODE_TAINT_ESCALATOR, AS_NODE_LEAVING_ESCALATOR},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(taints); i++) {
        if (strcmp(taints[i].key, key) == 0)
            return taints[i].leaving;
    }
    return 0;
}

static void fact_node_read_taints(struct fact_reader *reader, struct as_reader *spec,
                                  struct as_node_fact *node)
{
    static const char list[] = "taints";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);
    struct as_taint *taints = as_arena_alloc(reader->arena, count, sizeof(*taints));

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader item_reader;
        struct as_taint *taint = &taints[node->taint_count];
        as_read_item(&item_reader, spec, list, item, i);
        node->taint_count += read_taint(&item_reader, taint);
        node->leaving |= get_leaving(taint->key);
    }
    node->taints = taints;
}

/* Each reads an object; false: a pod that has finished, of which only the names are read. */
static void fact_read_node(struct fact_reader *reader, struct as_reader *root,
                           struct as_node_fact *node_out)
{
    static const struct as_labels no_labels = {.count = 0};
    struct as_reader metadata, spec, status, annotations;
    struct as_kube_node_mark mark;
    bool are_left_out = false; /* whether no pod can ask for what has no index */

    as_read_object(&metadata, root, "metadata");
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    as_read_object(&annotations, &metadata, "annotations");
    const struct as_labels *labels = fact_read_labels(reader, &metadata, "labels");
    *node_out = (struct as_node_fact){
        .name = fact_read_name(&metadata, "name"),
        .provider_id = as_read_string(&spec, "providerID"),
        .labels = labels ? labels : &no_labels,
        .is_cordoned = fact_get_bool(&spec, "unschedulable"),
        .keep = kube_find_keep(annotations.object, reader->arena),
        .created = fact_get_time(&metadata, "creationTimestamp").at,
    };
    fact_node_read_taints(reader, &spec, node_out);
    if (kube_read_mark(annotations.object, reader->arena, &mark)) {
        node_out->marked_at = (as_maybe_time){.set = true, .at = mark.at};
        node_out->leaving |= AS_NODE_LEAVING_OURS;
    }
    read_readiness(&status, node_out);
    fact_add_amounts(reader, &status, "allocatable", false, &node_out->allocatable, &are_left_out);
    fact_add_amounts(reader, &status, "capacity", false, &node_out->capacity, &are_left_out);
    node_out->has_cpu = node_out->allocatable.amount[AS_RES_CPU] > 0;
    node_out->has_memory = node_out->allocatable.amount[AS_RES_MEMORY] > 0;
}

/* Objects. */

static const struct {
    const char *word;
    const struct tree_part *parts, *name_parts;
} kinds[AS_CLUSTER_KIND_COUNT] = {
    [AS_CLUSTER_NODES] = {"node", kube_node_parts, kube_node_name_parts},
    [AS_CLUSTER_PODS] = {"pod", kube_pod_parts, kube_name_parts},
    [AS_CLUSTER_BUDGETS] = {"budget", kube_budget_parts, kube_name_parts},
};

/* Whether it succeeds or not, the tree must be freed. */
static int facts_parse(struct tree *tree, enum as_cluster_kind kind, const struct tree_part *parts,
                       const struct as_kube_bytes *bytes, struct as_error *error)
{
    int status = 0;

    *tree = TREE_INIT(AS_KUBE_ITEM_MEMORY_MAX);
    if (bytes->size > AS_KUBE_FACT_BYTES_MAX)
        as_error_set(error, "larger than %zu bytes", AS_KUBE_FACT_BYTES_MAX);
    else if (bytes->form == AS_KUBE_JSON)
        status = tree_parse(tree, bytes->data, bytes->size, parts, error);
    else
        status = kube_protobuf_read(tree, bytes->data, bytes->size, parts, error);
    if (status == 0 && tree->has_nuls)
        as_error_set(error, "a NUL in a text");
    if (status == 0 && tree->root && !tree->has_nuls)
        return 0;
    as_error_wrap(error, "%s", kinds[kind].word);
    return -EBADMSG;
}

/* Values */

static const struct tree_value *check_count(struct as_reader *parent, const char *name,
                                            const struct tree_value *first, size_t *count)
{
    if (*count <= FACT_ITEMS_MAX)
        return first;
    as_read_fail(parent, name, "more than %d", FACT_ITEMS_MAX);
    *count = 0;
    return NULL;
}

static const struct tree_value *fact_read_list(struct as_reader *parent, const char *name,
                                               size_t *count_out)
{
    return check_count(parent, name, as_read_list(parent, name, count_out), count_out);
}

static const struct tree_value *fact_read_map(struct as_reader *parent, const char *name,
                                              size_t *count_out)
{
    return check_count(parent, name, as_read_map(parent, name, count_out), count_out);
}

/* Objects */

static const char *get_name(const struct tree_value *root, const char *key)
{
    const char *text = tree_get_text(tree_find(tree_find(root, "metadata"), key));
    return text ? text : "";
}

/* -EBADMSG where something could not be read: "pod shop/web-1: spec.priority: expected ...". */
static int facts_check(const struct as_reader *root, enum as_cluster_kind kind,
                       struct as_error *error)
{
    const char *namespace_ = kind == AS_CLUSTER_NODES ? "" : get_name(root->object, "namespace");
    const char *name = get_name(root->object, "name");

    if (as_read_result(root) == 0)
        return 0;
    as_error_wrap(error, "%s%s%.64s%s%.256s", kinds[kind].word, *name ? " " : "", namespace_,
                  *namespace_ ? "/" : "", name);
    return -EBADMSG;
}

static int facts_put_node(struct fact_reader *reader, struct as_reader *root,
                          struct as_error *error)
{
    struct as_node_fact node;

    fact_read_node(reader, root, &node);
    int status = facts_check(root, AS_CLUSTER_NODES, error);
    return status < 0 ? status : as_cluster_facts_put_node(reader->facts, &node, error);
}

static int facts_put_pod(struct fact_reader *reader, struct as_reader *root, struct as_error *error)
{
    struct as_pod_class pod_class;
    struct as_pod_put pod;
    const bool is_finished = !fact_read_pod(reader, root, &pod_class, &pod);
    int status = facts_check(root, AS_CLUSTER_PODS, error);

    if (status < 0 || !is_finished)
        return status < 0 ? status : as_cluster_facts_put_pod(reader->facts, &pod, error);
    as_cluster_facts_delete(reader->facts, AS_CLUSTER_PODS, pod.fact.namespace_, pod.fact.name);
    return 0;
}

static int facts_put_budget(struct fact_reader *reader, struct as_reader *root,
                            struct as_error *error)
{
    struct as_budget_fact budget;

    fact_read_budget(reader, root, &budget);
    int status = facts_check(root, AS_CLUSTER_BUDGETS, error);
    return status < 0 ? status : as_cluster_facts_put_budget(reader->facts, &budget, error);
}

static int facts_put(struct fact_reader *reader, enum as_cluster_kind kind,
                     const struct as_kube_bytes *bytes, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree;
    struct as_reader root;
    int status = facts_parse(&tree, kind, kinds[kind].parts, bytes, error);

    if (status < 0)
        return status;
    as_read_lenient(&root, tree.root, error);
    switch (kind) {
    case AS_CLUSTER_NODES: return facts_put_node(reader, &root, error);
    case AS_CLUSTER_PODS: return facts_put_pod(reader, &root, error);
    case AS_CLUSTER_BUDGETS: return facts_put_budget(reader, &root, error);
    case AS_CLUSTER_KIND_COUNT: break;
    }
    return -EINVAL;
}

int as_kube_fact_put(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                     const struct as_kube_bytes *bytes, struct as_arena *scratch,
                     struct as_error *error)
{
    struct fact_reader reader = {.facts = facts, .arena = scratch};

    const int status = facts_put(&reader, kind, bytes, error);

    as_arena_reset(scratch);
    return status;
}

int as_kube_fact_delete(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                        const struct as_kube_bytes *bytes, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree;
    struct as_reader root, metadata;
    int status = facts_parse(&tree, kind, kinds[kind].name_parts, bytes, error);

    if (status < 0)
        return status;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&metadata, &root, "metadata");
    const char *name = fact_read_name(&metadata, "name");
    const char *namespace_ = kind == AS_CLUSTER_NODES ? "" : fact_read_name(&metadata, "namespace");
    if ((status = facts_check(&root, kind, error)) == 0)
        as_cluster_facts_delete(facts, kind, namespace_, name);
    return status;
}
