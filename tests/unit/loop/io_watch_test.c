/*
 * Tests of loop/io.h about descriptors that come from elsewhere or go there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io_side.h"

#include <sys/eventfd.h>

static void a_watch_is_repeated_as_long_as_it_is_so(void **state)
{
    struct side side = {0};
    uint64_t value = 7;
    int fd = eventfd(0, EFD_NONBLOCK);
    assert_int_equal(leat_io_open_watch(&side.io, *state, fd, LEAT_IO_READABLE, on_side, &side),
                     LEAT_OK);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 0);
    assert_int_equal(write(fd, &value, sizeof(value)), sizeof(value));
    for (unsigned i = 1; i <= 3; i++) {
        leat_loop_turn(*state, -1);
        assert_int_equal(side.runs, i);
        assert_int_equal(side.ready, LEAT_IO_READABLE);
    }
    assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 3);
    leat_io_close(&side.io);
    assert_int_equal(close(fd), 0); /* it stayed ours */
}

static void a_watch_tells_only_what_is_so_now(void **state)
{
    struct side side = {0};
    uint64_t value = 1;
    int fd = eventfd(0, EFD_NONBLOCK);
    assert_int_equal(leat_io_open_watch(&side.io, *state, fd, LEAT_IO_READABLE | LEAT_IO_WRITABLE,
                                        on_side, &side),
                     LEAT_OK);
    assert_int_equal(write(fd, &value, sizeof(value)), sizeof(value));
    leat_loop_turn(*state, -1);
    assert_int_equal(side.ready, LEAT_IO_READABLE | LEAT_IO_WRITABLE);
    assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
    leat_loop_turn(*state, -1);
    assert_int_equal(side.ready, LEAT_IO_WRITABLE);
    leat_io_close(&side.io);
    (void)close(fd);
}

static void a_watch_may_be_closed_in_its_callback_and_opened_for_another_event(void **state)
{
    struct side side = {0};
    int fd = eventfd(0, EFD_NONBLOCK);
    side.closes = &side.io;
    assert_int_equal(leat_io_open_watch(&side.io, *state, fd, LEAT_IO_WRITABLE, on_side, &side),
                     LEAT_OK);
    leat_loop_turn(*state, -1);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 1);
    assert_int_equal(leat_io_open_watch(&side.io, *state, fd, LEAT_IO_READABLE, on_side, &side),
                     LEAT_OK);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 1);
    leat_io_close(&side.io);
    (void)close(fd);
}

static void a_closed_one_may_be_closed_without_having_been_opened(void **state)
{
    struct side side = {0};
    leat_io_init(&side.io, *state);
    leat_io_requeue(&side.io);
    leat_io_close(&side.io);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 0);
}

static void what_was_released_tells_anew_what_is_ready(void **state)
{
    struct sockaddr_in addr;
    struct side sides[2] = {0};
    char buf[8];
    size_t len = 0;
    int sys = 0;
    int listener = listen_tcp(&addr);
    int peer = connect_tcp(&addr);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    assert_int_equal(leat_io_open(&sides[0].io, *state, fd, on_side, &sides[0]), LEAT_OK);
    assert_int_equal(write(peer, "abc", 3), 3);
    while ((sides[0].ready & LEAT_IO_READABLE) == 0)
        leat_loop_turn(*state, -1);
    unsigned runs = sides[0].runs;
    leat_io_requeue(&sides[0].io);
    assert_int_equal(leat_io_release(&sides[0].io), fd);
    assert_int_equal(sides[0].io.fd, -1);
    leat_io_close(&sides[0].io); /* closes nothing */
    assert_int_equal(leat_io_open(&sides[1].io, *state, fd, on_side, &sides[1]), LEAT_OK);
    leat_loop_turn(*state, -1);
    assert_int_equal(sides[0].runs, runs);
    assert_int_equal(sides[1].ready, LEAT_IO_READABLE | LEAT_IO_WRITABLE);
    assert_int_equal(leat_io_recv(&sides[1].io, buf, sizeof(buf), &len, &sys), LEAT_OK);
    assert_int_equal(len, 3);
    leat_io_close(&sides[1].io);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    (void)close(peer);
    (void)close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(a_watch_is_repeated_as_long_as_it_is_so),
        WITH_LOOP(a_watch_tells_only_what_is_so_now),
        WITH_LOOP(a_watch_may_be_closed_in_its_callback_and_opened_for_another_event),
        WITH_LOOP(a_closed_one_may_be_closed_without_having_been_opened),
        WITH_LOOP(what_was_released_tells_anew_what_is_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
