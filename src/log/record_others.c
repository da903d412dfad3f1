/*
 * Who else sizes a target, in records: see the header.
 */
#include "record_others.h"

static void write_size(struct as_json_writer *json, const char *name, int32_t size)
{
    as_json_write_key(json, name);
    if (size >= 0)
        as_json_write_i64(json, size);
    else
        as_json_write_null(json);
}

void record_write_set_backs(struct as_json_writer *json, const struct as_set_back *set_backs,
                            size_t count)
{
    char at[AS_RFC3339_SIZE];
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        as_wall_time_print(set_backs[i].at.wall, at);
        as_json_write_member(json, "at", at);
        as_json_write_key(json, "by");
        if (*set_backs[i].by)
            as_json_write_string(json, set_backs[i].by);
        else
            as_json_write_null(json);
        write_size(json, "found", set_backs[i].found);
        write_size(json, "from", set_backs[i].from);
        write_size(json, "to", set_backs[i].to);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void record_write_found(struct as_json_writer *json, const struct as_others_record *record)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < record->other_count; i++) {
        const struct as_other *other = &record->others[i];
        as_json_begin_object(json);
        as_json_write_member(json, "kind", other->kind);
        write_size(json, "max", other->max);
        write_size(json, "min", other->min);
        as_json_write_member(json, "name", other->name);
        as_json_write_member_bool(json, "paused", other->is_paused);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void record_write_contended(struct as_json_writer *json, const struct as_contended_note *note)
{
    char until[AS_RFC3339_SIZE];
    as_json_begin_object(json);
    as_json_write_key(json, "set_backs");
    record_write_set_backs(json, note->set_backs, note->set_back_count);
    as_wall_time_print(note->until, until);
    as_json_write_member(json, "until", until);
    as_json_end_object(json);
}
