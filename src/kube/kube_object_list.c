/*
 * Lists of objects, for `allow.list`: see the header.
 */
#include "kube_object_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>

#include "kube_object.h"

#define NAMESPACE_MAX_BYTES 63
#define FORBIDDEN           403
#define NAME_MAX_BYTES      253
#define RIGHT_SIZE          128
#define ROLES_MAX           ((size_t)64 * 1024)
#define METADATA_LIST       "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define OF_SYSTEM           "kube-" /* how the names of Kubernetes' own namespaces begin */

struct as_object_lists {
    struct as_kube_client *client;
    struct as_kube_discovery *discovery;
    LIST_HEAD(, object_list) calls;
};

/* Waits for exactly one of: timer, waiter, pages. */
struct object_list {
    LIST_ENTRY(object_list) entry;
    struct as_object_lists *owner;
    uint64_t call_id;
    as_objects_listed_fn *done;
    void *context;
    struct as_arena texts; /* of the request, and of the objects */
    const char *target;    /* name of the entry */
    const char *api_version, *kind, *selector;
    const char *own_namespace; /* NULL: not known */
    const char **namespaces;   /* "": the whole cluster */
    size_t namespace_count, at;
    struct as_timer *timer;
    bool is_waiting;
    struct as_kube_discovery_waiter waiter;
    struct as_kube_pages *pages;
    const char *plural;
    bool is_namespaced;
    char right[RIGHT_SIZE];
    char *what; /* for messages */
    struct as_listed_object *items;
    size_t count, capacity, kept; /* kept: of the namespaces before */
    struct as_buf error, roles;
};

static void object_list_free(struct object_list *list)
{
    const struct as_access_env *env = list->owner->client->env;
    if (list->timer)
        env->loop->cancel_timer(env->loop, list->timer);
    if (list->is_waiting)
        as_kube_discovery_waiter_cancel(&list->waiter);
    if (list->pages)
        as_kube_pages_cancel(list->pages);
    LIST_REMOVE(list, entry);
    as_buf_deinit(&list->error);
    as_buf_deinit(&list->roles);
    free(list->what);
    as_arena_deinit(&list->texts);
    free(list->items);
    free(list);
}

static void object_list_finish(void *context)
{
    struct object_list *list = context;
    list->timer = NULL;
    list->done(list->context, list->call_id,
               &(struct as_object_list){
                   .error = list->error.size > 0 ? list->error.data : NULL,
                   .right = as_buf_check(&list->roles) == 0 ? list->roles.data : NULL,
                   .items = list->items,
                   .count = list->count,
               });
    object_list_free(list);
}

/* The first failure counts. */
static void object_list_fail(struct object_list *list, const char *why)
{
    if (list->error.size == 0)
        as_buf_append_str(&list->error, why);
}

/* Reports in a later turn, because the caller's call may still be running. */
static void object_list_finish_later(struct object_list *list, const char *why)
{
    const struct as_access_env *env = list->owner->client->env;
    object_list_fail(list, why);
    list->timer = env->loop->start_timer(env->loop, 0, object_list_finish, list);
}

/* ---- one page ---- */

static bool has_controller(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));
    for (; owner; owner = owner->next) {
        if (tree_is_true(tree_find(owner, "controller")))
            return true;
    }
    return false;
}

static bool object_is_left_out(const struct object_list *list, const struct tree_value *metadata,
                               const char *namespace_)
{
    return as_str_starts_with(namespace_, OF_SYSTEM) ||
           as_str_equal(namespace_, list->own_namespace) ||
           tree_find(metadata, "deletionTimestamp") || has_controller(metadata);
}

static int object_list_add(void *context, const struct tree_value *item, struct as_error *error)
{
    struct object_list *list = context;
    struct as_reader root, metadata;
    as_read_lenient(&root, item, error);
    as_read_object(&metadata, &root, "metadata");
    const char *name = kube_object_read_name(&metadata, "name", NAME_MAX_BYTES, "name");
    const char *namespace_ = tree_find_text(metadata.object, "namespace");
    const int status = as_read_result(&root);
    namespace_ = namespace_ ? namespace_ : "";
    if (!status && strlen(namespace_) > NAMESPACE_MAX_BYTES) {
        as_error_set(error, "the name of the namespace is too long");
        return -EBADMSG;
    }
    if (status || object_is_left_out(list, metadata.object, namespace_))
        return status;
    if (list->count == AS_LISTED_OBJECTS_MAX) {
        as_error_set(error, "more than %d objects: write a narrower `selector`",
                     AS_LISTED_OBJECTS_MAX);
        return -E2BIG;
    }
    list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
    list->items[list->count++] =
        (struct as_listed_object){.namespace_ = as_arena_strdup(&list->texts, namespace_),
                                  .name = as_arena_strdup(&list->texts, name)};
    return 0;
}

static int object_list_take(void *context, const char *json, size_t size, char **next_out,
                            struct as_error *error)
{
    return kube_list_read(json, size, "PartialObjectMetadataList", object_list_add, context,
                          next_out, error);
}

/* The texts stay in the arena until the call ends. */
static void object_list_clear(void *context)
{
    struct object_list *list = context;
    list->count = list->kept;
}

/* ---- one namespace after the other ---- */

/* The role that is missing. */
static void object_list_print_role(struct object_list *list, const char *namespace_)
{
    AS_CLEANUP(as_free_p) char *name = as_xasprintf("alertscaler-list-%s", list->plural);
    AS_CLEANUP(as_free_p)
    char *rules =
        as_xasprintf("  - {apiGroups: [\"%.*s\"], resources: [%s], verbs: [list]}\n",
                     as_kube_get_group_size(list->api_version), list->api_version, list->plural);
    if (list->roles.size > 0)
        as_buf_append_str(&list->roles, "---\n");
    as_kube_role_print(namespace_, name, rules, &list->roles);
}

static void object_list_request(struct object_list *list);

static void object_list_on_pages(void *context, const struct as_outcome *outcome)
{
    struct object_list *list = context;
    list->pages = NULL;
    list->kept = list->count;
    if (outcome->reason != AS_REASON_APPLIED)
        object_list_fail(list, outcome->message);
    if (outcome->http_status == FORBIDDEN)
        object_list_print_role(list, list->namespaces[list->at]);
    list->at++;
    const bool is_away = outcome->reason != AS_REASON_APPLIED && outcome->http_status == 0;
    if (list->at < list->namespace_count && list->is_namespaced && !is_away)
        object_list_request(list);
    else
        object_list_finish(list);
}

static void object_list_request(struct object_list *list)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    const char *namespace_ = list->namespaces[list->at];
    int status = as_kube_path_append_version(&path, list->api_version);
    if (!status && *namespace_ && list->is_namespaced) {
        as_buf_append_str(&path, "/namespaces");
        status = as_kube_path_append(&path, namespace_);
    }
    if (!status)
        status = as_kube_path_append(&path, list->plural);
    as_kube_path_append_parameter(&path, "labelSelector", list->selector);
    status = status ? status : as_buf_check(&path);
    list->pages = as_kube_pages_start(list->owner->client,
                                      &(struct as_kube_pages_spec){
                                          .path = status ? NULL : path.data,
                                          .trouble = "the selector is too long for a request",
                                          .operation = "list_objects",
                                          .what = list->what,
                                          .right = list->right,
                                          .accept = METADATA_LIST,
                                          .flow = {.target = list->target},
                                          .take = object_list_take,
                                          .clear = object_list_clear,
                                          .done = object_list_on_pages,
                                          .context = list,
                                      });
}

/* ---- the kind's resource ---- */

static void object_list_find(struct object_list *list);

static void object_list_on_discovered(void *context, const struct as_outcome *failure)
{
    struct object_list *list = context;
    list->is_waiting = false;
    if (failure)
        object_list_finish_later(list, failure->message);
    else
        object_list_find(list);
}

static void object_list_find(struct object_list *list)
{
    struct as_kube_discovery *discovery = list->owner->discovery;
    const struct as_kube_resource *resource;
    struct as_outcome failure;
    switch (as_kube_discovery_find(discovery, list->api_version, list->kind, false, &resource,
                                   &failure)) {
    case AS_KUBE_FOUND:
        list->plural = as_arena_strdup(&list->texts, resource->plural);
        list->is_namespaced = resource->is_namespaced;
        (void)snprintf(list->right, sizeof(list->right), "%s%s%.*s: list", resource->plural,
                       as_kube_get_group_size(list->api_version) > 0 ? "." : "",
                       as_kube_get_group_size(list->api_version), list->api_version);
        object_list_request(list);
        break;
    case AS_KUBE_ASKING:
        list->waiter =
            (struct as_kube_discovery_waiter){.ready = object_list_on_discovered, .context = list};
        list->is_waiting = true;
        as_kube_discovery_wait(discovery, list->api_version, &list->waiter);
        break;
    case AS_KUBE_NOT_SCALABLE: object_list_finish_later(list, failure.message); break;
    }
}

/* ---- the call ---- */

static bool are_exact(const struct as_allowed *allowed)
{
    bool are = allowed->count > 0;
    for (size_t i = 0; i < allowed->count; i++)
        are = are && !strpbrk(allowed->items[i], "*?");
    return are;
}

static void object_list_set_namespaces(struct object_list *list,
                                       const struct as_target_config *entry)
{
    const struct as_allowed *allowed = &entry->allowed[AS_ALLOW_NAMESPACES];
    const char *plain = as_target_config_find_plain(entry, "namespace");
    list->namespace_count = !plain && are_exact(allowed) ? allowed->count : 1;
    list->namespaces =
        as_arena_alloc(&list->texts, list->namespace_count, sizeof(*list->namespaces));
    list->namespaces[0] = as_arena_strdup(&list->texts, plain ? plain : "");
    for (size_t i = 0; !plain && are_exact(allowed) && i < allowed->count; i++)
        list->namespaces[i] = as_arena_strdup(&list->texts, allowed->items[i]);
}

void as_object_list_start(struct as_object_lists *lists, uint64_t call_id,
                          const struct as_object_list_request *request, as_objects_listed_fn *done,
                          void *context)
{
    const struct as_target_config *entry = request->entry;
    struct object_list *list = as_xcalloc(1, sizeof(*list));
    list->owner = lists;
    list->call_id = call_id;
    list->done = done;
    list->context = context;
    list->error = AS_BUF_INIT(2 * AS_MESSAGE_SIZE);
    list->roles = AS_BUF_INIT(ROLES_MAX);
    list->texts = AS_ARENA_INIT;
    list->target = as_arena_strdup(&list->texts, entry->name);
    list->what = as_xasprintf("list the objects of target `%s`", entry->name);
    list->api_version =
        as_arena_strdup(&list->texts, as_target_config_find_plain(entry, "apiVersion"));
    list->kind = as_arena_strdup(&list->texts, as_target_config_find_plain(entry, "kind"));
    list->selector = as_arena_strdup(&list->texts, entry->list_selector);
    list->own_namespace = as_arena_strdup(&list->texts, request->own_namespace);
    object_list_set_namespaces(list, entry);
    LIST_INSERT_HEAD(&lists->calls, list, entry);
    object_list_find(list);
}

struct as_object_lists *as_object_lists_new(struct as_kube_client *client,
                                            struct as_kube_discovery *discovery)
{
    struct as_object_lists *lists = as_xcalloc(1, sizeof(*lists));
    lists->client = client;
    lists->discovery = discovery;
    LIST_INIT(&lists->calls);
    return lists;
}

struct as_object_lists *as_object_lists_free(struct as_object_lists *lists)
{
    struct object_list *list;
    while ((list = LIST_FIRST(&lists->calls)))
        object_list_free(list);
    free(lists);
    return NULL;
}
