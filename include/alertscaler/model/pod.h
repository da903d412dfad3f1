/*
 * A pod's state besides its resources, in Kubernetes' words.
 */
#ifndef ALERTSCALER_MODEL_POD_H
#define ALERTSCALER_MODEL_POD_H

enum as_pod_phase {
    AS_POD_PENDING,
    AS_POD_RUNNING,
    AS_POD_SUCCEEDED,
    AS_POD_FAILED,
    AS_POD_UNKNOWN
};

enum as_tristate { AS_FALSE, AS_TRUE, AS_UNKNOWN };

#endif
