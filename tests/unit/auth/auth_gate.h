/*
 * The gate with a simulated exchange: shared by test_auth.c and test_auth_load.c. Credentials are
 * real ones, from files.
 */
#ifndef ALERTSCALER_TESTS_UNIT_APP_AUTH_GATE_H
#define ALERTSCALER_TESTS_UNIT_APP_AUTH_GATE_H

#include <alertscaler/auth/auth.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>

struct as_http_exchange {
    const char *path, *authorization, *client_name, *signature, *sent;
    const char *remote;       /* NULL: the usual one */
    const char *fields[6][2]; /* more headers, up to one without a name */
    unsigned admitted;
    int status;
    unsigned replies;
    char *headers, *body;
    void *data;
    void (*free_data)(void *data);
    const char *sender; /* narrowed */
};

const char *as_http_exchange_get_path(const struct as_http_exchange *exchange)
{
    return exchange->path;
}

const char *as_http_exchange_get_remote(const struct as_http_exchange *exchange)
{
    return exchange->remote ? exchange->remote : "192.0.2.7:40000";
}

const char *as_http_exchange_find_header(const struct as_http_exchange *exchange, const char *name)
{
    for (size_t i = 0; exchange->fields[i][0]; i++) {
        if (strcasecmp(name, exchange->fields[i][0]) == 0)
            return exchange->fields[i][1];
    }
    if (strcasecmp(name, "X-Signature") == 0)
        return exchange->signature;
    return strcasecmp(name, "Authorization") == 0 ? exchange->authorization : NULL;
}

size_t as_http_exchange_count_headers(const struct as_http_exchange *exchange, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; exchange->fields[i][0]; i++)
        count += strcasecmp(name, exchange->fields[i][0]) == 0;
    return count;
}

void as_http_exchange_set_data(struct as_http_exchange *exchange, void *data,
                               void (*free_data)(void *data))
{
    cr_assert_null(exchange->data);
    exchange->data = data;
    exchange->free_data = free_data;
}

void as_http_exchange_set_sender(struct as_http_exchange *exchange, const char *name)
{
    exchange->sender = name;
}

void *as_http_exchange_get_data(const struct as_http_exchange *exchange)
{
    return exchange->data;
}

void as_http_exchange_reply(struct as_http_exchange *exchange, const struct as_http_answer *answer)
{
    exchange->replies++;
    exchange->status = answer->status;
    exchange->headers = as_xstrdup(answer->headers ? answer->headers : "");
    exchange->body = as_xstrndup(answer->body, answer->body_size);
}

const char *as_http_exchange_find_client_name(const struct as_http_exchange *exchange)
{
    return exchange->client_name;
}

const char *as_http_exchange_get_body(const struct as_http_exchange *exchange, size_t *size_out)
{
    *size_out = strlen(exchange->sent);
    return exchange->sent;
}

void as_http_exchange_admit(struct as_http_exchange *exchange)
{
    exchange->admitted++;
}

static char folder[] = "/tmp/test-auth-XXXXXX";
static char path[64];
static as_mono_time now;
static bool takes_records;
static size_t record_count;
static uint64_t record_sum;
static int record_status;
static struct as_auth *auth;
static struct event_base *base;
static struct as_http_exchange exchange; /* the last one */

static as_mono_time get_mono(const struct as_clock *clock)
{
    (void)clock;
    return now;
}

static const struct as_clock test_clock = {.get_mono = get_mono};

static bool on_denied(void *context, const struct as_denied_record *record)
{
    (void)context;
    if (!takes_records)
        return false;
    record_count++;
    record_sum += record->count;
    record_status = record->status;
    cr_expect_str_eq(record->remote, "192.0.2.7:40000");
    return true;
}

static void write_token(const char *name, const char *text)
{
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void setup(void)
{
    cr_assert(mkdtemp(folder));
    now.us = AS_US_PER_S;
    takes_records = true;
    base = event_base_new();
}

static void forget(void)
{
    free(exchange.headers);
    free(exchange.body);
    if (exchange.data)
        exchange.free_data(exchange.data);
    exchange = (struct as_http_exchange){0};
}

static void teardown(void)
{
    static const char *const names[] = {"am", "prometheus", "operator"};
    forget();
    as_auth_free(auth);
    event_base_free(base);
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static struct as_auth_config gate_config = {.clock = &test_clock, .denied = on_denied};

/* The gate with these settings; all are copied. */
static void open_with(const struct as_receiver_settings *settings,
                      const struct as_web_settings *web)
{
    struct as_credentials *credentials;
    gate_config.base = base;
    auth = as_auth_new(&gate_config);
    cr_assert_eq(as_credentials_new(settings, web, &credentials, NULL), 0);
    cr_assert_null(as_auth_swap_credentials(auth, credentials));
}

#define BIT(permission) (1U << AS_PERMISSION_##permission)

/* Of "sesame". */
#define HASH "$2b$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"

#define OTHER_HASH "$2b$04$ABpxdbZS3aRuCeVrPHD29.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static struct as_web_user users[] = {{"reader", HASH}, {"writer", HASH}};
static const struct as_web_settings with_users = {.users = users, .user_count = 2};
static struct as_user_settings user_access[] = {{.name = "reader", .access.permissions = 2}};
static const struct as_receiver_settings reader_reads = {.users = user_access, .user_count = 1};

#define BASIC_READER "Basic cmVhZGVyOnNlc2FtZQ==" /* reader:sesame */
#define BASIC_WRITER "Basic d3JpdGVyOnNlc2FtZQ==" /* writer:sesame */
#define BASIC_WRONG  "Basic cmVhZGVyOndyb25n"     /* reader:wrong */
#define BASIC_NOBODY "Basic bm9ib2R5OnNlc2FtZQ==" /* nobody:sesame */

#endif
