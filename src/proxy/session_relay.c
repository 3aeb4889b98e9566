/* An open session: frames go from one leg to the other. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "proxy/session.h"
#include "proxy/session_log.h"

#define PARTS 64
#define PUT_ROOM 1024

/* What is on its way to the receiver, gathered so that one send takes it all: parts of the
 * input, and bytes of leat's own. */
struct batch {
    struct leat_leg *target;
    int count;
    size_t put_len;
    size_t sent;
    bool failed;
    bool muted; /* the receiver has been sent a Close by leat and takes nothing more */
    struct iovec parts[PARTS];
    uint8_t put[PUT_ROOM];
};

static void flush(struct batch *batch)
{
    if (batch->count > 0 && !batch->muted &&
        !leat_leg_write(batch->target, batch->parts, batch->count))
        batch->failed = true;
    batch->count = 0;
    batch->put_len = 0;
}

static void add(struct batch *batch, const uint8_t *data, size_t len)
{
    struct iovec *last = (batch->count > 0) ? &batch->parts[batch->count - 1] : NULL;

    batch->sent += len;
    if (last != NULL && (const uint8_t *)last->iov_base + last->iov_len == data) {
        last->iov_len += len;
        return;
    }
    if (batch->count == PARTS)
        flush(batch);
    union {
        const uint8_t *from;
        void *base;
    } part = {.from = data}; /* writev() takes what it only reads as void * */
    batch->parts[batch->count++] = (struct iovec){.iov_base = part.base, .iov_len = len};
}

static void add_copy(struct batch *batch, const uint8_t *data, size_t len)
{
    if (batch->count == PARTS || PUT_ROOM - batch->put_len < len)
        flush(batch);
    uint8_t *copy = memcpy(batch->put + batch->put_len, data, len);
    batch->put_len += len;
    add(batch, copy, len);
}

static void malformed(struct leat_session *session, const struct leat_leg *from)
{
    const struct leat_amqp_relay *broken = &from->relay;
    struct leat_session_end end = {
        .by = (from == &session->client) ? LEAT_BY_CLIENT : LEAT_BY_BROKER,
        .told = LEAT_CLOSE_DUE,
        .close = {broken->error_code, leat_str_of(broken->error.text)},
    };

    /* Both sides have been told of the end already, and of why. */
    if (session->state == LEAT_SESSION_CLOSING)
        leat_session_close_unanswered(session, broken->error.text);
    else
        leat_session_end(session, &end, "%s", broken->error.text);
}

/* Acts on one operation. False if the rest of the input is not to be looked at. */
static bool act(struct leat_session *session, struct leat_leg *from, struct batch *batch,
                const uint8_t *data, const struct leat_amqp_op *op)
{
    switch (op->kind) {
    case LEAT_AMQP_OP_MORE:
        return false;
    case LEAT_AMQP_OP_PASS:
        add(batch, data, op->taken);
        return true;
    case LEAT_AMQP_OP_DROP:
        return true;
    case LEAT_AMQP_OP_PUT:
        add_copy(batch, op->put, op->put_len);
        return true;
    case LEAT_AMQP_OP_FRAME:
        leat_session_log_frame(session, from);
        return true;
    case LEAT_AMQP_OP_CLOSE:
        flush(batch);
        if (leat_session_got_close(session, from))
            add_copy(batch, op->put, op->put_len);
        return session->state != LEAT_SESSION_ENDING;
    case LEAT_AMQP_OP_CLOSE_OK:
        flush(batch);
        if (leat_session_got_close_ok(session, from)) {
            add_copy(batch, op->put, op->put_len);
            flush(batch);
            leat_session_passed_close_ok(session, from);
        }
        return session->state != LEAT_SESSION_ENDING;
    case LEAT_AMQP_OP_ERROR:
        flush(batch);
        malformed(session, from);
        return false;
    }
    return false;
}

static size_t relay(struct leat_session *session, struct leat_leg *from, const uint8_t *data,
                    size_t len)
{
    struct batch batch;
    struct leat_amqp_op op;
    bool more = true;

    batch.target = leat_leg_other(from);
    batch.count = 0;
    batch.put_len = 0;
    batch.sent = 0;
    batch.failed = false;
    batch.muted = from == &session->broker && session->state == LEAT_SESSION_CLOSING &&
                  session->closing_by == LEAT_BY_LEAT;
    leat_leg_received(from, len);
    while (more && !batch.failed) {
        leat_amqp_relay_next(&from->relay, data, len, &op);
        more = act(session, from, &batch, data, &op);
        data += op.taken;
        len -= op.taken;
    }
    leat_leg_count(from);
    if (session->state == LEAT_SESSION_ENDING)
        return batch.sent;
    flush(&batch);
    if (batch.failed)
        leat_session_leg_lost(session, batch.target, "out of memory");
    return batch.sent;
}

/* Reads grow while the receiver takes everything and shrink when it does not: a direction
 * that is stalled holds no more than what one read brought. */
static void adapt(struct leat_session *session, struct leat_leg *from, size_t received)
{
    const struct leat_shared *shared = session->worker->shared;
    size_t most = session->config->limit_session_queue_bytes;
    bool stalled = leat_leg_queued(leat_leg_other(from)) > 0;

    if (stalled || shared->account.held > shared->account.limit)
        from->read_size = LEAT_LEG_READ_MIN;
    else if (received >= from->read_size - from->read_size / 4)
        from->read_size = (from->read_size * 2 < most) ? from->read_size * 2 : most;
    if (stalled)
        leat_leg_pause(from);
}

void leat_session_relay(struct leat_session *session, struct leat_leg *leg, const uint8_t *data,
                        size_t len)
{
    (void)relay(session, leg, data, len);
    if (session->state != LEAT_SESSION_ENDING)
        adapt(session, leg, 0);
}

void leat_session_relay_readable(struct leat_session *session, struct leat_leg *leg)
{
    uint8_t *buf = leat_loop_scratch(session->worker->loop, LEAT_SCRATCH_PLAIN);
    size_t len = 0, sent = 0;
    enum leat_status status = leat_stream_read(leg->stream, buf, leg->read_size, &len);

    if (status == LEAT_OK) {
        sent = relay(session, leg, buf, len);
        if (session->state != LEAT_SESSION_ENDING)
            adapt(session, leg, leat_stream_turn(leg->stream)->received);
    }
    leat_session_log_turn(session, leg, sent);
    if (status != LEAT_OK && status != LEAT_EAGAIN)
        leat_session_leg_lost(session, leg, leat_leg_end_reason(leg, status));
}
