/*
 * Notices in the state. A document names its receiver, not the address: addresses may hold secrets,
 * and may change while it waits. Members that a later version adds are ignored.
 */
#include <alertscaler/notify/notice.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include <alertscaler/doc/json_reader.h>

static const char no_hash[AS_NOTICE_HASH_SIZE] =
    "0000000000000000000000000000000000000000000000000000000000000000";

static void write_text(struct as_json_writer *json, const char *name, const char *text)
{
    if (!as_str_is_empty(text))
        as_json_write_member(json, name, text);
}

void as_notice_encode(const struct as_notice *notice, struct as_buf *out, size_t *at_hash_out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    write_text(&json, "approval", notice->approval);
    as_json_write_member_i64(&json, "at", notice->at.us);
    write_text(&json, "command", notice->command);
    write_text(&json, "credential", notice->credential);
    write_text(&json, "decision", notice->decision);
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
    write_text(&json, "reason", notice->reason);
    write_text(&json, "receiver", notice->receiver);
    write_text(&json, "rule", notice->rule);
    as_json_write_member(&json, "target", notice->target);
    write_text(&json, "target_name", notice->target_name);
    if (notice->has_to)
        as_json_write_member_i64(&json, "to", notice->to);
    write_text(&json, "unit", notice->unit);
    as_json_write_member_i64(&json, "url", notice->url);
    as_json_end_object(&json);
}

static const char *read_text(struct as_reader *reader, const char *name, struct as_arena *arena)
{
    const char *text = NULL;
    as_read_text(reader, name, &text);
    return as_arena_strdup(arena, text);
}

static bool read_size(struct as_reader *reader, const char *name, int32_t *size_out)
{
    as_read_i32(reader, name, INT32_MIN, size_out);
    return as_read_has(reader, name);
}

static void read_kind(struct as_reader *reader, struct as_notice *notice)
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
static void read_time(struct as_reader *reader, const char *name, as_wall_time *time_out)
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
    read_kind(reader, notice);
    as_read_require(reader, "at");
    as_read_require(reader, "hash");
    as_read_require(reader, "target");
    require_named(reader, notice);
    read_time(reader, "at", &notice->at);
    read_time(reader, "ended", &notice->ended.at);
    as_read_i64(reader, "url", 0, UINT32_MAX, &url);
    notice->ended.set = as_read_has(reader, "ended");
    notice->url = (uint32_t)url;
    notice->has_from = read_size(reader, "from", &notice->from);
    notice->has_to = read_size(reader, "to", &notice->to);
    notice->approval = read_text(reader, "approval", arena);
    notice->command = read_text(reader, "command", arena);
    notice->credential = read_text(reader, "credential", arena);
    notice->decision = read_text(reader, "decision", arena);
    notice->hash = read_text(reader, "hash", arena);
    notice->message = read_text(reader, "message", arena);
    notice->reason = read_text(reader, "reason", arena);
    notice->receiver = read_text(reader, "receiver", arena);
    notice->rule = read_text(reader, "rule", arena);
    notice->target = read_text(reader, "target", arena);
    notice->target_name = read_text(reader, "target_name", arena);
    notice->unit = read_text(reader, "unit", arena);
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
