/*
 * Cluster API: MachineDeployments, MachineSets and MachinePools of a management cluster, through
 * its API server and with the cluster's credentials:
 * https://cluster-api.sigs.k8s.io/
 * (its reference: labels and annotations)
 *
 * Their Machines are the instances. A MachinePool without Machines has instances too, but cannot be
 * told which instance to remove: it is only scaled up here.
 *
 * Sizes are set through the scale subresource, on condition of the size that was read. Machines to
 * be removed are first marked with an annotation: their MachineSet deletes marked Machines before
 * all others. If the size was not set, the marks are removed again.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>

#include "provider_answer.h"
#include "providers.h"

#define CLUSTERAPI_GROUP "cluster.x-k8s.io"
#define CLUSTERAPI_MARK  CLUSTERAPI_GROUP "/delete-machine"

struct clusterapi_state { /* of a talk; texts are its memory */
    const struct clusterapi_kind *kind;
    const char *namespace_, *name;
    const char *base;   /* path of the namespace's objects */
    const char *object; /* path of the group's */
    const char *selector;
    const char *resource_version;
    const char *machine_set;   /* of the Machines seen; NULL: none seen yet */
    const char **provider_ids; /* of a MachinePool; NULL at the end */
    bool is_nameless;          /* it has instances but no Machines */
    /* for a change: */
    const char *const *names; /* of the Machines to remove */
    size_t name_count, marked;
    enum as_talk_fault failure; /* reported when the marks are removed */
    const char *failure_text;
    int failure_status;
    int64_t retry_after_us;
    bool is_ambiguous;
};

static struct clusterapi_state *clusterapi_get_state(struct as_talk *talk)
{
    return as_group_get(talk)->state;
}

/* Whether the answer is good; if not, the talk has failed with the API server's words. */
static bool clusterapi_is_good(struct as_talk *talk)
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

/* Changing a group */

#define SCALE_TYPE "application/json-patch+json"
#define MARK_TYPE  "application/merge-patch+json"
#define MARK_BODY  "{\"metadata\":{\"annotations\":{\"" CLUSTERAPI_MARK "\":%s}}}"

/* ---- changing: marks, then the size ---- */

static void mark_next(struct as_talk *talk);
static void unmark_next(struct as_talk *talk);

static void ask_mark(struct as_talk *talk, size_t index, const char *value)
{
    const struct clusterapi_state *state = clusterapi_get_state(talk);
    as_talk_ask(talk, "PATCH", "%s/machines/%s", state->base,
                as_talk_escaped(talk, state->names[index]));
    as_talk_header(talk, "Content-Type: " MARK_TYPE);
    as_buf_printf(&talk->request.body, MARK_BODY, value);
}

static void keep_failure(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    state->failure = talk->fault;
    state->failure_text = as_talk_print(talk, "%s", talk->message);
    state->failure_status = talk->http_status;
    state->retry_after_us = talk->retry_after_us;
    state->is_ambiguous = talk->is_ambiguous;
}

/* Reports the failure when the marks are removed. */
static void clusterapi_give_up(struct as_talk *talk)
{
    keep_failure(talk);
    unmark_next(talk);
}

static void clusterapi_on_unmarked(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (!clusterapi_is_good(talk) && talk->fault != AS_TALK_GONE)
        state->failure_text =
            as_talk_print(talk, "%s; Machine %s is still marked: %s", state->failure_text,
                          state->names[state->marked], talk->message);
    unmark_next(talk);
}

static void unmark_next(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (state->marked > 0) {
        ask_mark(talk, --state->marked, "null");
        as_talk_send(talk, "unmark_machine", clusterapi_on_unmarked);
        return;
    }
    as_talk_fail(talk, state->failure, "%s", state->failure_text);
    talk->http_status = state->failure_status;
    talk->retry_after_us = state->retry_after_us;
    talk->is_ambiguous = state->is_ambiguous;
}

/* Reads whether the size was set, if the answer did not tell. Marks stay while this is not known:
 * without them, other Machines might leave. */
static void clusterapi_on_looked(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const struct as_group_talk *group = as_group_get(talk);
    const json_t *object = clusterapi_is_good(talk) ? answer_json(talk) : NULL;
    const int32_t size = answer_size(object, "spec.replicas", -1);
    if (size < 0) {
        state->marked = 0;
    } else if (size == group->to && state->is_ambiguous) {
        talk->is_ambiguous = false;
        as_talk_end(talk);
        return;
    } else if (size != group->from) {
        state->failure = AS_TALK_BUSY;
        state->failure_text = as_talk_print(talk, "its size is %d meanwhile", size);
    }
    state->is_ambiguous = state->is_ambiguous && size < 0;
    unmark_next(talk);
}

static void clusterapi_look_again(struct as_talk *talk)
{
    keep_failure(talk);
    as_talk_ask(talk, "GET", "%s", clusterapi_get_state(talk)->object);
    as_talk_send(talk, "get_group", clusterapi_on_looked);
}

#define UNPROCESSABLE 422 /* the condition failed, or the size is not allowed */

static void clusterapi_on_scaled(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    if (!clusterapi_is_good(talk)) {
        if (talk->is_ambiguous || talk->http_status == UNPROCESSABLE)
            clusterapi_look_again(talk);
        else
            clusterapi_give_up(talk);
        return;
    }
    const json_t *scale = answer_json(talk);
    if (!scale) {
        clusterapi_look_again(talk);
    } else if (answer_size(scale, "spec.replicas", 0) != group->to) { /* a size of 0 is left out */
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "asked for size %d, but the cluster made it %d (an admission webhook?)",
                     group->to, answer_size(scale, "spec.replicas", 0));
        talk->is_ambiguous = true;
        clusterapi_give_up(talk);
    } else {
        as_talk_end(talk);
    }
}

/* A Scale leaves out a size of 0, which cannot be tested for: then the version is the condition. */
static void set_scale(struct as_talk *talk)
{
    const struct clusterapi_state *state = clusterapi_get_state(talk);
    const struct as_group_talk *group = as_group_get(talk);
    as_talk_ask(talk, "PATCH", "%s/scale", state->object);
    if (group->from > 0) {
        as_talk_header(talk, "Content-Type: " SCALE_TYPE);
        as_buf_printf(&talk->request.body,
                      "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":%d},"
                      "{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":%d}]",
                      group->from, group->to);
    } else {
        as_talk_header(talk, "Content-Type: " MARK_TYPE);
        as_buf_printf(&talk->request.body,
                      "{\"metadata\":{\"resourceVersion\":\"%s\"},\"spec\":{\"replicas\":%d}}",
                      state->resource_version, group->to);
    }
    as_talk_send(talk, "set_scale", clusterapi_on_scaled);
}

/* A Machine that is gone is being replaced: with a lower size another Machine would leave. */
static void clusterapi_on_marked(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const bool is_good = clusterapi_is_good(talk);
    if (!is_good && talk->fault == AS_TALK_GONE)
        as_talk_fail(talk, AS_TALK_BUSY, "Machine %s is gone meanwhile",
                     state->names[state->marked]);
    state->marked += is_good || talk->is_ambiguous;
    if (is_good)
        mark_next(talk);
    else
        clusterapi_give_up(talk);
}

static void mark_next(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (state->marked < state->name_count) {
        ask_mark(talk, state->marked, "\"alertscaler\"");
        as_talk_send(talk, "mark_machine", clusterapi_on_marked);
    } else {
        set_scale(talk);
    }
}

/* ---- what is to be changed, with the group as it is now ---- */

/* False after failing the talk. */
static bool clusterapi_check_size(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    if (group->view.size == group->from)
        return true;
    as_talk_fail(talk, AS_TALK_BUSY, "its size is %d meanwhile", group->view.size);
    return false;
}

static const struct as_instance *clusterapi_find_instance(const struct as_group_view *view,
                                                          const char *id)
{
    for (size_t i = 0; i < view->instance_count; i++) {
        if (strcmp(view->instances[i].id, id) == 0)
            return &view->instances[i];
    }
    return NULL;
}

static void clusterapi_remove(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (!clusterapi_check_size(talk))
        return;
    if (group->view.no_removal) {
        as_talk_fail(talk, AS_TALK_BUSY, "%s", group->view.no_removal);
        return;
    }
    for (size_t i = 0; i < group->instance_count; i++) {
        const struct as_instance *instance =
            clusterapi_find_instance(&group->view, group->instances[i]);
        if (!instance || instance->state == AS_INSTANCE_LEAVING) {
            as_talk_fail(talk, AS_TALK_BUSY, "Machine %s is leaving already", group->instances[i]);
            return;
        }
    }
    state->names = group->instances;
    state->name_count = group->instance_count;
    mark_next(talk);
}

/* Machines that failed, then pending Machines, the newest first. */
static size_t choose_missing(const struct as_group_view *view, const char **names, size_t wanted)
{
    static const enum as_instance_state order[] = {AS_INSTANCE_FAILED, AS_INSTANCE_PENDING};
    size_t count = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(order); i++) {
        for (size_t at = view->instance_count; at-- > 0 && count < wanted;) {
            if (view->instances[at].state == order[i])
                names[count++] = view->instances[at].id;
        }
    }
    return count;
}

/* Replicas without a Machine have no name: for these, only the size is lowered. */
static void clusterapi_take_back(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const struct as_group_view *view = &group->view;
    if (!clusterapi_check_size(talk))
        return;
    if (as_group_count_running(view) > group->to) {
        as_talk_fail(talk, AS_TALK_BUSY, "machines have come meanwhile: %d run",
                     as_group_count_running(view));
        return;
    }
    if (view->no_removal && !state->is_nameless) {
        as_talk_fail(talk, AS_TALK_BUSY, "%s", view->no_removal);
        return;
    }
    const int32_t surplus = as_group_count_present(view) - group->to;
    const char **names = as_arena_alloc(&talk->arena, view->instance_count + 1, sizeof(*names));
    state->names = names;
    if (!state->is_nameless && surplus > 0)
        state->name_count = choose_missing(view, names, (size_t)surplus);
    mark_next(talk);
}

/* The verbs; called when the group has been read. */
static void clusterapi_grow(struct as_talk *talk)
{
    if (clusterapi_check_size(talk))
        set_scale(talk);
}

/* Reading a group */

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

static struct as_group_view *get_view(struct as_talk *talk)
{
    return &as_group_get(talk)->view;
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

static void clusterapi_end_reading(struct as_talk *talk)
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

static void clusterapi_on_machines(struct as_talk *talk)
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
        clusterapi_end_reading(talk);
}

static void ask_for_machines(struct as_talk *talk, const char *next)
{
    const struct clusterapi_state *state = clusterapi_get_state(talk);
    as_talk_ask(talk, "GET", "%s/machines?limit=" MACHINES_PER_PAGE "&labelSelector=%s%s%s",
                state->base, as_talk_escaped(talk, state->selector), *next ? "&continue=" : "",
                as_talk_escaped(talk, next));
    as_talk_send(talk, "list_machines", clusterapi_on_machines);
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
static bool clusterapi_take_selector(struct as_talk *talk, const json_t *object)
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
static bool clusterapi_take_group(struct as_talk *talk, const json_t *object)
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
    return clusterapi_take_selector(talk, object);
}

static void clusterapi_on_group(struct as_talk *talk)
{
    const json_t *object = take_json(talk);
    if (!object || !clusterapi_take_group(talk, object))
        return;
    if (as_group_get(talk)->verb == AS_GROUP_GROW)
        clusterapi_grow(talk);
    else
        ask_for_machines(talk, "");
}

/* ---- where it is ---- */

static void clusterapi_on_api(struct as_talk *talk)
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
    as_talk_send(talk, "get_group", clusterapi_on_group);
}

/* NULL after failing the talk. */
static const struct clusterapi_kind *clusterapi_find_kind(struct as_talk *talk, const char *kind)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, *kind ? kind : kinds[0].kind) == 0)
            return &kinds[i];
    }
    as_talk_fail(talk, AS_TALK_CONFIGURATION,
                 "`kind` is not MachineDeployment, MachineSet or MachinePool, but %s", kind);
    return NULL;
}

static bool clusterapi_is_name(const char *text)
{
    return *text && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static void clusterapi_begin(struct as_group_talk *group)
{
    struct as_talk *talk = &group->talk;
    struct clusterapi_state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    group->state = state;
    state->namespace_ = as_target_ref_get(group->group, "namespace");
    state->name = as_target_ref_get(group->group, "name");
    state->kind = clusterapi_find_kind(talk, as_target_ref_get(group->group, "kind"));
    if (!state->kind)
        return;
    if (group->verb == AS_GROUP_POLL) { /* no operation to poll */
        group->is_done = true;
        as_talk_end(talk);
    } else if (!clusterapi_is_name(state->namespace_) || !clusterapi_is_name(state->name)) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "`namespace` or `name` is no name of an object");
    } else {
        as_talk_ask(talk, "GET", "/apis/" CLUSTERAPI_GROUP);
        as_talk_send(talk, "discover_api", clusterapi_on_api);
    }
}

const struct as_group_provider provider_clusterapi = {
    .type = "clusterapi",
    .is_kubernetes = true,
    .begin = clusterapi_begin,
};
