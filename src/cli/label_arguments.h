/*
 * Labels and annotations as arguments: NAME=VALUE.
 */
#ifndef ALERTSCALER_SRC_CLI_LABEL_ARGUMENTS_H
#define ALERTSCALER_SRC_CLI_LABEL_ARGUMENTS_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/model/labels.h>

#define LABEL_ARGUMENTS_MAX 1000

/* `what` is "label" or "annotation". A value may be empty or contain '='. 0; or a negative errno
 * with an error. */
int label_arguments_parse(const char *const *texts, size_t count, const char *what,
                          struct as_labels **labels_out, struct as_error *error) AS_MUST_USE;

#endif
