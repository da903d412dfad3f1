/*
 * How what is sized of an object (decide/sized.h) is read and set through the API: one row each.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_SIZING_H
#define ALERTSCALER_SRC_KUBE_KUBE_SIZING_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/kube/kube_documents.h>

struct as_kube_change { /* all borrowed */
    const struct as_target_ref *ref;
    const char *namespace_;    /* "": the object is in none */
    const char *scale_version; /* apiVersion of Scale objects */
    const struct as_scale_request *wanted;
    const char *object; /* as it is now; NULL: it was not read */
    size_t object_size;
};

struct as_kube_sizing {
    enum as_sized_what what;
    const char *title;                         /* in errors */
    const char *subresource;                   /* "/scale"; "": the object itself */
    const char *query;                         /* of a change; with its question mark */
    const char *get_operation, *set_operation; /* for metrics */
    const char *set_method;
    const char *set_type; /* of the body; NULL: application/json */
    size_t max_response;
    bool reads_first; /* a change is made of the object as it is now */
    bool checks_test; /* a 422 without causes may be a failed test: somebody was faster */
    int (*read)(const struct as_target_ref *ref, const char *json, size_t size,
                struct as_kube_scale *scale_out, struct as_error *error);
    /* Appends the body of a change. 0, or a negative errno with an error. */
    int (*write)(const struct as_kube_change *change, struct as_buf *body, struct as_error *error);
};

const struct as_kube_sizing *as_kube_sizing_find(enum as_sized_what what);

#endif
