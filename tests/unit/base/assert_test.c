/*
 * Tests of base/assert.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"

/* Runs LEAT_ASSERT(HOLDS) in a child. Returns its wait status and what it printed. */
static int run_assert(int holds, char *printed, size_t cap)
{
    int ends[2], status;
    size_t len = 0;
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)dup2(ends[1], STDERR_FILENO);
        LEAT_ASSERT(holds == 1);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], printed + len, cap - 1 - len)) > 0)
        len += (size_t)got;
    printed[len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void what_holds_passes_silently(void **state)
{
    char printed[4096];

    (void)state;
    assert_int_equal(run_assert(1, printed, sizeof(printed)), 0);
    assert_string_equal(printed, "");
}

static void what_does_not_hold_is_named_and_ends_the_process(void **state)
{
    char printed[4096];

    (void)state;
    assert_int_not_equal(run_assert(0, printed, sizeof(printed)), 0);
    assert_non_null(strstr(printed, "assert_test.c:"));
    assert_non_null(strstr(printed, ": assertion failed: holds == 1\n"));
}

static void it_evaluates_its_expression_once(void **state)
{
    int count = 0;

    (void)state;
    LEAT_ASSERT(++count == 1);
    assert_int_equal(count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_passes_silently),
        cmocka_unit_test(what_does_not_hold_is_named_and_ends_the_process),
        cmocka_unit_test(it_evaluates_its_expression_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
