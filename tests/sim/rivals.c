/*
 * A second controller, which sets a target's size back each time we have changed it. Promised is:
 * after three set-backs within an hour the target is left alone for an hour, by a record.
 *
 * Counted are only set-backs that the daemon surely knows: of a change that it has recorded, and
 * decided from afterwards. A crash may undo the count, and a contention of the last minute.
 */
#include "sim.h"

#include <string.h>

#define DURABLE_US MINUTE /* nothing waits so long to be committed */
#define KNOWN_US   (AS_REVERTED_WITHIN_US - MINUTE)

void rivals_choose(struct world *world, struct server_target *target)
{
    target->rival.is_there =
        world->has_rivals && strncmp(target->id, "kubernetes/", 11) == 0 && chance(world, 500);
}

static void on_set_back(struct world *world, void *subject, uint64_t size)
{
    struct server_target *target = subject;
    struct sim_rival *rival = &target->rival;
    if (world->is_calm || !target->exists || target->size == (int32_t)size)
        return;
    const struct applied *last = &target->last;
    const bool is_back = last->is_up ? (int32_t)size < last->to : (int32_t)size > last->to;
    rival->is_pending = last->set && last->recorded && !last->overwritten && is_back;
    rival->set_to = (int32_t)size;
    rival->generation = world->daemon.generation;
    trouble_note(world, TROUBLE_SET_BACK);
    server_set_size(world, target, (int32_t)size);
}

/* Without a version an older size looks like somebody's change. The daemon then does not know what
 * the next change of others sets back. */
void rivals_note_older(struct server_target *target)
{
    target->rival.is_mistaken = target->rival.is_mistaken || target->has_no_version;
}

void rivals_note_applied(struct world *world, struct server_target *target, int32_t before)
{
    target->rival.is_pending = target->rival.is_mistaken = false;
    if (target->rival.is_there && !world->is_calm && before != target->size)
        later(world, between(world, 1, 60) * SECOND, on_set_back, target, (uint64_t)before);
}

static void forget_seen(struct sim_rival *rival)
{
    rival->seen_count = 0;
    rival->is_pending = false;
}

void rivals_note_anew(struct server_target *target)
{
    forget_seen(&target->rival);
    target->rival.contended_at = INT64_MIN;
}

bool rivals_hold(const struct world *world, const struct server_target *target)
{
    const int64_t since = target->rival.contended_at;
    return since != INT64_MIN && world->now - since < AS_CONTENDED_US;
}

void rivals_check_record(struct world *world, const struct as_others_record *record)
{
    struct server_target *target = server_find(world, record->target);
    struct sim_rival *rival = &target->rival;
    switch (record->event) {
    case AS_OTHERS_CONTENDED:
        if (record->contended->reverted_change_count != AS_REVERTED_CHANGES_MAX)
            fail(world, "%s: contended after %zu set-backs", target->id,
                 record->contended->reverted_change_count);
        trouble_note(world, TROUBLE_CONTENDED);
        forget_seen(rival);
        rival->contended_at = world->now;
        break;
    case AS_OTHERS_OVER:
        if (strcmp(record->message, "the hour is over") == 0 && rivals_hold(world, target))
            fail(world, "%s: its contention ends early", target->id);
        trouble_note(world, TROUBLE_CONTENDED_OVER);
        rivals_note_anew(target);
        break;
    case AS_OTHERS_FOUND:
    case AS_OTHERS_EVENT_COUNT: break;
    }
}

void rivals_check_decision(struct world *world, const struct as_decision_record *record)
{
    struct server_target *target = server_find(world, record->target);
    struct sim_rival *rival = &target->rival;
    const bool holds = rivals_hold(world, target);
    if (holds && record->output->desired != record->output->replicas)
        fail(world, "%s: contended, and to be set to %d", target->id, record->output->desired);
    if (!rival->is_pending || rival->is_mistaken || rival->generation != world->daemon.generation ||
        holds || record->output->replicas != rival->set_to ||
        world->now - target->last.at > KNOWN_US)
        return;
    rival->is_pending = false;
    if (rival->seen_count == AS_REVERTED_CHANGES_MAX)
        memmove(rival->seen, rival->seen + 1, --rival->seen_count * sizeof(*rival->seen));
    rival->seen[rival->seen_count++] = world->now;
    if (rival->seen_count == AS_REVERTED_CHANGES_MAX &&
        world->now - rival->seen[0] < AS_CONTENDED_US)
        fail(world, "%s: set back three times, and not left alone", target->id);
}

void rivals_check_request(struct world *world, const struct server_target *target)
{
    if (rivals_hold(world, target))
        fail(world, "%s: a request while it is contended", target->id);
}

void rivals_crash(struct world *world)
{
    for (size_t i = 0; i < world->target_count; i++) {
        struct server_target *target = &world->targets[i];
        forget_seen(&target->rival);
        if (!rivals_hold(world, target))
            continue;
        if (world->now - target->rival.contended_at < DURABLE_US)
            target->rival.contended_at = INT64_MIN;
        else
            trouble_note(world, TROUBLE_CONTENDED_RESTORED);
    }
}
