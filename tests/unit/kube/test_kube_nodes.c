/*
 * kube/kube_nodes.h: nodes and their pods as choosing and draining need them, patches that change
 * only our own parts, evictions; and a reason for each unreadable document.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/kube_nodes.h>

static struct as_error error;
static struct as_arena arena;

static void clean(void)
{
    as_arena_deinit(&arena);
}

TestSuite(kube_node, .fini = clean);
TestSuite(kube_node_pods, .fini = clean);
TestSuite(kube_eviction, .fini = clean);

#define LIST(kind, next, items)                                                                    \
    "{\"kind\":\"" kind "\",\"metadata\":{\"continue\":\"" next "\"},\"items\":[" items "]}"
#define NODE_WITH(metadata, spec, status)                                                          \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"7\"" metadata          \
    "},\"spec\":{" spec "},\"status\":{" status "}}"
#define ANNOTATED(text) ",\"annotations\":{" text "}"
#define MARK(cordoned)                                                                             \
    "\"alertscaler.io/"                                                                            \
    "drain\":\"{\\\"at\\\":\\\"2026-11-22T10:00:00Z\\\",\\\"cordoned\\\":" cordoned                \
    ",\\\"decision\\\":\\\"01HD\\\",\\\"owner\\\":\\\"me\\\"}\""

/* Nodes */

static struct as_kube_node read_node(const char *json)
{
    struct as_kube_node node;
    cr_assert_eq(as_kube_node_decode(json, strlen(json), &arena, &node, &error), 0, "%s: %s", json,
                 error.text);
    return node;
}

Test(kube_node, is_read)
{
    struct as_kube_node node = read_node(NODE_WITH(
        ANNOTATED(MARK("true")), "\"providerID\":\"aws:///z/i-1\",\"unschedulable\":true",
        "\"allocatable\":{\"cpu\":\"1930m\",\"memory\":\"2Gi\"},\"conditions\":[{\"type\":"
        "\"DiskPressure\",\"status\":\"False\"},{\"type\":\"Ready\",\"status\":\"True\"}]"));
    cr_expect_str_eq(node.name, "n1");
    cr_expect_str_eq(node.provider_id, "aws:///z/i-1");
    cr_expect(node.is_ready);
    cr_expect(node.is_cordoned);
    cr_expect(node.is_marked);
    cr_expect_str_eq(node.mark.owner, "me");
    cr_expect_str_eq(node.mark.decision, "01HD");
    cr_expect_eq(node.mark.at.us, INT64_C(1795341600) * AS_US_PER_S);
    cr_expect(node.mark.has_cordoned);
    cr_expect_null(node.keep);
    cr_expect_float_eq(node.allocatable[AS_RESOURCE_CPU], 1.93, 1e-9);
    cr_expect_eq(node.allocatable[AS_RESOURCE_MEMORY], 2147483648.0);
    cr_expect_str_eq(node.zone, "");
    cr_expect_not(node.created.set);
}

Test(kube_node, age_and_zone)
{
    static const struct {
        const char *metadata, *zone;
        bool has_age;
    } rows[] = {
        {"\"creationTimestamp\":\"2026-11-22T10:00:00Z\"", "", true},
        {"\"creationTimestamp\":\"once\"", "", false},
        {"\"labels\":{\"failure-domain.beta.kubernetes.io/zone\":\"old\"}", "old", false},
        {"\"labels\":{\"failure-domain.beta.kubernetes.io/zone\":\"old\","
         "\"topology.kubernetes.io/zone\":\"new\"}",
         "new", false},
        {"\"labels\":{\"topology.kubernetes.io/zone\":7}", "", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *json =
            as_xasprintf("{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",%s}}", rows[i].metadata);
        struct as_kube_node node = read_node(json);
        cr_expect_str_eq(node.zone, rows[i].zone, "row %zu", i);
        cr_expect_eq(node.created.set, rows[i].has_age, "row %zu", i);
        if (rows[i].has_age)
            cr_expect_eq(node.created.at.us, INT64_C(1795341600) * AS_US_PER_S);
    }
}

Test(kube_node, says_little_where_little_is_said)
{
    struct as_kube_node node = read_node("{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}");
    cr_expect_str_eq(node.provider_id, "");
    cr_expect_not(node.is_ready);
    cr_expect_not(node.is_cordoned);
    cr_expect_not(node.is_marked);
    cr_expect_str_eq(node.mark.owner, "");
    cr_expect(isnan(node.allocatable[AS_RESOURCE_CPU]));
}

Test(kube_node, is_ready_only_by_its_condition)
{
    static const char *const rows[] = {
        "\"conditions\":[]",
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]",
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]",
        "\"conditions\":[{\"type\":\"Ready\",\"status\":true}]",
        "\"conditions\":[7,null]",
        "\"conditions\":{}",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *json = as_xasprintf("{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},"
                                  "\"status\":{%s}}",
                                  rows[i]);
        cr_expect_not(read_node(json).is_ready, "row %zu", i);
    }
}

Test(kube_node, may_be_kept_by_an_annotation)
{
    static const struct {
        const char *json, *keep;
    } rows[] = {
        {NODE_WITH(ANNOTATED("\"cluster-autoscaler.kubernetes.io/scale-down-disabled\":\"true\""),
                   "", ""),
         "it is annotated cluster-autoscaler.kubernetes.io/scale-down-disabled: \"true\""},
        {NODE_WITH(ANNOTATED("\"alertscaler.io/scale-down-disabled\":\"true\""), "", ""),
         "it is annotated alertscaler.io/scale-down-disabled: \"true\""},
        {NODE_WITH(ANNOTATED("\"alertscaler.io/scale-down-disabled\":\"false\""), "", ""), NULL},
        {NODE_WITH(ANNOTATED("\"atlassian.com/no-delete\":\"until friday\""), "", ""),
         "it is annotated atlassian.com/no-delete: \"until friday\""},
        {NODE_WITH(ANNOTATED("\"atlassian.com/no-delete\":\"\""), "", ""), NULL},
        {NODE_WITH(ANNOTATED("\"alertscaler.io/scale-down-disabled\":true"), "", ""), NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_node node = read_node(rows[i].json);
        if (rows[i].keep)
            cr_expect_str_eq(node.keep, rows[i].keep);
        else
            cr_expect_null(node.keep);
    }
}

Test(kube_node, has_no_mark_that_cannot_be_read)
{
    static const char *const rows[] = {
        "\"\"",
        "7",
        "\"[]\"",
        "\"{\\\"at\\\":\\\"x\\\"}\"",
        ("\"{\\\"at\\\":\\\"soon\\\",\\\"decision\\\":\\\"d\\\","
         "\\\"owner\\\":\\\"me\\\"}\""),
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *json = as_xasprintf("{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\","
                                  "\"annotations\":{\"alertscaler.io/drain\":%s}}}",
                                  rows[i]);
        cr_expect_not(read_node(json).is_marked, "row %zu", i);
    }
}

Test(kube_node, what_is_none_is_refused_by_name)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"", "not JSON"},
        {"[]", "expected a JSON object"},
        {"{\"kind\":\"Pod\"}", "kind: expected Node"},
        {"{\"kind\":\"Node\"}", "metadata.name: expected a name of 1 to 253 bytes"},
        {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"..\"}}", "metadata.name: expected"},
        {"{\"kind\":\"Node\",\"metadata\":7}", "metadata: expected an object"},
        {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},\"spec\":[]}",
         "node n1: spec: expected an object"},
        {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},\"spec\":{\"unschedulable\":\"no\"}}",
         "node n1: spec.unschedulable: expected true or false"},
        {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"annotations\":[]}}",
         "node n1: metadata.annotations: expected an object"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_node node;
        cr_expect_eq(as_kube_node_decode(rows[i].json, strlen(rows[i].json), &arena, &node, &error),
                     -EBADMSG, "row %zu", i);
        cr_expect_eq(strncmp(error.text, rows[i].error, strlen(rows[i].error)), 0, "row %zu: %s", i,
                     error.text);
    }
}

Test(kube_node, lists_come_page_by_page)
{
    static const char first[] =
        LIST("NodeList", "t", "{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}");
    static const char second[] = LIST("NodeList", "", "{\"metadata\":{\"name\":\"c\"}}");
    struct as_kube_nodes nodes = AS_KUBE_NODES_INIT(3);
    char *next = NULL;
    cr_assert_eq(as_kube_nodes_decode(&nodes, first, strlen(first), &next, &error), 0);
    cr_assert_str_eq(next, "t");
    free(next);
    cr_assert_eq(as_kube_nodes_decode(&nodes, second, strlen(second), &next, &error), 0);
    cr_assert_null(next);
    cr_assert_eq(nodes.count, 3);
    cr_expect_str_eq(nodes.items[2].name, "c");
    cr_expect_eq(as_kube_nodes_decode(&nodes, second, strlen(second), &next, &error), -E2BIG);
    cr_expect_str_eq(error.text, "more than 3 nodes");
    as_kube_nodes_clear(&nodes);
    cr_expect_eq(nodes.count, 0);
    static const char pods[] = LIST("PodList", "", "");
    cr_expect_eq(as_kube_nodes_decode(&nodes, pods, strlen(pods), &next, &error), -EBADMSG);
    cr_expect_str_eq(error.text, "kind: expected NodeList");
    as_kube_nodes_deinit(&nodes);
}

/* Patches */

static void check_mark(const char *node, const char *patch)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(65536);
    const struct as_kube_node_mark mark = {
        .owner = "me", .decision = "01HD", .at = {INT64_C(1795341600) * AS_US_PER_S}};
    cr_assert_eq(as_kube_node_mark_encode(node, strlen(node), &mark, &buf, &error), 0, "%s",
                 error.text);
    cr_expect_str_eq(buf.data, patch);
}

#define MARKED(cordoned) "{\"metadata\":{\"annotations\":{" MARK(cordoned) "}," VERSION
#define VERSION          "\"resourceVersion\":\"7\"},\"spec\":{\"taints\":["
#define OURS             "{\"effect\":\"NoSchedule\",\"key\":\"alertscaler.io/draining\"}"
#define OTHERS                                                                                     \
    "{\"key\":\"a\",\"value\":\"b\",\"effect\":\"NoExecute\",\"timeAdded\":"                       \
    "\"2026-01-01T00:00:00Z\"}"

Test(kube_node, is_marked)
{
    check_mark(NODE_WITH("", "", ""), MARKED("true") OURS "],\"unschedulable\":true}}");
    check_mark(NODE_WITH("", "\"unschedulable\":true", ""),
               MARKED("false") OURS "],\"unschedulable\":true}}");
    /* taints of others stay as they are, byte by byte; ours comes once */
    check_mark(NODE_WITH("", "\"taints\":[" OTHERS "," OURS "]", ""),
               MARKED("true") OTHERS "," OURS "],\"unschedulable\":true}}");
    check_mark(NODE_WITH("", "\"taints\":null", ""),
               MARKED("true") OURS "],\"unschedulable\":true}}");
    /* a second mark remembers that the cordon is ours */
    check_mark(NODE_WITH(ANNOTATED(MARK("true")), "\"unschedulable\":true", ""),
               MARKED("true") OURS "],\"unschedulable\":true}}");
    check_mark(NODE_WITH(ANNOTATED(MARK("false")), "\"unschedulable\":true", ""),
               MARKED("false") OURS "],\"unschedulable\":true}}");
}

static void check_unmark(const char *node, const char *patch)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(65536);
    cr_assert_eq(as_kube_node_unmark_encode(node, strlen(node), &buf, &error), 0, "%s", error.text);
    cr_expect_str_eq(buf.data, patch);
}

#define UNMARKED "{\"metadata\":{\"annotations\":{\"alertscaler.io/drain\":null}," VERSION

Test(kube_node, is_unmarked_by_what_the_mark_says)
{
    check_unmark(NODE_WITH(ANNOTATED(MARK("true")),
                           "\"unschedulable\":true,\"taints\":[" OURS "," OTHERS "]", ""),
                 UNMARKED OTHERS "],\"unschedulable\":null}}");
    /* cordoned by somebody before us */
    check_unmark(
        NODE_WITH(ANNOTATED(MARK("false")), "\"unschedulable\":true,\"taints\":[" OURS "]", ""),
        UNMARKED "]}}");
    /* nothing known of what we did: no cordon is taken back */
    check_unmark(NODE_WITH("", "\"unschedulable\":true", ""), UNMARKED "]}}");
}

Test(kube_node, is_not_patched_blindly)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}",
         "node n1: metadata.resourceVersion: missing"},
        {NODE_WITH("", "\"taints\":{}", ""), "node n1: spec.taints: expected a list"},
        {"{\"kind\":\"Pod\"}", "kind: expected Node"},
    };
    const struct as_kube_node_mark mark = {.owner = "me", .decision = "01HD"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(65536);
        const size_t size = strlen(rows[i].json);
        cr_expect_eq(as_kube_node_mark_encode(rows[i].json, size, &mark, &buf, &error), -EBADMSG);
        cr_expect_str_eq(error.text, rows[i].error);
        cr_expect_eq(as_kube_node_unmark_encode(rows[i].json, size, &buf, &error), -EBADMSG);
        cr_expect_str_eq(error.text, rows[i].error);
    }
}

Test(kube_node, a_patch_has_its_limit)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(100);
    const struct as_kube_node_mark mark = {.owner = "me", .decision = "01HD"};
    static const char node[] = NODE_WITH("", "", "");
    cr_expect_eq(as_kube_node_mark_encode(node, strlen(node), &mark, &buf, &error), -EMSGSIZE);
}

/* Pods */

#define POD_WITH(metadata, spec, status)                                                           \
    "{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u1\"" metadata             \
    "},\"spec\":{" spec "},\"status\":{" status "}}"
#define OWNED(kind)                                                                                \
    ",\"ownerReferences\":[{\"kind\":\"Other\"},{\"kind\":\"" kind "\",\"controller\":true}]"
#define SAFE(text)  "\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"" text "\""
#define LOCAL(text) "\"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes\":\"" text "\""

static struct as_kube_node_pods pods = AS_KUBE_NODE_PODS_INIT(2);

static int decode(const char *pod)
{
    char *next = NULL;
    AS_CLEANUP(as_free_p) char *json = as_xasprintf(LIST("PodList", "", "%s"), pod);
    as_kube_node_pods_clear(&pods);
    return as_kube_node_pods_decode(&pods, json, strlen(json), &next, &error);
}

static const struct as_kube_node_pod *read_pod(const char *pod)
{
    cr_assert_eq(decode(pod), 0, "%s: %s", pod, error.text);
    cr_assert_eq(pods.count, 1);
    return &pods.items[0];
}

Test(kube_node_pods, have_a_fate)
{
    static const struct {
        const char *json;
        enum as_kube_pod_fate fate;
    } rows[] = {
        {POD_WITH(OWNED("ReplicaSet"), "", "\"phase\":\"Running\""), AS_KUBE_POD_EVICT},
        {POD_WITH(OWNED("ReplicaSet"), "", "\"phase\":\"Pending\""), AS_KUBE_POD_EVICT},
        {POD_WITH("", "", ""), AS_KUBE_POD_EVICT},
        {POD_WITH(OWNED("DaemonSet"), "", "\"phase\":\"Running\""), AS_KUBE_POD_STAYS},
        {POD_WITH(",\"ownerReferences\":[{\"kind\":\"DaemonSet\"}]", "", ""), AS_KUBE_POD_EVICT},
        {POD_WITH(OWNED("Node"), "", "\"phase\":\"Running\""), AS_KUBE_POD_STAYS},
        {POD_WITH(ANNOTATED("\"kubernetes.io/config.mirror\":\"x\""), "", ""), AS_KUBE_POD_STAYS},
        {POD_WITH(OWNED("ReplicaSet")
                      ANNOTATED("\"cluster-autoscaler.kubernetes.io/daemonset-pod\":\"true\""),
                  "", ""),
         AS_KUBE_POD_STAYS},
        {POD_WITH(OWNED("ReplicaSet")
                      ANNOTATED("\"cluster-autoscaler.kubernetes.io/daemonset-pod\":\"false\""),
                  "", ""),
         AS_KUBE_POD_EVICT},
        {POD_WITH(OWNED("Job"), "", "\"phase\":\"Succeeded\""), AS_KUBE_POD_STAYS},
        {POD_WITH(OWNED("Job"), "", "\"phase\":\"Failed\""), AS_KUBE_POD_STAYS},
        {POD_WITH(",\"deletionTimestamp\":null", "", ""), AS_KUBE_POD_EVICT},
        {POD_WITH(OWNED("DaemonSet") ",\"deletionTimestamp\":\"2026-11-22T10:00:00Z\"", "", ""),
         AS_KUBE_POD_STAYS},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(read_pod(rows[i].json)->fate, rows[i].fate, "row %zu", i);
    const struct as_kube_node_pod *going = read_pod(
        POD_WITH(OWNED("ReplicaSet") ",\"deletionTimestamp\":\"2026-11-22T10:00:00Z\"", "", ""));
    cr_expect_eq(going->fate, AS_KUBE_POD_GOING);
    cr_expect(going->gone_at.set);
    cr_expect_eq(going->gone_at.at.us, INT64_C(1795341600) * AS_US_PER_S);
    as_kube_node_pods_deinit(&pods);
}

#define RS     OWNED("ReplicaSet")
#define EMPTY  "\"volumes\":[{\"name\":\"v1\",\"emptyDir\":{}}]"
#define NEVER  "shop/web-1 may not be evicted: "
#define LOCALS "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

Test(kube_node_pods, may_block)
{
    static const struct {
        const char *json, *blocking; /* how it begins; NULL: it does not */
    } rows[] = {
        {POD_WITH(RS, "", ""), NULL},
        {POD_WITH(RS ANNOTATED(SAFE("false")), "", ""),
         NEVER "it is annotated cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\""},
        {POD_WITH("", "", ""), NEVER "no controller would make it anew ("},
        {POD_WITH(",\"ownerReferences\":[{\"kind\":\"ReplicaSet\"}]", "", ""), NEVER "no contr"},
        {POD_WITH(OWNED("CloneSet"), "", ""),
         NEVER "its controller is a custom one, CloneSet (cluster-autoscaler.kubernetes.io/safe-"},
        {POD_WITH(OWNED("CloneSet") ANNOTATED(SAFE("true")), EMPTY, ""), NULL},
        {POD_WITH(ANNOTATED(SAFE("true")), EMPTY, ""), NULL},
        {POD_WITH(RS, EMPTY, ""), NEVER "its volume v1 is on the node (" LOCALS},
        {POD_WITH(RS ANNOTATED(SAFE("true")), EMPTY, ""), NULL},
        {POD_WITH(RS ANNOTATED(LOCAL("v0,v1")), EMPTY, ""), NULL},
        {POD_WITH(RS ANNOTATED(LOCAL("v0, v1 ,v2")), EMPTY, ""), NULL},
        {POD_WITH(RS ANNOTATED(LOCAL("v10,v")), EMPTY, ""), NEVER "its volume v1"},
        {POD_WITH(RS ANNOTATED(LOCAL("")), EMPTY, ""), NEVER "its volume v1"},
        {POD_WITH(RS, "\"volumes\":[{\"name\":\"h\",\"hostPath\":{\"path\":\"/x\"}}]", ""),
         NEVER "its volume h"},
        {POD_WITH(RS, "\"volumes\":[{\"name\":\"m\",\"emptyDir\":{\"medium\":\"Memory\"}}]", ""),
         NULL},
        {POD_WITH(RS, "\"volumes\":[{\"name\":\"c\",\"configMap\":{}}]", ""), NULL},
        /* those that are not evicted block nothing */
        {POD_WITH(OWNED("DaemonSet") ANNOTATED(SAFE("false")), EMPTY, ""), NULL},
        {POD_WITH(RS ANNOTATED(SAFE("false")), "", "\"phase\":\"Failed\""), NULL},
        {POD_WITH(RS ANNOTATED(SAFE("false")) ",\"deletionTimestamp\":\"2026-11-22T10:00:00Z\"", "",
                  ""),
         NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const char *blocking = read_pod(rows[i].json)->blocking;
        if (!rows[i].blocking)
            cr_expect_null(blocking, "row %zu: %s", i, blocking);
        else
            cr_expect(blocking &&
                          strncmp(blocking, rows[i].blocking, strlen(rows[i].blocking)) == 0,
                      "row %zu: %s", i, blocking);
    }
    as_kube_node_pods_deinit(&pods);
}

Test(kube_node_pods, block_by_the_classes_that_are_kept)
{
    static const struct {
        const char *json;
        unsigned keep;
        bool blocks;
    } rows[] = {
        {POD_WITH(OWNED("CloneSet"), "", ""), AS_KEEP_DEFAULT, true},
        {POD_WITH(OWNED("CloneSet"), EMPTY, ""), AS_KEEP_LOCAL_STORAGE, false},
        {POD_WITH("", "", ""), AS_KEEP_UNREPLICATED, true},
        {POD_WITH("", "", ""), 0, false},
        {POD_WITH(RS, EMPTY, ""), AS_KEEP_LOCAL_STORAGE, true},
        {POD_WITH(RS, EMPTY, ""), AS_KEEP_UNREPLICATED, false},
        {POD_WITH(RS ANNOTATED(SAFE("false")), "", ""), 0, true},
        {POD_WITH(RS, "", ""), AS_KEEP_DEFAULT, false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(as_kube_node_pod_blocks(read_pod(rows[i].json), rows[i].keep), rows[i].blocks,
                     "row %zu", i);
    as_kube_node_pods_deinit(&pods);
}

#define ASKS(cpu) "{\"resources\":{\"requests\":{\"cpu\":\"" cpu "\"}}}"
#define SIDECAR(cpu)                                                                               \
    "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"" cpu "\"}}}"
#define MAIN(list) "\"containers\":[" list "]"
#define INIT(list) ",\"initContainers\":[" list "]"

/* What the scheduler counts: the worked examples of the sidecars' proposal (KEP-753). */
Test(kube_node_pods, ask_for_what_the_scheduler_counts)
{
    static const struct {
        const char *json;
        double cpu;
    } rows[] = {
        {POD_WITH(RS, MAIN(ASKS("1") "," ASKS("500m")), ""), 1.5},
        {POD_WITH(RS, MAIN("{}," ASKS("500m")), ""), 0.5},
        {POD_WITH(RS, "", ""), 0},
        {POD_WITH(RS, MAIN(ASKS("1")) INIT(ASKS("3") "," ASKS("2")), ""), 3},
        {POD_WITH(RS, MAIN(ASKS("1")) INIT(SIDECAR("1") "," ASKS("3")), ""), 4},
        {POD_WITH(RS, MAIN(ASKS("1")) INIT(ASKS("3") "," SIDECAR("1")), ""), 3},
        {POD_WITH(RS, MAIN(ASKS("4")) INIT(ASKS("3") "," SIDECAR("1")), ""), 5},
        {POD_WITH(RS, MAIN(ASKS("1")) ",\"overhead\":{\"cpu\":\"250m\"}", ""), 1.25},
        /* what the pod says of itself (KEP-2837) */
        {POD_WITH(RS, MAIN(ASKS("1")) ",\"resources\":{\"requests\":{\"cpu\":\"2\"}}", ""), 2},
        {POD_WITH(OWNED("DaemonSet"), MAIN(ASKS("1")), ""), 1},
        {POD_WITH(RS, MAIN(ASKS("1")), "\"phase\":\"Succeeded\""), 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_kube_node_pod *pod = read_pod(rows[i].json);
        cr_expect_float_eq(pod->requests[AS_RESOURCE_CPU], rows[i].cpu, 1e-9, "row %zu: %f", i,
                           pod->requests[AS_RESOURCE_CPU]);
        cr_expect_eq(pod->requests[AS_RESOURCE_MEMORY], 0);
    }
    as_kube_node_pods_deinit(&pods);
}

Test(kube_node_pods, what_is_none_is_refused_by_name)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"7", "items[0]: expected an object"},
        {"{}", "items[0]: metadata.name: expected a text of 1 to 253 bytes"},
        {"{\"metadata\":{\"name\":\"..\"}}", "items[0]: metadata.name: expected"},
        {"{\"metadata\":{\"name\":\"a\\u0000b\"}}", "items[0]: metadata.name: expected"},
        {"{\"metadata\":{\"name\":\"a\"}}",
         "items[0]: metadata.namespace: expected a text of 1 to"},
        {"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}", "items[0]: metadata.uid: expected"},
        {POD_WITH("", "\"containers\":[" ASKS("much") "]", ""),
         "items[0]: pod shop/web-1: spec.containers[0].resources.requests: cpu: no quantity"},
        {POD_WITH("", "\"initContainers\":[" ASKS("-1") "]", ""),
         "items[0]: pod shop/web-1: spec.initContainers[0].resources.requests: cpu: no "
         "quantity"},
        {"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"},\"spec\":7}",
         "items[0]: pod b/a: spec: expected an object"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(decode(rows[i].json), -EBADMSG, "row %zu", i);
        cr_expect_eq(strncmp(error.text, rows[i].error, strlen(rows[i].error)), 0, "row %zu: %s", i,
                     error.text);
    }
    as_kube_node_pods_deinit(&pods);
    cr_expect_eq(decode(POD_WITH(RS, "", "") "," POD_WITH(RS, "", "") "," POD_WITH(RS, "", "")),
                 -E2BIG);
    cr_expect_str_eq(error.text, "more than 2 pods");
}

/* Eviction */

#define RESOURCES(list) "{\"kind\":\"APIResourceList\",\"resources\":[" list "]}"
#define EVICTION(group, version)                                                                   \
    "{\"name\":\"pods\"},{\"name\":\"pods/eviction\",\"kind\":\"Eviction\",\"group\":\"" group     \
    "\",\"version\":\"" version "\"}"

Test(kube_eviction, is_found_where_it_is_served)
{
    static const struct {
        const char *json, *version;
    } rows[] = {
        {RESOURCES(EVICTION("policy", "v1")), "policy/v1"},
        {RESOURCES(EVICTION("policy", "v1beta1")), "policy/v1beta1"},
        {RESOURCES("{\"name\":\"pods\",\"group\":\"policy\",\"version\":\"v1\"}"), ""},
        {RESOURCES(EVICTION("other", "v1")), ""},
        {RESOURCES(""), ""},
        {"{\"kind\":\"APIResourceList\"}", ""},
    };
    char version[AS_KUBE_EVICTION_VERSION_SIZE];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_assert_eq(
            as_kube_eviction_version_decode(rows[i].json, strlen(rows[i].json), version, &error),
            0);
        cr_expect_str_eq(version, rows[i].version);
    }
    cr_expect_eq(as_kube_eviction_version_decode("{}", 2, version, &error), -EBADMSG);
    cr_expect_str_eq(error.text, "kind: expected APIResourceList");
}

Test(kube_eviction, is_of_this_very_pod)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(4096);
    const struct as_kube_node_pod pod = {.namespace_ = "shop", .name = "web-1", .uid = "u1"};
    as_kube_eviction_encode(&pod, "policy/v1", -1, &buf);
    cr_expect_str_eq(buf.data,
                     "{\"apiVersion\":\"policy/v1\",\"deleteOptions\":{\"preconditions\":{"
                     "\"uid\":\"u1\"}},\"kind\":\"Eviction\",\"metadata\":{\"name\":\"web-1\","
                     "\"namespace\":\"shop\"}}");
    as_buf_clear(&buf);
    as_kube_eviction_encode(&pod, "policy/v1beta1", 0, &buf);
    cr_expect_str_eq(buf.data,
                     "{\"apiVersion\":\"policy/v1beta1\",\"deleteOptions\":{"
                     "\"gracePeriodSeconds\":0,\"preconditions\":{\"uid\":\"u1\"}},\"kind\":"
                     "\"Eviction\",\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\"}}");
}
