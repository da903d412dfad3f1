/*
 * Who else sizes a target, as values of a record's members.
 */
#ifndef ALERTSCALER_SRC_LOG_RECORD_OTHERS_H
#define ALERTSCALER_SRC_LOG_RECORD_OTHERS_H

#include <stddef.h>

#include <alertscaler/decide/record.h>
#include <alertscaler/doc/json_writer.h>

void record_write_set_backs(struct as_json_writer *json, const struct as_set_back *set_backs,
                            size_t count);
void record_write_found(struct as_json_writer *json, const struct as_others_record *record);
void record_write_contended(struct as_json_writer *json, const struct as_contended_note *note);

#endif
