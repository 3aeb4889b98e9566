/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/config.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config_keys.h"
#include "proxy/config_place.h"
#include "proxy/config_suggest.h"

static enum leat_status no_memory(struct leat_error *err)
{
    (void)leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    return LEAT_ENOMEM;
}

enum leat_status leat_config_new(struct leat_config **out, struct leat_error *err)
{
    struct leat_config *config = leat_mem_zalloc(sizeof(*config));

    if (config == NULL)
        return no_memory(err);
    enum leat_status status = leat_key_set_defaults(config, &leat_config_table, err);
    if (status != LEAT_OK) {
        leat_config_free(config);
        return status;
    }
    *out = config;
    return LEAT_OK;
}

void leat_config_free(struct leat_config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->listeners.count; i++) {
        leat_endpoint_fini(&config->listeners.at[i].endpoint);
        leat_key_free_all(&config->listeners.at[i], &leat_listener_table);
    }
    for (size_t i = 0; i < config->certificates.count; i++) {
        leat_mem_free(config->certificates.at[i].name);
        leat_key_free_all(&config->certificates.at[i], &leat_certificate_table);
    }
    for (size_t i = 0; i < config->backends.count; i++) {
        leat_mem_free(config->backends.at[i].name);
        leat_endpoint_fini(&config->backends.at[i].endpoint);
        leat_key_free_all(&config->backends.at[i], &leat_backend_table);
    }
    for (size_t i = 0; i < config->farms.count; i++) {
        leat_mem_free(config->farms.at[i].name);
        leat_key_free_all(&config->farms.at[i], &leat_farm_table);
    }
    for (size_t i = 0; i < config->routes.count; i++) {
        leat_mem_free(config->routes.at[i].vhost);
        leat_key_free_all(&config->routes.at[i], &leat_route_table);
    }
    leat_mem_free(config->listeners.at);
    leat_mem_free(config->certificates.at);
    leat_mem_free(config->backends.at);
    leat_mem_free(config->farms.at);
    leat_mem_free(config->routes.at);
    leat_key_free_all(config, &leat_short_table);
    leat_key_free_all(config, &leat_config_table);
    leat_mem_free(config->file);
    leat_mem_free(config);
}

static enum leat_status check_count(size_t count, size_t max, struct leat_error *err)
{
    if (count < max)
        return LEAT_OK;
    return leat_error_set(err, LEAT_EUSAGE, 0, "at most %zu are allowed", max);
}

static enum leat_status check_name(struct leat_str name, struct leat_error *err)
{
    if (name.len > LEAT_CONFIG_NAME_MAX)
        return leat_error_set(err, LEAT_EUSAGE, 0, "expected a name of at most %d bytes, got %zu",
                              LEAT_CONFIG_NAME_MAX, name.len);
    if (name.len > 0 && memchr(name.ptr, '\0', name.len) != NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0, "expected a name without a NUL byte");
    return LEAT_OK;
}

/* LINE: where the one that has the name already stands. */
static enum leat_status refuse_twin(unsigned line, struct leat_error *err)
{
    if (line == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0, "is there already");
    return leat_error_set(err, LEAT_EUSAGE, 0, "is there already, in line %u", line);
}

enum leat_status leat_config_add_listener(struct leat_config *config, unsigned line,
                                          struct leat_listener_config **out, struct leat_error *err)
{
    struct leat_listener_config listener = {.line = line};
    enum leat_status status = check_count(config->listeners.count, LEAT_CONFIG_LISTENERS_MAX, err);

    if (status == LEAT_OK)
        status = leat_key_set_defaults(&listener, &leat_listener_table, err);
    if (status != LEAT_OK)
        return status;
    void *at = leat_config_grow(config->listeners.at, config->listeners.count, sizeof(listener));
    if (at == NULL)
        return no_memory(err);
    config->listeners.at = at;
    *out = &config->listeners.at[config->listeners.count++];
    **out = listener;
    return LEAT_OK;
}

static enum leat_status check_item_name(struct leat_str name, struct leat_error *err)
{
    enum leat_status status = check_name(name, err);

    if (status == LEAT_OK && name.len == 0)
        status = leat_error_set(err, LEAT_EUSAGE, 0, "expected a name, got \"\"");
    return status;
}

const struct leat_certificate_config *leat_config_find_certificate(const struct leat_config *config,
                                                                   const char *name)
{
    for (size_t i = 0; i < config->certificates.count; i++) {
        if (strcmp(config->certificates.at[i].name, name) == 0)
            return &config->certificates.at[i];
    }
    return NULL;
}

enum leat_status leat_config_add_certificate(struct leat_config *config, unsigned line,
                                             struct leat_str name,
                                             struct leat_certificate_config **out,
                                             struct leat_error *err)
{
    struct leat_certificate_config certificate = {.line = line};
    enum leat_status status =
        check_count(config->certificates.count, LEAT_CONFIG_CERTIFICATES_MAX, err);

    if (status == LEAT_OK)
        status = check_item_name(name, err);
    if (status == LEAT_OK)
        status = leat_key_set_defaults(&certificate, &leat_certificate_table, err);
    if (status != LEAT_OK)
        return status;
    void *at =
        leat_config_grow(config->certificates.at, config->certificates.count, sizeof(certificate));
    if (at == NULL)
        return no_memory(err);
    config->certificates.at = at;
    certificate.name = leat_mem_dup(name);
    if (certificate.name == NULL)
        return no_memory(err);
    const struct leat_certificate_config *twin =
        leat_config_find_certificate(config, certificate.name);
    if (twin != NULL) {
        leat_mem_free(certificate.name);
        return refuse_twin(twin->line, err);
    }
    *out = &config->certificates.at[config->certificates.count++];
    **out = certificate;
    return LEAT_OK;
}

static enum leat_status check_new_backend(const struct leat_config *config, struct leat_str name,
                                          struct leat_error *err)
{
    enum leat_status status = check_count(config->backends.count, LEAT_CONFIG_BACKENDS_MAX, err);

    if (status == LEAT_OK)
        status = check_item_name(name, err);
    for (size_t i = 0; status == LEAT_OK && i < config->backends.count; i++) {
        if (leat_str_equal(leat_str_of(config->backends.at[i].name), name))
            status = refuse_twin(config->backends.at[i].line, err);
    }
    return status;
}

enum leat_status leat_config_add_backend(struct leat_config *config, unsigned line,
                                         struct leat_str name, struct leat_backend_config **out,
                                         struct leat_error *err)
{
    struct leat_backend_config backend = {.line = line};
    enum leat_status status = check_new_backend(config, name, err);

    if (status == LEAT_OK)
        status = leat_key_set_defaults(&backend, &leat_backend_table, err);
    if (status != LEAT_OK)
        return status;
    void *at = leat_config_grow(config->backends.at, config->backends.count, sizeof(backend));
    if (at == NULL)
        return no_memory(err);
    config->backends.at = at;
    backend.name = leat_mem_dup(name);
    if (backend.name == NULL)
        return no_memory(err);
    *out = &config->backends.at[config->backends.count++];
    **out = backend;
    return LEAT_OK;
}

enum leat_status leat_config_append_farm(struct leat_config *config, unsigned line,
                                         struct leat_str name, struct leat_farm_config **out,
                                         struct leat_error *err)
{
    struct leat_farm_config farm = {.line = line};
    enum leat_status status = check_count(config->farms.count, LEAT_CONFIG_FARMS_MAX, err);

    if (status == LEAT_OK)
        status = leat_key_set_defaults(&farm, &leat_farm_table, err);
    if (status != LEAT_OK)
        return status;
    void *at = leat_config_grow(config->farms.at, config->farms.count, sizeof(farm));
    if (at == NULL)
        return no_memory(err);
    config->farms.at = at;
    farm.name = leat_mem_dup(name);
    if (farm.name == NULL)
        return no_memory(err);
    *out = &config->farms.at[config->farms.count++];
    **out = farm;
    return LEAT_OK;
}

enum leat_status leat_config_add_farm(struct leat_config *config, unsigned line,
                                      struct leat_str name, struct leat_farm_config **out,
                                      struct leat_error *err)
{
    enum leat_status status = check_name(name, err);

    if (status == LEAT_OK && name.len == 0)
        status = leat_error_set(err, LEAT_EUSAGE, 0, "expected a name, got \"\"");
    for (size_t i = 0; status == LEAT_OK && i < config->farms.count; i++) {
        if (leat_str_equal(leat_str_of(config->farms.at[i].name), name))
            status = refuse_twin(config->farms.at[i].line, err);
    }
    if (status != LEAT_OK)
        return status;
    return leat_config_append_farm(config, line, name, out, err);
}

enum leat_status leat_config_add_route(struct leat_config *config, unsigned line,
                                       struct leat_str vhost, struct leat_route_config **out,
                                       struct leat_error *err)
{
    struct leat_route_config route = {.line = line};
    enum leat_status status = check_count(config->routes.count, LEAT_CONFIG_ROUTES_MAX, err);

    if (status == LEAT_OK)
        status = check_name(vhost, err);
    if (status == LEAT_OK)
        status = leat_key_set_defaults(&route, &leat_route_table, err);
    if (status != LEAT_OK)
        return status;
    void *at = leat_config_grow(config->routes.at, config->routes.count, sizeof(route));
    if (at == NULL)
        return no_memory(err);
    config->routes.at = at;
    if (vhost.ptr != NULL) {
        route.vhost = leat_mem_dup(vhost);
        if (route.vhost == NULL)
            return no_memory(err);
    }
    *out = &config->routes.at[config->routes.count++];
    **out = route;
    return LEAT_OK;
}

static struct leat_str option_of(const struct leat_key *key)
{
    return leat_str_of(key->option != NULL ? key->option : key->name);
}

static const struct leat_key *find_in(const struct leat_key_table *table, struct leat_str option)
{
    for (size_t i = 0; option.len > 0 && i < table->count; i++) {
        if (leat_str_equal(option_of(&table->keys[i]), option))
            return &table->keys[i];
    }
    return NULL;
}

static const struct leat_key *find_option(struct leat_str option)
{
    const struct leat_key *key = find_in(&leat_short_table, option);

    return key != NULL ? key : find_in(&leat_config_table, option);
}

bool leat_config_has_option(struct leat_str name)
{
    return find_option(name) != NULL;
}

bool leat_config_is_flag(struct leat_str name)
{
    const struct leat_key *key = find_option(name);
    return key != NULL && key->kind == LEAT_KEY_FLAG;
}

/* --listen and --backend make a new item each; a backend is called by its address. */
static enum leat_status add_endpoint(struct leat_config *config, const struct leat_key *key,
                                     struct leat_str value, struct leat_error *err)
{
    struct leat_listener_config *listener;
    struct leat_backend_config *backend;
    struct leat_endpoint endpoint;
    char name[LEAT_ENDPOINT_TEXT_MAX];
    enum leat_status status =
        leat_endpoint_parse(value, (uint16_t)key->min, (uint16_t)key->max, &endpoint, err);

    if (status != LEAT_OK)
        return status;
    if (key->offset == offsetof(struct leat_config, listeners)) {
        status = leat_config_add_listener(config, 0, &listener, err);
        if (status == LEAT_OK)
            listener->endpoint = endpoint;
        else
            leat_endpoint_fini(&endpoint);
        return status;
    }
    (void)leat_endpoint_text(&endpoint, name);
    status = leat_config_add_backend(config, 0, leat_str_of(name), &backend, err);
    if (status == LEAT_OK) {
        backend->endpoint = endpoint;
        return LEAT_OK;
    }
    leat_endpoint_fini(&endpoint);
    return leat_error_set(err, status, 0, "\"%s\": %s", name, err->text);
}

/* A value is refused rather than ignored: "--trace=off" would switch it on. */
static enum leat_status set_flag(struct leat_config *config, const struct leat_key *key,
                                 struct leat_str value, struct leat_error *err)
{
    char buf[120];
    struct leat_text quoted;

    if (value.len == 0)
        return leat_key_set(config, key, leat_str_of("true"), err);
    leat_text_init(&quoted, buf, sizeof(buf));
    leat_place_add_value(&quoted, value);
    return leat_error_set(err, LEAT_EUSAGE, 0, "takes no value, got %s", buf);
}

static enum leat_status set_option(struct leat_config *config, const struct leat_key *key,
                                   struct leat_str value, struct leat_error *err)
{
    bool is_short = find_in(&leat_short_table, option_of(key)) != NULL;
    enum leat_status status;
    char file[120];
    struct leat_text text;

    leat_text_init(&text, file, sizeof(file));
    leat_place_add_file_name(&text, config->file);
    if (is_short && config->file != NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "is not taken beside a file: put it into %s, as %s", file, key->name);
    if (key->kind == LEAT_KEY_ENDPOINT)
        return add_endpoint(config, key, value, err);
    if (key->kind == LEAT_KEY_FLAG)
        status = set_flag(config, key, value, err);
    else
        status = leat_key_set(config, key, value, err);
    if (status == LEAT_OK && !is_short)
        config->key_lines[key - leat_config_table.keys] = 0;
    return status;
}

static enum leat_status unknown_option(struct leat_str name, struct leat_error *err)
{
    struct leat_suggest suggest;
    const struct leat_key_table *const tables[] = {&leat_short_table, &leat_config_table};
    char buf[120];
    struct leat_text shown;

    leat_text_init(&shown, buf, sizeof(buf));
    leat_place_add_name(&shown, name);
    leat_suggest_init(&suggest, name);
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (size_t i = 0; i < tables[t]->count; i++)
            leat_suggest_offer(&suggest, option_of(&tables[t]->keys[i]));
    }
    if (suggest.nearest.ptr == NULL)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "unknown option --%s; see leat --help for those there are", buf);
    return leat_error_set(err, LEAT_EUSAGE, 0,
                          "unknown option --%s; did you mean --%.*s? See leat --help", buf,
                          (int)suggest.nearest.len, suggest.nearest.ptr);
}

enum leat_status leat_config_set_option(struct leat_config *config, struct leat_str name,
                                        struct leat_str value, struct leat_error *err)
{
    const struct leat_key *key = find_option(name);
    struct leat_error why = {.text = ""};

    if (key == NULL)
        return unknown_option(name, err);
    enum leat_status status = set_option(config, key, value, &why);
    if (status == LEAT_OK)
        return LEAT_OK;
    return leat_error_set(err, status, why.sys, "--%.*s: %s", (int)name.len, name.ptr, why.text);
}

/* Compares as leat_config_finish() has sorted. */
static int compare(struct leat_str vhost, const struct leat_route_config *route)
{
    size_t len = strlen(route->vhost);
    size_t common = vhost.len < len ? vhost.len : len;
    int order = (common == 0) ? 0 : memcmp(vhost.ptr, route->vhost, common);

    return order != 0 ? order : (vhost.len > len) - (vhost.len < len);
}

const struct leat_route_config *leat_config_find_route(const struct leat_config *config,
                                                       struct leat_str vhost)
{
    const struct leat_route_config *routes = config->routes.at, *fallback = NULL;
    size_t from = 0, to = config->routes.count;

    if (to > 0 && routes[0].vhost == NULL)
        fallback = &routes[from++];
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare(vhost, &routes[middle]);
        if (order == 0)
            return &routes[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return fallback;
}

bool leat_config_is_loopback_user(const struct leat_config *config, struct leat_str user)
{
    for (size_t i = 0; i < config->loopback_users.count; i++) {
        if (leat_str_equal(leat_str_of(config->loopback_users.at[i]), user))
            return true;
    }
    return false;
}
