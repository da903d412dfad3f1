/*
 * The list of firing alerts: see the header. An unreadable alert is left out and counted: an alert
 * that the list lacks may still fire.
 */
#include <alertscaler/wire/alertmanager.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/limits.h>

#include "json/alert_reader.h"

#define YEAR_ONE ((as_wall_time){-INT64_C(62135596800) * AS_US_PER_S})
#define TOO_MANY "more than %d alerts", AS_ALERT_LIST_MAX

static int read_state(struct alert_reader *reader, const struct tree_value *object,
                      bool *is_suppressed_out)
{
    static const char *const states[] = {"active", "unprocessed", "suppressed"};
    const struct tree_value *status = alert_find(object, "status");
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

static int read_receivers(struct alert_reader *reader, const struct tree_value *object,
                          struct as_arena *arena, struct as_listed_alert *alert)
{
    const struct tree_value *array = alert_find(object, "receivers");
    const size_t count = array ? array->size : 0;
    if (array && array->kind != TREE_ARRAY)
        return alert_fail(reader, "receivers", NULL, "expected an array, got %s",
                          alert_get_type_word(array));
    if (count > AS_PAYLOAD_RECEIVERS_MAX)
        return alert_fail(reader, "receivers", NULL, "more than %d", AS_PAYLOAD_RECEIVERS_MAX);
    const char **names = as_arena_alloc(arena, count, sizeof(*names));
    alert->receivers = names;
    for (const struct tree_value *item = array ? array->first : NULL; item; item = item->next) {
        const struct tree_value *name = tree_find(item, "name");
        const char *text = tree_get_text(name);
        if (!text || name->size > AS_PAYLOAD_TEXT_MAX)
            return alert_fail(reader, "receivers", NULL, "expected objects with a name");
        names[alert->receiver_count++] = as_arena_strdup(arena, text);
    }
    return 0;
}

static int read_alert(struct alert_reader *reader, const struct tree_value *object,
                      struct as_arena *arena, struct as_alertmanager_alert *alert)
{
    struct as_listed_alert *listed = &alert->listed;
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
        status = read_state(reader, object, &listed->is_suppressed);
    if (status == 0)
        status = read_receivers(reader, object, arena, listed);
    return status;
}

static void free_labels(struct as_alertmanager_alert *alert)
{
    as_labels_free((struct as_labels *)(uintptr_t)alert->listed.labels);
    as_labels_free((struct as_labels *)(uintptr_t)alert->listed.annotations);
}

/* Leaves the alert out; the first problem is kept. */
static int give_up(struct alert_reader *reader, struct as_alertmanager_alert *alert,
                   struct as_alertmanager_alerts *alerts)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    free_labels(alert);
    int status = alert_give_up(reader, &problem);
    if (status == 0 && alerts->unread++ == 0)
        alerts->problem = as_arena_strdup(&alerts->arena, problem);
    return status;
}

static int read_alerts(struct alert_reader *reader, const struct tree_value *array,
                       struct as_alertmanager_alerts *alerts)
{
    const size_t count = array->size;
    if (array->kind != TREE_ARRAY)
        return alert_fail(reader, "", NULL, "expected an array of alerts, got %s",
                          alert_get_type_word(array));
    if (count > AS_ALERT_LIST_MAX)
        return alert_fail(reader, "", NULL, TOO_MANY);
    alerts->items = calloc(count ? count : 1, sizeof(*alerts->items));
    if (!alerts->items) {
        as_error_set(reader->root.error, "not enough memory for %zu alerts", count);
        return -ENOMEM;
    }
    size_t read = 0;
    for (const struct tree_value *object = array->first; object; object = object->next) {
        struct as_alertmanager_alert alert = {.listed.updated_at = YEAR_ONE};
        alert_enter(reader, read++);
        int status = read_alert(reader, object, &alerts->arena, &alert);
        if (status == -EINVAL)
            status = give_up(reader, &alert, alerts);
        else
            alerts->items[alerts->count++] = alert;
        if (status < 0)
            return status;
    }
    return 0;
}

int as_alertmanager_decode_alerts(const char *json, size_t size,
                                  struct as_alertmanager_alerts **alerts_out,
                                  struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    AS_CLEANUP(as_labels_hasher_free_p)
    struct as_labels_hasher *hasher = as_labels_hasher_new();
    struct alert_reader reader;
    int status = alert_load(&reader, &tree, hasher, json, size, error);
    if (status < 0)
        return status;
    AS_CLEANUP(as_alertmanager_alerts_free_p)
    struct as_alertmanager_alerts *alerts = as_xcalloc(1, sizeof(*alerts));
    alerts->arena = AS_ARENA_INIT;
    status = read_alerts(&reader, tree.root, alerts);
    if (status < 0)
        return status;
    *alerts_out = alerts;
    alerts = NULL;
    return 0;
}

struct as_alertmanager_alerts *as_alertmanager_alerts_free(struct as_alertmanager_alerts *alerts)
{
    if (!alerts)
        return NULL;
    for (size_t i = 0; i < alerts->count; i++)
        free_labels(&alerts->items[i]);
    free(alerts->items);
    as_arena_deinit(&alerts->arena);
    free(alerts);
    return NULL;
}

struct told { /* an alert, and its position in all lists together */
    const struct as_alertmanager_alert *alert;
    size_t order;
};

static int compare_told(const void *a, const void *b)
{
    const struct told *x = a, *y = b;
    const int order = as_digest_compare(&x->alert->listed.digest, &y->alert->listed.digest);
    if (order != 0)
        return order;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void unite_receivers(const struct told *told, size_t count, struct as_arena *arena,
                            struct as_listed_alert *alert)
{
    size_t total = 0, kept = 0;
    for (size_t i = 0; i < count; i++)
        total += told[i].alert->listed.receiver_count;
    const char **names = as_arena_alloc(arena, total, sizeof(*names));
    total = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < told[i].alert->listed.receiver_count; k++)
            names[total++] = told[i].alert->listed.receivers[k];
    if (total > 0)
        qsort(names, total, sizeof(*names), compare_names);
    for (size_t i = 0; i < total; i++)
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    alert->receivers = names;
    alert->receiver_count = kept;
}

/* Merges `count` entries of the same alert. */
static struct as_listed_alert unite(const struct told *told, size_t count, struct as_arena *arena)
{
    const struct as_alertmanager_alert *newest = told[0].alert;
    struct as_listed_alert alert = newest->listed;
    for (size_t i = 1; i < count; i++) {
        const struct as_alertmanager_alert *other = told[i].alert;
        alert.is_suppressed = alert.is_suppressed && other->listed.is_suppressed;
        if (other->listed.starts_at.us < alert.starts_at.us)
            alert.starts_at = other->listed.starts_at;
        if (other->listed.updated_at.us > newest->listed.updated_at.us)
            newest = other;
    }
    alert.annotations = newest->listed.annotations;
    alert.updated_at = newest->listed.updated_at;
    unite_receivers(told, count, arena, &alert);
    return alert;
}

void as_alertmanager_merge(struct as_alertmanager_alerts *const *lists, size_t list_count,
                           struct as_arena *arena, struct as_alert_list *merged_out)
{
    size_t total = 0, count = 0, same;
    for (size_t i = 0; i < list_count; i++)
        total += lists[i]->count;
    struct told *told = as_arena_alloc(arena, total, sizeof(*told));
    total = 0;
    for (size_t i = 0; i < list_count; i++)
        for (size_t k = 0; k < lists[i]->count; k++, total++)
            told[total] = (struct told){&lists[i]->items[k], total};
    if (total > 0)
        qsort(told, total, sizeof(*told), compare_told);

    struct as_listed_alert *alerts = as_arena_alloc(arena, total, sizeof(*alerts));
    for (size_t i = 0; i < total; i += same) {
        const struct as_digest *digest = &told[i].alert->listed.digest;
        for (same = 1; i + same < total; same++)
            if (as_digest_compare(&told[i + same].alert->listed.digest, digest) != 0)
                break;
        alerts[count++] = unite(&told[i], same, arena);
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
