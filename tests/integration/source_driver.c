/*
 * The source layer on its own, for tests/integration/test_sources.py; driver.h says how it is
 * talked to.
 *
 *   {"ticket": 1, "op": "query", "query": "up", "form": "number", "pod_label": "pod"}
 *   {"ticket": 2, "op": "list"}
 *
 * Forms are number, per_pod and any. An answer holds in `counted` what metrics were told since the
 * one before. Options: --config FILE, an alertscaler.yaml.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/monitoring/monitoring.h>
#include <alertscaler/rules/config.h>

#include "driver.h"

static struct as_source_port *source;
static json_t *counted;

static void count(void *context, const char *server, const char *outcome, int64_t duration_us)
{
    AS_CLEANUP(as_free_p) char *text = as_xasprintf("%s %s", server, outcome);
    json_array_append_new(counted, json_string(text));
}

static void answer(uint64_t call_id, const char *error, const char *key, json_t *value)
{
    json_t *told = counted;
    counted = json_array();
    driver_answer(json_pack("{s:I, s:s?, s:o, s:o}", "ticket", (json_int_t)call_id, "error", error,
                            key, value, "counted", told));
}

static json_t *make_time(as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print_short(time, text);
    return json_string(text);
}

static void queried(void *context, uint64_t call_id, const struct as_query_result *result)
{
    json_t *samples = json_array();
    for (size_t i = 0; i < result->sample_count; i++)
        json_array_append_new(samples, json_pack("{s:s, s:f, s:o}", "pod", result->samples[i].pod,
                                                 "value", result->samples[i].value, "at",
                                                 make_time(result->samples[i].at.at)));
    if (result->sample_count > 0)
        answer(call_id, result->error, "samples", samples);
    else
        answer(call_id, result->error, "value", json_real(result->value));
    if (result->sample_count == 0)
        json_decref(samples);
}

static json_t *make_labels(const struct as_labels *labels)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < labels->count; i++)
        json_object_set_new(object, labels->items[i].name, json_string(labels->items[i].value));
    return object;
}

static json_t *make_alert(const struct as_listed_alert *alert)
{
    char fingerprint[17];
    json_t *routes = json_object();
    for (size_t i = 0; i < alert->route_count; i++) {
        const struct as_listed_route *route = &alert->routes[i];
        const json_int_t wait =
            route->wait_us == AS_LISTED_NEVER ? -1 : route->wait_us / AS_US_PER_S;
        json_object_set_new(routes, route->receiver,
                            json_pack("{s:b, s:I}", "muted", route->is_muted, "wait", wait));
    }
    snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, alert->fingerprint);
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "fingerprint", fingerprint, "suppressed",
                     alert->is_suppressed, "starts_at", make_time(alert->starts_at), "labels",
                     make_labels(alert->labels), "annotations", make_labels(alert->annotations),
                     "routes", routes);
}

static void listed(void *context, uint64_t call_id, const struct as_alert_list *list)
{
    json_t *alerts = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(alerts, make_alert(&list->alerts[i]));
    answer(call_id, list->error, "alerts", alerts);
}

static enum as_query_form get_form(const char *word)
{
    return strcmp(word, "per_pod") == 0 ? AS_QUERY_PER_POD
           : strcmp(word, "any") == 0   ? AS_QUERY_ANY
                                        : AS_QUERY_NUMBER;
}

static void carry_out(const json_t *command)
{
    uint64_t call_id = (uint64_t)json_integer_value(json_object_get(command, "ticket"));
    const struct as_query query = {
        .text = driver_get_text(command, "query"),
        .form = get_form(driver_get_text(command, "form")),
        .pod_label = driver_get_text(command, "pod_label"),
    };
    if (strcmp(driver_get_text(command, "op"), "list") == 0)
        source->list_alerts(source, call_id, listed, NULL);
    else
        source->query(source, call_id, &query, queried, NULL);
}

int main(int argc, char **argv)
{
    struct driver *driver = driver_open();
    struct as_source_env env = {
        .http = driver->http, .loop = driver->loop, .clock = &driver->clock, .observer = count};
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_config *config = NULL;
    if (as_config_load(driver_get_option(argv, "--config"), &config, &diagnostics) != 0) {
        as_diagnostics_print(&diagnostics, stderr);
        return 1;
    }
    counted = json_array();
    source = as_monitoring_new(&config->settings, &env);
    driver_run(carry_out);
    source->close(source);
    driver_close();
    json_decref(counted);
    as_diagnostics_deinit(&diagnostics);
    as_config_free(config);
    return 0;
}
