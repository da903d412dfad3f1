/*
 * Requests that wait for the disk: notifications and orders. The engine's effects first give the
 * outcome of a request, then say that it is durable; only then it is answered.
 *
 * Requests become durable in the order in which they came: a list is enough.
 */
#ifndef ALERTSCALER_RUNTIME_WAITING_H
#define ALERTSCALER_RUNTIME_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/http/server.h>

/* Of the 503 to a request that does not fit. */
#define AS_WAITING_PART_FULL "the credential's part of the queue to the state is full"

struct as_waiting;

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

#endif
