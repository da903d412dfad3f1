/*
 * Target adapter for the generic HTTP node group: see the header. One call is one request. The
 * version of an observation is the group's entity tag, which is sent back unchanged in If-Match.
 */
#include <alertscaler/cloud/http_group.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/http_group_message.h>
#include <alertscaler/monitoring/http_auth.h>
#include <alertscaler/kube/target_limits.h>

#include <alertscaler/kube/target_outcome.h>

struct http_group {
    struct as_target_port port;
    const struct as_access_env *env;
    struct as_http_auth *auth;
    int64_t timeout_us;
    LIST_HEAD(, call) calls;
};

/* One observe (scaled is NULL) or scale. Waits for its transfer, or for the turn of the loop that
 * reports that it could not start. */
struct call {
    LIST_ENTRY(call) entry;
    struct http_group *owner;
    uint64_t ticket;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    struct as_http_call *transfer;
    struct as_timer *timer;
    struct as_outcome outcome;
    struct as_http_group group; /* of a successful observation */
    unsigned attempts;
    char path[512];
};

static void free_call(struct call *call)
{
    const struct as_access_env *env = call->owner->env;
    if (call->transfer)
        env->http->cancel(env->http, call->transfer);
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    LIST_REMOVE(call, entry);
    free(call);
}

static void tell_observed(const struct call *call)
{
    struct as_observation observation = {
        .replicas = call->group.size,
        .status_replicas = call->group.size,
        .min = call->group.min,
        .max = call->group.max,
        .in_progress = call->group.in_progress,
    };
    as_outcome_fill_observation(&call->outcome, &observation);
    memcpy(observation.version, call->group.etag, sizeof(observation.version));
    call->observed(call->context, call->ticket, &observation);
}

static void tell_scaled(const struct call *call)
{
    struct as_scale_result result = {.attempts = call->attempts, .method = "PUT"};
    as_outcome_fill_result(&call->outcome, &result);
    memcpy(result.path, call->path, sizeof(result.path));
    call->scaled(call->context, call->ticket, &result);
}

static void finish(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (call->scaled)
        tell_scaled(call);
    else
        tell_observed(call);
    free_call(call);
}

static void fail_later(struct call *call, enum as_reason reason, const char *message)
{
    const struct as_access_env *env = call->owner->env;
    as_outcome_init_local(&call->outcome, reason, message);
    call->timer = env->loop->start_timer(env->loop, 0, finish, call);
}

static void take_group(struct call *call, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    if (as_http_group_decode_answer(response->body, response->body_size, response->etag,
                                    &call->group, &error) == 0)
        return;
    call->outcome.reason = AS_REASON_REJECTED;
    as_outcome_set_message(&call->outcome, error.text);
}

static void answered(void *context, const struct as_http_response *response)
{
    struct call *call = context;
    const struct as_clock *clock = call->owner->env->clock;
    call->transfer = NULL;
    as_outcome_init(&call->outcome, response, call->scaled != NULL, clock->get_wall(clock));
    if (call->outcome.reason != AS_REASON_APPLIED) {
        char message[AS_MESSAGE_SIZE];
        as_http_group_decode_message(response->body, response->body_size, message);
        as_outcome_set_message(&call->outcome, message);
    } else if (!call->scaled) {
        take_group(call, response);
    }
    finish(call);
}

/* For the action log: the path, without the query, which may hold a secret. */
static void keep_path(struct call *call, const char *url)
{
    const char *authority = strstr(url, "://");
    const char *path = authority ? strchr(authority + 3, '/') : NULL;
    size_t size = path ? strcspn(path, "?#") : 0;
    snprintf(call->path, sizeof(call->path), "%.*s", (int)size, path ? path : "");
}

static void start(struct call *call, const struct as_target_ref *ref, const char *credential,
                  const struct as_scale_request *wanted)
{
    const struct as_access_env *env = call->owner->env;
    const char *url = as_target_ref_get(ref, "url");
    const char *headers[4] = {"Accept: application/json"};
    char if_match[AS_VERSION_SIZE + 16];
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    if (wanted) {
        as_http_group_encode_change(wanted->to, wanted->from, &body);
        headers[1] = "Content-Type: application/json";
        snprintf(if_match, sizeof(if_match), "If-Match: %s", wanted->version);
        headers[2] = as_str_is_empty(wanted->version) ? NULL : if_match;
    }
    struct as_http_request request = {
        .method = wanted ? "PUT" : "GET",
        .url = url,
        .body = body.data,
        .body_size = body.size,
        .timeout_us = call->owner->timeout_us,
        .max_response = AS_TARGET_RESPONSE_MAX,
        .flow = {ref->id, credential},
        .client_name = "http",
        .operation = wanted ? "set_size" : "get_size",
    };
    struct as_error error = AS_ERROR_INIT;
    keep_path(call, url);
    if (as_str_is_empty(url) || (wanted && !as_http_group_etag_is_valid(wanted->version))) {
        fail_later(call, AS_REASON_REJECTED,
                   as_str_is_empty(url) ? "the target has no url" : "not an entity tag");
    } else if (as_http_auth_apply(call->owner->auth, headers, &request, &error) < 0) {
        fail_later(call, AS_REASON_UNREACHABLE, error.text);
    } else {
        call->attempts = 1;
        call->transfer = env->http->start(env->http, &request, answered, call);
    }
}

static struct call *new_call(struct as_target_port *port, uint64_t ticket, void *context)
{
    struct http_group *group = (struct http_group *)port;
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = group;
    call->ticket = ticket;
    call->context = context;
    call->group.min = call->group.max = -1;
    LIST_INSERT_HEAD(&group->calls, call, entry);
    return call;
}

static void observe(struct as_target_port *self, uint64_t ticket, const struct as_target_ref *ref,
                    const struct as_observe_request *request, as_target_observed_fn *done,
                    void *context)
{
    struct call *call = new_call(self, ticket, context);
    call->observed = done;
    start(call, ref, request->credential, NULL);
}

static void scale(struct as_target_port *self, uint64_t ticket, const struct as_target_ref *ref,
                  const struct as_scale_request *request, as_target_scaled_fn *done, void *context)
{
    struct call *call = new_call(self, ticket, context);
    call->scaled = done;
    start(call, ref, request->credential, request);
}

static bool is_idle(const struct as_target_port *self)
{
    return LIST_EMPTY(&((const struct http_group *)self)->calls);
}

static void close_port(struct as_target_port *self)
{
    struct http_group *group = (struct http_group *)self;
    struct call *call;
    while ((call = LIST_FIRST(&group->calls)) != NULL)
        free_call(call);
    as_http_auth_free(group->auth);
    free(group);
}

struct as_target_port *as_http_group_new(const struct as_provider_settings *settings,
                                         const struct as_access_env *env)
{
    struct http_group *group = as_xcalloc(1, sizeof(*group));
    group->port = (struct as_target_port){observe, scale, is_idle, close_port, NULL};
    group->env = env;
    group->auth = as_http_auth_new(&settings->http, env->clock);
    group->timeout_us = settings->timeout_us;
    LIST_INIT(&group->calls);
    return &group->port;
}
