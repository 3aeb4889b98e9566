/*
 * stream.h - a connected byte stream, plain here or over TLS (tls/stream.h)
 *
 * The rules that make waiting free and reading whole:
 *  - Waiting holds no buffer. A reader reads into the loop's scratch (or its own buffer),
 *    and only what cannot be sent on at once is kept, in the writing stream's queue.
 *  - One readable event is one recv and everything it brought; if more may be there the
 *    stream queues itself again, behind all others that are ready.
 *  - Bytes that lie decrypted or undecrypted inside the stream count as readable: the loop
 *    is queued for them, the kernel is not asked.
 *  - A paused reader is not called. A reset is told to it all the same (`failed`), and so
 *    is the peer's end (`hup`), which is no end: what lies before it is still to be read.
 *  - The end comes once, from leat_stream_read(), after all bytes before it.
 *
 * Ownership: a stream belongs to who made it until leat_stream_finish() or
 * leat_stream_close(); it frees itself at the end of the turn in which it has closed,
 * right after `closed`, the last callback.
 * Threads: the loop's own.
 * Re-entrance: no callback runs inside a call of the user's (law 1). Every function may be
 * called from every callback.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_NET_STREAM_H
#define LEAT_NET_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "buf/bufq.h"
#include "loop/loop.h"
#include "net/addr.h"
#include "net/connect.h"

struct leat_proxy_header;
struct leat_stream;

/* What a stream tells its user. Each may be NULL. ARG is leat_stream_user.arg. */
struct leat_stream_events {
    /* The socket is connected; over TLS the handshake begins. Not for accepted streams. */
    void (*connected)(struct leat_stream *stream, void *arg);
    /* The PROXY header is there that leat_stream_user.expects_proxy announced; TLS, if any, has
     * not begun. HEADER and its texts are lent until this returns. Told once, before `opened`. */
    void (*proxied)(struct leat_stream *stream, const struct leat_proxy_header *header, void *arg);
    /* The stream can be read and written: TLS, if any, is done. Told once, before readable. */
    void (*opened)(struct leat_stream *stream, void *arg);
    /* leat_stream_read() will say something new. Repeated until it says LEAT_EAGAIN. */
    void (*readable)(struct leat_stream *stream, void *arg);
    /* The queue of unsent bytes, which was not empty, is. */
    void (*drained)(struct leat_stream *stream, void *arg);
    /* The peer has ended its side while nobody reads. Told at most once. */
    void (*hup)(struct leat_stream *stream, void *arg);
    /* Connecting or TLS failed, or the connection broke while nobody reads (paused, or after
     * LEAT_ECLOSED); the reason is leat_stream_error(). Told at most once, and not if a read has
     * said it. The stream is still to be closed. */
    void (*failed)(struct leat_stream *stream, void *arg);
    /* The stream is gone once this returns. */
    void (*closed)(struct leat_stream *stream, void *arg);
};

struct leat_stream_user {
    const struct leat_stream_events *events; /* outlives the stream */
    void *arg;
    struct leat_bufq_account *account; /* for unsent bytes; may be NULL; outlives the stream */
    /* For accepted streams: the peer sends a PROXY header first (net/proxy_header.h). Without it
     * the stream fails before TLS or a read has seen a byte: LEAT_EPROTOCOL, or LEAT_ECLOSED if the
     * peer ends before. Addresses remain those of the connection itself. No deadline is set. */
    bool expects_proxy;
};

/* What the last turn of reading did, for the trace. */
struct leat_stream_turn {
    size_t received;  /* bytes from the socket */
    size_t records;   /* TLS records opened; 0 for plain streams */
    size_t delivered; /* bytes given to the reader */
    size_t inside;    /* bytes that the stream holds, encrypted or decrypted */
};

/* The most bytes that may wait to be sent: what one recv brings, and frames of our own. */
#define LEAT_STREAM_QUEUE_MAX (2u * 1024u * 1024u)

/* Makes a plain stream of FD, a connected non-blocking socket, which it takes over. On
 * failure (LEAT_ENOMEM, LEAT_EIO) FD is closed. `opened` follows. */
LEAT_MUST_CHECK enum leat_status leat_stream_accept(struct leat_loop *loop, int fd,
                                                    const struct leat_stream_user *user,
                                                    struct leat_stream **out);

/* Makes a plain stream that connects to TARGET, which is not kept, but its resolver is; `connected`
 * and `opened`, or `failed`, follow. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_stream_connect(struct leat_loop *loop,
                                                     const struct leat_connect_target *target,
                                                     const struct leat_stream_user *user,
                                                     struct leat_stream **out,
                                                     struct leat_error *err);

/*
 * Sends the LEN bytes at DATA, a PROXY header, ahead of all else, TLS included, once the stream is
 * connected. Only for a stream that connects, until its `connected` has returned; LEAT_EUSAGE
 * otherwise. LEAT_ENOMEM, LEAT_ELIMIT: nothing will be sent first.
 */
LEAT_MUST_CHECK enum leat_status leat_stream_send_first(struct leat_stream *stream,
                                                        const void *data, size_t len);

/*
 * Reads at most CAP bytes into BUF. LEAT_OK: *OUT_LEN > 0 bytes. LEAT_EAGAIN: nothing now;
 * `readable` comes. LEAT_ECLOSED: the peer ended the stream; LEAT_ETRUNCATED: the same over
 * TLS without close_notify; LEAT_ERESET, LEAT_EIO, LEAT_ETLS, LEAT_EPROTOCOL: broken, see
 * leat_stream_error(). Over TLS a CAP of LEAT_SCRATCH_PLAIN_SIZE leaves nothing behind; with
 * a smaller one the rest stays inside and `readable` comes again.
 * No more than CAP bytes are asked of the socket at once. LEAT_EAGAIN before `opened` and after
 * finish() or close().
 */
LEAT_MUST_CHECK enum leat_status leat_stream_read(struct leat_stream *stream, void *buf, size_t cap,
                                                  size_t *out_len);

/*
 * Sends the COUNT parts of IOV, at once as far as the kernel takes them; the rest is copied
 * to the queue. LEAT_ENOMEM, LEAT_ELIMIT: it could not be queued, the stream is broken. A
 * connection that breaks is no error here: the bytes are dropped, and the reader (or
 * `failed`) hears of it after what was still to be read. LEAT_EUSAGE before `opened`; after
 * finish() or close() nothing is sent.
 */
LEAT_MUST_CHECK enum leat_status leat_stream_write(struct leat_stream *stream,
                                                   const struct iovec *iov, int count);

/* Whether what is read is secret: then no copy of it is left behind in memory that TLS frees. It
 * costs a pass over every byte, so it is for the time of a login only. */
void leat_stream_set_secret(struct leat_stream *stream, bool is_secret);

/* How many bytes wait to be sent (over TLS: of ciphertext). */
size_t leat_stream_queued(const struct leat_stream *stream);

/* Stops and restarts `readable`. A new stream is not paused. */
void leat_stream_pause(struct leat_stream *stream);
void leat_stream_resume(struct leat_stream *stream);
bool leat_stream_is_paused(const struct leat_stream *stream);

/*
 * Ends the stream in an orderly way: sends what is queued, close_notify over TLS and the
 * end of stream, then discards what comes until the peer ends too, and closes. It gives up
 * when sending takes longer than FLUSH_MS, or LINGER_MS after the end was sent; 0 sets no
 * limit and arms no timer. A stream that is not open yet, or broken, closes at once. Without
 * this lingering a close with unread input resets the connection and destroys the last
 * message. Only `closed` follows.
 */
void leat_stream_finish(struct leat_stream *stream, uint64_t flush_ms, uint64_t linger_ms);

/* Closes at once, dropping what is queued. Only `closed` follows, at the end of the turn. */
void leat_stream_close(struct leat_stream *stream);

/* Why the stream failed; status LEAT_OK while it has not. */
const struct leat_error *leat_stream_error(const struct leat_stream *stream);

/* How many bytes the socket has brought in all. */
uint64_t leat_stream_received(const struct leat_stream *stream);

const struct leat_stream_turn *leat_stream_turn(const struct leat_stream *stream);

/* The local address, and the peer's; of family AF_UNSPEC while it connects. */
void leat_stream_local_addr(const struct leat_stream *stream, struct leat_addr *out);
void leat_stream_peer_addr(const struct leat_stream *stream, struct leat_addr *out);

/* What TLS has negotiated, such as "TLSv1.3" and "TLS_AES_128_GCM_SHA256"; "" for a plain
 * stream and before `opened`. Static texts. */
struct leat_stream_tls {
    const char *version;
    const char *cipher;
};
struct leat_stream_tls leat_stream_tls(const struct leat_stream *stream);

#endif
