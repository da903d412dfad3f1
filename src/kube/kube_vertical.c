/*
 * Resources of a container as a size: see the header.
 *
 * A call reads the workload; with `apply: pods` it lists its pods too. A change of the template is
 * a strategic merge patch on condition of the version that was read, which is the observation's.
 * Pods are resized by kube_resize.c; no version guards them, as the workload's does not change with
 * them, and each pod is read again before it is changed.
 */
#include "kube_vertical.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/kube_path.h>
#include <alertscaler/kube/kubernetes_resources.h>
#include <alertscaler/model/field_path.h>
#include <alertscaler/kube/target_limits.h>

#include "kube_manager.h"
#include "kube_pages.h"
#include "kube_resize.h"
#include <alertscaler/kube/scale_request.h>
#include <alertscaler/kube/target_outcome.h>

#define STRATEGIC_MERGE "application/strategic-merge-patch+json"

struct as_kube_vertical {
    struct as_kube_client *client;
    struct as_kube_events *events;
    LIST_HEAD(, call) calls;
};

/* Waits for exactly one of: timer, request, pages, run. */
struct call {
    LIST_ENTRY(call) entry;
    struct as_kube_vertical *owner;
    uint64_t ticket;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled; /* NULL: an observe */
    void *context;
    struct as_target_ref *ref;
    struct as_flow flow;   /* owned */
    struct as_sized sized; /* borrowed from ref */
    struct as_kube_part part;
    struct as_scale_request wanted; /* owns its texts */
    struct as_timer *timer;
    struct as_kube_request *request;
    struct as_kube_pages *pages;
    struct as_kube_resize_run *run;

    struct as_outcome outcome;
    const struct as_kube_workload_kind *kind;
    struct as_kube_workload workload;
    struct as_kube_sized_pods pods;
    bool has_own_size; /* as in as_observe_request */
    int32_t own_size;
    char changed_by[AS_MANAGER_SIZE]; /* as in as_observation */
    unsigned attempts;
    const char *method;
    char path[512];
};

static void free_call(struct call *call)
{
    const struct as_access_env *env = call->owner->client->env;
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    if (call->request)
        as_kube_request_cancel(call->request);
    if (call->pages)
        as_kube_pages_cancel(call->pages);
    if (call->run)
        as_kube_resize_cancel(call->run);
    LIST_REMOVE(call, entry);
    as_kube_workload_deinit(&call->workload);
    as_kube_sized_pods_deinit(&call->pods);
    as_target_ref_free(call->ref);
    as_flow_deinit(&call->flow);
    as_scale_request_deinit(&call->wanted);
    free(call);
}

/* ---- what is told ---- */

static int count(const struct call *call, const struct as_kube_amounts *amounts, int32_t *size_out,
                 int32_t *max_out, struct as_error *error)
{
    return as_kube_amounts_count(amounts, call->part.resource, &call->sized.unit,
                                 call->sized.keep_limit, size_out, max_out, error);
}

static int count_asked(const struct call *call, const struct as_kube_sized_pod *pod,
                       int32_t *size_out, struct as_error *error)
{
    int32_t max;
    return count(call, &pod->amounts, size_out, &max, error);
}

static as_maybe_time get_later(as_maybe_time a, as_maybe_time b)
{
    return !a.set || (b.set && b.at.us > a.at.us) ? b : a;
}

static int32_t get_smaller(int32_t a, int32_t b) /* of a, where it is not -1, and b */
{
    return a < 0 || b < a ? b : a;
}

static int count_pods(const struct call *call, struct as_observation *observation,
                      struct as_error *error)
{
    struct as_resize_seen *resize = &observation->resize;
    int32_t size, max, asked, smallest = -1, lowest_max = -1;
    resize->template_size = observation->replicas;
    for (size_t i = 0; i < call->pods.count; i++) {
        const struct as_kube_sized_pod *pod = &call->pods.items[i];
        int status = count(call, as_kube_sized_pod_get(pod), &size, &max, error);
        status = status ? status : count_asked(call, pod, &asked, error);
        if (status) {
            as_error_wrap(error, "pod %s", pod->name);
            return status;
        }
        smallest = get_smaller(smallest, size);
        resize->asked = get_smaller(resize->asked, asked);
        if (asked == resize->template_size)
            resize->newest = get_later(resize->newest, pod->created);
        if (max >= 0)
            lowest_max = get_smaller(lowest_max, max);
        if (size != resize->template_size)
            resize->settled = get_smaller(resize->settled, size);
    }
    if (smallest < 0)
        return 0;
    observation->replicas = smallest;
    observation->max = lowest_max;
    return 0;
}

static void fill_rollout(const struct call *call, struct as_observation *observation)
{
    const struct as_kube_rollout *rollout = &call->workload.rollout;
    struct as_resize_seen *resize = &observation->resize;
    resize->is_rolling = rollout->is_running;
    resize->has_verdict = rollout->has_verdict;
    resize->has_failed = rollout->has_failed;
    resize->updated = rollout->updated;
    memcpy(resize->message, rollout->message, sizeof(resize->message));
    observation->in_progress = rollout->is_running && rollout->has_verdict && !rollout->has_failed;
}

static void fill_sizes(struct call *call, struct as_observation *observation)
{
    struct as_error error = AS_ERROR_INIT;
    observation->resize.is_set = true;
    observation->resize.template_size = observation->resize.settled = -1;
    observation->resize.asked = -1;
    int status =
        count(call, &call->workload.amounts, &observation->replicas, &observation->max, &error);
    if (status)
        as_error_wrap(&error, "container %s of the pod template", call->part.container);
    else if (call->sized.by_pods)
        status = count_pods(call, observation, &error);
    else
        fill_rollout(call, observation);
    if (status)
        as_outcome_init_local(&call->outcome, AS_REASON_REJECTED, error.text);
    observation->status_replicas = observation->replicas;
}

static void tell_observed(struct call *call)
{
    struct as_observation observation = {.min = -1, .max = -1};
    if (call->outcome.reason == AS_REASON_APPLIED)
        fill_sizes(call, &observation);
    as_outcome_fill_observation(&call->outcome, &observation);
    memcpy(observation.uid, call->workload.uid, sizeof(observation.uid));
    memcpy(observation.changed_by, call->changed_by, sizeof(observation.changed_by));
    if (!call->sized.by_pods)
        memcpy(observation.version, call->workload.version, sizeof(observation.version));
    as_sized_append_unit(call->ref, observation.version, sizeof(observation.version));
    as_sized_append_unit(call->ref, observation.uid, sizeof(observation.uid));
    call->observed(call->context, call->ticket, &observation);
}

static void tell_scaled(struct call *call)
{
    struct as_scale_result result = {.attempts = call->attempts, .method = "PATCH"};
    as_outcome_fill_result(&call->outcome, &result);
    memcpy(result.path, call->path, sizeof(result.path));
    call->scaled(call->context, call->ticket, &result);
    as_kube_events_post(call->owner->events, call->ref, as_target_ref_get(call->ref, "namespace"),
                        &call->wanted, &result);
}

static void finish(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (call->workload.uid[0])
        as_kube_events_remember(call->owner->events, call->ref->id, call->workload.uid);
    if (call->scaled)
        tell_scaled(call);
    else
        tell_observed(call);
    free_call(call);
}

static void fail(struct call *call, enum as_reason reason, const char *message)
{
    as_outcome_init_local(&call->outcome, reason, message);
    finish(call);
}

/* ---- requests on the workload ---- */

static bool take_answer(struct call *call, const struct as_http_response *response,
                        unsigned attempts, bool is_change)
{
    const struct as_clock *clock = call->owner->client->env->clock;
    struct as_kube_status status = {0};
    call->request = NULL;
    call->attempts += attempts;
    as_outcome_init(&call->outcome, response, is_change, clock->get_wall(clock));
    if (call->outcome.reason == AS_REASON_APPLIED)
        return true;
    if (call->outcome.http_status > 0 &&
        as_kube_status_decode(response->body, response->body_size, &status, NULL) == 0) {
        as_outcome_set_message(&call->outcome, status.message);
        if (call->outcome.retry_after_us == 0)
            call->outcome.retry_after_us = status.retry_after_us;
    }
    return false;
}

static bool take_workload(struct call *call, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    as_kube_workload_deinit(&call->workload);
    if (as_kube_workload_decode(call->kind, response->body, response->body_size, &call->part,
                                &call->workload, &error) == 0)
        return true;
    as_outcome_init_local(&call->outcome, AS_REASON_REJECTED, error.text);
    return false;
}

static void start(struct call *call, const struct as_buf *body, as_kube_request_done_fn *done)
{
    const struct as_kube_request_spec spec = {
        .method = body ? "PATCH" : "GET",
        .path = call->path,
        .operation = body ? "patch_template" : "get_workload",
        .content_type = body ? STRATEGIC_MERGE : NULL,
        .body = body ? body->data : NULL,
        .body_size = body ? body->size : 0,
        .max_response = AS_KUBE_OBJECT_MAX,
        .flow = call->flow,
    };
    call->request = as_kube_request_start(call->owner->client, &spec, done, call);
}

/* ---- the template ---- */

/* An admission webhook may have changed the request. */
static void template_patched(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct call *call = context;
    char wanted[AS_SIZE_TEXT_SIZE], message[2 * AS_MESSAGE_SIZE], told[AS_MESSAGE_SIZE];
    struct as_error error = AS_ERROR_INIT;
    int32_t size, max;
    memcpy(told, call->outcome.message, sizeof(told)); /* of the pods before it */
    if (!take_answer(call, response, attempts, true)) {
        call->outcome.is_accepted = call->sized.by_pods;
    } else if (!take_workload(call, response)) {
        call->outcome.is_ambiguous = true;
    } else if (count(call, &call->workload.amounts, &size, &max, &error) != 0 ||
               size != call->wanted.to) {
        snprintf(message, sizeof(message),
                 "asked for size %s, but the cluster made it %.60s (an admission webhook?)",
                 as_unit_print_size(call->sized.unit.text, call->wanted.to, wanted),
                 call->workload.amounts.request);
        call->outcome.reason = AS_REASON_REJECTED;
        call->outcome.is_ambiguous = true;
        as_outcome_set_message(&call->outcome, message);
    } else if (call->sized.by_pods) {
        snprintf(message, sizeof(message), "%s; the template too", told);
        as_outcome_set_message(&call->outcome, message);
    }
    finish(call);
}

/* What it was before its last change, to the byte; if that is not known any more, by the unit. */
static int make_amounts(const struct call *call, struct as_kube_amounts *amounts,
                        struct as_error *error)
{
    int32_t size, max;
    if (call->wanted.is_put_back && call->workload.has_former &&
        count(call, &call->workload.former, &size, &max, NULL) == 0 && size == call->wanted.to) {
        *amounts = call->workload.former;
        return 0;
    }
    return as_kube_amounts_resize(&call->workload.amounts, call->part.resource, &call->sized.unit,
                                  call->sized.keep_limit, call->wanted.to, amounts, error);
}

static void patch_template(struct call *call)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    const struct as_access_env *env = call->owner->client->env;
    const enum as_permit permit = as_access_get_permit(env);
    struct as_kube_amounts amounts;
    struct as_error error = AS_ERROR_INIT;
    if (make_amounts(call, &amounts, &error) != 0) {
        fail(call, AS_REASON_REJECTED, error.text);
        return;
    }
    if (permit == AS_PERMIT_NONE) {
        fail(call, AS_REASON_SUPERSEDED, as_permit_explain(permit));
        return;
    }
    as_kube_template_patch_encode(&call->part, &call->workload, &amounts,
                                  call->wanted.is_put_back ? NULL : &call->workload.amounts, &body);
    start(call, &body, template_patched);
}

static void change_template(struct call *call)
{
    char version[AS_VERSION_SIZE];
    memcpy(version, call->workload.version, sizeof(version));
    as_sized_append_unit(call->ref, version, sizeof(version));
    if (call->wanted.version[0] && strcmp(call->wanted.version, version) != 0)
        fail(call, AS_REASON_CONFLICT, "it has changed since it was observed");
    else
        patch_template(call);
}

/* ---- the pods ---- */

static void pods_resized(void *context, const struct as_outcome *outcome, unsigned attempts)
{
    struct call *call = context;
    int32_t size, max;
    call->run = NULL;
    call->attempts += attempts;
    call->outcome = *outcome;
    const bool is_done =
        outcome->reason == AS_REASON_APPLIED || outcome->reason == AS_REASON_NO_PODS;
    if (!is_done || !call->sized.with_template ||
        (count(call, &call->workload.amounts, &size, &max, NULL) == 0 && size == call->wanted.to)) {
        finish(call);
    } else if (call->workload.rolls) {
        char message[2 * AS_MESSAGE_SIZE];
        snprintf(message, sizeof(message),
                 "%s; the template is left alone, as its change would roll all pods",
                 outcome->message);
        as_outcome_set_message(&call->outcome, message);
        finish(call);
    } else {
        patch_template(call);
    }
}

static void resize_pods(struct call *call)
{
    const struct as_kube_resize_spec spec = {
        .client = call->owner->client,
        .flow = call->flow,
        .namespace_ = as_target_ref_get(call->ref, "namespace"),
        .pods = &call->pods,
        .unit = &call->sized.unit,
        .keep_limit = call->sized.keep_limit,
        .template_amounts = &call->workload.amounts,
        .from = call->wanted.from,
        .to = call->wanted.to,
        .later_than = call->wanted.later_than,
        .done = pods_resized,
        .context = call,
    };
    call->run = as_kube_resize_start(&spec);
}

static int take_page(void *context, const char *json, size_t size, char **next_out,
                     struct as_error *error)
{
    struct call *call = context;
    return as_kube_sized_pods_decode(&call->pods, json, size, next_out, error);
}

static void clear_pages(void *context)
{
    struct call *call = context;
    as_kube_sized_pods_clear(&call->pods);
}

static void listed(void *context, const struct as_outcome *outcome)
{
    struct call *call = context;
    call->pages = NULL;
    call->outcome = *outcome;
    as_kube_sized_pods_finish(&call->pods);
    if (outcome->reason == AS_REASON_APPLIED && call->scaled)
        resize_pods(call);
    else
        finish(call);
}

static void list_pods(struct call *call)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_append_str(&path, "/api/v1/namespaces");
    int status = as_kube_path_append(&path, as_target_ref_get(call->ref, "namespace"));
    as_buf_append_str(&path, "/pods");
    as_kube_path_append_parameter(&path, "labelSelector", call->workload.selector);
    status = status ? status : as_buf_check(&path);
    const struct as_kube_pages_spec spec = {
        .path = status ? NULL : path.data,
        .trouble = "the selector is too long for a request",
        .operation = "list_pods",
        .what = "list pods",
        .right = "pods: list",
        .flow = call->flow,
        .take = take_page,
        .clear = clear_pages,
        .done = listed,
        .context = call,
    };
    call->pods.kind = call->kind->kind;
    call->pods.name = as_target_ref_get(call->ref, "name");
    call->pods.uid = call->workload.uid;
    call->pages = as_kube_pages_start(call->owner->client, &spec);
}

/* ---- a call ---- */

/* Of the template, if others have changed it. Pods are changed by kubelets too, each at its time:
 * who set the smallest of their requests is not known. */
static void find_manager(struct call *call, const struct as_http_response *response)
{
    int32_t size, max;
    if (!call->has_own_size || call->sized.by_pods ||
        count(call, &call->workload.amounts, &size, &max, NULL) != 0 || size == call->own_size)
        return;
    char field[AS_FIELD_PATH_MAX];
    snprintf(field, sizeof(field), "spec.template.spec.%s[name='%s'].resources.requests.%s",
             call->workload.is_init ? "initContainers" : "containers", call->part.container,
             as_kube_resource_get_word(call->part.resource));
    as_kube_manager_read(response->body, response->body_size, field, call->changed_by);
}

static void workload_read(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct call *call = context;
    if (!take_answer(call, response, attempts, false) || !take_workload(call, response)) {
        finish(call);
        return;
    }
    find_manager(call, response);
    if (call->sized.by_pods && call->workload.is_init && !call->workload.is_sidecar) {
        fail(call, AS_REASON_REJECTED,
             "the container is an init container, which ends before the others start: it cannot be "
             "resized in place; use `apply: template`");
    } else if (call->sized.by_pods && !call->workload.selector) {
        fail(call, AS_REASON_REJECTED, "the workload has no selector: its pods are not known");
    } else if (call->sized.by_pods) {
        list_pods(call);
    } else if (call->scaled) {
        change_template(call);
    } else {
        finish(call);
    }
}

static int write_path(struct call *call)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(sizeof(call->path) - 1);
    int status = as_kube_path_append_version(&path, as_target_ref_get(call->ref, "apiVersion"));
    as_buf_append_str(&path, "/namespaces");
    status =
        status ? status : as_kube_path_append(&path, as_target_ref_get(call->ref, "namespace"));
    status = status ? status : as_kube_path_append(&path, call->kind->plural);
    status = status ? status : as_kube_path_append(&path, as_target_ref_get(call->ref, "name"));
    status = status ? status : as_buf_check(&path);
    if (status == 0)
        snprintf(call->path, sizeof(call->path), "%s", path.data);
    return status;
}

static struct call *new_call(struct as_kube_vertical *vertical, uint64_t ticket,
                             const struct as_target_ref *ref, const char *credential, void *context)
{
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = vertical;
    call->ticket = ticket;
    call->context = context;
    call->ref = as_target_ref_copy(ref);
    call->flow = as_flow_copy(&(struct as_flow){ref->id, credential});
    as_sized_read(call->ref, &call->sized);
    call->part = (struct as_kube_part){call->sized.container, call->sized.resource};
    call->pods = (struct as_kube_sized_pods){.part = call->part, .max = AS_KUBE_PODS_MAX};
    call->kind = as_kube_workload_kind_find(as_target_ref_get(ref, "kind"));
    LIST_INSERT_HEAD(&vertical->calls, call, entry);
    return call;
}

/* Reports in a later turn, because the caller's call may still be running. */
static void begin(struct call *call)
{
    const struct as_access_env *env = call->owner->client->env;
    if (call->kind && write_path(call) == 0) {
        start(call, NULL, workload_read);
        return;
    }
    as_outcome_init_local(&call->outcome, AS_REASON_REJECTED,
                          call->kind ? "namespace or name cannot be part of a path"
                                     : "its kind has no pods whose resources can be sized");
    call->timer = env->loop->start_timer(env->loop, 0, finish, call);
}

void as_kube_vertical_observe(struct as_kube_vertical *vertical, uint64_t ticket,
                              const struct as_target_ref *ref,
                              const struct as_observe_request *request, as_target_observed_fn *done,
                              void *context)
{
    struct call *call = new_call(vertical, ticket, ref, request->credential, context);
    call->observed = done;
    call->has_own_size = request->has_own_size;
    call->own_size = request->own_size;
    begin(call);
}

void as_kube_vertical_scale(struct as_kube_vertical *vertical, uint64_t ticket,
                            const struct as_target_ref *ref, const struct as_scale_request *request,
                            as_target_scaled_fn *done, void *context)
{
    struct call *call = new_call(vertical, ticket, ref, request->credential, context);
    call->scaled = done;
    as_scale_request_copy(request, &call->wanted);
    begin(call);
}

bool as_kube_vertical_is_idle(const struct as_kube_vertical *vertical)
{
    return LIST_EMPTY(&vertical->calls);
}

struct as_kube_vertical *as_kube_vertical_new(struct as_kube_client *client,
                                              struct as_kube_events *events)
{
    struct as_kube_vertical *vertical = as_xcalloc(1, sizeof(*vertical));
    vertical->client = client;
    vertical->events = events;
    LIST_INIT(&vertical->calls);
    return vertical;
}

struct as_kube_vertical *as_kube_vertical_free(struct as_kube_vertical *vertical)
{
    struct call *call;
    while (vertical && (call = LIST_FIRST(&vertical->calls)) != NULL)
        free_call(call);
    free(vertical);
    return NULL;
}
