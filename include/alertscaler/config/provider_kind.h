/*
 * The kinds of providers that the program has, as far as their keys go: what may stand under
 * `providers.<name>` and in a `node_group`. The list is put together where the providers are
 * (src/provider/table.c), so that a new one is known to all who read configurations.
 */
#ifndef ALERTSCALER_CONFIG_PROVIDER_KIND_H
#define ALERTSCALER_CONFIG_PROVIDER_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* What a key of a group tells of where the group is, from the wide to the narrow: groups of equal
 * names are many. Such values stand in a target's id, in this order; no two keys of a group may
 * have the same. */
enum as_place {
    AS_PLACE_NONE,
    AS_PLACE_PROJECT,
    AS_PLACE_REGION,
    AS_PLACE_ZONE,
    AS_PLACE_CLUSTER,
    AS_PLACE_NAMESPACE,
    AS_PLACE_KIND, /* of several kinds of groups, whose names are apart */
    AS_PLACE_COUNT
};

struct as_provider_key {
    const char *key;
    enum as_place place; /* of a group's keys */
    bool is_required;
    bool is_file; /* names a file that is read: relative to the configuration's folder */
    bool is_url;  /* http:// or https://, without credentials in it; secrets are sent there, and a
                     warning says where others could read them */
    bool is_private;  /* a URL: where others could read them it is refused */
    bool is_metadata; /* a URL: nothing that is secret is sent there */
};

/* What a file names in turn: another file that is read, or a program that is run. */
typedef void as_provider_names_fn(void *context, const char *path, bool is_program);

struct as_provider_kind {
    const char *type;                           /* `providers.<name>.type` */
    const char *warning;                        /* told by `check` and at start; NULL: none */
    const struct as_provider_key *account_keys; /* besides type, timeout and http_config; a NULL key
                                                   at the end */
    const struct as_provider_key *group_keys;   /* besides provider; a NULL key at the end */
    bool
        has_http_login; /* as whom is said by `http_config`: else what it says of that is refused */
    /* What is read besides files that keys name: "$VARIABLE" whose value is a path, or
     * "$VARIABLE/name" in the folder that it names; "~/path" of the user's own. A NULL at the end,
     * or NULL. */
    const char *const *files;
    /* Tells what such a file, or one of a key's, names in turn; texts are good for the call. NULL:
     * they name nothing. */
    void (*read_names)(const char *content, size_t size, as_provider_names_fn *tell, void *context);
};

extern const struct as_provider_kind *const as_provider_kinds[]; /* NULL at the end */

/* NULL: none of this type (`http` is not among them). */
const struct as_provider_kind *as_provider_kind_find(const char *type);

#endif
