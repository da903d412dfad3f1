/*
 * Answers of providers: their documents (login/cloud_answer.h), and the result of an op with a
 * provider as an outcome of a target.
 */
#ifndef ALERTSCALER_SRC_CLOUD_PROVIDER_ANSWER_H
#define ALERTSCALER_SRC_CLOUD_PROVIDER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/login/cloud_answer.h>

struct as_provider_call { /* for the action log */
    char method[8], path[512];
};

/* The call is the op's last request: its operation, and its address without the query, which may
 * hold a secret. */
void as_fault_take(const struct as_group_op *op, struct as_outcome *outcome_out,
                   struct as_provider_call *call_out);

/* After a POLL of an operation that has failed: the change was accepted, and counts. */
void as_fault_take_end(const struct as_group_op *op, struct as_outcome *outcome_out);

/* For a change that failed after a part of it was accepted: that part counts. */
void as_fault_accept_part(struct as_outcome *outcome);

/* How long to wait before asking the provider again: its Retry-After, but at least `least_us`. */
int64_t as_fault_get_pause(const struct as_group_op *op, int64_t least_us) AS_MUST_USE;

/* After a POLL: whether to poll again. The change was accepted; a failure to read the operation, a
 * missing right or a forgotten operation says nothing about it. */
bool as_fault_is_open(const struct as_group_op *op) AS_MUST_USE;    /* poll again */
bool as_fault_has_failed(const struct as_group_op *op) AS_MUST_USE; /* the operation itself */

#endif
