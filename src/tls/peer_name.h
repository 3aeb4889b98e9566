/*
 * peer_name.h - whom a client must be talking to; for this layer only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_PEER_NAME_H
#define LEAT_TLS_PEER_NAME_H

#include <stdbool.h>

#include <openssl/ssl.h>

/* Makes the certificate of SSL's peer have to be for NAME, and sends NAME if it is no address. A
 * dot at its end, as DNS knows it, stands in no certificate (RFC 6066, 3). False if NAME is none:
 * an empty one would switch the check off, and is taken only where nothing is verified. */
bool leat_tls_set_peer_name(SSL *ssl, const char *name);

#endif
