/*
 * The in-memory sink. The medium holds the bytes; the sink is a handle on it. `calls_left` counts
 * down to the injected failure.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/log/log_chain.h>

#include "audit_memory.h"

struct as_audit_memory {
    struct as_buf lines;
    size_t synced;
    uint64_t calls_left, attached;
    int status, broken;
    size_t torn;
    bool failed;
};

struct sink {
    struct as_audit port;
    struct as_audit_memory *memory;
    struct as_audit_head head;
    uint64_t number; /* only the newest sink's writes are kept */
};

struct as_audit_memory *as_audit_memory_new(void)
{
    struct as_audit_memory *memory = as_xcalloc(1, sizeof(*memory));

    memory->lines = AS_BUF_INIT(SIZE_MAX / 2);
    memory->calls_left = UINT64_MAX;
    return memory;
}

struct as_audit_memory *as_audit_memory_free(struct as_audit_memory *memory)
{
    if (memory) {
        as_buf_deinit(&memory->lines);
        free(memory);
    }
    return NULL;
}

const char *as_audit_memory_get_lines(const struct as_audit_memory *memory, size_t *size_out)
{
    *size_out = memory->lines.size;
    return memory->lines.data ? memory->lines.data : "";
}

size_t as_audit_memory_get_synced(const struct as_audit_memory *memory)
{
    return memory->synced;
}

void as_audit_memory_cut(struct as_audit_memory *memory, size_t size)
{
    if (size < memory->lines.size) {
        memory->lines.size = size;
        memory->lines.data[size] = '\0';
    }
    if (memory->synced > size)
        memory->synced = size;
}

void as_audit_memory_fail(struct as_audit_memory *memory, uint64_t calls, int status, size_t torn)
{
    memory->calls_left = calls;
    memory->status = status;
    memory->torn = torn;
}

void as_audit_memory_break(struct as_audit_memory *memory, int status)
{
    memory->broken = status;
}

static bool is_elsewhere(const struct sink *sink)
{
    return sink->number != sink->memory->attached;
}

/* Counts one call. 0, or the injected failure. */
static int count_call(struct as_audit_memory *memory, struct as_error *error)
{
    if (memory->broken) {
        as_error_set_errno(error, memory->broken, "action log in memory");
        return memory->broken;
    }
    if (!memory->failed && memory->calls_left == 0)
        memory->failed = true;
    else if (memory->calls_left != UINT64_MAX && memory->calls_left)
        memory->calls_left--;
    if (memory->failed)
        as_error_set_errno(error, memory->status, "action log in memory");
    return memory->failed ? memory->status : 0;
}

static struct as_audit_head memory_get_head(const struct as_audit *self)
{
    return ((const struct sink *)self)->head;
}

static int memory_append(struct as_audit *self, const char *lines, size_t size,
                         const struct as_audit_head *head, struct as_error *error)
{
    struct sink *sink = (struct sink *)self;
    struct as_audit_memory *memory = sink->memory;
    bool failed_before = memory->failed;

    if (is_elsewhere(sink))
        return 0;
    int status = count_call(memory, error);
    if (status && (failed_before || memory->broken))
        return status;
    if (status && size > memory->torn)
        size = memory->torn;
    as_buf_append(&memory->lines, lines, size);
    if (!status)
        sink->head = *head;
    return status ? status : as_buf_check(&memory->lines);
}

/* One medium holds the lines of all. */
static int memory_begin_part(struct as_audit *self, const struct as_audit_head *head,
                             struct as_error *error)
{
    ((struct sink *)self)->head = *head;
    return 0;
}

static int memory_sync(struct as_audit *self, struct as_error *error)
{
    struct as_audit_memory *memory = ((struct sink *)self)->memory;

    if (is_elsewhere((struct sink *)self))
        return 0;
    int status = count_call(memory, error);

    if (!status)
        memory->synced = memory->lines.size;
    return status;
}

static struct as_audit_place memory_get_place(const struct as_audit *self)
{
    return (struct as_audit_place){((const struct sink *)self)->number, UINT64_MAX};
}

static void memory_close(struct as_audit *self)
{
    free(self);
}

struct as_audit *as_audit_memory_attach(struct as_audit_memory *memory)
{
    struct sink *sink = as_xcalloc(1, sizeof(*sink));
    struct as_chain *chain = as_chain_new();
    char prev[AS_AUDIT_HASH_SIZE];
    const char *data = memory->lines.data;
    size_t size = memory->lines.size;

    sink->port = (struct as_audit){.get_head = memory_get_head,
                                   .append = memory_append,
                                   .begin_part = memory_begin_part,
                                   .sync = memory_sync,
                                   .reopen = memory_sync,
                                   .get_place = memory_get_place,
                                   .close = memory_close};
    sink->memory = memory;
    sink->number = ++memory->attached;
    sink->head = AS_AUDIT_HEAD_INIT;
    memory->failed = false;
    memory->calls_left = UINT64_MAX;
    while (size && data[size - 1] != '\n')
        size--;
    as_audit_memory_cut(memory, size);
    if (size) {
        const char *before = memrchr(data, '\n', size - 1);
        const char *line = before ? before + 1 : data;
        if (as_chain_check_line(chain, line, (size_t)(data + size - 1 - line), &sink->head, prev,
                                NULL))
            abort(); /* only sealed lines come here */
    }
    as_chain_free(chain);
    return &sink->port;
}
