/*
 * Tests of base/str.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

static const struct leat_str empty = {NULL, 0};

static void the_length_leaves_out_the_nul(void **state)
{
    static const struct leat_str literal = LEAT_STR_INIT("amqp");

    (void)state;
    assert_int_equal(leat_str_of("amqp").len, 4);
    assert_int_equal(literal.len, 4);
    assert_int_equal(leat_str_of("").len, 0);
    assert_true(leat_str_equal(leat_str_of("amqp"), literal));
}

static void equal_means_every_byte(void **state)
{
    (void)state;
    assert_true(leat_str_equal((struct leat_str){"a\0b", 3}, (struct leat_str){"a\0b", 3}));
    assert_false(leat_str_equal((struct leat_str){"a\0b", 3}, (struct leat_str){"a\0c", 3}));
    assert_false(leat_str_equal(leat_str_of("ab"), leat_str_of("abc")));
    assert_false(leat_str_equal(leat_str_of("abc"), leat_str_of("ab")));
    assert_false(leat_str_equal(leat_str_of("ab"), leat_str_of("AB")));
    assert_true(leat_str_equal(empty, leat_str_of("")));
    assert_true(leat_str_equal(empty, empty));
    assert_false(leat_str_equal(empty, leat_str_of("a")));
    assert_false(leat_str_equal(leat_str_of("a"), empty));
}

static void a_prefix_is_not_longer(void **state)
{
    (void)state;
    assert_true(leat_str_starts(leat_str_of("queue"), leat_str_of("que")));
    assert_true(leat_str_starts(leat_str_of("queue"), leat_str_of("queue")));
    assert_false(leat_str_starts(leat_str_of("queue"), leat_str_of("queues")));
    assert_false(leat_str_starts(leat_str_of("queue"), leat_str_of("Que")));
    assert_true(leat_str_starts(leat_str_of("queue"), empty));
    assert_true(leat_str_starts(empty, empty));
    assert_false(leat_str_starts(empty, leat_str_of("q")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_length_leaves_out_the_nul),
        cmocka_unit_test(equal_means_every_byte),
        cmocka_unit_test(a_prefix_is_not_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
