/*
 * Tests of amqp/server.h: what a client may say before Open, in all cuts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/method.h"
#include "amqp/server.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/writer.h"
#include "wire.h"

static const struct leat_amqp_server_config config = {
    .product = "leat",
    .version = "0.1",
    .tune = {.channel_max = 2047, .frame_max = 131072, .heartbeat_s = 60},
    .initial_frame_max = 4096,
    .max_frames = 8,
};

struct outcome {
    enum leat_amqp_server_event event;
    struct wire out;
    size_t taken;
};

/* Feeds SERVER all of IN, or up to the first event. */
static void run(struct leat_amqp_server *server, const struct wire *in, int cut,
                struct outcome *outcome)
{
    uint32_t seed = (uint32_t)cut;

    *outcome = (struct outcome){.event = LEAT_AMQP_SERVER_MORE};
    leat_amqp_server_init(server, &config);
    while (outcome->taken < in->len && outcome->event == LEAT_AMQP_SERVER_MORE) {
        uint8_t answer[LEAT_AMQP_SERVER_OUT_MAX];
        size_t len = wire_next_cut(cut, in->len - outcome->taken, &seed), taken = 0;
        struct leat_writer writer;
        uint8_t *span = malloc(len);

        assert_non_null(span);
        memcpy(span, in->buf + outcome->taken, len);
        leat_writer_init(&writer, answer, sizeof(answer));
        outcome->event = leat_amqp_server_feed(server, span, len, &taken, &writer);
        assert_false(writer.failed);
        if (outcome->event == LEAT_AMQP_SERVER_MORE)
            assert_int_equal(taken, len);
        outcome->taken += taken;
        wire_add(&outcome->out, answer, writer.len);
        free(span);
    }
}

static void add_header(struct wire *in)
{
    wire_add(in, "AMQP\0\0\11\1", 8);
}

static void add_start_ok_as(struct wire *in, const char *mechanism)
{
    struct wire arguments = {0}, properties = {0};

    wire_text(&properties, "product", "test");
    wire_str32(&arguments, properties.buf, properties.len);
    wire_str8(&arguments, mechanism);
    wire_str32(&arguments, "\0guest\0secret", 13);
    wire_str8(&arguments, "en_US");
    wire_method(in, 0, LEAT_AMQP_CONNECTION_START_OK, &arguments);
    wire_free(&arguments);
    wire_free(&properties);
}

static void add_start_ok(struct wire *in)
{
    add_start_ok_as(in, "PLAIN");
}

static void add_tune_ok(struct wire *in, unsigned channel_max, uint32_t frame_max,
                        unsigned heartbeat_s)
{
    struct wire arguments = {0};

    wire_u16(&arguments, channel_max);
    wire_u32(&arguments, frame_max);
    wire_u16(&arguments, heartbeat_s);
    wire_method(in, 0, LEAT_AMQP_CONNECTION_TUNE_OK, &arguments);
    wire_free(&arguments);
}

static void add_open(struct wire *in, const char *vhost)
{
    struct wire arguments = {0};

    wire_str8(&arguments, vhost);
    wire_str8(&arguments, "");
    wire_u8(&arguments, 1);
    wire_method(in, 0, LEAT_AMQP_CONNECTION_OPEN, &arguments);
    wire_free(&arguments);
}

/* What the server says: Start, and Tune behind it if asked for. */
static void add_answers(struct wire *out, bool tune)
{
    static const char *const capabilities[] = {
        "publisher_confirms",           "exchange_exchange_bindings", "basic.nack",
        "consumer_cancel_notify",       "connection.blocked",         "consumer_priorities",
        "authentication_failure_close", "per_consumer_qos",           "direct_reply_to"};
    struct wire arguments = {0}, properties = {0}, table = {0};

    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        wire_field(&table, capabilities[i], 't', "\1", 1);
    wire_str8(&properties, "capabilities");
    wire_u8(&properties, 'F');
    wire_str32(&properties, table.buf, table.len);
    wire_text(&properties, "product", "leat");
    wire_text(&properties, "version", "0.1");
    wire_text(&properties, "platform", "Linux");
    wire_u16(&arguments, 9);
    wire_str32(&arguments, properties.buf, properties.len);
    wire_str32(&arguments, "PLAIN AMQPLAIN", 14);
    wire_str32(&arguments, "en_US", 5);
    wire_method(out, 0, LEAT_AMQP_CONNECTION_START, &arguments);
    if (tune) {
        arguments.len = 0;
        wire_u16(&arguments, 2047);
        wire_u32(&arguments, 131072);
        wire_u16(&arguments, 60);
        wire_method(out, 0, LEAT_AMQP_CONNECTION_TUNE, &arguments);
    }
    wire_free(&arguments);
    wire_free(&properties);
    wire_free(&table);
}

static void check_opens(const struct wire *in, size_t until)
{
    struct wire expected = {0};

    add_answers(&expected, true);
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_server server;
        struct outcome outcome;

        run(&server, in, cut, &outcome);
        assert_int_equal(outcome.event, LEAT_AMQP_SERVER_OPEN);
        assert_int_equal(outcome.taken, until);
        assert_true(wire_equal(&outcome.out, &expected));
        assert_true(leat_str_equal(server.login.vhost, leat_str_of("some/vhost")));
        assert_true(leat_str_equal(server.login.user, leat_str_of("guest")));
        assert_int_equal(server.login.tune.channel_max, 100);
        assert_int_equal(server.login.tune.frame_max, 4096);
        assert_int_equal(server.login.tune.heartbeat_s, 600);
        leat_amqp_server_fini(&server);
        wire_free(&outcome.out);
    }
    wire_free(&expected);
}

static void a_client_gets_as_far_as_open(void **state)
{
    struct wire in = {0};

    (void)state;
    add_header(&in);
    add_start_ok(&in);
    wire_frame(&in, 8, 0, NULL, 0);
    add_tune_ok(&in, 100, 4096, 600);
    wire_frame(&in, 8, 0, NULL, 0);
    add_open(&in, "some/vhost");
    size_t until = in.len;
    wire_method(&in, 1, LEAT_AMQP_METHOD(20, 10), NULL); /* sent ahead: not the server's */
    check_opens(&in, until);
    memcpy(in.buf, "AMQP\1\1\0\11", 8);
    check_opens(&in, until);
    wire_free(&in);
}

static void properties_of_a_broker_replace_its_own(void **state)
{
    struct leat_amqp_server_config as_broker = config;
    struct wire properties = {0}, in = {0};
    struct leat_amqp_server server;
    uint8_t answer[LEAT_AMQP_SERVER_OUT_MAX];
    struct leat_writer out;
    size_t taken = 0;

    (void)state;
    /* The largest that may be asked for: the answer still has to fit. */
    while (properties.len + 100 < LEAT_AMQP_SERVER_PROPERTIES_MAX)
        wire_text(&properties, "product", "SomeMQ, of a length that is no matter");
    as_broker.properties = wire_str(&properties);
    leat_amqp_server_init(&server, &as_broker);
    add_header(&in);
    leat_writer_init(&out, answer, sizeof(answer));
    assert_int_equal(leat_amqp_server_feed(&server, in.buf, in.len, &taken, &out),
                     LEAT_AMQP_SERVER_MORE);
    assert_false(out.failed);
    assert_non_null(memmem(answer, out.len, properties.buf, properties.len));
    assert_null(memmem(answer, out.len, "leat", 4));
    leat_amqp_server_fini(&server);
    wire_free(&in);
    wire_free(&properties);
}

static void it_tells_what_it_awaits(void **state)
{
    struct wire in = {0};
    struct leat_amqp_server server;
    struct outcome outcome;
    static const char *const awaited[] = {"the protocol header", "Start-Ok", "Tune-Ok", "Open",
                                          "nothing"};

    (void)state;
    for (int step = 0; step < 5; step++) {
        if (step == 1)
            add_header(&in);
        else if (step == 2)
            add_start_ok(&in);
        else if (step == 3)
            add_tune_ok(&in, 1, 131072, 0);
        else if (step == 4)
            add_open(&in, "");
        run(&server, &in, WIRE_WHOLE, &outcome);
        assert_string_equal(leat_amqp_server_awaits(&server), awaited[step]);
        leat_amqp_server_fini(&server);
        wire_free(&outcome.out);
    }
    wire_free(&in);
}

/* Checks that IN is refused with CODE and a text that has PART. */
static void check_refused(const struct wire *in, uint16_t code, const char *part)
{
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_server server;
        struct outcome outcome;
        struct wire close = {0};

        run(&server, in, cut, &outcome);
        assert_int_equal(outcome.event, LEAT_AMQP_SERVER_REFUSED);
        assert_int_equal(server.refusal_code, code);
        assert_non_null(strstr(server.refusal.text, part));
        assert_int_equal(strncmp(server.refusal.text, leat_amqp_reply_name(code),
                                 strlen(leat_amqp_reply_name(code))),
                         0);
        wire_add_close(&close, code, server.refusal.text);
        assert_true(outcome.out.len > close.len);
        assert_memory_equal(outcome.out.buf + outcome.out.len - close.len, close.buf, close.len);
        leat_amqp_server_fini(&server);
        wire_free(&outcome.out);
        wire_free(&close);
    }
}

static void tune_ok_must_keep_to_the_offer(void **state)
{
    static const struct {
        unsigned channel_max;
        uint32_t frame_max;
        const char *text;
    } cases[] = {
        {0, 131072, "channel_max = 0 (no limit) is higher than the maximum allowed value 2047"},
        {2048, 131072, "channel_max = 2048 is higher than the maximum allowed value 2047"},
        {2047, 0, "frame_max = 0 (no limit) is higher than the maximum allowed value 131072"},
        {2047, 131073, "frame_max = 131073 is higher"},
        {2047, 4095, "frame_max = 4095 is lower than the minimum allowed value 4096"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire in = {0};

        add_header(&in);
        add_start_ok(&in);
        add_tune_ok(&in, cases[i].channel_max, cases[i].frame_max, 60);
        add_open(&in, "/");
        check_refused(&in, 530, cases[i].text);
        wire_free(&in);
    }
}

static void other_mechanisms_are_refused(void **state)
{
    struct wire in = {0};

    (void)state;
    add_header(&in);
    add_start_ok_as(&in, "EXTERNAL");
    check_refused(&in, 403, "ACCESS_REFUSED - Login was refused");
    check_refused(&in, 403, "not \"EXTERNAL\"");
    wire_free(&in);
}

static void wrong_frames_are_refused(void **state)
{
    struct wire in = {0}, arguments = {0};

    (void)state;
    add_header(&in);
    const size_t start = in.len;
    wire_frame(&in, 8, 0, NULL, 0);
    check_refused(&in, 505, "expected Start-Ok on channel 0"); /* a heartbeat before Tune */
    in.len = start;
    wire_frame(&in, 3, 0, "x", 1);
    check_refused(&in, 505, "type 3 on channel 0");
    in.len = start;
    wire_method(&in, 1, LEAT_AMQP_CONNECTION_START_OK, NULL);
    check_refused(&in, 505, "type 1 on channel 1");
    in.len = start;
    wire_add(&in, "\1\0\0\0\0\17\371", 7); /* 4089 and 8 bytes */
    check_refused(&in, 501, "frame of 4097 bytes");
    in.len = start;
    wire_frame(&in, 4, 0, "x", 1);
    check_refused(&in, 501, "type 4");
    in.len = start;
    add_start_ok(&in);
    in.buf[in.len - 1] = 0;
    check_refused(&in, 501, "wrong end octet");
    in.len = start;
    wire_frame(&in, 1, 0, "\0\12\0", 3);
    check_refused(&in, 502, "less than 4 bytes");
    in.len = start;
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_START_OK, NULL);
    check_refused(&in, 502, "connection.start-ok");
    in.len = start;
    add_open(&in, "/");
    check_refused(&in, 503, "expected connection method Start-Ok, got connection.open (10,40)");
    in.len = start;
    wire_method(&in, 0, LEAT_AMQP_METHOD(77, 88), NULL);
    check_refused(&in, 503, "an unknown method (77,88)");
    in.len = start;
    add_start_ok(&in);
    const size_t tune = in.len;
    wire_u32(&arguments, 1);
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_TUNE_OK, &arguments);
    check_refused(&in, 502, "connection.tune-ok");
    in.len = tune;
    add_start_ok(&in);
    check_refused(&in, 503, "expected connection method Tune-Ok");
    in.len = tune;
    add_tune_ok(&in, 1, 4096, 0);
    const size_t open = in.len;
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_OPEN, &arguments);
    check_refused(&in, 502, "connection.open");
    in.len = open;
    wire_frame(&in, 8, 3, NULL, 0);
    check_refused(&in, 505, "type 8 on channel 3");
    in.len = open;
    for (int i = 0; i < 7; i++)
        wire_frame(&in, 8, 0, NULL, 0);
    check_refused(&in, 530, "more than 8 frames");
    wire_free(&in);
    wire_free(&arguments);
}

static void a_close_is_answered(void **state)
{
    struct wire in = {0}, expected = {0};

    (void)state;
    add_header(&in);
    add_start_ok(&in);
    wire_add_close(&in, 200, "changed my mind");
    size_t until = in.len;
    wire_u8(&in, 'x');
    add_answers(&expected, true);
    wire_method(&expected, 0, LEAT_AMQP_CONNECTION_CLOSE_OK, NULL);
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_server server;
        struct outcome outcome;

        run(&server, &in, cut, &outcome);
        assert_int_equal(outcome.event, LEAT_AMQP_SERVER_CLOSED);
        assert_int_equal(outcome.taken, until);
        assert_true(wire_equal(&outcome.out, &expected));
        leat_amqp_server_fini(&server);
        wire_free(&outcome.out);
    }
    wire_free(&in);
    wire_free(&expected);
}

static void foreign_protocols_are_named(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        size_t decides; /* how many bytes it takes to know */
        bool answered;
        const char *text;
    } cases[] = {
        {"AMQP\1\1\0\n", 8, 8, true, "AMQP 1 1 0 10"},
        {"AMQP\3\1\0\0", 8, 5, true, "AMQP 1.0"},
        {"AMQP\0\1\0\0", 8, 6, true, "AMQP 1.0"},
        {"AMQP\0\0\10\0", 8, 7, true, "AMQP 0 0 8 0"},
        {"AMQP\0\0\11\2", 8, 8, true, "AMQP 0 0 9 2"},
        {"AMQP\1\1\10\0", 8, 7, true, "AMQP 1 1 8 0"},
        {"AMQP\2", 5, 5, true, "another version of AMQP"},
        {"GET / HTTP/1.1\r\n", 16, 1, true, "HTTP on an AMQP port"},
        {"POST /x HTTP/1.1\r\n", 18, 1, true, "HTTP"},
        {"HEAD / HTTP/1.1\r\n", 17, 1, true, "HTTP"},
        {"PUT / HTTP/1.1\r\n", 16, 1, true, "HTTP"},
        {"PRI * HTTP/2.0\r\n", 16, 1, true, "HTTP"},
        {"PROXY TCP4 ", 11, 1, true, "PROXY protocol"},
        {"\r\n\r\n\0\r\nQUIT\n", 12, 1, true, "PROXY protocol"},
        {"\26\3\1\2\0\1\0\1", 8, 2, false, "TLS on a plain-text port; the client must use amqp://"},
        {"\26\4xxxxxx", 8, 2, true, "\"\\x16\\x04xxxxxx\""},
        {"hello\n", 6, 1, true, "\"hello\\x0a\""},
        {"AMQX", 4, 4, true, "\"AMQX\""},
        {"\0", 1, 1, true, "\"\\x00\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire in = {0};

        wire_add(&in, cases[i].bytes, cases[i].len);
        for (int cut = 0; cut < WIRE_CUTS; cut++) {
            struct leat_amqp_server server;
            struct outcome outcome;

            run(&server, &in, cut, &outcome);
            assert_int_equal(outcome.event, LEAT_AMQP_SERVER_FOREIGN);
            assert_int_equal(outcome.taken, cases[i].decides);
            assert_int_equal(outcome.out.len, cases[i].answered ? 8 : 0);
            if (cases[i].answered)
                assert_memory_equal(outcome.out.buf, "AMQP\0\0\11\1", 8);
            if (cut == WIRE_WHOLE)
                assert_non_null(strstr(server.refusal.text, cases[i].text));
            assert_true(server.refusal.text[0] != '\0');
            leat_amqp_server_fini(&server);
            wire_free(&outcome.out);
        }
        wire_free(&in);
    }
}

static void memory_may_be_short(void **state)
{
    struct wire in = {0};
    unsigned n = 0;
    enum leat_amqp_server_event event;

    (void)state;
    add_header(&in);
    add_start_ok(&in);
    add_tune_ok(&in, 100, 4096, 600);
    add_open(&in, "/");
    do {
        struct leat_amqp_server server;
        struct outcome outcome;

        leat_mem_fail_after(++n);
        run(&server, &in, WIRE_BYTES, &outcome);
        event = outcome.event;
        leat_amqp_server_fini(&server);
        wire_free(&outcome.out);
        assert_true(event == LEAT_AMQP_SERVER_NOMEM || event == LEAT_AMQP_SERVER_OPEN);
    } while (event == LEAT_AMQP_SERVER_NOMEM);
    leat_mem_fail_after(0);
    assert_int_equal(n, 7); /* three frames in pieces, the login's two, the vhost: all failed */
    wire_free(&in);
}

/* However IN is cut, the same comes of it. */
static void expect_equal_cuts(const struct wire *in)
{
    struct outcome first = {0};

    for (int cut = 0; cut < 6; cut++) {
        struct leat_amqp_server server;
        struct outcome outcome;

        run(&server, in, cut, &outcome);
        leat_amqp_server_fini(&server);
        if (cut == 0) {
            first = outcome;
            continue;
        }
        assert_int_equal(outcome.event, first.event);
        assert_int_equal(outcome.taken, first.taken);
        assert_true(wire_equal(&outcome.out, &first.out));
        wire_free(&outcome.out);
    }
    wire_free(&first.out);
}

static void noise_ends_equally_in_all_cuts(void **state)
{
    uint32_t seed = 17;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct wire in = {0};

        add_header(&in);
        add_start_ok(&in);
        add_tune_ok(&in, 100, 4096, 600);
        add_open(&in, "/");
        for (int i = 0; i < 2; i++)
            in.buf[8 + wire_random(&seed, (uint32_t)in.len - 8)] = (uint8_t)wire_random(&seed, 256);
        expect_equal_cuts(&in);
        wire_free(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_gets_as_far_as_open),
        cmocka_unit_test(properties_of_a_broker_replace_its_own),
        cmocka_unit_test(it_tells_what_it_awaits),
        cmocka_unit_test(tune_ok_must_keep_to_the_offer),
        cmocka_unit_test(other_mechanisms_are_refused),
        cmocka_unit_test(wrong_frames_are_refused),
        cmocka_unit_test(a_close_is_answered),
        cmocka_unit_test(foreign_protocols_are_named),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(noise_ends_equally_in_all_cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
