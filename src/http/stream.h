/*
 * Bytes to and from one peer, on a non-blocking socket, plain or through TLS.
 *
 * The owner reads: it is called when there is something, and reads as much as it wants directly to
 * the right place. What the kernel does not take of an answer is kept here and sent as the peer
 * reads. A usual request costs one read and one write, and no other system call or change of an
 * event.
 */
#ifndef ALERTSCALER_SRC_HTTP_STREAM_H
#define ALERTSCALER_SRC_HTTP_STREAM_H

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
    /* `has_bytes`: as_stream_read has something to report; else as_stream_wake asked for it. */
    void (*ready)(void *context, bool has_bytes);
    /* The kernel has all that was kept: 0; or the peer is gone: a negative errno. */
    void (*written)(void *context, int status);
    void *context;
};

struct as_stream {
    int fd;
    SSL *ssl;                /* NULL: plain */
    unsigned long tls_error; /* OpenSSL's error code that ended the stream */
    struct event *readable, *writable;
    struct as_buf unsent;
    size_t unsent_at;
    bool is_paused;
    bool wants_to_write; /* TLS must write before it can read on */
    struct as_stream_callbacks callbacks;
};

/* Takes over `fd` and `ssl` (a server's, before the handshake), unless it fails: -ENOMEM. */
int as_stream_open(struct as_stream *stream, struct event_base *base, int fd, SSL *ssl,
                   const struct as_stream_callbacks *callbacks) AS_MUST_USE;
void as_stream_close(struct as_stream *stream);

/* Returns how many bytes came; 0: the peer has stopped sending; -EAGAIN: nothing now; or another
 * negative errno: the peer is gone (-EPROTO: `tls_error` says why). With TLS it returns at most one
 * record, and as_stream_resume must be called before the owner waits for more. */
ssize_t as_stream_read(struct as_stream *stream, void *room, size_t size);

/* No calls for bytes until as_stream_resume. */
void as_stream_pause(struct as_stream *stream);
void as_stream_resume(struct as_stream *stream);
/* Stops reading and writing; the stream is closed later. */
void as_stream_stop(struct as_stream *stream);
/* `ready` is called in this turn of the loop, from an event. */
void as_stream_wake(struct as_stream *stream);

/* 0: the kernel has everything; -EAGAIN: the rest is kept; or another negative errno: the peer is
 * gone, or there is no memory to keep the rest. */
int as_stream_send(struct as_stream *stream, struct iovec *parts, int count);
/* Keeps the bytes until the next as_stream_send or as_stream_flush; the latter returns what
 * as_stream_send would. 0 or -ENOMEM. */
int as_stream_hold(struct as_stream *stream, const struct iovec *parts, int count);
int as_stream_flush(struct as_stream *stream);
/* Bytes of memory, also for the part of an answer that is sent already. */
size_t as_stream_count_unsent(const struct as_stream *stream);

/* The peer does not speak TLS: the stream goes on as a plain one. */
void as_stream_end_tls(struct as_stream *stream);

/* We send no more; the peer is told, also through TLS. */
void as_stream_shut(struct as_stream *stream);

#endif
