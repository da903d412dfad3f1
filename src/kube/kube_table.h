/*
 * The state in a holder's memory: all records, in the order of their keys; the pieces of each
 * record, and the shard of each piece.
 *
 * Shards are numbered from 0 and filled as needed. A piece stays in its shard, under the same name,
 * as long as it fits. So a change of one record changes one object.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_TABLE_H
#define ALERTSCALER_SRC_KUBE_KUBE_TABLE_H

#include <stdbool.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include "kube_state.h"
#include <alertscaler/base/buf.h>
#include <alertscaler/port/store.h>

struct kube_shard;

struct kube_piece {
    UT_hash_handle hh; /* by id */
    TAILQ_ENTRY(kube_piece) in_shard;
    struct kube_record *record;
    struct kube_shard *shard;
    uint64_t id;
    uint32_t index, count;
    size_t text_size; /* of name and text */
    size_t size;
    char *value; /* own memory */
};

struct kube_record {
    RB_ENTRY(kube_record) link;
    unsigned kind;
    struct kube_piece **pieces;
    uint32_t count;
    size_t key_size;
    char key[];
};

struct kube_shard {
    uint32_t number;
    char version[AS_KUBE_VERSION_SIZE]; /* "": the object does not exist yet */
    TAILQ_HEAD(, kube_piece) pieces;
    size_t piece_count, size; /* of names and texts */
    bool is_dirty;
    uint64_t dirty_from; /* serial of the oldest segment that it needs */
};

RB_HEAD(kube_records, kube_record);

struct kube_table {
    struct kube_records records;
    struct kube_piece *by_id;
    struct kube_shard **shards; /* by number */
    size_t shard_count;
    uint64_t last_id;
    struct as_buf text; /* scratch */
};

void kube_table_init(struct kube_table *table);
void kube_table_deinit(struct kube_table *table);

/* While opening: pieces in any order, a later one replaces an earlier one; then pieces are joined
 * to records. -EBADMSG if a record is incomplete. A piece whose stated place is another one is
 * moved. */
struct kube_shard *kube_table_get_shard(struct kube_table *table, uint32_t number);
void kube_table_load(struct kube_table *table, const struct as_kube_state_piece *piece,
                     size_t text_size);
void kube_table_unload(struct kube_table *table, uint64_t id);
int kube_table_finish(struct kube_table *table, struct as_error *error) AS_MUST_USE;

/*
 * Applies a change in memory and appends its journal lines to `journal`; *count_io counts the
 * commit's lines. Shards that it makes dirty are dirty from segment `serial` on. 0; -ENOSPC if
 * there are too many shards.
 */
int kube_table_change(struct kube_table *table, const struct as_store_change *change,
                      uint64_t serial, struct as_buf *journal, size_t *count_io,
                      struct as_error *error) AS_MUST_USE;

void kube_table_mark(struct kube_shard *shard, uint64_t serial);

/* The dirty shard that needs the oldest segment; NULL: no dirty shard. */
struct kube_shard *kube_table_find_oldest(const struct kube_table *table);

/* The texts of a shard's records, in the arena; *count_out: how many. */
struct as_kube_config_item *kube_table_print_shard(const struct kube_shard *shard,
                                                   struct as_arena *arena, size_t extra,
                                                   size_t *count_out) AS_MUST_USE;

/* As as_store.visit. */
int kube_table_visit(struct kube_table *table, enum as_store_kind kind, as_store_visit_fn *visit,
                     void *context) AS_MUST_USE;

#endif
