/*
 * What befalls the daemon: kills, power cuts, full disks, commits that fail, clocks that jump, a
 * lease that runs out while it is paused or cut off. It comes between any two events, now and then
 * just between the commit of an intent and its request.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>

#define TERM_MAX  (15 * SECOND) /* of a leader that cannot renew its lease */
#define LAG_MAX   (50 * AS_US_PER_MS)
#define YEAR      (365 * AS_US_PER_DAY)
#define STEPS_MAX 60 /* from the time of the trouble to the event after which it comes */

/* What 200 means for a repeat: its record is on the disk 50 ms later; where another may come to
 * lead, it is in the shared store. */
static void risk_repeats(struct world *world)
{
    struct acknowledged *list = &world->acknowledged;
    for (size_t i = world->allows_jumps ? list->count : 0; i > 0; i--) {
        struct acknowledgement *item = &list->items[i - 1];
        if (world->now - item->at > LAG_MAX)
            return;
        if (!item->is_repeat)
            continue;
        item->may_be_lost = true;
        trouble_note(world, TROUBLE_REPEATS_AT_RISK);
    }
}

void faults_kill(struct world *world, bool is_power_loss, bool is_kept)
{
    struct daemon *daemon = &world->daemon;
    const bool is_waiting = as_storage_get_counts(daemon->storage).waiting_batches > 0;
    trace(world, "daemon: %s", is_power_loss ? "loses power" : "is killed");
    trouble_note(world, TROUBLE_KILLED + daemon_get_phase(world));
    if (is_waiting && world->full_until == 0)
        trouble_note(world, is_kept ? TROUBLE_COMMIT_KEPT : TROUBLE_COMMIT_FAILED);
    /* what waits may be in the store all the same, or not; part of a line may be in the log */
    as_store_memory_fail(daemon->state, 0, -EIO, is_kept);
    as_audit_memory_fail(daemon->log, 0, -EIO, (size_t)between(world, 0, 300));
    daemon_throw_away(world);
    size_t size;
    const char *lines = as_audit_memory_get_lines(daemon->log, &size);
    if (size > 0 && lines[size - 1] != '\n')
        trouble_note(world, TROUBLE_LINE_TORN);
    if (is_power_loss) {
        const size_t synced = as_audit_memory_get_synced(daemon->log);
        const size_t left = (size_t)between(world, (int64_t)synced, (int64_t)size);
        trouble_note(world, TROUBLE_POWER_CUT);
        risk_repeats(world);
        if (left < size)
            trouble_note(world, TROUBLE_LINES_LOST);
        as_audit_memory_cut(daemon->log, left);
    }
    if (is_power_loss && !world->allows_jumps) {
        free(daemon->clock);
        daemon_new_clock(world, world->now - between(world, 1, 20) * SECOND);
        trouble_note(world, TROUBLE_REBOOT);
    }
}

static void on_next_kill(struct world *world, void *subject, uint64_t argument)
{
    struct daemon *daemon = &world->daemon;
    (void)subject;
    (void)argument;
    if (world->is_calm || --world->kills == 0)
        return;
    if (daemon->shell && !daemon->stopping && daemon->paused_until <= world->now) {
        faults_kill(world, false, chance(world, 500));
        daemon_open_later(world, SECOND);
    }
    later(world, between(world, 1, 5 * SECOND), on_next_kill, NULL, 0);
}

static void crash(struct world *world, bool is_power_loss)
{
    if (world->kills == 0 && chance(world, 60)) {
        trouble_note(world, TROUBLE_CRASH_LOOP);
        world->kills = (unsigned)between(world, 5, 40);
        later(world, 2 * SECOND, on_next_kill, NULL, 0);
    }
    faults_kill(world, is_power_loss, chance(world, 500));
    daemon_open_later(world, chance(world, 100) ? 5 * MINUTE : 5 * SECOND);
}

static void on_power_cut(struct world *world, void *subject, uint64_t generation)
{
    const struct daemon *daemon = &world->daemon;
    (void)subject;
    if (!world->is_calm && daemon->generation == generation && daemon->shell && !daemon->failed &&
        !daemon->stopping && daemon->paused_until <= world->now)
        crash(world, true);
}

/* The answer to a repeat is ahead of its sync, but by chance trouble hardly ever comes there. */
void faults_after_repeat(struct world *world)
{
    if (!world->is_calm && !world->story && world->allows_jumps && chance(world, 3))
        later(world, between(world, 0, LAG_MAX), on_power_cut, NULL, world->daemon.generation);
}

/* Disks. */

static void heal(struct world *world)
{
    trace(world, "the disk has room again");
    world->full_until = 0;
    as_store_memory_break(world->daemon.state, 0);
    as_audit_memory_break(world->daemon.log, 0);
}

static void on_heal(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->full_until == world->now)
        heal(world);
}

static void fill_disk(struct world *world)
{
    static const enum trouble which[] = {TROUBLE_FULL_STORE, TROUBLE_FULL_LOG, TROUBLE_FULL_BOTH};
    const enum trouble trouble = which[between(world, 0, 2)];
    if (world->full_until > 0)
        return;
    trouble_note(world, trouble);
    trace(world, "a disk is full");
    if (trouble != TROUBLE_FULL_LOG)
        as_store_memory_break(world->daemon.state, -ENOSPC);
    if (trouble != TROUBLE_FULL_STORE)
        as_audit_memory_break(world->daemon.log, -ENOSPC);
    const int64_t longest = chance(world, 200) ? 1800 : 60;
    const int64_t duration = between(world, 1, longest) * SECOND;
    world->full_until = world->now + duration;
    later(world, duration, on_heal, NULL, 0);
}

static void fail_commit(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    const bool is_kept = chance(world, 500);
    as_store_memory_fail(daemon->state, (uint64_t)between(world, 0, 5), -ENOSPC, is_kept);
    daemon->planned = is_kept ? TROUBLE_COMMIT_KEPT : TROUBLE_COMMIT_FAILED;
}

static void fail_log(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    const size_t torn = (size_t)between(world, 0, 300);
    as_audit_memory_fail(daemon->log, (uint64_t)between(world, 0, 5), -ENOSPC, torn);
    daemon->planned = TROUBLE_LOG_FAILED;
}

/* Clocks. */

static void jump(struct world *world)
{
    struct sim_clock *clock = world->daemon.clock;
    const int64_t epoch = -true_wall(world).us; /* the offset that makes it 1970 */
    enum trouble trouble = TROUBLE_CLOCK_RIGHT;
    if (!world->allows_jumps)
        return;
    switch (between(world, 0, 7)) {
    case 0:
    case 1:
        trouble = TROUBLE_CLOCK_SECONDS;
        clock->wall_offset = between(world, -5000, 5000) * AS_US_PER_MS;
        break;
    case 2:
    case 3:
        trouble = TROUBLE_CLOCK_HOURS;
        clock->wall_offset = between(world, -7200, 7200) * SECOND;
        break;
    case 4:
        trouble = TROUBLE_CLOCK_YEARS_ON;
        clock->wall_offset = between(world, YEAR, 200 * YEAR);
        break;
    case 5:
        trouble = TROUBLE_CLOCK_YEARS_BACK;
        clock->wall_offset = between(world, -50 * YEAR, -YEAR);
        break;
    case 6:
        trouble = TROUBLE_CLOCK_BEFORE_1970;
        clock->wall_offset = epoch - between(world, SECOND, 100 * YEAR);
        break;
    default: clock->wall_offset = 0; break;
    }
    trouble_note(world, trouble);
    trace(world, "the wall clock is off by %+.3f s", (double)clock->wall_offset / (double)SECOND);
}

/* Leaders. */

/* The former leader learns that it leads no more; its process may have ended before. */
static void on_step_down(struct world *world, void *subject, uint64_t generation)
{
    if (!daemon_enter(world, generation, on_step_down, subject, generation))
        return;
    trace(world, "daemon: steps down");
    if (world->daemon.is_former)
        daemon_throw_away(world);
    daemon_leave(world);
}

/* A replica on another machine, with the same configuration. */
static void on_takeover(struct world *world, void *subject, uint64_t generation)
{
    struct daemon *daemon = &world->daemon;
    (void)subject;
    if (daemon->generation != generation || !daemon->shell || daemon->stopping)
        return;
    trace(world, "another leads");
    trouble_note(world, TROUBLE_TWO_LEADERS);
    world->former = *daemon;
    world->former.is_former = true;
    daemon->shell = NULL;
    daemon->storage = NULL;
    daemon->port = NULL;
    daemon->source = NULL;
    daemon->messenger = NULL;
    daemon->request_count = 0;
    daemon->ruleset = policies_make_ruleset(world, &daemon->spec);
    daemon_throw_away(world);
    daemon_new_clock(world, world->now - between(world, 1, 1000000) * SECOND);
    const int64_t awake = world->former.paused_until;
    const int64_t from = awake > world->now ? awake - world->now : 0;
    later(world, from + between(world, 0, 20 * SECOND), on_step_down, NULL, generation);
    daemon_open(world);
}

/* Only where clocks are right: to another machine, a lock says by the wall clock when it ends. */
static void cut_off(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    if (world->allows_jumps || world->former.shell || !daemon_leads(world) ||
        daemon->until != INT64_MAX)
        return;
    const enum phase phase = daemon_get_phase(world);
    trouble_note(world, TROUBLE_CUT_OFF);
    daemon->until = world->now + between(world, 0, TERM_MAX);
    if (chance(world, 700)) {
        daemon->paused_until = world->now + between(world, SECOND, 120 * SECOND);
        trouble_note(world, phase == PHASE_INTENT ? TROUBLE_PAUSED_INTENT
                            : phase == PHASE_SENT ? TROUBLE_PAUSED_SENT
                                                  : TROUBLE_PAUSED);
    }
    trace(world, "daemon: cut off from its lease%s",
          daemon->paused_until > world->now ? " and paused" : "");
    later(world, daemon->until - world->now + between(world, 0, 3 * SECOND), on_takeover, NULL,
          daemon->generation);
}

/* When. */

static void be_in_trouble(struct world *world)
{
    struct daemon *daemon = &world->daemon;
    if (!daemon->shell || daemon->failed || daemon->stopping || daemon->paused_until > world->now)
        return;
    switch (between(world, 0, 13)) {
    case 0:
    case 1:
    case 2: crash(world, false); break;
    case 3: crash(world, true); break;
    case 4: fail_commit(world); break;
    case 5: fail_log(world); break;
    case 6:
        trace(world, "daemon: is asked to stop");
        trouble_note(world, TROUBLE_STOP);
        daemon->stopping = true;
        as_shell_stop(daemon->shell);
        break;
    case 7: fill_disk(world); break;
    case 8: jump(world); break;
    case 9:
    case 10: cut_off(world); break;
    default: daemon_reload(world); break;
    }
    daemon_poll(world);
}

static void on_trouble(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->is_calm)
        return;
    later(world, between(world, 1, 240) * SECOND, on_trouble, NULL, 0);
    world->is_trouble_due = true;
    static const enum phase phases[] = {PHASE_INTENT, PHASE_SENT, PHASE_COMMITTING};
    world->waits_for = chance(world, 300) ? phases[between(world, 0, 2)] : PHASE_IDLE;
    world->trouble_steps = between(world, 0, STEPS_MAX);
}

void faults_after_step(struct world *world)
{
    if (!world->is_trouble_due || world->is_calm)
        return;
    if (world->waits_for != PHASE_IDLE ? daemon_get_phase(world) != world->waits_for
                                       : world->trouble_steps-- > 0)
        return;
    world->is_trouble_due = false;
    be_in_trouble(world);
}

void faults_start(struct world *world)
{
    later(world, 30 * SECOND, on_trouble, NULL, 0);
}

void faults_calm_down(struct world *world)
{
    if (world->full_until > 0)
        heal(world);
}
