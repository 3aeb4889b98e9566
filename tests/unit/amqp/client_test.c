/* Tests of amqp/client.h: what a broker may say before Open-Ok, in all cuts.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "amqp/client.h"
#include "amqp/method.h"
#include "amqp/table.h"
#include "base/mem.h"
#include "base/str.h"
#include "buf/writer.h"
#include "wire.h"

static struct leat_amqp_login login;
static const struct leat_amqp_client_config config = {
    .login = &login,
    .peer = LEAT_STR_INIT("192.0.2.1:4711 TLS"),
};

/* Makes the login of a client with PROPERTIES. */
static void log_in(const struct wire *properties)
{
    struct wire arguments = {0};

    leat_amqp_login_fini(&login);
    wire_str32(&arguments, properties->buf, properties->len);
    wire_str8(&arguments, "PLAIN");
    wire_str32(&arguments, "\0guest\0secret", 13);
    wire_str8(&arguments, "de_DE");
    assert_int_equal(leat_amqp_login_from_start_ok(&login, wire_str(&arguments)), LEAT_OK);
    assert_int_equal(leat_amqp_login_set_vhost(&login, leat_str_of("some/vhost")), LEAT_OK);
    login.tune = (struct leat_amqp_tune){.channel_max = 100, .frame_max = 8192, .heartbeat_s = 30};
    wire_free(&arguments);
}

static int setup(void **state)
{
    (void)state;
    log_in(&(struct wire){0});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    leat_amqp_login_fini(&login);
    return 0;
}

struct outcome {
    enum leat_amqp_client_event event;
    struct wire out;
    size_t taken;
    unsigned started; /* how often STARTED came */
    bool is_rabbit;   /* and the broker's properties were there to be read */
};

static void assert_tune_equal(const struct leat_amqp_tune *a, const struct leat_amqp_tune *b)
{
    assert_int_equal(a->channel_max, b->channel_max);
    assert_int_equal(a->frame_max, b->frame_max);
    assert_int_equal(a->heartbeat_s, b->heartbeat_s);
}

static void run(struct leat_amqp_client *client, const struct wire *in, int cut,
                struct outcome *outcome)
{
    uint32_t seed = (uint32_t)cut;
    uint8_t answer[LEAT_AMQP_CLIENT_OUT_MAX(4096)];
    struct leat_writer writer;
    bool goes_on = true;

    *outcome = (struct outcome){.event = LEAT_AMQP_CLIENT_MORE};
    leat_amqp_client_init(client, &config);
    leat_writer_init(&writer, answer, sizeof(answer));
    leat_amqp_client_begin(client, &writer);
    assert_int_equal(writer.len, 8);
    assert_memory_equal(answer, "AMQP\0\0\11\1", 8);
    while (outcome->taken < in->len && goes_on) {
        size_t len = wire_next_cut(cut, in->len - outcome->taken, &seed), taken = 0;
        uint8_t *span = malloc(len);

        assert_non_null(span);
        memcpy(span, in->buf + outcome->taken, len);
        leat_writer_init(&writer, answer, LEAT_AMQP_CLIENT_OUT_MAX(login.payload_len));
        outcome->event = leat_amqp_client_feed(client, span, len, &taken, &writer);
        assert_false(writer.failed);
        if (outcome->event == LEAT_AMQP_CLIENT_MORE)
            assert_int_equal(taken, len);
        outcome->taken += taken;
        if (outcome->event == LEAT_AMQP_CLIENT_STARTED) {
            struct leat_amqp_field product;
            outcome->started++;
            outcome->is_rabbit =
                leat_amqp_table_find(client->properties, leat_str_of("product"), &product) &&
                leat_str_equal(leat_amqp_field_contents(&product), leat_str_of("RabbitMQ"));
        }
        goes_on =
            outcome->event == LEAT_AMQP_CLIENT_MORE || outcome->event == LEAT_AMQP_CLIENT_STARTED;
        wire_add(&outcome->out, answer, writer.len);
        free(span);
    }
}

static void finish(struct leat_amqp_client *client, struct outcome *outcome)
{
    leat_amqp_client_fini(client);
    wire_free(&outcome->out);
}

static void add_start_with(struct wire *in, const char *mechanisms, bool tells)
{
    struct wire arguments = {0}, properties = {0}, capabilities = {0};

    wire_field(&capabilities, "basic.nack", 't', "\1", 1);
    wire_field(&capabilities, "authentication_failure_close", 't', tells ? "\1" : "\0", 1);
    wire_text(&properties, "product", "RabbitMQ");
    wire_str8(&properties, "capabilities");
    wire_u8(&properties, 'F');
    wire_str32(&properties, capabilities.buf, capabilities.len);
    wire_u16(&arguments, 9);
    wire_str32(&arguments, properties.buf, properties.len);
    wire_str32(&arguments, mechanisms, strlen(mechanisms));
    wire_str32(&arguments, "en_US", 5);
    wire_method(in, 0, LEAT_AMQP_CONNECTION_START, &arguments);
    wire_free(&arguments);
    wire_free(&properties);
    wire_free(&capabilities);
}

static void add_start(struct wire *in)
{
    add_start_with(in, "AMQPLAIN PLAIN", true);
}

static void add_tune(struct wire *in, uint32_t method, const struct leat_amqp_tune *tune)
{
    struct wire arguments = {0};

    wire_u16(&arguments, tune->channel_max);
    wire_u32(&arguments, tune->frame_max);
    wire_u16(&arguments, tune->heartbeat_s);
    wire_method(in, 0, method, &arguments);
    wire_free(&arguments);
}

static const struct leat_amqp_tune usual = {2047, 131072, 60};

static void add_open_ok(struct wire *in)
{
    struct wire arguments = {0};

    wire_str8(&arguments, "");
    wire_method(in, 0, LEAT_AMQP_CONNECTION_OPEN_OK, &arguments);
    wire_free(&arguments);
}

/* What a client answers whose properties become PROPERTIES. */
static void add_start_ok(struct wire *out, const struct wire *properties)
{
    struct wire arguments = {0};

    wire_str32(&arguments, properties->buf, properties->len);
    wire_str8(&arguments, "PLAIN");
    wire_str32(&arguments, "\0guest\0secret", 13);
    wire_str8(&arguments, "de_DE");
    wire_method(out, 0, LEAT_AMQP_CONNECTION_START_OK, &arguments);
    wire_free(&arguments);
}

static void add_capabilities(struct wire *properties, const struct wire *before,
                             const struct wire *after)
{
    struct wire table = {0};

    wire_add(&table, before->buf, before->len);
    wire_field(&table, "authentication_failure_close", 't', "\1", 1);
    wire_add(&table, after->buf, after->len);
    wire_str8(properties, "capabilities");
    wire_u8(properties, 'F');
    wire_str32(properties, table.buf, table.len);
    wire_free(&table);
}

static void add_open(struct wire *out)
{
    struct wire arguments = {0};

    wire_str8(&arguments, "some/vhost");
    wire_str8(&arguments, "");
    wire_u8(&arguments, 0);
    wire_method(out, 0, LEAT_AMQP_CONNECTION_OPEN, &arguments);
    wire_free(&arguments);
}

static void the_handshake_is_replayed(void **state)
{
    static const struct wire none;
    const struct leat_amqp_tune agreed = {100, 8192, 30};
    struct wire in = {0}, expected = {0}, properties = {0};

    (void)state;
    add_start(&in);
    wire_frame(&in, 8, 0, NULL, 0);
    add_tune(&in, LEAT_AMQP_CONNECTION_TUNE, &usual);
    wire_frame(&in, 8, 0, NULL, 0);
    add_open_ok(&in);
    size_t until = in.len;
    wire_method(&in, 0, LEAT_AMQP_METHOD(10, 60), NULL); /* behind Open-Ok: not the client's */
    add_capabilities(&properties, &none, &none);
    wire_text(&properties, "leat_client", "192.0.2.1:4711 TLS");
    add_start_ok(&expected, &properties);
    add_tune(&expected, LEAT_AMQP_CONNECTION_TUNE_OK, &agreed);
    add_open(&expected);
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_client client;
        struct outcome outcome;

        run(&client, &in, cut, &outcome);
        assert_int_equal(outcome.event, LEAT_AMQP_CLIENT_OPEN);
        assert_int_equal(outcome.taken, until);
        assert_int_equal(outcome.started, 1);
        assert_true(outcome.is_rabbit);
        assert_true(wire_equal(&outcome.out, &expected));
        assert_true(client.tells_auth_failure);
        assert_tune_equal(&client.offered, &usual);
        assert_tune_equal(&client.tune, &agreed);
        finish(&client, &outcome);
    }
    wire_free(&in);
    wire_free(&expected);
    wire_free(&properties);
}

/* Checks that a client with properties GIVEN becomes one with EXPECTED and leat_client. */
static void check_properties(const struct wire *given, struct wire *expected)
{
    struct leat_amqp_client client;
    struct outcome outcome;
    struct wire in = {0}, start_ok = {0};

    log_in(given);
    wire_text(expected, "leat_client", "192.0.2.1:4711 TLS");
    add_start(&in);
    add_start_ok(&start_ok, expected);
    run(&client, &in, WIRE_WHOLE, &outcome);
    assert_int_equal(outcome.event, LEAT_AMQP_CLIENT_STARTED);
    assert_true(wire_equal(&outcome.out, &start_ok));
    finish(&client, &outcome);
    wire_free(&in);
    wire_free(&start_ok);
}

static void properties_stay_byte_for_byte(void **state)
{
    struct wire given = {0}, expected = {0}, before = {0}, after = {0}, table = {0};

    (void)state;
    wire_text(&before, "\xff odd", "\x01\x02");
    wire_field(&before, "basic.nack", 't', "\2", 1); /* true, in a way of its own */
    wire_field(&after, "n", 'U', "\1\2", 2);
    for (int own = 0; own < 3; own++) {
        given.len = expected.len = table.len = 0;
        wire_text(&given, "product", "x");
        wire_text(&given, "leat_client", "somebody else");
        wire_text(&given, "amqpprox_client", "somebody else");
        wire_add(&table, before.buf, before.len);
        if (own > 0) /* once false, once not even a boolean */
            wire_field(&table, "authentication_failure_close", own == 1 ? 't' : 'B', "\0", 1);
        wire_add(&table, after.buf, after.len);
        wire_str8(&given, "capabilities");
        wire_u8(&given, 'F');
        wire_str32(&given, table.buf, table.len);
        wire_text(&given, "leat", "no prefix");

        wire_text(&expected, "product", "x");
        if (own == 0) {
            table.len = 0;
            wire_add(&table, before.buf, before.len);
            wire_add(&table, after.buf, after.len);
            add_capabilities(&expected, &table, &(struct wire){0});
        } else {
            add_capabilities(&expected, &before, &after);
        }
        wire_text(&expected, "leat", "no prefix");
        check_properties(&given, &expected);
    }
    given.len = expected.len = 0;
    wire_text(&given, "capabilities", "none");
    wire_text(&given, "x", "y");
    add_capabilities(&expected, &(struct wire){0}, &(struct wire){0});
    wire_text(&expected, "x", "y");
    check_properties(&given, &expected);
    wire_free(&given);
    wire_free(&expected);
    wire_free(&before);
    wire_free(&after);
    wire_free(&table);
}

static void tune_is_the_lesser(void **state)
{
    static const struct leat_amqp_tune cases[][3] = {
        /* the broker's, the client's, what is agreed */
        {{2047, 131072, 60}, {2047, 131072, 60}, {2047, 131072, 60}},
        {{100, 5000, 10}, {2047, 4096, 60}, {100, 5000, 10}},
        {{2047, 131072, 60}, {7, 9000, 5}, {7, 9000, 5}},
        {{0, 0, 0}, {7, 9000, 5}, {7, 9000, 5}},
        {{0, 0, 60}, {7, 4096, 0}, {7, 8192, 60}},
        {{65535, 0xFFFFFFFF, 65535}, {7, 8191, 600}, {7, 8192, 600}},
        {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
        {{1, 4096, 1}, {0, 0, 0}, {1, 4096, 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leat_amqp_client client;
        struct outcome outcome;
        struct wire in = {0}, end = {0};

        login.tune = cases[i][1];
        add_start(&in);
        add_tune(&in, LEAT_AMQP_CONNECTION_TUNE, &cases[i][0]);
        add_tune(&end, LEAT_AMQP_CONNECTION_TUNE_OK, &cases[i][2]);
        add_open(&end);
        run(&client, &in, WIRE_WHOLE, &outcome);
        assert_int_equal(outcome.event, LEAT_AMQP_CLIENT_MORE);
        assert_tune_equal(&client.tune, &cases[i][2]);
        assert_memory_equal(outcome.out.buf + outcome.out.len - end.len, end.buf, end.len);
        finish(&client, &outcome);
        wire_free(&in);
        wire_free(&end);
    }
}

static void a_close_is_answered_and_kept(void **state)
{
    char longest[256];

    (void)state;
    memset(longest, '\xfe', 255);
    longest[255] = '\0';
    for (int step = 0; step < 3; step++) {
        struct wire in = {0}, close_ok = {0};

        if (step > 0)
            add_start(&in);
        if (step > 1)
            add_tune(&in, LEAT_AMQP_CONNECTION_TUNE, &usual);
        wire_add_close(&in, 403, longest);
        wire_method(&close_ok, 0, LEAT_AMQP_CONNECTION_CLOSE_OK, NULL);
        for (int cut = 0; cut < WIRE_CUTS; cut++) {
            struct leat_amqp_client client;
            struct outcome outcome;

            run(&client, &in, cut, &outcome);
            assert_int_equal(outcome.event, LEAT_AMQP_CLIENT_REFUSED);
            assert_int_equal(client.close_code, 403);
            assert_int_equal(client.close_text_len, 255);
            assert_string_equal(client.close_text, longest);
            assert_memory_equal(outcome.out.buf + outcome.out.len - close_ok.len, close_ok.buf,
                                close_ok.len);
            finish(&client, &outcome);
        }
        wire_free(&in);
        wire_free(&close_ok);
    }
}

static void a_close_may_have_no_text(void **state)
{
    struct wire in = {0};
    struct leat_amqp_client client;
    struct outcome outcome;

    (void)state;
    wire_add_close(&in, 320, "");
    run(&client, &in, WIRE_WHOLE, &outcome);
    assert_int_equal(outcome.event, LEAT_AMQP_CLIENT_REFUSED);
    assert_int_equal(client.close_code, 320);
    assert_string_equal(client.close_text, "");
    finish(&client, &outcome);
    wire_free(&in);
}

static void a_broker_that_tells_nothing_is_known(void **state)
{
    struct wire in = {0};
    struct leat_amqp_client client;
    struct outcome outcome;

    (void)state;
    add_start_with(&in, "PLAIN", false);
    run(&client, &in, WIRE_BYTES, &outcome);
    assert_int_equal(outcome.event, LEAT_AMQP_CLIENT_STARTED);
    assert_false(client.tells_auth_failure);
    assert_string_equal(leat_amqp_client_awaits(&client), "Tune");
    finish(&client, &outcome);
    wire_free(&in);
}

static void secure_is_told(void **state)
{
    struct wire in = {0}, challenge = {0};

    (void)state;
    add_start(&in);
    wire_str32(&challenge, "?", 1);
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_SECURE, &challenge);
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_client client;
        struct outcome outcome;

        run(&client, &in, cut, &outcome);
        assert_int_equal(outcome.event, LEAT_AMQP_CLIENT_SECURE);
        finish(&client, &outcome);
    }
    wire_free(&in);
    wire_free(&challenge);
}

/* Checks that IN ends in EVENT, FAILED or UNFIT, with a text that has PART. */
static void check_end(const struct wire *in, enum leat_amqp_client_event event, const char *part)
{
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_client client;
        struct outcome outcome;

        run(&client, in, cut, &outcome);
        assert_int_equal(outcome.event, event);
        assert_int_equal(client.failure.status,
                         event == LEAT_AMQP_CLIENT_FAILED ? LEAT_EPROTOCOL : LEAT_EUSAGE);
        assert_non_null(strstr(client.failure.text, part));
        assert_string_equal(leat_amqp_client_awaits(&client), "nothing");
        finish(&client, &outcome);
    }
}

#define CHECK_FAILED(in, part) check_end((in), LEAT_AMQP_CLIENT_FAILED, (part))

static void other_protocols_are_named(void **state)
{
    struct wire in = {0};

    (void)state;
    wire_add(&in, "AMQP\3\1\0\0", 8);
    CHECK_FAILED(&in, "another version of AMQP than 0-9-1: it answered with the protocol header "
                      "AMQP 3 1 0");
    in.len = 0;
    wire_add(&in, "\25\3\3\0\2\2\106", 7);
    CHECK_FAILED(&in, "the broker speaks TLS; use amqps:// for this backend");
    in.len = 0;
    wire_add(&in, "\25\3\1\0\2\1\0", 7);
    CHECK_FAILED(&in, "the broker speaks TLS");
    in.len = 0;
    wire_add(&in, "HTTP/1.1 400 Bad Request\r\n", 26);
    CHECK_FAILED(&in, "no AMQP broker: it speaks HTTP");
    in.len = 0;
    wire_add(&in, "SSH-2.0-OpenSSH_9.2\r\n", 21);
    CHECK_FAILED(&in, "where Start was due");
    wire_free(&in);
}

static void wrong_frames_fail(void **state)
{
    struct wire in = {0}, arguments = {0};
    const struct leat_amqp_tune small = {1, 4095, 0};

    (void)state;
    add_start_with(&in, "EXTERNAL PLAINX", true);
    check_end(&in, LEAT_AMQP_CLIENT_UNFIT, "mechanism PLAIN; it offers \"EXTERNAL PLAINX\"");
    in.len = 0;
    add_start_with(&in, "", true);
    check_end(&in, LEAT_AMQP_CLIENT_UNFIT, "it offers \"\"");
    in.len = 0;
    add_start(&in);
    in.buf[12] = 8; /* version 0-8 */
    CHECK_FAILED(&in, "AMQP 0-8");
    in.len = 0;
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_START, NULL);
    CHECK_FAILED(&in, "malformed connection.start");
    in.len = 0;
    add_open_ok(&in);
    CHECK_FAILED(&in, "connection.open-ok (10,41) where Start was due");
    in.len = 0;
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_SECURE, NULL);
    CHECK_FAILED(&in, "connection.secure (10,20) where Start was due");
    in.len = 0;
    wire_frame(&in, 1, 0, "x", 1);
    CHECK_FAILED(&in, "less than 4 bytes");
    in.len = 0;
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_CLOSE, NULL);
    CHECK_FAILED(&in, "malformed connection.close");
    in.len = 0;
    wire_method(&in, 2, LEAT_AMQP_CONNECTION_START, NULL);
    CHECK_FAILED(&in, "type 1 on channel 2");
    in.len = 0;
    wire_add(&in, "\1\0\0\0\2\0\0", 7);
    CHECK_FAILED(&in, "more than 131072 bytes");
    in.len = 0;
    add_start(&in);
    const size_t start = in.len;
    in.buf[start - 1] = 0;
    CHECK_FAILED(&in, "wrong end octet");
    in.buf[start - 1] = 0xCE;
    add_tune(&in, LEAT_AMQP_CONNECTION_TUNE, &small);
    CHECK_FAILED(&in, "frame_max 4095");
    in.len = start;
    wire_u32(&arguments, 1);
    wire_method(&in, 0, LEAT_AMQP_CONNECTION_TUNE, &arguments);
    CHECK_FAILED(&in, "malformed connection.tune");
    in.len = start;
    for (int i = 0; i < 64; i++)
        wire_frame(&in, 8, 0, NULL, 0);
    CHECK_FAILED(&in, "more than 64 frames");
    wire_free(&in);
    wire_free(&arguments);
}

static void memory_may_be_short(void **state)
{
    struct wire in = {0};
    enum leat_amqp_client_event event;
    unsigned n = 0;

    (void)state;
    add_start(&in);
    add_tune(&in, LEAT_AMQP_CONNECTION_TUNE, &usual);
    add_open_ok(&in);
    do {
        struct leat_amqp_client client;
        struct outcome outcome;

        leat_mem_fail_after(++n);
        run(&client, &in, WIRE_BYTES, &outcome);
        event = outcome.event;
        finish(&client, &outcome);
        assert_true(event == LEAT_AMQP_CLIENT_NOMEM || event == LEAT_AMQP_CLIENT_OPEN);
    } while (event == LEAT_AMQP_CLIENT_NOMEM);
    leat_mem_fail_after(0);
    assert_int_equal(n, 4); /* each of the three frames in pieces failed once */
    wire_free(&in);
}

/* However IN is cut, the same comes of it. */
static void expect_equal_cuts(const struct wire *in)
{
    struct leat_amqp_client client;
    struct outcome first, outcome;

    run(&client, in, 0, &first);
    leat_amqp_client_fini(&client);
    for (int cut = 1; cut < 6; cut++) {
        run(&client, in, cut, &outcome);
        leat_amqp_client_fini(&client);
        /* A last STARTED is MORE when something came behind it. */
        assert_int_equal(outcome.started, first.started);
        assert_int_equal(outcome.taken, first.taken);
        assert_true(wire_equal(&outcome.out, &first.out));
        wire_free(&outcome.out);
    }
    wire_free(&first.out);
}

static void noise_ends_equally_in_all_cuts(void **state)
{
    uint32_t seed = 23;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct wire in = {0};

        add_start(&in);
        add_tune(&in, LEAT_AMQP_CONNECTION_TUNE, &usual);
        add_open_ok(&in);
        for (int i = 0; i < 2; i++)
            in.buf[wire_random(&seed, (uint32_t)in.len)] = (uint8_t)wire_random(&seed, 256);
        expect_equal_cuts(&in);
        wire_free(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_handshake_is_replayed, setup, teardown),
        cmocka_unit_test_setup_teardown(properties_stay_byte_for_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(tune_is_the_lesser, setup, teardown),
        cmocka_unit_test_setup_teardown(a_close_is_answered_and_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_close_may_have_no_text, setup, teardown),
        cmocka_unit_test_setup_teardown(a_broker_that_tells_nothing_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(secure_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(other_protocols_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_frames_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_may_be_short, setup, teardown),
        cmocka_unit_test_setup_teardown(noise_ends_equally_in_all_cuts, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
