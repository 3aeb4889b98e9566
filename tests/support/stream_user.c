/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stream_user.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/proxy_header.h"

/* No test needs as many turns; one that does spins. */
#define TURNS_MAX 500000

static unsigned turns; /* since a user was last prepared */

static void note(struct test_user *user, enum test_event event)
{
    assert_false(user->in_call);
    assert_int_equal(user->told[TEST_CLOSED], 0);
    user->told[event]++;
    if (user->close_in == (int)event)
        leat_stream_close(user->stream);
}

static void on_connected(struct leat_stream *stream, void *arg)
{
    (void)stream;
    note(arg, TEST_CONNECTED);
}

static void on_proxied(struct leat_stream *stream, const struct leat_proxy_header *header,
                       void *arg)
{
    struct test_user *user = arg;
    (void)stream;
    assert_int_equal(user->told[TEST_OPENED], 0);
    if (header->is_local)
        (void)stpcpy(user->source, "local");
    else
        (void)leat_addr_text(&header->source, user->source);
    note(user, TEST_PROXIED);
}

static void on_opened(struct leat_stream *stream, void *arg)
{
    struct test_user *user = arg;
    (void)stream;
    assert_int_equal(user->told[TEST_READABLE], 0);
    note(arg, TEST_OPENED);
}

static void on_drained(struct leat_stream *stream, void *arg)
{
    assert_int_equal(leat_stream_queued(stream), 0);
    note(arg, TEST_DRAINED);
}

static void on_hup(struct leat_stream *stream, void *arg)
{
    (void)stream;
    note(arg, TEST_HUP);
}

static void on_failed(struct leat_stream *stream, void *arg)
{
    struct test_user *user = arg;
    user->error = *leat_stream_error(stream);
    assert_int_not_equal(user->error.status, LEAT_OK);
    note(arg, TEST_FAILED);
}

static void on_closed(struct leat_stream *stream, void *arg)
{
    struct test_user *user = arg;
    (void)stream;
    user->in_call = false;
    note(arg, TEST_CLOSED);
    user->stream = NULL;
}

static void on_readable(struct leat_stream *stream, void *arg)
{
    struct test_user *user = arg;
    assert_false(leat_stream_is_paused(stream));
    assert_int_equal(user->end, LEAT_OK);
    note(user, TEST_READABLE);
    if (user->stream == NULL || user->is_lazy || user->close_in == TEST_READABLE)
        return;
    (void)test_user_read(user);
    if (user->pauses)
        leat_stream_pause(stream);
}

enum leat_status test_user_read(struct test_user *user)
{
    uint8_t *buf = leat_loop_scratch(user->loop, LEAT_SCRATCH_PLAIN);
    size_t cap = user->cap != 0 ? user->cap : 1 + test_random(&user->seed, 40000);
    size_t len = 0;

    user->in_call = true;
    enum leat_status status = leat_stream_read(user->stream, buf, cap, &len);
    user->in_call = false;
    const struct leat_stream_turn *turn = leat_stream_turn(user->stream);
    user->received += turn->received;
    user->records += turn->records;
    if (status == LEAT_OK) {
        assert_in_range(len, 1, cap);
        assert_int_equal(turn->delivered, len);
        assert_true(turn->received <= cap);
        user->got = realloc(user->got, user->got_len + len);
        assert_non_null(user->got);
        memcpy(user->got + user->got_len, buf, len);
        user->got_len += len;
    } else if (status != LEAT_EAGAIN) {
        user->end = status;
        user->error = *leat_stream_error(user->stream);
    }
    return status;
}

void test_user_write(struct test_user *user, const void *data, size_t len)
{
    struct iovec part = {.iov_len = len};
    memcpy(&part.iov_base, &data, sizeof(data));
    user->in_call = true;
    assert_int_equal(leat_stream_write(user->stream, &part, 1), LEAT_OK);
    user->in_call = false;
}

void test_user_init(struct test_user *user, struct leat_loop *loop)
{
    *user =
        (struct test_user){.loop = loop, .cap = LEAT_SCRATCH_PLAIN_SIZE, .close_in = -1, .seed = 1};
}

void test_user_fini(struct test_user *user)
{
    user->close_in = -1;
    if (user->stream != NULL)
        leat_stream_close(user->stream);
    TURN_UNTIL(user->loop, user->stream == NULL);
    free(user->got);
}

struct leat_stream_user test_user_of(struct test_user *user)
{
    static const struct leat_stream_events events = {
        .connected = on_connected,
        .proxied = on_proxied,
        .opened = on_opened,
        .readable = on_readable,
        .drained = on_drained,
        .hup = on_hup,
        .failed = on_failed,
        .closed = on_closed,
    };
    return (struct leat_stream_user){.events = &events, .arg = user};
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

void test_turn(struct leat_loop *loop)
{
    uint64_t start_ms = now_ms();
    assert_true(++turns < TURNS_MAX);
    leat_loop_turn(loop, 20000);
    assert_true(now_ms() - start_ms < 20000);
}

void test_poll(struct leat_loop *loop)
{
    assert_true(++turns < TURNS_MAX);
    leat_loop_turn(loop, 0);
}

void test_settle(struct leat_loop *loop)
{
    for (int i = 0; i < 20; i++)
        leat_loop_turn(loop, 0);
}

void test_tcp_pair(int out_fds[2])
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(bind(listener, (struct sockaddr *)&addr, len), 0);
    assert_return_code(listen(listener, 1), 0);
    assert_return_code(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    out_fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(connect(out_fds[0], (struct sockaddr *)&addr, len), 0);
    out_fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_return_code(out_fds[1], 0);
    assert_return_code(fcntl(out_fds[0], F_SETFL, O_NONBLOCK), 0);
    (void)close(listener);
}

void test_unix_pair(int out_fds[2])
{
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, out_fds),
                       0);
}

void test_reset(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    (void)close(fd);
}

void test_fill(uint8_t *buf, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525u + 1013904223u;
        buf[i] = (uint8_t)(seed >> 24);
    }
}

uint32_t test_random(uint32_t *seed, uint32_t limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % limit;
}

uint64_t test_clock(void *arg)
{
    return *(uint64_t *)arg;
}
