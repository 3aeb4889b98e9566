/*
 * Tests of what is said of certificates that are not accepted, to a person and to the peer; of
 * client certificates; and of what it takes to skip all that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "shake.h"

static struct leat_tls_server *server_with(const char *ca, const char *crl)
{
    struct leat_tls_config *config =
        test_config_of(LEAT_TLS_SERVER, side_certs.cert, side_certs.key);
    assert_int_equal(leat_tls_config_set_authorities(config, ca, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_client_cert(config, LEAT_TLS_CLIENT_CERT_REQUIRED, NULL),
                     LEAT_OK);
    if (crl != NULL)
        assert_int_equal(leat_tls_config_add_crl(config, crl, NULL), LEAT_OK);
    struct leat_tls_keyring *ring = test_keyring(NULL);
    struct leat_tls_server *server = test_server_of_ctx(test_ctx_of(config), ring);
    leat_tls_keyring_unref(ring);
    return server;
}

/* A client with CERT is refused by SERVER, which is dropped: SAYS is the reason, ALERT what the
 * client gets to see. */
static void assert_refused(struct fixture *f, struct leat_tls_server *server, const char *cert,
                           const char *says, int alert)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++) {
        struct shake_client client = {.cert = cert, .version = versions[i]};
        struct shake got = shake(f, server, &client);
        assert_int_equal(got.error.status, LEAT_EVERIFY);
        if (strstr(got.error.text, says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", got.error.text, says);
        assert_int_equal(got.alert, alert);
        assert_null(got.session);
    }
    leat_tls_server_unref(server);
}

/* Makes a certificate for a client, called NAME, with the days of its validity. */
static const char *issue(const char *name, int from_day, int to_day, const char *usage)
{
    static char path[TEST_PATH_MAX];
    const struct test_cert spec = {
        .name = name, .usage = usage, .from_day = from_day, .to_day = to_day};
    test_certs_issue(&side_certs, "client.pem", &spec, path);
    return path;
}

static void out_of_its_time(void **state)
{
    assert_refused(*state, server_with(side_certs.ca, NULL), issue("old", -9, -2, NULL),
                   "the client's certificate \"CN=old\" was not accepted: it expired on 20",
                   SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED);
    assert_refused(*state, server_with(side_certs.ca, NULL), issue("new", 2, 9, NULL),
                   "\"CN=new\" was not accepted: it is not valid before 20",
                   SSL_R_SSLV3_ALERT_BAD_CERTIFICATE);
}

static void of_an_authority_that_is_unknown(void **state)
{
    assert_refused(*state, server_with(side_certs.other_ca, NULL), issue("who", -1, 9, NULL),
                   "its authority \"CN=leat test CA\" is unknown; it has to be in the CA file",
                   SSL_R_TLSV1_ALERT_UNKNOWN_CA);
}

static void of_an_authority_that_has_expired(void **state)
{
    const struct test_cert middle = {
        .name = "middle", .from_day = -9, .to_day = -1, .is_authority = true};
    const struct test_cert leaf = {
        .name = "leaf", .from_day = -9, .to_day = 9, .by_authority = true};
    char path[TEST_PATH_MAX];
    test_certs_issue(&side_certs, "middle.pem", &middle, path);
    test_certs_issue(&side_certs, "leaf.pem", &leaf, path);
    assert_refused(*state, server_with(side_certs.ca, NULL), path,
                   "\"CN=leaf\" was not accepted: its authority \"CN=middle\" expired on",
                   SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED);
}

static void of_the_wrong_kind(void **state)
{
    assert_refused(*state, server_with(side_certs.ca, NULL), issue("srv", -1, 9, "serverAuth"),
                   "it is not meant for a client (key usage)",
                   SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE);
}

static void revoked(void **state)
{
    char crl[TEST_PATH_MAX];
    const char *cert = issue("gone", -1, 9, NULL);
    test_certs_crl(&side_certs, "crl.pem", cert, 5, crl);
    assert_refused(*state, server_with(side_certs.ca, crl), cert,
                   "\"CN=gone\" was not accepted: it was revoked",
                   SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED);
    struct shake_client client = {.cert = issue("still there", -1, 9, NULL)};
    struct leat_tls_server *server = server_with(side_certs.ca, crl);
    struct shake got = shake(*state, server, &client);
    assert_true(got.is_open);
    assert_string_equal(got.peer, "CN=still there");
    leat_tls_server_unref(server);
}

static void with_a_revocation_list_that_is_missing_or_old(void **state)
{
    char crl[TEST_PATH_MAX];
    const struct test_cert middle = {
        .name = "middle", .from_day = -1, .to_day = 9, .is_authority = true};
    const struct test_cert leaf = {
        .name = "leaf", .from_day = -1, .to_day = 9, .by_authority = true};
    char path[TEST_PATH_MAX];
    test_certs_issue(&side_certs, "middle.pem", &middle, path);
    test_certs_issue(&side_certs, "leaf.pem", &leaf, path);
    test_certs_crl(&side_certs, "crl.pem", NULL, 5, crl);
    assert_refused(*state, server_with(side_certs.ca, crl), path,
                   "the CRL files hold no revocation list of \"CN=middle\"",
                   SSL_R_TLSV1_ALERT_UNKNOWN_CA);
    test_certs_crl(&side_certs, "crl.pem", NULL, 0, crl);
    assert_refused(*state, server_with(side_certs.ca, crl), issue("x", -1, 9, NULL),
                   "the revocation list of \"CN=leat test CA\" is out of date",
                   SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED);
}

/* A name cannot forge a line of the log. */
static void names_are_escaped(void **state)
{
    assert_refused(*state, server_with(side_certs.ca, NULL), issue("a\nb\x1b[0m", -9, -2, NULL),
                   "\"CN=a\\0Ab\\1B[0m\" was not accepted", SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED);
}

/* The client is under test from here on; the server is f->raw. */

static struct leat_tls_ctx *client_with(const char *ca, const char *crl, const char *cert)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_CLIENT, cert, side_certs.key);
    assert_int_equal(leat_tls_config_set_authorities(config, ca, NULL), LEAT_OK);
    if (crl != NULL)
        assert_int_equal(leat_tls_config_add_crl(config, crl, NULL), LEAT_OK);
    return test_ctx_of(config);
}

/* Connects with CTX, which is dropped, as NAME to a server with CERT, until the client knows. */
static void connect_to(struct fixture *f, struct leat_tls_ctx *ctx, const char *name,
                       const char *cert)
{
    raw_tls_init(&f->raw, true, &side_certs, side_connect(f, ctx, name));
    assert_int_equal(SSL_use_certificate_chain_file(f->raw.ssl, cert), 1);
    leat_tls_ctx_unref(ctx);
    while (f->client.told[TEST_OPENED] == 0 && f->client.told[TEST_FAILED] == 0) {
        (void)raw_tls_step(&f->raw);
        test_poll(f->loop);
    }
}

static void a_revoked_server_is_refused(void **state)
{
    struct fixture *f = *state;
    char crl[TEST_PATH_MAX];
    test_certs_crl(&side_certs, "crl.pem", side_certs.cert, 5, crl);
    connect_to(f, client_with(side_certs.ca, crl, NULL), "localhost", side_certs.cert);
    assert_int_equal(f->client.error.status, LEAT_EVERIFY);
    assert_string_equal(f->client.error.text,
                        "the certificate of localhost was not accepted: it was revoked");
    (void)raw_tls_receive(&f->raw);
    (void)SSL_do_handshake(f->raw.ssl);
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED);
}

static void a_server_for_many_other_names_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct test_cert spec = {
        .name = "many",
        .alt =
            "DNS:a.example,DNS:b.example,DNS:c.example,DNS:d.example,DNS:e.example,DNS:f.example",
        .to_day = 9};
    char path[TEST_PATH_MAX];
    test_certs_issue(&side_certs, "many.pem", &spec, path);
    connect_to(f, client_with(side_certs.ca, NULL, NULL), "z.example", path);
    assert_string_equal(f->client.error.text,
                        "the certificate of z.example was not accepted: it is for a.example, "
                        "b.example, c.example, d.example and 2 more; which name to expect can be "
                        "configured");
}

static void a_dot_at_the_end_of_a_name_does_not_matter(void **state)
{
    struct fixture *f = *state;
    connect_to(f, client_with(side_certs.ca, NULL, NULL), "localhost.", side_certs.cert);
    assert_int_equal(f->client.told[TEST_OPENED], 1);
    assert_string_equal(SSL_get_servername(f->raw.ssl, TLSEXT_NAMETYPE_host_name), "localhost");
}

static void verification_is_skipped_where_the_configuration_says_so(void **state)
{
    struct fixture *f = *state;
    struct leat_tls_config *config = test_config_of(LEAT_TLS_CLIENT, NULL, NULL);
    assert_int_equal(leat_tls_config_insecure_skip_verify(config, NULL), LEAT_OK);
    connect_to(f, test_ctx_of(config), "wrong.example", side_certs.expired);
    assert_int_equal(f->client.told[TEST_OPENED], 1);
    assert_string_equal(SSL_get_servername(f->raw.ssl, TLSEXT_NAMETYPE_host_name), "wrong.example");
}

static void a_client_shows_its_certificate(void **state)
{
    struct fixture *f = *state;
    struct leat_text text;
    char buf[80];
    struct leat_tls_ctx *ctx = client_with(side_certs.ca, NULL, issue("leat", -1, 9, NULL));
    raw_tls_init(&f->raw, true, &side_certs, side_connect(f, ctx, "localhost"));
    leat_tls_ctx_unref(ctx);
    assert_int_equal(SSL_CTX_load_verify_file(f->raw.ctx, side_certs.ca), 1);
    SSL_set_verify(f->raw.ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    while (!raw_tls_step(&f->raw) || f->client.told[TEST_OPENED] == 0)
        test_poll(f->loop);
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(f->raw.ssl)),
                                    NID_commonName, buf, sizeof(buf));
    assert_string_equal(buf, "leat");
    leat_text_init(&text, buf, sizeof(buf));
    assert_true(leat_tls_stream_add_peer(f->client.stream, &text));
    assert_string_equal(buf, "CN=leat test server");
    leat_text_init(&text, buf, sizeof(buf));
    assert_true(leat_tls_stream_add_common_name(f->client.stream, &text));
    assert_string_equal(buf, "leat test server");
    assert_false(leat_tls_stream_is_resumed(f->client.stream));
}

static void a_server_that_wants_a_certificate_says_so(void **state)
{
    struct fixture *f = *state;
    raw_tls_init(&f->raw, true, &side_certs, side_connect(f, f->client_ctx, "localhost"));
    SSL_set_verify(f->raw.ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    while (f->client.told[TEST_FAILED] == 0 && f->client.end == LEAT_OK) {
        (void)raw_tls_step(&f->raw);
        test_poll(f->loop);
    }
    assert_int_equal(f->client.error.status, LEAT_ETLS);
    assert_non_null(strstr(f->client.error.text, "the peer wants a client certificate"));
}

static void plain_streams_know_nothing_of_this(void **state)
{
    struct fixture *f = *state;
    struct leat_stream_user user = test_user_of(&f->server);
    struct leat_text text;
    char buf[8];
    int fds[2];
    test_unix_pair(fds);
    f->plain = fds[1];
    assert_int_equal(leat_stream_accept(f->loop, fds[0], &user, &f->server.stream), LEAT_OK);
    TURN_UNTIL(f->loop, f->server.told[TEST_OPENED] > 0);
    leat_text_init(&text, buf, sizeof(buf));
    assert_null(leat_tls_stream_ctx(f->server.stream));
    assert_null(leat_tls_stream_server_name(f->server.stream));
    assert_false(leat_tls_stream_is_resumed(f->server.stream));
    assert_false(leat_tls_stream_add_peer(f->server.stream, &text));
    assert_false(leat_tls_stream_add_common_name(f->server.stream, &text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDE_TEST(out_of_its_time),
        SIDE_TEST(of_an_authority_that_is_unknown),
        SIDE_TEST(of_an_authority_that_has_expired),
        SIDE_TEST(of_the_wrong_kind),
        SIDE_TEST(revoked),
        SIDE_TEST(with_a_revocation_list_that_is_missing_or_old),
        SIDE_TEST(names_are_escaped),
        SIDE_TEST(a_revoked_server_is_refused),
        SIDE_TEST(a_server_for_many_other_names_is_refused),
        SIDE_TEST(a_dot_at_the_end_of_a_name_does_not_matter),
        SIDE_TEST(verification_is_skipped_where_the_configuration_says_so),
        SIDE_TEST(a_client_shows_its_certificate),
        SIDE_TEST(a_server_that_wants_a_certificate_says_so),
        SIDE_TEST(plain_streams_know_nothing_of_this),
    };

    return cmocka_run_group_tests(tests, side_group_setup, side_group_teardown);
}
