/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/config_judge.h"

#include <string.h>

#include "base/assert.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "proxy/config_keys.h"

/* Every number is in its range, or was never set. */
static void check_numbers(const struct leat_config *config)
{
    for (size_t i = 0; i < leat_config_table.count; i++) {
        const struct leat_key *key = &leat_config_table.keys[i];
        uint64_t value;

        if (key->kind < LEAT_KEY_COUNT)
            continue;
        memcpy(&value, (const char *)config + key->offset, sizeof(value));
        LEAT_ASSERT((key->initial == NULL && value == 0) ||
                    (value >= key->min && value <= key->max));
    }
}

static void check_farms(const struct leat_config *config)
{
    LEAT_ASSERT(config->farms.count > 0 && config->farms.count <= LEAT_CONFIG_FARMS_MAX);
    for (size_t i = 0; i < config->farms.count; i++) {
        const struct leat_farm_config *farm = &config->farms.at[i];

        LEAT_ASSERT(farm->count > 0 && farm->count <= config->backends.count);
        for (size_t j = 0; j < farm->count; j++)
            LEAT_ASSERT(farm->backends[j] < config->backends.count);
    }
}

static void check_routes(const struct leat_config *config)
{
    LEAT_ASSERT(config->routes.count > 0 && config->routes.count <= LEAT_CONFIG_ROUTES_MAX);
    for (size_t i = 0; i < config->routes.count; i++) {
        const struct leat_route_config *route = &config->routes.at[i];

        LEAT_ASSERT(route->farm < config->farms.count);
        LEAT_ASSERT((route->farm_name == NULL) != (route->backend_name == NULL));
        LEAT_ASSERT(route->vhost == NULL ||
                    leat_config_find_route(config, leat_str_of(route->vhost)) == route);
    }
}

static void check_ends(const struct leat_config *config)
{
    LEAT_ASSERT(config->listeners.count > 0 &&
                config->listeners.count <= LEAT_CONFIG_LISTENERS_MAX);
    LEAT_ASSERT(config->backends.count > 0 && config->backends.count <= LEAT_CONFIG_BACKENDS_MAX);
    for (size_t i = 0; i < config->listeners.count; i++) {
        const struct leat_listener_config *listener = &config->listeners.at[i];

        LEAT_ASSERT(listener->endpoint.addr.len > 0);
        LEAT_ASSERT(listener->endpoint.tls == (listener->tls.cert != NULL));
        LEAT_ASSERT(listener->endpoint.tls == (listener->tls.key != NULL));
    }
    for (size_t i = 0; i < config->backends.count; i++) {
        const struct leat_backend_config *backend = &config->backends.at[i];

        LEAT_ASSERT(backend->endpoint.port > 0 || leat_endpoint_is_unix(&backend->endpoint));
        LEAT_ASSERT(*backend->name != '\0');
        LEAT_ASSERT(backend->weight >= 1 && backend->weight <= 100);
        LEAT_ASSERT(backend->endpoint.tls ||
                    (backend->tls.ca == NULL && backend->verify_name == NULL));
    }
}

void config_judge_finish(struct leat_config *config)
{
    struct leat_error err = {.text = ""};
    enum leat_status status = leat_config_finish(config, &err);

    if (status != LEAT_OK) {
        LEAT_ASSERT(status == LEAT_EUSAGE || status == LEAT_ENOMEM);
        fuzz_check_error(status, &err);
        return;
    }
    LEAT_ASSERT(config->drain_close_after_ms <= config->drain_close_until_ms &&
                config->drain_close_until_ms <= config->drain_end_ms);
    LEAT_ASSERT(config->heartbeat_ms % 1000 == 0);
    check_numbers(config);
    check_ends(config);
    check_farms(config);
    check_routes(config);
}
