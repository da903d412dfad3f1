/* Any bytes as answers of Prometheus and Alertmanager: read, or refused with a reason; the result
 * keeps the promises of model/source.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/monitoring/alertmanager_list.h>
#include <alertscaler/monitoring/prometheus.h>
#include <alertscaler/rules/alertmanager_routes.h>

#include "fuzz.h"

static void check_line(const char *text, size_t room)
{
    FUZZ_CHECK(strlen(text) < room && as_str_is_utf8(text, strlen(text)));
    for (; *text; text++)
        FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_query(const char *json, size_t size, enum as_query_form form)
{
    const struct as_query query = {.text = "up", .form = form, .pod_label = "pod"};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_query_result result;
    enum as_prometheus_outcome outcome =
        as_prometheus_decode_query(json, size, &query, &arena, &result);
    FUZZ_CHECK((outcome == AS_PROMETHEUS_ANSWERED) == !result.error);
    if (result.error) {
        FUZZ_CHECK(*result.error && result.sample_count == 0);
        check_line(result.error, AS_QUERY_ERROR_MAX);
    }
    FUZZ_CHECK(isfinite(result.value));
    FUZZ_CHECK(result.error || (result.sample_count > 0) == (form == AS_QUERY_PER_POD));
    for (size_t i = 0; i < result.sample_count; i++) {
        const struct as_sample *sample = &result.samples[i];
        FUZZ_CHECK(*sample->pod && isfinite(sample->value));
        FUZZ_CHECK(i == 0 || strcmp(sample[-1].pod, sample->pod) < 0);
    }
    as_arena_deinit(&arena);
}

static void check_alerts(const char *json, size_t size)
{
    struct as_alertmanager_alerts *lists[2] = {NULL, NULL};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_error error = AS_ERROR_INIT;
    struct as_alert_list merged;
    for (size_t i = 0; i < 2; i++) {
        int code = as_alertmanager_decode_groups(json, size, &lists[i], &error);
        FUZZ_CHECK(code == 0 || (code == -EINVAL && *error.text));
        if (code != 0)
            return;
    }
    as_alertmanager_merge(lists, 2, &arena, &merged);
    FUZZ_CHECK(!merged.error && merged.count <= lists[0]->count);
    FUZZ_CHECK(merged.unread == 2 * lists[0]->unread &&
               (merged.unread > 0) == (merged.problem != NULL));
    FUZZ_CHECK((merged.count > 0) == (lists[0]->count > 0));
    for (size_t i = 0; i < merged.count; i++) {
        const struct as_listed_alert *alert = &merged.alerts[i];
        FUZZ_CHECK(i == 0 || as_digest_compare(&alert[-1].digest, &alert->digest) < 0);
        FUZZ_CHECK(alert->labels && alert->annotations);
        FUZZ_CHECK(alert->route_count > 0 && alert->receiver_count == 0);
        for (size_t k = 1; k < alert->route_count; k++)
            FUZZ_CHECK(strcmp(alert->routes[k - 1].receiver, alert->routes[k].receiver) < 0);
    }
    as_arena_deinit(&arena);
    as_alertmanager_alerts_free(lists[0]);
    as_alertmanager_alerts_free(lists[1]);
}

/* The configuration in a status, and the bytes themselves as a configuration. */
static void check_status(const char *json, size_t size)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_error error = AS_ERROR_INIT;
    struct as_alertmanager_status status = {json, size, ""};
    struct as_alertmanager_routes *routes = NULL;
    if (as_alertmanager_decode_status(json, size, &arena, &status, &error) != 0)
        FUZZ_CHECK(*error.text);
    error = AS_ERROR_INIT;
    if (as_alertmanager_routes_parse(status.config, status.config_size, &routes, &error) != 0)
        FUZZ_CHECK(*error.text && !routes);
    else
        (void)as_alertmanager_routes_find(routes, status.uptime);
    as_alertmanager_routes_free(routes);
    as_arena_deinit(&arena);
}

static void check_series(void *context, const struct as_range_series *series)
{
    ++*(size_t *)context;
    FUZZ_CHECK(series->labels);
    for (size_t i = 1; i < series->count; i++)
        FUZZ_CHECK(series->points[i - 1].at.us < series->points[i].at.us);
}

static void check_range(const char *json, size_t size)
{
    struct as_error error = AS_ERROR_INIT;
    size_t count = 0;
    const enum as_prometheus_outcome outcome =
        as_prometheus_decode_range(json, size, check_series, &count, &error);
    FUZZ_CHECK(outcome != AS_PROMETHEUS_NO_DATA || count == 0);
    FUZZ_CHECK(outcome == AS_PROMETHEUS_ANSWERED || outcome == AS_PROMETHEUS_NO_DATA ||
               *error.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    char text[AS_QUERY_ERROR_MAX];

    check_query(json, size, AS_QUERY_NUMBER);
    check_query(json, size, AS_QUERY_PER_POD);
    check_query(json, size, AS_QUERY_ANY);
    check_alerts(json, size);
    check_status(json, size);
    check_range(json, size);
    as_prometheus_decode_error(json, size, text);
    check_line(text, sizeof(text));
    as_alertmanager_decode_error(json, size, text);
    check_line(text, sizeof(text));
    return 0;
}
