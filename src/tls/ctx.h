/*
 * ctx.h - TLS contexts: immutable once built, shared by all connections of one configuration
 *
 * Building one reads files and parses certificates, so it happens when the program starts or on
 * a pool of threads (ctx_cache.h), never for a connection. Its *fingerprint* is a SHA-256 over
 * the configuration's key and the contents of all files: two contexts with the same one are
 * the same in all respects, and what must not outlive a change (tickets, connections that wait
 * in a pool) goes by it.
 *
 * Ownership: counted.
 * Threads: any; the count is atomic. Building blocks on files: never on a loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CTX_H
#define LEAT_TLS_CTX_H

#include <stdbool.h>
#include <stdint.h>

#include "tls/config.h"
#include "tls/trust.h"

struct leat_tls_ctx;

/*
 * Builds what CONFIG, which is thereby frozen, says; the trust store comes from TRUSTS, which
 * may be NULL if it is shared with nothing. LEAT_EUSAGE, with ERR naming the file, what is wrong
 * with it and what to do; LEAT_ENOMEM; LEAT_ETLS if OpenSSL refuses a setting.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_ctx_build(struct leat_tls_config *config,
                                                    struct leat_tls_trusts *trusts,
                                                    struct leat_tls_ctx **out,
                                                    struct leat_error *err);

/* Returns CTX with one more reference. */
struct leat_tls_ctx *leat_tls_ctx_ref(struct leat_tls_ctx *ctx);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_tls_ctx_unref(struct leat_tls_ctx *ctx);

const struct leat_tls_digest *leat_tls_ctx_fingerprint(const struct leat_tls_ctx *ctx);

/* The configuration that CTX was built of. It lives as long as CTX. */
struct leat_tls_config *leat_tls_ctx_config(const struct leat_tls_ctx *ctx);

/* Whether one of the files that CTX was built of, or a directory's set of files, is not what it was
 * then. Blocks: never on a loop. */
bool leat_tls_ctx_has_changed(const struct leat_tls_ctx *ctx);

/* What a certificate says, for people. Times in seconds since 1970. */
struct leat_tls_cert_info {
    char *subject, *issuer; /* such as "CN=rabbit.example,O=Example" (RFC 4514) */
    char *serial;           /* hexadecimal */
    int64_t from, until;
    char **hosts; /* the DNS names and addresses that it is for */
    size_t host_count;
};

/* The certificate that CTX shows; NULL if it has none. It lives as long as CTX. */
const struct leat_tls_cert_info *leat_tls_ctx_cert(const struct leat_tls_ctx *ctx);

/* What CTX trusts; NULL if it verifies nobody. It lives as long as CTX. */
const struct leat_tls_trust_info *leat_tls_ctx_trust(const struct leat_tls_ctx *ctx);

/* Whether all that CTX trusts has expired at NOW, in seconds since 1970, so that it will accept no
 * peer. False for one that verifies nobody. */
bool leat_tls_ctx_trusts_only_expired(const struct leat_tls_ctx *ctx, int64_t now);

/* A certificate that is valid for less is to be renewed: 30 days, in seconds. */
#define LEAT_TLS_RENEW_S (30 * 24 * 3600)

/*
 * Finds from when until when the certificate that CTX shows is valid, chain included, in seconds
 * since 1970. False for a context that has none.
 */
bool leat_tls_ctx_validity(const struct leat_tls_ctx *ctx, int64_t *out_from, int64_t *out_until);

#endif
