/*
 * Messages to receivers: see the header. Each URL is a server of its own, which is sent one message
 * at a time by its caller.
 */
#include <stdlib.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/monitoring/alertmanager_list.h>
#include <alertscaler/monitoring/fetch.h>
#include <alertscaler/monitoring/monitoring.h>
#include <alertscaler/notify/notifier.h>

#define POST_PATH "/api/v2/alerts"

struct receiver {
    struct as_http_auth *auth;
    struct as_server *servers; /* one per URL */
    size_t server_count;
    const char *content_type;
};

struct receivers {
    struct as_messenger port;
    struct as_source_env env;
    struct receiver *items;
    size_t count;
    LIST_HEAD(, sending) sendings;
};

struct sending {
    LIST_ENTRY(sending) entry;
    struct as_fetch fetch;
    uint64_t call_id;
    as_message_done_fn *done;
    void *context;
};

static void free_sending(struct sending *sending)
{
    as_fetch_cancel(&sending->fetch);
    LIST_REMOVE(sending, entry);
    free(sending);
}

static void on_answer(void *context, const char *body, size_t size)
{
    struct sending *sending = context;
    char line[AS_QUERY_ERROR_MAX];
    as_str_copy_line(sending->fetch.error.text, line, sizeof(line));
    sending->done(sending->context, sending->call_id, body ? NULL : line);
    free_sending(sending);
}

static void send_message(struct as_messenger *port, uint64_t call_id,
                         const struct as_message *message, as_message_done_fn *done, void *context)
{
    struct receivers *receivers = (struct receivers *)port;
    const struct receiver *receiver = &receivers->items[message->receiver];
    const struct as_fetch_body body = {receiver->content_type, message->body, message->size};
    struct sending *sending = as_xcalloc(1, sizeof(*sending));
    sending->call_id = call_id;
    sending->done = done;
    sending->context = context;
    LIST_INSERT_HEAD(&receivers->sendings, sending, entry);
    as_fetch_start(&sending->fetch, &receiver->servers[message->url], NULL, &body, on_answer,
                   sending);
}

/* The first line of the answer's body. */
static void read_line(const char *body, size_t size, char text_out[AS_QUERY_ERROR_MAX])
{
    as_str_copy_line(size > 0 ? body : "", text_out, AS_QUERY_ERROR_MAX);
}

/* Names the receiver and the host; the rest of a URL may be a secret. */
static char *make_name(const struct as_notify_settings *settings, const char *url)
{
    char host[AS_URL_HOST_SIZE];
    return as_url_take_host(url, host) ? as_xasprintf("receiver %s at %s", settings->name, host)
                                       : as_xasprintf("receiver %s", settings->name);
}

static void init_receiver(struct receivers *receivers, struct receiver *receiver,
                          const struct as_notify_settings *settings)
{
    const struct as_login_env login = as_source_env_get_login(&receivers->env);
    receiver->auth = as_http_auth_new(&settings->http, &login);
    receiver->server_count = settings->url_count;
    receiver->servers = as_xcalloc(settings->url_count, sizeof(*receiver->servers));
    receiver->content_type =
        settings->is_webhook ? "application/cloudevents+json" : "application/json";
    for (size_t i = 0; i < settings->url_count; i++) {
        receiver->servers[i] = (struct as_server){
            .env = &receivers->env,
            .word = "notify",
            .name = make_name(settings, settings->urls[i]),
            .url = settings->is_webhook ? as_xstrdup(settings->urls[i]) : NULL,
            .auth = receiver->auth,
            .timeout_us = AS_MESSAGE_TIMEOUT_US,
            .max_response = AS_MESSAGE_RESPONSE_MAX,
            .ignores_body = true,
            .read_error = settings->is_webhook ? read_line : as_alertmanager_decode_error,
        };
        if (!settings->is_webhook)
            as_server_set_url(&receiver->servers[i], settings->urls[i], POST_PATH);
    }
}

static void close_receivers(struct as_messenger *port)
{
    struct receivers *receivers = (struct receivers *)port;
    struct sending *sending;
    while ((sending = LIST_FIRST(&receivers->sendings)))
        free_sending(sending);
    for (size_t i = 0; i < receivers->count; i++) {
        for (size_t k = 0; k < receivers->items[i].server_count; k++)
            as_server_deinit(&receivers->items[i].servers[k]);
        free(receivers->items[i].servers);
        as_http_auth_free(receivers->items[i].auth);
    }
    free(receivers->items);
    free(receivers);
}

struct as_messenger *as_receivers_new(const struct as_settings *settings,
                                      const struct as_source_env *env)
{
    struct receivers *receivers = as_xcalloc(1, sizeof(*receivers));
    receivers->port = (struct as_messenger){send_message, close_receivers};
    receivers->env = *env;
    receivers->count = settings->notify_count;
    receivers->items = as_xcalloc(receivers->count, sizeof(*receivers->items));
    LIST_INIT(&receivers->sendings);
    for (size_t i = 0; i < receivers->count; i++)
        init_receiver(receivers, &receivers->items[i], &settings->notify[i]);
    return &receivers->port;
}
