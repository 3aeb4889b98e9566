/*
 * Tests of base/parse.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/parse.h"
#include "base/str.h"

#define UNTOUCHED UINT64_C(0xdeadbeef)

typedef bool parse_fn(struct leat_str text, uint64_t *out);

static void assert_parses(parse_fn *parse, const char *text, uint64_t expected)
{
    uint64_t value = UNTOUCHED;

    if (!parse(leat_str_of(text), &value))
        fail_msg("refused: \"%s\"", text);
    assert_int_equal(value, expected);
}

static void assert_refuses(parse_fn *parse, const char *text)
{
    uint64_t value = UNTOUCHED;

    if (parse(leat_str_of(text), &value))
        fail_msg("accepted: \"%s\"", text);
    assert_int_equal(value, UNTOUCHED);
}

static void numbers(void **state)
{
    static const char *const wrong[] = {
        "",
        " ",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1\n",
        "0x10",
        "1.0",
        "1e3",
        "a",
        "1a",
        "1,000",
        "--",
        "/",
        ":",
        "18446744073709551616",
        "18446744073709551620",
        "99999999999999999999",
        "184467440737095516150",
    };

    (void)state;
    assert_parses(leat_parse_u64, "0", 0);
    assert_parses(leat_parse_u64, "7", 7);
    assert_parses(leat_parse_u64, "0010", 10);
    assert_parses(leat_parse_u64, "1234567890", 1234567890);
    assert_parses(leat_parse_u64, "18446744073709551614", UINT64_MAX - 1);
    assert_parses(leat_parse_u64, "18446744073709551615", UINT64_MAX);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_refuses(leat_parse_u64, wrong[i]);
}

static void only_the_given_bytes_count(void **state)
{
    uint64_t value = UNTOUCHED;

    (void)state;
    assert_true(leat_parse_u64((struct leat_str){"1234", 2}, &value));
    assert_int_equal(value, 12);
    assert_true(leat_parse_duration_ms((struct leat_str){"5ms", 3}, &value));
    assert_int_equal(value, 5);
    assert_false(leat_parse_duration_ms((struct leat_str){"5ms", 1}, &value));
    assert_false(leat_parse_u64((struct leat_str){"1\0", 2}, &value));
    assert_false(leat_parse_u64((struct leat_str){NULL, 0}, &value));
    assert_false(leat_parse_duration_ms((struct leat_str){NULL, 0}, &value));
    assert_false(leat_parse_size((struct leat_str){NULL, 0}, &value));
    assert_int_equal(value, 5);
}

static void durations(void **state)
{
    static const char *const wrong[] = {
        "",
        "1",
        "00",
        "ms",
        "s",
        "-1s",
        "+1s",
        " 1s",
        "1s ",
        "1 s",
        "1S",
        "1sec",
        "1d",
        "1us",
        "1.5s",
        "1h30m",
        "1m1",
        "1mss",
        "18446744073709551616ms",
        "18446744073709552s",
        "307445734561826m",
        "5124095576031h",
    };

    (void)state;
    assert_parses(leat_parse_duration_ms, "0", 0);
    assert_parses(leat_parse_duration_ms, "0s", 0);
    assert_parses(leat_parse_duration_ms, "500ms", 500);
    assert_parses(leat_parse_duration_ms, "10s", 10000);
    assert_parses(leat_parse_duration_ms, "3m", 180000);
    assert_parses(leat_parse_duration_ms, "2h", 7200000);
    assert_parses(leat_parse_duration_ms, "18446744073709551615ms", UINT64_MAX);
    assert_parses(leat_parse_duration_ms, "18446744073709551s", UINT64_C(18446744073709551000));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_refuses(leat_parse_duration_ms, wrong[i]);
}

static void sizes(void **state)
{
    static const char *const wrong[] = {
        "",
        "KiB",
        "-1",
        "1 KiB",
        "1K",
        "1kB",
        "1kib",
        "1KB",
        "1TiB",
        "1KiBs",
        "1Ki",
        "1B",
        "1.5MiB",
        "18446744073709551616",
        "18014398509481984KiB",
        "17592186044416MiB",
        "17179869184GiB",
    };

    (void)state;
    assert_parses(leat_parse_size, "0", 0);
    assert_parses(leat_parse_size, "1000", 1000);
    assert_parses(leat_parse_size, "64KiB", 65536);
    assert_parses(leat_parse_size, "3MiB", 3 * 1048576);
    assert_parses(leat_parse_size, "2GiB", UINT64_C(2147483648));
    assert_parses(leat_parse_size, "17179869183GiB", UINT64_C(17179869183) << 30);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_refuses(leat_parse_size, wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(only_the_given_bytes_count),
        cmocka_unit_test(durations),
        cmocka_unit_test(sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
