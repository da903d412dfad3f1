/*
 * The stream: see the header. Invariants: bytes are in `unsent` only while they are held or
 * `writable` is pending. Without TLS, events change only for a peer that does not read, or that
 * sends faster than the owner reads.
 */
#include "stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <alertscaler/base/alloc.h>

static void add(struct event *event)
{
    if (event_add(event, NULL) != 0)
        abort(); /* a small allocation of libevent's */
}

/* Translates OpenSSL's `result`: -EAGAIN, 0 for the end, or another negative errno. */
static int explain(struct as_stream *stream, int result)
{
    const int code = errno;
    switch (SSL_get_error(stream->ssl, result)) {
    case SSL_ERROR_WANT_WRITE: stream->wants_to_write = true; return -EAGAIN;
    case SSL_ERROR_WANT_READ: return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL: return code && SSL_is_init_finished(stream->ssl) ? -code : 0;
    default: stream->tls_error = ERR_get_error(); return -EPROTO;
    }
}

static ssize_t read_tls(struct as_stream *stream, void *room, size_t size)
{
    size_t got;
    ERR_clear_error();
    errno = 0;
    const int result = SSL_read_ex(stream->ssl, room, size, &got);
    if (result > 0)
        return (ssize_t)got;
    const int status = explain(stream, result);
    if (stream->wants_to_write)
        add(stream->writable);
    return status;
}

ssize_t as_stream_read(struct as_stream *stream, void *room, size_t size)
{
    if (stream->ssl)
        return read_tls(stream, room, size);
    const ssize_t got = recv(stream->fd, room, size, MSG_DONTWAIT);
    if (got >= 0)
        return got;
    return errno == EINTR ? -EAGAIN : -errno;
}

static ssize_t write_tls(struct as_stream *stream, const char *bytes, size_t size)
{
    size_t sent;
    ERR_clear_error();
    errno = 0;
    const int result = SSL_write_ex(stream->ssl, bytes, size, &sent);
    if (result > 0)
        return (ssize_t)sent;
    if (SSL_get_error(stream->ssl, result) == SSL_ERROR_WANT_READ)
        return -EPROTO; /* only if a peer splits a handshake message and keeps the rest back */
    const int status = explain(stream, result);
    return status ? status : -EPIPE;
}

/* Writes as much of the kept bytes as the kernel takes. */
static int write_kept(struct as_stream *stream)
{
    struct as_buf *unsent = &stream->unsent;
    while (stream->unsent_at < unsent->size) {
        const char *bytes = unsent->data + stream->unsent_at;
        const size_t size = unsent->size - stream->unsent_at;
        ssize_t sent = stream->ssl ? write_tls(stream, bytes, size)
                                   : send(stream->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && !stream->ssl)
            sent = errno == EINTR ? -EAGAIN : -errno;
        if (sent < 0)
            return (int)sent;
        stream->unsent_at += (size_t)sent;
    }
    as_buf_deinit(unsent);
    stream->unsent_at = 0;
    return 0;
}

int as_stream_flush(struct as_stream *stream)
{
    if (event_pending(stream->writable, EV_WRITE, NULL))
        return -EAGAIN;
    const int status = write_kept(stream);
    if (status == -EAGAIN)
        add(stream->writable);
    return status;
}

static void on_readable(int fd, short what, void *context)
{
    struct as_stream *stream = context;
    stream->callbacks.ready(stream->callbacks.context, (what & EV_READ) != 0);
}

static void on_writable(int fd, short what, void *context)
{
    struct as_stream *stream = context;
    const bool had_unsent = stream->unsent.size > 0;
    const bool wants_to_read = stream->wants_to_write && !stream->is_paused;
    stream->wants_to_write = false;
    const int status = as_stream_flush(stream);
    if (wants_to_read)
        event_active(stream->readable, EV_READ, 0);
    if (had_unsent && status != -EAGAIN)
        stream->callbacks.written(stream->callbacks.context, status);
}

/* Keeps all but the first `sent` bytes. */
static int keep(struct as_stream *stream, const struct iovec *parts, int count, size_t sent)
{
    for (int i = 0; i < count; i++) {
        const size_t skip = sent < parts[i].iov_len ? sent : parts[i].iov_len;
        sent -= skip;
        as_buf_append(&stream->unsent, (const char *)parts[i].iov_base + skip,
                      parts[i].iov_len - skip);
    }
    return as_buf_check(&stream->unsent) == 0 ? 0 : -ENOMEM;
}

int as_stream_hold(struct as_stream *stream, const struct iovec *parts, int count)
{
    return keep(stream, parts, count, 0);
}

int as_stream_send(struct as_stream *stream, struct iovec *parts, int count)
{
    size_t sent = 0;
    if (!stream->ssl && stream->unsent.size == 0) {
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        const ssize_t result = sendmsg(stream->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (result < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        sent = result > 0 ? (size_t)result : 0;
    }
    const int status = keep(stream, parts, count, sent);
    if (status != 0)
        return status;
    return stream->unsent.size > 0 ? as_stream_flush(stream) : 0;
}

size_t as_stream_count_unsent(const struct as_stream *stream)
{
    return stream->unsent.capacity;
}

void as_stream_pause(struct as_stream *stream)
{
    stream->is_paused = true;
    event_del(stream->readable);
}

void as_stream_resume(struct as_stream *stream)
{
    if (stream->is_paused)
        add(stream->readable);
    stream->is_paused = false;
    if (stream->ssl && SSL_pending(stream->ssl) > 0) /* the kernel does not know of these bytes */
        event_active(stream->readable, EV_READ, 0);
}

void as_stream_stop(struct as_stream *stream)
{
    as_stream_pause(stream);
    event_del(stream->writable);
}

void as_stream_wake(struct as_stream *stream)
{
    event_active(stream->readable, EV_TIMEOUT, 0);
}

void as_stream_end_tls(struct as_stream *stream)
{
    SSL_free(stream->ssl);
    stream->ssl = NULL;
    as_buf_deinit(&stream->unsent);
    stream->unsent_at = 0;
}

void as_stream_shut(struct as_stream *stream)
{
    if (stream->ssl && SSL_is_init_finished(stream->ssl) && stream->unsent.size == 0) {
        ERR_clear_error();
        SSL_shutdown(stream->ssl);
        ERR_clear_error();
    }
    shutdown(stream->fd, SHUT_WR);
}

int as_stream_open(struct as_stream *stream, struct event_base *base, int fd, SSL *ssl,
                   const struct as_stream_callbacks *callbacks)
{
    *stream = (struct as_stream){
        .fd = fd, .ssl = ssl, .unsent = AS_BUF_INIT(SIZE_MAX / 2), .callbacks = *callbacks};
    stream->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, stream);
    stream->writable = event_new(base, fd, EV_WRITE, on_writable, stream);
    if (!stream->readable || !stream->writable || (ssl && SSL_set_fd(ssl, fd) != 1) ||
        event_add(stream->readable, NULL) != 0) {
        if (stream->readable)
            event_free(stream->readable);
        if (stream->writable)
            event_free(stream->writable);
        return -ENOMEM;
    }
    if (ssl)
        SSL_set_accept_state(ssl);
    return 0;
}

void as_stream_close(struct as_stream *stream)
{
    event_free(stream->readable);
    event_free(stream->writable);
    SSL_free(stream->ssl);
    as_buf_deinit(&stream->unsent);
    close(stream->fd);
}
