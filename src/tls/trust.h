/*
 * trust.h - trust stores, shared below the contexts that use them
 *
 * Parsing a system's trust store takes 28 ms and some 225,000 allocations. Configurations that
 * trust the same certificates by the same revocation lists share one, found by a digest over
 * the contents; it is parsed once and never changed after. A directory is read whole when the
 * store is made, never in a handshake.
 *
 * Ownership: both are counted. A set knows its stores without keeping them: the last user of a
 * store frees it. A store keeps its set.
 * Threads: any. Getting a store reads files and may wait for another thread that parses:
 * never on a loop. Everything else only takes a short lock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_TRUST_H
#define LEAT_TLS_TRUST_H

#include <stdint.h>

#include "tls/config.h"
#include "tls/source.h"

struct leat_tls_trust;
struct leat_tls_trusts;

/* What a store holds. Times in seconds since 1970. */
struct leat_tls_trust_info {
    size_t authorities;     /* certificates */
    int64_t last_until;     /* when the last of them expires: after that nothing is trusted */
    size_t crls;            /* revocation lists */
    int64_t crl_next_until; /* when the first of them is out of date; INT64_MAX if never */
};

struct leat_tls_trusts_counters {
    uint64_t parses; /* stores made since the set was */
    uint64_t shared; /* times that one was found instead */
    uint64_t stores; /* that live now */
};

/* Makes an empty set. LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status leat_tls_trusts_new(struct leat_tls_trusts **out,
                                                     struct leat_error *err);
struct leat_tls_trusts *leat_tls_trusts_ref(struct leat_tls_trusts *trusts);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_tls_trusts_unref(struct leat_tls_trusts *trusts);

void leat_tls_trusts_counters(struct leat_tls_trusts *trusts, struct leat_tls_trusts_counters *out);

/*
 * Gets from TRUSTS the store that holds what CONFIG says to trust, and adds the files it is made
 * of to SOURCES. LEAT_EUSAGE with ERR naming the file and what is wrong with it, LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_trusts_get(struct leat_tls_trusts *trusts,
                                                     const struct leat_tls_config *config,
                                                     struct leat_tls_sources *sources,
                                                     struct leat_tls_trust **out,
                                                     struct leat_error *err);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_tls_trust_unref(struct leat_tls_trust *trust);

const struct leat_tls_trust_info *leat_tls_trust_info(const struct leat_tls_trust *trust);

/* The digest over the contents. */
const struct leat_tls_digest *leat_tls_trust_digest(const struct leat_tls_trust *trust);

struct x509_store_st;
struct stack_st_X509_NAME;

/* OpenSSL's own, which is not to be changed. */
struct x509_store_st *leat_tls_trust_store(const struct leat_tls_trust *trust);

/* The names of the authorities, for a server to send; NULL if they are too many to. */
const struct stack_st_X509_NAME *leat_tls_trust_names(const struct leat_tls_trust *trust);

#endif
