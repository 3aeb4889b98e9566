/*
 * ctx.h - TLS contexts: immutable once built, shared by all connections of one configuration
 *
 * Building one reads files and parses certificates (a system's trust store: 28 ms and some
 * 225,000 allocations), so it happens when the program starts, never for a connection.
 *
 * Ownership: counted.
 * Threads: any; the count is atomic. Building blocks on files: never on a loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CTX_H
#define LEAT_TLS_CTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

struct leat_tls_ctx;

/*
 * Builds a context for accepting: CERT_FILE holds the certificate and its chain in PEM,
 * KEY_FILE the private key. TLS 1.2 and 1.3. LEAT_EUSAGE, with ERR naming the file and what
 * to do, if one can't be read or parsed or they don't match.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_ctx_new_server(const char *cert_file,
                                                         const char *key_file,
                                                         struct leat_tls_ctx **out,
                                                         struct leat_error *err);

/*
 * Builds a context for connecting that trusts the certificates in CA_FILE (PEM), or the
 * system's with NULL. The peer's certificate is always verified. LEAT_EUSAGE as above.
 */
LEAT_MUST_CHECK enum leat_status
leat_tls_ctx_new_client(const char *ca_file, struct leat_tls_ctx **out, struct leat_error *err);

/* A certificate that is valid for less is to be renewed: 30 days, in seconds. */
#define LEAT_TLS_RENEW_S (30 * 24 * 3600)

/*
 * Finds from when until when the certificate that CTX shows is valid, chain included, in seconds
 * since 1970. False for a context that has none, such as a client's.
 */
bool leat_tls_ctx_validity(const struct leat_tls_ctx *ctx, int64_t *out_from, int64_t *out_until);

/* Writes the subject of the certificate that CTX shows, such as "CN=leat.example,O=Example", to BUF
 * and returns it; NULL if there is none. */
const char *leat_tls_ctx_subject(const struct leat_tls_ctx *ctx, char *buf, size_t cap);

/* Calls FN with each name that this certificate is for: host names and addresses. NAME is valid
 * during the call only. */
typedef void leat_tls_name_fn(void *arg, struct leat_str name);
void leat_tls_ctx_each_name(const struct leat_tls_ctx *ctx, leat_tls_name_fn *fn, void *arg);

/* Returns CTX with one more reference. */
struct leat_tls_ctx *leat_tls_ctx_ref(struct leat_tls_ctx *ctx);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_tls_ctx_unref(struct leat_tls_ctx *ctx);

#endif
