/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config_json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config.h"
#include "proxy/config_keys.h"
#include "proxy/json_out.h"

static json_t *endpoint_json(const struct leat_endpoint *endpoint)
{
    char url[LEAT_ENDPOINT_URL_MAX];

    return leat_json_str(leat_str_of(leat_endpoint_url(endpoint, NULL, url)));
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
    case LEAT_KEY_CHOICE:
        memcpy(&number, member, sizeof(number));
        leat_json_add_text(json, name, key->choices[number]);
        return;
    case LEAT_KEY_COUNT:
    case LEAT_KEY_SIZE:
    case LEAT_KEY_DURATION:
        memcpy(&number, member, sizeof(number));
        if (number != 0 || key->min == 0) /* else it is not set */
            leat_json_add(json, name, number_json(key->kind, number));
    }
}

/* What is shown: the keys of TABLE in BASE. */
struct shown {
    const void *base;
    const struct leat_key_table *table;
    const char *section;       /* only those that belong to it; "": those without one */
    const unsigned *key_lines; /* what has a default only where the file says it; NULL: all */
};

static void add_keys(struct leat_json *json, const struct shown *shown)
{
    struct leat_str name;

    for (size_t i = 0; i < shown->table->count; i++) {
        const struct leat_key *key = &shown->table->keys[i];
        bool has_default = key->kind == LEAT_KEY_CHOICE || key->kind == LEAT_KEY_FLAG;
        bool is_left_out = has_default && shown->key_lines != NULL && shown->key_lines[i] == 0;
        /* The name in a section is the end of the key's, and so NUL-terminated. */
        if (leat_key_is_of(key, shown->section, &name) && !is_left_out)
            add_value(json, name.ptr, key, shown->base);
    }
}

static json_t *keys_json(const struct shown *shown)
{
    struct leat_json json;

    leat_json_begin(&json);
    add_keys(&json, shown);
    return leat_json_end(&json);
}

static json_t *item_json(const void *base, const struct leat_key_table *table)
{
    return keys_json(&(struct shown){.base = base, .table = table, .section = ""});
}

/* Adds ITEM, taking it over, under NAME, which may be any bytes. */
static void add_item(struct leat_json *json, const char *name, json_t *item)
{
    json_t *text = leat_json_str(leat_str_of(name));

    if (text == NULL) {
        json_decref(item);
        item = NULL;
    }
    leat_json_add(json, text != NULL ? json_string_value(text) : "", item);
    json_decref(text);
}

/* As it holds; without TLS nothing can be said of it. */
static json_t *listener_json(const struct leat_listener_config *listener)
{
    struct leat_listener_config whole = *listener;

    whole.tls = leat_config_tls_of(listener, NULL);
    return keys_json(
        &(struct shown){.base = &whole,
                        .table = &leat_listener_table,
                        .section = "",
                        .key_lines = listener->endpoint.tls ? NULL : listener->key_lines});
}

static json_t *backend_json(const struct leat_backend_config *backend)
{
    return keys_json(
        &(struct shown){.base = backend,
                        .table = &leat_backend_table,
                        .section = "",
                        .key_lines = backend->endpoint.tls ? NULL : backend->key_lines});
}

/* What it does not say is as its listener says. */
static json_t *certificate_json(const struct leat_certificate_config *certificate)
{
    return keys_json(&(struct shown){.base = certificate,
                                     .table = &leat_certificate_table,
                                     .section = "",
                                     .key_lines = certificate->key_lines});
}

static json_t *listeners_json(const struct leat_config *config)
{
    json_t *array = json_array();

    for (size_t i = 0; i < config->listeners.count; i++) {
        if (leat_json_append(array, listener_json(&config->listeners.at[i])))
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

static void add_farms(struct leat_json *json, const struct leat_config *config)
{
    for (size_t i = 0; i < config->farms.count; i++) {
        const struct leat_farm_config *farm = &config->farms.at[i];
        if (farm->backend_names.count > 0) /* else it is the one of a route to a single backend */
            add_item(json, farm->name, item_json(farm, &leat_farm_table));
    }
}

static void add_routes(struct leat_json *json, const struct leat_config *config)
{
    for (size_t i = 0; i < config->routes.count; i++) {
        const struct leat_route_config *route = &config->routes.at[i];
        if (route->vhost != NULL)
            add_item(json, route->vhost, item_json(route, &leat_route_table));
    }
}

static json_t *map_json(const struct leat_config *config, enum leat_section_kind kind)
{
    struct leat_json json;

    leat_json_begin(&json);
    if (kind == LEAT_SECTION_FARMS)
        add_farms(&json, config);
    else if (kind == LEAT_SECTION_VHOSTS)
        add_routes(&json, config);
    for (size_t i = 0; kind == LEAT_SECTION_CERTIFICATES && i < config->certificates.count; i++)
        add_item(&json, config->certificates.at[i].name,
                 certificate_json(&config->certificates.at[i]));
    for (size_t i = 0; kind == LEAT_SECTION_BACKENDS && i < config->backends.count; i++)
        add_item(&json, config->backends.at[i].name, backend_json(&config->backends.at[i]));
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
    case LEAT_SECTION_CERTIFICATES:
    case LEAT_SECTION_BACKENDS:
    case LEAT_SECTION_FARMS:
    case LEAT_SECTION_VHOSTS:
        leat_json_add(json, section->name, map_json(config, section->kind));
        break;
    case LEAT_SECTION_DEFAULT:
        if (config->routes.count > 0 && first->vhost == NULL)
            leat_json_add(json, section->name, item_json(first, section->table));
        break;
    case LEAT_SECTION_KEYS:
        leat_json_add(json, section->name,
                      keys_json(&(struct shown){
                          .base = config, .table = section->table, .section = section->name}));
    }
}

json_t *leat_config_json(const struct leat_config *config)
{
    struct leat_json json;

    leat_json_begin(&json);
    for (size_t i = 0; i < LEAT_SECTIONS; i++)
        add_section(&json, config, &leat_sections[i]);
    add_keys(&json, &(struct shown){.base = config, .table = &leat_config_table, .section = ""});
    return leat_json_end(&json);
}
