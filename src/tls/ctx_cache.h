/*
 * ctx_cache.h - bounded least-recently-used cache of TLS contexts, shared by loops
 *
 * Building a context takes milliseconds and reads files, which no connection should pay for and
 * no loop may do. Here equal configurations share one context, found by their key, and it is
 * built once, on a pool of threads, however many connections ask for it at the same moment.
 *
 * Files change: a context that was last looked at more than the recheck interval ago is looked
 * at again before it is handed out, also on the pool. If its files have changed it is built anew;
 * who uses the old one keeps it. If that fails the old one stays, and the notice says why.
 * A build that failed is remembered for the back-off, so that a broken file is not read for every
 * connection.
 *
 * Ownership: the cache is counted, and builds under way keep it. What a get yields is a reference
 * of the caller's own: eviction and purging drop only the cache's.
 * Threads: any. A want belongs to its loop's thread. One lock, never held while building or
 * reading.
 * Re-entrance: a want's function may call anything here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TLS_CTX_CACHE_H
#define LEAT_TLS_CTX_CACHE_H

#include "loop/offload.h"
#include "tls/ctx.h"

struct leat_tls_ctx_cache;

/* A larger cache would want a hash table; see the note in ctx_cache.c. */
#define LEAT_TLS_CTX_CACHE_MAX 1024
#define LEAT_TLS_CTX_CACHE_DEFAULT 64

enum leat_tls_ctx_notice {
    LEAT_TLS_CTX_BUILT,
    LEAT_TLS_CTX_FAILED,      /* to build; ERR says why */
    LEAT_TLS_CTX_RENEWED,     /* built anew, since its files had changed */
    LEAT_TLS_CTX_NOT_RENEWED, /* ERR says why not; told once as long as that stays the same */
};

/* Told on a thread of the pool, for the log. ERR is NULL if nothing failed. */
typedef void leat_tls_ctx_notice_fn(void *arg, enum leat_tls_ctx_notice notice,
                                    const struct leat_tls_config *config,
                                    const struct leat_error *err);

struct leat_tls_ctx_cache_options {
    struct leat_offload *offload;   /* outlives every call of get */
    struct leat_tls_trusts *trusts; /* to share stores with others; NULL: the cache's own */
    size_t capacity;                /* contexts; 0: LEAT_TLS_CTX_CACHE_DEFAULT */
    uint64_t recheck_ms;            /* 0: files are never looked at again */
    uint64_t backoff_ms;            /* how long a failure is remembered */
    leat_clock_fn *clock;           /* called from any thread; NULL: the system's */
    void *clock_arg;
    leat_tls_ctx_notice_fn *notice; /* may be NULL */
    void *notice_arg;
};

/* LEAT_EUSAGE if the capacity is above LEAT_TLS_CTX_CACHE_MAX; LEAT_ENOMEM. */
LEAT_MUST_CHECK enum leat_status
leat_tls_ctx_cache_new(const struct leat_tls_ctx_cache_options *options,
                       struct leat_tls_ctx_cache **out, struct leat_error *err);
struct leat_tls_ctx_cache *leat_tls_ctx_cache_ref(struct leat_tls_ctx_cache *cache);

/* Drops a reference; the last one frees. NULL is a no-op. */
void leat_tls_ctx_cache_unref(struct leat_tls_ctx_cache *cache);

/* CTX is a reference for the callee to drop; or it is NULL and ERR, which is lent, says why. */
typedef void leat_tls_ctx_got_fn(void *arg, struct leat_tls_ctx *ctx, const struct leat_error *err);

/* One who waits; embedded by the caller. */
struct leat_tls_ctx_want {
    struct leat_loop *loop;
    leat_tls_ctx_got_fn *fn;
    void *arg;
    struct leat_list link; /* the cache's, under its lock */
};

/* Prepares WANT, which waits for nothing. */
void leat_tls_ctx_want_init(struct leat_tls_ctx_want *want, struct leat_loop *loop,
                            leat_tls_ctx_got_fn *fn, void *arg);

/*
 * Gets the context for CONFIG, which is thereby frozen. LEAT_OK: *OUT is it, a reference of the
 * caller's; nothing was allocated. LEAT_EAGAIN: WANT, which must not be waiting, waits, and its
 * function is called once on its loop. Otherwise nothing waits and ERR says why: LEAT_EUSAGE or
 * LEAT_ETLS as leat_tls_ctx_build(), also while a failure is remembered; LEAT_ENOMEM.
 */
LEAT_MUST_CHECK enum leat_status leat_tls_ctx_cache_get(struct leat_tls_ctx_cache *cache,
                                                        struct leat_tls_config *config,
                                                        struct leat_tls_ctx_want *want,
                                                        struct leat_tls_ctx **out,
                                                        struct leat_error *err);

/* Takes WANT back if it waits: its function is not called, and its memory and, once all of a loop's
 * are taken back, the loop may go at once. The build goes on. */
void leat_tls_ctx_cache_cancel(struct leat_tls_ctx_cache *cache, struct leat_tls_ctx_want *want);

/* Makes the next get of every configuration look at its files, however short ago that was; what is
 * under way reaches those who wait, but is not kept. For who has just been told that files are new.
 */
void leat_tls_ctx_cache_expire(struct leat_tls_ctx_cache *cache);

/* Forgets every context and failure; what is under way reaches those who wait, but is not kept. */
void leat_tls_ctx_cache_purge(struct leat_tls_ctx_cache *cache);

struct leat_tls_ctx_cache_counters {
    uint64_t hits;      /* gets that were answered at once */
    uint64_t misses;    /* gets that had to wait, or failed */
    uint64_t builds;    /* that succeeded */
    uint64_t build_us;  /* the time that all builds took together */
    uint64_t failures;  /* builds that failed */
    uint64_t rechecks;  /* times that a context's files were looked at again */
    uint64_t evictions; /* contexts that had to go for others */
    uint64_t entries;   /* contexts and failures that are there now */
};
void leat_tls_ctx_cache_counters(struct leat_tls_ctx_cache *cache,
                                 struct leat_tls_ctx_cache_counters *out);

/* What the cache holds of one configuration. All is lent. */
struct leat_tls_ctx_cache_entry {
    const struct leat_tls_config *config;
    struct leat_tls_ctx *ctx;     /* NULL: its last build failed */
    const struct leat_error *err; /* why the last build failed; NULL: it did not */
    uint64_t age_ms;              /* since CTX was built */
    uint64_t uses;                /* gets that it has answered */
};

/* Called under the cache's lock: it copies what it needs, and calls nothing here. */
typedef void leat_tls_ctx_cache_each_fn(void *arg, const struct leat_tls_ctx_cache_entry *entry);

/* Calls FN for all that CACHE holds, in no order. */
void leat_tls_ctx_cache_each(struct leat_tls_ctx_cache *cache, leat_tls_ctx_cache_each_fn *fn,
                             void *arg);

#endif
