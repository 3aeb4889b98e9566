/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "columns.h"

#define LABEL_WIDTH 19

static const json_t *find(const json_t *object, const char *path)
{
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1)
        object = json_object_getn(object, path, (size_t)(dot - path));
    return json_object_get(object, path);
}

static void add_string(struct leat_text *text, const json_t *value)
{
    struct leat_str string = {json_string_value(value), json_string_length(value)};

    if (string.len == 0)
        leat_text_add(text, "\"\"");
    else
        leat_words_add_plain(text, string);
}

static void add_simple(struct leat_text *text, const json_t *value)
{
    if (json_is_string(value))
        add_string(text, value);
    else if (json_is_integer(value))
        leat_text_add(text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        leat_text_add(text, "%.1f", json_real_value(value));
    else if (json_is_boolean(value))
        leat_text_add(text, "%s", json_is_true(value) ? "yes" : "no");
    else
        leat_text_add(text, "-");
}

static void add_members(struct leat_text *text, const json_t *object)
{
    const char *comma = "", *name;
    json_t *member;

    json_object_foreach((json_t *)(uintptr_t)object, name, member)
    {
        leat_text_add(text, "%s%s ", comma, name);
        add_simple(text, member);
        comma = ", ";
    }
}

/* Lists and objects with commas between, the members of objects with their names. */
static void add_value(struct leat_text *text, const json_t *value)
{
    if (json_is_object(value)) {
        add_members(text, value);
    } else if (json_is_array(value)) {
        leat_text_add(text, "%s", json_array_size(value) == 0 ? "-" : "");
        for (size_t i = 0; i < json_array_size(value); i++) {
            leat_text_add(text, "%s", i > 0 ? ", " : "");
            add_simple(text, json_array_get(value, i));
        }
    } else {
        add_simple(text, value);
    }
}

char *leat_field_text(const json_t *object, const char *path, char buf[LEAT_WORDS_MAX])
{
    struct leat_text text;

    leat_text_init(&text, buf, LEAT_WORDS_MAX);
    add_value(&text, find(object, path));
    return buf;
}

static uint64_t number_of(const json_t *value)
{
    double number = json_number_value(value);

    return (number > 0 && number < 1e18) ? (uint64_t)number : 0;
}

static void add_most(struct leat_text *text, const json_t *object, const char *path)
{
    char name[64];
    struct leat_text most;

    leat_text_init(&most, name, sizeof(name));
    leat_text_add(&most, "%s_max", path);
    leat_text_add(text, " of at most ");
    add_simple(text, find(object, name));
}

static void add_field(struct leat_text *text, const struct leat_field *field, const json_t *object)
{
    const json_t *value = find(object, field->path);

    if (field->form != LEAT_FIELD_INDEX && (value == NULL || json_is_null(value))) {
        leat_text_add(text, "%s", field->absent != NULL ? field->absent : "-");
        return;
    }
    switch (field->form) {
    case LEAT_FIELD_TEXT:
    case LEAT_FIELD_NUMBER:
        add_value(text, value);
        break;
    case LEAT_FIELD_SIZE:
        leat_words_add_size(text, number_of(value));
        break;
    case LEAT_FIELD_DURATION:
        leat_words_add_duration(text, number_of(value));
        break;
    case LEAT_FIELD_OF:
        add_value(text, value);
        add_most(text, object, field->path);
        break;
    case LEAT_FIELD_INDEX:
        break;
    }
}

enum leat_status leat_fields_print(const struct leat_field *fields, size_t count,
                                   const json_t *object, FILE *out)
{
    char buf[LEAT_WORDS_MAX];
    struct leat_text text;

    if (!json_is_object(object))
        return LEAT_EPROTOCOL;
    for (size_t i = 0; i < count; i++) {
        leat_text_init(&text, buf, sizeof(buf));
        add_field(&text, &fields[i], object);
        if (text.len > 0)
            (void)fprintf(out, "%-*s %s\n", LABEL_WIDTH, fields[i].label, buf);
    }
    return LEAT_OK;
}

enum leat_status leat_fields_print_members(const json_t *object, FILE *out)
{
    enum leat_status status = json_is_object(object) ? LEAT_OK : LEAT_EPROTOCOL;
    const char *name;
    json_t *member;

    json_object_foreach((json_t *)(uintptr_t)object, name, member)
    {
        struct leat_field field = {.label = name, .path = name};
        status = leat_fields_print(&field, 1, object, out);
    }
    return status;
}

enum leat_status leat_fields_print_rows(const struct leat_field *fields, size_t count,
                                        const json_t *list, FILE *out)
{
    struct leat_columns columns;
    struct leat_text text;
    char buf[LEAT_WORDS_MAX];
    enum leat_status status;

    if (!json_is_array(list))
        return LEAT_EPROTOCOL;
    leat_columns_init(&columns);
    for (size_t i = 0; i < count; i++)
        leat_columns_add_head(&columns, fields[i].label, fields[i].form != LEAT_FIELD_TEXT);
    for (size_t i = 0; i < json_array_size(list) * count; i++) {
        leat_text_init(&text, buf, sizeof(buf));
        if (fields[i % count].form == LEAT_FIELD_INDEX)
            leat_text_add(&text, "%zu", i / count);
        else
            add_field(&text, &fields[i % count], json_array_get(list, i / count));
        leat_columns_add(&columns, (struct leat_str){buf, text.len});
    }
    status = leat_columns_print(&columns, out);
    leat_columns_fini(&columns);
    return status;
}
