/*
 * A store's access to its objects: requests that block until they are answered, and writes whose
 * result is certain.
 *
 * A write whose answer was lost may have been carried out. So each write has a unique name, in the
 * item "write"; reading the object back tells whether the write is there.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_LINK_H
#define ALERTSCALER_SRC_KUBE_KUBE_LINK_H

#include <alertscaler/base/buf.h>
#include <alertscaler/base/random.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_store.h>

#include "kube_config_map.h"
#include "kube_state.h"

struct kube_link {
    const struct as_access_env *env;
    void (*turn)(void *context);
    void *context;
    const struct as_store_patience *patience; /* or NULL */
    char *namespace_;
    struct as_kube_client client;
    struct as_random random;
    char run[20];                              /* part of the names of writes */
    uint64_t writes;                           /* how many, for their names */
    char head_write[AS_KUBE_STATE_WRITE_SIZE]; /* the name of our last write of the head */
    char head_version[AS_KUBE_VERSION_SIZE];   /* and its version; "": not written yet */
    struct as_buf body;                        /* buffer for a request */
};

/* The caller initialises the client. */
void kube_link_init(struct kube_link *link, const struct as_store_kubernetes_config *config);
void kube_link_deinit(struct kube_link *link);

/* A name that no write has had before. */
void kube_link_name_write(struct kube_link *link, char name_out[AS_KUBE_STATE_WRITE_SIZE]);

/*
 * Replaces an object of that version, or creates it if the version is "". `items` must have the
 * item "write". 0, and *version is the new version; or a negative errno.
 *
 * The head: -ESTALE if another holder has written it. Other objects: the holder of the head is
 * right, so a foreign content is replaced, or -ESTALE. `tries_once`: a failure that could be tried
 * again is returned at once.
 */
struct kube_write {
    const char *name;
    const struct as_kube_config_item *items;
    size_t count;
    bool is_head, tries_once;
};

int kube_link_write(struct kube_link *link, const struct kube_write *write,
                    char version[AS_KUBE_VERSION_SIZE], struct as_error *error) AS_MUST_USE;

/* Reads all objects of the state, with `use` for each. `begin` is called before the first, and
 * again if the list had to be restarted. */
struct kube_reader {
    void (*begin)(void *context);
    as_kube_config_map_fn *use;
    void *context;
};

int kube_link_read(struct kube_link *link, const struct kube_reader *reader,
                   struct as_error *error) AS_MUST_USE;

#endif
