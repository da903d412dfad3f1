/*
 * The in-memory store: one ordered map per kind, and injected failures. A failed commit is applied
 * either not at all or whole, as with a file whose last sync failed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/tree.h>

#include <alertscaler/base/alloc.h>

#include "store_memory.h"

struct record {
    RB_ENTRY(record) link;
    size_t key_size, value_size;
    unsigned char *value; /* owned */
    unsigned char key[];
};

static int compare(const struct record *a, const struct record *b)
{
    size_t shorter = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = memcmp(a->key, b->key, shorter);

    return order ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

RB_HEAD(records, record);
RB_GENERATE_INTERNAL(records, record, link, compare, __attribute__((unused)) static)

struct as_store_memory {
    struct records kinds[AS_STORE_KIND_COUNT];
    size_t counts[AS_STORE_KIND_COUNT];
    uint64_t commits, commits_left, attached, digest;
    int status, broken;
    bool applied, failed;
};

struct handle {
    struct as_store port;
    struct as_store_memory *memory;
    uint64_t number; /* only the newest store may write */
};

static struct record *record_new(const void *key, size_t key_size)
{
    struct record *record = as_xmalloc(sizeof(*record) + key_size);

    *record = (struct record){.key_size = key_size};
    if (key_size)
        memcpy(record->key, key, key_size);
    return record;
}

static void record_free(struct record *record)
{
    free(record->value);
    free(record);
}

struct as_store_memory *as_store_memory_new(void)
{
    struct as_store_memory *memory = as_xcalloc(1, sizeof(*memory));

    memory->commits_left = UINT64_MAX;
    memory->digest = UINT64_C(0xcbf29ce484222325);
    return memory;
}

struct as_store_memory *as_store_memory_free(struct as_store_memory *memory)
{
    if (!memory)
        return NULL;
    for (int kind = 0; kind < AS_STORE_KIND_COUNT; kind++) {
        struct record *record, *next;
        RB_FOREACH_SAFE (record, records, &memory->kinds[kind], next) {
            RB_REMOVE(records, &memory->kinds[kind], record);
            record_free(record);
        }
    }
    free(memory);
    return NULL;
}

void as_store_memory_fail(struct as_store_memory *memory, uint64_t commits, int status,
                          bool applied)
{
    memory->commits_left = commits;
    memory->status = status;
    memory->applied = applied;
}

void as_store_memory_break(struct as_store_memory *memory, int status)
{
    memory->broken = status;
}

uint64_t as_store_memory_get_commits(const struct as_store_memory *memory)
{
    return memory->commits;
}

size_t as_store_memory_get_count(const struct as_store_memory *memory, enum as_store_kind kind)
{
    return memory->counts[kind];
}

uint64_t as_store_memory_get_digest(const struct as_store_memory *memory)
{
    return memory->digest;
}

/* FNV-1a */
static void digest_add(struct as_store_memory *memory, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t digest = memory->digest;

    for (size_t i = 0; i < size; i++)
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    memory->digest = digest;
}

static void digest_add_number(struct as_store_memory *memory, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        digest_add(memory, &(unsigned char){(unsigned char)(number >> (8 * i))}, 1);
}

/* Sizes come before the bytes, so that two lists of changes never give the same bytes. */
static void digest_add_change(struct as_store_memory *memory, const struct as_store_change *change)
{
    digest_add_number(memory, (uint64_t)change->kind);
    digest_add_number(memory, change->key_size);
    digest_add(memory, change->key, change->key_size);
    digest_add_number(memory, change->value ? change->value_size : UINT64_MAX);
    if (change->value)
        digest_add(memory, change->value, change->value_size);
}

static void apply(struct as_store_memory *memory, const struct as_store_change *change)
{
    struct records *records = &memory->kinds[change->kind];
    struct record *fresh = record_new(change->key, change->key_size);
    struct record *record = RB_FIND(records, records, fresh);

    if (!change->value) {
        record_free(fresh);
        if (record) {
            RB_REMOVE(records, records, record);
            memory->counts[change->kind]--;
            record_free(record);
        }
        return;
    }
    if (record) {
        record_free(fresh);
    } else {
        record = fresh;
        RB_INSERT(records, records, record);
        memory->counts[change->kind]++;
    }
    free(record->value);
    record->value = as_xmalloc(change->value_size + 1);
    if (change->value_size)
        memcpy(record->value, change->value, change->value_size);
    record->value_size = change->value_size;
}

static int memory_commit(struct as_store *self, const struct as_store_change *changes, size_t count,
                         struct as_error *error)
{
    struct handle *handle = (struct handle *)self;
    struct as_store_memory *memory = handle->memory;
    bool failed_before = memory->failed;

    if (handle->number != memory->attached) {
        as_error_set(error, "state in memory: another has opened it");
        return -ESTALE;
    }
    if (memory->broken) {
        as_error_set_errno(error, memory->broken, "state in memory");
        return memory->broken;
    }
    if (memory->commits_left == 0)
        memory->failed = true;
    else if (memory->commits_left != UINT64_MAX)
        memory->commits_left--;
    if (memory->failed)
        as_error_set_errno(error, memory->status, "state in memory");
    if (!memory->failed || (memory->applied && !failed_before)) {
        digest_add_number(memory, count);
        for (size_t i = 0; i < count; i++) {
            apply(memory, &changes[i]);
            digest_add_change(memory, &changes[i]);
        }
    }
    if (!memory->failed)
        memory->commits++;
    return memory->failed ? memory->status : 0;
}

static int memory_visit(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                        void *context, struct as_error *error)
{
    struct as_store_memory *memory = ((struct handle *)self)->memory;
    struct record *record;
    int status = 0;

    RB_FOREACH (record, records, &memory->kinds[kind]) {
        status = visit(context, record->key, record->key_size, record->value, record->value_size);
        if (status)
            break;
    }
    return status;
}

static void memory_close(struct as_store *self)
{
    free(self);
}

struct as_store *as_store_memory_attach(struct as_store_memory *memory)
{
    struct handle *handle = as_xmalloc(sizeof(*handle));

    handle->port =
        (struct as_store){.commit = memory_commit, .visit = memory_visit, .close = memory_close};
    handle->memory = memory;
    handle->number = ++memory->attached;
    memory->failed = false;
    memory->commits_left = UINT64_MAX;
    return &handle->port;
}
