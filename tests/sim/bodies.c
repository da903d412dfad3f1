/*
 * What the daemon remembers of bodies, for the small records of repeats, and the proof of these:
 * whatever a record is, the reader finds in it, or in the one that it names, what a whole record
 * would have said of each alert.
 */
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/log/record.h>

#include "sim.h"

static bool is_same(const struct message *a, const struct message *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++) {
        if (a->items[i].alert != b->items[i].alert || a->items[i].firing != b->items[i].firing ||
            a->items[i].mood != b->items[i].mood ||
            a->items[i].starts_at.us != b->items[i].starts_at.us ||
            a->items[i].ends_at.us != b->items[i].ends_at.us)
            return false;
    }
    return true;
}

struct as_record_base *bodies_find(struct world *world, const struct message *message)
{
    struct bodies *bodies = &world->bodies;
    for (size_t i = 0; i < AS_ARRAY_SIZE(bodies->items); i++) {
        if (bodies->items[i].is_used && is_same(&bodies->items[i].message, message))
            return &bodies->items[i].base;
    }
    struct body *body = &bodies->items[bodies->next++ % AS_ARRAY_SIZE(bodies->items)];
    *body = (struct body){.is_used = true, .message = *message};
    return &body->base;
}

/* FNV-1a */
uint64_t bodies_digest(const json_t *alerts)
{
    char *text = json_dumps(alerts, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (const char *at = text; at && *at; at++)
        digest = (digest ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    free(text);
    return digest;
}

/* Notifications are numbered. */
static size_t get_number(const char *id)
{
    return (size_t)strtoull(id + 1, NULL, 10);
}

void bodies_note(struct world *world, const struct as_notification_record *record)
{
    struct bodies *bodies = &world->bodies;
    const struct as_record_header header = {.instance = "sim"};
    const size_t number = get_number(record->notification->id);
    struct as_buf text = AS_BUF_INIT((size_t)1 << 24);
    as_record_encode(&header, AS_RECORD_NOTIFICATION, record, &text, NULL);
    json_t *json = json_loadb(text.data, text.size, 0, NULL);
    while (bodies->told_count <= number) {
        bodies->told = as_xgrow(bodies->told, bodies->told_count, &bodies->told_capacity,
                                sizeof(*bodies->told));
        bodies->told[bodies->told_count++] = 0;
    }
    bodies->told[number] = bodies_digest(json_object_get(json, "alerts"));
    json_decref(json);
    as_buf_deinit(&text);
}

void bodies_check(struct world *world, const char *id, uint64_t digest)
{
    const size_t number = get_number(id);
    if (number >= world->bodies.told_count || world->bodies.told[number] != digest)
        fail(world, "the log says something else of %s than what became of it", id);
}
