/*
 * Rollouts of Deployments, StatefulSets, Argo's Rollouts and of other kinds with the same members.
 *
 * A rollout is under way if the controller has not observed the present generation, or if pods of
 * the present revision are missing. Pods that are not available are no rollout. A paused rollout
 * and one that has failed (Progressing is False) are over. An absent count of a kind that is not
 * known is no sign of a rollout.
 */
#include "kube_rollout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/target_outcome.h>

/* What was read of an object. Counts and generations that are absent are -1. */
struct rollout_facts {
    const struct tree_value *metadata, *spec, *status, *progress;
    int64_t generation, observed; /* observed: -1 also for the hashes of old Rollouts */
    int64_t wanted, total, updated;
};

/* How a kind shows its rollout, beside the members that all kinds have. */
struct rollout_row {
    const char *group, *kind;
    bool has_counts; /* absent counts of its status are 0: else they are not known */
    /* Pods without the present revision are to go. */
    bool (*has_old)(const struct rollout_facts *facts);
    const char *(*get_revision)(const struct rollout_facts *facts);
    /* The pods that are to have the present revision; -1: those of the status alone count. */
    int64_t (*get_due)(const struct rollout_facts *facts);
    bool (*is_over)(const struct rollout_facts *facts); /* whatever the counts are */
};

static const struct tree_value *rollout_find_condition(const struct tree_value *status,
                                                       const char *type)
{
    const struct tree_value *item = tree_get_first(tree_find(status, "conditions"));
    while (item && !as_str_equal(tree_find_text(item, "type"), type))
        item = item->next;
    return item;
}

/* ---- Deployments ---- */

static const char *get_deployment_revision(const struct rollout_facts *facts)
{
    return tree_find_text(tree_find(facts->metadata, "annotations"),
                          "deployment.kubernetes.io/revision");
}

/* A rollout that is complete stays complete while the size changes, also if a quota refuses pods.
 * With `Recreate` the reason of the last rollout stays while there are no pods between old and new.
 */
static int64_t get_deployment_due(const struct rollout_facts *facts)
{
    return facts->total > 0 &&
                   as_str_equal(tree_find_text(facts->progress, "reason"), "NewReplicaSetAvailable")
               ? -1
               : facts->wanted;
}

static bool deployment_has_old(const struct rollout_facts *facts)
{
    return facts->updated < facts->total;
}

static bool deployment_is_over(const struct rollout_facts *facts)
{
    (void)facts;
    return false;
}

/* ---- StatefulSets ---- */

/* Of other kinds, too. */
static const char *get_update_revision(const struct rollout_facts *facts)
{
    return tree_find_text(facts->status, "updateRevision");
}

static bool rollout_is_same(const struct rollout_facts *facts, const char *a, const char *b)
{
    const char *text = tree_find_text(facts->status, a);
    return !as_str_is_empty(text) && as_str_equal(text, tree_find_text(facts->status, b));
}

/* Pods below the partition keep the old revision. If both revisions are one, the rollout is
 * complete, but for pods of another one: they are of a rollout that was taken back. */
static int64_t get_stateful_due(const struct rollout_facts *facts)
{
    int64_t partition = 0;
    if (rollout_is_same(facts, "currentRevision", "updateRevision"))
        return facts->total;
    const struct tree_value *rolling =
        tree_find(tree_find(facts->spec, "updateStrategy"), "rollingUpdate");
    (void)tree_get_i64(tree_find(rolling, "partition"), 0, INT32_MAX, &partition);
    return facts->wanted > partition ? facts->wanted - partition : 0;
}

static bool stateful_has_old(const struct rollout_facts *facts)
{
    (void)facts;
    return false; /* get_stateful_due has those that are to go */
}

/* With OnDelete the controller replaces no pods. */
static bool stateful_is_over(const struct rollout_facts *facts)
{
    return as_str_equal(tree_find_text(tree_find(facts->spec, "updateStrategy"), "type"),
                        "OnDelete");
}

/* ---- Argo's Rollouts ---- */

static const char *get_argo_revision(const struct rollout_facts *facts)
{
    return tree_find_text(facts->status, "currentPodHash");
}

static int64_t get_wanted(const struct rollout_facts *facts)
{
    return facts->wanted;
}

/* Pods of the present revision serve already: others of a blue-green rollout only wait for their
 * end. */
static bool argo_has_old(const struct rollout_facts *facts)
{
    return !rollout_is_same(facts, "stableRS", "currentPodHash") && facts->updated < facts->total;
}

static bool argo_is_over(const struct rollout_facts *facts)
{
    return tree_get_first(tree_find(facts->status, "pauseConditions")) ||
           as_str_equal(tree_find_text(facts->status, "phase"), "Paused") ||
           tree_is_true(tree_find(facts->status, "abort"));
}

/* ---- other kinds ---- */

static int64_t get_no_due(const struct rollout_facts *facts)
{
    (void)facts;
    return -1;
}

/* The last one is for all kinds without a row. */
static const struct rollout_row rollout_rows[] = {
    {"apps", "Deployment", true, deployment_has_old, get_deployment_revision, get_deployment_due,
     deployment_is_over},
    {"apps", "StatefulSet", true, stateful_has_old, get_update_revision, get_stateful_due,
     stateful_is_over},
    {"argoproj.io", "Rollout", true, argo_has_old, get_argo_revision, get_wanted, argo_is_over},
    {NULL, NULL, false, deployment_has_old, get_update_revision, get_no_due, deployment_is_over},
};

static const struct rollout_row *rollout_row_find(const char *api_version, const char *kind)
{
    const struct rollout_row *row = rollout_rows;
    const size_t size = (size_t)as_kube_get_group_size(api_version);
    while (row->kind && (strcmp(row->kind, kind) != 0 || strlen(row->group) != size ||
                         strncmp(row->group, api_version, size) != 0))
        row++;
    return row;
}

static int64_t rollout_read_count(const struct tree_value *object, const char *name, int64_t absent)
{
    int64_t number = absent;
    (void)tree_get_i64(tree_find(object, name), 0, INT64_MAX, &number);
    return number;
}

/* Argo's Rollouts have the generation as text. */
static int64_t read_observed(const struct tree_value *status)
{
    const struct tree_value *value = tree_find(status, "observedGeneration");
    const char *text = tree_get_text(value);
    int64_t number = -1;
    if (text && as_number_parse_i64(text, strlen(text), &number) == 0)
        return number;
    (void)tree_get_i64(value, 0, INT64_MAX, &number);
    return number;
}

static struct rollout_facts read_facts(const struct rollout_row *row,
                                       const struct tree_value *object)
{
    const struct tree_value *spec = tree_find(object, "spec"),
                            *status = tree_find(object, "status"),
                            *metadata = tree_find(object, "metadata");
    const int64_t absent = row->has_counts ? 0 : -1;
    return (struct rollout_facts){
        .metadata = metadata,
        .spec = spec,
        .status = status,
        .progress = rollout_find_condition(status, "Progressing"),
        .generation = rollout_read_count(metadata, "generation", -1),
        .observed = read_observed(status),
        .wanted = rollout_read_count(spec, "replicas", 1),
        .total = rollout_read_count(status, "replicas", absent),
        .updated = rollout_read_count(status, "updatedReplicas", absent),
    };
}

static bool rollout_is_unobserved(const struct rollout_row *row, const struct rollout_facts *facts)
{
    if (facts->observed < 0) /* no status yet, or a kind that does not say it */
        return row->has_counts && !tree_find(facts->status, "observedGeneration");
    return facts->observed < facts->generation;
}

static bool rollout_is_under_way(const struct rollout_row *row, const struct rollout_facts *facts)
{
    if (tree_is_true(tree_find(facts->spec, "paused")))
        return false;
    if (rollout_is_unobserved(row, facts))
        return true;
    if (as_str_equal(tree_find_text(facts->progress, "status"), "False") || row->is_over(facts))
        return false;
    return facts->updated >= 0 && (row->has_old(facts) || facts->updated < row->get_due(facts));
}

void as_kube_rollout_decode(const char *api_version, const char *kind, const char *json,
                            size_t size, struct as_rollout_seen *seen_out)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const struct rollout_row *row = rollout_row_find(api_version, kind);
    struct as_error error = AS_ERROR_INIT;
    *seen_out = (struct as_rollout_seen){.progress = AS_PROGRESS_UNKNOWN};
    if (tree_load_object(&tree, json, size, &error) != 0) {
        memcpy(seen_out->why, error.text,
               as_str_cut_utf8(error.text, strlen(error.text), sizeof(seen_out->why) - 1));
        return;
    }
    const struct rollout_facts facts = read_facts(row, tree.root);
    const char *revision = row->get_revision(&facts);
    seen_out->progress =
        rollout_is_under_way(row, &facts) ? AS_PROGRESS_UNDER_WAY : AS_PROGRESS_NONE;
    if (revision)
        memcpy(seen_out->revision, revision,
               as_str_cut_utf8(revision, strlen(revision), sizeof(seen_out->revision) - 1));
}

/* ---- the request ---- */

struct as_kube_rollout_ask {
    struct as_kube_request *request;
    const struct as_clock *clock;
    char *api_version, *kind;
    as_kube_rollout_done_fn *done;
    void *context;
};

static void rollout_ask_free(struct as_kube_rollout_ask *ask)
{
    free(ask->api_version);
    free(ask->kind);
    free(ask);
}

static void explain_unknown(const struct as_outcome *outcome, struct as_rollout_seen *seen)
{
    static const char remedy[] = "; the Role needs `get` of this object";
    const size_t room = AS_MESSAGE_SIZE - sizeof(remedy);
    seen->is_forbidden = outcome->reason == AS_REASON_FORBIDDEN;
    snprintf(seen->why, sizeof(seen->why), "%.*s%s",
             (int)as_str_cut_utf8(outcome->message, strlen(outcome->message), room),
             outcome->message, seen->is_forbidden ? remedy : "");
}

static void rollout_answered(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct as_kube_rollout_ask *ask = context;
    struct as_rollout_seen seen = {.progress = AS_PROGRESS_UNKNOWN};
    struct as_outcome outcome;
    struct as_kube_status status;
    (void)attempts;
    as_kube_outcome_init(&outcome, response, false, ask->clock->get_wall(ask->clock), &status);
    if (outcome.reason == AS_REASON_APPLIED)
        as_kube_rollout_decode(ask->api_version, ask->kind, response->body, response->body_size,
                               &seen);
    else
        explain_unknown(&outcome, &seen);
    ask->done(ask->context, &seen);
    rollout_ask_free(ask);
}

struct as_kube_rollout_ask *as_kube_rollout_start(struct as_kube_client *client,
                                                  const struct as_flow *flow,
                                                  const struct as_kube_rollout_of *of,
                                                  as_kube_rollout_done_fn *done, void *context)
{
    struct as_kube_rollout_ask *ask = as_xcalloc(1, sizeof(*ask));
    ask->clock = client->env->clock;
    ask->api_version = as_xstrdup(of->api_version);
    ask->kind = as_xstrdup(of->kind);
    ask->done = done;
    ask->context = context;
    ask->request = as_kube_request_start(client,
                                         &(struct as_kube_request_spec){
                                             .method = "GET",
                                             .path = of->path,
                                             .operation = "get_rollout",
                                             .max_response = AS_KUBE_SIZED_OBJECT_MAX,
                                             .flow = *flow,
                                         },
                                         rollout_answered, ask);
    return ask;
}

void as_kube_rollout_cancel(struct as_kube_rollout_ask *ask)
{
    as_kube_request_cancel(ask->request);
    rollout_ask_free(ask);
}
