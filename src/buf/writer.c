/* SPDX-License-Identifier: Apache-2.0 */
#include "buf/writer.h"

#include <string.h>

#include "base/assert.h"

void leat_writer_init(struct leat_writer *writer, void *buf, size_t cap)
{
    *writer = (struct leat_writer){.buf = buf, .cap = cap};
}

/* Returns the place of the next LEN bytes, which count as written; NULL if there is none. */
static uint8_t *claim(struct leat_writer *writer, size_t len)
{
    uint8_t *place;

    if (writer->failed || len > writer->cap - writer->len) {
        writer->failed = true;
        return NULL;
    }
    place = writer->buf + writer->len;
    writer->len += len;
    return place;
}

static void store(uint8_t *place, uint64_t value, size_t len)
{
    for (size_t i = len; i > 0; i--) {
        place[i - 1] = (uint8_t)(value & 0xff);
        value >>= 8;
    }
}

static void put_number(struct leat_writer *writer, uint64_t value, size_t len)
{
    uint8_t *place = claim(writer, len);

    if (place != NULL)
        store(place, value, len);
}

void leat_writer_u8(struct leat_writer *writer, uint8_t value)
{
    put_number(writer, value, 1);
}

void leat_writer_u16(struct leat_writer *writer, uint16_t value)
{
    put_number(writer, value, 2);
}

void leat_writer_u32(struct leat_writer *writer, uint32_t value)
{
    put_number(writer, value, 4);
}

void leat_writer_bytes(struct leat_writer *writer, struct leat_str bytes)
{
    uint8_t *place;

    if (bytes.len == 0)
        return;
    place = claim(writer, bytes.len);
    if (place != NULL)
        memcpy(place, bytes.ptr, bytes.len);
}

void leat_writer_str8(struct leat_writer *writer, struct leat_str bytes)
{
    if (bytes.len > UINT8_MAX)
        writer->failed = true;
    leat_writer_u8(writer, (uint8_t)bytes.len);
    leat_writer_bytes(writer, bytes);
}

void leat_writer_str32(struct leat_writer *writer, struct leat_str bytes)
{
    if (bytes.len > UINT32_MAX)
        writer->failed = true;
    leat_writer_u32(writer, (uint32_t)bytes.len);
    leat_writer_bytes(writer, bytes);
}

/* Fills the SIZE octets at PLACE, which were written there, with how much came after them. */
static void end_length(struct leat_writer *writer, size_t place, size_t size, uint64_t max)
{
    size_t len;

    if (writer->failed)
        return;
    LEAT_ASSERT(writer->len >= size && place <= writer->len - size);
    len = writer->len - place - size;
    if (len > max)
        writer->failed = true;
    else
        store(writer->buf + place, len, size);
}

size_t leat_writer_begin32(struct leat_writer *writer)
{
    size_t place = writer->len;

    leat_writer_u32(writer, 0);
    return place;
}

void leat_writer_end32(struct leat_writer *writer, size_t place)
{
    end_length(writer, place, 4, UINT32_MAX);
}

size_t leat_writer_begin16(struct leat_writer *writer)
{
    size_t place = writer->len;

    leat_writer_u16(writer, 0);
    return place;
}

void leat_writer_end16(struct leat_writer *writer, size_t place)
{
    end_length(writer, place, 2, UINT16_MAX);
}
