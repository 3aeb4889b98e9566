/*
 * parse.h - numbers, durations and sizes as people write them
 *
 * Strict: the whole text must be the value; no sign, no surrounding space, no overflow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_PARSE_H
#define LEAT_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/str.h>

/* Parses a decimal number. False, leaving *OUT alone, if TEXT is none or exceeds 64 bits. */
bool leat_parse_u64(struct leat_str text, uint64_t *out);

/* Parses a duration: a decimal number followed by ms, s, m or h, such as "500ms" or "10s".
 * A bare "0" is allowed too. *OUT_MS is in milliseconds. */
bool leat_parse_duration_ms(struct leat_str text, uint64_t *out_ms);

/* Parses a size: a decimal number of bytes, or one followed by KiB, MiB or GiB. */
bool leat_parse_size(struct leat_str text, uint64_t *out_bytes);

#endif
