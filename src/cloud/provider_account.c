/*
 * Accounts: see the header. One search for credentials at a time; calls wait for it in a list.
 */
#include "provider_account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>

#include "talk_call.h"

/* Credentials are renewed RENEW_BEFORE_US before they expire; meanwhile the old ones are used, but
 * not for talks that begin in the last EXPIRED_BEFORE_US. (AWS has 15 and 10 minutes, Google 5 and
 * 4.) */
#define RENEW_BEFORE_US   (10 * AS_US_PER_MIN)
#define EXPIRED_BEFORE_US (1 * AS_US_PER_MIN)
#define TRY_AGAIN_US      (30 * AS_US_PER_S) /* after a failed search */

struct as_account_call {
    LIST_ENTRY(as_account_call) entry;
    struct as_account *account;
    struct as_group_talk *talk;
    struct talk_call runner;
    as_account_done_fn *done;
    void *context;
    bool is_waiting; /* for credentials */
    bool is_begun;
    unsigned generation; /* of the credentials of its last request */
};

struct as_account {
    const struct as_group_provider *provider;
    const struct as_provider_settings *settings;
    const struct as_access_env *env;
    struct as_http_auth *auth; /* of http_config, if the provider has no credentials of its own */
    struct as_kube_client *cluster; /* NULL: not a cluster's */
    struct as_http_tls tls;
    LIST_HEAD(, as_account_call) calls;
    struct as_random nonces;
    int64_t skew_us; /* how far the provider's clock is ahead of ours, if known */

    struct as_provider_credentials credentials; /* when has_credentials */
    bool has_credentials;
    unsigned generation; /* counts the credentials that were found */
    /* the search: */
    bool is_searching;
    size_t source;
    struct as_credentials_talk search;
    struct talk_call searcher;
    struct as_timer *timer;             /* reports that nothing was found */
    as_mono_time search_again;          /* after a failure: not before */
    char problem[AS_TALK_MESSAGE_SIZE]; /* of the last search */
    enum as_talk_fault problem_fault;
};

/* The time of the provider's clock, which decides on signatures and on the expiry of
 * credentials. */
static as_wall_time get_wall(const struct as_account *account)
{
    const as_wall_time now = account->env->clock->get_wall(account->env->clock);
    return (as_wall_time){as_time_add(now.us, account->skew_us)};
}

static as_mono_time get_mono(const struct as_account *account)
{
    return account->env->clock->get_mono(account->env->clock);
}

/* ---- credentials ---- */

static bool is_good_for(const struct as_account *account, int64_t margin_us)
{
    const as_wall_time now = get_wall(account);
    const struct as_provider_credentials *credentials = &account->credentials;
    return !account->provider->credentials ||
           (account->has_credentials &&
            (!credentials->expires.set ||
             credentials->expires.at.us > as_time_add(now.us, margin_us)));
}

static void init_runner(struct as_account *account, struct talk_call *runner, struct as_talk *talk,
                        struct talk_call_callbacks callbacks)
{
    *runner = (struct talk_call){
        .env = account->env,
        .talk = talk,
        .callbacks = callbacks,
        .timeout_us = account->settings->timeout_us,
        .client = account->provider->kind.type,
        .tls = &account->tls,
        .proxy_url = account->settings->http.proxy_url,
        .auth = account->auth,
        .cluster = account->cluster,
        .skew_us = &account->skew_us,
    };
}

static void begin(struct as_account_call *call)
{
    call->is_begun = true;
    call->talk->credentials = &call->account->credentials;
    call->talk->talk.now = get_wall(call->account);
    call->account->provider->begin(call->talk);
}

/* Every waiting call continues: with credentials, or with the search's failure. */
static void release_waiting(struct as_account *account)
{
    struct as_account_call *call;
    LIST_FOREACH (call, &account->calls, entry) {
        if (!call->is_waiting)
            continue;
        call->is_waiting = false;
        if (call->is_begun && account->has_credentials) {
            talk_call_repeat(&call->runner);
            continue;
        }
        if (!account->has_credentials)
            as_talk_fail(&call->talk->talk, account->problem_fault, "no credentials: %s",
                         account->problem);
        else
            begin(call);
        talk_call_start(&call->runner);
    }
}

static void take_found(struct as_account *account)
{
    as_credentials_deinit(&account->credentials);
    account->credentials = account->search.found;
    account->search.found = (struct as_provider_credentials){0};
    account->has_credentials = true;
    account->generation++;
}

/* Old credentials are kept while they are valid; else the next call searches again. */
static void note_failure(struct as_account *account, enum as_talk_fault fault, const char *source,
                         const char *message)
{
    snprintf(account->problem, sizeof(account->problem), "%s%s%s", source, *source ? ": " : "",
             message);
    account->problem_fault = fault;
    account->search_again.us = as_time_add(get_mono(account).us, TRY_AGAIN_US);
    if (!is_good_for(account, 0)) {
        as_credentials_deinit(&account->credentials);
        account->has_credentials = false;
    }
    as_log(account->has_credentials ? AS_LOG_WARN : AS_LOG_ERROR,
           "no new credentials for a provider", AS_F("provider", account->settings->name),
           AS_F("reason", account->problem),
           AS_F("old", account->has_credentials ? "still used" : "none"));
}

static void search_next(struct as_account *account);
static void end_search(struct as_account *account);

static void search_ended(void *context)
{
    struct as_account *account = context;
    struct as_credentials_talk *search = &account->search;
    const char *source = account->provider->credentials[account->source].name;
    const enum as_talk_fault fault = search->talk.fault;
    const bool is_not_here = search->is_not_here;
    if (fault == AS_TALK_OK && !is_not_here)
        take_found(account);
    else if (fault != AS_TALK_OK)
        note_failure(account, fault, source, search->talk.message);
    end_search(account);
    account->source++;
    if (fault == AS_TALK_OK && is_not_here) {
        search_next(account);
        return;
    }
    account->is_searching = false;
    release_waiting(account);
}

static void nothing_found(void *context)
{
    struct as_account *account = context;
    note_failure(account, AS_TALK_CONFIGURATION, "",
                 "none are set up in any of the places where they are looked for");
    account->timer = NULL;
    account->is_searching = false;
    release_waiting(account);
}

static bool authorize_nothing(void *context, struct as_talk *talk)
{
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "credentials cannot need credentials");
    return false;
}

static bool refuse_nothing(void *context, struct talk_call *call)
{
    return false;
}

static void mistimed_nothing(void *context)
{
}

static void search_anew(void *context);

static void begin_search(struct as_account *account)
{
    account->search = (struct as_credentials_talk){.account = account->settings};
    as_talk_init(&account->search.talk, account->env->get_variable);
    account->search.talk.now = get_wall(account);
    init_runner(account, &account->searcher, &account->search.talk,
                (struct talk_call_callbacks){authorize_nothing, refuse_nothing, search_anew,
                                             search_ended, account});
    account->provider->credentials[account->source].begin(&account->search);
    talk_call_start(&account->searcher);
}

static void end_search(struct as_account *account)
{
    as_credentials_deinit(&account->search.found);
    as_talk_deinit(&account->search.talk);
}

/* The provider's clock is known now: searches again. */
static void search_anew(void *context)
{
    struct as_account *account = context;
    end_search(account);
    begin_search(account);
    account->searcher.is_repeated = true;
}

static void search_next(struct as_account *account)
{
    if (account->provider->credentials[account->source].name)
        begin_search(account);
    else
        account->timer =
            account->env->loop->start_timer(account->env->loop, 0, nothing_found, account);
}

static void search(struct as_account *account)
{
    if (account->is_searching)
        return;
    account->is_searching = true;
    account->source = 0;
    search_next(account);
}

/* ---- calls ---- */

static bool authorize(void *context, struct as_talk *talk)
{
    struct as_account_call *call = context;
    struct as_account *account = call->account;
    if (!account->provider->credentials)
        return true;
    struct as_error error = AS_ERROR_INIT;
    char nonce[AS_ULID_SIZE];
    const as_wall_time now = get_wall(account);
    as_ulid_print(now, &account->nonces, nonce);
    const char *region = as_account_get(account->settings, "region");
    const struct as_sign_scope scope = {
        .region = region ? region : account->credentials.region,
        .service = talk->request.service ? talk->request.service : account->provider->service,
        .now = now,
        .nonce = nonce,
    };
    call->generation = account->generation;
    if (account->has_credentials &&
        account->provider->sign(talk, &account->credentials, &scope, &error) == 0)
        return true;
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s", talk->request.operation,
                 account->has_credentials ? error.text : "the credentials have expired");
    return false;
}

static bool refused(void *context, struct talk_call *runner)
{
    struct as_account_call *call = context;
    struct as_account *account = call->account;
    if (!account->provider->credentials)
        return false;
    if (call->generation != account->generation) { /* newer credentials came meanwhile */
        talk_call_repeat(runner);
        return true;
    }
    call->is_waiting = true;
    search(account);
    return true;
}

static void ended(void *context)
{
    struct as_account_call *call = context;
    as_account_done_fn *const done = call->done;
    void *const whose = call->context;
    as_account_cancel(call);
    done(whose);
}

struct as_account_call *as_account_start(struct as_account *account, struct as_group_talk *talk,
                                         as_account_done_fn *done, void *context)
{
    struct as_account_call *call = as_xcalloc(1, sizeof(*call));
    call->account = account;
    call->talk = talk;
    call->done = done;
    call->context = context;
    init_runner(account, &call->runner, &talk->talk,
                (struct talk_call_callbacks){authorize, refused, mistimed_nothing, ended, call});
    call->runner.flow = (struct as_flow){talk->group->id, talk->credential};
    LIST_INSERT_HEAD(&account->calls, call, entry);
    const bool may_search = account->search_again.us <= get_mono(account).us;
    if (is_good_for(account, EXPIRED_BEFORE_US)) {
        begin(call);
        talk_call_start(&call->runner);
        if (!is_good_for(account, RENEW_BEFORE_US) && may_search)
            search(account);
    } else if (account->is_searching || may_search || account->has_credentials) {
        call->is_waiting = true;
        search(account);
    } else {
        as_talk_fail(&talk->talk, account->problem_fault, "no credentials: %s", account->problem);
        talk_call_start(&call->runner);
    }
    return call;
}

void as_account_cancel(struct as_account_call *call)
{
    talk_call_cancel(&call->runner);
    LIST_REMOVE(call, entry);
    free(call);
}

void as_account_init_talk(const struct as_account *account, struct as_group_talk *talk)
{
    *talk = (struct as_group_talk){.account = account->settings, .view = {.min = -1, .max = -1}};
    as_talk_init(&talk->talk, account->env->get_variable);
}

struct as_account *as_account_new(const struct as_group_provider *provider,
                                  const struct as_provider_settings *settings,
                                  const struct as_access_env *env, struct as_kube_client *cluster)
{
    struct as_account *account = as_xcalloc(1, sizeof(*account));
    const as_wall_time now = env->clock->get_wall(env->clock);
    account->provider = provider;
    account->settings = settings;
    account->env = env;
    account->cluster = cluster;
    if (!provider->credentials && !provider->is_kubernetes)
        account->auth = as_http_auth_new(&settings->http, env->clock);
    account->search_again.us = INT64_MIN;
    account->tls = (struct as_http_tls){
        .ca_file = settings->http.tls.ca_file,
        .cert_file = settings->http.tls.cert_file,
        .key_file = settings->http.tls.key_file,
        .server_name = settings->http.tls.server_name,
        .insecure_skip_verify = settings->http.tls.insecure_skip_verify,
    };
    as_random_init(&account->nonces, (uint64_t)now.us);
    LIST_INIT(&account->calls);
    return account;
}

struct as_account *as_account_free(struct as_account *account)
{
    struct as_account_call *call;
    if (!account)
        return NULL;
    while ((call = LIST_FIRST(&account->calls)))
        as_account_cancel(call);
    if (account->is_searching && account->timer) {
        account->env->loop->cancel_timer(account->env->loop, account->timer);
    } else if (account->is_searching) {
        talk_call_cancel(&account->searcher);
        end_search(account);
    }
    as_credentials_deinit(&account->credentials);
    as_http_auth_free(account->auth);
    free(account);
    return NULL;
}
