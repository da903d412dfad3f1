/*
 * The target layer on its own, for tests/integration/test_targets.py; driver.h says how it is
 * talked to.
 *
 *   {"ticket": 1, "op": "observe", "kind": "kubernetes", "fields": {"cluster": "default", ...},
 *    "with_pods": true, "with_owners": true}
 *   {"ticket": 2, "op": "scale", "kind": ..., "fields": ..., "from": 4, "to": 6, "version": "123"}
 *
 * Options: --kubeconfig FILE, --context NAME, --credentials-file FILE (of the provider `mine`),
 * --service-account DIRECTORY.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cloud/target_registry.h>

#include "driver.h"

#define FIELDS_MAX 16

static struct as_target_port *targets;

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static json_t *make_time(as_maybe_time time)
{
    char text[AS_RFC3339_SIZE];
    if (!time.set)
        return json_null();
    as_wall_time_print_short(time.at, text);
    return json_string(text);
}

static json_t *make_number(double number)
{
    return isnan(number) ? json_null() : json_real(number);
}

static json_t *make_resources(const double resources[])
{
    return json_pack("{s:o, s:o}", "cpu", make_number(resources[AS_RESOURCE_CPU]), "memory",
                     make_number(resources[AS_RESOURCE_MEMORY]));
}

static json_t *make_containers(const struct as_pod_seen *pod)
{
    json_t *list = json_array();
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct as_container_seen *container = &pod->containers[i];
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "name", container->name,
                                              "requests", make_resources(container->requests),
                                              "limits", make_resources(container->limits)));
    }
    return list;
}

static json_t *make_pod(const struct as_pod_seen *pod)
{
    static const char *const owners[] = {"target", "other", "gone"};
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    json_t *ready = pod->ready == AS_UNKNOWN ? json_null() : json_boolean(pod->ready == AS_TRUE);
    return json_pack("{s:s, s:s?, s:s?, s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "owner",
                     owners[pod->owner], "owner_name", pod->owner_name, "owner_error",
                     pod->owner_error, "name", pod->name, "phase", phases[pod->phase], "ready",
                     ready, "deleting", pod->deleting, "start_time", make_time(pod->start_time),
                     "ready_since", make_time(pod->ready_since), "requests",
                     make_resources(pod->requests), "limits", make_resources(pod->limits),
                     "containers", make_containers(pod));
}

/* null where they are not known. */
static json_t *make_pods(const struct as_observation *o)
{
    if (!o->has_pods)
        return json_null();
    json_t *pods = json_array();
    for (size_t i = 0; i < o->pod_count; i++)
        json_array_append_new(pods, make_pod(&o->pods[i]));
    return pods;
}

static void observed(void *context, uint64_t call_id, const struct as_observation *o)
{
    driver_answer(json_pack(
        "{s:I, s:s, s:i, s:i, s:i, s:i, s:b, s:s, s:o, s:i, s:I, s:s}", "ticket",
        (json_int_t)call_id, "outcome", as_reason_get_word(o->outcome), "replicas", o->replicas,
        "status_replicas", o->status_replicas, "min", o->min, "max", o->max, "in_progress",
        o->in_progress, "version", o->version, "pods", make_pods(o), "http_status", o->http_status,
        "retry_after_us", (json_int_t)o->retry_after_us, "message", o->message));
}

static void scaled(void *context, uint64_t call_id, const struct as_scale_result *r)
{
    driver_answer(json_pack(
        "{s:I, s:s, s:b, s:i, s:I, s:i, s:s, s:s, s:s}", "ticket", (json_int_t)call_id, "outcome",
        as_reason_get_word(r->outcome), "is_ambiguous", r->is_ambiguous, "http_status",
        r->http_status, "retry_after_us", (json_int_t)r->retry_after_us, "attempts",
        (int)r->attempts, "method", r->method, "path", r->path, "message", r->message));
}

static struct as_target_ref *make_ref(const json_t *command)
{
    struct as_target_field fields[FIELDS_MAX];
    size_t count = 0;
    const char *key;
    json_t *value;
    bool is_group = strcmp(json_string_value(json_object_get(command, "kind")), "node_group") == 0;
    AS_CLEANUP(as_free_p) char *id = json_dumps(json_object_get(command, "fields"), JSON_COMPACT);
    json_object_foreach(json_object_get(command, "fields"), key, value) if (count < FIELDS_MAX)
        fields[count++] = (struct as_target_field){key, json_string_value(value)};
    return as_target_ref_make(is_group ? &as_target_kind_node_group : &as_target_kind_kubernetes,
                              id, fields, count);
}

static void carry_out(const json_t *command)
{
    uint64_t call_id = (uint64_t)json_integer_value(json_object_get(command, "ticket"));
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = make_ref(command);
    if (strcmp(driver_get_text(command, "op"), "scale") == 0) {
        struct as_scale_request request = {
            .from = (int32_t)json_integer_value(json_object_get(command, "from")),
            .to = (int32_t)json_integer_value(json_object_get(command, "to")),
            .decision_id = driver_get_text(command, "decision"),
            .rule = driver_get_text(command, "rule"),
            .alert = driver_get_text(command, "alert"),
        };
        snprintf(request.version, sizeof(request.version), "%s",
                 driver_get_text(command, "version"));
        targets->scale(targets, call_id, ref, &request, scaled, NULL);
    } else {
        const struct as_observe_request request = {
            .with_pods = json_is_true(json_object_get(command, "with_pods")),
            .with_owners = json_is_true(json_object_get(command, "with_owners")),
        };
        targets->observe(targets, call_id, ref, &request, observed, NULL);
    }
}

int main(int argc, char **argv)
{
    struct driver *driver = driver_open();
    struct as_access_env env = {
        .http = driver->http,
        .loop = driver->loop,
        .runner = driver->runner,
        .clock = &driver->clock,
        .get_variable = get_variable,
        .service_account_dir = driver_get_option(argv, "--service-account"),
    };
    struct as_cluster_settings cluster = {"default", driver_get_option(argv, "--kubeconfig"),
                                          driver_get_option(argv, "--context")};
    struct as_provider_settings provider = {
        .name = "mine",
        .type = "http",
        .timeout_us = 5 * AS_US_PER_S,
        .http.authorization = {"Bearer", driver_get_option(argv, "--credentials-file")},
    };
    struct as_settings settings = {
        .clusters = &cluster, .cluster_count = 1, .providers = &provider, .provider_count = 1};
    struct as_error error = AS_ERROR_INIT;
    if (as_target_registry_new(&settings, &env, &targets, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    driver_run(carry_out);
    targets->close(targets);
    driver_close();
    return 0;
}
