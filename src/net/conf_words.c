/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conf_words.h"

#include <string.h>

static struct leat_str skip(struct leat_str text, size_t len)
{
    return (struct leat_str){text.ptr + len, text.len - len};
}

bool leat_conf_words_line(struct leat_str *text, const char *comment, struct leat_str *out)
{
    struct leat_str line = *text;

    if (text->len == 0)
        return false;
    const char *end = memchr(text->ptr, '\n', text->len);
    line.len = end != NULL ? (size_t)(end - text->ptr) : text->len;
    *text = skip(*text, end != NULL ? line.len + 1 : line.len);
    for (; *comment != '\0'; comment++) {
        end = memchr(line.ptr, *comment, line.len);
        if (end != NULL)
            line.len = (size_t)(end - line.ptr);
    }
    *out = line;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\0';
}

bool leat_conf_words_next(struct leat_str *line, struct leat_str *out)
{
    size_t begin = 0;

    while (begin < line->len && is_blank(line->ptr[begin]))
        begin++;
    size_t end = begin;
    while (end < line->len && !is_blank(line->ptr[end]))
        end++;
    if (end == begin)
        return false;
    *out = (struct leat_str){line->ptr + begin, end - begin};
    *line = skip(*line, end);
    return true;
}
