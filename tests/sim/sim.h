/*
 * The simulator's parts. One world a seed: everything that happens is an event of its queue, every
 * choice comes from its random numbers, so that a seed reproduces everything.
 *
 *   world.c         time, events, trace, verdict
 *   rules.c         random rule sets
 *   alertmanager.c  what fires, and two peers that say so, at least once and in no order
 *   server.c        targets behind an unreliable API server, and other people who change them
 *   fields.c        targets that are a field of an object, in a unit
 *   rivals.c        another controller, which sets sizes back
 *   source.c        monitoring: values, guards, and the list of what fires
 *   people.c        receivers of `notify`, and what they were told against the log
 *   approvals.c     people who answer what waits for them
 *   policies.c      targets of scaling policies, which come, go, break, are paused and return
 *   operators.c     people who pause, resume, scale and unlock, and set the kill switch
 *   pools.c         clusters: pods, nodes, node groups whose providers fail (pools.h)
 *   daemon.c        the real shell and storage: started, stopped, reloaded, and its driver
 *   faults.c        what befalls it: kills, power cuts, full disks, clocks, another leader
 *   trouble.c       counts of all that went wrong
 *   check.c         the promises, checked as things happen
 *   check_orders.c  the promises to operators, checked likewise
 *   check_approvals.c  what waits for people: checked as it happens, and in the log
 *   check_rest.c    what is set goes the way that was asked for, and then it rests
 *   check_silence.c what dead monitoring may cost, checked likewise
 *   check_pools.c   what is promised of nodes, checked likewise
 *   check_log.c     the promises, checked in the action log afterwards
 *   run.c           one seed: trouble, then calm
 *   stories.c       one story without trouble, and again with a kill, or other rules for a while,
 *                   at each boundary of a commit and a request
 */
#ifndef ALERTSCALER_TESTS_SIM_H
#define ALERTSCALER_TESTS_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <bsd/sys/tree.h>
#include <jansson.h>

#include <alertscaler/base/random.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/runtime/shell.h>

#include "../support/audit_memory.h"
#include "../support/rule_spec.h"
#include "../support/store_memory.h"

#define SECOND AS_US_PER_S
#define MINUTE AS_US_PER_MIN

/* ---- world.c */

struct world;
typedef void event_fn(struct world *world, void *subject, uint64_t argument);

struct event {
    RB_ENTRY(event) link;
    int64_t at;
    uint64_t order;
    event_fn *happen;
    void *subject;
    uint64_t argument;
};
RB_HEAD(event_tree, event);
RB_PROTOTYPE(event_tree, event, link, compare_events)

/*
 * Random numbers. Draw into a local first where an expression, an argument list or an initializer
 * needs two: the order of evaluation is the compiler's. A condition and its branches are in order.
 */
int64_t between(struct world *world, int64_t low, int64_t high); /* both included */
bool chance(struct world *world, int64_t per_mille);
int64_t latency(struct world *world); /* mostly milliseconds, now and then seconds */
struct event *later(struct world *world, int64_t delay, event_fn *happen, void *subject,
                    uint64_t argument);
void trace(struct world *world, const char *format, ...) AS_PRINTF(2, 3);
void fail(struct world *world, const char *format, ...) AS_PRINTF(2, 3); /* the first one counts */

/* ---- trouble.c */

enum trouble {
    TROUBLE_COMMIT_FAILED,
    TROUBLE_COMMIT_KEPT,
    TROUBLE_LOG_FAILED,
    TROUBLE_LINE_TORN,
    TROUBLE_LINES_LOST,
    TROUBLE_REPEATS_AT_RISK,
    TROUBLE_FULL_STORE,
    TROUBLE_FULL_LOG,
    TROUBLE_FULL_BOTH,
    TROUBLE_START_FAILED,
    TROUBLE_KILLED, /* with those that follow: by phase */
    TROUBLE_KILLED_COMMITTING,
    TROUBLE_KILLED_INTENT,
    TROUBLE_KILLED_SENT,
    TROUBLE_CRASH_LOOP,
    TROUBLE_POWER_CUT,
    TROUBLE_REBOOT,
    TROUBLE_STOP,
    TROUBLE_RELOAD,
    TROUBLE_RELOAD_COMMITTING,
    TROUBLE_RELOAD_INTENT,
    TROUBLE_RELOAD_SENT,
    TROUBLE_RELOAD_UNDONE,
    TROUBLE_CLOCK_SECONDS,
    TROUBLE_CLOCK_HOURS,
    TROUBLE_CLOCK_YEARS_ON,
    TROUBLE_CLOCK_YEARS_BACK,
    TROUBLE_CLOCK_BEFORE_1970,
    TROUBLE_CLOCK_RIGHT,
    TROUBLE_REFUSED,
    TROUBLE_ENDED_BADLY,
    TROUBLE_ENDED_BADLY_UNDONE,
    TROUBLE_SILENT,
    TROUBLE_DONE_SILENTLY,
    TROUBLE_DONE_LATE,
    TROUBLE_STALE_READ,
    TROUBLE_STALE_READ_OF_OURS,
    TROUBLE_OLDER_READ,
    TROUBLE_ROLLOUT,
    TROUBLE_SIZE_CHANGED,
    TROUBLE_FIELD_SET,
    TROUBLE_FIELD_ADDED,
    TROUBLE_FIELD_CONFLICT,
    TROUBLE_SET_BACK,
    TROUBLE_CONTENDED,
    TROUBLE_CONTENDED_OVER,
    TROUBLE_CONTENDED_RESTORED,
    TROUBLE_TARGET_GONE,
    TROUBLE_TARGET_MADE_ANEW,
    TROUBLE_QUERY_FAILED,
    TROUBLE_LIST_FAILED,
    TROUBLE_LIST_CUT,
    TROUBLE_MUTED,
    TROUBLE_MUTED_UNMARKED,
    TROUBLE_ALERTMANAGER_RESTARTED,
    TROUBLE_MONITORING_DEAD,
    TROUBLE_PROMETHEUS_DEAD,
    TROUBLE_STEP_IN_SILENCE,
    TROUBLE_ALWAYS_UP,
    TROUBLE_ALWAYS_DOWN,
    TROUBLE_ALWAYS_NODES,
    TROUBLE_HELD_IN_SILENCE,
    TROUBLE_CUT_OFF,
    TROUBLE_PAUSED,
    TROUBLE_PAUSED_INTENT,
    TROUBLE_PAUSED_SENT,
    TROUBLE_TWO_LEADERS,
    TROUBLE_FORMER_COMMIT,
    TROUBLE_FORMER_REQUEST,
    TROUBLE_FORMER_REQUEST_LATE,
    TROUBLE_FORMER_ANSWER,
    TROUBLE_FORMER_ASKED,
    TROUBLE_ORDER, /* with those that follow: by phase */
    TROUBLE_ORDER_COMMITTING,
    TROUBLE_ORDER_INTENT,
    TROUBLE_ORDER_SENT,
    TROUBLE_ORDER_PAUSE,
    TROUBLE_ORDER_PAUSE_ALL,
    TROUBLE_ORDER_PAUSE_ONE_WAY,
    TROUBLE_ORDER_FLOOR,
    TROUBLE_ORDER_FLOOR_BACK,
    TROUBLE_ORDER_RESUME,
    TROUBLE_ORDER_SCALE,
    TROUBLE_ORDER_FORCED,
    TROUBLE_ORDER_UNLOCK,
    TROUBLE_ORDER_REFUSED,
    TROUBLE_ORDER_UNANSWERED,
    TROUBLE_ORDER_OF_FORMER,
    TROUBLE_ORDERED_IN_PAUSE,
    TROUBLE_PAUSE_OVER,
    TROUBLE_OTHER_WAY_IN_PAUSE,
    TROUBLE_FLOOR_OVER,
    TROUBLE_FLOOR_RESTORED,
    TROUBLE_FLOOR_HELD,
    TROUBLE_PAUSE_RESTORED,
    TROUBLE_PAUSE_HELD_BACK,
    TROUBLE_HALT_SET,
    TROUBLE_HALT_ENDED,
    TROUBLE_HALT_RESTARTED,
    TROUBLE_HALT_HELD_BACK,
    TROUBLE_APPROVAL_ASKED,
    TROUBLE_APPROVAL_APPROVED,
    TROUBLE_APPROVAL_DENIED,
    TROUBLE_APPROVAL_EXPIRED,
    TROUBLE_APPROVAL_VOID,
    TROUBLE_APPROVAL_USED,
    TROUBLE_APPROVAL_RETURNED,
    TROUBLE_APPROVAL_AGAIN,
    TROUBLE_APPROVAL_TOO_LATE,
    TROUBLE_APPROVAL_CRASHED,
    TROUBLE_APPROVAL_CHANGED,
    TROUBLE_APPROVAL_FREE,
    TROUBLE_DECIDED_AT_REST,
    TROUBLE_SCHEDULE_AT_REST,
    TROUBLE_SCHEDULE_TOOK_BACK,
    TROUBLE_SCHEDULE_SET_0,
    TROUBLE_SCHEDULE_RETURNED,
    TROUBLE_NO_CAPACITY_REFUSED,
    TROUBLE_CLEANED_UP,
    TROUBLE_NO_CAPACITY_ACCEPTED,
    TROUBLE_GROUP_UNWELL,
    TROUBLE_API_AWAY,
    TROUBLE_WATCH_STOPPED,
    TROUBLE_LEAVING_HELD,
    TROUBLE_DRAIN_FAILED,
    TROUBLE_TELL_REFUSED,
    TROUBLE_TELL_ANSWER_LOST,
    TROUBLE_TELL_SILENT,
    TROUBLE_TELL_FORGOTTEN,
    TROUBLE_NODE_RETURNED,
    TROUBLE_GROUP_AT_MIN,
    TROUBLE_GROUP_FAILS,
    TROUBLE_ORDERED_IN_VAIN,
    TROUBLE_DAEMON_PORT,
    TROUBLE_POLICY_GONE,
    TROUBLE_POLICY_BROKEN,
    TROUBLE_POLICY_PAUSED,
    TROUBLE_POLICY_RETURNED,
    TROUBLE_POLICY_ALONE, /* its change alone is known */
    TROUBLE_POLICY_AWAITED,
    TROUBLE_MESSAGES, /* by all that befell one notification: 16 combinations */
    TROUBLE_COUNT = TROUBLE_MESSAGES + 16
};

#define FATE_RETRIED    1U
#define FATE_DUPLICATED 2U
#define FATE_REORDERED  4U
#define FATE_LOST       8U /* on the way there or back, once at least */

void trouble_note(struct world *world, enum trouble trouble);
void trouble_note_message(struct world *world, unsigned fate);
void trouble_print(FILE *out);
int trouble_count_missing(FILE *out); /* prints those that never happened */

/* ---- alertmanager.c */

#define ALERTS 14
#define PEERS  2
#define GROUPS 5

struct alert {
    struct as_labels *labels;
    struct as_digest digest;
    uint64_t fingerprint; /* as good as the digest here: no two are the same */
    int group;
    bool firing, silenced, was_delivered; /* delivered: a firing of it reached the daemon */
    bool was_left_out;                    /* of the last list */
    bool has_incident;                    /* by the log: one is open */
    struct as_labels *no_annotations;
    as_wall_time starts_at, ends_at;
};

struct message { /* one notification; lives from its flush to its last delivery */
    unsigned users;
    int peer, group;
    struct {
        int alert;
        bool firing;
        as_wall_time starts_at, ends_at;
        int mood; /* annotations */
    } items[ALERTS];
    int count;
    int64_t give_up, wait; /* retries until then */
    uint64_t order;        /* of the flushes */
    unsigned fate;
};

/* ---- bodies.c */

struct body {
    bool is_used;
    struct message message;
    struct as_record_base base;
};

struct bodies {
    struct body items[32]; /* the last ones; they outlive the shells that fill them */
    size_t next;
    uint64_t *told; /* by number: a digest of what became of the notification's alerts */
    size_t told_count, told_capacity;
};

struct as_record_base *bodies_find(struct world *world, const struct message *message);
uint64_t bodies_digest(const json_t *alerts); /* of a record */
void bodies_note(struct world *world, const struct as_notification_record *record);
void bodies_check(struct world *world, const char *id, uint64_t digest);

struct peer_group {
    bool sent_firing[ALERTS]; /* as far as this peer has told */
    as_wall_time sent_starts[ALERTS];
    int64_t sent_at;
    bool in_flight;
    bool is_muted; /* by the last flush */
};

/* A time interval that mutes a group. */
struct interval {
    bool applies;
    int64_t since;
};

void alertmanager_start(struct world *world);
void alertmanager_stop(struct world *world);
void alertmanager_calm_down(struct world *world);
/* The group has been muted for so long that each peer has seen it at a flush. */
bool alertmanager_mutes(const struct world *world, int group);
void alertmanager_drop(struct world *world, struct message *message);
void alertmanager_post(struct world *world, struct message *message, int64_t delay);
/* What the daemon answered, or that the connection broke. */
void alertmanager_on_answer(struct world *world, struct message *message, bool durable);
struct as_notification *alertmanager_write(struct world *world, const struct message *message);

/* ---- server.c */

#define SERVER_TARGETS 12
#define CAPTURES       4
#define CAPTURE_KEYS   (4 * ALERTS)

struct incident_key {
    char rule[8];
    uint64_t fingerprint;
    as_wall_time opened, starts_at;
    bool counted; /* of a capture: the action is */
};

struct capture { /* who took part in an intent */
    char action_id[AS_ULID_SIZE], decision_id[AS_ULID_SIZE], approval[AS_ULID_SIZE], rule[8];
    bool needs_approvals;  /* the rule, then */
    uint64_t rule_changes; /* of the world, when it was decided, */
    uint64_t generation;   /* by whom, */
    as_wall_time at;       /* and the daemon's clock then */
    struct incident_key keys[CAPTURE_KEYS];
    int key_count;
    bool recorded; /* as applied, though perhaps not durably */
};

struct applied { /* a change of ours that the server carried out */
    bool set, is_up, recorded, overwritten;
    bool is_return; /* up, by nodes that were to leave: locks decreases alone */
    int64_t at;
    int32_t to;
};

struct sim_pause {     /* or a floor: as the last order about it said, or its end by time */
    enum as_ways ways; /* a pause */
    int32_t size;      /* a floor */
    bool is_on, is_certain, is_settled; /* settled: answered; certain: no crash has come before */
    uint64_t order;                     /* 0: none's */
    int64_t since, until;               /* true time; INT64_MAX: until it is resumed */
};

struct sim_rival { /* of a target */
    bool is_there, is_pending,
        is_mistaken;     /* pending: it has set the size back, and nobody has looked */
    int32_t set_to;      /* to this size */
    uint64_t generation; /* of the daemon then */
    int64_t seen[AS_REVERTED_CHANGES_MAX]; /* when its daemon has seen one, since its start */
    size_t seen_count;
    int64_t contended_at; /* true time; INT64_MIN: not */
};

#define OLDER_MAX 8
struct older {
    int32_t size;
    uint64_t version;
};

struct server_target {
    char id[128];
    int group; /* of the cluster, see pools.h; -1: none */
    struct sim_pause pause, floor;
    uint64_t stuck_in; /* generation of the daemon that says `did_not_come`; 0: none */
    bool exists, has_no_version;
    int32_t size, own_min, own_max;
    uint64_t version;
    unsigned object; /* its number among those of the name; 0: it has no UID */
    struct {         /* as of before the last change of the size */
        int32_t size;
        uint64_t version;
        int64_t until;
        bool was_ours;
    } before;
    struct older older[OLDER_MAX]; /* all that it has been, the newest at older_count - 1 */
    size_t older_count;
    int32_t shown; /* the last of these that was shown */
    int64_t shown_until;
    int64_t busy_until;
    int32_t lacking;       /* so many pods do not come in the rollout; 0: it varies */
    int64_t rollout_until; /* pods are replaced: more or fewer are there than asked for */
    struct applied last;   /* may still be unknown to the daemon */
    int64_t last_up_at, last_down_at, last_return_at; /* before that; INT64_MIN never */
    unsigned silent_steps;                            /* down, since monitoring died */
    struct sim_rival rival;
    struct {                 /* of schedules: what they have set, and nothing else since */
        int32_t added;       /* without what others took */
        int32_t before_zero; /* the size that `max: 0` replaced; 0: none */
        bool is_unsure;      /* the daemon may have taken it for another's since */
        int64_t zero_at;
        uint64_t rule_changes; /* then */
    } scheduled;
    struct { /* of an object, in units: `size` is the amount in units, rounded up */
        bool is_there, is_absent;
        int64_t amount;
    } field;
    struct capture captures[CAPTURES];
    int next_capture;
};

struct sim_port {
    struct as_target_port port;
    struct world *world;
    uint64_t generation;
};

void server_start(struct world *world);
void server_stop(struct world *world);
void server_calm_down(struct world *world);
struct server_target *server_find(struct world *world, const char *id);
struct as_target_port *server_open_port(struct world *world);
void server_set_size(struct world *world, struct server_target *target, int32_t size); /* others */

/* ---- policies.c */

struct sim_policy {
    const char *name; /* of the target; NULL: none */
    bool is_absent;   /* the object is gone */
    bool is_broken;   /* its present generation is not in force */
    bool is_awaited;  /* likewise, and the daemon does not know an earlier one */
    enum as_ways paused;
    struct as_policy_terms terms; /* of the last rule set */
};

struct sim_policy_change { /* of one policy: from one rule set to the next */
    const char *name;      /* NULL: none */
    uint64_t serial;
    struct as_ruleset removed, added; /* tables of their own */
    const struct as_ruleset *lists[2];
};

void policies_start(struct world *world);
void policies_calm_down(struct world *world);
void policies_free(struct world *world);
/* A daemon is about to open the state. */
void policies_on_start(struct world *world);
/* Of the specification, with the policies that are there now. */
struct as_ruleset *policies_make_ruleset(struct world *world, const struct spec *spec) AS_MUST_USE;
/* After the change of one policy, the daemon's new rule set has the rules of `old`, and knows what
 * differs. Else nothing. */
void policies_relate(struct world *world, struct as_ruleset *old);
/* The directions that its policy forbids. */
enum as_ways policies_get_paused(const struct world *world, const struct server_target *target);

/* ---- pools.c */

struct pool_look { /* at a pool, and what came of it */
    struct as_arena arena;
    struct as_pool_request request; /* without members: none */
    struct as_snapshot snapshot;
    struct as_pool_plan plan;
};

void pools_start(struct world *world); /* else it is a world without a cluster */
void pools_stop(struct world *world);
void pools_calm_down(struct world *world);
void pools_configure(struct world *world, struct as_engine_config *config);
void pools_randomize(struct world *world, struct spec *spec);
bool pools_is_watchdog(const struct world *world, const struct alert *alert);
void pools_note_heard(struct world *world, const struct alert *alert); /* by the daemon */
int pools_find_group(const struct world *world, const char *id);
bool pools_fails(const struct world *world, const char *id); /* each request for this group */
bool pools_has(const struct world *world, const struct server_target *target); /* group or pool */
int32_t pools_get_size(const struct world *world, const struct server_target *target);
void pools_set_size(struct world *world, int group, int32_t size); /* others do */
void pools_observe(struct world *world, const struct server_target *target, struct pool_look *look,
                   struct as_observation *observation);
/* `is_former`: the rules have changed since it was sent. */
void pools_carry_out(struct world *world, struct server_target *target,
                     const struct as_scale_request *request, bool is_former,
                     struct as_scale_result *result);

/* ---- fields.c */

#define PATCH_SIZE 512

void fields_randomize(struct world *world, struct target_spec *target);
bool fields_is(const char *id);
void fields_choose(struct world *world, struct server_target *target);
/* The other target of the same object; NULL: nobody has asked for it. */
struct server_target *fields_find_sibling(struct world *world, const struct server_target *target);
void fields_set(struct world *world, struct server_target *target, int32_t size);  /* others do */
void fields_note_version(struct world *world, const struct server_target *target); /* another */
void fields_check_observed(struct world *world, const struct server_target *target);
void fields_make_patch(struct world *world, const struct server_target *target, int32_t to,
                       char *patch_out, size_t size);
/* False: a conflict, and nothing is written. */
bool fields_carry_out(struct world *world, struct server_target *target, const char *patch,
                      int32_t to);

/* ---- rivals.c */

void rivals_choose(struct world *world, struct server_target *target);
void rivals_note_applied(struct world *world, struct server_target *target, int32_t before);
void rivals_note_older(struct server_target *target);
void rivals_note_anew(struct server_target *target);
bool rivals_hold(const struct world *world, const struct server_target *target); /* contended */
void rivals_check_record(struct world *world, const struct as_others_record *record);
void rivals_check_decision(struct world *world, const struct as_decision_record *record);
void rivals_check_request(struct world *world, const struct server_target *target);
void rivals_crash(struct world *world);

/* ---- source.c */

#define METRICS 4 /* three values and a guard */
#define GUARD   3

struct metric {
    double value;
    bool is_there;
    int64_t answered; /* when it was last answered with data; INT64_MIN never */
};

extern const char *const source_queries[METRICS];
void source_start(struct world *world);
void source_stop(struct world *world);
void source_calm_down(struct world *world);
struct as_source_port *source_open_port(struct world *world);

/* ---- people.c */

#define SIM_RECEIVERS 3 /* two webhooks, and an Alertmanager */

struct people;
void people_start(struct world *world);
void people_stop(struct world *world);                           /* with the events still there */
struct as_messenger *people_open_messenger(struct world *world); /* of the present daemon */
struct as_notifier_config people_get_config(const struct world *world);
bool people_wait(struct world *world); /* a message to them is stored */
void people_check_end(struct world *world);

/* ---- operators.c */

struct sim_order {
    struct as_operator_command order; /* its texts are these: */
    char target[128], reason[24];
    bool is_recorded, is_answered;
    bool was_size; /* scale: the target has had the size since */
    enum as_operator_command_outcome outcome;
    char id[AS_ULID_SIZE];
    const struct server_target *found;
    uint64_t generation; /* by whom */
    int64_t at;          /* when it was recorded, by the true time */
};

void operators_start(struct world *world);
void operators_give(struct world *world, const struct as_operator_command *wanted,
                    const char *target);
void operators_after_step(struct world *world); /* orders come between two steps */
void operators_calm_down(struct world *world);
void operators_on_answer(struct world *world, uint64_t order);
struct sim_order *operators_find(struct world *world, const char *id); /* of its record; NULL */

/* ---- approvals.c */

enum sim_answer { SIM_UNASKED, SIM_WAITING, SIM_APPROVED, SIM_REFUSED, SIM_VOID, SIM_USED };

struct sim_approval { /* a request for one */
    char id[AS_ULID_SIZE], rule[8], incident[AS_DIGEST_TEXT_SIZE], uid[AS_UID_SIZE];
    const struct server_target *target;
    struct as_digest digest; /* of the rule, when it asked */
    bool is_up;
    int32_t to;
    int64_t for_us;
    uint64_t rule_changes, generation; /* of who wrote the last record */
    enum as_approval_event last;
    int64_t asked_at, approved_at, refused_at; /* true time; INT64_MIN: not */
    bool is_opposed; /* a change in the other direction has left the daemon since */
    struct {         /* by the log */
        enum sim_answer answer;
        bool is_over, is_renewed, is_applied; /* its incident is over; its alert has another */
        bool is_of_end;                       /* the incident was over when it asked */
        char action[AS_ULID_SIZE];
    } logged;
};

struct sim_free_step { /* a change that needed no approval, though the rule asks for others */
    char action[AS_ULID_SIZE], rule[8];
    struct server_target *target;
    int32_t change;
    int64_t at;
};

struct as_approval_config approvals_randomize(struct world *world);
struct sim_approval *approvals_note_asked(struct world *world,
                                          const struct as_approval_record *record);
struct sim_approval *approvals_look_up(const struct world *world, const char *id); /* NULL: none */
void approvals_stop(struct world *world);

/* ---- daemon.c */

struct request {            /* of a peer or an operator */
    uint64_t number, order; /* order: its number; 0: a notification */
    struct message *message;
    char notification[AS_ULID_SIZE];
    bool is_repeat;
};

struct sim_clock { /* of a machine */
    struct as_clock clock;
    const struct world *world;
    int64_t booted_at, wall_offset;
};

struct daemon { /* one process after the other on the same state and log */
    struct as_store_memory *state;
    struct as_audit_memory *log;
    struct as_store *peek; /* to look into the state */
    struct as_shell *shell;
    struct as_storage *storage;
    struct as_target_port *port;
    struct as_source_port *source;
    struct as_messenger *messenger;
    struct as_ruleset *ruleset;
    struct spec spec, former_spec;
    struct as_engine_config config;
    struct sim_clock *clock; /* own memory: shell and storage hold it */
    char boot[16];
    uint64_t generation; /* of the shell */
    bool failed, stopping, step_planned, deliver_planned;
    bool is_halted;       /* its engine has been told of the kill switch */
    bool is_former;       /* another leads */
    int64_t until;        /* its term as leader; INT64_MAX while it renews its lease */
    int64_t paused_until; /* nothing of it runs before */
    int planned;          /* trouble that comes with the failure of a commit; or -1 */
    unsigned scales;      /* requests without an answer */
    as_mono_time deadline;
    struct request requests[256];
    size_t request_count;
    uint64_t next_request;
    int64_t second; /* for the steps in it */
    unsigned wakes_in_second;
};

enum phase { PHASE_IDLE, PHASE_COMMITTING, PHASE_INTENT, PHASE_SENT };

void daemon_start(struct world *world);
void daemon_stop(struct world *world);
void daemon_restart(struct world *world);
void daemon_open(struct world *world); /* a process begins */
void daemon_open_later(struct world *world, int64_t most);
void daemon_throw_away(struct world *world); /* it ends, whatever was under way */
void daemon_reload(struct world *world);
void daemon_set_rules(struct world *world, const struct spec *spec); /* which is kept */
void daemon_deliver(struct world *world, struct message *message);
void daemon_refuse(struct world *world, struct message *message); /* no 200 */
void daemon_order(struct world *world, uint64_t order);
void daemon_note_switch(struct world *world); /* it has changed: seen soon */
void daemon_poll(struct world *world);        /* after each event */
bool daemon_is_at_rest(struct world *world);
bool daemon_leads(const struct world *world); /* by its own clock */
enum phase daemon_get_phase(struct world *world);
void daemon_new_clock(struct world *world, int64_t booted_at);

bool daemon_is_gone(const struct world *world, uint64_t generation); /* the process */

/* Before an event of the process of this generation: makes it the world's daemon until
 * daemon_leave, whether it leads or has led. False where it is gone, or where it is paused: then
 * `happen` comes again. */
bool daemon_enter(struct world *world, uint64_t generation, event_fn *happen, void *subject,
                  uint64_t argument);
void daemon_leave(struct world *world);

/* ---- faults.c */

/* `is_kept`: what waits to be committed is in the store all the same. */
void faults_kill(struct world *world, bool is_power_loss, bool is_kept);
void faults_start(struct world *world);
void faults_after_step(struct world *world);   /* trouble comes between two steps */
void faults_after_repeat(struct world *world); /* which was answered */
void faults_calm_down(struct world *world);

/* ---- rules.c */

void rules_randomize(struct world *world, struct spec *spec);
const struct as_target_config *rules_find_target(const struct world *world, const char *id);
const struct as_rule *rules_find_rule(const struct world *world, const char *name);

/* ---- check.c */

struct step_count {
    struct incident_key key;
    char target[128];
    unsigned count;
    int64_t last, last_but_one;
    bool is_vague; /* other rules' actions may have counted too */
};

struct begun { /* an action that counts for the limits */
    int64_t at;
    char id[AS_ULID_SIZE];
    bool is_applied;
};

struct acknowledgement {
    char id[AS_ULID_SIZE];
    int64_t at;
    bool is_repeat;   /* of what was known: 50 ms of their records may be lost with the power */
    bool may_be_lost; /* the power was cut then */
};

struct acknowledged {
    struct acknowledgement *items; /* in order */
    size_t count, capacity;
};

void check_effect(struct world *world, const struct as_effect *effect);
void check_request(struct world *world, struct server_target *target,
                   const struct as_scale_request *request);
void check_applied(struct world *world, struct server_target *target, int64_t sent_at, int32_t to,
                   int32_t returned, bool has_rule, const struct as_cooldown *cooldown);
void check_others_change(struct world *world, struct server_target *target);
void check_made_anew(struct server_target *target); /* another object: no lock holds it */
void check_crash(struct world *world);
/* Whether the target has a stored intent with this text in it. */
bool check_has_stored_intent(struct world *world, const struct server_target *target,
                             const char *word);
void check_state_against_log(struct world *world);

/* ---- check_silence.c */

void check_silence_begin(struct world *world);
bool check_is_step_down(const struct world *world, const struct as_scale_request *request);
void check_silence(struct world *world, struct server_target *target); /* such a step is made */

/* ---- check_rest.c */

void check_direction(struct world *world, const struct server_target *target,
                     const struct as_scale_request *request);
void check_rest_begin(struct world *world); /* the calm */
void check_rest_request(struct world *world, const struct server_target *target,
                        const struct as_scale_request *request);
void check_rest_incident(struct world *world);
void check_rest_end(struct world *world); /* of the calm */

/* ---- schedules.c */

void schedules_randomize(struct world *world, struct target_spec *target);
/* In force by the daemon's clock. */
struct as_schedule_bounds schedules_get_bounds(const struct world *world,
                                               const struct as_target_config *config);
/* The lowest min and the highest max that may be in force at any time. */
void schedules_get_widest(const struct as_target_config *config, int32_t *min_out,
                          int32_t *max_out);
int32_t schedules_get_lowest_max(const struct as_target_config *config);
void schedules_note_applied(struct world *world, struct server_target *target, int32_t from,
                            int32_t to, bool is_by_rule);
void schedules_note_others(struct server_target *target, int32_t from, int32_t to);
void schedules_check_decision(struct world *world, const struct as_decision_record *decision);
void schedules_check_end(struct world *world); /* of the calm */

/* ---- check_orders.c */

/* The directions that are surely paused; a size below which the target surely must not go, or 0. */
enum as_ways check_get_paused(const struct world *world, const struct server_target *target);
int32_t check_get_floor(const struct world *world, const struct server_target *target);
void check_floors_held(struct world *world); /* in the calm */
void check_command(struct world *world, const struct as_effect *effect);
void check_ordered_intent(struct world *world, struct server_target *target,
                          const struct as_intent_state *intent);
void check_ordered_request(struct world *world, struct server_target *target,
                           const struct as_scale_request *request);
void check_ordered_action(struct world *world, struct server_target *target,
                          const struct as_action_record *record);
void check_holds_of_decision(struct world *world, const struct as_decision_record *record);
void check_halt(struct world *world); /* the engine has just been told */
void check_orders_answer(struct world *world, uint64_t order);
void check_orders_size(struct world *world, const struct server_target *target);
void check_orders_crash(struct world *world);
void check_orders_end(struct world *world); /* of the calm */

/* ---- check_approvals.c */

void check_approval(struct world *world, const struct as_approval_record *record);
void check_answer(struct world *world, const struct sim_order *order); /* an order's outcome */
void check_approval_of_intent(struct world *world, const struct server_target *target,
                              const struct as_intent_state *intent, struct capture *capture);
void check_approval_of_request(struct world *world, const struct server_target *target,
                               const struct as_scale_request *request);
void check_free_step(struct world *world, struct server_target *target,
                     const struct capture *capture, const struct as_action_record *record);
void check_approvals_crash(struct world *world);
void check_approvals_reload(struct world *world);

void log_approval(struct world *world, const json_t *record);
void log_approved_action(struct world *world, const json_t *record);
/* It opens, or is over. */
void log_approvals_note_incident(struct world *world, uint64_t fingerprint, bool opens);
void log_approvals_compare(struct world *world); /* with the engine */

/* ---- check_pools.c */

void check_pools_end(struct world *world); /* of the calm */

/* ---- check_log.c */

const char *log_text(const json_t *record, const char *name); /* "": there is none */

struct log_summary {
    uint64_t records, notifications, repeats, decisions, actions, applied;
    uint64_t open[ALERTS * 4]; /* fingerprints of incidents that the log says are open */
    size_t open_count;
    char hash[AS_AUDIT_HASH_SIZE];
};
void check_log(struct world *world, struct log_summary *summary_out); /* at the end */
void check_log_on_intent(struct world *world, const struct as_intent_state *intent);
void check_log_end(struct world *world);

/* ---- run.c */

struct world {
    uint64_t seed;
    struct as_random random;
    int64_t now;
    struct event_tree events;
    uint64_t event_order;
    bool is_calm, is_verbose, allows_jumps, is_failed;
    char failure[512];
    uint64_t steps;

    struct alert alerts[ALERTS];
    struct peer_group peers[PEERS][GROUPS];
    int64_t group_interval, repeat_interval;
    bool has_intervals, is_restarted; /* restarted: a peer, since the last list */
    struct interval intervals[GROUPS];

    struct server_target targets[SERVER_TARGETS];
    size_t target_count;
    int64_t faults;      /* of the server, per mille */
    int64_t older_until; /* another API server answers, which knows older sizes */

    struct pools *pools; /* NULL: no cluster */
    struct people *people;

    struct metric metrics[METRICS];
    bool is_silent;          /* monitoring is dead: what it said last is what it says */
    bool is_listing;         /* but Alertmanager still lists what it was told */
    int64_t silent_since;    /* of the last silence */
    int64_t alertmanager_us; /* how far Alertmanager's clock is off */
    struct begun *begun;
    size_t begun_count, begun_capacity;

    struct daemon daemon, former; /* who leads; who led before, and does not know better yet */
    bool is_swapped;              /* the former one acts: the two have changed places */
    uint64_t rule_changes;        /* reloads and starts */
    uint64_t last_generation, next_notification, next_flush;
    uint64_t newest_delivered[GROUPS];
    unsigned boots;
    bool is_trouble_due;
    enum phase waits_for; /* before it comes; PHASE_IDLE: for so many steps */
    int64_t trouble_steps;
    int64_t full_until; /* a disk; 0: none */
    unsigned kills;     /* to come, of a crash loop */

    bool has_operators, is_order_due;
    enum phase order_waits_for; /* as with trouble */
    int64_t order_steps;
    struct sim_order **orders; /* order N is the N-th */
    size_t order_count, order_capacity;
    struct sim_pause pause; /* of all */
    bool has_approvals, has_rivals, has_fields;
    bool has_always;   /* rules without an alert */
    bool has_policies; /* of scaling policies: */
    struct sim_policy policies[SPEC_MAX];
    struct sim_policy_change policy_change;
    const char *awaited[SPEC_MAX];
    size_t awaited_count;
    struct sim_approval **approvals;
    size_t approval_count, approval_capacity;
    struct sim_free_step *free_steps;
    size_t free_step_count, free_step_capacity;
    struct {
        const char *who, *reason; /* reason NULL: it is not set */
        uint64_t settings;
    } kill_switch;

    struct step_count *counts;
    size_t count_count, count_capacity;
    struct acknowledged acknowledged;
    struct bodies bodies;
    struct log_reader *reader;
    struct story *story;
    struct {
        bool is_calm;
        int64_t from;      /* then nothing is to be done any more */
        size_t settled;    /* the log's size then */
        bool is_following; /* a late step down has put `from` off */
        unsigned followed; /* other requests meanwhile */
    } rest;
};

/* ---- stories.c */

struct story; /* of which the world is one telling; NULL: the world of a seed */
void stories_prepare(struct world *world);
void stories_note_boundary(struct world *world);
void stories_note_request(struct world *world, const struct server_target *target);
int stories_run(uint64_t seed); /* all tellings; how many ended otherwise than the first one */

struct run_result {
    bool is_failed;
    char failure[512];
    int64_t virtual_us;
    uint64_t steps;
    uint64_t store_digest; /* of all that was committed */
    struct log_summary log;
    uint64_t crashes;
};
/* `log_out`: the action log, as it is at the end; NULL: not wanted. */
void run_seed(uint64_t seed, uint64_t steps, bool is_verbose, FILE *log_out,
              struct run_result *result_out);
void run_take_step(struct world *world);
void run_world_deinit(struct world *world);

static inline as_wall_time true_wall(const struct world *world)
{
    return (as_wall_time){INT64_C(1795168800) * AS_US_PER_S + world->now};
}

#endif
