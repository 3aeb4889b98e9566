/*
 * ctx_impl.h - what a TLS context is made of; for this layer only
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CTX_IMPL_H
#define LEAT_TLS_CTX_IMPL_H

#include <stdatomic.h>

#include <openssl/ssl.h>

#include "tls/ctx.h"

struct leat_tls_ctx {
    atomic_uint refs;
    SSL_CTX *ssl_ctx;
};

#endif
