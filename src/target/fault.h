/*
 * What a talk with a provider came to, as an outcome of a target.
 */
#ifndef ALERTSCALER_SRC_TARGET_FAULT_H
#define ALERTSCALER_SRC_TARGET_FAULT_H

#include <alertscaler/provider/group.h>

#include "outcome.h"

struct as_provider_call { /* for the action log */
    char method[8], path[512];
};

/* The call is the talk's last request: its operation and address, without the query, which may hold
 * a secret. */
void as_fault_take(const struct as_group_talk *talk, struct as_outcome *outcome_out,
                   struct as_provider_call *call_out);

/* After a POLL, of an operation that has failed: the change was accepted, and counts. */
void as_fault_take_end(const struct as_group_talk *talk, struct as_outcome *outcome_out);

/* Of a change that has failed after a part of it was accepted: that part counts. */
void as_fault_accept_part(struct as_outcome *outcome);

/* How long until the provider is asked again: its own Retry-After, and `least_us` at least. */
int64_t as_fault_get_pause(const struct as_group_talk *talk, int64_t least_us) AS_MUST_USE;

/* After a POLL. The change was taken: that it cannot be asked after just now says nothing of it,
 * and neither does it that it may not be asked after, or that the operation is forgotten. */
bool as_fault_is_open(const struct as_group_talk *talk) AS_MUST_USE; /* to be asked after again */
bool as_fault_has_failed(const struct as_group_talk *talk) AS_MUST_USE; /* the operation itself */

#endif
