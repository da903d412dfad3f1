/*
 * A growing byte buffer with a mandatory maximum.
 *
 * An append fails when it would exceed the maximum, or when there is no memory for more than
 * AS_ALLOC_SMALL bytes. Then the buffer is marked `failed` and does not change, and later appends
 * do nothing. So a writer checks once, at the end. `data` is NUL-terminated when it is not NULL;
 * `size` does not count the NUL.
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
/* For content that is never secret: the memory is released without wiping (as_release). */
#define AS_BUF_INIT_OPEN(maximum) ((struct as_buf){.max = (maximum), .is_open = true})

void as_buf_deinit(struct as_buf *buf);
void as_buf_wipe(struct as_buf *buf);  /* deinit for content that held a secret */
void as_buf_clear(struct as_buf *buf); /* empties the buffer, clears `failed`; keeps the memory */
void as_buf_append(struct as_buf *buf, const void *data, size_t size);
void as_buf_append_str(struct as_buf *buf, const char *text);
void as_buf_append_i64(struct as_buf *buf, int64_t number);
void as_buf_printf(struct as_buf *buf, const char *format, ...) AS_PRINTF(2, 3);

/* The slow path of as_buf_reserve: allocates. */
char *as_buf_grow(struct as_buf *buf, size_t size);

/* Room for `size` bytes behind the present end. The caller fills it and adds to buf->size. NULL,
 * with `failed` set, when there is no room. */
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

/* Returns the bytes ("" if empty), owned by the caller, who frees them with free(). Leaves the
 * buffer empty. */
char *as_buf_take(struct as_buf *buf, size_t *size_out) AS_MUST_USE;

/* 0, or -EMSGSIZE if an append failed. */
int as_buf_check(const struct as_buf *buf) AS_MUST_USE;

#endif
