/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/session.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "proxy/session_proxy.h"
#include "tls/stream.h"

const char *leat_session_state_name(enum leat_session_state state)
{
    static const char *const names[] = {"proxy", "tls",     "handshake", "search",
                                        "open",  "closing", "ending"};

    return names[state];
}

const char *leat_session_by_name(enum leat_session_by by)
{
    static const char *const names[] = {"client", "broker", "leat"};

    return names[by];
}

void leat_session_set_state(struct leat_session *session, enum leat_session_state state)
{
    const char *next = leat_session_state_name(state);
    const char *now = leat_session_state_name(session->state);
    /* Forward only, and any state may be followed by the last. */
    bool allowed = state > session->state;

    if (!allowed) {
        leat_session_end(session, &(struct leat_session_end){.by = LEAT_BY_LEAT},
                         "internal error: from state %s to %s", now, next);
        return;
    }
    leat_log_line(session->worker->shared->log, LEAT_LOG_DEBUG, "session=%llu state=%s was=%s",
                  (unsigned long long)session->id, next, now);
    session->state = state;
}

void leat_session_set_deadline(struct leat_session *session, uint64_t after_ms)
{
    leat_timer_start(session->worker->loop, &session->deadline, after_ms);
}

static void broker_is_late(struct leat_session *session)
{
    char reason[80];

    (void)snprintf(reason, sizeof(reason), "it did not send %s in time (timeouts.handshake)",
                   leat_amqp_client_awaits(&session->handshake->client));
    leat_session_search_lost(session, reason);
}

static void on_deadline(void *arg)
{
    struct leat_session *session = arg;
    const struct leat_session_end end = {.by = LEAT_BY_CLIENT};

    switch (session->state) {
    case LEAT_SESSION_PROXY:
        leat_session_end(session, &end, "no PROXY header in time (timeouts.proxy)");
        break;
    case LEAT_SESSION_TLS:
        leat_session_end(session, &end, "no TLS handshake in time (timeouts.tls)");
        break;
    case LEAT_SESSION_HANDSHAKE:
        leat_session_end(session, &end, "the client did not send %s in time (timeouts.handshake)",
                         leat_amqp_server_awaits(&session->handshake->server));
        break;
    case LEAT_SESSION_SEARCH:
        if (session->broker.is_opened)
            broker_is_late(session);
        else if (session->broker.stream == NULL) /* nothing was asked of the backend yet */
            leat_session_search_pass_over(session, "no TLS context in time (timeouts.connect)");
        else
            leat_session_search_failed(session,
                                       "no connection in time (timeouts.connect, timeouts.tls)");
        break;
    case LEAT_SESSION_CLOSING:
        leat_session_close_unanswered(session, "the Close was not answered in time "
                                               "(timeouts.close)");
        break;
    case LEAT_SESSION_OPEN:
    case LEAT_SESSION_ENDING:
        break;
    }
}

/* Events of the client's stream. */

static bool listens_with_tls(const struct leat_session *session)
{
    return session->config->listeners.at[session->listener].endpoint.tls;
}

static void client_proxied(struct leat_stream *stream, const struct leat_proxy_header *header,
                           void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    leat_session_proxied(session, header);
    if (!listens_with_tls(session))
        return;
    leat_session_set_state(session, LEAT_SESSION_TLS);
    leat_session_set_deadline(session, session->config->timeout_tls_ms);
}

static void client_opened(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    session->client.is_opened = true;
    leat_session_accept_opened(session);
}

static void client_readable(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    switch (session->state) {
    case LEAT_SESSION_HANDSHAKE:
        leat_session_accept_readable(session);
        break;
    case LEAT_SESSION_OPEN:
    case LEAT_SESSION_CLOSING:
        leat_session_relay_readable(session, &session->client);
        break;
    case LEAT_SESSION_PROXY:
    case LEAT_SESSION_TLS:
    case LEAT_SESSION_SEARCH:
    case LEAT_SESSION_ENDING:
        break;
    }
}

static void client_drained(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    leat_leg_drained(&session->client);
}

static void client_hup(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    /* Later than SEARCH what lies before the end is still to be carried to the broker. */
    if (session->state == LEAT_SESSION_SEARCH)
        leat_session_leg_lost(session, &session->client, "it left while a backend was sought");
}

static void client_failed(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    leat_session_leg_lost(session, &session->client, leat_stream_error(stream)->text);
}

static void free_when_both_closed(struct leat_session *session)
{
    if (session->client.stream == NULL && session->broker.stream == NULL)
        leat_session_free(session);
}

static void client_closed(struct leat_stream *stream, void *arg)
{
    struct leat_session *session = arg;

    (void)stream;
    session->client.stream = NULL;
    free_when_both_closed(session);
}

static const struct leat_stream_events client_events = {
    .proxied = client_proxied,
    .opened = client_opened,
    .readable = client_readable,
    .drained = client_drained,
    .hup = client_hup,
    .failed = client_failed,
    .closed = client_closed,
};

static enum leat_session_state first_state(const struct leat_session *session)
{
    if (leat_config_expects_proxy(&session->config->listeners.at[session->listener]))
        return LEAT_SESSION_PROXY;
    return listens_with_tls(session) ? LEAT_SESSION_TLS : LEAT_SESSION_HANDSHAKE;
}

/* How long it may take. */
static uint64_t first_timeout(const struct leat_session *session)
{
    if (session->state == LEAT_SESSION_PROXY)
        return session->config->timeout_proxy_ms;
    return session->state == LEAT_SESSION_TLS ? session->config->timeout_tls_ms
                                              : session->config->timeout_handshake_ms;
}

static struct leat_session *new_session(struct leat_worker *worker, size_t listener,
                                        const struct leat_addr *peer)
{
    struct leat_shared *shared = worker->shared;
    struct leat_session *session = leat_mem_zalloc(sizeof(*session));

    if (session == NULL)
        return NULL;
    session->handshake = leat_mem_zalloc(sizeof(*session->handshake));
    if (session->handshake == NULL) {
        leat_mem_free(session);
        return NULL;
    }
    leat_timer_init(&session->handshake->search_deadline, NULL, NULL);
    leat_amqp_relay_init(&session->handshake->seen_client, 0, 0);
    session->worker = worker;
    session->snapshot = leat_shared_snapshot(shared);
    session->config = session->snapshot->config;
    session->listener = listener;
    session->id = shared->next_id++;
    session->state = first_state(session);
    session->logs_frames = shared->tracing;
    session->trace = session->logs_frames;
    session->peer = *peer;
    session->began_at = leat_loop_now_ms(worker->loop);
    leat_leg_init(&session->client, session);
    leat_leg_init(&session->broker, session);
    leat_timer_init(&session->deadline, on_deadline, session);
    leat_list_append(&worker->sessions, &session->link);
    return session;
}

void leat_session_start(struct leat_worker *worker, int fd, size_t listener,
                        const struct leat_addr *peer)
{
    struct leat_shared *shared = worker->shared;
    struct leat_session *session = new_session(worker, listener, peer);
    enum leat_status status;

    if (session == NULL) {
        (void)close(fd);
        worker->count.load--;
        worker->count.failed++;
        shared->handshakes--;
        return;
    }
    bool expects_proxy = session->state == LEAT_SESSION_PROXY;
    if (expects_proxy && !leat_config_is_proxy(&session->config->listeners.at[listener], peer)) {
        (void)close(fd);
        leat_session_end(session, &(struct leat_session_end){.by = LEAT_BY_LEAT},
                         "it is none of the proxies that listeners[%zu].proxy_protocol names",
                         listener);
        return;
    }
    struct leat_stream_user user = {.events = &client_events,
                                    .arg = session,
                                    .account = &shared->account,
                                    .expects_proxy = expects_proxy};
    struct leat_tls_server *tls = session->snapshot->listener_tls[listener];
    if (tls != NULL)
        status = leat_tls_stream_accept(worker->loop, fd, tls, &user, &session->client.stream);
    else
        status = leat_stream_accept(worker->loop, fd, &user, &session->client.stream);
    if (status != LEAT_OK) {
        leat_session_end(session, &(struct leat_session_end){.by = LEAT_BY_LEAT}, "out of memory");
        return;
    }
    leat_session_set_deadline(session, first_timeout(session));
}

void leat_session_handshake_free(struct leat_session_handshake *handshake, struct leat_loop *loop)
{
    if (handshake == NULL)
        return;
    leat_timer_stop(loop, &handshake->search_deadline);
    leat_amqp_server_fini(&handshake->server);
    leat_amqp_client_fini(&handshake->client);
    leat_mem_free_secret(handshake, sizeof(*handshake));
}

void leat_session_free(struct leat_session *session)
{
    leat_timer_stop(session->worker->loop, &session->deadline);
    leat_worker_forget(session->worker, session);
    session->worker->count.load--;
    session->worker->shared->ending--;
    leat_amqp_login_fini(&session->login);
    leat_mem_free(session->connection_name);
    leat_snapshot_unref(session->snapshot);
    leat_mem_free(session);
}

void leat_session_cut(struct leat_session *session, const char *reason)
{
    if (session->state != LEAT_SESSION_ENDING)
        leat_session_end(session, &(struct leat_session_end){.by = LEAT_BY_LEAT}, "%s", reason);
    leat_leg_close(&session->client);
    leat_leg_close(&session->broker);
}
