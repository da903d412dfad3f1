/*
 * Credentials for all requests of one account or login: see the header.
 *
 * Invariants: one search at a time; requests wait for it in a list. A search that fails leaves old
 * credentials in use while they are valid, and the next request after a pause searches again. The
 * server that gives credentials may ask for a longer pause.
 *
 * Not here: the sources (provider_credentials.h), and the use of credentials (sign.h).
 */
#include <alertscaler/login/credentials_cache.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/login/cloud_answer.h>
#include <alertscaler/login/op_call.h>

/* (AWS has 15 and 10 minutes, Google 5 and 4.) */
#define RENEW_BEFORE_US   (10 * AS_US_PER_MIN)
#define EXPIRED_BEFORE_US (1 * AS_US_PER_MIN)
#define RENEW_PART        2 /* of a short life */
#define EXPIRED_PART      10
#define PAUSE_MAX_US      (5 * AS_US_PER_MIN) /* that a server may ask for */

struct as_credentials_cache {
    struct as_credentials_config config;
    struct as_login_env env;
    LIST_HEAD(, as_credentials_waiter) waiters;
    int64_t skew_us;

    struct as_provider_credentials credentials; /* when has_credentials */
    bool has_credentials;
    int64_t renew_before_us, expired_before_us;
    unsigned generation;
    /* the search: */
    bool is_searching;
    size_t source;
    struct as_credentials_op search;
    struct as_op_call searcher;
    struct as_timer *timer;                 /* reports that nothing was found */
    bool has_failed;                        /* the last search */
    as_mono_time search_again;              /* if it has failed: not before */
    char problem[AS_CLOUD_OP_MESSAGE_SIZE]; /* of the last search */
    enum as_cloud_op_fault problem_fault;
};

as_wall_time as_credentials_cache_get_wall(const struct as_credentials_cache *cache)
{
    const as_wall_time now = cache->env.clock->get_wall(cache->env.clock);
    return (as_wall_time){as_time_add(now.us, cache->skew_us)};
}

int64_t *as_credentials_cache_get_skew(struct as_credentials_cache *cache)
{
    return &cache->skew_us;
}

static as_mono_time cache_get_mono(const struct as_credentials_cache *cache)
{
    return cache->env.clock->get_mono(cache->env.clock);
}

static bool is_good_for(const struct as_credentials_cache *cache, int64_t margin_us)
{
    const as_wall_time now = as_credentials_cache_get_wall(cache);
    const struct as_provider_credentials *credentials = &cache->credentials;
    return cache->has_credentials && (!credentials->expires.set ||
                                      credentials->expires.at.us > as_time_add(now.us, margin_us));
}

/* Each waiting request continues: with credentials, or with the search's failure. A request that
 * waits again meanwhile waits for the next search. */
static void release_waiting(struct as_credentials_cache *cache)
{
    LIST_HEAD(, as_credentials_waiter) released = LIST_HEAD_INITIALIZER(released);
    struct as_credentials_waiter *waiter;
    LIST_SWAP(&released, &cache->waiters, as_credentials_waiter, entry);
    while ((waiter = LIST_FIRST(&released))) {
        as_credentials_cache_leave(waiter);
        waiter->done(waiter->context);
    }
}

static int64_t get_margin(int64_t usual_us, int64_t life_us, int64_t part)
{
    return life_us / part < usual_us ? life_us / part : usual_us;
}

static void take_found(struct as_credentials_cache *cache)
{
    const struct as_provider_credentials *found = &cache->search.found;
    const int64_t life_us = found->expires.set
                                ? found->expires.at.us - as_credentials_cache_get_wall(cache).us
                                : INT64_MAX;
    as_credentials_deinit(&cache->credentials);
    cache->credentials = *found;
    cache->search.found = (struct as_provider_credentials){0};
    cache->has_credentials = true;
    cache->has_failed = false;
    cache->renew_before_us = get_margin(RENEW_BEFORE_US, life_us, RENEW_PART);
    cache->expired_before_us = get_margin(EXPIRED_BEFORE_US, life_us, EXPIRED_PART);
    cache->generation++;
}

static void cache_note_failure(struct as_credentials_cache *cache, enum as_cloud_op_fault fault,
                               const char *source, const char *message, int64_t asked_us)
{
    const int64_t usual_us = cache->config.try_again_us;
    const int64_t most_us = asked_us < PAUSE_MAX_US ? asked_us : PAUSE_MAX_US;
    char line[64];
    snprintf(cache->problem, sizeof(cache->problem), "%s%s%s", source, *source ? ": " : "",
             message);
    snprintf(line, sizeof(line), "no new credentials for a %s", cache->config.kind);
    cache->problem_fault = fault;
    cache->has_failed = true;
    cache->search_again.us =
        as_time_add(cache_get_mono(cache).us, most_us > usual_us ? most_us : usual_us);
    if (!is_good_for(cache, 0)) {
        as_credentials_deinit(&cache->credentials);
        cache->has_credentials = false;
    }
    as_log(cache->has_credentials ? AS_LOG_WARN : AS_LOG_ERROR, line,
           AS_F(cache->config.kind, cache->config.name), AS_F("reason", cache->problem),
           AS_F("old", cache->has_credentials ? "still used" : "none"));
}

static void search_next(struct as_credentials_cache *cache);

static void end_search(struct as_credentials_cache *cache)
{
    answer_wipe(cache->search.op.document);
    as_credentials_deinit(&cache->search.found);
    as_cloud_op_deinit(&cache->search.op);
}

static void search_ended(void *context)
{
    struct as_credentials_cache *cache = context;
    struct as_credentials_op *search = &cache->search;
    const char *source = cache->config.sources[cache->source].name;
    const enum as_cloud_op_fault fault = search->op.fault;
    const bool is_not_here = search->is_not_here;
    if (fault == AS_CLOUD_OP_OK && !is_not_here)
        take_found(cache);
    else if (fault != AS_CLOUD_OP_OK)
        cache_note_failure(cache, fault, source, search->op.message, search->op.retry_after_us);
    end_search(cache);
    cache->source++;
    if (fault == AS_CLOUD_OP_OK && is_not_here) {
        search_next(cache);
        return;
    }
    cache->is_searching = false;
    release_waiting(cache);
}

static void nothing_found(void *context)
{
    struct as_credentials_cache *cache = context;
    cache_note_failure(cache, AS_CLOUD_OP_CONFIGURATION, "",
                       "none are set up in any of the places where they are looked for", 0);
    cache->timer = NULL;
    cache->is_searching = false;
    release_waiting(cache);
}

static bool authorize_nothing(void *context, struct as_cloud_op *op)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "credentials cannot need credentials");
    return false;
}

static bool refuse_nothing(void *context, struct as_op_call *call)
{
    return false;
}

static void begin_search(struct as_credentials_cache *cache);

/* The other side's clock is known now: searches again. */
static void search_anew(void *context)
{
    struct as_credentials_cache *cache = context;
    end_search(cache);
    begin_search(cache);
    cache->searcher.is_repeated = true;
}

static void begin_search(struct as_credentials_cache *cache)
{
    const struct as_credentials_config *config = &cache->config;
    cache->search = (struct as_credentials_op){
        .account = config->account, .scope = config->scope, .oauth2 = config->oauth2};
    as_cloud_op_init(&cache->search.op, cache->env.get_variable);
    cache->search.op.now = as_credentials_cache_get_wall(cache);
    cache->searcher = (struct as_op_call){
        .env = &cache->env,
        .op = &cache->search.op,
        .callbacks = {.authorize = authorize_nothing,
                      .refused = refuse_nothing,
                      .mistimed = search_anew,
                      .ended = search_ended,
                      .context = cache},
        .timeout_us = config->timeout_us,
        .client = config->client,
        .tls = &config->tls,
        .proxy_url = config->proxy_url,
        .skew_us = &cache->skew_us,
    };
    config->sources[cache->source].begin(&cache->search);
    as_op_call_start(&cache->searcher);
}

static void search_next(struct as_credentials_cache *cache)
{
    if (cache->config.sources[cache->source].name)
        begin_search(cache);
    else
        cache->timer = cache->env.loop->start_timer(cache->env.loop, 0, nothing_found, cache);
}

static void cache_search(struct as_credentials_cache *cache)
{
    if (cache->is_searching)
        return;
    cache->is_searching = true;
    cache->source = 0;
    search_next(cache);
}

static enum as_credentials_state cache_await(struct as_credentials_cache *cache,
                                             struct as_credentials_waiter *waiter,
                                             as_credentials_done_fn *done, void *context)
{
    waiter->done = done;
    waiter->context = context;
    waiter->is_waiting = true;
    LIST_INSERT_HEAD(&cache->waiters, waiter, entry);
    cache_search(cache);
    return AS_CREDENTIALS_AWAITED;
}

static bool cache_may_search(const struct as_credentials_cache *cache)
{
    return !cache->has_failed || cache->search_again.us <= cache_get_mono(cache).us;
}

enum as_credentials_state as_credentials_cache_request(struct as_credentials_cache *cache,
                                                       struct as_credentials_waiter *waiter,
                                                       as_credentials_done_fn *done, void *context)
{
    const bool may_search = cache_may_search(cache);
    if (is_good_for(cache, cache->has_failed ? 0 : cache->expired_before_us)) {
        if (!is_good_for(cache, cache->renew_before_us) && may_search)
            cache_search(cache);
        return AS_CREDENTIALS_READY;
    }
    if (cache->is_searching || may_search)
        return cache_await(cache, waiter, done, context);
    return AS_CREDENTIALS_FAILED;
}

enum as_credentials_state as_credentials_cache_renew(struct as_credentials_cache *cache,
                                                     unsigned generation,
                                                     struct as_credentials_waiter *waiter,
                                                     as_credentials_done_fn *done, void *context)
{
    if (generation != cache->generation) /* newer credentials were found meanwhile */
        return AS_CREDENTIALS_READY;
    if (!cache->is_searching && !cache_may_search(cache))
        return AS_CREDENTIALS_FAILED;
    return cache_await(cache, waiter, done, context);
}

void as_credentials_cache_leave(struct as_credentials_waiter *waiter)
{
    if (waiter->is_waiting)
        LIST_REMOVE(waiter, entry);
    waiter->is_waiting = false;
}

const struct as_provider_credentials *as_credentials_cache_find(
    const struct as_credentials_cache *cache)
{
    return cache->has_credentials ? &cache->credentials : NULL;
}

unsigned as_credentials_cache_get_generation(const struct as_credentials_cache *cache)
{
    return cache->generation;
}

const char *as_credentials_cache_get_problem(const struct as_credentials_cache *cache,
                                             enum as_cloud_op_fault *fault_out)
{
    *fault_out = cache->problem_fault;
    return cache->problem;
}

struct as_credentials_cache *as_credentials_cache_new(const struct as_credentials_config *config)
{
    struct as_credentials_cache *cache = as_xcalloc(1, sizeof(*cache));
    cache->config = *config;
    cache->env = *config->env;
    LIST_INIT(&cache->waiters);
    return cache;
}

struct as_credentials_cache *as_credentials_cache_free(struct as_credentials_cache *cache)
{
    if (!cache)
        return NULL;
    if (cache->is_searching && cache->timer) {
        cache->env.loop->cancel_timer(cache->env.loop, cache->timer);
    } else if (cache->is_searching) {
        as_op_call_cancel(&cache->searcher);
        end_search(cache);
    }
    as_credentials_deinit(&cache->credentials);
    free(cache);
    return NULL;
}
