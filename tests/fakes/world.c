/*
 * A world in which nothing happens unless the test says so: see the header.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>

#include "teardown.h"
#include "world.h"

struct world_answer_entry {
    STAILQ_ENTRY(world_answer_entry) entry;
    struct world_answer answer;
};

struct world_result_entry {
    STAILQ_ENTRY(world_result_entry) entry;
    struct as_process_result result;
};

struct as_http_call {
    TAILQ_ENTRY(as_http_call) entry;
    size_t request; /* index */
    as_http_done_fn *done;
    as_http_body_fn *on_body;
    void *context;
    char *content_type; /* of an answer that stays */
    int status;
    bool is_handing, is_cancelled, is_staying;
};

struct as_timer {
    TAILQ_ENTRY(as_timer) entry;
    int64_t due_us;
    as_timer_fn *expired;
    void *context;
};

struct as_process {
    TAILQ_ENTRY(as_process) entry;
    size_t run; /* index */
    as_process_done_fn *done;
    void *context;
};

#define PART 7 /* bytes of a streamed body */

#define WORLD_OF(pointer, member)                                                                  \
    ((struct world *)((char *)(pointer)-offsetof(struct world, member)))

static char *copy(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

static char *copy_fields(const char *fields)
{
    size_t size = 0;
    while (fields && fields[size]) {
        size += strlen(fields + size) + 1;
        size += strlen(fields + size) + 1;
    }
    char *copied = as_xcalloc(1, size + 1);
    if (size > 0)
        memcpy(copied, fields, size);
    return copied;
}

static char *join(const char *const *items, const char *behind)
{
    char *joined = as_xstrdup("");
    for (size_t i = 0; items && items[i]; i++) {
        char *longer = as_xasprintf("%s%s%s", joined, items[i], behind);
        free(joined);
        joined = longer;
    }
    return joined;
}

static struct as_http_call *start_http(struct as_http *self, const struct as_http_request *request,
                                       as_http_done_fn *done, void *context)
{
    struct world *world = WORLD_OF(self, http);
    world->requests = as_xgrow(world->requests, world->request_count, &world->request_capacity,
                               sizeof(*world->requests));
    world->requests[world->request_count] = (struct world_request){
        .method = copy(request->method),
        .url = copy(request->url),
        .headers = join(request->headers, "\n"),
        .body = request->body ? as_xstrndup(request->body, request->body_size) : NULL,
        .proxy_url = copy(request->proxy_url),
        .ca_file = copy(request->tls.ca_file),
        .ca_pem = copy(request->tls.ca_pem),
        .cert_pem = copy(request->tls.cert_pem),
        .key_file = copy(request->tls.key_file),
        .timeout_us = request->timeout_us,
        .idle_us = request->idle_us,
        .max_response = request->max_response,
        .is_streamed = request->on_body != NULL,
        .class = request->class,
        .target = copy(request->flow.target),
        .credential = copy(request->flow.credential),
    };
    cr_assert(request->timeout_us > 0, "a request without a time limit");
    cr_assert(request->max_response > 0, "a request without a cap");
    struct as_http_call *call = as_xcalloc(1, sizeof(*call));
    call->request = world->request_count++;
    call->done = done;
    call->on_body = request->on_body;
    call->context = context;
    TAILQ_INSERT_TAIL(&world->calls, call, entry);
    return call;
}

static void free_call(struct as_http_call *call)
{
    free(call->content_type);
    free(call);
}

static void cancel_http(struct as_http *self, struct as_http_call *call)
{
    struct world *world = WORLD_OF(self, http);
    world->requests[call->request].is_cancelled = true;
    call->is_cancelled = true;
    if (call->is_handing)
        return; /* hand_over frees the call */
    if (call->is_staying)
        TAILQ_REMOVE(&world->staying, call, entry);
    else
        TAILQ_REMOVE(&world->calls, call, entry);
    free_call(call);
}

static struct as_timer *start_timer(struct as_loop *self, int64_t delay_us, as_timer_fn *expired,
                                    void *context)
{
    struct world *world = WORLD_OF(self, loop);
    struct as_timer *timer = as_xcalloc(1, sizeof(*timer));
    timer->due_us = world->mono.us + delay_us;
    timer->expired = expired;
    timer->context = context;
    TAILQ_INSERT_TAIL(&world->timers, timer, entry);
    return timer;
}

static void cancel_timer(struct as_loop *self, struct as_timer *timer)
{
    if (!timer)
        return;
    TAILQ_REMOVE(&WORLD_OF(self, loop)->timers, timer, entry);
    free(timer);
}

static struct as_process *start_process(struct as_process_runner *self,
                                        const struct as_process_request *request,
                                        as_process_done_fn *done, void *context)
{
    struct world *world = WORLD_OF(self, runner);
    struct as_process *process = as_xcalloc(1, sizeof(*process));
    world->runs = as_xrealloc_array(world->runs, world->run_count + 1, sizeof(*world->runs));
    world->runs[world->run_count] = (struct world_run){
        .command_line = join(request->argv, " "),
        .env = join(request->env, "\n"),
    };
    cr_assert(request->timeout_us > 0 && request->max_output > 0, "a program without limits");
    process->run = world->run_count++;
    process->done = done;
    process->context = context;
    TAILQ_INSERT_TAIL(&world->processes, process, entry);
    return process;
}

static void cancel_process(struct as_process_runner *self, struct as_process *process)
{
    struct world *world = WORLD_OF(self, runner);
    world->runs[process->run].is_cancelled = true;
    TAILQ_REMOVE(&world->processes, process, entry);
    free(process);
}

static as_mono_time get_mono(const struct as_clock *self)
{
    return WORLD_OF(self, clock)->mono;
}

static as_wall_time get_wall(const struct as_clock *self)
{
    return WORLD_OF(self, clock)->wall;
}

void world_init(struct world *world)
{
    *world = (struct world){
        .http = {start_http, cancel_http},
        .loop = {start_timer, cancel_timer},
        .runner = {start_process, cancel_process},
        .clock = {get_mono, get_wall},
        .mono = {1000 * AS_US_PER_S},
        .wall = {INT64_C(1795255200) * AS_US_PER_S}, /* 2026-11-21T10:00:00Z */
    };
    STAILQ_INIT(&world->answers);
    STAILQ_INIT(&world->results);
    TAILQ_INIT(&world->calls);
    TAILQ_INIT(&world->staying);
    TAILQ_INIT(&world->timers);
    TAILQ_INIT(&world->processes);
}

static void free_request(struct world_request *request)
{
    char *const texts[] = {request->method, request->url,       request->headers,
                           request->body,   request->proxy_url, request->ca_file,
                           request->ca_pem, request->cert_pem,  request->key_file,
                           request->target, request->credential};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        free(texts[i]);
}

static void free_answer(struct world_answer *answer)
{
    const char *const texts[] = {answer->method,   answer->path,        answer->body,
                                 answer->etag,     answer->retry_after, answer->error,
                                 answer->location, answer->fields,      answer->content_type};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        free((char *)texts[i]);
}

void world_deinit(struct world *world)
{
    teardown_expect(STAILQ_EMPTY(&world->answers), "answers of the script were not asked for");
    teardown_expect(STAILQ_EMPTY(&world->results), "programs of the script were not run");
    teardown_expect(TAILQ_EMPTY(&world->calls) && TAILQ_EMPTY(&world->staying),
                    "requests were left behind");
    teardown_expect(TAILQ_EMPTY(&world->timers), "timers were left behind");
    teardown_expect(TAILQ_EMPTY(&world->processes), "programs were left behind");
    for (size_t i = 0; i < world->request_count; i++)
        free_request(&world->requests[i]);
    for (size_t i = 0; i < world->run_count; i++) {
        free(world->runs[i].command_line);
        free(world->runs[i].env);
    }
    free(world->requests);
    free(world->runs);
}

static char *copy_body(const struct world_answer *answer)
{
    if (answer->body_size == 0)
        return as_xstrdup(answer->body ? answer->body : "");
    char *copied = as_xmalloc(answer->body_size);
    memcpy(copied, answer->body, answer->body_size);
    return copied;
}

void world_answer(struct world *world, struct world_answer answer)
{
    struct world_answer_entry *entry = as_xcalloc(1, sizeof(*entry));
    entry->answer = answer;
    entry->answer.method = copy(answer.method);
    entry->answer.path = copy(answer.path);
    entry->answer.body = copy_body(&answer);
    entry->answer.content_type = copy(answer.content_type);
    entry->answer.etag = copy(answer.etag ? answer.etag : "");
    entry->answer.retry_after = copy(answer.retry_after ? answer.retry_after : "");
    entry->answer.error = copy(answer.error ? answer.error : "");
    entry->answer.location = copy(answer.location ? answer.location : "");
    entry->answer.fields = copy_fields(answer.fields);
    STAILQ_INSERT_TAIL(&world->answers, entry, entry);
}

void world_end_program(struct world *world, struct as_process_result result)
{
    struct world_result_entry *entry = as_xcalloc(1, sizeof(*entry));
    entry->result = result;
    entry->result.output = copy(result.output ? result.output : "");
    entry->result.output_size = strlen(entry->result.output);
    entry->result.error_output = copy(result.error_output ? result.error_output : "");
    STAILQ_INSERT_TAIL(&world->results, entry, entry);
}

static bool ends_in(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return end_size <= size && strcmp(text + size - end_size, end) == 0;
}

static struct world_answer_entry *find_answer(struct world *world,
                                              const struct world_request *request)
{
    struct world_answer_entry *entry;
    STAILQ_FOREACH (entry, &world->answers, entry)
        if (strcmp(entry->answer.method, request->method) == 0 &&
            ends_in(request->url, entry->answer.path))
            return entry;
    return NULL;
}

static const char *get_type(const struct world_answer *answer)
{
    return answer->content_type ? answer->content_type : "application/json";
}

static size_t measure_body(const struct world_answer *answer)
{
    return answer->body_size || !answer->body ? answer->body_size : strlen(answer->body);
}

enum handing { WORLD_GOES_ON, WORLD_REFUSED, WORLD_CANCELLED };

/* As the real client: in parts, which do not end where the reader would like it. After
 * WORLD_CANCELLED the call is gone. */
static enum handing hand_over(struct as_http_call *call, const char *content_type,
                              const char *bytes, size_t size)
{
    call->is_handing = true;
    bool wants_more = call->on_body(call->context, content_type, "", 0);
    for (size_t at = 0; at < size && wants_more && !call->is_cancelled; at += PART) {
        const size_t rest = size - at;
        wants_more =
            call->on_body(call->context, content_type, bytes + at, rest < PART ? rest : PART);
    }
    call->is_handing = false;
    if (call->is_cancelled)
        free_call(call);
    else
        return wants_more ? WORLD_GOES_ON : WORLD_REFUSED;
    return WORLD_CANCELLED;
}

static const struct world_answer refused = {.outcome = AS_HTTP_BROKEN, .error = "refused"};

static void tell_response(struct as_http_call *call, const struct world_answer *answer)
{
    bool is_collected = !call->on_body || answer->status / 100 != 2;
    struct as_http_response response = {
        .outcome = answer->outcome,
        .status = answer->status,
        .body = is_collected && answer->body ? answer->body : "",
        .body_size = is_collected ? measure_body(answer) : 0,
        .etag = answer->etag ? answer->etag : "",
        .retry_after = answer->retry_after ? answer->retry_after : "",
        .content_type = get_type(answer),
        .location = answer->location ? answer->location : "",
        .fields = answer->fields,
        .error = answer->error ? answer->error : "",
    };
    as_http_done_fn *done = call->done;
    void *context = call->context;
    done(context, &response);
    free_call(call);
}

/* The call has been removed from its list. */
static void tell(struct world *world, struct as_http_call *call, const struct world_answer *answer)
{
    enum handing handing = WORLD_GOES_ON;
    if (call->on_body && answer->status / 100 == 2)
        handing = hand_over(call, get_type(answer), answer->body, measure_body(answer));
    if (handing == WORLD_GOES_ON && answer->stays) {
        if (!call->content_type)
            call->content_type = as_xstrdup(get_type(answer));
        call->status = answer->status;
        call->is_staying = true;
        TAILQ_INSERT_TAIL(&world->staying, call, entry);
    } else if (handing != WORLD_CANCELLED) {
        tell_response(call, handing == WORLD_REFUSED ? &refused : answer);
    }
}

/* Takes it off the list of those that stay. */
static struct as_http_call *take_staying(struct world *world, const char *part)
{
    struct as_http_call *call, *found = NULL;
    TAILQ_FOREACH (call, &world->staying, entry) {
        if (!strstr(world->requests[call->request].url, part))
            continue;
        cr_assert(!found, "two answers stay: %s and %s", world->requests[found->request].url,
                  world->requests[call->request].url);
        found = call;
    }
    cr_assert(found != NULL, "no answer stays: %s", part);
    TAILQ_REMOVE(&world->staying, found, entry);
    found->is_staying = false;
    return found;
}

void world_feed_to(struct world *world, const char *part, const void *bytes, size_t size)
{
    struct as_http_call *call = take_staying(world, part);
    tell(world, call,
         &(struct world_answer){.status = call->status,
                                .content_type = call->content_type,
                                .body = bytes,
                                .body_size = size,
                                .stays = true});
    world_run(world);
}

void world_feed(struct world *world, const void *bytes, size_t size)
{
    world_feed_to(world, "", bytes, size);
}

void world_end_of(struct world *world, const char *part, enum as_http_outcome outcome,
                  const char *error)
{
    struct as_http_call *call = take_staying(world, part);
    tell_response(
        call, &(struct world_answer){.outcome = outcome, .status = call->status, .error = error});
    world_run(world);
}

void world_end(struct world *world, enum as_http_outcome outcome, const char *error)
{
    world_end_of(world, "", outcome, error);
}

static bool end_call(struct world *world)
{
    struct as_http_call *call = TAILQ_FIRST(&world->calls);
    if (!call)
        return false;
    struct world_request *request = &world->requests[call->request];
    struct world_answer_entry *entry = find_answer(world, request);
    cr_assert(entry || world->serve, "not in the script: %s %s", request->method, request->url);
    TAILQ_REMOVE(&world->calls, call, entry);
    if (!entry) {
        struct world_answer answer = world->serve(world->serve_context, request);
        tell(world, call, &answer);
        return true;
    }
    STAILQ_REMOVE(&world->answers, entry, world_answer_entry, entry);
    tell(world, call, &entry->answer);
    free_answer(&entry->answer);
    free(entry);
    return true;
}

static bool end_timer(struct world *world)
{
    struct as_timer *timer;
    TAILQ_FOREACH (timer, &world->timers, entry)
        if (timer->due_us <= world->mono.us)
            break;
    if (!timer)
        return false;
    as_timer_fn *expired = timer->expired;
    void *context = timer->context;
    cancel_timer(&world->loop, timer);
    expired(context);
    return true;
}

static bool end_process(struct world *world)
{
    struct as_process *process = TAILQ_FIRST(&world->processes);
    if (!process)
        return false;
    struct world_result_entry *entry = STAILQ_FIRST(&world->results);
    cr_assert(entry != NULL, "not in the script: %s", world->runs[process->run].command_line);
    STAILQ_REMOVE_HEAD(&world->results, entry);
    as_process_done_fn *done = process->done;
    void *context = process->context;
    TAILQ_REMOVE(&world->processes, process, entry);
    free(process);
    done(context, &entry->result);
    free((char *)entry->result.output);
    free((char *)entry->result.error_output);
    free(entry);
    return true;
}

void world_run(struct world *world)
{
    while (end_timer(world) || end_process(world) || end_call(world))
        continue;
}

bool world_expire(struct world *world)
{
    return end_timer(world);
}

void world_advance(struct world *world, int64_t us)
{
    world->mono.us += us;
    world->wall.us += us;
    world_run(world);
}
