/* Every way in which a session ends. SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"
#include "base/text.h"
#include "buf/writer.h"
#include "proxy/session.h"
#include "proxy/session_log.h"
#include "proxy/tally.h"
#include "proxy/watch.h"

/* Sends a frame of leat's own to LEG, unless the leg is inside a frame of the other side's:
 * that one can never be completed, and nothing may stand in its place. */
static void send_own(struct leat_leg *leg, const struct leat_writer *frame)
{
    if (!leg->is_opened || frame->failed || !leat_leg_may_insert(leg))
        return;
    /* If even this cannot be queued the end of the stream has to say it all. */
    if (!leat_leg_write_own(leg, frame))
        leat_leg_close(leg);
}

static void send_close(struct leat_leg *leg, const struct leat_amqp_close *close)
{
    uint8_t buf[LEAT_AMQP_CLOSE_MAX];
    struct leat_writer frame;

    leat_writer_init(&frame, buf, sizeof(buf));
    leat_amqp_write_close(&frame, close->code, close->text);
    send_own(leg, &frame);
}

static void send_close_ok(struct leat_leg *leg)
{
    uint8_t buf[LEAT_AMQP_CLOSE_MAX];
    struct leat_writer frame;

    leat_writer_init(&frame, buf, sizeof(buf));
    leat_amqp_write_close_ok(&frame);
    send_own(leg, &frame);
}

static void count(struct leat_session *session, const struct leat_session_end *end)
{
    struct leat_worker_counters *counters = &session->worker->count;

    if (session->was_open)
        leat_tally_closed(session->backend->tally);
    if (session->was_open)
        counters->closed++;
    else if (end->told == LEAT_CLOSE_SENT)
        counters->refused++;
    else
        counters->failed++;
    if (!session->was_open)
        session->worker->shared->handshakes--;
    /* What still lingers has no claim to a place any more. */
    if (session->is_counted)
        session->worker->shared->sessions--;
    session->is_counted = false;
    session->worker->shared->ending++;
}

/* Whether a Close would reach the client: AMQP has begun, and no frame is half sent. */
static bool can_be_told(struct leat_session *session)
{
    return session->client.is_opened && session->state >= LEAT_SESSION_HANDSHAKE &&
           leat_leg_may_insert(&session->client);
}

void leat_session_end(struct leat_session *session, const struct leat_session_end *how,
                      const char *format, ...)
{
    struct leat_session_end end = *how;
    bool must_tell = end.told == LEAT_CLOSE_DUE && can_be_told(session);
    char reason[256];
    va_list args;

    if (session->state == LEAT_SESSION_ENDING)
        return;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    if (must_tell)
        end.told = LEAT_CLOSE_SENT;
    count(session, &end);
    leat_session_log_end(session, &end, reason);
    leat_watch_ended(session, &end, reason);
    leat_timer_stop(session->worker->loop, &session->deadline);
    leat_session_set_state(session, LEAT_SESSION_ENDING);
    if (must_tell)
        send_close(&session->client, &end.close);
    leat_leg_finish(&session->client);
    if (session->broker.is_opened)
        leat_leg_finish(&session->broker);
    else
        leat_leg_close(&session->broker);
    leat_session_search_stop(session);
    leat_session_handshake_free(session->handshake, session->worker->loop);
    session->handshake = NULL;
    if (session->client.stream == NULL && session->broker.stream == NULL)
        leat_session_free(session);
}

void leat_session_refuse(struct leat_session *session, enum leat_session_by by, uint16_t code,
                         struct leat_str text)
{
    const struct leat_session_end end = {.by = by, .told = LEAT_CLOSE_DUE, .close = {code, text}};

    leat_session_end(session, &end, "%.*s", (int)text.len, text.ptr);
}

void leat_session_leg_lost(struct leat_session *session, struct leat_leg *leg, const char *reason)
{
    static const struct leat_amqp_close broker_lost = {
        LEAT_AMQP_CONNECTION_FORCED, LEAT_STR_INIT("CONNECTION_FORCED - broker connection lost")};
    bool is_client = leg == &session->client;
    bool is_done = is_client && session->client_answered;
    struct leat_session_end end = {.by = is_client ? LEAT_BY_CLIENT : LEAT_BY_BROKER};

    if (session->state == LEAT_SESSION_SEARCH && !is_client) {
        leat_session_search_lost(session, reason);
        return;
    }
    if (is_done) {
        leat_leg_finish(leg); /* it has closed as it should; the broker has not yet */
        return;
    }
    if (session->state == LEAT_SESSION_CLOSING) {
        leat_session_close_unanswered(session, reason);
        return;
    }
    if (!is_client) {
        end.told = LEAT_CLOSE_DUE;
        end.close = broker_lost;
    }
    leat_session_end(session, &end, "%s", reason);
}

/* Goes to CLOSING, in which BY has sent a Close that awaits its answer. */
static void begin_closing(struct leat_session *session, enum leat_session_by by)
{
    session->closing_by = by;
    leat_session_set_state(session, LEAT_SESSION_CLOSING);
    leat_session_set_deadline(session, session->config->timeout_close_ms);
}

static void end_closing(struct leat_session *session, const char *more)
{
    struct leat_session_end end = {.by = session->closing_by, .orderly = session->closed_with_200};

    if (session->closing_by == LEAT_BY_LEAT) { /* see force() */
        end.told = LEAT_CLOSE_SENT;
        end.close.code = LEAT_AMQP_CONNECTION_FORCED;
    }
    leat_session_end(session, &end, "%s%s", session->close_reason, more);
}

/* The client has nothing more to say: the broker, which has got all of it, is told. */
static void close_broker(struct leat_session *session)
{
    static const struct leat_amqp_close close = {LEAT_AMQP_REPLY_SUCCESS, LEAT_STR_INIT("Goodbye")};

    session->client_answered = true;
    send_close(&session->broker, &close);
    leat_session_set_deadline(session, session->config->timeout_close_ms);
}

bool leat_session_got_close(struct leat_session *session, struct leat_leg *from)
{
    const struct leat_amqp_close *close = &from->relay.close;
    bool is_client = from == &session->client;
    struct leat_text reason;

    if (session->state == LEAT_SESSION_CLOSING && session->closing_by == LEAT_BY_LEAT) {
        /* It crossed leat's own, and is as good an answer as Close-Ok. */
        send_close_ok(from);
        (void)leat_session_got_close_ok(session, from);
        return false;
    }
    /* The two sides may close at the same time, and each is to hear of the other's Close;
     * but the first one counts, and a second one of the same side is of no use to anybody. */
    if (session->state != LEAT_SESSION_OPEN)
        return is_client != (session->closing_by == LEAT_BY_CLIENT);
    leat_text_init(&reason, session->close_reason, sizeof(session->close_reason));
    leat_text_add(&reason, "it closed with %u %.*s", close->code, (int)close->text.len,
                  close->text.ptr);
    session->closed_with_200 = close->code == LEAT_AMQP_REPLY_SUCCESS;
    begin_closing(session, is_client ? LEAT_BY_CLIENT : LEAT_BY_BROKER);
    return true;
}

bool leat_session_got_close_ok(struct leat_session *session, const struct leat_leg *from)
{
    bool is_client = from == &session->client;

    if (session->state != LEAT_SESSION_CLOSING)
        return true;
    switch (session->closing_by) {
    case LEAT_BY_CLIENT:
    case LEAT_BY_BROKER:
        return true;
    case LEAT_BY_LEAT:
        if (!is_client)
            end_closing(session, "");
        else if (!session->client_answered)
            close_broker(session);
        return false;
    }
    return true;
}

void leat_session_passed_close_ok(struct leat_session *session, const struct leat_leg *from)
{
    enum leat_session_by answers = (from == &session->client) ? LEAT_BY_BROKER : LEAT_BY_CLIENT;

    if (session->state == LEAT_SESSION_CLOSING && session->closing_by == answers)
        end_closing(session, "");
}

void leat_session_close_unanswered(struct leat_session *session, const char *why)
{
    char more[200];

    if (session->closing_by == LEAT_BY_CLIENT)
        send_close_ok(&session->client);
    else if (session->closing_by == LEAT_BY_BROKER)
        send_close_ok(&session->broker);
    (void)snprintf(more, sizeof(more), "; no Close-Ok came: %s", why);
    end_closing(session, more);
}

/* Begins to end the session for REASON, with a Close 320 of TEXT; see leat_session_drain(). */
static bool force(struct leat_session *session, struct leat_str text, const char *reason)
{
    const struct leat_session_end end = {
        .by = LEAT_BY_LEAT,
        .orderly = true,
        .told = LEAT_CLOSE_DUE,
        .close = {LEAT_AMQP_CONNECTION_FORCED, text},
    };

    if (session->state == LEAT_SESSION_CLOSING || session->state == LEAT_SESSION_ENDING)
        return true;
    if (session->state != LEAT_SESSION_OPEN) {
        leat_session_end(session, &end, "%s", reason);
        return true;
    }
    if (!leat_leg_may_insert(&session->client))
        return false;
    send_close(&session->client, &end.close);
    session->closed_with_200 = true;
    (void)snprintf(session->close_reason, sizeof(session->close_reason), "%s", reason);
    begin_closing(session, LEAT_BY_LEAT);
    return true;
}

bool leat_session_drain(struct leat_session *session)
{
    static const struct leat_str text =
        LEAT_STR_INIT("CONNECTION_FORCED - the proxy is shutting down");

    return force(session, text, "leat is shutting down");
}

bool leat_session_close_by_operator(struct leat_session *session)
{
    static const struct leat_str text = LEAT_STR_INIT("CONNECTION_FORCED - closed by the operator");

    return force(session, text, "closed by the operator");
}
