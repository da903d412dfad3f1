/*
 * Bytes to and from one peer, on a socket that never blocks, plain or through TLS.
 *
 * Reading is the owner's: it is told when there is something, and reads as much as it wants
 * straight to where it belongs. What the kernel does not take of an answer at once is kept here and
 * goes as the peer reads. One read and one write serve a common request: nothing is asked of the
 * kernel beyond that, and no event is changed.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <openssl/types.h>

#include <alertscaler/base/buf.h>

struct event;
struct event_base;

/* Both are called from an event. */
struct as_stream_callbacks {
    /* `has_bytes`: as_stream_read has something to say; else as_stream_wake asked for the call. */
    void (*ready)(void *context, bool has_bytes);
    /* All that was kept is with the kernel: 0; or the peer is gone: a negative errno. */
    void (*written)(void *context, int status);
    void *context;
};

struct as_stream {
    int fd;
    SSL *ssl;                /* NULL: plain */
    unsigned long tls_error; /* OpenSSL's code of what ended it */
    struct event *readable, *writable;
    struct as_buf unsent;
    size_t unsent_at;
    bool is_paused;
    bool wants_to_write; /* to go on reading: TLS */
    struct as_stream_callbacks callbacks;
};

/* Takes `fd` and `ssl` (its server's side, nothing said yet), unless it fails: -ENOMEM. */
int as_stream_open(struct as_stream *stream, struct event_base *base, int fd, SSL *ssl,
                   const struct as_stream_callbacks *callbacks) AS_MUST_USE;
void as_stream_close(struct as_stream *stream);

/* How many bytes came, 0 at the end of what the peer sends, -EAGAIN where there is nothing now, or
 * another negative errno: the peer is gone (-EPROTO: `tls_error` says why). With TLS at most one
 * record's at a time, and as_stream_resume must be called before the owner waits for more. */
ssize_t as_stream_read(struct as_stream *stream, void *room, size_t size);

/* No more calls for bytes until as_stream_resume. */
void as_stream_pause(struct as_stream *stream);
void as_stream_resume(struct as_stream *stream);
/* Neither reads nor writes any more; to be closed later. */
void as_stream_stop(struct as_stream *stream);
/* Has `ready` called in this turn of the loop, from an event. */
void as_stream_wake(struct as_stream *stream);

/* 0: all of it is with the kernel; -EAGAIN: the rest is kept; or another negative errno: the peer
 * is gone, or there is no memory to keep it. */
int as_stream_send(struct as_stream *stream, struct iovec *parts, int count);
/* Keeps them, to go with what is sent next, or with as_stream_flush, whose result is that of
 * as_stream_send. 0 or -ENOMEM. */
int as_stream_hold(struct as_stream *stream, const struct iovec *parts, int count);
int as_stream_flush(struct as_stream *stream);
size_t as_stream_count_unsent(const struct as_stream *stream);

/* Our side has said all; the peer is told so, also through TLS. */
void as_stream_shut(struct as_stream *stream);

#endif
