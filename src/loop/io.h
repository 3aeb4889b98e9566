/*
 * io.h - sockets on a loop: readiness, and the only calls of recv, send, accept, connect
 *
 * A socket is registered once, edge-triggered, for everything; what is ready is
 * remembered here until a call says EAGAIN. Interest is never changed, so a socket that
 * nobody reads costs one wake-up for each time the kernel takes more from its peer, and
 * none once the window is closed.
 *
 * Ownership: a leat_io is embedded in the caller's object and owns its descriptor, except
 * for listeners, whose descriptor several loops share, and for watches.
 * Threads: the loop's own.
 * Re-entrance: the callback may close the leat_io it is called for; the object that embeds
 * it must stay until the end of the turn (law 3).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_LOOP_IO_H
#define LEAT_LOOP_IO_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "loop/loop.h"

/* What is known to be true of the socket now. */
enum leat_io_ready {
    LEAT_IO_READABLE = 1, /* a recv may bring bytes or the end */
    LEAT_IO_WRITABLE = 2, /* a send may be taken */
    LEAT_IO_HUP = 4,      /* the peer has ended its side; bytes before it may be unread */
    LEAT_IO_BROKEN = 8,   /* reset, or ended on both sides: nothing more can be sent */
};

struct leat_io;

/*
 * Called in a turn in which something became ready, or was re-queued. IO->ready tells what
 * is ready now. Returning with work undone is allowed only after leat_io_requeue(), or
 * when an edge is still to come.
 */
typedef void leat_io_fn(struct leat_io *io, void *arg);

struct leat_io {
    struct leat_loop *loop;
    int fd; /* -1 while closed */
    unsigned ready;
    leat_io_fn *fn;
    void *arg;
    int sys;               /* the errno with which it first failed, or 0 */
    bool has_shut;         /* leat_io_shutdown_send() was called */
    bool is_shared;        /* a listener or watch: level-triggered, and not ours to close */
    struct leat_list link; /* in the loop's list of the ready */
};

/*
 * Watches FD, a non-blocking socket, and takes it over. On LEAT_EIO (out of memory or of
 * watches in the kernel) FD stays the caller's.
 */
LEAT_MUST_CHECK enum leat_status leat_io_open(struct leat_io *io, struct leat_loop *loop, int fd,
                                              leat_io_fn *fn, void *arg);

/* Watches FD, a listening socket shared by several loops: one of them is woken for a
 * connection. FD stays the caller's. The callback is repeated while connections wait. */
LEAT_MUST_CHECK enum leat_status leat_io_open_listener(struct leat_io *io, struct leat_loop *loop,
                                                       int fd, leat_io_fn *fn, void *arg);

/*
 * Watches FD, which somebody else reads and closes: a library's socket, an inotify descriptor.
 * The callback is repeated as long as FD is as EVENTS asks, LEAT_IO_READABLE, LEAT_IO_WRITABLE or
 * both; IO->ready says which. To ask for something else it is closed and opened anew. It must be
 * closed before FD is.
 */
LEAT_MUST_CHECK enum leat_status leat_io_open_watch(struct leat_io *io, struct leat_loop *loop,
                                                    int fd, unsigned events, leat_io_fn *fn,
                                                    void *arg);

/* Makes IO a closed one of LOOP, so that it may be closed without having been opened. */
void leat_io_init(struct leat_io *io, struct leat_loop *loop);

/* Stops events at once and closes the descriptor, if it is not another's. A closed one is left
 * alone. */
void leat_io_close(struct leat_io *io);

/* Stops events at once and returns the descriptor, which is the caller's from now on. Opened
 * again, by any leat_io, it tells anew what is ready. */
int leat_io_release(struct leat_io *io);

/* Makes the callback run in the next turn, without asking the kernel. */
void leat_io_requeue(struct leat_io *io);

/*
 * Receives at most CAP bytes into BUF. LEAT_OK: *OUT_LEN > 0 bytes came. LEAT_ECLOSED: the
 * peer has ended its side. LEAT_EAGAIN: nothing now; while LEAT_IO_READABLE is not set that
 * is said without asking the kernel. LEAT_ERESET, LEAT_EIO: broken, errno in *OUT_SYS. An
 * end or a failure is told again by every later call.
 */
LEAT_MUST_CHECK enum leat_status leat_io_recv(struct leat_io *io, void *buf, size_t cap,
                                              size_t *out_len, int *out_sys);

/* Sends from the COUNT parts of IOV. LEAT_OK: *OUT_LEN bytes were taken, perhaps fewer than
 * offered. LEAT_EAGAIN, LEAT_ERESET (EPIPE too), LEAT_EIO as above. Never raises SIGPIPE. */
LEAT_MUST_CHECK enum leat_status leat_io_send(struct leat_io *io, const struct iovec *iov,
                                              int count, size_t *out_len, int *out_sys);

/* Tells the peer that nothing more will be sent. */
void leat_io_shutdown_send(struct leat_io *io);

/* Accepts from a listener: *OUT_FD is non-blocking and the caller's. LEAT_EAGAIN when none
 * waits (or the one that did is gone), LEAT_ELIMIT when descriptors or memory for one more
 * are lacking (errno in *OUT_SYS). */
LEAT_MUST_CHECK enum leat_status leat_io_accept(struct leat_io *listener, int *out_fd,
                                                struct sockaddr_storage *out_peer, int *out_sys);

/* Begins to connect a new socket, of TCP or UNIX, to ADDR and watches it like leat_io_open(). When
 * it becomes writable leat_io_connect_result() tells the outcome. On LEAT_EIO nothing is open and
 * errno is in *OUT_SYS. */
LEAT_MUST_CHECK enum leat_status leat_io_connect(struct leat_io *io, struct leat_loop *loop,
                                                 const struct sockaddr *addr, socklen_t addr_len,
                                                 int *out_sys);

/* Sets what is called and with which argument; for leat_io_connect(), before the turn ends. */
void leat_io_set_fn(struct leat_io *io, leat_io_fn *fn, void *arg);

/* The errno with which connecting failed, or 0 if it is connected. */
int leat_io_connect_result(struct leat_io *io);

#endif
