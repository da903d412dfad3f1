/*
 * State store in an API server: the journal and the shards behind as_store_kubernetes_open. It
 * takes the state over, writes commits and updates shards. kube_link.c makes writes certain;
 * kube_table.c knows the place of each piece.
 *
 * Invariants. `head` and `tail` are what the head object contains. A shard that is not dirty
 * holds what the table has for it; a dirty shard lacks only the journal from its dirty_from on.
 * So a segment is released only when no dirty shard needs it, and its object is written again
 * only after a head that does not name it. Only committed values are written to shards.
 */
#include <alertscaler/kube/kube_store.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/port/store.h>

#include "kube_link.h"
#include "kube_table.h"
#include "store_limits.h"

struct kube_store {
    struct as_store port;
    struct as_store_kubernetes_config config;
    struct kube_link link;
    struct kube_table table;
    struct as_kube_state_head head; /* as last written; its journal is `tail` */
    struct as_buf tail;
    struct {
        char version[AS_KUBE_VERSION_SIZE]; /* "": the object does not exist yet */
    } slots[AS_KUBE_STATE_SLOTS_MAX];
    int failed; /* 0, or the negative errno of the failed commit */
    bool cannot_tidy;
    as_mono_time tidy_at; /* after a failure: not before */
};

/* Reads the whole state and takes it over. */

/*
 * Take-over: reads all objects, applies the journal to the shards, and writes the head under our
 * name. If the head has changed since it was read, another holder has written it: all objects
 * are read again, at most ATTEMPTS_MAX times.
 *
 * A state whose parts do not fit together is refused whole: a partial state is worse than no
 * state.
 */

#define ATTEMPTS_MAX 5
#define JOURNAL_MAX  (AS_STORE_KUBE_SEGMENT_MAX * AS_KUBE_STATE_SLOTS_MAX + AS_STORE_KUBE_OBJECT_MAX)
#define PREFIX       AS_STORE_KUBERNETES_HEAD "-"
#define SLOT_PREFIX  PREFIX "journal-"

struct segment {
    uint64_t serial;
    struct as_buf text;
};

struct opening {
    struct kube_store *store;
    bool has_head, has_parts;
    struct as_kube_state_head head;
    struct as_buf tail;
    struct segment segments[AS_KUBE_STATE_SLOTS_MAX];
    uint64_t shard_sequence; /* the newest in a shard */
    /* while the journal is applied: */
    uint64_t dirty_from, last_sequence;
    bool has_commits, has_gap;
};

static void opening_begin(void *context)
{
    struct opening *opening = context;
    struct kube_store *store = opening->store;
    for (size_t i = 0; i < AS_KUBE_STATE_SLOTS_MAX; i++) {
        as_buf_deinit(&opening->segments[i].text);
        store->slots[i].version[0] = '\0';
    }
    as_buf_deinit(&opening->tail);
    kube_table_deinit(&store->table);
    store->link.head_version[0] = '\0';
    store->link.head_write[0] = '\0';
    *opening = (struct opening){.store = store, .tail = AS_BUF_INIT(AS_STORE_KUBE_RESPONSE_MAX)};
    for (size_t i = 0; i < AS_KUBE_STATE_SLOTS_MAX; i++)
        opening->segments[i].text = AS_BUF_INIT(AS_STORE_KUBE_RESPONSE_MAX);
}

static void opening_deinit(struct opening *opening)
{
    for (size_t i = 0; i < AS_KUBE_STATE_SLOTS_MAX; i++)
        as_buf_deinit(&opening->segments[i].text);
    as_buf_deinit(&opening->tail);
}

static int load_head(struct opening *opening, const struct as_kube_config_map *map,
                     struct as_error *error)
{
    struct kube_link *link = &opening->store->link;
    int status = as_kube_state_head_decode(map, &opening->head, error);
    if (status)
        return status;
    as_buf_append(&opening->tail, opening->head.journal, opening->head.journal_size);
    opening->head.journal = NULL;
    opening->has_head = true;
    memcpy(link->head_version, map->version, strlen(map->version) + 1);
    memcpy(link->head_write, opening->head.write, sizeof(opening->head.write));
    return as_buf_check(&opening->tail);
}

/* Also segments that no head names: their version is needed. */
static int load_segment(struct opening *opening, uint32_t slot,
                        const struct as_kube_config_map *map, struct as_error *error)
{
    struct segment *segment = &opening->segments[slot];
    const struct as_kube_config_item *text = as_kube_config_map_find(map, "journal");
    int status = as_kube_state_get_number(map, "serial", &segment->serial, error);
    if (status)
        return status;
    memcpy(opening->store->slots[slot].version, map->version, strlen(map->version) + 1);
    as_buf_append_str(&segment->text, "");
    if (text)
        as_buf_append(&segment->text, text->text, text->size);
    return as_buf_check(&segment->text);
}

static int load_shard(struct opening *opening, uint32_t number,
                      const struct as_kube_config_map *map, struct as_error *error)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    struct kube_table *table = &opening->store->table;
    struct kube_shard *shard = kube_table_get_shard(table, number);
    uint64_t sequence;
    int status = as_kube_state_get_number(map, "sequence", &sequence, error);
    if (status)
        return status;
    if (sequence > opening->shard_sequence)
        opening->shard_sequence = sequence;
    memcpy(shard->version, map->version, strlen(map->version) + 1);
    for (size_t i = 0; i < map->count; i++) {
        const struct as_kube_config_item *item = &map->items[i];
        struct as_kube_state_piece piece;
        if (strcmp(item->key, "sequence") == 0 || strcmp(item->key, "write") == 0)
            continue;
        status = as_kube_state_parse_record(item->key, strlen(item->key), item->text, item->size,
                                            &arena, &piece, error);
        if (status)
            return status;
        piece.shard = number;
        kube_table_load(table, &piece, item->size);
        as_arena_reset(&arena);
    }
    return 0;
}

static bool store_parse_number(const char *text, uint32_t limit, uint32_t *number_out)
{
    int64_t number;
    if (as_number_parse_i64(text, strlen(text), &number) < 0 || number < 0 || number >= limit)
        return false;
    *number_out = (uint32_t)number;
    return true;
}

/* Takes an object by its name; with our labels but another name it is not ours. */
static int load_object(void *context, const struct as_kube_config_map *map, struct as_error *error)
{
    struct opening *opening = context;
    uint32_t number;
    int status = 0;
    if (strcmp(map->name, AS_STORE_KUBERNETES_HEAD) == 0) {
        status = load_head(opening, map, error);
    } else if (as_str_starts_with(map->name, SLOT_PREFIX) &&
               store_parse_number(map->name + strlen(SLOT_PREFIX), AS_KUBE_STATE_SLOTS_MAX,
                                  &number)) {
        opening->has_parts = true;
        status = load_segment(opening, number, map, error);
    } else if (as_str_starts_with(map->name, PREFIX) &&
               store_parse_number(map->name + strlen(PREFIX), AS_KUBE_STATE_SHARDS_MAX, &number)) {
        opening->has_parts = true;
        status = load_shard(opening, number, map, error);
    }
    if (status)
        as_error_wrap(error, "configmap %s", map->name);
    return status;
}

/* The journal */

static void replay_commit(void *context, uint64_t sequence)
{
    struct opening *opening = context;
    if (opening->has_commits && sequence != opening->last_sequence + 1)
        opening->has_gap = true;
    opening->has_commits = true;
    opening->last_sequence = sequence;
}

static void replay_put(void *context, const struct as_kube_state_piece *piece, size_t text_size)
{
    struct opening *opening = context;
    struct kube_table *table = &opening->store->table;
    kube_table_load(table, piece, text_size);
    kube_table_mark(kube_table_get_shard(table, piece->shard), opening->dirty_from);
}

static void replay_drop(void *context, uint64_t id, uint32_t shard)
{
    struct opening *opening = context;
    struct kube_table *table = &opening->store->table;
    kube_table_unload(table, id);
    kube_table_mark(kube_table_get_shard(table, shard), opening->dirty_from);
}

static int replay_journal(struct opening *opening, struct as_error *error)
{
    const struct as_kube_state_head *head = &opening->head;
    const struct as_kube_state_visitor visitor = {replay_commit, replay_put, replay_drop, opening};
    AS_CLEANUP(as_buf_deinit) struct as_buf journal = AS_BUF_INIT(JOURNAL_MAX);
    as_buf_append_str(&journal, "");
    for (size_t i = 0; i < head->segment_count; i++) {
        const struct segment *segment = &opening->segments[head->segments[i].slot];
        if (!segment->text.data || segment->serial != head->segments[i].serial) {
            as_error_set(error, "configmap " SLOT_PREFIX "%" PRIu32 " is %s",
                         head->segments[i].slot,
                         segment->text.data ? "not the one that belongs to it" : "missing");
            return -EBADMSG;
        }
        as_buf_append(&journal, segment->text.data, segment->text.size);
    }
    if (opening->tail.size)
        as_buf_append(&journal, opening->tail.data, opening->tail.size);
    int status = as_buf_check(&journal);
    opening->dirty_from = head->segment_count ? head->segments[0].serial : head->serial + 1;
    if (status == 0)
        status = as_kube_state_parse_journal(journal.data, journal.size, &visitor, error);
    if (status)
        return status;
    if (opening->has_gap || opening->shard_sequence > head->sequence ||
        (opening->has_commits && opening->last_sequence != head->sequence)) {
        as_error_set(error, "its parts do not belong together");
        return -EBADMSG;
    }
    return kube_table_finish(&opening->store->table, error);
}

/* Writes the head, with the journal in it, under a new write name; on success it becomes
 * `store->head`. The caller updates the tail. */
static int kube_store_write_head(struct kube_store *store, const struct as_kube_state_head *head,
                                 struct as_error *error)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    struct as_kube_config_item items[AS_KUBE_STATE_HEAD_ITEMS];
    struct as_kube_state_head written = *head;
    const struct kube_write write = {
        .name = AS_STORE_KUBERNETES_HEAD,
        .items = items,
        .count = AS_KUBE_STATE_HEAD_ITEMS,
        .is_head = true,
    };
    kube_link_name_write(&store->link, written.write);
    as_kube_state_head_encode(&written, &arena, items);
    int status = kube_link_write(&store->link, &write, store->link.head_version, error);
    if (status)
        return status;
    memcpy(store->link.head_write, written.write, sizeof(written.write));
    written.journal = NULL;
    written.journal_size = 0;
    store->head = written;
    return 0;
}

/* One try: 0, -ESTALE if the head was written meanwhile, or another error. */
static int try_take_over(struct opening *opening, struct as_error *error)
{
    struct kube_store *store = opening->store;
    const struct kube_reader reader = {opening_begin, load_object, opening};
    int status = kube_link_read(&store->link, &reader, error);
    if (status)
        return status;
    if (!opening->has_head && opening->has_parts) {
        as_error_set(error, "configmap %s is missing", AS_STORE_KUBERNETES_HEAD);
        return -EBADMSG;
    }
    if (opening->has_head && (status = replay_journal(opening, error)))
        return status;
    struct as_kube_state_head next = opening->head;
    next.epoch++;
    as_str_copy_line(store->config.holder, next.holder, sizeof(next.holder));
    next.journal = opening->tail.data;
    next.journal_size = opening->tail.size;
    store->head = next;
    status = kube_store_write_head(store, &next, error);
    if (status == 0 && opening->tail.size)
        as_buf_append(&store->tail, opening->tail.data, opening->tail.size);
    return status ? status : as_buf_check(&store->tail);
}

static int kube_store_take_over(struct kube_store *store, struct as_error *error)
{
    struct opening opening = {.store = store};
    int status = -ESTALE;
    for (int i = 0; status == -ESTALE && i < ATTEMPTS_MAX; i++)
        status = try_take_over(&opening, error);
    if (status == 0)
        as_log(AS_LOG_INFO, "took the state over", AS_F("namespace", store->config.namespace_),
               AS_F("before", opening.head.holder), AS_FI("epoch", store->head.epoch),
               AS_FI("sequence", store->head.sequence));
    if (status == -EBADMSG)
        as_error_wrap(error,
                      "state in namespace %s does not hold together: restore all configmaps "
                      "labelled " AS_STORE_KUBERNETES_SELECTOR
                      " from one backup, or delete all of them to start without the open incidents "
                      "and locks in them",
                      store->config.namespace_);
    opening_deinit(&opening);
    return status;
}

/* Commits, segments and shards. */

#define COMMIT_MAX       (AS_STORE_KUBE_SEGMENT_MAX * AS_KUBE_STATE_SLOTS_MAX)
#define RETRY_TIDY_US    (10 * AS_US_PER_S)
#define CHANGE_TEXT_SIZE 256 /* of a change beyond its key and value */
#define NAME_SIZE        64

/* Segments */

static bool store_is_used(const struct as_kube_state_head *head, uint32_t slot)
{
    for (size_t i = 0; i < head->segment_count; i++)
        if (head->segments[i].slot == slot)
            return true;
    return false;
}

static int write_segment(struct kube_store *store, struct as_kube_state_head *next,
                         const char *text, size_t size, struct as_error *error)
{
    char name[NAME_SIZE], serial[24], write_name[AS_KUBE_STATE_WRITE_SIZE];
    uint32_t slot = 0;
    while (slot < AS_KUBE_STATE_SLOTS_MAX &&
           (store_is_used(&store->head, slot) || store_is_used(next, slot)))
        slot++;
    if (slot == AS_KUBE_STATE_SLOTS_MAX) {
        as_error_set(error, "a change of more than %zu MiB at once", COMMIT_MAX >> 20);
        return -EMSGSIZE;
    }
    snprintf(name, sizeof(name), AS_STORE_KUBERNETES_HEAD "-journal-%" PRIu32, slot);
    snprintf(serial, sizeof(serial), "%" PRIu64, ++next->serial);
    kube_link_name_write(&store->link, write_name);
    const struct as_kube_config_item items[] = {
        {"journal", text, size},
        {"serial", serial, strlen(serial)},
        {"write", write_name, strlen(write_name)},
    };
    const struct kube_write write = {.name = name, .items = items, .count = AS_ARRAY_SIZE(items)};
    int status = kube_link_write(&store->link, &write, store->slots[slot].version, error);
    if (status == 0)
        next->segments[next->segment_count++] = (struct as_kube_state_segment){slot, next->serial};
    return status;
}

/* Cuts the text between characters, because each object holds a text. */
static int write_segments(struct kube_store *store, struct as_kube_state_head *next,
                          const struct as_buf *text, struct as_error *error)
{
    int status = 0;
    for (size_t at = 0; status == 0 && at < text->size;) {
        size_t size = as_str_cut_utf8(text->data + at, text->size - at, AS_STORE_KUBE_SEGMENT_MAX);
        status = write_segment(store, next, text->data + at, size, error);
        at += size;
    }
    return status;
}

/* Shards */

static int write_shard(struct kube_store *store, struct kube_shard *shard, bool tries_once,
                       struct as_error *error)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    char name[NAME_SIZE], sequence[24], write_name[AS_KUBE_STATE_WRITE_SIZE];
    size_t count;
    struct as_kube_config_item *items = kube_table_print_shard(shard, &arena, 2, &count);
    snprintf(name, sizeof(name), AS_STORE_KUBERNETES_HEAD "-%" PRIu32, shard->number);
    snprintf(sequence, sizeof(sequence), "%" PRIu64, store->head.sequence);
    kube_link_name_write(&store->link, write_name);
    items[count++] = (struct as_kube_config_item){"sequence", sequence, strlen(sequence)};
    items[count++] = (struct as_kube_config_item){"write", write_name, strlen(write_name)};
    const struct kube_write write = {
        .name = name, .items = items, .count = count, .tries_once = tries_once};
    int status = 0;
    if (shard->piece_count > 0 || shard->version[0])
        status = kube_link_write(&store->link, &write, shard->version, error);
    if (status == 0)
        shard->is_dirty = false;
    return status;
}

/* Releases the segments that a head need not name any more. */
static void release_segments(const struct kube_store *store, struct as_kube_state_head *next)
{
    const struct kube_shard *oldest = kube_table_find_oldest(&store->table);
    size_t done = 0;
    while (done < next->segment_count &&
           (!oldest || next->segments[done].serial < oldest->dirty_from))
        done++;
    next->segment_count -= done;
    memmove(next->segments, next->segments + done, next->segment_count * sizeof(*next->segments));
}

/* Writes all dirty shards and empties the journal. */
static int fold_journal(struct kube_store *store, struct as_error *error)
{
    struct as_kube_state_head next = store->head;
    struct kube_shard *shard;
    while ((shard = kube_table_find_oldest(&store->table)) != NULL) {
        int status = write_shard(store, shard, false, error);
        if (status)
            return status;
    }
    release_segments(store, &next);
    int status = kube_store_write_head(store, &next, error);
    if (status == 0)
        as_buf_clear(&store->tail);
    return status;
}

static void store_tidy(struct as_store *self)
{
    struct kube_store *store = (struct kube_store *)self;
    const struct as_clock *clock = store->config.env->clock;
    struct as_error error = AS_ERROR_INIT;
    struct kube_shard *shard;
    int status = 0;
    if (store->failed || store->head.segment_count < AS_STORE_KUBE_TIDY_SEGMENTS ||
        clock->get_mono(clock).us < store->tidy_at.us)
        return;
    for (int i = 0; status == 0 && i < AS_STORE_KUBE_TIDY_SHARDS; i++) {
        shard = kube_table_find_oldest(&store->table);
        if (!shard || shard->dirty_from > store->head.serial)
            break; /* the next head releases all segments */
        status = write_shard(store, shard, true, &error);
    }
    if (status && !store->cannot_tidy)
        as_log(AS_LOG_WARN, "the state's journal cannot be moved into its shards",
               AS_F("error", error.text));
    if (status)
        store->tidy_at.us = clock->get_mono(clock).us + RETRY_TIDY_US;
    store->cannot_tidy = status;
}

/* Commits */

/* Makes room for the commit's segments, however it will be written, before the table changes. */
static int store_make_room(struct kube_store *store, const struct as_store_change *changes,
                           size_t count, struct as_error *error)
{
    size_t size = store->tail.size;
    for (size_t i = 0; i < count; i++)
        size += CHANGE_TEXT_SIZE + 2 * (changes[i].key_size + changes[i].value_size);
    if (store->head.segment_count + size / AS_STORE_KUBE_SEGMENT_MAX + 2 <= AS_KUBE_STATE_SLOTS_MAX)
        return 0;
    return store->head.segment_count > 0 ? fold_journal(store, error) : 0;
}

static int print_commit(struct kube_store *store, const struct as_store_change *changes,
                        size_t count, struct as_buf *text, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf lines = AS_BUF_INIT(COMMIT_MAX);
    size_t line_count = 0;
    for (size_t i = 0; i < count; i++) {
        int status = kube_table_change(&store->table, &changes[i], store->head.serial + 1, &lines,
                                       &line_count, error);
        if (status)
            return status;
    }
    as_kube_state_print_commit(store->head.sequence + 1, line_count, text);
    if (lines.size)
        as_buf_append(text, lines.data, lines.size);
    if (lines.failed || text->failed) {
        as_error_set(error, "a change of more than %zu MiB at once", COMMIT_MAX >> 20);
        return -EMSGSIZE;
    }
    return 0;
}

/* Writes the commit in one of three ways: behind the tail; or the tail into a segment and the
 * commit in its place; or both into segments. A large commit is in the head only without a tail:
 * else each of many large commits would be written twice, in the head and later in a segment. */
static int write_commit(struct kube_store *store, const struct as_buf *text, struct as_error *error)
{
    struct as_kube_state_head next = store->head;
    AS_CLEANUP(as_buf_deinit)
    struct as_buf whole = AS_BUF_INIT(COMMIT_MAX + AS_STORE_KUBE_TAIL_MAX);
    const bool fits = store->tail.size + text->size <=
                      (store->tail.size ? AS_STORE_KUBE_TAIL_FILL : AS_STORE_KUBE_TAIL_MAX);
    int status = 0;
    release_segments(store, &next);
    as_buf_append_str(&whole, "");
    if (fits || text->size > AS_STORE_KUBE_TAIL_FILL) {
        if (store->tail.size)
            as_buf_append(&whole, store->tail.data, store->tail.size);
        as_buf_append(&whole, text->data, text->size);
        if (!fits) {
            status = write_segments(store, &next, &whole, error);
            as_buf_clear(&whole);
        }
    } else {
        status = write_segments(store, &next, &store->tail, error);
        as_buf_append(&whole, text->data, text->size);
    }
    if (status == 0)
        status = as_buf_check(&whole);
    if (status)
        return status;
    next.sequence++;
    next.journal = whole.data;
    next.journal_size = whole.size;
    status = kube_store_write_head(store, &next, error);
    if (status == 0) {
        as_buf_clear(&store->tail);
        if (whole.size)
            as_buf_append(&store->tail, whole.data, whole.size);
    }
    return status;
}

static int store_commit(struct as_store *self, const struct as_store_change *changes, size_t count,
                        struct as_error *error)
{
    struct kube_store *store = (struct kube_store *)self;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(COMMIT_MAX);
    if (store->failed) {
        as_error_set_errno(error, store->failed, "state in namespace %s: failed before",
                           store->config.namespace_);
        return store->failed;
    }
    if (count == 0)
        return 0;
    int status = store_make_room(store, changes, count, error);
    if (status == 0)
        status = print_commit(store, changes, count, &text, error);
    if (status == 0)
        status = write_commit(store, &text, error);
    store->failed = status;
    return status;
}

static int store_visit(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                       void *context, struct as_error *error)
{
    struct kube_store *store = (struct kube_store *)self;
    return kube_table_visit(&store->table, kind, visit, context);
}

static void store_close(struct as_store *self)
{
    struct kube_store *store = (struct kube_store *)self;
    struct as_store_kubernetes_config config = store->config;
    kube_link_deinit(&store->link);
    kube_table_deinit(&store->table);
    as_buf_deinit(&store->tail);
    as_kube_access_free(config.access);
    free((char *)config.namespace_);
    free((char *)config.holder);
    free(store);
    if (config.closed)
        config.closed(config.context);
}

int as_store_kubernetes_open(const struct as_store_kubernetes_config *config,
                             struct as_store **store_out, struct as_error *error)
{
    struct kube_store *store = as_xcalloc(1, sizeof(*store));
    store->port = (struct as_store){.is_shared = true,
                                    .commit = store_commit,
                                    .visit = store_visit,
                                    .tidy = store_tidy,
                                    .close = store_close};
    store->config = *config;
    store->config.namespace_ = as_xstrdup(config->namespace_);
    store->config.holder = as_xstrdup(config->holder);
    store->tail = AS_BUF_INIT(AS_STORE_KUBE_OBJECT_MAX);
    store->tidy_at.us = INT64_MIN;
    kube_link_init(&store->link, &store->config);
    kube_table_init(&store->table);
    int status = kube_store_take_over(store, error);
    if (status) {
        store_close(&store->port);
        return status;
    }
    *store_out = &store->port;
    return 0;
}
