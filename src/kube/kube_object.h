/*
 * Objects of the Kubernetes API as JSON, of an expected kind.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_OBJECT_H
#define ALERTSCALER_SRC_KUBE_KUBE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/model/field_path.h>

#include <alertscaler/doc/json_reader.h>

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

#endif
