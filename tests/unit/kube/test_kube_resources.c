/*
 * kube/kubernetes_resources.h: requests and limits in units, the progress of a rollout, and what
 * kubelets say of a resize.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>

#include "kube/kubernetes_resources.h"

static struct as_error error;

static struct as_unit make_unit(const char *text)
{
    struct as_unit unit;
    cr_assert_eq(as_unit_parse(text, &unit, NULL), 0);
    return unit;
}

static const struct as_kube_part part = {"app", AS_RESOURCE_MEMORY};

/* Single quotes stand for double ones. */
static char *requote(const char *text)
{
    char *json = as_xstrdup(text);
    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return json;
}

/* ---- amounts ---- */

Test(kube_amounts, a_request_is_counted_in_units)
{
    static const struct {
        struct as_kube_amounts amounts;
        enum as_resource resource;
        const char *unit;
        bool keep;
        int32_t size, max;
    } rows[] = {
        {{"256Mi", "512Mi"}, AS_RESOURCE_MEMORY, "64Mi", false, 4, -1},
        {{"257Mi", "512Mi"}, AS_RESOURCE_MEMORY, "64Mi", false, 5, -1}, /* rounded up */
        {{"256Mi", "300Mi"}, AS_RESOURCE_MEMORY, "64Mi", true, 4, 4},   /* never above */
        {{"256Mi", "320Mi"}, AS_RESOURCE_MEMORY, "64Mi", true, 4, 5},
        {{"256Mi", "63Mi"}, AS_RESOURCE_MEMORY, "64Mi", true, 4, 0},
        {{"256Mi", ""}, AS_RESOURCE_MEMORY, "64Mi", true, 4, -1},
        {{"250m", "1"}, AS_RESOURCE_CPU, "100m", true, 3, 10},
        {{"1", "1500m"}, AS_RESOURCE_CPU, "500m", true, 2, 3},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_unit unit = make_unit(rows[i].unit);
        int32_t size = -7, max = -7;
        cr_assert_eq(as_kube_amounts_count(&rows[i].amounts, rows[i].resource, &unit, rows[i].keep,
                                           &size, &max, &error),
                     0, "%zu: %s", i, error.text);
        cr_expect_eq(size, rows[i].size, "%zu: %d", i, size);
        cr_expect_eq(max, rows[i].max, "%zu: %d", i, max);
    }
}

Test(kube_amounts, what_cannot_be_counted_says_why)
{
    const struct as_unit unit = make_unit("64Mi"), small = make_unit("1m");
    const struct as_kube_amounts none = {"", "512Mi"}, large = {"9E", ""};
    int32_t size, max;
    cr_expect_eq(
        as_kube_amounts_count(&none, AS_RESOURCE_MEMORY, &unit, false, &size, &max, &error),
        -ENOENT);
    cr_expect_str_eq(error.text, "it has no request of memory: set one first");
    cr_expect_eq(
        as_kube_amounts_count(&large, AS_RESOURCE_MEMORY, &small, false, &size, &max, &error),
        -ERANGE);
    cr_expect_not_null(strstr(error.text, "cannot be counted in units of 1m"), "%s", error.text);
}

Test(kube_amounts, a_limit_keeps_its_ratio_or_stays)
{
    static const struct {
        struct as_kube_amounts base;
        enum as_resource resource;
        const char *unit;
        bool keep;
        int32_t size;
        struct as_kube_amounts changed; /* request "": an error */
    } rows[] = {
        {{"256Mi", "512Mi"}, AS_RESOURCE_MEMORY, "64Mi", false, 5, {"320Mi", "640Mi"}},
        {{"256Mi", "300Mi"}, AS_RESOURCE_MEMORY, "64Mi", false, 5, {"320Mi", "384Mi"}}, /* 375 */
        {{"256Mi", "256Mi"}, AS_RESOURCE_MEMORY, "64Mi", false, 5, {"320Mi", "320Mi"}},
        {{"100Mi", "100Mi"}, AS_RESOURCE_MEMORY, "64Mi", false, 2, {"128Mi", "128Mi"}},
        {{"3", "10"}, AS_RESOURCE_CPU, "1", false, 1, {"1", "4"}}, /* 3.33 */
        {{"256Mi", ""}, AS_RESOURCE_MEMORY, "64Mi", false, 5, {"320Mi", ""}},
        {{"256Mi", "320Mi"}, AS_RESOURCE_MEMORY, "64Mi", true, 5, {"320Mi", "320Mi"}},
        {{"256Mi", "319Mi"}, AS_RESOURCE_MEMORY, "64Mi", true, 5, {"", ""}},
        {{"", "319Mi"}, AS_RESOURCE_MEMORY, "64Mi", false, 5, {"", ""}},
        {{"1", "9E"}, AS_RESOURCE_MEMORY, "1Gi", false, 5, {"", ""}},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_unit unit = make_unit(rows[i].unit);
        struct as_kube_amounts changed;
        const int status = as_kube_amounts_resize(&rows[i].base, rows[i].resource, &unit,
                                                  rows[i].keep, rows[i].size, &changed, &error);
        cr_assert_eq(status, *rows[i].changed.request ? 0 : -ERANGE, "%zu: %d", i, status);
        if (status)
            continue;
        cr_expect_str_eq(changed.request, rows[i].changed.request, "%zu: %s", i, changed.request);
        cr_expect_str_eq(changed.limit, rows[i].changed.limit, "%zu: %s", i, changed.limit);
    }
}

/* ---- workloads ---- */

#define POD_SPEC                                                                                   \
    "{'containers':[{'name':'app','resources':{'requests':{'memory':'256Mi'},'limits':{'memory':"  \
    "'512Mi'}}}]}"
#define WORKLOAD(kind, spec, status)                                                               \
    "{'kind':'" kind "','metadata':{'uid':'u-1','resourceVersion':'7','generation':2},'spec':{"    \
    "'replicas':3," spec "'selector':{'matchLabels':{'app':'cart'}},'template':{'spec':" POD_SPEC  \
    "}},'status':{" status "}}"

static int decode_workload(const char *kind, const char *text, struct as_kube_workload *workload)
{
    AS_CLEANUP(as_free_p) char *json = requote(text);
    error.text[0] = '\0';
    return as_kube_workload_decode(as_kube_workload_kind_find(kind), json, strlen(json), &part,
                                   workload, &error);
}

Test(kube_workload, a_rollout_has_ended_when_all_pods_are_new_and_there)
{
    static const struct {
        const char *kind, *json;
        bool is_running, has_failed;
    } rows[] = {
        {"Deployment",
         WORKLOAD("Deployment", "",
                  "'observedGeneration':2,'replicas':3,'updatedReplicas':3,'availableReplicas':3"),
         false, false},
        {"Deployment",
         WORKLOAD("Deployment", "",
                  "'observedGeneration':1,'replicas':3,'updatedReplicas':3,'availableReplicas':3"),
         true, false}, /* not seen yet */
        {"Deployment",
         WORKLOAD("Deployment", "",
                  "'observedGeneration':2,'replicas':3,'updatedReplicas':2,'availableReplicas':3"),
         true, false},
        {"Deployment",
         WORKLOAD("Deployment", "",
                  "'observedGeneration':2,'replicas':4,'updatedReplicas':3,'availableReplicas':3"),
         true, false}, /* an old one is left */
        {"Deployment",
         WORKLOAD("Deployment", "",
                  "'observedGeneration':2,'replicas':3,'updatedReplicas':3,'availableReplicas':2"),
         true, false},
        {"Deployment",
         WORKLOAD("Deployment", "",
                  "'observedGeneration':2,'replicas':3,'updatedReplicas':1,'availableReplicas':2,"
                  "'conditions':[{'type':'Progressing','reason':'ProgressDeadlineExceeded',"
                  "'message':'late'}]"),
         true, true},
        {"Deployment",
         WORKLOAD("Deployment", "",
                  "'observedGeneration':1,'replicas':3,'updatedReplicas':1,'availableReplicas':2,"
                  "'conditions':[{'type':'Progressing','reason':'ProgressDeadlineExceeded'}]"),
         true, false}, /* of the rollout before */
        {"Deployment", WORKLOAD("Deployment", "'paused':true,", "'observedGeneration':2"), false,
         false},
        {"StatefulSet",
         WORKLOAD("StatefulSet", "'updateStrategy':{'type':'OnDelete'},", "'observedGeneration':2"),
         false, false},
        {"StatefulSet",
         WORKLOAD("StatefulSet", "'updateStrategy':{'rollingUpdate':{'partition':2}},",
                  "'observedGeneration':2,'updatedReplicas':1,'availableReplicas':3"),
         false, false},
        {"StatefulSet",
         WORKLOAD("StatefulSet", "",
                  "'observedGeneration':2,'updatedReplicas':3,'readyReplicas':3"),
         false, false}, /* old versions */
        {"DaemonSet",
         WORKLOAD("DaemonSet", "",
                  "'observedGeneration':2,'desiredNumberScheduled':5,'updatedNumberScheduled':5,"
                  "'numberAvailable':4"),
         true, false},
        {"DaemonSet",
         WORKLOAD("DaemonSet", "",
                  "'observedGeneration':2,'desiredNumberScheduled':5,'updatedNumberScheduled':5,"
                  "'numberAvailable':5"),
         false, false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_workload workload;
        cr_assert_eq(decode_workload(rows[i].kind, rows[i].json, &workload), 0, "%zu: %s", i,
                     error.text);
        cr_expect_eq(workload.rollout.is_running, rows[i].is_running, "%zu", i);
        cr_expect_eq(workload.rollout.has_failed, rows[i].has_failed, "%zu", i);
        cr_expect_str_eq(workload.amounts.request, "256Mi");
        cr_expect_str_eq(workload.amounts.limit, "512Mi");
        cr_expect_str_eq(workload.selector, "app=cart");
        as_kube_workload_deinit(&workload);
    }
}

Test(kube_workload, a_container_that_is_not_there_is_told_with_those_that_are)
{
    struct as_kube_workload workload;
    cr_expect_eq(decode_workload("Deployment",
                                 "{'kind':'Deployment','metadata':{'uid':'u-1','resourceVersion':'"
                                 "7'},'spec':{'template':{'spec':{'containers':"
                                 "[{'name':'web'},{'name':'proxy'}]}}}}",
                                 &workload),
                 AS_KUBE_NO_CONTAINER);
    cr_expect_str_eq(error.text, "its pods have no container app, but web, proxy");
    cr_expect_eq(decode_workload("Deployment",
                                 "{'kind':'Deployment','metadata':{'uid':'u-1','resourceVersion':'"
                                 "7'},'spec':{'template':{'spec':{'containers':"
                                 "[{'name':'app','resources':{'requests':{'memory':'much'}}}]}}}}",
                                 &workload),
                 -EBADMSG);
    cr_expect_not_null(strstr(error.text, "container app: resources: no quantity of memory"), "%s",
                       error.text);
}

/* What the patch of a template remembers is what the next look finds. */
Test(kube_workload, a_patch_remembers_what_was_there)
{
    struct as_kube_workload workload;
    struct as_buf patch = AS_BUF_INIT(4096);
    const struct as_kube_amounts amounts = {"320Mi", "640Mi"};
    AS_CLEANUP(as_free_p)
    char *expected = requote(
        "{'metadata':{'annotations':{'alertscaler.io/resized':'{\\'container\\':\\'app\\',"
        "\\'memory\\':{\\'limits\\':{\\'memory\\':\\'512Mi\\'},\\'requests\\':{\\'memory\\':"
        "\\'256Mi\\'}}}'},'resourceVersion':'7'},'spec':{'template':{'spec':{'containers':[{"
        "'name':'app','resources':{'limits':{'memory':'640Mi'},'requests':{'memory':'320Mi'}}}]"
        "}}}}");
    cr_assert_eq(decode_workload("Deployment", WORKLOAD("Deployment", "", ""), &workload), 0);
    as_kube_template_patch_encode(&part, &workload, &amounts, &workload.amounts, &patch);
    cr_assert_eq(as_buf_check(&patch), 0);
    cr_expect_str_eq(patch.data, expected, "%s", patch.data);
    as_kube_workload_deinit(&workload);
    as_buf_deinit(&patch);
}

/* ---- pods ---- */

#define POD(name, hash, wanted, status)                                                            \
    "{'kind':'Pod','metadata':{'name':'" name "','resourceVersion':'9','generation':3,'labels':{"  \
    "'pod-template-hash':'" hash "'},'ownerReferences':[{'kind':'ReplicaSet','name':'cart-" hash   \
    "','controller':true}]},'spec':{'nodeName':'n','containers':[{'name':'app','resources':{"      \
    "'requests':{'memory':'" wanted "'}}}]},'status':{'phase':'Running'," status "}}"
#define GRANTED "'containerStatuses':[{'name':'app','resources':{'requests':{'memory':'256Mi'}}}]"
#define CONDITION(type, status, more)                                                              \
    GRANTED ",'conditions':[{'type':'" type "','status':'" status "'" more "}]"

static struct as_kube_sized_pods make_pods(void)
{
    return (struct as_kube_sized_pods){
        .part = part, .kind = "Deployment", .name = "cart", .uid = "u-1", .max = 3};
}

Test(kube_sized_pods, what_a_kubelet_answers)
{
    static const struct {
        const char *json;
        enum as_kube_resize resize;
        bool is_answered;
        const char *message, *has; /* the request that it has */
    } rows[] = {
        {POD("p", "a", "256Mi", GRANTED), AS_KUBE_RESIZE_NONE, true, "", "256Mi"},
        {POD("p", "a", "320Mi", GRANTED), AS_KUBE_RESIZE_NONE, false, "", "320Mi"},
        {POD("p", "a", "320Mi", "'observedGeneration':3," GRANTED), AS_KUBE_RESIZE_NONE, true, "",
         "320Mi"},
        {POD("p", "a", "320Mi",
             CONDITION("PodResizePending", "True", ",'reason':'Deferred','message':'no room'")),
         AS_KUBE_RESIZE_DEFERRED, true, "Deferred: no room", "256Mi"},
        {POD("p", "a", "320Mi",
             CONDITION("PodResizePending", "True", ",'reason':'Infeasible','message':'too big'")),
         AS_KUBE_RESIZE_INFEASIBLE, true, "Infeasible: too big", "256Mi"},
        {POD("p", "a", "320Mi", CONDITION("PodResizeInProgress", "True", "")),
         AS_KUBE_RESIZE_IN_PROGRESS, true, "InProgress", "320Mi"},
        {POD("p", "a", "320Mi", CONDITION("PodResizePending", "False", ",'reason':'Deferred'")),
         AS_KUBE_RESIZE_NONE, false, "", "320Mi"},
        {POD("p", "a", "320Mi",
             CONDITION("PodResizePending", "True", ",'reason':'Deferred','observedGeneration':2")),
         AS_KUBE_RESIZE_NONE, false, "", "320Mi"}, /* of an earlier spec */
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_sized_pods pods = make_pods();
        struct as_kube_sized_pod pod;
        AS_CLEANUP(as_free_p) char *json = requote(rows[i].json);
        cr_assert_eq(as_kube_sized_pod_decode(&pods, json, strlen(json), &pod, &error), 0,
                     "%zu: %s", i, error.text);
        cr_expect_eq(pod.resize, rows[i].resize, "%zu", i);
        cr_expect_eq(pod.is_answered, rows[i].is_answered, "%zu", i);
        cr_expect_str_eq(pod.message, rows[i].message, "%zu: %s", i, pod.message);
        cr_expect_str_eq(as_kube_sized_pod_get(&pod)->request, rows[i].has, "%zu", i);
        cr_expect(pod.is_living && pod.is_bound && pod.has_container, "%zu", i);
        as_kube_sized_pods_deinit(&pods);
    }
}

static int decode_list(struct as_kube_sized_pods *pods, const char *items)
{
    AS_CLEANUP(as_free_p) char *next = NULL;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(1 << 16);
    as_buf_printf(&text, "{'kind':'PodList','items':[%s]}", items);
    AS_CLEANUP(as_free_p) char *json = requote(text.data);
    error.text[0] = '\0';
    const int code = as_kube_sized_pods_decode(pods, json, strlen(json), &next, &error);
    as_kube_sized_pods_finish(pods);
    return code;
}

Test(kube_sized_pods, of_a_list_those_that_live_and_belong_to_the_workload)
{
    struct as_kube_sized_pods pods = make_pods();
    cr_assert_eq(
        decode_list(
            &pods,
            POD("c", "b", "320Mi", GRANTED) "," POD(
                "a", "a", "256Mi",
                GRANTED) ",{'metadata':{'name':'other','resourceVersion':'9'},'spec':{},'status':{}"
                         "},"
                         "{'metadata':{'name':'bare','resourceVersion':'9','labels':{'pod-template-"
                         "hash':'a'},"
                         "'ownerReferences':[{'kind':'ReplicaSet','name':'cart-a','controller'"
                         ":true}]},'spec':{'containers':[{'name':'web'}]}},"
                         "{'metadata':{'name':'gone','resourceVersion':'9','deletionTimestamp':'"
                         "2026-01-01T00:00:00Z'"
                         ",'labels':{'pod-template-hash':'a'},'ownerReferences':[{'kind':"
                         "'ReplicaSet','name':'cart-a','controller':true}]},'spec':{}}"),
        0, "%s", error.text);
    cr_assert_eq(pods.count, 2);
    cr_expect_eq(pods.without, 1);
    cr_expect_str_eq(pods.items[0].name, "a");
    cr_expect_str_eq(pods.items[1].name, "c");
    as_kube_sized_pods_deinit(&pods);
}

/* Their resize would be refused. Where all are like that, the refusal says why: an old kubelet. */
Test(kube_sized_pods, pods_whose_kubelets_have_said_nothing_are_left_out)
{
    static const char starting[] = POD("b", "a", "256Mi", "'containerStatuses':[]");
    struct as_kube_sized_pods pods = make_pods();
    char items[2048];
    snprintf(items, sizeof(items), "%s,%s", starting, POD("a", "a", "320Mi", GRANTED));
    cr_assert_eq(decode_list(&pods, items), 0, "%s", error.text);
    cr_assert_eq(pods.count, 1);
    cr_expect_eq(pods.silent, 1);
    cr_expect_str_eq(pods.items[0].name, "a");
    as_kube_sized_pods_clear(&pods);
    cr_assert_eq(decode_list(&pods, starting), 0, "%s", error.text);
    cr_expect_eq(pods.count, 1);
    cr_expect_eq(pods.silent, 0);
    as_kube_sized_pods_deinit(&pods);
}

Test(kube_sized_pods, more_than_may_be_are_refused)
{
    struct as_kube_sized_pods pods = make_pods();
    cr_expect_eq(
        decode_list(&pods, POD("a", "a", "1Mi", GRANTED) "," POD("b", "a", "1Mi", GRANTED) "," POD(
                               "c", "a", "1Mi", GRANTED) "," POD("d", "a", "1Mi", GRANTED)),
        -E2BIG);
    cr_expect_str_eq(error.text, "more than 3 pods");
    as_kube_sized_pods_deinit(&pods);
}
