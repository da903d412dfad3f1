/*
 * The providers, one file each.
 */
#ifndef ALERTSCALER_SRC_PROVIDER_PROVIDERS_H
#define ALERTSCALER_SRC_PROVIDER_PROVIDERS_H

#include <alertscaler/provider/group.h>

extern const struct as_group_provider
    provider_aws; /* EC2 Auto Scaling groups, EKS managed node groups */

extern const struct as_group_provider
    provider_azure; /* virtual machine scale sets, agent pools of AKS */

extern const struct as_group_provider provider_gce; /* managed instance groups */
extern const struct as_group_provider provider_gke; /* node pools */

#endif
