/*
 * The parts of the store in an API server: the open store, and taking the state over.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_STORE_PRIVATE_H
#define ALERTSCALER_SRC_KUBE_KUBE_STORE_PRIVATE_H

#include <stdbool.h>

#include <alertscaler/kube/kube_store.h>
#include <alertscaler/kube/store_limits.h>
#include <alertscaler/port/store.h>

#include "kube_link.h"
#include "kube_table.h"

struct kube_store {
    struct as_store port;
    struct as_store_kubernetes_config config;
    struct kube_link link;
    struct kube_table table;
    struct as_kube_state_head head; /* as last written; its journal is `tail` */
    struct as_buf tail;
    struct {
        char version[AS_KUBE_VERSION_SIZE]; /* "": the object does not exist yet */
    } slots[AS_KUBE_STATE_SLOTS_MAX];
    int failed; /* 0, or the negative errno of the failed commit */
    bool cannot_tidy;
    as_mono_time tidy_at; /* after a failure: not before */
};

/* Writes the head, with the journal in it, under a new write name; on success it becomes
 * `store->head`. The caller updates the tail. */
int kube_store_write_head(struct kube_store *store, const struct as_kube_state_head *head,
                          struct as_error *error) AS_MUST_USE;

/* Reads the whole state and takes it over. */
int kube_store_take_over(struct kube_store *store, struct as_error *error) AS_MUST_USE;

#endif
