/*
 * Members of a record of the action log, read leniently: the record may be of another version.
 */
#ifndef ALERTSCALER_TOOLS_RECORD_TEXT_H
#define ALERTSCALER_TOOLS_RECORD_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

/* A text member, "" if absent. */
const char *as_record_get_text(const json_t *object, const char *key);

/* The key by which decisions name the incident of an alert or incident record: the digest, in logs
 * of earlier versions the fingerprint. */
const char *as_record_get_incident(const json_t *record);

/* The record's time. -EBADMSG with an error if absent. */
int as_record_get_time(const json_t *record, as_wall_time *time_out,
                       struct as_error *error) AS_MUST_USE;

/* False if it is absent or not a size. */
bool as_record_get_size(const json_t *object, const char *key, int32_t *size_out) AS_MUST_USE;

/* The record is of an action that was not carried out. */
bool as_record_has_failed(const json_t *action);
/* "the cloud refused: InsufficientInstanceCapacity (5 tries, next at 2026-11-20T14:05:00Z)".
 * With `now`: "next in 3m". */
void as_record_print_failure(const json_t *action, as_maybe_time now, FILE *out);

/* HighCPU{deployment="web"}, and without the name. Control characters are printed as \xNN. */
void as_record_print_labels(json_t *labels, FILE *out);
void as_record_print_other_labels(json_t *labels, FILE *out);

#endif
