/*
 * Equinix Metal (once Packet): the devices of a project with the tags of a cluster and a pool, as
 * Cluster Autoscaler sets them: https://deploy.equinix.com/developers/api/metal/
 *
 * The service ended on 2026-06-30. The API has no groups: the size of a pool is its number of
 * devices. It grows by new devices and shrinks by deleting named ones. Repeating a request to
 * create a device would create another; so each change derives the names of its devices from its
 * own id, and looks for these names before it creates any.
 */
#include <ctype.h>
#include <string.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>

#include "provider_answer.h"
#include "providers.h"

#define PAGE_SIZE 100
#define TRIES     3 /* more tries, if it is unknown whether a device was created */
#define WAIT_US   (2 * AS_US_PER_S)

struct state {
    const char *base, *devices;         /* of the API; of the project's devices */
    const char *cluster_tag, *pool_tag; /* the devices of the pool have both */
    const char *hostname;               /* of new devices, without the number at the end */
    const char *userdata;               /* of new devices; NULL */
    unsigned page;
    bool *is_made; /* of an increase's devices, by number */
    int32_t made_count, next;
    unsigned tries;
    size_t deleted; /* instances of a removal that are done */
};

static struct state *equinix_get_state(struct as_talk *talk)
{
    return as_group_get(talk)->state;
}

static const char *get_field(struct as_talk *talk, const char *key)
{
    return as_target_ref_get(as_group_get(talk)->group, key);
}

/* ---- errors ---- */

/* The messages of 422, ignoring case. */
static const struct answer_word refusals[] = {
    {"provisionable", AS_TALK_CAPACITY},
    {"not available", AS_TALK_CAPACITY},
    {"unavailable", AS_TALK_CAPACITY},
    {"no hardware reservation", AS_TALK_CAPACITY},
    {"maximum number", AS_TALK_CAPACITY},
    {"quota", AS_TALK_CAPACITY},
    {"capacity", AS_TALK_CAPACITY},
    {"while it is provisioning", AS_TALK_BUSY},
    {NULL, 0},
};

/* {"errors": ["..."]} or {"error": "..."} */
static bool equinix_is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    const json_t *document = talk->http_status ? answer_peek_json(talk) : NULL;
    const char *first = json_string_value(answer_at(document, "errors", 0));
    const char *message = first ? first : answer_text(document, "error");
    enum as_talk_fault fault = talk->fault;
    if (talk->http_status == 422)
        fault = answer_judge_message(refusals, message, fault);
    if (*message)
        as_talk_fail(talk, fault, "%s: HTTP %d: %s", talk->request.operation, talk->http_status,
                     message);
    return false;
}

/* ---- making devices ---- */

static void make_next(struct as_talk *talk);

static void ask_for_devices(struct as_talk *talk);

static void equinix_look_again(struct as_talk *talk)
{
    struct state *state = equinix_get_state(talk);
    as_group_get(talk)->view = (struct as_group_view){.min = -1, .max = -1};
    talk->is_ambiguous = false;
    as_talk_begin_list(talk);
    state->page = 0;
    state->made_count = 0;
    state->next = 0;
    memset(state->is_made, 0, (size_t)(as_group_get(talk)->to - as_group_get(talk)->from));
    ask_for_devices(talk);
}

static void hear_made(struct as_talk *talk)
{
    struct state *state = equinix_get_state(talk);
    if (!equinix_is_good(talk)) {
        const bool may_come = talk->fault == AS_TALK_RETRY || talk->fault == AS_TALK_TIMEOUT;
        talk->is_ambiguous = talk->is_ambiguous || state->made_count > 0;
        if (may_come && state->tries++ < TRIES)
            as_talk_wait(talk, WAIT_US, equinix_look_again);
        return;
    }
    as_group_get(talk)->has_begun = true;
    state->made_count++;
    state->next++;
    make_next(talk);
}

static void add_text(json_t *body, const char *key, const char *value)
{
    if (!as_str_is_empty(value))
        json_object_set_new(body, key, json_string(value));
}

static void make_device(struct as_talk *talk)
{
    const struct state *state = equinix_get_state(talk);
    const char *billing = get_field(talk, "billing_cycle");
    json_t *body = json_object();
    add_text(body, "hostname", as_talk_print(talk, "%s-%d", state->hostname, state->next));
    add_text(body, "plan", get_field(talk, "plan"));
    add_text(body, "metro", get_field(talk, "metro"));
    add_text(body, "operating_system", get_field(talk, "operating_system"));
    add_text(body, "billing_cycle", *billing ? billing : "hourly");
    add_text(body, "userdata", state->userdata);
    add_text(body, "hardware_reservation_id", get_field(talk, "hardware_reservation_id"));
    json_object_set_new(body, "tags", json_pack("[s, s]", state->cluster_tag, state->pool_tag));
    as_talk_ask(talk, "POST", "%s", state->devices);
    as_talk_write_json(talk, body);
    as_talk_send(talk, "create_device", hear_made);
}

static void make_next(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct state *state = equinix_get_state(talk);
    while (state->next < group->to - group->from && state->is_made[state->next])
        state->next++;
    if (state->next < group->to - group->from)
        make_device(talk);
    else
        as_talk_end(talk);
}

static void hear_userdata(struct as_talk *talk)
{
    if (!talk->content) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "cannot read %s: %s", talk->path,
                     as_errno_get_text(talk->error_number));
        return;
    }
    if (!as_str_is_utf8(talk->content, talk->content_size) ||
        memchr(talk->content, '\0', talk->content_size)) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s (`userdata_file`) is not UTF-8 text, which is all that can be sent",
                     talk->path);
        return;
    }
    equinix_get_state(talk)->userdata = as_arena_strdup(&talk->arena, talk->content);
    make_next(talk);
}

/* Devices of this same change exist already if an answer to it was lost. */
static void equinix_grow(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    const struct state *state = equinix_get_state(talk);
    const char *userdata = as_account_get(group->account, "userdata_file");
    if (group->view.size - state->made_count != group->from)
        as_talk_fail(talk, AS_TALK_BUSY,
                     "the pool has changed since it was looked at: it has %d devices",
                     group->view.size);
    else if (userdata)
        as_talk_read(talk, userdata, hear_userdata);
    else
        make_next(talk);
}

/* ---- deleting devices ---- */

static void equinix_hear_deleted(struct as_talk *talk);

static void equinix_delete_next(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct state *state = equinix_get_state(talk);
    if (state->deleted == group->instance_count) {
        as_talk_end(talk);
        return;
    }
    as_talk_ask(talk, "DELETE", "%s/devices/%s", state->base,
                as_talk_escaped(talk, group->instances[state->deleted]));
    as_talk_send(talk, "delete_device", equinix_hear_deleted);
}

static void equinix_hear_deleted(struct as_talk *talk)
{
    const bool is_gone = !equinix_is_good(talk);
    if (is_gone && talk->http_status != 404)
        return;
    if (is_gone)
        as_group_note_gone(as_group_get(talk), equinix_get_state(talk)->deleted);
    as_group_get(talk)->has_begun = true;
    equinix_get_state(talk)->deleted++;
    equinix_delete_next(talk);
}

static void remove_devices(struct as_talk *talk)
{
    if (as_group_keep_present(as_group_get(talk)))
        equinix_delete_next(talk);
}

/* Devices that failed, then pending devices. */
static void equinix_take_back(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const int32_t excess = group->view.size - group->to;
    as_group_choose_missing(group, excess, true);
    if ((int32_t)group->instance_count < excess)
        as_talk_fail(talk, AS_TALK_BUSY,
                     "only %d of %d devices have not come: the others have by now",
                     (int)group->instance_count, excess);
    else
        equinix_delete_next(talk);
}

/* ---- the pool ---- */

/* The others: queued, provisioning, reinstalling, powering_on, ... */
static const struct answer_word states[] = {
    {"active", AS_INSTANCE_RUNNING},
    {"inactive", AS_INSTANCE_RUNNING},
    {"powering_off", AS_INSTANCE_RUNNING},
    {"failed", AS_INSTANCE_FAILED},
    {"deprovisioning", AS_INSTANCE_LEAVING},
    {"deleted", AS_INSTANCE_LEAVING},
    {NULL, 0},
};

static bool is_member(const struct state *state, const json_t *device)
{
    bool has_cluster = false, has_pool = false;
    for (size_t i = 0; i < answer_count(device, "tags"); i++) {
        const char *tag = json_string_value(answer_at(device, "tags", i));
        has_cluster = has_cluster || as_str_equal(tag, state->cluster_tag);
        has_pool = has_pool || as_str_equal(tag, state->pool_tag);
    }
    return has_cluster && has_pool;
}

/* Notes a device that this increase has created, so that it is not created again. */
static void note_made(struct as_talk *talk, const char *hostname)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct state *state = equinix_get_state(talk);
    if (group->verb != AS_GROUP_GROW || !as_str_starts_with(hostname, state->hostname))
        return;
    for (int32_t i = 0; i < group->to - group->from; i++) {
        if (strcmp(hostname, as_talk_print(talk, "%s-%d", state->hostname, i)) == 0 &&
            !state->is_made[i]) {
            state->is_made[i] = true;
            state->made_count++;
        }
    }
}

/* False after failing the talk. */
static bool add_device(struct as_talk *talk, const json_t *device)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const char *metro = answer_text(device, "metro.code");
    const char *state = answer_text(device, "state");
    const struct as_instance instance = {
        .id = answer_text(device, "id"),
        .zone = *metro ? metro : answer_text(device, "facility.code"),
        .state = answer_judge(states, state, AS_INSTANCE_PENDING),
        .is_unhealthy = strcmp(state, "inactive") == 0 || strcmp(state, "powering_off") == 0,
        .is_protected = answer_is_true(device, "locked"),
        .created = answer_time(device, "created_at"),
    };
    if (!*instance.id)
        return answer_misses(talk, "devices.id");
    if (!as_group_add_instance(as_group_get(talk), &instance))
        return false;
    view->size += instance.state != AS_INSTANCE_LEAVING;
    view->in_progress = view->in_progress || instance.state == AS_INSTANCE_PENDING;
    if (instance.state != AS_INSTANCE_LEAVING)
        note_made(talk, answer_text(device, "hostname"));
    return true;
}

static void hear_devices(struct as_talk *talk)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_talk *) = {
        [AS_GROUP_READ] = as_talk_end,
        [AS_GROUP_GROW] = equinix_grow,
        [AS_GROUP_REMOVE] = remove_devices,
        [AS_GROUP_TAKE_BACK] = equinix_take_back,
    };
    const json_t *document = equinix_is_good(talk) ? answer_json(talk) : NULL;
    if (!document)
        return;
    if (!answer_find(document, "devices")) {
        (void)answer_misses(talk, "devices");
        return;
    }
    for (size_t i = 0; i < answer_count(document, "devices"); i++) {
        const json_t *device = answer_at(document, "devices", i);
        if (is_member(equinix_get_state(talk), device) && !add_device(talk, device))
            return;
    }
    const bool is_last = !*answer_text(document, "meta.next.href");
    const char *first = answer_text(answer_at(document, "devices", 0), "id");
    if (!is_last && as_talk_turn_page(talk, first))
        ask_for_devices(talk);
    else if (is_last)
        verbs[as_group_get(talk)->verb](talk);
}

/* Does not follow the next page's address: it could lead elsewhere, with the token. */
static void ask_for_devices(struct as_talk *talk)
{
    struct state *state = equinix_get_state(talk);
    as_talk_ask(talk, "GET", "%s?page=%u&per_page=%d", state->devices, ++state->page, PAGE_SIZE);
    as_talk_send(talk, "list_devices", hear_devices);
}

/* In lower case, as host names are. */
static const char *make_hostname(struct as_talk *talk, const char *pool, const char *change)
{
    char *name = as_arena_strdup(&talk->arena, as_talk_print(talk, "%s-%s", pool, change));
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return name;
}

static void equinix_begin(struct as_group_talk *group)
{
    struct as_talk *talk = &group->talk;
    struct state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    const char *cluster = get_field(talk, "cluster"), *pool = get_field(talk, "name");
    group->state = state;
    if (group->verb == AS_GROUP_POLL) { /* changes have no operations */
        group->is_done = true;
        as_talk_end(talk);
        return;
    }
    *state = (struct state){
        .base = as_account_get_endpoint(talk, group->account, "endpoint",
                                        "https://api.equinix.com/metal/v1"),
        .cluster_tag = as_talk_print(talk, "k8s-cluster-%s", cluster),
        .pool_tag = as_talk_print(talk, "k8s-nodepool-%s", pool),
    };
    state->devices =
        as_talk_print(talk, "%s/projects/%s/devices", state->base,
                      as_talk_escaped(talk, as_account_get(group->account, "project")));
    group->view = (struct as_group_view){.min = -1, .max = -1};
    if (!as_group_add_backing(group, "equinix/%s/%s/%s", as_account_get(group->account, "project"),
                              cluster, pool))
        return;
    if (group->verb == AS_GROUP_GROW) {
        state->hostname = make_hostname(talk, pool, group->idempotency);
        state->is_made = as_arena_alloc(&talk->arena, (size_t)(group->to - group->from) + 1,
                                        sizeof(*state->is_made));
    }
    ask_for_devices(talk);
}

/* ---- credentials ---- */

static void equinix_begin_environment(struct as_credentials_talk *talk)
{
    static const char *const names[] = {"METAL_AUTH_TOKEN", "PACKET_AUTH_TOKEN", NULL};
    as_credentials_take_variable(talk, names);
}

const struct as_group_provider provider_equinix = {
    .type = "equinix",
    .credentials =
        (const struct as_credentials_source[]){{"token file", as_credentials_begin_token_file},
                                               {"environment", equinix_begin_environment},
                                               {0}},
    .sign = as_sign_token,
    .is_relative = true,
    .begin = equinix_begin,
};
