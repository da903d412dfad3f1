/*
 * State in API objects, as texts, and the ConfigMaps that hold them. Only texts that alertscaler
 * wrote are read back; any difference is damage and is refused. No input or output.
 */
#include "kube_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_object.h"

/* ConfigMaps. `binaryData` is not ours and is ignored. */

const struct as_kube_config_item *as_kube_config_map_find(const struct as_kube_config_map *map,
                                                          const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

void as_kube_config_map_encode(const struct as_kube_config_map *map, const char *namespace_,
                               const struct as_kube_label *labels, size_t label_count,
                               struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", "v1");
    as_json_write_member(&json, "kind", "ConfigMap");
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "name", map->name);
    as_json_write_member(&json, "namespace", namespace_);
    as_json_write_key(&json, "labels");
    as_json_begin_object(&json);
    for (size_t i = 0; i < label_count; i++)
        as_json_write_member(&json, labels[i].name, labels[i].value);
    as_json_end_object(&json);
    if (!as_str_is_empty(map->version))
        as_json_write_member(&json, "resourceVersion", map->version);
    as_json_write_key(&json, "managedFields"); /* [{}]: the server keeps no owner of each key */
    as_json_begin_array(&json);
    as_json_begin_object(&json);
    as_json_end_object(&json);
    as_json_end_array(&json);
    as_json_end_object(&json);
    as_json_write_key(&json, "data");
    as_json_begin_object(&json);
    for (size_t i = 0; i < map->count; i++) {
        as_json_write_key(&json, map->items[i].key);
        as_json_write_string_size(&json, map->items[i].text, map->items[i].size);
    }
    as_json_end_object(&json);
    as_json_end_object(&json);
}

static void take_items(struct as_reader *root, const struct tree_value *data,
                       struct as_kube_config_item *items)
{
    size_t count = 0;
    for (const struct tree_value *value = data ? data->first : NULL; value; value = value->next) {
        if (value->kind == TREE_TEXT)
            items[count++] = (struct as_kube_config_item){
                .key = value->name, .text = value->text, .size = value->size};
        else
            as_read_fail(root, "data", "expected texts");
    }
}

struct user { /* decoding's callback */
    as_kube_config_map_fn *use;
    void *context;
};

static void config_map_take_metadata(struct as_reader *root, struct as_kube_config_map *map)
{
    struct as_reader metadata;
    as_read_object(&metadata, root, "metadata");
    map->name = tree_find_text(metadata.object, "name");
    map->version = tree_find_text(metadata.object, "resourceVersion");
    if (as_str_is_empty(map->name) || as_str_is_empty(map->version))
        as_read_fail(&metadata, NULL, "name or resourceVersion is missing");
    else if (strlen(map->version) >= AS_KUBE_VERSION_SIZE)
        as_read_fail(&metadata, "resourceVersion", "too long");
}

static int config_map_take_map(void *context, const struct tree_value *object,
                               struct as_error *error)
{
    const struct user *user = context;
    struct as_kube_config_map map = {0};
    struct as_reader root, data;
    as_read_lenient(&root, object, error);
    config_map_take_metadata(&root, &map);
    as_read_object(&data, &root, "data");
    map.count = data.object ? data.object->size : 0;
    AS_CLEANUP(as_free_p)
    struct as_kube_config_item *items = as_xcalloc(map.count + 1, sizeof(*items));
    take_items(&root, data.object, items);
    map.items = items;
    const int status = as_read_result(&root);
    return status ? status : user->use(user->context, &map, error);
}

int as_kube_config_map_decode(const char *json, size_t size, as_kube_config_map_fn *use,
                              void *context, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct user user = {use, context};
    const int status = kube_object_load(&tree, json, size, "ConfigMap", error);
    return status ? status : config_map_take_map(&user, tree.root, error);
}

int as_kube_config_map_decode_version(const char *json, size_t size,
                                      char version_out[AS_KUBE_VERSION_SIZE],
                                      struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_kube_config_map map = {0};
    struct as_reader root;
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    const char *kind = tree_find_text(tree.root, "kind");
    if (!as_str_equal(kind, "PartialObjectMetadata") && !as_str_equal(kind, "ConfigMap")) {
        as_error_set(error, "kind: expected ConfigMap");
        return -EBADMSG;
    }
    as_read_lenient(&root, tree.root, error);
    config_map_take_metadata(&root, &map);
    status = as_read_result(&root);
    if (status == 0)
        snprintf(version_out, AS_KUBE_VERSION_SIZE, "%s", map.version);
    return status;
}

int as_kube_config_map_list_decode(const char *json, size_t size, char **next_out,
                                   as_kube_config_map_fn *use, void *context,
                                   struct as_error *error)
{
    struct user user = {use, context};
    return kube_list_read(json, size, "ConfigMapList", config_map_take_map, &user, next_out, error);
}

/* Records and the journal. */

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

static bool state_is_word(const char *key, size_t size)
{
    return size > 0 && (size < 2 || memcmp(key, "0x", 2) != 0) && as_str_is_visible(key, size);
}

/* Survives JSON and YAML unchanged, and is readable. */
static bool state_is_text(const char *value, size_t size)
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
    if (state_is_word(piece->key, piece->key_size)) {
        as_buf_append(out, piece->key, piece->key_size);
    } else {
        as_buf_append_str(out, "0x");
        as_encode_hex(out, piece->key, piece->key_size);
    }
    if (piece->count > 1)
        as_buf_printf(out, " part %" PRIu32 "/%" PRIu32, piece->index + 1, piece->count);
    if (state_is_text(piece->value, piece->value_size)) {
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
static bool state_parse_until(struct cursor *cursor, char stop, const char **word_out,
                              size_t *size_out)
{
    const char *found = memchr(cursor->at, stop, (size_t)(cursor->end - cursor->at));
    if (!found)
        return false;
    *word_out = cursor->at;
    *size_out = (size_t)(found - cursor->at);
    cursor->at = found + 1;
    return true;
}

static bool state_parse_decimal(struct cursor *cursor, char stop, uint64_t *number_out)
{
    const char *word;
    size_t size;
    return state_parse_until(cursor, stop, &word, &size) && parse_number(word, size, number_out);
}

static bool state_parse_prefix(struct cursor *cursor, const char *prefix)
{
    size_t size = strlen(prefix);
    if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, prefix, size) != 0)
        return false;
    cursor->at += size;
    return true;
}

static bool state_parse_name(const char *name, size_t size, unsigned *kind_out, uint64_t *id_out)
{
    struct cursor cursor = {name, name + size};
    for (unsigned kind = 0; kind < AS_KUBE_STATE_KINDS; kind++) {
        if (!state_parse_prefix(&cursor, kinds[kind]))
            continue;
        *kind_out = kind;
        return state_parse_prefix(&cursor, "-") &&
               parse_number(cursor.at, (size_t)(cursor.end - cursor.at), id_out);
    }
    return false;
}

/* " part 2/5" and " hex" after the key. */
static bool parse_flags(struct cursor line, struct as_kube_state_piece *piece, bool *is_hex_out)
{
    uint64_t index = 1, count = 1;
    *is_hex_out = false;
    if (state_parse_prefix(&line, "part ")) {
        if (!state_parse_decimal(&line, '/', &index))
            return false;
        const char *word = line.at;
        while (line.at < line.end && *line.at != ' ')
            line.at++;
        if (!parse_number(word, (size_t)(line.at - word), &count) || count < 2)
            return false;
        if (line.at < line.end)
            line.at++;
    }
    if (state_parse_prefix(&line, "hex"))
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
    if (!state_parse_until(&cursor, '\n', &line, &line_size))
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
            : !state_is_text(piece->value, piece->value_size))
        return -EBADMSG;
    if (piece->key_size >= 2 && memcmp(piece->key, "0x", 2) == 0)
        return parse_hex(piece->key + 2, piece->key_size - 2, arena, &piece->key, &piece->key_size);
    return state_is_word(piece->key, piece->key_size) ? 0 : -EBADMSG;
}

int as_kube_state_parse_record(const char *name, size_t name_size, const char *text, size_t size,
                               struct as_arena *arena, struct as_kube_state_piece *piece_out,
                               struct as_error *error)
{
    struct as_kube_state_piece piece = {0};
    if (state_parse_name(name, name_size, &piece.kind, &piece.id) &&
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
    if (!state_parse_until(cursor, ' ', &name, &name_size) ||
        !state_parse_decimal(cursor, ' ', &shard) || shard >= AS_KUBE_STATE_SHARDS_MAX ||
        !state_parse_decimal(cursor, '\n', &size) || size >= (uint64_t)(cursor->end - cursor->at) ||
        cursor->at[size] != '\n' ||
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
    if (!state_parse_until(cursor, ' ', &name, &name_size) ||
        !state_parse_name(name, name_size, &kind, &id) ||
        !state_parse_decimal(cursor, '\n', &shard) || shard >= AS_KUBE_STATE_SHARDS_MAX)
        return false;
    visitor->drop(visitor->context, id, (uint32_t)shard);
    return true;
}

static bool parse_commit(struct cursor *cursor, const struct as_kube_state_visitor *visitor,
                         struct as_arena *arena)
{
    uint64_t sequence, changes;
    if (!state_parse_prefix(cursor, "commit ") || !state_parse_decimal(cursor, ' ', &sequence) ||
        !state_parse_decimal(cursor, '\n', &changes))
        return false;
    visitor->commit(visitor->context, sequence);
    for (uint64_t i = 0; i < changes; i++) {
        bool is_good = state_parse_prefix(cursor, "put ")
                           ? parse_put(cursor, visitor, arena)
                           : state_parse_prefix(cursor, "drop ") && parse_drop(cursor, visitor);
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

/* Head. Each number is a text of its own, so that kubectl shows it. */

#define SEGMENTS_SIZE ((size_t)AS_KUBE_STATE_SLOTS_MAX * 32)

static struct as_kube_config_item make_number(const char *key, uint64_t number,
                                              struct as_arena *arena)
{
    char text[AS_NUMBER_SIZE];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return (struct as_kube_config_item){key, as_arena_strdup(arena, text), strlen(text)};
}

static struct as_kube_config_item head_make_text(const char *key, const char *text)
{
    return (struct as_kube_config_item){key, text, strlen(text)};
}

void as_kube_state_head_encode(const struct as_kube_state_head *head, struct as_arena *arena,
                               struct as_kube_config_item items_out[AS_KUBE_STATE_HEAD_ITEMS])
{
    char *segments = as_arena_alloc(arena, SEGMENTS_SIZE, 1);
    size_t size = 0;
    for (size_t i = 0; i < head->segment_count; i++)
        size += (size_t)snprintf(segments + size, SEGMENTS_SIZE - size, "%s%" PRIu32 ":%" PRIu64,
                                 i ? " " : "", head->segments[i].slot, head->segments[i].serial);
    const struct as_kube_config_item items[AS_KUBE_STATE_HEAD_ITEMS] = {
        make_number("epoch", head->epoch, arena),
        make_number("format", AS_KUBE_STATE_FORMAT, arena),
        head_make_text("holder", head->holder),
        {"journal", head->journal ? head->journal : "", head->journal_size},
        {"segments", segments, size},
        make_number("sequence", head->sequence, arena),
        make_number("serial", head->serial, arena),
        head_make_text("write", head->write),
    };
    memcpy(items_out, items, sizeof(items));
}

int as_kube_state_get_number(const struct as_kube_config_map *map, const char *key,
                             uint64_t *number_out, struct as_error *error)
{
    const struct as_kube_config_item *item = as_kube_config_map_find(map, key);
    int64_t number;
    if (!item || as_number_parse_i64(item->text, item->size, &number) < 0 || number < 0) {
        as_error_set(error, "data.%s: expected a number", key);
        return -EBADMSG;
    }
    *number_out = (uint64_t)number;
    return 0;
}

static int head_get_text(const struct as_kube_config_map *map, const char *key, char *text_out,
                         size_t size, struct as_error *error)
{
    const struct as_kube_config_item *item = as_kube_config_map_find(map, key);
    if (!item || item->size >= size) {
        as_error_set(error, "data.%s: %s", key, item ? "too long" : "missing");
        return -EBADMSG;
    }
    memcpy(text_out, item->text, item->size);
    text_out[item->size] = '\0';
    return 0;
}

/* "3:17": its length, 0 if it is no segment. */
static size_t parse_segment(const char *text, const char *end,
                            struct as_kube_state_segment *segment_out)
{
    const char *stop = memchr(text, ' ', (size_t)(end - text));
    int64_t slot, serial;
    if (!stop)
        stop = end;
    const char *colon = memchr(text, ':', (size_t)(stop - text));
    if (!colon || as_number_parse_i64(text, (size_t)(colon - text), &slot) < 0 ||
        as_number_parse_i64(colon + 1, (size_t)(stop - colon - 1), &serial) < 0 || slot < 0 ||
        slot >= AS_KUBE_STATE_SLOTS_MAX || serial < 0)
        return 0;
    *segment_out = (struct as_kube_state_segment){(uint32_t)slot, (uint64_t)serial};
    return (size_t)(stop - text);
}

static int get_segments(const struct as_kube_config_map *map, struct as_kube_state_head *head,
                        struct as_error *error)
{
    const struct as_kube_config_item *item = as_kube_config_map_find(map, "segments");
    const char *at = item ? item->text : NULL, *end = item ? at + item->size : NULL;
    bool used[AS_KUBE_STATE_SLOTS_MAX] = {false};
    size_t count = 0;
    bool is_good = item;
    while (is_good && at < end) {
        struct as_kube_state_segment segment;
        size_t size = parse_segment(at, end, &segment);
        is_good = size > 0 && count < AS_KUBE_STATE_SLOTS_MAX && !used[segment.slot] &&
                  segment.serial <= head->serial &&
                  (count == 0 || segment.serial > head->segments[count - 1].serial);
        if (!is_good)
            break;
        used[segment.slot] = true;
        head->segments[count++] = segment;
        at += size;
        if (at < end)
            at++;
    }
    if (!is_good) {
        as_error_set(error, "data.segments: expected a list of slots and serial numbers");
        return -EBADMSG;
    }
    head->segment_count = count;
    return 0;
}

int as_kube_state_head_decode(const struct as_kube_config_map *map,
                              struct as_kube_state_head *head_out, struct as_error *error)
{
    struct as_kube_state_head head = {0};
    uint64_t format;
    int status = as_kube_state_get_number(map, "format", &format, error);
    if (!status && format > AS_KUBE_STATE_FORMAT) {
        as_error_set(error,
                     "it is from a newer alertscaler (format %" PRIu64
                     ", this one knows %d): use that version",
                     format, AS_KUBE_STATE_FORMAT);
        return -EPROTO;
    }
    if (!status && format < AS_KUBE_STATE_FORMAT) {
        as_error_set(error,
                     "it is from an older alertscaler (format %" PRIu64
                     ", this one reads format %d): delete the ConfigMaps with the label "
                     "app.kubernetes.io/component=state to start without the open incidents, locks "
                     "and pauses in them",
                     format, AS_KUBE_STATE_FORMAT);
        return -EPROTO;
    }
    if (status || (status = as_kube_state_get_number(map, "epoch", &head.epoch, error)) ||
        (status = as_kube_state_get_number(map, "sequence", &head.sequence, error)) ||
        (status = as_kube_state_get_number(map, "serial", &head.serial, error)) ||
        (status = head_get_text(map, "holder", head.holder, sizeof(head.holder), error)) ||
        (status = head_get_text(map, "write", head.write, sizeof(head.write), error)) ||
        (status = get_segments(map, &head, error)))
        return status;
    const struct as_kube_config_item *journal = as_kube_config_map_find(map, "journal");
    if (!journal) {
        as_error_set(error, "data.journal: missing");
        return -EBADMSG;
    }
    head.journal = journal->text;
    head.journal_size = journal->size;
    *head_out = head;
    return 0;
}
