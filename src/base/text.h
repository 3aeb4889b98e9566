/*
 * text.h - building one line of text in a fixed buffer
 *
 * What does not fit is cut, never written past the end; the text is always terminated
 * by NUL. Once it has been cut nothing more is appended, so that what was left out is
 * always the end. Made for log lines and messages, where a cut text is better than none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_TEXT_H
#define LEAT_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <leat/compiler.h>
#include <leat/str.h>

struct leat_text {
    char *buf;
    size_t cap;
    size_t len; /* without the NUL; less than cap */
    bool is_cut;
};

/* Makes TEXT empty over BUF of CAP bytes, at least 1. BUF stays the caller's. */
void leat_text_init(struct leat_text *text, char *buf, size_t cap);

/* Appends as printf does. */
void leat_text_add(struct leat_text *text, const char *format, ...) LEAT_PRINTF(2, 3);

/* Appends as vprintf does. */
void leat_text_vadd(struct leat_text *text, const char *format, va_list args) LEAT_PRINTF(2, 0);

/*
 * Appends VALUE between double quotes, with quote, backslash, control and non-ASCII bytes
 * as \", \\ or \xNN: what a peer says can neither end a log line nor forge another. It is
 * cut between characters, never inside an escape; a cut value lacks its closing quote.
 */
void leat_text_add_quoted(struct leat_text *text, struct leat_str value);

#endif
