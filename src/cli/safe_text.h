/*
 * Texts from outside on a terminal: control characters are printed as \xNN, never as they are, so
 * that a label cannot command it.
 */
#ifndef ALERTSCALER_SRC_CLI_SAFE_TEXT_H
#define ALERTSCALER_SRC_CLI_SAFE_TEXT_H

#include <stdio.h>

void safe_text_put(FILE *out, const char *text);

/* Likewise as a text for free(); the one that is given is freed. */
char *safe_text_take(char *text);

#endif
