/*
 * One function per kind of record; keys in ascending order, which the JSON writer asserts.
 *
 * Long because all records share how their members are written.
 */
#include <alertscaler/wire/record.h>

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/wire/decision.h>
#include <alertscaler/wire/json_writer.h>

#include "record_others.h"

struct writer {
    struct as_json_writer json;
    struct as_buf *out;
    struct as_record_places *places;
};

static void begin(struct writer *writer, struct as_buf *out, struct as_record_places *places)
{
    writer->out = out;
    writer->places = places;
    *places = (struct as_record_places){0};
    as_json_init(&writer->json, out, 0);
    as_json_begin_object(&writer->json);
}

static void end(struct writer *writer)
{
    as_json_end_object(&writer->json);
}

/* A key of the record's top level; notes the places of the chain's members. */
static void key(struct writer *writer, const char *name)
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

static void write_text(struct as_json_writer *json, const char *text)
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

static void member(struct writer *writer, const char *name, const char *text)
{
    key(writer, name);
    if (text)
        write_text(&writer->json, text);
    else
        as_json_write_null(&writer->json);
}

static void member_i64(struct writer *writer, const char *name, int64_t number)
{
    key(writer, name);
    as_json_write_i64(&writer->json, number);
}

static void member_size(struct writer *writer, const char *name, bool is_known, int32_t size)
{
    if (is_known)
        member_i64(writer, name, size);
    else
        member(writer, name, NULL);
}

static void member_seconds(struct writer *writer, const char *name, int64_t us)
{
    key(writer, name);
    if (us < 0)
        as_json_write_null(&writer->json);
    else
        as_json_write_double(&writer->json, (double)us / (double)AS_US_PER_S);
}

static void member_time(struct writer *writer, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    member(writer, "time", text);
}

static void member_moment(struct writer *writer, const char *name, bool is_set, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    member(writer, name, is_set ? text : NULL);
}

static void write_labels(struct as_json_writer *json, const struct as_labels *labels)
{
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++) {
        as_json_write_key(json, labels->items[i].name);
        write_text(json, labels->items[i].value);
    }
    as_json_end_object(json);
}

static void write_digest(struct as_json_writer *json, const struct as_digest *digest)
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
    struct writer writer;
    begin(&writer, out, places_out);
    member(&writer, "config_digest", record->config_digest);
    member_i64(&writer, "incidents", (int64_t)record->incidents);
    member(&writer, "instance", header->instance);
    member_i64(&writer, "intents", (int64_t)record->intents);
    member(&writer, "kind", as_record_kind_get_word(start_or_stop));
    member_i64(&writer, "rules", (int64_t)record->rules);
    member(&writer, "rules_digest", record->rules_digest);
    member_i64(&writer, "targets", (int64_t)record->targets);
    member_time(&writer, header->time);
    member(&writer, "version", record->version);
    end(&writer);
}

void as_record_encode_reload(const struct as_record_header *header,
                             const struct as_reload_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    member(&writer, "config_digest", record->config_digest);
    member(&writer, "credential", record->credential);
    member(&writer, "error", record->error);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_RELOAD));
    member(&writer, "old_config_digest", record->old_config_digest);
    member(&writer, "old_rules_digest", record->old_rules_digest);
    member(&writer, "rules_digest", record->rules_digest);
    member_time(&writer, header->time);
    end(&writer);
}

void as_record_encode_denied(const struct as_record_header *header,
                             const struct as_denied_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    member_i64(&writer, "count", (int64_t)record->count);
    member(&writer, "error", record->error);
    member(&writer, "handler", record->handler);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_DENIED));
    member(&writer, "remote", record->remote);
    member_i64(&writer, "status", record->status);
    member_time(&writer, header->time);
    end(&writer);
}

void as_record_encode_nodes(const struct as_record_header *header,
                            const struct as_nodes_record *record, struct as_buf *out,
                            struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    member(&writer, "decision", record->decision);
    member(&writer, "event", as_nodes_event_get_word(record->event));
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_NODES));
    member(&writer, "message", record->message);
    key(&writer, "nodes");
    as_json_begin_array(&writer.json);
    for (size_t i = 0; i < record->node_count; i++)
        write_text(&writer.json, record->nodes[i]);
    as_json_end_array(&writer.json);
    member(&writer, "target", record->target);
    member(&writer, "target_name", record->target_name);
    member_time(&writer, header->time);
    end(&writer);
}

void as_record_encode_others(const struct as_record_header *header,
                             const struct as_others_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    member(&writer, "event", as_others_event_get_word(record->event));
    if (record->event == AS_OTHERS_FOUND) {
        key(&writer, "found");
        record_write_found(&writer.json, record);
    }
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_OTHERS));
    if (record->event == AS_OTHERS_OVER)
        member(&writer, "message", record->message);
    if (record->event == AS_OTHERS_CONTENDED) {
        key(&writer, "set_backs");
        record_write_set_backs(&writer.json, record->set_backs, record->set_back_count);
    }
    member(&writer, "target", record->target);
    member(&writer, "target_name", record->target_name);
    member_time(&writer, header->time);
    if (record->event == AS_OTHERS_CONTENDED)
        member_moment(&writer, "until", true, record->until);
    end(&writer);
}

void as_record_encode_notify(const struct as_record_header *header,
                             const struct as_notify_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    if (record->receiver) {
        member(&writer, "cause", as_notice_loss_get_word(record->cause));
        member_i64(&writer, "count", (int64_t)record->count);
    }
    member(&writer, "event", record->receiver ? "dropped" : "ended");
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_NOTIFY));
    if (record->receiver) {
        member(&writer, "receiver", record->receiver);
    } else {
        member(&writer, "state", as_notice_kind_get_row(record->state)->word);
        member(&writer, "target", record->target);
        member(&writer, "target_name", record->target_name);
    }
    member_time(&writer, header->time);
    end(&writer);
}

static const char *get_outcome_word(const struct as_alert_outcome *outcome)
{
    return outcome->is_queued ? "queued" : as_reason_get_word(outcome->reason);
}

static const char *get_status_word(const struct as_alert *alert)
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

static void write_alert(struct as_json_writer *json, const struct as_alert *alert,
                        const struct as_alert_outcome *outcome)
{
    if (alert->problem) {
        write_problem(json, alert, outcome);
        return;
    }
    as_json_begin_object(json);
    as_json_write_key(json, "digest");
    write_digest(json, &alert->digest);
    as_json_write_key(json, "fingerprint");
    as_json_write_hex(json, alert->fingerprint);
    as_json_write_key(json, "labels");
    write_labels(json, alert->labels);
    as_json_write_member(json, "outcome", get_outcome_word(outcome));
    as_json_write_key(json, "rules");
    write_rules(json, outcome);
    as_json_write_key(json, "startsAt");
    write_time_short(json, alert->starts_at);
    as_json_write_member(json, "status", get_status_word(alert));
    as_json_end_object(json);
}

void as_record_encode_notification(const struct as_record_header *header,
                                   const struct as_notification_record *record, struct as_buf *out,
                                   struct as_record_places *places_out)
{
    const struct as_notification *notification = record->notification;
    struct writer writer;
    begin(&writer, out, places_out);
    key(&writer, "alerts");
    as_json_begin_array(&writer.json);
    for (size_t i = 0; i < notification->alert_count; i++)
        write_alert(&writer.json, &notification->alerts[i], &record->outcomes[i]);
    as_json_end_array(&writer.json);
    member(&writer, "body_sha256", notification->body_sha256);
    member_i64(&writer, "body_size", (int64_t)notification->body_size);
    member(&writer, "credential", notification->credential);
    member(&writer, "groupKey", notification->group_key);
    member(&writer, "id", notification->id);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_NOTIFICATION));
    member(&writer, "notification_reason", notification->reason);
    member(&writer, "receiver", notification->receiver);
    member(&writer, "remote", notification->remote);
    member_time(&writer, header->time);
    member(&writer, "traceparent", notification->traceparent);
    member_i64(&writer, "truncated", (int64_t)notification->truncated);
    end(&writer);
}

static void member_outcome(struct writer *writer, enum as_reason reason, size_t count)
{
    if (count > 0)
        as_json_write_member_i64(&writer->json, as_reason_get_word(reason), (int64_t)count);
}

void as_record_encode_repeat(const struct as_record_header *header,
                             const struct as_repeat_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    const struct as_notification *notification = record->notification;
    struct writer writer;
    begin(&writer, out, places_out);
    member(&writer, "credential", notification->credential);
    member(&writer, "id", notification->id);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_REPEAT));
    key(&writer, "outcomes");
    as_json_begin_object(&writer.json);
    member_outcome(&writer, AS_REASON_DUPLICATE, record->duplicate);
    member_outcome(&writer, AS_REASON_MAX_STEPS, record->max_steps);
    as_json_end_object(&writer.json);
    member(&writer, "remote", notification->remote);
    member(&writer, "same_as", record->same_as);
    member_time(&writer, header->time);
    member(&writer, "traceparent", notification->traceparent);
    end(&writer);
}

static void write_cause(struct writer *writer, const struct as_decision_record *record)
{
    member_i64(writer, "notification_count", (int64_t)record->notification_total);
    key(writer, "notifications");
    as_json_begin_array(&writer->json);
    for (size_t i = 0; i < record->notification_count; i++)
        as_json_write_string(&writer->json, record->notifications[i]);
    as_json_end_array(&writer->json);
}

/* A document that did not fit makes the record fail too. */
static void write_document(struct writer *writer, const struct as_buf *document)
{
    as_json_write_raw(&writer->json, document->data, document->size);
    if (as_buf_check(document) != 0)
        writer->json.buf->failed = true;
}

static void write_pause(struct writer *writer, const struct as_pause_note *pause)
{
    struct as_json_writer *json = &writer->json;
    char until[AS_RFC3339_SIZE];
    key(writer, "pause");
    as_json_begin_object(json);
    as_json_write_member_bool(json, "all", pause->is_of_all);
    if (pause->ways != AS_WAYS_BOTH)
        as_json_write_member(json, "direction", as_ways_get_word(pause->ways));
    as_json_write_key(json, "reason");
    write_text(json, pause->reason);
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

void as_record_encode_decision(const struct as_record_header *header,
                               const struct as_decision_record *record, struct as_buf *out,
                               struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    if (record->contended) {
        key(&writer, "contended");
        record_write_contended(&writer.json, record->contended);
    }
    if (record->former_uid)
        member(&writer, "former_uid", record->former_uid);
    member(&writer, "id", record->id);
    member_i64(&writer, "incident_count", (int64_t)record->incident_total);
    key(&writer, "incidents");
    as_json_begin_array(&writer.json);
    for (size_t i = 0; i < record->incident_count; i++)
        write_digest(&writer.json, &record->incidents[i]);
    as_json_end_array(&writer.json);

    struct as_buf document = AS_BUF_INIT(out->max);
    as_decision_encode_input(record->input, &document);
    key(&writer, "input");
    write_document(&writer, &document);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_DECISION));
    write_cause(&writer, record);
    as_buf_clear(&document);
    as_decision_encode_output(record->input, record->results, record->output, &document);
    key(&writer, "output");
    write_document(&writer, &document);
    as_buf_deinit(&document);

    if (record->pause)
        write_pause(&writer, record->pause);
    if (record->pool_decision)
        member(&writer, "pool_decision", record->pool_decision);
    member_i64(&writer, "repeats", (int64_t)record->repeats);
    member(&writer, "rules_digest", record->rules_digest);
    member_seconds(&writer, "since_alert_seconds", record->since_alert_us);
    member_seconds(&writer, "since_notification_seconds", record->since_notification_us);
    member(&writer, "target", record->target);
    member(&writer, "target_name", record->target_name);
    member_time(&writer, header->time);
    if (record->waits_for)
        member(&writer, "waits_for", record->waits_for);
    end(&writer);
}

void as_record_encode_action(const struct as_record_header *header,
                             const struct as_action_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    member_i64(&writer, "attempts", record->attempts);
    if (record->command)
        member(&writer, "command", record->command);
    member(&writer, "decision", record->decision);
    member_seconds(&writer, "duration_seconds", record->duration_us);
    member_size(&writer, "from", record->has_sizes && record->from >= 0, record->from);
    member_i64(&writer, "http_status", record->http_status);
    member(&writer, "id", record->id);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_ACTION));
    key(&writer, "late");
    as_json_write_bool(&writer.json, record->is_late);
    member(&writer, "message", record->message);
    member(&writer, "method", record->method);
    member(&writer, "outcome", as_reason_get_word(record->outcome));
    member(&writer, "path", record->path);
    member_i64(&writer, "repeats", (int64_t)record->repeats);
    if (!as_str_is_empty(record->request_id))
        member(&writer, "request_id", record->request_id);
    member(&writer, "rule", record->rule);
    member_seconds(&writer, "since_alert_seconds", record->since_alert_us);
    member_seconds(&writer, "since_notification_seconds", record->since_notification_us);
    member(&writer, "target", record->target);
    member(&writer, "target_name", record->target_name);
    member_time(&writer, header->time);
    member_size(&writer, "to", record->has_sizes, record->to);
    member(&writer, "version", record->version);
    end(&writer);
}

void as_record_encode_follow(const struct as_record_header *header,
                             const struct as_follow_record *record, struct as_buf *out,
                             struct as_record_places *places_out)
{
    struct writer writer;
    begin(&writer, out, places_out);
    member(&writer, "action", record->action);
    member(&writer, "decision", record->decision);
    member(&writer, "ended", as_follow_end_get_word(record->end));
    member_i64(&writer, "from", record->from);
    if (record->is_held)
        member_moment(&writer, "held_until", true, record->until);
    member_i64(&writer, "in_vain", record->in_vain);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_EFFECT));
    member_seconds(&writer, "ready_after", record->ready_us);
    member_seconds(&writer, "resolved_after", record->resolved_us);
    member(&writer, "rule", record->rule);
    member(&writer, "target", record->target);
    member(&writer, "target_name", record->target_name);
    member_time(&writer, header->time);
    member_i64(&writer, "to", record->to);
    end(&writer);
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
    struct writer writer;
    begin(&writer, out, places_out);
    key(&writer, "digest");
    write_digest(&writer.json, &record->digest);
    member(&writer, "event", as_incident_event_get_word(record->event));
    key(&writer, "fingerprint");
    as_json_write_hex(&writer.json, record->fingerprint);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_INCIDENT));
    key(&writer, "labels");
    write_labels(&writer.json, record->labels);
    member(&writer, "notification", record->notification);
    key(&writer, "startsAt");
    write_time_short(&writer.json, record->starts_at);
    if (record->claimed.set)
        member_moment(&writer, "startsAt_claimed", true, record->claimed.at);
    key(&writer, "targets");
    write_incident_targets(&writer.json, record);
    member_time(&writer, header->time);
    end(&writer);
}

void as_record_encode_command(const struct as_record_header *header,
                              const struct as_order_record *record, struct as_buf *out,
                              struct as_record_places *places_out)
{
    const struct as_order *order = record->order;
    struct writer writer;
    begin(&writer, out, places_out);
    member(&writer, "command", as_order_kind_get_word(order->kind));
    key(&writer, "force");
    as_json_write_bool(&writer.json, order->force);
    member(&writer, "id", record->id);
    member(&writer, "instance", header->instance);
    member(&writer, "kind", as_record_kind_get_word(AS_RECORD_COMMAND));
    member_size(&writer, "max", record->has_bounds, record->max);
    member(&writer, "message", record->message);
    member_size(&writer, "min", record->has_bounds, record->min);
    member(&writer, "outcome", as_order_outcome_get_word(record->outcome));
    member(&writer, "reason", order->reason);
    member(&writer, "remote", order->remote);
    member_size(&writer, "replicas", order->kind == AS_ORDER_SCALE, order->replicas);
    member(&writer, "target", record->target ? record->target : order->target);
    member(&writer, "target_name", record->target_name);
    member_time(&writer, header->time);
    member_moment(&writer, "until", record->has_until, record->until);
    member(&writer, "who", order->who);
    end(&writer);
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
        write_digest(&json, &notification->alerts[i].digest);
        as_json_write_key(&json, "fingerprint");
        as_json_write_hex(&json, notification->alerts[i].fingerprint);
        as_json_write_member(&json, "status", get_status_word(&notification->alerts[i]));
        as_json_write_key(&json, "rules");
        write_rules(&json, outcome);
        as_json_write_member(&json, "outcome", get_outcome_word(outcome));
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    as_json_end_object(&json);
    as_buf_append_char(out, '\n');
}
