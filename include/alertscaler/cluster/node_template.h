/*
 * What a new node of a group would be like (docs/nodes.md), and its text for the state. Pure, and
 * equal inputs give equal templates.
 */
#ifndef ALERTSCALER_CLUSTER_NODE_TEMPLATE_H
#define ALERTSCALER_CLUSTER_NODE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_fit.h>

enum as_node_template_source {
    AS_NODE_TEMPLATE_NONE,       /* no template: the group is closed for growth */
    AS_NODE_TEMPLATE_NODE,       /* of a node of the group */
    AS_NODE_TEMPLATE_LAST,       /* of an earlier node, as stored */
    AS_NODE_TEMPLATE_CONFIGURED, /* `nodes.template` */
    AS_NODE_TEMPLATE_SOURCE_COUNT
};
const char *as_node_template_source_get_word(enum as_node_template_source source); /* "none", ... */

struct as_node_template {
    enum as_node_template_source source;
    const char *node;           /* of source NODE: its name; else NULL */
    struct as_node_shape shape; /* name NULL; allocatable: what DaemonSet and mirror pods leave, at
                                   least 0; taints ascending by key, value, effect */
    struct as_resources capacity, allocatable; /* of the node as a whole */
    const struct as_host_port *ports; /* of DaemonSet and mirror pods, each once; ascending */
    size_t port_count;
};

struct as_node_amount {
    const char *name; /* of an extended resource or of huge pages: "nvidia.com/gpu" */
    int64_t amount;
};

/* `nodes.template` as written: what is left on a new node after its DaemonSets. */
struct as_node_template_config {
    int64_t amount[AS_RES_NAMED]; /* as in as_resources; rounded down */
    struct as_node_amount named[AS_RES_MAX - AS_RES_NAMED];
    size_t named_count;
    const struct as_labels *labels;
    const struct as_taint *taints;
    size_t taint_count;
    struct as_arena arena; /* has all of it; empty where it is borrowed */
};

/* NULL stays NULL. */
struct as_node_template_config *as_node_template_config_copy(
    const struct as_node_template_config *config) AS_MUST_USE;
struct as_node_template_config *as_node_template_config_free(
    struct as_node_template_config *config);

/* A node as configured, of source CONFIGURED. `names` are those of the cluster: what it does not
 * know is left out. As nothing else is known, capacity and allocatable are what is left. Borrows
 * labels and texts; the list of taints is memory of the arena. */
void as_node_template_init_configured(struct as_node_template *template_out,
                                      const struct as_node_template_config *config,
                                      const struct as_res_names *names, struct as_arena *arena);

/* A node must have been Ready for this long to be a template. */
#define AS_NODE_TEMPLATE_READY_US AS_US_PER_MIN

struct as_node_template_request {
    const struct as_cluster *cluster;
    const struct as_node_pods *pods; /* of the cluster */
    const uint32_t *nodes;           /* indices of the group's nodes */
    size_t node_count;
    const char *const *startup_taints; /* keys */
    size_t startup_taint_count;
    const struct as_node_template *last, *configured; /* NULL: none */
    as_wall_time now;
};

/*
 * The template is made of the newest node that is open, has been Ready for a minute, has no startup
 * taint, and has allocatable cpu and memory. Of nodes of the same age the first by name counts. A
 * Ready node that does not say since when counts as Ready since it was created. If there is no such
 * node: `last`, else `configured`, else source NONE.
 *
 * The template has the labels that all nodes of the group have with the same value, except the
 * hostname. It lacks taints that come and go with a node's life, and startup taints.
 *
 * Labels and taints are memory of the arena. Texts of taints, `node`, and the labels of `last` and
 * `configured` are borrowed.
 */
void as_node_template_init(struct as_node_template *template_out,
                           const struct as_node_template_request *request, struct as_arena *arena);

/* Whether a node is still starting: it has a taint with one of these keys, or with a prefix that
 * means so to Cluster Autoscaler. */
bool as_node_has_startup_taint(const struct as_node_fact *node, const char *const *keys,
                               size_t key_count) AS_MUST_USE;

/* Whether it has a taint that Kubernetes gives each new node: not-ready, network-unavailable,
 * uninitialized. A node that was Ready once has not-ready again when it is not Ready. */
bool as_node_has_new_node_taint(const struct as_node_fact *node) AS_MUST_USE;

/* Whether two nodes have the same labels, taints and allocatable; names are not compared. `names`
 * holds the resources of both. */
bool as_node_shape_equal(const struct as_node_shape *a, const struct as_node_shape *b,
                         const struct as_res_names *names) AS_MUST_USE;

/*
 * The template of a node group as text, for the state: compact JSON, keys sorted, so that equal
 * templates are equal texts. Amounts as in struct as_resources: millicores, bytes, pieces; those of
 * extended resources under their names, where they are not 0.
 *
 *   {"allocatable":{"cpu":2000,...},"capacity":{...},"free":{...},"labels":{"zone":"a"},
 *    "taints":[{"effect":"NoSchedule","key":"gpu","value":""}]}
 */

const char *as_taint_effect_get_word(unsigned bit); /* NULL: there is no such bit */
/* Types for tables of rows (doc/rows.h): labels as an object of texts, read into the arena; one
 * effect as its word. */
struct as_row_type;
extern const struct as_row_type as_row_label_map;
#define AS_ROW_TYPE_label_map const struct as_labels *
extern const struct as_row_type as_row_taint_effect;
#define AS_ROW_TYPE_taint_effect enum as_taint_effect

/* `names` are those of the template's cluster. */
void as_node_template_encode(const struct as_node_template *template_,
                             const struct as_res_names *names, struct as_buf *out);

/*
 * 0, and a template of source LAST whose texts are memory of the arena; or -EBADMSG with an error.
 * Extended resources that `names` does not have are left out: no pod asks for them.
 */
int as_node_template_decode(const char *text, const struct as_res_names *names,
                            struct as_arena *arena, struct as_node_template *template_out,
                            struct as_error *error) AS_MUST_USE;

#endif
