/*
 * compiler.h - the compiler features that leat relies on
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_COMPILER_H
#define LEAT_COMPILER_H

#if defined(__GNUC__) || defined(__clang__)
#define LEAT_MUST_CHECK __attribute__((warn_unused_result))
#define LEAT_PRINTF(index, first) __attribute__((format(printf, index, first)))
#else
#define LEAT_MUST_CHECK
#define LEAT_PRINTF(index, first)
#endif

#endif
