/*
 * Tests of proxy/farm.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "proxy/farm.h"

#define BACKENDS_MAX LEAT_CONFIG_BACKENDS_MAX

/* What the farm at hand is made of; a test has one at a time. */
static struct leat_backend_config configs[BACKENDS_MAX];
static struct leat_backend backends[BACKENDS_MAX];

static struct leat_farm *farm_of(size_t count)
{
    uint8_t members[BACKENDS_MAX];
    struct leat_farm *farm = NULL;
    struct leat_error err;

    memset(backends, 0, sizeof(backends));
    for (size_t i = 0; i < count; i++) {
        configs[i] = (struct leat_backend_config){.weight = 1};
        assert_int_equal(leat_addr_parse(leat_str_of("127.0.0.1"), (uint16_t)(1000 + i),
                                         &configs[i].endpoint.addr, &err),
                         LEAT_OK);
        leat_backend_init(&backends[i], i, &configs[i]);
        members[i] = (uint8_t)i;
    }
    assert_int_equal(leat_farm_new(backends, members, count, &farm), LEAT_OK);
    return farm;
}

/* Begins a search and returns the backend that it tries first. */
static size_t first(struct leat_farm *farm, uint64_t now_ms)
{
    struct leat_farm_search search;

    leat_farm_begin(farm, now_ms, &search);
    return (size_t)(leat_farm_next(farm, &search) - backends);
}

static void has_its_backends(void **state)
{
    struct leat_farm *farm = farm_of(2);

    (void)state;
    assert_int_equal(farm->count, 2);
    assert_string_equal(farm->backends[0]->text, "127.0.0.1:1000");
    assert_string_equal(farm->backends[1]->text, "127.0.0.1:1001");
    leat_farm_free(farm);
    leat_farm_free(NULL);
}

static void every_session_takes_the_next_one(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 6, BACKENDS_MAX};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct leat_farm *farm = farm_of(sizes[s]);
        unsigned counts[BACKENDS_MAX] = {0};
        size_t expected = first(farm, 1);
        counts[expected]++;
        for (size_t i = 1; i < 100 * sizes[s]; i++) {
            expected = (expected + 1) % sizes[s];
            assert_int_equal(first(farm, 1), expected);
            counts[expected]++;
        }
        for (size_t i = 0; i < sizes[s]; i++)
            assert_int_equal(counts[i], 100);
        leat_farm_free(farm);
    }
}

/* One search tries every backend, each once, in the order of the rotation. */
static void a_search_tries_each_once(void **state)
{
    struct leat_farm *farm = farm_of(6);
    struct leat_farm_search search;

    (void)state;
    for (size_t i = 0; i < 12; i++) {
        leat_farm_begin(farm, 1, &search);
        size_t begin = (size_t)(leat_farm_next(farm, &search) - backends);
        for (size_t k = 1; k < 6; k++)
            assert_ptr_equal(leat_farm_next(farm, &search), farm->backends[(begin + k) % 6]);
        assert_null(leat_farm_next(farm, &search));
        assert_null(leat_farm_next(farm, &search));
    }
    leat_farm_free(farm);
}

/* How far a search goes does not move the rotation of the others. */
static void interleaved_searches_do_not_disturb_each_other(void **state)
{
    struct leat_farm *farm = farm_of(3);
    struct leat_farm_search searches[30];
    unsigned counts[3] = {0};

    (void)state;
    for (size_t i = 0; i < 30; i++) {
        leat_farm_begin(farm, 1, &searches[i]);
        /* The others go on meanwhile, some to their end. */
        for (size_t k = 0; k < i; k += 3)
            (void)leat_farm_next(farm, &searches[k]);
        struct leat_farm_search look = searches[i];
        counts[leat_farm_next(farm, &look) - backends]++;
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(counts[i], 10);
    leat_farm_free(farm);
}

static void a_failing_one_goes_last_and_nobody_gets_its_share_alone(void **state)
{
    struct leat_farm *farm = farm_of(3);
    struct leat_farm_search search;
    unsigned counts[3] = {0};

    (void)state;
    assert_int_equal(leat_backend_failed(farm->backends[1], 100), 5000);
    for (size_t i = 0; i < 60; i++) {
        struct leat_backend *last = NULL, *next;
        unsigned tried = 0;
        leat_farm_begin(farm, 200, &search);
        while ((next = leat_farm_next(farm, &search)) != NULL) {
            if (tried++ == 0)
                counts[next - backends]++;
            last = next;
        }
        assert_int_equal(tried, 3);
        assert_ptr_equal(last, farm->backends[1]);
    }
    assert_int_equal(counts[0], 30);
    assert_int_equal(counts[1], 0);
    assert_int_equal(counts[2], 30);
    leat_farm_free(farm);
}

static void all_failing_are_still_dealt_in_turn(void **state)
{
    struct leat_farm *farm = farm_of(3);
    unsigned counts[3] = {0};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        (void)leat_backend_failed(farm->backends[i], 100);
    for (size_t i = 0; i < 30; i++)
        counts[first(farm, 200)]++;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(counts[i], 10);
    leat_farm_free(farm);
}

static void it_comes_back_when_its_time_is_over(void **state)
{
    struct leat_farm *farm = farm_of(2);

    (void)state;
    (void)leat_backend_failed(farm->backends[0], 100);
    assert_int_equal(first(farm, 5099), 1);
    assert_int_equal(first(farm, 5099), 1);
    assert_int_equal(first(farm, 5100), 0);
    assert_int_equal(first(farm, 5100), 1);
    leat_farm_free(farm);
}

static void the_backoff_doubles_and_is_bounded(void **state)
{
    static const uint32_t expected[] = {5000, 10000, 20000, 40000, 60000, 60000, 60000};
    struct leat_farm *farm = farm_of(1);
    struct leat_backend *backend = farm->backends[0];
    uint64_t now = 1000;

    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(leat_backend_failed(backend, now), expected[i]);
        assert_int_equal(backend->retry_at_ms, now + expected[i]);
        now += expected[i];
    }
    assert_true(leat_backend_opened(backend));
    assert_false(leat_backend_opened(backend));
    assert_int_equal(backend->retry_at_ms, 0);
    assert_int_equal(backend->sessions, 2);
    assert_int_equal(leat_backend_failed(backend, now), 5000);
    leat_farm_free(farm);
}

static void only_the_first_of_many_failures_counts(void **state)
{
    struct leat_farm *farm = farm_of(1);
    struct leat_backend *backend = farm->backends[0];

    (void)state;
    assert_int_equal(leat_backend_failed(backend, 0), 5000);
    for (uint64_t now = 0; now < 5000; now += 100)
        assert_int_equal(leat_backend_failed(backend, now), 0);
    assert_int_equal(leat_backend_failed(backend, 5000), 10000);
    leat_farm_free(farm);
}

static void assert_tune(const struct leat_amqp_tune *tune, uint32_t frame_max, uint16_t channel_max)
{
    assert_int_equal(tune->frame_max, frame_max);
    assert_int_equal(tune->channel_max, channel_max);
    assert_int_equal(tune->heartbeat_s, 60);
}

static void the_least_limit_is_learned(void **state)
{
    static const struct leat_amqp_tune none = {0};
    static const struct leat_amqp_tune offer = {
        .channel_max = 2047, .frame_max = 131072, .heartbeat_s = 60};
    struct leat_farm *farm = farm_of(1);
    struct leat_amqp_tune tune = offer;

    (void)state;
    leat_farm_limit(farm, &tune);
    assert_tune(&tune, 131072, 2047);
    leat_farm_learn(farm, &none); /* no limit */
    leat_farm_limit(farm, &tune);
    assert_tune(&tune, 131072, 2047);
    leat_farm_learn(farm, &(struct leat_amqp_tune){.frame_max = 200000, .channel_max = 100});
    leat_farm_limit(farm, &tune);
    assert_tune(&tune, 131072, 100);
    leat_farm_learn(farm, &(struct leat_amqp_tune){.frame_max = 8192, .channel_max = 200});
    leat_farm_learn(farm, &none);
    tune = offer;
    leat_farm_limit(farm, &tune);
    assert_tune(&tune, 8192, 100);
    leat_farm_free(farm);
}

static void a_brokers_properties_are_repeated(void **state)
{
    static char large[LEAT_AMQP_SERVER_PROPERTIES_MAX + 1];
    uint8_t buf[LEAT_AMQP_SERVER_PROPERTIES_MAX];
    struct leat_farm *farm = farm_of(1);

    (void)state;
    assert_int_equal(leat_farm_properties(farm, buf).len, 0);
    leat_farm_learn_properties(farm, leat_str_of("first"));
    leat_farm_learn_properties(farm, leat_str_of("next"));
    leat_farm_learn_properties(farm, (struct leat_str){0});
    leat_farm_learn_properties(farm, (struct leat_str){large, sizeof(large)});
    assert_true(leat_str_equal(leat_farm_properties(farm, buf), leat_str_of("next")));
    leat_farm_learn_properties(farm, (struct leat_str){large, sizeof(large) - 1});
    assert_int_equal(leat_farm_properties(farm, buf).len, sizeof(large) - 1);
    leat_farm_free(farm);
}

#define THREADS 8
#define SESSIONS_EACH 3000

struct dealt {
    struct leat_farm *farm;
    pthread_t thread;
    unsigned counts[BACKENDS_MAX];
    unsigned doubled; /* failures that were the first */
};

static void *deal(void *arg)
{
    struct dealt *dealt = arg;

    for (int i = 0; i < SESSIONS_EACH; i++)
        dealt->counts[first(dealt->farm, 1)]++;
    return NULL;
}

static void *fail_once(void *arg)
{
    struct dealt *dealt = arg;

    for (size_t i = 0; i < dealt->farm->count; i++)
        dealt->doubled += leat_backend_failed(dealt->farm->backends[i], 1) != 0;
    return NULL;
}

static void run_threads(struct dealt dealt[THREADS], struct leat_farm *farm,
                        void *(*run)(void *arg))
{
    for (int i = 0; i < THREADS; i++) {
        dealt[i] = (struct dealt){.farm = farm};
        assert_int_equal(pthread_create(&dealt[i].thread, NULL, run, &dealt[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(dealt[i].thread, NULL), 0);
}

static void threads_together_deal_evenly(void **state)
{
    static const size_t sizes[] = {2, 3, 6};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct leat_farm *farm = farm_of(sizes[s]);
        struct dealt dealt[THREADS];
        run_threads(dealt, farm, deal);
        for (size_t b = 0; b < sizes[s]; b++) {
            unsigned sum = 0;
            for (int i = 0; i < THREADS; i++)
                sum += dealt[i].counts[b];
            assert_int_equal(sum, THREADS * SESSIONS_EACH / sizes[s]);
        }
        leat_farm_free(farm);
    }
}

static void threads_together_double_once(void **state)
{
    struct leat_farm *farm = farm_of(BACKENDS_MAX);
    struct dealt dealt[THREADS];
    unsigned doubled = 0;

    (void)state;
    run_threads(dealt, farm, fail_once);
    for (int i = 0; i < THREADS; i++)
        doubled += dealt[i].doubled;
    assert_int_equal(doubled, BACKENDS_MAX);
    for (size_t i = 0; i < BACKENDS_MAX; i++)
        assert_int_equal(farm->backends[i]->backoff_ms, 5000);
    leat_farm_free(farm);
}

/* Over as many sessions as the weights add up to, each gets its weight, and the heavy one is not
 * asked for all of its share in a row. */
static void weights_are_kept(void **state)
{
    static const unsigned weights[] = {5, 1, 2};
    struct leat_farm *farm = farm_of(3);
    unsigned in_a_row = 0, most_in_a_row = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        configs[i].weight = weights[i];
    for (unsigned round = 0; round < 10; round++) {
        unsigned counts[3] = {0};
        for (unsigned i = 0; i < 8; i++) {
            size_t one = first(farm, 1);
            counts[one]++;
            in_a_row = (one == 0) ? in_a_row + 1 : 0;
            most_in_a_row = (in_a_row > most_in_a_row) ? in_a_row : most_in_a_row;
        }
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(counts[i], weights[i]);
    }
    assert_in_range(most_in_a_row, 1, 3);
    leat_farm_free(farm);
}

/* While one is failing the others share by their own weights. */
static void weights_are_kept_among_those_that_work(void **state)
{
    struct leat_farm *farm = farm_of(3);
    unsigned counts[3] = {0};

    (void)state;
    configs[0].weight = 3;
    configs[1].weight = 2;
    (void)leat_backend_failed(&backends[2], 1);
    for (unsigned i = 0; i < 50; i++)
        counts[first(farm, 1)]++;
    assert_int_equal(counts[0], 30);
    assert_int_equal(counts[1], 20);
    assert_int_equal(counts[2], 0);
    leat_farm_free(farm);
}

static void want_of_memory_is_told(void **state)
{
    static const uint8_t member = 0;
    struct leat_farm *farm = NULL;

    (void)state;
    leat_mem_fail_after(1);
    assert_int_equal(leat_farm_new(backends, &member, 1, &farm), LEAT_ENOMEM);
    assert_null(farm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_its_backends),
        cmocka_unit_test(every_session_takes_the_next_one),
        cmocka_unit_test(a_search_tries_each_once),
        cmocka_unit_test(interleaved_searches_do_not_disturb_each_other),
        cmocka_unit_test(a_failing_one_goes_last_and_nobody_gets_its_share_alone),
        cmocka_unit_test(all_failing_are_still_dealt_in_turn),
        cmocka_unit_test(it_comes_back_when_its_time_is_over),
        cmocka_unit_test(the_backoff_doubles_and_is_bounded),
        cmocka_unit_test(only_the_first_of_many_failures_counts),
        cmocka_unit_test(the_least_limit_is_learned),
        cmocka_unit_test(a_brokers_properties_are_repeated),
        cmocka_unit_test(threads_together_deal_evenly),
        cmocka_unit_test(threads_together_double_once),
        cmocka_unit_test(weights_are_kept),
        cmocka_unit_test(weights_are_kept_among_those_that_work),
        cmocka_unit_test(want_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
