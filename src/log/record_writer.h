/*
 * One record of the action log, member by member: keys in ascending order, which the JSON writer
 * asserts. It notes where the members of the chain will stand.
 */
#ifndef ALERTSCALER_SRC_LOG_RECORD_WRITER_H
#define ALERTSCALER_SRC_LOG_RECORD_WRITER_H

#include <alertscaler/doc/json_writer.h>
#include <alertscaler/log/record.h>

struct record_writer {
    struct as_json_writer json;
    struct as_buf *out;
    struct as_record_places *places;
};

void record_begin(struct record_writer *writer, struct as_buf *out,
                  struct as_record_places *places);
void record_end(struct record_writer *writer);
/* A key of the record's top level; notes the places of the chain's members. */
void record_key(struct record_writer *writer, const char *name);
void record_write_text(struct as_json_writer *json, const char *text);
void record_member(struct record_writer *writer, const char *name, const char *text);
void record_member_i64(struct record_writer *writer, const char *name, int64_t number);
void record_member_size(struct record_writer *writer, const char *name, bool is_known,
                        int32_t size);
void record_member_seconds(struct record_writer *writer, const char *name, int64_t us);
void record_member_time(struct record_writer *writer, as_wall_time time);
void record_member_moment(struct record_writer *writer, const char *name, bool is_set,
                          as_wall_time time);

#endif
