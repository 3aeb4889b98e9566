/*
 * reader.h - reading numbers and strings from a span of bytes
 *
 * The error is sticky: after the first read past the end every read yields zero or empty,
 * so a decoder is a straight list of reads and one check of `failed` at its end.
 * All numbers are big-endian.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BUF_READER_H
#define LEAT_BUF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/str.h>

struct leat_reader {
    const uint8_t *pos;
    const uint8_t *end;
    bool failed;
};

/* Reads from LEN bytes at DATA, which must outlive the reader and what is read from it. */
void leat_reader_init(struct leat_reader *reader, const void *data, size_t len);

/* How many bytes are left to read; 0 once it has failed. */
size_t leat_reader_left(const struct leat_reader *reader);

uint8_t leat_reader_u8(struct leat_reader *reader);
uint16_t leat_reader_u16(struct leat_reader *reader);
uint32_t leat_reader_u32(struct leat_reader *reader);

/* Returns the next LEN bytes, borrowed from the span. */
struct leat_str leat_reader_bytes(struct leat_reader *reader, size_t len);

/* Returns the bytes behind a length of one octet (AMQP 0-9-1 4.2.5.3, short string). */
struct leat_str leat_reader_str8(struct leat_reader *reader);

/* Returns the bytes behind a length of four octets (long string, and a table's contents). */
struct leat_str leat_reader_str32(struct leat_reader *reader);

#endif
