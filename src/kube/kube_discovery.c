/*
 * API discovery of one cluster: see the header. An entry is fresh (has a list), asking (has a
 * request), or empty. A group version that is not served has an empty list.
 */
#include "kube_discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for every small allocation */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/target_outcome.h>

#define ENTRIES_MAX 256
#define NOT_FOUND   404

struct entry {
    UT_hash_handle hh;
    struct as_kube_discovery *discovery;
    struct as_kube_resources *list;
    struct as_kube_request *request;
    struct as_kube_discovery_waiters waiters;
    as_mono_time asked_at;
    bool is_served;
    char api_version[];
};

struct as_kube_discovery {
    struct as_kube_client *client;
    struct entry *entries;
};

struct as_kube_discovery *as_kube_discovery_new(struct as_kube_client *client)
{
    struct as_kube_discovery *discovery = as_xcalloc(1, sizeof(*discovery));
    discovery->client = client;
    return discovery;
}

static void free_entry(struct as_kube_discovery *discovery, struct entry *entry)
{
    HASH_DEL(discovery->entries, entry);
    if (entry->request)
        as_kube_request_cancel(entry->request);
    as_kube_resources_free(entry->list);
    free(entry);
}

struct as_kube_discovery *as_kube_discovery_free(struct as_kube_discovery *discovery)
{
    struct entry *entry, *next;
    if (!discovery)
        return NULL;
    HASH_ITER (hh, discovery->entries, entry, next)
        free_entry(discovery, entry);
    free(discovery);
    return NULL;
}

static struct entry *find_entry(struct as_kube_discovery *discovery, const char *api_version)
{
    struct entry *entry;
    HASH_FIND_STR(discovery->entries, api_version, entry);
    return entry;
}

static void discovery_report(struct entry *entry, const struct as_outcome *failure)
{
    struct as_kube_discovery_waiters due = LIST_HEAD_INITIALIZER(due);
    struct as_kube_discovery_waiter *waiter;
    LIST_SWAP(&due, &entry->waiters, as_kube_discovery_waiter, entry);
    while ((waiter = LIST_FIRST(&due)) != NULL) {
        as_kube_discovery_waiter_cancel(waiter);
        waiter->ready(waiter->context, failure);
    }
}

/* 0: the entry has its list; else *failure_out says why not. */
static int take_list(struct entry *entry, const struct as_http_response *response,
                     struct as_outcome *failure_out)
{
    const struct as_access_env *env = entry->discovery->client->env;
    struct as_kube_resources *list = NULL;
    struct as_kube_status status;
    struct as_error error = AS_ERROR_INIT;
    as_outcome_init(failure_out, response, false, env->clock->get_wall(env->clock));
    entry->is_served = failure_out->reason == AS_REASON_APPLIED;
    if (failure_out->http_status == NOT_FOUND) {
        list = as_xcalloc(1, sizeof(*list));
    } else if (!entry->is_served) {
        if (as_kube_status_decode(response->body, response->body_size, &status, NULL) == 0)
            as_outcome_set_message(failure_out, status.message);
    } else if (as_kube_resources_decode(response->body, response->body_size, &list, &error) < 0) {
        as_error_wrap(&error, "API discovery of %s", entry->api_version);
        failure_out->reason = AS_REASON_REJECTED;
        as_outcome_set_message(failure_out, error.text);
    }
    if (!list)
        return -1;
    as_kube_resources_free(entry->list);
    entry->list = list;
    return 0;
}

static void discovery_answered(void *context, const struct as_http_response *response,
                               unsigned attempts)
{
    struct entry *entry = context;
    const struct as_access_env *env = entry->discovery->client->env;
    struct as_outcome failure;
    entry->request = NULL;
    entry->asked_at = env->clock->get_mono(env->clock);
    int status = take_list(entry, response, &failure);
    discovery_report(entry, status ? &failure : NULL);
}

/* NULL if the table is full or `api_version` is not an apiVersion. */
/* References in objects of users name API versions, too: those that are not served make room. */
static void make_room(struct as_kube_discovery *discovery)
{
    struct entry *entry, *next;
    HASH_ITER (hh, discovery->entries, entry, next) {
        if (!entry->is_served && !entry->request && LIST_EMPTY(&entry->waiters)) {
            free_entry(discovery, entry);
            return;
        }
    }
}

static struct entry *add_entry(struct as_kube_discovery *discovery, const char *api_version)
{
    size_t size = strlen(api_version);
    if (HASH_COUNT(discovery->entries) >= ENTRIES_MAX)
        make_room(discovery);
    if (HASH_COUNT(discovery->entries) >= ENTRIES_MAX)
        return NULL;
    struct entry *entry = as_xcalloc(1, sizeof(*entry) + size + 1);
    memcpy(entry->api_version, api_version, size + 1);
    entry->discovery = discovery;
    LIST_INIT(&entry->waiters);
    HASH_ADD_STR(discovery->entries, api_version, entry);
    return entry;
}

static int discovery_ask(struct entry *entry)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    int status = as_kube_path_append_version(&path, entry->api_version);
    if (status || (status = as_buf_check(&path)))
        return status;
    struct as_kube_request_spec spec = {
        .method = "GET",
        .path = path.data,
        .operation = "discover",
        .max_response = AS_KUBE_DISCOVERY_MAX,
    };
    entry->request =
        as_kube_request_start(entry->discovery->client, &spec, discovery_answered, entry);
    return 0;
}

static bool may_ask_again(const struct entry *entry)
{
    const struct as_access_env *env = entry->discovery->client->env;
    as_mono_time now = env->clock->get_mono(env->clock);
    return now.us - entry->asked_at.us >= AS_KUBE_DISCOVERY_REFRESH_US;
}

static void discovery_explain(const struct entry *entry, const struct as_kube_resource *resource,
                              const char *kind, struct as_outcome *failure_out)
{
    char message[AS_MESSAGE_SIZE];
    if (resource)
        snprintf(message, sizeof(message), "%s of %s has no scale subresource", kind,
                 entry->api_version);
    else if (entry->is_served)
        snprintf(message, sizeof(message), "the cluster has no kind %s in %s", kind,
                 entry->api_version);
    else
        snprintf(message, sizeof(message), "the cluster does not serve %s", entry->api_version);
    as_outcome_init_local(failure_out, resource ? AS_REASON_REJECTED : AS_REASON_TARGET_NOT_FOUND,
                          message);
}

enum as_kube_lookup as_kube_discovery_find(struct as_kube_discovery *discovery,
                                           const char *api_version, const char *kind,
                                           bool needs_scale,
                                           const struct as_kube_resource **resource_out,
                                           struct as_outcome *failure_out)
{
    struct entry *entry = find_entry(discovery, api_version);
    if (!entry)
        entry = add_entry(discovery, api_version);
    if (!entry) {
        as_outcome_init_local(failure_out, AS_REASON_REJECTED, "too many different apiVersions");
        return AS_KUBE_NOT_SCALABLE;
    }
    if (entry->request)
        return AS_KUBE_ASKING;
    const struct as_kube_resource *resource =
        entry->list ? as_kube_resources_find(entry->list, kind) : NULL;
    if (resource && (resource->scale_version || !needs_scale)) {
        *resource_out = resource;
        return AS_KUBE_FOUND;
    }
    if (entry->list && !may_ask_again(entry)) {
        discovery_explain(entry, resource, kind, failure_out);
        return AS_KUBE_NOT_SCALABLE;
    }
    if (discovery_ask(entry) < 0) {
        free_entry(discovery, entry);
        as_outcome_init_local(failure_out, AS_REASON_REJECTED, "not a valid apiVersion");
        return AS_KUBE_NOT_SCALABLE;
    }
    return AS_KUBE_ASKING;
}

void as_kube_discovery_wait(struct as_kube_discovery *discovery, const char *api_version,
                            struct as_kube_discovery_waiter *waiter)
{
    LIST_INSERT_HEAD(&find_entry(discovery, api_version)->waiters, waiter, entry);
}

void as_kube_discovery_waiter_cancel(struct as_kube_discovery_waiter *waiter)
{
    LIST_REMOVE(waiter, entry);
}

bool as_kube_discovery_expire(struct as_kube_discovery *discovery, const char *api_version)
{
    struct entry *entry = find_entry(discovery, api_version);
    if (!entry)
        return true;
    if (entry->request)
        return true;
    if (!may_ask_again(entry))
        return false;
    entry->list = as_kube_resources_free(entry->list);
    return true;
}
