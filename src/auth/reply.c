/*
 * Errors have the form of Prometheus' API.
 */
#include <alertscaler/auth/reply.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/doc/json_writer.h>

#define TEXT_MAX ((size_t)4096) /* a text may quote a path */

void as_reply_text(struct as_http_exchange *exchange, int status, const char *headers,
                   const char *format, ...)
{
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof(text) - 1, format, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    const size_t size = strlen(text);
    text[size] = '\n';
    as_http_exchange_reply(
        exchange, &(struct as_http_answer){
                      .status = status, .headers = headers, .body = text, .body_size = size + 1});
}

void as_reply_json(struct as_http_exchange *exchange, int status, const char *headers,
                   const struct as_buf *body)
{
    as_http_exchange_reply(exchange, &(struct as_http_answer){
                                         .status = status,
                                         .content_type = "application/json",
                                         .headers = headers,
                                         .body = body->data,
                                         .body_size = body->size,
                                     });
}

static const char *get_error_type(int status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {
        {400, "bad_data"},  {401, "unauthorized"},       {403, "forbidden"},
        {404, "not_found"}, {405, "method_not_allowed"}, {409, "conflict"},
        {413, "bad_data"},  {422, "out_of_bounds"},      {503, "unavailable"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(types); i++) {
        if (types[i].status == status)
            return types[i].type;
    }
    return "internal";
}

void as_reply_error(struct as_http_exchange *exchange, int status, const char *headers,
                    const char *format, ...)
{
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof(text), format, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);

    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(6 * TEXT_MAX + 256);
    struct as_json_writer json;
    as_json_init(&json, &body, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "status", "error");
    as_json_write_member(&json, "errorType", get_error_type(status));
    as_json_write_member(&json, "error", text);
    as_json_end_object(&json);
    as_buf_append_char(&body, '\n');
    as_reply_json(exchange, status, headers, &body);
}
