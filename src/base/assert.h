/*
 * assert.h - checks for programming errors; never for input, peers, files or memory
 *
 * LEAT_ASSERT stays in release builds: it guards what must hold for memory safety and
 * costs a compare.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_ASSERT_H
#define LEAT_BASE_ASSERT_H

/* Prints what failed to standard error and aborts. */
_Noreturn void leat_assert_failed(const char *expr, const char *file, int line);

#define LEAT_ASSERT(expr) ((expr) ? (void)0 : leat_assert_failed(#expr, __FILE__, __LINE__))

#endif
