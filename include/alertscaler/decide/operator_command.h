/*
 * An operator's orders: `alertscaler pause`, resume, scale, unlock, approve, deny. The engine
 * handles them like everything else: recorded (kind `command`) and durable before the answer.
 *
 * The kill switch stops everything at once, orders too. It comes from outside (a file, an
 * annotation of the lease), and lasts while it is there; it is recorded, but not stored.
 */
#ifndef ALERTSCALER_DECIDE_OPERATOR_COMMAND_H
#define ALERTSCALER_DECIDE_OPERATOR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/forbidden.h>

#define AS_OPERATOR_COMMAND_REASON_MAX 1024 /* bytes of a reason, with NUL */
#define AS_OPERATOR_COMMAND_FOR_MAX_US (366 * AS_US_PER_DAY)

enum as_operator_command_kind {
    AS_OPERATOR_COMMAND_PAUSE,  /* until its end nothing is scaled; incidents, decisions and records
                                   go on */
    AS_OPERATOR_COMMAND_RESUME, /* ends a pause */
    AS_OPERATOR_COMMAND_SCALE,  /* sets a size, despite locks and pauses; begins the cooldown */
    AS_OPERATOR_COMMAND_FLOOR,  /* until its end the size does not go below it; or takes one back */
    AS_OPERATOR_COMMAND_UNLOCK, /* ends the cooldown's locks, both directions */
    AS_OPERATOR_COMMAND_APPROVE, /* lets a change happen that waits for it */
    AS_OPERATOR_COMMAND_DENY,    /* refuses it; takes back an approval that is not used yet */
    AS_OPERATOR_COMMAND_KIND_COUNT
};
const char *as_operator_command_kind_get_word(
    enum as_operator_command_kind kind); /* "pause", ... */
/* It answers a request for an approval: it names the request, no target, and needs no reason. */
static inline bool as_operator_command_kind_is_answer(enum as_operator_command_kind kind)
{
    return kind == AS_OPERATOR_COMMAND_APPROVE || kind == AS_OPERATOR_COMMAND_DENY;
}

struct as_operator_command { /* all borrowed for the step */
    enum as_operator_command_kind kind;
    const char
        *target; /* a target's id, or its name in the rule files; NULL: all (pause, resume) */
    const char *request; /* approve, deny: the id of what is asked; else NULL */
    const char *who;     /* the credential's name; "" if none is required */
    const char *remote;  /* the sender's address; "" if none */
    const char *reason;  /* never empty */
    int64_t for_us;      /* pause: how long; 0: until resumed */
    enum as_ways ways;   /* pause: what it stops; NONE: both */
    int32_t replicas;    /* scale: 0 .. 2^31-1; floor: 1 .. 2^31-1 */
    bool is_end;         /* floor: takes it back */
    bool force;          /* scale: ignore min and max */
};

struct as_halt {        /* the kill switch */
    const char *who;    /* source: "kill switch file", ... */
    const char *reason; /* the text of the switch; NULL: not set (any more) */
};

/* The result of an order. All but DONE change nothing; all are recorded. */
enum as_operator_command_outcome {
    AS_OPERATOR_COMMAND_DONE, /* scale: the size will be set; the action's record has the result */
    AS_OPERATOR_COMMAND_UNKNOWN_TARGET,
    AS_OPERATOR_COMMAND_OUT_OF_BOUNDS, /* scale without force */
    AS_OPERATOR_COMMAND_NOTHING_TO_DO, /* resume without a pause, unlock without a lock, a second
                                          answer */
    AS_OPERATOR_COMMAND_UNKNOWN_REQUEST,
    AS_OPERATOR_COMMAND_REFUSED, /* dry run, stopping, kill switch */
    AS_OPERATOR_COMMAND_OUTCOME_COUNT
};
const char *as_operator_command_outcome_get_word(
    enum as_operator_command_outcome outcome); /* "done", ... */

struct as_operator_command_record { /* in the action log: kind `command` */
    char id[AS_ULID_SIZE];          /* the action's record refers to it */
    const struct as_operator_command *order;
    enum as_operator_command_outcome outcome;
    const char *message;     /* unless DONE; else "" */
    const char *target;      /* the id found; NULL: all, or not found */
    const char *target_name; /* of target; "": no rule leads to it */
    as_maybe_time until;     /* pause, floor: its end */
    int32_t min, max;        /* of the target; -1: unknown */
    int32_t replicas;        /* scale, floor: the size; -1: none */
};

/*
 * The body of an operator's order to the API: {"reason": "the big move", "for": "1h", "replicas":
 * 5, "force": true}.
 */

#define AS_OPERATOR_COMMAND_BODY_MAX ((size_t)16 * 1024)

struct as_operator_command_document { /* owns its texts */
    struct as_operator_command order;
    char reason[AS_OPERATOR_COMMAND_REASON_MAX];
};

/*
 * Fills `kind`, `reason`, `for_us`, `replicas` and `force` of the order; the caller fills the rest.
 * Errors: a member that the kind does not allow; a reason that is empty or too long, or missing
 * unless the order approves or denies. 0; -EBADMSG with an error for the client.
 */
int as_operator_command_decode(const char *json, size_t size, enum as_operator_command_kind kind,
                               struct as_operator_command_document *document_out,
                               struct as_error *error) AS_MUST_USE;

#endif
