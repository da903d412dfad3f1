/*
 * The HTTP client: curl's multi interface on libevent, by curl's own rules. Curl says which sockets
 * and which time to wait for; we report events to curl, but never from inside its callbacks.
 *
 * Invariants: a call is on exactly one list: that of its origin (waiting or running), or the ended
 * calls. While it is on its origin's list, it is in the origin's queue of its class. Only
 * on_deliver calls `done`. So `done` comes once, in a later turn than the start, and may safely
 * start or cancel calls.
 *
 * A streamed body goes through a buffer in the call: curl's callbacks fill it, and on_deliver hands
 * it over in a later turn, so that on_body too may start or cancel calls. When the buffer is full,
 * curl pauses the transfer until then. So a call costs a turn one part at most.
 *
 * The number of calls that run against one scheme, host and port is limited for each class. Curl's
 * own limit does not suffice: with it, calls to a server that hangs can block calls to other
 * servers.
 */
#include <alertscaler/http/client.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>
#define uthash_fatal(msg) abort() /* as for every small allocation */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/http/access_limits.h>

#include "call.h"

/*
 * Times in headers.
 */

int as_http_date_parse(const char *text, as_wall_time *time_out)
{
    struct tm date = {0};
    char normal[AS_RFC3339_SIZE];
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (!end || *end)
        return -EINVAL;
    size_t size = strftime(normal, sizeof(normal), "%Y-%m-%dT%H:%M:%SZ", &date);
    return as_wall_time_parse(normal, size, time_out);
}

int64_t as_retry_after_parse(const char *text, as_wall_time now)
{
    int64_t seconds;
    as_wall_time until;
    if (as_str_is_empty(text))
        return 0;
    if (as_number_parse_i64(text, strlen(text), &seconds) < 0) {
        if (as_http_date_parse(text, &until) < 0)
            return 0;
        seconds = (until.us - now.us) / AS_US_PER_S;
    }
    if (seconds <= 0)
        return 0;
    return seconds > AS_RETRY_AFTER_MAX_US / AS_US_PER_S ? AS_RETRY_AFTER_MAX_US
                                                         : seconds * AS_US_PER_S;
}

/*
 * The client.
 */

#define IDLE_CONNECTIONS 64L /* besides those of watches */

/* At one origin. Each cluster has three watches, and many clusters may be behind one address. Twice
 * as many watch for a moment when the configuration changes. Reviews and leases are limited where
 * they are made, so that none of them waits. */
static const unsigned places[AS_HTTP_CLASS_COUNT] = {
    [AS_HTTP_CALL] = 64,
    [AS_HTTP_REVIEW] = 32,
    [AS_HTTP_LEASE] = 8,
    [AS_HTTP_WATCH] = 1024,
};

struct as_http_origin { /* "https://host:port", as written in the URLs */
    struct as_http_client *client;
    char *name;
    struct as_http_call_list calls; /* waiting and running */
    struct as_fair_queue queues[AS_HTTP_CLASS_COUNT];
    UT_hash_handle hh;
};

struct as_http_client {
    struct as_http port; /* the first member: the port is cast to the client */
    struct event_base *base;
    CURLM *multi;
    struct event *timer, *deliver;
    struct as_http_origin *origins;
    struct as_http_call_list ended;
    struct as_http_call_list with_part; /* linked by part_link */
    long watch_count;                   /* calls of this class that run */
    uint64_t turn;                      /* of on_deliver */
    as_http_client_observer_fn *observer;
    void *context;
};

static struct event *make_event(struct as_http_client *client, evutil_socket_t fd, short what,
                                event_callback_fn callback, void *context)
{
    struct event *event = event_new(client->base, fd, what, callback, context);
    if (!event)
        abort(); /* a small allocation of ours */
    return event;
}

static void arm(struct event *timer, int64_t delay_us)
{
    struct timeval delay = {.tv_sec = delay_us / AS_US_PER_S, .tv_usec = delay_us % AS_US_PER_S};
    if (evtimer_add(timer, &delay) != 0)
        abort();
}

/* Returns the length up to the path, or to the end. */
static size_t measure_origin(const char *url)
{
    const char *host = strstr(url, "://");
    size_t scheme = host ? (size_t)(host - url) + 3 : 0;
    return scheme + strcspn(url + scheme, "/?#");
}

static struct as_http_origin *get_origin(struct as_http_client *client, const char *url)
{
    struct as_http_origin *origin;
    size_t size = measure_origin(url);
    HASH_FIND(hh, client->origins, url, size, origin);
    if (origin)
        return origin;
    origin = as_xcalloc(1, sizeof(*origin));
    origin->client = client;
    origin->name = as_xstrndup(url, size);
    TAILQ_INIT(&origin->calls);
    for (size_t i = 0; i < AS_HTTP_CLASS_COUNT; i++)
        as_fair_queue_init(&origin->queues[i], places[i]);
    HASH_ADD_KEYPTR(hh, client->origins, origin->name, size, origin);
    return origin;
}

static void drop_origin(struct as_http_client *client, struct as_http_origin *origin)
{
    if (!TAILQ_EMPTY(&origin->calls))
        return;
    HASH_DEL(client->origins, origin);
    free(origin->name);
    free(origin);
}

static void unlist_part(struct as_http_client *client, struct as_http_call *call)
{
    if (call->part_turn > 0)
        TAILQ_REMOVE(&client->with_part, call, part_link);
    call->part_turn = 0;
}

static void leave_origin(struct as_http_call *call)
{
    TAILQ_REMOVE(&call->origin->calls, call, link);
    as_fair_queue_remove(&call->origin->queues[call->class], &call->place);
}

/* Watches hold their connections: without this, curl would close the connection of each call that
 * ends while many watches run. */
static void count_watch(struct as_http_client *client, const struct as_http_call *call, long change)
{
    if (call->class != AS_HTTP_WATCH)
        return;
    client->watch_count += change;
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS + client->watch_count);
}

static void free_timer(struct event **timer)
{
    if (*timer)
        event_free(*timer);
    *timer = NULL;
}

/* Removes the call from its lists and from curl. Its origin may be left without calls. */
static void detach(struct as_http_client *client, struct as_http_call *call)
{
    unlist_part(client, call);
    switch (call->state) {
    case AS_HTTP_CALL_WAITING:
        leave_origin(call);
        free_timer(&call->wait_timer);
        break;
    case AS_HTTP_CALL_RUNNING:
        curl_multi_remove_handle(client->multi, call->easy);
        leave_origin(call);
        count_watch(client, call, -1);
        free_timer(&call->idle_timer);
        break;
    case AS_HTTP_CALL_ENDED: TAILQ_REMOVE(&client->ended, call, link); break;
    case AS_HTTP_CALL_TELLING: break;
    }
    call->origin = NULL;
}

/* The call is settled; `done` is called in a later turn. */
static void end(struct as_http_client *client, struct as_http_call *call)
{
    call->state = AS_HTTP_CALL_ENDED;
    call->ended_us = as_http_call_now();
    call->ended_turn = client->turn;
    TAILQ_INSERT_TAIL(&client->ended, call, link);
    arm(client->deliver, 0);
}

/* There is a part to hand over, in a later turn. Called from curl's callbacks. */
static void wake(struct as_http_call *call)
{
    struct as_http_client *client = call->origin->client;
    call->has_part = true;
    if (call->part_turn > 0)
        return;
    call->part_turn = client->turn;
    TAILQ_INSERT_TAIL(&client->with_part, call, part_link);
    arm(client->deliver, 0);
}

static void on_idle(evutil_socket_t fd, short what, void *context);

/* Gives a call that waited, and has a place now, to curl. */
static void run(struct as_http_client *client, struct as_http_call *call)
{
    int64_t left_ms = (call->deadline_us - as_http_call_now() + 999) / 1000;
    CURLcode code =
        curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, left_ms > 1 ? (long)left_ms : 1L);
    if (code != CURLE_OK || curl_multi_add_handle(client->multi, call->easy) != CURLM_OK) {
        as_http_call_settle_unsent(call, "out of memory");
        detach(client, call);
        end(client, call);
        return;
    }
    free_timer(&call->wait_timer);
    call->state = AS_HTTP_CALL_RUNNING;
    count_watch(client, call, 1);
    if (call->idle_us <= 0)
        return;
    call->heard_us = as_http_call_now();
    call->idle_timer = make_event(client, -1, 0, on_idle, call);
    arm(call->idle_timer, call->idle_us);
}

/* Starts the waiting calls for which there are places. */
static void go_on(struct as_http_client *client, struct as_http_origin *origin,
                  enum as_http_class class)
{
    struct as_fair_item *item;
    while ((item = as_fair_queue_take(&origin->queues[class])))
        run(client, (struct as_http_call *)(void *)item);
    drop_origin(client, origin);
}

static void conclude(struct as_http_client *client, struct as_http_call *call, CURLcode result)
{
    struct as_http_origin *origin = call->origin;
    as_http_call_settle(call, result);
    detach(client, call);
    end(client, call);
    go_on(client, origin, call->class);
}

static void on_idle(evutil_socket_t fd, short what, void *context)
{
    struct as_http_call *call = context;
    int64_t left_us = as_time_add(call->heard_us, call->idle_us) - as_http_call_now();
    if (left_us > 0) {
        arm(call->idle_timer, left_us);
        return;
    }
    snprintf(call->error, sizeof(call->error), "no byte has arrived for %lld ms",
             (long long)(call->idle_us / AS_US_PER_MS));
    conclude(call->origin->client, call, CURLE_OPERATION_TIMEDOUT);
}

static void collect(struct as_http_client *client)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(client->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result;
        char *owner = NULL;
        if (curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner) != CURLE_OK)
            abort(); /* the URL was set */
        conclude(client, (struct as_http_call *)(void *)owner, result);
    }
}

static void on_socket_ready(evutil_socket_t fd, short what, void *context)
{
    struct as_http_client *client = context;
    int flags = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    int running;
    curl_multi_socket_action(client->multi, fd, flags, &running);
    collect(client);
}

static void on_time(evutil_socket_t fd, short what, void *context)
{
    struct as_http_client *client = context;
    int running;
    curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(client);
}

/* Curl says what to wait for on a socket; curl keeps our event as the socket's data. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct as_http_client *client = context;
    struct event *event = socket_context;
    if (event)
        event_free(event);
    event = NULL;
    short flags =
        (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
    if (what != CURL_POLL_REMOVE && flags) {
        event = make_event(client, fd, (short)(flags | EV_PERSIST), on_socket_ready, client);
        if (event_add(event, NULL) != 0)
            abort();
    }
    curl_multi_assign(client->multi, fd, event);
    return 0;
}

static int watch_time(CURLM *multi, long timeout_ms, void *context)
{
    struct as_http_client *client = context;
    if (timeout_ms < 0)
        evtimer_del(client->timer);
    else
        arm(client->timer, timeout_ms * AS_US_PER_MS);
    return 0;
}

static void observe(struct as_http_client *client, const struct as_http_call *call)
{
    static const char *const names[] = {[AS_HTTP_UNREACHABLE] = "unreachable",
                                        [AS_HTTP_BROKEN] = "broken",
                                        [AS_HTTP_TIMEOUT] = "timeout",
                                        [AS_HTTP_TOO_LARGE] = "too_large"};
    char status[12];
    snprintf(status, sizeof(status), "%d", call->status);
    const char *code = call->outcome == AS_HTTP_ANSWERED ? status : names[call->outcome];
    if (client->observer && call->client_name)
        client->observer(client->context, call->client_name, call->operation, code,
                         call->ended_us - call->started_us);
}

static void cancel(struct as_http *self, struct as_http_call *call);

/* Hands over the call's part, if there is one. False: on_body has cancelled the call. */
static bool hand_over(struct as_http_client *client, struct as_http_call *call, bool *refused_out)
{
    *refused_out = call->has_part && !as_http_call_hand_over(call);
    if (!call->is_cancelled)
        return true;
    cancel(&client->port, call);
    return false;
}

/* The next part of a running call, and then the transfer goes on. */
static void feed(struct as_http_client *client, struct as_http_call *call)
{
    bool is_refused;
    CURLcode code = CURLE_OK;
    unlist_part(client, call);
    if (!hand_over(client, call, &is_refused))
        return;
    if (is_refused) {
        conclude(client, call, CURLE_WRITE_ERROR);
        as_http_call_settle_refused(call);
    } else if (call->is_paused) {
        call->is_paused = false;
        code = curl_easy_pause(call->easy, CURLPAUSE_CONT); /* calls take_part, which may wake */
    }
    if (code != CURLE_OK)
        conclude(client, call, code);
}

static void on_deliver(evutil_socket_t fd, short what, void *context)
{
    struct as_http_client *client = context;
    struct as_http_call *call;
    client->turn++;
    while ((call = TAILQ_FIRST(&client->with_part)) && call->part_turn < client->turn)
        feed(client, call);
    /* A call that ends now, because its start fails at once, waits for the next turn. */
    while ((call = TAILQ_FIRST(&client->ended)) && call->ended_turn < client->turn) {
        struct as_http_response response;
        bool is_refused;
        if (!hand_over(client, call, &is_refused))
            continue;
        if (is_refused && call->outcome == AS_HTTP_ANSWERED)
            as_http_call_settle_refused(call);
        detach(client, call);
        call->state = AS_HTTP_CALL_TELLING;
        observe(client, call);
        as_http_call_get_response(call, &response);
        call->done(call->context, &response);
        as_http_call_free(call);
    }
}

static void on_waited(evutil_socket_t fd, short what, void *context)
{
    struct as_http_call *call = context;
    struct as_http_origin *origin = call->origin;
    struct as_http_client *client = origin->client;
    detach(client, call);
    as_http_call_settle_unsent(call, "timed out waiting for other requests to the same server");
    end(client, call);
    drop_origin(client, origin);
}

/* The call waits, and may run at once. */
static void enter_origin(struct as_http_client *client, const struct as_http_request *request,
                         struct as_http_call *call)
{
    struct as_http_origin *origin = get_origin(client, request->url);
    call->state = AS_HTTP_CALL_WAITING;
    call->origin = origin;
    TAILQ_INSERT_TAIL(&origin->calls, call, link);
    as_fair_queue_add(&origin->queues[call->class], &call->place, &request->flow);
    go_on(client, origin, call->class);
    if (call->state != AS_HTTP_CALL_WAITING)
        return;
    call->wait_timer = make_event(client, -1, 0, on_waited, call);
    arm(call->wait_timer, call->deadline_us - call->started_us);
}

static struct as_http_call *start(struct as_http *self, const struct as_http_request *request,
                                  as_http_done_fn *done, void *context)
{
    struct as_http_client *client = (struct as_http_client *)(void *)self;
    struct as_http_call *call = as_http_call_new(request, done, context);
    call->wake = wake;
    call->started_us = as_http_call_now();
    call->deadline_us = as_time_add(call->started_us, request->timeout_us);
    if (call->error[0] != '\0') {
        as_http_call_settle_unsent(call, call->error);
        end(client, call);
        return call;
    }
    enter_origin(client, request, call);
    return call;
}

static void cancel(struct as_http *self, struct as_http_call *call)
{
    struct as_http_client *client = (struct as_http_client *)(void *)self;
    struct as_http_origin *origin = call->origin;
    const enum as_http_class class = call->class;
    if (call->state == AS_HTTP_CALL_TELLING)
        return; /* too late: the call is ending already */
    if (call->is_handing) {
        call->is_cancelled = true; /* hand_over cancels the call */
        return;
    }
    detach(client, call);
    as_http_call_free(call);
    if (origin)
        go_on(client, origin, class);
}

struct as_http_client *as_http_client_new(struct event_base *base,
                                          as_http_client_observer_fn *observer, void *context)
{
    struct as_http_client *client = as_xcalloc(1, sizeof(*client));
    client->port = (struct as_http){.start = start, .cancel = cancel};
    client->base = base;
    client->observer = observer;
    client->context = context;
    client->turn = 1;
    TAILQ_INIT(&client->ended);
    TAILQ_INIT(&client->with_part);
    client->timer = make_event(client, -1, 0, on_time, client);
    client->deliver = make_event(client, -1, 0, on_deliver, client);
    if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, as_library_malloc, free, as_library_realloc,
                             as_library_strdup, as_library_calloc) != CURLE_OK ||
        !(client->multi = curl_multi_init()))
        abort(); /* a small allocation of ours */
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, watch_time);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
    return client;
}

struct as_http *as_http_client_get_port(struct as_http_client *client)
{
    return &client->port;
}

struct as_http_client *as_http_client_free(struct as_http_client *client)
{
    struct as_http_origin *origin, *next;
    struct as_http_call *call;
    if (!client)
        return NULL;
    while ((call = TAILQ_FIRST(&client->ended)))
        cancel(&client->port, call);
    HASH_ITER (hh, client->origins, origin, next) {
        while ((call = TAILQ_FIRST(&origin->calls))) {
            detach(client, call);
            as_http_call_free(call);
        }
        drop_origin(client, origin);
    }
    curl_multi_cleanup(client->multi); /* calls watch_socket for its sockets */
    curl_global_cleanup();
    event_free(client->timer);
    event_free(client->deliver);
    free(client);
    return NULL;
}
