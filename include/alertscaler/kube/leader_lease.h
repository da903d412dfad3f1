/*
 * Leader election among replicas with a Lease in the cluster, by client-go's protocol: kubectl
 * shows the Lease, and other tools understand it. Also the state machine of the protocol, and the
 * leader of a single replica, which needs no Lease.
 */
#ifndef ALERTSCALER_KUBE_LEADER_LEASE_H
#define ALERTSCALER_KUBE_LEADER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/leader.h>

struct as_lease_leader_config { /* texts are copied */
    const char *namespace_, *name;
    const char *identity; /* unique to this process; not the pod's name, which a restart keeps */
    int64_t duration_us, renew_deadline_us, retry_us; /* see state.lease */
    uint64_t seed;
};

/* Takes over `access`. `env` is borrowed; give it an HTTP client of its own, so that a renewal
 * never queues behind other requests. */
struct as_leader *as_lease_leader_new(const struct as_lease_leader_config *config,
                                      struct as_kube_access *access,
                                      const struct as_access_env *env) AS_MUST_USE;

/*
 * Leader election by a Lease, with client-go's protocol, as a pure state machine: events and their
 * times go in, the next request to the API server comes out. It does no I/O and reads no clock.
 *
 * Another replica's lease is judged only by this machine's monotonic clock: it has expired when its
 * record was seen unchanged for the duration in the record. The times in the record are for people.
 *
 * Our own term ends `renew_deadline` after the last answered request was sent; that is some seconds
 * before another replica may take the lease. The wall clock may end the term too: if the machine
 * was suspended and its monotonic clock stopped, the wall clock may have been corrected since.
 *
 * Between the answer to one order and the next event no request is running. Each order except
 * LEASE_WAIT and LEASE_DONE is carried out exactly once and answered by exactly one event.
 */

struct lease_times { /* duration > renew_deadline > 1.2 retry */
    int64_t duration_us, renew_deadline_us, retry_us;
};

struct lease_now {
    as_mono_time mono;
    as_wall_time wall;
};

enum lease_order {
    LEASE_WAIT,   /* wait until lease_state_get_wake */
    LEASE_GET,    /* read the object */
    LEASE_CREATE, /* create it, with the record `want` */
    LEASE_UPDATE, /* write `want` over the object, on condition that it is as last read */
    LEASE_DONE    /* after lease_state_release: given back, or not ours */
};

struct lease_state {
    char identity[AS_LEASE_HOLDER_SIZE];
    struct lease_times times;
    struct as_random random;

    bool is_known;        /* a record was read once */
    bool is_there;        /* as far as known, the object exists */
    bool is_fresh;        /* no known change since it was read */
    bool has_written;     /* or tried to: the object may name us */
    struct as_lease seen; /* the record as last seen */
    as_mono_time seen_at; /* when it was first seen like this */

    struct as_leader_term terms[AS_LEADER_TERMS_MAX]; /* of other processes, the oldest first */
    size_t term_count;
    uint64_t terms_seen;
    char term_holder[AS_LEASE_HOLDER_SIZE]; /* of the last term, while it goes on; else "" */

    bool leads, releasing;
    as_mono_time yields_until; /* others may hold it until then; INT64_MIN: not yielding */
    bool has_doubt;            /* about the write that is running: its answer starts no term */
    as_mono_time until;        /* of our term */
    as_wall_time until_wall;

    enum lease_order under_way; /* LEASE_WAIT: no request */
    struct lease_now asked_at;
    struct as_lease want;
    as_mono_time wake;
};

void lease_state_init(struct lease_state *state, const char *identity,
                      const struct lease_times *times, uint64_t seed, struct lease_now now);

/* The timer for lease_state_get_wake fired (or anything else happened). */
enum lease_order lease_state_wake(struct lease_state *state, struct lease_now now) AS_MUST_USE;

/* Answers LEASE_GET: the record; NULL: the object does not exist. */
enum lease_order lease_state_on_read(struct lease_state *state, struct lease_now now,
                                     const struct as_lease *lease) AS_MUST_USE;
/* LEASE_CREATE or LEASE_UPDATE succeeded; the record as the server returned it. */
enum lease_order lease_state_on_written(struct lease_state *state, struct lease_now now,
                                        const struct as_lease *lease) AS_MUST_USE;
/* The request failed, was refused, or its answer was lost: it may have been carried out. Always
 * waits. */
enum lease_order lease_state_on_failed(struct lease_state *state, struct lease_now now) AS_MUST_USE;

/* Ends the term; the next begins only after the record was read and written again. */
void lease_state_doubt(struct lease_state *state, struct lease_now now);

/* Ends the term, gives the lease back, and does not take it for one lease duration. Waiting
 * replicas see it much sooner. */
void lease_state_yield(struct lease_state *state, struct lease_now now);

/* Gives the lease back. The caller first cancels the running request, which is not answered. */
enum lease_order lease_state_release(struct lease_state *state, struct lease_now now) AS_MUST_USE;

bool lease_state_may_act(const struct lease_state *state, struct lease_now now);
as_mono_time lease_state_get_wake(const struct lease_state *state);

/*
 * The leader of a single replica: it leads from the first turn on, forever.
 */

/* `identity` is copied. */
struct as_leader *as_always_leader_new(const char *identity, struct as_loop *loop) AS_MUST_USE;

#endif
