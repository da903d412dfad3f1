/*
 * Credentials of OpenStack, with the names of its own tools (OS_...), and the service's address
 * from a token's catalogue.
 */
#ifndef ALERTSCALER_SRC_CLOUD_CREDENTIALS_OPENSTACK_H
#define ALERTSCALER_SRC_CLOUD_CREDENTIALS_OPENSTACK_H

#include <alertscaler/cloud/provider_credentials.h>

extern const struct as_credentials_source openstack_credentials[];

#endif
