/*
 * State in API objects: its texts, the ConfigMaps that hold them, the table of a holder, and the
 * limits. kube_store.c alone reads and writes the objects; the rest is pure.
 *
 * The texts are shown by kubectl, and a person can read them.
 *
 * A large value is split into numbered pieces. Each piece has a name ("target-17"); its text is a
 * head line and the bytes:
 *
 *   kubernetes/default/apps/v1/Deployment/shop/checkout
 *   {"boot":"...","lock":{...}}
 *
 * The head line is the key, then " part 2/5" if there are several pieces, then " hex" if the bytes
 * are not text. A key with other than printable characters is written as 0x and hex.
 *
 * The journal is a list of commits. It can be replayed from its beginning at any time:
 *
 *   commit 1234 2
 *   put target-17 3 131      SHARD and the size of the piece's text, which follows, and a line end
 *   ...
 *   drop incident-9 0
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_STATE_H
#define ALERTSCALER_SRC_KUBE_KUBE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/port/store.h>

/*
 * Every limit of the store in an API server. docs/high-availability.md says what is refused beyond
 * them.
 */

/* Time of one request; and of all tries of one write, with the pauses between them. */
#define AS_STORE_KUBE_TIMEOUT_US   (5 * AS_US_PER_S)
#define AS_STORE_KUBE_TRYING_US    (20 * AS_US_PER_S)
#define AS_STORE_KUBE_PAUSE_US     (AS_US_PER_S / 10) /* doubles with each try, up to the maximum */
#define AS_STORE_KUBE_PAUSE_MAX_US (2 * AS_US_PER_S)

/* Bytes in an object's texts. Kubernetes allows 1 MiB. */
#define AS_STORE_KUBE_OBJECT_MAX ((size_t)900000)
/* A record goes into a shard that stays below this size. Shards are small, because each change
 * writes a whole shard. */
#define AS_STORE_KUBE_SHARD_FILL ((size_t)128 * 1024)
/* Larger values are cut into pieces of this size. */
#define AS_STORE_KUBE_PIECE_MAX ((size_t)192 * 1024)

/* The journal: its part in the head, which every commit writes again; a single commit in the head;
 * one object of the older part. */
#define AS_STORE_KUBE_TAIL_FILL   ((size_t)32 * 1024)
#define AS_STORE_KUBE_TAIL_MAX    ((size_t)128 * 1024)
#define AS_STORE_KUBE_SEGMENT_MAX ((size_t)768 * 1024)
/* With this many segments, shards are written while no caller waits, TIDY_SHARDS at a time. */
#define AS_STORE_KUBE_TIDY_SEGMENTS 8
#define AS_STORE_KUBE_TIDY_SHARDS   4

/* Bytes of an answer: one object; one page of the list. And the objects on a page. */
#define AS_STORE_KUBE_RESPONSE_MAX ((size_t)4 * 1024 * 1024)
#define AS_STORE_KUBE_PAGE_MAX     ((size_t)64 * 1024 * 1024)
#define AS_STORE_KUBE_PAGE         20

/*
 * ConfigMaps of the Kubernetes API, as far as a store needs them: name, version, and the texts in
 * `data`. Pure.
 */

#define AS_KUBE_VERSION_SIZE 64 /* size of a resourceVersion with NUL */

struct as_kube_config_item {
    const char *key, *text; /* UTF-8 */
    size_t size;            /* of the text */
};

struct as_kube_config_map {
    const char *name;
    const char *version; /* resourceVersion; "": not created yet */
    const struct as_kube_config_item *items;
    size_t count;
};

/* NULL if there is no such key. */
const struct as_kube_config_item *as_kube_config_map_find(const struct as_kube_config_map *map,
                                                          const char *key);

struct as_kube_label {
    const char *name, *value;
};

/* Appends the document; `out` is failed when it does not fit. Without a version it creates the
 * ConfigMap; with a version it replaces only that version. */
void as_kube_config_map_encode(const struct as_kube_config_map *map, const char *namespace_,
                               const struct as_kube_label *labels, size_t label_count,
                               struct as_buf *out);

/* `map` is valid for the call; a result other than 0 ends the decoding and is returned. */
typedef int as_kube_config_map_fn(void *context, const struct as_kube_config_map *map,
                                  struct as_error *error);

/* One ConfigMap. 0; -EBADMSG with an error that names the field; or what `use` returns. */
int as_kube_config_map_decode(const char *json, size_t size, as_kube_config_map_fn *use,
                              void *context, struct as_error *error) AS_MUST_USE;

/* The new version, from the answer to a write: the ConfigMap or only its metadata. 0; -EBADMSG. */
int as_kube_config_map_decode_version(const char *json, size_t size,
                                      char version_out[AS_KUBE_VERSION_SIZE],
                                      struct as_error *error) AS_MUST_USE;

/* Accept header of a write: asks for the metadata alone; an old server sends the ConfigMap. */
#define AS_KUBE_ACCEPT_VERSION                                                                     \
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

/* One page of a list, `use` for each; *next_out: token of the next page, to be freed; NULL: this
 * was the last page. */
int as_kube_config_map_list_decode(const char *json, size_t size, char **next_out,
                                   as_kube_config_map_fn *use, void *context,
                                   struct as_error *error) AS_MUST_USE;

/*
 * The texts.
 */

#define AS_KUBE_STATE_FORMAT      2 /* 2: incidents are identified by the digests of their labels */
#define AS_KUBE_STATE_KINDS       5 /* in the order of the port's: meta, incident, target, ... */
#define AS_KUBE_STATE_NAME_SIZE   32
#define AS_KUBE_STATE_SHARDS_MAX  2000
#define AS_KUBE_STATE_SLOTS_MAX   128
#define AS_KUBE_STATE_HOLDER_SIZE 160
#define AS_KUBE_STATE_WRITE_SIZE  64

struct as_kube_state_piece {
    unsigned kind;
    uint64_t id;           /* unique among all pieces of the state */
    uint32_t shard;        /* where it is stored */
    uint32_t index, count; /* which piece of how many; from 0 */
    const char *key, *value;
    size_t key_size, value_size;
};

/* "target-17" */
void as_kube_state_print_name(unsigned kind, uint64_t id, char name_out[AS_KUBE_STATE_NAME_SIZE]);

/* The piece's text, without name and shard. */
void as_kube_state_print_record(const struct as_kube_state_piece *piece, struct as_buf *out);

/* The reverse, without the shard. Decoded bytes are in the arena, others point into `text`. 0, or
 * -EBADMSG with an error. */
int as_kube_state_parse_record(const char *name, size_t name_size, const char *text, size_t size,
                               struct as_arena *arena, struct as_kube_state_piece *piece_out,
                               struct as_error *error) AS_MUST_USE;

/* The journal. `text` is the result of print_record for the piece. */
void as_kube_state_print_commit(uint64_t sequence, size_t changes, struct as_buf *out);
void as_kube_state_print_put(const struct as_kube_state_piece *piece, const char *text, size_t size,
                             struct as_buf *out);
void as_kube_state_print_drop(unsigned kind, uint64_t id, uint32_t shard, struct as_buf *out);

struct as_kube_state_visitor {
    void (*commit)(void *context, uint64_t sequence);
    /* `piece` is valid for the call; `text_size` is the size of its text. */
    void (*put)(void *context, const struct as_kube_state_piece *piece, size_t text_size);
    void (*drop)(void *context, uint64_t id, uint32_t shard);
    void *context;
};

/* A whole journal: 0, or -EBADMSG with an error if any byte does not belong to it. */
int as_kube_state_parse_journal(const char *text, size_t size,
                                const struct as_kube_state_visitor *visitor,
                                struct as_error *error) AS_MUST_USE;

/* The one object that each commit replaces: the holder of the state, and where the journal is. */
struct as_kube_state_segment {
    uint32_t slot;   /* the object's number */
    uint64_t serial; /* which the object must contain */
};

struct as_kube_state_head {
    char holder[AS_KUBE_STATE_HOLDER_SIZE];
    char write[AS_KUBE_STATE_WRITE_SIZE]; /* unique for each write */
    uint64_t epoch;                       /* counts the holders */
    uint64_t sequence;                    /* of the last commit */
    uint64_t serial;                      /* of the last segment ever written */
    struct as_kube_state_segment segments[AS_KUBE_STATE_SLOTS_MAX]; /* the older part, in order */
    size_t segment_count;
    const char *journal; /* the newest part */
    size_t journal_size;
};

#define AS_KUBE_STATE_HEAD_ITEMS 8

/* Fills the items; they point into the arena and into `head`. */
void as_kube_state_head_encode(const struct as_kube_state_head *head, struct as_arena *arena,
                               struct as_kube_config_item items_out[AS_KUBE_STATE_HEAD_ITEMS]);

/* 0; -EBADMSG; or -EPROTO if a newer alertscaler wrote it. The journal is borrowed from `map`. */
int as_kube_state_head_decode(const struct as_kube_config_map *map,
                              struct as_kube_state_head *head_out,
                              struct as_error *error) AS_MUST_USE;

/* A number in an item of `map`: 0, or -EBADMSG with an error. */
int as_kube_state_get_number(const struct as_kube_config_map *map, const char *key,
                             uint64_t *number_out, struct as_error *error) AS_MUST_USE;

/*
 * The state in a holder's memory: all records, in the order of their keys; the pieces of each
 * record, and the shard of each piece.
 *
 * Shards are numbered from 0 and filled as needed. A piece stays in its shard, under the same name,
 * as long as it fits. So a change of one record changes one object.
 */

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
