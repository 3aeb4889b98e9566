/* The TLS contexts in force. SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "proxy/control_impl.h"
#include "proxy/json_out.h"
#include "proxy/snapshot.h"
#include "proxy/tls_state.h"
#include "proxy/worker.h"
#include "tls/ctx_cache.h"

#define DAY_S (24 * 3600)

static void add_name(json_t **array, struct leat_str name)
{
    if (leat_json_append(*array, leat_json_str(name)))
        return;
    json_decref(*array);
    *array = NULL;
}

/* Adds what the certificate that CTX shows says of itself. */
static void add_certificate(struct leat_json *json, const struct leat_tls_ctx *ctx)
{
    const struct leat_tls_cert_info *cert = leat_tls_ctx_cert(ctx);
    int64_t from = 0, until = 0, now = leat_json_now_ms() / 1000;
    json_t *names;

    if (cert == NULL || !leat_tls_ctx_validity(ctx, &from, &until))
        return;
    names = json_array();
    for (size_t i = 0; i < cert->host_count; i++)
        add_name(&names, leat_str_of(cert->hosts[i]));
    leat_json_add_text(json, "subject", cert->subject);
    leat_json_add_text(json, "issuer", cert->issuer);
    leat_json_add_text(json, "serial", cert->serial);
    leat_json_add(json, "names", names);
    leat_json_add_time(json, "not_before", from * 1000);
    leat_json_add_time(json, "not_after", until * 1000);
    /* Rounded down, also when it is over. */
    leat_json_add(json, "days_left",
                  json_integer((until - now) / DAY_S - ((until - now) % DAY_S < 0)));
}

/* Adds what CTX, configured at PLACE, verifies peers by. */
static void add_trust(struct leat_json *json, const struct leat_snapshot_ctx_place *place,
                      const struct leat_tls_ctx *ctx)
{
    const struct leat_tls_trust_info *trust = leat_tls_ctx_trust(ctx);

    if (trust == NULL && place->is_backend)
        leat_json_add(json, "insecure_skip_verify", json_true());
    if (trust == NULL)
        return;
    leat_json_add_text(json, "ca", leat_tls_config_authorities(leat_tls_ctx_config(ctx)));
    leat_json_add_count(json, "authorities", trust->authorities);
    leat_json_add_time(json, "authorities_until", trust->last_until * 1000);
    if (trust->crls == 0)
        return;
    leat_json_add_count(json, "crls", trust->crls);
    if (trust->crl_next_until == INT64_MAX)
        leat_json_add(json, "crl_next_update", json_null());
    else
        leat_json_add_time(json, "crl_next_update", trust->crl_next_until * 1000);
}

static void add_context(void *arg, const struct leat_snapshot_ctx_place *place,
                        struct leat_tls_ctx *ctx)
{
    json_t **array = arg;
    const char *cert = leat_tls_config_cert_file(leat_tls_ctx_config(ctx));
    json_t *users = json_array();
    struct leat_json json;

    add_name(&users, leat_str_of(place->path));
    leat_json_begin(&json);
    leat_json_add(&json, "used_by", users);
    if (cert != NULL)
        leat_json_add_text(&json, "cert", cert);
    add_certificate(&json, ctx);
    add_trust(&json, place, ctx);
    if (place->failure != NULL)
        leat_json_add_text(&json, "failure", place->failure);
    if (leat_json_append(*array, leat_json_end(&json)))
        return;
    json_decref(*array);
    *array = NULL;
}

static json_t *cache_json(struct leat_tls_ctx_cache *cache)
{
    struct leat_tls_ctx_cache_counters counters;
    struct leat_json json;

    leat_tls_ctx_cache_counters(cache, &counters);
    leat_json_begin(&json);
    leat_json_add_count(&json, "entries", counters.entries);
    leat_json_add_count(&json, "hits", counters.hits);
    leat_json_add_count(&json, "misses", counters.misses);
    leat_json_add_count(&json, "builds", counters.builds);
    leat_json_add_count(&json, "build_us", counters.build_us);
    leat_json_add_count(&json, "failures", counters.failures);
    leat_json_add_count(&json, "rechecks", counters.rechecks);
    leat_json_add_count(&json, "evictions", counters.evictions);
    return leat_json_end(&json);
}

static json_t *trusts_json(struct leat_tls_trusts *trusts)
{
    struct leat_tls_trusts_counters counters;
    struct leat_json json;

    leat_tls_trusts_counters(trusts, &counters);
    leat_json_begin(&json);
    leat_json_add_count(&json, "stores", counters.stores);
    leat_json_add_count(&json, "parses", counters.parses);
    leat_json_add_count(&json, "shared", counters.shared);
    return leat_json_end(&json);
}

void leat_control_tls(struct leat_control_conn *conn, json_t *request)
{
    const struct leat_shared *shared = conn->control->shared;
    const struct leat_snapshot *snapshot = shared->snapshot;
    struct leat_tls_ctx_cache_counters counters;
    json_t *contexts = json_array();
    struct leat_json json;

    (void)request;
    leat_snapshot_each_ctx(snapshot, add_context, &contexts);
    leat_tls_ctx_cache_counters(snapshot->tls->cache, &counters);
    leat_control_begin_answer(&json);
    leat_json_add_count(&json, "builds", shared->life.contexts + counters.builds);
    leat_json_add(&json, "cache", cache_json(snapshot->tls->cache));
    leat_json_add(&json, "trust_stores", trusts_json(snapshot->tls->trusts));
    leat_json_add(&json, "contexts", contexts);
    leat_control_end_answer(conn, &json);
}
