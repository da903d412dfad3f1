/*
 * Requests that change the state: notifications (the webhook) and operator commands, each from HTTP
 * to a durable answer. They wait for the disk: the engine's effects first give the outcome of a
 * request, then say that it is durable; only then it is answered.
 */
#ifndef ALERTSCALER_RUNTIME_REQUESTS_H
#define ALERTSCALER_RUNTIME_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/random.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/http/server.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/runtime/metrics.h>
#include <alertscaler/runtime/shell.h>

struct as_decoded;
struct as_operators;
struct as_receiver;
struct as_waiting;

/*
 * Requests that wait. They become durable in the order in which they came: a list is enough.
 */

/* Of the 503 to a request that does not fit. */
#define AS_WAITING_PART_FULL "the credential's part of the queue to the state is full"

struct as_waiting_answer {
    const struct as_waiting_kind *kind;
    int status;          /* 200, or an error whose text is in `body` */
    const char *headers; /* for a 200 */
    struct as_buf body;  /* for a 200: JSON, unless the kind answers itself */
};

struct as_waiting_kind { /* owned by the caller, for as long as its requests wait */
    /* Answers a request that will not become durable. */
    void (*lose)(void *context, struct as_http_exchange *exchange);
    /* Answers a request that is durable; NULL: with JSON, or an error. */
    void (*end)(void *context, struct as_http_exchange *exchange,
                const struct as_waiting_answer *answer);
    void *context;
    size_t count; /* number of its waiting requests; all zero at first */
};

struct as_waiting *as_waiting_new(void) AS_MUST_USE;
struct as_waiting *as_waiting_free(struct as_waiting *waiting); /* only if nothing waits */

/* What a request takes of the storage's queue, which is limited in bytes and in requests. Each
 * request holds a connection too. */
struct as_waiting_claim {
    const char *name; /* of a narrowed credential; NULL: not counted */
    uint64_t amount;  /* in bytes */
};

/* Connections of the server; 0 until set. */
void as_waiting_set_connections(struct as_waiting *waiting, unsigned connections);
/* Whether a request of the credential, with a body of `size` bytes, fits the credential's part of
 * the queue: narrowed credentials leave half of the queue to others. The claim borrows the name. */
bool as_waiting_fits(const struct as_waiting *waiting, const struct as_engine *engine,
                     const char *credential, size_t size,
                     struct as_waiting_claim *claim_out) AS_MUST_USE;

/* The number of the request in effects; never 0. It holds its claim while it waits. */
uint64_t as_waiting_add(struct as_waiting *waiting, struct as_waiting_kind *kind,
                        struct as_http_exchange *exchange,
                        const struct as_waiting_claim *claim) AS_MUST_USE;
uint64_t as_waiting_get_held(const struct as_waiting *waiting, const char *name);

/* The answer to be sent when the request is durable, to be filled; initially an empty 200. NULL: it
 * does not wait. */
struct as_waiting_answer *as_waiting_find(struct as_waiting *waiting, uint64_t request);

void as_waiting_end(struct as_waiting *waiting, uint64_t request); /* now durable */
void as_waiting_lose(struct as_waiting *waiting);                  /* all of them */

/*
 * A cache of decoded notifications by their bytes: Alertmanager repeats the same body for a group
 * until something changes. The decoded content depends only on the bytes, not on the sender or the
 * outcome. Each entry has room for the shell's base of small records of repeats.
 */

struct as_decoded_counts {
    uint64_t hits, misses;
    size_t bytes; /* present size */
};

/* `max`: bytes of memory for the whole cache; the least recently used entry is evicted first. While
 * narrowed credentials have more than half of the memory, one of that with most of it is. */
struct as_decoded *as_decoded_new(size_t max) AS_MUST_USE;
struct as_decoded *as_decoded_free(struct as_decoded *decoded);
void as_decoded_set_max(struct as_decoded *decoded, size_t max);

/*
 * The notification of a body, with `body_sha256` and `body_size`, but nothing else from the
 * request. It is lent until the next call of any of these functions: the caller fills in the texts
 * from the request until then. Errors as of as_payload_decode. `narrowed`: the
 * sender's credential, if it is narrowed; else NULL.
 */
int as_decoded_get(struct as_decoded *decoded, const char *body, size_t size, const char *narrowed,
                   struct as_notification **notification_out, struct as_error *error) AS_MUST_USE;

struct as_decoded_counts as_decoded_get_counts(const struct as_decoded *decoded);

/*
 * The webhook: from an HTTP request to a durable notification and its answer.
 *
 * `200` is sent after the notification is durable, never before. If it cannot be made durable, the
 * answer is `503` and nothing is kept, so that Alertmanager sends it again.
 */

#define AS_RECEIVER_HANDLER "webhook" /* the handler's name in metrics and logs */

struct as_receiver_config {
    const struct as_clock *clock;
    struct as_metrics *metrics;
    struct as_auth *auth;
    struct as_waiting *waiting;
    uint64_t seed;
};

struct as_receiver *as_receiver_new(const struct as_receiver_config *config) AS_MUST_USE;
struct as_receiver *as_receiver_free(struct as_receiver *receiver);

/* Both are borrowed. Without a shell every request is answered 503 with `why` (static memory). */
void as_receiver_set_shell(struct as_receiver *receiver, struct as_shell *shell,
                           struct as_storage *storage, const char *why);

/* Bytes of memory for the cache of decoded bodies, and the number of connections, each of which can
 * wait for the disk; both 0 until set. */
void as_receiver_set_limits(struct as_receiver *receiver, size_t cache, unsigned connections);
struct as_decoded_counts as_receiver_get_cache(const struct as_receiver *receiver);

/* Whether a notification can be accepted now; false if it has answered 503. */
bool as_receiver_check(struct as_receiver *receiver, struct as_http_exchange *exchange) AS_MUST_USE;
void as_receiver_handle(struct as_receiver *receiver, struct as_http_exchange *exchange);
/* For a POST to another path: tells the sender and, throttled, the log where to send
 * notifications. */
void as_receiver_refuse_path(struct as_receiver *receiver, struct as_http_exchange *exchange,
                             const char *prefix);
void as_receiver_on_answered(struct as_receiver *receiver, const char *handler, int status);

/* The outcome of a notification: AS_EFFECT_RECORD_NOTIFICATION. */
void as_receiver_on_outcome(struct as_receiver *receiver, uint64_t request,
                            const struct as_notification_record *record);

/* Call about once a second: logs the number of refused bodies since the last time, if due. */
void as_receiver_poll(struct as_receiver *receiver);

size_t as_receiver_count_waiting(const struct as_receiver *receiver);

/*
 * Operators' orders over HTTP: POST /api/v1/targets/{id}/pause, /resume, /scale, /unlock and, for
 * all targets, /api/v1/pause and /api/v1/resume; POST /api/v1/approvals/{id}/approve, /deny; and
 * the same orders by forms of pages. docs/api.md describes them.
 *
 * Authorization comes before (auth.h, the permission `admin`). An order, even a refused one, is
 * answered when it is durable in the action log; if that fails, the answer is 503.
 */

/* Answers an order that came by a form. `status`: as the API answers; `text`: one sentence, what
 * was done or why not. */
typedef void as_operators_form_fn(void *context, struct as_http_exchange *exchange, int status,
                                  const char *text);

struct as_operators *as_operators_new(struct as_waiting *waiting) AS_MUST_USE;
struct as_operators *as_operators_free(struct as_operators *operators);
/* Before the first form. */
void as_operators_set_form(struct as_operators *operators, as_operators_form_fn *answer,
                           void *context);

struct as_operators_way {   /* to the shell */
    struct as_shell *shell; /* NULL: 503 with `why_not` */
    struct as_storage *storage;
    const char *why_not;
};

struct as_operators_request { /* borrowed for the call, but for the exchange */
    struct as_http_exchange *exchange;
    const char *who;
    enum as_operator_command_kind kind;
    const char *encoded_what; /* as in the path: a target (NULL: all); approve, deny: a request */
    const char *body;         /* JSON: decide/operator_command.h */
    size_t body_size;
    bool is_form; /* answered by the function for forms; else with JSON */
};

void as_operators_handle(struct as_operators *operators, const struct as_operators_request *request,
                         const struct as_operators_way *way);

/* The outcome of an order: AS_EFFECT_RECORD_COMMAND. */
void as_operators_on_outcome(struct as_operators *operators, uint64_t request,
                             const struct as_operator_command_record *record);

#endif
