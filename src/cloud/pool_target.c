/*
 * Pools: the readings of their node groups, and observations of several node groups together. A
 * look is one observation. No size is set here.
 */
#include "pool_target.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/port/target.h>

/* Node groups as their providers last told them, for pools. */

#define AS_POOL_GROUPS_KNOWN_MAX 1000 /* with one more, the one read first is forgotten */

struct as_pool_groups;

struct as_pool_reading {               /* of one group; valid until the group is read again */
    struct as_observation observation; /* without pods and nodes */
    struct as_group_members members;   /* empty where they are not known */
    as_mono_time at;
    int32_t missing; /* nodes in the size, without an instance */
    as_mono_time missing_since;
};

/* Called exactly once, in a later turn of the loop; a failure is a reading too. */
typedef void as_pool_group_done_fn(void *context);

struct group {
    TAILQ_ENTRY(group) entry;
    char *key;
    struct as_arena texts;
    struct as_pool_reading reading;
};

struct call {
    LIST_ENTRY(call) entry;
    struct as_pool_groups *owner;
    struct as_target_ref *ref;
    as_pool_group_done_fn *done;
    void *context;
};

struct as_pool_groups {
    struct as_target_port *port;
    const struct as_access_env *env;
    TAILQ_HEAD(, group) groups; /* by the time of their readings */
    size_t count;
    LIST_HEAD(, call) calls;
};

/* Borrows both. To be freed after `port` is closed, which has the outstanding calls. */
static struct as_pool_groups *pool_groups_new(struct as_target_port *port,
                                              const struct as_access_env *env)
{
    struct as_pool_groups *groups = as_xcalloc(1, sizeof(*groups));
    groups->port = port;
    groups->env = env;
    TAILQ_INIT(&groups->groups);
    LIST_INIT(&groups->calls);
    return groups;
}

static void pool_groups_forget(struct as_pool_groups *groups, struct group *group)
{
    TAILQ_REMOVE(&groups->groups, group, entry);
    groups->count--;
    as_arena_deinit(&group->texts);
    free(group->key);
    free(group);
}

static void pool_groups_free_call(struct call *call)
{
    LIST_REMOVE(call, entry);
    as_target_ref_free(call->ref);
    free(call);
}

static struct as_pool_groups *pool_groups_free(struct as_pool_groups *groups)
{
    struct group *group;
    struct call *call;
    while ((group = TAILQ_FIRST(&groups->groups)))
        pool_groups_forget(groups, group);
    while ((call = LIST_FIRST(&groups->calls)))
        pool_groups_free_call(call);
    free(groups);
    return NULL;
}

static struct group *pool_groups_find(const struct as_pool_groups *groups, const char *key)
{
    struct group *group;
    TAILQ_FOREACH (group, &groups->groups, entry) {
        if (strcmp(group->key, key) == 0)
            return group;
    }
    return NULL;
}

/* NULL: it was never read. */
static const struct as_pool_reading *pool_groups_find_reading(const struct as_pool_groups *groups,
                                                              const struct as_target_ref *ref)
{
    const struct group *group = pool_groups_find(groups, ref->key);
    return group ? &group->reading : NULL;
}

static struct group *pool_groups_add(struct as_pool_groups *groups, const char *key)
{
    struct group *group = as_xcalloc(1, sizeof(*group));
    if (groups->count == AS_POOL_GROUPS_KNOWN_MAX)
        pool_groups_forget(groups, TAILQ_FIRST(&groups->groups));
    group->key = as_xstrdup(key);
    group->texts = AS_ARENA_INIT;
    TAILQ_INSERT_TAIL(&groups->groups, group, entry);
    groups->count++;
    return group;
}

/* The time begins anew when more are missing, and after a gap in the readings. */
static void see_missing(struct as_pool_reading *reading, const struct as_pool_reading *before)
{
    const struct as_observation *seen = &reading->observation;
    const struct as_group_members *members = seen->members;
    reading->missing_since = reading->at;
    if (before->missing > 0 && reading->at.us - before->at.us <= AS_UNNEEDED_GAP_US &&
        (!members || seen->outcome != AS_REASON_APPLIED)) {
        reading->missing = before->missing;
        reading->missing_since = before->missing_since;
        return;
    }
    if (!members || seen->outcome != AS_REASON_APPLIED)
        return;
    const int64_t missing = (int64_t)seen->replicas + seen->marked - (int64_t)members->node_count -
                            members->young - members->overdue;
    reading->missing = missing > 0 ? (int32_t)missing : 0;
    if (reading->missing <= before->missing && reading->at.us - before->at.us <= AS_UNNEEDED_GAP_US)
        reading->missing_since = before->missing_since;
}

static void pool_groups_keep(struct as_pool_groups *groups, const char *key,
                             const struct as_observation *observation)
{
    const struct as_clock *clock = groups->env->clock;
    struct group *group = pool_groups_find(groups, key);
    const struct as_pool_reading before = group ? group->reading : (struct as_pool_reading){0};
    if (group)
        pool_groups_forget(groups, group);
    group = pool_groups_add(groups, key);
    group->reading.at = clock->get_mono(clock);
    group->reading.observation = *observation;
    see_missing(&group->reading, &before);
    group->reading.observation.pods = NULL;
    group->reading.observation.nodes = NULL;
    group->reading.observation.members = NULL;
    const char **backing =
        as_arena_alloc(&group->texts, observation->backing_count, sizeof(*backing));
    for (size_t i = 0; i < observation->backing_count; i++)
        backing[i] = as_arena_strdup(&group->texts, observation->backing[i]);
    group->reading.observation.backing = backing;
    if (!observation->members)
        return;
    const struct as_group_members *members = observation->members;
    const char **names = as_arena_alloc(&group->texts, members->node_count, sizeof(*names));
    for (size_t i = 0; i < members->node_count; i++)
        names[i] = as_arena_strdup(&group->texts, members->nodes[i]);
    group->reading.members = *members;
    group->reading.members.nodes = names;
}

static void was_read(void *context, uint64_t ticket, const struct as_observation *result)
{
    struct call *call = context;
    const struct call told = *call;
    pool_groups_keep(call->owner, call->ref->key, result);
    pool_groups_free_call(call);
    told.done(told.context);
}

/* Reads one group. */
static void pool_groups_read(struct as_pool_groups *groups, const struct as_pool_member *member,
                             as_pool_group_done_fn *done, void *context)
{
    struct call *call = as_xcalloc(1, sizeof(*call));
    const struct as_observe_request request = {.with_members = true, .nodes = member->nodes};
    call->owner = groups;
    call->ref = as_target_ref_copy(member->ref);
    call->done = done;
    call->context = context;
    LIST_INSERT_HEAD(&groups->calls, call, entry);
    groups->port->observe(groups->port, 0, member->ref, &request, was_read, call);
}

/* Looks. */

#define SLICE_US      (3 * AS_US_PER_MS)  /* of work in one turn of the loop */
#define SLICE_FITS    UINT64_C(50000)     /* between two looks at the clock: about 0.5 ms */
#define HOLD_RETRY_US (20 * AS_US_PER_MS) /* while another look holds the facts */

struct pool {
    struct as_target_port port;
    const struct as_clusters *clusters;
    const struct as_access_env *env;
    struct as_pool_groups *groups;
    LIST_HEAD(, look) looks;
};

struct look {
    LIST_ENTRY(look) entry;
    struct pool *owner;
    uint64_t ticket;
    as_target_observed_fn *observed;
    void *context;
    bool is_lone; /* a node group that is a pool of itself */
    struct as_arena arena;
    struct as_pool_request request;
    bool with_nodes;                 /* of a lone group: what the source `nodes` reads */
    struct as_nodes_seen seen;       /* of this source */
    struct as_cluster_link *cluster; /* NULL: `snapshot.error` says why */
    struct as_cluster_ask *ask;
    struct as_timer *timer;
    size_t reading; /* groups that are being read */
    bool has_read, is_holding;
    struct as_snapshot_request snapshot_request;
    struct as_snapshot_work *snapshot_work;
    struct as_snapshot snapshot;
    struct as_pool_work *plan_work; /* NULL: the snapshot is not done */
    struct as_pool_plan plan;
    bool has_plan;
};

static void free_look(struct look *look)
{
    struct as_loop *loop = look->owner->env->loop;
    if (look->ask)
        as_cluster_watch_cancel(look->ask);
    if (look->is_holding)
        as_cluster_watch_release(look->cluster->watch);
    loop->cancel_timer(loop, look->timer);
    as_pool_request_deinit(&look->request);
    as_arena_deinit(&look->arena);
    LIST_REMOVE(look, entry);
    free(look);
}

static as_mono_time pool_get_mono(const struct look *look)
{
    const struct as_clock *clock = look->owner->env->clock;
    return clock->get_mono(clock);
}

static const struct as_pool_reading *find_reading(const struct look *look, size_t member)
{
    return pool_groups_find_reading(look->owner->groups, look->request.members[member].ref);
}

/* ---- the answer ---- */

static int32_t limit_size(int64_t size)
{
    return size < AS_SIZE_MAX ? (int32_t)size : AS_SIZE_MAX;
}

/* Of the groups of the pool that could be read. */
static void add_sizes(const struct look *look, struct as_observation *sum)
{
    int64_t size = 0, ready = 0, marked = 0;
    for (size_t i = 0; i < look->request.member_count; i++) {
        const struct as_pool_reading *reading = find_reading(look, i);
        if (!look->request.members[i].is_member || !reading ||
            reading->observation.outcome != AS_REASON_APPLIED)
            continue;
        size += reading->observation.replicas;
        ready += reading->observation.status_replicas;
        marked += reading->observation.marked;
    }
    sum->replicas = limit_size(size);
    sum->status_replicas = limit_size(ready);
    sum->marked = limit_size(marked);
}

/* What is seen of nodes is remembered, and told. A template is stored with all its labels: pods
 * that come later may select by any of them. */
static void tell_templates(struct look *look, struct as_observation *observation)
{
    struct as_group_template *templates =
        as_arena_alloc(&look->arena, look->snapshot.group_count, sizeof(*templates));
    size_t count = 0;
    for (size_t i = 0; i < look->snapshot.group_count; i++) {
        const struct as_node_template *template = as_snapshot_get_template(look->snapshot_work, i);
        const char *group = look->request.members[i].ref->key;
        if (template->source != AS_NODE_TEMPLATE_NODE)
            continue;
        const char *text = as_nodes_seer_remember(look->cluster->seer, group, template,
                                                  &look->snapshot_request.cluster->resources);
        templates[count++] = (struct as_group_template){group, as_arena_strdup(&look->arena, text)};
    }
    observation->templates = templates;
    observation->template_count = count;
}

static void pool_finish(struct look *look)
{
    struct as_observation observation = {.outcome = AS_REASON_APPLIED, .min = -1, .max = -1};
    if (look->is_lone) /* it is always read */
        observation = find_reading(look, 0)->observation;
    else
        add_sizes(look, &observation);
    observation.snapshot = &look->snapshot;
    if (look->with_nodes && !look->seen.error)
        look->seen.error = look->snapshot.error;
    observation.nodes = look->with_nodes ? &look->seen : NULL;
    if (look->has_plan) {
        if (!look->is_lone) /* also what is known of groups that cannot be read */
            observation.replicas = look->plan.size;
        observation.plan = &look->plan;
        tell_templates(look, &observation);
    }
    look->observed(look->context, look->ticket, &observation);
    free_look(look);
}

/* ---- snapshot and plan ---- */

static void work(void *context);

static bool work_once(struct look *look)
{
    if (!look->plan_work) {
        if (!as_snapshot_step(look->snapshot_work, SLICE_FITS, &look->snapshot))
            return false;
        const struct as_clock *clock = look->owner->env->clock;
        const struct as_pool_plan_request request = {
            .version = AS_DECIDE_VERSION,
            .snapshot = &look->snapshot,
            .config = look->request.config,
            .terms = {.now = clock->get_wall(clock),
                      .min = look->request.min,
                      .max = look->request.max,
                      .with_fit = look->request.with_fit,
                      .with_take = look->request.with_take},
        };
        look->plan_work = as_pool_begin(&request, &look->arena);
        return false;
    }
    look->has_plan = as_pool_step(look->plan_work, SLICE_FITS, &look->plan);
    return look->has_plan;
}

static void work(void *context)
{
    struct look *look = context;
    struct as_loop *loop = look->owner->env->loop;
    const as_mono_time until = {pool_get_mono(look).us + SLICE_US};
    look->timer = NULL;
    do {
        if (work_once(look)) {
            pool_finish(look);
            return;
        }
    } while (pool_get_mono(look).us < until.us);
    look->timer = loop->start_timer(loop, 0, work, look);
}

/* Nodes that another controller has requested: after ready_timeout they are not waited for. */
static int32_t get_unregistered(const struct look *look, const struct as_pool_reading *reading,
                                const struct as_nodes_config *nodes)
{
    return pool_get_mono(look).us >= as_time_add(reading->missing_since.us, nodes->ready_timeout_us)
               ? reading->missing
               : 0;
}

/* What is remembered of groups may change before the snapshot is done. */
static void pool_target_pool_fill_member(struct look *look, size_t index,
                                         const struct as_cluster *facts,
                                         struct as_snapshot_member *member_out)
{
    const struct as_pool_member *member = &look->request.members[index];
    const struct as_pool_reading *reading = find_reading(look, index);
    const struct as_observation *seen = &reading->observation;
    const struct as_nodes_config *nodes = member->nodes;
    struct as_node_template *last = as_arena_alloc(&look->arena, 1, sizeof(*last));
    const bool has_last = as_nodes_seer_get_last(look->cluster->seer, member->ref->key,
                                                 &facts->resources, &look->arena, last);
    const bool is_read = seen->outcome == AS_REASON_APPLIED;
    const char **names = as_arena_alloc(&look->arena, reading->members.node_count, sizeof(*names));
    for (size_t i = 0; i < reading->members.node_count; i++)
        names[i] = as_arena_strdup(&look->arena, reading->members.nodes[i]);
    *member_out = (struct as_snapshot_member){
        .name = member->name,
        .id = member->ref->id,
        .is_member = member->is_member,
        .size = is_read ? seen->replicas : -1,
        .min = seen->min > member->min ? seen->min : member->min,
        .max = seen->max >= 0 && seen->max < member->max ? seen->max : member->max,
        .message = is_read ? NULL : as_arena_strdup(&look->arena, seen->message),
        .closed = member->closed,
        .is_kept = member->is_kept,
        .chooses_itself = is_read && !seen->names_instances,
        .in_progress = seen->in_progress,
        .drain_failed = seen->drain_failed,
        .has_pending_scaleup = member->has_pending_scaleup,
        .refused = member->refused,
        .in_doubt = member->in_doubt,
        .unregistered = member->has_pending_scaleup ? 0 : get_unregistered(look, reading, nodes),
        .backed_off = member->unregistered,
        .surplus = member->surplus,
        .surplus_since = member->surplus_since,
        .down_in_doubt = member->down_in_doubt,
        .open_at = member->open_at,
        .nodes = names,
        .node_count = reading->members.node_count,
        .young = reading->members.young,
        .overdue = reading->members.overdue,
        .removable = reading->members.removable,
        .last_size = member->last_size,
        .ready_timeout_us = nodes->ready_timeout_us,
        .startup_taints = (const char *const *)nodes->startup_taints,
        .startup_taint_count = nodes->startup_taint_count,
        .last = has_last ? last : NULL,
        .has_priority = nodes->has_priority,
        .has_price = nodes->has_price,
        .priority = nodes->priority,
        .price = nodes->price,
        .unneeded = nodes->unneeded,
    };
}

static void facts_known(void *context, const struct as_cluster *facts,
                        const struct as_error *error);

static void ask_facts(void *context)
{
    struct look *look = context;
    look->timer = NULL;
    look->ask = as_cluster_watch_ask(look->cluster->watch, facts_known, look);
}

static int pool_compare_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct as_node_fact *)node)->name);
}

static bool is_group_unwell(const struct look *look, size_t index, struct as_error *error)
{
    const struct as_snapshot_request *snapshot = &look->snapshot_request;
    const struct as_snapshot_member *member = &snapshot->members[index];
    const struct as_cluster *facts = snapshot->cluster;
    struct as_arena arena = AS_ARENA_INIT;
    uint32_t *nodes = as_arena_alloc(&arena, member->node_count, sizeof(*nodes));
    size_t count = 0;
    for (size_t i = 0; i < member->node_count; i++) {
        const struct as_node_fact *node = bsearch(member->nodes[i], facts->nodes, facts->node_count,
                                                  sizeof(*facts->nodes), pool_compare_name);
        if (node)
            nodes[count++] = (uint32_t)(node - facts->nodes);
    }
    const bool pool_is_unwell = as_group_is_unwell(
        facts, nodes, count, &look->request.members[index].nodes->health, snapshot->now, error);
    as_arena_deinit(&arena);
    if (pool_is_unwell)
        as_error_wrap(error, "%s", member->name);
    return pool_is_unwell;
}

/* A partition is no reason to buy or to delete. Starting is what any of the groups calls so. */
static bool pool_is_unwell(struct look *look, struct as_error *error)
{
    const struct as_snapshot_request *snapshot = &look->snapshot_request;
    struct as_node_starting starting = {0};
    size_t count = 0;
    for (size_t i = 0; i < snapshot->member_count; i++)
        count += snapshot->members[i].startup_taint_count;
    const char **taints = as_arena_alloc(&look->arena, count, sizeof(*taints));
    for (size_t i = 0; i < snapshot->member_count; i++) {
        const struct as_snapshot_member *member = &snapshot->members[i];
        if (member->ready_timeout_us > starting.ready_timeout_us)
            starting.ready_timeout_us = member->ready_timeout_us;
        for (size_t j = 0; j < member->startup_taint_count; j++)
            taints[starting.startup_taint_count++] = member->startup_taints[j];
    }
    starting.startup_taints = taints;
    if (as_cluster_is_unwell(snapshot->cluster, &starting, snapshot->now, error))
        return true;
    for (size_t i = 0; i < snapshot->member_count; i++) {
        if (snapshot->members[i].is_member && is_group_unwell(look, i, error))
            return true;
    }
    return false;
}

/* Facts are held, so texts of the cluster last. The template comes with those of the snapshot. */
static void see_nodes(struct look *look)
{
    const struct as_snapshot_request *snapshot = &look->snapshot_request;
    const struct as_pool_member *group = &look->request.members[0];
    const struct as_nodes_see_request request = {.cluster = snapshot->cluster,
                                                 .group = group->ref->key,
                                                 .names = snapshot->members[0].nodes,
                                                 .name_count = snapshot->members[0].node_count,
                                                 .coming = find_reading(look, 0)->members.coming,
                                                 .config = group->nodes,
                                                 .now = snapshot->now,
                                                 .texts = &look->arena};
    as_nodes_see(look->cluster->seer, &request, &look->seen);
    look->seen.template_ = NULL;
}

static void begin_snapshot(struct look *look, const struct as_cluster *facts)
{
    const struct as_pool_request *request = &look->request;
    const struct as_clock *clock = look->owner->env->clock;
    struct as_snapshot_member *members =
        as_arena_alloc(&look->arena, request->member_count, sizeof(*members));
    for (size_t i = 0; i < request->member_count; i++) {
        const struct as_node_template_config *config = request->members[i].nodes->template_;
        pool_target_pool_fill_member(look, i, facts, &members[i]);
        if (config) {
            struct as_node_template *configured =
                as_arena_alloc(&look->arena, 1, sizeof(*configured));
            as_node_template_init_configured(configured, config, &facts->resources, &look->arena);
            members[i].configured = configured;
        }
    }
    look->snapshot_request = (struct as_snapshot_request){
        .cluster = facts,
        .members = members,
        .member_count = request->member_count,
        .config = request->config,
        .unneeded = request->unneeded,
        .unneeded_count = request->unneeded_count,
        .asked = request->asked,
        .asked_count = request->asked_count,
        .seed = request->seed,
        .now = clock->get_wall(clock),
    };
    struct as_error error = AS_ERROR_INIT;
    if (look->with_nodes)
        see_nodes(look);
    if (pool_is_unwell(look, &error)) {
        look->snapshot.error = as_arena_strdup(&look->arena, error.text);
        pool_finish(look);
        return;
    }
    look->snapshot_work = as_snapshot_begin(&look->snapshot_request, &look->arena);
    work(look);
}

/* ---- reading ---- */

static void group_read(void *context)
{
    struct look *look = context;
    if (--look->reading > 0)
        return;
    if (look->cluster)
        ask_facts(look);
    else
        pool_finish(look);
}

static void pool_read_groups(struct look *look)
{
    look->has_read = true;
    look->reading = look->request.member_count;
    for (size_t i = 0; i < look->request.member_count; i++)
        pool_groups_read(look->owner->groups, &look->request.members[i], group_read, look);
}

static bool are_pods_waiting(const struct as_cluster *facts)
{
    for (size_t i = 0; i < facts->pod_count; i++) {
        if (facts->pods[i].is_unschedulable && !facts->pods[i].is_leaving)
            return true;
    }
    return false;
}

/* `facts`: NULL if they are not known. */
static bool must_read(const struct look *look, const struct as_cluster *facts)
{
    const int64_t now_us = pool_get_mono(look).us;
    if (look->is_lone || (look->request.with_take && look->request.unneeded_count > 0) ||
        (look->request.with_fit && facts && are_pods_waiting(facts)))
        return true;
    for (size_t i = 0; i < look->request.member_count; i++) {
        const struct as_pool_reading *reading = find_reading(look, i);
        if (!reading || now_us - reading->at.us >= AS_POOL_READ_US)
            return true;
    }
    return false;
}

/* Facts come after the readings. If they contradict the facts at the start of the look, the groups
 * are read now, and facts are asked for again. */
static void facts_known(void *context, const struct as_cluster *facts, const struct as_error *error)
{
    struct look *look = context;
    struct as_loop *loop = look->owner->env->loop;
    look->ask = NULL;
    if (!facts) {
        look->snapshot.error = as_arena_strdup(&look->arena, error->text);
        look->cluster = NULL;
    }
    if (!look->has_read && (!facts || must_read(look, facts)))
        pool_read_groups(look);
    else if (!facts)
        pool_finish(look);
    else if ((look->is_holding = as_cluster_watch_hold(look->cluster->watch)))
        begin_snapshot(look, facts);
    else
        look->timer = loop->start_timer(loop, HOLD_RETRY_US, ask_facts, look);
}

/* ---- port ---- */

static void pool_observe(struct as_target_port *self, uint64_t ticket,
                         const struct as_target_ref *ref, const struct as_observe_request *request,
                         as_target_observed_fn *done, void *context)
{
    struct pool *pool = (struct pool *)self;
    struct look *look = as_xcalloc(1, sizeof(*look));
    const char *cluster = request->pool->members[0].nodes->cluster;
    look->owner = pool;
    look->ticket = ticket;
    look->observed = done;
    look->context = context;
    look->is_lone = ref->kind->has_nodes;
    look->with_nodes = look->is_lone && request->with_nodes;
    look->arena = AS_ARENA_INIT;
    as_pool_request_copy(request->pool, &look->arena, &look->request);
    LIST_INSERT_HEAD(&pool->looks, look, entry);
    look->cluster = cluster ? as_clusters_find(pool->clusters, cluster) : NULL;
    if (look->cluster && look->cluster->access) {
        as_nodes_seer_restore(look->cluster->seer, request->templates, request->template_count);
        if (must_read(look, as_cluster_watch_find(look->cluster->watch)))
            pool_read_groups(look);
        else
            ask_facts(look);
        return;
    }
    look->snapshot.error = as_arena_strdup(
        &look->arena, look->cluster ? look->cluster->missing.text : "there is no such cluster");
    look->cluster = NULL;
    pool_read_groups(look);
}

/* Sizes are set by the groups. */
static void pool_scale(struct as_target_port *self, uint64_t ticket,
                       const struct as_target_ref *ref, const struct as_scale_request *request,
                       as_target_scaled_fn *done, void *context)
{
    abort();
}

static bool pool_is_idle(const struct as_target_port *self)
{
    return LIST_EMPTY(&((const struct pool *)self)->looks);
}

static void pool_close_port(struct as_target_port *self)
{
    struct pool *pool = (struct pool *)self;
    struct look *look;
    while ((look = LIST_FIRST(&pool->looks)))
        free_look(look);
    pool_groups_free(pool->groups);
    free(pool);
}

struct as_target_port *as_pool_new(struct as_target_port *groups,
                                   const struct as_clusters *clusters,
                                   const struct as_access_env *env)
{
    struct pool *pool = as_xcalloc(1, sizeof(*pool));
    pool->port =
        (struct as_target_port){pool_observe, pool_scale, pool_is_idle, pool_close_port, NULL};
    pool->clusters = clusters;
    pool->env = env;
    pool->groups = pool_groups_new(groups, env);
    LIST_INIT(&pool->looks);
    return &pool->port;
}
