/*
 * Tests of base/error.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/str.h"

static void every_status_has_its_name(void **state)
{
    static const char *const names[] = {
        "LEAT_OK",       "LEAT_ENOMEM",    "LEAT_EUSAGE",  "LEAT_EAGAIN",     "LEAT_ETLS",
        "LEAT_EVERIFY",  "LEAT_EIO",       "LEAT_ECLOSED", "LEAT_ETRUNCATED", "LEAT_ERESET",
        "LEAT_ETIMEOUT", "LEAT_EPROTOCOL", "LEAT_ELIMIT",  "LEAT_ENOTFOUND",  "LEAT_ECANCELLED",
    };

    (void)state;
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
        assert_string_equal(leat_status_name((enum leat_status) - i), names[i]);
    assert_string_equal(leat_status_name((enum leat_status) - 1000), "LEAT_UNKNOWN");
    assert_string_equal(leat_status_name((enum leat_status)1), "LEAT_UNKNOWN");
}

static void it_is_filled_and_the_status_returned(void **state)
{
    struct leat_error err;

    (void)state;
    memset(&err, 0xaa, sizeof(err));
    assert_int_equal(leat_error_set(&err, LEAT_EUSAGE, 0, "%s: line %d", "leat.yaml", 7),
                     LEAT_EUSAGE);
    assert_int_equal(err.status, LEAT_EUSAGE);
    assert_int_equal(err.sys, 0);
    assert_string_equal(err.text, "leat.yaml: line 7");
}

static void an_errno_is_explained(void **state)
{
    struct leat_error err;

    (void)state;
    assert_int_equal(leat_error_set(&err, LEAT_EIO, ECONNREFUSED, "connect"), LEAT_EIO);
    assert_int_equal(err.sys, ECONNREFUSED);
    assert_string_equal(err.text, "connect: Connection refused");
}

static void what_was_expected_is_said_and_what_came_quoted(void **state)
{
    struct leat_error err;
    char text[1000];

    (void)state;
    assert_int_equal(leat_error_set_expected(&err, "a name", leat_str_of("a\n\"")), LEAT_EUSAGE);
    assert_int_equal(err.status, LEAT_EUSAGE);
    assert_string_equal(err.text, "expected a name, got \"a\\x0a\\\"\"");
    memset(text, 'x', sizeof(text));
    (void)leat_error_set_expected(&err, "a name", (struct leat_str){text, sizeof(text)});
    assert_int_equal(strlen(err.text), strlen("expected a name, got ") + 159);
}

static void nobody_needs_to_listen(void **state)
{
    (void)state;
    assert_int_equal(leat_error_set(NULL, LEAT_EIO, EPIPE, "send"), LEAT_EIO);
}

static void a_long_text_is_cut(void **state)
{
    struct {
        struct leat_error err;
        char guard[8];
    } box;
    char text[1000];

    (void)state;
    memset(&box, 0x55, sizeof(box));
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(leat_error_set(&box.err, LEAT_EIO, EPIPE, "%s", text), LEAT_EIO);
    assert_int_equal(strlen(box.err.text), sizeof(box.err.text) - 1);
    assert_memory_equal(box.err.text, text, sizeof(box.err.text) - 1);
    assert_memory_equal(box.guard, "\x55\x55\x55\x55\x55\x55\x55\x55", 8);
}

static void a_cause_can_be_wrapped_in_place(void **state)
{
    struct leat_error err;

    (void)state;
    (void)leat_error_set(&err, LEAT_EIO, 0, "cause");
    (void)leat_error_set(&err, LEAT_EIO, 0, "what failed: %s", err.text);
    assert_string_equal(err.text, "what failed: cause");
}

static void errno_stays(void **state)
{
    struct leat_error err;

    (void)state;
    errno = EDOM;
    (void)leat_error_set(&err, LEAT_EIO, 99999, "no such errno");
    assert_int_equal(errno, EDOM);
    assert_string_equal(err.text, "no such errno: Unknown error 99999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(it_is_filled_and_the_status_returned),
        cmocka_unit_test(an_errno_is_explained),
        cmocka_unit_test(what_was_expected_is_said_and_what_came_quoted),
        cmocka_unit_test(nobody_needs_to_listen),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(a_cause_can_be_wrapped_in_place),
        cmocka_unit_test(errno_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
