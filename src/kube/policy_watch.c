/*
 * Watches of scaling policies: see the header.
 *
 * `wide` is the watch of all namespaces; without it, each namespace has a watch of its own. Spaces
 * are the namespaces that are known to be selected: those with a watch of their own, and with
 * `namespace_selector` those that the watch of namespaces has told. Events of `wide` in other
 * namespaces are dropped.
 *
 * A namespace that becomes selected later is listed once (`watch` of its space), because `wide` has
 * told its policies in vain. An event of `wide` during this list may be newer than the list, so the
 * list is then repeated. While `wide` lists, no space is listed or emptied: lists of all namespaces
 * never overlap with others.
 */
#include <alertscaler/kube/policy_watch.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/http/access_limits.h>
#include <alertscaler/rules/policy.h>

#include "kube_object.h"
#include "kube_watch.h"

#define GROUP_PATH  "/apis/" AS_POLICY_GROUP "/" AS_POLICY_VERSION
#define RELISTS_MAX 8 /* spaces that are listed beside `wide`, at a time */

enum space_state {
    SPACE_SETTLED, /* also each space with a watch of its own */
    SPACE_WAITING, /* to be listed beside `wide` */
    SPACE_LISTING, /* by `watch` */
    SPACE_RESTING, /* until `timer`; then the list is repeated */
    SPACE_GONE     /* no longer selected: to be emptied */
};

struct policy_space { /* one namespace */
    UT_hash_handle hh;
    TAILQ_ENTRY(policy_space) entry; /* WAITING, GONE */
    struct as_policy_watch *owner;
    enum space_state state;
    struct as_kube_watch *watch; /* its own, or NULL; with `wide`: of its list */
    struct as_timer *timer;
    uint64_t list; /* of namespaces: the last one that had it */
    unsigned repeats;
    bool is_touched; /* `wide` had an event while it was listed */
    char name[];
};

struct as_policy_watch {
    struct as_kube_client *client;
    const struct as_policy_watch_listener *listener;
    void *context;
    char **patterns; /* objects.namespaces; count 0: all */
    size_t pattern_count;
    char *selector;
    uint64_t seed;
    bool is_wide;
    bool selects_namespaces;          /* by their labels */
    struct as_kube_watch *wide;       /* NULL: no such watch, or no namespaces known yet */
    bool is_wide_listing;             /* from its start, or a new list, to the list's end */
    struct as_kube_watch *namespaces; /* NULL: none */
    uint64_t list;                    /* counts the lists of namespaces */
    struct policy_space *spaces;
    TAILQ_HEAD(, policy_space) waiting; /* WAITING, GONE */
    size_t listing, unsettled;          /* spaces that are LISTING, that are not SETTLED */
};

static void policy_watch_settle(struct as_policy_watch *watch);

/* ---- objects ---- */

struct policy_object { /* of which only the name is read */
    struct tree tree;
    const char *namespace, *name;
};

static void policy_object_deinit(struct policy_object *object)
{
    tree_deinit(&object->tree);
}

static int policy_object_read(struct policy_object *object, const char *bytes, size_t size,
                              struct as_error *error)
{
    static const struct tree_part names[] = {{.name = "namespace"}, {.name = "name"}, {0}};
    static const struct tree_part parts[] = {{.name = "metadata", .parts = names}, {0}};
    const int status = tree_parse(&object->tree, bytes, size, parts, error);
    if (status)
        return -EBADMSG;
    const struct tree_value *metadata = tree_find(object->tree.root, "metadata");
    object->namespace = tree_find_text(metadata, "namespace");
    object->name = tree_find_text(metadata, "name");
    if (!as_str_is_empty(object->name))
        return 0;
    as_error_set(error, "metadata.name: expected a name");
    return -EBADMSG;
}

#define POLICY_OBJECT_INIT ((struct policy_object){.tree = TREE_INIT(AS_KUBE_ITEM_MEMORY_MAX)})

/* ---- watches ---- */

static struct as_kube_watch *policy_watch_open(struct as_policy_watch *watch, const char *namespace,
                                               const struct as_kube_watch_listener *listener,
                                               void *context)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_KUBE_WATCH_PATH_MAX);
    as_buf_append_str(&path, GROUP_PATH);
    if (namespace) {
        as_buf_append_str(&path, "/namespaces");
        if (as_kube_path_append(&path, namespace) < 0)
            return NULL; /* "..": no namespace has this name */
    }
    as_buf_append_str(&path, "/" AS_POLICY_PLURAL);
    if (as_buf_check(&path) < 0)
        return NULL;
    const struct as_kube_watch_spec spec = {
        .path = path.data,
        .label_selector = watch->selector,
        .list_operation = "list_policies",
        .watch_operation = "watch_policies",
        .seed = watch->seed++,
    };
    return as_kube_watch_start(watch->client, &spec, listener, context);
}

static int policy_watch_tell(struct as_policy_watch *watch, enum as_kube_verb verb,
                             const struct policy_object *object, const char *bytes, size_t size)
{
    if (verb == AS_KUBE_DELETED)
        watch->listener->removed(watch->context, object->namespace, object->name);
    else
        watch->listener->put(watch->context, bytes, size);
    return 0;
}

static void tell_failure(struct as_policy_watch *watch, const char *message)
{
    watch->listener->failed(watch->context, message);
}

/* ---- spaces ---- */

static struct policy_space *space_find(const struct as_policy_watch *watch, const char *name)
{
    struct policy_space *space;
    HASH_FIND_STR(watch->spaces, name, space);
    return space;
}

static struct policy_space *space_new(struct as_policy_watch *watch, const char *name)
{
    const size_t size = strlen(name) + 1;
    struct policy_space *space = as_xcalloc(1, sizeof(*space) + size);
    space->owner = watch;
    memcpy(space->name, name, size);
    HASH_ADD_STR(watch->spaces, name, space);
    return space;
}

static bool policy_is_waiting(enum space_state state)
{
    return state == SPACE_WAITING || state == SPACE_GONE;
}

/* Ends what it did before. */
static void space_set(struct policy_space *space, enum space_state state)
{
    struct as_policy_watch *watch = space->owner;
    struct as_loop *loop = watch->client->env->loop;
    if (policy_is_waiting(space->state))
        TAILQ_REMOVE(&watch->waiting, space, entry);
    watch->listing -= space->state == SPACE_LISTING;
    watch->unsettled -= space->state != SPACE_SETTLED;
    space->watch = as_kube_watch_stop(space->watch);
    if (space->timer)
        loop->cancel_timer(loop, space->timer);
    space->timer = NULL;
    space->state = state;
    watch->unsettled += state != SPACE_SETTLED;
    watch->listing += state == SPACE_LISTING;
    if (state == SPACE_GONE)
        TAILQ_INSERT_HEAD(&watch->waiting, space, entry);
    else if (policy_is_waiting(state))
        TAILQ_INSERT_TAIL(&watch->waiting, space, entry);
}

static void space_free(struct policy_space *space)
{
    space_set(space, SPACE_SETTLED);
    HASH_DEL(space->owner->spaces, space);
    free(space);
}

static void space_list_begin(void *context)
{
    const struct policy_space *space = context;
    space->owner->listener->list_begin(space->owner->context, space->name);
}

static int space_object(void *context, enum as_kube_verb verb, enum as_kube_form form,
                        const char *bytes, size_t size, struct as_error *error)
{
    const struct policy_space *space = context;
    AS_CLEANUP(policy_object_deinit) struct policy_object object = POLICY_OBJECT_INIT;
    (void)form; /* JSON: nothing else is requested */
    const int status = policy_object_read(&object, bytes, size, error);
    object.namespace = space->name;
    return status ? status : policy_watch_tell(space->owner, verb, &object, bytes, size);
}

static void space_repeat(void *context)
{
    struct policy_space *space = context;
    space->timer = NULL;
    space_set(space, SPACE_WAITING);
    policy_watch_settle(space->owner);
}

/* 1 s, doubling up to 30 s: policies that change all the time must not be listed all the time. */
static void space_repeat_later(struct policy_space *space)
{
    struct as_loop *loop = space->owner->client->env->loop;
    int64_t us = AS_KUBE_WATCH_RETRY_US;
    for (unsigned i = 0; i < space->repeats && us < AS_KUBE_WATCH_RETRY_MAX_US; i++)
        us *= 2;
    us = us < AS_KUBE_WATCH_RETRY_MAX_US ? us : AS_KUBE_WATCH_RETRY_MAX_US;
    space->repeats++;
    space_set(space, SPACE_RESTING);
    space->timer = loop->start_timer(loop, us, space_repeat, space);
}

static void space_list_end(void *context, const char *resource_version)
{
    struct policy_space *space = context;
    struct as_policy_watch *watch = space->owner;
    (void)resource_version;
    watch->listener->list_end(watch->context, space->name);
    if (!watch->is_wide)
        return;
    if (space->is_touched)
        space_repeat_later(space);
    else
        space_set(space, SPACE_SETTLED);
    policy_watch_settle(watch);
}

static void space_failed(void *context, const char *message)
{
    tell_failure(((struct policy_space *)context)->owner, message);
}

static const struct as_kube_watch_listener space_listener = {space_list_begin, space_object,
                                                             space_list_end, space_failed};

static void space_start(struct policy_space *space)
{
    space->is_touched = false;
    space->watch = policy_watch_open(space->owner, space->name, &space_listener, space);
}

static void space_empty(struct policy_space *space)
{
    const struct as_policy_watch *watch = space->owner;
    watch->listener->list_begin(watch->context, space->name);
    watch->listener->list_end(watch->context, space->name);
    space_free(space);
}

/* Starts and ends what waited, unless `wide` lists. */
static void policy_watch_settle(struct as_policy_watch *watch)
{
    struct policy_space *space, *next;
    if (!watch->wide || watch->is_wide_listing)
        return;
    TAILQ_FOREACH_SAFE (space, &watch->waiting, entry, next) {
        if (space->state == SPACE_GONE) {
            space_empty(space);
        } else if (watch->listing < RELISTS_MAX) {
            space_set(space, SPACE_LISTING);
            space_start(space);
        } else {
            return;
        }
    }
}

/* ---- all namespaces ---- */

static bool policy_watch_has_name(const struct as_policy_watch *watch, const char *namespace)
{
    for (size_t i = 0; i < watch->pattern_count; i++)
        if (as_str_glob(watch->patterns[i], namespace))
            return true;
    return watch->pattern_count == 0;
}

/* All spaces are in the list. */
static void wide_list_begin(void *context)
{
    struct as_policy_watch *watch = context;
    struct policy_space *space, *next;
    watch->is_wide_listing = true;
    HASH_ITER (hh, watch->spaces, space, next) {
        if (space->state == SPACE_GONE)
            space_free(space);
        else
            space_set(space, SPACE_SETTLED);
    }
    watch->listener->list_begin(watch->context, NULL);
}

static int wide_object(void *context, enum as_kube_verb verb, enum as_kube_form form,
                       const char *bytes, size_t size, struct as_error *error)
{
    struct as_policy_watch *watch = context;
    AS_CLEANUP(policy_object_deinit) struct policy_object object = POLICY_OBJECT_INIT;
    (void)form;
    int status = policy_object_read(&object, bytes, size, error);
    if (status == 0 && as_str_is_empty(object.namespace)) {
        as_error_set(error, "metadata.namespace: expected a name");
        status = -EBADMSG;
    }
    if (status)
        return status;
    if (watch->selects_namespaces) {
        struct policy_space *space = space_find(watch, object.namespace);
        if (!space || space->state == SPACE_GONE)
            return 0;
        space->is_touched = true;
    } else if (!policy_watch_has_name(watch, object.namespace)) {
        return 0;
    }
    return policy_watch_tell(watch, verb, &object, bytes, size);
}

static void wide_list_end(void *context, const char *resource_version)
{
    struct as_policy_watch *watch = context;
    (void)resource_version;
    watch->is_wide_listing = false;
    watch->listener->list_end(watch->context, NULL);
    policy_watch_settle(watch);
}

static void wide_failed(void *context, const char *message)
{
    tell_failure(context, message);
}

static const struct as_kube_watch_listener wide_listener = {wide_list_begin, wide_object,
                                                            wide_list_end, wide_failed};

static void wide_start(struct as_policy_watch *watch)
{
    watch->is_wide_listing = true;
    watch->wide = policy_watch_open(watch, NULL, &wide_listener, watch);
}

/* ---- namespaces by their labels ---- */

static void policy_namespace_add(struct as_policy_watch *watch, struct policy_space *space,
                                 const char *name)
{
    if (space && space->state != SPACE_GONE)
        return;
    space = space ? space : space_new(watch, name);
    space->repeats = 0;
    if (watch->is_wide)
        space_set(space, SPACE_WAITING);
    else
        space_start(space);
}

static void policy_namespace_remove(struct as_policy_watch *watch, struct policy_space *space)
{
    if (watch->is_wide)
        space_set(space, SPACE_GONE);
    else
        space_empty(space);
}

static void namespaces_list_begin(void *context)
{
    ((struct as_policy_watch *)context)->list++;
}

static int namespaces_object(void *context, enum as_kube_verb verb, enum as_kube_form form,
                             const char *bytes, size_t size, struct as_error *error)
{
    struct as_policy_watch *watch = context;
    AS_CLEANUP(policy_object_deinit) struct policy_object object = POLICY_OBJECT_INIT;
    (void)form;
    const int status = policy_object_read(&object, bytes, size, error);
    if (status || !policy_watch_has_name(watch, object.name))
        return status;
    struct policy_space *space = space_find(watch, object.name);
    if (verb != AS_KUBE_DELETED && !space &&
        HASH_COUNT(watch->spaces) >= AS_POLICY_NAMESPACES_MAX) {
        as_error_set(error, "more than %d namespaces are selected", AS_POLICY_NAMESPACES_MAX);
        return -E2BIG;
    }
    if (verb != AS_KUBE_DELETED)
        policy_namespace_add(watch, space, object.name);
    else if (space)
        policy_namespace_remove(watch, space);
    space = space_find(watch, object.name);
    if (space)
        space->list = watch->list;
    policy_watch_settle(watch);
    return 0;
}

static void namespaces_list_end(void *context, const char *resource_version)
{
    struct as_policy_watch *watch = context;
    struct policy_space *space, *next;
    (void)resource_version;
    HASH_ITER (hh, watch->spaces, space, next) {
        if (space->list != watch->list && space->state != SPACE_GONE)
            policy_namespace_remove(watch, space);
    }
    if (watch->is_wide && !watch->wide)
        wide_start(watch);
    else
        policy_watch_settle(watch);
}

static const struct as_kube_watch_listener namespaces_listener = {
    namespaces_list_begin, namespaces_object, namespaces_list_end, wide_failed};

/* ---- the watch ---- */

static bool has_wildcard(const char *pattern)
{
    return strpbrk(pattern, "*?") != NULL;
}

static void policy_watch_start_all(struct as_policy_watch *watch, const char *namespace_selector)
{
    const struct as_kube_watch_spec spec = {
        .path = "/api/v1/namespaces",
        .label_selector = namespace_selector,
        .list_operation = "list_namespaces",
        .watch_operation = "watch_namespaces",
        .seed = watch->seed++,
    };
    if (watch->selects_namespaces)
        watch->namespaces = as_kube_watch_start(watch->client, &spec, &namespaces_listener, watch);
    else if (watch->is_wide)
        wide_start(watch);
    for (size_t i = 0; !watch->selects_namespaces && !watch->is_wide && i < watch->pattern_count;
         i++)
        if (!space_find(watch, watch->patterns[i]))
            space_start(space_new(watch, watch->patterns[i]));
}

struct as_policy_watch *as_policy_watch_start(struct as_kube_client *client,
                                              const struct as_object_settings *settings,
                                              uint64_t seed,
                                              const struct as_policy_watch_listener *listener,
                                              void *context)
{
    struct as_policy_watch *watch = as_xcalloc(1, sizeof(*watch));
    watch->client = client;
    watch->listener = listener;
    watch->context = context;
    watch->seed = seed;
    TAILQ_INIT(&watch->waiting);
    watch->selector = settings->selector ? as_xstrdup(settings->selector) : NULL;
    watch->selects_namespaces = settings->namespace_selector != NULL;
    watch->is_wide = settings->namespace_count == 0;
    watch->pattern_count = settings->namespace_count;
    watch->patterns = as_xcalloc(settings->namespace_count + 1, sizeof(*watch->patterns));
    for (size_t i = 0; i < settings->namespace_count; i++) {
        watch->patterns[i] = as_xstrdup(settings->namespaces[i]);
        watch->is_wide = watch->is_wide || has_wildcard(settings->namespaces[i]);
    }
    policy_watch_start_all(watch, settings->namespace_selector);
    return watch;
}

struct as_policy_watch *as_policy_watch_stop(struct as_policy_watch *watch)
{
    struct policy_space *space, *next;
    if (!watch)
        return NULL;
    as_kube_watch_stop(watch->namespaces);
    as_kube_watch_stop(watch->wide);
    HASH_ITER (hh, watch->spaces, space, next)
        space_free(space);
    for (size_t i = 0; i < watch->pattern_count; i++)
        free(watch->patterns[i]);
    free(watch->patterns);
    free(watch->selector);
    free(watch);
    return NULL;
}

bool as_policy_watch_is_synced(const struct as_policy_watch *watch)
{
    if (watch->selects_namespaces && !as_kube_watch_is_synced(watch->namespaces))
        return false;
    if (watch->is_wide)
        return watch->wide && as_kube_watch_is_synced(watch->wide) && watch->unsettled == 0;
    for (const struct policy_space *space = watch->spaces; space; space = space->hh.next)
        if (space->watch && !as_kube_watch_is_synced(space->watch))
            return false;
    return true;
}
