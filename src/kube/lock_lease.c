/*
 * Locks as Leases: see the header.
 */
#include <alertscaler/kube/lock_lease.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_list.h"
#include "kube_object.h"
#include <alertscaler/doc/json_reader.h>

#define TARGET     "alertscaler.io/target"
#define RULE       "alertscaler.io/rule"
#define DECISION   "alertscaler.io/decision"
#define COMMAND    "alertscaler.io/command"
#define LOCK       "alertscaler.io/lock"
#define UP_UNTIL   "alertscaler.io/locked-until-up"
#define DOWN_UNTIL "alertscaler.io/locked-until-down"
#define IN_FLIGHT  "in-flight"
#define COOLDOWN   "cooldown"

#define HASH_SIZE     16 /* digits */
#define READABLE_SIZE (AS_LOCK_LEASE_NAME_SIZE - 1 - sizeof(AS_LOCK_LEASE_PREFIX) - HASH_SIZE)

as_maybe_time as_lock_get_end(const struct as_lock *lock)
{
    const as_maybe_time up = lock->up_until, down = lock->down_until;
    if (lock->is_in_flight)
        return (as_maybe_time){.set = false};
    return !up.set || (down.set && down.at.us > up.at.us) ? down : up;
}

/* FNV-1a */
static uint64_t hash(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The last words of the text, each followed by a dash: "shop-web-". */
static void print_readable(const char *target, char out[READABLE_SIZE + 1])
{
    char all[512];
    size_t size = 0;
    const size_t length = strlen(target);
    const char *from = length > sizeof(all) / 2 ? target + length - sizeof(all) / 2 : target;
    for (; *from; from++) {
        const char c = *from >= 'A' && *from <= 'Z' ? (char)(*from - 'A' + 'a') : *from;
        if (is_plain(c))
            all[size++] = c;
        else if (size > 0 && all[size - 1] != '-')
            all[size++] = '-';
    }
    if (size > 0 && all[size - 1] != '-')
        all[size++] = '-';
    size_t at = 0;
    if (size > READABLE_SIZE) { /* from the first whole word on */
        const char *dash = memchr(all + size - READABLE_SIZE - 1, '-', READABLE_SIZE);
        at = dash ? (size_t)(dash - all) + 1 : size - READABLE_SIZE;
    }
    memcpy(out, all + at, size - at);
    out[size - at] = '\0';
}

void as_lock_lease_print_name(const char *target, char name_out[AS_LOCK_LEASE_NAME_SIZE])
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(target);
    char readable[READABLE_SIZE + 1];
    print_readable(key, readable);
    snprintf(name_out, AS_LOCK_LEASE_NAME_SIZE, AS_LOCK_LEASE_PREFIX "%s%016" PRIx64, readable,
             hash(key));
}

static void write_optional(struct as_json_writer *json, const char *key, const char *text)
{
    if (text)
        as_json_write_member(json, key, text);
}

static void write_time(struct as_json_writer *json, const char *key, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text); /* six digits: a MicroTime */
    as_json_write_member(json, key, text);
}

static void write_metadata(struct as_json_writer *json, const struct as_lock_lease *lease,
                           const char *namespace_)
{
    const struct as_lock *lock = &lease->lock;
    as_json_write_member(json, "name", lease->name);
    as_json_write_member(json, "namespace", namespace_);
    if (!as_str_is_empty(lease->version))
        as_json_write_member(json, "resourceVersion", lease->version);
    as_json_write_key(json, "labels");
    as_json_begin_object(json);
    as_json_write_member(json, "app.kubernetes.io/component", "lock");
    as_json_write_member(json, "app.kubernetes.io/managed-by", "alertscaler");
    as_json_write_member(json, "app.kubernetes.io/name", "alertscaler");
    as_json_end_object(json);
    as_json_write_key(json, "annotations");
    as_json_begin_object(json);
    as_json_write_member(json, LOCK, lock->is_in_flight ? IN_FLIGHT : COOLDOWN);
    as_json_write_member(json, TARGET, lock->target);
    write_optional(json, RULE, lock->rule);
    write_optional(json, DECISION, lock->decision);
    write_optional(json, COMMAND, lock->command);
    if (lock->up_until.set)
        write_time(json, UP_UNTIL, lock->up_until.at);
    if (lock->down_until.set)
        write_time(json, DOWN_UNTIL, lock->down_until.at);
    as_json_end_object(json);
}

static void write_spec(struct as_json_writer *json, const struct as_lock_lease *lease)
{
    const as_maybe_time end = as_lock_get_end(&lease->lock);
    as_wall_time acquired = lease->lock.since;
    as_json_write_member(json, "holderIdentity", lease->holder);
    if (end.set) {
        int64_t seconds = (end.at.us - acquired.us + AS_US_PER_S - 1) / AS_US_PER_S;
        seconds = seconds < 1 ? 1 : seconds > INT32_MAX ? INT32_MAX : seconds;
        acquired.us = end.at.us - seconds * AS_US_PER_S;
        as_json_write_member_i64(json, "leaseDurationSeconds", seconds);
    }
    write_time(json, "acquireTime", acquired);
    write_time(json, "renewTime", acquired);
}

void as_lock_lease_encode(const struct as_lock_lease *lease, const char *namespace_,
                          struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", "coordination.k8s.io/v1");
    as_json_write_member(&json, "kind", "Lease");
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    write_metadata(&json, lease, namespace_);
    as_json_end_object(&json);
    as_json_write_key(&json, "spec");
    as_json_begin_object(&json);
    write_spec(&json, lease);
    as_json_end_object(&json);
    as_json_end_object(&json);
}

void as_lock_lease_encode_delete(const char *version, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", "v1");
    as_json_write_member(&json, "kind", "DeleteOptions");
    as_json_write_key(&json, "preconditions");
    as_json_begin_object(&json);
    as_json_write_member(&json, "resourceVersion", version);
    as_json_end_object(&json);
    as_json_end_object(&json);
}

static as_maybe_time find_time(const struct tree_value *object, const char *name)
{
    as_maybe_time time = {.set = false};
    const char *text = tree_find_text(object, name);
    time.set = text && as_wall_time_parse(text, strlen(text), &time.at) == 0;
    return time;
}

static const char *find_text(const struct tree_value *object, const char *name)
{
    const char *text = tree_find_text(object, name);
    return as_str_is_empty(text) ? NULL : text;
}

static const char *get_text(const struct tree_value *object, const char *name)
{
    const char *text = tree_find_text(object, name);
    return text ? text : "";
}

struct user { /* decoding's callback */
    as_lock_lease_fn *use;
    void *context;
};

static int take_lease(void *context, const struct tree_value *object, struct as_error *error)
{
    const struct user *user = context;
    struct as_reader root, metadata, spec, annotations;
    as_read_lenient(&root, object, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_object(&spec, &root, "spec");
    as_read_object(&annotations, &metadata, "annotations");
    const struct as_lock_lease lease = {
        .name = get_text(metadata.object, "name"),
        .version = get_text(metadata.object, "resourceVersion"),
        .holder = get_text(spec.object, "holderIdentity"),
        .lock =
            {
                .target = get_text(annotations.object, TARGET),
                .is_in_flight = strcmp(get_text(annotations.object, LOCK), IN_FLIGHT) == 0,
                .since = find_time(spec.object, "acquireTime").at,
                .up_until = find_time(annotations.object, UP_UNTIL),
                .down_until = find_time(annotations.object, DOWN_UNTIL),
                .rule = find_text(annotations.object, RULE),
                .decision = find_text(annotations.object, DECISION),
                .command = find_text(annotations.object, COMMAND),
            },
    };
    if (!*lease.name || !*lease.version)
        as_read_fail(&metadata, NULL, "name or resourceVersion is missing");
    if (as_read_result(&root) == 0)
        user->use(user->context, &lease);
    return as_read_result(&root);
}

int as_lock_lease_decode(const char *json, size_t size, as_lock_lease_fn *use, void *context,
                         struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct user user = {use, context};
    const int status = kube_object_load(&tree, json, size, "Lease", error);
    return status ? status : take_lease(&user, tree.root, error);
}

int as_lock_lease_list_decode(const char *json, size_t size, char **next_out, as_lock_lease_fn *use,
                              void *context, struct as_error *error)
{
    struct user user = {use, context};
    return kube_list_read(json, size, "LeaseList", take_lease, &user, next_out, error);
}
