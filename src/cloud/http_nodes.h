/*
 * HTTP node groups whose nodes are known by labels (`nodes.select`): as the groups of a cloud, with
 * the requests of the generic HTTP node group. The nodes are named as the cluster names them.
 */
#ifndef ALERTSCALER_SRC_CLOUD_HTTP_NODES_H
#define ALERTSCALER_SRC_CLOUD_HTTP_NODES_H

#include <alertscaler/cloud/provider_group.h>

/* Not in the table of providers: the login is that of `http_config`, and without `nodes.select` a
 * group is no more than a size (http_group.c). */
extern const struct as_group_provider as_http_nodes;

#endif
