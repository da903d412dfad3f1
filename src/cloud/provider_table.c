/*
 * The table of providers: one row each, and the search in it.
 */
#include <stddef.h>
#include <string.h>

#include <alertscaler/cloud/provider_group.h>

#include "providers.h"

const struct as_provider_kind *const as_provider_kinds[] = {
    &provider_alibaba.kind,      /* scaling groups of Auto Scaling (ESS) */
    &provider_aws.kind,          /* EC2 Auto Scaling groups, managed node groups of EKS */
    &provider_azure.kind,        /* virtual machine scale sets, agent pools of AKS */
    &provider_baidu.kind,        /* node groups of CCE */
    &provider_clusterapi.kind,   /* MachineDeployments, MachineSets, MachinePools */
    &provider_digitalocean.kind, /* node pools of DOKS */
    &provider_equinix.kind,      /* devices of Equinix Metal with the tags of a pool */
    &provider_externalgrpc.kind, /* drivers of Cluster Autoscaler's external gRPC */
    &provider_gce.kind,          /* managed instance groups */
    &provider_gke.kind,          /* node pools */
    &provider_magnum.kind,       /* node groups of OpenStack Magnum's clusters */
    NULL,
};

const struct as_provider_kind *as_provider_kind_find(const char *type)
{
    for (size_t i = 0; as_provider_kinds[i]; i++) {
        if (strcmp(as_provider_kinds[i]->type, type) == 0)
            return as_provider_kinds[i];
    }
    return NULL;
}

const struct as_group_provider *as_group_provider_find(const char *type)
{
    /* the kind is the first member of its provider */
    return (const struct as_group_provider *)as_provider_kind_find(type);
}
