/*
 * Tests of PROXY headers at the beginning of streams over TLS (net/stream.h).
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

#include "stream_side.h"

#define LINE "PROXY TCP4 192.0.2.7 192.0.2.8 40000 5671\r\n"
#define BINARY "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\xc\xc0\0\2\7\xc0\0\2\x8\x9c\x40\x16\x27"
#define SOURCE "192.0.2.7:40000"
#define FIRST_MAX 4096

/* Accepts over TLS a stream that a PROXY header must begin, from FD. */
static void accept_proxied(struct fixture *f, int fd)
{
    struct leat_stream_user user = test_user_of(&f->server);

    user.expects_proxy = true;
    assert_int_equal(leat_tls_stream_accept(f->loop, fd, f->tls_server, &user, &f->server.stream),
                     LEAT_OK);
}

/* The same from f->plain. */
static void start_plain(struct fixture *f)
{
    int fds[2];

    test_tcp_pair(fds);
    f->plain = fds[1];
    accept_proxied(f, fds[0]);
}

/* The same from f->raw; BYTES gets what it sends first, the header and its ClientHello. */
static size_t start_raw(struct fixture *f, const char *header, size_t len, char bytes[FIRST_MAX])
{
    int fds[2];

    test_unix_pair(fds);
    raw_tls_init(&f->raw, false, &side_certs, fds[1]);
    accept_proxied(f, fds[0]);
    memcpy(bytes, header, len);
    assert_int_equal(SSL_do_handshake(f->raw.ssl), -1);
    int hello = BIO_read(f->raw.out, bytes + len, FIRST_MAX - (int)len);
    assert_in_range(hello, 100, FIRST_MAX - len - 1);
    return len + (size_t)hello;
}

static void send_bytes(int fd, const char *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

/* Takes f->raw and the stream through the handshake, and a message through. */
static void assert_opens(struct fixture *f)
{
    while (!raw_tls_step(&f->raw) || f->server.told[TEST_OPENED] == 0)
        test_poll(f->loop);
    assert_int_equal(f->server.told[TEST_PROXIED], 1);
    assert_string_equal(f->server.source, SOURCE);
    raw_tls_write(&f->raw, "hello", 5);
    side_send_all(f);
    TURN_UNTIL(f->loop, f->server.got_len == 5);
    assert_memory_equal(f->server.got, "hello", 5);
}

static void the_header_and_the_hello_may_come_at_once(void **state)
{
    struct fixture *f = *state;
    char bytes[FIRST_MAX];
    size_t len = start_raw(f, LINE, sizeof(LINE) - 1, bytes);

    send_bytes(f->raw.fd, bytes, len);
    test_settle(f->loop);
    assert_int_equal(f->server.told[TEST_PROXIED], 1);
    assert_true(raw_tls_receive(&f->raw));
    assert_true(BIO_ctrl_pending(f->raw.in) > 0); /* the hello was answered at once */
    assert_opens(f);
}

static void they_may_be_cut_anywhere(void **state)
{
    struct fixture *f = *state;
    char bytes[FIRST_MAX];
    size_t len = sizeof(BINARY);

    for (size_t cut = 0; cut < len; cut++) {
        len = start_raw(f, BINARY, sizeof(BINARY) - 1, bytes);
        send_bytes(f->raw.fd, bytes, cut);
        test_settle(f->loop);
        assert_int_equal(f->server.told[TEST_PROXIED], cut >= sizeof(BINARY) - 1);
        send_bytes(f->raw.fd, bytes + cut, len - cut);
        assert_opens(f);
        raw_tls_fini(&f->raw);
        f->raw = (struct raw_tls){.fd = -1};
        test_user_fini(&f->server);
        test_user_init(&f->server, f->loop);
    }
}

static void assert_failed(struct fixture *f, enum leat_status status, const char *says)
{
    TURN_UNTIL(f->loop, f->server.told[TEST_FAILED] > 0);
    assert_int_equal(f->server.told[TEST_OPENED], 0);
    assert_int_equal(f->server.error.status, status);
    if (strstr(f->server.error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", f->server.error.text, says);
}

/* A client that connects directly, where only the proxy may. */
static void a_hello_without_a_header_is_refused(void **state)
{
    struct fixture *f = *state;
    char bytes[FIRST_MAX];
    size_t len = start_raw(f, "", 0, bytes);

    send_bytes(f->raw.fd, bytes, len);
    assert_failed(f, LEAT_EPROTOCOL, "as TLS does, but a PROXY header must come first");
    assert_int_equal(f->server.told[TEST_PROXIED], 0);
}

static void what_is_no_tls_behind_the_header_is_told_apart(void **state)
{
    struct fixture *f = *state;

    start_plain(f);
    send_bytes(f->plain, LINE "AMQP\0\0\x9\1", sizeof(LINE) + 7);
    assert_failed(f, LEAT_EPROTOCOL, "AMQP");
    assert_int_equal(f->server.told[TEST_PROXIED], 1);
}

static void an_end_is_told_by_what_is_missing(void **state)
{
    struct fixture *f = *state;

    for (int sent = 0; sent <= 1; sent++) {
        start_plain(f);
        if (sent == 1)
            send_bytes(f->plain, LINE, sizeof(LINE) - 1);
        test_settle(f->loop);
        (void)close(f->plain);
        f->plain = -1;
        assert_failed(f, LEAT_ECLOSED, sent == 0 ? "before its PROXY header" : "TLS handshake");
        test_user_fini(&f->server);
        test_user_init(&f->server, f->loop);
    }
}

static void closing_when_it_is_told_begins_no_handshake(void **state)
{
    struct fixture *f = *state;
    char bytes[FIRST_MAX];
    size_t len = start_raw(f, LINE, sizeof(LINE) - 1, bytes);

    f->server.close_in = TEST_PROXIED;
    send_bytes(f->raw.fd, bytes, len);
    TURN_UNTIL(f->loop, f->server.stream == NULL);
    (void)raw_tls_receive(&f->raw);
    assert_int_equal(BIO_ctrl_pending(f->raw.in), 0);
}

/* A stream that sends one, to a stream that expects one. */
static void it_is_sent_before_the_handshake(void **state)
{
    struct fixture *f = *state;
    int fd = side_connect(f, f->client_ctx, "localhost");

    assert_int_equal(leat_stream_send_first(f->client.stream, LINE, sizeof(LINE) - 1), LEAT_OK);
    accept_proxied(f, fd);
    TURN_UNTIL(f->loop, f->server.told[TEST_OPENED] > 0 && f->client.told[TEST_OPENED] > 0);
    assert_string_equal(f->server.source, SOURCE);
    test_user_write(&f->client, "hello", 5);
    test_user_write(&f->server, "you", 3);
    TURN_UNTIL(f->loop, f->server.got_len == 5 && f->client.got_len == 3);
    assert_memory_equal(f->server.got, "hello", 5);
    assert_memory_equal(f->client.got, "you", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDE_TEST(the_header_and_the_hello_may_come_at_once),
        SIDE_TEST(they_may_be_cut_anywhere),
        SIDE_TEST(a_hello_without_a_header_is_refused),
        SIDE_TEST(what_is_no_tls_behind_the_header_is_told_apart),
        SIDE_TEST(an_end_is_told_by_what_is_missing),
        SIDE_TEST(closing_when_it_is_told_begins_no_handshake),
        SIDE_TEST(it_is_sent_before_the_handshake),
    };

    return cmocka_run_group_tests(tests, side_group_setup, side_group_teardown);
}
