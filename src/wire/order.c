/*
 * Orders, read strictly: what an operator meant and mistyped must not be taken for less.
 */
#include <alertscaler/wire/order.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/time.h>

#include "json/strict.h"

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static int take_reason(struct as_strict *reader, struct as_order_document *document)
{
    const char *text = "";
    int r = as_strict_take_string(reader, "reason", &text);
    if (r != 0)
        return r;
    if (is_blank(text))
        return as_strict_fail(reader, "reason", "expected why, in a few words");
    const size_t size = strlen(text) + 1;
    if (size > sizeof(document->reason))
        return as_strict_fail(reader, "reason", "expected at most %d bytes",
                              AS_ORDER_REASON_MAX - 1);
    for (size_t i = 0; i < size; i++) /* it stands in one line of logs and tables */
        document->reason[i] = text[i] != '\0' && (unsigned char)text[i] < ' ' ? ' ' : text[i];
    return 0;
}

static int take_for(struct as_strict *reader, struct as_order *order)
{
    const char *text = NULL;
    struct as_error error = AS_ERROR_INIT;
    int r = as_strict_take_string(reader, "for", &text);
    if (r != 0 || !text)
        return r;
    if (as_duration_parse(text, &order->for_us, &error) != 0)
        return as_strict_fail(reader, "for", "%s", error.text);
    if (order->for_us <= 0 || order->for_us > AS_ORDER_FOR_MAX_US)
        return as_strict_fail(reader, "for", "expected more than 0s and at most 366d");
    return 0;
}

static int take_size(struct as_strict *reader, struct as_order *order)
{
    int r = as_strict_require(reader, "replicas");
    if (r == 0)
        r = as_strict_take_i32(reader, "replicas", 0, &order->replicas);
    return r == 0 ? as_strict_take_bool(reader, "force", &order->force) : r;
}

static int decode(json_t *root, enum as_order_kind kind, struct as_order_document *document,
                  struct as_error *error)
{
    struct as_strict reader;
    int r = as_strict_init(&reader, root, error);
    if (r == 0)
        r = take_reason(&reader, document);
    if (r == 0 && kind == AS_ORDER_PAUSE)
        r = take_for(&reader, &document->order);
    if (r == 0 && kind == AS_ORDER_SCALE)
        r = take_size(&reader, &document->order);
    return r == 0 ? as_strict_finish(&reader) : r;
}

int as_order_decode(const char *json, size_t size, enum as_order_kind kind,
                    struct as_order_document *document_out, struct as_error *error)
{
    json_error_t problem;
    json_t *root = size > AS_ORDER_BODY_MAX
                       ? NULL
                       : json_loadb(json ? json : "", size, JSON_REJECT_DUPLICATES, &problem);
    if (!root) {
        as_error_set(error, "expected a JSON object of at most %zu bytes: {\"reason\": \"...\"}",
                     AS_ORDER_BODY_MAX);
        return -EBADMSG;
    }
    *document_out = (struct as_order_document){.order = {.kind = kind}};
    const int r = decode(root, kind, document_out, error);
    document_out->order.reason = document_out->reason;
    json_decref(root);
    return r;
}
