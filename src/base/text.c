/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void leat_text_init(struct leat_text *text, char *buf, size_t cap)
{
    *text = (struct leat_text){.buf = buf, .cap = cap};
    buf[0] = '\0';
}

void leat_text_vadd(struct leat_text *text, const char *format, va_list args)
{
    int saved_errno = errno;
    size_t room = text->cap - text->len;
    int need;

    if (text->is_cut)
        return;
    need = vsnprintf(text->buf + text->len, room, format, args);
    if (need < 0) {
        /* Not formattable, such as a text of more than INT_MAX bytes. */
        text->buf[text->len] = '\0';
        text->is_cut = true;
    } else if ((size_t)need >= room) {
        text->len = text->cap - 1;
        text->is_cut = true;
    } else {
        text->len += (size_t)need;
    }
    errno = saved_errno;
}

void leat_text_add(struct leat_text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    leat_text_vadd(text, format, args);
    va_end(args);
}

/* Appends all LEN bytes, which is one character as it is written, or cuts before it. */
static void add_whole(struct leat_text *text, const char *bytes, size_t len)
{
    if (text->is_cut)
        return;
    if (len > text->cap - text->len - 1) {
        text->is_cut = true;
        return;
    }
    memcpy(text->buf + text->len, bytes, len);
    text->len += len;
    text->buf[text->len] = '\0';
}

static void add_escaped(struct leat_text *text, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";

    if (byte == '"' || byte == '\\')
        add_whole(text, (char[]){'\\', (char)byte}, 2);
    else if (byte < 0x20 || byte > 0x7e)
        add_whole(text, (char[]){'\\', 'x', hex[byte >> 4], hex[byte & 15]}, 4);
    else
        add_whole(text, (char[]){(char)byte}, 1);
}

void leat_text_add_quoted(struct leat_text *text, struct leat_str value)
{
    add_whole(text, "\"", 1);
    for (size_t i = 0; i < value.len && !text->is_cut; i++)
        add_escaped(text, (unsigned char)value.ptr[i]);
    add_whole(text, "\"", 1);
}
