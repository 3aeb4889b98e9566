/*
 * Fuzzes buf/bufq.h against a flat array. Input: the limit, then operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "buf/bufq.h"
#include "buf/reader.h"
#include "fuzz/fuzz.h"

#define LIMIT_UNIT 1024u
#define PARTS_MAX 3

/* What is appended are pieces of this, so that no byte is like its neighbours. */
static uint8_t source[80000];

struct pair {
    struct leat_bufq queue;
    struct wire model;
};

static void fill_source(void)
{
    uint32_t seed = 7;

    for (size_t i = 0; i < sizeof(source) && source[0] == 0; i++)
        source[sizeof(source) - 1 - i] = (uint8_t)(1 + wire_random(&seed, 255));
}

static void append(struct pair *pair, struct leat_reader *reader, bool fails)
{
    struct iovec iov[PARTS_MAX];
    int count = leat_reader_u8(reader) % (PARTS_MAX + 1);
    size_t skip = leat_reader_u16(reader), to_skip = skip, size = 0;
    struct wire added = {0};

    for (int i = 0; i < count; i++) {
        size_t from = leat_reader_u16(reader) % 1024u, len = leat_reader_u16(reader);
        size_t skipped = to_skip < len ? to_skip : len;

        iov[i] = (struct iovec){source + from, len};
        to_skip -= skipped;
        size += len - skipped;
        wire_add(&added, source + from + skipped, len - skipped);
    }
    leat_mem_fail_after(fails ? 1 : 0);
    enum leat_status status = leat_bufq_append(&pair->queue, iov, count, skip);
    leat_mem_fail_after(0);
    if (size > pair->queue.limit - pair->model.len)
        LEAT_ASSERT(status == LEAT_ELIMIT);
    else
        LEAT_ASSERT(status == LEAT_OK || (fails && status == LEAT_ENOMEM));
    if (status == LEAT_OK)
        wire_add(&pair->model, added.buf, added.len);
    wire_free(&added);
}

static void consume(struct pair *pair, size_t len)
{
    if (len > pair->model.len)
        len = pair->model.len;
    leat_bufq_consume(&pair->queue, len);
    pair->model.len -= len;
    if (pair->model.len > 0)
        memmove(pair->model.buf, pair->model.buf + len, pair->model.len);
}

static void compare(const struct pair *pair, const struct leat_bufq_account *account)
{
    struct iovec iov[8];
    int count = leat_bufq_peek(&pair->queue, iov, 8);
    size_t pos = 0;

    LEAT_ASSERT(pair->queue.len == pair->model.len && pair->queue.len <= pair->queue.limit);
    LEAT_ASSERT(account->held == pair->queue.len);
    for (int i = 0; i < count; i++) {
        LEAT_ASSERT(iov[i].iov_len > 0 && iov[i].iov_len <= pair->model.len - pos);
        LEAT_ASSERT(memcmp(iov[i].iov_base, pair->model.buf + pos, iov[i].iov_len) == 0);
        pos += iov[i].iov_len;
    }
    LEAT_ASSERT(count == 8 || pos == pair->model.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_bufq_account account = {0};
    struct leat_reader reader;
    struct pair pair = {.model = {0}};

    fill_source();
    leat_reader_init(&reader, data, size);
    leat_bufq_init(&pair.queue, leat_reader_u8(&reader) * (size_t)LIMIT_UNIT, &account);
    while (leat_reader_left(&reader) > 0) {
        switch (leat_reader_u8(&reader) % 4) {
        case 0:
            append(&pair, &reader, false);
            break;
        case 1:
            append(&pair, &reader, true);
            break;
        case 2:
            consume(&pair, leat_reader_u16(&reader));
            break;
        case 3:
            leat_bufq_clear(&pair.queue);
            pair.model.len = 0;
            break;
        }
        compare(&pair, &account);
    }
    leat_bufq_clear(&pair.queue);
    LEAT_ASSERT(account.held == 0);
    wire_free(&pair.model);
    return 0;
}
