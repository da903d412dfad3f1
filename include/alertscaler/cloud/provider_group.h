/*
 * Node groups of a provider: the calls on a group, and the table of providers.
 *
 * A provider is one file of pure code, which speaks the provider's API through an op
 * (login/cloud_op.h), a row in the table (src/cloud/provider_table.c), and a row with its keys
 * (src/rules/provider_keys.c). If instances can be named, a scale-down never sets a lower size: it
 * removes the chosen instances.
 */
#ifndef ALERTSCALER_CLOUD_PROVIDER_GROUP_H
#define ALERTSCALER_CLOUD_PROVIDER_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/provider_credentials.h>
#include <alertscaler/login/sign.h>
#include <alertscaler/port/group_view.h>
#include <alertscaler/rules/settings.h>

struct as_outcome;
struct as_provider_call;

enum as_group_verb {
    AS_GROUP_READ,      /* -> view */
    AS_GROUP_GROW,      /* to `to`, above `from` */
    AS_GROUP_REMOVE,    /* removes `instances` by name; the size becomes `to` */
    AS_GROUP_TAKE_BACK, /* lowers the size to `to`, not below the existing instances */
    AS_GROUP_POLL,      /* `operation` -> is_done; with a fault too: it has failed for good */
    AS_GROUP_VERB_COUNT
};

struct as_group_op {
    struct as_cloud_op op; /* the first member: an op is cast to it */
    enum as_group_verb verb;
    /* given, borrowed: */
    const struct as_provider_settings *account;
    const struct as_target_ref *group;
    const char *credential; /* as in as_observe_request */
    const struct as_provider_credentials
        *credentials; /* for region and project only, never for secrets */
    int32_t from, to;
    const char *version;
    bool is_size_only;            /* is_conditional, and its instances are not known */
    const char *select;           /* as_nodes_config.select; NULL */
    const char *const *instances; /* ids */
    const char *const *nodes;     /* their node names, NULL if not known; or NULL */
    size_t instance_count;
    const char *idempotency; /* a ULID; the same for each try of one change */
    const char *operation;   /* POLL: the operation that another verb returned */
    /* results, memory of the op: */
    struct as_group_view view;
    const char *started; /* the operation to poll; NULL: already done */
    bool has_begun;      /* one of several requests was accepted: after a failure, part is done */
    bool *are_gone;      /* REMOVE: which of `instances` no longer existed; NULL: none */
    bool is_done;        /* POLL: the operation is over; with a fault: it failed */
    void *state;         /* private to the provider; memory of the op */
};

struct as_group_provider {
    const char *type;    /* of its kind: rules/provider_kind.h */
    const char *service; /* for signatures; or NULL */
    /* Ended by an entry with a NULL name. NULL, as `sign`: http_config has the credentials. */
    const struct as_credentials_source *credentials;
    as_sign_fn *sign;
    /* A change carries the version of the observation (If-Match). A group without `nodes.select` is
     * no more than a size: it is changed by one request without a READ before (GROW, TAKE_BACK),
     * and its status size is its size. */
    bool is_conditional;
    bool is_relative; /* growth requests say "this many more": sending one twice doubles it */
    /* Requests go to the API server of the cluster in the option `cluster` ("default"), with the
     * cluster's credentials; the URLs are paths. */
    bool is_kubernetes;
    /* Files read besides those that keys name: "$VARIABLE" (its value is a path), "$VARIABLE/name"
     * (a file in that folder), "~/path" (in the user's home). Ends with a NULL; or NULL. */
    const char *const *files;
    /* Calls `on_name` for each file or program that such a file, or the file of a key, refers to;
     * the texts are valid during the call. NULL: these files refer to nothing. */
    void (*read_names)(const char *content, size_t size, as_provider_names_fn *on_name,
                       void *context);
    void (*begin)(struct as_group_op *op); /* starts the call of op->verb */
    /* What an op, which has ended, means for the target, and its request for the action log. NULL:
     * by its fault. */
    void (*take_outcome)(const struct as_group_op *op, struct as_outcome *outcome_out,
                         struct as_provider_call *call_out);
};

/* NULL: no such type. */
const struct as_group_provider *as_group_provider_find(const char *type);

/* The call that the op is of. */
static inline struct as_group_op *as_group_get(struct as_cloud_op *op)
{
    return (struct as_group_op *)op;
}

/* Instances that exist or are pending. */
int32_t as_group_count_coming(const struct as_group_view *view) AS_MUST_USE;
int32_t as_group_count_present(const struct as_group_view *view) AS_MUST_USE; /* and failed */
int32_t as_group_count_running(const struct as_group_view *view) AS_MUST_USE;

/* Whether the instance is listed and not leaving. */
bool as_group_is_present(const struct as_group_view *view, const char *id) AS_MUST_USE;

/* REMOVE: drops instances from the op that are gone or leaving according to the view, just read.
 * False after failing the op: another party has changed the size since the decision, so too many
 * instances might be removed. */
bool as_group_keep_present(struct as_group_op *op) AS_MUST_USE;

/* TAKE_BACK: makes `instances` those of the view that have failed, then, with_pending, those that
 * are pending, at most `wanted`. */
void as_group_choose_missing(struct as_group_op *op, int32_t wanted, bool with_pending);

/* REMOVE: the provider says that this one of `instances` no longer exists, so its removal is not
 * waited for. */
void as_group_note_gone(struct as_group_op *op, size_t index);

/* Adds a resource behind the group to the view, unless it is there: "PROVIDER/ID", with an id that
 * has one spelling only. False after failing the op: the name is longer than the limit, or there
 * are too many. Every READ adds at least one, or fails. */
bool as_group_add_backing(struct as_group_op *op, const char *format, ...) AS_PRINTF(2, 3);

/* Adds an instance to the view; copies the texts. False after failing the op: too many. */
bool as_group_add_instance(struct as_group_op *op, const struct as_instance *instance);

#endif
