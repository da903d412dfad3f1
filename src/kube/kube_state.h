/*
 * State in API objects, as texts that kubectl shows and a person can read. Pure.
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

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

#include "kube_config_map.h"

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

#endif
