/*
 * Cluster API: what reading a group and changing it have in common.
 */
#ifndef ALERTSCALER_SRC_CLOUD_CLUSTERAPI_H
#define ALERTSCALER_SRC_CLOUD_CLUSTERAPI_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_group.h>

#define CLUSTERAPI_GROUP "cluster.x-k8s.io"
#define CLUSTERAPI_MARK  CLUSTERAPI_GROUP "/delete-machine"

struct clusterapi_state { /* of a talk; texts are its memory */
    const struct clusterapi_kind *kind;
    const char *namespace_, *name;
    const char *base;   /* path of the namespace's objects */
    const char *object; /* path of the group's */
    const char *selector;
    const char *resource_version;
    const char *machine_set;   /* of the Machines seen; NULL: none seen yet */
    const char **provider_ids; /* of a MachinePool; NULL at the end */
    bool is_nameless;          /* it has instances but no Machines */
    /* for a change: */
    const char *const *names; /* of the Machines to remove */
    size_t name_count, marked;
    enum as_talk_fault failure; /* reported when the marks are removed */
    const char *failure_text;
    int failure_status;
    int64_t retry_after_us;
    bool is_ambiguous;
};

struct clusterapi_state *clusterapi_get_state(struct as_talk *talk) AS_MUST_USE;

/* Whether the answer is good; if not, the talk has failed with the API server's words. */
bool clusterapi_is_good(struct as_talk *talk) AS_MUST_USE;

/* The verbs; called when the group has been read. */
void clusterapi_grow(struct as_talk *talk);
void clusterapi_remove(struct as_talk *talk);
void clusterapi_take_back(struct as_talk *talk);

#endif
