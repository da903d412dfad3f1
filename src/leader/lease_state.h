/*
 * Leader election by a Lease, with client-go's protocol, as a pure state machine: what has happened
 * and when goes in, what is to be asked of the API server next comes out. It does no I/O and reads
 * no clock.
 *
 * Another's lease is judged by this machine's monotonic clock alone: it has run out when its record
 * has not been seen to change for as long as the record itself says. The times that are written in
 * it are for people.
 *
 * A term of our own ends `renew_deadline` after the moment before the last request that was
 * answered was sent, so some seconds before anybody else may take the lease. It ends as soon by the
 * wall clock: where a machine was stopped and its monotonic clock with it, the wall clock may have
 * been set right since.
 *
 * Between the answer to one order and the next event nothing is under way; an order other than
 * LEASE_WAIT and LEASE_DONE is carried out exactly once and answered by exactly one event.
 */
#ifndef ALERTSCALER_SRC_LEADER_LEASE_STATE_H
#define ALERTSCALER_SRC_LEADER_LEASE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>
#include <alertscaler/wire/lease.h>

struct lease_times { /* duration > renew_deadline > 1.2 retry */
    int64_t duration_us, renew_deadline_us, retry_us;
};

struct lease_now {
    as_mono_time mono;
    as_wall_time wall;
};

enum lease_order {
    LEASE_WAIT,   /* until lease_state_get_wake */
    LEASE_GET,    /* read the object */
    LEASE_CREATE, /* make it, with the record `want` */
    LEASE_UPDATE, /* write `want` over the object as it was read last, and only over that */
    LEASE_DONE    /* after lease_state_release: it is given back, or was not ours */
};

struct lease_state {
    char identity[AS_LEASE_HOLDER_SIZE];
    struct lease_times times;
    struct as_random random;

    bool is_known;        /* there was a record once */
    bool is_there;        /* as far as is known there is an object */
    bool is_fresh;        /* nothing is known to have changed since it was read */
    bool has_written;     /* or tried to: the object may name us */
    struct as_lease seen; /* the record as it was last seen */
    as_mono_time seen_at; /* when it was first seen so */

    bool leads, releasing;
    as_mono_time yields_until; /* others may have it till then; INT64_MIN: we do not yield */
    bool has_doubt;            /* about the write that is under way: its answer gives no term */
    as_mono_time until;        /* of our term */
    as_wall_time until_wall;

    enum lease_order under_way; /* LEASE_WAIT: nothing */
    struct lease_now asked_at;
    struct as_lease want;
    as_mono_time wake;
};

void lease_state_init(struct lease_state *state, const char *identity,
                      const struct lease_times *times, uint64_t seed, struct lease_now now);

/* The timer that was set for lease_state_get_wake went off (or anything else happened). */
enum lease_order lease_state_wake(struct lease_state *state, struct lease_now now) AS_MUST_USE;

/* Answers to LEASE_GET: the record; NULL: there is no such object. */
enum lease_order lease_state_on_read(struct lease_state *state, struct lease_now now,
                                     const struct as_lease *lease) AS_MUST_USE;
/* LEASE_CREATE or LEASE_UPDATE was carried out; the record as the server gave it back. */
enum lease_order lease_state_on_written(struct lease_state *state, struct lease_now now,
                                        const struct as_lease *lease) AS_MUST_USE;
/* The request failed, was refused, or its answer was lost: it may have been carried out. Waits,
 * always. */
enum lease_order lease_state_on_failed(struct lease_state *state, struct lease_now now) AS_MUST_USE;

/* Ends the term; another begins only after the record was read and written again. */
void lease_state_doubt(struct lease_state *state, struct lease_now now);

/* Ends the term, gives the lease back, and does not take it for its duration: others that wait see
 * it long before. */
void lease_state_yield(struct lease_state *state, struct lease_now now);

/* Gives the lease back; what was under way is cancelled by the caller before, and not answered. */
enum lease_order lease_state_release(struct lease_state *state, struct lease_now now) AS_MUST_USE;

bool lease_state_may_act(const struct lease_state *state, struct lease_now now);
as_mono_time lease_state_get_wake(const struct lease_state *state);

#endif
