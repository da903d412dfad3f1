/*
 * The cost of decoding a group of 100 alerts beyond jansson's own parse. Prints both; the bound:
 * the conversion takes at most a quarter of the parse.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/monitoring/payload.h>

#include "clock.h"

#define ALERTS 100
#define ROUNDS 31
#define LOOPS  20

/* A group as a Kubernetes monitoring stack sends it. */
static struct as_notification *make_notification(void)
{
    struct as_notification *notification = as_xcalloc(1, sizeof(*notification));

    notification->receiver = as_xstrdup("alertscaler");
    notification->group_key = as_xstrdup("{}/{scale=\"true\"}:{alertname=\"HighCPU\"}");
    notification->reason = as_xstrdup("");
    notification->alert_count = ALERTS;
    notification->alerts = as_xcalloc(ALERTS, sizeof(*notification->alerts));
    for (int i = 0; i < ALERTS; i++) {
        char pod[32], summary[64];
        snprintf(pod, sizeof(pod), "web-%d-x7f9c", i);
        snprintf(summary, sizeof(summary), "CPU of %s is above 80%%", pod);
        const struct as_label labels[] = {
            {"alertname", "HighCPU"},    {"deployment", "web"}, {"namespace", "shop"}, {"pod", pod},
            {"prometheus", "infra/k8s"}, {"severity", "page"},
        };
        const struct as_label annotations[] = {
            {"description", "Usage over requests, five minutes; see the dashboard of the team"},
            {"runbook_url", "https://runbooks.example/HighCPU"},
            {"summary", summary}};
        struct as_alert *alert = &notification->alerts[i];
        if (as_labels_new(labels, AS_ARRAY_SIZE(labels), &alert->labels) < 0 ||
            as_labels_new(annotations, AS_ARRAY_SIZE(annotations), &alert->annotations) < 0)
            abort();
        alert->digest = as_labels_get_digest(alert->labels);
        alert->fingerprint = as_labels_get_fingerprint(alert->labels);
        alert->starts_at = (as_wall_time){INT64_C(1795000000123000)};
        alert->ends_at = (as_wall_time){-INT64_C(62135596800) * AS_US_PER_S};
    }
    return notification;
}

static void parse_only(const char *body, size_t size)
{
    json_t *root = json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);

    if (!root)
        abort();
    json_decref(root);
}

static void decode(const char *body, size_t size)
{
    struct as_notification *notification = NULL;

    if (as_payload_decode(body, size, &notification, NULL) < 0)
        abort();
    as_notification_free(notification);
}

static double measure(void (*work)(const char *body, size_t size), const struct as_buf *body)
{
    double start = clock_get_seconds();

    for (int i = 0; i < LOOPS; i++)
        work(body->data, body->size);
    return (clock_get_seconds() - start) / LOOPS;
}

int main(void)
{
    struct as_notification *notification = make_notification();
    struct as_buf body = AS_BUF_INIT((size_t)1 << 20);
    double parse = 1, whole = 1;

    as_payload_encode(notification, &body);
    as_notification_free(notification);
    for (int i = 0; i < ROUNDS; i++) { /* the quickest of rounds that take turns */
        double a = measure(parse_only, &body), b = measure(decode, &body);
        parse = a < parse ? a : parse;
        whole = b < whole ? b : whole;
    }
    double share = (whole - parse) / parse;
    printf("payload: %d alerts, %zu bytes (%zu an alert)\n", ALERTS, body.size, body.size / ALERTS);
    printf("payload: jansson alone %.1f us (%.0f MB/s, %.0f alerts/s), decoded %.1f us, "
           "conversion %.1f%% of the parse (at most 25%%)\n",
           parse * 1e6, (double)body.size / parse / 1e6, ALERTS / parse, whole * 1e6, share * 100);
    as_buf_deinit(&body);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    return share > 0.25;
#else
    return 0;
#endif
}
