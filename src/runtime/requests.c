/*
 * Requests that change the state, from HTTP to a durable answer: the cache of decoded bodies,
 * the webhook, and operator commands. A request is answered only when it
 * is durable, or when it cannot become durable. What a request does is the engine's matter.
 */
#include <alertscaler/runtime/requests.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <event2/http.h>

#include <alertscaler/auth/reply.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/shares.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/log/record.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/monitoring/payload.h>
#include <alertscaler/runtime/shell.h>

/*
 * The cache of decoded bodies: a tree by digest, and a list by last use. The lent notification is
 * the list's head, whatever its size: if it is too large to keep, the next call frees it.
 */

#define REQUEST_BYTES 512 /* maximum, for texts from the request: the sender */

struct decoded_entry {
    RB_ENTRY(decoded_entry) by_digest;
    TAILQ_ENTRY(decoded_entry) in_order; /* last used first */
    struct as_digest digest;
    struct as_notification *notification;
    struct as_record_base base; /* the notification's */
    size_t bytes;
    struct as_share *share; /* of the narrowed credential that alone sends it; NULL: none */
};
TAILQ_HEAD(decoded_list, decoded_entry);
RB_HEAD(entry_tree, decoded_entry);

struct as_decoded {
    struct entry_tree entries;
    struct decoded_list order;
    size_t max;
    struct as_decoded_counts counts;
    struct as_shares shares; /* of bytes */
};

static int compare_entries(const struct decoded_entry *a, const struct decoded_entry *b)
{
    return as_digest_compare(&a->digest, &b->digest);
}
RB_GENERATE_INTERNAL(entry_tree, decoded_entry, by_digest, compare_entries,
                     __attribute__((unused)) static)

struct as_decoded *as_decoded_new(size_t max)
{
    struct as_decoded *decoded = as_xcalloc(1, sizeof(*decoded));
    RB_INIT(&decoded->entries);
    TAILQ_INIT(&decoded->order);
    as_shares_init(&decoded->shares);
    decoded->max = max;
    return decoded;
}

static void decoded_forget(struct as_decoded *decoded, struct decoded_entry *entry)
{
    RB_REMOVE(entry_tree, &decoded->entries, entry);
    TAILQ_REMOVE(&decoded->order, entry, in_order);
    decoded->counts.bytes -= entry->bytes;
    as_shares_give(&decoded->shares, entry->share, entry->bytes);
    as_notification_free(entry->notification);
    free(entry);
}

static struct decoded_entry *find_dispensable(const struct as_decoded *decoded)
{
    const struct as_share *largest = as_shares_find_largest(&decoded->shares);
    struct decoded_entry *entry = TAILQ_LAST(&decoded->order, decoded_list);
    while (decoded->shares.held > decoded->max / 2 && entry->share != largest)
        entry = TAILQ_PREV(entry, decoded_list, in_order);
    return entry;
}

static void shrink(struct as_decoded *decoded)
{
    struct decoded_entry *lent = TAILQ_FIRST(&decoded->order);
    if (lent && lent->bytes > decoded->max) /* do not evict the others for it */
        decoded_forget(decoded, lent);
    while (decoded->counts.bytes > decoded->max)
        decoded_forget(decoded, find_dispensable(decoded));
}

struct as_decoded *as_decoded_free(struct as_decoded *decoded)
{
    if (decoded)
        as_decoded_set_max(decoded, 0);
    free(decoded);
    return NULL;
}

void as_decoded_set_max(struct as_decoded *decoded, size_t max)
{
    decoded->max = max;
    shrink(decoded);
}

static void decoded_keep(struct as_decoded *decoded, const struct as_digest *digest,
                         const char *narrowed, struct as_notification *notification_taken)
{
    struct decoded_entry *entry = as_xcalloc(1, sizeof(*entry));
    entry->digest = *digest;
    entry->notification = notification_taken;
    entry->notification->base = &entry->base;
    entry->bytes = sizeof(*entry) + AS_ALLOC_EXTRA + REQUEST_BYTES +
                   as_notification_measure(notification_taken);
    RB_INSERT(entry_tree, &decoded->entries, entry);
    TAILQ_INSERT_HEAD(&decoded->order, entry, in_order);
    decoded->counts.bytes += entry->bytes;
    entry->share = as_shares_take(&decoded->shares, narrowed, entry->bytes);
}

int as_decoded_get(struct as_decoded *decoded, const char *body, size_t size, const char *narrowed,
                   struct as_notification **notification_out, struct as_error *error)
{
    struct decoded_entry key = {.digest = as_digest_get(body, size)};
    shrink(decoded); /* the last lent one may be too large */
    struct decoded_entry *entry = RB_FIND(entry_tree, &decoded->entries, &key);
    if (entry) {
        decoded->counts.hits++;
        TAILQ_REMOVE(&decoded->order, entry, in_order);
        TAILQ_INSERT_HEAD(&decoded->order, entry, in_order);
        if (entry->share && !narrowed) {
            as_shares_give(&decoded->shares, entry->share, entry->bytes);
            entry->share = NULL;
        }
        *notification_out = entry->notification;
        return 0;
    }
    decoded->counts.misses++;
    const int status = as_payload_decode(body, size, notification_out, error);
    if (status < 0)
        return status;
    as_digest_print(&key.digest, (*notification_out)->body_sha256);
    (*notification_out)->body_size = size;
    decoded_keep(decoded, &key.digest, narrowed, *notification_out);
    return 0;
}

struct as_decoded_counts as_decoded_get_counts(const struct as_decoded *decoded)
{
    return decoded->counts;
}

/*
 * The webhook: decodes bodies to notifications, and reports the bodies that are not notifications.
 */

#define TRACEPARENT_MAX 128

enum complaint {
    REFUSED, /* bodies that are not notifications: anybody may send them */
    INVALID, /* unreadable alerts in accepted notifications */
    AHEAD,   /* alerts dated ahead of the clock */
    CROWDED, /* notifications refused for lack of room */
    COMPLAINT_COUNT
};
static const struct complaint_row {
    enum as_log_level level;
    const char *event, *key;
} complaints[COMPLAINT_COUNT] = {
    [REFUSED] = {AS_LOG_WARN, "notification refused", "error"},
    [INVALID] = {AS_LOG_WARN, "alert refused", "error"},
    [AHEAD] = {AS_LOG_WARN, "alert dated ahead of the clock", "startsAt"},
    [CROWDED] = {AS_LOG_ERROR, "notification not taken", "reason"},
};

struct as_receiver {
    struct as_receiver_config config;
    struct as_shell *shell;
    struct as_storage *storage;
    const char *why_not; /* without a shell */
    struct as_decoded *decoded;
    struct as_random random;
    struct as_waiting_kind kind;
    struct as_throttle complaints[COMPLAINT_COUNT];
};

static as_mono_time receiver_get_now(const struct as_receiver *receiver)
{
    return receiver->config.clock->get_mono(receiver->config.clock);
}

static bool log_complaint(const void *context, const struct as_throttle *throttle)
{
    const struct complaint_row *row = context;
    as_log(row->level, row->event, AS_F("remote", throttle->remote),
           AS_F(row->key, throttle->error), AS_FI("count", throttle->count));
    return true;
}

static void complain(struct as_receiver *receiver, enum complaint complaint, const char *remote,
                     const char *text)
{
    as_throttle_add(&receiver->complaints[complaint], remote, text, receiver_get_now(receiver));
}

static void reply_unavailable(struct as_receiver *receiver, struct as_http_exchange *exchange,
                              const char *why)
{
    as_metrics_on_notification(receiver->config.metrics, AS_NOTIFICATION_UNAVAILABLE);
    as_reply_text(exchange, 503, AS_REPLY_LATER,
                  "alertscaler cannot store notifications now (%s): send it again", why);
}

static void receiver_lose(void *context, struct as_http_exchange *exchange)
{
    reply_unavailable(context, exchange, "the state could not be written");
}

struct as_receiver *as_receiver_new(const struct as_receiver_config *config)
{
    struct as_receiver *receiver = as_xcalloc(1, sizeof(*receiver));
    receiver->config = *config;
    receiver->why_not = "starting";
    receiver->decoded = as_decoded_new(0);
    as_random_init(&receiver->random, config->seed);
    receiver->kind = (struct as_waiting_kind){.lose = receiver_lose, .context = receiver};
    for (size_t i = 0; i < COMPLAINT_COUNT; i++)
        receiver->complaints[i] =
            AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, log_complaint, &complaints[i]);
    return receiver;
}

struct as_receiver *as_receiver_free(struct as_receiver *receiver)
{
    if (!receiver)
        return NULL;
    as_decoded_free(receiver->decoded);
    for (size_t i = 0; i < COMPLAINT_COUNT; i++)
        as_throttle_end(&receiver->complaints[i], receiver_get_now(receiver));
    free(receiver);
    return NULL;
}

void as_receiver_poll(struct as_receiver *receiver)
{
    for (size_t i = 0; i < COMPLAINT_COUNT; i++)
        as_throttle_refill(&receiver->complaints[i], receiver_get_now(receiver));
}

void as_receiver_set_shell(struct as_receiver *receiver, struct as_shell *shell,
                           struct as_storage *storage, const char *why)
{
    receiver->shell = shell;
    receiver->storage = storage;
    receiver->why_not = why;
}

void as_receiver_set_limits(struct as_receiver *receiver, size_t cache, unsigned connections)
{
    as_decoded_set_max(receiver->decoded, cache);
    as_waiting_set_connections(receiver->config.waiting, connections);
}

struct as_decoded_counts as_receiver_get_cache(const struct as_receiver *receiver)
{
    return as_decoded_get_counts(receiver->decoded);
}

bool as_receiver_check(struct as_receiver *receiver, struct as_http_exchange *exchange)
{
    const char *why = NULL;
    if (!receiver->shell)
        why = receiver->why_not;
    else if (!as_storage_has_room(receiver->storage))
        why = "the queue to the state file is full";
    if (why)
        reply_unavailable(receiver, exchange, why);
    return !why;
}

void as_receiver_on_answered(struct as_receiver *receiver, const char *handler, int status)
{
    if (strcmp(handler, AS_RECEIVER_HANDLER) == 0 &&
        (status == 401 || status == 403 || status == 429))
        as_metrics_on_notification(receiver->config.metrics, AS_NOTIFICATION_DENIED);
}

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = as_xstrdup(value);
}

static void complete(struct as_receiver *receiver, struct as_http_exchange *exchange,
                     struct as_notification *notification)
{
    const struct as_clock *clock = receiver->config.clock;
    as_ulid_print(clock->get_wall(clock), &receiver->random, notification->id);
    set_text(&notification->remote, as_http_exchange_get_remote(exchange));
    set_text(&notification->credential, as_auth_get_credential(exchange));
    const char *traceparent = as_http_exchange_find_header(exchange, "traceparent");
    const bool traced = traceparent && strlen(traceparent) <= TRACEPARENT_MAX;
    set_text(&notification->traceparent, traced ? traceparent : "");
}

static void note_invalid(struct as_receiver *receiver, const struct as_notification *notification)
{
    for (size_t i = 0; i < notification->alert_count; i++) {
        if (notification->alerts[i].problem)
            complain(receiver, INVALID, notification->remote, notification->alerts[i].problem);
    }
}

void as_receiver_refuse_path(struct as_receiver *receiver, struct as_http_exchange *exchange,
                             const char *prefix)
{
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "nothing is taken at %s: notifications go to %s/webhook",
                 as_http_exchange_get_path(exchange), prefix);
    complain(receiver, REFUSED, as_http_exchange_get_remote(exchange), error.text);
    as_reply_text(exchange, 404, NULL, "%s", error.text);
}

void as_receiver_handle(struct as_receiver *receiver, struct as_http_exchange *exchange)
{
    if (!as_auth_verify_body(receiver->config.auth, exchange) ||
        !as_receiver_check(receiver, exchange)) /* again: the body may have taken long */
        return;
    size_t size;
    const char *body = as_http_exchange_get_body(exchange, &size);
    struct as_waiting_claim claim;
    if (!as_waiting_fits(receiver->config.waiting, as_shell_get_engine(receiver->shell),
                         as_auth_get_credential(exchange), size, &claim)) {
        reply_unavailable(receiver, exchange, AS_WAITING_PART_FULL);
        return;
    }
    struct as_notification *notification;
    struct as_error error = AS_ERROR_INIT;
    const int status =
        as_decoded_get(receiver->decoded, body, size, claim.name, &notification, &error);
    if (status == -ENOMEM) {
        reply_unavailable(receiver, exchange, error.text);
        return;
    }
    if (status != 0) {
        as_metrics_on_notification(receiver->config.metrics, AS_NOTIFICATION_INVALID);
        complain(receiver, REFUSED, as_http_exchange_get_remote(exchange), error.text);
        as_reply_text(exchange, 400, NULL, "%s", error.text);
        return;
    }
    complete(receiver, exchange, notification);
    if (!as_engine_has_room(as_shell_get_engine(receiver->shell), notification)) {
        static const char why[] =
            "incidents take all the memory that receiver.max_incident_memory gives";
        complain(receiver, CROWDED, as_http_exchange_get_remote(exchange), why);
        reply_unavailable(receiver, exchange, why);
        return;
    }
    as_metrics_on_notification(receiver->config.metrics, AS_NOTIFICATION_OK);
    note_invalid(receiver, notification);

    const uint64_t request =
        as_waiting_add(receiver->config.waiting, &receiver->kind, exchange, &claim);
    as_shell_notify(receiver->shell, notification, request);
}

static void note_ahead(struct as_receiver *receiver, const struct as_notification_record *record)
{
    char text[AS_RFC3339_SIZE];
    for (size_t i = 0; i < record->notification->alert_count; i++) {
        if (!record->outcomes[i].is_ahead)
            continue;
        as_wall_time_print_short(record->notification->alerts[i].starts_at, text);
        complain(receiver, AHEAD, record->notification->remote, text);
    }
}

void as_receiver_on_outcome(struct as_receiver *receiver, uint64_t request,
                            const struct as_notification_record *record)
{
    note_ahead(receiver, record);
    struct as_waiting_answer *answer = as_waiting_find(receiver->config.waiting, request);
    if (answer)
        as_record_encode_answer(record, &answer->body);
}

size_t as_receiver_count_waiting(const struct as_receiver *receiver)
{
    return receiver->kind.count;
}

/*
 * Operator commands: requests to orders, outcomes to answers.
 */

struct as_operators {
    struct as_waiting *waiting;
    struct as_waiting_kind api, form;
    as_operators_form_fn *answer_form;
    void *form_context;
};

static const char lost[] = "the command could not be made durable: look whether it was done";

static void operators_lose(void *context, struct as_http_exchange *exchange)
{
    as_reply_error(exchange, 503, AS_REPLY_LATER, "%s", lost);
}

static void operators_lose_form(void *context, struct as_http_exchange *exchange)
{
    const struct as_operators *operators = context;
    operators->answer_form(operators->form_context, exchange, 503, lost);
}

static void operators_end_form(void *context, struct as_http_exchange *exchange,
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
    operators->api.lose = operators_lose;
    operators->form = (struct as_waiting_kind){
        .lose = operators_lose_form, .end = operators_end_form, .context = operators};
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

static void operators_refuse(const struct as_operators *operators,
                             const struct as_operators_request *request, int status,
                             const char *text)
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
        operators_refuse(operators, request, 503, error.text);
        return;
    }
    const bool is_answer = as_operator_command_kind_is_answer(request->kind);
    if (request->encoded_what && !(what = decode_text(request->encoded_what))) {
        operators_refuse(operators, request, 400,
                         is_answer ? "expected the id of a request before the command"
                                   : "expected a target's name or id before the command");
        return;
    }
    struct as_operator_command_document document;
    if (as_operator_command_decode(request->body, request->body_size, request->kind, &document,
                                   &error) != 0) {
        operators_refuse(operators, request,
                         request->body_size > AS_OPERATOR_COMMAND_BODY_MAX ? 413 : 400, error.text);
        return;
    }
    struct as_waiting_claim claim;
    if (!as_waiting_fits(operators->waiting, as_shell_get_engine(way->shell), request->who,
                         request->body_size, &claim)) {
        operators_refuse(operators, request, 503, AS_WAITING_PART_FULL);
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

static void operators_write_time(struct as_json_writer *json, const char *key, bool is_set,
                                 as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_json_write_key(json, key);
    as_wall_time_print(time, text);
    if (is_set)
        as_json_write_string(json, text);
    else
        as_json_write_null(json);
}

static void write_answer(struct as_buf *body, const struct as_operator_command_record *record)
{
    struct as_json_writer json;
    as_json_init(&json, body, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "status", "success");
    as_json_write_key(&json, "data");
    as_json_begin_object(&json);
    as_json_write_member(&json, "id", record->id);
    as_json_write_member(&json, "command", as_operator_command_kind_get_word(record->order->kind));
    as_json_write_key(&json, "target");
    if (record->target)
        as_json_write_string(&json, record->target);
    else
        as_json_write_null(&json);
    if (record->order->request)
        as_json_write_member(&json, "request", record->order->request);
    if (record->order->kind == AS_OPERATOR_COMMAND_SCALE ||
        record->order->kind == AS_OPERATOR_COMMAND_FLOOR)
        as_json_write_member_i64(&json, "replicas", record->order->replicas);
    if (record->order->kind == AS_OPERATOR_COMMAND_PAUSE ||
        record->order->kind == AS_OPERATOR_COMMAND_FLOOR)
        operators_write_time(&json, "until", record->until.set, record->until.at);
    as_json_end_object(&json);
    as_json_end_object(&json);
    as_buf_append_char(body, '\n');
}

/* One sentence for the page. */
static void write_sentence(struct as_buf *body, const struct as_operator_command_record *record)
{
    const char *what = !record->target        ? "All targets"
                       : *record->target_name ? record->target_name
                                              : record->target;
    const bool is_all = !record->target;
    char until[AS_RFC3339_SIZE];
    as_wall_time_print_short(
        (as_wall_time){record->until.at.us - record->until.at.us % AS_US_PER_S}, until);
    switch (record->order->kind) {
    case AS_OPERATOR_COMMAND_PAUSE:
        as_buf_printf(body, "%s %s paused until %s.", what, is_all ? "are" : "is",
                      !record->until.set ? (is_all ? "they are resumed" : "it is resumed") : until);
        break;
    case AS_OPERATOR_COMMAND_RESUME:
        as_buf_printf(body, "%s %s resumed.", what, is_all ? "are" : "is");
        break;
    case AS_OPERATOR_COMMAND_SCALE:
        as_buf_printf(body, "%s is being set to the size %" PRId32 ".", what,
                      record->order->replicas);
        break;
    case AS_OPERATOR_COMMAND_FLOOR:
        if (record->order->is_end)
            as_buf_printf(body, "The floor of %s is ended.", what);
        else
            as_buf_printf(body, "%s does not go below %" PRId32 " until %s.", what,
                          record->order->replicas, until);
        break;
    case AS_OPERATOR_COMMAND_UNLOCK: as_buf_printf(body, "The locks of %s are ended.", what); break;
    case AS_OPERATOR_COMMAND_APPROVE:
        as_buf_printf(body, "The change of %s is approved.", what);
        break;
    case AS_OPERATOR_COMMAND_DENY: as_buf_printf(body, "The change of %s is denied.", what); break;
    case AS_OPERATOR_COMMAND_KIND_COUNT: break;
    }
}

void as_operators_on_outcome(struct as_operators *operators, uint64_t request,
                             const struct as_operator_command_record *record)
{
    static const int statuses[AS_OPERATOR_COMMAND_OUTCOME_COUNT] = {
        [AS_OPERATOR_COMMAND_DONE] = 200,          [AS_OPERATOR_COMMAND_UNKNOWN_TARGET] = 404,
        [AS_OPERATOR_COMMAND_OUT_OF_BOUNDS] = 422, [AS_OPERATOR_COMMAND_NOTHING_TO_DO] = 409,
        [AS_OPERATOR_COMMAND_REFUSED] = 403,       [AS_OPERATOR_COMMAND_UNKNOWN_REQUEST] = 404,
    };
    struct as_waiting_answer *answer = as_waiting_find(operators->waiting, request);
    if (!answer)
        return;
    answer->status = statuses[record->outcome];
    answer->headers = AS_REPLY_NO_STORE;
    if (record->outcome == AS_OPERATOR_COMMAND_DONE && answer->kind == &operators->form)
        write_sentence(&answer->body, record);
    else if (record->outcome == AS_OPERATOR_COMMAND_DONE)
        write_answer(&answer->body, record);
    else
        as_buf_append_str(&answer->body, record->message);
}
