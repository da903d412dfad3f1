/*
 * A cloud operation over the ports: carries out its requests, files, programs and pauses, until it
 * ends. Every want is started from a separate turn of the loop, so that no callback comes from
 * inside a call.
 */
#ifndef ALERTSCALER_LOGIN_OP_CALL_H
#define ALERTSCALER_LOGIN_OP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/fair_queue.h>
#include <alertscaler/base/time.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/login_env.h>
#include <alertscaler/port/http.h>

struct as_op_call;

struct as_op_call_callbacks {
    /* Adds what its sender must add (a signature). False: the op has been failed. */
    bool (*authorize)(void *context, struct as_cloud_op *op);
    /* Called right before a request that is_change. False: it must not be made now, and the op has
     * been failed. NULL: changes are always permitted. */
    bool (*permit)(void *context, struct as_cloud_op *op);
    /* Sends the op's request by other means than HTTP; the owner reports the response by
     * as_op_call_on_response, and cancels the request before it cancels the call. NULL: HTTP. */
    void (*send)(void *context, struct as_cloud_op *op);
    /* The op has ended with AS_CLOUD_OP_UNAUTHORIZED at an answer. True: the owner will repeat the
     * request with as_op_call_repeat, and the op receives the new answer in place of the old one.
     */
    bool (*refused)(void *context, struct as_op_call *call);
    /* A request that is_timed was refused, and the other side's clock is known now: the owner
     * begins the op again. */
    void (*mistimed)(void *context);
    void (*ended)(void *context); /* once, in a later turn than start */
    void *context;
};

struct as_op_call { /* embedded in its owner, which sets the first members */
    const struct as_login_env *env;
    struct as_http *http; /* NULL: that of env */
    struct as_cloud_op *op;
    struct as_op_call_callbacks callbacks;
    int64_t timeout_us; /* default of requests without a timeout */
    const char *client; /* for metrics; valid as long as the call */
    const struct as_http_tls *tls;
    const char *proxy_url;
    struct as_flow flow; /* borrowed, of its requests */
    int64_t *skew_us;    /* how far the other side's clock is ahead; NULL: irrelevant */
    /* private: */
    struct as_http_call *transfer;
    struct as_timer *timer;
    struct as_process *process;
    as_cloud_op_response_fn *on_response; /* of the last request */
    size_t plain_headers;                 /* of the last request, before it was authorized */
    bool is_repeated;                     /* at most once; an op begun anew starts with it */
};

/* The op has begun: its first want is carried out in a later turn. */
void as_op_call_start(struct as_op_call *call);
/* Sends the last request once more, authorized anew. */
void as_op_call_repeat(struct as_op_call *call);
/* The response to a request that the owner has sent. */
void as_op_call_on_response(struct as_op_call *call, const struct as_http_response *response);
void as_op_call_cancel(struct as_op_call *call); /* no callbacks afterwards */

/*
 * A signature contains the time. Whether a refusal may come from a wrong clock of ours: judged by
 * the answer's own time. `now` is the time that the request was signed with. True: `skew_us` has
 * been corrected, and the same request may succeed. `client`: for the log.
 */
bool as_skew_learn(int64_t *skew_us, as_wall_time now, const struct as_http_response *response,
                   const char *client) AS_MUST_USE;

#endif
