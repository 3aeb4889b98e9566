/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_keys.h"
#include "proxy/config_place.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

unsigned leat_key_line(const struct leat_key *key, const unsigned *key_lines, unsigned line)
{
    static const struct leat_key_table *const tables[] = {
        &leat_listener_table, &leat_certificate_table, &leat_backend_table, &leat_farm_table,
        &leat_route_table};

    for (size_t t = 0; key != NULL && t < COUNT_OF(tables); t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            if (&tables[t]->keys[i] == key && key_lines[i] != 0)
                return key_lines[i];
        }
    }
    return line;
}

const struct leat_key *leat_key_at(const struct leat_key_table *table, size_t offset)
{
    size_t i = 0;

    while (i < table->count && table->keys[i].offset != offset)
        i++;
    LEAT_ASSERT(i < table->count);
    return &table->keys[i];
}

bool leat_key_is_of(const struct leat_key *key, const char *section, struct leat_str *out_name)
{
    struct leat_str name = leat_str_of(key->name);
    size_t len = strlen(section);

    if (len == 0) {
        *out_name = name;
        return strchr(key->name, '.') == NULL;
    }
    if (name.len <= len || name.ptr[len] != '.' || memcmp(name.ptr, section, len) != 0)
        return false;
    *out_name = (struct leat_str){name.ptr + len + 1, name.len - len - 1};
    return true;
}

/* The member of BASE that KEY describes; its type follows from the key's kind. */
static void *member(void *base, const struct leat_key *key)
{
    return (char *)base + key->offset;
}

static void add_size(struct leat_text *text, unsigned long long bytes)
{
    static const char *const units[] = {" bytes", "KiB", "MiB", "GiB"};
    size_t u = 0;

    for (; u < 3 && bytes != 0 && bytes % 1024 == 0; u++)
        bytes /= 1024;
    leat_text_add(text, "%llu%s", bytes, units[u]);
}

static void add_duration(struct leat_text *text, unsigned long long ms)
{
    if (ms % 1000 != 0)
        leat_text_add(text, "%llums", ms);
    else if (ms % 3600000 != 0 || ms == 0)
        leat_text_add(text, "%llus", ms / 1000);
    else
        leat_text_add(text, "%lluh", ms / 3600000);
}

void leat_key_add_amount(struct leat_text *text, enum leat_key_kind kind, uint64_t amount)
{
    if (kind == LEAT_KEY_SIZE)
        add_size(text, amount);
    else if (kind == LEAT_KEY_DURATION)
        add_duration(text, amount);
    else
        leat_text_add(text, "%llu", (unsigned long long)amount);
}

static void add_choices(struct leat_text *text, const char *const *choices)
{
    for (size_t i = 0; choices[i] != NULL; i++)
        leat_text_add(text, "%s%s",
                      i == 0                   ? ""
                      : choices[i + 1] == NULL ? " or "
                                               : ", ",
                      choices[i]);
}

const char *leat_key_allowed(const struct leat_key *key, char *buf, size_t cap)
{
    struct leat_text text;

    leat_text_init(&text, buf, cap);
    switch (key->kind) {
    case LEAT_KEY_ENDPOINT:
        leat_text_add(&text, "%s", leat_endpoint_forms);
        break;
    case LEAT_KEY_FILE:
        leat_text_add(&text, "the name of a file");
        break;
    case LEAT_KEY_TEXT:
        leat_text_add(&text, "text");
        break;
    case LEAT_KEY_NAMES:
        leat_text_add(&text, "a list of names");
        break;
    case LEAT_KEY_FLAG:
        leat_text_add(&text, "true or false");
        break;
    case LEAT_KEY_CHOICE:
        add_choices(&text, key->choices);
        break;
    case LEAT_KEY_COUNT:
    case LEAT_KEY_SIZE:
    case LEAT_KEY_DURATION:
        leat_key_add_amount(&text, key->kind, key->min);
        leat_text_add(&text, " to ");
        leat_key_add_amount(&text, key->kind, key->max);
    }
    return buf;
}

static enum leat_status no_memory(struct leat_error *err)
{
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
}

static enum leat_status refuse_value(const struct leat_key *key, struct leat_str value,
                                     struct leat_error *err)
{
    char allowed[80];

    return leat_place_refuse(leat_key_allowed(key, allowed, sizeof(allowed)), value, err);
}

static bool has_nul(struct leat_str text)
{
    return text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL;
}

static enum leat_status set_endpoint(struct leat_endpoint *out, const struct leat_key *key,
                                     struct leat_str value, struct leat_error *err)
{
    struct leat_endpoint endpoint;
    enum leat_status status =
        leat_endpoint_parse(value, (uint16_t)key->min, (uint16_t)key->max, &endpoint, err);

    if (status != LEAT_OK)
        return status;
    leat_endpoint_fini(out);
    *out = endpoint;
    return LEAT_OK;
}

static enum leat_status set_text(char **text, const struct leat_key *key, struct leat_str value,
                                 struct leat_error *err)
{
    char *copy;

    if (has_nul(value) || (key->kind == LEAT_KEY_FILE && value.len == 0))
        return refuse_value(key, value, err);
    copy = leat_mem_dup(value);
    if (copy == NULL)
        return no_memory(err);
    leat_mem_free(*text);
    *text = copy;
    return LEAT_OK;
}

static enum leat_status set_flag(bool *flag, const struct leat_key *key, struct leat_str value,
                                 struct leat_error *err)
{
    static const struct leat_str yes = LEAT_STR_INIT("true"), no = LEAT_STR_INIT("false");

    if (!leat_str_equal(value, yes) && !leat_str_equal(value, no))
        return refuse_value(key, value, err);
    *flag = leat_str_equal(value, yes);
    return LEAT_OK;
}

static enum leat_status set_choice(uint64_t *out, const struct leat_key *key, struct leat_str value,
                                   struct leat_error *err)
{
    for (size_t i = 0; key->choices[i] != NULL; i++) {
        if (leat_str_equal(leat_str_of(key->choices[i]), value)) {
            *out = i;
            return LEAT_OK;
        }
    }
    return refuse_value(key, value, err);
}

static enum leat_status set_number(uint64_t *out, const struct leat_key *key, struct leat_str value,
                                   struct leat_error *err)
{
    uint64_t number = 0;
    bool parsed;

    if (key->kind == LEAT_KEY_DURATION)
        parsed = leat_parse_duration_ms(value, &number);
    else if (key->kind == LEAT_KEY_SIZE)
        parsed = leat_parse_size(value, &number);
    else
        parsed = leat_parse_u64(value, &number);
    if (!parsed || number < key->min || number > key->max)
        return refuse_value(key, value, err);
    *out = number;
    return LEAT_OK;
}

void *leat_config_grow(void *at, size_t count, size_t each)
{
    /* There is room for the next power of two. */
    if (count != 0 && (count & (count - 1)) != 0)
        return at;
    void *larger = leat_mem_zalloc_flex(0, count == 0 ? 1 : 2 * count, each);
    if (larger == NULL)
        return NULL;
    if (count > 0)
        memcpy(larger, at, count * each);
    leat_mem_free(at);
    return larger;
}

static void clear(struct leat_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        leat_mem_free(names->at[i]);
    leat_mem_free(names->at);
    *names = (struct leat_names){0};
}

/* A name that begins or ends with a space is hardly meant: such a user would be let in from
 * everywhere. */
static bool is_spaced(struct leat_str name)
{
    return name.len > 0 && (name.ptr[0] == ' ' || name.ptr[name.len - 1] == ' ');
}

static enum leat_status add_name(struct leat_names *names, struct leat_str name,
                                 struct leat_error *err)
{
    void *at;

    if (name.len == 0 || has_nul(name))
        return leat_place_refuse("a name", name, err);
    if (is_spaced(name))
        return leat_place_refuse("a name without spaces around it", name, err);
    at = leat_config_grow(names->at, names->count, sizeof(names->at[0]));
    if (at == NULL)
        return no_memory(err);
    names->at = at;
    names->at[names->count] = leat_mem_dup(name);
    if (names->at[names->count] == NULL)
        return no_memory(err);
    names->count++;
    return LEAT_OK;
}

/* Sets NAMES to those in VALUE, separated by commas. */
static enum leat_status set_names(struct leat_names *names, struct leat_str value,
                                  struct leat_error *err)
{
    struct leat_names made = {0};
    enum leat_status status = LEAT_OK;

    for (size_t from = 0, end; status == LEAT_OK && from < value.len; from = end + 1) {
        const char *comma = memchr(value.ptr + from, ',', value.len - from);
        end = (comma == NULL) ? value.len : (size_t)(comma - value.ptr);
        if (end > from)
            status = add_name(&made, (struct leat_str){value.ptr + from, end - from}, err);
    }
    if (status == LEAT_EUSAGE)
        status =
            leat_place_refuse("names separated by commas, without spaces around these", value, err);
    if (status != LEAT_OK) {
        clear(&made);
        return status;
    }
    clear(names);
    *names = made;
    return LEAT_OK;
}

enum leat_status leat_key_add_name(void *base, const struct leat_key *key, struct leat_str name,
                                   struct leat_error *err)
{
    return add_name(member(base, key), name, err);
}

void leat_key_clear_names(void *base, const struct leat_key *key)
{
    clear(member(base, key));
}

enum leat_status leat_key_set(void *base, const struct leat_key *key, struct leat_str value,
                              struct leat_error *err)
{
    switch (key->kind) {
    case LEAT_KEY_ENDPOINT:
        return set_endpoint(member(base, key), key, value, err);
    case LEAT_KEY_FILE:
    case LEAT_KEY_TEXT:
        return set_text(member(base, key), key, value, err);
    case LEAT_KEY_NAMES:
        return set_names(member(base, key), value, err);
    case LEAT_KEY_FLAG:
        return set_flag(member(base, key), key, value, err);
    case LEAT_KEY_CHOICE:
        return set_choice(member(base, key), key, value, err);
    case LEAT_KEY_COUNT:
    case LEAT_KEY_SIZE:
    case LEAT_KEY_DURATION:
        return set_number(member(base, key), key, value, err);
    }
    return leat_error_set(err, LEAT_EUSAGE, 0, "unknown kind");
}

enum leat_status leat_key_set_defaults(void *base, const struct leat_key_table *table,
                                       struct leat_error *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct leat_key *key = &table->keys[i];
        if (key->initial == NULL)
            continue;
        enum leat_status status = leat_key_set(base, key, leat_str_of(key->initial), err);
        if (status != LEAT_OK)
            return status;
    }
    return LEAT_OK;
}

void leat_key_free_all(void *base, const struct leat_key_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct leat_key *key = &table->keys[i];
        if (key->kind == LEAT_KEY_FILE || key->kind == LEAT_KEY_TEXT)
            leat_mem_free(*(char **)member(base, key));
        else if (key->kind == LEAT_KEY_NAMES)
            clear(member(base, key));
    }
}
