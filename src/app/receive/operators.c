/*
 * From a request to an order and back. Orders have request numbers with the highest bit, so that
 * they are told from notifications'.
 */
#include "operators.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/http.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/json_writer.h>
#include <alertscaler/wire/order.h>

#include "http/reply.h"

#define ORDER_BIT  (UINT64_C(1) << 63)
#define ANSWER_MAX ((size_t)16 * 1024)

struct waiting { /* for the disk */
    TAILQ_ENTRY(waiting) next;
    uint64_t request;
    struct as_http_exchange *exchange;
    int status;
    struct as_buf body; /* of a 200 */
    char *error;        /* of the others */
};
TAILQ_HEAD(waiting_list, waiting);

struct as_operators {
    uint64_t next_request;
    struct waiting_list waiting;
};

struct as_operators *as_operators_new(void)
{
    struct as_operators *operators = as_xcalloc(1, sizeof(*operators));
    TAILQ_INIT(&operators->waiting);
    return operators;
}

struct as_operators *as_operators_free(struct as_operators *operators)
{
    if (!operators)
        return NULL;
    as_operators_fail_waiting(operators);
    free(operators);
    return NULL;
}

static void reply_unavailable(struct as_http_exchange *exchange, const char *why)
{
    as_reply_error(exchange, 503, AS_REPLY_LATER,
                   "alertscaler cannot store commands now (%s): nothing was done", why);
}

/* The order's target, decoded, for free(). False after answering. */
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

static void submit(struct as_operators *operators, struct as_http_exchange *exchange,
                   struct as_shell *shell, const struct as_order *order)
{
    struct waiting *waiting = as_xcalloc(1, sizeof(*waiting));
    waiting->request = ORDER_BIT | ++operators->next_request;
    waiting->exchange = exchange;
    waiting->body = AS_BUF_INIT_OPEN(ANSWER_MAX);
    TAILQ_INSERT_TAIL(&operators->waiting, waiting, next);
    as_shell_order(shell, order, waiting->request);
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
    submit(operators, exchange, way->shell, &document.order);
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

void as_operators_on_effect(struct as_operators *operators, const struct as_effect *effect)
{
    static const int statuses[AS_ORDER_OUTCOME_COUNT] = {
        [AS_ORDER_DONE] = 200,          [AS_ORDER_UNKNOWN_TARGET] = 404,
        [AS_ORDER_OUT_OF_BOUNDS] = 422, [AS_ORDER_NOTHING_TO_DO] = 409,
        [AS_ORDER_REFUSED] = 403,
    };
    struct waiting *waiting = TAILQ_LAST(&operators->waiting, waiting_list);
    if (effect->kind != AS_EFFECT_RECORD_COMMAND || effect->ticket == 0 || !waiting ||
        waiting->request != effect->ticket)
        return;
    const struct as_order_record *record = effect->order;
    waiting->status = statuses[record->outcome];
    if (record->outcome == AS_ORDER_DONE)
        write_answer(&waiting->body, record);
    else
        waiting->error = as_xstrdup(record->message);
}

static void end(struct as_operators *operators, struct waiting *waiting)
{
    TAILQ_REMOVE(&operators->waiting, waiting, next);
    as_buf_deinit(&waiting->body);
    free(waiting->error);
    free(waiting);
}

bool as_operators_on_answer(struct as_operators *operators, uint64_t request)
{
    struct waiting *waiting = TAILQ_FIRST(&operators->waiting);
    if (!(request & ORDER_BIT))
        return false;
    if (!waiting || waiting->request != request)
        return true;
    if (waiting->status == 200)
        as_reply_json(waiting->exchange, 200, AS_REPLY_NO_STORE, &waiting->body);
    else
        as_reply_error(waiting->exchange, waiting->status, NULL, "%s", waiting->error);
    end(operators, waiting);
    return true;
}

void as_operators_fail_waiting(struct as_operators *operators)
{
    struct waiting *waiting;
    while ((waiting = TAILQ_FIRST(&operators->waiting))) {
        as_reply_error(waiting->exchange, 503, AS_REPLY_LATER,
                       "the command could not be made durable: look whether it was done");
        end(operators, waiting);
    }
}
