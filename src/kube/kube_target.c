/*
 * Target adapter for the objects of one Kubernetes cluster: see the header.
 *
 * A call goes through discovery (usually cached) and one request with its answer; if pods are asked
 * for, also through the list of the pods of the answer's selector; a change of a field reads the
 * object first. It never retries, with two exceptions: a 401 (in kube_client.c), and a path from
 * discovery that is gone (once). A change always names the resourceVersion that it is based on, so
 * the API server refuses it if somebody else was faster.
 */
#include <alertscaler/kube/kube_target.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube_discovery.h"
#include "kube_events.h"
#include "kube_pods.h"
#include "kube_sizing.h"
#include "kube_vertical.h"
#include "kube_writers.h"

#define NOT_FOUND     404
#define UNPROCESSABLE 422

struct kubernetes {
    struct as_target_port port;
    const struct as_access_env *env;
    struct as_kube_access *access;
    struct as_kube_client client;
    struct as_kube_discovery *discovery;
    struct as_kube_events *events;
    struct as_kube_others_watch *others;
    struct as_kube_vertical *vertical; /* has the calls of its targets */
    LIST_HEAD(, call) calls;
};

/* One observe (scaled is NULL) or scale. Waits for exactly one of: timer, waiter, request, manager,
 * list. */
struct call {
    LIST_ENTRY(call) entry;
    struct kubernetes *owner;
    uint64_t call_id;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    struct as_target_ref *ref;
    struct as_flow flow; /* owned */
    const struct as_kube_sizing *sizing;
    struct as_scale_request wanted; /* owns its texts */
    struct as_timer *timer;
    bool is_waiting;
    struct as_kube_discovery_waiter waiter;
    struct as_kube_request *request;
    struct as_kube_manager_ask *manager;
    struct as_kube_pod_list *list;
    bool asked_twice;
    bool is_changing; /* the request is the change; else it reads */
    bool with_pods;
    bool has_own_size; /* as in as_observe_request */
    int32_t own_size;
    char changed_by[AS_MANAGER_SIZE]; /* as in as_observation */
    char *selector;                   /* of the pods, until they are listed; NULL: none */
    bool is_cluster_wide;

    struct as_outcome outcome;
    struct as_kube_scale scale;      /* if the outcome is applied */
    const struct as_kube_pods *pods; /* NULL: not known */
    unsigned attempts;
    struct as_buf path; /* of the object, or its subresource */
};

static void proceed(struct call *call);

static void kube_target_free_call(struct call *call)
{
    const struct as_access_env *env = call->owner->env;
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    if (call->is_waiting)
        as_kube_discovery_waiter_cancel(&call->waiter);
    if (call->request)
        as_kube_request_cancel(call->request);
    if (call->manager)
        as_kube_manager_cancel(call->manager);
    if (call->list)
        as_kube_pod_list_cancel(call->list);
    free(call->selector);
    LIST_REMOVE(call, entry);
    as_target_ref_free(call->ref);
    as_flow_deinit(&call->flow);
    as_scale_request_deinit(&call->wanted);
    as_buf_deinit(&call->path);
    free(call);
}

static void report_observed(struct call *call)
{
    struct as_observation observation = {
        .replicas = call->scale.replicas,
        .status_replicas = call->scale.status_replicas,
        .min = -1,
        .max = -1,
    };
    as_outcome_fill_observation(&call->outcome, &observation);
    memcpy(observation.version, call->scale.resource_version, sizeof(observation.version));
    memcpy(observation.uid, call->scale.uid, sizeof(observation.uid));
    memcpy(observation.changed_by, call->changed_by, sizeof(observation.changed_by));
    as_sized_append_unit(call->ref, observation.version, sizeof(observation.version));
    as_sized_append_unit(call->ref, observation.uid, sizeof(observation.uid));
    if (call->pods) {
        observation.has_pods = true;
        observation.pods = call->pods->items;
        observation.pod_count = call->pods->count;
    }
    call->observed(call->context, call->call_id, &observation);
}

static const char *get_namespace(const struct call *call)
{
    return call->is_cluster_wide ? "" : as_target_ref_get(call->ref, "namespace");
}

static void report_scaled(struct call *call)
{
    struct as_scale_result result = {.attempts = call->attempts};
    as_outcome_fill_result(&call->outcome, &result);
    snprintf(result.method, sizeof(result.method), "%s", call->sizing->set_method);
    snprintf(result.path, sizeof(result.path), "%s", call->path.data ? call->path.data : "");
    call->scaled(call->context, call->call_id, &result);
    as_kube_events_post(call->owner->events, call->ref, get_namespace(call), &call->wanted,
                        &result);
}

static void kube_target_finish(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (call->scale.uid[0])
        as_kube_events_remember(call->owner->events, call->ref->id, call->scale.uid);
    if (call->outcome.reason == AS_REASON_APPLIED && !call->is_cluster_wide &&
        call->sizing->what == AS_SIZED_SCALE)
        as_kube_others_note(call->owner->others, call->ref, call->flow.credential);
    if (call->scaled)
        report_scaled(call);
    else
        report_observed(call);
    kube_target_free_call(call);
}

/* Without a request: reports in a later turn, because the caller's call may still be running. */
static void finish_later(struct call *call)
{
    const struct as_access_env *env = call->owner->env;
    call->timer = env->loop->start_timer(env->loop, 0, kube_target_finish, call);
}

static const char *print_size(const struct call *call, int32_t size, char text[AS_SIZE_TEXT_SIZE])
{
    return as_unit_print_size(as_sized_get_unit(call->ref), size, text);
}

/* A webhook or a conversion may have changed the request: checks the result. */
static void check_applied(struct call *call)
{
    char wanted[AS_SIZE_TEXT_SIZE], made[AS_SIZE_TEXT_SIZE];
    if (!call->is_changing || call->scale.replicas == call->wanted.to)
        return;
    call->outcome.reason = AS_REASON_REJECTED;
    call->outcome.is_ambiguous = true;
    snprintf(call->outcome.message, sizeof(call->outcome.message),
             "asked for size %s, but the cluster made it %s (an admission webhook?)",
             print_size(call, call->wanted.to, wanted),
             print_size(call, call->scale.replicas, made));
}

static void take_scale(struct call *call, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    const int status =
        call->sizing->read(call->ref, response->body, response->body_size, &call->scale, &error);
    if (status == 0) {
        check_applied(call);
        return;
    }
    as_error_wrap(&error, "not %s", call->sizing->title);
    as_outcome_reject(&call->outcome, call->is_changing, error.text);
}

static void kube_target_listed(void *context, const struct as_outcome *outcome,
                               const struct as_kube_pods *pods)
{
    struct call *call = context;
    call->list = NULL;
    call->outcome = *outcome;
    if (outcome->reason == AS_REASON_APPLIED)
        call->pods = pods;
    kube_target_finish(call);
}

/* Sets the selector; without it the pods are not known, and the message says why. */
static void take_selector(struct call *call, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    if (as_kube_selector_decode(response->body, response->body_size, &call->selector, &error) < 0) {
        as_error_wrap(&error, "pods are not known");
        as_outcome_set_message(&call->outcome, error.text);
        return;
    }
    if (!call->selector || call->is_cluster_wide)
        as_outcome_set_message(&call->outcome,
                               call->selector ? "pods are not known: the object is in no namespace"
                                              : "pods are not known: the scale subresource has no "
                                                "selector");
}

/* The size is known: the pods are next, if they are asked for. */
static void kube_target_go_on(struct call *call)
{
    if (call->selector && !call->is_cluster_wide)
        call->list = as_kube_pod_list_start(&call->owner->client, &call->flow, get_namespace(call),
                                            call->selector, kube_target_listed, call);
    else
        kube_target_finish(call);
}

static void manager_known(void *context, const char *manager)
{
    struct call *call = context;
    call->manager = NULL;
    memcpy(call->changed_by, manager, strlen(manager) + 1);
    kube_target_go_on(call);
}

/* Others have changed the size. An object of which a field is sized was read whole; of the other
 * objects only the scale, at call->path. */
static void find_manager(struct call *call, const struct as_http_response *response)
{
    static const char kube_target_scale[] = "/scale";
    if (call->sizing->what == AS_SIZED_FIELD) {
        as_kube_manager_read(response->body, response->body_size,
                             as_target_ref_get(call->ref, "field"), call->changed_by);
        kube_target_go_on(call);
        return;
    }
    AS_CLEANUP(as_free_p)
    char *path = as_xstrndup(call->path.data, call->path.size - (sizeof(kube_target_scale) - 1));
    call->manager =
        as_kube_manager_start(&call->owner->client, &call->flow, path, manager_known, call);
}

/* True if the path itself is gone, and must be looked up again. */
static bool take_failure(struct call *call, const struct as_kube_status *status)
{
    if (call->is_changing && call->sizing->checks_test && !status->has_causes &&
        call->outcome.http_status == UNPROCESSABLE)
        call->outcome.reason = AS_REASON_CONFLICT;
    if (call->outcome.http_status != NOT_FOUND || status->names_object || call->asked_twice)
        return false;
    return as_kube_discovery_expire(call->owner->discovery,
                                    as_target_ref_get(call->ref, "apiVersion"));
}

static void kube_target_answered(void *context, const struct as_http_response *response,
                                 unsigned attempts);

static int kube_target_write_path(struct call *call, const char *plural)
{
    struct as_buf *path = &call->path;
    as_buf_clear(path);
    int status = as_kube_path_append_version(path, as_target_ref_get(call->ref, "apiVersion"));
    if (!status && !call->is_cluster_wide) {
        as_buf_append_str(path, "/namespaces");
        status = as_kube_path_append(path, get_namespace(call));
    }
    if (!status)
        status = as_kube_path_append(path, plural);
    if (!status)
        status = as_kube_path_append(path, as_target_ref_get(call->ref, "name"));
    as_buf_append_str(path, call->sizing->subresource);
    return status ? status : as_buf_check(path);
}

static void start_request(struct call *call, const struct as_buf *body)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_printf(&path, "%s%s", call->path.data, body ? call->sizing->query : "");
    const struct as_kube_request_spec spec = {
        .method = body ? call->sizing->set_method : "GET",
        .path = path.data,
        .operation = body ? call->sizing->set_operation : call->sizing->get_operation,
        .content_type = body ? call->sizing->set_type : NULL,
        .body = body ? body->data : NULL,
        .body_size = body ? body->size : 0,
        .max_response = call->sizing->max_response,
        .flow = call->flow,
    };
    call->is_changing = body != NULL;
    call->request = as_kube_request_start(&call->owner->client, &spec, kube_target_answered, call);
}

/* `from` has what the call does not know. */
static void send_change(struct call *call, const struct as_kube_change *from)
{
    const char *rival = as_access_find_rival(call->owner->env, call->flow.target);
    const enum as_permit permit = as_access_get_permit(call->owner->env);
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_change change = *from;
    change.ref = call->ref;
    change.namespace_ = get_namespace(call);
    change.wanted = &call->wanted;
    if (rival) {
        as_error_set(&error, AS_RIVAL_FORMAT, rival);
        as_outcome_init_local(&call->outcome, AS_REASON_TARGET_NOT_ALLOWED, error.text);
        finish_later(call);
        return;
    }
    if (permit == AS_PERMIT_NONE) {
        as_outcome_init_local(&call->outcome, AS_REASON_SUPERSEDED, as_permit_explain(permit));
        finish_later(call);
        return;
    }
    if (call->sizing->write(&change, &body, &error) == 0 && as_buf_check(&body) == 0) {
        start_request(call, &body);
        return;
    }
    as_outcome_init_local(&call->outcome, AS_REASON_REJECTED,
                          *error.text ? error.text : "the change is too large for a request");
    finish_later(call);
}

/* Whether the object is as it was observed, in the same unit: else it is observed again. */
static bool is_as_observed(struct call *call)
{
    char version[AS_VERSION_SIZE];
    memcpy(version, call->scale.resource_version, sizeof(version));
    as_sized_append_unit(call->ref, version, sizeof(version));
    return strcmp(version, call->wanted.version) == 0 && call->scale.replicas == call->wanted.from;
}

/* The object was read for a change of it. True: the change is on its way. */
static bool change_object(struct call *call, const struct as_http_response *response)
{
    if (!is_as_observed(call)) {
        call->outcome.reason = AS_REASON_CONFLICT;
        as_outcome_set_message(&call->outcome, "the object has changed since it was observed");
        return false;
    }
    const struct as_kube_change change = {
        .object = response->body,
        .object_size = response->body_size,
    };
    send_change(call, &change);
    return true;
}

static void kube_target_answered(void *context, const struct as_http_response *response,
                                 unsigned attempts)
{
    struct call *call = context;
    const struct as_clock *clock = call->owner->env->clock;
    struct as_kube_status status;
    call->request = NULL;
    call->attempts += attempts;
    as_kube_outcome_init(&call->outcome, response, call->is_changing, clock->get_wall(clock),
                         &status);
    if (call->outcome.reason == AS_REASON_APPLIED) {
        take_scale(call, response);
    } else if (take_failure(call, &status)) {
        call->asked_twice = true;
        proceed(call);
        return;
    }
    if (call->outcome.reason != AS_REASON_APPLIED) {
        kube_target_finish(call);
        return;
    }
    if (call->scaled && !call->is_changing && change_object(call, response))
        return;
    if (call->with_pods)
        take_selector(call, response);
    if (call->has_own_size && call->scale.replicas != call->own_size)
        find_manager(call, response);
    else
        kube_target_go_on(call);
}

static void kube_target_refuse(struct call *call, const char *why)
{
    as_outcome_init_local(&call->outcome, AS_REASON_REJECTED, why);
    finish_later(call);
}

static void request_scale(struct call *call, const struct as_kube_resource *resource)
{
    call->is_cluster_wide = !resource->is_namespaced;
    if (resource->is_namespaced && !*as_target_ref_get(call->ref, "namespace")) {
        kube_target_refuse(call, "objects of this kind are in a namespace: the target names none");
        return;
    }
    if (call->sizing->what == AS_SIZED_FIELD && resource->scale_version &&
        strcmp(as_target_ref_get(call->ref, "field"), "spec.replicas") == 0) {
        kube_target_refuse(
            call, "the kind has a scale subresource: `field: spec.replicas` is not needed");
        return;
    }
    if (kube_target_write_path(call, resource->plural) < 0) {
        kube_target_refuse(call, "namespace or name cannot be part of a path");
        return;
    }
    if (!call->scaled || call->sizing->reads_first)
        start_request(call, NULL);
    else
        send_change(call, &(struct as_kube_change){.scale_version = resource->scale_version});
}

static void discovered(void *context, const struct as_outcome *failure)
{
    struct call *call = context;
    call->is_waiting = false;
    if (failure) {
        call->outcome = *failure;
        kube_target_finish(call);
        return;
    }
    proceed(call);
}

static void proceed(struct call *call)
{
    const char *api_version = as_target_ref_get(call->ref, "apiVersion");
    const struct as_kube_resource *resource;
    switch (as_kube_discovery_find(
        call->owner->discovery, api_version, as_target_ref_get(call->ref, "kind"),
        call->sizing->what == AS_SIZED_SCALE, &resource, &call->outcome)) {
    case AS_KUBE_FOUND: request_scale(call, resource); break;
    case AS_KUBE_ASKING:
        call->waiter = (struct as_kube_discovery_waiter){.ready = discovered, .context = call};
        call->is_waiting = true;
        as_kube_discovery_wait(call->owner->discovery, api_version, &call->waiter);
        break;
    case AS_KUBE_NOT_SCALABLE: finish_later(call); break;
    }
}

static struct call *new_call(struct as_target_port *port, uint64_t call_id,
                             const struct as_target_ref *ref, const char *credential, void *context)
{
    struct kubernetes *kubernetes = (struct kubernetes *)port;
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = kubernetes;
    call->call_id = call_id;
    call->context = context;
    call->ref = as_target_ref_copy(ref);
    call->flow = as_flow_copy(&(struct as_flow){ref->id, credential});
    call->path = AS_BUF_INIT(AS_TARGET_URL_MAX - 64); /* room for the query of a change */
    struct as_sized sized;
    as_sized_read(ref, &sized);
    call->sizing = as_kube_sizing_find(sized.what);
    LIST_INSERT_HEAD(&kubernetes->calls, call, entry);
    return call;
}

static bool kube_target_is_resource(const struct as_target_ref *ref)
{
    struct as_sized sized;
    as_sized_read(ref, &sized);
    return sized.what == AS_SIZED_RESOURCE;
}

static void kube_target_observe(struct as_target_port *self, uint64_t call_id,
                                const struct as_target_ref *ref,
                                const struct as_observe_request *request,
                                as_target_observed_fn *done, void *context)
{
    if (kube_target_is_resource(ref)) {
        as_kube_vertical_observe(((struct kubernetes *)self)->vertical, call_id, ref, request, done,
                                 context);
        return;
    }
    struct call *call = new_call(self, call_id, ref, request->credential, context);
    call->observed = done;
    call->with_pods = request->with_pods;
    call->has_own_size = request->has_own_size;
    call->own_size = request->own_size;
    proceed(call);
}

static void kube_target_scale(struct as_target_port *self, uint64_t call_id,
                              const struct as_target_ref *ref,
                              const struct as_scale_request *request, as_target_scaled_fn *done,
                              void *context)
{
    if (kube_target_is_resource(ref)) {
        as_kube_vertical_scale(((struct kubernetes *)self)->vertical, call_id, ref, request, done,
                               context);
        return;
    }
    struct call *call = new_call(self, call_id, ref, request->credential, context);
    call->scaled = done;
    as_scale_request_copy(request, &call->wanted);
    proceed(call);
}

static bool kube_target_is_idle(const struct as_target_port *self)
{
    const struct kubernetes *kubernetes = (const struct kubernetes *)self;
    return LIST_EMPTY(&kubernetes->calls) && as_kube_vertical_is_idle(kubernetes->vertical);
}

static void kube_target_close_port(struct as_target_port *self)
{
    struct kubernetes *kubernetes = (struct kubernetes *)self;
    struct call *call;
    while ((call = LIST_FIRST(&kubernetes->calls)) != NULL)
        kube_target_free_call(call);
    as_kube_others_free(kubernetes->others);
    as_kube_vertical_free(kubernetes->vertical);
    as_kube_discovery_free(kubernetes->discovery);
    as_kube_client_deinit(&kubernetes->client);
    as_kube_events_free(kubernetes->events);
    as_kube_access_free(kubernetes->access);
    free(kubernetes);
}

static void kube_target_warn(struct as_target_port *self, const struct as_target_ref *ref,
                             const struct as_late_warning *warning)
{
    as_kube_events_warn(((struct kubernetes *)self)->events, ref, warning);
}

struct as_target_port *as_kubernetes_new(struct as_kube_access *access,
                                         const struct as_access_env *env)
{
    struct kubernetes *kubernetes = as_xcalloc(1, sizeof(*kubernetes));
    kubernetes->port =
        (struct as_target_port){kube_target_observe, kube_target_scale, kube_target_is_idle,
                                kube_target_close_port, kube_target_warn};
    kubernetes->env = env;
    kubernetes->access = access;
    as_kube_client_init(&kubernetes->client, env, access);
    kubernetes->discovery = as_kube_discovery_new(&kubernetes->client);
    kubernetes->events = as_kube_events_new(&kubernetes->client);
    kubernetes->others = as_kube_others_new(&kubernetes->client);
    kubernetes->vertical = as_kube_vertical_new(&kubernetes->client, kubernetes->events);
    LIST_INIT(&kubernetes->calls);
    return &kubernetes->port;
}
