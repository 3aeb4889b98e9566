/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/io.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/assert.h"
#include "loop/loop_impl.h"

#define SOCKET_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* A dead host is found after 30 s of silence and 3 unanswered probes, 10 s apart. */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_INTERVAL_S 10
#define KEEPALIVE_PROBES 3

void leat_io_init(struct leat_io *io, struct leat_loop *loop)
{
    *io = (struct leat_io){.loop = loop, .fd = -1};
    leat_list_init(&io->link);
}

/* Fills IO and has epoll watch FD for EVENTS. Returns 0, or errno with IO closed. */
static int watch(struct leat_io *io, struct leat_loop *loop, int fd, uint32_t events)
{
    leat_io_init(io, loop);
    struct epoll_event event = {.events = events, .data.ptr = io};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return errno;
    io->fd = fd;
    return 0;
}

enum leat_status leat_io_open(struct leat_io *io, struct leat_loop *loop, int fd, leat_io_fn *fn,
                              void *arg)
{
    if (watch(io, loop, fd, SOCKET_EVENTS) != 0)
        return LEAT_EIO;
    leat_io_set_fn(io, fn, arg);
    return LEAT_OK;
}

enum leat_status leat_io_open_listener(struct leat_io *io, struct leat_loop *loop, int fd,
                                       leat_io_fn *fn, void *arg)
{
    /* Level-triggered: a bounded number is accepted in a turn, and the kernel asks again as
     * long as more wait. */
    if (watch(io, loop, fd, EPOLLIN | EPOLLEXCLUSIVE) != 0)
        return LEAT_EIO;
    io->is_shared = true;
    leat_io_set_fn(io, fn, arg);
    return LEAT_OK;
}

enum leat_status leat_io_open_watch(struct leat_io *io, struct leat_loop *loop, int fd,
                                    unsigned events, leat_io_fn *fn, void *arg)
{
    uint32_t asked = ((events & LEAT_IO_READABLE) ? EPOLLIN : 0u) |
                     ((events & LEAT_IO_WRITABLE) ? EPOLLOUT : 0u);
    if (watch(io, loop, fd, asked) != 0)
        return LEAT_EIO;
    io->is_shared = true;
    leat_io_set_fn(io, fn, arg);
    return LEAT_OK;
}

int leat_io_release(struct leat_io *io)
{
    int fd = io->fd;
    /* Closing alone would not do: a descriptor that is shared, or was inherited by a child
     * process, stays with epoll. */
    (void)epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    io->fd = -1;
    io->ready = 0;
    leat_list_remove(&io->link);
    return fd;
}

void leat_io_close(struct leat_io *io)
{
    if (io->fd < 0)
        return;
    int fd = leat_io_release(io);
    if (!io->is_shared)
        (void)close(fd);
}

void leat_io_requeue(struct leat_io *io)
{
    if (io->fd >= 0 && leat_list_is_empty(&io->link))
        leat_list_append(&io->loop->ready, &io->link);
}

void leat_io_note(struct leat_io *io, uint32_t events)
{
    if (io->is_shared) /* level-triggered: what is no longer said is no longer so */
        io->ready = 0;
    if (events & EPOLLIN)
        io->ready |= LEAT_IO_READABLE;
    if (events & EPOLLOUT)
        io->ready |= LEAT_IO_WRITABLE;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        io->ready |= LEAT_IO_READABLE | LEAT_IO_HUP;
    /* EPOLLHUP says that both sides have ended. If we ended ours, that is as it should be. */
    if ((events & EPOLLERR) || ((events & EPOLLHUP) && !io->has_shut))
        io->ready |= LEAT_IO_WRITABLE | LEAT_IO_BROKEN;
    leat_io_requeue(io);
}

void leat_io_run(struct leat_loop *loop)
{
    while (!leat_list_is_empty(&loop->running)) {
        struct leat_io *io = LEAT_LIST_OBJECT(loop->running.next, struct leat_io, link);
        leat_list_remove(&io->link);
        LEAT_ASSERT(io->fn != NULL);
        io->fn(io, io->arg);
    }
}

/* Notes that IO failed with SYS. */
static enum leat_status broken(struct leat_io *io, int sys, int *out_sys)
{
    if (io->sys == 0)
        io->sys = sys;
    io->ready |= LEAT_IO_READABLE | LEAT_IO_WRITABLE | LEAT_IO_HUP | LEAT_IO_BROKEN;
    *out_sys = sys;
    return (sys == ECONNRESET || sys == EPIPE) ? LEAT_ERESET : LEAT_EIO;
}

enum leat_status leat_io_recv(struct leat_io *io, void *buf, size_t cap, size_t *out_len,
                              int *out_sys)
{
    if (!(io->ready & LEAT_IO_READABLE) || cap == 0)
        return LEAT_EAGAIN;
    ssize_t n;
    do {
        leat_loop_count(&io->loop->counters.recvs);
        n = recv(io->fd, buf, cap, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        /* A short read has emptied the socket, which saves asking again. But not if the
         * peer's end was announced: it may lie right behind, and no edge comes for it. */
        if ((size_t)n < cap && !(io->ready & (LEAT_IO_HUP | LEAT_IO_BROKEN)))
            io->ready &= ~(unsigned)LEAT_IO_READABLE;
        *out_len = (size_t)n;
        return LEAT_OK;
    }
    if (n < 0 && errno == EAGAIN) {
        io->ready &= ~(unsigned)LEAT_IO_READABLE;
        return LEAT_EAGAIN;
    }
    if (n < 0)
        return broken(io, errno, out_sys);
    /* The kernel tells an error once and then an end. Sending may have heard it first. Its
     * EPIPE is no error of receiving: it says that the peer reset after its end. */
    if (io->sys != 0 && io->sys != EPIPE)
        return broken(io, io->sys, out_sys);
    return LEAT_ECLOSED;
}

enum leat_status leat_io_send(struct leat_io *io, const struct iovec *iov, int count,
                              size_t *out_len, int *out_sys)
{
    size_t parts = (count > IOV_MAX) ? IOV_MAX : (size_t)count;
    size_t offered = 0;
    for (size_t i = 0; i < parts; i++)
        offered += iov[i].iov_len;
    /* sendmsg() only reads the parts, but its type does not say so. */
    union {
        const struct iovec *lent;
        struct iovec *taken;
    } vec = {.lent = iov};
    struct msghdr msg = {.msg_iov = vec.taken, .msg_iovlen = parts};
    ssize_t n;
    do {
        leat_loop_count(&io->loop->counters.sends);
        n = sendmsg(io->fd, &msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        return broken(io, errno, out_sys);
    if (n < 0 || (size_t)n < offered)
        io->ready &= ~(unsigned)LEAT_IO_WRITABLE;
    if (n < 0)
        return LEAT_EAGAIN;
    *out_len = (size_t)n;
    return LEAT_OK;
}

void leat_io_shutdown_send(struct leat_io *io)
{
    io->has_shut = true;
    (void)shutdown(io->fd, SHUT_WR);
}

/* Sets what every connection of TCP has; those of a UNIX socket need none. A failure costs speed or
 * patience, not the connection. */
static void set_options(int fd, int family)
{
    const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
    };
    if (family == AF_UNIX)
        return;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
}

enum leat_status leat_io_accept(struct leat_io *listener, int *out_fd,
                                struct sockaddr_storage *out_peer, int *out_sys)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(peer);
    int fd;
    do {
        leat_loop_count(&listener->loop->counters.accepts);
        fd = accept4(listener->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd >= 0) {
        set_options(fd, peer.ss_family);
        *out_fd = fd;
        *out_peer = peer;
        return LEAT_OK;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        *out_sys = errno;
        return LEAT_ELIMIT;
    }
    /* None waits, or the one that did has failed already: accept() tells the errors of the
     * new connection as its own. */
    listener->ready &= ~(unsigned)LEAT_IO_READABLE;
    return LEAT_EAGAIN;
}

enum leat_status leat_io_connect(struct leat_io *io, struct leat_loop *loop,
                                 const struct sockaddr *addr, socklen_t addr_len, int *out_sys)
{
    int sys;
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *out_sys = errno;
        return LEAT_EIO;
    }
    set_options(fd, addr->sa_family);
    leat_loop_count(&loop->counters.connects);
    /* Interrupted or not, it goes on. */
    if (connect(fd, addr, addr_len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        sys = errno;
        goto fail;
    }
    /* Not watched before: a socket that is neither connected nor connecting reports a hang-up. */
    sys = watch(io, loop, fd, SOCKET_EVENTS);
    if (sys != 0)
        goto fail;
    return LEAT_OK;
fail:
    (void)close(fd);
    *out_sys = sys;
    return LEAT_EIO;
}

void leat_io_set_fn(struct leat_io *io, leat_io_fn *fn, void *arg)
{
    io->fn = fn;
    io->arg = arg;
}

int leat_io_connect_result(struct leat_io *io)
{
    if (io->sys != 0) /* the kernel tells it only once */
        return io->sys;
    socklen_t len = sizeof(io->sys);
    if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &io->sys, &len) != 0)
        io->sys = errno;
    return io->sys;
}
