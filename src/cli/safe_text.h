/*
 * Prints texts from outside on a terminal: control characters become \xNN, so that a label cannot
 * control the terminal.
 */
#ifndef ALERTSCALER_SRC_CLI_SAFE_TEXT_H
#define ALERTSCALER_SRC_CLI_SAFE_TEXT_H

#include <stdio.h>

void safe_text_put(FILE *out, const char *text);

/* The same as a text for free(); frees the argument. */
char *safe_text_take(char *text);

#endif
