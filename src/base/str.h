/*
 * str.h - small operations on struct leat_str
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_BASE_STR_H
#define LEAT_BASE_STR_H

#include <stdbool.h>

#include <leat/str.h>

/* Returns a leat_str over the NUL-terminated TEXT, without its NUL. */
struct leat_str leat_str_of(const char *text);

bool leat_str_equal(struct leat_str a, struct leat_str b);

bool leat_str_starts(struct leat_str str, struct leat_str prefix);

#endif
