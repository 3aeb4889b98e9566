/*
 * Tests of tls/ctx_cache.h with real contexts: what it holds, and for how long.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cache_side.h"

static void configurations_with_the_same_roots_parse_them_once(void **state)
{
    struct cache_side *f = *state;
    cache_touch(f, 1);
    cache_touch(f, 2);
    cache_touch(f, 3);
    assert_int_equal(cache_counters(f).builds, 3);
    assert_int_equal(cache_parses(f), 1);
}

static void a_hit_is_answered_at_once_and_allocates_nothing(void **state)
{
    struct cache_side *f = *state;
    struct leat_tls_config *config = cache_config(f->ca, 1);
    struct leat_tls_ctx *ctx = NULL;
    struct waiter w;
    cache_touch(f, 1);
    assert_int_equal(leat_tls_config_freeze(config, NULL), LEAT_OK);
    waiter_init(&w, f, f->loop);
    leat_mem_fail_after(1);
    assert_int_equal(leat_tls_ctx_cache_get(f->cache, config, &w.want, &ctx, NULL), LEAT_OK);
    leat_mem_fail_after(0);
    assert_non_null(ctx);
    assert_int_equal(cache_counters(f).hits, 1);
    leat_tls_ctx_unref(ctx);
    leat_tls_config_unref(config);
}

static void the_least_recently_used_goes_first(void **state)
{
    struct cache_side *f = *state;
    cache_touch(f, 1);
    cache_touch(f, 2);
    cache_touch(f, 3);
    cache_touch(f, 1); /* now 2 is the oldest */
    cache_touch(f, 4); /* evicts 2 */
    assert_int_equal(cache_counters(f).builds, 4);
    assert_int_equal(cache_counters(f).evictions, 1);
    assert_int_equal(cache_counters(f).entries, 3);
    cache_touch(f, 1);
    cache_touch(f, 3);
    cache_touch(f, 4);
    assert_int_equal(cache_counters(f).builds, 4);
    cache_touch(f, 2);
    assert_int_equal(cache_counters(f).builds, 5);
}

static void an_evicted_context_lives_while_used(void **state)
{
    struct cache_side *f = *state;
    cache_new(f, 1);
    struct leat_tls_ctx *held = cache_get(f, cache_config(f->ca, 1), NULL);
    cache_touch(f, 2);
    cache_touch(f, 2);
    assert_int_equal(cache_counters(f).entries, 1);
    assert_int_equal(cache_counters(f).hits, 1);
    assert_int_equal(leat_tls_ctx_trust(held)->authorities, 1);
    struct leat_tls_ctx *again = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_ptr_not_equal(again, held);
    assert_true(
        leat_tls_digest_equal(leat_tls_ctx_fingerprint(again), leat_tls_ctx_fingerprint(held)));
    leat_tls_ctx_unref(again);
    leat_tls_ctx_unref(held);
}

static void a_failure_reaches_all_and_is_remembered_for_a_while(void **state)
{
    struct cache_side *f = *state;
    struct waiter waiters[3];
    struct leat_error err;
    cache_close_gate(f);
    for (int i = 0; i < 3; i++) {
        waiter_init(&waiters[i], f, f->loop);
        waiter_begin(&waiters[i], cache_config("/none/ca.pem", 1));
    }
    cache_open_gate(f);
    while (waiters[2].told == 0)
        leat_loop_turn(f->loop, -1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(waiters[i].told, 1);
        assert_null(waiters[i].ctx);
        assert_int_equal(waiters[i].err.status, LEAT_EUSAGE);
        assert_non_null(strstr(waiters[i].err.text, "/none/ca.pem"));
    }
    assert_int_equal(cache_counters(f).failures, 1);
    f->now += BACKOFF_MS - 1;
    assert_null(cache_get(f, cache_config("/none/ca.pem", 1), &err));
    assert_non_null(strstr(err.text, "/none/ca.pem"));
    assert_int_equal(cache_counters(f).failures, 1);
    f->now += 1;
    assert_null(cache_get(f, cache_config("/none/ca.pem", 1), &err));
    assert_int_equal(cache_counters(f).failures, 2);
    cache_end_pool(f);
    assert_int_equal(f->notices[LEAT_TLS_CTX_FAILED], 2);
}

static void what_failed_may_succeed_later(void **state)
{
    struct cache_side *f = *state;
    test_certs_replace(cache_certs.nonsense, f->ca);
    assert_null(cache_get(f, cache_config(f->ca, 1), NULL));
    test_certs_replace(cache_certs.ca, f->ca);
    f->now += BACKOFF_MS;
    cache_touch(f, 1);
    cache_touch(f, 1);
    assert_int_equal(cache_counters(f).hits, 1);
    assert_int_equal(cache_counters(f).entries, 1);
}

static void files_are_looked_at_again_after_a_while(void **state)
{
    struct cache_side *f = *state;
    struct leat_tls_ctx *first = cache_get(f, cache_config(f->ca, 1), NULL);
    test_certs_replace(cache_certs.other_ca, f->ca);
    f->now += RECHECK_MS - 1;
    struct leat_tls_ctx *second = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_ptr_equal(second, first);
    assert_int_equal(cache_counters(f).rechecks, 0);
    f->now += 1;
    struct leat_tls_ctx *third = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_int_equal(cache_counters(f).rechecks, 1);
    assert_int_equal(cache_counters(f).builds, 2);
    assert_false(
        leat_tls_digest_equal(leat_tls_ctx_fingerprint(third), leat_tls_ctx_fingerprint(first)));
    f->now += RECHECK_MS; /* nothing has changed */
    struct leat_tls_ctx *fourth = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_ptr_equal(fourth, third);
    assert_int_equal(cache_counters(f).rechecks, 2);
    assert_int_equal(cache_counters(f).builds, 2);
    cache_end_pool(f);
    assert_int_equal(f->notices[LEAT_TLS_CTX_BUILT], 1);
    assert_int_equal(f->notices[LEAT_TLS_CTX_RENEWED], 1);
    leat_tls_ctx_unref(first);
    leat_tls_ctx_unref(second);
    leat_tls_ctx_unref(third);
    leat_tls_ctx_unref(fourth);
}

static void what_has_expired_is_looked_at_at_once(void **state)
{
    struct cache_side *f = *state;
    struct leat_tls_ctx *first = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_null(cache_get(f, cache_config("/none/ca.pem", 1), NULL));
    leat_tls_ctx_cache_expire(f->cache);
    cache_touch(f, 1);
    assert_int_equal(cache_counters(f).rechecks, 1);
    cache_touch(f, 1);
    assert_int_equal(cache_counters(f).rechecks, 1);
    test_certs_replace(cache_certs.other_ca, f->ca);
    leat_tls_ctx_cache_expire(f->cache);
    struct leat_tls_ctx *second = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_ptr_not_equal(first, second);
    assert_int_equal(cache_counters(f).failures, 1);
    assert_null(cache_get(f, cache_config("/none/ca.pem", 1), NULL)); /* no back-off any more */
    assert_int_equal(cache_counters(f).failures, 2);
    leat_tls_ctx_unref(first);
    leat_tls_ctx_unref(second);
}

static void note_error(void *arg, const struct leat_tls_ctx_cache_entry *entry)
{
    struct leat_error *err = arg;
    assert_non_null(entry->ctx);
    *err = entry->err != NULL ? *entry->err : (struct leat_error){0};
}

static void a_broken_file_keeps_the_last_good_one(void **state)
{
    struct cache_side *f = *state;
    struct leat_error err;
    struct leat_tls_ctx *first = cache_get(f, cache_config(f->ca, 1), NULL);
    test_certs_replace(cache_certs.nonsense, f->ca);
    for (int i = 0; i < 3; i++) {
        f->now += RECHECK_MS;
        struct leat_tls_ctx *ctx = cache_get(f, cache_config(f->ca, 1), NULL);
        assert_ptr_equal(ctx, first);
        leat_tls_ctx_unref(ctx);
    }
    assert_int_equal(cache_counters(f).failures, 3);
    leat_tls_ctx_cache_each(f->cache, note_error, &err);
    assert_non_null(strstr(err.text, f->ca));
    test_certs_replace(cache_certs.other_ca, f->ca);
    f->now += RECHECK_MS;
    struct leat_tls_ctx *ctx = cache_get(f, cache_config(f->ca, 1), NULL);
    assert_ptr_not_equal(ctx, first);
    leat_tls_ctx_cache_each(f->cache, note_error, &err);
    assert_int_equal(err.status, LEAT_OK);
    leat_tls_ctx_unref(ctx);
    leat_tls_ctx_unref(first);
    cache_end_pool(f);
    assert_int_equal(f->notices[LEAT_TLS_CTX_NOT_RENEWED], 1);
    assert_int_equal(f->notices[LEAT_TLS_CTX_RENEWED], 1);
}

static void add_up(void *arg, const struct leat_tls_ctx_cache_entry *entry)
{
    uint64_t *sums = arg;
    sums[0]++;
    sums[1] += entry->ctx != NULL;
    sums[2] += entry->err != NULL;
    sums[3] += entry->uses;
    sums[4] += entry->age_ms;
    assert_non_null(leat_tls_config_authorities(entry->config));
}

static void what_is_there_can_be_shown(void **state)
{
    struct cache_side *f = *state;
    uint64_t sums[5] = {0};
    cache_touch(f, 1);
    cache_touch(f, 2);
    cache_touch(f, 2);
    cache_touch(f, 2);
    assert_null(cache_get(f, cache_config("/none/ca.pem", 1), NULL));
    f->now += 7;
    leat_tls_ctx_cache_each(f->cache, add_up, sums);
    assert_int_equal(sums[0], 3);
    assert_int_equal(sums[1], 2);
    assert_int_equal(sums[2], 1);
    assert_int_equal(sums[3], 2);
    assert_int_equal(sums[4], 14);
}

static void a_wrong_configuration_is_told_at_once(void **state)
{
    struct cache_side *f = *state;
    struct leat_error err;
    assert_null(cache_get(f, test_config_of(LEAT_TLS_SERVER, NULL, NULL), &err));
    assert_int_equal(err.status, LEAT_EUSAGE);
    assert_int_equal(cache_counters(f).misses, 0);
}

static void running_out_of_memory_is_an_error(void **state)
{
    struct cache_side *f = *state;
    struct leat_tls_ctx_cache_options options = {.offload = f->offload};
    struct leat_tls_ctx_cache *cache = NULL;
    struct leat_tls_ctx *ctx = NULL;
    unsigned nth = 0;
    for (unsigned i = 1; i <= 2; i++) {
        leat_mem_fail_after(i);
        assert_int_equal(leat_tls_ctx_cache_new(&options, &cache, NULL), LEAT_ENOMEM);
    }
    options.capacity = LEAT_TLS_CTX_CACHE_MAX + 1;
    assert_int_equal(leat_tls_ctx_cache_new(&options, &cache, NULL), LEAT_EUSAGE);
    assert_null(cache);
    while (ctx == NULL) {
        struct leat_tls_config *config = cache_config(f->ca, 1);
        struct leat_error err = {0};
        leat_mem_fail_after(++nth);
        ctx = cache_get(f, config, &err);
        leat_mem_fail_after(0);
        assert_int_equal(err.status, ctx != NULL ? LEAT_OK : LEAT_ENOMEM);
        f->now += BACKOFF_MS;
    }
    assert_true(nth > 5);
    leat_tls_ctx_unref(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(configurations_with_the_same_roots_parse_them_once),
        CACHE_TEST(a_hit_is_answered_at_once_and_allocates_nothing),
        CACHE_TEST(the_least_recently_used_goes_first),
        CACHE_TEST(an_evicted_context_lives_while_used),
        CACHE_TEST(a_failure_reaches_all_and_is_remembered_for_a_while),
        CACHE_TEST(what_failed_may_succeed_later),
        CACHE_TEST(files_are_looked_at_again_after_a_while),
        CACHE_TEST(what_has_expired_is_looked_at_at_once),
        CACHE_TEST(a_broken_file_keeps_the_last_good_one),
        CACHE_TEST(what_is_there_can_be_shown),
        CACHE_TEST(a_wrong_configuration_is_told_at_once),
        CACHE_TEST(running_out_of_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
