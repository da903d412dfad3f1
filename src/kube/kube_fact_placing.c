/*
 * Where a pod may go: see the header. What the scheduler would refuse to read (an operator that is
 * not known) matches nothing here.
 */
#include "kube_facts_private.h"

#include <string.h>

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
                               struct as_pod_shape *shape)
{
    static const char list[] = "nodeSelectorTerms";
    struct as_reader node, selector;
    size_t count;

    as_read_object(&node, affinity, "nodeAffinity");
    as_read_object(&selector, &node, required);
    shape->has_affinity = selector.object != NULL;
    const struct tree_value *item = fact_read_list(&selector, list, &count);
    struct as_node_term *terms = as_arena_alloc(reader->arena, count, sizeof(*terms));
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader term;
        as_read_item(&term, &selector, list, item, i);
        read_term(reader, &term, &terms[i]);
    }
    shape->terms = terms;
    shape->term_count = count;
}

/* Pod affinity */

static bool is_among(const struct as_node_requirement *requirement, const char *value)
{
    for (size_t i = 0; i < requirement->value_count; i++) {
        if (strcmp(requirement->values[i], value) == 0)
            return true;
    }
    return false;
}

/* The operators are those of labels. */
static bool matches(const struct as_node_requirement *requirement, const struct as_labels *labels)
{
    const char *value = "";
    const bool has = fact_find_label(labels, requirement->key, &value);

    if (requirement->operator_ == AS_NODE_EXISTS)
        return has;
    if (requirement->operator_ == AS_NODE_DOES_NOT_EXIST)
        return !has;
    return requirement->operator_ == AS_NODE_IN ? has && is_among(requirement, value)
                                                : !has || !is_among(requirement, value);
}

static uint64_t hash_text(uint64_t hash, const char *text) /* FNV-1a, with the NUL */
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
    uint64_t sum = hash_text(start, namespace_);

    for (size_t i = 0; i < list->count; i++) {
        uint64_t hash = hash_text(start + list->items[i].operator_, list->items[i].key);
        for (size_t k = 0; k < list->items[i].value_count; k++)
            hash = hash_text(hash, list->items[i].values[k]);
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
                           const struct as_pod_shape *shape)
{
    struct fact_requirements list;
    struct as_reader selector;
    const char *scope = find_scope(term, shape->namespace_);

    as_read_object(&selector, term, "labelSelector");
    fact_read_selector(reader, &selector, &list);
    if (!scope || !selector.object || !as_read_is(term, "topologyKey", HOSTNAME))
        return 0;
    for (size_t i = 0; i < list.count; i++) {
        if (!matches(&list.items[i], shape->labels))
            return 0;
    }
    return hash_selector(scope, &list);
}

static void read_pod_affinity(struct fact_reader *reader, struct as_reader *affinity,
                              struct as_pod_shape *shape)
{
    struct as_reader together, apart;
    size_t count;

    as_read_object(&together, affinity, "podAffinity");
    as_read_object(&apart, affinity, "podAntiAffinity");
    fact_read_list(&together, required, &count);
    shape->unchecked |= count > 0 ? AS_UNCHECKED_AFFINITY : 0;
    const struct tree_value *item = fact_read_list(&apart, required, &count);
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader term;
        as_read_item(&term, &apart, required, item, i);
        const uint64_t loner = read_loner(reader, &term, shape);
        if (loner != 0 && (shape->loner == 0 || shape->loner == loner))
            shape->loner = loner;
        else
            shape->unchecked |= AS_UNCHECKED_AFFINITY;
    }
}

/* The rest */

static void read_spread(struct as_reader *spec, struct as_pod_shape *shape)
{
    static const char list[] = "topologySpreadConstraints";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader constraint;
        as_read_item(&constraint, spec, list, item, i);
        if (!as_read_is(&constraint, "whenUnsatisfiable", "ScheduleAnyway"))
            shape->unchecked |= AS_UNCHECKED_SPREAD;
    }
}

static void read_volumes(struct as_reader *spec, struct as_pod_shape *shape)
{
    static const char list[] = "volumes";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader volume;
        as_read_item(&volume, spec, list, item, i);
        if (as_read_has(&volume, "persistentVolumeClaim") || as_read_has(&volume, "ephemeral") ||
            as_read_has(&volume, "csi"))
            shape->unchecked |= AS_UNCHECKED_VOLUMES;
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

static void read_tolerations(struct fact_reader *reader, struct as_reader *spec,
                             struct as_pod_shape *shape)
{
    static const char list[] = "tolerations";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);
    struct as_toleration *tolerations = as_arena_alloc(reader->arena, count, sizeof(*tolerations));

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader toleration;
        as_read_item(&toleration, spec, list, item, i);
        shape->toleration_count +=
            read_toleration(&toleration, &tolerations[shape->toleration_count]);
    }
    shape->tolerations = tolerations;
}

/* The API server fills hostPort in where hostNetwork is set; who wrote the pod may have not. */
static uint16_t read_host_port(struct as_reader *port, bool has_host_network)
{
    const int64_t host = fact_get_i64(port, "hostPort", 0, UINT16_MAX);
    const int64_t own = fact_get_i64(port, "containerPort", 0, UINT16_MAX);
    return (uint16_t)(host == 0 && has_host_network ? own : host);
}

static void read_container_ports(struct fact_reader *reader, struct as_reader *container,
                                 bool has_host_network, struct as_pod_shape *shape)
{
    static const char list[] = "ports";
    size_t count;
    const struct tree_value *item = fact_read_list(container, list, &count);

    if (count == 0)
        return;
    struct as_host_port *ports =
        as_arena_alloc(reader->arena, shape->port_count + count, sizeof(*ports));
    if (shape->port_count > 0)
        memcpy(ports, shape->ports, shape->port_count * sizeof(*ports));
    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader port;
        as_read_item(&port, container, list, item, i);
        const uint16_t number = read_host_port(&port, has_host_network);
        const char *ip = as_read_string(&port, "hostIP");
        const char *protocol = as_read_string(&port, "protocol");
        if (number != 0)
            ports[shape->port_count++] = (struct as_host_port){
                .ip = *ip ? ip : "0.0.0.0",
                .protocol = *protocol ? protocol : "TCP",
                .port = number,
            };
    }
    shape->ports = ports;
}

static void read_ports(struct fact_reader *reader, struct as_reader *spec, const char *list,
                       bool is_init, struct as_pod_shape *shape)
{
    const bool has_host_network = fact_get_bool(spec, "hostNetwork");
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader container;
        as_read_item(&container, spec, list, item, i);
        if (!is_init || as_read_is(&container, "restartPolicy", "Always"))
            read_container_ports(reader, &container, has_host_network, shape);
    }
}

void fact_read_placing(struct fact_reader *reader, struct as_reader *spec,
                       struct as_pod_shape *shape)
{
    struct as_reader affinity;
    size_t claims;

    as_read_object(&affinity, spec, "affinity");
    shape->selector = fact_read_labels(reader, spec, "nodeSelector");
    read_node_affinity(reader, &affinity, shape);
    read_pod_affinity(reader, &affinity, shape);
    read_spread(spec, shape);
    read_volumes(spec, shape);
    fact_read_list(spec, "resourceClaims", &claims);
    shape->unchecked |= claims > 0 ? AS_UNCHECKED_CLAIMS : 0;
    read_tolerations(reader, spec, shape);
    read_ports(reader, spec, "initContainers", true, shape);
    read_ports(reader, spec, "containers", false, shape);
}
