/*
 * What of a target's object is its size, and in which unit it is counted: the scale subresource,
 * a field of the object, or a resource of a container of its pods. One row per kind of these
 * (decide/kinds.c).
 *
 * It is part of the target's identity: the scale and a field of one object are two targets with two
 * locks. An id says what is sized behind a colon, unless it is the scale:
 *
 *   kubernetes/default/autoscaling/v2/HorizontalPodAutoscaler/shop/web:field/spec.minReplicas
 *
 * The unit is not part of the identity, but sizes in two units cannot be compared: see
 * as_sized_append_unit.
 */
#ifndef ALERTSCALER_DECIDE_SIZED_H
#define ALERTSCALER_DECIDE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/model/action.h>

#define AS_SIZED_KEYS_MAX 3

#define AS_SIZED_ONLY_UP_KIND "PersistentVolumeClaim" /* the kind whose fields only grow */

struct as_target_ref;

enum as_sized_what { AS_SIZED_SCALE, AS_SIZED_FIELD, AS_SIZED_RESOURCE };

struct as_sized_kind {
    enum as_sized_what what;
    const char *word; /* in ids */
    /* Of the address, up to a NULL: the first says that it is of this kind; their values stand in
     * the id, in this order. */
    const char *keys[AS_SIZED_KEYS_MAX];
    /* Appends a value as it stands in an id, in the one form that equal values share. */
    void (*append_value)(const char *value, struct as_buf *out);
};

/* All kinds but the scale, up to one without a word. */
extern const struct as_sized_kind as_sized_kinds[];

struct as_sized { /* texts are borrowed from the address */
    enum as_sized_what what;
    struct as_unit unit;
    const char *field;         /* path in the object (model/field_path.h) */
    int32_t absent;            /* the size where the field is absent; -1: that is an error */
    const char *container;     /* whose request is sized, */
    enum as_resource resource; /* of this resource */
    bool keep_limit;           /* else the limit stays in its ratio to the request */
    bool by_pods;              /* running pods are resized; else the pod template is changed */
    bool with_template;        /* by_pods: the template too, where that does not roll */
    const char *status_field;  /* path of the integer that says the actual size; "": the field */
};

bool as_sized_is_container(const char *name); /* a container may have this name */

/* From an address that was checked. */
void as_sized_read(const struct as_target_ref *ref, struct as_sized *sized_out);

/* Text of the unit that the target's sizes are counted in; "": none. */
const char *as_sized_get_unit(const struct as_target_ref *ref);

/* An adapter appends it to the UID and to the version of what it observes: a change of the unit
 * makes other sizes of the same object. Nothing where there is no unit. */
#define AS_SIZED_UNIT_MARK '*'
void as_sized_append_unit(const struct as_target_ref *ref, char *text, size_t size);

/* Where an id of a Kubernetes object (behind its first slash) says what is sized: the colon, or the
 * end of the text. */
size_t as_sized_find(const char *id);

/* Appends what an id says behind its colon, in its canonical form. */

#endif
