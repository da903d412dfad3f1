/*
 * Copies what facts have into one block each. The same functions measure and copy: with `base` NULL
 * they only count, and return NULL.
 */
#ifndef ALERTSCALER_SRC_CORE_NODES_PACK_H
#define ALERTSCALER_SRC_CORE_NODES_PACK_H

#include <stddef.h>

#include <alertscaler/core/cluster.h>

struct pack {
    char *base;
    size_t used;
};

void *pack_take(struct pack *pack, size_t count, size_t size); /* aligned for pointers */
const char *pack_text(struct pack *pack, const char *text);    /* NULL stays NULL */
const struct as_taint *pack_taints(struct pack *pack, const struct as_taint *taints, size_t count);
const struct as_toleration *pack_tolerations(struct pack *pack,
                                             const struct as_toleration *tolerations, size_t count);
const struct as_host_port *pack_ports(struct pack *pack, const struct as_host_port *ports,
                                      size_t count);
const struct as_node_requirement *pack_requirements(struct pack *pack,
                                                    const struct as_node_requirement *requirements,
                                                    size_t count);
const struct as_node_term *pack_terms(struct pack *pack, const struct as_node_term *terms,
                                      size_t count);

#endif
