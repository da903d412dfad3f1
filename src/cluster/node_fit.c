/*
 * Fit: which pods a node admits, and which it has room for. Labels and taints first
 * (as_node_admits), then what is free (as_node_room).
 */
#include <alertscaler/cluster/node_fit.h>

#include <assert.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define ANY_IP       "0.0.0.0"
#define GUESTS_FIRST 4 /* room for the first guests */

const char *as_misfit_get_word(enum as_misfit misfit)
{
    static const char *const words[AS_MISFIT_COUNT] = {
        [AS_FITS] = "fits",
        [AS_MISFIT_SELECTOR] = "node selector or node affinity does not match",
        [AS_MISFIT_TAINT] = "taint is not tolerated",
        [AS_MISFIT_CPU] = "not enough cpu",
        [AS_MISFIT_MEMORY] = "not enough memory",
        [AS_MISFIT_EPHEMERAL] = "not enough ephemeral storage",
        [AS_MISFIT_PODS] = "too many pods",
        [AS_MISFIT_NAMED] = "not enough of an extended resource",
        [AS_MISFIT_PORT] = "host port is taken",
        [AS_MISFIT_LONER] = "anti-affinity to a pod on the node",
        [AS_MISFIT_ZONE] = "volume is in another zone",
    };

    assert((size_t)misfit < AS_MISFIT_COUNT);
    return words[misfit];
}

/* Labels */

/* As Go's ParseInt, base 10, which allows leading zeros. */
static bool read_integer(const char *text, int64_t *integer_out)
{
    while (text[0] == '0' && text[1])
        text++;
    return as_number_parse_i64(text, strlen(text), integer_out) == 0;
}

/* Whether the scheduler can parse the requirement. A term with a requirement that the scheduler
 * cannot parse matches nothing, even if the operator is NotIn or DoesNotExist. */
static bool is_sound(const struct as_node_requirement *requirement)
{
    int64_t integer;

    for (size_t i = 0; i < requirement->value_count; i++)
        if (!as_label_is_kubernetes_value(requirement->values[i]))
            return false;
    switch (requirement->operator_) {
    case AS_NODE_IN:
    case AS_NODE_NOT_IN: return requirement->value_count > 0;
    case AS_NODE_EXISTS:
    case AS_NODE_DOES_NOT_EXIST: return requirement->value_count == 0;
    case AS_NODE_GT:
    case AS_NODE_LT:
        return requirement->value_count == 1 && read_integer(requirement->values[0], &integer);
    }
    return false;
}

static bool has_value(const struct as_node_requirement *requirement, const char *value)
{
    for (size_t i = 0; i < requirement->value_count; i++)
        if (strcmp(requirement->values[i], value) == 0)
            return true;
    return false;
}

static bool is_beyond(const struct as_node_requirement *requirement, const char *value)
{
    int64_t bound, integer;

    if (!value || !read_integer(value, &integer) || !read_integer(requirement->values[0], &bound))
        return false;
    return requirement->operator_ == AS_NODE_GT ? integer > bound : integer < bound;
}

static bool label_matches(const struct as_labels *labels,
                          const struct as_node_requirement *requirement)
{
    const char *value = as_labels_find(labels, requirement->key);

    if (!is_sound(requirement))
        return false;
    switch (requirement->operator_) {
    case AS_NODE_IN: return value && has_value(requirement, value);
    case AS_NODE_NOT_IN: return !value || !has_value(requirement, value);
    case AS_NODE_EXISTS: return value != NULL;
    case AS_NODE_DOES_NOT_EXIST: return !value;
    case AS_NODE_GT:
    case AS_NODE_LT: return is_beyond(requirement, value);
    }
    return false;
}

/* matchFields: only In and NotIn, with one value. */
static bool field_matches(const char *name, const struct as_node_requirement *requirement)
{
    const bool is_in = requirement->operator_ == AS_NODE_IN;

    if (!name || requirement->value_count != 1 || strcmp(requirement->key, "metadata.name") != 0)
        return false;
    if (!is_in && requirement->operator_ != AS_NODE_NOT_IN)
        return false;
    return (strcmp(requirement->values[0], name) == 0) == is_in;
}

static bool term_matches(const struct as_node_shape *node, const struct as_node_term *term)
{
    for (size_t i = 0; i < term->count; i++) {
        const struct as_node_requirement *requirement = &term->requirements[i];

        if (requirement->is_field ? !field_matches(node->name, requirement)
                                  : !label_matches(node->labels, requirement))
            return false;
    }
    return term->count > 0;
}

static bool fit_is_selected(const struct as_node_shape *node, const struct as_pod_class *pod_class)
{
    for (size_t i = 0; pod_class->selector && i < pod_class->selector->count; i++) {
        const struct as_label *label = &pod_class->selector->items[i];

        if (!as_str_equal(as_labels_find(node->labels, label->name), label->value))
            return false;
    }
    for (size_t i = 0; pod_class->has_affinity && i < pod_class->term_count; i++)
        if (term_matches(node, &pod_class->terms[i]))
            return true;
    return !pod_class->has_affinity;
}

/* By the label that nodes have since Kubernetes 1.17, else by its predecessor. */
static bool is_in_zone(const struct as_node_shape *node, const char *zone)
{
    const char *value = as_labels_find(node->labels, "topology.kubernetes.io/zone");

    if (!value)
        value = as_labels_find(node->labels, "failure-domain.beta.kubernetes.io/zone");
    return as_str_equal(value, zone);
}

/* Taints */

static bool tolerates(const struct as_toleration *toleration, const struct as_taint *taint)
{
    if (toleration->effects && !(toleration->effects & (unsigned)taint->effect))
        return false;
    if (*toleration->key && strcmp(toleration->key, taint->key) != 0)
        return false;
    return toleration->is_exists || strcmp(toleration->value, taint->value) == 0;
}

static bool is_tolerated(const struct as_taint *taint, const struct as_pod_class *pod_class)
{
    for (size_t i = 0; i < pod_class->toleration_count; i++)
        if (tolerates(&pod_class->tolerations[i], taint))
            return true;
    return taint->effect == AS_TAINT_PREFER_NO_SCHEDULE;
}

enum as_misfit as_node_admits(const struct as_node_shape *node,
                              const struct as_pod_class *pod_class)
{
    if (!fit_is_selected(node, pod_class))
        return AS_MISFIT_SELECTOR;
    for (size_t i = 0; i < node->taint_count; i++)
        if (!is_tolerated(&node->taints[i], pod_class))
            return AS_MISFIT_TAINT;
    return pod_class->zone && !is_in_zone(node, pod_class->zone) ? AS_MISFIT_ZONE : AS_FITS;
}

/* What is free */

static bool ports_conflict(const struct as_host_port *a, const struct as_host_port *b)
{
    return a->port != 0 && a->port == b->port && strcmp(a->protocol, b->protocol) == 0 &&
           (strcmp(a->ip, b->ip) == 0 || strcmp(a->ip, ANY_IP) == 0 || strcmp(b->ip, ANY_IP) == 0);
}

static bool share_port(const struct as_pod_class *a, const struct as_pod_class *b)
{
    for (size_t i = 0; i < a->port_count; i++)
        for (size_t j = 0; j < b->port_count; j++)
            if (ports_conflict(&a->ports[i], &b->ports[j]))
                return true;
    return false;
}

static bool are_loners(const struct as_pod_class *a, const struct as_pod_class *b)
{
    return a->loner != 0 && a->loner == b->loner;
}

/* Why two pods of these pod classes cannot share a node of any size. */
static enum as_misfit get_conflict(const struct as_pod_class *a, const struct as_pod_class *b)
{
    if (share_port(a, b))
        return AS_MISFIT_PORT;
    return are_loners(a, b) ? AS_MISFIT_LONER : AS_FITS;
}

/* The conflict with guests that comes first in the order of misfits. */
static enum as_misfit get_conflict_with_guests(const struct as_node_room *room,
                                               const struct as_pod_class *pod_class)
{
    enum as_misfit first = AS_FITS;

    for (size_t i = 0; i < room->guest_count && first != AS_MISFIT_PORT; i++) {
        const enum as_misfit conflict = get_conflict(room->guests[i], pod_class);

        first = conflict != AS_FITS ? conflict : first;
    }
    return first;
}

static enum as_misfit get_shortage(size_t resource)
{
    static const enum as_misfit shortages[AS_RES_NAMED] = {
        [AS_RES_CPU] = AS_MISFIT_CPU,
        [AS_RES_MEMORY] = AS_MISFIT_MEMORY,
        [AS_RES_EPHEMERAL] = AS_MISFIT_EPHEMERAL,
        [AS_RES_PODS] = AS_MISFIT_PODS,
    };

    return resource < AS_RES_NAMED ? shortages[resource] : AS_MISFIT_NAMED;
}

uint64_t as_node_room_count(const struct as_node_room *room, const struct as_res_names *names,
                            const struct as_pod_class *pod_class, uint64_t wanted,
                            enum as_misfit *misfit_out)
{
    const enum as_misfit with_guests = get_conflict_with_guests(room, pod_class);
    const enum as_misfit with_itself = get_conflict(pod_class, pod_class);
    enum as_misfit misfit = AS_FITS;
    uint64_t count = wanted;

    assert(names->count >= AS_RES_NAMED && names->count <= AS_RES_MAX);
    for (size_t i = 0; i < names->count; i++) {
        const int64_t taken =
            room->expendable && pod_class->never_preempts ? room->expendable->amount[i] : 0;
        const int64_t left = room->left.amount[i] - taken, request = pod_class->requests.amount[i];
        const uint64_t most = left > 0 && request > 0 ? (uint64_t)(left / request) : 0;

        if (request > 0 && most < count) { /* a request of 0 fits even on a full node */
            count = most;
            misfit = get_shortage(i);
        }
    }
    if (with_guests != AS_FITS && count > 0) {
        count = 0;
        misfit = with_guests;
    } else if (with_itself != AS_FITS && count > 1) {
        count = 1;
        misfit = with_itself;
    }
    if (misfit_out)
        *misfit_out = misfit;
    return count;
}

static void add_guest(struct as_node_room *room, const struct as_pod_class *pod_class,
                      struct as_arena *arena)
{
    for (size_t i = 0; i < room->guest_count; i++)
        if (room->guests[i] == pod_class)
            return;
    if (room->guest_count == room->guest_capacity) {
        const size_t capacity = room->guest_capacity ? 2 * room->guest_capacity : GUESTS_FIRST;
        const struct as_pod_class **guests = as_arena_alloc(arena, capacity, sizeof(*guests));

        if (room->guest_count)
            memcpy(guests, room->guests, room->guest_count * sizeof(*guests));
        room->guests = guests;
        room->guest_capacity = capacity;
    }
    room->guests[room->guest_count++] = pod_class;
}

void as_node_room_take(struct as_node_room *room, const struct as_res_names *names,
                       const struct as_pod_class *pod_class, uint64_t count, struct as_arena *arena)
{
    for (size_t i = 0; i < names->count; i++)
        room->left.amount[i] =
            as_amount_add(room->left.amount[i], -pod_class->requests.amount[i], count);
    if (count > 0 && (pod_class->port_count > 0 || pod_class->loner != 0))
        add_guest(room, pod_class, arena);
}
