/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/session_info.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "proxy/json_out.h"
#include "proxy/session.h"
#include "tls/stream.h"

/* Writes the listener's URL to BUF and returns it. */
static const char *listener_of(const struct leat_session *session, char buf[LEAT_ENDPOINT_URL_MAX])
{
    size_t index = session->listener;

    return leat_endpoint_url(&session->config->listeners.at[index].endpoint,
                             &session->worker->shared->listener_addrs[index], buf);
}

static const char *farm_of(const struct leat_session *session)
{
    const struct leat_route_config *route = NULL;

    if (session->farm != NULL)
        route = leat_config_find_route(session->config, session->login.vhost);
    return route != NULL ? session->config->farms.at[route->farm].name : NULL;
}

static json_t *tls_of(const struct leat_leg *leg)
{
    struct leat_stream_tls tls = {"", ""};
    struct leat_json json;
    struct leat_text peer;
    char buf[256];

    if (leg->stream != NULL)
        tls = leat_stream_tls(leg->stream);
    if (tls.version[0] == '\0')
        return json_null();
    leat_json_begin(&json);
    leat_json_add_text(&json, "version", tls.version);
    leat_json_add_text(&json, "cipher", tls.cipher);
    leat_json_add(&json, "resumed", json_boolean(leat_tls_stream_is_resumed(leg->stream)));
    if (leat_tls_stream_server_name(leg->stream) != NULL)
        leat_json_add_text(&json, "server_name", leat_tls_stream_server_name(leg->stream));
    leat_text_init(&peer, buf, sizeof(buf));
    if (leat_tls_stream_add_peer(leg->stream, &peer))
        leat_json_add_text(&json, "peer_certificate", buf);
    return leat_json_end(&json);
}

/* Adds COUNT, or null as long as it is not known. */
static void add_known(struct leat_json *json, const char *key, bool is_known, uint64_t count)
{
    if (is_known)
        leat_json_add_count(json, key, count);
    else
        leat_json_add(json, key, json_null());
}

static json_t *heartbeats_of(const struct leat_session *session, bool is_tuned)
{
    struct leat_json json;

    leat_json_begin(&json);
    add_known(&json, "client", is_tuned, session->login.tune.heartbeat_s);
    add_known(&json, "broker", session->was_open, session->broker.heartbeat_ms / 1000);
    return leat_json_end(&json);
}

/* Whether LEG is not read since OTHER does not take what it sends. */
static bool is_held_up_by(const struct leat_leg *leg, const struct leat_leg *other)
{
    return leg->stream != NULL && leat_stream_is_paused(leg->stream) && leat_leg_queued(other) > 0;
}

/* The side that does not take what is sent to it. */
static const char *waits(const struct leat_session *session)
{
    if (session->state != LEAT_SESSION_OPEN && session->state != LEAT_SESSION_CLOSING)
        return NULL;
    if (is_held_up_by(&session->client, &session->broker))
        return "broker";
    return is_held_up_by(&session->broker, &session->client) ? "client" : NULL;
}

static void add_who(struct leat_json *json, const struct leat_session *session)
{
    const struct leat_backend *backend = session->backend;
    char peer[LEAT_ADDR_TEXT_MAX], listener[LEAT_ENDPOINT_URL_MAX], addr[LEAT_ADDR_TEXT_MAX];

    leat_json_add_text(json, "client", leat_addr_text(&session->peer, peer));
    leat_json_add_text(json, "via",
                       session->via.len > 0 ? leat_addr_text(&session->via, addr) : NULL);
    leat_json_add_text(json, "listener", listener_of(session, listener));
    leat_json_add_str(json, "user", session->login.user);
    leat_json_add_str(json, "vhost", session->login.vhost);
    if (session->connection_name != NULL)
        leat_json_add_text(json, "connection_name", session->connection_name);
    leat_json_add_text(json, "farm", farm_of(session));
    leat_json_add_text(json, "backend", backend != NULL ? backend->config->name : NULL);
    leat_json_add_text(json, "backend_address",
                       session->backend_addr.len > 0 ? leat_addr_text(&session->backend_addr, addr)
                       : backend != NULL             ? backend->text
                                                     : NULL);
}

json_t *leat_session_json(const struct leat_session *session)
{
    const struct leat_amqp_tune *tune = &session->login.tune;
    uint64_t age_ms = leat_loop_now_ms(session->worker->loop) - session->began_at;
    bool is_tuned = session->login.vhost.ptr != NULL;
    struct leat_json json;

    leat_json_begin(&json);
    leat_json_add_count(&json, "id", session->id);
    leat_json_add_text(&json, "state", leat_session_state_name(session->state));
    add_who(&json, session);
    leat_json_add_count(&json, "seconds", age_ms / 1000);
    leat_json_add(&json, "tls", tls_of(&session->client));
    leat_json_add(&json, "backend_tls", tls_of(&session->broker));
    leat_json_add(&json, "heartbeat_s", heartbeats_of(session, is_tuned));
    add_known(&json, "frame_max", is_tuned, tune->frame_max);
    add_known(&json, "channel_max", is_tuned, tune->channel_max);
    leat_json_add_count(&json, "bytes_in", session->client.bytes);
    leat_json_add_count(&json, "bytes_out", session->broker.bytes);
    leat_json_add_count(&json, "frames_in", session->client.relay.frames);
    leat_json_add_count(&json, "frames_out", session->broker.relay.frames);
    leat_json_add_count(&json, "queued_to_client", leat_leg_queued(&session->client));
    leat_json_add_count(&json, "queued_to_broker", leat_leg_queued(&session->broker));
    leat_json_add_text(&json, "waits", waits(session));
    return leat_json_end(&json);
}

/* Whether VALUE is WANTED, also in the way in which it is shown. */
static bool is_wanted(struct leat_str value, const char *wanted)
{
    json_t *shown;

    if (value.ptr == NULL)
        return false;
    if (leat_str_equal(value, leat_str_of(wanted)))
        return true;
    if (strstr(wanted, "\\x") == NULL)
        return false;
    shown = leat_json_str(value);
    bool is_same = shown != NULL && strcmp(json_string_value(shown), wanted) == 0;
    json_decref(shown);
    return is_same;
}

static bool is_backend(const struct leat_session *session, const char *wanted)
{
    const struct leat_backend *backend = session->backend;
    char addr[LEAT_ADDR_TEXT_MAX];

    return backend != NULL &&
           (strcmp(backend->config->name, wanted) == 0 || strcmp(backend->text, wanted) == 0 ||
            (session->backend_addr.len > 0 &&
             strcmp(leat_addr_text(&session->backend_addr, addr), wanted) == 0));
}

static bool is_client(const struct leat_session *session, const char *wanted)
{
    char text[LEAT_ADDR_TEXT_MAX];
    size_t len = strlen(wanted);

    if (strcmp(leat_addr_text(&session->peer, text), wanted) == 0 ||
        strcmp(leat_addr_host_text(&session->peer, text), wanted) == 0)
        return true;
    /* Without the port, but in the brackets that belong to it. */
    return len > 2 && wanted[0] == '[' && wanted[len - 1] == ']' &&
           leat_str_equal(leat_str_of(text), (struct leat_str){wanted + 1, len - 2});
}

static bool is_listener(const struct leat_session *session, const char *wanted)
{
    char url[LEAT_ENDPOINT_URL_MAX];

    (void)listener_of(session, url);
    return strcmp(url, wanted) == 0 || strcmp(strstr(url, "://") + 3, wanted) == 0;
}

bool leat_session_matches(const struct leat_session *session,
                          const struct leat_session_filter *filter)
{
    if (filter->state != NULL &&
        strcmp(leat_session_state_name(session->state), filter->state) != 0)
        return false;
    if (filter->vhost != NULL && !is_wanted(session->login.vhost, filter->vhost))
        return false;
    if (filter->user != NULL && !is_wanted(session->login.user, filter->user))
        return false;
    if (filter->backend != NULL && !is_backend(session, filter->backend))
        return false;
    if (filter->client != NULL && !is_client(session, filter->client))
        return false;
    return filter->listener == NULL || is_listener(session, filter->listener);
}
