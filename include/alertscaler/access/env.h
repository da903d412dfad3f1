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

struct as_access_env {
    struct as_http *http;
    struct as_loop *loop;
    struct as_process_runner *runner;
    const struct as_clock *clock;
    /* The value of an environment variable, NULL where it is not set; as getenv. */
    const char *(*get_variable)(const char *name);
    /* Where a pod finds its service account; NULL: where Kubernetes mounts it. */
    const char *service_account_dir;
};

#endif
