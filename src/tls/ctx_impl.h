/*
 * ctx_impl.h - what a TLS context is made of; for this layer only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CTX_IMPL_H
#define LEAT_TLS_CTX_IMPL_H

#include <stdatomic.h>

#include <openssl/ssl.h>

#include "tls/config_impl.h"
#include "tls/ctx.h"
#include "tls/source.h"

struct leat_tls_ctx {
    atomic_uint refs;
    struct leat_tls_config *config;
    SSL_CTX *ssl_ctx;
    struct leat_tls_digest fingerprint;
    struct leat_tls_sources sources;
    struct leat_tls_trust *trust;    /* NULL if it verifies nobody */
    struct leat_tls_cert_info *cert; /* NULL if it shows none */
};

#endif
