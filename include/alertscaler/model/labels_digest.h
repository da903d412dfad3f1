/*
 * An alert's identity: the SHA-256 of its label set, sorted by name, each label `name NUL value
 * NUL`. A sender cannot construct two label sets with the same digest.
 */
#ifndef ALERTSCALER_MODEL_LABELS_DIGEST_H
#define ALERTSCALER_MODEL_LABELS_DIGEST_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/digest.h>
#include <alertscaler/model/labels.h>

/* Costs more to create than one digest: use one hasher for a whole document. */
struct as_labels_hasher;

struct as_labels_hasher *as_labels_hasher_new(void) AS_MUST_USE;
struct as_labels_hasher *as_labels_hasher_free(struct as_labels_hasher *hasher);
struct as_digest as_labels_hasher_get(struct as_labels_hasher *hasher,
                                      const struct as_labels *labels);

struct as_digest as_digest_get(const void *data, size_t size);         /* of any bytes */
struct as_digest as_labels_get_digest(const struct as_labels *labels); /* of one set alone */

AS_DEFINE_CLEANUP(struct as_labels_hasher *, as_labels_hasher_free)

#endif
