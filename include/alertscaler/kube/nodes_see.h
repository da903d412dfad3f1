/*
 * What the source `nodes` sees of a target, out of the facts about its cluster. The last template
 * of each node group is remembered, of at most 1,000 groups. The engine stores them, and gives them
 * back with an observation.
 */
#ifndef ALERTSCALER_KUBE_NODES_SEE_H
#define ALERTSCALER_KUBE_NODES_SEE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/decide/observation.h>

struct as_nodes_seer; /* of one cluster */

struct as_nodes_seer *as_nodes_seer_new(void) AS_MUST_USE;
struct as_nodes_seer *as_nodes_seer_free(struct as_nodes_seer *seer);

/* Takes what the engine knows of the cluster's groups, before a group is seen: it may come from a
 * former process. */
void as_nodes_seer_restore(struct as_nodes_seer *seer, const struct as_group_template *templates,
                           size_t count);

/* The last template of a group (its id), whose texts are memory of the arena. False: none. */
bool as_nodes_seer_get_last(struct as_nodes_seer *seer, const char *id,
                            const struct as_res_names *names, struct as_arena *arena,
                            struct as_node_template *template_out);
/* Copies a template that was made of a node. Returns its text, for as_nodes_seen, which is good
 * until the next call. */
const char *as_nodes_seer_remember(struct as_nodes_seer *seer, const char *id,
                                   const struct as_node_template *template_,
                                   const struct as_res_names *names);

struct as_nodes_see_request {
    const struct as_cluster *cluster;
    const char *group;        /* id of a node group; NULL: all nodes of the cluster */
    const char *const *names; /* of the group's nodes */
    size_t name_count;
    int32_t coming;                       /* nodes of the group on their way */
    const struct as_nodes_config *config; /* of the group; NULL without one */
    as_wall_time now;
    struct as_arena *texts; /* of the error and of the template */
};

/* Other texts are those of the cluster. If the cluster or the group is unwell (node_health.h),
 * the error says so. */
void as_nodes_see(struct as_nodes_seer *seer, const struct as_nodes_see_request *request,
                  struct as_nodes_seen *seen_out);

#endif
