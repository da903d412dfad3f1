/*
 * The facts of a cluster by its watches, against a scripted API server: budgets are listed before
 * pods, pods anew when a budget selects by a new label, and what is too large later.
 */
#include <alertscaler/kube/cluster_watch.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>

#include "kube_client.h"

#define BUDGET(name, key)                                                                          \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"resourceVersion\":\"2\"},"      \
    "\"spec\":{\"selector\":{\"matchLabels\":{\"" key "\":\"x\"}}},\"status\":{}}"
#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"shop\",\"labels\":{\"app\":\"x\",\"tier\":"     \
    "\"x\","                                                                                       \
    "\"pod-name\":\"p\"}},\"spec\":{\"containers\":[]},\"status\":{}}"

static struct as_cluster_watch *watch;
static unsigned told, pod_lists, node_lists;
static char error_text[512], labels[256];
static bool is_large;

/* Of nodes: as many labels as there may be, so that a few fill the memory. */
static const char *print_large_nodes(void)
{
    static struct as_buf page;
    page = page.data ? page : AS_BUF_INIT((size_t)256 << 20);
    as_buf_clear(&page);
    as_buf_append_str(&page, "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"1\"},"
                             "\"items\":[");
    for (int i = 0; i < 800; i++) {
        as_buf_printf(&page, "%s{\"metadata\":{\"name\":\"n%d\",\"labels\":{", i ? "," : "", i);
        for (int k = 0; k < 900; k++)
            as_buf_printf(&page, "%s\"label-%050d\":\"value-%050d\"", k ? "," : "", k, i);
        as_buf_append_str(&page, "}},\"spec\":{},\"status\":{}}");
    }
    as_buf_append_str(&page, "]}");
    cr_assert_not(page.failed);
    return page.data;
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    struct world_answer answer = {.status = 200, .body = ""};
    if (strstr(request->url, "/poddisruptionbudgets?") && strstr(request->url, "watch=true")) {
        answer.stays = true;
    } else if (strstr(request->url, "watch=true")) { /* only one answer may stay */
        answer.status = 503;
        answer.retry_after = "3600";
    } else if (strstr(request->url, "/nodes?")) {
        node_lists++;
        answer.body = is_large ? print_large_nodes()
                               : "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"1\"},"
                                 "\"items\":[]}";
    } else if (strstr(request->url, "/pods?")) {
        pod_lists++;
        answer.body =
            "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" POD "]}";
    } else {
        answer.body = "{\"kind\":\"PodDisruptionBudgetList\",\"metadata\":{\"resourceVersion\":"
                      "\"1\"},\"items\":[" BUDGET("a", "app") "]}";
    }
    return answer;
}

static void setup(void)
{
    setup_client();
    world.serve = serve;
    watch = as_cluster_watch_new(&client);
}

static void teardown(void)
{
    as_cluster_watch_free(watch);
    teardown_client();
}

TestSuite(cluster_watch, .init = setup, .fini = teardown);

static void keep(void *context, const struct as_cluster *cluster, const struct as_error *error)
{
    told++;
    snprintf(error_text, sizeof(error_text), "%s", cluster ? "" : error->text);
    labels[0] = '\0';
    if (!cluster)
        return;
    const struct as_labels *kept = cluster->pods[0].pod_class->labels;
    for (uint32_t i = 0; i < kept->count; i++)
        snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s ",
                 kept->items[i].name);
}

static void ask(void)
{
    const unsigned before = told;
    struct as_cluster_ask *asked = as_cluster_watch_ask(watch, keep, NULL);
    cr_assert_not_null(asked);
    world_run(&world);
    for (int i = 0; i < 20 && told == before; i++)
        world_advance(&world, AS_US_PER_S);
    cr_assert_eq(told, before + 1);
}

Test(cluster_watch, keeps_the_labels_that_budgets_select_by)
{
    ask();
    cr_expect_str_eq(error_text, "");
    cr_expect_str_eq(labels, "app ");
    cr_expect_eq(pod_lists, 1, "budgets come first");
}

static void add_budget(const char *event)
{
    world_feed(&world, event, strlen(event));
    world_run(&world);
}

Test(cluster_watch, lists_pods_anew_for_a_budget_that_selects_by_another_label)
{
    ask();
    add_budget("{\"type\":\"ADDED\",\"object\":" BUDGET("b", "tier") "}\n");
    ask();
    cr_expect_str_eq(labels, "app tier ");
    cr_expect_eq(pod_lists, 2);
    add_budget("{\"type\":\"ADDED\",\"object\":" BUDGET("c", "tier") "}\n");
    ask();
    cr_expect_eq(pod_lists, 2, "the label is kept already");
    add_budget("{\"type\":\"ADDED\",\"object\":" BUDGET("d", "pod-name") "}\n");
    ask();
    cr_expect_eq(pod_lists, 2, "once a minute at most");
    world_advance(&world, AS_CLUSTER_WATCH_RELIST_US);
    ask();
    cr_expect_str_eq(labels, "app pod-name tier ");
    cr_expect_eq(pod_lists, 3);
}

Test(cluster_watch, is_asked_for_nothing_by_a_look)
{
    cr_expect_null(as_cluster_watch_find(watch));
    struct as_facts_view view;
    cr_expect_not(as_cluster_watch_read(watch, &view));
    cr_expect_eq(world.request_count, 0);
    ask();
    cr_expect_not_null(as_cluster_watch_find(watch));
    cr_assert(as_cluster_watch_read(watch, &view));
    cr_expect_eq(view.objects[AS_CLUSTER_PODS], 1);
    cr_expect_eq(view.objects[AS_CLUSTER_BUDGETS], 1);
}

/* The facts name the reason, and after five minutes the next question has the cluster listed. */
Test(cluster_watch, a_cluster_that_is_too_large_is_listed_again_after_five_minutes)
{
    is_large = true;
    ask();
    cr_expect(strstr(error_text, "need more than 67108864 bytes"), "%s", error_text);
    cr_expect_eq(node_lists, 1);
    is_large = false;
    world_advance(&world, AS_CLUSTER_WATCH_LARGE_US - AS_US_PER_MIN);
    ask();
    cr_expect(strstr(error_text, "need more than"), "%s", error_text);
    cr_expect_eq(node_lists, 1);
    world_advance(&world, AS_US_PER_MIN);
    ask();
    cr_expect_str_eq(error_text, "");
    cr_expect_eq(node_lists, 2);
}
