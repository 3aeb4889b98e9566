/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_side.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct test_certs cache_certs;

static uint64_t clock_ms(void *arg)
{
    struct cache_side *f = arg;
    return atomic_load(&f->now);
}

static void on_notice(void *arg, enum leat_tls_ctx_notice notice,
                      const struct leat_tls_config *config, const struct leat_error *err)
{
    struct cache_side *f = arg;
    bool failed = notice == LEAT_TLS_CTX_FAILED || notice == LEAT_TLS_CTX_NOT_RENEWED;
    assert_non_null(leat_tls_config_authorities(config));
    assert_int_equal(err != NULL, failed);
    atomic_fetch_add(&f->notices[notice], 1);
    (void)sem_post(&f->noticed);
}

void cache_new(struct cache_side *f, size_t capacity)
{
    const struct leat_tls_ctx_cache_options options = {
        .offload = f->offload,
        .trusts = f->trusts,
        .capacity = capacity,
        .recheck_ms = RECHECK_MS,
        .backoff_ms = BACKOFF_MS,
        .clock = clock_ms,
        .clock_arg = f,
        .notice = on_notice,
        .notice_arg = f,
    };
    leat_tls_ctx_cache_unref(f->cache);
    assert_int_equal(leat_tls_ctx_cache_new(&options, &f->cache, NULL), LEAT_OK);
}

int cache_setup(void **state)
{
    struct cache_side *f = calloc(1, sizeof(*f));
    *state = f;
    test_certs_init(&cache_certs);
    test_certs_write(&cache_certs, "own-ca.pem", "", f->ca);
    test_certs_replace(cache_certs.ca, f->ca);
    (void)sem_init(&f->gate, 0, 0);
    (void)sem_init(&f->gate_reached, 0, 0);
    (void)sem_init(&f->noticed, 0, 0);
    assert_int_equal(leat_loop_new(&f->loop, NULL), LEAT_OK);
    assert_int_equal(leat_offload_new(1, &f->offload, NULL), LEAT_OK);
    assert_int_equal(leat_tls_trusts_new(&f->trusts, NULL), LEAT_OK);
    cache_new(f, 3);
    return 0;
}

int cache_teardown(void **state)
{
    struct cache_side *f = *state;
    leat_offload_free(f->offload);
    leat_loop_free(f->loop);
    leat_tls_ctx_cache_unref(f->cache);
    struct leat_tls_trusts_counters counters;
    leat_tls_trusts_counters(f->trusts, &counters);
    leat_tls_trusts_unref(f->trusts);
    (void)sem_destroy(&f->gate);
    (void)sem_destroy(&f->gate_reached);
    (void)sem_destroy(&f->noticed);
    test_certs_fini(&cache_certs);
    free(f);
    return counters.stores != 0; /* every test must end with nothing leaked */
}

static void gate_run(void *arg)
{
    struct cache_side *f = arg;
    (void)sem_post(&f->gate_reached);
    (void)sem_wait(&f->gate);
}

static void gate_done(void *arg)
{
    (void)arg;
}

void cache_close_gate(struct cache_side *f)
{
    f->gate_work = (struct leat_work){.run = gate_run, .done = gate_done, .arg = f};
    leat_offload_submit(f->offload, &f->gate_work);
    (void)sem_wait(&f->gate_reached);
}

void cache_open_gate(struct cache_side *f)
{
    (void)sem_post(&f->gate);
}

static void on_got(void *arg, struct leat_tls_ctx *ctx, const struct leat_error *err)
{
    struct waiter *w = arg;
    w->told++;
    w->ctx = ctx;
    w->err = *err;
    if (w->cancels != NULL)
        leat_tls_ctx_cache_cancel(w->f->cache, &w->cancels->want);
    if (w->gets != NULL) {
        struct leat_tls_ctx *again = NULL;
        assert_int_equal(leat_tls_ctx_cache_get(w->f->cache, w->gets, &w->want, &again, NULL),
                         LEAT_OK);
        assert_ptr_equal(again, ctx);
        leat_tls_ctx_unref(again);
    }
}

void waiter_init(struct waiter *w, struct cache_side *f, struct leat_loop *loop)
{
    *w = (struct waiter){.f = f};
    leat_tls_ctx_want_init(&w->want, loop, on_got, w);
}

struct leat_tls_config *cache_config(const char *ca, unsigned depth)
{
    struct leat_tls_config *config = test_config_of(LEAT_TLS_CLIENT, NULL, NULL);
    assert_int_equal(leat_tls_config_set_authorities(config, ca, NULL), LEAT_OK);
    assert_int_equal(leat_tls_config_set_depth(config, depth, NULL), LEAT_OK);
    return config;
}

void waiter_begin(struct waiter *w, struct leat_tls_config *config)
{
    struct leat_tls_ctx *ctx = NULL;
    assert_int_equal(leat_tls_ctx_cache_get(w->f->cache, config, &w->want, &ctx, NULL),
                     LEAT_EAGAIN);
    assert_null(ctx);
    assert_int_equal(w->told, 0);
    leat_tls_config_unref(config);
}

struct leat_tls_ctx *cache_get(struct cache_side *f, struct leat_tls_config *config,
                               struct leat_error *err)
{
    struct waiter w;
    waiter_init(&w, f, f->loop);
    enum leat_status status = leat_tls_ctx_cache_get(f->cache, config, &w.want, &w.ctx, &w.err);
    while (status == LEAT_EAGAIN && w.told == 0)
        leat_loop_turn(f->loop, -1);
    leat_tls_config_unref(config);
    if (err != NULL)
        *err = w.err;
    return w.ctx;
}

void cache_touch(struct cache_side *f, unsigned depth)
{
    struct leat_tls_ctx *ctx = cache_get(f, cache_config(f->ca, depth), NULL);
    assert_non_null(ctx);
    leat_tls_ctx_unref(ctx);
}

struct leat_tls_ctx_cache_counters cache_counters(struct cache_side *f)
{
    struct leat_tls_ctx_cache_counters out;
    leat_tls_ctx_cache_counters(f->cache, &out);
    return out;
}

uint64_t cache_parses(struct cache_side *f)
{
    struct leat_tls_trusts_counters out;
    leat_tls_trusts_counters(f->trusts, &out);
    return out.parses;
}

void cache_end_pool(struct cache_side *f)
{
    leat_offload_free(f->offload);
    f->offload = NULL;
}
