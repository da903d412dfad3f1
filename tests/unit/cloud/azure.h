/*
 * Shared by the tests of Azure: a scale set and an agent pool, and answers with headers.
 */
#ifndef ALERTSCALER_TESTS_UNIT_PROVIDER_AZURE_H
#define ALERTSCALER_TESTS_UNIT_PROVIDER_AZURE_H

#include "op_driver.h"

#define BASE  "https://management.azure.com"
#define SCOPE BASE "/subscriptions/sub-1/resourceGroups/rg-1"
#define SET_ID                                                                                     \
    "/subscriptions/sub-1/resourceGroups/rg-1/providers/Microsoft.Compute/"                        \
    "virtualMachineScaleSets/web"
#define SET      BASE SET_ID
#define SET_URL  SET "?api-version=2024-11-01"
#define POOL     SCOPE "/providers/Microsoft.ContainerService/managedClusters/prod/agentPools/workers"
#define POOL_URL POOL "?api-version=2025-05-01"
#define OPERATION                                                                                  \
    BASE "/subscriptions/sub-1/providers/Microsoft.Compute/locations/westeurope/operations/"       \
         "op-1?p=1&api-version=2024-11-01"

static inline void name_set(struct driver_group *given)
{
    driver_option(given, "subscription", "sub-1");
    driver_field(given, "resource_group", "rg-1");
    driver_field(given, "name", "web");
}

static inline void name_pool(struct driver_group *given)
{
    driver_option(given, "subscription", "sub-1");
    driver_field(given, "resource_group", "rg-1");
    driver_field(given, "cluster", "prod");
    driver_field(given, "name", "workers");
}

/* `fields`: "name\0value\0", and the literal's own NUL ends them. */
static inline void answer_fields(struct as_cloud_op *op, int status, const char *fields,
                                 const char *body)
{
    driver_respond(op, (struct as_http_response){.status = status, .fields = fields, .body = body});
}

static inline void expect_question(const struct as_cloud_op *op, const char *url)
{
    driver_expect(op, "GET", url, "");
    driver_expect_headers(op, "");
    cr_assert_not(op->request.is_change);
    cr_assert_not(op->request.is_plain);
}

#endif
