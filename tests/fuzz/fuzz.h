/*
 * fuzz.h - what the fuzz targets share
 *
 * A target is a file with LLVMFuzzerTestOneInput(), which checks with LEAT_ASSERT what must hold
 * whatever the bytes are. It is linked with libFuzzer (`make fuzz`), and with replay.c, which
 * runs it over its corpus (`make check`); see README.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_FUZZ_H
#define LEAT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>

#include "unit/amqp/wire.h"

/* The target, under the name that libFuzzer calls. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The ways to cut an input into spans: whole, in bytes, and one that an input chooses itself,
 * as a wire_next_cut() has it. */
#define FUZZ_CUTS 3
int fuzz_cut(int index, uint8_t chosen);

/* A copy of the LEN bytes at DATA, with nothing behind them, so that reads past them are seen;
 * to be freed by free(). */
uint8_t *fuzz_copy(const void *data, size_t len);

/* Whether TEXT is one line for a person: not empty, printable ASCII only. */
bool fuzz_is_line(const char *text);

/* Checks that ERR tells of STATUS, which is no success. */
void fuzz_check_error(enum leat_status status, const struct leat_error *err);

/* Whether WHOLE begins with PART. */
bool fuzz_begins(const struct wire *whole, const struct wire *part);

/* Checks that the LEN bytes at DATA are whole frames; returns the last one's payload. */
struct leat_str fuzz_check_frames(const uint8_t *data, size_t len);

#endif
