/*
 * Conflicting writers: what else sizes the targets of a cluster. HPAs and KEDA's ScaledObjects are
 * listed for each namespace with targets; the managedFields of an object name the last writer of
 * its size. Nothing is changed here, and no decision depends on a list that fails.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube_object.h"
#include "kube_writers.h"

/* The targets that were observed in a namespace, each with the time of its last observation. */

struct noted_target;

struct noted { /* starts as zeros */
    struct noted_target *first;
    size_t count;
};

/* The codecs. */

#define HPA_MIN           1 /* what the API takes where nothing is said */
#define SCALED_OBJECT_MAX 100
#define NAME_MAX_BYTES    253 /* a DNS subdomain */

void as_kube_others_clear(struct as_kube_others *others)
{
    others->count = 0;
    as_arena_reset(&others->texts);
}

void as_kube_others_deinit(struct as_kube_others *others)
{
    free(others->items);
    as_arena_deinit(&others->texts);
    *others = (struct as_kube_others){.max = others->max, .texts = AS_ARENA_INIT};
}

struct form { /* what differs between the two kinds */
    const char *min, *max;
    int32_t min_absent, max_absent;
    const char *api_version, *kind; /* of the reference, where nothing is said */
    void (*read_more)(const struct tree_value *metadata, struct as_kube_other *other);
};

static int32_t others_codec_get_size(const struct tree_value *spec, const char *name,
                                     int32_t absent)
{
    int64_t size;
    return tree_get_i64(tree_find(spec, name), 0, INT32_MAX, &size) ? (int32_t)size : absent;
}

static const char *others_codec_find_owner(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));
    for (; owner; owner = owner->next) {
        if (as_str_equal(tree_find_text(owner, "kind"), "ScaledObject"))
            return tree_find_text(owner, "name");
    }
    return NULL;
}

/* KEDA reads it as Go's strconv.ParseBool; what is no bool counts as true. */
static bool is_false(const char *text)
{
    static const char *const words[] = {"0", "f", "F", "false", "False", "FALSE"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

/* Paused by annotations: at the size that one of them names, or at the present size. */
static void read_pause(const struct tree_value *metadata, struct as_kube_other *other)
{
    const struct tree_value *notes = tree_find(metadata, "annotations");
    const char *paused = tree_find_text(notes, "autoscaling.keda.sh/paused");
    const char *fixed = tree_find_text(notes, "autoscaling.keda.sh/paused-replicas");
    int64_t size;
    other->is_paused = fixed || (paused && !is_false(paused));
    if (fixed && as_number_parse_i64(fixed, strlen(fixed), &size) == 0 && size >= 0 &&
        size <= INT32_MAX)
        other->min = other->max = (int32_t)size;
}

static const struct form hpa = {.min = "minReplicas",
                                .max = "maxReplicas",
                                .min_absent = HPA_MIN,
                                .max_absent = -1,
                                .api_version = "",
                                .kind = ""};
static const struct form scaled_object = {.min = "minReplicaCount",
                                          .max = "maxReplicaCount",
                                          .max_absent = SCALED_OBJECT_MAX,
                                          .api_version = "apps/v1",
                                          .kind = "Deployment",
                                          .read_more = read_pause};

static const char *others_codec_keep(struct as_kube_others *others, const char *text)
{
    return as_arena_strdup(&others->texts, text ? text : "");
}

/* "apps/v1" -> "apps"; "v1" -> "", the core's */
static const char *keep_group(struct as_kube_others *others, const char *version)
{
    const char *slash = strchr(version, '/');
    const size_t size = slash ? (size_t)(slash - version) : 0;
    char *group = as_arena_alloc(&others->texts, size + 1, 1);
    memcpy(group, version, size);
    group[size] = '\0';
    return group;
}

static bool others_codec_is_name(const char *text)
{
    return !as_str_is_empty(text) && strlen(text) <= NAME_MAX_BYTES;
}

static int others_codec_take(struct as_kube_others *others, const struct form *form,
                             const struct tree_value *item, struct as_error *error)
{
    const struct tree_value *spec = tree_find(item, "spec");
    const struct tree_value *aim = tree_find(spec, "scaleTargetRef");
    const struct tree_value *metadata = tree_find(item, "metadata");
    const char *name = tree_find_text(metadata, "name"), *target = tree_find_text(aim, "name");
    const char *version = tree_find_text(aim, "apiVersion"), *kind = tree_find_text(aim, "kind");
    const char *owner = others_codec_find_owner(metadata);
    if (!others_codec_is_name(name) || !others_codec_is_name(target))
        return 0;
    if (others->count == others->max) {
        as_error_set(error, "more than %zu", others->max);
        return -E2BIG;
    }
    version = as_str_is_empty(version) ? form->api_version : version;
    others->items =
        as_xgrow(others->items, others->count, &others->capacity, sizeof(*others->items));
    struct as_kube_other *other = &others->items[others->count++];
    *other = (struct as_kube_other){
        .name = others_codec_keep(others, name),
        .group = keep_group(others, version),
        .kind = others_codec_keep(others, as_str_is_empty(kind) ? form->kind : kind),
        .target = others_codec_keep(others, target),
        .owner = others_codec_keep(others, owner),
        .min = others_codec_get_size(spec, form->min, form->min_absent),
        .max = others_codec_get_size(spec, form->max, form->max_absent),
    };
    if (form->read_more)
        form->read_more(metadata, other);
    return 0;
}

static int take_hpa(void *context, const struct tree_value *item, struct as_error *error)
{
    return others_codec_take(context, &hpa, item, error);
}

static int take_scaled_object(void *context, const struct tree_value *item, struct as_error *error)
{
    return others_codec_take(context, &scaled_object, item, error);
}

int as_kube_hpas_decode(struct as_kube_others *others, const char *json, size_t size,
                        char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "HorizontalPodAutoscalerList", take_hpa, others, next_out,
                          error);
}

int as_kube_scaled_objects_decode(struct as_kube_others *others, const char *json, size_t size,
                                  char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "ScaledObjectList", take_scaled_object, others, next_out,
                          error);
}

/* FieldsV1 (structured-merge-diff): `f:NAME` is a member, `k:{"name":"app"}` the element of a list
 * with these members, and an object without members is owned as a whole. */
static bool is_step(const struct tree_value *child, const struct as_field_step *step)
{
    if (!step->value)
        return strncmp(child->name, "f:", 2) == 0 && strcmp(child->name + 2, step->name) == 0;
    if (strncmp(child->name, "k:", 2) != 0)
        return false;
    AS_CLEANUP(tree_deinit) struct tree key = TREE_INIT(TREE_NO_LIMIT);
    return tree_load_object(&key, child->name + 2, strlen(child->name + 2), NULL) == 0 &&
           kube_element_is(key.root, step);
}

static bool owns(const struct tree_value *entry, const struct as_field_path *field)
{
    const struct tree_value *at = tree_find(entry, "fieldsV1");
    for (size_t i = 0; i < field->count; i++) {
        const struct tree_value *child = tree_is(at, TREE_OBJECT) ? at->first : NULL;
        while (child && !is_step(child, &field->steps[i]))
            child = child->next;
        if (!child || (tree_is(child, TREE_OBJECT) && child->size == 0))
            return child != NULL;
        at = child;
    }
    return true;
}

/* The API's times are all of one form, so that they compare as texts. */
int as_kube_manager_decode(const char *json, size_t size, const struct as_field_path *field,
                           char manager_out[AS_MANAGER_SIZE], struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    const char *latest = "", *manager = "";
    const struct tree_value *entry =
        tree_get_first(tree_find(tree_find(tree.root, "metadata"), "managedFields"));
    for (; entry; entry = entry->next) {
        const char *time = tree_find_text(entry, "time"), *who = tree_find_text(entry, "manager");
        if (!who || !owns(entry, field) || strcmp(time ? time : "", latest) < 0)
            continue;
        latest = time ? time : "";
        manager = who;
    }
    const size_t kept = as_str_cut_utf8(manager, strlen(manager), AS_MANAGER_SIZE - 1);
    memcpy(manager_out, manager, kept);
    manager_out[kept] = '\0';
    return 0;
}

struct noted_target {
    UT_hash_handle hh; /* by its id */
    struct as_target_ref *ref;
    as_mono_time at;
};

/* Notes a copy of the target, if it is known or may be added. True: it was added. */
static bool noted_add(struct noted *noted, const struct as_target_ref *ref, as_mono_time now,
                      bool may_add)
{
    struct noted_target *target;
    HASH_FIND(hh, noted->first, ref->id, strlen(ref->id), target);
    const bool is_new = !target && may_add;
    if (is_new) {
        target = as_xcalloc(1, sizeof(*target));
        target->ref = as_target_ref_copy(ref);
        HASH_ADD_KEYPTR(hh, noted->first, target->ref->id, strlen(target->ref->id), target);
        noted->count++;
    }
    if (target)
        target->at = now;
    return is_new;
}

/* Forgets those that were last noted before. */
static void noted_forget(struct noted *noted, as_mono_time before)
{
    struct noted_target *target, *next;
    for (target = noted->first; target; target = next) {
        next = target->hh.next;
        if (target->at.us >= before.us)
            continue;
        HASH_DEL(noted->first, target);
        noted->count--;
        as_target_ref_free(target->ref);
        free(target);
    }
}

/* The target after `at` (NULL: the first); NULL: there is none. */
static const struct noted_target *noted_next(const struct noted *noted,
                                             const struct noted_target *at)
{
    return at ? at->hh.next : noted->first;
}

static const struct as_target_ref *noted_get(const struct noted_target *target)
{
    return target->ref;
}

static void noted_deinit(struct noted *noted)
{
    noted_forget(noted, AS_MONO_NEVER);
}

/*
 * The lists.
 *
 * A list of one kind that fails leaves what was known of that kind. Namespaces and targets that are
 * not observed any more are forgotten at the next look.
 */

#define NOT_FOUND 404

static const struct kind {
    const char *kind, *path, *plural, *operation, *what, *right;
    as_kube_others_decode_fn *decode;
} kinds[] = {
    /* listed first, so that an HPA that KEDA made is known as its ScaledObject's */
    {"ScaledObject", "/apis/keda.sh/v1alpha1/namespaces", "/scaledobjects", "list_scaledobjects",
     "list ScaledObjects", "scaledobjects.keda.sh: list", as_kube_scaled_objects_decode},
    {"HorizontalPodAutoscaler", "/apis/autoscaling/v1/namespaces", "/horizontalpodautoscalers",
     "list_hpas", "list HPAs", "horizontalpodautoscalers.autoscaling: list", as_kube_hpas_decode},
};
#define KINDS AS_ARRAY_SIZE(kinds)

struct space { /* a namespace */
    LIST_ENTRY(space) entry;
    struct as_kube_others_watch *owner;
    char *name;
    char *credential; /* that the lists under way are for; NULL: none */
    as_mono_time due;
    struct noted targets;
    struct as_kube_pages *pages; /* of the kind `at`; NULL: no list is under way */
    size_t at;
    struct as_kube_others coming, known[KINDS];
    bool is_failing[KINDS];
};

struct as_kube_others_watch {
    struct as_kube_client *client;
    LIST_HEAD(, space) spaces;
    size_t space_count, target_count;
    size_t failing[KINDS]; /* namespaces in which this kind cannot be listed */
};

static void list(struct space *space);

static as_mono_time now(const struct as_kube_others_watch *watch)
{
    const struct as_clock *clock = watch->client->env->clock;
    return clock->get_mono(clock);
}

static void others_note_failure(struct space *space, size_t kind, bool is_failing)
{
    size_t *failing = &space->owner->failing[kind];
    *failing = *failing - space->is_failing[kind] + is_failing;
    space->is_failing[kind] = is_failing;
}

static void free_space(struct space *space)
{
    if (space->pages)
        as_kube_pages_cancel(space->pages);
    space->owner->target_count -= space->targets.count;
    noted_deinit(&space->targets);
    as_kube_others_deinit(&space->coming);
    for (size_t i = 0; i < KINDS; i++) {
        as_kube_others_deinit(&space->known[i]);
        others_note_failure(space, i, false);
    }
    LIST_REMOVE(space, entry);
    space->owner->space_count--;
    free(space->name);
    free(space->credential);
    free(space);
}

/* What an object is: its group, in which the versions of its kind are one. */
static bool aims_at(const struct as_kube_other *other, const struct as_target_ref *ref)
{
    const char *version = as_target_ref_get(ref, "apiVersion");
    const char *slash = strchr(version, '/');
    const size_t size = slash ? (size_t)(slash - version) : 0;
    const bool is_same_group =
        strlen(other->group) == size && memcmp(other->group, version, size) == 0;
    return is_same_group && strcmp(other->kind, as_target_ref_get(ref, "kind")) == 0 &&
           strcmp(other->target, as_target_ref_get(ref, "name")) == 0;
}

/* KEDA works through an HPA: that one is no other. */
static bool is_of_scaled_object(const struct as_kube_other *other, const struct as_other *found,
                                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(found[i].kind, kinds[0].kind) == 0 && strcmp(found[i].name, other->owner) == 0)
            return true;
    }
    return false;
}

static void contention_report(const struct space *space, const struct as_target_ref *ref)
{
    const struct as_access_env *env = space->owner->client->env;
    struct as_other found[AS_OTHERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < KINDS; i++) {
        for (size_t k = 0; k < space->known[i].count && count < AS_OTHERS_MAX; k++) {
            const struct as_kube_other *other = &space->known[i].items[k];
            if (aims_at(other, ref) && !is_of_scaled_object(other, found, count))
                found[count++] = (struct as_other){.kind = kinds[i].kind,
                                                   .name = other->name,
                                                   .min = other->min,
                                                   .max = other->max,
                                                   .is_paused = other->is_paused};
        }
    }
    env->others_found(env->permit_context, ref->id, found, count);
}

static void others_conclude(struct space *space)
{
    const struct noted_target *target = NULL;
    const as_mono_time present = now(space->owner);
    space->due.us = as_time_add(present.us, AS_KUBE_OTHERS_EVERY_US);
    space->owner->target_count -= space->targets.count;
    noted_forget(&space->targets, (as_mono_time){present.us - AS_KUBE_OTHERS_KEEP_US});
    space->owner->target_count += space->targets.count;
    while ((target = noted_next(&space->targets, target)))
        contention_report(space, noted_get(target));
}

/* Once, until all namespaces can be listed: the cause is mostly the same for all of them. */
static void log_failure(struct space *space, const struct as_outcome *outcome)
{
    const bool is_absent = outcome->http_status == NOT_FOUND;
    const size_t at = space->at, before = space->owner->failing[at];
    others_note_failure(space, at, outcome->reason != AS_REASON_APPLIED);
    if (before > 0 || space->owner->failing[at] == 0)
        return;
    as_log(is_absent ? AS_LOG_INFO : AS_LOG_WARN,
           is_absent ? "the cluster has none of this kind: it is not looked for who else sizes the "
                       "targets with it"
                     : "it is not known who else sizes the targets",
           AS_F("kind", kinds[at].kind), AS_F("namespace", space->name),
           AS_F("error", outcome->message));
}

static int others_take(void *context, const char *json, size_t size, char **next_out,
                       struct as_error *error)
{
    struct space *space = context;
    return kinds[space->at].decode(&space->coming, json, size, next_out, error);
}

static void others_clear(void *context)
{
    as_kube_others_clear(&((struct space *)context)->coming);
}

static void others_listed(void *context, const struct as_outcome *outcome)
{
    struct space *space = context;
    space->pages = NULL;
    if (outcome->reason == AS_REASON_APPLIED || outcome->http_status == NOT_FOUND) {
        struct as_kube_others former = space->known[space->at];
        space->known[space->at] = space->coming;
        space->coming = former;
    }
    as_kube_others_clear(&space->coming);
    log_failure(space, outcome);
    if (++space->at < KINDS)
        list(space);
    else
        others_conclude(space);
}

static void list(struct space *space)
{
    const struct kind *kind = &kinds[space->at];
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_append_str(&path, kind->path);
    const int status = as_kube_path_append(&path, space->name);
    as_buf_append_str(&path, kind->plural);
    space->pages = as_kube_pages_start(
        space->owner->client,
        &(struct as_kube_pages_spec){.path = status || as_buf_check(&path) ? NULL : path.data,
                                     .trouble = "the namespace cannot be part of a path",
                                     .flow = {space->name, space->credential},
                                     .operation = kind->operation,
                                     .what = kind->what,
                                     .right = kind->right,
                                     .take = others_take,
                                     .clear = others_clear,
                                     .done = others_listed,
                                     .context = space});
}

static struct space *find_space(struct as_kube_others_watch *watch, const char *name)
{
    struct space *space;
    LIST_FOREACH (space, &watch->spaces, entry) {
        if (strcmp(space->name, name) == 0)
            return space;
    }
    return NULL;
}

static bool others_is_idle(const struct as_kube_others_watch *watch, const struct space *space)
{
    return !space->pages &&
           now(watch).us - space->due.us > AS_KUBE_OTHERS_KEEP_US - AS_KUBE_OTHERS_EVERY_US;
}

/* NULL: there are too many. */
static struct space *new_space(struct as_kube_others_watch *watch, const char *name, size_t most)
{
    struct space *space, *next;
    for (space = LIST_FIRST(&watch->spaces); space; space = next) {
        next = LIST_NEXT(space, entry);
        if (others_is_idle(watch, space))
            free_space(space);
    }
    if (watch->space_count >= most)
        return NULL;
    space = as_xcalloc(1, sizeof(*space));
    space->owner = watch;
    space->name = as_xstrdup(name);
    space->due.us = INT64_MIN;
    space->coming = (struct as_kube_others){.max = AS_KUBE_OTHERS_MAX, .texts = AS_ARENA_INIT};
    for (size_t i = 0; i < KINDS; i++)
        space->known[i] = space->coming;
    LIST_INSERT_HEAD(&watch->spaces, space, entry);
    watch->space_count++;
    return space;
}

/* True: it was not known yet. */
static bool others_note(struct space *space, const struct as_target_ref *ref, size_t most)
{
    struct as_kube_others_watch *watch = space->owner;
    const bool is_new = noted_add(&space->targets, ref, now(watch), watch->target_count < most);
    watch->target_count += is_new;
    return is_new;
}

static size_t get_most(size_t places, const char *credential)
{
    return credential ? places / 2 : places;
}

void as_kube_others_note(struct as_kube_others_watch *watch, const struct as_target_ref *ref,
                         const char *credential)
{
    const char *name = as_target_ref_get(ref, "namespace");
    struct as_sized sized;
    as_sized_read(ref, &sized);
    if (!watch->client->env->others_found || !*name || sized.what != AS_SIZED_SCALE)
        return;
    struct space *space = find_space(watch, name);
    if (!space)
        space = new_space(watch, name, get_most(AS_KUBE_OTHERS_NAMESPACES_MAX, credential));
    if (!space)
        return;
    const bool is_new = others_note(space, ref, get_most(AS_KUBE_OTHERS_TARGETS_MAX, credential));
    if (space->pages)
        return;
    if (space->due.us <= now(watch).us) {
        space->at = 0;
        free(space->credential);
        space->credential = credential ? as_xstrdup(credential) : NULL;
        list(space);
    } else if (is_new) {
        contention_report(space, ref);
    }
}

struct as_kube_others_watch *as_kube_others_new(struct as_kube_client *client)
{
    struct as_kube_others_watch *watch = as_xcalloc(1, sizeof(*watch));
    watch->client = client;
    LIST_INIT(&watch->spaces);
    return watch;
}

struct as_kube_others_watch *as_kube_others_free(struct as_kube_others_watch *watch)
{
    struct space *space;
    while ((space = LIST_FIRST(&watch->spaces)))
        free_space(space);
    free(watch);
    return NULL;
}

/* The last writer of a size. A failure says nothing: the size itself is known. */

#define OK 200

struct as_kube_manager_ask {
    struct as_kube_request *request;
    as_kube_manager_done_fn *done;
    void *context;
};

void as_kube_manager_read(const char *json, size_t size, const char *field,
                          char manager_out[AS_MANAGER_SIZE])
{
    struct as_error error = AS_ERROR_INIT;
    struct as_field_path path;
    if (as_field_path_parse(field, &path, &error) == 0 &&
        as_kube_manager_decode(json, size, &path, manager_out, &error) == 0)
        return;
    manager_out[0] = '\0';
    as_log(AS_LOG_DEBUG, "who set the size is not known", AS_F("error", error.text));
}

static void manager_answered(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct as_kube_manager_ask ask = *(struct as_kube_manager_ask *)context;
    char manager[AS_MANAGER_SIZE] = "";
    free(context);
    if (response->status != OK)
        as_log(AS_LOG_DEBUG, "who set the size is not known",
               AS_FI("http_status", response->status));
    else
        as_kube_manager_read(response->body, response->body_size, "spec.replicas", manager);
    ask.done(ask.context, manager);
}

struct as_kube_manager_ask *as_kube_manager_start(struct as_kube_client *client,
                                                  const struct as_flow *flow, const char *path,
                                                  as_kube_manager_done_fn *done, void *context)
{
    struct as_kube_manager_ask *ask = as_xcalloc(1, sizeof(*ask));
    ask->done = done;
    ask->context = context;
    ask->request = as_kube_request_start(
        client,
        &(struct as_kube_request_spec){
            .method = "GET",
            .path = path,
            .operation = "get_metadata",
            .accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            .max_response = AS_KUBE_METADATA_MAX,
            .flow = *flow,
        },
        manager_answered, ask);
    return ask;
}

void as_kube_manager_cancel(struct as_kube_manager_ask *ask)
{
    as_kube_request_cancel(ask->request);
    free(ask);
}
