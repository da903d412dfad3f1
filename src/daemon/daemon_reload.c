/*
 * Requests for a reload, by HTTP or by a signal. A request within a second of the last reload waits
 * until the second is over, and then shares its reload with all others: each answer is of a reload
 * that began after its request. If no file has changed, nothing is loaded.
 *
 * A reload waits while too many earlier configurations still wait for answers of their ports.
 */
#include "daemon_private.h"

#include <errno.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

#include <alertscaler/auth/reply.h>

#define RELOAD_EVERY_US (1 * AS_US_PER_S)

struct reload_request {
    STAILQ_ENTRY(reload_request) next;
    struct as_http_exchange *exchange;
};

void daemon_request_reload(void *context, struct as_http_exchange *exchange, const char *credential)
{
    struct daemon *daemon = context;
    struct daemon_reload *reload = &daemon->reload;
    if (exchange) {
        struct reload_request *request = as_xcalloc(1, sizeof(*request));
        request->exchange = exchange;
        STAILQ_INSERT_TAIL(&reload->requests, request, next);
    }
    if (reload->is_wanted)
        return;
    reload->is_wanted = true;
    reload->credential = as_xstrdup(credential);
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    daemon_arm(reload->timer, reload->earliest.us > now.us ? reload->earliest.us - now.us : 0);
}

static struct reload_request *take_first(struct daemon *daemon)
{
    struct reload_request *request = STAILQ_FIRST(&daemon->reload.requests);
    if (request)
        STAILQ_REMOVE_HEAD(&daemon->reload.requests, next);
    return request;
}

static void answer_all(struct daemon *daemon, int status, const char *text)
{
    struct reload_request *request;
    while ((request = take_first(daemon))) {
        as_reply_text(request->exchange, status, NULL, "%s", text);
        free(request);
    }
}

/* The status and the text of the answer. */
static int reload_now(struct daemon *daemon, const char *credential, struct as_error *text)
{
    struct as_error error = AS_ERROR_INIT;
    if (!daemon->failed && !daemon->stopping && daemon_is_in_force(daemon)) {
        as_metrics_on_reload(daemon->metrics, true, as_system_clock.get_wall(&as_system_clock));
        as_log(AS_LOG_INFO, "configuration unchanged", AS_F("digest", daemon->config->digest));
        as_error_set(text, "unchanged: all files have the content that is in force");
        return 200;
    }
    const int status = daemon_reload_again(daemon, credential, NULL, NULL, &error);
    if (status == 0) {
        as_error_set(text, "reloaded");
        return 200;
    }
    if (status == -EAGAIN) /* other failures are logged where they occur */
        as_log(AS_LOG_WARN, "nothing reloaded", AS_F("error", error.text));
    as_error_set(text, "reload failed, nothing is changed: %s", error.text);
    return 500;
}

static bool may_reload(struct daemon *daemon)
{
    return daemon->failed || daemon->stopping || !daemon->shell || /* fails, or keeps no ports */
           daemon_make_retired_room(daemon);
}

void daemon_on_reload_timer(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;
    struct daemon_reload *reload = &daemon->reload;
    struct as_error text = AS_ERROR_INIT;
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    if (!reload->is_wanted)
        return;
    if (!may_reload(daemon)) {
        daemon_arm(reload->timer, RELOAD_EVERY_US);
        return;
    }
    AS_CLEANUP(as_free_p) char *credential = reload->credential;
    reload->credential = NULL;
    reload->is_wanted = false;
    reload->earliest.us = now.us + RELOAD_EVERY_US;
    const int status = reload_now(daemon, credential, &text);
    answer_all(daemon, status, text.text);
}

void daemon_forget_reload(struct daemon *daemon)
{
    struct reload_request *request;
    while ((request = take_first(daemon)))
        free(request);
    free(daemon->reload.credential);
}
