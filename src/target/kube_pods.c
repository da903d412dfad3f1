/*
 * A list of pods: see the header. One page after the other, each from where the one before it
 * ended, so that all show the cluster at one moment. Where the API server has forgotten that moment
 * (410), the list begins anew, once.
 *
 * All or nothing: a list that ends early is a failure, as a target without some of its pods would
 * look as if it needed another size. Limits: see limits.h.
 */
#include "kube_pods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/access/kube_path.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/target/limits.h>
#include <alertscaler/wire/kubernetes.h>

#define FORBIDDEN 403
#define NOT_FOUND 404
#define GONE      410

/* Waits for exactly one of: request, timer. */
struct as_kube_pod_list {
    struct as_kube_client *client;
    char *namespace_, *selector;
    char *next; /* token of the page that is asked for; NULL: the first */
    as_kube_pod_list_done_fn *done;
    void *context;
    struct as_kube_request *request;
    struct as_timer *timer; /* could not be asked: the outcome says why */
    struct as_outcome outcome;
    struct as_kube_pods pods;
    as_mono_time started_at;
    unsigned pages;
    size_t bytes;
    bool is_second_try;
};

static void free_list(struct as_kube_pod_list *list)
{
    free(list->namespace_);
    free(list->selector);
    free(list->next);
    as_kube_pods_deinit(&list->pods);
    free(list);
}

void as_kube_pod_list_cancel(struct as_kube_pod_list *list)
{
    const struct as_access_env *env = list->client->env;
    if (list->request)
        as_kube_request_cancel(list->request);
    if (list->timer)
        env->loop->cancel_timer(env->loop, list->timer);
    free_list(list);
}

static void finish(void *context)
{
    struct as_kube_pod_list *list = context;
    list->timer = NULL;
    if (list->outcome.reason == AS_REASON_APPLIED)
        as_kube_pods_finish(&list->pods);
    else
        as_kube_pods_clear(&list->pods);
    list->done(list->context, &list->outcome, &list->pods);
    free_list(list);
}

/* `what` is one of our texts, or the other side's words. */
static void set_failure(struct as_kube_pod_list *list, enum as_reason reason, const char *what)
{
    char message[2 * AS_MESSAGE_SIZE];
    snprintf(message, sizeof(message), "list pods: %s", what);
    list->outcome.reason = reason;
    as_outcome_set_message(&list->outcome, message);
}

static int write_path(const struct as_kube_pod_list *list, struct as_buf *path)
{
    char limit[16];
    as_buf_append_str(path, "/api/v1/namespaces");
    int code = as_kube_path_append(path, list->namespace_);
    snprintf(limit, sizeof(limit), "%d", AS_KUBE_PODS_PAGE);
    as_buf_append_str(path, "/pods");
    as_kube_path_append_parameter(path, "labelSelector", list->selector);
    as_kube_path_append_parameter(path, "limit", limit);
    if (list->next)
        as_kube_path_append_parameter(path, "continue", list->next);
    return code ? code : as_buf_check(path);
}

static void answered(void *context, const struct as_http_response *response, unsigned attempts);

static void ask(struct as_kube_pod_list *list)
{
    const struct as_access_env *env = list->client->env;
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    if (write_path(list, &path) < 0) {
        set_failure(list, AS_REASON_REJECTED, "the selector is too long for a request");
        list->timer = env->loop->start_timer(env->loop, 0, finish, list);
        return;
    }
    struct as_kube_request_spec spec = {
        .method = "GET",
        .path = path.data,
        .operation = "list_pods",
        .max_response = AS_KUBE_PODS_PAGE_BYTES_MAX,
    };
    list->request = as_kube_request_start(list->client, &spec, answered, list);
}

/* The words of the API server, and whose fault it is: what names no object of ours is not "not
 * found", and the right that is missing has a name. */
static void explain(struct as_kube_pod_list *list, const struct as_http_response *response)
{
    struct as_outcome *outcome = &list->outcome;
    struct as_kube_status status = {0};
    char what[AS_MESSAGE_SIZE + 64];
    if (outcome->http_status > 0 &&
        as_kube_status_decode(response->body, response->body_size, &status, NULL) == 0 &&
        outcome->retry_after_us == 0)
        outcome->retry_after_us = status.retry_after_us;
    snprintf(what, sizeof(what), "%s%s",
             outcome->http_status == FORBIDDEN ? "the right \"pods: list\" is missing: " : "",
             *status.message ? status.message : outcome->message);
    enum as_reason reason = outcome->reason;
    if (outcome->http_status == NOT_FOUND)
        reason = AS_REASON_REJECTED;
    if (outcome->http_status == GONE)
        reason = AS_REASON_UNREACHABLE;
    set_failure(list, reason, what);
}

static void begin_anew(struct as_kube_pod_list *list)
{
    free(list->next);
    list->next = NULL;
    list->is_second_try = true;
    as_kube_pods_clear(&list->pods);
    ask(list);
}

static void take_page(struct as_kube_pod_list *list, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    char *next = NULL;
    int code = as_kube_pods_decode(&list->pods, response->body, response->body_size, &next, &error);
    free(list->next);
    list->next = next;
    if (code)
        set_failure(list, AS_REASON_REJECTED, error.text);
}

/* Whether there may be another page. */
static void check_limits(struct as_kube_pod_list *list)
{
    const struct as_clock *clock = list->client->env->clock;
    if (list->bytes >= AS_KUBE_PODS_BYTES_MAX || list->pages >= AS_KUBE_PODS_PAGES_MAX)
        set_failure(list, AS_REASON_REJECTED, "the list is too long");
    else if (clock->get_mono(clock).us - list->started_at.us >= AS_KUBE_PODS_TIMEOUT_US)
        set_failure(list, AS_REASON_TIMEOUT, "the list takes too long");
}

static void answered(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_kube_pod_list *list = context;
    const struct as_clock *clock = list->client->env->clock;
    list->request = NULL;
    list->pages++;
    list->bytes += response->body_size;
    as_outcome_init(&list->outcome, response, false, clock->get_wall(clock));
    if (list->outcome.http_status == GONE && list->next && !list->is_second_try) {
        begin_anew(list);
        return;
    }
    if (list->outcome.reason == AS_REASON_APPLIED)
        take_page(list, response);
    else
        explain(list, response);
    if (list->outcome.reason == AS_REASON_APPLIED && list->next)
        check_limits(list);
    if (list->outcome.reason == AS_REASON_APPLIED && list->next)
        ask(list);
    else
        finish(list);
}

struct as_kube_pod_list *as_kube_pod_list_start(struct as_kube_client *client,
                                                const char *namespace_, const char *selector,
                                                as_kube_pod_list_done_fn *done, void *context)
{
    struct as_kube_pod_list *list = as_xcalloc(1, sizeof(*list));
    list->client = client;
    list->namespace_ = as_xstrdup(namespace_);
    list->selector = as_xstrdup(selector);
    list->done = done;
    list->context = context;
    list->pods = AS_KUBE_PODS_INIT(AS_KUBE_PODS_MAX);
    list->started_at = client->env->clock->get_mono(client->env->clock);
    ask(list);
    return list;
}
