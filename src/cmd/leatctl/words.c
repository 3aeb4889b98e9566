/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <inttypes.h>
#include <stdbool.h>

void leat_words_add_size(struct leat_text *text, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint64_t tenths;
    size_t unit = 0;

    if (bytes < 1024) {
        leat_text_add(text, "%" PRIu64 " B", bytes);
        return;
    }
    while (bytes >= 1024 * 1024) {
        bytes /= 1024;
        unit++;
    }
    tenths = bytes * 10 / 1024;
    if (tenths < 1000)
        leat_text_add(text, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]);
    else
        leat_text_add(text, "%" PRIu64 " %s", tenths / 10, units[unit]);
}

void leat_words_add_duration(struct leat_text *text, uint64_t seconds)
{
    if (seconds < 60)
        leat_text_add(text, "%" PRIu64 "s", seconds);
    else if (seconds < 3600)
        leat_text_add(text, "%" PRIu64 "m%" PRIu64 "s", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        leat_text_add(text, "%" PRIu64 "h%" PRIu64 "m", seconds / 3600, seconds / 60 % 60);
    else
        leat_text_add(text, "%" PRIu64 "d%" PRIu64 "h", seconds / 86400, seconds / 3600 % 24);
}

size_t leat_words_char_len(struct leat_str str)
{
    size_t len = 1;

    if (str.len == 0)
        return 0;
    while (len < str.len && ((unsigned char)str.ptr[len] & 0xc0) == 0x80)
        len++;
    return len;
}

size_t leat_words_width(struct leat_str str)
{
    size_t width = 0;

    for (size_t len; (len = leat_words_char_len(str)) > 0; width++) {
        str.ptr += len;
        str.len -= len;
    }
    return width;
}

/* The number of the character that fills STR. */
static uint32_t number_of(struct leat_str str)
{
    static const unsigned char masks[] = {0x7f, 0x1f, 0x0f, 0x07};
    uint32_t number = (unsigned char)str.ptr[0] & masks[(str.len - 1) & 3];

    for (size_t i = 1; i < str.len; i++)
        number = number << 6 | ((unsigned char)str.ptr[i] & 0x3f);
    return number;
}

/* Marks of direction and of joining, and what is a line's or a paragraph's end in Unicode: they
 * can make one text look like another. */
static bool is_deceptive(uint32_t number)
{
    return (number >= 0x200b && number <= 0x200f) || (number >= 0x2028 && number <= 0x202e) ||
           (number >= 0x2060 && number <= 0x206f) || number == 0x61c || number == 0xfeff;
}

static void add_char(struct leat_text *text, struct leat_str one)
{
    uint32_t number = number_of(one);
    char escaped[16];
    struct leat_text escape;

    leat_text_init(&escape, escaped, sizeof(escaped));
    if (number < 0x20 || number == 0x7f)
        leat_text_add(&escape, "\\x%02" PRIx32, number);
    else if ((number >= 0x80 && number < 0xa0) || is_deceptive(number))
        leat_text_add(&escape, "\\u%04" PRIx32, number);
    if (escape.len > 0)
        one = (struct leat_str){escaped, escape.len};
    if (one.len >= text->cap - text->len)
        text->is_cut = true;
    else
        leat_text_add(text, "%.*s", (int)one.len, one.ptr);
}

void leat_words_add_plain(struct leat_text *text, struct leat_str value)
{
    for (size_t len; (len = leat_words_char_len(value)) > 0 && !text->is_cut;) {
        add_char(text, (struct leat_str){value.ptr, len});
        value.ptr += len;
        value.len -= len;
    }
}
