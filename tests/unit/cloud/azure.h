/*
 * Shared by the tests of Azure: a scale set and an agent pool, and answers with headers.
 */
#ifndef ALERTSCALER_TESTS_UNIT_PROVIDER_AZURE_H
#define ALERTSCALER_TESTS_UNIT_PROVIDER_AZURE_H

#include "talker.h"

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

static inline void name_set(struct talker_group *given)
{
    talker_option(given, "subscription", "sub-1");
    talker_field(given, "resource_group", "rg-1");
    talker_field(given, "name", "web");
}

static inline void name_pool(struct talker_group *given)
{
    talker_option(given, "subscription", "sub-1");
    talker_field(given, "resource_group", "rg-1");
    talker_field(given, "cluster", "prod");
    talker_field(given, "name", "workers");
}

/* `fields`: "name\0value\0", and the literal's own NUL ends them. */
static inline void answer_fields(struct as_talk *talk, int status, const char *fields,
                                 const char *body)
{
    talker_hear(talk, (struct as_http_response){.status = status, .fields = fields, .body = body});
}

static inline void expect_question(const struct as_talk *talk, const char *url)
{
    talker_expect(talk, "GET", url, "");
    talker_expect_headers(talk, "");
    cr_assert_not(talk->request.is_change);
    cr_assert_not(talk->request.is_plain);
}

#endif
