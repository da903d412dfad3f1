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
#include <alertscaler/port/leader.h>

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
    const char *revision; /* of the sources; NULL: not known */
    uint64_t targets, rules, incidents, intents;
    const struct as_leader_term *leaders; /* since this replica led last; the oldest first */
    size_t leader_count;
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

/* Appends one object to the (empty) buffer; check with as_buf_check that it fits. `record` is the
 * struct of the kind, struct as_<kind>_record; start and stop have as_start_record. `places_out`
 * may be NULL. */
void as_record_encode(const struct as_record_header *header, enum as_record_kind kind,
                      const void *record, struct as_buf *out, struct as_record_places *places_out);

/* Appends the JSON Schema of a record, whatever its kind. */
void as_record_encode_schema(struct as_buf *out);

/* The body of the answer to a notification (docs/receiver.md). */
void as_record_encode_answer(const struct as_notification_record *record, struct as_buf *out);

#endif
