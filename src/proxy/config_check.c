/* Where a configuration is wrong, in words. SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_check.h"

#include <stdarg.h>

#include "base/error.h"
#include "base/str.h"
#include "proxy/config_place.h"

void leat_config_check_enter(struct leat_config_check *check, enum leat_section_kind section,
                             const char *name, unsigned line, const unsigned *key_lines)
{
    check->line = line;
    check->key_lines = key_lines;
    leat_text_init(&check->path, check->buf, sizeof(check->buf));
    for (size_t i = 0; i < LEAT_SECTIONS; i++) {
        if (leat_sections[i].kind == section)
            leat_text_add(&check->path, "%s", leat_sections[i].name);
    }
    if (name != NULL)
        leat_place_add_name(&check->path, leat_str_of(name));
}

enum leat_status leat_config_check_wrong(const struct leat_config_check *check,
                                         const struct leat_key *key, const char *format, ...)
{
    char buf[sizeof(check->err->text)];
    struct leat_text text;
    va_list args;

    leat_text_init(&text, buf, sizeof(buf));
    unsigned line = check->line;
    if (check->key_lines != NULL)
        line = leat_key_line(key, check->key_lines, line);
    leat_place_add_file(&text, check->config->file, line);
    if (check->path.len > 0)
        leat_text_add(&text, "%s%s%s: ", check->buf, key == NULL ? "" : ".",
                      key == NULL ? "" : key->name);
    va_start(args, format);
    leat_text_vadd(&text, format, args);
    va_end(args);
    return leat_error_set(check->err, LEAT_EUSAGE, 0, "%s", buf);
}

enum leat_status leat_config_check_wrong_value(const struct leat_config *config, size_t offset,
                                               struct leat_error *err, const char *format, ...)
{
    const struct leat_key *key = leat_key_at(&leat_config_table, offset);
    unsigned line = config->key_lines[key - leat_config_table.keys];
    char buf[sizeof(err->text)];
    struct leat_text text;
    va_list args;

    leat_text_init(&text, buf, sizeof(buf));
    if (line != 0) {
        leat_place_add_file(&text, config->file, line);
        leat_text_add(&text, "%s: ", key->name);
    } else {
        leat_text_add(&text, "--%s: ", key->option != NULL ? key->option : key->name);
    }
    va_start(args, format);
    leat_text_vadd(&text, format, args);
    va_end(args);
    return leat_error_set(err, LEAT_EUSAGE, 0, "%s", buf);
}
