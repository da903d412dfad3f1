/*
 * DigitalOcean: a node pool of a Kubernetes cluster (DOKS), and the token of an account:
 * https://docs.digitalocean.com/reference/api/digitalocean/#tag/Kubernetes
 *
 * The API has neither conditional changes nor operations to poll. So every talk first reads the
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

static struct state *digitalocean_get_state(struct as_talk *talk)
{
    return as_group_get(talk)->state;
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
static bool digitalocean_is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    const json_t *error = talk->http_status ? answer_peek_json(talk) : NULL;
    const char *message = answer_text(error, "message");
    const bool is_capacity = talk->http_status == 422 && digitalocean_is_shortage(message);
    as_talk_take_request_id(talk, answer_text(error, "request_id"));
    if (*message)
        as_talk_fail(talk, is_capacity ? AS_TALK_CAPACITY : talk->fault, "%s: HTTP %d %s: %s",
                     talk->request.operation, talk->http_status, answer_text(error, "id"), message);
    return false;
}

/* ---- the size ---- */

static void hear_end(struct as_talk *talk)
{
    if (digitalocean_is_good(talk))
        as_talk_end(talk);
}

/* Name and count are required; labels and similar would replace those of the pool. */
static void set_count(struct as_talk *talk)
{
    const struct state *state = digitalocean_get_state(talk);
    as_talk_ask(talk, "PUT", "%s/%s", state->pools, state->id);
    as_talk_write_json(
        talk, json_pack("{s:s, s:i}", "name", state->name, "count", (int)as_group_get(talk)->to));
    as_talk_send(talk, "update_node_pool", hear_end);
}

static void digitalocean_grow(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    if (group->view.size == group->to) /* perhaps by a request whose answer was lost */
        as_talk_end(talk);
    else if (group->view.size != group->from)
        as_talk_fail(talk, AS_TALK_BUSY,
                     "the node pool has changed since it was looked at: its count is %d",
                     group->view.size);
    else
        set_count(talk);
}

/* Lowers the count only if no existing node would be lost; existing nodes are removed by name. */
static void digitalocean_take_back(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    const int32_t coming = as_group_count_coming(&group->view);
    if (coming > group->to)
        as_talk_fail(talk, AS_TALK_BUSY, "the node pool has %d nodes by now, for a count of %d",
                     coming, group->to);
    else if (group->view.size <= group->to)
        as_talk_end(talk);
    else
        set_count(talk);
}

/* ---- nodes ---- */

static void digitalocean_hear_deleted(struct as_talk *talk);

static void digitalocean_delete_next(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct state *state = digitalocean_get_state(talk);
    if (state->deleted < group->instance_count) {
        as_talk_ask(talk, "DELETE", "%s/%s/nodes/%s?skip_drain=1", state->pools, state->id,
                    as_talk_escaped(talk, group->instances[state->deleted]));
        as_talk_send(talk, "delete_node", digitalocean_hear_deleted);
    } else {
        as_talk_end(talk);
    }
}

static void digitalocean_hear_deleted(struct as_talk *talk)
{
    const bool is_gone = !digitalocean_is_good(talk);
    if (is_gone && talk->http_status != 404)
        return;
    if (is_gone)
        as_group_note_gone(as_group_get(talk), digitalocean_get_state(talk)->deleted);
    as_group_get(talk)->has_begun = true;
    digitalocean_get_state(talk)->deleted++;
    digitalocean_delete_next(talk);
}

static void digitalocean_remove_nodes(struct as_talk *talk)
{
    if (as_group_keep_present(as_group_get(talk)))
        digitalocean_delete_next(talk);
}

/* ---- the pool ---- */

/* The other: provisioning. */
static const struct answer_word states[] = {
    {"running", AS_INSTANCE_RUNNING},
    {"draining", AS_INSTANCE_LEAVING},
    {"deleting", AS_INSTANCE_LEAVING},
    {NULL, 0},
};

static bool add_nodes(struct as_talk *talk, const json_t *pool)
{
    for (size_t i = 0; i < answer_count(pool, "nodes"); i++) {
        const json_t *node = answer_at(pool, "nodes", i);
        const char *droplet = answer_text(node, "droplet_id");
        const struct as_instance instance = {
            .id = answer_text(node, "id"),
            .provider_id = *droplet ? as_talk_print(talk, "digitalocean://%s", droplet) : "",
            .state = answer_judge(states, answer_text(node, "status.state"), AS_INSTANCE_PENDING),
            .created = answer_time(node, "created_at"),
        };
        if (!*instance.id)
            return answer_misses(talk, "node_pools.nodes.id");
        if (!as_group_add_instance(as_group_get(talk), &instance))
            return false;
    }
    return true;
}

/* False after failing the talk. */
static bool take_pool(struct as_talk *talk, const json_t *pool)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const char *id = answer_text(pool, "id");
    if (!*id)
        return answer_misses(talk, "node_pools.id");
    if (!as_group_add_backing(as_group_get(talk), "digitalocean/%s", id))
        return false;
    digitalocean_get_state(talk)->id = as_talk_escaped(talk, id);
    digitalocean_get_state(talk)->name = as_talk_print(talk, "%s", answer_text(pool, "name"));
    if (answer_is_true(pool, "auto_scale"))
        view->controller = "the node pool's own autoscaler (auto_scale)";
    if (!answer_take_size(talk, pool, "count", &view->size) || !add_nodes(talk, pool))
        return false;
    view->in_progress = as_group_count_coming(view) != view->size;
    return true;
}

static void ask_for_pools(struct as_talk *talk);

static void hear_pools(struct as_talk *talk)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_talk *) = {
        [AS_GROUP_READ] = as_talk_end,
        [AS_GROUP_GROW] = digitalocean_grow,
        [AS_GROUP_REMOVE] = digitalocean_remove_nodes,
        [AS_GROUP_TAKE_BACK] = digitalocean_take_back,
    };
    const char *wanted = as_target_ref_get(as_group_get(talk)->group, "name");
    const json_t *document = digitalocean_is_good(talk) ? answer_json(talk) : NULL;
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "node_pools"); i++) {
        const json_t *pool = answer_at(document, "node_pools", i);
        if (strcmp(answer_text(pool, "name"), wanted) != 0 &&
            strcmp(answer_text(pool, "id"), wanted) != 0)
            continue;
        if (take_pool(talk, pool))
            verbs[as_group_get(talk)->verb](talk);
        return;
    }
    if (!answer_find(document, "node_pools"))
        (void)answer_misses(talk, "node_pools");
    else if (*answer_text(document, "links.pages.next") &&
             as_talk_turn_page(talk, answer_text(answer_at(document, "node_pools", 0), "id")))
        ask_for_pools(talk);
    else if (!*answer_text(document, "links.pages.next"))
        as_talk_fail(talk, AS_TALK_GONE, "the cluster has no node pool %s", wanted);
}

/* Does not follow the next page's address: it could lead elsewhere, with the token. */
static void ask_for_pools(struct as_talk *talk)
{
    struct state *state = digitalocean_get_state(talk);
    as_talk_ask(talk, "GET", "%s?page=%u&per_page=200", state->pools, ++state->page);
    as_talk_send(talk, "list_node_pools", hear_pools);
}

static void digitalocean_begin(struct as_group_talk *group)
{
    struct as_talk *talk = &group->talk;
    struct state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    group->state = state;
    if (group->verb == AS_GROUP_POLL) { /* changes have no operations */
        group->is_done = true;
        as_talk_end(talk);
        return;
    }
    state->pools = as_talk_print(
        talk, "%s/v2/kubernetes/clusters/%s/node_pools",
        as_account_get_endpoint(talk, group->account, "endpoint", "https://api.digitalocean.com"),
        as_talk_escaped(talk, as_target_ref_get(group->group, "cluster")));
    ask_for_pools(talk);
}

/* ---- credentials ---- */

static void digitalocean_begin_environment(struct as_credentials_talk *talk)
{
    static const char *const names[] = {"DIGITALOCEAN_ACCESS_TOKEN", NULL};
    as_credentials_take_variable(talk, names);
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
