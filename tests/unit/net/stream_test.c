/*
 * Tests of net/stream.h: plain streams against sockets of the test's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/stream_user.h"

#define FLUSH_MS 5000
#define LINGER_MS 3000

struct fixture {
    struct leat_loop *loop;
    struct test_user user;
    int peer; /* the other end; -1 once closed */
    uint64_t clock_ms;
};

static void start(struct fixture *f, void (*pair)(int *))
{
    int fds[2];
    struct leat_stream_user user = test_user_of(&f->user);

    pair(fds);
    f->peer = fds[1];
    f->user.in_call = true;
    assert_int_equal(leat_stream_accept(f->loop, fds[0], &user, &f->user.stream), LEAT_OK);
    f->user.in_call = false;
}

static void start_open(struct fixture *f, void (*pair)(int *))
{
    start(f, pair);
    TURN_UNTIL(f->loop, f->user.told[TEST_OPENED] > 0);
    test_settle(f->loop);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->peer = -1;
    *state = f;
    if (leat_loop_new(&f->loop, NULL) != LEAT_OK)
        return -1;
    test_user_init(&f->user, f->loop);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->peer >= 0)
        (void)close(f->peer);
    test_user_fini(&f->user);
    leat_loop_free(f->loop);
    free(f);
    return 0;
}

static void peer_send(struct fixture *f, const char *text)
{
    assert_int_equal(send(f->peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void peer_close(struct fixture *f)
{
    (void)close(f->peer);
    f->peer = -1;
}

static void assert_got(struct fixture *f, const char *text)
{
    assert_int_equal(f->user.got_len, strlen(text));
    assert_memory_equal(f->user.got, text, strlen(text));
}

static void opens_once_and_reads_what_came(void **state)
{
    struct fixture *f = *state;
    start(f, test_tcp_pair);
    peer_send(f, "hello");
    TURN_UNTIL(f->loop, f->user.got_len == 5);
    test_settle(f->loop);
    assert_got(f, "hello");
    assert_int_equal(f->user.told[TEST_OPENED], 1);
    assert_int_equal(f->user.told[TEST_CONNECTED], 0);
    assert_string_equal(leat_stream_tls(f->user.stream).version, "");
    struct leat_addr addr;
    leat_stream_peer_addr(f->user.stream, &addr);
    assert_true(leat_addr_is_loopback(&addr));
    leat_stream_local_addr(f->user.stream, &addr);
    assert_true(leat_addr_is_loopback(&addr));
}

static void a_small_cap_reads_on_without_new_bytes(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    f->user.cap = 1;
    peer_send(f, "hello");
    TURN_UNTIL(f->loop, f->user.got_len == 5);
    assert_got(f, "hello");
}

static void an_idle_stream_causes_no_turns(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    peer_send(f, "hello");
    TURN_UNTIL(f->loop, f->user.got_len == 5);
    test_settle(f->loop);
    /* A turn that may wait does: it is counted as a wake-up, not as a poll. */
    uint64_t polls = leat_loop_counters(f->loop)->polls;
    leat_loop_turn(f->loop, 1);
    assert_int_equal(leat_loop_counters(f->loop)->polls, polls);
}

static void a_paused_reader_is_not_called(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    leat_stream_pause(f->user.stream);
    assert_true(leat_stream_is_paused(f->user.stream));
    peer_send(f, "hello");
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_READABLE], 0);
    leat_stream_resume(f->user.stream);
    TURN_UNTIL(f->loop, f->user.got_len == 5);
}

static void the_end_comes_after_the_bytes_and_once(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    f->user.cap = 2;
    peer_send(f, "hello");
    (void)shutdown(f->peer, SHUT_WR);
    TURN_UNTIL(f->loop, f->user.end != LEAT_OK);
    assert_got(f, "hello");
    assert_int_equal(f->user.end, LEAT_ECLOSED);
    unsigned readable = f->user.told[TEST_READABLE];
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_READABLE], readable);
    assert_int_equal(f->user.told[TEST_HUP], 0);
    assert_int_equal(f->user.told[TEST_FAILED], 0);
    assert_int_equal(test_user_read(&f->user), LEAT_ECLOSED);
    /* The other direction still works. */
    test_user_write(&f->user, "bye", 3);
    char buf[8];
    assert_int_equal(recv(f->peer, buf, sizeof(buf), 0), 3);
}

static void a_paused_reader_is_told_the_end_once(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    leat_stream_pause(f->user.stream);
    peer_send(f, "hello");
    (void)shutdown(f->peer, SHUT_WR);
    TURN_UNTIL(f->loop, f->user.told[TEST_HUP] > 0);
    leat_stream_pause(f->user.stream);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_HUP], 1);
    leat_stream_resume(f->user.stream);
    TURN_UNTIL(f->loop, f->user.end == LEAT_ECLOSED);
    assert_got(f, "hello");
}

static void who_pauses_after_the_end_came_is_told_too(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    f->user.cap = 1;
    f->user.pauses = true;
    peer_send(f, "hello");
    (void)shutdown(f->peer, SHUT_WR);
    TURN_UNTIL(f->loop, f->user.told[TEST_HUP] > 0);
    assert_int_equal(f->user.got_len, 1);
    assert_int_equal(f->user.end, LEAT_OK);
}

static void a_paused_reader_is_told_of_a_reset_once(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    leat_stream_pause(f->user.stream);
    peer_send(f, "hello");
    test_reset(f->peer);
    f->peer = -1;
    TURN_UNTIL(f->loop, f->user.told[TEST_FAILED] > 0);
    leat_stream_pause(f->user.stream);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_FAILED], 1);
    assert_int_equal(f->user.told[TEST_HUP], 0);
    assert_int_equal(f->user.error.status, LEAT_ERESET);
    assert_non_null(strstr(f->user.error.text, "reset"));
    leat_stream_resume(f->user.stream);
    TURN_UNTIL(f->loop, f->user.end != LEAT_OK);
    assert_int_equal(f->user.end, LEAT_ERESET);
}

static void a_reset_reaches_the_reader(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    test_reset(f->peer);
    f->peer = -1;
    TURN_UNTIL(f->loop, f->user.end != LEAT_OK);
    test_settle(f->loop);
    assert_int_equal(f->user.end, LEAT_ERESET);
    assert_int_equal(f->user.told[TEST_FAILED], 0);
}

/* The peer says something, ends its side, and then resets: what it said is read, and the end is
 * that of the failed write, not a clean one. */
static void a_failed_write_is_told_after_the_bytes(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    test_user_write(&f->user, "unread", 6);
    peer_send(f, "last words");
    peer_close(f); /* with input unread: a reset */
    test_user_write(&f->user, "lost", 4);
    test_user_write(&f->user, "lost too", 8);
    assert_int_equal(leat_stream_queued(f->user.stream), 0);
    TURN_UNTIL(f->loop, f->user.end != LEAT_OK);
    assert_got(f, "last words");
    assert_int_equal(f->user.end, LEAT_ERESET);
    assert_int_equal(f->user.error.status, LEAT_ERESET);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_FAILED], 0);
}

static void a_write_that_fails_after_the_end_is_told_as_failed(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    peer_close(f);
    TURN_UNTIL(f->loop, f->user.end == LEAT_ECLOSED);
    test_user_write(&f->user, "to nobody", 9);
    TURN_UNTIL(f->loop, f->user.told[TEST_FAILED] > 0);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_FAILED], 1);
    assert_int_equal(f->user.error.status, LEAT_ERESET);
}

/* Writes until the kernel takes no more, then SPARE bytes; returns how many in all. */
static size_t fill_up(struct fixture *f, size_t spare)
{
    static uint8_t block[65536];
    size_t total = 0;
    while (leat_stream_queued(f->user.stream) < spare) {
        test_fill(block, sizeof(block), (uint32_t)total);
        test_user_write(&f->user, block, sizeof(block));
        total += sizeof(block);
    }
    return total;
}

static void what_the_kernel_does_not_take_is_queued(void **state)
{
    struct fixture *f = *state;
    static uint8_t block[65536], expected[65536];
    start_open(f, test_unix_pair);
    size_t total = fill_up(f, 300000), at = 0;
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_DRAINED], 0);
    while (at < total) {
        ssize_t len = recv(f->peer, block, sizeof(block) - at % sizeof(block), 0);
        if (len < 0) {
            test_turn(f->loop);
            continue;
        }
        test_fill(expected, sizeof(expected), (uint32_t)(at - at % sizeof(block)));
        assert_memory_equal(block, expected + at % sizeof(block), (size_t)len);
        at += (size_t)len;
    }
    TURN_UNTIL(f->loop, f->user.told[TEST_DRAINED] > 0);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_DRAINED], 1);
    assert_int_equal(leat_stream_queued(f->user.stream), 0);
}

static void a_full_queue_breaks_the_stream(void **state)
{
    struct fixture *f = *state;
    static uint8_t block[65536];
    struct iovec part = {.iov_base = block, .iov_len = sizeof(block)};
    start_open(f, test_unix_pair);
    peer_send(f, "hello");
    enum leat_status status;
    do {
        status = leat_stream_write(f->user.stream, &part, 1);
    } while (status == LEAT_OK);
    assert_int_equal(status, LEAT_ELIMIT);
    assert_int_equal(leat_stream_write(f->user.stream, &part, 1), LEAT_OK); /* swallowed */
    TURN_UNTIL(f->loop, f->user.end != LEAT_OK);
    assert_got(f, "hello");
    assert_int_equal(f->user.end, LEAT_ELIMIT);
}

static void out_of_memory_for_the_queue_breaks_the_stream(void **state)
{
    struct fixture *f = *state;
    static uint8_t block[65536];
    struct iovec part = {.iov_base = block, .iov_len = sizeof(block)};
    start_open(f, test_unix_pair);
    leat_stream_pause(f->user.stream);
    (void)fill_up(f, 1);
    leat_mem_fail_after(1);
    enum leat_status status;
    do {
        status = leat_stream_write(f->user.stream, &part, 1);
    } while (status == LEAT_OK && leat_stream_queued(f->user.stream) > 0);
    leat_mem_fail_after(0);
    assert_int_equal(status, LEAT_ENOMEM);
    TURN_UNTIL(f->loop, f->user.told[TEST_FAILED] > 0);
    assert_int_equal(f->user.error.status, LEAT_ENOMEM);
}

static void writing_before_it_is_open_is_refused(void **state)
{
    struct fixture *f = *state;
    struct iovec part = {.iov_base = f, .iov_len = 1};
    start(f, test_unix_pair);
    assert_int_equal(leat_stream_write(f->user.stream, &part, 1), LEAT_EUSAGE);
    assert_int_equal(test_user_read(&f->user), LEAT_EAGAIN);
}

/* Without lingering, the unread input would turn the close into a reset. */
static void finish_delivers_the_last_message(void **state)
{
    struct fixture *f = *state;
    static uint8_t block[65536];
    size_t total = 0, want;
    ssize_t len;
    start_open(f, test_tcp_pair);
    leat_stream_pause(f->user.stream);
    peer_send(f, "not read by anybody");
    test_settle(f->loop);
    want = fill_up(f, 100000);
    leat_stream_finish(f->user.stream, FLUSH_MS, LINGER_MS);
    assert_int_equal(leat_stream_write(f->user.stream, NULL, 0), LEAT_OK);
    while ((len = recv(f->peer, block, sizeof(block), 0)) != 0) {
        if (len > 0)
            total += (size_t)len;
        else
            test_turn(f->loop);
    }
    assert_int_equal(total, want);
    assert_non_null(f->user.stream);
    peer_send(f, "neither this");
    test_settle(f->loop);
    assert_non_null(f->user.stream);
    peer_close(f);
    TURN_UNTIL(f->loop, f->user.stream == NULL);
    assert_int_equal(f->user.told[TEST_READABLE], 0);
    assert_int_equal(f->user.told[TEST_DRAINED], 0);
}

static void finish_after_the_peers_end_closes_at_once(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    (void)shutdown(f->peer, SHUT_WR);
    TURN_UNTIL(f->loop, f->user.end == LEAT_ECLOSED);
    leat_stream_finish(f->user.stream, 0, 0);
    TURN_UNTIL(f->loop, f->user.stream == NULL);
    char c;
    assert_int_equal(recv(f->peer, &c, 1, 0), 0);
}

static void finish_gives_up(void **state)
{
    struct fixture *f = *state;
    leat_loop_set_clock(f->loop, test_clock, &f->clock_ms);
    start_open(f, test_tcp_pair);
    leat_stream_finish(f->user.stream, FLUSH_MS, LINGER_MS);
    test_settle(f->loop);
    assert_non_null(f->user.stream);
    f->clock_ms += LINGER_MS - 1;
    test_settle(f->loop);
    assert_non_null(f->user.stream);
    f->clock_ms += 200;
    TURN_UNTIL(f->loop, f->user.stream == NULL);
}

static void flushing_gives_up_in_time(void **state)
{
    struct fixture *f = *state;
    static uint8_t block[400000];
    leat_loop_set_clock(f->loop, test_clock, &f->clock_ms);
    start_open(f, test_unix_pair);
    (void)fill_up(f, 1000000);
    leat_stream_finish(f->user.stream, FLUSH_MS, LINGER_MS);
    test_settle(f->loop);
    f->clock_ms += FLUSH_MS - 1000;
    assert_true(recv(f->peer, block, sizeof(block), 0) > 0);
    size_t queued = leat_stream_queued(f->user.stream);
    TURN_UNTIL(f->loop, leat_stream_queued(f->user.stream) < queued);
    assert_non_null(f->user.stream);
    f->clock_ms += 2000; /* a trickle of progress earns no more time */
    TURN_UNTIL(f->loop, f->user.stream == NULL);
}

static void finish_without_limits_arms_no_timer(void **state)
{
    struct fixture *f = *state;
    leat_loop_set_clock(f->loop, test_clock, &f->clock_ms);
    start_open(f, test_tcp_pair);
    leat_stream_finish(f->user.stream, 0, 0);
    test_settle(f->loop);
    f->clock_ms += UINT64_C(1000000000);
    test_settle(f->loop);
    assert_non_null(f->user.stream);
}

static void close_is_told_at_the_end_of_the_turn_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    start_open(f, test_tcp_pair);
    peer_send(f, "hello");
    f->user.in_call = true;
    leat_stream_close(f->user.stream);
    leat_stream_close(f->user.stream);
    leat_stream_finish(f->user.stream, 1, 1);
    assert_int_equal(leat_stream_write(f->user.stream, NULL, 0), LEAT_OK);
    leat_stream_pause(f->user.stream);
    leat_stream_resume(f->user.stream);
    struct leat_addr addr;
    leat_stream_peer_addr(f->user.stream, &addr);
    assert_int_equal(addr.len, 0);
    TURN_UNTIL(f->loop, f->user.stream == NULL);
    assert_int_equal(f->user.told[TEST_READABLE], 0);
    assert_int_equal(f->user.told[TEST_CLOSED], 1);
}

static void every_event_may_close(void **state)
{
    struct fixture *f = *state;
    for (int event = TEST_OPENED; event < TEST_CLOSED; event++) {
        if (event == TEST_DRAINED)
            continue;
        test_user_fini(&f->user);
        test_user_init(&f->user, f->loop);
        f->user.close_in = event;
        start(f, test_tcp_pair);
        if (event == TEST_HUP || event == TEST_FAILED)
            leat_stream_pause(f->user.stream);
        peer_send(f, "hello");
        test_settle(f->loop);
        if (event == TEST_FAILED)
            test_reset(f->peer);
        else
            (void)close(f->peer);
        f->peer = -1;
        TURN_UNTIL(f->loop, f->user.stream == NULL);
        assert_int_equal(f->user.told[event], 1);
    }
}

static void running_out_of_memory_costs_one_stream(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->user);
    int fds[2];
    test_unix_pair(fds);
    leat_mem_fail_after(1);
    assert_int_equal(leat_stream_accept(f->loop, fds[0], &user, &f->user.stream), LEAT_ENOMEM);
    leat_mem_fail_after(0);
    char c;
    assert_int_equal(recv(fds[1], &c, 1, 0), 0); /* it was closed */
    (void)close(fds[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opens_once_and_reads_what_came),
        TEST(a_small_cap_reads_on_without_new_bytes),
        TEST(an_idle_stream_causes_no_turns),
        TEST(a_paused_reader_is_not_called),
        TEST(the_end_comes_after_the_bytes_and_once),
        TEST(a_paused_reader_is_told_the_end_once),
        TEST(who_pauses_after_the_end_came_is_told_too),
        TEST(a_paused_reader_is_told_of_a_reset_once),
        TEST(a_reset_reaches_the_reader),
        TEST(a_failed_write_is_told_after_the_bytes),
        TEST(a_write_that_fails_after_the_end_is_told_as_failed),
        TEST(what_the_kernel_does_not_take_is_queued),
        TEST(a_full_queue_breaks_the_stream),
        TEST(out_of_memory_for_the_queue_breaks_the_stream),
        TEST(writing_before_it_is_open_is_refused),
        TEST(finish_delivers_the_last_message),
        TEST(finish_after_the_peers_end_closes_at_once),
        TEST(finish_gives_up),
        TEST(flushing_gives_up_in_time),
        TEST(finish_without_limits_arms_no_timer),
        TEST(close_is_told_at_the_end_of_the_turn_and_nothing_else),
        TEST(every_event_may_close),
        TEST(running_out_of_memory_costs_one_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
