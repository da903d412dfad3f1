/*
 * The facts of a large cluster: 5,000 nodes, 500 budgets, and 100,000 pods of 1,000 pod classes,
 * each pod with a label of its own, from the JSON of each object; then single events of pods, each
 * with a view. Prints seconds, memory and microseconds; the bounds are 64 MiB and 30 us an event.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/kube/kube_facts.h>

#include "clock.h"
#include "cluster_objects.h"

#define EVENTS        20000
#define EVENT_US_MAX  30.0
#define FORGOTTEN     5000
#define MESSAGE_BYTES 65536

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
    double seconds = 0, longest = 0;

    as_cluster_facts_begin_list(facts, kind);
    for (int i = 0; i < count; i++) {
        if (kind == AS_CLUSTER_NODES)
            make_node(buf, i);
        else if (kind == AS_CLUSTER_BUDGETS)
            make_budget(buf, i);
        else
            make_pod(buf, i, "Running");
        const double start = clock_get_seconds();
        put(facts, kind, scratch, AS_KUBE_JSON, buf);
        const double took = clock_get_seconds() - start;
        longest = took > longest ? took : longest;
        seconds += took;
    }
    const double start = clock_get_seconds();
    as_cluster_facts_end_list(facts, kind);
    const double end = clock_get_seconds() - start;
    printf("cluster facts: slowest object of a list %.2f ms; end of the list %.2f ms\n",
           longest * 1e3, end * 1e3);
    return seconds + end;
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
        make_pod(buf, i * 37 % BENCH_PODS, i % 2 ? "Running" : "Succeeded");
        const double start = clock_get_seconds();
        put(facts, AS_CLUSTER_PODS, scratch, AS_KUBE_JSON, buf);
        get_view(facts);
        seconds += clock_get_seconds() - start;
    }
    return seconds / EVENTS * 1e6;
}

/* As much as is forgotten in a turn of the event loop (kube/cluster_watch.c): the slowest.
 */
static double forget(struct as_cluster_facts *facts)
{
    double longest = 0;
    bool has_more = true;

    while (has_more) {
        const double start = clock_get_seconds();
        has_more = as_cluster_facts_forget_pods(facts, FORGOTTEN);
        const double took = clock_get_seconds() - start;
        longest = took > longest ? took : longest;
    }
    return longest;
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
    const double nodes = list(facts, AS_CLUSTER_NODES, BENCH_NODES, &scratch, &buf);
    const size_t node_bytes = buf.size;
    list(facts, AS_CLUSTER_BUDGETS, BENCH_BUDGETS, &scratch, &buf);
    const double pods = list(facts, AS_CLUSTER_PODS, BENCH_PODS, &scratch, &buf);
    printf(
        "cluster facts: %d nodes of %zu bytes: %.2f s; %d pods of %zu bytes, %d shapes: %.2f s\n",
        BENCH_NODES, node_bytes, nodes, BENCH_PODS, pod_bytes, BENCH_POD_CLASSES, pods);
    const double first = get_view(facts);
    const double mib = (double)as_cluster_facts_measure(facts) / (1 << 20);
    printf("cluster facts: %.1f MiB held (at most %zu); the first view %.2f ms\n", mib,
           AS_CLUSTER_FACTS_BYTES >> 20, first * 1e3);
    const double event = change_pods(facts, &scratch, &buf);
    printf("cluster facts: %.1f us an event of a pod with its view (at most %.0f)\n", event,
           EVENT_US_MAX);
    make_node(&buf, BENCH_NODES);
    const double start = clock_get_seconds();
    put(facts, AS_CLUSTER_NODES, &scratch, AS_KUBE_JSON, &buf);
    get_view(facts);
    printf("cluster facts: %.2f ms a new node with its view\n",
           (clock_get_seconds() - start) * 1e3);
    const double again = list(facts, AS_CLUSTER_PODS, BENCH_PODS, &scratch, &buf);
    printf("cluster facts: %.2f s to list the pods anew\n", again);
    printf("cluster facts: %.2f ms to forget %d pods\n", forget(facts) * 1e3, FORGOTTEN);
    return event > EVENT_US_MAX;
}
