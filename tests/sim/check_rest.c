/*
 * What is set follows from what was asked for, whatever the server shows; and when the trouble is
 * over, the size is what `decide` says of the last input, and then nothing is set any more.
 *
 * Nodes for pods have their own rest (check_pools.c). What may still be set then: steps down, each
 * of which waits for news of its alert, and what follows the end of an incident that nobody has
 * told of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/decide/decision.h>

#include "sim.h"

#define SETTLED_US (2 * MINUTE)   /* of calm: what was late has arrived */
#define FOLLOW_US  (15 * MINUTE)  /* longer than any lock */
#define FOLLOW_MAX 8              /* such values in one world: more is a swing */
#define REST_US    (105 * MINUTE) /* of calm: all locks have ended often enough */

/* Where the server carries a request out. */
void check_direction(struct world *world, const struct server_target *target,
                     const struct as_scale_request *request)
{
    const bool wants_up = request->to > request->from;
    if (request->to != target->size && (request->to > target->size) != wants_up)
        fail(world, "%s: set from %d to %d against the direction of %d to %d", target->id,
             target->size, request->to, request->from, request->to);
    if (target->size != request->from)
        fail(world, "%s: set from %d, but decided from %d", target->id, target->size,
             request->from);
}

static void on_settled(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    (void)as_audit_memory_get_lines(world->daemon.log, &world->rest.settled);
}

void check_rest_begin(struct world *world)
{
    world->rest.from = world->now + REST_US;
    world->rest.is_calm = true;
    later(world, SETTLED_US, on_settled, NULL, 0);
}

/* Others may have been held by it, or waited for it. */
void check_rest_incident(struct world *world)
{
    if (!world->rest.is_calm || world->now + REST_US / 4 <= world->rest.from)
        return;
    world->rest.from = INT64_MAX;
    world->rest.is_following = false;
}

void check_rest_request(struct world *world, const struct server_target *target,
                        const struct as_scale_request *request)
{
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    const bool is_step_down =
        request->to < request->from && rule &&
        (rule->action.kind == AS_ACTION_SCALE_DOWN || rule->on_resolved.kind != AS_ENDING_NOTHING);
    const struct as_target_config *config = rules_find_target(world, target->id);
    if (!world->rest.is_calm || pools_has(world, target) ||
        (config && config->schedule_count > 0) || /* one begins, or ends, at any time */
        world->has_approvals)                     /* what needs none comes each hour */
        return;
    if (world->now < world->rest.from) {
        world->rest.followed += world->rest.is_following && !is_step_down;
        if (world->rest.followed > FOLLOW_MAX)
            fail(world, "%s: sizes go down and up for ever", target->id);
        return;
    }
    world->rest.is_following = is_step_down;
    if (is_step_down) /* news of its alert; a value over the size may follow it */
        world->rest.from = world->now + FOLLOW_US;
    else
        fail(world, "%s: from %d to %d by %s, though nothing has happened for long", target->id,
             request->from, request->to, request->rule);
}

/* The answer that `decide` gives to the input of a record; false where it was a dry run's. */
static bool decide_again(struct world *world, const char *line, size_t size, int32_t *desired_out)
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    if (as_decision_decode_record(line, size, &document, &error) != 0) {
        fail(world, "the input of a decision: %s", error.text);
        return false;
    }
    if (document->input.dry_run)
        return false;
    struct as_decision decision;
    as_decide_document_decide(document, &decision);
    *desired_out = decision.desired;
    return true;
}

static void check_size(struct world *world, const char *line, size_t size, bool *is_seen)
{
    json_t *record = json_loadb(line, size, 0, NULL);
    const char *id = json_string_value(json_object_get(record, "target"));
    for (size_t i = 0; id && i < world->target_count; i++) {
        const struct server_target *target = &world->targets[i];
        int32_t desired;
        if (is_seen[i] || pools_has(world, target) || strcmp(target->id, id) != 0 ||
            !decide_again(world, line, size, &desired))
            continue;
        is_seen[i] = true;
        trouble_note(world, TROUBLE_DECIDED_AT_REST);
        if (target->size != desired)
            fail(world, "%s: %d at the end, but %d is what was decided last", target->id,
                 target->size, desired);
    }
    json_decref(record);
}

/* From the last line of the log back to where the calm had settled. */
void check_rest_end(struct world *world)
{
    static const char decision[] = "\"kind\":\"decision\"";
    bool is_seen[SERVER_TARGETS] = {false};
    size_t end;
    const char *lines = as_audit_memory_get_lines(world->daemon.log, &end);
    while (end > world->rest.settled && !world->is_failed) {
        const char *newline = memrchr(lines, '\n', end - 1);
        const size_t start = newline ? (size_t)(newline + 1 - lines) : 0;
        if (memmem(lines + start, end - start, decision, sizeof(decision) - 1))
            check_size(world, lines + start, end - start, is_seen);
        end = start;
    }
}
