/*
 * Requests to orders, outcomes to answers.
 */
#include "operators.h"

#include <stdlib.h>
#include <string.h>

#include <event2/http.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/json_writer.h>
#include <alertscaler/wire/order.h>

#include "http/reply.h"

struct as_operators {
    struct as_waiting *waiting;
    struct as_waiting_kind kind;
};

static void lose(void *context, struct as_http_exchange *exchange)
{
    as_reply_error(exchange, 503, AS_REPLY_LATER,
                   "the command could not be made durable: look whether it was done");
}

struct as_operators *as_operators_new(struct as_waiting *waiting)
{
    struct as_operators *operators = as_xcalloc(1, sizeof(*operators));
    operators->waiting = waiting;
    operators->kind.lose = lose;
    return operators;
}

struct as_operators *as_operators_free(struct as_operators *operators)
{
    free(operators);
    return NULL;
}

static void reply_unavailable(struct as_http_exchange *exchange, const char *why)
{
    as_reply_error(exchange, 503, AS_REPLY_LATER,
                   "alertscaler cannot store commands now (%s): nothing was done", why);
}

/* The order's target, decoded, for free(). False if it has answered. */
static bool decode_target(struct as_http_exchange *exchange, const char *encoded, char **target_out)
{
    size_t size = 0;
    char *target = encoded ? evhttp_uridecode(encoded, 0, &size) : NULL;
    if (encoded &&
        (!target || strlen(target) != size || size == 0 || !as_str_is_utf8(target, size))) {
        free(target);
        as_reply_error(exchange, 400, NULL, "expected a target's name or id before the command");
        return false;
    }
    *target_out = target;
    return true;
}

void as_operators_handle(struct as_operators *operators, struct as_http_exchange *exchange,
                         const char *who, enum as_order_kind kind, const char *encoded_target,
                         const struct as_operators_way *way)
{
    AS_CLEANUP(as_free_p) char *target = NULL;
    if (way->why_not || !way->shell || !as_storage_has_room(way->storage)) {
        reply_unavailable(exchange, way->why_not ? way->why_not : "the queue to the state is full");
        return;
    }
    if (!decode_target(exchange, encoded_target, &target))
        return;

    size_t size;
    const char *body = as_http_exchange_get_body(exchange, &size);
    struct as_error error = AS_ERROR_INIT;
    struct as_order_document document;
    if (as_order_decode(body, size, kind, &document, &error) != 0) {
        as_reply_error(exchange, size > AS_ORDER_BODY_MAX ? 413 : 400, NULL, "%s", error.text);
        return;
    }
    document.order.target = target;
    document.order.who = who;
    document.order.remote = as_http_exchange_get_remote(exchange);
    as_shell_order(way->shell, &document.order,
                   as_waiting_add(operators->waiting, &operators->kind, exchange));
}

static void write_time(struct as_json_writer *json, const char *key, bool is_set, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_json_write_key(json, key);
    as_wall_time_print(time, text);
    if (is_set)
        as_json_write_string(json, text);
    else
        as_json_write_null(json);
}

static void write_answer(struct as_buf *body, const struct as_order_record *record)
{
    struct as_json_writer json;
    as_json_init(&json, body, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "status", "success");
    as_json_write_key(&json, "data");
    as_json_begin_object(&json);
    as_json_write_member(&json, "id", record->id);
    as_json_write_member(&json, "command", as_order_kind_get_word(record->order->kind));
    as_json_write_key(&json, "target");
    if (record->target)
        as_json_write_string(&json, record->target);
    else
        as_json_write_null(&json);
    if (record->order->kind == AS_ORDER_SCALE)
        as_json_write_member_i64(&json, "replicas", record->order->replicas);
    if (record->order->kind == AS_ORDER_PAUSE)
        write_time(&json, "until", record->has_until, record->until);
    as_json_end_object(&json);
    as_json_end_object(&json);
    as_buf_append_char(body, '\n');
}

void as_operators_on_outcome(struct as_operators *operators, uint64_t request,
                             const struct as_order_record *record)
{
    static const int statuses[AS_ORDER_OUTCOME_COUNT] = {
        [AS_ORDER_DONE] = 200,          [AS_ORDER_UNKNOWN_TARGET] = 404,
        [AS_ORDER_OUT_OF_BOUNDS] = 422, [AS_ORDER_NOTHING_TO_DO] = 409,
        [AS_ORDER_REFUSED] = 403,
    };
    struct as_waiting_answer *answer = as_waiting_find(operators->waiting, request);
    if (!answer)
        return;
    answer->status = statuses[record->outcome];
    answer->headers = AS_REPLY_NO_STORE;
    if (record->outcome == AS_ORDER_DONE)
        write_answer(&answer->body, record);
    else
        as_buf_append_str(&answer->body, record->message);
}
