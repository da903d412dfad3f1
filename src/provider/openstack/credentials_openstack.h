/*
 * Credentials of OpenStack, by the names that its own tools have for them (OS_...), and the address
 * of the service that the catalogue of a token names.
 */
#ifndef ALERTSCALER_SRC_PROVIDER_CREDENTIALS_OPENSTACK_H
#define ALERTSCALER_SRC_PROVIDER_CREDENTIALS_OPENSTACK_H

#include <alertscaler/provider/credentials.h>

extern const struct as_credentials_source openstack_credentials[];

#endif
