/*
 * The table of providers: one row each.
 */
#include <alertscaler/provider/group.h>

#include <stddef.h>

#include "providers.h"

const struct as_provider_kind *const as_provider_kinds[] = {
    &provider_aws.kind, &provider_azure.kind, &provider_gce.kind, &provider_gke.kind, NULL,
};

const struct as_group_provider *as_group_provider_find(const char *type)
{
    /* the kind is the first member of its provider */
    return (const struct as_group_provider *)as_provider_kind_find(type);
}
