/*
 * Targets of a namespace: see the header.
 */
#include "kube_noted.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>

struct as_kube_noted_target {
    UT_hash_handle hh; /* by its id */
    struct as_target_ref *ref;
    as_mono_time at;
};

bool as_kube_noted_add(struct as_kube_noted *noted, const struct as_target_ref *ref,
                       as_mono_time now, bool may_add)
{
    struct as_kube_noted_target *target;
    HASH_FIND(hh, noted->first, ref->id, strlen(ref->id), target);
    const bool is_new = !target && may_add;
    if (is_new) {
        target = as_xcalloc(1, sizeof(*target));
        target->ref = as_target_ref_copy(ref);
        HASH_ADD_KEYPTR(hh, noted->first, target->ref->id, strlen(target->ref->id), target);
        noted->count++;
    }
    if (target)
        target->at = now;
    return is_new;
}

void as_kube_noted_forget(struct as_kube_noted *noted, as_mono_time before)
{
    struct as_kube_noted_target *target, *next;
    for (target = noted->first; target; target = next) {
        next = target->hh.next;
        if (target->at.us >= before.us)
            continue;
        HASH_DEL(noted->first, target);
        noted->count--;
        as_target_ref_free(target->ref);
        free(target);
    }
}

const struct as_kube_noted_target *as_kube_noted_next(const struct as_kube_noted *noted,
                                                      const struct as_kube_noted_target *at)
{
    return at ? at->hh.next : noted->first;
}

const struct as_target_ref *as_kube_noted_get(const struct as_kube_noted_target *target)
{
    return target->ref;
}

void as_kube_noted_deinit(struct as_kube_noted *noted)
{
    as_kube_noted_forget(noted, AS_MONO_NEVER);
}
