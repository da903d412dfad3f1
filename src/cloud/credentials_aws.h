/*
 * Credentials, region, endpoints and errors of AWS, in the order of AWS' own tools:
 * https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
 */
#ifndef ALERTSCALER_SRC_CLOUD_CREDENTIALS_AWS_H
#define ALERTSCALER_SRC_CLOUD_CREDENTIALS_AWS_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_credentials.h>
#include <alertscaler/cloud/talk.h>

extern const struct as_credentials_source aws_credentials[];

/* The account's `region`, else the region found with the credentials; NULL: not known. */
const char *aws_find_region(const struct as_provider_settings *account,
                            const struct as_provider_credentials *credentials) AS_MUST_USE;

/* The account's option `key` if given, else https://SERVICE.REGION.amazonaws.com (.cn in China);
 * without a slash at its end. Memory of the talk. NULL after failing the talk: the region is
 * invalid. */
const char *aws_make_endpoint(struct as_talk *talk, const struct as_provider_settings *account,
                              const char *key, const char *service, const char *region) AS_MUST_USE;

/* Whether the answer is good. If not, the talk has failed with the error's class and words, and
 * *code_out is its code ("": no code; memory of the talk). The query protocol's errors are XML. */
bool aws_is_good_xml(struct as_talk *talk, const char **code_out) AS_MUST_USE;
bool aws_is_good_json(struct as_talk *talk) AS_MUST_USE;

#endif
