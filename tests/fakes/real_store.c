/*
 * A store in a real API server: see the header.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/http/client.h>
#include <alertscaler/http/loop.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_store.h>

#include "real_store.h"

struct outside {
    struct event_base *base;
    struct as_http_client *client;
    struct as_event_loop *loop;
    struct as_event_processes *processes;
    struct as_access_env env;
};

static as_mono_time get_mono(const struct as_clock *self)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (as_mono_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static as_wall_time get_wall(const struct as_clock *self)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static const struct as_clock real_clock = {get_mono, get_wall};

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static void turn(void *context)
{
    if (event_base_loop(((struct outside *)context)->base, EVLOOP_ONCE) != 0)
        abort();
}

static void closed(void *context)
{
    struct outside *outside = context;
    as_event_processes_free(outside->processes);
    as_event_loop_free(outside->loop);
    as_http_client_free(outside->client);
    event_base_free(outside->base);
    free(outside);
}

int real_store_open(const char *kubeconfig, const char *namespace_, const char *holder,
                    struct as_store **store_out, struct as_error *error)
{
    const struct as_kube_access_config where = {kubeconfig, NULL};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct outside *outside = as_xcalloc(1, sizeof(*outside));
    sigaction(SIGPIPE, &ignore, NULL);
    outside->base = event_base_new();
    outside->client = as_http_client_new(outside->base, NULL, NULL);
    outside->loop = as_event_loop_new(outside->base);
    outside->processes = as_event_processes_new(outside->base);
    outside->env = (struct as_access_env){
        .http = as_http_client_get_port(outside->client),
        .loop = as_event_loop_get_port(outside->loop),
        .runner = as_event_processes_get_port(outside->processes),
        .clock = &real_clock,
        .get_variable = get_variable,
    };
    struct as_store_kubernetes_config config = {
        .namespace_ = namespace_,
        .holder = holder,
        .env = &outside->env,
        .turn = turn,
        .closed = closed,
        .context = outside,
    };
    int code = getentropy(&config.seed, sizeof(config.seed));
    if (code == 0)
        code = as_kube_access_new(&where, &outside->env, &config.access, error);
    if (code) {
        closed(outside);
        return code;
    }
    return as_store_kubernetes_open(&config, store_out, error);
}
