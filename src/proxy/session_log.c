/* What is logged of a session. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "amqp/method.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "buf/reader.h"
#include "proxy/session.h"
#include "proxy/session_log.h"
#include "proxy/watch.h"
#include "tls/stream.h"

#define LINE_MAX_BYTES 1000
#define NAME_MAX_BYTES 64
#define EARLY_BURST 200

static const char *or_none(const char *text)
{
    return *text != '\0' ? text : "none";
}

/* Adds a name that the client chose. A long one must not push out what follows. */
static void add_name(struct leat_text *line, const char *key, struct leat_str name)
{
    bool is_long = name.len > NAME_MAX_BYTES;

    if (name.ptr == NULL)
        return;
    if (is_long)
        name.len = NAME_MAX_BYTES;
    leat_text_add(line, " %s=", key);
    leat_text_add_quoted(line, name);
    if (is_long)
        leat_text_add(line, "...");
}

/* Adds whom the certificate of STREAM's peer names, if it showed one. */
static void add_certificate(struct leat_text *line, const struct leat_stream *stream)
{
    struct leat_text subject;
    char buf[256];

    leat_text_init(&subject, buf, sizeof(buf));
    if (leat_tls_stream_add_peer(stream, &subject))
        add_name(line, "certificate", (struct leat_str){buf, subject.len});
}

static void add_who(struct leat_text *line, const struct leat_session *session)
{
    char peer[LEAT_ADDR_TEXT_MAX];
    struct leat_stream_tls tls = {"", ""};

    if (session->client.stream != NULL)
        tls = leat_stream_tls(session->client.stream);
    leat_text_add(line, " peer=%s", leat_addr_text(&session->peer, peer));
    if (session->via.len > 0)
        leat_text_add(line, " via=%s", leat_addr_text(&session->via, peer));
    add_name(line, "user", session->login.user);
    add_name(line, "vhost", session->login.vhost);
    if (session->backend != NULL)
        leat_text_add(line, " backend=%s", session->backend->text);
    if (session->backend != NULL && session->backend->config->endpoint.host != NULL &&
        session->backend_addr.len > 0)
        leat_text_add(line, " backend_address=%s", leat_addr_text(&session->backend_addr, peer));
    leat_text_add(line, " tls=%s cipher=%s", or_none(tls.version), or_none(tls.cipher));
    if (session->client.stream != NULL)
        add_certificate(line, session->client.stream);
}

void leat_session_log_opened(const struct leat_session *session)
{
    const struct leat_worker *worker = session->worker;
    char buf[LINE_MAX_BYTES];
    struct leat_text line;

    leat_text_init(&line, buf, sizeof(buf));
    add_who(&line, session);
    leat_text_add(&line, " backend_tls=%s",
                  or_none(leat_stream_tls(session->broker.stream).version));
    leat_log_line(worker->shared->log, LEAT_LOG_INFO, "session=%llu opened%s after_ms=%llu",
                  (unsigned long long)session->id, buf,
                  (unsigned long long)(leat_loop_now_ms(worker->loop) - session->began_at));
}

/* A health check connects, perhaps makes the TLS handshake, and leaves. A proxy's own is a PROXY
 * header that names no client. */
static bool has_said_nothing(const struct leat_session *session)
{
    const struct leat_stream *stream = session->client.stream;

    if (session->client.is_opened || session->has_no_client)
        return !session->client.is_heard;
    return stream != NULL && leat_stream_received(stream) == 0;
}

/* Before anyone is known a stranger can cause as many ends as it likes: such lines are
 * bounded, and a connection that sent nothing at all, a health check, is only counted. */
static bool is_worth_a_line(const struct leat_session *session, const struct leat_session_end *end)
{
    struct leat_shared *shared = session->worker->shared;

    if (session->was_open)
        return true;
    if (end->by == LEAT_BY_CLIENT && has_said_nothing(session)) {
        session->worker->count.silent++;
        return false;
    }
    bool has_name = session->login.user.ptr != NULL;
    return leat_worker_may_log(session->worker,
                               has_name ? &shared->rate_refused : &shared->rate_early, EARLY_BURST);
}

const char *leat_session_end_how(const struct leat_session *session,
                                 const struct leat_session_end *end)
{
    if (session->was_open)
        return "closed";
    return (end->told == LEAT_CLOSE_SENT) ? "refused" : "failed";
}

void leat_session_log_end(const struct leat_session *session, const struct leat_session_end *end,
                          const char *reason)
{
    const struct leat_worker *worker = session->worker;
    uint64_t ms = leat_loop_now_ms(worker->loop) - session->began_at;
    char buf[LINE_MAX_BYTES];
    struct leat_text line;

    if (!is_worth_a_line(session, end))
        return;
    leat_text_init(&line, buf, sizeof(buf));
    leat_text_add(&line, "%s by=%s", leat_session_end_how(session, end),
                  leat_session_by_name(end->by));
    if (end->told == LEAT_CLOSE_SENT)
        leat_text_add(&line, " code=%u", end->close.code);
    leat_text_add(&line, " reason=");
    leat_text_add_quoted(&line, leat_str_of(reason));
    if (end->by == LEAT_BY_LEAT && session->handshake != NULL &&
        session->handshake->last_failure[0] != '\0') {
        leat_text_add(&line, " last_failure=");
        leat_text_add_quoted(&line, leat_str_of(session->handshake->last_failure));
    }
    add_who(&line, session);
    if (session->was_open)
        leat_text_add(&line, " bytes_in=%llu bytes_out=%llu frames_in=%llu frames_out=%llu",
                      (unsigned long long)session->client.bytes,
                      (unsigned long long)session->broker.bytes,
                      (unsigned long long)session->client.relay.frames,
                      (unsigned long long)session->broker.relay.frames);
    leat_log_line(worker->shared->log, end->orderly ? LEAT_LOG_INFO : LEAT_LOG_WARN,
                  "session=%llu %s seconds=%llu.%03u", (unsigned long long)session->id, buf,
                  (unsigned long long)(ms / 1000), (unsigned)(ms % 1000));
}

static const char *frame_name(const struct leat_amqp_frame_head *head, uint32_t method)
{
    const char *name;

    switch (head->type) {
    case LEAT_AMQP_FRAME_METHOD:
        name = leat_amqp_method_name(method);
        return name != NULL ? name : "unknown-method";
    case LEAT_AMQP_FRAME_HEADER:
        return "header";
    case LEAT_AMQP_FRAME_BODY:
        return "body";
    case LEAT_AMQP_FRAME_HEARTBEAT:
        return "heartbeat";
    default:
        return "unknown-type";
    }
}

static const char *leg_name(const struct leat_session *session, const struct leat_leg *leg)
{
    return (leg == &session->client) ? "client" : "broker";
}

/* Tells of a frame on LEG, on its way FROM one TO another. */
static void log_frame(const struct leat_leg *leg, const char *from, const char *to,
                      const struct leat_amqp_frame_head *head, uint32_t method)
{
    const struct leat_session *session = leg->session;
    const struct leat_log *log = session->worker->shared->log;
    const char *name = frame_name(head, method);
    char buf[160];
    struct leat_text line;

    leat_watch_frame(
        session,
        &(struct leat_watch_frame){
            .from = from, .to = to, .leg = leg_name(session, leg), .head = head, .method = name});
    if (!session->logs_frames)
        return;
    leat_text_init(&line, buf, sizeof(buf));
    leat_text_add(&line, "session=%llu %s->%s leg=%s channel=%u %s size=%lu",
                  (unsigned long long)session->id, from, to, leg_name(session, leg), head->channel,
                  name, (unsigned long)head->size);
    /* --trace asks for these lines by itself, whatever the level. */
    log->write(log->arg, LEAT_LOG_TRACE, (struct leat_str){line.buf, line.len});
}

/* Whether the frame that FROM's relay has seen is for leat, and goes no further: each side has
 * heartbeats of its own, and to leat's Close either side's Close-Ok or crossing Close is an answer.
 */
static bool is_for_leat(const struct leat_session *session, const struct leat_leg *from)
{
    const struct leat_amqp_relay *relay = &from->relay;

    if (relay->head.type == LEAT_AMQP_FRAME_HEARTBEAT)
        return true;
    return relay->head.type == LEAT_AMQP_FRAME_METHOD && session->state == LEAT_SESSION_CLOSING &&
           session->closing_by == LEAT_BY_LEAT &&
           (relay->method == LEAT_AMQP_CONNECTION_CLOSE_OK ||
            relay->method == LEAT_AMQP_CONNECTION_CLOSE);
}

void leat_session_log_frame(const struct leat_session *session, const struct leat_leg *from)
{
    const struct leat_leg *to = (from == &session->client) ? &session->broker : &session->client;

    log_frame(from, leg_name(session, from),
              is_for_leat(session, from) ? "leat" : leg_name(session, to), &from->relay.head,
              from->relay.method);
}

void leat_session_log_own_frames(const struct leat_session *session, const struct leat_leg *to,
                                 const uint8_t *data, size_t len)
{
    struct leat_reader reader;

    if (len >= LEAT_AMQP_PROTOCOL_SIZE && memcmp(data, "AMQP", 4) == 0)
        return;
    leat_reader_init(&reader, data, len);
    while (leat_reader_left(&reader) >= LEAT_AMQP_FRAME_OVERHEAD) {
        struct leat_amqp_frame_head head = leat_amqp_frame_head_parse(reader.pos);
        struct leat_reader method;
        (void)leat_reader_bytes(&reader, LEAT_AMQP_FRAME_HEAD_SIZE);
        leat_reader_init(&method, reader.pos, leat_reader_left(&reader));
        log_frame(to, "leat", leg_name(session, to), &head, leat_reader_u32(&method));
        (void)leat_reader_bytes(&reader, (size_t)head.size + 1);
    }
}

void leat_session_log_handshake(struct leat_session *session, struct leat_leg *from,
                                const uint8_t *data, size_t len)
{
    struct leat_session_handshake *handshake = session->handshake;
    bool is_client = from == &session->client;
    /* A relay knows how to find the frames in bytes that are cut anywhere. */
    struct leat_amqp_relay *seen = is_client ? &handshake->seen_client : &handshake->seen_broker;
    struct leat_amqp_op op = {.kind = LEAT_AMQP_OP_DROP};

    if (is_client && handshake->header_seen < LEAT_AMQP_PROTOCOL_SIZE) {
        size_t header = LEAT_AMQP_PROTOCOL_SIZE - handshake->header_seen;
        header = (header < len) ? header : len;
        handshake->header_seen += header;
        data += header;
        len -= header;
    }
    seen->trace = session->trace;
    while (seen->error_code == 0 && op.kind != LEAT_AMQP_OP_MORE) {
        leat_amqp_relay_next(seen, data, len, &op);
        if (op.kind == LEAT_AMQP_OP_FRAME)
            log_frame(from, leg_name(session, from), "leat", &seen->head, seen->method);
        data += op.taken;
        len -= op.taken;
    }
}

void leat_session_log_turn(const struct leat_session *session, const struct leat_leg *from,
                           size_t sent)
{
    const struct leat_log *log = session->worker->shared->log;
    const struct leat_leg *target = from;
    const char *to = "leat", *waits = "for bytes";
    const struct leat_stream_turn *turn;

    if (!leat_log_is_on(log, LEAT_LOG_TRACE) || from->stream == NULL ||
        session->state == LEAT_SESSION_ENDING)
        return;
    turn = leat_stream_turn(from->stream);
    if (session->was_open) {
        target = (from == &session->client) ? &session->broker : &session->client;
        to = leg_name(session, target);
    }
    if (leat_stream_is_paused(from->stream))
        waits = "until the other side takes what is queued";
    leat_log_line(log, LEAT_LOG_TRACE,
                  "session=%llu turn %s->%s received=%zu records=%zu decrypted=%zu inside=%zu "
                  "sent=%zu queued=%zu waits=\"%s\"",
                  (unsigned long long)session->id, leg_name(session, from), to, turn->received,
                  turn->records, turn->delivered, turn->inside, sent, leat_leg_queued(target),
                  waits);
}
