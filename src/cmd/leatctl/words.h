/*
 * words.h - sizes, durations and what peers said, as people read them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_WORDS_H
#define LEAT_CMD_LEATCTL_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include <leat/str.h>

#include "base/text.h"

/* Room for one value in words, what peers said included. */
#define LEAT_WORDS_MAX 1200

/* Appends BYTES with three digits at least, such as "0 B", "1023 B", "1.2 MiB", "512 MiB". */
void leat_words_add_size(struct leat_text *text, uint64_t bytes);

/* Appends SECONDS in its two largest units, such as "0s", "3m12s", "5h0m", "12d4h". */
void leat_words_add_duration(struct leat_text *text, uint64_t seconds);

/*
 * Appends VALUE, which is UTF-8, for a terminal: control characters become \xNN or \uNNNN, and so
 * do the invisible ones that turn the direction of writing or join lines. What does not fit is cut
 * between characters.
 */
void leat_words_add_plain(struct leat_text *text, struct leat_str value);

/* How many bytes the first character of STR has, which is UTF-8; 0 if STR is empty. */
size_t leat_words_char_len(struct leat_str str);

/* How many characters STR has. */
size_t leat_words_width(struct leat_str str);

#endif
