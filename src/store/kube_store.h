/*
 * The parts of the store in an API server: what is open, and how the state is taken over.
 */
#ifndef ALERTSCALER_SRC_STORE_KUBE_STORE_H
#define ALERTSCALER_SRC_STORE_KUBE_STORE_H

#include <stdbool.h>

#include <alertscaler/port/store.h>
#include <alertscaler/store/kubernetes.h>
#include <alertscaler/store/limits.h>

#include "kube_link.h"
#include "kube_table.h"

struct kube_store {
    struct as_store port;
    struct as_store_kubernetes_config config;
    struct kube_link link;
    struct kube_table table;
    struct as_kube_state_head head; /* as it was written last; its journal is `tail` */
    struct as_buf tail;
    struct {
        char version[AS_KUBE_VERSION_SIZE]; /* "": there is no such object yet */
    } slots[AS_KUBE_STATE_SLOTS_MAX];
    int failed; /* 0, or the negative errno of the commit that failed */
    bool cannot_tidy;
    as_mono_time tidy_at; /* not before, after a failure */
};

/* Writes the head, with the journal in it, under a new name of the write; on success it is
 * `store->head`. The tail is the caller's. */
int kube_store_write_head(struct kube_store *store, const struct as_kube_state_head *head,
                          struct as_error *error) AS_MUST_USE;

/* Reads all, and takes it over. */
int kube_store_take_over(struct kube_store *store, struct as_error *error) AS_MUST_USE;

#endif
