/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_place.h"

#include <stdbool.h>
#include <string.h>

#define FILE_SHOWN_MAX 80u

void leat_place_add_file(struct leat_text *text, const char *file, unsigned line)
{
    if (file == NULL)
        return;
    size_t len = strlen(file);
    if (len > FILE_SHOWN_MAX) {
        leat_text_add(text, "...");
        file += len - FILE_SHOWN_MAX;
    }
    for (; *file != '\0'; file++)
        leat_text_add(text, "%c", (unsigned char)*file < ' ' || *file == 0x7f ? '?' : *file);
    if (line != 0)
        leat_text_add(text, ":%u", line);
    leat_text_add(text, ": ");
}

static bool is_plain(struct leat_str name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-/";

    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '\0' || strchr(plain, name.ptr[i]) == NULL)
            return false;
    }
    return name.len > 0;
}

void leat_place_add_value(struct leat_text *text, struct leat_str value)
{
    bool may_hold_password = value.ptr != NULL && memmem(value.ptr, value.len, "://", 3) != NULL &&
                             memchr(value.ptr, '@', value.len) != NULL;

    if (may_hold_password)
        leat_text_add(text, "a URL with a user");
    else
        leat_text_add_quoted(text, value);
}

void leat_place_add_name(struct leat_text *path, struct leat_str name)
{
    if (path->len > 0)
        leat_text_add(path, ".");
    if (is_plain(name))
        leat_text_add(path, "%.*s", (int)name.len, name.ptr);
    else
        leat_place_add_value(path, name);
}
