/*
 * The parts of a pod's shape as bytes: equal parts give equal bytes, on every machine. Numbers are
 * 8 bytes, the lowest first. Lists stand behind their lengths, texts with their NULs, so that
 * different parts have different bytes.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_SHAPE_KEY_H
#define ALERTSCALER_SRC_CLUSTER_SHAPE_KEY_H

#include <alertscaler/base/buf.h>
#include <alertscaler/cluster/cluster.h>

void shape_key_add_number(struct as_buf *key, uint64_t number);
void shape_key_add_text(struct as_buf *key, const char *text); /* NULL differs from "" */
void shape_key_add_affinity(struct as_buf *key, const struct as_pod_shape *shape);
void shape_key_add_tolerations(struct as_buf *key, const struct as_pod_shape *shape);
void shape_key_add_ports(struct as_buf *key, const struct as_pod_shape *shape);

#endif
