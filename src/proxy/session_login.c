/* The broker's handshake: leat plays the client. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "buf/writer.h"
#include "proxy/session.h"
#include "proxy/session_log.h"
#include "proxy/tally.h"
#include "proxy/watch.h"

static void write_out(struct leat_session *session, struct leat_writer *out)
{
    if (!leat_leg_write_own(&session->broker, out))
        leat_session_search_pass_over(session, "out of memory");
}

void leat_session_login_opened(struct leat_session *session)
{
    struct leat_amqp_client *client = &session->handshake->client;
    uint8_t header[LEAT_AMQP_PROTOCOL_SIZE];
    struct leat_writer out;

    leat_session_set_deadline(session, session->config->timeout_handshake_ms);
    leat_amqp_client_init(client, &session->handshake->client_config);
    leat_writer_init(&out, header, sizeof(header));
    leat_amqp_client_begin(client, &out);
    write_out(session, &out);
}

static void tell_open_ok(struct leat_session *session)
{
    uint8_t frame[LEAT_AMQP_OPEN_OK_SIZE];
    struct leat_writer out;

    leat_writer_init(&out, frame, sizeof(frame));
    leat_amqp_write_open_ok(&out);
    if (!leat_leg_write_own(&session->client, &out))
        leat_session_leg_lost(session, &session->client, "out of memory");
}

/* The broker has let the session in; REST is what it sent behind Open-Ok. */
static void opened(struct leat_session *session, const uint8_t *rest, size_t rest_len)
{
    struct leat_session_handshake *handshake = session->handshake;
    const struct leat_amqp_tune *client = &session->login.tune, *broker = &handshake->client.tune;
    struct leat_shared *shared = session->worker->shared;

    leat_timer_stop(session->worker->loop, &session->deadline);
    leat_timer_stop(session->worker->loop, &handshake->search_deadline);
    leat_farm_learn(session->farm, &handshake->client.offered);
    if (leat_backend_opened(session->backend))
        leat_log_line(shared->log, LEAT_LOG_INFO, "backend=%s works again", session->backend->text);
    leat_amqp_relay_init(&session->client.relay, client->frame_max, broker->frame_max);
    leat_amqp_relay_init(&session->broker.relay, broker->frame_max, client->frame_max);
    session->client.relay.trace = session->trace;
    session->broker.relay.trace = session->trace;
    session->handshake = NULL;
    shared->handshakes--;
    session->was_open = true;
    session->worker->count.opened++;
    leat_amqp_login_forget_secret(&session->login);
    leat_stream_set_secret(session->client.stream, false);
    leat_session_set_state(session, LEAT_SESSION_OPEN);
    leat_tally_opened(session->backend->tally);
    leat_session_log_opened(session);
    leat_watch_opened(session);
    tell_open_ok(session);
    if (session->state != LEAT_SESSION_ENDING && handshake->early_len > 0)
        leat_session_relay(session, &session->client, handshake->early, handshake->early_len);
    if (session->state != LEAT_SESSION_ENDING && rest_len > 0)
        leat_session_relay(session, &session->broker, rest, rest_len);
    if (session->state != LEAT_SESSION_ENDING && leat_leg_queued(&session->broker) == 0)
        leat_leg_resume(&session->client);
    leat_session_handshake_free(handshake, session->worker->loop);
}

static bool has(struct leat_str text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* The broker has answered the login with a Close. */
static void refused(struct leat_session *session)
{
    const struct leat_amqp_client *client = &session->handshake->client;
    struct leat_str text = {client->close_text, client->close_text_len};
    bool node_is_full =
        client->close_code == LEAT_AMQP_NOT_ALLOWED && has(text, "node connection limit");

    if (client->close_code == LEAT_AMQP_CONNECTION_FORCED || node_is_full)
        /* The node takes nobody now. */
        leat_session_search_failed(session, "it answered %u %.*s", client->close_code,
                                   (int)text.len, text.ptr);
    else if (client->close_code == LEAT_AMQP_INTERNAL_ERROR)
        /* It may have to do with this session only. */
        leat_session_search_pass_over(session, "it answered %u %.*s", client->close_code,
                                      (int)text.len, text.ptr);
    else
        leat_session_refuse(session, LEAT_BY_BROKER, client->close_code, text);
}

/* Acts on what the client's part says; DATA of LEN bytes is what is left of the input. True
 * if it is to be fed on. */
static bool act(struct leat_session *session, enum leat_amqp_client_event event,
                const uint8_t *data, size_t len)
{
    static const struct leat_str secure = LEAT_STR_INIT(
        "NOT_IMPLEMENTED - the broker asks for a challenge that the proxy cannot pass on");

    switch (event) {
    case LEAT_AMQP_CLIENT_MORE:
        return false;
    case LEAT_AMQP_CLIENT_STARTED:
        session->handshake->login_sent = true;
        leat_farm_learn_properties(session->farm, session->handshake->client.properties);
        leat_tally_learn(session->backend->tally, session->handshake->client.properties);
        return true;
    case LEAT_AMQP_CLIENT_OPEN:
        opened(session, data, len);
        return false;
    case LEAT_AMQP_CLIENT_REFUSED:
        refused(session);
        return false;
    case LEAT_AMQP_CLIENT_SECURE:
        leat_session_refuse(session, LEAT_BY_BROKER, LEAT_AMQP_NOT_IMPLEMENTED, secure);
        return false;
    case LEAT_AMQP_CLIENT_FAILED:
        leat_session_search_lost(session, session->handshake->client.failure.text);
        return false;
    case LEAT_AMQP_CLIENT_UNFIT:
        leat_session_search_pass_over(session, "%s", session->handshake->client.failure.text);
        return false;
    case LEAT_AMQP_CLIENT_NOMEM:
        leat_session_search_pass_over(session, "out of memory");
        return false;
    }
    return false;
}

static void feed(struct leat_session *session, const uint8_t *data, size_t len)
{
    struct leat_amqp_client *client = &session->handshake->client;
    size_t cap = LEAT_AMQP_CLIENT_OUT_MAX(session->login.payload_len);
    uint8_t *answer = leat_mem_alloc(cap);
    bool more = true;

    if (answer == NULL) {
        leat_session_search_pass_over(session, "out of memory");
        return;
    }
    while (more) {
        struct leat_writer out;
        size_t taken = 0;
        leat_writer_init(&out, answer, cap);
        enum leat_amqp_client_event event = leat_amqp_client_feed(client, data, len, &taken, &out);
        struct leat_stream *stream = session->broker.stream;
        leat_session_log_handshake(session, &session->broker, data, taken);
        write_out(session, &out);
        if (session->broker.stream != stream)
            break;
        leat_leg_tune(&session->broker, &client->tune);
        leat_session_log_turn(session, &session->broker, out.len);
        data += taken;
        len -= taken;
        more = act(session, event, data, len);
    }
    leat_mem_free_secret(answer, cap);
}

void leat_session_login_readable(struct leat_session *session)
{
    uint8_t *buf = leat_loop_scratch(session->worker->loop, LEAT_SCRATCH_PLAIN);
    struct leat_stream *stream = session->broker.stream;
    size_t len;
    enum leat_status status = leat_stream_read(stream, buf, LEAT_SCRATCH_PLAIN_SIZE, &len);

    if (status == LEAT_OK) {
        leat_leg_received(&session->broker, 0);
        feed(session, buf, len);
    } else if (status != LEAT_EAGAIN)
        leat_session_search_lost(session, leat_leg_end_reason(&session->broker, status));
}
