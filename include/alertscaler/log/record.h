/*
 * The action log's records as canonical JSON, without `hash`, `prev` and `seq`: sealing the record
 * into the chain adds these at the places given here. docs/action-log.md describes the fields for
 * users.
 */
#ifndef ALERTSCALER_LOG_RECORD_H
#define ALERTSCALER_LOG_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/record.h>

/* Longer texts from outside are cut and end in AS_RECORD_CUT. */
#define AS_RECORD_TEXT_MAX 4096
#define AS_RECORD_CUT      "...(truncated)"

struct as_record_header {
    as_wall_time time;
    const char *instance; /* host name and process id, or the pod's name */
};

/* Offsets of the opening quotes of the first keys that sort after "hash", "prev" and "seq". */
struct as_record_places {
    size_t at_hash, at_prev, at_seq;
};

struct as_start_record { /* for stop too */
    const char *version, *config_digest, *rules_digest;
    size_t targets, rules, incidents, intents;
};

struct as_reload_record {
    const char *credential; /* who requested it; "": a signal */
    const char *error;      /* NULL: success */
    const char *old_config_digest, *old_rules_digest, *config_digest, *rules_digest;
};

struct as_denied_record {
    const char *remote, *handler, *error;
    int status;
    uint64_t count; /* refusals since the previous record, including this one */
};

/* Each appends one object to the (empty) buffer; check with as_buf_check that it fitted. */
void as_record_encode_start(const struct as_record_header *header,
                            enum as_record_kind start_or_stop, const struct as_start_record *record,
                            struct as_buf *out, struct as_record_places *places_out);
void as_record_encode_reload(const struct as_record_header *header,
                             const struct as_reload_record *record, struct as_buf *out,
                             struct as_record_places *places_out);
void as_record_encode_denied(const struct as_record_header *header,
                             const struct as_denied_record *record, struct as_buf *out,
                             struct as_record_places *places_out);
void as_record_encode_notification(const struct as_record_header *header,
                                   const struct as_notification_record *record, struct as_buf *out,
                                   struct as_record_places *places_out);
void as_record_encode_repeat(const struct as_record_header *header,
                             const struct as_repeat_record *record, struct as_buf *out,
                             struct as_record_places *places_out);
void as_record_encode_decision(const struct as_record_header *header,
                               const struct as_decision_record *record, struct as_buf *out,
                               struct as_record_places *places_out);
void as_record_encode_action(const struct as_record_header *header,
                             const struct as_action_record *record, struct as_buf *out,
                             struct as_record_places *places_out);
void as_record_encode_incident(const struct as_record_header *header,
                               const struct as_incident_record *record, struct as_buf *out,
                               struct as_record_places *places_out);
void as_record_encode_follow(const struct as_record_header *header,
                             const struct as_effect_record *record, struct as_buf *out,
                             struct as_record_places *places_out);
void as_record_encode_command(const struct as_record_header *header,
                              const struct as_operator_command_record *record, struct as_buf *out,
                              struct as_record_places *places_out);

void as_record_encode_nodes(const struct as_record_header *header,
                            const struct as_nodes_record *record, struct as_buf *out,
                            struct as_record_places *places_out);

void as_record_encode_others(const struct as_record_header *header,
                             const struct as_others_record *record, struct as_buf *out,
                             struct as_record_places *places_out);

void as_record_encode_notify(const struct as_record_header *header,
                             const struct as_notify_record *record, struct as_buf *out,
                             struct as_record_places *places_out);

void as_record_encode_approval(const struct as_record_header *header,
                               const struct as_approval_record *record, struct as_buf *out,
                               struct as_record_places *places_out);

/* The body of the answer to a notification (docs/receiver.md). */
void as_record_encode_answer(const struct as_notification_record *record, struct as_buf *out);

#endif
