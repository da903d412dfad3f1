/*
 * By which labels of pods budgets select: these are the labels that shapes keep. Others, which may
 * differ from pod to pod, would make a shape of each pod.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_LABEL_KEYS_H
#define ALERTSCALER_SRC_CLUSTER_LABEL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/cluster.h>

struct label_keys {
    char **keys;
    size_t count, capacity;
    size_t bytes; /* of keys */
    struct as_arena scratch;
};

void label_keys_deinit(struct label_keys *keys);
size_t label_keys_measure(const struct label_keys *keys);

/* Whether there was one that is new. */
bool label_keys_add(struct label_keys *keys, const struct as_budget_fact *budget);

/* Those of the labels that have one of the keys; good until the next call. NULL stays NULL. */
const struct as_labels *label_keys_filter(struct label_keys *keys, const struct as_labels *labels);

#endif
