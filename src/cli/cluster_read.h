/*
 * Reads of a Kubernetes API server by a command: whole lists and single objects, one after the
 * other, with kubectl's conventions for the kubeconfig, the context and the namespace.
 */
#ifndef ALERTSCALER_SRC_CLI_CLUSTER_READ_H
#define ALERTSCALER_SRC_CLI_CLUSTER_READ_H

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/kube_access.h>

#include "cli.h"

/* For the table of a command that reads objects of a cluster. */
#define CLUSTER_READ_OPTIONS(WHAT)                                                                 \
    {.name = "from-cluster", .help = (WHAT)},                                                      \
        {.name = "all-namespaces", .letter = 'A', .help = "with --from-cluster: all namespaces"},  \
        {.name = "kubeconfig",                                                                     \
         .value = "FILE",                                                                          \
         .help = "with --from-cluster: the kubeconfig file, as for kubectl"},                      \
    {                                                                                              \
        .name = "context", .value = "NAME",                                                        \
        .help = "with --from-cluster: the context of the kubeconfig"                               \
    }

/* Whether the options of this table fit together; else prints why not, and returns
 * AS_EXIT_USAGE. */
int cluster_read_check_options(const struct as_args *args) AS_MUST_USE;

struct cluster_read;

/*
 * Reads kubeconfig and options. `fallback` counts if the options name neither file nor context. 0;
 * or a negative errno with an error. Sends no request.
 */
int cluster_read_open(const struct as_args *args, const struct as_kube_access_config *fallback,
                      struct cluster_read **read_out, struct as_error *error) AS_MUST_USE;
struct cluster_read *cluster_read_close(struct cluster_read *read);

/* The namespace that is read: that of --namespace, else the context's; NULL: all. */
const char *cluster_read_get_namespace(const struct cluster_read *read);

struct cluster_resource {
    const char *version; /* "autoscaling/v2" */
    const char *plural;
    const char *kind;
};

enum cluster_outcome {
    CLUSTER_READ_OK,
    CLUSTER_READ_MISSING,  /* 404: the API server does not have the resource, or the object */
    CLUSTER_READ_FORBIDDEN /* 403 */
};

/* All objects of the resource in the namespace, each with its `apiVersion` and `kind`. An outcome,
 * all but OK with an error; or a negative errno with an error. */
int cluster_read_list(struct cluster_read *read, const struct cluster_resource *resource,
                      json_t **items_out, struct as_error *error) AS_MUST_USE;

/* One object that has no namespace. As above. */
int cluster_read_object(struct cluster_read *read, const struct cluster_resource *resource,
                        const char *name, json_t **object_out, struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct cluster_read *, cluster_read_close)

#endif
