/*
 * Messages for files that are no valid YAML, or cannot be read.
 */
#ifndef ALERTSCALER_SRC_DOC_YAML_WORDS_H
#define ALERTSCALER_SRC_DOC_YAML_WORDS_H

#include <alertscaler/doc/diagnostics.h>

/* Rewrites libyaml's problem as what to look for and what to do; other problems stay as they
 * are. */
const char *yaml_words_explain(const char *problem);

/* Why a file could not be read, from a negative errno. */
void yaml_words_report_failure(const char *path, int status, struct as_diagnostics *diagnostics);

#endif
