/*
 * Three watches of a cluster, one store of facts. An answer comes once all three are synced, or
 * after AS_CLUSTER_WATCH_SYNC_US with the reason why they are not. While the facts are held, what
 * the watches tell waits in `heard`, in order.
 *
 * Also the list of the clusters of the settings: each has its watch, its drains and its memory of
 * templates.
 */
#include <alertscaler/kube/cluster_watch.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_facts.h>
#include <alertscaler/model/labels.h>

#include "kube_watch.h"

#define FREED_PODS 5000 /* in a turn of the loop: 1 ms */

struct kind_watch {
    struct as_cluster_watch *owner;
    enum as_cluster_kind kind;
    struct as_kube_watch *watch; /* NULL: nothing is watched */
    struct as_error failure;     /* the last one since it was synced; "" */
};

enum heard_what { HEARD_LIST_BEGIN, HEARD_OBJECT, HEARD_LIST_END };

struct heard { /* while the facts were held */
    STAILQ_ENTRY(heard) entry;
    struct kind_watch *kind;
    enum heard_what what;
    enum as_kube_verb verb;
    enum as_kube_form form;
    size_t size;
    char bytes[];
};

struct as_cluster_watch {
    struct as_kube_client *client;
    struct as_cluster_facts *facts;
    struct as_cluster_facts *former; /* being freed, some pods in each turn of the loop; NULL */
    struct as_timer *freeing;
    struct as_arena scratch;
    struct kind_watch kinds[AS_CLUSTER_KIND_COUNT];
    TAILQ_HEAD(, as_cluster_ask) asks;
    struct as_timer *timer; /* the next answer that is due, or the end of watching */
    as_mono_time keep_until;
    as_mono_time relist_at;    /* the pods, at the earliest */
    as_mono_time closed_until; /* the cluster was too large */
    struct as_error too_large;
    bool is_held;
    STAILQ_HEAD(, heard) heard;
    size_t heard_bytes;
};

struct as_cluster_ask {
    TAILQ_ENTRY(as_cluster_ask) entry;
    struct as_cluster_watch *owner;
    as_cluster_watch_done_fn *done;
    void *context;
    as_mono_time deadline;
};

static const struct as_kube_watch_spec specs[AS_CLUSTER_KIND_COUNT] = {
    [AS_CLUSTER_NODES] = {.path = "/api/v1/nodes",
                          .list_operation = "list_nodes",
                          .watch_operation = "watch_nodes",
                          .wants_protobuf = true},
    [AS_CLUSTER_PODS] = {.path = "/api/v1/pods",
                         .field_selector = "status.phase!=Succeeded,status.phase!=Failed",
                         .list_operation = "list_pods",
                         .watch_operation = "watch_pods",
                         .wants_protobuf = true},
    [AS_CLUSTER_BUDGETS] = {.path = "/apis/policy/v1/poddisruptionbudgets",
                            .list_operation = "list_budgets",
                            .watch_operation = "watch_budgets",
                            .wants_protobuf = true},
};

static as_mono_time cluster_watch_get_mono(const struct as_cluster_watch *watch)
{
    const struct as_clock *clock = watch->client->env->clock;
    return clock->get_mono(clock);
}

static void cluster_watch_settle(void *context);

/* Looks again after `us`; what was planned before is dropped. */
static void plan(struct as_cluster_watch *watch, int64_t us)
{
    struct as_loop *loop = watch->client->env->loop;
    if (watch->timer)
        loop->cancel_timer(loop, watch->timer);
    watch->timer = loop->start_timer(loop, us > 0 ? us : 0, cluster_watch_settle, watch);
}

/* ---- what the watches tell ---- */

/* Keeps it for later. -EBUSY: there is no room for it. */
static int cluster_watch_hear(struct kind_watch *kind, const struct heard *what, const char *bytes)
{
    struct as_cluster_watch *watch = kind->owner;
    if (what->size > AS_CLUSTER_WATCH_HELD_MAX - watch->heard_bytes)
        return -EBUSY;
    struct heard *heard = as_xmalloc(sizeof(*heard) + what->size);
    *heard = *what;
    heard->kind = kind;
    if (bytes)
        memcpy(heard->bytes, bytes, what->size);
    STAILQ_INSERT_TAIL(&watch->heard, heard, entry);
    watch->heard_bytes += what->size;
    return 0;
}

static void cluster_watch_begin_list(struct kind_watch *kind)
{
    as_cluster_facts_begin_list(kind->owner->facts, kind->kind);
}

static int put_object(struct kind_watch *kind, enum as_kube_verb verb, struct as_kube_bytes object,
                      struct as_error *error)
{
    struct as_cluster_watch *watch = kind->owner;
    if (verb == AS_KUBE_DELETED)
        return as_kube_fact_delete(watch->facts, kind->kind, &object, error);
    const int status = as_kube_fact_put(watch->facts, kind->kind, &object, &watch->scratch, error);
    if (status == -E2BIG) {
        watch->too_large = *error;
        watch->closed_until.us = cluster_watch_get_mono(watch).us + AS_CLUSTER_WATCH_LARGE_US;
        plan(watch, 0);
    }
    if (kind->kind == AS_CLUSTER_BUDGETS && as_cluster_facts_lacks_labels(watch->facts))
        plan(watch, 0);
    return status;
}

static void start_kind(struct as_cluster_watch *watch, enum as_cluster_kind which);

/* Pods are listed after budgets, which say which of their labels are kept. */
static void cluster_watch_end_list(struct kind_watch *kind)
{
    struct as_cluster_watch *watch = kind->owner;
    as_cluster_facts_end_list(watch->facts, kind->kind);
    kind->failure = AS_ERROR_INIT;
    if (kind->kind == AS_CLUSTER_BUDGETS && !watch->kinds[AS_CLUSTER_PODS].watch)
        start_kind(watch, AS_CLUSTER_PODS);
    plan(watch, 0);
}

static void list_began(void *context)
{
    struct kind_watch *kind = context;
    if (!kind->owner->is_held)
        cluster_watch_begin_list(kind);
    else
        (void)cluster_watch_hear(kind, &(struct heard){.what = HEARD_LIST_BEGIN},
                                 NULL); /* takes no room */
}

static int cluster_watch_take_object(void *context, enum as_kube_verb verb, enum as_kube_form form,
                                     const char *bytes, size_t size, struct as_error *error)
{
    struct kind_watch *kind = context;
    if (!kind->owner->is_held)
        return put_object(kind, verb, (struct as_kube_bytes){form, bytes, size}, error);
    const struct heard heard = {.what = HEARD_OBJECT, .verb = verb, .form = form, .size = size};
    const int status = cluster_watch_hear(kind, &heard, bytes);
    if (status)
        as_error_set(error, "the cluster changes faster than it can be looked at");
    return status;
}

static void list_ended(void *context, const char *resource_version)
{
    struct kind_watch *kind = context;
    if (!kind->owner->is_held)
        cluster_watch_end_list(kind);
    else
        (void)cluster_watch_hear(kind, &(struct heard){.what = HEARD_LIST_END}, NULL);
}

static void cluster_watch_has_failed(void *context, const char *message)
{
    as_error_set(&((struct kind_watch *)context)->failure, "%s", message);
}

static const struct as_kube_watch_listener listener = {list_began, cluster_watch_take_object,
                                                       list_ended, cluster_watch_has_failed};

/* ---- answers ---- */

static void forget_heard(struct as_cluster_watch *watch)
{
    struct heard *heard;
    while ((heard = STAILQ_FIRST(&watch->heard))) {
        STAILQ_REMOVE_HEAD(&watch->heard, entry);
        free(heard);
    }
    watch->heard_bytes = 0;
}

static struct as_cluster_facts *new_facts(void)
{
    static const struct as_cluster_facts_limits limits = {AS_CLUSTER_FACTS_BYTES};
    return as_cluster_facts_new(&limits);
}

static void free_more(void *context)
{
    struct as_cluster_watch *watch = context;
    struct as_loop *loop = watch->client->env->loop;
    const bool has_more = as_cluster_facts_forget_pods(watch->former, FREED_PODS);
    watch->freeing = has_more ? loop->start_timer(loop, 0, free_more, watch) : NULL;
    if (!has_more)
        watch->former = as_cluster_facts_free(watch->former);
}

static void free_former(struct as_cluster_watch *watch)
{
    struct as_loop *loop = watch->client->env->loop;
    if (watch->freeing)
        loop->cancel_timer(loop, watch->freeing);
    watch->freeing = NULL;
    watch->former = as_cluster_facts_free(watch->former);
}

static void stop_watching(struct as_cluster_watch *watch)
{
    struct as_loop *loop = watch->client->env->loop;
    for (size_t i = 0; i < AS_CLUSTER_KIND_COUNT; i++)
        watch->kinds[i].watch = as_kube_watch_stop(watch->kinds[i].watch);
    free_former(watch);
    watch->former = watch->facts;
    watch->freeing = loop->start_timer(loop, 0, free_more, watch);
    watch->facts = new_facts();
    as_arena_deinit(&watch->scratch);
}

static void start_kind(struct as_cluster_watch *watch, enum as_cluster_kind which)
{
    struct kind_watch *kind = &watch->kinds[which];
    struct as_kube_watch_spec spec = specs[which];
    *kind = (struct kind_watch){.owner = watch, .kind = which, .failure = AS_ERROR_INIT};
    spec.seed = (uint64_t)cluster_watch_get_mono(watch).us + which;
    kind->watch = as_kube_watch_start(watch->client, &spec, &listener, kind);
}

static void start_watching(struct as_cluster_watch *watch)
{
    start_kind(watch, AS_CLUSTER_NODES);
    start_kind(watch, AS_CLUSTER_BUDGETS);
}

/* If a budget asks for it. When to look again; INT64_MAX: the end of a list will tell. */
static int64_t list_pods_anew(struct as_cluster_watch *watch, as_mono_time now)
{
    struct kind_watch *kind = &watch->kinds[AS_CLUSTER_PODS];
    if (!as_cluster_facts_lacks_labels(watch->facts) || !kind->watch ||
        !as_kube_watch_is_synced(kind->watch))
        return INT64_MAX;
    if (now.us < watch->relist_at.us)
        return watch->relist_at.us - now.us;
    kind->watch = as_kube_watch_stop(kind->watch);
    start_kind(watch, AS_CLUSTER_PODS);
    watch->relist_at.us = now.us + AS_CLUSTER_WATCH_RELIST_US;
    return INT64_MAX;
}

static bool is_watching(const struct as_cluster_watch *watch)
{
    return watch->kinds[0].watch != NULL;
}

/* As they are listed: the first that is missing is the reason. */
static const enum as_cluster_kind in_order[] = {AS_CLUSTER_NODES, AS_CLUSTER_BUDGETS,
                                                AS_CLUSTER_PODS};

/* NULL with an error while they are not known, or no longer fresh. */
static const struct as_cluster *get_facts(struct as_cluster_watch *watch, struct as_error *error)
{
    const as_mono_time now = cluster_watch_get_mono(watch);
    if (watch->closed_until.us > now.us) {
        as_error_set(error, "%s", watch->too_large.text);
        return NULL;
    }
    for (size_t n = 0; n < AS_CLUSTER_KIND_COUNT; n++) {
        const enum as_cluster_kind i = in_order[n];
        const struct kind_watch *kind = &watch->kinds[i];
        const bool is_synced = kind->watch && as_kube_watch_is_synced(kind->watch);
        if (is_synced &&
            now.us - as_kube_watch_get_fresh_at(kind->watch).us < AS_CLUSTER_WATCH_FRESH_US)
            continue;
        as_error_set(error, "%s: %s", specs[i].path,
                     *kind->failure.text ? kind->failure.text
                     : is_synced         ? "nothing was heard for two minutes"
                                         : "not listed yet");
        return NULL;
    }
    return as_cluster_facts_view(watch->facts, error);
}

const struct as_cluster *as_cluster_watch_find(struct as_cluster_watch *watch)
{
    return is_watching(watch) ? get_facts(watch, NULL) : NULL;
}

const struct as_cluster *as_cluster_watch_find_since(struct as_cluster_watch *watch,
                                                     as_mono_time since)
{
    const struct as_kube_watch *nodes = watch->kinds[AS_CLUSTER_NODES].watch;
    const bool is_confirmed =
        nodes && !watch->is_held && as_kube_watch_get_confirmed_at(nodes).us > since.us;
    return is_confirmed ? get_facts(watch, NULL) : NULL;
}

bool as_cluster_watch_read(struct as_cluster_watch *watch, struct as_facts_view *view_out)
{
    const struct as_cluster *cluster =
        is_watching(watch) ? as_cluster_facts_view(watch->facts, NULL) : NULL;
    if (!cluster)
        return false;
    *view_out = (struct as_facts_view){.objects = {[AS_CLUSTER_NODES] = cluster->node_count,
                                                   [AS_CLUSTER_PODS] = cluster->pod_count,
                                                   [AS_CLUSTER_BUDGETS] = cluster->budget_count},
                                       .fresh_at = AS_MONO_NEVER};
    for (size_t i = 0; i < AS_CLUSTER_KIND_COUNT; i++) {
        const as_mono_time at = as_kube_watch_get_fresh_at(watch->kinds[i].watch);
        if (at.us < view_out->fresh_at.us)
            view_out->fresh_at = at;
    }
    return true;
}

/* Answers whom it can, and plans when to look again. Who asks meanwhile is answered later. */
static void cluster_watch_settle(void *context)
{
    struct as_cluster_watch *watch = context;
    const as_mono_time now = cluster_watch_get_mono(watch);
    struct as_error error = AS_ERROR_INIT;
    struct as_cluster_ask *ask;
    size_t waiting = 0;
    watch->timer = NULL;
    TAILQ_FOREACH (ask, &watch->asks, entry)
        waiting++;
    if (watch->closed_until.us > now.us && is_watching(watch) && !watch->is_held)
        stop_watching(watch);
    const int64_t relist_us = watch->is_held ? INT64_MAX : list_pods_anew(watch, now);
    while (waiting-- > 0 && (ask = TAILQ_FIRST(&watch->asks))) {
        const struct as_cluster *cluster = get_facts(watch, &error);
        if (!cluster && ask->deadline.us > now.us && is_watching(watch)) {
            plan(watch, ask->deadline.us - now.us);
            return;
        }
        const struct as_cluster_ask ask_copy = *ask;
        as_cluster_watch_cancel(ask);
        ask_copy.done(ask_copy.context, cluster, &error);
    }
    if (watch->is_held)
        return; /* it looks again when they are released */
    if (is_watching(watch) && watch->keep_until.us <= now.us)
        stop_watching(watch);
    if (is_watching(watch) && !watch->timer) {
        const int64_t keep_us = watch->keep_until.us - now.us;
        plan(watch, relist_us < keep_us ? relist_us : keep_us);
    }
}

struct as_cluster_ask *as_cluster_watch_ask(struct as_cluster_watch *watch,
                                            as_cluster_watch_done_fn *done, void *context)
{
    const as_mono_time now = cluster_watch_get_mono(watch);
    struct as_cluster_ask *ask = as_xmalloc(sizeof(*ask));
    *ask = (struct as_cluster_ask){.owner = watch,
                                   .done = done,
                                   .context = context,
                                   .deadline = {now.us + AS_CLUSTER_WATCH_SYNC_US}};
    TAILQ_INSERT_TAIL(&watch->asks, ask, entry);
    watch->keep_until.us = now.us + AS_CLUSTER_WATCH_KEEP_US;
    if (!is_watching(watch) && watch->closed_until.us <= now.us)
        start_watching(watch);
    plan(watch, 0);
    return ask;
}

void as_cluster_watch_cancel(struct as_cluster_ask *ask)
{
    TAILQ_REMOVE(&ask->owner->asks, ask, entry);
    free(ask);
}

bool as_cluster_watch_hold(struct as_cluster_watch *watch)
{
    if (watch->is_held)
        return false;
    watch->is_held = true;
    return true;
}

static int take_heard(const struct heard *heard, struct as_error *error)
{
    switch (heard->what) {
    case HEARD_LIST_BEGIN: cluster_watch_begin_list(heard->kind); break;
    case HEARD_LIST_END: cluster_watch_end_list(heard->kind); break;
    case HEARD_OBJECT:
        return put_object(heard->kind, heard->verb,
                          (struct as_kube_bytes){heard->form, heard->bytes, heard->size}, error);
    }
    return 0;
}

/* A kind with an object that cannot be used is listed anew. */
void as_cluster_watch_release(struct as_cluster_watch *watch)
{
    bool is_refused[AS_CLUSTER_KIND_COUNT] = {false};
    struct as_error error = AS_ERROR_INIT;
    struct heard *heard;
    watch->is_held = false;
    STAILQ_FOREACH (heard, &watch->heard, entry) {
        struct kind_watch *kind = heard->kind;
        if (is_refused[kind->kind] || take_heard(heard, &error) == 0)
            continue;
        is_refused[kind->kind] = true;
        as_kube_watch_stop(kind->watch);
        start_kind(watch, kind->kind);
        cluster_watch_has_failed(kind, error.text);
    }
    forget_heard(watch);
    plan(watch, 0);
}

struct as_cluster_watch *as_cluster_watch_new(struct as_kube_client *client)
{
    struct as_cluster_watch *watch = as_xcalloc(1, sizeof(*watch));
    watch->client = client;
    watch->facts = new_facts();
    watch->scratch = AS_ARENA_INIT;
    watch->closed_until.us = INT64_MIN;
    TAILQ_INIT(&watch->asks);
    STAILQ_INIT(&watch->heard);
    return watch;
}

struct as_cluster_watch *as_cluster_watch_free(struct as_cluster_watch *watch)
{
    if (!watch)
        return NULL;
    struct as_loop *loop = watch->client->env->loop;
    if (watch->timer)
        loop->cancel_timer(loop, watch->timer);
    stop_watching(watch);
    forget_heard(watch);
    free_former(watch);
    as_cluster_facts_free(watch->facts);
    free(watch);
    return NULL;
}

/* The clusters of the settings, whose nodes may be the instances of node groups. */

#define OWNER_SIZE 32

/* Our name among those that drain nodes: the same after a restart and on every replica; different
 * for another state. */
static void print_owner(const struct as_state_settings *state, char owner[OWNER_SIZE])
{
    const bool is_shared = state->store == AS_STORE_KUBERNETES;
    const char *place = is_shared ? state->namespace : state->path;
    const struct as_label pairs[] = {{"lease", is_shared ? state->lease.name : ""},
                                     {"place", place ? place : ""}};
    struct as_labels *labels = NULL;
    const int status = as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels);
    assert(status == 0); /* the names differ, and paths are short */
    (void)status;
    snprintf(owner, OWNER_SIZE, "alertscaler-%016" PRIx64, as_labels_get_fingerprint(labels));
    as_labels_free(labels);
}

void as_clusters_init(struct as_clusters *clusters, const struct as_settings *settings,
                      const struct as_access_env *env)
{
    char owner[OWNER_SIZE];
    print_owner(&settings->state, owner);
    clusters->count = settings->cluster_count;
    clusters->items = as_xcalloc(clusters->count + 1, sizeof(*clusters->items));
    for (size_t i = 0; i < clusters->count; i++) {
        const struct as_cluster_settings *given = &settings->clusters[i];
        const struct as_kube_access_config config = {given->kubeconfig, given->context};
        struct as_cluster_link *cluster = &clusters->items[i];
        cluster->owner = clusters;
        cluster->name = given->name;
        if (as_kube_access_new(&config, env, &cluster->access, &cluster->missing) != 0) {
            cluster->access = NULL;
            continue;
        }
        as_kube_client_init(&cluster->client, env, cluster->access);
        cluster->drains = as_drains_new(&cluster->client, owner);
        cluster->watch = as_cluster_watch_new(&cluster->client);
        cluster->seer = as_nodes_seer_new();
    }
}

void as_clusters_deinit(struct as_clusters *clusters)
{
    for (size_t i = 0; i < clusters->count; i++) {
        struct as_cluster_link *cluster = &clusters->items[i];
        if (!cluster->access)
            continue;
        as_drains_free(cluster->drains);
        as_cluster_watch_free(cluster->watch);
        as_nodes_seer_free(cluster->seer);
        as_kube_client_deinit(&cluster->client);
        as_kube_access_free(cluster->access);
    }
    free(clusters->items);
    *clusters = (struct as_clusters){0};
}

struct as_cluster_link *as_clusters_find(const struct as_clusters *clusters, const char *name)
{
    for (size_t i = 0; i < clusters->count; i++) {
        if (strcmp(clusters->items[i].name, name) == 0)
            return &clusters->items[i];
    }
    return NULL;
}
