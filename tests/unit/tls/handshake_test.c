/*
 * Tests of tls/stream.h: handshakes, and what is said of those that fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "stream_side.h"

static void assert_failed(const struct test_user *user, enum leat_status status, const char *says)
{
    assert_int_equal(user->told[TEST_FAILED], 1);
    assert_int_equal(user->told[TEST_OPENED], 0);
    assert_int_equal(user->error.status, status);
    if (strstr(user->error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", user->error.text, says);
}

static void opens_after_the_handshake(void **state)
{
    struct fixture *f = *state;
    side_open_both(f);
    assert_int_equal(f->client.told[TEST_CONNECTED], 1);
    assert_int_equal(f->client.told[TEST_OPENED], 1);
    assert_int_equal(f->server.told[TEST_CONNECTED], 0);
    test_settle(f->loop);
    assert_int_equal(f->server.told[TEST_OPENED], 1);
}

static void nothing_is_negotiated_before_it_opens(void **state)
{
    struct fixture *f = *state;
    side_accept_raw(f, test_unix_pair);
    assert_string_equal(leat_stream_tls(f->server.stream).version, "");
    assert_string_equal(leat_stream_tls(f->server.stream).cipher, "");
    struct iovec part = {.iov_base = f, .iov_len = 1};
    assert_int_equal(leat_stream_write(f->server.stream, &part, 1), LEAT_EUSAGE);
}

static void the_name_is_sent(void **state)
{
    struct fixture *f = *state;
    side_connect_raw(f, "localhost");
    assert_string_equal(SSL_get_servername(f->raw.ssl, TLSEXT_NAMETYPE_host_name), "localhost");
}

static void a_numeric_name_is_verified_but_not_sent(void **state)
{
    struct fixture *f = *state;
    side_connect_raw(f, "127.0.0.1");
    assert_null(SSL_get_servername(f->raw.ssl, TLSEXT_NAMETYPE_host_name));
}

/* Connects as NAME with CTX to a server with CERT; the client refuses with SAYS. */
static void assert_refused(struct fixture *f, struct leat_tls_ctx *ctx, const char *name,
                           const char *cert, const char *says)
{
    struct leat_tls_server *server = test_server_of(cert, side_certs.key);
    struct leat_stream_user user = test_user_of(&f->server);
    int fd = side_connect(f, ctx, name);
    assert_int_equal(leat_tls_stream_accept(f->loop, fd, server, &user, &f->server.stream),
                     LEAT_OK);
    leat_tls_server_unref(server);
    TURN_UNTIL(f->loop, f->client.told[TEST_FAILED] > 0);
    assert_failed(&f->client, LEAT_EVERIFY, says);
    assert_failed(&f->client, LEAT_EVERIFY, name);
    assert_int_equal(test_user_read(&f->client), LEAT_EVERIFY);
    leat_stream_finish(f->client.stream, 0, 0);
    /* The server is told by an alert. */
    TURN_UNTIL(f->loop, f->server.told[TEST_FAILED] > 0);
    assert_failed(&f->server, LEAT_ETLS, "alert");
}

static void an_unknown_ca_is_refused(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_ctx *ctx = test_client_of(side_certs.other_ca);
    assert_refused(f, ctx, "localhost", side_certs.cert,
                   "its authority \"CN=leat test CA\" is unknown");
    leat_tls_ctx_unref(ctx);
}

static void a_wrong_name_is_refused(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, f->client_ctx, "wrong.example", side_certs.cert,
                   "it is for localhost, 127.0.0.1");
}

static void a_wrong_address_is_refused(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, f->client_ctx, "127.0.0.2", side_certs.cert, "it is for localhost");
}

static void an_expired_certificate_is_refused(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, f->client_ctx, "localhost", side_certs.expired, "it expired on 2");
}

/* An empty name would switch verification off. */
static void there_must_be_a_name(void **state)
{
    struct fixture *f = *state;
    const char *const names[] = {NULL, ""};
    struct leat_addr addr;
    struct leat_str text = {"127.0.0.1:1", 11};
    struct leat_stream_user user = test_user_of(&f->client);
    struct leat_connect_target target = {.addrs = &addr, .addr_count = 1};
    assert_int_equal(leat_addr_parse(text, 0, &addr, NULL), LEAT_OK);
    for (size_t i = 0; i < 2; i++) {
        struct leat_tls_target tls = {.ctx = f->client_ctx, .name = names[i]};
        struct leat_error err;
        assert_int_equal(
            leat_tls_stream_connect(f->loop, &target, &tls, &user, &f->client.stream, &err),
            LEAT_EUSAGE);
        assert_non_null(strstr(err.text, "name"));
    }
}

/* The stream under test is accepted and gets BYTES, whole or one at a time. */
static void assert_no_tls(void **state, const char *bytes, size_t len, const char *says)
{
    for (size_t cut = 1; cut <= len; cut += len - 1) {
        struct fixture *f = *state;
        side_accept_plain(f, test_tcp_pair);
        for (size_t at = 0; at < len; at += cut) {
            assert_int_equal(send(f->plain, bytes + at, cut, MSG_NOSIGNAL), cut);
            test_settle(f->loop);
        }
        (void)shutdown(f->plain, SHUT_WR);
        TURN_UNTIL(f->loop, f->server.told[TEST_FAILED] > 0);
        assert_failed(&f->server, LEAT_EPROTOCOL, says);
        assert_int_equal(side_teardown(state), 0);
        assert_int_equal(side_setup(state), 0);
    }
}

static void who_speaks_no_tls_is_told_apart(void **state)
{
    assert_no_tls(state, "AMQP\0\0\x09\x01", 8, "plain-text AMQP on a TLS port");
    assert_no_tls(state, "AMQP", 4, "plain-text AMQP on a TLS port");
    assert_no_tls(state, "GET / HTTP/1.1\r\n\r\n", 18, "HTTP on an AMQP port");
    assert_no_tls(state, "OPTIONS * HTTP/1.1\r\n\r\n", 22, "HTTP on an AMQP port");
    assert_no_tls(state, "\x80\x2e\x01", 3, "no TLS: the first bytes are 80 2e 01");
    assert_no_tls(state, "\0\0\0\0\0\0\0\0\0", 9, "00 00 00 00 00 00 00 00");
}

static void a_broker_without_tls_is_told_apart(void **state)
{
    struct fixture *f = *state;
    f->plain = side_connect(f, f->client_ctx, "localhost");
    assert_int_equal(send(f->plain, "AMQP\0\0\x09\x01", 8, MSG_NOSIGNAL), 8);
    TURN_UNTIL(f->loop, f->client.told[TEST_FAILED] > 0);
    assert_failed(&f->client, LEAT_EPROTOCOL, "the broker speaks plain-text AMQP");
}

static void a_peer_may_close_during_the_handshake(void **state)
{
    struct fixture *f = *state;
    side_accept_plain(f, test_tcp_pair);
    (void)shutdown(f->plain, SHUT_WR);
    TURN_UNTIL(f->loop, f->server.told[TEST_FAILED] > 0);
    assert_failed(&f->server, LEAT_ECLOSED,
                  "the peer closed the connection during the TLS handshake");
}

static void a_peer_may_reset_during_the_handshake(void **state)
{
    struct fixture *f = *state;
    side_accept_plain(f, test_tcp_pair);
    test_settle(f->loop);
    test_reset(f->plain);
    f->plain = -1;
    TURN_UNTIL(f->loop, f->server.told[TEST_FAILED] > 0);
    assert_failed(&f->server, LEAT_ERESET, "during the TLS handshake");
}

static void a_refused_connection_is_no_matter_of_tls(void **state)
{
    struct fixture *f = *state;
    int fd = side_connect(f, f->client_ctx, "localhost");
    struct leat_addr addr;
    TURN_UNTIL(f->loop, f->client.told[TEST_CONNECTED] > 0);
    leat_stream_peer_addr(f->client.stream, &addr);
    (void)close(fd);
    test_user_fini(&f->client);
    test_user_init(&f->client, f->loop);
    struct leat_stream_user user = test_user_of(&f->client);
    struct leat_connect_target target = {.addrs = &addr, .addr_count = 1};
    struct leat_tls_target tls = {.ctx = f->client_ctx, .name = "localhost"};
    assert_int_equal(
        leat_tls_stream_connect(f->loop, &target, &tls, &user, &f->client.stream, NULL), LEAT_OK);
    TURN_UNTIL(f->loop, f->client.told[TEST_FAILED] > 0);
    assert_failed(&f->client, LEAT_EIO, "refused");
}

static void tls12_works(void **state)
{
    struct fixture *f = *state;
    side_accept_raw(f, test_unix_pair);
    assert_int_equal(SSL_set_max_proto_version(f->raw.ssl, TLS1_2_VERSION), 1);
    while (!raw_tls_step(&f->raw) || f->server.told[TEST_OPENED] == 0)
        test_poll(f->loop);
    assert_string_equal(leat_stream_tls(f->server.stream).version, "TLSv1.2");
    assert_string_equal(leat_stream_tls(f->server.stream).cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
    raw_tls_write(&f->raw, "hello", 5);
    side_send_all(f);
    TURN_UNTIL(f->loop, f->server.got_len == 5);
}

/* Steps both ends until the stream has failed. */
static void shake_until_failed(struct fixture *f)
{
    while (f->server.told[TEST_FAILED] == 0) {
        (void)raw_tls_step(&f->raw);
        test_poll(f->loop);
    }
    (void)raw_tls_receive(&f->raw);
    (void)SSL_do_handshake(f->raw.ssl);
}

static void older_versions_are_refused_with_an_alert(void **state)
{
    struct fixture *f = *state;
    side_accept_raw(f, test_unix_pair);
    SSL_set_security_level(f->raw.ssl, 0);
    assert_int_equal(SSL_set_min_proto_version(f->raw.ssl, TLS1_1_VERSION), 1);
    assert_int_equal(SSL_set_max_proto_version(f->raw.ssl, TLS1_1_VERSION), 1);
    shake_until_failed(f);
    assert_failed(&f->server, LEAT_ETLS, "older than 1.2");
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
}

static void ciphers_without_forward_secrecy_are_refused(void **state)
{
    struct fixture *f = *state;
    side_accept_raw(f, test_unix_pair);
    assert_int_equal(SSL_set_max_proto_version(f->raw.ssl, TLS1_2_VERSION), 1);
    assert_int_equal(SSL_set_cipher_list(f->raw.ssl, "ECDHE-ECDSA-AES128-SHA256:AES128-SHA"), 1);
    shake_until_failed(f);
    assert_failed(&f->server, LEAT_ETLS, "no cipher suite in common");
}

static void a_client_that_distrusts_us_is_named_as_the_cause(void **state)
{
    struct fixture *f = *state;
    side_accept_raw(f, test_unix_pair);
    assert_int_equal(SSL_set1_host(f->raw.ssl, "elsewhere.example"), 1);
    shake_until_failed(f);
    assert_failed(&f->server, LEAT_ETLS, "did not accept the certificate");
}

static void no_tickets_are_given(void **state)
{
    struct fixture *f = *state;
    side_open_raw(f, test_unix_pair);
    test_settle(f->loop);
    (void)raw_tls_receive(&f->raw);
    assert_int_equal(BIO_ctrl_pending(f->raw.in), 0);
}

/* A ticket of another server's, or made up, with which early data may be sent. */
static int offer_early_data(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
                            SSL_SESSION **session)
{
    static const uint8_t secret[32] = {1}, name[] = "forged", suite[] = {0x13, 0x01};
    SSL_SESSION *made = SSL_SESSION_new();
    (void)md;
    assert_non_null(made);
    assert_int_equal(SSL_SESSION_set1_master_key(made, secret, sizeof(secret)), 1);
    assert_int_equal(SSL_SESSION_set_cipher(made, SSL_CIPHER_find(ssl, suite)), 1);
    assert_int_equal(SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION), 1);
    assert_int_equal(SSL_SESSION_set_max_early_data(made, 10000), 1);
    *id = name;
    *id_len = sizeof(name);
    *session = made;
    return 1;
}

/* Early data can be replayed by anybody. Elsewhere, who sent some and then stalled also made the
 * server spin. */
static void r46_early_data_is_not_taken(void **state)
{
    struct fixture *f = *state;
    size_t written = 0;
    side_accept_raw(f, test_unix_pair);
    SSL_set_psk_use_session_callback(f->raw.ssl, offer_early_data);
    assert_int_equal(SSL_write_early_data(f->raw.ssl, "early", 5, &written), 1);
    side_send_all(f);
    test_settle(f->loop); /* it stalls here */
    assert_int_equal(f->server.told[TEST_OPENED], 0);
    while (!raw_tls_step(&f->raw) || f->server.told[TEST_OPENED] == 0)
        test_poll(f->loop);
    assert_int_equal(SSL_get_early_data_status(f->raw.ssl), SSL_EARLY_DATA_REJECTED);
    raw_tls_write(&f->raw, "in time", 7);
    side_send_all(f);
    TURN_UNTIL(f->loop, f->server.got_len > 0);
    assert_int_equal(f->server.got_len, 7);
    assert_memory_equal(f->server.got, "in time", 7);
}

static void closing_during_the_handshake_is_at_once(void **state)
{
    struct fixture *f = *state;
    char c;
    side_accept_plain(f, test_tcp_pair);
    test_settle(f->loop);
    leat_stream_finish(f->server.stream, 1000, 1000);
    TURN_UNTIL(f->loop, f->server.stream == NULL);
    assert_int_equal(recv(f->plain, &c, 1, 0), 0);
    assert_int_equal(f->server.told[TEST_FAILED], 0);
}

static void every_event_may_close(void **state)
{
    const enum test_event events[] = {TEST_CONNECTED, TEST_OPENED};
    for (size_t i = 0; i < 2; i++) {
        struct fixture *f = *state;
        f->client.close_in = (int)events[i];
        f->plain = side_connect(f, f->client_ctx, "localhost");
        struct leat_stream_user user = test_user_of(&f->server);
        assert_int_equal(
            leat_tls_stream_accept(f->loop, f->plain, f->tls_server, &user, &f->server.stream),
            LEAT_OK);
        f->plain = -1;
        TURN_UNTIL(f->loop, f->client.stream == NULL);
        assert_int_equal(side_teardown(state), 0);
        assert_int_equal(side_setup(state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDE_TEST(opens_after_the_handshake),
        SIDE_TEST(nothing_is_negotiated_before_it_opens),
        SIDE_TEST(the_name_is_sent),
        SIDE_TEST(a_numeric_name_is_verified_but_not_sent),
        SIDE_TEST(an_unknown_ca_is_refused),
        SIDE_TEST(a_wrong_name_is_refused),
        SIDE_TEST(a_wrong_address_is_refused),
        SIDE_TEST(an_expired_certificate_is_refused),
        SIDE_TEST(there_must_be_a_name),
        SIDE_TEST(who_speaks_no_tls_is_told_apart),
        SIDE_TEST(a_broker_without_tls_is_told_apart),
        SIDE_TEST(a_peer_may_close_during_the_handshake),
        SIDE_TEST(a_peer_may_reset_during_the_handshake),
        SIDE_TEST(a_refused_connection_is_no_matter_of_tls),
        SIDE_TEST(tls12_works),
        SIDE_TEST(older_versions_are_refused_with_an_alert),
        SIDE_TEST(ciphers_without_forward_secrecy_are_refused),
        SIDE_TEST(a_client_that_distrusts_us_is_named_as_the_cause),
        SIDE_TEST(no_tickets_are_given),
        SIDE_TEST(r46_early_data_is_not_taken),
        SIDE_TEST(closing_during_the_handshake_is_at_once),
        SIDE_TEST(every_event_may_close),
    };

    return cmocka_run_group_tests(tests, side_group_setup, side_group_teardown);
}
