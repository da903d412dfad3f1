/*
 * The kinds of providers, as far as configurations go: the keys that may stand under
 * `providers.<name>` and in a `node_group`. The rows are in src/rules/provider_keys.c, the calls of
 * a provider in src/cloud (cloud/provider_group.h).
 */
#ifndef ALERTSCALER_RULES_PROVIDER_KIND_H
#define ALERTSCALER_RULES_PROVIDER_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* What a key of a group says about where the group is, from wide to narrow: many groups share a
 * name. These values are part of a target's id, in this order. Each value may belong to only one
 * key of a group. */
enum as_place {
    AS_PLACE_NONE,
    AS_PLACE_PROJECT,
    AS_PLACE_REGION,
    AS_PLACE_ZONE,
    AS_PLACE_CLUSTER,
    AS_PLACE_NAMESPACE,
    AS_PLACE_KIND, /* if a provider has several kinds of groups with separate names */
    AS_PLACE_COUNT
};

struct as_provider_key {
    const char *key;
    const char *about;   /* of a group's key: one sentence, for schemas */
    enum as_place place; /* of a group's key */
    bool is_required;
    bool is_file;    /* names a file to read: relative to the configuration's folder */
    bool is_url;     /* http:// or https://, without credentials in it; secrets are sent there, so a
                        warning is given if others could read them */
    bool is_private; /* a URL: refused if others could read the secrets sent there */
    bool is_metadata; /* a URL: no secrets are sent there */
};

struct as_provider_kind {
    const char *type;    /* `providers.<name>.type` */
    const char *family;  /* the type whose groups may be the same ones; NULL: only this type's */
    const char *warning; /* shown by `check` and at start; NULL: none */
    const struct as_provider_key *account_keys; /* besides type, timeout and http_config; a NULL key
                                                   at the end */
    const struct as_provider_key *group_keys;   /* besides `provider`; a NULL key at the end */
    bool has_url_groups; /* a group is the `url` in its address: it has neither places nor family */
    bool names_no_instances; /* `nodes.select` may say which nodes are its groups' */
    bool
        has_http_login; /* the login is set in `http_config`; false: login keys there are refused */
};

extern const struct as_provider_kind *const as_provider_kinds[]; /* NULL at the end */

/* NULL: no such type. */
const struct as_provider_kind *as_provider_kind_find(const char *type);

#endif
