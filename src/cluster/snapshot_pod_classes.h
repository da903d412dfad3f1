/*
 * Pod classes: their key as bytes, and the table of pod classes of a snapshot. The key decides
 * whether two pods are equal for placing and evicting.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_SNAPSHOT_POD_CLASSES_H
#define ALERTSCALER_SRC_CLUSTER_SNAPSHOT_POD_CLASSES_H

#include <alertscaler/base/arena.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/snapshot.h>

/*
 * The parts of a pod class as bytes: equal parts give equal bytes, on every machine. Numbers are
 * 8 bytes, the lowest first. Lists stand behind their lengths, texts with their NULs, so that
 * different parts have different bytes.
 */

void class_key_add_number(struct as_buf *key, uint64_t number);
void class_key_add_text(struct as_buf *key, const char *text); /* NULL differs from "" */
void class_key_add_affinity(struct as_buf *key, const struct as_pod_class *pod_class);
void class_key_add_tolerations(struct as_buf *key, const struct as_pod_class *pod_class);
void class_key_add_ports(struct as_buf *key, const struct as_pod_class *pod_class);

/*
 * Pod classes of a snapshot: pod classes by what they say, with the budgets that select them
 * instead of labels. Pod classes that differ in labels or namespace only are one.
 */

#define SNAPSHOT_POD_CLASS_BYTES_MAX                                                               \
    ((size_t)16 << 10) /* of its key; larger ones are no part of it                                \
                        */
#define SNAPSHOT_NO_NUMBER UINT32_MAX

struct snapshot_pod_class {
    struct as_snapshot_pod_class
        pod_class;                   /* its budgets: indices into snapshot_pod_classes.budgets */
    struct snapshot_pod_class *next; /* in the order in which they were found */
    const char *key;                 /* NULL: too large */
    size_t key_size;
    uint32_t number; /* in the snapshot */
    uint64_t moving; /* pods of leaving nodes */
    uint64_t waiting, left;
    as_wall_time oldest; /* that waits */
    uint32_t stamp;      /* node + 1 that last listed it, and where in its list */
    size_t place;
    bool is_compared, is_in_conflict; /* with some pod class that moves: ports, anti-affinity */
};

struct snapshot_slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

struct snapshot_table { /* open addressing; at most half of the slots are in use */
    struct snapshot_slot *slots;
    size_t slot_count, count;
};

struct snapshot_pod_classes {
    const struct as_cluster *cluster;
    struct as_arena *arena;
    const struct as_budget_fact **budgets; /* ascending by namespace and name */
    struct snapshot_table by_source, by_key;
    struct snapshot_pod_class *first, **last;
    size_t count;
    uint64_t
        cost; /* fits that were spent on new pod classes; the caller takes them off its slice */
};

void snapshot_pod_classes_init(struct snapshot_pod_classes *pod_classes,
                               const struct as_cluster *cluster, struct as_arena *arena);
/* The pod class of such a pod that may only run in this zone; NULL: anywhere. */
struct snapshot_pod_class *snapshot_pod_classes_take(struct snapshot_pod_classes *pod_classes,
                                                     const struct as_pod_class *source,
                                                     const char *zone);

/* FNV-1a 64 over a key. */
uint64_t snapshot_digest(const void *key, size_t size);

#endif
