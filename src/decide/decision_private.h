/*
 * What the modules of decision documents share: decision.c, decision_action.c,
 * decision_snapshot.c. While a document is read, the context of its rows is the snapshot
 * (struct as_snapshot), or NULL.
 */
#ifndef ALERTSCALER_SRC_DECIDE_DECISION_PRIVATE_H
#define ALERTSCALER_SRC_DECIDE_DECISION_PRIVATE_H

#include <alertscaler/decide/decide.h>
#include <alertscaler/doc/rows.h>

/* A function for `get_word` of a row, from words. */
#define DECISION_WORDS(NAME, ...)                                                                  \
    static const char *NAME(unsigned value)                                                        \
    {                                                                                              \
        static const char *const words[] = {__VA_ARGS__};                                          \
        return value < AS_ARRAY_SIZE(words) ? words[value] : NULL;                                 \
    }
/* `action` of a proposal (struct as_action): decision_action.c. */
extern const struct as_row_type as_row_action;
#define AS_ROW_TYPE_action struct as_action

/* Snapshots of pools: decision_snapshot.c. */
#define DECISION_GROUPS_MAX 10000 /* of a cluster */
#define DECISION_NODES_MAX  (2 * AS_SNAPSHOT_NODES_MAX + AS_SNAPSHOT_DRAINED_MAX)

extern const struct as_row as_decision_pool_rows[];      /* struct as_pool_config */
extern const struct as_row as_decision_asked_rows[];     /* struct as_asked */
extern const struct as_row as_decision_budget_rows[];    /* struct as_snapshot_budget */
extern const struct as_row as_decision_group_rows[];     /* struct as_snapshot_group */
extern const struct as_row as_decision_kept_rows[];      /* uint64_t[AS_STAY_COUNT] */
extern const struct as_row as_decision_leaving_rows[];   /* struct as_snapshot */
extern const struct as_row as_decision_node_rows[];      /* struct as_snapshot_node */
extern const struct as_row as_decision_pod_class_rows[]; /* struct as_snapshot_pod_class */
extern const struct as_row as_decision_unneeded_rows[];  /* struct as_unneeded */
extern const struct as_pool_config as_decision_pool;     /* without members */
extern const struct as_snapshot_group as_decision_group;
extern const struct as_snapshot_node as_decision_node;
extern const struct as_snapshot_pod_class as_decision_pod_class;

/* [class, count] each: const struct as_snapshot_pods *, with its count. */
extern const struct as_row_type as_row_pods;
#define AS_ROW_TYPE_pods const struct as_snapshot_pods *
extern const struct as_row_type as_row_resource_names; /* struct as_res_names */
#define AS_ROW_TYPE_resource_names struct as_res_names

/* Sorts the nodes, and refuses two of one name. */
void decision_sort_nodes(struct as_reader *observed, struct as_snapshot *snapshot);
/* Likewise what is remembered of nodes. */
void decision_sort_unneeded(struct as_reader *history, struct as_snapshot *snapshot);

#endif
