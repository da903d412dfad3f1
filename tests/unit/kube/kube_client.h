/*
 * A client of a scripted API server, for tests of code that uses one.
 */
#ifndef ALERTSCALER_TESTS_UNIT_TARGET_KUBE_CLIENT_H
#define ALERTSCALER_TESTS_UNIT_TARGET_KUBE_CLIENT_H

#include <alertscaler/kube/kube_client.h>

#include "support.h"

static struct as_kube_client client;
static struct as_kube_access *access_;

static inline void setup_client(void)
{
    setup_world();
    access_ = open_access();
    as_kube_client_init(&client, &env, access_);
}

static inline void teardown_client(void)
{
    as_kube_client_deinit(&client);
    as_kube_access_free(access_);
    teardown_world();
}

/* The answer to the next request of this method and path. */
static inline void answer(const char *method, const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){method, path, .status = status, .body = body});
}

static inline const struct world_request *get_last_request(void)
{
    cr_assert_gt(world.request_count, 0);
    return &world.requests[world.request_count - 1];
}

#define STATUS(message, more)                                                                      \
    "{\"kind\":\"Status\",\"message\":\"" message "\",\"details\":{" more "}}"
#define LIST_OF(kind, next, items)                                                                 \
    "{\"kind\":\"" kind "\",\"metadata\":{\"continue\":\"" next "\"},\"items\":[" items "]}"

#endif
