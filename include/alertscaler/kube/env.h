/*
 * What every target adapter receives: the ports that it uses, and access to its surroundings. All
 * of it is borrowed and outlives the adapter.
 */
#ifndef ALERTSCALER_KUBE_ENV_H
#define ALERTSCALER_KUBE_ENV_H

#include <alertscaler/decide/record.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/http.h>
#include <alertscaler/port/process.h>

/* Which changes to other systems are allowed now. */
enum as_permit {
    AS_PERMIT_ALL,
    AS_PERMIT_FINISH, /* only what ends in moments: the process is stopping */
    AS_PERMIT_UNDO,   /* only undoing our own changes: the kill switch is set */
    AS_PERMIT_NONE    /* nothing: another replica may lead by now */
};

typedef enum as_permit as_permit_fn(void *context);

/* Whether nodes of a target that are marked to leave may go on leaving now. After HOLD, `why_out`
 * is set. */
enum as_terminate_permit {
    AS_TERMINATE_GO,
    AS_TERMINATE_HOLD,
    AS_TERMINATE_GONE /* there is no such target any more: they stay */
};
typedef enum as_terminate_permit as_terminate_permit_fn(void *context, const char *target,
                                                        const char **why_out);
/* The other target that has the same node group by rules that were loaded since the decision for a
 * change of `target`; valid for the call. NULL: none. */
typedef const char *as_rival_fn(void *context, const char *target);
/* For the action log: what has happened to nodes. Borrowed for the call. */
typedef void as_nodes_record_fn(void *context, const struct as_nodes_record *record);

/* Who else aims at a target, after each look; count 0: nobody. Borrowed for the call. */
typedef void as_others_found_fn(void *context, const char *target, const struct as_other *others,
                                size_t count);

/* For people: one search for nodes with our marks, and for whose group is gone. */
struct as_nodes_recovery {
    const char *cluster;
    enum as_reason reason; /* AS_REASON_APPLIED; else why it has failed, with `error` */
    const char *error;
    unsigned undone; /* nodes that are back in service */
    bool is_clean;   /* in no cluster has a node a mark of ours */
};
typedef void as_nodes_recovered_fn(void *context, const struct as_nodes_recovery *recovery);

struct as_access_env {
    struct as_http *http;
    struct as_loop *loop;
    struct as_process_runner *runner;
    const struct as_clock *clock;
    /* The value of an environment variable, NULL if not set; as getenv. */
    const char *(*get_variable)(const char *name);
    /* The directory of the pod's service account; NULL: where Kubernetes mounts it. */
    const char *service_account_dir;
    /* During a long action, called right before each request that changes something. NULL: all is
     * permitted. */
    as_permit_fn *get_permit;
    as_terminate_permit_fn
        *get_terminate_permit;              /* before each step of a node that leaves; NULL: GO */
    as_rival_fn *find_rival;                /* before each request for a change; NULL: none */
    as_nodes_record_fn *record_nodes;       /* NULL: not recorded */
    as_others_found_fn *others_found;       /* NULL: it is not looked */
    as_nodes_recovered_fn *nodes_recovered; /* NULL: it is not reported */
    void *permit_context;
};

/* What the request fails with; one argument, the rival. */
#define AS_RIVAL_FORMAT                                                                            \
    "a reload has added target %s, which may be the same object and has precedence"

static inline enum as_permit as_access_get_permit(const struct as_access_env *env)
{
    return env->get_permit ? env->get_permit(env->permit_context) : AS_PERMIT_ALL;
}

static inline enum as_terminate_permit as_access_get_terminate_permit(
    const struct as_access_env *env, const char *target, const char **why_out)
{
    return env->get_terminate_permit
               ? env->get_terminate_permit(env->permit_context, target, why_out)
               : AS_TERMINATE_GO;
}

static inline const char *as_access_find_rival(const struct as_access_env *env, const char *target)
{
    return env->find_rival && target ? env->find_rival(env->permit_context, target) : NULL;
}

static inline const char *as_permit_explain(enum as_permit permit)
{
    static const char *const texts[] = {
        [AS_PERMIT_ALL] = "",
        [AS_PERMIT_FINISH] = "given up: alertscaler stops",
        [AS_PERMIT_UNDO] = "given up: the kill switch stops everything",
        [AS_PERMIT_NONE] = "given up: another may lead by now",
    };
    return texts[permit];
}

#endif
