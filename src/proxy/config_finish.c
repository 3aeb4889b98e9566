/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config.h"
#include "proxy/config_check.h"
#include "proxy/config_keys.h"
#include "proxy/config_place.h"
#include "proxy/config_suggest.h"

static enum leat_status no_memory(struct leat_error *err)
{
    return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
}

#define LISTENER_KEY(member)                                                                       \
    leat_key_at(&leat_listener_table, offsetof(struct leat_listener_config, member))
#define BACKEND_KEY(member)                                                                        \
    leat_key_at(&leat_backend_table, offsetof(struct leat_backend_config, member))
#define FARM_KEY(member) leat_key_at(&leat_farm_table, offsetof(struct leat_farm_config, member))
#define ROUTE_KEY(member) leat_key_at(&leat_route_table, offsetof(struct leat_route_config, member))

static bool lacks_certificate(const struct leat_config *config)
{
    for (size_t i = 0; i < config->listeners.count; i++) {
        const struct leat_listener_config *listener = &config->listeners.at[i];
        if (listener->endpoint.tls && ((listener->tls.cert == NULL && config->cert == NULL) ||
                                       (listener->tls.key == NULL && config->key == NULL)))
            return true;
    }
    return false;
}

static bool has_tls_backend(const struct leat_config *config)
{
    for (size_t i = 0; i < config->backends.count; i++) {
        if (config->backends.at[i].endpoint.tls)
            return true;
    }
    return false;
}

static const char numeric[] =
    "a listener has a numeric address, such as 0.0.0.0, 127.0.0.1 or [::], and no name";

static bool lacks_port(const struct leat_endpoint *endpoint)
{
    return endpoint->port == 0 && !leat_endpoint_is_unix(endpoint);
}

/* The short form, in the words of the command line. */
static enum leat_status check_options(const struct leat_config *config, struct leat_error *err)
{
    if (config->listeners.count == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "no --listen: say where clients connect, such as "
                              "--listen amqps://0.0.0.0:5671");
    if (config->backends.count == 0)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "no --backend: say where the broker is, such as "
                              "--backend amqp://127.0.0.1:5672");
    for (size_t i = 0; i < config->listeners.count; i++) {
        if (config->listeners.at[i].endpoint.host != NULL)
            return leat_error_set(err, LEAT_EUSAGE, 0, "--listen \"%s\": %s",
                                  config->listeners.at[i].endpoint.host, numeric);
    }
    for (size_t i = 0; i < config->backends.count; i++) {
        if (lacks_port(&config->backends.at[i].endpoint))
            return leat_error_set(err, LEAT_EUSAGE, 0, "--backend \"%s\": a backend has a port",
                                  config->backends.at[i].name);
    }
    if (lacks_certificate(config))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "an amqps:// listener needs --cert FILE and --key FILE");
    if ((config->cert == NULL) != (config->key == NULL))
        return leat_error_set(err, LEAT_EUSAGE, 0, "--cert FILE and --key FILE need each other");
    if (!has_tls_backend(config) && (config->backend_ca != NULL || config->backend_name != NULL))
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "--backend-ca and --backend-name need an amqps:// --backend");
    if (config->backend_name != NULL && *config->backend_name == '\0')
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "--backend-name: expected a name that certificates can be for");
    return LEAT_OK;
}

/* Gives *TEXT a copy of COMMON, unless there is none or it has a value of its own. */
static enum leat_status take_over(char **text, const char *common, struct leat_error *err)
{
    if (common == NULL || *text != NULL)
        return LEAT_OK;
    *text = leat_mem_dup(leat_str_of(common));
    return *text == NULL ? no_memory(err) : LEAT_OK;
}

static enum leat_status spread_options(struct leat_config *config, struct leat_error *err)
{
    enum leat_status status = LEAT_OK;

    for (size_t i = 0; status == LEAT_OK && i < config->listeners.count; i++) {
        struct leat_listener_config *listener = &config->listeners.at[i];
        if (!listener->endpoint.tls)
            continue;
        status = take_over(&listener->tls.cert, config->cert, err);
        if (status == LEAT_OK)
            status = take_over(&listener->tls.key, config->key, err);
    }
    for (size_t i = 0; status == LEAT_OK && i < config->backends.count; i++) {
        struct leat_backend_config *backend = &config->backends.at[i];
        if (!backend->endpoint.tls)
            continue;
        status = take_over(&backend->tls.ca, config->backend_ca, err);
        if (status == LEAT_OK)
            status = take_over(&backend->verify_name, config->backend_name, err);
    }
    return status;
}

/* Whether an earlier listener has the address of the one at INDEX. Port 0 is any. */
static bool is_listened_on(const struct leat_config *config, size_t index)
{
    const struct leat_addr *addr = &config->listeners.at[index].endpoint.addr;

    for (size_t i = 0; i < index && !lacks_port(&config->listeners.at[index].endpoint); i++) {
        const struct leat_addr *other = &config->listeners.at[i].endpoint.addr;
        if (leat_addr_is_served_by(addr, other) || leat_addr_is_served_by(other, addr))
            return true;
    }
    return false;
}

static enum leat_status check_listener(struct leat_config_check *check, size_t index)
{
    struct leat_listener_config *listener = &check->config->listeners.at[index];
    char text[LEAT_ADDR_TEXT_MAX];

    leat_config_check_enter(check, LEAT_SECTION_LISTENERS, NULL, listener->line,
                            listener->key_lines);
    leat_text_add(&check->path, "[%zu]", index);
    if (!leat_endpoint_is_given(&listener->endpoint))
        return leat_config_check_wrong(check, LISTENER_KEY(endpoint), "is missing");
    if (listener->endpoint.host != NULL)
        return leat_config_check_wrong(check, LISTENER_KEY(endpoint), "%s, got \"%s\"", numeric,
                                       listener->endpoint.host);
    if (is_listened_on(check->config, index))
        return leat_config_check_wrong(check, LISTENER_KEY(endpoint), "%s is there twice",
                                       leat_addr_text(&listener->endpoint.addr, text));
    return leat_config_check_socket(check, listener);
}

static enum leat_status check_listeners(struct leat_config_check *check)
{
    enum leat_status status = LEAT_OK;

    leat_config_check_enter(check, LEAT_SECTION_LISTENERS, NULL, 0, NULL);
    if (check->config->listeners.count == 0)
        return leat_config_check_wrong(check, NULL,
                                       "expected at least one: say where clients connect");
    for (size_t i = 0; status == LEAT_OK && i < check->config->listeners.count; i++)
        status = check_listener(check, i);
    return status;
}

/* Whether BACKEND is a listener of this very leat: each session would beget another. */
static bool leads_back(const struct leat_config *config, const struct leat_backend_config *backend)
{
    for (size_t i = 0; i < config->listeners.count; i++) {
        if (leat_addr_is_served_by(&backend->endpoint.addr, &config->listeners.at[i].endpoint.addr))
            return true;
    }
    return false;
}

static enum leat_status check_backend(struct leat_config_check *check,
                                      const struct leat_backend_config *backend)
{
    leat_config_check_enter(check, LEAT_SECTION_BACKENDS, backend->name, backend->line,
                            backend->key_lines);
    if (!leat_endpoint_is_given(&backend->endpoint))
        return leat_config_check_wrong(check, BACKEND_KEY(endpoint), "is missing");
    if (lacks_port(&backend->endpoint))
        return leat_config_check_wrong(check, BACKEND_KEY(endpoint), "a backend has a port, got 0");
    if (leads_back(check->config, backend))
        return leat_config_check_wrong(
            check, BACKEND_KEY(endpoint),
            "it is a listener of this leat: sessions would go round in a circle");
    return LEAT_OK;
}

static enum leat_status check_backends(struct leat_config_check *check)
{
    enum leat_status status = LEAT_OK;

    leat_config_check_enter(check, LEAT_SECTION_BACKENDS, NULL, 0, NULL);
    if (check->config->backends.count == 0)
        return leat_config_check_wrong(check, NULL,
                                       "expected at least one: say where the broker is");
    for (size_t i = 0; status == LEAT_OK && i < check->config->backends.count; i++)
        status = check_backend(check, &check->config->backends.at[i]);
    return status;
}

/* Returns the index of the backend called NAME, or their count. */
static size_t find_backend(const struct leat_config *config, const char *name)
{
    size_t i = 0;

    while (i < config->backends.count && strcmp(config->backends.at[i].name, name) != 0)
        i++;
    return i;
}

/* Likewise of a farm. */
static size_t find_farm(const struct leat_config_check *check, const char *name)
{
    size_t i = 0;

    while (i < check->farms && strcmp(check->config->farms.at[i].name, name) != 0)
        i++;
    return i;
}

/* Says that KEY names a backend, or a farm, NAME that there is not, and what was likely meant. */
static enum leat_status no_such(const struct leat_config_check *check, const struct leat_key *key,
                                const char *kind, const char *name)
{
    const struct leat_config *config = check->config;
    bool is_farm = key == ROUTE_KEY(farm_name), is_backend = key == ROUTE_KEY(backend_name);
    struct leat_suggest suggest;
    char buf[80];
    struct leat_text quoted;

    leat_text_init(&quoted, buf, sizeof(buf));
    leat_text_add_quoted(&quoted, leat_str_of(name));
    if (is_farm && find_backend(config, name) < config->backends.count)
        return leat_config_check_wrong(check, key, "no %s is called %s, but a backend: use %s",
                                       kind, buf, ROUTE_KEY(backend_name)->name);
    if (is_backend && find_farm(check, name) < check->farms)
        return leat_config_check_wrong(check, key, "no %s is called %s, but a farm: use %s", kind,
                                       buf, ROUTE_KEY(farm_name)->name);
    leat_suggest_init(&suggest, leat_str_of(name));
    for (size_t i = 0; is_farm && i < check->farms; i++)
        leat_suggest_offer(&suggest, leat_str_of(config->farms.at[i].name));
    for (size_t i = 0; !is_farm && i < config->backends.count; i++)
        leat_suggest_offer(&suggest, leat_str_of(config->backends.at[i].name));
    return leat_config_check_wrong(check, key, "no %s is called %s; %s", kind, buf,
                                   leat_suggest_finish(&suggest));
}

static enum leat_status resolve_farm(struct leat_config_check *check, struct leat_farm_config *farm)
{
    const struct leat_key *key = FARM_KEY(backend_names);
    bool has[LEAT_CONFIG_BACKENDS_MAX] = {false};

    leat_config_check_enter(check, LEAT_SECTION_FARMS, farm->name, farm->line, farm->key_lines);
    farm->count = 0;
    if (farm->backend_names.count == 0)
        return leat_config_check_wrong(check, key, "expected at least one");
    for (size_t i = 0; i < farm->backend_names.count; i++) {
        const char *name = farm->backend_names.at[i];
        size_t backend = find_backend(check->config, name);
        if (backend == check->config->backends.count)
            return no_such(check, key, "backend", name);
        if (has[backend]) {
            char buf[80];
            struct leat_text quoted;
            leat_text_init(&quoted, buf, sizeof(buf));
            leat_text_add_quoted(&quoted, leat_str_of(name));
            return leat_config_check_wrong(
                check, key, "%s is there twice; a weight gives it more sessions", buf);
        }
        has[backend] = true;
        farm->backends[farm->count++] = (uint8_t)backend;
    }
    return LEAT_OK;
}

/* The farms that serve vhosts with one backend each: index of leat_config.farms and 1; 0: not made
 * yet. */
struct singles {
    size_t farm[LEAT_CONFIG_BACKENDS_MAX];
};

static enum leat_status find_single(struct leat_config_check *check, struct singles *singles,
                                    size_t backend, size_t *out)
{
    struct leat_config *config = check->config;
    struct leat_farm_config *farm;
    struct leat_error why = {.text = ""};

    if (singles->farm[backend] == 0) {
        enum leat_status status = leat_config_append_farm(
            config, check->line, leat_str_of(config->backends.at[backend].name), &farm, &why);
        if (status == LEAT_EUSAGE)
            return leat_config_check_wrong(
                check, NULL, "a farm of this backend would be one too many: %s", why.text);
        if (status != LEAT_OK)
            return no_memory(check->err);
        farm->backends[farm->count++] = (uint8_t)backend;
        singles->farm[backend] = config->farms.count;
    }
    *out = singles->farm[backend] - 1;
    return LEAT_OK;
}

static enum leat_status resolve_route(struct leat_config_check *check,
                                      struct leat_route_config *route, struct singles *singles)
{
    struct leat_config *config = check->config;

    leat_config_check_enter(check,
                            route->vhost == NULL ? LEAT_SECTION_DEFAULT : LEAT_SECTION_VHOSTS,
                            route->vhost, route->line, route->key_lines);
    if ((route->farm_name == NULL) == (route->backend_name == NULL))
        return leat_config_check_wrong(check, NULL, "expected either %s or %s, got %s",
                                       ROUTE_KEY(farm_name)->name, ROUTE_KEY(backend_name)->name,
                                       route->farm_name == NULL ? "none" : "both");
    if (route->backend_name != NULL) {
        size_t backend = find_backend(config, route->backend_name);
        if (backend == config->backends.count)
            return no_such(check, ROUTE_KEY(backend_name), "backend", route->backend_name);
        return find_single(check, singles, backend, &route->farm);
    }
    route->farm = find_farm(check, route->farm_name);
    if (route->farm < check->farms)
        return LEAT_OK;
    return no_such(check, ROUTE_KEY(farm_name), "farm", route->farm_name);
}

/* By the bytes of the vhost, the default first; the same vhost by line. */
static int compare(const void *left, const void *right)
{
    const struct leat_route_config *a = left, *b = right;
    int order;

    if (a->vhost == NULL || b->vhost == NULL)
        order = (a->vhost != NULL) - (b->vhost != NULL);
    else
        order = strcmp(a->vhost, b->vhost);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

static enum leat_status sort_routes(struct leat_config_check *check)
{
    struct leat_config *config = check->config;
    const struct leat_route_config *routes = config->routes.at;

    qsort(config->routes.at, config->routes.count, sizeof(routes[0]), compare);
    for (size_t i = 1; i < config->routes.count; i++) {
        const char *vhost = routes[i].vhost, *last = routes[i - 1].vhost;
        if (vhost != last && (vhost == NULL || last == NULL || strcmp(vhost, last) != 0))
            continue;
        leat_config_check_enter(check, vhost == NULL ? LEAT_SECTION_DEFAULT : LEAT_SECTION_VHOSTS,
                                vhost, routes[i].line, NULL);
        if (routes[i - 1].line == 0)
            return leat_config_check_wrong(check, NULL, "is there already");
        return leat_config_check_wrong(check, NULL, "is there already, in line %u",
                                       routes[i - 1].line);
    }
    return LEAT_OK;
}

/* What is meant where neither farms nor routes are given. */
static enum leat_status make_farm_of_all(struct leat_config *config, struct leat_error *err)
{
    static const struct leat_str name = LEAT_STR_INIT("default");
    struct leat_farm_config *farm;
    struct leat_route_config *route;
    enum leat_status status = leat_config_append_farm(config, 0, name, &farm, err);

    for (size_t i = 0; status == LEAT_OK && i < config->backends.count; i++)
        status = leat_key_add_name(farm, FARM_KEY(backend_names),
                                   leat_str_of(config->backends.at[i].name), err);
    if (status == LEAT_OK)
        status = leat_config_add_route(config, 0, (struct leat_str){NULL, 0}, &route, err);
    if (status != LEAT_OK)
        return status;
    return leat_key_set(route, ROUTE_KEY(farm_name), name, err);
}

static enum leat_status resolve_names(struct leat_config_check *check)
{
    struct leat_config *config = check->config;
    struct singles singles = {{0}};
    enum leat_status status = LEAT_OK;

    if (config->farms.count == 0 && config->routes.count == 0)
        status = make_farm_of_all(config, check->err);
    check->farms = config->farms.count;
    for (size_t i = 0; status == LEAT_OK && i < check->farms; i++)
        status = resolve_farm(check, &config->farms.at[i]);
    leat_config_check_enter(check, LEAT_SECTION_VHOSTS, NULL, 0, NULL);
    if (status == LEAT_OK && config->routes.count == 0)
        return leat_config_check_wrong(check, NULL,
                                       "no farm serves any vhost: name vhosts, or a default");
    if (status == LEAT_OK)
        status = sort_routes(check);
    for (size_t i = 0; status == LEAT_OK && i < config->routes.count; i++)
        status = resolve_route(check, &config->routes.at[i], &singles);
    return status;
}

/* The place of a value of the configuration itself: a line of the file, or an option. */
static unsigned line_of(const struct leat_config *config, size_t offset, const char **out_option)
{
    const struct leat_key *key = leat_key_at(&leat_config_table, offset);
    unsigned line = config->key_lines[key - leat_config_table.keys];

    *out_option = (line == 0) ? "--" : "";
    return line;
}

static enum leat_status wrong_value(const struct leat_config *config, unsigned line,
                                    const char *sentence, struct leat_error *err)
{
    char buf[sizeof(err->text)];
    struct leat_text text;

    leat_text_init(&text, buf, sizeof(buf));
    if (line != 0)
        leat_place_add_file(&text, config->file, line);
    return leat_error_set(err, LEAT_EUSAGE, 0, "%s%s", buf, sentence);
}

static enum leat_status check_control(const struct leat_config *config, struct leat_error *err)
{
    struct leat_addr addr;
    struct leat_error why;

    if (config->control_socket == NULL ||
        leat_addr_from_path(leat_str_of(config->control_socket), &addr, &why) == LEAT_OK)
        return LEAT_OK;
    return leat_config_check_wrong_value(config, offsetof(struct leat_config, control_socket), err,
                                         "%s", why.text);
}

static enum leat_status check_values(const struct leat_config *config, struct leat_error *err)
{
    static const size_t drain[3] = {offsetof(struct leat_config, drain_close_after_ms),
                                    offsetof(struct leat_config, drain_close_until_ms),
                                    offsetof(struct leat_config, drain_end_ms)};
    const char *dash[3];
    unsigned line, last = 0;
    char buf[160];

    if (config->heartbeat_ms % 1000 != 0)
        return leat_config_check_wrong_value(config, offsetof(struct leat_config, heartbeat_ms),
                                             err, "expected whole seconds, got %llums",
                                             (unsigned long long)config->heartbeat_ms);
    if (config->drain_close_until_ms >= config->drain_close_after_ms &&
        config->drain_end_ms >= config->drain_close_until_ms)
        return LEAT_OK;
    for (size_t i = 0; i < 3; i++) {
        line = line_of(config, drain[i], &dash[i]);
        last = line > last ? line : last;
    }
    for (size_t i = 0; i < 3 && last != 0; i++)
        dash[i] = "";
    (void)snprintf(buf, sizeof(buf), "expected %s%s <= %s%s <= %s%s, got %llums, %llums, %llums",
                   dash[0], leat_key_at(&leat_config_table, drain[0])->name, dash[1],
                   leat_key_at(&leat_config_table, drain[1])->name, dash[2],
                   leat_key_at(&leat_config_table, drain[2])->name,
                   (unsigned long long)config->drain_close_after_ms,
                   (unsigned long long)config->drain_close_until_ms,
                   (unsigned long long)config->drain_end_ms);
    return wrong_value(config, last, buf, err);
}

enum leat_status leat_config_finish(struct leat_config *config, struct leat_error *err)
{
    struct leat_error why = {.text = ""};
    struct leat_config_check check = {.config = config, .err = err != NULL ? err : &why};
    enum leat_status status = LEAT_OK;

    if (config->file == NULL) {
        status = check_options(config, check.err);
        if (status == LEAT_OK)
            status = spread_options(config, check.err);
    }
    if (status == LEAT_OK)
        status = check_values(config, check.err);
    if (status == LEAT_OK)
        status = check_control(config, check.err);
    if (status == LEAT_OK)
        status = leat_config_check_dns(config, check.err);
    if (status == LEAT_OK)
        status = check_listeners(&check);
    if (status == LEAT_OK)
        status = leat_config_check_listener_tls(&check);
    if (status == LEAT_OK)
        status = check_backends(&check);
    if (status == LEAT_OK)
        status = leat_config_check_backend_tls(&check);
    return status == LEAT_OK ? resolve_names(&check) : status;
}
