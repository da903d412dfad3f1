/*
 * Instances of node groups that are seen to be no nodes, and since when. In memory: a new process
 * begins anew. A row of looks is broken by a gap of AS_NODELESS_GAP_US, by another cluster, and by
 * a node that may be the instance. So neither a node that was deleted lately nor a wrong cluster
 * makes an instance that serves look as if it had never come.
 */
#ifndef ALERTSCALER_SRC_CLOUD_NODELESS_H
#define ALERTSCALER_SRC_CLOUD_NODELESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

#include <alertscaler/kube/nodes.h>

#define AS_NODELESS_GAP_US     (5 * AS_US_PER_MIN)
#define AS_NODELESS_GROUPS_MAX 1000 /* the one that was looked at longest ago is forgotten */

struct as_nodeless; /* of one account */

struct as_nodeless *as_nodeless_new(void) AS_MUST_USE;
struct as_nodeless *as_nodeless_free(struct as_nodeless *nodeless);

/* A group (key of its target) and the nodes of the cluster were just read. */
void as_nodeless_see(struct as_nodeless *nodeless, const char *group, const char *cluster,
                     const struct as_instance_node *nodes, size_t count, as_mono_time now);

/* Whether an instance of the group was a node of this cluster at any look. */
bool as_nodeless_had_node(const struct as_nodeless *nodeless, const char *group) AS_MUST_USE;

/* Whether the instance was seen to be no node for `us`, as of the last look, and another instance
 * of the group was a node of this cluster. */
bool as_nodeless_has(const struct as_nodeless *nodeless, const char *group, const char *id,
                     int64_t us) AS_MUST_USE;

#endif
