/*
 * stream_impl.h - what a stream is made of; for stream.c and the streams over TLS only
 *
 * A kind of stream embeds struct leat_stream first in its own struct and supplies what is
 * done to bytes between the reader or writer and the socket. Everything else is common:
 * the socket, the queue of unsent bytes, which event is due when, and the end.
 *
 *   connecting --> handshaking --> open --> flushing --> lingering --> closed
 *        |              |            |          |                       ^
 *        +--------------+------------+----------+-----------------------+
 *
 * An accepted stream begins in handshaking, a plain one leaves it in the next turn, or when the
 * PROXY header that it expects is there; before that no kind sees a byte. A
 * stream that failed stays in its state, with `broken` set, until its user closes it.
 *
 * Ownership, threads, re-entrance: as in stream.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_STREAM_IMPL_H
#define LEAT_NET_STREAM_IMPL_H

#include "loop/io.h"
#include "net/stream.h"

enum leat_stream_state {
    LEAT_STREAM_CONNECTING,
    LEAT_STREAM_HANDSHAKING,
    LEAT_STREAM_OPEN,
    LEAT_STREAM_FLUSHING,  /* finishing: sends what is queued */
    LEAT_STREAM_LINGERING, /* finishing: the end is sent, the peer's is awaited */
    LEAT_STREAM_CLOSED,    /* freed at the end of the turn */
};

/* What a kind of stream does. None of these calls the user. */
struct leat_stream_ops {
    /* As leat_stream_read(), of an open stream. */
    enum leat_status (*read)(struct leat_stream *stream, void *buf, size_t cap, size_t *out_len);
    /* As leat_stream_write(), of an open stream that is not broken. */
    enum leat_status (*write)(struct leat_stream *stream, const struct iovec *iov, int count);
    /* Takes the handshake on with what is there. LEAT_OK: it is done. LEAT_EAGAIN: more must
     * come. Otherwise it failed, and leat_stream_break() was called. */
    enum leat_status (*advance)(struct leat_stream *stream);
    /* Sends what the protocol says before the end of the stream. */
    void (*send_end)(struct leat_stream *stream);
    /* Frees what the kind owns, not STREAM itself. */
    void (*fini)(struct leat_stream *stream);
    struct leat_stream_tls (*tls)(const struct leat_stream *stream);
    /* As leat_stream_set_secret(). */
    void (*set_secret)(struct leat_stream *stream, bool is_secret);
};

struct leat_stream_ahead; /* received before the kind asked for it */

struct leat_stream {
    const struct leat_stream_ops *ops;
    struct leat_io io;
    struct leat_stream_user user;
    struct leat_bufq queue; /* unsent bytes as they go to the socket */
    size_t held;            /* unsent bytes that the kind keeps in another form */
    enum leat_stream_state state;
    enum leat_status end; /* what reads say from now on; LEAT_OK while there is more */
    bool paused;
    bool eof;          /* the socket has told its end */
    bool inside;       /* a read yields something without the socket */
    bool broken;       /* nothing more can be sent; `error` says why */
    bool owes_drained; /* the queue was not empty since `drained` was last told */
    bool hup_told;
    bool failed_told; /* by the event, or by a read */
    bool running;     /* inside our own callback, which re-queues at its end */
    struct leat_error error;
    struct leat_stream_turn turn;
    uint64_t received;
    struct leat_connect *connect;    /* while connecting, or until cancelling it is told */
    struct leat_stream_ahead *ahead; /* NULL: nothing */
    uint64_t flush_ms, linger_ms;
    struct leat_timer timer; /* of finishing */
    struct leat_task task;   /* of closing */
};

/* Prepares STREAM, zeroed memory from base/mem.h. Until one of the next two has succeeded the
 * caller frees it. */
void leat_stream_init(struct leat_stream *stream, const struct leat_stream_ops *ops,
                      const struct leat_stream_user *user);

/* Makes STREAM work on FD, or connect to TARGET; then it frees itself. LEAT_EIO or LEAT_ENOMEM as
 * in stream.h; FD then stays the caller's. */
LEAT_MUST_CHECK enum leat_status leat_stream_start(struct leat_stream *stream,
                                                   struct leat_loop *loop, int fd);
LEAT_MUST_CHECK enum leat_status leat_stream_start_connect(struct leat_stream *stream,
                                                           struct leat_loop *loop,
                                                           const struct leat_connect_target *target,
                                                           struct leat_error *err);

/* The one way in: receives at most CAP bytes from the socket. LEAT_OK, LEAT_EAGAIN,
 * LEAT_ECLOSED, or the stream is broken. */
LEAT_MUST_CHECK enum leat_status leat_stream_pull(struct leat_stream *stream, void *buf, size_t cap,
                                                  size_t *out_len);

/* The one way out: sends, and queues what is not taken. Results as leat_stream_write(). */
LEAT_MUST_CHECK enum leat_status leat_stream_push(struct leat_stream *stream,
                                                  const struct iovec *iov, int count);

/* Takes the PROXY header on that the user expects. LEAT_OK: it is there and told, and the kind's
 * handshake may begin. LEAT_EAGAIN: more must come, or the user has closed the stream. Otherwise
 * the stream is broken. */
LEAT_MUST_CHECK enum leat_status leat_stream_await_proxy(struct leat_stream *stream);

/* As leat_stream_pull(), of what came behind the PROXY header; `ahead` is not NULL. */
void leat_stream_take_ahead(struct leat_stream *stream, void *buf, size_t cap, size_t *out_len);

/* Frees `ahead`, which may be NULL. */
void leat_stream_drop_ahead(struct leat_stream *stream);

/* Marks STREAM broken: unsent bytes are dropped, and the user will hear of it. The first reason
 * stays. Returns STATUS. */
enum leat_status leat_stream_break(struct leat_stream *stream, enum leat_status status, int sys,
                                   const char *format, ...) LEAT_PRINTF(4, 5);

#endif
