/*
 * Two or three candidates and one API server in virtual time, thousands of times over: candidates
 * are paused, killed and started again, terminated, requests and answers are lost or late, wall
 * clocks jump, clocks run fast and slow. Never may two act at once; and when all is well again,
 * somebody does, within the lease's duration and two seconds.
 *
 * A late request may be carried out long after its sender has given it up.
 */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/leader_lease.h>

#define S          AS_US_PER_S
#define STEP_US    (S / 20)
#define CANDIDATES 3
#define REQUESTS   64
#define RUNS       400
#define RUN_US     (300 * S)

static const struct lease_times times = {15 * S, 10 * S, 2 * S};

struct request { /* under way, or given up by its sender but not yet by the network */
    bool is_used;
    unsigned owner, number; /* of whom; the owner's request of that number */
    enum lease_order order;
    struct as_lease lease;
    uint64_t version;  /* what the update rests on */
    int64_t apply_at;  /* by the server; INT64_MAX: never */
    int64_t answer_at; /* INT64_MAX: never */
    bool is_applied;
    int status; /* 0 done, 404, 409 */
    bool has_object;
    struct as_lease answer;
    uint64_t answer_version;
};

struct candidate {
    struct lease_state state;
    bool is_alive, is_paused, is_released;
    int64_t mono_offset, wall_offset;
    double rate; /* of its clocks */
    int64_t timeout_at;
    bool is_waiting; /* for the answer to request `number` */
    unsigned number;
    uint64_t version; /* of the object as it was read last */
    char identity[32];
};

struct world {
    struct as_random random;
    int64_t time; /* true */
    bool exists, is_healthy;
    struct as_lease lease;
    uint64_t version, revision;
    unsigned lives;
    size_t count;
    struct candidate candidates[CANDIDATES];
    struct request requests[REQUESTS];
};

static bool chance(struct world *world, unsigned in)
{
    return as_random_get_below(&world->random, in) == 0;
}

static int64_t between(struct world *world, int64_t low, int64_t high)
{
    return low + (int64_t)as_random_get_below(&world->random, (uint64_t)(high - low + 1));
}

static struct lease_now look(const struct world *world, const struct candidate *candidate)
{
    int64_t local = (int64_t)((double)world->time * candidate->rate);
    return (struct lease_now){{local + candidate->mono_offset}, {local + candidate->wall_offset}};
}

static void start(struct world *world, struct candidate *candidate)
{
    candidate->is_alive = true;
    candidate->is_paused = candidate->is_waiting = candidate->is_released = false;
    snprintf(candidate->identity, sizeof(candidate->identity), "life-%u", ++world->lives);
    lease_state_init(&candidate->state, candidate->identity, &times, as_random_get(&world->random),
                     look(world, candidate));
}

static void send(struct world *world, unsigned index, enum lease_order order)
{
    struct candidate *candidate = &world->candidates[index];
    if (order == LEASE_DONE)
        candidate->is_released = true;
    if (order == LEASE_WAIT || order == LEASE_DONE)
        return;
    struct request *request = NULL;
    for (size_t i = 0; i < REQUESTS && !request; i++) {
        if (!world->requests[i].is_used)
            request = &world->requests[i];
    }
    cr_assert_not_null(request);
    *request = (struct request){
        .is_used = true,
        .owner = index,
        .number = ++candidate->number,
        .order = order,
        .lease = candidate->state.want,
        .version = candidate->version,
        .apply_at = world->time + between(world, 1000, 50000),
    };
    request->answer_at = request->apply_at + between(world, 1000, 50000);
    candidate->is_waiting = true;
    candidate->timeout_at = world->time + times.renew_deadline_us / 2;
    if (world->is_healthy)
        return;
    if (chance(world, 8))
        request->apply_at = request->answer_at = INT64_MAX; /* lost on the way */
    else if (chance(world, 8))
        request->answer_at = INT64_MAX; /* applied, and the answer is lost */
    else if (chance(world, 8))
        request->answer_at += between(world, 0, 12 * S);
    else if (chance(world, 8)) { /* stuck on the way, and applied at last */
        request->apply_at += between(world, 0, 40 * S);
        request->answer_at = request->apply_at + 1000;
    }
}

static void apply(struct world *world, struct request *request)
{
    request->is_applied = true;
    bool is_write = request->order != LEASE_GET;
    if (request->order == LEASE_CREATE)
        request->status = world->exists ? 409 : 0;
    else if (!world->exists)
        request->status = 404;
    else if (request->order == LEASE_UPDATE && request->version != world->version)
        request->status = 409;
    if (request->status == 0 && is_write) {
        world->exists = true;
        world->version = ++world->revision;
        world->lease = request->lease;
    }
    request->has_object = request->status == 0;
    request->answer = world->lease;
    request->answer_version = world->version;
}

static void deliver(struct world *world, struct request *request)
{
    struct candidate *candidate = &world->candidates[request->owner];
    request->is_used = false;
    if (!candidate->is_alive || !candidate->is_waiting || candidate->number != request->number)
        return;
    candidate->is_waiting = false;
    struct lease_now now = look(world, candidate);
    enum lease_order order;
    if (request->has_object)
        candidate->version = request->answer_version;
    if (request->status == 0 && request->order == LEASE_GET)
        order = lease_state_on_read(&candidate->state, now, &request->answer);
    else if (request->status == 404 && request->order == LEASE_GET)
        order = lease_state_on_read(&candidate->state, now, NULL);
    else if (request->status == 0)
        order = lease_state_on_written(&candidate->state, now, &request->answer);
    else
        order = lease_state_on_failed(&candidate->state, now);
    send(world, request->owner, order);
}

static void move_requests(struct world *world)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        struct request *request = &world->requests[i];
        if (!request->is_used)
            continue;
        if (!request->is_applied && request->apply_at <= world->time)
            apply(world, request);
        if (request->is_applied && request->answer_at == INT64_MAX)
            request->is_used = false;
        else if (!request->is_applied && request->apply_at == INT64_MAX)
            request->is_used = false;
        else if (request->is_applied && request->answer_at <= world->time &&
                 !world->candidates[request->owner].is_paused)
            deliver(world, request);
    }
}

static void run_candidate(struct world *world, unsigned index)
{
    struct candidate *candidate = &world->candidates[index];
    if (!candidate->is_alive || candidate->is_paused || candidate->is_released)
        return;
    struct lease_now now = look(world, candidate);
    if (candidate->is_waiting && candidate->timeout_at <= world->time) {
        candidate->is_waiting = false;
        send(world, index, lease_state_on_failed(&candidate->state, now));
    } else if (lease_state_get_wake(&candidate->state).us <= now.mono.us) {
        send(world, index, lease_state_wake(&candidate->state, now));
    }
}

static void make_trouble(struct world *world)
{
    struct candidate *candidate =
        &world->candidates[as_random_get_below(&world->random, world->count)];
    switch (as_random_get_below(&world->random, 9)) {
    case 0:
    case 1: candidate->is_paused = !candidate->is_paused; break;
    case 2: candidate->is_alive = false; break;
    case 3: candidate->wall_offset += between(world, -3600 * S, 3600 * S); break;
    case 4: /* SIGTERM */
        if (candidate->is_alive && !candidate->is_paused && !candidate->state.releasing) {
            candidate->is_waiting = false;
            send(world, (unsigned)(candidate - world->candidates),
                 lease_state_release(&candidate->state, look(world, candidate)));
        }
        break;
    case 5: /* it cannot write its state */
        if (candidate->is_alive && !candidate->is_paused && !candidate->state.releasing)
            lease_state_yield(&candidate->state, look(world, candidate));
        break;
    default:
        if (!candidate->is_alive || candidate->is_released)
            start(world, candidate);
        break;
    }
}

static int find_leader(const struct world *world, uint64_t seed)
{
    int found = -1;
    for (size_t i = 0; i < world->count; i++) {
        const struct candidate *candidate = &world->candidates[i];
        /* one that is paused could go on at any moment, and looks first */
        if (!candidate->is_alive || !lease_state_may_act(&candidate->state, look(world, candidate)))
            continue;
        cr_assert_lt(found, 0, "seed %lu: %s and %s may act at %ld us", (unsigned long)seed,
                     world->candidates[found].identity, candidate->identity, (long)world->time);
        found = (int)i;
    }
    return found;
}

static void open_world(struct world *world, uint64_t seed)
{
    *world = (struct world){.time = 1000 * S};
    as_random_init(&world->random, seed);
    world->count = 2 + as_random_get_below(&world->random, 2);
    for (size_t i = 0; i < world->count; i++) {
        struct candidate *candidate = &world->candidates[i];
        candidate->rate = 1 + (double)between(world, -10, 10) / 100;
        candidate->mono_offset = between(world, 0, 100000 * S);
        candidate->wall_offset = between(world, 0, INT64_C(1000000000) * S);
        start(world, candidate);
    }
}

static void step(struct world *world)
{
    world->time += STEP_US;
    move_requests(world);
    for (unsigned i = 0; i < world->count; i++)
        run_candidate(world, i);
}

/* From the moment on when nothing is in the way any more. */
static void check_that_somebody_leads(struct world *world, uint64_t seed)
{
    world->is_healthy = true;
    for (size_t i = 0; i < REQUESTS; i++)
        world->requests[i].is_used = false;
    for (size_t i = 0; i < world->count; i++) {
        struct candidate *candidate = &world->candidates[i];
        candidate->is_paused = false;
        if (!candidate->is_alive || candidate->state.releasing)
            start(world, candidate);
        candidate->state.yields_until.us = INT64_MIN;
    }
    /* an answer that does not come is waited for first, half a renew deadline; clocks may be slow
     */
    int64_t limit = world->time + (times.duration_us + 2 * S) * 10 / 9 + 5 * S;
    while (find_leader(world, seed) < 0) {
        cr_assert_lt(world->time, limit, "seed %lu: nobody leads", (unsigned long)seed);
        step(world);
    }
}

Test(lease_world, never_two_may_act_and_in_the_end_one_does)
{
    static struct world world;
    uint64_t acted = 0, looked = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        open_world(&world, seed);
        while (world.time < 1000 * S + RUN_US) {
            step(&world);
            if (chance(&world, 60))
                make_trouble(&world);
            looked++;
            acted += find_leader(&world, seed) >= 0;
        }
        check_that_somebody_leads(&world, seed);
    }
    cr_log_info("%lu of %lu looks found a leader", (unsigned long)acted, (unsigned long)looked);
    cr_expect_gt(acted, looked / 5, "there is a leader at times, or this proves nothing");
    cr_expect_lt(acted, looked * 9 / 10, "and none at times");
}

/* True clocks; the leader dies at a moment of chance; measured in virtual time. */
Test(lease_world, a_dead_leader_is_followed_within_its_duration_and_two_seconds)
{
    static struct world world;
    int64_t longest = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        open_world(&world, seed);
        world.is_healthy = true;
        for (size_t i = 0; i < world.count; i++)
            world.candidates[i].rate = 1;
        for (size_t i = 0; i < world.count; i++)
            start(&world, &world.candidates[i]);
        int64_t run_until = world.time + between(&world, 10 * S, 40 * S);
        while (world.time < run_until)
            step(&world);
        int leader = find_leader(&world, seed);
        cr_assert_geq(leader, 0);
        world.candidates[leader].is_alive = false;
        int64_t died = world.time;
        while (find_leader(&world, seed) < 0)
            step(&world);
        if (world.time - died > longest)
            longest = world.time - died;
    }
    cr_log_info("longest time without a leader: %ld ms", (long)(longest / 1000));
    cr_expect_lt(longest, times.duration_us + 2 * S);
    cr_expect_gt(longest, times.renew_deadline_us);
}

Test(lease_world, a_lease_given_back_is_taken_within_a_retry_period)
{
    static struct world world;
    int64_t longest = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        open_world(&world, seed);
        world.is_healthy = true;
        int64_t run_until = world.time + between(&world, 10 * S, 40 * S);
        while (world.time < run_until)
            step(&world);
        int leader = find_leader(&world, seed);
        cr_assert_geq(leader, 0);
        struct candidate *candidate = &world.candidates[leader];
        candidate->is_waiting = false;
        send(&world, (unsigned)leader,
             lease_state_release(&candidate->state, look(&world, candidate)));
        int64_t released = world.time;
        while (find_leader(&world, seed) < 0)
            step(&world);
        if (world.time - released > longest)
            longest = world.time - released;
    }
    cr_log_info("longest time without a leader: %ld ms", (long)(longest / 1000));
    cr_expect_lt(longest, times.retry_us);
}
