/*
 * The firing alerts of all Alertmanagers: see the header. They are asked in parallel; the list is
 * reported when the last has answered. If one could not be read, the whole list is an error: alerts
 * that only this one knows would seem to have ended.
 */
#include "alertmanager.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/source/limits.h>
#include <alertscaler/wire/alertmanager.h>

#include "fetch.h"

struct as_alertmanager_source {
    struct as_http_auth *auth;
    struct as_server *servers; /* at least one: an unconfigured server reports its error */
    size_t server_count;
    LIST_HEAD(, listing) listings;
};

struct member { /* the answer of one Alertmanager */
    struct listing *listing;
    struct as_fetch fetch;
    struct as_alertmanager_alerts *alerts;
};

struct listing {
    LIST_ENTRY(listing) entry;
    struct as_alertmanager_source *owner;
    uint64_t ticket;
    as_source_listed_fn *done;
    void *context;
    size_t waiting;
    struct member *members; /* one per server */
};

static void init_server(struct as_alertmanager_source *source, struct as_server *server,
                        const char *url, const struct as_source_env *env)
{
    *server = (struct as_server){
        .env = env,
        .word = "alertmanager",
        .name = url ? as_xasprintf("Alertmanager %s", url) : as_xstrdup("Alertmanager"),
        .auth = source->auth,
        .timeout_us = AS_ALERT_LIST_TIMEOUT_US,
        .max_response = AS_ALERT_LIST_RESPONSE_MAX,
        .read_error = as_alertmanager_decode_error,
    };
    as_server_set_url(server, url, AS_ALERTMANAGER_ALERTS_PATH);
}

struct as_alertmanager_source *as_alertmanager_source_new(
    const struct as_alertmanager_settings *settings, const struct as_source_env *env)
{
    struct as_alertmanager_source *source = as_xcalloc(1, sizeof(*source));
    source->auth = as_http_auth_new(&settings->http, env->clock);
    source->server_count = settings->url_count > 0 ? settings->url_count : 1;
    source->servers = as_xcalloc(source->server_count, sizeof(*source->servers));
    for (size_t i = 0; i < source->server_count; i++)
        init_server(source, &source->servers[i], settings->url_count > 0 ? settings->urls[i] : NULL,
                    env);
    LIST_INIT(&source->listings);
    return source;
}

static void free_listing(struct listing *listing)
{
    for (size_t i = 0; i < listing->owner->server_count; i++) {
        as_fetch_cancel(&listing->members[i].fetch);
        as_alertmanager_alerts_free(listing->members[i].alerts);
    }
    LIST_REMOVE(listing, entry);
    free(listing->members);
    free(listing);
}

struct as_alertmanager_source *as_alertmanager_source_free(struct as_alertmanager_source *source)
{
    struct listing *listing;
    if (!source)
        return NULL;
    while ((listing = LIST_FIRST(&source->listings)) != NULL)
        free_listing(listing);
    for (size_t i = 0; i < source->server_count; i++)
        as_server_deinit(&source->servers[i]);
    free(source->servers);
    as_http_auth_free(source->auth);
    free(source);
    return NULL;
}

/* The error of the first server that failed, in the configuration's order, and how many more.
 * False: all answered. */
static bool find_error(const struct listing *listing, char error_out[AS_QUERY_ERROR_MAX])
{
    const struct member *first = NULL;
    size_t failed = 0;
    for (size_t i = 0; i < listing->owner->server_count; i++) {
        if (listing->members[i].alerts)
            continue;
        first = first ? first : &listing->members[i];
        failed++;
    }
    if (!first)
        return false;
    struct as_error error = first->fetch.error;
    if (failed > 1)
        as_error_wrap(&error, "%zu of %zu could not be read", failed, listing->owner->server_count);
    as_str_copy_line(error.text, error_out, AS_QUERY_ERROR_MAX);
    return true;
}

static void finish(struct listing *listing)
{
    size_t count = listing->owner->server_count;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_alert_list list = {0};
    char error[AS_QUERY_ERROR_MAX];
    if (find_error(listing, error)) {
        list.error = error;
    } else {
        struct as_alertmanager_alerts **all =
            as_arena_alloc(&arena, count, sizeof(struct as_alertmanager_alerts *));
        for (size_t i = 0; i < count; i++)
            all[i] = listing->members[i].alerts;
        as_alertmanager_merge(all, count, &arena, &list);
    }
    listing->done(listing->context, listing->ticket, &list);
    as_arena_deinit(&arena);
    free_listing(listing);
}

static void on_fetched(void *context, const char *body, size_t size)
{
    struct member *member = context;
    struct as_fetch *fetch = &member->fetch;
    struct as_error *error = &fetch->error;
    if (body && as_alertmanager_decode_alerts(body, size, &member->alerts, error) < 0) {
        as_error_wrap(error, "%s", fetch->server->name);
        fetch->outcome = AS_FETCH_INVALID;
    }
    if (member->alerts && member->alerts->unread > 0)
        fetch->outcome = AS_FETCH_INVALID;
    as_fetch_count(fetch, fetch->outcome);
    if (--member->listing->waiting == 0)
        finish(member->listing);
}

void as_alertmanager_source_list(struct as_alertmanager_source *source, uint64_t ticket,
                                 as_source_listed_fn *done, void *context)
{
    struct listing *listing = as_xcalloc(1, sizeof(*listing));
    *listing = (struct listing){
        .owner = source,
        .ticket = ticket,
        .done = done,
        .context = context,
        .waiting = source->server_count,
        .members = as_xcalloc(source->server_count, sizeof(*listing->members)),
    };
    LIST_INSERT_HEAD(&source->listings, listing, entry);
    for (size_t i = 0; i < source->server_count; i++) {
        listing->members[i].listing = listing;
        as_fetch_start(&listing->members[i].fetch, &source->servers[i], NULL, on_fetched,
                       &listing->members[i]);
    }
}
