/*
 * ConfigMaps of the Kubernetes API, as far as a store needs them: name, version, and the texts in
 * `data`. Pure.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_CONFIG_MAP_H
#define ALERTSCALER_SRC_KUBE_KUBE_CONFIG_MAP_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

#define AS_KUBE_VERSION_SIZE 64 /* size of a resourceVersion with NUL */

struct as_kube_config_item {
    const char *key, *text; /* UTF-8 */
    size_t size;            /* of the text */
};

struct as_kube_config_map {
    const char *name;
    const char *version; /* resourceVersion; "": not created yet */
    const struct as_kube_config_item *items;
    size_t count;
};

/* NULL if there is no such key. */
const struct as_kube_config_item *as_kube_config_map_find(const struct as_kube_config_map *map,
                                                          const char *key);

struct as_kube_label {
    const char *name, *value;
};

/* Appends the document; `out` is failed when it does not fit. Without a version it creates the
 * ConfigMap; with a version it replaces only that version. */
void as_kube_config_map_encode(const struct as_kube_config_map *map, const char *namespace_,
                               const struct as_kube_label *labels, size_t label_count,
                               struct as_buf *out);

/* `map` is valid for the call; a result other than 0 ends the decoding and is returned. */
typedef int as_kube_config_map_fn(void *context, const struct as_kube_config_map *map,
                                  struct as_error *error);

/* One ConfigMap. 0; -EBADMSG with an error that names the field; or what `use` returns. */
int as_kube_config_map_decode(const char *json, size_t size, as_kube_config_map_fn *use,
                              void *context, struct as_error *error) AS_MUST_USE;

/* The new version, from the answer to a write: the ConfigMap or only its metadata. 0; -EBADMSG. */
int as_kube_config_map_decode_version(const char *json, size_t size,
                                      char version_out[AS_KUBE_VERSION_SIZE],
                                      struct as_error *error) AS_MUST_USE;

/* Accept header of a write: asks for the metadata alone; an old server sends the ConfigMap. */
#define AS_KUBE_ACCEPT_VERSION                                                                     \
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

/* One page of a list, `use` for each; *next_out: token of the next page, to be freed; NULL: this
 * was the last page. */
int as_kube_config_map_list_decode(const char *json, size_t size, char **next_out,
                                   as_kube_config_map_fn *use, void *context,
                                   struct as_error *error) AS_MUST_USE;

#endif
