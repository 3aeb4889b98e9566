/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "net/stream_impl.h"

/* How many chunks of the queue go to the kernel at once. */
#define FLUSH_PARTS 64

#define TO(state) (1u << (state))

static const unsigned may_move[] = {
    [LEAT_STREAM_CONNECTING] = TO(LEAT_STREAM_HANDSHAKING) | TO(LEAT_STREAM_CLOSED),
    [LEAT_STREAM_HANDSHAKING] = TO(LEAT_STREAM_OPEN) | TO(LEAT_STREAM_CLOSED),
    [LEAT_STREAM_OPEN] = TO(LEAT_STREAM_FLUSHING) | TO(LEAT_STREAM_CLOSED),
    [LEAT_STREAM_FLUSHING] = TO(LEAT_STREAM_LINGERING) | TO(LEAT_STREAM_CLOSED),
    [LEAT_STREAM_LINGERING] = TO(LEAT_STREAM_CLOSED),
    [LEAT_STREAM_CLOSED] = 0,
};

/* A move that cannot happen costs this connection, not the process. */
static void set_state(struct leat_stream *s, enum leat_stream_state next)
{
    if ((may_move[s->state] & TO(next)) == 0) {
        (void)leat_stream_break(s, LEAT_EIO, 0, "internal error: stream state %d to %d",
                                (int)s->state, (int)next);
        return;
    }
    s->state = next;
}

typedef void event_fn(struct leat_stream *stream, void *arg);

static void tell(struct leat_stream *s, event_fn *event)
{
    if (event != NULL)
        event(s, s->user.arg);
}

size_t leat_stream_queued(const struct leat_stream *s)
{
    return s->queue.len + s->held;
}

/* Which event is due. Each is a question about the state alone, so that no order of pauses,
 * resumptions and readiness can lose one. */

static bool is_readable(const struct leat_stream *s)
{
    bool more = s->inside || s->broken || (s->io.ready & (LEAT_IO_READABLE | LEAT_IO_BROKEN)) != 0;
    return !s->paused && s->end == LEAT_OK && more;
}

static bool is_drained(const struct leat_stream *s)
{
    return s->owes_drained && !s->broken && leat_stream_queued(s) == 0;
}

static bool has_failed_unread(const struct leat_stream *s)
{
    bool failed = s->broken || (s->io.ready & LEAT_IO_BROKEN) != 0;
    return failed && !s->failed_told && (s->paused || s->end != LEAT_OK);
}

static bool has_hung_up_unread(const struct leat_stream *s)
{
    bool hup = (s->io.ready & LEAT_IO_HUP) != 0 && (s->io.ready & LEAT_IO_BROKEN) == 0;
    return hup && !s->broken && !s->hup_told && s->paused && s->end == LEAT_OK;
}

/* Whether there is something to do that no edge from the kernel will announce. */
static bool has_work(const struct leat_stream *s)
{
    bool can_recv = (s->io.ready & LEAT_IO_READABLE) != 0;
    bool can_send = s->queue.len > 0 && (s->io.ready & LEAT_IO_WRITABLE) != 0;

    switch (s->state) {
    case LEAT_STREAM_CONNECTING:
        return false;
    case LEAT_STREAM_HANDSHAKING:
        return !s->broken && (can_recv || can_send);
    case LEAT_STREAM_OPEN:
        return can_send || is_readable(s) || is_drained(s) || has_failed_unread(s) ||
               has_hung_up_unread(s);
    case LEAT_STREAM_FLUSHING:
    case LEAT_STREAM_LINGERING:
        return can_send || (can_recv && !s->eof);
    case LEAT_STREAM_CLOSED:
        return false;
    }
    return false;
}

/* Our own callback asks at its end; calls of the user's from elsewhere come here. */
static void requeue_if_due(struct leat_stream *s)
{
    if (!s->running && has_work(s))
        leat_io_requeue(&s->io);
}

enum leat_status leat_stream_break(struct leat_stream *s, enum leat_status status, int sys,
                                   const char *format, ...)
{
    char text[sizeof(s->error.text)];
    va_list args;

    if (s->broken)
        return status;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)leat_error_set(&s->error, status, sys, "%s", text);
    s->broken = true;
    s->held = 0;
    leat_bufq_clear(&s->queue);
    return status;
}

/* The socket. */

static const char *receiving_failed(const struct leat_stream *s)
{
    if (s->state != LEAT_STREAM_HANDSHAKING)
        return "receiving failed";
    return s->user.expects_proxy ? "the peer broke the connection before its PROXY header was there"
                                 : "the peer broke the connection during the TLS handshake";
}

enum leat_status leat_stream_pull(struct leat_stream *s, void *buf, size_t cap, size_t *out_len)
{
    size_t len = 0;
    int sys = 0;

    if (s->ahead != NULL && !s->user.expects_proxy) {
        leat_stream_take_ahead(s, buf, cap, out_len);
        return LEAT_OK;
    }
    enum leat_status status = leat_io_recv(&s->io, buf, cap, &len, &sys);

    /* A broken socket has no edge to come: waiting for one would be for ever. */
    if (status == LEAT_EAGAIN && (s->io.ready & LEAT_IO_BROKEN) != 0)
        status = LEAT_ERESET;
    if (status == LEAT_OK) {
        s->turn.received += len;
        s->received += len;
        *out_len = len;
        return LEAT_OK;
    }
    if (status == LEAT_ECLOSED)
        s->eof = true;
    if (status == LEAT_EAGAIN || status == LEAT_ECLOSED)
        return status;
    return leat_stream_break(s, status, sys, "%s", receiving_failed(s));
}

static enum leat_status enqueue(struct leat_stream *s, const struct iovec *iov, int count,
                                size_t skip)
{
    enum leat_status status = leat_bufq_append(&s->queue, iov, count, skip);
    if (status != LEAT_OK)
        return leat_stream_break(s, status, 0, "%s",
                                 status == LEAT_ELIMIT
                                     ? "more bytes wait to be sent than a stream may queue"
                                     : "out of memory for bytes that wait to be sent");
    s->owes_drained = true;
    return LEAT_OK;
}

enum leat_status leat_stream_push(struct leat_stream *s, const struct iovec *iov, int count)
{
    size_t total = 0, sent = 0;
    int sys = 0;

    if (s->broken)
        return LEAT_OK;
    if (s->queue.len > 0)
        return enqueue(s, iov, count, 0);
    for (int i = 0; i < count; i++)
        total += iov[i].iov_len;
    if (total == 0)
        return LEAT_OK;
    enum leat_status status = leat_io_send(&s->io, iov, count, &sent, &sys);
    if (status != LEAT_OK && status != LEAT_EAGAIN) {
        (void)leat_stream_break(s, status, sys, "sending failed");
        return LEAT_OK;
    }
    return sent < total ? enqueue(s, iov, count, sent) : LEAT_OK;
}

/* Sends what is queued as far as the kernel takes it; returns how much it took. */
static size_t flush(struct leat_stream *s)
{
    struct iovec parts[FLUSH_PARTS];
    size_t total = 0;

    while (s->queue.len > 0 && (s->io.ready & (LEAT_IO_WRITABLE | LEAT_IO_BROKEN)) != 0) {
        size_t sent = 0;
        int sys = 0;
        int count = leat_bufq_peek(&s->queue, parts, FLUSH_PARTS);
        enum leat_status status = leat_io_send(&s->io, parts, count, &sent, &sys);
        if (status == LEAT_EAGAIN)
            break;
        if (status != LEAT_OK) {
            (void)leat_stream_break(s, status, sys, "sending failed");
            break;
        }
        leat_bufq_consume(&s->queue, sent);
        total += sent;
    }
    return total;
}

/* Ending. */

static void run_closed(void *arg)
{
    struct leat_stream *s = arg;

    tell(s, s->user.events->closed);
    s->ops->fini(s);
    leat_stream_drop_ahead(s);
    leat_mem_free(s);
}

static void shut(struct leat_stream *s)
{
    if (s->state == LEAT_STREAM_CLOSED)
        return;
    struct leat_loop *loop = s->io.loop;
    leat_timer_stop(loop, &s->timer);
    leat_bufq_clear(&s->queue);
    leat_io_close(&s->io);
    set_state(s, LEAT_STREAM_CLOSED);
    if (s->connect != NULL)
        leat_connect_cancel(s->connect); /* which ends at the end of the turn, too */
    else
        leat_loop_defer(loop, &s->task);
}

static void run_timer(void *arg)
{
    shut(arg);
}

static void set_deadline(struct leat_stream *s, uint64_t after_ms)
{
    if (after_ms == 0)
        leat_timer_stop(s->io.loop, &s->timer);
    else
        leat_timer_start(s->io.loop, &s->timer, after_ms);
}

/* Takes what the peer still sends out of the kernel, once a turn: input that lies unread when
 * the socket is closed makes the kernel reset the connection. Also while flushing, since a
 * peer that is itself blocked in sending would never read. */
static void discard(struct leat_stream *s)
{
    size_t len = 0;

    if (s->eof || (s->io.ready & (LEAT_IO_READABLE | LEAT_IO_BROKEN)) == 0)
        return;
    enum leat_status status = leat_stream_pull(s, leat_loop_scratch(s->io.loop, LEAT_SCRATCH_RECV),
                                               LEAT_SCRATCH_RECV_SIZE, &len);
    (void)status; /* the end and a failure are noted in the stream */
}

static void wind_down(struct leat_stream *s)
{
    (void)flush(s);
    discard(s);
    if (s->broken) {
        shut(s);
        return;
    }
    if (s->state == LEAT_STREAM_FLUSHING && s->queue.len == 0) {
        leat_io_shutdown_send(&s->io);
        set_state(s, LEAT_STREAM_LINGERING);
        set_deadline(s, s->linger_ms);
    }
    if (s->state == LEAT_STREAM_LINGERING && s->eof)
        shut(s);
}

void leat_stream_finish(struct leat_stream *s, uint64_t flush_ms, uint64_t linger_ms)
{
    switch (s->state) {
    case LEAT_STREAM_CONNECTING:
    case LEAT_STREAM_HANDSHAKING:
        shut(s);
        return;
    case LEAT_STREAM_OPEN:
        break;
    case LEAT_STREAM_FLUSHING:
    case LEAT_STREAM_LINGERING:
    case LEAT_STREAM_CLOSED:
        return;
    }
    if (!s->broken)
        s->ops->send_end(s);
    if (s->broken) {
        shut(s);
        return;
    }
    s->flush_ms = flush_ms;
    s->linger_ms = linger_ms;
    set_state(s, LEAT_STREAM_FLUSHING);
    set_deadline(s, flush_ms);
    leat_io_requeue(&s->io);
}

void leat_stream_close(struct leat_stream *s)
{
    shut(s);
}

/* Events. After each the stream may have been closed; its memory lasts to the end of the
 * turn, so looking at its state is enough. */

static void tell_failed(struct leat_stream *s)
{
    if (!s->broken) {
        int sys = leat_io_connect_result(&s->io);
        (void)leat_stream_break(s, LEAT_ERESET, sys, "the connection broke");
    }
    s->failed_told = true;
    tell(s, s->user.events->failed);
}

static void run_open(struct leat_stream *s)
{
    const struct leat_stream_events *events = s->user.events;

    (void)flush(s);
    if (is_drained(s)) {
        s->owes_drained = false;
        tell(s, events->drained);
    }
    if (s->state == LEAT_STREAM_OPEN && is_readable(s))
        tell(s, events->readable);
    if (s->state == LEAT_STREAM_OPEN && has_failed_unread(s))
        tell_failed(s);
    if (s->state == LEAT_STREAM_OPEN && has_hung_up_unread(s)) {
        s->hup_told = true;
        tell(s, events->hup);
    }
}

static void run_handshaking(struct leat_stream *s)
{
    if (s->broken)
        return;
    (void)flush(s);
    enum leat_status status = s->user.expects_proxy ? leat_stream_await_proxy(s) : LEAT_OK;
    if (status == LEAT_OK)
        status = s->ops->advance(s);
    if (s->broken) {
        tell_failed(s);
        return;
    }
    if (status != LEAT_OK)
        return;
    set_state(s, LEAT_STREAM_OPEN);
    tell(s, s->user.events->opened);
    if (s->state == LEAT_STREAM_OPEN)
        run_open(s);
}

static void on_io(struct leat_io *io, void *arg)
{
    struct leat_stream *s = arg;

    s->running = true;
    switch (s->state) {
    case LEAT_STREAM_CONNECTING: /* its events are net/connect.h's */
        break;
    case LEAT_STREAM_HANDSHAKING:
        run_handshaking(s);
        break;
    case LEAT_STREAM_OPEN:
        run_open(s);
        break;
    case LEAT_STREAM_FLUSHING:
    case LEAT_STREAM_LINGERING:
        wind_down(s);
        break;
    case LEAT_STREAM_CLOSED:
        break;
    }
    s->running = false;
    if (has_work(s))
        leat_io_requeue(io);
}

static void on_connect(const struct leat_addr *addr, const struct leat_error *err, void *arg)
{
    struct leat_stream *s = arg;

    (void)addr;
    s->connect = NULL;
    if (s->state == LEAT_STREAM_CLOSED) {
        run_closed(s);
        return;
    }
    s->running = true;
    if (err != NULL) {
        s->error = *err;
        s->broken = true;
        tell_failed(s);
    } else {
        leat_io_set_fn(&s->io, on_io, s);
        set_state(s, LEAT_STREAM_HANDSHAKING);
        tell(s, s->user.events->connected);
    }
    if (s->state == LEAT_STREAM_HANDSHAKING)
        run_handshaking(s);
    s->running = false;
    if (has_work(s))
        leat_io_requeue(&s->io);
}

/* What the user calls. */

enum leat_status leat_stream_read(struct leat_stream *s, void *buf, size_t cap, size_t *out_len)
{
    s->turn = (struct leat_stream_turn){0};
    if (s->state < LEAT_STREAM_OPEN && s->broken)
        return s->error.status;
    if (s->state != LEAT_STREAM_OPEN || cap == 0)
        return LEAT_EAGAIN;
    if (s->end != LEAT_OK)
        return s->end;
    enum leat_status status = s->ops->read(s, buf, cap, out_len);
    if (status == LEAT_OK) {
        s->turn.delivered = *out_len;
        requeue_if_due(s);
        return LEAT_OK;
    }
    /* A connection that broke while sending has no clean end. */
    if (s->broken)
        status = s->error.status;
    if (status != LEAT_EAGAIN) {
        s->end = status;
        s->failed_told = s->failed_told || status != LEAT_ECLOSED;
    }
    requeue_if_due(s);
    return status;
}

enum leat_status leat_stream_write(struct leat_stream *s, const struct iovec *iov, int count)
{
    if (s->state < LEAT_STREAM_OPEN)
        return LEAT_EUSAGE;
    if (s->state != LEAT_STREAM_OPEN || s->broken)
        return LEAT_OK;
    enum leat_status status = s->ops->write(s, iov, count);
    requeue_if_due(s);
    return status;
}

void leat_stream_pause(struct leat_stream *s)
{
    s->paused = true;
    requeue_if_due(s);
}

void leat_stream_resume(struct leat_stream *s)
{
    s->paused = false;
    requeue_if_due(s);
}

bool leat_stream_is_paused(const struct leat_stream *s)
{
    return s->paused;
}

const struct leat_error *leat_stream_error(const struct leat_stream *s)
{
    return &s->error;
}

void leat_stream_set_secret(struct leat_stream *s, bool is_secret)
{
    s->ops->set_secret(s, is_secret);
}

uint64_t leat_stream_received(const struct leat_stream *s)
{
    return s->received;
}

const struct leat_stream_turn *leat_stream_turn(const struct leat_stream *s)
{
    return &s->turn;
}

void leat_stream_local_addr(const struct leat_stream *s, struct leat_addr *out)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);

    *out = (struct leat_addr){0};
    if (getsockname(s->io.fd, (struct sockaddr *)&ss, &len) == 0)
        leat_addr_from_sockaddr(&ss, out);
}

void leat_stream_peer_addr(const struct leat_stream *s, struct leat_addr *out)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);

    *out = (struct leat_addr){0};
    if (s->connect == NULL && getpeername(s->io.fd, (struct sockaddr *)&ss, &len) == 0)
        leat_addr_from_sockaddr(&ss, out);
}

struct leat_stream_tls leat_stream_tls(const struct leat_stream *s)
{
    return s->ops->tls(s);
}

/* Making. */

void leat_stream_init(struct leat_stream *s, const struct leat_stream_ops *ops,
                      const struct leat_stream_user *user)
{
    s->ops = ops;
    s->user = *user;
    leat_bufq_init(&s->queue, LEAT_STREAM_QUEUE_MAX, user->account);
    leat_timer_init(&s->timer, run_timer, s);
    leat_task_init(&s->task, run_closed, s);
}

enum leat_status leat_stream_start(struct leat_stream *s, struct leat_loop *loop, int fd)
{
    enum leat_status status = leat_io_open(&s->io, loop, fd, on_io, s);
    if (status != LEAT_OK)
        return status;
    s->state = LEAT_STREAM_HANDSHAKING;
    leat_io_requeue(&s->io);
    return LEAT_OK;
}

enum leat_status leat_stream_start_connect(struct leat_stream *s, struct leat_loop *loop,
                                           const struct leat_connect_target *target,
                                           struct leat_error *err)
{
    s->state = LEAT_STREAM_CONNECTING;
    if (leat_connect_start(&s->io, loop, target, on_connect, s, &s->connect) == LEAT_OK)
        return LEAT_OK;
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory for a connection");
}
