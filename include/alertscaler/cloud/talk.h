/*
 * A talk: a conversation with an API, as pure code without a network. The talk says what it wants
 * next (a request, a file, a program, a pause). Its owner does this and tells the talk the result,
 * until the talk ends. So every provider and every source of credentials is data in, data out.
 *
 *   begin (provider_group.h) -> [want is carried out -> as_talk_hear_*]* -> AS_TALK_END
 *
 * The provider's side fills the request and names the function that hears the answer:
 *
 *   as_talk_ask(talk, "GET", "%s/groups/%s", base, name);
 *   as_talk_send(talk, "get_group", hear_group);
 */
#ifndef ALERTSCALER_CLOUD_TALK_H
#define ALERTSCALER_CLOUD_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/port/http.h>

struct as_talk;

#define AS_TALK_TURNS_MAX    500                  /* answers in one talk */
#define AS_TALK_PAGES_MAX    200                  /* of one list */
#define AS_TALK_ENDLESS_US   (10 * AS_US_PER_MIN) /* pause after a talk that exceeded a limit */
#define AS_TALK_HEADERS_MAX  24
#define AS_TALK_BODY_MAX     ((size_t)256 * 1024)
#define AS_TALK_ANSWER_MAX   ((size_t)4 * 1024 * 1024) /* bytes of one answer */
#define AS_TALK_FILE_MAX     ((size_t)64 * 1024)
#define AS_TALK_MESSAGE_SIZE 256
#define AS_TALK_ID_SIZE      128 /* the request's id from the other side, with NUL */

/*
 * How a talk ended, and so what to do next. A talk itself never retries.
 */
enum as_talk_fault {
    AS_TALK_OK,
    AS_TALK_RETRY,     /* unreachable, 5xx */
    AS_TALK_THROTTLED, /* 429 and similar: retry after retry_after_us */
    AS_TALK_TIMEOUT,   /* no answer in time */
    AS_TALK_BUSY, /* an operation is in progress, or something changed: observe and decide again */
    AS_TALK_CAPACITY,      /* the provider lacks machines or quota */
    AS_TALK_UNAUTHORIZED,  /* the credentials were refused: others may work */
    AS_TALK_PERMISSION,    /* the credentials are valid, but lack a right */
    AS_TALK_CONFIGURATION, /* only a person can fix it */
    AS_TALK_GONE,          /* the group or object does not exist */
    AS_TALK_STOPPED,       /* not sent: changes are not permitted now (kube/env.h) */
    AS_TALK_NOT_ALLOWED    /* not sent: another target has the group (kube/env.h) */
};

enum as_talk_want {
    AS_TALK_SEND, /* `request`; heard: `answer` */
    AS_TALK_READ, /* the file `path`; heard: `content`, or NULL and `error_number` */
    AS_TALK_RUN,  /* the program `argv`; heard: `content` (its output), or NULL */
    AS_TALK_WAIT, /* `wait_us`; heard: nothing */
    AS_TALK_END   /* `fault` says how it went */
};

typedef void as_talk_hear_fn(struct as_talk *talk);

struct as_talk_request {
    const char *method;
    char *url;
    const char *headers[AS_TALK_HEADERS_MAX + 1]; /* "Name: value"; NULL at the end */
    size_t header_count;
    struct as_buf body;
    bool is_unprintable;   /* the body could not be encoded */
    const char *service;   /* for the signature; NULL: the provider's default */
    const char *operation; /* for metrics and the log; static memory */
    bool is_change;        /* it changes something: after a failure it may have been carried out */
    bool is_plain;         /* without credentials: it fetches them */
    bool is_timed;         /* is_plain, and contains the time: useless while that is wrong */
    int64_t timeout_us;    /* 0: the owner's default */
    bool without_proxy;    /* for link-local services */
    bool is_http2;         /* as in as_http_request */
};

struct as_talk {
    struct as_arena arena; /* memory that lives as long as the talk */
    /* given: */
    as_wall_time now; /* set by the owner at each turn: the other side's clock */
    const char *(*get_variable)(const char *name);
    /* wanted: */
    enum as_talk_want want;
    struct as_talk_request request;
    const char *path, **argv;
    int64_t wait_us;
    as_talk_hear_fn *hear;
    /* heard: */
    const struct as_http_response *answer;
    const char *content; /* NUL-terminated */
    size_t content_size;
    int error_number;
    struct json_t *document; /* parsed from the answer by the provider's side */
    /* result: */
    enum as_talk_fault fault;
    bool is_ambiguous; /* a change may have been carried out in spite of the fault */
    int http_status;   /* of the last answer; 0: no answer */
    int64_t retry_after_us;
    char request_id[AS_TALK_ID_SIZE]; /* the other side's id for the last request that had one */
    char message[AS_TALK_MESSAGE_SIZE];
    unsigned turns, sent;
    const char **marks; /* of the pages of the present list so far */
    unsigned mark_count;
};

/* ---- for the owner ---- */

void as_talk_init(struct as_talk *talk, const char *(*get_variable)(const char *name));
void as_talk_deinit(struct as_talk *talk); /* wipes request and bodies */

/* One turn of the talk; then `want` says what is next. A talk that exceeds its limit of turns ends
 * with AS_TALK_CONFIGURATION. */
void as_talk_hear_answer(struct as_talk *talk, as_wall_time now,
                         const struct as_http_response *answer);
void as_talk_hear_content(struct as_talk *talk, as_wall_time now, const char *content, size_t size,
                          int error_number);
void as_talk_hear_time(struct as_talk *talk, as_wall_time now);

/* ---- for the side that speaks ---- */

/* Begins a new request, replacing the former one. */
void as_talk_ask(struct as_talk *talk, const char *method, const char *url_format, ...)
    AS_PRINTF(3, 4);
void as_talk_header(struct as_talk *talk, const char *format, ...) AS_PRINTF(2, 3);
/* Adds name=value to a form, the value percent-encoded. NULL adds nothing. */
void as_talk_add_parameter(struct as_talk *talk, const char *name, const char *value);
/* Sets body and content type; frees the document. NULL (a text was not UTF-8): sending fails. */
void as_talk_write_json(struct as_talk *talk, struct json_t *document);
void as_talk_send(struct as_talk *talk, const char *operation, as_talk_hear_fn *hear);
/* As as_talk_send, for a request that changes nothing, whatever its method. */
void as_talk_send_question(struct as_talk *talk, const char *operation, as_talk_hear_fn *hear);
void as_talk_read(struct as_talk *talk, const char *path, as_talk_hear_fn *hear);
void as_talk_run(struct as_talk *talk, const char **argv, as_talk_hear_fn *hear);
void as_talk_wait(struct as_talk *talk, int64_t us, as_talk_hear_fn *hear);
void as_talk_end(struct as_talk *talk);
void as_talk_fail(struct as_talk *talk, enum as_talk_fault fault, const char *format, ...)
    AS_PRINTF(3, 4);

/* Whether there is an answer with a status below 300. If not, sets the fault by transport, status
 * and Retry-After; a provider that knows more calls as_talk_fail afterwards. */
bool as_talk_is_good(struct as_talk *talk) AS_MUST_USE;

/* Call it before the first page of a list. */
void as_talk_begin_list(struct as_talk *talk);

/* Call it before each next page. `mark` identifies the page: its token, or, if pages only have
 * numbers, the beginning of the page before. False after failing the talk: the mark came before, or
 * there are too many pages. */
bool as_talk_turn_page(struct as_talk *talk, const char *mark) AS_MUST_USE;

/* Notes the other side's id for the request, found in a body. NULL and "" change nothing. */
void as_talk_take_request_id(struct as_talk *talk, const char *id);

/* Percent-encoded (base/encode.h); memory of the talk. */
const char *as_talk_escaped(struct as_talk *talk, const char *text) AS_MUST_USE;

const char *as_talk_print(struct as_talk *talk, const char *format, ...)
    AS_PRINTF(2, 3) AS_MUST_USE;

#endif
