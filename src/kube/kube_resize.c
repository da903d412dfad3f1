/*
 * Resize of pods in place. The list of the pods says which of them are resized, in its order. Each
 * pod is read again right before its change, which names the version that was read. After the
 * change, the run reads the pod until its kubelet has answered.
 *
 * A run waits for exactly one of: timer, request.
 */
#include "kube_resize.h"

#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_documents.h>

#define NOT_FOUND 404

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

static void resize_next_pod(struct as_kube_resize_run *run);
static void resize_read_pod(void *context);

static const struct as_access_env *resize_get_env(const struct as_kube_resize_run *run)
{
    return run->spec.client->env;
}

void as_kube_resize_cancel(struct as_kube_resize_run *run)
{
    const struct as_access_env *env = resize_get_env(run);
    if (run->timer)
        env->loop->cancel_timer(env->loop, run->timer);
    if (run->request)
        as_kube_request_cancel(run->request);
    free(run);
}

static void resize_finish(struct as_kube_resize_run *run, struct as_outcome *outcome)
{
    as_kube_resize_done_fn *done = run->spec.done;
    void *context = run->spec.context;
    const unsigned attempts = run->attempts;
    outcome->is_accepted = outcome->reason != AS_REASON_APPLIED && run->changed > 0;
    free(run);
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

static void resize_fail_locally(struct as_kube_resize_run *run, enum as_reason reason,
                                const char *message)
{
    struct as_outcome outcome;
    as_outcome_init_local(&outcome, reason, message);
    resize_fail(run, &outcome);
}

/* Pods without a change count too: their kubelets resize them later, or another writer was faster.
 */
static bool has_pods(const struct as_kube_resize_run *run)
{
    return run->spec.pods->count > run->gone || run->spec.pods->silent > 0;
}

static void resize_finish_all(struct as_kube_resize_run *run)
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

static void resize_pass(struct as_kube_resize_run *run)
{
    run->index++;
    resize_next_pod(run);
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
        resize_fail_locally(run, AS_REASON_REJECTED, "its name cannot be part of a path");
        return;
    }
    const struct as_kube_request_spec spec = {
        .method = method,
        .path = path.data,
        .operation = body ? "resize_pod" : "get_pod",
        .content_type = body ? AS_KUBE_STRATEGIC_MERGE : NULL,
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

static void resize_next_pod(struct as_kube_resize_run *run)
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
        resize_finish_all(run);
        return;
    }
    run->is_resized = false;
    run->tries = 0;
    if (resize_may_go_on(run, &why))
        resize_read_pod(run);
    else
        resize_fail_locally(run, AS_REASON_SUPERSEDED, why);
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

static void resize_on_put_back(void *context, const struct as_http_response *response,
                               unsigned attempts)
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
    resize_start(run, "PATCH", "/resize", &body, resize_on_put_back);
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
    resize_pass(run);
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
        resize_pass(run);
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
        resize_fail_locally(run, AS_REASON_REJECTED, error.text);
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
        resize_pass(run);
    } else if (!is_read) {
        resize_fail(run, &outcome);
    } else if (run->is_resized) {
        resize_review(run);
    } else if (needs_change(run, &run->pod)) {
        resize_pod(run);
    } else { /* another writer was faster */
        resize_pass(run);
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
    resize_next_pod(run);
}

struct as_kube_resize_run *as_kube_resize_start(const struct as_kube_resize_spec *spec)
{
    struct as_kube_resize_run *run = as_xcalloc(1, sizeof(*run));
    run->spec = *spec;
    run->timer =
        resize_get_env(run)->loop->start_timer(resize_get_env(run)->loop, 0, resize_begin, run);
    return run;
}
