/*
 * Requests of one container as the size of a target, in the pod template or in the running pods.
 *
 * A call reads the workload; with `apply: pods` it lists its pods too. A change of the template
 * is a strategic merge patch on condition of the version that was read, which is the
 * observation's. Pods are resized one by one; no version guards them, because the workload's
 * version does not change with them. So each pod is read again before it is changed.
 */
#include "kube_vertical.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/model/field_path.h>

#include "kube_writers.h"
#include "kubernetes_resources.h"

/* Called once, in a later turn. The outcome is APPLIED with a message that counts the pods; or why
 * it ended early: then `is_accepted` says that pods were resized before. */
typedef void as_kube_resize_done_fn(void *context, const struct as_outcome *outcome,
                                    unsigned attempts);

struct as_kube_resize_spec { /* all borrowed until it is done or cancelled */
    struct as_kube_client *client;
    struct as_flow flow; /* its target also for permits */
    const char *namespace_;
    struct as_kube_sized_pods *pods;
    const struct as_unit *unit;
    bool keep_limit;
    const struct as_kube_amounts *template_amounts; /* the ratio of limits */
    int32_t from, to;
    as_maybe_time later_than; /* only pods made after it; unset: all */
    as_kube_resize_done_fn *done;
    void *context;
};

/* Resize of pods in place, one by one. A run waits for exactly one of: timer, request. */

#define STRATEGIC_MERGE "application/strategic-merge-patch+json"
#define NOT_FOUND       404

struct as_kube_resize_run {
    struct as_kube_resize_spec spec;
    size_t index;                  /* of the present pod */
    struct as_kube_sized_pod pod;  /* as last read */
    struct as_kube_amounts former; /* of the present pod, before its resize */
    bool is_resized;               /* the present pod: waiting for its kubelet */
    unsigned tries;                /* of the present pod */
    as_mono_time until;            /* for its kubelet's answer */
    size_t changed, gone, deferred, restarted;
    unsigned attempts;
    char note[AS_MESSAGE_SIZE]; /* of the first pod that is deferred; "" */
    struct as_timer *timer;
    struct as_kube_request *request;
};

static void next(struct as_kube_resize_run *run);
static void resize_read_pod(void *context);

static const struct as_access_env *resize_get_env(const struct as_kube_resize_run *run)
{
    return run->spec.client->env;
}

static void free_run(struct as_kube_resize_run *run)
{
    const struct as_access_env *env = resize_get_env(run);
    if (run->timer)
        env->loop->cancel_timer(env->loop, run->timer);
    if (run->request)
        as_kube_request_cancel(run->request);
    free(run);
}

static void resize_pods_cancel(struct as_kube_resize_run *run)
{
    free_run(run);
}

static void resize_finish(struct as_kube_resize_run *run, struct as_outcome *outcome)
{
    as_kube_resize_done_fn *done = run->spec.done;
    void *context = run->spec.context;
    const unsigned attempts = run->attempts;
    outcome->is_accepted = outcome->reason != AS_REASON_APPLIED && run->changed > 0;
    free_run(run);
    done(context, outcome, attempts);
}

/* Ends early. The message names the pod, and says how far it went. */
static void resize_fail(struct as_kube_resize_run *run, const struct as_outcome *why)
{
    struct as_outcome outcome = *why;
    char message[2 * AS_MESSAGE_SIZE];
    snprintf(message, sizeof(message), "%zu of %zu pods resized, then pod %s: %s", run->changed,
             run->spec.pods->count, run->spec.pods->items[run->index].name, why->message);
    as_outcome_set_message(&outcome, message);
    resize_finish(run, &outcome);
}

static void fail_locally(struct as_kube_resize_run *run, enum as_reason reason, const char *message)
{
    struct as_outcome outcome;
    as_outcome_init_local(&outcome, reason, message);
    resize_fail(run, &outcome);
}

/* Pods without a change count too: their kubelets resize them later, or somebody else was faster.
 */
static bool has_pods(const struct as_kube_resize_run *run)
{
    return run->spec.pods->count > run->gone || run->spec.pods->silent > 0;
}

static void finish_all(struct as_kube_resize_run *run)
{
    struct as_outcome outcome;
    const struct as_kube_sized_pods *pods = run->spec.pods;
    char message[2 * AS_MESSAGE_SIZE], gone[48] = "", restarted[64] = "", silent[64] = "";
    if (run->gone > 0)
        snprintf(gone, sizeof(gone), ", %zu gone meanwhile", run->gone);
    if (run->restarted > 0)
        snprintf(restarted, sizeof(restarted), ", %zu restart (resizePolicy)", run->restarted);
    if (pods->silent > 0)
        snprintf(silent, sizeof(silent), ", %zu not yet reported by their kubelets", pods->silent);
    snprintf(message, sizeof(message), "%zu of %zu pods resized%s%s%s%s%s", run->changed,
             pods->count + pods->silent, gone, restarted, silent, run->note[0] ? "; " : "",
             run->note);
    as_outcome_init_local(&outcome, has_pods(run) ? AS_REASON_APPLIED : AS_REASON_NO_PODS, message);
    resize_finish(run, &outcome);
}

/* ---- one pod ---- */

static bool is_late_enough(const struct as_kube_resize_run *run,
                           const struct as_kube_sized_pod *pod)
{
    const as_maybe_time *than = &run->spec.later_than;
    return !than->set || (pod->created.set && pod->created.at.us > than->at.us);
}

static bool needs_change(const struct as_kube_resize_run *run, const struct as_kube_sized_pod *pod)
{
    int32_t size, max;
    if (as_kube_amounts_count(&pod->amounts, run->spec.pods->part.resource, run->spec.unit, false,
                              &size, &max, NULL) != 0)
        return true; /* the resize says why it cannot be */
    return run->spec.to >= run->spec.from ? size < run->spec.to : size > run->spec.to;
}

static void pass_to_next(struct as_kube_resize_run *run)
{
    run->index++;
    next(run);
}

static void note_refused(struct as_kube_resize_run *run, const struct as_kube_sized_pod *pod)
{
    if (run->deferred++ == 0)
        snprintf(run->note, sizeof(run->note), "pod %.80s: %.160s", pod->name, pod->message);
}

static void resize_start(struct as_kube_resize_run *run, const char *method,
                         const char *subresource, const struct as_buf *body,
                         as_kube_request_done_fn *done)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_append_str(&path, "/api/v1/namespaces");
    int status = as_kube_path_append(&path, run->spec.namespace_);
    as_buf_append_str(&path, "/pods");
    status = status ? status : as_kube_path_append(&path, run->spec.pods->items[run->index].name);
    as_buf_append_str(&path, subresource);
    if (status || as_buf_check(&path) < 0 || (body && as_buf_check(body) < 0)) {
        fail_locally(run, AS_REASON_REJECTED, "its name cannot be part of a path");
        return;
    }
    const struct as_kube_request_spec spec = {
        .method = method,
        .path = path.data,
        .operation = body ? "resize_pod" : "get_pod",
        .content_type = body ? STRATEGIC_MERGE : NULL,
        .body = body ? body->data : NULL,
        .body_size = body ? body->size : 0,
        .max_response = AS_KUBE_SIZED_OBJECT_MAX,
        .flow = run->spec.flow,
    };
    run->request = as_kube_request_start(run->spec.client, &spec, done, run);
}

/* Whether the next pod may be resized; else *why_out is set. */
static bool resize_may_go_on(const struct as_kube_resize_run *run, const char **why_out)
{
    const struct as_access_env *env = resize_get_env(run);
    const enum as_permit permit = as_access_get_permit(env);
    *why_out = as_permit_explain(permit);
    if (permit != AS_PERMIT_ALL)
        return false;
    switch (as_access_get_terminate_permit(env, run->spec.flow.target, why_out)) {
    case AS_TERMINATE_GO: return true;
    case AS_TERMINATE_HOLD: return false;
    case AS_TERMINATE_GONE: break;
    }
    *why_out = "no rule leads to the target any more";
    return false;
}

static void next(struct as_kube_resize_run *run)
{
    const struct as_kube_sized_pods *pods = run->spec.pods;
    const char *why;
    while (run->index < pods->count && !(is_late_enough(run, &pods->items[run->index]) &&
                                         needs_change(run, &pods->items[run->index]))) {
        if (pods->items[run->index].resize >= AS_KUBE_RESIZE_DEFERRED)
            note_refused(run, &pods->items[run->index]);
        run->index++;
    }
    if (run->index == pods->count) {
        finish_all(run);
        return;
    }
    run->is_resized = false;
    run->tries = 0;
    if (resize_may_go_on(run, &why))
        resize_read_pod(run);
    else
        fail_locally(run, AS_REASON_SUPERSEDED, why);
}

/* Fills the outcome of an answer. True: *pod is what it says. */
static bool resize_accept_response(struct as_kube_resize_run *run,
                                   const struct as_http_response *response, unsigned attempts,
                                   bool is_change, struct as_outcome *outcome,
                                   struct as_kube_status *status)
{
    const struct as_clock *clock = resize_get_env(run)->clock;
    struct as_error error = AS_ERROR_INIT;
    run->request = NULL;
    run->attempts += attempts;
    as_kube_outcome_init(outcome, response, is_change, clock->get_wall(clock), status);
    if (outcome->reason != AS_REASON_APPLIED)
        return false;
    if (as_kube_sized_pod_decode(run->spec.pods, response->body, response->body_size, &run->pod,
                                 &error) == 0)
        return true;
    as_outcome_reject(outcome, is_change, error.text);
    return false;
}

/* ---- its kubelet ---- */

static void put_back_done(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_kube_resize_run *run = context;
    struct as_outcome outcome;
    struct as_kube_status status;
    char message[2 * AS_MESSAGE_SIZE], earlier[AS_MESSAGE_SIZE];
    snprintf(earlier, sizeof(earlier), "%.180s", run->pod.message);
    const bool is_back = resize_accept_response(run, response, attempts, true, &outcome, &status);
    snprintf(message, sizeof(message), "%s; %s%.100s", earlier,
             is_back ? "put back to " : "it could not be put back: ",
             is_back ? run->former.request : outcome.message);
    run->changed--;
    outcome.reason = AS_REASON_DID_NOT_COME;
    outcome.is_ambiguous = false;
    as_outcome_set_message(&outcome, message);
    resize_fail(run, &outcome);
}

static void resize_put_back(struct as_kube_resize_run *run)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    as_kube_resize_patch_encode(&run->spec.pods->part, &run->pod, &run->former, &body);
    resize_start(run, "PATCH", "/resize", &body, put_back_done);
}

static void resize_review(struct as_kube_resize_run *run)
{
    const struct as_access_env *env = resize_get_env(run);
    const bool is_late = env->clock->get_mono(env->clock).us >= run->until.us ||
                         as_access_get_permit(env) != AS_PERMIT_ALL;
    if (!run->pod.is_answered && run->pod.is_bound && !is_late) {
        run->timer =
            env->loop->start_timer(env->loop, AS_KUBE_RESIZE_LOOK_US, resize_read_pod, run);
        return;
    }
    if (run->pod.resize == AS_KUBE_RESIZE_INFEASIBLE) {
        resize_put_back(run);
        return;
    }
    if (run->pod.resize == AS_KUBE_RESIZE_DEFERRED)
        note_refused(run, &run->pod);
    pass_to_next(run);
}

/* ---- the requests ---- */

static void resize_on_resized(void *context, const struct as_http_response *response,
                              unsigned attempts)
{
    struct as_kube_resize_run *run = context;
    const struct as_clock *clock = resize_get_env(run)->clock;
    struct as_outcome outcome;
    struct as_kube_status status;
    if (resize_accept_response(run, response, attempts, true, &outcome, &status)) {
        run->changed++;
        run->restarted += run->pod.restarts;
        run->is_resized = true;
        run->until.us = as_time_add(clock->get_mono(clock).us, AS_KUBE_RESIZE_WAIT_US);
        resize_review(run);
    } else if (outcome.reason == AS_REASON_CONFLICT && ++run->tries < AS_KUBE_RESIZE_TRIES) {
        resize_read_pod(run);
    } else if (outcome.http_status == NOT_FOUND && status.names_object) {
        run->gone++;
        pass_to_next(run);
    } else if (outcome.http_status == NOT_FOUND) {
        outcome.reason = AS_REASON_REJECTED;
        as_outcome_set_message(&outcome,
                               "the API server has no `resize` of pods: `apply: pods` needs "
                               "Kubernetes 1.33; use `apply: template`");
        resize_fail(run, &outcome);
    } else {
        resize_fail(run, &outcome);
    }
}

static void resize_pod(struct as_kube_resize_run *run)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    const struct as_kube_amounts *template_ = run->spec.template_amounts, *base = &run->pod.amounts;
    struct as_kube_amounts amounts;
    struct as_error error = AS_ERROR_INIT;
    if (!run->spec.keep_limit && template_->request[0] && template_->limit[0] && base->limit[0])
        base = template_;
    if (as_kube_amounts_resize(base, run->spec.pods->part.resource, run->spec.unit,
                               run->spec.keep_limit, run->spec.to, &amounts, &error) != 0) {
        fail_locally(run, AS_REASON_REJECTED, error.text);
        return;
    }
    run->former = *as_kube_sized_pod_get(&run->pod);
    as_kube_resize_patch_encode(&run->spec.pods->part, &run->pod, &amounts, &body);
    resize_start(run, "PATCH", "/resize", &body, resize_on_resized);
}

static void resize_on_read(void *context, const struct as_http_response *response,
                           unsigned attempts)
{
    struct as_kube_resize_run *run = context;
    struct as_outcome outcome;
    struct as_kube_status status;
    const bool is_read = resize_accept_response(run, response, attempts, false, &outcome, &status);
    if (outcome.http_status == NOT_FOUND ||
        (is_read && (!run->pod.is_living || !run->pod.has_container))) {
        run->gone++;
        pass_to_next(run);
    } else if (!is_read) {
        resize_fail(run, &outcome);
    } else if (run->is_resized) {
        resize_review(run);
    } else if (needs_change(run, &run->pod)) {
        resize_pod(run);
    } else { /* somebody else was faster */
        pass_to_next(run);
    }
}

static void resize_read_pod(void *context)
{
    struct as_kube_resize_run *run = context;
    run->timer = NULL;
    resize_start(run, "GET", "", NULL, resize_on_read);
}

static void resize_begin(void *context)
{
    struct as_kube_resize_run *run = context;
    run->timer = NULL;
    next(run);
}

static struct as_kube_resize_run *resize_pods_start(const struct as_kube_resize_spec *spec)
{
    struct as_kube_resize_run *run = as_xcalloc(1, sizeof(*run));
    run->spec = *spec;
    run->timer =
        resize_get_env(run)->loop->start_timer(resize_get_env(run)->loop, 0, resize_begin, run);
    return run;
}

/* Calls of the target port. */

struct as_kube_vertical {
    struct as_kube_client *client;
    struct as_kube_events *events;
    LIST_HEAD(, call) calls;
};

/* Waits for exactly one of: timer, request, pages, run. */
struct call {
    LIST_ENTRY(call) entry;
    struct as_kube_vertical *owner;
    uint64_t call_id;
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
    bool are_resized;                 /* the pods; the template is next */
    unsigned attempts;
    const char *method;
    char path[512];
};

static void vertical_free_call(struct call *call)
{
    const struct as_access_env *env = call->owner->client->env;
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    if (call->request)
        as_kube_request_cancel(call->request);
    if (call->pages)
        as_kube_pages_cancel(call->pages);
    if (call->run)
        resize_pods_cancel(call->run);
    LIST_REMOVE(call, entry);
    as_kube_workload_deinit(&call->workload);
    as_kube_sized_pods_deinit(&call->pods);
    as_target_ref_free(call->ref);
    as_flow_deinit(&call->flow);
    as_scale_request_deinit(&call->wanted);
    free(call);
}

/* ---- what is told ---- */

static int vertical_count(const struct call *call, const struct as_kube_amounts *amounts,
                          int32_t *size_out, int32_t *max_out, struct as_error *error)
{
    return as_kube_amounts_count(amounts, call->part.resource, &call->sized.unit,
                                 call->sized.keep_limit, size_out, max_out, error);
}

static int count_asked(const struct call *call, const struct as_kube_sized_pod *pod,
                       int32_t *size_out, struct as_error *error)
{
    int32_t max;
    return vertical_count(call, &pod->amounts, size_out, &max, error);
}

static as_maybe_time vertical_get_later(as_maybe_time a, as_maybe_time b)
{
    return !a.set || (b.set && b.at.us > a.at.us) ? b : a;
}

static int32_t get_smaller(int32_t a, int32_t b) /* of a, where it is not -1, and b */
{
    return a < 0 || b < a ? b : a;
}

static int vertical_count_pods(const struct call *call, struct as_observation *observation,
                               struct as_error *error)
{
    struct as_resize_seen *resize = &observation->resize;
    int32_t size, max, asked, smallest = -1, lowest_max = -1;
    resize->template_size = observation->replicas;
    for (size_t i = 0; i < call->pods.count; i++) {
        const struct as_kube_sized_pod *pod = &call->pods.items[i];
        int status = vertical_count(call, as_kube_sized_pod_get(pod), &size, &max, error);
        status = status ? status : count_asked(call, pod, &asked, error);
        if (status) {
            as_error_wrap(error, "pod %s", pod->name);
            return status;
        }
        smallest = get_smaller(smallest, size);
        resize->asked = get_smaller(resize->asked, asked);
        if (asked == resize->template_size)
            resize->newest = vertical_get_later(resize->newest, pod->created);
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
    int status = vertical_count(call, &call->workload.amounts, &observation->replicas,
                                &observation->max, &error);
    if (status)
        as_error_wrap(&error, "container %s of the pod template", call->part.container);
    else if (call->sized.by_pods)
        status = vertical_count_pods(call, observation, &error);
    else
        fill_rollout(call, observation);
    if (status)
        as_outcome_reject(&call->outcome, false, error.text);
    observation->status_replicas = observation->replicas;
}

static void vertical_report_observed(struct call *call)
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
    call->observed(call->context, call->call_id, &observation);
}

static void vertical_report_scaled(struct call *call)
{
    struct as_scale_result result = {.attempts = call->attempts, .method = "PATCH"};
    as_outcome_fill_result(&call->outcome, &result);
    memcpy(result.path, call->path, sizeof(result.path));
    call->scaled(call->context, call->call_id, &result);
    as_kube_events_post(call->owner->events, call->ref, as_target_ref_get(call->ref, "namespace"),
                        &call->wanted, &result);
}

static void vertical_finish(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (call->workload.uid[0])
        as_kube_events_remember(call->owner->events, call->ref->id, call->workload.uid);
    if (call->scaled)
        vertical_report_scaled(call);
    else
        vertical_report_observed(call);
    vertical_free_call(call);
}

static void vertical_fail(struct call *call, enum as_reason reason, const char *message)
{
    as_outcome_init_local(&call->outcome, reason, message);
    call->outcome.is_accepted = call->are_resized;
    vertical_finish(call);
}

/* ---- requests on the workload ---- */

static bool vertical_take_answer(struct call *call, const struct as_http_response *response,
                                 unsigned attempts, bool is_change)
{
    const struct as_clock *clock = call->owner->client->env->clock;
    call->request = NULL;
    call->attempts += attempts;
    as_kube_outcome_init(&call->outcome, response, is_change, clock->get_wall(clock), NULL);
    return call->outcome.reason == AS_REASON_APPLIED;
}

static bool vertical_accept_workload(struct call *call, const struct as_http_response *response,
                                     bool is_change)
{
    struct as_error error = AS_ERROR_INIT;
    as_kube_workload_deinit(&call->workload);
    if (as_kube_workload_decode(call->kind, response->body, response->body_size, &call->part,
                                &call->workload, &error) == 0)
        return true;
    as_outcome_reject(&call->outcome, is_change, error.text);
    return false;
}

static void vertical_start(struct call *call, const struct as_buf *body,
                           as_kube_request_done_fn *done)
{
    const struct as_kube_request_spec spec = {
        .method = body ? "PATCH" : "GET",
        .path = call->path,
        .operation = body ? "patch_template" : "get_workload",
        .content_type = body ? STRATEGIC_MERGE : NULL,
        .body = body ? body->data : NULL,
        .body_size = body ? body->size : 0,
        .max_response = AS_KUBE_SIZED_OBJECT_MAX,
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
    char wanted[AS_SIZE_TEXT_SIZE], message[2 * AS_MESSAGE_SIZE], earlier[AS_MESSAGE_SIZE];
    struct as_error error = AS_ERROR_INIT;
    int32_t size, max;
    memcpy(earlier, call->outcome.message, sizeof(earlier)); /* of the pods before it */
    if (!vertical_take_answer(call, response, attempts, true)) {
        call->outcome.is_accepted = call->are_resized;
    } else if (!vertical_accept_workload(call, response, true)) {
        vertical_finish(call);
        return;
    } else if (vertical_count(call, &call->workload.amounts, &size, &max, &error) != 0 ||
               size != call->wanted.to) {
        snprintf(message, sizeof(message),
                 "asked for size %s, but the cluster made it %.60s (an admission webhook?)",
                 as_unit_print_size(call->sized.unit.text, call->wanted.to, wanted),
                 call->workload.amounts.request);
        as_outcome_reject(&call->outcome, true, message);
    } else if (call->sized.by_pods) {
        snprintf(message, sizeof(message), "%s; the template too", earlier);
        as_outcome_set_message(&call->outcome, message);
    }
    vertical_finish(call);
}

/* What it was before its last change, to the byte; if that is not known any more, by the unit. */
static int make_amounts(const struct call *call, struct as_kube_amounts *amounts,
                        struct as_error *error)
{
    int32_t size, max;
    if (call->wanted.is_put_back && call->workload.has_former &&
        vertical_count(call, &call->workload.former, &size, &max, NULL) == 0 &&
        size == call->wanted.to) {
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
        vertical_fail(call, AS_REASON_REJECTED, error.text);
        return;
    }
    if (permit == AS_PERMIT_NONE) {
        vertical_fail(call, AS_REASON_SUPERSEDED, as_permit_explain(permit));
        return;
    }
    as_kube_template_patch_encode(&call->part, &call->workload, &amounts,
                                  call->wanted.is_put_back ? NULL : &call->workload.amounts, &body);
    vertical_start(call, &body, template_patched);
}

static void change_template(struct call *call)
{
    char version[AS_VERSION_SIZE];
    memcpy(version, call->workload.version, sizeof(version));
    as_sized_append_unit(call->ref, version, sizeof(version));
    if (call->wanted.version[0] && strcmp(call->wanted.version, version) != 0) {
        call->outcome.reason = AS_REASON_CONFLICT;
        as_outcome_set_message(&call->outcome, "it has changed since it was observed");
        vertical_finish(call);
    } else {
        patch_template(call);
    }
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
        (vertical_count(call, &call->workload.amounts, &size, &max, NULL) == 0 &&
         size == call->wanted.to)) {
        vertical_finish(call);
    } else if (call->workload.rolls) {
        char message[2 * AS_MESSAGE_SIZE];
        snprintf(message, sizeof(message),
                 "%s; the template is left alone, as its change would roll all pods",
                 outcome->message);
        as_outcome_set_message(&call->outcome, message);
        vertical_finish(call);
    } else {
        call->are_resized = true;
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
    call->run = resize_pods_start(&spec);
}

static int vertical_parse_page(void *context, const char *json, size_t size, char **next_out,
                               struct as_error *error)
{
    struct call *call = context;
    return as_kube_sized_pods_decode(&call->pods, json, size, next_out, error);
}

static void vertical_clear_pages(void *context)
{
    struct call *call = context;
    as_kube_sized_pods_clear(&call->pods);
}

static void vertical_on_list(void *context, const struct as_outcome *outcome)
{
    struct call *call = context;
    call->pages = NULL;
    call->outcome = *outcome;
    as_kube_sized_pods_finish(&call->pods);
    if (outcome->reason == AS_REASON_APPLIED && call->scaled)
        resize_pods(call);
    else
        vertical_finish(call);
}

static void vertical_list_pods(struct call *call)
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
        .take = vertical_parse_page,
        .clear = vertical_clear_pages,
        .done = vertical_on_list,
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
static void vertical_find_manager(struct call *call, const struct as_http_response *response)
{
    int32_t size, max;
    if (!call->has_own_size || call->sized.by_pods ||
        vertical_count(call, &call->workload.amounts, &size, &max, NULL) != 0 ||
        size == call->own_size)
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
    if (!vertical_take_answer(call, response, attempts, false) ||
        !vertical_accept_workload(call, response, false)) {
        vertical_finish(call);
        return;
    }
    vertical_find_manager(call, response);
    if (call->sized.by_pods && call->workload.is_init && !call->workload.is_sidecar) {
        vertical_fail(
            call, AS_REASON_REJECTED,
            "the container is an init container, which ends before the others start: it cannot be "
            "resized in place; use `apply: template`");
    } else if (call->sized.by_pods && !call->workload.selector) {
        vertical_fail(call, AS_REASON_REJECTED,
                      "the workload has no selector: its pods are not known");
    } else if (call->sized.by_pods) {
        vertical_list_pods(call);
    } else if (call->scaled) {
        change_template(call);
    } else {
        vertical_finish(call);
    }
}

static int vertical_write_path(struct call *call)
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

static struct call *vertical_new_call(struct as_kube_vertical *vertical, uint64_t call_id,
                                      const struct as_target_ref *ref, const char *credential,
                                      void *context)
{
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = vertical;
    call->call_id = call_id;
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
static void vertical_begin(struct call *call)
{
    const struct as_access_env *env = call->owner->client->env;
    if (call->kind && vertical_write_path(call) == 0) {
        vertical_start(call, NULL, workload_read);
        return;
    }
    as_outcome_init_local(&call->outcome, AS_REASON_REJECTED,
                          call->kind ? "namespace or name cannot be part of a path"
                                     : "its kind has no pods whose resources can be sized");
    call->timer = env->loop->start_timer(env->loop, 0, vertical_finish, call);
}

void as_kube_vertical_observe(struct as_kube_vertical *vertical, uint64_t call_id,
                              const struct as_target_ref *ref,
                              const struct as_observe_request *request, as_target_observed_fn *done,
                              void *context)
{
    struct call *call = vertical_new_call(vertical, call_id, ref, request->credential, context);
    call->observed = done;
    call->has_own_size = request->has_own_size;
    call->own_size = request->own_size;
    vertical_begin(call);
}

void as_kube_vertical_scale(struct as_kube_vertical *vertical, uint64_t call_id,
                            const struct as_target_ref *ref, const struct as_scale_request *request,
                            as_target_scaled_fn *done, void *context)
{
    struct call *call = vertical_new_call(vertical, call_id, ref, request->credential, context);
    call->scaled = done;
    as_scale_request_copy(request, &call->wanted);
    vertical_begin(call);
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
        vertical_free_call(call);
    free(vertical);
    return NULL;
}
