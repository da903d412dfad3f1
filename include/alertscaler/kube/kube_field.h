/*
 * The field of a Kubernetes object that is a target's size (decide/sized.h): reads it, and makes
 * the JSON Patch (RFC 6902) that changes it and nothing else. Pure.
 *
 * 0, or -EBADMSG with an error that names the path: "spec.minReplicas: expected an integer, found
 * true". `kind` is the object's.
 */
#ifndef ALERTSCALER_KUBE_KUBE_FIELD_H
#define ALERTSCALER_KUBE_KUBE_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/kube_documents.h>

/* The size is the field's; the actual size that of `status_field`: absent is 0. */
int as_kube_field_decode(const char *json, size_t size, const char *kind,
                         const struct as_sized *sized, struct as_kube_scale *scale_out,
                         struct as_error *error) AS_MUST_USE;

/*
 * Appends the patch that makes the field of the object `json` the size `to`: a test that it has
 * still its old value, the object's resourceVersion as a condition (409 if it has changed), and the
 * new value in the form of the old one: integer or text. `add` with the objects around it where the
 * field is absent.
 */
int as_kube_field_encode_patch(const char *json, size_t size, const char *kind,
                               const struct as_sized *sized, int32_t to, struct as_buf *out,
                               struct as_error *error) AS_MUST_USE;

#endif
