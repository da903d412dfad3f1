/*
 * The engine in a small synchronous world: a store that commits at once, targets that answer at
 * once, a clock that a test moves. What the engine says is kept as a transcript, one phrase an
 * effect, which tests compare as text:
 *
 *   said queued; opened; answered; observe web; decided web 4>6 scaled by slow; scale web 4>6;
 *   acted web 4>6 applied
 *
 * State goes through the real codec into the in-memory store; a restart reads it from there.
 */
#ifndef ALERTSCALER_TESTS_ENGINE_HARNESS_H
#define ALERTSCALER_TESTS_ENGINE_HARNESS_H

#include <criterion/criterion.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/engine/engine.h>

#include "../../support/fleet.h"
#include "../../support/rule_spec.h"
#include "../../support/store_memory.h"

#define HARNESS_TARGETS 16
#define HARNESS_QUEUE   128

struct virtual_target {
    char id[128];
    int32_t size, min, max; /* own bounds: -1 none */
    unsigned version;
    bool in_progress, has_no_version;
    bool names_instances; /* a node group's are */
    bool is_relative;
    int32_t missing;        /* of `size`: instances that are not there, or not ready */
    bool pods_unknown;      /* they are not listed where they are asked for */
    const char *uid;        /* of the object; NULL: it has none */
    const char *words;      /* of the answer to a request; NULL: none */
    bool has_no_capacity;   /* more are asked for in vain: they are missing */
    const char *backing[4]; /* the resources behind a node group, up to a NULL */
    const char *template_;  /* of a node group, where nodes are asked for; NULL: none is seen */
    bool is_hanging;        /* nothing asked of it is answered until it is cleared */
    bool is_slow;           /* likewise, requests of a size only */
    enum as_reason failure; /* where set, what its observation ends with */
    struct as_resize_seen resize;   /* of a container's resource */
    struct as_rollout_seen rollout; /* of a workload */
    const char *manager;            /* of its size, told where it is asked for; NULL: not known */
};

struct scale_script { /* what becomes of the next request, instead of being done */
    enum as_reason outcome;
    bool is_ambiguous;
    bool is_done; /* the size is set all the same */
    bool is_shortage;
    bool is_accepted; /* it was, and failed afterwards */
    bool is_in_vain;  /* of a decrease: it has removed nobody */
    int32_t returned; /* so many nodes that were to leave are back in service */
    int64_t retry_after_us;
};

struct query_script { /* the answer to a query of this text; without one there is no data */
    const char *text;
    struct as_query_result result;
};

struct queued_call {
    bool is_scale, is_query, with_pods, with_nodes, with_rollout;
    bool is_look; /* an observation with a snapshot */
    bool has_own_size;
    int32_t own_size;
    as_mono_time at;
    uint64_t call_id;
    char query[256];
    char id[128];
    struct as_scale_request request;
    struct as_pool_request pool; /* of an observation; without members: none */
    struct as_arena *texts;      /* of `pool` and of the request's names; NULL */
};

struct test_listed { /* an alert of Alertmanager's list */
    const char *labels;
    int64_t starts;
    bool is_suppressed;
    const char *annotation;
    const char *receivers; /* separated by commas; NULL: "scaler" */
    int64_t updated;       /* by Alertmanager's clock; 0: with every list anew, Prometheus lives */
    const char *generator_url; /* NULL: not given */
    const char *muted;         /* the receivers that time intervals mute, separated by commas */
    int64_t wait;              /* seconds, of all receivers; -1: never */
    bool is_inhibited;
};

struct staged_commit {
    uint64_t call_id;
    struct as_store_change changes[64];
    size_t count;
};

struct harness;
typedef void harness_request_fn(struct harness *harness, const struct queued_call *call,
                                bool is_done);

/* Hears what a pool's look asks for, and makes its snapshot and plan. */
typedef void harness_ask_fn(struct harness *harness, const char *name,
                            const struct as_pool_request *request);
typedef void harness_look_fn(struct harness *harness, const char *name,
                             struct as_observation *observation);

struct harness {
    struct as_engine *engine;
    struct as_engine_config config;
    struct as_ruleset *ruleset;
    as_mono_time mono;
    as_wall_time wall;
    const char *boot;
    struct as_store_memory *memory;
    struct as_store *store;
    struct virtual_target targets[HARNESS_TARGETS];
    size_t target_count;
    struct as_buf transcript, told;
    uint64_t requests, notifications;
    const char *credential; /* of the next notifications; NULL: "" */

    struct staged_commit staged; /* of the effects so far */
    struct staged_commit commits[HARNESS_QUEUE];
    size_t commit_count;
    unsigned repeats;     /* commits of repeats alone, so far */
    unsigned target_puts; /* states of targets that were written, so far */
    struct queued_call calls[HARNESS_QUEUE];
    size_t call_count;
    struct fleet *fleet;      /* what pools see, and whose groups are the node groups; NULL: none */
    uint64_t list_call_id;    /* of the list that is asked for; 0: none is */
    uint64_t objects_call_id; /* of the list of objects that is asked for; 0: none is */
    const struct test_listed *listed;
    size_t listed_count;
    const char *list_error;
    size_t list_unread;    /* alerts that could not be read */
    bool list_is_anew;     /* an Alertmanager has been started */
    bool learns_receivers; /* alertmanager.receivers is not given; else it names all of the tests */
    bool hold_queries;     /* until it is cleared */
    bool hold_commits, hold_calls, hold_lists; /* until harness_settle after they are cleared */

    enum as_reason observation; /* of every target; AS_REASON_APPLIED: the size */
    int64_t observation_retry_after_us;
    struct scale_script scripts[8];
    size_t script_count;
    struct query_script queries[8];
    const struct as_pod_seen *pods; /* of every target, where they are asked for */
    size_t pod_count;
    harness_request_fn *on_request; /* where set, hears what becomes of every request */
    void *listener;
    harness_ask_fn *on_ask;
    harness_look_fn *on_look;
    char last_pool_decision[AS_ULID_SIZE]; /* of a pool, for a change */
    char last_shared[AS_ULID_SIZE];        /* the pool's decision that the last one names */
    struct scale_script always;            /* where set, what becomes of every request */
    unsigned deadlines;                    /* steps for a deadline so far */

    char last_order[AS_ULID_SIZE]; /* the last decision for a change */
    char last_command[AS_ULID_SIZE];
    char last_request[AS_ULID_SIZE]; /* for an approval */
    char last_void[64];              /* why the last one that became void did */
    char last_message[512];          /* of the last action or command */
    char last_sender[64];            /* of the last action's command */
    as_maybe_time last_later_than;   /* of the last request that set a size */
    unsigned misnamed_decisions;     /* actions that named another */
    uint32_t last_tries;             /* of the last action */
    as_maybe_time last_next_try;
    struct as_give_back_note
        last_step;       /* of the last decision; zeros: none. Without its incident */
    bool last_has_proof; /* it lacks a proof */
    char last_proof_query[128];
    as_maybe_time last_reported;
    int64_t last_every_us;
    uint64_t last_notification_total;
    size_t last_notification_count;
    size_t last_sample_count;                   /* of the last decision's proposals */
    char last_error[128];                       /* the first of these; "": none has one */
    enum as_in_progress_by last_in_progress_by; /* of the last decision that named one */
    char last_holder[256];    /* the name of who holds the last decision; "": none */
    char last_templates[512]; /* that came with the last observation: "name=text;" */
};

/* An alert of a test: labels as "name=value,...", alertname first; times in seconds on the wall
 * clock of the test, which starts at 1000. */
struct test_alert {
    const char *labels;
    int64_t starts;
    bool is_resolved;
    int64_t ends; /* 0: now */
    const char *annotation;
    int64_t starts_us;                        /* more than `starts` */
    uint64_t fingerprint;                     /* as the sender says; 0: the labels' */
    const char *generator_url, *external_url; /* external: of the first alert; NULL: not given */
};

void harness_start(struct harness *harness, const struct spec *spec); /* and takes the transcript */
void harness_stop(struct harness *harness);                           /* frees everything */

/* One notification; all alerts in it. Where there is no room for it nobody is told but the
 * transcript. */
void harness_notify(struct harness *harness, const char *receiver, const struct test_alert *alerts,
                    size_t count);
void fire(struct harness *harness, const char *labels, int64_t starts);
void resolve(struct harness *harness, const char *labels, int64_t starts);

/* The answer to the list of objects that is under way. */
void harness_answer_objects(struct harness *harness, const struct as_object_list *objects);
/* What Alertmanager lists from now on; borrowed. */
void harness_list(struct harness *harness, const struct test_listed *alerts, size_t count);

/* Moves both clocks, waking the engine at its deadlines on the way. */
void tick(struct harness *harness, int64_t seconds);
/* Delivers commits and answers that were held. */
void harness_settle(struct harness *harness);
/* After an alert with `hold_calls` set: on to the request that sets the size, which is held. */
void harness_settle_to_request(struct harness *harness);
/* Frees the engine with all that is under way, and starts one from what was committed. */
void harness_crash(struct harness *harness, int64_t gap_seconds);
void harness_reload(struct harness *harness, const struct spec *spec);
void harness_send_stop(struct harness *harness);
/* An operator's; `who` and `reason` may be left out. */
void harness_order(struct harness *harness, struct as_operator_command order);
void harness_halt(struct harness *harness, const char *reason); /* NULL: no longer */

struct virtual_target *harness_target(struct harness *harness, const char *name);
void harness_script(struct harness *harness, struct scale_script script);

/* The transcript since the last call; good until the next call. */
const char *said(struct harness *harness);
bool has(const char *text, const char *part);
unsigned count(const char *text, const char *part); /* how often it stands there */

/* A started harness as a local variable. */
#define WITH(name, spec)                                                                           \
    struct harness name = {0};                                                                     \
    harness_start(&(name), &(spec))

#define cr_said(harness, text) cr_assert_str_eq(said(harness), text)

#endif
