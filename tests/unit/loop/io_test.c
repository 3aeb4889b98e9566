/*
 * Tests of loop/io.h over real sockets on loopback. What the kernel must have noticed before
 * a turn begins is awaited with poll(), never with a sleep.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io_side.h"

#include <poll.h>

/* Opens SIDE on one end of a new TCP connection and returns the other end, blocking. */
static int open_side(struct side *side, struct leat_loop *loop)
{
    struct sockaddr_in addr;
    int listener = listen_tcp(&addr);
    int peer = connect_tcp(&addr);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    assert_true(fd >= 0);
    (void)close(listener);
    *side = (struct side){0};
    assert_int_equal(leat_io_open(&side->io, loop, fd, on_side, side), LEAT_OK);
    return peer;
}

/* The same, after the first event, which says that it is writable. */
static int open_settled(struct side *side, struct leat_loop *loop)
{
    int peer = open_side(side, loop);
    leat_loop_turn(loop, 0);
    assert_int_equal(side->runs, 1);
    assert_int_equal(side->ready, LEAT_IO_WRITABLE);
    return peer;
}

/* Waits until the kernel knows EVENTS (or an error) of FD. */
static void await(int fd, short events)
{
    struct pollfd pfd = {.fd = fd, .events = events};
    assert_int_equal(poll(&pfd, 1, -1), 1);
}

/* Closes FD so that its peer sees a reset. */
static void reset(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    (void)close(fd);
}

static void assert_recv(struct leat_io *io, const char *expected)
{
    char buf[64];
    size_t len = 0;
    int sys = 0;
    assert_int_equal(leat_io_recv(io, buf, sizeof(buf), &len, &sys), LEAT_OK);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(buf, expected, len);
}

/* What a recv says that brings nothing. */
static enum leat_status recv_status(struct leat_io *io, int *out_sys)
{
    char buf[64];
    size_t len = 12345;
    enum leat_status status = leat_io_recv(io, buf, sizeof(buf), &len, out_sys);
    assert_int_equal(len, 12345);
    return status;
}

static void law_1_opening_calls_back_in_a_turn_only(void **state)
{
    struct side side;
    int peer = open_side(&side, *state);
    assert_int_equal(side.runs, 0);
    leat_io_requeue(&side.io);
    assert_int_equal(side.runs, 0);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.runs, 1);
    leat_io_close(&side.io);
    (void)close(peer);
}

static void an_idle_socket_costs_no_event(void **state)
{
    struct side side;
    int peer = open_settled(&side, *state);
    for (int i = 0; i < 3; i++)
        leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 1);
    assert_int_equal(atomic_load(&counters(*state)->wakeups), 0);
    assert_int_equal(atomic_load(&counters(*state)->recvs), 0);
    leat_io_close(&side.io);
    (void)close(peer);
}

static void a_paused_reader_costs_one_event_per_arrival(void **state)
{
    struct side side;
    int peer = open_settled(&side, *state);
    for (unsigned i = 1; i < 4; i++) {
        assert_int_equal(write(peer, "x", 1), 1);
        leat_loop_turn(*state, -1);
        assert_int_equal(side.runs, 1 + i);
        leat_loop_turn(*state, 0);
        assert_int_equal(side.runs, 1 + i);
    }
    assert_recv(&side.io, "xxx");
    leat_io_close(&side.io);
    (void)close(peer);
}

static void a_short_read_saves_asking_again(void **state)
{
    struct side side;
    int sys = 0;
    int peer = open_settled(&side, *state);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_EAGAIN);
    assert_int_equal(atomic_load(&counters(*state)->recvs), 0);
    assert_int_equal(write(peer, "abc", 3), 3);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.ready, LEAT_IO_READABLE | LEAT_IO_WRITABLE);
    assert_recv(&side.io, "abc");
    assert_int_equal(side.io.ready, LEAT_IO_WRITABLE);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_EAGAIN);
    assert_int_equal(atomic_load(&counters(*state)->recvs), 1);
    assert_int_equal(write(peer, "d", 1), 1);
    leat_loop_turn(*state, -1);
    assert_recv(&side.io, "d");
    leat_io_close(&side.io);
    (void)close(peer);
}

static void a_full_read_leaves_it_readable_until_eagain(void **state)
{
    struct side side;
    char buf[3];
    size_t len = 0;
    int sys = 0;
    int peer = open_settled(&side, *state);
    assert_int_equal(write(peer, "abc", 3), 3);
    leat_loop_turn(*state, -1);
    assert_int_equal(leat_io_recv(&side.io, buf, 0, &len, &sys), LEAT_EAGAIN);
    assert_int_equal(leat_io_recv(&side.io, buf, 3, &len, &sys), LEAT_OK);
    assert_int_equal(len, 3);
    assert_true(side.io.ready & LEAT_IO_READABLE);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_EAGAIN);
    assert_false(side.io.ready & LEAT_IO_READABLE);
    leat_io_close(&side.io);
    (void)close(peer);
}

/* Bytes and end arrive in one event: no other one follows, so the end must not be lost. */
static void a_short_read_does_not_lose_an_end_behind_it(void **state)
{
    struct side side;
    int sys = 0;
    int peer = open_settled(&side, *state);
    assert_int_equal(write(peer, "abc", 3), 3);
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    await(side.io.fd, POLLRDHUP);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.runs, 2);
    assert_int_equal(side.ready, LEAT_IO_READABLE | LEAT_IO_WRITABLE | LEAT_IO_HUP);
    assert_recv(&side.io, "abc");
    assert_true(side.io.ready & LEAT_IO_READABLE);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ECLOSED);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ECLOSED);
    assert_false(side.io.ready & LEAT_IO_BROKEN);
    leat_io_close(&side.io);
    (void)close(peer);
}

static void an_end_after_a_short_read_is_an_event(void **state)
{
    struct side side;
    int sys = 0;
    int peer = open_settled(&side, *state);
    assert_int_equal(write(peer, "abc", 3), 3);
    leat_loop_turn(*state, -1);
    assert_recv(&side.io, "abc");
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.ready, LEAT_IO_READABLE | LEAT_IO_WRITABLE | LEAT_IO_HUP);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ECLOSED);
    assert_int_equal(send_text(&side.io, "late", &sys), LEAT_OK); /* half closed only */
    leat_io_close(&side.io);
    (void)close(peer);
}

static void a_reset_is_broken_and_told_after_the_bytes_before_it(void **state)
{
    struct side side;
    int sys = 0;
    int peer = open_settled(&side, *state);
    assert_int_equal(write(peer, "abc", 3), 3);
    await(side.io.fd, POLLIN);
    reset(peer);
    await(side.io.fd, POLLRDHUP);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.ready,
                     LEAT_IO_READABLE | LEAT_IO_WRITABLE | LEAT_IO_HUP | LEAT_IO_BROKEN);
    assert_recv(&side.io, "abc");
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ERESET);
    assert_int_equal(sys, ECONNRESET);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ERESET); /* never an orderly end */
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ERESET);
    leat_io_close(&side.io);
}

/* The kernel tells an error once: here to the sender, and to the reader an end. */
static void a_reset_that_the_sender_heard_is_told_to_the_reader(void **state)
{
    struct side side;
    int sys = 0;
    int peer = open_settled(&side, *state);
    reset(peer);
    await(side.io.fd, POLLRDHUP);
    assert_int_equal(send_text(&side.io, "x", &sys), LEAT_ERESET);
    assert_int_equal(sys, ECONNRESET);
    assert_true(side.io.ready & LEAT_IO_BROKEN);
    assert_int_equal(send_text(&side.io, "x", &sys), LEAT_ERESET); /* no SIGPIPE */
    assert_int_equal(sys, EPIPE);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.runs, 2);
    sys = 0;
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ERESET);
    assert_int_equal(sys, ECONNRESET);
    leat_io_close(&side.io);
}

/* The peer ended in good order and then reset what we sent after that. */
static void an_end_stays_orderly_if_a_late_send_is_reset(void **state)
{
    struct side side;
    int sys = 0;
    int peer = open_settled(&side, *state);
    assert_int_equal(write(peer, "bye", 3), 3);
    (void)close(peer);
    await(side.io.fd, POLLRDHUP);
    assert_int_equal(send_text(&side.io, "late", &sys), LEAT_OK);
    await(side.io.fd, 0); /* for POLLHUP: the answer is a reset */
    assert_int_equal(send_text(&side.io, "later", &sys), LEAT_ERESET);
    leat_loop_turn(*state, -1);
    assert_true(side.ready & LEAT_IO_BROKEN);
    assert_recv(&side.io, "bye");
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ECLOSED);
    leat_io_close(&side.io);
}

static void ended_on_both_sides_is_not_broken(void **state)
{
    struct side side;
    char byte;
    int sys = 0;
    int peer = open_settled(&side, *state);
    leat_io_shutdown_send(&side.io);
    assert_int_equal(read(peer, &byte, 1), 0);
    (void)close(peer);
    await(side.io.fd, POLLRDHUP);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.ready, LEAT_IO_READABLE | LEAT_IO_WRITABLE | LEAT_IO_HUP);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ECLOSED);
    leat_io_close(&side.io);
}

static void a_reset_after_our_end_is_broken(void **state)
{
    struct side side;
    int sys = 0;
    int peer = open_settled(&side, *state);
    leat_io_shutdown_send(&side.io);
    reset(peer);
    await(side.io.fd, POLLRDHUP);
    leat_loop_turn(*state, -1);
    assert_true(side.ready & LEAT_IO_BROKEN);
    assert_int_equal(recv_status(&side.io, &sys), LEAT_ERESET);
    leat_io_close(&side.io);
}

static void a_full_socket_is_writable_again_once_it_drains(void **state)
{
    static char data[256 * 1024];
    static char sink[256 * 1024];
    struct side side;
    size_t sent = 0, len = 0;
    int sys = 0;
    struct iovec iov[2] = {{data, sizeof(data) / 2}, {data, sizeof(data) / 2}};
    int peer = open_settled(&side, *state);
    while (side.io.ready & LEAT_IO_WRITABLE) {
        len = 0;
        enum leat_status status = leat_io_send(&side.io, iov, 2, &len, &sys);
        assert_true(status == LEAT_OK || status == LEAT_EAGAIN);
        sent += len;
    }
    /* the last one was taken in part, and the next one is not taken at all */
    assert_int_equal(leat_io_send(&side.io, iov, 2, &len, &sys), LEAT_EAGAIN);
    while (sent > 0) {
        ssize_t n = read(peer, sink, sizeof(sink));
        assert_true(n > 0 && (size_t)n <= sent);
        sent -= (size_t)n;
    }
    leat_loop_turn(*state, -1);
    assert_int_equal(side.runs, 2);
    assert_int_equal(side.ready, LEAT_IO_WRITABLE);
    leat_io_close(&side.io);
    (void)close(peer);
}

static void more_parts_than_the_kernel_takes_are_sent_in_part(void **state)
{
    enum { PARTS = 1500 };
    static char data[] = "p";
    struct iovec iov[PARTS];
    struct side side;
    size_t len = 0;
    int sys = 0;
    int peer = open_settled(&side, *state);
    for (size_t i = 0; i < PARTS; i++)
        iov[i] = (struct iovec){data, 1};
    assert_int_equal(leat_io_send(&side.io, iov, PARTS, &len, &sys), LEAT_OK);
    assert_int_equal(len, 1024);
    assert_true(side.io.ready & LEAT_IO_WRITABLE);
    leat_io_close(&side.io);
    (void)close(peer);
}

static void law_6_a_requeue_in_a_callback_waits_for_the_next_turn(void **state)
{
    struct side side;
    int peer = open_settled(&side, *state);
    side.requeues = &side.io;
    leat_io_requeue(&side.io);
    for (unsigned turn = 1; turn < 4; turn++) {
        leat_loop_turn(*state, -1); /* must not sleep */
        assert_int_equal(side.runs, 1 + turn);
    }
    assert_int_equal(atomic_load(&counters(*state)->wakeups), 0);
    leat_io_close(&side.io);
    (void)close(peer);
}

static void law_6_who_requeues_comes_behind_the_others(void **state)
{
    struct side busy, other;
    int busy_peer = open_settled(&busy, *state);
    int other_peer = open_settled(&other, *state);
    busy.requeues = &busy.io;
    leat_io_requeue(&busy.io);
    leat_io_requeue(&other.io);
    leat_loop_turn(*state, -1);
    assert_int_equal(busy.runs, 2);
    assert_int_equal(other.runs, 2);
    leat_io_close(&busy.io);
    leat_io_close(&other.io);
    (void)close(busy_peer);
    (void)close(other_peer);
}

static void law_3_close_stops_an_event_of_the_same_turn(void **state)
{
    struct side a, b;
    int a_peer = open_side(&a, *state);
    int b_peer = open_side(&b, *state);
    a.closes = &b.io;
    b.closes = &a.io;
    leat_loop_turn(*state, -1); /* both are writable */
    assert_int_equal(a.runs + b.runs, 1);
    assert_true((a.io.fd == -1) != (b.io.fd == -1));
    leat_io_close(&a.io);
    leat_io_close(&b.io);
    (void)close(a_peer);
    (void)close(b_peer);
}

static void law_3_a_closed_socket_stays_silent(void **state)
{
    struct side side;
    int peer = open_settled(&side, *state);
    leat_io_requeue(&side.io);
    leat_io_close(&side.io);
    leat_io_close(&side.io);
    leat_io_requeue(&side.io);
    assert_int_equal(side.io.fd, -1);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 1);
    char byte;
    assert_int_equal(read(peer, &byte, 1), 0); /* the descriptor is closed */
    (void)close(peer);
}

/* A descriptor that a child process may have inherited stays open, and watched, after close. */
static void law_3_close_ends_the_watch_of_a_shared_descriptor(void **state)
{
    struct side side;
    int peer = open_settled(&side, *state);
    int twin = dup(side.io.fd);
    leat_io_close(&side.io);
    assert_int_equal(write(peer, "x", 1), 1);
    await(twin, POLLIN);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.io.ready, 0); /* an event would have been noted here */
    assert_int_equal(side.runs, 1);
    (void)close(twin);
    (void)close(peer);
}

static void on_owned(struct leat_io *io, void *arg)
{
    unsigned *runs = arg;
    (*runs)++;
    leat_io_close(io);
    free(io);
}

static void law_4_a_callback_may_free_its_socket(void **state)
{
    unsigned runs = 0;
    struct side side;
    int peers[3];
    for (size_t i = 0; i < 3; i++) {
        struct leat_io *io = malloc(sizeof(*io));
        assert_non_null(io);
        peers[i] = open_side(&side, *state);
        int fd = fcntl(side.io.fd, F_DUPFD_CLOEXEC, 0);
        leat_io_close(&side.io);
        assert_int_equal(leat_io_open(io, *state, fd, on_owned, &runs), LEAT_OK);
    }
    leat_loop_turn(*state, -1);
    assert_int_equal(runs, 3);
    for (size_t i = 0; i < 3; i++)
        (void)close(peers[i]);
}

static void more_sockets_than_one_wait_brings_are_all_called(void **state)
{
    enum { PAIRS = 300 };
    static struct side sides[PAIRS];
    static int peers[PAIRS];
    for (size_t i = 0; i < PAIRS; i++) {
        int fds[2];
        sides[i] = (struct side){0};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        peers[i] = fds[1];
        assert_int_equal(leat_io_open(&sides[i].io, *state, fds[0], on_side, &sides[i]), LEAT_OK);
    }
    leat_loop_turn(*state, 0);
    leat_loop_turn(*state, 0);
    for (size_t i = 0; i < PAIRS; i++) {
        assert_int_equal(sides[i].runs, 1);
        leat_io_close(&sides[i].io);
        (void)close(peers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(law_1_opening_calls_back_in_a_turn_only),
        WITH_LOOP(an_idle_socket_costs_no_event),
        WITH_LOOP(a_paused_reader_costs_one_event_per_arrival),
        WITH_LOOP(a_short_read_saves_asking_again),
        WITH_LOOP(a_full_read_leaves_it_readable_until_eagain),
        WITH_LOOP(a_short_read_does_not_lose_an_end_behind_it),
        WITH_LOOP(an_end_after_a_short_read_is_an_event),
        WITH_LOOP(a_reset_is_broken_and_told_after_the_bytes_before_it),
        WITH_LOOP(a_reset_that_the_sender_heard_is_told_to_the_reader),
        WITH_LOOP(an_end_stays_orderly_if_a_late_send_is_reset),
        WITH_LOOP(ended_on_both_sides_is_not_broken),
        WITH_LOOP(a_reset_after_our_end_is_broken),
        WITH_LOOP(a_full_socket_is_writable_again_once_it_drains),
        WITH_LOOP(more_parts_than_the_kernel_takes_are_sent_in_part),
        WITH_LOOP(law_6_a_requeue_in_a_callback_waits_for_the_next_turn),
        WITH_LOOP(law_6_who_requeues_comes_behind_the_others),
        WITH_LOOP(law_3_close_stops_an_event_of_the_same_turn),
        WITH_LOOP(law_3_a_closed_socket_stays_silent),
        WITH_LOOP(law_3_close_ends_the_watch_of_a_shared_descriptor),
        WITH_LOOP(law_4_a_callback_may_free_its_socket),
        WITH_LOOP(more_sockets_than_one_wait_brings_are_all_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
