/*
 * Which connection must go when there are too many connections, bodies or unsent answers.
 *
 * The newest always gets a place, and whoever had its chance for longest loses it. So a peer that
 * sends its request at once is answered, however many others hold connections; unless more new ones
 * come during its request than there are places.
 */
#include <assert.h>
#include <stdlib.h>

#include <event2/event.h>

#include <alertscaler/base/log.h>
#include <alertscaler/base/throttle.h>

#include "connection.h"

#define SMALL_BODY   ((size_t)64 * 1024) /* below this, not worth an answer of 503 */
#define STATES(list) (list), AS_ARRAY_SIZE(list)

static const struct drop_kind {
    const char *name, *event;
} drop_kinds[] = {
    [AS_HTTP_DROP_HANDSHAKE] = {"handshake", "TLS handshakes failed"},
    [AS_HTTP_DROP_LIMIT] = {"limit", "connections closed to make room for others"},
};

static bool log_losses(const void *context, const struct as_throttle *losses)
{
    const struct drop_kind *kind = context;
    as_log(AS_LOG_WARN, kind->event, AS_FI("count", losses->count),
           AS_F("last_remote", losses->remote), AS_F("last_reason", losses->error));
    return true;
}

static as_mono_time get_now(void)
{
    return (as_mono_time){as_http_server_now()};
}

/* The timer runs while there are losses that are not yet logged. */
static void watch_losses(struct as_http_server *server)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++) {
        const int64_t wait = as_throttle_get_wait(&server->losses[i], get_now());
        const struct timeval delay = {wait / AS_US_PER_S, wait % AS_US_PER_S + 1};
        if (wait >= 0 && !evtimer_pending(server->losses_timer, NULL) &&
            evtimer_add(server->losses_timer, &delay) != 0)
            as_log(AS_LOG_ERROR, "cannot set a timer", AS_FI("delay_us", wait));
    }
}

static void on_losses(evutil_socket_t fd, short what, void *context)
{
    struct as_http_server *server = context;
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++)
        as_throttle_look(&server->losses[i], get_now());
    watch_losses(server);
}

void as_http_server_init_losses(struct as_http_server *server)
{
    server->losses_timer = evtimer_new(server->base, on_losses, server);
    if (!server->losses_timer)
        abort(); /* at the start, and only without memory */
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++)
        server->losses[i] =
            AS_THROTTLE_INIT(server->config.losses_every_us, log_losses, &drop_kinds[i]);
}

void as_http_server_deinit_losses(struct as_http_server *server)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++)
        as_throttle_end(&server->losses[i], get_now());
    event_free(server->losses_timer);
}

void as_connection_drop(struct as_connection *connection, enum as_http_drop kind, const char *error)
{
    assert(connection); /* the sum says that some connection holds memory */
    struct as_http_server *server = connection->server;
    as_throttle_add(&server->losses[kind], connection->exchange.remote, error, get_now());
    watch_losses(server);
    as_connection_enter(connection, AS_CONNECTION_CLOSED);
    if (server->handler.dropped)
        server->handler.dropped(server->handler.context, drop_kinds[kind].name);
}

static struct as_connection *find_oldest(struct as_http_server *server,
                                         const enum as_connection_state *states, size_t count)
{
    struct as_connection *oldest = NULL;
    for (size_t i = 0; i < count; i++) {
        struct as_connection *first = TAILQ_FIRST(&server->queues[states[i]].list);
        if (first && (!oldest || first->entered_us < oldest->entered_us))
            oldest = first;
    }
    return oldest;
}

/* Idle connections lose only the handshake. Still they are spared while most others have not sent a
 * request: otherwise a flood of silent connections would close those of all regular peers. */
static struct as_connection *find_dispensable(struct as_http_server *server)
{
    static const enum as_connection_state unproven[] = {AS_CONNECTION_FRESH, AS_CONNECTION_HEAD};
    static const enum as_connection_state idle[] = {AS_CONNECTION_IDLE};
    static const enum as_connection_state others[] = {AS_CONNECTION_FRESH, AS_CONNECTION_HEAD,
                                                      AS_CONNECTION_BODY, AS_CONNECTION_WRITING,
                                                      AS_CONNECTION_LINGERING};
    unsigned count =
        server->queues[AS_CONNECTION_FRESH].count + server->queues[AS_CONNECTION_HEAD].count;
    struct as_connection *found = NULL;
    if (count > server->config.max_connections / 2)
        found = find_oldest(server, STATES(unproven));
    if (!found)
        found = find_oldest(server, STATES(idle));
    return found ? found : find_oldest(server, STATES(others));
}

bool as_http_server_make_room(struct as_http_server *server)
{
    unsigned owed = server->queues[AS_CONNECTION_ADMITTING].count +
                    server->queues[AS_CONNECTION_HANDLING].count;
    if (owed >= server->config.max_connections)
        return false; /* connections that are owed a reply stay */
    while (server->connections >= server->config.max_connections)
        as_connection_drop(find_dispensable(server), AS_HTTP_DROP_LIMIT,
                           "as many connections as receiver.max_connections allows");
    return true;
}

void as_connection_count_body(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    const char *sender = connection->exchange.sender;
    size_t held = connection->exchange.body.capacity;
    server->bodies_held += held - connection->body_held; /* modulo 2^64 */
    as_shares_give(&server->shares, connection->share, connection->body_held);
    connection->share = held > 0 ? as_shares_take(&server->shares, sender, held) : NULL;
    connection->body_held = held;
}

/* With a share: one of its bodies. */
static struct as_connection *find_oldest_body(struct as_http_server *server,
                                              const struct as_connection *but,
                                              const struct as_share *share)
{
    struct as_connection *connection;
    TAILQ_FOREACH (connection, &server->queues[AS_CONNECTION_BODY].list, link)
        if (connection != but && connection->body_held > SMALL_BODY &&
            (!share || connection->share == share))
            return connection;
    return NULL;
}

/* While narrowed credentials have more than half of the memory, that with most of it makes room. */
static struct as_connection *find_large_body(struct as_http_server *server,
                                             const struct as_connection *but)
{
    const struct as_share *largest = server->shares.held > server->config.max_bodies / 2
                                         ? as_shares_find_largest(&server->shares)
                                         : NULL;
    struct as_connection *found = find_oldest_body(server, but, largest);
    if (found || !largest || but->share == largest)
        return found;
    return find_oldest_body(server, but, NULL);
}

bool as_http_server_fits_body(struct as_http_server *server, struct as_connection *newest)
{
    struct as_connection *oldest;
    while (server->bodies_held > server->config.max_bodies &&
           (oldest = find_large_body(server, newest))) {
        as_buf_deinit(&oldest->exchange.body);
        as_connection_count_body(oldest);
        as_connection_refuse(oldest, 503, "too many large requests at once");
    }
    return server->bodies_held <= server->config.max_bodies || newest->body_held <= SMALL_BODY;
}

void as_connection_count_unsent(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    static const enum as_connection_state writing[] = {AS_CONNECTION_WRITING};
    connection->unsent = as_stream_count_unsent(&connection->stream);
    server->unsent += connection->unsent;
    while (server->unsent > server->config.max_unsent)
        as_connection_drop(find_oldest(server, STATES(writing)), AS_HTTP_DROP_LIMIT,
                           "answers that their peers do not read take too much memory");
}
