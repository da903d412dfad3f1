/*
 * The providers, one file each; provider_table.c says what each is for.
 */
#ifndef ALERTSCALER_SRC_CLOUD_PROVIDERS_H
#define ALERTSCALER_SRC_CLOUD_PROVIDERS_H

#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/login/cloud_credentials.h>

extern const struct as_group_provider provider_alibaba;
extern const struct as_group_provider provider_aws;
extern const struct as_group_provider provider_azure;
extern const struct as_group_provider provider_baidu;
extern const struct as_group_provider provider_clusterapi;
extern const struct as_group_provider provider_digitalocean;
extern const struct as_group_provider provider_equinix;
extern const struct as_group_provider provider_externalgrpc;
extern const struct as_group_provider provider_gce;
extern const struct as_group_provider provider_gke;
extern const struct as_group_provider provider_http;
extern const struct as_group_provider provider_magnum;

#endif
