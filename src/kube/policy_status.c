/*
 * The writer of the status of scaling policies: see the header.
 *
 * A slot is a policy with a request under way or a status that waits. A slot that waits is in one
 * of three lists: urgent, plain, or delayed after a failure. A slot with a request is in none of
 * them.
 */
#include <alertscaler/kube/policy_status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/http/client.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/rules/policy.h>

#include "kube_events.h"

#define STATUS_COST_US  (AS_US_PER_S / AS_POLICY_STATUS_A_SECOND)
#define STATUS_BURST_US (10 * STATUS_COST_US)
#define STATUS_BODY_MAX ((size_t)256 * 1024)
#define TOO_MANY        429
#define NOT_FOUND       404
#define CONFLICT        409
#define SERVER_ERRORS   5 /* 500 to 599 */

struct status_slot {
    UT_hash_handle hh;              /* by id */
    TAILQ_ENTRY(status_slot) entry; /* of `list` */
    struct slot_list *list;         /* NULL: none */
    struct as_policy_status_writer *owner;
    struct as_kube_request *request; /* under way */
    char *namespace, *name;
    char *sent_uid, *sent; /* by the request */
    size_t sent_size;
    bool was_urgent;
    char *uid, *json; /* the newest, which waits; NULL: none */
    size_t size;
    bool is_urgent;
    unsigned failures; /* in a row */
    as_mono_time due;  /* delayed: until then */
    char id[];
};

TAILQ_HEAD(slot_list, status_slot);

struct as_policy_status_writer {
    struct as_kube_client *client;
    struct as_kube_events *events;
    as_policy_status_written_fn *written;
    void *context;
    struct status_slot *slots;
    struct slot_list urgent, plain, delayed;
    unsigned under_way;
    size_t bytes; /* of statuses */
    int64_t tokens_us;
    as_mono_time filled_at;
    as_mono_time resume_at; /* nothing is sent before */
    unsigned pauses;        /* in a row */
    struct as_timer *timer;
    int64_t planned_us; /* when it ends; INT64_MAX: there is none */
    struct as_policy_status_counts counts;
    bool is_failing; /* this was logged */
};

static as_mono_time policy_status_get_now(const struct as_policy_status_writer *writer)
{
    const struct as_clock *clock = writer->client->env->clock;
    return clock->get_mono(clock);
}

struct as_policy_status_writer *as_policy_status_writer_new(struct as_kube_client *client,
                                                            as_policy_status_written_fn *written,
                                                            void *context)
{
    struct as_policy_status_writer *writer = as_xcalloc(1, sizeof(*writer));
    writer->client = client;
    writer->events = as_kube_events_new(client);
    writer->written = written;
    writer->context = context;
    writer->tokens_us = STATUS_BURST_US;
    writer->filled_at = policy_status_get_now(writer);
    writer->resume_at.us = INT64_MIN;
    writer->planned_us = INT64_MAX;
    TAILQ_INIT(&writer->urgent);
    TAILQ_INIT(&writer->plain);
    TAILQ_INIT(&writer->delayed);
    return writer;
}

/* ---- slots ---- */

static void slot_put_into(struct status_slot *slot, struct slot_list *list)
{
    if (slot->list)
        TAILQ_REMOVE(slot->list, slot, entry);
    slot->list = list;
    if (list)
        TAILQ_INSERT_TAIL(list, slot, entry);
}

static void slot_drop_waiting(struct status_slot *slot)
{
    slot->owner->bytes -= slot->size;
    free(slot->uid);
    free(slot->json);
    slot->uid = slot->json = NULL;
    slot->size = 0;
}

static void slot_drop_sent(struct status_slot *slot)
{
    slot->owner->bytes -= slot->sent_size;
    free(slot->sent_uid);
    free(slot->sent);
    slot->sent_uid = slot->sent = NULL;
    slot->sent_size = 0;
}

static void slot_free(struct status_slot *slot)
{
    slot_put_into(slot, NULL);
    slot_drop_waiting(slot);
    slot_drop_sent(slot);
    if (slot->request)
        as_kube_request_cancel(slot->request);
    HASH_DEL(slot->owner->slots, slot);
    free(slot->namespace);
    free(slot->name);
    free(slot);
}

struct as_policy_status_writer *as_policy_status_writer_free(struct as_policy_status_writer *writer)
{
    struct status_slot *slot, *next;
    if (!writer)
        return NULL;
    HASH_ITER (hh, writer->slots, slot, next)
        slot_free(slot);
    if (writer->timer)
        writer->client->env->loop->cancel_timer(writer->client->env->loop, writer->timer);
    as_kube_events_free(writer->events);
    free(writer);
    return NULL;
}

static struct status_slot *slot_get(struct as_policy_status_writer *writer, const char *namespace,
                                    const char *name)
{
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("%s/%s", namespace, name);
    const size_t size = strlen(id) + 1;
    struct status_slot *slot;
    HASH_FIND_STR(writer->slots, id, slot);
    if (slot)
        return slot;
    slot = as_xcalloc(1, sizeof(*slot) + size);
    slot->owner = writer;
    slot->namespace = as_xstrdup(namespace);
    slot->name = as_xstrdup(name);
    memcpy(slot->id, id, size);
    HASH_ADD_STR(writer->slots, id, slot);
    return slot;
}

/* ---- requests ---- */

static void policy_status_pump(struct as_policy_status_writer *writer);
static void status_answered(void *context, const struct as_http_response *response,
                            unsigned attempts);

static bool write_path(const struct status_slot *slot, struct as_buf *path)
{
    as_buf_append_str(path, "/apis/" AS_POLICY_GROUP "/" AS_POLICY_VERSION "/namespaces");
    if (as_kube_path_append(path, slot->namespace) < 0)
        return false;
    as_buf_append_str(path, "/" AS_POLICY_PLURAL);
    if (as_kube_path_append(path, slot->name) < 0)
        return false;
    as_buf_append_str(path, "/status?fieldManager=alertscaler&force=true");
    return as_buf_check(path) == 0;
}

static bool write_body(const struct status_slot *slot, struct as_buf *body)
{
    struct as_json_writer json;
    as_json_init(&json, body, 0);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", AS_POLICY_GROUP "/" AS_POLICY_VERSION);
    as_json_write_member(&json, "kind", AS_POLICY_KIND);
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "name", slot->name);
    as_json_write_member(&json, "namespace", slot->namespace);
    as_json_write_member(&json, "uid", slot->sent_uid);
    as_json_end_object(&json);
    as_json_write_key(&json, "status");
    as_json_write_raw(&json, slot->sent, slot->sent_size);
    as_json_end_object(&json);
    return as_buf_check(body) == 0;
}

/* False: it cannot be said in a request. */
static bool slot_send(struct status_slot *slot)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(STATUS_BODY_MAX);
    slot_put_into(slot, NULL);
    slot->sent = slot->json;
    slot->sent_uid = slot->uid;
    slot->sent_size = slot->size;
    slot->was_urgent = slot->is_urgent;
    slot->json = slot->uid = NULL;
    slot->size = 0;
    slot->is_urgent = false;
    if (!write_path(slot, &path) || !write_body(slot, &body))
        return false;
    const struct as_kube_request_spec spec = {
        .method = "PATCH",
        .path = path.data,
        .operation = "apply_policy_status",
        .content_type = "application/apply-patch+yaml",
        .body = body.data,
        .body_size = body.size,
        .max_response = AS_TARGET_RESPONSE_MAX,
        .flow = {.target = slot->id},
    };
    slot->owner->under_way++;
    slot->request = as_kube_request_start(slot->owner->client, &spec, status_answered, slot);
    return true;
}

static void note_failure(struct as_policy_status_writer *writer, const char *id, const char *why)
{
    writer->counts.failed++;
    if (!writer->is_failing)
        as_log(AS_LOG_WARN, "the status of scaling policies cannot be written", AS_F("policy", id),
               AS_F("error", why));
    writer->is_failing = true;
}

static int64_t status_get_backoff(unsigned failures, int64_t asked_us)
{
    int64_t us = AS_POLICY_STATUS_RETRY_US;
    for (unsigned i = 0; i < failures && us < AS_POLICY_STATUS_RETRY_MAX_US; i++)
        us *= 2;
    us = us < AS_POLICY_STATUS_RETRY_MAX_US ? us : AS_POLICY_STATUS_RETRY_MAX_US;
    return us > asked_us ? us : asked_us;
}

/* What was sent waits again, unless something newer waits. `list` NULL: the one for its urgency. */
static void slot_retry(struct status_slot *slot, struct slot_list *list)
{
    slot->is_urgent = slot->is_urgent || slot->was_urgent;
    if (!slot->json) {
        slot->json = slot->sent;
        slot->uid = slot->sent_uid;
        slot->size = slot->sent_size;
        slot->sent = slot->sent_uid = NULL;
        slot->sent_size = 0;
    }
    slot_drop_sent(slot);
    slot_put_into(slot, list ? list : slot->is_urgent ? &slot->owner->urgent : &slot->owner->plain);
}

/* The API server is away, or asks for time: no other request helps. Requests that were under way
 * together fail together. */
static void policy_status_pause(struct as_policy_status_writer *writer, int64_t asked_us)
{
    const as_mono_time now = policy_status_get_now(writer);
    if (now.us >= writer->resume_at.us)
        writer->pauses++;
    const int64_t until = as_time_add(
        now.us, status_get_backoff(writer->pauses > 0 ? writer->pauses - 1 : 0, asked_us));
    writer->resume_at.us = until > writer->resume_at.us ? until : writer->resume_at.us;
}

/* The request is over, and will not be repeated. */
static void slot_finish(struct status_slot *slot)
{
    struct as_policy_status_writer *writer = slot->owner;
    slot_drop_sent(slot);
    slot->failures = 0;
    if (slot->json)
        slot_put_into(slot, slot->is_urgent ? &writer->urgent : &writer->plain);
    else
        slot_free(slot);
}

static void status_answered(void *context, const struct as_http_response *response,
                            unsigned attempts)
{
    struct status_slot *slot = context;
    struct as_policy_status_writer *writer = slot->owner;
    const struct as_clock *clock = writer->client->env->clock;
    const as_wall_time now = clock->get_wall(clock);
    const bool is_too_large = response->outcome == AS_HTTP_TOO_LARGE; /* of this policy alone */
    const int http = response->outcome == AS_HTTP_ANSWERED ? response->status : 0;
    struct as_outcome outcome;
    struct as_kube_status status;
    slot->request = NULL;
    writer->under_way--;
    as_kube_outcome_init(&outcome, response, true, now, &status);
    if (http != 0 && outcome.retry_after_us == 0)
        writer->pauses = 0;
    if (http / 100 == 2) {
        writer->counts.written++;
        writer->is_failing = false;
        if (!slot->json)
            writer->written(writer->context, slot->namespace, slot->name, slot->sent_uid);
        slot_finish(slot);
    } else if (http == NOT_FOUND || http == CONFLICT) {
        slot_finish(slot); /* the object is gone, or its name is another object's */
    } else if (http == 0 || http == TOO_MANY || http / 100 == SERVER_ERRORS) {
        const bool is_paused = (http == 0 && !is_too_large) || outcome.retry_after_us > 0;
        note_failure(writer, slot->id, outcome.message);
        if (is_paused)
            policy_status_pause(writer, outcome.retry_after_us);
        else
            slot->due.us = as_time_add(policy_status_get_now(writer).us,
                                       status_get_backoff(slot->failures++, 0));
        slot_retry(slot, is_paused ? NULL : &writer->delayed);
    } else {
        note_failure(writer, slot->id, outcome.message);
        slot_finish(slot);
    }
    policy_status_pump(writer);
}

/* ---- the order ---- */

static bool policy_status_take_token(struct as_policy_status_writer *writer, as_mono_time now)
{
    writer->tokens_us = as_time_add(writer->tokens_us, now.us - writer->filled_at.us);
    writer->filled_at = now;
    if (writer->tokens_us > STATUS_BURST_US)
        writer->tokens_us = STATUS_BURST_US;
    if (writer->tokens_us < STATUS_COST_US)
        return false;
    writer->tokens_us -= STATUS_COST_US;
    return true;
}

/* Those that were delayed long enough wait with the others. */
static int64_t end_delays(struct as_policy_status_writer *writer, as_mono_time now)
{
    struct status_slot *slot, *next;
    int64_t first = INT64_MAX;
    TAILQ_FOREACH_SAFE (slot, &writer->delayed, entry, next) {
        if (slot->due.us <= now.us)
            slot_put_into(slot, slot->is_urgent ? &writer->urgent : &writer->plain);
        else
            first = slot->due.us < first ? slot->due.us : first;
    }
    return first;
}

static struct status_slot *status_find_next(struct as_policy_status_writer *writer)
{
    struct status_slot *slot = TAILQ_FIRST(&writer->urgent);
    return slot ? slot : TAILQ_FIRST(&writer->plain);
}

/* Another replica leads: what waits is for this one to write. */
static void drop_all(struct as_policy_status_writer *writer)
{
    struct slot_list *const lists[] = {&writer->urgent, &writer->plain, &writer->delayed};
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++)
        while (!TAILQ_EMPTY(lists[i]))
            slot_free(TAILQ_FIRST(lists[i]));
}

static void policy_status_on_timer(void *context)
{
    struct as_policy_status_writer *writer = context;
    writer->timer = NULL;
    writer->planned_us = INT64_MAX;
    policy_status_pump(writer);
}

/* At `at`; INT64_MAX: not before the next answer. */
static void policy_status_plan(struct as_policy_status_writer *writer, int64_t at)
{
    struct as_loop *loop = writer->client->env->loop;
    const int64_t now = policy_status_get_now(writer).us;
    if (writer->timer)
        loop->cancel_timer(loop, writer->timer);
    writer->timer = NULL;
    writer->planned_us = at;
    if (at < INT64_MAX)
        writer->timer =
            loop->start_timer(loop, at > now ? at - now : 0, policy_status_on_timer, writer);
}

/* When the next request may be sent; INT64_MAX: after an answer, or none waits. */
static int64_t get_next_send(struct as_policy_status_writer *writer, as_mono_time now)
{
    if (!status_find_next(writer) || writer->under_way >= AS_POLICY_STATUS_UNDER_WAY)
        return INT64_MAX;
    const int64_t token = now.us + STATUS_COST_US - writer->tokens_us;
    return writer->resume_at.us > token ? writer->resume_at.us : token;
}

static void policy_status_pump(struct as_policy_status_writer *writer)
{
    const as_mono_time now = policy_status_get_now(writer);
    struct status_slot *slot;
    if (as_access_get_permit(writer->client->env) == AS_PERMIT_NONE)
        drop_all(writer);
    const int64_t first_delayed = end_delays(writer, now);
    while (now.us >= writer->resume_at.us && writer->under_way < AS_POLICY_STATUS_UNDER_WAY &&
           (slot = status_find_next(writer)) && policy_status_take_token(writer, now)) {
        if (slot_send(slot))
            continue;
        note_failure(writer, slot->id, "it is too large");
        slot_free(slot);
    }
    const int64_t next = get_next_send(writer, now);
    policy_status_plan(writer, next < first_delayed ? next : first_delayed);
}

void as_policy_status_put(struct as_policy_status_writer *writer, const char *namespace,
                          const char *name, const char *uid, const char *json, size_t size,
                          bool is_urgent)
{
    struct status_slot *slot = slot_get(writer, namespace, name);
    const bool is_new = !slot->json;
    slot->is_urgent = is_urgent || (slot->is_urgent && !is_new);
    slot_drop_waiting(slot);
    if (size > AS_POLICY_STATUS_BYTES - writer->bytes) {
        note_failure(writer, slot->id, "too many wait");
        if (!slot->request)
            slot_free(slot);
        return;
    }
    slot->uid = as_xstrdup(uid);
    slot->json = as_xstrndup(json, size);
    slot->size = size;
    writer->bytes += size;
    if (slot->request)
        return;
    if (slot->list != &writer->delayed) {
        struct slot_list *list = slot->is_urgent ? &writer->urgent : &writer->plain;
        if (slot->list != list)
            slot_put_into(slot, list);
    }
    const int64_t next = get_next_send(writer, policy_status_get_now(writer));
    if (next < writer->planned_us) /* not after a status that is delayed */
        policy_status_plan(writer, next);
}

void as_policy_status_post_event(struct as_policy_status_writer *writer, const char *namespace,
                                 const char *name, const char *uid, const char *reason,
                                 const char *message)
{
    as_kube_events_post_on_policy(
        writer->events, &(struct as_policy_ref){.namespace = namespace, .name = name, .uid = uid},
        reason, message);
}

struct as_policy_status_counts as_policy_status_get_counts(
    const struct as_policy_status_writer *writer)
{
    struct as_policy_status_counts counts = writer->counts;
    counts.waiting = HASH_COUNT(writer->slots);
    return counts;
}
