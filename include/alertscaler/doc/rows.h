/*
 * A document as a table: one row describes one member of a JSON object for both directions.
 *
 *   static const struct as_row size_rows[] = {
 *       {AS_ROW("from", i32, as_own_size, from, REQUIRED)},
 *       {AS_ROW("version", text, as_own_size, version, OPTIONAL), .size = 64},
 *       {.name = NULL},
 *   };
 *
 * Members are written in the order of their rows. Rows ascend by their names, because the canonical
 * form requires sorted keys (the writer asserts the order, unless it has AS_JSON_ANY_ORDER). A
 * row's type says how the value is written, read and found to be unset. The types below serve all
 * documents; a module adds types for its own structs (struct as_row_type).
 *
 * Reading: errors name their place, as those of json_reader.h do. The first error counts; the
 * struct is then incomplete. Absent members leave the struct unchanged: set defaults before. The
 * end of a table may name a function that checks the whole object.
 */
#ifndef ALERTSCALER_DOC_ROWS_H
#define ALERTSCALER_DOC_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>

/* Within these limits differences of times cannot overflow. */
#define AS_ROW_TIME_MIN_US (INT64_MIN / 4 + 1)
#define AS_ROW_TIME_MAX_US (INT64_MAX / 4 - 1)

enum as_row_presence {
    AS_ROW_OPTIONAL, /* written unless it is unset; may be absent */
    AS_ROW_FILLED,   /* texts, list: written if it has items; may be absent */
    AS_ROW_DEFAULT,  /* always written; may be absent */
    AS_ROW_REQUIRED, /* always written; an absent member is an error */
    AS_ROW_NULLABLE, /* always written: null if it is unset; may be null or absent */
};

struct as_rows_input;
struct as_rows_schema; /* rows_schema.h */

struct as_row {
    const char *name; /* NULL: the end of the table */
    const struct as_row_type *type;
    enum as_row_presence presence;
    int32_t since;   /* version of the document that has the member first; 0: each */
    uint8_t pass;    /* members that refer to others are read in a later pass; 0: the first */
    size_t via;      /* AS_ROW_VIA: a pointer to the struct that has the member; 0: the struct
                        itself. The member is left out, and unknown, while the pointer is NULL. */
    size_t at;       /* offset of the member in the struct */
    size_t count_at; /* texts, list: offset of the size_t that counts the items */
    size_t has_at;   /* AS_ROW_HAS: a bool that says whether the member is set; 0: none. Where it is
                        false, the member is left out; a REQUIRED member is null. */
    int64_t min;     /* of integers, which also have the limits of their type; list: items; word:
                        the first value */
    int64_t max; /* i32, u32, list: 0 is the limit of the type; text: bytes that are written, 0: all
                  */
    size_t size; /* text: bytes with NUL, 0: no limit; list, object: of an item */
    const struct as_row *rows; /* list, object, part */
    const void *defaults;      /* list, object: an item without members; NULL: zeros */
    const char *(*get_word)(unsigned value); /* word, bits; NULL beyond the last value */
    bool (*is_unset)(const void *base);      /* of the struct; NULL: the type says it */
    /* At the end of a table: completes and checks the struct, once its members are read. Not after
     * an error, because a required member may be unset then. */
    void (*check)(struct as_rows_input *input, struct as_reader *object, void *to);
    /* For the JSON Schema. `about` is what the name does not say, NULL: nothing; at the end of a
     * table it describes the definition. */
    const char *about;
    bool is_via_optional; /* the pointer of `via` may be NULL when the document is written */
    /* At the end of a table: its name among the definitions, for a table that occurs several times;
     * NULL: its objects are described in place. */
    const char *definition;
};

/* A document that is being read. */
struct as_rows_input {
    struct as_arena *arena; /* memory of lists and objects */
    int32_t version;   /* rows with a later `since` are unknown members, which may be ignored */
    bool copies_texts; /* into the arena; else texts stay in the tree */
    void *context;     /* for the types of a module */
};

struct as_row_type {
    bool is_nullable; /* null is a value; not written where OPTIONAL omits it */
    bool has_own_key; /* `write` also writes the key, or nothing at all */
    void (*write)(struct as_json_writer *json, const struct as_row *row, const void *base);
    /* The member is present. Reports errors with as_read_fail on `object`. */
    void (*read)(struct as_rows_input *input, struct as_reader *object, const struct as_row *row,
                 void *base);
    /* What OPTIONAL omits; NULL: never unset. */
    bool (*is_unset)(const struct as_row *row, const void *base);
    /* Writes members of the value's JSON Schema, which the generator requires: by functions of
     * rows_schema.h. Or the schema is like that of another type. */
    void (*describe)(struct as_rows_schema *schema, const struct as_row *row);
    const struct as_row_type *like;
};

/* For types: the member of the struct; the number of its items. */
static inline const void *as_row_at(const struct as_row *row, const void *base)
{
    return (const char *)base + row->at;
}
static inline void *as_row_to(const struct as_row *row, void *base)
{
    return (char *)base + row->at;
}
static inline size_t as_row_get_count(const struct as_row *row, const void *base)
{
    return *(const size_t *)(const void *)((const char *)base + row->count_at);
}

/* type                member                   JSON */
extern const struct as_row_type as_row_text;       /* const char *; unset: NULL or "" */
extern const struct as_row_type as_row_maybe_text; /* const char *; NULL, which is unset: null */
extern const struct as_row_type as_row_chars;      /* char[size] */
extern const struct as_row_type as_row_i32;        /* int32_t; unset: 0 */
extern const struct as_row_type as_row_size;       /* int32_t; unset: negative, null */
extern const struct as_row_type as_row_u32;        /* uint32_t; unset: 0 */
extern const struct as_row_type as_row_i64;        /* int64_t; unset: 0 */
extern const struct as_row_type as_row_u64;        /* uint64_t, as an integer up to `max` */
extern const struct as_row_type as_row_flag;       /* bool; unset: false */
extern const struct as_row_type as_row_is_up;      /* bool: "up" or "down" */
extern const struct as_row_type as_row_hex;        /* uint64_t: "00000000000000ff"; unset: 0 */
extern const struct as_row_type as_row_digest;     /* struct as_digest: 64 hex digits */
extern const struct as_row_type as_row_number;     /* double; unset: not finite */
extern const struct as_row_type as_row_positive;   /* double, at least 0; unset: not finite */
extern const struct as_row_type as_row_word;       /* an enum, by get_word; unset: no word */
extern const struct as_row_type as_row_bits;       /* bits, a list of words; unset: 0 */
extern const struct as_row_type as_row_wall;       /* as_wall_time: microseconds */
extern const struct as_row_type as_row_time;       /* as_wall_time: RFC 3339 */
extern const struct as_row_type as_row_maybe_time; /* as_maybe_time: RFC 3339; unset: null */
extern const struct as_row_type as_row_exact;      /* as_wall_time: RFC 3339 with six digits */
extern const struct as_row_type as_row_seconds;    /* int64_t, microseconds: a number of seconds */
extern const struct as_row_type as_row_texts;      /* const char *const *; unset: NULL */
extern const struct as_row_type as_row_list;       /* pointer to structs; unset: NULL */
extern const struct as_row_type as_row_object;     /* pointer to a struct; unset: NULL */
extern const struct as_row_type as_row_part;       /* struct, or at 0 the struct of the row itself:
                                                      an object; unset: all its rows */

#define AS_ROW_TYPE_text       const char *
#define AS_ROW_TYPE_maybe_text const char *
#define AS_ROW_TYPE_i32        int32_t
#define AS_ROW_TYPE_size       int32_t
#define AS_ROW_TYPE_u32        uint32_t
#define AS_ROW_TYPE_i64        int64_t
#define AS_ROW_TYPE_u64        uint64_t
#define AS_ROW_TYPE_flag       bool
#define AS_ROW_TYPE_is_up      bool
#define AS_ROW_TYPE_hex        uint64_t
#define AS_ROW_TYPE_digest     struct as_digest
#define AS_ROW_TYPE_number     double
#define AS_ROW_TYPE_positive   double
#define AS_ROW_TYPE_word       unsigned
#define AS_ROW_TYPE_bits       unsigned
#define AS_ROW_TYPE_wall       as_wall_time
#define AS_ROW_TYPE_time       as_wall_time
#define AS_ROW_TYPE_maybe_time as_maybe_time
#define AS_ROW_TYPE_exact      as_wall_time
#define AS_ROW_TYPE_seconds    int64_t
#define AS_ROW_TYPE_texts      const char *const *

/* Members of structs that own their texts. */
#define as_row_own_text            as_row_text
#define as_row_own_maybe_text      as_row_maybe_text
#define as_row_own_texts           as_row_texts
#define AS_ROW_TYPE_own_text       char *
#define AS_ROW_TYPE_own_maybe_text char *
#define AS_ROW_TYPE_own_texts      char **

/* The first members of a row, before designated ones. The compiler checks that the member has the
 * type's C type, AS_ROW_TYPE_<type>. */
#define AS_ROW(NAME, TYPE, STRUCT, MEMBER, PRESENCE)                                               \
    .name = (NAME), .type = &as_row_##TYPE, .presence = AS_ROW_##PRESENCE,                         \
    .at = offsetof(struct STRUCT, MEMBER) +                                                        \
          0 * _Generic(((struct STRUCT *)0)->MEMBER, AS_ROW_TYPE_##TYPE                            \
                       : sizeof(struct STRUCT))
/* Likewise of type list or object: the member points to structs that ROWS describe. */
#define AS_ROW_OF(NAME, TYPE, STRUCT, MEMBER, PRESENCE, ROWS)                                      \
    .name = (NAME), .type = &as_row_##TYPE, .presence = AS_ROW_##PRESENCE,                         \
    .at = offsetof(struct STRUCT, MEMBER), .size = sizeof(*((struct STRUCT *)0)->MEMBER),          \
    .rows = (ROWS)

/* A member that is an array of characters. */
#define AS_ROW_CHARS(NAME, STRUCT, MEMBER, PRESENCE)                                               \
    .name = (NAME), .type = &as_row_chars, .presence = AS_ROW_##PRESENCE,                          \
    .at = offsetof(struct STRUCT, MEMBER), .size = sizeof(((struct STRUCT *)0)->MEMBER)
/* An object whose members are in the struct MEMBER. */
#define AS_ROW_PART(NAME, STRUCT, MEMBER, PRESENCE, ROWS)                                          \
    .name = (NAME), .type = &as_row_part, .presence = AS_ROW_##PRESENCE,                           \
    .at = offsetof(struct STRUCT, MEMBER), .rows = (ROWS)
/* An object whose members are in the struct of the row itself. */
#define AS_ROW_SAME(NAME, PRESENCE, ROWS)                                                          \
    .name = (NAME), .type = &as_row_part, .presence = AS_ROW_##PRESENCE, .rows = (ROWS)
#define AS_ROW_COUNT(STRUCT, MEMBER) offsetof(struct STRUCT, MEMBER)
#define AS_ROW_HAS(STRUCT, MEMBER)   (offsetof(struct STRUCT, MEMBER) + 1)
#define AS_ROW_VIA(STRUCT, MEMBER)   (offsetof(struct STRUCT, MEMBER) + 1)

/* Defines a function for `get_word`, from a function of an enum with COUNT values. The function of
 * the enum itself has another type: control-flow integrity ends the program at its call. */
#define AS_ROW_WORDS(NAME, ENUM, COUNT, GET)                                                       \
    static const char *NAME(unsigned value)                                                        \
    {                                                                                              \
        return value < (COUNT) ? GET((ENUM)value) : NULL;                                          \
    }

/* Writes an object. */
void as_rows_write(struct as_json_writer *json, const struct as_row *rows, const void *from);
/* Reads the members of the object; a strict reader then refuses all other members. */
void as_rows_read(struct as_rows_input *input, struct as_reader *object, const struct as_row *rows,
                  void *to);

/* Copies `count` structs of `size` bytes, with their texts, into the arena. NULL if count is 0. The
 * rows have no lists and no objects. */
void *as_rows_copy(struct as_arena *arena, const struct as_row *rows, const void *items,
                   size_t count, size_t size) AS_MUST_USE;
/* Replaces the texts of a struct by copies on the heap; NULL stays NULL. */
void as_rows_own_texts(const struct as_row *rows, void *item);
/* Frees them, and sets them to NULL. */
void as_rows_free_texts(const struct as_row *rows, void *item);

#endif
