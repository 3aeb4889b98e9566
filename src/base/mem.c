/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RESERVE_FIRST 1024u

/* How many allocations are left until one fails, that one included; 0: none will. */
static _Atomic unsigned fail_countdown;

void leat_mem_fail_after(unsigned n)
{
    atomic_store(&fail_countdown, n);
}

static bool must_fail(void)
{
    unsigned left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

    /* Compared before it is lowered, so that threads together never lower it below 0. */
    while (left != 0)
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
            return left == 1;
    return false;
}

/* An empty object is one too: it has an address, and NULL means that memory is short. */
static size_t at_least_one(size_t size)
{
    return size > 0 ? size : 1;
}

void *leat_mem_zalloc(size_t size)
{
    return leat_mem_zalloc_flex(size, 0, 0);
}

void *leat_mem_zalloc_flex(size_t head, size_t count, size_t each)
{
    if (each != 0 && count > (SIZE_MAX - head) / each)
        return NULL;
    if (must_fail())
        return NULL;
    return calloc(1, at_least_one(head + count * each));
}

void *leat_mem_alloc(size_t size)
{
    if (must_fail())
        return NULL;
    return malloc(at_least_one(size));
}

char *leat_mem_dup(struct leat_str str)
{
    char *copy = NULL;

    if (str.len < SIZE_MAX)
        copy = leat_mem_alloc(str.len + 1);
    if (copy == NULL)
        return NULL;
    if (str.len > 0)
        memcpy(copy, str.ptr, str.len);
    copy[str.len] = '\0';
    return copy;
}

void leat_mem_free(void *ptr)
{
    free(ptr);
}

void leat_mem_free_secret(void *ptr, size_t size)
{
    if (ptr == NULL)
        return;
    explicit_bzero(ptr, size);
    free(ptr);
}

bool leat_mem_reserve(char **buf, size_t len, size_t *cap, size_t size)
{
    size_t wanted = *cap > 0 ? *cap : RESERVE_FIRST;

    while (wanted - len < size) {
        if (wanted > SIZE_MAX / 2)
            return false;
        wanted *= 2;
    }
    if (wanted == *cap)
        return true;
    char *larger = leat_mem_alloc(wanted);
    if (larger == NULL)
        return false;
    if (len > 0)
        memcpy(larger, *buf, len);
    leat_mem_free(*buf);
    *buf = larger;
    *cap = wanted;
    return true;
}
