/*
 * Records of the action log: a table of rows for each kind of record, and the answer to a
 * notification. All rows are for writing only. Rows of the chain's members (hash, prev, seq) write
 * nothing: they note where log_chain.c adds these members.
 */
#include <alertscaler/log/record.h>

#include <stddef.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/doc/rows.h>

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

static const struct as_row_type as_row_cut = {.write = cut_write, .is_unset = cut_is_unset};
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

static const struct as_row_type as_row_cuts = {.write = cuts_write};

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

static const struct as_row_type as_row_known_seconds = {.write = known_seconds_write};

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

static const struct as_row_type as_row_digests = {.write = digests_write};

static void ids_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char(*ids)[AS_ULID_SIZE] = record_get_pointer(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < as_row_get_count(row, base); i++)
        as_json_write_string(json, ids[i]);
    as_json_end_array(json);
}

static const struct as_row_type as_row_ids = {.write = ids_write};

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

static const struct as_row_type as_row_labels = {.write = record_labels_write};
#define as_row_own_labels as_row_labels

/* The documents of a decision. */
static void input_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    (void)row;
    as_json_write_raw(json, "", 0);
    as_decision_encode_input(((const struct as_decision_record *)base)->input, json->buf);
}

static const struct as_row_type as_row_input = {.write = input_write};

static void output_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_decision_record *record = base;
    (void)row;
    as_json_write_raw(json, "", 0);
    as_decision_encode_output(record->input, record->results, record->output, json->buf);
}

static const struct as_row_type as_row_output = {.write = output_write};

/*
 * Words. Each function has the type that rows call.
 */

#define WORD(name, type)                                                                           \
    static const char *name##_get_word(unsigned value)                                             \
    {                                                                                              \
        return as_##name##_get_word((enum type)value);                                             \
    }
WORD(approval_event, as_approval_event)
WORD(effect_end, as_effect_end)
WORD(incident_event, as_incident_event)
WORD(nodes_event, as_nodes_event)
WORD(notice_loss, as_notice_loss)
WORD(operator_command_kind, as_operator_command_kind)
WORD(operator_command_outcome, as_operator_command_outcome)
WORD(others_event, as_others_event)
WORD(reason, as_reason)
#undef WORD

static const char *state_get_word(unsigned state)
{
    return as_notice_kind_get_row((enum as_notice_kind)state)->word;
}

static const char *status_get_word(unsigned status)
{
    return status == AS_ALERT_FIRING ? "firing" : "resolved";
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

static const struct as_row_type row_instance = {.write = instance_write};
static const struct as_row_type row_kind = {.write = kind_write};
static const struct as_row_type row_time = {.write = record_time_write};
static const struct as_row_type row_place = {.has_own_key = true, .write = record_place_write};

#define PLACE(member) .type = &row_place, .at = offsetof(struct as_record_places, member)
#define HASH          .name = "hash", PLACE(at_hash)
#define INSTANCE      .name = "instance", .type = &row_instance
#define KIND          .name = "kind", .type = &row_kind
#define PREV          .name = "prev", PLACE(at_prev)
#define SEQ           .name = "seq", PLACE(at_seq)
#define TIME          .name = "time", .type = &row_time, .at = offsetof(struct as_record_header, time)

/*
 * Start and stop; a reload of the configuration; refused requests.
 */

static const struct as_row start_rows[] = {
    {AS_ROW("config_digest", cut, as_start_record, config_digest, REQUIRED)},
    {HASH},
    {AS_ROW("incidents", u64, as_start_record, incidents, REQUIRED)},
    {INSTANCE},
    {AS_ROW("intents", u64, as_start_record, intents, REQUIRED)},
    {KIND},
    {PREV},
    {AS_ROW("rules", u64, as_start_record, rules, REQUIRED)},
    {AS_ROW("rules_digest", cut, as_start_record, rules_digest, REQUIRED)},
    {SEQ},
    {AS_ROW("targets", u64, as_start_record, targets, REQUIRED)},
    {TIME},
    {AS_ROW("version", cut, as_start_record, version, REQUIRED)},
    {.name = NULL},
};

static const struct as_row reload_rows[] = {
    {AS_ROW("config_digest", cut, as_reload_record, config_digest, REQUIRED)},
    {AS_ROW("credential", cut, as_reload_record, credential, REQUIRED)},
    {AS_ROW("error", cut, as_reload_record, error, REQUIRED)},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("old_config_digest", cut, as_reload_record, old_config_digest, REQUIRED)},
    {AS_ROW("old_rules_digest", cut, as_reload_record, old_rules_digest, REQUIRED)},
    {PREV},
    {AS_ROW("rules_digest", cut, as_reload_record, rules_digest, REQUIRED)},
    {SEQ},
    {TIME},
    {.name = NULL},
};

static const struct as_row denied_rows[] = {
    {AS_ROW("count", u64, as_denied_record, count, REQUIRED)},
    {AS_ROW("error", cut, as_denied_record, error, REQUIRED)},
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

static const struct as_row_type as_row_outcome = {.write = outcome_write};

static const struct as_row problem_rows[] = {
    {AS_ROW("error", own_cut, as_alert, problem, REQUIRED), ALERT},
    {AS_ROW("outcome", outcome, as_alert_outcome, reason, REQUIRED), OUTCOME},
    {.name = NULL},
};

static const struct as_row alert_rows[] = {
    {AS_ROW("digest", digest, as_alert, digest, REQUIRED), ALERT},
    {AS_ROW("fingerprint", hex, as_alert, fingerprint, REQUIRED), ALERT},
    {AS_ROW("labels", own_labels, as_alert, labels, REQUIRED), ALERT},
    {AS_ROW("outcome", outcome, as_alert_outcome, reason, REQUIRED), OUTCOME},
    {AS_ROW("rules", texts, as_alert_outcome, rules, REQUIRED), OUTCOME,
     .count_at = AS_ROW_COUNT(as_alert_outcome, rule_count)},
    {AS_ROW("startsAt", time, as_alert, starts_at, REQUIRED), ALERT},
    {AS_ROW("status", word, as_alert, status, REQUIRED), ALERT, .get_word = status_get_word},
    {.name = NULL},
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

static const struct as_row_type as_row_alerts = {.write = alerts_write};

#define NOTIFICATION .via = AS_ROW_VIA(as_notification_record, notification)

static const struct as_row notification_rows[] = {
    {AS_ROW("alerts", alerts, as_notification_record, outcomes, REQUIRED), .rows = alert_rows},
    {AS_ROW_CHARS("body_sha256", as_notification, body_sha256, REQUIRED), NOTIFICATION},
    {AS_ROW("body_size", u64, as_notification, body_size, REQUIRED), NOTIFICATION},
    {AS_ROW("credential", own_cut, as_notification, credential, REQUIRED), NOTIFICATION},
    {AS_ROW("groupKey", own_cut, as_notification, group_key, REQUIRED), NOTIFICATION},
    {HASH},
    {AS_ROW_CHARS("id", as_notification, id, REQUIRED), NOTIFICATION},
    {INSTANCE},
    {KIND},
    {AS_ROW("notification_reason", own_cut, as_notification, reason, REQUIRED), NOTIFICATION},
    {PREV},
    {AS_ROW("receiver", own_cut, as_notification, receiver, REQUIRED), NOTIFICATION},
    {AS_ROW("remote", own_cut, as_notification, remote, REQUIRED), NOTIFICATION},
    {SEQ},
    {TIME},
    {AS_ROW("traceparent", own_cut, as_notification, traceparent, REQUIRED), NOTIFICATION},
    {AS_ROW("truncated", u64, as_notification, truncated, REQUIRED), NOTIFICATION},
    {.name = NULL},
};

static const struct as_row repeat_outcome_rows[] = {
    {AS_ROW("duplicate", u64, as_repeat_record, duplicate, OPTIONAL)},
    {AS_ROW("max_steps", u64, as_repeat_record, max_steps, OPTIONAL)},
    {.name = NULL},
};

#define REPEATED .via = AS_ROW_VIA(as_repeat_record, notification)

static const struct as_row repeat_rows[] = {
    {AS_ROW("credential", own_cut, as_notification, credential, REQUIRED), REPEATED},
    {HASH},
    {AS_ROW_CHARS("id", as_notification, id, REQUIRED), REPEATED},
    {INSTANCE},
    {KIND},
    {AS_ROW_SAME("outcomes", REQUIRED, repeat_outcome_rows)},
    {PREV},
    {AS_ROW("remote", own_cut, as_notification, remote, REQUIRED), REPEATED},
    {AS_ROW("same_as", cut, as_repeat_record, same_as, REQUIRED)},
    {SEQ},
    {TIME},
    {AS_ROW("traceparent", own_cut, as_notification, traceparent, REQUIRED), REPEATED},
    {.name = NULL},
};

static const struct as_row incident_target_rows[] = {
    {AS_ROW("replicas", size, as_incident_target, replicas, REQUIRED)},
    {AS_ROW("rule", text, as_incident_target, rule, REQUIRED)},
    {AS_ROW("target", text, as_incident_target, target, REQUIRED)},
    {.name = NULL},
};

static const struct as_row incident_rows[] = {
    {AS_ROW("digest", digest, as_incident_record, digest, REQUIRED)},
    {AS_ROW("event", word, as_incident_record, event, REQUIRED),
     .get_word = incident_event_get_word},
    {AS_ROW("fingerprint", hex, as_incident_record, fingerprint, REQUIRED)},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("labels", labels, as_incident_record, labels, REQUIRED)},
    {AS_ROW("notification", cut, as_incident_record, notification, REQUIRED)},
    {PREV},
    {SEQ},
    {AS_ROW("startsAt", time, as_incident_record, starts_at, REQUIRED)},
    {AS_ROW("startsAt_claimed", exact, as_incident_record, claimed.at, OPTIONAL),
     .has_at = AS_ROW_HAS(as_incident_record, claimed.set)},
    {AS_ROW_OF("targets", list, as_incident_record, targets, REQUIRED, incident_target_rows),
     .count_at = AS_ROW_COUNT(as_incident_record, target_count)},
    {TIME},
    {.name = NULL},
};

/*
 * Other writers of a target's size.
 */

static const struct as_row reverted_change_rows[] = {
    {AS_ROW("at", exact, as_reverted_change, at.wall, REQUIRED)},
    {AS_ROW("by", text, as_reverted_change, by, NULLABLE)},
    {AS_ROW("found", size, as_reverted_change, found, REQUIRED)},
    {AS_ROW("from", size, as_reverted_change, from, REQUIRED)},
    {AS_ROW("to", size, as_reverted_change, to, REQUIRED)},
    {.name = NULL},
};

static const struct as_row other_rows[] = {
    {AS_ROW("kind", text, as_other, kind, REQUIRED)},
    {AS_ROW("max", size, as_other, max, REQUIRED)},
    {AS_ROW("min", size, as_other, min, REQUIRED)},
    {AS_ROW("name", text, as_other, name, REQUIRED)},
    {AS_ROW("paused", flag, as_other, is_paused, REQUIRED)},
    {.name = NULL},
};

#define FOUND     .via = AS_ROW_VIA(as_others_record, found)
#define CONTENDED .via = AS_ROW_VIA(as_others_record, contended)

static const struct as_row others_rows[] = {
    {AS_ROW("event", word, as_others_record, event, REQUIRED), .get_word = others_event_get_word},
    {AS_ROW_OF("found", list, as_others_found, items, REQUIRED, other_rows), FOUND,
     .count_at = AS_ROW_COUNT(as_others_found, count)},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("message", cut, as_others_record, message, OPTIONAL)},
    {PREV},
    {SEQ},
    {AS_ROW_OF("set_backs", list, as_contended_note, reverted_changes, REQUIRED,
               reverted_change_rows),
     CONTENDED, .count_at = AS_ROW_COUNT(as_contended_note, reverted_change_count)},
    {AS_ROW("target", cut, as_others_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_others_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("until", exact, as_contended_note, until, REQUIRED), CONTENDED},
    {.name = NULL},
};

/*
 * Decisions and their actions.
 */

static const struct as_row contended_rows[] = {
    {AS_ROW_OF("set_backs", list, as_contended_note, reverted_changes, REQUIRED,
               reverted_change_rows),
     .count_at = AS_ROW_COUNT(as_contended_note, reverted_change_count)},
    {AS_ROW("until", exact, as_contended_note, until, REQUIRED)},
    {.name = NULL},
};

static const struct as_row pause_rows[] = {
    {AS_ROW("all", flag, as_pause_note, is_of_all, REQUIRED)},
    {AS_ROW("direction", word, as_pause_note, ways, OPTIONAL), .get_word = way_get_word},
    {AS_ROW("reason", cut, as_pause_note, reason, REQUIRED)},
    {AS_ROW("until", exact, as_pause_note, until.at, REQUIRED),
     .has_at = AS_ROW_HAS(as_pause_note, until.set)},
    {AS_ROW("who", text, as_pause_note, who, REQUIRED)},
    {.name = NULL},
};

static const struct as_row decision_rows[] = {
    {AS_ROW_OF("contended", object, as_decision_record, contended, OPTIONAL, contended_rows)},
    {AS_ROW("former_uid", cut, as_decision_record, former_uid, OPTIONAL)},
    {HASH},
    {AS_ROW("id", cut, as_decision_record, id, REQUIRED)},
    {AS_ROW("incident_count", u64, as_decision_record, incident_total, REQUIRED)},
    {AS_ROW("incidents", digests, as_decision_record, incidents, REQUIRED),
     .count_at = AS_ROW_COUNT(as_decision_record, incident_count)},
    {AS_ROW("input", input, as_decision_record, input, REQUIRED)},
    {INSTANCE},
    {KIND},
    {AS_ROW("notification_count", u64, as_decision_record, notification_total, REQUIRED)},
    {AS_ROW("notifications", ids, as_decision_record, notifications, REQUIRED),
     .count_at = AS_ROW_COUNT(as_decision_record, notification_count)},
    {AS_ROW("output", output, as_decision_record, output, REQUIRED)},
    {AS_ROW_OF("pause", object, as_decision_record, pause, OPTIONAL, pause_rows)},
    {AS_ROW("pool_decision", cut, as_decision_record, pool_decision, OPTIONAL)},
    {PREV},
    {AS_ROW("repeats", u64, as_decision_record, repeats, REQUIRED)},
    {AS_ROW("rules_digest", cut, as_decision_record, rules_digest, REQUIRED)},
    {SEQ},
    {AS_ROW("since_alert_seconds", known_seconds, as_decision_record, since_alert_us, REQUIRED)},
    {AS_ROW("since_notification_seconds", known_seconds, as_decision_record, since_notification_us,
            REQUIRED)},
    {AS_ROW("target", cut, as_decision_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_decision_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("unit", text, as_decision_record, unit, OPTIONAL)},
    {AS_ROW("waits_for", cut, as_decision_record, waits_for, OPTIONAL)},
    {.name = NULL},
};

static const struct as_row action_rows[] = {
    {AS_ROW("approval", cut, as_action_record, approval, OPTIONAL)},
    {AS_ROW("attempts", u32, as_action_record, attempts, REQUIRED)},
    {AS_ROW("command", cut, as_action_record, command, OPTIONAL)},
    {AS_ROW("decision", cut, as_action_record, decision, REQUIRED)},
    {AS_ROW("duration_seconds", known_seconds, as_action_record, duration_us, REQUIRED)},
    {AS_ROW("from", size, as_action_record, from, REQUIRED)},
    {HASH},
    {AS_ROW("http_status", i32, as_action_record, http_status, REQUIRED)},
    {AS_ROW("id", cut, as_action_record, id, REQUIRED)},
    {INSTANCE},
    {KIND},
    {AS_ROW("late", flag, as_action_record, is_late, REQUIRED)},
    {AS_ROW("message", cut, as_action_record, message, REQUIRED)},
    {AS_ROW("method", cut, as_action_record, method, REQUIRED)},
    {AS_ROW("outcome", word, as_action_record, outcome, REQUIRED), .get_word = reason_get_word},
    {AS_ROW("path", cut, as_action_record, path, REQUIRED)},
    {PREV},
    {AS_ROW("repeats", u64, as_action_record, repeats, REQUIRED)},
    {AS_ROW("request_id", text, as_action_record, request_id, OPTIONAL)},
    {AS_ROW("rule", cut, as_action_record, rule, REQUIRED)},
    {SEQ},
    {AS_ROW("since_alert_seconds", known_seconds, as_action_record, since_alert_us, REQUIRED)},
    {AS_ROW("since_notification_seconds", known_seconds, as_action_record, since_notification_us,
            REQUIRED)},
    {AS_ROW("target", cut, as_action_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_action_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("to", size, as_action_record, to, REQUIRED)},
    {AS_ROW("unit", text, as_action_record, unit, OPTIONAL)},
    {AS_ROW("version", cut, as_action_record, version, REQUIRED)},
    {.name = NULL},
};

static const struct as_row effect_rows[] = {
    {AS_ROW("action", cut, as_effect_record, action, REQUIRED)},
    {AS_ROW("decision", cut, as_effect_record, decision, REQUIRED)},
    {AS_ROW("ended", word, as_effect_record, end, REQUIRED), .get_word = effect_end_get_word},
    {AS_ROW("from", i32, as_effect_record, from, REQUIRED)},
    {HASH},
    {AS_ROW("held_until", exact, as_effect_record, until, OPTIONAL),
     .has_at = AS_ROW_HAS(as_effect_record, is_held)},
    {AS_ROW("in_vain", u32, as_effect_record, in_vain, REQUIRED)},
    {INSTANCE},
    {KIND},
    {PREV},
    {AS_ROW("ready_after", known_seconds, as_effect_record, ready_us, REQUIRED)},
    {AS_ROW("resolved_after", known_seconds, as_effect_record, resolved_us, REQUIRED)},
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
    {AS_ROW("decision", cut, as_nodes_record, decision, REQUIRED)},
    {AS_ROW("event", word, as_nodes_record, event, REQUIRED), .get_word = nodes_event_get_word},
    {HASH},
    {INSTANCE},
    {KIND},
    {AS_ROW("message", cut, as_nodes_record, message, REQUIRED)},
    {AS_ROW("nodes", cuts, as_nodes_record, nodes, REQUIRED),
     .count_at = AS_ROW_COUNT(as_nodes_record, node_count)},
    {PREV},
    {SEQ},
    {AS_ROW("target", cut, as_nodes_record, target, REQUIRED)},
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

static const struct as_row_type as_row_found_target = {.write = found_target_write};

static const struct as_row command_rows[] = {
    {AS_ROW("command", word, as_operator_command, kind, REQUIRED), COMMAND,
     .get_word = operator_command_kind_get_word},
    {AS_ROW("force", flag, as_operator_command, force, REQUIRED), COMMAND},
    {HASH},
    {AS_ROW_CHARS("id", as_operator_command_record, id, REQUIRED)},
    {INSTANCE},
    {KIND},
    {AS_ROW("max", size, as_operator_command_record, max, REQUIRED)},
    {AS_ROW("message", cut, as_operator_command_record, message, REQUIRED)},
    {AS_ROW("min", size, as_operator_command_record, min, REQUIRED)},
    {AS_ROW("outcome", word, as_operator_command_record, outcome, REQUIRED),
     .get_word = operator_command_outcome_get_word},
    {PREV},
    {AS_ROW("reason", cut, as_operator_command, reason, REQUIRED), COMMAND},
    {AS_ROW("remote", cut, as_operator_command, remote, REQUIRED), COMMAND},
    {AS_ROW("replicas", size, as_operator_command_record, replicas, REQUIRED)},
    {AS_ROW("request", cut, as_operator_command, request, OPTIONAL), COMMAND},
    {SEQ},
    {AS_ROW("target", found_target, as_operator_command_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_operator_command_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("until", exact, as_operator_command_record, until.at, REQUIRED),
     .has_at = AS_ROW_HAS(as_operator_command_record, until.set)},
    {AS_ROW("who", cut, as_operator_command, who, REQUIRED), COMMAND},
    {.name = NULL},
};

#define REQUEST .via = AS_ROW_VIA(as_approval_record, request)

static const struct as_row approval_rows[] = {
    {AS_ROW("action", cut, as_approval_record, action, OPTIONAL)},
    {AS_ROW("command", cut, as_approval_record, command, OPTIONAL)},
    {AS_ROW("decision", cut, as_approval_state, decision, REQUIRED), REQUEST},
    {AS_ROW("direction", is_up, as_approval_state, is_up, REQUIRED), REQUEST},
    {AS_ROW("event", word, as_approval_record, event, REQUIRED),
     .get_word = approval_event_get_word},
    {AS_ROW("from", i32, as_approval_state, from, REQUIRED), REQUEST},
    {HASH},
    {AS_ROW("id", cut, as_approval_state, id, REQUIRED), REQUEST},
    {AS_ROW("incident", cut, as_approval_state, incident, REQUIRED), REQUEST},
    {INSTANCE},
    {KIND},
    {AS_ROW("message", cut, as_approval_record, message, REQUIRED)},
    {PREV},
    {AS_ROW("rule", cut, as_approval_state, rule, REQUIRED), REQUEST},
    {SEQ},
    {AS_ROW("target", cut, as_approval_record, target, REQUIRED)},
    {AS_ROW("target_name", cut, as_approval_record, target_name, REQUIRED)},
    {TIME},
    {AS_ROW("to", i32, as_approval_state, to, REQUIRED), REQUEST},
    {AS_ROW("unit", text, as_approval_record, unit, OPTIONAL)},
    {AS_ROW("until", exact, as_approval_record, until.at, REQUIRED),
     .has_at = AS_ROW_HAS(as_approval_record, until.set)},
    {AS_ROW("who", cut, as_approval_state, who, REQUIRED), REQUEST},
    {.name = NULL},
};

#define DROPPED .via = AS_ROW_VIA(as_notify_record, dropped)
#define ENDED   .via = AS_ROW_VIA(as_notify_record, ended)

static void notify_event_write(struct as_json_writer *json, const struct as_row *row,
                               const void *base)
{
    as_json_write_string(json, record_get_pointer(row, base) ? "dropped" : "ended");
}

static const struct as_row_type as_row_notify_event = {.write = notify_event_write};

static const struct as_row notify_rows[] = {
    {AS_ROW("cause", word, as_notices_dropped, cause, REQUIRED), DROPPED,
     .get_word = notice_loss_get_word},
    {AS_ROW("count", u64, as_notices_dropped, count, REQUIRED), DROPPED},
    {AS_ROW("event", notify_event, as_notify_record, dropped, REQUIRED)},
    {HASH},
    {INSTANCE},
    {KIND},
    {PREV},
    {AS_ROW("receiver", cut, as_notices_dropped, receiver, REQUIRED), DROPPED},
    {AS_ROW("rule", cut, as_notice_ended, rule, OPTIONAL), ENDED},
    {SEQ},
    {AS_ROW("state", word, as_notice_ended, state, REQUIRED), ENDED, .get_word = state_get_word},
    {AS_ROW("target", cut, as_notice_ended, target, REQUIRED), ENDED},
    {AS_ROW("target_name", cut, as_notice_ended, target_name, REQUIRED), ENDED},
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
    [AS_RECORD_APPROVAL] = approval_rows,
};

void as_record_encode(const struct as_record_header *header, enum as_record_kind kind,
                      const void *record, struct as_buf *out, struct as_record_places *places_out)
{
    struct record_writer writer = {.header = header, .kind = kind, .places = places_out};
    as_json_init(&writer.json, out, 0);
    as_rows_write(&writer.json, tables[kind], record);
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
