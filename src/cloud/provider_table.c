/*
 * The table of providers: one row each, and the search in it. The keys of a provider are a row in
 * src/rules/provider_keys.c.
 */
#include <stddef.h>
#include <string.h>

#include <alertscaler/cloud/provider_group.h>

#include "providers.h"

static const struct as_group_provider *const providers[] = {
    &provider_alibaba,      /* scaling groups of Auto Scaling (ESS) */
    &provider_aws,          /* EC2 Auto Scaling groups, managed node groups of EKS */
    &provider_azure,        /* virtual machine scale sets, agent pools of AKS */
    &provider_baidu,        /* node groups of CCE */
    &provider_clusterapi,   /* MachineDeployments, MachineSets, MachinePools */
    &provider_digitalocean, /* node pools of DOKS */
    &provider_equinix,      /* devices of Equinix Metal with the tags of a pool */
    &provider_externalgrpc, /* drivers of Cluster Autoscaler's external gRPC */
    &provider_gce,          /* managed instance groups */
    &provider_gke,          /* node pools */
    &provider_http,         /* services with a size at a URL, by docs/targets.md */
    &provider_magnum,       /* node groups of OpenStack Magnum's clusters */
    NULL,
};

const struct as_group_provider *as_group_provider_find(const char *type)
{
    for (size_t i = 0; providers[i]; i++) {
        if (strcmp(providers[i]->type, type) == 0)
            return providers[i];
    }
    return NULL;
}
