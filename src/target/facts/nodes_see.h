/*
 * What the source `nodes` sees of a target, out of the facts about its cluster. The last template
 * of each node group is remembered as long as the process runs.
 */
#ifndef ALERTSCALER_SRC_TARGET_FACTS_NODES_SEE_H
#define ALERTSCALER_SRC_TARGET_FACTS_NODES_SEE_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/choose.h>
#include <alertscaler/core/nodes/cluster.h>
#include <alertscaler/core/nodes/node_template.h>
#include <alertscaler/core/nodes/nodes_seen.h>

struct as_nodes_seer; /* of one cluster */

struct as_nodes_seer *as_nodes_seer_new(void) AS_MUST_USE;
struct as_nodes_seer *as_nodes_seer_free(struct as_nodes_seer *seer);

/* The last template that was seen of a group (its id); NULL: none. Good until it is remembered
 * anew. */
const struct as_node_template *as_nodes_seer_get_last(struct as_nodes_seer *seer,
                                                      const char *group);
/* Copies it. */
void as_nodes_seer_remember(struct as_nodes_seer *seer, const char *group,
                            const struct as_node_template *template);

struct as_nodes_see_request {
    const struct as_cluster *cluster;
    const char *group;        /* id of a node group; NULL: all nodes of the cluster */
    const char *const *names; /* of the group's nodes */
    size_t name_count;
    const struct as_nodes_config *config; /* of the group */
    as_wall_time now;
};

/* Texts are those of the cluster. */
void as_nodes_see(struct as_nodes_seer *seer, const struct as_nodes_see_request *request,
                  struct as_nodes_seen *seen_out);

#endif
