/*
 * Faults of ops with providers as outcomes of a target. Nothing is sent again here.
 */
#include "provider_answer.h"

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>

static enum as_reason fault_get_reason(const struct as_cloud_op *op, bool is_change)
{
    switch (op->fault) {
    case AS_CLOUD_OP_OK: return AS_REASON_APPLIED;
    case AS_CLOUD_OP_RETRY: return AS_REASON_UNREACHABLE;
    case AS_CLOUD_OP_THROTTLED: return AS_REASON_THROTTLED;
    case AS_CLOUD_OP_TIMEOUT: return AS_REASON_TIMEOUT;
    case AS_CLOUD_OP_BUSY: return is_change ? AS_REASON_CONFLICT : AS_REASON_UNREACHABLE;
    case AS_CLOUD_OP_UNAUTHORIZED:
    case AS_CLOUD_OP_PERMISSION: return AS_REASON_FORBIDDEN;
    case AS_CLOUD_OP_GONE: return AS_REASON_TARGET_NOT_FOUND;
    case AS_CLOUD_OP_STOPPED: return AS_REASON_SUPERSEDED;
    case AS_CLOUD_OP_NOT_ALLOWED: return AS_REASON_TARGET_NOT_ALLOWED;
    case AS_CLOUD_OP_CAPACITY:
    case AS_CLOUD_OP_CONFIGURATION: break;
    }
    return AS_REASON_REJECTED;
}

void as_fault_take(const struct as_group_op *op, struct as_outcome *outcome_out,
                   struct as_provider_call *call_out)
{
    const struct as_cloud_op_request *request = &op->op.request;
    const char *url = request->url ? request->url : "";
    const char *operation = request->operation ? request->operation : "";
    snprintf(call_out->method, sizeof(call_out->method), "%s",
             request->method ? request->method : "");
    snprintf(call_out->path, sizeof(call_out->path), "%s%s%.*s", operation, *operation ? " " : "",
             (int)strcspn(url, "?#"), url);
    as_outcome_init_local(outcome_out, fault_get_reason(&op->op, op->verb != AS_GROUP_READ),
                          op->op.message);
    as_str_copy_line(op->op.request_id, outcome_out->request_id, sizeof(outcome_out->request_id));
    outcome_out->is_ambiguous = op->op.is_ambiguous;
    outcome_out->is_shortage = op->op.fault == AS_CLOUD_OP_CAPACITY;
    outcome_out->http_status = op->op.http_status;
    outcome_out->retry_after_us = op->op.retry_after_us;
}

static void fault_accept(struct as_outcome *outcome, const char *how)
{
    struct as_error words = AS_ERROR_INIT;
    as_error_set(&words, "%s: %s", how, outcome->message);
    as_outcome_set_message(outcome, words.text);
    outcome->is_accepted = true;
    outcome->is_ambiguous = false;
}

void as_fault_take_end(const struct as_group_op *op, struct as_outcome *outcome_out)
{
    struct as_provider_call poll;
    as_fault_take(op, outcome_out, &poll);
    fault_accept(outcome_out, "accepted, then failed");
}

void as_fault_accept_part(struct as_outcome *outcome)
{
    fault_accept(outcome, "accepted in part");
}

int64_t as_fault_get_pause(const struct as_group_op *op, int64_t least_us)
{
    const int64_t asked_us = op->op.retry_after_us;
    return asked_us > least_us ? asked_us : least_us;
}

bool as_fault_is_open(const struct as_group_op *op)
{
    const enum as_cloud_op_fault fault = op->op.fault;
    return !op->is_done && (fault == AS_CLOUD_OP_OK || fault == AS_CLOUD_OP_RETRY ||
                            fault == AS_CLOUD_OP_THROTTLED || fault == AS_CLOUD_OP_TIMEOUT ||
                            fault == AS_CLOUD_OP_BUSY);
}

bool as_fault_has_failed(const struct as_group_op *op)
{
    return op->is_done && op->op.fault != AS_CLOUD_OP_OK;
}
