/*
 * The loop's side of copying: see the header. A sweep goes through the gaps, the newest first. It
 * is a chain of steps, of which one is under way at a time: find a gap (a job), ask one replica
 * after another for its last records (a request), check and write them (a job). After each part
 * that was written, the gap is found anew, and is smaller. A gap that no replica fills is left out
 * of the rest of the sweep.
 */
#include "log_copier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/log/log_copy.h>
#include <alertscaler/login/http_auth.h>

#define PATH          "/api/v1/log"
#define RECORDS_FIRST 1000
#define PAUSE_US      (50 * AS_US_PER_MS) /* between two parts of a gap */
#define REPEAT_US     AS_US_PER_H         /* of the same log line */
#define ERROR_MAX     200                 /* bytes of an answer in the log */

struct copier_peer {
    char *url, *name;
    as_mono_time not_before; /* the next request */
};

struct copier_job {
    struct as_log_history_job job; /* the first member */
    struct log_copier *copier;     /* NULL: it has ended; only the loop reads it */
    bool takes;                    /* else it finds */
    int status;                    /* of finding */
    struct as_log_copy_search search;
    struct as_log_copy_gap gap;
    struct as_log_copy_answer answer;
    struct as_log_copy_result result;
    char *replica;
    struct as_buf lines;
};

struct log_copier {
    struct log_copier_config config;
    struct as_http_auth *auth;
    struct copier_peer *peers;
    size_t peer_count;
    size_t favorite; /* gave the last good answer */
    size_t tried;    /* for the present gap, from the favorite on */
    struct as_timer *timer;
    struct as_http_call *call;
    struct copier_job *job;
    struct as_buf body;
    struct as_log_copy_gap gap;
    int64_t records;      /* of the next request */
    int64_t above, below; /* gaps between these are wanted */
    uint64_t copied;      /* records, in this sweep */
    char logged[AS_ERROR_SIZE];
    as_mono_time logged_at;
    bool has_logged;
};

static void copier_find(struct log_copier *copier);
static void copier_ask(struct log_copier *copier);

static as_mono_time copier_now(const struct log_copier *copier)
{
    return copier->config.env.clock->get_mono(copier->config.env.clock);
}

/* At most one line a minute, and the same line at most once an hour. */
static void copier_complain(struct log_copier *copier, const char *replica, const char *problem)
{
    const as_mono_time now = copier_now(copier);
    char text[AS_ERROR_SIZE];
    (void)snprintf(text, sizeof(text), "%s %s", replica, problem);
    const int64_t wait = strcmp(text, copier->logged) == 0 ? REPEAT_US : AS_US_PER_MIN;
    if (copier->has_logged && now.us - copier->logged_at.us < wait)
        return;
    memcpy(copier->logged, text, sizeof(text));
    copier->logged_at = now;
    copier->has_logged = true;
    as_log(AS_LOG_WARN, "records of another replica cannot be copied", AS_F_IF("replica", replica),
           AS_F("error", problem));
}

static void copier_on_timer(void *context)
{
    struct log_copier *copier = context;
    copier->timer = NULL;
    copier_find(copier);
}

static void copier_arm(struct log_copier *copier, int64_t delay_us)
{
    struct as_loop *loop = copier->config.env.loop;
    copier->timer = loop->start_timer(loop, delay_us, copier_on_timer, copier);
}

static void copier_end_sweep(struct log_copier *copier)
{
    if (copier->copied > 0)
        as_log(AS_LOG_INFO, "copied records that other replicas wrote",
               AS_FI("records", copier->copied));
    copier->copied = 0;
    copier->below = INT64_MAX;
    as_buf_deinit(&copier->body);
    copier_arm(copier, LOG_COPIER_EVERY_US);
}

/*
 * Jobs.
 */

static struct copier_job *copier_job_free(struct copier_job *job)
{
    as_buf_deinit(&job->lines);
    free(job->replica);
    free(job);
    return NULL;
}

static void copier_job_run(struct as_log_history_job *self, const struct as_log_history_view *view)
{
    struct copier_job *job = (struct copier_job *)self;
    struct as_error error;
    if (job->takes)
        as_log_copy_take(&job->answer, &job->result);
    else
        job->status = as_log_copy_find(view, &job->search, &job->gap, &error);
}

static void copier_job_drop(struct as_log_history_job *self)
{
    struct copier_job *job = (struct copier_job *)self;
    if (job->copier)
        job->copier->job = NULL;
    copier_job_free(job);
}

static void copier_on_found(struct log_copier *copier, const struct copier_job *job)
{
    if (job->status != 1) { /* an index that cannot be read is in the log already */
        copier_end_sweep(copier);
        return;
    }
    copier->gap = job->gap;
    copier->tried = 0;
    copier_ask(copier);
}

static struct copier_peer *copier_get_peer(const struct log_copier *copier)
{
    return &copier->peers[(copier->favorite + copier->tried) % copier->peer_count];
}

static void copier_give_up_peer(struct log_copier *copier, const char *problem)
{
    struct copier_peer *peer = copier_get_peer(copier);
    copier_complain(copier, peer->name, problem);
    peer->not_before.us = as_time_add(copier_now(copier).us, LOG_COPIER_RETRY_US);
    copier->tried++;
    copier_ask(copier);
}

static int64_t copier_get_first(const struct log_copier *copier)
{
    const struct as_log_copy_gap *gap = &copier->gap;
    return gap->last - gap->first < copier->records ? gap->first : gap->last - copier->records + 1;
}

static void copier_on_taken(struct log_copier *copier, const struct as_log_copy_result *result)
{
    const int64_t asked = copier->gap.last - copier_get_first(copier) + 1;
    if (result->above > copier->above)
        copier->above = result->above;
    switch (result->outcome) {
    case AS_LOG_COPY_DONE:
        copier->copied += result->count;
        copier->favorite = (copier->favorite + copier->tried) % copier->peer_count;
        copier->records = copier->records > LOG_COPIER_RECORDS_MAX / 2 ? LOG_COPIER_RECORDS_MAX
                                                                       : copier->records * 2;
        copier_arm(copier, PAUSE_US);
        return;
    case AS_LOG_COPY_FULL: copier_arm(copier, PAUSE_US); return;
    case AS_LOG_COPY_WRONG: copier_give_up_peer(copier, result->error.text); return;
    case AS_LOG_COPY_FAILED:
        copier_complain(copier, "", result->error.text);
        copier_end_sweep(copier);
        return;
    case AS_LOG_COPY_SHORT:
        copier->records = asked / 2;
        if (result->count > 0 && (int64_t)result->count < copier->records)
            copier->records = (int64_t)result->count;
        break;
    case AS_LOG_COPY_NOTHING: copier->records = 0; break;
    }
    if (copier->records == 0) {
        copier->records = RECORDS_FIRST;
        copier->tried++;
    }
    copier_ask(copier);
}

static void copier_job_done(struct as_log_history_job *self)
{
    struct copier_job *job = (struct copier_job *)self;
    struct log_copier *copier = job->copier;
    if (copier) {
        copier->job = NULL;
        if (!copier->config.is_leading(copier->config.context))
            copier_end_sweep(copier);
        else if (job->takes)
            copier_on_taken(copier, &job->result);
        else
            copier_on_found(copier, job);
    }
    copier_job_free(job);
}

static struct copier_job *copier_job_new(struct log_copier *copier)
{
    struct copier_job *job = as_xcalloc(1, sizeof(*job));
    job->job = (struct as_log_history_job){
        .run = copier_job_run, .done = copier_job_done, .drop = copier_job_drop};
    job->copier = copier;
    return job;
}

static void copier_submit(struct log_copier *copier, struct copier_job *job)
{
    copier->job = job;
    if (as_log_history_submit(copier->config.history, &job->job))
        return;
    copier->job = copier_job_free(job); /* pages go first */
    copier_end_sweep(copier);
}

static void copier_find(struct log_copier *copier)
{
    if (!copier->config.is_leading(copier->config.context)) {
        copier_end_sweep(copier);
        return;
    }
    struct copier_job *job = copier_job_new(copier);
    job->search = (struct as_log_copy_search){
        .log_path = as_log_history_get_path(copier->config.history),
        .instance = copier->config.instance,
        .above = copier->above,
        .below = copier->below,
    };
    copier_submit(copier, job);
}

static void copier_take(struct log_copier *copier, bool has_more)
{
    const struct as_action_log_settings *settings = copier->config.settings;
    struct copier_job *job = copier_job_new(copier);
    job->takes = true;
    job->lines = copier->body;
    copier->body = (struct as_buf){0};
    job->gap = copier->gap;
    job->replica = as_xstrdup(copier_get_peer(copier)->name);
    job->answer = (struct as_log_copy_answer){
        .gap = &job->gap,
        .first = copier_get_first(copier),
        .log_path = as_log_history_get_path(copier->config.history),
        .replica = job->replica,
        .lines = job->lines.size > 0 ? job->lines.data : "",
        .size = job->lines.size,
        .has_more = has_more,
        .bytes_max = settings->max_size > UINT64_MAX / settings->keep
                         ? UINT64_MAX
                         : settings->max_size * settings->keep,
        .free_min = copier->config.free_min,
    };
    copier_submit(copier, job);
}

/*
 * Requests.
 */

static bool copier_on_body(void *context, const char *content_type, const char *bytes, size_t size)
{
    struct log_copier *copier = context;
    as_buf_append(&copier->body, bytes, size);
    return as_buf_check(&copier->body) == 0;
}

static void copier_explain(const struct log_copier *copier, const struct as_http_response *response,
                           struct as_error *error)
{
    char line[ERROR_MAX];
    as_str_copy_line(response->body, line, sizeof(line));
    if (as_buf_check(&copier->body) != 0)
        as_error_set(error, "the answer is larger than %zu MiB", LOG_COPIER_ANSWER_MAX >> 20);
    else if (response->outcome == AS_HTTP_TIMEOUT)
        as_error_set(error, "no whole answer within %d s",
                     (int)(LOG_COPIER_TIMEOUT_US / AS_US_PER_S));
    else if (response->outcome != AS_HTTP_ANSWERED)
        as_error_set(error, "%s", response->error);
    else if (response->status >= 300 && response->status < 400)
        as_error_set(error, "HTTP %d: redirects are not followed", response->status);
    else if (response->status == 401 || response->status == 403)
        as_error_set(error,
                     "HTTP %d: action_log.replicas.http_config needs a credential with the "
                     "permission `read`",
                     response->status);
    else
        as_error_set(error, "HTTP %d: %s", response->status, line);
}

static void copier_on_answer(void *context, const struct as_http_response *response)
{
    struct log_copier *copier = context;
    copier->call = NULL;
    if (!copier->config.is_leading(copier->config.context)) {
        copier_end_sweep(copier);
    } else if (response->outcome == AS_HTTP_ANSWERED && response->status == 200) {
        copier_take(copier,
                    strcmp(as_http_response_find(response, "Alertscaler-Log-More"), "yes") == 0);
    } else {
        struct as_error error = AS_ERROR_INIT;
        copier_explain(copier, response, &error);
        copier_give_up_peer(copier, error.text);
    }
}

static void copier_start(struct log_copier *copier, const struct copier_peer *peer)
{
    static const char *const headers[] = {"Accept: application/x-ndjson", NULL};
    const int64_t first = copier_get_first(copier);
    AS_CLEANUP(as_free_p)
    char *url = as_xasprintf("%s" PATH "?after=%lld&limit=%lld", peer->url, (long long)(first - 1),
                             (long long)(copier->gap.last - first + 1));
    struct as_http *http = as_http_auth_get_port(copier->auth);
    const struct as_http_request request = {
        .method = "GET",
        .url = url,
        .headers = headers,
        .timeout_us = LOG_COPIER_TIMEOUT_US,
        .idle_us = LOG_COPIER_IDLE_US,
        .max_response = LOG_COPIER_ANSWER_MAX,
        .on_body = copier_on_body,
    };
    as_buf_deinit(&copier->body);
    copier->body = AS_BUF_INIT_OPEN(LOG_COPIER_ANSWER_MAX);
    copier->call = http->start(http, &request, copier_on_answer, copier);
}

/* The next replica that may be asked. If there is none, the gap waits for the next sweep. */
static void copier_ask(struct log_copier *copier)
{
    const as_mono_time now = copier_now(copier);
    while (copier->tried < copier->peer_count && copier_get_peer(copier)->not_before.us > now.us)
        copier->tried++;
    if (copier->tried < copier->peer_count) {
        copier_start(copier, copier_get_peer(copier));
        return;
    }
    copier->below = copier->gap.last;
    for (size_t i = 0; i < copier->peer_count; i++) {
        if (copier->peers[i].not_before.us <= now.us) {
            copier_arm(copier, PAUSE_US);
            return;
        }
    }
    copier_end_sweep(copier);
}

/*
 * The whole.
 */

static void copier_peer_init(struct copier_peer *peer, const char *url)
{
    char host[AS_URL_HOST_SIZE];
    size_t size = strlen(url);
    while (size > 0 && url[size - 1] == '/')
        size--;
    peer->url = as_xstrndup(url, size);
    peer->name = as_xstrdup(as_url_take_host(url, host) ? host : "");
    peer->not_before.us = INT64_MIN;
}

struct log_copier *log_copier_new(const struct log_copier_config *config)
{
    const struct as_replica_settings *replicas = &config->settings->replicas;
    if (replicas->url_count == 0)
        return NULL;
    struct log_copier *copier = as_xcalloc(1, sizeof(*copier));
    copier->config = *config;
    copier->auth = as_http_auth_new(&replicas->http, &copier->config.env);
    copier->peers = as_xcalloc(replicas->url_count, sizeof(*copier->peers));
    copier->peer_count = replicas->url_count;
    for (size_t i = 0; i < copier->peer_count; i++)
        copier_peer_init(&copier->peers[i], replicas->urls[i]);
    copier->records = RECORDS_FIRST;
    copier->below = INT64_MAX;
    copier_arm(copier, LOG_COPIER_EVERY_US);
    return copier;
}

struct log_copier *log_copier_free(struct log_copier *copier)
{
    if (!copier)
        return NULL;
    if (copier->call) {
        struct as_http *http = as_http_auth_get_port(copier->auth);
        http->cancel(http, copier->call);
    }
    if (copier->job)
        copier->job->copier = NULL;
    copier->config.env.loop->cancel_timer(copier->config.env.loop, copier->timer);
    for (size_t i = 0; i < copier->peer_count; i++) {
        free(copier->peers[i].url);
        free(copier->peers[i].name);
    }
    free(copier->peers);
    as_http_auth_free(copier->auth);
    as_buf_deinit(&copier->body);
    free(copier);
    return NULL;
}
