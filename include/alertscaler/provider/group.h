/*
 * Node groups of a provider: what can be asked of one, and the table of providers.
 *
 * A provider is one file: pure code that speaks its API through a talk (provider/talk.h), and one
 * row in the table (src/provider/table.c). Lower sizes are never set where instances can be named:
 * a scale-down removes the instances that were chosen.
 */
#ifndef ALERTSCALER_PROVIDER_GROUP_H
#define ALERTSCALER_PROVIDER_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/config/provider_kind.h>
#include <alertscaler/config/settings.h>
#include <alertscaler/core/observation.h>
#include <alertscaler/core/target.h>
#include <alertscaler/provider/credentials.h>
#include <alertscaler/provider/sign.h>
#include <alertscaler/provider/talk.h>

#define AS_GROUP_INSTANCES_MAX 20000 /* of one group; more is an error */

enum as_instance_state {
    AS_INSTANCE_PENDING, /* on its way */
    AS_INSTANCE_RUNNING,
    AS_INSTANCE_LEAVING, /* never chosen, never deleted twice, counts no more */
    AS_INSTANCE_FAILED   /* it will not run */
};

struct as_instance {
    const char *id;          /* as the provider's calls name it */
    const char *provider_id; /* as a Kubernetes node's spec.providerID ends; "": the id */
    const char *zone;        /* "" where unknown */
    enum as_instance_state state;
    bool is_unhealthy, is_protected;
    as_maybe_time created;
};

struct as_group_view {
    int32_t size;                  /* the size asked for */
    int32_t min, max;              /* the provider's own bounds; -1: none */
    bool in_progress;              /* the provider itself is still at work on the last change */
    char version[AS_VERSION_SIZE]; /* for a conditional change; "" where there is none */
    const char *controller;        /* another one that sets the size ("its own autoscaler"); NULL */
    const char *shortage;          /* why instances do not come, in the provider's words; NULL */
    as_maybe_time shortage_since;  /* not set: the reason is of now */
    const char *no_growth,
        *no_removal; /* why it cannot be changed so, as it is now; NULL: it can */
    /* "key=value": the provider does not name the instances. They are the nodes with this label,
     * each by what its providerID ends with; `instances` only counts them. NULL: `instances` are
     * they. */
    const char *node_label;
    struct as_instance *instances; /* as the provider lists them */
    size_t instance_count, instance_room;
};

enum as_group_verb {
    AS_GROUP_READ,      /* -> view */
    AS_GROUP_GROW,      /* to `to`, which is above `from` */
    AS_GROUP_REMOVE,    /* `instances` by name, with the size; it is `to` then */
    AS_GROUP_TAKE_BACK, /* to `to`: no lower than the instances that are there */
    AS_GROUP_POLL,      /* `operation` -> is_done; with a fault, too: it has failed for good */
    AS_GROUP_VERB_COUNT
};

struct as_group_talk {
    struct as_talk talk; /* the first member: a talk is cast to it */
    enum as_group_verb verb;
    /* given; borrowed */
    const struct as_provider_settings *account;
    const struct as_target_ref *group;
    const struct as_credentials *credentials; /* for region and project; never for secrets */
    int32_t from, to;
    const char *version;
    const char *const *instances; /* ids */
    const char *const *nodes;     /* the names of their nodes, NULL where not known; or NULL */
    size_t instance_count;
    const char *idempotency; /* the same for the same change: a ULID */
    const char *operation;   /* POLL: as it came from another verb */
    /* found; memory of the talk */
    struct as_group_view view;
    const char *started; /* the operation to be polled; NULL: none, it is done */
    bool has_begun; /* of a change of several requests one was accepted: a failure is in part */
    bool *are_gone; /* REMOVE: by `instances`, which were not there any more; NULL: none */
    bool is_done;   /* POLL: it is over; with a fault, it failed */
    void *state;    /* the provider's own; memory of the talk */
};

struct as_group_provider {
    struct as_provider_kind kind; /* the first member: the table is one of kinds */
    const char *service;          /* of signatures; NULL */
    /* A NULL name at the end. NULL, and `sign` too: as whom is said by http_config. */
    const struct as_credentials_source *credentials;
    as_sign_fn *sign;
    bool is_relative; /* what is asked for is "so many more": made twice it is twice as many */
    /* Requests go to the API server of the cluster that the option `cluster` names ("default"):
     * their URLs are paths, and the credentials are the cluster's. */
    bool is_kubernetes;
    void (*begin)(struct as_group_talk *talk); /* by its verb */
};

const struct as_group_provider *as_group_provider_find(const char *type);

/* Those that are there or on their way. */
int32_t as_group_count_coming(const struct as_group_view *view) AS_MUST_USE;
int32_t as_group_count_present(const struct as_group_view *view) AS_MUST_USE; /* and that failed */
int32_t as_group_count_running(const struct as_group_view *view) AS_MUST_USE;

/* Whether it is listed, and not leaving. */
bool as_group_is_present(const struct as_group_view *view, const char *id) AS_MUST_USE;

/* Of the instances that are to leave only those stay in the talk that the view, just read, still
 * has: what is gone or leaving is what was asked for. False after failing the talk: somebody else
 * has set another size since the removal was decided on, and too many might go. */
bool as_group_keep_present(struct as_group_talk *talk) AS_MUST_USE;

/* REMOVE: the provider says that it does not have this one of `instances` (any more): what it lists
 * is not waited for. */
void as_group_note_gone(struct as_group_talk *talk, size_t index);

/* Adds an instance to the view; texts are copied. False after failing the talk: too many. */
bool as_group_add_instance(struct as_group_talk *talk, const struct as_instance *instance);

#endif
