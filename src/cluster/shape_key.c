/*
 * The parts of a pod's shape as bytes: see the header.
 */
#include "shape_key.h"

#include <endian.h>
#include <string.h>

void shape_key_add_number(struct as_buf *key, uint64_t number)
{
    const uint64_t bytes = htole64(number);

    as_buf_append(key, &bytes, sizeof(bytes));
}

void shape_key_add_text(struct as_buf *key, const char *text)
{
    as_buf_append_char(key, text ? 't' : 'n');
    as_buf_append(key, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_requirement(struct as_buf *key, const struct as_node_requirement *requirement)
{
    shape_key_add_text(key, requirement->key);
    shape_key_add_number(key, requirement->operator_);
    shape_key_add_number(key, requirement->is_field);
    shape_key_add_number(key, requirement->value_count);
    for (size_t i = 0; i < requirement->value_count; i++)
        shape_key_add_text(key, requirement->values[i]);
}

void shape_key_add_affinity(struct as_buf *key, const struct as_pod_shape *shape)
{
    shape_key_add_number(key, shape->has_affinity);
    shape_key_add_number(key, shape->term_count);
    for (size_t i = 0; i < shape->term_count; i++) {
        shape_key_add_number(key, shape->terms[i].count);
        for (size_t k = 0; k < shape->terms[i].count; k++)
            add_requirement(key, &shape->terms[i].requirements[k]);
    }
}

void shape_key_add_tolerations(struct as_buf *key, const struct as_pod_shape *shape)
{
    shape_key_add_number(key, shape->toleration_count);
    for (size_t i = 0; i < shape->toleration_count; i++) {
        shape_key_add_text(key, shape->tolerations[i].key);
        shape_key_add_text(key, shape->tolerations[i].value);
        shape_key_add_number(key, shape->tolerations[i].is_exists);
        shape_key_add_number(key, shape->tolerations[i].effects);
    }
}

void shape_key_add_ports(struct as_buf *key, const struct as_pod_shape *shape)
{
    shape_key_add_number(key, shape->port_count);
    for (size_t i = 0; i < shape->port_count; i++) {
        shape_key_add_text(key, shape->ports[i].ip);
        shape_key_add_text(key, shape->ports[i].protocol);
        shape_key_add_number(key, shape->ports[i].port);
    }
}
