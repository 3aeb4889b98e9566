/* SPDX-License-Identifier: Apache-2.0 */
#include "amqp/relay.h"

#include <inttypes.h>
#include <string.h>

#include "amqp/method.h"
#include "base/assert.h"
#include "buf/reader.h"
#include "buf/writer.h"

/*
 *  BETWEEN --plain frame--> PAYLOAD --end octet--> BETWEEN
 *  BETWEEN --body frame too large--> SPLIT --last piece begun--> PAYLOAD
 *  BETWEEN --Close, Close-Ok--> COLLECT --end octet--> BETWEEN
 *  BETWEEN --heartbeat--> BETWEEN
 *
 * With `trace` BETWEEN goes to TOLD first. Every state goes to FAILED.
 */
enum state {
    BETWEEN, /* a frame begins here; `held` may have the beginning of its head */
    TOLD,    /* likewise, and OP_FRAME was given for it */
    PAYLOAD, /* `left` bytes and the end octet are to be passed on */
    SPLIT,   /* `piece_left` bytes are to be passed on, then another head put */
    COLLECT, /* a Close or Close-Ok goes to `held` */
    FAILED,
};

#define METHOD_ID_SIZE 4u

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The largest payload of a frame of at most MAX bytes. */
static uint32_t payload_max(uint32_t max)
{
    if (max == 0)
        return UINT32_MAX;
    return max > LEAT_AMQP_FRAME_OVERHEAD ? max - LEAT_AMQP_FRAME_OVERHEAD : 0;
}

/* Some clients take frame_max for the largest payload, and RabbitMQ lets them. */
static uint32_t with_slack(uint32_t source_max)
{
    bool is_none = source_max == 0 || source_max > UINT32_MAX - LEAT_AMQP_FRAME_OVERHEAD;

    return is_none ? 0 : source_max + LEAT_AMQP_FRAME_OVERHEAD;
}

void leat_amqp_relay_init(struct leat_amqp_relay *relay, uint32_t source_max, uint32_t target_max)
{
    LEAT_ASSERT(target_max == 0 || target_max > LEAT_AMQP_FRAME_OVERHEAD);
    *relay = (struct leat_amqp_relay){
        .source_max = source_max,
        .target_max = target_max,
        .plain_max = (uint32_t)least(payload_max(with_slack(source_max)), payload_max(target_max)),
        .state = BETWEEN,
        .between_frames = true,
    };
}

bool leat_amqp_relay_is_between_frames(const struct leat_amqp_relay *relay)
{
    return relay->between_frames;
}

#define FAIL(relay, op, code, ...)                                                                 \
    ((relay)->error_code = (code), leat_amqp_reply_error(&(relay)->error, (code), __VA_ARGS__),    \
     (relay)->state = FAILED, (op)->kind = LEAT_AMQP_OP_ERROR)

static void fail_end(struct leat_amqp_relay *relay, uint8_t octet, struct leat_amqp_op *op)
{
    FAIL(relay, op, LEAT_AMQP_FRAME_ERROR,
         "frame of type %u on channel %u with %" PRIu32 " bytes ends with octet 0x%02X, not 0x%02X",
         relay->head.type, relay->head.channel, relay->head.size, octet, LEAT_AMQP_FRAME_END);
}

/* Whether the LEN bytes at DATA begin with a frame that needs no closer look, which is then
 * the frame at hand. Channel 0 has the Closes; a trace wants to see every frame. */
static bool begins_plain(struct leat_amqp_relay *relay, const uint8_t *data, size_t len)
{
    if (len < LEAT_AMQP_FRAME_HEAD_SIZE || relay->trace)
        return false;
    struct leat_amqp_frame_head head = leat_amqp_frame_head_parse(data);
    if (head.type < LEAT_AMQP_FRAME_METHOD || head.type > LEAT_AMQP_FRAME_BODY ||
        (head.type == LEAT_AMQP_FRAME_METHOD && head.channel == 0) || head.size > relay->plain_max)
        return false;
    relay->head = head;
    relay->left = head.size;
    return true;
}

/*
 * The hot path: walks over the rest of the frame at hand and all plain frames that follow
 * and returns how many bytes that is. It stops before a frame, or an end octet, that needs a
 * closer look.
 */
static size_t walk(struct leat_amqp_relay *relay, const uint8_t *data, size_t len)
{
    size_t pos = 0;

    for (;;) {
        if (relay->state == PAYLOAD) {
            size_t n = least(relay->left, len - pos);

            relay->left -= n;
            pos += n;
            if (pos == len || data[pos] != LEAT_AMQP_FRAME_END)
                break;
            pos++;
            relay->frames++;
            relay->state = BETWEEN;
        }
        if (!begins_plain(relay, data + pos, len - pos))
            break;
        relay->state = PAYLOAD;
        pos += LEAT_AMQP_FRAME_HEAD_SIZE;
    }
    relay->between_frames = relay->state == BETWEEN;
    return pos;
}

/* Holds bytes of the LEN at DATA until there are WANT. */
static void hold(struct leat_amqp_relay *relay, const uint8_t *data, size_t len, size_t want,
                 struct leat_amqp_op *op)
{
    size_t n = least(want - relay->held_len, len);

    if (n == 0)
        return; /* OP_MORE */
    memcpy(relay->held + relay->held_len, data, n);
    relay->held_len += n;
    op->kind = LEAT_AMQP_OP_DROP;
    op->taken = n;
}

static bool is_method(const struct leat_amqp_relay *relay)
{
    return relay->head.type == LEAT_AMQP_FRAME_METHOD;
}

/* Judges what the head says. False if the frame can't be passed on. */
static bool judge_head(struct leat_amqp_relay *relay, struct leat_amqp_op *op)
{
    const struct leat_amqp_frame_head *head = &relay->head;
    uint64_t whole = (uint64_t)head->size + LEAT_AMQP_FRAME_OVERHEAD;

    if (head->type == LEAT_AMQP_FRAME_HEARTBEAT) {
        if (head->channel != 0)
            FAIL(relay, op, LEAT_AMQP_UNEXPECTED_FRAME, "heartbeat on channel %u, not 0",
                 head->channel);
        else if (head->size != 0)
            FAIL(relay, op, LEAT_AMQP_FRAME_ERROR, "heartbeat with %" PRIu32 " bytes, not 0",
                 head->size);
    } else if (head->type < LEAT_AMQP_FRAME_METHOD || head->type > LEAT_AMQP_FRAME_BODY) {
        FAIL(relay, op, LEAT_AMQP_FRAME_ERROR,
             "frame of unknown type %u on channel %u with %" PRIu32 " bytes", head->type,
             head->channel, head->size);
    } else if (relay->source_max != 0 && whole > with_slack(relay->source_max)) {
        FAIL(relay, op, LEAT_AMQP_FRAME_ERROR,
             "frame of type %u on channel %u is %" PRIu64 " bytes long, the negotiated frame_max "
             "is %" PRIu32,
             head->type, head->channel, whole, relay->source_max);
    } else if (head->type != LEAT_AMQP_FRAME_BODY && relay->target_max != 0 &&
               whole > relay->target_max) {
        FAIL(relay, op, LEAT_AMQP_FRAME_ERROR,
             "%s frame on channel %u is %" PRIu64 " bytes long, the receiver's frame_max is "
             "%" PRIu32 " and it can't be split",
             is_method(relay) ? "method" : "header", head->channel, whole, relay->target_max);
    }
    return relay->state != FAILED;
}

/* How many bytes of a frame have to be seen together before anything is done with it. */
static size_t wanted(const struct leat_amqp_relay *relay)
{
    if (relay->head.type == LEAT_AMQP_FRAME_HEARTBEAT)
        return LEAT_AMQP_FRAME_OVERHEAD;
    if (is_method(relay) && relay->head.size >= METHOD_ID_SIZE &&
        (relay->head.channel == 0 || relay->trace))
        return LEAT_AMQP_FRAME_HEAD_SIZE + METHOD_ID_SIZE;
    return LEAT_AMQP_FRAME_HEAD_SIZE;
}

static uint32_t method_id(const uint8_t *frame)
{
    const uint8_t *id = frame + LEAT_AMQP_FRAME_HEAD_SIZE;

    return LEAT_AMQP_METHOD(id[0] << 8 | id[1], id[2] << 8 | id[3]);
}

/* Puts the head of the next piece of the body frame at hand, the end octet of the last piece
 * before it if there was one. */
static void put_piece(struct leat_amqp_relay *relay, bool is_first, struct leat_amqp_op *op)
{
    struct leat_writer writer;
    struct leat_amqp_frame_head head = relay->head;

    relay->piece_left = least(relay->left, payload_max(relay->target_max));
    head.size = (uint32_t)relay->piece_left;
    leat_writer_init(&writer, relay->put, sizeof(relay->put));
    if (!is_first)
        leat_writer_u8(&writer, LEAT_AMQP_FRAME_END);
    leat_amqp_frame_head_write(&writer, &head);
    /* The last piece ends where the frame does. */
    relay->state = relay->piece_left == relay->left ? PAYLOAD : SPLIT;
    relay->between_frames = false;
    op->kind = LEAT_AMQP_OP_PUT;
    op->put = relay->put;
    op->put_len = writer.len;
}

static void split(struct leat_amqp_relay *relay, size_t len, struct leat_amqp_op *op)
{
    size_t n = least(relay->piece_left, len);

    if (relay->piece_left == 0) {
        put_piece(relay, false, op);
        return;
    }
    if (n == 0)
        return; /* OP_MORE */
    relay->piece_left -= n;
    relay->left -= n;
    op->kind = LEAT_AMQP_OP_PASS;
    op->taken = n;
}

/* Passes on the frame at hand, whose beginning may be held. */
static void pass(struct leat_amqp_relay *relay, const uint8_t *data, size_t len,
                 struct leat_amqp_op *op)
{
    relay->state = PAYLOAD;
    relay->left = relay->head.size;
    if (relay->held_len == 0) {
        op->kind = LEAT_AMQP_OP_PASS;
        op->taken = LEAT_AMQP_FRAME_HEAD_SIZE +
                    walk(relay, data + LEAT_AMQP_FRAME_HEAD_SIZE, len - LEAT_AMQP_FRAME_HEAD_SIZE);
        return;
    }
    op->kind = LEAT_AMQP_OP_PUT;
    op->put = relay->held;
    op->put_len = relay->held_len;
    relay->left -= relay->held_len - LEAT_AMQP_FRAME_HEAD_SIZE;
    relay->held_len = 0;
    relay->between_frames = false;
}

static void drop_heartbeat(struct leat_amqp_relay *relay, uint8_t end, struct leat_amqp_op *op)
{
    if (end != LEAT_AMQP_FRAME_END) {
        fail_end(relay, end, op);
        return;
    }
    op->kind = LEAT_AMQP_OP_DROP;
    op->taken = relay->held_len > 0 ? 0 : LEAT_AMQP_FRAME_OVERHEAD;
    relay->held_len = 0;
    relay->heartbeats++;
    relay->state = BETWEEN;
}

/* Goes on to collect a Close or Close-Ok; gives it when it is whole. */
static void collect(struct leat_amqp_relay *relay, const uint8_t *data, size_t len,
                    struct leat_amqp_op *op)
{
    size_t want = relay->head.size + LEAT_AMQP_FRAME_OVERHEAD;
    const uint8_t *arguments = relay->held + LEAT_AMQP_FRAME_HEAD_SIZE + METHOD_ID_SIZE;
    size_t arguments_len = relay->head.size - METHOD_ID_SIZE;
    bool is_close = method_id(relay->held) == LEAT_AMQP_CONNECTION_CLOSE;

    hold(relay, data, len, want, op);
    if (relay->held_len < want)
        return;
    uint8_t end = relay->held[want - 1];
    struct leat_str rest = {(const char *)arguments, arguments_len};
    if (end != LEAT_AMQP_FRAME_END) {
        fail_end(relay, end, op);
    } else if (is_close ? !leat_amqp_close_parse(rest, &relay->close) : arguments_len > 0) {
        FAIL(relay, op, LEAT_AMQP_SYNTAX_ERROR, "malformed %s with %" PRIu32 " bytes",
             is_close ? "connection.close" : "connection.close-ok", relay->head.size);
    } else {
        op->kind = is_close ? LEAT_AMQP_OP_CLOSE : LEAT_AMQP_OP_CLOSE_OK;
        op->put = relay->held;
        op->put_len = want;
        relay->held_len = 0;
        relay->frames++;
        relay->state = BETWEEN;
    }
}

static void begin_collect(struct leat_amqp_relay *relay, const uint8_t *data, size_t len,
                          struct leat_amqp_op *op)
{
    if (relay->head.size > sizeof(relay->held) - LEAT_AMQP_FRAME_OVERHEAD) {
        FAIL(relay, op, LEAT_AMQP_FRAME_ERROR,
             "%s with %" PRIu32 " bytes, at most %zu are possible",
             leat_amqp_method_name(relay->method), relay->head.size,
             sizeof(relay->held) - LEAT_AMQP_FRAME_OVERHEAD);
        return;
    }
    relay->state = COLLECT;
    if (relay->held_len == 0)
        hold(relay, data, len, LEAT_AMQP_FRAME_HEAD_SIZE + METHOD_ID_SIZE, op);
    else
        collect(relay, data, len, op);
}

/* Does what is due with the frame at hand, of which all bytes that are wanted are at FRAME. */
static void act(struct leat_amqp_relay *relay, const uint8_t *frame, const uint8_t *data,
                size_t len, struct leat_amqp_op *op)
{
    bool is_end = relay->head.channel == 0 && (relay->method == LEAT_AMQP_CONNECTION_CLOSE ||
                                               relay->method == LEAT_AMQP_CONNECTION_CLOSE_OK);

    if (relay->trace && relay->state == BETWEEN) {
        relay->state = TOLD;
        op->kind = LEAT_AMQP_OP_FRAME;
    } else if (relay->head.type == LEAT_AMQP_FRAME_HEARTBEAT) {
        drop_heartbeat(relay, frame[LEAT_AMQP_FRAME_HEAD_SIZE], op);
    } else if (is_end) {
        begin_collect(relay, data, len, op);
    } else if (relay->head.size > relay->plain_max) {
        op->taken = relay->held_len > 0 ? 0 : LEAT_AMQP_FRAME_HEAD_SIZE;
        relay->held_len = 0;
        relay->left = relay->head.size;
        put_piece(relay, true, op);
    } else {
        pass(relay, data, len, op);
    }
}

/* Looks closely at the frame that begins in `held`, or else in the LEN bytes at DATA. */
static void begin(struct leat_amqp_relay *relay, const uint8_t *data, size_t len,
                  struct leat_amqp_op *op)
{
    const uint8_t *frame = relay->held_len > 0 ? relay->held : data;
    size_t have = relay->held_len > 0 ? relay->held_len : len;
    size_t want = LEAT_AMQP_FRAME_HEAD_SIZE;

    if (have >= want) {
        relay->head = leat_amqp_frame_head_parse(frame);
        if (!judge_head(relay, op))
            return;
        want = wanted(relay);
    }
    if (have < want) {
        hold(relay, data, len, want, op);
        return;
    }
    relay->method = want == LEAT_AMQP_FRAME_HEAD_SIZE + METHOD_ID_SIZE ? method_id(frame) : 0;
    act(relay, frame, data, len, op);
}

void leat_amqp_relay_next(struct leat_amqp_relay *relay, const uint8_t *data, size_t len,
                          struct leat_amqp_op *op)
{
    *op = (struct leat_amqp_op){.kind = LEAT_AMQP_OP_MORE};
    switch ((enum state)relay->state) {
    case BETWEEN:
        op->taken = relay->held_len == 0 ? walk(relay, data, len) : 0;
        if (op->taken > 0)
            op->kind = LEAT_AMQP_OP_PASS;
        else
            begin(relay, data, len, op);
        break;
    case TOLD:
        begin(relay, data, len, op);
        break;
    case PAYLOAD:
        op->taken = walk(relay, data, len);
        if (op->taken > 0)
            op->kind = LEAT_AMQP_OP_PASS;
        else if (len > 0)
            fail_end(relay, data[0], op);
        break;
    case SPLIT:
        split(relay, len, op);
        break;
    case COLLECT:
        collect(relay, data, len, op);
        break;
    case FAILED:
        op->kind = LEAT_AMQP_OP_ERROR;
        break;
    }
}
