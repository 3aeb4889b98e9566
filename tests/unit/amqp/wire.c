/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

void wire_free(struct wire *wire)
{
    free(wire->buf);
    *wire = (struct wire){0};
}

void wire_add(struct wire *wire, const void *bytes, size_t len)
{
    if (len > wire->cap - wire->len) {
        wire->cap = 2 * wire->cap + len;
        wire->buf = realloc(wire->buf, wire->cap);
        assert_non_null(wire->buf);
    }
    if (len > 0)
        memcpy(wire->buf + wire->len, bytes, len);
    wire->len += len;
}

void wire_u8(struct wire *wire, unsigned value)
{
    uint8_t byte = (uint8_t)value;

    wire_add(wire, &byte, 1);
}

void wire_u16(struct wire *wire, unsigned value)
{
    wire_u8(wire, value >> 8);
    wire_u8(wire, value);
}

void wire_u32(struct wire *wire, uint32_t value)
{
    wire_u16(wire, value >> 16);
    wire_u16(wire, value & 0xFFFF);
}

void wire_str8(struct wire *wire, const char *text)
{
    wire_u8(wire, (unsigned)strlen(text));
    wire_add(wire, text, strlen(text));
}

void wire_str32(struct wire *wire, const void *bytes, size_t len)
{
    wire_u32(wire, (uint32_t)len);
    wire_add(wire, bytes, len);
}

void wire_text(struct wire *wire, const char *key, const char *value)
{
    wire_str8(wire, key);
    wire_u8(wire, 'S');
    wire_str32(wire, value, strlen(value));
}

void wire_field(struct wire *wire, const char *key, char type, const void *value, size_t len)
{
    wire_str8(wire, key);
    wire_u8(wire, (unsigned char)type);
    wire_add(wire, value, len);
}

void wire_frame(struct wire *wire, unsigned type, unsigned channel, const void *payload, size_t len)
{
    wire_u8(wire, type);
    wire_u16(wire, channel);
    wire_str32(wire, payload, len);
    wire_u8(wire, 0xCE);
}

void wire_method(struct wire *wire, unsigned channel, uint32_t method, const struct wire *arguments)
{
    struct wire payload = {0};

    wire_u32(&payload, method);
    if (arguments != NULL)
        wire_add(&payload, arguments->buf, arguments->len);
    wire_frame(wire, 1, channel, payload.buf, payload.len);
    wire_free(&payload);
}

void wire_add_close(struct wire *wire, unsigned code, const char *text)
{
    struct wire arguments = {0};

    wire_u16(&arguments, code);
    wire_str8(&arguments, text);
    wire_u32(&arguments, 0);
    wire_method(wire, 0, 10u << 16 | 50, &arguments);
    wire_free(&arguments);
}

struct leat_str wire_str(const struct wire *wire)
{
    return (struct leat_str){(const char *)wire->buf, wire->len};
}

bool wire_equal(const struct wire *a, const struct wire *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->buf, b->buf, a->len) == 0);
}

bool wire_has(const struct wire *wire, const char *text)
{
    return memmem(wire->buf, wire->len, text, strlen(text)) != NULL;
}

uint32_t wire_random(uint32_t *seed, uint32_t limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % limit;
}

size_t wire_next_cut(int cut, size_t left, uint32_t *seed)
{
    if (cut == WIRE_WHOLE)
        return left;
    if (cut == WIRE_BYTES)
        return 1;
    uint32_t most = wire_random(seed, 4) == 0 ? 3000 : 12;
    size_t n = 1 + wire_random(seed, most);
    return n < left ? n : left;
}
