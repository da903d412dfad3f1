/*
 * The ConfigMaps of an API server, in the fake world: create, get, replace at a version, list page
 * by page, with Kubernetes' limits on sizes. Faults as a client sees them: an answer lost before or
 * after the request was carried out, and refusals.
 */
#ifndef ALERTSCALER_TESTS_FAKES_KUBE_API_H
#define ALERTSCALER_TESTS_FAKES_KUBE_API_H

#include <stdint.h>

#include <alertscaler/kube/env.h>
#include <alertscaler/port/store.h>

#include "world.h"

enum kube_api_fault {
    KUBE_API_NONE,
    KUBE_API_LOST_BEFORE, /* time-out, and nothing was done */
    KUBE_API_LOST_AFTER,  /* time-out, and it was done */
    KUBE_API_CUT_AFTER,   /* connection cut, and it was done */
    KUBE_API_UNREACHABLE,
    KUBE_API_ERROR,     /* 500, nothing done */
    KUBE_API_THROTTLED, /* 429 with Retry-After: 1 */
    KUBE_API_FORBIDDEN, /* 403 */
    KUBE_API_FAULTS
};

struct kube_api_object;

struct kube_api {
    struct world world;
    struct as_access_env env;
    struct kube_api_object *objects; /* by name */
    uint64_t version;                /* of the last change */
    uint64_t requests, writes;
    bool has_no_namespace;
    size_t largest; /* bytes of data of the largest object that was ever there */
    /* Asked for each request, with its number from 0; NULL: no faults. */
    enum kube_api_fault (*fault)(void *context, uint64_t number, const char *method,
                                 const char *name);
    void *fault_context;
    const struct as_store_deadline *deadline; /* of the stores that are opened; or NULL */
    char kubeconfig[64];
};

void kube_api_init(struct kube_api *api);
void kube_api_deinit(struct kube_api *api);

/* A store of its own on it. */
int kube_api_open(struct kube_api *api, const char *holder, struct as_store **store_out,
                  struct as_error *error);

/* Somebody's hands on an object: a new version with the same content; gone; a text of it in
 * another's place ("": the item is gone). */
void kube_api_touch(struct kube_api *api, const char *name);
void kube_api_delete(struct kube_api *api, const char *name);
void kube_api_set(struct kube_api *api, const char *name, const char *key, const char *text);
size_t kube_api_count(const struct kube_api *api);

/* The bytes of all objects: keys and texts. */
size_t kube_api_get_size(const struct kube_api *api);

/* NULL where there is none; borrowed. */
const char *kube_api_get(const struct kube_api *api, const char *name, const char *key);

#endif
