/*
 * Lists of objects for `allow.list`, against a scripted API server: page after page, without what
 * is never listed, and what a list that is not complete has.
 */
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/kube/kube_target.h>

#include "../../support/rule_spec.h"
#include "support.h"

#define ALL_PATH "/apis/apps/v1/deployments?labelSelector=sleeps%3Dnightly&limit=500"
#define IN(space)                                                                                  \
    "/apis/apps/v1/namespaces/" space "/deployments?labelSelector=sleeps%3Dnightly&limit=500"
#define APPS                                                                                       \
    "{\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":\"deployments\",\"kind\":"             \
    "\"Deployment\",\"namespaced\":true}]}"
#define PAGE(token, items)                                                                         \
    "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"     \
    "\"resourceVersion\":\"9\",\"continue\":\"" token "\"},\"items\":[" items "]}"
#define OBJECT(space, name, more)                                                                  \
    "{\"metadata\":{\"namespace\":\"" space "\",\"name\":\"" name "\"" more "}}"
#define OWNER(controller)                                                                          \
    ",\"ownerReferences\":[{\"kind\":\"Rollout\",\"name\":\"r\",\"controller\":" controller "}]"

static const struct spec spec = {.targets = {{.name = "apps",
                                              .address = "{{ .Labels.app }}",
                                              .namespace = "{{ .Labels.space }}",
                                              .allow = "*",
                                              .list = "sleeps=nightly",
                                              .max = 5}}};

static struct as_target_port *port;
static struct as_ruleset *ruleset;
static struct as_target_config *entry;
static struct as_buf said, right; /* said: "namespace/name " of each object, then the error */
static unsigned listed_count;

static void answer(const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){"GET", path, .status = status, .body = body});
}

static void setup(void)
{
    setup_world();
    port = as_kubernetes_new(open_access(), &env);
    ruleset = spec_make_ruleset(&spec);
    entry = ruleset->targets[0];
    said = right = AS_BUF_INIT((size_t)1024 * 1024);
    answer("/apis/apps/v1", 200, APPS);
}

static void teardown(void)
{
    port->close(port);
    as_ruleset_free(ruleset);
    as_buf_deinit(&said);
    as_buf_deinit(&right);
    teardown_world();
}

TestSuite(kube_object_list, .init = setup, .fini = teardown);

static void keep(void *context, uint64_t call_id, const struct as_object_list *list)
{
    cr_assert_eq(call_id, 7);
    listed_count++;
    for (size_t i = 0; i < list->count; i++)
        as_buf_printf(&said, "%s/%s ", list->items[i].namespace_, list->items[i].name);
    as_buf_append_str(&said, list->error ? list->error : "");
    as_buf_append_str(&right, list->right ? list->right : "");
}

static const char *list(void)
{
    const struct as_object_list_request request = {.entry = entry, .own_namespace = "scaler"};
    as_buf_clear(&said);
    as_buf_clear(&right);
    listed_count = 0;
    port->list(port, 7, &request, keep, NULL);
    cr_assert_eq(listed_count, 0, "told in the same turn");
    cr_assert(port->is_idle(port), "a stop does not wait for it");
    world_run(&world);
    cr_assert_eq(listed_count, 1);
    return said.data ? said.data : "";
}

Test(kube_object_list, pages_without_what_is_never_listed)
{
    answer(ALL_PATH, 200,
           PAGE("more",
                OBJECT("team-a", "web", "") "," OBJECT("kube-system", "dns", "") "," OBJECT(
                    "scaler", "alertscaler", "") "," OBJECT("team-a", "owned", OWNER("true"))));
    answer(ALL_PATH "&continue=more", 200,
           PAGE("", OBJECT("team-b", "api", OWNER("false")) "," OBJECT(
                        "team-b", "gone", ",\"deletionTimestamp\":\"2026-11-28T10:00:00Z\"")));
    cr_expect_str_eq(list(), "team-a/web team-b/api ");
}

Test(kube_object_list, exact_namespaces_are_listed_one_by_one)
{
    struct as_allowed *allowed = &entry->allowed[AS_ALLOW_NAMESPACES];
    allowed->items = as_xrealloc_array(allowed->items, 2, sizeof(*allowed->items));
    free(allowed->items[0]);
    allowed->items[0] = as_xstrdup("team-a");
    allowed->items[1] = as_xstrdup("team-b");
    allowed->count = 2;
    answer(IN("team-a"), 403, "{\"kind\":\"Status\",\"code\":403,\"message\":\"no\"}");
    answer(IN("team-b"), 200, PAGE("", OBJECT("team-b", "api", "")));
    cr_expect_str_eq(
        list(),
        "team-b/api list the objects of target `apps`: the right \"deployments.apps: list\" is "
        "missing: no");
    cr_expect(strstr(right.data, "kind: Role\nmetadata: {name: \"alertscaler-list-deployments\", "
                                 "namespace: \"team-a\"}"),
              "%s", right.data);
    cr_expect(!strstr(right.data, "team-b"));
}

Test(kube_object_list, more_than_the_limit_are_none)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf page = AS_BUF_INIT((size_t)8 * 1024 * 1024);
    as_buf_append_str(&page, "{\"kind\":\"PartialObjectMetadataList\",\"metadata\":{},\"items\":[");
    for (int i = 0; i <= AS_LISTED_OBJECTS_MAX; i++)
        as_buf_printf(&page, "%s" OBJECT("team-a", "web-%d", ""), i > 0 ? "," : "", i);
    as_buf_append_str(&page, "]}");
    answer(ALL_PATH, 200, page.data);
    cr_expect_str_eq(list(),
                     "list the objects of target `apps`: more than 10000 objects: write a narrower "
                     "`selector`");
}

Test(kube_object_list, wrong_answers_are_errors)
{
    answer(ALL_PATH, 200, "{\"kind\":\"PodList\",\"items\":[]}");
    cr_expect(strstr(list(), "PartialObjectMetadataList"), "%s", said.data);
    answer(ALL_PATH, 200, PAGE("", "{\"metadata\":{\"namespace\":\"team-a\"}}"));
    cr_expect(strstr(list(), "items[0]"), "%s", said.data);
    answer(ALL_PATH, 500, "");
    cr_expect(strstr(list(), "list the objects of target `apps`: "), "%s", said.data);
}

Test(kube_object_list, a_call_ends_with_the_port)
{
    const struct as_object_list_request request = {.entry = entry};
    answer(ALL_PATH, 200, PAGE("", ""));
    (void)list();
    port->list(port, 7, &request, keep, NULL);
}
