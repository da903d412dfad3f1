/*
 * The source `nodes`: see the header.
 */
#include <alertscaler/kube/nodes_see.h>

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_health.h>
#include <alertscaler/cluster/node_sums.h>
#include <alertscaler/cluster/node_template.h>

#define GROUPS_MAX 1000 /* with one more, the one seen first is forgotten */

struct group {
    TAILQ_ENTRY(group) entry;
    char *id;
    char *text;               /* of its last template; NULL: it is not known */
    struct as_labels *labels; /* of the same: what pods select by */
};

struct as_nodes_seer {
    TAILQ_HEAD(, group) groups;
    size_t group_count;
    struct group *next; /* whom the next search is probably for; NULL: nobody */
};

struct as_nodes_seer *as_nodes_seer_new(void)
{
    struct as_nodes_seer *seer = as_xcalloc(1, sizeof(*seer));
    TAILQ_INIT(&seer->groups);
    return seer;
}

static void seer_forget(struct as_nodes_seer *seer, struct group *group)
{
    TAILQ_REMOVE(&seer->groups, group, entry);
    seer->group_count--;
    seer->next = NULL;
    as_labels_free(group->labels);
    free(group->text);
    free(group->id);
    free(group);
}

struct as_nodes_seer *as_nodes_seer_free(struct as_nodes_seer *seer)
{
    struct group *group;
    while (seer && (group = TAILQ_FIRST(&seer->groups)))
        seer_forget(seer, group);
    free(seer);
    return NULL;
}

/* All groups are looked for in the same order, again and again. */
static struct group *seer_find_group(struct as_nodes_seer *seer, const char *id)
{
    struct group *group = seer->next;
    if (!group || strcmp(group->id, id) != 0) {
        TAILQ_FOREACH (group, &seer->groups, entry) {
            if (strcmp(group->id, id) == 0)
                break;
        }
    }
    seer->next = group ? TAILQ_NEXT(group, entry) : NULL;
    return group;
}

static struct group *seer_get_group(struct as_nodes_seer *seer, const char *id)
{
    struct group *group = seer_find_group(seer, id);
    if (group)
        return group;
    if (seer->group_count == GROUPS_MAX)
        seer_forget(seer, TAILQ_FIRST(&seer->groups));
    group = as_xcalloc(1, sizeof(*group));
    group->id = as_xstrdup(id);
    TAILQ_INSERT_TAIL(&seer->groups, group, entry);
    seer->group_count++;
    return group;
}

/* ---- templates ---- */

static void set_template(struct group *group, const struct as_labels *labels, const char *text)
{
    as_labels_free(group->labels);
    group->labels = as_labels_copy(labels);
    free(group->text);
    group->text = text ? as_xstrdup(text) : NULL;
}

static void restore(struct as_nodes_seer *seer, const struct as_group_template *stored)
{
    static const struct as_res_names names = {.count = AS_RES_NAMED};
    struct group *group = seer_find_group(seer, stored->group);
    struct as_arena arena = AS_ARENA_INIT;
    struct as_node_template template;
    if ((group && as_str_equal(group->text, stored->text)) ||
        (!group && seer->group_count == GROUPS_MAX))
        return;
    if (as_node_template_decode(stored->text, &names, &arena, &template, NULL) == 0)
        set_template(seer_get_group(seer, stored->group), template.shape.labels, stored->text);
    as_arena_deinit(&arena);
}

void as_nodes_seer_restore(struct as_nodes_seer *seer, const struct as_group_template *templates,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        restore(seer, &templates[i]);
}

bool as_nodes_seer_get_last(struct as_nodes_seer *seer, const char *id,
                            const struct as_res_names *names, struct as_arena *arena,
                            struct as_node_template *template_out)
{
    const struct group *group = seer_get_group(seer, id);
    return group->text &&
           as_node_template_decode(group->text, names, arena, template_out, NULL) == 0;
}

const char *as_nodes_seer_remember(struct as_nodes_seer *seer, const char *id,
                                   const struct as_node_template *template,
                                   const struct as_res_names *names)
{
    struct group *group = seer_get_group(seer, id);
    struct as_buf text = AS_BUF_INIT_OPEN(AS_NODE_TEMPLATE_TEXT_MAX);
    as_node_template_encode(template, names, &text);
    if (!group->text || as_buf_check(&text) != 0 || strcmp(group->text, text.data) != 0)
        set_template(group, template->shape.labels, as_buf_check(&text) == 0 ? text.data : NULL);
    as_buf_deinit(&text);
    return group->text ? group->text : "";
}

/* ---- the group's nodes ---- */

static int seer_compare_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct as_node_fact *)node)->name);
}

/* Nodes of which the cluster knows nothing (yet) are left out. */
static uint32_t *find_nodes(const struct as_nodes_see_request *request, struct as_arena *arena,
                            size_t *count_out)
{
    const struct as_cluster *cluster = request->cluster;
    uint32_t *nodes = as_arena_alloc(arena, request->name_count, sizeof(*nodes));
    *count_out = 0;
    for (size_t i = 0; i < request->name_count; i++) {
        const struct as_node_fact *node =
            bsearch(request->names[i], cluster->nodes, cluster->node_count, sizeof(*cluster->nodes),
                    seer_compare_name);
        if (node)
            nodes[(*count_out)++] = (uint32_t)(node - cluster->nodes);
    }
    return nodes;
}

/* ---- pending pods ---- */

struct pending {
    const struct as_node_shape *template; /* NULL: none is known */
    const struct as_node_shape **others;  /* of the other groups */
    size_t other_count;
    bool takes_any; /* pods that select nothing, too */
};

static bool is_for(const struct pending *pending, const struct as_pod_class *pod_class)
{
    if (!pending->template)
        return false;
    if (pending->takes_any && !as_pod_has_selector(pod_class))
        return as_node_admits(pending->template, pod_class) == AS_FITS;
    return as_pod_selects(pod_class, pending->template, pending->others, pending->other_count);
}

/* Of the group, or of the cluster (NULL) all. */
static struct as_pod_count *find_pending(const struct as_cluster *cluster,
                                         const struct pending *pending, struct as_arena *arena,
                                         size_t *count_out)
{
    size_t waiting = 0;
    for (size_t i = 0; i < cluster->pod_count; i++)
        waiting += cluster->pods[i].node == AS_NO_NODE;
    struct as_pod_count *counts = as_arena_alloc(arena, waiting, sizeof(*counts));
    *count_out = 0;
    for (size_t i = 0; i < cluster->pod_count; i++) {
        const struct as_pod_fact *pod = &cluster->pods[i];
        if (pod->node == AS_NO_NODE && !pod->is_leaving &&
            (!pending || is_for(pending, pod->pod_class)))
            counts[(*count_out)++] = (struct as_pod_count){pod->pod_class, 1};
    }
    return counts;
}

/* A pod of another group, as far as templates are known. */
static bool is_of_another(const struct pending *pending, const struct as_pod_class *pod_class)
{
    for (size_t i = 0; i < pending->other_count && as_pod_has_selector(pod_class); i++) {
        if (as_node_admits(pending->others[i], pod_class) != AS_MISFIT_SELECTOR)
            return true;
    }
    return false;
}

/* Whether a pod waits for a first node of the group. If nothing is known of such a node, the
 * scheduler must have said that the pod fits nowhere. */
static bool waits(const struct pending *pending, const struct as_res_names *names,
                  const struct as_pod_fact *pod)
{
    const struct as_pod_class *pod_class = pod->pod_class;
    if (pod->is_bound || pod->nominated != AS_NO_NODE || pod->is_leaving ||
        !as_pod_needs_nodes(pod_class))
        return false;
    if (!pending->template)
        return pod->is_unschedulable && !is_of_another(pending, pod_class);
    const struct as_node_room room = {.left = pending->template->allocatable};
    return is_for(pending, pod_class) && as_node_admits(pending->template, pod_class) == AS_FITS &&
           as_node_room_count(&room, names, pod_class, 1, NULL) == 1;
}

static int64_t count_waiting(const struct as_cluster *cluster, const struct pending *pending)
{
    int64_t count = 0;
    for (size_t i = 0; i < cluster->pod_count; i++)
        count += waits(pending, &cluster->resources, &cluster->pods[i]);
    return count;
}

/* ---- both together ---- */

/* The groups whose templates are known, without `group`. */
static void find_others(struct as_nodes_seer *seer, const char *group, struct pending *pending,
                        struct as_arena *arena)
{
    const struct group *other;
    struct as_node_shape *shapes = as_arena_alloc(arena, seer->group_count, sizeof(*shapes));
    pending->others = as_arena_alloc(arena, seer->group_count, sizeof(*pending->others));
    TAILQ_FOREACH (other, &seer->groups, entry) {
        struct as_node_shape *shape = &shapes[pending->other_count];
        shape->labels = other->labels;
        if (other->labels && strcmp(other->id, group) != 0)
            pending->others[pending->other_count++] = shape;
    }
}

static void see_group(struct as_nodes_seer *seer, const struct as_nodes_see_request *request,
                      struct as_node_sums_request *sums, struct as_arena *arena,
                      struct as_nodes_seen *seen_out, const char **text_out)
{
    const struct as_res_names *names = &request->cluster->resources;
    struct as_node_template configured, last, template;
    if (request->config->template_)
        as_node_template_init_configured(&configured, request->config->template_, names, arena);
    const struct as_node_template_request asked = {
        .cluster = request->cluster,
        .pods = sums->pods,
        .nodes = sums->nodes,
        .node_count = sums->node_count,
        .startup_taints = (const char *const *)request->config->startup_taints,
        .startup_taint_count = request->config->startup_taint_count,
        .last = as_nodes_seer_get_last(seer, request->group, names, arena, &last) ? &last : NULL,
        .configured = request->config->template_ ? &configured : NULL,
        .now = request->now,
    };
    as_node_template_init(&template, &asked, arena);
    const bool is_known = template.source != AS_NODE_TEMPLATE_NONE;
    struct pending pending = {
        .template = is_known ? &template.shape : NULL,
        .takes_any = request->config->pending == AS_NODES_PENDING_ANY,
    };
    find_others(seer, request->group, &pending, arena);
    sums->pending = find_pending(request->cluster, &pending, arena, &sums->pending_count);
    struct as_resources *allocatable = as_arena_alloc(arena, 1, sizeof(*allocatable));
    *allocatable = template.allocatable;
    sums->template_ = is_known ? allocatable : NULL;
    as_nodes_seen_init(seen_out, sums);
    if (seen_out->open == 0) {
        seen_out->waiting = count_waiting(request->cluster, &pending);
        seen_out->coming = request->coming;
    }
    if (template.source == AS_NODE_TEMPLATE_NODE)
        *text_out = as_nodes_seer_remember(seer, request->group, &template, names);
}

/* ---- all together ---- */

static bool seer_is_unwell(const struct as_nodes_see_request *request,
                           const struct as_node_sums_request *sums, struct as_error *error)
{
    const struct as_nodes_config *config = request->config;
    struct as_node_starting starting = {.ready_timeout_us = AS_NODE_READY_TIMEOUT_US};
    if (config)
        starting = (struct as_node_starting){
            .ready_timeout_us = config->ready_timeout_us,
            .startup_taints = (const char *const *)config->startup_taints,
            .startup_taint_count = config->startup_taint_count,
        };
    return as_cluster_is_unwell(request->cluster, &starting, request->now, error) ||
           (config && as_group_is_unwell(request->cluster, sums->nodes, sums->node_count,
                                         &config->health, request->now, error));
}

void as_nodes_see(struct as_nodes_seer *seer, const struct as_nodes_see_request *request,
                  struct as_nodes_seen *seen_out)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_error error = AS_ERROR_INIT;
    struct as_node_pods pods;
    struct as_node_sums_request sums = {.cluster = request->cluster, .pods = &pods};
    const char *template_ = NULL;
    as_node_pods_init(&pods, request->cluster, &arena);
    if (request->group) {
        sums.nodes = find_nodes(request, &arena, &sums.node_count);
        see_group(seer, request, &sums, &arena, seen_out, &template_);
    } else {
        sums.pending = find_pending(request->cluster, NULL, &arena, &sums.pending_count);
        as_nodes_seen_init(seen_out, &sums);
    }
    seen_out->template_ = as_arena_strdup(request->texts, template_);
    if (seer_is_unwell(request, &sums, &error))
        seen_out->error = as_arena_strdup(request->texts, error.text);
    as_arena_deinit(&arena);
}
