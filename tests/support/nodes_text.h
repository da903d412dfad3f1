/*
 * Nodes and pods as lines of words, for tests of core/nodes and for the scheduler's test.
 *
 *   both      cpu:500 memory:100 disk:5 pods:10 gpu:1   millicores, bytes, pieces; other names are
 *                                                       extended resources
 *             zone=a            label; of a pod its nodeSelector
 *   of nodes  !key=value/N      taint: NoSchedule, P PreferNoSchedule, X NoExecute
 *             cordoned, notready, ours
 *   of pods   ~key=value/NX     toleration; ~key/N Exists; ~/ of every key and effect
 *             ?key:in:a,b&key:exists   a term of its node affinity; in, notin, exists, absent, gt,
 *                               lt; ?key:in: one empty value; ?=metadata.name:in:n1 a field;
 *                               ? a term without requirements; ?? an affinity without terms
 *             @TCP/10.0.0.1/80  host port
 *             #7                loner
 *             %a                the zone of its volume
 *             daemon, mirror; low: of priority -20; never: it never preempts
 *
 * Anything else ends the program. What is read is memory of the arena.
 */
#ifndef ALERTSCALER_TESTS_NODES_TEXT_H
#define ALERTSCALER_TESTS_NODES_TEXT_H

#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_fit.h>

struct nodes_text { /* what the texts of one cluster share */
    struct as_arena arena;
    struct as_res_names names;
};

void nodes_text_init(struct nodes_text *texts);
void nodes_text_deinit(struct nodes_text *texts);

/* Without `pods:` it has room for 110. It is Ready and open, and nothing is known of its age. */
struct as_node_fact nodes_text_read_node(struct nodes_text *texts, const char *name,
                                         const char *text);
const struct as_pod_class *nodes_text_read_pod(struct nodes_text *texts, const char *text);

/* What as_node_admits reads; name NULL: of a new node. */
struct as_node_shape nodes_text_get_shape(const struct as_node_fact *node, const char *name);

#endif
