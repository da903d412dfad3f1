/*
 * One record of the action log: see the header.
 */
#include "record_writer.h"

#include <string.h>

#include <alertscaler/base/str.h>

void record_begin(struct record_writer *writer, struct as_buf *out, struct as_record_places *places)
{
    writer->out = out;
    writer->places = places;
    *places = (struct as_record_places){0};
    as_json_init(&writer->json, out, 0);
    as_json_begin_object(&writer->json);
}

void record_end(struct record_writer *writer)
{
    as_json_end_object(&writer->json);
}

/* A key of the record's top level; notes the places of the chain's members. */
void record_key(struct record_writer *writer, const char *name)
{
    as_json_write_key(&writer->json, name);
    const size_t at = writer->out->size - strlen(name) - strlen("\"\":");
    struct as_record_places *places = writer->places;
    if (!places->at_hash && strcmp(name, "hash") > 0)
        places->at_hash = at;
    if (!places->at_prev && strcmp(name, "prev") > 0)
        places->at_prev = at;
    if (!places->at_seq && strcmp(name, "seq") > 0)
        places->at_seq = at;
}

void record_write_text(struct as_json_writer *json, const char *text)
{
    const size_t size = strlen(text);
    if (size <= AS_RECORD_TEXT_MAX) {
        as_json_write_string_size(json, text, size);
        return;
    }
    char cut[AS_RECORD_TEXT_MAX + sizeof(AS_RECORD_CUT)];
    const size_t kept = as_str_cut_utf8(text, size, AS_RECORD_TEXT_MAX);
    memcpy(cut, text, kept);
    memcpy(cut + kept, AS_RECORD_CUT, sizeof(AS_RECORD_CUT));
    as_json_write_string(json, cut);
}

void record_member(struct record_writer *writer, const char *name, const char *text)
{
    record_key(writer, name);
    if (text)
        record_write_text(&writer->json, text);
    else
        as_json_write_null(&writer->json);
}

void record_member_i64(struct record_writer *writer, const char *name, int64_t number)
{
    record_key(writer, name);
    as_json_write_i64(&writer->json, number);
}

void record_member_size(struct record_writer *writer, const char *name, bool is_known, int32_t size)
{
    if (is_known)
        record_member_i64(writer, name, size);
    else
        record_member(writer, name, NULL);
}

void record_member_seconds(struct record_writer *writer, const char *name, int64_t us)
{
    record_key(writer, name);
    if (us < 0)
        as_json_write_null(&writer->json);
    else
        as_json_write_double(&writer->json, (double)us / (double)AS_US_PER_S);
}

void record_member_time(struct record_writer *writer, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    record_member(writer, "time", text);
}

void record_member_moment(struct record_writer *writer, const char *name, bool is_set,
                          as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    record_member(writer, name, is_set ? text : NULL);
}
