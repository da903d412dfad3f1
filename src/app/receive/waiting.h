/*
 * Requests that wait for the disk: notifications and orders. The engine's effects say what becomes
 * of a request, and then that it is durable; only then it is answered.
 *
 * They wait in the order in which they came, which is the order in which they become durable: a
 * list is enough.
 */
#ifndef ALERTSCALER_SRC_APP_RECEIVE_WAITING_H
#define ALERTSCALER_SRC_APP_RECEIVE_WAITING_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/net/server.h>

struct as_waiting;

struct as_waiting_kind { /* the caller's, for as long as its requests wait */
    /* Answers a request that will not become durable. */
    void (*lose)(void *context, struct as_http_exchange *exchange);
    void *context;
    size_t count; /* how many of its requests wait; all zero at the beginning */
};

struct as_waiting_answer {
    int status;          /* 200, or an error whose text is in `body` */
    const char *headers; /* of a 200 */
    struct as_buf body;  /* of a 200: JSON */
};

struct as_waiting *as_waiting_new(void) AS_MUST_USE;
struct as_waiting *as_waiting_free(struct as_waiting *waiting); /* nothing waits any more */

/* The number of the request, by which effects name it; never 0. */
uint64_t as_waiting_add(struct as_waiting *waiting, struct as_waiting_kind *kind,
                        struct as_http_exchange *exchange) AS_MUST_USE;

/* What the request is answered once it is durable, to be filled: an empty 200. NULL: it does not
 * wait. */
struct as_waiting_answer *as_waiting_find(struct as_waiting *waiting, uint64_t request);

void as_waiting_end(struct as_waiting *waiting, uint64_t request); /* it is durable */
void as_waiting_lose(struct as_waiting *waiting);                  /* nothing becomes durable */

#endif
