/*
 * Tests of amqp/collect.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "amqp/collect.h"
#include "base/mem.h"
#include "wire.h"

/* Feeds all of IN and writes what came out to OUT; returns the last status. */
static enum leat_status run(struct leat_amqp_collect *collect, const struct wire *in, int cut,
                            struct wire *out)
{
    enum leat_status status = LEAT_EAGAIN;
    uint32_t seed = (uint32_t)cut;
    size_t pos = 0;

    while (pos < in->len && (status == LEAT_OK || status == LEAT_EAGAIN)) {
        size_t len = wire_next_cut(cut, in->len - pos, &seed), taken = 0;
        struct leat_amqp_frame_head head;
        const uint8_t *payload;
        uint8_t *span = malloc(len);

        assert_non_null(span);
        memcpy(span, in->buf + pos, len);
        status = leat_amqp_collect_feed(collect, span, len, &taken, &head, &payload);
        if (status == LEAT_OK)
            wire_frame(out, head.type, head.channel, payload, head.size);
        if (status == LEAT_EAGAIN)
            assert_int_equal(taken, len);
        if (status == LEAT_OK || status == LEAT_EAGAIN)
            assert_true(taken > 0);
        pos += taken;
        free(span);
    }
    return status;
}

static void frames_come_out_whole(void **state)
{
    static const uint8_t payload[1000] = {1, 2, 3};
    struct wire in = {0};

    (void)state;
    wire_frame(&in, 1, 0, payload, 12);
    wire_frame(&in, 8, 0, NULL, 0);
    wire_frame(&in, 3, 700, payload, 1000);
    wire_frame(&in, 2, 1, payload, 1);
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_collect collect = {.max = 1008};
        struct wire out = {0};

        assert_int_equal(run(&collect, &in, cut, &out), LEAT_OK);
        assert_true(wire_equal(&in, &out));
        leat_amqp_collect_clear(&collect);
        wire_free(&out);
    }
    wire_free(&in);
}

static void check_refused(const struct wire *in, enum leat_status expected)
{
    for (int cut = 0; cut < WIRE_CUTS; cut++) {
        struct leat_amqp_collect collect = {.max = 100};
        struct wire out = {0};

        assert_int_equal(run(&collect, in, cut, &out), expected);
        assert_int_equal(out.len, 10); /* the good frame before it */
        leat_amqp_collect_clear(&collect);
        wire_free(&out);
    }
}

static void bad_frames_are_refused(void **state)
{
    struct wire in = {0};

    (void)state;
    wire_frame(&in, 1, 0, "ab", 2);
    wire_frame(&in, 1, 0, "ab", 2);
    in.buf[in.len - 1] = 0;
    check_refused(&in, LEAT_EPROTOCOL);
    in.len = 10;
    wire_add(&in, "\1\0\0\0\0\0\135", 7); /* 93 bytes and 8 more: above 100, known at once */
    check_refused(&in, LEAT_ELIMIT);
    in.len = 10;
    wire_add(&in, "\1\0\0\377\377\377\377", 7);
    check_refused(&in, LEAT_ELIMIT);
    in.len = 10;
    wire_add(&in, "\4\0\0\0\0\0\1", 7);
    check_refused(&in, LEAT_EPROTOCOL);
    wire_free(&in);
}

static void what_is_cut_can_be_dropped(void **state)
{
    struct leat_amqp_collect collect = {.max = 100};
    struct wire in = {0}, out = {0};

    (void)state;
    wire_frame(&in, 1, 0, "abcdef", 6);
    for (size_t len = 1; len < in.len; len++) {
        struct wire part = {.buf = in.buf, .len = len};

        assert_int_equal(run(&collect, &part, WIRE_WHOLE, &out), LEAT_EAGAIN);
        leat_amqp_collect_clear(&collect);
        assert_null(collect.frame);
    }
    assert_int_equal(run(&collect, &in, WIRE_BYTES, &out), LEAT_OK);
    assert_true(wire_equal(&in, &out));
    leat_amqp_collect_clear(&collect);
    wire_free(&in);
    wire_free(&out);
}

static void memory_may_be_short(void **state)
{
    struct leat_amqp_collect collect = {.max = 100};
    struct wire in = {0}, out = {0};

    (void)state;
    wire_frame(&in, 1, 0, "abcdef", 6);
    leat_mem_fail_after(1);
    assert_int_equal(run(&collect, &in, WIRE_BYTES, &out), LEAT_ENOMEM);
    leat_amqp_collect_clear(&collect);
    leat_mem_fail_after(1);
    assert_int_equal(run(&collect, &in, WIRE_WHOLE, &out), LEAT_OK); /* nothing is allocated */
    leat_mem_fail_after(0);
    leat_amqp_collect_clear(&collect);
    wire_free(&in);
    wire_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_whole),
        cmocka_unit_test(bad_frames_are_refused),
        cmocka_unit_test(what_is_cut_can_be_dropped),
        cmocka_unit_test(memory_may_be_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
