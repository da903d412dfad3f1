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

#endif
