/*
 * Shared by the tests of Google's node groups: groups of "shop", answers, whole conversations.
 */
#ifndef ALERTSCALER_TESTS_UNIT_PROVIDER_GOOGLE_GROUPS_H
#define ALERTSCALER_TESTS_UNIT_PROVIDER_GOOGLE_GROUPS_H

#include "op_driver.h"

#define COMPUTE   "http://127.0.0.1:5000/compute/v1/"
#define CONTAINER "http://127.0.0.1:5001/v1/"
#define ZONE      "projects/shop/zones/europe-west1-b"
#define WORKERS   COMPUTE ZONE "/instanceGroupManagers/workers"
#define LIST      "/listManagedInstances?maxResults=500"
#define ULID      "01HZ3V5N8QK2M4P6R8T0W2Y4Z6"

#define AT(zone, name)                                                                             \
    "https://www.googleapis.com/compute/v1/projects/shop/zones/" zone "/instances/" name
#define INSTANCE(name, rest) "{\"instance\":\"" AT("europe-west1-b", name) "\"," rest "}"
#define RUNS                 "\"instanceStatus\":\"RUNNING\",\"currentAction\":\"NONE\""
#define OPERATION(name)                                                                            \
    "{\"kind\":\"compute#operation\",\"name\":\"" name "\",\"status\":\"RUNNING\",\"zone\":"       \
    "\"https://www.googleapis.com/compute/v1/" ZONE "\"}"

/* The managed instances of a group, all running: those of `ids` (ZONE/GROUP/NAME). */
static inline void google_members(struct as_cloud_op *op, const char *const *ids, size_t count)
{
    struct as_buf body = AS_BUF_INIT(1024 * 1024);
    as_buf_append_str(&body, "{\"managedInstances\":[");
    for (size_t i = 0; i < count; i++)
        as_buf_printf(&body,
                      "%s{\"instance\":\"https://www.googleapis.com/compute/v1/projects/shop/zones/"
                      "%.*s/instances/%s\"," RUNS "}",
                      i > 0 ? "," : "", (int)strcspn(ids[i], "/"), ids[i],
                      strrchr(ids[i], '/') + 1);
    as_buf_append_str(&body, "]}");
    driver_answer(op, 200, body.data);
    as_buf_deinit(&body);
}

static inline void google_error(struct as_cloud_op *op, int status, const char *reason,
                                const char *message)
{
    char body[1024];
    snprintf(body, sizeof(body),
             "{\"error\":{\"code\":%d,\"message\":\"%s\",\"errors\":[{\"message\":\"%s\","
             "\"domain\":\"global\",\"reason\":\"%s\"}]}}",
             status, message, message, reason);
    driver_answer(op, status, body);
}

#endif
