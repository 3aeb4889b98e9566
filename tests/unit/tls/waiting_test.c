/*
 * Waiting costs nothing: a thousand TLS streams on one loop, in every state in which a stream
 * can wait, and in ten seconds the kernel does not return from epoll_wait once.
 *
 * The peers are bare OpenSSL. The loop arms no deadline, so any wake-up would be a defect.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "stream_side.h"

#define FILES_NEEDED 4000
#define FILES_MAX 20000
#define PER_KIND 50
#define WATCH_MS 10000
#define SETTLED_MS 1000
#define RECORD 100

enum kind {
    SILENT,         /* connected, the peer says nothing */
    HALF_HELLO,     /* half of the peer's first flight is here */
    HALF_RECORD,    /* half of a record is here */
    IDLE,           /* the handshake is done */
    PAUSED,         /* nobody reads what the peer has sent, and what it has not */
    BLOCKED,        /* paused, and the peer does not read what we send */
    HALF_CLOSED,    /* the peer has sent close_notify and the end of its side */
    TRUNCATED,      /* the peer has ended its side without */
    HUNG_UP_PAUSED, /* the same, while nobody reads */
    FLUSHING,       /* finishing, and the peer does not read */
    LINGERING,      /* finished, and the peer does not close */
    KINDS,
};

#define WAITERS (2 * PER_KIND * KINDS)

/* One stream under test and its peer. */
struct waiter {
    enum kind kind;
    struct test_user user;
    struct raw_tls raw;
};

static void make_accepted(struct fixture *f, struct waiter *w)
{
    struct leat_stream_user user = test_user_of(&w->user);
    int fds[2], small = 4096;
    test_tcp_pair(fds);
    assert_return_code(setsockopt(fds[1], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_return_code(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    raw_tls_init(&w->raw, false, &side_certs, fds[1]);
    assert_int_equal(leat_tls_stream_accept(f->loop, fds[0], f->tls_server, &user, &w->user.stream),
                     LEAT_OK);
}

static void make_connecting(struct fixture *f, struct waiter *w)
{
    raw_tls_init(&w->raw, true, &side_certs, side_connect_as(&w->user, f->client_ctx, "localhost"));
}

static void open_waiter(struct fixture *f, struct waiter *w)
{
    while (!raw_tls_step(&w->raw) || w->user.told[TEST_OPENED] == 0)
        test_poll(f->loop);
}

/* Has the peer make its first flight and send half of it. */
static void send_half_hello(struct fixture *f, struct waiter *w)
{
    while (BIO_ctrl_pending(w->raw.out) == 0) {
        test_poll(f->loop);
        (void)raw_tls_receive(&w->raw);
        (void)SSL_do_handshake(w->raw.ssl);
    }
    assert_true(raw_tls_send(&w->raw, BIO_ctrl_pending(w->raw.out) / 2) > 0);
}

static void send_record(struct waiter *w, bool whole)
{
    uint8_t data[RECORD] = {0};
    raw_tls_write(&w->raw, data, sizeof(data));
    assert_true(raw_tls_send(&w->raw, whole ? SIZE_MAX : RECORD / 2) > 0);
}

static void block(struct waiter *w)
{
    static const uint8_t data[65536];
    while (leat_stream_queued(w->user.stream) < sizeof(data))
        test_user_write(&w->user, data, sizeof(data));
}

/* Brings W, which is open, to the state it is to wait in. */
static void bring(struct waiter *w)
{
    struct leat_stream *stream = w->user.stream;

    switch (w->kind) {
    case SILENT:
    case HALF_HELLO:
    case IDLE:
    case KINDS:
        break;
    case HALF_RECORD:
        send_record(w, false);
        break;
    case BLOCKED:
        block(w);
        leat_stream_pause(stream);
        send_record(w, true);
        break;
    case PAUSED:
        leat_stream_pause(stream);
        send_record(w, true);
        send_record(w, false);
        break;
    case HALF_CLOSED:
        (void)SSL_shutdown(w->raw.ssl);
        assert_true(raw_tls_send(&w->raw, SIZE_MAX) > 0);
        (void)shutdown(w->raw.fd, SHUT_WR);
        break;
    case HUNG_UP_PAUSED:
        leat_stream_pause(stream);
        send_record(w, true);
        (void)shutdown(w->raw.fd, SHUT_WR);
        break;
    case TRUNCATED:
        (void)shutdown(w->raw.fd, SHUT_WR);
        break;
    case FLUSHING:
        block(w);
        send_record(w, true);
        leat_stream_finish(stream, 0, 0);
        break;
    case LINGERING:
        leat_stream_finish(stream, 0, 0);
        send_record(w, true);
        break;
    }
}

/* W waits where it should. */
static void check(const struct waiter *w)
{
    const struct test_user *user = &w->user;
    size_t queued = leat_stream_queued(user->stream);

    assert_non_null(user->stream);
    assert_int_equal(user->told[TEST_FAILED], 0);
    assert_int_equal(user->told[TEST_OPENED], w->kind > HALF_HELLO);
    assert_int_equal(user->told[TEST_HUP], w->kind == HUNG_UP_PAUSED);
    assert_int_equal(queued > 0, w->kind == BLOCKED || w->kind == FLUSHING);
    assert_int_equal(user->got_len, 0);
    enum leat_status end = w->kind == HALF_CLOSED ? LEAT_ECLOSED
                           : w->kind == TRUNCATED ? LEAT_ETRUNCATED
                                                  : LEAT_OK;
    assert_int_equal(user->end, end);
}

static void allow_files(void)
{
    struct rlimit limit;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < FILES_NEEDED)
        limit.rlim_cur = limit.rlim_max < FILES_MAX ? limit.rlim_max : FILES_MAX;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur >= FILES_NEEDED);
}

static struct waiter *new_waiters(struct fixture *f)
{
    struct waiter *waiters = calloc(WAITERS, sizeof(*waiters));
    assert_non_null(waiters);
    for (size_t i = 0; i < WAITERS; i++) {
        struct waiter *w = &waiters[i];
        w->kind = (enum kind)(i % KINDS);
        test_user_init(&w->user, f->loop);
        if (i % 2 == 0)
            make_accepted(f, w);
        else
            make_connecting(f, w);
        if (w->kind == HALF_HELLO)
            send_half_hello(f, w);
        else if (w->kind != SILENT)
            open_waiter(f, w);
        bring(w);
    }
    return waiters;
}

static void free_waiters(struct waiter *waiters)
{
    for (size_t i = 0; i < WAITERS; i++) {
        raw_tls_fini(&waiters[i].raw);
        test_user_fini(&waiters[i].user);
    }
    free(waiters);
}

/* Turns until the kernel has nothing more to say for a second: acknowledgements of what was sent
 * last come up to 40 ms later. A stream that spins never gets there. */
static void settle(struct leat_loop *loop)
{
    uint64_t start_ms, turns = 0;
    do {
        leat_loop_turn(loop, 0);
        start_ms = leat_loop_now_ms(loop);
        leat_loop_turn(loop, SETTLED_MS);
        assert_true(++turns < 1000);
    } while (leat_loop_now_ms(loop) - start_ms < SETTLED_MS);
}

static void *run_loop(void *arg)
{
    leat_loop_run(arg);
    return NULL;
}

static void a_thousand_waiting_streams_cause_no_wakeup(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    allow_files();
    struct waiter *waiters = new_waiters(f);
    settle(f->loop);
    for (size_t i = 0; i < WAITERS; i++)
        check(&waiters[i]);

    const struct leat_loop_counters *counters = leat_loop_counters(f->loop);
    uint64_t before[] = {counters->wakeups, counters->polls, counters->recvs, counters->sends};
    assert_int_equal(pthread_create(&thread, NULL, run_loop, f->loop), 0);
    (void)poll(NULL, 0, WATCH_MS);
    uint64_t after[] = {counters->wakeups, counters->polls, counters->recvs, counters->sends};
    leat_loop_stop(f->loop);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
        assert_int_equal(after[i], before[i]);

    /* They were waiting, not dead: the rest of the record is read. */
    for (size_t i = 0; i < WAITERS; i++) {
        struct waiter *w = &waiters[i];
        if (w->kind != HALF_RECORD && w->kind != IDLE)
            continue;
        if (w->kind == IDLE)
            send_record(w, true);
        (void)raw_tls_send(&w->raw, SIZE_MAX);
        TURN_UNTIL(f->loop, w->user.got_len == RECORD);
    }
    free_waiters(waiters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDE_TEST(a_thousand_waiting_streams_cause_no_wakeup),
    };

    return cmocka_run_group_tests(tests, side_group_setup, side_group_teardown);
}
