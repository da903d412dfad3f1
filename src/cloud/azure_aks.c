/*
 * Agent pools of AKS, on scale sets or on virtual machines of one size:
 * https://learn.microsoft.com/rest/api/aks/agent-pools
 *
 * The scale sets behind them are not touched: AKS does not support this. A pool is changed by
 * sending all of it back. Machines are removed by name, and the count falls with them.
 */
#include "azure.h"

#include <string.h>
#include <strings.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"

static const char manual[] = "properties.virtualMachinesProfile.scale.manual";

static void ask_pool(struct as_talk *talk, as_talk_hear_fn *hear)
{
    const struct azure_state *state = azure_get_state(talk);
    as_talk_ask(talk, "GET", "%s?api-version=%s", state->resource, state->version);
    as_talk_send_question(talk, "get_agent_pool", hear);
}

/* ---- a pool ---- */

static bool has_machines(const json_t *pool)
{
    return strcasecmp(answer_text(pool, "properties.type"), "VirtualMachines") == 0;
}

/* False after failing the talk. */
static bool take_size(struct as_talk *talk, const json_t *pool, int32_t *size_out)
{
    if (!has_machines(pool))
        return answer_take_size(talk, pool, "properties.count", size_out);
    if (answer_count(pool, manual) == 1)
        return answer_take_size(talk, answer_at(pool, manual, 0), "count", size_out);
    as_talk_fail(talk, AS_TALK_CONFIGURATION,
                 "the agent pool has virtual machines of several sizes, or scales them itself: "
                 "only one manual scale profile can be set");
    return false;
}

static bool has_autoscaler(const json_t *pool)
{
    return answer_is_true(pool, "properties.enableAutoScaling");
}

static const char *find_etag(const json_t *pool, const struct as_talk *talk)
{
    const char *etag = answer_text(pool, "properties.eTag");
    return *etag ? etag : talk->answer->etag;
}

/* ---- reading ---- */

/* The scale set of a machine ".../virtualMachineScaleSets/NAME/virtualMachines/0". A pool without
 * machines has no name of it; the scale set names its pool (azure_vmss.c). False after failing the
 * talk. */
static bool add_scale_set(struct as_talk *talk, const char *id)
{
    static const char sets[] = "/virtualMachineScaleSets/";
    const char *set = strcasestr(id, sets);
    return !set ||
           azure_add_backing(talk, id,
                             (size_t)(set - id) + strlen(sets) + strcspn(set + strlen(sets), "/"));
}

static bool add_machine(struct as_talk *talk, const json_t *machine)
{
    const char *provisioning = answer_text(machine, "properties.provisioningState");
    struct as_instance instance = {
        .id = answer_text(machine, "name"),
        .provider_id = answer_text(machine, "properties.resourceId"),
        .zone = json_string_value(answer_at(machine, "zones", 0)),
        .state = AS_INSTANCE_RUNNING, /* most API versions tell no more */
    };
    if (strcasecmp(provisioning, "Creating") == 0)
        instance.state = AS_INSTANCE_PENDING;
    else if (strcasecmp(provisioning, "Deleting") == 0)
        instance.state = AS_INSTANCE_LEAVING;
    else if (strcasecmp(provisioning, "Failed") == 0)
        instance.state = AS_INSTANCE_FAILED;
    if (!*instance.id)
        return answer_misses(talk, "value.name");
    return add_scale_set(talk, instance.provider_id) &&
           as_group_add_instance(as_group_get(talk), &instance);
}

static void hear_machines(struct as_talk *talk)
{
    const json_t *document = azure_take_json(talk);
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "value"); i++) {
        if (!add_machine(talk, answer_at(document, "value", i)))
            return;
    }
    if (!azure_ask_next_page(talk, document, "list_machines", hear_machines))
        azure_get_state(talk)->then(talk);
}

static void hear_pool(struct as_talk *talk)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const struct azure_state *state = azure_get_state(talk);
    const json_t *pool = azure_take_json(talk);
    if (!pool || !take_size(talk, pool, &view->size))
        return;
    const char *provisioning = answer_text(pool, "properties.provisioningState");
    if (strcasecmp(provisioning, "Deleting") == 0) {
        as_talk_fail(talk, AS_TALK_GONE, "the agent pool is being deleted");
        return;
    }
    const char *path = state->resource + strlen(state->base);
    if (!azure_add_backing(talk, path, strlen(path)) ||
        !azure_take_version(talk, find_etag(pool, talk)))
        return;
    view->in_progress = !azure_is_settled(provisioning);
    if (has_autoscaler(pool)) {
        view->controller = "the cluster autoscaler of AKS (enableAutoScaling)";
        view->min = answer_size(pool, "properties.minCount", -1);
        view->max = answer_size(pool, "properties.maxCount", -1);
    } else if (strcasecmp(answer_text(pool, "properties.mode"), "System") == 0) {
        view->min = 1; /* a system pool cannot be empty */
    }
    as_talk_begin_list(talk);
    as_talk_ask(talk, "GET", "%s/machines?api-version=%s", state->resource, state->version);
    as_talk_send_question(talk, "list_machines", hear_machines);
}

/* ---- the size ---- */

static void hear_set_size(struct as_talk *talk)
{
    if (azure_is_good(talk))
        azure_begin_operation(talk);
}

/* All that a pool says about itself, without the read-only members. */
static json_t *make_pool(const json_t *pool, int32_t size)
{
    static const char *const own[] = {
        "eTag",   "provisioningState",        "currentOrchestratorVersion", "nodeImageVersion",
        "status", "virtualMachineNodesStatus"};
    json_t *properties = json_deep_copy(answer_find(pool, "properties")), *body = json_object();
    for (size_t i = 0; i < AS_ARRAY_SIZE(own); i++)
        json_object_del(properties, own[i]);
    json_object_set_new(body, "properties", properties);
    if (has_machines(pool))
        json_object_set_new((json_t *)answer_at(body, manual, 0), "count", json_integer(size));
    else
        json_object_set_new(properties, "count", json_integer(size));
    return body;
}

static bool is_unchanged(struct as_talk *talk, const json_t *pool, int32_t size)
{
    const struct as_group_talk *group = as_group_get(talk);
    const char *etag = find_etag(pool, talk);
    if (has_autoscaler(pool))
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "the cluster autoscaler of AKS sets the agent pool's size: turn one off");
    else if (!as_str_is_empty(group->version) && strcmp(group->version, etag) != 0)
        as_talk_fail(talk, AS_TALK_BUSY,
                     "the agent pool has changed since it was looked at: its size is %d", size);
    else
        return true;
    return false;
}

static void hear_pool_to_set(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const struct azure_state *state = azure_get_state(talk);
    int32_t size;
    const json_t *pool = azure_take_json(talk);
    if (!pool || !take_size(talk, pool, &size))
        return;
    if (size == group->to) { /* perhaps by a request whose answer was lost */
        azure_begin_operation(talk);
        return;
    }
    if (!is_unchanged(talk, pool, size) || !azure_take_version(talk, find_etag(pool, talk)))
        return;
    azure_ask_change(talk, "PUT",
                     as_talk_print(talk, "%s?api-version=%s", state->resource, state->version),
                     group->view.version, make_pool(pool, group->to));
    as_talk_send(talk, "set_agent_pool", hear_set_size);
}

static void set_size(struct as_talk *talk)
{
    ask_pool(talk, hear_pool_to_set);
}

/* ---- removing ---- */

static void remove_named(struct as_talk *talk)
{
    const struct azure_state *state = azure_get_state(talk);
    azure_ask_change(
        talk, "POST",
        as_talk_print(talk, "%s/deleteMachines?api-version=%s", state->resource, state->version),
        "", azure_make_list(as_group_get(talk), "machineNames"));
    as_talk_send(talk, "delete_machines", azure_hear_removed);
}

const struct azure_kind azure_agent_pool = {
    .what = "agent pool",
    .read = ask_pool,
    .hear = hear_pool,
    .grow = set_size,
    .set_size = set_size,
    .remove = remove_named,
};
