/*
 * The keys of each map of our files as const tables. One table defines reading, the errors, "did
 * you mean", the default values, and (by a test) the documentation.
 *
 * Long because it describes every kind of value once.
 */
#ifndef ALERTSCALER_DOC_SCHEMA_H
#define ALERTSCALER_DOC_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/yaml_tree.h>

struct loader_unit { /* a target whose sizes are counted in a unit */
    const char *target, *text;
};

/* What reading one file needs. */
struct loader {
    const struct as_yaml_tree *tree;
    struct as_diagnostics *diagnostics;
    struct as_arena *arena;                    /* of everything that is read */
    const char *folder;                        /* base of relative paths; "": none */
    const struct as_target_defaults *defaults; /* for targets; NULL while they are read */
    const struct loader_unit *units;           /* of all files, sorted by target */
    size_t unit_count;
    struct as_unit unit; /* of the target, or of the rule's target, that is read now */
};

enum schema_type {
    SCHEMA_STRING,   /* const char *: one line, not empty */
    SCHEMA_TEXT,     /* const char *: may have several lines */
    SCHEMA_QUERY,    /* const struct as_yaml_node *: as SCHEMA_TEXT; compiled at the end */
    SCHEMA_NAME,     /* const char *: [a-zA-Z0-9_.-]+ */
    SCHEMA_PATH,     /* const char *: made relative to the loader's folder */
    SCHEMA_URL,      /* const char *: http:// or https:// */
    SCHEMA_BOOL,     /* bool */
    SCHEMA_INT,      /* int32_t (or uint32_t), min to max; is_count: or a quantity */
    SCHEMA_DURATION, /* int64_t microseconds, min to max */
    SCHEMA_SIZE,     /* uint64_t bytes, min to max */
    SCHEMA_PERCENT,  /* int64_t thousandths of a percent, min to max */
    SCHEMA_WORD,     /* unsigned (an enum): index into words */
    SCHEMA_STRINGS,  /* const char ** and, at count_offset, size_t */
    SCHEMA_PATHS,    /* as SCHEMA_STRINGS */
    SCHEMA_URLS,     /* as SCHEMA_STRINGS */
    SCHEMA_MAP,      /* the struct of `map` */
    SCHEMA_MAPS,     /* a list of maps: array of structs of `map`, and a size_t at count_offset */
    SCHEMA_NAMED,    /* a map of names to maps: as SCHEMA_MAPS; each name goes to offset 0 */
    SCHEMA_CUSTOM,   /* read by `parse`, which accepts `forms` */
    /* Only in `forms`: */
    SCHEMA_SCALAR, /* a single value that matches `pattern` */
    SCHEMA_NUMBER, /* min to max in thousandths */
    SCHEMA_QUANTITY,
    SCHEMA_TIME,
    SCHEMA_REASON, /* a reason code */
    SCHEMA_WORDS,  /* a list of `words` */
    SCHEMA_TABLE   /* a map with any keys: forms[0] are its values, forms[1] its keys if not any */
};

/* At most one of these keys (up to a NULL) may be in a map; one is needed unless is_optional. */
struct schema_choice {
    const char *const *keys; /* NULL: end of the list */
    bool is_optional;
};
#define SCHEMA_ONE_OF(...)                                                                         \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

struct schema;
struct schema_writer;
struct suggestion;

struct schema_field {
    const char *key;
    enum schema_type type;
    bool is_required;
    bool is_count; /* a size: if the target has a unit, a multiple of it may be written */
    size_t offset, count_offset; /* in the struct that the map fills */
    int64_t min, max;            /* both 0: any; of a list or map: its number of elements */
    const char *fallback;        /* default as in a file; NULL: none */
    const char *const *words;    /* up to a NULL */
    const struct schema *map;
    void (*parse)(struct loader *loader, const struct as_yaml_node *value, void *object);
    const char *expected;   /* what SCHEMA_CUSTOM accepts, for the documentation's test */
    const char *about;      /* one sentence, for schemas; keys in backticks as in files */
    const char *when_empty; /* the error for a list without elements; NULL: it may be empty */
    /* For JSON Schemas (rules/schema_writer.c): what SCHEMA_CUSTOM accepts, any of these, up to a
     * row without key; and a regular expression of ECMA 262 for SCHEMA_SCALAR, and for the elements
     * of SCHEMA_STRINGS. */
    const struct schema_field *forms;
    const char *pattern;
};

/* A row of a table: the key, the end of the type's name, and the member of the struct that the map
 * fills; then what else the row has:
 * SCHEMA_FIELD("url", URL, as_prometheus_settings, url, .is_required = true) */
#define SCHEMA_FIELD(word, kind, owner, member, ...)                                               \
    {                                                                                              \
        .key = word, .type = SCHEMA_##kind, .offset = offsetof(struct owner, member), __VA_ARGS__  \
    }

/* `forms` of a row: SCHEMA_FORMS(SCHEMA_FORM(INT, .min = 1), SCHEMA_FORM(PERCENT)) */
#define SCHEMA_FORM(kind, ...)                                                                     \
    {                                                                                              \
        .key = "", .type = SCHEMA_##kind, __VA_ARGS__                                              \
    }
#define SCHEMA_FORMS(...)                                                                          \
    (const struct schema_field[])                                                                  \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Kubernetes' quantities, and the keys and values of its labels and taints. */
#define SCHEMA_QUANTITY_FORMS SCHEMA_FORMS(SCHEMA_FORM(QUANTITY))
#define SCHEMA_LABEL_KEY                                                                           \
    SCHEMA_FORM(SCALAR, .pattern = "^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]"                             \
                                   "([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")
#define SCHEMA_LABEL_VALUE                                                                         \
    SCHEMA_FORM(SCALAR, .pattern = "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$")

/* A key that is refused on purpose, and the error for users who try it. */
struct schema_refusal {
    const char *key;
    const char *message;
    bool is_secret; /* hides its line in errors */
};

struct schema {
    const char *name;                  /* for the documentation: "target", "http_config" */
    size_t size;                       /* of the struct that the map fills */
    const struct schema_field *fields; /* ends with one without key */
    const char *example;       /* a short map, for the error about a value of another kind */
    const struct schema *base; /* more keys, filled in at base_offset */
    size_t base_offset;
    const struct schema_refusal *refusals; /* ends with one without key; NULL: none */
    const struct schema_choice *choices;   /* checked before `finish`; NULL: none */
    /* Takes a key that is not in the table; false: unknown key. NULL: all are unknown. */
    bool (*other)(struct loader *loader, const struct as_yaml_node *node,
                  const struct as_yaml_pair *pair, void *object);
    /* Offers the keys that `other` takes as suggestions; NULL: none. */
    void (*offer_other)(struct suggestion *suggestion);
    /* For JSON Schemas: writes the properties that `other` takes, and what else holds for the map,
     * as members of their objects. NULL: none. */
    void (*describe_keys)(struct schema_writer *to);
    void (*describe_map)(struct schema_writer *to);
    /* Sets the loader's unit, until the map is read; NULL: nothing. */
    void (*set_unit)(struct loader *loader, const struct as_yaml_node *node);
    /* More default values, before a map is read; NULL: none. */
    void (*init)(struct loader *loader, void *object);
    /* Checks over several keys, after all were read. Errors go to `at`. */
    void (*finish)(struct loader *loader, const struct as_yaml_node *node,
                   const struct as_yaml_node *at, void *object);
};

/* A table's name, the struct that the map fills, and its rows; then what else it has. */
#define SCHEMA(word, owner, rows, ...)                                                             \
    {                                                                                              \
        .name = word, .size = sizeof(struct owner), .fields = rows, __VA_ARGS__                    \
    }

#define SCHEMA_COUNT_MAX 100000 /* elements of a list or map if its field has no max */

/* Sets every field that has a fallback, of nested maps too. */
void schema_fill_defaults(struct loader *loader, const struct schema *schema, void *object);

/* Reads a map into `object`, over its present values. Missing keys are reported at `at`. */
void schema_parse(struct loader *loader, const struct schema *schema,
                  const struct as_yaml_node *node, const struct as_yaml_node *at, void *object);

/* Single values, for `parse` functions. False: invalid, and an error was reported. */
bool schema_parse_value(struct loader *loader, const struct schema_field *field,
                        const struct as_yaml_node *value, void *object);
bool schema_is_kind(struct loader *loader, const struct as_yaml_node *node, enum as_yaml_kind kind);
/* As schema_is_kind of a map; the error shows the example. NULL: none. */
bool schema_is_map(struct loader *loader, const struct as_yaml_node *node, const char *example);
bool schema_parse_i64(struct loader *loader, const struct as_yaml_node *node, int64_t min,
                      int64_t max, int64_t *out);
/* A size: an integer, or a quantity where the loader has a unit. */
bool schema_is_quantity(const struct as_yaml_node *node); /* with a suffix, like 64Mi */
bool schema_parse_count(struct loader *loader, const struct as_yaml_node *node, int64_t min,
                        int64_t max, int64_t *out);
bool schema_parse_number(struct loader *loader, const struct as_yaml_node *node, double *out);
bool schema_parse_string(struct loader *loader, const struct as_yaml_node *node,
                         const char **out); /* as SCHEMA_STRING */
bool schema_parse_percent(struct loader *loader, const struct as_yaml_node *node, int64_t min,
                          int64_t max, int64_t *milli_percent_out);

/* Whether the choice is kept; else reports an error. */
bool schema_check_choice(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, const struct schema_choice *choice);
bool schema_has_one_of(const struct as_yaml_node *node, const char *const *keys); /* exactly one */

/* The key's own node; NULL: the map has no such key. */
const struct as_yaml_node *schema_find_key(const struct as_yaml_node *map, const char *key);

#define SCHEMA_NAME_MAX 200
#define SCHEMA_EXPECTED_NAME                                                                       \
    "expected a name of letters, digits, `_`, `.` and `-`, at most 200 characters"
bool schema_is_name(const char *text);

/* schema_parse_value without maps, in two parts. */
bool schema_parse_scalar(struct loader *loader, const struct schema_field *field,
                         const struct as_yaml_node *node, void *object);
bool schema_check_count(struct loader *loader, const struct schema_field *field,
                        const struct as_yaml_node *node); /* of a list or map */

/* Whether further errors are only counted, so that they need no hints. */
bool loader_is_full(const struct loader *loader);
void loader_report(struct loader *loader, const struct as_yaml_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "; did you mean `max`?" or "", in the caller's memory. */
#define SUGGESTION_SIZE 160
struct suggestion {
    const char *word;
    unsigned distance;
    const char *best;
};
struct suggestion suggestion_start(const char *word);
void suggestion_offer(struct suggestion *suggestion, const char *candidate);
const char *suggestion_print(const struct suggestion *suggestion, char text_out[SUGGESTION_SIZE]);

#endif
