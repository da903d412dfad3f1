/*
 * The HTTP server's cost for a POST of 600 bytes before the handler, and its rate on one core: wrk
 * on another core, kept connections, a handler that only answers. The bound: 60,000 requests for
 * each second of processor time.
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/http/server.h>

#include "clock.h"

#define SECONDS        "2"
#define PER_CPU_SECOND 60000
#define SKIPPED        77 /* meson's word for it */

extern char **environ;
static uint64_t requests;

static enum as_http_admission admit(void *context, struct as_http_exchange *exchange)
{
    return AS_HTTP_ADMITTED;
}

static void handle(void *context, struct as_http_exchange *exchange)
{
    static const char body[] =
        "{\"alerts\":[{\"fingerprint\":\"7be9cc40aa9853c5\",\"outcome\":\"repeat\"}]}\n";
    requests++;
    as_http_exchange_reply(exchange, &(struct as_http_answer){.status = 200,
                                                              .content_type = "application/json",
                                                              .body = body,
                                                              .body_size = sizeof(body) - 1});
}

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    sched_setaffinity(0, sizeof(set), &set); /* where there is only one, they share it */
}

static pid_t start_wrk(const char *connections, uint16_t port, const char *script)
{
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/webhook", port);
    const char *const arguments[] = {"wrk", "-t1",  "-d" SECONDS, "-c", connections,
                                     "-s",  script, url,          NULL};
    pid_t child;
    run_on(1);
    int result =
        posix_spawnp(&child, "wrk", NULL, NULL, (char *const *)(uintptr_t)arguments, environ);
    run_on(0);
    return result == 0 ? child : -1;
}

static void on_child(evutil_socket_t signal_number, short what, void *context)
{
    event_base_loopbreak(context);
}

/* 0, 1 where the bound is broken, or SKIPPED. */
static int measure(struct event_base *base, uint16_t port, const char *connections,
                   const char *script)
{
    pid_t child = start_wrk(connections, port, script);
    if (child < 0) {
        printf("wrk is not installed\n");
        return SKIPPED;
    }
    requests = 0;
    double began = clock_get_seconds();
    event_base_dispatch(base);
    double worked = clock_get_seconds() - began;
    int status;
    if (waitpid(child, &status, 0) != child || status != 0 || requests == 0) {
        printf("wrk failed\n");
        return 1;
    }
    double rate = (double)requests / worked;
    printf("== %s connections: %" PRIu64 " requests, %.2f us each, %.0f per second of one core\n\n",
           connections, requests, worked / (double)requests * 1e6, rate);
    return rate < PER_CPU_SECOND;
}

int main(int argc, char **argv)
{
    struct event_base *base = event_base_new();
    struct as_http_server_config config = as_http_server_config_default;
    config.listen_address = "127.0.0.1:0";
    const struct as_http_handler handler = {.admit = admit, .handle = handle};
    struct as_http_server *server;
    struct as_error error = AS_ERROR_INIT;
    struct event *child = base ? evsignal_new(base, SIGCHLD, on_child, base) : NULL;
    if (argc != 2 || !child || evsignal_add(child, NULL) != 0 ||
        as_http_server_new(base, &config, &handler, &server, &error) != 0) {
        fprintf(stderr, "usage: bench_server POST.LUA  %s\n", error.text);
        return 1;
    }
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int result = measure(base, as_http_server_get_port(server), "10", argv[1]);
    if (result == 0)
        result = measure(base, as_http_server_get_port(server), "100", argv[1]);
    as_http_server_free(server);
    event_free(child);
    event_base_free(base);
    return result;
}
