/*
 * The store in an API server: see the header. This file writes commits and updates shards;
 * kube_open.c takes the state over, kube_link.c makes writes certain, kube_table.c knows the place
 * of each piece.
 *
 * Invariants. `head` and `tail` are what the head object contains. A shard that is not dirty holds
 * what the table has for it; a dirty shard lacks only the journal from its dirty_from on. So a
 * segment is released only when no dirty shard needs it, and its object is written again only after
 * a head that does not name it. Only committed values are written to shards.
 */
#include <alertscaler/kube/kube_store.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#include "kube_store_private.h"

#define COMMIT_MAX       (AS_STORE_KUBE_SEGMENT_MAX * AS_KUBE_STATE_SLOTS_MAX)
#define RETRY_TIDY_US    (10 * AS_US_PER_S)
#define CHANGE_TEXT_SIZE 256 /* of a change beyond its key and value */
#define NAME_SIZE        64

int kube_store_write_head(struct kube_store *store, const struct as_kube_state_head *head,
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

/* Segments */

static bool is_used(const struct as_kube_state_head *head, uint32_t slot)
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
    while (slot < AS_KUBE_STATE_SLOTS_MAX && (is_used(&store->head, slot) || is_used(next, slot)))
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
static void release(const struct kube_store *store, struct as_kube_state_head *next)
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
static int fold(struct kube_store *store, struct as_error *error)
{
    struct as_kube_state_head next = store->head;
    struct kube_shard *shard;
    while ((shard = kube_table_find_oldest(&store->table)) != NULL) {
        int status = write_shard(store, shard, false, error);
        if (status)
            return status;
    }
    release(store, &next);
    int status = kube_store_write_head(store, &next, error);
    if (status == 0)
        as_buf_clear(&store->tail);
    return status;
}

static void kube_tidy(struct as_store *self)
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
static int make_room(struct kube_store *store, const struct as_store_change *changes, size_t count,
                     struct as_error *error)
{
    size_t size = store->tail.size;
    for (size_t i = 0; i < count; i++)
        size += CHANGE_TEXT_SIZE + 2 * (changes[i].key_size + changes[i].value_size);
    if (store->head.segment_count + size / AS_STORE_KUBE_SEGMENT_MAX + 2 <= AS_KUBE_STATE_SLOTS_MAX)
        return 0;
    return store->head.segment_count > 0 ? fold(store, error) : 0;
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
    release(store, &next);
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

static int kube_commit(struct as_store *self, const struct as_store_change *changes, size_t count,
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
    int status = make_room(store, changes, count, error);
    if (status == 0)
        status = print_commit(store, changes, count, &text, error);
    if (status == 0)
        status = write_commit(store, &text, error);
    store->failed = status;
    return status;
}

static int kube_visit(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                      void *context, struct as_error *error)
{
    struct kube_store *store = (struct kube_store *)self;
    return kube_table_visit(&store->table, kind, visit, context);
}

static void kube_close(struct as_store *self)
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
                                    .commit = kube_commit,
                                    .visit = kube_visit,
                                    .tidy = kube_tidy,
                                    .close = kube_close};
    store->config = *config;
    store->config.namespace_ = as_xstrdup(config->namespace_);
    store->config.holder = as_xstrdup(config->holder);
    store->tail = AS_BUF_INIT(AS_STORE_KUBE_OBJECT_MAX);
    store->tidy_at.us = INT64_MIN;
    kube_link_init(&store->link, &store->config);
    kube_table_init(&store->table);
    int status = kube_store_take_over(store, error);
    if (status) {
        kube_close(&store->port);
        return status;
    }
    *store_out = &store->port;
    return 0;
}
