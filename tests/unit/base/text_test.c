/*
 * Tests of base/text.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "base/str.h"
#include "base/text.h"

static void it_grows_as_printf_prints(void **state)
{
    char buf[40];
    struct leat_text text;

    (void)state;
    leat_text_init(&text, buf, sizeof(buf));
    assert_string_equal(buf, "");
    leat_text_add(&text, "session=%d", 12);
    leat_text_add(&text, " %s", "opened");
    assert_string_equal(buf, "session=12 opened");
    assert_int_equal(text.len, strlen(buf));
    assert_false(text.is_cut);
}

static void it_is_cut_at_the_end_of_the_buffer(void **state)
{
    (void)state;
    for (size_t cap = 1; cap <= 12; cap++) {
        char buf[16];
        struct leat_text text;

        memset(buf, 0x55, sizeof(buf));
        leat_text_init(&text, buf, cap);
        leat_text_add(&text, "%s", "0123");
        leat_text_add(&text, "%s", "456789");
        assert_int_equal(text.len, cap > 10 ? 10 : cap - 1);
        assert_int_equal(text.is_cut, cap <= 10);
        assert_memory_equal(buf, "0123456789", text.len);
        assert_int_equal(buf[text.len], 0);
        for (size_t i = cap; i < sizeof(buf); i++)
            assert_int_equal(buf[i], 0x55);
    }
}

static void what_is_special_is_escaped(void **state)
{
    char buf[100];
    struct leat_text text;

    (void)state;
    leat_text_init(&text, buf, sizeof(buf));
    leat_text_add(&text, "vhost=");
    leat_text_add_quoted(&text, (struct leat_str){"a\"b\\c\nd\0e\x7f~ \x80\xff\x1f", 15});
    assert_string_equal(buf, "vhost=\"a\\\"b\\\\c\\x0ad\\x00e\\x7f~ \\x80\\xff\\x1f\"");
    leat_text_init(&text, buf, sizeof(buf));
    leat_text_add_quoted(&text, (struct leat_str){NULL, 0});
    assert_string_equal(buf, "\"\"");
    assert_int_equal(text.len, 2);
}

/* Whether LEN bytes at TEXT are a quote and then whole characters, closed only at the end. */
static bool is_whole(const char *text, size_t len)
{
    size_t i = 1;

    if (len > 0 && text[0] != '"')
        return false;
    while (i < len) {
        if (text[i] == '"')
            return i + 1 == len;
        if (text[i] == '\\')
            i += i + 1 < len && text[i + 1] == 'x' ? 4 : 2;
        else
            i++;
    }
    return len == 0 || i == len;
}

static void a_quoted_value_is_cut_between_characters(void **state)
{
    static const struct leat_str value = LEAT_STR_INIT("a\"\x01z\\\xff\"b");
    static const char whole[] = "\"a\\\"\\x01z\\\\\\xff\\\"b\"";

    (void)state;
    for (size_t cap = 1; cap <= sizeof(whole); cap++) {
        char buf[sizeof(whole) + 4];
        struct leat_text text;
        size_t len;

        memset(buf, 0x55, sizeof(buf));
        leat_text_init(&text, buf, cap);
        leat_text_add_quoted(&text, value);
        assert_int_equal(text.is_cut, cap < sizeof(whole));
        assert_true(text.len < cap && text.len + 4 >= cap);
        assert_memory_equal(buf, whole, text.len);
        assert_int_equal(buf[text.len], 0);
        assert_true(is_whole(buf, text.len));
        len = text.len;
        leat_text_add(&text, "x");
        leat_text_add_quoted(&text, value);
        if (cap < sizeof(whole))
            assert_int_equal(text.len, len);
        for (size_t i = cap; i < sizeof(buf); i++)
            assert_int_equal(buf[i], 0x55);
    }
}

static void nothing_follows_a_cut(void **state)
{
    char buf[8];
    struct leat_text text;

    (void)state;
    leat_text_init(&text, buf, sizeof(buf));
    leat_text_add_quoted(&text, (struct leat_str){"abc\n", 4});
    leat_text_add(&text, "=1");
    assert_string_equal(buf, "\"abc");
}

static void errno_stays(void **state)
{
    char buf[8];
    struct leat_text text;

    (void)state;
    leat_text_init(&text, buf, sizeof(buf));
    errno = EDOM;
    leat_text_add(&text, "ab");
    leat_text_add(&text, "c%lc", (wint_t)0xd800); /* no character: printf fails with EILSEQ */
    assert_int_equal(errno, EDOM);
    assert_string_equal(buf, "ab");
    assert_true(text.is_cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_as_printf_prints),
        cmocka_unit_test(it_is_cut_at_the_end_of_the_buffer),
        cmocka_unit_test(what_is_special_is_escaped),
        cmocka_unit_test(a_quoted_value_is_cut_between_characters),
        cmocka_unit_test(nothing_follows_a_cut),
        cmocka_unit_test(errno_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
