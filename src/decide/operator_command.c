/*
 * The body of an operator's order, read strictly: a mistyped member must not be ignored.
 */
#include <alertscaler/decide/operator_command.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/time.h>

#include <alertscaler/doc/json_reader.h>

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static void take_reason(struct as_reader *reader, bool is_optional,
                        struct as_operator_command_document *document)
{
    const char *text = is_optional ? "no reason was given" : "";
    as_read_text(reader, "reason", &text);
    const size_t size = strlen(text) + 1;
    if (is_blank(text))
        as_read_fail(reader, "reason", "expected why, in a few words");
    if (size > sizeof(document->reason)) {
        as_read_fail(reader, "reason", "expected at most %d bytes",
                     AS_OPERATOR_COMMAND_REASON_MAX - 1);
        return;
    }
    for (size_t i = 0; i < size; i++) /* it must fit one line of logs and tables */
        document->reason[i] = text[i] != '\0' && (unsigned char)text[i] < ' ' ? ' ' : text[i];
}

static void take_for(struct as_reader *reader, struct as_operator_command *order)
{
    const char *text = NULL;
    struct as_error error = AS_ERROR_INIT;
    as_read_text(reader, "for", &text);
    if (!text)
        return;
    if (as_duration_parse(text, &order->for_us, &error) != 0)
        as_read_fail(reader, "for", "%s", error.text);
    else if (order->for_us <= 0 || order->for_us > AS_OPERATOR_COMMAND_FOR_MAX_US)
        as_read_fail(reader, "for", "expected more than 0s and at most 366d");
}

static void take_direction(struct as_reader *reader, struct as_operator_command *order)
{
#define WAYS_WORD(enumerator, word) {word, enumerator},
    static const struct as_read_word words[] = {AS_WAYS_WORDS(WAYS_WORD){0}};

    order->ways = (enum as_ways)as_read_enum(reader, "direction", words, AS_WAYS_BOTH);
}

/* A size with an end, or the end of one. */
static void take_floor(struct as_reader *reader, struct as_operator_command *order)
{
    as_read_bool(reader, "end", &order->is_end);
    if (order->is_end)
        return;
    as_read_require(reader, "replicas");
    as_read_require(reader, "for");
    as_read_i32(reader, "replicas", 1, &order->replicas);
    take_for(reader, order);
}

static int order_decode(const struct tree_value *root, enum as_operator_command_kind kind,
                        struct as_operator_command_document *document, struct as_error *error)
{
    struct as_reader reader;
    as_read_document(&reader, root, error);
    take_reason(&reader, as_operator_command_kind_is_answer(kind), document);
    if (kind == AS_OPERATOR_COMMAND_PAUSE) {
        take_for(&reader, &document->order);
        take_direction(&reader, &document->order);
    }
    if (kind == AS_OPERATOR_COMMAND_FLOOR)
        take_floor(&reader, &document->order);
    if (kind == AS_OPERATOR_COMMAND_SCALE) {
        as_read_require(&reader, "replicas");
        as_read_i32(&reader, "replicas", 0, &document->order.replicas);
        as_read_bool(&reader, "force", &document->order.force);
    }
    as_read_end(&reader);
    return as_read_result(&reader);
}

int as_operator_command_decode(const char *json, size_t size, enum as_operator_command_kind kind,
                               struct as_operator_command_document *document_out,
                               struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);

    if (size > AS_OPERATOR_COMMAND_BODY_MAX || tree_load(&tree, json, size, NULL) < 0) {
        as_error_set(error, "expected a JSON object of at most %zu bytes: {\"reason\": \"...\"}",
                     AS_OPERATOR_COMMAND_BODY_MAX);
        return -EBADMSG;
    }
    *document_out = (struct as_operator_command_document){.order = {.kind = kind}};
    const int status = order_decode(tree.root, kind, document_out, error);
    document_out->order.reason = document_out->reason;
    return status;
}
