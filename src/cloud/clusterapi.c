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

struct clusterapi_state { /* of an op; texts are its memory */
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
    enum as_cloud_op_fault failure; /* reported when the marks are removed */
    const char *failure_text;
    int failure_status;
    int64_t retry_after_us;
    bool is_ambiguous;
};

static struct clusterapi_state *clusterapi_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* Whether the answer is good; if not, the op has failed with the API server's words. */
static bool clusterapi_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    const enum as_cloud_op_fault fault = op->fault;
    const bool has_status = op->answer->outcome == AS_HTTP_ANSWERED;
    const char *message = has_status ? answer_text(answer_peek_json(op), "message") : "";
    if (*message)
        as_cloud_op_fail(op, fault, "%s: HTTP %d: %s", op->request.operation, op->answer->status,
                         message);
    return false;
}

/* Changing a group */

#define SCALE_TYPE "application/json-patch+json"
#define MARK_TYPE  "application/merge-patch+json"
#define MARK_BODY  "{\"metadata\":{\"annotations\":{\"" CLUSTERAPI_MARK "\":%s}}}"

/* ---- changing: marks, then the size ---- */

static void mark_next(struct as_cloud_op *op);
static void unmark_next(struct as_cloud_op *op);

static void ask_mark(struct as_cloud_op *op, size_t index, const char *value)
{
    const struct clusterapi_state *state = clusterapi_get_state(op);
    as_cloud_op_ask(op, "PATCH", "%s/machines/%s", state->base,
                    as_cloud_op_escaped(op, state->names[index]));
    as_cloud_op_header(op, "Content-Type: " MARK_TYPE);
    as_buf_printf(&op->request.body, MARK_BODY, value);
}

static void keep_failure(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    state->failure = op->fault;
    state->failure_text = as_cloud_op_print(op, "%s", op->message);
    state->failure_status = op->http_status;
    state->retry_after_us = op->retry_after_us;
    state->is_ambiguous = op->is_ambiguous;
}

/* Reports the failure when the marks are removed. */
static void clusterapi_give_up(struct as_cloud_op *op)
{
    keep_failure(op);
    unmark_next(op);
}

static void clusterapi_on_unmarked(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    if (!clusterapi_is_good(op) && op->fault != AS_CLOUD_OP_GONE)
        state->failure_text =
            as_cloud_op_print(op, "%s; Machine %s is still marked: %s", state->failure_text,
                              state->names[state->marked], op->message);
    unmark_next(op);
}

static void unmark_next(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    if (state->marked > 0) {
        ask_mark(op, --state->marked, "null");
        as_cloud_op_send(op, "unmark_machine", clusterapi_on_unmarked);
        return;
    }
    as_cloud_op_fail(op, state->failure, "%s", state->failure_text);
    op->http_status = state->failure_status;
    op->retry_after_us = state->retry_after_us;
    op->is_ambiguous = state->is_ambiguous;
}

/* Reads whether the size was set, if the answer did not tell. Marks stay while this is not known:
 * without them, other Machines might leave. */
static void clusterapi_on_reread(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    const struct as_group_op *group = as_group_get(op);
    const json_t *object = clusterapi_is_good(op) ? answer_json(op) : NULL;
    const int32_t size = answer_size(object, "spec.replicas", -1);
    if (size < 0) {
        state->marked = 0;
    } else if (size == group->to && state->is_ambiguous) {
        op->is_ambiguous = false;
        as_cloud_op_end(op);
        return;
    } else if (size != group->from) {
        state->failure = AS_CLOUD_OP_BUSY;
        state->failure_text = as_cloud_op_print(op, "its size is %d meanwhile", size);
    }
    state->is_ambiguous = state->is_ambiguous && size < 0;
    unmark_next(op);
}

static void clusterapi_reread(struct as_cloud_op *op)
{
    keep_failure(op);
    as_cloud_op_ask(op, "GET", "%s", clusterapi_get_state(op)->object);
    as_cloud_op_send(op, "get_group", clusterapi_on_reread);
}

#define UNPROCESSABLE 422 /* the condition failed, or the size is not allowed */

static void clusterapi_on_scaled(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    if (!clusterapi_is_good(op)) {
        if (op->is_ambiguous || op->http_status == UNPROCESSABLE)
            clusterapi_reread(op);
        else
            clusterapi_give_up(op);
        return;
    }
    const json_t *scale = answer_json(op);
    if (!scale) {
        clusterapi_reread(op);
    } else if (answer_size(scale, "spec.replicas", 0) != group->to) { /* a size of 0 is left out */
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "asked for size %d, but the cluster made it %d (an admission webhook?)",
                         group->to, answer_size(scale, "spec.replicas", 0));
        op->is_ambiguous = true;
        clusterapi_give_up(op);
    } else {
        as_cloud_op_end(op);
    }
}

/* A Scale leaves out a size of 0, which cannot be tested for: then the version is the condition. */
static void set_scale(struct as_cloud_op *op)
{
    const struct clusterapi_state *state = clusterapi_get_state(op);
    const struct as_group_op *group = as_group_get(op);
    as_cloud_op_ask(op, "PATCH", "%s/scale", state->object);
    if (group->from > 0) {
        as_cloud_op_header(op, "Content-Type: " SCALE_TYPE);
        as_buf_printf(&op->request.body,
                      "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":%d},"
                      "{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":%d}]",
                      group->from, group->to);
    } else {
        as_cloud_op_header(op, "Content-Type: " MARK_TYPE);
        as_buf_printf(&op->request.body,
                      "{\"metadata\":{\"resourceVersion\":\"%s\"},\"spec\":{\"replicas\":%d}}",
                      state->resource_version, group->to);
    }
    as_cloud_op_send(op, "set_scale", clusterapi_on_scaled);
}

/* A Machine that is gone is being replaced: with a lower size another Machine would leave. */
static void clusterapi_on_marked(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    const bool is_good = clusterapi_is_good(op);
    if (!is_good && op->fault == AS_CLOUD_OP_GONE)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "Machine %s is gone meanwhile",
                         state->names[state->marked]);
    state->marked += is_good || op->is_ambiguous;
    if (is_good)
        mark_next(op);
    else
        clusterapi_give_up(op);
}

static void mark_next(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    if (state->marked < state->name_count) {
        ask_mark(op, state->marked, "\"alertscaler\"");
        as_cloud_op_send(op, "mark_machine", clusterapi_on_marked);
    } else {
        set_scale(op);
    }
}

/* ---- what is to be changed, with the group as it is now ---- */

/* False after failing the op. */
static bool clusterapi_check_size(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    if (group->view.size == group->from)
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "its size is %d meanwhile", group->view.size);
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

static void clusterapi_remove(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct clusterapi_state *state = clusterapi_get_state(op);
    if (!clusterapi_check_size(op))
        return;
    if (group->view.no_removal) {
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "%s", group->view.no_removal);
        return;
    }
    for (size_t i = 0; i < group->instance_count; i++) {
        const struct as_instance *instance =
            clusterapi_find_instance(&group->view, group->instances[i]);
        if (!instance || instance->state == AS_INSTANCE_LEAVING) {
            as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "Machine %s is leaving already",
                             group->instances[i]);
            return;
        }
    }
    state->names = group->instances;
    state->name_count = group->instance_count;
    mark_next(op);
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
static void clusterapi_take_back(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct clusterapi_state *state = clusterapi_get_state(op);
    const struct as_group_view *view = &group->view;
    if (!clusterapi_check_size(op))
        return;
    if (as_group_count_running(view) > group->to) {
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "machines have come meanwhile: %d run",
                         as_group_count_running(view));
        return;
    }
    if (view->no_removal && !state->is_nameless) {
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "%s", view->no_removal);
        return;
    }
    const int32_t surplus = as_group_count_present(view) - group->to;
    const char **names = as_arena_alloc(&op->arena, view->instance_count + 1, sizeof(*names));
    state->names = names;
    if (!state->is_nameless && surplus > 0)
        state->name_count = choose_missing(view, names, (size_t)surplus);
    mark_next(op);
}

/* The verbs; called when the group has been read. */
static void clusterapi_grow(struct as_cloud_op *op)
{
    if (clusterapi_check_size(op))
        set_scale(op);
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

static struct as_group_view *get_view(struct as_cloud_op *op)
{
    return &as_group_get(op)->view;
}

static const json_t *take_json(struct as_cloud_op *op)
{
    return clusterapi_is_good(op) ? answer_json(op) : NULL;
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
static void note_owner(struct as_cloud_op *op, const json_t *machine)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    const size_t count = answer_count(machine, "metadata.ownerReferences");
    for (size_t i = 0; i < count; i++) {
        const json_t *owner = answer_at(machine, "metadata.ownerReferences", i);
        const char *name = answer_text(owner, "name");
        if (strcmp(answer_text(owner, "kind"), "MachineSet") != 0)
            continue;
        if (!state->machine_set)
            state->machine_set = as_arena_strdup(&op->arena, name);
        else if (strcmp(state->machine_set, name) != 0)
            get_view(op)->no_removal = "a rollout is under way: its Machines are of several "
                                       "MachineSets";
    }
}

/* False after failing the op. */
static bool add_machine(struct as_cloud_op *op, const json_t *machine)
{
    struct as_group_view *view = get_view(op);
    const struct as_instance instance = {
        .id = answer_text(machine, "metadata.name"),
        .provider_id = answer_text(machine, "spec.providerID"),
        .zone = answer_text(machine, "spec.failureDomain"),
        .state = judge_phase(machine),
        .is_unhealthy = find_annotation(machine, CLUSTERAPI_MARK), /* it is removed first anyway */
        .created = answer_time(machine, "metadata.creationTimestamp"),
    };
    if (!*instance.id) {
        (void)answer_misses(op, "items[].metadata.name");
        return false;
    }
    if (instance.state != AS_INSTANCE_LEAVING)
        note_owner(op, machine);
    const char *reason = answer_text(machine, "status.failureReason");
    const char *message = answer_text(machine, "status.failureMessage");
    if (instance.state == AS_INSTANCE_FAILED && (*reason || *message))
        view->shortage = as_cloud_op_print(op, "%s: %s", reason, message);
    return as_group_add_instance(as_group_get(op), &instance);
}

/* Instances without Machines. False after failing the op. */
static bool add_provider_ids(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    for (size_t i = 0; state->provider_ids && state->provider_ids[i]; i++) {
        const struct as_instance instance = {.id = state->provider_ids[i],
                                             .state = AS_INSTANCE_RUNNING};
        if (!as_group_add_instance(as_group_get(op), &instance))
            return false;
    }
    state->is_nameless = true;
    get_view(op)->no_removal = "this MachinePool has no Machines: who leaves cannot be said. As a "
                               "`kubernetes` target it can be made smaller, by whom it chooses";
    return true;
}

/* A MachineSet counts a leaving Machine until it is gone, as one of those to remove: then a marked
 * one would stay, drained. */
static void note_missing(struct as_cloud_op *op)
{
    struct as_group_view *view = get_view(op);
    const int32_t present = as_group_count_present(view);
    if (!view->no_removal && present < view->size)
        view->no_removal = as_cloud_op_print(
            op, "only %d of its %d Machines are there: others are leaving, or not made yet",
            present, view->size);
}

static void clusterapi_end_reading(struct as_cloud_op *op)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = as_cloud_op_end,
        [AS_GROUP_REMOVE] = clusterapi_remove,
        [AS_GROUP_TAKE_BACK] = clusterapi_take_back,
    };
    if (clusterapi_get_state(op)->kind->pool_label && get_view(op)->instance_count == 0 &&
        !add_provider_ids(op))
        return;
    if (as_group_get(op)->verb != AS_GROUP_TAKE_BACK) /* the missing instances */
        note_missing(op);
    verbs[as_group_get(op)->verb](op);
}

static void ask_for_machines(struct as_cloud_op *op, const char *next);

static void clusterapi_on_machines(struct as_cloud_op *op)
{
    const json_t *list = take_json(op);
    if (!list) {
        if (op->fault == AS_CLOUD_OP_GONE && op->http_status == 410)
            op->fault = AS_CLOUD_OP_BUSY; /* the list was too slow for the API server */
        return;
    }
    for (size_t i = 0; i < answer_count(list, "items"); i++) {
        if (!add_machine(op, answer_at(list, "items", i)))
            return;
    }
    const char *next = answer_text(list, "metadata.continue");
    if (*next && as_cloud_op_turn_page(op, next))
        ask_for_machines(op, as_arena_strdup(&op->arena, next));
    else if (!*next)
        clusterapi_end_reading(op);
}

static void ask_for_machines(struct as_cloud_op *op, const char *next)
{
    const struct clusterapi_state *state = clusterapi_get_state(op);
    as_cloud_op_ask(op, "GET", "%s/machines?limit=" MACHINES_PER_PAGE "&labelSelector=%s%s%s",
                    state->base, as_cloud_op_escaped(op, state->selector),
                    *next ? "&continue=" : "", as_cloud_op_escaped(op, next));
    as_cloud_op_send(op, "list_machines", clusterapi_on_machines);
}

/* ---- the group ---- */

static void take_provider_ids(struct as_cloud_op *op, const json_t *object)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    const size_t count = answer_count(object, "spec.providerIDList");
    state->provider_ids = as_arena_alloc(&op->arena, count + 1, sizeof(*state->provider_ids));
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(answer_at(object, "spec.providerIDList", i));
        if (!as_str_is_empty(id))
            state->provider_ids[kept++] = as_arena_strdup(&op->arena, id);
    }
}

/* False after failing the op. */
static bool clusterapi_take_selector(struct as_cloud_op *op, const json_t *object)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    const char *label = state->kind->pool_label;
    state->selector = label ? as_cloud_op_print(op, "%s=%s", label, state->name)
                            : as_arena_strdup(&op->arena, answer_text(object, "status.selector"));
    if (*state->selector)
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                     "its status has no selector: no controller has seen it yet");
    return false;
}

/* False after failing the op. */
static bool clusterapi_take_group(struct as_cloud_op *op, const json_t *object)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    struct as_group_view *view = get_view(op);
    const int32_t generation = answer_size(object, "metadata.generation", 0);
    if (answer_find(object, "metadata.deletionTimestamp")) {
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "%s %s is being deleted", state->kind->kind,
                         state->name);
        return false;
    }
    const char *uid = answer_text(object, "metadata.uid");
    if (!answer_take_size(op, object, "spec.replicas", &view->size))
        return false;
    if (!*uid)
        return answer_misses(op, "metadata.uid");
    if (!as_group_add_backing(as_group_get(op), "kubernetes/%s", uid))
        return false;
    view->min = answer_size(find_annotation(object, BOUND("min")), "", -1);
    view->max = answer_size(find_annotation(object, BOUND("max")), "", -1);
    view->in_progress = answer_size(object, "status.observedGeneration", generation) != generation;
    state->resource_version =
        as_arena_strdup(&op->arena, answer_text(object, "metadata.resourceVersion"));
    if (answer_is_true(object, "spec.paused") ||
        find_annotation(object, CLUSTERAPI_GROUP "/paused"))
        view->no_increase = view->no_removal = "it is paused: no controller works at it";
    take_provider_ids(op, object);
    return clusterapi_take_selector(op, object);
}

static void clusterapi_on_group(struct as_cloud_op *op)
{
    const json_t *object = take_json(op);
    if (!object || !clusterapi_take_group(op, object))
        return;
    if (as_group_get(op)->verb == AS_GROUP_GROW)
        clusterapi_grow(op);
    else
        ask_for_machines(op, "");
}

/* ---- where it is ---- */

static void clusterapi_on_api(struct as_cloud_op *op)
{
    struct clusterapi_state *state = clusterapi_get_state(op);
    const json_t *api = take_json(op);
    const char *version = answer_text(api, "preferredVersion.version");
    if (!api) {
        if (op->http_status == 404)
            as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                             "Cluster API (" CLUSTERAPI_GROUP ") is not installed in this cluster");
        return;
    }
    if (!*version) {
        (void)answer_misses(op, "preferredVersion.version");
        return;
    }
    state->base = as_cloud_op_print(op, "/apis/" CLUSTERAPI_GROUP "/%s/namespaces/%s",
                                    as_cloud_op_escaped(op, version),
                                    as_cloud_op_escaped(op, state->namespace_));
    state->object = as_cloud_op_print(op, "%s/%s/%s", state->base, state->kind->plural,
                                      as_cloud_op_escaped(op, state->name));
    as_cloud_op_ask(op, "GET", "%s", state->object);
    as_cloud_op_send(op, "get_group", clusterapi_on_group);
}

/* NULL after failing the op. */
static const struct clusterapi_kind *clusterapi_find_kind(struct as_cloud_op *op, const char *kind)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, *kind ? kind : kinds[0].kind) == 0)
            return &kinds[i];
    }
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "`kind` is not MachineDeployment, MachineSet or MachinePool, but %s", kind);
    return NULL;
}

static bool clusterapi_is_name(const char *text)
{
    return *text && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static void clusterapi_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    struct clusterapi_state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    group->state = state;
    state->namespace_ = as_target_ref_get(group->group, "namespace");
    state->name = as_target_ref_get(group->group, "name");
    state->kind = clusterapi_find_kind(op, as_target_ref_get(group->group, "kind"));
    if (!state->kind)
        return;
    if (group->verb == AS_GROUP_POLL) { /* no operation to poll */
        group->is_done = true;
        as_cloud_op_end(op);
    } else if (!clusterapi_is_name(state->namespace_) || !clusterapi_is_name(state->name)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "`namespace` or `name` is no name of an object");
    } else {
        as_cloud_op_ask(op, "GET", "/apis/" CLUSTERAPI_GROUP);
        as_cloud_op_send(op, "discover_api", clusterapi_on_api);
    }
}

const struct as_group_provider provider_clusterapi = {
    .type = "clusterapi",
    .is_kubernetes = true,
    .begin = clusterapi_begin,
};
