/*
 * Records of the action log: a table of rows for each kind of record, and the answer to a
 * notification. All rows are for writing only. Rows of the chain's members (hash, prev, seq) write
 * nothing: they note where log_chain.c adds these members. A row with `since` 2 is a member that
 * logs of 0.1.0 do not have: the JSON Schema is for all logs.
 */
#include <alertscaler/log/record.h>

#include <stddef.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/doc/rows_schema.h>

/* The writer of one record: local types read the members that every record has. */
struct record_writer {
    struct as_json_writer json; /* first */
    const struct as_record_header *header;
    enum as_record_kind kind;
    struct as_record_places *places; /* NULL: not needed */
};

static struct record_writer *record_get_writer(struct as_json_writer *json)
{
    return (struct record_writer *)json;
}

/*
 * Types.
 */

#define AS_ROW_TYPE_cut           const char *
#define AS_ROW_TYPE_own_cut       char *
#define AS_ROW_TYPE_cuts          const char *const *
#define AS_ROW_TYPE_found_target  const char *
#define AS_ROW_TYPE_known_seconds int64_t
#define AS_ROW_TYPE_digests       const struct as_digest *
#define AS_ROW_TYPE_ids           const char(*)[AS_ULID_SIZE]
#define AS_ROW_TYPE_labels        const struct as_labels *
#define AS_ROW_TYPE_own_labels    struct as_labels *
#define AS_ROW_TYPE_outcome       enum as_reason
#define AS_ROW_TYPE_notify_event  const struct as_notices_dropped *
#define AS_ROW_TYPE_input         const struct as_decide_input *
#define AS_ROW_TYPE_output        const struct as_decision *
#define AS_ROW_TYPE_alerts        const struct as_alert_outcome *

static const void *record_get_pointer(const struct as_row *row, const void *base)
{
    const void *pointer;
    memcpy(&pointer, as_row_at(row, base), sizeof(pointer));
    return pointer;
}

/* const char *, NULL: null. A long text is cut. */
static void write_cut(struct as_json_writer *json, const char *text)
{
    if (!text) {
        as_json_write_null(json);
        return;
    }
    const size_t size = strlen(text);
    if (size <= AS_RECORD_TEXT_MAX) {
        as_json_write_string_size(json, text, size);
        return;
    }
    char cut[AS_RECORD_TEXT_MAX + sizeof(AS_RECORD_CUT)];
    const size_t kept = as_str_cut_utf8(text, size, AS_RECORD_TEXT_MAX);
    memcpy(cut, text, kept);
    memcpy(cut + kept, AS_RECORD_CUT, sizeof(AS_RECORD_CUT));
    as_json_write_string(json, cut);
}

static void cut_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    write_cut(json, record_get_pointer(row, base));
}

static bool cut_is_unset(const struct as_row *row, const void *base)
{
    return !record_get_pointer(row, base);
}

static const struct as_row_type as_row_cut = {
    .write = cut_write, .is_unset = cut_is_unset, .like = &as_row_text};
#define as_row_own_cut as_row_cut /* of a struct that owns its texts */

/* A list of cut texts. */
static void cuts_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char *const *texts = record_get_pointer(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < as_row_get_count(row, base); i++)
        write_cut(json, texts[i]);
    as_json_end_array(json);
}

static const struct as_row_type as_row_cuts = {.write = cuts_write, .like = &as_row_texts};

/* int64_t in microseconds, negative: null */
static void known_seconds_write(struct as_json_writer *json, const struct as_row *row,
                                const void *base)
{
    const int64_t us = *(const int64_t *)as_row_at(row, base);
    if (us < 0)
        as_json_write_null(json);
    else
        as_json_write_double(json, (double)us / (double)AS_US_PER_S);
}

static const struct as_row_type as_row_known_seconds = {
    .is_nullable = true, .write = known_seconds_write, .like = &as_row_positive};

static void digests_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_digest *digests = record_get_pointer(row, base);
    char text[AS_DIGEST_TEXT_SIZE];
    as_json_begin_array(json);
    for (size_t i = 0; i < as_row_get_count(row, base); i++) {
        as_digest_print(&digests[i], text);
        as_json_write_string_size(json, text, sizeof(text) - 1);
    }
    as_json_end_array(json);
}

/* Of incidents; 0.1.0 wrote their fingerprints. */
static void digests_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_items(schema, 0, row->max);
    as_rows_schema_write_text(schema, "^([0-9a-f]{64}|[0-9a-f]{16})$");
    as_rows_schema_end_items(schema);
}

static const struct as_row_type as_row_digests = {.write = digests_write,
                                                  .describe = digests_describe};

static void ids_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char(*ids)[AS_ULID_SIZE] = record_get_pointer(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < as_row_get_count(row, base); i++)
        as_json_write_string(json, ids[i]);
    as_json_end_array(json);
}

static const struct as_row_type as_row_ids = {.write = ids_write, .like = &as_row_texts};

static void record_labels_write(struct as_json_writer *json, const struct as_row *row,
                                const void *base)
{
    const struct as_labels *labels = record_get_pointer(row, base);
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++) {
        as_json_write_key(json, labels->items[i].name);
        write_cut(json, labels->items[i].value);
    }
    as_json_end_object(json);
}

static void record_labels_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_begin_values(schema);
    as_rows_schema_write_type(schema, "string");
    as_rows_schema_end_values(schema);
}

static const struct as_row_type as_row_labels = {.write = record_labels_write,
                                                 .describe = record_labels_describe};
#define as_row_own_labels as_row_labels

/* The documents of a decision. */
static void input_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row;
    as_json_write_raw(json, "", 0);
    as_decision_encode_input(((const struct as_decision_record *)base)->input, json->buf);
}

static const struct as_row_type as_row_input = {.write = input_write,
                                                .describe = as_decision_describe_input};

static void output_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_decision_record *record = base;
    (void)row;
    as_json_write_raw(json, "", 0);
    as_decision_encode_output(record->input, record->results, record->output, json->buf);
}

static const struct as_row_type as_row_output = {.write = output_write,
                                                 .describe = as_decision_describe_output};

/*
 * Words. Each function has the type that rows call.
 */

AS_ROW_WORDS(approval_event_get_word, enum as_approval_event, AS_APPROVAL_EVENT_COUNT,
             as_approval_event_get_word)
AS_ROW_WORDS(effect_end_get_word, enum as_effect_end, AS_EVALUATION_UNKNOWN + 1,
             as_effect_end_get_word)
AS_ROW_WORDS(incident_event_get_word, enum as_incident_event, AS_INCIDENT_UNSILENCED + 1,
             as_incident_event_get_word)
AS_ROW_WORDS(nodes_event_get_word, enum as_nodes_event, AS_NODES_KEPT + 1, as_nodes_event_get_word)
AS_ROW_WORDS(notice_loss_get_word, enum as_notice_loss, AS_NOTICE_LOSS_COUNT,
             as_notice_loss_get_word)
AS_ROW_WORDS(operator_command_kind_get_word, enum as_operator_command_kind,
             AS_OPERATOR_COMMAND_KIND_COUNT, as_operator_command_kind_get_word)
AS_ROW_WORDS(operator_command_outcome_get_word, enum as_operator_command_outcome,
             AS_OPERATOR_COMMAND_OUTCOME_COUNT, as_operator_command_outcome_get_word)
AS_ROW_WORDS(others_event_get_word, enum as_others_event, AS_OTHERS_EVENT_COUNT,
             as_others_event_get_word)
AS_ROW_WORDS(policy_event_get_word, enum as_policy_event, AS_POLICY_EVENT_COUNT,
             as_policy_event_get_word)
AS_ROW_WORDS(reason_get_word, enum as_reason, AS_REASON_COUNT, as_reason_get_word)
AS_ROW_WORDS(record_kind_get_word, enum as_record_kind, AS_RECORD_KIND_COUNT,
             as_record_kind_get_word)

static const char *state_get_word(unsigned state)
{
    return state < AS_NOTICE_KIND_COUNT ? as_notice_kind_get_row((enum as_notice_kind)state)->word
                                        : NULL;
}

static const char *status_get_word(unsigned status)
{
    static const char *const words[] = {
        [AS_ALERT_FIRING] = "firing", [AS_ALERT_RESOLVED] = "resolved"};
    return status < AS_ARRAY_SIZE(words) ? words[status] : NULL;
}

/* A pause of both directions does not name one. */
static const char *way_get_word(unsigned ways)
{
    return ways == AS_WAYS_BOTH ? NULL : as_ways_get_word((enum as_ways)ways);
}

/*
 * Members of every record.
 */

static void instance_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row, (void)base;
    write_cut(json, record_get_writer(json)->header->instance);
}

static void kind_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row, (void)base;
    as_json_write_string(json, as_record_kind_get_word(record_get_writer(json)->kind));
}

static void record_time_write(struct as_json_writer *json, const struct as_row *row,
                              const void *base)
{
    (void)base;
    as_row_exact.write(json, row, record_get_writer(json)->header);
}

/* Notes the place of a member of the chain, `at` in struct as_record_places. */
static void record_place_write(struct as_json_writer *json, const struct as_row *row,
                               const void *base)
{
    (void)base;
    struct as_record_places *places = record_get_writer(json)->places;
    if (places)
        *(size_t *)(void *)((char *)places + row->at) = as_json_get_next_key(json);
}

/* The schema of one kind of records: `kind` has its word. */
struct record_schema {
    struct as_rows_schema schema; /* first */
    enum as_record_kind kind;
};

static void kind_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_word(schema,
                              as_record_kind_get_word(((struct record_schema *)schema)->kind));
}

static const struct as_row_type row_instance = {.write = instance_write, .like = &as_row_text};
static const struct as_row_type row_kind = {.write = kind_write, .describe = kind_describe};
static const struct as_row_type row_time = {.write = record_time_write, .like = &as_row_exact};
static const struct as_row_type row_place = {
    .has_own_key = true, .write = record_place_write, .like = &as_row_digest};
static const struct as_row_type row_place_of_seq = {
    .has_own_key = true, .write = record_place_write, .like = &as_row_u64};

/* Name and type first, then what else the row has. */
#define HEADER(NAME, TYPE, ...)                                                                    \
    .name = (NAME), .type = &(TYPE), .presence = AS_ROW_REQUIRED, __VA_ARGS__
#define HASH                                                                                       \
    HEADER("hash", row_place, .at = offsetof(struct as_record_places, at_hash),                    \
           .about = "SHA-256 of the canonical JSON of the record without `hash`")
#define INSTANCE                                                                                   \
    HEADER("instance", row_instance, .about = "Host name and process id, or the name of the pod")
#define KIND HEADER("kind", row_kind, .at = 0)
#define PREV                                                                                       \
    HEADER("prev", row_place, .at = offsetof(struct as_record_places, at_prev),                    \
           .about = "`hash` of the previous record; the first record has 64 zeros")
#define SEQ                                                                                        \
    HEADER("seq", row_place_of_seq, .at = offsetof(struct as_record_places, at_seq), .min = 1,     \
           .about = "1, 2, 3, ... without gaps")
#define TIME                                                                                       \
    HEADER("time", row_time, .at = offsetof(struct as_record_header, time),                        \
           .about = "UTC, with microseconds")

/*
 * Start and stop; a reload of the configuration; refused requests.
 */

static const struct as_row leader_rows[] = {
    {AS_ROW_CHARS("replica", as_leader_term, replica, REQUIRED),
     .about = "The name of the replica"},
    {AS_ROW("since", maybe_time, as_leader_term, since, NULLABLE),
     .about = "When it began to lead, by its clock"},
    {AS_ROW("until", exact, as_leader_term, until, REQUIRED),
     .about = "When it last renewed the Lease, or released it"},
    {.name = NULL, .definition = "leader"},
};

static const struct as_row start_rows[] = {
    {AS_ROW("config_digest", cut, as_start_record, config_digest, REQUIRED)},
    {HASH},
    {AS_ROW("incidents", u64, as_start_record, incidents, REQUIRED), .about = "Open incidents"},
    {INSTANCE},
    {AS_ROW("intents", u64, as_start_record, intents, REQUIRED),
     .about = "Actions that have begun and have not ended"},
    {KIND},
    {AS_ROW_OF("leaders", list, as_start_record, leaders, FILLED, leader_rows),
     .about = "start, if other replicas led before: those that held the Lease, oldest first",
     .since = 2, .count_at = AS_ROW_COUNT(as_start_record, leader_count)},
    {PREV},
    {AS_ROW("revision", cut, as_start_record, revision, OPTIONAL),
     .about = "Of the program's sources"},
    {AS_ROW("rules", u64, as_start_record, rules, REQUIRED)},
    {AS_ROW("rules_digest", cut, as_start_record, rules_digest, REQUIRED)},
    {SEQ},
    {AS_ROW("targets", u64, as_start_record, targets, REQUIRED)},
    {TIME},
    {AS_ROW("version", cut, as_start_record, version, REQUIRED)},
    {.name = NULL},
};

static const struct as_row reload_rows[] = {
    {AS_ROW("config_digest", cut, as_reload_record, config_digest, NULLABLE)},
    {AS_ROW("credential", cut, as_reload_record, credential, REQUIRED),
     .about = "The credential of the request; empty: a signal, or changed files"},
    {AS_ROW("error", cut, as_reload_record, error, NULLABLE),
     .about = "Null: the new configuration is in force"},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("old_config_digest", cut, as_reload_record, old_config_digest, NULLABLE)},
    {AS_ROW("old_rules_digest", cut, as_reload_record, old_rules_digest, NULLABLE)},
    {PREV},
    {AS_ROW("rules_digest", cut, as_reload_record, rules_digest, NULLABLE)},
    {SEQ},
    {TIME},
    {.name = NULL},
};

static const struct as_row denied_rows[] = {
    {AS_ROW("count", u64, as_denied_record, count, REQUIRED),
     .about = "Refusals since the previous record, including this one"},
    {AS_ROW("error", cut, as_denied_record, error, REQUIRED), .about = "Of the last request"},
    {AS_ROW("handler", cut, as_denied_record, handler, REQUIRED)},
    {HASH},
    {INSTANCE},
    {KIND},
    {PREV},
    {AS_ROW("remote", cut, as_denied_record, remote, REQUIRED)},
    {SEQ},
    {AS_ROW("status", i32, as_denied_record, status, REQUIRED)},
    {TIME},
    {.name = NULL},
};

/*
 * Notifications and incidents.
 */

/* An alert and its outcome. */
struct written_alert {
    const struct as_alert *alert;
    const struct as_alert_outcome *outcome;
};

#define ALERT   .via = AS_ROW_VIA(written_alert, alert)
#define OUTCOME .via = AS_ROW_VIA(written_alert, outcome)

static void outcome_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_alert_outcome *outcome = base;
    (void)row;
    as_json_write_string(json, outcome->is_queued ? "queued" : as_reason_get_word(outcome->reason));
}

static const char *outcome_get_word(unsigned value)
{
    return value == 0 ? "queued" : reason_get_word(value - 1);
}

static void outcome_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_words(schema, outcome_get_word, 0);
}

static const struct as_row_type as_row_outcome = {.write = outcome_write,
                                                  .describe = outcome_describe};

static const struct as_row problem_rows[] = {
    {AS_ROW("error", own_cut, as_alert, problem, REQUIRED),
     .about = "The place in the notification, and the problem", ALERT},
    {AS_ROW("outcome", outcome, as_alert_outcome, reason, REQUIRED), OUTCOME},
    {.name = NULL},
};

static const struct as_row alert_rows[] = {
    {AS_ROW("digest", digest, as_alert, digest, REQUIRED), .since = 2,
     .about = "SHA-256 of the labels: the identity of the alert. Since 0.2.0", ALERT},
    {AS_ROW("fingerprint", hex, as_alert, fingerprint, REQUIRED),
     .about = "As in the notification; it identifies nothing", ALERT},
    {AS_ROW("labels", own_labels, as_alert, labels, REQUIRED), ALERT},
    {AS_ROW("outcome", outcome, as_alert_outcome, reason, REQUIRED),
     .about = "`queued`, or the reason code why the alert led to nothing", OUTCOME},
    {AS_ROW("rules", texts, as_alert_outcome, rules, REQUIRED),
     .about = "Names of the matching rules", OUTCOME,
     .count_at = AS_ROW_COUNT(as_alert_outcome, rule_count)},
    {AS_ROW("startsAt", time, as_alert, starts_at, REQUIRED), ALERT},
    {AS_ROW("status", word, as_alert, status, REQUIRED), ALERT, .get_word = status_get_word},
    {.name = NULL, .definition = "alert"},
};

/* The alerts of a notification that could be read have the rows of the row. */
static void alerts_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_notification_record *record = base;
    const struct as_notification *notification = record->notification;
    as_json_begin_array(json);
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct written_alert written = {&notification->alerts[i], &record->outcomes[i]};
        as_rows_write(json, written.alert->problem ? problem_rows : row->rows, &written);
    }
    as_json_end_array(json);
}

static void alerts_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    const struct as_row *const tables[] = {row->rows, problem_rows};
    as_rows_schema_begin_items(schema, 0, 0);
    as_rows_schema_begin_forms(schema);
    for (size_t i = 0; i < AS_ARRAY_SIZE(tables); i++) {
        as_rows_schema_begin_form(schema);
        as_rows_schema_write_rows(schema, tables[i]);
        as_rows_schema_end_form(schema);
    }
    as_rows_schema_end_forms(schema);
    as_rows_schema_end_items(schema);
}

static const struct as_row_type as_row_alerts = {.write = alerts_write,
                                                 .describe = alerts_describe};

#define NOTIFICATION .via = AS_ROW_VIA(as_notification_record, notification)

static const struct as_row notification_rows[] = {
    {AS_ROW("alerts", alerts, as_notification_record, outcomes, REQUIRED), .rows = alert_rows},
    {AS_ROW_CHARS("body_sha256", as_notification, body_sha256, REQUIRED), NOTIFICATION},
    {AS_ROW("body_size", u64, as_notification, body_size, REQUIRED), NOTIFICATION},
    {AS_ROW("credential", own_cut, as_notification, credential, REQUIRED),
     .about = "The name of the credential; empty: none is configured", NOTIFICATION},
    {AS_ROW("groupKey", own_cut, as_notification, group_key, REQUIRED), NOTIFICATION},
    {HASH},
    {AS_ROW_CHARS("id", as_notification, id, REQUIRED), NOTIFICATION},
    {INSTANCE},
    {KIND},
    {AS_ROW("notification_reason", own_cut, as_notification, reason, REQUIRED),
     .about = "The reason that Alertmanager gives; empty: none", NOTIFICATION},
    {PREV},
    {AS_ROW("receiver", own_cut, as_notification, receiver, REQUIRED), NOTIFICATION},
    {AS_ROW("remote", own_cut, as_notification, remote, REQUIRED), .about = "Address and port",
     NOTIFICATION},
    {SEQ},
    {TIME},
    {AS_ROW("traceparent", own_cut, as_notification, traceparent, REQUIRED), NOTIFICATION},
    {AS_ROW("truncated", u64, as_notification, truncated, REQUIRED),
     .about = "Alerts that Alertmanager cut off", NOTIFICATION},
    {.name = NULL},
};

static const struct as_row repeat_outcome_rows[] = {
    {AS_ROW("duplicate", u64, as_repeat_record, duplicate, OPTIONAL)},
    {AS_ROW("max_steps", u64, as_repeat_record, max_steps, OPTIONAL)},
    {.name = NULL},
};

#define REPEATED .via = AS_ROW_VIA(as_repeat_record, notification)

static const struct as_row repeat_rows[] = {
    {AS_ROW("credential", own_cut, as_notification, credential, REQUIRED),
     .about = "The name of the credential; empty: none is configured", REPEATED},
    {HASH},
    {AS_ROW_CHARS("id", as_notification, id, REQUIRED), REPEATED},
    {INSTANCE},
    {KIND},
    {AS_ROW_SAME("outcomes", REQUIRED, repeat_outcome_rows),
     .about = "The number of alerts by their outcome"},
    {PREV},
    {AS_ROW("remote", own_cut, as_notification, remote, REQUIRED), .about = "Address and port",
     REPEATED},
    {AS_ROW("same_as", cut, as_repeat_record, same_as, REQUIRED),
     .about = "`id` of the notification with the details"},
    {SEQ},
    {TIME},
    {AS_ROW("traceparent", own_cut, as_notification, traceparent, REQUIRED), REPEATED},
    {.name = NULL},
};

static const struct as_row incident_target_rows[] = {
    {AS_ROW("replicas", size, as_incident_target, replicas, REQUIRED),
     .about = "When last seen; null: never seen"},
    {AS_ROW("rule", text, as_incident_target, rule, REQUIRED)},
    {AS_ROW("target", text, as_incident_target, target, REQUIRED)},
    {.name = NULL},
};

static const struct as_row incident_rows[] = {
    {AS_ROW("digest", digest, as_incident_record, digest, REQUIRED), .since = 2,
     .about = "SHA-256 of the labels of the alert: its identity. Since 0.2.0"},
    {AS_ROW("event", word, as_incident_record, event, REQUIRED),
     .get_word = incident_event_get_word},
    {AS_ROW("fingerprint", hex, as_incident_record, fingerprint, REQUIRED),
     .about = "As in the notification; it identifies nothing"},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("labels", labels, as_incident_record, labels, REQUIRED)},
    {AS_ROW("notification", cut, as_incident_record, notification, NULLABLE),
     .about = "Its `id`; null: no notification caused the event"},
    {PREV},
    {SEQ},
    {AS_ROW("startsAt", time, as_incident_record, starts_at, REQUIRED)},
    {AS_ROW("startsAt_claimed", exact, as_incident_record, claimed.at, OPTIONAL),
     .about = "opened: the start in the notification, which is ahead of the clock; startsAt is "
              "then the time of arrival",
     .has_at = AS_ROW_HAS(as_incident_record, claimed.set)},
    {AS_ROW("state_reason", cut, as_incident_record, state, OPTIONAL),
     .about = "closed: the alert's annotation `grafana_state_reason`: `on_resolved` does nothing"},
    {AS_ROW_OF("targets", list, as_incident_record, targets, REQUIRED, incident_target_rows),
     .count_at = AS_ROW_COUNT(as_incident_record, target_count)},
    {TIME},
    {.name = NULL},
};

/*
 * Other writers of a target's size.
 */

static const struct as_row reverted_change_rows[] = {
    {AS_ROW("at", exact, as_reverted_change, at.wall, REQUIRED),
     .about = "When the reverted change was found"},
    {AS_ROW("by", text, as_reverted_change, by, NULLABLE),
     .about = "The manager of the size in managedFields; null: not known"},
    {AS_ROW("found", size, as_reverted_change, found, REQUIRED),
     .about = "The size that was found instead"},
    {AS_ROW("from", size, as_reverted_change, from, REQUIRED),
     .about = "The size before alertscaler's change"},
    {AS_ROW("to", size, as_reverted_change, to, REQUIRED),
     .about = "The size that alertscaler set"},
    {.name = NULL, .definition = "reverted_change"},
};

static const struct as_row other_rows[] = {
    {AS_ROW("kind", text, as_other, kind, REQUIRED)},
    {AS_ROW("max", size, as_other, max, REQUIRED), .about = "Null: not given"},
    {AS_ROW("min", size, as_other, min, REQUIRED), .about = "Null: not given"},
    {AS_ROW("name", text, as_other, name, REQUIRED), .about = "In the target's namespace"},
    {AS_ROW("paused", flag, as_other, is_paused, REQUIRED), .since = 2,
     .about = "KEDA's annotations pause the ScaledObject. Since 0.2.0"},
    {.name = NULL},
};

#define FOUND     .via = AS_ROW_VIA(as_others_record, found), .is_via_optional = true
#define CONTENDED .via = AS_ROW_VIA(as_others_record, contended), .is_via_optional = true

static const struct as_row others_rows[] = {
    {AS_ROW("event", word, as_others_record, event, REQUIRED),
     .about = "`found`: the objects that size the target have changed. `contended`: changes were "
              "reverted three times within an hour, and alertscaler leaves the target alone. "
              "`over`: the contention has ended",
     .get_word = others_event_get_word},
    {AS_ROW_OF("found", list, as_others_found, items, REQUIRED, other_rows),
     .about = "found: the HPAs and ScaledObjects that size the target now", FOUND,
     .count_at = AS_ROW_COUNT(as_others_found, count)},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("message", cut, as_others_record, message, OPTIONAL), .about = "over: why"},
    {PREV},
    {SEQ},
    {AS_ROW_OF("set_backs", list, as_contended_note, reverted_changes, REQUIRED,
               reverted_change_rows),
     .about = "contended: the reverted changes, oldest first", CONTENDED,
     .count_at = AS_ROW_COUNT(as_contended_note, reverted_change_count)},
    {AS_ROW("target", cut, as_others_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_others_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("until", exact, as_contended_note, until, REQUIRED),
     .about = "contended: the end, unless an operator resumes the target earlier", CONTENDED},
    {.name = NULL},
};

static const struct as_row policy_rows[] = {
    {AS_ROW("event", word, as_policy_record, event, REQUIRED),
     .about =
         "`in_force`: this generation is in force. `refused`: it is not. `removed`: the object "
         "is gone, or is not selected any more",
     .get_word = policy_event_get_word},
    {AS_ROW("generation", i64, as_policy_record, generation, REQUIRED), .about = "Of the object"},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("message", cut, as_policy_record, message, OPTIONAL),
     .about = "refused: the errors, in the words of `check`"},
    {AS_ROW("name", cut, as_policy_record, name, REQUIRED)},
    {AS_ROW("namespace", cut, as_policy_record, namespace, REQUIRED)},
    {PREV},
    {AS_ROW("reason", cut, as_policy_record, reason, OPTIONAL),
     .about = "The reason of the condition `Ready`; not of `removed`"},
    {SEQ},
    {AS_ROW("spec", text, as_policy_record, spec, OPTIONAL),
     .about = "The object's `spec`, as a JSON text; not of `removed`, nor at the start"},
    {TIME},
    {AS_ROW("uid", cut, as_policy_record, uid, REQUIRED), .about = "Of the object"},
    {.name = NULL},
};

/*
 * Decisions and their actions.
 */

static const struct as_row contended_rows[] = {
    {AS_ROW_OF("set_backs", list, as_contended_note, reverted_changes, REQUIRED,
               reverted_change_rows),
     .about = "The reverted changes, oldest first",
     .count_at = AS_ROW_COUNT(as_contended_note, reverted_change_count)},
    {AS_ROW("until", exact, as_contended_note, until, REQUIRED),
     .about = "The end, unless an operator resumes the target earlier"},
    {.name = NULL},
};

static const struct as_row pause_rows[] = {
    {AS_ROW("all", flag, as_pause_note, is_of_all, REQUIRED), .about = "All targets are paused"},
    {AS_ROW("direction", word, as_pause_note, ways, OPTIONAL),
     .about = "The only direction that is paused; absent: both", .get_word = way_get_word,
     .min = AS_WAYS_DOWN},
    {AS_ROW("reason", cut, as_pause_note, reason, REQUIRED)},
    {AS_ROW("until", exact, as_pause_note, until.at, REQUIRED),
     .about = "Null: until an operator resumes it", .has_at = AS_ROW_HAS(as_pause_note, until.set)},
    {AS_ROW("who", text, as_pause_note, who, REQUIRED),
     .about = "The name of the credential, or the kill switch"},
    {.name = NULL},
};

static const struct as_row give_back_rows[] = {
    {AS_ROW("added", i32, as_give_back_note, added, REQUIRED), .about = "By the incident"},
    {AS_ROW("amount", i32, as_give_back_note, amount, REQUIRED),
     .about = "Given back in this step"},
    {AS_ROW("incident", cut, as_give_back_note, incident, REQUIRED),
     .about = "The digest of its alert"},
    {AS_ROW("step", u32, as_give_back_note, step, REQUIRED), .about = "The first step is 1"},
    {AS_ROW("steps", u32, as_give_back_note, steps, REQUIRED)},
    {.name = NULL},
};

static const struct as_row proof_rows[] = {
    {AS_ROW("every_seconds", known_seconds, as_proof_note, every_us, REQUIRED),
     .about = "watchdog: between its last reports; null: not known"},
    {AS_ROW("query", cut, as_proof_note, query, OPTIONAL),
     .about = "The query of the rule's guard; absent: the watchdog is the proof"},
    {AS_ROW("reported", exact, as_proof_note, reported.at, OPTIONAL),
     .about = "watchdog: its last report; absent: none since the start",
     .has_at = AS_ROW_HAS(as_proof_note, reported.set)},
    {AS_ROW("state_reason", cut, as_proof_note, state, OPTIONAL),
     .about =
         "the alert's annotation `grafana_state_reason`: its state does not come from its query"},
    {.name = NULL},
};

static const struct as_row decision_rows[] = {
    {AS_ROW_OF("contended", object, as_decision_record, contended, OPTIONAL, contended_rows),
     .about = "Only if `input.flags.contended` is true"},
    {AS_ROW("former_uid", cut, as_decision_record, former_uid, OPTIONAL),
     .about =
         "UID of the former object of this name; only in the first decision about another object"},
    {AS_ROW_OF("give_back", object, as_decision_record, give_back, OPTIONAL, give_back_rows),
     .about = "Only if the winner is a step of `give_back`"},
    {HASH},
    {AS_ROW("id", cut, as_decision_record, id, REQUIRED)},
    {AS_ROW("incident_count", u64, as_decision_record, incident_total, REQUIRED)},
    {AS_ROW("incidents", digests, as_decision_record, incidents, REQUIRED),
     .about = "The open incidents, at most 32, by the digests of their alerts (before 0.2.0: by "
              "their fingerprints)",
     .max = AS_RECORD_LIST_MAX, .count_at = AS_ROW_COUNT(as_decision_record, incident_count)},
    {AS_ROW("input", input, as_decision_record, input, REQUIRED)},
    {INSTANCE},
    {KIND},
    {AS_ROW("notification_count", u64, as_decision_record, notification_total, REQUIRED)},
    {AS_ROW("notifications", ids, as_decision_record, notifications, REQUIRED),
     .about = "The notifications since the previous decision, at most 32",
     .max = AS_RECORD_LIST_MAX, .count_at = AS_ROW_COUNT(as_decision_record, notification_count)},
    {AS_ROW("output", output, as_decision_record, output, REQUIRED)},
    {AS_ROW_OF("pause", object, as_decision_record, pause, OPTIONAL, pause_rows),
     .about = "Only if `input.flags.paused` is true"},
    {AS_ROW("pool_decision", cut, as_decision_record, pool_decision, OPTIONAL),
     .about = "`id` of the decision of the pool that this decision carries out"},
    {PREV},
    {AS_ROW_OF("proof", object, as_decision_record, proof, OPTIONAL, proof_rows),
     .about = "The missing proof that monitoring works; only if `input.flags.guarded` is true"},
    {AS_ROW("repeats", u64, as_decision_record, repeats, REQUIRED),
     .about = "Equal decisions since the previous record, which have no record"},
    {AS_ROW("rules_digest", cut, as_decision_record, rules_digest, REQUIRED)},
    {SEQ},
    {AS_ROW("since_alert_seconds", known_seconds, as_decision_record, since_alert_us, REQUIRED),
     .about = "Since `startsAt` of the youngest alert; null: no alert"},
    {AS_ROW("since_notification_seconds", known_seconds, as_decision_record, since_notification_us,
            REQUIRED),
     .about = "Null: no notification"},
    {AS_ROW("target", cut, as_decision_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_decision_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("unit", text, as_decision_record, unit, OPTIONAL),
     .about = "The quantity that sizes count; only of a target with `unit`"},
    {AS_ROW("waits_for", cut, as_decision_record, waits_for, OPTIONAL),
     .about = "The name of the target that must be decreased first"},
    {.name = NULL},
};

static const struct as_row action_rows[] = {
    {AS_ROW("approval", cut, as_action_record, approval, OPTIONAL),
     .about = "`id` of the approved request"},
    {AS_ROW("attempts", u32, as_action_record, attempts, REQUIRED)},
    {AS_ROW("command", cut, as_action_record, command, OPTIONAL),
     .about = "`id` of the `command` record; absent: a decision caused the action"},
    {AS_ROW("decision", cut, as_action_record, decision, NULLABLE),
     .about = "Null, without `command`: the size could not be read"},
    {AS_ROW("duration_seconds", known_seconds, as_action_record, duration_us, REQUIRED)},
    {AS_ROW("from", size, as_action_record, from, REQUIRED)},
    {HASH},
    {AS_ROW("http_status", i32, as_action_record, http_status, REQUIRED),
     .about = "0: no response"},
    {AS_ROW("id", cut, as_action_record, id, REQUIRED)},
    {INSTANCE},
    {KIND},
    {AS_ROW("late", flag, as_action_record, is_late, REQUIRED),
     .about = "The outcome was observed later"},
    {AS_ROW("message", cut, as_action_record, message, NULLABLE)},
    {AS_ROW("method", cut, as_action_record, method, NULLABLE)},
    {AS_ROW("next_try", exact, as_action_record, next_try.at, OPTIONAL),
     .about = "Of a failure: the next try; absent: at once, or never",
     .has_at = AS_ROW_HAS(as_action_record, next_try.set)},
    {AS_ROW("outcome", word, as_action_record, outcome, REQUIRED), .get_word = reason_get_word},
    {AS_ROW("path", cut, as_action_record, path, NULLABLE)},
    {PREV},
    {AS_ROW("repeats", u64, as_action_record, repeats, REQUIRED),
     .about = "Equal failures since the previous record"},
    {AS_ROW("request_id", text, as_action_record, request_id, OPTIONAL),
     .about = "The provider's id of the request"},
    {AS_ROW("rule", cut, as_action_record, rule, NULLABLE)},
    {SEQ},
    {AS_ROW("since_alert_seconds", known_seconds, as_action_record, since_alert_us, REQUIRED),
     .about = "Since `startsAt` of the youngest alert; null: no alert"},
    {AS_ROW("since_notification_seconds", known_seconds, as_action_record, since_notification_us,
            REQUIRED),
     .about = "Null: no notification"},
    {AS_ROW("target", cut, as_action_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_action_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("to", size, as_action_record, to, REQUIRED)},
    {AS_ROW("tries", u32, as_action_record, tries, OPTIONAL),
     .about = "Of a failure: the failed tries in a row, with this one", .min = 1},
    {AS_ROW("unit", text, as_action_record, unit, OPTIONAL),
     .about = "The quantity that sizes count; only of a target with `unit`"},
    {AS_ROW("version", cut, as_action_record, version, NULLABLE),
     .about = "The resource version or ETag that the request was conditional on"},
    {.name = NULL},
};

static const struct as_row effect_rows[] = {
    {AS_ROW("action", cut, as_effect_record, action, REQUIRED), .about = "`id` of the action"},
    {AS_ROW("decision", cut, as_effect_record, decision, REQUIRED)},
    {AS_ROW("ended", word, as_effect_record, end, REQUIRED),
     .about = "`resolved`: the alert was resolved within an hour. `not_resolved`: it was not. "
              "`unknown`: the end of the alert is not known",
     .get_word = effect_end_get_word},
    {AS_ROW("from", i32, as_effect_record, from, REQUIRED)},
    {HASH},
    {AS_ROW("held_until", exact, as_effect_record, until, OPTIONAL),
     .about = "The rule is ineffective on the target until then; absent: it is not, or was before",
     .has_at = AS_ROW_HAS(as_effect_record, is_held)},
    {AS_ROW("in_vain", u32, as_effect_record, in_vain, REQUIRED),
     .about = "Actions of the rule on the target in a row that did not help; 0 without "
              "`ineffective_after`"},
    {INSTANCE},
    {KIND},
    {PREV},
    {AS_ROW("ready_after", known_seconds, as_effect_record, ready_us, REQUIRED),
     .about = "Seconds until the requested number was ready; null: a decrease, not within an hour, "
              "or not known"},
    {AS_ROW("resolved_after", known_seconds, as_effect_record, resolved_us, REQUIRED),
     .about = "Seconds until the alert was resolved; null: not within an hour, or not known"},
    {AS_ROW("rule", cut, as_effect_record, rule, REQUIRED)},
    {SEQ},
    {AS_ROW("target", cut, as_effect_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_effect_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("to", i32, as_effect_record, to, REQUIRED)},
    {.name = NULL},
};

/* Nodes that leave their group. */
static const struct as_row nodes_rows[] = {
    {AS_ROW("decision", cut, as_nodes_record, decision, REQUIRED),
     .about = "`id` of the decision, or of the command, that chose the nodes"},
    {AS_ROW("event", word, as_nodes_record, event, REQUIRED),
     .about = "`marked`: cordoned and marked, and not in the size of the group any more. "
              "`removed`: their instances are gone. `kept`: they stay",
     .get_word = nodes_event_get_word},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("message", cut, as_nodes_record, message, REQUIRED), .about = "Why; may be empty"},
    {AS_ROW("nodes", cuts, as_nodes_record, nodes, REQUIRED),
     .about = "Names of the nodes; of an instance without a node its id at the provider",
     .count_at = AS_ROW_COUNT(as_nodes_record, node_count)},
    {PREV},
    {SEQ},
    {AS_ROW("target", cut, as_nodes_record, target, REQUIRED), .about = "Of the group"},
    {AS_ROW("target_name", cut, as_nodes_record, target_name, REQUIRED)},
    {TIME},
    {.name = NULL},
};

/*
 * Operator commands, approvals, and notices of people.
 */

#define COMMAND .via = AS_ROW_VIA(as_operator_command_record, order)

/* The target as in the command, if it is not found. */
static void found_target_write(struct as_json_writer *json, const struct as_row *row,
                               const void *base)
{
    const struct as_operator_command_record *record = base;
    (void)row;
    write_cut(json, record->target ? record->target : record->order->target);
}

static const struct as_row_type as_row_found_target = {
    .is_nullable = true, .write = found_target_write, .like = &as_row_text};

static const struct as_row command_rows[] = {
    {AS_ROW("command", word, as_operator_command, kind, REQUIRED), COMMAND,
     .get_word = operator_command_kind_get_word},
    {AS_ROW("force", flag, as_operator_command, force, REQUIRED),
     .about = "scale: beyond min and max", COMMAND},
    {HASH},
    {AS_ROW_CHARS("id", as_operator_command_record, id, REQUIRED)},
    {INSTANCE},
    {KIND},
    {AS_ROW("max", size, as_operator_command_record, max, REQUIRED), .about = "Of the target"},
    {AS_ROW("message", cut, as_operator_command_record, message, REQUIRED),
     .about = "Why, if the outcome is not `done`"},
    {AS_ROW("min", size, as_operator_command_record, min, REQUIRED)},
    {AS_ROW("outcome", word, as_operator_command_record, outcome, REQUIRED),
     .get_word = operator_command_outcome_get_word},
    {PREV},
    {AS_ROW("reason", cut, as_operator_command, reason, REQUIRED),
     .about = "As given by the operator", COMMAND},
    {AS_ROW("remote", cut, as_operator_command, remote, REQUIRED),
     .about = "The address; empty: the end of a pause by time, or the kill switch", COMMAND},
    {AS_ROW("replicas", size, as_operator_command_record, replicas, REQUIRED),
     .about = "scale: the requested size"},
    {AS_ROW("request", cut, as_operator_command, request, OPTIONAL),
     .about = "approve, deny: the id of the request", COMMAND},
    {SEQ},
    {AS_ROW("target", found_target, as_operator_command_record, target, REQUIRED),
     .about = "The id of the target, or the name that was given; null: all targets"},
    {AS_ROW("target_name", cut, as_operator_command_record, target_name, NULLABLE)},
    {TIME},
    {AS_ROW("until", exact, as_operator_command_record, until.at, REQUIRED),
     .about = "pause, floor: the end; null: none",
     .has_at = AS_ROW_HAS(as_operator_command_record, until.set)},
    {AS_ROW("who", cut, as_operator_command, who, REQUIRED),
     .about = "The name of the credential; empty: none is needed; or the kill switch", COMMAND},
    {.name = NULL},
};

#define REQUEST .via = AS_ROW_VIA(as_approval_record, request)

static const struct as_row approval_rows[] = {
    {AS_ROW("action", cut, as_approval_record, action, OPTIONAL),
     .about = "used, returned: `id` of the action"},
    {AS_ROW("command", cut, as_approval_record, command, OPTIONAL),
     .about = "approved, denied: `id` of the `command` record"},
    {AS_ROW("decision", cut, as_approval_state, decision, REQUIRED),
     .about = "`id` of the decision that asked", REQUEST},
    {AS_ROW("direction", is_up, as_approval_state, is_up, REQUIRED), REQUEST},
    {AS_ROW("event", word, as_approval_record, event, REQUIRED),
     .get_word = approval_event_get_word},
    {AS_ROW("from", i32, as_approval_state, from, REQUIRED), REQUEST},
    {HASH},
    {AS_ROW("id", cut, as_approval_state, id, REQUIRED), .about = "Of the request", REQUEST},
    {AS_ROW("incident", cut, as_approval_state, incident, REQUIRED),
     .about = "Its digest; \"always\" of a rule without an alert", REQUEST},
    {INSTANCE},
    {KIND},
    {AS_ROW("message", cut, as_approval_record, message, REQUIRED), .about = "Why; may be empty"},
    {PREV},
    {AS_ROW("rule", cut, as_approval_state, rule, REQUIRED), REQUEST},
    {SEQ},
    {AS_ROW("target", cut, as_approval_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_approval_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("to", i32, as_approval_state, to, REQUIRED),
     .about = "The size that was shown: an approval allows no larger change", REQUEST},
    {AS_ROW("unit", text, as_approval_record, unit, OPTIONAL),
     .about = "The quantity that sizes count; only of a target with `unit`"},
    {AS_ROW("until", exact, as_approval_record, until.at, REQUIRED),
     .about = "The end of the request, or of the approval",
     .has_at = AS_ROW_HAS(as_approval_record, until.set)},
    {AS_ROW("who", cut, as_approval_state, who, REQUIRED),
     .about = "The credential of the answer; empty: none", REQUEST},
    {.name = NULL},
};

#define DROPPED .via = AS_ROW_VIA(as_notify_record, dropped), .is_via_optional = true
#define ENDED   .via = AS_ROW_VIA(as_notify_record, ended), .is_via_optional = true

static const char *notify_event_get_word(unsigned is_ended)
{
    static const char *const words[] = {"dropped", "ended"};
    return is_ended < AS_ARRAY_SIZE(words) ? words[is_ended] : NULL;
}

static void notify_event_write(struct as_json_writer *json, const struct as_row *row,
                               const void *base)
{
    as_json_write_string(json, notify_event_get_word(!record_get_pointer(row, base)));
}

static void notify_event_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_words(schema, notify_event_get_word, 0);
}

static const struct as_row_type as_row_notify_event = {.write = notify_event_write,
                                                       .describe = notify_event_describe};

static const struct as_row notify_rows[] = {
    {AS_ROW("cause", word, as_notices_dropped, cause, REQUIRED),
     .about = "dropped: `overflow`: too many waited. `too_old`: older than `max_age`. `removed`: "
              "the receiver is not configured any more. `unreadable`: a later version wrote them",
     DROPPED, .get_word = notice_loss_get_word},
    {AS_ROW("count", u64, as_notices_dropped, count, REQUIRED), .about = "dropped: how many",
     DROPPED},
    {AS_ROW("event", notify_event, as_notify_record, dropped, REQUIRED),
     .about =
         "`dropped`: the receiver never gets the notices. `ended`: a reported state has ended"},
    {HASH},
    {INSTANCE},
    {KIND},
    {PREV},
    {AS_ROW("receiver", cut, as_notices_dropped, receiver, REQUIRED),
     .about = "dropped: the name of the receiver", DROPPED},
    {AS_ROW("rule", cut, as_notice_ended, rule, OPTIONAL),
     .about = "ended, of `ineffective`: the rule", ENDED},
    {SEQ},
    {AS_ROW("state", word, as_notice_ended, state, REQUIRED), .about = "ended: the state", ENDED,
     .get_word = state_get_word},
    {AS_ROW("target", cut, as_notice_ended, target, REQUIRED), .about = "ended", ENDED},
    {AS_ROW("target_name", cut, as_notice_ended, target_name, REQUIRED), .about = "ended", ENDED},
    {TIME},
    {.name = NULL},
};

static const struct as_row *const tables[AS_RECORD_KIND_COUNT] = {
    [AS_RECORD_START] = start_rows,       [AS_RECORD_STOP] = start_rows,
    [AS_RECORD_RELOAD] = reload_rows,     [AS_RECORD_NOTIFICATION] = notification_rows,
    [AS_RECORD_REPEAT] = repeat_rows,     [AS_RECORD_DECISION] = decision_rows,
    [AS_RECORD_ACTION] = action_rows,     [AS_RECORD_INCIDENT] = incident_rows,
    [AS_RECORD_COMMAND] = command_rows,   [AS_RECORD_DENIED] = denied_rows,
    [AS_RECORD_NODES] = nodes_rows,       [AS_RECORD_NOTIFY] = notify_rows,
    [AS_RECORD_EFFECT] = effect_rows,     [AS_RECORD_OTHERS] = others_rows,
    [AS_RECORD_APPROVAL] = approval_rows, [AS_RECORD_POLICY] = policy_rows,
};

void as_record_encode(const struct as_record_header *header, enum as_record_kind kind,
                      const void *record, struct as_buf *out, struct as_record_places *places_out)
{
    struct record_writer writer = {.header = header, .kind = kind, .places = places_out};
    as_json_init(&writer.json, out, 0);
    as_rows_write(&writer.json, tables[kind], record);
}

/*
 * The JSON Schema.
 */

static const char *const abouts[AS_RECORD_KIND_COUNT] = {
    [AS_RECORD_START] = "alertscaler started, with this configuration and this state",
    [AS_RECORD_STOP] = "alertscaler stopped in order",
    [AS_RECORD_RELOAD] = "The configuration was read again; with `error` the former one stays",
    [AS_RECORD_NOTIFICATION] = "A notification is durable",
    [AS_RECORD_REPEAT] = "A notification without changes: an earlier record has its details",
    [AS_RECORD_DECISION] = "The decision about a target at one moment",
    [AS_RECORD_ACTION] = "A size was set, or could not be set",
    [AS_RECORD_INCIDENT] = "An incident began, changed or ended",
    [AS_RECORD_COMMAND] = "An operator command, the end of a pause, or the kill switch",
    [AS_RECORD_DENIED] = "Refused requests",
    [AS_RECORD_NODES] = "Nodes of a group that were chosen to leave",
    [AS_RECORD_NOTIFY] = "Notices that were dropped, or the end of a reported state",
    [AS_RECORD_EFFECT] = "The effect of an action that an alert caused",
    [AS_RECORD_OTHERS] = "Other objects that size a target",
    [AS_RECORD_APPROVAL] = "A change that needs the approval of a person",
    [AS_RECORD_POLICY] = "A scaling policy came, changed or went",
};

static void record_schema_write_kinds(struct as_rows_schema *schema)
{
    struct as_json_writer *json = &schema->json;
    as_json_write_key(json, "required");
    as_json_begin_array(json);
    as_json_write_string(json, "kind");
    as_json_end_array(json);
    as_json_write_key(json, "properties");
    as_json_begin_object(json);
    as_json_write_key(json, "kind");
    as_json_begin_object(json);
    as_rows_schema_write_words(schema, record_kind_get_word, 0);
    as_json_end_object(json);
    as_json_end_object(json);
}

/* Records of this kind are valid by its definition. */
static void record_schema_write_condition(struct as_json_writer *json, const char *kind)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("#/$defs/%s", kind);
    as_json_begin_object(json);
    as_json_write_key(json, "if");
    as_json_begin_object(json);
    as_json_write_key(json, "properties");
    as_json_begin_object(json);
    as_json_write_key(json, "kind");
    as_json_begin_object(json);
    as_json_write_member(json, "const", kind);
    as_json_end_object(json);
    as_json_end_object(json);
    as_json_end_object(json);
    as_json_write_key(json, "then");
    as_json_begin_object(json);
    as_json_write_member(json, "$ref", path);
    as_json_end_object(json);
    as_json_end_object(json);
}

void as_record_encode_schema(struct as_buf *out)
{
    struct record_schema record;
    struct as_rows_schema *schema = &record.schema;
    as_rows_schema_begin(schema, out, AS_ROWS_SCHEMA_WRITTEN,
                         "A record of alertscaler's action log",
                         "One line of the file. docs/action-log.md explains it.");
    as_rows_schema_write_type(schema, "object");
    record_schema_write_kinds(schema);
    as_json_write_key(&schema->json, "allOf");
    as_json_begin_array(&schema->json);
    for (unsigned kind = 0; kind < AS_RECORD_KIND_COUNT; kind++)
        record_schema_write_condition(&schema->json, record_kind_get_word(kind));
    as_json_end_array(&schema->json);
    for (record.kind = 0; record.kind < AS_RECORD_KIND_COUNT; record.kind++)
        as_rows_schema_write_definition(schema, as_record_kind_get_word(record.kind),
                                        abouts[record.kind], tables[record.kind]);
    as_rows_schema_end(schema);
}

/*
 * The answer to a notification. Its members stand in this order, which is not ascending.
 */

static const struct as_row answered_alert_rows[] = {
    {AS_ROW("digest", digest, as_alert, digest, REQUIRED), ALERT},
    {AS_ROW("fingerprint", hex, as_alert, fingerprint, REQUIRED), ALERT},
    {AS_ROW("status", word, as_alert, status, REQUIRED), ALERT, .get_word = status_get_word},
    {AS_ROW("rules", texts, as_alert_outcome, rules, REQUIRED), OUTCOME,
     .count_at = AS_ROW_COUNT(as_alert_outcome, rule_count)},
    {AS_ROW("outcome", outcome, as_alert_outcome, reason, REQUIRED), OUTCOME},
    {.name = NULL},
};

static void ok_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row, (void)base;
    as_json_write_string(json, "ok");
}

static const struct as_row_type row_ok = {.write = ok_write};

static const struct as_row answer_rows[] = {
    {.name = "status", .type = &row_ok},
    {AS_ROW_CHARS("notification", as_notification, id, REQUIRED), NOTIFICATION},
    {AS_ROW("alerts", alerts, as_notification_record, outcomes, REQUIRED),
     .rows = answered_alert_rows},
    {.name = NULL},
};

void as_record_encode_answer(const struct as_notification_record *record, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_rows_write(&json, answer_rows, record);
    as_buf_append_char(out, '\n');
}
