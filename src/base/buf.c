/*
 * A growing byte buffer with a mandatory maximum. Invariants: size <= max; data is NULL or has
 * capacity bytes with size < capacity and data[size] == '\0'; a failed buffer does not change until
 * it is cleared.
 */
#include <alertscaler/base/buf.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>

#define FIRST_CAPACITY 64

static void give_back(const struct as_buf *buf)
{
    if (buf->is_open)
        as_release(buf->data);
    else
        free(buf->data);
}

static void forget(struct as_buf *buf)
{
    *buf = (struct as_buf){.max = buf->max, .is_open = buf->is_open};
}

void as_buf_deinit(struct as_buf *buf)
{
    give_back(buf);
    forget(buf);
}

void as_buf_wipe(struct as_buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->capacity);
    as_buf_deinit(buf);
}

void as_buf_clear(struct as_buf *buf)
{
    buf->size = 0;
    buf->failed = false;
    if (buf->data)
        buf->data[0] = '\0';
}

/* NULL if out of memory; then the old block stays. Open content avoids realloc, which wipes. */
static char *move(const struct as_buf *buf, size_t capacity)
{
    if (!buf->is_open)
        return as_library_realloc(buf->data, capacity);
    char *data = as_library_malloc(capacity);
    if (data && buf->data) {
        memcpy(data, buf->data, buf->size);
        give_back(buf);
    }
    return data;
}

char *as_buf_grow(struct as_buf *buf, size_t size)
{
    if (buf->failed)
        return NULL;
    if (size > buf->max - buf->size || buf->size + size == SIZE_MAX) {
        buf->failed = true;
        return NULL;
    }
    size_t needed = buf->size + size + 1;
    if (needed > buf->capacity) {
        size_t capacity = buf->capacity > SIZE_MAX / 2 ? SIZE_MAX : buf->capacity * 2;
        if (capacity < FIRST_CAPACITY)
            capacity = FIRST_CAPACITY;
        if (capacity > buf->max)
            capacity = buf->max == SIZE_MAX ? SIZE_MAX : buf->max + 1;
        if (capacity < needed)
            capacity = needed;
        char *data = move(buf, capacity);
        if (!data) {
            buf->failed = true;
            return NULL;
        }
        data[buf->size] = '\0';
        buf->data = data;
        buf->capacity = capacity;
    }
    return buf->data + buf->size;
}

void as_buf_append(struct as_buf *buf, const void *data, size_t size)
{
    if (size == 0)
        return;
    char *end = as_buf_reserve(buf, size);
    if (!end)
        return;
    memcpy(end, data, size);
    end[size] = '\0';
    buf->size += size;
}

void as_buf_append_str(struct as_buf *buf, const char *text)
{
    as_buf_append(buf, text, strlen(text));
}

void as_buf_append_i64(struct as_buf *buf, int64_t number)
{
    char text[AS_NUMBER_SIZE];
    as_buf_append(buf, text, as_number_print_i64(number, text));
}

void as_buf_printf(struct as_buf *buf, const char *format, ...)
{
    if (buf->failed)
        return;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t room = buf->data ? buf->capacity - buf->size : 0;
    int size = vsnprintf(room ? buf->data + buf->size : NULL, room, format, arguments);
    if (size < 0) {
        buf->failed = true;
    } else if ((size_t)size < room && (size_t)size <= buf->max - buf->size) {
        buf->size += (size_t)size;
    } else {
        char *end = as_buf_reserve(buf, (size_t)size);
        if (end && vsnprintf(end, (size_t)size + 1, format, again) == size)
            buf->size += (size_t)size;
        else
            buf->failed = true;
    }
    if (buf->data)
        buf->data[buf->size] = '\0';
    va_end(again);
    va_end(arguments);
}

char *as_buf_take(struct as_buf *buf, size_t *size_out)
{
    char *data = buf->data ? buf->data : as_xstrdup("");
    if (size_out)
        *size_out = buf->size;
    forget(buf);
    return data;
}

int as_buf_check(const struct as_buf *buf)
{
    return buf->failed ? -EMSGSIZE : 0;
}
