/*
 * wire.h - what the tests of amqp/ build their input with: bytes, frames, cuts
 *
 * It shares no code with the modules that are tested.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_TEST_AMQP_WIRE_H
#define LEAT_TEST_AMQP_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <leat/str.h>

/* Bytes that grow. All zero is an empty one. */
struct wire {
    uint8_t *buf;
    size_t len;
    size_t cap;
};

void wire_free(struct wire *wire);
void wire_add(struct wire *wire, const void *bytes, size_t len);
void wire_u8(struct wire *wire, unsigned value);
void wire_u16(struct wire *wire, unsigned value);
void wire_u32(struct wire *wire, uint32_t value);
void wire_str8(struct wire *wire, const char *text);
void wire_str32(struct wire *wire, const void *bytes, size_t len);

/* A table's entry with a long string. */
void wire_text(struct wire *wire, const char *key, const char *value);
/* A table's entry with another value, as it is encoded. */
void wire_field(struct wire *wire, const char *key, char type, const void *value, size_t len);

void wire_frame(struct wire *wire, unsigned type, unsigned channel, const void *payload,
                size_t len);
/* A method frame on CHANNEL; ARGUMENTS may be NULL. */
void wire_method(struct wire *wire, unsigned channel, uint32_t method,
                 const struct wire *arguments);
/* A connection.close that blames no method. */
void wire_add_close(struct wire *wire, unsigned code, const char *text);

struct leat_str wire_str(const struct wire *wire);
bool wire_equal(const struct wire *a, const struct wire *b);
/* Whether WIRE has TEXT in it. */
bool wire_has(const struct wire *wire, const char *text);

/* A number from 0 to LIMIT - 1. */
uint32_t wire_random(uint32_t *seed, uint32_t limit);

enum wire_cut {
    WIRE_WHOLE,
    WIRE_BYTES,
    WIRE_RANDOM, /* and all larger values, which are other seeds */
    WIRE_CUTS = 24,
};

/* How many of LEFT bytes come next when the input is cut in the way of CUT. */
size_t wire_next_cut(int cut, size_t left, uint32_t *seed);

#endif
