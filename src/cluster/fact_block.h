/*
 * Copies what facts have into one block each. The same functions measure and copy: with `base` NULL
 * they only count, and return NULL.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_FACT_BLOCK_H
#define ALERTSCALER_SRC_CLUSTER_FACT_BLOCK_H

#include <stddef.h>

#include <alertscaler/cluster/cluster.h>

struct fact_block {
    char *base;
    size_t used;
};

void *fact_block_take(struct fact_block *block, size_t count,
                      size_t size);                                      /* aligned for pointers */
const char *fact_block_text(struct fact_block *block, const char *text); /* NULL stays NULL */
const struct as_taint *fact_block_taints(struct fact_block *block, const struct as_taint *taints,
                                         size_t count);
const struct as_toleration *fact_block_tolerations(struct fact_block *block,
                                                   const struct as_toleration *tolerations,
                                                   size_t count);
const struct as_host_port *fact_block_ports(struct fact_block *block,
                                            const struct as_host_port *ports, size_t count);
const struct as_node_requirement *fact_block_requirements(
    struct fact_block *block, const struct as_node_requirement *requirements, size_t count);
const struct as_node_term *fact_block_terms(struct fact_block *block,
                                            const struct as_node_term *terms, size_t count);

#endif
