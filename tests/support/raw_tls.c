/* SPDX-License-Identifier: Apache-2.0 */
#include "support/raw_tls.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/err.h>

void raw_tls_init(struct raw_tls *raw, bool is_server, const struct test_certs *certs, int fd)
{
    raw->fd = fd;
    raw->ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    assert_non_null(raw->ctx);
    if (is_server) {
        assert_int_equal(SSL_CTX_use_certificate_chain_file(raw->ctx, certs->cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(raw->ctx, certs->key, SSL_FILETYPE_PEM), 1);
    } else {
        assert_int_equal(SSL_CTX_load_verify_file(raw->ctx, certs->ca), 1);
        SSL_CTX_set_verify(raw->ctx, SSL_VERIFY_PEER, NULL);
    }
    raw->ssl = SSL_new(raw->ctx);
    raw->in = BIO_new(BIO_s_mem());
    raw->out = BIO_new(BIO_s_mem());
    assert_non_null(raw->ssl);
    SSL_set_bio(raw->ssl, raw->in, raw->out);
    if (is_server)
        SSL_set_accept_state(raw->ssl);
    else
        SSL_set_connect_state(raw->ssl);
}

void raw_tls_fini(struct raw_tls *raw)
{
    raw_tls_close(raw);
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->ctx);
    ERR_clear_error();
}

void raw_tls_close(struct raw_tls *raw)
{
    if (raw->fd >= 0)
        (void)close(raw->fd);
    raw->fd = -1;
}

bool raw_tls_receive(struct raw_tls *raw)
{
    static _Thread_local uint8_t buf[65536];
    ssize_t len;

    while ((len = recv(raw->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
        assert_int_equal(BIO_write(raw->in, buf, (int)len), len);
    return len < 0 && errno == EAGAIN;
}

size_t raw_tls_send(struct raw_tls *raw, size_t max)
{
    char *data = NULL;
    long waiting = BIO_get_mem_data(raw->out, &data);
    size_t len = (size_t)waiting < max ? (size_t)waiting : max;
    static _Thread_local char drop[65536];

    if (len == 0)
        return 0;
    ssize_t sent =
        send(raw->fd, data, len < sizeof(drop) ? len : sizeof(drop), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0)
        return 0;
    assert_int_equal(BIO_read(raw->out, drop, (int)sent), sent);
    return (size_t)sent;
}

bool raw_tls_step(struct raw_tls *raw)
{
    (void)raw_tls_receive(raw);
    ERR_clear_error();
    int done = SSL_do_handshake(raw->ssl);
    while (raw_tls_send(raw, SIZE_MAX) > 0)
        continue;
    return done == 1;
}

void raw_tls_write(struct raw_tls *raw, const void *data, size_t len)
{
    size_t written = 0;
    ERR_clear_error();
    assert_int_equal(SSL_write_ex(raw->ssl, data, len, &written), 1);
    assert_int_equal(written, len);
}

size_t raw_tls_read(struct raw_tls *raw, void *buf, size_t cap)
{
    size_t len = 0;
    ERR_clear_error();
    return SSL_read_ex(raw->ssl, buf, cap, &len) == 1 ? len : 0;
}
