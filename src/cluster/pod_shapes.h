/*
 * Shapes of pods, and sets of labels, which shapes share. Each is kept once: equal pods hold the
 * same shape. A shape lives as long as a pod holds it.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_POD_SHAPES_H
#define ALERTSCALER_SRC_CLUSTER_POD_SHAPES_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/cluster/cluster.h>

struct pod_shapes {
    struct shape_entry *shapes;
    struct label_entry *labels;
    struct as_buf key; /* of the shape in hand */
    size_t bytes;      /* of memory, without the tables */
};

#define POD_SHAPES_INIT ((struct pod_shapes){.key = AS_BUF_INIT_OPEN((size_t)64 << 20)})

void pod_shapes_deinit(struct pod_shapes *shapes); /* of which nothing is taken */
size_t pod_shapes_measure(const struct pod_shapes *shapes);

/* The one that equals `shape`, which is borrowed; one more holds it. */
const struct as_pod_shape *pod_shapes_take(struct pod_shapes *shapes,
                                           const struct as_pod_shape *shape) AS_MUST_USE;
void pod_shapes_release(struct pod_shapes *shapes, const struct as_pod_shape *shape);

#endif
