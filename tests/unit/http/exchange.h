/*
 * An exchange of HTTP without a server: the request that a test made up, and what was answered. A
 * program includes this in place of the server's functions.
 */
#ifndef TESTS_UNIT_APP_EXCHANGE_H
#define TESTS_UNIT_APP_EXCHANGE_H

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/http/server.h>

struct as_http_exchange {
    const char *method, *path, *query, *accept;
    int status;
    unsigned replies;
    char *content_type, *headers, *body;
    size_t body_size;
};

const char *as_http_exchange_get_method(const struct as_http_exchange *exchange)
{
    return exchange->method;
}

const char *as_http_exchange_get_path(const struct as_http_exchange *exchange)
{
    return exchange->path;
}

void as_http_exchange_cut_path(struct as_http_exchange *exchange, size_t size)
{
    exchange->path += size;
}

const char *as_http_exchange_get_query(const struct as_http_exchange *exchange)
{
    return exchange->query;
}

const char *as_http_exchange_find_header(const struct as_http_exchange *exchange, const char *name)
{
    return strcmp(name, "Accept") == 0 ? exchange->accept : NULL;
}

size_t as_http_exchange_count_headers(const struct as_http_exchange *exchange, const char *name)
{
    return as_http_exchange_find_header(exchange, name) != NULL;
}

void as_http_exchange_set_route(struct as_http_exchange *exchange, const void *route,
                                const char *handler_name)
{
    (void)exchange;
    (void)route;
    (void)handler_name;
}

const void *as_http_exchange_get_route(const struct as_http_exchange *exchange)
{
    (void)exchange;
    return NULL;
}

void as_http_exchange_set_data(struct as_http_exchange *exchange, void *data,
                               void (*free_data)(void *data))
{
    (void)exchange;
    (void)data;
    (void)free_data;
}

void as_http_exchange_set_sender(struct as_http_exchange *exchange, const char *name)
{
    (void)exchange;
    (void)name;
}

void *as_http_exchange_get_data(const struct as_http_exchange *exchange)
{
    (void)exchange;
    return NULL;
}

const char *as_http_exchange_get_body(const struct as_http_exchange *exchange, size_t *size_out)
{
    (void)exchange;
    *size_out = 0;
    return "";
}

const char *as_http_exchange_get_remote(const struct as_http_exchange *exchange)
{
    (void)exchange;
    return "192.0.2.7:40000";
}

const char *as_http_exchange_find_client_name(const struct as_http_exchange *exchange)
{
    (void)exchange;
    return NULL;
}

void as_http_exchange_admit(struct as_http_exchange *exchange)
{
    (void)exchange;
}

void as_http_exchange_reply(struct as_http_exchange *exchange, const struct as_http_answer *answer)
{
    exchange->replies++;
    exchange->status = answer->status;
    exchange->content_type = as_xstrdup(answer->content_type ? answer->content_type : "text/plain");
    exchange->headers = as_xstrdup(answer->headers ? answer->headers : "");
    exchange->body = as_xstrndup(answer->body_size > 0 ? answer->body : "", answer->body_size);
    exchange->body_size = answer->body_size;
}

static inline void exchange_forget(struct as_http_exchange *exchange)
{
    free(exchange->content_type);
    free(exchange->headers);
    free(exchange->body);
    *exchange = (struct as_http_exchange){0};
}

#endif
