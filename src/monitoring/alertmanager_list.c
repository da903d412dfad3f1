/*
 * The list of firing alerts: see the header. An unreadable alert is left out and counted: an alert
 * that the list lacks may still fire.
 */
#include <alertscaler/monitoring/alertmanager_list.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/tree.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/notification.h>

#include "alert_reader.h"

#define YEAR_ONE ((as_wall_time){-INT64_C(62135596800) * AS_US_PER_S})
#define TOO_MANY "more than %d alerts", AS_ALERT_LIST_MAX

/* What a group says of one of its alerts. */
struct standing {
    const char *receiver;
    bool is_muted, tells_muting;
};

static int read_state(struct alert_reader *reader, const struct tree_value *status,
                      bool *is_suppressed_out)
{
    static const char *const states[] = {"active", "unprocessed", "suppressed"};
    const struct tree_value *state = alert_find(status, "state");
    const char *text = tree_get_text(state);
    if (!text)
        return alert_fail(reader, "status.state", NULL, state ? "expected a string" : "missing");
    for (size_t i = 0; i < AS_ARRAY_SIZE(states); i++) {
        if (strcmp(text, states[i]) == 0) {
            *is_suppressed_out = i == 2;
            return 0;
        }
    }
    return alert_fail_with_text(reader, "status.state", "active, suppressed or unprocessed", text);
}

/* Whether the list in `member` of the status has an element. */
static int read_reasons(struct alert_reader *reader, const struct tree_value *status,
                        const char *member, bool *has_some_out)
{
    const struct tree_value *array = alert_find(status, member);
    char place[32];
    (void)snprintf(place, sizeof(place), "status.%s", member);
    if (array && array->kind != TREE_ARRAY)
        return alert_fail(reader, place, NULL, "expected an array, got %s",
                          alert_get_type_word(array));
    *has_some_out = array && array->size > 0;
    return 0;
}

/* A muted alert has the state "suppressed" too. */
static int read_status(struct alert_reader *reader, const struct tree_value *object,
                       struct as_listed_alert *alert, struct standing *standing)
{
    const struct tree_value *value = alert_find(object, "status");
    bool is_suppressed = false, is_silenced = false;
    int status = read_state(reader, value, &is_suppressed);
    if (status == 0)
        status = read_reasons(reader, value, "silencedBy", &is_silenced);
    if (status == 0)
        status = read_reasons(reader, value, "inhibitedBy", &alert->is_inhibited);
    if (status == 0)
        status = read_reasons(reader, value, "mutedBy", &standing->is_muted);
    standing->tells_muting = alert_find(value, "mutedBy") != NULL;
    alert->is_suppressed =
        is_silenced || alert->is_inhibited || (is_suppressed && !standing->is_muted);
    return status;
}

static int read_alert(struct alert_reader *reader, const struct tree_value *object,
                      struct as_listed_alert *listed, struct standing *standing)
{
    struct as_labels *labels = NULL, *annotations = NULL;
    if (object->kind != TREE_OBJECT)
        return alert_fail(reader, "", NULL, "expected an object, got %s",
                          alert_get_type_word(object));
    if (!alert_find(object, "labels"))
        return alert_fail(reader, "labels", NULL, "missing");
    int status = alert_read_labels(reader, object, "labels", &labels);
    listed->labels = labels;
    if (status == 0)
        status = alert_read_labels(reader, object, "annotations", &annotations);
    listed->annotations = annotations;
    if (status == 0)
        status = alert_read_time(reader, object, "startsAt", true, &listed->starts_at);
    if (status == 0)
        status = alert_read_time(reader, object, "updatedAt", false, &listed->updated_at);
    if (status == 0)
        status = alert_read_identity(reader, object, labels, &listed->digest, &listed->fingerprint);
    if (status == 0)
        status = read_status(reader, object, listed, standing);
    return status;
}

static void free_labels(struct as_listed_alert *alert)
{
    as_labels_free((struct as_labels *)(uintptr_t)alert->labels);
    as_labels_free((struct as_labels *)(uintptr_t)alert->annotations);
}

struct known { /* an alert of the answer */
    RB_ENTRY(known) by_digest;
    struct as_digest digest;
    size_t item;
};
RB_HEAD(known_tree, known);

static int compare_known(const struct known *a, const struct known *b)
{
    return as_digest_compare(&a->digest, &b->digest);
}
RB_GENERATE_INTERNAL(known_tree, known, by_digest, compare_known, __attribute__((unused)) static)

struct groups {
    struct alert_reader reader;
    struct as_alertmanager_alerts *alerts;
    struct known_tree known;
    struct as_arena arena; /* of its elements */
    size_t read;           /* alerts of all groups so far */
};

static void groups_deinit(struct groups *groups)
{
    as_arena_deinit(&groups->arena);
    as_alertmanager_alerts_free(groups->alerts);
}

/* Leaves the alert out; the first problem is kept. */
static int give_up(struct groups *groups)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    struct as_alertmanager_alerts *alerts = groups->alerts;
    int status = alert_give_up(&groups->reader, &problem);
    if (status == 0 && alerts->unread++ == 0)
        alerts->problem = as_arena_strdup(&alerts->arena, problem);
    return status;
}

/* Makes room for one more route: the capacity is a power of two. */
static void grow_routes(struct as_arena *arena, struct as_alertmanager_alert *alert)
{
    const size_t count = alert->listed.route_count;
    if ((count & (count - 1)) != 0)
        return;
    struct as_listed_route *routes =
        as_arena_alloc(arena, count > 0 ? 2 * count : 1, sizeof(*routes));
    if (count > 0)
        memcpy(routes, alert->routes, count * sizeof(*routes));
    alert->listed.routes = alert->routes = routes;
}

/* Adds the receiver, or one of its groups that is not muted. */
static int add_route(struct groups *groups, struct as_alertmanager_alert *alert,
                     const struct standing *standing)
{
    struct as_listed_alert *listed = &alert->listed;
    for (size_t i = 0; i < listed->route_count; i++) {
        if (strcmp(alert->routes[i].receiver, standing->receiver) == 0) {
            alert->routes[i].is_muted = alert->routes[i].is_muted && standing->is_muted;
            return 0;
        }
    }
    if (listed->route_count == AS_PAYLOAD_RECEIVERS_MAX)
        return alert_fail(&groups->reader, "", NULL, "in groups of more than %d receivers",
                          AS_PAYLOAD_RECEIVERS_MAX);
    grow_routes(&groups->alerts->arena, alert);
    alert->routes[listed->route_count++] =
        (struct as_listed_route){.receiver = standing->receiver, .is_muted = standing->is_muted};
    return 0;
}

/* Owns the labels of `alert`. */
static int add_alert(struct groups *groups, struct as_listed_alert *alert,
                     const struct standing *standing)
{
    struct as_alertmanager_alerts *alerts = groups->alerts;
    struct known key = {.digest = alert->digest, .item = alerts->count};
    struct known *known = RB_FIND(known_tree, &groups->known, &key);
    if (known) {
        struct as_listed_alert *first = &alerts->items[known->item].listed;
        first->is_suppressed = first->is_suppressed && alert->is_suppressed;
        first->is_inhibited = first->is_inhibited || alert->is_inhibited;
        free_labels(alert);
        return add_route(groups, &alerts->items[known->item], standing);
    }
    if (alerts->count == AS_ALERT_LIST_MAX) {
        free_labels(alert);
        as_error_set(groups->reader.root.error, TOO_MANY);
        return -E2BIG;
    }
    known = as_arena_alloc(&groups->arena, 1, sizeof(*known));
    *known = key;
    RB_INSERT(known_tree, &groups->known, known);
    alerts->items[alerts->count].listed = *alert;
    return add_route(groups, &alerts->items[alerts->count++], standing);
}

static int read_group_alerts(struct groups *groups, const struct tree_value *array,
                             const char *receiver)
{
    for (const struct tree_value *object = array->first; object; object = object->next) {
        struct as_listed_alert alert = {.updated_at = YEAR_ONE};
        struct standing standing = {.receiver = receiver};
        alert_enter(&groups->reader, groups->read++);
        int status = read_alert(&groups->reader, object, &alert, &standing);
        if (status < 0) {
            free_labels(&alert);
        } else {
            groups->alerts->is_muting_unknown |= !standing.tells_muting;
            alert.generator_url =
                as_arena_strdup(&groups->alerts->arena, alert_find_url(object, "generatorURL"));
            status = add_alert(groups, &alert, &standing);
        }
        if (status == -EINVAL)
            status = give_up(groups);
        if (status < 0)
            return status;
    }
    return 0;
}

static int fail_group(struct groups *groups, size_t index, const char *expected)
{
    groups->reader.in_alert = false;
    return alert_fail(&groups->reader, "", NULL, "group %zu: expected %s", index, expected);
}

static int read_groups(struct groups *groups, const struct tree_value *array)
{
    size_t index = 0, total = 0;
    if (array->kind != TREE_ARRAY)
        return alert_fail(&groups->reader, "", NULL, "expected an array of groups, got %s",
                          alert_get_type_word(array));
    for (const struct tree_value *group = array->first; group; group = group->next) {
        const struct tree_value *list = alert_find(group, "alerts");
        total += tree_is(list, TREE_ARRAY) ? list->size : 0;
    }
    total = total < AS_ALERT_LIST_MAX ? total : AS_ALERT_LIST_MAX;
    struct as_alertmanager_alert *items = calloc(total ? total : 1, sizeof(*items));
    if (!items) {
        as_error_set(groups->reader.root.error, "not enough memory for %zu alerts", total);
        return -ENOMEM;
    }
    groups->alerts->items = items;
    for (const struct tree_value *group = array->first; group; group = group->next, index++) {
        const struct tree_value *list = alert_find(group, "alerts");
        const struct tree_value *name = alert_find(alert_find(group, "receiver"), "name");
        const char *text = tree_get_text(name);
        if (!text || name->size > AS_PAYLOAD_RECEIVER_MAX)
            return fail_group(groups, index, "a receiver with a name");
        if (!tree_is(list, TREE_ARRAY))
            return fail_group(groups, index, "an array of alerts");
        const char *receiver = as_arena_strdup(&groups->alerts->arena, text);
        int status = read_group_alerts(groups, list, receiver);
        if (status < 0)
            return status == -E2BIG ? -EINVAL : status;
    }
    return 0;
}

int as_alertmanager_decode_groups(const char *json, size_t size,
                                  struct as_alertmanager_alerts **alerts_out,
                                  struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    AS_CLEANUP(as_labels_hasher_free_p)
    struct as_labels_hasher *hasher = as_labels_hasher_new();
    AS_CLEANUP(groups_deinit) struct groups groups = {.arena = AS_ARENA_INIT};
    int status = alert_load(&groups.reader, &tree, hasher, json, size, error);
    if (status < 0)
        return status;
    groups.alerts = as_xcalloc(1, sizeof(*groups.alerts));
    groups.alerts->arena = AS_ARENA_INIT;
    status = read_groups(&groups, tree.root);
    if (status < 0)
        return status;
    *alerts_out = groups.alerts;
    groups.alerts = NULL;
    return 0;
}

struct as_alertmanager_alerts *as_alertmanager_alerts_free(struct as_alertmanager_alerts *alerts)
{
    if (!alerts)
        return NULL;
    for (size_t i = 0; i < alerts->count; i++)
        free_labels(&alerts->items[i].listed);
    free(alerts->items);
    as_arena_deinit(&alerts->arena);
    free(alerts);
    return NULL;
}

struct listed_alert { /* an alert, and its position in all lists together */
    const struct as_alertmanager_alert *alert;
    size_t order;
};

static int compare_listed_alerts(const void *a, const void *b)
{
    const struct listed_alert *x = a, *y = b;
    const int order = as_digest_compare(&x->alert->listed.digest, &y->alert->listed.digest);
    if (order != 0)
        return order;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int compare_routes(const void *a, const void *b)
{
    const struct as_listed_route *x = a, *y = b;
    return strcmp(x->receiver, y->receiver);
}

static void unite_routes(const struct listed_alert *listed_alert, size_t count,
                         struct as_arena *arena, struct as_listed_alert *alert)
{
    size_t total = 0, kept = 0;
    for (size_t i = 0; i < count; i++)
        total += listed_alert[i].alert->listed.route_count;
    struct as_listed_route *routes = as_arena_alloc(arena, total, sizeof(*routes));
    total = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < listed_alert[i].alert->listed.route_count; k++)
            routes[total++] = listed_alert[i].alert->listed.routes[k];
    if (total > 0)
        qsort(routes, total, sizeof(*routes), compare_routes);
    for (size_t i = 0; i < total; i++) {
        struct as_listed_route *last = kept > 0 ? &routes[kept - 1] : NULL;
        if (!last || strcmp(last->receiver, routes[i].receiver) != 0) {
            routes[kept++] = routes[i];
            continue;
        }
        last->is_muted = last->is_muted || routes[i].is_muted;
        if (routes[i].wait_us > last->wait_us)
            last->wait_us = routes[i].wait_us;
    }
    alert->routes = routes;
    alert->route_count = kept;
}

/* Merges `count` entries of the same alert. */
static struct as_listed_alert unite(const struct listed_alert *listed_alert, size_t count,
                                    struct as_arena *arena)
{
    const struct as_alertmanager_alert *newest = listed_alert[0].alert;
    struct as_listed_alert alert = newest->listed;
    for (size_t i = 1; i < count; i++) {
        const struct as_alertmanager_alert *other = listed_alert[i].alert;
        alert.is_suppressed = alert.is_suppressed && other->listed.is_suppressed;
        alert.is_inhibited = alert.is_inhibited || other->listed.is_inhibited;
        if (other->listed.starts_at.us < alert.starts_at.us)
            alert.starts_at = other->listed.starts_at;
        if (!alert.generator_url)
            alert.generator_url = other->listed.generator_url;
        if (other->listed.updated_at.us > newest->listed.updated_at.us)
            newest = other;
    }
    alert.annotations = newest->listed.annotations;
    alert.updated_at = newest->listed.updated_at;
    unite_routes(listed_alert, count, arena, &alert);
    return alert;
}

void as_alertmanager_merge(struct as_alertmanager_alerts *const *lists, size_t list_count,
                           struct as_arena *arena, struct as_alert_list *merged_out)
{
    size_t total = 0, count = 0, same;
    for (size_t i = 0; i < list_count; i++)
        total += lists[i]->count;
    struct listed_alert *listed_alert = as_arena_alloc(arena, total, sizeof(*listed_alert));
    total = 0;
    for (size_t i = 0; i < list_count; i++)
        for (size_t k = 0; k < lists[i]->count; k++, total++)
            listed_alert[total] = (struct listed_alert){&lists[i]->items[k], total};
    if (total > 0)
        qsort(listed_alert, total, sizeof(*listed_alert), compare_listed_alerts);

    struct as_listed_alert *alerts = as_arena_alloc(arena, total, sizeof(*alerts));
    for (size_t i = 0; i < total; i += same) {
        const struct as_digest *digest = &listed_alert[i].alert->listed.digest;
        for (same = 1; i + same < total; same++)
            if (as_digest_compare(&listed_alert[i + same].alert->listed.digest, digest) != 0)
                break;
        alerts[count++] = unite(&listed_alert[i], same, arena);
    }
    *merged_out = (struct as_alert_list){.alerts = alerts, .count = count};
    for (size_t i = 0; i < list_count; i++) {
        merged_out->unread += lists[i]->unread;
        if (!merged_out->problem)
            merged_out->problem = lists[i]->problem;
    }
    if (count > AS_ALERT_LIST_MAX) {
        struct as_error error = AS_ERROR_INIT;
        as_error_set(&error, TOO_MANY);
        *merged_out = (struct as_alert_list){.error = as_arena_strdup(arena, error.text)};
    }
}

int as_alertmanager_decode_status(const char *json, size_t size, struct as_arena *arena,
                                  struct as_alertmanager_status *status_out, struct as_error *error)
{
    static const struct tree_part config[] = {{.name = "original"}, {0}};
    static const struct tree_part parts[] = {
        {.name = "config", .parts = config}, {.name = "uptime"}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    int status = tree_parse(&tree, json, size, parts, error);
    if (status < 0)
        return status;
    const struct tree_value *original = tree_find(tree_find(tree.root, "config"), "original");
    const struct tree_value *uptime = tree_find(tree.root, "uptime");
    if (uptime && !tree_is(uptime, TREE_TEXT)) {
        as_error_set(error, "uptime: expected a string");
        return -EINVAL;
    }
    if (!tree_is(original, TREE_TEXT)) {
        as_error_set(error, "config.original: %s", original ? "expected a string" : "missing");
        return -EINVAL;
    }
    *status_out = (struct as_alertmanager_status){
        .config = as_arena_strdup(arena, original->text),
        .config_size = original->size,
        .uptime = as_arena_strdup(arena, uptime ? uptime->text : ""),
    };
    return 0;
}

void as_alertmanager_decode_error(const char *json, size_t size,
                                  char text_out[AS_ALERTMANAGER_ERROR_SIZE])
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    const char *text = NULL;
    tree.is_any = true;
    if (tree_load(&tree, json, size, NULL) == 0)
        text =
            tree_is(tree.root, TREE_TEXT) ? tree.root->text : tree_find_text(tree.root, "message");
    as_str_copy_line(text ? text : "", text_out, AS_ALERTMANAGER_ERROR_SIZE);
}
