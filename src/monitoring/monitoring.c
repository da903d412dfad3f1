/*
 * Source port of the monitoring servers: queries to one Prometheus, and the firing alerts of all
 * Alertmanagers. The two parts are independent.
 */
#include <alertscaler/monitoring/monitoring.h>

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/fair_queue.h>
#include <alertscaler/base/str.h>
#include <alertscaler/monitoring/alertmanager_list.h>
#include <alertscaler/monitoring/fetch.h>
#include <alertscaler/monitoring/prometheus.h>
#include <alertscaler/rules/alertmanager_routes.h>

/*
 * Queries to one Prometheus. One request is one POST: with GET, proxies would truncate long queries
 * and write them into their logs.
 *
 * At most `max_queries` requests are under way. Queries of alerts go first; queries of `always`
 * rules wait for them. Equal queries of one moment are one request. Queries that are only parsed go
 * last, and leave one place free.
 */

#define FORM_MAX (3 * (size_t)AS_QUERY_MAX + 128) /* every byte escaped, and the time-out */
/* An answer to a request that began so long ago still serves a new equal query. */
#define SAME_MOMENT_US (100 * AS_US_PER_MS)

struct as_prometheus_source {
    struct as_server server;
    struct as_server format, parse; /* of queries that are only parsed */
    bool lacks_format;
    unsigned max, under_way;
    struct as_fair_queue queue; /* requests for alerts, that wait or are under way */
    TAILQ_HEAD(question_list, question) continuous; /* the same of `always` rules alone */
    LIST_HEAD(, question) questions;                /* all */
    TAILQ_HEAD(parsing_list, parsing) parsings;     /* all, in order */
};

struct caller { /* one query */
    STAILQ_ENTRY(caller) next;
    uint64_t call_id;
    as_source_queried_fn *done;
    void *context;
    char *written; /* NULL: as the text of the question */
};

struct question {                   /* one request */
    struct as_fair_item place;      /* first; not continuous */
    TAILQ_ENTRY(question) in_order; /* continuous, and it waits */
    LIST_ENTRY(question) entry;
    struct as_prometheus_source *owner;
    char *text, *pod_label;
    enum as_query_form form;
    bool is_continuous, is_begun;
    bool is_answered; /* a new equal query is another request: it is in no list */
    as_mono_time begun;
    struct as_flow flow;
    STAILQ_HEAD(, caller) callers;
    struct as_fetch fetch;
};

struct parsing { /* one query that is only parsed */
    TAILQ_ENTRY(parsing) in_order;
    struct as_prometheus_source *owner;
    char *text;
    bool is_begun;
    uint64_t call_id;
    as_source_parsed_fn *done;
    void *context;
    struct as_fetch fetch;
};

static struct as_server make_parse_server(const struct as_prometheus_source *source,
                                          const struct as_prometheus_settings *settings,
                                          const char *path)
{
    struct as_server server = source->server; /* with its credentials */
    server.name = as_xstrdup(source->server.name);
    server.reads_errors = true;
    if (server.timeout_us > AS_PARSE_TIMEOUT_US)
        server.timeout_us = AS_PARSE_TIMEOUT_US;
    as_server_set_url(&server, settings->url, path);
    return server;
}

/* Borrows both arguments. */
static struct as_prometheus_source *prometheus_new(const struct as_prometheus_settings *settings,
                                                   const struct as_source_env *env)
{
    struct as_prometheus_source *source = as_xcalloc(1, sizeof(*source));
    const struct as_login_env login = as_source_env_get_login(env);
    source->server = (struct as_server){
        .env = env,
        .word = "prometheus",
        .name = as_xstrdup("Prometheus"),
        .auth = as_http_auth_new(&settings->http, &login),
        .timeout_us = settings->timeout_us,
        .max_response = AS_QUERY_RESPONSE_MAX,
        .read_error = as_prometheus_decode_error,
    };
    as_server_set_url(&source->server, settings->url, AS_PROMETHEUS_QUERY_PATH);
    source->format = make_parse_server(source, settings, AS_PROMETHEUS_FORMAT_PATH);
    source->parse = make_parse_server(source, settings, AS_PROMETHEUS_QUERY_PATH);
    source->max = settings->max_queries > 0 ? (unsigned)settings->max_queries : 1;
    as_fair_queue_init(&source->queue, source->max < 2 ? 2 : source->max);
    TAILQ_INIT(&source->continuous);
    LIST_INIT(&source->questions);
    TAILQ_INIT(&source->parsings);
    return source;
}

static void question_free(struct question *question)
{
    struct as_prometheus_source *source = question->owner;
    struct caller *caller;
    as_fetch_cancel(&question->fetch);
    if (!question->is_answered)
        LIST_REMOVE(question, entry);
    if (!question->is_continuous)
        as_fair_queue_remove(&source->queue, &question->place);
    else if (!question->is_begun)
        TAILQ_REMOVE(&source->continuous, question, in_order);
    source->under_way -= question->is_begun;
    while ((caller = STAILQ_FIRST(&question->callers))) {
        STAILQ_REMOVE_HEAD(&question->callers, next);
        free(caller->written);
        free(caller);
    }
    as_flow_deinit(&question->flow);
    free(question->text);
    free(question->pod_label);
    free(question);
}

static void parsing_free(struct parsing *parsing)
{
    struct as_prometheus_source *source = parsing->owner;
    as_fetch_cancel(&parsing->fetch);
    TAILQ_REMOVE(&source->parsings, parsing, in_order);
    source->under_way -= parsing->is_begun;
    free(parsing->text);
    free(parsing);
}

/* Cancels all requests. */
static struct as_prometheus_source *prometheus_free(struct as_prometheus_source *source)
{
    struct question *question;
    struct parsing *parsing;
    if (!source)
        return NULL;
    while ((question = LIST_FIRST(&source->questions)) != NULL)
        question_free(question);
    while ((parsing = TAILQ_FIRST(&source->parsings)) != NULL)
        parsing_free(parsing);
    as_http_auth_free(source->server.auth);
    as_server_deinit(&source->server);
    as_server_deinit(&source->format);
    as_server_deinit(&source->parse);
    free(source);
    return NULL;
}

static enum as_fetch_outcome prometheus_decode(const struct question *question, const char *body,
                                               size_t size, struct as_arena *arena,
                                               struct as_query_result *result_out)
{
    static const enum as_fetch_outcome outcomes[] = {
        [AS_PROMETHEUS_ANSWERED] = AS_FETCH_OK,       [AS_PROMETHEUS_NO_DATA] = AS_FETCH_NO_DATA,
        [AS_PROMETHEUS_UNUSABLE] = AS_FETCH_UNUSABLE, [AS_PROMETHEUS_REFUSED] = AS_FETCH_REFUSED,
        [AS_PROMETHEUS_INVALID] = AS_FETCH_INVALID,
    };
    const struct as_query query = {.form = question->form, .pod_label = question->pod_label};
    return outcomes[as_prometheus_decode_query(body, size, &query, arena, result_out)];
}

static void begin_waiting(struct as_prometheus_source *source);

/* Tells what the answer shows about the query, if it shows anything. */
static void question_report_verdict(const struct question *question, enum as_fetch_outcome outcome,
                                    const char *error)
{
    const struct as_source_env *env = question->owner->server.env;
    const struct as_fetch *fetch = &question->fetch;
    const struct caller *caller;
    const bool is_accepted =
        outcome == AS_FETCH_OK || outcome == AS_FETCH_NO_DATA || outcome == AS_FETCH_UNUSABLE;
    const bool is_refused = outcome == AS_FETCH_REFUSED && fetch->has_message &&
                            as_prometheus_is_refusal(fetch->status);
    if (!env->judged || (!is_accepted && !is_refused))
        return;
    STAILQ_FOREACH (caller, &question->callers, next)
        env->judged(env->observer_context, caller->written ? caller->written : question->text,
                    is_accepted ? AS_QUERY_ACCEPTED : AS_QUERY_REFUSED, is_refused ? error : "");
}

static void on_fetched(void *context, const char *body, size_t size)
{
    struct question *question = context;
    struct as_prometheus_source *source = question->owner;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_query_result result = {0};
    char error[AS_QUERY_ERROR_MAX];
    enum as_fetch_outcome outcome = question->fetch.outcome;
    struct caller *caller;
    if (body) {
        outcome = prometheus_decode(question, body, size, &arena, &result);
    } else {
        as_str_copy_line(question->fetch.error.text, error, sizeof(error));
        result.error = error;
    }
    as_fetch_count(&question->fetch, outcome);
    question_report_verdict(question, outcome, result.error);
    question->is_answered = true;
    LIST_REMOVE(question, entry);
    STAILQ_FOREACH (caller, &question->callers, next)
        caller->done(caller->context, caller->call_id, &result);
    as_arena_deinit(&arena);
    question_free(question);
    begin_waiting(source);
}

static void question_begin(struct question *question)
{
    struct as_prometheus_source *source = question->owner;
    const struct as_clock *clock = source->server.env->clock;
    AS_CLEANUP(as_buf_deinit) struct as_buf form = AS_BUF_INIT(FORM_MAX);
    question->is_begun = true;
    question->begun = clock->get_mono(clock);
    source->under_way++;
    as_prometheus_encode_query(question->text, source->server.timeout_us, &form);
    if (strlen(question->text) > AS_QUERY_MAX || as_buf_check(&form) < 0)
        as_fetch_fail(&question->fetch, &source->server, "the query is longer than 16 KiB",
                      on_fetched, question);
    else
        as_fetch_start(
            &question->fetch, &source->server, &question->flow,
            &(struct as_fetch_body){"application/x-www-form-urlencoded", form.data, form.size},
            on_fetched, question);
}

static bool parsing_begin(struct as_prometheus_source *source);

static void begin_waiting(struct as_prometheus_source *source)
{
    while (source->under_way < source->max) {
        struct as_fair_item *item = as_fair_queue_take(&source->queue);
        struct question *question =
            item ? (struct question *)(void *)item : TAILQ_FIRST(&source->continuous);
        if (!question)
            break;
        if (question->is_continuous)
            TAILQ_REMOVE(&source->continuous, question, in_order);
        question_begin(question);
    }
    while (source->under_way == 0 || source->under_way + 1 < source->max) {
        if (!parsing_begin(source))
            return;
    }
}

/* An equal query whose answer is for this moment; NULL: none. */
static struct question *question_find(const struct as_prometheus_source *source,
                                      const struct as_query *query)
{
    const struct as_clock *clock = source->server.env->clock;
    const as_mono_time now = clock->get_mono(clock);
    struct question *question;
    LIST_FOREACH (question, &source->questions, entry) {
        if ((!question->is_begun || now.us - question->begun.us <= SAME_MOMENT_US) &&
            question->form == query->form && strcmp(question->text, query->text) == 0 &&
            as_str_equal(question->pod_label, query->pod_label) &&
            as_str_equal(question->flow.credential, query->flow.credential))
            return question;
    }
    return NULL;
}

static struct question *question_new(struct as_prometheus_source *source,
                                     const struct as_query *query)
{
    struct question *question = as_xcalloc(1, sizeof(*question));
    *question = (struct question){
        .owner = source,
        .text = as_xstrdup(query->text),
        .pod_label = query->pod_label ? as_xstrdup(query->pod_label) : NULL,
        .form = query->form,
        .is_continuous = query->is_continuous,
        .flow = as_flow_copy(&query->flow),
    };
    STAILQ_INIT(&question->callers);
    LIST_INSERT_HEAD(&source->questions, question, entry);
    if (question->is_continuous)
        TAILQ_INSERT_TAIL(&source->continuous, question, in_order);
    else
        as_fair_queue_add(&source->queue, &question->place, &question->flow);
    return question;
}

/* An alert has the query of an `always` rule, too: it waits no longer than alerts do. */
static void question_promote(struct question *question)
{
    if (!question->is_continuous || question->is_begun)
        return;
    TAILQ_REMOVE(&question->owner->continuous, question, in_order);
    question->is_continuous = false;
    as_fair_queue_add(&question->owner->queue, &question->place, &question->flow);
}

/* As as_source_port.query. */
static void prometheus_query(struct as_prometheus_source *source, uint64_t call_id,
                             const struct as_query *query, as_source_queried_fn *done,
                             void *context)
{
    struct question *question = question_find(source, query);
    struct caller *caller = as_xcalloc(1, sizeof(*caller));
    *caller = (struct caller){
        .call_id = call_id,
        .done = done,
        .context = context,
        .written = query->written ? as_xstrdup(query->written) : NULL,
    };
    if (!question)
        question = question_new(source, query);
    else if (!query->is_continuous)
        question_promote(question);
    STAILQ_INSERT_TAIL(&question->callers, caller, next);
    begin_waiting(source);
}

/* Queries that are only parsed. The metrics do not count them. */

static void parsing_send(struct parsing *parsing);

static void on_parsed(void *context, const char *body, size_t size)
{
    static const enum as_query_verdict verdicts[] = {
        [AS_PROMETHEUS_ACCEPTS] = AS_QUERY_ACCEPTED,
        [AS_PROMETHEUS_REJECTS] = AS_QUERY_REFUSED,
        [AS_PROMETHEUS_NO_API] = AS_QUERY_UNCHECKED,
        [AS_PROMETHEUS_UNDECIDED] = AS_QUERY_UNCHECKED,
    };
    struct parsing *parsing = context;
    struct as_prometheus_source *source = parsing->owner;
    const struct as_fetch *fetch = &parsing->fetch;
    struct as_error error = fetch->error;
    enum as_prometheus_verdict verdict = AS_PROMETHEUS_UNDECIDED;
    char text[AS_QUERY_ERROR_MAX];
    if (body)
        verdict = as_prometheus_decode_verdict(fetch->status, body, size, &error);
    if (verdict == AS_PROMETHEUS_NO_API && fetch->server == &source->format) {
        source->lacks_format = true;
        parsing_send(parsing);
        return;
    }
    as_str_copy_line(verdict == AS_PROMETHEUS_ACCEPTS ? "" : error.text, text, sizeof(text));
    parsing->done(parsing->context, parsing->call_id, verdicts[verdict], text);
    parsing_free(parsing);
    begin_waiting(source);
}

static void parsing_send(struct parsing *parsing)
{
    struct as_prometheus_source *source = parsing->owner;
    const struct as_server *server = source->lacks_format ? &source->parse : &source->format;
    AS_CLEANUP(as_buf_deinit) struct as_buf form = AS_BUF_INIT(FORM_MAX);
    as_buf_append_str(&form, "query=");
    as_encode_percent(&form, parsing->text, strlen(parsing->text), "");
    if (source->lacks_format)
        as_buf_append_str(&form, AS_PROMETHEUS_PARSE_ONLY);
    if (as_buf_check(&form) < 0)
        as_fetch_fail(&parsing->fetch, server, "the query is longer than 16 KiB", on_parsed,
                      parsing);
    else
        as_fetch_start(
            &parsing->fetch, server, NULL,
            &(struct as_fetch_body){"application/x-www-form-urlencoded", form.data, form.size},
            on_parsed, parsing);
}

/* False: none waits. */
static bool parsing_begin(struct as_prometheus_source *source)
{
    struct parsing *parsing = TAILQ_FIRST(&source->parsings);
    while (parsing && parsing->is_begun)
        parsing = TAILQ_NEXT(parsing, in_order);
    if (!parsing)
        return false;
    parsing->is_begun = true;
    source->under_way++;
    parsing_send(parsing);
    return true;
}

/* As as_source_port.parse. */
static void prometheus_parse(struct as_prometheus_source *source, uint64_t call_id,
                             const char *text, as_source_parsed_fn *done, void *context)
{
    struct parsing *parsing = as_xcalloc(1, sizeof(*parsing));
    *parsing = (struct parsing){
        .owner = source,
        .text = as_xstrdup(text),
        .call_id = call_id,
        .done = done,
        .context = context,
    };
    TAILQ_INSERT_TAIL(&source->parsings, parsing, in_order);
    begin_waiting(source);
}

/*
 * Firing alerts of all Alertmanagers. They are read in parallel; the list is reported when the
 * last Alertmanager has answered. If one Alertmanager cannot be read, the whole list is an
 * error: alerts that only this server knows would seem to have ended.
 *
 * Each Alertmanager is read twice: its groups, then its status, with the configuration and the
 * time of its start. So if the groups are those of a restarted Alertmanager, the status shows
 * it. A status that cannot be read is no error of the list, but the list opens fewer incidents.
 */

struct peer {
    struct as_server groups, status;
    char *uptime;                          /* in its last status; NULL: none yet */
    char *config;                          /* that was parsed last; NULL: none yet */
    struct as_alertmanager_routes *routes; /* of the last configuration that could be read */
    bool is_known;                         /* `routes` are in force; else `problem` says why not */
    struct as_error problem;
};

struct as_alertmanager_source {
    struct as_http_auth *auth;
    struct peer *peers; /* at least one: an unconfigured server reports its error */
    size_t peer_count;
    LIST_HEAD(, listing) listings;
};

struct member { /* the answers of one Alertmanager */
    struct listing *listing;
    struct peer *peer;
    struct as_fetch groups, status;
    struct as_alertmanager_alerts *alerts;
    bool is_restarted;
};

struct listing {
    LIST_ENTRY(listing) entry;
    struct as_alertmanager_source *owner;
    uint64_t call_id;
    as_source_listed_fn *done;
    void *context;
    size_t waiting;
    struct member *members; /* one per peer */
};

static void init_server(struct as_alertmanager_source *source, struct as_server *server,
                        const char *url, const char *path, const struct as_source_env *env)
{
    *server = (struct as_server){
        .env = env,
        .word = "alertmanager",
        .name = url ? as_xasprintf("Alertmanager %s", url) : as_xstrdup("Alertmanager"),
        .auth = source->auth,
        .timeout_us = AS_ALERT_LIST_TIMEOUT_US,
        .max_response = AS_ALERT_LIST_RESPONSE_MAX,
        .read_error = as_alertmanager_decode_error,
        .missing = "there is no /api/v2/alerts/groups; is this Alertmanager's address, with its "
                   "path prefix?",
    };
    as_server_set_url(server, url, path);
}

static void init_peer(struct as_alertmanager_source *source, struct peer *peer, const char *url,
                      const struct as_source_env *env)
{
    init_server(source, &peer->groups, url, AS_ALERTMANAGER_GROUPS_PATH, env);
    init_server(source, &peer->status, url, AS_ALERTMANAGER_STATUS_PATH, env);
    peer->status.max_response = AS_ALERT_STATUS_RESPONSE_MAX;
    peer->status.missing = NULL;
}

static void deinit_peer(struct peer *peer)
{
    as_server_deinit(&peer->groups);
    as_server_deinit(&peer->status);
    as_alertmanager_routes_free(peer->routes);
    free(peer->config);
    free(peer->uptime);
}

/* Borrows both arguments. */
static struct as_alertmanager_source *alertmanager_new(
    const struct as_alertmanager_settings *settings, const struct as_source_env *env)
{
    struct as_alertmanager_source *source = as_xcalloc(1, sizeof(*source));
    const struct as_login_env login = as_source_env_get_login(env);
    source->auth = as_http_auth_new(&settings->http, &login);
    source->peer_count = settings->url_count > 0 ? settings->url_count : 1;
    source->peers = as_xcalloc(source->peer_count, sizeof(*source->peers));
    for (size_t i = 0; i < source->peer_count; i++)
        init_peer(source, &source->peers[i], settings->url_count > 0 ? settings->urls[i] : NULL,
                  env);
    LIST_INIT(&source->listings);
    return source;
}

static void free_listing(struct listing *listing)
{
    for (size_t i = 0; i < listing->owner->peer_count; i++) {
        as_fetch_cancel(&listing->members[i].groups);
        as_fetch_cancel(&listing->members[i].status);
        as_alertmanager_alerts_free(listing->members[i].alerts);
    }
    LIST_REMOVE(listing, entry);
    free(listing->members);
    free(listing);
}

/* Cancels all requests. */
static struct as_alertmanager_source *alertmanager_free(struct as_alertmanager_source *source)
{
    struct listing *listing;
    if (!source)
        return NULL;
    while ((listing = LIST_FIRST(&source->listings)) != NULL)
        free_listing(listing);
    for (size_t i = 0; i < source->peer_count; i++)
        deinit_peer(&source->peers[i]);
    free(source->peers);
    as_http_auth_free(source->auth);
    free(source);
    return NULL;
}

/* The error of the first server that failed, in the configuration's order, and how many more.
 * False: all answered. */
static bool alertmanager_find_error(const struct listing *listing,
                                    char error_out[AS_QUERY_ERROR_MAX])
{
    const struct member *first = NULL;
    size_t failed = 0;
    for (size_t i = 0; i < listing->owner->peer_count; i++) {
        if (listing->members[i].alerts)
            continue;
        first = first ? first : &listing->members[i];
        failed++;
    }
    if (!first)
        return false;
    struct as_error error = first->groups.error;
    if (failed > 1)
        as_error_wrap(&error, "%zu of %zu could not be read", failed, listing->owner->peer_count);
    as_str_copy_line(error.text, error_out, AS_QUERY_ERROR_MAX);
    return true;
}

/* A configuration that cannot be read now does not shorten the wait of the last one. */
static int64_t get_wait(const struct member *member, const char *receiver)
{
    const struct peer *peer = member->peer;
    const struct as_receiver_routes *found =
        peer->routes ? as_alertmanager_routes_find(peer->routes, receiver) : NULL;
    if (found && peer->is_known && !found->has_intervals)
        return 0;
    if (member->alerts->is_muting_unknown)
        return AS_LISTED_NEVER;
    const int64_t wait = found && found->has_intervals
                             ? as_time_add(found->flush_us, AS_ALERT_WAIT_MARGIN_US)
                             : AS_ALERT_WAIT_UNKNOWN_US;
    const bool is_too_short = !peer->is_known && wait < AS_ALERT_WAIT_UNKNOWN_US;
    return is_too_short ? AS_ALERT_WAIT_UNKNOWN_US : wait;
}

/* The receiver of an alert that no list opens an incident of; NULL: none. */
static const char *set_waits(struct member *member)
{
    const char *never = NULL;
    for (size_t i = 0; i < member->alerts->count; i++) {
        struct as_alertmanager_alert *alert = &member->alerts->items[i];
        for (size_t k = 0; k < alert->listed.route_count; k++) {
            struct as_listed_route *route = &alert->routes[k];
            route->wait_us = get_wait(member, route->receiver);
            if (route->wait_us == AS_LISTED_NEVER)
                never = route->receiver;
        }
    }
    return never;
}

/* Why the member's alerts open fewer incidents; NULL: they open all. */
static const char *make_note(struct member *member, struct as_arena *arena)
{
    static const char before[] = "is older than 0.28 and does not say what time intervals mute";
    const struct peer *peer = member->peer;
    const char *never = set_waits(member);
    struct as_error note = AS_ERROR_INIT;
    if (!never && peer->is_known)
        return NULL;
    if (!never)
        as_error_set(&note,
                     "its configuration could not be read: %s; its list opens incidents only of "
                     "alerts that were not muted for 6m, or longer if its last configuration says "
                     "so",
                     peer->problem.text);
    else if (peer->is_known)
        as_error_set(&note, "it %s: its list opens no incident of receiver `%s`", before, never);
    else
        as_error_set(&note,
                     "it %s, and its configuration could not be read: %s; its list opens no "
                     "incidents",
                     before, peer->problem.text);
    as_error_wrap(&note, "%s", peer->groups.name);
    char line[AS_QUERY_ERROR_MAX];
    as_str_copy_line(note.text, line, sizeof(line));
    return as_arena_strdup(arena, line);
}

static void merge(struct listing *listing, struct as_arena *arena, struct as_alert_list *list)
{
    const size_t count = listing->owner->peer_count;
    struct as_alertmanager_alerts **all =
        as_arena_alloc(arena, count, sizeof(struct as_alertmanager_alerts *));
    const char *note = NULL;
    bool is_anew = false;
    for (size_t i = 0; i < count; i++) {
        struct member *member = &listing->members[i];
        const char *own = make_note(member, arena);
        note = note ? note : own;
        is_anew = is_anew || member->is_restarted;
        all[i] = member->alerts;
    }
    as_alertmanager_merge(all, count, arena, list);
    list->note = note;
    list->is_anew = is_anew;
}

static void alertmanager_finish(struct listing *listing)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_alert_list list = {0};
    char error[AS_QUERY_ERROR_MAX];
    if (alertmanager_find_error(listing, error))
        list.error = error;
    else
        merge(listing, &arena, &list);
    listing->done(listing->context, listing->call_id, &list);
    as_arena_deinit(&arena);
    free_listing(listing);
}

static void replace(char **text_io, const char *text)
{
    free(*text_io);
    *text_io = as_xstrdup(text);
}

/* Parses the configuration unless it is the last one. */
static void learn_config(struct peer *peer, const struct as_alertmanager_status *status)
{
    if (peer->config && peer->is_known && strcmp(peer->config, status->config) == 0)
        return;
    struct as_alertmanager_routes *routes = NULL;
    peer->problem = AS_ERROR_INIT;
    replace(&peer->config, status->config);
    peer->is_known = as_alertmanager_routes_parse(status->config, status->config_size, &routes,
                                                  &peer->problem) == 0;
    if (!peer->is_known) {
        as_error_wrap(&peer->problem, "/api/v2/status: config.original");
        return;
    }
    as_alertmanager_routes_free(peer->routes);
    peer->routes = routes;
}

static void on_status(void *context, const char *body, size_t size)
{
    struct member *member = context;
    struct peer *peer = member->peer;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_alertmanager_status status;
    struct as_error *error = &member->status.error;
    if (body && as_alertmanager_decode_status(body, size, &arena, &status, error) == 0) {
        /* Before the first status, also after a reload, it may have been restarted. */
        member->is_restarted = !peer->uptime || strcmp(peer->uptime, status.uptime) != 0;
        replace(&peer->uptime, status.uptime);
        learn_config(peer, &status);
    } else {
        if (body)
            as_error_wrap(error, "/api/v2/status");
        peer->is_known = false;
        peer->problem = *error;
    }
    as_arena_deinit(&arena);
    if (--member->listing->waiting == 0)
        alertmanager_finish(member->listing);
}

static void on_groups(void *context, const char *body, size_t size)
{
    struct member *member = context;
    struct as_fetch *fetch = &member->groups;
    struct as_error *error = &fetch->error;
    if (body && as_alertmanager_decode_groups(body, size, &member->alerts, error) < 0) {
        as_error_wrap(error, "%s", fetch->server->name);
        fetch->outcome = AS_FETCH_INVALID;
    }
    if (member->alerts && member->alerts->unread > 0)
        fetch->outcome = AS_FETCH_INVALID;
    as_fetch_count(fetch, fetch->outcome);
    if (member->alerts)
        as_fetch_start(&member->status, &member->peer->status, NULL, NULL, on_status, member);
    else if (--member->listing->waiting == 0)
        alertmanager_finish(member->listing);
}

/* As as_source_port.list_alerts. */
static void alertmanager_list(struct as_alertmanager_source *source, uint64_t call_id,
                              as_source_listed_fn *done, void *context)
{
    struct listing *listing = as_xcalloc(1, sizeof(*listing));
    *listing = (struct listing){
        .owner = source,
        .call_id = call_id,
        .done = done,
        .context = context,
        .waiting = source->peer_count,
        .members = as_xcalloc(source->peer_count, sizeof(*listing->members)),
    };
    LIST_INSERT_HEAD(&source->listings, listing, entry);
    for (size_t i = 0; i < source->peer_count; i++) {
        struct member *member = &listing->members[i];
        member->listing = listing;
        member->peer = &source->peers[i];
        as_fetch_start(&member->groups, &member->peer->groups, NULL, NULL, on_groups, member);
    }
}

/* Port. */

/*
 * Tenants: the namespaces of scaling policies. Each has its own queue, and its own URL and headers
 * if `objects.prometheus` has `{{ .Namespace }}` there. So no namespace can see the series of
 * another one, or keep its queries waiting.
 */

#define TENANT_TEMPLATE   "{{ .Namespace }}"
#define TENANT_ANSWER_MAX ((size_t)1024 * 1024)

struct tenant {
    char *namespace;
    struct as_prometheus_settings settings; /* in the arena */
    struct as_arena arena;
    struct as_prometheus_source *source;
    UT_hash_handle hh;
};

/* NULL stays NULL. */
static const char *fill_in_namespace(struct as_arena *arena, const char *text,
                                     const char *namespace)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT_OPEN((size_t)64 * 1024);
    const char *found;
    if (!text || !strstr(text, TENANT_TEMPLATE))
        return text;
    for (; (found = strstr(text, TENANT_TEMPLATE)); text = found + strlen(TENANT_TEMPLATE)) {
        as_buf_append(&out, text, (size_t)(found - text));
        as_buf_append_str(&out, namespace);
    }
    as_buf_append_str(&out, text);
    as_buf_append_char(&out, '\0');
    return as_arena_strdup(arena, out.data);
}

static void fill_in_headers(struct tenant *tenant)
{
    struct as_http_settings *http = &tenant->settings.http;
    const struct as_header_settings *written = http->headers;
    http->headers = as_arena_alloc(&tenant->arena, http->header_count + 1, sizeof(*http->headers));
    for (size_t i = 0; i < http->header_count; i++) {
        struct as_header_settings *header = &http->headers[i];
        *header = written[i];
        header->values =
            as_arena_alloc(&tenant->arena, header->value_count + 1, sizeof(*header->values));
        for (size_t k = 0; k < header->value_count; k++)
            header->values[k] =
                fill_in_namespace(&tenant->arena, written[i].values[k], tenant->namespace);
    }
}

static struct tenant *tenant_new(const struct as_settings *settings,
                                 const struct as_source_env *env, const char *namespace)
{
    const struct as_object_settings *objects = &settings->objects;
    struct tenant *tenant = as_xcalloc(1, sizeof(*tenant));
    tenant->arena = AS_ARENA_INIT;
    tenant->namespace = as_xstrdup(namespace);
    tenant->settings = objects->prometheus.url ? objects->prometheus : settings->prometheus;
    tenant->settings.url = fill_in_namespace(&tenant->arena, tenant->settings.url, namespace);
    tenant->settings.max_queries = (int32_t)objects->queries_per_namespace;
    fill_in_headers(tenant);
    tenant->source = prometheus_new(&tenant->settings, env);
    tenant->source->server.max_response = TENANT_ANSWER_MAX;
    return tenant;
}

static void tenant_free(struct tenant *tenant)
{
    prometheus_free(tenant->source);
    as_arena_deinit(&tenant->arena);
    free(tenant->namespace);
    free(tenant);
}

struct monitoring {
    struct as_source_port port;
    struct as_source_env env;
    const struct as_settings *settings;
    struct tenant *tenants; /* by namespace; each until the port is closed */
    struct as_prometheus_source *prometheus;
    struct as_alertmanager_source *alertmanager;
};

static void run_query(struct as_source_port *self, uint64_t call_id, const struct as_query *query,
                      as_source_queried_fn *done, void *context)
{
    struct monitoring *monitoring = (struct monitoring *)self;
    struct as_prometheus_source *source = monitoring->prometheus;
    struct tenant *tenant;
    if (query->tenant) {
        HASH_FIND_STR(monitoring->tenants, query->tenant, tenant);
        if (!tenant) {
            tenant = tenant_new(monitoring->settings, &monitoring->env, query->tenant);
            HASH_ADD_KEYPTR(hh, monitoring->tenants, tenant->namespace, strlen(tenant->namespace),
                            tenant);
        }
        source = tenant->source;
    }
    prometheus_query(source, call_id, query, done, context);
}

static void run_parse(struct as_source_port *self, uint64_t call_id, const char *text,
                      as_source_parsed_fn *done, void *context)
{
    prometheus_parse(((struct monitoring *)self)->prometheus, call_id, text, done, context);
}

static void list_alerts(struct as_source_port *self, uint64_t call_id, as_source_listed_fn *done,
                        void *context)
{
    alertmanager_list(((struct monitoring *)self)->alertmanager, call_id, done, context);
}

static void monitoring_close_port(struct as_source_port *self)
{
    struct monitoring *monitoring = (struct monitoring *)self;
    struct tenant *tenant, *next;
    HASH_ITER (hh, monitoring->tenants, tenant, next) {
        HASH_DEL(monitoring->tenants, tenant);
        tenant_free(tenant);
    }
    prometheus_free(monitoring->prometheus);
    alertmanager_free(monitoring->alertmanager);
    free(monitoring);
}

struct as_source_port *as_monitoring_new(const struct as_settings *settings,
                                         const struct as_source_env *env)
{
    struct monitoring *monitoring = as_xcalloc(1, sizeof(*monitoring));
    monitoring->port = (struct as_source_port){
        .query = run_query,
        .list_alerts = list_alerts,
        .parse = run_parse,
        .close = monitoring_close_port,
    };
    monitoring->env = *env;
    monitoring->settings = settings;
    monitoring->prometheus = prometheus_new(&settings->prometheus, &monitoring->env);
    monitoring->alertmanager = alertmanager_new(&settings->alertmanager, &monitoring->env);
    return &monitoring->port;
}
