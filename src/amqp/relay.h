/*
 * relay.h - one direction of an open connection, from one leg to the other; a pure machine
 *
 * It walks over the frames in a span of bytes and answers with operations: pass so many
 * bytes on, drop so many, put these of its own, here is a Close. Bulk bytes are never
 * copied. It judges only what leat relies on: type, size, end octet, heartbeats on channel
 * 0, Close and Close-Ok; all else is the broker's to judge.
 *
 * Body frames larger than the receiver's frame_max are split; a method or header frame that
 * is too large is an error, since nobody may split it (specification 4.2.6).
 *
 * Ownership: embedded in the session, no memory of its own.
 * Threads: none of its own. No I/O.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_RELAY_H
#define LEAT_AMQP_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>

#include "amqp/frame.h"

enum leat_amqp_op_kind {
    LEAT_AMQP_OP_MORE,     /* all input is taken */
    LEAT_AMQP_OP_PASS,     /* send the next `taken` bytes of the input on */
    LEAT_AMQP_OP_DROP,     /* the next `taken` bytes of the input go nowhere, or are held */
    LEAT_AMQP_OP_PUT,      /* send `put_len` bytes at `put`; valid until the next call */
    LEAT_AMQP_OP_FRAME,    /* tracing: the frame in relay->head begins here */
    LEAT_AMQP_OP_CLOSE,    /* a Close came: relay->close, its frame in `put`, not passed on */
    LEAT_AMQP_OP_CLOSE_OK, /* a Close-Ok came, its frame in `put`, not passed on */
    LEAT_AMQP_OP_ERROR,    /* the frame can't be passed on: relay->error_code, relay->error */
};

struct leat_amqp_op {
    enum leat_amqp_op_kind kind;
    size_t taken; /* bytes of the input that this operation uses up */
    const uint8_t *put;
    size_t put_len;
};

struct leat_amqp_relay {
    uint32_t source_max; /* the largest frame the sender may send, as negotiated (what is above it
                            by no more than a frame's overhead is let through); 0 is no limit */
    uint32_t target_max; /* the largest the receiver takes; 0 is no limit */
    bool trace;          /* give an OP_FRAME for every frame */

    uint64_t frames;     /* passed on or held, heartbeats not counted */
    uint64_t heartbeats; /* dropped */

    struct leat_amqp_frame_head head; /* of the frame at hand */
    uint32_t method;                  /* of a method frame with OP_FRAME: see amqp/method.h */
    struct leat_amqp_close close;
    uint16_t error_code;
    struct leat_error error; /* its text is that of the Close: "FRAME_ERROR - ..." */

    int state;          /* enum in relay.c */
    uint32_t plain_max; /* the largest payload that both sides take */
    size_t held_len;
    uint8_t held[LEAT_AMQP_CLOSE_MAX]; /* a head that is cut, or a frame that is collected */
    uint8_t put[16];
    size_t left;       /* payload bytes still to come of the frame at hand */
    size_t piece_left; /* likewise of the piece that goes to the receiver */
    bool between_frames;
};

/* The MAXima as above; TARGET_MAX is 0 or more than LEAT_AMQP_FRAME_OVERHEAD. */
void leat_amqp_relay_init(struct leat_amqp_relay *relay, uint32_t source_max, uint32_t target_max);

/*
 * Looks at the LEN bytes at DATA and returns the next operation in *OP. The caller goes on
 * with DATA advanced by OP->taken until OP_MORE, also when nothing is left of it: what was
 * held may be due to be put. After OP_ERROR it must not be called again.
 */
void leat_amqp_relay_next(struct leat_amqp_relay *relay, const uint8_t *data, size_t len,
                          struct leat_amqp_op *op);

/* Whether what was passed on so far ends with a whole frame, so that a frame of leat's own
 * may be sent to the receiver. */
bool leat_amqp_relay_is_between_frames(const struct leat_amqp_relay *relay);

#endif
