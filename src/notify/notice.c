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
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>
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
    notice_write_text(json, "reason", notice->reason);
    notice_write_text(json, "rule", notice->rule);
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
    as_json_write_member(json, "target", notice->target);
    notice_write_text(json, "target_name", notice->target_name);
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
    as_json_write_member(&json, "subject", notice->target);
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

static void notice_state_write_text(struct as_json_writer *json, const char *name, const char *text)
{
    if (!as_str_is_empty(text))
        as_json_write_member(json, name, text);
}

void as_notice_encode(const struct as_notice *notice, struct as_buf *out, size_t *at_hash_out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    notice_state_write_text(&json, "approval", notice->approval);
    as_json_write_member_i64(&json, "at", notice->at.us);
    notice_state_write_text(&json, "command", notice->command);
    notice_state_write_text(&json, "credential", notice->credential);
    notice_state_write_text(&json, "decision", notice->decision);
    if (notice->ended.set)
        as_json_write_member_i64(&json, "ended", notice->ended.at.us);
    if (notice->has_from)
        as_json_write_member_i64(&json, "from", notice->from);
    as_json_write_key(&json, "hash");
    *at_hash_out = out->size + 1; /* behind the quote */
    as_json_write_string(&json, notice->hash ? notice->hash : no_hash);
    as_json_write_member(&json, "kind", as_notice_kind_get_row(notice->kind)->word);
    if (!as_str_is_empty(notice->message)) {
        const size_t size = strlen(notice->message);
        as_json_write_key(&json, "message");
        as_json_write_string_size(&json, notice->message,
                                  as_str_cut_utf8(notice->message, size, AS_NOTICE_TEXT_MAX));
    }
    as_json_write_member(&json, "phase", as_notice_phase_get_word(notice->phase));
    notice_state_write_text(&json, "reason", notice->reason);
    notice_state_write_text(&json, "receiver", notice->receiver);
    notice_state_write_text(&json, "rule", notice->rule);
    as_json_write_member(&json, "target", notice->target);
    notice_state_write_text(&json, "target_name", notice->target_name);
    if (notice->has_to)
        as_json_write_member_i64(&json, "to", notice->to);
    notice_state_write_text(&json, "unit", notice->unit);
    as_json_write_member_i64(&json, "url", notice->url);
    as_json_end_object(&json);
}

static const char *notice_read_text(struct as_reader *reader, const char *name,
                                    struct as_arena *arena)
{
    const char *text = NULL;
    as_read_text(reader, name, &text);
    return as_arena_strdup(arena, text);
}

static bool notice_read_size(struct as_reader *reader, const char *name, int32_t *size_out)
{
    as_read_i32(reader, name, INT32_MIN, size_out);
    return as_read_has(reader, name);
}

static void notice_read_kind(struct as_reader *reader, struct as_notice *notice)
{
    struct as_read_word kinds[AS_NOTICE_KIND_COUNT + 1], phases[AS_NOTICE_PHASE_COUNT + 1];
    for (int i = 0; i < AS_NOTICE_KIND_COUNT; i++)
        kinds[i] = (struct as_read_word){as_notice_kind_get_row((enum as_notice_kind)i)->word, i};
    for (int i = 0; i < AS_NOTICE_PHASE_COUNT; i++)
        phases[i] = (struct as_read_word){as_notice_phase_get_word((enum as_notice_phase)i), i};
    kinds[AS_NOTICE_KIND_COUNT].text = phases[AS_NOTICE_PHASE_COUNT].text = NULL;
    as_read_require(reader, "kind");
    as_read_require(reader, "phase");
    notice->kind = (enum as_notice_kind)as_read_enum(reader, "kind", kinds, AS_NOTICE_SCALED);
    notice->phase = (enum as_notice_phase)as_read_enum(reader, "phase", phases, AS_NOTICE_EVENT);
}

/* Within these limits differences of times cannot overflow. */
static void notice_read_time(struct as_reader *reader, const char *name, as_wall_time *time_out)
{
    as_read_i64(reader, name, INT64_MIN / 4 + 1, INT64_MAX / 4 - 1, &time_out->us);
}

/* What the sentence and the key of the kind name. */
static void require_named(struct as_reader *reader, const struct as_notice *notice)
{
    switch (notice->kind) {
    case AS_NOTICE_FAILED: as_read_require(reader, "reason"); break;
    case AS_NOTICE_INEFFECTIVE: as_read_require(reader, "rule"); break;
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

static void read_notice(struct as_reader *reader, struct as_arena *arena, struct as_notice *notice)
{
    int64_t url = 0;
    notice_read_kind(reader, notice);
    as_read_require(reader, "at");
    as_read_require(reader, "hash");
    as_read_require(reader, "target");
    require_named(reader, notice);
    notice_read_time(reader, "at", &notice->at);
    notice_read_time(reader, "ended", &notice->ended.at);
    as_read_i64(reader, "url", 0, UINT32_MAX, &url);
    notice->ended.set = as_read_has(reader, "ended");
    notice->url = (uint32_t)url;
    notice->has_from = notice_read_size(reader, "from", &notice->from);
    notice->has_to = notice_read_size(reader, "to", &notice->to);
    notice->approval = notice_read_text(reader, "approval", arena);
    notice->command = notice_read_text(reader, "command", arena);
    notice->credential = notice_read_text(reader, "credential", arena);
    notice->decision = notice_read_text(reader, "decision", arena);
    notice->hash = notice_read_text(reader, "hash", arena);
    notice->message = notice_read_text(reader, "message", arena);
    notice->reason = notice_read_text(reader, "reason", arena);
    notice->receiver = notice_read_text(reader, "receiver", arena);
    notice->rule = notice_read_text(reader, "rule", arena);
    notice->target = notice_read_text(reader, "target", arena);
    notice->target_name = notice_read_text(reader, "target_name", arena);
    notice->unit = notice_read_text(reader, "unit", arena);
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
    read_notice(&reader, arena, &notice);
    if (as_read_result(&reader) != 0)
        return -EBADMSG;
    *notice_out = notice;
    return 0;
}
