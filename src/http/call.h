/*
 * One HTTP request of the client: its curl handle, the answer so far, and its result. It knows
 * nothing of the loop or of other calls; client.c does.
 */
#ifndef ALERTSCALER_SRC_HTTP_CALL_H
#define ALERTSCALER_SRC_HTTP_CALL_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/port/http.h>

struct as_http_origin;
struct as_http_call;
struct event;

/* Called by curl's callbacks: there is a part for on_body. */
typedef void as_http_call_wake_fn(struct as_http_call *call);

enum as_http_call_state {
    AS_HTTP_CALL_WAITING, /* for other calls to the same origin to end */
    AS_HTTP_CALL_RUNNING, /* curl has the call */
    AS_HTTP_CALL_ENDED,   /* settled, `done` not yet called */
    AS_HTTP_CALL_TELLING  /* `done` is running */
};

struct as_http_call {
    struct as_fair_item
        place; /* in its origin's queue of its class. First: it is cast to the call */
    TAILQ_ENTRY(as_http_call) link; /* in the origin's list, or in that of ended calls */
    enum as_http_call_state state;
    struct as_http_origin *origin; /* while waiting or running */
    enum as_http_class class;
    struct event *wait_timer; /* while waiting */
    struct event *idle_timer; /* while running; NULL: no limit */
    int64_t started_us, ended_us, deadline_us;
    int64_t idle_us, heard_us; /* heard: when the last byte arrived */
    uint64_t ended_turn;       /* the turn of the client's loop */

    CURL *easy;
    CURLcode setup; /* the first option that curl refused */
    struct curl_slist *headers, *connect_to;
    const char *client_name, *operation;
    as_http_done_fn *done;
    void *context;

    struct as_buf body;
    as_http_body_fn *on_body;            /* NULL: the body is collected */
    as_http_call_wake_fn *wake;          /* for on_body */
    struct as_buf part;                  /* that on_body has not been given yet */
    TAILQ_ENTRY(as_http_call) part_link; /* in the client's list, while there is a part */
    uint64_t part_turn;
    bool is_streamed;     /* the head of a 2xx answer is there, and its body is for on_body */
    bool has_part;        /* maybe an empty part */
    bool is_paused;       /* curl waits until the part is gone */
    bool is_handing;      /* on_body is running */
    bool is_cancelled;    /* by its on_body */
    struct as_buf fields; /* as in as_http_response */
    size_t head_size;     /* of the answer's head */
    bool too_large;
    bool was_begun, wants_again; /* a change: curl has sent it, and wants to send it again */
    char etag[256], retry_after[64], content_type[128], location[1024];
    enum as_http_outcome outcome;
    int status;
    char error[CURL_ERROR_SIZE];
};

TAILQ_HEAD(as_http_call_list, as_http_call);

int64_t as_http_call_now(void); /* monotonic, in microseconds */

/* Copies the whole request. If the request is invalid, `error` is not empty. */
struct as_http_call *as_http_call_new(const struct as_http_request *request, as_http_done_fn *done,
                                      void *context) AS_MUST_USE;
struct as_http_call *as_http_call_free(struct as_http_call *call);

/* The call ended before curl had it: nothing was sent. */
void as_http_call_settle_unsent(struct as_http_call *call, const char *error);
/* Curl has ended the call. */
void as_http_call_settle(struct as_http_call *call, CURLcode result);
/* Gives the part to on_body. Returns what on_body returns. */
bool as_http_call_hand_over(struct as_http_call *call) AS_MUST_USE;
/* on_body wants no more. */
void as_http_call_settle_refused(struct as_http_call *call);
void as_http_call_get_response(const struct as_http_call *call, struct as_http_response *response);

#endif
