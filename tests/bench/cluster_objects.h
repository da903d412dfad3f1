/*
 * The objects of a large cluster as an API server tells them, in JSON: for benchmarks.
 */
#ifndef ALERTSCALER_TESTS_BENCH_CLUSTER_OBJECTS_H
#define ALERTSCALER_TESTS_BENCH_CLUSTER_OBJECTS_H

#include <alertscaler/base/buf.h>

#define BENCH_NODES       5000
#define BENCH_PODS        100000
#define BENCH_POD_CLASSES 1000 /* by what pods request, and by the label that budgets select by */
#define BENCH_BUDGETS     500

/* What clients and controllers leave in every object, and we do not read. */
#define MANAGED                                                                                    \
    "\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","        \
    "\"apiVersion\":\"v1\",\"time\":\"2026-11-20T10:00:00Z\",\"fieldsType\":\"FieldsV1\","         \
    "\"fieldsV1\":{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},\"f:app\":{},"     \
    "\"f:pod-template-hash\":{}},\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"6a3e\\\"}\"" \
    ":{}}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"app\\\"}\":{\".\":{},\"f:image\":"  \
    "{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{},\"f:terminationMessagePath\":{"  \
    "},\"f:terminationMessagePolicy\":{}}},\"f:dnsPolicy\":{},\"f:restartPolicy\":{}}}}]"

static void make_pod(struct as_buf *out, int number, const char *phase)
{
    const int pod_class = number % BENCH_POD_CLASSES;

    as_buf_clear(out);
    as_buf_printf(out,
                  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"service-%d-"
                  "7d9f6c5b4-%05d\",\"generateName\":\"service-%d-7d9f6c5b4-\",\"namespace\":"
                  "\"team-%d\",\"uid\":\"0f7e1b9c-%d\",\"resourceVersion\":\"%d\","
                  "\"creationTimestamp\":\"2026-11-20T10:00:00Z\",\"labels\":{\"app\":\"service-%d"
                  "\",\"pod-template-hash\":\"7d9f6c5b4\",\"version\":\"v1\",\"pod-name\":\"pod-%"
                  "d\"},\"ownerReferences\":"
                  "[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"service-%d\","
                  "\"uid\":\"6a3e\",\"controller\":true}]," MANAGED "},",
                  pod_class, number, pod_class, pod_class % 50, number, number, pod_class, number,
                  pod_class);
    as_buf_printf(
        out,
        "\"spec\":{\"volumes\":[{\"name\":\"token\",\"projected\":{\"sources\":[{"
        "\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}}]}}],"
        "\"containers\":[{\"name\":\"app\",\"image\":\"example.com/service-%d:1.2.3\",\"ports\":["
        "{\"containerPort\":8080,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"A\",\"value\":\"some "
        "text\"}],\"resources\":{\"limits\":{\"memory\":\"%dMi\"},\"requests\":{\"cpu\":\"%dm\","
        "\"memory\":\"%dMi\"}},\"volumeMounts\":[{\"name\":\"token\",\"readOnly\":true,"
        "\"mountPath\":\"/var/run/secrets\"}],\"imagePullPolicy\":\"IfNotPresent\"}],"
        "\"restartPolicy\":\"Always\",\"nodeName\":\"node-%04d\",\"schedulerName\":"
        "\"default-scheduler\",\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\","
        "\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300},{\"key\":"
        "\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}],\"priority\":0},",
        pod_class, 128 + pod_class, 100 + pod_class, 128 + pod_class, number % BENCH_NODES);
    as_buf_printf(out,
                  "\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"Initialized\","
                  "\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":"
                  "\"PodScheduled\",\"status\":\"True\"}],\"hostIP\":\"10.0.0.1\",\"podIP\":"
                  "\"10.1.2.3\",\"containerStatuses\":[{\"name\":\"app\",\"ready\":true,\"image\":"
                  "\"example.com/service:1.2.3\",\"imageID\":\"sha256:0123456789abcdef\"}]}}",
                  phase);
}

/* Of the pods of a service. */
static void make_budget(struct as_buf *out, int number)
{
    as_buf_clear(out);
    as_buf_printf(out,
                  "{\"kind\":\"PodDisruptionBudget\",\"apiVersion\":\"policy/v1\",\"metadata\":{"
                  "\"name\":\"service-%d\",\"namespace\":\"team-%d\"},\"spec\":{\"minAvailable\":1,"
                  "\"selector\":{\"matchLabels\":{\"app\":\"service-%d\"}}},\"status\":{"
                  "\"disruptionsAllowed\":1}}",
                  number, number % 50, number);
}

static void make_node(struct as_buf *out, int number)
{
    as_buf_clear(out);
    as_buf_printf(out,
                  "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"node-%04d\","
                  "\"creationTimestamp\":\"2026-11-20T10:00:00Z\",\"labels\":{",
                  number);
    for (int i = 0; i < 20; i++)
        as_buf_printf(out, "\"example.com/label-%d\":\"some-value-of-the-cloud-%d\",", i, i);
    as_buf_printf(out,
                  "\"kubernetes.io/hostname\":\"node-%04d\"}," MANAGED "},\"spec\":{"
                  "\"providerID\":\"aws:///eu-central-1a/i-%017d\"},\"status\":{\"capacity\":{"
                  "\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\",\"ephemeral-storage\":"
                  "\"100Gi\"},\"allocatable\":{\"cpu\":\"15890m\",\"memory\":\"60Gi\",\"pods\":"
                  "\"110\",\"ephemeral-storage\":\"90Gi\"},\"conditions\":[{\"type\":\"Ready\","
                  "\"status\":\"True\",\"lastTransitionTime\":\"2026-11-20T10:00:00Z\"}],"
                  "\"images\":[",
                  number, number);
    for (int i = 0; i < 50; i++)
        as_buf_printf(out, "%s{\"names\":[\"example.com/image-%d@sha256:0123456789abcdef\"]}",
                      i ? "," : "", i);
    as_buf_append_str(out, "]}}");
}

#endif
