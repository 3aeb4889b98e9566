/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "proxy/config_keys.h"
#include "proxy/config_place.h"
#include "proxy/tally.h"
#include "tls/ctx.h"

/* Puts before ERR's text where the file that it is about is configured: PATH, that of an item,
 * and KEY, in LINE. */
static enum leat_status at(const struct leat_config *config, unsigned line, const char *path,
                           const char *key, struct leat_error *err)
{
    char buf[sizeof(err->text)];
    struct leat_text text;

    if (config->file == NULL)
        return err->status;
    leat_text_init(&text, buf, sizeof(buf));
    leat_place_add_file(&text, config->file, line);
    leat_text_add(&text, "%s.%s: %s", path, key, err->text);
    return leat_error_set(err, err->status, 0, "%s", buf);
}

static enum leat_status at_listener(const struct leat_config *config, size_t index,
                                    struct leat_error *err)
{
    const struct leat_listener_config *listener = &config->listeners.at[index];
    const char *key = strstr(err->text, "key file ") == err->text ? "key" : "cert";
    char path[48];

    (void)snprintf(path, sizeof(path), "listeners[%zu]", index);
    return at(config,
              leat_key_line(leat_key_find(&leat_listener_table, leat_str_of(key)),
                            listener->key_lines, listener->line),
              path, key, err);
}

static enum leat_status at_backend(const struct leat_config *config, size_t index,
                                   struct leat_error *err)
{
    const struct leat_backend_config *backend = &config->backends.at[index];
    char buf[300];
    struct leat_text path;

    leat_text_init(&path, buf, sizeof(buf));
    leat_text_add(&path, "backends");
    leat_place_add_name(&path, leat_str_of(backend->name));
    return at(config,
              leat_key_line(leat_key_find(&leat_backend_table, leat_str_of("ca")),
                            backend->key_lines, backend->line),
              buf, "ca", err);
}

static enum leat_status build_listener_contexts(struct leat_snapshot *snapshot,
                                                struct leat_error *err)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; i < config->listeners.count; i++) {
        const struct leat_listener_config *listener = &config->listeners.at[i];
        if (!listener->endpoint.tls)
            continue;
        if (leat_tls_ctx_new_server(listener->cert, listener->key, &snapshot->listener_ctx[i],
                                    err) != LEAT_OK)
            return at_listener(config, i, err);
    }
    return LEAT_OK;
}

static bool is_same_text(const char *a, const char *b)
{
    return (a == NULL || b == NULL) ? a == b : strcmp(a, b) == 0;
}

/* Backends that trust the same authorities share a context: a trust store is expensive. */
static struct leat_tls_ctx *find_shared(const struct leat_snapshot *snapshot, size_t backend)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; i < backend; i++) {
        if (snapshot->backend_ctx[i] != NULL &&
            is_same_text(config->backends.at[i].ca, config->backends.at[backend].ca))
            return snapshot->backend_ctx[i];
    }
    return NULL;
}

static enum leat_status build_backend_contexts(struct leat_snapshot *snapshot,
                                               struct leat_error *err)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; i < config->backends.count; i++) {
        if (!config->backends.at[i].endpoint.tls)
            continue;
        struct leat_tls_ctx *shared = find_shared(snapshot, i);
        if (shared != NULL)
            snapshot->backend_ctx[i] = leat_tls_ctx_ref(shared);
        else if (leat_tls_ctx_new_client(config->backends.at[i].ca, &snapshot->backend_ctx[i],
                                         err) != LEAT_OK)
            return at_backend(config, i, err);
    }
    return LEAT_OK;
}

static struct leat_backend *find_backend(const struct leat_snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->config->backends.count; i++) {
        if (strcmp(snapshot->config->backends.at[i].name, name) == 0)
            return &snapshot->backends[i];
    }
    return NULL;
}

/* Whether what failed on one would fail on the other. */
static bool is_same_backend(const struct leat_backend_config *a,
                            const struct leat_backend_config *b)
{
    return strcmp(a->name, b->name) == 0 && a->endpoint.tls == b->endpoint.tls &&
           leat_addr_is_equal(&a->endpoint.addr, &b->endpoint.addr) && is_same_text(a->ca, b->ca) &&
           is_same_text(a->verify_name, b->verify_name);
}

static enum leat_status init_backends(struct leat_snapshot *snapshot,
                                      const struct leat_snapshot *old)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; i < config->backends.count; i++) {
        const struct leat_backend_config *backend = &config->backends.at[i];
        const struct leat_backend *before = old != NULL ? find_backend(old, backend->name) : NULL;
        leat_backend_init(&snapshot->backends[i], i, backend);
        if (before != NULL && is_same_backend(before->config, backend))
            leat_backend_inherit(&snapshot->backends[i], before);
        else
            snapshot->backends[i].tally = leat_tally_new();
        if (snapshot->backends[i].tally == NULL)
            return LEAT_ENOMEM;
    }
    return LEAT_OK;
}

static struct leat_farm *find_old_farm(const struct leat_snapshot *old, const char *name)
{
    for (size_t i = 0; old != NULL && i < old->config->farms.count; i++) {
        if (strcmp(old->config->farms.at[i].name, name) == 0)
            return old->farms[i];
    }
    return NULL;
}

/* What was learned of a farm is worth nothing once other brokers serve it. */
static bool has_same_backends(const struct leat_farm *a, const struct leat_farm *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (!is_same_backend(a->backends[i]->config, b->backends[i]->config))
            return false;
    }
    return a->count == b->count;
}

static enum leat_status make_farms(struct leat_snapshot *snapshot, const struct leat_snapshot *old)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; i < config->farms.count; i++) {
        const struct leat_farm_config *farm = &config->farms.at[i];
        struct leat_farm *before = find_old_farm(old, farm->name);
        enum leat_status status =
            leat_farm_new(snapshot->backends, farm->backends, farm->count, &snapshot->farms[i]);
        if (status != LEAT_OK)
            return status;
        if (before != NULL && has_same_backends(snapshot->farms[i], before))
            leat_farm_inherit(snapshot->farms[i], before);
    }
    return LEAT_OK;
}

static bool allocate(struct leat_snapshot *snapshot)
{
    const struct leat_config *config = snapshot->config;

    snapshot->listener_ctx =
        leat_mem_zalloc_flex(0, config->listeners.count, sizeof(snapshot->listener_ctx[0]));
    snapshot->backend_ctx =
        leat_mem_zalloc_flex(0, config->backends.count, sizeof(snapshot->backend_ctx[0]));
    snapshot->backends =
        leat_mem_zalloc_flex(0, config->backends.count, sizeof(snapshot->backends[0]));
    snapshot->farms = leat_mem_zalloc_flex(0, config->farms.count, sizeof(snapshot->farms[0]));
    return snapshot->listener_ctx != NULL && snapshot->backend_ctx != NULL &&
           snapshot->backends != NULL && snapshot->farms != NULL;
}

/* Frees all but the configuration. */
static void free_parts(struct leat_snapshot *snapshot)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; snapshot->listener_ctx != NULL && i < config->listeners.count; i++)
        leat_tls_ctx_unref(snapshot->listener_ctx[i]);
    for (size_t i = 0; snapshot->backend_ctx != NULL && i < config->backends.count; i++)
        leat_tls_ctx_unref(snapshot->backend_ctx[i]);
    for (size_t i = 0; snapshot->backends != NULL && i < config->backends.count; i++)
        leat_tally_unref(snapshot->backends[i].tally);
    for (size_t i = 0; snapshot->farms != NULL && i < config->farms.count; i++)
        leat_farm_free(snapshot->farms[i]);
    leat_mem_free(snapshot->listener_ctx);
    leat_mem_free(snapshot->backend_ctx);
    leat_mem_free(snapshot->backends);
    leat_mem_free(snapshot->farms);
    leat_mem_free(snapshot);
}

enum leat_status leat_snapshot_new(struct leat_config *config, const struct leat_snapshot *old,
                                   struct leat_snapshot **out, struct leat_error *err)
{
    struct leat_snapshot *snapshot = leat_mem_zalloc(sizeof(*snapshot));
    enum leat_status status = LEAT_ENOMEM;

    if (snapshot == NULL)
        return leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    snapshot->refs = 1;
    snapshot->config = config;
    (void)leat_error_set(err, LEAT_ENOMEM, 0, "out of memory");
    if (allocate(snapshot))
        status = init_backends(snapshot, old);
    if (status == LEAT_OK)
        status = make_farms(snapshot, old);
    if (status == LEAT_OK)
        status = build_listener_contexts(snapshot, err);
    if (status == LEAT_OK)
        status = build_backend_contexts(snapshot, err);
    if (status != LEAT_OK) {
        free_parts(snapshot);
        return status;
    }
    *out = snapshot;
    return LEAT_OK;
}

struct leat_snapshot *leat_snapshot_ref(struct leat_snapshot *snapshot)
{
    snapshot->refs++;
    return snapshot;
}

void leat_snapshot_unref(struct leat_snapshot *snapshot)
{
    if (snapshot == NULL || --snapshot->refs > 0)
        return;
    struct leat_config *config = snapshot->config;
    free_parts(snapshot);
    leat_config_free(config);
}

struct leat_farm *leat_snapshot_find_farm(const struct leat_snapshot *snapshot,
                                          struct leat_str vhost)
{
    const struct leat_route_config *route = leat_config_find_route(snapshot->config, vhost);

    return route != NULL ? snapshot->farms[route->farm] : NULL;
}

void leat_snapshot_limit_tune(const struct leat_snapshot *snapshot, struct leat_amqp_tune *tune)
{
    for (size_t i = 0; i < snapshot->config->farms.count; i++)
        leat_farm_limit(snapshot->farms[i], tune);
}

struct leat_str leat_snapshot_properties(const struct leat_snapshot *snapshot,
                                         uint8_t buf[LEAT_AMQP_SERVER_PROPERTIES_MAX])
{
    struct leat_str known = {(const char *)buf, 0};

    for (size_t i = 0; i < snapshot->config->farms.count && known.len == 0; i++)
        known = leat_farm_properties(snapshot->farms[i], buf);
    return known;
}

size_t leat_snapshot_contexts(const struct leat_snapshot *snapshot)
{
    size_t count = 0;

    for (size_t i = 0; i < snapshot->config->listeners.count; i++)
        count += snapshot->listener_ctx[i] != NULL;
    for (size_t i = 0; i < snapshot->config->backends.count; i++)
        count += snapshot->backend_ctx[i] != NULL && find_shared(snapshot, i) == NULL;
    return count;
}

static bool is_same_endpoint(const struct leat_endpoint *a, const struct leat_endpoint *b)
{
    return a->tls == b->tls && leat_addr_is_equal(&a->addr, &b->addr);
}

enum leat_status leat_snapshot_may_replace(const struct leat_config *old,
                                           const struct leat_config *next, struct leat_error *err)
{
    static const char advice[] = "it can't change without a restart";

    if (old->workers != next->workers)
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: workers: %s", next->file, advice);
    if (!is_same_text(old->control_socket, next->control_socket))
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: control.socket: %s", next->file, advice);
    if (old->listeners.count != next->listeners.count)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "%s: listeners: there were %zu and are %zu now: %s", next->file,
                              old->listeners.count, next->listeners.count, advice);
    for (size_t i = 0; i < next->listeners.count; i++) {
        if (!is_same_endpoint(&old->listeners.at[i].endpoint, &next->listeners.at[i].endpoint))
            return leat_error_set(err, LEAT_EUSAGE, 0, "%s:%u: listeners[%zu].address: %s",
                                  next->file, next->listeners.at[i].line, i, advice);
    }
    return LEAT_OK;
}
