/*
 * Events on scaled objects and on scaling policies: see the header.
 */
#include "kube_events.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for every small allocation */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/rules/policy.h>

struct seen {
    UT_hash_handle hh; /* in order of insertion: the oldest is the first */
    char uid[AS_UID_SIZE];
    char id[];
};

struct as_kube_events {
    struct as_kube_client *client;
    struct seen *seen;
    unsigned in_flight;
    int64_t tokens_us; /* of the token bucket: an event costs 1 s / rate */
    as_mono_time filled_at;
    bool is_failing; /* this was logged */
};

#define EVENT_COST_US (AS_US_PER_S / AS_KUBE_EVENTS_PER_S)
#define TOKENS_MAX_US (EVENT_COST_US * AS_KUBE_EVENTS_BURST)
#define MESSAGE_MAX   ((size_t)1000) /* the API server takes 1,024 bytes */

struct as_kube_events *as_kube_events_new(struct as_kube_client *client)
{
    struct as_kube_events *events = as_xcalloc(1, sizeof(*events));
    events->client = client;
    events->tokens_us = TOKENS_MAX_US;
    events->filled_at = client->env->clock->get_mono(client->env->clock);
    return events;
}

static void events_forget(struct as_kube_events *events, struct seen *seen)
{
    HASH_DEL(events->seen, seen);
    free(seen);
}

struct as_kube_events *as_kube_events_free(struct as_kube_events *events)
{
    struct seen *seen, *next;
    if (!events)
        return NULL;
    HASH_ITER (hh, events->seen, seen, next)
        events_forget(events, seen);
    free(events);
    return NULL;
}

void as_kube_events_remember(struct as_kube_events *events, const char *id, const char *uid)
{
    struct seen *seen;
    size_t size = strlen(id) + 1;
    HASH_FIND_STR(events->seen, id, seen);
    if (seen)
        events_forget(events, seen);
    else if (HASH_COUNT(events->seen) >= AS_KUBE_REMEMBERED_UIDS)
        events_forget(events, events->seen);
    seen = as_xcalloc(1, sizeof(*seen) + size);
    memcpy(seen->id, id, size);
    memcpy(seen->uid, uid, strnlen(uid, sizeof(seen->uid) - 1));
    HASH_ADD_STR(events->seen, id, seen);
}

/* Leaves `kept` of them. */
static bool events_take_token(struct as_kube_events *events, int64_t kept_us)
{
    const struct as_clock *clock = events->client->env->clock;
    as_mono_time now = clock->get_mono(clock);
    events->tokens_us = as_time_add(events->tokens_us, now.us - events->filled_at.us);
    events->filled_at = now;
    if (events->tokens_us > TOKENS_MAX_US)
        events->tokens_us = TOKENS_MAX_US;
    if (events->tokens_us < kept_us + EVENT_COST_US)
        return false;
    events->tokens_us -= EVENT_COST_US;
    return true;
}

/* The reason of the Event for this result. NULL: no Event. */
static const char *get_event_reason(const struct as_scale_result *result)
{
    if (result->outcome == AS_REASON_APPLIED)
        return "SuccessfulRescale";
    /* A conflict is decided again at once; a missing object can have no Event; a server that could
     * not be reached will not accept an Event. */
    if (result->outcome == AS_REASON_CONFLICT || result->outcome == AS_REASON_TARGET_NOT_FOUND ||
        result->attempts == 0 || (result->http_status == 0 && !result->is_ambiguous))
        return NULL;
    return "FailedRescale";
}

static void write_message(struct as_buf *message, const struct as_target_ref *ref,
                          const struct as_scale_request *request,
                          const struct as_scale_result *result)
{
    char size[AS_SIZE_TEXT_SIZE];
    as_buf_printf(message, "New size: %s; reason: ",
                  as_unit_print_size(as_sized_get_unit(ref), request->to, size));
    if (request->is_put_back) {
        as_buf_printf(message, "the rollout of %s did not end in time",
                      as_unit_print_size(as_sized_get_unit(ref), request->from, size));
    } else if (request->is_ordered) {
        as_buf_printf(message, "an operator's command %s", request->decision_id);
    } else {
        as_buf_printf(message, "rule %s", request->rule);
        if (!as_str_is_empty(request->alert))
            as_buf_printf(message, " (alert %s)", request->alert);
        as_buf_printf(message, "; decision %s", request->decision_id);
    }
    if (result->outcome != AS_REASON_APPLIED)
        as_buf_printf(message, "; error: %s: %s", as_reason_get_word(result->outcome),
                      result->message);
}

static int events_write_path(struct as_buf *path, const char *namespace_)
{
    as_buf_append_str(path, "/api/v1/namespaces");
    int status = as_kube_path_append(path, as_str_is_empty(namespace_) ? "default" : namespace_);
    as_buf_append_str(path, "/events");
    return status ? status : as_buf_check(path);
}

static void events_note_failure(struct as_kube_events *events, const char *why)
{
    if (!events->is_failing)
        as_log(AS_LOG_WARN, "events on scaled objects cannot be written", AS_F("error", why));
    events->is_failing = true;
}

static void posted(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_kube_events *events = context;
    const struct as_access_env *env = events->client->env;
    struct as_outcome outcome;
    struct as_kube_status status;
    events->in_flight--;
    as_outcome_init(&outcome, response, true, env->clock->get_wall(env->clock));
    if (outcome.reason == AS_REASON_APPLIED) {
        events->is_failing = false;
        return;
    }
    if (as_kube_status_decode(response->body, response->body_size, &status, NULL) == 0)
        as_outcome_set_message(&outcome, status.message);
    events_note_failure(events, outcome.message);
}

static void post(struct as_kube_events *events, const struct as_flow *flow,
                 const struct as_kube_event *event)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    as_kube_event_encode(event, &body);
    if (events_write_path(&path, event->namespace_) < 0 || as_buf_check(&body) < 0)
        return;
    struct as_kube_request_spec spec = {
        .method = "POST",
        .path = path.data,
        .operation = "create_event",
        .body = body.data,
        .body_size = body.size,
        .max_response = AS_TARGET_RESPONSE_MAX,
        .flow = *flow,
    };
    events->in_flight++;
    struct as_kube_request *request = as_kube_request_start(events->client, &spec, posted, events);
    (void)request; /* cancelled with the client */
}

/* Within the limits, half of which narrowed credentials leave to others. */
static void post_within_limits(struct as_kube_events *events, const char *id,
                               const char *credential, const struct as_kube_event *event)
{
    if (events->in_flight < AS_KUBE_EVENTS_IN_FLIGHT / (credential ? 2 : 1) &&
        events_take_token(events, credential ? TOKENS_MAX_US / 2 : 0))
        post(events, &(struct as_flow){id, credential}, event);
    else
        events_note_failure(events, "too many at a time");
}

static void event_set_policy(struct as_kube_event *event, const struct as_policy_ref *policy)
{
    event->api_version = AS_POLICY_GROUP "/" AS_POLICY_VERSION;
    event->kind = AS_POLICY_KIND;
    event->namespace_ = policy->namespace;
    event->name = policy->name;
    event->uid = policy->uid;
}

/* On the target, and on the policy that it is of. `namespace_` is "" for a cluster-wide object. */
static void post_on(struct as_kube_events *events, const struct as_target_ref *ref,
                    const char *credential, const char *namespace_,
                    const struct as_policy_ref *policy, struct as_kube_event *event)
{
    const struct as_clock *clock = events->client->env->clock;
    struct seen *seen;
    HASH_FIND_STR(events->seen, ref->id, seen);
    event->api_version = as_target_ref_get(ref, "apiVersion");
    event->kind = as_target_ref_get(ref, "kind");
    event->namespace_ = namespace_;
    event->name = as_target_ref_get(ref, "name");
    event->uid = seen ? seen->uid : "";
    event->at = clock->get_wall(clock);
    post_within_limits(events, ref->id, credential, event);
    if (!policy->name)
        return;
    event_set_policy(event, policy);
    post_within_limits(events, ref->id, credential, event);
}

void as_kube_events_post_on_policy(struct as_kube_events *events,
                                   const struct as_policy_ref *policy, const char *reason,
                                   const char *message)
{
    const struct as_clock *clock = events->client->env->clock;
    const size_t size = strlen(message);
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("%s/%s", policy->namespace, policy->name);
    AS_CLEANUP(as_free_p)
    char *text = as_xstrndup(
        message, size > MESSAGE_MAX ? as_str_cut_utf8(message, size, MESSAGE_MAX) : size);
    struct as_kube_event event = {.reason = reason, .message = text, .at = clock->get_wall(clock)};
    event_set_policy(&event, policy);
    post_within_limits(events, id, NULL, &event);
}

void as_kube_events_post(struct as_kube_events *events, const struct as_target_ref *ref,
                         const char *namespace_, const struct as_scale_request *request,
                         const struct as_scale_result *result)
{
    const char *reason = get_event_reason(result);
    if (!reason)
        return;
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    write_message(&message, ref, request, result);
    post_on(events, ref, request->credential, namespace_, &request->policy,
            &(struct as_kube_event){.reason = reason,
                                    .message = message.data,
                                    .is_warning = result->outcome != AS_REASON_APPLIED});
}

void as_kube_events_warn(struct as_kube_events *events, const struct as_target_ref *ref,
                         const struct as_late_warning *warning)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    char size[AS_SIZE_TEXT_SIZE];
    const char *unit = as_sized_get_unit(ref);
    as_buf_printf(&message, "Size %s was asked for (%s %s), but ",
                  as_unit_print_size(unit, warning->to, size),
                  warning->is_ordered ? "command" : "decision", warning->decision_id);
    if (warning->ready < 0)
        as_buf_printf(&message, "its rollout did not end in time: it goes back to %s",
                      as_unit_print_size(unit, warning->from, size));
    else
        as_buf_printf(&message,
                      "only %d pods are ready after ready_timeout: no step up until another "
                      "number is ready",
                      warning->ready);
    post_on(events, ref, NULL, as_target_ref_get(ref, "namespace"), &warning->policy,
            &(struct as_kube_event){
                .reason = "NotReadyInTime", .message = message.data, .is_warning = true});
}
