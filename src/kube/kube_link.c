/*
 * A store's access to its objects: see the header.
 *
 * Why a write is right although another holder may write at the same time: an object other than the
 * head is only replaced at a version that was read before the head was seen to be ours. A later
 * holder writes the object after taking the head, and then the object has another version.
 */
#include "kube_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/retry_after.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>

#include "store_limits.h"

#define PATH_MAX_SIZE ((size_t)8192)
#define BODY_MAX      ((size_t)8 * 1024 * 1024)
#define READS_MAX     3

static const struct as_kube_label labels[] = {
    {"app.kubernetes.io/component", "state"},
    {"app.kubernetes.io/managed-by", "alertscaler"},
    {"app.kubernetes.io/name", "alertscaler"},
};

/* How one request ended. */
enum outcome {
    CALL_DONE,    /* 2xx */
    CALL_MISSING, /* 404 */
    CALL_CHANGED, /* 409 */
    CALL_GONE,    /* 410: the list's next page */
    CALL_LATER,   /* may be tried again; may have been carried out */
    CALL_REFUSED  /* trying again is useless: see `code` */
};

struct call {
    struct kube_link *link;
    bool is_done;
    enum outcome outcome;
    int code; /* negative errno, for REFUSED and LATER */
    int64_t retry_after_us;
    struct as_buf *answer; /* for DONE */
    struct as_error error;
};

void kube_link_init(struct kube_link *link, const struct as_store_kubernetes_config *config)
{
    *link = (struct kube_link){
        .env = config->env,
        .turn = config->turn,
        .context = config->context,
        .patience = config->patience,
        .namespace_ = as_xstrdup(config->namespace_),
        .body = AS_BUF_INIT(BODY_MAX),
    };
    as_random_init(&link->random, config->seed);
    snprintf(link->run, sizeof(link->run), "%016" PRIx64, as_random_get(&link->random));
    as_kube_client_init(&link->client, config->env, config->access);
}

void kube_link_deinit(struct kube_link *link)
{
    as_kube_client_deinit(&link->client);
    as_buf_deinit(&link->body);
    free(link->namespace_);
}

void kube_link_name_write(struct kube_link *link, char name_out[AS_KUBE_STATE_WRITE_SIZE])
{
    snprintf(name_out, AS_KUBE_STATE_WRITE_SIZE, "%s-%" PRIu64, link->run, ++link->writes);
}

static as_mono_time link_get_now(const struct kube_link *link)
{
    return link->env->clock->get_mono(link->env->clock);
}

static const struct {
    int status, code;
    enum outcome outcome;
    const char *advice;
} statuses[] = {
    {401, -EACCES, CALL_REFUSED, "the credentials are not accepted: "},
    {403, -EACCES, CALL_REFUSED, "get, list, create and update on configmaps are needed: "},
    {404, -ENOENT, CALL_MISSING, ""},
    {408, -ETIMEDOUT, CALL_LATER, ""},
    {409, -ESTALE, CALL_CHANGED, ""},
    {410, -EAGAIN, CALL_GONE, ""},
    {413, -ENOSPC, CALL_REFUSED, "the API server takes no object of this size: "},
    {429, -EBUSY, CALL_LATER, ""},
};

static void link_take_status(struct call *call, const struct as_http_response *response)
{
    const struct as_clock *clock = call->link->env->clock;
    struct as_kube_status status = {0};
    const char *advice = "";
    call->outcome = response->status >= 500 ? CALL_LATER : CALL_REFUSED;
    call->code = -EIO;
    for (size_t i = 0; i < AS_ARRAY_SIZE(statuses); i++) {
        if (statuses[i].status != response->status)
            continue;
        call->outcome = statuses[i].outcome;
        call->code = statuses[i].code;
        advice = statuses[i].advice;
    }
    if (as_kube_status_decode(response->body, response->body_size, &status, NULL) != 0)
        status.message[0] = '\0';
    call->retry_after_us = as_retry_after_parse(response->retry_after, clock->get_wall(clock));
    if (call->retry_after_us == 0)
        call->retry_after_us = status.retry_after_us;
    as_error_set(&call->error, "%sHTTP %d%s%s", advice, response->status,
                 *status.message ? ": " : "", status.message);
}

static void link_answered(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct call *call = context;
    call->is_done = true;
    if (response->outcome != AS_HTTP_ANSWERED) {
        call->outcome = CALL_LATER;
        call->code = response->outcome == AS_HTTP_TIMEOUT ? -ETIMEDOUT : -EIO;
        as_error_set(&call->error, "%s", response->error);
    } else if (response->status < 200 || response->status >= 300) {
        link_take_status(call, response);
    } else {
        call->outcome = CALL_DONE;
        as_buf_clear(call->answer);
        as_buf_append(call->answer, response->body, response->body_size);
    }
}

static bool is_given_up(const struct kube_link *link)
{
    return link->patience && link_get_now(link).us >= atomic_load(&link->patience->until_us);
}

/* Sends one request and waits for its answer. */
static enum outcome carry_out(struct call *call, const struct as_kube_request_spec *spec)
{
    struct kube_link *link = call->link;
    struct as_kube_request *request =
        as_kube_request_start(&link->client, spec, link_answered, call);
    while (!call->is_done && !is_given_up(link))
        link->turn(link->context);
    if (!call->is_done) {
        as_kube_request_cancel(request);
        call->outcome = CALL_REFUSED;
        call->code = -ECANCELED;
        as_error_set(&call->error, "given up: there is no time for it any more");
    }
    return call->outcome;
}

static void link_wake(void *context)
{
    *(bool *)context = true;
}

static void pause_for(struct kube_link *link, int64_t us)
{
    struct as_loop *loop = link->env->loop;
    bool is_over = false;
    struct as_timer *timer = loop->start_timer(loop, us, link_wake, &is_over);
    while (!is_over && !is_given_up(link))
        link->turn(link->context);
    if (!is_over)
        loop->cancel_timer(loop, timer);
}

/* Waits between two tries. False if no time is left. */
static bool wait_for_next(struct kube_link *link, unsigned tries, int64_t retry_after_us,
                          as_mono_time deadline)
{
    int64_t pause = AS_STORE_KUBE_PAUSE_MAX_US;
    if (tries < 5 && AS_STORE_KUBE_PAUSE_US << tries < pause)
        pause = AS_STORE_KUBE_PAUSE_US << tries;
    pause += (int64_t)as_random_get_below(&link->random, (uint64_t)pause / 2);
    if (retry_after_us > pause)
        pause = retry_after_us;
    if (link_get_now(link).us + pause >= deadline.us)
        return false;
    pause_for(link, pause);
    return true;
}

/* "/api/v1/namespaces/NAMESPACE/configmaps", and "/NAME". */
static int link_write_path(const struct kube_link *link, const char *name, struct as_buf *path)
{
    as_buf_append_str(path, "/api/v1/namespaces");
    int status = as_kube_path_append(path, link->namespace_);
    as_buf_append_str(path, "/configmaps");
    if (!status && name)
        status = as_kube_path_append(path, name);
    return status ? status : as_buf_check(path);
}

/* What an object says about its last write. */
struct seen {
    char version[AS_KUBE_VERSION_SIZE];
    char write[AS_KUBE_STATE_WRITE_SIZE];
    char holder[AS_KUBE_STATE_HOLDER_SIZE];
};

static void copy_item(const struct as_kube_config_map *map, const char *key, char *text_out,
                      size_t size)
{
    const struct as_kube_config_item *item = as_kube_config_map_find(map, key);
    snprintf(text_out, size, "%s", item ? item->text : "");
}

static int link_see(void *context, const struct as_kube_config_map *map, struct as_error *error)
{
    struct seen *seen = context;
    snprintf(seen->version, sizeof(seen->version), "%s", map->version);
    copy_item(map, "write", seen->write, sizeof(seen->write));
    copy_item(map, "holder", seen->holder, sizeof(seen->holder));
    return 0;
}

/* Returns DONE, MISSING, LATER or REFUSED. */
static enum outcome link_look(struct call *call, const char *name, struct seen *seen_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    AS_CLEANUP(as_buf_deinit) struct as_buf answer = AS_BUF_INIT(AS_STORE_KUBE_RESPONSE_MAX);
    *call = (struct call){.link = call->link, .answer = &answer};
    *seen_out = (struct seen){0};
    call->code = link_write_path(call->link, name, &path);
    if (call->code)
        return CALL_REFUSED;
    const struct as_kube_request_spec spec = {
        .method = "GET",
        .path = path.data,
        .operation = "get_state",
        .max_response = AS_STORE_KUBE_RESPONSE_MAX,
        .timeout_us = AS_STORE_KUBE_TIMEOUT_US,
    };
    enum outcome outcome = carry_out(call, &spec);
    if (outcome == CALL_DONE) {
        call->code =
            as_kube_config_map_decode(answer.data, answer.size, link_see, seen_out, &call->error);
        if (call->code)
            outcome = CALL_REFUSED;
    }
    return outcome;
}

static enum outcome link_send(struct call *call, const struct kube_write *write,
                              const char *version)
{
    struct kube_link *link = call->link;
    const bool is_new = as_str_is_empty(version);
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    const struct as_kube_config_map map = {write->name, version, write->items, write->count};
    *call = (struct call){.link = link, .answer = call->answer};
    as_buf_clear(&link->body);
    as_kube_config_map_encode(&map, link->namespace_, labels, AS_ARRAY_SIZE(labels), &link->body);
    call->code = link_write_path(link, is_new ? NULL : write->name, &path);
    if (!call->code)
        call->code = as_buf_check(&link->body);
    if (call->code) {
        as_error_set_errno(&call->error, call->code, "namespace %s", link->namespace_);
        return CALL_REFUSED;
    }
    const struct as_kube_request_spec spec = {
        .method = is_new ? "POST" : "PUT",
        .path = path.data,
        .operation = is_new ? "create_state" : "update_state",
        .accept = AS_KUBE_ACCEPT_VERSION,
        .body = link->body.data,
        .body_size = link->body.size,
        .max_response = AS_STORE_KUBE_RESPONSE_MAX,
        .timeout_us = AS_STORE_KUBE_TIMEOUT_US,
    };
    return carry_out(call, &spec);
}

/* Another holder has the head. */
static int refuse_stale(const char *holder, struct as_error *error)
{
    as_error_set(error, "another replica has taken over%s%s", *holder ? ": " : "", holder);
    return -ESTALE;
}

/* DONE: the head's last write is ours. */
static enum outcome check_head(struct call *call, struct as_error *error)
{
    struct kube_link *link = call->link;
    struct seen seen;
    enum outcome outcome = link_look(call, AS_STORE_KUBERNETES_HEAD, &seen);
    if (outcome == CALL_DONE && strcmp(seen.write, link->head_write) != 0) {
        call->code = refuse_stale(seen.holder, error);
        call->error = *error;
        return CALL_REFUSED;
    }
    if (outcome == CALL_MISSING) {
        as_error_set(&call->error, "configmap %s was deleted", AS_STORE_KUBERNETES_HEAD);
        call->code = -EBADMSG;
        return CALL_REFUSED;
    }
    return outcome;
}

/* After a write that was not confirmed: DONE: it was carried out; LATER: try (again), at the
 * version that is now in *version. */
static enum outcome find_out(struct call *call, const struct kube_write *write,
                             const char *write_name, char version[AS_KUBE_VERSION_SIZE])
{
    struct kube_link *link = call->link;
    struct as_error error = AS_ERROR_INIT;
    struct seen seen;
    enum outcome outcome = link_look(call, write->name, &seen);
    if (outcome == CALL_MISSING) {
        if (as_str_is_empty(version))
            return CALL_LATER;
        if (write->is_head) {
            as_error_set(&call->error, "it was deleted");
            call->code = -EBADMSG;
            return CALL_REFUSED;
        }
        seen.version[0] = '\0';
    } else if (outcome != CALL_DONE) {
        return outcome;
    } else if (strcmp(seen.write, write_name) == 0) {
        snprintf(version, AS_KUBE_VERSION_SIZE, "%s", seen.version);
        return CALL_DONE;
    }
    if (strcmp(seen.version, version) == 0)
        return CALL_LATER;
    if (write->is_head) { /* edited by hand, or no longer ours */
        if (as_str_is_empty(link->head_write) || strcmp(seen.write, link->head_write) != 0) {
            call->code = refuse_stale(seen.holder, &call->error);
            return CALL_REFUSED;
        }
    } else {
        outcome = check_head(call, &error);
        if (outcome != CALL_DONE)
            return outcome;
    }
    snprintf(version, AS_KUBE_VERSION_SIZE, "%s", seen.version);
    return CALL_LATER;
}

static const char *get_write_name(const struct kube_write *write)
{
    for (size_t i = 0; i < write->count; i++)
        if (strcmp(write->items[i].key, "write") == 0)
            return write->items[i].text;
    abort(); /* all objects have it */
}

static int link_fail(const struct call *call, const struct kube_link *link,
                     const struct kube_write *write, struct as_error *error)
{
    as_error_set(error, "state in namespace %s: configmap %s: %s", link->namespace_, write->name,
                 call->error.text);
    return call->code ? call->code : -EIO;
}

int kube_link_write(struct kube_link *link, const struct kube_write *write,
                    char version[AS_KUBE_VERSION_SIZE], struct as_error *error)
{
    const as_mono_time deadline = {link_get_now(link).us + AS_STORE_KUBE_TRYING_US};
    AS_CLEANUP(as_buf_deinit) struct as_buf answer = AS_BUF_INIT(AS_STORE_KUBE_RESPONSE_MAX);
    struct call call = {.link = link, .answer = &answer};
    const char *write_name = get_write_name(write);
    for (unsigned tries = 0;; tries++) {
        enum outcome outcome = link_send(&call, write, version);
        if (outcome == CALL_DONE) {
            call.code =
                as_kube_config_map_decode_version(answer.data, answer.size, version, &call.error);
            if (call.code == 0)
                return 0;
            outcome = CALL_LATER; /* from a proxy: read the object back */
        }
        if (outcome == CALL_MISSING && as_str_is_empty(version)) {
            as_error_set(&call.error, "the namespace does not exist: create it, or set "
                                      "state.namespace");
            return link_fail(&call, link, write, error);
        }
        if (outcome == CALL_REFUSED || (outcome == CALL_LATER && write->tries_once))
            return link_fail(&call, link, write, error);
        int64_t retry_after_us = call.retry_after_us;
        struct call before = call;
        if (outcome != CALL_CHANGED && !wait_for_next(link, tries, retry_after_us, deadline))
            return link_fail(&call, link, write, error);
        outcome = find_out(&call, write, write_name, version);
        call.answer = &answer;
        if (outcome == CALL_DONE)
            return 0;
        if (outcome == CALL_REFUSED)
            return link_fail(&call, link, write, error);
        if (!call.error.text[0])
            call.error = before.error;
        if (!call.code)
            call.code = before.code;
        if (link_get_now(link).us >= deadline.us)
            return link_fail(&call, link, write, error);
    }
}

/* Reads one page. Returns DONE, GONE, LATER or REFUSED. */
static enum outcome link_read_page(struct call *call, const struct kube_reader *reader,
                                   char **next_io)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    AS_CLEANUP(as_buf_deinit) struct as_buf answer = AS_BUF_INIT(AS_STORE_KUBE_PAGE_MAX);
    char limit[16], *next = NULL;
    *call = (struct call){.link = call->link, .answer = &answer};
    call->code = link_write_path(call->link, NULL, &path);
    snprintf(limit, sizeof(limit), "%d", AS_STORE_KUBE_PAGE);
    as_kube_path_append_parameter(&path, "labelSelector", AS_STORE_KUBERNETES_SELECTOR);
    as_kube_path_append_parameter(&path, "limit", limit);
    if (*next_io)
        as_kube_path_append_parameter(&path, "continue", *next_io);
    if (!call->code)
        call->code = as_buf_check(&path);
    if (call->code) {
        as_error_set_errno(&call->error, call->code, "the path of the list");
        return CALL_REFUSED;
    }
    const struct as_kube_request_spec spec = {
        .method = "GET",
        .path = path.data,
        .operation = "list_state",
        .max_response = AS_STORE_KUBE_PAGE_MAX,
        .timeout_us = AS_STORE_KUBE_TIMEOUT_US,
    };
    enum outcome outcome = carry_out(call, &spec);
    if (outcome != CALL_DONE)
        return outcome == CALL_MISSING || outcome == CALL_CHANGED ? CALL_REFUSED : outcome;
    call->code = as_kube_config_map_list_decode(answer.data, answer.size, &next, reader->use,
                                                reader->context, &call->error);
    if (call->code)
        return CALL_REFUSED;
    free(*next_io);
    *next_io = next;
    return CALL_DONE;
}

int kube_link_read(struct kube_link *link, const struct kube_reader *reader, struct as_error *error)
{
    const as_mono_time deadline = {link_get_now(link).us + AS_STORE_KUBE_TRYING_US};
    AS_CLEANUP(as_free_p) char *next = NULL;
    struct call call = {.link = link};
    unsigned tries = 0, begun = 1;
    reader->begin(reader->context);
    for (;;) {
        enum outcome outcome = link_read_page(&call, reader, &next);
        if (outcome == CALL_DONE) {
            if (!next)
                return 0;
            tries = 0;
            continue;
        }
        if (outcome == CALL_GONE && begun < READS_MAX) {
            free(next);
            next = NULL;
            begun++;
            reader->begin(reader->context);
            continue;
        }
        if (outcome != CALL_LATER || !wait_for_next(link, tries++, call.retry_after_us, deadline)) {
            as_error_set(error, "state in namespace %s: list configmaps: %s", link->namespace_,
                         call.error.text);
            return call.code ? call.code : -EIO;
        }
    }
}
