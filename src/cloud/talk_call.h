/*
 * Carries out what a talk (cloud/talk.h) wants, over the ports: requests, files, programs, time.
 */
#ifndef ALERTSCALER_SRC_CLOUD_TALK_CALL_H
#define ALERTSCALER_SRC_CLOUD_TALK_CALL_H

#include <stdint.h>

#include <alertscaler/cloud/talk.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/monitoring/http_auth.h>

struct talk_call;

struct talk_call_callbacks {
    /* Adds what its sender must add (a signature). False: the talk has been failed. */
    bool (*authorize)(void *context, struct as_talk *talk);
    /* The talk has ended with AS_TALK_UNAUTHORIZED at an answer. True: the owner will repeat the
     * request with talk_call_repeat, and the talk hears the new answer in place of the old one. */
    bool (*refused)(void *context, struct talk_call *call);
    /* A request that is_timed was refused, and the other side's clock is known now: the owner
     * begins the talk again. */
    void (*mistimed)(void *context);
    void (*ended)(void *context); /* once, in a later turn than start */
    void *context;
};

struct talk_call { /* embedded in its owner; all private */
    const struct as_access_env *env;
    struct as_talk *talk;
    struct talk_call_callbacks callbacks;
    int64_t timeout_us; /* default of requests without a timeout */
    const char *client; /* for metrics; valid as long as the call */
    const struct as_http_tls *tls;
    const char *proxy_url;
    struct as_http_auth *auth;      /* sets tls, proxy_url and more headers; NULL: none */
    struct as_kube_client *cluster; /* the API server for URLs that are paths; NULL: none */
    struct as_flow flow;            /* borrowed, of its requests */
    int64_t *skew_us;               /* how far the other side's clock is ahead; NULL: irrelevant */
    struct as_kube_request *question;
    struct as_http_call *transfer;
    struct as_timer *timer;
    struct as_process *process;
    as_talk_hear_fn *hear; /* of the last request */
    size_t plain_headers;  /* of the last request, before it was authorized */
    bool is_repeated;      /* at most once; then a talk begun anew starts with it */
};

/* The talk has begun: its first want is carried out in a later turn. */
void talk_call_start(struct talk_call *call);
void talk_call_repeat(struct talk_call *call);
void talk_call_cancel(struct talk_call *call); /* no callbacks afterwards */

#endif
