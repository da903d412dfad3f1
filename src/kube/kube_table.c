/*
 * The state in memory: see the header. While the state is being read, pieces belong to no record;
 * each piece has a record of its own, which holds its key.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "kube_state.h"

#define TEXT_MAX  ((size_t)1024 * 1024)
#define VALUE_MAX ((size_t)1024 * 1024 * 1024)

_Static_assert(AS_KUBE_STATE_KINDS == AS_STORE_KIND_COUNT, "every kind has a word");

static int table_compare(const struct kube_record *a, const struct kube_record *b)
{
    size_t shorter = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = (a->kind > b->kind) - (a->kind < b->kind);
    if (order == 0)
        order = memcmp(a->key, b->key, shorter);
    return order ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

RB_GENERATE_INTERNAL(kube_records, kube_record, link, table_compare, __attribute__((unused)) static)

void kube_table_init(struct kube_table *table)
{
    *table = (struct kube_table){.text = AS_BUF_INIT(TEXT_MAX)};
    RB_INIT(&table->records);
}

static void free_piece(struct kube_table *table, struct kube_piece *piece)
{
    assert(table->by_id); /* it is in there */
    HASH_DEL(table->by_id, piece);
    TAILQ_REMOVE(&piece->shard->pieces, piece, in_shard);
    piece->shard->size -= piece->text_size;
    piece->shard->piece_count--;
    free(piece->value);
    free(piece);
}

static void free_record(struct kube_table *table, struct kube_record *record)
{
    RB_REMOVE(kube_records, &table->records, record);
    free(record->pieces);
    free(record);
}

void kube_table_deinit(struct kube_table *table)
{
    struct kube_record *record;
    while ((record = RB_MIN(kube_records, &table->records)) != NULL)
        free_record(table, record);
    for (size_t i = 0; i < table->shard_count; i++) {
        struct kube_piece *piece;
        while ((piece = TAILQ_FIRST(&table->shards[i]->pieces)) != NULL)
            free_piece(table, piece);
        free(table->shards[i]);
    }
    free(table->shards);
    as_buf_deinit(&table->text);
    kube_table_init(table);
}

struct kube_shard *kube_table_get_shard(struct kube_table *table, uint32_t number)
{
    if (number >= table->shard_count) {
        table->shards =
            as_xrealloc_array(table->shards, number + (size_t)1, sizeof(struct kube_shard *));
        for (; table->shard_count <= number; table->shard_count++) {
            struct kube_shard *shard = as_xcalloc(1, sizeof(*shard));
            shard->number = (uint32_t)table->shard_count;
            TAILQ_INIT(&shard->pieces);
            table->shards[table->shard_count] = shard;
        }
    }
    return table->shards[number];
}

void kube_table_mark(struct kube_shard *shard, uint64_t serial)
{
    if (!shard->is_dirty)
        shard->dirty_from = serial;
    shard->is_dirty = true;
}

struct kube_shard *kube_table_find_oldest(const struct kube_table *table)
{
    struct kube_shard *oldest = NULL;
    for (size_t i = 0; i < table->shard_count; i++) {
        struct kube_shard *shard = table->shards[i];
        if (shard->is_dirty && (!oldest || shard->dirty_from < oldest->dirty_from))
            oldest = shard;
    }
    return oldest;
}

/* Finds or makes the record of that key, with room for `count` pieces. */
static struct kube_record *find_record(struct kube_table *table, unsigned kind, const char *key,
                                       size_t key_size, struct kube_record **made_out)
{
    struct kube_record *record = as_xcalloc(1, sizeof(*record) + key_size);
    record->kind = kind;
    record->key_size = key_size;
    if (key_size)
        memcpy(record->key, key, key_size);
    struct kube_record *found = RB_FIND(kube_records, &table->records, record);
    if (found || !made_out) {
        free(record);
        return found;
    }
    *made_out = record;
    RB_INSERT(kube_records, &table->records, record);
    return record;
}

static struct kube_record *get_record(struct kube_table *table, unsigned kind, const char *key,
                                      size_t key_size)
{
    struct kube_record *made;
    return find_record(table, kind, key, key_size, &made);
}

static struct kube_piece *add_piece(struct kube_table *table, struct kube_record *record,
                                    uint64_t id)
{
    struct kube_piece *piece = as_xcalloc(1, sizeof(*piece));
    piece->id = id;
    piece->record = record;
    HASH_ADD(hh, table->by_id, id, sizeof(piece->id), piece);
    if (id > table->last_id)
        table->last_id = id;
    return piece;
}

static void put_into(struct kube_piece *piece, struct kube_shard *shard, size_t text_size)
{
    if (piece->shard) {
        TAILQ_REMOVE(&piece->shard->pieces, piece, in_shard);
        piece->shard->size -= piece->text_size;
        piece->shard->piece_count--;
    }
    piece->shard = shard;
    piece->text_size = text_size;
    TAILQ_INSERT_TAIL(&shard->pieces, piece, in_shard);
    shard->size += text_size;
    shard->piece_count++;
}

static void set_value(struct kube_piece *piece, const char *value, size_t size)
{
    free(piece->value);
    piece->value = as_xmalloc(size + 1);
    if (size)
        memcpy(piece->value, value, size);
    piece->size = size;
}

/* Opening */

void kube_table_load(struct kube_table *table, const struct as_kube_state_piece *from,
                     size_t text_size)
{
    struct kube_record *record = get_record(table, from->kind, from->key, from->key_size);
    char name[AS_KUBE_STATE_NAME_SIZE];
    struct kube_piece *piece;
    HASH_FIND(hh, table->by_id, &from->id, sizeof(from->id), piece);
    if (!piece)
        piece = add_piece(table, record, from->id);
    as_kube_state_print_name(from->kind, from->id, name);
    piece->record = record;
    piece->index = from->index;
    piece->count = from->count;
    set_value(piece, from->value, from->value_size);
    put_into(piece, kube_table_get_shard(table, from->shard), text_size + strlen(name));
}

void kube_table_unload(struct kube_table *table, uint64_t id)
{
    struct kube_piece *piece;
    HASH_FIND(hh, table->by_id, &id, sizeof(id), piece);
    if (piece)
        free_piece(table, piece);
    if (id > table->last_id)
        table->last_id = id; /* an id in the journal must not be given again */
}

static int fail_record(const struct kube_record *record, struct as_error *error)
{
    char key[64];
    AS_CLEANUP(as_free_p) char *text = as_xstrndup(record->key, record->key_size);
    as_str_copy_line(text, key, sizeof(key));
    as_error_set(error, "the record %s is not whole: its objects do not belong together", key);
    return -EBADMSG;
}

/* Puts the piece into its place in its record's list. */
static int attach(struct kube_piece *piece, struct as_error *error)
{
    struct kube_record *record = piece->record;
    if (record->count == 0) {
        record->count = piece->count;
        record->pieces = as_xcalloc(piece->count, sizeof(*record->pieces));
    }
    if (piece->count != record->count || record->pieces[piece->index])
        return fail_record(record, error);
    record->pieces[piece->index] = piece;
    return 0;
}

int kube_table_finish(struct kube_table *table, struct as_error *error)
{
    struct kube_record *record, *next;
    struct kube_piece *piece, *later;
    HASH_ITER (hh, table->by_id, piece, later) {
        int status = attach(piece, error);
        if (status)
            return status;
    }
    RB_FOREACH_SAFE (record, kube_records, &table->records, next) {
        if (record->count == 0) {
            free_record(table, record); /* all its pieces were dropped */
            continue;
        }
        for (uint32_t i = 0; i < record->count; i++)
            if (!record->pieces[i])
                return fail_record(record, error);
    }
    return 0;
}

/* Changes */

static bool table_has_room(const struct kube_shard *shard, size_t size)
{
    return shard->size + size <= AS_STORE_KUBE_SHARD_FILL || shard->piece_count == 0;
}

/* A shard for a new piece: one that must be written anyway, else any with room, else a new one. */
static struct kube_shard *choose_shard(struct kube_table *table, size_t size)
{
    struct kube_shard *any = NULL;
    for (size_t i = 0; i < table->shard_count; i++) {
        struct kube_shard *shard = table->shards[i];
        if (!table_has_room(shard, size))
            continue;
        if (shard->is_dirty)
            return shard;
        if (!any)
            any = shard;
    }
    if (any || table->shard_count == AS_KUBE_STATE_SHARDS_MAX)
        return any;
    return kube_table_get_shard(table, (uint32_t)table->shard_count);
}

static void drop_piece(struct kube_table *table, struct kube_piece *piece, uint64_t serial,
                       struct as_buf *journal, size_t *count_io)
{
    as_kube_state_print_drop(piece->record->kind, piece->id, piece->shard->number, journal);
    kube_table_mark(piece->shard, serial);
    free_piece(table, piece);
    ++*count_io;
}

static struct as_kube_state_piece table_describe(const struct kube_piece *piece)
{
    const struct kube_record *record = piece->record;
    return (struct as_kube_state_piece){
        .kind = record->kind,
        .id = piece->id,
        .shard = piece->shard ? piece->shard->number : 0,
        .index = piece->index,
        .count = piece->count,
        .key = record->key,
        .key_size = record->key_size,
        .value = piece->value,
        .value_size = piece->size,
    };
}

struct job { /* one change that is being applied */
    struct kube_table *table;
    struct kube_record *record;
    uint64_t serial;
    struct as_buf *journal;
    size_t *count_io;
    struct as_error *error;
};

/* The shard for a piece with a new value: its present one if it fits there. */
static struct kube_shard *choose_place(const struct job *job, struct kube_piece **piece_io,
                                       size_t text_size)
{
    struct kube_piece *piece = *piece_io;
    if (piece->shard &&
        piece->shard->size - piece->text_size + text_size <= AS_STORE_KUBE_OBJECT_MAX)
        return piece->shard;
    struct kube_shard *shard = choose_shard(job->table, text_size);
    if (!shard || !piece->shard)
        return shard;
    /* in another shard, under another name */
    struct kube_piece *moved = add_piece(job->table, piece->record, job->table->last_id + 1);
    moved->index = piece->index;
    moved->count = piece->count;
    moved->value = piece->value;
    moved->size = piece->size;
    piece->value = NULL;
    drop_piece(job->table, piece, job->serial, job->journal, job->count_io);
    *piece_io = moved;
    return shard;
}

static int put_piece(const struct job *job, uint32_t index, uint32_t count, const char *value,
                     size_t size)
{
    struct kube_table *table = job->table;
    struct kube_piece *piece = job->record->pieces[index];
    char name[AS_KUBE_STATE_NAME_SIZE];
    if (!piece)
        piece = add_piece(table, job->record, table->last_id + 1);
    piece->index = index;
    piece->count = count;
    set_value(piece, value, size);
    struct as_kube_state_piece text = table_describe(piece);
    as_buf_clear(&table->text);
    as_kube_state_print_record(&text, &table->text);
    as_kube_state_print_name(text.kind, UINT64_MAX / 2, name); /* the longest name */
    size_t text_size = table->text.size + strlen(name);
    if (as_buf_check(&table->text) < 0 || text_size > AS_STORE_KUBE_OBJECT_MAX) {
        as_error_set(job->error, "a key of %zu bytes is too long", job->record->key_size);
        return -EMSGSIZE;
    }
    struct kube_shard *shard = choose_place(job, &piece, text_size);
    if (!shard) {
        as_error_set(job->error, "it is full: %d objects", AS_KUBE_STATE_SHARDS_MAX);
        return -ENOSPC;
    }
    job->record->pieces[index] = piece;
    put_into(piece, shard, text_size);
    kube_table_mark(shard, job->serial);
    text = table_describe(piece);
    as_kube_state_print_put(&text, table->text.data, table->text.size, job->journal);
    ++*job->count_io;
    return 0;
}

/* Sets the length of the record's list to `count`; drops surplus pieces. */
static void table_resize(const struct job *job, uint32_t count)
{
    struct kube_record *record = job->record;
    for (uint32_t i = count; i < record->count; i++)
        drop_piece(job->table, record->pieces[i], job->serial, job->journal, job->count_io);
    if (count != record->count) {
        struct kube_piece **pieces = as_xcalloc((size_t)count + 1, sizeof(*pieces));
        uint32_t kept = count < record->count ? count : record->count;
        if (kept)
            memcpy(pieces, record->pieces, kept * sizeof(struct kube_piece *));
        free(record->pieces);
        record->pieces = pieces;
        record->count = count;
    }
}

/* How much of the value goes into one piece; does not cut a character. */
static size_t table_cut(const char *value, size_t size)
{
    if (size <= AS_STORE_KUBE_PIECE_MAX)
        return size;
    size_t at = as_str_cut_utf8(value, size, AS_STORE_KUBE_PIECE_MAX);
    return at ? at : AS_STORE_KUBE_PIECE_MAX;
}

static int table_put(const struct job *job, const char *value, size_t size)
{
    size_t count = 0, at = 0;
    do {
        at += table_cut(value + at, size - at);
        count++;
    } while (at < size);
    table_resize(job, (uint32_t)count);
    at = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t part = table_cut(value + at, size - at);
        int status = put_piece(job, i, (uint32_t)count, value + at, part);
        if (status)
            return status;
        at += part;
    }
    return 0;
}

int kube_table_change(struct kube_table *table, const struct as_store_change *change,
                      uint64_t serial, struct as_buf *journal, size_t *count_io,
                      struct as_error *error)
{
    struct kube_record *record =
        change->value ? get_record(table, change->kind, change->key, change->key_size)
                      : find_record(table, change->kind, change->key, change->key_size, NULL);
    const struct job job = {table, record, serial, journal, count_io, error};
    if (change->value && change->value_size > VALUE_MAX) {
        as_error_set(error, "a value of %zu bytes is too large", change->value_size);
        return -EMSGSIZE;
    }
    assert(record || !change->value); /* a change with a value has made it */
    if (change->value)
        return table_put(&job, change->value, change->value_size);
    if (record) {
        table_resize(&job, 0);
        free_record(table, record);
    }
    return 0;
}

/* Out of it */

struct as_kube_config_item *kube_table_print_shard(const struct kube_shard *shard,
                                                   struct as_arena *arena, size_t extra,
                                                   size_t *count_out)
{
    struct as_kube_config_item *items =
        as_arena_alloc(arena, shard->piece_count + extra, sizeof(*items));
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(TEXT_MAX);
    const struct kube_piece *piece;
    size_t count = 0;
    TAILQ_FOREACH (piece, &shard->pieces, in_shard) {
        struct as_kube_state_piece from = table_describe(piece);
        char name[AS_KUBE_STATE_NAME_SIZE];
        as_buf_clear(&text);
        as_kube_state_print_record(&from, &text);
        as_kube_state_print_name(from.kind, from.id, name);
        char *copy = as_arena_alloc_raw(arena, text.size + 1);
        memcpy(copy, text.data, text.size + 1);
        items[count++] =
            (struct as_kube_config_item){as_arena_strdup(arena, name), copy, text.size};
    }
    *count_out = count;
    return items;
}

static int visit_record(const struct kube_record *record, struct as_buf *whole,
                        as_store_visit_fn *visit, void *context)
{
    const struct kube_piece *first = record->pieces[0];
    if (record->count == 1)
        return visit(context, record->key, record->key_size, first->value, first->size);
    as_buf_clear(whole);
    for (uint32_t i = 0; i < record->count; i++)
        as_buf_append(whole, record->pieces[i]->value, record->pieces[i]->size);
    int status = as_buf_check(whole);
    return status ? status
                  : visit(context, record->key, record->key_size, whole->data, whole->size);
}

int kube_table_visit(struct kube_table *table, enum as_store_kind kind, as_store_visit_fn *visit,
                     void *context)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf whole = AS_BUF_INIT(VALUE_MAX);
    struct kube_record *record;
    int status = 0;
    RB_FOREACH (record, kube_records, &table->records) {
        if (record->kind == (unsigned)kind)
            status = visit_record(record, &whole, visit, context);
        if (status)
            break;
    }
    return status;
}
