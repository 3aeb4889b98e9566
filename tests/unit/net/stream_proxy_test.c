/*
 * Tests of PROXY headers at the beginning of plain streams (net/stream.h).
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
#include "buf/writer.h"
#include "net/proxy_header.h"
#include "support/stream_user.h"

#define LINE "PROXY TCP4 192.0.2.7 192.0.2.8 40000 5671\r\n"
#define BINARY "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\xc\xc0\0\2\7\xc0\0\2\x8\x9c\x40\x16\x27"
#define SOURCE "192.0.2.7:40000"

struct fixture {
    struct leat_loop *loop;
    struct test_user user;
    int peer; /* the other end; -1 once closed */
};

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

static void end(struct fixture *f)
{
    if (f->peer >= 0)
        (void)close(f->peer);
    f->peer = -1;
    test_user_fini(&f->user);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    end(f);
    leat_loop_free(f->loop);
    free(f);
    return 0;
}

/* Accepts a stream that a PROXY header must begin. */
static void start(struct fixture *f, void (*pair)(int *))
{
    int fds[2];
    struct leat_stream_user user = test_user_of(&f->user);

    user.expects_proxy = true;
    pair(fds);
    f->peer = fds[1];
    f->user.in_call = true;
    assert_int_equal(leat_stream_accept(f->loop, fds[0], &user, &f->user.stream), LEAT_OK);
    f->user.in_call = false;
    test_settle(f->loop);
}

static void restart(struct fixture *f, void (*pair)(int *))
{
    end(f);
    test_user_init(&f->user, f->loop);
    start(f, pair);
}

static void send_bytes(struct fixture *f, const char *bytes, size_t len)
{
    assert_int_equal(send(f->peer, bytes, len, MSG_NOSIGNAL), len);
}

static void close_peer(struct fixture *f)
{
    (void)close(f->peer);
    f->peer = -1;
}

static void assert_got(struct fixture *f, const char *text)
{
    assert_int_equal(f->user.got_len, strlen(text));
    assert_memory_equal(f->user.got, text, strlen(text));
    assert_string_equal(f->user.source, SOURCE);
    assert_int_equal(f->user.told[TEST_PROXIED], 1);
    assert_int_equal(f->user.told[TEST_OPENED], 1);
}

static void assert_failed(struct fixture *f, enum leat_status status, const char *says)
{
    TURN_UNTIL(f->loop, f->user.told[TEST_FAILED] > 0);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_FAILED], 1);
    assert_int_equal(f->user.told[TEST_PROXIED], 0);
    assert_int_equal(f->user.told[TEST_OPENED], 0);
    assert_int_equal(f->user.error.status, status);
    if (strstr(f->user.error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", f->user.error.text, says);
    assert_int_equal(test_user_read(&f->user), status);
}

/* Both versions, cut in two at every byte: nothing is told before the header is whole. */
static void it_may_be_cut_anywhere(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *bytes;
        size_t header, len;
    } cases[] = {
        {LINE "hello", sizeof(LINE) - 1, sizeof(LINE) + 4},
        {BINARY "hello", sizeof(BINARY) - 1, sizeof(BINARY) + 4},
    };

    for (size_t i = 0; i < 2; i++) {
        for (size_t cut = 0; cut <= cases[i].len; cut++) {
            restart(f, cut % 2 == 0 ? test_unix_pair : test_tcp_pair);
            send_bytes(f, cases[i].bytes, cut);
            test_settle(f->loop);
            assert_int_equal(f->user.told[TEST_PROXIED], cut >= cases[i].header);
            assert_int_equal(f->user.told[TEST_OPENED], cut >= cases[i].header);
            if (cut < cases[i].len)
                send_bytes(f, cases[i].bytes + cut, cases[i].len - cut);
            TURN_UNTIL(f->loop, f->user.got_len == 5);
            assert_got(f, "hello");
        }
    }
}

static void it_may_come_byte_by_byte(void **state)
{
    struct fixture *f = *state;
    const char bytes[] = BINARY "hello";

    start(f, test_unix_pair);
    for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
        send_bytes(f, &bytes[i], 1);
        test_settle(f->loop);
    }
    assert_got(f, "hello");
    assert_int_equal(leat_stream_received(f->user.stream), sizeof(bytes) - 1);
}

/* A turn that may wait does: it is counted as a wake-up, not as a poll. */
static void assert_idle(struct fixture *f)
{
    test_settle(f->loop);
    uint64_t polls = leat_loop_counters(f->loop)->polls;
    leat_loop_turn(f->loop, 1);
    assert_int_equal(leat_loop_counters(f->loop)->polls, polls);
}

static void waiting_causes_no_turns(void **state)
{
    struct fixture *f = *state;
    const char bytes[] = LINE "hello";

    start(f, test_tcp_pair);
    assert_idle(f);
    send_bytes(f, bytes, 10);
    assert_idle(f);
    send_bytes(f, bytes + 10, sizeof(bytes) - 1 - 10);
    TURN_UNTIL(f->loop, f->user.got_len == 5);
    assert_idle(f);
}

static void what_comes_behind_it_is_read_in_small_parts(void **state)
{
    struct fixture *f = *state;

    start(f, test_unix_pair);
    f->user.cap = 1;
    send_bytes(f, LINE "hello", sizeof(LINE) + 4);
    TURN_UNTIL(f->loop, f->user.got_len == 5);
    assert_got(f, "hello");
    send_bytes(f, " you", 4);
    TURN_UNTIL(f->loop, f->user.got_len == 9);
    assert_got(f, "hello you");
}

static void what_comes_behind_it_waits_for_a_paused_reader(void **state)
{
    struct fixture *f = *state;

    start(f, test_unix_pair);
    leat_stream_pause(f->user.stream);
    send_bytes(f, LINE "hello", sizeof(LINE) + 4);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_OPENED], 1);
    assert_int_equal(f->user.told[TEST_READABLE], 0);
    leat_stream_resume(f->user.stream);
    TURN_UNTIL(f->loop, f->user.got_len == 5);
    assert_got(f, "hello");
}

static void the_end_comes_after_what_is_behind_it(void **state)
{
    struct fixture *f = *state;

    start(f, test_tcp_pair);
    send_bytes(f, LINE "hello", sizeof(LINE) + 4);
    close_peer(f);
    TURN_UNTIL(f->loop, f->user.end != LEAT_OK);
    assert_int_equal(f->user.end, LEAT_ECLOSED);
    assert_got(f, "hello");
}

/* The longest header leaves no room for more, which stays in the kernel, however it is cut. */
static void the_longest_one_is_taken(void **state)
{
    struct fixture *f = *state;
    static const char zeros[LEAT_PROXY_HEADER_MAX] = {0};
    static char bytes[2 * LEAT_PROXY_HEADER_MAX];
    struct leat_writer writer;

    leat_writer_init(&writer, bytes, sizeof(bytes));
    leat_writer_bytes(&writer, (struct leat_str){BINARY, sizeof(BINARY) - 1});
    writer.len = 14;
    leat_writer_u16(&writer, LEAT_PROXY_HEADER_MAX - 16);
    writer.len = sizeof(BINARY) - 1;
    leat_writer_u8(&writer, 4);
    leat_writer_u16(&writer, LEAT_PROXY_HEADER_MAX - 31);
    leat_writer_bytes(&writer, (struct leat_str){zeros, LEAT_PROXY_HEADER_MAX - 31});
    assert_false(writer.failed);
    for (size_t cut = 0; cut <= LEAT_PROXY_HEADER_MAX; cut += LEAT_PROXY_HEADER_MAX / 4) {
        restart(f, test_unix_pair);
        send_bytes(f, bytes, cut);
        test_settle(f->loop);
        send_bytes(f, bytes + cut, sizeof(bytes) - cut);
        TURN_UNTIL(f->loop, f->user.got_len == sizeof(bytes) - writer.len);
        assert_string_equal(f->user.source, SOURCE);
    }
}

static void much_behind_it_stays_in_order(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[100000];

    test_fill(bytes, sizeof(bytes), 5);
    memcpy(bytes, LINE, sizeof(LINE) - 1);
    start(f, test_unix_pair);
    f->user.cap = 1000;
    send_bytes(f, (const char *)bytes, sizeof(bytes));
    TURN_UNTIL(f->loop, f->user.got_len == sizeof(bytes) - (sizeof(LINE) - 1));
    assert_memory_equal(f->user.got, bytes + sizeof(LINE) - 1, f->user.got_len);
}

static void one_without_addresses_is_told_as_such(void **state)
{
    struct fixture *f = *state;
    struct leat_addr peer;

    start(f, test_tcp_pair);
    send_bytes(f, "PROXY UNKNOWN\r\n", 15);
    TURN_UNTIL(f->loop, f->user.told[TEST_OPENED] > 0);
    assert_string_equal(f->user.source, "local");
    leat_stream_peer_addr(f->user.stream, &peer);
    assert_true(leat_addr_is_loopback(&peer));
}

static void what_is_none_is_refused(void **state)
{
    struct fixture *f = *state;

    start(f, test_tcp_pair);
    send_bytes(f, "AMQP\0\0\x9\1", 8);
    assert_failed(f, LEAT_EPROTOCOL, "a PROXY header must come first");
    restart(f, test_tcp_pair);
    send_bytes(f, "PROXY TCP4 192.0.2.7 192.0.2.8 1 65536\r\nhello", 45);
    assert_failed(f, LEAT_EPROTOCOL, "\"65536\"");
}

static void an_end_before_it_is_an_ordinary_end(void **state)
{
    struct fixture *f = *state;

    start(f, test_tcp_pair);
    close_peer(f);
    assert_failed(f, LEAT_ECLOSED, "before its PROXY header");
    restart(f, test_tcp_pair);
    send_bytes(f, LINE, 10);
    test_settle(f->loop);
    close_peer(f);
    assert_failed(f, LEAT_ECLOSED, "inside its PROXY header");
}

static void a_reset_before_it_is_told(void **state)
{
    struct fixture *f = *state;

    start(f, test_tcp_pair);
    test_reset(f->peer);
    f->peer = -1;
    assert_failed(f, LEAT_ERESET, "before its PROXY header");
}

static void the_user_may_close_when_it_is_told(void **state)
{
    struct fixture *f = *state;

    start(f, test_unix_pair);
    f->user.close_in = TEST_PROXIED;
    send_bytes(f, LINE "hello", sizeof(LINE) + 4);
    TURN_UNTIL(f->loop, f->user.stream == NULL);
    assert_int_equal(f->user.told[TEST_PROXIED], 1);
    assert_int_equal(f->user.told[TEST_OPENED], 0);
}

static void refuse_to_send(struct leat_stream *stream, const struct leat_proxy_header *header,
                           void *arg)
{
    struct test_user *user = arg;
    (void)header;
    assert_int_equal(leat_stream_send_first(stream, LINE, 5), LEAT_EUSAGE);
    user->told[TEST_PROXIED]++;
}

static void who_gets_one_sends_none(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->user);
    struct leat_stream_events events = *user.events;
    int fds[2];

    events.proxied = refuse_to_send;
    user.events = &events;
    user.expects_proxy = true;
    test_unix_pair(fds);
    f->peer = fds[1];
    assert_int_equal(leat_stream_accept(f->loop, fds[0], &user, &f->user.stream), LEAT_OK);
    send_bytes(f, LINE, sizeof(LINE) - 1);
    TURN_UNTIL(f->loop, f->user.told[TEST_OPENED] > 0);
    assert_int_equal(f->user.told[TEST_PROXIED], 1);
    end(f); /* while `events` is there */
    test_user_init(&f->user, f->loop);
}

static void finishing_drops_what_is_behind_it(void **state)
{
    struct fixture *f = *state;
    char c;

    start(f, test_tcp_pair);
    f->user.is_lazy = true;
    send_bytes(f, LINE "hello", sizeof(LINE) + 4);
    TURN_UNTIL(f->loop, f->user.told[TEST_OPENED] > 0);
    test_user_write(&f->user, "x", 1);
    leat_stream_finish(f->user.stream, 0, 0);
    test_settle(f->loop);
    assert_int_equal(recv(f->peer, &c, 1, 0), 1);
    assert_int_equal(recv(f->peer, &c, 1, 0), 0);
    close_peer(f);
    TURN_UNTIL(f->loop, f->user.stream == NULL);
}

static void without_memory_for_it_the_stream_breaks(void **state)
{
    struct fixture *f = *state;

    start(f, test_unix_pair);
    send_bytes(f, LINE, sizeof(LINE) - 1);
    leat_mem_fail_after(1);
    test_settle(f->loop);
    leat_mem_fail_after(0);
    assert_failed(f, LEAT_ENOMEM, "PROXY header");
}

static void it_is_bytes_like_others_where_none_is_expected(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->user);
    int fds[2];

    test_unix_pair(fds);
    f->peer = fds[1];
    assert_int_equal(leat_stream_accept(f->loop, fds[0], &user, &f->user.stream), LEAT_OK);
    send_bytes(f, LINE, sizeof(LINE) - 1);
    TURN_UNTIL(f->loop, f->user.got_len == sizeof(LINE) - 1);
    assert_int_equal(f->user.told[TEST_PROXIED], 0);
}

/* Sending one. */

/* Begins to connect USER to a listener, whose descriptor is returned. */
static int connect_user(struct fixture *f, const struct leat_stream_user *user)
{
    struct leat_addr addr;
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    struct leat_connect_target target = {.addrs = &addr, .addr_count = 1};
    int listener;

    assert_int_equal(leat_addr_parse((struct leat_str){"127.0.0.1:0", 11}, 0, &addr, NULL),
                     LEAT_OK);
    assert_int_equal(leat_addr_listen(&addr, &listener, NULL), LEAT_OK);
    assert_return_code(getsockname(listener, (struct sockaddr *)&ss, &len), 0);
    leat_addr_from_sockaddr(&ss, &addr);
    assert_int_equal(leat_stream_connect(f->loop, &target, user, &f->user.stream, NULL), LEAT_OK);
    return listener;
}

/* What came to LISTENER's first connection is TEXT. */
static void assert_received(struct fixture *f, int listener, const char *text)
{
    char got[200];
    size_t len = 0;

    TURN_UNTIL(f->loop, f->user.told[TEST_OPENED] > 0);
    f->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_return_code(f->peer, 0);
    test_user_write(&f->user, "hello", 5);
    test_settle(f->loop);
    assert_int_equal(f->user.told[TEST_DRAINED], 0); /* what the user did not write is no matter */
    leat_stream_finish(f->user.stream, 0, 0);
    test_settle(f->loop);
    for (ssize_t n = 1; n > 0 && len < sizeof(got); len += (size_t)n) {
        n = recv(f->peer, got + len, sizeof(got) - len, 0);
        assert_return_code(n, 0);
    }
    assert_int_equal(len, strlen(text));
    assert_memory_equal(got, text, len);
    (void)close(listener);
}

static void it_is_sent_first(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->user);
    int listener = connect_user(f, &user);

    assert_int_equal(leat_stream_send_first(f->user.stream, "PROXY ", 6), LEAT_OK);
    assert_int_equal(leat_stream_send_first(f->user.stream, "UNKNOWN\r\n", 9), LEAT_OK);
    assert_received(f, listener, "PROXY UNKNOWN\r\nhello");
}

static void send_when_connected(struct leat_stream *stream, void *arg)
{
    (void)arg;
    assert_int_equal(leat_stream_send_first(stream, LINE, sizeof(LINE) - 1), LEAT_OK);
}

/* Only then is the local address known, which a health check names. */
static void it_may_be_made_when_connected(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->user);
    struct leat_stream_events events = *user.events;

    events.connected = send_when_connected;
    user.events = &events;
    int listener = connect_user(f, &user);
    assert_received(f, listener, LINE "hello");
    TURN_UNTIL(f->loop, f->user.told[TEST_OPENED] > 0);
    close_peer(f);
    TURN_UNTIL(f->loop, f->user.stream == NULL);
}

static void it_is_too_late_when_the_stream_is_open(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->user);
    int listener = connect_user(f, &user);

    TURN_UNTIL(f->loop, f->user.told[TEST_OPENED] > 0);
    assert_int_equal(leat_stream_send_first(f->user.stream, LINE, 5), LEAT_EUSAGE);
    (void)close(listener);
    restart(f, test_unix_pair); /* and an accepted one sends none */
    assert_int_equal(leat_stream_send_first(f->user.stream, LINE, 5), LEAT_EUSAGE);
}

static void without_memory_to_send_it_the_caller_is_told(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->user);
    int listener = connect_user(f, &user);

    leat_mem_fail_after(1);
    assert_int_equal(leat_stream_send_first(f->user.stream, LINE, 5), LEAT_ENOMEM);
    leat_mem_fail_after(0);
    assert_received(f, listener, "hello");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_may_be_cut_anywhere),
        TEST(it_may_come_byte_by_byte),
        TEST(waiting_causes_no_turns),
        TEST(what_comes_behind_it_is_read_in_small_parts),
        TEST(what_comes_behind_it_waits_for_a_paused_reader),
        TEST(the_end_comes_after_what_is_behind_it),
        TEST(the_longest_one_is_taken),
        TEST(much_behind_it_stays_in_order),
        TEST(one_without_addresses_is_told_as_such),
        TEST(what_is_none_is_refused),
        TEST(an_end_before_it_is_an_ordinary_end),
        TEST(a_reset_before_it_is_told),
        TEST(the_user_may_close_when_it_is_told),
        TEST(who_gets_one_sends_none),
        TEST(finishing_drops_what_is_behind_it),
        TEST(without_memory_for_it_the_stream_breaks),
        TEST(it_is_bytes_like_others_where_none_is_expected),
        TEST(it_is_sent_first),
        TEST(it_may_be_made_when_connected),
        TEST(it_is_too_late_when_the_stream_is_open),
        TEST(without_memory_to_send_it_the_caller_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
