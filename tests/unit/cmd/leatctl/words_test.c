/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "words.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct amount {
    uint64_t number;
    const char *words;
};

static void check(void (*add)(struct leat_text *text, uint64_t number),
                  const struct amount *amounts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char buf[64];
        struct leat_text text;
        leat_text_init(&text, buf, sizeof(buf));
        add(&text, amounts[i].number);
        assert_string_equal(buf, amounts[i].words);
    }
}

static void sizes(void **state)
{
    static const struct amount amounts[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1535, "1.4 KiB"},
        {1536, "1.5 KiB"},
        {99 * 1024 + 1023, "99.9 KiB"},
        {100 * 1024, "100 KiB"},
        {1024 * 1024 - 1, "1023 KiB"},
        {1024 * 1024, "1.0 MiB"},
        {UINT64_C(5) << 40, "5.0 TiB"},
        {UINT64_MAX, "15.9 EiB"},
    };

    (void)state;
    check(leat_words_add_size, amounts, COUNT(amounts));
}

static void durations(void **state)
{
    static const struct amount amounts[] = {
        {0, "0s"},          {59, "59s"},
        {60, "1m0s"},       {192, "3m12s"},
        {3599, "59m59s"},   {3600, "1h0m"},
        {86399, "23h59m"},  {86400, "1d0h"},
        {1051200, "12d4h"}, {UINT64_MAX, "213503982334601d7h"},
    };

    (void)state;
    check(leat_words_add_duration, amounts, COUNT(amounts));
}

static void expect_plain(const char *value, const char *words)
{
    char buf[128];
    struct leat_text text;

    leat_text_init(&text, buf, sizeof(buf));
    leat_words_add_plain(&text, leat_str_of(value));
    assert_string_equal(buf, words);
}

static void what_steers_a_terminal_is_escaped(void **state)
{
    (void)state;
    expect_plain("", "");
    expect_plain("plain %s \\ \"", "plain %s \\ \"");
    expect_plain("\x1b[2J\n\t\x7f", "\\x1b[2J\\x0a\\x09\\x7f");
    expect_plain("\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0");
    expect_plain("\xe2\x80\x8a\xe2\x80\x8b\xe2\x80\xae", "\xe2\x80\x8a\\u200b\\u202e");
    expect_plain("\xd8\x9c\xef\xbb\xbf", "\\u061c\\ufeff");
    expect_plain("\xf0\x9f\x90\x87", "\xf0\x9f\x90\x87");
}

/* With room for every number of bytes what there is ends with a whole character or escape. */
static void it_is_cut_between_characters(void **state)
{
    static const struct leat_str value = LEAT_STR_INIT("a\xc3\xbc\x1b\xf0\x9f\x90\x87z");
    static const char *const cuts[] = {"",
                                       "a",
                                       "a",
                                       "a\xc3\xbc",
                                       "a\xc3\xbc",
                                       "a\xc3\xbc",
                                       "a\xc3\xbc",
                                       "a\xc3\xbc\\x1b",
                                       "a\xc3\xbc\\x1b",
                                       "a\xc3\xbc\\x1b",
                                       "a\xc3\xbc\\x1b",
                                       "a\xc3\xbc\\x1b\xf0\x9f\x90\x87",
                                       "a\xc3\xbc\\x1b\xf0\x9f\x90\x87z"};

    (void)state;
    for (size_t room = 0; room < COUNT(cuts); room++) {
        char buf[16];
        struct leat_text text;
        leat_text_init(&text, buf, room + 1);
        leat_words_add_plain(&text, value);
        assert_string_equal(buf, cuts[room]);
    }
}

static void width_counts_characters(void **state)
{
    (void)state;
    assert_int_equal(leat_words_width(leat_str_of("")), 0);
    assert_int_equal(leat_words_width(leat_str_of("a\xc3\xbc\xf0\x9f\x90\x87")), 3);
    /* Not UTF-8: wrong, but within bounds. */
    assert_int_equal(leat_words_width(leat_str_of("\x80\x80\x80")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(durations),
        cmocka_unit_test(what_steers_a_terminal_is_escaped),
        cmocka_unit_test(it_is_cut_between_characters),
        cmocka_unit_test(width_counts_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
