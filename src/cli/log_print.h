/*
 * Prints a record of the action log as one line for people.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_PRINT_H
#define ALERTSCALER_SRC_CLI_LOG_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* `ids`: an object that the caller keeps between lines, so that an id is printed only if it is new
 * for its name; NULL: always. `details`: the record itself; for a `repeat` its full record, or
 * NULL. Control characters in texts from outside are printed as \xNN. */
void log_print(json_t *record, json_t *details, bool colors, json_t *ids, FILE *out);

#endif
