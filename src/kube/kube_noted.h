/*
 * The targets that were observed in a namespace, each with the time of its last observation.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_NOTED_H
#define ALERTSCALER_SRC_KUBE_KUBE_NOTED_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/time.h>
#include <alertscaler/decide/target.h>

struct as_kube_noted_target;

struct as_kube_noted { /* starts as zeros */
    struct as_kube_noted_target *first;
    size_t count;
};

/* Notes a copy of the target, if it is known or may be added. True: it was added. */
bool as_kube_noted_add(struct as_kube_noted *noted, const struct as_target_ref *ref,
                       as_mono_time now, bool may_add);
/* Forgets those that were last noted before. */
void as_kube_noted_forget(struct as_kube_noted *noted, as_mono_time before);
/* The target after `at` (NULL: the first); NULL: there is none. */
const struct as_kube_noted_target *as_kube_noted_next(const struct as_kube_noted *noted,
                                                      const struct as_kube_noted_target *at);
const struct as_target_ref *as_kube_noted_get(const struct as_kube_noted_target *target);
void as_kube_noted_deinit(struct as_kube_noted *noted);

#endif
