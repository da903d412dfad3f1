/*
 * `alertscaler decide`: decision inputs as JSON Lines in, decisions out (docs/decision.md). It
 * streams: it holds one line, and prints all answers before it waits for more input.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_writer.h>

#include "cli.h"

#define LINE_MAX_SIZE (16 * 1024 * 1024)
#define CHUNK_SIZE    (256 * 1024)

struct stream {
    struct as_buf line;   /* the part read so far; failed: too long */
    struct as_buf answer; /* for one line, with its newline */
    uint64_t number;      /* of the line, from 1 */
    bool has_failed;
};

static void answer_error(struct stream *stream, const char *text)
{
    struct as_json_writer json;

    stream->has_failed = true;
    fprintf(stderr, "line %" PRIu64 ": ", stream->number);
    as_safe_text_put(stderr, text);
    fputc('\n', stderr);
    as_buf_clear(&stream->answer);
    as_json_init(&json, &stream->answer, 0);
    as_json_begin_object(&json);
    as_json_write_member(&json, "error", text);
    as_json_end_object(&json);
}

static int decide_line(struct stream *stream, struct as_error *error)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    struct as_decision decision;

    if (stream->line.failed) {
        as_error_set(error, "longer than %d MiB", LINE_MAX_SIZE / 1024 / 1024);
        return -EMSGSIZE;
    }
    if (stream->line.size == 0) {
        as_error_set(error, "empty");
        return -EBADMSG;
    }
    int status = as_decision_decode_input(stream->line.data, stream->line.size, &document, error);
    if (status)
        return status;
    as_decide_document_decide(document, &decision);
    as_decision_encode_output(&document->input, document->results, &decision, &stream->answer);
    return 0;
}

static void end_line(struct stream *stream)
{
    struct as_error error = AS_ERROR_INIT;

    stream->number++;
    as_buf_clear(&stream->answer);
    if (decide_line(stream, &error) != 0)
        answer_error(stream, error.text);
    as_buf_append_char(&stream->answer, '\n');
    as_safe_json_put(stdout, stream->answer.data, stream->answer.size);
    as_buf_clear(&stream->line);
}

static void decide_chunk(struct stream *stream, const char *chunk, size_t size)
{
    while (size > 0) {
        const char *end = memchr(chunk, '\n', size);
        size_t part = end ? (size_t)(end - chunk) : size;
        as_buf_append(&stream->line, chunk, part);
        if (end)
            end_line(stream);
        chunk += part + (end != NULL);
        size -= part + (end != NULL);
    }
}

static int decide_run(const struct as_args *args)
{
    static char chunk[CHUNK_SIZE];
    /* An answer adds only the rule and two short words per proposal. */
    struct stream stream = {.line = AS_BUF_INIT(LINE_MAX_SIZE),
                            .answer = AS_BUF_INIT((size_t)8 * LINE_MAX_SIZE)};
    ssize_t size;

    for (;;) {
        size = read(STDIN_FILENO, chunk, sizeof(chunk));
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            break;
        decide_chunk(&stream, chunk, (size_t)size);
        if (fflush(stdout) != 0)
            break; /* reported at the end, by commands.c */
    }
    int code = size < 0 ? errno : 0;
    if (stream.line.size > 0 || stream.line.failed)
        end_line(&stream);
    as_buf_deinit(&stream.line);
    as_buf_deinit(&stream.answer);
    if (code)
        return as_cli_fail(args, "cannot read standard input: %s", strerror(code));
    return stream.has_failed ? AS_EXIT_USAGE : AS_EXIT_OK;
}

static const struct as_option options[] = {{0}};

const struct as_command as_command_decide = {
    .name = "decide",
    .operands = "",
    .summary = "Computes decisions: inputs as JSON Lines on standard input, one answer per line.",
    .help = "An invalid line is answered with {\"error\": \"...\"} and reported on standard error; "
            "the\n"
            "exit status is then 2. The documents are explained in docs/decision.md.",
    .options = options,
    .run = decide_run,
};
