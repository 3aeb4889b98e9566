/*
 * raw_tls.h - a TLS peer on bare OpenSSL, whose ciphertext the test carries
 *
 * It shares no code with the streams under test. Its records lie in memory until the test
 * moves them, so that they can be cut anywhere, damaged, or held back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_RAW_TLS_H
#define TEST_RAW_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "support/certs.h"

struct raw_tls {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
    int fd; /* the test's socket; non-blocking; -1 once closed */
};

/* Makes a peer over FD, which it takes over: a server with the certificate, or a client that
 * trusts its CA. */
void raw_tls_init(struct raw_tls *raw, bool is_server, const struct test_certs *certs, int fd);
void raw_tls_fini(struct raw_tls *raw);

/* Takes what has come from the socket to OpenSSL. Returns false at the end of the stream. */
bool raw_tls_receive(struct raw_tls *raw);

/* Sends at most MAX bytes of the ciphertext that waits. Returns how many went. */
size_t raw_tls_send(struct raw_tls *raw, size_t max);

/* One step of everything: receive, take the handshake on, send all. Whether it is done. */
bool raw_tls_step(struct raw_tls *raw);

/* Encrypts; the records wait for raw_tls_send(). */
void raw_tls_write(struct raw_tls *raw, const void *data, size_t len);

/* Decrypts what has come; returns how many bytes, 0 if none. */
size_t raw_tls_read(struct raw_tls *raw, void *buf, size_t cap);

/* Closes the socket. */
void raw_tls_close(struct raw_tls *raw);

#endif
