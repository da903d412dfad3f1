/*
 * Taking the state over: reads all objects, applies the journal to the shards, and writes the head
 * under our name. If the head has changed since it was read, somebody else was at work: everything
 * is read again, a few times at most.
 *
 * A state whose parts do not fit together is refused whole: a partial state is worse than none.
 */
#include "kube_store_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

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

static void begin(void *context)
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

static void deinit(struct opening *opening)
{
    for (size_t i = 0; i < AS_KUBE_STATE_SLOTS_MAX; i++)
        as_buf_deinit(&opening->segments[i].text);
    as_buf_deinit(&opening->tail);
}

static int take_head(struct opening *opening, const struct as_kube_config_map *map,
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
static int take_segment(struct opening *opening, uint32_t slot,
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

static int take_shard(struct opening *opening, uint32_t number,
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

static bool parse_number(const char *text, uint32_t limit, uint32_t *number_out)
{
    int64_t number;
    if (as_number_parse_i64(text, strlen(text), &number) < 0 || number < 0 || number >= limit)
        return false;
    *number_out = (uint32_t)number;
    return true;
}

/* Takes an object by its name; with our labels but another name it is not ours. */
static int take_object(void *context, const struct as_kube_config_map *map, struct as_error *error)
{
    struct opening *opening = context;
    uint32_t number;
    int status = 0;
    if (strcmp(map->name, AS_STORE_KUBERNETES_HEAD) == 0) {
        status = take_head(opening, map, error);
    } else if (as_str_starts_with(map->name, SLOT_PREFIX) &&
               parse_number(map->name + strlen(SLOT_PREFIX), AS_KUBE_STATE_SLOTS_MAX, &number)) {
        opening->has_parts = true;
        status = take_segment(opening, number, map, error);
    } else if (as_str_starts_with(map->name, PREFIX) &&
               parse_number(map->name + strlen(PREFIX), AS_KUBE_STATE_SHARDS_MAX, &number)) {
        opening->has_parts = true;
        status = take_shard(opening, number, map, error);
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

static int replay(struct opening *opening, struct as_error *error)
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

/* One try: 0, -ESTALE if the head was written meanwhile, or another error. */
static int try_to_take_over(struct opening *opening, struct as_error *error)
{
    struct kube_store *store = opening->store;
    const struct kube_reader reader = {begin, take_object, opening};
    int status = kube_link_read(&store->link, &reader, error);
    if (status)
        return status;
    if (!opening->has_head && opening->has_parts) {
        as_error_set(error, "configmap %s is missing", AS_STORE_KUBERNETES_HEAD);
        return -EBADMSG;
    }
    if (opening->has_head && (status = replay(opening, error)))
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

int kube_store_take_over(struct kube_store *store, struct as_error *error)
{
    struct opening opening = {.store = store};
    int status = -ESTALE;
    for (int i = 0; status == -ESTALE && i < ATTEMPTS_MAX; i++)
        status = try_to_take_over(&opening, error);
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
    deinit(&opening);
    return status;
}
