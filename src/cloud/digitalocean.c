/*
 * DigitalOcean: a node pool of a Kubernetes cluster (DOKS), and the token of an account:
 * https://docs.digitalocean.com/reference/api/digitalocean/#tag/Kubernetes
 *
 * The API has neither conditional changes nor operations to poll. So every op first reads the
 * pool, in the list of the cluster's pools, and leaves it alone if its size has changed since the
 * decision. Nodes are removed by name, one call each, and the pool's count falls with them.
 */
#include <string.h>

#include "provider_answer.h"
#include "providers.h"

struct state {
    const char *pools;     /* URL of the cluster's pools */
    const char *id, *name; /* of the pool; the id as in a URL */
    unsigned page;
    size_t deleted; /* nodes of a removal that are done */
};

static struct state *digitalocean_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* ---- errors ---- */

/* The words for: no machines available, or not for this account. */
static bool digitalocean_is_shortage(const char *message)
{
    static const char *const words[] = {"droplet limit", "exceed your", "not available",
                                        "unavailable", NULL};
    return answer_has_word(message, words);
}

/* {"id": "unprocessable_entity", "message": "...", "request_id": "..."} */
static bool digitalocean_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    const json_t *error = op->http_status ? answer_peek_json(op) : NULL;
    const char *message = answer_text(error, "message");
    const bool is_capacity = op->http_status == 422 && digitalocean_is_shortage(message);
    as_cloud_op_take_request_id(op, answer_text(error, "request_id"));
    if (*message)
        as_cloud_op_fail(op, is_capacity ? AS_CLOUD_OP_CAPACITY : op->fault, "%s: HTTP %d %s: %s",
                         op->request.operation, op->http_status, answer_text(error, "id"), message);
    return false;
}

/* ---- the size ---- */

static void digitalocean_on_end(struct as_cloud_op *op)
{
    if (digitalocean_is_good(op))
        as_cloud_op_end(op);
}

/* Name and count are required; labels and similar would replace those of the pool. */
static void set_count(struct as_cloud_op *op)
{
    const struct state *state = digitalocean_get_state(op);
    as_cloud_op_ask(op, "PUT", "%s/%s", state->pools, state->id);
    as_cloud_op_write_json(
        op, json_pack("{s:s, s:i}", "name", state->name, "count", (int)as_group_get(op)->to));
    as_cloud_op_send(op, "update_node_pool", digitalocean_on_end);
}

static void digitalocean_grow(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    if (group->view.size == group->to) /* perhaps by a request whose answer was lost */
        as_cloud_op_end(op);
    else if (group->view.size != group->from)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the node pool has changed since it was looked at: its count is %d",
                         group->view.size);
    else
        set_count(op);
}

/* Lowers the count only if no existing node would be lost; existing nodes are removed by name. */
static void digitalocean_take_back(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    const int32_t coming = as_group_count_coming(&group->view);
    if (coming > group->to)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the node pool has %d nodes by now, for a count of %d", coming, group->to);
    else if (group->view.size <= group->to)
        as_cloud_op_end(op);
    else
        set_count(op);
}

/* ---- nodes ---- */

static void digitalocean_on_deleted(struct as_cloud_op *op);

static void digitalocean_delete_next(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct state *state = digitalocean_get_state(op);
    if (state->deleted < group->instance_count) {
        as_cloud_op_ask(op, "DELETE", "%s/%s/nodes/%s?skip_drain=1", state->pools, state->id,
                        as_cloud_op_escaped(op, group->instances[state->deleted]));
        as_cloud_op_send(op, "delete_node", digitalocean_on_deleted);
    } else {
        as_cloud_op_end(op);
    }
}

static void digitalocean_on_deleted(struct as_cloud_op *op)
{
    const bool is_gone = !digitalocean_is_good(op);
    if (is_gone && op->http_status != 404)
        return;
    if (is_gone)
        as_group_note_gone(as_group_get(op), digitalocean_get_state(op)->deleted);
    as_group_get(op)->has_begun = true;
    digitalocean_get_state(op)->deleted++;
    digitalocean_delete_next(op);
}

static void digitalocean_remove_nodes(struct as_cloud_op *op)
{
    if (as_group_keep_present(as_group_get(op)))
        digitalocean_delete_next(op);
}

/* ---- the pool ---- */

/* The other: provisioning. */
static const struct answer_word states[] = {
    {"running", AS_INSTANCE_RUNNING},
    {"draining", AS_INSTANCE_LEAVING},
    {"deleting", AS_INSTANCE_LEAVING},
    {NULL, 0},
};

static bool add_nodes(struct as_cloud_op *op, const json_t *pool)
{
    for (size_t i = 0; i < answer_count(pool, "nodes"); i++) {
        const json_t *node = answer_at(pool, "nodes", i);
        const char *droplet = answer_text(node, "droplet_id");
        const struct as_instance instance = {
            .id = answer_text(node, "id"),
            .provider_id = *droplet ? as_cloud_op_print(op, "digitalocean://%s", droplet) : "",
            .state = answer_judge(states, answer_text(node, "status.state"), AS_INSTANCE_PENDING),
            .created = answer_time(node, "created_at"),
        };
        if (!*instance.id)
            return answer_misses(op, "node_pools.nodes.id");
        if (!as_group_add_instance(as_group_get(op), &instance))
            return false;
    }
    return true;
}

/* False after failing the op. */
static bool take_pool(struct as_cloud_op *op, const json_t *pool)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const char *id = answer_text(pool, "id");
    if (!*id)
        return answer_misses(op, "node_pools.id");
    if (!as_group_add_backing(as_group_get(op), "digitalocean/%s", id))
        return false;
    digitalocean_get_state(op)->id = as_cloud_op_escaped(op, id);
    digitalocean_get_state(op)->name = as_cloud_op_print(op, "%s", answer_text(pool, "name"));
    if (answer_is_true(pool, "auto_scale"))
        view->controller = "the node pool's own autoscaler (auto_scale)";
    if (!answer_take_size(op, pool, "count", &view->size) || !add_nodes(op, pool))
        return false;
    view->in_progress = as_group_count_coming(view) != view->size;
    return true;
}

static void ask_for_pools(struct as_cloud_op *op);

static void on_pools(struct as_cloud_op *op)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = as_cloud_op_end,
        [AS_GROUP_GROW] = digitalocean_grow,
        [AS_GROUP_REMOVE] = digitalocean_remove_nodes,
        [AS_GROUP_TAKE_BACK] = digitalocean_take_back,
    };
    const char *wanted = as_target_ref_get(as_group_get(op)->group, "name");
    const json_t *document = digitalocean_is_good(op) ? answer_json(op) : NULL;
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "node_pools"); i++) {
        const json_t *pool = answer_at(document, "node_pools", i);
        if (strcmp(answer_text(pool, "name"), wanted) != 0 &&
            strcmp(answer_text(pool, "id"), wanted) != 0)
            continue;
        if (take_pool(op, pool))
            verbs[as_group_get(op)->verb](op);
        return;
    }
    if (!answer_find(document, "node_pools"))
        (void)answer_misses(op, "node_pools");
    else if (*answer_text(document, "links.pages.next") &&
             as_cloud_op_turn_page(op, answer_text(answer_at(document, "node_pools", 0), "id")))
        ask_for_pools(op);
    else if (!*answer_text(document, "links.pages.next"))
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "the cluster has no node pool %s", wanted);
}

/* Does not follow the next page's address: it could lead elsewhere, with the token. */
static void ask_for_pools(struct as_cloud_op *op)
{
    struct state *state = digitalocean_get_state(op);
    as_cloud_op_ask(op, "GET", "%s?page=%u&per_page=200", state->pools, ++state->page);
    as_cloud_op_send(op, "list_node_pools", on_pools);
}

static void digitalocean_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    group->state = state;
    if (group->verb == AS_GROUP_POLL) { /* changes have no operations */
        group->is_done = true;
        as_cloud_op_end(op);
        return;
    }
    state->pools = as_cloud_op_print(
        op, "%s/v2/kubernetes/clusters/%s/node_pools",
        as_account_get_endpoint(op, group->account, "endpoint", "https://api.digitalocean.com"),
        as_cloud_op_escaped(op, as_target_ref_get(group->group, "cluster")));
    ask_for_pools(op);
}

/* ---- credentials ---- */

static void digitalocean_begin_environment(struct as_credentials_op *op)
{
    static const char *const names[] = {"DIGITALOCEAN_ACCESS_TOKEN", NULL};
    as_credentials_take_variable(op, names);
}

const struct as_group_provider provider_digitalocean = {
    .type = "digitalocean",
    .credentials =
        (const struct as_credentials_source[]){{"token file", as_credentials_begin_token_file},
                                               {"environment", digitalocean_begin_environment},
                                               {0}},
    .sign = as_sign_bearer,
    .begin = digitalocean_begin,
};
