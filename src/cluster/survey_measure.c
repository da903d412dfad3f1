/*
 * Bytes of a survey in a decision document: see the header. Each part counts the names of its
 * fields, and the most that its numbers may take.
 */
#include "survey_measure.h"

#define AMOUNT_BYTES      21
#define SHAPE_BYTES       284
#define REQUIREMENT_BYTES 64
#define TOLERATION_BYTES  104
#define PORT_BYTES        48
#define BUDGET_BYTES      11
#define TAINT_BYTES       64
#define NODE_BYTES        216
#define GROUP_BYTES       940
#define ESCAPED_BYTES     6 /* \u0001 */

size_t survey_measure_text(const char *text)
{
    size_t size = 3; /* quotes and a comma */

    for (; text && *text; text++)
        size += *text >= ' ' && *text != '"' && *text != '\\' ? 1 : ESCAPED_BYTES;
    return size;
}

size_t survey_measure_labels(const struct as_labels *labels)
{
    size_t size = 0;

    for (uint32_t i = 0; labels && i < labels->count; i++)
        size += survey_measure_text(labels->items[i].name) +
                survey_measure_text(labels->items[i].value);
    return size;
}

static size_t measure_taints(const struct as_taint *taints, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size +=
            TAINT_BYTES + survey_measure_text(taints[i].key) + survey_measure_text(taints[i].value);
    return size;
}

static size_t measure_term(const struct as_node_term *term)
{
    size_t size = 3;

    for (size_t i = 0; i < term->count; i++) {
        const struct as_node_requirement *requirement = &term->requirements[i];

        size += REQUIREMENT_BYTES + survey_measure_text(requirement->key);
        for (size_t k = 0; k < requirement->value_count; k++)
            size += survey_measure_text(requirement->values[k]);
    }
    return size;
}

static size_t measure_ports(const struct as_host_port *ports, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size +=
            PORT_BYTES + survey_measure_text(ports[i].ip) + survey_measure_text(ports[i].protocol);
    return size;
}

size_t survey_measure_shape(const struct as_survey_shape *shape, const struct as_res_names *names)
{
    const struct as_pod_shape *pod = &shape->pod;
    size_t size = SHAPE_BYTES + names->count * AMOUNT_BYTES + shape->budget_count * BUDGET_BYTES;

    size += survey_measure_labels(pod->selector) + survey_measure_text(pod->zone);
    for (size_t i = 0; i < pod->term_count; i++)
        size += measure_term(&pod->terms[i]);
    for (size_t i = 0; i < pod->toleration_count; i++)
        size += TOLERATION_BYTES + survey_measure_text(pod->tolerations[i].key) +
                survey_measure_text(pod->tolerations[i].value);
    return size + measure_ports(pod->ports, pod->port_count);
}

size_t survey_measure_group(const struct as_survey_group *group, const struct as_res_names *names)
{
    const struct as_node_shape *shape = &group->template_.shape;

    return GROUP_BYTES + survey_measure_text(group->name) + survey_measure_text(group->message) +
           survey_measure_text(group->template_.node) + survey_measure_labels(shape->labels) +
           measure_taints(shape->taints, shape->taint_count) + 3 * names->count * AMOUNT_BYTES +
           measure_ports(group->template_.ports, group->template_.port_count);
}

size_t survey_measure_node(const struct as_node_shape *node, const struct as_res_names *names)
{
    return NODE_BYTES + survey_measure_text(node->name) + survey_measure_labels(node->labels) +
           measure_taints(node->taints, node->taint_count) + 3 * names->count * AMOUNT_BYTES;
}
