/*
 * A list, page by page: see the header. Each page begins where the one before it ended, so that all
 * show the cluster at one moment. If the API server no longer knows that moment (410), the list is
 * restarted, once.
 *
 * All or nothing: a list that ends early is a failure, because what is missing would seem not to
 * exist. Limits: see store_limits.h.
 */
#include "kube_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/target_limits.h>

#include "kube_path.h"

#define FORBIDDEN 403
#define NOT_FOUND 404
#define GONE      410

/* Waits for exactly one of: request, timer. */
struct as_kube_pages {
    struct as_kube_client *client;
    struct as_kube_pages_spec spec;
    char *path;
    char *next; /* token of the next page; NULL: the first */
    struct as_kube_request *request;
    struct as_timer *timer; /* could not start: the outcome says why */
    struct as_outcome outcome;
    as_mono_time started_at;
    unsigned count;
    size_t bytes;
    bool is_second_try;
};

static void free_pages(struct as_kube_pages *pages)
{
    as_flow_deinit(&pages->spec.flow);
    free(pages->path);
    free(pages->next);
    free(pages);
}

void as_kube_pages_cancel(struct as_kube_pages *pages)
{
    const struct as_access_env *env = pages->client->env;
    if (pages->request)
        as_kube_request_cancel(pages->request);
    if (pages->timer)
        env->loop->cancel_timer(env->loop, pages->timer);
    free_pages(pages);
}

static void pages_finish(void *context)
{
    struct as_kube_pages *pages = context;
    pages->timer = NULL;
    if (pages->outcome.reason != AS_REASON_APPLIED)
        pages->spec.clear(pages->spec.context);
    pages->spec.done(pages->spec.context, &pages->outcome);
    free_pages(pages);
}

/* `what` is our own text or the other side's. */
static void set_failure(struct as_kube_pages *pages, enum as_reason reason, const char *what)
{
    char message[2 * AS_MESSAGE_SIZE];
    snprintf(message, sizeof(message), "%s: %s", pages->spec.what, what);
    pages->outcome.reason = reason;
    as_outcome_set_message(&pages->outcome, message);
}

static int pages_write_path(const struct as_kube_pages *pages, struct as_buf *path)
{
    char limit[16];
    if (!pages->path)
        return -1;
    as_buf_append_str(path, pages->path);
    snprintf(limit, sizeof(limit), "%d", AS_KUBE_PODS_PAGE);
    as_kube_path_append_parameter(path, "limit", limit);
    if (pages->next)
        as_kube_path_append_parameter(path, "continue", pages->next);
    return as_buf_check(path);
}

static void pages_answered(void *context, const struct as_http_response *response,
                           unsigned attempts);

static void pages_ask(struct as_kube_pages *pages)
{
    const struct as_access_env *env = pages->client->env;
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    if (pages_write_path(pages, &path) < 0) {
        set_failure(pages, AS_REASON_REJECTED, pages->spec.trouble);
        pages->timer = env->loop->start_timer(env->loop, 0, pages_finish, pages);
        return;
    }
    struct as_kube_request_spec spec = {
        .method = "GET",
        .path = path.data,
        .operation = pages->spec.operation,
        .max_response = AS_KUBE_PODS_PAGE_BYTES_MAX,
        .flow = pages->spec.flow,
    };
    pages->request = as_kube_request_start(pages->client, &spec, pages_answered, pages);
}

/* Explains with the API server's words. A 404 that names no object of ours is not "not found"; for
 * a 403 the missing right is named. */
static void pages_explain(struct as_kube_pages *pages, const struct as_http_response *response)
{
    struct as_outcome *outcome = &pages->outcome;
    struct as_kube_status status = {0};
    char what[AS_MESSAGE_SIZE + 64], right[64] = "";
    if (outcome->http_status > 0 &&
        as_kube_status_decode(response->body, response->body_size, &status, NULL) == 0 &&
        outcome->retry_after_us == 0)
        outcome->retry_after_us = status.retry_after_us;
    if (outcome->http_status == FORBIDDEN)
        snprintf(right, sizeof(right), "the right \"%s\" is missing: ", pages->spec.right);
    snprintf(what, sizeof(what), "%s%s", right,
             *status.message ? status.message : outcome->message);
    enum as_reason reason = outcome->reason;
    if (outcome->http_status == NOT_FOUND)
        reason = AS_REASON_REJECTED;
    if (outcome->http_status == GONE)
        reason = AS_REASON_UNREACHABLE;
    set_failure(pages, reason, what);
}

static void pages_begin_anew(struct as_kube_pages *pages)
{
    free(pages->next);
    pages->next = NULL;
    pages->is_second_try = true;
    pages->spec.clear(pages->spec.context);
    pages_ask(pages);
}

static void take_page(struct as_kube_pages *pages, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    char *next = NULL;
    int status =
        pages->spec.take(pages->spec.context, response->body, response->body_size, &next, &error);
    free(pages->next);
    pages->next = next;
    if (status)
        set_failure(pages, AS_REASON_REJECTED, error.text);
}

/* Whether the limits allow another page. */
static void check_limits(struct as_kube_pages *pages)
{
    const struct as_clock *clock = pages->client->env->clock;
    if (pages->bytes >= AS_KUBE_PODS_BYTES_MAX || pages->count >= AS_KUBE_PODS_PAGES_MAX)
        set_failure(pages, AS_REASON_REJECTED, "the list is too long");
    else if (clock->get_mono(clock).us - pages->started_at.us >= AS_KUBE_PODS_TIMEOUT_US)
        set_failure(pages, AS_REASON_TIMEOUT, "the list takes too long");
}

static void pages_answered(void *context, const struct as_http_response *response,
                           unsigned attempts)
{
    struct as_kube_pages *pages = context;
    const struct as_clock *clock = pages->client->env->clock;
    pages->request = NULL;
    pages->count++;
    pages->bytes += response->body_size;
    as_outcome_init(&pages->outcome, response, false, clock->get_wall(clock));
    if (pages->outcome.http_status == GONE && pages->next && !pages->is_second_try) {
        pages_begin_anew(pages);
        return;
    }
    if (pages->outcome.reason == AS_REASON_APPLIED)
        take_page(pages, response);
    else
        pages_explain(pages, response);
    if (pages->outcome.reason == AS_REASON_APPLIED && pages->next)
        check_limits(pages);
    if (pages->outcome.reason == AS_REASON_APPLIED && pages->next)
        pages_ask(pages);
    else
        pages_finish(pages);
}

struct as_kube_pages *as_kube_pages_start(struct as_kube_client *client,
                                          const struct as_kube_pages_spec *spec)
{
    struct as_kube_pages *pages = as_xcalloc(1, sizeof(*pages));
    pages->client = client;
    pages->spec = *spec;
    pages->spec.flow = as_flow_copy(&spec->flow);
    pages->path = spec->path ? as_xstrdup(spec->path) : NULL;
    pages->started_at = client->env->clock->get_mono(client->env->clock);
    pages_ask(pages);
    return pages;
}
