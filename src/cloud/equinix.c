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

static struct state *equinix_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

static const char *get_field(struct as_cloud_op *op, const char *key)
{
    return as_target_ref_get(as_group_get(op)->group, key);
}

/* ---- errors ---- */

/* The messages of 422, ignoring case. */
static const struct answer_word refusals[] = {
    {"provisionable", AS_CLOUD_OP_CAPACITY},
    {"not available", AS_CLOUD_OP_CAPACITY},
    {"unavailable", AS_CLOUD_OP_CAPACITY},
    {"no hardware reservation", AS_CLOUD_OP_CAPACITY},
    {"maximum number", AS_CLOUD_OP_CAPACITY},
    {"quota", AS_CLOUD_OP_CAPACITY},
    {"capacity", AS_CLOUD_OP_CAPACITY},
    {"while it is provisioning", AS_CLOUD_OP_BUSY},
    {NULL, 0},
};

/* {"errors": ["..."]} or {"error": "..."} */
static bool equinix_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    const json_t *document = op->http_status ? answer_peek_json(op) : NULL;
    const char *first = json_string_value(answer_at(document, "errors", 0));
    const char *message = first ? first : answer_text(document, "error");
    enum as_cloud_op_fault fault = op->fault;
    if (op->http_status == 422)
        fault = answer_judge_message(refusals, message, fault);
    if (*message)
        as_cloud_op_fail(op, fault, "%s: HTTP %d: %s", op->request.operation, op->http_status,
                         message);
    return false;
}

/* ---- making devices ---- */

static void make_next(struct as_cloud_op *op);

static void ask_for_devices(struct as_cloud_op *op);

static void equinix_reread(struct as_cloud_op *op)
{
    struct state *state = equinix_get_state(op);
    as_group_get(op)->view = (struct as_group_view){.min = -1, .max = -1};
    op->is_ambiguous = false;
    as_cloud_op_begin_list(op);
    state->page = 0;
    state->made_count = 0;
    state->next = 0;
    memset(state->is_made, 0, (size_t)(as_group_get(op)->to - as_group_get(op)->from));
    ask_for_devices(op);
}

static void on_made(struct as_cloud_op *op)
{
    struct state *state = equinix_get_state(op);
    if (!equinix_is_good(op)) {
        const bool may_come = op->fault == AS_CLOUD_OP_RETRY || op->fault == AS_CLOUD_OP_TIMEOUT;
        op->is_ambiguous = op->is_ambiguous || state->made_count > 0;
        if (may_come && state->tries++ < TRIES)
            as_cloud_op_wait(op, WAIT_US, equinix_reread);
        return;
    }
    as_group_get(op)->has_begun = true;
    state->made_count++;
    state->next++;
    make_next(op);
}

static void add_text(json_t *body, const char *key, const char *value)
{
    if (!as_str_is_empty(value))
        json_object_set_new(body, key, json_string(value));
}

static void make_device(struct as_cloud_op *op)
{
    const struct state *state = equinix_get_state(op);
    const char *billing = get_field(op, "billing_cycle");
    json_t *body = json_object();
    add_text(body, "hostname", as_cloud_op_print(op, "%s-%d", state->hostname, state->next));
    add_text(body, "plan", get_field(op, "plan"));
    add_text(body, "metro", get_field(op, "metro"));
    add_text(body, "operating_system", get_field(op, "operating_system"));
    add_text(body, "billing_cycle", *billing ? billing : "hourly");
    add_text(body, "userdata", state->userdata);
    add_text(body, "hardware_reservation_id", get_field(op, "hardware_reservation_id"));
    json_object_set_new(body, "tags", json_pack("[s, s]", state->cluster_tag, state->pool_tag));
    as_cloud_op_ask(op, "POST", "%s", state->devices);
    as_cloud_op_write_json(op, body);
    as_cloud_op_send(op, "create_device", on_made);
}

static void make_next(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct state *state = equinix_get_state(op);
    while (state->next < group->to - group->from && state->is_made[state->next])
        state->next++;
    if (state->next < group->to - group->from)
        make_device(op);
    else
        as_cloud_op_end(op);
}

static void on_userdata(struct as_cloud_op *op)
{
    if (!op->content) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "cannot read %s: %s", op->path,
                         as_errno_get_text(op->error_number));
        return;
    }
    if (!as_str_is_utf8(op->content, op->content_size) ||
        memchr(op->content, '\0', op->content_size)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s (`userdata_file`) is not UTF-8 text, which is all that can be sent",
                         op->path);
        return;
    }
    equinix_get_state(op)->userdata = as_arena_strdup(&op->arena, op->content);
    make_next(op);
}

/* Devices of this same change exist already if an answer to it was lost. */
static void equinix_grow(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    const struct state *state = equinix_get_state(op);
    const char *userdata = as_account_get(group->account, "userdata_file");
    if (group->view.size - state->made_count != group->from)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the pool has changed since it was looked at: it has %d devices",
                         group->view.size);
    else if (userdata)
        as_cloud_op_read(op, userdata, on_userdata);
    else
        make_next(op);
}

/* ---- deleting devices ---- */

static void equinix_on_deleted(struct as_cloud_op *op);

static void equinix_delete_next(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct state *state = equinix_get_state(op);
    if (state->deleted == group->instance_count) {
        as_cloud_op_end(op);
        return;
    }
    as_cloud_op_ask(op, "DELETE", "%s/devices/%s", state->base,
                    as_cloud_op_escaped(op, group->instances[state->deleted]));
    as_cloud_op_send(op, "delete_device", equinix_on_deleted);
}

static void equinix_on_deleted(struct as_cloud_op *op)
{
    const bool is_gone = !equinix_is_good(op);
    if (is_gone && op->http_status != 404)
        return;
    if (is_gone)
        as_group_note_gone(as_group_get(op), equinix_get_state(op)->deleted);
    as_group_get(op)->has_begun = true;
    equinix_get_state(op)->deleted++;
    equinix_delete_next(op);
}

static void remove_devices(struct as_cloud_op *op)
{
    if (as_group_keep_present(as_group_get(op)))
        equinix_delete_next(op);
}

/* Devices that failed, then pending devices. */
static void equinix_take_back(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const int32_t excess = group->view.size - group->to;
    as_group_choose_missing(group, excess, true);
    if ((int32_t)group->instance_count < excess)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "only %d of %d devices have not come: the others have by now",
                         (int)group->instance_count, excess);
    else
        equinix_delete_next(op);
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
static void note_made(struct as_cloud_op *op, const char *hostname)
{
    const struct as_group_op *group = as_group_get(op);
    struct state *state = equinix_get_state(op);
    if (group->verb != AS_GROUP_GROW || !as_str_starts_with(hostname, state->hostname))
        return;
    for (int32_t i = 0; i < group->to - group->from; i++) {
        if (strcmp(hostname, as_cloud_op_print(op, "%s-%d", state->hostname, i)) == 0 &&
            !state->is_made[i]) {
            state->is_made[i] = true;
            state->made_count++;
        }
    }
}

/* False after failing the op. */
static bool add_device(struct as_cloud_op *op, const json_t *device)
{
    struct as_group_view *view = &as_group_get(op)->view;
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
        return answer_misses(op, "devices.id");
    if (!as_group_add_instance(as_group_get(op), &instance))
        return false;
    view->size += instance.state != AS_INSTANCE_LEAVING;
    view->in_progress = view->in_progress || instance.state == AS_INSTANCE_PENDING;
    if (instance.state != AS_INSTANCE_LEAVING)
        note_made(op, answer_text(device, "hostname"));
    return true;
}

static void on_devices(struct as_cloud_op *op)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = as_cloud_op_end,
        [AS_GROUP_GROW] = equinix_grow,
        [AS_GROUP_REMOVE] = remove_devices,
        [AS_GROUP_TAKE_BACK] = equinix_take_back,
    };
    const json_t *document = equinix_is_good(op) ? answer_json(op) : NULL;
    if (!document)
        return;
    if (!answer_find(document, "devices")) {
        (void)answer_misses(op, "devices");
        return;
    }
    for (size_t i = 0; i < answer_count(document, "devices"); i++) {
        const json_t *device = answer_at(document, "devices", i);
        if (is_member(equinix_get_state(op), device) && !add_device(op, device))
            return;
    }
    const bool is_last = !*answer_text(document, "meta.next.href");
    const char *first = answer_text(answer_at(document, "devices", 0), "id");
    if (!is_last && as_cloud_op_turn_page(op, first))
        ask_for_devices(op);
    else if (is_last)
        verbs[as_group_get(op)->verb](op);
}

/* Does not follow the next page's address: it could lead elsewhere, with the token. */
static void ask_for_devices(struct as_cloud_op *op)
{
    struct state *state = equinix_get_state(op);
    as_cloud_op_ask(op, "GET", "%s?page=%u&per_page=%d", state->devices, ++state->page, PAGE_SIZE);
    as_cloud_op_send(op, "list_devices", on_devices);
}

/* In lower case, as host names are. */
static const char *make_hostname(struct as_cloud_op *op, const char *pool, const char *change)
{
    char *name = as_arena_strdup(&op->arena, as_cloud_op_print(op, "%s-%s", pool, change));
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return name;
}

static void equinix_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    const char *cluster = get_field(op, "cluster"), *pool = get_field(op, "name");
    group->state = state;
    if (group->verb == AS_GROUP_POLL) { /* changes have no operations */
        group->is_done = true;
        as_cloud_op_end(op);
        return;
    }
    *state = (struct state){
        .base = as_account_get_endpoint(op, group->account, "endpoint",
                                        "https://api.equinix.com/metal/v1"),
        .cluster_tag = as_cloud_op_print(op, "k8s-cluster-%s", cluster),
        .pool_tag = as_cloud_op_print(op, "k8s-nodepool-%s", pool),
    };
    state->devices =
        as_cloud_op_print(op, "%s/projects/%s/devices", state->base,
                          as_cloud_op_escaped(op, as_account_get(group->account, "project")));
    group->view = (struct as_group_view){.min = -1, .max = -1};
    if (!as_group_add_backing(group, "equinix/%s/%s/%s", as_account_get(group->account, "project"),
                              cluster, pool))
        return;
    if (group->verb == AS_GROUP_GROW) {
        state->hostname = make_hostname(op, pool, group->idempotency);
        state->is_made = as_arena_alloc(&op->arena, (size_t)(group->to - group->from) + 1,
                                        sizeof(*state->is_made));
    }
    ask_for_devices(op);
}

/* ---- credentials ---- */

static void equinix_begin_environment(struct as_credentials_op *op)
{
    static const char *const names[] = {"METAL_AUTH_TOKEN", "PACKET_AUTH_TOKEN", NULL};
    as_credentials_take_variable(op, names);
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
