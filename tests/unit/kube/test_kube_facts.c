/*
 * kube/kube_facts.h: every field of a fact from JSON; both encodings of the same objects give the
 * same facts; the rules of eviction and requests are those of kube/kube_nodes.h; what cannot be
 * read has a reason.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_facts.h>
#include <alertscaler/kube/kube_nodes.h>

#include "../source_root.h"

static struct as_cluster_facts *facts;
static struct as_arena scratch;
static struct as_error error;

static struct as_cluster_facts *make_facts(void)
{
    struct as_cluster_facts *made =
        as_cluster_facts_new(&(struct as_cluster_facts_limits){AS_CLUSTER_FACTS_BYTES});
    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++)
        as_cluster_facts_end_list(made, kind);
    return made;
}

static void begin(void)
{
    facts = make_facts();
    error.text[0] = '\0';
}

static void end(void)
{
    facts = as_cluster_facts_free(facts);
    as_arena_deinit(&scratch);
}

TestSuite(kube_facts, .init = begin, .fini = end);

static int put(enum as_cluster_kind kind, const char *json)
{
    const struct as_kube_bytes bytes = {AS_KUBE_JSON, json, strlen(json)};
    return as_kube_fact_put(facts, kind, &bytes, &scratch, &error);
}

static const struct as_cluster *view(void)
{
    const struct as_cluster *cluster = as_cluster_facts_view(facts, &error);
    cr_assert_not_null(cluster, "%s", error.text);
    return cluster;
}

/* Nodes */

static const struct as_node_fact *read_node(const char *json)
{
    cr_assert_eq(put(AS_CLUSTER_NODES, json), 0, "%s", error.text);
    cr_assert_eq(view()->node_count, 1);
    return &view()->nodes[0];
}

#define NODE(metadata, spec, status)                                                               \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"" metadata "},\"spec\":{" spec                \
    "},\"status\":{" status "}}"

Test(kube_facts, a_node)
{
    const struct as_node_fact *node = read_node(
        NODE(",\"creationTimestamp\":\"2026-11-20T10:00:00Z\",\"labels\":{\"zone\":\"a\",\"b/c\":"
             "\"\"},\"managedFields\":[{\"fieldsV1\":{\"f:a\\\"}\":{}}}]",
             "\"providerID\":\"aws:///z/i-1\",\"unschedulable\":true,\"taints\":[{\"key\":\"k\","
             "\"effect\":\"NoExecute\"},{\"key\":\"l\",\"value\":\"v\",\"effect\":\"NoSchedule\"},"
             "{\"key\":\"m\",\"effect\":\"Unheard\"}]",
             "\"capacity\":{\"cpu\":\"2\",\"memory\":\"4Gi\",\"pods\":\"110\"},\"allocatable\":{"
             "\"cpu\":\"1930.5m\",\"memory\":\"3.3Ki\",\"ephemeral-storage\":\"10k\","
             "\"nvidia.com/gpu\":\"2\",\"hugepages-2Mi\":\"0\",\"attachable-volumes-x\":\"25\"},"
             "\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"False\"},{\"type\":\"Ready\","
             "\"status\":\"True\",\"lastTransitionTime\":\"1970-01-01T00:00:01Z\"}]"));
    cr_expect_str_eq(node->name, "n1");
    cr_expect_str_eq(node->provider_id, "aws:///z/i-1");
    cr_expect_str_eq(as_labels_get(node->labels, "zone"), "a");
    cr_expect_eq(node->labels->count, 2);
    cr_assert_eq(node->taint_count, 2);
    cr_expect_str_eq(node->taints[1].key, "l");
    cr_expect_str_eq(node->taints[1].value, "v");
    cr_expect_eq(node->taints[0].effect, AS_TAINT_NO_EXECUTE);
    cr_expect_eq(node->allocatable.amount[AS_RES_CPU], 1930);
    cr_expect_eq(node->allocatable.amount[AS_RES_MEMORY], 3379);
    cr_expect_eq(node->allocatable.amount[AS_RES_EPHEMERAL], 10000);
    cr_expect_eq(node->allocatable.amount[AS_RES_NAMED], 2);
    cr_expect_eq(node->capacity.amount[AS_RES_CPU], 2000);
    cr_expect_eq(node->capacity.amount[AS_RES_PODS], 110);
    cr_expect(node->has_cpu && node->has_memory && node->is_ready && node->is_cordoned);
    cr_expect_eq(node->leaving, 0);
    cr_expect_null(node->keep);
    cr_expect_eq(node->created.us, INT64_C(1795168800) * AS_US_PER_S);
    cr_expect(node->ready_since.set);
    cr_expect_eq(node->ready_since.at.us, AS_US_PER_S);
    cr_expect_eq(view()->resources.count, AS_RES_NAMED + 2);
}

Test(kube_facts, a_node_without_anything)
{
    const struct as_node_fact *node = read_node("{\"metadata\":{\"name\":\"n1\"}}");
    cr_expect_str_eq(node->provider_id, "");
    cr_expect_eq(node->labels->count, 0);
    cr_expect_not(node->has_cpu || node->has_memory || node->is_ready || node->is_cordoned);
    cr_expect_not(node->marked_at.set || node->ready_since.set);
}

Test(kube_facts, a_node_that_leaves_or_stays)
{
    static const struct {
        const char *annotations, *taints;
        unsigned leaving;
        bool is_marked;
        const char *keep;
    } rows[] = {
        {"", "{\"key\":\"alertscaler.io/draining\",\"effect\":\"NoSchedule\"}",
         AS_NODE_LEAVING_OURS, false, NULL},
        {"", "{\"key\":\"ToBeDeletedByClusterAutoscaler\",\"effect\":\"NoSchedule\"}",
         AS_NODE_LEAVING_CLUSTER_AUTOSCALER, false, NULL},
        {"", "{\"key\":\"DeletionCandidateOfClusterAutoscaler\",\"effect\":\"PreferNoSchedule\"}",
         0, false, NULL},
        {"", "{\"key\":\"atlassian.com/escalator\",\"effect\":\"NoSchedule\"}",
         AS_NODE_LEAVING_ESCALATOR, false, NULL},
        {"\"alertscaler.io/drain\":\"{\\\"at\\\":\\\"2026-11-22T10:00:00Z\\\",\\\"owner\\\":\\\"me"
         "\\\",\\\"decision\\\":\\\"01HD\\\"}\"",
         "", AS_NODE_LEAVING_OURS, true, NULL},
        {"\"alertscaler.io/drain\":\"{\\\"at\\\":\\\"2026-11-22T10:00:00Z\\\"}\"", "", 0, false,
         NULL},
        {"\"alertscaler.io/drain\":\"[]\"", "", 0, false, NULL},
        {"\"alertscaler.io/drain\":\"{\"", "", 0, false, NULL},
        {"\"alertscaler.io/scale-down-disabled\":\"true\"", "", 0, false,
         "it is annotated alertscaler.io/scale-down-disabled: \"true\""},
        {"\"cluster-autoscaler.kubernetes.io/scale-down-disabled\":\"true\"", "", 0, false,
         "it is annotated cluster-autoscaler.kubernetes.io/scale-down-disabled: \"true\""},
        {"\"cluster-autoscaler.kubernetes.io/scale-down-disabled\":\"false\"", "", 0, false, NULL},
        {"\"atlassian.com/no-delete\":\"GPUs\"", "", 0, false,
         "it is annotated atlassian.com/no-delete: \"GPUs\""},
        {"\"atlassian.com/no-delete\":\"\"", "", 0, false, NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *json = as_xasprintf(NODE(",\"annotations\":{%s}", "\"taints\":[%s]", ""),
                                  rows[i].annotations, rows[i].taints);
        const struct as_node_fact *node = read_node(json);
        cr_expect_eq(node->leaving, rows[i].leaving, "%s", json);
        cr_expect_eq(node->marked_at.set, rows[i].is_marked, "%s", json);
        cr_expect(as_str_equal(node->keep, rows[i].keep), "%s: %s", json, node->keep);
    }
}

/* Pods */

static const struct as_pod_fact *read_pod(const char *json)
{
    cr_assert_eq(put(AS_CLUSTER_PODS, json), 0, "%s: %s", json, error.text);
    cr_assert_eq(view()->pod_count, 1);
    return &view()->pods[0];
}

#define POD(metadata, spec, status)                                                                \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"shop\",\"name\":\"web-1\"" metadata           \
    "},\"spec\":{" spec "},\"status\":{" status "}}"
#define CONTAINER(requests) "{\"resources\":{\"requests\":{" requests "}}}"
#define SIDECAR(requests)                                                                          \
    "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{" requests "}}}"

static const struct as_pod_class *read_spec(const char *spec)
{
    AS_CLEANUP(as_free_p)
    char *json = as_xasprintf(POD(",\"labels\":{\"app\":\"db\",\"tier\":\"x\"}", "%s", ""), spec);
    return read_pod(json)->pod_class;
}

Test(kube_facts, a_pod)
{
    const struct as_pod_fact *pod =
        read_pod(POD(",\"creationTimestamp\":\"1970-01-01T00:00:02Z\",\"deletionTimestamp\":"
                     "\"1970-01-01T00:00:03Z\"",
                     "\"priority\":-7,\"preemptionPolicy\":\"Never\"",
                     "\"phase\":\"Pending\",\"nominatedNodeName\":\"n1\",\"conditions\":[{\"type\":"
                     "\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\"}]"));
    cr_expect_str_eq(pod->namespace_, "shop");
    cr_expect_str_eq(pod->name, "web-1");
    cr_expect(pod->is_unschedulable && pod->is_leaving && !pod->is_bound);
    cr_expect_eq(pod->created.us, 2 * AS_US_PER_S);
    cr_expect_eq(pod->gone_at.at.us, 3 * AS_US_PER_S);
    cr_expect_eq(pod->nominated, AS_NO_NODE);
    cr_expect_eq(pod->pod_class->priority, -7);
    cr_expect(pod->pod_class->never_preempts);
    cr_expect_eq(pod->pod_class->requests.amount[AS_RES_PODS], 1);
    cr_expect_str_eq(pod->pod_class->namespace_, "shop");
    cr_expect_null(pod->pod_class->selector);
    cr_expect_null(pod->pod_class->zone);
    read_node("{\"metadata\":{\"name\":\"n1\"}}");
    cr_expect_eq(view()->pods[0].nominated, 0);
    cr_expect_eq(read_pod(POD("", "\"nodeName\":\"n1\"", ""))->node, 0);
    cr_expect_not(view()->pods[0].is_unschedulable);
    cr_expect_not(view()->pods[0].pod_class->never_preempts);
}

Test(kube_facts, what_makes_a_pod_anew)
{
    static const struct {
        const char *owner, *annotation;
        enum as_eviction_class class;
    } rows[] = {
        {"ReplicaSet", "", AS_EVICTION_ALLOWED},
        {"StatefulSet", "", AS_EVICTION_ALLOWED},
        {"Job", "", AS_EVICTION_ALLOWED},
        {"ReplicationController", "", AS_EVICTION_ALLOWED},
        {"CloneSet", "", AS_EVICTION_UNREPLICATED},
        {"CloneSet", "true", AS_EVICTION_ALLOWED},
        {"DaemonSet", "", AS_EVICTION_DAEMON},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char json[512];
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"ownerReferences\":"
                 "[{\"kind\":\"%s\",\"controller\":true}],\"annotations\":{"
                 "\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"%s\"}},\"spec\":{}}",
                 rows[i].owner, rows[i].annotation);
        cr_assert_eq(put(AS_CLUSTER_PODS, json), 0, "%s", error.text);
        cr_assert_eq(view()->pod_count, 1);
        cr_expect_eq(view()->pods[0].pod_class->eviction, rows[i].class, "row %zu", i);
    }
}

Test(kube_facts, a_finished_pod_is_gone)
{
    static const char *const phases[] = {"Succeeded", "Failed"};
    for (size_t i = 0; i < 2; i++) {
        AS_CLEANUP(as_free_p) char *json = as_xasprintf(POD("", "", "\"phase\":\"%s\""), phases[i]);
        read_pod(POD("", "", "\"phase\":\"Running\""));
        cr_expect_eq(put(AS_CLUSTER_PODS, json), 0);
        cr_expect_eq(view()->pod_count, 0);
    }
}

Test(kube_facts, objects_are_deleted_by_their_names)
{
    static const char *const names[AS_CLUSTER_KIND_COUNT] = {
        "{\"metadata\":{\"name\":\"a\",\"namespace\":7,\"namespace\":8}}",
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}",
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},\"status\":7}"};
    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++) {
        const struct as_kube_bytes bytes = {AS_KUBE_JSON, names[kind], strlen(names[kind])};
        const struct as_kube_bytes bad = {AS_KUBE_JSON, "{}", 2};
        cr_assert_eq(put(kind, kind == AS_CLUSTER_BUDGETS ? names[AS_CLUSTER_PODS] : names[kind]),
                     0);
        cr_expect_eq(view()->node_count + view()->pod_count + view()->budget_count, 1);
        cr_expect_eq(as_kube_fact_delete(facts, kind, &bad, &error), -EBADMSG);
        cr_expect_eq(as_kube_fact_delete(facts, kind, &bytes, &error), 0, "%s", error.text);
        cr_expect_eq(view()->node_count + view()->pod_count + view()->budget_count, 0);
    }
}

Test(kube_facts, requests_are_the_scheduler_s)
{
    static const struct {
        const char *spec;
        int64_t cpu, memory, named;
    } rows[] = {
        {"\"containers\":[" CONTAINER("\"cpu\":\"250m\"") "," CONTAINER("\"cpu\":\"0.1\"") "]", 350,
         0, 0},
        {"\"containers\":[" CONTAINER("\"cpu\":\"0.1m\",\"memory\":\"0.1Ki\"") "]", 1, 103, 0},
        {"\"containers\":[" CONTAINER("\"a/b\":\"2\",\"other\":\"7\"") "," CONTAINER(
             "\"a/b\":\"3\"") "]",
         0, 0, 5},
        {"\"initContainers\":[" CONTAINER("\"cpu\":\"3\"") "],\"containers\":[" CONTAINER(
             "\"cpu\":\"1\",\"memory\":\"1\"") "]",
         3000, 1, 0},
        {"\"initContainers\":[" SIDECAR("\"cpu\":\"1\"") "," CONTAINER(
             "\"cpu\":\"4\"") "],\"containers\":[" CONTAINER("\"cpu\":\"2\"") "]",
         5000, 0, 0},
        {"\"initContainers\":[" CONTAINER("\"cpu\":\"4\"") "," SIDECAR(
             "\"cpu\":\"1\"") "],\"containers\":[" CONTAINER("\"cpu\":\"2\"") "]",
         4000, 0, 0},
        {"\"initContainers\":[" SIDECAR("\"cpu\":\"1\"") "],\"containers\":[" CONTAINER(
             "\"cpu\":\"2\"") "],\"overhead\":{\"cpu\":\"10m\",\"memory\":\"5\"}",
         3010, 5, 0},
        {"\"resources\":{\"requests\":{\"cpu\":\"1\"}},\"containers\":[" CONTAINER(
             "\"cpu\":\"2\",\"memory\":\"7\"") "],\"overhead\":{\"cpu\":\"10m\"}",
         1010, 7, 0},
        {"\"containers\":[" CONTAINER("\"memory\":\"4Ei\"") "," CONTAINER("\"memory\":\"4Ei\"") "]",
         0, AS_RES_AMOUNT_MAX, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_pod_class *pod_class = read_spec(rows[i].spec);
        cr_expect_eq(pod_class->requests.amount[AS_RES_CPU], rows[i].cpu, "%s", rows[i].spec);
        cr_expect_eq(pod_class->requests.amount[AS_RES_MEMORY], rows[i].memory, "%s", rows[i].spec);
        cr_expect_eq(pod_class->requests.amount[AS_RES_NAMED], rows[i].named, "%s", rows[i].spec);
    }
}

Test(kube_facts, more_resources_than_there_is_room_for)
{
    char name[16];
    for (int i = AS_RES_NAMED; i < AS_RES_MAX; i++) {
        snprintf(name, sizeof(name), "a/%d", i);
        cr_assert_eq(as_cluster_facts_name_resource(facts, name), i);
    }
    cr_expect_eq(read_spec("\"containers\":[" CONTAINER("\"a/4\":\"1\"") "]")->unchecked, 0);
    cr_expect_eq(read_spec("\"containers\":[" CONTAINER("\"a/b\":\"1\"") "]")->unchecked,
                 AS_UNCHECKED_RESOURCES);
}

Test(kube_facts, where_a_pod_may_go)
{
    const struct as_pod_class *pod_class = read_spec(
        "\"nodeSelector\":{\"zone\":\"a\"},\"affinity\":{\"nodeAffinity\":{"
        "\"preferredDuringSchedulingIgnoredDuringExecution\":[{}],"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
        "\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\",\"values\":[\"a\",\"b\"]},{\"key"
        "\":\"m\",\"operator\":\"Gt\",\"values\":[\"5\"]}],\"matchFields\":[{\"key\":"
        "\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"n\"]}]},{\"matchExpressions\":[{"
        "\"key\":\"k\",\"operator\":\"Near\"}]},{}]}}},\"tolerations\":[{\"operator\":\"Exists\"},"
        "{\"key\":\"a\",\"value\":\"b\",\"effect\":\"NoExecute\"},{\"key\":\"a\",\"operator\":"
        "\"Gt\"},{\"key\":\"a\",\"effect\":\"New\"}]");
    cr_expect_str_eq(as_labels_get(pod_class->selector, "zone"), "a");
    cr_expect(pod_class->has_affinity);
    cr_assert_eq(pod_class->term_count, 3);
    cr_assert_eq(pod_class->terms[0].count, 3);
    cr_expect_eq(pod_class->terms[1].count, 0);
    cr_expect_eq(pod_class->terms[2].count, 0);
    const struct as_node_requirement *requirements = pod_class->terms[0].requirements;
    cr_expect_str_eq(requirements[0].values[1], "b");
    cr_expect_eq(requirements[1].operator_, AS_NODE_GT);
    cr_expect_not(requirements[1].is_field);
    cr_expect(requirements[2].is_field);
    cr_expect_eq(requirements[2].operator_, AS_NODE_NOT_IN);
    cr_assert_eq(pod_class->toleration_count, 2);
    cr_expect_str_eq(pod_class->tolerations[0].key, "");
    cr_expect(pod_class->tolerations[0].is_exists);
    cr_expect_eq(pod_class->tolerations[0].effects, 0);
    cr_expect_str_eq(pod_class->tolerations[1].value, "b");
    cr_expect_eq(pod_class->tolerations[1].effects, AS_TAINT_NO_EXECUTE);
    cr_expect_eq(pod_class->unchecked, 0);
}

Test(kube_facts, ports_of_the_host)
{
    const struct as_pod_class *pod_class =
        read_spec("\"initContainers\":[{\"ports\":[{\"hostPort\":1}]},{\"restartPolicy\":"
                  "\"Always\",\"ports\":[{\"hostPort\":2}]}],\"containers\":[{\"ports\":[{"
                  "\"containerPort\":9},{\"hostPort\":3,\"protocol\":\"UDP\",\"hostIP\":"
                  "\"10.0.0.1\"}]},{\"ports\":[{\"hostPort\":65535}]}]");
    cr_assert_eq(pod_class->port_count, 3);
    cr_expect_eq(pod_class->ports[0].port, 2);
    cr_expect_str_eq(pod_class->ports[0].ip, "0.0.0.0");
    cr_expect_str_eq(pod_class->ports[0].protocol, "TCP");
    cr_expect_eq(pod_class->ports[1].port, 3);
    cr_expect_str_eq(pod_class->ports[1].ip, "10.0.0.1");
    cr_expect_str_eq(pod_class->ports[1].protocol, "UDP");
    cr_expect_eq(pod_class->ports[2].port, 65535);
    pod_class =
        read_spec("\"hostNetwork\":true,\"containers\":[{\"ports\":[{\"containerPort\":9}]}]");
    cr_assert_eq(pod_class->port_count, 1);
    cr_expect_eq(pod_class->ports[0].port, 9);
}

#define APART(terms)                                                                               \
    "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"       \
    "[" terms "]}}"
#define BY_HOST(selector) "{\"topologyKey\":\"kubernetes.io/hostname\"," selector "}"
#define APP_DB            "\"labelSelector\":{\"matchLabels\":{\"app\":\"db\"}}"

Test(kube_facts, loners_are_kept_apart_from_themselves)
{
    static const struct {
        const char *spec;
        bool is_loner;
        unsigned unchecked;
    } rows[] = {
        {APART(BY_HOST(APP_DB)), true, 0},
        {APART(BY_HOST("\"labelSelector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":"
                       "\"In\",\"values\":[\"web\",\"db\"]},{\"key\":\"no\",\"operator\":"
                       "\"DoesNotExist\"},{\"key\":\"tier\",\"operator\":\"Exists\"},{\"key\":"
                       "\"no\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]}")),
         true, 0},
        {APART(BY_HOST("\"labelSelector\":{}")), true, 0},
        {APART(BY_HOST(APP_DB ",\"namespaces\":[\"a\",\"shop\"]")), true, 0},
        {APART(BY_HOST(APP_DB ",\"namespaceSelector\":{}")), true, 0},
        {APART(BY_HOST(APP_DB) "," BY_HOST(APP_DB)), true, 0},
        {APART(BY_HOST(APP_DB) "," BY_HOST("\"labelSelector\":{}")), true, AS_UNCHECKED_AFFINITY},
        {APART(BY_HOST(APP_DB ",\"namespaces\":[\"a\"]")), false, AS_UNCHECKED_AFFINITY},
        {APART(BY_HOST(APP_DB ",\"namespaceSelector\":{\"matchLabels\":{\"a\":\"b\"}}")), false,
         AS_UNCHECKED_AFFINITY},
        {APART(BY_HOST("\"labelSelector\":{\"matchLabels\":{\"app\":\"web\"}}")), false,
         AS_UNCHECKED_AFFINITY},
        {APART(BY_HOST("\"labelSelector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":"
                       "\"NotIn\",\"values\":[\"db\"]}]}")),
         false, AS_UNCHECKED_AFFINITY},
        {APART(BY_HOST("\"labelSelector\":null")), false, AS_UNCHECKED_AFFINITY},
        {APART("{\"topologyKey\":\"zone\"," APP_DB "}"), false, AS_UNCHECKED_AFFINITY},
        {"\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"
         "[" BY_HOST(APP_DB) "]}}",
         false, AS_UNCHECKED_AFFINITY},
        {"\"affinity\":{\"podAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{}]}"
         "}",
         false, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_pod_class *pod_class = read_spec(rows[i].spec);
        cr_expect_eq(pod_class->loner != 0, rows[i].is_loner, "%s", rows[i].spec);
        cr_expect_eq(pod_class->unchecked, rows[i].unchecked, "%s", rows[i].spec);
    }
    /* what the selector says counts, not how it is written */
    const uint64_t loner = read_spec(APART(BY_HOST(APP_DB)))->loner;
    cr_expect_eq(loner, read_spec(APART(BY_HOST("\"labelSelector\":{\"matchExpressions\":[{\"key\":"
                                                "\"app\",\"operator\":\"In\",\"values\":[\"db\"]}]"
                                                "}")))
                            ->loner);
    cr_expect_neq(loner, read_spec(APART(BY_HOST("\"labelSelector\":{}")))->loner);
    cr_expect_neq(loner, read_spec(APART(BY_HOST(APP_DB ",\"namespaceSelector\":{}")))->loner);
}

Test(kube_facts, what_is_not_checked)
{
    static const struct {
        const char *spec;
        unsigned unchecked;
    } rows[] = {
        {"\"topologySpreadConstraints\":[{\"whenUnsatisfiable\":\"ScheduleAnyway\"}]", 0},
        {"\"topologySpreadConstraints\":[{\"whenUnsatisfiable\":\"DoNotSchedule\"}]",
         AS_UNCHECKED_SPREAD},
        {"\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}},{\"secret\":{}},{\"configMap\":{}},{"
         "\"projected\":{\"sources\":[]}},{\"downwardAPI\":{}},{\"hostPath\":{\"path\":\"/\"}}]",
         0},
        {"\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]", AS_UNCHECKED_VOLUMES},
        {"\"volumes\":[{\"ephemeral\":{}}]", AS_UNCHECKED_VOLUMES},
        {"\"volumes\":[{\"csi\":{\"driver\":\"d\"}}]", AS_UNCHECKED_VOLUMES},
        {"\"resourceClaims\":[{\"name\":\"r\"}],\"volumes\":[{\"csi\":{}}]",
         AS_UNCHECKED_CLAIMS | AS_UNCHECKED_VOLUMES},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(read_spec(rows[i].spec)->unchecked, rows[i].unchecked, "%s", rows[i].spec);
}

/* Budgets */

Test(kube_facts, budgets)
{
    cr_assert_eq(put(AS_CLUSTER_BUDGETS,
                     "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"b\"},\"spec\":{"
                     "\"minAvailable\":1,\"selector\":{\"matchLabels\":{\"app\":\"db\"},"
                     "\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"NotIn\",\"values\":["
                     "\"a\",\"b\"]}]}},\"status\":{\"disruptionsAllowed\":2}}"),
                 0, "%s", error.text);
    cr_assert_eq(put(AS_CLUSTER_BUDGETS, "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"a\"}}"),
                 0);
    cr_assert_eq(put(AS_CLUSTER_BUDGETS, "{\"metadata\":{\"namespace\":\"a\",\"name\":\"z\"},"
                                         "\"spec\":{\"selector\":{}}}"),
                 0);
    const struct as_cluster *cluster = view();
    cr_assert_eq(cluster->budget_count, 3);
    cr_expect_eq(cluster->budgets[0].count, 0);
    cr_expect_not(cluster->budgets[0].is_nothing);
    cr_expect(cluster->budgets[1].is_nothing);
    cr_expect_eq(cluster->budgets[1].allowed, 0);
    cr_assert_eq(cluster->budgets[2].count, 2);
    cr_expect_eq(cluster->budgets[2].allowed, 2);
    cr_expect_str_eq(cluster->budgets[2].requirements[0].values[0], "db");
    cr_expect_eq(cluster->budgets[2].requirements[0].operator_, AS_NODE_IN);
    cr_expect_str_eq(cluster->budgets[2].requirements[1].values[1], "b");
}

/* What cannot be read */

Test(kube_facts, what_cannot_be_read_has_a_reason)
{
    static const struct {
        enum as_cluster_kind kind;
        const char *json, *text;
    } rows[] = {
        {AS_CLUSTER_NODES, "", "node: not JSON: line 1, column 0: premature end of input"},
        {AS_CLUSTER_NODES, "[]", "node: expected an object"},
        {AS_CLUSTER_NODES, "{\"metadata\":{}}", "node: metadata.name: no name: \"\""},
        {AS_CLUSTER_NODES, "{\"metadata\":{\"name\":\"a/b\"}}",
         "node a/b: metadata.name: no name: \"a/b\""},
        {AS_CLUSTER_NODES, "{\"metadata\":{\"name\":\"A\"}}",
         "node A: metadata.name: no name: \"A\""},
        {AS_CLUSTER_NODES, "{\"metadata\":{\"name\":\"..\"}}",
         "node ..: metadata.name: no name: \"..\""},
        {AS_CLUSTER_NODES, "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}",
         "node: not JSON: line 1, column 30: duplicate object key"},
        {AS_CLUSTER_NODES, NODE(",\"labels\":{\"a\":\"1\",\"a\":\"2\"}", "", ""),
         "node: not JSON: line 1, column 60: duplicate object key"},
        {AS_CLUSTER_NODES, NODE(",\"labels\":{\"a\":\"\xff\"}", "", ""),
         "node: not JSON: line 1, column 55: unable to decode byte 0xff"},
        {AS_CLUSTER_NODES, NODE("", "\"providerID\":\"a\\u0000b\"", ""), "node: a NUL in a text"},
        {AS_CLUSTER_NODES, NODE(",\"labels\":{\"a b\":\"\"}", "", ""),
         "node n1: metadata.labels: no name of a label: \"a b\""},
        {AS_CLUSTER_NODES, NODE(",\"labels\":{\"a\":7}", "", ""),
         "node n1: metadata.labels: a: expected a string"},
        {AS_CLUSTER_NODES, NODE(",\"labels\":{\"a\":\"x y\"}", "", ""),
         "node n1: metadata.labels: a: no value of a label: \"x y\""},
        {AS_CLUSTER_NODES, NODE(",\"labels\":[]", "", ""),
         "node n1: metadata.labels: expected an object"},
        {AS_CLUSTER_NODES, NODE("", "\"taints\":[{\"key\":\"a\"},{}]", ""),
         "node n1: spec.taints[1].key: missing"},
        {AS_CLUSTER_NODES, NODE("", "\"taints\":[7]", ""),
         "node n1: spec.taints[0]: expected an object"},
        {AS_CLUSTER_NODES, NODE("", "", "\"allocatable\":{\"cpu\":\"-1\"}"),
         "node n1: status.allocatable: cpu: no quantity: \"-1\""},
        {AS_CLUSTER_NODES, NODE("", "", "\"capacity\":{\"memory\":\"1Zi\"}"),
         "node n1: status.capacity: memory: no quantity: \"1Zi\""},
        {AS_CLUSTER_NODES, NODE("", "", "\"capacity\":{\"memory\":7}"),
         "node n1: status.capacity: memory: expected a string"},
        {AS_CLUSTER_NODES, NODE(",\"creationTimestamp\":\"now\"", "", ""),
         "node n1: metadata.creationTimestamp: expected a time as \"2026-11-20T10:00:00Z\" (RFC "
         "3339)"},
        {AS_CLUSTER_NODES, NODE("", "\"unschedulable\":\"yes\"", ""),
         "node n1: spec.unschedulable: expected true or false"},
        {AS_CLUSTER_PODS, "{\"metadata\":{\"name\":\"p\"}}",
         "pod p: metadata.namespace: no name: \"\""},
        {AS_CLUSTER_PODS, POD("", "\"nodeName\":\"a b\"", ""),
         "pod shop/web-1: spec.nodeName: no name: \"a b\""},
        {AS_CLUSTER_PODS, POD("", "\"containers\":[{}," CONTAINER("\"cpu\":\"much\"") "]", ""),
         "pod shop/web-1: spec.containers[1].resources.requests: cpu: no quantity: \"much\""},
        {AS_CLUSTER_PODS, POD("", "\"priority\":2147483648", ""),
         "pod shop/web-1: spec.priority: expected an integer from -2147483648 to 2147483647"},
        {AS_CLUSTER_PODS, POD("", "\"containers\":[{\"ports\":[{\"hostPort\":-1}]}]", ""),
         "pod shop/web-1: spec.containers[0].ports[0].hostPort: expected an integer from 0 to "
         "65535"},
        {AS_CLUSTER_PODS, POD("", "\"containers\":[{\"ports\":[{\"hostPort\":1.5}]}]", ""),
         "pod shop/web-1: spec.containers[0].ports[0].hostPort: expected an integer from 0 to "
         "65535"},
        {AS_CLUSTER_BUDGETS,
         "{\"metadata\":{\"namespace\":\"s\",\"name\":\"b\"},\"spec\":{\"selector\":{"
         "\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Near\"}]}}}",
         "budget s/b: spec.selector.matchExpressions: expected the operators In, NotIn, Exists or "
         "DoesNotExist"},
        {AS_CLUSTER_BUDGETS,
         "{\"metadata\":{\"namespace\":\"s\",\"name\":\"b\"},\"spec\":{\"selector\":{"
         "\"matchExpressions\":[{\"operator\":\"In\",\"values\":[1]}]}}}",
         "budget s/b: spec.selector.matchExpressions[0].key: missing"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        error.text[0] = '\0';
        cr_expect_eq(put(rows[i].kind, rows[i].json), -EBADMSG, "%s", rows[i].json);
        cr_expect_str_eq(error.text, rows[i].text);
    }
    cr_expect_eq(view()->node_count + view()->pod_count + view()->budget_count, 0);
}

Test(kube_facts, lists_are_limited)
{
    struct as_buf json = AS_BUF_INIT(AS_KUBE_FACT_BYTES_MAX);
    as_buf_append_str(&json, "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[");
    for (int i = 0; i < 100000; i++)
        as_buf_printf(&json, "%s{\"key\":\"k%d\",\"effect\":\"NoSchedule\"}", i ? "," : "", i);
    as_buf_append_str(&json, "]}}");
    cr_assert_eq(as_buf_check(&json), 0);
    cr_expect_eq(put(AS_CLUSTER_NODES, json.data), -EBADMSG);
    cr_expect_str_eq(error.text, "node n: spec.taints: more than 1024");
    as_buf_deinit(&json);
    const struct as_kube_bytes bytes = {AS_KUBE_JSON, "", AS_KUBE_FACT_BYTES_MAX + 1};
    cr_expect_eq(as_kube_fact_put(facts, AS_CLUSTER_PODS, &bytes, &scratch, &error), -EBADMSG);
    cr_expect_str_eq(error.text, "pod: larger than 8388608 bytes");
}

/* Skipped members are followed, whatever stands in them. */
Test(kube_facts, what_is_skipped_does_not_matter)
{
    static const char *const good[] = {
        "\"a\\\"\\\\\"",  "\"\\\\\"", "{\"a\":[{}],\"b\":\"]}\\\"\"}",
        "[[],[[\"[\"]]]", "12e3",     "-1.5",
        "true",           "null",     "\"\xff\x01\"",
    };
    static const char *const bad[] = {"", "}", "\"", "\"\\\"", "{", "[{]", "{\"a\":\"}", "#"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++) {
        AS_CLEANUP(as_free_p)
        char *json = as_xasprintf("{\"other\": %s ,\"metadata\":{\"name\":\"n1\"}}", good[i]);
        read_node(json);
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        AS_CLEANUP(as_free_p)
        char *json = as_xasprintf("{\"metadata\":{\"name\":\"n1\"},\"other\":%s}", bad[i]);
        cr_expect_eq(put(AS_CLUSTER_NODES, json), -EBADMSG, "%s", json);
    }
}

/* Objects of Kubernetes' own types, in both encodings: tests/golden/kube_facts/objects.go */

static json_t *objects; /* lines */

static void load_objects(void)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size;
    begin();
    cr_assert_eq(as_file_read(TEST_SOURCE_ROOT "/tests/golden/kube_facts/objects.jsonl",
                              (size_t)16 << 20, &text, &size),
                 0);
    objects = json_array();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        json_array_append_new(objects, json_loads(line, 0, NULL));
    cr_assert_geq(json_array_size(objects), 60);
}

static void drop_objects(void)
{
    json_decref(objects);
    end();
}

TestSuite(kube_facts_objects, .init = load_objects, .fini = drop_objects);

static enum as_cluster_kind get_kind(const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    return *kind == 'n' ? AS_CLUSTER_NODES : *kind == 'p' ? AS_CLUSTER_PODS : AS_CLUSTER_BUDGETS;
}

static char *print_json(const json_t *object)
{
    return json_dumps(json_object_get(object, "json"), JSON_COMPACT);
}

static void put_json(const json_t *object)
{
    AS_CLEANUP(as_free_p) char *json = print_json(object);
    cr_assert_eq(put(get_kind(object), json), 0, "%s: %s", json, error.text);
}

static void put_protobuf(const json_t *object)
{
    const json_t *digits = json_object_get(object, "protobuf");
    const size_t size = json_string_length(digits) / 2;
    AS_CLEANUP(as_free_p) char *data = as_xmalloc(size);
    const struct as_kube_bytes bytes = {AS_KUBE_PROTOBUF, data, size};
    cr_assert(as_decode_hex(json_string_value(digits), 2 * size, data));
    cr_assert_eq(as_kube_fact_put(facts, get_kind(object), &bytes, &scratch, &error), 0, "%s",
                 error.text);
}

static void print_requirements(struct as_buf *out, const struct as_node_requirement *items,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        as_buf_printf(out, " %s %d", items[i].key, items[i].operator_);
        for (size_t k = 0; k < items[i].value_count; k++)
            as_buf_printf(out, ",%s", items[i].values[k]);
    }
}

static void print_time(struct as_buf *out, as_maybe_time time)
{
    as_buf_printf(out, " %d %lld", time.set, time.set ? (long long)time.at.us : 0);
}

static void print_node(struct as_buf *out, const struct as_node_fact *node)
{
    as_buf_printf(out, "%s %s %d%d%d%d %u %s %lld", node->name, node->provider_id, node->has_cpu,
                  node->has_memory, node->is_ready, node->is_cordoned, node->leaving,
                  node->keep ? node->keep : "-", (long long)node->created.us);
    print_time(out, node->ready_since);
    print_time(out, node->marked_at);
    for (size_t i = 0; i < node->labels->count; i++)
        as_buf_printf(out, " %s=%s", node->labels->items[i].name, node->labels->items[i].value);
    for (size_t i = 0; i < node->taint_count; i++)
        as_buf_printf(out, " %s=%s:%d", node->taints[i].key, node->taints[i].value,
                      node->taints[i].effect);
    for (int i = 0; i < AS_RES_MAX; i++)
        as_buf_printf(out, " %lld/%lld", (long long)node->allocatable.amount[i],
                      (long long)node->capacity.amount[i]);
}

/* Equal pod classes are one object, and the one of before lives until the pod has the new one. */
static void print_pod(struct as_buf *out, const struct as_pod_fact *pod)
{
    as_buf_printf(out, "%s/%s %p %u %u %d%d%d %lld", pod->namespace_, pod->name,
                  (const void *)pod->pod_class, pod->node, pod->nominated, pod->is_bound,
                  pod->is_unschedulable, pod->is_leaving, (long long)pod->created.us);
    print_time(out, pod->gone_at);
}

static void print_budget(struct as_buf *out, const struct as_budget_fact *budget)
{
    as_buf_printf(out, "%s/%s %d %d", budget->namespace_, budget->name, budget->is_nothing,
                  budget->allowed);
    print_requirements(out, budget->requirements, budget->count);
}

static char *print_view(void)
{
    struct as_buf out = AS_BUF_INIT((size_t)1 << 20);
    const struct as_cluster *cluster = view();
    size_t size;
    for (size_t i = 0; i < cluster->node_count; i++)
        print_node(&out, &cluster->nodes[i]);
    for (size_t i = 0; i < cluster->pod_count; i++)
        print_pod(&out, &cluster->pods[i]);
    for (size_t i = 0; i < cluster->budget_count; i++)
        print_budget(&out, &cluster->budgets[i]);
    cr_assert_eq(as_buf_check(&out), 0);
    return as_buf_take(&out, &size);
}

static void clear(void)
{
    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++) {
        as_cluster_facts_begin_list(facts, kind);
        as_cluster_facts_end_list(facts, kind);
    }
}

Test(kube_facts_objects, both_encodings_give_the_same_facts)
{
    for (size_t i = 0; i < json_array_size(objects); i++) {
        const json_t *object = json_array_get(objects, i);
        put_json(object);
        AS_CLEANUP(as_free_p) char *from_json = print_view();
        put_protobuf(object);
        AS_CLEANUP(as_free_p) char *from_protobuf = print_view();
        cr_expect_str_eq(from_json, from_protobuf);
        clear();
        put_protobuf(object);
        cr_expect_eq(view()->pod_count == 0, !strstr(from_json, " 0x"));
        clear();
    }
}

Test(kube_facts_objects, are_deleted_by_either)
{
    for (size_t i = 0; i < json_array_size(objects); i++) {
        const json_t *object = json_array_get(objects, i);
        const json_t *digits = json_object_get(object, "protobuf");
        const size_t size = json_string_length(digits) / 2;
        AS_CLEANUP(as_free_p) char *data = as_xmalloc(size);
        const struct as_kube_bytes bytes = {AS_KUBE_PROTOBUF, data, size};
        cr_assert(as_decode_hex(json_string_value(digits), 2 * size, data));
        put_json(object);
        cr_assert_eq(as_kube_fact_delete(facts, get_kind(object), &bytes, &error), 0, "%s",
                     error.text);
        cr_expect_eq(view()->node_count + view()->pod_count + view()->budget_count, 0);
    }
}

/* A message that ends too early, or has one other byte: read or refused with a reason. */
Test(kube_facts_objects, broken_messages)
{
    size_t refused = 0;
    for (size_t i = 0; i < 18; i++) {
        const json_t *object = json_array_get(objects, i);
        const json_t *digits = json_object_get(object, "protobuf");
        const size_t size = json_string_length(digits) / 2;
        AS_CLEANUP(as_free_p) unsigned char *data = as_xmalloc(size);
        cr_assert(as_decode_hex(json_string_value(digits), 2 * size, data));
        for (size_t k = 0; k < 2 * size; k++) {
            AS_CLEANUP(as_free_p) unsigned char *copy = as_xmalloc(size);
            memcpy(copy, data, size);
            copy[k % size] = (unsigned char)(copy[k % size] ^ (k < size ? 0 : 0x15));
            const struct as_kube_bytes bytes = {AS_KUBE_PROTOBUF, copy, k < size ? k : size};
            error.text[0] = '\0';
            const int status = as_kube_fact_put(facts, get_kind(object), &bytes, &scratch, &error);
            cr_assert(status == 0 || (status == -EBADMSG && *error.text));
            refused += status != 0;
        }
    }
    cr_expect_gt(refused, 1000u);
}

/* kube/kube_nodes.h reads the same nodes and pods for draining. */

static void check_pod(const struct as_kube_node_pod *peer, const struct as_pod_fact *pod)
{
    const enum as_eviction_class class_ = pod->pod_class->eviction;
    const int64_t cpu = (int64_t)ceil(peer->requests[AS_RESOURCE_CPU] * 1000 - 1e-6);
    const int64_t memory = (int64_t)ceil(peer->requests[AS_RESOURCE_MEMORY]);
    /* parts of a unit are rounded up for each container here */
    cr_expect(pod->pod_class->requests.amount[AS_RES_CPU] >= cpu &&
              pod->pod_class->requests.amount[AS_RES_CPU] <= cpu + 5);
    cr_expect(pod->pod_class->requests.amount[AS_RES_MEMORY] >= memory &&
              pod->pod_class->requests.amount[AS_RES_MEMORY] <= memory + 5);
    cr_expect_eq(peer->fate == AS_KUBE_POD_STAYS,
                 class_ == AS_EVICTION_DAEMON || class_ == AS_EVICTION_MIRROR);
    cr_expect(pod->is_leaving == (peer->fate == AS_KUBE_POD_GOING) ||
              peer->fate == AS_KUBE_POD_STAYS);
    if (peer->fate == AS_KUBE_POD_EVICT)
        cr_expect_eq(peer->blocking != NULL,
                     class_ == AS_EVICTION_REFUSED || class_ == AS_EVICTION_UNREPLICATED ||
                         class_ == AS_EVICTION_LOCAL_STORAGE,
                     "%s", peer->blocking);
}

Test(kube_facts_objects, pods_agree_with_draining)
{
    size_t checked = 0;
    for (size_t i = 0; i < json_array_size(objects); i++) {
        const json_t *object = json_array_get(objects, i);
        if (get_kind(object) != AS_CLUSTER_PODS)
            continue;
        AS_CLEANUP(as_free_p) char *json = print_json(object), *next = NULL;
        AS_CLEANUP(as_free_p)
        char *list = as_xasprintf("{\"kind\":\"PodList\",\"items\":[%s]}", json);
        struct as_kube_node_pods peers = AS_KUBE_NODE_PODS_INIT(1);
        cr_assert_eq(as_kube_node_pods_decode(&peers, list, strlen(list), &next, &error), 0, "%s",
                     error.text);
        put_json(object);
        cr_assert_eq(peers.count, 1);
        if (view()->pod_count == 0)
            cr_expect_eq(peers.items[0].fate, AS_KUBE_POD_STAYS);
        else
            check_pod(&peers.items[0], &view()->pods[0]);
        checked += view()->pod_count;
        as_kube_node_pods_deinit(&peers);
        clear();
    }
    cr_expect_gt(checked, 20u);
}

Test(kube_facts_objects, nodes_agree_with_draining)
{
    for (size_t i = 0; i < json_array_size(objects); i++) {
        const json_t *object = json_array_get(objects, i);
        if (get_kind(object) != AS_CLUSTER_NODES)
            continue;
        json_object_set_new(json_object_get(object, "json"), "kind", json_string("Node"));
        AS_CLEANUP(as_free_p) char *json = print_json(object);
        struct as_kube_node peer;
        struct as_arena arena = AS_ARENA_INIT;
        cr_assert_eq(as_kube_node_decode(json, strlen(json), &arena, &peer, &error), 0);
        put_json(object);
        const struct as_node_fact *node = &view()->nodes[0];
        cr_expect_eq(node->is_ready, peer.is_ready);
        cr_expect_eq(node->is_cordoned, peer.is_cordoned);
        cr_expect_eq(node->marked_at.set, peer.is_marked);
        cr_expect(!peer.keep || as_str_equal(node->keep, peer.keep));
        if (!isnan(peer.allocatable[AS_RESOURCE_CPU]))
            cr_expect_eq(node->allocatable.amount[AS_RES_CPU],
                         (int64_t)(peer.allocatable[AS_RESOURCE_CPU] * 1000 + 1e-6));
        as_arena_deinit(&arena);
        clear();
    }
}
