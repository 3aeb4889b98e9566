/*
 * Fuzzes amqp/relay.h, and the Close of amqp/frame.h. Input: the largest frame of the sender and
 * of the receiver (2 bytes each, 0: none), a way to cut, the stream.
 *
 * What comes out is compared with a model that walks over the whole stream, with the other cuts,
 * and with a relay that traces.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/relay.h"
#include "base/assert.h"
#include "base/str.h"
#include "base/text.h"
#include "buf/reader.h"
#include "buf/writer.h"
#include "fuzz/fuzz.h"

struct setup {
    uint32_t source_max, target_max;
    struct leat_str in;
};

struct outcome {
    struct wire out;    /* what the receiver gets */
    struct wire events; /* a line for each Close, Close-Ok and error */
    struct wire told;   /* a line for each frame of a trace */
    uint64_t frames, heartbeats;
    bool failed;
    bool is_exact; /* of the model: nothing may come behind */
};

static void outcome_free(struct outcome *outcome)
{
    wire_free(&outcome->out);
    wire_free(&outcome->events);
    wire_free(&outcome->told);
}

/* Whether OUT ends between two frames; *WHOLE_TO is how far it is known to be whole. */
static bool ends_whole(const struct setup *setup, const struct wire *out, size_t *whole_to)
{
    while (out->len - *whole_to >= LEAT_AMQP_FRAME_HEAD_SIZE) {
        struct leat_amqp_frame_head head = leat_amqp_frame_head_parse(out->buf + *whole_to);
        uint64_t size = (uint64_t)head.size + LEAT_AMQP_FRAME_OVERHEAD;

        LEAT_ASSERT(head.type >= 1 && head.type <= 3);
        LEAT_ASSERT(setup->target_max == 0 || size <= setup->target_max);
        if (out->len - *whole_to < size)
            return false;
        LEAT_ASSERT(out->buf[*whole_to + size - 1] == LEAT_AMQP_FRAME_END);
        *whole_to += size;
    }
    return out->len == *whole_to;
}

static void note(struct wire *lines, const char *format, ...) LEAT_PRINTF(2, 3);

static void note(struct wire *lines, const char *format, ...)
{
    char line[400];
    struct leat_text text;
    va_list args;

    leat_text_init(&text, line, sizeof(line));
    va_start(args, format);
    leat_text_vadd(&text, format, args);
    va_end(args);
    LEAT_ASSERT(!text.is_cut);
    wire_add(lines, line, text.len);
}

/* A Close is the same when it is written anew, but for the method that it blames. */
static void check_close(const struct leat_amqp_relay *relay)
{
    uint8_t buf[LEAT_AMQP_CLOSE_MAX];
    struct leat_writer writer;
    struct leat_amqp_close close;

    leat_writer_init(&writer, buf, sizeof(buf));
    leat_amqp_write_close(&writer, relay->close.code, relay->close.text);
    LEAT_ASSERT(!writer.failed);
    struct leat_str payload = fuzz_check_frames(buf, writer.len);
    LEAT_ASSERT(leat_amqp_close_parse((struct leat_str){payload.ptr + 4, payload.len - 4}, &close));
    LEAT_ASSERT(close.code == relay->close.code);
    LEAT_ASSERT(leat_str_equal(close.text, relay->close.text));
}

static void note_end(struct outcome *outcome, const struct leat_amqp_relay *relay,
                     const struct leat_amqp_op *op)
{
    bool is_close = op->kind == LEAT_AMQP_OP_CLOSE;

    (void)fuzz_check_frames(op->put, op->put_len);
    if (is_close)
        note(&outcome->events, "close %u\n", relay->close.code);
    else
        note(&outcome->events, "close-ok\n");
    wire_add(&outcome->events, op->put, op->put_len);
    if (is_close)
        check_close(relay);
}

/* Acts on one operation as the session does. False at MORE and ERROR. */
static bool act(struct outcome *outcome, const struct leat_amqp_relay *relay,
                const struct leat_amqp_op *op, const uint8_t *data)
{
    switch (op->kind) {
    case LEAT_AMQP_OP_MORE:
        return false;
    case LEAT_AMQP_OP_PASS:
        LEAT_ASSERT(op->taken > 0);
        wire_add(&outcome->out, data, op->taken);
        return true;
    case LEAT_AMQP_OP_DROP:
        return true;
    case LEAT_AMQP_OP_PUT:
        LEAT_ASSERT(op->put_len > 0);
        wire_add(&outcome->out, op->put, op->put_len);
        return true;
    case LEAT_AMQP_OP_FRAME:
        LEAT_ASSERT(relay->trace && op->taken == 0);
        note(&outcome->told, "%u %u %u %u\n", relay->head.type, relay->head.channel,
             relay->head.size, relay->method);
        return true;
    case LEAT_AMQP_OP_CLOSE:
    case LEAT_AMQP_OP_CLOSE_OK:
        note_end(outcome, relay, op);
        return true;
    case LEAT_AMQP_OP_ERROR:
        fuzz_check_error(LEAT_EPROTOCOL, &relay->error);
        LEAT_ASSERT(leat_str_starts(leat_str_of(relay->error.text),
                                    leat_str_of(leat_amqp_reply_name(relay->error_code))));
        note(&outcome->events, "error %u %s\n", relay->error_code, relay->error.text);
        outcome->failed = true;
        return false;
    }
    LEAT_ASSERT(false);
    return false;
}

static void run(const struct setup *setup, bool trace, int cut, struct outcome *outcome)
{
    uint32_t seed = (uint32_t)cut;
    size_t whole_to = 0;
    struct leat_amqp_relay relay;
    struct leat_amqp_op op;
    bool more;

    *outcome = (struct outcome){0};
    leat_amqp_relay_init(&relay, setup->source_max, setup->target_max);
    relay.trace = trace;
    for (size_t pos = 0; pos < setup->in.len && !outcome->failed;) {
        size_t len = wire_next_cut(cut, setup->in.len - pos, &seed);
        uint8_t *span = fuzz_copy(setup->in.ptr + pos, len);
        const uint8_t *data = span;

        pos += len;
        do {
            leat_amqp_relay_next(&relay, data, len, &op);
            LEAT_ASSERT(op.taken <= len);
            more = act(outcome, &relay, &op, data);
            data += op.taken;
            len -= op.taken;
            LEAT_ASSERT(leat_amqp_relay_is_between_frames(&relay) ==
                        ends_whole(setup, &outcome->out, &whole_to));
        } while (more);
        LEAT_ASSERT(outcome->failed || len == 0);
        free(span);
    }
    outcome->frames = relay.frames;
    outcome->heartbeats = relay.heartbeats;
}

/* Whether the frame of channel 0 with PAYLOAD is a Close or Close-Ok; *OUT_OK: it can be one. */
static bool is_end(struct leat_str payload, bool *out_ok)
{
    static const uint8_t close[] = {0, 10, 0, 50}, close_ok[] = {0, 10, 0, 51};

    if (payload.len < 4)
        return false;
    if (memcmp(payload.ptr, close_ok, 4) == 0) {
        *out_ok = payload.len == 4;
        return true;
    }
    if (memcmp(payload.ptr, close, 4) != 0)
        return false;
    *out_ok = payload.len >= 11 && payload.len == 11u + (uint8_t)payload.ptr[6];
    return true;
}

/* What becomes of one whole frame. False if it is an error. */
static bool model_frame(const struct setup *setup, const struct leat_amqp_frame_head *head,
                        struct leat_str payload, struct outcome *expected)
{
    size_t most = setup->target_max == 0 ? SIZE_MAX : setup->target_max - LEAT_AMQP_FRAME_OVERHEAD;
    bool is_ok = true;

    if (head->type == LEAT_AMQP_FRAME_HEARTBEAT) {
        expected->heartbeats++;
        return head->channel == 0 && head->size == 0;
    }
    if (head->type < 1 || head->type > 3 || (head->type < 3 && payload.len > most))
        return false;
    if (setup->source_max != 0 && payload.len > setup->source_max) /* and so the overhead more */
        return false;
    expected->frames++;
    if (head->type == LEAT_AMQP_FRAME_METHOD && head->channel == 0 && is_end(payload, &is_ok))
        return is_ok;
    for (size_t pos = 0; pos < payload.len || pos == 0; pos += most) {
        size_t left = payload.len - pos;

        wire_frame(&expected->out, head->type, head->channel, payload.ptr + pos,
                   left < most ? left : most);
        if (left <= most)
            break;
    }
    return true;
}

static void model(const struct setup *setup, struct outcome *expected)
{
    struct leat_reader reader;

    *expected = (struct outcome){0};
    leat_reader_init(&reader, setup->in.ptr, setup->in.len);
    while (leat_reader_left(&reader) > 0 && !expected->failed) {
        struct leat_amqp_frame_head head;

        head.type = leat_reader_u8(&reader);
        head.channel = leat_reader_u16(&reader);
        head.size = leat_reader_u32(&reader);
        struct leat_str payload = leat_reader_bytes(&reader, head.size);
        uint8_t end = leat_reader_u8(&reader);
        if (reader.failed)
            return; /* what becomes of a part of a frame is not said */
        expected->failed =
            end != LEAT_AMQP_FRAME_END || !model_frame(setup, &head, payload, expected);
    }
    expected->is_exact = !expected->failed;
}

static void check_model(const struct outcome *outcome, const struct outcome *expected)
{
    LEAT_ASSERT(fuzz_begins(&outcome->out, &expected->out));
    LEAT_ASSERT(!expected->failed || outcome->failed);
    if (expected->is_exact) {
        LEAT_ASSERT(!outcome->failed && outcome->out.len == expected->out.len);
        LEAT_ASSERT(outcome->frames == expected->frames);
        LEAT_ASSERT(outcome->heartbeats == expected->heartbeats);
    }
}

static void check_equal(const struct outcome *a, const struct outcome *b)
{
    LEAT_ASSERT(a->failed == b->failed && wire_equal(&a->out, &b->out));
    LEAT_ASSERT(wire_equal(&a->events, &b->events) && wire_equal(&a->told, &b->told));
    LEAT_ASSERT(a->frames == b->frames && a->heartbeats == b->heartbeats);
}

/* Runs all cuts; *OUT is what all have in common. */
static void run_all(const struct setup *setup, bool trace, uint8_t chosen, struct outcome *out)
{
    struct outcome other;

    run(setup, trace, WIRE_WHOLE, out);
    for (int i = 1; i < FUZZ_CUTS; i++) {
        run(setup, trace, fuzz_cut(i, chosen), &other);
        check_equal(out, &other);
        outcome_free(&other);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_reader reader;
    struct outcome expected, quiet, traced;
    struct setup setup;

    leat_reader_init(&reader, data, size);
    setup.source_max = leat_reader_u16(&reader);
    setup.target_max = leat_reader_u16(&reader);
    uint8_t chosen = leat_reader_u8(&reader);
    setup.in = leat_reader_bytes(&reader, leat_reader_left(&reader));
    if (setup.target_max > 0 && setup.target_max <= LEAT_AMQP_FRAME_OVERHEAD)
        setup.target_max += LEAT_AMQP_FRAME_OVERHEAD;
    model(&setup, &expected);
    run_all(&setup, false, chosen, &quiet);
    run_all(&setup, true, chosen, &traced);
    check_model(&quiet, &expected);
    check_model(&traced, &expected);
    /* Tracing changes nothing, but holds the number of a method until it is whole. */
    LEAT_ASSERT(quiet.failed == traced.failed && wire_equal(&quiet.events, &traced.events));
    LEAT_ASSERT(fuzz_begins(&quiet.out, &traced.out));
    LEAT_ASSERT(!quiet.failed || quiet.out.len == traced.out.len);
    LEAT_ASSERT(quiet.told.len == 0);
    outcome_free(&expected);
    outcome_free(&quiet);
    outcome_free(&traced);
    return 0;
}
