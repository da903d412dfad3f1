/*
 * Pods one by one: see the header. A run waits for exactly one of: timer, request.
 */
#include "kube_resize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/kube_path.h>
#include <alertscaler/kube/target_limits.h>

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
static void read_pod(void *context);

static const struct as_access_env *get_env(const struct as_kube_resize_run *run)
{
    return run->spec.client->env;
}

static void free_run(struct as_kube_resize_run *run)
{
    const struct as_access_env *env = get_env(run);
    if (run->timer)
        env->loop->cancel_timer(env->loop, run->timer);
    if (run->request)
        as_kube_request_cancel(run->request);
    free(run);
}

void as_kube_resize_cancel(struct as_kube_resize_run *run)
{
    free_run(run);
}

static void finish(struct as_kube_resize_run *run, struct as_outcome *outcome)
{
    as_kube_resize_done_fn *done = run->spec.done;
    void *context = run->spec.context;
    const unsigned attempts = run->attempts;
    outcome->is_accepted = outcome->reason != AS_REASON_APPLIED && run->changed > 0;
    free_run(run);
    done(context, outcome, attempts);
}

/* Ends early. The message names the pod, and says how far it went. */
static void fail(struct as_kube_resize_run *run, const struct as_outcome *why)
{
    struct as_outcome outcome = *why;
    char message[2 * AS_MESSAGE_SIZE];
    snprintf(message, sizeof(message), "%zu of %zu pods resized, then pod %s: %s", run->changed,
             run->spec.pods->count, run->spec.pods->items[run->index].name, why->message);
    as_outcome_set_message(&outcome, message);
    finish(run, &outcome);
}

static void fail_locally(struct as_kube_resize_run *run, enum as_reason reason, const char *message)
{
    struct as_outcome outcome;
    as_outcome_init_local(&outcome, reason, message);
    fail(run, &outcome);
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
    finish(run, &outcome);
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

static void start(struct as_kube_resize_run *run, const char *method, const char *subresource,
                  const struct as_buf *body, as_kube_request_done_fn *done)
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
        .max_response = AS_KUBE_OBJECT_MAX,
        .flow = run->spec.flow,
    };
    run->request = as_kube_request_start(run->spec.client, &spec, done, run);
}

/* Whether the next pod may be resized; else *why_out is set. */
static bool may_go_on(const struct as_kube_resize_run *run, const char **why_out)
{
    const struct as_access_env *env = get_env(run);
    const enum as_permit permit = as_access_get_permit(env);
    *why_out = as_permit_explain(permit);
    if (permit != AS_PERMIT_ALL)
        return false;
    switch (as_access_get_leave_permit(env, run->spec.flow.target, why_out)) {
    case AS_LEAVE_GO: return true;
    case AS_LEAVE_HOLD: return false;
    case AS_LEAVE_GONE: break;
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
    if (may_go_on(run, &why))
        read_pod(run);
    else
        fail_locally(run, AS_REASON_SUPERSEDED, why);
}

/* Fills the outcome of an answer. True: *pod is what it says. */
static bool take_answer(struct as_kube_resize_run *run, const struct as_http_response *response,
                        unsigned attempts, bool is_change, struct as_outcome *outcome,
                        struct as_kube_status *status)
{
    const struct as_clock *clock = get_env(run)->clock;
    struct as_error error = AS_ERROR_INIT;
    run->request = NULL;
    run->attempts += attempts;
    as_outcome_init(outcome, response, is_change, clock->get_wall(clock));
    *status = (struct as_kube_status){0};
    if (outcome->reason != AS_REASON_APPLIED) {
        if (outcome->http_status > 0 &&
            as_kube_status_decode(response->body, response->body_size, status, NULL) == 0)
            as_outcome_set_message(outcome, status->message);
        return false;
    }
    if (as_kube_sized_pod_decode(run->spec.pods, response->body, response->body_size, &run->pod,
                                 &error) == 0)
        return true;
    as_outcome_init_local(outcome, AS_REASON_REJECTED, error.text);
    outcome->is_ambiguous = is_change;
    return false;
}

/* ---- its kubelet ---- */

static void put_back_done(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_kube_resize_run *run = context;
    struct as_outcome outcome;
    struct as_kube_status status;
    char message[2 * AS_MESSAGE_SIZE], told[AS_MESSAGE_SIZE];
    snprintf(told, sizeof(told), "%.180s", run->pod.message);
    const bool is_back = take_answer(run, response, attempts, true, &outcome, &status);
    snprintf(message, sizeof(message), "%s; %s%.100s", told,
             is_back ? "put back to " : "it could not be put back: ",
             is_back ? run->former.request : outcome.message);
    run->changed--;
    outcome.reason = AS_REASON_DID_NOT_COME;
    outcome.is_ambiguous = false;
    as_outcome_set_message(&outcome, message);
    fail(run, &outcome);
}

static void put_back(struct as_kube_resize_run *run)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    as_kube_resize_patch_encode(&run->spec.pods->part, &run->pod, &run->former, &body);
    start(run, "PATCH", "/resize", &body, put_back_done);
}

static void review(struct as_kube_resize_run *run)
{
    const struct as_access_env *env = get_env(run);
    const bool is_late = env->clock->get_mono(env->clock).us >= run->until.us ||
                         as_access_get_permit(env) != AS_PERMIT_ALL;
    if (!run->pod.is_answered && run->pod.is_bound && !is_late) {
        run->timer = env->loop->start_timer(env->loop, AS_KUBE_RESIZE_LOOK_US, read_pod, run);
        return;
    }
    if (run->pod.resize == AS_KUBE_RESIZE_INFEASIBLE) {
        put_back(run);
        return;
    }
    if (run->pod.resize == AS_KUBE_RESIZE_DEFERRED)
        note_refused(run, &run->pod);
    pass_to_next(run);
}

/* ---- the requests ---- */

static void resized(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_kube_resize_run *run = context;
    const struct as_clock *clock = get_env(run)->clock;
    struct as_outcome outcome;
    struct as_kube_status status;
    if (take_answer(run, response, attempts, true, &outcome, &status)) {
        run->changed++;
        run->restarted += run->pod.restarts;
        run->is_resized = true;
        run->until.us = as_time_add(clock->get_mono(clock).us, AS_KUBE_RESIZE_WAIT_US);
        review(run);
    } else if (outcome.reason == AS_REASON_CONFLICT && ++run->tries < AS_KUBE_RESIZE_TRIES) {
        read_pod(run);
    } else if (outcome.http_status == NOT_FOUND && status.names_object) {
        run->gone++;
        pass_to_next(run);
    } else if (outcome.http_status == NOT_FOUND) {
        outcome.reason = AS_REASON_REJECTED;
        as_outcome_set_message(&outcome,
                               "the API server has no `resize` of pods: `apply: pods` needs "
                               "Kubernetes 1.33; use `apply: template`");
        fail(run, &outcome);
    } else {
        fail(run, &outcome);
    }
}

static void resize(struct as_kube_resize_run *run)
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
    start(run, "PATCH", "/resize", &body, resized);
}

static void was_read(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_kube_resize_run *run = context;
    struct as_outcome outcome;
    struct as_kube_status status;
    const bool is_read = take_answer(run, response, attempts, false, &outcome, &status);
    if (outcome.http_status == NOT_FOUND ||
        (is_read && (!run->pod.is_living || !run->pod.has_container))) {
        run->gone++;
        pass_to_next(run);
    } else if (!is_read) {
        fail(run, &outcome);
    } else if (run->is_resized) {
        review(run);
    } else if (needs_change(run, &run->pod)) {
        resize(run);
    } else { /* somebody else was faster */
        pass_to_next(run);
    }
}

static void read_pod(void *context)
{
    struct as_kube_resize_run *run = context;
    run->timer = NULL;
    start(run, "GET", "", NULL, was_read);
}

static void begin(void *context)
{
    struct as_kube_resize_run *run = context;
    run->timer = NULL;
    next(run);
}

struct as_kube_resize_run *as_kube_resize_start(const struct as_kube_resize_spec *spec)
{
    struct as_kube_resize_run *run = as_xcalloc(1, sizeof(*run));
    run->spec = *spec;
    run->timer = get_env(run)->loop->start_timer(get_env(run)->loop, 0, begin, run);
    return run;
}
