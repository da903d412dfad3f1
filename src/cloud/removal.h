/*
 * Has a provider delete instances of a group by name, together with the group's size, and waits
 * until they are gone.
 */
#ifndef ALERTSCALER_SRC_CLOUD_REMOVAL_H
#define ALERTSCALER_SRC_CLOUD_REMOVAL_H

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/target_outcome.h>

#include "provider_account.h"
#include "provider_fault.h"

struct as_removal;

struct as_removal_request { /* borrowed until done or cancelled */
    const struct as_access_env *env;
    struct as_account *account;
    const struct as_target_ref *group;
    const struct as_group_view *view; /* just read; copied as far as it is needed */
    const char *idempotency;          /* a ULID, for these instances only */
    const char *const *ids;
    const char *const *nodes; /* their nodes, each may be NULL; or NULL */
    size_t count;
};

struct as_removal_result { /* valid during the callback */
    /* Applied: the instances that do not stay are gone, or leave. The message says what is left to
     * be said. */
    struct as_outcome outcome;
    const bool *stays; /* by `ids` */
    size_t gone;       /* how many do not stay */
    bool is_known;     /* false: after a failure it could not be read who stays */
    unsigned attempts; /* requests to the provider */
    struct as_provider_call call;
};

typedef void as_removal_done_fn(void *context, const struct as_removal_result *result);

/* `done` is called exactly once, in a later turn, unless cancelled. */
struct as_removal *as_removal_start(const struct as_removal_request *request,
                                    as_removal_done_fn *done, void *context) AS_MUST_USE;
/* The request was answered; what is left is waiting. */
bool as_removal_is_sent(const struct as_removal *removal) AS_MUST_USE;
void as_removal_cancel(struct as_removal *removal);

#endif
