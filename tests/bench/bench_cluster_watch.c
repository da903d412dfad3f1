/*
 * How long a turn of the event loop lasts while a large cluster is listed: 5,000 nodes and 100,000
 * pods, over a socket, from a server that has every answer in memory. Prints the longest turn of
 * each phase, by the processor time of the loop's thread; the bound is 5 ms.
 *
 * bench_cluster_watch serve: only the server, for bench_facts.py; its port on the standard output.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <alertscaler/http/client.h>
#include <alertscaler/http/loop.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_client.h>

#include <alertscaler/kube/cluster_watch.h>
#include <alertscaler/kube/nodes_see.h>

#include "clock.h"
#include "cluster_objects.h"

#define PAGE        500
#define PAGES       (BENCH_PODS / PAGE)
#define PAGE_MAX    ((size_t)8 << 20)
#define TURN_MS_MAX 5.0
#define EVENTS      100000 /* of pods, after the list */

/* ---- the server: a thread a connection ---- */

#define RESOURCES                                                                                  \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":"         \
    "\"deployments\",\"kind\":\"Deployment\",\"namespaced\":true},{\"name\":\"deployments/"        \
    "scale\","                                                                                     \
    "\"kind\":\"Scale\",\"group\":\"autoscaling\",\"version\":\"v1\",\"namespaced\":true}]}"
#define SCALE                                                                                      \
    "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"dns\","        \
    "\"namespace\":\"kube-system\",\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":50},"         \
    "\"status\":"                                                                                  \
    "{\"replicas\":50}}"

static struct as_buf node_pages[BENCH_NODES / PAGE], pod_pages[PAGES], budget_page;

static void make_page(struct as_buf *page, const char *kind, int number, int pages,
                      void (*make)(struct as_buf *, int))
{
    AS_CLEANUP(as_buf_deinit) struct as_buf items = AS_BUF_INIT(PAGE_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf item = AS_BUF_INIT(PAGE_MAX);
    as_buf_printf(&items, "{\"kind\":\"%sList\",\"apiVersion\":\"v1\",\"metadata\":{", kind);
    as_buf_printf(&items, "\"resourceVersion\":\"1\"");
    if (number + 1 < pages)
        as_buf_printf(&items, ",\"continue\":\"%d\"", number + 1);
    as_buf_append_str(&items, "},\"items\":[");
    for (int i = number * PAGE; i < (number + 1) * PAGE; i++) {
        make(&item, i);
        as_buf_append_str(&items, i > number * PAGE ? "," : "");
        as_buf_append(&items, item.data, item.size);
    }
    as_buf_append_str(&items, "]}");
    *page = AS_BUF_INIT(PAGE_MAX);
    as_buf_printf(page,
                  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n",
                  items.size);
    as_buf_append(page, items.data, items.size);
    if (page->failed || items.failed)
        abort();
}

static void make_running_pod(struct as_buf *out, int number)
{
    make_pod(out, number, "Running");
}

static void write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = write(fd, bytes, size);
        if (sent <= 0)
            pthread_exit(NULL);
        bytes += sent;
        size -= (size_t)sent;
    }
}

/* Of pods, events as fast as they are taken; of the others none. It never ends. */
static void serve_watch(int fd, bool is_pods)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    AS_CLEANUP(as_buf_deinit) struct as_buf item = AS_BUF_INIT(PAGE_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf event = AS_BUF_INIT(PAGE_MAX);
    write_all(fd, head, sizeof(head) - 1);
    for (int i = 0; is_pods && i < EVENTS; i++) {
        as_buf_clear(&event);
        make_pod(&item, i, i % 2 ? "Running" : "Pending");
        as_buf_printf(&event, "{\"type\":\"MODIFIED\",\"object\":%s}\n", item.data);
        write_all(fd, event.data, event.size);
    }
    pause();
}

/* For bench_facts.py: the target whose rule reads the nodes. */
static void serve_object(int fd, const char *json)
{
    dprintf(fd,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            strlen(json), json);
}

static void serve_list(int fd, const char *path)
{
    const char *next = strstr(path, "continue=");
    const size_t page = next ? (size_t)atoi(next + strlen("continue=")) : 0;
    const struct as_buf *answer = strstr(path, "/nodes?")  ? &node_pages[page]
                                  : strstr(path, "/pods?") ? &pod_pages[page]
                                                           : &budget_page;
    write_all(fd, answer->data, answer->size);
}

static void *serve(void *context)
{
    const int fd = (int)(intptr_t)context;
    char request[8192];
    size_t size = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    for (;;) {
        const ssize_t got = read(fd, request + size, sizeof(request) - 1 - size);
        if (got <= 0)
            break;
        size += (size_t)got;
        request[size] = '\0';
        if (!strstr(request, "\r\n\r\n"))
            continue;
        *strchr(request, '\r') = '\0';
        size = 0;
        if (strstr(request, "watch=true"))
            serve_watch(fd, strstr(request, "/pods?") != NULL);
        else if (strstr(request, "/scale"))
            serve_object(fd, SCALE);
        else if (strstr(request, "/apis/apps/v1"))
            serve_object(fd, RESOURCES);
        else
            serve_list(fd, request);
    }
    close(fd);
    return NULL;
}

/* Writes its port once it has everything in memory. */
static void run_server(int listener, uint16_t port, int out)
{
    for (int i = 0; i < BENCH_NODES / PAGE; i++)
        make_page(&node_pages[i], "Node", i, BENCH_NODES / PAGE, make_node);
    for (int i = 0; i < PAGES; i++)
        make_page(&pod_pages[i], "Pod", i, PAGES, make_running_pod);
    make_page(&budget_page, "PodDisruptionBudget", 0, 1, make_budget);
    dprintf(out, "%u\n", port);
    for (;;) {
        pthread_t thread;
        const int fd = accept(listener, NULL, NULL);
        if (fd < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
            abort();
        pthread_detach(thread);
    }
}

static int open_listener(uint16_t *port_out)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        abort();
    *port_out = ntohs(address.sin_port);
    return fd;
}

/* ---- the client ---- */

static as_mono_time get_mono(const struct as_clock *self)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (as_mono_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static as_wall_time get_wall(const struct as_clock *self)
{
    return (as_wall_time){get_mono(self).us + AS_US_PER_DAY * 20000};
}

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static struct event_base *base;
static struct as_nodes_seer *seer;
static bool is_told;
static bool has_failed;

static void ask(struct as_cluster_watch *watch);

static void told(void *context, const struct as_cluster *cluster, const struct as_error *error)
{
    struct as_nodes_seen seen;
    if (!cluster) { /* after 15 s, on a machine that is busy with something else */
        fprintf(stderr, "%s\n", error->text);
        ask(context);
        return;
    }
    is_told = true;
    as_nodes_see(seer, &(struct as_nodes_see_request){.cluster = cluster}, &seen);
}

static void ask(struct as_cluster_watch *watch)
{
    if (!as_cluster_watch_ask(watch, told, watch))
        abort();
}

/* Turns until `is_told`, or for `seconds`. */
static void run(const char *phase, double seconds, bool must_be_told)
{
    double longest = 0, sum = 0;
    unsigned turns = 0;
    const int64_t start_us = get_mono(NULL).us, end_us = start_us + (int64_t)(seconds * 1e6);
    is_told = false;
    while (!is_told && get_mono(NULL).us < end_us) {
        const double start = clock_get_seconds();
        event_base_loop(base, EVLOOP_ONCE);
        const double turn = clock_get_seconds() - start;
        longest = turn > longest ? turn : longest;
        sum += turn;
        turns++;
    }
    printf("cluster watch: %s: longest turn %.2f ms (at most %.0f); %u turns, %.2f s in %.2f s\n",
           phase, longest * 1e3, TURN_MS_MAX, turns, sum,
           (double)(get_mono(NULL).us - start_us) / 1e6);
    has_failed = has_failed || longest * 1e3 > TURN_MS_MAX || (must_be_told && !is_told);
}

static void wake(void *context)
{
}

static void watch_cluster(struct as_kube_client *client)
{
    struct as_cluster_watch *watch = as_cluster_watch_new(client);
    struct as_loop *loop = client->env->loop;
    ask(watch);
    run("the lists, and the first answer", 60, true);
    struct as_timer *timer = loop->start_timer(loop, 3 * AS_US_PER_S, wake, NULL);
    run("events of pods", 2, false);
    loop->cancel_timer(loop, timer);
    ask(watch);
    run("an answer between events", 60, true);
    as_cluster_watch_free(watch);
}

static int measure(uint16_t port)
{
    char path[] = "/tmp/bench-cluster-watch-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0)
        abort();
    dprintf(fd,
            "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":"
            "\"c\",\"user\":\"u\"}}],\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":"
            "\"http://127.0.0.1:%u\"}}],\"users\":[{\"name\":\"u\",\"user\":{}}]}",
            port);
    close(fd);
    base = event_base_new();
    struct as_http_client *http = as_http_client_new(base, NULL, NULL);
    struct as_event_loop *loop = as_event_loop_new(base);
    const struct as_clock clock = {get_mono, get_wall};
    const struct as_access_env env = {.http = as_http_client_get_port(http),
                                      .loop = as_event_loop_get_port(loop),
                                      .clock = &clock,
                                      .get_variable = get_variable};
    const struct as_kube_access_config config = {path, NULL};
    struct as_kube_access *access;
    struct as_error error = AS_ERROR_INIT;
    const int status = as_kube_access_new(&config, &env, &access, &error);
    unlink(path);
    if (status < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    struct as_kube_client client;
    as_kube_client_init(&client, &env, access);
    seer = as_nodes_seer_new();
    watch_cluster(&client);
    as_nodes_seer_free(seer);
    as_kube_client_deinit(&client);
    as_kube_access_free(access);
    as_event_loop_free(loop);
    as_http_client_free(http);
    event_base_free(base);
    return has_failed;
}

int main(int argc, char **argv)
{
    uint16_t port;
    int ready[2];
    char byte;
    const int listener = open_listener(&port);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        run_server(listener, port, STDOUT_FILENO);
    if (pipe(ready) < 0)
        abort();
    const pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_server(listener, port, ready[1]);
    }
    const int status = read(ready[0], &byte, 1) == 1 ? measure(port) : 1;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return status;
}
