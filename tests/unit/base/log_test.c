/*
 * Tests of base/log.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/str.h"

struct sink {
    unsigned lines;
    enum leat_log_level level;
    size_t len;
    char line[2000];
};

static void sink_write(void *arg, enum leat_log_level level, struct leat_str line)
{
    struct sink *sink = arg;

    assert_true(line.len < sizeof(sink->line));
    sink->lines++;
    sink->level = level;
    sink->len = line.len;
    memcpy(sink->line, line.ptr, line.len);
    sink->line[line.len] = '\0';
    errno = EPIPE;
}

static void levels_have_names(void **state)
{
    static const char *const names[] = {"error", "warn", "info", "debug", "trace"};

    (void)state;
    for (int i = 0; i < 5; i++) {
        enum leat_log_level found = LEAT_LOG_ERROR;

        assert_string_equal(leat_log_level_name((enum leat_log_level)i), names[i]);
        assert_true(leat_log_level_find(leat_str_of(names[i]), &found));
        assert_int_equal(found, i);
    }
    assert_null(leat_log_levels[5]);
}

static void an_unknown_level_is_not_found(void **state)
{
    static const char *const names[] = {"", "INFO", "inf", "infos", "unknown", "2"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        enum leat_log_level found = LEAT_LOG_DEBUG;

        assert_false(leat_log_level_find(leat_str_of(names[i]), &found));
        assert_int_equal(found, LEAT_LOG_DEBUG);
    }
}

static void only_what_is_on_is_written(void **state)
{
    (void)state;
    for (int set = LEAT_LOG_ERROR; set <= LEAT_LOG_TRACE; set++) {
        for (int level = LEAT_LOG_ERROR; level <= LEAT_LOG_TRACE; level++) {
            struct sink sink = {0};
            struct leat_log log = {.level = set, .write = sink_write, .arg = &sink};

            leat_log_line(&log, (enum leat_log_level)level, "session=%d opened", 7);
            assert_int_equal(leat_log_is_on(&log, (enum leat_log_level)level), level <= set);
            assert_int_equal(sink.lines, level <= set);
            if (level > set)
                continue;
            assert_int_equal(sink.level, level);
            assert_string_equal(sink.line, "session=7 opened");
        }
    }
}

static void a_long_line_is_cut_at_1000_bytes(void **state)
{
    struct sink sink = {0};
    struct leat_log log = {.level = LEAT_LOG_INFO, .write = sink_write, .arg = &sink};

    (void)state;
    leat_log_line(&log, LEAT_LOG_INFO, "%01000d", 5);
    assert_int_equal(sink.len, 1000);
    assert_int_equal(sink.line[999], '5');
    leat_log_line(&log, LEAT_LOG_INFO, "%01001d", 5);
    assert_int_equal(sink.len, 1000);
    assert_int_equal(sink.line[999], '0');
}

static void errno_stays(void **state)
{
    struct sink sink = {0};
    struct leat_log log = {.level = LEAT_LOG_INFO, .write = sink_write, .arg = &sink};

    (void)state;
    errno = EDOM;
    leat_log_line(&log, LEAT_LOG_INFO, "x");
    assert_int_equal(sink.lines, 1);
    assert_int_equal(errno, EDOM);
}

static void a_rate_holds_back_and_tells(void **state)
{
    struct leat_log_rate rate = {0};
    uint32_t held_back = 99;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(leat_log_rate_allows(&rate, 3, 100000, &held_back));
        assert_int_equal(held_back, 0);
    }
    for (int i = 0; i < 4; i++) {
        held_back = 99;
        assert_false(leat_log_rate_allows(&rate, 3, 109999, &held_back));
        assert_int_equal(held_back, 0);
    }
    assert_true(leat_log_rate_allows(&rate, 3, 110000, &held_back));
    assert_int_equal(held_back, 4);
    assert_true(leat_log_rate_allows(&rate, 3, 110000, &held_back));
    assert_int_equal(held_back, 0);
    assert_true(leat_log_rate_allows(&rate, 3, 110000, &held_back));
    assert_false(leat_log_rate_allows(&rate, 3, 110000, &held_back));
    assert_true(leat_log_rate_allows(&rate, 3, 999999, &held_back));
    assert_int_equal(held_back, 1);
}

static void a_rate_works_from_the_first_moment(void **state)
{
    struct leat_log_rate rate = {0};
    uint32_t held_back;

    (void)state;
    assert_true(leat_log_rate_allows(&rate, 1, 0, &held_back));
    assert_false(leat_log_rate_allows(&rate, 1, 1, &held_back));
    assert_true(leat_log_rate_allows(&rate, 1, 10000, &held_back));
    assert_int_equal(held_back, 1);
}

static void a_burst_of_0_allows_nothing(void **state)
{
    struct leat_log_rate rate = {0};
    uint32_t held_back;

    (void)state;
    assert_false(leat_log_rate_allows(&rate, 0, 0, &held_back));
    assert_false(leat_log_rate_allows(&rate, 0, 50000, &held_back));
    assert_int_equal(held_back, 0);
}

static void a_clock_that_lags_opens_no_window(void **state)
{
    struct leat_log_rate rate = {0};
    uint32_t held_back;

    (void)state;
    assert_true(leat_log_rate_allows(&rate, 1, 20000, &held_back));
    assert_false(leat_log_rate_allows(&rate, 1, 19999, &held_back));
    assert_false(leat_log_rate_allows(&rate, 1, 20001, &held_back));
}

#define THREADS 4
#define WINDOWS 50
#define TRIES 100

struct counts {
    struct leat_log_rate *rate;
    uint32_t allowed, told;
};

static void *knock(void *arg)
{
    struct counts *counts = arg;

    for (uint64_t i = 0; i < (uint64_t)WINDOWS * TRIES; i++) {
        uint32_t held_back;

        counts->allowed += leat_log_rate_allows(counts->rate, 5, i / TRIES * 10000, &held_back);
        counts->told += held_back;
    }
    return NULL;
}

static void threads_share_one_burst(void **state)
{
    struct leat_log_rate rate = {0};
    struct counts counts[THREADS] = {{0}};
    pthread_t threads[THREADS];
    uint32_t allowed = 0, told = 0, held_back;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        counts[i].rate = &rate;
        assert_int_equal(pthread_create(&threads[i], NULL, knock, &counts[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        allowed += counts[i].allowed;
        told += counts[i].told;
    }
    assert_int_equal(allowed, WINDOWS * 5);
    assert_true(leat_log_rate_allows(&rate, 5, WINDOWS * 10000, &held_back));
    assert_int_equal(allowed + told + held_back, THREADS * WINDOWS * TRIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(an_unknown_level_is_not_found),
        cmocka_unit_test(only_what_is_on_is_written),
        cmocka_unit_test(a_long_line_is_cut_at_1000_bytes),
        cmocka_unit_test(errno_stays),
        cmocka_unit_test(a_rate_holds_back_and_tells),
        cmocka_unit_test(a_rate_works_from_the_first_moment),
        cmocka_unit_test(a_burst_of_0_allows_nothing),
        cmocka_unit_test(a_clock_that_lags_opens_no_window),
        cmocka_unit_test(threads_share_one_burst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
