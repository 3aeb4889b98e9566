/*
 * error.h - filling a struct leat_error
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_ERROR_H
#define LEAT_BASE_ERROR_H

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

/*
 * Writes STATUS, the errno SYS (0: none) and the formatted text to ERR and returns
 * STATUS, so that a failing function can end in `return leat_error_set(...)`. A SYS
 * other than 0 appends ": " and what strerror says. A text that is too long is cut.
 * ERR may be NULL.
 */
enum leat_status leat_error_set(struct leat_error *err, enum leat_status status, int sys,
                                const char *format, ...) LEAT_PRINTF(4, 5);

/* Sets LEAT_EUSAGE with `expected EXPECTED, got "GOT"`, quoted as leat_text_add_quoted() does, and
 * returns it. A long GOT is cut. */
enum leat_status leat_error_set_expected(struct leat_error *err, const char *expected,
                                         struct leat_str got);

#endif
