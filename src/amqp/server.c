/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/server.h"

#include <inttypes.h>
#include <string.h>

#include "amqp/method.h"
#include "amqp/table.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/str.h"
#include "base/text.h"
#include "buf/reader.h"
#include "buf/writer.h"

/*
 *  HEADER --header/Start--> START_OK --Start-Ok/Tune--> TUNE_OK --Tune-Ok--> OPEN --Open--> DONE
 *
 * Every state goes to DONE on a Close, a refusal, or want of memory.
 */
enum state {
    HEADER,
    START_OK,
    TUNE_OK,
    OPEN,
    DONE,
};

static void enter(struct leat_amqp_server *server, enum state state)
{
    LEAT_ASSERT((int)state == server->state + 1 || state == DONE);
    server->state = (int)state;
}

void leat_amqp_server_init(struct leat_amqp_server *server,
                           const struct leat_amqp_server_config *config)
{
    *server = (struct leat_amqp_server){
        .config = config,
        .state = HEADER,
        .collect = {.max = config->initial_frame_max},
    };
}

void leat_amqp_server_fini(struct leat_amqp_server *server)
{
    leat_amqp_collect_clear(&server->collect);
    leat_amqp_login_fini(&server->login);
}

const char *leat_amqp_server_awaits(const struct leat_amqp_server *server)
{
    switch ((enum state)server->state) {
    case HEADER:
        return "the protocol header";
    case START_OK:
        return "Start-Ok";
    case TUNE_OK:
        return "Tune-Ok";
    case OPEN:
        return "Open";
    case DONE:
        return "nothing";
    }
    return "nothing";
}

/* Writes the Close whose code and text are in SERVER. */
static enum leat_amqp_server_event send_refusal(struct leat_amqp_server *server,
                                                struct leat_writer *out)
{
    leat_amqp_write_close(out, server->refusal_code, leat_str_of(server->refusal.text));
    return LEAT_AMQP_SERVER_REFUSED;
}

#define REFUSE(server, out, code, ...)                                                             \
    ((server)->refusal_code = (code),                                                              \
     leat_amqp_reply_error(&(server)->refusal, (code), __VA_ARGS__),                               \
     send_refusal((server), (out)))

/* Config strings are ours, but the answer has to stay within LEAT_AMQP_SERVER_OUT_MAX. */
static struct leat_str at_most_255(const char *text)
{
    struct leat_str str = leat_str_of(text);

    if (str.len > UINT8_MAX)
        str.len = UINT8_MAX;
    return str;
}

/* Server-properties of leat's own: product, version, and what RabbitMQ can do from 3.8 on;
 * clients switch features on by these names. */
static void write_own_properties(const struct leat_amqp_server_config *config,
                                 struct leat_writer *out)
{
    static const char *const capabilities[] = {
        "publisher_confirms",           "exchange_exchange_bindings", "basic.nack",
        "consumer_cancel_notify",       "connection.blocked",         "consumer_priorities",
        "authentication_failure_close", "per_consumer_qos",           "direct_reply_to",
    };
    size_t properties = leat_writer_begin32(out);

    leat_writer_str8(out, leat_str_of("capabilities"));
    leat_writer_u8(out, 'F');
    size_t table = leat_writer_begin32(out);
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        leat_amqp_write_field_bool(out, leat_str_of(capabilities[i]), true);
    leat_writer_end32(out, table);
    leat_amqp_write_field_text(out, leat_str_of("product"), at_most_255(config->product));
    leat_amqp_write_field_text(out, leat_str_of("version"), at_most_255(config->version));
    leat_amqp_write_field_text(out, leat_str_of("platform"), leat_str_of("Linux"));
    leat_writer_end32(out, properties);
}

static void write_start(const struct leat_amqp_server *server, struct leat_writer *out)
{
    const struct leat_amqp_server_config *config = server->config;
    size_t frame = leat_amqp_begin_method(out, LEAT_AMQP_CONNECTION_START);

    leat_writer_u8(out, 0); /* version 0-9, as RabbitMQ says for 0-9-1 */
    leat_writer_u8(out, 9);
    if (config->properties.len > 0)
        leat_writer_str32(out, config->properties);
    else
        write_own_properties(config, out);
    leat_writer_str32(out, leat_str_of("PLAIN AMQPLAIN"));
    leat_writer_str32(out, leat_str_of("en_US"));
    leat_amqp_end_method(out, frame);
}

static void write_tune(const struct leat_amqp_server *server, struct leat_writer *out)
{
    const struct leat_amqp_tune *tune = &server->config->tune;
    size_t frame = leat_amqp_begin_method(out, LEAT_AMQP_CONNECTION_TUNE);

    leat_writer_u16(out, tune->channel_max);
    leat_writer_u32(out, tune->frame_max);
    leat_writer_u16(out, tune->heartbeat_s);
    leat_amqp_end_method(out, frame);
}

static bool begins_with_any(const uint8_t *seen, size_t len, const char *const *words)
{
    for (; *words != NULL; words++) {
        size_t word_len = strlen(*words);

        if (len >= word_len && memcmp(seen, *words, word_len) == 0)
            return true;
    }
    return false;
}

/* Says in server->refusal what the LEN bytes at SEEN are, which begin the connection. */
static void name_foreign(struct leat_amqp_server *server, const uint8_t *seen, size_t len)
{
    static const char *const amqp[] = {"AMQP", NULL};
    static const char *const http[] = {"GET ",    "POST ",    "HEAD ",  "PUT ",
                                       "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ",
                                       "TRACE ",  "PRI ",     NULL};
    static const char *const proxy[] = {"PROXY ", "\r\n\r\n", NULL};
    struct leat_error *err = &server->refusal;
    char quoted[80];
    struct leat_text text;

    if (len >= 8 && begins_with_any(seen, len, amqp) && seen[4] != 1 && seen[5] == 1 &&
        seen[6] == 0 && seen[7] == 0) {
        (void)leat_error_set(err, LEAT_EPROTOCOL, 0,
                             "AMQP 1.0 is not served here; the client must use AMQP 0-9-1");
    } else if (len >= 8 && begins_with_any(seen, len, amqp)) {
        (void)leat_error_set(err, LEAT_EPROTOCOL, 0,
                             "a protocol header AMQP %u %u %u %u; the client must use AMQP 0-9-1 "
                             "(AMQP 0 0 9 1)",
                             seen[4], seen[5], seen[6], seen[7]);
    } else if (begins_with_any(seen, len, amqp)) {
        (void)leat_error_set(err, LEAT_EPROTOCOL, 0,
                             "another version of AMQP; the client must use AMQP 0-9-1");
    } else if (begins_with_any(seen, len, http)) {
        (void)leat_error_set(err, LEAT_EPROTOCOL, 0,
                             "HTTP on an AMQP port; the client must speak AMQP 0-9-1, the "
                             "management interface is on another port");
    } else if (begins_with_any(seen, len, proxy)) {
        (void)leat_error_set(err, LEAT_EPROTOCOL, 0,
                             "a PROXY protocol header; leat does not take one, turn it off in the "
                             "load balancer");
    } else {
        leat_text_init(&text, quoted, sizeof(quoted));
        leat_text_add_quoted(&text, (struct leat_str){(const char *)seen, len});
        (void)leat_error_set(err, LEAT_EPROTOCOL, 0,
                             "not AMQP, the first bytes are %s; the client must use AMQP 0-9-1",
                             quoted);
    }
}

/* Refuses what is no AMQP 0-9-1. The LEN bytes at REST follow server->first. */
static enum leat_amqp_server_event refuse_foreign(struct leat_amqp_server *server,
                                                  const uint8_t *rest, size_t len,
                                                  struct leat_writer *out)
{
    uint8_t seen[16];
    size_t held = server->first_len;
    size_t more = len < sizeof(seen) - held ? len : sizeof(seen) - held;

    memcpy(seen, server->first, held);
    if (more > 0)
        memcpy(seen + held, rest, more);
    enter(server, DONE);
    if (held == 2 && seen[0] == 0x16 && seen[1] == 0x03) {
        /* A ClientHello. An answer would only look like a broken TLS record. */
        (void)leat_error_set(&server->refusal, LEAT_EPROTOCOL, 0,
                             "TLS on a plain-text port; the client must use amqp://, or connect "
                             "to an amqps:// listener");
        return LEAT_AMQP_SERVER_FOREIGN;
    }
    name_foreign(server, seen, held + more);
    leat_writer_bytes(out,
                      (struct leat_str){(const char *)leat_amqp_protocol, LEAT_AMQP_PROTOCOL_SIZE});
    return LEAT_AMQP_SERVER_FOREIGN;
}

/* Whether what has come so far may become a header that is accepted, or a ClientHello, of
 * which two bytes have to be seen. */
static bool may_go_on(const struct leat_amqp_server *server)
{
    static const uint8_t legacy[LEAT_AMQP_PROTOCOL_SIZE] = {'A', 'M', 'Q', 'P', 1, 1, 0, 9};

    return memcmp(server->first, leat_amqp_protocol, server->first_len) == 0 ||
           memcmp(server->first, legacy, server->first_len) == 0 ||
           (server->first_len == 1 && server->first[0] == 0x16);
}

static enum leat_amqp_server_event take_header(struct leat_amqp_server *server, const uint8_t *data,
                                               size_t len, size_t *out_taken,
                                               struct leat_writer *out)
{
    size_t pos = 0;

    while (server->first_len < LEAT_AMQP_PROTOCOL_SIZE && pos < len) {
        server->first[server->first_len++] = data[pos++];
        *out_taken = pos;
        if (!may_go_on(server))
            return refuse_foreign(server, data + pos, len - pos, out);
    }
    if (server->first_len == LEAT_AMQP_PROTOCOL_SIZE) {
        write_start(server, out);
        enter(server, START_OK);
    }
    return LEAT_AMQP_SERVER_MORE;
}

static enum leat_amqp_server_event refuse_mechanism(struct leat_amqp_server *server,
                                                    struct leat_str arguments,
                                                    struct leat_writer *out)
{
    struct leat_reader reader;
    struct leat_text text;
    char quoted[80];

    leat_reader_init(&reader, arguments.ptr, arguments.len);
    (void)leat_reader_str32(&reader); /* the client's properties */
    leat_text_init(&text, quoted, sizeof(quoted));
    leat_text_add_quoted(&text, leat_reader_str8(&reader));
    return REFUSE(server, out, LEAT_AMQP_ACCESS_REFUSED,
                  "Login was refused: only the authentication mechanisms PLAIN and AMQPLAIN are "
                  "offered, not %s",
                  quoted);
}

static enum leat_amqp_server_event
take_start_ok(struct leat_amqp_server *server, struct leat_reader *reader, struct leat_writer *out)
{
    struct leat_str arguments = leat_reader_bytes(reader, leat_reader_left(reader));

    enum leat_status status = leat_amqp_login_from_start_ok(&server->login, arguments);
    if (status == LEAT_ENOMEM)
        return LEAT_AMQP_SERVER_NOMEM;
    if (status == LEAT_EUSAGE)
        return refuse_mechanism(server, arguments, out);
    if (status != LEAT_OK)
        return REFUSE(server, out, LEAT_AMQP_SYNTAX_ERROR, "malformed connection.start-ok");
    write_tune(server, out);
    enter(server, TUNE_OK);
    return LEAT_AMQP_SERVER_MORE;
}

/* Compares one value of Tune-Ok with the offer, where 0 means "no limit" (specification
 * 1.4.2.6) and so exceeds every offer. */
static enum leat_amqp_server_event check_limit(struct leat_amqp_server *server,
                                               struct leat_writer *out, const char *name,
                                               uint32_t chosen, uint32_t offered)
{
    if (chosen != 0 && chosen <= offered)
        return LEAT_AMQP_SERVER_MORE;
    return REFUSE(server, out, LEAT_AMQP_NOT_ALLOWED,
                  "negotiated %s = %" PRIu32 "%s is higher than the maximum allowed value %" PRIu32,
                  name, chosen, chosen == 0 ? " (no limit)" : "", offered);
}

static enum leat_amqp_server_event take_tune_ok(struct leat_amqp_server *server,
                                                struct leat_reader *reader, struct leat_writer *out)
{
    const struct leat_amqp_tune *offer = &server->config->tune;
    struct leat_amqp_tune tune;
    enum leat_amqp_server_event event;

    tune.channel_max = leat_reader_u16(reader);
    tune.frame_max = leat_reader_u32(reader);
    tune.heartbeat_s = leat_reader_u16(reader);
    if (reader->failed || leat_reader_left(reader) > 0)
        return REFUSE(server, out, LEAT_AMQP_SYNTAX_ERROR, "malformed connection.tune-ok");
    event = check_limit(server, out, "channel_max", tune.channel_max, offer->channel_max);
    if (event == LEAT_AMQP_SERVER_MORE)
        event = check_limit(server, out, "frame_max", tune.frame_max, offer->frame_max);
    if (event != LEAT_AMQP_SERVER_MORE)
        return event;
    if (tune.frame_max < LEAT_AMQP_FRAME_MAX_MIN)
        return REFUSE(server, out, LEAT_AMQP_NOT_ALLOWED,
                      "negotiated frame_max = %" PRIu32
                      " is lower than the minimum allowed value %u",
                      tune.frame_max, LEAT_AMQP_FRAME_MAX_MIN);
    server->login.tune = tune;
    enter(server, OPEN);
    return LEAT_AMQP_SERVER_MORE;
}

static enum leat_amqp_server_event take_open(struct leat_amqp_server *server,
                                             struct leat_reader *reader, struct leat_writer *out)
{
    struct leat_str vhost = leat_reader_str8(reader);

    (void)leat_reader_str8(reader); /* reserved, once capabilities */
    (void)leat_reader_u8(reader);   /* reserved, once insist */
    if (reader->failed || leat_reader_left(reader) > 0)
        return REFUSE(server, out, LEAT_AMQP_SYNTAX_ERROR, "malformed connection.open");
    if (leat_amqp_login_set_vhost(&server->login, vhost) != LEAT_OK)
        return LEAT_AMQP_SERVER_NOMEM;
    return LEAT_AMQP_SERVER_OPEN;
}

static enum leat_amqp_server_event refuse_method(struct leat_amqp_server *server, uint32_t method,
                                                 struct leat_writer *out)
{
    const char *name = leat_amqp_method_name(method);

    return REFUSE(server, out, LEAT_AMQP_COMMAND_INVALID,
                  "expected connection method %s, got %s (%" PRIu32 ",%" PRIu32 ")",
                  leat_amqp_server_awaits(server), name != NULL ? name : "an unknown method",
                  method >> 16, method & UINT16_MAX);
}

static enum leat_amqp_server_event take_method(struct leat_amqp_server *server,
                                               struct leat_reader *reader, struct leat_writer *out)
{
    uint32_t method = leat_reader_u32(reader);

    if (reader->failed)
        return REFUSE(server, out, LEAT_AMQP_SYNTAX_ERROR, "method frame of less than 4 bytes");
    if (method == LEAT_AMQP_CONNECTION_CLOSE) {
        leat_amqp_write_close_ok(out);
        return LEAT_AMQP_SERVER_CLOSED;
    }
    switch ((enum state)server->state) {
    case START_OK:
        if (method == LEAT_AMQP_CONNECTION_START_OK)
            return take_start_ok(server, reader, out);
        break;
    case TUNE_OK:
        if (method == LEAT_AMQP_CONNECTION_TUNE_OK)
            return take_tune_ok(server, reader, out);
        break;
    case OPEN:
        if (method == LEAT_AMQP_CONNECTION_OPEN)
            return take_open(server, reader, out);
        break;
    case HEADER:
    case DONE:
        break;
    }
    return refuse_method(server, method, out);
}

static enum leat_amqp_server_event take_frame(struct leat_amqp_server *server,
                                              const struct leat_amqp_frame_head *head,
                                              const uint8_t *payload, struct leat_writer *out)
{
    struct leat_reader reader;

    if (++server->frames > server->config->max_frames)
        return REFUSE(server, out, LEAT_AMQP_NOT_ALLOWED,
                      "more than %u frames before connection.open", server->config->max_frames);
    if (head->type == LEAT_AMQP_FRAME_HEARTBEAT && head->channel == 0 && head->size == 0 &&
        server->state != START_OK)
        return LEAT_AMQP_SERVER_MORE;
    if (head->type != LEAT_AMQP_FRAME_METHOD || head->channel != 0)
        return REFUSE(server, out, LEAT_AMQP_UNEXPECTED_FRAME,
                      "expected %s on channel 0, got a frame of type %u on channel %u",
                      leat_amqp_server_awaits(server), head->type, head->channel);
    leat_reader_init(&reader, payload, head->size);
    return take_method(server, &reader, out);
}

/* Takes one frame, or what there is of it. */
static enum leat_amqp_server_event take_piece(struct leat_amqp_server *server, const uint8_t *data,
                                              size_t len, size_t *out_taken,
                                              struct leat_writer *out)
{
    struct leat_amqp_frame_head head;
    const uint8_t *payload;

    enum leat_status status =
        leat_amqp_collect_feed(&server->collect, data, len, out_taken, &head, &payload);
    if (status == LEAT_EAGAIN)
        return LEAT_AMQP_SERVER_MORE;
    if (status == LEAT_ENOMEM)
        return LEAT_AMQP_SERVER_NOMEM;
    if (status == LEAT_ELIMIT)
        return REFUSE(
            server, out, LEAT_AMQP_FRAME_ERROR,
            "frame of %" PRIu64 " bytes before connection.open-ok, at most %" PRIu32 " are allowed",
            (uint64_t)head.size + LEAT_AMQP_FRAME_OVERHEAD, server->config->initial_frame_max);
    if (status != LEAT_OK)
        return REFUSE(server, out, LEAT_AMQP_FRAME_ERROR,
                      "frame of type %u on channel %u with %" PRIu32
                      " bytes has an unknown type or a wrong end octet",
                      head.type, head.channel, head.size);
    enum leat_amqp_server_event event = take_frame(server, &head, payload, out);
    leat_amqp_collect_clear(&server->collect);
    return event;
}

enum leat_amqp_server_event leat_amqp_server_feed(struct leat_amqp_server *server,
                                                  const uint8_t *data, size_t len,
                                                  size_t *out_taken, struct leat_writer *out)
{
    enum leat_amqp_server_event event = LEAT_AMQP_SERVER_MORE;
    size_t pos = 0;

    LEAT_ASSERT(server->state != DONE);
    while (pos < len && event == LEAT_AMQP_SERVER_MORE) {
        size_t taken = 0;

        if (server->state == HEADER)
            event = take_header(server, data + pos, len - pos, &taken, out);
        else
            event = take_piece(server, data + pos, len - pos, &taken, out);
        pos += taken;
    }
    if (event != LEAT_AMQP_SERVER_MORE)
        enter(server, DONE);
    *out_taken = pos;
    return event;
}
