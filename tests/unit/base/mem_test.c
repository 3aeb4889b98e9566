/*
 * Tests of base/mem.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static int teardown(void **state)
{
    (void)state;
    leat_mem_fail_after(0);
    return 0;
}

static void assert_zero(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        assert_int_equal(bytes[i], 0);
}

static void what_is_to_be_zeroed_is(void **state)
{
    (void)state;
    /* Dirties what the allocator may hand out again. */
    for (int i = 0; i < 8; i++) {
        char *dirt = leat_mem_alloc(100);

        assert_non_null(dirt);
        memset(dirt, 0xff, 100);
        leat_mem_free(dirt);
    }
    for (int i = 0; i < 8; i++) {
        char *plain = leat_mem_zalloc(100);
        char *flex = leat_mem_zalloc_flex(40, 6, 10);

        assert_non_null(plain);
        assert_non_null(flex);
        assert_zero(plain, 100);
        assert_zero(flex, 100);
        leat_mem_free(plain);
        leat_mem_free(flex);
    }
}

static void a_size_that_overflows_is_refused(void **state)
{
    (void)state;
    assert_null(leat_mem_zalloc_flex(0, SIZE_MAX / 2 + 1, 2));
    assert_null(leat_mem_zalloc_flex(8, SIZE_MAX / 8, 8));
    assert_null(leat_mem_zalloc_flex(1, SIZE_MAX, 1));
    assert_null(leat_mem_zalloc_flex(SIZE_MAX, 1, 1));
    assert_null(leat_mem_dup((struct leat_str){"", SIZE_MAX}));
}

static void nothing_has_an_address_too(void **state)
{
    void *some[3];

    (void)state;
    some[0] = leat_mem_zalloc(0);
    some[1] = leat_mem_alloc(0);
    some[2] = leat_mem_zalloc_flex(0, 0, 8);
    for (int i = 0; i < 3; i++) {
        assert_non_null(some[i]);
        leat_mem_free(some[i]);
    }
}

static void a_copy_is_terminated(void **state)
{
    char *copy = leat_mem_dup((struct leat_str){"a\0bcd", 4});
    char *empty = leat_mem_dup((struct leat_str){NULL, 0});

    (void)state;
    assert_non_null(copy);
    assert_memory_equal(copy, "a\0bc", 5);
    assert_non_null(empty);
    assert_string_equal(empty, "");
    leat_mem_free(copy);
    leat_mem_free(empty);
}

static void null_can_be_freed(void **state)
{
    (void)state;
    leat_mem_free(NULL);
    leat_mem_free_secret(NULL, 0);
    leat_mem_free_secret(NULL, 10);
}

static void a_secret_is_freed_whole(void **state)
{
    char *secret = leat_mem_dup((struct leat_str){"hunter2", 7});

    (void)state;
    assert_non_null(secret);
    leat_mem_free_secret(secret, 8);
}

/* Makes the allocation number WHICH. */
static void *allocate(int which)
{
    switch (which) {
    case 0:
        return leat_mem_zalloc(1);
    case 1:
        return leat_mem_zalloc_flex(1, 1, 1);
    case 2:
        return leat_mem_alloc(1);
    default:
        return leat_mem_dup((struct leat_str){"x", 1});
    }
}

static void the_nth_fails_and_no_other(void **state)
{
    (void)state;
    for (unsigned n = 0; n <= 4; n++) {
        leat_mem_fail_after(n);
        for (int which = 0; which < 12; which++) {
            void *ptr = allocate(which % 4);

            assert_int_equal(ptr == NULL, n > 0 && which == (int)n - 1);
            leat_mem_free(ptr);
        }
    }
}

static void a_failure_can_be_called_off(void **state)
{
    void *ptr;

    (void)state;
    leat_mem_fail_after(1);
    leat_mem_fail_after(0);
    ptr = leat_mem_alloc(1);
    assert_non_null(ptr);
    leat_mem_free(ptr);
}

static void *allocate_often(void *arg)
{
    unsigned *failed = arg;

    for (int i = 0; i < 2000; i++) {
        void *ptr = leat_mem_alloc(1);

        *failed += ptr == NULL;
        leat_mem_free(ptr);
    }
    return NULL;
}

static void threads_count_together(void **state)
{
    pthread_t threads[4];
    unsigned failed[4] = {0};

    (void)state;
    leat_mem_fail_after(7000); /* more than one thread makes, fewer than all */
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_often, &failed[i]), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(failed[0] + failed[1] + failed[2] + failed[3], 1);
}

static void a_buffer_grows_and_keeps_what_it_holds(void **state)
{
    char *buf = NULL;
    size_t cap = 0, len = 0;

    (void)state;
    leat_mem_fail_after(1);
    assert_false(leat_mem_reserve(&buf, len, &cap, 1));
    assert_null(buf);
    leat_mem_fail_after(0);
    for (; len < 10000; len++) {
        assert_true(leat_mem_reserve(&buf, len, &cap, 1));
        assert_true(cap > len);
        buf[len] = (char)len;
    }
    assert_false(leat_mem_reserve(&buf, len, &cap, SIZE_MAX / 2));
    for (size_t i = 0; i < len; i++)
        assert_int_equal(buf[i], (char)i);
    leat_mem_free(buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_grows_and_keeps_what_it_holds),
        cmocka_unit_test(what_is_to_be_zeroed_is),
        cmocka_unit_test(a_size_that_overflows_is_refused),
        cmocka_unit_test(nothing_has_an_address_too),
        cmocka_unit_test(a_copy_is_terminated),
        cmocka_unit_test(null_can_be_freed),
        cmocka_unit_test(a_secret_is_freed_whole),
        cmocka_unit_test_teardown(the_nth_fails_and_no_other, teardown),
        cmocka_unit_test_teardown(a_failure_can_be_called_off, teardown),
        cmocka_unit_test_teardown(threads_count_together, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
