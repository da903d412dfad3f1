/*
 * The body of an operator command: a table of rows for each kind. Bodies are read strictly: a
 * mistyped member must not be ignored.
 */
#include <alertscaler/decide/operator_command.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/time.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/rows.h>

#define AS_ROW_TYPE_duration int64_t

static void duration_read(struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, void *base)
{
    (void)input;
    const char *text = NULL;
    int64_t *us = as_row_to(row, base);
    struct as_error error = AS_ERROR_INIT;
    as_read_text(object, row->name, &text);
    if (!text)
        return;
    if (as_duration_parse(text, us, &error) != 0)
        as_read_fail(object, row->name, "%s", error.text);
    else if (*us <= 0 || *us > AS_OPERATOR_COMMAND_FOR_MAX_US)
        as_read_fail(object, row->name, "expected more than 0s and at most 366d");
}

static const struct as_row_type as_row_duration = {.read = duration_read};

AS_ROW_WORDS(ways_get_word, enum as_ways, AS_WAYS_BOTH + 1, as_ways_get_word)

/* A reason is one line of logs and tables, and not blank. */
static void order_check_reason(struct as_rows_input *input, struct as_reader *object, void *to)
{
    struct as_operator_command_document *document = to;
    (void)input;
    for (char *at = document->reason; *at; at++)
        *at = (unsigned char)*at < ' ' ? ' ' : *at;
    if (document->reason[strspn(document->reason, " ")] == '\0')
        as_read_fail(object, "reason", "expected why, in a few words");
}

#define REASON AS_ROW_CHARS("reason", as_operator_command_document, reason, DEFAULT)
#define END    .name = NULL, .check = order_check_reason

static const struct as_row pause_rows[] = {
    {AS_ROW("direction", word, as_operator_command_document, order.ways, DEFAULT),
     .get_word = ways_get_word, .min = AS_WAYS_DOWN},
    {AS_ROW("for", duration, as_operator_command_document, order.for_us, OPTIONAL)},
    {REASON},
    {END},
};

static const struct as_row scale_rows[] = {
    {AS_ROW("force", flag, as_operator_command_document, order.force, DEFAULT)},
    {REASON},
    {AS_ROW("replicas", i32, as_operator_command_document, order.replicas, REQUIRED)},
    {END},
};

static const struct as_row floor_rows[] = {
    {AS_ROW("end", flag, as_operator_command_document, order.is_end, DEFAULT)},
    {AS_ROW("for", duration, as_operator_command_document, order.for_us, REQUIRED)},
    {REASON},
    {AS_ROW("replicas", i32, as_operator_command_document, order.replicas, REQUIRED), .min = 1},
    {END},
};

static const struct as_row floor_end_rows[] = {
    {AS_ROW("end", flag, as_operator_command_document, order.is_end, REQUIRED)},
    {REASON},
    {END},
};

static const struct as_row other_rows[] = {{REASON}, {END}};

static const struct as_row *order_find_rows(const struct tree_value *root,
                                            enum as_operator_command_kind kind)
{
    switch (kind) {
    case AS_OPERATOR_COMMAND_PAUSE: return pause_rows;
    case AS_OPERATOR_COMMAND_SCALE: return scale_rows;
    case AS_OPERATOR_COMMAND_FLOOR:
        return tree_is_true(tree_find(root, "end")) ? floor_end_rows : floor_rows;
    case AS_OPERATOR_COMMAND_RESUME:
    case AS_OPERATOR_COMMAND_UNLOCK:
    case AS_OPERATOR_COMMAND_APPROVE:
    case AS_OPERATOR_COMMAND_DENY:
    case AS_OPERATOR_COMMAND_KIND_COUNT: break;
    }
    return other_rows;
}

int as_operator_command_decode(const char *json, size_t size, enum as_operator_command_kind kind,
                               struct as_operator_command_document *document_out,
                               struct as_error *error)
{
    static const char no_reason[] = "no reason was given";
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader reader;
    if (size > AS_OPERATOR_COMMAND_BODY_MAX || tree_load(&tree, json, size, NULL) < 0) {
        as_error_set(error, "expected a JSON object of at most %zu bytes: {\"reason\": \"...\"}",
                     AS_OPERATOR_COMMAND_BODY_MAX);
        return -EBADMSG;
    }
    *document_out = (struct as_operator_command_document){
        .order = {.kind = kind,
                  .reason = document_out->reason,
                  .ways = kind == AS_OPERATOR_COMMAND_PAUSE ? AS_WAYS_BOTH : AS_WAYS_NONE}};
    if (as_operator_command_kind_is_answer(kind))
        memcpy(document_out->reason, no_reason, sizeof(no_reason));
    as_read_document(&reader, tree.root, error);
    as_rows_read(&(struct as_rows_input){.context = NULL}, &reader,
                 order_find_rows(tree.root, kind), document_out);
    return as_read_result(&reader);
}
