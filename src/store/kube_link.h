/*
 * The way of a store to its objects: requests that are waited for, and writes that are certain.
 *
 * A write whose answer was lost may have been carried out. Each write carries a name of its own in
 * the item "write"; reading the object back tells whether it is there.
 */
#ifndef ALERTSCALER_SRC_STORE_KUBE_LINK_H
#define ALERTSCALER_SRC_STORE_KUBE_LINK_H

#include <alertscaler/access/kube_client.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/random.h>
#include <alertscaler/store/kubernetes.h>
#include <alertscaler/wire/kube_config_map.h>
#include <alertscaler/wire/kube_state.h>

struct kube_link {
    const struct as_access_env *env;
    void (*turn)(void *context);
    void *context;
    const struct as_store_patience *patience; /* or NULL */
    char *namespace_;
    struct as_kube_client client;
    struct as_random random;
    char run[20];                              /* part of the names of writes */
    uint64_t writes;                           /* counted for them */
    char head_write[AS_KUBE_STATE_WRITE_SIZE]; /* the name of our last write of the head */
    char head_version[AS_KUBE_VERSION_SIZE];   /* and its version; "": there is none yet */
    struct as_buf body;                        /* scratch: of a request */
};

/* The client is to be initialised by the caller. */
void kube_link_init(struct kube_link *link, const struct as_store_kubernetes_config *config);
void kube_link_deinit(struct kube_link *link);

/* The name of a write that has not been before. */
void kube_link_name_write(struct kube_link *link, char name_out[AS_KUBE_STATE_WRITE_SIZE]);

/*
 * Replaces an object of that version, or makes it where the version is "". `items` must have the
 * item "write". 0, and *version is the new one; or a negative errno.
 *
 * The head: -ESTALE where another one has written it. Other objects: whoever has the head is
 * right, so that what is there is replaced, or -ESTALE. `tries_once`: a failure that would be tried
 * again comes back at once.
 */
struct kube_write {
    const char *name;
    const struct as_kube_config_item *items;
    size_t count;
    bool is_head, tries_once;
};

int kube_link_write(struct kube_link *link, const struct kube_write *write,
                    char version[AS_KUBE_VERSION_SIZE], struct as_error *error) AS_MUST_USE;

/* All of the state's objects, `use` for each; `begin` before the first, and again where the list
 * had to be begun anew. */
struct kube_reader {
    void (*begin)(void *context);
    as_kube_config_map_fn *use;
    void *context;
};

int kube_link_read(struct kube_link *link, const struct kube_reader *reader,
                   struct as_error *error) AS_MUST_USE;

#endif
