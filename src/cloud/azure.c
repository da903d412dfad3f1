/*
 * Azure: virtual machine scale sets (azure_vmss.c), and agent pools of AKS (azure_aks.c) if the
 * group names a `cluster`. Both through Azure Resource Manager:
 * https://learn.microsoft.com/rest/api/azure/
 */
#include "azure.h"
#include "providers.h"

#include <ctype.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "credentials_azure.h"
#include "provider_answer.h"

/* The oldest versions with all that is needed (ETags; machines): sovereign clouds lag behind. */
#define COMPUTE_VERSION "2024-11-01"
#define AKS_VERSION     "2025-05-01"

struct azure_state *azure_get_state(struct as_talk *talk)
{
    return as_group_get(talk)->state;
}

/* ---- requests ---- */

void azure_ask_change(struct as_talk *talk, const char *method, const char *url,
                      const char *version, json_t *body)
{
    as_talk_ask(talk, method, "%s", url);
    as_talk_write_json(talk, body);
    if (*version)
        as_talk_header(talk, "If-Match: %s", version);
}

json_t *azure_make_list(const struct as_group_talk *group, const char *member)
{
    json_t *list = json_array(), *document = json_object();
    for (size_t i = 0; i < group->instance_count; i++)
        json_array_append_new(list, json_string(group->instances[i]));
    json_object_set_new(document, member, list);
    return document;
}

/* ---- reading ---- */

bool azure_add_backing(struct as_talk *talk, const char *id, size_t size)
{
    char *lower = as_arena_strdup(&talk->arena, as_talk_print(talk, "%.*s", (int)size, id));
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return as_group_add_backing(as_group_get(talk), "azure%s", lower);
}

static void read_then(struct as_talk *talk, as_talk_hear_fn *then)
{
    struct azure_state *state = azure_get_state(talk);
    as_group_get(talk)->view = (struct as_group_view){.min = -1, .max = -1};
    state->then = then;
    state->kind->read(talk, state->kind->hear);
}

static void read_group(struct as_talk *talk)
{
    read_then(talk, as_talk_end);
}

/* ---- growing, removing ---- */

static void grow(struct as_talk *talk)
{
    azure_get_state(talk)->kind->grow(talk);
}

static void remove_named(struct as_talk *talk)
{
    azure_get_state(talk)->kind->remove(talk);
}

static void remove_present(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    if (!as_group_keep_present(group))
        return;
    if (group->instance_count > 0)
        remove_named(talk);
    else
        as_talk_end(talk);
}

static void remove_chosen(struct as_talk *talk)
{
    read_then(talk, remove_present);
}

void azure_hear_removed(struct as_talk *talk)
{
    struct azure_state *state = azure_get_state(talk);
    if (azure_is_good(talk)) {
        azure_begin_operation(talk);
        return;
    }
    const char *code = azure_peek_code(talk);
    const bool may_be_gone = talk->http_status == 404 || strcmp(code, "InvalidParameter") == 0;
    if (state->is_forced && strcmp(code, "OperationNotAllowed") == 0) {
        state->is_forced = false;
        remove_named(talk);
    } else if (may_be_gone && !state->is_tried_again) {
        state->is_tried_again = true;
        read_then(talk, remove_present);
    }
}

/* ---- taking back ---- */

/* Removes failed instances by name; lowers the size if there are none. */
static void take_back_seen(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const struct azure_kind *kind = azure_get_state(talk)->kind;
    const int32_t coming = as_group_count_coming(&group->view);
    as_group_choose_missing(group, group->view.size - group->to, false);
    if (group->view.size <= group->to)
        as_talk_end(talk);
    else if (coming > group->to)
        as_talk_fail(talk, AS_TALK_BUSY,
                     "the %s has %d instances by now: Azure would choose which leave, for a size "
                     "of %d",
                     kind->what, coming, group->to);
    else if (group->instance_count > 0)
        remove_named(talk);
    else
        kind->set_size(talk);
}

static void take_back(struct as_talk *talk)
{
    read_then(talk, take_back_seen);
}

/* ---- which group ---- */

/* A target's key as a part of a URL's path. NULL after failing the talk. */
static const char *take_name(struct as_talk *talk, const char *key, const char *name)
{
    const bool is_dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (*name && !is_dots && !strpbrk(name, "/\\'\"?#%&<>"))
        return as_talk_escaped(talk, name);
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "`%s` is \"%s\", which Azure allows for no name", key,
                 name);
    return NULL;
}

/* False after failing the talk. */
static bool locate(struct as_group_talk *group, struct azure_state *state)
{
    struct as_talk *talk = &group->talk;
    const char *given_subscription = as_account_get(group->account, "subscription");
    const char *subscription =
        take_name(talk, "subscription", given_subscription ? given_subscription : "");
    const char *resource_group =
        subscription
            ? take_name(talk, "resource_group", as_target_ref_get(group->group, "resource_group"))
            : NULL;
    const char *name =
        resource_group ? take_name(talk, "name", as_target_ref_get(group->group, "name")) : NULL;
    if (!name)
        return false;
    state->scope = as_talk_print(talk, "%s/subscriptions/%s/resourceGroups/%s", state->base,
                                 subscription, resource_group);
    if (state->kind == &azure_scale_set) {
        state->resource = as_talk_print(
            talk, "%s/providers/Microsoft.Compute/virtualMachineScaleSets/%s", state->scope, name);
        return true;
    }
    const char *cluster = take_name(talk, "cluster", as_target_ref_get(group->group, "cluster"));
    if (cluster)
        state->resource = as_talk_print(
            talk, "%s/providers/Microsoft.ContainerService/managedClusters/%s/agentPools/%s",
            state->scope, cluster, name);
    return cluster != NULL;
}

static void begin(struct as_group_talk *group)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_talk *) = {
        [AS_GROUP_READ] = read_group,      [AS_GROUP_GROW] = grow,
        [AS_GROUP_REMOVE] = remove_chosen, [AS_GROUP_TAKE_BACK] = take_back,
        [AS_GROUP_POLL] = azure_poll,
    };
    struct as_talk *talk = &group->talk;
    struct azure_state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    const bool is_pool = *as_target_ref_get(group->group, "cluster");
    const char *version =
        as_account_get(group->account, is_pool ? "aks_api_version" : "compute_api_version");
    group->state = state;
    *state = (struct azure_state){
        .kind = is_pool ? &azure_agent_pool : &azure_scale_set,
        .base = azure_make_endpoint(talk, group->account),
        .version = as_talk_escaped(talk, version   ? version
                                         : is_pool ? AKS_VERSION
                                                   : COMPUTE_VERSION),
        .is_forced =
            !is_pool && strcmp(as_target_ref_get(group->group, "force_deletion"), "true") == 0,
    };
    if (state->base && locate(group, state))
        verbs[group->verb](talk);
}

const struct as_group_provider provider_azure = {
    .kind =
        {
            .type = "azure",
            .account_keys =
                (const struct as_provider_key[]){
                    {.key = "subscription", .is_required = true},
                    {.key = "cloud"},
                    {.key = "endpoint", .is_url = true, .is_private = true},
                    {.key = "authority", .is_url = true, .is_private = true},
                    {.key = "tenant_id"},
                    {.key = "client_id"},
                    {.key = "client_secret_file", .is_file = true},
                    {.key = "federated_token_file", .is_file = true},
                    {.key = "metadata_endpoint", .is_url = true, .is_metadata = true},
                    {.key = "compute_api_version"},
                    {.key = "aks_api_version"},
                    {0},
                },
            .group_keys =
                (const struct as_provider_key[]){
                    {.key = "name", .is_required = true},
                    {.key = "resource_group", .place = AS_PLACE_PROJECT, .is_required = true},
                    {.key = "cluster", .place = AS_PLACE_CLUSTER},
                    {.key = "force_deletion"},
                    {0},
                },
            .files = (const char *const[]){"$AZURE_FEDERATED_TOKEN_FILE", NULL},
        },
    .credentials = azure_credentials,
    .sign = as_sign_bearer,
    .begin = begin,
};
