/*
 * tls_state.h - what TLS keeps from one configuration to the next
 *
 * The cache of contexts for backends, the trust stores below all contexts, the keys of tickets, and
 * the threads on which contexts are built.
 *
 * Ownership: counted; every snapshot holds a reference.
 * Threads: any, but leat_tls_state_get_now() blocks: never on a worker's loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_PROXY_TLS_STATE_H
#define LEAT_PROXY_TLS_STATE_H

#include <stdatomic.h>

#include "base/log.h"
#include "tls/ctx_cache.h"
#include "tls/keyring.h"

struct leat_config;

struct leat_tls_state {
    _Atomic unsigned refs;
    struct leat_offload *offload;
    struct leat_tls_trusts *trusts;
    struct leat_tls_ctx_cache *cache;
    struct leat_tls_keyring *keyring;
    struct leat_log *_Atomic log; /* NULL until there is one */
};

/* Makes it as CONFIG says. LEAT_ENOMEM, LEAT_EIO. */
LEAT_MUST_CHECK enum leat_status leat_tls_state_new(const struct leat_config *config,
                                                    struct leat_tls_state **out,
                                                    struct leat_error *err);

struct leat_tls_state *leat_tls_state_ref(struct leat_tls_state *state);

/* Drops a reference; the last one waits for builds that are under way, and frees. NULL is a
 * no-op. */
void leat_tls_state_unref(struct leat_tls_state *state);

/* As leat_tls_ctx_cache_get(), but waits. */
LEAT_MUST_CHECK enum leat_status leat_tls_state_get_now(struct leat_tls_state *state,
                                                        struct leat_tls_config *config,
                                                        struct leat_tls_ctx **out,
                                                        struct leat_error *err);

/* What the cache holds for CONFIG now, for people: a reference of the caller's, or NULL. ERR is why
 * its files could not be read again when that was tried last, or of LEAT_OK. Does not block. */
struct leat_tls_ctx *leat_tls_state_find(struct leat_tls_state *state,
                                         const struct leat_tls_config *config,
                                         struct leat_error *err);

#endif
