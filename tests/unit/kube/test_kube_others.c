/*
 * kube/kube_writers.h: HPAs and ScaledObjects with their defaults, how KEDA pauses, what lies
 * or is too much; and the manager of a field.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>

#include "kube/kube_writers.h"

static struct as_error error;
static struct as_kube_others others;

static void clean(void)
{
    as_kube_others_deinit(&others);
}

TestSuite(kube_others, .fini = clean);
TestSuite(kube_manager);

#define LIST(kind, next, items)                                                                    \
    "{\"kind\":\"" kind "List\",\"metadata\":{\"continue\":\"" next "\"},\"items\":[" items "]}"
#define ITEM(metadata, aim, more)                                                                  \
    "{\"metadata\":{\"name\":\"o\"" metadata "},\"spec\":{\"scaleTargetRef\":{" aim "}" more "}}"
#define WEB "\"name\":\"web\""

static int read_page(as_kube_others_decode_fn *decode, const char *json)
{
    char *next = NULL;
    others.max = others.max ? others.max : 10;
    const int status = decode(&others, json, strlen(json), &next, &error);
    free(next);
    return status;
}

static const struct as_kube_other *read_hpa(const char *json)
{
    cr_assert_eq(read_page(as_kube_hpas_decode, json), 0, "%s", error.text);
    cr_assert_eq(others.count, 1);
    return &others.items[0];
}

static const struct as_kube_other *read_scaled_object(const char *json)
{
    as_kube_others_clear(&others);
    cr_assert_eq(read_page(as_kube_scaled_objects_decode, json), 0, "%s", error.text);
    cr_assert_eq(others.count, 1);
    return &others.items[0];
}

static void expect_bounds(const struct as_kube_other *other, int32_t min, int32_t max, bool paused)
{
    cr_expect_eq(other->min, min, "min %d", other->min);
    cr_expect_eq(other->max, max, "max %d", other->max);
    cr_expect_eq(other->is_paused, paused);
}

Test(kube_others, an_hpa)
{
    const struct as_kube_other *other = read_hpa(LIST(
        "HorizontalPodAutoscaler", "",
        ITEM(",\"ownerReferences\":[{\"kind\":\"Team\",\"name\":\"a\"},{\"kind\":\"ScaledObject\","
             "\"name\":\"so\"}]",
             "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\"," WEB,
             ",\"minReplicas\":3,\"maxReplicas\":3")));
    cr_expect_str_eq(other->name, "o");
    cr_expect_str_eq(other->group, "apps");
    cr_expect_str_eq(other->kind, "Deployment");
    cr_expect_str_eq(other->target, "web");
    cr_expect_str_eq(other->owner, "so");
    expect_bounds(other, 3, 3, false);
}

Test(kube_others, what_an_hpa_does_not_say)
{
    const struct as_kube_other *other =
        read_hpa(LIST("HorizontalPodAutoscaler", "",
                      ITEM(",\"annotations\":{\"autoscaling.keda.sh/paused\":\"true\"}",
                           "\"apiVersion\":\"v1\",\"kind\":\"ReplicationController\"," WEB, "")));
    cr_expect_str_eq(other->group, "");
    cr_expect_str_eq(other->owner, "");
    expect_bounds(other, 1, -1, false);
}

Test(kube_others, bounds_that_are_no_sizes)
{
    expect_bounds(read_hpa(LIST("HorizontalPodAutoscaler", "",
                                ITEM("", WEB, ",\"minReplicas\":\"many\",\"maxReplicas\":-7"))),
                  1, -1, false);
}

Test(kube_others, what_a_scaled_object_does_not_say)
{
    const struct as_kube_other *other =
        read_scaled_object(LIST("ScaledObject", "", ITEM("", WEB, "")));
    cr_expect_str_eq(other->group, "apps");
    cr_expect_str_eq(other->kind, "Deployment");
    expect_bounds(other, 0, 100, false);
}

#define PAUSED(text)                                                                               \
    LIST("ScaledObject", "",                                                                       \
         ITEM(",\"annotations\":{\"autoscaling.keda.sh/paused\":" text "}", WEB,                   \
              ",\"minReplicaCount\":2,\"maxReplicaCount\":9"))
#define FIXED(text)                                                                                \
    LIST("ScaledObject", "",                                                                       \
         ITEM(",\"annotations\":{\"autoscaling.keda.sh/paused\":\"false\","                        \
              "\"autoscaling.keda.sh/paused-replicas\":" text "}",                                 \
              WEB, ",\"minReplicaCount\":2,\"maxReplicaCount\":9"))

Test(kube_others, keda_pauses_by_annotations)
{
    expect_bounds(read_scaled_object(PAUSED("\"true\"")), 2, 9, true);
    expect_bounds(read_scaled_object(PAUSED("\"false\"")), 2, 9, false);
    expect_bounds(read_scaled_object(PAUSED("\"0\"")), 2, 9, false);
    expect_bounds(read_scaled_object(PAUSED("\"yes please\"")), 2, 9, true);
    expect_bounds(read_scaled_object(FIXED("\"0\"")), 0, 0, true);
    expect_bounds(read_scaled_object(FIXED("\"7\"")), 7, 7, true);
    expect_bounds(read_scaled_object(FIXED("\"-7\"")), 2, 9, true);
    expect_bounds(read_scaled_object(FIXED("\"99999999999\"")), 2, 9, true);
    expect_bounds(read_scaled_object(FIXED("\"\"")), 2, 9, true);
}

Test(kube_others, what_aims_at_nothing_is_left_out)
{
    char long_name[400];
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    char json[1000];
    snprintf(json, sizeof(json),
             LIST("HorizontalPodAutoscaler", "",
                  ITEM("", "\"kind\":\"Deployment\"", "") "," ITEM(
                      "", "\"name\":7",
                      "") ",{},"
                          "{\"metadata\":{},\"spec\":{\"scaleTargetRef\":{\"name\":\"web\"}}},"
                          "{\"metadata\":{\"name\":\"o\"},\"spec\":[]}," ITEM("", "\"name\":\"%s\"",
                                                                              "")),
             long_name);
    cr_assert_eq(read_page(as_kube_hpas_decode, json), 0, "%s", error.text);
    cr_expect_eq(others.count, 0);
}

Test(kube_others, lists_of_another_kind_and_no_lists)
{
    static const char *const wrong[] = {LIST("ScaledObject", "", ""),
                                        "{\"kind\":\"HorizontalPodAutoscalerList\",\"items\":7}",
                                        LIST("HorizontalPodAutoscaler", "", "7"),
                                        "[]",
                                        "{",
                                        ""};
    for (size_t i = 0; i < AS_ARRAY_SIZE(wrong); i++) {
        error = AS_ERROR_INIT;
        cr_expect_eq(read_page(as_kube_hpas_decode, wrong[i]), -EBADMSG, "%s", wrong[i]);
        cr_expect(*error.text, "%s", wrong[i]);
    }
    cr_expect_eq(read_page(as_kube_scaled_objects_decode, LIST("HorizontalPodAutoscaler", "", "")),
                 -EBADMSG);
}

Test(kube_others, more_than_the_limit)
{
    others.max = 2;
    cr_expect_eq(read_page(as_kube_hpas_decode, LIST("HorizontalPodAutoscaler", "next",
                                                     ITEM("", WEB, "") "," ITEM("", WEB, ""))),
                 0);
    cr_expect_eq(
        read_page(as_kube_hpas_decode, LIST("HorizontalPodAutoscaler", "", ITEM("", WEB, ""))),
        -E2BIG);
    cr_expect_str_eq(error.text, "more than 2");
}

#define ENTRY(manager, time, fields)                                                               \
    "{\"manager\":\"" manager "\",\"time\":\"" time "\",\"fieldsV1\":" fields "}"
#define OBJECT(entries) "{\"metadata\":{\"managedFields\":[" entries "]}}"
#define REPLICAS        "{\"f:spec\":{\"f:replicas\":{}}}"

static char manager[AS_MANAGER_SIZE];

static const char *find(const char *path, const char *json)
{
    struct as_field_path field;
    cr_assert_eq(as_field_path_parse(path, &field, &error), 0, "%s", error.text);
    cr_assert_eq(as_kube_manager_decode(json, strlen(json), &field, manager, &error), 0, "%s",
                 error.text);
    return manager;
}

Test(kube_manager, who_set_it_last)
{
    static const char json[] = OBJECT(ENTRY("kubectl", "2026-11-24T10:00:02Z", REPLICAS) "," ENTRY(
        "hpa", "2026-11-24T10:00:03Z",
        REPLICAS) "," ENTRY("argo", "2026-11-24T10:00:01Z",
                            REPLICAS) "," ENTRY("other", "2026-11-24T10:00:09Z",
                                                "{\"f:spec\":{\"f:template\":{}}}"));
    cr_expect_str_eq(find("spec.replicas", json), "hpa");
    cr_expect_str_eq(find("spec.template", json), "other");
    cr_expect_str_eq(find("spec.paused", json), "");
}

#define CONTAINERS(inner)                                                                          \
    "{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:containers\":{" inner "}}}}}"

Test(kube_manager, a_field_of_an_element)
{
    static const char json[] = OBJECT(ENTRY(
        "vpa", "2026-11-24T10:00:02Z",
        CONTAINERS(
            "\"k:{\\\"name\\\":\\\"app\\\"}\":{\".\":{},\"f:resources\":{"
            "\"f:requests\":{\"f:memory\":{}}}}")) "," ENTRY("other", "2026-11-24T10:00:03Z",
                                                             CONTAINERS(
                                                                 "\"k:{\\\"name\\\":"
                                                                 "\\\"side\\\"}\":{\"f:"
                                                                 "resources\":{\"f:"
                                                                 "requests\":{"
                                                                 "\"f:memory\":{}}}},\"k:{"
                                                                 "\":{},\"k:7\":{},\"v:7\":{"
                                                                 "}")) "," ENTRY("ports",
                                                                                 "2026-11-"
                                                                                 "24T10:00:"
                                                                                 "03Z",
                                                                                 CONTAINERS("\"k:{"
                                                                                            "\\\"na"
                                                                                            "me\\\""
                                                                                            ":\\\"a"
                                                                                            "pp\\\""
                                                                                            "}\":{"
                                                                                            "\"f:"
                                                                                            "ports"
                                                                                            "\":{"
                                                                                            "\"k:{"
                                                                                            "\\\"co"
                                                                                            "ntaine"
                                                                                            "rPort"
                                                                                            "\\\":"
                                                                                            "80,"
                                                                                            "\\\"pr"
                                                                                            "otocol"
                                                                                            "\\\":"
                                                                                            "\\\"TC"
                                                                                            "P\\\"}"
                                                                                            "\":{"
                                                                                            "\"f:"
                                                                                            "hostPo"
                                                                                            "rt\":{"
                                                                                            "}}}"
                                                                                            "}")));
    static const char app[] = "spec.template.spec.containers[name=app]";
    char path[200];
    snprintf(path, sizeof(path), "%s.resources.requests.memory", app);
    cr_expect_str_eq(find(path, json), "vpa");
    snprintf(path, sizeof(path), "%s.resources.requests.cpu", app);
    cr_expect_str_eq(find(path, json), "");
    snprintf(path, sizeof(path), "%s.ports[containerPort=80].hostPort", app);
    cr_expect_str_eq(find(path, json), "ports");
}

Test(kube_manager, an_atomic_list_is_owned_as_a_whole)
{
    static const char json[] =
        OBJECT(ENTRY("team", "2026-11-24T10:00:02Z", "{\"f:spec\":{\"f:rules\":{}}}"));
    cr_expect_str_eq(find("spec.rules[name=a].size", json), "team");
}

Test(kube_manager, what_names_nobody)
{
    static const char *const objects[] = {
        "{}",
        "{\"metadata\":{\"managedFields\":7}}",
        OBJECT("7,{},{\"manager\":7,\"fieldsV1\":" REPLICAS "}"),
        OBJECT("{\"fieldsV1\":" REPLICAS "}"),
        OBJECT("{\"manager\":\"a\"},{\"manager\":\"b\",\"fieldsV1\":{}}"),
        OBJECT("{\"manager\":\"a\",\"fieldsV1\":{\"f:spec\":[1]}}"),
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(objects); i++)
        cr_expect_str_eq(find("spec.replicas", objects[i]), "", "%s", objects[i]);
}

Test(kube_manager, a_long_name_is_cut_and_no_json_is_an_error)
{
    char json[1000], name[400];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    snprintf(json, sizeof(json), OBJECT(ENTRY("%s", "", REPLICAS)), name);
    cr_expect_eq(strlen(find("spec.replicas", json)), AS_MANAGER_SIZE - 1);
    struct as_field_path field;
    cr_assert_eq(as_field_path_parse("spec.replicas", &field, &error), 0);
    cr_expect_eq(as_kube_manager_decode("[", 1, &field, manager, &error), -EBADMSG);
}
