/*
 * Errors of AWS' APIs: their codes as faults of a talk.
 */
#ifndef ALERTSCALER_SRC_CLOUD_AWS_ERRORS_H
#define ALERTSCALER_SRC_CLOUD_AWS_ERRORS_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/talk.h>

/* Whether the answer is good. If not, the talk has failed with the error's class and words, and
 * *code_out is its code ("": no code; memory of the talk). The query protocol's errors are XML. */
bool aws_is_good_xml(struct as_talk *talk, const char **code_out) AS_MUST_USE;
bool aws_is_good_json(struct as_talk *talk) AS_MUST_USE;

#endif
