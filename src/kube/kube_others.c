/*
 * Who else sizes the targets of a cluster: see the header.
 *
 * A list of one kind that fails leaves what was known of that kind. Namespaces and targets that are
 * not observed any more are forgotten at the next look.
 */
#include "kube_others.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube_noted.h"
#include "kubernetes_others.h"

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
    struct as_kube_noted targets;
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
    as_kube_noted_deinit(&space->targets);
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

static void others_tell(const struct space *space, const struct as_target_ref *ref)
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
    const struct as_kube_noted_target *target = NULL;
    const as_mono_time present = now(space->owner);
    space->due.us = as_time_add(present.us, AS_KUBE_OTHERS_EVERY_US);
    space->owner->target_count -= space->targets.count;
    as_kube_noted_forget(&space->targets, (as_mono_time){present.us - AS_KUBE_OTHERS_KEEP_US});
    space->owner->target_count += space->targets.count;
    while ((target = as_kube_noted_next(&space->targets, target)))
        others_tell(space, as_kube_noted_get(target));
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
    const bool is_new =
        as_kube_noted_add(&space->targets, ref, now(watch), watch->target_count < most);
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
        others_tell(space, ref);
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
