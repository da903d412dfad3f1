/*
 * Notices as their receivers get them, and as the state stores them. Labels name what the alert
 * is about and do not change while the alert lives; whatever differs from one notice to the next
 * is an annotation.
 */
#include <alertscaler/notify/notice.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/model/labels.h>

#define TEXT_MAX ((size_t)8 * 1024)

static void notice_write_text(struct as_json_writer *json, const char *name, const char *text)
{
    if (!as_str_is_empty(text))
        as_json_write_member(json, name, text);
}

static void notice_write_time(struct as_json_writer *json, const char *name, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    as_json_write_member(json, name, text);
}

/* "" if it cannot be said where. */
static void print_url(const struct as_notice *notice, const struct as_notice_sender *sender,
                      struct as_buf *out)
{
    if (!sender->external_url)
        return;
    as_buf_printf(out, "%s/", sender->external_url);
    if (!as_str_is_empty(notice->decision))
        as_buf_printf(out, "decisions/%s", notice->decision);
}

static void notice_print_sizes(const struct as_notice *notice, struct as_buf *out)
{
    char size[AS_SIZE_TEXT_SIZE];
    if (notice->has_from)
        as_buf_printf(out, " from %s", as_unit_print_size(notice->unit, notice->from, size));
    if (notice->has_to)
        as_buf_printf(out, " to %s", as_unit_print_size(notice->unit, notice->to, size));
}

static void print_question(const struct as_notice *notice, struct as_buf *out)
{
    as_buf_append_str(out, " waits for an approval: rule ");
    as_buf_append_str(out, notice->rule);
    as_buf_append_str(out, " wants it");
    notice_print_sizes(notice, out);
    as_buf_printf(out, " (alertscaler approve %s)", notice->approval);
}

/* One sentence for people, without a full stop. */
static void notice_print_summary(const struct as_notice *notice, struct as_buf *out)
{
    char size[AS_SIZE_TEXT_SIZE];
    const bool is_named = !as_str_is_empty(notice->target_name);
    const bool is_of_cluster = notice->kind == AS_NOTICE_CLUSTER_UNREACHABLE;
    if (!is_of_cluster)
        as_buf_append_str(out, is_named ? notice->target_name : notice->target);
    switch (notice->kind) {
    case AS_NOTICE_SCALED:
        as_buf_append_str(out, " was scaled");
        notice_print_sizes(notice, out);
        break;
    case AS_NOTICE_FAILED:
        as_buf_append_str(out, notice->has_to ? " could not be scaled" : " could not be read");
        if (notice->has_to)
            notice_print_sizes(notice, out);
        as_buf_printf(out, ": %s", notice->reason);
        if (!as_str_is_empty(notice->message))
            as_buf_printf(out, ": %s", notice->message);
        break;
    case AS_NOTICE_AT_MAX:
        if (notice->phase == AS_NOTICE_END)
            as_buf_append_str(out, " is not held at its max any more");
        else
            as_buf_printf(out, " is held at its max: it has %s and more is wanted",
                          as_unit_print_size(notice->unit, notice->from, size));
        break;
    case AS_NOTICE_CONTENDED:
        if (notice->phase == AS_NOTICE_END)
            as_buf_append_str(out, " is not left alone any more");
        else
            as_buf_printf(out, " is left alone for an hour: %s set its size back three times",
                          as_str_is_empty(notice->message) ? "somebody else" : notice->message);
        break;
    case AS_NOTICE_NEEDS_APPROVAL:
        if (notice->phase == AS_NOTICE_END)
            as_buf_printf(out, " waits for no approval any more: %s", notice->message);
        else
            print_question(notice, out);
        break;
    case AS_NOTICE_INEFFECTIVE:
        as_buf_printf(out,
                      notice->phase == AS_NOTICE_END
                          ? ": rule %s is not held any more"
                          : ": rule %s is held, because its last actions did not help",
                      notice->rule ? notice->rule : "");
        break;
    case AS_NOTICE_TEST: as_buf_append_str(out, ": this is a test"); break;
    case AS_NOTICE_CLUSTER_UNREACHABLE:
        as_buf_printf(out, "the API server of cluster %s does not answer, no target is scaled: %s",
                      notice->cluster ? notice->cluster : "", notice->reason);
        if (!as_str_is_empty(notice->message))
            as_buf_printf(out, ": %s", notice->message);
        break;
    case AS_NOTICE_KIND_COUNT: break;
    }
}

static void write_summary(struct as_json_writer *json, const struct as_notice *notice)
{
    struct as_buf text = AS_BUF_INIT(TEXT_MAX);
    notice_print_summary(notice, &text);
    as_json_write_member(json, "summary", text.size > 0 ? text.data : "");
    as_buf_deinit(&text);
}

static void write_url(struct as_json_writer *json, const char *name, const struct as_notice *notice,
                      const struct as_notice_sender *sender)
{
    struct as_buf text = AS_BUF_INIT(TEXT_MAX);
    print_url(notice, sender, &text);
    if (text.size > 0)
        as_json_write_member(json, name, text.data);
    as_buf_deinit(&text);
}

/* Alertmanager's annotations are texts. */
static void write_annotations(struct as_json_writer *json, const struct as_notice *notice)
{
    char number[16];
    as_json_write_key(json, "annotations");
    as_json_begin_object(json);
    notice_write_text(json, "command", notice->command);
    notice_write_text(json, "decision", notice->decision);
    if (notice->has_from) {
        snprintf(number, sizeof(number), "%" PRId32, notice->from);
        as_json_write_member(json, "from", number);
    }
    notice_write_text(json, "message", notice->message);
    write_summary(json, notice);
    if (!notice->cluster)
        notice_write_text(json, "target_name", notice->target_name);
    if (notice->has_to) {
        snprintf(number, sizeof(number), "%" PRId32, notice->to);
        as_json_write_member(json, "to", number);
    }
    notice_write_text(json, "unit", notice->unit);
    as_json_end_object(json);
}

static as_wall_time notice_get_end(const struct as_notice *notice, as_wall_time now)
{
    const int64_t life =
        notice->phase == AS_NOTICE_EVENT ? AS_NOTICE_EVENT_LIFE_US : AS_NOTICE_STATE_LIFE_US;
    if (notice->phase == AS_NOTICE_END && notice->ended.set)
        return notice->ended.at.us < now.us ? notice->ended.at : now;
    return (as_wall_time){as_time_add(now.us, life)};
}

static void notice_write_alert(struct as_json_writer *json, const struct as_notice *notice,
                               const struct as_notice_sender *sender, as_wall_time now)
{
    as_json_begin_object(json);
    write_annotations(json, notice);
    notice_write_time(json, "endsAt", notice_get_end(notice, now));
    write_url(json, "generatorURL", notice, sender);
    as_json_write_key(json, "labels");
    as_json_begin_object(json);
    as_json_write_member(json, "alertname", as_notice_kind_get_row(notice->kind)->alertname);
    as_json_write_member(json, AS_OWN_ALERT_LABEL, sender->instance);
    /* each request is an alert of its own: Alertmanager would take the next one for a repeat */
    notice_write_text(json, "approval", notice->approval);
    notice_write_text(json, "cluster", notice->cluster);
    notice_write_text(json, "reason", notice->reason);
    notice_write_text(json, "rule", notice->rule);
    if (!notice->cluster)
        as_json_write_member(json, "target", notice->target);
    as_json_end_object(json);
    notice_write_time(json, "startsAt", notice->at.us < now.us ? notice->at : now);
    as_json_end_object(json);
}

void as_notice_encode_alerts(const struct as_notice *notices, size_t count,
                             const struct as_notice_sender *sender, as_wall_time now,
                             struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        notice_write_alert(&json, &notices[i], sender, now);
    as_json_end_array(&json);
}

static void write_data(struct as_json_writer *json, const struct as_notice *notice,
                       const struct as_notice_sender *sender)
{
    as_json_write_key(json, "data");
    as_json_begin_object(json);
    notice_write_text(json, "approval", notice->approval);
    notice_write_text(json, "cluster", notice->cluster);
    notice_write_text(json, "command", notice->command);
    notice_write_text(json, "decision", notice->decision);
    if (notice->ended.set)
        notice_write_time(json, "ended", notice->ended.at);
    if (notice->has_from)
        as_json_write_member_i64(json, "from", notice->from);
    as_json_write_member(json, "instance", sender->instance);
    notice_write_text(json, "message", notice->message);
    as_json_write_member(json, "phase", as_notice_phase_get_word(notice->phase));
    notice_write_text(json, "reason", notice->reason);
    notice_write_text(json, "rule", notice->rule);
    if (notice->phase != AS_NOTICE_EVENT)
        notice_write_time(json, "started", notice->at);
    write_summary(json, notice);
    if (!notice->cluster) {
        as_json_write_member(json, "target", notice->target);
        notice_write_text(json, "target_name", notice->target_name);
    }
    if (notice->has_to)
        as_json_write_member_i64(json, "to", notice->to);
    notice_write_text(json, "unit", notice->unit);
    write_url(json, "url", notice, sender);
    as_json_end_object(json);
}

void as_notice_encode_event(const struct as_notice *notice, const struct as_notice_sender *sender,
                            struct as_buf *out)
{
    struct as_json_writer json;
    char text[256 + 64];
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    write_data(&json, notice, sender);
    as_json_write_member(&json, "datacontenttype", "application/json");
    as_json_write_member(&json, "id", notice->hash);
    snprintf(text, sizeof(text), "urn:alertscaler:%s", sender->instance);
    as_json_write_member(&json, "source", text);
    as_json_write_member(&json, "specversion", "1.0");
    snprintf(text, sizeof(text), "kubernetes/%s", notice->cluster ? notice->cluster : "");
    as_json_write_member(&json, "subject", notice->cluster ? text : notice->target);
    notice_write_time(&json, "time", notice->ended.set ? notice->ended.at : notice->at);
    snprintf(text, sizeof(text), "io.alertscaler.%s.v1",
             as_notice_kind_get_row(notice->kind)->word);
    as_json_write_member(&json, "type", text);
    as_json_end_object(&json);
}

/*
 * Notices in the state. A document names its receiver, not the address: addresses may hold
 * secrets, and may change while the notice waits. Members that a later version adds are ignored.
 */

static const char no_hash[AS_NOTICE_HASH_SIZE] =
    "0000000000000000000000000000000000000000000000000000000000000000";

static const char *notice_get_kind_word(unsigned kind)
{
    return kind < AS_NOTICE_KIND_COUNT ? as_notice_kind_get_row((enum as_notice_kind)kind)->word
                                       : NULL;
}

AS_ROW_WORDS(notice_phase_get_word, enum as_notice_phase, AS_NOTICE_PHASE_COUNT,
             as_notice_phase_get_word)

static const struct as_row notice_rows[] = {
    {AS_ROW("approval", text, as_notice, approval, OPTIONAL)},
    {AS_ROW("at", wall, as_notice, at, REQUIRED)},
    {AS_ROW("cluster", text, as_notice, cluster, OPTIONAL)},
    {AS_ROW("command", text, as_notice, command, OPTIONAL)},
    {AS_ROW("credential", text, as_notice, credential, OPTIONAL)},
    {AS_ROW("decision", text, as_notice, decision, OPTIONAL)},
    {AS_ROW("ended", wall, as_notice, ended.at, OPTIONAL),
     .has_at = AS_ROW_HAS(as_notice, ended.set)},
    {AS_ROW("from", i32, as_notice, from, DEFAULT), .min = INT32_MIN,
     .has_at = AS_ROW_HAS(as_notice, has_from)},
    {AS_ROW("hash", text, as_notice, hash, REQUIRED)},
    {AS_ROW("held", flag, as_notice, is_held, OPTIONAL)},
    {AS_ROW("kind", word, as_notice, kind, REQUIRED), .get_word = notice_get_kind_word},
    {AS_ROW("message", text, as_notice, message, OPTIONAL), .max = AS_NOTICE_TEXT_MAX},
    {AS_ROW("phase", word, as_notice, phase, REQUIRED), .get_word = notice_phase_get_word},
    {AS_ROW("reason", text, as_notice, reason, OPTIONAL)},
    {AS_ROW("receiver", text, as_notice, receiver, OPTIONAL)},
    {AS_ROW("rule", text, as_notice, rule, OPTIONAL)},
    {AS_ROW("target", text, as_notice, target, REQUIRED)},
    {AS_ROW("target_name", text, as_notice, target_name, OPTIONAL)},
    {AS_ROW("to", i32, as_notice, to, DEFAULT), .min = INT32_MIN,
     .has_at = AS_ROW_HAS(as_notice, has_to)},
    {AS_ROW("unit", text, as_notice, unit, OPTIONAL)},
    {AS_ROW("url", u32, as_notice, url, DEFAULT)},
    {.name = NULL},
};

void as_notice_encode(const struct as_notice *notice, struct as_buf *out, size_t *at_hash_out)
{
    static const char key[] = "\"hash\":\""; /* in a text its quotes would be escaped */
    struct as_notice copy = *notice;
    struct as_json_writer json;
    const size_t begin = out->size;
    if (!copy.hash)
        copy.hash = no_hash;
    as_json_init(&json, out, 0);
    as_rows_write(&json, notice_rows, &copy);
    const char *found = out->size > begin ? strstr(out->data + begin, key) : NULL;
    *at_hash_out = found ? (size_t)(found - out->data) + sizeof(key) - 1 : begin;
}

/* What the sentence and the key of the kind name. */
static void require_named(struct as_reader *reader, const struct as_notice *notice)
{
    switch (notice->kind) {
    case AS_NOTICE_FAILED: as_read_require(reader, "reason"); break;
    case AS_NOTICE_INEFFECTIVE: as_read_require(reader, "rule"); break;
    case AS_NOTICE_CLUSTER_UNREACHABLE:
        as_read_require(reader, "cluster");
        as_read_require(reader, "reason");
        break;
    case AS_NOTICE_NEEDS_APPROVAL:
        as_read_require(reader, "approval");
        as_read_require(reader, "rule");
        if (notice->phase == AS_NOTICE_END)
            as_read_require(reader, "message");
        break;
    case AS_NOTICE_SCALED:
    case AS_NOTICE_AT_MAX:
    case AS_NOTICE_CONTENDED:
    case AS_NOTICE_TEST:
    case AS_NOTICE_KIND_COUNT: break;
    }
}

int as_notice_decode(const char *json, size_t size, struct as_arena *arena,
                     struct as_notice *notice_out, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_notice notice = {.kind = AS_NOTICE_SCALED};
    struct as_reader reader;
    if (tree_load_object(&tree, json, size, error) != 0)
        return -EBADMSG;
    as_read_lenient(&reader, tree.root, error);
    as_rows_read(&(struct as_rows_input){.arena = arena, .copies_texts = true}, &reader,
                 notice_rows, &notice);
    require_named(&reader, &notice);
    if (as_read_result(&reader) != 0)
        return -EBADMSG;
    *notice_out = notice;
    return 0;
}
