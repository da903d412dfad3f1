/*
 * A world in which nothing happens unless the test says so: an HTTP client and programs that follow
 * a script, timers and clocks that move only when told to. It keeps the promises of the ports it
 * plays (later turn, exactly once, nothing after a cancel) and fails the test if an adapter makes a
 * request that is not in the script.
 */
#ifndef ALERTSCALER_TESTS_FAKES_WORLD_H
#define ALERTSCALER_TESTS_FAKES_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <alertscaler/port/clock.h>
#include <alertscaler/port/http.h>
#include <alertscaler/port/process.h>

struct world_answer { /* to the next request of this method whose URL ends in `path` */
    const char *method, *path;
    enum as_http_outcome outcome;
    int status;
    const char *body, *etag, *retry_after, *error, *location; /* NULL: "" */
    const char *fields;       /* of the head, as as_http_response has them */
    const char *content_type; /* NULL: application/json */
    size_t body_size;         /* 0: up to the NUL */
    bool stays;               /* a streamed body goes on: world_feed, world_end */
};

struct world_request {                   /* as it was made */
    char *method, *url, *headers, *body; /* headers: lines with '\n' behind each */
    char *proxy_url, *ca_file, *ca_pem, *cert_pem, *key_file;
    int64_t timeout_us, idle_us;
    size_t max_response;
    bool is_streamed, is_cancelled;
    enum as_http_class class;
    char *target, *credential; /* of the flow; NULL: none */
};

struct world_run {            /* of a program */
    char *command_line, *env; /* arguments with ' ' between, variables with '\n' behind each */
    bool is_cancelled;
};

/* Plays the other side, where the script has nothing for a request. What it points to stays good
 * until the next call. */
typedef struct world_answer world_serve_fn(void *context, const struct world_request *request);

struct world_answer_entry;
struct world_result_entry;

struct world {
    struct as_http http;
    struct as_loop loop;
    struct as_process_runner runner;
    struct as_clock clock;
    as_mono_time mono;
    as_wall_time wall;
    struct world_request *requests; /* all that were made, in order */
    size_t request_count, request_capacity;
    struct world_run *runs;
    size_t run_count;
    world_serve_fn *serve; /* or NULL */
    void *serve_context;
    STAILQ_HEAD(, world_answer_entry) answers;
    STAILQ_HEAD(, world_result_entry) results;
    TAILQ_HEAD(, as_http_call) calls;
    TAILQ_HEAD(, as_http_call) staying;
    TAILQ_HEAD(, as_timer) timers;
    TAILQ_HEAD(, as_process) processes;
};

void world_init(struct world *world);
void world_deinit(struct world *world); /* fails where something is left: script, call or timer */

void world_answer(struct world *world, struct world_answer answer); /* copied */
/* More of the body of the only answer that stays, and its end. */
void world_feed(struct world *world, const void *bytes, size_t size);
void world_end(struct world *world, enum as_http_outcome outcome, const char *error);
/* The same of the only one whose URL contains `part`. */
void world_feed_to(struct world *world, const char *part, const void *bytes, size_t size);
void world_end_of(struct world *world, const char *part, enum as_http_outcome outcome,
                  const char *error);
void world_end_program(struct world *world, struct as_process_result result); /* likewise */

/* Turns of the loop until nothing is due at this time. */
void world_run(struct world *world);
bool world_expire(struct world *world); /* one timer that is due, and no answers; false: none is */
void world_advance(struct world *world, int64_t us); /* and runs */

#endif
