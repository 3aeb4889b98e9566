/*
 * mem.h - allocation: zeroed, overflow-checked, and able to fail on demand
 *
 * Every allocation of the project goes through here, so that running out of memory can
 * be rehearsed and costs one connection, never the process.
 *
 * Threads: all functions may be called from any thread; the test hook counts the
 * allocations of all threads together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_MEM_H
#define LEAT_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

#include <leat/compiler.h>
#include <leat/str.h>

/* Returns SIZE zeroed bytes, or NULL if memory is short. */
void *leat_mem_zalloc(size_t size);

/*
 * Returns HEAD zeroed bytes followed by COUNT elements of EACH bytes, for a struct that
 * ends in a flexible array or, with HEAD 0, for an array. NULL if memory is short or
 * the size overflows.
 */
void *leat_mem_zalloc_flex(size_t head, size_t count, size_t each);

/*
 * Returns SIZE bytes with undefined contents, or NULL if memory is short. For buffers
 * that are written before they are read.
 */
void *leat_mem_alloc(size_t size);

/* Returns a copy of STR ended by a NUL that its length does not count, or NULL. */
char *leat_mem_dup(struct leat_str str);

/* Frees PTR. NULL is a no-op. */
void leat_mem_free(void *ptr);

/* Overwrites SIZE bytes at PTR so that no compiler drops it, then frees. NULL is a no-op. */
void leat_mem_free_secret(void *ptr, size_t size);

/* Makes room for SIZE more bytes behind the LEN that *BUF holds, doubling *CAP; *BUF is NULL and
 * *CAP 0 at first. False, leaving both alone, if memory is short. */
LEAT_MUST_CHECK bool leat_mem_reserve(char **buf, size_t len, size_t *cap, size_t size);

/* Test hook: makes the Nth allocation from now on fail (1 is the next), 0 none. */
void leat_mem_fail_after(unsigned n);

#endif
