/*
 * The kinds of targets: a row each (src/core/kind/). A row says all that may be known without
 * asking anybody: the keys of an address, the spelling that all ids of one object share, what its
 * size counts, and what rules, `check` and `backtest` may ask of it. How a target is observed and
 * sized is its adapter's business (src/target/), how a provider's groups are addressed the
 * provider's (config/provider_kind.h).
 */
#ifndef ALERTSCALER_CORE_TARGET_KIND_H
#define ALERTSCALER_CORE_TARGET_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

#define AS_TARGET_KINDS_MAX 8
#define AS_TARGET_KEYS_MAX  8

struct as_target_ref;

/* A key of an address, and what its value may be once the templates are filled in. */
struct as_address_key {
    const char *key; /* NULL: all that have no row of their own */
    bool is_required;
    const char *fallback; /* its value where it is not given; NULL: none */
    bool (*is_valid)(const char *value);
    const char *expected; /* what an error says */
};

struct as_target_kind {
    const char *word;  /* in rule files, ids, state, metrics */
    const char *title; /* as errors call one: "a node group" */
    const char *unit;  /* what its size counts, in the plural */
    const char *owner; /* which key names the cluster or provider that is asked */
    /* In the order in which their values stand in an id. Where the last takes all other keys, the
     * values of the place (struct as_address_field) stand there, and then the name, or the URL
     * where there is none. */
    struct as_address_key keys[AS_TARGET_KEYS_MAX + 1];
    /* Appends the text that all ids of one object share; `rest` is an id, or a pattern of ids,
     * behind "<word>/". False: it is no id of this kind (what was appended is of no use). */
    bool (*append_key)(const char *rest, struct as_buf *out);
    bool has_pods;  /* rules may ask for a value of each pod */
    bool has_nodes; /* its instances are nodes: `nodes` may be given */
    /* An observation is never older than the request before it, so that another version than that
     * of the request tells that the request has lost. */
    bool is_current;
    /* PromQL that gives the size in the past. False: unknown. NULL: always unknown. */
    bool (*append_size_query)(const struct as_target_ref *ref, struct as_buf *out);
};

extern const struct as_target_kind as_target_kind_kubernetes, as_target_kind_node_group;

/* All of them, with a NULL at the end; at most AS_TARGET_KINDS_MAX. */
extern const struct as_target_kind *const as_target_kinds[];

/* NULL: none. */
const struct as_target_kind *as_target_kind_find(const char *word);
const struct as_target_kind *as_target_kind_find_of_id(const char *id); /* "<word>/..." */

/* Its place in the table. */
size_t as_target_kind_get_index(const struct as_target_kind *kind);

/* The row of a key, or of all others; NULL: an address has no such key. */
const struct as_address_key *as_target_kind_find_key(const struct as_target_kind *kind,
                                                     const char *key);
/* Whether the key has a row of its own. */
bool as_target_kind_has_key(const struct as_target_kind *kind, const char *key);

#endif
