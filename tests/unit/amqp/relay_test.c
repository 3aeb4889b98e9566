/*
 * Tests of amqp/relay.h: what comes out, what is told, and what is refused, for every way in
 * which the input may be cut.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/method.h"
#include "amqp/relay.h"
#include "wire.h"

/* What a run through the relay led to. */
struct outcome {
    struct wire out;    /* what the receiver gets */
    struct wire events; /* one line for each event */
    bool failed;
};

static void outcome_free(struct outcome *outcome)
{
    wire_free(&outcome->out);
    wire_free(&outcome->events);
}

/* Whether OUT ends between two frames, found out by walking over all of it. */
static bool ends_whole(const struct wire *out, size_t *from)
{
    while (out->len - *from >= 8) {
        const uint8_t *head = out->buf + *from;
        size_t size =
            (size_t)head[3] << 24 | (size_t)head[4] << 16 | (size_t)head[5] << 8 | head[6];

        if (out->len - *from < size + 8)
            return false;
        *from += size + 8;
    }
    return out->len == *from;
}

static void note(struct outcome *outcome, const struct leat_amqp_relay *relay,
                 const struct leat_amqp_op *op)
{
    char line[512];
    int len;

    if (op->kind == LEAT_AMQP_OP_FRAME)
        len = snprintf(line, sizeof(line), "frame %u %u %u %u\n", relay->head.type,
                       relay->head.channel, relay->head.size, relay->method);
    else if (op->kind == LEAT_AMQP_OP_CLOSE)
        len = snprintf(line, sizeof(line), "close %u %.*s\n", relay->close.code,
                       (int)relay->close.text.len, relay->close.text.ptr);
    else if (op->kind == LEAT_AMQP_OP_CLOSE_OK)
        len = snprintf(line, sizeof(line), "close-ok\n");
    else
        len = snprintf(line, sizeof(line), "error %u %s\n", relay->error_code, relay->error.text);
    wire_add(&outcome->events, line, (size_t)len);
}

/* Acts on one operation as the session does. False at MORE and ERROR. */
static bool act(struct outcome *outcome, const struct leat_amqp_relay *relay,
                const struct leat_amqp_op *op, const uint8_t *data)
{
    switch (op->kind) {
    case LEAT_AMQP_OP_MORE:
        return false;
    case LEAT_AMQP_OP_PASS:
        assert_true(op->taken > 0);
        wire_add(&outcome->out, data, op->taken);
        return true;
    case LEAT_AMQP_OP_DROP:
        return true;
    case LEAT_AMQP_OP_PUT:
        wire_add(&outcome->out, op->put, op->put_len);
        return true;
    case LEAT_AMQP_OP_FRAME:
        note(outcome, relay, op);
        return true;
    case LEAT_AMQP_OP_CLOSE:
    case LEAT_AMQP_OP_CLOSE_OK:
        note(outcome, relay, op);
        wire_add(&outcome->events, op->put, op->put_len);
        return true;
    case LEAT_AMQP_OP_ERROR:
        note(outcome, relay, op);
        outcome->failed = true;
        return false;
    }
    fail();
    return false;
}

static void run(struct leat_amqp_relay *relay, const struct wire *in, int cut,
                struct outcome *outcome)
{
    uint32_t seed = (uint32_t)cut;
    size_t pos = 0, whole_to = 0;
    struct leat_amqp_op op;
    bool more;

    *outcome = (struct outcome){0};
    while (pos < in->len && !outcome->failed) {
        size_t len = wire_next_cut(cut, in->len - pos, &seed);
        uint8_t *span = malloc(len); /* of its own, so that reads past it are seen */

        assert_non_null(span);
        memcpy(span, in->buf + pos, len);
        pos += len;
        const uint8_t *data = span;
        do {
            leat_amqp_relay_next(relay, data, len, &op);
            assert_true(op.taken <= len);
            more = act(outcome, relay, &op, data);
            data += op.taken;
            len -= op.taken;
            /* An error does not say where the output stands, it stays as it was. */
            assert_int_equal(leat_amqp_relay_is_between_frames(relay),
                             ends_whole(&outcome->out, &whole_to));
        } while (more);
        if (!outcome->failed)
            assert_int_equal(len, 0);
        free(span);
    }
}

struct expected {
    const struct wire *out;
    const char *events; /* NULL: none */
    uint64_t frames;
    uint64_t heartbeats;
};

/* Runs IN through a relay in all cuts. */
static void check(uint32_t source_max, uint32_t target_max, bool trace, const struct wire *in,
                  const struct expected *expected)
{
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_relay relay;
        struct outcome outcome;

        leat_amqp_relay_init(&relay, source_max, target_max);
        relay.trace = trace;
        run(&relay, in, cut, &outcome);
        assert_true(wire_equal(&outcome.out, expected->out));
        if (expected->events != NULL) {
            wire_u8(&outcome.events, 0);
            assert_string_equal((const char *)outcome.events.buf, expected->events);
        } else {
            assert_int_equal(outcome.events.len, 0);
        }
        assert_int_equal(relay.frames, expected->frames);
        assert_int_equal(relay.heartbeats, expected->heartbeats);
        outcome_free(&outcome);
    }
}

/* Runs IN, which ends in an error with CODE and a text that has PART. */
static void check_error(uint32_t source_max, uint32_t target_max, const struct wire *in,
                        uint16_t code, const char *part)
{
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_relay relay;
        struct outcome outcome;

        leat_amqp_relay_init(&relay, source_max, target_max);
        run(&relay, in, cut, &outcome);
        assert_true(outcome.failed);
        assert_int_equal(relay.error_code, code);
        assert_int_equal(relay.error.status, LEAT_EPROTOCOL);
        assert_int_equal(strncmp(relay.error.text, leat_amqp_reply_name(code),
                                 strlen(leat_amqp_reply_name(code))),
                         0);
        assert_non_null(strstr(relay.error.text, part));
        outcome_free(&outcome);
    }
}

static const uint8_t zeros[200000];

static void plain_frames_pass_in_one_operation(void **state)
{
    struct wire in = {0};
    struct leat_amqp_relay relay;
    struct leat_amqp_op op;

    (void)state;
    for (unsigned channel = 1; channel < 50; channel++) {
        wire_method(&in, channel, LEAT_AMQP_METHOD(60, 40), NULL);
        wire_frame(&in, 2, channel, zeros, 14);
        wire_frame(&in, 3, channel, zeros, channel * 10);
        wire_frame(&in, 3, channel, zeros, 0);
    }
    leat_amqp_relay_init(&relay, 131072, 131072);
    leat_amqp_relay_next(&relay, in.buf, in.len, &op);
    assert_int_equal(op.kind, LEAT_AMQP_OP_PASS);
    assert_int_equal(op.taken, in.len);
    leat_amqp_relay_next(&relay, in.buf + in.len, 0, &op);
    assert_int_equal(op.kind, LEAT_AMQP_OP_MORE);
    check(131072, 131072, false, &in, &(struct expected){.out = &in, .frames = 49u * 4});
    check(0, 0, false, &in, &(struct expected){.out = &in, .frames = 49u * 4});
    wire_free(&in);
}

static void heartbeats_are_dropped(void **state)
{
    struct wire in = {0}, out = {0};

    (void)state;
    wire_frame(&in, 8, 0, NULL, 0);
    wire_frame(&in, 3, 7, zeros, 100);
    wire_frame(&in, 8, 0, NULL, 0);
    wire_frame(&in, 8, 0, NULL, 0);
    wire_frame(&in, 2, 7, zeros, 20);
    wire_frame(&in, 8, 0, NULL, 0);
    wire_frame(&out, 3, 7, zeros, 100);
    wire_frame(&out, 2, 7, zeros, 20);
    check(4096, 4096, false, &in, &(struct expected){.out = &out, .frames = 2, .heartbeats = 4});
    check(4096, 4096, true, &in,
          &(struct expected){.out = &out,
                             .events = "frame 8 0 0 0\nframe 3 7 100 0\nframe 8 0 0 0\n"
                                       "frame 8 0 0 0\nframe 2 7 20 0\nframe 8 0 0 0\n",
                             .frames = 2,
                             .heartbeats = 4});
    wire_free(&in);
    wire_free(&out);
}

static void methods_on_channel_0_pass_and_are_traced(void **state)
{
    struct wire in = {0}, reason = {0};

    (void)state;
    wire_str8(&reason, "low on memory");
    wire_method(&in, 0, LEAT_AMQP_METHOD(10, 60), &reason);
    wire_method(&in, 0, LEAT_AMQP_METHOD(10, 61), NULL);
    wire_frame(&in, 1, 0, "\0\12", 2); /* no method in it: the receiver may judge that */
    wire_method(&in, 3, LEAT_AMQP_CONNECTION_CLOSE, NULL); /* nor is this a Close */
    check(4096, 4096, false, &in, &(struct expected){.out = &in, .frames = 4});
    check(4096, 4096, true, &in,
          &(struct expected){.out = &in,
                             .events = "frame 1 0 18 655420\nframe 1 0 4 655421\nframe 1 0 2 0\n"
                                       "frame 1 3 4 655410\n",
                             .frames = 4});
    wire_free(&in);
    wire_free(&reason);
}

static void a_close_is_given_whole_and_not_passed(void **state)
{
    char longest[256];
    const char *const texts[] = {"", "bye", longest};

    (void)state;
    memset(longest, 'x', 255);
    longest[255] = '\0';
    for (size_t i = 0; i < 3; i++) {
        struct wire in = {0}, out = {0}, frame = {0};

        wire_frame(&in, 3, 1, zeros, 30);
        wire_add_close(&in, 320, texts[i]);
        wire_frame(&in, 3, 1, zeros, 31); /* what the sender should not, but may send */
        wire_method(&in, 0, LEAT_AMQP_CONNECTION_CLOSE_OK, NULL);
        wire_frame(&out, 3, 1, zeros, 30);
        wire_frame(&out, 3, 1, zeros, 31);
        for (int cut = 0; cut < WIRE_CUTS; cut++) {
            struct leat_amqp_relay relay;
            struct outcome outcome;
            char line[300];

            frame.len = 0;
            (void)snprintf(line, sizeof(line), "close 320 %s\n", texts[i]);
            wire_add(&frame, line, strlen(line));
            wire_add_close(&frame, 320, texts[i]);
            wire_add(&frame, "close-ok\n", 9);
            wire_method(&frame, 0, LEAT_AMQP_CONNECTION_CLOSE_OK, NULL);
            leat_amqp_relay_init(&relay, 4096, 4096);
            run(&relay, &in, cut, &outcome);
            assert_true(wire_equal(&outcome.out, &out));
            assert_true(wire_equal(&outcome.events, &frame));
            assert_int_equal(relay.frames, 4);
            outcome_free(&outcome);
        }
        wire_free(&in);
        wire_free(&out);
        wire_free(&frame);
    }
}

static void a_malformed_close_is_an_error(void **state)
{
    static const struct {
        const char *arguments;
        size_t len;
        uint32_t method;
        uint16_t code;
    } cases[] = {
        {"", 0, LEAT_AMQP_CONNECTION_CLOSE, 502},
        {"\1\100\377", 3, LEAT_AMQP_CONNECTION_CLOSE, 502},
        {"\1\100\0\0\0\0\0\0", 8, LEAT_AMQP_CONNECTION_CLOSE, 502},
        {"x", 1, LEAT_AMQP_CONNECTION_CLOSE_OK, 502},
        {(const char *)zeros, 263, LEAT_AMQP_CONNECTION_CLOSE, 501},
        {(const char *)zeros, 100000, LEAT_AMQP_CONNECTION_CLOSE, 501},
        {(const char *)zeros, 300, LEAT_AMQP_CONNECTION_CLOSE_OK, 501},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire in = {0}, arguments = {0};

        wire_add(&arguments, cases[i].arguments, cases[i].len);
        wire_method(&in, 0, cases[i].method, &arguments);
        check_error(0, 0, &in, cases[i].code, "connection.close");
        wire_free(&in);
        wire_free(&arguments);
    }
}

static void broken_frames_are_errors(void **state)
{
    struct wire in = {0};
    const unsigned ends_at[][3] = {{3, 1, 40}, {1, 1, 12}, {2, 9, 14}, {8, 0, 0}, {3, 5, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(ends_at) / sizeof(ends_at[0]); i++) {
        in.len = 0;
        wire_frame(&in, 3, 1, zeros, 5);
        wire_frame(&in, ends_at[i][0], ends_at[i][1], zeros, ends_at[i][2]);
        in.buf[in.len - 1] = 0xCD;
        check_error(4096, 4096, &in, 501, "octet 0xCD, not 0xCE");
    }
    in.len = 0;
    wire_add_close(&in, 200, "bye");
    in.buf[in.len - 1] = 0;
    check_error(4096, 4096, &in, 501, "octet 0x00, not 0xCE");
    for (unsigned type = 0; type < 256; type++) {
        if ((type >= 1 && type <= 3) || type == 8)
            continue;
        in.len = 0;
        wire_frame(&in, type, 2, zeros, 10);
        check_error(4096, 4096, &in, 501, "unknown type");
    }
    in.len = 0;
    wire_frame(&in, 8, 1, NULL, 0);
    check_error(4096, 4096, &in, 505, "heartbeat on channel 1");
    in.len = 0;
    wire_frame(&in, 8, 0, "x", 1);
    check_error(4096, 4096, &in, 501, "heartbeat with 1 bytes");
    wire_free(&in);
}

static void frames_above_a_limit_are_errors(void **state)
{
    struct wire in = {0};

    (void)state;
    wire_frame(&in, 3, 1, zeros, 4096 - 8);
    wire_frame(&in, 1, 1, zeros, 4096 - 8);
    wire_frame(&in, 2, 1, zeros, 4096 - 8);
    check(4096, 4096, false, &in, &(struct expected){.out = &in, .frames = 3});
    /* Eight bytes more than was negotiated are let through, since some clients take frame_max
     * for the payload's; nine are not. */
    check(4088, 4096, false, &in, &(struct expected){.out = &in, .frames = 3});
    check_error(4087, 4096, &in, 501, "4096 bytes long, the negotiated frame_max is 4087");
    in.len = 0;
    wire_frame(&in, 1, 1, zeros, 5000 - 8);
    check_error(0, 4096, &in, 501, "method frame on channel 1 is 5000 bytes long");
    in.len = 0;
    wire_frame(&in, 2, 1, zeros, 5000 - 8);
    check_error(8192, 4096, &in, 501, "header frame on channel 1 is 5000 bytes long");
    in.len = 0;
    wire_add(&in, "\3\0\1\377\377\377\377", 7); /* size + 8 exceeds 32 bits */
    check_error(131072, 131072, &in, 501, "4294967303 bytes");
    wire_free(&in);
}

static void a_body_is_split_to_what_the_receiver_takes(void **state)
{
    struct wire in = {0}, out = {0};
    uint8_t body[10];

    (void)state;
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)i;
    wire_frame(&in, 3, 0x0102, body, 10);
    wire_frame(&out, 3, 0x0102, body, 4);
    wire_frame(&out, 3, 0x0102, body + 4, 4);
    wire_frame(&out, 3, 0x0102, body + 8, 2);
    check(0, 12, false, &in, &(struct expected){.out = &out, .frames = 1});
    check(0, 12, true, &in,
          &(struct expected){.out = &out, .events = "frame 3 258 10 0\n", .frames = 1});
    in.len = 0;
    out.len = 0;
    wire_frame(&in, 3, 1, body, 8);
    wire_frame(&out, 3, 1, body, 4);
    wire_frame(&out, 3, 1, body + 4, 4);
    check(0, 12, false, &in, &(struct expected){.out = &out, .frames = 1});
    wire_free(&in);
    wire_free(&out);
}

/* Adds a frame of a random kind to IN, and what is to become of it to OUT and EXPECTED. */
static void add_random(uint32_t *seed, uint32_t target_max, struct wire *in, struct wire *out,
                       struct expected *expected)
{
    uint8_t payload[3000];
    size_t most = target_max == 0 ? sizeof(payload) : target_max - 8;
    size_t len = wire_random(seed, wire_random(seed, 3) == 0 ? sizeof(payload) : 40);
    unsigned type = wire_random(seed, 4), channel = 1 + wire_random(seed, 65535);

    if (type == 0) {
        wire_frame(in, 8, 0, NULL, 0);
        expected->heartbeats++;
        return;
    }
    for (size_t i = 0; i < len; i++)
        payload[i] = (uint8_t)wire_random(seed, 256);
    if (type < 3 && len > most)
        len = most;
    if (type == 1 && wire_random(seed, 3) == 0) {
        channel = 0;
        payload[0] = 0xFF; /* not a Close */
    }
    wire_frame(in, type, channel, payload, len);
    expected->frames++;
    for (size_t pos = 0; pos < len || pos == 0; pos += most) {
        size_t piece = len - pos < most ? len - pos : most;

        wire_frame(out, type, channel, payload + pos, piece);
    }
}

static void random_frames_come_out_as_the_reference_has_them(void **state)
{
    uint32_t seed = 4711;

    (void)state;
    for (int round = 0; round < 40; round++) {
        struct wire in = {0}, out = {0};
        struct expected expected = {.out = &out};
        uint32_t target_max = round % 4 == 0 ? 0 : 12 + wire_random(&seed, 900);

        for (int i = 0; i < 60; i++)
            add_random(&seed, target_max, &in, &out, &expected);
        check(0, target_max, false, &in, &expected);
        check(3008, target_max, false, &in, &expected);
        wire_free(&in);
        wire_free(&out);
    }
}

static void tracing_changes_nothing_that_is_passed(void **state)
{
    uint32_t seed = 815;

    (void)state;
    for (int round = 0; round < 10; round++) {
        struct wire in = {0}, out = {0};
        struct expected expected = {.out = &out};

        for (int i = 0; i < 60; i++)
            add_random(&seed, 200, &in, &out, &expected);
        for (int cut = 0; cut < WIRE_CUTS; cut++) {
            struct leat_amqp_relay relay;
            struct outcome outcome;
            size_t lines = 0;

            leat_amqp_relay_init(&relay, 0, 200);
            relay.trace = true;
            run(&relay, &in, cut, &outcome);
            for (size_t i = 0; i < outcome.events.len; i++)
                lines += outcome.events.buf[i] == '\n';
            assert_int_equal(lines, expected.frames + expected.heartbeats);
            assert_true(wire_equal(&outcome.out, &out));
            outcome_free(&outcome);
        }
        wire_free(&in);
        wire_free(&out);
    }
}

/* Whatever comes, no byte is read that is not there and the run ends in the same way. */
/* However IN is cut, the same comes of it. */
static void expect_equal_cuts(const struct wire *in)
{
    struct outcome first = {0};

    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_relay relay;
        struct outcome outcome;

        leat_amqp_relay_init(&relay, 4096, 4096);
        run(&relay, in, cut, &outcome);
        if (cut == 0) {
            first = outcome;
            continue;
        }
        assert_true(wire_equal(&outcome.out, &first.out));
        assert_true(wire_equal(&outcome.events, &first.events));
        outcome_free(&outcome);
    }
    outcome_free(&first);
}

static void noise_ends_equally_in_all_cuts(void **state)
{
    uint32_t seed = 99;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct wire in = {0}, out = {0};
        struct expected expected = {0};

        for (int i = 0; i < 8; i++)
            add_random(&seed, 0, &in, &out, &expected);
        in.buf[wire_random(&seed, (uint32_t)in.len)] ^= (uint8_t)(1 + wire_random(&seed, 255));
        expect_equal_cuts(&in);
        wire_free(&in);
        wire_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_frames_pass_in_one_operation),
        cmocka_unit_test(heartbeats_are_dropped),
        cmocka_unit_test(methods_on_channel_0_pass_and_are_traced),
        cmocka_unit_test(a_close_is_given_whole_and_not_passed),
        cmocka_unit_test(a_malformed_close_is_an_error),
        cmocka_unit_test(broken_frames_are_errors),
        cmocka_unit_test(frames_above_a_limit_are_errors),
        cmocka_unit_test(a_body_is_split_to_what_the_receiver_takes),
        cmocka_unit_test(random_frames_come_out_as_the_reference_has_them),
        cmocka_unit_test(tracing_changes_nothing_that_is_passed),
        cmocka_unit_test(noise_ends_equally_in_all_cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
