/*
 * Structs as JSON objects and back: one row describes a member for both directions. Rows are sorted
 * by name, as the canonical form requires. For state documents (state.c).
 */
#ifndef ALERTSCALER_SRC_ENGINE_STATE_ROWS_H
#define ALERTSCALER_SRC_ENGINE_STATE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/decide/incident.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/engine/state.h>
#include <alertscaler/model/labels_digest.h>

#include <alertscaler/doc/json_tree.h>

enum state_kind {
    STATE_TEXT,
    STATE_I32,
    STATE_U32,
    STATE_I64,
    STATE_BOOL,
    STATE_HEX,
    STATE_DIGEST,
    STATE_MOMENT, /* null: unset */
    STATE_LABELS,
    STATE_TEXTS,
    STATE_PAIRS, /* null: no list */
    STATE_LIST,
    STATE_OBJECT,
    STATE_WORD, /* of an enum, by its function */
};

struct state_pairs {
    const struct as_target_field *fields; /* NULL: no list */
    size_t count;
};

struct state_row {
    const char *name;   /* NULL: the end */
    const char *former; /* its name in earlier versions */
    enum state_kind kind;
    bool is_optional;    /* omitted if NULL, unset, false or (I32) 0 */
    bool is_needed;      /* a moment that must not be null */
    size_t at, count_at; /* offsets in the struct; count_at of STATE_TEXTS and STATE_LIST */
    int64_t min, max;    /* of integers; I32 and U32 also have their type's limits */
    size_t size;         /* of an item or object; of a text: must be shorter, 0: any length */
    const struct state_row *rows;            /* of an item or object */
    const char *(*get_word)(unsigned value); /* of the values 0 to max */
};

#define STATE_TEXT_TYPE   const char *
#define STATE_I32_TYPE    int32_t
#define STATE_U32_TYPE    uint32_t
#define STATE_I64_TYPE    int64_t
#define STATE_BOOL_TYPE   bool
#define STATE_HEX_TYPE    uint64_t
#define STATE_DIGEST_TYPE struct as_digest
#define STATE_MOMENT_TYPE struct as_moment
#define STATE_LABELS_TYPE const struct as_labels *
#define STATE_TEXTS_TYPE  const char *const *
#define STATE_PAIRS_TYPE  struct state_pairs
#define STATE_WORD_TYPE   unsigned

/* The member's type must match the kind; then other members of the row. */
#define STATE_ROW(NAME, KIND, STRUCT, MEMBER)                                                      \
    .name = (NAME), .kind = STATE_##KIND,                                                          \
    .at = offsetof(struct STRUCT, MEMBER) +                                                        \
          0 * _Generic(((struct STRUCT *)0)->MEMBER, STATE_##KIND##_TYPE                           \
                       : sizeof(struct STRUCT))
#define STATE_ROW_OBJECT(NAME, KIND, STRUCT, MEMBER, ROWS)                                         \
    .name = (NAME), .kind = STATE_##KIND, .at = offsetof(struct STRUCT, MEMBER),                   \
    .size = sizeof(*((struct STRUCT *)0)->MEMBER), .rows = (ROWS)

void state_rows_write(struct as_json_writer *json, const struct state_row *rows, const void *from);

/* A document that is being read; the first problem is its damage. */
struct state_reader {
    const struct as_state_clock *clock;
    bool same_boot, damaged;
    struct tree tree;            /* of the document; its arena has the lists and objects too */
    struct as_labels *labels[2]; /* freed by the caller */
    size_t label_count;
    struct as_error *error;
};

void state_reader_damage(struct state_reader *reader, const char *name);
/* Texts stay in the document. Optional absent members are left unchanged. */
void state_rows_read(struct state_reader *reader, const struct state_row *rows,
                     const struct tree_value *object, void *to);

#endif
