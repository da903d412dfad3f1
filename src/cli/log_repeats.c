/*
 * Stores lines as they are; after a lookup, also parsed. Repeats refer to few records, but any
 * recent record may be one of them.
 */
#include "log_repeats.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/tools/record_text.h>

#include "log_filter.h"

#define PARSED_MAX (UINT64_C(8) << 20) /* bytes of lines */

struct kept {
    UT_hash_handle hh; /* by id */
    STAILQ_ENTRY(kept) in_order;
    char *id, *line;
    size_t size;
    uint64_t number;
    json_t *record; /* NULL: not parsed */
};
STAILQ_HEAD(kept_list, kept);

struct log_repeats {
    struct kept *by_id;
    struct kept_list order; /* oldest first */
    uint64_t records, bytes, parsed_bytes;
};

struct log_repeats *log_repeats_new(void)
{
    struct log_repeats *repeats = as_xcalloc(1, sizeof(*repeats));
    STAILQ_INIT(&repeats->order);
    return repeats;
}

static void forget_record(struct log_repeats *repeats, struct kept *kept)
{
    if (kept->record)
        repeats->parsed_bytes -= kept->size;
    json_decref(kept->record);
    kept->record = NULL;
}

static void forget_oldest(struct log_repeats *repeats)
{
    struct kept *kept = STAILQ_FIRST(&repeats->order);
    STAILQ_REMOVE_HEAD(&repeats->order, in_order);
    HASH_DEL(repeats->by_id, kept);
    repeats->bytes -= kept->size;
    forget_record(repeats, kept);
    free(kept->id);
    free(kept->line);
    free(kept);
}

struct log_repeats *log_repeats_free(struct log_repeats *repeats)
{
    while (repeats && !STAILQ_EMPTY(&repeats->order))
        forget_oldest(repeats);
    free(repeats);
    return NULL;
}

static struct kept *find(const struct log_repeats *repeats, const char *id)
{
    struct kept *kept;
    HASH_FIND_STR(repeats->by_id, id, kept);
    return kept;
}

static void keep(struct log_repeats *repeats, const char *id, const char *line, size_t size)
{
    struct kept *kept = as_xcalloc(1, sizeof(*kept));
    kept->id = as_xstrdup(id);
    kept->line = memcpy(as_xmalloc(size), line, size);
    kept->size = size;
    kept->number = repeats->records;
    repeats->bytes += size;
    HASH_ADD_KEYPTR(hh, repeats->by_id, kept->id, strlen(kept->id), kept);
    STAILQ_INSERT_TAIL(&repeats->order, kept, in_order);
}

void log_repeats_note(struct log_repeats *repeats, const json_t *record, const char *line,
                      size_t size)
{
    const char *id = as_record_get_text(record, "id");
    const struct kept *oldest;
    repeats->records++;
    if (strcmp(as_record_get_text(record, "kind"), "notification") == 0 && *id &&
        !find(repeats, id))
        keep(repeats, id, line, size);
    while ((oldest = STAILQ_FIRST(&repeats->order)) &&
           (repeats->records - oldest->number > AS_REPEAT_REACH_RECORDS ||
            repeats->bytes > AS_REPEAT_REACH_BYTES))
        forget_oldest(repeats);
}

bool log_repeats_is_repeat(const json_t *record)
{
    return strcmp(as_record_get_text(record, "kind"), "repeat") == 0;
}

static const json_t *parse(struct log_repeats *repeats, struct kept *kept)
{
    struct kept *other;
    if (kept->record)
        return kept->record;
    if (repeats->parsed_bytes > PARSED_MAX) {
        STAILQ_FOREACH (other, &repeats->order, in_order)
            forget_record(repeats, other);
    }
    kept->record = json_loadb(kept->line, kept->size, JSON_REJECT_DUPLICATES, NULL);
    repeats->parsed_bytes += kept->record ? kept->size : 0;
    return kept->record;
}

json_t *log_repeats_resolve(struct log_repeats *repeats, const json_t *repeat)
{
    struct kept *kept = find(repeats, as_record_get_text(repeat, "same_as"));
    const json_t *details = kept ? parse(repeats, kept) : NULL;
    const char *key;
    json_t *value;
    if (!details)
        return NULL;
    json_t *whole = json_copy((json_t *)(uintptr_t)details);
    json_object_foreach((json_t *)(uintptr_t)repeat, key, value)
    {
        if (json_object_get(whole, key) && strcmp(key, "kind") != 0)
            json_object_set(whole, key, value);
    }
    return whole;
}
