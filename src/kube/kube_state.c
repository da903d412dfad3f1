/*
 * State in API objects, the texts: see the header. Only what we write ourselves is read back; any
 * difference is damage and is refused.
 */
#include <alertscaler/kube/kube_state.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define PIECES_MAX 65536

static const char *const kinds[AS_KUBE_STATE_KINDS] = {"meta", "incident", "target", "intent",
                                                       "outbox"};

/* 0 or -EBADMSG. */
static int parse_hex(const char *text, size_t size, struct as_arena *arena, const char **data_out,
                     size_t *size_out)
{
    char *data = as_arena_alloc_raw(arena, size / 2 + 1);
    if (!as_decode_hex(text, size, data))
        return -EBADMSG;
    *data_out = data;
    *size_out = size / 2;
    return 0;
}

static bool is_word(const char *key, size_t size)
{
    return size > 0 && (size < 2 || memcmp(key, "0x", 2) != 0) && as_str_is_visible(key, size);
}

/* Survives JSON and YAML unchanged, and is readable. */
static bool is_text(const char *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\n' && value[i] != '\t') ||
            value[i] == 0x7f)
            return false;
    return as_str_is_utf8(value, size);
}

void as_kube_state_print_name(unsigned kind, uint64_t id, char name_out[AS_KUBE_STATE_NAME_SIZE])
{
    snprintf(name_out, AS_KUBE_STATE_NAME_SIZE, "%s-%" PRIu64, kinds[kind], id);
}

void as_kube_state_print_record(const struct as_kube_state_piece *piece, struct as_buf *out)
{
    if (is_word(piece->key, piece->key_size)) {
        as_buf_append(out, piece->key, piece->key_size);
    } else {
        as_buf_append_str(out, "0x");
        as_encode_hex(out, piece->key, piece->key_size);
    }
    if (piece->count > 1)
        as_buf_printf(out, " part %" PRIu32 "/%" PRIu32, piece->index + 1, piece->count);
    if (is_text(piece->value, piece->value_size)) {
        as_buf_append_char(out, '\n');
        as_buf_append(out, piece->value, piece->value_size);
    } else {
        as_buf_append_str(out, " hex\n");
        as_encode_hex(out, piece->value, piece->value_size);
    }
}

/* Exactly `size` decimal digits without leading zeros; at most INT64_MAX. */
static bool parse_number(const char *text, size_t size, uint64_t *number_out)
{
    int64_t number;
    if (size == 0 || (size > 1 && text[0] == '0') || text[0] == '-' ||
        as_number_parse_i64(text, size, &number) < 0)
        return false;
    *number_out = (uint64_t)number;
    return true;
}

struct cursor {
    const char *at, *end;
};

/* The bytes before `stop`, which is skipped; false if there is no `stop`. */
static bool take_until(struct cursor *cursor, char stop, const char **word_out, size_t *size_out)
{
    const char *found = memchr(cursor->at, stop, (size_t)(cursor->end - cursor->at));
    if (!found)
        return false;
    *word_out = cursor->at;
    *size_out = (size_t)(found - cursor->at);
    cursor->at = found + 1;
    return true;
}

static bool take_number(struct cursor *cursor, char stop, uint64_t *number_out)
{
    const char *word;
    size_t size;
    return take_until(cursor, stop, &word, &size) && parse_number(word, size, number_out);
}

static bool take_prefix(struct cursor *cursor, const char *prefix)
{
    size_t size = strlen(prefix);
    if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, prefix, size) != 0)
        return false;
    cursor->at += size;
    return true;
}

static bool parse_name(const char *name, size_t size, unsigned *kind_out, uint64_t *id_out)
{
    struct cursor cursor = {name, name + size};
    for (unsigned kind = 0; kind < AS_KUBE_STATE_KINDS; kind++) {
        if (!take_prefix(&cursor, kinds[kind]))
            continue;
        *kind_out = kind;
        return take_prefix(&cursor, "-") &&
               parse_number(cursor.at, (size_t)(cursor.end - cursor.at), id_out);
    }
    return false;
}

/* " part 2/5" and " hex" after the key. */
static bool parse_flags(struct cursor line, struct as_kube_state_piece *piece, bool *is_hex_out)
{
    uint64_t index = 1, count = 1;
    *is_hex_out = false;
    if (take_prefix(&line, "part ")) {
        if (!take_number(&line, '/', &index))
            return false;
        const char *word = line.at;
        while (line.at < line.end && *line.at != ' ')
            line.at++;
        if (!parse_number(word, (size_t)(line.at - word), &count) || count < 2)
            return false;
        if (line.at < line.end)
            line.at++;
    }
    if (take_prefix(&line, "hex"))
        *is_hex_out = true;
    piece->index = (uint32_t)(index - 1);
    piece->count = (uint32_t)count;
    return line.at == line.end && index >= 1 && index <= count && count <= PIECES_MAX;
}

static int parse_text(const char *text, size_t size, struct as_arena *arena,
                      struct as_kube_state_piece *piece)
{
    struct cursor cursor = {text, text + size};
    const char *line, *space;
    size_t line_size;
    bool is_hex;
    if (!take_until(&cursor, '\n', &line, &line_size))
        return -EBADMSG;
    space = memchr(line, ' ', line_size);
    piece->key = line;
    piece->key_size = space ? (size_t)(space - line) : line_size;
    struct cursor flags = {space ? space + 1 : line + line_size, line + line_size};
    if (!parse_flags(flags, piece, &is_hex))
        return -EBADMSG;
    piece->value = cursor.at;
    piece->value_size = (size_t)(cursor.end - cursor.at);
    if (is_hex
            ? parse_hex(piece->value, piece->value_size, arena, &piece->value, &piece->value_size)
            : !is_text(piece->value, piece->value_size))
        return -EBADMSG;
    if (piece->key_size >= 2 && memcmp(piece->key, "0x", 2) == 0)
        return parse_hex(piece->key + 2, piece->key_size - 2, arena, &piece->key, &piece->key_size);
    return is_word(piece->key, piece->key_size) ? 0 : -EBADMSG;
}

int as_kube_state_parse_record(const char *name, size_t name_size, const char *text, size_t size,
                               struct as_arena *arena, struct as_kube_state_piece *piece_out,
                               struct as_error *error)
{
    struct as_kube_state_piece piece = {0};
    if (parse_name(name, name_size, &piece.kind, &piece.id) &&
        parse_text(text, size, arena, &piece) == 0) {
        *piece_out = piece;
        return 0;
    }
    as_error_set(error, "%.*s: not a record of alertscaler's state",
                 (int)(name_size < 64 ? name_size : 64), name);
    return -EBADMSG;
}

void as_kube_state_print_commit(uint64_t sequence, size_t changes, struct as_buf *out)
{
    as_buf_printf(out, "commit %" PRIu64 " %zu\n", sequence, changes);
}

void as_kube_state_print_put(const struct as_kube_state_piece *piece, const char *text, size_t size,
                             struct as_buf *out)
{
    as_buf_printf(out, "put %s-%" PRIu64 " %" PRIu32 " %zu\n", kinds[piece->kind], piece->id,
                  piece->shard, size);
    as_buf_append(out, text, size);
    as_buf_append_char(out, '\n');
}

void as_kube_state_print_drop(unsigned kind, uint64_t id, uint32_t shard, struct as_buf *out)
{
    as_buf_printf(out, "drop %s-%" PRIu64 " %" PRIu32 "\n", kinds[kind], id, shard);
}

static bool parse_put(struct cursor *cursor, const struct as_kube_state_visitor *visitor,
                      struct as_arena *arena)
{
    struct as_kube_state_piece piece;
    const char *name;
    size_t name_size;
    uint64_t shard, size;
    if (!take_until(cursor, ' ', &name, &name_size) || !take_number(cursor, ' ', &shard) ||
        shard >= AS_KUBE_STATE_SHARDS_MAX || !take_number(cursor, '\n', &size) ||
        size >= (uint64_t)(cursor->end - cursor->at) || cursor->at[size] != '\n' ||
        as_kube_state_parse_record(name, name_size, cursor->at, size, arena, &piece, NULL) != 0)
        return false;
    piece.shard = (uint32_t)shard;
    visitor->put(visitor->context, &piece, size);
    cursor->at += size + 1;
    as_arena_reset(arena);
    return true;
}

static bool parse_drop(struct cursor *cursor, const struct as_kube_state_visitor *visitor)
{
    const char *name;
    size_t name_size;
    unsigned kind;
    uint64_t id, shard;
    if (!take_until(cursor, ' ', &name, &name_size) || !parse_name(name, name_size, &kind, &id) ||
        !take_number(cursor, '\n', &shard) || shard >= AS_KUBE_STATE_SHARDS_MAX)
        return false;
    visitor->drop(visitor->context, id, (uint32_t)shard);
    return true;
}

static bool parse_commit(struct cursor *cursor, const struct as_kube_state_visitor *visitor,
                         struct as_arena *arena)
{
    uint64_t sequence, changes;
    if (!take_prefix(cursor, "commit ") || !take_number(cursor, ' ', &sequence) ||
        !take_number(cursor, '\n', &changes))
        return false;
    visitor->commit(visitor->context, sequence);
    for (uint64_t i = 0; i < changes; i++) {
        bool is_good = take_prefix(cursor, "put ")
                           ? parse_put(cursor, visitor, arena)
                           : take_prefix(cursor, "drop ") && parse_drop(cursor, visitor);
        if (!is_good)
            return false;
    }
    return true;
}

int as_kube_state_parse_journal(const char *text, size_t size,
                                const struct as_kube_state_visitor *visitor, struct as_error *error)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    struct cursor cursor = {text, size > 0 ? text + size : text}; /* no arithmetic on NULL */
    while (cursor.at < cursor.end) {
        if (!parse_commit(&cursor, visitor, &arena)) {
            as_error_set(error, "the journal is damaged at byte %zu", (size_t)(cursor.at - text));
            return -EBADMSG;
        }
    }
    return 0;
}
