/*
 * kube/kube_pods.h: selectors of old and new Scales, pods with all data of HPA's arithmetic,
 * and a reason for other documents.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>

#include "kube/kube_pods.h"

static struct as_error error;

/* Selectors */

#define SCALE(status) "{\"kind\":\"Scale\",\"status\":" status "}"

Test(kubernetes_selector, is_the_text_of_any_version)
{
    static const struct {
        const char *json, *selector; /* NULL: none */
    } rows[] = {
        {SCALE("{\"replicas\":3,\"selector\":\"app=web\"}"), "app=web"},
        {SCALE("{\"selector\":\"app in (a,b),!x\"}"), "app in (a,b),!x"},
        /* extensions/v1beta1 and apps/v1beta: a map, and beside it the text */
        {SCALE("{\"selector\":{\"app\":\"web\"},\"targetSelector\":\"app=web\"}"), "app=web"},
        {SCALE("{\"targetSelector\":\"app=web\"}"), "app=web"},
        {SCALE("{\"selector\":null,\"targetSelector\":\"app=web\"}"), "app=web"},
        {SCALE("{\"selector\":\"\"}"), NULL},
        {SCALE("{\"selector\":{}}"), NULL},
        {SCALE("{}"), NULL},
        {SCALE("null"), NULL},
        {"{}", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p) char *selector = NULL;
        int code = as_kube_selector_decode(rows[i].json, strlen(rows[i].json), &selector, &error);
        cr_assert_eq(code, 0, "%s: %s", rows[i].json, error.text);
        cr_expect(rows[i].selector ? selector && strcmp(selector, rows[i].selector) == 0
                                   : !selector,
                  "%s: %s", rows[i].json, selector);
    }
}

Test(kubernetes_selector, what_is_none_is_refused_by_name)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"", "not JSON"},
        {"[]", "expected a JSON object"},
        {SCALE("[]"), "status: expected an object"},
        {SCALE("{\"selector\":7}"), "status.selector: expected a string"},
        {SCALE("{\"selector\":[\"app=web\"]}"), "status.selector: expected a string"},
        {SCALE("{\"targetSelector\":{}}"), "status.selector: expected a string"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char *selector = NULL;
        cr_expect_eq(as_kube_selector_decode(rows[i].json, strlen(rows[i].json), &selector, &error),
                     -EBADMSG, "%s", rows[i].json);
        cr_expect_null(selector);
        cr_expect(strstr(error.text, rows[i].error) != NULL, "%s: %s", rows[i].json, error.text);
    }
}

/* Pods */

#define LIST(items)     "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[" items "]}"
#define POD(name, more) "{\"metadata\":{\"name\":\"" name "\"}" more "}"

static struct as_kube_pods pods;

static void setup(void)
{
    pods = AS_KUBE_PODS_INIT(100);
}

static void teardown(void)
{
    as_kube_pods_deinit(&pods);
}

TestSuite(kubernetes_pods, .init = setup, .fini = teardown);

static int decode(const char *json)
{
    char *next = NULL;
    int code = as_kube_pods_decode(&pods, json, strlen(json), &next, &error);
    free(next);
    return code;
}

/* The one pod of a list. */
static const struct as_pod_seen *decode_one(const char *json)
{
    as_kube_pods_clear(&pods);
    int code = decode(json);
    cr_assert_eq(code, 0, "%s: %s", json, error.text);
    as_kube_pods_finish(&pods);
    cr_assert_eq(pods.count, 1);
    return &pods.items[0];
}

static int64_t to_us(const char *time)
{
    as_wall_time at;
    cr_assert_eq(as_wall_time_parse(time, strlen(time), &at), 0);
    return at.us;
}

Test(kubernetes_pods, a_whole_pod)
{
    const struct as_pod_seen *pod = decode_one(LIST(
        "{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"creationTimestamp\":\"2026-11-"
        "20T09:00:00Z\",\"deletionTimestamp\":null,\"annotations\":{\"a\":\"nul \\u0000\"}},"
        "\"spec\":{\"containers\":[{\"name\":\"web\",\"image\":\"web\",\"resources\":{\"limits\":{"
        "\"cpu\":\"1\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"250m\",\"memory\":\"512Mi\"}}}],"
        "\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"
        "\"ContainersReady\",\"status\":\"False\",\"lastTransitionTime\":\"2026-11-20T08:00:00Z\"},"
        "{\"type\":\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":"
        "\"2026-11-20T09:00:20Z\"}],\"startTime\":\"2026-11-20T09:00:01Z\"}}"));
    cr_expect_str_eq(pod->name, "web-1");
    cr_expect_eq(pod->phase, AS_POD_RUNNING);
    cr_expect_eq(pod->ready, AS_TRUE);
    cr_expect_not(pod->deleting);
    cr_expect(pod->start_time.set);
    cr_expect_eq(pod->start_time.at.us, to_us("2026-11-20T09:00:01Z"));
    cr_expect(pod->ready_since.set);
    cr_expect_eq(pod->ready_since.at.us, to_us("2026-11-20T09:00:20Z"));
    cr_expect_eq(pod->requests[AS_RESOURCE_CPU], 0.25);
    cr_expect_eq(pod->requests[AS_RESOURCE_MEMORY], 536870912.0);
    cr_expect_eq(pod->limits[AS_RESOURCE_CPU], 1.0);
    cr_expect_eq(pod->limits[AS_RESOURCE_MEMORY], 1073741824.0);
}

Test(kubernetes_pods, what_is_not_said_is_not_known)
{
    const struct as_pod_seen *pod = decode_one(LIST(POD("web-1", "")));
    cr_expect_eq(pod->phase, AS_POD_UNKNOWN);
    cr_expect_eq(pod->ready, AS_UNKNOWN);
    cr_expect_not(pod->deleting);
    cr_expect_not(pod->start_time.set);
    cr_expect_not(pod->ready_since.set);
    for (int i = 0; i < AS_RESOURCE_COUNT; i++) {
        cr_expect(isnan(pod->requests[i]));
        cr_expect(isnan(pod->limits[i]));
    }
}

Test(kubernetes_pods, phases_and_conditions_are_kubernetes_words)
{
    static const struct {
        const char *status;
        enum as_pod_phase phase;
        enum as_tristate ready;
        bool has_since;
    } rows[] = {
        {"{\"phase\":\"Pending\"}", AS_POD_PENDING, AS_UNKNOWN, false},
        {"{\"phase\":\"Running\"}", AS_POD_RUNNING, AS_UNKNOWN, false},
        {"{\"phase\":\"Succeeded\"}", AS_POD_SUCCEEDED, AS_UNKNOWN, false},
        {"{\"phase\":\"Failed\"}", AS_POD_FAILED, AS_UNKNOWN, false},
        {"{\"phase\":\"Unknown\"}", AS_POD_UNKNOWN, AS_UNKNOWN, false},
        {"{\"phase\":\"running\"}", AS_POD_UNKNOWN, AS_UNKNOWN, false},
        {"{\"phase\":\"\"}", AS_POD_UNKNOWN, AS_UNKNOWN, false},
        {"{\"phase\":7}", AS_POD_UNKNOWN, AS_UNKNOWN, false},
        {"{\"conditions\":null}", AS_POD_UNKNOWN, AS_UNKNOWN, false},
        {"{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", AS_POD_UNKNOWN, AS_TRUE,
         false},
        {"{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"lastTransitionTime\":"
         "\"2026-11-20T09:00:20Z\"}]}",
         AS_POD_UNKNOWN, AS_FALSE, true},
        {"{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\",\"lastTransitionTime\":"
         "\"2026-11-20T09:00:20Z\"}]}",
         AS_POD_UNKNOWN, AS_UNKNOWN, true},
        {"{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Perhaps\",\"lastTransitionTime\":"
         "null}]}",
         AS_POD_UNKNOWN, AS_UNKNOWN, false},
        {"{\"conditions\":[{\"type\":\"ready\",\"status\":\"True\"},{},7]}", AS_POD_UNKNOWN,
         AS_UNKNOWN, false},
        /* the first one counts */
        {"{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},{\"type\":\"Ready\","
         "\"status\":\"True\"}]}",
         AS_POD_UNKNOWN, AS_FALSE, false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *json = as_xasprintf(LIST(POD("p", ",\"status\":%s")), rows[i].status);
        const struct as_pod_seen *pod = decode_one(json);
        cr_expect_eq(pod->phase, rows[i].phase, "%s", rows[i].status);
        cr_expect_eq(pod->ready, rows[i].ready, "%s", rows[i].status);
        cr_expect_eq(pod->ready_since.set, rows[i].has_since, "%s", rows[i].status);
    }
}

Test(kubernetes_pods, a_deletion_time_means_deleting)
{
    cr_expect(decode_one(LIST("{\"metadata\":{\"name\":\"p\",\"deletionTimestamp\":\"2026-11-20T"
                              "09:00:20Z\",\"deletionGracePeriodSeconds\":30}}"))
                  ->deleting);
}

#define CONTAINER(requests, limits)                                                                \
    "{\"resources\":{\"requests\":{" requests "},\"limits\":{" limits "}}}"
#define SIDECAR(requests)                                                                          \
    "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{" requests "}}}"
#define CPU(text)    "\"cpu\":\"" text "\""
#define MEMORY(text) "\"memory\":\"" text "\""

#define OF_THE_POD(requests, limits)                                                               \
    ",\"resources\":{\"requests\":{" requests "},\"limits\":{" limits "}}"

/* HPA: the sum over containers and restartable init containers; one that says nothing makes the
 * pod's unknown. What the pod says of itself goes before that. */
Test(kubernetes_pods, resources_are_sums_over_what_runs_at_the_same_time)
{
    static const struct {
        const char *spec;
        double cpu, memory, cpu_limit; /* NaN: not known */
    } rows[] = {
        {"\"containers\":[" CONTAINER(CPU("100m") "," MEMORY("1Mi"), CPU("1")) "]", 0.1, 1048576,
         1},
        {"\"containers\":[" CONTAINER(CPU("100m"), "") "," CONTAINER(CPU("150m"), CPU("2")) "]",
         0.25, NAN, NAN},
        {"\"containers\":[" CONTAINER(CPU("100m"), "") "," CONTAINER("", "") "]", NAN, NAN, NAN},
        {"\"containers\":[{}," CONTAINER(CPU("100m"), "") "]", NAN, NAN, NAN},
        {"\"containers\":[{\"resources\":{}}]", NAN, NAN, NAN},
        {"\"containers\":[{\"resources\":{\"requests\":null}}]", NAN, NAN, NAN},
        {"\"containers\":[{\"resources\":{\"requests\":{\"cpu\":null}}}]", NAN, NAN, NAN},
        /* a limit without a request: admission would have made one of it, nobody else does */
        {"\"containers\":[" CONTAINER("", CPU("1") "," MEMORY("1Mi")) "]", NAN, NAN, 1},
        /* init containers run before the others, sidecars beside them */
        {"\"containers\":[" CONTAINER(CPU("1"), "") "],\"initContainers\":[" CONTAINER(CPU("8"),
                                                                                       "") "]",
         1, NAN, NAN},
        {"\"containers\":[" CONTAINER(CPU("1"), CPU("1")) "],\"initContainers\":[{}," SIDECAR(
             CPU("500m")) "]",
         1.5, NAN, NAN},
        {"\"containers\":[" CONTAINER(CPU("1"), "") "],\"initContainers\":[{\"restartPolicy\":"
                                                    "\"Always\"}]",
         NAN, NAN, NAN},
        {"\"containers\":[" CONTAINER(CPU("1"), "") "],\"initContainers\":[{\"restartPolicy\":"
                                                    "\"OnFailure\"}]",
         1, NAN, NAN},
        {"\"containers\":[" CONTAINER(CPU("0") "," MEMORY("0"), "") "]", 0, 0, NAN},
        {"\"containers\":[]", NAN, NAN, NAN},
        {"\"containers\":[],\"initContainers\":[" SIDECAR(CPU("1")) "]", 1, NAN, NAN},
        {"\"containers\":[{}]" OF_THE_POD(CPU("500m") "," MEMORY("1Mi"), CPU("2")), 0.5, 1048576,
         2},
        {"\"containers\":[" CONTAINER(CPU("100m"), CPU("1")) "]" OF_THE_POD(CPU("500m"), CPU("2")),
         0.5, NAN, 2},
        {"\"containers\":[{}]" OF_THE_POD(CPU("500m"), "") ",\"overhead\":{" CPU("250m") "}", 0.75,
         NAN, NAN},
        /* its limits alone change nothing of its requests */
        {"\"containers\":[" CONTAINER(CPU("100m"),
                                      "") "," CONTAINER("", "") "]" OF_THE_POD("", CPU("2")),
         NAN, NAN, 2},
        /* what it does not name is what the scheduler counts of its containers */
        {"\"containers\":[" CONTAINER(CPU("100m"), "") ",{}]" OF_THE_POD(MEMORY("1Mi"), ""), 0.1,
         1048576, NAN},
        {"\"containers\":[{}]" OF_THE_POD(MEMORY("1Mi"), ""), NAN, 1048576, NAN},
        {"\"containers\":[" CONTAINER(CPU("100m"), "") "],\"overhead\":{" CPU("250m") "}", 0.1, NAN,
         NAN},
        {"\"containers\":[" CONTAINER(CPU("100m"), "") "],\"resources\":{}", 0.1, NAN, NAN},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *json = as_xasprintf(LIST(POD("p", ",\"spec\":{%s}")), rows[i].spec);
        const struct as_pod_seen *pod = decode_one(json);
        const double got[] = {pod->requests[AS_RESOURCE_CPU], pod->requests[AS_RESOURCE_MEMORY],
                              pod->limits[AS_RESOURCE_CPU]};
        const double want[] = {rows[i].cpu, rows[i].memory, rows[i].cpu_limit};
        for (size_t k = 0; k < AS_ARRAY_SIZE(want); k++)
            cr_expect(isnan(want[k]) ? isnan(got[k]) : got[k] == want[k], "%s: %zu: %g, not %g",
                      rows[i].spec, k, got[k], want[k]);
    }
}

/* An init container is one of them only if it keeps running. The pod's own resources leave those of
 * its containers as they are. */
Test(kubernetes_pods, containers_keep_their_own_resources)
{
    const struct as_pod_seen *pod = decode_one(LIST(
        POD("p", ",\"spec\":{\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":"
                 "{" CPU("250m") "},\"limits\":{" CPU(
                     "1") "}}},{\"name\":\"log\"}],"
                          "\"initContainers\":[{\"name\":\"setup\",\"resources\":{\"requests\":"
                          "{" CPU("8") "}}},"
                                       "{\"name\":\"proxy\",\"restartPolicy\":\"Always\","
                                       "\"resources\":{\"requests\":{" MEMORY(
                                           "1Mi") "}}}]" OF_THE_POD(CPU("2"), "") "}")));
    static const struct {
        const char *name;
        double cpu, memory, cpu_limit;
    } rows[] = {{"app", 0.25, NAN, 1}, {"log", NAN, NAN, NAN}, {"proxy", NAN, 1048576, NAN}};
    cr_assert_eq(pod->container_count, AS_ARRAY_SIZE(rows));
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_container_seen *container = &pod->containers[i];
        const double got[] = {container->requests[AS_RESOURCE_CPU],
                              container->requests[AS_RESOURCE_MEMORY],
                              container->limits[AS_RESOURCE_CPU]};
        const double want[] = {rows[i].cpu, rows[i].memory, rows[i].cpu_limit};
        cr_expect_str_eq(container->name, rows[i].name);
        for (size_t k = 0; k < AS_ARRAY_SIZE(want); k++)
            cr_expect(isnan(want[k]) ? isnan(got[k]) : got[k] == want[k], "%s: %zu: %g, not %g",
                      rows[i].name, k, got[k], want[k]);
    }
    cr_expect_eq(pod->requests[AS_RESOURCE_CPU], 2.0);
}

Test(kubernetes_pods, what_is_no_pod_is_refused_by_name)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"", "expected a JSON object"},
        {"<html>", "expected a JSON object"},
        {"[]", "expected a JSON object"},
        {"null", "expected a JSON object"},
        {LIST("") " x", "not JSON: byte 44: expected the end"},
        {LIST("") "{}", "expected the end"},
        {"{", "not JSON: byte 1: "},
        {"{\"kind\"", "not JSON: byte 7: expected ':'"},
        {"{\"kind\":", "not JSON: byte 8: "},
        {"{\"kind\":\"PodList\"", "not JSON: byte 17: expected ',' or '}'"},
        {"{\"kind\":\"PodList\",}", "not JSON: byte 18: "},
        {"{\"kind\":\"PodList\" \"a\":1}", "not JSON: byte 18: expected ',' or '}'"},
        {"{\"kind\",\"PodList\"}", "expected ':'"},
        {"{7:1}", "not JSON: byte 2: expected a string"},
        {"{\"a\":tru}", "not JSON: byte 8: invalid token"},
        {"{\"a\":[1}", "not JSON: byte "},
        {"{\"items\":[", "not JSON: byte "},
        {"{\"items\":[,]}", "not JSON: byte "},
        {LIST(POD("a", "") ","), "not JSON: byte "},
        {LIST(POD("a", "") " " POD("b", "")), "expected ',' or ']'"},
        {"{\"kind\":\"PodList\",\"items\":[" POD("a", "") "}", "expected ',' or ']'"},
        {"{\"kind\":\"PodList\",\"items\":\"\"}", "items: expected a list"},
        {"{}", "kind: expected PodList"},
        {"{\"kind\":\"Status\"}", "kind: expected PodList"},
        {"{\"kind\":\"PodList\",\"metadata\":7}", "metadata: expected an object"},
        {"{\"kind\":\"PodList\",\"items\":{}}", "items: expected a list"},
        {LIST("7"), "items[0]: expected an object"},
        {LIST(POD("a", "") ",{}"), "items[1]: metadata.name: expected a name of 1 to 253 bytes"},
        {LIST("{\"metadata\":7}"), "items[0]: metadata: expected an object"},
        {LIST(POD("", "")), "metadata.name"},
        {LIST(POD("a\\u0000b", "")), "metadata.name"},
        {LIST("{\"metadata\":{\"name\":7}}"), "metadata.name"},
        {LIST(POD("web-1", ",\"spec\":7")), "items[0]: pod web-1: spec: expected an object"},
        {LIST(POD("web-1", ",\"status\":[]")), "pod web-1: status: expected an object"},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":{}}")),
         "pod web-1: containers: expected a list"},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[{},7]}")),
         "pod web-1: containers[1]: expected an object"},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[{\"resources\":[]}]}")),
         "containers[0]: resources: expected an object"},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[{\"resources\":{\"limits\":[]}}]}")),
         "containers[0]: limits: expected an object"},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[" CONTAINER(CPU("12x"), "") "]}")),
         "pod web-1: containers[0]: requests: cpu: no quantity: \"12x\""},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[" CONTAINER("", MEMORY("-1")) "]}")),
         "pod web-1: containers[0]: limits: memory: no quantity: \"-1\""},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[" CONTAINER("\"cpu\":1", "") "]}")),
         "requests: cpu: expected a string"},
        {LIST(POD("web-1",
                  ",\"spec\":{\"containers\":[{}],\"initContainers\":[" SIDECAR(CPU("")) "]}")),
         "pod web-1: initContainers[0]: requests: cpu: no quantity: \"\""},
        {LIST(POD("web-1", ",\"spec\":{\"resources\":[]}")),
         "pod web-1: resources: expected an object"},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[]" OF_THE_POD("\"cpu\":1", "") "}")),
         "pod web-1: resources.requests: cpu: expected a string"},
        {LIST(POD("web-1", ",\"spec\":{\"containers\":[]" OF_THE_POD("", CPU("x")) "}")),
         "pod web-1: resources: limits: cpu: no quantity: \"x\""},
        {LIST(POD("web-1", ",\"status\":{\"startTime\":\"yesterday\"}")),
         "pod web-1: startTime: expected an RFC 3339 time"},
        {LIST(POD("web-1", ",\"status\":{\"startTime\":7}")), "startTime"},
        {LIST(POD("web-1", ",\"status\":{\"conditions\":{}}")), "conditions: expected a list"},
        {LIST(POD("web-1", ",\"status\":{\"conditions\":[{\"type\":\"Ready\","
                           "\"lastTransitionTime\":\"\"}]}")),
         "lastTransitionTime: expected an RFC 3339 time"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        as_kube_pods_clear(&pods);
        cr_expect_eq(decode(rows[i].json), -EBADMSG, "%s", rows[i].json);
        cr_expect(strstr(error.text, rows[i].error) != NULL, "%s: %s", rows[i].json, error.text);
    }
}

Test(kubernetes_pods, a_name_has_a_longest_size)
{
    char name[AS_KUBE_POD_NAME_MAX + 2];
    memset(name, 'a', sizeof(name) - 1);
    name[AS_KUBE_POD_NAME_MAX + 1] = '\0';
    AS_CLEANUP(as_free_p) char *longer = as_xasprintf(LIST(POD("%s", "")), name);
    cr_expect_eq(decode(longer), -EBADMSG);
    name[AS_KUBE_POD_NAME_MAX] = '\0';
    AS_CLEANUP(as_free_p) char *longest = as_xasprintf(LIST(POD("%s", "")), name);
    cr_expect_str_eq(decode_one(longest)->name, name);
}

Test(kubernetes_pods, a_page_says_where_the_next_begins)
{
    static const struct {
        const char *json, *next;
    } rows[] = {
        {"{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"abc=\",\"remainingItemCount\":3}}",
         "abc="},
        {"{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"\"},\"items\":null}", NULL},
        {"{\"kind\":\"PodList\",\"metadata\":{\"continue\":null}}", NULL},
        {"{\"kind\":\"PodList\"}", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p) char *next = NULL;
        cr_assert_eq(as_kube_pods_decode(&pods, rows[i].json, strlen(rows[i].json), &next, &error),
                     0);
        cr_expect(rows[i].next ? next && strcmp(next, rows[i].next) == 0 : !next, "%s",
                  rows[i].json);
    }
    as_kube_pods_finish(&pods);
    cr_expect_eq(pods.count, 0);
}

Test(kubernetes_pods, pods_are_sorted_by_bytes_and_the_later_of_two_is_kept)
{
    static const char *const pages[] = {
        LIST(POD("web-2", ",\"status\":{\"phase\":\"Pending\"}") "," POD("web-10", "")),
        LIST(POD("a", "") "," POD("web-2", ",\"status\":{\"phase\":\"Failed\"}")),
        LIST(POD("web-2", ",\"status\":{\"phase\":\"Running\"}") "," POD("B", "")),
    };
    static const char *const names[] = {"B", "a", "web-10", "web-2"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(pages); i++)
        cr_assert_eq(decode(pages[i]), 0);
    as_kube_pods_finish(&pods);
    cr_assert_eq(pods.count, AS_ARRAY_SIZE(names));
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        cr_expect_str_eq(pods.items[i].name, names[i]);
    cr_expect_eq(pods.items[3].phase, AS_POD_RUNNING);
}

Test(kubernetes_pods, more_than_may_be_is_refused)
{
    pods.max = 3;
    cr_expect_eq(decode(LIST(POD("a", "") "," POD("b", ""))), 0);
    cr_expect_eq(decode(LIST(POD("c", "") "," POD("d", ""))), -E2BIG);
    cr_expect_str_eq(error.text, "more than 3 pods");
    as_kube_pods_clear(&pods);
    cr_expect_eq(decode(LIST(POD("a", "") "," POD("b", "") "," POD("c", ""))), 0);
    cr_expect_eq(decode(LIST("")), 0);
    cr_expect_eq(decode(LIST(POD("d", ""))), -E2BIG);
}

/* Only what is asked for is looked at, wherever it stands. */
Test(kubernetes_pods, a_page_may_be_written_in_any_way)
{
    static const char *const rows[] = {
        "{\"items\":[" POD("a", "") "],\"kind\":\"PodList\"}",
        " {\t\"items\" :\r\n[ " POD("a", "") "\n] , \"kind\": \"PodList\" }\n",
        "{\"k\\u0069nd\":\"PodList\",\"items\":[" POD("a", "") "]}",
        "{\"a\":12,\"b\":-1.5e3 ,\"c\":true,\"d\":null,\"e\":\"\",\"f\":{},\"g\":[[]],"
        "\"kind\":\"PodList\",\"items\":[" POD("a", ",\"x\":\"\xC3\xA9\xF0\x9F\x98\x80\"") "]}",
        "{\"\xC3\xA9\":\"\xC3\xA9\",\"kind\":\"PodList\",\"items\":[" POD("a", "") "]}",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_str_eq(decode_one(rows[i])->name, "a", "%s", rows[i]);
}

/* The text is read where it lies: nothing behind it. */
Test(kubernetes_pods, a_page_has_no_end_but_its_size)
{
    static const char json[] = "{\"kind\":\"PodList\",\"items\":[" POD("a", "") "]}";
    for (size_t size = 0; size < sizeof(json); size++) {
        AS_CLEANUP(as_free_p) char *copy = as_xmalloc(size);
        char *next = NULL;
        as_kube_pods_clear(&pods);
        memcpy(copy, json, size);
        int code = as_kube_pods_decode(&pods, copy, size, &next, &error);
        cr_expect_eq(code, size == sizeof(json) - 1 ? 0 : -EBADMSG, "%zu", size);
        cr_expect_null(next);
    }
}

Test(kubernetes_pods, a_nul_is_named)
{
    static const char json[] = "{\"kind\":\"PodList\",\"items\":[],\"x\":{\"a\":3\0}}";
    char *next = NULL;
    cr_assert_eq(as_kube_pods_decode(&pods, json, sizeof(json) - 1, &next, &error), -EBADMSG);
    cr_assert_str_eq(error.text, "not JSON: byte 39: a NUL");
}

/* Memory is bounded, whatever a value holds. */
Test(kubernetes_pods, a_value_too_large_for_any_pod_is_refused)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf json = AS_BUF_INIT((size_t)8 << 20);
    as_buf_append_str(&json, "{\"kind\":\"PodList\",\"x\":[");
    for (int i = 0; i < 1000000; i++)
        as_buf_append_str(&json, "[],");
    as_buf_append_str(&json, "[]]}");
    cr_expect_eq(decode(json.data), -EBADMSG);
    cr_expect_str_eq(error.text, "too many values for a document of this size");
    cr_expect_eq(decode(LIST(POD("a", ""))), 0);
}
