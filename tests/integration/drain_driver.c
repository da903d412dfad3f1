/*
 * Nodes and drains on their own, for tests/integration/test_drain.py; driver.h says how it is
 * talked to.
 *
 *   {"ticket": 1, "op": "nodes", "instances": ["i-1", "i-2"]}
 *   {"ticket": 2, "op": "mark", "node": "n1", "instance": "i-1", "target": "group"}
 *   {"ticket": 2, "op": "empty", "node": "n1", "instance": "i-1", "target": "group", "timeout_ms":
 * 20000}
 *   {"ticket": 3, "op": "undo", "node": "n1"}
 *   {"ticket": 4, "op": "recover"}
 *
 * A target "gone" is one that does not exist any more.
 *
 * Options: --kubeconfig FILE, --owner NAME.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/drain.h>
#include <alertscaler/kube/nodes.h>

#include "driver.h"

#define INSTANCES_MAX 64

static struct as_kube_client client;
static struct as_drains *drains;

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static enum as_terminate_permit get_terminate_permit(void *context, const char *target,
                                                     const char **why)
{
    *why = "";
    return strcmp(target, "gone") == 0 ? AS_TERMINATE_GONE : AS_TERMINATE_GO;
}

static json_t *make_answer(void *context, const struct as_outcome *outcome)
{
    return json_pack("{s:I, s:s, s:s}", "ticket", (json_int_t)(intptr_t)context, "outcome",
                     as_reason_get_word(outcome->reason), "message", outcome->message);
}

static void nodes_read(void *context, const struct as_outcome *outcome,
                       const struct as_instance_node *nodes, size_t count)
{
    json_t *answer = make_answer(context, outcome), *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct as_candidate_node *node = &nodes[i].node;
        json_array_append_new(list, nodes[i].is_found
                                        ? json_pack("{s:s, s:b, s:b, s:I, s:f, s:s?, s:s?, s:s?}",
                                                    "name", node->name, "ready", node->is_ready,
                                                    "cordoned", node->is_cordoned, "pods",
                                                    (json_int_t)node->pod_count, "cpu",
                                                    node->requests[AS_RESOURCE_CPU], "blocking",
                                                    node->blocking_pod, "keep", node->keep, "mark",
                                                    nodes[i].mark ? nodes[i].mark->decision : NULL)
                                        : json_null());
    }
    json_object_set_new(answer, "nodes", list);
    driver_answer(answer);
}

static void drained(void *context, const struct as_drain_result *result)
{
    static const char *const ends[] = {
        [AS_DRAIN_DONE] = "done",         [AS_DRAIN_NO_NODE] = "no_node",
        [AS_DRAIN_NOT_YET] = "not_yet",   [AS_DRAIN_FAILED] = "failed",
        [AS_DRAIN_UNMARKED] = "unmarked", [AS_DRAIN_STUCK] = "stuck",
    };
    json_t *answer = make_answer(context, &result->outcome);
    json_object_set_new(answer, "end", json_string(ends[result->end]));
    json_object_set_new(answer, "evicted", json_integer(result->evicted));
    driver_answer(answer);
}

static void recovered(void *context, const struct as_outcome *outcome, unsigned undone,
                      bool is_any_marked)
{
    json_t *answer = make_answer(context, outcome);
    json_object_set_new(answer, "undone", json_integer(undone));
    driver_answer(answer);
}

static void read_nodes(const json_t *command, void *call_id)
{
    struct as_instance instances[INSTANCES_MAX] = {{.id = NULL}};
    const json_t *list = json_object_get(command, "instances");
    const size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < INSTANCES_MAX; i++)
        instances[i].id = json_string_value(json_array_get(list, i));
    const struct as_group_view view = {
        .instances = instances,
        .instance_count = count < INSTANCES_MAX ? count : INSTANCES_MAX,
    };
    struct as_nodes_reading *reading =
        as_nodes_read_start(&client, &view, true, AS_KEEP_DEFAULT, nodes_read, call_id);
    (void)reading;
}

static void carry_out(const json_t *command)
{
    void *call_id = (void *)(intptr_t)json_integer_value(json_object_get(command, "ticket"));
    const char *op = driver_get_text(command, "op");
    if (strcmp(op, "nodes") == 0) {
        read_nodes(command, call_id);
    } else if (strcmp(op, "undo") == 0) {
        as_drain_undo_start(drains, driver_get_text(command, "node"), drained, call_id);
    } else if (strcmp(op, "recover") == 0) {
        as_drain_recover(drains, recovered, call_id);
    } else {
        const struct as_drain_request request = {
            .task = strcmp(op, "mark") == 0 ? AS_DRAIN_MARK : AS_DRAIN_EMPTY,
            .node = driver_get_text(command, "node"),
            .provider_id = driver_get_text(command, "instance"),
            .target = driver_get_text(command, "target"),
            .decision_id = "01HD",
            .evicts = true,
            .timeout_us = json_integer_value(json_object_get(command, "timeout_ms")) * AS_US_PER_MS,
            .grace_us = -1,
            .keep = AS_KEEP_DEFAULT,
        };
        struct as_drain *drain = as_drain_start(drains, &request, drained, call_id);
        (void)drain;
    }
}

int main(int argc, char **argv)
{
    struct driver *driver = driver_open();
    const struct as_access_env env = {
        .http = driver->http,
        .loop = driver->loop,
        .runner = driver->runner,
        .clock = &driver->clock,
        .get_variable = get_variable,
        .get_terminate_permit = get_terminate_permit,
    };
    const struct as_kube_access_config config = {driver_get_option(argv, "--kubeconfig"), NULL};
    struct as_kube_access *access;
    struct as_error error = AS_ERROR_INIT;
    if (as_kube_access_new(&config, &env, &access, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    as_kube_client_init(&client, &env, access);
    drains = as_drains_new(&client, driver_get_option(argv, "--owner"));
    driver_run(carry_out);
    as_drains_free(drains);
    as_kube_client_deinit(&client);
    as_kube_access_free(access);
    driver_close();
    return 0;
}
