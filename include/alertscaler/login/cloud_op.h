/*
 * A cloud operation ("op"): a conversation with an API, as pure code without a network. The op says
 * what it wants next (a request, a file, a program, a pause). Its owner does this and tells the op
 * the result, until the op ends. So every provider and every source of credentials is data in, data
 * out.
 *
 *   begin (provider_group.h) -> [want is carried out -> as_cloud_op_on_*]* -> AS_CLOUD_OP_END
 *
 * The provider's side fills the request and names the function that receives the response:
 *
 *   as_cloud_op_ask(op, "GET", "%s/groups/%s", base, name);
 *   as_cloud_op_send(op, "get_group", on_group);
 */
#ifndef ALERTSCALER_LOGIN_CLOUD_OP_H
#define ALERTSCALER_LOGIN_CLOUD_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/port/http.h>

struct as_cloud_op;

#define AS_CLOUD_OP_TURNS_MAX    500                  /* answers in one op */
#define AS_CLOUD_OP_PAGES_MAX    200                  /* of one list */
#define AS_CLOUD_OP_ENDLESS_US   (10 * AS_US_PER_MIN) /* pause after an op that exceeded a limit */
#define AS_CLOUD_OP_HEADERS_MAX  24
#define AS_CLOUD_OP_BODY_MAX     ((size_t)256 * 1024)
#define AS_CLOUD_OP_ANSWER_MAX   ((size_t)4 * 1024 * 1024) /* bytes of one answer */
#define AS_CLOUD_OP_FILE_MAX     ((size_t)64 * 1024)
#define AS_CLOUD_OP_MESSAGE_SIZE 256
#define AS_CLOUD_OP_ID_SIZE      128 /* the request's id from the other side, with NUL */

/*
 * How an op ended, and so what to do next. An op itself never retries.
 */
enum as_cloud_op_fault {
    AS_CLOUD_OP_OK,
    AS_CLOUD_OP_RETRY,     /* unreachable, 5xx */
    AS_CLOUD_OP_THROTTLED, /* 429 and similar: retry after retry_after_us */
    AS_CLOUD_OP_TIMEOUT,   /* no answer in time */
    AS_CLOUD_OP_BUSY, /* an operation is in progress, or something changed: observe and decide again
                       */
    AS_CLOUD_OP_CAPACITY,      /* the provider lacks machines or quota */
    AS_CLOUD_OP_UNAUTHORIZED,  /* the credentials were refused: others may work */
    AS_CLOUD_OP_PERMISSION,    /* the credentials are valid, but lack a right */
    AS_CLOUD_OP_CONFIGURATION, /* only a person can fix it */
    AS_CLOUD_OP_GONE,          /* the group or object does not exist */
    AS_CLOUD_OP_STOPPED,       /* not sent: changes are not permitted now (kube/env.h) */
    AS_CLOUD_OP_NOT_ALLOWED    /* not sent: another target has the group (kube/env.h) */
};

enum as_cloud_op_want {
    AS_CLOUD_OP_SEND, /* `request`; received: `answer` */
    AS_CLOUD_OP_READ, /* the file `path`; received: `content`, or NULL and `error_number` */
    AS_CLOUD_OP_RUN,  /* the program `argv`; received: `content` (its output), or NULL */
    AS_CLOUD_OP_WAIT, /* `wait_us`; received: nothing */
    AS_CLOUD_OP_END   /* `fault` says how it went */
};

typedef void as_cloud_op_response_fn(struct as_cloud_op *op);

struct as_cloud_op_request {
    const char *method;
    char *url;
    const char *headers[AS_CLOUD_OP_HEADERS_MAX + 1]; /* "Name: value"; NULL at the end */
    size_t header_count;
    struct as_buf body;
    bool is_unprintable;   /* the body could not be encoded */
    const char *service;   /* for the signature; NULL: the provider's default */
    const char *operation; /* for metrics and the log; static memory */
    bool is_change;        /* it changes something: after a failure it may have been carried out */
    bool is_plain;         /* without credentials: it fetches them */
    bool is_timed;         /* is_plain, and contains the time: useless while that is wrong */
    int64_t timeout_us;    /* 0: the owner's default */
    size_t max_response;   /* bytes; 0: AS_CLOUD_OP_ANSWER_MAX */
    bool without_proxy;    /* for link-local services */
    bool is_http2;         /* as in as_http_request */
};

struct as_cloud_op {
    struct as_arena arena; /* memory that lives as long as the op */
    /* given: */
    as_wall_time now; /* set by the owner at each turn: the other side's clock */
    const char *(*get_variable)(const char *name);
    /* wanted: */
    enum as_cloud_op_want want;
    struct as_cloud_op_request request;
    const char *path, **argv;
    int64_t wait_us;
    as_cloud_op_response_fn *on_response;
    /* received: */
    const struct as_http_response *answer;
    const char *content; /* NUL-terminated */
    size_t content_size;
    int error_number;
    struct json_t *document; /* parsed from the answer by the provider's side */
    /* result: */
    enum as_cloud_op_fault fault;
    bool is_ambiguous; /* a change may have been carried out in spite of the fault */
    int http_status;   /* of the last answer; 0: no answer */
    int64_t retry_after_us;
    char
        request_id[AS_CLOUD_OP_ID_SIZE]; /* the other side's id for the last request that had one */
    char message[AS_CLOUD_OP_MESSAGE_SIZE];
    unsigned turns, sent;
    const char **marks; /* of the pages of the present list so far */
    unsigned mark_count;
};

/* ---- for the owner ---- */

void as_cloud_op_init(struct as_cloud_op *op, const char *(*get_variable)(const char *name));
void as_cloud_op_deinit(struct as_cloud_op *op); /* wipes request and bodies */

/* One turn of the op; then `want` says what is next. An op that exceeds its limit of turns ends
 * with AS_CLOUD_OP_CONFIGURATION. */
void as_cloud_op_on_response(struct as_cloud_op *op, as_wall_time now,
                             const struct as_http_response *answer);
void as_cloud_op_on_content(struct as_cloud_op *op, as_wall_time now, const char *content,
                            size_t size, int error_number);
void as_cloud_op_on_time(struct as_cloud_op *op, as_wall_time now);

/* ---- for the side that speaks ---- */

/* Begins a new request, replacing the former one. */
void as_cloud_op_ask(struct as_cloud_op *op, const char *method, const char *url_format, ...)
    AS_PRINTF(3, 4);
void as_cloud_op_header(struct as_cloud_op *op, const char *format, ...) AS_PRINTF(2, 3);
/* Adds name=value to a form, the value percent-encoded. NULL adds nothing. */
void as_cloud_op_add_parameter(struct as_cloud_op *op, const char *name, const char *value);
/* Sets body and content type; frees the document. NULL (a text was not UTF-8): sending fails. */
void as_cloud_op_write_json(struct as_cloud_op *op, struct json_t *document);
void as_cloud_op_send(struct as_cloud_op *op, const char *operation,
                      as_cloud_op_response_fn *on_response);
/* As as_cloud_op_send, for a request that changes nothing, whatever its method. */
void as_cloud_op_send_question(struct as_cloud_op *op, const char *operation,
                               as_cloud_op_response_fn *on_response);
void as_cloud_op_read(struct as_cloud_op *op, const char *path,
                      as_cloud_op_response_fn *on_response);
void as_cloud_op_run(struct as_cloud_op *op, const char **argv,
                     as_cloud_op_response_fn *on_response);
void as_cloud_op_wait(struct as_cloud_op *op, int64_t us, as_cloud_op_response_fn *on_response);
void as_cloud_op_end(struct as_cloud_op *op);
void as_cloud_op_fail(struct as_cloud_op *op, enum as_cloud_op_fault fault, const char *format, ...)
    AS_PRINTF(3, 4);

/* Whether there is an answer with a status below 300. If not, sets the fault by transport, status
 * and Retry-After; a provider that knows more calls as_cloud_op_fail afterwards. */
bool as_cloud_op_is_good(struct as_cloud_op *op) AS_MUST_USE;

/* Call it before the first page of a list. */
void as_cloud_op_begin_list(struct as_cloud_op *op);

/* Call it before each next page. `mark` identifies the page: its token, or, if pages only have
 * numbers, the beginning of the page before. False after failing the op: the mark came before, or
 * there are too many pages. */
bool as_cloud_op_turn_page(struct as_cloud_op *op, const char *mark) AS_MUST_USE;

/* Notes the other side's id for the request, found in a body. NULL and "" change nothing. */
void as_cloud_op_take_request_id(struct as_cloud_op *op, const char *id);

/* Percent-encoded (base/encode.h); memory of the op. */
const char *as_cloud_op_escaped(struct as_cloud_op *op, const char *text) AS_MUST_USE;

const char *as_cloud_op_print(struct as_cloud_op *op, const char *format, ...)
    AS_PRINTF(2, 3) AS_MUST_USE;

#endif
