/*
 * Decodes bodies to notifications, and reports the bodies that are not notifications.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/auth/reply.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/log/record.h>
#include <alertscaler/runtime/requests.h>

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

static as_mono_time get_now(const struct as_receiver *receiver)
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
    as_throttle_add(&receiver->complaints[complaint], remote, text, get_now(receiver));
}

static void reply_unavailable(struct as_receiver *receiver, struct as_http_exchange *exchange,
                              const char *why)
{
    as_metrics_on_notification(receiver->config.metrics, AS_NOTIFICATION_UNAVAILABLE);
    as_reply_text(exchange, 503, AS_REPLY_LATER,
                  "alertscaler cannot store notifications now (%s): send it again", why);
}

static void lose(void *context, struct as_http_exchange *exchange)
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
    receiver->kind = (struct as_waiting_kind){.lose = lose, .context = receiver};
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
        as_throttle_end(&receiver->complaints[i], get_now(receiver));
    free(receiver);
    return NULL;
}

void as_receiver_look(struct as_receiver *receiver)
{
    for (size_t i = 0; i < COMPLAINT_COUNT; i++)
        as_throttle_look(&receiver->complaints[i], get_now(receiver));
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
