/*
 * Tests of proxy/json_out.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "proxy/json_out.h"

static int setup(void **state)
{
    (void)state;
    leat_json_setup();
    return 0;
}

/* The LEN bytes at BYTES, in memory of exactly that size, must be shown as EXPECTED. */
static void assert_shown(const char *bytes, size_t len, const char *expected)
{
    char *exact = malloc(len > 0 ? len : 1);
    json_t *value;

    assert_non_null(exact);
    memcpy(exact, bytes, len);
    value = leat_json_str((struct leat_str){exact, len});
    assert_non_null(value);
    assert_string_equal(json_string_value(value), expected);
    assert_int_equal(json_string_length(value), strlen(expected));
    json_decref(value);
    free(exact);
}

static void any_bytes_become_text(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *shown;
    } cases[] = {
        {"", 0, ""},
        {"plain /", 7, "plain /"},
        {"a\0b", 3, "a\\x00b"},
        {"\x7f\x1b[1m", 5, "\x7f\x1b[1m"}, /* text, if not for a terminal */
        {"\xc3\xa4", 2, "\xc3\xa4"},
        {"\xc3", 1, "\\xc3"},
        {"\xc3z", 2, "\\xc3z"},
        {"\xc0\x80", 2, "\\xc0\\x80"},          /* overlong */
        {"\xe0\x9f\x80", 3, "\\xe0\\x9f\\x80"}, /* likewise */
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"}, /* half a surrogate pair */
        {"\xed\x9f\xbf", 3, "\xed\x9f\xbf"},
        {"\xe2\x82\xac", 3, "\xe2\x82\xac"},
        {"\xe2\x82", 2, "\\xe2\\x82"},
        {"\xf0\x9f\x90\x87", 4, "\xf0\x9f\x90\x87"},
        {"\xf0\x8f\xbf\xbf", 4, "\\xf0\\x8f\\xbf\\xbf"},
        {"\xf4\x8f\xbf\xbf", 4, "\xf4\x8f\xbf\xbf"},
        {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"}, /* beyond U+10FFFF */
        {"\xf5\x80\x80\x80", 4, "\\xf5\\x80\\x80\\x80"},
        {"\x80\xff", 2, "\\x80\\xff"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_shown(cases[i].bytes, cases[i].len, cases[i].shown);
}

/* Whatever the bytes are, the text is one that jansson reads back. */
static void what_is_made_of_random_bytes_is_valid(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char bytes[12];
        json_error_t error;
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (char)(seed >> 24 | (round % 2 ? 0x80 : 0));
        }
        char *text = leat_json_take_text(leat_json_str((struct leat_str){bytes, sizeof(bytes)}));
        assert_non_null(text);
        json_t *back = json_loads(text, JSON_DECODE_ANY, &error);
        assert_non_null(back);
        json_decref(back);
        leat_mem_free(text);
    }
}

static char *make(void)
{
    json_t *array = json_array();
    struct leat_json json;

    leat_json_begin(&json);
    leat_json_add_count(&json, "count", 7);
    leat_json_add_text(&json, "none", NULL);
    leat_json_add_str(&json, "str", (struct leat_str){"abc", 2});
    leat_json_add_time(&json, "time", 1769850611123);
    if (!leat_json_append(array, json_true())) {
        json_decref(array);
        array = NULL;
    }
    leat_json_add(&json, "array", array);
    return leat_json_take_text(leat_json_end(&json));
}

static void an_object_has_what_was_added(void **state)
{
    char *text = make();

    (void)state;
    assert_string_equal(text, "{\"count\":7,\"none\":null,\"str\":\"ab\","
                              "\"time\":\"2026-01-31T09:10:11.123Z\",\"array\":[true]}");
    leat_mem_free(text);
}

static void every_failing_allocation_yields_nothing(void **state)
{
    char *text = NULL;
    unsigned failed = 0;

    (void)state;
    for (unsigned n = 1; text == NULL; n++) {
        leat_mem_fail_after(n);
        text = make();
        leat_mem_fail_after(0);
        failed += text == NULL;
    }
    assert_true(failed >= 10);
    leat_mem_free(text);
}

/* Wherever in the text memory ends: jansson alone would leave a part out and go on. */
static void a_text_is_whole_or_none(void **state)
{
    char pad[600];

    (void)state;
    memset(pad, 'x', sizeof(pad));
    for (size_t len = 400; len < 600; len++) {
        for (unsigned n = 1; n < 6; n++) {
            struct leat_json json;
            leat_json_begin(&json);
            leat_json_add_str(&json, "pad", (struct leat_str){pad, len});
            leat_json_add_count(&json, "a key that is longer than others", 1);
            json_t *made = leat_json_end(&json);
            leat_mem_fail_after(n);
            char *text = leat_json_take_text(made);
            leat_mem_fail_after(0);
            json_t *back = text != NULL ? json_loads(text, 0, NULL) : NULL;
            if (text != NULL)
                assert_int_equal(json_object_size(back), 2);
            json_decref(back);
            leat_mem_free(text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes_become_text),
        cmocka_unit_test(what_is_made_of_random_bytes_is_valid),
        cmocka_unit_test(an_object_has_what_was_added),
        cmocka_unit_test(a_text_is_whole_or_none),
        cmocka_unit_test(every_failing_allocation_yields_nothing),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
