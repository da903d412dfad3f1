/*
 * Google Kubernetes Engine: a node pool, which is one managed instance group per zone (mig.h):
 * https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools
 *
 * The pool's own setSize sets the number of nodes per zone, and evens out the zones by removing
 * nodes of its choice. So it cannot set a size that is not a multiple of the zones, and may remove
 * the wrong nodes. Therefore the groups are resized one by one, as Kubernetes' own node autoscaler
 * does; the pool's size is the sum of theirs.
 */
#include "providers.h"

#include <string.h>

#include <alertscaler/base/str.h>

#include "credentials_google.h"
#include "mig.h"
#include "provider_answer.h"

#define ZONES_MAX 64

/* Takes the pool's groups. False after failing the talk. */
static bool take_migs(struct as_talk *talk, const json_t *pool)
{
    static const char path[] = "instanceGroupUrls";
    struct mig_work *work = as_group_get(talk)->state;
    const size_t count = answer_count(pool, path);
    if (count == 0)
        return answer_misses(talk, path);
    if (count > ZONES_MAX) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "the node pool has more than %d instance groups",
                     ZONES_MAX);
        return false;
    }
    work->migs = as_arena_alloc(&talk->arena, count, sizeof(*work->migs));
    work->count = count;
    for (size_t i = 0; i < count; i++) {
        const char *url = json_string_value(answer_at(pool, path, i));
        if (!url || !mig_parse_url(talk, url, &work->migs[i]))
            return answer_misses(talk, "instanceGroupUrls of instance group managers");
    }
    return true;
}

/* Whether the pool's state allows the verb. False after failing the talk. */
static bool judge_status(struct as_talk *talk, const json_t *pool)
{
    struct as_group_talk *group = as_group_get(talk);
    const char *status = answer_text(pool, "status");
    const bool is_busy = strcmp(status, "PROVISIONING") == 0 || strcmp(status, "RECONCILING") == 0;
    if (strcmp(status, "STOPPING") == 0) {
        as_talk_fail(talk, AS_TALK_GONE, "the node pool is being deleted");
        return false;
    }
    if (strcmp(status, "ERROR") == 0) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "the node pool has failed: %s",
                     answer_text(answer_at(pool, "conditions", 0), "message"));
        return false;
    }
    if (is_busy && group->verb != AS_GROUP_READ) {
        as_talk_fail(talk, AS_TALK_BUSY, "the node pool is being changed (%s)", status);
        return false;
    }
    group->view.in_progress = is_busy;
    return true;
}

/* The pool's full name: two names of one pool share it, also while the pool gets other groups. A
 * zone is a location. Answers of old versions have no name. */
static bool add_backing(struct as_talk *talk, const json_t *pool)
{
    static const char zones[] = "/zones/";
    const char *name = strstr(answer_text(pool, "selfLink"), "projects/");
    const char *zone = name ? strstr(name, zones) : NULL;
    if (!name)
        return true;
    return zone ? as_group_add_backing(as_group_get(talk), "gke/%.*s/locations/%s",
                                       (int)(zone - name), name, zone + strlen(zones))
                : as_group_add_backing(as_group_get(talk), "gke/%s", name);
}

static void hear_pool(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const json_t *pool = google_take_answer(talk);
    if (!pool || !judge_status(talk, pool) || !take_migs(talk, pool) || !add_backing(talk, pool))
        return;
    if (answer_is_true(pool, "autoscaling.enabled"))
        group->view.controller = "the node pool's own autoscaling";
    if (answer_is_true(pool, "autopilotConfig.enabled"))
        group->view.controller = "GKE Autopilot";
    if (group->verb == AS_GROUP_READ || mig_may_change(group))
        mig_begin(group);
}

static void begin(struct as_group_talk *group)
{
    struct as_talk *talk = &group->talk;
    const char *project = google_find_project(group);
    if (!project)
        return;
    struct mig_work *work = as_arena_alloc(&talk->arena, 1, sizeof(*work));
    work->project = as_talk_escaped(talk, project);
    work->endpoint = as_account_get_endpoint(talk, group->account, "compute_endpoint",
                                             "https://compute.googleapis.com");
    group->state = work;
    if (group->verb == AS_GROUP_POLL) {
        mig_begin(group); /* operations have their place in their names */
        return;
    }
    as_talk_ask(talk, "GET", "%s/v1/projects/%s/locations/%s/clusters/%s/nodePools/%s",
                as_account_get_endpoint(talk, group->account, "endpoint",
                                        "https://container.googleapis.com"),
                work->project, as_talk_escaped(talk, as_target_ref_get(group->group, "location")),
                as_talk_escaped(talk, as_target_ref_get(group->group, "cluster")),
                as_talk_escaped(talk, as_target_ref_get(group->group, "name")));
    as_talk_send(talk, "get_node_pool", hear_pool);
}

const struct as_group_provider provider_gke = {
    .kind =
        {
            .type = "gke",
            .family = "gce",
            .account_keys =
                (const struct as_provider_key[]){{.key = "project"},
                                                 {.key = "credentials_file", .is_file = true},
                                                 {.key = "endpoint", .is_url = true},
                                                 {.key = "compute_endpoint", .is_url = true},
                                                 {0}},
            .group_keys =
                (const struct as_provider_key[]){
                    {.key = "name", .is_required = true},
                    {.key = "cluster", .place = AS_PLACE_CLUSTER, .is_required = true},
                    {.key = "location", .place = AS_PLACE_REGION, .is_required = true},
                    {.key = "project", .place = AS_PLACE_PROJECT},
                    {0}},
            .files = google_files,
            .read_names = google_read_names,
        },
    .credentials = google_credentials,
    .sign = as_sign_bearer,
    .begin = begin,
};
