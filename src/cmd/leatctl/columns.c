/* SPDX-License-Identifier: Apache-2.0 */
#include "columns.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"
#include "words.h"

#define FIRST_ROOM 256

void leat_columns_init(struct leat_columns *columns)
{
    *columns = (struct leat_columns){.count = 0};
}

void leat_columns_fini(struct leat_columns *columns)
{
    for (size_t i = 0; i < columns->used; i++)
        leat_mem_free(columns->cells[i]);
    leat_mem_free(columns->cells);
    leat_columns_init(columns);
}

void leat_columns_add_head(struct leat_columns *columns, const char *head, bool is_right)
{
    LEAT_ASSERT(columns->count < LEAT_COLUMNS_MAX);
    columns->is_right[columns->count++] = is_right;
    leat_columns_add(columns, leat_str_of(head));
}

static bool grow(struct leat_columns *columns)
{
    size_t room = (columns->room == 0) ? FIRST_ROOM : columns->room * 2;
    char **cells = leat_mem_zalloc_flex(0, room, sizeof(*cells));

    if (cells == NULL)
        return false;
    if (columns->used > 0)
        memcpy(cells, columns->cells, columns->used * sizeof(*cells));
    leat_mem_free(columns->cells);
    columns->cells = cells;
    columns->room = room;
    return true;
}

/* The bytes of CELL's first WIDTH characters. */
static size_t len_of(struct leat_str cell, size_t width)
{
    size_t len = 0;

    for (; width > 0 && len < cell.len; width--)
        len += leat_words_char_len((struct leat_str){cell.ptr + len, cell.len - len});
    return len;
}

static char *copy(struct leat_str cell)
{
    static const char dots[] = "...";
    char buf[4 * LEAT_COLUMNS_CELL_MAX + sizeof(dots)];
    struct leat_text text;

    if (leat_words_width(cell) <= LEAT_COLUMNS_CELL_MAX)
        return leat_mem_dup(cell);
    cell.len = len_of(cell, LEAT_COLUMNS_CELL_MAX - (sizeof(dots) - 1));
    leat_text_init(&text, buf, sizeof(buf));
    leat_text_add(&text, "%.*s%s", (int)cell.len, cell.ptr, dots);
    return leat_mem_dup((struct leat_str){buf, text.len});
}

void leat_columns_add(struct leat_columns *columns, struct leat_str cell)
{
    char *copied;

    if (columns->is_short_of_memory)
        return;
    copied = (columns->used < columns->room || grow(columns)) ? copy(cell) : NULL;
    if (copied == NULL)
        columns->is_short_of_memory = true;
    else
        columns->cells[columns->used++] = copied;
}

static void print_cell(const char *cell, size_t padding, bool is_right, FILE *out)
{
    if (is_right)
        (void)fprintf(out, "%*s%s", (int)padding, "", cell);
    else
        (void)fprintf(out, "%s%*s", cell, (int)padding, "");
}

enum leat_status leat_columns_print(const struct leat_columns *columns, FILE *out)
{
    size_t widths[LEAT_COLUMNS_MAX] = {0};

    if (columns->is_short_of_memory)
        return LEAT_ENOMEM;
    for (size_t i = 0; i < columns->used; i++) {
        size_t width = leat_words_width(leat_str_of(columns->cells[i]));
        if (width > widths[i % columns->count])
            widths[i % columns->count] = width;
    }
    for (size_t i = 0; i < columns->used; i++) {
        size_t column = i % columns->count;
        bool is_last = column == columns->count - 1, is_right = columns->is_right[column];
        size_t padding = widths[column] - leat_words_width(leat_str_of(columns->cells[i]));
        /* No spaces at the end of a line. */
        print_cell(columns->cells[i], (is_last && !is_right) ? 0 : padding, is_right, out);
        (void)fputs(is_last ? "\n" : "  ", out);
    }
    return LEAT_OK;
}
