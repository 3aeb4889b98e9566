/* The client's handshake: leat plays the broker. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "amqp/table.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/writer.h"
#include "proxy/session.h"
#include "proxy/session_log.h"
#include "tls/stream.h"

#define CONNECTION_NAME_MAX 128u

void leat_session_accept_opened(struct leat_session *session)
{
    const struct leat_config *config = session->config;
    struct leat_session_handshake *handshake = session->handshake;

    if (leat_tls_stream_ctx(session->client.stream) != NULL) {
        session->worker->count.tls_handshakes++;
        session->worker->count.tls_resumed += leat_tls_stream_is_resumed(session->client.stream);
    }
    if (session->state < LEAT_SESSION_HANDSHAKE)
        leat_session_set_state(session, LEAT_SESSION_HANDSHAKE);
    handshake->server_config = (struct leat_amqp_server_config){
        .product = "leat",
        .version = LEAT_VERSION,
        .properties = leat_snapshot_properties(session->snapshot, handshake->properties),
        .tune = {.channel_max = (uint16_t)config->channel_max,
                 .frame_max = (uint32_t)config->frame_max,
                 .heartbeat_s = (uint16_t)(config->heartbeat_ms / 1000)},
        .initial_frame_max = (uint32_t)config->limit_initial_frame_bytes,
        .max_frames = (unsigned)config->limit_initial_frames,
    };
    leat_snapshot_limit_tune(session->snapshot, &handshake->server_config.tune);
    leat_amqp_server_init(&handshake->server, &handshake->server_config);
    leat_stream_set_secret(session->client.stream, true);
    leat_session_set_deadline(session, config->timeout_handshake_ms);
}

/* Keeps what the client sent behind its Open until the session is open. */
static void keep_early(struct leat_session *session, const uint8_t *data, size_t len)
{
    struct leat_session_handshake *handshake = session->handshake;

    memcpy(handshake->early, data, len);
    handshake->early_len = len;
}

/* Keeps as much of NAME, which is not to be cut inside a character, as is worth showing. */
static void keep_name(struct leat_session *session, struct leat_str name)
{
    if (name.len > CONNECTION_NAME_MAX) {
        name.len = CONNECTION_NAME_MAX;
        while (name.len > 0 && ((unsigned char)name.ptr[name.len] & 0xC0) == 0x80)
            name.len--;
    }
    if (name.len > 0)
        session->connection_name = leat_mem_dup(name); /* without memory it has none */
}

/* Takes over what the client has said of itself. */
static void take_login(struct leat_session *session)
{
    struct leat_amqp_login *login = &session->handshake->server.login;
    struct leat_amqp_field field;

    session->login = *login;
    memset(login, 0, sizeof(*login));
    if (leat_amqp_table_find(session->login.client_properties, leat_str_of("connection_name"),
                             &field))
        keep_name(session, leat_amqp_field_contents(&field));
}

/* Acts on what the server's part says. */
static void act(struct leat_session *session, enum leat_amqp_server_event event)
{
    const struct leat_amqp_server *server = &session->handshake->server;
    struct leat_session_end end = {.by = LEAT_BY_CLIENT};

    switch (event) {
    case LEAT_AMQP_SERVER_MORE:
        break;
    case LEAT_AMQP_SERVER_OPEN:
        take_login(session);
        leat_leg_pause(&session->client);
        leat_session_search_begin(session);
        break;
    case LEAT_AMQP_SERVER_REFUSED:
        take_login(session);
        end.by = LEAT_BY_LEAT;
        end.told = LEAT_CLOSE_SENT; /* it was in the output */
        end.close = (struct leat_amqp_close){server->refusal_code, leat_str_of("")};
        leat_session_end(session, &end, "%s", server->refusal.text);
        break;
    case LEAT_AMQP_SERVER_FOREIGN:
        leat_session_end(session, &end, "%s", server->refusal.text);
        break;
    case LEAT_AMQP_SERVER_CLOSED:
        take_login(session);
        end.orderly = true;
        leat_session_end(session, &end, "it closed before it opened a vhost");
        break;
    case LEAT_AMQP_SERVER_NOMEM:
        end.by = LEAT_BY_LEAT;
        leat_session_end(session, &end, "out of memory");
        break;
    }
}

static void read_some(struct leat_session *session, const uint8_t *data, size_t len)
{
    struct leat_amqp_server *server = &session->handshake->server;
    uint8_t answer[LEAT_AMQP_SERVER_OUT_MAX];
    enum leat_amqp_server_event event;
    struct leat_writer out;
    size_t taken = 0;

    leat_writer_init(&out, answer, sizeof(answer));
    event = leat_amqp_server_feed(server, data, len, &taken, &out);
    leat_session_log_handshake(session, &session->client, data, taken);
    if (!leat_leg_write_own(&session->client, &out))
        event = LEAT_AMQP_SERVER_NOMEM;
    leat_leg_tune(&session->client, &server->login.tune);
    leat_session_log_turn(session, &session->client, out.len);
    keep_early(session, data + taken, len - taken);
    act(session, event);
}

void leat_session_accept_readable(struct leat_session *session)
{
    uint8_t *buf = leat_loop_scratch(session->worker->loop, LEAT_SCRATCH_PLAIN);
    size_t len;
    enum leat_status status =
        leat_stream_read(session->client.stream, buf, sizeof(session->handshake->early), &len);

    if (status == LEAT_OK) {
        leat_leg_received(&session->client, 0);
        read_some(session, buf, len);
        explicit_bzero(buf, len);
    } else if (status != LEAT_EAGAIN)
        leat_session_leg_lost(session, &session->client,
                              leat_leg_end_reason(&session->client, status));
}
