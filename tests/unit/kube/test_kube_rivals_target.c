/*
 * Who else sizes the targets of a cluster, against a scripted API server: what is listed, how
 * often, who is told what of which target; answers that lie, are too large, come late or never.
 */
#include <alertscaler/base/log.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube/kube_writers.h"
#include "kube_client.h"

#define SCALED_OBJECTS "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects?limit=500"
#define HPAS           "/apis/autoscaling/v1/namespaces/shop/horizontalpodautoscalers?limit=500"
#define ABSENT         STATUS("the server could not find the requested resource", "")
#define HPA(name, owner, target)                                                                   \
    "{\"metadata\":{\"name\":\"" name "\"" owner "},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":" \
    "\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"" target "\"},\"minReplicas\":2,"              \
    "\"maxReplicas\":2}}"
#define OWNED              ",\"ownerReferences\":[{\"kind\":\"ScaledObject\",\"name\":\"so\"}]"
#define HPA_LIST(items)    LIST_OF("HorizontalPodAutoscalerList", "", items)
#define OBJECT_LIST(items) LIST_OF("ScaledObjectList", "", items)
#define SCALED_OBJECT(target)                                                                      \
    "{\"metadata\":{\"name\":\"so\"},\"spec\":{\"scaleTargetRef\":{\"name\":\"" target "\"}}}"

static struct as_kube_others_watch *watch;
static struct as_target_ref *web;
static char said[4000]; /* of each target that was told: "web: HorizontalPodAutoscaler a 2-2; " */
static unsigned told;

static void keep(void *context, const char *target, const struct as_other *others, size_t count)
{
    char line[2000];
    told++;
    snprintf(line, sizeof(line), "%s:", strrchr(target, '/') + 1);
    for (size_t i = 0; i < count; i++)
        snprintf(line + strlen(line), sizeof(line) - strlen(line), " %s %s %d-%d%s", others[i].kind,
                 others[i].name, others[i].min, others[i].max,
                 others[i].is_paused ? " paused" : "");
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s;", line);
}

static const char *said_since(void)
{
    static char last[sizeof(said)];
    memcpy(last, said, sizeof(last));
    said[0] = '\0';
    return last;
}

static void setup(void)
{
    setup_client();
    env.others_found = keep;
    watch = as_kube_others_new(&client);
    web = make_ref("apps/v1", "Deployment", "shop", "web");
}

static void teardown(void)
{
    watch = as_kube_others_free(watch);
    as_target_ref_free(web);
    teardown_client();
}

TestSuite(kube_others_watch, .init = setup, .fini = teardown);

static void look(const char *objects, const char *hpas)
{
    answer("GET", SCALED_OBJECTS, 200, objects);
    answer("GET", HPAS, 200, hpas);
    as_kube_others_note(watch, web, NULL);
    world_run(&world);
}

static void look_again(const char *objects, const char *hpas)
{
    world_advance(&world, AS_KUBE_OTHERS_EVERY_US);
    look(objects, hpas);
}

Test(kube_others_watch, who_aims_at_it)
{
    look(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "web") "," HPA("b", "", "other")));
    cr_expect_str_eq(said_since(), "web: HorizontalPodAutoscaler a 2-2;");
}

Test(kube_others_watch, kedas_own_hpa_is_not_named)
{
    look(OBJECT_LIST(SCALED_OBJECT("web")), HPA_LIST(HPA("keda-hpa-so", OWNED, "web")));
    cr_expect_str_eq(said_since(), "web: ScaledObject so 0-100;");
    look_again(OBJECT_LIST(""), HPA_LIST(HPA("keda-hpa-so", OWNED, "web")));
    cr_expect_str_eq(said_since(), "web: HorizontalPodAutoscaler keda-hpa-so 2-2;",
                     "its owner is not there");
}

Test(kube_others_watch, another_kind_or_group_of_this_name)
{
    struct as_target_ref *sets = make_ref("apps/v1", "StatefulSet", "shop", "web");
    struct as_target_ref *older = make_ref("apps/v1beta2", "Deployment", "shop", "web");
    struct as_target_ref *foreign = make_ref("example.com/v1", "Deployment", "shop", "web");
    look(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "web")));
    (void)said_since();
    as_kube_others_note(watch, sets, NULL);
    cr_expect_str_eq(said_since(), "web:;", "told at once, without another list");
    as_kube_others_note(watch, older, NULL);
    cr_expect_str_eq(said_since(), "web: HorizontalPodAutoscaler a 2-2;");
    as_kube_others_note(watch, foreign, NULL);
    cr_expect_str_eq(said_since(), "web:;");
    as_target_ref_free(sets);
    as_target_ref_free(older);
    as_target_ref_free(foreign);
}

Test(kube_others_watch, each_namespace_has_its_own)
{
    struct as_target_ref *blog = make_ref("apps/v1", "Deployment", "blog", "web");
    look(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "web")));
    (void)said_since();
    answer("GET", "/apis/keda.sh/v1alpha1/namespaces/blog/scaledobjects?limit=500", 200,
           OBJECT_LIST(""));
    answer("GET", "/apis/autoscaling/v1/namespaces/blog/horizontalpodautoscalers?limit=500", 200,
           HPA_LIST(""));
    as_kube_others_note(watch, blog, NULL);
    world_run(&world);
    cr_expect_str_eq(said_since(), "web:;", "the HPA of shop is no other of blog's");
    as_target_ref_free(blog);
}

Test(kube_others_watch, at_most_every_ten_minutes_and_only_while_observed)
{
    look(OBJECT_LIST(""), HPA_LIST(""));
    const size_t before = world.request_count;
    for (int i = 0; i < 9; i++) {
        world_advance(&world, AS_US_PER_MIN);
        as_kube_others_note(watch, web, NULL);
    }
    cr_expect_eq(world.request_count, before);
    world_advance(&world, AS_US_PER_H);
    cr_expect_eq(world.request_count, before, "nobody observes it");
    look(OBJECT_LIST(""), HPA_LIST(""));
    cr_expect_eq(world.request_count, before + 2);
}

Test(kube_others_watch, a_target_that_is_not_observed_is_forgotten)
{
    struct as_target_ref *other = make_ref("apps/v1", "Deployment", "shop", "other");
    look(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "other")));
    as_kube_others_note(watch, other, NULL);
    (void)said_since();
    for (int i = 0; i < 3; i++)
        look_again(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "other")));
    cr_expect_not_null(strstr(said_since(), "other: HorizontalPodAutoscaler a 2-2;"));
    look_again(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "other")));
    cr_expect_str_eq(said_since(), "web:;");
    as_target_ref_free(other);
}

/* What was known of the kind that cannot be listed stays. */
static void expect_unharmed(const char *why)
{
    cr_expect_str_eq(said_since(), "web: HorizontalPodAutoscaler a 2-2;", "%s", why);
}

Test(kube_others_watch, lists_that_lie_change_nothing)
{
    static const char *const lies[] = {LIST_OF("PodList", "", ""),
                                       OBJECT_LIST(HPA("b", "", "web")),
                                       "{}",
                                       "[]",
                                       "",
                                       "{\"kind\":\"HorizontalPodAutoscalerList\",\"items\":[7]}"};
    look(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "web")));
    (void)said_since();
    for (size_t i = 0; i < AS_ARRAY_SIZE(lies); i++) {
        look_again(OBJECT_LIST(""), lies[i]);
        expect_unharmed(lies[i]);
    }
    look_again(OBJECT_LIST(""), HPA_LIST(""));
    cr_expect_str_eq(said_since(), "web:;", "a list without it is no failure");
}

Test(kube_others_watch, answers_that_are_too_large_or_never_come_change_nothing)
{
    static const struct {
        enum as_http_outcome outcome;
        int status;
    } cases[] = {{AS_HTTP_TOO_LARGE, 0}, {AS_HTTP_TIMEOUT, 0}, {AS_HTTP_ANSWERED, 500}};
    look(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "web")));
    cr_expect_eq(get_last_request()->max_response, AS_KUBE_PODS_PAGE_BYTES_MAX);
    (void)said_since();
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        world_advance(&world, AS_KUBE_OTHERS_EVERY_US);
        answer("GET", SCALED_OBJECTS, 200, OBJECT_LIST(""));
        world_answer(&world, (struct world_answer){"GET", HPAS, cases[i].outcome, cases[i].status,
                                                   .body = ""});
        as_kube_others_note(watch, web, NULL);
        world_advance(&world, AS_US_PER_MIN);
        expect_unharmed("");
    }
}

static struct world_answer serve_page(void *context, const struct world_request *request)
{
    static char body[400000];
    char *end = stpcpy(body, "{\"kind\":\"HorizontalPodAutoscalerList\",\"metadata\":{"
                             "\"continue\":\"more\"},\"items\":[");
    const unsigned items = *(const unsigned *)context;
    for (unsigned i = 0; i < items; i++)
        end = stpcpy(stpcpy(end, i > 0 ? "," : ""), HPA("a", "", "web"));
    strcpy(end, "]}");
    const bool is_hpa = strstr(request->url, "horizontalpodautoscalers") != NULL;
    return (struct world_answer){.status = 200, .body = is_hpa ? body : OBJECT_LIST("")};
}

/* Empty pages for ever, and full ones for ever. */
Test(kube_others_watch, lists_without_an_end_change_nothing)
{
    static unsigned items;
    look(OBJECT_LIST(""), HPA_LIST(HPA("a", "", "web")));
    (void)said_since();
    world.serve = serve_page;
    world.serve_context = &items;
    for (items = 0; items <= 500; items += 500) {
        const size_t before = world.request_count;
        world_advance(&world, AS_KUBE_OTHERS_EVERY_US);
        as_kube_others_note(watch, web, NULL);
        world_run(&world);
        expect_unharmed(items ? "full" : "empty");
        cr_expect_leq(world.request_count - before,
                      1 + (items ? AS_KUBE_OTHERS_MAX / items + 1 : AS_KUBE_PODS_PAGES_MAX));
    }
}

Test(kube_others_watch, at_most_sixteen_are_named)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf items = AS_BUF_INIT(100000);
    for (unsigned i = 0; i < 2 * AS_OTHERS_MAX; i++)
        as_buf_printf(&items, "%s" HPA("a", "", "web"), i > 0 ? "," : "");
    AS_CLEANUP(as_buf_deinit) struct as_buf list = AS_BUF_INIT(100000);
    as_buf_printf(&list, HPA_LIST("%s"), items.data);
    look(OBJECT_LIST(""), list.data);
    const char *text = said_since();
    unsigned named = 0;
    for (; (text = strstr(text, "HorizontalPodAutoscaler")); text++)
        named++;
    cr_expect_eq(named, AS_OTHERS_MAX);
}

static char log_path[] = "/tmp/as-others-XXXXXX";

static void begin_log(void)
{
    const int file = mkstemp(log_path);
    cr_assert_geq(file, 0);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, file);
}

static unsigned count_logged(const char *part)
{
    static char text[20000];
    FILE *file = fopen(log_path, "r");
    cr_assert_not_null(file);
    const size_t size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[size] = '\0';
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

static void look_in(const char *namespace_, int status)
{
    char objects[200], hpas[200];
    struct as_target_ref *ref = make_ref("apps/v1", "Deployment", namespace_, "web");
    snprintf(objects, sizeof(objects),
             "/apis/keda.sh/v1alpha1/namespaces/%s/scaledobjects?limit=500", namespace_);
    snprintf(hpas, sizeof(hpas),
             "/apis/autoscaling/v1/namespaces/%s/horizontalpodautoscalers?limit=500", namespace_);
    answer("GET", objects, 404, ABSENT);
    answer("GET", hpas, status, status == 200 ? HPA_LIST("") : STATUS("may not", ""));
    as_kube_others_note(watch, ref, NULL);
    world_run(&world);
    as_target_ref_free(ref);
}

/* Rights in some namespaces and not in others are usual. */
Test(kube_others_watch, a_missing_right_is_said_once)
{
    begin_log();
    for (int i = 0; i < 3; i++) {
        look_in("shop", 403);
        look_in("blog", 200);
        look_in("mail", 403);
        world_advance(&world, AS_KUBE_OTHERS_EVERY_US);
    }
    cr_expect_eq(count_logged("it is not known who else sizes the targets"), 1);
    cr_expect_eq(count_logged("horizontalpodautoscalers.autoscaling: list"), 1);
    cr_expect_eq(count_logged("the cluster has none of this kind"), 1, "KEDA is not installed");
    look_in("shop", 200);
    look_in("mail", 200);
    look_in("blog", 200);
    world_advance(&world, AS_KUBE_OTHERS_EVERY_US);
    look_in("mail", 403);
    cr_expect_eq(count_logged("it is not known who else sizes the targets"), 2, "it is lost again");
    unlink(log_path);
}

/* The list is under way when the watch is freed. */
Test(kube_others_watch, an_end_amid_a_list)
{
    as_kube_others_note(watch, web, NULL);
    cr_expect_eq(told, 0);
}
