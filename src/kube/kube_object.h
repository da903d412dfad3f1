/*
 * Objects of the Kubernetes API as JSON: one object of an expected kind, or one page of a list.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_OBJECT_H
#define ALERTSCALER_SRC_KUBE_KUBE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/model/field_path.h>

/* Bytes of memory for reading one object of a list. The API refuses objects of more than about 1.5
 * MiB; parsed values take about fifteen times that. */
#define AS_KUBE_ITEM_MEMORY_MAX ((size_t)32 * 1024 * 1024)

/* 0 or -EBADMSG: no object, or of another kind. */
int kube_object_load(struct tree *tree, const char *json, size_t size, const char *kind,
                     struct as_error *error) AS_MUST_USE;

/* A name of 1 to `max` bytes, borrowed. Absent: "", and an error of the reader. */
const char *kube_object_read_name(struct as_reader *metadata, const char *key, size_t max,
                                  const char *what);
/* Whether the step leads to this element of a list. Its member as text: names are texts, ports are
 * integers. */
bool kube_element_is(const struct tree_value *element, const struct as_field_step *step);
/* metadata.resourceVersion, required. */
void kube_object_read_version(struct as_reader *metadata, char *version_out, size_t size);

/*
 * One page of a list of the Kubernetes API (PodList, ConfigMapList), item by item.
 */

/* `item` is an object, valid for the call only. A result other than 0 ends the list and is
 * returned: -EBADMSG for a wrong item, whose place is then added to the error. */
typedef int kube_item_fn(void *context, const struct tree_value *item, struct as_error *error);

/* 0, with *next_out to be freed: the token of the next page, or NULL if this was the last; the
 * result of `take`; or -EBADMSG with an error that names the place. */
int kube_list_read(const char *json, size_t size, const char *kind, kube_item_fn *take,
                   void *context, char **next_out, struct as_error *error) AS_MUST_USE;

#endif
