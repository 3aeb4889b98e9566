/*
 * digest.h - SHA-256 over fields: the keys of configurations, trust stores and contexts
 *
 * Every field goes in with its length, so that no two lists of fields look the same.
 *
 * Ownership: a digest is a value. A hash owns what OpenSSL computes with, until its end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_DIGEST_H
#define LEAT_TLS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <leat/compiler.h>
#include <leat/error.h>

struct evp_md_ctx_st;

struct leat_tls_digest {
    uint8_t bytes[32];
};

static inline bool leat_tls_digest_equal(const struct leat_tls_digest *a,
                                         const struct leat_tls_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

struct leat_tls_hash {
    struct evp_md_ctx_st *md; /* NULL once something failed, which is then told by the end */
};

void leat_tls_hash_begin(struct leat_tls_hash *hash);

/* Adds a field of LEN bytes. */
void leat_tls_hash_add(struct leat_tls_hash *hash, const void *data, size_t len);

/* Adds TEXT as a field; NULL is another field than "". */
void leat_tls_hash_add_text(struct leat_tls_hash *hash, const char *text);

void leat_tls_hash_add_number(struct leat_tls_hash *hash, uint64_t number);

/* Ends HASH. LEAT_ENOMEM if memory was short, which is the only thing that can fail. */
LEAT_MUST_CHECK enum leat_status leat_tls_hash_end(struct leat_tls_hash *hash,
                                                   struct leat_tls_digest *out);

#endif
