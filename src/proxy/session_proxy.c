/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/session_proxy.h"

#include "base/str.h"
#include "base/text.h"
#include "buf/writer.h"
#include "net/proxy_header.h"
#include "proxy/session.h"
#include "tls/stream.h"

#define NAME_MAX_BYTES 256

void leat_session_proxied(struct leat_session *session, const struct leat_proxy_header *header)
{
    session->has_no_client = header->is_local;
    if (header->is_local)
        return;
    session->via = session->peer;
    session->peer = header->source;
    session->handshake->destination = header->destination;
}

bool leat_session_is_local(const struct leat_session *session)
{
    const struct leat_addr *own = session->via.len > 0 ? &session->via : &session->peer;

    /* Whoever connects to a proxy on this machine looks as if he were here. */
    if (session->has_no_client || (own->ss.ss_family != AF_UNIX && !leat_addr_is_loopback(own)))
        return false;
    return session->via.len == 0 || leat_addr_is_loopback(&session->peer);
}

static bool is_inet(const struct leat_addr *addr)
{
    return addr->ss.ss_family == AF_INET || addr->ss.ss_family == AF_INET6;
}

/* Brokers refuse a header without addresses, so there are always some. */
static void name_ends(const struct leat_session *session, struct leat_proxy_header *header)
{
    header->source = session->peer;
    header->destination = session->handshake->destination;
    if (header->destination.len == 0)
        leat_stream_local_addr(session->client.stream, &header->destination);
    if (is_inet(&header->source) && is_inet(&header->destination))
        return;
    leat_stream_local_addr(session->broker.stream, &header->source);
    leat_stream_peer_addr(session->broker.stream, &header->destination);
}

/* Says of TLS with the client what there is to say; NAME has room for that of a certificate. */
static void name_tls(const struct leat_stream *client, struct leat_text *name,
                     struct leat_proxy_header *header)
{
    struct leat_stream_tls tls = leat_stream_tls(client);
    const char *authority = leat_tls_stream_server_name(client);

    header->tls.is_used = tls.version[0] != '\0';
    header->tls.version = leat_str_of(tls.version);
    header->tls.cipher = leat_str_of(tls.cipher);
    if (authority != NULL)
        header->authority = leat_str_of(authority);
    /* One that does not verify ends the handshake. */
    header->tls.has_cert = leat_tls_stream_add_common_name(client, name);
    header->tls.is_verified = header->tls.has_cert;
    header->tls.name = (struct leat_str){name->buf, name->len};
}

enum leat_status leat_session_send_proxy(struct leat_session *session)
{
    struct leat_proxy_header header = {.version =
                                           (unsigned)session->backend->config->proxy_protocol};
    uint8_t bytes[LEAT_PROXY_HEADER_MAX];
    char buf[NAME_MAX_BYTES];
    struct leat_writer writer;
    struct leat_text name;

    leat_text_init(&name, buf, sizeof(buf));
    name_ends(session, &header);
    name_tls(session->client.stream, &name, &header);
    leat_writer_init(&writer, bytes, sizeof(bytes));
    leat_proxy_header_write(&writer, &header);
    if (writer.failed)
        return LEAT_ELIMIT;
    return leat_stream_send_first(session->broker.stream, bytes, writer.len);
}
