/*
 * Prints texts from outside on a terminal: control characters become \xNN, so that a label cannot
 * control the terminal.
 */
#ifndef ALERTSCALER_APP_SAFE_TEXT_H
#define ALERTSCALER_APP_SAFE_TEXT_H

#include <stdio.h>

void as_safe_text_put(FILE *out, const char *text);

/* The same as a text for free(); frees the argument. */
char *as_safe_text_take(char *text);

#endif
