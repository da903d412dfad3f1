/*
 * Undoing what was done to a node. It is retried where this may help: a node that stays cordoned by
 * mistake is unused capacity.
 */
#include <stdio.h>

#include <alertscaler/base/str.h>
#include <alertscaler/kube/target_limits.h>

#include "drain_private.h"

#define NOT_FOUND 404
#define CONFLICT  409

static void try_again(void *context)
{
    struct as_drain *drain = context;
    drain->timer = NULL;
    drain_undo(drain);
}

static void end_stuck(struct as_drain *drain, const struct as_outcome *outcome)
{
    char what[3 * AS_MESSAGE_SIZE];
    const bool has_failed = drain->result.outcome.reason != AS_REASON_APPLIED;
    snprintf(what, sizeof(what), "it stays cordoned, as that could not be undone: %s%s%s",
             outcome->message, has_failed ? "; before: " : "",
             has_failed ? drain->result.outcome.message : "");
    drain_explain(drain, outcome->reason, what);
    drain->result.end = AS_DRAIN_STUCK;
    drain_tell(drain);
}

static bool may_help(const struct as_outcome *outcome)
{
    return outcome->http_status == CONFLICT || outcome->reason == AS_REASON_UNREACHABLE ||
           outcome->reason == AS_REASON_TIMEOUT || outcome->reason == AS_REASON_THROTTLED;
}

static void fail(struct as_drain *drain, const struct as_outcome *outcome)
{
    const struct as_access_env *env = drain->owner->client->env;
    int64_t delay_us = AS_DRAIN_POLL_US << (drain->undo_tries < 4 ? drain->undo_tries : 4);
    if (!may_help(outcome) || ++drain->undo_tries >= AS_DRAIN_UNDO_TRIES) {
        end_stuck(drain, outcome);
        return;
    }
    if (outcome->http_status == CONFLICT)
        delay_us = 0;
    if (outcome->retry_after_us > delay_us)
        delay_us = outcome->retry_after_us;
    if (delay_us > AS_DRAIN_POLL_MAX_US)
        delay_us = AS_DRAIN_POLL_MAX_US;
    drain->timer = env->loop->start_timer(env->loop, delay_us, try_again, drain);
}

static void unmarked(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    drain->request = NULL;
    if (outcome.reason == AS_REASON_APPLIED || outcome.http_status == NOT_FOUND)
        drain_tell(drain);
    else
        fail(drain, &outcome);
}

/* Whether the node has our marks. */
static bool is_ours(const struct as_drain *drain, const struct as_http_response *response)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_kube_node node;
    const bool is_other =
        as_kube_node_decode(response->body, response->body_size, &arena, &node, NULL) == 0 &&
        (!node.is_marked || !as_str_equal(node.mark.owner, drain->owner->owner));
    as_arena_deinit(&arena);
    return !is_other;
}

static void node_read(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    AS_CLEANUP(as_buf_deinit) struct as_buf patch = AS_BUF_INIT(AS_KUBE_NODE_MAX);
    struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    struct as_error error = AS_ERROR_INIT;
    drain->request = NULL;
    if (outcome.http_status == NOT_FOUND) {
        if (drain->result.outcome.reason == AS_REASON_APPLIED)
            drain->result.end = AS_DRAIN_NO_NODE;
        drain_tell(drain);
    } else if (outcome.reason != AS_REASON_APPLIED) {
        fail(drain, &outcome);
    } else if (!is_ours(drain, response)) {
        if (drain->may_be_marked && !drain->is_marked)
            drain_find_later(drain); /* a mark may still be on its way */
        drain_tell(drain);
    } else if (as_kube_node_unmark_encode(response->body, response->body_size, &patch, &error) <
               0) {
        as_outcome_init_local(&outcome, AS_REASON_REJECTED, error.text);
        end_stuck(drain, &outcome);
    } else if (as_access_get_permit(drain->owner->client->env) == AS_PERMIT_NONE) {
        as_outcome_init_local(&outcome, AS_REASON_SUPERSEDED, as_permit_explain(AS_PERMIT_NONE));
        end_stuck(drain, &outcome); /* the next leader finds the mark */
    } else {
        drain_patch_node(drain, &patch, unmarked);
    }
}

void drain_undo(struct as_drain *drain)
{
    drain->is_undoing = true;
    drain_ask_node(drain, node_read);
}
