/*
 * Target adapter for the objects of one Kubernetes cluster: see the header.
 *
 * A call finds the path of the object, and sends one request for it. An observation may also read
 * the object's pods, or the manager that set the size. A change of a field or of a container's
 * resource reads the object first. The differences between what can be scaled (decide/sized.h) are
 * the rows of a table: the scale subresource, a field, the resource of a container in the pod
 * template, and in the running pods.
 *
 * A call never retries, with two exceptions: a 401 (in kube_client.c), and a path from discovery
 * that is gone (once). A change always names the resourceVersion that it is based on: the API
 * server refuses the change if another writer was faster.
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
#include <alertscaler/kube/kube_field.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/model/field_path.h>

#include "kube_discovery.h"
#include "kube_events.h"
#include "kube_object_list.h"
#include "kube_owners.h"
#include "kube_pod_watch.h"
#include "kube_pods.h"
#include "kube_resize.h"
#include "kube_rollout.h"
#include "kube_writers.h"
#include "kubernetes_resources.h"

#define FORBIDDEN     403
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
    struct as_pod_watches *pods;
    struct as_object_lists *objects;
    LIST_HEAD(, call) calls;
};

/* One observe (scaled is NULL) or scale. Waits for exactly one of: timer, waiter, request, manager,
 * rollout, pages, owners, run. */
struct call {
    LIST_ENTRY(call) entry;
    struct kubernetes *owner;
    uint64_t call_id;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    struct as_target_ref *ref;
    struct as_flow flow;               /* owned */
    struct as_sized sized;             /* borrowed from ref */
    const struct dimension *dimension; /* the row */
    bool with_pods, has_own_size;      /* as in as_observe_request, like own_size */
    bool with_rollout;                 /* it is not read yet */
    bool with_owners;
    int32_t own_size;
    struct as_scale_request wanted; /* owns its texts */
    struct as_timer *timer;
    bool is_waiting;
    struct as_kube_discovery_waiter waiter;
    struct as_kube_request *request;
    struct as_kube_manager_ask *manager;
    struct as_kube_rollout_ask *rollout;
    struct as_kube_pages *pages;
    struct as_kube_owners *owners;
    struct as_kube_resize_run *run;
    bool is_path_final; /* else a path that is gone is looked up again */
    bool is_changing;   /* the request is the change; else it reads */
    bool is_cluster_wide;
    struct as_buf path; /* of the object, or its subresource */
    unsigned attempts;

    char *plural; /* of the path */

    struct as_outcome outcome;
    /* Of the object as last read. `replicas` of a workload: in its template; -1: not countable. */
    struct as_kube_scale scale;
    const char *scale_version;                /* apiVersion of Scale objects; borrowed */
    char changed_by[AS_MANAGER_SIZE];         /* as in as_observation */
    struct as_rollout_seen rollout_seen;      /* as in as_observation */
    char *selector;                           /* of the pods that are to be listed; NULL: none */
    bool has_pods;                            /* `pods` are known */
    struct as_kube_pods pods;                 /* as decisions need them */
    struct as_kube_part part;                 /* of a workload's pods */
    struct as_kube_workload workload;         /* as last read */
    struct as_kube_sized_pods resizable_pods; /* as a resize needs them */
    char resized[AS_MESSAGE_SIZE];            /* said of pods, before their template; "": none */
};

struct pod_decoder { /* its contexts are calls; the first two as in as_kube_pages_spec */
    int (*take)(void *context, const char *json, size_t size, char **next_out,
                struct as_error *error);
    void (*clear)(void *context);
    void (*finish)(struct call *call); /* after the last page */
    /* As after a whole list, out of a watch. False: they are to be listed. NULL: always. */
    bool (*find)(struct call *call);
};

/* What of an object is scaled, and how its size is read and set through the API. */
struct dimension {
    enum as_sized_what what;
    bool by_pods;      /* of a resource, as in as_sized */
    const char *title; /* in errors about a response; NULL: the error says enough */
    const char *noun;  /* of the object, in an error; NULL: versions are not compared */
    const char *subresource;
    const char *query;                         /* of a change; with its question mark */
    const char *get_operation, *set_operation; /* for metrics */
    const char *set_method;
    const char *set_type; /* of the body; NULL: application/json */
    size_t max_response;
    bool reads_first; /* a change is made of the object as it is now */
    bool checks_test; /* a 422 without causes may be a failed test: another writer was faster */
    void (*find_path)(struct call *call);
    /* Sets call->scale. 0, else an error. */
    int (*read)(struct call *call, const struct as_http_response *response, struct as_error *error);
    const char *(*print_size)(const struct call *call, char text_out[AS_SIZE_TEXT_SIZE]);
    /* Appends the body of a change. `object`: as it is now; NULL: not read, or decoded. 0, or a
     * negative errno with an error. */
    int (*write)(struct call *call, const struct as_http_response *object, struct as_buf *body,
                 struct as_error *error);
    void (*find_manager)(struct call *call, const struct as_http_response *response); /* or NULL */
    /* Sets the selector of the pods to list, or an outcome, or a message. Or NULL. */
    void (*find_selector)(struct call *call, const struct as_http_response *response);
    const struct pod_decoder *decoder; /* of the list of pods; NULL: they are not listed */
    void (*resize)(struct call *call); /* the listed pods, instead of a change; or NULL */
    void (*fill)(struct call *call, struct as_observation *observation);
};

static void kube_call_free(struct call *call)
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
    if (call->rollout)
        as_kube_rollout_cancel(call->rollout);
    if (call->pages)
        as_kube_pages_cancel(call->pages);
    if (call->owners)
        as_kube_owners_cancel(call->owners);
    if (call->run)
        as_kube_resize_cancel(call->run);
    LIST_REMOVE(call, entry);
    free(call->selector);
    as_kube_pods_deinit(&call->pods);
    as_kube_workload_deinit(&call->workload);
    as_kube_sized_pods_deinit(&call->resizable_pods);
    as_target_ref_free(call->ref);
    as_flow_deinit(&call->flow);
    as_scale_request_deinit(&call->wanted);
    as_buf_deinit(&call->path);
    free(call->plural);
    free(call);
}

/* ---- the end of a call ---- */

static const char *get_namespace(const struct call *call)
{
    return call->is_cluster_wide ? "" : as_target_ref_get(call->ref, "namespace");
}

static bool is_quotable(const char *text)
{
    return !strpbrk(text, "\"\\");
}

/* One object may be read or patched, and no other: who patches a workload may change its image. */
static void call_print_role(const struct call *call, struct as_buf *out)
{
    const char *name = as_target_ref_get(call->ref, "name");
    const char *api_version = as_target_ref_get(call->ref, "apiVersion");
    const bool is_patched =
        call->sized.what != AS_SIZED_SCALE && (!call->sized.by_pods || call->sized.with_template);
    AS_CLEANUP(as_free_p) char *role = as_xasprintf("alertscaler-%s-%s", call->plural, name);
    AS_CLEANUP(as_free_p)
    char *rules = as_xasprintf(
        "  - apiGroups: [\"%.*s\"]\n    resources: [%s]\n    resourceNames: [\"%s\"]\n"
        "    verbs: [%s]\n%s",
        as_kube_get_group_size(api_version), api_version, call->plural, name,
        is_patched ? "get, patch" : "get",
        call->sized.by_pods ? "  - {apiGroups: [\"\"], resources: [pods], verbs: [get, list]}\n"
                              "  - {apiGroups: [\"\"], resources: [pods/resize], verbs: [patch]}\n"
                            : "");
    as_kube_role_print(get_namespace(call), role, rules, out);
}

#define ROLE_MAX ((size_t)8 * 1024)

static void report_observed(struct call *call)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf role = AS_BUF_INIT(ROLE_MAX);
    struct as_observation observation = {.min = -1, .max = -1};
    call->dimension->fill(call, &observation);
    as_outcome_fill_observation(&call->outcome, &observation);
    memcpy(observation.uid, call->scale.uid, sizeof(observation.uid));
    memcpy(observation.changed_by, call->changed_by, sizeof(observation.changed_by));
    if (!call->dimension->by_pods) /* the workload's version does not change with its pods */
        memcpy(observation.version, call->scale.resource_version, sizeof(observation.version));
    as_sized_append_unit(call->ref, observation.version, sizeof(observation.version));
    as_sized_append_unit(call->ref, observation.uid, sizeof(observation.uid));
    const bool is_forbidden =
        call->rollout_seen.is_forbidden ||
        (call->outcome.http_status == FORBIDDEN && call->sized.what != AS_SIZED_SCALE);
    if (is_forbidden && call->plural && is_quotable(as_target_ref_get(call->ref, "name"))) {
        call_print_role(call, &role);
        observation.right = as_buf_check(&role) == 0 ? role.data : NULL;
    }
    call->observed(call->context, call->call_id, &observation);
}

static void report_scaled(struct call *call)
{
    struct as_scale_result result = {.attempts = call->attempts};
    as_outcome_fill_result(&call->outcome, &result);
    snprintf(result.method, sizeof(result.method), "%s", call->dimension->set_method);
    snprintf(result.path, sizeof(result.path), "%s", call->path.data ? call->path.data : "");
    call->scaled(call->context, call->call_id, &result);
    as_kube_events_post(call->owner->events, call->ref, get_namespace(call), &call->wanted,
                        &result);
}

static void kube_call_finish(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (call->scale.uid[0])
        as_kube_events_remember(call->owner->events, call->ref->id, call->scale.uid);
    if (call->outcome.reason == AS_REASON_APPLIED && !call->is_cluster_wide &&
        call->sized.what == AS_SIZED_SCALE)
        as_kube_others_note(call->owner->others, call->ref, call->flow.credential);
    if (call->scaled)
        report_scaled(call);
    else
        report_observed(call);
    kube_call_free(call);
}

/* Reports in a later turn, because the caller's call may still be running. */
static void kube_call_finish_later(struct call *call)
{
    const struct as_access_env *env = call->owner->env;
    call->timer = env->loop->start_timer(env->loop, 0, kube_call_finish, call);
}

/* No request is sent for it. Pods that were resized before are a step. */
static void kube_call_fail(struct call *call, enum as_reason reason, const char *why)
{
    as_outcome_init_local(&call->outcome, reason, why);
    call->outcome.is_accepted = call->resized[0] != '\0';
    kube_call_finish_later(call);
}

/* ---- requests on the object ---- */

static void kube_call_on_response(void *context, const struct as_http_response *response,
                                  unsigned attempts);

static void start_request(struct call *call, const struct as_buf *body)
{
    const struct dimension *dimension = call->dimension;
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_printf(&path, "%s%s", call->path.data, body ? dimension->query : "");
    const struct as_kube_request_spec spec = {
        .method = body ? dimension->set_method : "GET",
        .path = path.data,
        .operation = body ? dimension->set_operation : dimension->get_operation,
        .content_type = body ? dimension->set_type : NULL,
        .body = body ? body->data : NULL,
        .body_size = body ? body->size : 0,
        .max_response = dimension->max_response,
        .flow = call->flow,
    };
    call->is_changing = body != NULL;
    call->request = as_kube_request_start(&call->owner->client, &spec, kube_call_on_response, call);
}

static void send_change(struct call *call, const struct as_http_response *object)
{
    const struct as_access_env *env = call->owner->env;
    const char *rival = as_access_find_rival(env, call->flow.target);
    const enum as_permit permit = as_access_get_permit(env);
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    struct as_error error = AS_ERROR_INIT;
    if (rival) {
        as_error_set(&error, AS_RIVAL_FORMAT, rival);
        kube_call_fail(call, AS_REASON_TARGET_NOT_ALLOWED, error.text);
    } else if (permit == AS_PERMIT_NONE) {
        kube_call_fail(call, AS_REASON_SUPERSEDED, as_permit_explain(permit));
    } else if (call->dimension->write(call, object, &body, &error) == 0 &&
               as_buf_check(&body) == 0) {
        start_request(call, &body);
    } else {
        kube_call_fail(call, AS_REASON_REJECTED,
                       *error.text ? error.text : "the change is too large for a request");
    }
}

/* Whether the object is as it was observed, in the same unit: else it is observed again. */
static bool is_as_observed(const struct call *call)
{
    char version[AS_VERSION_SIZE];
    memcpy(version, call->scale.resource_version, sizeof(version));
    as_sized_append_unit(call->ref, version, sizeof(version));
    return strcmp(version, call->wanted.version) == 0 && call->scale.replicas == call->wanted.from;
}

static void change_object(struct call *call, const struct as_http_response *object)
{
    char message[AS_MESSAGE_SIZE];
    if (is_as_observed(call)) {
        send_change(call, object);
        return;
    }
    snprintf(message, sizeof(message), "%s has changed since it was observed",
             call->dimension->noun);
    call->outcome.reason = AS_REASON_CONFLICT;
    as_outcome_set_message(&call->outcome, message);
    kube_call_finish(call);
}

/* ---- pods ---- */

static void pods_resized(void *context, const struct as_outcome *outcome, unsigned attempts)
{
    struct call *call = context;
    const enum as_reason reason = outcome->reason;
    char message[2 * AS_MESSAGE_SIZE];
    call->run = NULL;
    call->attempts += attempts;
    call->outcome = *outcome;
    if ((reason != AS_REASON_APPLIED && reason != AS_REASON_NO_PODS) ||
        !call->sized.with_template || call->scale.replicas == call->wanted.to) {
        kube_call_finish(call);
    } else if (call->workload.rolls) {
        snprintf(message, sizeof(message),
                 "%s; the template is left alone, as its change would roll all pods",
                 outcome->message);
        as_outcome_set_message(&call->outcome, message);
        kube_call_finish(call);
    } else {
        memcpy(call->resized, outcome->message, sizeof(call->resized));
        send_change(call, NULL);
    }
}

static void resize_pods(struct call *call)
{
    const struct as_kube_resize_spec spec = {
        .client = &call->owner->client,
        .flow = call->flow,
        .namespace_ = get_namespace(call),
        .pods = &call->resizable_pods,
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

static void owners_known(void *context, const struct as_outcome *failure)
{
    struct call *call = context;
    call->owners = NULL;
    if (failure)
        call->outcome = *failure;
    kube_call_finish(call);
}

/* The pods are known, or are not wanted: their owners are next, if a rule counts by them. */
static void find_owners(struct call *call)
{
    if (call->with_owners && call->has_pods && call->outcome.reason == AS_REASON_APPLIED)
        call->owners = as_kube_owners_start(&(struct as_kube_owners_spec){
            .client = &call->owner->client,
            .discovery = call->owner->discovery,
            .flow = call->flow,
            .namespace_ = get_namespace(call),
            .api_version = as_target_ref_get(call->ref, "apiVersion"),
            .kind = as_target_ref_get(call->ref, "kind"),
            .uid = call->scale.uid,
            .pods = &call->pods,
            .done = owners_known,
            .context = call,
        });
    if (!call->owners)
        kube_call_finish(call);
}

static void pods_listed(void *context, const struct as_outcome *outcome)
{
    struct call *call = context;
    call->pages = NULL;
    call->outcome = *outcome;
    if (outcome->reason == AS_REASON_APPLIED)
        call->dimension->decoder->finish(call);
    if (outcome->reason == AS_REASON_APPLIED && call->scaled)
        call->dimension->resize(call);
    else
        find_owners(call);
}

static void list_selected_pods(struct call *call)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_append_str(&path, "/api/v1/namespaces");
    int status = as_kube_path_append(&path, get_namespace(call));
    as_buf_append_str(&path, "/pods");
    as_kube_path_append_parameter(&path, "labelSelector", call->selector);
    status = status ? status : as_buf_check(&path);
    const struct as_kube_pages_spec spec = {
        .path = status ? NULL : path.data,
        .trouble = "the selector is too long for a request",
        .operation = "list_pods",
        .what = "list pods",
        .right = "pods: list",
        .flow = call->flow,
        .take = call->dimension->decoder->take,
        .clear = call->dimension->decoder->clear,
        .done = pods_listed,
        .context = call,
    };
    call->pages = as_kube_pages_start(&call->owner->client, &spec);
}

/* ---- responses ---- */

static void kube_call_go_on(struct call *call);

static void rollout_known(void *context, const struct as_rollout_seen *seen)
{
    struct call *call = context;
    call->rollout = NULL;
    call->rollout_seen = *seen;
    kube_call_go_on(call);
}

/* Only the scale was read: the rollout is in the object. */
static void kube_call_read_rollout(struct call *call)
{
    const size_t size = call->path.size - strlen(call->dimension->subresource);
    AS_CLEANUP(as_free_p) char *path = as_xstrndup(call->path.data, size);
    call->with_rollout = false;
    call->rollout = as_kube_rollout_start(
        &call->owner->client, &call->flow,
        &(struct as_kube_rollout_of){path, as_target_ref_get(call->ref, "apiVersion"),
                                     as_target_ref_get(call->ref, "kind")},
        rollout_known, call);
}

/* The object is known: its rollout and its pods are next, if they are needed. */
static void kube_call_go_on(struct call *call)
{
    const struct pod_decoder *decoder = call->dimension->decoder;
    if (call->with_rollout && call->outcome.reason == AS_REASON_APPLIED)
        kube_call_read_rollout(call);
    else if (call->selector && (!decoder->find || !decoder->find(call)))
        list_selected_pods(call);
    else
        find_owners(call);
}

static void manager_known(void *context, const char *manager)
{
    struct call *call = context;
    call->manager = NULL;
    memcpy(call->changed_by, manager, strlen(manager) + 1);
    kube_call_go_on(call);
}

static void use_object(struct call *call, const struct as_http_response *response)
{
    const struct dimension *dimension = call->dimension;
    if (call->scaled && !dimension->resize) {
        change_object(call, response);
        return;
    }
    if (dimension->find_selector)
        dimension->find_selector(call, response);
    if (call->outcome.reason == AS_REASON_APPLIED && call->has_own_size &&
        dimension->find_manager && call->scale.replicas >= 0 &&
        call->scale.replicas != call->own_size)
        dimension->find_manager(call, response); /* others have changed the size */
    if (!call->manager)
        kube_call_go_on(call);
}

/* A webhook or a conversion may have changed the request: checks the result. */
static void check_applied(struct call *call)
{
    char wanted[AS_SIZE_TEXT_SIZE], made[AS_SIZE_TEXT_SIZE], message[2 * AS_MESSAGE_SIZE];
    if (call->scale.replicas != call->wanted.to) {
        snprintf(message, sizeof(message),
                 "asked for size %s, but the cluster made it %.60s (an admission webhook?)",
                 as_unit_print_size(call->sized.unit.text, call->wanted.to, wanted),
                 call->dimension->print_size(call, made));
        as_outcome_reject(&call->outcome, true, message);
    } else if (call->resized[0]) {
        snprintf(message, sizeof(message), "%s; the template too", call->resized);
        as_outcome_set_message(&call->outcome, message);
    }
}

static void read_object(struct call *call, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    if (call->dimension->read(call, response, &error) != 0) {
        if (call->dimension->title)
            as_error_wrap(&error, "not %s", call->dimension->title);
        as_outcome_reject(&call->outcome, call->is_changing, error.text);
    } else if (call->is_changing) {
        check_applied(call);
    }
}

/* True if the path itself is gone, and must be looked up again. */
static bool take_failure(struct call *call, const struct as_kube_status *status)
{
    call->outcome.is_accepted = call->resized[0] != '\0';
    if (call->is_changing && call->dimension->checks_test && !status->has_causes &&
        call->outcome.http_status == UNPROCESSABLE)
        call->outcome.reason = AS_REASON_CONFLICT;
    if (call->outcome.http_status != NOT_FOUND || status->names_object || call->is_path_final)
        return false;
    call->is_path_final = true;
    return as_kube_discovery_expire(call->owner->discovery,
                                    as_target_ref_get(call->ref, "apiVersion"));
}

static void kube_call_on_response(void *context, const struct as_http_response *response,
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
        read_object(call, response);
    } else if (take_failure(call, &status)) {
        call->dimension->find_path(call);
        return;
    }
    if (call->outcome.reason == AS_REASON_APPLIED && !call->is_changing)
        use_object(call, response);
    else
        kube_call_finish(call);
}

/* ---- the path ---- */

static int kube_call_write_path(struct call *call, const char *plural)
{
    struct as_buf *path = &call->path;
    as_buf_clear(path);
    free(call->plural);
    call->plural = as_xstrdup(plural);
    int status = as_kube_path_append_version(path, as_target_ref_get(call->ref, "apiVersion"));
    if (!status && !call->is_cluster_wide) {
        as_buf_append_str(path, "/namespaces");
        status = as_kube_path_append(path, get_namespace(call));
    }
    if (!status)
        status = as_kube_path_append(path, plural);
    if (!status)
        status = as_kube_path_append(path, as_target_ref_get(call->ref, "name"));
    as_buf_append_str(path, call->dimension->subresource);
    return status ? status : as_buf_check(path);
}

static void request_object(struct call *call, const char *plural)
{
    if (kube_call_write_path(call, plural) < 0)
        kube_call_fail(call, AS_REASON_REJECTED, "namespace or name cannot be part of a path");
    else if (!call->scaled || call->dimension->reads_first)
        start_request(call, NULL);
    else
        send_change(call, NULL);
}

static void use_resource(struct call *call, const struct as_kube_resource *resource)
{
    call->is_cluster_wide = !resource->is_namespaced;
    call->scale_version = resource->scale_version;
    if (resource->is_namespaced && !*as_target_ref_get(call->ref, "namespace"))
        kube_call_fail(call, AS_REASON_REJECTED,
                       "objects of this kind are in a namespace: the target names none");
    else if (call->sized.what == AS_SIZED_FIELD && resource->scale_version &&
             strcmp(call->sized.field, "spec.replicas") == 0)
        kube_call_fail(call, AS_REASON_REJECTED,
                       "the kind has a scale subresource: `field: spec.replicas` is not needed");
    else
        request_object(call, resource->plural);
}

static void discovered(void *context, const struct as_outcome *failure)
{
    struct call *call = context;
    call->is_waiting = false;
    if (failure) {
        call->outcome = *failure;
        kube_call_finish(call);
        return;
    }
    call->dimension->find_path(call);
}

/* By discovery, which is usually cached. */
static void discover_path(struct call *call)
{
    const char *api_version = as_target_ref_get(call->ref, "apiVersion");
    const struct as_kube_resource *resource;
    switch (as_kube_discovery_find(call->owner->discovery, api_version,
                                   as_target_ref_get(call->ref, "kind"),
                                   call->sized.what == AS_SIZED_SCALE, &resource, &call->outcome)) {
    case AS_KUBE_FOUND: use_resource(call, resource); break;
    case AS_KUBE_ASKING:
        call->waiter = (struct as_kube_discovery_waiter){.ready = discovered, .context = call};
        call->is_waiting = true;
        as_kube_discovery_wait(call->owner->discovery, api_version, &call->waiter);
        break;
    case AS_KUBE_NOT_SCALABLE: kube_call_finish_later(call); break;
    }
}

/* ---- rows: the scale subresource, and a field ---- */

static int read_scale(struct call *call, const struct as_http_response *response,
                      struct as_error *error)
{
    return as_kube_scale_decode(response->body, response->body_size, &call->scale, error);
}

static int read_field(struct call *call, const struct as_http_response *response,
                      struct as_error *error)
{
    return as_kube_field_decode(response->body, response->body_size,
                                as_target_ref_get(call->ref, "kind"), &call->sized, &call->scale,
                                error);
}

static const char *print_replicas(const struct call *call, char text_out[AS_SIZE_TEXT_SIZE])
{
    return as_unit_print_size(call->sized.unit.text, call->scale.replicas, text_out);
}

static int write_scale(struct call *call, const struct as_http_response *object,
                       struct as_buf *body, struct as_error *error)
{
    const struct as_kube_scale_update update = {
        .api_version = call->scale_version,
        .namespace_ = get_namespace(call),
        .name = as_target_ref_get(call->ref, "name"),
        .resource_version = call->wanted.version,
        .replicas = call->wanted.to,
    };
    (void)object;
    (void)error;
    as_kube_scale_encode(&update, body);
    return 0;
}

static int write_field(struct call *call, const struct as_http_response *object,
                       struct as_buf *body, struct as_error *error)
{
    return as_kube_field_encode_patch(object->body, object->body_size,
                                      as_target_ref_get(call->ref, "kind"), &call->sized,
                                      call->wanted.to, body, error);
}

/* Only the scale was read: the manager is in the object. */
static void find_scale_manager(struct call *call, const struct as_http_response *response)
{
    const size_t size = call->path.size - strlen(call->dimension->subresource);
    AS_CLEANUP(as_free_p) char *path = as_xstrndup(call->path.data, size);
    (void)response;
    call->manager =
        as_kube_manager_start(&call->owner->client, &call->flow, path, manager_known, call);
}

static void find_field_manager(struct call *call, const struct as_http_response *response)
{
    as_kube_manager_read(response->body, response->body_size, call->sized.field, call->changed_by);
}

/* Without a selector the pods are not known, and the message says why. */
static void find_pod_selector(struct call *call, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    if (!call->with_pods)
        return;
    if (as_kube_selector_decode(response->body, response->body_size, &call->selector, &error) < 0)
        as_error_wrap(&error, "pods are not known");
    else if (!call->selector)
        as_error_set(&error, "pods are not known: the scale subresource has no selector");
    else if (call->is_cluster_wide)
        as_error_set(&error, "pods are not known: the object is in no namespace");
    else
        return;
    free(call->selector);
    call->selector = NULL;
    as_outcome_set_message(&call->outcome, error.text);
}

static int take_seen_pods(void *context, const char *json, size_t size, char **next_out,
                          struct as_error *error)
{
    struct call *call = context;
    return as_kube_pods_decode(&call->pods, json, size, next_out, error);
}

static void clear_seen_pods(void *context)
{
    struct call *call = context;
    as_kube_pods_clear(&call->pods);
}

static void finish_seen_pods(struct call *call)
{
    as_kube_pods_finish(&call->pods);
    call->has_pods = true;
}

static bool find_seen_pods(struct call *call)
{
    call->has_pods = as_pod_watches_find(call->owner->pods, call->ref->id, get_namespace(call),
                                         call->selector, &call->pods);
    return call->has_pods;
}

static const struct pod_decoder seen_pods = {take_seen_pods, clear_seen_pods, finish_seen_pods,
                                             find_seen_pods};

static void fill_scale(struct call *call, struct as_observation *observation)
{
    observation->replicas = call->scale.replicas;
    observation->status_replicas = call->scale.status_replicas;
    observation->rollout = call->rollout_seen;
    if (call->has_pods) {
        observation->has_pods = true;
        observation->pods = call->pods.items;
        observation->pod_count = call->pods.count;
    }
}

/* ---- rows: the resource of a container, in the template and in running pods ---- */

static int count_amounts(const struct call *call, const struct as_kube_amounts *amounts,
                         int32_t *size_out, int32_t *max_out, struct as_error *error)
{
    return as_kube_amounts_count(amounts, call->part.resource, &call->sized.unit,
                                 call->sized.keep_limit, size_out, max_out, error);
}

static void find_workload_path(struct call *call)
{
    const struct as_kube_workload_kind *kind =
        as_kube_workload_kind_find(as_target_ref_get(call->ref, "kind"));
    call->is_path_final = true;
    if (kind)
        request_object(call, kind->plural);
    else
        kube_call_fail(call, AS_REASON_REJECTED,
                       "its kind has no pods whose resources can be sized");
}

static int read_workload(struct call *call, const struct as_http_response *response,
                         struct as_error *error)
{
    struct as_kube_workload workload;
    int32_t max;
    const int status =
        as_kube_workload_decode(as_kube_workload_kind_find(as_target_ref_get(call->ref, "kind")),
                                response->body, response->body_size, &call->part, &workload, error);
    if (status)
        return status;
    as_kube_workload_deinit(&call->workload);
    call->workload = workload;
    memcpy(call->scale.uid, workload.uid, sizeof(call->scale.uid));
    memcpy(call->scale.resource_version, workload.version, sizeof(call->scale.resource_version));
    if (count_amounts(call, &workload.amounts, &call->scale.replicas, &max, NULL) != 0)
        call->scale.replicas = -1;
    return 0;
}

static const char *print_template_request(const struct call *call, char text_out[AS_SIZE_TEXT_SIZE])
{
    (void)text_out;
    return call->workload.amounts.request;
}

/* What it was before its last change, to the byte; if that is not known any more, by the unit. */
static int choose_amounts(const struct call *call, struct as_kube_amounts *amounts,
                          struct as_error *error)
{
    int32_t size, max;
    if (call->wanted.is_put_back && call->workload.has_former &&
        count_amounts(call, &call->workload.former, &size, &max, NULL) == 0 &&
        size == call->wanted.to) {
        *amounts = call->workload.former;
        return 0;
    }
    return as_kube_amounts_resize(&call->workload.amounts, call->part.resource, &call->sized.unit,
                                  call->sized.keep_limit, call->wanted.to, amounts, error);
}

static int write_template_change(struct call *call, const struct as_http_response *object,
                                 struct as_buf *body, struct as_error *error)
{
    struct as_kube_amounts amounts;
    (void)object; /* the workload was decoded */
    const int status = choose_amounts(call, &amounts, error);
    if (status == 0)
        as_kube_template_patch_encode(&call->part, &call->workload, &amounts,
                                      call->wanted.is_put_back ? NULL : &call->workload.amounts,
                                      body);
    return status;
}

/* Not of pods: kubelets change them too, each at its time. Which manager set the smallest of their
 * requests is not known. */
static void find_template_manager(struct call *call, const struct as_http_response *response)
{
    char field[AS_FIELD_PATH_MAX];
    snprintf(field, sizeof(field), "spec.template.spec.%s[name='%s'].resources.requests.%s",
             call->workload.is_init ? "initContainers" : "containers", call->part.container,
             as_kube_resource_get_word(call->part.resource));
    as_kube_manager_read(response->body, response->body_size, field, call->changed_by);
}

static void find_workload_selector(struct call *call, const struct as_http_response *response)
{
    (void)response;
    if (call->workload.is_init && !call->workload.is_sidecar)
        as_outcome_init_local(&call->outcome, AS_REASON_REJECTED,
                              "the container is an init container, which ends before the others "
                              "start: it cannot be resized in place; use `apply: template`");
    else if (!call->workload.selector)
        as_outcome_init_local(&call->outcome, AS_REASON_REJECTED,
                              "the workload has no selector: its pods are not known");
    else
        call->selector = as_xstrdup(call->workload.selector);
}

static int take_resizable_pods(void *context, const char *json, size_t size, char **next_out,
                               struct as_error *error)
{
    struct call *call = context;
    return as_kube_sized_pods_decode(&call->resizable_pods, json, size, next_out, error);
}

static void clear_resizable_pods(void *context)
{
    struct call *call = context;
    as_kube_sized_pods_clear(&call->resizable_pods);
}

static void finish_resizable_pods(struct call *call)
{
    as_kube_sized_pods_finish(&call->resizable_pods);
}

static const struct pod_decoder resizable_pods = {take_resizable_pods, clear_resizable_pods,
                                                  finish_resizable_pods, NULL};

static as_maybe_time get_newer(as_maybe_time a, as_maybe_time b)
{
    return !a.set || (b.set && b.at.us > a.at.us) ? b : a;
}

static int32_t get_smaller(int32_t a, int32_t b) /* of a, where it is not -1, and b */
{
    return a < 0 || b < a ? b : a;
}

/* The size is that of the smallest pod; without pods, the template's. */
static int fill_pod_sizes(const struct call *call, struct as_observation *observation,
                          struct as_error *error)
{
    struct as_resize_seen *resize = &observation->resize;
    int32_t size, max, asked, asked_max, smallest = -1, lowest_max = -1;
    resize->template_size = observation->replicas;
    for (size_t i = 0; i < call->resizable_pods.count; i++) {
        const struct as_kube_sized_pod *pod = &call->resizable_pods.items[i];
        int status = count_amounts(call, as_kube_sized_pod_get(pod), &size, &max, error);
        status = status ? status : count_amounts(call, &pod->amounts, &asked, &asked_max, error);
        if (status) {
            as_error_wrap(error, "pod %s", pod->name);
            return status;
        }
        smallest = get_smaller(smallest, size);
        resize->asked = get_smaller(resize->asked, asked);
        if (asked == resize->template_size)
            resize->newest = get_newer(resize->newest, pod->created);
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

static void fill_workload(struct call *call, struct as_observation *observation)
{
    struct as_error error = AS_ERROR_INIT;
    if (call->outcome.reason != AS_REASON_APPLIED)
        return;
    observation->resize.is_set = true;
    observation->resize.template_size = observation->resize.settled = -1;
    observation->resize.asked = -1;
    int status = count_amounts(call, &call->workload.amounts, &observation->replicas,
                               &observation->max, &error);
    if (status)
        as_error_wrap(&error, "container %s of the pod template", call->part.container);
    else if (call->dimension->by_pods)
        status = fill_pod_sizes(call, observation, &error);
    else
        fill_rollout(call, observation);
    if (status)
        as_outcome_reject(&call->outcome, false, error.text);
    observation->status_replicas = observation->replicas;
}

/* ---- the table ---- */

static const struct dimension dimensions[] = {
    /* the first that fits */
    {
        .what = AS_SIZED_SCALE,
        .title = "a Scale object",
        .subresource = "/scale",
        .query = "",
        .get_operation = "get_scale",
        .set_operation = "update_scale",
        .set_method = "PUT",
        .max_response = AS_TARGET_RESPONSE_MAX,
        .find_path = discover_path,
        .read = read_scale,
        .print_size = print_replicas,
        .write = write_scale,
        .find_manager = find_scale_manager,
        .find_selector = find_pod_selector,
        .decoder = &seen_pods,
        .fill = fill_scale,
    },
    {
        .what = AS_SIZED_FIELD,
        .title = "an object with this field",
        .noun = "the object",
        .subresource = "",
        .query = "?fieldManager=alertscaler",
        .get_operation = "get_object",
        .set_operation = "patch_object",
        .set_method = "PATCH",
        .set_type = "application/json-patch+json",
        .max_response = AS_KUBE_SIZED_OBJECT_MAX,
        .reads_first = true,
        .checks_test = true,
        .find_path = discover_path,
        .read = read_field,
        .print_size = print_replicas,
        .write = write_field,
        .find_manager = find_field_manager,
        .find_selector = find_pod_selector,
        .decoder = &seen_pods,
        .fill = fill_scale,
    },
    {
        .what = AS_SIZED_RESOURCE,
        .by_pods = true,
        .subresource = "",
        .query = "",
        .get_operation = "get_workload",
        .set_operation = "patch_template",
        .set_method = "PATCH",
        .set_type = AS_KUBE_STRATEGIC_MERGE,
        .max_response = AS_KUBE_SIZED_OBJECT_MAX,
        .reads_first = true,
        .find_path = find_workload_path,
        .read = read_workload,
        .print_size = print_template_request,
        .write = write_template_change,
        .find_selector = find_workload_selector,
        .decoder = &resizable_pods,
        .resize = resize_pods,
        .fill = fill_workload,
    },
    {
        .what = AS_SIZED_RESOURCE,
        .noun = "it",
        .subresource = "",
        .query = "",
        .get_operation = "get_workload",
        .set_operation = "patch_template",
        .set_method = "PATCH",
        .set_type = AS_KUBE_STRATEGIC_MERGE,
        .max_response = AS_KUBE_SIZED_OBJECT_MAX,
        .reads_first = true,
        .find_path = find_workload_path,
        .read = read_workload,
        .print_size = print_template_request,
        .write = write_template_change,
        .find_manager = find_template_manager,
        .fill = fill_workload,
    },
};

static const struct dimension *dimension_find(const struct as_sized *sized)
{
    const struct dimension *row = dimensions;
    while (row->what != sized->what || (row->by_pods && !sized->by_pods))
        row++;
    return row;
}

/* ---- the port ---- */

static struct call *kube_call_new(struct as_target_port *port, uint64_t call_id,
                                  const struct as_target_ref *ref, const char *credential,
                                  void *context)
{
    struct kubernetes *kubernetes = (struct kubernetes *)port;
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = kubernetes;
    call->call_id = call_id;
    call->context = context;
    call->ref = as_target_ref_copy(ref);
    call->flow = as_flow_copy(&(struct as_flow){ref->id, credential});
    call->path = AS_BUF_INIT(AS_TARGET_URL_MAX - 64); /* room for the query of a change */
    as_sized_read(call->ref, &call->sized);
    call->dimension = dimension_find(&call->sized);
    call->pods = AS_KUBE_PODS_INIT(AS_KUBE_PODS_MAX);
    call->part = (struct as_kube_part){call->sized.container, call->sized.resource};
    call->resizable_pods = (struct as_kube_sized_pods){
        .part = call->part,
        .kind = as_target_ref_get(call->ref, "kind"),
        .name = as_target_ref_get(call->ref, "name"),
        .uid = call->scale.uid,
        .max = AS_KUBE_PODS_MAX,
    };
    LIST_INSERT_HEAD(&kubernetes->calls, call, entry);
    return call;
}

static void kube_target_observe(struct as_target_port *self, uint64_t call_id,
                                const struct as_target_ref *ref,
                                const struct as_observe_request *request,
                                as_target_observed_fn *done, void *context)
{
    struct call *call = kube_call_new(self, call_id, ref, request->credential, context);
    call->observed = done;
    call->with_pods = request->with_pods;
    call->with_rollout = request->with_rollout && call->sized.what == AS_SIZED_SCALE;
    call->with_owners = request->with_owners;
    call->has_own_size = request->has_own_size;
    call->own_size = request->own_size;
    call->dimension->find_path(call);
}

static void kube_target_scale(struct as_target_port *self, uint64_t call_id,
                              const struct as_target_ref *ref,
                              const struct as_scale_request *request, as_target_scaled_fn *done,
                              void *context)
{
    struct call *call = kube_call_new(self, call_id, ref, request->credential, context);
    call->scaled = done;
    as_scale_request_copy(request, &call->wanted);
    call->dimension->find_path(call);
}

static void kube_target_list(struct as_target_port *self, uint64_t call_id,
                             const struct as_object_list_request *request,
                             as_objects_listed_fn *done, void *context)
{
    as_object_list_start(((struct kubernetes *)self)->objects, call_id, request, done, context);
}

static bool kube_target_is_idle(const struct as_target_port *self)
{
    return LIST_EMPTY(&((const struct kubernetes *)self)->calls);
}

static void kube_target_close_port(struct as_target_port *self)
{
    struct kubernetes *kubernetes = (struct kubernetes *)self;
    struct call *call;
    while ((call = LIST_FIRST(&kubernetes->calls)) != NULL)
        kube_call_free(call);
    as_object_lists_free(kubernetes->objects);
    as_pod_watches_free(kubernetes->pods);
    as_kube_others_free(kubernetes->others);
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
        (struct as_target_port){kube_target_observe,    kube_target_scale, kube_target_is_idle,
                                kube_target_close_port, kube_target_warn,  kube_target_list};
    kubernetes->env = env;
    kubernetes->access = access;
    as_kube_client_init(&kubernetes->client, env, access);
    kubernetes->discovery = as_kube_discovery_new(&kubernetes->client);
    kubernetes->events = as_kube_events_new(&kubernetes->client);
    kubernetes->others = as_kube_others_new(&kubernetes->client);
    kubernetes->pods = as_pod_watches_new(&kubernetes->client);
    kubernetes->objects = as_object_lists_new(&kubernetes->client, kubernetes->discovery);
    LIST_INIT(&kubernetes->calls);
    return &kubernetes->port;
}
