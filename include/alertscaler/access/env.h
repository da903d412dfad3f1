/*
 * What every target adapter is given: the ports it acts through, and where it may look around. All
 * of it is borrowed and outlives the adapter.
 */
#ifndef ALERTSCALER_ACCESS_ENV_H
#define ALERTSCALER_ACCESS_ENV_H

#include <alertscaler/port/clock.h>
#include <alertscaler/port/http.h>
#include <alertscaler/port/loop.h>
#include <alertscaler/port/process.h>

/* What may be changed outside at this moment. */
enum as_permit {
    AS_PERMIT_ALL,
    AS_PERMIT_FINISH, /* what takes moments: the process stops */
    AS_PERMIT_UNDO,   /* what takes our own doing back: the kill switch is set */
    AS_PERMIT_NONE    /* another may lead by now */
};

typedef enum as_permit as_permit_fn(void *context);

struct as_access_env {
    struct as_http *http;
    struct as_loop *loop;
    struct as_process_runner *runner;
    const struct as_clock *clock;
    /* The value of an environment variable, NULL where it is not set; as getenv. */
    const char *(*get_variable)(const char *name);
    /* Where a pod finds its service account; NULL: where Kubernetes mounts it. */
    const char *service_account_dir;
    /* Asked right before each request that changes something in the course of an action that takes
     * long; NULL: all is permitted. */
    as_permit_fn *get_permit;
    void *permit_context;
};

static inline enum as_permit as_access_get_permit(const struct as_access_env *env)
{
    return env->get_permit ? env->get_permit(env->permit_context) : AS_PERMIT_ALL;
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
