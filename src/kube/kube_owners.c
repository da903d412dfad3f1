/*
 * Owners of pods. The controllers of the pods are read one after the other, each once: usually one,
 * and two during a rollout.
 *
 * A controller that is gone decides nothing: its pods are being collected, or another object adopts
 * them. They are marked, and the decision waits. So are pods whose controller cannot exist, by its
 * name or its kind, and those of too many controllers, and those whose controller is of another
 * kind than ReplicaSet and cannot be read without a further right: a pod with such a reference
 * stops only the rules that ask for owners. Pods that are being deleted count for nothing, so their
 * owner does not matter. The right to read ReplicaSets is one that these rules need at any rate:
 * without it, the whole observation fails, as without the right to list pods.
 */
#include "kube_owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_tree.h>

#include "kube_object.h"

#define OWNER_FORBIDDEN 403
#define OWNERS_FAILED   "owners of pods: "

struct pod_owner {                        /* a controller that is not the target */
    const struct as_kube_controller *ref; /* of the first of its pods */
    enum as_pod_owner result;
    const char *error; /* why it cannot be read, in the pods' memory; NULL: it was */
};

struct as_kube_owners {
    struct as_kube_owners_spec spec; /* its flow is owned */
    struct pod_owner owners[AS_KUBE_OWNERS_MAX];
    size_t count, at; /* at: the one that is read */
    struct as_kube_request *request;
    bool is_waiting;
    struct as_kube_discovery_waiter waiter;
    struct as_timer *timer; /* a failure is reported in a later turn */
    struct as_outcome failure;
};

static bool is_in_group(const char *api_version, const char *group)
{
    const size_t size = (size_t)as_kube_get_group_size(api_version);
    return size == strlen(group) && strncmp(api_version, group, size) == 0;
}

static bool is_replica_set(const struct as_kube_controller *ref)
{
    return is_in_group(ref->api_version, "apps") && strcmp(ref->kind, "ReplicaSet") == 0;
}

/* Whether the target may own the controller. Kubernetes' own workloads own their pods themselves,
 * but for Deployments. */
static bool may_own(const struct as_kube_owners_spec *spec, const struct as_kube_controller *ref)
{
    if (is_in_group(spec->api_version, "apps") && strcmp(spec->kind, "Deployment") == 0)
        return is_replica_set(ref);
    return !is_in_group(spec->api_version, "apps") && !is_in_group(spec->api_version, "");
}

static struct pod_owner *owners_find(struct as_kube_owners *owners, const char *uid)
{
    for (size_t i = 0; i < owners->count; i++)
        if (strcmp(owners->owners[i].ref->uid, uid) == 0)
            return &owners->owners[i];
    return NULL;
}

/* Whether the controller must be read to know whose the pod is. */
static bool is_owner_unknown(const struct as_kube_owners *owners,
                             const struct as_kube_controller *ref)
{
    return *ref->uid && strcmp(ref->uid, owners->spec.uid) != 0 && may_own(&owners->spec, ref);
}

static void owners_collect(struct as_kube_owners *owners)
{
    const struct as_kube_pods *pods = owners->spec.pods;
    for (size_t i = 0; i < pods->count && owners->count < AS_KUBE_OWNERS_MAX; i++) {
        const struct as_kube_controller *ref = &pods->controllers[i];
        if (!pods->items[i].deleting && is_owner_unknown(owners, ref) &&
            !owners_find(owners, ref->uid))
            owners->owners[owners->count++] = (struct pod_owner){.ref = ref};
    }
}

static void owners_mark(struct as_kube_owners *owners)
{
    struct as_kube_pods *pods = owners->spec.pods;
    for (size_t i = 0; i < pods->count; i++) {
        const struct as_kube_controller *ref = &pods->controllers[i];
        const struct pod_owner *owner = owners_find(owners, ref->uid);
        struct as_pod_seen *pod = &pods->items[i];
        const bool is_own = *ref->uid && strcmp(ref->uid, owners->spec.uid) == 0;
        pod->owner = is_own                          ? AS_POD_OF_TARGET
                     : owner                         ? owner->result
                     : is_owner_unknown(owners, ref) ? AS_POD_OF_GONE
                                                     : AS_POD_OF_OTHER;
        if (pod->owner == AS_POD_OF_GONE && pod->deleting)
            pod->owner = AS_POD_OF_OTHER;
        if (pod->owner != AS_POD_OF_GONE)
            continue;
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("%s %s", ref->kind, ref->name);
        pod->owner_name = as_arena_strdup(&pods->texts, name);
        pod->owner_error = owner ? owner->error : NULL;
    }
}

static void owners_free(struct as_kube_owners *owners)
{
    struct as_loop *loop = owners->spec.client->env->loop;
    if (owners->timer)
        loop->cancel_timer(loop, owners->timer);
    if (owners->request)
        as_kube_request_cancel(owners->request);
    if (owners->is_waiting)
        as_kube_discovery_waiter_cancel(&owners->waiter);
    as_flow_deinit(&owners->spec.flow);
    free(owners);
}

static void owners_finish(struct as_kube_owners *owners, const struct as_outcome *failure)
{
    const struct as_outcome copy = failure ? *failure : (struct as_outcome){.http_status = 0};
    as_kube_owners_done_fn *done = owners->spec.done;
    void *context = owners->spec.context;
    owners_free(owners);
    done(context, failure ? &copy : NULL);
}

static void owners_report_failure(void *context)
{
    struct as_kube_owners *owners = context;
    owners->timer = NULL;
    owners_finish(owners, &owners->failure);
}

static void owners_fail_later(struct as_kube_owners *owners, const char *why)
{
    struct as_loop *loop = owners->spec.client->env->loop;
    char text[AS_MESSAGE_SIZE + 32];
    snprintf(text, sizeof(text), OWNERS_FAILED "%s", why);
    as_outcome_init_local(&owners->failure, AS_REASON_REJECTED, text);
    owners->timer = loop->start_timer(loop, 0, owners_report_failure, owners);
}

static void owners_read_next(struct as_kube_owners *owners);

/* 0, with whose the controller is; or -EBADMSG. */
static int owner_decode(const struct as_kube_owners *owners,
                        const struct as_http_response *response, enum as_pod_owner *result_out,
                        struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_KUBE_ITEM_MEMORY_MAX);
    const struct as_kube_controller *ref = owners->owners[owners->at].ref;
    const int status = tree_load_object(&tree, response->body, response->body_size, error);
    if (status)
        return status;
    const struct tree_value *metadata = tree_find(tree.root, "metadata");
    const struct as_kube_controller above = as_kube_controller_read(metadata);
    if (!as_str_equal(tree_find_text(metadata, "uid"), ref->uid))
        *result_out = AS_POD_OF_GONE; /* another object has its name */
    else
        *result_out = strcmp(above.uid, owners->spec.uid) == 0 ? AS_POD_OF_TARGET : AS_POD_OF_OTHER;
    return 0;
}

/* With the API server's words, and the missing right. */
static void owner_explain(const struct as_kube_owners *owners, struct as_outcome *outcome,
                          const char *before)
{
    const struct as_kube_controller *ref = owners->owners[owners->at].ref;
    char right[160] = "", text[2 * AS_MESSAGE_SIZE];
    if (outcome->http_status == OWNER_FORBIDDEN)
        snprintf(right, sizeof(right),
                 "the right to get objects of the kind %.100s is missing: ", ref->kind);
    snprintf(text, sizeof(text), "%s%s%s", before, right, outcome->message);
    as_outcome_set_message(outcome, text);
}

/* The next controller. */
static void owners_go_on(struct as_kube_owners *owners)
{
    owners->at++;
    if (owners->at < owners->count) {
        owners_read_next(owners);
        return;
    }
    owners_mark(owners);
    owners_finish(owners, NULL);
}

static void owner_answered(void *context, const struct as_http_response *response,
                           unsigned attempts)
{
    struct as_kube_owners *owners = context;
    struct pod_owner *owner = &owners->owners[owners->at];
    const struct as_clock *clock = owners->spec.client->env->clock;
    struct as_error error = AS_ERROR_INIT;
    struct as_outcome outcome;
    (void)attempts;
    owners->request = NULL;
    as_kube_outcome_init(&outcome, response, false, clock->get_wall(clock), NULL);
    if (outcome.reason == AS_REASON_TARGET_NOT_FOUND) { /* of the owner */
        owner->result = AS_POD_OF_GONE;
    } else if (outcome.http_status == OWNER_FORBIDDEN && !is_replica_set(owner->ref)) {
        owner_explain(owners, &outcome, "");
        owner->result = AS_POD_OF_GONE;
        owner->error = as_arena_strdup(&owners->spec.pods->texts, outcome.message);
    } else if (outcome.reason != AS_REASON_APPLIED) {
        owner_explain(owners, &outcome, OWNERS_FAILED);
        owners_finish(owners, &outcome);
        return;
    } else if (owner_decode(owners, response, &owner->result, &error) != 0) {
        as_outcome_reject(&outcome, false, error.text);
        owner_explain(owners, &outcome, OWNERS_FAILED);
        owners_finish(owners, &outcome);
        return;
    }
    owners_go_on(owners);
}

static void owners_on_time(void *context)
{
    struct as_kube_owners *owners = context;
    owners->timer = NULL;
    owners_go_on(owners);
}

/* The controller cannot exist. */
static void owners_skip(struct as_kube_owners *owners)
{
    struct as_loop *loop = owners->spec.client->env->loop;
    owners->owners[owners->at].result = AS_POD_OF_GONE;
    owners->timer = loop->start_timer(loop, 0, owners_on_time, owners);
}

static void owner_request(struct as_kube_owners *owners, const char *plural, bool is_namespaced)
{
    const struct as_kube_controller *ref = owners->owners[owners->at].ref;
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    int status = as_kube_path_append_version(&path, ref->api_version);
    if (!status && is_namespaced) {
        as_buf_append_str(&path, "/namespaces");
        status = as_kube_path_append(&path, owners->spec.namespace_);
    }
    status = status ? status : as_kube_path_append(&path, plural);
    status = status ? status : as_kube_path_append(&path, ref->name);
    if (status || as_buf_check(&path) < 0) {
        owners_skip(owners);
        return;
    }
    owners->request = as_kube_request_start(
        owners->spec.client,
        &(struct as_kube_request_spec){
            .method = "GET",
            .path = path.data,
            .operation = "get_metadata",
            .accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            .max_response = AS_KUBE_METADATA_MAX,
            .flow = owners->spec.flow,
        },
        owner_answered, owners);
}

static void owner_discovered(void *context, const struct as_outcome *failure)
{
    struct as_kube_owners *owners = context;
    owners->is_waiting = false;
    if (!failure) {
        owners_read_next(owners);
        return;
    }
    if (failure->reason == AS_REASON_TARGET_NOT_FOUND) { /* the kind of the owner */
        owners_skip(owners);
        return;
    }
    struct as_outcome outcome = *failure;
    owner_explain(owners, &outcome, OWNERS_FAILED);
    owners_finish(owners, &outcome);
}

static void owners_read_next(struct as_kube_owners *owners)
{
    const struct as_kube_controller *ref = owners->owners[owners->at].ref;
    const struct as_kube_resource *resource;
    struct as_outcome failure;
    if (is_replica_set(ref)) {
        owner_request(owners, "replicasets", true);
        return;
    }
    switch (as_kube_discovery_find(owners->spec.discovery, ref->api_version, ref->kind, false,
                                   &resource, &failure)) {
    case AS_KUBE_FOUND: owner_request(owners, resource->plural, resource->is_namespaced); break;
    case AS_KUBE_ASKING:
        owners->waiter =
            (struct as_kube_discovery_waiter){.ready = owner_discovered, .context = owners};
        owners->is_waiting = true;
        as_kube_discovery_wait(owners->spec.discovery, ref->api_version, &owners->waiter);
        break;
    case AS_KUBE_NOT_SCALABLE: owners_skip(owners); break;
    }
}

struct as_kube_owners *as_kube_owners_start(const struct as_kube_owners_spec *spec)
{
    struct as_kube_owners *owners = as_xcalloc(1, sizeof(*owners));
    owners->spec = *spec;
    owners->spec.flow = as_flow_copy(&spec->flow);
    owners_collect(owners);
    if (!*spec->uid) {
        owners_fail_later(owners, "the scale has no uid");
    } else if (owners->count > 0) {
        owners_read_next(owners);
    } else {
        owners_mark(owners);
        owners_free(owners);
        return NULL;
    }
    return owners;
}

void as_kube_owners_cancel(struct as_kube_owners *owners)
{
    owners_free(owners);
}
