/*
 * The facts of a large cluster: 5,000 nodes and 100,000 pods of 1,000 shapes, from the JSON of
 * each object; then single events of pods, each with a view. Prints seconds,
 * memory and microseconds; the bounds are 64 MiB and 30 us an event.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/wire/kube_facts.h>

#include "clock.h"

#define NODES         5000
#define PODS          100000
#define SHAPES        1000
#define EVENTS        20000
#define EVENT_US_MAX  30.0
#define MESSAGE_BYTES 65536

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
    const int shape = number % SHAPES;

    as_buf_clear(out);
    as_buf_printf(out,
                  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"service-%d-"
                  "7d9f6c5b4-%05d\",\"generateName\":\"service-%d-7d9f6c5b4-\",\"namespace\":"
                  "\"team-%d\",\"uid\":\"0f7e1b9c-%d\",\"resourceVersion\":\"%d\","
                  "\"creationTimestamp\":\"2026-11-20T10:00:00Z\",\"labels\":{\"app\":\"service-%d"
                  "\",\"pod-template-hash\":\"7d9f6c5b4\",\"version\":\"v1\"},\"ownerReferences\":"
                  "[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"service-%d\","
                  "\"uid\":\"6a3e\",\"controller\":true}]," MANAGED "},",
                  shape, number, shape, shape % 50, number, number, shape, shape);
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
        shape, 128 + shape, 100 + shape, 128 + shape, number % NODES);
    as_buf_printf(out,
                  "\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"Initialized\","
                  "\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":"
                  "\"PodScheduled\",\"status\":\"True\"}],\"hostIP\":\"10.0.0.1\",\"podIP\":"
                  "\"10.1.2.3\",\"containerStatuses\":[{\"name\":\"app\",\"ready\":true,\"image\":"
                  "\"example.com/service:1.2.3\",\"imageID\":\"sha256:0123456789abcdef\"}]}}",
                  phase);
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

static void put(struct as_cluster_facts *facts, enum as_cluster_kind kind, struct as_arena *scratch,
                enum as_kube_form encoding, const struct as_buf *buf)
{
    const struct as_kube_bytes bytes = {encoding, buf->data, buf->size};
    struct as_error error;

    if (buf->failed || as_kube_fact_put(facts, kind, &bytes, scratch, &error) < 0) {
        fprintf(stderr, "%s\n", buf->failed ? "too large" : error.text);
        exit(1);
    }
}

static double list(struct as_cluster_facts *facts, enum as_cluster_kind kind, int count,
                   struct as_arena *scratch, struct as_buf *buf)
{
    double seconds = 0;

    as_cluster_facts_begin_list(facts, kind);
    for (int i = 0; i < count; i++) {
        if (kind == AS_CLUSTER_NODES)
            make_node(buf, i);
        else
            make_pod(buf, i, "Running");
        const double start = clock_get_seconds();
        put(facts, kind, scratch, AS_KUBE_JSON, buf);
        seconds += clock_get_seconds() - start;
    }
    const double start = clock_get_seconds();
    as_cluster_facts_end_list(facts, kind);
    return seconds + clock_get_seconds() - start;
}

static double get_view(struct as_cluster_facts *facts)
{
    const double start = clock_get_seconds();

    if (!as_cluster_facts_view(facts, NULL))
        abort();
    return clock_get_seconds() - start;
}

/* A pod ends, or comes again. */
static double change_pods(struct as_cluster_facts *facts, struct as_arena *scratch,
                          struct as_buf *buf)
{
    double seconds = 0;

    for (int i = 0; i < EVENTS; i++) {
        make_pod(buf, i * 37 % PODS, i % 2 ? "Running" : "Succeeded");
        const double start = clock_get_seconds();
        put(facts, AS_CLUSTER_PODS, scratch, AS_KUBE_JSON, buf);
        get_view(facts);
        seconds += clock_get_seconds() - start;
    }
    return seconds / EVENTS * 1e6;
}

int main(void)
{
    const struct as_cluster_facts_limits limits = {AS_CLUSTER_FACTS_BYTES};
    AS_CLEANUP(as_cluster_facts_free_p)
    struct as_cluster_facts *facts = as_cluster_facts_new(&limits);
    AS_CLEANUP(as_arena_deinit) struct as_arena scratch = AS_ARENA_INIT;
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(MESSAGE_BYTES);

    make_pod(&buf, 0, "Running");
    const size_t pod_bytes = buf.size;
    const double nodes = list(facts, AS_CLUSTER_NODES, NODES, &scratch, &buf);
    const size_t node_bytes = buf.size;
    const double pods = list(facts, AS_CLUSTER_PODS, PODS, &scratch, &buf);
    list(facts, AS_CLUSTER_BUDGETS, 0, &scratch, &buf);
    printf(
        "cluster facts: %d nodes of %zu bytes: %.2f s; %d pods of %zu bytes, %d shapes: %.2f s\n",
        NODES, node_bytes, nodes, PODS, pod_bytes, SHAPES, pods);
    const double first = get_view(facts);
    const double mib = (double)as_cluster_facts_measure(facts) / (1 << 20);
    printf("cluster facts: %.1f MiB held (at most %zu); the first view %.2f ms\n", mib,
           AS_CLUSTER_FACTS_BYTES >> 20, first * 1e3);
    const double event = change_pods(facts, &scratch, &buf);
    printf("cluster facts: %.1f us an event of a pod with its view (at most %.0f)\n", event,
           EVENT_US_MAX);
    make_node(&buf, NODES);
    const double start = clock_get_seconds();
    put(facts, AS_CLUSTER_NODES, &scratch, AS_KUBE_JSON, &buf);
    get_view(facts);
    printf("cluster facts: %.2f ms a new node with its view\n",
           (clock_get_seconds() - start) * 1e3);
    const double again = list(facts, AS_CLUSTER_PODS, PODS, &scratch, &buf);
    printf("cluster facts: %.2f s to list the pods anew\n", again);
    return event > EVENT_US_MAX;
}
