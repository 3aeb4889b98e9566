/*
 * Fuzzes amqp/client.h. Input: a way to cut, which allocation fails, the client's Tune-Ok, the
 * length of a Start-Ok's arguments (2 bytes) and these, what the broker sends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/client.h"
#include "amqp/method.h"
#include "amqp/table.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/reader.h"
#include "buf/writer.h"
#include "fuzz/fuzz.h"

static const struct leat_str peer = LEAT_STR_INIT("192.0.2.1:4711 TLS");
static const struct leat_str auth_failure = LEAT_STR_INIT("authentication_failure_close");

struct outcome {
    enum leat_amqp_client_event event;
    struct wire out;
    size_t taken;
    unsigned started; /* how often STARTED came */
};

/* Feeds one span until it is taken or an event ends the run. */
static void feed(struct leat_amqp_client *client, const uint8_t *span, size_t len,
                 struct outcome *outcome)
{
    size_t cap = LEAT_AMQP_CLIENT_OUT_MAX(client->config->login->payload_len);
    uint8_t *answer = malloc(cap);
    struct leat_writer writer;
    bool goes_on = true;

    LEAT_ASSERT(answer != NULL);
    for (size_t pos = 0; pos < len && goes_on;) {
        size_t taken = 0;

        leat_writer_init(&writer, answer, cap);
        outcome->event = leat_amqp_client_feed(client, span + pos, len - pos, &taken, &writer);
        LEAT_ASSERT(!writer.failed && taken <= len - pos);
        pos += taken;
        outcome->taken += taken;
        wire_add(&outcome->out, answer, writer.len);
        LEAT_ASSERT(outcome->event != LEAT_AMQP_CLIENT_MORE || pos == len);
        if (outcome->event == LEAT_AMQP_CLIENT_STARTED) {
            LEAT_ASSERT(leat_amqp_table_is_valid(client->properties));
            outcome->started++;
        }
        goes_on = outcome->event == LEAT_AMQP_CLIENT_STARTED;
    }
    free(answer);
}

static bool is_over(enum leat_amqp_client_event event)
{
    return event != LEAT_AMQP_CLIENT_MORE && event != LEAT_AMQP_CLIENT_STARTED;
}

static void run(struct leat_amqp_client *client, const struct leat_amqp_client_config *config,
                struct leat_str in, int cut, struct outcome *outcome)
{
    uint32_t seed = (uint32_t)cut;

    *outcome = (struct outcome){.event = LEAT_AMQP_CLIENT_MORE};
    leat_amqp_client_init(client, config);
    for (size_t pos = 0; pos < in.len && !is_over(outcome->event);) {
        size_t len = wire_next_cut(cut, in.len - pos, &seed);
        uint8_t *span = fuzz_copy(in.ptr + pos, len);

        feed(client, span, len, outcome);
        free(span);
        pos += len;
    }
    if (outcome->event == LEAT_AMQP_CLIENT_STARTED)
        outcome->event = LEAT_AMQP_CLIENT_MORE; /* it came with the last of the input */
}

static bool is_reserved(struct leat_str key)
{
    return leat_str_starts(key, leat_str_of("leat_")) ||
           leat_str_starts(key, leat_str_of("amqpprox_"));
}

/* The next entry that is repeated byte for byte. */
static bool next_repeated(struct leat_reader *reader, struct leat_amqp_field *out)
{
    while (leat_amqp_table_next(reader, out)) {
        if (!is_reserved(out->key) && !leat_str_equal(out->key, leat_str_of("capabilities")))
            return true;
    }
    return false;
}

/* What the broker is told is what the client has said, but for what leat adds and withholds. */
static void check_properties(struct leat_str said, struct leat_str told)
{
    struct leat_amqp_field theirs, ours;
    struct leat_reader said_reader, told_reader;
    unsigned reserved = 0, capabilities = 0;

    LEAT_ASSERT(leat_amqp_table_is_valid(told));
    LEAT_ASSERT(leat_amqp_table_find(told, leat_str_of("leat_client"), &ours));
    LEAT_ASSERT(leat_str_equal(leat_amqp_field_contents(&ours), peer));
    LEAT_ASSERT(leat_amqp_table_find(told, leat_str_of("capabilities"), &ours));
    LEAT_ASSERT(ours.type == 'F');
    LEAT_ASSERT(leat_amqp_table_is_true(leat_amqp_field_contents(&ours), auth_failure));
    leat_reader_init(&told_reader, told.ptr, told.len);
    while (leat_amqp_table_next(&told_reader, &ours)) {
        reserved += is_reserved(ours.key);
        capabilities += leat_str_equal(ours.key, leat_str_of("capabilities"));
    }
    LEAT_ASSERT(reserved == 1 && capabilities == 1);
    leat_reader_init(&said_reader, said.ptr, said.len);
    leat_reader_init(&told_reader, told.ptr, told.len);
    while (next_repeated(&said_reader, &theirs)) {
        LEAT_ASSERT(next_repeated(&told_reader, &ours));
        LEAT_ASSERT(leat_str_equal(theirs.whole, ours.whole));
    }
    LEAT_ASSERT(!next_repeated(&told_reader, &ours));
}

/* The Start-Ok with which OUT begins. */
static void check_start_ok(const struct leat_amqp_login *login, const struct wire *out)
{
    struct leat_reader reader;

    leat_reader_init(&reader, out->buf, out->len);
    (void)leat_reader_bytes(&reader, 3);
    struct leat_str payload = leat_reader_str32(&reader);
    leat_reader_init(&reader, payload.ptr, payload.len);
    LEAT_ASSERT(leat_reader_u32(&reader) == LEAT_AMQP_CONNECTION_START_OK);
    check_properties(login->client_properties, leat_reader_str32(&reader));
    LEAT_ASSERT(leat_str_equal(leat_reader_str8(&reader), login->mechanism));
    LEAT_ASSERT(leat_str_equal(leat_reader_str32(&reader), login->response));
    LEAT_ASSERT(leat_str_equal(leat_reader_str8(&reader), login->locale));
    LEAT_ASSERT(!reader.failed && leat_reader_left(&reader) == 0);
}

/* A value is not above what either side has said, 0 being no limit. */
static void check_least(uint32_t agreed, uint32_t a, uint32_t b)
{
    LEAT_ASSERT(agreed == a || agreed == b);
    LEAT_ASSERT(a == 0 || (agreed != 0 && agreed <= a));
    LEAT_ASSERT(b == 0 || (agreed != 0 && agreed <= b));
}

static void check_tune(const struct leat_amqp_client *client)
{
    const struct leat_amqp_tune *chosen = &client->config->login->tune, *tune = &client->tune;
    uint32_t frame_max = chosen->frame_max;

    if (frame_max != 0 && frame_max < LEAT_AMQP_CLIENT_FRAME_MAX_MIN)
        frame_max = LEAT_AMQP_CLIENT_FRAME_MAX_MIN;
    check_least(tune->channel_max, chosen->channel_max, client->offered.channel_max);
    check_least(tune->frame_max, frame_max, client->offered.frame_max);
    check_least(tune->heartbeat_s, chosen->heartbeat_s, client->offered.heartbeat_s);
}

static void check(const struct leat_amqp_client *client, const struct outcome *outcome)
{
    LEAT_ASSERT(leat_amqp_client_awaits(client) != NULL);
    LEAT_ASSERT(outcome->event != LEAT_AMQP_CLIENT_NOMEM && outcome->started <= 1);
    (void)fuzz_check_frames(outcome->out.buf, outcome->out.len);
    if (outcome->started > 0)
        check_start_ok(client->config->login, &outcome->out);
    if (outcome->event == LEAT_AMQP_CLIENT_OPEN)
        check_tune(client);
    else if (outcome->event == LEAT_AMQP_CLIENT_FAILED)
        fuzz_check_error(LEAT_EPROTOCOL, &client->failure);
    else if (outcome->event == LEAT_AMQP_CLIENT_UNFIT)
        fuzz_check_error(LEAT_EUSAGE, &client->failure);
    LEAT_ASSERT(client->close_text_len <= 255 && client->close_text[client->close_text_len] == 0);
}

static void check_equal(const struct leat_amqp_client *a, const struct outcome *a_outcome,
                        const struct leat_amqp_client *b, const struct outcome *b_outcome)
{
    LEAT_ASSERT(a_outcome->event == b_outcome->event && a_outcome->taken == b_outcome->taken);
    LEAT_ASSERT(a_outcome->started == b_outcome->started);
    LEAT_ASSERT(wire_equal(&a_outcome->out, &b_outcome->out));
    LEAT_ASSERT(a->tells_auth_failure == b->tells_auth_failure);
    LEAT_ASSERT(a->close_code == b->close_code && a->close_text_len == b->close_text_len);
    LEAT_ASSERT(memcmp(a->close_text, b->close_text, sizeof(a->close_text)) == 0);
    LEAT_ASSERT(strcmp(a->failure.text, b->failure.text) == 0);
}

/* Makes the login of ARGUMENTS or, if that can't be one, of another. */
static void log_in(struct leat_amqp_login *login, struct leat_str arguments)
{
    static const uint8_t fallback[] = "\0\0\0\0\5PLAIN\0\0\0\15\0guest\0secret\5en_US";
    struct leat_str other = {(const char *)fallback, sizeof(fallback) - 1};

    if (leat_amqp_login_from_start_ok(login, arguments) != LEAT_OK)
        LEAT_ASSERT(leat_amqp_login_from_start_ok(login, other) == LEAT_OK);
    LEAT_ASSERT(leat_amqp_login_set_vhost(login, leat_str_of("a vhost")) == LEAT_OK);
}

static void run_all(const struct leat_amqp_client_config *config, struct leat_str in,
                    uint8_t chosen, unsigned fails)
{
    struct leat_amqp_client client, other;
    struct outcome whole, outcome;

    run(&client, config, in, WIRE_WHOLE, &whole);
    check(&client, &whole);
    for (int i = 1; i < FUZZ_CUTS; i++) {
        run(&other, config, in, fuzz_cut(i, chosen), &outcome);
        check(&other, &outcome);
        check_equal(&client, &whole, &other, &outcome);
        leat_amqp_client_fini(&other);
        wire_free(&outcome.out);
    }
    leat_mem_fail_after(fails);
    run(&other, config, in, fuzz_cut(2, chosen), &outcome);
    leat_mem_fail_after(0);
    LEAT_ASSERT(outcome.event == LEAT_AMQP_CLIENT_NOMEM || outcome.event == whole.event);
    leat_amqp_client_fini(&other);
    wire_free(&outcome.out);
    leat_amqp_client_fini(&client);
    wire_free(&whole.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_reader reader;
    struct leat_amqp_login login = {0};
    struct leat_amqp_client_config config = {.login = &login, .peer = peer};
    struct leat_amqp_tune tune;

    leat_reader_init(&reader, data, size);
    uint8_t chosen = leat_reader_u8(&reader);
    unsigned fails = 1 + leat_reader_u8(&reader) % 8u;
    tune.channel_max = leat_reader_u16(&reader);
    tune.frame_max = leat_reader_u32(&reader);
    tune.heartbeat_s = leat_reader_u16(&reader);
    log_in(&login, leat_reader_bytes(&reader, leat_reader_u16(&reader)));
    login.tune = tune;
    run_all(&config, leat_reader_bytes(&reader, leat_reader_left(&reader)), chosen, fails);
    leat_amqp_login_fini(&login);
    return 0;
}
