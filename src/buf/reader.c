/* SPDX-License-Identifier: Apache-2.0 */
#include "buf/reader.h"

void leat_reader_init(struct leat_reader *reader, const void *data, size_t len)
{
    const uint8_t *pos = data;

    /* An empty span may have no address, to which nothing can be added. */
    *reader = (struct leat_reader){.pos = pos, .end = len > 0 ? pos + len : pos};
}

size_t leat_reader_left(const struct leat_reader *reader)
{
    return (size_t)(reader->end - reader->pos);
}

/* Returns the next LEN bytes, more than 0, and passes them; NULL if there are fewer. */
static const uint8_t *take(struct leat_reader *reader, size_t len)
{
    const uint8_t *taken = reader->pos;

    if (len > leat_reader_left(reader)) {
        reader->failed = true;
        reader->pos = reader->end; /* so that every later read fails too */
        return NULL;
    }
    reader->pos += len;
    return taken;
}

static uint64_t take_number(struct leat_reader *reader, size_t len)
{
    const uint8_t *bytes = take(reader, len);
    uint64_t value = 0;

    if (bytes == NULL)
        return 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | bytes[i];
    return value;
}

uint8_t leat_reader_u8(struct leat_reader *reader)
{
    return (uint8_t)take_number(reader, 1);
}

uint16_t leat_reader_u16(struct leat_reader *reader)
{
    return (uint16_t)take_number(reader, 2);
}

uint32_t leat_reader_u32(struct leat_reader *reader)
{
    return (uint32_t)take_number(reader, 4);
}

struct leat_str leat_reader_bytes(struct leat_reader *reader, size_t len)
{
    const uint8_t *bytes = len > 0 ? take(reader, len) : reader->pos;

    if (bytes == NULL)
        return (struct leat_str){"", 0};
    return (struct leat_str){(const char *)bytes, len};
}

struct leat_str leat_reader_str8(struct leat_reader *reader)
{
    return leat_reader_bytes(reader, leat_reader_u8(reader));
}

struct leat_str leat_reader_str32(struct leat_reader *reader)
{
    return leat_reader_bytes(reader, leat_reader_u32(reader));
}
