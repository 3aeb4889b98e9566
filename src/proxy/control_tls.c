/* The TLS contexts in force. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/str.h"
#include "base/text.h"
#include "proxy/config_place.h"
#include "proxy/control_impl.h"
#include "proxy/json_out.h"
#include "proxy/snapshot.h"
#include "proxy/worker.h"
#include "tls/ctx.h"

#define DAY_S (24 * 3600)

static void add_name(void *arg, struct leat_str name)
{
    json_t **array = arg;

    if (leat_json_append(*array, leat_json_str(name)))
        return;
    json_decref(*array);
    *array = NULL;
}

/* Adds what the certificate that CTX shows says of itself. */
static void add_certificate(struct leat_json *json, const struct leat_tls_ctx *ctx)
{
    int64_t from = 0, until = 0, now = leat_json_now_ms() / 1000;
    json_t *names = json_array();
    char subject[256];

    leat_json_add_text(json, "subject", leat_tls_ctx_subject(ctx, subject, sizeof(subject)));
    leat_tls_ctx_each_name(ctx, add_name, &names);
    leat_json_add(json, "names", names);
    if (!leat_tls_ctx_validity(ctx, &from, &until))
        return;
    leat_json_add_time(json, "not_before", from * 1000);
    leat_json_add_time(json, "not_after", until * 1000);
    /* Rounded down, also when it is over. */
    leat_json_add(json, "days_left",
                  json_integer((until - now) / DAY_S - ((until - now) % DAY_S < 0)));
}

static json_t *listener_json(const struct leat_snapshot *snapshot, size_t index)
{
    char place[32];
    struct leat_json json;

    (void)snprintf(place, sizeof(place), "listeners[%zu]", index);
    leat_json_begin(&json);
    leat_json_add(&json, "used_by", json_pack("[s]", place));
    leat_json_add_text(&json, "cert", snapshot->config->listeners.at[index].cert);
    add_certificate(&json, snapshot->listener_ctx[index]);
    return leat_json_end(&json);
}

/* Of the context of backend FIRST, and of those behind it that share it. */
static json_t *backends_json(const struct leat_snapshot *snapshot, size_t first)
{
    const struct leat_config *config = snapshot->config;
    json_t *users = json_array();
    struct leat_json json;

    for (size_t i = first; i < config->backends.count; i++) {
        char buf[300];
        struct leat_text place;
        if (snapshot->backend_ctx[i] != snapshot->backend_ctx[first])
            continue;
        leat_text_init(&place, buf, sizeof(buf));
        leat_text_add(&place, "backends");
        leat_place_add_name(&place, leat_str_of(config->backends.at[i].name));
        add_name(&users, (struct leat_str){buf, place.len});
    }
    leat_json_begin(&json);
    leat_json_add(&json, "used_by", users);
    leat_json_add_text(&json, "ca", config->backends.at[first].ca);
    return leat_json_end(&json);
}

static bool is_first_user(const struct leat_snapshot *snapshot, size_t backend)
{
    size_t i = 0;

    while (snapshot->backend_ctx[i] != snapshot->backend_ctx[backend])
        i++;
    return i == backend && snapshot->backend_ctx[backend] != NULL;
}

static void add_context(json_t **array, json_t *context)
{
    if (leat_json_append(*array, context))
        return;
    json_decref(*array);
    *array = NULL;
}

void leat_control_tls(struct leat_control_conn *conn, json_t *request)
{
    const struct leat_shared *shared = conn->control->shared;
    const struct leat_snapshot *snapshot = shared->snapshot;
    json_t *contexts = json_array();
    struct leat_json json;

    (void)request;
    for (size_t i = 0; i < snapshot->config->listeners.count; i++) {
        if (snapshot->listener_ctx[i] != NULL)
            add_context(&contexts, listener_json(snapshot, i));
    }
    for (size_t i = 0; i < snapshot->config->backends.count; i++) {
        if (is_first_user(snapshot, i))
            add_context(&contexts, backends_json(snapshot, i));
    }
    leat_control_begin_answer(&json);
    leat_json_add_count(&json, "builds", shared->life.contexts);
    leat_json_add(&json, "contexts", contexts);
    leat_control_end_answer(conn, &json);
}
