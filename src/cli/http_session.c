/*
 * An event loop that runs only during a request.
 */
#include "http_session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/monitoring/http_auth.h>
#include <alertscaler/port/http.h>

#define TIMEOUT_US (5 * AS_US_PER_MIN)

struct http_session {
    const struct as_adapters *adapters;
    char *url; /* without a trailing slash */
    struct event_base *base;
    struct as_outside *outside;
    struct as_http_auth *auth;
    /* the present request */
    bool is_done;
    struct as_buf *body;
    struct as_error *error;
    int outcome;
};

static as_mono_time get_mono(const struct as_clock *self)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (as_mono_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static as_wall_time get_wall(const struct as_clock *self)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

const struct as_clock session_clock = {.get_mono = get_mono, .get_wall = get_wall};

void session_ignore_transfer(void *context, const char *client_name, const char *operation,
                             const char *code, int64_t duration_us)
{
}

struct http_session *http_session_open(const struct as_adapters *adapters, const char *url,
                                       const struct as_http_settings *http)
{
    struct http_session *session = as_xcalloc(1, sizeof(*session));
    size_t size = strlen(url);
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGPIPE, &ignore, NULL);
    while (size > 0 && url[size - 1] == '/')
        size--;
    session->adapters = adapters;
    session->url = as_xstrndup(url, size);
    session->base = event_base_new();
    if (!session->base)
        abort();
    session->outside =
        adapters->new_outside(session->base, &session_clock, session_ignore_transfer, NULL);
    session->auth = as_http_auth_new(http, &session_clock);
    return session;
}

struct http_session *http_session_close(struct http_session *session)
{
    if (!session)
        return NULL;
    as_http_auth_free(session->auth);
    session->adapters->free_outside(session->outside);
    event_base_free(session->base);
    free(session->url);
    free(session);
    return NULL;
}

static void on_done(void *context, const struct as_http_response *response)
{
    struct http_session *session = context;

    session->is_done = true;
    as_buf_clear(session->body);
    switch (response->outcome) {
    case AS_HTTP_ANSWERED:
        as_buf_append(session->body, response->body, response->body_size);
        session->outcome = response->status / 100 == 2 ? HTTP_SESSION_OK : HTTP_SESSION_REFUSED;
        if (session->outcome != HTTP_SESSION_OK)
            as_error_set(session->error, "HTTP %d", response->status);
        return;
    case AS_HTTP_TOO_LARGE:
        as_error_set(session->error, "the answer is too large");
        session->outcome = HTTP_SESSION_TOO_LARGE;
        return;
    case AS_HTTP_TIMEOUT: session->outcome = -ETIMEDOUT; break;
    case AS_HTTP_UNREACHABLE:
    case AS_HTTP_BROKEN: session->outcome = -EIO; break;
    }
    as_error_set(session->error, "%s", response->error);
}

int http_session_post(struct http_session *session, const char *path, const struct as_buf *form,
                      size_t max, struct as_buf *body_io, struct as_error *error)
{
    static const char *const extra[] = {"Content-Type: application/x-www-form-urlencoded", NULL};
    struct as_http *http = session->adapters->get_http(session->outside);
    AS_CLEANUP(as_free_p) char *url = as_xasprintf("%s%s", session->url, path);
    struct as_http_request request = {
        .method = "POST",
        .url = url,
        .body = form->data,
        .body_size = form->size,
        .timeout_us = TIMEOUT_US,
        .max_response = max,
        .client_name = "prometheus",
        .operation = "query_range",
    };

    int status = as_http_auth_apply(session->auth, extra, &request, error);
    if (status)
        return status;
    session->is_done = false;
    session->body = body_io;
    session->error = error;
    (void)!http->start(http, &request, on_done, session);
    while (!session->is_done) {
        if (event_base_loop(session->base, EVLOOP_ONCE) != 0)
            abort(); /* a transfer is running: there is always an event to wait for */
    }
    if (session->outcome != HTTP_SESSION_OK)
        as_error_wrap(error, "%s", session->url);
    return session->outcome;
}
