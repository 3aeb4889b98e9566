/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config.h"
#include "proxy/config_keys.h"
#include "proxy/json_out.h"

static json_t *endpoint_json(const struct leat_endpoint *endpoint)
{
    char addr[LEAT_ADDR_TEXT_MAX], url[LEAT_ADDR_TEXT_MAX + 8];

    (void)snprintf(url, sizeof(url), "%s://%s", endpoint->tls ? "amqps" : "amqp",
                   leat_addr_text(&endpoint->addr, addr));
    return leat_json_str(leat_str_of(url));
}

static json_t *file_json(const char *name)
{
    char dir[PATH_MAX];

    if (*name == '/' || getcwd(dir, sizeof(dir)) == NULL)
        return leat_json_str(leat_str_of(name));
    size_t len = strlen(dir) + strlen(name) + 2;
    char *joined = leat_mem_alloc(len);
    if (joined == NULL)
        return NULL;
    (void)snprintf(joined, len, "%s/%s", dir, name);
    json_t *value = leat_json_str(leat_str_of(joined));
    leat_mem_free(joined);
    return value;
}

static json_t *names_json(const struct leat_names *names)
{
    json_t *array = json_array();

    for (size_t i = 0; i < names->count; i++) {
        if (leat_json_append(array, leat_json_str(leat_str_of(names->at[i]))))
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *number_json(enum leat_key_kind kind, uint64_t number)
{
    char buf[32];
    struct leat_text text;

    if (kind == LEAT_KEY_COUNT || (kind == LEAT_KEY_SIZE && number % 1024 != 0))
        return json_integer((json_int_t)number);
    leat_text_init(&text, buf, sizeof(buf));
    leat_key_add_amount(&text, kind, number);
    return leat_json_str(leat_str_of(buf));
}

/* Adds the value of KEY in BASE under NAME, unless it has none. */
static void add_value(struct leat_json *json, const char *name, const struct leat_key *key,
                      const void *base)
{
    const void *member = (const char *)base + key->offset;
    const char *text;
    uint64_t number;

    switch (key->kind) {
    case LEAT_KEY_ENDPOINT:
        leat_json_add(json, name, endpoint_json(member));
        return;
    case LEAT_KEY_FILE:
    case LEAT_KEY_TEXT:
        memcpy(&text, member, sizeof(text));
        if (text != NULL)
            leat_json_add(json, name,
                          key->kind == LEAT_KEY_FILE ? file_json(text)
                                                     : leat_json_str(leat_str_of(text)));
        return;
    case LEAT_KEY_NAMES:
        leat_json_add(json, name, names_json(member));
        return;
    case LEAT_KEY_FLAG:
        leat_json_add(json, name, json_boolean(*(const bool *)member));
        return;
    case LEAT_KEY_LEVEL:
        memcpy(&number, member, sizeof(number));
        leat_json_add_text(json, name, leat_log_level_name((enum leat_log_level)number));
        return;
    case LEAT_KEY_COUNT:
    case LEAT_KEY_SIZE:
    case LEAT_KEY_DURATION:
        memcpy(&number, member, sizeof(number));
        if (number != 0 || key->min == 0) /* else it is not set */
            leat_json_add(json, name, number_json(key->kind, number));
    }
}

/* Adds the keys of TABLE that are of SECTION. */
static void add_keys(struct leat_json *json, const void *base, const struct leat_key_table *table,
                     const char *section)
{
    struct leat_str name;

    for (size_t i = 0; i < table->count; i++) {
        /* The name in a section is the end of the key's, and so NUL-terminated. */
        if (leat_key_is_of(&table->keys[i], section, &name))
            add_value(json, name.ptr, &table->keys[i], base);
    }
}

static json_t *item_json(const void *base, const struct leat_key_table *table, const char *section)
{
    struct leat_json json;

    leat_json_begin(&json);
    add_keys(&json, base, table, section);
    return leat_json_end(&json);
}

/* Adds the item BASE under NAME, which may be any bytes. */
static void add_item(struct leat_json *json, const char *name, const void *base,
                     const struct leat_key_table *table)
{
    json_t *shown = leat_json_str(leat_str_of(name));

    leat_json_add(json, shown != NULL ? json_string_value(shown) : "",
                  shown != NULL ? item_json(base, table, "") : NULL);
    json_decref(shown);
}

static json_t *listeners_json(const struct leat_config *config)
{
    json_t *array = json_array();

    for (size_t i = 0; i < config->listeners.count; i++) {
        if (leat_json_append(array, item_json(&config->listeners.at[i], &leat_listener_table, "")))
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *map_json(const struct leat_config *config, enum leat_section_kind kind)
{
    struct leat_json json;

    leat_json_begin(&json);
    for (size_t i = 0; kind == LEAT_SECTION_BACKENDS && i < config->backends.count; i++)
        add_item(&json, config->backends.at[i].name, &config->backends.at[i], &leat_backend_table);
    for (size_t i = 0; kind == LEAT_SECTION_FARMS && i < config->farms.count; i++) {
        const struct leat_farm_config *farm = &config->farms.at[i];
        if (farm->backend_names.count > 0) /* else it is the one of a route to a single backend */
            add_item(&json, farm->name, farm, &leat_farm_table);
    }
    for (size_t i = 0; kind == LEAT_SECTION_VHOSTS && i < config->routes.count; i++) {
        const struct leat_route_config *route = &config->routes.at[i];
        if (route->vhost != NULL)
            add_item(&json, route->vhost, route, &leat_route_table);
    }
    return leat_json_end(&json);
}

static void add_section(struct leat_json *json, const struct leat_config *config,
                        const struct leat_section *section)
{
    const struct leat_route_config *first = config->routes.at;

    switch (section->kind) {
    case LEAT_SECTION_LISTENERS:
        leat_json_add(json, section->name, listeners_json(config));
        break;
    case LEAT_SECTION_BACKENDS:
    case LEAT_SECTION_FARMS:
    case LEAT_SECTION_VHOSTS:
        leat_json_add(json, section->name, map_json(config, section->kind));
        break;
    case LEAT_SECTION_DEFAULT:
        if (config->routes.count > 0 && first->vhost == NULL)
            leat_json_add(json, section->name, item_json(first, section->table, ""));
        break;
    case LEAT_SECTION_KEYS:
        leat_json_add(json, section->name, item_json(config, section->table, section->name));
    }
}

json_t *leat_config_json(const struct leat_config *config)
{
    struct leat_json json;

    leat_json_begin(&json);
    for (size_t i = 0; i < LEAT_SECTIONS; i++)
        add_section(&json, config, &leat_sections[i]);
    add_keys(&json, config, &leat_config_table, "");
    return leat_json_end(&json);
}
