/*
 * Forms of answers: a line of text, JSON, an error in JSON. All end their exchange.
 */
#ifndef ALERTSCALER_AUTH_REPLY_H
#define ALERTSCALER_AUTH_REPLY_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/http/server.h>

#define AS_REPLY_LATER    "Retry-After: 5\r\n"
#define AS_REPLY_NO_STORE "Cache-Control: no-store\r\n"

/* A line of text; adds the newline. `headers` as in as_http_answer, here and below. */
void as_reply_text(struct as_http_exchange *exchange, int status, const char *headers,
                   const char *format, ...) AS_PRINTF(4, 5);

void as_reply_json(struct as_http_exchange *exchange, int status, const char *headers,
                   const struct as_buf *body);

/*
 * {"status":"error","errorType":TYPE,"error":TEXT}. Types: bad_data (400, 413), unauthorized (401),
 * forbidden (403), not_found (404), method_not_allowed (405), conflict (409), out_of_bounds (422),
 * unavailable (503), internal (500).
 */
void as_reply_error(struct as_http_exchange *exchange, int status, const char *headers,
                    const char *format, ...) AS_PRINTF(4, 5);

#endif
