/*
 * What it costs to take a list or a watch of pods apart: bytes a second, in parts of 64 KiB, as the
 * HTTP client hands them over. Bound: 300 MB/s.
 */
#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/protobuf.h>
#include <alertscaler/kube/kube_stream.h>

#include "clock.h"

#define PODS       5000
#define ROUNDS     15
#define PART       ((size_t)64 * 1024)
#define BODY_MAX   ((size_t)256 * 1024 * 1024)
#define BOUND_MB_S 300.0

/* A pod as the API server has it, with what managers of fields leave in it. */
static void append_pod(struct as_buf *out, int number)
{
    as_buf_printf(
        out,
        "{\"metadata\":{\"name\":\"web-7d9c5b8f6-%05d\",\"generateName\":\"web-7d9c5b8f6-\","
        "\"namespace\":\"shop\",\"uid\":\"0f0e8a52-5a1d-4b0f-9a3e-%012d\",\"resourceVersion\":"
        "\"%d\",\"creationTimestamp\":\"2026-11-20T10:00:00Z\",\"labels\":{\"app\":\"web\","
        "\"pod-template-hash\":\"7d9c5b8f6\"},\"annotations\":{\"example.org/config\":"
        "\"{\\\"replicas\\\":3,\\\"image\\\":\\\"registry.example/web:1.2.3\\\"}\"},",
        number, number, 1000 + number);
    as_buf_append_str(
        out,
        "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
        "\"web-7d9c5b8f6\",\"uid\":\"5b1d8a52-0f0e-4b0f-9a3e-000000000000\",\"controller\":true,"
        "\"blockOwnerDeletion\":true}],\"managedFields\":[{\"manager\":\"kube-controller-manager\","
        "\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"2026-11-20T10:00:00Z\","
        "\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:generateName\":{},"
        "\"f:labels\":{\".\":{},\"f:app\":{},\"f:pod-template-hash\":{}},\"f:ownerReferences\":"
        "{\".\":{},\"k:{\\\"uid\\\":\\\"5b1d8a52-0f0e-4b0f-9a3e-000000000000\\\"}\":{}}},\"f:"
        "spec\":"
        "{\"f:containers\":{\"k:{\\\"name\\\":\\\"web\\\"}\":{\".\":{},\"f:image\":{},"
        "\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{\".\":{},\"f:requests\":{\".\":{},"
        "\"f:cpu\":{},\"f:memory\":{}}}}},\"f:restartPolicy\":{},\"f:schedulerName\":{}}}}]},");
    as_buf_append_str(
        out,
        "\"spec\":{\"volumes\":[{\"name\":\"kube-api-access-x7f9c\",\"projected\":{\"sources\":[{"
        "\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{"
        "\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}}],"
        "\"defaultMode\":420}}],\"containers\":[{\"name\":\"web\",\"image\":"
        "\"registry.example/web:1.2.3\",\"ports\":[{\"containerPort\":8080,\"protocol\":\"TCP\"}],"
        "\"env\":[{\"name\":\"MODE\",\"value\":\"production\"}],\"resources\":{\"requests\":{"
        "\"cpu\":\"250m\",\"memory\":\"256Mi\"}},\"terminationMessagePath\":"
        "\"/dev/termination-log\",\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":"
        "\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\","
        "\"nodeName\":\"node-17\",\"schedulerName\":\"default-scheduler\",\"tolerations\":[{"
        "\"key\":"
        "\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}],\"priority\":0},\"status\":{\"phase\":\"Running\","
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,"
        "\"lastTransitionTime\":\"2026-11-20T10:00:05Z\"}],\"hostIP\":\"10.0.0.17\",\"podIP\":"
        "\"10.1.2.3\",\"qosClass\":\"Burstable\"}}");
}

static void append_json_list(struct as_buf *out)
{
    as_buf_append_str(out, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                           "\"resourceVersion\":\"9\"},\"items\":[");
    for (int i = 0; i < PODS; i++) {
        if (i > 0)
            as_buf_append_char(out, ',');
        append_pod(out, i);
    }
    as_buf_append_str(out, "]}\n");
}

static void append_json_watch(struct as_buf *out)
{
    for (int i = 0; i < PODS; i++) {
        as_buf_append_str(out, "{\"type\":\"MODIFIED\",\"object\":");
        append_pod(out, i);
        as_buf_append_str(out, "}\n");
    }
}

/* The objects are opaque: text of the same size will do. */
static void append_binary_list(struct as_buf *out)
{
    struct as_buf list = AS_BUF_INIT_OPEN(BODY_MAX), pod = AS_BUF_INIT_OPEN(BODY_MAX);
    as_protobuf_write_text(&pod, 2, "9");
    as_protobuf_write_message(&list, 1, &pod);
    for (int i = 0; i < PODS; i++) {
        as_buf_clear(&pod);
        append_pod(&pod, i);
        as_protobuf_write_message(&list, 2, &pod);
    }
    as_buf_clear(&pod);
    as_protobuf_write_text(&pod, 2, "PodList");
    as_buf_append(out, "k8s", 4);
    as_protobuf_write_message(out, 1, &pod);
    as_protobuf_write_message(out, 2, &list);
    as_buf_deinit(&pod);
    as_buf_deinit(&list);
}

static int take(void *context, const struct as_kube_stream_event *event, struct as_error *error)
{
    size_t *count = context;
    *count += event->size > 0;
    return 0;
}

static double measure(const struct as_buf *body, enum as_kube_stream_kind kind,
                      enum as_kube_form form)
{
    struct as_error error = AS_ERROR_INIT;
    double start = clock_get_seconds();
    size_t count = 0;
    AS_CLEANUP(as_kube_stream_free_p)
    struct as_kube_stream *stream = as_kube_stream_new(kind, form, take, &count);
    for (size_t at = 0; at < body->size; at += PART) {
        size_t rest = body->size - at;
        if (as_kube_stream_feed(stream, body->data + at, rest < PART ? rest : PART, &error) < 0)
            abort();
    }
    if (as_kube_stream_finish(stream, &error) < 0 || count != PODS)
        abort();
    return clock_get_seconds() - start;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*append)(struct as_buf *out);
        enum as_kube_stream_kind kind;
        enum as_kube_form form;
    } rows[] = {
        {"list, JSON", append_json_list, AS_KUBE_STREAM_LIST, AS_KUBE_JSON},
        {"watch, JSON", append_json_watch, AS_KUBE_STREAM_WATCH, AS_KUBE_JSON},
        {"list, binary", append_binary_list, AS_KUBE_STREAM_LIST, AS_KUBE_PROTOBUF},
    };
    bool is_slow = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_buf body = AS_BUF_INIT_OPEN(BODY_MAX);
        double best = 0;
        rows[i].append(&body);
        for (int round = 0; round < ROUNDS; round++) {
            double speed = (double)body.size / measure(&body, rows[i].kind, rows[i].form) / 1e6;
            best = speed > best ? speed : best;
        }
        printf("kube_stream: %s: %d pods of %zu bytes: %.0f MB/s (at least %.0f)\n", rows[i].name,
               PODS, body.size / PODS, best, BOUND_MB_S);
        is_slow = is_slow || best < BOUND_MB_S;
        as_buf_deinit(&body);
    }
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    return is_slow;
#else
    return 0;
#endif
}
