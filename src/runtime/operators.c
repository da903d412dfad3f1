/*
 * Requests to orders, outcomes to answers.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <event2/http.h>

#include <alertscaler/auth/reply.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/order.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/runtime/requests.h>

struct as_operators {
    struct as_waiting *waiting;
    struct as_waiting_kind api, form;
    as_operators_form_fn *answer_form;
    void *form_context;
};

static const char lost[] = "the command could not be made durable: look whether it was done";

static void lose(void *context, struct as_http_exchange *exchange)
{
    as_reply_error(exchange, 503, AS_REPLY_LATER, "%s", lost);
}

static void lose_form(void *context, struct as_http_exchange *exchange)
{
    const struct as_operators *operators = context;
    operators->answer_form(operators->form_context, exchange, 503, lost);
}

static void end_form(void *context, struct as_http_exchange *exchange,
                     const struct as_waiting_answer *answer)
{
    const struct as_operators *operators = context;
    operators->answer_form(operators->form_context, exchange, answer->status,
                           answer->body.size > 0 ? answer->body.data : "");
}

struct as_operators *as_operators_new(struct as_waiting *waiting)
{
    struct as_operators *operators = as_xcalloc(1, sizeof(*operators));
    operators->waiting = waiting;
    operators->api.lose = lose;
    operators->form =
        (struct as_waiting_kind){.lose = lose_form, .end = end_form, .context = operators};
    return operators;
}

void as_operators_set_form(struct as_operators *operators, as_operators_form_fn *answer,
                           void *context)
{
    operators->answer_form = answer;
    operators->form_context = context;
}

struct as_operators *as_operators_free(struct as_operators *operators)
{
    free(operators);
    return NULL;
}

static void refuse(const struct as_operators *operators, const struct as_operators_request *request,
                   int status, const char *text)
{
    if (request->is_form)
        operators->answer_form(operators->form_context, request->exchange, status, text);
    else
        as_reply_error(request->exchange, status, status == 503 ? AS_REPLY_LATER : NULL, "%s",
                       text);
}

/* What the path names, decoded, for free(); NULL: malformed. */
static char *decode_text(const char *encoded)
{
    size_t size = 0;
    char *target = evhttp_uridecode(encoded, 0, &size);
    if (target && strlen(target) == size && size > 0 && as_str_is_utf8(target, size))
        return target;
    free(target);
    return NULL;
}

void as_operators_handle(struct as_operators *operators, const struct as_operators_request *request,
                         const struct as_operators_way *way)
{
    AS_CLEANUP(as_free_p) char *what = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (way->why_not || !way->shell || !as_storage_has_room(way->storage)) {
        as_error_set(&error, "alertscaler cannot store commands now (%s): nothing was done",
                     way->why_not ? way->why_not : "the queue to the state is full");
        refuse(operators, request, 503, error.text);
        return;
    }
    const bool is_answer = as_order_kind_is_answer(request->kind);
    if (request->encoded_what && !(what = decode_text(request->encoded_what))) {
        refuse(operators, request, 400,
               is_answer ? "expected the id of a request before the command"
                         : "expected a target's name or id before the command");
        return;
    }
    struct as_order_document document;
    if (as_order_decode(request->body, request->body_size, request->kind, &document, &error) != 0) {
        refuse(operators, request, request->body_size > AS_ORDER_BODY_MAX ? 413 : 400, error.text);
        return;
    }
    struct as_waiting_claim claim;
    if (!as_waiting_fits(operators->waiting, as_shell_get_engine(way->shell), request->who,
                         request->body_size, &claim)) {
        refuse(operators, request, 503, AS_WAITING_PART_FULL);
        return;
    }
    document.order.target = is_answer ? NULL : what;
    document.order.request = is_answer ? what : NULL;
    document.order.who = request->who;
    document.order.remote = as_http_exchange_get_remote(request->exchange);
    as_shell_order(way->shell, &document.order,
                   as_waiting_add(operators->waiting,
                                  request->is_form ? &operators->form : &operators->api,
                                  request->exchange, &claim));
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
    if (record->order->request)
        as_json_write_member(&json, "request", record->order->request);
    if (record->order->kind == AS_ORDER_SCALE || record->order->kind == AS_ORDER_FLOOR)
        as_json_write_member_i64(&json, "replicas", record->order->replicas);
    if (record->order->kind == AS_ORDER_PAUSE || record->order->kind == AS_ORDER_FLOOR)
        write_time(&json, "until", record->has_until, record->until);
    as_json_end_object(&json);
    as_json_end_object(&json);
    as_buf_append_char(body, '\n');
}

/* One sentence for the page. */
static void write_sentence(struct as_buf *body, const struct as_order_record *record)
{
    const char *what = !record->target        ? "All targets"
                       : *record->target_name ? record->target_name
                                              : record->target;
    const bool is_all = !record->target;
    char until[AS_RFC3339_SIZE];
    as_wall_time_print_short((as_wall_time){record->until.us - record->until.us % AS_US_PER_S},
                             until);
    switch (record->order->kind) {
    case AS_ORDER_PAUSE:
        as_buf_printf(body, "%s %s paused until %s.", what, is_all ? "are" : "is",
                      !record->has_until ? (is_all ? "they are resumed" : "it is resumed") : until);
        break;
    case AS_ORDER_RESUME: as_buf_printf(body, "%s %s resumed.", what, is_all ? "are" : "is"); break;
    case AS_ORDER_SCALE:
        as_buf_printf(body, "%s is being set to the size %" PRId32 ".", what,
                      record->order->replicas);
        break;
    case AS_ORDER_FLOOR:
        if (record->order->is_end)
            as_buf_printf(body, "The floor of %s is ended.", what);
        else
            as_buf_printf(body, "%s does not go below %" PRId32 " until %s.", what,
                          record->order->replicas, until);
        break;
    case AS_ORDER_UNLOCK: as_buf_printf(body, "The locks of %s are ended.", what); break;
    case AS_ORDER_APPROVE: as_buf_printf(body, "The change of %s is approved.", what); break;
    case AS_ORDER_DENY: as_buf_printf(body, "The change of %s is denied.", what); break;
    case AS_ORDER_KIND_COUNT: break;
    }
}

void as_operators_on_outcome(struct as_operators *operators, uint64_t request,
                             const struct as_order_record *record)
{
    static const int statuses[AS_ORDER_OUTCOME_COUNT] = {
        [AS_ORDER_DONE] = 200,          [AS_ORDER_UNKNOWN_TARGET] = 404,
        [AS_ORDER_OUT_OF_BOUNDS] = 422, [AS_ORDER_NOTHING_TO_DO] = 409,
        [AS_ORDER_REFUSED] = 403,       [AS_ORDER_UNKNOWN_REQUEST] = 404,
    };
    struct as_waiting_answer *answer = as_waiting_find(operators->waiting, request);
    if (!answer)
        return;
    answer->status = statuses[record->outcome];
    answer->headers = AS_REPLY_NO_STORE;
    if (record->outcome == AS_ORDER_DONE && answer->kind == &operators->form)
        write_sentence(&answer->body, record);
    else if (record->outcome == AS_ORDER_DONE)
        write_answer(&answer->body, record);
    else
        as_buf_append_str(&answer->body, record->message);
}
