/*
 * stream.h - streams over TLS; after making one everything is as in net/stream.h
 *
 * All streams of a loop share one BIO, which points at the loop's scratch while one of them
 * is at work; none owns a buffer while it waits. A stream whose peer does not speak TLS at
 * all fails with LEAT_EPROTOCOL and a sentence that says what it spoke; a certificate that
 * does not verify is LEAT_EVERIFY with the reason; any other failure of TLS is LEAT_ETLS.
 *
 * Ownership, threads, re-entrance: as in net/stream.h. A stream holds a reference to its
 * context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_STREAM_H
#define LEAT_TLS_STREAM_H

#include "net/stream.h"

struct leat_tls_ctx;

/* As leat_stream_accept(), then TLS as the server. `opened` follows the handshake. */
LEAT_MUST_CHECK enum leat_status leat_tls_stream_accept(struct leat_loop *loop, int fd,
                                                        struct leat_tls_ctx *ctx,
                                                        const struct leat_stream_user *user,
                                                        struct leat_stream **out);

/* Whom to speak TLS with. */
struct leat_tls_target {
    struct leat_tls_ctx *ctx;
    const char *name; /* host name or numeric address that the certificate must be for; a host
                         name is also sent as SNI (RFC 6066, 3) */
};

/* As leat_stream_connect(), then TLS as the client; `connected` lies between the two. TARGET
 * is not kept. */
LEAT_MUST_CHECK enum leat_status
leat_tls_stream_connect(struct leat_loop *loop, const struct leat_addr *addr,
                        const struct leat_tls_target *target, const struct leat_stream_user *user,
                        struct leat_stream **out, struct leat_error *err);

#endif
