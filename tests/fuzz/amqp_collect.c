/*
 * Fuzzes amqp/collect.h. Input: the largest frame (2 bytes), a way to cut, the stream.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "amqp/collect.h"
#include "base/assert.h"
#include "base/mem.h"
#include "buf/reader.h"
#include "fuzz/fuzz.h"

struct outcome {
    enum leat_status status; /* the first that ends the run, or OK */
    struct wire frames;      /* the frames that were given, written again */
    size_t taken;
};

/* Feeds one span, and so long as it has frames. */
static void feed(struct leat_amqp_collect *collect, const uint8_t *data, size_t len,
                 struct outcome *outcome)
{
    enum leat_status status = LEAT_OK;

    for (size_t pos = 0; pos < len && status == LEAT_OK;) {
        struct leat_amqp_frame_head head = {0};
        const uint8_t *payload = NULL;
        size_t taken = 0;

        status = leat_amqp_collect_feed(collect, data + pos, len - pos, &taken, &head, &payload);
        LEAT_ASSERT(taken <= len - pos && (taken > 0 || status == LEAT_ENOMEM));
        pos += taken;
        outcome->taken += taken;
        if (status == LEAT_OK) {
            LEAT_ASSERT(head.size + (uint64_t)LEAT_AMQP_FRAME_OVERHEAD <= collect->max);
            wire_frame(&outcome->frames, head.type, head.channel, payload, head.size);
        }
        LEAT_ASSERT(status != LEAT_EAGAIN || pos == len);
    }
    if (status != LEAT_OK && status != LEAT_EAGAIN)
        outcome->status = status;
}

static void run(uint32_t max, struct leat_str in, int cut, struct outcome *outcome)
{
    struct leat_amqp_collect collect = {.max = max};
    uint32_t seed = (uint32_t)cut;

    *outcome = (struct outcome){.status = LEAT_OK};
    for (size_t pos = 0; pos < in.len && outcome->status == LEAT_OK;) {
        size_t len = wire_next_cut(cut, in.len - pos, &seed);
        uint8_t *span = fuzz_copy(in.ptr + pos, len);

        feed(&collect, span, len, outcome);
        free(span);
        pos += len;
    }
    leat_amqp_collect_clear(&collect);
    /* What was given is what came. */
    LEAT_ASSERT(fuzz_begins(&(struct wire){.buf = (uint8_t *)(uintptr_t)in.ptr, .len = in.len},
                            &outcome->frames));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_reader reader;
    struct outcome whole, other;

    leat_reader_init(&reader, data, size);
    uint32_t max = leat_reader_u16(&reader);
    uint8_t chosen = leat_reader_u8(&reader);
    struct leat_str in = leat_reader_bytes(&reader, leat_reader_left(&reader));
    run(max, in, WIRE_WHOLE, &whole);
    LEAT_ASSERT(whole.status == LEAT_OK || whole.status == LEAT_ELIMIT ||
                whole.status == LEAT_EPROTOCOL);
    for (int i = 1; i < FUZZ_CUTS; i++) {
        run(max, in, fuzz_cut(i, chosen), &other);
        LEAT_ASSERT(other.status == whole.status && other.taken == whole.taken);
        LEAT_ASSERT(wire_equal(&other.frames, &whole.frames));
        wire_free(&other.frames);
    }
    leat_mem_fail_after(1 + chosen % 8u);
    run(max, in, WIRE_BYTES, &other);
    leat_mem_fail_after(0);
    LEAT_ASSERT(other.status == whole.status || other.status == LEAT_ENOMEM);
    LEAT_ASSERT(fuzz_begins(&whole.frames, &other.frames));
    wire_free(&other.frames);
    wire_free(&whole.frames);
    return 0;
}
