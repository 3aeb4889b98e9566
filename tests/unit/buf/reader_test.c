/*
 * Tests of buf/reader.h.
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

#include "buf/reader.h"

/* One of everything: 1 + 2 + 4 + 3 raw bytes, a short and a long string. */
static const uint8_t sample[] = {
    0xf1, 0xf2, 0x03, 0xf4, 0x05, 0x06, 0x07, 'r', 'a', 'w', 2,
    's',  't',  0,    0,    0,    5,    'l',  0,   'n', 'g', '!',
};

struct values {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    struct leat_str raw, str8, str32;
};

static struct values decode(struct leat_reader *reader)
{
    struct values values;

    values.u8 = leat_reader_u8(reader);
    values.u16 = leat_reader_u16(reader);
    values.u32 = leat_reader_u32(reader);
    values.raw = leat_reader_bytes(reader, 3);
    values.str8 = leat_reader_str8(reader);
    values.str32 = leat_reader_str32(reader);
    return values;
}

static void numbers_are_big_endian(void **state)
{
    struct leat_reader reader;
    struct values values;

    (void)state;
    leat_reader_init(&reader, sample, sizeof(sample));
    assert_int_equal(leat_reader_left(&reader), sizeof(sample));
    values = decode(&reader);
    assert_false(reader.failed);
    assert_int_equal(leat_reader_left(&reader), 0);
    assert_int_equal(values.u8, 0xf1);
    assert_int_equal(values.u16, 0xf203);
    assert_int_equal(values.u32, 0xf4050607);
    assert_int_equal(values.raw.len, 3);
    assert_memory_equal(values.raw.ptr, "raw", 3);
    assert_int_equal(values.str8.len, 2);
    assert_memory_equal(values.str8.ptr, "st", 2);
    assert_int_equal(values.str32.len, 5);
    assert_memory_equal(values.str32.ptr, "l\0ng!", 5);
}

static void what_is_read_is_borrowed(void **state)
{
    struct leat_reader reader;

    (void)state;
    leat_reader_init(&reader, sample, sizeof(sample));
    assert_ptr_equal(leat_reader_bytes(&reader, 10).ptr, sample);
    assert_ptr_equal(leat_reader_bytes(&reader, 0).ptr, sample + 10);
    assert_ptr_equal(leat_reader_str8(&reader).ptr, sample + 11);
    assert_int_equal(leat_reader_left(&reader), 9);
}

/* The bytes are copied to memory of exactly their size, so that reading on is seen. */
static void every_truncation_fails(void **state)
{
    (void)state;
    for (size_t len = 1; len < sizeof(sample); len++) {
        uint8_t *copy = malloc(len);
        struct leat_reader reader;
        struct values values;

        assert_non_null(copy);
        memcpy(copy, sample, len);
        leat_reader_init(&reader, copy, len);
        values = decode(&reader);
        assert_true(reader.failed);
        assert_int_equal(leat_reader_left(&reader), 0);
        assert_int_equal(values.u8, 0xf1);
        assert_int_equal(values.u16, len < 3 ? 0 : 0xf203);
        assert_int_equal(values.u32, len < 7 ? 0 : 0xf4050607);
        assert_int_equal(values.raw.len, len < 10 ? 0 : 3);
        assert_int_equal(values.str8.len, len < 13 ? 0 : 2);
        assert_int_equal(values.str32.len, 0);
        free(copy);
    }
}

static void the_error_is_sticky(void **state)
{
    struct leat_reader reader;

    (void)state;
    leat_reader_init(&reader, sample, 3);
    assert_int_equal(leat_reader_u32(&reader), 0);
    assert_true(reader.failed);
    assert_int_equal(leat_reader_left(&reader), 0);
    assert_int_equal(leat_reader_u8(&reader), 0);
    assert_int_equal(leat_reader_bytes(&reader, 1).len, 0);
    assert_int_equal(leat_reader_bytes(&reader, 0).len, 0);
    assert_true(reader.failed);
}

static void a_length_beyond_the_end_fails(void **state)
{
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 'a'};
    struct leat_reader reader;
    struct leat_str str;

    (void)state;
    leat_reader_init(&reader, huge, sizeof(huge));
    str = leat_reader_str32(&reader);
    assert_int_equal(str.len, 0);
    assert_non_null(str.ptr);
    assert_true(reader.failed);
    leat_reader_init(&reader, huge, sizeof(huge));
    assert_int_equal(leat_reader_str8(&reader).len, 0);
    assert_true(reader.failed);
    leat_reader_init(&reader, huge, sizeof(huge));
    assert_int_equal(leat_reader_bytes(&reader, SIZE_MAX).len, 0);
    assert_true(reader.failed);
}

static void an_empty_span_needs_no_address(void **state)
{
    struct leat_reader reader;

    (void)state;
    leat_reader_init(&reader, NULL, 0);
    assert_int_equal(leat_reader_left(&reader), 0);
    assert_int_equal(leat_reader_bytes(&reader, 0).len, 0);
    assert_non_null(leat_reader_bytes(&reader, 0).ptr);
    assert_false(reader.failed);
    assert_int_equal(leat_reader_u8(&reader), 0);
    assert_true(reader.failed);
}

static void empty_strings_are_no_error(void **state)
{
    static const uint8_t zeros[5] = {0};
    struct leat_reader reader;

    (void)state;
    leat_reader_init(&reader, zeros, sizeof(zeros));
    assert_int_equal(leat_reader_str8(&reader).len, 0);
    assert_int_equal(leat_reader_str32(&reader).len, 0);
    assert_false(reader.failed);
    assert_int_equal(leat_reader_left(&reader), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_big_endian),
        cmocka_unit_test(what_is_read_is_borrowed),
        cmocka_unit_test(every_truncation_fails),
        cmocka_unit_test(the_error_is_sticky),
        cmocka_unit_test(a_length_beyond_the_end_fails),
        cmocka_unit_test(an_empty_span_needs_no_address),
        cmocka_unit_test(empty_strings_are_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
