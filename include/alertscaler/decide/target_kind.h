/*
 * The kinds of targets: one row per kind (src/decide/kinds.c). A row has all facts that need no
 * I/O: the keys of an address, the key that all ids of one object share, what its size counts, and
 * what rules, `check` and `backtest` may ask of it. Its adapter (src/kube/, src/cloud/) observes
 * and scales targets. Providers (rules/provider_kind.h) say how their groups are addressed.
 */
#ifndef ALERTSCALER_DECIDE_TARGET_KIND_H
#define ALERTSCALER_DECIDE_TARGET_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

struct as_target_kind;

#define AS_TARGET_KINDS_MAX 8
#define AS_TARGET_KEYS_MAX  16

struct as_target_field {
    const char *key;
    const char *value;
};

struct as_target_ref { /* one block of memory */
    const struct as_target_kind *kind;
    size_t field_count;
    const char *id;
    const char *key; /* of the id */
    struct as_target_field fields[];
};

/* NULL: the address does not have the key. */
static inline const char *as_target_ref_find(const struct as_target_ref *ref, const char *key)
{
    for (size_t i = 0; i < ref->field_count; i++) {
        if (strcmp(ref->fields[i].key, key) == 0)
            return ref->fields[i].value;
    }
    return NULL;
}

/* "": the address does not have the key. */
static inline const char *as_target_ref_get(const struct as_target_ref *ref, const char *key)
{
    const char *value = as_target_ref_find(ref, key);
    return value ? value : "";
}

/* A key of an address, and its valid values after templates are filled in. */
struct as_address_key {
    const char *key; /* NULL: all keys without a row of their own */
    bool is_required;
    const char *fallback; /* default value; NULL: none */
    bool (*is_valid)(const char *value);
    const char *expected;     /* for error messages */
    const char *const *words; /* all valid values, up to a NULL; NULL: there are others */
    const char *about;        /* one sentence, for schemas */
    bool is_number;           /* an integer of 0 or more; else text, */
    bool is_flag;             /* or true or false */
    /* Says what of the object is sized, and how (decide/sized.h). Has no templates; stands in an id
     * only behind its colon, if at all. */
    bool is_sized;
};

/* The lists under `allow` in the rule files. Each limits the values of one key. */
enum as_allow {
    AS_ALLOW_CLUSTERS,
    AS_ALLOW_API_VERSIONS,
    AS_ALLOW_KINDS,
    AS_ALLOW_NAMESPACES,
    AS_ALLOW_NAMES,
    AS_ALLOW_URLS,
    AS_ALLOW_COUNT
};
const char *as_allow_get_word(enum as_allow allow); /* "clusters" */

struct as_target_kind {
    const char *word;    /* in rule files, ids, state, metrics */
    const char *title;   /* in errors: "a node group" */
    const char *unit;    /* of its size, in the plural */
    const char *example; /* an address in a rule file, in errors; NULL: none */
    const char *owner;   /* the key that names the cluster or provider to ask */
    /* In the order of their values in an id. If the last row takes all other keys, an id ends with
     * the values of the place (struct as_address_field), then the name, or the URL if there is no
     * name. */
    struct as_address_key keys[AS_TARGET_KEYS_MAX + 1];
    /* By the list of `allow` that limits it: a key that may have a template. No other key may have
     * one. NULL: the kind has no key for the list. */
    const char *allow[AS_ALLOW_COUNT];
    /* Appends the text that all ids of one object share. `rest` is an id, or a pattern of ids,
     * after "<word>/". False: no id of this kind (what was appended is void). */
    bool (*append_key)(const char *rest, struct as_buf *out);
    bool has_pods;   /* rules may ask for a value per pod */
    bool has_nodes;  /* its instances are nodes: `nodes` is allowed */
    bool has_groups; /* it consists of node groups: its address is its name, its size is theirs */
    /* An observation is never older than the request before it: if its version differs from the
     * request's, the request has lost. */
    bool is_current;
    /* PromQL for the size in the past. False: unknown. NULL: always unknown. */
    bool (*append_size_query)(const struct as_target_ref *ref, struct as_buf *out);
};

extern const struct as_target_kind as_target_kind_kubernetes, as_target_kind_node_group,
    as_target_kind_pool;

/* All kinds, with a NULL at the end; at most AS_TARGET_KINDS_MAX. */
extern const struct as_target_kind *const as_target_kinds[];

/* NULL, a kind that is not known, has none. */
static inline bool as_target_kind_has_groups(const struct as_target_kind *kind)
{
    return kind && kind->has_groups;
}

/* NULL: none. */
const struct as_target_kind *as_target_kind_find(const char *word);
const struct as_target_kind *as_target_kind_find_of_id(const char *id); /* "<word>/..." */

/* Its index in the table. */
size_t as_target_kind_get_index(const struct as_target_kind *kind);

/* The row of a key, or the row of all others; NULL: no such key. */
const struct as_address_key *as_target_kind_find_key(const struct as_target_kind *kind,
                                                     const char *key);
/* The list of `allow` that limits the key; AS_ALLOW_COUNT: the key may have no template. */
enum as_allow as_target_kind_find_allow(const struct as_target_kind *kind, const char *key);
/* Whether the key has a row of its own. */
bool as_target_kind_has_key(const struct as_target_kind *kind, const char *key);
/* Whether a part of its objects may be sized (decide/sized.h). */
bool as_target_kind_has_sized(const struct as_target_kind *kind);

/* A check of address values that the rows of kinds (kinds.c) and addresses (target.c) share: the
 * value is not empty, and has neither C0, DEL nor C1. */
bool as_target_value_is_plain(const char *value);

#endif
