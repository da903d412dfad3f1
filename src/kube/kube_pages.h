/*
 * A complete list from a cluster's API server, read page by page, as of one moment: everything, or
 * a failure.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_PAGES_H
#define ALERTSCALER_SRC_KUBE_KUBE_PAGES_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/kube_client.h>

#include <alertscaler/kube/target_outcome.h>

struct as_kube_pages;

struct as_kube_pages_spec { /* texts but `path` and those of the flow: static memory */
    const char *path;       /* with its selectors, copied; NULL: see `trouble` */
    struct as_flow flow;    /* copied */
    const char *trouble;
    const char *operation; /* for metrics: "list_pods" */
    const char *what;      /* for messages: "list pods" */
    const char *right;     /* missing if the answer is 403: "pods: list" */
    /* Takes a page: 0 with the token of the next page, to be freed, or NULL; else an error that
     * says why. */
    int (*take)(void *context, const char *json, size_t size, char **next_out,
                struct as_error *error);
    void (*clear)(void *context); /* drops what was taken: the list restarts, or has failed */
    /* Called exactly once, in a later turn of the loop, unless cancelled first. */
    void (*done)(void *context, const struct as_outcome *outcome);
    void *context;
};

struct as_kube_pages *as_kube_pages_start(struct as_kube_client *client,
                                          const struct as_kube_pages_spec *spec) AS_MUST_USE;
void as_kube_pages_cancel(struct as_kube_pages *pages);

#endif
