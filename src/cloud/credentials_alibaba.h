/*
 * Credentials of Alibaba Cloud, in the order of its own libraries; and the region.
 */
#ifndef ALERTSCALER_SRC_CLOUD_CREDENTIALS_ALIBABA_H
#define ALERTSCALER_SRC_CLOUD_CREDENTIALS_ALIBABA_H

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_credentials.h>

extern const struct as_credentials_source alibaba_credentials[];

/* The region of the account, else of the environment, else of the credentials; NULL: not known. */
const char *alibaba_find_region(const struct as_talk *talk,
                                const struct as_provider_settings *account,
                                const struct as_provider_credentials *credentials) AS_MUST_USE;

#endif
