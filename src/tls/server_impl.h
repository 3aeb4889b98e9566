/*
 * server_impl.h - how streams are made of a server; for this layer only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_SERVER_IMPL_H
#define LEAT_TLS_SERVER_IMPL_H

#include <openssl/ssl.h>

#include "tls/server.h"

/* What SERVER's SSLs are made of. It has no certificate: that comes by the choice. */
SSL_CTX *leat_tls_server_front(const struct leat_tls_server *server);

#endif
