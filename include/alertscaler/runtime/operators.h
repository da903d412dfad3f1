/*
 * Operators' orders over HTTP: POST /api/v1/targets/{id}/pause, /resume, /scale, /unlock and, for
 * all targets, /api/v1/pause and /api/v1/resume; POST /api/v1/approvals/{id}/approve, /deny; and
 * the same orders by forms of pages. docs/api.md describes them.
 *
 * Authorization comes before (auth.h, the permission `admin`). An order, even a refused one, is
 * answered when it is durable in the action log; if that fails, the answer is 503.
 */
#ifndef ALERTSCALER_RUNTIME_OPERATORS_H
#define ALERTSCALER_RUNTIME_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/decide/order.h>
#include <alertscaler/http/server.h>
#include <alertscaler/runtime/shell.h>

#include <alertscaler/runtime/waiting.h>

struct as_operators;

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
    enum as_order_kind kind;
    const char *encoded_what; /* as in the path: a target (NULL: all); approve, deny: a request */
    const char *body;         /* JSON: decide/order.h */
    size_t body_size;
    bool is_form; /* answered by the function for forms; else with JSON */
};

void as_operators_handle(struct as_operators *operators, const struct as_operators_request *request,
                         const struct as_operators_way *way);

/* The outcome of an order: AS_EFFECT_RECORD_COMMAND. */
void as_operators_on_outcome(struct as_operators *operators, uint64_t request,
                             const struct as_order_record *record);

#endif
