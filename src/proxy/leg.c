/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/leg.h"

#include <stdio.h>

#include "buf/writer.h"
#include "proxy/session.h"
#include "proxy/session_log.h"

#define LINGER_CROWDED_MS 200
#define READ_INITIAL (64u * 1024u)

static struct leat_loop *loop_of(const struct leat_leg *leg)
{
    return leg->session->worker->loop;
}

static uint64_t now(const struct leat_leg *leg)
{
    return leat_loop_now_ms(loop_of(leg));
}

struct leat_leg *leat_leg_other(struct leat_leg *leg)
{
    struct leat_session *session = leg->session;

    return (leg == &session->client) ? &session->broker : &session->client;
}

const char *leat_leg_end_reason(const struct leat_leg *leg, enum leat_status status)
{
    const char *text = leat_stream_error(leg->stream)->text;

    if (*text != '\0')
        return text;
    if (status == LEAT_ETRUNCATED)
        return "it dropped the connection, without TLS close_notify";
    return "it dropped the connection";
}

bool leat_leg_write(struct leat_leg *leg, const struct iovec *iov, int count)
{
    if (leg->stream == NULL || count == 0)
        return true;
    leg->sent_at = now(leg);
    return leat_stream_write(leg->stream, iov, count) == LEAT_OK;
}

bool leat_leg_write_own(struct leat_leg *leg, const struct leat_writer *frames)
{
    if (frames->len == 0)
        return true;
    if (leg->session->trace)
        leat_session_log_own_frames(leg->session, leg, frames->buf, frames->len);
    return leat_leg_write(leg, &(struct iovec){.iov_base = frames->buf, .iov_len = frames->len}, 1);
}

void leat_leg_received(struct leat_leg *leg, size_t len)
{
    leg->received_at = now(leg);
    leg->is_heard = true;
    leg->bytes += len;
}

void leat_leg_count(struct leat_leg *leg)
{
    struct leat_worker_counters *count = &leg->session->worker->count;
    bool is_client = leg == &leg->session->client;
    uint64_t frames = leg->relay.frames - leg->counted_frames;

    *(is_client ? &count->bytes_in : &count->bytes_out) += leg->bytes - leg->counted_bytes;
    *(is_client ? &count->frames_in : &count->frames_out) += frames;
    count->heartbeats_received += leg->relay.heartbeats - leg->counted_heartbeats;
    leg->counted_bytes = leg->bytes;
    leg->counted_frames = leg->relay.frames;
    leg->counted_heartbeats = leg->relay.heartbeats;
}

void leat_leg_pause(struct leat_leg *leg)
{
    if (leg->stream != NULL)
        leat_stream_pause(leg->stream);
}

void leat_leg_resume(struct leat_leg *leg)
{
    if (leg->stream == NULL || !leat_stream_is_paused(leg->stream))
        return;
    leg->received_at = now(leg);
    leat_stream_resume(leg->stream);
}

bool leat_leg_may_insert(struct leat_leg *leg)
{
    const struct leat_session *session = leg->session;

    /* Before the session is open all frames are leat's own, and once leat has sent its Close
     * nothing else goes to the client any more. */
    if (!session->was_open || (session->state == LEAT_SESSION_CLOSING &&
                               session->closing_by == LEAT_BY_LEAT && leg == &session->client))
        return true;
    return leat_amqp_relay_is_between_frames(&leat_leg_other(leg)->relay);
}

size_t leat_leg_queued(const struct leat_leg *leg)
{
    return (leg->stream != NULL) ? leat_stream_queued(leg->stream) : 0;
}

/* A heartbeat is pointless behind bytes that wait. */
static bool may_send(struct leat_leg *leg)
{
    return leat_stream_queued(leg->stream) == 0 && leat_leg_may_insert(leg);
}

static bool send_heartbeat(struct leat_leg *leg)
{
    uint8_t frame[LEAT_AMQP_FRAME_OVERHEAD];
    struct leat_writer out;

    leat_writer_init(&out, frame, sizeof(frame));
    leat_amqp_write_heartbeat(&out);
    leg->session->worker->count.heartbeats_sent++;
    return leat_leg_write_own(leg, &out);
}

/* Sleeps until the first moment at which there may be something to do. Traffic in between
 * moves that moment, but not the timer: it finds out when it fires. */
static void sleep_until_due(struct leat_leg *leg)
{
    uint64_t half = leg->heartbeat_ms / 2, at = leg->sent_at + half;

    if (!leat_stream_is_paused(leg->stream) && leg->received_at + 2 * leg->heartbeat_ms < at)
        at = leg->received_at + 2 * leg->heartbeat_ms;
    /* What is due but may not be sent now is tried again after half an interval. */
    uint64_t wait = (at > now(leg)) ? at - now(leg) : half;
    leat_timer_start(loop_of(leg), &leg->heartbeat, wait);
}

static void on_heartbeat(void *arg)
{
    struct leat_leg *leg = arg;
    uint64_t time = now(leg);

    if (!leat_stream_is_paused(leg->stream) && time >= leg->received_at + 2 * leg->heartbeat_ms) {
        char reason[80];
        (void)snprintf(reason, sizeof(reason), "nothing came for %llu s, twice its heartbeat",
                       (unsigned long long)(2 * leg->heartbeat_ms / 1000));
        leg->is_dead = true;
        leat_session_leg_lost(leg->session, leg, reason);
        return;
    }
    if (time >= leg->sent_at + leg->heartbeat_ms / 2 && may_send(leg) && !send_heartbeat(leg)) {
        leat_session_leg_lost(leg->session, leg, "out of memory");
        return;
    }
    sleep_until_due(leg);
}

void leat_leg_init(struct leat_leg *leg, struct leat_session *session)
{
    size_t most = session->config->limit_session_queue_bytes;

    *leg = (struct leat_leg){.session = session,
                             .read_size = (most < READ_INITIAL) ? most : READ_INITIAL};
    leat_timer_init(&leg->heartbeat, on_heartbeat, leg);
    leat_amqp_relay_init(&leg->relay, 0, 0);
}

void leat_leg_tune(struct leat_leg *leg, const struct leat_amqp_tune *tune)
{
    if (tune->frame_max == 0 || tune->heartbeat_s == 0 || leg->heartbeat_ms != 0)
        return;
    leg->heartbeat_ms = (uint64_t)tune->heartbeat_s * 1000;
    leg->received_at = now(leg);
    leg->sent_at = now(leg);
    sleep_until_due(leg);
}

void leat_leg_drained(struct leat_leg *leg)
{
    enum leat_session_state state = leg->session->state;

    if (state == LEAT_SESSION_OPEN || state == LEAT_SESSION_CLOSING)
        leat_leg_resume(leat_leg_other(leg));
}

static void stop_heartbeat(struct leat_leg *leg)
{
    leg->heartbeat_ms = 0;
    leat_timer_stop(loop_of(leg), &leg->heartbeat);
}

void leat_leg_finish(struct leat_leg *leg)
{
    const struct leat_config *config = leg->session->config;

    const struct leat_shared *shared = leg->session->worker->shared;
    uint64_t linger_ms = config->timeout_linger_ms;

    /* Lingering is a courtesy: when many do, it must not hold up those who come. */
    if (shared->ending > shared->handshakes_max / 2 && linger_ms > LINGER_CROWDED_MS)
        linger_ms = LINGER_CROWDED_MS;
    stop_heartbeat(leg);
    if (leg->stream != NULL && leg->is_dead)
        leat_stream_close(leg->stream); /* nobody would take what is queued */
    else if (leg->stream != NULL)
        leat_stream_finish(leg->stream, config->timeout_flush_ms, linger_ms);
}

void leat_leg_close(struct leat_leg *leg)
{
    stop_heartbeat(leg);
    if (leg->stream != NULL)
        leat_stream_close(leg->stream);
}
