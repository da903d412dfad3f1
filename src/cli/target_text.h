/*
 * What a command says of a target, by the API's document of it. Texts come from the daemon, so that
 * the caller makes them safe (base/safe_text.h).
 */
#ifndef ALERTSCALER_SRC_CLI_TARGET_TEXT_H
#define ALERTSCALER_SRC_CLI_TARGET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/quantity.h>

int64_t target_text_get_now(void);                                  /* wall time in microseconds */
const char *target_text_get(const json_t *object, const char *key); /* "": no such text */

/* Time since, in one unit: "45s", "9m", "3h"; time until, in two: "9m40s". False: absent. */
bool target_text_print_span(const json_t *object, const char *key, bool is_ago, int64_t now_us,
                            char *text_out, size_t size);
/* "40 (40Gi)" */
const char *target_text_print_size(const json_t *target, json_int_t size,
                                   char text_out[AS_SIZE_TEXT_SIZE]);

/* Each for free(); "-": nothing. */
char *target_text_make_size(const json_t *target) AS_MUST_USE; /* "4->6"; "?": not known */
char *target_text_make_bounds(const json_t *target, int64_t now_us) AS_MUST_USE;
char *target_text_make_locks(const json_t *target, int64_t now_us) AS_MUST_USE;
char *target_text_make_pause(const json_t *target, int64_t now_us) AS_MUST_USE;
char *target_text_make_last(const json_t *target, int64_t now_us) AS_MUST_USE;

#endif
