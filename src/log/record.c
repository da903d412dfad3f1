/*
 * Records of the action log: one function per kind of record. Keys are in ascending order, which
 * the JSON writer asserts. The writer notes the places of the chain's members; log_chain.c fills
 * them.
 *
 * Long because all records share how their members are written.
 */
#include <alertscaler/decide/record.h>
#include <alertscaler/log/record.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_writer.h>

/* Writer of one record, member by member. */

struct record_writer {
    struct as_json_writer json;
    struct as_buf *out;
    struct as_record_places *places;
};

static void record_begin(struct record_writer *writer, struct as_buf *out,
                         struct as_record_places *places)
{
    writer->out = out;
    writer->places = places;
    *places = (struct as_record_places){0};
    as_json_init(&writer->json, out, 0);
    as_json_begin_object(&writer->json);
}

static void record_end(struct record_writer *writer)
{
    as_json_end_object(&writer->json);
}

/* A key of the record's top level; notes the places of the chain's members. */
static void record_key(struct record_writer *writer, const char *name)
{
    as_json_write_key(&writer->json, name);
    const size_t at = writer->out->size - strlen(name) - strlen("\"\":");
    struct as_record_places *places = writer->places;
    if (!places->at_hash && strcmp(name, "hash") > 0)
        places->at_hash = at;
    if (!places->at_prev && strcmp(name, "prev") > 0)
        places->at_prev = at;
    if (!places->at_seq && strcmp(name, "seq") > 0)
        places->at_seq = at;
}

static void record_write_text(struct as_json_writer *json, const char *text)
{
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

static void record_member(struct record_writer *writer, const char *name, const char *text)
{
    record_key(writer, name);
    if (text)
        record_write_text(&writer->json, text);
    else
        as_json_write_null(&writer->json);
}

static void record_member_i64(struct record_writer *writer, const char *name, int64_t number)
{
    record_key(writer, name);
    as_json_write_i64(&writer->json, number);
}

static void record_member_size(struct record_writer *writer, const char *name, bool is_known,
                               int32_t size)
{
    if (is_known)
        record_member_i64(writer, name, size);
    else
        record_member(writer, name, NULL);
}

static void record_member_seconds(struct record_writer *writer, const char *name, int64_t us)
{
    record_key(writer, name);
    if (us < 0)
        as_json_write_null(&writer->json);
    else
        as_json_write_double(&writer->json, (double)us / (double)AS_US_PER_S);
}

static void record_member_time(struct record_writer *writer, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    record_member(writer, "time", text);
}

static void record_member_moment(struct record_writer *writer, const char *name, bool is_set,
                                 as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    record_member(writer, name, is_set ? text : NULL);
}

/* Conflicting writers of a target, as values of members. */

static void write_size(struct as_json_writer *json, const char *name, int32_t size)
{
    as_json_write_key(json, name);
    if (size >= 0)
        as_json_write_i64(json, size);
    else
        as_json_write_null(json);
}

static void record_write_reverted_changes(struct as_json_writer *json,
                                          const struct as_reverted_change *reverted_changes,
                                          size_t count)
{
    char at[AS_RFC3339_SIZE];
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        as_wall_time_print(reverted_changes[i].at.wall, at);
        as_json_write_member(json, "at", at);
        as_json_write_key(json, "by");
        if (*reverted_changes[i].by)
            as_json_write_string(json, reverted_changes[i].by);
        else
            as_json_write_null(json);
        write_size(json, "found", reverted_changes[i].found);
        write_size(json, "from", reverted_changes[i].from);
        write_size(json, "to", reverted_changes[i].to);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void record_write_found(struct as_json_writer *json, const struct as_others_record *record)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < record->other_count; i++) {
        const struct as_other *other = &record->others[i];
        as_json_begin_object(json);
        as_json_write_member(json, "kind", other->kind);
        write_size(json, "max", other->max);
        write_size(json, "min", other->min);
        as_json_write_member(json, "name", other->name);
        as_json_write_member_bool(json, "paused", other->is_paused);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void record_write_contended(struct as_json_writer *json,
                                   const struct as_contended_note *note)
{
    char until[AS_RFC3339_SIZE];
    as_json_begin_object(json);
    as_json_write_key(json, "set_backs");
    record_write_reverted_changes(json, note->reverted_changes, note->reverted_change_count);
    as_wall_time_print(note->until, until);
    as_json_write_member(json, "until", until);
    as_json_end_object(json);
}

/* Kinds of records. */

static void record_write_labels(struct as_json_writer *json, const struct as_labels *labels)
{
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++) {
        as_json_write_key(json, labels->items[i].name);
        record_write_text(json, labels->items[i].value);
    }
    as_json_end_object(json);
}

static void record_write_digest(struct as_json_writer *json, const struct as_digest *digest)
{
    char text[AS_DIGEST_TEXT_SIZE];
    as_digest_print(digest, text);
    as_json_write_string_size(json, text, sizeof(text) - 1);
}

static void write_time_short(struct as_json_writer *json, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print_short(time, text);
    as_json_write_string(json, text);
}

void as_record_encode_start(const struct as_record_header *header,
                            enum as_record_kind start_or_stop, const struct as_start_record *record,
                            struct as_buf *out, struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member(&writer, "config_digest", record->config_digest);
    record_member_i64(&writer, "incidents", (int64_t)record->incidents);
    record_member(&writer, "instance", header->instance);
    record_member_i64(&writer, "intents", (int64_t)record->intents);
    record_member(&writer, "kind", as_record_kind_get_word(start_or_stop));
    record_member_i64(&writer, "rules", (int64_t)record->rules);
    record_member(&writer, "rules_digest", record->rules_digest);
    record_member_i64(&writer, "targets", (int64_t)record->targets);
    record_member_time(&writer, header->time);
    record_member(&writer, "version", record->version);
    record_end(&writer);
}

void as_record_encode_reload(const struct as_record_header *header,
                             const struct as_reload_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member(&writer, "config_digest", record->config_digest);
    record_member(&writer, "credential", record->credential);
    record_member(&writer, "error", record->error);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_RELOAD));
    record_member(&writer, "old_config_digest", record->old_config_digest);
    record_member(&writer, "old_rules_digest", record->old_rules_digest);
    record_member(&writer, "rules_digest", record->rules_digest);
    record_member_time(&writer, header->time);
    record_end(&writer);
}

void as_record_encode_denied(const struct as_record_header *header,
                             const struct as_denied_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member_i64(&writer, "count", (int64_t)record->count);
    record_member(&writer, "error", record->error);
    record_member(&writer, "handler", record->handler);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_DENIED));
    record_member(&writer, "remote", record->remote);
    record_member_i64(&writer, "status", record->status);
    record_member_time(&writer, header->time);
    record_end(&writer);
}

void as_record_encode_nodes(const struct as_record_header *header,
                            const struct as_nodes_record *record, struct as_buf *out,
                            struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member(&writer, "decision", record->decision);
    record_member(&writer, "event", as_nodes_event_get_word(record->event));
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_NODES));
    record_member(&writer, "message", record->message);
    record_key(&writer, "nodes");
    as_json_begin_array(&writer.json);
    for (size_t i = 0; i < record->node_count; i++)
        record_write_text(&writer.json, record->nodes[i]);
    as_json_end_array(&writer.json);
    record_member(&writer, "target", record->target);
    record_member(&writer, "target_name", record->target_name);
    record_member_time(&writer, header->time);
    record_end(&writer);
}

void as_record_encode_others(const struct as_record_header *header,
                             const struct as_others_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member(&writer, "event", as_others_event_get_word(record->event));
    if (record->event == AS_OTHERS_FOUND) {
        record_key(&writer, "found");
        record_write_found(&writer.json, record);
    }
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_OTHERS));
    if (record->event == AS_OTHERS_OVER)
        record_member(&writer, "message", record->message);
    if (record->event == AS_OTHERS_CONTENDED) {
        record_key(&writer, "set_backs");
        record_write_reverted_changes(&writer.json, record->reverted_changes,
                                      record->reverted_change_count);
    }
    record_member(&writer, "target", record->target);
    record_member(&writer, "target_name", record->target_name);
    record_member_time(&writer, header->time);
    if (record->event == AS_OTHERS_CONTENDED)
        record_member_moment(&writer, "until", true, record->until);
    record_end(&writer);
}

void as_record_encode_notify(const struct as_record_header *header,
                             const struct as_notify_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    if (record->receiver) {
        record_member(&writer, "cause", as_notice_loss_get_word(record->cause));
        record_member_i64(&writer, "count", (int64_t)record->count);
    }
    record_member(&writer, "event", record->receiver ? "dropped" : "ended");
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_NOTIFY));
    if (record->receiver) {
        record_member(&writer, "receiver", record->receiver);
    } else {
        if (record->rule)
            record_member(&writer, "rule", record->rule);
        record_member(&writer, "state", as_notice_kind_get_row(record->state)->word);
        record_member(&writer, "target", record->target);
        record_member(&writer, "target_name", record->target_name);
    }
    record_member_time(&writer, header->time);
    record_end(&writer);
}

static const char *get_outcome_word(const struct as_alert_outcome *outcome)
{
    return outcome->is_queued ? "queued" : as_reason_get_word(outcome->reason);
}

static const char *record_get_status_word(const struct as_alert *alert)
{
    return alert->status == AS_ALERT_FIRING ? "firing" : "resolved";
}

static void write_rules(struct as_json_writer *json, const struct as_alert_outcome *outcome)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < outcome->rule_count; i++)
        as_json_write_string(json, outcome->rules[i]);
    as_json_end_array(json);
}

static void write_problem(struct as_json_writer *json, const struct as_alert *alert,
                          const struct as_alert_outcome *outcome)
{
    as_json_begin_object(json);
    as_json_write_member(json, "error", alert->problem);
    as_json_write_member(json, "outcome", get_outcome_word(outcome));
    as_json_end_object(json);
}

static void record_write_alert(struct as_json_writer *json, const struct as_alert *alert,
                               const struct as_alert_outcome *outcome)
{
    if (alert->problem) {
        write_problem(json, alert, outcome);
        return;
    }
    as_json_begin_object(json);
    as_json_write_key(json, "digest");
    record_write_digest(json, &alert->digest);
    as_json_write_key(json, "fingerprint");
    as_json_write_hex(json, alert->fingerprint);
    as_json_write_key(json, "labels");
    record_write_labels(json, alert->labels);
    as_json_write_member(json, "outcome", get_outcome_word(outcome));
    as_json_write_key(json, "rules");
    write_rules(json, outcome);
    as_json_write_key(json, "startsAt");
    write_time_short(json, alert->starts_at);
    as_json_write_member(json, "status", record_get_status_word(alert));
    as_json_end_object(json);
}

void as_record_encode_notification(const struct as_record_header *header,
                                   const struct as_notification_record *record, struct as_buf *out,
                                   struct as_record_places *places_out)
{
    const struct as_notification *notification = record->notification;
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_key(&writer, "alerts");
    as_json_begin_array(&writer.json);
    for (size_t i = 0; i < notification->alert_count; i++)
        record_write_alert(&writer.json, &notification->alerts[i], &record->outcomes[i]);
    as_json_end_array(&writer.json);
    record_member(&writer, "body_sha256", notification->body_sha256);
    record_member_i64(&writer, "body_size", (int64_t)notification->body_size);
    record_member(&writer, "credential", notification->credential);
    record_member(&writer, "groupKey", notification->group_key);
    record_member(&writer, "id", notification->id);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_NOTIFICATION));
    record_member(&writer, "notification_reason", notification->reason);
    record_member(&writer, "receiver", notification->receiver);
    record_member(&writer, "remote", notification->remote);
    record_member_time(&writer, header->time);
    record_member(&writer, "traceparent", notification->traceparent);
    record_member_i64(&writer, "truncated", (int64_t)notification->truncated);
    record_end(&writer);
}

static void member_outcome(struct record_writer *writer, enum as_reason reason, size_t count)
{
    if (count > 0)
        as_json_write_member_i64(&writer->json, as_reason_get_word(reason), (int64_t)count);
}

void as_record_encode_repeat(const struct as_record_header *header,
                             const struct as_repeat_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    const struct as_notification *notification = record->notification;
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member(&writer, "credential", notification->credential);
    record_member(&writer, "id", notification->id);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_REPEAT));
    record_key(&writer, "outcomes");
    as_json_begin_object(&writer.json);
    member_outcome(&writer, AS_REASON_DUPLICATE, record->duplicate);
    member_outcome(&writer, AS_REASON_MAX_STEPS, record->max_steps);
    as_json_end_object(&writer.json);
    record_member(&writer, "remote", notification->remote);
    record_member(&writer, "same_as", record->same_as);
    record_member_time(&writer, header->time);
    record_member(&writer, "traceparent", notification->traceparent);
    record_end(&writer);
}

static void write_cause(struct record_writer *writer, const struct as_decision_record *record)
{
    record_member_i64(writer, "notification_count", (int64_t)record->notification_total);
    record_key(writer, "notifications");
    as_json_begin_array(&writer->json);
    for (size_t i = 0; i < record->notification_count; i++)
        as_json_write_string(&writer->json, record->notifications[i]);
    as_json_end_array(&writer->json);
}

/* A document that did not fit makes the record fail too. */
static void record_write_document(struct record_writer *writer, const struct as_buf *document)
{
    as_json_write_raw(&writer->json, document->data, document->size);
    if (as_buf_check(document) != 0)
        writer->json.buf->failed = true;
}

static void write_pause(struct record_writer *writer, const struct as_pause_note *pause)
{
    struct as_json_writer *json = &writer->json;
    char until[AS_RFC3339_SIZE];
    record_key(writer, "pause");
    as_json_begin_object(json);
    as_json_write_member_bool(json, "all", pause->is_of_all);
    if (pause->ways != AS_WAYS_BOTH)
        as_json_write_member(json, "direction", as_ways_get_word(pause->ways));
    as_json_write_key(json, "reason");
    record_write_text(json, pause->reason);
    as_json_write_key(json, "until");
    if (pause->has_until) {
        as_wall_time_print(pause->until, until);
        as_json_write_string(json, until);
    } else {
        as_json_write_null(json);
    }
    as_json_write_member(json, "who", pause->who);
    as_json_end_object(json);
}

static void record_member_unit(struct record_writer *writer, const char *unit)
{
    if (!as_str_is_empty(unit))
        record_member(writer, "unit", unit);
}

void as_record_encode_decision(const struct as_record_header *header,
                               const struct as_decision_record *record, struct as_buf *out,
                               struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    if (record->contended) {
        record_key(&writer, "contended");
        record_write_contended(&writer.json, record->contended);
    }
    if (record->former_uid)
        record_member(&writer, "former_uid", record->former_uid);
    record_member(&writer, "id", record->id);
    record_member_i64(&writer, "incident_count", (int64_t)record->incident_total);
    record_key(&writer, "incidents");
    as_json_begin_array(&writer.json);
    for (size_t i = 0; i < record->incident_count; i++)
        record_write_digest(&writer.json, &record->incidents[i]);
    as_json_end_array(&writer.json);

    struct as_buf document = AS_BUF_INIT(out->max);
    as_decision_encode_input(record->input, &document);
    record_key(&writer, "input");
    record_write_document(&writer, &document);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_DECISION));
    write_cause(&writer, record);
    as_buf_clear(&document);
    as_decision_encode_output(record->input, record->results, record->output, &document);
    record_key(&writer, "output");
    record_write_document(&writer, &document);
    as_buf_deinit(&document);

    if (record->pause)
        write_pause(&writer, record->pause);
    if (record->pool_decision)
        record_member(&writer, "pool_decision", record->pool_decision);
    record_member_i64(&writer, "repeats", (int64_t)record->repeats);
    record_member(&writer, "rules_digest", record->rules_digest);
    record_member_seconds(&writer, "since_alert_seconds", record->since_alert_us);
    record_member_seconds(&writer, "since_notification_seconds", record->since_notification_us);
    record_member(&writer, "target", record->target);
    record_member(&writer, "target_name", record->target_name);
    record_member_time(&writer, header->time);
    record_member_unit(&writer, record->unit);
    if (record->waits_for)
        record_member(&writer, "waits_for", record->waits_for);
    record_end(&writer);
}

void as_record_encode_action(const struct as_record_header *header,
                             const struct as_action_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    if (record->approval)
        record_member(&writer, "approval", record->approval);
    record_member_i64(&writer, "attempts", record->attempts);
    if (record->command)
        record_member(&writer, "command", record->command);
    record_member(&writer, "decision", record->decision);
    record_member_seconds(&writer, "duration_seconds", record->duration_us);
    record_member_size(&writer, "from", record->has_sizes && record->from >= 0, record->from);
    record_member_i64(&writer, "http_status", record->http_status);
    record_member(&writer, "id", record->id);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_ACTION));
    record_key(&writer, "late");
    as_json_write_bool(&writer.json, record->is_late);
    record_member(&writer, "message", record->message);
    record_member(&writer, "method", record->method);
    record_member(&writer, "outcome", as_reason_get_word(record->outcome));
    record_member(&writer, "path", record->path);
    record_member_i64(&writer, "repeats", (int64_t)record->repeats);
    if (!as_str_is_empty(record->request_id))
        record_member(&writer, "request_id", record->request_id);
    record_member(&writer, "rule", record->rule);
    record_member_seconds(&writer, "since_alert_seconds", record->since_alert_us);
    record_member_seconds(&writer, "since_notification_seconds", record->since_notification_us);
    record_member(&writer, "target", record->target);
    record_member(&writer, "target_name", record->target_name);
    record_member_time(&writer, header->time);
    record_member_size(&writer, "to", record->has_sizes, record->to);
    record_member_unit(&writer, record->unit);
    record_member(&writer, "version", record->version);
    record_end(&writer);
}

void as_record_encode_follow(const struct as_record_header *header,
                             const struct as_effect_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member(&writer, "action", record->action);
    record_member(&writer, "decision", record->decision);
    record_member(&writer, "ended", as_effect_end_get_word(record->end));
    record_member_i64(&writer, "from", record->from);
    if (record->is_held)
        record_member_moment(&writer, "held_until", true, record->until);
    record_member_i64(&writer, "in_vain", record->in_vain);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_EFFECT));
    record_member_seconds(&writer, "ready_after", record->ready_us);
    record_member_seconds(&writer, "resolved_after", record->resolved_us);
    record_member(&writer, "rule", record->rule);
    record_member(&writer, "target", record->target);
    record_member(&writer, "target_name", record->target_name);
    record_member_time(&writer, header->time);
    record_member_i64(&writer, "to", record->to);
    record_end(&writer);
}

static void write_incident_targets(struct as_json_writer *json,
                                   const struct as_incident_record *record)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < record->target_count; i++) {
        const struct as_incident_target *target = &record->targets[i];
        as_json_begin_object(json);
        as_json_write_key(json, "replicas");
        if (target->has_replicas)
            as_json_write_i64(json, target->replicas);
        else
            as_json_write_null(json);
        as_json_write_member(json, "rule", target->rule);
        as_json_write_member(json, "target", target->target);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void as_record_encode_incident(const struct as_record_header *header,
                               const struct as_incident_record *record, struct as_buf *out,
                               struct as_record_places *places_out)
{
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_key(&writer, "digest");
    record_write_digest(&writer.json, &record->digest);
    record_member(&writer, "event", as_incident_event_get_word(record->event));
    record_key(&writer, "fingerprint");
    as_json_write_hex(&writer.json, record->fingerprint);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_INCIDENT));
    record_key(&writer, "labels");
    record_write_labels(&writer.json, record->labels);
    record_member(&writer, "notification", record->notification);
    record_key(&writer, "startsAt");
    write_time_short(&writer.json, record->starts_at);
    if (record->claimed.set)
        record_member_moment(&writer, "startsAt_claimed", true, record->claimed.at);
    record_key(&writer, "targets");
    write_incident_targets(&writer.json, record);
    record_member_time(&writer, header->time);
    record_end(&writer);
}

void as_record_encode_command(const struct as_record_header *header,
                              const struct as_operator_command_record *record, struct as_buf *out,
                              struct as_record_places *places_out)
{
    const struct as_operator_command *order = record->order;
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    record_member(&writer, "command", as_operator_command_kind_get_word(order->kind));
    record_key(&writer, "force");
    as_json_write_bool(&writer.json, order->force);
    record_member(&writer, "id", record->id);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_COMMAND));
    record_member_size(&writer, "max", record->has_bounds, record->max);
    record_member(&writer, "message", record->message);
    record_member_size(&writer, "min", record->has_bounds, record->min);
    record_member(&writer, "outcome", as_operator_command_outcome_get_word(record->outcome));
    record_member(&writer, "reason", order->reason);
    record_member(&writer, "remote", order->remote);
    record_member_size(&writer, "replicas",
                       order->kind == AS_OPERATOR_COMMAND_SCALE ||
                           (order->kind == AS_OPERATOR_COMMAND_FLOOR && !order->is_end),
                       order->replicas);
    if (order->request)
        record_member(&writer, "request", order->request);
    record_member(&writer, "target", record->target ? record->target : order->target);
    record_member(&writer, "target_name", record->target_name);
    record_member_time(&writer, header->time);
    record_member_moment(&writer, "until", record->has_until, record->until);
    record_member(&writer, "who", order->who);
    record_end(&writer);
}

void as_record_encode_approval(const struct as_record_header *header,
                               const struct as_approval_record *record, struct as_buf *out,
                               struct as_record_places *places_out)
{
    const struct as_approval_state *request = record->request;
    struct record_writer writer;
    record_begin(&writer, out, places_out);
    if (record->action)
        record_member(&writer, "action", record->action);
    if (record->command)
        record_member(&writer, "command", record->command);
    record_member(&writer, "decision", request->decision);
    record_member(&writer, "direction",
                  as_direction_get_word(request->is_up ? AS_DIRECTION_UP : AS_DIRECTION_DOWN));
    record_member(&writer, "event", as_approval_event_get_word(record->event));
    record_member_i64(&writer, "from", request->from);
    record_member(&writer, "id", request->id);
    record_member(&writer, "incident", request->incident);
    record_member(&writer, "instance", header->instance);
    record_member(&writer, "kind", as_record_kind_get_word(AS_RECORD_APPROVAL));
    record_member(&writer, "message", record->message);
    record_member(&writer, "rule", request->rule);
    record_member(&writer, "target", record->target);
    record_member(&writer, "target_name", record->target_name);
    record_member_time(&writer, header->time);
    record_member_i64(&writer, "to", request->to);
    record_member_unit(&writer, record->unit);
    record_member_moment(&writer, "until", record->until.set, record->until.at);
    record_member(&writer, "who", request->who);
    record_end(&writer);
}

void as_record_encode_answer(const struct as_notification_record *record, struct as_buf *out)
{
    const struct as_notification *notification = record->notification;
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "status", "ok");
    as_json_write_member(&json, "notification", notification->id);
    as_json_write_key(&json, "alerts");
    as_json_begin_array(&json);
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct as_alert_outcome *outcome = &record->outcomes[i];
        if (notification->alerts[i].problem) {
            write_problem(&json, &notification->alerts[i], outcome);
            continue;
        }
        as_json_begin_object(&json);
        as_json_write_key(&json, "digest");
        record_write_digest(&json, &notification->alerts[i].digest);
        as_json_write_key(&json, "fingerprint");
        as_json_write_hex(&json, notification->alerts[i].fingerprint);
        as_json_write_member(&json, "status", record_get_status_word(&notification->alerts[i]));
        as_json_write_key(&json, "rules");
        write_rules(&json, outcome);
        as_json_write_member(&json, "outcome", get_outcome_word(outcome));
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    as_json_end_object(&json);
    as_buf_append_char(out, '\n');
}
