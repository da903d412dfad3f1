/*
 * What was seen of the nodes behind a target, as the source `nodes` reads it: of a node group its
 * own nodes, of any other target those of its cluster. A node is open when it is neither cordoned
 * nor leaving, ready or not.
 */
#ifndef ALERTSCALER_CLUSTER_NODES_SEEN_H
#define ALERTSCALER_CLUSTER_NODES_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/model/action.h>

/* What of them is the value of a rule. X(enumerator, word) */
#define AS_NODES_WORDS(X)                                                                          \
    X(AS_NODES_UTILIZATION, "utilization")                                                         \
    X(AS_NODES_COUNT, "count")                                                                     \
    X(AS_NODES_CORES, "cores")

#define AS_NODES_ENUM(enumerator, word) enumerator,
enum as_nodes_word { AS_NODES_NONE, AS_NODES_WORDS(AS_NODES_ENUM) AS_NODES_WORD_COUNT };
extern const char *const as_nodes_words[]; /* from AS_NODES_UTILIZATION on; a NULL at the end */
const char *as_nodes_word_get_text(enum as_nodes_word word); /* NONE: NULL */

/* Utilization where something is asked for, and no node is known that could be there for it. */
#define AS_NODES_UTILIZATION_MAX 1000000

/* Bytes of a template's text. A longer one is not kept. */
#define AS_NODE_TEMPLATE_TEXT_MAX 16384

struct as_nodes_seen {
    const char *error; /* why nothing is known, in a user's words; NULL: all below is */
    int64_t open;      /* open nodes */
    /* In millicores and bytes: what their pods ask for, with the pending ones that select them; and
     * what the open nodes have, or where none is open one new node (is_template). */
    int64_t requests[AS_RESOURCE_COUNT], allocatable[AS_RESOURCE_COUNT];
    bool is_template;
    /* Of a node group without an open node, else 0: pods that wait and that a new node would take
     * (without a template: that no other group's template selects); and nodes on their way. */
    int64_t waiting, coming;
    const char *lacking[AS_RESOURCE_COUNT]; /* the first open node whose allocatable is missing or
                                               0; NULL: none */
    /* Of a node group whose template (node_template.h) was seen on a node: its text, for the state.
     * "": too long to be kept. NULL: it was not seen now; the last one counts. */
    const char *template_;
};

/* Whether the value would be made up: the utilization without an open node. From v: 3 of the
 * document on, such a value is not used: the rule proposes one node for pods that wait. */
bool as_nodes_seen_is_made_up(const struct as_nodes_seen *seen, enum as_nodes_word word);

/* 0; -ENODATA with an error that says why there is no value. Without an open node the utilization
 * is that of one new node; without a template it is AS_NODES_UTILIZATION_MAX where anything is
 * asked for, else 0. */
int as_nodes_seen_get(const struct as_nodes_seen *seen, enum as_nodes_word word, double *value_out,
                      struct as_error *error) AS_MUST_USE;

#endif
