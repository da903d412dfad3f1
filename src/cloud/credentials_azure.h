/*
 * Credentials and endpoints of Azure, in the order of its own libraries' default chain:
 * https://learn.microsoft.com/azure/developer/go/sdk/authentication/credential-chains
 */
#ifndef ALERTSCALER_SRC_CLOUD_CREDENTIALS_AZURE_H
#define ALERTSCALER_SRC_CLOUD_CREDENTIALS_AZURE_H

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_credentials.h>
#include <alertscaler/cloud/talk.h>

extern const struct as_credentials_source azure_credentials[];

/* Resource Manager's endpoint: the account's option `endpoint`, else that of its `cloud`; without a
 * slash at its end; memory of the talk. NULL after failing the talk. */
const char *azure_make_endpoint(struct as_talk *talk,
                                const struct as_provider_settings *account) AS_MUST_USE;

#endif
