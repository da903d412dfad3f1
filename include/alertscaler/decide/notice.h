/*
 * What people are told: notices. docs/notify.md describes them for users.
 *
 * A kind is an event, which happens once, or a state, which begins and ends. A new kind is a row
 * here, and whoever finds that it has happened. One record may lead to one notice for a receiver
 * only: its hash is the event's id.
 */
#ifndef ALERTSCALER_DECIDE_NOTICE_H
#define ALERTSCALER_DECIDE_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>
#include <alertscaler/decide/decide.h>

/* X(enumerator, word under `on:` and in the event's type, alertname, sentence, is it a state) */
#define AS_NOTICES(X)                                                                              \
    X(AS_NOTICE_SCALED, "scaled", "AlertscalerScaled", "A size was set.", false)                   \
    X(AS_NOTICE_FAILED, "failed", "AlertscalerFailed", "A size could not be set, or not be read.", \
      false)                                                                                       \
    X(AS_NOTICE_AT_MAX, "at_max", "AlertscalerAtMax",                                              \
      "More is wanted than the target's max allows.", true)                                        \
    X(AS_NOTICE_CONTENDED, "contended", "AlertscalerContended",                                    \
      "Others set the target's size back: it is left alone for an hour.", true)                    \
    X(AS_NOTICE_INEFFECTIVE, "ineffective", "AlertscalerIneffective",                              \
      "A rule is held, because its last actions did not help.", true)                              \
    X(AS_NOTICE_NEEDS_APPROVAL, "needs_approval", "AlertscalerNeedsApproval",                      \
      "A change waits for a person's approval.", true)

#define AS_NOTICE_ENUM(enumerator, ...) enumerator,
enum as_notice_kind {
    AS_NOTICES(AS_NOTICE_ENUM)
        AS_NOTICE_TEST,            /* of `alertscaler notify test`; no receiver asks for it */
    AS_NOTICE_CLUSTER_UNREACHABLE, /* for receivers of FAILED: in place of FAILED of each target */
    AS_NOTICE_KIND_COUNT
};

struct as_notice_row {
    const char *word;      /* under `on:`, and in the type of the event */
    const char *alertname; /* the alert's label */
    const char *meaning;   /* a sentence for people */
    bool is_state;
};
const struct as_notice_row *as_notice_kind_get_row(enum as_notice_kind kind);

enum as_notice_phase { AS_NOTICE_EVENT, AS_NOTICE_BEGIN, AS_NOTICE_END, AS_NOTICE_PHASE_COUNT };
const char *as_notice_phase_get_word(enum as_notice_phase phase);

#define AS_NOTICE_HASH_SIZE 65 /* hex SHA-256, with NUL */

struct as_notice { /* all texts are borrowed; NULL: none */
    enum as_notice_kind kind;
    enum as_notice_phase phase;
    const char *target, *target_name; /* the id; the name in the rule files */
    const char *cluster;              /* CLUSTER_UNREACHABLE: its name, and `target` is one of it */
    const char *rule;
    const char *reason;             /* a reason code */
    const char *decision, *command; /* ids of the records that it comes from */
    const char *message;            /* what the other side said */
    const char *approval;           /* id of the request that it is about */
    bool has_from, has_to;
    int32_t from, to;
    const char *unit;       /* that the sizes count (decide/sized.h) */
    as_wall_time at;        /* when it happened, or the state began */
    as_maybe_time ended;    /* of a state that is over */
    const char *hash;       /* of the record that it tells of */
    const char *credential; /* the narrowed one whose alerts alone caused it */
    const char *receiver;   /* name; NULL: not meant for one */
    uint32_t url;           /* index of the receiver's URL */
    bool is_held;           /* a failed observation that may be over soon: not sent yet */
};

/* Why notices never reached their receiver. */
enum as_notice_loss {
    AS_NOTICE_OVERFLOW,   /* too many waited */
    AS_NOTICE_TOO_OLD,    /* older than the receiver's max_age */
    AS_NOTICE_REMOVED,    /* the receiver, or its URL, is not configured any more */
    AS_NOTICE_UNREADABLE, /* written by a later version; its receiver is unknown: "" */
    AS_NOTICE_LOSS_COUNT
};
const char *as_notice_loss_get_word(enum as_notice_loss loss);

struct as_notices_dropped {
    const char *receiver;
    enum as_notice_loss cause;
    uint64_t count;
};

struct as_notice_ended { /* a state, without a decision that says so */
    enum as_notice_kind state;
    const char *target, *target_name;
    const char *rule; /* that is not held any more; NULL: the state is of the target */
};

/* A record of kind `notify`. One of the pointers is set. */
struct as_notify_record {
    const struct as_notices_dropped *dropped;
    const struct as_notice_ended *ended;
};

#endif
