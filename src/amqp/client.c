/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/client.h"

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
 *  START --Start/Start-Ok--> TUNE --Tune/Tune-Ok, Open--> OPEN_OK --Open-Ok--> DONE
 *
 * Every state goes to DONE on a Close and on whatever can't be answered.
 */
enum state {
    START,
    TUNE,
    OPEN_OK,
    DONE,
};

/* Brokers are strangers too: what one may send before Open-Ok. */
#define FRAME_MAX (128u * 1024)
#define FRAMES_MAX 64u

#define AUTH_FAILURE_CLOSE "authentication_failure_close"

static void enter(struct leat_amqp_client *client, enum state state)
{
    LEAT_ASSERT((int)state == client->state + 1 || state == DONE);
    client->state = (int)state;
}

void leat_amqp_client_init(struct leat_amqp_client *client,
                           const struct leat_amqp_client_config *config)
{
    *client = (struct leat_amqp_client){
        .config = config,
        .state = START,
        .collect = {.max = FRAME_MAX},
    };
}

void leat_amqp_client_fini(struct leat_amqp_client *client)
{
    leat_amqp_collect_clear(&client->collect);
}

void leat_amqp_client_begin(struct leat_amqp_client *client, struct leat_writer *out)
{
    LEAT_ASSERT(client->state == START);
    leat_writer_bytes(out,
                      (struct leat_str){(const char *)leat_amqp_protocol, LEAT_AMQP_PROTOCOL_SIZE});
}

const char *leat_amqp_client_awaits(const struct leat_amqp_client *client)
{
    switch ((enum state)client->state) {
    case START:
        return "Start";
    case TUNE:
        return "Tune";
    case OPEN_OK:
        return "Open-Ok";
    case DONE:
        return "nothing";
    }
    return "nothing";
}

#define FAIL(client, ...)                                                                          \
    ((void)leat_error_set(&(client)->failure, LEAT_EPROTOCOL, 0, __VA_ARGS__),                     \
     LEAT_AMQP_CLIENT_FAILED)

/* Writes the capabilities in ENTRIES with authentication_failure_close set. */
static void write_capabilities(struct leat_writer *out, struct leat_str entries)
{
    const struct leat_str key = LEAT_STR_INIT(AUTH_FAILURE_CLOSE);
    struct leat_reader reader;
    struct leat_amqp_field field;
    bool is_written = false;

    leat_writer_str8(out, leat_str_of("capabilities"));
    leat_writer_u8(out, 'F');
    size_t table = leat_writer_begin32(out);
    leat_reader_init(&reader, entries.ptr, entries.len);
    while (leat_amqp_table_next(&reader, &field)) {
        if (!leat_str_equal(field.key, key)) {
            leat_writer_bytes(out, field.whole);
        } else if (!is_written) {
            leat_amqp_write_field_bool(out, key, true);
            is_written = true;
        }
    }
    if (!is_written)
        leat_amqp_write_field_bool(out, key, true);
    leat_writer_end32(out, table);
}

/* A client can't claim to be somebody else in the properties that operators trust. */
static bool is_reserved(struct leat_str key)
{
    return leat_str_starts(key, leat_str_of("leat_")) ||
           leat_str_starts(key, leat_str_of("amqpprox_"));
}

static void write_properties(const struct leat_amqp_client *client, struct leat_writer *out)
{
    const struct leat_str properties = client->config->login->client_properties;
    struct leat_str peer = client->config->peer;
    struct leat_reader reader;
    struct leat_amqp_field field;
    bool is_capable = false;

    size_t table = leat_writer_begin32(out);
    leat_reader_init(&reader, properties.ptr, properties.len);
    while (leat_amqp_table_next(&reader, &field)) {
        if (is_reserved(field.key))
            continue;
        if (!leat_str_equal(field.key, leat_str_of("capabilities"))) {
            leat_writer_bytes(out, field.whole);
        } else if (!is_capable) {
            /* One that is no table means nothing to a broker, and would hide ours. */
            write_capabilities(out, field.type == 'F' ? leat_amqp_field_contents(&field)
                                                      : (struct leat_str){0});
            is_capable = true;
        }
    }
    if (!is_capable)
        write_capabilities(out, (struct leat_str){0});
    if (peer.len > UINT8_MAX)
        peer.len = UINT8_MAX;
    leat_amqp_write_field_text(out, leat_str_of("leat_client"), peer);
    leat_writer_end32(out, table);
}

static void write_start_ok(const struct leat_amqp_client *client, struct leat_writer *out)
{
    const struct leat_amqp_login *login = client->config->login;
    size_t frame = leat_amqp_begin_method(out, LEAT_AMQP_CONNECTION_START_OK);

    write_properties(client, out);
    leat_writer_str8(out, login->mechanism);
    leat_writer_str32(out, login->response);
    leat_writer_str8(out, login->locale);
    leat_amqp_end_method(out, frame);
}

static void write_tune_ok(const struct leat_amqp_tune *tune, struct leat_writer *out)
{
    size_t frame = leat_amqp_begin_method(out, LEAT_AMQP_CONNECTION_TUNE_OK);

    leat_writer_u16(out, tune->channel_max);
    leat_writer_u32(out, tune->frame_max);
    leat_writer_u16(out, tune->heartbeat_s);
    leat_amqp_end_method(out, frame);
}

static void write_open(const struct leat_amqp_client *client, struct leat_writer *out)
{
    size_t frame = leat_amqp_begin_method(out, LEAT_AMQP_CONNECTION_OPEN);

    leat_writer_str8(out, client->config->login->vhost);
    leat_writer_str8(out, leat_str_of("")); /* reserved */
    leat_writer_u8(out, 0);                 /* reserved */
    leat_amqp_end_method(out, frame);
}

/* Whether WORD is among the words of LIST, which spaces separate. */
static bool has_word(struct leat_str list, struct leat_str word)
{
    while (list.len > 0) {
        const char *space = memchr(list.ptr, ' ', list.len);
        size_t len = space != NULL ? (size_t)(space - list.ptr) : list.len;

        if (leat_str_equal((struct leat_str){list.ptr, len}, word))
            return true;
        if (space != NULL)
            len++;
        list.ptr += len;
        list.len -= len;
    }
    return false;
}

static enum leat_amqp_client_event fail_mechanism(struct leat_amqp_client *client,
                                                  struct leat_str offered)
{
    struct leat_text text;
    char quoted[120];

    leat_text_init(&text, quoted, sizeof(quoted));
    leat_text_add_quoted(&text, offered);
    /* The login has been judged: its mechanism is a plain word. */
    (void)leat_error_set(
        &client->failure, LEAT_EUSAGE, 0,
        "the broker does not offer the client's authentication mechanism %.*s; it offers %s",
        (int)client->config->login->mechanism.len, client->config->login->mechanism.ptr, quoted);
    return LEAT_AMQP_CLIENT_UNFIT;
}

static enum leat_amqp_client_event take_start(struct leat_amqp_client *client,
                                              struct leat_reader *reader, struct leat_writer *out)
{
    struct leat_amqp_field field;

    unsigned major = leat_reader_u8(reader);
    unsigned minor = leat_reader_u8(reader);
    struct leat_str properties = leat_reader_str32(reader);
    struct leat_str mechanisms = leat_reader_str32(reader);
    (void)leat_reader_str32(reader); /* locales */
    if (reader->failed || leat_reader_left(reader) > 0 || !leat_amqp_table_is_valid(properties))
        return FAIL(client, "the broker sent a malformed connection.start");
    if (major != 0 || minor != 9)
        return FAIL(client, "the broker speaks AMQP %u-%u, not 0-9-1", major, minor);
    if (!has_word(mechanisms, client->config->login->mechanism))
        return fail_mechanism(client, mechanisms);
    if (leat_amqp_table_find(properties, leat_str_of("capabilities"), &field) && field.type == 'F')
        client->tells_auth_failure = leat_amqp_table_is_true(leat_amqp_field_contents(&field),
                                                             leat_str_of(AUTH_FAILURE_CLOSE));
    client->properties = properties;
    write_start_ok(client, out);
    enter(client, TUNE);
    return LEAT_AMQP_CLIENT_STARTED;
}

/* The lesser of two values of which 0 means no limit (frame_max, channel_max), or off
 * (heartbeat), and so gives way to the other. */
static uint32_t lesser(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

/* The frame_max to agree on with a broker that offers OFFERED, for a client that chose CHOSEN.
 * Never below what a new broker accepts, if it offers that: the relay splits for the client. */
static uint32_t agree_frame_max(uint32_t offered, uint32_t chosen)
{
    if (chosen != 0 && chosen < LEAT_AMQP_CLIENT_FRAME_MAX_MIN)
        chosen = LEAT_AMQP_CLIENT_FRAME_MAX_MIN;
    return lesser(offered, chosen);
}

static enum leat_amqp_client_event take_tune(struct leat_amqp_client *client,
                                             struct leat_reader *reader, struct leat_writer *out)
{
    const struct leat_amqp_tune *chosen = &client->config->login->tune;
    struct leat_amqp_tune *offered = &client->offered;

    offered->channel_max = leat_reader_u16(reader);
    offered->frame_max = leat_reader_u32(reader);
    offered->heartbeat_s = leat_reader_u16(reader);
    if (reader->failed || leat_reader_left(reader) > 0)
        return FAIL(client, "the broker sent a malformed connection.tune");
    if (offered->frame_max != 0 && offered->frame_max < LEAT_AMQP_FRAME_MAX_MIN)
        return FAIL(client, "the broker offers frame_max %" PRIu32 "; AMQP 0-9-1 has at least %u",
                    offered->frame_max, LEAT_AMQP_FRAME_MAX_MIN);
    client->tune.channel_max = (uint16_t)lesser(offered->channel_max, chosen->channel_max);
    client->tune.frame_max = agree_frame_max(offered->frame_max, chosen->frame_max);
    client->tune.heartbeat_s = (uint16_t)lesser(offered->heartbeat_s, chosen->heartbeat_s);
    write_tune_ok(&client->tune, out);
    write_open(client, out);
    enter(client, OPEN_OK);
    return LEAT_AMQP_CLIENT_MORE;
}

static enum leat_amqp_client_event take_close(struct leat_amqp_client *client,
                                              struct leat_reader *reader, struct leat_writer *out)
{
    struct leat_amqp_close close;
    size_t left = leat_reader_left(reader);

    if (!leat_amqp_close_parse(leat_reader_bytes(reader, left), &close))
        return FAIL(client, "the broker sent a malformed connection.close");
    client->close_code = close.code;
    client->close_text_len = close.text.len;
    if (close.text.len > 0)
        memcpy(client->close_text, close.text.ptr, close.text.len);
    client->close_text[close.text.len] = '\0';
    leat_amqp_write_close_ok(out);
    return LEAT_AMQP_CLIENT_REFUSED;
}

static enum leat_amqp_client_event take_method(struct leat_amqp_client *client,
                                               struct leat_reader *reader, struct leat_writer *out)
{
    uint32_t method = leat_reader_u32(reader);

    if (reader->failed)
        return FAIL(client, "the broker sent a method frame of less than 4 bytes");
    if (method == LEAT_AMQP_CONNECTION_CLOSE)
        return take_close(client, reader, out);
    switch ((enum state)client->state) {
    case START:
        if (method == LEAT_AMQP_CONNECTION_START)
            return take_start(client, reader, out);
        break;
    case TUNE:
        if (method == LEAT_AMQP_CONNECTION_TUNE)
            return take_tune(client, reader, out);
        if (method == LEAT_AMQP_CONNECTION_SECURE)
            return LEAT_AMQP_CLIENT_SECURE;
        break;
    case OPEN_OK:
        if (method == LEAT_AMQP_CONNECTION_OPEN_OK)
            return LEAT_AMQP_CLIENT_OPEN;
        break;
    case DONE:
        break;
    }
    const char *name = leat_amqp_method_name(method);
    return FAIL(client, "the broker sent %s (%" PRIu32 ",%" PRIu32 ") where %s was due",
                name != NULL ? name : "an unknown method", method >> 16, method & UINT16_MAX,
                leat_amqp_client_awaits(client));
}

static enum leat_amqp_client_event take_frame(struct leat_amqp_client *client,
                                              const struct leat_amqp_frame_head *head,
                                              const uint8_t *payload, struct leat_writer *out)
{
    struct leat_reader reader;

    if (++client->frames > FRAMES_MAX)
        return FAIL(client, "the broker sent more than %u frames before connection.open-ok",
                    FRAMES_MAX);
    if (head->type == LEAT_AMQP_FRAME_HEARTBEAT && head->channel == 0 && head->size == 0)
        return LEAT_AMQP_CLIENT_MORE;
    if (head->type != LEAT_AMQP_FRAME_METHOD || head->channel != 0)
        return FAIL(client, "the broker sent a frame of type %u on channel %u where %s was due",
                    head->type, head->channel, leat_amqp_client_awaits(client));
    leat_reader_init(&reader, payload, head->size);
    return take_method(client, &reader, out);
}

/* Says what the bytes are that were to be the frame with HEAD, which is not to be taken. */
static enum leat_amqp_client_event fail_frame(struct leat_amqp_client *client,
                                              const struct leat_amqp_frame_head *head)
{
    bool is_first = client->state == START && client->frames == 0;

    /* The head of a frame, in other eyes: "AMQP" and three bytes of the version. */
    if (is_first && head->type == 'A' && head->channel == ('M' << 8 | 'Q') &&
        head->size >> 24 == 'P')
        return FAIL(client,
                    "the broker speaks another version of AMQP than 0-9-1: it answered with the "
                    "protocol header AMQP %" PRIu32 " %" PRIu32 " %" PRIu32,
                    head->size >> 16 & UINT8_MAX, head->size >> 8 & UINT8_MAX,
                    head->size & UINT8_MAX);
    /* A TLS record that holds an alert: type 21, version 3.x (RFC 8446, 5.1). */
    if (is_first && head->type == 0x15 && head->channel >> 8 == 0x03)
        return FAIL(client, "the broker speaks TLS; use amqps:// for this backend");
    if (is_first && head->type == 'H' && head->channel == ('T' << 8 | 'T') &&
        head->size >> 24 == 'P')
        return FAIL(client, "this is no AMQP broker: it speaks HTTP");
    return FAIL(client,
                "the broker sent a frame of type %u on channel %u with %" PRIu32
                " bytes where %s was due: unknown type, wrong end octet or more than %u bytes",
                head->type, head->channel, head->size, leat_amqp_client_awaits(client), FRAME_MAX);
}

/* Takes one frame, or what there is of it. */
static enum leat_amqp_client_event take_piece(struct leat_amqp_client *client, const uint8_t *data,
                                              size_t len, size_t *out_taken,
                                              struct leat_writer *out)
{
    struct leat_amqp_frame_head head;
    const uint8_t *payload;

    enum leat_status status =
        leat_amqp_collect_feed(&client->collect, data, len, out_taken, &head, &payload);
    if (status == LEAT_EAGAIN)
        return LEAT_AMQP_CLIENT_MORE;
    if (status == LEAT_ENOMEM)
        return LEAT_AMQP_CLIENT_NOMEM;
    if (status != LEAT_OK)
        return fail_frame(client, &head);
    return take_frame(client, &head, payload, out);
}

enum leat_amqp_client_event leat_amqp_client_feed(struct leat_amqp_client *client,
                                                  const uint8_t *data, size_t len,
                                                  size_t *out_taken, struct leat_writer *out)
{
    enum leat_amqp_client_event event = LEAT_AMQP_CLIENT_MORE;
    size_t pos = 0;

    LEAT_ASSERT(client->state != DONE);
    while (pos < len && event == LEAT_AMQP_CLIENT_MORE) {
        size_t taken = 0;

        event = take_piece(client, data + pos, len - pos, &taken, out);
        pos += taken;
    }
    if (event != LEAT_AMQP_CLIENT_MORE && event != LEAT_AMQP_CLIENT_STARTED)
        enter(client, DONE);
    *out_taken = pos;
    return event;
}
