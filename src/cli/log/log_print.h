/*
 * A record of the action log as one line for a person.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_LOG_PRINT_H
#define ALERTSCALER_SRC_CLI_LOG_LOG_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* Control characters in texts from outside are printed as \xNN, never as they are. */
void log_print_labels(json_t *labels, FILE *out); /* HighCPU{deployment="web"} */

/* `ids`: an object that the caller keeps from line to line, so that a target's id is printed where
 * it is new for its name; NULL: always. `details`: the record itself; of a `repeat` the record that
 * it stands for, or NULL. */
void log_print(json_t *record, json_t *details, bool colors, json_t *ids, FILE *out);

#endif
