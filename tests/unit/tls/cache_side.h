/*
 * cache_side.h - the fixture of the tests of the cache of contexts
 *
 * A gate holds the pool's only thread, so that it is the test that says when a build begins.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEST_TLS_CACHE_SIDE_H
#define TEST_TLS_CACHE_SIDE_H

#include <semaphore.h>

#include "support/certs.h"
#include "support/tls_parts.h"
#include "tls/ctx_cache.h"

#define RECHECK_MS 10000
#define BACKOFF_MS 1000
#define NOTICES 4

extern struct test_certs cache_certs;

struct cache_side {
    struct leat_loop *loop;
    struct leat_offload *offload;
    struct leat_tls_trusts *trusts;
    struct leat_tls_ctx_cache *cache;
    _Atomic uint64_t now;
    _Atomic unsigned notices[NOTICES];
    sem_t noticed;
    struct leat_work gate_work;
    sem_t gate, gate_reached;
    char ca[TEST_PATH_MAX]; /* a CA file of the test's own */
};

/* One who waits. */
struct waiter {
    struct cache_side *f;
    struct leat_tls_ctx_want want;
    unsigned told;
    struct leat_tls_ctx *ctx;
    struct leat_error err;
    struct waiter *cancels;       /* taken back by its function; may be NULL */
    struct leat_tls_config *gets; /* asked for by its function; may be NULL */
};

/* For cmocka. */
int cache_setup(void **state);
int cache_teardown(void **state);

/* Replaces the cache, which has room for 3, by another. */
void cache_new(struct cache_side *f, size_t capacity);

/* Nothing is built between these two. */
void cache_close_gate(struct cache_side *f);
void cache_open_gate(struct cache_side *f);

/* Ends the pool: after this all notices are given. */
void cache_end_pool(struct cache_side *f);

/* A client's configuration. They differ by DEPTH. */
struct leat_tls_config *cache_config(const char *ca, unsigned depth);

void waiter_init(struct waiter *w, struct cache_side *f, struct leat_loop *loop);

/* Begins to wait for CONFIG, which is dropped. */
void waiter_begin(struct waiter *w, struct leat_tls_config *config);

/* Gets a context, at once or not, for CONFIG, which is dropped; the caller's, or NULL with the
 * failure in *ERR. */
struct leat_tls_ctx *cache_get(struct cache_side *f, struct leat_tls_config *config,
                               struct leat_error *err);

/* Gets a context of f->ca and lets go of it. */
void cache_touch(struct cache_side *f, unsigned depth);

struct leat_tls_ctx_cache_counters cache_counters(struct cache_side *f);

/* How many trust stores were parsed. */
uint64_t cache_parses(struct cache_side *f);

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, cache_setup, cache_teardown)

#endif
