/*
 * What a decision needs to know of an approval: `approval` of a proposal, read and written.
 */
#include <alertscaler/doc/json_writer.h>

#include "decision_private.h"
#include "decision_survey.h"

static const struct as_read_word directions[] = {{"up", 1}, {"down", 0}, {0}};

/* The words of as_approval_answer_get_word. */
static enum as_approval_answer read_answer(struct as_reader *reader)
{
    struct as_read_word words[AS_APPROVAL_ANSWER_COUNT + 1] = {0};
    for (int i = 0; i < AS_APPROVAL_ANSWER_COUNT; i++)
        words[i] =
            (struct as_read_word){as_approval_answer_get_word((enum as_approval_answer)i), i};
    return (enum as_approval_answer)as_read_enum(reader, "answer", words, AS_APPROVAL_WAITING);
}

static void decode_request(struct as_reader *approval, struct as_arena *arena,
                           struct as_approval_terms *terms)
{
    struct as_reader reader;

    as_read_object(&reader, approval, "request");
    if (!reader.object)
        return;
    terms->is_asked = true;
    as_read_require(&reader, "answer");
    as_read_require(&reader, "direction");
    as_read_require(&reader, "to");
    as_read_require(&reader, "until");
    terms->answer = read_answer(&reader);
    terms->is_up = as_read_enum(&reader, "direction", directions, 1);
    decision_read_text(&reader, "id", arena, &terms->id);
    as_read_i32(&reader, "to", 0, &terms->to);
    as_read_time(&reader, "until", &terms->until);
    as_read_end(&reader);
}

void as_decision_decode_approval(struct as_reader *proposal, struct as_arena *arena,
                                 struct as_approval_terms *terms_out)
{
    struct as_reader reader;

    as_read_object(&reader, proposal, "approval");
    if (!reader.object)
        return;
    terms_out->is_set = true;
    as_read_require(&reader, "above");
    as_read_i32(&reader, "above", 0, &terms_out->above);
    as_read_i32(&reader, "up", 0, &terms_out->up);
    as_read_i32(&reader, "down", 0, &terms_out->down);
    decode_request(&reader, arena, terms_out);
    as_read_end(&reader);
}

static void write_request(struct as_json_writer *json, const struct as_approval_terms *terms)
{
    char text[AS_RFC3339_SIZE];

    as_json_begin_object(json);
    as_json_write_member(json, "answer", as_approval_answer_get_word(terms->answer));
    as_json_write_member(json, "direction", directions[terms->is_up ? 0 : 1].text);
    if (terms->id)
        as_json_write_member(json, "id", terms->id);
    as_json_write_member_i64(json, "to", terms->to);
    as_json_write_key(json, "until");
    as_wall_time_print_short(terms->until.at, text);
    if (terms->until.set)
        as_json_write_string(json, text);
    else
        as_json_write_null(json);
    as_json_end_object(json);
}

void as_decision_write_approval(struct as_json_writer *json, const struct as_approval_terms *terms)
{
    if (!terms->is_set)
        return;
    as_json_write_key(json, "approval");
    as_json_begin_object(json);
    as_json_write_member_i64(json, "above", terms->above);
    as_json_write_member_i64(json, "down", terms->down);
    if (terms->is_asked) {
        as_json_write_key(json, "request");
        write_request(json, terms);
    }
    as_json_write_member_i64(json, "up", terms->up);
    as_json_end_object(json);
}
