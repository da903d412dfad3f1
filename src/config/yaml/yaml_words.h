/*
 * What is said of a file that is no YAML, or cannot be read.
 */
#ifndef ALERTSCALER_SRC_CONFIG_YAML_YAML_WORDS_H
#define ALERTSCALER_SRC_CONFIG_YAML_YAML_WORDS_H

#include <alertscaler/base/attr.h>

/* libyaml's words for a problem as what to look for, with what to do; its own where it says
 * something else. */
const char *yaml_words_explain(const char *problem);

/* Why a file could not be read, from a negative errno; memory for free(). */
char *yaml_words_describe_failure(const char *path, int error) AS_MUST_USE;

#endif
