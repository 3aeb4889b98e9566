/* SPDX-License-Identifier: Apache-2.0 */
#include "shake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>

#include "tls/const_cast.h"

static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct shake *out = SSL_get_app_data(ssl);
    SSL_SESSION_free(out->session);
    out->session = session;
    out->tickets++;
    return 1;
}

static void prepare(struct raw_tls *raw, const struct shake_client *client, struct shake *out)
{
    assert_int_equal(SSL_set_app_data(raw->ssl, out), 1);
    (void)SSL_CTX_set_session_cache_mode(raw->ctx,
                                         SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(raw->ctx, on_session);
    if (client->name != NULL)
        assert_int_equal(SSL_set_tlsext_host_name(raw->ssl, leat_tls_taken(client->name)), 1);
    if (client->cert != NULL) {
        assert_int_equal(SSL_use_certificate_chain_file(raw->ssl, client->cert), 1);
        assert_int_equal(SSL_use_PrivateKey_file(raw->ssl, side_certs.key, SSL_FILETYPE_PEM), 1);
    }
    if (client->version != 0) {
        assert_int_equal(SSL_set_min_proto_version(raw->ssl, client->version), 1);
        assert_int_equal(SSL_set_max_proto_version(raw->ssl, client->version), 1);
    }
    if (client->ciphers != NULL)
        assert_int_equal(SSL_set_cipher_list(raw->ssl, client->ciphers), 1);
    if (client->suites != NULL)
        assert_int_equal(SSL_set_ciphersuites(raw->ssl, client->suites), 1);
    if (client->groups != NULL)
        assert_int_equal(SSL_set1_groups_list(raw->ssl, leat_tls_taken(client->groups)), 1);
    if (client->session != NULL)
        assert_int_equal(SSL_set_session(raw->ssl, client->session), 1);
}

static void name_of(X509 *cert, char *buf, int size)
{
    buf[0] = '\0';
    if (cert != NULL)
        (void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, buf, size);
}

/* Notes what both know once they are connected. */
static void note(struct fixture *f, struct shake *out)
{
    const struct leat_stream *stream = f->server.stream;
    const char *asked = leat_tls_stream_server_name(stream);
    struct leat_text peer;

    out->is_open = true;
    out->authorities = sk_X509_NAME_num(SSL_get0_peer_CA_list(f->raw.ssl));
    out->ctx = leat_tls_stream_ctx(stream);
    out->is_resumed = leat_tls_stream_is_resumed(stream);
    assert_int_equal(out->is_resumed, SSL_session_reused(f->raw.ssl) == 1);
    name_of(SSL_get0_peer_certificate(f->raw.ssl), out->subject, sizeof(out->subject));
    (void)snprintf(out->asked, sizeof(out->asked), "%s", asked != NULL ? asked : "");
    (void)snprintf(out->version, sizeof(out->version), "%s", leat_stream_tls(stream).version);
    (void)snprintf(out->cipher, sizeof(out->cipher), "%s", leat_stream_tls(stream).cipher);
    leat_text_init(&peer, out->peer, sizeof(out->peer));
    bool has_peer = leat_tls_stream_add_peer(stream, &peer);
    assert_int_equal(has_peer, peer.len > 0);
}

/* OpenSSL tells of no ticket of TLS 1.2 that comes with a resumed session: compares it with that of
 * the session BEFORE. */
static void find_renewed(SSL *ssl, SSL_SESSION *before, struct shake *out)
{
    const unsigned char *old = NULL, *new = NULL;
    size_t old_len = 0, new_len = 0;

    SSL_SESSION_get0_ticket(before, &old, &old_len);
    SSL_SESSION_get0_ticket(SSL_get0_session(ssl), &new, &new_len);
    if (old_len == new_len && memcmp(old, new, old_len) == 0)
        return;
    out->tickets++;
    out->session = SSL_get1_session(ssl);
}

/* Lets the client see what came after the handshake: tickets, or why it failed. */
static void receive_rest(struct fixture *f, struct shake *out)
{
    char byte;

    test_settle(f->loop);
    (void)raw_tls_receive(&f->raw);
    ERR_clear_error();
    if (!SSL_is_init_finished(f->raw.ssl))
        (void)SSL_do_handshake(f->raw.ssl);
    if (SSL_is_init_finished(f->raw.ssl))
        assert_int_equal(raw_tls_read(&f->raw, &byte, 1), 0);
    out->alert =
        ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_SSL ? ERR_GET_REASON(ERR_peek_error()) : 0;
    ERR_clear_error();
}

struct shake shake(struct fixture *f, struct leat_tls_server *server,
                   const struct shake_client *client)
{
    struct shake out = {0};
    struct leat_stream_user user = test_user_of(&f->server);
    int fds[2];
    bool done = false;

    test_unix_pair(fds);
    assert_int_equal(leat_tls_stream_accept(f->loop, fds[0], server, &user, &f->server.stream),
                     LEAT_OK);
    raw_tls_init(&f->raw, false, &side_certs, fds[1]);
    prepare(&f->raw, client, &out);
    while (f->server.told[TEST_FAILED] == 0 && !(done && f->server.told[TEST_OPENED] > 0)) {
        done = raw_tls_step(&f->raw) || done;
        test_poll(f->loop);
    }
    out.error = f->server.error;
    if (f->server.told[TEST_OPENED] > 0)
        note(f, &out);
    receive_rest(f, &out);
    if (out.is_resumed && SSL_version(f->raw.ssl) == TLS1_2_VERSION)
        find_renewed(f->raw.ssl, client->session, &out);
    /* Or OpenSSL takes the session for one that has gone wrong. */
    SSL_set_shutdown(f->raw.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    raw_tls_fini(&f->raw);
    f->raw = (struct raw_tls){.fd = -1};
    test_user_fini(&f->server);
    test_user_init(&f->server, f->loop);
    return out;
}
