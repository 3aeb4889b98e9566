/*
 * Fuzzes amqp/server.h. Input: bits that choose the configuration, a way to cut, which allocation
 * fails, what the client sends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/server.h"
#include "amqp/table.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/reader.h"
#include "buf/writer.h"
#include "fuzz/fuzz.h"

struct outcome {
    enum leat_amqp_server_event event;
    struct wire out;
    size_t taken;
};

/* Feeds SERVER all of IN, or up to the first event. */
static void run(struct leat_amqp_server *server, const struct leat_amqp_server_config *config,
                struct leat_str in, int cut, struct outcome *outcome)
{
    uint32_t seed = (uint32_t)cut;

    *outcome = (struct outcome){.event = LEAT_AMQP_SERVER_MORE};
    leat_amqp_server_init(server, config);
    while (outcome->taken < in.len && outcome->event == LEAT_AMQP_SERVER_MORE) {
        uint8_t answer[LEAT_AMQP_SERVER_OUT_MAX];
        size_t len = wire_next_cut(cut, in.len - outcome->taken, &seed), taken = 0;
        uint8_t *span = fuzz_copy(in.ptr + outcome->taken, len);
        struct leat_writer writer;

        leat_writer_init(&writer, answer, sizeof(answer));
        outcome->event = leat_amqp_server_feed(server, span, len, &taken, &writer);
        free(span);
        LEAT_ASSERT(!writer.failed && taken <= len);
        LEAT_ASSERT(outcome->event != LEAT_AMQP_SERVER_MORE || taken == len);
        LEAT_ASSERT(server->frames <= config->max_frames + 1);
        outcome->taken += taken;
        wire_add(&outcome->out, answer, writer.len);
    }
}

static void check_open(const struct leat_amqp_server *server)
{
    const struct leat_amqp_tune *offer = &server->config->tune, *tune = &server->login.tune;

    LEAT_ASSERT(server->login.user.len > 0 && server->login.vhost.len <= 255);
    LEAT_ASSERT(leat_amqp_table_is_valid(server->login.client_properties));
    LEAT_ASSERT(tune->channel_max > 0 && tune->channel_max <= offer->channel_max);
    LEAT_ASSERT(tune->frame_max >= LEAT_AMQP_FRAME_MAX_MIN && tune->frame_max <= offer->frame_max);
}

/* The last that was sent is a Close that says why. */
static void check_refusal(const struct leat_amqp_server *server, const struct outcome *outcome)
{
    struct leat_str payload = fuzz_check_frames(outcome->out.buf, outcome->out.len);
    struct leat_amqp_close close;

    LEAT_ASSERT(payload.len > 4 && memcmp(payload.ptr, "\0\12\0\62", 4) == 0);
    LEAT_ASSERT(leat_amqp_close_parse((struct leat_str){payload.ptr + 4, payload.len - 4}, &close));
    LEAT_ASSERT(close.code == server->refusal_code);
    LEAT_ASSERT(leat_str_equal(close.text, leat_str_of(server->refusal.text)));
    LEAT_ASSERT(leat_str_starts(close.text, leat_str_of(leat_amqp_reply_name(close.code))));
    fuzz_check_error(LEAT_EPROTOCOL, &server->refusal);
}

/* What is no AMQP is answered with the header that is right, but TLS with nothing. */
static void check_foreign(const struct leat_amqp_server *server, struct leat_str in,
                          const struct outcome *outcome)
{
    static const struct leat_str hello = LEAT_STR_INIT("\x16\x03");
    struct leat_str header = {(const char *)leat_amqp_protocol, LEAT_AMQP_PROTOCOL_SIZE};

    fuzz_check_error(LEAT_EPROTOCOL, &server->refusal);
    if (leat_str_starts(in, hello))
        LEAT_ASSERT(outcome->out.len == 0);
    else
        LEAT_ASSERT(leat_str_equal(wire_str(&outcome->out), header));
}

static void check(const struct leat_amqp_server *server, struct leat_str in,
                  const struct outcome *outcome)
{
    LEAT_ASSERT(leat_amqp_server_awaits(server) != NULL);
    switch (outcome->event) {
    case LEAT_AMQP_SERVER_OPEN:
        check_open(server);
        break;
    case LEAT_AMQP_SERVER_REFUSED:
        check_refusal(server, outcome);
        break;
    case LEAT_AMQP_SERVER_FOREIGN:
        check_foreign(server, in, outcome);
        return;
    case LEAT_AMQP_SERVER_CLOSED:
    case LEAT_AMQP_SERVER_MORE:
        break;
    case LEAT_AMQP_SERVER_NOMEM:
        LEAT_ASSERT(false);
    }
    (void)fuzz_check_frames(outcome->out.buf, outcome->out.len);
}

static void check_equal(const struct leat_amqp_server *a, const struct outcome *a_outcome,
                        const struct leat_amqp_server *b, const struct outcome *b_outcome)
{
    LEAT_ASSERT(a_outcome->event == b_outcome->event && a_outcome->taken == b_outcome->taken);
    LEAT_ASSERT(wire_equal(&a_outcome->out, &b_outcome->out));
    LEAT_ASSERT(a->state == b->state && a->frames == b->frames);
    LEAT_ASSERT(leat_str_equal(a->login.user, b->login.user));
    LEAT_ASSERT(leat_str_equal(a->login.vhost, b->login.vhost));
    LEAT_ASSERT(leat_str_equal(a->login.response, b->login.response));
    /* What is foreign is named by what has come of it. */
    LEAT_ASSERT(a_outcome->event == LEAT_AMQP_SERVER_FOREIGN ||
                strcmp(a->refusal.text, b->refusal.text) == 0);
}

static struct leat_amqp_server_config configure(uint8_t bits)
{
    static const uint8_t properties[] = "\7productS\0\0\0\10RabbitMQ";
    struct leat_amqp_server_config config = {
        .product = "leat",
        .version = "0.1",
        .tune = {.channel_max = 2047, .frame_max = 131072, .heartbeat_s = 60},
        .initial_frame_max = bits & 1 ? 64 : 4096,
        .max_frames = 3 + (bits >> 4),
    };

    if (bits & 2)
        config.properties = (struct leat_str){(const char *)properties, sizeof(properties) - 1};
    if (bits & 4)
        config.tune = (struct leat_amqp_tune){.channel_max = 1, .frame_max = 4096};
    return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_reader reader;
    struct leat_amqp_server server, other;
    struct outcome whole, outcome;

    leat_reader_init(&reader, data, size);
    struct leat_amqp_server_config config = configure(leat_reader_u8(&reader));
    uint8_t chosen = leat_reader_u8(&reader);
    unsigned fails = 1 + leat_reader_u8(&reader) % 8u;
    struct leat_str in = leat_reader_bytes(&reader, leat_reader_left(&reader));
    run(&server, &config, in, WIRE_WHOLE, &whole);
    check(&server, in, &whole);
    for (int i = 1; i < FUZZ_CUTS; i++) {
        run(&other, &config, in, fuzz_cut(i, chosen), &outcome);
        check(&other, in, &outcome);
        check_equal(&server, &whole, &other, &outcome);
        leat_amqp_server_fini(&other);
        wire_free(&outcome.out);
    }
    leat_mem_fail_after(fails);
    run(&other, &config, in, fuzz_cut(2, chosen), &outcome);
    leat_mem_fail_after(0);
    LEAT_ASSERT(outcome.event == LEAT_AMQP_SERVER_NOMEM || outcome.event == whole.event);
    leat_amqp_server_fini(&other);
    wire_free(&outcome.out);
    leat_amqp_server_fini(&server);
    wire_free(&whole.out);
    return 0;
}
