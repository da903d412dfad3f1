/*
 * A growing byte buffer with a mandatory maximum.
 *
 * Appending past the maximum (or out of memory, with more than AS_ALLOC_SMALL) marks the buffer
 * `failed` and changes nothing; all later appends do nothing either, so that a writer checks once
 * at the end. `data` is always NUL-terminated when not NULL (the NUL is not counted in `size`).
 */
#ifndef ALERTSCALER_BASE_BUF_H
#define ALERTSCALER_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

struct as_buf {
    char *data;
    size_t size;
    size_t capacity;
    size_t max;
    bool failed;
    bool is_open;
};

#define AS_BUF_INIT(maximum) ((struct as_buf){.max = (maximum)})
/* Nothing secret is ever in it: its memory is given back as it is (as_release). */
#define AS_BUF_INIT_OPEN(maximum) ((struct as_buf){.max = (maximum), .is_open = true})

void as_buf_deinit(struct as_buf *buf);
void as_buf_wipe(struct as_buf *buf);  /* deinit of what held a secret */
void as_buf_clear(struct as_buf *buf); /* empties and un-fails; keeps the memory */
void as_buf_append(struct as_buf *buf, const void *data, size_t size);
void as_buf_append_str(struct as_buf *buf, const char *text);
void as_buf_append_i64(struct as_buf *buf, int64_t number);
void as_buf_printf(struct as_buf *buf, const char *format, ...) AS_PRINTF(2, 3);

/* as_buf_reserve, where the memory may not be there yet. */
char *as_buf_grow(struct as_buf *buf, size_t size);

/* Room for `size` bytes behind the present end, to be filled by the caller who then adds to `size`;
 * NULL and failed where there is none. */
static inline char *as_buf_reserve(struct as_buf *buf, size_t size)
{
    if (!buf->failed && size < buf->capacity - buf->size) /* the capacity is at most max + 1 */
        return buf->data + buf->size;
    return as_buf_grow(buf, size);
}

static inline void as_buf_append_char(struct as_buf *buf, char byte)
{
    char *end = as_buf_reserve(buf, 1);
    if (!end)
        return;
    end[0] = byte;
    end[1] = '\0';
    buf->size++;
}

/* The bytes ("" if empty) as memory of the caller's, to be freed with free(); leaves the buffer
 * empty. */
char *as_buf_take(struct as_buf *buf, size_t *size_out) AS_MUST_USE;

/* 0, or -EMSGSIZE if an append failed. */
int as_buf_check(const struct as_buf *buf) AS_MUST_USE;

#endif
