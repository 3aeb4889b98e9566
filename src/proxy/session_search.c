/* Finding a backend: they are tried until one opens. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "buf/writer.h"
#include "proxy/session.h"
#include "proxy/session_proxy.h"
#include "proxy/tally.h"
#include "proxy/tls_state.h"
#include "tls/stream.h"

#define PASS_OVER_BURST 5
#define BLAME_AFTER_MS 1000

/* Lets go of the present backend and tries the next. */
static void give_up_backend(struct leat_session *session)
{
    leat_session_search_stop(session);
    leat_leg_close(&session->broker);
    session->broker.stream = NULL;
    leat_amqp_client_fini(&session->handshake->client);
    leat_session_search_next(session);
}

/* What the broker said may be part of a reason. */
static const char *quote(char *buf, size_t cap, const char *reason)
{
    struct leat_text text;

    leat_text_init(&text, buf, cap);
    leat_text_add_quoted(&text, leat_str_of(reason));
    return buf;
}

/* Keeps why the present backend is of no use: if all are, the end of the session says it. */
static void keep_failure(struct leat_session *session, const char *reason)
{
    struct leat_session_handshake *handshake = session->handshake;
    struct leat_text text;

    leat_text_init(&text, handshake->last_failure, sizeof(handshake->last_failure));
    leat_text_add(&text, "%s: %s", session->backend->text, reason);
}

/* Notes and logs that the present backend failed, and why. */
static void blame_backend(struct leat_session *session, const char *reason)
{
    const struct leat_log *log = session->worker->shared->log;
    struct leat_backend *backend = session->backend;
    uint32_t backoff = leat_backend_failed(backend, leat_loop_now_ms(session->worker->loop));
    char quoted[400];

    keep_failure(session, reason);
    leat_tally_failed(backend->tally, reason);
    (void)quote(quoted, sizeof(quoted), reason);
    if (backoff != 0)
        leat_log_line(log, LEAT_LOG_WARN,
                      "session=%llu backend=%s failed: reason=%s; it goes last for %u s",
                      (unsigned long long)session->id, backend->text, quoted, backoff / 1000);
    else
        leat_log_line(log, LEAT_LOG_DEBUG, "session=%llu backend=%s failed again: reason=%s",
                      (unsigned long long)session->id, backend->text, quoted);
}

void leat_session_search_failed(struct leat_session *session, const char *format, ...)
{
    char reason[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    blame_backend(session, reason);
    give_up_backend(session);
}

void leat_session_search_pass_over(struct leat_session *session, const char *format, ...)
{
    struct leat_shared *shared = session->worker->shared;
    char reason[256], quoted[400];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    keep_failure(session, reason);
    /* Without a back-off every session may meet the same. */
    if (leat_worker_may_log(session->worker, &shared->rate_pass_over, PASS_OVER_BURST))
        leat_log_line(shared->log, LEAT_LOG_WARN, "session=%llu backend=%s passed over: reason=%s",
                      (unsigned long long)session->id, session->backend->text,
                      quote(quoted, sizeof(quoted), reason));
    give_up_backend(session);
}

/* Events of the broker's stream. */

/* Whether STREAM is connected to a listener of this very leat: each session would beget another. */
static bool leads_back(const struct leat_session *session, const struct leat_stream *stream)
{
    const struct leat_shared *shared = session->worker->shared;
    struct leat_addr local;

    leat_stream_local_addr(stream, &local);
    for (size_t i = 0; i < shared->listener_count; i++) {
        if (leat_addr_leads_to(&session->backend_addr, &local, &shared->listener_addrs[i]))
            return true;
    }
    return false;
}

static void broker_connected(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    leat_stream_peer_addr(stream, &session->backend_addr);
    if (leads_back(session, stream)) {
        leat_session_search_failed(session, "it is a listener of this leat: sessions would go "
                                            "round in a circle");
        return;
    }
    if (session->backend->config->proxy_protocol != 0 &&
        leat_session_send_proxy(session) != LEAT_OK) {
        leat_session_search_pass_over(session, "out of memory for the PROXY header");
        return;
    }
    if (session->backend->config->endpoint.tls)
        leat_session_set_deadline(session, session->config->timeout_tls_ms);
}

static void broker_opened(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    session->broker.is_opened = true;
    leat_session_login_opened(session);
}

static void broker_readable(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    if (session->state == LEAT_SESSION_SEARCH)
        leat_session_login_readable(session);
    else if (session->state != LEAT_SESSION_ENDING)
        leat_session_relay_readable(session, &session->broker);
}

static void broker_drained(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    leat_leg_drained(&session->broker);
}

/* No connection to the present backend came about. */
static void connecting_failed(struct leat_session *session, const struct leat_error *err)
{
    int sys = err->sys;

    if (err->status == LEAT_ENOMEM || err->status == LEAT_ECANCELLED)
        sys = ENOMEM; /* no resolver is left that could be asked */
    switch (sys) {
    case EADDRNOTAVAIL:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOSPC:
    case ENOMEM:
        /* A lack on this side: the backend is not to blame. */
        leat_session_search_pass_over(session, "%s", err->text);
        break;
    default:
        leat_session_search_failed(session, "%s", err->text);
        break;
    }
}

static void broker_failed(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;
    const struct leat_error *err = leat_stream_error(stream);

    if (session->state != LEAT_SESSION_SEARCH)
        leat_session_leg_lost(session, &session->broker, err->text);
    else if (session->broker.is_opened)
        leat_session_search_lost(session, err->text);
    else
        connecting_failed(session, err);
}

static void broker_closed(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    /* A backend that failed may be gone only after the next one was begun. */
    if (session->broker.stream == stream)
        session->broker.stream = NULL;
    if (session->state == LEAT_SESSION_ENDING && session->broker.stream == NULL &&
        session->client.stream == NULL)
        leat_session_free(session);
}

static const struct leat_stream_events broker_events = {
    .connected = broker_connected,
    .opened = broker_opened,
    .readable = broker_readable,
    .drained = broker_drained,
    .failed = broker_failed,
    .closed = broker_closed,
};

/* Connecting. */

static enum leat_status connect_to(struct leat_session *session, struct leat_tls_ctx *ctx,
                                   struct leat_error *err)
{
    struct leat_backend *backend = session->backend;
    const struct leat_stream_user user = {
        .events = &broker_events, .arg = session, .account = &session->worker->shared->account};
    const struct leat_endpoint *endpoint = &backend->config->endpoint;
    const struct leat_addr *addr = &endpoint->addr;
    const struct leat_connect_target target = {.addrs = addr,
                                               .addr_count = endpoint->host == NULL,
                                               .name = endpoint->host,
                                               .port = endpoint->port,
                                               .resolver = session->worker->resolver,
                                               .turn = backend->turn++};
    struct leat_stream **stream = &session->broker.stream;

    if (ctx == NULL)
        return leat_stream_connect(session->worker->loop, &target, &user, stream, err);
    char host[LEAT_ADDR_TEXT_MAX];
    const char *name = backend->config->verify_name;
    if (name == NULL)
        name = endpoint->host != NULL ? endpoint->host : leat_addr_host_text(addr, host);
    const struct leat_tls_target tls = {.ctx = ctx, .name = name};
    return leat_tls_stream_connect(session->worker->loop, &target, &tls, &user, stream, err);
}

/* Goes on with CTX, a reference that is dropped, or NULL for a plain backend. */
static void go_on_with(struct leat_session *session, struct leat_tls_ctx *ctx)
{
    struct leat_error err;
    enum leat_status status = connect_to(session, ctx, &err);

    leat_tls_ctx_unref(ctx);
    if (status != LEAT_OK)
        connecting_failed(session, &err);
}

static void on_ctx(void *arg, struct leat_tls_ctx *ctx, const struct leat_error *err)
{
    struct leat_session *session = arg;

    /* Files of leat's own are wrong: the backend is not to blame. */
    if (ctx == NULL)
        leat_session_search_pass_over(session, "%s", err->text);
    else
        go_on_with(session, ctx);
}

static void begin_backend(struct leat_session *session)
{
    struct leat_snapshot *snapshot = session->snapshot;
    struct leat_tls_config *tls = snapshot->backend_tls[session->backend->index];
    struct leat_tls_ctx *ctx = NULL;
    struct leat_error err;
    enum leat_status status = LEAT_OK;

    if (tls != NULL)
        status = leat_tls_ctx_cache_get(snapshot->tls->cache, tls, &session->handshake->want, &ctx,
                                        &err);
    if (status == LEAT_OK)
        go_on_with(session, ctx);
    else if (status != LEAT_EAGAIN)
        on_ctx(session, NULL, &err);
}

void leat_session_search_stop(struct leat_session *session)
{
    if (session->handshake != NULL && session->handshake->want.fn != NULL)
        leat_tls_ctx_cache_cancel(session->snapshot->tls->cache, &session->handshake->want);
}

void leat_session_search_next(struct leat_session *session)
{
    static const struct leat_str none =
        LEAT_STR_INIT("CONNECTION_FORCED - no broker can be reached");
    struct leat_backend *backend = leat_farm_next(session->farm, &session->handshake->search);

    session->backend = backend;
    if (backend == NULL) {
        leat_session_refuse(session, LEAT_BY_LEAT, LEAT_AMQP_CONNECTION_FORCED, none);
        return;
    }
    session->handshake->tried_at = leat_loop_now_ms(session->worker->loop);
    session->handshake->login_sent = false;
    session->broker.is_opened = false;
    session->backend_addr = (struct leat_addr){0};
    leat_amqp_relay_init(&session->handshake->seen_broker, 0, 0);
    leat_session_set_deadline(session, session->config->timeout_connect_ms);
    begin_backend(session);
}

void leat_session_search_lost(struct leat_session *session, const char *reason)
{
    static const struct leat_str refused =
        LEAT_STR_INIT("ACCESS_REFUSED - the broker did not answer the login");
    char quoted[400];

    const struct leat_amqp_client *client = &session->handshake->client;

    if (!session->handshake->login_sent || client->tells_auth_failure) {
        /* A connection that is lost between login and Tune may be lost over what the client has
         * said of itself, which brokers parse and leat does not: a stranger must not take a farm
         * out of service. */
        if (session->handshake->login_sent && client->tune.frame_max == 0 &&
            client->failure.status == LEAT_OK)
            leat_session_search_pass_over(session, "%s", reason);
        else
            leat_session_search_failed(session, "%s", reason);
        return;
    }
    /* This broker cannot say that a password is wrong, so this may be its way, and a password
     * must not be tried on one node after the other. */
    leat_log_line(session->worker->shared->log, LEAT_LOG_DEBUG,
                  "session=%llu backend=%s taken for a refusal: reason=%s",
                  (unsigned long long)session->id, session->backend->text,
                  quote(quoted, sizeof(quoted), reason));
    leat_session_refuse(session, LEAT_BY_BROKER, LEAT_AMQP_ACCESS_REFUSED, refused);
}

static void on_search_deadline(void *arg)
{
    static const struct leat_str none =
        LEAT_STR_INIT("CONNECTION_FORCED - no broker could be reached in time");
    struct leat_session *session = arg;

    /* Else the next session would wait for the same one; but one that was only just begun has
     * done nothing wrong. */
    if (leat_loop_now_ms(session->worker->loop) - session->handshake->tried_at >= BLAME_AFTER_MS)
        blame_backend(session, "the time for finding a backend is over (timeouts.search)");
    leat_session_refuse(session, LEAT_BY_LEAT, LEAT_AMQP_CONNECTION_FORCED, none);
}

static void refuse_for_limit(struct leat_session *session)
{
    char text[96];
    int len = snprintf(text, sizeof(text),
                       "NOT_ALLOWED - the proxy's limit of %llu sessions is "
                       "reached",
                       (unsigned long long)session->worker->shared->sessions_max);

    session->worker->count.turned_away++;
    leat_session_refuse(session, LEAT_BY_LEAT, LEAT_AMQP_NOT_ALLOWED,
                        (struct leat_str){text, (size_t)len});
}

void leat_session_search_begin(struct leat_session *session)
{
    static const struct leat_str nowhere =
        LEAT_STR_INIT("NOT_ALLOWED - the proxy has no route for this vhost");
    static const struct leat_str local =
        LEAT_STR_INIT("ACCESS_REFUSED - this user can only connect from the machine of the proxy");
    struct leat_session_handshake *handshake = session->handshake;
    struct leat_shared *shared = session->worker->shared;
    char peer[LEAT_ADDR_TEXT_MAX];

    leat_session_set_state(session, LEAT_SESSION_SEARCH);
    session->is_counted = true;
    if (++shared->sessions > shared->sessions_max) {
        refuse_for_limit(session);
        return;
    }
    session->farm = leat_snapshot_find_farm(session->snapshot, session->login.vhost);
    if (session->farm == NULL) {
        leat_session_refuse(session, LEAT_BY_LEAT, LEAT_AMQP_NOT_ALLOWED, nowhere);
        return;
    }
    if (leat_config_is_loopback_user(session->config, session->login.user) &&
        !leat_session_is_local(session)) {
        leat_session_refuse(session, LEAT_BY_LEAT, LEAT_AMQP_ACCESS_REFUSED, local);
        return;
    }
    int len = snprintf(handshake->peer, sizeof(handshake->peer), "%s%s",
                       leat_addr_text(&session->peer, peer),
                       session->snapshot->listener_tls[session->listener] != NULL ? " TLS" : "");
    handshake->client_config = (struct leat_amqp_client_config){
        .login = &session->login, .peer = {handshake->peer, (size_t)len}};
    leat_tls_ctx_want_init(&handshake->want, session->worker->loop, on_ctx, session);
    leat_timer_init(&handshake->search_deadline, on_search_deadline, session);
    leat_timer_start(session->worker->loop, &handshake->search_deadline,
                     session->config->timeout_search_ms);
    leat_farm_begin(session->farm, leat_loop_now_ms(session->worker->loop), &handshake->search);
    leat_session_search_next(session);
}
