/*
 * server.h - the TLS side of one listener: a default context, and others by the client's name
 *
 * Which context serves a connection is decided when the ClientHello is here, before OpenSSL
 * looks at tickets: in the servername callback it would be too late, a session made under one
 * name could be resumed past the client certificates of another (CVE-2025-23419). A ticket
 * is good only for the context, by its fingerprint, that it was given under; so it outlives a
 * reload that changed nothing, and no change of certificate or policy.
 *
 * Everything is built before a server is made, so a handshake only looks up.
 *
 * Ownership: counted, immutable. A server keeps its contexts and its keyring; streams keep it.
 * Threads: any; the count is atomic.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_SERVER_H
#define LEAT_TLS_SERVER_H

#include <leat/str.h>

#include "tls/ctx.h"
#include "tls/keyring.h"

struct leat_tls_server;

/* A context and the names that it is for: exact ones, or "*.example.org" for one label more. With
 * COUNT 0 it is for the DNS names of its certificate, as far as nothing else is for them. */
struct leat_tls_server_entry {
    struct leat_tls_ctx *ctx; /* of a configuration for servers; lent */
    const char *const *names; /* lent */
    size_t count;
};

/*
 * Makes a server of the COUNT ENTRIES, at least one; the first is also for clients that send no
 * name, or one that no entry is for. RING is for the tickets of all. LEAT_EUSAGE, with ERR, if a
 * name is none or stands in two entries; LEAT_ENOMEM; LEAT_ETLS.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_server_new(const struct leat_tls_server_entry *entries,
                                                     size_t count, struct leat_tls_keyring *ring,
                                                     struct leat_tls_server **out,
                                                     struct leat_error *err);

struct leat_tls_server *leat_tls_server_ref(struct leat_tls_server *server);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_tls_server_unref(struct leat_tls_server *server);

size_t leat_tls_server_count(const struct leat_tls_server *server);

/* The context at INDEX, below leat_tls_server_count(), in the order of the entries. It lives as
 * long as SERVER. */
struct leat_tls_ctx *leat_tls_server_ctx(const struct leat_tls_server *server, size_t index);

/* The context for a client that asks for NAME; an exact name wins over a wildcard. Case does not
 * matter, nor does a dot at the end. */
struct leat_tls_ctx *leat_tls_server_find(const struct leat_tls_server *server,
                                          struct leat_str name);

#endif
