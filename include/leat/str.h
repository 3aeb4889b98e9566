/*
 * str.h - a borrowed run of bytes with its length
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_STR_H
#define LEAT_STR_H

#include <stddef.h>

/* Not terminated by NUL. Valid as long as whatever it was taken from. */
struct leat_str {
    const char *ptr;
    size_t len;
};

/* A leat_str over a string literal, for initializers. */
#define LEAT_STR_INIT(literal)                                                                     \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

#endif
