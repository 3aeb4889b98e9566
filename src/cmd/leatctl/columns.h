/*
 * columns.h - a table for people: aligned columns, two spaces apart
 *
 * Ownership: cells are copied. Threads: one at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_LEATCTL_COLUMNS_H
#define LEAT_CMD_LEATCTL_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <leat/compiler.h>
#include <leat/error.h>
#include <leat/str.h>

/* The most columns of a table, and the most characters of a cell: a longer one is cut and ends
 * in "...". */
#define LEAT_COLUMNS_MAX 16
#define LEAT_COLUMNS_CELL_MAX 40

struct leat_columns {
    size_t count; /* of columns */
    bool is_right[LEAT_COLUMNS_MAX];
    char **cells; /* row by row, the heads first */
    size_t used, room;
    bool is_short_of_memory;
};

/* Makes an empty table without columns. */
void leat_columns_init(struct leat_columns *columns);

void leat_columns_fini(struct leat_columns *columns);

/* Adds a column before the first cell; IS_RIGHT aligns it to the right, as numbers are. */
void leat_columns_add_head(struct leat_columns *columns, const char *head, bool is_right);

/* Adds the next cell, from left to right, row after row. CELL is UTF-8 without control characters.
 * A lack of memory is told by leat_columns_print(). */
void leat_columns_add(struct leat_columns *columns, struct leat_str cell);

/* Prints heads and rows to OUT. LEAT_ENOMEM, printing nothing, if a cell could not be kept. */
LEAT_MUST_CHECK enum leat_status leat_columns_print(const struct leat_columns *columns, FILE *out);

#endif
