/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_place.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

#define FILE_SHOWN_MAX 80u

void leat_place_add_file_name(struct leat_text *text, const char *file)
{
    size_t len = file != NULL ? strlen(file) : 0;

    if (len > FILE_SHOWN_MAX) {
        leat_text_add(text, "...");
        file += len - FILE_SHOWN_MAX;
    }
    for (; len > 0 && *file != '\0'; file++)
        leat_text_add(text, "%c", (unsigned char)*file < ' ' || *file == 0x7f ? '?' : *file);
}

void leat_place_add_file(struct leat_text *text, const char *file, unsigned line)
{
    if (file == NULL)
        return;
    leat_place_add_file_name(text, file);
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

enum leat_status leat_place_refuse(const char *expected, struct leat_str got,
                                   struct leat_error *err)
{
    char buf[120];
    struct leat_text quoted;

    leat_text_init(&quoted, buf, sizeof(buf));
    leat_place_add_value(&quoted, got);
    return leat_error_set(err, LEAT_EUSAGE, 0, "expected %s, got %s", expected, buf);
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
