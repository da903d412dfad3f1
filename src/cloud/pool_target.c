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

static void was_read(void *context, uint64_t call_id, const struct as_observation *result)
{
    struct call *call = context;
    const struct call finished = *call;
    pool_groups_keep(call->owner, call->ref->key, result);
    pool_groups_free_call(call);
    finished.done(finished.context);
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
    LIST_HEAD(, poll) polls;
};

struct poll {
    LIST_ENTRY(poll) entry;
    struct pool *owner;
    uint64_t call_id;
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

static void free_poll(struct poll *poll)
{
    struct as_loop *loop = poll->owner->env->loop;
    if (poll->ask)
        as_cluster_watch_cancel(poll->ask);
    if (poll->is_holding)
        as_cluster_watch_release(poll->cluster->watch);
    loop->cancel_timer(loop, poll->timer);
    as_pool_request_deinit(&poll->request);
    as_arena_deinit(&poll->arena);
    LIST_REMOVE(poll, entry);
    free(poll);
}

static as_mono_time pool_get_mono(const struct poll *poll)
{
    const struct as_clock *clock = poll->owner->env->clock;
    return clock->get_mono(clock);
}

static const struct as_pool_reading *find_reading(const struct poll *poll, size_t member)
{
    return pool_groups_find_reading(poll->owner->groups, poll->request.members[member].ref);
}

/* ---- the answer ---- */

static int32_t limit_size(int64_t size)
{
    return size < AS_SIZE_MAX ? (int32_t)size : AS_SIZE_MAX;
}

/* Of the groups of the pool that could be read. */
static void add_sizes(const struct poll *poll, struct as_observation *sum)
{
    int64_t size = 0, ready = 0, marked = 0;
    for (size_t i = 0; i < poll->request.member_count; i++) {
        const struct as_pool_reading *reading = find_reading(poll, i);
        if (!poll->request.members[i].is_member || !reading ||
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
static void report_templates(struct poll *poll, struct as_observation *observation)
{
    struct as_group_template *templates =
        as_arena_alloc(&poll->arena, poll->snapshot.group_count, sizeof(*templates));
    size_t count = 0;
    for (size_t i = 0; i < poll->snapshot.group_count; i++) {
        const struct as_node_template *template = as_snapshot_get_template(poll->snapshot_work, i);
        const char *group = poll->request.members[i].ref->key;
        if (template->source != AS_NODE_TEMPLATE_NODE)
            continue;
        const char *text = as_nodes_seer_remember(poll->cluster->seer, group, template,
                                                  &poll->snapshot_request.cluster->resources);
        templates[count++] = (struct as_group_template){group, as_arena_strdup(&poll->arena, text)};
    }
    observation->templates = templates;
    observation->template_count = count;
}

static void pool_finish(struct poll *poll)
{
    struct as_observation observation = {.outcome = AS_REASON_APPLIED, .min = -1, .max = -1};
    if (poll->is_lone) /* it is always read */
        observation = find_reading(poll, 0)->observation;
    else
        add_sizes(poll, &observation);
    observation.snapshot = &poll->snapshot;
    if (poll->with_nodes && !poll->seen.error)
        poll->seen.error = poll->snapshot.error;
    observation.nodes = poll->with_nodes ? &poll->seen : NULL;
    if (poll->has_plan) {
        if (!poll->is_lone) /* also what is known of groups that cannot be read */
            observation.replicas = poll->plan.size;
        observation.plan = &poll->plan;
        report_templates(poll, &observation);
    }
    poll->observed(poll->context, poll->call_id, &observation);
    free_poll(poll);
}

/* ---- snapshot and plan ---- */

static void work(void *context);

static bool work_once(struct poll *poll)
{
    if (!poll->plan_work) {
        if (!as_snapshot_step(poll->snapshot_work, SLICE_FITS, &poll->snapshot))
            return false;
        const struct as_clock *clock = poll->owner->env->clock;
        const struct as_pool_plan_request request = {
            .version = AS_DECIDE_VERSION,
            .snapshot = &poll->snapshot,
            .config = poll->request.config,
            .terms = {.now = clock->get_wall(clock),
                      .min = poll->request.min,
                      .max = poll->request.max,
                      .with_fit = poll->request.with_fit,
                      .with_take = poll->request.with_take},
        };
        poll->plan_work = as_pool_begin(&request, &poll->arena);
        return false;
    }
    poll->has_plan = as_pool_step(poll->plan_work, SLICE_FITS, &poll->plan);
    return poll->has_plan;
}

static void work(void *context)
{
    struct poll *poll = context;
    struct as_loop *loop = poll->owner->env->loop;
    const as_mono_time until = {pool_get_mono(poll).us + SLICE_US};
    poll->timer = NULL;
    do {
        if (work_once(poll)) {
            pool_finish(poll);
            return;
        }
    } while (pool_get_mono(poll).us < until.us);
    poll->timer = loop->start_timer(loop, 0, work, poll);
}

/* Nodes that another controller has requested: after ready_timeout they are not waited for. */
static int32_t get_unregistered(const struct poll *poll, const struct as_pool_reading *reading,
                                const struct as_nodes_config *nodes)
{
    return pool_get_mono(poll).us >= as_time_add(reading->missing_since.us, nodes->ready_timeout_us)
               ? reading->missing
               : 0;
}

/* What is remembered of groups may change before the snapshot is done. */
static void pool_target_pool_fill_member(struct poll *poll, size_t index,
                                         const struct as_cluster *facts,
                                         struct as_snapshot_member *member_out)
{
    const struct as_pool_member *member = &poll->request.members[index];
    const struct as_pool_reading *reading = find_reading(poll, index);
    const struct as_observation *seen = &reading->observation;
    const struct as_nodes_config *nodes = member->nodes;
    struct as_node_template *last = as_arena_alloc(&poll->arena, 1, sizeof(*last));
    const bool has_last = as_nodes_seer_get_last(poll->cluster->seer, member->ref->key,
                                                 &facts->resources, &poll->arena, last);
    const bool is_read = seen->outcome == AS_REASON_APPLIED;
    const char **names = as_arena_alloc(&poll->arena, reading->members.node_count, sizeof(*names));
    for (size_t i = 0; i < reading->members.node_count; i++)
        names[i] = as_arena_strdup(&poll->arena, reading->members.nodes[i]);
    *member_out = (struct as_snapshot_member){
        .name = member->name,
        .id = member->ref->id,
        .is_member = member->is_member,
        .size = is_read ? seen->replicas : -1,
        .min = seen->min > member->min ? seen->min : member->min,
        .max = seen->max >= 0 && seen->max < member->max ? seen->max : member->max,
        .message = is_read ? NULL : as_arena_strdup(&poll->arena, seen->message),
        .closed = member->closed,
        .is_kept = member->is_kept,
        .chooses_itself = is_read && !seen->names_instances,
        .in_progress = seen->in_progress,
        .drain_failed = seen->drain_failed,
        .has_pending_scaleup = member->has_pending_scaleup,
        .refused = member->refused,
        .in_doubt = member->in_doubt,
        .unregistered = member->has_pending_scaleup ? 0 : get_unregistered(poll, reading, nodes),
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
    struct poll *poll = context;
    poll->timer = NULL;
    poll->ask = as_cluster_watch_ask(poll->cluster->watch, facts_known, poll);
}

static int pool_compare_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct as_node_fact *)node)->name);
}

static bool is_group_unwell(const struct poll *poll, size_t index, struct as_error *error)
{
    const struct as_snapshot_request *snapshot = &poll->snapshot_request;
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
        facts, nodes, count, &poll->request.members[index].nodes->health, snapshot->now, error);
    as_arena_deinit(&arena);
    if (pool_is_unwell)
        as_error_wrap(error, "%s", member->name);
    return pool_is_unwell;
}

/* A partition is no reason to buy or to delete. Starting is what any of the groups calls so. */
static bool pool_is_unwell(struct poll *poll, struct as_error *error)
{
    const struct as_snapshot_request *snapshot = &poll->snapshot_request;
    struct as_node_starting starting = {0};
    size_t count = 0;
    for (size_t i = 0; i < snapshot->member_count; i++)
        count += snapshot->members[i].startup_taint_count;
    const char **taints = as_arena_alloc(&poll->arena, count, sizeof(*taints));
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
        if (snapshot->members[i].is_member && is_group_unwell(poll, i, error))
            return true;
    }
    return false;
}

/* Facts are held, so texts of the cluster last. The template comes with those of the snapshot. */
static void see_nodes(struct poll *poll)
{
    const struct as_snapshot_request *snapshot = &poll->snapshot_request;
    const struct as_pool_member *group = &poll->request.members[0];
    const struct as_nodes_see_request request = {.cluster = snapshot->cluster,
                                                 .group = group->ref->key,
                                                 .names = snapshot->members[0].nodes,
                                                 .name_count = snapshot->members[0].node_count,
                                                 .coming = find_reading(poll, 0)->members.coming,
                                                 .config = group->nodes,
                                                 .now = snapshot->now,
                                                 .texts = &poll->arena};
    as_nodes_see(poll->cluster->seer, &request, &poll->seen);
    poll->seen.template_ = NULL;
}

static void begin_snapshot(struct poll *poll, const struct as_cluster *facts)
{
    const struct as_pool_request *request = &poll->request;
    const struct as_clock *clock = poll->owner->env->clock;
    struct as_snapshot_member *members =
        as_arena_alloc(&poll->arena, request->member_count, sizeof(*members));
    for (size_t i = 0; i < request->member_count; i++) {
        const struct as_node_template_config *config = request->members[i].nodes->template_;
        pool_target_pool_fill_member(poll, i, facts, &members[i]);
        if (config) {
            struct as_node_template *configured =
                as_arena_alloc(&poll->arena, 1, sizeof(*configured));
            as_node_template_init_configured(configured, config, &facts->resources, &poll->arena);
            members[i].configured = configured;
        }
    }
    poll->snapshot_request = (struct as_snapshot_request){
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
    if (poll->with_nodes)
        see_nodes(poll);
    if (pool_is_unwell(poll, &error)) {
        poll->snapshot.error = as_arena_strdup(&poll->arena, error.text);
        pool_finish(poll);
        return;
    }
    poll->snapshot_work = as_snapshot_begin(&poll->snapshot_request, &poll->arena);
    work(poll);
}

/* ---- reading ---- */

static void group_read(void *context)
{
    struct poll *poll = context;
    if (--poll->reading > 0)
        return;
    if (poll->cluster)
        ask_facts(poll);
    else
        pool_finish(poll);
}

static void pool_read_groups(struct poll *poll)
{
    poll->has_read = true;
    poll->reading = poll->request.member_count;
    for (size_t i = 0; i < poll->request.member_count; i++)
        pool_groups_read(poll->owner->groups, &poll->request.members[i], group_read, poll);
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
static bool must_read(const struct poll *poll, const struct as_cluster *facts)
{
    const int64_t now_us = pool_get_mono(poll).us;
    if (poll->is_lone || (poll->request.with_take && poll->request.unneeded_count > 0) ||
        (poll->request.with_fit && facts && are_pods_waiting(facts)))
        return true;
    for (size_t i = 0; i < poll->request.member_count; i++) {
        const struct as_pool_reading *reading = find_reading(poll, i);
        if (!reading || now_us - reading->at.us >= AS_POOL_READ_US)
            return true;
    }
    return false;
}

/* Facts come after the readings. If they contradict the facts at the start of the look, the groups
 * are read now, and facts are asked for again. */
static void facts_known(void *context, const struct as_cluster *facts, const struct as_error *error)
{
    struct poll *poll = context;
    struct as_loop *loop = poll->owner->env->loop;
    poll->ask = NULL;
    if (!facts) {
        poll->snapshot.error = as_arena_strdup(&poll->arena, error->text);
        poll->cluster = NULL;
    }
    if (!poll->has_read && (!facts || must_read(poll, facts)))
        pool_read_groups(poll);
    else if (!facts)
        pool_finish(poll);
    else if ((poll->is_holding = as_cluster_watch_hold(poll->cluster->watch)))
        begin_snapshot(poll, facts);
    else
        poll->timer = loop->start_timer(loop, HOLD_RETRY_US, ask_facts, poll);
}

/* ---- port ---- */

static void pool_observe(struct as_target_port *self, uint64_t call_id,
                         const struct as_target_ref *ref, const struct as_observe_request *request,
                         as_target_observed_fn *done, void *context)
{
    struct pool *pool = (struct pool *)self;
    struct poll *poll = as_xcalloc(1, sizeof(*poll));
    const char *cluster = request->pool->members[0].nodes->cluster;
    poll->owner = pool;
    poll->call_id = call_id;
    poll->observed = done;
    poll->context = context;
    poll->is_lone = ref->kind->has_nodes;
    poll->with_nodes = poll->is_lone && request->with_nodes;
    poll->arena = AS_ARENA_INIT;
    as_pool_request_copy(request->pool, &poll->arena, &poll->request);
    LIST_INSERT_HEAD(&pool->polls, poll, entry);
    poll->cluster = cluster ? as_clusters_find(pool->clusters, cluster) : NULL;
    if (poll->cluster && poll->cluster->access) {
        as_nodes_seer_restore(poll->cluster->seer, request->templates, request->template_count);
        if (must_read(poll, as_cluster_watch_find(poll->cluster->watch)))
            pool_read_groups(poll);
        else
            ask_facts(poll);
        return;
    }
    poll->snapshot.error = as_arena_strdup(
        &poll->arena, poll->cluster ? poll->cluster->missing.text : "there is no such cluster");
    poll->cluster = NULL;
    pool_read_groups(poll);
}

/* Sizes are set by the groups. */
static void pool_scale(struct as_target_port *self, uint64_t call_id,
                       const struct as_target_ref *ref, const struct as_scale_request *request,
                       as_target_scaled_fn *done, void *context)
{
    abort();
}

static bool pool_is_idle(const struct as_target_port *self)
{
    return LIST_EMPTY(&((const struct pool *)self)->polls);
}

static void pool_close_port(struct as_target_port *self)
{
    struct pool *pool = (struct pool *)self;
    struct poll *poll;
    while ((poll = LIST_FIRST(&pool->polls)))
        free_poll(poll);
    pool_groups_free(pool->groups);
    free(pool);
}

struct as_target_port *as_pool_new(struct as_target_port *groups,
                                   const struct as_clusters *clusters,
                                   const struct as_access_env *env)
{
    struct pool *pool = as_xcalloc(1, sizeof(*pool));
    pool->port = (struct as_target_port){pool_observe,    pool_scale, pool_is_idle,
                                         pool_close_port, NULL,       NULL};
    pool->clusters = clusters;
    pool->env = env;
    pool->groups = pool_groups_new(groups, env);
    LIST_INIT(&pool->polls);
    return &pool->port;
}
