/*
 * collect.h - putting together one small frame from pieces, bounded
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_COLLECT_H
#define LEAT_AMQP_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>

#include "amqp/frame.h"

/* All zero, but for `max`, is a fresh one. Holds memory only while a frame is in pieces. */
struct leat_amqp_collect {
    uint32_t max; /* the largest frame, head and end octet included */
    uint8_t head[LEAT_AMQP_FRAME_HEAD_SIZE];
    uint8_t *frame; /* allocated when the head is known and the frame is cut */
    size_t len;     /* bytes held, in head or frame */
    size_t need;    /* of the whole frame; 0 while the head is incomplete */
};

/*
 * Takes bytes until a frame is whole. LEAT_OK: *OUT_HEAD and *OUT_PAYLOAD describe it (the
 * payload is valid until the next call or as long as DATA is); LEAT_EAGAIN: all taken, more
 * needed; LEAT_ELIMIT: it is larger than `max` (*OUT_HEAD is set); LEAT_EPROTOCOL: its
 * type is unknown or its end octet is wrong (*OUT_HEAD is set); LEAT_ENOMEM. *OUT_TAKEN counts the
 * bytes used of DATA.
 */
LEAT_MUST_CHECK enum leat_status leat_amqp_collect_feed(struct leat_amqp_collect *collect,
                                                        const uint8_t *data, size_t len,
                                                        size_t *out_taken,
                                                        struct leat_amqp_frame_head *out_head,
                                                        const uint8_t **out_payload);

/* Frees what is held, overwriting it first; usable again. */
void leat_amqp_collect_clear(struct leat_amqp_collect *collect);

#endif
