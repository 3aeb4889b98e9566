/*
 * Tests of tls/ctx_cache.h with real contexts: who waits, and who is told.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache_side.h"

/* One of two threads with a loop of its own that wants a context many times. */
enum { PER_LOOP = 500 };

struct crowd {
    struct cache_side *f;
    pthread_t thread;
    sem_t waiting;
    struct waiter waiters[PER_LOOP];
};

static void *run_crowd(void *arg)
{
    struct crowd *crowd = arg;
    struct leat_loop *loop = NULL;
    assert_int_equal(leat_loop_new(&loop, NULL), LEAT_OK);
    for (int i = 0; i < PER_LOOP; i++) {
        waiter_init(&crowd->waiters[i], crowd->f, loop);
        waiter_begin(&crowd->waiters[i], cache_config(crowd->f->ca, 1));
    }
    (void)sem_post(&crowd->waiting);
    while (crowd->waiters[PER_LOOP - 1].told == 0)
        leat_loop_turn(loop, -1);
    leat_loop_free(loop);
    return NULL;
}

static void a_thousand_first_gets_build_once(void **state)
{
    struct cache_side *f = *state;
    struct crowd *crowds = calloc(2, sizeof(*crowds));
    cache_close_gate(f);
    for (int i = 0; i < 2; i++) {
        crowds[i].f = f;
        (void)sem_init(&crowds[i].waiting, 0, 0);
        assert_int_equal(pthread_create(&crowds[i].thread, NULL, run_crowd, &crowds[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        (void)sem_wait(&crowds[i].waiting);
    assert_int_equal(cache_counters(f).builds, 0);
    cache_open_gate(f);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(crowds[i].thread, NULL), 0);
        for (int j = 0; j < PER_LOOP; j++) {
            assert_int_equal(crowds[i].waiters[j].told, 1);
            assert_int_equal(crowds[i].waiters[j].err.status, LEAT_OK);
            assert_ptr_equal(crowds[i].waiters[j].ctx, crowds[0].waiters[0].ctx);
        }
    }
    for (int i = 0; i < 2 * PER_LOOP; i++)
        leat_tls_ctx_unref(crowds[i / PER_LOOP].waiters[i % PER_LOOP].ctx);
    assert_int_equal(cache_counters(f).builds, 1);
    assert_int_equal(cache_counters(f).misses, 2 * PER_LOOP);
    assert_int_equal(cache_counters(f).hits, 0);
    assert_int_equal(cache_parses(f), 1);
    assert_true(cache_counters(f).build_us > 0);
    for (int i = 0; i < 2; i++)
        (void)sem_destroy(&crowds[i].waiting);
    free(crowds);
}

static void who_is_taken_back_is_not_told(void **state)
{
    struct cache_side *f = *state;
    struct waiter *gone = calloc(1, sizeof(*gone));
    struct waiter stays;
    cache_close_gate(f);
    waiter_init(gone, f, f->loop);
    waiter_init(&stays, f, f->loop);
    leat_tls_ctx_cache_cancel(f->cache, &stays.want); /* it does not wait yet */
    waiter_begin(gone, cache_config(f->ca, 1));
    waiter_begin(&stays, cache_config(f->ca, 1));
    leat_tls_ctx_cache_cancel(f->cache, &gone->want);
    free(gone);
    cache_open_gate(f);
    while (stays.told == 0)
        leat_loop_turn(f->loop, -1);
    leat_tls_ctx_unref(stays.ctx);
}

/* The loop goes while its context is built, and the context is there for the next. */
static void a_loop_may_close_while_it_waits(void **state)
{
    struct cache_side *f = *state;
    struct leat_loop *loop = NULL;
    struct waiter w;
    assert_int_equal(leat_loop_new(&loop, NULL), LEAT_OK);
    cache_close_gate(f);
    waiter_init(&w, f, loop);
    waiter_begin(&w, cache_config(f->ca, 1));
    leat_tls_ctx_cache_cancel(f->cache, &w.want);
    leat_loop_free(loop);
    cache_open_gate(f);
    (void)sem_wait(&f->noticed);
    assert_int_equal(w.told, 0);
    cache_touch(f, 1);
    assert_int_equal(cache_counters(f).builds, 1);
    assert_int_equal(cache_counters(f).hits, 1);
}

/* The same, when the result has been sent to the loop already. */
static void a_loop_may_close_before_it_is_told(void **state)
{
    struct cache_side *f = *state;
    struct leat_loop *loop = NULL;
    struct waiter w;
    assert_int_equal(leat_loop_new(&loop, NULL), LEAT_OK);
    waiter_init(&w, f, loop);
    waiter_begin(&w, cache_config(f->ca, 1));
    (void)sem_wait(&f->noticed);
    leat_tls_ctx_cache_cancel(f->cache, &w.want);
    leat_loop_free(loop);
    assert_int_equal(w.told, 0);
}

static void the_cache_lives_as_long_as_its_builds(void **state)
{
    struct cache_side *f = *state;
    struct waiter w;
    cache_close_gate(f);
    waiter_init(&w, f, f->loop);
    waiter_begin(&w, cache_config(f->ca, 1));
    leat_tls_ctx_cache_unref(f->cache);
    f->cache = NULL;
    cache_open_gate(f);
    while (w.told == 0)
        leat_loop_turn(f->loop, -1);
    assert_non_null(w.ctx);
    leat_tls_ctx_unref(w.ctx);
}

static void a_wants_function_may_call_the_cache(void **state)
{
    struct cache_side *f = *state;
    struct waiter first, second;
    cache_close_gate(f);
    waiter_init(&first, f, f->loop);
    waiter_init(&second, f, f->loop);
    waiter_begin(&first, cache_config(f->ca, 1));
    waiter_begin(&second, cache_config(f->ca, 1));
    first.cancels = &second;
    first.gets = cache_config(f->ca, 1);
    cache_open_gate(f);
    while (first.told == 0)
        leat_loop_turn(f->loop, -1);
    leat_loop_turn(f->loop, 0);
    assert_int_equal(first.told, 1);
    assert_int_equal(second.told, 0);
    leat_tls_ctx_unref(first.ctx);
    leat_tls_config_unref(first.gets);
}

static void purging_forgets_all(void **state)
{
    struct cache_side *f = *state;
    struct waiter w;
    struct leat_tls_ctx *held = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_null(cache_get(f, cache_config("/none/ca.pem", 1), NULL));
    cache_close_gate(f);
    waiter_init(&w, f, f->loop);
    waiter_begin(&w, cache_config(f->ca, 2));
    leat_tls_ctx_cache_purge(f->cache);
    assert_int_equal(cache_counters(f).entries, 0);
    struct waiter late; /* joins nothing that began before */
    waiter_init(&late, f, f->loop);
    waiter_begin(&late, cache_config(f->ca, 2));
    cache_open_gate(f);
    while (w.told == 0 || late.told == 0)
        leat_loop_turn(f->loop, -1);
    assert_non_null(w.ctx);
    assert_ptr_not_equal(w.ctx, late.ctx);
    assert_int_equal(cache_counters(f).entries, 1);
    struct leat_tls_ctx *kept = cache_get(f, cache_config(f->ca, 2), NULL);
    assert_ptr_equal(kept, late.ctx);
    leat_tls_ctx_unref(kept);
    leat_tls_ctx_unref(w.ctx);
    leat_tls_ctx_unref(late.ctx);
    leat_tls_ctx_unref(held);
}

static void what_was_begun_before_purging_is_not_kept(void **state)
{
    struct cache_side *f = *state;
    struct waiter w;
    cache_close_gate(f);
    waiter_init(&w, f, f->loop);
    waiter_begin(&w, cache_config(f->ca, 1));
    leat_tls_ctx_cache_purge(f->cache);
    cache_open_gate(f);
    while (w.told == 0)
        leat_loop_turn(f->loop, -1);
    assert_non_null(w.ctx);
    assert_int_equal(cache_counters(f).entries, 0);
    leat_tls_ctx_unref(w.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(a_thousand_first_gets_build_once),
        CACHE_TEST(who_is_taken_back_is_not_told),
        CACHE_TEST(a_loop_may_close_while_it_waits),
        CACHE_TEST(a_loop_may_close_before_it_is_told),
        CACHE_TEST(the_cache_lives_as_long_as_its_builds),
        CACHE_TEST(a_wants_function_may_call_the_cache),
        CACHE_TEST(purging_forgets_all),
        CACHE_TEST(what_was_begun_before_purging_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
