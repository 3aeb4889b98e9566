/*
 * Tests of how loop/io.h gets its sockets: watching, accepting, connecting, and failing to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io_side.h"

#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void what_cannot_be_watched_stays_the_callers(void **state)
{
    struct leat_io io;
    int fd = memfd_create("not a socket", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(leat_io_open(&io, *state, fd, on_side, NULL), LEAT_EIO);
    assert_int_equal(io.fd, -1);
    assert_int_equal(leat_io_open_listener(&io, *state, fd, on_side, NULL), LEAT_EIO);
    leat_io_close(&io);
    assert_int_equal(close(fd), 0);
}

static int int_option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* Law 7 needs the first of these. */
static void assert_socket_is_set_up(int fd)
{
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(int_option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(int_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(int_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
    assert_int_equal(int_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
    assert_int_equal(int_option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    /* One would end a live peer whose window is closed. */
    assert_int_equal(int_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
}

static enum leat_status accept_status(struct leat_io *listener, int *out_fd)
{
    struct sockaddr_storage peer;
    int sys;
    return leat_io_accept(listener, out_fd, &peer, &sys);
}

static void a_listener_is_called_while_connections_wait(void **state)
{
    struct sockaddr_in addr;
    struct side side = {0};
    int clients[2];
    int listener = listen_tcp(&addr);
    assert_int_equal(leat_io_open_listener(&side.io, *state, listener, on_side, &side), LEAT_OK);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 0);
    for (size_t i = 0; i < 2; i++)
        clients[i] = connect_tcp(&addr);
    for (unsigned i = 0; i < 2; i++) {
        struct sockaddr_storage peer;
        struct sockaddr_in in, local = {0};
        socklen_t len = sizeof(local);
        int fd = -1, sys = 0;
        leat_loop_turn(*state, -1);
        assert_int_equal(side.runs, 1 + i);
        assert_int_equal(leat_io_accept(&side.io, &fd, &peer, &sys), LEAT_OK);
        assert_socket_is_set_up(fd);
        assert_int_equal(getsockname(clients[i], (struct sockaddr *)&local, &len), 0);
        memcpy(&in, &peer, sizeof(in));
        assert_int_equal(in.sin_family, AF_INET);
        assert_int_equal(in.sin_port, local.sin_port);
        (void)close(fd);
        (void)close(clients[i]);
    }
    int fd = -1;
    assert_int_equal(accept_status(&side.io, &fd), LEAT_EAGAIN);
    assert_int_equal(fd, -1);
    leat_loop_turn(*state, 0);
    assert_int_equal(side.runs, 2);
    assert_int_equal(atomic_load(&counters(*state)->accepts), 3);
    leat_io_close(&side.io);
    assert_int_equal(close(listener), 0); /* it stayed ours */
}

static void a_listener_of_two_loops_wakes_one(void **state)
{
    struct sockaddr_in addr;
    struct side sides[2] = {0};
    struct leat_loop *loops[2] = {*state, NULL};
    int listener = listen_tcp(&addr);
    assert_int_equal(leat_loop_new(&loops[1], NULL), LEAT_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            leat_io_open_listener(&sides[i].io, loops[i], listener, on_side, &sides[i]), LEAT_OK);
    int client = connect_tcp(&addr);
    int fd = -1;
    for (size_t i = 0; i < 2; i++) {
        leat_loop_turn(loops[i], 0);
        if (sides[i].runs > 0 && fd == -1)
            assert_int_equal(accept_status(&sides[i].io, &fd), LEAT_OK);
    }
    assert_true(fd >= 0);
    leat_io_close(&sides[0].io);
    /* The other loop goes on watching. */
    int second = connect_tcp(&addr);
    leat_loop_turn(loops[1], -1);
    assert_true(sides[1].runs > 0);
    leat_io_close(&sides[1].io);
    leat_loop_free(loops[1]);
    (void)close(second);
    (void)close(client);
    (void)close(fd);
    (void)close(listener);
}

static void accepting_without_descriptors_is_a_limit(void **state)
{
    struct sockaddr_in addr;
    struct sockaddr_storage peer;
    struct side side = {0};
    struct rlimit old, tight;
    int fd = -1, sys = 0;
    int listener = listen_tcp(&addr);
    assert_int_equal(leat_io_open_listener(&side.io, *state, listener, on_side, &side), LEAT_OK);
    int client = connect_tcp(&addr);
    leat_loop_turn(*state, -1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    tight = (struct rlimit){.rlim_cur = (rlim_t)client + 1, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    enum leat_status status = leat_io_accept(&side.io, &fd, &peer, &sys);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(status, LEAT_ELIMIT);
    assert_int_equal(sys, EMFILE);
    assert_int_equal(fd, -1);
    leat_loop_turn(*state, -1); /* it still waits */
    assert_int_equal(side.runs, 2);
    assert_int_equal(accept_status(&side.io, &fd), LEAT_OK);
    (void)close(fd);
    (void)close(client);
    leat_io_close(&side.io);
    (void)close(listener);
}

static void connecting_succeeds_with_an_event(void **state)
{
    struct sockaddr_in addr;
    struct side side = {0};
    int sys = 0;
    int listener = listen_tcp(&addr);
    assert_int_equal(
        leat_io_connect(&side.io, *state, (struct sockaddr *)&addr, sizeof(addr), &sys), LEAT_OK);
    leat_io_set_fn(&side.io, on_side, &side);
    assert_int_equal(side.runs, 0);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.ready, LEAT_IO_WRITABLE);
    assert_int_equal(leat_io_connect_result(&side.io), 0);
    assert_socket_is_set_up(side.io.fd);
    assert_int_equal(send_text(&side.io, "hello", &sys), LEAT_OK);
    int peer = accept4(listener, NULL, NULL, 0);
    char buf[8];
    assert_int_equal(read(peer, buf, sizeof(buf)), 5);
    assert_int_equal(atomic_load(&counters(*state)->connects), 1);
    assert_int_equal(atomic_load(&counters(*state)->sends), 1);
    leat_io_close(&side.io);
    (void)close(peer);
    (void)close(listener);
}

static void a_refused_connection_is_told_by_an_event(void **state)
{
    struct sockaddr_in addr;
    struct side side = {0};
    int sys = 0;
    (void)close(listen_tcp(&addr));
    assert_int_equal(
        leat_io_connect(&side.io, *state, (struct sockaddr *)&addr, sizeof(addr), &sys), LEAT_OK);
    leat_io_set_fn(&side.io, on_side, &side);
    leat_loop_turn(*state, -1);
    assert_int_equal(side.runs, 1);
    assert_true(side.ready & LEAT_IO_WRITABLE);
    assert_true(side.ready & LEAT_IO_BROKEN);
    assert_int_equal(leat_io_connect_result(&side.io), ECONNREFUSED);
    assert_int_equal(leat_io_connect_result(&side.io), ECONNREFUSED);
    leat_io_close(&side.io);
}

static void connecting_that_cannot_begin_leaves_nothing_open(void **state)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    struct sockaddr_storage odd = {.ss_family = AF_UNSPEC};
    struct leat_io io;
    int sys = 0;
    int before = fcntl(0, F_DUPFD, 0);
    (void)close(before);
    assert_int_equal(leat_io_connect(&io, *state, (struct sockaddr *)&addr, 1, &sys), LEAT_EIO);
    assert_int_equal(sys, EINVAL);
    assert_int_equal(leat_io_connect(&io, *state, (struct sockaddr *)&odd, sizeof(odd), &sys),
                     LEAT_EIO);
    assert_int_equal(sys, EAFNOSUPPORT);
    int after = fcntl(0, F_DUPFD, 0);
    (void)close(after);
    assert_int_equal(after, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(what_cannot_be_watched_stays_the_callers),
        WITH_LOOP(a_listener_is_called_while_connections_wait),
        WITH_LOOP(a_listener_of_two_loops_wakes_one),
        WITH_LOOP(accepting_without_descriptors_is_a_limit),
        WITH_LOOP(connecting_succeeds_with_an_event),
        WITH_LOOP(a_refused_connection_is_told_by_an_event),
        WITH_LOOP(connecting_that_cannot_begin_leaves_nothing_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
