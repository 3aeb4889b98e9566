/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "proxy/tally.h"
#include "proxy/tls_state.h"
#include "tls/server.h"

static bool is_same_text(const char *a, const char *b)
{
    return (a == NULL || b == NULL) ? a == b : strcmp(a, b) == 0;
}

static struct leat_backend *find_backend(const struct leat_snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->config->backends.count; i++) {
        if (strcmp(snapshot->config->backends.at[i].name, name) == 0)
            return &snapshot->backends[i];
    }
    return NULL;
}

static bool is_same_tls(const struct leat_tls_settings *a, const struct leat_tls_settings *b)
{
    return is_same_text(a->cert, b->cert) && is_same_text(a->key, b->key) &&
           is_same_text(a->key_passphrase, b->key_passphrase) && is_same_text(a->ca, b->ca) &&
           is_same_text(a->crl, b->crl) && a->min_version == b->min_version &&
           a->max_version == b->max_version && is_same_text(a->ciphersuites, b->ciphersuites) &&
           is_same_text(a->ciphers, b->ciphers) && is_same_text(a->groups, b->groups);
}

/* Whether what failed on one would fail on the other. */
static bool is_same_backend(const struct leat_backend_config *a,
                            const struct leat_backend_config *b)
{
    return strcmp(a->name, b->name) == 0 && leat_endpoint_is_equal(&a->endpoint, &b->endpoint) &&
           is_same_text(a->verify_name, b->verify_name) &&
           a->insecure_skip_verify == b->insecure_skip_verify && is_same_tls(&a->tls, &b->tls) &&
           a->proxy_protocol == b->proxy_protocol;
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

    snapshot->listener_tls =
        leat_mem_zalloc_flex(0, config->listeners.count, sizeof(snapshot->listener_tls[0]));
    snapshot->backend_tls =
        leat_mem_zalloc_flex(0, config->backends.count, sizeof(snapshot->backend_tls[0]));
    snapshot->backend_ctx =
        leat_mem_zalloc_flex(0, config->backends.count, sizeof(snapshot->backend_ctx[0]));
    snapshot->backends =
        leat_mem_zalloc_flex(0, config->backends.count, sizeof(snapshot->backends[0]));
    snapshot->farms = leat_mem_zalloc_flex(0, config->farms.count, sizeof(snapshot->farms[0]));
    return snapshot->listener_tls != NULL && snapshot->backend_tls != NULL &&
           snapshot->backend_ctx != NULL && snapshot->backends != NULL && snapshot->farms != NULL;
}

/* Frees all but the configuration. */
static void free_parts(struct leat_snapshot *snapshot)
{
    const struct leat_config *config = snapshot->config;

    for (size_t i = 0; snapshot->listener_tls != NULL && i < config->listeners.count; i++)
        leat_tls_server_unref(snapshot->listener_tls[i]);
    for (size_t i = 0; snapshot->backend_tls != NULL && i < config->backends.count; i++)
        leat_tls_config_unref(snapshot->backend_tls[i]);
    for (size_t i = 0; snapshot->backend_ctx != NULL && i < config->backends.count; i++)
        leat_tls_ctx_unref(snapshot->backend_ctx[i]);
    for (size_t i = 0; snapshot->backends != NULL && i < config->backends.count; i++)
        leat_tally_unref(snapshot->backends[i].tally);
    for (size_t i = 0; snapshot->farms != NULL && i < config->farms.count; i++)
        leat_farm_free(snapshot->farms[i]);
    leat_mem_free(snapshot->listener_tls);
    leat_mem_free(snapshot->backend_tls);
    leat_mem_free(snapshot->backend_ctx);
    leat_mem_free(snapshot->backends);
    leat_mem_free(snapshot->farms);
    leat_tls_state_unref(snapshot->tls);
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
    if (status == LEAT_OK && old != NULL)
        snapshot->tls = leat_tls_state_ref(old->tls);
    else if (status == LEAT_OK)
        status = leat_tls_state_new(config, &snapshot->tls, err);
    if (status == LEAT_OK)
        status = leat_snapshot_build_tls(snapshot, err);
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

/* The resolvers are the workers'. */
static bool is_same_dns(const struct leat_config *old, const struct leat_config *next)
{
    bool is_same = old->dns_timeout_ms == next->dns_timeout_ms &&
                   old->dns_tries == next->dns_tries &&
                   old->dns_ttl_max_ms == next->dns_ttl_max_ms &&
                   old->dns_server_count == next->dns_server_count;

    for (size_t i = 0; is_same && i < old->dns_server_count; i++)
        is_same = leat_addr_is_equal(&old->dns_servers[i], &next->dns_servers[i]);
    return is_same;
}

enum leat_status leat_snapshot_may_replace(const struct leat_config *old,
                                           const struct leat_config *next, struct leat_error *err)
{
    static const char advice[] = "it can't change without a restart";

    if (old->workers != next->workers)
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: workers: %s", next->file, advice);
    if (old->tls_recheck_ms != next->tls_recheck_ms || old->tls_contexts != next->tls_contexts)
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: tls: %s", next->file, advice);
    if (!is_same_text(old->control_socket, next->control_socket))
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: control.socket: %s", next->file, advice);
    if (!is_same_dns(old, next))
        return leat_error_set(err, LEAT_EUSAGE, 0, "%s: dns: %s", next->file, advice);
    if (old->listeners.count != next->listeners.count)
        return leat_error_set(err, LEAT_EUSAGE, 0,
                              "%s: listeners: there were %zu and are %zu now: %s", next->file,
                              old->listeners.count, next->listeners.count, advice);
    for (size_t i = 0; i < next->listeners.count; i++) {
        if (!leat_endpoint_is_equal(&old->listeners.at[i].endpoint,
                                    &next->listeners.at[i].endpoint))
            return leat_error_set(err, LEAT_EUSAGE, 0, "%s:%u: listeners[%zu].address: %s",
                                  next->file, next->listeners.at[i].line, i, advice);
        if (!is_same_text(old->listeners.at[i].mode, next->listeners.at[i].mode))
            return leat_error_set(err, LEAT_EUSAGE, 0, "%s:%u: listeners[%zu].mode: %s", next->file,
                                  next->listeners.at[i].line, i, advice);
    }
    return LEAT_OK;
}
