/*
 * frame.h - AMQP 0-9-1 frames (specification 4.2.3): constants, heads, and frames of our own
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_AMQP_FRAME_H
#define LEAT_AMQP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

struct leat_writer;

enum leat_amqp_frame_type {
    LEAT_AMQP_FRAME_METHOD = 1,
    LEAT_AMQP_FRAME_HEADER = 2,
    LEAT_AMQP_FRAME_BODY = 3,
    LEAT_AMQP_FRAME_HEARTBEAT = 8,
};

#define LEAT_AMQP_FRAME_END 0xCEu
#define LEAT_AMQP_FRAME_HEAD_SIZE 7u /* type, channel, size */
#define LEAT_AMQP_FRAME_OVERHEAD 8u  /* the head and the end octet */
#define LEAT_AMQP_FRAME_MAX_MIN 4096u

/* The first eight bytes of a connection: "AMQP" 0 0 9 1 (specification 4.2.2). */
#define LEAT_AMQP_PROTOCOL_SIZE 8u
extern const uint8_t leat_amqp_protocol[LEAT_AMQP_PROTOCOL_SIZE];

enum leat_amqp_reply {
    LEAT_AMQP_REPLY_SUCCESS = 200,
    LEAT_AMQP_CONNECTION_FORCED = 320,
    LEAT_AMQP_ACCESS_REFUSED = 403,
    LEAT_AMQP_FRAME_ERROR = 501,
    LEAT_AMQP_SYNTAX_ERROR = 502,
    LEAT_AMQP_COMMAND_INVALID = 503,
    LEAT_AMQP_UNEXPECTED_FRAME = 505,
    LEAT_AMQP_NOT_ALLOWED = 530,
    LEAT_AMQP_NOT_IMPLEMENTED = 540,
    LEAT_AMQP_INTERNAL_ERROR = 541,
};

/* Returns "NOT_ALLOWED" for 530 and so on; "ERROR" for a code that is none of the above. */
const char *leat_amqp_reply_name(uint16_t code);

/*
 * Fills ERR with the text of a Close with CODE as RabbitMQ words it, the code's name before
 * the formatted sentence: "FRAME_ERROR - ...". Clients match on the name.
 */
void leat_amqp_reply_error(struct leat_error *err, uint16_t code, const char *format, ...)
    LEAT_PRINTF(3, 4);

struct leat_amqp_frame_head {
    uint8_t type;
    uint16_t channel;
    uint32_t size; /* of the payload */
};

/* Inline because the relay does it for every frame. */
static inline struct leat_amqp_frame_head
leat_amqp_frame_head_parse(const uint8_t bytes[LEAT_AMQP_FRAME_HEAD_SIZE])
{
    return (struct leat_amqp_frame_head){
        .type = bytes[0],
        .channel = (uint16_t)(bytes[1] << 8 | bytes[2]),
        .size = (uint32_t)bytes[3] << 24 | (uint32_t)bytes[4] << 16 | (uint32_t)bytes[5] << 8 |
                (uint32_t)bytes[6],
    };
}

void leat_amqp_frame_head_write(struct leat_writer *writer,
                                const struct leat_amqp_frame_head *head);

/* A Close, Close-Ok or heartbeat frame on channel 0; at most LEAT_AMQP_CLOSE_MAX bytes. TEXT
 * is cut at 255 bytes. */
#define LEAT_AMQP_CLOSE_MAX (LEAT_AMQP_FRAME_OVERHEAD + 4 + 2 + 256 + 4)
void leat_amqp_write_close(struct leat_writer *writer, uint16_t code, struct leat_str text);
void leat_amqp_write_close_ok(struct leat_writer *writer);
void leat_amqp_write_heartbeat(struct leat_writer *writer);

/* An Open-Ok, of LEAT_AMQP_OPEN_OK_SIZE bytes. */
#define LEAT_AMQP_OPEN_OK_SIZE (LEAT_AMQP_FRAME_OVERHEAD + 4 + 1)
void leat_amqp_write_open_ok(struct leat_writer *writer);

/* What a Connection.Close says (specification 1.4.2.9). TEXT is borrowed from the payload. */
struct leat_amqp_close {
    uint16_t code;
    struct leat_str text;
};

/* Reads the arguments of a Close, what follows class and method. False if malformed. */
bool leat_amqp_close_parse(struct leat_str arguments, struct leat_amqp_close *out);

/*
 * A method frame on channel 0: begin writes the head and METHOD (amqp/method.h) and returns
 * the place that end, which completes the frame, is given.
 */
size_t leat_amqp_begin_method(struct leat_writer *writer, uint32_t method);
void leat_amqp_end_method(struct leat_writer *writer, size_t place);

#endif
