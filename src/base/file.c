/*
 * Reading small files whole. Separate from str.c, so that users of str.c (the core) do not depend
 * on input and output.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>

#define CHUNK ((size_t)16 * 1024)

static int read_all(int fd, struct as_buf *buf)
{
    for (;;) {
        size_t room = buf->max - buf->size;
        if (room == 0)
            return -EFBIG;
        if (room > CHUNK)
            room = CHUNK;
        char *end = as_buf_reserve(buf, room);
        if (!end)
            return -ENOMEM;
        ssize_t got = read(fd, end, room);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        end[got] = '\0';
        if (got == 0)
            return 0;
        buf->size += (size_t)got;
    }
}

int as_file_read(const char *path, size_t max, char **data_out, size_t *size_out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    /* One byte more than allowed distinguishes "just fits" from "too large". */
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(max < SIZE_MAX - 1 ? max + 1 : max);
    int status = read_all(fd, &buf);
    close(fd);
    if (status)
        return status;
    *data_out = as_buf_take(&buf, size_out);
    return 0;
}
