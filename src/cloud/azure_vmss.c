/*
 * Virtual machine scale sets, uniform and flexible:
 * https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets
 *
 * The size is sku.capacity. Instances are removed by name (an instance id; in a flexible set the
 * name of the virtual machine), and the capacity falls with them.
 */
#include "azure.h"

#include <string.h>
#include <strings.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"

#define AUTOSCALE_VERSION "2022-10-01"

static void ask_set(struct as_talk *talk, as_talk_hear_fn *hear)
{
    const struct azure_state *state = azure_get_state(talk);
    as_talk_ask(talk, "GET", "%s?api-version=%s", state->resource, state->version);
    as_talk_send_question(talk, "get_scale_set", hear);
}

/* ---- instances ---- */

/* The word behind `prefix` among the codes of an instance view; "" if absent. */
static const char *find_code(const json_t *machine, const char *prefix)
{
    static const char path[] = "properties.instanceView.statuses";
    for (size_t i = 0; i < answer_count(machine, path); i++) {
        const char *code = answer_text(answer_at(machine, path, i), "code");
        if (as_str_starts_with(code, prefix))
            return code + strlen(prefix);
    }
    return "";
}

static enum as_instance_state judge_state(const char *provisioning, const char *power)
{
    if (strcasecmp(provisioning, "Creating") == 0)
        return AS_INSTANCE_PENDING;
    if (strcasecmp(provisioning, "Deleting") == 0)
        return AS_INSTANCE_LEAVING;
    if (strcasecmp(provisioning, "Failed") == 0 && strcmp(power, "running") != 0)
        return AS_INSTANCE_FAILED;
    return AS_INSTANCE_RUNNING;
}

static bool is_unhealthy(const json_t *machine, const char *provisioning, const char *power)
{
    return (*power && strcmp(power, "running") != 0 && strcmp(power, "starting") != 0) ||
           strcasecmp(provisioning, "Failed") == 0 ||
           strcasecmp(answer_text(machine, "properties.instanceView.vmHealth.status.code"),
                      "HealthState/unhealthy") == 0;
}

/* Notes why a machine failed, if it was for lack of machines or quota. */
static void note_shortage(struct as_talk *talk, const json_t *machine)
{
    static const char path[] = "properties.instanceView.statuses",
                      failed[] = "ProvisioningState/failed/";
    struct as_group_view *view = &as_group_get(talk)->view;
    for (size_t i = 0; i < answer_count(machine, path) && !view->shortage; i++) {
        const json_t *status = answer_at(machine, path, i);
        const char *code = answer_text(status, "code"), *message = answer_text(status, "message");
        if (strncasecmp(code, failed, strlen(failed)) == 0 &&
            azure_judge(code + strlen(failed), message, AS_TALK_OK) == AS_TALK_CAPACITY)
            view->shortage = as_talk_print(talk, "%s: %s", code + strlen(failed), message);
    }
}

/* False after failing the talk. */
static bool add_machine(struct as_talk *talk, const json_t *machine)
{
    const char *provisioning = answer_text(machine, "properties.provisioningState");
    const char *power = find_code(machine, "PowerState/");
    const char *id = answer_text(machine, "instanceId"); /* flexible: absent, or the name */
    const struct as_instance instance = {
        .id = *id ? id : answer_text(machine, "name"),
        .provider_id = answer_text(machine, "id"),
        .zone = json_string_value(answer_at(machine, "zones", 0)),
        .state = judge_state(provisioning, power),
        .is_unhealthy = is_unhealthy(machine, provisioning, power),
        .is_protected =
            answer_is_true(machine, "properties.protectionPolicy.protectFromScaleIn") ||
            answer_is_true(machine, "properties.protectionPolicy.protectFromScaleSetActions"),
        .created = answer_time(machine, "properties.timeCreated"),
    };
    if (!*instance.id)
        return answer_misses(talk, "value.name");
    if (instance.state == AS_INSTANCE_FAILED)
        note_shortage(talk, machine);
    return as_group_add_instance(as_group_get(talk), &instance);
}

static void ask_autoscale(struct as_talk *talk);

static void hear_machines(struct as_talk *talk)
{
    const json_t *document = azure_take_json(talk);
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "value"); i++) {
        if (!add_machine(talk, answer_at(document, "value", i)))
            return;
    }
    if (!azure_ask_next_page(talk, document, "list_instances", hear_machines))
        ask_autoscale(talk);
}

static void ask_machines(struct as_talk *talk, bool is_flexible)
{
    const struct azure_state *state = azure_get_state(talk);
    as_talk_begin_list(talk);
    if (is_flexible) {
        const char *filter = as_talk_print(talk, "'virtualMachineScaleSet/id' eq '%s'", state->id);
        as_talk_ask(talk, "GET",
                    "%s/providers/Microsoft.Compute/virtualMachines?$filter=%s&"
                    "$expand=instanceView&api-version=%s",
                    state->scope, as_talk_escaped(talk, filter), state->version);
    } else {
        as_talk_ask(talk, "GET", "%s/virtualMachines?$expand=instanceView&api-version=%s",
                    state->resource, state->version);
    }
    as_talk_send_question(talk, "list_instances", hear_machines);
}

/* ---- who else sets the size ---- */

/* Azure Monitor's autoscale settings in the set's own resource group. */
static void hear_autoscale(struct as_talk *talk)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const char *id = azure_get_state(talk)->id;
    const json_t *document = azure_take_json(talk);
    if (!document) {
        if (talk->http_status == 409 &&
            strcmp(azure_peek_code(talk), "MissingSubscriptionRegistration") == 0)
            azure_get_state(talk)->then(talk); /* autoscale was never used there */
        return;
    }
    for (size_t i = 0; i < answer_count(document, "value"); i++) {
        const json_t *setting = answer_at(document, "value", i);
        if (answer_is_true(setting, "properties.enabled") &&
            strcasecmp(answer_text(setting, "properties.targetResourceUri"), id) == 0)
            view->controller = as_talk_print(talk, "Azure Monitor's autoscale setting %s",
                                             answer_text(setting, "name"));
    }
    if (!azure_ask_next_page(talk, document, "list_autoscale_settings", hear_autoscale))
        azure_get_state(talk)->then(talk);
}

static void ask_autoscale(struct as_talk *talk)
{
    const struct azure_state *state = azure_get_state(talk);
    if (as_group_get(talk)->view.controller) {
        state->then(talk);
        return;
    }
    as_talk_begin_list(talk);
    as_talk_ask(talk, "GET",
                "%s/providers/Microsoft.Insights/autoscalesettings?api-version=" AUTOSCALE_VERSION,
                state->scope);
    as_talk_send_question(talk, "list_autoscale_settings", hear_autoscale);
}

/* ---- reading ---- */

static void hear_set(struct as_talk *talk)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    struct azure_state *state = azure_get_state(talk);
    const json_t *set = azure_take_json(talk);
    if (!set || !answer_take_size(talk, set, "sku.capacity", &view->size))
        return;
    const char *provisioning = answer_text(set, "properties.provisioningState");
    const char *etag = answer_text(set, "etag"),
               *pool = answer_text(set, "tags.aks-managed-poolName");
    state->id = as_talk_print(talk, "%s", answer_text(set, "id"));
    if (!*state->id || strchr(state->id, '\'')) {
        (void)answer_misses(talk, "id");
        return;
    }
    if (strcasecmp(provisioning, "Deleting") == 0) {
        as_talk_fail(talk, AS_TALK_GONE, "the scale set is being deleted");
        return;
    }
    if (!azure_add_backing(talk, state->id, strlen(state->id)) ||
        !azure_take_version(talk, *etag ? etag : talk->answer->etag))
        return;
    view->in_progress = !azure_is_settled(provisioning);
    if (*pool)
        view->controller = as_talk_print(
            talk, "AKS, whose agent pool \"%s\" it is (give `cluster`, and the pool as `name`)",
            pool);
    ask_machines(talk,
                 strcasecmp(answer_text(set, "properties.orchestrationMode"), "Flexible") == 0);
}

/* ---- the size ---- */

/* The set has changed: perhaps to the wanted size, by a request whose answer was lost. */
static void hear_changed(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    int32_t size;
    const json_t *set = azure_take_json(talk);
    if (!set || !answer_take_size(talk, set, "sku.capacity", &size))
        return;
    if (size == group->to)
        azure_begin_operation(talk);
    else
        as_talk_fail(talk, AS_TALK_BUSY,
                     "the scale set has changed since it was looked at: its size is %d", size);
}

static void hear_set_size(struct as_talk *talk)
{
    if (azure_is_good(talk))
        azure_begin_operation(talk);
    else if (talk->http_status == 412)
        ask_set(talk, hear_changed);
}

static void patch_size(struct as_talk *talk, const char *version)
{
    const struct azure_state *state = azure_get_state(talk);
    json_t *sku = json_object(), *body = json_object();
    json_object_set_new(sku, "capacity", json_integer(as_group_get(talk)->to));
    json_object_set_new(body, "sku", sku);
    azure_ask_change(talk, "PATCH",
                     as_talk_print(talk, "%s?api-version=%s", state->resource, state->version),
                     version, body);
    as_talk_send(talk, "set_capacity", hear_set_size);
}

static void grow(struct as_talk *talk)
{
    const char *version = as_group_get(talk)->version;
    patch_size(talk, version ? version : "");
}

static void set_size(struct as_talk *talk)
{
    patch_size(talk, as_group_get(talk)->view.version);
}

/* ---- removing ---- */

static void remove_named(struct as_talk *talk)
{
    const struct azure_state *state = azure_get_state(talk);
    azure_ask_change(talk, "POST",
                     as_talk_print(talk, "%s/delete?api-version=%s%s", state->resource,
                                   state->version, state->is_forced ? "&forceDeletion=true" : ""),
                     "", azure_make_list(as_group_get(talk), "instanceIds"));
    as_talk_send(talk, "delete_instances", azure_hear_removed);
}

const struct azure_kind azure_scale_set = {
    .what = "scale set",
    .read = ask_set,
    .hear = hear_set,
    .grow = grow,
    .set_size = set_size,
    .remove = remove_named,
};
