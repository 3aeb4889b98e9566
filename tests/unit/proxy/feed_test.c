/*
 * Tests of proxy/feed.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "loop/loop.h"
#include "proxy/feed.h"

struct fixture {
    struct leat_loop *loop;
    struct leat_feed *feed;
    unsigned told;
};

static void on_feed(void *arg)
{
    struct fixture *f = arg;

    f->told++;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_int_equal(leat_loop_new(&f->loop, NULL), LEAT_OK);
    f->feed = leat_feed_new(f->loop, on_feed, f);
    assert_non_null(f->feed);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    leat_loop_turn(f->loop, 0);
    leat_feed_free(f->feed);
    leat_loop_free(f->loop);
    free(f);
    return 0;
}

static void put(struct fixture *f, const char *text)
{
    leat_feed_put(f->feed, text, strlen(text));
}

static void assert_takes(struct fixture *f, const char *expected)
{
    size_t len = 0;
    char *text = leat_feed_take(f->feed, &len);

    assert_non_null(text);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(text, expected, len);
    leat_mem_free(text);
}

static void assert_takes_nothing(struct fixture *f)
{
    size_t len = 0;

    assert_null(leat_feed_take(f->feed, &len));
}

static void lines_come_in_order_and_are_told_of_once(void **state)
{
    struct fixture *f = *state;

    put(f, "one");
    put(f, "two");
    assert_int_equal(f->told, 0);
    leat_loop_turn(f->loop, 0);
    assert_int_equal(f->told, 1);
    assert_takes(f, "one\ntwo\n");
    assert_takes_nothing(f);
    put(f, "three");
    leat_loop_turn(f->loop, 0);
    assert_int_equal(f->told, 2);
    assert_takes(f, "three\n");
}

/* Fills the feed with lines of 1,000 bytes; returns how many it took. */
static unsigned fill(struct fixture *f)
{
    char line[1000];

    memset(line, 'x', sizeof(line));
    for (unsigned i = 0; i < 400; i++)
        leat_feed_put(f->feed, line, sizeof(line) - 1);
    return LEAT_FEED_MAX / sizeof(line);
}

static void what_does_not_fit_is_counted(void **state)
{
    struct fixture *f = *state;
    unsigned fitted = fill(f);
    char lost[64];
    size_t len = 0;
    char *text = leat_feed_take(f->feed, &len);

    int lost_len =
        snprintf(lost, sizeof(lost), "{\"event\":\"lost\",\"lines\":%u}\n", 400 - fitted);

    /* It is told at once, not when another line comes. */
    assert_int_equal(len, (size_t)fitted * 1000 + (size_t)lost_len);
    assert_memory_equal(text + len - (size_t)lost_len, lost, (size_t)lost_len);
    leat_mem_free(text);
    put(f, "next");            /* what was taken has not gone out: but this fits beside it */
    assert_takes(f, "next\n"); /* it is told once */
}

static void what_is_lost_wakes_nobody(void **state)
{
    struct fixture *f = *state;
    unsigned fitted = fill(f);
    unsigned long lost;
    size_t len = 0;
    char *text;

    leat_loop_turn(f->loop, 0);
    assert_int_equal(f->told, 1);
    assert_false(leat_feed_takes_more(f->feed)); /* counts */
    put(f, "even if it would fit");
    leat_loop_turn(f->loop, 0);
    assert_int_equal(f->told, 1);
    text = leat_feed_take(f->feed, &len);
    lost = strtoul((char *)memmem(text, len, "lines\":", 7) + 7, NULL, 10);
    assert_int_equal(lost, 400 - fitted + 2);
    leat_mem_free(text);
    assert_true(leat_feed_takes_more(f->feed));
}

static void what_was_taken_counts_until_more_is(void **state)
{
    struct fixture *f = *state;
    unsigned fitted = fill(f);
    size_t len = 0;
    char *text = leat_feed_take(f->feed, &len);

    leat_mem_free(text);
    (void)fill(f);
    assert_takes(f, "{\"event\":\"lost\",\"lines\":400}\n"); /* and so it has gone out */
    (void)fill(f);
    text = leat_feed_take(f->feed, &len);
    assert_true(len <= LEAT_FEED_MAX + 64 && len >= (size_t)(fitted - 1) * 1000);
    leat_mem_free(text);
}

static void the_last_line_fits_always(void **state)
{
    struct fixture *f = *state;
    size_t len = 0;
    char *text;

    (void)fill(f);
    leat_feed_end(f->feed, "last", 4);
    leat_feed_put(f->feed, "too late", 8);
    assert_false(leat_feed_is_over(f->feed));
    text = leat_feed_take(f->feed, &len);
    assert_memory_equal(text + len - 5, "last\n", 5);
    assert_non_null(memmem(text, len, "{\"event\":\"lost\"", 15));
    leat_mem_free(text);
    assert_true(leat_feed_is_over(f->feed));
    assert_takes_nothing(f);
}

static void without_memory_lines_are_lost(void **state)
{
    struct fixture *f = *state;

    leat_mem_fail_after(1);
    put(f, "one");
    leat_mem_fail_after(0);
    leat_feed_put(f->feed, NULL, 0);
    leat_loop_turn(f->loop, 0);
    assert_int_equal(f->told, 1); /* there is nothing else that would make anybody look */
    assert_takes(f, "{\"event\":\"lost\",\"lines\":2}\n");
    put(f, "three");
    assert_takes(f, "three\n");
    leat_mem_fail_after(1);
    assert_null(leat_feed_new(f->loop, on_feed, f));
    leat_mem_fail_after(0);
}

#define LINES 20000u

static void *put_many(void *arg)
{
    struct fixture *f = arg;

    for (unsigned i = 0; i < LINES; i++)
        leat_feed_put(f->feed, "line", 4);
    return NULL;
}

/* Takes what there is; returns how many lines that tells of. */
static unsigned long take_count(struct fixture *f)
{
    unsigned long count = 0;
    size_t len = 0;
    char *text = leat_feed_take(f->feed, &len);

    for (char *at = text, *end; at != NULL && at < text + len; at = end + 1) {
        end = memchr(at, '\n', len);
        assert_non_null(end);
        count += *at == 'l' ? 1 : strtoul(strstr(at, "lines\":") + 7, NULL, 10);
    }
    leat_mem_free(text);
    return count;
}

static void every_line_of_every_thread_comes_or_is_counted(void **state)
{
    struct fixture *f = *state;
    unsigned long count = 0;
    pthread_t threads[2];

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, f), 0);
    for (int i = 0; i < 100; i++) {
        leat_loop_turn(f->loop, 1);
        count += take_count(f);
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    count += take_count(f);
    assert_int_equal(count, 2 * LINES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_come_in_order_and_are_told_of_once),
        TEST(what_does_not_fit_is_counted),
        TEST(what_is_lost_wakes_nobody),
        TEST(what_was_taken_counts_until_more_is),
        TEST(the_last_line_fits_always),
        TEST(without_memory_lines_are_lost),
        TEST(every_line_of_every_thread_comes_or_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
