/*
 * The types of providers, as far as configurations go: a row each, with the keys of its accounts
 * and of its groups. The calls of a type are a row in src/cloud/provider_table.c, under the same
 * name.
 */
#include <alertscaler/rules/provider_kind.h>

static const struct as_provider_kind alibaba = {
    .type = "alibaba",
    .account_keys =
        (const struct as_provider_key[]){
            {.key = "region"},
            {.key = "endpoint", .is_url = true},
            {.key = "sts_endpoint", .is_url = true},
            {.key = "metadata_endpoint", .is_url = true, .is_metadata = true},
            {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {0}},
};

static const struct as_provider_kind aws = {
    .type = "aws",
    .account_keys = (const struct as_provider_key[]){{.key = "region"},
                                                     {.key = "profile"},
                                                     {.key = "endpoint", .is_url = true},
                                                     {.key = "eks_endpoint", .is_url = true},
                                                     {.key = "sts_endpoint", .is_url = true},
                                                     {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {.key = "cluster",
             .place = AS_PLACE_CLUSTER,
             .about = "The provider's cluster of the node group."},
            {0}},
};

static const struct as_provider_kind azure = {
    .type = "azure",
    .account_keys =
        (const struct as_provider_key[]){
            {.key = "subscription", .is_required = true},
            {.key = "cloud"},
            {.key = "endpoint", .is_url = true, .is_private = true},
            {.key = "authority", .is_url = true, .is_private = true},
            {.key = "tenant_id"},
            {.key = "client_id"},
            {.key = "client_secret_file", .is_file = true},
            {.key = "federated_token_file", .is_file = true},
            {.key = "metadata_endpoint", .is_url = true, .is_metadata = true},
            {.key = "compute_api_version"},
            {.key = "aks_api_version"},
            {0},
        },
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {.key = "resource_group",
             .place = AS_PLACE_PROJECT,
             .is_required = true,
             .about = "azure: the resource group."},
            {.key = "cluster",
             .place = AS_PLACE_CLUSTER,
             .about = "The provider's cluster of the node group."},
            {.key = "force_deletion", .about = "azure: instances are deleted without a shutdown."},
            {0},
        },
};

static const struct as_provider_kind baidu = {
    .type = "baidu",
    .account_keys = (const struct as_provider_key[]){{.key = "region"},
                                                     {.key = "credentials_file", .is_file = true},
                                                     {.key = "endpoint", .is_url = true},
                                                     {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "cluster",
             .place = AS_PLACE_CLUSTER,
             .is_required = true,
             .about = "The provider's cluster of the node group."},
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {0}},
};

static const struct as_provider_kind clusterapi = {
    .type = "clusterapi",
    .account_keys = (const struct as_provider_key[]){{.key = "cluster"}, {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "namespace",
             .place = AS_PLACE_NAMESPACE,
             .is_required = true,
             .about = "clusterapi: the namespace of the object."},
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {.key = "kind", .place = AS_PLACE_KIND, .about = "clusterapi: the kind of the object."},
            {0}},
};

static const struct as_provider_kind digitalocean = {
    .type = "digitalocean",
    .account_keys = (const struct as_provider_key[]){{.key = "token_file", .is_file = true},
                                                     {.key = "endpoint", .is_url = true},
                                                     {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "cluster",
             .place = AS_PLACE_CLUSTER,
             .is_required = true,
             .about = "The provider's cluster of the node group."},
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {0}},
};

static const struct as_provider_kind equinix = {
    .type = "equinix",
    .warning = "Equinix Metal was shut down on 2026-06-30: this provider is of use only "
               "with an `endpoint` that speaks its API",
    .account_keys =
        (const struct as_provider_key[]){
            {.key = "project", .is_required = true},
            {.key = "token_file", .is_file = true},
            {.key = "userdata_file", .is_file = true},
            {.key = "endpoint", .is_url = true},
            {0},
        },
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "cluster",
             .place = AS_PLACE_CLUSTER,
             .is_required = true,
             .about = "The provider's cluster of the node group."},
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {.key = "plan", .is_required = true, .about = "equinix: the plan of new devices."},
            {.key = "metro", .is_required = true, .about = "equinix: the metro of new devices."},
            {.key = "operating_system",
             .is_required = true,
             .about = "equinix: the operating system of new devices."},
            {.key = "billing_cycle", .about = "equinix: the billing cycle of new devices."},
            {.key = "hardware_reservation_id", .about = "equinix: the reservation of new devices."},
            {0},
        },
};

static const struct as_provider_kind externalgrpc = {
    .type = "externalgrpc",
    .has_http_login = true,
    .account_keys =
        (const struct as_provider_key[]){{.key = "endpoint", .is_required = true, .is_url = true},
                                         {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {0}},
};

static const struct as_provider_kind gce = {
    .type = "gce",
    .account_keys = (const struct as_provider_key[]){{.key = "project"},
                                                     {.key = "credentials_file", .is_file = true},
                                                     {.key = "endpoint", .is_url = true},
                                                     {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {.key = "zone", .place = AS_PLACE_ZONE, .about = "gce: the zone of the group."},
            {.key = "region", .place = AS_PLACE_REGION, .about = "gce: the region of the group."},
            {.key = "project",
             .place = AS_PLACE_PROJECT,
             .about = "gce, gke: the project of the group."},
            {0}},
};

static const struct as_provider_kind gke = {
    .type = "gke",
    .family = "gce",
    .account_keys = (const struct as_provider_key[]){{.key = "project"},
                                                     {.key = "credentials_file", .is_file = true},
                                                     {.key = "endpoint", .is_url = true},
                                                     {.key = "compute_endpoint", .is_url = true},
                                                     {0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {.key = "cluster",
             .place = AS_PLACE_CLUSTER,
             .is_required = true,
             .about = "The provider's cluster of the node group."},
            {.key = "location",
             .place = AS_PLACE_REGION,
             .is_required = true,
             .about = "gke: the zone or region of the cluster."},
            {.key = "project",
             .place = AS_PLACE_PROJECT,
             .about = "gce, gke: the project of the group."},
            {0}},
};

static const struct as_provider_kind http = {
    .type = "http",
    .has_url_groups = true,
    .names_no_instances = true,
    .has_http_login = true,
    .account_keys = (const struct as_provider_key[]){{0}},
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "url", .about = "http: the address of the group."},
            {.key = "name", .about = "The name of the node group, as the provider knows it."},
            {0}},
};

static const struct as_provider_kind magnum = {
    .type = "magnum",
    .names_no_instances = true,
    .account_keys =
        (const struct as_provider_key[]){
            {.key = "auth_url", .is_url = true},
            {.key = "region"},
            {.key = "interface"},
            {.key = "endpoint", .is_url = true},
            {.key = "application_credential_id"},
            {.key = "application_credential_name"},
            {.key = "application_credential_secret_file", .is_file = true},
            {.key = "username"},
            {.key = "user_id"},
            {.key = "user_domain_name"},
            {.key = "user_domain_id"},
            {.key = "password_file", .is_file = true},
            {.key = "project_name"},
            {.key = "project_id"},
            {.key = "project_domain_name"},
            {.key = "project_domain_id"},
            {.key = "trust_id"},
            {0},
        },
    .group_keys =
        (const struct as_provider_key[]){
            {.key = "cluster",
             .place = AS_PLACE_CLUSTER,
             .is_required = true,
             .about = "The provider's cluster of the node group."},
            {.key = "name",
             .is_required = true,
             .about = "The name of the node group, as the provider knows it."},
            {.key = "node_label", .about = "magnum: the label of the group's nodes."},
            {0},
        },
};

const struct as_provider_kind *const as_provider_kinds[] = {
    &alibaba,      &aws, &azure, &baidu,  &clusterapi, &digitalocean, &equinix,
    &externalgrpc, &gce, &gke,   &magnum, &http,       NULL,
};
