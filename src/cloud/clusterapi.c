/*
 * Cluster API: MachineDeployments, MachineSets and MachinePools of a management cluster, through
 * its API server and with the cluster's credentials:
 * https://cluster-api.sigs.k8s.io/
 * (its reference: labels and annotations)
 *
 * Their Machines are the instances. A MachinePool without Machines has instances too, but cannot be
 * told which instance to remove: it is only scaled up here.
 */
#include "clusterapi.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"
#include "providers.h"

#define MACHINES_PER_PAGE "100"
#define BOUND(which)      CLUSTERAPI_GROUP "/cluster-api-autoscaler-node-group-" which "-size"

struct clusterapi_kind {
    const char *kind, *plural;
    const char
        *pool_label; /* with the group's name, on its Machines; NULL: the status has a selector */
};

static const struct clusterapi_kind kinds[] = {
    {"MachineDeployment", "machinedeployments", NULL},
    {"MachineSet", "machinesets", NULL},
    {"MachinePool", "machinepools", CLUSTERAPI_GROUP "/pool-name"},
};

struct clusterapi_state *clusterapi_get_state(struct as_talk *talk)
{
    return as_group_get(talk)->state;
}

static struct as_group_view *get_view(struct as_talk *talk)
{
    return &as_group_get(talk)->view;
}

bool clusterapi_is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    const enum as_talk_fault fault = talk->fault;
    const bool has_status = talk->answer->outcome == AS_HTTP_ANSWERED;
    const char *message = has_status ? answer_text(answer_peek_json(talk), "message") : "";
    if (*message)
        as_talk_fail(talk, fault, "%s: HTTP %d: %s", talk->request.operation, talk->answer->status,
                     message);
    return false;
}

static const json_t *take_json(struct as_talk *talk)
{
    return clusterapi_is_good(talk) ? answer_json(talk) : NULL;
}

/* Not answer_find(): names of labels and annotations contain dots. */
static const json_t *find_annotation(const json_t *object, const char *name)
{
    return json_object_get(answer_find(object, "metadata.annotations"), name);
}

/* ---- Machines ---- */

static enum as_instance_state judge_phase(const json_t *machine)
{
    static const struct answer_word phases[] = {
        {"Running", AS_INSTANCE_RUNNING},
        {"Failed", AS_INSTANCE_FAILED},
        {"Deleting", AS_INSTANCE_LEAVING},
        {"Deleted", AS_INSTANCE_LEAVING},
        {NULL, 0},
    };
    if (answer_find(machine, "metadata.deletionTimestamp"))
        return AS_INSTANCE_LEAVING;
    /* Pending, Provisioning, Provisioned (no node yet), Unknown */
    return answer_judge(phases, answer_text(machine, "status.phase"), AS_INSTANCE_PENDING);
}

/* A MachineDeployment with several MachineSets spreads a lower size over all of them: then a mark
 * does not decide which Machine leaves. */
static void note_owner(struct as_talk *talk, const json_t *machine)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const size_t count = answer_count(machine, "metadata.ownerReferences");
    for (size_t i = 0; i < count; i++) {
        const json_t *owner = answer_at(machine, "metadata.ownerReferences", i);
        const char *name = answer_text(owner, "name");
        if (strcmp(answer_text(owner, "kind"), "MachineSet") != 0)
            continue;
        if (!state->machine_set)
            state->machine_set = as_arena_strdup(&talk->arena, name);
        else if (strcmp(state->machine_set, name) != 0)
            get_view(talk)->no_removal = "a rollout is under way: its Machines are of several "
                                         "MachineSets";
    }
}

/* False after failing the talk. */
static bool add_machine(struct as_talk *talk, const json_t *machine)
{
    struct as_group_view *view = get_view(talk);
    const struct as_instance instance = {
        .id = answer_text(machine, "metadata.name"),
        .provider_id = answer_text(machine, "spec.providerID"),
        .zone = answer_text(machine, "spec.failureDomain"),
        .state = judge_phase(machine),
        .is_unhealthy = find_annotation(machine, CLUSTERAPI_MARK), /* it is removed first anyway */
        .created = answer_time(machine, "metadata.creationTimestamp"),
    };
    if (!*instance.id) {
        (void)answer_misses(talk, "items[].metadata.name");
        return false;
    }
    if (instance.state != AS_INSTANCE_LEAVING)
        note_owner(talk, machine);
    const char *reason = answer_text(machine, "status.failureReason");
    const char *message = answer_text(machine, "status.failureMessage");
    if (instance.state == AS_INSTANCE_FAILED && (*reason || *message))
        view->shortage = as_talk_print(talk, "%s: %s", reason, message);
    return as_group_add_instance(as_group_get(talk), &instance);
}

/* Instances without Machines. False after failing the talk. */
static bool add_provider_ids(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    for (size_t i = 0; state->provider_ids && state->provider_ids[i]; i++) {
        const struct as_instance instance = {.id = state->provider_ids[i],
                                             .state = AS_INSTANCE_RUNNING};
        if (!as_group_add_instance(as_group_get(talk), &instance))
            return false;
    }
    state->is_nameless = true;
    get_view(talk)->no_removal =
        "this MachinePool has no Machines: who leaves cannot be said. As a "
        "`kubernetes` target it can be made smaller, by whom it chooses";
    return true;
}

/* A MachineSet counts a leaving Machine until it is gone, as one of those to remove: then a marked
 * one would stay, drained. */
static void note_missing(struct as_talk *talk)
{
    struct as_group_view *view = get_view(talk);
    const int32_t present = as_group_count_present(view);
    if (!view->no_removal && present < view->size)
        view->no_removal = as_talk_print(
            talk, "only %d of its %d Machines are there: others are leaving, or not made yet",
            present, view->size);
}

static void end_reading(struct as_talk *talk)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_talk *) = {
        [AS_GROUP_READ] = as_talk_end,
        [AS_GROUP_REMOVE] = clusterapi_remove,
        [AS_GROUP_TAKE_BACK] = clusterapi_take_back,
    };
    if (clusterapi_get_state(talk)->kind->pool_label && get_view(talk)->instance_count == 0 &&
        !add_provider_ids(talk))
        return;
    if (as_group_get(talk)->verb != AS_GROUP_TAKE_BACK) /* the missing instances */
        note_missing(talk);
    verbs[as_group_get(talk)->verb](talk);
}

static void ask_for_machines(struct as_talk *talk, const char *next);

static void hear_machines(struct as_talk *talk)
{
    const json_t *list = take_json(talk);
    if (!list) {
        if (talk->fault == AS_TALK_GONE && talk->http_status == 410)
            talk->fault = AS_TALK_BUSY; /* the list was too slow for the API server */
        return;
    }
    for (size_t i = 0; i < answer_count(list, "items"); i++) {
        if (!add_machine(talk, answer_at(list, "items", i)))
            return;
    }
    const char *next = answer_text(list, "metadata.continue");
    if (*next && as_talk_turn_page(talk, next))
        ask_for_machines(talk, as_arena_strdup(&talk->arena, next));
    else if (!*next)
        end_reading(talk);
}

static void ask_for_machines(struct as_talk *talk, const char *next)
{
    const struct clusterapi_state *state = clusterapi_get_state(talk);
    as_talk_ask(talk, "GET", "%s/machines?limit=" MACHINES_PER_PAGE "&labelSelector=%s%s%s",
                state->base, as_talk_escaped(talk, state->selector), *next ? "&continue=" : "",
                as_talk_escaped(talk, next));
    as_talk_send(talk, "list_machines", hear_machines);
}

/* ---- the group ---- */

static void take_provider_ids(struct as_talk *talk, const json_t *object)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const size_t count = answer_count(object, "spec.providerIDList");
    state->provider_ids = as_arena_alloc(&talk->arena, count + 1, sizeof(*state->provider_ids));
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(answer_at(object, "spec.providerIDList", i));
        if (!as_str_is_empty(id))
            state->provider_ids[kept++] = as_arena_strdup(&talk->arena, id);
    }
}

/* False after failing the talk. */
static bool take_selector(struct as_talk *talk, const json_t *object)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const char *label = state->kind->pool_label;
    state->selector = label ? as_talk_print(talk, "%s=%s", label, state->name)
                            : as_arena_strdup(&talk->arena, answer_text(object, "status.selector"));
    if (*state->selector)
        return true;
    as_talk_fail(talk, AS_TALK_BUSY, "its status has no selector: no controller has seen it yet");
    return false;
}

/* False after failing the talk. */
static bool take_group(struct as_talk *talk, const json_t *object)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    struct as_group_view *view = get_view(talk);
    const int32_t generation = answer_size(object, "metadata.generation", 0);
    if (answer_find(object, "metadata.deletionTimestamp")) {
        as_talk_fail(talk, AS_TALK_GONE, "%s %s is being deleted", state->kind->kind, state->name);
        return false;
    }
    const char *uid = answer_text(object, "metadata.uid");
    if (!answer_take_size(talk, object, "spec.replicas", &view->size))
        return false;
    if (!*uid)
        return answer_misses(talk, "metadata.uid");
    if (!as_group_add_backing(as_group_get(talk), "kubernetes/%s", uid))
        return false;
    view->min = answer_size(find_annotation(object, BOUND("min")), "", -1);
    view->max = answer_size(find_annotation(object, BOUND("max")), "", -1);
    view->in_progress = answer_size(object, "status.observedGeneration", generation) != generation;
    state->resource_version =
        as_arena_strdup(&talk->arena, answer_text(object, "metadata.resourceVersion"));
    if (answer_is_true(object, "spec.paused") ||
        find_annotation(object, CLUSTERAPI_GROUP "/paused"))
        view->no_growth = view->no_removal = "it is paused: no controller works at it";
    take_provider_ids(talk, object);
    return take_selector(talk, object);
}

static void hear_group(struct as_talk *talk)
{
    const json_t *object = take_json(talk);
    if (!object || !take_group(talk, object))
        return;
    if (as_group_get(talk)->verb == AS_GROUP_GROW)
        clusterapi_grow(talk);
    else
        ask_for_machines(talk, "");
}

/* ---- where it is ---- */

static void hear_api(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const json_t *api = take_json(talk);
    const char *version = answer_text(api, "preferredVersion.version");
    if (!api) {
        if (talk->http_status == 404)
            as_talk_fail(talk, AS_TALK_CONFIGURATION,
                         "Cluster API (" CLUSTERAPI_GROUP ") is not installed in this cluster");
        return;
    }
    if (!*version) {
        (void)answer_misses(talk, "preferredVersion.version");
        return;
    }
    state->base =
        as_talk_print(talk, "/apis/" CLUSTERAPI_GROUP "/%s/namespaces/%s",
                      as_talk_escaped(talk, version), as_talk_escaped(talk, state->namespace_));
    state->object = as_talk_print(talk, "%s/%s/%s", state->base, state->kind->plural,
                                  as_talk_escaped(talk, state->name));
    as_talk_ask(talk, "GET", "%s", state->object);
    as_talk_send(talk, "get_group", hear_group);
}

/* NULL after failing the talk. */
static const struct clusterapi_kind *find_kind(struct as_talk *talk, const char *kind)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, *kind ? kind : kinds[0].kind) == 0)
            return &kinds[i];
    }
    as_talk_fail(talk, AS_TALK_CONFIGURATION,
                 "`kind` is not MachineDeployment, MachineSet or MachinePool, but %s", kind);
    return NULL;
}

static bool is_name(const char *text)
{
    return *text && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static void begin(struct as_group_talk *group)
{
    struct as_talk *talk = &group->talk;
    struct clusterapi_state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    group->state = state;
    state->namespace_ = as_target_ref_get(group->group, "namespace");
    state->name = as_target_ref_get(group->group, "name");
    state->kind = find_kind(talk, as_target_ref_get(group->group, "kind"));
    if (!state->kind)
        return;
    if (group->verb == AS_GROUP_POLL) { /* no operation to poll */
        group->is_done = true;
        as_talk_end(talk);
    } else if (!is_name(state->namespace_) || !is_name(state->name)) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "`namespace` or `name` is no name of an object");
    } else {
        as_talk_ask(talk, "GET", "/apis/" CLUSTERAPI_GROUP);
        as_talk_send(talk, "discover_api", hear_api);
    }
}

const struct as_group_provider provider_clusterapi = {
    .kind =
        {
            .type = "clusterapi",
            .account_keys = (const struct as_provider_key[]){{.key = "cluster"}, {0}},
            .group_keys =
                (const struct as_provider_key[]){
                    {.key = "namespace", .place = AS_PLACE_NAMESPACE, .is_required = true},
                    {.key = "name", .is_required = true},
                    {.key = "kind", .place = AS_PLACE_KIND},
                    {0}},
        },
    .is_kubernetes = true,
    .begin = begin,
};
