/*
 * State store in an API server: the journal and the shards behind as_store_kubernetes_open. It
 * takes the state over, writes commits and updates shards. The link makes writes certain;
 * kube_table.c knows the place of each piece.
 *
 * Invariants. `head` and `tail` are what the head object contains. A shard that is not dirty holds
 * what the table has for it; a dirty shard lacks only the journal from its dirty_from on. So a
 * segment is released only when no dirty shard needs it, and its object is written again only after
 * a head that does not name it. Only committed values are written to shards.
 */
#include <alertscaler/kube/kube_store.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/client.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/port/store.h>

#include "kube_state.h"

/*
 * The link: a store's access to its objects, by requests that block until they are answered, and
 * writes whose result is certain.
 *
 * A write whose answer was lost may have been carried out. So each write has a unique name, in the
 * item "write"; reading the object back tells whether the write is there.
 */

struct kube_link {
    const struct as_access_env *env;
    void (*turn)(void *context);
    void *context;
    const struct as_store_deadline *deadline; /* or NULL */
    char *namespace_;
    struct as_kube_client client;
    struct as_random random;
    char run[20];                              /* part of the names of writes */
    uint64_t writes;                           /* how many, for their names */
    char head_write[AS_KUBE_STATE_WRITE_SIZE]; /* the name of our last write of the head */
    char head_version[AS_KUBE_VERSION_SIZE];   /* and its version; "": not written yet */
    struct as_buf body;                        /* buffer for a request */
};

/*
 * Replaces an object of that version, or creates it if the version is "". `items` must have the
 * item "write". 0, and *version is the new version; or a negative errno.
 *
 * The head: -ESTALE if another holder has written it. Other objects: the holder of the head is
 * right, so a foreign content is replaced, or -ESTALE. `tries_once`: a failure that could be tried
 * again is returned at once.
 */
struct kube_write {
    const char *name;
    const struct as_kube_config_item *items;
    size_t count;
    bool is_head, tries_once;
};

/* Reads all objects of the state, with `use` for each. `begin` is called before the first, and
 * again if the list had to be restarted. */
struct kube_reader {
    void (*begin)(void *context);
    as_kube_config_map_fn *use;
    void *context;
};

/*
 * Why a write is right although another holder may write at the same time: an object other than the
 * head is only replaced at a version that was read before the head was seen to be ours. A later
 * holder writes the object after taking the head, and then the object has another version.
 */

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

/* The caller initialises the client. */
static void kube_link_init(struct kube_link *link, const struct as_store_kubernetes_config *config)
{
    *link = (struct kube_link){
        .env = config->env,
        .turn = config->turn,
        .context = config->context,
        .deadline = config->deadline,
        .namespace_ = as_xstrdup(config->namespace_),
        .body = AS_BUF_INIT(BODY_MAX),
    };
    as_random_init(&link->random, config->seed);
    snprintf(link->run, sizeof(link->run), "%016" PRIx64, as_random_get(&link->random));
    as_kube_client_init(&link->client, config->env, config->access);
}

static void kube_link_deinit(struct kube_link *link)
{
    as_kube_client_deinit(&link->client);
    as_buf_deinit(&link->body);
    free(link->namespace_);
}

/* A name that no write has had before. */
static void kube_link_name_write(struct kube_link *link, char name_out[AS_KUBE_STATE_WRITE_SIZE])
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
    return link->deadline && link_get_now(link).us >= atomic_load(&link->deadline->until_us);
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
static enum outcome link_read(struct call *call, const char *name, struct seen *seen_out)
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
    enum outcome outcome = link_read(call, AS_STORE_KUBERNETES_HEAD, &seen);
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
    enum outcome outcome = link_read(call, write->name, &seen);
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

static int kube_link_write(struct kube_link *link, const struct kube_write *write,
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

static int kube_link_read(struct kube_link *link, const struct kube_reader *reader,
                          struct as_error *error)
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

/* The store. */

struct kube_store {
    struct as_store port;
    struct as_store_kubernetes_config config;
    struct kube_link link;
    struct kube_table table;
    struct as_kube_state_head head; /* as last written; its journal is `tail` */
    struct as_buf tail;
    struct {
        char version[AS_KUBE_VERSION_SIZE]; /* "": the object does not exist yet */
    } slots[AS_KUBE_STATE_SLOTS_MAX];
    int failed; /* 0, or the negative errno of the failed commit */
    bool cannot_tidy;
    as_mono_time tidy_at; /* after a failure: not before */
};

/* Reads the whole state and takes it over. */

/*
 * Take-over: reads all objects, applies the journal to the shards, and writes the head under our
 * name. If the head has changed since it was read, another holder has written it: all objects
 * are read again, at most ATTEMPTS_MAX times.
 *
 * A state whose parts do not fit together is refused whole: a partial state is worse than no
 * state.
 */

#define ATTEMPTS_MAX 5
#define JOURNAL_MAX  (AS_STORE_KUBE_SEGMENT_MAX * AS_KUBE_STATE_SLOTS_MAX + AS_STORE_KUBE_OBJECT_MAX)
#define PREFIX       AS_STORE_KUBERNETES_HEAD "-"
#define SLOT_PREFIX  PREFIX "journal-"

struct segment {
    uint64_t serial;
    struct as_buf text;
};

struct opening {
    struct kube_store *store;
    bool has_head, has_parts;
    struct as_kube_state_head head;
    struct as_buf tail;
    struct segment segments[AS_KUBE_STATE_SLOTS_MAX];
    uint64_t shard_sequence; /* the newest in a shard */
    /* while the journal is applied: */
    uint64_t dirty_from, last_sequence;
    bool has_commits, has_gap;
};

static void opening_begin(void *context)
{
    struct opening *opening = context;
    struct kube_store *store = opening->store;
    for (size_t i = 0; i < AS_KUBE_STATE_SLOTS_MAX; i++) {
        as_buf_deinit(&opening->segments[i].text);
        store->slots[i].version[0] = '\0';
    }
    as_buf_deinit(&opening->tail);
    kube_table_deinit(&store->table);
    store->link.head_version[0] = '\0';
    store->link.head_write[0] = '\0';
    *opening = (struct opening){.store = store, .tail = AS_BUF_INIT(AS_STORE_KUBE_RESPONSE_MAX)};
    for (size_t i = 0; i < AS_KUBE_STATE_SLOTS_MAX; i++)
        opening->segments[i].text = AS_BUF_INIT(AS_STORE_KUBE_RESPONSE_MAX);
}

static void opening_deinit(struct opening *opening)
{
    for (size_t i = 0; i < AS_KUBE_STATE_SLOTS_MAX; i++)
        as_buf_deinit(&opening->segments[i].text);
    as_buf_deinit(&opening->tail);
}

static int load_head(struct opening *opening, const struct as_kube_config_map *map,
                     struct as_error *error)
{
    struct kube_link *link = &opening->store->link;
    int status = as_kube_state_head_decode(map, &opening->head, error);
    if (status)
        return status;
    as_buf_append(&opening->tail, opening->head.journal, opening->head.journal_size);
    opening->head.journal = NULL;
    opening->has_head = true;
    memcpy(link->head_version, map->version, strlen(map->version) + 1);
    memcpy(link->head_write, opening->head.write, sizeof(opening->head.write));
    return as_buf_check(&opening->tail);
}

/* Also segments that no head names: their version is needed. */
static int load_segment(struct opening *opening, uint32_t slot,
                        const struct as_kube_config_map *map, struct as_error *error)
{
    struct segment *segment = &opening->segments[slot];
    const struct as_kube_config_item *text = as_kube_config_map_find(map, "journal");
    int status = as_kube_state_get_number(map, "serial", &segment->serial, error);
    if (status)
        return status;
    memcpy(opening->store->slots[slot].version, map->version, strlen(map->version) + 1);
    as_buf_append_str(&segment->text, "");
    if (text)
        as_buf_append(&segment->text, text->text, text->size);
    return as_buf_check(&segment->text);
}

static int load_shard(struct opening *opening, uint32_t number,
                      const struct as_kube_config_map *map, struct as_error *error)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    struct kube_table *table = &opening->store->table;
    struct kube_shard *shard = kube_table_get_shard(table, number);
    uint64_t sequence;
    int status = as_kube_state_get_number(map, "sequence", &sequence, error);
    if (status)
        return status;
    if (sequence > opening->shard_sequence)
        opening->shard_sequence = sequence;
    memcpy(shard->version, map->version, strlen(map->version) + 1);
    for (size_t i = 0; i < map->count; i++) {
        const struct as_kube_config_item *item = &map->items[i];
        struct as_kube_state_piece piece;
        if (strcmp(item->key, "sequence") == 0 || strcmp(item->key, "write") == 0)
            continue;
        status = as_kube_state_parse_record(item->key, strlen(item->key), item->text, item->size,
                                            &arena, &piece, error);
        if (status)
            return status;
        piece.shard = number;
        kube_table_load(table, &piece, item->size);
        as_arena_reset(&arena);
    }
    return 0;
}

static bool store_parse_number(const char *text, uint32_t limit, uint32_t *number_out)
{
    int64_t number;
    if (as_number_parse_i64(text, strlen(text), &number) < 0 || number < 0 || number >= limit)
        return false;
    *number_out = (uint32_t)number;
    return true;
}

/* Takes an object by its name; with our labels but another name it is not ours. */
static int load_object(void *context, const struct as_kube_config_map *map, struct as_error *error)
{
    struct opening *opening = context;
    uint32_t number;
    int status = 0;
    if (strcmp(map->name, AS_STORE_KUBERNETES_HEAD) == 0) {
        status = load_head(opening, map, error);
    } else if (as_str_starts_with(map->name, SLOT_PREFIX) &&
               store_parse_number(map->name + strlen(SLOT_PREFIX), AS_KUBE_STATE_SLOTS_MAX,
                                  &number)) {
        opening->has_parts = true;
        status = load_segment(opening, number, map, error);
    } else if (as_str_starts_with(map->name, PREFIX) &&
               store_parse_number(map->name + strlen(PREFIX), AS_KUBE_STATE_SHARDS_MAX, &number)) {
        opening->has_parts = true;
        status = load_shard(opening, number, map, error);
    }
    if (status)
        as_error_wrap(error, "configmap %s", map->name);
    return status;
}

/* The journal */

static void replay_commit(void *context, uint64_t sequence)
{
    struct opening *opening = context;
    if (opening->has_commits && sequence != opening->last_sequence + 1)
        opening->has_gap = true;
    opening->has_commits = true;
    opening->last_sequence = sequence;
}

static void replay_put(void *context, const struct as_kube_state_piece *piece, size_t text_size)
{
    struct opening *opening = context;
    struct kube_table *table = &opening->store->table;
    kube_table_load(table, piece, text_size);
    kube_table_mark(kube_table_get_shard(table, piece->shard), opening->dirty_from);
}

static void replay_drop(void *context, uint64_t id, uint32_t shard)
{
    struct opening *opening = context;
    struct kube_table *table = &opening->store->table;
    kube_table_unload(table, id);
    kube_table_mark(kube_table_get_shard(table, shard), opening->dirty_from);
}

static int replay_journal(struct opening *opening, struct as_error *error)
{
    const struct as_kube_state_head *head = &opening->head;
    const struct as_kube_state_visitor visitor = {replay_commit, replay_put, replay_drop, opening};
    AS_CLEANUP(as_buf_deinit) struct as_buf journal = AS_BUF_INIT(JOURNAL_MAX);
    as_buf_append_str(&journal, "");
    for (size_t i = 0; i < head->segment_count; i++) {
        const struct segment *segment = &opening->segments[head->segments[i].slot];
        if (!segment->text.data || segment->serial != head->segments[i].serial) {
            as_error_set(error, "configmap " SLOT_PREFIX "%" PRIu32 " is %s",
                         head->segments[i].slot,
                         segment->text.data ? "not the one that belongs to it" : "missing");
            return -EBADMSG;
        }
        as_buf_append(&journal, segment->text.data, segment->text.size);
    }
    if (opening->tail.size)
        as_buf_append(&journal, opening->tail.data, opening->tail.size);
    int status = as_buf_check(&journal);
    opening->dirty_from = head->segment_count ? head->segments[0].serial : head->serial + 1;
    if (status == 0)
        status = as_kube_state_parse_journal(journal.data, journal.size, &visitor, error);
    if (status)
        return status;
    if (opening->has_gap || opening->shard_sequence > head->sequence ||
        (opening->has_commits && opening->last_sequence != head->sequence)) {
        as_error_set(error, "its parts do not belong together");
        return -EBADMSG;
    }
    return kube_table_finish(&opening->store->table, error);
}

/* Writes the head, with the journal in it, under a new write name; on success it becomes
 * `store->head`. The caller updates the tail. */
static int kube_store_write_head(struct kube_store *store, const struct as_kube_state_head *head,
                                 struct as_error *error)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    struct as_kube_config_item items[AS_KUBE_STATE_HEAD_ITEMS];
    struct as_kube_state_head written = *head;
    const struct kube_write write = {
        .name = AS_STORE_KUBERNETES_HEAD,
        .items = items,
        .count = AS_KUBE_STATE_HEAD_ITEMS,
        .is_head = true,
    };
    kube_link_name_write(&store->link, written.write);
    as_kube_state_head_encode(&written, &arena, items);
    int status = kube_link_write(&store->link, &write, store->link.head_version, error);
    if (status)
        return status;
    memcpy(store->link.head_write, written.write, sizeof(written.write));
    written.journal = NULL;
    written.journal_size = 0;
    store->head = written;
    return 0;
}

/* One try: 0, -ESTALE if the head was written meanwhile, or another error. */
static int try_take_over(struct opening *opening, struct as_error *error)
{
    struct kube_store *store = opening->store;
    const struct kube_reader reader = {opening_begin, load_object, opening};
    int status = kube_link_read(&store->link, &reader, error);
    if (status)
        return status;
    if (!opening->has_head && opening->has_parts) {
        as_error_set(error, "configmap %s is missing", AS_STORE_KUBERNETES_HEAD);
        return -EBADMSG;
    }
    if (opening->has_head && (status = replay_journal(opening, error)))
        return status;
    struct as_kube_state_head next = opening->head;
    next.epoch++;
    as_str_copy_line(store->config.holder, next.holder, sizeof(next.holder));
    next.journal = opening->tail.data;
    next.journal_size = opening->tail.size;
    store->head = next;
    status = kube_store_write_head(store, &next, error);
    if (status == 0 && opening->tail.size)
        as_buf_append(&store->tail, opening->tail.data, opening->tail.size);
    return status ? status : as_buf_check(&store->tail);
}

static int kube_store_take_over(struct kube_store *store, struct as_error *error)
{
    struct opening opening = {.store = store};
    int status = -ESTALE;
    for (int i = 0; status == -ESTALE && i < ATTEMPTS_MAX; i++)
        status = try_take_over(&opening, error);
    if (status == 0)
        as_log(AS_LOG_INFO, "took the state over", AS_F("namespace", store->config.namespace_),
               AS_F("before", opening.head.holder), AS_FI("epoch", store->head.epoch),
               AS_FI("sequence", store->head.sequence));
    if (status == -EBADMSG)
        as_error_wrap(error,
                      "state in namespace %s does not hold together: restore all configmaps "
                      "labelled " AS_STORE_KUBERNETES_SELECTOR
                      " from one backup, or delete all of them to start without the open incidents "
                      "and locks in them",
                      store->config.namespace_);
    opening_deinit(&opening);
    return status;
}

/* Commits, segments and shards. */

#define COMMIT_MAX       (AS_STORE_KUBE_SEGMENT_MAX * AS_KUBE_STATE_SLOTS_MAX)
#define RETRY_TIDY_US    (10 * AS_US_PER_S)
#define CHANGE_TEXT_SIZE 256 /* of a change beyond its key and value */
#define NAME_SIZE        64

/* Segments */

static bool store_is_used(const struct as_kube_state_head *head, uint32_t slot)
{
    for (size_t i = 0; i < head->segment_count; i++)
        if (head->segments[i].slot == slot)
            return true;
    return false;
}

static int write_segment(struct kube_store *store, struct as_kube_state_head *next,
                         const char *text, size_t size, struct as_error *error)
{
    char name[NAME_SIZE], serial[24], write_name[AS_KUBE_STATE_WRITE_SIZE];
    uint32_t slot = 0;
    while (slot < AS_KUBE_STATE_SLOTS_MAX &&
           (store_is_used(&store->head, slot) || store_is_used(next, slot)))
        slot++;
    if (slot == AS_KUBE_STATE_SLOTS_MAX) {
        as_error_set(error, "a change of more than %zu MiB at once", COMMIT_MAX >> 20);
        return -EMSGSIZE;
    }
    snprintf(name, sizeof(name), AS_STORE_KUBERNETES_HEAD "-journal-%" PRIu32, slot);
    snprintf(serial, sizeof(serial), "%" PRIu64, ++next->serial);
    kube_link_name_write(&store->link, write_name);
    const struct as_kube_config_item items[] = {
        {"journal", text, size},
        {"serial", serial, strlen(serial)},
        {"write", write_name, strlen(write_name)},
    };
    const struct kube_write write = {.name = name, .items = items, .count = AS_ARRAY_SIZE(items)};
    int status = kube_link_write(&store->link, &write, store->slots[slot].version, error);
    if (status == 0)
        next->segments[next->segment_count++] = (struct as_kube_state_segment){slot, next->serial};
    return status;
}

/* Cuts the text between characters, because each object holds a text. */
static int write_segments(struct kube_store *store, struct as_kube_state_head *next,
                          const struct as_buf *text, struct as_error *error)
{
    int status = 0;
    for (size_t at = 0; status == 0 && at < text->size;) {
        size_t size = as_str_cut_utf8(text->data + at, text->size - at, AS_STORE_KUBE_SEGMENT_MAX);
        status = write_segment(store, next, text->data + at, size, error);
        at += size;
    }
    return status;
}

/* Shards */

static int write_shard(struct kube_store *store, struct kube_shard *shard, bool tries_once,
                       struct as_error *error)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    char name[NAME_SIZE], sequence[24], write_name[AS_KUBE_STATE_WRITE_SIZE];
    size_t count;
    struct as_kube_config_item *items = kube_table_print_shard(shard, &arena, 2, &count);
    snprintf(name, sizeof(name), AS_STORE_KUBERNETES_HEAD "-%" PRIu32, shard->number);
    snprintf(sequence, sizeof(sequence), "%" PRIu64, store->head.sequence);
    kube_link_name_write(&store->link, write_name);
    items[count++] = (struct as_kube_config_item){"sequence", sequence, strlen(sequence)};
    items[count++] = (struct as_kube_config_item){"write", write_name, strlen(write_name)};
    const struct kube_write write = {
        .name = name, .items = items, .count = count, .tries_once = tries_once};
    int status = 0;
    if (shard->piece_count > 0 || shard->version[0])
        status = kube_link_write(&store->link, &write, shard->version, error);
    if (status == 0)
        shard->is_dirty = false;
    return status;
}

/* Releases the segments that a head need not name any more. */
static void release_segments(const struct kube_store *store, struct as_kube_state_head *next)
{
    const struct kube_shard *oldest = kube_table_find_oldest(&store->table);
    size_t done = 0;
    while (done < next->segment_count &&
           (!oldest || next->segments[done].serial < oldest->dirty_from))
        done++;
    next->segment_count -= done;
    memmove(next->segments, next->segments + done, next->segment_count * sizeof(*next->segments));
}

/* Writes all dirty shards and empties the journal. */
static int fold_journal(struct kube_store *store, struct as_error *error)
{
    struct as_kube_state_head next = store->head;
    struct kube_shard *shard;
    while ((shard = kube_table_find_oldest(&store->table)) != NULL) {
        int status = write_shard(store, shard, false, error);
        if (status)
            return status;
    }
    release_segments(store, &next);
    int status = kube_store_write_head(store, &next, error);
    if (status == 0)
        as_buf_clear(&store->tail);
    return status;
}

static void store_tidy(struct as_store *self)
{
    struct kube_store *store = (struct kube_store *)self;
    const struct as_clock *clock = store->config.env->clock;
    struct as_error error = AS_ERROR_INIT;
    struct kube_shard *shard;
    int status = 0;
    if (store->failed || store->head.segment_count < AS_STORE_KUBE_TIDY_SEGMENTS ||
        clock->get_mono(clock).us < store->tidy_at.us)
        return;
    for (int i = 0; status == 0 && i < AS_STORE_KUBE_TIDY_SHARDS; i++) {
        shard = kube_table_find_oldest(&store->table);
        if (!shard || shard->dirty_from > store->head.serial)
            break; /* the next head releases all segments */
        status = write_shard(store, shard, true, &error);
    }
    if (status && !store->cannot_tidy)
        as_log(AS_LOG_WARN, "the state's journal cannot be moved into its shards",
               AS_F("error", error.text));
    if (status)
        store->tidy_at.us = clock->get_mono(clock).us + RETRY_TIDY_US;
    store->cannot_tidy = status;
}

/* Commits */

/* Makes room for the commit's segments, however it will be written, before the table changes. */
static int store_make_room(struct kube_store *store, const struct as_store_change *changes,
                           size_t count, struct as_error *error)
{
    size_t size = store->tail.size;
    for (size_t i = 0; i < count; i++)
        size += CHANGE_TEXT_SIZE + 2 * (changes[i].key_size + changes[i].value_size);
    if (store->head.segment_count + size / AS_STORE_KUBE_SEGMENT_MAX + 2 <= AS_KUBE_STATE_SLOTS_MAX)
        return 0;
    return store->head.segment_count > 0 ? fold_journal(store, error) : 0;
}

static int print_commit(struct kube_store *store, const struct as_store_change *changes,
                        size_t count, struct as_buf *text, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf lines = AS_BUF_INIT(COMMIT_MAX);
    size_t line_count = 0;
    for (size_t i = 0; i < count; i++) {
        int status = kube_table_change(&store->table, &changes[i], store->head.serial + 1, &lines,
                                       &line_count, error);
        if (status)
            return status;
    }
    as_kube_state_print_commit(store->head.sequence + 1, line_count, text);
    if (lines.size)
        as_buf_append(text, lines.data, lines.size);
    if (lines.failed || text->failed) {
        as_error_set(error, "a change of more than %zu MiB at once", COMMIT_MAX >> 20);
        return -EMSGSIZE;
    }
    return 0;
}

/* Writes the commit in one of three ways: behind the tail; or the tail into a segment and the
 * commit in its place; or both into segments. A large commit is in the head only without a tail:
 * else each of many large commits would be written twice, in the head and later in a segment. */
static int write_commit(struct kube_store *store, const struct as_buf *text, struct as_error *error)
{
    struct as_kube_state_head next = store->head;
    AS_CLEANUP(as_buf_deinit)
    struct as_buf whole = AS_BUF_INIT(COMMIT_MAX + AS_STORE_KUBE_TAIL_MAX);
    const bool fits = store->tail.size + text->size <=
                      (store->tail.size ? AS_STORE_KUBE_TAIL_FILL : AS_STORE_KUBE_TAIL_MAX);
    int status = 0;
    release_segments(store, &next);
    as_buf_append_str(&whole, "");
    if (fits || text->size > AS_STORE_KUBE_TAIL_FILL) {
        if (store->tail.size)
            as_buf_append(&whole, store->tail.data, store->tail.size);
        as_buf_append(&whole, text->data, text->size);
        if (!fits) {
            status = write_segments(store, &next, &whole, error);
            as_buf_clear(&whole);
        }
    } else {
        status = write_segments(store, &next, &store->tail, error);
        as_buf_append(&whole, text->data, text->size);
    }
    if (status == 0)
        status = as_buf_check(&whole);
    if (status)
        return status;
    next.sequence++;
    next.journal = whole.data;
    next.journal_size = whole.size;
    status = kube_store_write_head(store, &next, error);
    if (status == 0) {
        as_buf_clear(&store->tail);
        if (whole.size)
            as_buf_append(&store->tail, whole.data, whole.size);
    }
    return status;
}

static int store_commit(struct as_store *self, const struct as_store_change *changes, size_t count,
                        struct as_error *error)
{
    struct kube_store *store = (struct kube_store *)self;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(COMMIT_MAX);
    if (store->failed) {
        as_error_set_errno(error, store->failed, "state in namespace %s: failed before",
                           store->config.namespace_);
        return store->failed;
    }
    if (count == 0)
        return 0;
    int status = store_make_room(store, changes, count, error);
    if (status == 0)
        status = print_commit(store, changes, count, &text, error);
    if (status == 0)
        status = write_commit(store, &text, error);
    store->failed = status;
    return status;
}

static int store_visit(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                       void *context, struct as_error *error)
{
    struct kube_store *store = (struct kube_store *)self;
    return kube_table_visit(&store->table, kind, visit, context);
}

static void store_close(struct as_store *self)
{
    struct kube_store *store = (struct kube_store *)self;
    struct as_store_kubernetes_config config = store->config;
    kube_link_deinit(&store->link);
    kube_table_deinit(&store->table);
    as_buf_deinit(&store->tail);
    as_kube_access_free(config.access);
    free((char *)config.namespace_);
    free((char *)config.holder);
    free(store);
    if (config.closed)
        config.closed(config.context);
}

int as_store_kubernetes_open(const struct as_store_kubernetes_config *config,
                             struct as_store **store_out, struct as_error *error)
{
    struct kube_store *store = as_xcalloc(1, sizeof(*store));
    store->port = (struct as_store){.is_shared = true,
                                    .commit = store_commit,
                                    .visit = store_visit,
                                    .tidy = store_tidy,
                                    .close = store_close};
    store->config = *config;
    store->config.namespace_ = as_xstrdup(config->namespace_);
    store->config.holder = as_xstrdup(config->holder);
    store->tail = AS_BUF_INIT(AS_STORE_KUBE_OBJECT_MAX);
    store->tidy_at.us = INT64_MIN;
    kube_link_init(&store->link, &store->config);
    kube_table_init(&store->table);
    int status = kube_store_take_over(store, error);
    if (status) {
        store_close(&store->port);
        return status;
    }
    *store_out = &store->port;
    return 0;
}
