/*
 * Locks as Leases: sends the requests that lock_table.c finds necessary, with limits at a time and
 * per second. It begins with a list, to find what a former leader left.
 *
 * A late request of a former leader does no harm: it is for one version of one object, and the next
 * leader's list corrects its result.
 */
#include <alertscaler/kube/lock_leases.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/http/retry_after.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/kube_path.h>

#include "lock_table.h"

#define OBJECT_MAX    ((size_t)512 * 1024) /* annotations may have 256 KiB */
#define LIST_MAX      ((size_t)16 * 1024 * 1024)
#define PATH_MAX_SIZE ((size_t)8192) /* room for a list's token */
#define COST_US       (AS_US_PER_S / AS_LOCK_LEASES_PER_S)
#define NOT_LEADER_US AS_US_PER_S /* until the next may_act */

struct slot { /* one running request */
    struct lock_leases *leases;
    struct as_kube_request *request; /* NULL: free */
    struct lock_entry *entry;
    enum lock_order order;
};

struct lock_leases {
    struct as_lock_mirror port;
    const struct as_access_env *env;
    struct as_leader *leader;
    struct as_kube_access *access;
    struct as_kube_client client;
    char *namespace_;
    struct as_buf collection;
    struct lock_table table;
    bool has_shown;
    struct slot slots[AS_LOCK_LEASES_IN_FLIGHT];
    struct as_kube_request *list; /* the running list request */
    bool is_listing;              /* also between pages */
    char *next;                   /* token of the next page; NULL: the first */
    as_mono_time list_at;         /* when the next list is due */
    as_mono_time ask_at;          /* the next request not before this time */
    as_mono_time retry_at;
    int64_t pause_us, log_at_us;
    struct as_timer *timer;
};

static void pump(struct lock_leases *leases);

static as_mono_time get_now(const struct lock_leases *leases)
{
    return leases->env->clock->get_mono(leases->env->clock);
}

static void on_timer(void *context)
{
    struct lock_leases *leases = context;
    leases->timer = NULL;
    pump(leases);
}

static void wake_at(struct lock_leases *leases, int64_t at_us)
{
    struct as_loop *loop = leases->env->loop;
    const int64_t delay = at_us - get_now(leases).us;
    loop->cancel_timer(loop, leases->timer);
    leases->timer = loop->start_timer(loop, delay > 0 ? delay : 0, on_timer, leases);
}

static void note_failure(struct lock_leases *leases, const char *why, int64_t retry_after_us)
{
    const as_mono_time now = get_now(leases);
    int64_t pause = leases->pause_us;
    leases->pause_us =
        2 * pause < AS_LOCK_LEASES_PAUSE_MAX_US ? 2 * pause : AS_LOCK_LEASES_PAUSE_MAX_US;
    leases->retry_at.us = now.us + (pause > retry_after_us ? pause : retry_after_us);
    if (now.us < leases->log_at_us)
        return;
    leases->log_at_us = as_time_add(now.us, AS_LOCK_LEASES_LOG_US);
    as_log(AS_LOG_WARN, "locks cannot be shown as leases; nothing else depends on them",
           AS_F("error", why));
}

static void note_refusal(struct lock_leases *leases, const struct as_http_response *response,
                         const char *what)
{
    struct as_error why = AS_ERROR_INIT;
    struct as_kube_status status = {.message = ""};
    int64_t retry_after_us = 0;
    if (response->outcome != AS_HTTP_ANSWERED) {
        as_error_set(&why, "%s", response->error);
    } else {
        if (as_kube_status_decode(response->body, response->body_size, &status, NULL) != 0)
            status.message[0] = '\0';
        as_error_set(&why, "HTTP %d%s%s", response->status, *status.message ? ": " : "",
                     status.message);
        retry_after_us = as_retry_after_parse(response->retry_after,
                                              leases->env->clock->get_wall(leases->env->clock));
    }
    as_error_wrap(&why, "%s in namespace %s", what, leases->namespace_);
    note_failure(leases, why.text, retry_after_us);
}

static bool is_status(const struct as_http_response *response, int status)
{
    return response->outcome == AS_HTTP_ANSWERED && response->status == status;
}

/* The list */

static void see(void *context, const struct as_lock_lease *lease)
{
    lock_table_list_see(context, lease);
}

static void end_list(struct lock_leases *leases, bool is_done)
{
    leases->is_listing = false;
    free(leases->next);
    leases->next = NULL;
    if (!is_done)
        return;
    lock_table_list_end(&leases->table);
    leases->pause_us = AS_LOCK_LEASES_PAUSE_US;
    leases->list_at.us = as_time_add(get_now(leases).us, AS_LOCK_LEASES_LIST_US);
}

static void on_page(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct lock_leases *leases = context;
    struct as_error error = AS_ERROR_INIT;
    char *next = NULL;
    leases->list = NULL;
    if (!is_status(response, 200)) {
        note_refusal(leases, response, "listing leases"); /* 410: the next page has expired */
        end_list(leases, false);
    } else if (as_lock_lease_list_decode(response->body, response->body_size, &next, see,
                                         &leases->table, &error) != 0) {
        as_error_wrap(&error, "leases in namespace %s", leases->namespace_);
        note_failure(leases, error.text, 0);
        end_list(leases, false);
    } else if (next) {
        free(leases->next);
        leases->next = next;
    } else {
        end_list(leases, true);
    }
    pump(leases);
}

static void start_page(struct lock_leases *leases)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    if (!leases->is_listing)
        lock_table_list_begin(&leases->table);
    leases->is_listing = true;
    as_buf_append(&path, leases->collection.data, leases->collection.size);
    as_kube_path_append_parameter(&path, "labelSelector", AS_LOCK_LEASE_SELECTOR);
    AS_CLEANUP(as_free_p) char *limit = as_xasprintf("%d", AS_LOCK_LEASES_PAGE);
    as_kube_path_append_parameter(&path, "limit", limit);
    if (leases->next)
        as_kube_path_append_parameter(&path, "continue", leases->next);
    if (as_buf_check(&path) != 0) {
        note_failure(leases, "the server's token of the next page is too long", 0);
        end_list(leases, false);
        return;
    }
    leases->list = as_kube_request_start(&leases->client,
                                         &(struct as_kube_request_spec){
                                             .method = "GET",
                                             .path = path.data,
                                             .operation = "list_locks",
                                             .max_response = LIST_MAX,
                                         },
                                         on_page, leases);
}

/* Single ones */

struct found {
    struct lock_leases *leases;
    struct lock_entry *entry;
};

static void take_answer(void *context, const struct as_lock_lease *lease)
{
    const struct found *found = context;
    lock_table_on_found(&found->leases->table, found->entry, lease);
}

/* Handles the result of a request. False: unknown, or refused. */
static bool settle(struct lock_leases *leases, const struct slot *slot,
                   const struct as_http_response *response)
{
    struct found found = {leases, slot->entry};
    struct as_error error = AS_ERROR_INIT;
    const bool is_done = is_status(response, 200) || is_status(response, 201);
    const bool is_delete = slot->order == LOCK_DELETE;
    if ((is_done && is_delete) || (slot->order != LOCK_CREATE && is_status(response, 404))) {
        lock_table_on_gone(&leases->table, slot->entry);
        return true;
    }
    if (is_done &&
        as_lock_lease_decode(response->body, response->body_size, take_answer, &found, &error) == 0)
        return true;
    lock_table_on_failed(&leases->table, slot->entry);
    if (is_status(response, 409)) /* somebody changed it: read it again */
        return true;
    if (is_done)
        note_failure(leases, error.text, 0);
    else
        note_refusal(leases, response, "writing leases");
    return false;
}

static void on_answer(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct slot *slot = context;
    struct lock_leases *leases = slot->leases;
    slot->request = NULL;
    if (settle(leases, slot, response))
        leases->pause_us = AS_LOCK_LEASES_PAUSE_US;
    pump(leases);
}

static void start_write(struct lock_leases *leases, struct slot *slot,
                        const struct lock_write *write)
{
    static const struct {
        const char *method, *operation;
    } requests[] = {
        [LOCK_CREATE] = {"POST", "create_lock"},
        [LOCK_UPDATE] = {"PUT", "update_lock"},
        [LOCK_DELETE] = {"DELETE", "delete_lock"},
        [LOCK_GET] = {"GET", "get_lock"},
    };
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(OBJECT_MAX);
    as_buf_append(&path, leases->collection.data, leases->collection.size);
    if (write->order != LOCK_CREATE && as_kube_path_append(&path, write->lease.name) != 0)
        abort(); /* it is a DNS label */
    if (write->order == LOCK_DELETE)
        as_lock_lease_encode_delete(write->lease.version, &body);
    else if (write->order != LOCK_GET)
        as_lock_lease_encode(&write->lease, leases->namespace_, &body);
    slot->entry = write->entry;
    slot->order = write->order;
    if (as_buf_check(&path) != 0 || body.failed) {
        note_failure(leases, "a target's name is too long", 0);
        lock_table_on_failed(&leases->table, slot->entry);
        return;
    }
    slot->request = as_kube_request_start(&leases->client,
                                          &(struct as_kube_request_spec){
                                              .method = requests[write->order].method,
                                              .path = path.data,
                                              .operation = requests[write->order].operation,
                                              .body = body.size ? body.data : NULL,
                                              .body_size = body.size,
                                              .max_response = OBJECT_MAX,
                                          },
                                          on_answer, slot);
}

/* What goes out */

static struct slot *find_slot(struct lock_leases *leases)
{
    for (size_t i = 0; i < AS_LOCK_LEASES_IN_FLIGHT; i++)
        if (!leases->slots[i].request)
            return &leases->slots[i];
    return NULL;
}

static bool is_list_due(const struct lock_leases *leases, as_mono_time now)
{
    return leases->is_listing || leases->list_at.us <= now.us;
}

/* Sends one request. False: there is nothing to ask now. */
static bool ask(struct lock_leases *leases, as_mono_time now)
{
    struct lock_write write;
    if (is_list_due(leases, now)) {
        if (leases->list || leases->table.under_way > 0)
            return false; /* the end of the list calls this again */
        start_page(leases);
        return leases->list != NULL;
    }
    struct slot *slot = find_slot(leases);
    if (!slot || !lock_table_take(&leases->table, &write))
        return false;
    start_write(leases, slot, &write);
    return slot->request != NULL;
}

/* Sets the timer for what no answer will trigger. */
static void plan(struct lock_leases *leases, as_mono_time now)
{
    const bool is_due = is_list_due(leases, now);
    if (now.us < leases->retry_at.us)
        wake_at(leases, leases->retry_at.us);
    else if (leases->list || (is_due && leases->table.under_way > 0))
        return;
    else if (is_due || (leases->table.queued > 0 && find_slot(leases)))
        wake_at(leases, leases->ask_at.us);
    else
        wake_at(leases, leases->list_at.us);
}

/* Sends all requests that the limits allow now. */
static void pump(struct lock_leases *leases)
{
    const as_mono_time now = get_now(leases);
    const int64_t burst = now.us - AS_LOCK_LEASES_BURST * COST_US;
    if (!leases->has_shown)
        return; /* nothing may be deleted before the locks are known */
    if (now.us >= leases->retry_at.us && !leases->leader->may_act(leases->leader))
        leases->retry_at.us = now.us + NOT_LEADER_US;
    if (leases->ask_at.us < burst)
        leases->ask_at.us = burst;
    while (leases->retry_at.us <= now.us && leases->ask_at.us <= now.us && ask(leases, now))
        leases->ask_at.us += COST_US;
    plan(leases, now);
}

static void show(struct as_lock_mirror *self, const struct as_lock *locks, size_t count)
{
    struct lock_leases *leases = (struct lock_leases *)self;
    const as_mono_time now = get_now(leases);
    lock_table_show(&leases->table, locks, count);
    if (!leases->has_shown) {
        leases->has_shown = true;
        wake_at(leases, now.us); /* in a separate turn */
    } else {
        plan(leases, now);
    }
}

static size_t count_behind(const struct as_lock_mirror *self)
{
    return lock_table_count_behind(&((const struct lock_leases *)self)->table);
}

static void close_mirror(struct as_lock_mirror *self)
{
    struct lock_leases *leases = (struct lock_leases *)self;
    struct as_loop *loop = leases->env->loop;
    loop->cancel_timer(loop, leases->timer);
    as_kube_client_deinit(&leases->client);
    as_kube_access_free(leases->access);
    lock_table_deinit(&leases->table);
    as_buf_deinit(&leases->collection);
    free(leases->next);
    free(leases->namespace_);
    free(leases);
}

struct as_lock_mirror *as_lock_leases_new(const char *namespace_, struct as_leader *leader,
                                          struct as_kube_access *access,
                                          const struct as_access_env *env)
{
    struct lock_leases *leases = as_xcalloc(1, sizeof(*leases));
    leases->port = (struct as_lock_mirror){show, count_behind, close_mirror};
    leases->env = env;
    leases->leader = leader;
    leases->access = access;
    leases->namespace_ = as_xstrdup(namespace_);
    leases->collection = AS_BUF_INIT(PATH_MAX_SIZE);
    as_buf_append_str(&leases->collection, "/apis/coordination.k8s.io/v1/namespaces");
    if (as_kube_path_append(&leases->collection, namespace_) != 0)
        abort(); /* checked by the configuration */
    as_buf_append_str(&leases->collection, "/leases");
    if (as_buf_check(&leases->collection) != 0)
        abort();
    for (size_t i = 0; i < AS_LOCK_LEASES_IN_FLIGHT; i++)
        leases->slots[i].leases = leases;
    leases->list_at = leases->retry_at = leases->ask_at = get_now(leases);
    leases->pause_us = AS_LOCK_LEASES_PAUSE_US;
    leases->log_at_us = INT64_MIN;
    lock_table_init(&leases->table, leader->look(leader).identity);
    as_kube_client_init(&leases->client, env, access);
    return &leases->port;
}
