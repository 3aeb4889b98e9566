/*
 * Tests of buf/bufq.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "buf/bufq.h"

#define CHUNK_MIN 4096
#define CHUNK_MAX 65536
#define SOURCE_LEN ((size_t)512 * 1024)
#define MAX_PARTS 512

static uint8_t *source; /* bytes that do not repeat at any distance that matters here */

static int make_source(void **state)
{
    uint32_t seed = 1;

    (void)state;
    source = malloc(SOURCE_LEN);
    if (source == NULL)
        return 1;
    for (size_t i = 0; i < SOURCE_LEN; i++) {
        seed = seed * 1664525u + 1013904223u;
        source[i] = (uint8_t)(seed >> 24);
    }
    return 0;
}

static int free_source(void **state)
{
    (void)state;
    free(source);
    return 0;
}

static enum leat_status append(struct leat_bufq *queue, const uint8_t *data, size_t len)
{
    struct iovec part = {NULL, len};

    /* An iovec has no const, but the queue only reads. */
    memcpy(&part.iov_base, &data, sizeof(data));
    return leat_bufq_append(queue, &part, 1, 0);
}

/* Checks that QUEUE, alone on its account, holds just the LEN bytes at EXPECTED. */
static void assert_holds(const struct leat_bufq *queue, const uint8_t *expected, size_t len)
{
    struct iovec parts[MAX_PARTS];
    int count = leat_bufq_peek(queue, parts, MAX_PARTS);
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        assert_true(parts[i].iov_len > 0 && parts[i].iov_len <= len - at);
        assert_memory_equal(parts[i].iov_base, expected + at, parts[i].iov_len);
        at += parts[i].iov_len;
    }
    assert_int_equal(at, len);
    assert_int_equal(queue->len, len);
    assert_int_equal(leat_list_is_empty(&queue->chunks), len == 0);
    if (queue->account != NULL)
        assert_int_equal(queue->account->held, len);
}

/* The size of each element of QUEUE, at most 4 of them; 0 behind the last. */
static void sizes_of(const struct leat_bufq *queue, size_t sizes[4])
{
    struct iovec parts[4];
    int count = leat_bufq_peek(queue, parts, 4);

    for (int i = 0; i < 4; i++)
        sizes[i] = i < count ? parts[i].iov_len : 0;
}

static void an_empty_queue_holds_nothing(void **state)
{
    struct leat_bufq_account account = {0};
    struct leat_bufq queue;

    (void)state;
    leat_bufq_init(&queue, 100, &account);
    assert_holds(&queue, source, 0);
    assert_int_equal(leat_bufq_append(&queue, NULL, 0, 0), LEAT_OK);
    assert_int_equal(leat_bufq_append(&queue, &(struct iovec){NULL, 0}, 1, 0), LEAT_OK);
    assert_holds(&queue, source, 0);
    leat_bufq_consume(&queue, 0);
    assert_int_equal(append(&queue, source, 10), LEAT_OK);
    assert_holds(&queue, source, 10);
    leat_bufq_consume(&queue, 10);
    assert_holds(&queue, source, 0);
    leat_bufq_clear(&queue);
    assert_holds(&queue, source, 0);
}

static void parts_are_joined_without_what_is_skipped(void **state)
{
    (void)state;
    for (size_t skip = 0; skip <= 10; skip++) {
        struct iovec parts[] = {
            {source, 3}, {source + 3, 0}, {NULL, 0}, {source + 3, 5}, {source + 8, 2}};
        struct leat_bufq queue;

        leat_bufq_init(&queue, 10, NULL);
        assert_int_equal(leat_bufq_append(&queue, parts, 5, skip), LEAT_OK);
        assert_holds(&queue, source + skip, 10 - skip);
        leat_bufq_clear(&queue);
    }
}

static void the_last_chunk_is_filled_first(void **state)
{
    struct leat_bufq queue;
    size_t sizes[4];

    (void)state;
    leat_bufq_init(&queue, SOURCE_LEN, NULL);
    assert_int_equal(append(&queue, source, 1), LEAT_OK);
    assert_int_equal(append(&queue, source + 1, CHUNK_MIN - 2), LEAT_OK);
    sizes_of(&queue, sizes);
    assert_int_equal(sizes[0], CHUNK_MIN - 1);
    assert_int_equal(append(&queue, source + CHUNK_MIN - 1, 3), LEAT_OK);
    sizes_of(&queue, sizes);
    assert_int_equal(sizes[0], CHUNK_MIN);
    assert_int_equal(sizes[1], 2);
    assert_holds(&queue, source, CHUNK_MIN + 2);
    leat_bufq_clear(&queue);
}

static void chunks_fit_up_to_64_kib(void **state)
{
    struct leat_bufq queue;
    size_t sizes[4];

    (void)state;
    leat_bufq_init(&queue, SOURCE_LEN, NULL);
    assert_int_equal(append(&queue, source, 10000), LEAT_OK);
    assert_int_equal(append(&queue, source + 10000, CHUNK_MAX + 1), LEAT_OK);
    sizes_of(&queue, sizes);
    assert_int_equal(sizes[0], 10000);
    assert_int_equal(sizes[1], CHUNK_MAX);
    assert_int_equal(sizes[2], 1);
    assert_holds(&queue, source, 10000 + CHUNK_MAX + 1);
    leat_bufq_clear(&queue);
}

static void a_peek_takes_no_more_than_asked(void **state)
{
    struct leat_bufq queue;
    struct iovec parts[2] = {{NULL, 77}, {NULL, 77}};

    (void)state;
    leat_bufq_init(&queue, SOURCE_LEN, NULL);
    assert_int_equal(leat_bufq_peek(&queue, parts, 2), 0);
    assert_int_equal(append(&queue, source, (size_t)3 * CHUNK_MAX), LEAT_OK);
    assert_int_equal(leat_bufq_peek(&queue, parts, 0), 0);
    assert_int_equal(leat_bufq_peek(&queue, parts, 1), 1);
    assert_int_equal(parts[0].iov_len, CHUNK_MAX);
    assert_int_equal(parts[1].iov_len, 77);
    assert_holds(&queue, source, (size_t)3 * CHUNK_MAX);
    leat_bufq_clear(&queue);
}

static void the_limit_is_exact(void **state)
{
    struct leat_bufq_account account = {.limit = 1}; /* advises readers; refuses nothing */
    struct leat_bufq queue;
    struct iovec two[] = {{source + 4000, 500}, {source + 4500, 501}};
    struct iovec huge[] = {{source, 5000}, {source, SIZE_MAX}};

    (void)state;
    leat_bufq_init(&queue, 5000, &account);
    assert_int_equal(append(&queue, source, 5001), LEAT_ELIMIT);
    assert_holds(&queue, source, 0);
    assert_int_equal(leat_bufq_append(&queue, huge, 2, 0), LEAT_ELIMIT);
    assert_holds(&queue, source, 0);
    assert_int_equal(append(&queue, source, 4000), LEAT_OK);
    assert_int_equal(leat_bufq_append(&queue, two, 2, 0), LEAT_ELIMIT);
    assert_holds(&queue, source, 4000);
    two[1].iov_len--;
    assert_int_equal(leat_bufq_append(&queue, two, 2, 0), LEAT_OK);
    assert_holds(&queue, source, 5000);
    assert_int_equal(append(&queue, source, 1), LEAT_ELIMIT);
    leat_bufq_consume(&queue, 1);
    assert_int_equal(append(&queue, source + 5000, 1), LEAT_OK);
    assert_holds(&queue, source + 1, 5000);
    leat_bufq_clear(&queue);
}

static void an_account_sums_its_queues(void **state)
{
    struct leat_bufq_account account = {0};
    struct leat_bufq a, b;

    (void)state;
    leat_bufq_init(&a, 1000, &account);
    leat_bufq_init(&b, 1000, &account);
    assert_int_equal(append(&a, source, 300), LEAT_OK);
    assert_int_equal(append(&b, source, 500), LEAT_OK);
    assert_int_equal(account.held, 800);
    leat_bufq_consume(&a, 100);
    assert_int_equal(account.held, 700);
    leat_bufq_clear(&b);
    assert_int_equal(account.held, 200);
    leat_bufq_clear(&a);
    assert_int_equal(account.held, 0);
}

static void a_cleared_queue_is_usable(void **state)
{
    struct leat_bufq_account account = {0};
    struct leat_bufq queue;

    (void)state;
    leat_bufq_init(&queue, SOURCE_LEN, &account);
    assert_int_equal(append(&queue, source, (size_t)2 * CHUNK_MAX), LEAT_OK);
    leat_bufq_clear(&queue);
    assert_holds(&queue, source, 0);
    assert_int_equal(append(&queue, source + 5, 50), LEAT_OK);
    assert_holds(&queue, source + 5, 50);
    leat_bufq_clear(&queue);
}

static void out_of_memory_appends_nothing(void **state)
{
    struct leat_bufq_account account = {0};
    struct leat_bufq queue;
    struct iovec parts[] = {
        {source, 1000}, {source + 1000, 100000}, {source + 101000, 0}, {source + 101000, 100000}};
    unsigned nth = 0;
    enum leat_status status;

    (void)state;
    leat_bufq_init(&queue, SOURCE_LEN, &account);
    assert_int_equal(append(&queue, source, 700), LEAT_OK);
    do {
        assert_holds(&queue, source, 700);
        leat_mem_fail_after(++nth);
        status = leat_bufq_append(&queue, parts, 4, 700);
        leat_mem_fail_after(0);
    } while (status == LEAT_ENOMEM);
    assert_int_equal(status, LEAT_OK);
    assert_int_equal(nth, 5); /* 197 KiB beyond the first chunk take 4 */
    assert_holds(&queue, source, 201000);
    leat_bufq_clear(&queue);
}

/* A plain array that holds what the queue should. */
struct model {
    uint8_t *bytes;
    size_t len, limit;
};

static uint32_t roll(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)*seed * below >> 32);
}

/* Mostly a few bytes, sometimes chunks full of them. */
static size_t roll_len(uint32_t *seed)
{
    static const uint32_t below[] = {3, 100, 5000, 5000, 80000};

    return roll(seed, below[roll(seed, 5)]);
}

static void append_at_random(struct leat_bufq *queue, struct model *model, uint32_t *seed)
{
    struct iovec parts[4];
    int count = (int)roll(seed, 5);
    size_t len = 0, skip;
    uint8_t *joined = malloc((size_t)4 * 80000 + 1);
    enum leat_status status;

    assert_non_null(joined);
    for (int i = 0; i < count; i++) {
        parts[i].iov_len = roll_len(seed);
        parts[i].iov_base = source + roll(seed, (uint32_t)(SOURCE_LEN - parts[i].iov_len));
        memcpy(joined + len, parts[i].iov_base, parts[i].iov_len);
        len += parts[i].iov_len;
    }
    skip = roll(seed, 3) == 0 ? roll(seed, (uint32_t)len + 1) : 0;
    leat_mem_fail_after(roll(seed, 4));
    status = leat_bufq_append(queue, parts, count, skip);
    leat_mem_fail_after(0);
    if (status == LEAT_OK) {
        assert_true(len - skip <= model->limit - model->len);
        memcpy(model->bytes + model->len, joined + skip, len - skip);
        model->len += len - skip;
    } else if (status == LEAT_ELIMIT) {
        assert_true(len - skip > model->limit - model->len);
    } else {
        assert_int_equal(status, LEAT_ENOMEM);
    }
    free(joined);
}

static void consume_at_random(struct leat_bufq *queue, struct model *model, uint32_t *seed)
{
    size_t len = roll_len(seed) * 2;

    if (len > model->len || roll(seed, 50) == 0)
        len = model->len;
    leat_bufq_consume(queue, len);
    model->len -= len;
    memmove(model->bytes, model->bytes + len, model->len);
}

static void behaves_like_the_model(void **state)
{
    struct leat_bufq_account account = {0};
    struct leat_bufq queue;
    struct model model = {.limit = 200000};
    uint32_t seed = 7;

    (void)state;
    model.bytes = malloc(model.limit);
    assert_non_null(model.bytes);
    leat_bufq_init(&queue, model.limit, &account);
    for (int step = 0; step < 5000; step++) {
        if (roll(&seed, 2) == 0)
            append_at_random(&queue, &model, &seed);
        else
            consume_at_random(&queue, &model, &seed);
        assert_holds(&queue, model.bytes, model.len);
    }
    leat_bufq_clear(&queue);
    assert_holds(&queue, model.bytes, 0);
    free(model.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_queue_holds_nothing),
        cmocka_unit_test(parts_are_joined_without_what_is_skipped),
        cmocka_unit_test(the_last_chunk_is_filled_first),
        cmocka_unit_test(chunks_fit_up_to_64_kib),
        cmocka_unit_test(a_peek_takes_no_more_than_asked),
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(an_account_sums_its_queues),
        cmocka_unit_test(a_cleared_queue_is_usable),
        cmocka_unit_test(out_of_memory_appends_nothing),
        cmocka_unit_test(behaves_like_the_model),
    };

    return cmocka_run_group_tests(tests, make_source, free_source);
}
