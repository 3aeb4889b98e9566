/*
 * writer.h - writing numbers and strings into a buffer of the caller's
 *
 * The error is sticky: once something did not fit nothing more is written, so an encoder
 * is a straight list of writes and one check of `failed` at its end. Numbers are
 * big-endian.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BUF_WRITER_H
#define LEAT_BUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/str.h>

struct leat_writer {
    uint8_t *buf;
    size_t cap;
    size_t len;
    bool failed;
};

/* Writes to the CAP bytes at BUF, which stay the caller's. */
void leat_writer_init(struct leat_writer *writer, void *buf, size_t cap);

void leat_writer_u8(struct leat_writer *writer, uint8_t value);
void leat_writer_u16(struct leat_writer *writer, uint16_t value);
void leat_writer_u32(struct leat_writer *writer, uint32_t value);
void leat_writer_bytes(struct leat_writer *writer, struct leat_str bytes);

/* Writes BYTES behind their length in one octet; fails if there are more than 255. */
void leat_writer_str8(struct leat_writer *writer, struct leat_str bytes);

/* Writes BYTES behind their length in four octets. */
void leat_writer_str32(struct leat_writer *writer, struct leat_str bytes);

/*
 * Writes a length of four octets that is not known yet and returns its place;
 * leat_writer_end32() fills it with the number of bytes written since. The same in two octets
 * by the other pair, which fails if there are more than 65535.
 */
size_t leat_writer_begin32(struct leat_writer *writer);
void leat_writer_end32(struct leat_writer *writer, size_t place);
size_t leat_writer_begin16(struct leat_writer *writer);
void leat_writer_end16(struct leat_writer *writer, size_t place);

#endif
