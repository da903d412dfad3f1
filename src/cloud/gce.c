/*
 * Google Compute Engine: a managed instance group, zonal or regional (mig.h).
 */
#include "providers.h"

#include <alertscaler/base/str.h>

#include "credentials_google.h"
#include "mig.h"

static void begin(struct as_group_talk *group)
{
    struct as_talk *talk = &group->talk;
    const char *zone = as_target_ref_get(group->group, "zone");
    const char *region = as_target_ref_get(group->group, "region");
    const char *project = google_find_project(group);
    if (!project)
        return;
    if (!*zone == !*region) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "a group has either a `zone` or a `region`: %s",
                     *zone ? "this one has both" : "this one has neither");
        return;
    }
    struct mig *mig = as_arena_alloc(&talk->arena, 1, sizeof(*mig));
    struct mig_work *work = as_arena_alloc(&talk->arena, 1, sizeof(*work));
    mig->place =
        as_talk_print(talk, "projects/%s/%s/%s", as_talk_escaped(talk, project),
                      *zone ? "zones" : "regions", as_talk_escaped(talk, *zone ? zone : region));
    mig->name = as_talk_escaped(talk, as_target_ref_get(group->group, "name"));
    work->endpoint =
        as_account_get_endpoint(talk, group->account, "endpoint", "https://compute.googleapis.com");
    work->migs = mig;
    work->count = 1;
    group->state = work;
    mig_begin(group);
}

const struct as_group_provider provider_gce = {
    .kind =
        {
            .type = "gce",
            .account_keys =
                (const struct as_provider_key[]){{.key = "project"},
                                                 {.key = "credentials_file", .is_file = true},
                                                 {.key = "endpoint", .is_url = true},
                                                 {0}},
            .group_keys =
                (const struct as_provider_key[]){{.key = "name", .is_required = true},
                                                 {.key = "zone", .place = AS_PLACE_ZONE},
                                                 {.key = "region", .place = AS_PLACE_REGION},
                                                 {.key = "project", .place = AS_PLACE_PROJECT},
                                                 {0}},
            .files = google_files,
            .read_names = google_read_names,
        },
    .credentials = google_credentials,
    .sign = as_sign_bearer,
    .begin = begin,
};
