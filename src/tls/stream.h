/*
 * stream.h - streams over TLS; after making one everything is as in net/stream.h
 *
 * All streams of a loop share one BIO, which points at the loop's scratch while one of them
 * is at work; none owns a buffer while it waits. A stream whose peer does not speak TLS at
 * all fails with LEAT_EPROTOCOL and a sentence that says what it spoke; a certificate that
 * does not verify is LEAT_EVERIFY with the reason; any other failure of TLS is LEAT_ETLS.
 *
 * Ownership, threads, re-entrance: as in net/stream.h. A stream keeps its context or server.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_STREAM_H
#define LEAT_TLS_STREAM_H

#include "base/text.h"
#include "net/stream.h"

struct leat_tls_ctx;
struct leat_tls_server;

/* As leat_stream_accept(), then TLS as SERVER, which picks the context by the name that the client
 * asks for. `opened` follows the handshake. */
LEAT_MUST_CHECK enum leat_status leat_tls_stream_accept(struct leat_loop *loop, int fd,
                                                        struct leat_tls_server *server,
                                                        const struct leat_stream_user *user,
                                                        struct leat_stream **out);

/* Whom to speak TLS with. */
struct leat_tls_target {
    struct leat_tls_ctx *ctx; /* of a configuration for clients */
    const char *name; /* host name or numeric address that the certificate must be for, unless CTX
                         skips that; a host name is also sent as SNI (RFC 6066, 3) */
};

/* As leat_stream_connect(), then TLS as the client; `connected` lies between the two. TLS
 * is not kept. LEAT_EUSAGE: its name can't be verified. */
LEAT_MUST_CHECK enum leat_status
leat_tls_stream_connect(struct leat_loop *loop, const struct leat_connect_target *target,
                        const struct leat_tls_target *tls, const struct leat_stream_user *user,
                        struct leat_stream **out, struct leat_error *err);

/* What the handshake has come to. Of a plain stream, and before `opened`, there is nothing: NULL or
 * false. */

/* The context in use, which lives as long as STREAM. */
struct leat_tls_ctx *leat_tls_stream_ctx(const struct leat_stream *stream);

/* Whether the session was resumed by a ticket. */
bool leat_tls_stream_is_resumed(const struct leat_stream *stream);

/* The name that the client asked for, by which the context in use was chosen; NULL if none. It may
 * be anything. */
const char *leat_tls_stream_server_name(const struct leat_stream *stream);

/* Appends the subject of the peer's certificate, such as "CN=orders,O=Example" (RFC 4514). False if
 * it showed none. That it was verified is a matter of the context's configuration. */
bool leat_tls_stream_add_peer(const struct leat_stream *stream, struct leat_text *text);

/* Likewise the first common name in that subject, such as "orders"; nothing if it has none. */
bool leat_tls_stream_add_common_name(const struct leat_stream *stream, struct leat_text *text);

#endif
