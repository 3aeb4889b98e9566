/* SPDX-License-Identifier: Apache-2.0 */
#include "document.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/str.h"
#include "base/text.h"

/* One event goes to the emitter at a time; the first that fails is the last. */
static bool emit(yaml_emitter_t *emitter, yaml_event_t *event, int is_made)
{
    return is_made != 0 && yaml_emitter_emit(emitter, event) != 0;
}

/* Whether VALUE is digits and a unit: a duration or a size, which is no number to anybody. */
static bool is_quantity(struct leat_str value)
{
    static const char *const units[] = {"ms", "s", "m", "h", "d", "KiB", "MiB", "GiB"};
    size_t digits = strspn(value.ptr, "0123456789");

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (leat_str_equal((struct leat_str){value.ptr + digits, value.len - digits},
                           leat_str_of(units[i])))
            return true;
    }
    return false;
}

/* Whether VALUE, written without quotes, is text to every reader of YAML. */
static bool is_plain(struct leat_str value)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@-";

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (value.len == strlen(words[i]) && strncasecmp(value.ptr, words[i], value.len) == 0)
            return false;
    }
    if (value.len == 0 || value.ptr[value.len - 1] == ':' || strchr("-.:@", value.ptr[0]) != NULL)
        return false;
    /* There are many ways to write a number, a date or a time. */
    if (value.ptr[0] >= '0' && value.ptr[0] <= '9')
        return is_quantity(value);
    return strspn(value.ptr, safe) == value.len;
}

static bool print_scalar(yaml_emitter_t *emitter, struct leat_str value, bool plain)
{
    yaml_scalar_style_t style = plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    yaml_event_t event;

    return emit(emitter, &event,
                yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)value.ptr,
                                             (int)value.len, 1, 1, style));
}

static bool print_text(yaml_emitter_t *emitter, struct leat_str value)
{
    return print_scalar(emitter, value, is_plain(value));
}

static bool print_simple(yaml_emitter_t *emitter, const json_t *value)
{
    char buf[32];
    struct leat_text text;

    if (json_is_string(value))
        return print_text(emitter,
                          (struct leat_str){json_string_value(value), json_string_length(value)});
    leat_text_init(&text, buf, sizeof(buf));
    if (json_is_integer(value))
        leat_text_add(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        leat_text_add(&text, "%g", json_real_value(value));
    else if (json_is_boolean(value))
        leat_text_add(&text, "%s", json_is_true(value) ? "true" : "false");
    else
        leat_text_add(&text, "null");
    return print_scalar(emitter, (struct leat_str){buf, text.len}, true);
}

static bool print_value(yaml_emitter_t *emitter, const json_t *value);

/* A list of simple values is written in one line. */
static yaml_sequence_style_t style_of(const json_t *list)
{
    const json_t *first = json_array_get(list, 0);

    return (json_is_object(first) || json_is_array(first)) ? YAML_BLOCK_SEQUENCE_STYLE
                                                           : YAML_FLOW_SEQUENCE_STYLE;
}

static bool print_list(yaml_emitter_t *emitter, const json_t *list)
{
    yaml_event_t event;

    if (!emit(emitter, &event,
              yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style_of(list))))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!print_value(emitter, json_array_get(list, i)))
            return false;
    }
    return emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static bool print_members(yaml_emitter_t *emitter, const json_t *object)
{
    yaml_event_t event;

    if (!emit(emitter, &event,
              yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)))
        return false;
    for (void *at = json_object_iter((json_t *)(uintptr_t)object); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
        if (!print_text(emitter, leat_str_of(json_object_iter_key(at))) ||
            !print_value(emitter, json_object_iter_value(at)))
            return false;
    }
    return emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static bool print_value(yaml_emitter_t *emitter, const json_t *value)
{
    if (json_is_object(value))
        return print_members(emitter, value);
    if (json_is_array(value))
        return print_list(emitter, value);
    return print_simple(emitter, value);
}

static bool print_document(yaml_emitter_t *emitter, const json_t *value)
{
    yaml_event_t event;

    return emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
           emit(emitter, &event,
                yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
           print_value(emitter, value) &&
           emit(emitter, &event, yaml_document_end_event_initialize(&event, 1)) &&
           emit(emitter, &event, yaml_stream_end_event_initialize(&event));
}

enum leat_status leat_document_print(const json_t *value, FILE *out)
{
    yaml_emitter_t emitter;
    enum leat_status status = LEAT_OK;

    if (yaml_emitter_initialize(&emitter) == 0)
        return LEAT_ENOMEM;
    yaml_emitter_set_output_file(&emitter, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    if (!print_document(&emitter, value))
        status = (emitter.error == YAML_WRITER_ERROR) ? LEAT_EIO : LEAT_ENOMEM;
    yaml_emitter_delete(&emitter);
    return status;
}
