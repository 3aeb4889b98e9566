/*
 * Tests of buf/writer.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "buf/writer.h"

/* What encode() writes. */
static const uint8_t sample[] = {
    0xf1, 0xf2, 0x03, 0xf4, 0x05, 0x06, 0x07, 'r', 'a', 'w', 2,    's', 't', 0, 0, 0,
    5,    'l',  0,    'n',  'g',  '!',  0,    0,   0,   6,   0xab, 0,   0,   0, 1, 0xcd,
};

static void encode(struct leat_writer *writer)
{
    size_t outer, inner;

    leat_writer_u8(writer, 0xf1);
    leat_writer_u16(writer, 0xf203);
    leat_writer_u32(writer, 0xf4050607);
    leat_writer_bytes(writer, (struct leat_str){"raw", 3});
    leat_writer_str8(writer, (struct leat_str){"st", 2});
    leat_writer_str32(writer, (struct leat_str){"l\0ng!", 5});
    outer = leat_writer_begin32(writer);
    leat_writer_u8(writer, 0xab);
    inner = leat_writer_begin32(writer);
    leat_writer_u8(writer, 0xcd);
    leat_writer_end32(writer, inner);
    leat_writer_end32(writer, outer);
}

static void everything_is_written_big_endian(void **state)
{
    uint8_t buf[sizeof(sample)];
    struct leat_writer writer;

    (void)state;
    leat_writer_init(&writer, buf, sizeof(buf));
    encode(&writer);
    assert_false(writer.failed);
    assert_int_equal(writer.len, sizeof(sample));
    assert_memory_equal(buf, sample, sizeof(sample));
}

/* The buffer has exactly the size that the writer is told, so that writing on is seen. */
static void every_smaller_buffer_fails(void **state)
{
    (void)state;
    for (size_t cap = 1; cap < sizeof(sample); cap++) {
        uint8_t *buf = malloc(cap);
        struct leat_writer writer;

        assert_non_null(buf);
        leat_writer_init(&writer, buf, cap);
        encode(&writer);
        assert_true(writer.failed);
        assert_true(writer.len <= cap);
        assert_memory_equal(buf, sample, writer.len < 22 ? writer.len : 22);
        free(buf);
    }
}

static void the_error_is_sticky(void **state)
{
    uint8_t buf[4] = {1, 2, 3, 4};
    struct leat_writer writer;

    (void)state;
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_writer_u8(&writer, 7);
    leat_writer_u32(&writer, 0);
    assert_true(writer.failed);
    leat_writer_u8(&writer, 9); /* it would fit */
    leat_writer_bytes(&writer, (struct leat_str){"x", 1});
    leat_writer_end32(&writer, leat_writer_begin32(&writer));
    assert_int_equal(writer.len, 1);
    assert_memory_equal(buf, "\x07\x02\x03\x04", 4);
}

static void a_short_string_has_at_most_255_bytes(void **state)
{
    uint8_t buf[600];
    char text[256];
    struct leat_writer writer;

    (void)state;
    memset(text, 'x', sizeof(text));
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_writer_str8(&writer, (struct leat_str){text, 255});
    assert_false(writer.failed);
    assert_int_equal(writer.len, 256);
    assert_int_equal(buf[0], 255);
    leat_writer_str8(&writer, (struct leat_str){text, 256});
    assert_true(writer.failed);
    assert_int_equal(writer.len, 256);
}

static void a_long_string_has_at_most_32_bits_of_bytes(void **state)
{
    uint8_t buf[8];
    struct leat_writer writer;

    (void)state;
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_writer_str32(&writer, (struct leat_str){"", (size_t)UINT32_MAX + 1});
    assert_true(writer.failed);
    assert_int_equal(writer.len, 0);
}

static void nothing_needs_no_address(void **state)
{
    struct leat_writer writer;

    (void)state;
    leat_writer_init(&writer, NULL, 0);
    leat_writer_bytes(&writer, (struct leat_str){NULL, 0});
    assert_false(writer.failed);
    leat_writer_u8(&writer, 1);
    assert_true(writer.failed);
    assert_int_equal(writer.len, 0);
}

static void an_open_length_may_stay_0(void **state)
{
    uint8_t buf[5] = {9, 9, 9, 9, 9};
    struct leat_writer writer;
    size_t place;

    (void)state;
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_writer_u8(&writer, 1);
    place = leat_writer_begin32(&writer);
    leat_writer_end32(&writer, place);
    assert_false(writer.failed);
    assert_memory_equal(buf, "\1\0\0\0\0", 5);
}

static void a_length_of_two_octets_counts_what_follows(void **state)
{
    uint8_t buf[8];
    struct leat_writer writer;
    size_t outer, inner;

    (void)state;
    leat_writer_init(&writer, buf, sizeof(buf));
    leat_writer_u8(&writer, 1);
    outer = leat_writer_begin16(&writer);
    inner = leat_writer_begin16(&writer);
    leat_writer_bytes(&writer, (struct leat_str){"abc", 3});
    leat_writer_end16(&writer, inner);
    leat_writer_end16(&writer, outer);
    assert_false(writer.failed);
    assert_int_equal(writer.len, 8);
    assert_memory_equal(buf, "\1\0\5\0\3abc", 8);
    leat_writer_end16(&writer, leat_writer_begin16(&writer));
    assert_true(writer.failed);
}

static void a_length_of_two_octets_is_at_most_65535(void **state)
{
    static uint8_t buf[2 + 65536];
    static const char zeros[65536] = {0};
    struct leat_writer writer;

    (void)state;
    for (size_t len = 65535; len <= 65536; len++) {
        leat_writer_init(&writer, buf, sizeof(buf));
        size_t place = leat_writer_begin16(&writer);
        leat_writer_bytes(&writer, (struct leat_str){zeros, len});
        leat_writer_end16(&writer, place);
        assert_int_equal(writer.failed, len == 65536);
        assert_memory_equal(buf, len == 65535 ? "\xff\xff" : "\0\0", 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_written_big_endian),
        cmocka_unit_test(every_smaller_buffer_fails),
        cmocka_unit_test(the_error_is_sticky),
        cmocka_unit_test(a_short_string_has_at_most_255_bytes),
        cmocka_unit_test(a_long_string_has_at_most_32_bits_of_bytes),
        cmocka_unit_test(nothing_needs_no_address),
        cmocka_unit_test(an_open_length_may_stay_0),
        cmocka_unit_test(a_length_of_two_octets_counts_what_follows),
        cmocka_unit_test(a_length_of_two_octets_is_at_most_65535),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
