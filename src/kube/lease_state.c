/*
 * Leader election: see the header. It differs from client-go in three ways, each safer or faster:
 * - our term also ends by the wall clock;
 * - a deleted lease whose holder may still act is created again only when it would have expired;
 * - a waiting replica reads the lease twice per retry period, and right when the lease expires,
 *   so a dead leader is replaced within the lease duration and two seconds.
 */
#include "lease_state.h"

#include <stdio.h>
#include <string.h>

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_ours(const struct lease_state *state)
{
    return state->is_known && strcmp(state->seen.holder, state->identity) == 0;
}

/* Until when the holder of the record may act. A lease without a holder has expired. */
static as_mono_time get_expiry(const struct lease_state *state)
{
    if (!state->is_known || !*state->seen.holder)
        return (as_mono_time){INT64_MIN};
    int64_t duration = state->seen.duration_s > 0 ? state->seen.duration_s * AS_US_PER_S
                                                  : state->times.duration_us;
    return (as_mono_time){as_time_add(state->seen_at.us, duration)};
}

/* Three to four quarters of it, so that several replicas do not come at the same moment. */
static int64_t jitter(struct lease_state *state, int64_t us)
{
    int64_t quarter = us / 4;
    return us - (int64_t)as_random_get_below(&state->random, (uint64_t)quarter + 1);
}

static enum lease_order wait_until(struct lease_state *state, int64_t at_us)
{
    state->under_way = LEASE_WAIT;
    state->wake.us = at_us;
    return LEASE_WAIT;
}

static enum lease_order wait_for(struct lease_state *state, struct lease_now now, int64_t us)
{
    return wait_until(state, as_time_add(now.mono.us, jitter(state, us)));
}

/* Waits while another holds the lease: half a retry period, or until it expires. */
static enum lease_order wait_as_follower(struct lease_state *state, struct lease_now now)
{
    int64_t poll = as_time_add(now.mono.us, jitter(state, state->times.retry_us / 2));
    int64_t expiry = get_expiry(state).us;
    if (expiry <= now.mono.us)
        return wait_until(state, poll);
    int64_t apart = state->times.retry_us / 20 - jitter(state, state->times.retry_us / 20);
    return wait_until(state, min_i64(poll, as_time_add(expiry, apart)));
}

static enum lease_order ask(struct lease_state *state, struct lease_now now, enum lease_order order)
{
    state->under_way = order;
    state->asked_at = now;
    return order;
}

static int32_t get_duration_s(const struct lease_state *state)
{
    return (int32_t)((state->times.duration_us + AS_US_PER_S - 1) / AS_US_PER_S);
}

static enum lease_order write_ours(struct lease_state *state, struct lease_now now)
{
    struct as_lease *want = &state->want;
    bool is_renewal = state->is_there && is_ours(state);
    state->has_written = true;
    *want = (struct as_lease){
        .duration_s = get_duration_s(state),
        .acquired = is_renewal ? state->seen.acquired : (as_maybe_time){true, now.wall},
        .renewed = {true, now.wall},
    };
    memcpy(want->holder, state->identity, sizeof(want->holder));
    if (state->is_there)
        want->transitions = state->seen.transitions;
    if (state->is_there && !is_renewal && want->transitions < INT32_MAX)
        want->transitions++;
    return ask(state, now, state->is_there ? LEASE_UPDATE : LEASE_CREATE);
}

/* As client-go does: without a holder, for a second. */
static enum lease_order write_released(struct lease_state *state, struct lease_now now)
{
    state->want = (struct as_lease){
        .duration_s = 1,
        .transitions = state->seen.transitions,
        .acquired = {true, now.wall},
        .renewed = {true, now.wall},
    };
    return ask(state, now, LEASE_UPDATE);
}

static enum lease_order end(struct lease_state *state)
{
    state->under_way = LEASE_WAIT;
    state->wake = AS_MONO_NEVER;
    return LEASE_DONE;
}

/* The object is known: decides what is next. */
static enum lease_order proceed(struct lease_state *state, struct lease_now now)
{
    bool is_mine = state->is_there && is_ours(state);
    if (state->releasing)
        return is_mine ? write_released(state, now) : end(state);
    if (now.mono.us < state->yields_until.us) {
        state->leads = false;
        return is_mine ? write_released(state, now) : wait_as_follower(state, now);
    }
    if (is_mine)
        return write_ours(state, now);
    state->leads = false;
    if (get_expiry(state).us > now.mono.us && !is_ours(state))
        return wait_as_follower(state, now);
    return write_ours(state, now);
}

static void observe(struct lease_state *state, struct lease_now now, const struct as_lease *lease)
{
    state->is_fresh = true;
    state->is_there = lease != NULL;
    if (!lease || (state->is_known && as_lease_is_same(&state->seen, lease)))
        return;
    state->is_known = true;
    state->seen = *lease;
    state->seen_at = now.mono;
}

static void end_term_in_time(struct lease_state *state, struct lease_now now)
{
    if (now.mono.us >= state->until.us || now.wall.us >= state->until_wall.us)
        state->leads = false;
}

void lease_state_init(struct lease_state *state, const char *identity,
                      const struct lease_times *times, uint64_t seed, struct lease_now now)
{
    *state = (struct lease_state){.times = *times, .wake = now.mono, .yields_until = {INT64_MIN}};
    snprintf(state->identity, sizeof(state->identity), "%s", identity);
    as_random_init(&state->random, seed);
}

enum lease_order lease_state_wake(struct lease_state *state, struct lease_now now)
{
    end_term_in_time(state, now);
    if (state->under_way != LEASE_WAIT || now.mono.us < state->wake.us)
        return LEASE_WAIT;
    if (state->leads && state->is_fresh)
        return write_ours(state, now);
    return ask(state, now, LEASE_GET);
}

enum lease_order lease_state_on_read(struct lease_state *state, struct lease_now now,
                                     const struct as_lease *lease)
{
    end_term_in_time(state, now);
    observe(state, now, lease);
    return proceed(state, now);
}

enum lease_order lease_state_on_written(struct lease_state *state, struct lease_now now,
                                        const struct as_lease *lease)
{
    observe(state, now, lease);
    if (state->releasing)
        return end(state);
    if (!is_ours(state)) { /* given back, or a webhook changed the holder */
        state->leads = false;
        return wait_as_follower(state, now);
    }
    if (state->has_doubt) { /* it was sent before the doubt arose */
        state->has_doubt = false;
        return ask(state, now, LEASE_GET);
    }
    state->leads = true;
    state->until.us = as_time_add(state->asked_at.mono.us, state->times.renew_deadline_us);
    state->until_wall.us = as_time_add(state->asked_at.wall.us, state->times.renew_deadline_us);
    end_term_in_time(state, now); /* the answer may have taken long */
    int64_t next = as_time_add(state->asked_at.mono.us, state->times.retry_us);
    int64_t soonest = as_time_add(now.mono.us, state->times.retry_us / 4);
    return wait_until(state, next > soonest ? next : soonest);
}

enum lease_order lease_state_on_failed(struct lease_state *state, struct lease_now now)
{
    end_term_in_time(state, now);
    bool was_write = state->under_way == LEASE_CREATE || state->under_way == LEASE_UPDATE;
    state->has_doubt = false;
    if (was_write)
        state->is_fresh = false;
    return wait_for(state, now, was_write ? state->times.retry_us / 4 : state->times.retry_us / 2);
}

void lease_state_doubt(struct lease_state *state, struct lease_now now)
{
    state->leads = false;
    state->is_fresh = false;
    state->has_doubt = state->under_way == LEASE_CREATE || state->under_way == LEASE_UPDATE;
    state->wake = now.mono;
}

void lease_state_yield(struct lease_state *state, struct lease_now now)
{
    lease_state_doubt(state, now);
    state->yields_until.us = as_time_add(now.mono.us, state->times.duration_us);
}

enum lease_order lease_state_release(struct lease_state *state, struct lease_now now)
{
    if (state->under_way == LEASE_CREATE || state->under_way == LEASE_UPDATE)
        state->is_fresh = false;
    state->leads = false;
    state->releasing = true;
    if (!state->has_written)
        return end(state);
    return state->is_fresh ? proceed(state, now) : ask(state, now, LEASE_GET);
}

bool lease_state_may_act(const struct lease_state *state, struct lease_now now)
{
    return state->leads && now.mono.us < state->until.us && now.wall.us < state->until_wall.us;
}

as_mono_time lease_state_get_wake(const struct lease_state *state)
{
    int64_t wake = state->under_way == LEASE_WAIT ? state->wake.us : INT64_MAX;
    return (as_mono_time){state->leads ? min_i64(wake, state->until.us) : wake};
}
