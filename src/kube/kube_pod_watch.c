/*
 * Watches of pods, one for each namespace, and their pods by name. A pod is decoded by the function
 * that decodes lists; beside its values only its labels are kept.
 *
 * A namespace answers while its watch is synced, the last event or bookmark is younger than the
 * limit of the facts about nodes (AS_CLUSTER_WATCH_FRESH_US), and the API server does not refuse
 * the watch. A pod that cannot be decoded is kept by its labels alone: an answer with this pod is
 * left to the list, which reports the error.
 *
 * Memory is limited for all namespaces of a cluster together. A namespace whose pods do not fit, or
 * whose watch is refused, is not watched for AS_POD_WATCH_CLOSED_US.
 */
#include "kube_pod_watch.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/kube/cluster_watch.h>

#include "kube_object.h"
#include "kube_watch.h"

/* ---- selectors ---- */

/* The operators of a workload's selector. The API server also has > and <, which are left to it.
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors */
enum selector_operator {
    SELECTOR_IN,     /* also = and == */
    SELECTOR_NOT_IN, /* also !=; a pod without the label matches */
    SELECTOR_EXISTS,
    SELECTOR_ABSENT,
};

struct selector_term {
    enum selector_operator operator;
    const char *key;
    const char **values;
    size_t count;
};

struct selector {
    struct as_arena texts;
    bool has_bad_word;
    struct selector_term *terms;
    size_t count, capacity;
};

static void selector_deinit(struct selector *selector)
{
    for (size_t i = 0; i < selector->count; i++)
        free(selector->terms[i].values);
    free(selector->terms);
    as_arena_deinit(&selector->texts);
}

static void selector_skip_space(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool pod_watch_is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Of a key or a value. What the API server refuses for another reason does not come from it. */
static bool selector_is_word(const char *word, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!pod_watch_is_alphanumeric(word[i]) && !strchr("-_./", word[i]))
            return false;
    return size == 0 ||
           (pod_watch_is_alphanumeric(word[0]) && pod_watch_is_alphanumeric(word[size - 1]));
}

/* The next word, which may be empty. */
static const char *selector_read_word(struct selector *selector, const char **at)
{
    selector_skip_space(at);
    const size_t size = strcspn(*at, " \t\r\n,()!=<>");
    AS_CLEANUP(as_free_p) char *word = as_xstrndup(*at, size);
    selector->has_bad_word = selector->has_bad_word || !selector_is_word(word, size);
    *at += size;
    selector_skip_space(at);
    return as_arena_strdup(&selector->texts, word);
}

static bool selector_skip(const char **at, const char *text)
{
    if (strncmp(*at, text, strlen(text)) != 0)
        return false;
    *at += strlen(text);
    return true;
}

static void selector_add_value(struct selector_term *term, const char *value)
{
    term->values = as_xrealloc_array(term->values, term->count + 1, sizeof(*term->values));
    term->values[term->count++] = value;
}

/* "(a, b)" */
static bool selector_read_values(struct selector *selector, struct selector_term *term,
                                 const char **at)
{
    if (!selector_skip(at, "("))
        return false;
    do
        selector_add_value(term, selector_read_word(selector, at));
    while (selector_skip(at, ","));
    return selector_skip(at, ")");
}

static bool selector_read_term(struct selector *selector, struct selector_term *term,
                               const char **at)
{
    static const struct {
        const char *sign;
        enum selector_operator operator;
    } signs[] = {{"==", SELECTOR_IN}, {"=", SELECTOR_IN}, {"!=", SELECTOR_NOT_IN}};
    selector_skip_space(at);
    const bool is_absent = selector_skip(at, "!");
    term->operator= is_absent ? SELECTOR_ABSENT : SELECTOR_EXISTS;
    term->key = selector_read_word(selector, at);
    if (!*term->key)
        return false;
    if (is_absent || !**at || **at == ',')
        return true;
    for (size_t i = 0; i < AS_ARRAY_SIZE(signs); i++) {
        if (!selector_skip(at, signs[i].sign))
            continue;
        term->operator= signs[i].operator;
        selector_add_value(term, selector_read_word(selector, at));
        return true;
    }
    const char *word = selector_read_word(selector, at);
    term->operator= as_str_equal(word, "in") ? SELECTOR_IN : SELECTOR_NOT_IN;
    return (as_str_equal(word, "in") || as_str_equal(word, "notin")) &&
           selector_read_values(selector, term, at);
}

/* False: the text is not understood, and the API server decides on it. */
static bool selector_read(struct selector *selector, const char *text)
{
    do {
        struct selector_term term = {.values = NULL};
        const bool is_good = selector_read_term(selector, &term, &text);
        selector->terms = as_xgrow(selector->terms, selector->count, &selector->capacity,
                                   sizeof(*selector->terms));
        selector->terms[selector->count++] = term;
        selector_skip_space(&text);
        if (!is_good || selector->has_bad_word)
            return false;
    } while (selector_skip(&text, ","));
    return !*text;
}

/* `value`: of the label; NULL: the pod has no such label. */
static bool selector_term_matches(const struct selector_term *term, const char *value)
{
    bool is_among = false;
    for (size_t i = 0; value && i < term->count && !is_among; i++)
        is_among = strcmp(term->values[i], value) == 0;
    switch (term->operator) {
    case SELECTOR_IN: return is_among;
    case SELECTOR_NOT_IN: return !is_among;
    case SELECTOR_EXISTS: return value != NULL;
    case SELECTOR_ABSENT: return value == NULL;
    }
    return false;
}

/* ---- pods of a namespace ---- */

struct watched_pod {
    RB_ENTRY(watched_pod) link;           /* by name */
    struct as_pod_seen seen;              /* its name is `texts`; its containers are owned */
    struct as_kube_controller controller; /* its texts are in `texts` */
    bool is_unreadable;
    uint64_t list; /* the last one that told of the pod */
    size_t bytes;
    size_t label_count;
    char texts[]; /* the name; then the key and the value of each label; the controller's */
};

RB_HEAD(watched_pods, watched_pod);

struct pod_scope { /* one namespace */
    TAILQ_ENTRY(pod_scope) entry;
    struct as_pod_watches *owner;
    char *namespace_;
    struct as_kube_watch *watch; /* NULL: closed */
    struct watched_pods pods;
    uint64_t list; /* counts the lists */
    as_mono_time used_at;
    as_mono_time closed_until;
};

struct needy {         /* a target that needs its pods */
    UT_hash_handle hh; /* by id */
    TAILQ_ENTRY(needy) entry;
    as_mono_time at;
    char id[];
};

struct as_pod_watches {
    struct as_kube_client *client;
    TAILQ_HEAD(, pod_scope) scopes;
    size_t scope_count;
    size_t bytes; /* of the pods of all scopes */
    struct needy *by_id;
    TAILQ_HEAD(needy_list, needy) by_time; /* the first: for the longest time not needed */
    struct as_timer *timer;                /* while there are scopes */
    bool has_warned;
};

static int watched_pod_compare(const struct watched_pod *a, const struct watched_pod *b)
{
    return strcmp(a->seen.name, b->seen.name);
}

RB_GENERATE_INTERNAL(watched_pods, watched_pod, link, watched_pod_compare,
                     __attribute__((unused)) static)

static as_mono_time pod_watch_get_now(const struct as_pod_watches *watches)
{
    const struct as_clock *clock = watches->client->env->clock;
    return clock->get_mono(clock);
}

static struct watched_pod *pod_scope_find(struct pod_scope *scope, const char *name)
{
    return RB_FIND(watched_pods, &scope->pods, &(struct watched_pod){.seen = {.name = name}});
}

static void pod_scope_drop(struct pod_scope *scope, struct watched_pod *pod)
{
    RB_REMOVE(watched_pods, &scope->pods, pod);
    scope->owner->bytes -= pod->bytes;
    free((void *)(uintptr_t)pod->seen.containers);
    free(pod);
}

static void pod_scope_clear(struct pod_scope *scope)
{
    struct watched_pod *pod, *next;
    RB_FOREACH_SAFE (pod, watched_pods, &scope->pods, next)
        pod_scope_drop(scope, pod);
}

static size_t get_text_size(const struct tree_value *text)
{
    return text->size + 1;
}

/* The bytes of the labels with their NULs; 0, or -EBADMSG. */
static int pod_watch_measure_labels(const struct tree_value *labels, size_t *size_out,
                                    struct as_error *error)
{
    *size_out = 0;
    for (const struct tree_value *label = labels ? labels->first : NULL; label;
         label = label->next) {
        if (label->kind != TREE_TEXT) {
            as_error_set(error, "metadata.labels: expected strings");
            return -EBADMSG;
        }
        *size_out += label->name_size + 1 + get_text_size(label);
    }
    return 0;
}

static char *pod_watch_append_text(char *at, const char *text, size_t size)
{
    memcpy(at, text, size);
    at[size] = '\0';
    return at + size + 1;
}

static size_t controller_get_size(const struct as_kube_controller *controller)
{
    return strlen(controller->api_version) + strlen(controller->kind) + strlen(controller->name) +
           strlen(controller->uid) + 4;
}

static void controller_copy(const struct as_kube_controller *controller, char *at,
                            struct as_kube_controller *copy_out)
{
    const struct {
        const char *text, **copy;
    } texts[] = {{controller->api_version, &copy_out->api_version},
                 {controller->kind, &copy_out->kind},
                 {controller->name, &copy_out->name},
                 {controller->uid, &copy_out->uid}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        *texts[i].copy = at;
        at = pod_watch_append_text(at, texts[i].text, strlen(texts[i].text));
    }
}

static const char *find_label(const struct watched_pod *pod, const char *key)
{
    const char *at = pod->texts + strlen(pod->texts) + 1;
    for (size_t i = 0; i < pod->label_count; i++) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, key) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

static bool pod_is_selected(const struct watched_pod *pod, const struct selector *selector)
{
    for (size_t i = 0; i < selector->count; i++)
        if (!selector_term_matches(&selector->terms[i], find_label(pod, selector->terms[i].key)))
            return false;
    return true;
}

static int pod_scope_put(struct pod_scope *scope, const struct tree_value *item,
                         const struct tree_value *labels, const char *name, struct as_error *error)
{
    struct as_pod_watches *watches = scope->owner;
    struct as_pod_seen seen = {.name = NULL};
    size_t label_size;
    const int status = pod_watch_measure_labels(labels, &label_size, error);
    if (status)
        return status;
    AS_CLEANUP(as_arena_deinit) struct as_arena scratch = AS_ARENA_INIT;
    struct as_kube_controller controller = {"", "", "", ""};
    const bool is_unreadable = as_kube_pod_read(item, &scratch, &seen, &controller, NULL) != 0;
    const size_t size = sizeof(struct watched_pod) + strlen(name) + 1 + label_size +
                        controller_get_size(&controller);
    const size_t container_size = as_containers_get_size(&seen);
    const size_t bytes = size + container_size;
    if (bytes > AS_POD_WATCH_BYTES - watches->bytes) {
        as_error_set(error, "the pods take more than %zu bytes", AS_POD_WATCH_BYTES);
        return -E2BIG;
    }
    struct watched_pod *pod = as_xmalloc(size);
    *pod = (struct watched_pod){.seen = seen,
                                .is_unreadable = is_unreadable,
                                .list = scope->list,
                                .bytes = bytes,
                                .label_count = labels ? labels->size : 0};
    char *at = pod_watch_append_text(pod->texts, name, strlen(name));
    for (const struct tree_value *label = labels ? labels->first : NULL; label;
         label = label->next) {
        at = pod_watch_append_text(at, label->name, label->name_size);
        at = pod_watch_append_text(at, label->text, label->size);
    }
    pod->seen.name = pod->texts;
    controller_copy(&controller, at, &pod->controller);
    if (seen.container_count > 0)
        pod->seen.containers = as_containers_copy(&seen, as_xmalloc(container_size));
    RB_INSERT(watched_pods, &scope->pods, pod);
    watches->bytes += bytes;
    return 0;
}

/* ---- watches ---- */

static void pod_watches_tidy(void *context);

static void pod_watches_plan(struct as_pod_watches *watches, int64_t us)
{
    struct as_loop *loop = watches->client->env->loop;
    if (watches->timer)
        loop->cancel_timer(loop, watches->timer);
    watches->timer = loop->start_timer(loop, us, pod_watches_tidy, watches);
}

/* Lists go on. The reason is logged once. */
static void pod_scope_close(struct pod_scope *scope, const char *why)
{
    struct as_pod_watches *watches = scope->owner;
    if (!watches->has_warned)
        as_log(AS_LOG_WARN, "pods cannot be watched: they are listed for each evaluation",
               AS_F("namespace", scope->namespace_), AS_F("error", why));
    watches->has_warned = true;
    scope->closed_until.us = pod_watch_get_now(watches).us + AS_POD_WATCH_CLOSED_US;
    pod_watches_plan(watches, 0); /* stops the watch: here the watch may still be in use */
}

static void pod_list_begin(void *context)
{
    ((struct pod_scope *)context)->list++;
}

static int pod_watch_object(void *context, enum as_kube_verb verb, enum as_kube_form form,
                            const char *bytes, size_t size, struct as_error *error)
{
    struct pod_scope *scope = context;
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_KUBE_ITEM_MEMORY_MAX);
    struct as_reader root, metadata, labels;
    (void)form; /* JSON was asked for */
    int status = tree_load_object(&tree, bytes, size, error);
    if (status)
        return status;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_object(&labels, &metadata, "labels");
    const char *name = kube_object_read_name(&metadata, "name", AS_KUBE_POD_NAME_MAX, "name");
    if ((status = as_read_result(&root)))
        return status;
    struct watched_pod *former = pod_scope_find(scope, name);
    if (former)
        pod_scope_drop(scope, former);
    if (verb == AS_KUBE_DELETED)
        return 0;
    status = pod_scope_put(scope, tree.root, labels.object, name, error);
    if (status == -E2BIG)
        pod_scope_close(scope, error->text);
    return status;
}

static void pod_list_end(void *context, const char *resource_version)
{
    struct pod_scope *scope = context;
    struct watched_pod *pod, *next;
    (void)resource_version;
    RB_FOREACH_SAFE (pod, watched_pods, &scope->pods, next)
        if (pod->list != scope->list)
            pod_scope_drop(scope, pod);
}

static void pod_watch_failed(void *context, const char *message)
{
    struct pod_scope *scope = context;
    if (as_kube_watch_is_forbidden(scope->watch))
        pod_scope_close(scope, message);
}

static const struct as_kube_watch_listener pod_listener = {pod_list_begin, pod_watch_object,
                                                           pod_list_end, pod_watch_failed};

static void pod_scope_stop(struct pod_scope *scope)
{
    scope->watch = as_kube_watch_stop(scope->watch);
    pod_scope_clear(scope);
}

static void pod_scope_free(struct pod_scope *scope)
{
    struct as_pod_watches *watches = scope->owner;
    pod_scope_stop(scope);
    TAILQ_REMOVE(&watches->scopes, scope, entry);
    watches->scope_count--;
    free(scope->namespace_);
    free(scope);
}

static void pod_scope_start(struct pod_scope *scope)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_append_str(&path, "/api/v1/namespaces");
    if (as_kube_path_append(&path, scope->namespace_) < 0)
        return; /* the list refuses it, too */
    as_buf_append_str(&path, "/pods");
    if (as_buf_check(&path) < 0)
        return;
    const struct as_kube_watch_spec spec = {
        .path = path.data,
        .list_operation = "list_pods",
        .watch_operation = "watch_pods",
        .seed = (uint64_t)pod_watch_get_now(scope->owner).us + scope->owner->scope_count,
    };
    scope->watch = as_kube_watch_start(scope->owner->client, &spec, &pod_listener, scope);
}

static void needy_forget(struct as_pod_watches *watches, struct needy *needy)
{
    HASH_DEL(watches->by_id, needy);
    TAILQ_REMOVE(&watches->by_time, needy, entry);
    free(needy);
}

static size_t count_needy(struct as_pod_watches *watches)
{
    const as_mono_time now = pod_watch_get_now(watches);
    struct needy *oldest;
    while ((oldest = TAILQ_FIRST(&watches->by_time)) &&
           now.us - oldest->at.us >= AS_POD_WATCH_KEEP_US)
        needy_forget(watches, oldest);
    return HASH_COUNT(watches->by_id);
}

static void needy_note(struct as_pod_watches *watches, const char *id)
{
    struct needy *needy;
    HASH_FIND_STR(watches->by_id, id, needy);
    if (needy) {
        TAILQ_REMOVE(&watches->by_time, needy, entry);
    } else {
        const size_t size = strlen(id) + 1;
        needy = as_xcalloc(1, sizeof(*needy) + size);
        memcpy(needy->id, id, size);
        HASH_ADD_STR(watches->by_id, id, needy);
    }
    needy->at = pod_watch_get_now(watches);
    TAILQ_INSERT_TAIL(&watches->by_time, needy, entry);
}

/* Ends watches that are not needed, or are closed. */
static void pod_watches_tidy(void *context)
{
    struct as_pod_watches *watches = context;
    const as_mono_time now = pod_watch_get_now(watches);
    const bool are_needed = count_needy(watches) > AS_POD_WATCH_TARGETS;
    struct pod_scope *scope, *next;
    watches->timer = NULL;
    TAILQ_FOREACH_SAFE (scope, &watches->scopes, entry, next) {
        if (!are_needed || now.us - scope->used_at.us >= AS_POD_WATCH_KEEP_US)
            pod_scope_free(scope);
        else if (scope->closed_until.us > now.us)
            pod_scope_stop(scope);
    }
    if (!TAILQ_EMPTY(&watches->scopes))
        pod_watches_plan(watches, AS_US_PER_MIN);
}

/* ---- answers ---- */

/* NULL: too many namespaces are watched. */
static struct pod_scope *pod_scope_get(struct as_pod_watches *watches, const char *namespace_)
{
    struct pod_scope *scope;
    TAILQ_FOREACH (scope, &watches->scopes, entry)
        if (strcmp(scope->namespace_, namespace_) == 0)
            return scope;
    if (watches->scope_count == AS_POD_WATCH_NAMESPACES)
        return NULL;
    scope = as_xcalloc(1, sizeof(*scope));
    scope->owner = watches;
    scope->namespace_ = as_xstrdup(namespace_);
    scope->closed_until.us = INT64_MIN;
    RB_INIT(&scope->pods);
    TAILQ_INSERT_TAIL(&watches->scopes, scope, entry);
    watches->scope_count++;
    return scope;
}

static bool pod_scope_is_fresh(const struct pod_scope *scope, as_mono_time now)
{
    return scope->watch && scope->closed_until.us <= now.us &&
           as_kube_watch_is_synced(scope->watch) &&
           now.us - as_kube_watch_get_confirmed_at(scope->watch).us < AS_CLUSTER_WATCH_FRESH_US;
}

static bool pod_scope_collect(struct pod_scope *scope, const struct selector *selector,
                              struct as_kube_pods *pods)
{
    struct watched_pod *pod;
    RB_FOREACH (pod, watched_pods, &scope->pods) {
        if (!pod_is_selected(pod, selector))
            continue;
        if (pod->is_unreadable || as_kube_pods_add(pods, &pod->seen, &pod->controller, NULL) != 0)
            return false;
    }
    return true;
}

bool as_pod_watches_find(struct as_pod_watches *watches, const char *target, const char *namespace_,
                         const char *selector, struct as_kube_pods *pods)
{
    const as_mono_time now = pod_watch_get_now(watches);
    AS_CLEANUP(selector_deinit) struct selector parsed = {.texts = AS_ARENA_INIT};
    needy_note(watches, target);
    if (count_needy(watches) <= AS_POD_WATCH_TARGETS)
        return false;
    struct pod_scope *scope = pod_scope_get(watches, namespace_);
    if (!scope)
        return false;
    scope->used_at = now;
    if (!watches->timer)
        pod_watches_plan(watches, AS_US_PER_MIN);
    if (!scope->watch && scope->closed_until.us <= now.us)
        pod_scope_start(scope);
    if (!pod_scope_is_fresh(scope, now) || !selector_read(&parsed, selector))
        return false;
    if (pod_scope_collect(scope, &parsed, pods)) {
        as_kube_pods_finish(pods);
        return true;
    }
    as_kube_pods_clear(pods);
    return false;
}

struct as_pod_watches *as_pod_watches_new(struct as_kube_client *client)
{
    struct as_pod_watches *watches = as_xcalloc(1, sizeof(*watches));
    watches->client = client;
    TAILQ_INIT(&watches->scopes);
    TAILQ_INIT(&watches->by_time);
    return watches;
}

struct as_pod_watches *as_pod_watches_free(struct as_pod_watches *watches)
{
    if (!watches)
        return NULL;
    struct as_loop *loop = watches->client->env->loop;
    struct pod_scope *scope;
    struct needy *needy;
    if (watches->timer)
        loop->cancel_timer(loop, watches->timer);
    while ((scope = TAILQ_FIRST(&watches->scopes)))
        pod_scope_free(scope);
    while ((needy = TAILQ_FIRST(&watches->by_time)))
        needy_forget(watches, needy);
    free(watches);
    return NULL;
}
