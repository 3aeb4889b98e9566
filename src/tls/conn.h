/*
 * conn.h - what OpenSSL's callbacks know of the connection that they are called for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CONN_H
#define LEAT_TLS_CONN_H

#include <openssl/ssl.h>

#include <leat/error.h>

struct leat_tls_ctx;
struct leat_tls_server;

/* The SSL's app data (SSL_set_app_data). */
struct leat_tls_conn {
    struct leat_tls_server *server; /* NULL on the client's side */
    struct leat_tls_ctx *ctx;       /* in use; the server's, or a client's own */
    /* Why the peer's certificate was not accepted; "" before. It is shared by the loop and holds
     * until the next call of OpenSSL. */
    char (*verdict)[sizeof(((struct leat_error *)NULL)->text)];
};

#endif
